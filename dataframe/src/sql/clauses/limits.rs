//! `FETCH FIRST`, `TOP` and `ORDER BY ALL`, written in the form that the library has.

use super::order_all;
use crate::error::{Error, Result};
use datafusion::logical_expr::sqlparser::ast::{
    Expr, Fetch, LimitClause, Query, SetExpr, Top, TopQuantity, Value,
};

/// Writes the bounds of a query as a limit, and an order by all columns as one by a text.
pub(in crate::sql) fn write_limits(query: &mut Query) -> Result<()> {
    if let Some(fetch) = query.fetch.take() {
        let Fetch { with_ties, percent, quantity } = fetch;
        set_limit(query, "FETCH", (with_ties, percent), quantity.unwrap_or_else(|| number(1)))?;
    }
    let top = match &mut *query.body {
        SetExpr::Select(select) => select.top.take(),
        _ => None,
    };
    if let Some(Top { with_ties, percent, quantity }) = top {
        let quantity = match quantity {
            Some(TopQuantity::Expr(rows)) => rows,
            Some(TopQuantity::Constant(rows)) => number(rows),
            None => number(1),
        };
        set_limit(query, "TOP", (with_ties, percent), quantity)?;
    }
    if let Some(order) = &mut query.order_by {
        order_all::write_text(&mut order.kind);
    }
    Ok(())
}

/// Sets the rows of a query at most.
fn set_limit(query: &mut Query, word: &str, (with_ties, percent): (bool, bool), rows: Expr) -> Result<()> {
    if with_ties || percent {
        let clause = if with_ties { "WITH TIES" } else { "PERCENT" };
        return Err(Error::NotImplemented(format!("{word} .. {clause} is not supported")));
    }
    match &mut query.limit_clause {
        Some(LimitClause::LimitOffset { limit, limit_by, .. }) if limit.is_none() && limit_by.is_empty() => {
            *limit = Some(rows);
        }
        Some(_) => return Err(Error::Sql(format!("{word} and LIMIT of one query"))),
        none => {
            *none = Some(LimitClause::LimitOffset { limit: Some(rows), offset: None, limit_by: Vec::new() });
        }
    }
    Ok(())
}

fn number(rows: u64) -> Expr {
    Expr::Value(Value::Number(rows.to_string(), false).into())
}

#[cfg(test)]
mod tests {
    use crate::sql::SqlSession;
    use crate::sql::small_tables::{rows_in, session_of};

    #[track_caller]
    fn rows(query: &str) -> Vec<String> {
        let table = "create table t (a int, \"B\" text) as values (2, 'x'), (1, 'z'), (1, 'y')";
        rows_in(&mut session_of(&[table]), query)
    }

    #[test]
    fn rows_are_fetched_in_other_words() {
        assert_eq!(rows("select a from t order by a fetch first 2 rows only"), ["1", "1"]);
        assert_eq!(rows("select a from t order by a offset 2 rows fetch next row only"), ["2"]);
        assert_eq!(rows("select top 1 a from t order by a desc"), ["2"]);
        assert_eq!(rows("select * from (select top 1 a from t order by a desc) s"), ["2"]);
        for query in [
            "select a from t order by a fetch first 2 rows with ties",
            "select a from t fetch first 2 percent rows only",
            "select a from t limit 1 fetch first 2 rows only",
        ] {
            SqlSession::default().run(query).expect_err(query);
        }
    }

    #[test]
    fn all_columns_are_an_order() {
        assert_eq!(rows("select * from t order by all"), ["1 y", "1 z", "2 x"]);
        assert_eq!(rows("select * from t order by all desc"), ["2 x", "1 z", "1 y"]);
        assert_eq!(rows("select a + 1 as s, count(*) from t group by all order by all"), ["2 2", "3 1"]);
        assert_eq!(rows("select distinct a from t order by all desc"), ["2", "1"]);
        assert_eq!(rows("select a from t union all select 0 order by all limit 2"), ["0", "1"]);
        let within = "(select \"B\" from t order by all limit 2) s";
        assert_eq!(rows(&format!("select string_agg(\"B\", ',') from {within}")), ["x,y"]);
        assert_eq!(rows("select 1 as \"all\" order by \"all\""), ["1"]);
        assert_eq!(rows("(select a from t order by all desc limit 2) order by all limit 1"), ["1"]);
        assert_eq!(rows("(select a from t order by all) order by all desc"), ["2", "1", "1"]);
    }
}
