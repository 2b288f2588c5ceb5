//! Lengths of axes. A length may be unknown until a part of the program has run.

/// The extent of an axis whose length is known only after a run. No real axis has this length.
pub const UNKNOWN: usize = usize::MAX;

/// Whether all extents are known.
pub fn is_known(shape: &[usize]) -> bool {
    !shape.contains(&UNKNOWN)
}

/// Whether two extents are equal, as far as is known.
pub fn agree(a: usize, b: usize) -> bool {
    a == b || a == UNKNOWN || b == UNKNOWN
}
