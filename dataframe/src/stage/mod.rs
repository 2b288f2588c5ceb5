//! Stages: physical plans cut at their exchanges, and the tasks that they are made of.

mod codec;
mod cut;
mod fragment;
mod input;
mod part;
pub(crate) mod row_number;
mod task;
pub(crate) mod unread_numbers;

pub use cut::{Needs, Stages};
pub use fragment::Fragment;
pub(crate) use input::InputExec;
pub use input::{Piece, PieceSource};
pub use part::{KeptPart, LocalPart, Resident};
pub use task::TaskInputs;
pub(crate) use task::run;
