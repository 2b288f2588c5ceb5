//! The functions that plans of this crate name, found by their names on other processes.

use std::sync::Arc;
use tharsis_graph::{Foreign, ForeignName};

/// The function of this crate that a plan names: of passes over samples, of trees, or of neighbours.
///
/// ```
/// use tharsis_graph::ForeignName;
/// let name = ForeignName { kind: "no such kind".to_owned(), name: "{}".to_owned() };
/// assert!(tharsis_learn::foreign::find_foreign(&name).is_none());
/// ```
pub fn find_foreign(name: &ForeignName) -> Option<Arc<dyn Foreign>> {
    crate::passes::find_foreign(name)
        .or_else(|| crate::tree::find_foreign(name))
        .or_else(|| crate::neighbors::find_foreign(name))
}
