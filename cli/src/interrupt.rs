//! Ctrl-C while the command computes: it ends the computation, and with it the command or only a statement.

use crate::frames;
use crate::refusal::{INTERRUPTED, Refusal};
use anyhow::{Context, Result};
use std::process::exit;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tharsis::Cancel;
use tokio::signal::unix::{SignalKind, signal};

/// Time in which an interrupted command ends by itself, so that it leaves no unfinished files. It then ends
/// at once, whatever it waits for.
const GRACE: Duration = Duration::from_millis(900);
/// The bit of SIGINT in a set of signals.
const SIGINT_BIT: u64 = 1 << 1;

/// The part of the command that Ctrl-C ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ends {
    /// All of it.
    Command,
    /// The statement that runs; a second one while it has not ended ends the command.
    Statement,
}

struct State {
    /// The handle of what runs.
    running: Option<Cancel>,
    /// Whether Ctrl-C came when nothing ran yet.
    is_early: bool,
}

static STATE: Mutex<State> = Mutex::new(State { running: None, is_early: false });

fn state() -> MutexGuard<'static, State> {
    STATE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Takes SIGINT from here on. A command whose starter has it ignored, as scripts do for those in the
/// background, leaves it ignored: it is not meant. A shell takes it in any case: its terminal's keys are.
///
/// # Errors
/// If signals cannot be taken.
pub fn watch(ends: Ends) -> Result<()> {
    if ends == Ends::Command && is_ignored() {
        return Ok(());
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().context("signals")?;
    let entered = runtime.enter();
    let mut interrupts = signal(SignalKind::interrupt()).context("signals")?;
    drop(entered);
    let watch = move || {
        runtime.block_on(async move {
            while interrupts.recv().await.is_some() {
                let running = {
                    let mut state = state();
                    state.is_early = state.running.is_none();
                    state.running.clone()
                };
                match running {
                    None if ends == Ends::Statement => {}
                    Some(running) if !running.is_cancelled() => {
                        running.cancel();
                        if ends == Ends::Command {
                            let _any = tokio::time::timeout(GRACE, interrupts.recv()).await;
                            end();
                        }
                    }
                    _ => end(),
                }
            }
        });
    };
    // Ends with the process.
    std::thread::Builder::new().name("interrupts".into()).spawn(watch).map(drop).context("signals")
}

/// Ends the command, which may still compute.
fn end() -> ! {
    frames::clean();
    exit(INTERRUPTED.into())
}

fn is_ignored() -> bool {
    let status = procfs::process::Process::myself().and_then(|process| process.status());
    status.is_ok_and(|status| status.sigign & SIGINT_BIT != 0)
}

/// Runs a program whose computations Ctrl-C ends.
///
/// # Errors
/// Its own, or `Interrupted` if Ctrl-C came.
pub fn run<T>(program: impl FnOnce() -> Result<T>) -> Result<T> {
    let cancel = Cancel::new();
    {
        let mut state = state();
        if std::mem::take(&mut state.is_early) {
            cancel.cancel();
        }
        state.running = Some(cancel.clone());
    }
    let outcome = cancel.run(program);
    state().running = None;
    // Whatever else went wrong since then comes of it.
    if cancel.is_cancelled() { Err(Refusal::Interrupted.into()) } else { outcome }
}

/// Whether Ctrl-C has come for what runs.
pub fn is_interrupted() -> bool {
    state().running.as_ref().is_some_and(Cancel::is_cancelled)
}

/// Forgets a Ctrl-C that came when nothing ran.
pub fn forget() {
    state().is_early = false;
}
