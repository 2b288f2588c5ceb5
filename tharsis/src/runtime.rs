//! A running runtime, and its use by threads.

use crate::actors::{self, ActorInfo};
use crate::part::ProgramPlace;
use std::sync::Arc;
use tharsis_protos::listing::{Listing, Table};
use tharsis_protos::report::Report;
use tharsis_remote::{Client, JobId, NodeId, Result, current};

/// Asks a node for its state.
pub(crate) type Reporter = Arc<dyn Fn() -> Result<Report> + Send + Sync>;

/// Asks a node for a list.
pub(crate) type Lister = Box<dyn Fn(Listing) -> Result<Table> + Send + Sync>;

/// Result of the start: the driver's client, and the function that ends the node behind it.
pub(crate) struct Started {
    pub(crate) client: Client,
    /// The node's socket, if it is another process.
    pub(crate) socket: Option<std::path::PathBuf>,
    /// Asks the node for its state.
    pub(crate) report: Box<dyn Fn() -> Result<Report> + Send + Sync>,
    /// Asks the node for a list.
    pub(crate) list: Lister,
    /// Ends the embedded node, or nothing if the node is another process. Called once, after the client is
    /// closed.
    pub(crate) stop: Box<dyn FnOnce() + Send + Sync>,
}

/// A part of this crate that has an executor for each runtime.
#[derive(Debug)]
pub(crate) struct Guest {
    /// Called when a runtime has started.
    pub(crate) enter: fn(&Runtime),
    /// Called with its client when it ends, before the client is closed.
    pub(crate) leave: fn(&Client),
}

/// A running runtime. Dropping it ends the job: waiting calls fail with `Shutdown`, and no processes or files
/// are left behind.
#[must_use = "the runtime ends when this is dropped"]
pub struct Runtime {
    client: Client,
    socket: Option<std::path::PathBuf>,
    report: Reporter,
    list: Lister,
    stop: Option<Box<dyn FnOnce() + Send + Sync>>,
    guests: &'static [Guest],
    /// Kept until everything has ended; `None` if only threads that enter use it.
    _place: Option<ProgramPlace>,
}

/// A thread's use of a runtime that is not the program's own.
pub struct Entered<'a> {
    _binding: current::Binding,
    _runtime: &'a Runtime,
}

impl Runtime {
    /// With `place` it is the runtime of the program, else only of threads that enter.
    pub(crate) fn new(started: Started, place: Option<ProgramPlace>, guests: &'static [Guest]) -> Self {
        if place.is_some() {
            current::set_global(Some(started.client.clone()));
        }
        let runtime = Self {
            client: started.client,
            socket: started.socket,
            report: Arc::from(started.report),
            list: started.list,
            stop: Some(started.stop),
            guests,
            _place: place,
        };
        for guest in guests {
            (guest.enter)(&runtime);
        }
        runtime
    }

    /// Makes this the runtime of the current thread until the returned value is dropped.
    #[must_use = "the thread leaves the runtime when this is dropped"]
    pub fn enter(&self) -> Entered<'_> {
        Entered { _binding: current::bind(self.client.clone()), _runtime: self }
    }

    /// The job of this driver.
    #[must_use]
    pub fn job(&self) -> JobId {
        self.client.job()
    }

    /// The node that this driver is connected to.
    #[must_use]
    pub fn node(&self) -> NodeId {
        self.client.node()
    }

    /// The socket of the node, if it is another process.
    #[must_use]
    pub fn socket(&self) -> Option<&std::path::Path> {
        self.socket.as_deref()
    }

    #[cfg(any(feature = "arrays", feature = "dataframe"))]
    pub(crate) fn client(&self) -> &Client {
        &self.client
    }

    #[cfg(any(feature = "arrays", feature = "dataframe"))]
    pub(crate) fn reporter(&self) -> Reporter {
        Arc::clone(&self.report)
    }

    /// State of the node: resources, use, waiting tasks and their reasons.
    ///
    /// # Errors
    /// `Disconnected` if the node does not answer.
    pub fn report(&self) -> Result<Report> {
        (self.report)()
    }

    /// The actors that were created at the node of this driver, by any job, and have not ended: the oldest
    /// first.
    ///
    /// ```no_run
    /// let runtime = tharsis::init().start()?;
    /// for actor in runtime.actors()? {
    ///     println!("{} is {:?}, started again {} times", actor.name, actor.state, actor.restarts);
    /// }
    /// # Ok::<(), tharsis::Error>(())
    /// ```
    ///
    /// # Errors
    /// `Disconnected` if the node does not answer.
    pub fn actors(&self) -> Result<Vec<ActorInfo>> {
        actors::read(&(self.list)(Listing::Actors)?)
    }

    /// Ends the runtime now; the same as dropping it.
    pub fn shutdown(self) {}
}

impl Drop for Runtime {
    fn drop(&mut self) {
        for guest in self.guests {
            (guest.leave)(&self.client);
        }
        current::unset_global(&self.client);
        self.client.close();
        if let Some(stop) = self.stop.take() {
            stop();
        }
    }
}

impl std::fmt::Debug for Runtime {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Runtime({:?})", self.client)
    }
}

impl std::fmt::Debug for Entered<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Entered({:?})", self._runtime)
    }
}
