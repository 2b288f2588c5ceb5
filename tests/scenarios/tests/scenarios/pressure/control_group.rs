//! A control group with a memory limit, where this process may make one.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A group of its own, inside that of this process; removed when it is dropped.
pub struct ControlGroup {
    folder: PathBuf,
    is_v1: bool,
}

impl ControlGroup {
    /// Makes one. The older kind needs the rights of the root user, the newer one a group that was delegated.
    pub fn create(limit_bytes: u64) -> io::Result<Self> {
        let own = fs::read_to_string("/proc/self/cgroup")?;
        let of = |controller: &str| {
            let line = own.lines().find(|line| line.split(':').nth(1) == Some(controller))?;
            line.split(':').nth(2).map(|path| path.trim_start_matches('/').to_owned())
        };
        let name = format!("tharsis-test-{}", std::process::id());
        let (folder, is_v1) = match (of("memory"), of("")) {
            (Some(path), _) => (Path::new("/sys/fs/cgroup/memory").join(path).join(name), true),
            (None, Some(path)) => (Path::new("/sys/fs/cgroup").join(path).join(name), false),
            (None, None) => return Err(io::Error::other("this process is in none")),
        };
        fs::create_dir(&folder)?;
        let group = Self { folder, is_v1 };
        let limit = if is_v1 { "memory.limit_in_bytes" } else { "memory.max" };
        fs::write(group.folder.join(limit), limit_bytes.to_string())?;
        Ok(group)
    }

    /// Moves a process into it.
    pub fn add(&self, pid: u32) -> io::Result<()> {
        fs::write(self.folder.join("cgroup.procs"), pid.to_string())
    }

    /// The most it has used, page cache included.
    pub fn peak_bytes(&self) -> io::Result<u64> {
        let name = if self.is_v1 { "memory.max_usage_in_bytes" } else { "memory.peak" };
        fs::read_to_string(self.folder.join(name))?.trim().parse().map_err(io::Error::other)
    }
}

impl Drop for ControlGroup {
    fn drop(&mut self) {
        // Those that just ended may still be in it.
        for _ in 0..100 {
            if fs::remove_dir(&self.folder).is_ok() {
                return;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}
