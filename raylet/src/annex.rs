//! Blocks of the annex: allocated before a client is granted a range, returned to the disk when the range is
//! free.
//!
//! Both can take long, a second for many gigabytes if the disk is slow or is memory, so a separate thread
//! does it. It handles requests in order: a range whose client has gone while its blocks were being allocated
//! is freed after that.

use crate::inbox::{Inbox, Input};
use crate::registry::lock;
use std::io;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use tharsis_core::Event;
use tharsis_object_store::Arena;
use tharsis_types::{ClientId, Extent, Failure, FailureKind};

/// The thread that allocates and frees blocks.
pub struct Blocks {
    jobs: Mutex<Option<Sender<Job>>>,
    thread: JoinHandle<()>,
}

enum Job {
    Free(Extent),
    Make { client: ClientId, request: u32, region: Extent },
}

impl Blocks {
    /// Starts the thread, if there is an annex.
    ///
    /// # Errors
    /// If the thread cannot be started.
    pub fn start(arena: &Arc<Arena>, inbox: &Arc<Inbox>) -> io::Result<Option<Self>> {
        if arena.annex_len() == 0 {
            return Ok(None);
        }
        let (jobs, work) = channel();
        let (arena, inbox) = (Arc::clone(arena), Arc::clone(inbox));
        let thread = std::thread::Builder::new().name("annex".into()).stack_size(256 << 10);
        let thread = thread.spawn(move || run(&arena, &inbox, &work))?;
        Ok(Some(Self { jobs: Mutex::new(Some(jobs)), thread }))
    }

    /// Allocates the blocks of a region; ends with [`Input::RegionReady`].
    pub fn make(&self, client: ClientId, request: u32, region: Extent) {
        self.put(Job::Make { client, request, region });
    }

    /// Returns the blocks of a range to the disk; ends with [`Event::BlocksFreed`].
    pub fn free(&self, extent: Extent) {
        self.put(Job::Free(extent));
    }

    /// Ends the thread after the requests that it has.
    pub fn stop(self) {
        lock(&self.jobs).take();
        let _joined = self.thread.join();
    }

    fn put(&self, job: Job) {
        if let Some(jobs) = &*lock(&self.jobs) {
            // The thread receives until the sender is gone.
            let _sent = jobs.send(job);
        }
    }
}

fn run(arena: &Arena, inbox: &Inbox, work: &Receiver<Job>) {
    for job in work {
        inbox.put(match job {
            Job::Free(extent) => {
                if let Err(error) = arena.punch(extent.offset, extent.len) {
                    tracing::warn!(%error, "blocks of free room stay with the file for large values");
                }
                Input::Event(Event::BlocksFreed(extent))
            }
            Job::Make { client, request, region } => {
                let made = arena.allocate(region.offset, region.len);
                let failure = made.err().map(|error| {
                    Arc::new(Failure::new(FailureKind::OutOfDisk, format!("{} bytes: {error}", region.len)))
                });
                Input::RegionReady { client, request, region, failure }
            }
        });
    }
}
