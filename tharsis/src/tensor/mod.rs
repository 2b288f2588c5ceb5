//! Tensors on the task engine: NumPy's names over chunks in the object store, computed by remote tasks.
//!
//! ```
//! use tharsis::tensor::random::default_rng;
//!
//! #[tharsis::main]
//! fn main() -> Result<(), tharsis::Error> {
//!     let _runtime = tharsis::init().start()?;
//!     let points = default_rng(42).random(&[1_000_000, 2]);
//!     let inside = (&points * &points).sum(1).sqrt().less(1.0).count_nonzero(..);
//!     println!("{}", 4.0 * inside.item()?.to_f64() / 1e6);
//!     Ok(())
//! }
//! ```
//!
//! The same program runs embedded, on worker processes (`init().workers(2)`) and on a cluster
//! (`init().address(..)`): if a runtime is active, tensors are computed on it, otherwise on threads of the
//! process. [`RemoteExecutor`] has the options. Results are the same to the bit everywhere: the result of a
//! task depends on its plan alone.
//!
//! [`Error`] is the error of tensors, with class, operands and the line that built them; `?` converts it to a
//! [`tharsis::Error`](crate::Error).
//!
//! All of [`tharsis_numeric`] is re-exported here. This is the only module that knows both tensors and the
//! engine:
//!
//! | concern | module |
//! |---|---|
//! | form of a chunk in the store | `stored` |
//! | time and memory that a call took | `report` |
//! | tasks of a worker, and its compiled plans | `task`, `plans` |
//! | order of batches, lifetime of references, memory bound | `drive` |
//! | objects of small and large chunks | `bundles` |
//! | what batches in flight read, counted once | `in_use` |
//! | errors of tasks, and of the engine | `fault`, `failure` |
//! | results that stay in the store | `kept` |
//! | remote functions of chunks | `mapping` |
//! | runtime of the default executor | `offer` |

mod bundles;
mod drive;
mod executor;
mod failure;
pub(crate) mod fault;
mod in_use;
pub(crate) mod kept;
mod mapping;
mod offer;
mod plans;
pub(crate) mod report;
pub(crate) mod stored;
mod task;

pub use executor::RemoteExecutor;
pub use mapping::MapRemote;
pub(crate) use offer::{enter, leave};
pub use tharsis_graph::{EngineFailure, Error as GraphError, Executor, Explanation, Metrics};
pub use tharsis_numeric::*;
