//! Submitted programs: what is asked of a node, and what the control store keeps of each.
//!
//! A submission is a program that a node runs and supervises. Its record is a value of the key-value table,
//! in a namespace of its own, under the submission's name. The node that runs the program writes the record;
//! whoever reads it compares [`Submission::node`] with the members, since a node that is gone writes nothing.

use crate::message::BadMessage;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;
use tharsis_types::Quota;
use tharsis_types::limits::KIB;

/// Namespace of the records in the control store.
pub const NAMESPACE: &str = "tharsis.submissions";
/// Set for a submitted program: its name.
pub const NAME_VARIABLE: &str = "THARSIS_SUBMISSION";
/// Set for a submitted program: the socket of the node that runs it.
pub const SOCKET_VARIABLE: &str = "THARSIS_SOCKET";
/// Set for a submitted program: the most that each of its jobs may hold at once, if that is bounded.
pub const QUOTA_VARIABLE: &str = "THARSIS_JOB_QUOTA";
/// Beginning of the variables that say what a process of the engine is; a program inherits none of them.
pub const VARIABLES: &str = "THARSIS_";
/// Bytes of a name at most.
pub const NAME_BYTES_MAX: usize = 64;
/// Bytes of the program's words, folder and variables at most.
pub const TEXT_BYTES_MAX: usize = 128 * KIB;

/// A program to run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewSubmission {
    /// Its name, which no other submission of the cluster has.
    pub name: String,
    /// The program, and its arguments.
    pub words: Vec<String>,
    /// The folder in which it runs.
    pub folder: String,
    /// Variables of its environment beside those of the node.
    pub variables: BTreeMap<String, String>,
    /// The most that each of its jobs may hold at once.
    pub quota: Option<Quota>,
}

/// Output that is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutputQuery {
    /// The submission.
    pub name: String,
    /// Lines from the end to begin with.
    pub tail: u32,
    /// Whether to go on until the program has ended.
    pub follow: bool,
}

/// Stages of a submission.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// It ended with another status than 0, or by a signal.
    Failed,
    /// The node that ran it is gone. Never stored: whoever reads the record finds out.
    Lost,
    /// It runs.
    Running,
    /// Its node is about to start it.
    Starting,
    /// It was stopped.
    Stopped,
    /// It ended with status 0.
    Succeeded,
}

/// A submission, as the control store keeps it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Submission {
    /// Its name.
    pub name: String,
    /// The program, and its arguments.
    pub words: Vec<String>,
    /// The folder in which it runs.
    pub folder: String,
    /// The node that runs it, as 16 hexadecimal digits.
    pub node: String,
    /// Boot id of that node's machine.
    pub host: String,
    /// Socket of that node, by which the next node at the same place is known.
    pub socket: String,
    /// Its stage.
    pub state: State,
    /// Its process; none before it is started.
    pub pid: Option<u32>,
    /// When it was submitted, in ms since 1970.
    pub submitted_unix_ms: u64,
    /// When it ended.
    pub ended_unix_ms: Option<u64>,
    /// Status with which it ended, if it ended by itself.
    pub status: Option<i32>,
    /// Signal by which it ended.
    pub signal: Option<i32>,
}

impl State {
    /// The word for it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Failed => "failed",
            Self::Lost => "lost",
            Self::Running => "running",
            Self::Starting => "starting",
            Self::Stopped => "stopped",
            Self::Succeeded => "succeeded",
        }
    }

    /// Whether the program runs, or will.
    #[must_use]
    pub fn is_live(self) -> bool {
        matches!(self, Self::Running | Self::Starting)
    }
}

impl NewSubmission {
    /// Refuses what no node can run.
    ///
    /// # Errors
    /// [`BadMessage`] with the field.
    pub fn check(&self) -> Result<(), BadMessage> {
        check_name(&self.name)?;
        if self.words.first().is_none_or(String::is_empty) {
            return Err(BadMessage::missing("words"));
        }
        if !Path::new(&self.folder).is_absolute() {
            return Err(BadMessage::invalid("folder", "is not an absolute path"));
        }
        let is_name = |name: &String| !name.is_empty() && !name.contains(['=', '\0']);
        if let Some(name) = self.variables.keys().find(|name| !is_name(name) || name.starts_with(VARIABLES)) {
            return Err(BadMessage::invalid("variables", format!("{name:?} cannot be set for a program")));
        }
        let variables = self.variables.iter().flat_map(|(name, value)| [name, value]);
        let texts = self.words.iter().chain(variables).chain([&self.folder]);
        let mut len_bytes = 0;
        for text in texts {
            if text.contains('\0') {
                return Err(BadMessage::invalid("words", "a text has a zero byte"));
            }
            len_bytes += text.len();
        }
        if TEXT_BYTES_MAX < len_bytes {
            return Err(BadMessage::too_many("words", len_bytes, TEXT_BYTES_MAX, "bytes"));
        }
        Ok(())
    }
}

/// Refuses a name that is empty, long, or no plain name of a file.
///
/// # Errors
/// [`BadMessage`].
pub fn check_name(name: &str) -> Result<(), BadMessage> {
    if name.is_empty() {
        return Err(BadMessage::missing("name"));
    }
    if NAME_BYTES_MAX < name.len() {
        return Err(BadMessage::too_many("name", name.len(), NAME_BYTES_MAX, "bytes"));
    }
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if name.starts_with(['.', '-']) || !name.chars().all(is_plain) {
        let rule = "may have letters, digits, and - _ . inside";
        return Err(BadMessage::invalid("name", format!("{name:?} {rule}")));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn new() -> NewSubmission {
        NewSubmission {
            name: "pi-1".to_owned(),
            words: vec!["./pi".to_owned(), String::new()],
            folder: "/tmp".to_owned(),
            variables: BTreeMap::from([("SIZE".to_owned(), "3".to_owned())]),
            quota: None,
        }
    }

    #[test]
    fn a_name_is_that_of_a_file_in_one_folder() {
        for good in ["pi", "pi-1", "Nightly_2.run"] {
            check_name(good).unwrap();
        }
        for bad in ["", ".", "..", ".pi", "-pi", "a/b", "a b", "\u{e4}", &"x".repeat(65)] {
            assert!(check_name(bad).unwrap_err().to_string().contains("name"), "{bad}");
        }
    }

    #[test]
    fn what_no_node_can_run_is_refused_with_its_field() {
        new().check().unwrap();
        let refused = |change: fn(&mut NewSubmission)| {
            let mut bad = new();
            change(&mut bad);
            bad.check().unwrap_err().to_string()
        };
        assert!(refused(|new| new.words.clear()).contains("words"));
        assert!(refused(|new| new.words[0].clear()).contains("words"));
        assert!(refused(|new| new.words[1].push('\0')).contains("zero byte"));
        assert!(refused(|new| new.words[1] = "x".repeat(TEXT_BYTES_MAX)).contains("words"));
        assert!(refused(|new| new.folder = "here".to_owned()).contains("folder"));
        let set = |name: &str| {
            let mut bad = new();
            bad.variables.insert(name.to_owned(), String::new());
            bad.check().unwrap_err().to_string()
        };
        for name in ["", "A=B", "THARSIS_NODE"] {
            assert!(set(name).contains("variables"), "{name}");
        }
    }
}
