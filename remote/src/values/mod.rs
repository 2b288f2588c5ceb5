//! Values that are read where they lie: bytes, arrays and Arrow batches.
//!
//! Each is an ordinary serde value and may stand anywhere inside other values. In task arguments, results and
//! put values its bytes travel beside the in-band bytes, 64-byte aligned, and are mapped on the other side
//! instead of copied; the mapping lives as long as the value. Elsewhere (JSON, a file) it is plain data.
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
