//! Measures the folders for spilled objects: the room in them, and how fast a disk takes bytes.

use super::facts::{Spill, SpillFacts};
use crate::commands::node;
use crate::settings::{Key, Settings, spill::dirs};
use rustix::fs::statvfs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tharsis::{SpillFolder, spill_dirs};

/// Bytes that are written at most, and the longest time for it before the disk is waited for.
const WRITTEN_BYTES_MAX: u64 = 32 << 20;
const WRITE_TIME_MAX: Duration = Duration::from_secs(2);
/// Bytes of one write.
const BLOCK_BYTES: u32 = 1 << 20;

/// The folders that a node of these settings would spill to.
pub fn spill(settings: &Settings) -> Spill {
    match node::spill_choice(settings) {
        Err(problem) => Spill::Refused(problem.to_string()),
        Ok(choice) if choice.folders.is_empty() => {
            let is_none =
                settings.get(Key::SpillDirs, dirs).is_ok_and(|dirs| dirs.unwrap_or_default().is_empty());
            Spill::Nowhere { is_told: is_none && !settings.is_default(Key::SpillDirs) }
        }
        Ok(choice) => Spill::Folders(choice.folders.iter().map(measure).collect()),
    }
}

fn measure(folder: &SpillFolder) -> SpillFacts {
    let there = nearest(&folder.path);
    let space = statvfs(&there).map(|system| system.f_bavail.saturating_mul(system.f_frsize));
    let free_bytes = space.unwrap_or(0);
    SpillFacts {
        path: folder.path.clone(),
        quota_bytes: folder.quota_bytes,
        free_bytes,
        is_memory: spill_dirs::is_memory(&there),
        written: write(&there, WRITTEN_BYTES_MAX.min(free_bytes / 2)).map_err(|cause| cause.to_string()),
    }
}

/// The folder, or the one in which it will be made.
fn nearest(folder: &Path) -> PathBuf {
    let path = std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned());
    path.ancestors().find(|above| above.is_dir()).unwrap_or(Path::new("/")).to_owned()
}

/// Writes at most so many bytes to a file without a name, which goes when it is closed. Answers how many they
/// were, and the seconds until the disk had them.
fn write(folder: &Path, bytes_max: u64) -> io::Result<(u64, f64)> {
    let mut file = tempfile::tempfile_in(folder)?;
    // Bytes of no pattern: file systems compress, and leave out zeros.
    let block: Vec<u8> = (0..BLOCK_BYTES).map(|at| (at.wrapping_mul(0x9e37_79b1) >> 24) as u8).collect();
    let (begun, mut bytes) = (Instant::now(), 0);
    while bytes + u64::from(BLOCK_BYTES) <= bytes_max && begun.elapsed() < WRITE_TIME_MAX {
        file.write_all(&block)?;
        bytes += u64::from(BLOCK_BYTES);
    }
    file.sync_all()?;
    Ok((bytes, begun.elapsed().as_secs_f64()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn so_many_bytes_are_written_and_nothing_is_left() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(write(folder.path(), 0).unwrap().0, 0);
        assert_eq!(write(folder.path(), u64::from(BLOCK_BYTES)).unwrap().0, u64::from(BLOCK_BYTES));
        assert_eq!(write(folder.path(), u64::from(BLOCK_BYTES) + 1).unwrap().0, u64::from(BLOCK_BYTES));
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
        assert!(write(&folder.path().join("none"), 0).is_err());
    }

    #[test]
    fn a_folder_that_is_not_there_is_measured_where_it_will_be_made() {
        let place = tempfile::tempdir().unwrap();
        let folder = SpillFolder { path: place.path().join("a/b"), quota_bytes: 7 };
        let found = measure(&folder);
        assert_eq!((nearest(&folder.path), found.path), (place.path().to_owned(), folder.path));
        assert!(found.quota_bytes == 7 && found.written.is_ok());
        assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 0);
    }
}
