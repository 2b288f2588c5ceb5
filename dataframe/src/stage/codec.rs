//! Fragments as bytes.
//!
//! A stage travels as one physical plan: with outputs by hash, its root is the repartition that makes them.

use super::applied::{AppliedExec, Apply};
use super::compressed;
use super::converter::{Around, Converter};
use super::cut::Stage;
use super::input::{InputExec, Pattern, Source};
use super::ranges::RangeExec;
use super::rank_filter::RankFilterExec;
use super::recursive::{RecursiveNode, WorkTableNode};
use super::row_number::{Numbering, RowNumberExec};
use super::task::{Output, TaskInputs};
use super::versions::VersionsNode;
use super::wide_limits::LimitNode;
use crate::engine::{TaskOptions, on_deep_stack, task_context};
use crate::error::{Error, Result};
use crate::registered::{CalledFunction, SentFunction};
use crate::scan::{IpcSource, TextSource};
use crate::write::WriteExec;
use arrow::datatypes::{Field, Schema, SchemaRef};
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{
    DataFusionError, Result as EngineResult, internal_datafusion_err, internal_err, not_impl_err,
};
use datafusion::datasource::physical_plan::{FileScanConfig, FileSource};
use datafusion::datasource::source::DataSourceExec;
use datafusion::execution::TaskContext;
use datafusion::logical_expr::ScalarUDF;
use datafusion::physical_expr::{LexOrdering, Partitioning, PhysicalSortExpr};
use datafusion::physical_plan::recursive_query::RecursiveQueryExec;
use datafusion::physical_plan::repartition::RepartitionExec;
use datafusion::physical_plan::scalar_subquery::ScalarSubqueryExec;
use datafusion::physical_plan::work_table::WorkTableExec;
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties};
use datafusion_proto::bytes::{
    physical_plan_from_bytes_with_proto_converter, physical_plan_to_bytes_with_proto_converter,
};
use datafusion_proto::physical_plan::from_proto::{
    parse_physical_sort_exprs, parse_protobuf_file_scan_config,
};
use datafusion_proto::physical_plan::to_proto::{serialize_file_scan_config, serialize_physical_sort_exprs};
use datafusion_proto::physical_plan::{
    PhysicalExtensionCodec, PhysicalPlanDecodeContext, PhysicalProtoConverterExtension,
};
use datafusion_proto::protobuf;
use datafusion_proto::protobuf::physical_plan_node::PhysicalPlanType;
use prost::Message;
use std::any::Any;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Encodes a stage.
pub(crate) fn encode(stage: &Stage) -> Result<Vec<u8>> {
    let plan: Arc<dyn ExecutionPlan> = match &stage.output {
        Output::Whole => Arc::clone(&stage.fragment),
        Output::Hash(columns, count) => {
            let partitioning = Partitioning::Hash(columns.clone(), *count);
            Arc::new(RepartitionExec::try_new(Arc::clone(&stage.fragment), partitioning)?)
        }
        // No stage has outputs in turn, so that these can stand for ranges.
        Output::Ranges(count) => {
            let partitioning = Partitioning::RoundRobinBatch(*count);
            Arc::new(RepartitionExec::try_new(Arc::clone(&stage.fragment), partitioning)?)
        }
    };
    let plan = bytes_of(plan)?;
    let options = stage.options.iter().cloned().collect();
    Ok(StageNode { plan, options }.encode_to_vec())
}

/// Levels of a plan, and bytes of one, for which the usual stack of a thread is enough: both ways go through
/// it by recursion, with up to a hundred kilobytes for a level where nothing is optimised.
const LEVELS_USUAL: usize = 10;
const BYTES_USUAL: usize = 2 << 10;

fn bytes_of(plan: Arc<dyn ExecutionPlan>) -> Result<Vec<u8>> {
    let deep = is_deep(&plan);
    let encoded = || Ok(physical_plan_to_bytes_with_proto_converter(plan, &Codec, &converter())?.to_vec());
    if deep { on_deep_stack(encoded) } else { encoded() }
}

fn is_deep(plan: &Arc<dyn ExecutionPlan>) -> bool {
    let mut rest = vec![(plan, 1)];
    while let Some((plan, level)) = rest.pop() {
        if level > LEVELS_USUAL || has_deep_expression(plan) {
            return true;
        }
        rest.extend(plan.children().into_iter().map(|child| (child, level + 1)));
    }
    false
}

/// Whether a node has an expression with many others within each other.
fn has_deep_expression(plan: &Arc<dyn ExecutionPlan>) -> bool {
    let mut is_deep = false;
    let visited = plan.apply_expressions(&mut |expr| {
        let mut rest = vec![(expr, 1)];
        while let Some((part, level)) = rest.pop() {
            if level > LEVELS_USUAL {
                is_deep = true;
                return Ok(TreeNodeRecursion::Stop);
            }
            rest.extend(part.children().into_iter().map(|child| (child, level + 1)));
        }
        Ok(TreeNodeRecursion::Continue)
    });
    // A node that cannot be looked at may have one.
    is_deep || visited.is_err()
}

/// Whether a plan can be sent to a task.
pub(super) fn can_travel(plan: &Arc<dyn ExecutionPlan>) -> bool {
    bytes_of(Arc::clone(plan)).is_ok()
}

/// Decodes a stage.
pub(crate) fn decode(bytes: &[u8]) -> Result<Stage> {
    let node = StageNode::decode(bytes).map_err(|error| internal_datafusion_err!("{error}"))?;
    let options: TaskOptions = node.options.into_iter().collect();
    let context = task_context(None, Arc::new(TaskInputs::default()), &options)?;
    let decoded =
        || Ok(physical_plan_from_bytes_with_proto_converter(&node.plan, &context, &Codec, &converter())?);
    let plan = if node.plan.len() > BYTES_USUAL { on_deep_stack(decoded) } else { decoded() }?;
    let (fragment, output) = match plan.downcast_ref::<RepartitionExec>() {
        None => (plan, Output::Whole),
        Some(exchange) => {
            let output = match exchange.partitioning() {
                Partitioning::Hash(columns, count) => Output::Hash(columns.clone(), *count),
                Partitioning::RoundRobinBatch(count) => Output::Ranges(*count),
                other => return Err(internal_datafusion_err!("a stage with outputs by {other}").into()),
            };
            (Arc::clone(exchange.input()), output)
        }
    };
    let tasks = fragment.output_partitioning().partition_count();
    Ok(Stage { fragment, output, tasks, enough: None, splittable: Vec::new(), options })
}

/// The fragment of a stage for one task of this process: values of subqueries must not be set by several.
pub(crate) fn fragment_of_task(stage: &Stage) -> Result<Arc<dyn ExecutionPlan>> {
    if stage.fragment.is::<ScalarSubqueryExec>() {
        Ok(decode(&encode(stage)?)?.fragment)
    } else {
        Ok(Arc::clone(&stage.fragment))
    }
}

/// Encodes the operators of this crate.
#[derive(Debug)]
struct Codec;

#[derive(Clone, PartialEq, Message)]
struct StageNode {
    #[prost(bytes = "vec", tag = "1")]
    plan: Vec<u8>,
    #[prost(btree_map = "string, string", tag = "2")]
    options: BTreeMap<String, String>,
}

#[derive(Clone, PartialEq, Message)]
struct Node {
    #[prost(oneof = "Kind", tags = "1, 2, 3, 4, 5, 8, 9, 10, 11, 12, 13, 14, 15, 16")]
    kind: Option<Kind>,
}

#[derive(Clone, PartialEq, prost::Oneof)]
enum Kind {
    #[prost(message, tag = "1")]
    Input(InputNode),
    #[prost(message, tag = "2")]
    RowNumber(RowNumberNode),
    #[prost(message, tag = "3")]
    Range(RangeNode),
    /// The description of files as JSON.
    #[prost(string, tag = "4")]
    Write(String),
    #[prost(message, tag = "5")]
    Text(Box<TextNode>),
    #[prost(message, tag = "8")]
    Called(CalledNode),
    #[prost(message, tag = "9")]
    Ipc(Box<protobuf::FileScanExecConf>),
    #[prost(message, tag = "10")]
    Recursive(RecursiveNode),
    #[prost(message, tag = "11")]
    WorkTable(WorkTableNode),
    /// The compression of the files of the scan below.
    #[prost(string, tag = "12")]
    Compressed(String),
    #[prost(message, tag = "13")]
    RankFilter(RankFilterNode),
    /// A limit of more than 32 bits of the plan below.
    #[prost(message, tag = "14")]
    Limit(LimitNode),
    /// A plan as bytes: readers of messages go only so deep.
    #[prost(bytes, tag = "15")]
    Nested(Vec<u8>),
    /// The versions of the files of the scan below.
    #[prost(message, tag = "16")]
    Versions(VersionsNode),
}

#[derive(Clone, PartialEq, Message)]
struct TextNode {
    /// The form as JSON.
    #[prost(string, tag = "1")]
    form: String,
    #[prost(message, optional, tag = "2")]
    scan: Option<protobuf::FileScanExecConf>,
}

/// Functions of the program: what finds them, and the columns that they give.
#[derive(Clone, PartialEq, Message)]
struct CalledNode {
    #[prost(bytes = "vec", tag = "1")]
    spec: Vec<u8>,
    #[prost(message, optional, tag = "2")]
    schema: Option<protobuf::Schema>,
}

#[derive(Clone, PartialEq, Message)]
struct InputNode {
    #[prost(bool, tag = "1")]
    given: bool,
    #[prost(uint64, tag = "2")]
    source: u64,
    #[prost(bool, tag = "3")]
    gather: bool,
    /// 0 without a shuffle.
    #[prost(uint64, tag = "4")]
    shuffle: u64,
    #[prost(uint64, tag = "5")]
    tasks: u64,
    #[prost(message, optional, tag = "6")]
    schema: Option<protobuf::Schema>,
    #[prost(bool, tag = "7")]
    projected: bool,
    #[prost(uint64, repeated, tag = "8")]
    projection: Vec<u64>,
    #[prost(message, repeated, tag = "9")]
    ordering: Vec<protobuf::PhysicalSortExprNode>,
}

#[derive(Clone, PartialEq, Message)]
struct RowNumberNode {
    #[prost(string, tag = "1")]
    column: String,
    #[prost(bool, tag = "2")]
    exact: bool,
    #[prost(uint64, optional, tag = "3")]
    counted: Option<u64>,
}

#[derive(Clone, PartialEq, Message)]
struct RangeNode {
    #[prost(uint64, tag = "1")]
    count: u64,
    #[prost(message, repeated, tag = "2")]
    ordering: Vec<protobuf::PhysicalSortExprNode>,
}

#[derive(Clone, PartialEq, Message)]
struct RankFilterNode {
    #[prost(uint64, tag = "1")]
    count: u64,
    /// The keys of the groups, whose order means nothing.
    #[prost(message, repeated, tag = "2")]
    keys: Vec<protobuf::PhysicalSortExprNode>,
    #[prost(message, repeated, tag = "3")]
    ordering: Vec<protobuf::PhysicalSortExprNode>,
}

impl PhysicalExtensionCodec for Codec {
    fn try_decode(
        &self,
        bytes: &[u8],
        inputs: &[Arc<dyn ExecutionPlan>],
        context: &TaskContext,
        converter: &dyn PhysicalProtoConverterExtension,
    ) -> EngineResult<Arc<dyn ExecutionPlan>> {
        let node = Node::decode(bytes).map_err(|error| internal_datafusion_err!("{error}"))?;
        match (node.kind, inputs) {
            (Some(Kind::Input(node)), []) => Ok(Arc::new(self.input(&node, context, converter)?)),
            (Some(Kind::RowNumber(node)), [input]) => {
                let numbering = if node.exact { Numbering::Exact } else { Numbering::Key };
                let counted = node.counted.map(|stage| stage as usize);
                Ok(Arc::new(RowNumberExec::new(Arc::clone(input), node.column, numbering, counted, None)))
            }
            (Some(Kind::Range(node)), [input, samples]) => {
                let decode = PhysicalPlanDecodeContext::new(context, self);
                let ordering =
                    parse_physical_sort_exprs(&node.ordering, &decode, &input.schema(), converter)?;
                let ordering = LexOrdering::new(ordering)
                    .ok_or_else(|| internal_datafusion_err!("ranges of no keys"))?;
                let (input, samples) = (Arc::clone(input), Arc::clone(samples));
                Ok(Arc::new(RangeExec::new(input, samples, ordering, node.count as usize)))
            }
            (Some(Kind::RankFilter(node)), [input]) => {
                let decode = PhysicalPlanDecodeContext::new(context, self);
                let parse = |keys| parse_physical_sort_exprs(keys, &decode, &input.schema(), converter);
                let keys = parse(&node.keys)?.into_iter().map(|key| key.expr).collect();
                let ordering = LexOrdering::new(parse(&node.ordering)?)
                    .ok_or_else(|| internal_datafusion_err!("ranks without an order"))?;
                Ok(Arc::new(RankFilterExec::new(Arc::clone(input), keys, ordering, node.count as usize)))
            }
            (Some(Kind::Write(spec)), [input]) => {
                let spec =
                    serde_json::from_str(&spec).map_err(|error| internal_datafusion_err!("{error}"))?;
                Ok(Arc::new(WriteExec::new(Arc::clone(input), Arc::new(spec))))
            }
            (Some(Kind::Text(node)), []) => self.text(&node, context, converter),
            (Some(Kind::Called(node)), [_, ..]) => {
                let apply = Apply::received(&node.spec, node.schema()?).map_err(external)?;
                Ok(Arc::new(AppliedExec::new(inputs.to_vec(), apply)))
            }
            (Some(Kind::Ipc(scan)), []) => {
                let source = IpcSource::new(FileScanConfig::parse_table_schema_from_proto(&scan)?);
                self.scan(&scan, Arc::new(source), context, converter)
            }
            (Some(Kind::Recursive(node)), [start, step]) => node.decoded(start, step),
            (Some(Kind::WorkTable(node)), []) => node.decoded(),
            (Some(Kind::Compressed(compression)), [scan]) => compressed::with_compression(scan, &compression),
            (Some(Kind::Limit(node)), [input]) => node.limited(input),
            (Some(Kind::Versions(node)), [scan]) => node.of_files(scan),
            (Some(Kind::Nested(bytes)), []) => {
                let plan = protobuf::PhysicalPlanNode::decode(bytes.as_slice());
                let plan = plan.map_err(|error| internal_datafusion_err!("{error}"))?;
                let decode = PhysicalPlanDecodeContext::new(context, self);
                converter.proto_to_execution_plan(&plan, &decode)
            }
            (_, inputs) => internal_err!("an operator of frames with {} inputs", inputs.len()),
        }
    }

    fn try_encode(
        &self,
        node: Arc<dyn ExecutionPlan>,
        bytes: &mut Vec<u8>,
        converter: &dyn PhysicalProtoConverterExtension,
    ) -> EngineResult<()> {
        let kind = if let Some(input) = node.downcast_ref::<InputExec>() {
            Kind::Input(self.input_node(input, converter)?)
        } else if let Some(numbers) = node.downcast_ref::<RowNumberExec>() {
            Kind::RowNumber(RowNumberNode {
                column: numbers.column.clone(),
                exact: numbers.numbering == Numbering::Exact,
                counted: numbers.counted.map(|stage| stage as u64),
            })
        } else if let Some(ranges) = node.downcast_ref::<RangeExec>() {
            let ordering = ranges.ordering.iter().cloned();
            let ordering = serialize_physical_sort_exprs(ordering, self, converter)?;
            Kind::Range(RangeNode { count: ranges.count as u64, ordering })
        } else if let Some(filter) = node.downcast_ref::<RankFilterExec>() {
            let keys = filter.keys.iter().map(|key| PhysicalSortExpr::new_default(Arc::clone(key)));
            let keys = serialize_physical_sort_exprs(keys, self, converter)?;
            let ordering = filter.ordering.iter().cloned();
            let ordering = serialize_physical_sort_exprs(ordering, self, converter)?;
            Kind::RankFilter(RankFilterNode { count: filter.count as u64, keys, ordering })
        } else if let Some(files) = node.downcast_ref::<WriteExec>() {
            let spec = serde_json::to_string(&*files.spec);
            Kind::Write(spec.map_err(|error| internal_datafusion_err!("{error}"))?)
        } else if let Some((scan, _)) = scan_of::<IpcSource>(&node) {
            Kind::Ipc(Box::new(serialize_file_scan_config(scan, self, converter)?))
        } else if let Some((scan, source)) = scan_of::<TextSource>(&node) {
            let form = serde_json::to_string(source.form());
            let form = form.map_err(|error| internal_datafusion_err!("{error}"))?;
            let scan = serialize_file_scan_config(scan, self, converter)?;
            Kind::Text(Box::new(TextNode { form, scan: Some(scan) }))
        } else if let Some(applied) = node.downcast_ref::<AppliedExec>() {
            let spec = applied.apply().sent().map_err(external)?;
            Kind::Called(CalledNode::new(spec, &applied.schema())?)
        } else if let Some(query) = node.downcast_ref::<RecursiveQueryExec>() {
            Kind::Recursive(RecursiveNode::of(query)?)
        } else if let Some(table) = node.downcast_ref::<WorkTableExec>() {
            Kind::WorkTable(WorkTableNode::of(table)?)
        } else {
            return not_impl_err!("{} cannot run as a remote task", node.name());
        };
        Node { kind: Some(kind) }.encode(bytes).map_err(|error| internal_datafusion_err!("{error}"))
    }

    fn try_encode_udf(&self, function: &ScalarUDF, bytes: &mut Vec<u8>) -> EngineResult<()> {
        let function: &dyn Any = function.inner().as_ref();
        let Some(called) = function.downcast_ref::<CalledFunction>() else { return Ok(()) };
        let (sent, returns) = called.sent();
        let spec = postcard::to_allocvec(&sent).map_err(|error| internal_datafusion_err!("{error}"))?;
        let node = CalledNode::new(spec, &Schema::new(vec![Field::new("0", returns.clone(), true)]))?;
        node.encode(bytes).map_err(|error| internal_datafusion_err!("{error}"))
    }

    fn try_decode_udf(&self, name: &str, bytes: &[u8]) -> EngineResult<Arc<ScalarUDF>> {
        if bytes.is_empty() {
            return not_impl_err!("no function {name}");
        }
        let node = CalledNode::decode(bytes).map_err(|error| internal_datafusion_err!("{error}"))?;
        let sent: SentFunction =
            postcard::from_bytes(&node.spec).map_err(|error| internal_datafusion_err!("{error}"))?;
        let returns = node.schema()?.field(0).data_type().clone();
        let called = CalledFunction::received(sent, returns).map_err(external)?;
        Ok(Arc::new(ScalarUDF::from(called)))
    }
}

/// A converter for one plan.
fn converter() -> Converter {
    Converter::new(with_more)
}

/// The message of a plan with what it lacks around it.
fn with_more(more: Around, plan: protobuf::PhysicalPlanNode) -> protobuf::PhysicalPlanNode {
    let (kind, inputs) = match more {
        Around::Compression(compression) => (Kind::Compressed(compression), vec![plan]),
        Around::Limit(limit) => (Kind::Limit(limit), vec![plan]),
        Around::Versions(versions) => (Kind::Versions(versions), vec![plan]),
        Around::Nothing => (Kind::Nested(plan.encode_to_vec()), Vec::new()),
    };
    let node = Node { kind: Some(kind) }.encode_to_vec();
    let extension = protobuf::PhysicalExtensionNode { node, inputs };
    protobuf::PhysicalPlanNode { physical_plan_type: Some(PhysicalPlanType::Extension(extension)) }
}

impl CalledNode {
    fn new(spec: Vec<u8>, schema: &Schema) -> EngineResult<CalledNode> {
        Ok(CalledNode { spec, schema: Some(schema.try_into()?) })
    }

    fn schema(&self) -> EngineResult<SchemaRef> {
        let schema = self.schema.as_ref();
        let schema = schema.ok_or_else(|| internal_datafusion_err!("a function without a schema"))?;
        Ok(Arc::new(schema.try_into()?))
    }
}

fn external(error: Error) -> DataFusionError {
    DataFusionError::External(Box::new(error))
}

/// The scan of a source that a node is, if it is one.
fn scan_of<T: FileSource>(node: &Arc<dyn ExecutionPlan>) -> Option<(&FileScanConfig, &T)> {
    let scan = node.downcast_ref::<DataSourceExec>()?.data_source().downcast_ref::<FileScanConfig>()?;
    Some((scan, scan.file_source().downcast_ref::<T>()?))
}

impl Codec {
    fn text(
        &self,
        node: &TextNode,
        context: &TaskContext,
        converter: &dyn PhysicalProtoConverterExtension,
    ) -> EngineResult<Arc<dyn ExecutionPlan>> {
        let form = serde_json::from_str(&node.form).map_err(|error| internal_datafusion_err!("{error}"))?;
        let scan = node.scan.as_ref().ok_or_else(|| internal_datafusion_err!("a text without files"))?;
        let source =
            TextSource::new(FileScanConfig::parse_table_schema_from_proto(scan)?, Arc::new(form), false);
        self.scan(scan, Arc::new(source), context, converter)
    }

    fn scan(
        &self,
        scan: &protobuf::FileScanExecConf,
        source: Arc<dyn FileSource>,
        context: &TaskContext,
        converter: &dyn PhysicalProtoConverterExtension,
    ) -> EngineResult<Arc<dyn ExecutionPlan>> {
        let decode = PhysicalPlanDecodeContext::new(context, self);
        let scan = parse_protobuf_file_scan_config(scan, &decode, converter, source)?;
        Ok(DataSourceExec::from_data_source(scan))
    }

    fn input_node(
        &self,
        input: &InputExec,
        converter: &dyn PhysicalProtoConverterExtension,
    ) -> EngineResult<InputNode> {
        let (given, source) = match &input.source {
            Source::Given(table) => (true, *table),
            Source::Stage(stage) => (false, *stage),
            Source::Table(_) => return internal_err!("a table without a number cannot be sent"),
        };
        let ordering = input.ordering.iter().flatten().cloned();
        Ok(InputNode {
            given,
            source: source as u64,
            gather: input.pattern == Pattern::Gather,
            shuffle: if let Pattern::Shuffle(outputs) = input.pattern { outputs as u64 } else { 0 },
            tasks: input.tasks as u64,
            schema: Some(input.source_schema.as_ref().try_into()?),
            projected: input.projection.is_some(),
            projection: input.projection.iter().flatten().map(|&column| column as u64).collect(),
            ordering: serialize_physical_sort_exprs(ordering, self, converter)?,
        })
    }

    fn input(
        &self,
        node: &InputNode,
        context: &TaskContext,
        converter: &dyn PhysicalProtoConverterExtension,
    ) -> EngineResult<InputExec> {
        let number = node.source as usize;
        let source = if node.given { Source::Given(number) } else { Source::Stage(number) };
        let pattern = match (node.gather, node.shuffle) {
            (true, _) => Pattern::Gather,
            (false, 0) => Pattern::Each,
            (false, outputs) => Pattern::Shuffle(outputs as usize),
        };
        let schema =
            node.schema.as_ref().ok_or_else(|| internal_datafusion_err!("an input without a schema"))?;
        let schema: SchemaRef = Arc::new(schema.try_into()?);
        let projection =
            node.projected.then(|| node.projection.iter().map(|&column| column as usize).collect());
        let reader = |ordering| {
            let schema = Arc::clone(&schema);
            InputExec::new(source.clone(), pattern, node.tasks as usize, schema, projection.clone(), ordering)
        };
        let plain = reader(None)?;
        let decode = PhysicalPlanDecodeContext::new(context, self);
        let ordering = parse_physical_sort_exprs(&node.ordering, &decode, &plain.schema(), converter)?;
        match LexOrdering::new(ordering) {
            None => Ok(plain),
            ordering => reader(ordering),
        }
    }
}
