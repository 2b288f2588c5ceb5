//! Memory of this process and of all that it started, from /proc.

/// This process and all that it started, and what those started.
pub fn family() -> Vec<u32> {
    let mut family = vec![std::process::id()];
    let mut at = 0;
    while let Some(pid) = family.get(at).copied() {
        at += 1;
        let threads = std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
        for thread in threads {
            let children = std::fs::read_to_string(thread.path().join("children")).unwrap_or_default();
            family.extend(children.split_whitespace().filter_map(|child| child.parse::<u32>().ok()));
        }
    }
    family
}

/// A count of bytes that the kernel tells of a process: the label of its line in a file of the process.
/// `None` if the process has ended.
pub fn bytes_of(pid: u32, file: &str, label: &str) -> Option<u64> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/{file}")).ok()?;
    let value = text.lines().find_map(|line| line.strip_prefix(label)?.strip_prefix(':'))?;
    Some(value.split_whitespace().next()?.parse::<u64>().ok()? << 10)
}
