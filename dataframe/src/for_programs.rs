//! Items for the crate of programs over frames, not for users: they may change at any time. Its methods stand
//! with their types, hidden from the docs.

use crate::error::Error;
use crate::frame::{Counts, ResetIndex};

pub use crate::error::nearest;
pub use crate::execute::{Binding, bind};
pub use crate::promotion::common_type;
pub use crate::value::is_text;
pub use crate::write::{FileFormat, unique};

/// The failure of the file system with a file.
#[must_use]
pub fn file_error(path: &str, error: &std::io::Error) -> Error {
    Error::io(path, error)
}

/// The label of the column of counts.
#[must_use]
pub fn label_of_counts(counts: Counts) -> &'static str {
    counts.label()
}

/// Whether a reset of an index drops it.
#[must_use]
pub fn drops_index(options: &ResetIndex) -> bool {
    options.drops()
}
