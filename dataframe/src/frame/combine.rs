//! Frames put together: joins on columns, rows below each other, alignment on the index.

use super::clean::named_column;
use super::{DataFrame, Frame, Level, OrderKey, named};
use crate::error::{Error, Result};
use crate::frame::series::comparable;
use crate::promotion::{as_type, never_meet, of_column, unified};
use crate::stage::row_number::KEY_BITS;
use crate::value::is_text;
use arrow::datatypes::DataType;
use datafusion::common::tree_node::TreeNode;
use datafusion::common::{JoinType, NullEquality};
use datafusion::functions::expr_fn::coalesce;
use datafusion::logical_expr::expr_fn::{cast, when};
use datafusion::logical_expr::{Expr, ExprSchemable, LogicalPlan, LogicalPlanBuilder, Union, lit};
use std::sync::Arc;

/// The rows that a join keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JoinKind {
    /// Those with a partner.
    Inner,
    /// All of the left frame.
    Left,
    /// All of the right frame.
    Right,
    /// All of both.
    Outer,
    /// Each of the left with each of the right.
    Cross,
    /// Those of the left frame with a partner, once, without columns of the right.
    Semi,
    /// Those of the left frame without a partner.
    Anti,
}

/// Options of [`DataFrame::merge`]: the keys, the kind of join, suffixes.
#[must_use]
#[derive(Clone, Debug)]
pub struct Merge {
    left: Vec<String>,
    right: Vec<String>,
    kind: JoinKind,
    suffixes: (String, String),
    /// Whether rows keep the labels of the left frame.
    keeps_index: bool,
    sort: bool,
    indicator: Option<String>,
}

impl Merge {
    /// On columns that both frames have.
    pub fn on<'a>(labels: impl IntoIterator<Item = &'a str>) -> Merge {
        let labels: Vec<String> = labels.into_iter().map(str::to_owned).collect();
        Merge::inner(labels.clone(), labels)
    }

    fn inner(left: Vec<String>, right: Vec<String>) -> Merge {
        let suffixes = ("_x".to_owned(), "_y".to_owned());
        Merge {
            left,
            right,
            kind: JoinKind::Inner,
            suffixes,
            keeps_index: false,
            sort: false,
            indicator: None,
        }
    }

    /// On columns of the left frame and as many of the right one.
    pub fn on_pairs<'a>(
        left: impl IntoIterator<Item = &'a str>,
        right: impl IntoIterator<Item = &'a str>,
    ) -> Merge {
        let owned = |label: &str| label.to_owned();
        let (left, right) = (left.into_iter().map(owned).collect(), right.into_iter().map(owned).collect());
        Merge::inner(left, right)
    }

    /// Each row with each row.
    pub fn cross() -> Merge {
        Merge::inner(Vec::new(), Vec::new()).how(JoinKind::Cross)
    }

    /// The rows to keep; those with a partner by default.
    pub fn how(self, kind: JoinKind) -> Merge {
        Merge { kind, ..self }
    }

    /// Whether rows come in the order of their keys, then of the sides.
    pub fn sort(self, sort: bool) -> Merge {
        Merge { sort, ..self }
    }

    /// Adds a column that tells whether a row is of `both` frames, `left_only` or `right_only`; pandas calls
    /// it `_merge` by default.
    pub fn indicator(self, label: &str) -> Merge {
        Merge { indicator: Some(label.to_owned()), ..self }
    }

    /// The labels of the left frame's rows stay, as the index of the result.
    pub(super) fn keeping_index(self) -> Merge {
        Merge { keeps_index: true, ..self }
    }

    /// Endings of labels that both frames have beside the keys; `_x` and `_y` by default.
    pub fn suffixes(self, left: &str, right: &str) -> Merge {
        Merge { suffixes: (left.to_owned(), right.to_owned()), ..self }
    }

    /// The labels of keys that are one column of the result.
    pub(super) fn shared_keys(&self) -> Vec<String> {
        let pairs = self.left.iter().zip(&self.right);
        pairs.filter(|(left, right)| left == right).map(|(label, _)| label.clone()).collect()
    }

    fn check(&self, left: &Frame, right: &Frame) -> Result<()> {
        if self.left.len() != self.right.len() {
            let (left, right) = (self.left.len(), self.right.len());
            return Err(Error::Value(format!("{left} keys of the left frame, {right} of the right one")));
        }
        if self.left.is_empty() != (self.kind == JoinKind::Cross) {
            return Err(Error::Value("a cross join has no keys, every other join has some".to_owned()));
        }
        self.left.iter().try_for_each(|label| left.check(label))?;
        self.right.iter().try_for_each(|label| right.check(label))?;
        if let Some(label) = self
            .indicator
            .as_ref()
            .filter(|label| [left, right].iter().any(|side| side.columns.contains(label)))
        {
            return Err(Error::Value(format!(
                "{label:?} is a column already: the indicator needs another name"
            )));
        }
        for (of_left, of_right) in self.left.iter().zip(&self.right) {
            let types = (left.dtype(of_left)?, right.dtype(of_right)?);
            if types.0.is_numeric() != types.1.is_numeric() || never_meet(&types.0, &types.1) {
                let (left, right) = types;
                return Err(Error::Value(format!(
                    "{of_left:?} is {left} and {of_right:?} is {right}: they cannot be merged on; change the \
                     type of one"
                )));
            }
        }
        Ok(())
    }
}

impl DataFrame {
    /// The rows of two frames that have equal keys, side by side. A missing key equals a missing key.
    ///
    /// Rows come in the order of the left frame, then of the right one; with all rows of the right frame, in
    /// its order; with all rows of both, by their keys.
    ///
    /// ```
    /// use tharsis_dataframe::{DataFrame, JoinKind, Merge};
    /// let people = DataFrame::from_columns([
    ///     ("name", vec!["Ada", "Bo"].into()),
    ///     ("city", vec!["Oslo", "Rome"].into()),
    /// ]);
    /// let cities = DataFrame::from_columns([
    ///     ("city", vec!["Oslo"].into()),
    ///     ("land", vec!["Norway"].into()),
    /// ]);
    /// let both = people.merge(&cities, Merge::on(["city"]).how(JoinKind::Left));
    /// assert_eq!(both.col("land").values::<String>()?, [Some("Norway".to_owned()), None]);
    /// # Ok::<(), tharsis_dataframe::Error>(())
    /// ```
    #[track_caller]
    pub fn merge(&self, right: &DataFrame, merge: Merge) -> DataFrame {
        self.then(|left| {
            let right = right.frame()?;
            merge.check(left, right)?;
            Joined::new(left, right, &merge)?.frame()
        })
    }

    /// The rows of all frames, one frame after the other. Columns are matched by label; what a frame lacks is
    /// missing in its rows. With `ignore_index` the rows are numbered anew.
    #[track_caller]
    pub fn concat<'a>(frames: impl IntoIterator<Item = &'a DataFrame>, ignore_index: bool) -> DataFrame {
        let frames = frames.into_iter().map(DataFrame::frame).collect::<Result<Vec<_>>>();
        DataFrame::new(frames.and_then(|frames| {
            let frames: Vec<&Frame> = frames.into_iter().map(|frame| &**frame).collect();
            concat(&frames, ignore_index)
        }))
    }
}

/// A column of a join that is there in rows with a row of the left frame, and of the right one.
const THERE: [&str; 2] = ["__tharsis_l_there", "__tharsis_r_there"];

/// The parts of a join: both sides under names that do not meet.
struct Joined<'a> {
    merge: &'a Merge,
    left: Side,
    right: Side,
}

/// One side of a join.
pub(super) struct Side {
    pub(super) plan: LogicalPlan,
    /// Labels and names in the plan.
    pub(super) columns: Vec<(String, String)>,
    pub(super) order: Vec<OrderKey>,
    pub(super) index: Vec<Level>,
}

impl Side {
    /// The frame with all columns under names that begin with a prefix.
    pub(super) fn new(frame: &Frame, prefix: &str) -> Result<Side> {
        let frame = frame.with_order()?;
        let name = |column: &str| format!("{prefix}{column}");
        let mut columns: Vec<String> = frame.columns.clone();
        columns.extend(frame.key_columns().into_iter().filter(|key| !frame.columns.contains(key)));
        let exprs: Vec<Expr> = columns.iter().map(|column| named(column).alias(name(column))).collect();
        let order = frame.order.iter().map(|key| OrderKey { column: name(&key.column), ..key.clone() });
        let level = |level: &Level| Level { column: name(&level.column), name: level.name.clone() };
        Ok(Side {
            plan: frame.builder().project(exprs)?.build()?,
            columns: frame.columns.iter().map(|column| (column.clone(), name(column))).collect(),
            order: order.collect(),
            index: frame.index.iter().map(level).collect(),
        })
    }

    /// The side with a column that is missing in no row.
    fn marked(self, mark: &str) -> Result<Side> {
        let fields = self.plan.schema().fields().iter();
        let mut exprs: Vec<Expr> = fields.map(|field| named(field.name())).collect();
        exprs.push(lit(true).alias(mark));
        Ok(Side { plan: LogicalPlanBuilder::from(self.plan).project(exprs)?.build()?, ..self })
    }

    pub(super) fn name(&self, label: &str) -> String {
        let found = self.columns.iter().find(|(own, _)| own == label);
        found.map(|(_, name)| name.clone()).unwrap_or_default()
    }

    pub(super) fn has(&self, label: &str) -> bool {
        self.columns.iter().any(|(own, _)| own == label)
    }
}

impl<'a> Joined<'a> {
    fn new(left: &Frame, right: &Frame, merge: &'a Merge) -> Result<Joined<'a>> {
        let left = if merge.keeps_index { left.with_index()? } else { left.clone() };
        let (mut left, mut right) = (Side::new(&left, "__tharsis_l_")?, Side::new(right, "__tharsis_r_")?);
        if merge.indicator.is_some() {
            (left, right) = (left.marked(THERE[0])?, right.marked(THERE[1])?);
        }
        Ok(Joined { merge, left, right })
    }

    fn join_type(&self) -> JoinType {
        match self.merge.kind {
            JoinKind::Inner | JoinKind::Cross => JoinType::Inner,
            JoinKind::Left => JoinType::Left,
            JoinKind::Right => JoinType::Right,
            JoinKind::Outer => JoinType::Full,
            JoinKind::Semi => JoinType::LeftSemi,
            JoinKind::Anti => JoinType::LeftAnti,
        }
    }

    fn plan(&self) -> Result<LogicalPlanBuilder> {
        if self.merge.kind == JoinKind::Cross {
            let left = LogicalPlanBuilder::from(self.left.plan.clone());
            return Ok(left.cross_join(self.right.plan.clone())?);
        }
        let names = |side: &Side, labels: &[String]| -> Vec<String> {
            labels.iter().map(|label| side.name(label)).collect()
        };
        let keys = (names(&self.left, &self.merge.left), names(&self.right, &self.merge.right));
        joined(self.left.plan.clone(), self.right.plan.clone(), self.join_type(), keys)
    }

    /// Whether only rows of the left frame come out.
    fn is_filter(&self) -> bool {
        matches!(self.merge.kind, JoinKind::Semi | JoinKind::Anti)
    }

    /// Labels of the result, with their expressions.
    fn columns(&self) -> Result<Vec<(String, Expr)>> {
        let mut columns = self.columns_of_sides()?;
        if let Some(label) = &self.merge.indicator {
            let [left, right] = THERE.map(|mark| named(mark).is_not_null());
            let sides = match self.merge.kind {
                JoinKind::Semi => lit("both"),
                JoinKind::Anti => lit("left_only"),
                _ => when(left.clone().and(right), lit("both"))
                    .when(left, lit("left_only"))
                    .otherwise(lit("right_only"))?,
            };
            columns.push((label.clone(), sides));
        }
        Ok(columns)
    }

    fn columns_of_sides(&self) -> Result<Vec<(String, Expr)>> {
        let shared_keys = self.merge.shared_keys();
        let shared_key = |label: &String| shared_keys.contains(label);
        let mut columns = Vec::new();
        for (label, name) in &self.left.columns {
            if shared_key(label) && !self.is_filter() {
                let key = match self.merge.kind {
                    JoinKind::Right => named(&self.right.name(label)),
                    JoinKind::Outer => self.either(name, &self.right.name(label))?,
                    _ => named(name),
                };
                columns.push((label.clone(), key));
            } else if self.right.has(label) && !self.is_filter() {
                columns.push((format!("{label}{}", self.merge.suffixes.0), named(name)));
            } else {
                columns.push((label.clone(), named(name)));
            }
        }
        if self.is_filter() {
            return Ok(columns);
        }
        for (label, name) in self.right.columns.iter().filter(|(label, _)| !shared_key(label)) {
            let suffix = if self.left.has(label) { &*self.merge.suffixes.1 } else { "" };
            columns.push((format!("{label}{suffix}"), named(name)));
        }
        Ok(columns)
    }

    /// The key of the side that has a row, in the type of both.
    fn either(&self, left: &str, right: &str) -> Result<Expr> {
        let both = self.left.plan.schema().join(self.right.plan.schema())?;
        let (left, right) = unified(&both, named(left), named(right))?;
        Ok(coalesce(vec![left, right]))
    }

    /// The order of the result, by names in the plan.
    fn order(&self) -> Vec<OrderKey> {
        let (left, right) = (&self.left.order, &self.right.order);
        let last = |keys: &[OrderKey]| -> Vec<OrderKey> {
            keys.iter().map(|key| OrderKey { nulls_first: false, ..key.clone() }).collect()
        };
        match self.merge.kind {
            JoinKind::Right => [right.clone(), left.clone()].concat(),
            JoinKind::Semi | JoinKind::Anti => left.clone(),
            JoinKind::Outer => [last(left), last(right)].concat(),
            _ => [left.clone(), right.clone()].concat(),
        }
    }

    fn frame(&self) -> Result<Frame> {
        let plan = self.plan()?.build()?;
        let keeps = self.is_filter() || self.merge.keeps_index;
        let index = if keeps { self.left.index.clone() } else { Vec::new() };
        let frame = Frame { plan, columns: Vec::new(), index, order: self.order() };
        let mut columns = self.columns()?;
        if self.merge.kind != JoinKind::Outer && !self.merge.sort {
            return frame.project(columns);
        }
        // Equal keys keep the order of the sides.
        let labels: Vec<String> = columns.iter().map(|(label, _)| label.clone()).collect();
        let mut order = Vec::new();
        for (at, (left, right)) in self.merge.left.iter().zip(&self.merge.right).enumerate() {
            let (left, right) = (self.left.name(left), self.right.name(right));
            let key = if self.is_filter() { named(&left) } else { self.either(&left, &right)? };
            let column = format!("__tharsis_join_key_{at}");
            // pandas has missing times before all others, and other missing keys behind them.
            let nulls_first = key.get_type(frame.plan.schema())?.is_temporal();
            columns.push((column.clone(), key));
            order.push(OrderKey { nulls_first, ..OrderKey::growing(&column) });
        }
        let mut frame = frame.project(columns)?;
        order.append(&mut frame.order);
        Ok(Frame { order, columns: labels, ..frame })
    }
}

/// Rows of two plans with equal columns; a missing value equals a missing one. Numbers of two types are
/// compared as they are, in hidden columns of a type for both.
pub(super) fn joined(
    left: LogicalPlan,
    right: LogicalPlan,
    kind: JoinType,
    on: (Vec<String>, Vec<String>),
) -> Result<LogicalPlanBuilder> {
    let mut added: [Vec<Expr>; 2] = [Vec::new(), Vec::new()];
    let (mut lefts, mut rights) = (Vec::new(), Vec::new());
    for (at, (mine, others)) in on.0.into_iter().zip(on.1).enumerate() {
        let dtype = |plan: &LogicalPlan, column: &str| -> Result<DataType> {
            Ok(plan.schema().field_with_unqualified_name(column)?.data_type().clone())
        };
        let types = (dtype(&left, &mine)?, dtype(&right, &others)?);
        if never_meet(&types.0, &types.1) {
            let (one, other) = types;
            return Err(Error::Type(format!(
                "labels of {one} and of {other} never meet: change one of them"
            )));
        }
        // Truth values are numbers here.
        let is_number = |dtype: &DataType| dtype.is_numeric() || *dtype == DataType::Boolean;
        if types.0 == types.1 || !(is_number(&types.0) && is_number(&types.1)) {
            lefts.push(named_column(&mine));
            rights.push(named_column(&others));
            continue;
        }
        let (one, other) = comparable(named(&mine), named(&others), &types)?;
        let names = [format!("__tharsis_l_met_{at}"), format!("__tharsis_r_met_{at}")];
        lefts.push(named_column(&names[0]));
        rights.push(named_column(&names[1]));
        added[0].push(one.alias(&names[0]));
        added[1].push(other.alias(&names[1]));
    }
    let [of_left, of_right] = added;
    let left = with_columns(left, of_left)?;
    let right = with_columns(right, of_right)?;
    let equal = NullEquality::NullEqualsNull;
    Ok(LogicalPlanBuilder::from(left).join_detailed(right, kind, (lefts, rights), None, equal)?)
}

/// A plan with more columns.
fn with_columns(plan: LogicalPlan, columns: Vec<Expr>) -> Result<LogicalPlan> {
    if columns.is_empty() {
        return Ok(plan);
    }
    let plain = plan.schema().fields().iter().map(|field| named(field.name()));
    let exprs: Vec<Expr> = plain.chain(columns).collect();
    Ok(LogicalPlanBuilder::from(plan).project(exprs)?.build()?)
}

/// Most frames that are put together at a time: as many as fit above the bits of a row's key.
const FRAMES_MAX: usize = 1 << (62 - KEY_BITS);

/// Rows of frames below each other.
fn concat(frames: &[&Frame], ignore_index: bool) -> Result<Frame> {
    let Some(first) = frames.first() else {
        return Err(Error::Value("no frames to concatenate".to_owned()));
    };
    if frames.len() > FRAMES_MAX {
        return Err(Error::Value(format!(
            "{} frames are put together; at most {FRAMES_MAX} can be",
            frames.len()
        )));
    }
    let mut labels: Vec<String> = Vec::new();
    for label in frames.iter().flat_map(|frame| &frame.columns) {
        if !labels.contains(label) {
            labels.push(label.clone());
        }
    }
    let levels = first.index.len().max(1);
    if ignore_index && !labels.is_empty() && are_in_order(frames)? {
        return in_order(frames, labels);
    }
    let level_types = if ignore_index { Vec::new() } else { level_types(frames, levels)? };
    let types = types_of(&labels, frames)?;
    let mut plans = Vec::with_capacity(frames.len());
    for (number, frame) in frames.iter().enumerate() {
        let indexed = if ignore_index { (*frame).clone() } else { frame.with_index()? };
        if !ignore_index && indexed.index.len() != levels {
            return Err(Error::Value("frames with indices of different depth".to_owned()));
        }
        let (rows, row) = indexed.with_row()?;
        // One column for frame and row, which grows with the row: planning knows that a branch is in order.
        let key = named(&row) + lit((number as i64) << KEY_BITS);
        let mut exprs = vec![key.alias("__tharsis_row_0")];
        for (at, level) in rows.index.iter().enumerate().filter(|_| !ignore_index) {
            let (own, label) = (rows.dtype(&level.column)?, named(&level.column));
            let label = match level_types.get(at) {
                Some(Some(common)) => as_type(label, &own, common),
                _ => label,
            };
            exprs.push(label.alias(format!("__tharsis_level_{at}")));
        }
        exprs.extend(values(&rows, &labels, &types)?);
        plans.push(rows.builder().project(exprs)?.build()?);
    }
    let plan = below_each_other(plans)?;
    // A level keeps a name that it has in all frames.
    let name_of = |frame: &Frame, at: usize| frame.index.get(at).and_then(|level| level.name.clone());
    let level = |at: usize| {
        let name = name_of(first, at);
        let shared = frames.iter().all(|frame| name_of(frame, at) == name);
        Level { column: format!("__tharsis_level_{at}"), name: name.filter(|_| shared) }
    };
    let index = if ignore_index { Vec::new() } else { (0..levels).map(level).collect() };
    let order = vec![OrderKey::growing("__tharsis_row_0")];
    Ok(Frame { plan, columns: labels, index, order })
}

/// Whether plans give the rows of frames in order, without a sort, which planning drops below others.
fn are_in_order(frames: &[&Frame]) -> Result<bool> {
    for frame in frames {
        let sorts = frame.plan.exists(|node| Ok(matches!(node, LogicalPlan::Sort(_))))?;
        if sorts || !frame.order.is_empty() {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Rows of frames whose plans give them in order: so does a plan with the parts of all, one after the other,
/// and nothing needs to be numbered or merged.
fn in_order(frames: &[&Frame], columns: Vec<String>) -> Result<Frame> {
    let types = types_of(&columns, frames)?;
    let plan = |frame: &&Frame| Ok(frame.builder().project(values(frame, &columns, &types)?)?.build()?);
    let plan = below_each_other(frames.iter().map(plan).collect::<Result<_>>()?)?;
    Ok(Frame { plan, columns, index: Vec::new(), order: Vec::new() })
}

/// The types of the levels of all frames' indices, in which labels of each fit; `None` where the library
/// chooses. A label is never cast to a type only because the first frame has it.
fn level_types(frames: &[&Frame], levels: usize) -> Result<Vec<Option<DataType>>> {
    let of_level = |at: usize| {
        let dtype = |frame: &&Frame| match frame.index.get(at) {
            Some(level) => frame.dtype(&level.column),
            None => Ok(DataType::Int64),
        };
        let types = frames.iter().map(dtype).collect::<Result<Vec<_>>>()?;
        of_column(&types).map_err(|error| match error {
            Error::Type(text) => Error::Type(format!("level {at} of the index: {text}")),
            other => other,
        })
    };
    (0..levels).map(of_level).collect()
}

/// The type of each column in all frames that have it, if they have one, and the type of the first of them.
fn types_of(labels: &[String], all: &[&Frame]) -> Result<Vec<(Option<DataType>, DataType)>> {
    let type_of = |label: &String| {
        let having = all.iter().filter(|frame| frame.columns.contains(label));
        let types = having.map(|frame| frame.dtype(label)).collect::<Result<Vec<_>>>()?;
        let common = of_column(&types).map_err(|error| match error {
            Error::Type(text) => {
                // The type that `read_csv` has where it finds no value, a column of any type in pandas.
                let hint = if types.contains(&DataType::Float64) && types.iter().any(is_text) {
                    "; if the floats are a CSV file's column without any value, `CsvOptions::dtype` makes it \
                     one of texts"
                } else {
                    ""
                };
                Error::Type(format!("column {label:?}: {text}{hint}"))
            }
            other => other,
        })?;
        Ok((common, types.into_iter().next().unwrap_or(DataType::Null)))
    };
    labels.iter().map(type_of).collect()
}

/// The values of a frame under these labels, in the type of all frames that have one; missing ones where it
/// has none.
fn values(frame: &Frame, labels: &[String], types: &[(Option<DataType>, DataType)]) -> Result<Vec<Expr>> {
    let value = |(label, (common, first)): (&String, &(Option<DataType>, DataType))| {
        let own = frame.columns.contains(label).then(|| frame.dtype(label)).transpose()?;
        Ok(match (own, common) {
            (Some(own), Some(common)) if own != *common => cast(named(label), common.clone()).alias(label),
            (Some(_), _) => named(label),
            (None, common) => {
                let dtype = common.as_ref().unwrap_or(first).clone();
                cast(lit(datafusion::common::ScalarValue::Null), dtype).alias(label)
            }
        })
    };
    labels.iter().zip(types).map(value).collect()
}

/// The rows of plans of the same columns, in one union: a union for each of them would make a deep plan.
fn below_each_other(mut plans: Vec<LogicalPlan>) -> Result<LogicalPlan> {
    match plans.len() {
        0 => Err(Error::Internal("a union of nothing".to_owned())),
        1 => Ok(plans.swap_remove(0)),
        _ => {
            let plans = plans.into_iter().map(Arc::new).collect();
            Ok(LogicalPlan::Union(Union::try_new_by_name(plans)?))
        }
    }
}
