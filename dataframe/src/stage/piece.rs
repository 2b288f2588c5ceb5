//! Names of rows that pass between tasks.

use serde::{Deserialize, Serialize};

/// Rows that one task has made for one reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Piece {
    /// The maker: a resident table, or a stage.
    pub source: PieceSource,
    /// The number of the task, or of the table's part.
    pub task: usize,
    /// The number of the output among those of the task.
    pub output: usize,
}

/// The maker of a piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum PieceSource {
    /// A resident table of the job.
    Given(usize),
    /// A stage of the job.
    Stage(usize),
}
