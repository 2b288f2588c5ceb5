//! Files that the library writes for statements of SQL.
//!
//! It ends a file also after an error of the rows that go into it, and puts it in the place of the old one.
//! So it writes beside the place, and the files are moved when all of them are complete: a statement that
//! fails leaves what was there.

use super::made_folders::MadeFolders;
use super::target::{Target, is_name_of_part, is_name_of_rows, sync, unique};
use crate::error::{Error, FileFault, Result};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

/// The place of files that are written beside it first. What is left there goes with it.
pub(crate) struct Staged(Files);

enum Files {
    /// Files that are added to those of a folder.
    Added(Added),
    /// One file, or a folder of files, in the place of an old one.
    Whole(Target),
}

impl Staged {
    /// A file at a path of the local disk.
    ///
    /// # Errors
    /// The path cannot be written to, or there is something else than a file.
    pub(crate) fn file(path: &str) -> Result<Staged> {
        Ok(Staged(Files::Whole(Target::within(path, true, is_name_of_part)?)))
    }

    /// A folder of the local disk in the place of an old one. It need not exist.
    ///
    /// # Errors
    /// The path cannot be written to, or there is something else than a folder of files with rows.
    pub(crate) fn replaced_folder(path: &str) -> Result<Staged> {
        let of_folder = format!("{}/", path.trim_end_matches('/'));
        let target = Target::within(&of_folder, true, is_name_of_rows)?;
        fs::create_dir(target.elsewhere()).map_err(|error| Error::io(path, &error))?;
        Ok(Staged(Files::Whole(target)))
    }

    /// A folder of the local disk that has no files. It need not exist.
    ///
    /// # Errors
    /// The path cannot be written to, or there is something else than a folder without files.
    pub(crate) fn empty_folder(path: &str) -> Result<Staged> {
        check_empty(path, Path::new(path))?;
        Staged::added(path, true)
    }

    /// A folder of the local disk to which files are added. It need not exist.
    ///
    /// # Errors
    /// The path cannot be written to, or there is something else than a folder.
    pub(crate) fn folder(path: &str) -> Result<Staged> {
        Staged::added(path, false)
    }

    fn added(path: &str, is_empty: bool) -> Result<Staged> {
        let folder = PathBuf::from(path);
        // Within the folder, since a volume may begin with it. Readers of the folder pass hidden ones by.
        let unfinished = folder.join(format!(".{}.unfinished", unique()));
        let mut made = MadeFolders::default();
        made.make(&unfinished).map_err(|error| Error::io(path, &error))?;
        Ok(Staged(Files::Added(Added { path: path.to_owned(), folder, is_empty, unfinished, made })))
    }

    /// The URL that the library writes to in the place of the target.
    pub(crate) fn url(&self) -> String {
        match &self.0 {
            Files::Added(added) => format!("{}/", url_of(&added.unfinished)),
            Files::Whole(target) if target.is_folder() => format!("{}/", url_of(&target.elsewhere())),
            Files::Whole(target) => url_of(&target.elsewhere()),
        }
    }

    /// Makes the files visible, which are complete.
    ///
    /// # Errors
    /// Those of the file system; the target is as before.
    pub(crate) fn finish(self) -> Result<()> {
        match self.0 {
            Files::Added(added) => added.finish(),
            Files::Whole(target) => target.finish_elsewhere(),
        }
    }
}

/// A folder, and the hidden one in it with the files that it gets.
struct Added {
    path: String,
    folder: PathBuf,
    /// Whether the folder must have no files of others.
    is_empty: bool,
    unfinished: PathBuf,
    /// The folder, and those in and around it, that were not there.
    made: MadeFolders,
}

impl Added {
    fn finish(mut self) -> Result<()> {
        if self.is_empty {
            check_empty(&self.path, &self.folder)?;
        }
        let mut added = Vec::new();
        self.add(&mut added).map_err(|error| {
            for file in &added {
                let _left = fs::remove_file(file);
            }
            Error::io(&self.path, &error)
        })?;
        self.made.keep();
        Ok(())
    }

    /// Moves all files, each to the folder of its name; says which are in their places.
    fn add(&mut self, added: &mut Vec<PathBuf>) -> std::io::Result<()> {
        let mut files = Vec::new();
        let mut folders = vec![PathBuf::new()];
        let mut at = 0;
        while let Some(folder) = folders.get(at).cloned() {
            for entry in fs::read_dir(self.unfinished.join(&folder))? {
                let entry = entry?;
                let name = folder.join(entry.file_name());
                if entry.file_type()?.is_dir() {
                    folders.push(name);
                } else {
                    sync(&entry.path())?;
                    files.push(name);
                }
            }
            at += 1;
        }
        for folder in &folders {
            self.made.make(&self.folder.join(folder))?;
        }
        for file in files {
            let (from, place) = (self.unfinished.join(&file), self.folder.join(&file));
            self.made.within(place.parent().unwrap_or(&self.folder), || fs::rename(&from, &place))?;
            added.push(place);
        }
        folders.iter().try_for_each(|folder| sync(&self.folder.join(folder)))
    }
}

impl Drop for Added {
    fn drop(&mut self) {
        // Nobody reads what is left in a hidden folder.
        let _left = fs::remove_dir_all(&self.unfinished);
    }
}

/// Refuses a folder with files. Readers pass hidden ones by.
fn check_empty(path: &str, folder: &Path) -> Result<()> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        entries => entries.map_err(|error| Error::io(path, &error))?,
    };
    for entry in entries {
        let name = entry.map_err(|error| Error::io(path, &error))?.file_name();
        if !name.as_encoded_bytes().starts_with(b".") {
            return Err(Error::file(path, FileFault::Exists, HAS_FILES));
        }
    }
    Ok(())
}

/// The reason for which a folder takes no files.
const HAS_FILES: &str = "the folder has files: write COPY .. (overwrite) to replace them, or COPY .. (append) to \
                         add the rows to theirs";

/// The URL of an absolute path, whatever characters it has.
fn url_of(path: &Path) -> String {
    let mut url = "file://".to_owned();
    for &byte in path.as_os_str().as_encoded_bytes() {
        if byte.is_ascii_alphanumeric() || b"/-._=".contains(&byte) {
            url.push(char::from(byte));
        } else {
            // A text takes all that is written to it.
            let _written = write!(url, "%{byte:02X}");
        }
    }
    url
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).expect("a folder");
        let mut names: Vec<String> =
            entries.map(|entry| entry.expect("a name").file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    #[test]
    fn paths_of_any_characters_are_urls() {
        assert_eq!(url_of(Path::new("/a b/[1]%2?/é=#.csv")), "file:///a%20b/%5B1%5D%252%3F/%C3%A9=%23.csv");
    }

    #[test]
    fn files_are_added_to_a_folder_with_those_of_its_folders() {
        let parent = tempfile::tempdir().expect("a folder");
        let folder = parent.path().join("t");
        fs::create_dir(&folder).expect("a folder");
        fs::write(folder.join("old"), "rows").expect("a file");
        let staged = Staged::folder(&folder.to_string_lossy()).expect("a place");
        let Files::Added(added) = &staged.0 else { panic!("it is a folder") };
        fs::create_dir(added.unfinished.join("k=1")).expect("a folder");
        fs::write(added.unfinished.join("k=1").join("new"), "rows").expect("a file");
        fs::write(added.unfinished.join("other"), "rows").expect("a file");
        staged.finish().expect("they are moved");
        assert_eq!(names(&folder), ["k=1", "old", "other"]);
        assert_eq!(names(&folder.join("k=1")), ["new"]);
    }

    #[test]
    fn an_empty_folder_that_has_got_files_stays_as_it_is() {
        let parent = tempfile::tempdir().expect("a folder");
        let folder = parent.path().join("t");
        let staged = Staged::empty_folder(&folder.to_string_lossy()).expect("a place");
        let Files::Added(added) = &staged.0 else { panic!("it is a folder") };
        fs::write(added.unfinished.join("new"), "rows").expect("a file");
        fs::write(folder.join("of-another-one"), "rows").expect("a file");
        assert_eq!(staged.finish().expect_err("there is a file").class(), "FileExistsError");
        assert_eq!(names(&folder), ["of-another-one"]);
        assert!(Staged::empty_folder(&folder.to_string_lossy()).is_err());
        assert_eq!(names(&folder), ["of-another-one"]);
    }

    #[test]
    fn a_folder_is_replaced_when_all_is_written() {
        let parent = tempfile::tempdir().expect("a folder");
        let folder = parent.path().join("t");
        fs::create_dir_all(folder.join("k=1")).expect("a folder");
        fs::write(folder.join("k=1/old.parquet"), "rows").expect("a file");
        let place = folder.to_string_lossy();
        drop(Staged::replaced_folder(&place).expect("a place"));
        assert_eq!(names(&folder), ["k=1"]);
        let staged = Staged::replaced_folder(&place).expect("a place");
        let Files::Whole(target) = &staged.0 else { panic!("it is a whole") };
        fs::write(target.elsewhere().join("new.parquet"), "rows").expect("a file");
        staged.finish().expect("it is replaced");
        assert_eq!(names(&folder), ["new.parquet"]);
        fs::write(folder.join("notes.txt"), "no rows").expect("a file");
        assert!(Staged::replaced_folder(&place).is_err_and(|error| error.to_string().contains("notes.txt")));
        assert_eq!(names(parent.path()), ["t"]);
    }

    #[test]
    fn no_file_is_added_if_one_of_them_cannot_be() {
        let parent = tempfile::tempdir().expect("a folder");
        let folder = parent.path().join("t");
        fs::create_dir(&folder).expect("a folder");
        // A file cannot take the place of a folder.
        fs::create_dir(folder.join("b")).expect("a folder");
        let staged = Staged::folder(&folder.to_string_lossy()).expect("a place");
        let Files::Added(added) = &staged.0 else { panic!("it is a folder") };
        for name in ["a", "b", "c"] {
            fs::write(added.unfinished.join(name), "rows").expect("a file");
        }
        let error = staged.finish().expect_err("there is a folder");
        assert!(error.to_string().contains(&*folder.to_string_lossy()), "{error}");
        assert_eq!(names(&folder), ["b"]);
    }

    #[test]
    fn folders_of_files_that_are_not_written_go() {
        let parent = tempfile::tempdir().expect("a folder");
        let place = |name: &str| parent.path().join(name).to_string_lossy().into_owned();
        drop(Staged::file(&place("a/b/c.csv")).expect("a place"));
        drop(Staged::folder(&place("d/e")).expect("a place"));
        assert!(names(parent.path()).is_empty());
        fs::create_dir(parent.path().join("f")).expect("a folder");
        drop(Staged::folder(&place("f")).expect("a place"));
        let staged = Staged::folder(&place("f")).expect("a place");
        let Files::Added(added) = &staged.0 else { panic!("it is a folder") };
        fs::create_dir(added.unfinished.join("k=1")).expect("a folder");
        fs::create_dir(added.unfinished.join("k=2")).expect("a folder");
        fs::write(added.unfinished.join("k=2").join("new"), "rows").expect("a file");
        // A folder cannot take the place of a file.
        fs::write(parent.path().join("f").join("k=2"), "no folder").expect("a file");
        staged.finish().expect_err("there is a file");
        assert_eq!(names(&parent.path().join("f")), ["k=2"]);
    }
}
