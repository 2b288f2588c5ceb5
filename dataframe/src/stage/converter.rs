//! Plans and expressions as messages, where those of the library would lose something.

use super::versions::VersionsNode;
use super::wide_limits::LimitNode;
use super::{compressed, wide_limits, window_codec};
use arrow::datatypes::{DataType, Schema};
use datafusion::common::{Result, ScalarValue, internal_datafusion_err};
use datafusion::logical_expr::physical_planning_context::{ScalarSubqueryResults, SubqueryIndex};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::{CastExpr, Literal};
use datafusion::physical_expr::scalar_subquery::ScalarSubqueryExpr;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::aggregates::{AggregateExec, PhysicalGroupBy};
use datafusion::physical_plan::scalar_subquery::{ScalarSubqueryExec, ScalarSubqueryLink};
use datafusion_proto::physical_plan::from_proto::parse_physical_expr_with_converter;
use datafusion_proto::physical_plan::to_proto::serialize_physical_expr_with_converter;
use datafusion_proto::physical_plan::{
    PhysicalExtensionCodec, PhysicalPlanDecodeContext, PhysicalPlanNodeExt, PhysicalProtoConverterExtension,
};
use datafusion_proto::protobuf;
use datafusion_proto::protobuf::physical_expr_node::ExprType;
use datafusion_proto::protobuf::physical_plan_node::PhysicalPlanType;
use prost::Message;
use std::cell::{Cell, RefCell};
use std::sync::Arc;

type Plan = Arc<dyn ExecutionPlan>;
type Expr = Arc<dyn PhysicalExpr>;

/// Levels of plans and expressions whose messages are within each other. Readers of messages refuse more than
/// a hundred, of which a level takes two or three.
const LEVELS: usize = 16;

/// The surroundings of a plan's message.
pub(super) enum Around {
    /// The compression of the files of a scan.
    Compression(String),
    /// A limit of more than 32 bits.
    Limit(LimitNode),
    /// The versions of the files of a scan.
    Versions(VersionsNode),
    /// Nothing but the bytes of the message, so that its levels do not count.
    Nothing,
}

/// Makes a message of what stands around another one.
type WithMore = fn(Around, protobuf::PhysicalPlanNode) -> protobuf::PhysicalPlanNode;

/// Converts one plan.
pub(super) struct Converter {
    with_more: WithMore,
    /// The number of plans and expressions around the one that is being converted.
    level: Cell<usize>,
    /// The values of subqueries that the expressions of the plan read. Operators of ours decode expressions
    /// too, in contexts that do not know them.
    values: RefCell<ScalarSubqueryResults>,
}

impl PhysicalProtoConverterExtension for Converter {
    fn proto_to_execution_plan(
        &self,
        proto: &protobuf::PhysicalPlanNode,
        context: &PhysicalPlanDecodeContext<'_>,
    ) -> Result<Plan> {
        match &proto.physical_plan_type {
            Some(PhysicalPlanType::ScalarSubquery(node)) => self.with_values(node, context),
            Some(PhysicalPlanType::Aggregate(node)) if is_of_no_keys(node) => {
                let without = protobuf::AggregateExecNode { groups: Vec::new(), ..(**node).clone() };
                let kind = Some(PhysicalPlanType::Aggregate(Box::new(without)));
                let plan = self.default_proto_to_execution_plan(
                    &protobuf::PhysicalPlanNode { physical_plan_type: kind },
                    context,
                )?;
                with_sets(&plan, node.groups.len())
            }
            _ => self.default_proto_to_execution_plan(proto, context),
        }
    }

    fn execution_plan_to_proto(
        &self,
        plan: &Plan,
        codec: &dyn PhysicalExtensionCodec,
    ) -> Result<protobuf::PhysicalPlanNode> {
        let level = self.level.get();
        self.level.set(level + 1);
        let proto = self.plan_message(plan, codec);
        self.level.set(level);
        Ok(if is_apart(level) { (self.with_more)(Around::Nothing, proto?) } else { proto? })
    }

    fn proto_to_physical_expr(
        &self,
        proto: &protobuf::PhysicalExprNode,
        schema: &Schema,
        context: &PhysicalPlanDecodeContext<'_>,
    ) -> Result<Expr> {
        if let Some(ExprType::Extension(node)) = &proto.expr_type
            && node.inputs.is_empty()
        {
            let inner = protobuf::PhysicalExprNode::decode(node.expr.as_slice());
            let inner = inner.map_err(|error| internal_datafusion_err!("{error}"))?;
            return self.proto_to_physical_expr(&inner, schema, context);
        }
        if let Some(ExprType::ScalarSubquery(node)) = &proto.expr_type {
            let dtype = node.data_type.as_ref();
            let dtype = dtype.ok_or_else(|| internal_datafusion_err!("a subquery without a type"))?;
            let (index, values) = (SubqueryIndex::new(node.index as usize), self.values.borrow().clone());
            return Ok(Arc::new(ScalarSubqueryExpr::new(dtype.try_into()?, node.nullable, index, values)));
        }
        half_literal(parse_physical_expr_with_converter(proto, schema, context, self)?)
    }

    fn physical_expr_to_proto(
        &self,
        expr: &Expr,
        codec: &dyn PhysicalExtensionCodec,
    ) -> Result<protobuf::PhysicalExprNode> {
        let level = self.level.get();
        self.level.set(level + 1);
        let proto = self.expr_message(expr, codec);
        self.level.set(level);
        let proto = proto?;
        if !is_apart(level) {
            return Ok(proto);
        }
        let node = protobuf::PhysicalExtensionExprNode { expr: proto.encode_to_vec(), inputs: Vec::new() };
        Ok(protobuf::PhysicalExprNode { expr_id: None, expr_type: Some(ExprType::Extension(node)) })
    }
}

/// Whether what is at a level has bytes of its own.
fn is_apart(level: usize) -> bool {
    level > 0 && level.is_multiple_of(LEVELS)
}

impl Converter {
    /// The message of a plan, with what the library's loses.
    fn plan_message(
        &self,
        plan: &Plan,
        codec: &dyn PhysicalExtensionCodec,
    ) -> Result<protobuf::PhysicalPlanNode> {
        if let Some((limit, without)) = wide_limits::apart(plan)? {
            let without = self.execution_plan_to_proto(&without, codec)?;
            return Ok((self.with_more)(Around::Limit(limit), without));
        }
        let mut proto =
            protobuf::PhysicalPlanNode::try_from_physical_plan_with_converter(Arc::clone(plan), codec, self)?;
        // The library writes a flag for each key of each set. Sets without keys would be lost.
        if let Some(aggregate) = plan.downcast_ref::<AggregateExec>()
            && let Some(PhysicalPlanType::Aggregate(node)) = &mut proto.physical_plan_type
            && is_of_no_keys(node)
        {
            node.groups = vec![true; aggregate.group_expr().groups().len()];
        }
        if let (Some(functions), Some(PhysicalPlanType::Window(node))) =
            (window_codec::functions(plan), &mut proto.physical_plan_type)
        {
            let encode = |expr: &Expr| self.physical_expr_to_proto(expr, codec);
            for (function, sent) in functions.iter().zip(&mut node.window_expr) {
                window_codec::complete(function, sent, encode)?;
            }
        }
        if let Some(compression) = compressed::compression(plan) {
            proto = (self.with_more)(Around::Compression(compression), proto);
        }
        if let Some(versions) = VersionsNode::of(plan) {
            proto = (self.with_more)(Around::Versions(versions), proto);
        }
        Ok(proto)
    }

    /// The message of an expression, with what the library's loses.
    fn expr_message(
        &self,
        expr: &Expr,
        codec: &dyn PhysicalExtensionCodec,
    ) -> Result<protobuf::PhysicalExprNode> {
        // The library writes a literal of half precision as one of single precision.
        let literal = expr.downcast_ref::<Literal>().map(Literal::value);
        if let Some(half @ ScalarValue::Float16(Some(_))) = literal {
            let single = half.cast_to(&DataType::Float32)?;
            let single: Expr = Arc::new(Literal::new(single));
            let cast: Expr = Arc::new(CastExpr::new(single, DataType::Float16, None));
            return serialize_physical_expr_with_converter(&cast, codec, self);
        }
        serialize_physical_expr_with_converter(expr, codec, self)
    }

    pub(super) fn new(with_more: WithMore) -> Converter {
        Converter { with_more, level: Cell::new(0), values: RefCell::default() }
    }

    /// An operator that sets the values of subqueries, and the plan below it, which reads them.
    fn with_values(
        &self,
        node: &protobuf::ScalarSubqueryExecNode,
        context: &PhysicalPlanDecodeContext<'_>,
    ) -> Result<Plan> {
        let input = node.input.as_deref();
        let input = input.ok_or_else(|| internal_datafusion_err!("subqueries of no plan"))?;
        let subqueries = node.subqueries.iter().enumerate().map(|(index, plan)| {
            let plan = self.proto_to_execution_plan(plan, context)?;
            Ok(ScalarSubqueryLink { plan, index: SubqueryIndex::new(index) })
        });
        let subqueries = subqueries.collect::<Result<Vec<_>>>()?;
        let values = ScalarSubqueryResults::new(subqueries.len());
        self.values.replace(values.clone());
        let input = self.proto_to_execution_plan(input, context)?;
        Ok(Arc::new(ScalarSubqueryExec::new(input, subqueries, values)))
    }
}

/// Whether an aggregate has sets of keys, all of them empty: `GROUPING SETS (())`.
fn is_of_no_keys(node: &protobuf::AggregateExecNode) -> bool {
    node.has_grouping_set && node.group_expr.is_empty()
}

/// An aggregate with as many sets of no keys.
fn with_sets(plan: &Plan, sets: usize) -> Result<Plan> {
    let aggregate = plan.downcast_ref::<AggregateExec>();
    let aggregate = aggregate.ok_or_else(|| internal_datafusion_err!("sets of keys of no aggregate"))?;
    let keys = PhysicalGroupBy::new(Vec::new(), Vec::new(), vec![Vec::new(); sets], true);
    let (mode, functions, filters) = (*aggregate.mode(), aggregate.aggr_expr(), aggregate.filter_expr());
    let input = Arc::clone(aggregate.input());
    let made = AggregateExec::try_new(
        mode,
        keys,
        functions.to_vec(),
        filters.to_vec(),
        input,
        aggregate.input_schema(),
    )?;
    Ok(Arc::new(made.with_limit_options(aggregate.limit_options())))
}

/// A literal of half precision in place of the cast that it was sent as.
fn half_literal(expr: Expr) -> Result<Expr> {
    let half = DataType::Float16;
    let cast = expr.downcast_ref::<CastExpr>().filter(|cast| *cast.cast_type() == half);
    let literal = cast.and_then(|cast| cast.expr().downcast_ref::<Literal>());
    match literal.map(Literal::value) {
        Some(single @ ScalarValue::Float32(Some(_))) => Ok(Arc::new(Literal::new(single.cast_to(&half)?))),
        _ => Ok(expr),
    }
}
