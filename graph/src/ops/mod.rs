//! The operators: one file per family, one place per operator.
//!
//! An operator is a struct that implements [`Operator`](crate::node::Operator): the shape and dtype of its
//! result (`infer`), and its stages on chunks (`lower`). Most are a few lines of `lower` in terms of views,
//! element-wise steps and folds; tiling, fusion, order and memory follow from that.

mod arrange;
mod correlate;
mod draw;
mod elementwise;
mod factor;
mod foreign;
mod fourier;
mod linear;
mod lines;
mod matmul;
mod positions;
mod ranked;
mod reduce;
mod resident;
mod rows;
mod scan;
mod search;
mod select;
mod sort;
mod source;
mod sparse;
mod tally;
mod tiles;
mod view;

pub use crate::resident::{KeptChunk, Resident, ResidentChunk};
pub use arrange::{Concatenate, Reshape};
pub use correlate::Correlate;
pub use draw::Drawn;
pub use elementwise::{Binary, Cast, Unary, Where};
pub use factor::{BasisOfBlocks, Factorize, UpperOfBlocks};
pub use foreign::{MapChunk, MapOverlap, Sink, Source};
pub use fourier::{CosineAlong, FourierAlong};
pub use linear::LinearPart;
pub use lines::{AlongLine, LINE_ELEMENTS_MAX, SortLines, Take, TakeAlong};
pub use matmul::MatMul;
pub use positions::{Count, FlatPositions, Require, RequireDivisor, Top};
pub use ranked::Ranked;
pub use reduce::{ArgExtreme, CountReduced, Moment, Reduce};
pub use rows::{Gather, Scatter};
pub use scan::Cumulative;
pub use search::SearchSorted;
pub use select::{Select, Selection};
pub use sort::{Sort, Sorted};
pub use source::{Full, Indexed};
pub use sparse::{From as SparseFrom, SparseCall, SparsePart};
pub use tally::Histogram;
pub use view::{Rechunk, Viewed};
