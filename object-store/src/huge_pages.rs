//! The kinds of memory that get huge pages on this machine.

use std::fs;
use std::sync::OnceLock;

/// Sizes of arenas are rounded up to this: one huge page.
pub const ARENA_UNIT_BYTES: u64 = 2 << 20;

const SHMEM_HUGE_FILE: &str = "/sys/kernel/mm/transparent_hugepage/shmem_enabled";
const PRIVATE_HUGE_FILE: &str = "/sys/kernel/mm/transparent_hugepage/enabled";

/// Whether the machine gives huge pages to shared memory, at least on advice.
pub fn huge_pages_available() -> bool {
    static AVAILABLE: OnceLock<bool> = OnceLock::new();
    *AVAILABLE
        .get_or_init(|| is_in_mode(SHMEM_HUGE_FILE, &["[always]", "[within_size]", "[advise]", "[force]"]))
}

/// Whether the machine gives huge pages to a process's own memory, at least on advice.
pub fn private_huge_pages_available() -> bool {
    static AVAILABLE: OnceLock<bool> = OnceLock::new();
    *AVAILABLE.get_or_init(|| is_in_mode(PRIVATE_HUGE_FILE, &["[always]", "[madvise]"]))
}

fn is_in_mode(file: &str, modes: &[&str]) -> bool {
    fs::read_to_string(file).is_ok_and(|text| modes.iter().any(|mode| text.contains(mode)))
}
