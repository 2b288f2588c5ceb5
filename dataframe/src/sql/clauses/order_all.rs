//! `ORDER BY ALL`: the rows in the order of all columns, from left to right.
//!
//! Until a query is planned, nobody knows its columns: its key is a text, in whose place they come then. Each
//! text is another one, since the library takes a key of an order that the rows below have as well for a
//! column of theirs.

use crate::error::{Error, Result};
use crate::sql::plans::columns;
use datafusion::common::tree_node::Transformed;
use datafusion::logical_expr::expr::Sort as SortKey;
use datafusion::logical_expr::logical_plan::Sort;
use datafusion::logical_expr::sqlparser::ast::{Expr as SqlExpr, OrderByExpr, OrderByKind, Value};
use datafusion::logical_expr::{Distinct, Expr, LogicalPlan};
use datafusion::scalar::ScalarValue;
use std::sync::atomic::{AtomicU64, Ordering};

/// The begin of texts that nobody types.
const TEXT: &str = "\0order by all ";

/// Writes an order by all columns as one by a text.
pub(in crate::sql) fn write_text(kind: &mut OrderByKind) {
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
    static TEXTS: AtomicU64 = AtomicU64::new(0);
    let text = format!("{TEXT}{}", TEXTS.fetch_add(1, Ordering::Relaxed));
    let expr = SqlExpr::Value(Value::SingleQuotedString(text).into());
    *kind = OrderByKind::Expressions(vec![OrderByExpr { expr, options, with_fill: None }]);
}

/// The plan with the columns of queries in the places of texts.
pub(in crate::sql) fn by_columns(plan: LogicalPlan) -> Result<LogicalPlan> {
    let changed = plan.transform_up_with_subqueries(|node| match node {
        LogicalPlan::Sort(Sort { expr, input, fetch }) if is_text(&expr) => {
            let keys = expr.iter().flat_map(|key| {
                columns(&input).into_iter().map(move |column| column.sort(key.asc, key.nulls_first))
            });
            Ok(Transformed::yes(LogicalPlan::Sort(Sort { expr: keys.collect(), input, fetch })))
        }
        LogicalPlan::Distinct(Distinct::On(on)) if on.sort_expr.as_deref().is_some_and(is_text) => {
            let text = "ORDER BY ALL behind DISTINCT ON is not supported: write the columns";
            Err(Error::NotImplemented(text.to_owned()).into())
        }
        other => Ok(Transformed::no(other)),
    })?;
    Ok(changed.data)
}

fn is_text(keys: &[SortKey]) -> bool {
    let [SortKey { expr: Expr::Literal(value, _), .. }] = keys else { return false };
    matches!(value, ScalarValue::Utf8(Some(text)) | ScalarValue::Utf8View(Some(text)) if text.starts_with(TEXT))
}
