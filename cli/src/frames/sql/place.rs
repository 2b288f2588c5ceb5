//! The place where statements run: threads of this process, or a cluster.

use crate::args::SqlArgs;
use anyhow::{Context, Result};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;
use tempfile::TempDir;
use tharsis::Runtime;
use tharsis::frame::{Executor, LocalExecutor, RemoteExecutor, offer_executor};

/// Attempts to remove the folder for what is spilled, after the first, and the time between them.
const REMOVALS_MAX: usize = 10;
const REMOVAL_PAUSE: Duration = Duration::from_millis(10);

static CHOSEN: OnceLock<Arc<dyn Executor>> = OnceLock::new();
/// The folder for what is spilled, in the one that the user has named.
static SCRATCH: Mutex<Option<TempDir>> = Mutex::new(None);

/// A chosen place. Nothing of it is left when it is dropped.
pub struct Place {
    _runtime: Option<Runtime>,
}

impl Drop for Place {
    fn drop(&mut self) {
        clean();
    }
}

/// Removes what was spilled: also before an end that drops nothing. Tasks that were left behind may still add
/// files meanwhile.
pub fn clean() {
    // Held until the folder is gone: another thread that ends the process waits for that.
    let mut held = SCRATCH.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(scratch) = held.take() else { return };
    let path = scratch.path().to_owned();
    drop(scratch);
    for _ in 0..REMOVALS_MAX {
        if !path.exists() {
            return;
        }
        std::thread::sleep(REMOVAL_PAUSE);
        // Looked at in the next round.
        let _gone = std::fs::remove_dir_all(&path);
    }
}

/// Has all statements run where the user asked for. The place must live as long as they.
///
/// # Errors
/// If no node answers at the address, or the folder for what is spilled cannot be used.
pub fn choose(asked: &SqlArgs) -> Result<Place> {
    // Before a runtime offers its own.
    offer_executor(|| CHOSEN.get().cloned());
    let (executor, runtime): (Arc<dyn Executor>, _) = match &asked.address {
        None if asked.memory.is_none() && asked.spill_dir.is_none() => return Ok(Place { _runtime: None }),
        None => (Arc::new(local(asked)?), None),
        Some(address) => {
            let runtime = tharsis::init().address(address).start()?;
            let executor = RemoteExecutor::new(&runtime);
            let executor = match asked.memory {
                Some(bytes) => executor.memory_bytes(bytes),
                None => executor,
            };
            (Arc::new(executor), Some(runtime))
        }
    };
    let _only_once = CHOSEN.set(executor);
    Ok(Place { _runtime: runtime })
}

fn local(asked: &SqlArgs) -> Result<LocalExecutor> {
    let executor = match asked.memory {
        Some(bytes) => {
            let threads = std::thread::available_parallelism().map_or(1, |count| count.get());
            LocalExecutor::sized(threads, bytes)
        }
        None => LocalExecutor::default(),
    };
    let Some(folder) = &asked.spill_dir else { return Ok(executor) };
    let name = || folder.display().to_string();
    std::fs::create_dir_all(folder).with_context(name)?;
    let scratch = TempDir::with_prefix_in("tharsis-sql-", folder).with_context(name)?;
    let path: PathBuf = scratch.path().to_owned();
    *SCRATCH.lock().unwrap_or_else(PoisonError::into_inner) = Some(scratch);
    Ok(executor.spill_dirs(vec![path]))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The thread that ends the process at a second Ctrl-C comes while the first one removes files.
    #[test]
    fn the_second_one_that_cleans_up_waits_until_nothing_is_left() {
        let scratch = TempDir::new().unwrap();
        let path = scratch.path().to_owned();
        for at in 0..500 {
            std::fs::write(path.join(at.to_string()), "").unwrap();
        }
        *SCRATCH.lock().unwrap() = Some(scratch);
        let start = std::sync::Barrier::new(2);
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    start.wait();
                    clean();
                    assert!(!path.exists());
                });
            }
        });
    }
}
