//! The source of the labels of a frame: steps that keep all rows need no look at the labels.

use super::{Frame, OrderKey};
use crate::error::Result;
use crate::stage::row_number::{Numbering, RowNumber};
use datafusion::common::Column;
use datafusion::logical_expr::{Expr, LogicalPlan};

/// Columns of a plan that give labels, and the order of its rows: empty if the plan is in order.
#[derive(Clone, Debug)]
struct Labels<'a> {
    plan: &'a LogicalPlan,
    labels: Vec<Column>,
    order: Vec<(Column, bool, bool)>,
}

impl<'a> Labels<'a> {
    fn of(frame: &'a Frame) -> Labels<'a> {
        let column = |name: &str| Column::new_unqualified(name);
        let order = |key: &OrderKey| (column(&key.column), key.ascending, key.nulls_first);
        Labels {
            plan: &frame.plan,
            labels: frame.index.iter().map(|level| column(&level.column)).collect(),
            order: frame.order.iter().map(order).collect(),
        }
    }

    /// The same labels one step earlier, if that step keeps all rows and only passes labels on.
    fn before(&self) -> Option<Labels<'a>> {
        match self.plan {
            LogicalPlan::Projection(projection) => {
                let earlier = |column: &Column| {
                    let at = projection.schema.maybe_index_of_column(column)?;
                    match projection.expr[at].clone().unalias() {
                        Expr::Column(column) => Some(column),
                        _ => None,
                    }
                };
                let labels = self.labels.iter().map(earlier).collect::<Option<_>>()?;
                let order =
                    self.order.iter().map(|(column, up, first)| Some((earlier(column)?, *up, *first)));
                Some(Labels { plan: &projection.input, labels, order: order.collect::<Option<_>>()? })
            }
            LogicalPlan::Extension(extension) => {
                self.before_numbers(extension.node.as_any().downcast_ref::<RowNumber>()?)
            }
            _ => None,
        }
    }

    /// The same labels without a number of rows, which is no label itself.
    fn before_numbers(&self, node: &'a RowNumber) -> Option<Labels<'a>> {
        let is_number = |column: &Column| column.name == node.column;
        if self.labels.iter().any(is_number) {
            return None;
        }
        let order = match &self.order[..] {
            // Rows by their numbers are rows in the order in which they were numbered.
            [(column, true, _)] if is_number(column) && node.numbering == Numbering::Key => Vec::new(),
            [(column, true, _)] if is_number(column) => {
                let keys = node.order.iter().map(|key| match &key.expr {
                    Expr::Column(column) => Some((column.clone(), key.asc, key.nulls_first)),
                    _ => None,
                });
                keys.collect::<Option<_>>()?
            }
            order if order.iter().any(|(column, ..)| is_number(column)) => return None,
            order => order.to_vec(),
        };
        Some(Labels { plan: &node.input, labels: self.labels.clone(), order })
    }

    /// As early as steps only pass labels on.
    fn earliest(self) -> Labels<'a> {
        let mut labels = self;
        while let Some(before) = labels.before() {
            labels = before;
        }
        labels
    }
}

impl Frame {
    /// Whether the plans show that the labels are those of another frame, in the same order. Nothing runs.
    pub(super) fn shares_labels(&self, other: &Frame) -> Result<bool> {
        let (own, others) = (Labels::of(self).earliest(), Labels::of(other).earliest());
        if own.labels != others.labels || own.order != others.order {
            return Ok(false);
        }
        let source = |labels: &Labels| Frame {
            plan: labels.plan.clone(),
            columns: Vec::new(),
            index: Vec::new(),
            order: Vec::new(),
        };
        Ok(source(&own).is_same(&source(&others)))
    }
}

#[cfg(test)]
mod tests {
    use crate::frame::{DataFrame, Sort};

    fn shares(left: &DataFrame, right: &DataFrame) -> bool {
        left.frame().unwrap().shares_labels(right.frame().unwrap()).unwrap()
    }

    #[test]
    fn steps_that_keep_rows_keep_the_source_of_labels() {
        let columns = [("k", vec!["b", "a", "b"].into()), ("n", vec![1, 2, 3].into())];
        let frame = DataFrame::from_columns(columns).set_index(["k"]);
        let more = frame.assign("m", &frame.col("n") + 1).rename([("n", "own")]);
        assert!(shares(&frame, &more));
        assert!(shares(&more, &frame.col("n").to_frame()));
        let (numbered, _) = frame.frame().unwrap().with_row().unwrap();
        assert!(shares(&DataFrame::new(Ok(numbered)), &more), "a key of the order changes nothing");
        let sorted = frame.sort_values(["n"], Sort::descending());
        assert!(shares(&sorted, &sorted.assign("m", 1)));
        for other in [&sorted, &frame.head(2), &frame.filter(&frame.col("n").gt(0))] {
            assert!(!shares(&frame, other), "{other:?}");
        }
        let other = DataFrame::from_columns([("k", vec!["b", "a", "b"].into())]).set_index(["k"]);
        assert!(!shares(&frame.select(Vec::<&str>::new()), &other), "other rows, though equal ones");
        let relabelled = frame.assign("k", frame.col("n")).set_index(["k"]);
        assert!(!shares(&frame, &relabelled));
    }
}
