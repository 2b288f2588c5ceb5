//! Data frames with pandas' semantics, and SQL, on Arrow.
//!
//! A frame is a plan. When its rows are asked for, the plan is optimised and cut where rows are exchanged
//! ([`explain`](DataFrame::explain) prints the stages); an [`Executor`] runs the tasks of each stage. This
//! crate knows no processes: its executor runs tasks on threads, and another one may run them elsewhere.
//!
//! | concern | module |
//! |---|---|
//! | what users call | `frame`, `frame/series`, `read`, `write`, `sql`, `sqlite` |
//! | tables as texts and HTML | `repr` |
//! | settings of planning, the context of a task | `engine` |
//! | plans made physical | `planning` |
//! | the types of DataFusion's asynchronous traits; tables as its planner wants them | `engine_future`, `scanned` |
//! | physical plans without inputs | `leaf_plan` |
//! | own functions of plans | `functions` |
//! | the type that two numbers meet in | `promotion` |
//! | stages, tasks, fragments as bytes | `stage` |
//! | files in tasks | `scan` |
//! | functions of the program | `registered`, `stage/applied` |
//! | executors | `execute` |
//! | plans as texts, before and after a run; progress | `explain`, `metrics`, `progress`, `bar` |
//! | the library alone, for comparisons | `library` |
//! | parts for programs as data | `for_programs` |

#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod bar;
mod brief;
mod engine;
mod engine_future;
mod error;
mod execute;
mod explain;
#[doc(hidden)]
pub mod for_programs;
mod frame;
mod functions;
mod leaf_plan;
mod length_text;
mod library;
mod metrics;
mod planning;
mod progress;
mod promotion;
mod read;
mod registered;
mod repr;
mod scan;
mod scanned;
mod sql;
mod sql_place;
#[cfg(feature = "sqlite")]
mod sqlite;
mod stage;
mod table;
mod value;
mod write;

pub use engine::Environment;
pub use error::{Error, FileFault, FunctionFault, Result};
pub use execute::{
    Executor, Limits, LocalExecutor, Offer, Outcome, Parts, default_executor, offer_executor,
    tasks_left_behind,
};
pub use explain::{Explanation, RunLine, StageLine, StageRunLine};
pub use frame::series::{
    Categories, Cut, Factorize, Mapping, Operand, Operator, Series, Texts, Times, bdate_range,
    bdate_range_until, cut, date_range, date_range_until, qcut, timedelta_range, to_datetime, to_datetime_as,
    to_datetime_or_missing, to_datetime_utc, to_numeric, to_numeric_or_missing, to_timedelta,
    to_timedelta_or_missing,
};
pub use frame::{
    Aggregate, AsOf, Batches, Compare, Computation, Computed, Correlation, Counts, DataFrame, Dummies, Ends,
    Ewm, Fill, FillLimit, FrameOperand, GroupBy, GroupKey, Index, Interpolation, Join, JoinKind, Keep,
    LimitArea, LimitDirection, Melt, Merge, NaOption, Nearest, Rank, RankMethod, Reduce, Reduction, Resample,
    ResetIndex, Rolling, SetIndex, Sort, SpanRolling, Squeezed, Term, Ties, Transform, crosstab, dtype_named,
    eval,
};
pub use library::Library;
pub use metrics::{Metrics, StageMetrics, TaskMetrics};
pub use progress::{Done, Progress};
pub use read::{CsvOptions, local_path, read_arrow, read_avro, read_csv, read_json, read_parquet};
pub use registered::{
    Cell, ChunkParameter, ChunkResult, ColumnResult, Function, OverChunk, OverColumn, OverPair, OverRow,
    OverValue, Row, ValueParameter, ValueResult,
};
pub use scan::STORAGE_VARIABLES;
pub use sql::{SqlAnswer, SqlSession, sql, sql_line, sql_stream};
pub use sql_place::SqlPlace;
#[cfg(feature = "sqlite")]
pub use sqlite::{IfExists, read_sql};
pub use stage::{
    Demand, Fragment, KeptPart, LocalPart, Needs, OutputRows, PartBatches, Piece, PieceSource, Resident,
    Stages, TaskInputs, TaskRows,
};
pub use table::{Table, TableRow};
pub use value::{Column, Native, Value, lit, without_nan};
pub use write::{Compression, WriteOptions};

// Users write functions of chunks with it.
pub use arrow;
pub use tharsis_cancel::Cancel;

/// Items for generated code, not for users.
#[doc(hidden)]
pub mod generated {
    pub use crate::registered::{
        Arguments, ColumnResult, Columns, Definition, MadeValues, Prepared, Registered, ValueResult, chunk,
        column, encode, inventory, parameter, table,
    };
    pub use arrow::datatypes::DataType;
}
