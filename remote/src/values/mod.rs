//! Values that are read in place: bytes, arrays and Arrow batches.
//!
//! Each is an ordinary serde value and may be part of other values. In task arguments, results and put values
//! its bytes are stored beside the in-band bytes, 64-byte aligned, and are mapped by the reader instead of
//! copied; the mapping lives as long as the value. Elsewhere (JSON, a file) it is plain data.
//!
//! Mapped values are checked: dtype, shape, length and alignment must fit, or decoding fails.

mod array;
#[cfg(feature = "arrow")]
mod batch;
mod blob;

pub use array::{Array, Element};
#[cfg(feature = "arrow")]
pub use batch::Batch;
pub use blob::Blob;
