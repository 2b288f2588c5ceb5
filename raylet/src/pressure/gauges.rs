//! Memory of the machine, or of the container: the closest limit counts.
//!
//! A process is in a control group, which may be inside another one, and each may have a limit; in a
//! container, the outer groups cannot be seen. The use of a group counts without its cached files: the kernel
//! drops these before it kills a process. Shared memory does not count as a file here, because it has no
//! other place.

use std::fs;
use std::path::{Path, PathBuf};
use tharsis_core::memory::MemoryGauge;

/// The control groups whose limits apply.
#[derive(Debug)]
pub(super) struct Machine {
    groups: Vec<Group>,
}

/// A control group with memory of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Group {
    folder: PathBuf,
    /// Whether it is of version 1, which has other file names.
    is_v1: bool,
}

impl Machine {
    /// Finds the control groups of this process.
    pub(super) fn find() -> Self {
        let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
        let groups = groups(&read("/proc/self/mountinfo"), &read("/proc/self/cgroup"));
        Self { groups }
    }

    /// The limit with the least headroom.
    pub(super) fn gauge(&self) -> MemoryGauge {
        self.all().min_by_key(|gauge| gauge.headroom_bytes()).unwrap_or_default()
    }

    /// The smallest limit, in bytes.
    pub(super) fn bytes(&self) -> Option<u64> {
        self.all().map(|gauge| gauge.limit_bytes).min()
    }

    fn all(&self) -> impl Iterator<Item = MemoryGauge> {
        self.groups.iter().filter_map(Group::gauge).chain(whole_machine())
    }
}

impl Group {
    /// Use and limit in bytes; none without a limit.
    fn gauge(&self) -> Option<MemoryGauge> {
        let (used, limit) = if self.is_v1 {
            ("memory.usage_in_bytes", "memory.limit_in_bytes")
        } else {
            ("memory.current", "memory.max")
        };
        let number = |name| fs::read_to_string(self.folder.join(name)).ok()?.trim().parse::<u64>().ok();
        // Without a limit, the file says `max`, or a number near 2^63.
        let limit_bytes = number(limit).filter(|bytes| *bytes < 1 << 62)?;
        let files = files_bytes(&fs::read_to_string(self.folder.join("memory.stat")).ok()?, self.is_v1);
        Some(MemoryGauge { used_bytes: number(used)?.saturating_sub(files), limit_bytes })
    }
}

/// Memory that caches files, of a group and the groups inside it.
fn files_bytes(stat: &str, is_v1: bool) -> u64 {
    let names =
        if is_v1 { ["total_inactive_file", "total_active_file"] } else { ["inactive_file", "active_file"] };
    let lines = stat.lines().filter_map(|line| line.split_once(' '));
    let files = lines.filter(|(name, _)| names.contains(name));
    files.filter_map(|(_, bytes)| bytes.trim().parse::<u64>().ok()).sum()
}

/// The machine itself.
fn whole_machine() -> Option<MemoryGauge> {
    meminfo_gauge(&fs::read_to_string("/proc/meminfo").ok()?)
}

fn meminfo_gauge(meminfo: &str) -> Option<MemoryGauge> {
    let bytes = |key: &str| {
        let line = meminfo.lines().find_map(|line| line.strip_prefix(key))?;
        let kib: u64 = line.split_whitespace().next()?.parse().ok()?;
        Some(kib << 10)
    };
    let limit_bytes = bytes("MemTotal:")?;
    Some(MemoryGauge { used_bytes: limit_bytes.saturating_sub(bytes("MemAvailable:")?), limit_bytes })
}

/// The groups a process is in, innermost first.
fn groups(mountinfo: &str, cgroup: &str) -> Vec<Group> {
    let paths = cgroup.lines().filter_map(|line| {
        let mut fields = line.splitn(3, ':').skip(1);
        let (controllers, path) = (fields.next()?, fields.next()?);
        match controllers {
            "" => Some((false, path)),
            list if list.split(',').any(|name| name == "memory") => Some((true, path)),
            _ => None,
        }
    });
    paths.flat_map(|(is_v1, path)| groups_of(mountinfo, is_v1, path)).collect()
}

fn groups_of(mountinfo: &str, is_v1: bool, path: &str) -> Vec<Group> {
    let Some((root, mount)) = mountinfo.lines().find_map(|line| cgroup_mount(line, is_v1)) else {
        return Vec::new();
    };
    // In a container, the mount may begin inside the tree, while the path is the one seen from outside.
    let inside = path.strip_prefix(root).or_else(|| path.strip_prefix('/')).unwrap_or(path);
    let innermost = Path::new(mount).join(inside.trim_start_matches('/'));
    let within = innermost.ancestors().take_while(|folder| folder.starts_with(mount));
    within.map(|folder| Group { folder: folder.to_owned(), is_v1 }).collect()
}

/// Root and place of a mount of control groups with memory.
fn cgroup_mount(line: &str, is_v1: bool) -> Option<(&str, &str)> {
    let (place, kind) = line.split_once(" - ")?;
    let mut fields = place.split_whitespace().skip(3);
    let (root, mount) = (fields.next()?, fields.next()?);
    let mut kind = kind.split_whitespace();
    let name = kind.next()?;
    let is_it = if is_v1 {
        name == "cgroup" && kind.nth(1)?.split(',').any(|option| option == "memory")
    } else {
        name == "cgroup2"
    };
    is_it.then_some((root.trim_end_matches('/'), mount))
}

#[cfg(test)]
mod tests {
    use super::*;

    const V1: &str = "\
31 28 0:28 / /sys/fs/cgroup ro,nosuid - tmpfs tmpfs ro,mode=755
35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory
36 31 0:33 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu
";
    const V2: &str = "31 28 0:28 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw\n";

    fn folders(mountinfo: &str, cgroup: &str) -> Vec<String> {
        groups(mountinfo, cgroup).iter().map(|group| group.folder.display().to_string()).collect()
    }

    #[test]
    fn groups_are_found_up_to_the_mount() {
        let wanted = ["/sys/fs/cgroup/memory/a/b", "/sys/fs/cgroup/memory/a", "/sys/fs/cgroup/memory"];
        assert_eq!(folders(V1, "9:cpu:/c\n4:memory:/a/b\n0::/\n"), wanted);
        assert_eq!(folders(V2, "0::/a\n"), ["/sys/fs/cgroup/a", "/sys/fs/cgroup"]);
        assert_eq!(folders(V2, "0::/\n"), ["/sys/fs/cgroup/", "/sys/fs/cgroup"][..1]);
        assert_eq!(folders("", "0::/a\n"), [""; 0]);
        assert_eq!(folders("nonsense", "nonsense"), [""; 0]);
    }

    #[test]
    fn a_mount_that_begins_inside_the_tree_is_the_containers_own() {
        let inside = V1.replace("/ /sys/fs/cgroup/memory", "/docker/x /sys/fs/cgroup/memory");
        let wanted = ["/sys/fs/cgroup/memory/job", "/sys/fs/cgroup/memory"];
        assert_eq!(folders(&inside, "4:memory:/docker/x/job\n"), wanted);
    }

    #[test]
    fn files_do_not_count_in_either_kind() {
        let stat = "anon 1\ninactive_file 10\nactive_file 20\nshmem 5\ntotal_inactive_file 100\ntotal_active_file 200\n";
        assert_eq!(files_bytes(stat, false), 30);
        assert_eq!(files_bytes(stat, true), 300);
        assert_eq!(files_bytes("inactive_file x\n", false), 0);
    }

    #[test]
    fn what_is_available_is_not_used() {
        let text = "MemTotal:       1000 kB\nMemFree: 1 kB\nMemAvailable:    400 kB\n";
        let gauge = meminfo_gauge(text).unwrap();
        assert_eq!((gauge.used_bytes, gauge.limit_bytes), (600 << 10, 1000 << 10));
        assert_eq!(meminfo_gauge("MemTotal: 5 kB\n"), None);
    }

    #[test]
    fn this_machine_has_memory() {
        let gauge = Machine::find().gauge();
        assert!(0 < gauge.used_bytes && gauge.used_bytes < gauge.limit_bytes, "{gauge:?}");
    }

    #[test]
    fn a_group_without_a_limit_is_none() {
        let folder = tempfile::tempdir().unwrap();
        let group = Group { folder: folder.path().to_owned(), is_v1: false };
        let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
        assert_eq!(group.gauge(), None);
        write("memory.current", "100\n");
        write("memory.stat", "inactive_file 30\nactive_file 10\n");
        write("memory.max", "max\n");
        assert_eq!(group.gauge(), None);
        write("memory.max", "200\n");
        assert_eq!(group.gauge(), Some(MemoryGauge { used_bytes: 60, limit_bytes: 200 }));
    }
}
