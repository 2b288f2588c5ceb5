//! Several `*` in one list of columns: `select *, *`, `select t.*, *`.
//!
//! The library has no plan of columns of one name, and those behind a `*` stand nowhere in the text, where
//! they could get tags (`namesakes`). So the columns that each `*` means are asked for, and the statement is
//! planned once more with their names; queries within others come first.

use crate::error::Result;
use crate::sql::faults::reasons::is_of_two_columns;
use crate::sql::words::Words;
use datafusion::common::Column;
use datafusion::execution::SessionState;
use datafusion::logical_expr::LogicalPlan;
use datafusion::logical_expr::sqlparser::ast::{
    Cte, GroupByExpr, Query, Select, SelectItem, SelectItemQualifiedWildcardKind, SetExpr, Visit, Visitor,
    WildcardAdditionalOptions, With,
};
use datafusion::logical_expr::sqlparser::tokenizer::Location;
use datafusion::sql::parser::Statement;
use std::ops::{ControlFlow, Range};

/// Queries of one statement at most whose `*` are written as columns.
const QUERIES_MAX: usize = 64;

/// The plan of a statement; with the names of columns in the places of several `*`, if it has none otherwise.
pub(in crate::sql) async fn planned(state: &SessionState, text: &str) -> Result<LogicalPlan> {
    let error = match crate::sql::planned(state, text).await {
        Ok(plan) => return Ok(plan),
        Err(error) => error,
    };
    if !is_of_two_columns(&error) {
        return Err(error);
    }
    match written(state, text).await {
        Some(written) => {
            let plan = crate::sql::planned(state, &written).await.map_err(|_| error)?;
            Ok(crate::sql::with_definition(plan, text))
        }
        None => Err(error),
    }
}

/// A `*` of a query.
struct Star {
    /// The bytes of the text that it takes.
    place: Range<usize>,
    /// The query of its columns alone.
    query: String,
}

/// The text of a statement that has several `*` in one list, with the names of their columns; none for
/// another one.
async fn written(state: &SessionState, text: &str) -> Option<String> {
    let mut written: Option<String> = None;
    for _ in 0..QUERIES_MAX {
        let mut whole = written.clone().unwrap_or_else(|| text.to_owned());
        let Some(stars) = stars(state, &whole) else { break };
        // The places before it stay.
        for Star { place, query } in stars.into_iter().rev() {
            let rows = crate::sql::planned(state, &query).await.ok()?;
            let names: Vec<String> = rows.schema().columns().iter().map(name).collect();
            whole.replace_range(place, &names.join(", "));
        }
        written = Some(whole);
    }
    written
}

/// The name of a column behind that of its table.
fn name(column: &Column) -> String {
    let mut parts = column.relation.as_ref().map(|table| table.to_vec()).unwrap_or_default();
    parts.push(column.name.clone());
    let quoted = parts.iter().map(|part| format!("\"{}\"", part.replace('"', "\"\"")));
    quoted.collect::<Vec<String>>().join(".")
}

/// Each `*` of a list that has several, of the first query that has such a list.
fn stars(state: &SessionState, text: &str) -> Option<Vec<Star>> {
    let statement = crate::sql::parsed(state, text).ok()?;
    let mut inner = &statement;
    while let Statement::Explain(explained) = inner {
        inner = explained.statement.as_ref();
    }
    let Statement::Statement(inner) = inner else { return None };
    let found = inner.visit(&mut Finder::default()).break_value()?;
    let words = Words::of(text, state);
    let items = found.select.projection.iter().filter(|item| options(item).is_some());
    items.map(|item| star(&found, item, &words)).collect()
}

fn star(found: &Found, item: &SelectItem, words: &Words<'_>) -> Option<Star> {
    let at = |start: Location| {
        let token = words.tokens().iter().find(|token| token.span.start == start);
        token.map(|token| words.offset(token))
    };
    let end = options(item)?.wildcard_token.0.span.start;
    let begin = match item {
        SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::ObjectName(name), _) => {
            name.0.first()?.as_ident()?.span.start
        }
        _ => end,
    };
    Some(Star { place: at(begin)?..at(end)? + 1, query: found.alone(item, begin).to_string() })
}

/// The options of a `*` that has all columns under their names; none for other values.
fn options(item: &SelectItem) -> Option<&WildcardAdditionalOptions> {
    let options = match item {
        SelectItem::Wildcard(options)
        | SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::ObjectName(_), options) => options,
        _ => return None,
    };
    // Tokens are equal wherever they stand.
    (*options == WildcardAdditionalOptions::default()).then_some(options)
}

/// A list with several `*`, its query, and the WITH of this one and of those around.
struct Found {
    select: Select,
    query: Query,
    clauses: Vec<With>,
}

impl Found {
    /// The query of one of the values alone, which begins at a place.
    fn alone(&self, item: &SelectItem, begin: Location) -> Query {
        let select = Select {
            projection: vec![item.clone()],
            distinct: None,
            top: None,
            selection: None,
            group_by: GroupByExpr::Expressions(Vec::new(), Vec::new()),
            having: None,
            named_window: Vec::new(),
            qualify: None,
            ..self.select.clone()
        };
        let body = Box::new(SetExpr::Select(Box::new(select)));
        let (order_by, limit_clause, fetch) = (None, None, None);
        Query { with: self.seen(begin), body, order_by, limit_clause, fetch, ..self.query.clone() }
    }

    /// The tables of WITH that are complete before a place, as one clause; of one name the innermost one.
    fn seen(&self, begin: Location) -> Option<With> {
        let recursive = self.clauses.iter().any(|with| with.recursive);
        let mut cte_tables: Vec<Cte> = Vec::new();
        for table in self.clauses.iter().flat_map(|with| &with.cte_tables) {
            if table.closing_paren_token.0.span.start < begin {
                cte_tables.retain(|known| known.alias.name != table.alias.name);
                cte_tables.push(table.clone());
            }
        }
        let first = self.clauses.first().filter(|_| !cte_tables.is_empty())?;
        Some(With { with_token: first.with_token.clone(), recursive, cte_tables })
    }
}

/// Finds the first list with several `*`, behind those within its query.
#[derive(Default)]
struct Finder {
    /// The WITH of the queries around.
    around: Vec<Option<With>>,
}

impl Visitor for Finder {
    type Break = Box<Found>;

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<Box<Found>> {
        self.around.push(query.with.clone());
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, query: &Query) -> ControlFlow<Box<Found>> {
        if let Some(select) = with_several(&query.body).filter(|_| query.pipe_operators.is_empty()) {
            let clauses = self.around.iter().flatten().cloned().collect();
            let found = Found { select: select.clone(), query: query.clone(), clauses };
            return ControlFlow::Break(Box::new(found));
        }
        self.around.pop();
        ControlFlow::Continue(())
    }
}

/// The first list of a query that has several `*`. Queries in parentheses are visited by themselves.
fn with_several(body: &SetExpr) -> Option<&Select> {
    match body {
        SetExpr::Select(select) => {
            let count = select.projection.iter().filter(|item| options(item).is_some()).count();
            (1 < count).then_some(&**select)
        }
        SetExpr::SetOperation { left, right, .. } => with_several(left).or_else(|| with_several(right)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::is_of_two_columns;
    use crate::engine::{block_on, on_deep_stack};
    use crate::sql::small_tables::{cells, session_of, three_columns};
    use crate::sql::{self, SqlAnswer};

    #[test]
    fn several_stars_give_their_columns_each() {
        let mut session = session_of(&[
            "create table t (a int, \"C d\" int) as values (1, 5)",
            "create table u (a int, b int) as values (1, 7)",
        ]);
        for (query, names, row) in [
            ("select *, * from t", &["a", "C d", "a", "C d"][..], "1 5 1 5"),
            ("select *, a + 1, * from t order by a limit 1", &["a", "C d", "a + 1", "a", "C d"], "1 5 2 1 5"),
            ("select *, T.* from t", &["a", "C d", "a", "C d"], "1 5 1 5"),
            ("select x.*, x.* from t as x where x.a = 1", &["a", "C d", "a", "C d"], "1 5 1 5"),
            ("select *, * from t join u using (a)", &["a", "C d", "b", "a", "C d", "b"], "1 5 7 1 5 7"),
            ("with w as (select a from t) select *, * from w", &["a", "a"], "1 1"),
            ("with w as (select a from t), v as (select *, * from w) select * from v", &["a", "a"], "1 1"),
            ("select *, * from (select *, * from (select 2 as n) r) s", &["n", "n", "n", "n"], "2 2 2 2"),
            (
                "select *, * from t union all select *, * from u where b < 0",
                &["a", "C d", "a", "C d"],
                "1 5 1 5",
            ),
            ("select t.*, u.* from t, u", &["a", "C d", "a", "b"], "1 5 1 7"),
        ] {
            match session.execute(query).unwrap_or_else(|error| panic!("{query}: {error}")) {
                SqlAnswer::Rows(table) => assert_eq!(table.columns(), names, "{query}"),
                other => panic!("{query}: {other:?}"),
            }
            assert_eq!(session.run(query).expect("a row").concat().join(" "), row, "{query}");
        }
        let view = "create view v as select *, * from u";
        session.run(view).expect("a view");
        assert_eq!(cells(&mut session, "select * from v"), [["1", "7", "1", "7"]]);
        assert_eq!(
            cells(&mut session, "select definition from information_schema.views where table_name = 'v'"),
            [[view]]
        );
        let error = session.run("select *, * from nope").expect_err("no table");
        assert!(error.to_string().starts_with("line 1, column 18: no table \"nope\""), "{error}");
        let error = session.run("create table w as select *, * from u").expect_err("a table");
        assert!(error.to_string().contains("two columns \"a\""), "{error}");
    }
    #[test]
    fn only_errors_of_two_columns_lead_to_a_second_plan() {
        let state = three_columns().context.state();
        for (query, expected) in [
            ("select *, * from t", true),
            ("select *, a + 1, * from t where c > 5 order by a", true),
            ("select *, t.* from t join u using (a)", true),
            ("select count(*) from (select *, * from t) x", true),
            ("select t.*, u.* from t join u on t.a = u.a where nothing = 1", false),
            ("select *, * from t where nothing = 1", false),
            ("select *, * from nope", false),
            ("select *, * from", false),
        ] {
            let planned = on_deep_stack(|| block_on(sql::planned(&state, query)));
            let error = planned.expect_err(query);
            assert_eq!(is_of_two_columns(&error), expected, "{query}: {error}");
        }
    }
}
