//! Plans made physical.

use crate::engine::{Settings, pin, session};
use crate::error::{Error, Result};
use crate::scan::Listings;
use crate::scanned::ScannedTable;
use crate::stage::{
    MaterializedPlans, MaterializedRows, MaterializedTable, add_read_columns, largest_input_bytes,
    materialized_tables, read_here, with_tables,
};
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::execution::session_state::{SessionState, SessionStateBuilder};
use datafusion::logical_expr::{Expr, LogicalPlan, Projection};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::prelude::SessionConfig;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Operators of an expression within each other at most: the library goes through expressions by recursion,
/// also in tasks.
pub(crate) const OPERATORS_MAX: usize = 500;

/// Optimises a plan and makes it physical.
pub(crate) async fn physical(plan: &LogicalPlan, settings: Settings) -> Result<Arc<dyn ExecutionPlan>> {
    let mut session = session(settings);
    extend(session.config_mut());
    made_physical(&session, plan).await
}

/// Optimises a plan in the session of a user and makes it physical.
pub(crate) async fn physical_in(
    session: &SessionState,
    plan: &LogicalPlan,
    settings: Settings,
) -> Result<Arc<dyn ExecutionPlan>> {
    made_physical(&state(session, settings)?, plan).await
}

/// Gives a plan what all of its scans have in common.
fn extend(config: &mut SessionConfig) {
    config.set_extension(Arc::new(Listings::default()));
    config.set_extension(Arc::new(MaterializedPlans::default()));
}

/// The name of a statement that does more than ask for rows, also of one whose plan is asked for; none for a
/// query.
pub(crate) fn statement_name(plan: &LogicalPlan) -> Option<&str> {
    match plan {
        LogicalPlan::Copy(_) => Some("COPY"),
        LogicalPlan::Ddl(statement) => Some(statement.name()),
        LogicalPlan::Dml(statement) => Some(statement.op.name()),
        LogicalPlan::Statement(statement) => Some(statement.name()),
        LogicalPlan::Explain(asked) => statement_name(&asked.plan),
        LogicalPlan::Analyze(asked) => statement_name(&asked.input),
        _ => None,
    }
}

async fn made_physical(session: &SessionState, plan: &LogicalPlan) -> Result<Arc<dyn ExecutionPlan>> {
    // The operators of the library would write to files as the tasks go.
    if let Some(name) = statement_name(plan) {
        return Err(Error::NotImplemented(format!("{name} is a statement: tasks make the rows of queries")));
    }
    let optimised = Optimised::of(plan, session)?;
    let (planner, context) = (Arc::clone(session.query_planner()), session.task_ctx());
    let plans = session.config().get_extension::<MaterializedPlans>();
    for (id, RowsPlan { plan, columns }) in optimised.materialized {
        let rows = read_here(planner.create_physical_plan(&plan, session).await?, &context).await?;
        if let Some(plans) = &plans {
            let bytes = largest_input_bytes(&rows)?;
            plans.add(MaterializedRows::new(id, rows, columns, bytes)?);
        }
    }
    read_here(planner.create_physical_plan(&optimised.plan, session).await?, &context).await
}

/// An optimised plan.
pub(crate) struct Optimised {
    pub(crate) plan: LogicalPlan,
    /// Rows that are made once, by their numbers, after those that they read themselves.
    pub(crate) materialized: BTreeMap<u64, RowsPlan>,
}

/// An optimised plan of rows that are made once.
pub(crate) struct RowsPlan {
    pub(crate) plan: LogicalPlan,
    /// The columns of their table that somebody reads.
    columns: Vec<usize>,
}

impl Optimised {
    /// Optimises a plan, and those of rows that are made once, of which it makes no more columns than others
    /// read.
    pub(crate) fn of(plan: &LogicalPlan, session: &SessionState) -> Result<Optimised> {
        let tables = materialized_tables(plan)?;
        if tables.is_empty() {
            return Ok(Optimised { plan: session.optimize(plan)?, materialized: BTreeMap::new() });
        }
        // Types of columns may be others in the end, and those of what reads them then.
        let analyzer = session.analyzer();
        let mut sources = BTreeMap::new();
        let analysed = |plan: LogicalPlan, sources: &_| -> Result<LogicalPlan> {
            let plan = with_tables(plan, sources)?.data;
            Ok(analyzer.execute_and_check(plan, session.config_options(), |_, _| {})?)
        };
        let mut rows: Vec<(u64, LogicalPlan)> = Vec::new();
        for (id, table) in tables {
            let plan = analysed(LogicalPlan::clone(table.rows()), &sources)?;
            sources.insert(id, table.of_rows(plan.clone()).source());
            rows.push((id, plan));
        }
        let plan = analysed(plan.clone(), &sources)?;
        let optimise = |plan: LogicalPlan| session.optimizer().optimize(plan, session, |_, _| {});
        let (plan, mut read, mut materialized) = (optimise(plan)?, BTreeMap::new(), BTreeMap::new());
        add_read_columns(&plan, &mut read)?;
        // Those that read others come first.
        for (id, rows) in rows.into_iter().rev() {
            let Some(mut columns) = read.remove(&id) else { continue };
            if columns.is_empty() {
                // Rows without columns are counted by one.
                columns.extend(0..rows.schema().fields().len().min(1));
            }
            let plan = optimise(of_columns(rows, &columns)?)?;
            add_read_columns(&plan, &mut read)?;
            materialized.insert(id, RowsPlan { plan, columns });
        }
        Ok(Optimised { plan, materialized })
    }

    /// The plans as texts, each on lines of its own.
    pub(crate) fn text(&self) -> String {
        let materialized = self.materialized.iter().rev();
        let materialized = materialized.map(|(id, rows)| {
            format!("\n{}, made once:\n{}", MaterializedTable::name(*id), rows.plan.display_indent())
        });
        format!("{}{}", self.plan.display_indent(), materialized.collect::<Vec<String>>().concat())
    }
}

/// Some columns of rows.
fn of_columns(rows: LogicalPlan, columns: &[usize]) -> Result<LogicalPlan> {
    let all = rows.schema().columns();
    if columns.len() == all.len() {
        return Ok(rows);
    }
    let some = columns.iter().filter_map(|&column| all.get(column).cloned());
    let some = some.map(Expr::Column).collect();
    Ok(LogicalPlan::Projection(Projection::try_new(some, Arc::new(rows))?))
}

/// The state that makes one plan in the session of a user. Scans of one table have the same files in it.
fn state(session: &SessionState, settings: Settings) -> Result<SessionState> {
    // Building a state makes its catalog anew otherwise, in place of that which the session shares.
    let mut config = session.config().clone().with_create_default_catalog_and_schema(false);
    pin(config.options_mut());
    settings.choose(config.options_mut());
    extend(&mut config);
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
    let materialized = materialized_tables(plan).unwrap_or_default();
    let mut rest = vec![(plan, 1)];
    rest.extend(materialized.values().map(|table| (&**table.rows(), 1)));
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
    use crate::engine::block_on;
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
        let context = SessionContext::new_with_state(session(Settings::default()));
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
