//! Spill directories: the default one, and checks of directories that the user names.

use crate::folders;
use rustix::fs::{FsWord, Stat, StatVfs, stat, statfs, statvfs};
use std::path::{Path, PathBuf};
use tharsis_raylet::{SpillChoice, SpillFolder};
use tharsis_remote::{Error, FailureKind, Result};

/// Smallest quota: a segment file.
pub const QUOTA_BYTES_MIN: u64 = 64 << 20;
/// Default share of the free space that a directory may use.
const FREE_SPACE_PERCENT: u64 = 80;
/// Folder for large and long-lived temporary files, on a disk by convention.
const LARGE_TEMPORARY: &str = "/var/tmp";
/// File systems in memory: spilling there would free no memory.
const MEMORY_FILE_SYSTEMS: [FsWord; 2] = [0x0102_1994, 0x8584_58f6];

/// The default directory: a folder of the user on a disk; `None` if there is no disk.
#[must_use]
pub fn default_dir() -> Option<PathBuf> {
    let own = folders::temporary();
    let large = own.file_name().map(|name| Path::new(LARGE_TEMPORARY).join(name));
    let on_disk = |folder: &PathBuf| existing(folder).is_some_and(|there| !is_memory(there));
    [Some(own), large].into_iter().flatten().map(|folder| folder.join("spill")).find(on_disk)
}

/// The default spill directories of a node: none if there is no disk.
#[must_use]
pub fn default_choice() -> SpillChoice {
    let folder = default_dir().and_then(|path| {
        let quota_bytes = quota_bytes(&path, None).ok()?;
        Some(SpillFolder { path, quota_bytes })
    });
    SpillChoice { folders: folder.into_iter().collect(), ..SpillChoice::default() }
}

/// A directory that the user named, with its quota, after checks of both. It must exist: otherwise the mount
/// point of a disk that is not mounted would be used on another disk.
///
/// # Errors
/// `InvalidArgument` if it does not exist, and as [`quota_bytes`].
pub fn folder(path: &Path, quota: Option<u64>) -> Result<SpillFolder> {
    if !path.exists() {
        let text = format!("NotFound, {} is not there; make the directory first", path.display());
        return Err(Error::new(FailureKind::InvalidArgument, text));
    }
    let quota_bytes = quota_bytes(path, quota)?;
    // A node has another working directory than the command.
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    Ok(SpillFolder { path, quota_bytes })
}

/// Refuses water marks in the wrong order.
///
/// # Errors
/// `InvalidArgument` with both numbers.
pub fn check_water(choice: &SpillChoice) -> Result<()> {
    let (low, high) = (choice.low_water_percent, choice.high_water_percent);
    if low < high && high <= 100 {
        return Ok(());
    }
    let text = format!(
        "the low water mark of {low} % must be less than the high one of {high} %, and that at most 100 %"
    );
    Err(Error::new(FailureKind::InvalidArgument, text))
}

/// Quota of a directory: the one that was set, or a share of the free space.
///
/// # Errors
/// `InvalidArgument` if other users could put files there, if it is no directory, or with both numbers if the
/// quota is too small or larger than the file system.
pub fn quota_bytes(directory: &Path, said: Option<u64>) -> Result<u64> {
    let wrong = |text: String| Error::new(FailureKind::InvalidArgument, text);
    let shown = directory.display();
    let there = existing(directory).ok_or_else(|| wrong(format!("{shown}: there is no such place")))?;
    let failed = |cause: rustix::io::Errno| wrong(format!("{}: {cause}", there.display()));
    if let Some(problem) = problem(&stat(there).map_err(failed)?, there == directory) {
        return Err(wrong(format!("{problem}: {}", there.display())));
    }
    let system = statvfs(there).map_err(failed)?;
    let total_bytes = system.f_blocks.saturating_mul(system.f_frsize);
    let quota = said.unwrap_or_else(|| default_quota(&system));
    if total_bytes < quota {
        return Err(wrong(format!(
            "the quota of {quota} bytes is more than the file system of {shown} has, {total_bytes} bytes"
        )));
    }
    if said.is_some() && quota < QUOTA_BYTES_MIN {
        return Err(wrong(format!(
            "the quota of {quota} bytes is less than the smallest, {QUOTA_BYTES_MIN} bytes"
        )));
    }
    Ok(quota)
}

/// Whether a folder that is there is in memory; false if that cannot be determined.
#[must_use]
pub fn is_memory(there: &Path) -> bool {
    statfs(there).is_ok_and(|system| MEMORY_FILE_SYSTEMS.contains(&system.f_type))
}

/// Cuts quotas so that so many bytes stay free of the file system of `beside`. Directories there for which
/// too little is left are left out.
#[must_use]
pub fn leave_room(folders: Vec<SpillFolder>, beside: &Path, room_bytes: u64) -> Vec<SpillFolder> {
    let device = |path: &Path| existing(path).and_then(|there| stat(there).ok()).map(|found| found.st_dev);
    let beside_device = device(beside);
    let system = existing(beside).and_then(|there| statvfs(there).ok());
    let Some(system) = system else { return folders };
    let mut left_bytes = free_bytes(&system).saturating_sub(room_bytes);
    let cut = |folder: SpillFolder| {
        if device(&folder.path) != beside_device {
            return Some(folder);
        }
        let quota_bytes = folder.quota_bytes.min(left_bytes);
        if quota_bytes < QUOTA_BYTES_MIN.min(folder.quota_bytes) {
            return None;
        }
        left_bytes -= quota_bytes;
        Some(SpillFolder { quota_bytes, ..folder })
    };
    folders.into_iter().filter_map(cut).collect()
}

/// The directory, or its nearest existing parent.
fn existing(directory: &Path) -> Option<&Path> {
    let mut way = directory.ancestors().map(|p| if p.as_os_str().is_empty() { Path::new(".") } else { p });
    way.find(|folder| folder.exists())
}

fn default_quota(system: &StatVfs) -> u64 {
    free_bytes(system) / 100 * FREE_SPACE_PERCENT
}

fn free_bytes(system: &StatVfs) -> u64 {
    system.f_bavail.saturating_mul(system.f_frsize)
}

/// Reason why a folder must not be used; `is_it` tells that it is the directory itself, not a parent.
fn problem(folder: &Stat, is_it: bool) -> Option<&'static str> {
    const KIND: u32 = 0o170_000;
    const DIRECTORY: u32 = 0o040_000;
    const STICKY_AND_OPEN: u32 = 0o1002;
    let own = rustix::process::geteuid().as_raw();
    if folder.st_mode & KIND != DIRECTORY {
        return Some("NotADirectory, files are spilled to directories");
    }
    if folder.st_mode & STICKY_AND_OPEN == 0o0002 {
        return Some("InsecureDirectory, everybody may write to it and it has no sticky bit");
    }
    // The system's own folders, such as /tmp, are trusted.
    (is_it && folder.st_uid != own && folder.st_uid != 0)
        .then_some("InsecureDirectory, it belongs to another user")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, chown};

    #[test]
    fn room_is_left_on_the_file_system_of_the_tables_alone() {
        let folder = tempfile::tempdir().unwrap();
        let state = folder.path().join("state");
        let free = free_bytes(&statvfs(folder.path()).unwrap());
        let of = |path: &Path, quota_bytes| SpillFolder { path: path.to_owned(), quota_bytes };
        let elsewhere = of(Path::new("/proc/self"), u64::MAX);
        let both = || vec![of(folder.path(), QUOTA_BYTES_MIN), elsewhere.clone()];
        assert_eq!(leave_room(both(), &state, 0), both());
        // Others write there too meanwhile.
        assert_eq!(leave_room(both(), &state, 2 * free), [elsewhere]);
        let two = vec![of(folder.path(), u64::MAX), of(&folder.path().join("b"), u64::MAX)];
        let left = leave_room(two, &state, free / 2);
        let [first] = &left[..] else { panic!("{left:?}") };
        assert!(first.quota_bytes < free, "{first:?}");
    }

    fn text(directory: &Path, said: Option<u64>) -> String {
        let error = quota_bytes(directory, said).unwrap_err();
        assert_eq!(error.kind(), FailureKind::InvalidArgument);
        error.to_string()
    }

    #[test]
    fn a_folder_that_is_to_be_made_has_the_space_of_where_it_will_be() {
        let folder = tempfile::tempdir().unwrap();
        let below = folder.path().join("a/b");
        assert_eq!(quota_bytes(&below, Some(QUOTA_BYTES_MIN)).unwrap(), QUOTA_BYTES_MIN);
        let free = statvfs(folder.path()).unwrap();
        let quota = quota_bytes(&below, None).unwrap();
        assert!(0 < quota && quota <= free.f_blocks * free.f_frsize / 10 * 8);
        assert!(!below.exists(), "nothing is made before a node starts");
    }

    #[test]
    fn quotas_that_cannot_be_are_refused_with_both_numbers() {
        let folder = tempfile::tempdir().unwrap();
        let system = statvfs(folder.path()).unwrap();
        let total = (system.f_blocks * system.f_frsize).to_string();
        let said = text(folder.path(), Some(1 << 60));
        assert!(said.contains(&(1_u64 << 60).to_string()) && said.contains(&total), "{said}");
        let said = text(folder.path(), Some(5));
        assert!(said.contains('5') && said.contains(&QUOTA_BYTES_MIN.to_string()), "{said}");
    }

    #[test]
    fn a_directory_that_was_named_must_be_there() {
        let place = tempfile::tempdir().unwrap();
        let below = place.path().join("a");
        let text = folder(&below, None).unwrap_err().to_string();
        assert!(text.contains("NotFound") && text.contains("/a is not there"), "{text}");
        assert!(!below.exists());
        assert_eq!(folder(place.path(), Some(QUOTA_BYTES_MIN)).unwrap().quota_bytes, QUOTA_BYTES_MIN);
    }

    #[test]
    fn insecure_folders_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let set = |mode| fs::set_permissions(folder.path(), fs::Permissions::from_mode(mode)).unwrap();
        set(0o777);
        for path in [folder.path().to_owned(), folder.path().join("below")] {
            assert!(text(&path, None).contains("InsecureDirectory"), "{}", path.display());
        }
        set(0o1777);
        assert!(quota_bytes(folder.path(), None).is_ok());
        set(0o700);
        // Only root can change the owner of a folder, so the check is skipped for other users.
        if chown(folder.path(), Some(12_345), None).is_ok() {
            assert!(text(folder.path(), None).contains("another user"));
        }
        let file = tempfile::NamedTempFile::new().unwrap();
        assert!(text(file.path(), None).contains("NotADirectory"));
    }

    #[test]
    fn what_is_in_memory_is_no_place_to_spill_to() {
        assert!(default_dir().is_none_or(|folder| !is_memory(existing(&folder).unwrap())));
        assert!(!is_memory(Path::new("/proc")));
    }
}
