//! Files on disks. What is not complete has another name, beside its place, which no other writer has: not on
//! other machines that share the disk, and not before or after this process. What is complete is on the disk
//! before it gets its name.

use super::{Begun, Border, Parts, Storage, Stored, Stretch, Unfinished};
use super::{file_error, shortened, too_long, unique};
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{Error as IoError, ErrorKind, Read, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use tharsis_graph::Error as GraphError;

/// The disks of the machine on which a task runs.
pub(super) struct Disk;

impl Storage for Disk {
    fn read(&self, path: &Path, bytes_max: u64) -> Stored<Option<Vec<u8>>> {
        let Some(file) = open(path)? else { return Ok(None) };
        // All at once: a memory that grows by doubling has up to twice as many bytes.
        let size = file.metadata().map_err(|error| file_error(path, &error))?.len();
        let mut bytes = Vec::with_capacity((size.min(bytes_max) + 1) as usize);
        file.take(bytes_max + 1).read_to_end(&mut bytes).map_err(|error| file_error(path, &error))?;
        if bytes.len() as u64 <= bytes_max { Ok(Some(bytes)) } else { Err(too_long(path, bytes_max)) }
    }

    fn read_several(&self, paths: &[PathBuf], bytes_max: u64) -> Stored<Vec<Option<Vec<u8>>>> {
        paths.iter().map(|path| self.read(path, bytes_max)).collect()
    }

    fn read_border(&self, path: &Path, border: Border, bytes: u64) -> Stored<Option<(Vec<u8>, u64)>> {
        let Some(file) = open(path)? else { return Ok(None) };
        let failed = |error: IoError| file_error(path, &error);
        let size = file.metadata().map_err(failed)?.len();
        let bytes = bytes.min(size);
        let mut found = vec![0; bytes as usize];
        let at = match border {
            Border::First => 0,
            Border::Last => size - bytes,
        };
        file.read_exact_at(&mut found, at).map_err(failed)?;
        Ok(Some((found, size)))
    }

    fn read_stretches(&self, path: &Path, stretches: &[Stretch], to: &mut [u8]) -> Stored<()> {
        let file = File::open(path).map_err(|error| file_error(path, &error))?;
        for (at, range) in stretches {
            file.read_exact_at(&mut to[range.clone()], *at).map_err(|error| match error.kind() {
                ErrorKind::UnexpectedEof => shortened(path),
                _ => file_error(path, &error),
            })?;
        }
        Ok(())
    }

    fn write(&self, path: &Path, bytes: Vec<u8>) -> Stored<()> {
        let failed = |error: IoError| file_error(path, &error);
        let partial = partial_path(path).map_err(failed)?;
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder).map_err(failed)?;
        }
        let write = || {
            File::create_new(&partial)?.write_all(&bytes)?;
            std::fs::rename(&partial, path)
        };
        let written = write();
        written.map_err(|error| {
            // A partial file that cannot be removed goes with the folder of the array.
            let _gone = std::fs::remove_file(&partial);
            failed(error)
        })
    }

    fn begin_file(&self, path: &Path, head: &[u8], bytes: u64) -> Stored<Unfinished> {
        let failed = |error: IoError| file_error(path, &error);
        let partial = partial_path(path).map_err(failed)?;
        let prepare = || {
            let mut file = File::create_new(&partial)?;
            file.write_all(head)?;
            file.set_len(head.len() as u64 + bytes)
        };
        let begun = Unfinished { path: partial.clone(), parts: None };
        match prepare() {
            Ok(()) => Ok(begun),
            Err(error) => {
                self.abandon_file(&begun);
                Err(failed(error))
            }
        }
    }

    fn write_stretches(&self, path: &Path, stretches: &[Stretch], from: &[u8]) -> Stored<()> {
        let failed = |error: IoError| file_error(path, &error);
        let file = OpenOptions::new().write(true).open(path).map_err(failed)?;
        for (at, range) in stretches {
            file.write_all_at(&from[range.clone()], *at).map_err(failed)?;
        }
        Ok(())
    }

    fn write_part(&self, path: &Path, _: &Parts, _: usize, _: Vec<u8>) -> Stored<()> {
        Err(GraphError::Internal(format!("{} is on a disk, which takes no parts", path.display())))
    }

    fn finish_file(&self, begun: &Unfinished, path: &Path) -> Stored<()> {
        let finish = || {
            File::open(&begun.path)?.sync_all()?;
            rename(&begun.path, path)
        };
        finish().map_err(|error| file_error(path, &error))
    }

    fn abandon_file(&self, begun: &Unfinished) {
        let _gone = std::fs::remove_file(&begun.path);
    }

    fn begin_folder(&self, path: &Path) -> Stored<Begun> {
        let failed = |error: IoError| file_error(path, &error);
        if path.symlink_metadata().is_ok() {
            return Err(failed(ErrorKind::AlreadyExists.into()));
        }
        let folder = partial_path(path).map_err(failed)?;
        if let Some(above) = folder.parent() {
            std::fs::create_dir_all(above).map_err(failed)?;
        }
        // Never one that is there already: what is in it would become part of the array.
        DirBuilder::new().create(&folder).map_err(failed)?;
        Ok(Begun { folder, claim: String::new() })
    }

    fn finish_folder(&self, begun: &Begun, path: &Path, last: &str, bytes: Vec<u8>) -> Stored<()> {
        self.write(&begun.folder.join(last), bytes)?;
        let finish = || {
            settle(&begun.folder)?;
            rename(&begun.folder, path)
        };
        finish().map_err(|error| file_error(path, &error))
    }

    fn abandon_folder(&self, begun: &Begun, _: &[&str], _: bool) {
        // Its name is never drawn again, so nobody takes what may still be written there for his own.
        let _gone = std::fs::remove_dir_all(&begun.folder);
    }
}

/// A path beside another one that no other writer has: absolute, since tasks may run in other folders.
fn partial_path(path: &Path) -> std::io::Result<PathBuf> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.{PARTIAL}", unique()?));
    std::path::absolute(path.with_file_name(name))
}

/// Removes what writers that died have left in a folder, and has all else reach the disk. Most of it is there
/// by now: a file is not waited for when it is written.
fn settle(folder: &Path) -> std::io::Result<()> {
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder)? {
            let entry = entry?;
            let path = entry.path();
            if entry.file_type()?.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == PARTIAL) {
                // A repeated task may have given it its name by now.
                unless_gone(std::fs::remove_file(&path))?;
            } else {
                File::open(&path)?.sync_all()?;
            }
        }
        sync_folder(&folder)?;
    }
    Ok(())
}

/// Gives a file or a folder its name, which stays after a loss of power.
fn rename(from: &Path, to: &Path) -> std::io::Result<()> {
    std::fs::rename(from, to)?;
    std::path::absolute(to)?.parent().map_or(Ok(()), sync_folder)
}

fn sync_folder(folder: &Path) -> std::io::Result<()> {
    // Some file systems do not know this for folders, and who may write into one need not read it.
    const UNABLE: [ErrorKind; 3] =
        [ErrorKind::InvalidInput, ErrorKind::PermissionDenied, ErrorKind::Unsupported];
    match File::open(folder).and_then(|folder| folder.sync_all()) {
        Err(error) if UNABLE.contains(&error.kind()) => Ok(()),
        synced => synced,
    }
}

fn unless_gone(removed: std::io::Result<()>) -> std::io::Result<()> {
    match removed {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

/// The last part of the names of what is not complete.
const PARTIAL: &str = "part";

fn open(path: &Path) -> Stored<Option<File>> {
    match File::open(path) {
        Ok(file) => Ok(Some(file)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(file_error(path, &error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt;

    fn names(folder: &Path) -> Vec<String> {
        let entries = std::fs::read_dir(folder).unwrap();
        let mut names: Vec<_> =
            entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    #[test]
    fn no_two_writers_share_what_is_not_complete() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.zarr");
        let (a, b) = (Disk.begin_folder(&path).unwrap(), Disk.begin_folder(&path).unwrap());
        assert_ne!(a.folder, b.folder);
        Disk.write(&a.folder.join("c/0"), vec![1]).unwrap();
        Disk.finish_folder(&b, &path, "zarr.json", vec![2]).unwrap();
        assert_eq!(names(&path), ["zarr.json"], "chunks of the one are none of the other");
        Disk.finish_folder(&a, &path, "zarr.json", vec![3]).unwrap_err();
        Disk.abandon_folder(&a, &[], true);
        assert_eq!(std::fs::read(path.join("zarr.json")).unwrap(), [2], "the loser removes its own alone");
        assert_eq!(names(folder.path()), ["x.zarr"]);
        let file = folder.path().join("x.npy");
        let (a, b) = (Disk.begin_file(&file, &[], 1).unwrap(), Disk.begin_file(&file, &[], 1).unwrap());
        assert_ne!(a.path, b.path);
    }

    #[test]
    fn a_partial_file_that_gets_its_name_meanwhile_is_no_failure() {
        let folder = tempfile::tempdir().unwrap();
        let partial = folder.path().join("0.part");
        std::fs::write(&partial, [1]).unwrap();
        unless_gone(std::fs::remove_file(&partial)).unwrap();
        unless_gone(std::fs::remove_file(&partial)).unwrap();
        unless_gone(std::fs::remove_file(folder.path())).unwrap_err();
    }

    #[test]
    fn files_are_saved_into_a_folder_that_cannot_be_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.npy");
        let permit = |mode| std::fs::set_permissions(folder.path(), Permissions::from_mode(mode)).unwrap();
        permit(0o300);
        let begun = Disk.begin_file(&path, &[1], 0).unwrap();
        let finished = Disk.finish_file(&begun, &path);
        permit(0o700);
        finished.unwrap();
        assert_eq!(names(folder.path()), ["x.npy"]);
    }

    #[test]
    fn what_a_dead_writer_left_of_a_chunk_is_not_published() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.zarr");
        let begun = Disk.begin_folder(&path).unwrap();
        Disk.write(&begun.folder.join("c/0"), vec![1]).unwrap();
        std::fs::write(partial_path(&begun.folder.join("c/1")).unwrap(), [7]).unwrap();
        Disk.finish_folder(&begun, &path, "zarr.json", Vec::new()).unwrap();
        assert_eq!(names(&path.join("c")), ["0"]);
    }
}
