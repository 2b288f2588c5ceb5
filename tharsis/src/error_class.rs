//! Classes of errors that travel between processes as texts.

/// All classes of errors of frames and tensors.
const CLASSES: [&str; 29] = [
    "AxisError",
    "Cancelled",
    "ConnectionError",
    "Crash",
    "DataCorrupt",
    "FileExistsError",
    "FileNotFoundError",
    "FloatingPointError",
    "IndexError",
    "Internal",
    "KeyError",
    "LinAlgError",
    "MemoryError",
    "NotImplemented",
    "OSError",
    "ObjectArray",
    "OverflowError",
    "ParserError",
    "PathTraversal",
    "PermissionError",
    "RuntimeError",
    "SyntaxError",
    "Timeout",
    "TimeoutError",
    "TypeError",
    "UndefinedVariableError",
    "UnicodeDecodeError",
    "ValueError",
    "ZeroDivisionError",
];

/// The class of this name; the most general one for a name that is unknown.
pub(crate) fn class_named(name: &str) -> &'static str {
    CLASSES.into_iter().find(|class| *class == name).unwrap_or("RuntimeError")
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    #[test]
    fn a_class_is_found_by_its_name() {
        assert!(CLASSES.into_iter().all(|class| class_named(class) == class));
        assert_eq!(class_named("other"), "RuntimeError");
    }

    /// An error of each kind that frames have.
    #[cfg(feature = "dataframe")]
    pub(crate) fn of_frames() -> Vec<tharsis_dataframe::Error> {
        use std::sync::Arc;
        use tharsis_dataframe::{Error, FileFault, FunctionFault};
        let text = || "some text".to_owned();
        let at = |error: Error| Error::At { error: Arc::new(error), file: "a.rs", line: 3 };
        let faults = [
            FileFault::Corrupt,
            FileFault::Denied,
            FileFault::Encoding,
            FileFault::Exists,
            FileFault::Failed,
            FileFault::Mismatch,
            FileFault::Missing,
            FileFault::Syntax,
            FileFault::TimedOut,
            FileFault::TooLarge,
            FileFault::Unavailable,
            FileFault::Unsupported,
            FileFault::Changed,
        ];
        let of_files = faults.map(|fault| Error::File { path: text(), fault, reason: text() });
        let of_functions =
            [FunctionFault::Failed(text()), FunctionFault::Types(text()), FunctionFault::Unknown];
        let of_functions =
            of_functions.map(|fault| Error::Function { function: text(), place: text(), fault });
        let classes = ["Timeout", "MemoryError", "Crash", "RuntimeError"];
        let of_tasks = classes.map(|class| Error::Task { class, text: text() });
        let others = [
            Error::Key { label: text(), known: vec![text()] },
            Error::Row(text()),
            Error::Value(text()),
            Error::Type(text()),
            Error::Index(text()),
            Error::Sql(text()),
            Error::Uncut { path: text() },
            Error::Stream { rows: 3, cause: Arc::new(Error::timeout()) },
            Error::Syntax { at: 1, reason: text() },
            Error::Name(text()),
            Error::Memory(text()),
            Error::NotImplemented(text()),
            Error::Overflow(text()),
            Error::ZeroDivision(text()),
            Error::Lost(text()),
            Error::timeout(),
            Error::Cancelled,
            Error::Internal(text()),
            at(Error::timeout()),
            at(Error::Cancelled),
            at(Error::Memory(text())),
            at(Error::Type(text())),
        ];
        others.into_iter().chain(of_files).chain(of_functions).chain(of_tasks).collect()
    }
}
