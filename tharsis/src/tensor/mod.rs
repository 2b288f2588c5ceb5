//! Tensors on the task engine: NumPy's names over chunks that lie in the object store, computed by remote
//! tasks.
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
//! (`init().address(..)`): where a runtime is active, tensors are computed on it, otherwise on threads of the
//! process. A [`RemoteExecutor`] says more about how. Results are the same to the bit everywhere: what a task
//! computes depends on its plan alone.
//!
//! [`Error`] is that of tensors, with class, operands and the line that built them; `?` makes a
//! [`tharsis::Error`](crate::Error) of it.
//!
//! All of [`tharsis_numeric`] is here. This is the only place that knows both halves:
//!
//! | question | module |
//! |---|---|
//! | how does a chunk lie in the store | `stored` |
//! | what does a worker run, and what does it keep | `task`, `plans` |
//! | in which order are batches submitted, when are references dropped, when is room | `drive` |
//! | which error stands for which | `fault` |
//! | where do results stay | `kept` |
//! | how does a remote function get its chunk | `mapping` |
//! | which runtime is the default one's | `offer` |

mod drive;
mod executor;
mod fault;
mod kept;
mod mapping;
mod offer;
mod plans;
mod stored;
mod task;

pub use executor::RemoteExecutor;
pub use mapping::MapRemote;
pub(crate) use offer::{enter, leave};
pub use tharsis_graph::{EngineFailure, Error as GraphError, Executor, Explanation, Metrics};
pub use tharsis_numeric::*;
