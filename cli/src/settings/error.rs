//! Errors in flags, variables and files of settings. Each ends the command with status 2.

use std::path::PathBuf;

/// Longest part of a value that an error message repeats.
pub const SHOWN_CHARACTERS_MAX: usize = 200;

/// An error in a setting.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// A value is not one.
    #[error("{origin}: {value}: {problem}")]
    BadValue {
        /// The origin of the value: a flag, a variable, or a key in a line of a file.
        origin: String,
        /// The value, cut to a readable length.
        value: String,
        /// The fault that was found.
        problem: String,
    },
    /// Two settings that cannot both be.
    #[error("{first} and {second} cannot both be set: {reason}")]
    Conflict {
        /// The origin of the first.
        first: String,
        /// The origin of the other.
        second: String,
        /// Why.
        reason: &'static str,
    },
    /// A key stands twice in a file.
    #[error("{}: key {key} is set twice, in lines {first_line} and {second_line}", path.display())]
    DuplicateKey {
        /// The file.
        path: PathBuf,
        /// The key.
        key: String,
        /// Line of its first place.
        first_line: usize,
        /// Line of its second place.
        second_line: usize,
    },
    /// The file is a folder.
    #[error("IsADirectory: {} is a folder, --config expects a file", path.display())]
    IsADirectory {
        /// The folder.
        path: PathBuf,
    },
    /// A setting that means nothing without another one.
    #[error("{setting} needs {other}: {reason}")]
    Needs {
        /// The origin of the setting.
        setting: String,
        /// The flag of the other one.
        other: String,
        /// Why.
        reason: &'static str,
    },
    /// Two numbers of which one must be less.
    #[error("{less} is {less_value} and {more} is {more_value}: {reason}")]
    Order {
        /// The origin of the one that must be less.
        less: String,
        /// The value that was given.
        less_value: String,
        /// The origin of the other.
        more: String,
        /// The value that was given.
        more_value: String,
        /// Why.
        reason: &'static str,
    },
    /// The file is not TOML.
    #[error("{}, line {}, column {}: {problem}", path.display(), at.0, at.1)]
    Syntax {
        /// The file.
        path: PathBuf,
        /// Line and column, from 1.
        at: (usize, usize),
        /// Description of the problem.
        problem: String,
    },
    /// The file is too long to be a settings file.
    #[error("{} has more than {limit_bytes} bytes, the limit of a settings file", path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// The limit.
        limit_bytes: u64,
    },
    /// There is no such key.
    #[error("{}, line {line}: unknown key {key}{}", path.display(), suggestion(*nearest))]
    UnknownKey {
        /// The file.
        path: PathBuf,
        /// Number of the line.
        line: usize,
        /// The key.
        key: String,
        /// The key that was probably meant.
        nearest: Option<&'static str>,
    },
    /// The file cannot be read.
    #[error("cannot read {}: {cause}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        cause: String,
    },
}

fn suggestion(nearest: Option<&'static str>) -> String {
    nearest.map_or_else(String::new, |nearest| format!(", did you mean {nearest}?"))
}

/// A value for messages to users, cut to a readable length.
pub fn shown(value: &str) -> String {
    match value.char_indices().nth(SHOWN_CHARACTERS_MAX) {
        Some((end, _)) => format!("{}...", &value[..end]),
        None => value.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_values_are_cut_between_characters() {
        assert_eq!(shown("short"), "short");
        let long = "ä".repeat(SHOWN_CHARACTERS_MAX + 1);
        assert_eq!(shown(&long).chars().count(), SHOWN_CHARACTERS_MAX + 3);
    }
}
