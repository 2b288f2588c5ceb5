//! The one error type of frames.

use crate::brief::{brief, without_secrets};
use crate::sql_place::SqlPlace;
use arrow::error::ArrowError;
use datafusion::common::{Column, DataFusionError, SchemaError};
use datafusion::logical_expr::sqlparser::parser::ParserError;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use tharsis_cancel::Ended;

/// Shorthand for results of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// Everything that can go wrong with a frame.
///
/// Each variant stands for the exception that a pandas user would see for the same mistake
/// ([`Error::class`]).
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A label that the frame does not have.
    #[error("no column {label:?}; there are {}{}", quoted(known), nearest_text(label, known))]
    Key {
        /// The label that was asked for.
        label: String,
        /// The labels that exist.
        known: Vec<String>,
    },
    /// A label that no row has, or no level of an index.
    #[error("{0}")]
    Row(String),
    /// An argument with a value that makes no sense.
    #[error("{0}")]
    Value(String),
    /// An operation on values of a type that it is not made for.
    #[error("{0}")]
    Type(String),
    /// A position out of bounds.
    #[error("{0}")]
    Index(String),
    /// A text that is no valid SQL or names what does not exist.
    #[error("{0}")]
    Sql(String),
    /// A file that is missing, cannot be read or written, or is not what its name says.
    #[error("{path}: {reason}")]
    File {
        /// The file, folder or pattern.
        path: String,
        /// The kind of the failure.
        fault: FileFault,
        /// The cause, as the file system or the format's reader gave it.
        reason: String,
    },
    /// A file whose records cannot be found from its middle; it is read as a whole then.
    #[error("{path}: its records cannot be found from its middle")]
    Uncut {
        /// The file.
        path: String,
    },
    /// Rows of a stream that cannot go on: the plan began anew after some were given, and made others in
    /// their place. A result that is computed as a whole can begin anew.
    #[error("after {rows} rows: {cause}; the plan began anew and gave other rows in their place")]
    Stream {
        /// Number of rows that were given.
        rows: usize,
        /// The reason to begin anew.
        cause: Arc<Error>,
    },
    /// A text that is no expression: the place in it, in characters from 0, and the reason.
    #[error("invalid syntax at character {at}: {reason}")]
    Syntax {
        /// The place in the text.
        at: usize,
        /// The reason, with what was expected.
        reason: String,
    },
    /// A name in an expression that is no column, level or value.
    #[error("name {0:?} is not defined")]
    Name(String),
    /// A plan that needs more memory than its limit.
    #[error("{0}")]
    Memory(String),
    /// A feature that this version does not have.
    #[error("{0}")]
    NotImplemented(String),
    /// A result for which its type has no room.
    #[error("{0}")]
    Overflow(String),
    /// A division of whole numbers or decimals by zero.
    #[error("{0}")]
    ZeroDivision(String),
    /// Rows that were made, and are lost with the store that kept them. They may be made again.
    #[error("{0}")]
    Lost(String),
    /// An error of a task that ran in another process, or of the engine that ran it.
    #[error("{text}")]
    Task {
        /// The exception that a pandas user would see.
        class: &'static str,
        /// The failure and its reason.
        text: String,
    },
    /// A function of the program that could not do its part.
    #[error("{function}: {fault} (called at {place})")]
    Function {
        /// The path of the function.
        function: String,
        /// File and line of the step that called it.
        place: String,
        /// The reason of the failure.
        fault: FunctionFault,
    },
    /// A handle of the program was cancelled.
    #[error("the computation was cancelled")]
    Cancelled,
    /// A defect of this crate or of a library under it.
    #[error("{0}")]
    Internal(String),
    /// A mistake in a statement of SQL, with its place in the text.
    #[error("{place}: {error}")]
    InSql {
        /// The mistake.
        error: Arc<Error>,
        /// Its place.
        place: Arc<SqlPlace>,
    },
    /// An error of an earlier step, with the place in the program that asked for it.
    #[error("{error} (asked for at {file}:{line})")]
    At {
        /// The first error.
        error: Arc<Error>,
        /// The caller's file.
        file: &'static str,
        /// The caller's line.
        line: u32,
    },
}

/// The kind of a failure with a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum FileFault {
    /// The bytes are not what the format says.
    Corrupt,
    /// The user may not read or write it.
    Denied,
    /// A text is not in the encoding that was asked for.
    Encoding,
    /// It exists where none may.
    Exists,
    /// Any other failure of the file system.
    Failed,
    /// A file whose columns differ from those of the others.
    Mismatch,
    /// There is none.
    Missing,
    /// A text whose fields or lines cannot be told apart.
    Syntax,
    /// The other side did not answer in time.
    TimedOut,
    /// It has more of something than is allowed.
    TooLarge,
    /// The other side refuses to serve, also after some attempts.
    Unavailable,
    /// A valid file with a feature that this version does not read.
    Unsupported,
    /// It is not the file any more that the plan was made for.
    Changed,
}

impl FileFault {
    /// The name of the Python exception for this kind.
    #[must_use]
    pub fn class(self) -> &'static str {
        match self {
            FileFault::Corrupt | FileFault::Mismatch => "ValueError",
            FileFault::Denied => "PermissionError",
            FileFault::Encoding => "UnicodeDecodeError",
            FileFault::Exists => "FileExistsError",
            FileFault::Failed | FileFault::Changed => "OSError",
            FileFault::Missing => "FileNotFoundError",
            FileFault::Syntax => "ParserError",
            FileFault::TimedOut => "TimeoutError",
            FileFault::TooLarge => "MemoryError",
            FileFault::Unavailable => "ConnectionError",
            FileFault::Unsupported => "NotImplemented",
        }
    }

    /// Whether the reason may tell of what is in the file.
    fn is_of_content(self) -> bool {
        use FileFault::{Corrupt, Encoding, Mismatch, Syntax, Unsupported};
        matches!(self, Corrupt | Encoding | Mismatch | Syntax | Unsupported)
    }

    /// The kind of an error of the file system.
    pub(crate) fn of_io(error: &std::io::Error) -> FileFault {
        use std::io::ErrorKind;
        match error.kind() {
            ErrorKind::AlreadyExists | ErrorKind::DirectoryNotEmpty => FileFault::Exists,
            ErrorKind::NotFound => FileFault::Missing,
            ErrorKind::PermissionDenied => FileFault::Denied,
            ErrorKind::TimedOut => FileFault::TimedOut,
            ErrorKind::UnexpectedEof | ErrorKind::InvalidData | ErrorKind::InvalidInput => FileFault::Corrupt,
            _ => FileFault::Failed,
        }
    }
}

/// The reason for which a function of the program could not do its part.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[non_exhaustive]
pub enum FunctionFault {
    /// Its arguments cannot be encoded, or their bytes are none of its arguments.
    #[error("its arguments: {0}")]
    Arguments(String),
    /// It returned an error, which says this.
    #[error("{0}")]
    Failed(String),
    /// It panicked with this message.
    #[error("it panicked: {0}")]
    Panicked(String),
    /// It was given, or it gave, rows or values of other types or labels than declared.
    #[error("{0}")]
    Types(String),
    /// The program that should run it does not have it.
    #[error("this program has no such function")]
    Unknown,
    /// The program that should run it has it with other types.
    #[error("the caller's types are not those of this program, {0}")]
    Version(String),
}

impl Error {
    /// A failure with a file of a kind.
    pub(crate) fn file(path: &str, fault: FileFault, reason: impl std::fmt::Display) -> Error {
        let reason = without_secrets(&reason.to_string());
        let reason = if fault.is_of_content() { brief(reason) } else { reason };
        Error::File { path: without_secrets(path), fault, reason }
    }

    /// A failure of the file system.
    pub(crate) fn io(path: &str, error: &std::io::Error) -> Error {
        Error::file(path, FileFault::of_io(error), error)
    }

    /// The end of the time that a request may take.
    #[must_use]
    pub fn timeout() -> Error {
        Error::Task { class: "Timeout", text: "the time of the request is over".to_owned() }
    }

    /// The name of the Python exception that pandas raises for the same mistake.
    #[must_use]
    pub fn class(&self) -> &'static str {
        match self {
            Error::Key { .. } | Error::Row(_) => "KeyError",
            Error::Value(_) | Error::Sql(_) => "ValueError",
            Error::Type(_) => "TypeError",
            Error::Index(_) => "IndexError",
            Error::File { fault, .. } => fault.class(),
            Error::Syntax { .. } => "SyntaxError",
            Error::Name(_) => "UndefinedVariableError",
            Error::Memory(_) => "MemoryError",
            Error::NotImplemented(_) => "NotImplemented",
            Error::Overflow(_) => "OverflowError",
            Error::ZeroDivision(_) => "ZeroDivisionError",
            Error::Cancelled => "Cancelled",
            Error::Lost(_) => "Crash",
            Error::Task { class, .. } => class,
            Error::Function { fault: FunctionFault::Types(_), .. } => "TypeError",
            Error::Function { .. } | Error::Internal(_) | Error::Uncut { .. } => "RuntimeError",
            Error::At { error, .. } | Error::InSql { error, .. } => error.class(),
            Error::Stream { cause, .. } => cause.class(),
        }
    }

    /// The error itself, without the place that asked for it and its place in a statement.
    #[must_use]
    pub fn root(&self) -> &Error {
        match self {
            Error::At { error, .. } | Error::InSql { error, .. } => error.root(),
            other => other,
        }
    }

    /// The place of a mistake in a statement of SQL, if it is known.
    ///
    /// ```
    /// use tharsis_dataframe::SqlSession;
    /// let error = SqlSession::default().run("select 1,\n  nothing").expect_err("no such column");
    /// let place = error.sql_place().expect("a place");
    /// assert_eq!((place.line(), place.column(), place.text()), (2, 3, "  nothing"));
    /// ```
    #[must_use]
    pub fn sql_place(&self) -> Option<&SqlPlace> {
        match self {
            Error::At { error, .. } => error.sql_place(),
            Error::InSql { place, .. } => Some(place),
            _ => None,
        }
    }
}

impl From<Ended> for Error {
    fn from(ended: Ended) -> Error {
        match ended {
            Ended::Cancelled => Error::Cancelled,
            Ended::TimedOut => Error::timeout(),
        }
    }
}

impl From<DataFusionError> for Error {
    fn from(error: DataFusionError) -> Error {
        match error {
            DataFusionError::SchemaError(inner, _) => from_schema(*inner),
            DataFusionError::ResourcesExhausted(text) => Error::Memory(text),
            DataFusionError::NotImplemented(text) => Error::NotImplemented(without_operators(text)),
            DataFusionError::Plan(text) => of_plan(text),
            DataFusionError::SQL(inner, _) => match *inner {
                ParserError::ParserError(text) | ParserError::TokenizerError(text) => Error::Sql(text),
                ParserError::RecursionLimitExceeded => {
                    Error::NotImplemented("a text that is nested so deep is not supported".to_owned())
                }
            },
            DataFusionError::Execution(text) => Error::Value(brief(text)),
            DataFusionError::ArrowError(inner, _) => Error::from(*inner),
            DataFusionError::External(inner) => match inner.downcast::<Error>() {
                Ok(own) => *own,
                Err(inner) => Error::Value(inner.to_string()),
            },
            DataFusionError::ParquetError(inner) => Error::Value(brief(format!("Parquet: {inner}"))),
            DataFusionError::Context(_, inner) => Error::from(*inner),
            DataFusionError::Diagnostic(_, inner) => Error::from(*inner),
            DataFusionError::Shared(inner) => Error::from_shared(&inner),
            DataFusionError::Internal(text) => Error::Internal(text),
            DataFusionError::Configuration(text) => Error::Value(text),
            // The first of several mistakes.
            DataFusionError::Collection(mut errors) if !errors.is_empty() => {
                Error::from(errors.swap_remove(0))
            }
            other => Error::Value(other.to_string()),
        }
    }
}

/// A mistake that planning finds. For a call of other types the library tells all that it has tried, and to
/// report a defect.
fn of_plan(text: String) -> Error {
    const NO_CALL: &str = "No function matches the given name and argument types '";
    let Some((_, rest)) = text.split_once(NO_CALL) else { return Error::Value(text) };
    let (call, rest) = rest.split_once('\'').unwrap_or((rest, ""));
    let known = rest.split_once("Candidate functions:").map_or("", |(_, known)| known);
    let known: Vec<&str> = known.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let known = if known.is_empty() { String::new() } else { format!("; there are {}", known.join(", ")) };
    Error::Type(format!("no function {call}{known}"))
}

/// The reason of the library, which shows how it keeps a subquery of which it has made no join.
fn without_operators(text: String) -> String {
    let expression = text.strip_prefix("Physical plan does not support logical expression ");
    let kinds = ["Exists", "InSubquery", "OuterReferenceColumn", "ScalarSubquery", "SetComparison"];
    if expression.is_some_and(|expression| kinds.iter().any(|kind| expression.starts_with(kind))) {
        "a subquery that depends on the row around it as no join does is not supported".to_owned()
    } else {
        text
    }
}

/// An error of ours on its way through operators of the library; [`Error::from`] gets it back.
impl From<Error> for DataFusionError {
    fn from(error: Error) -> DataFusionError {
        let error = match error {
            // Functions tell of values, which files may have made.
            Error::Value(text) => Error::Value(brief(text)),
            error => error,
        };
        DataFusionError::External(Box::new(error))
    }
}

impl Error {
    /// An error that several readers of one stream got.
    fn from_shared(error: &DataFusionError) -> Error {
        match error.find_root() {
            DataFusionError::ResourcesExhausted(text) => Error::Memory(text.clone()),
            DataFusionError::External(inner) if let Some(own) = inner.downcast_ref::<Error>() => own.clone(),
            DataFusionError::ArrowError(inner, _) => Error::of_arrow(inner),
            DataFusionError::NotImplemented(text) => Error::NotImplemented(without_operators(text.clone())),
            DataFusionError::Execution(text) => Error::Value(brief(text.clone())),
            DataFusionError::Plan(text) => of_plan(text.clone()),
            DataFusionError::Internal(text) => Error::Internal(text.clone()),
            other => Error::Value(other.to_string()),
        }
    }
}

impl From<ArrowError> for Error {
    fn from(error: ArrowError) -> Error {
        match error {
            ArrowError::ExternalError(inner) => match inner.downcast::<Error>() {
                Ok(own) => *own,
                Err(inner) => Error::Value(inner.to_string()),
            },
            other => Error::of_arrow(&other),
        }
    }
}

impl Error {
    /// An error of a kernel, without the kernel's name for its kind: the class says it.
    fn of_arrow(error: &ArrowError) -> Error {
        match error {
            ArrowError::ExternalError(inner) if let Some(own) = inner.downcast_ref::<Error>() => own.clone(),
            // The value is wrong, and not its type: "Cannot cast string 'x' to value of Int32 type".
            ArrowError::CastError(text) if text.starts_with(WRONG_VALUE) => Error::Value(brief(text.clone())),
            ArrowError::CastError(text) => Error::Type(brief(text.clone())),
            ArrowError::DivideByZero => Error::ZeroDivision("division by zero".to_owned()),
            ArrowError::ArithmeticOverflow(text) => {
                let text = text.strip_prefix(OVERFLOW).unwrap_or(text);
                Error::Overflow(format!("out of range: {text}"))
            }
            ArrowError::NotYetImplemented(text) => Error::NotImplemented(text.clone()),
            ArrowError::MemoryError(text) => Error::Memory(text.clone()),
            ArrowError::ComputeError(text)
            | ArrowError::InvalidArgumentError(text)
            | ArrowError::ParseError(text)
            | ArrowError::SchemaError(text) => {
                Error::Value(brief(text.strip_prefix(OF_FUNCTION).unwrap_or(text).to_owned()))
            }
            other => Error::Value(brief(other.to_string())),
        }
    }
}

/// Beginnings of messages of kernels.
const WRONG_VALUE: &str = "Cannot cast string ";
const OVERFLOW: &str = "Overflow happened on: ";
const OF_FUNCTION: &str = "Execution error: ";

fn from_schema(error: SchemaError) -> Error {
    match error {
        SchemaError::FieldNotFound { field, valid_fields } => {
            let is_of_table = |column: &&Column| match (&field.relation, &column.relation) {
                (Some(asked), Some(of_column)) => asked.resolved_eq(of_column),
                (asked, _) => asked.is_none(),
            };
            let mut known: Vec<String> = Vec::new();
            for column in valid_fields.iter().filter(is_of_table) {
                if !known.contains(&column.name) {
                    known.push(column.name.clone());
                }
            }
            match &field.relation {
                Some(table) if known.is_empty() => {
                    no_such_table(&table.to_string(), &field.name, &valid_fields)
                }
                _ => Error::Key { label: field.name.clone(), known },
            }
        }
        other => Error::Value(other.to_string()),
    }
}

/// A name of a table before the name of a column that no table of the query has.
fn no_such_table(table: &str, label: &str, columns: &[Column]) -> Error {
    let mut known: Vec<String> =
        columns.iter().filter_map(|column| Some(column.relation.as_ref()?.to_string())).collect();
    known.dedup();
    let (tables, near) = (quoted(&known), nearest_text(table, &known));
    Error::Sql(format!("no column \"{table}.{label}\"; the tables at this place are {tables}{near}"))
}

/// Labels for a message: the first of them, if there are many.
pub(crate) fn quoted(labels: &[String]) -> String {
    const SHOWN: usize = 12;
    let mut text = labels
        .iter()
        .take(SHOWN)
        .map(|label| format!("{:?}", brief(label.clone())))
        .collect::<Vec<_>>()
        .join(", ");
    if labels.len() > SHOWN {
        text.push_str(&format!(" and {} more", labels.len() - SHOWN));
    }
    if text.is_empty() { "none".to_owned() } else { text }
}

/// A suggestion for a label that was probably mistyped.
fn nearest_text(label: &str, known: &[String]) -> String {
    nearest(label, known.iter().map(String::as_str))
        .map(|best| format!("; did you mean {:?}?", brief(best.to_owned())))
        .unwrap_or_default()
}

/// The known name that is most like `name`, if any is like it at all.
pub fn nearest<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let (same, known): (Vec<&str>, Vec<&str>) = known.partition(|known| known.eq_ignore_ascii_case(name));
    if let Some(&same) = same.first() {
        return Some(same);
    }
    let scored = known.into_iter().map(|known| (strsim::jaro_winkler(name, known), known));
    let best = scored.max_by(|a, b| a.0.total_cmp(&b.0))?;
    (best.0 > LIKENESS).then_some(best.1)
}

/// Likeness by Jaro and Winkler from which a name is suggested.
const LIKENESS: f64 = 0.8;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_label_is_told_with_the_nearest_one() {
        let known = ["price".to_owned(), "volume".to_owned()].to_vec();
        let text = Error::Key { label: "prise".to_owned(), known }.to_string();
        assert_eq!(text, "no column \"prise\"; there are \"price\", \"volume\"; did you mean \"price\"?");
    }

    #[test]
    fn errors_of_functions_are_told_without_their_kind() {
        let error = ArrowError::ComputeError("Execution error: no root of -1".to_owned());
        assert_eq!(Error::of_arrow(&error).to_string(), "no root of -1");
    }

    #[test]
    fn errors_of_files_tell_no_secrets() {
        let text =
            |path: &str| Error::file(path, FileFault::Missing, format!("no {path:?} (there)")).to_string();
        let signed = text("https://me:word@bucket.example/k.csv?X-Amz-Signature=abc");
        assert_eq!(signed, "https://bucket.example/k.csv?..: no \"https://bucket.example/k.csv?..\" (there)");
        let capital = text("HTTPS://account.example/k.csv?sv=2024&sig=abc");
        assert_eq!(
            capital,
            "HTTPS://account.example/k.csv?..: no \"HTTPS://account.example/k.csv?..\" (there)"
        );
        assert_eq!(text("s3://bucket/a?@b.csv"), "s3://bucket/a?@b.csv: no \"s3://bucket/a?@b.csv\" (there)");
        assert_eq!(text("a@b?.csv"), "a@b?.csv: no \"a@b?.csv\" (there)");
    }

    #[test]
    fn errors_of_kernels_have_the_classes_of_python() {
        let shared = |error: ArrowError| DataFusionError::Shared(Arc::new(error.into()));
        for (error, class, text) in [
            (ArrowError::DivideByZero, "ZeroDivisionError", "division by zero"),
            (
                ArrowError::ArithmeticOverflow("Overflow happened on: 9 + 1".to_owned()),
                "OverflowError",
                "out of range: 9 + 1",
            ),
            (
                ArrowError::CastError("Cannot cast string 'a' to value of Int32 type".to_owned()),
                "ValueError",
                "Cannot cast string 'a' to value of Int32 type",
            ),
            (ArrowError::CastError("no cast".to_owned()), "TypeError", "no cast"),
            (ArrowError::ParseError("no time".to_owned()), "ValueError", "no time"),
            (ArrowError::NotYetImplemented("not yet".to_owned()), "NotImplemented", "not yet"),
        ] {
            for found in [Error::of_arrow(&error), Error::from(shared(error))] {
                assert_eq!((found.class(), found.to_string().as_str()), (class, text));
            }
        }
    }

    #[test]
    fn calls_of_other_types_are_told_without_what_was_tried() {
        let text = "Internal error: many words. No function matches the given name and argument types 'sum(Utf8)'. \
                    You might need casts.\n\tCandidate functions:\n\tsum(Int64)\n\tsum(Float64)";
        let error = Error::from(DataFusionError::Plan(text.to_owned()));
        assert_eq!(error.class(), "TypeError");
        assert_eq!(error.to_string(), "no function sum(Utf8); there are sum(Int64), sum(Float64)");
    }

    #[test]
    fn an_error_keeps_its_class_with_its_place() {
        let error = Arc::new(Error::Type("no sum of texts".to_owned()));
        let placed = Error::At { error, file: "main.rs", line: 7 };
        assert_eq!(placed.class(), "TypeError");
        assert_eq!(placed.to_string(), "no sum of texts (asked for at main.rs:7)");
    }
}
