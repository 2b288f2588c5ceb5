//! Stages: physical plans cut at their exchanges, and the tasks that they are made of.

pub(crate) mod applied;
pub(crate) mod asked_values;
mod codec;
mod compressed;
mod converter;
mod cut;
mod demand;
pub(crate) mod filtered_windows;
mod fragment;
mod input;
mod leaves;
pub(crate) mod limited_windows;
mod materialized_rows;
mod materialized_table;
mod namesakes;
pub(crate) mod not_in;
pub(crate) mod null_joins;
pub(crate) mod outer_joins;
mod part;
mod partitions;
mod piece;
pub(crate) mod random_filters;
mod ranged;
mod ranges;
mod rank_filter;
mod recursive;
pub(crate) mod repeated_projections;
mod resident_table;
pub(crate) mod row_number;
mod scans;
mod skew;
mod subqueries;
mod task;
pub(crate) mod unread_numbers;
mod versions;
mod volatile;
pub(crate) mod whole_aggregates;
mod wide_limits;
mod window_codec;

pub(crate) use codec::fragment_of_task;
pub use cut::Stages;
pub use demand::Demand;
pub use fragment::Fragment;
pub(crate) use input::InputExec;
pub(crate) use leaves::read_here;
pub(crate) use materialized_rows::{MaterializedPlans, MaterializedRows};
pub(crate) use materialized_table::{
    MaterializedTable, add_read_columns, materialized_levels, materialized_tables, with_tables,
};
pub(crate) use part::{JoinedParts, batches_or_error};
pub use part::{KeptPart, LocalPart, PartBatches, Resident};
pub(crate) use partitions::{PARTITIONS_MAX, largest_input_bytes, partitions};
pub use piece::{Needs, Piece, PieceSource};
pub(crate) use resident_table::ResidentTable;
pub(crate) use task::run;
pub use task::{OutputRows, TaskInputs, TaskRows};
