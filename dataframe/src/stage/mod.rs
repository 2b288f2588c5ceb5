//! Stages: physical plans cut at their exchanges, and the tasks that they are made of.

pub(crate) mod applied;
mod codec;
mod converter;
mod cut;
mod demand;
mod fragment;
mod input;
mod leaves;
pub(crate) mod limited_windows;
mod part;
mod partitions;
mod piece;
mod ranged;
mod ranges;
mod recursive;
mod resident_table;
pub(crate) mod row_number;
mod skew;
mod subqueries;
mod task;
pub(crate) mod unread_numbers;
mod window_codec;

pub(crate) use codec::fragment_of_task;
pub use cut::Stages;
pub use demand::Demand;
pub use fragment::Fragment;
pub(crate) use input::InputExec;
pub(crate) use leaves::read_here;
pub use part::{KeptPart, LocalPart, Resident};
pub(crate) use partitions::{PARTITIONS_MAX, partitions};
pub use piece::{Needs, Piece, PieceSource};
pub(crate) use resident_table::ResidentTable;
pub(crate) use task::run;
pub use task::{TaskInputs, TaskRows};
