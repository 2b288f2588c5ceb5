//! Stages: physical plans cut at their exchanges, and the tasks that they are made of.

pub(crate) mod applied;
mod codec;
mod cut;
mod demand;
mod fragment;
mod input;
mod part;
mod partitions;
mod piece;
mod ranged;
mod ranges;
mod resident_table;
pub(crate) mod row_number;
mod skew;
mod task;
pub(crate) mod unread_numbers;

pub use cut::Stages;
pub use demand::Demand;
pub use fragment::Fragment;
pub use part::{KeptPart, LocalPart, Resident};
pub(crate) use partitions::{PARTITIONS_MAX, partitions};
pub use piece::{Needs, Piece, PieceSource};
pub(crate) use resident_table::ResidentTable;
pub(crate) use task::run;
pub use task::{TaskInputs, TaskRows};
