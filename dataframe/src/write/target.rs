//! From the files that tasks reported to the target, which changes at once.

use super::encoder::join;
use super::made_folders::MadeFolders;
use super::options::FileSpec;
use super::report::Written;
use crate::error::{Error, FileFault, Result};
use std::collections::{BTreeSet, HashMap};
use std::fs::{self, File};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::path::{Path, PathBuf};

/// The place that a frame is written to, and the folder beside it in which that happens. What is left in the
/// folder goes with it.
pub(crate) struct Target {
    /// The path that the user gave.
    path: String,
    whole: PathBuf,
    is_folder: bool,
    /// Whether a file of this name in the folder may be replaced.
    is_own: fn(&str) -> bool,
    unfinished: PathBuf,
    /// Folders around the place that were not there.
    made: MadeFolders,
}

impl Target {
    /// Checks that the place can be written to, and makes the folder beside it. Folders around a folder need
    /// not exist.
    pub(super) fn prepare(path: &str) -> Result<Target> {
        Target::within(path, path.ends_with('/'), is_name_of_part)
    }

    /// As [`Target::prepare`]; `makes_parent` says whether folders around the place need not exist, and
    /// `is_own` which files of a folder may be replaced.
    pub(super) fn within(path: &str, makes_parent: bool, is_own: fn(&str) -> bool) -> Result<Target> {
        let failed = |error: &std::io::Error| Error::io(path, error);
        let is_folder = path.ends_with('/');
        let whole = std::path::absolute(path).map_err(|error| failed(&error))?;
        // A link stays one: what it leads to is replaced.
        let whole = fs::canonicalize(&whole).unwrap_or(whole);
        let (Some(parent), Some(name)) = (whole.parent(), whole.file_name()) else {
            return Err(Error::file(path, FileFault::Exists, "this cannot be replaced"));
        };
        let unfinished = parent.join(format!(".{}.{}.unfinished", name.to_string_lossy(), unique()));
        // The slash at the end would make a folder of a file's name.
        let made = MadeFolders::default();
        let whole_name = parent.join(name);
        let path = path.to_owned();
        let mut target = Target { path, whole: whole_name, is_folder, is_own, unfinished, made };
        target.check_replaceable()?;
        let attempts = target.unfinished.join(ATTEMPTS);
        if makes_parent {
            target.made.make(&attempts).map_err(|error| failed(&error))?;
        } else {
            for folder in [&target.unfinished, &attempts] {
                fs::create_dir(folder).map_err(|error| failed(&error))?;
            }
        }
        Ok(target)
    }

    /// Whether the target is a folder of files.
    pub(super) fn is_folder(&self) -> bool {
        self.is_folder
    }

    /// The folder in which attempts make their files.
    pub(super) fn attempts(&self) -> String {
        self.unfinished.join(ATTEMPTS).to_string_lossy().into_owned()
    }

    /// Makes the reported files visible.
    pub(super) fn finish(self, written: &[Written], spec: &FileSpec) -> Result<()> {
        let made = self.unfinished.join("whole");
        if self.is_folder {
            self.arrange(&made, written, spec)?
        } else {
            self.join(&made, written, spec)?
        }
        self.show(&made)
    }

    /// The path at which somebody else makes the file or the folder, with the name that it will have.
    pub(super) fn elsewhere(&self) -> PathBuf {
        self.unfinished.join(ATTEMPTS).join(self.whole.file_name().unwrap_or_default())
    }

    /// Makes the file or the folder visible that is complete [`elsewhere`](Target::elsewhere).
    pub(super) fn finish_elsewhere(self) -> Result<()> {
        let made = self.elsewhere();
        sync_within(&made).map_err(|error| Error::io(&self.path, &error))?;
        self.show(&made)
    }

    /// Puts what was made in its place.
    fn show(mut self, made: &Path) -> Result<()> {
        let failed = |error: &std::io::Error| Error::io(&self.path, error);
        if self.is_folder && self.whole.exists() {
            self.check_replaceable()?;
            replace_folder(made, &self.whole, &self.replaced()).map_err(|error| failed(&error))?;
        } else {
            self.put(made).map_err(|error| failed(&error))?;
        }
        self.whole.parent().map_or(Ok(()), sync).map_err(|error| failed(&error))?;
        self.made.keep();
        Ok(())
    }

    /// Moves what was made to its place. It may be read and written by those who could do that before.
    fn put(&self, made: &Path) -> std::io::Result<()> {
        if let Ok(old) = fs::metadata(&self.whole) {
            fs::set_permissions(made, old.permissions())?;
        }
        fs::rename(made, &self.whole)
    }

    /// The name of the old folder while the new one takes its place. It is not in the folder of attempts,
    /// which is removed whatever happens.
    fn replaced(&self) -> PathBuf {
        let name = self.unfinished.file_name().map(|name| name.to_string_lossy().into_owned());
        let name = name.unwrap_or_default().replace(".unfinished", ".replaced");
        self.unfinished.with_file_name(name)
    }

    /// All reported files as one.
    fn join(&self, made: &Path, written: &[Written], spec: &FileSpec) -> Result<()> {
        let parts: Vec<PathBuf> = written.iter().map(|file| self.attempt(file)).collect::<Result<_>>()?;
        let failed = |error: &std::io::Error| Error::io(&self.path, error);
        match parts.as_slice() {
            [] => return Err(Error::Internal("no task has written a file".to_owned())),
            [part] => fs::rename(part, made).map_err(|error| failed(&error))?,
            parts => {
                join(spec, parts, made).map_err(|error| Error::file(&self.path, FileFault::Failed, error))?;
            }
        }
        File::open(made).and_then(|file| file.sync_all()).map_err(|error| failed(&error))
    }

    /// The reported files in their folders, numbered in the order of their rows.
    fn arrange(&self, made: &Path, written: &[Written], spec: &FileSpec) -> Result<()> {
        let failed = |error: &std::io::Error| Error::io(&self.path, error);
        fs::create_dir(made).map_err(|error| failed(&error))?;
        let mut folders = BTreeSet::new();
        for (file, number) in numbered(written) {
            let folder = made.join(&file.folder);
            if folders.insert(&file.folder) {
                fs::create_dir_all(&folder).map_err(|error| failed(&error))?;
            }
            let name = format!("{PART}{number:05}.{}", spec.extension());
            fs::rename(self.attempt(file)?, folder.join(name)).map_err(|error| failed(&error))?;
        }
        for folder in folders {
            sync(&made.join(folder)).map_err(|error| failed(&error))?;
        }
        sync(made).map_err(|error| failed(&error))
    }

    /// The path of a reported file, which must be visible here.
    fn attempt(&self, file: &Written) -> Result<PathBuf> {
        let path = self.unfinished.join(ATTEMPTS).join(&file.name);
        match fs::metadata(&path) {
            Ok(found) if found.len() == file.bytes => Ok(path),
            _ => Err(Error::file(
                &self.path,
                FileFault::Missing,
                "a file that a task wrote is not visible to the driver: all nodes must share the folder",
            )),
        }
    }

    /// Refuses a target whose removal could surprise: a folder in place of a file, a folder with files that
    /// are not its own.
    fn check_replaceable(&self) -> Result<()> {
        let refused = |reason: String| Err(Error::file(&self.path, FileFault::Exists, reason));
        match (self.is_folder, fs::metadata(&self.whole)) {
            (_, Err(_)) => Ok(()),
            (true, Ok(found)) if !found.is_dir() => refused("there is a file of this name".to_owned()),
            (false, Ok(found)) if found.is_dir() => {
                refused("this is a folder; end the path with / to write a folder of files".to_owned())
            }
            (false, Ok(found)) if !found.is_file() => refused("this is no regular file".to_owned()),
            (false, Ok(_)) => Ok(()),
            (true, Ok(_)) => {
                let found = foreign(&self.whole, self.is_own).map_err(|error| Error::io(&self.path, &error));
                match found? {
                    Some(name) => refused(format!("the folder has {name:?}, which writing would remove")),
                    None => Ok(()),
                }
            }
        }
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        // A task that was given up may still make a file while the folder goes.
        for _ in 0..3 {
            if fs::remove_dir_all(&self.unfinished).is_ok() || !self.unfinished.exists() {
                return;
            }
        }
    }
}

/// A file in a folder, and in its folders of values, that is not its own.
fn foreign(folder: &Path, is_own: fn(&str) -> bool) -> std::io::Result<Option<String>> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if entry.file_type()?.is_dir() && name.contains('=') {
            if let Some(inner) = foreign(&entry.path(), is_own)? {
                return Ok(Some(format!("{name}/{inner}")));
            }
        } else if entry.file_type()?.is_dir() || !is_own(&name) {
            return Ok(Some(name));
        }
    }
    Ok(None)
}

/// Whether a writer of frames makes a file of this name, in these folders of values. Other writers call
/// theirs `part-..` too, and some users.
pub(super) fn is_made_by_writer(names: &[&str]) -> bool {
    let Some((file, folders)) = names.split_last() else { return false };
    folders.iter().all(|folder| folder.contains('=')) && is_name_of_part(file)
}

/// Whether a name is `part-00001.csv.gz`, or in a store `part-00001-1f-0123456789abcdef.parquet`.
pub(super) fn is_name_of_part(name: &str) -> bool {
    let Some((stem, extension)) = name.strip_prefix(PART).and_then(|rest| rest.split_once('.')) else {
        return false;
    };
    let (number, attempt) = match stem.split_once('-') {
        Some((number, attempt)) => (number, Some(attempt)),
        None => (stem, None),
    };
    let is_hexadecimal = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let is_attempt = |text: &str| {
        text.split_once('-').is_some_and(|(process, random)| {
            is_hexadecimal(process) && is_hexadecimal(random) && random.len() == RANDOM_DIGITS
        })
    };
    NUMBER_DIGITS <= number.len()
        && number.bytes().all(|byte| byte.is_ascii_digit())
        && attempt.is_none_or(is_attempt)
        && FileSpec::is_extension(extension)
}

/// Whether a name ends as those of files with rows do, whoever writes them.
pub(super) fn is_name_of_rows(name: &str) -> bool {
    let compressed = [".bz2", ".gz", ".xz", ".zst"].iter().find_map(|ending| name.strip_suffix(ending));
    let ending = compressed.unwrap_or(name).rsplit_once('.');
    !name.starts_with('.') && ending.is_some_and(|(_, ending)| FileSpec::is_extension(ending))
}

/// Puts a folder in the place of another one, which is removed then. There is a moment in which the place has
/// none; after a failure in it the old folder is where it was, and after the end of the process it is hidden
/// beside its place.
fn replace_folder(made: &Path, whole: &Path, replaced: &Path) -> std::io::Result<()> {
    fs::rename(whole, replaced)?;
    if let Err(error) = fs::rename(made, whole) {
        return Err(match fs::rename(replaced, whole) {
            Ok(()) => error,
            Err(_) => {
                let text = format!("{error}; the files that were there are in {}", replaced.display());
                std::io::Error::new(error.kind(), text)
            }
        });
    }
    // The new files are in place. Old ones that cannot be removed are hidden, and no reader takes them.
    let _left = fs::remove_dir_all(replaced);
    Ok(())
}

/// Files in the order of their rows, each with its number in its folder.
pub(super) fn numbered(written: &[Written]) -> impl Iterator<Item = (&Written, usize)> {
    let mut counts = HashMap::<&str, usize>::new();
    written.iter().map(move |file| {
        let count = counts.entry(&file.folder).or_default();
        *count += 1;
        (file, *count - 1)
    })
}

/// Brings a file, or the names in a folder, to the disk.
pub(super) fn sync(path: &Path) -> std::io::Result<()> {
    File::open(path)?.sync_all()
}

/// Brings a file, or a folder with all that is in it, to the disk.
fn sync_within(path: &Path) -> std::io::Result<()> {
    if path.is_dir() {
        for entry in fs::read_dir(path)? {
            sync_within(&entry?.path())?;
        }
    }
    sync(path)
}

/// A name that no other process and no other attempt has.
pub fn unique() -> String {
    format!("{:x}-{:016x}", std::process::id(), RandomState::new().build_hasher().finish())
}

/// The folder of attempts in that of a writer.
pub(super) const ATTEMPTS: &str = "attempts";
/// The beginning of the names of files in a folder.
pub(super) const PART: &str = "part-";
/// Digits of the number of a file in a folder, at least.
const NUMBER_DIGITS: usize = 5;
/// Digits of the random part of [`unique`].
const RANDOM_DIGITS: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;

    fn folder_of(parent: &Path, name: &str, file: &str) -> PathBuf {
        let folder = parent.join(name);
        fs::create_dir(&folder).expect("a folder");
        fs::write(folder.join(file), "rows").expect("a file");
        folder
    }

    #[test]
    fn only_files_of_this_writer_are_its_own() {
        let unique = unique();
        for own in ["part-00000.parquet", "part-123456.csv.gz", "part-00001.json.zst", "part-00002.arrow"] {
            assert!(is_made_by_writer(&[own]), "{own}");
            assert!(is_made_by_writer(&["k=a", "n=1", own]), "{own}");
            assert!(!is_made_by_writer(&["folder", own]), "{own}");
        }
        assert!(is_made_by_writer(&[&format!("part-00000-{unique}.parquet")]));
        for other in [
            "part-list.csv",
            "part-0.parquet",
            "part-00000.txt",
            "part-00000",
            "part-00000.parquet.bak",
            "part-00000-tid-8713.parquet",
            "part-00000-6c1e0b3a-98a5-4f0e-8bb8-5c8b0a6d9d55-c000.snappy.parquet",
            "part-00000-6c1e0b3a-98a5-4f0e-8bb8-5c8b0a6d9d55.parquet",
            "parts-00000.csv",
        ] {
            assert!(!is_made_by_writer(&[other]), "{other}");
        }
    }

    #[test]
    fn files_with_rows_have_the_endings_of_formats() {
        for rows in ["part-00000.parquet", "a.b_0.csv", "a.csv.gz", "a.json.bz2", "a.arrow"] {
            assert!(is_name_of_rows(rows), "{rows}");
        }
        for other in ["notes.txt", "csv", ".a.csv", "a.csv.bak", "a.gz", ""] {
            assert!(!is_name_of_rows(other), "{other}");
        }
    }

    #[test]
    fn a_folder_takes_the_place_of_another_one() {
        let parent = tempfile::tempdir().expect("a folder");
        let made = folder_of(parent.path(), "made", "new");
        let whole = folder_of(parent.path(), "whole", "old");
        replace_folder(&made, &whole, &parent.path().join("replaced")).expect("it is replaced");
        assert!(whole.join("new").exists() && !whole.join("old").exists());
        assert!(!parent.path().join("replaced").exists());
    }

    #[test]
    fn a_folder_is_as_before_if_the_new_one_cannot_take_its_place() {
        let parent = tempfile::tempdir().expect("a folder");
        let whole = folder_of(parent.path(), "whole", "old");
        let (missing, replaced) = (parent.path().join("missing"), parent.path().join("replaced"));
        replace_folder(&missing, &whole, &replaced).expect_err("there is nothing new");
        assert!(whole.join("old").exists());
        assert!(!replaced.exists());
    }
}
