//! Names of rows that pass between tasks, and the rows that a task needs.

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

/// The inputs that a task needs before it can run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Needs {
    /// Rows that other tasks made, and parts of resident tables.
    pub pieces: Vec<Piece>,
    /// Pieces that nobody has made, since the rows before them are enough: they stand for no rows.
    pub skipped: Vec<Piece>,
    /// Of some of the pieces, the first row that is wanted, and the one after the last.
    pub slices: Vec<(Piece, usize, usize)>,
    /// Stages whose row counts are needed, and the number of their first tasks that are counted.
    pub counts: Vec<(usize, usize)>,
}
