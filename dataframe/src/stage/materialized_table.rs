//! Tables of rows that a plan makes once: it reads them in several places.
//!
//! A plan is a tree, in which rows that are read twice stand twice: they are computed twice, may be others
//! each time, and n steps that read the one before twice make 2^n copies. A scan of such a table stands for
//! the rows instead, and has their plan beside it, where no rule of the library goes.

use super::materialized_rows::{MaterializedExec, MaterializedPlans};
use crate::engine_future::EngineFuture;
use crate::scanned::{Scan, Scanned, ScannedTable};
use arrow::datatypes::SchemaRef;
use datafusion::common::tree_node::{Transformed, TreeNodeRecursion};
use datafusion::common::{Result, internal_datafusion_err};
use datafusion::datasource::source_as_provider;
use datafusion::logical_expr::{
    Expr, LogicalPlan, Projection, TableScan, TableScanBuilder, TableSource, TableType,
};
use datafusion::physical_plan::ExecutionPlan;
use std::collections::BTreeMap;
use std::future::ready;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A table of rows that are made once.
#[derive(Clone, Debug)]
pub(crate) struct MaterializedTable {
    /// Its number. The rows may read tables of smaller ones.
    id: u64,
    rows: Arc<LogicalPlan>,
    schema: SchemaRef,
}

impl MaterializedTable {
    /// A table of the rows of a plan, whose columns have other names: of several tables they may have equal
    /// ones.
    pub(crate) fn new(rows: Arc<LogicalPlan>) -> Result<MaterializedTable> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let columns = rows.schema().columns().into_iter().enumerate();
        let columns = columns.map(|(at, column)| Expr::Column(column).alias(format!("c{at}"))).collect();
        let rows = LogicalPlan::Projection(Projection::try_new(columns, rows)?);
        Ok(MaterializedTable::numbered(NEXT.fetch_add(1, Ordering::Relaxed), Arc::new(rows)))
    }

    fn numbered(id: u64, rows: Arc<LogicalPlan>) -> MaterializedTable {
        let schema = Arc::clone(rows.schema().inner());
        MaterializedTable { id, rows, schema }
    }

    /// The same table of rows that another plan makes.
    pub(crate) fn of_rows(&self, rows: LogicalPlan) -> MaterializedTable {
        MaterializedTable::numbered(self.id, Arc::new(rows))
    }

    pub(crate) fn rows(&self) -> &Arc<LogicalPlan> {
        &self.rows
    }

    /// A scan of all columns.
    pub(crate) fn scan(self) -> Result<LogicalPlan> {
        let name = MaterializedTable::name(self.id);
        Ok(LogicalPlan::TableScan(TableScanBuilder::new(name, self.source()).build()?))
    }

    /// The name of the table of a number.
    pub(crate) fn name(id: u64) -> String {
        format!("__tharsis_materialized_{id}")
    }

    /// The table that a scan reads, if it is one of these.
    fn of(scan: &TableScan) -> Option<MaterializedTable> {
        let table = source_as_provider(&scan.source).ok()?;
        Scanned::<MaterializedTable>::table_of(&*table).cloned()
    }

    /// The plan of a scan: a reader of the rows that the plans of the session have.
    fn reader(&self, scan: &Scan<'_>) -> Result<Arc<dyn ExecutionPlan>> {
        let plans = scan.session.config().get_extension::<MaterializedPlans>();
        let plans =
            plans.ok_or_else(|| internal_datafusion_err!("a plan whose materialized rows have none"))?;
        let all = (0..self.schema.fields().len()).collect();
        let columns = scan.projection.unwrap_or(&all);
        let partitions = scan.session.config().target_partitions();
        Ok(Arc::new(MaterializedExec::new(&plans, self.id, columns, partitions)?))
    }
}

/// The tables that a plan reads, or that the rows of others of these read, by their numbers.
pub(crate) fn materialized_tables(plan: &LogicalPlan) -> Result<BTreeMap<u64, MaterializedTable>> {
    let (mut found, mut rest) = (BTreeMap::new(), Vec::new());
    let mut next = Some(plan.clone());
    while let Some(plan) = next {
        visit_materialized(&plan, |table, _| {
            if found.insert(table.id, table.clone()).is_none() {
                rest.push(table);
            }
        })?;
        next = rest.pop().map(|table| LogicalPlan::clone(&table.rows));
    }
    Ok(found)
}

/// The number of such tables that stand within each other: the rows of one read the next one.
pub(crate) fn materialized_levels(plan: &LogicalPlan) -> Result<usize> {
    let mut levels = BTreeMap::new();
    for (id, table) in materialized_tables(plan)? {
        let level = levels_below(&table.rows, &levels)? + 1;
        levels.insert(id, level);
    }
    levels_below(plan, &levels)
}

fn levels_below(plan: &LogicalPlan, levels: &BTreeMap<u64, usize>) -> Result<usize> {
    let mut most = 0;
    visit_materialized(plan, |table, _| most = most.max(levels.get(&table.id).copied().unwrap_or(0)))?;
    Ok(most)
}

/// The columns of such tables that the scans of a plan read, added to those of other plans.
pub(crate) fn add_read_columns(plan: &LogicalPlan, read: &mut BTreeMap<u64, Vec<usize>>) -> Result<()> {
    visit_materialized(plan, |table, scan| {
        let all = || (0..table.schema.fields().len()).collect();
        let columns = read.entry(table.id).or_default();
        columns.extend(scan.projection.clone().unwrap_or_else(all));
        columns.sort_unstable();
        columns.dedup();
    })
}

fn visit_materialized(
    plan: &LogicalPlan,
    mut visit: impl FnMut(MaterializedTable, &TableScan),
) -> Result<()> {
    plan.apply_with_subqueries(|node| {
        if let LogicalPlan::TableScan(scan) = node
            && let Some(table) = MaterializedTable::of(scan)
        {
            visit(table, scan);
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(())
}

/// The plan whose scans read other tables of these numbers.
pub(crate) fn with_tables(
    plan: LogicalPlan,
    tables: &BTreeMap<u64, Arc<dyn TableSource>>,
) -> Result<Transformed<LogicalPlan>> {
    plan.transform_up_with_subqueries(|node| {
        let LogicalPlan::TableScan(mut scan) = node else { return Ok(Transformed::no(node)) };
        let Some(source) = MaterializedTable::of(&scan).and_then(|table| tables.get(&table.id)) else {
            return Ok(Transformed::no(LogicalPlan::TableScan(scan)));
        };
        scan.source = Arc::clone(source);
        Ok(Transformed::yes(LogicalPlan::TableScan(TableScanBuilder::from(scan).build()?)))
    })
}

impl ScannedTable for MaterializedTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::Temporary
    }

    fn scan<'a>(&'a self, scan: Scan<'a>) -> EngineFuture<'a, Arc<dyn ExecutionPlan>> {
        Box::pin(ready(self.reader(&scan)))
    }
}
