//! Choice of columns and rows.

use super::{DataFrame, Frame, Level, OrderKey, named};
use crate::error::{Error, Result};
use crate::frame::series::{Operand, Series};
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::logical_expr::{Expr, ExprSchemable, LogicalPlan, lit};
use std::sync::Arc;

impl DataFrame {
    /// These columns, in this order.
    #[track_caller]
    pub fn select<'a>(&self, labels: impl IntoIterator<Item = &'a str>) -> DataFrame {
        self.then(|frame| {
            let labels = labels.into_iter().map(|label| {
                frame.check(label)?;
                Ok((label.to_owned(), named(label)))
            });
            frame.project(labels.collect::<Result<_>>()?)
        })
    }

    /// All columns but these.
    #[track_caller]
    pub fn drop<'a>(&self, labels: impl IntoIterator<Item = &'a str>) -> DataFrame {
        let labels: Vec<&str> = labels.into_iter().collect();
        self.then(|frame| {
            labels.iter().try_for_each(|label| frame.check(label))?;
            let kept = frame.columns.iter().filter(|column| !labels.contains(&column.as_str()));
            frame.project(kept.map(|column| (column.clone(), named(column))).collect())
        })
    }

    /// The same columns under other labels, where the pairs have one.
    #[track_caller]
    pub fn rename<'a>(&self, labels: impl IntoIterator<Item = (&'a str, &'a str)>) -> DataFrame {
        let labels: Vec<(&str, &str)> = labels.into_iter().collect();
        self.then(|frame| {
            let renamed = frame.columns.iter().map(|column| {
                let new =
                    labels.iter().find(|(old, _)| old == column).map_or(column.as_str(), |(_, new)| new);
                (new.to_owned(), named(column))
            });
            frame.project(renamed.collect())
        })
    }

    /// The frame with a column set to a series or a value; it comes last if it is new.
    ///
    /// ```
    /// use tharsis_dataframe::DataFrame;
    /// let frame = DataFrame::from_columns([("n", vec![1, 2].into())]);
    /// let frame = frame.assign("square", &frame.col("n") * &frame.col("n"));
    /// assert_eq!(frame.columns()?, ["n", "square"]);
    /// # Ok::<(), tharsis_dataframe::Error>(())
    /// ```
    #[track_caller]
    pub fn assign(&self, label: &str, values: impl Into<Operand>) -> DataFrame {
        let values = values.into();
        self.then(|frame| {
            let (frame, expr) = frame.with_operand(&values)?;
            let mut columns: Vec<(String, Expr)> =
                frame.columns.iter().map(|column| (column.clone(), named(column))).collect();
            match columns.iter_mut().find(|(column, _)| column == label) {
                Some((_, old)) => *old = expr,
                None => columns.push((label.to_owned(), expr)),
            }
            frame.project(columns)
        })
    }

    /// The rows for which a condition holds.
    #[track_caller]
    pub fn filter(&self, condition: &Series) -> DataFrame {
        let condition = Operand::Series(condition.clone());
        self.then(|frame| {
            // The labels of the rows that stay are those that they had.
            let (frame, expr) = frame.with_operand(&condition)?;
            crate::frame::series::truth(&expr.get_type(frame.plan.schema())?)?;
            let expr = crate::frame::series::for_filter(expr);
            let (frame, exprs) = frame.with_index()?.lifted(vec![expr])?;
            let mut plan = frame.builder();
            for expr in exprs {
                plan = plan.filter(expr)?;
            }
            Ok(Frame { plan: plan.build()?, ..frame })
        })
    }

    /// The rows at whose positions a condition over rows of positions holds.
    #[doc(hidden)]
    #[track_caller]
    pub fn filter_by_position(&self, condition: &Series) -> DataFrame {
        let by_position = self.then(|frame| {
            let mut wide = frame.with_index()?;
            let levels = wide.index.iter().map(|level| level.column.clone());
            let hidden: Vec<String> = levels.filter(|column| !wide.columns.contains(column)).collect();
            wide.columns.extend(hidden);
            Ok(Frame { index: Vec::new(), ..wide })
        });
        let kept = by_position.filter(condition);
        self.then(|frame| {
            let index = frame.with_index()?.index;
            Ok(Frame { index, columns: frame.columns.clone(), ..(**kept.frame()?).clone() })
        })
    }

    /// The frame with levels of the index that have no name.
    #[doc(hidden)]
    #[track_caller]
    pub fn unnamed_index(&self) -> DataFrame {
        self.then(|frame| {
            let index = frame.index.iter().map(|level| Level { name: None, ..level.clone() });
            Ok(Frame { index: index.collect(), ..frame.clone() })
        })
    }

    /// The frame with other names of the levels of its index.
    #[doc(hidden)]
    #[track_caller]
    pub fn with_index_names(&self, names: Vec<Option<String>>) -> DataFrame {
        self.then(|frame| {
            let named = |(level, name): (&Level, Option<String>)| Level { name, ..level.clone() };
            Ok(Frame { index: frame.index.iter().zip(names).map(named).collect(), ..frame.clone() })
        })
    }

    /// A frame of series that are computed of this frame's rows.
    #[doc(hidden)]
    #[track_caller]
    pub fn of_same_rows(&self, columns: Vec<(String, Series)>) -> DataFrame {
        self.then(|frame| {
            let (mut wide, mut exprs) = (frame.clone(), Vec::new());
            for (label, series) in columns {
                let (of, expr) = series.parts()?;
                if !std::ptr::eq(frame, &**of) {
                    // Of an expression that became a hidden column.
                    let met = wide.meeting(of)?;
                    wide = met.ok_or_else(|| Error::Internal("a series of other rows".to_owned()))?;
                }
                exprs.push((label, expr.clone()));
            }
            wide.project(exprs)
        })
    }

    /// The first rows, in their order.
    #[track_caller]
    pub fn head(&self, rows: usize) -> DataFrame {
        self.then(|frame| frame.limited(0, rows))
    }

    /// The last rows, in their order.
    #[track_caller]
    pub fn tail(&self, rows: usize) -> DataFrame {
        self.then(|frame| frame.with_index()?.last(rows))
    }

    /// The rows at these positions: from the first to before the second.
    #[track_caller]
    pub fn slice(&self, from: usize, to: usize) -> DataFrame {
        self.then(|frame| frame.with_index()?.limited(from, to.saturating_sub(from)))
    }

    /// Number of rows and of columns.
    ///
    /// # Errors
    /// The error that the frame carries, or one of its run.
    pub fn shape(&self) -> Result<(usize, usize)> {
        let frame = self.frame()?;
        Ok((self.len()?, frame.columns.len()))
    }
}

/// The tables that a plan reads, in order. Plans count as equal if they read different tables of one name.
fn sources(plan: &LogicalPlan) -> Vec<usize> {
    let mut found = Vec::new();
    let visited = plan.apply_with_subqueries(|node| {
        if let LogicalPlan::TableScan(scan) = node {
            found.push(Arc::as_ptr(&scan.source).cast::<()>().addr());
        }
        Ok(TreeNodeRecursion::Continue)
    });
    // No step of the visit fails.
    debug_assert!(visited.is_ok());
    found
}

impl Frame {
    /// This frame with an expression for an operand, aligned where it is of another frame.
    pub(crate) fn with_operand(&self, operand: &Operand) -> Result<(Frame, Expr)> {
        let series = match operand {
            Operand::Value(value) => return Ok((self.clone(), lit(value.0.clone()))),
            Operand::Series(series) => series,
        };
        let (others, expr) = series.parts()?;
        if std::ptr::eq(self, &**others) || self.is_same(others) {
            Ok((self.clone(), expr.clone()))
        } else if let Some(both) = self.meeting(others)? {
            Ok((both, expr.clone()))
        } else {
            self.align_rows(others, expr)
        }
    }

    /// Whether another frame has the same plan, rows and order.
    pub(super) fn is_same(&self, other: &Frame) -> bool {
        let equal = self.index == other.index && self.order == other.order && self.plan == other.plan;
        equal && sources(&self.plan) == sources(&other.plan)
    }

    /// The last rows, in order.
    fn last(&self, rows: usize) -> Result<Frame> {
        let (frame, row) = self.with_row()?;
        let from_end = OrderKey { ascending: false, ..OrderKey::growing(&row) };
        let last = Frame { order: vec![from_end], ..frame.clone() }.limited(0, rows)?;
        Ok(Frame { order: frame.order, ..last })
    }
}
