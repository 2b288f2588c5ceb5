//! The role of this process, and whether it may start further processes.
//!
//! Nodes and workers are the user's program, started again; [`crate::process::enter`] makes such a process a
//! node or a worker before the user's `main` runs. In a program that does not go through it, the child would
//! run `main` too, which starts a child, and so on without end. So all functions that start the program
//! again, directly or through a node, take a [`Restartable`], which only a process that came through `enter`
//! can get.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use tharsis_remote::{Error, FailureKind, Result, current};

/// Set for a worker: the path of its node's socket.
pub const WORKER_SOCKET_VARIABLE: &str = "THARSIS_WORKER_SOCKET";
/// Set for a worker: the spill directories of its node, as `PATH` has its directories.
pub const WORKER_SCRATCH_VARIABLE: &str = "THARSIS_WORKER_SCRATCH";
/// Set for a node: its specification, as JSON.
pub const NODE_VARIABLE: &str = "THARSIS_NODE";

/// Role of a process of the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// The user's `main`.
    Driver,
    /// A node.
    Node,
    /// A worker.
    Worker,
}

/// Proof that this program can be started again: the child will take the role it is given.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Restartable(());

/// The only slot for a runtime that all threads of the program use.
#[derive(Debug)]
pub(crate) struct ProgramPlace(());

/// Empty in a program whose `main` does not go through `enter`.
static PART: OnceLock<Part> = OnceLock::new();
static PROGRAM_PLACE_IS_TAKEN: AtomicBool = AtomicBool::new(false);

/// Sets the role of this process.
pub(crate) fn enter(part: Part) {
    PART.get_or_init(|| part);
}

/// Refuses to start a runtime in a task, and in a process that was started as a node or worker.
///
/// # Errors
/// `InvalidArgument` with the remedy.
pub(crate) fn check_may_start() -> Result<()> {
    let wrong = |text: String| Err(Error::new(FailureKind::InvalidArgument, text));
    if current::is_in_task() {
        return wrong(
            "a task cannot start a runtime: it uses the one that runs it, without `init`".to_owned(),
        );
    }
    match (PART.get(), told_part()) {
        (Some(Part::Driver), _) | (None, None) => Ok(()),
        (Some(Part::Node), _) => wrong("a node cannot start a runtime in its own process".to_owned()),
        (Some(Part::Worker), _) => wrong(
            "a worker cannot start a runtime: it uses the one that it works for, without `init`".to_owned(),
        ),
        (None, Some((variable, part))) => wrong(format!(
            "this process was started as a {part} ({variable} is set), but it runs `main`: {REMEDY}"
        )),
    }
}

/// Whether processes of this program can be started.
///
/// # Errors
/// `InvalidArgument` with the remedy if its `main` did not go through [`crate::process::enter`].
pub(crate) fn restartable() -> Result<Restartable> {
    check_may_start()?;
    match PART.get() {
        Some(_) => Ok(Restartable(())),
        None => Err(Error::new(
            FailureKind::InvalidArgument,
            format!(
                "this program cannot have worker processes, so none was started: they are the program itself, started \
                 again, and would run its `main`: {REMEDY}"
            ),
        )),
    }
}

const REMEDY: &str = "put `#[tharsis::main]` above `fn main`, or let `main` call `tharsis::process::enter` before anything else";

/// The role that the environment gives this process, and its variable.
fn told_part() -> Option<(&'static str, &'static str)> {
    let parts = [(WORKER_SOCKET_VARIABLE, "worker"), (NODE_VARIABLE, "node")];
    parts.into_iter().find(|(variable, _)| std::env::var_os(variable).is_some())
}

impl ProgramPlace {
    /// Takes the slot until the returned value is dropped.
    ///
    /// # Errors
    /// `InvalidArgument` with the remedy if it is taken, or if this process may not start a runtime at all.
    pub(crate) fn take() -> Result<Self> {
        check_may_start()?;
        if PROGRAM_PLACE_IS_TAKEN.swap(true, Ordering::AcqRel) {
            let text = "this program has a runtime already: use it, drop it before the next `start`, or start several \
                        with `start_local` and `enter` them";
            return Err(Error::new(FailureKind::InvalidArgument, text));
        }
        Ok(Self(()))
    }
}

impl Drop for ProgramPlace {
    fn drop(&mut self) {
        PROGRAM_PLACE_IS_TAKEN.store(false, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_did_not_enter_cannot_be_started_again() {
        // The harness of unit tests has a `main` without the attribute.
        let error = restartable().unwrap_err();
        assert_eq!(error.kind(), FailureKind::InvalidArgument);
        assert!(error.to_string().contains("#[tharsis::main]"), "{error}");
        assert!(check_may_start().is_ok(), "embedded it runs");
    }

    #[test]
    fn there_is_one_program_wide_runtime_at_a_time() {
        let place = ProgramPlace::take().unwrap();
        let error = ProgramPlace::take().unwrap_err();
        assert!(error.to_string().contains("start_local"), "{error}");
        drop(place);
        drop(ProgramPlace::take().unwrap());
    }
}
