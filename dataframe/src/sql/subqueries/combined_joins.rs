//! Joins of rows that depend on values around a subquery: of the rows of each combination of the values
//! alone.

use super::combinations::{Combinations, column, refused};
use crate::sql::plans::{columns, projection};
use datafusion::common::{Column, JoinType, NullEquality, Result as EngineResult};
use datafusion::functions::expr_fn::coalesce;
use datafusion::logical_expr::logical_plan::Join;
use datafusion::logical_expr::utils::conjunction;
use datafusion::logical_expr::{Expr, LogicalPlan, Operator, binary_expr};
use std::sync::Arc;

impl Combinations {
    /// A join with the values around beside one of its sides, each of whose rows it has at least once, or
    /// with all that it is joined to; else beside both.
    pub(in crate::sql) fn beside_join(&self, join: &Join) -> EngineResult<LogicalPlan> {
        let is_left = match (join.join_type, self.is_read_by(&join.left), self.is_read_by(&join.right)) {
            (JoinType::Inner | JoinType::Left | JoinType::LeftSemi | JoinType::LeftAnti, _, false) => true,
            (JoinType::Inner | JoinType::Right | JoinType::RightSemi | JoinType::RightAnti, false, _) => {
                false
            }
            _ => return self.beside_both(join),
        };
        let (left, right) = if is_left {
            (Arc::new(self.beside(&join.left)?), Arc::clone(&join.right))
        } else {
            (Arc::clone(&join.left), Arc::new(self.beside(&join.right)?))
        };
        let made = self.read_join(join, left, right)?;
        self.with_keys(shown(join), LogicalPlan::Join(made))
    }

    /// A join of the rows of each combination of values around alone.
    fn beside_both(&self, join: &Join) -> EngineResult<LogicalPlan> {
        let kind = join.join_type;
        if matches!(kind, JoinType::LeftMark | JoinType::RightMark) {
            return refused("a join of this kind");
        }
        let of_right: Vec<String> = self.names().iter().map(|name| format!("{name}_right")).collect();
        let names = || self.names().into_iter().zip(&of_right);
        let renamed = names().map(|(name, of_right)| column(name).alias(of_right));
        let exprs = columns(&join.right).into_iter().chain(renamed).collect();
        let left = Arc::new(self.beside(&join.left)?);
        let right = projection(exprs, Arc::new(self.beside(&join.right)?))?;
        let keys = names().map(|(name, of_right)| (column(name), column(of_right))).collect();
        let made = LogicalPlan::Join(with_equal(self.read_join(join, left, right)?, keys)?);
        // A side that lacks rows has no values around either.
        let around = names().map(|(name, of_right)| match kind {
            JoinType::Right | JoinType::RightSemi | JoinType::RightAnti => column(of_right).alias(name),
            JoinType::Full => coalesce(vec![column(name), column(of_right)]).alias(name),
            _ => column(name),
        });
        let made = projection(shown(join).into_iter().chain(around).collect(), Arc::new(made))?;
        Ok(Arc::unwrap_or_clone(made))
    }

    /// A join of other sides.
    fn read_join(&self, join: &Join, left: Arc<LogicalPlan>, right: Arc<LogicalPlan>) -> EngineResult<Join> {
        let on =
            join.on.iter().map(|(left, right)| Ok((self.read(left.clone())?, self.read(right.clone())?)));
        Join::try_new(
            left,
            right,
            on.collect::<EngineResult<Vec<(Expr, Expr)>>>()?,
            join.filter.clone().map(|condition| self.read(condition)).transpose()?,
            join.join_type,
            join.join_constraint,
            join.null_equality,
            join.null_aware,
        )
    }
}

/// A join in which these keys are equal or both missing, too. All keys of a join are compared in one way:
/// those that are equal only where they are there are so by its condition.
fn with_equal(join: Join, keys: Vec<(Expr, Expr)>) -> EngineResult<Join> {
    let Join {
        left, right, mut on, filter, join_type, join_constraint, mut null_equality, null_aware, ..
    } = join;
    let mut conditions = Vec::from_iter(filter);
    if null_aware {
        let equal = |(one, other)| binary_expr(one, Operator::IsNotDistinctFrom, other);
        conditions.extend(keys.into_iter().map(equal));
    } else {
        if null_equality == NullEquality::NullEqualsNothing {
            conditions.extend(on.iter().map(|(one, _)| one.clone().is_not_null()));
            null_equality = NullEquality::NullEqualsNull;
        }
        on.extend(keys);
    }
    let filter = conjunction(conditions);
    Join::try_new(left, right, on, filter, join_type, join_constraint, null_equality, null_aware)
}

/// The columns that a join gives.
fn shown(join: &Join) -> Vec<Expr> {
    let own = join.schema.iter();
    own.map(|(table, field)| Expr::Column(Column::new(table.cloned(), field.name()))).collect()
}
