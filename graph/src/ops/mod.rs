//! The operators: one file per family, one place per operator.
//!
//! An operator is a struct that implements [`Operator`](crate::node::Operator): the shape and dtype of its
//! result (`infer`), and its stages on chunks (`lower`). Most are a few lines of `lower` in terms of views,
//! element-wise steps and folds; tiling, fusion, order and memory follow from that.

mod arrange;
mod elementwise;
mod factor;
mod foreign;
mod matmul;
mod reduce;
mod resident;
mod scan;
mod select;
mod source;
mod view;

pub use arrange::{Concatenate, Reshape};
pub use elementwise::{Binary, Cast, Unary, Where};
pub use factor::Factorize;
pub use foreign::{MapChunk, Sink, Source};
pub use matmul::MatMul;
pub use reduce::{ArgExtreme, CountReduced, Moment, Reduce};
pub use resident::{KeptChunk, Resident, ResidentChunk};
pub use scan::Cumulative;
pub use select::{Select, Selection};
pub use source::{Full, Indexed};
pub use view::{Rechunk, Viewed};
