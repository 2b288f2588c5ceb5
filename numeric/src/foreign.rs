//! Functions of this crate that plans name, found by their names on other processes.

use std::sync::Arc;
use tharsis_graph::{Foreign, ForeignName};

/// The function of this crate that a plan names: the reading and writing of files.
///
/// ```
/// use tharsis_graph::ForeignName;
/// let name = ForeignName { kind: "no such kind".to_owned(), name: "{}".to_owned() };
/// assert!(tharsis_numeric::foreign::find_foreign(&name).is_none());
/// ```
pub fn find_foreign(name: &ForeignName) -> Option<Arc<dyn Foreign>> {
    let found = crate::npy::find(name).or_else(|| crate::zarr::find(name));
    #[cfg(feature = "hdf5")]
    let found = found.or_else(|| crate::hdf5::find(name));
    found
}
