//! The context of a running task.

use crate::client::Client;
use crate::current::{self, Binding};
use crate::error::{Error, Result};
use crate::task::{self, TaskState};
use crate::work::Leaving;
use std::sync::Arc;
use tharsis_types::task::Role;
use tharsis_types::{Attempt, JobId, NodeId, Resources, TaskId};

/// Context of the current code: a task, or the driver.
#[derive(Clone)]
pub struct Context {
    client: Client,
    state: Arc<TaskState>,
}

/// A thread's part in a task, made by [`Context::enter`]; it ends when this is dropped.
pub struct EnteredTask {
    outer: Option<(u32, Arc<TaskState>)>,
    /// Dropped after the task is put back.
    _binding: Binding,
}

impl Drop for EnteredTask {
    fn drop(&mut self) {
        let own = task::replace_task(self.outer.take());
        drop(own);
    }
}

impl std::fmt::Debug for EnteredTask {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("EnteredTask")
    }
}

/// The context of the current thread.
///
/// # Errors
/// `Shutdown` if no runtime is active, `Cancelled` in a thread that has [entered](Context::enter) a task
/// which has ended.
pub fn context() -> Result<Context> {
    let client = current::current()?;
    let state = current::task(&client);
    Ok(Context { client, state })
}

impl Context {
    /// The job that the code runs for.
    #[must_use]
    pub fn job(&self) -> JobId {
        self.client.job()
    }

    /// The node that this process works for.
    #[must_use]
    pub fn node(&self) -> NodeId {
        self.client.node()
    }

    /// The process id of this process.
    #[must_use]
    pub fn pid(&self) -> u32 {
        std::process::id()
    }

    /// Whether this is a task, not the driver's own code.
    #[must_use]
    pub fn is_task(&self) -> bool {
        self.state.slot.is_some()
    }

    /// The running task; in a driver the root of its job.
    #[must_use]
    pub fn task(&self) -> TaskId {
        self.state.task
    }

    /// Name of the task; empty in a driver.
    #[must_use]
    pub fn task_name(&self) -> &str {
        self.state.class.as_ref().map_or("", |class| class.name.as_str())
    }

    /// The number of this attempt; the first is 0.
    #[must_use]
    pub fn attempt(&self) -> Attempt {
        self.state.attempt
    }

    /// The resources that the task was given; none in a driver.
    #[must_use]
    pub fn resources(&self) -> Resources {
        self.state.class.as_ref().map(|class| class.resources.clone()).unwrap_or_default()
    }

    /// Names of the GPUs that this task or actor was given, as CUDA has them in `CUDA_VISIBLE_DEVICES`; none
    /// in a driver, and none for a task that asked for none.
    ///
    /// A worker process with GPUs has them in its environment, so a library sees these alone and counts them
    /// from 0. In an embedded program, and for actors that share a process, all see the devices of the
    /// process, and this says which of them are the task's.
    ///
    /// ```no_run
    /// # use tharsis_remote as tharsis;
    /// let context = tharsis::context()?;
    /// println!("{} computes on {}", context.task_name(), context.gpu_ids().join(" and "));
    /// # Ok::<(), tharsis::Error>(())
    /// ```
    #[must_use]
    pub fn gpu_ids(&self) -> &[String] {
        if self.is_task() { self.client.gpus() } else { &[] }
    }

    /// Makes the current thread one of this task's, or of this driver's, until the returned value is dropped:
    /// what the thread calls is called by the task, and while it waits, it waits for the task.
    ///
    /// A thread that a task starts has no task by itself. What it calls counts as called by whatever task its
    /// process runs at that time, so that the threads of a pool work for each task in turn. A thread that has
    /// entered a task never acts for another one: once the task has ended, its calls and puts fail with
    /// `Cancelled`. References that it has can still be read.
    ///
    /// ```no_run
    /// # use tharsis_remote as tharsis;
    /// let context = tharsis::context()?;
    /// std::thread::spawn(move || {
    ///     let _entered = context.enter();
    ///     // Calls of the task.
    /// });
    /// # Ok::<(), tharsis::Error>(())
    /// ```
    #[must_use = "the part of the thread ends when this is dropped"]
    pub fn enter(&self) -> EnteredTask {
        let _binding = current::bind(self.client.clone());
        let task = self.state.slot.is_some().then(|| (self.client.link().serial, Arc::clone(&self.state)));
        EnteredTask { outer: task::replace_task(task), _binding }
    }

    /// Whether the task was cancelled and should stop. A long task checks it now and then; one that waits for
    /// a value need not: the wait ends with `Cancelled`.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.state.is_cancelled()
    }
}

impl Context {
    /// The client that the code works for.
    pub(crate) fn client(&self) -> &Client {
        &self.client
    }

    /// The part that the task plays; none in a driver.
    pub(crate) fn role(&self) -> Option<Role> {
        self.state.class.as_ref().map(|class| class.role)
    }

    /// Ends the actor whose method this is, after this call and the others that have reached it. It is not
    /// started again. Later calls fail with `ActorDied` and `executed: no`.
    ///
    /// # Errors
    /// `InvalidArgument` outside of methods of an actor.
    pub fn exit_actor(&self) -> Result<()> {
        if self.role() != Some(Role::Method) {
            return Err(Error::argument("exit_actor: this is no method of an actor"));
        }
        self.client.leave(Leaving::AfterQueue);
        Ok(())
    }
}

impl std::fmt::Debug for Context {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Context({} in {:?})", self.state.task, self.client)
    }
}
