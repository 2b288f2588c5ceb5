//! Frames on the task engine: pandas' names and SQL over Arrow batches in the object store, computed by
//! remote tasks.
//!
//! ```
//! use tharsis::frame::{Aggregate, DataFrame};
//!
//! #[tharsis::main]
//! fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     let _runtime = tharsis::init().start()?;
//!     let sales = DataFrame::from_columns([
//!         ("city", vec!["Oslo", "Rome", "Oslo"].into()),
//!         ("sold", vec![3, 5, 4].into()),
//!     ]);
//!     let totals = sales.groupby(["city"]).agg([("sold", Aggregate::Sum)]);
//!     assert_eq!(totals.col("sold").values::<i64>()?, [Some(7), Some(5)]);
//!     Ok(())
//! }
//! ```
//!
//! The same program runs embedded, on worker processes and on a cluster: if a runtime is active, frames are
//! computed on it, otherwise on threads of the process.
//!
//! All of [`tharsis_dataframe`] is re-exported here. This is the only module that knows both frames and the
//! engine:
//!
//! | concern | module |
//! |---|---|
//! | order of calls, lifetime of references | `drive` |
//! | one task of a stage in a worker | `task` |
//! | rows of a task until it ends | `gathered` |
//! | outputs of many rows | `blocks` |
//! | time, rows and bytes of a task | `report` |
//! | errors of tasks, and of the engine | `fault`, `failure` |
//! | rows that stay in the store | `kept` |
//! | runtime of the default executor | `offer` |

mod blocks;
mod drive;
mod executor;
pub(crate) mod failure;
pub(crate) mod fault;
mod gathered;
pub(crate) mod kept;
mod offer;
pub(crate) mod report;
mod task;

#[cfg(feature = "arrays")]
pub use crate::between::{ToFrame, ToTensor};
pub use executor::RemoteExecutor;
pub(crate) use offer::{enter, leave};
pub use tharsis_dataframe::*;
/// ```
/// use tharsis::frame::{DataFrame, Table, function};
///
/// #[function]
/// fn above(rows: Table, limit: i64) -> Result<Table, tharsis::frame::Error> {
///     let sold = rows.column::<i64>("sold")?;
///     let kept: Vec<Option<i64>> = sold.into_iter().filter(|sold| *sold > Some(limit)).collect();
///     Table::from_columns([("sold", kept.into())])
/// }
///
/// #[function]
/// fn shout(city: &str) -> String {
///     city.to_uppercase()
/// }
///
/// let sales = DataFrame::from_columns([
///     ("city", vec!["Oslo", "Rome", "Oslo"].into()),
///     ("sold", vec![3, 5, 4].into()),
/// ]);
/// assert_eq!(sales.map_chunk(above::with(3)).col("sold").values::<i64>()?, [Some(5), Some(4)]);
/// assert_eq!(sales.col("city").map(shout::with()).values::<String>()?[1].as_deref(), Some("ROME"));
/// # Ok::<(), tharsis::frame::Error>(())
/// ```
///
pub use tharsis_macros::function;
