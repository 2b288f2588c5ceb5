//! A small file system for a scenario. Where this user may not mount, the scenario says that it did not
//! run.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A file system in memory, unmounted when dropped.
pub struct Mounted {
    path: PathBuf,
}

impl Mounted {
    /// A file system of the given size, at a folder that is made for it. `None`, and a line in the
    /// report, where it is not permitted.
    ///
    /// # Panics
    /// If the folder cannot be made.
    #[must_use]
    pub fn tmpfs(path: &Path, bytes: u64) -> Option<Self> {
        fs::create_dir_all(path).expect("the folder is made");
        let options = format!("size={bytes},mode=0700");
        let outcome = Command::new("mount").args(["-t", "tmpfs", "-o", &options, "none"]).arg(path).output();
        let problem = match outcome {
            Ok(output) if output.status.success() => return Some(Self { path: path.to_owned() }),
            Ok(output) => String::from_utf8_lossy(&output.stderr).into_owned(),
            Err(cause) => cause.to_string(),
        };
        tharsis_trials::not_run(format_args!("no file system could be mounted: {}", problem.trim()));
        None
    }

    /// Path of the folder.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        // A file system that cannot be unmounted now goes with its last file.
        let _outcome = Command::new("umount").arg("-l").arg(&self.path).output();
    }
}
