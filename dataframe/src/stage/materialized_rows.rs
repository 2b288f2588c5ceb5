//! Rows that are made once for all readers of one plan: by a stage of their own, whose rows each of them
//! reads.

use crate::leaf_plan::{Leaf, LeafPlan};
use arrow::datatypes::SchemaRef;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::common::{Result, Statistics, internal_datafusion_err, internal_err};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::{EquivalenceProperties, Partitioning};
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType};
use datafusion::physical_plan::statistics::{StatisticsArgs, StatisticsContext};
use datafusion::physical_plan::{ExecutionPlan, PlanProperties};
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

/// Rows that are made once, and the plan that makes them.
#[derive(Debug)]
pub(crate) struct MaterializedRows {
    /// Their number. Those that they read themselves have smaller ones.
    pub(super) id: u64,
    pub(super) plan: Arc<dyn ExecutionPlan>,
    /// The columns of their table that somebody reads: those of the plan.
    columns: Vec<usize>,
    // Each reader has these, and rows may be made of others again and again: they are computed once.
    statistics: Statistics,
    input_bytes: u64,
}

impl MaterializedRows {
    /// Rows of so many bytes that the plan reads.
    pub(crate) fn new(
        id: u64,
        plan: Arc<dyn ExecutionPlan>,
        columns: Vec<usize>,
        input_bytes: u64,
    ) -> Result<MaterializedRows> {
        let statistics = StatisticsContext::new().compute(&*plan, &StatisticsArgs::new())?;
        let statistics = Arc::unwrap_or_clone(statistics).to_inexact();
        Ok(MaterializedRows { id, plan, columns, statistics, input_bytes })
    }
}

/// The rows of one plan that are made once, by their numbers.
#[derive(Debug, Default)]
pub(crate) struct MaterializedPlans(Mutex<HashMap<u64, Arc<MaterializedRows>>>);

impl MaterializedPlans {
    pub(crate) fn add(&self, rows: MaterializedRows) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(rows.id, Arc::new(rows));
    }

    fn get(&self, id: u64) -> Option<Arc<MaterializedRows>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(&id).cloned()
    }
}

/// Reads rows that are made once: a leaf, since the plan that makes them is planned already, and not once
/// more for each reader. A plan that is cut has a reader of their stage instead.
pub(crate) type MaterializedExec = LeafPlan<MaterializedReader>;

/// The rows and columns of such a reader.
#[derive(Debug)]
pub(crate) struct MaterializedReader {
    pub(super) rows: Arc<MaterializedRows>,
    /// The columns to read, by their places in the rows.
    pub(super) projection: Vec<usize>,
    properties: Arc<PlanProperties>,
}

impl MaterializedExec {
    /// A reader of these columns of a table, of as many partitions as the plan is made for.
    pub(super) fn new(
        plans: &MaterializedPlans,
        id: u64,
        columns: &[usize],
        partitions: usize,
    ) -> Result<MaterializedExec> {
        let Some(rows) = plans.get(id) else { return internal_err!("rows are read before they are planned") };
        let place = |column: &usize| {
            let place = rows.columns.iter().position(|known| known == column);
            place.ok_or_else(|| internal_datafusion_err!("a column of materialized rows is not made"))
        };
        let projection = columns.iter().map(place).collect::<Result<Vec<usize>>>()?;
        let schema: SchemaRef = Arc::new(rows.plan.schema().project(&projection)?);
        // Their stage may have more tasks than its plan has partitions: no operator may rely on a single one.
        let partitions = partitions.max(2);
        let properties = PlanProperties::new(
            EquivalenceProperties::new(schema),
            Partitioning::UnknownPartitioning(partitions),
            EmissionType::Incremental,
            Boundedness::Bounded,
        );
        Ok(LeafPlan(MaterializedReader { rows, projection, properties: Arc::new(properties) }))
    }

    /// Bytes of the largest input of the rows.
    pub(super) fn input_bytes(&self) -> u64 {
        self.rows.input_bytes
    }
}

/// Rows that are made once and that a plan reads, or that other ones of these read: each once, and after
/// those that it reads itself.
pub(super) fn materialized_rows(plan: &Arc<dyn ExecutionPlan>) -> Result<Vec<Arc<MaterializedRows>>> {
    let (mut found, mut rest) = (BTreeMap::new(), vec![Arc::clone(plan)]);
    while let Some(plan) = rest.pop() {
        plan.apply(|node| {
            if let Some(reader) = node.downcast_ref::<MaterializedExec>()
                && found.insert(reader.rows.id, Arc::clone(&reader.rows)).is_none()
            {
                rest.push(Arc::clone(&reader.rows.plan));
            }
            Ok(TreeNodeRecursion::Continue)
        })?;
    }
    Ok(found.into_values().collect())
}

impl Leaf for MaterializedReader {
    const NAME: &'static str = "MaterializedExec";

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn describe(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "rows {}", self.rows.id)
    }

    fn execute(&self, _: usize, _: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        internal_err!("rows that are made once are read before their plan is cut")
    }

    fn statistics(&self) -> Statistics {
        self.rows.statistics.clone().project(Some(&self.projection))
    }
}
