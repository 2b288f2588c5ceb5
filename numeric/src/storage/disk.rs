//! Files on disks. What is not complete has another name, beside its place.

use super::{Border, Parts, Storage, Stored, Stretch, Unfinished, file_error, shortened, too_long};
use std::fs::{File, OpenOptions};
use std::io::{Error as IoError, ErrorKind, Read, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use tharsis_graph::Error as GraphError;

/// The disks of the machine on which a task runs.
pub(super) struct Disk;

impl Storage for Disk {
    fn read(&self, path: &Path, bytes_max: u64) -> Stored<Option<Vec<u8>>> {
        let Some(file) = open(path)? else { return Ok(None) };
        let mut bytes = Vec::new();
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
        let written = std::fs::write(&partial, bytes).and_then(|()| std::fs::rename(&partial, path));
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
            let mut file = File::create(&partial)?;
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
        std::fs::rename(&begun.path, path).map_err(|error| file_error(path, &error))
    }

    fn abandon_file(&self, begun: &Unfinished) {
        let _gone = std::fs::remove_file(&begun.path);
    }

    fn begin_folder(&self, path: &Path) -> Stored<PathBuf> {
        let failed = |error: IoError| file_error(path, &error);
        if path.symlink_metadata().is_ok() {
            return Err(failed(ErrorKind::AlreadyExists.into()));
        }
        let partial = partial_path(path).map_err(failed)?;
        std::fs::create_dir_all(&partial).map_err(failed)?;
        Ok(partial)
    }

    fn finish_folder(&self, begun: &Path, path: &Path) -> Stored<()> {
        std::fs::rename(begun, path).map_err(|error| file_error(path, &error))
    }

    fn abandon_folder(&self, begun: &Path) {
        let _gone = std::fs::remove_dir_all(begun);
    }
}

/// A path beside another one that no other writer has: absolute, since tasks may run in other folders.
fn partial_path(path: &Path) -> std::io::Result<PathBuf> {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let (process, count) = (std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{process}-{count}.part"));
    std::path::absolute(path.with_file_name(name))
}

fn open(path: &Path) -> Stored<Option<File>> {
    match File::open(path) {
        Ok(file) => Ok(Some(file)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(file_error(path, &error)),
    }
}
