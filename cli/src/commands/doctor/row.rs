//! A check of this machine, as it is shown.

use serde::Serialize;

/// The outcome of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// Nothing is to be done.
    Ok,
    /// A node runs, and would run better otherwise.
    Warning,
    /// A node does not run, or not as it was asked to.
    Failed,
}

/// A check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Row {
    /// Its subject.
    pub name: &'static str,
    /// Its outcome.
    pub state: State,
    /// The facts, in one line.
    pub found: String,
    /// The remedy, in one line; none if there is nothing to do.
    pub advice: Option<String>,
}

impl State {
    /// Its name in text and in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warning => "warning",
            Self::Failed => "failed",
        }
    }
}

impl Row {
    /// A check after which nothing is to be done.
    pub fn ok(name: &'static str, found: String) -> Self {
        Self { name, state: State::Ok, found, advice: None }
    }

    /// A check after which something should be done.
    pub fn warning(name: &'static str, found: String, advice: &str) -> Self {
        Self { name, state: State::Warning, found, advice: Some(advice.to_owned()) }
    }

    /// A check after which something must be done.
    pub fn failed(name: &'static str, found: String, advice: &str) -> Self {
        Self { name, state: State::Failed, found, advice: Some(advice.to_owned()) }
    }
}

/// The lines of checks for people. The remedy has a line of its own, below the facts.
pub fn lines(rows: &[Row]) -> Vec<String> {
    let width = rows.iter().map(|row| row.name.len()).max().unwrap_or(0);
    let line = |state: &str, name: &str, text: &str| format!("{state:<7}  {name:<width$}  {text}");
    let of_row = |row: &Row| {
        let facts = line(row.state.name(), row.name, &row.found);
        let remedy = row.advice.as_ref().map(|advice| line("", "", &format!("-> {advice}")));
        std::iter::once(facts).chain(remedy).collect::<Vec<_>>()
    };
    rows.iter().flat_map(of_row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_aligned_and_have_their_remedies_below_them() {
        let rows = [
            Row::ok("cpus", "2 of 2".to_owned()),
            Row::warning("huge pages", "none".to_owned(), "allow them"),
            Row::failed("port", "taken".to_owned(), "take another"),
        ];
        let wanted = [
            "ok       cpus        2 of 2",
            "warning  huge pages  none",
            "                     -> allow them",
            "failed   port        taken",
            "                     -> take another",
        ];
        assert_eq!(lines(&rows), wanted);
        assert!(lines(&[]).is_empty());
    }

    #[test]
    fn a_state_has_one_name_in_text_and_in_json() {
        for state in [State::Ok, State::Warning, State::Failed] {
            assert_eq!(serde_json::json!(state), state.name());
        }
    }
}
