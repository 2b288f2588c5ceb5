//! Shared-memory segments, which contain rings and bells.
//!
//! A named segment is a file in `/dev/shm`, made through the `shared_memory` crate with mode 0600, called
//! `tharsis-PID-PREFIX-RANDOM`. Four hazards shape this module:
//!
//! * **A full `/dev/shm` kills by SIGBUS** at the first touch of a page. So every page is allocated before
//!   the segment is handed out, and exhaustion is a [`NoSpace`] at creation.
//! * **A SIGKILL leaks the name.** So the creator calls [`Segment::unlink`] as soon as the peer has mapped
//!   it: from then on the kernel frees the memory with the last process. Until then the creator holds a lock
//!   on the file, which the kernel releases when the creator ends in any way. [`sweep`] at the next start of
//!   a node removes the segments of our uid that nobody has locked. The process id in the name is for people
//!   alone: processes of other containers see the same `/dev/shm` under other ids, and a container's first
//!   process has the same id at every start.
//! * **A mapping outlives its name.** Everything placed in a segment holds an `Arc<Segment>`, so the mapping
//!   stays for as long as anything points into it.
//! * **A fork would write records in the name of its parent**: what it drops tells the node so, at positions
//!   that it has copied. So mappings do not pass to forks, which end if they touch them (`forks.rs`).
//!
//! A peer of the same user could shrink a named segment behind our back; only a sealed memfd prevents that.
//! So object bytes are in an [arena](crate::arena), and only rings and bells are here.
//!
//! [`Segment::anonymous`] has no name and no peer process: it serves a node inside the program's own process.

#![allow(unsafe_code)]

use crate::error::{NoSpace, StoreError, check_range};
use crate::forks::Withheld;
use rustix::fs::{FallocateFlags, fallocate, fstatvfs};
use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};
use shared_memory::{Shmem, ShmemConf, ShmemError};
use std::fs::{self, File, OpenOptions};
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::ptr::{self, NonNull};
use std::sync::{Mutex, PoisonError};

/// Largest segment; rings of one client are a few mebibytes, so anything near this is a mistake.
pub const SEGMENT_BYTES_MAX: u64 = 1 << 32;
/// Longest prefix of a segment name.
pub const PREFIX_BYTES_MAX: usize = 64;

const SHM_DIR: &str = "/dev/shm";
const NAME_HEAD: &str = "tharsis-";
/// Tries to make a segment: a sweep may take it before it is locked. More than one loss in a row is no
/// accident.
const CREATE_TRIES: u32 = 5;

/// One mapping of shared memory.
pub struct Segment {
    memory: Memory,
    base: NonNull<u8>,
    len: usize,
    name: String,
    /// Given up before the mapping.
    withheld: Option<Withheld>,
}

enum Memory {
    Anonymous,
    Named {
        /// Held for its destructor, which unmaps.
        _shmem: Shmem,
        /// The creator's lock on the file, until its name is removed. A peer has none.
        lock: Mutex<Option<File>>,
    },
}

// SAFETY: the mapping is plain memory, valid from any thread for as long as the value lives; all access to
// its contents goes through atomics or through the single-owner protocols of `ring` and `bell`.
unsafe impl Send for Segment {}
// SAFETY: as above; `&Segment` only hands out addresses.
unsafe impl Sync for Segment {}

impl Segment {
    /// Makes a named segment of at least `bytes` zero bytes, all of them backed by memory.
    ///
    /// # Errors
    /// [`NoSpace`] if `/dev/shm` cannot hold it, `BadName` if the prefix has other characters than letters,
    /// digits, `_` and `-`, `BadSize` if it is empty or too large.
    pub fn create(prefix: &str, bytes: usize) -> Result<Segment, StoreError> {
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        if prefix.is_empty() || PREFIX_BYTES_MAX < prefix.len() || !prefix.chars().all(plain) {
            return Err(StoreError::BadName { name: prefix.to_owned() });
        }
        check_size(bytes)?;
        for _ in 0..CREATE_TRIES {
            if let Some(segment) = Segment::create_locked(prefix, bytes)? {
                return Ok(segment);
            }
        }
        Err(StoreError::system("keep the name of a segment", io::ErrorKind::NotFound))
    }

    /// As [`Segment::create`]; `None` if another process removed the name before it was locked.
    fn create_locked(prefix: &str, bytes: usize) -> Result<Option<Segment>, StoreError> {
        let process_id = std::process::id();
        let name =
            format!("{NAME_HEAD}{process_id}-{prefix}-{:016x}", RandomState::new().hash_one(process_id));
        let shmem = ShmemConf::new().os_id(&name).size(bytes).create().map_err(map_shmem_error)?;
        // From now on dropping `shmem` removes the name, so an early return leaks nothing.
        let path = shm_path(&name);
        let file = match open_shm(&path) {
            Err(cause) if cause.kind() == io::ErrorKind::NotFound => return Ok(None),
            file => file.map_err(|cause| StoreError::system("open a segment", cause))?,
        };
        // Waits for a sweep that is checking the file. Where a system refuses locks, sweeps remove nothing.
        let _ = lock(&file);
        if !is_linked(&file) {
            return Ok(None);
        }
        allocate_pages(&file, bytes as u64)?;
        Segment::from_shmem(shmem, name, Some(file)).map(Some)
    }

    /// Maps the segment that a peer made.
    ///
    /// # Errors
    /// `BadName` for a name of another form, `System` if there is no such segment, `BadSize` if it is empty.
    pub fn open(name: &str) -> Result<Segment, StoreError> {
        if !is_segment_name(name) || name.contains('/') {
            return Err(StoreError::BadName { name: name.to_owned() });
        }
        let shmem = ShmemConf::new().os_id(name).open().map_err(map_shmem_error)?;
        check_size(shmem.len())?;
        Segment::from_shmem(shmem, name.to_owned(), None)
    }

    /// Makes a nameless segment for use inside this process.
    ///
    /// # Errors
    /// `BadSize` if it is empty or too large, `System` if the system has no memory to map.
    pub fn anonymous(bytes: usize) -> Result<Segment, StoreError> {
        check_size(bytes)?;
        // SAFETY: a fresh anonymous mapping at an address of the kernel's choice aliases nothing.
        let base = unsafe {
            mmap_anonymous(ptr::null_mut(), bytes, ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED)
        }
        .map_err(|cause| StoreError::system("map anonymous memory", cause))?;
        let base = non_null(base.cast())?;
        let (memory, name) = (Memory::Anonymous, String::new());
        let mut segment = Segment { memory, base, len: bytes, name, withheld: None };
        segment.withheld = Some(Withheld::new(base, bytes)?);
        Ok(segment)
    }

    /// A mapped segment; `lock` is the creator's.
    fn from_shmem(mut shmem: Shmem, name: String, lock: Option<File>) -> Result<Segment, StoreError> {
        let base = non_null(shmem.as_ptr())?;
        let len = shmem.len();
        // Names are removed by this module alone: the crate's own removal would also fire after `unlink`.
        shmem.set_owner(false);
        let memory = Memory::Named { _shmem: shmem, lock: Mutex::new(lock) };
        let mut segment = Segment { memory, base, len, name, withheld: None };
        segment.withheld = Some(Withheld::new(base, len)?);
        Ok(segment)
    }

    /// Removes the name that this side made; mappings stay. Call it once the peer has mapped the segment.
    ///
    /// # Errors
    /// `System` if the name exists and cannot be removed; a name that is gone already is no error.
    pub fn unlink(&self) -> Result<(), StoreError> {
        let Memory::Named { lock, .. } = &self.memory else { return Ok(()) };
        // The lock ends after the removal: no sweep ever finds the name without it.
        let Some(_lock) = lock.lock().unwrap_or_else(PoisonError::into_inner).take() else {
            return Ok(());
        };
        match fs::remove_file(shm_path(&self.name)) {
            Err(cause) if cause.kind() != io::ErrorKind::NotFound => {
                Err(StoreError::system("remove the name of a segment", cause))
            }
            _ => Ok(()),
        }
    }

    /// First byte of the mapping.
    pub fn as_ptr(&self) -> *mut u8 {
        self.base.as_ptr()
    }

    /// Bytes of the mapping.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Never true: an empty segment cannot be made.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Name under which a peer opens it; empty for an anonymous segment.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Address of `len` bytes at `offset`, checked for bounds and for alignment.
    pub(crate) fn place(&self, offset: usize, len: usize, align: usize) -> Result<NonNull<u8>, StoreError> {
        check_range("a segment", self.len as u64, offset as u64, len as u64)?;
        if !offset.is_multiple_of(align) {
            return Err(StoreError::Misaligned {
                offset: offset as u64,
                len: len as u64,
                align: align as u64,
            });
        }
        // SAFETY: `offset` was checked to lie within the mapping that starts at `base`.
        Ok(unsafe { self.base.add(offset) })
    }
}

impl Drop for Segment {
    fn drop(&mut self) {
        self.withheld = None;
        match self.memory {
            Memory::Anonymous => {
                // SAFETY: this value mapped exactly these bytes and nothing points into them any more:
                // everything placed in a segment holds an `Arc` of it.
                let _ = unsafe { munmap(self.base.as_ptr().cast(), self.len) };
            }
            Memory::Named { .. } => {
                let _ = self.unlink();
            }
        }
    }
}

/// Removes the named segments of this user that no process has locked: those whose creator has ended. Returns
/// how many it removed.
///
/// # Errors
/// `System` if the directory of segments cannot be read. A segment that cannot be removed is passed over.
pub fn sweep() -> Result<usize, StoreError> {
    let failed = |cause| StoreError::system("list the segments", cause);
    let mut removed_count = 0;
    for entry in fs::read_dir(SHM_DIR).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let name = entry.file_name();
        let is_left = |name: &str| is_segment_name(name) && !is_of_living_release_before(name);
        if name.to_str().is_some_and(is_left) && remove_left_over(&entry.path()) {
            removed_count += 1;
        }
    }
    Ok(removed_count)
}

/// Whether the name is one of the release before, which had no random part and held no lock, and its process
/// lives. Programs of both may run on a machine while it is upgraded.
fn is_of_living_release_before(name: &str) -> bool {
    let is_random = |part: &str| part.len() == 16 && part.bytes().all(|byte| byte.is_ascii_hexdigit());
    let mut parts = name.rsplit('-');
    let has_random = parts.next().is_some_and(is_random);
    let process = name.split('-').nth(1).and_then(|part| part.parse().ok());
    !has_random && process.is_some_and(process_is_alive)
}

/// Removes a segment of this user that no process has locked.
fn remove_left_over(path: &Path) -> bool {
    let own_uid = rustix::process::geteuid().as_raw();
    let is_ours = fs::symlink_metadata(path).is_ok_and(|m| m.is_file() && m.uid() == own_uid);
    let Some(file) = is_ours.then(|| open_shm(path).ok()).flatten() else { return false };
    // The lock is held until the name is gone: whoever makes a segment at this moment waits for it.
    file.metadata().is_ok_and(|m| m.uid() == own_uid)
        && matches!(file.try_lock(), Ok(()))
        && fs::remove_file(path).is_ok()
}

/// Locks a file for as long as it is open here.
fn lock(file: &File) -> io::Result<()> {
    loop {
        match file.lock() {
            Err(cause) if cause.kind() == io::ErrorKind::Interrupted => {}
            outcome => return outcome,
        }
    }
}

/// Whether the file still has its name.
fn is_linked(file: &File) -> bool {
    file.metadata().is_ok_and(|m| 0 < m.nlink())
}

/// Whether a process with this id lives; true if it belongs to another user. A zombie counts as dead: in a
/// container it may never be waited for.
pub fn process_is_alive(process_id: u32) -> bool {
    let Some(pid) = i32::try_from(process_id).ok().and_then(rustix::process::Pid::from_raw) else {
        return false;
    };
    if matches!(rustix::process::test_kill_process(pid), Err(rustix::io::Errno::SRCH)) {
        return false;
    }
    let stat = std::fs::read_to_string(format!("/proc/{process_id}/stat")).unwrap_or_default();
    // The name before the state is in parentheses and may contain any characters.
    let state = stat.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next());
    !matches!(state, Some('Z' | 'X'))
}

/// Whether a name is that of a segment.
fn is_segment_name(name: &str) -> bool {
    let parts = name.strip_prefix(NAME_HEAD).and_then(|rest| rest.split_once('-'));
    parts.is_some_and(|(process_id, rest)| {
        !rest.is_empty() && !process_id.is_empty() && process_id.bytes().all(|b| b.is_ascii_digit())
    })
}

fn allocate_pages(file: &File, bytes: u64) -> Result<(), StoreError> {
    let failed = |cause: io::Error| StoreError::system("allocate the pages of a segment", cause);
    loop {
        match fallocate(file, FallocateFlags::empty(), 0, bytes) {
            Ok(()) => return Ok(()),
            Err(rustix::io::Errno::INTR) => {}
            Err(rustix::io::Errno::NOSPC | rustix::io::Errno::NOMEM) => {
                let available_bytes = fstatvfs(file).map_or(0, |s| s.f_bavail.saturating_mul(s.f_frsize));
                return Err(NoSpace { needed_bytes: bytes, available_bytes, place: SHM_DIR }.into());
            }
            Err(cause) => return Err(failed(cause.into())),
        }
    }
}

fn open_shm(path: &Path) -> io::Result<File> {
    let flags = rustix::fs::OFlags::NOFOLLOW.bits() as i32;
    OpenOptions::new().read(true).write(true).custom_flags(flags).open(path)
}

fn shm_path(name: &str) -> PathBuf {
    Path::new(SHM_DIR).join(name)
}

fn check_size(bytes: usize) -> Result<(), StoreError> {
    match bytes as u64 {
        1..=SEGMENT_BYTES_MAX => Ok(()),
        bytes => {
            Err(StoreError::BadSize { what: "a segment", bytes, min_bytes: 1, max_bytes: SEGMENT_BYTES_MAX })
        }
    }
}

fn non_null(pointer: *mut u8) -> Result<NonNull<u8>, StoreError> {
    NonNull::new(pointer)
        .ok_or_else(|| StoreError::system("map memory", io::Error::other("mapped at address 0")))
}

fn map_shmem_error(error: ShmemError) -> StoreError {
    let cause = match error {
        ShmemError::MapCreateFailed(code)
        | ShmemError::MapOpenFailed(code)
        | ShmemError::UnknownOsError(code) => io::Error::from_raw_os_error(code as i32),
        other => io::Error::other(other),
    };
    StoreError::system("map a segment", cause)
}

#[cfg(not(models))]
#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_peer_sees_what_the_creator_wrote_and_the_name_goes_at_unlink() {
        let ours = Segment::create("pair", 8192).unwrap();
        assert_eq!(fs::metadata(shm_path(ours.name())).unwrap().permissions().mode() & 0o777, 0o600);
        let peer = Segment::open(ours.name()).unwrap();
        ours.unlink().unwrap();
        ours.unlink().unwrap();
        assert!(!shm_path(ours.name()).exists());
        // SAFETY: both mappings are at least one byte long and no other thread touches them.
        unsafe {
            ours.as_ptr().write_volatile(7);
            assert_eq!(peer.as_ptr().read_volatile(), 7);
        }
        assert!(Segment::open(ours.name()).is_err());
    }

    #[test]
    fn a_process_that_has_ended_is_dead_before_anybody_waits_for_it() {
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let until = std::time::Instant::now() + std::time::Duration::from_secs(10);
        while process_is_alive(child.id()) && std::time::Instant::now() < until {
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        assert!(!process_is_alive(child.id()));
        child.wait().unwrap();
        assert!(process_is_alive(std::process::id()));
    }

    #[test]
    fn a_fork_has_no_segment_that_it_could_write_to() {
        let ours = Segment::create("fork", 8192).unwrap();
        let peer = Segment::open(ours.name()).unwrap();
        for segment in [ours, peer, Segment::anonymous(8192).unwrap()] {
            assert!(!crate::forks::is_inherited(segment.base, segment.len));
        }
    }

    #[test]
    fn a_dropped_creator_removes_its_name() {
        let segment = Segment::create("drop", 4096).unwrap();
        let path = shm_path(segment.name());
        assert!(path.exists());
        drop(segment);
        assert!(!path.exists());
    }

    #[test]
    fn a_full_device_is_an_error_with_numbers() {
        let segment = Segment::create("full", 4096).unwrap();
        match allocate_pages(&open_shm(&shm_path(segment.name())).unwrap(), 1 << 46) {
            Err(StoreError::NoSpace(no_space)) => assert_eq!(no_space.needed_bytes, 1 << 46),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_sweep_removes_only_what_nobody_has_locked() {
        // The process ids of names say nothing: one is alive here, the other in another container.
        let left = shm_path(&format!("tharsis-{}-sweep-00000000000000ab", std::process::id()));
        let held = shm_path("tharsis-4000000001-sweep-00000000000000ab");
        let foreign = shm_path("tharsisx-4000000001-sweep-00000000000000ab");
        // Names of the release before, whose segments have no lock.
        let old_alive = shm_path(&format!("tharsis-{}-sweep-0", std::process::id()));
        let old_left = shm_path("tharsis-4000000001-sweep-0");
        let all = [&left, &held, &foreign, &old_alive, &old_left];
        for path in all {
            fs::write(path, b"x").unwrap();
        }
        let holder = open_shm(&held).unwrap();
        lock(&holder).unwrap();
        let alive = Segment::create("sweep", 4096).unwrap();
        sweep().unwrap();
        assert_eq!(all.map(|path| path.exists()), [false, true, true, true, false]);
        assert!(shm_path(alive.name()).exists());
        [held, foreign, old_alive].into_iter().for_each(|path| fs::remove_file(path).unwrap());
        assert!(process_is_alive(std::process::id()));
        assert!(!process_is_alive(4_000_000_001));
    }

    #[test]
    fn segments_are_made_beside_sweeps() {
        let is_over = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !is_over.load(std::sync::atomic::Ordering::Relaxed) {
                    sweep().unwrap();
                }
            });
            for _ in 0..500 {
                let made = Segment::create("beside", 4096).unwrap();
                assert!(shm_path(made.name()).exists());
                Segment::open(made.name()).unwrap();
            }
            is_over.store(true, std::sync::atomic::Ordering::Relaxed);
        });
    }

    #[test]
    fn bad_names_and_sizes_are_refused() {
        for prefix in ["", "a/b", "..", &"x".repeat(65)] {
            assert!(matches!(Segment::create(prefix, 64), Err(StoreError::BadName { .. })), "{prefix}");
        }
        for name in ["", "tharsis-", "tharsis-12", "tharsis-x-y", "tharsis-1-a/b", "/tharsis-1-a"] {
            assert!(matches!(Segment::open(name), Err(StoreError::BadName { .. })), "{name}");
        }
        assert!(Segment::create("zero", 0).is_err());
        assert!(Segment::anonymous(0).is_err());
        let segment = Segment::anonymous(4096).unwrap();
        assert!(segment.place(4000, 97, 8).is_err());
        assert!(segment.place(usize::MAX, 2, 1).is_err());
        assert!(segment.place(4, 8, 8).is_err());
    }
}
