//! The folder of one process inside a spill directory, and the removal of folders of dead processes.
//!
//! Every process makes a folder `tharsis-spill-PID-RANDOM` with mode 0700, so that several nodes can share a
//! directory and no file of an earlier process is ever opened. The folder is locked as long as its process
//! lives. The kernel releases the lock when the process ends in any way, even if it is still a zombie. A
//! reused process id, or one of another container, does not matter. On a file system without locks, the
//! process id in the name decides.

use super::error::SpillError;
use crate::segment::process_is_alive;
use rustix::fs::{AtFlags, Dir, FlockOperation, Mode, OFlags};
use rustix::io::Errno;
use std::fs;
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

const NAME_HEAD: &str = "tharsis-spill-";
/// Tries to make a folder: another process may remove it before it is locked. More than one loss in a row is
/// no accident.
const CREATE_TRIES: u32 = 5;

/// A locked folder of this process.
pub(crate) struct Session {
    parent: OwnedFd,
    dir: OwnedFd,
    name: String,
    path: PathBuf,
    number: u64,
}

impl Session {
    /// Opens `path`, makes it if it is missing, removes folders of dead processes and makes a folder in it.
    pub(crate) fn open(path: &Path) -> Result<Session, SpillError> {
        let failed = |action| move |cause| io_error(action, path, cause);
        let mut builder = fs::DirBuilder::new();
        builder.recursive(true).mode(0o700).create(path).map_err(failed("make spill directory"))?;
        let parent = rustix::fs::open(path, DIRECTORY, Mode::empty())
            .map_err(|cause| io_error("open spill directory", path, cause.into()))?;
        check_secure(&parent, path, rustix::process::geteuid().as_raw())?;
        sweep(parent.as_fd()).map_err(failed("sweep spill directory"))?;
        for _ in 0..CREATE_TRIES {
            let number = RandomState::new().hash_one(std::process::id());
            let name = format!("{NAME_HEAD}{}-{number:016x}", std::process::id());
            let path = path.join(&name);
            if let Some(dir) = make_locked(parent.as_fd(), &name)
                .map_err(|cause| io_error("make spill folder", &path, cause.into()))?
            {
                return Ok(Session { parent, dir, name, path, number });
            }
        }
        Err(io_error("keep a folder in spill directory", path, io::ErrorKind::NotFound.into()))
    }

    pub(crate) fn dir(&self) -> BorrowedFd<'_> {
        self.dir.as_fd()
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Random number of this session; it is in the header of every object.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// Bytes that the file system has left for us.
    pub(crate) fn file_system_free_bytes(&self) -> u64 {
        rustix::fs::fstatvfs(&self.dir).map_or(0, |stat| stat.f_bavail.saturating_mul(stat.f_frsize))
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        let _ = remove_folder(self.parent.as_fd(), self.dir.as_fd(), &self.name);
    }
}

const DIRECTORY: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// Removes the folders of this user's dead processes and returns how many it removed.
fn sweep(parent: BorrowedFd<'_>) -> io::Result<usize> {
    let own_uid = rustix::process::geteuid().as_raw();
    let mut removed_count = 0;
    for entry in Dir::read_from(parent)? {
        let entry = entry?;
        let Ok(name) = entry.file_name().to_str() else { continue };
        let Some(process_id) = parse_process(name) else { continue };
        let Ok(dir) = rustix::fs::openat(parent, name, DIRECTORY | OFlags::NOFOLLOW, Mode::empty()) else {
            continue;
        };
        let is_ours = rustix::fs::fstat(&dir).is_ok_and(|stat| stat.st_uid == own_uid);
        if is_ours && is_left_over(&dir, process_id) && remove_folder(parent, dir.as_fd(), name).is_ok() {
            removed_count += 1;
        }
    }
    Ok(removed_count)
}

/// Whether no process has locked the folder; if so, this descriptor locks it.
fn is_left_over(dir: &OwnedFd, process_id: u32) -> bool {
    match rustix::fs::flock(dir, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => true,
        Err(Errno::WOULDBLOCK | Errno::INTR) => false,
        Err(_) => !process_is_alive(process_id),
    }
}

/// Makes a folder and locks it; `None` if another process removed it in between.
fn make_locked(parent: BorrowedFd<'_>, name: &str) -> Result<Option<OwnedFd>, Errno> {
    rustix::fs::mkdirat(parent, name, Mode::RWXU)?;
    let dir = match rustix::fs::openat(parent, name, DIRECTORY | OFlags::NOFOLLOW, Mode::empty()) {
        Err(Errno::NOENT) => return Ok(None),
        dir => dir?,
    };
    // Waits for another process that is checking the folder. A file system without locks refuses; there the
    // process id decides.
    let _ = rustix::io::retry_on_intr(|| rustix::fs::flock(&dir, FlockOperation::LockExclusive));
    Ok(is_linked(parent, &dir, name).then_some(dir))
}

fn is_linked(parent: BorrowedFd<'_>, dir: &OwnedFd, name: &str) -> bool {
    let there = rustix::fs::statat(parent, name, AtFlags::SYMLINK_NOFOLLOW);
    let ours = rustix::fs::fstat(dir);
    matches!((there, ours), (Ok(a), Ok(b)) if (a.st_dev, a.st_ino) == (b.st_dev, b.st_ino))
}

fn remove_folder(parent: BorrowedFd<'_>, dir: BorrowedFd<'_>, name: &str) -> io::Result<()> {
    for entry in Dir::read_from(dir)? {
        let entry = entry?;
        if !matches!(entry.file_name().to_bytes(), b"." | b"..") {
            // If a file cannot be removed, the removal of the folder fails and is reported.
            let _ = rustix::fs::unlinkat(dir, entry.file_name(), AtFlags::empty());
        }
    }
    Ok(rustix::fs::unlinkat(parent, name, AtFlags::REMOVEDIR)?)
}

fn check_secure(dir: &OwnedFd, path: &Path, own_uid: u32) -> Result<(), SpillError> {
    let insecure = |reason| Err(SpillError::InsecureDirectory { path: path.to_owned(), reason });
    let stat =
        rustix::fs::fstat(dir).map_err(|cause| io_error("inspect spill directory", path, cause.into()))?;
    if stat.st_uid != own_uid {
        return insecure("it belongs to another user");
    }
    // With the sticky bit, other users can add files, but cannot replace our folder.
    if stat.st_mode & 0o1002 == 0o0002 {
        return insecure("everybody may write to it and it has no sticky bit");
    }
    Ok(())
}

/// Process id in the name of a folder, if the name is one of ours.
fn parse_process(name: &str) -> Option<u32> {
    let (process_id, number) = name.strip_prefix(NAME_HEAD)?.split_once('-')?;
    let is_number = number.len() == 16 && number.bytes().all(|b| b.is_ascii_hexdigit());
    if !is_number || !process_id.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    process_id.parse().ok()
}

fn io_error(action: &'static str, path: &Path, cause: io::Error) -> SpillError {
    match cause.raw_os_error().map(Errno::from_raw_os_error) {
        Some(Errno::ROFS) => SpillError::ReadOnly { path: path.to_owned(), cause },
        _ => SpillError::Io { action, path: path.to_owned(), cause },
    }
}

#[cfg(not(models))]
#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_session_has_a_folder_of_its_own_and_removes_it() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("new/spill");
        let session = Session::open(&path).unwrap();
        let other = Session::open(&path).unwrap();
        assert_ne!((session.number(), session.path()), (other.number(), other.path()));
        for made in [&path, session.path()] {
            assert_eq!(fs::metadata(made).unwrap().permissions().mode() & 0o777, 0o700);
        }
        fs::write(session.path().join("segment-0"), b"x").unwrap();
        drop((session, other));
        assert_eq!(fs::read_dir(&path).unwrap().count(), 0);
    }

    #[test]
    fn the_sweep_takes_what_the_dead_left_and_nothing_else() {
        let root = tempfile::tempdir().unwrap();
        let living = Session::open(root.path()).unwrap();
        let own_id = std::process::id();
        // A folder without a lock is dead even if its process id lives again.
        for name in [format!("{NAME_HEAD}4000000001-{:016x}", 1), format!("{NAME_HEAD}{own_id}-{:016x}", 2)] {
            fs::create_dir(root.path().join(&name)).unwrap();
            fs::write(root.path().join(&name).join("segment-7"), b"left").unwrap();
        }
        let strangers = ["tharsis-spill-1-xyz", "tharsis-spill--0000000000000000", "other"];
        for name in strangers {
            fs::create_dir(root.path().join(name)).unwrap();
        }
        std::os::unix::fs::symlink("other", root.path().join(format!("{NAME_HEAD}1-{:016x}", 3))).unwrap();
        fs::write(root.path().join(format!("{NAME_HEAD}1-{:016x}", 4)), b"a file").unwrap();
        let next = Session::open(root.path()).unwrap();
        assert!(living.path().exists() && next.path().exists());
        assert_eq!(fs::read_dir(root.path()).unwrap().count(), 2 + strangers.len() + 2);
    }

    #[test]
    fn directories_that_others_can_change_are_refused() {
        let root = tempfile::tempdir().unwrap();
        let set = |mode| fs::set_permissions(root.path(), fs::Permissions::from_mode(mode)).unwrap();
        set(0o777);
        assert!(matches!(Session::open(root.path()), Err(SpillError::InsecureDirectory { .. })));
        set(0o1777);
        Session::open(root.path()).unwrap();
        let dir = rustix::fs::open(root.path(), DIRECTORY, Mode::empty()).unwrap();
        let other_uid = rustix::process::geteuid().as_raw() + 1;
        let refused = check_secure(&dir, root.path(), other_uid);
        assert!(matches!(refused, Err(SpillError::InsecureDirectory { .. })));
        let file = root.path().join("file");
        fs::write(&file, b"").unwrap();
        assert!(matches!(Session::open(&file), Err(SpillError::Io { .. })));
    }
}
