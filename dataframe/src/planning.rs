//! Plans made physical.

use crate::engine::{Settings, pin, session};
use crate::error::Result;
use crate::scan::Listings;
use crate::stage::read_here;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::execution::session_state::{SessionState, SessionStateBuilder};
use datafusion::logical_expr::{Expr, LogicalPlan};
use datafusion::physical_plan::ExecutionPlan;
use std::sync::Arc;

/// Operators of an expression within each other at most: the library goes through expressions by recursion,
/// also in tasks.
pub(crate) const OPERATORS_MAX: usize = 500;

/// Optimises a plan and makes it physical.
pub(crate) async fn physical(plan: &LogicalPlan, settings: Settings) -> Result<Arc<dyn ExecutionPlan>> {
    let mut session = session(settings);
    session.config_mut().set_extension(Arc::new(Listings::default()));
    read_here(session.create_physical_plan(plan).await?, &session.task_ctx()).await
}

/// Optimises a plan in the session of a user and makes it physical.
pub(crate) async fn physical_in(
    session: &SessionState,
    plan: &LogicalPlan,
    settings: Settings,
) -> Result<Arc<dyn ExecutionPlan>> {
    let planning = state(session, settings)?;
    read_here(planning.create_physical_plan(plan).await?, &session.task_ctx()).await
}

/// The state that makes one plan in the session of a user. Scans of one table have the same files in it.
fn state(session: &SessionState, settings: Settings) -> Result<SessionState> {
    // Building a state makes its catalog anew otherwise, in place of that which the session shares.
    let mut config = session.config().clone().with_create_default_catalog_and_schema(false);
    pin(config.options_mut());
    settings.choose(config.options_mut());
    config.set_extension(Arc::new(Listings::default()));
    let mut runtime = RuntimeEnvBuilder::from_runtime_env(session.runtime_env());
    runtime.cache_manager.list_files_cache = None;
    runtime.cache_manager.list_files_cache_limit = LISTINGS_BYTES_MAX;
    let runtime = Arc::new(runtime.build()?);
    let state = SessionStateBuilder::new_from_existing(session.clone());
    Ok(state.with_config(config).with_runtime_env(runtime).build())
}

/// Bytes of what a plan keeps of the files of tables.
const LISTINGS_BYTES_MAX: usize = 1 << 30;

/// The number of parts of an expression, and whether one is a window; it stops counting behind a bound.
pub(crate) fn parts(expr: &Expr, bound: usize) -> (usize, bool) {
    let (mut count, mut window) = (0, false);
    let visited = expr.apply(|part| {
        count += 1;
        window |= matches!(part, Expr::WindowFunction(_));
        Ok(if count > bound { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    });
    // No step of the visit fails.
    debug_assert!(visited.is_ok());
    (count, window)
}

/// Nodes below each other, and parts of an expression, for which the usual stack of a thread is enough.
const DEPTH_USUAL: usize = 30;
const PARTS_USUAL: usize = 100;

/// Whether a plan needs a large stack when it is optimised.
pub(crate) fn is_deep(plan: &LogicalPlan) -> bool {
    let mut rest = vec![(plan, 1)];
    while let Some((node, depth)) = rest.pop() {
        let mut large = depth > DEPTH_USUAL;
        let visited = node.apply_expressions(|expr| {
            large |= parts(expr, PARTS_USUAL).0 > PARTS_USUAL;
            Ok(TreeNodeRecursion::Continue)
        });
        // No step of the visit fails.
        debug_assert!(visited.is_ok());
        if large {
            return true;
        }
        rest.extend(node.inputs().into_iter().map(|input| (input, depth + 1)));
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::{block_on, session_of_user};
    use crate::read_csv;
    use datafusion::datasource::source_as_provider;
    use datafusion::prelude::SessionContext;

    /// The number of files of a scan in a state.
    fn files(plan: &LogicalPlan, state: &SessionState) -> usize {
        let mut scan = plan;
        while let Some(input) = scan.inputs().first().copied() {
            scan = input;
        }
        let LogicalPlan::TableScan(scan) = scan else { panic!("{plan} has no scan") };
        let table = source_as_provider(&scan.source).expect("a table");
        let made = block_on(async { Ok(table.scan(state, None, &[], None).await?) }).expect("a scan");
        let shown = datafusion::physical_plan::displayable(made.as_ref()).one_line().to_string();
        shown.matches(".csv").count()
    }

    #[test]
    fn scans_of_one_plan_have_the_same_files() {
        let folder = tempfile::tempdir().expect("a folder");
        let add = |name: &str| std::fs::write(folder.path().join(name), "a\n1\n").expect("a file");
        add("1.csv");
        let path = format!("{}/", folder.path().display());
        let frame = read_csv(&path, crate::CsvOptions::default());
        let frame = frame.frame().expect("a frame").plan.clone();
        let context = SessionContext::new_with_state(session_of_user(1));
        let made = format!(
            "create external table t stored as csv location '{path}' options ('format.has_header' 'true')"
        );
        let table = block_on(async {
            context.sql(&made).await?;
            Ok(context.table("t").await?.into_unoptimized_plan())
        });
        for (at, plan) in [frame, table.expect("a plan")].into_iter().enumerate() {
            let planning = || state(&context.state(), Settings::default()).expect("a state");
            let one = planning();
            let before = files(&plan, &one);
            add(&format!("{}.csv", at + 2));
            assert_eq!(files(&plan, &one), before, "{at}");
            assert_eq!(files(&plan, &planning()), before + 1, "{at}");
        }
    }
}
