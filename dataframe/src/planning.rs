//! Plans made physical.

use crate::engine::{Settings, pin, session};
use crate::error::Result;
use crate::stage::read_here;
use datafusion::execution::session_state::{SessionState, SessionStateBuilder};
use datafusion::logical_expr::LogicalPlan;
use datafusion::physical_plan::ExecutionPlan;
use std::sync::Arc;

/// Optimises a plan and makes it physical.
pub(crate) async fn physical(plan: &LogicalPlan, settings: Settings) -> Result<Arc<dyn ExecutionPlan>> {
    let session = session(settings);
    read_here(session.create_physical_plan(plan).await?, &session.task_ctx()).await
}

/// Optimises a plan in the session of a user and makes it physical.
pub(crate) async fn physical_in(
    session: &SessionState,
    plan: &LogicalPlan,
    settings: Settings,
) -> Result<Arc<dyn ExecutionPlan>> {
    // Building a state makes its catalog anew otherwise, in place of that which the session shares.
    let mut config = session.config().clone().with_create_default_catalog_and_schema(false);
    pin(config.options_mut());
    settings.choose(config.options_mut());
    let planning = SessionStateBuilder::new_from_existing(session.clone()).with_config(config).build();
    read_here(planning.create_physical_plan(plan).await?, &session.task_ctx()).await
}
