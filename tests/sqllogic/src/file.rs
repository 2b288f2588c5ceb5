//! A file of records: runs each and judges what it gave.

use crate::absent::{self, Absent};
use crate::cell::Kind;
use crate::place::Started;
use crate::report::Outcome;
use anyhow::{Context, Result};
use sqllogictest::{Normalizer, Record, Runner, TestError, TestErrorKind, strict_column_validator};
use std::future::ready;
use std::path::{Path, PathBuf};

/// Stands for any text in an expected answer.
const IGNORED: &str = "<slt:ignore>";

/// Runs a file in a session of its own, after these statements; gives the outcome of each record, if it has
/// one.
///
/// # Errors
/// The file cannot be read, or is no file of SQL logic tests.
pub fn run(path: &Path, place: &Started, setup: &[&str]) -> Result<Vec<Option<Outcome>>> {
    let records = sqllogictest::parse_file::<Kind>(path).with_context(|| path.display().to_string())?;
    let mut runner = Runner::new(|| ready(place.engine(setup)));
    runner.add_label("Datafusion");
    runner.with_column_validator(strict_column_validator);
    runner.with_normalizer(|value| value.trim_end().to_owned());
    runner.with_validator(is_same);
    let (mut outcomes, mut absent) = (Vec::new(), Absent::default());
    for record in records {
        let statement = match &record {
            Record::Halt { .. } => break,
            Record::Statement { sql, .. } | Record::Query { sql, .. } => Some(sql.clone()),
            _ => None,
        };
        let reason = statement.as_deref().and_then(|statement| skipped(statement, &mut absent));
        if let Some(reason) = reason {
            outcomes.push(Some(Outcome::Skipped(reason)));
            continue;
        }
        outcomes.push(match (runner.run(record), statement) {
            (Ok(_), Some(_)) => Some(Outcome::Passed),
            (Ok(_), None) => None,
            (Err(error), _) => Some(judged(&error)),
        });
    }
    runner.shutdown();
    Ok(outcomes)
}

/// Why a statement is not run, if it is not.
fn skipped(statement: &str, absent: &mut Absent) -> Option<&'static str> {
    let text = statement.trim_start().to_ascii_lowercase();
    if absent.concerns(statement) {
        Some(absent::REASON)
    } else if text.starts_with("explain") {
        Some("plans are not compared")
    } else if text.contains("datafusion.runtime.") {
        Some("settings of DataFusion's memory and disk")
    } else if text.starts_with("show all") || text.contains("df_settings") {
        Some("lists of DataFusion's settings")
    } else {
        None
    }
}

/// The outcome of a record that did not give what the file says.
fn judged(error: &TestError) -> Outcome {
    let reason = match &error.kind() {
        TestErrorKind::ErrorMismatch { .. } => return Outcome::RefusedInOtherWords,
        TestErrorKind::Ok { .. } => "run though the file refuses it",
        TestErrorKind::QueryResultMismatch { .. } => "other rows",
        TestErrorKind::QueryResultColumnsMismatch { .. } => "other types of columns",
        TestErrorKind::StatementResultMismatch { .. } => "other counts",
        TestErrorKind::Fail { err, .. } => refusal(&err.to_string()),
        _ => "other faults",
    };
    Outcome::Failed { reason, detail: error.to_string() }
}

/// The kind of a refusal.
fn refusal(text: &str) -> &'static str {
    let has = |words: &[&str]| words.iter().any(|word| text.contains(word));
    if has(&["panicked"]) {
        "panics"
    } else if has(&["cannot run as a remote task", "Unsupported plan", "cannot be sent"]) {
        "refused: a plan that cannot travel"
    } else if has(&["No such file", "No files found", "not found in", "does not exist"]) {
        "refused: a file that is not there"
    } else if has(&["table '", "no table \"", "No table named", "there is no table"]) {
        "refused: a table that is not there"
    } else if has(&["Invalid function", "no function "]) {
        "refused: a function that is not there"
    } else if has(&["not supported", "not implemented", "not a setting"]) {
        "refused: not supported"
    } else {
        "refused: other reasons"
    }
}

/// Whether rows are those of a file, in which a mark may stand for any text.
fn is_same(normalizer: Normalizer, actual: &[Vec<String>], expected: &[String]) -> bool {
    let actual: Vec<String> = actual.iter().map(|row| row.join(" ").trim_end().to_owned()).collect();
    let expected: Vec<String> = expected.iter().map(normalizer).collect();
    if !expected.iter().any(|line| line.contains(IGNORED)) {
        return actual == expected;
    }
    let (actual, expected) = (actual.join("\n"), expected.join("\n"));
    let mut rest = actual.as_str();
    for (number, fragment) in expected.split(IGNORED).enumerate() {
        match rest.find(fragment) {
            Some(at) if number != 0 || at == 0 => rest = &rest[at + fragment.len()..],
            _ => return false,
        }
    }
    true
}

/// The files with this ending in a folder and those below it, in their order.
///
/// # Errors
/// A folder cannot be read.
pub fn files(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let entries = std::fs::read_dir(folder).with_context(|| folder.display().to_string())?;
    for entry in entries {
        let path = entry?.path();
        if path.is_dir() {
            found.extend(files(&path)?);
        } else if path.extension().is_some_and(|ending| ending == "slt") {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}
