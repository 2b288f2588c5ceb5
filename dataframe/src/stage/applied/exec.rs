//! The operator that calls functions of the program.

use super::apply::Apply;
use super::collect::Collector;
use super::unit::{OrderColumn, Unit};
use crate::error::Error;
use arrow::array::RecordBatch;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{DataFusionError, Result as EngineResult, internal_err};
use datafusion::execution::memory_pool::MemoryConsumer;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::{
    Distribution, EquivalenceProperties, LexOrdering, OrderingRequirements, Partitioning, PhysicalExpr,
    PhysicalSortExpr,
};
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    ChildrenPropertiesMode, DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties,
    InputDistributionRequirements, PlanProperties, ReplaceChildrenOptions,
};
use futures::{StreamExt, TryStreamExt};
use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;

type Plan = Arc<dyn ExecutionPlan>;

/// Calls functions of the program with the rows of its inputs.
#[derive(Clone, Debug)]
pub(crate) struct AppliedExec {
    inputs: Vec<Plan>,
    apply: Apply,
    properties: Arc<PlanProperties>,
}

impl AppliedExec {
    pub(crate) fn new(inputs: Vec<Plan>, apply: Apply) -> AppliedExec {
        let partitions = match (apply.spec.unit, inputs.first()) {
            (Unit::Whole, _) | (_, None) => 1,
            (_, Some(input)) => input.output_partitioning().partition_count(),
        };
        let properties = PlanProperties::new(
            EquivalenceProperties::new(Arc::clone(&apply.schema)),
            Partitioning::UnknownPartitioning(partitions),
            EmissionType::Incremental,
            Boundedness::Bounded,
        );
        AppliedExec { inputs, apply, properties: Arc::new(properties) }
    }

    pub(crate) fn apply(&self) -> &Apply {
        &self.apply
    }

    /// Whether it calls functions with the rows of one input, chunk by chunk.
    pub(crate) fn takes_chunks(&self) -> bool {
        self.apply.spec.unit == Unit::Chunk
    }

    /// Whether each partition reads all rows of the second input.
    pub(crate) fn shares_second(&self) -> bool {
        self.apply.spec.unit == Unit::Pair
    }

    fn collector(&self, input: usize, partition: usize, context: &TaskContext) -> EngineResult<Collector> {
        let consumer = MemoryConsumer::new(format!("AppliedExec[{partition}]"));
        let reservation = consumer.register(context.memory_pool());
        Collector::new(Arc::clone(&self.apply.spec), self.inputs[input].schema(), reservation)
    }

    fn keys(&self) -> impl Iterator<Item = Arc<dyn PhysicalExpr>> + '_ {
        (0..self.apply.spec.keys).map(|key| column(&self.inputs[0], key))
    }
}

fn column(input: &Plan, at: usize) -> Arc<dyn PhysicalExpr> {
    Arc::new(Column::new(input.schema().field(at).name(), at))
}

fn ordering(input: &Plan, order: &[OrderColumn]) -> Vec<PhysicalSortExpr> {
    order.iter().map(|key| PhysicalSortExpr::new(column(input, key.column), key.options())).collect()
}

impl DisplayAs for AppliedExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AppliedExec: {}", self.apply)
    }
}

impl ExecutionPlan for AppliedExec {
    fn name(&self) -> &'static str {
        "AppliedExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Plan> {
        self.inputs.iter().collect()
    }

    fn input_distribution_requirements(&self) -> InputDistributionRequirements {
        let spec = &self.apply.spec;
        let of_input = |at: usize| match spec.unit {
            Unit::Group => Distribution::KeyPartitioned(self.keys().collect()),
            Unit::ChunkGroup => Distribution::UnspecifiedDistribution,
            Unit::Whole => Distribution::SinglePartition,
            Unit::Pair if 0 < at => Distribution::SinglePartition,
            Unit::Chunk | Unit::Pair => {
                if spec.order[at].is_empty() {
                    Distribution::UnspecifiedDistribution
                } else {
                    Distribution::SinglePartition
                }
            }
        };
        InputDistributionRequirements::new((0..self.inputs.len()).map(of_input).collect())
    }

    fn required_input_ordering(&self) -> Vec<Option<OrderingRequirements>> {
        let spec = &self.apply.spec;
        let of_input = |at: usize| {
            let keys = self.keys().map(PhysicalSortExpr::new_default);
            let order = ordering(&self.inputs[at], &spec.order[at]);
            let order = match spec.unit {
                Unit::Group => LexOrdering::new(keys.chain(order)),
                Unit::ChunkGroup => None,
                Unit::Chunk | Unit::Pair | Unit::Whole => LexOrdering::new(order),
            };
            order.map(OrderingRequirements::from)
        };
        (0..self.inputs.len()).map(of_input).collect()
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![false; self.inputs.len()]
    }

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        vec![false; self.inputs.len()]
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> EngineResult<TreeNodeRecursion>,
    ) -> EngineResult<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn replace_children(
        self: Arc<Self>,
        children: Vec<Plan>,
        _: ReplaceChildrenOptions,
    ) -> EngineResult<Plan> {
        if children.len() == self.inputs.len() {
            Ok(Arc::new(AppliedExec::new(children, self.apply.clone())))
        } else {
            internal_err!("AppliedExec with {} inputs", children.len())
        }
    }

    fn with_new_children(self: Arc<Self>, children: Vec<Plan>) -> EngineResult<Plan> {
        self.replace_children(children, ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute))
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> EngineResult<SendableRecordBatchStream> {
        let first = self.inputs[0].execute(partition, Arc::clone(&context))?;
        let mut second = None;
        if self.shares_second() {
            let collector = self.collector(1, partition, &context)?;
            second = Some((self.inputs[1].execute(0, Arc::clone(&context))?, collector));
        }
        let collector = self.collector(0, partition, &context)?;
        let apply = self.apply.clone();
        let stream = async move {
            let others = match second {
                Some((second, collector)) => Some(all(second, collector).await?),
                None => None,
            };
            let running =
                Running { apply, others, input: first, collector, units: VecDeque::new(), ended: false };
            Ok::<_, DataFusionError>(futures::stream::try_unfold(running, Running::next))
        };
        let stream = futures::stream::once(stream).try_flatten();
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.schema(), stream)))
    }
}

/// All units of an input.
async fn all(
    mut input: SendableRecordBatchStream,
    mut collector: Collector,
) -> EngineResult<Vec<RecordBatch>> {
    let mut units = Vec::new();
    while let Some(batch) = input.next().await {
        units.extend(collector.push(batch?)?);
    }
    units.extend(collector.finish()?);
    Ok(units)
}

/// A partition whose functions are called as its rows come.
struct Running {
    apply: Apply,
    /// The units of the second input, if there is one.
    others: Option<Vec<RecordBatch>>,
    input: SendableRecordBatchStream,
    collector: Collector,
    /// Rows that functions have not been called with yet.
    units: VecDeque<Vec<RecordBatch>>,
    ended: bool,
}

impl Running {
    /// The rows of the next call.
    async fn next(mut self) -> EngineResult<Option<(RecordBatch, Running)>> {
        loop {
            if let Some(unit) = self.units.pop_front() {
                let made = self.apply.call(&unit).map_err(external)?;
                return Ok(Some((made, self)));
            }
            if self.ended {
                return Ok(None);
            }
            let complete = match self.input.next().await {
                Some(batch) => self.collector.push(batch?)?,
                None => {
                    self.ended = true;
                    self.collector.finish()?
                }
            };
            for unit in complete {
                match &self.others {
                    None => self.units.push_back(vec![unit]),
                    Some(others) => {
                        self.units.extend(others.iter().map(|other| vec![unit.clone(), other.clone()]));
                    }
                }
            }
        }
    }
}

fn external(error: Error) -> DataFusionError {
    DataFusionError::External(Box::new(error))
}
