//! The values around a subquery that it reads, and its rows for each combination of them.

use super::plans::{columns, projection};
use crate::stage::asked_values::depends;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{Column, JoinType, NullEquality, Result as EngineResult};
use datafusion::functions::expr_fn::coalesce;
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::logical_plan::{Join, SubqueryAlias, Union, Window};
use datafusion::logical_expr::utils::conjunction;
use datafusion::logical_expr::{
    Distinct, Expr, Filter, LogicalPlan, LogicalPlanBuilder, Operator, Projection, binary_expr,
};
use std::sync::Arc;

/// The values around a subquery that it reads: each combination once.
pub(super) struct Outer {
    pub(super) rows: LogicalPlan,
    /// The columns around it, and what they are called here.
    pub(super) columns: Vec<(Column, String)>,
    /// The value that is compared with its rows, and what it is called there and here.
    pub(super) compared: Option<(Expr, [String; 2])>,
}

impl Outer {
    pub(super) fn names(&self) -> Vec<&str> {
        let compared = self.compared.iter().map(|(_, [name, _])| name.as_str());
        self.columns.iter().map(|(_, name)| name.as_str()).chain(compared).collect()
    }

    /// An expression of a subquery over rows that have the values around it.
    pub(super) fn read(&self, expr: Expr) -> EngineResult<Expr> {
        let read = expr.transform_up(|part| {
            let Expr::OuterReferenceColumn(_, column) = &part else { return Ok(Transformed::no(part)) };
            let name = self.columns.iter().find(|(known, _)| known == column).map(|(_, name)| name);
            Ok(match name {
                Some(name) => Transformed::yes(Expr::Column(Column::new_unqualified(name))),
                None => Transformed::no(part),
            })
        })?;
        Ok(read.data)
    }

    /// The rows of a subquery for each combination of values around it, which are more columns. `None` for
    /// operators between them that look at several rows.
    pub(super) fn beside(&self, plan: &LogicalPlan) -> EngineResult<Option<LogicalPlan>> {
        if !depends(plan)? {
            let rows = LogicalPlanBuilder::from(plan.clone()).cross_join(self.rows.clone())?;
            return Ok(Some(rows.build()?));
        }
        Ok(match plan {
            LogicalPlan::Projection(Projection { expr, input, .. }) => {
                let Some(rows) = self.beside(input)? else { return Ok(None) };
                let labels = NamePreserver::new_for_projection();
                let exprs = expr.iter().map(|expr| Ok(labels.save(expr).restore(self.read(expr.clone())?)));
                Some(self.with_own(exprs.collect::<EngineResult<Vec<Expr>>>()?, rows)?)
            }
            LogicalPlan::SubqueryAlias(SubqueryAlias { input, alias, .. }) => {
                let Some(rows) = self.beside(input)? else { return Ok(None) };
                let own = columns(input).into_iter().zip(input.schema().fields());
                let own =
                    own.map(|(column, field)| column.alias_qualified(Some(alias.clone()), field.name()));
                Some(self.with_own(own.collect(), rows)?)
            }
            LogicalPlan::Distinct(Distinct::All(input)) => {
                let Some(rows) = self.beside(input)? else { return Ok(None) };
                Some(LogicalPlan::Distinct(Distinct::All(Arc::new(rows))))
            }
            LogicalPlan::Union(Union { inputs, .. }) => {
                let sides = inputs.iter().map(|input| self.beside(input));
                let Some(sides) = sides.collect::<EngineResult<Option<Vec<LogicalPlan>>>>()? else {
                    return Ok(None);
                };
                let sides = sides.into_iter().map(Arc::new).collect();
                Some(LogicalPlan::Union(Union::try_new_with_loose_types(sides)?))
            }
            LogicalPlan::Join(join) => self.beside_join(join)?,
            LogicalPlan::Window(window) => self.beside_window(window)?,
            LogicalPlan::Filter(Filter { predicate, input, .. }) => {
                let Some(rows) = self.beside(input)? else { return Ok(None) };
                Some(LogicalPlan::Filter(Filter::try_new(self.read(predicate.clone())?, Arc::new(rows))?))
            }
            _ => None,
        })
    }
}

impl Outer {
    /// The rows with these columns, and those of the values around.
    fn with_own(&self, own: Vec<Expr>, rows: LogicalPlan) -> EngineResult<LogicalPlan> {
        let names = self.names().into_iter().map(|name| Expr::Column(Column::new_unqualified(name)));
        let made = projection(own.into_iter().chain(names).collect(), Arc::new(rows))?;
        Ok(Arc::unwrap_or_clone(made))
    }

    /// Windows over the rows of each combination of values around, apart from those of the others.
    fn beside_window(&self, window: &Window) -> EngineResult<Option<LogicalPlan>> {
        let Window { input, window_expr, schema } = window;
        let Some(rows) = self.beside(input)? else { return Ok(None) };
        let around: Vec<Expr> =
            self.names().into_iter().map(|name| Expr::Column(Column::new_unqualified(name))).collect();
        let exprs = window_expr.iter().map(|expr| {
            let apart = self.read(expr.clone())?.transform_down(|part| {
                let Expr::WindowFunction(mut call) = part else { return Ok(Transformed::no(part)) };
                call.params.partition_by.extend(around.iter().cloned());
                Ok(Transformed::yes(Expr::WindowFunction(call)))
            })?;
            Ok(apart.data)
        });
        let exprs = exprs.collect::<EngineResult<Vec<Expr>>>()?;
        let width = rows.schema().fields().len();
        let made = LogicalPlan::Window(Window::try_new(exprs, Arc::new(rows))?);
        // The plans above know the values by the texts that they had.
        let values = columns(&made).split_off(width);
        let named = values.into_iter().zip(schema.iter().skip(input.schema().fields().len()));
        let named =
            named.map(|(column, (table, field))| column.alias_qualified(table.cloned(), field.name()));
        let own = columns(input).into_iter().chain(named).collect();
        Ok(Some(self.with_own(own, made)?))
    }

    /// A join with the values around beside one of its sides, each of whose rows it has at least once, or
    /// with all that it is joined to; else beside both.
    fn beside_join(&self, join: &Join) -> EngineResult<Option<LogicalPlan>> {
        let is_left = match (join.join_type, depends(&join.left)?, depends(&join.right)?) {
            (JoinType::Inner | JoinType::Left | JoinType::LeftSemi | JoinType::LeftAnti, _, false) => true,
            (JoinType::Inner | JoinType::Right, false, _) => false,
            _ => return self.beside_both(join),
        };
        let side = if is_left { &join.left } else { &join.right };
        let Some(side) = self.beside(side)? else { return Ok(None) };
        let (left, right) = if is_left {
            (Arc::new(side), Arc::clone(&join.right))
        } else {
            (Arc::clone(&join.left), Arc::new(side))
        };
        let made = self.read_join(join, left, right, Vec::new())?;
        Ok(Some(self.with_own(shown(join), LogicalPlan::Join(made))?))
    }

    /// A join of the rows of each combination of values around alone.
    fn beside_both(&self, join: &Join) -> EngineResult<Option<LogicalPlan>> {
        let kind = join.join_type;
        let is_known = matches!(
            kind,
            JoinType::Inner
                | JoinType::Left
                | JoinType::Right
                | JoinType::Full
                | JoinType::LeftSemi
                | JoinType::LeftAnti
        );
        let (Some(left), Some(right)) = (self.beside(&join.left)?, self.beside(&join.right)?) else {
            return Ok(None);
        };
        if !is_known {
            return Ok(None);
        }
        let column = |name: &str| Expr::Column(Column::new_unqualified(name));
        let of_right: Vec<String> = self.names().iter().map(|name| format!("{name}_right")).collect();
        let names = self.names().into_iter().zip(&of_right);
        let renamed = names.clone().map(|(name, of_right)| column(name).alias(of_right));
        let exprs = columns(&join.right).into_iter().chain(renamed).collect();
        let right = projection(exprs, Arc::new(right))?;
        let keys = names.clone().map(|(name, of_right)| (column(name), column(of_right))).collect();
        let made = LogicalPlan::Join(self.read_join(join, Arc::new(left), right, keys)?);
        // A side that lacks rows has no values around either.
        let around = names.map(|(name, of_right)| match kind {
            JoinType::Right => column(of_right).alias(name),
            JoinType::Full => coalesce(vec![column(name), column(of_right)]).alias(name),
            _ => column(name),
        });
        let made = projection(shown(join).into_iter().chain(around).collect(), Arc::new(made))?;
        Ok(Some(Arc::unwrap_or_clone(made)))
    }

    /// A join of other sides, in which these keys are equal or both missing.
    fn read_join(
        &self,
        join: &Join,
        left: Arc<LogicalPlan>,
        right: Arc<LogicalPlan>,
        keys: Vec<(Expr, Expr)>,
    ) -> EngineResult<Join> {
        let on =
            join.on.iter().map(|(left, right)| Ok((self.read(left.clone())?, self.read(right.clone())?)));
        let mut on = on.collect::<EngineResult<Vec<(Expr, Expr)>>>()?;
        let mut filter = join.filter.clone().map(|condition| self.read(condition)).transpose()?;
        if join.null_equality == NullEquality::NullEqualsNull {
            on.extend(keys);
        } else {
            let equal =
                keys.into_iter().map(|(one, other)| binary_expr(one, Operator::IsNotDistinctFrom, other));
            filter = conjunction(filter.into_iter().chain(equal));
        }
        Join::try_new(
            left,
            right,
            on,
            filter,
            join.join_type,
            join.join_constraint,
            join.null_equality,
            join.null_aware,
        )
    }
}

/// The columns that a join gives.
fn shown(join: &Join) -> Vec<Expr> {
    let own = join.schema.iter();
    own.map(|(table, field)| Expr::Column(Column::new(table.cloned(), field.name()))).collect()
}
