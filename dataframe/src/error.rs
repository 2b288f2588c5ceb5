//! The one error type of frames.

use datafusion::common::{DataFusionError, SchemaError};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

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
    /// A defect of this crate or of a library under it.
    #[error("{0}")]
    Internal(String),
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
        Error::File { path: without_secrets(path), fault, reason: without_secrets(&reason.to_string()) }
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
            Error::Lost(_) => "Crash",
            Error::Task { class, .. } => class,
            Error::Function { fault: FunctionFault::Types(_), .. } => "TypeError",
            Error::Function { .. } | Error::Internal(_) | Error::Uncut { .. } => "RuntimeError",
            Error::At { error, .. } => error.class(),
            Error::Stream { cause, .. } => cause.class(),
        }
    }

    /// The error itself, without the place that asked for it.
    #[must_use]
    pub fn root(&self) -> &Error {
        match self {
            Error::At { error, .. } => error.root(),
            other => other,
        }
    }
}

impl From<DataFusionError> for Error {
    fn from(error: DataFusionError) -> Error {
        match error {
            DataFusionError::SchemaError(inner, _) => from_schema(*inner),
            DataFusionError::ResourcesExhausted(text) => Error::Memory(text),
            DataFusionError::NotImplemented(text) => Error::NotImplemented(text),
            DataFusionError::Plan(text) => Error::Value(text),
            DataFusionError::SQL(inner, _) => Error::Sql(inner.to_string()),
            DataFusionError::Execution(text) => Error::Value(text),
            DataFusionError::ArrowError(inner, _) => Error::from(*inner),
            DataFusionError::External(inner) => match inner.downcast::<Error>() {
                Ok(own) => *own,
                Err(inner) => Error::Value(inner.to_string()),
            },
            DataFusionError::ParquetError(inner) => Error::Value(format!("Parquet: {inner}")),
            DataFusionError::Context(_, inner) => Error::from(*inner),
            DataFusionError::Diagnostic(_, inner) => Error::from(*inner),
            DataFusionError::Shared(inner) => Error::from_shared(&inner),
            DataFusionError::Internal(text) => Error::Internal(text),
            other => Error::Value(other.to_string()),
        }
    }
}

/// An error of ours on its way through operators of the library; [`Error::from`] gets it back.
impl From<Error> for DataFusionError {
    fn from(error: Error) -> DataFusionError {
        DataFusionError::External(Box::new(error))
    }
}

impl Error {
    /// An error that several readers of one stream got.
    fn from_shared(error: &DataFusionError) -> Error {
        match error.find_root() {
            DataFusionError::ResourcesExhausted(text) => Error::Memory(text.clone()),
            DataFusionError::External(inner) if let Some(own) = inner.downcast_ref::<Error>() => own.clone(),
            other => Error::Value(other.to_string()),
        }
    }
}

impl From<arrow::error::ArrowError> for Error {
    fn from(error: arrow::error::ArrowError) -> Error {
        use arrow::error::ArrowError;
        match error {
            ArrowError::CastError(text) => Error::Type(text),
            ArrowError::InvalidArgumentError(text) => Error::Value(text),
            ArrowError::ExternalError(inner) => match inner.downcast::<Error>() {
                Ok(own) => *own,
                Err(inner) => Error::Value(inner.to_string()),
            },
            other => Error::Value(other.to_string()),
        }
    }
}

/// A text whose URLs have no user, no password and no query, which may be a signature.
fn without_secrets(text: &str) -> String {
    const SCHEME_END: &str = "://";
    let (mut shown, mut rest) = (String::with_capacity(text.len()), text);
    while let Some(at) = rest.find(SCHEME_END) {
        let (before, after) = rest.split_at(at + SCHEME_END.len());
        shown.push_str(before);
        let is_end = |c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '<' | '>' | ')');
        let (url, after) = after.split_at(after.find(is_end).unwrap_or(after.len()));
        let host_end = url.find(['/', '?']).unwrap_or(url.len());
        let url = url[..host_end].rfind('@').map_or(url, |user| &url[user + 1..]);
        // Servers take a scheme in any letters.
        let scheme = before.to_ascii_lowercase();
        let is_web = scheme.ends_with("http://") || scheme.ends_with("https://");
        match url.find('?').filter(|_| is_web) {
            Some(query) => shown.extend([&url[..query], "?.."]),
            None => shown.push_str(url),
        }
        rest = after;
    }
    shown.push_str(rest);
    shown
}

fn from_schema(error: SchemaError) -> Error {
    match error {
        SchemaError::FieldNotFound { field, valid_fields } => Error::Key {
            label: field.name.clone(),
            known: valid_fields.iter().map(|column| column.name.clone()).collect(),
        },
        other => Error::Value(other.to_string()),
    }
}

fn quoted(labels: &[String]) -> String {
    const SHOWN: usize = 12;
    let mut text = labels.iter().take(SHOWN).map(|label| format!("{label:?}")).collect::<Vec<_>>().join(", ");
    if labels.len() > SHOWN {
        text.push_str(&format!(" and {} more", labels.len() - SHOWN));
    }
    if text.is_empty() { "none".to_owned() } else { text }
}

/// A suggestion for a label that was probably mistyped.
fn nearest_text(label: &str, known: &[String]) -> String {
    nearest(label, known.iter().map(String::as_str))
        .map(|best| format!("; did you mean {best:?}?"))
        .unwrap_or_default()
}

/// The known name that is most like `name`, if any is like it at all.
pub(crate) fn nearest<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let scored = known.map(|known| (strsim::jaro_winkler(name, known), known));
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
    fn an_error_keeps_its_class_with_its_place() {
        let error = Arc::new(Error::Type("no sum of texts".to_owned()));
        let placed = Error::At { error, file: "main.rs", line: 7 };
        assert_eq!(placed.class(), "TypeError");
        assert_eq!(placed.to_string(), "no sum of texts (asked for at main.rs:7)");
    }
}
