//! Mistakes in statements, with their places in the text.
//!
//! The parser says where it stopped. Planning says it of columns only, and only if it is asked to note where
//! each one stands; so a statement that fails is planned once more, by a session with these notes. Other
//! names are looked for among the words of the text.

use super::marks;
use super::meant::instead_of;
use super::reasons::{Told, of_dialects, told};
use super::syntax::told_of_syntax;
use crate::error::{Error, nearest};
use crate::sql::words::Words;
use crate::sql_place::SqlPlace;
use datafusion::common::{DataFusionError, SchemaError, Span};
use datafusion::execution::SessionState;
use datafusion::logical_expr::sqlparser::tokenizer::Span as SourceSpan;
use std::sync::Arc;

/// The mistake that the parser found.
pub(in crate::sql) fn of_syntax(error: DataFusionError, text: &str, state: &SessionState) -> Error {
    let words = Words::of(text, state);
    let error = Error::from(error);
    let Error::Sql(reason) = &error else { return error };
    let (reason, place) = match reason.rsplit_once(" at Line: ") {
        Some((reason, at)) => match numbers(at) {
            Some((line, column)) => (reason, words.at(line, column)),
            None => return error,
        },
        None => (reason.as_str(), words.end()),
    };
    if let Some((place, found)) = marks::missing_end(&words, &place) {
        return with_place(Error::Sql(format!("expected END of the CASE, found {found}")), place);
    }
    let told = told_of_syntax(reason, &words, &place);
    with_place(Error::Sql(told), place)
}

/// The numbers of `3, Column: 7`.
fn numbers(at: &str) -> Option<(u64, u64)> {
    let (line, column) = at.split_once(", Column: ")?;
    Some((line.parse().ok()?, column.trim().parse().ok()?))
}

/// The mistake that planning found, at a place that is known or in the use of a name.
pub(in crate::sql) fn of_plan(
    error: DataFusionError,
    span: Option<Span>,
    text: &str,
    state: &SessionState,
) -> Error {
    let words = Words::of(text, state);
    let Told { error, mark } = told(error.into(), &words, state);
    let place = span.map(|span| words.of_span(span));
    match place.or_else(|| mark.and_then(|mark| mark.place(&words, state))) {
        Some(place) => with_place(of_column(error, &words, &place), place),
        None => error,
    }
}

/// A column that there is not, with what was meant by its name.
fn of_column(error: Error, words: &Words<'_>, place: &SqlPlace) -> Error {
    let Error::Key { label, known } = &error else { return error };
    let text = if marks::is_parameter(words, place) {
        format!("a function of values, {label} -> .., is not supported{}", instead_of("lambda"))
    } else {
        let is_quoted = place.text().chars().nth(place.column() - 1) == Some('"');
        if !is_quoted || nearest(label, known.iter().map(String::as_str)).is_some() {
            return error;
        }
        // The class stays that of a missing column.
        format!("{error}; a text is in single quotes: '{}'", label.replace('\'', "''"))
    };
    Error::Row(text)
}

/// The place that planning has noted.
pub(in crate::sql) fn noted(error: &DataFusionError) -> Option<Span> {
    error.diagnostic().and_then(|said| said.span)
}

/// Whether a session that notes places may tell that of a mistake.
pub(in crate::sql) fn wants_notes(error: &DataFusionError) -> bool {
    noted(error).is_none() && may_have_place(error)
}

/// A session for one statement that notes where columns stand. It looks once at the files that calls name,
/// however often the statement is planned.
pub(in crate::sql) fn noting(state: &SessionState) -> SessionState {
    let mut noting = state.clone();
    noting.config_mut().options_mut().sql_parser.collect_spans = true;
    crate::sql::tables::file_tables::remember(&mut noting);
    noting
}

/// The place of a mistake that planning found in such a session, to be shown: it may be a guess.
pub(in crate::sql) fn span_of(error: &DataFusionError, text: &str, state: &SessionState) -> Option<Span> {
    noted(error).or_else(|| match error.find_root() {
        // Keys of orders have no notes.
        DataFusionError::SchemaError(inner, _) => match &**inner {
            SchemaError::FieldNotFound { field, .. } => Words::of(text, state).key(&field.name),
            _ => None,
        },
        _ => None,
    })
}

/// Whether the error is a mistake in the text, and not one of a file or the machine.
fn may_have_place(error: &DataFusionError) -> bool {
    matches!(
        error.find_root(),
        DataFusionError::Plan(_) | DataFusionError::NotImplemented(_) | DataFusionError::SchemaError(..)
    )
}

/// A clause that is refused, at the place of its first word, if it is one of SQL in capital letters.
pub(in crate::sql) fn of_clause(error: Error, text: &str, state: &SessionState) -> Error {
    let Error::NotImplemented(reason) = &error else { return error };
    let words = Words::of(text, state);
    if let Some(Told { error, mark }) = of_dialects(reason, &words) {
        return match mark.and_then(|mark| mark.place(&words, state)) {
            Some(place) => with_place(error, place),
            None => error,
        };
    }
    let first = reason.split(|letter: char| !letter.is_ascii_uppercase()).next().unwrap_or_default();
    let place = if first.len() < 2 { None } else { words.name(first, true) };
    match place {
        Some(place) => with_place(error, place),
        None => error,
    }
}

/// A part of a statement that is refused, at its place.
pub(in crate::sql) fn at(error: Error, span: SourceSpan, text: &str, state: &SessionState) -> Error {
    match Span::try_from_sqlparser_span(span) {
        Some(span) => with_place(error, Words::of(text, state).of_span(span)),
        None => error,
    }
}

/// The error of a run in words of users, with the place of the name that it is about.
pub(in crate::sql) fn of_run(error: Error, text: &str, state: &SessionState) -> Error {
    let words = match &error {
        Error::File { .. } | Error::NotImplemented(_) | Error::Sql(_) | Error::Type(_) | Error::Value(_) => {
            Words::of(text, state)
        }
        _ => return error,
    };
    let place = match &error {
        Error::File { path, .. } => words.name(path, false),
        _ => None,
    };
    let Told { error, mark } = told(error, &words, state);
    match place.or_else(|| mark.and_then(|mark| mark.place(&words, state))) {
        Some(place) => with_place(error, place),
        None => error,
    }
}

/// The same mistake in a text of which so many bytes have the same places; behind these it has no place.
pub(in crate::sql) fn in_begin(error: Error, text: &str, bytes: usize) -> Error {
    let Error::InSql { error, place } = error else { return error };
    let mut lines = text[..bytes].split('\n').skip(place.line().saturating_sub(1));
    let is_within = match (lines.next(), lines.next()) {
        (Some(_), Some(_)) => true,
        (Some(last), None) => bytes == text.len() || place.column() <= last.chars().count(),
        (None, _) => false,
    };
    if !is_within {
        return Arc::unwrap_or_clone(error);
    }
    let place = SqlPlace::of(text, place.line(), place.column(), place.width());
    Error::InSql { error, place: Arc::new(place) }
}

/// An error with its place, if it has none.
pub(in crate::sql) fn with_place(error: Error, place: SqlPlace) -> Error {
    match error {
        // Of a statement within this one, such as that of a view.
        Error::InSql { .. } => error,
        error => Error::InSql { error: Arc::new(error), place: Arc::new(place) },
    }
}
