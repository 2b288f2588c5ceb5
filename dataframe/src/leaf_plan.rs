//! Leaves of physical plans: [`LeafPlan`] around a type that makes rows without inputs.

use arrow::datatypes::SchemaRef;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{Result, Statistics};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::statistics::StatisticsArgs;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties, ReplaceChildrenOptions,
};
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

/// A maker of rows that has no inputs and evaluates no expressions.
pub(crate) trait Leaf: fmt::Debug + Send + Sync + 'static {
    /// The name of its operator in plans.
    const NAME: &'static str;

    fn properties(&self) -> &Arc<PlanProperties>;

    /// Its line in a plan that is shown, behind the name.
    fn describe(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result;

    /// The rows of a partition.
    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream>;

    fn schema(&self) -> SchemaRef {
        Arc::clone(self.properties().equivalence_properties().schema())
    }

    fn statistics(&self) -> Statistics {
        Statistics::new_unknown(&self.schema())
    }
}

/// A leaf as an operator of a plan.
#[derive(Clone, Debug)]
pub(crate) struct LeafPlan<T>(pub(crate) T);

impl<T> Deref for LeafPlan<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T: Leaf> DisplayAs for LeafPlan<T> {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", T::NAME)?;
        self.0.describe(f)
    }
}

impl<T: Leaf> ExecutionPlan for LeafPlan<T> {
    fn name(&self) -> &'static str {
        T::NAME
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        self.0.properties()
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        Vec::new()
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn replace_children(
        self: Arc<Self>,
        _: Vec<Arc<dyn ExecutionPlan>>,
        _: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(self)
    }

    fn with_new_children(self: Arc<Self>, _: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(self)
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        self.0.execute(partition, context)
    }

    fn statistics_from_inputs(&self, _: &[Arc<Statistics>], _: &StatisticsArgs) -> Result<Arc<Statistics>> {
        Ok(Arc::new(self.0.statistics()))
    }
}
