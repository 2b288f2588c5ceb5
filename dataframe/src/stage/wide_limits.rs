//! Limits of more than 32 bits as messages, which the library cuts to their lower half.

use datafusion::common::{Result, not_impl_err};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::limit::{GlobalLimitExec, LocalLimitExec};
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::sorts::sort_preserving_merge::SortPreservingMergeExec;
use prost::Message;
use std::sync::Arc;

type Plan = Arc<dyn ExecutionPlan>;

/// A limit that an operator has beside what its message says.
#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub(super) struct LimitNode {
    /// 1 for an operator that is a limit of all rows, 2 for one that is a limit of each partition; else the
    /// limit is that of the operator below.
    #[prost(uint32, tag = "1")]
    operator: u32,
    #[prost(uint64, tag = "2")]
    skip: u64,
    #[prost(uint64, optional, tag = "3")]
    fetch: Option<u64>,
}

const ALL: u32 = 1;
const EACH: u32 = 2;

fn is_wide(rows: usize) -> bool {
    u32::try_from(rows).is_err()
}

/// The limit of an operator that its message would lose, and the plan that it limits.
pub(super) fn apart(plan: &Plan) -> Result<Option<(LimitNode, Plan)>> {
    if let Some(limit) = plan.downcast_ref::<GlobalLimitExec>() {
        let fetch = limit.fetch().map(|rows| rows as u64);
        let node = LimitNode { operator: ALL, skip: limit.skip() as u64, fetch };
        let wide = is_wide(limit.skip()) || limit.fetch().is_some_and(is_wide);
        return Ok(wide.then(|| (node, Arc::clone(limit.input()))));
    }
    let Some(fetch) = plan.fetch().filter(|rows| is_wide(*rows)) else { return Ok(None) };
    let node = |operator| LimitNode { operator, skip: 0, fetch: Some(fetch as u64) };
    if let Some(limit) = plan.downcast_ref::<LocalLimitExec>() {
        return Ok(Some((node(EACH), Arc::clone(limit.input()))));
    }
    if plan.is::<SortExec>() || plan.is::<SortPreservingMergeExec>() {
        // Their messages have 64 bits.
        return Ok(None);
    }
    match plan.with_fetch(None) {
        Some(without) => Ok(Some((node(0), without))),
        None => not_impl_err!("a limit of {fetch} rows of {} in a task", plan.name()),
    }
}

impl LimitNode {
    /// The plan with the limit.
    pub(super) fn limited(self, plan: &Plan) -> Result<Plan> {
        let fetch = self.fetch.map(|rows| rows as usize);
        match (self.operator, fetch) {
            (ALL, fetch) => Ok(Arc::new(GlobalLimitExec::new(Arc::clone(plan), self.skip as usize, fetch))),
            (EACH, Some(fetch)) => Ok(Arc::new(LocalLimitExec::new(Arc::clone(plan), fetch))),
            (_, fetch) => match plan.with_fetch(fetch) {
                Some(limited) => Ok(limited),
                None => not_impl_err!("{} takes no limit", plan.name()),
            },
        }
    }
}
