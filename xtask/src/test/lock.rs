//! The lock of a target folder: a run writes its programs' output and its tools there, so a second run waits.

#![allow(clippy::print_stderr, reason = "somebody who waits wants to know for what")]

use anyhow::{Context, Result, bail};
use std::fs::{File, TryLockError};
use std::io::{Seek, Write};
use std::path::Path;

/// File of the lock, in the target folder. It stays: removing it would let two runs lock two files.
const FILE: &str = "test-run.lock";

/// The right to run in a target folder. It ends with the last process that has the file, whatever ends that.
pub struct Lock(File);

impl Lock {
    /// Takes the lock; says so before it waits for another run.
    ///
    /// # Errors
    ///
    /// If the file cannot be made, or its file system has no locks.
    pub fn take(target: &Path) -> Result<Self> {
        std::fs::create_dir_all(target).with_context(|| format!("cannot make {}", target.display()))?;
        let path = target.join(FILE);
        let open = File::options().create(true).truncate(false).read(true).write(true).open(&path);
        let mut file = open.with_context(|| format!("cannot open {}", path.display()))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let holder = std::fs::read_to_string(&path).unwrap_or_default();
                eprintln!("waiting for the run of process {}in {}", holder.trim_start(), target.display());
                file.lock().with_context(|| format!("cannot lock {}", path.display()))?;
            }
            Err(TryLockError::Error(error)) => bail!("cannot lock {}: {error}", path.display()),
        }
        file.set_len(0)
            .and_then(|()| file.rewind())
            .and_then(|()| write!(file, "{} ", std::process::id()))
            .with_context(|| format!("cannot write {}", path.display()))?;
        Ok(Self(file))
    }

    /// The lock for a child as well: it is free when both have ended.
    pub fn share(&self) -> std::io::Result<File> {
        self.0.try_clone()
    }
}

#[cfg(test)]
mod tests {
    use super::{FILE, Lock};
    use std::fs::File;

    /// Whether another process would get the lock.
    fn is_free(target: &std::path::Path) -> bool {
        File::open(target.join(FILE)).unwrap().try_lock().is_ok()
    }

    #[test]
    fn a_second_run_waits_until_the_first_and_its_children_have_ended() {
        let target = tempfile::tempdir().unwrap();
        let first = Lock::take(target.path()).unwrap();
        assert!(!is_free(target.path()));
        let shared = first.share().unwrap();
        drop(first);
        assert!(!is_free(target.path()), "a child still has it");
        let (tell, told) = std::sync::mpsc::channel();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let _second = Lock::take(target.path()).unwrap();
                tell.send("second").unwrap();
            });
            tell.send("first").unwrap();
            drop(shared);
        });
        assert_eq!([told.recv().unwrap(), told.recv().unwrap()], ["first", "second"]);
        assert!(is_free(target.path()));
    }
}
