//! The open files that a process may have.
//!
//! Shells give 1024, for programs that use `select`. A node with 300 workers, and a head of as many members,
//! needs more, and may have more: the hard limit is what the machine allows.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Raises the limit on open files of this process to what it may be. Nothing happens where it cannot be
/// raised: then connections are refused before other files cannot be opened.
pub fn raise() {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_is_raised_to_the_hard_one() {
        let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
        let low = maximum.map_or(256, |maximum| maximum.min(256));
        setrlimit(Resource::Nofile, Rlimit { current: Some(low), maximum }).unwrap();
        raise();
        assert_eq!(getrlimit(Resource::Nofile).current, maximum);
    }
}
