//! Folders that are made for files, and removed again if these do not come.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Folders that were made, outer ones first. Those without files go with it, unless they are kept. Others
/// were there before, or somebody else has made them at the same time, and stay.
#[derive(Debug, Default)]
pub(super) struct MadeFolders(Vec<PathBuf>);

impl MadeFolders {
    /// Makes a folder, and those around it that are not there.
    ///
    /// # Errors
    /// Those of the file system; what was made is known, and goes with this value.
    pub(super) fn make(&mut self, folder: &Path) -> io::Result<()> {
        self.within(folder, || Ok(()))
    }

    /// Makes a folder and does something in it. Both are done again if the folder went in between, with
    /// another statement that had made it and failed.
    ///
    /// # Errors
    /// Those of the file system and of the act.
    pub(super) fn within(&mut self, folder: &Path, act: impl Fn() -> io::Result<()>) -> io::Result<()> {
        for _ in 0..TRIES {
            match self.make_once(folder).and_then(|()| act()) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                done => return done,
            }
        }
        self.make_once(folder).and_then(|()| act())
    }

    fn make_once(&mut self, folder: &Path) -> io::Result<()> {
        let around = folder.ancestors().take_while(|folder| !folder.as_os_str().is_empty());
        let missing: Vec<&Path> = around.take_while(|folder| !folder.is_dir()).collect();
        for folder in missing.into_iter().rev() {
            match fs::create_dir(folder) {
                Ok(()) => self.0.push(folder.to_owned()),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists && folder.is_dir() => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Leaves the folders where they are.
    pub(super) fn keep(&mut self) {
        self.0.clear();
    }
}

/// Times that folders are made again which went in between.
const TRIES: usize = 16;

impl Drop for MadeFolders {
    fn drop(&mut self) {
        for folder in self.0.drain(..).rev() {
            // It fails for one that has files.
            let _left = fs::remove_dir(folder);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_without_files_go_and_others_stay() {
        let parent = tempfile::tempdir().expect("a folder");
        fs::create_dir(parent.path().join("old")).expect("a folder");
        let mut made = MadeFolders::default();
        for folder in ["old/a/b", "old/a/c", "new/d"] {
            made.make(&parent.path().join(folder)).expect("a folder");
        }
        fs::write(parent.path().join("new/file"), "of another one").expect("a file");
        drop(made);
        assert!(parent.path().join("old").exists() && !parent.path().join("old/a").exists());
        assert!(parent.path().join("new/file").exists() && !parent.path().join("new/d").exists());
    }

    #[test]
    fn folders_that_are_kept_stay() {
        let parent = tempfile::tempdir().expect("a folder");
        let mut made = MadeFolders::default();
        made.make(&parent.path().join("a/b")).expect("a folder");
        made.make(&parent.path().join("a/b")).expect("it is there");
        made.keep();
        drop(made);
        assert!(parent.path().join("a/b").exists());
    }

    #[test]
    fn a_folder_that_went_in_between_is_made_again() {
        let parent = tempfile::tempdir().expect("a folder");
        fs::write(parent.path().join("file"), "rows").expect("a file");
        let (folder, tries) = (parent.path().join("new/k=1"), std::cell::Cell::new(0));
        let mut made = MadeFolders::default();
        let moved = made.within(&folder, || {
            tries.set(tries.get() + 1);
            if tries.get() < 3 {
                fs::remove_dir_all(parent.path().join("new"))?;
            }
            fs::rename(parent.path().join("file"), folder.join("file"))
        });
        moved.expect("a file in the folder");
        drop(made);
        assert!(folder.join("file").exists() && tries.get() == 3);
    }

    #[test]
    fn what_was_made_before_an_error_goes() {
        let parent = tempfile::tempdir().expect("a folder");
        fs::write(parent.path().join("file"), "no folder").expect("a file");
        let mut made = MadeFolders::default();
        made.make(&parent.path().join("a")).expect("a folder");
        made.make(&parent.path().join("file/b")).expect_err("there is a file");
        drop(made);
        assert!(!parent.path().join("a").exists() && parent.path().join("file").exists());
    }
}
