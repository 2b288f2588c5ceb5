//! The open files that a process may have, and what of them its port leaves to the rest of it.
//!
//! A port could take all of them: connections come from outside. Then workers, drivers and files would get
//! none. So the last `reserve` of them are not for connections. The number of a new descriptor is the
//! lowest that is free, so it shows how many are in use.

use std::os::fd::RawFd;

/// Limit where the system does not say one.
const USUAL_MAX: u64 = 1024;
/// The most that is kept for others than connections.
const RESERVE_MAX: u64 = 256;

/// Descriptors that this process may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Descriptors {
    max: u64,
}

impl Descriptors {
    /// Those of this process, as they are limited now.
    pub(crate) fn of_process() -> Descriptors {
        let limits = std::fs::read_to_string("/proc/self/limits").unwrap_or_default();
        Descriptors { max: soft_limit(&limits).unwrap_or(USUAL_MAX) }
    }

    /// Whether a connection with this descriptor would take what is kept for others.
    pub(crate) fn is_short(self, descriptor: RawFd) -> bool {
        self.for_connections() <= u64::try_from(descriptor).unwrap_or(0)
    }

    /// Connections that one machine may have: a quarter of what is there for connections.
    pub(crate) fn per_machine_max(self) -> usize {
        usize::try_from(self.for_connections() / 4).unwrap_or(usize::MAX).max(1)
    }

    fn for_connections(self) -> u64 {
        self.max - reserve(self.max)
    }
}

/// A quarter, if that is not many.
fn reserve(max: u64) -> u64 {
    (max / 4).min(RESERVE_MAX)
}

/// The soft limit in the text that the kernel shows; none if there is no limit.
fn soft_limit(limits: &str) -> Option<u64> {
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files"))?;
    line.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_of_the_descriptors_is_not_for_connections() {
        let few = Descriptors { max: 512 };
        assert_eq!([383, 384].map(|number| few.is_short(number)), [false, true]);
        assert_eq!(few.per_machine_max(), 96);
        let many = Descriptors { max: 1 << 20 };
        assert_eq!(
            [0, (1 << 20) - 257, (1 << 20) - 256].map(|number| many.is_short(number)),
            [false, false, true]
        );
        assert!(0 < Descriptors::of_process().for_connections());
    }

    #[test]
    fn the_limit_is_read_from_the_kernels_text() {
        let text = "Limit    Soft Limit  Hard Limit  Units\nMax open files            1024                 524288               files\n";
        assert_eq!(soft_limit(text), Some(1024));
        assert_eq!(soft_limit("Max open files  unlimited  unlimited  files"), None);
    }
}
