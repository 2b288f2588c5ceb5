//! A program that can be started. It is held by an open descriptor, because another file may lie at its path
//! by now.

use std::fmt;
use std::fs::{File, Metadata};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// An open program. All clones are one descriptor.
#[derive(Clone, Debug)]
pub struct Executable {
    file: Arc<File>,
    path: Arc<Path>,
}

/// Metadata that tells whether a file is the one that was opened, unchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    /// Its bytes.
    pub len: u64,
    device: u64,
    inode: u64,
    modified_ns: (i64, i64),
}

impl Executable {
    /// An open file; `path` is where it was, for people.
    #[must_use]
    pub fn new(file: File, path: PathBuf) -> Self {
        Self { file: Arc::new(file), path: path.into() }
    }

    /// The open file of the executable.
    #[must_use]
    pub fn file(&self) -> Arc<File> {
        Arc::clone(&self.file)
    }

    /// Path at which it was opened.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The path by which this process, or its fork before the exec, starts the program.
    #[must_use]
    pub fn start_path(&self) -> PathBuf {
        format!("/proc/self/fd/{}", self.file.as_raw_fd()).into()
    }

    /// The identity of the file.
    ///
    /// # Errors
    /// If the system does not tell the identity.
    pub fn identity(&self) -> io::Result<Identity> {
        self.file.metadata().map(|data| Identity::of(&data))
    }

    /// Whether a process runs another program than this one. False if the system does not tell.
    #[must_use]
    pub fn is_not_of(&self, pid: u32) -> bool {
        let runs = std::fs::metadata(format!("/proc/{pid}/exe")).map(|data| Identity::of(&data));
        matches!((runs, self.identity()), (Ok(runs), Ok(own)) if runs != own)
    }
}

impl fmt::Display for Executable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.path.display().fmt(f)
    }
}

impl Identity {
    fn of(data: &Metadata) -> Self {
        let modified_ns = (data.mtime(), data.mtime_nsec());
        Self { len: data.len(), device: data.dev(), inode: data.ino(), modified_ns }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    #[test]
    fn what_is_started_is_what_was_opened_whatever_lies_at_its_path_now() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("program");
        std::fs::copy("/bin/echo", &path).unwrap();
        let executable = Executable::new(File::open(&path).unwrap(), path.clone());
        let opened = executable.identity().unwrap();
        std::fs::remove_file(&path).unwrap();
        std::fs::copy("/bin/false", &path).unwrap();
        assert_eq!(executable.identity().unwrap(), opened);
        let output = Command::new(executable.start_path()).arg("right").output().unwrap();
        assert_eq!(output.stdout, b"right\n");
    }

    #[test]
    fn a_process_of_another_program_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("program");
        std::fs::copy("/bin/sleep", &path).unwrap();
        let executable = Executable::new(File::open(&path).unwrap(), path.clone());
        let mut ours = Command::new(executable.start_path()).arg("60").stdin(Stdio::null()).spawn().unwrap();
        std::fs::remove_file(&path).unwrap();
        std::fs::copy("/bin/sleep", &path).unwrap();
        let mut other = Command::new(&path).arg("60").stdin(Stdio::null()).spawn().unwrap();
        let told = (executable.is_not_of(ours.id()), executable.is_not_of(other.id()));
        for child in [&mut ours, &mut other] {
            child.kill().unwrap();
            child.wait().unwrap();
        }
        assert_eq!(told, (false, true));
    }
}
