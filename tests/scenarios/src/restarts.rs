//! The tables of the guide that say what calls of an actor come to when the actor is lost, and from what it
//! continues.

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
    let row = |line: &str| {
        let [event, restarts, retries, running, behind, later] = cells(line);
        Row {
            event,
            max_restarts: restarts.parse().expect("a number"),
            max_task_retries: retries.parse().expect("a number"),
            outcomes: [running, behind, later],
        }
    };
    lines("restarts").map(row).collect()
}

/// A row of the table of checkpoints.
#[derive(Clone, Debug)]
pub struct SnapshotRow {
    /// The event that befalls the actor, after five calls.
    pub event: String,
    /// After how many calls a checkpoint is taken; 0 for none.
    pub every: i64,
    /// The option of the actor.
    pub max_task_retries: i32,
    /// The value with which the actor goes on.
    pub value: i64,
}

/// The rows of the table of checkpoints.
///
/// # Panics
/// If the page has no such table.
#[must_use]
pub fn snapshot_rows() -> Vec<SnapshotRow> {
    let row = |line: &str| {
        let [event, every, retries, value] = cells(line);
        SnapshotRow {
            event,
            every: if every == "none" { 0 } else { every.parse().expect("a number") },
            max_task_retries: retries.parse().expect("a number"),
            value: value.parse().expect("a number"),
        }
    };
    lines("checkpoints").map(row).collect()
}

/// The lines of a table of the page, without its head.
fn lines(table: &str) -> impl Iterator<Item = &'static str> {
    let begin = PAGE.find(&format!("<!-- {table}")).expect("the page has the table");
    let end = PAGE.find(&format!("<!-- end of {table}")).expect("the table ends");
    PAGE[begin..end].lines().filter(|line| line.starts_with('|')).skip(2)
}

fn cells<const COUNT: usize>(line: &str) -> [String; COUNT] {
    let cells: Vec<_> = line.trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect();
    <[String; COUNT]>::try_from(cells).expect("as many cells as columns")
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
