//! The states that statements are planned in: those of frames, with the planners that SQL needs.

use super::clauses::{asof_joins, pivots, samples};
use super::subqueries::lateral_sides;
use super::values::inner_values;
use super::values::interval_operators;
use super::values::typed_relations;
use super::values::zone_types;
use crate::engine::{Settings, answer_all_queries, built, config, parts};
use crate::read::json_lines::JsonLinesFactory;
use datafusion::execution::registry::FunctionRegistry;
use datafusion::execution::session_state::SessionState;
use datafusion::prelude::SessionConfig;
use std::sync::Arc;

/// The state of one query over frames.
pub(super) fn of_query() -> SessionState {
    with_planners(config(Settings::default()))
}

/// The state of a user's session, who sees and changes its options.
pub(super) fn of_session(partitions: usize) -> SessionState {
    let mut config = SessionConfig::new().with_target_partitions(partitions.max(1));
    answer_all_queries(config.options_mut());
    // As `read_parquet`: of nanoseconds, years after 2262 would be other ones.
    config.options_mut().execution.parquet.coerce_int96 = Some("us".to_owned());
    let mut state = with_planners(config.with_information_schema(true));
    // A registry that takes formats refuses none.
    let _registered = state.register_file_format(Arc::new(JsonLinesFactory::default()), true);
    state
}

fn with_planners(config: SessionConfig) -> SessionState {
    let planners = vec![
        lateral_sides::planner(),
        pivots::planner(),
        samples::planner(),
        asof_joins::planner(),
        typed_relations::planner(),
        inner_values::planner(),
    ];
    let parts = parts(config).with_relation_planners(planners);
    let mut state = built(parts.with_type_planner(zone_types::in_utc()));
    // A registry that takes planners refuses none.
    let _registered = state.register_expr_planner(interval_operators::planner());
    state
}
