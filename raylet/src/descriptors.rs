//! The open files that a process may have.
//!
//! Shells give 1024, for programs that use `select`. A node with 300 workers, and a head of as many members,
//! needs more, and may have more: the hard limit is what the machine allows. The programs that a node starts
//! are still those that `select` breaks, or that close each possible file when they begin, so they get the
//! limit back that the node was started with. They take it themselves, in [`restore`]: a process cannot give
//! a child another limit than its own before the child runs. A process that several workers share keeps the
//! raised one: hundreds of workers have some files each.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::sync::OnceLock;

/// Environment variable with the limit that a worker or a submitted program takes when it begins.
pub const LIMIT_VARIABLE: &str = "THARSIS_OPEN_FILES";
/// The text of a process without a limit.
const NO_LIMIT: &str = "unlimited";

/// The limit that this process was started with.
static STARTED_WITH: OnceLock<Option<u64>> = OnceLock::new();

/// Raises the limit on open files of this process to what it may be. Nothing happens where it cannot be
/// raised: then connections are refused before other files cannot be opened.
pub fn raise() {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    STARTED_WITH.get_or_init(|| current);
    if current == maximum {
        return;
    }
    if let Err(cause) = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }) {
        tracing::warn!(%cause, ?current, ?maximum, "the limit on open files stays as it is");
    }
}

/// The limit on open files of this process; none without one.
#[must_use]
pub fn max() -> Option<u64> {
    getrlimit(Resource::Nofile).current
}

/// The limit with which this process was started, as [`LIMIT_VARIABLE`] tells it to children.
#[must_use]
pub fn for_children() -> String {
    let limit = STARTED_WITH.get().copied().unwrap_or_else(max);
    limit.map_or_else(|| NO_LIMIT.to_owned(), |limit| limit.to_string())
}

/// Lowers the limit of this process to what [`LIMIT_VARIABLE`] says, as a child of a node does before it runs
/// code of its user. Nothing happens without the variable.
pub fn restore() {
    if let Some(told) = std::env::var(LIMIT_VARIABLE).ok().filter(|told| told != NO_LIMIT) {
        lower_to(&told);
    }
}

fn lower_to(told: &str) {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let Ok(limit) = told.parse::<u64>() else { return };
    if current.is_none_or(|current| limit < current) {
        // A lower limit is never refused, and the higher one harms few programs.
        let _lowered = setrlimit(Resource::Nofile, Rlimit { current: Some(limit), maximum });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_is_raised_to_the_hard_one_and_children_get_the_first_one_back() {
        let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
        let low = maximum.map_or(256, |maximum| maximum.min(256));
        setrlimit(Resource::Nofile, Rlimit { current: Some(low), maximum }).unwrap();
        raise();
        assert_eq!(max(), maximum);
        assert_eq!(for_children(), low.to_string(), "though it was raised");
        raise();
        assert_eq!(for_children(), low.to_string(), "though it was asked twice");
        for nonsense in ["", "-1", "a", "18446744073709551616"] {
            lower_to(nonsense);
            assert_eq!(max(), maximum);
        }
        lower_to(&for_children());
        assert_eq!(max(), Some(low));
        lower_to(&u64::MAX.to_string());
        assert_eq!(max(), Some(low), "it is never raised");
        raise();
    }
}
