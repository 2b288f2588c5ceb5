//! Processes, as `/proc` shows them.
//!
//! A process counts with all its descendants. A process that ends hands its children to another process,
//! mostly to the first one of the system: such a child counts only with the machine.
//!
//! A fork shares the pages of its parent until one of them writes, but both are shown with all of these
//! pages. So for a process that is still a copy of its parent, only the bytes beyond those of the parent
//! count. This is too little rather than too much: a process must not be killed because it is just starting a
//! program.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::path::Path;

/// Maximum number of descendants of a process that are read.
const DESCENDANTS_MAX: usize = 4096;
/// Maximum number of ancestors of a process that are read.
const ANCESTORS_MAX: usize = 256;
/// This file exists if the kernel lists the children of threads.
const CHILDREN_LISTED: &str = "/proc/thread-self/children";

/// Private memory of a process: neither files nor shared pages. None if it is gone.
pub(super) fn own_bytes(process: &str) -> Option<u64> {
    let text = fs::read_to_string(Path::new("/proc").join(process).join("statm")).ok()?;
    own_pages(&text).map(|pages| pages * rustix::param::page_size() as u64)
}

/// Private memory of a process and of its descendants. None if it is gone.
pub(super) fn family_bytes(pid: u32, children: &Children) -> Option<u64> {
    let mut sum = own_bytes(&pid.to_string())?;
    let descendants = children.descendants(pid);
    // Most processes have no descendants, and then this is the sum.
    let mut seen = HashMap::new();
    if !descendants.is_empty() {
        seen.insert(pid, (sum, image(pid)));
    }
    for (child, parent) in descendants {
        let Some(bytes) = own_bytes(&child.to_string()) else { continue };
        let own_image = image(child);
        let shared_bytes = match seen.get(&parent) {
            Some((bytes, image)) if image.is_some() && *image == own_image => *bytes,
            _ => 0,
        };
        sum += bytes.saturating_sub(shared_bytes);
        seen.insert(child, (bytes, own_image));
    }
    Some(sum)
}

/// Sets the score by which the kernel chooses a process to kill for memory, from -1000 to 1000; children
/// inherit it.
pub(super) fn set_oom_score(process: &str, score: i32) -> io::Result<()> {
    fs::write(Path::new("/proc").join(process).join("oom_score_adj"), score.to_string())
}

/// The children of each process.
pub(crate) enum Children {
    /// The kernel lists them for each process.
    Listed,
    /// The kernel does not: all processes, by their parents.
    Found(HashMap<u32, Vec<u32>>),
}

impl Children {
    /// The children as of now, or as of each query if the kernel lists them.
    pub(crate) fn look() -> Children {
        if Path::new(CHILDREN_LISTED).exists() { Children::Listed } else { Children::find() }
    }

    fn find() -> Children {
        let mut by_parent: HashMap<u32, Vec<u32>> = HashMap::new();
        for pid in numbered(Path::new("/proc")) {
            let parent = stat(pid).and_then(|stat| field(&stat, 4));
            by_parent.entry(parent.unwrap_or(0) as u32).or_default().push(pid);
        }
        Children::Found(by_parent)
    }

    /// All descendants of a process, each with its parent, and each behind its parent.
    pub(crate) fn descendants(&self, pid: u32) -> Vec<(u32, u32)> {
        let mut found = Vec::new();
        let (mut parent, mut next) = (pid, 0);
        loop {
            found.extend(self.of(parent).into_iter().map(|child| (child, parent)));
            match found.get(next) {
                Some((child, _)) if found.len() < DESCENDANTS_MAX => parent = *child,
                _ => return found,
            }
            next += 1;
        }
    }

    fn of(&self, pid: u32) -> Vec<u32> {
        let threads = match self {
            Children::Found(by_parent) => return by_parent.get(&pid).cloned().unwrap_or_default(),
            Children::Listed => Path::new("/proc").join(pid.to_string()).join("task"),
        };
        let lists = numbered(&threads)
            .filter_map(|thread| fs::read_to_string(threads.join(thread.to_string()).join("children")).ok());
        lists
            .flat_map(|list| list.split_whitespace().filter_map(|pid| pid.parse().ok()).collect::<Vec<_>>())
            .collect()
    }
}

/// A process, its parent, the parent of that one and so on, and last the leader of its group. A process whose
/// parent has ended is a child of the first process, but stays in its group.
pub(crate) fn ancestry(pid: u32) -> Vec<u32> {
    let number = |pid, at| stat(pid).and_then(|stat| field(&stat, at)).and_then(|n| u32::try_from(n).ok());
    let parents = std::iter::successors(Some(pid), |child| number(*child, 4).filter(|parent| *parent != 0));
    parents.take(ANCESTORS_MAX).chain(number(pid, 5)).collect()
}

/// Entries of a folder that are numbers.
fn numbered(folder: &Path) -> impl Iterator<Item = u32> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// Addresses of the program and the stack of a process, which only its forks share; none if the kernel does
/// not tell.
fn image(pid: u32) -> Option<(u64, u64)> {
    let stat = stat(pid)?;
    let (code, stack) = (field(&stat, 26)?, field(&stat, 28)?);
    (1 < code && 1 < stack).then_some((code, stack))
}

fn stat(pid: u32) -> Option<String> {
    fs::read_to_string(Path::new("/proc").join(pid.to_string()).join("stat")).ok()
}

/// A number of `pid (name) state parent ...`, counted from 1; the name may contain anything.
fn field(stat: &str, number: usize) -> Option<u64> {
    let (_, behind_name) = stat.rsplit_once(')')?;
    behind_name.split_whitespace().nth(number.checked_sub(3)?)?.parse().ok()
}

/// The resident pages that are not shared, from `size resident shared ...`.
fn own_pages(statm: &str) -> Option<u64> {
    let mut fields = statm.split_whitespace().skip(1).map(|field| field.parse::<u64>().ok());
    let (resident, shared) = (fields.next()??, fields.next()??);
    Some(resident.saturating_sub(shared))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Child, Command};
    use std::time::{Duration, Instant};

    const MIB: u64 = 1 << 20;

    /// A process that is killed with its group when dropped.
    struct Group(Child);

    impl Group {
        fn start(script: &str) -> Self {
            use std::os::unix::process::CommandExt;
            Self(Command::new("sh").args(["-c", script]).process_group(0).spawn().unwrap())
        }

        fn await_that(&self, what: &str, is_so: impl Fn(u32) -> bool) {
            let until = Instant::now() + Duration::from_secs(20);
            while !is_so(self.0.id()) {
                assert!(Instant::now() < until, "{what}: not so");
                std::thread::sleep(Duration::from_millis(5));
            }
        }
    }

    impl Drop for Group {
        fn drop(&mut self) {
            use rustix::process::{Pid, Signal, kill_process_group};
            let _gone = kill_process_group(Pid::from_child(&self.0), Signal::KILL);
            let _ended = self.0.wait();
        }
    }

    #[test]
    fn what_is_shared_does_not_count() {
        assert_eq!(own_pages("9000 700 300 5 0 80 0"), Some(400));
        // The kernel counts in portions, so the parts may not add up for a moment.
        assert_eq!(own_pages("9000 300 310 5 0 80 0\n"), Some(0));
        for bad in ["", "1", "1 2", "1 x 3", "1 2 -3"] {
            assert_eq!(own_pages(bad), None, "{bad}");
        }
    }

    #[test]
    fn a_name_may_look_like_fields() {
        let stat = "7 (a) b) S 3 7 7 0 -1";
        assert_eq!((field(stat, 4), field(stat, 5), field(stat, 8)), (Some(3), Some(7), None));
        assert_eq!((field(stat, 2), field(stat, 40), field("7", 4)), (None, None, None));
    }

    #[test]
    fn memory_that_is_filled_shows() {
        let before = own_bytes("self").unwrap();
        let filled = std::hint::black_box(vec![1_u8; 64 << 20]);
        let after = own_bytes("self").unwrap();
        assert!(before + (48 << 20) < after, "{before} {after} {}", filled.len());
        assert_eq!(own_bytes("0"), None);
    }

    #[test]
    fn ancestry_goes_up_to_the_first_process_and_knows_the_group() {
        let group = Group::start("sh -c 'sleep 60; true'; true");
        group.await_that("the inner shell has started sleep", |pid| {
            Children::look().descendants(pid).len() == 2
        });
        let (inner, own) = (Children::look().descendants(group.0.id()), std::process::id());
        for (child, _) in inner {
            let found = ancestry(child);
            assert_eq!(found.first(), Some(&child));
            assert!(found.contains(&group.0.id()) && found.contains(&own), "{found:?}");
            assert_eq!(found.last(), Some(&group.0.id()), "the leader of the group");
        }
        assert_eq!(ancestry(u32::MAX), [u32::MAX], "a process that is not there");
    }

    /// `tail` keeps its output until its input ends, and then until somebody reads it.
    #[test]
    fn what_a_process_started_counts_with_it() {
        let group = Group::start("(head -c 64M /dev/zero | tail -c 64M | sleep 60); true");
        for children in [|| Children::Listed, Children::find] {
            group.await_that("the memory shows", |pid| {
                (60 * MIB..90 * MIB).contains(&family_bytes(pid, &children()).unwrap())
            });
        }
        let pid = group.0.id();
        assert!(own_bytes(&pid.to_string()).unwrap() < 10 * MIB);
        // `head` may end between the two readings.
        group.await_that("both ways find the same", |pid| {
            let [listed, found] = [Children::Listed, Children::find()].map(|children| {
                let mut descendants = children.descendants(pid);
                descendants.sort_unstable();
                descendants
            });
            listed == found && 2 < listed.len()
        });
        drop(group);
        assert_eq!(family_bytes(pid, &Children::look()), None);
    }

    #[test]
    fn a_fork_does_not_count_twice() {
        let group = Group::start("x=$(head -c 32M /dev/zero | tr '\\0' x); (sleep 60; echo $x) & wait");
        let is_large = |pid: u32| own_bytes(&pid.to_string()).is_some_and(|bytes| 32 * MIB < bytes);
        let has_copy = |pid| Children::look().descendants(pid).iter().any(|(child, _)| is_large(*child));
        group.await_that("it has forked", |pid| is_large(pid) && has_copy(pid));
        let own = own_bytes(&group.0.id().to_string()).unwrap();
        let family = family_bytes(group.0.id(), &Children::look()).unwrap();
        assert!(family < own + 16 * MIB, "{own} {family}");
    }
}
