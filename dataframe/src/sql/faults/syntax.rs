//! Reasons for which the parser stopped at a place, in words of users.

use super::meant::instead_of;
use super::near::near;
use super::reasons::without_tree;
use super::secrets::hidden;
use crate::sql::words::{Words, is_word};
use crate::sql_place::SqlPlace;

/// Words with which a statement begins.
const STATEMENTS: [&str; 22] = [
    "alter",
    "copy",
    "create",
    "deallocate",
    "delete",
    "describe",
    "drop",
    "execute",
    "explain",
    "from",
    "insert",
    "prepare",
    "reset",
    "select",
    "set",
    "show",
    "summarize",
    "table",
    "truncate",
    "update",
    "values",
    "with",
];
/// Kinds of what statements make and drop.
const KINDS: [&str; 5] = ["external", "schema", "table", "unique", "view"];
/// Words with which a part of a query begins.
const CLAUSES: [&str; 15] = [
    "except",
    "from",
    "group",
    "having",
    "intersect",
    "join",
    "limit",
    "offset",
    "order",
    "qualify",
    "union",
    "using",
    "values",
    "where",
    "window",
];

/// Words between values.
const OPERATORS: [&str; 5] = ["between", "ilike", "like", "similar", "then"];

/// The reason for which the parser stopped at a place.
pub(in crate::sql) fn told_of_syntax(reason: &str, words: &Words<'_>, place: &SqlPlace) -> String {
    let found = reason.strip_prefix("Expected: ").and_then(|rest| rest.split_once(", found: "));
    let Some((expected, found)) = found else {
        if reason.starts_with("Expected close delimiter") {
            return "a name in double quotes without an end".to_owned();
        }
        if reason.starts_with("No infix parser for token") && words.has("div") {
            return format!("the operator DIV is not supported{}", instead_of("div"));
        }
        let mut letters = reason.chars();
        let first = letters.next().map(|first| first.to_lowercase().to_string()).unwrap_or_default();
        return without_tree(&(first + letters.as_str())).to_owned();
    };
    if let Some(clause) = clause_of_dialects(expected, found, words, place) {
        return clause;
    }
    if let Some(clause) = clause_without_select(expected, found, words) {
        return clause;
    }
    let is_sign = !expected.chars().any(char::is_alphanumeric);
    let wanted = match expected {
        "end of statement" | "end of statement or ;" => "the end of the statement".to_owned(),
        // All that other databases have.
        kinds if kinds.contains("TABLE, ") => "TABLE or VIEW".to_owned(),
        sign if is_sign => format!("{sign:?}"),
        other => other.to_owned(),
    };
    let shown = match found {
        found if let Some(shown) = hidden(found, words, place) => shown.to_owned(),
        "EOF" => "the end of the statement".to_owned(),
        text if text.starts_with(['\'', '"']) => text.to_owned(),
        text => format!("{text:?}"),
    };
    format!("expected {wanted}, found {shown}{}", hint(expected, found, words.before(place)))
}

/// A clause of other databases at which the parser stopped.
fn clause_of_dialects(expected: &str, found: &str, words: &Words<'_>, place: &SqlPlace) -> Option<String> {
    let is = |word: &str| found.eq_ignore_ascii_case(word);
    let is_before = |word: &str| words.before(place).is_some_and(|before| before.eq_ignore_ascii_case(word));
    let second = || words.from(place).get(1).map(|token| token.token.to_string().to_lowercase());
    let (what, clause) = if expected == "MATCH_CONDITION" {
        ("ASOF JOIN .. ON", "asof join")
    } else if expected == "an SQL statement" && is("pivot") {
        ("PIVOT in this form", "pivot")
    } else if expected == "an SQL statement" && is("unpivot") {
        ("UNPIVOT in this form", "unpivot")
    } else if is("using") && second().as_deref() == Some("sample") {
        ("USING SAMPLE", "using sample")
    } else if is("*") && words.sign_before(place).as_deref() == Some("*") {
        ("the operator **", "**")
    } else if is_before("lambda") {
        ("LAMBDA", "lambda")
    } else {
        return None;
    };
    Some(format!("{what} is not supported{}", instead_of(clause)))
}

/// A clause behind `from t`, which stands for all rows of a table.
fn clause_without_select(expected: &str, found: &str, words: &Words<'_>) -> Option<String> {
    let clause = found.to_uppercase();
    let is_clause = ["GROUP", "HAVING", "QUALIFY", "WHERE", "WINDOW"].contains(&clause.as_str());
    let begins = words.tokens().first().is_some_and(|first| is_word(first, &["from"]));
    (is_clause && begins && expected.starts_with("end of statement") && !words.has("select"))
        .then(|| format!("{clause} behind FROM without SELECT is not supported: write select .. before from"))
}

/// The word that was probably meant.
fn hint(expected: &str, found: &str, before: Option<&str>) -> String {
    let meant = |word: &str| format!("; did you mean {}?", word.to_uppercase());
    let asked = found.to_lowercase();
    let is_behind_from = before.is_some_and(|before| before.eq_ignore_ascii_case("from"));
    match found {
        "." if expected == "an SQL statement" => {
            return "; a command with a dot is one of the shell: options such as --format csv do the same"
                .to_owned();
        }
        "[" if is_behind_from => {
            return "; a list of files stands in a function: read_csv(['a.csv', 'b.csv'])".to_owned();
        }
        _ => {}
    }
    if expected == "an SQL statement" {
        return near(&asked, STATEMENTS).map(meant).unwrap_or_default();
    }
    if expected.contains("object type") || expected.contains("TABLE, ") {
        return near(&asked, KINDS).map(meant).unwrap_or_default();
    }
    match found {
        "=>" => return meant(">="),
        "=<" => return meant("<="),
        _ => {}
    }
    if matches!(asked.as_str(), "group" | "order" | "partition") {
        return meant(&format!("{asked} by"));
    }
    if let Some(word) = near(&asked, CLAUSES).or_else(|| near(&asked, OPERATORS)) {
        return meant(word);
    }
    let before = before.map(|before| (before, before.to_lowercase()));
    let is_known = |word: &str| CLAUSES.contains(&word) || STATEMENTS.contains(&word);
    match before {
        Some((before, lower)) if !is_known(&lower) => match near(&lower, CLAUSES) {
            Some(word) => format!("; did you mean {} in place of {before:?}?", word.to_uppercase()),
            None => String::new(),
        },
        _ => String::new(),
    }
}
