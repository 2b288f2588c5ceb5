//! A process that several workers share: each is a thread, begun when the node says so.
//!
//! The process ends when the node has no use for it any more, whatever its threads do then: those that still
//! compute were given up before.

use std::path::Path;
use tharsis_remote::{Result, SharedProcess, SharedWorker, run_worker};

/// Says on the standard error of the process why a worker does not go on.
pub(crate) type Report = fn(&str);

/// Begins the workers that the node asks for until it closes the connection.
///
/// # Errors
/// Why the process could not be connected.
pub(crate) fn run(socket: &Path, number: u64, report: Report) -> Result<()> {
    // Its threads have little memory each, and an allocator may have an arena for each of them: 2 MB if its
    // first page is a huge one. Where the kernel does not know the wish, that is the cost.
    let _wished = rustix::thread::disable_transparent_huge_pages(true);
    let process = SharedProcess::connect(socket, number)?;
    while let Some(worker) = process.next_worker()? {
        let start = worker.start();
        let thread = std::thread::Builder::new().name(format!("worker-{start}"));
        if let Err(cause) = thread.spawn(move || work(worker, report)) {
            // The node gives it up when it does not connect in time.
            report(&format!("no thread for worker {start}: {cause}"));
        }
    }
    Ok(())
}

/// The life of one worker.
fn work(worker: SharedWorker, report: Report) {
    let start = worker.start();
    let (client, leave) = match worker.connect() {
        Ok(connected) => connected,
        Err(error) => return report(&format!("worker {start} does not connect: {error}")),
    };
    // This thread uses the memory until it has said that it has stopped computing.
    let in_use = client.use_memory();
    if let Err(error) = run_worker(&client) {
        report(&error.to_string());
    }
    client.close();
    leave.leave();
    drop(in_use);
}
