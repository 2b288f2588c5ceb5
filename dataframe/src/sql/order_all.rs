//! `ORDER BY ALL`: the rows in the order of all columns, from left to right.
//!
//! Until a query is planned, nobody knows its columns: its key is a mark, in whose place they come then. Each
//! mark is another one, since the library takes a key of an order that the rows below have as well for a
//! column of theirs.

use super::plans::columns;
use crate::error::{Error, Result};
use datafusion::common::tree_node::Transformed;
use datafusion::logical_expr::expr::Sort as SortKey;
use datafusion::logical_expr::logical_plan::Sort;
use datafusion::logical_expr::sqlparser::ast::{Expr as SqlExpr, OrderByExpr, OrderByKind, Value};
use datafusion::logical_expr::{Distinct, Expr, LogicalPlan};
use datafusion::scalar::ScalarValue;
use std::sync::atomic::{AtomicU64, Ordering};

/// The begin of texts that nobody types.
const MARK: &str = "\0order by all ";

/// Marks an order by all columns.
pub(super) fn mark(kind: &mut OrderByKind) {
    let options = match kind {
        OrderByKind::All(options) => *options,
        OrderByKind::Expressions(keys) => match keys.as_slice() {
            [OrderByExpr { expr: SqlExpr::Identifier(word), options, with_fill: None }]
                if word.quote_style.is_none() && word.value.eq_ignore_ascii_case("all") =>
            {
                *options
            }
            _ => return,
        },
    };
    static MARKS: AtomicU64 = AtomicU64::new(0);
    let mark = format!("{MARK}{}", MARKS.fetch_add(1, Ordering::Relaxed));
    let expr = SqlExpr::Value(Value::SingleQuotedString(mark).into());
    *kind = OrderByKind::Expressions(vec![OrderByExpr { expr, options, with_fill: None }]);
}

/// The plan with the columns of queries in the places of marks.
pub(super) fn by_columns(plan: LogicalPlan) -> Result<LogicalPlan> {
    let changed = plan.transform_up_with_subqueries(|node| match node {
        LogicalPlan::Sort(Sort { expr, input, fetch }) if is_marked(&expr) => {
            let keys = expr.iter().flat_map(|key| {
                columns(&input).into_iter().map(move |column| column.sort(key.asc, key.nulls_first))
            });
            Ok(Transformed::yes(LogicalPlan::Sort(Sort { expr: keys.collect(), input, fetch })))
        }
        LogicalPlan::Distinct(Distinct::On(on)) if on.sort_expr.as_deref().is_some_and(is_marked) => {
            let text = "ORDER BY ALL behind DISTINCT ON is not supported: write the columns";
            Err(Error::NotImplemented(text.to_owned()).into())
        }
        other => Ok(Transformed::no(other)),
    })?;
    Ok(changed.data)
}

fn is_marked(keys: &[SortKey]) -> bool {
    let [SortKey { expr: Expr::Literal(value, _), .. }] = keys else { return false };
    matches!(value, ScalarValue::Utf8(Some(text)) | ScalarValue::Utf8View(Some(text)) if text.starts_with(MARK))
}
