//! One process, as `/proc` shows it.

use std::fs;
use std::io;
use std::path::Path;

/// Memory that a process has of its own: neither files nor what it shares. None if it is gone.
pub(super) fn own_bytes(process: &str) -> Option<u64> {
    let text = fs::read_to_string(Path::new("/proc").join(process).join("statm")).ok()?;
    own_pages(&text).map(|pages| pages * rustix::param::page_size() as u64)
}

/// How readily the kernel kills a process for memory, from -1000 to 1000; its children begin with the same.
pub(super) fn set_oom_score(process: &str, score: i32) -> io::Result<()> {
    fs::write(Path::new("/proc").join(process).join("oom_score_adj"), score.to_string())
}

/// Of `size resident shared ...`, what is resident and not shared.
fn own_pages(statm: &str) -> Option<u64> {
    let mut fields = statm.split_whitespace().skip(1).map(|field| field.parse::<u64>().ok());
    let (resident, shared) = (fields.next()??, fields.next()??);
    Some(resident.saturating_sub(shared))
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn memory_that_is_filled_shows() {
        let before = own_bytes("self").unwrap();
        let filled = std::hint::black_box(vec![1_u8; 64 << 20]);
        let after = own_bytes("self").unwrap();
        assert!(before + (48 << 20) < after, "{before} {after} {}", filled.len());
        assert_eq!(own_bytes("0"), None);
    }
}
