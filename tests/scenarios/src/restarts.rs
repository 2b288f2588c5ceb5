//! The table of the guide that says what calls of an actor come to when the actor is lost.

use tharsis::{Error, FailureKind};

/// The page with the table.
const PAGE: &str = include_str!("../../../docs/actors.md");

/// A row of the table.
#[derive(Clone, Debug)]
pub struct Row {
    /// The event that befalls the actor.
    pub event: String,
    /// The options of the actor.
    pub max_restarts: i32,
    /// As above.
    pub max_task_retries: i32,
    /// Outcomes of the call that runs, of one behind it, and of one that is made later.
    pub outcomes: [String; 3],
}

/// The rows of the table.
///
/// # Panics
/// If the page has no such table.
#[must_use]
pub fn rows() -> Vec<Row> {
    let begin = PAGE.find("<!-- restarts").expect("the page has a table of restarts");
    let table = PAGE[begin..].split("<!-- end of restarts").next().unwrap_or_default();
    let lines = table.lines().filter(|line| line.starts_with('|')).skip(2);
    let row = |line: &str| {
        let cells: Vec<_> = line.trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect();
        let [event, restarts, retries, running, behind, later] =
            <[String; 6]>::try_from(cells).expect("six cells");
        Row {
            event,
            max_restarts: restarts.parse().expect("a number"),
            max_task_retries: retries.parse().expect("a number"),
            outcomes: [running, behind, later],
        }
    };
    lines.map(row).collect()
}

/// An outcome in the words of the table.
#[must_use]
pub fn outcome<T>(result: &Result<T, Error>) -> String {
    let error = match result {
        Ok(_) => return "value".to_owned(),
        Err(error) => error,
    };
    let kind = match error.kind() {
        FailureKind::ActorDied => "died".to_owned(),
        FailureKind::ActorUnavailable => "unavailable".to_owned(),
        other => other.to_string(),
    };
    error.executed().map_or_else(|| kind.clone(), |executed| format!("{kind}, {executed}"))
}
