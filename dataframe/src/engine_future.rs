//! Futures of DataFusion's traits, whose asynchronous functions are written here without `#[async_trait]`.
//!
//! The attribute gives each function where-clauses, and the compiler caches a proof of `Send` only where
//! there are none. A future that holds `&[Expr]` or `&LogicalPlan` makes it walk that whole graph of types,
//! again for each function and each pass: five functions took more than half of the time of checking this
//! crate.
//!
//! So a signature is what the attribute would make of it, and what is awaited stands in a function without
//! where-clauses, which the trait's function calls.

use datafusion::common::Result as EngineResult;
use futures::future::BoxFuture;

/// Future of a function of DataFusion's traits.
pub(crate) type EngineFuture<'a, T> = BoxFuture<'a, EngineResult<T>>;
