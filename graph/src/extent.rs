//! Lengths of axes, one of which may be unknown until something has run.

/// The extent of an axis whose length only running tells. It is no legal length, and equal to nothing but
/// itself.
pub const UNKNOWN: usize = usize::MAX;

/// Whether all extents are known.
pub fn is_known(shape: &[usize]) -> bool {
    !shape.contains(&UNKNOWN)
}

/// Whether two extents are equal, as far as is known.
pub fn agree(a: usize, b: usize) -> bool {
    a == b || a == UNKNOWN || b == UNKNOWN
}
