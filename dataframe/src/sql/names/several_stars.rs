//! Several `*` in one list of columns, `select *, *`, and those with other names, `select * rename (a as b)`.
//!
//! The library has no plan of columns of one name, and those behind a `*` stand nowhere in the text, where
//! they could get tags (`namesakes`) or names. So the columns that each `*` means are asked for, and the
//! statement is planned once more with their names; queries within others come first.

use super::fields::normal;
use super::namesakes::plain_name;
use super::unknown_keys::no_column;
use crate::error::Result;
use crate::sql::faults::mistakes;
use crate::sql::faults::reasons::{is_of_rename, is_of_two_columns};
use crate::sql::words::Words;
use datafusion::common::{Column, Span};
use datafusion::execution::SessionState;
use datafusion::logical_expr::LogicalPlan;
use datafusion::logical_expr::sqlparser::ast::{
    Cte, GroupByExpr, Ident, IdentWithAlias, Query, RenameSelectItem, Select, SelectItem,
    SelectItemQualifiedWildcardKind, SetExpr, Visit, Visitor, WildcardAdditionalOptions, With,
};
use datafusion::logical_expr::sqlparser::tokenizer::{Location, Token};
use datafusion::sql::parser::{CopyToSource, Statement};
use std::ops::{ControlFlow, Range};

/// Queries of one statement at most whose `*` are written as columns.
const QUERIES_MAX: usize = 64;

/// The plan of a statement; with the names of columns in the places of several `*`, and of one with other
/// names, if it has none otherwise.
pub(in crate::sql) async fn planned(state: &SessionState, text: &str) -> Result<LogicalPlan> {
    let error = match crate::sql::planned(state, text).await {
        Ok(plan) => return Ok(plan),
        Err(error) => error,
    };
    let has_names = is_of_rename(&error);
    if !has_names && !is_of_two_columns(&error) {
        return Err(error);
    }
    let Some(Written { text: written, begin }) = written(state, text).await? else { return Err(error) };
    let plan = crate::sql::planned(state, &written).await;
    let plan = plan.map_err(|told| if has_names { mistakes::in_begin(told, text, begin) } else { error })?;
    Ok(crate::sql::with_definition(plan, text))
}

/// The text of a statement with columns in the places of `*`.
struct Written {
    text: String,
    /// The bytes before the first of these.
    begin: usize,
}

/// A `*` of a query.
struct Star {
    /// The bytes of the text that it takes.
    place: Range<usize>,
    /// The query of its columns alone, under their own names.
    query: String,
    /// The values of REPLACE, by their columns.
    values: Vec<(Ident, String)>,
    renamed: Vec<IdentWithAlias>,
}

impl Star {
    /// The columns as a statement has them; the first name that none of them has.
    fn written(&self, columns: &[Column]) -> std::result::Result<String, &Ident> {
        let names = self.values.iter().map(|(name, _)| name);
        let mut names = names.chain(self.renamed.iter().map(|pair| &pair.ident));
        if let Some(unknown) = names.find(|own| !columns.iter().any(|column| is_meant(own, column, columns)))
        {
            return Err(unknown);
        }
        let written = columns.iter().map(|column| {
            let value = self.values.iter().find(|(own, _)| is_meant(own, column, columns));
            let renamed = self.renamed.iter().find(|pair| is_meant(&pair.ident, column, columns));
            let value = value.map(|(_, value)| value.clone());
            match (value, renamed) {
                (Some(value), Some(pair)) => format!("{value} as {}", pair.alias),
                (Some(value), None) => format!("{value} as {}", quoted(&column.name)),
                (None, Some(pair)) => format!("{} as {}", name(column), pair.alias),
                (None, None) => name(column),
            }
        });
        Ok(written.collect::<Vec<String>>().join(", "))
    }
}

/// Whether a name stands for a column: also in other letters, if none has it as it is.
fn is_meant(name: &Ident, column: &Column, columns: &[Column]) -> bool {
    let own = normal(name);
    if name.quote_style.is_some() || columns.iter().any(|column| plain_name(&column.name) == own) {
        return plain_name(&column.name) == own;
    }
    plain_name(&column.name).to_lowercase() == own.to_lowercase()
}

/// The text of a statement that has several `*` in one list, or one with other names, with the names of their
/// columns; none for another one.
async fn written(state: &SessionState, text: &str) -> Result<Option<Written>> {
    let mut written: Option<Written> = None;
    for _ in 0..QUERIES_MAX {
        let mut whole = written.as_ref().map_or(text, |written| written.text.as_str()).to_owned();
        let mut begin = written.as_ref().map_or(text.len(), |written| written.begin);
        let Some(stars) = stars(state, &whole) else { break };
        // The places before it stay.
        for star in stars.into_iter().rev() {
            let Ok(rows) = crate::sql::planned(state, &star.query).await else { return Ok(None) };
            let columns = rows.schema().columns();
            let names = star.written(&columns).map_err(|unknown| {
                // Behind columns that are written, the places are others.
                let span = Span::try_from_sqlparser_span(unknown.span).filter(|_| written.is_none());
                let error = no_column(Column::from_name(normal(unknown)), columns.clone(), span);
                mistakes::of_plan(error, span, text, state)
            })?;
            begin = begin.min(star.place.start);
            whole.replace_range(star.place.clone(), &names);
        }
        written = Some(Written { text: whole, begin });
    }
    Ok(written)
}

/// The name of a column behind that of its table.
fn name(column: &Column) -> String {
    let mut parts = column.relation.as_ref().map(|table| table.to_vec()).unwrap_or_default();
    parts.push(column.name.clone());
    parts.iter().map(|part| quoted(part)).collect::<Vec<String>>().join(".")
}

fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// Each `*` of a list that has several, or one with other names, of the first query that has such a list.
fn stars(state: &SessionState, text: &str) -> Option<Vec<Star>> {
    let statement = crate::sql::parsed(state, text).ok()?;
    let mut inner = &statement;
    while let Statement::Explain(explained) = inner {
        inner = explained.statement.as_ref();
    }
    let found = match inner {
        Statement::Statement(inner) => inner.visit(&mut Finder::default()).break_value()?,
        Statement::CopyTo(copy) => match &copy.source {
            CopyToSource::Query(query) => query.visit(&mut Finder::default()).break_value()?,
            CopyToSource::Relation(_) => return None,
        },
        _ => return None,
    };
    let words = Words::of(text, state);
    let items = found.select.projection.iter().filter(|item| options(item).is_some());
    items.map(|item| star(&found, item, &words)).collect()
}

fn star(found: &Found, item: &SelectItem, words: &Words<'_>) -> Option<Star> {
    let number = |start: Location| words.tokens().iter().position(|token| token.span.start == start);
    let offset = |at: usize| Some(words.offset(words.tokens().get(at)?));
    let star = options(item)?;
    let end = star.wildcard_token.0.span.start;
    let begin = match item {
        SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::ObjectName(name), _) => {
            name.0.first()?.as_ident()?.span.start
        }
        _ => end,
    };
    let values = star.opt_replace.iter().flat_map(|replace| &replace.items);
    let values = values.map(|item| (item.column_name.clone(), item.expr.to_string())).collect();
    let renamed = match &star.opt_rename {
        Some(RenameSelectItem::Single(pair)) => vec![pair.clone()],
        Some(RenameSelectItem::Multiple(pairs)) => pairs.clone(),
        None => Vec::new(),
    };
    let last = match renamed.last() {
        // Behind the new name there may be a parenthesis.
        Some(pair) => {
            let at = number(pair.alias.span.start)?;
            let is_closed = words.tokens().get(at + 1).is_some_and(|token| token.token == Token::RParen);
            let is_list = matches!(star.opt_rename, Some(RenameSelectItem::Multiple(_)));
            if is_list && is_closed {
                offset(at + 1)? + 1
            } else {
                offset(at)? + pair.alias.to_string().len()
            }
        }
        None => offset(number(end)?)? + 1,
    };
    let place = offset(number(begin)?)?..last;
    Some(Star { place, query: found.alone(item, begin).to_string(), values, renamed })
}

/// The options of a `*` that has all columns under their names, or has other names for some; none for other
/// values.
fn options(item: &SelectItem) -> Option<&WildcardAdditionalOptions> {
    let options = match item {
        SelectItem::Wildcard(options)
        | SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::ObjectName(_), options) => options,
        _ => return None,
    };
    // Tokens are equal wherever they stand.
    let is_plain = *options == WildcardAdditionalOptions::default();
    (is_plain || options.opt_rename.is_some()).then_some(options)
}

fn has_names(item: &SelectItem) -> bool {
    options(item).is_some_and(|options| options.opt_rename.is_some())
}

/// A list with several `*`, its query, and the WITH of this one and of those around.
struct Found {
    select: Select,
    query: Query,
    clauses: Vec<With>,
}

impl Found {
    /// The query of one of the values alone, which begins at a place. Its columns have their own names.
    fn alone(&self, item: &SelectItem, begin: Location) -> Query {
        let mut item = item.clone();
        if let SelectItem::Wildcard(star) | SelectItem::QualifiedWildcard(_, star) = &mut item {
            (star.opt_rename, star.opt_replace) = (None, None);
        }
        let select = Select {
            projection: vec![item],
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

/// Finds the first list with several `*`, or one with other names, behind those within its query.
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

/// The first such list of a query. Queries in parentheses are visited by themselves.
fn with_several(body: &SetExpr) -> Option<&Select> {
    match body {
        SetExpr::Select(select) => {
            let count = select.projection.iter().filter(|item| options(item).is_some()).count();
            (1 < count || select.projection.iter().any(has_names)).then_some(&**select)
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
    fn columns_get_other_names_behind_a_star() {
        let mut session = session_of(&[
            "create table t (a int, \"C d\" int, b int) as values (1, 5, 9)",
            "create table u (a int, b int) as values (1, 7)",
        ]);
        for (query, names, row) in [
            ("select * rename (b as x, A as \"Y\") from t", &["Y", "C d", "x"][..], "1 5 9"),
            ("select t.* rename \"C d\" as c from t where b = 9", &["a", "c", "b"], "1 5 9"),
            ("select t.* rename(\"c D\" as c)from t", &["a", "\"c D\""], "none"),
            (
                "select * exclude (a) rename (\"C d\" as c), 1 as n from t order by c",
                &["c", "b", "n"],
                "5 9 1",
            ),
            ("select * replace (a + b as a) rename (b as x) from t", &["a", "C d", "x"], "10 5 9"),
            (
                "select t.* rename (a as x, b as y), u.* from t join u on t.a = u.a",
                &["x", "C d", "y", "a", "b"],
                "1 5 9 1 7",
            ),
            ("select * rename (a as x) from t join u using (a)", &["x", "C d", "b", "b"], "1 5 9 7"),
            (
                "with w as (select * rename (a as x) from u) select * rename (x as y) from w",
                &["y", "b"],
                "1 7",
            ),
            (
                "select x + 1 as s from (select * rename (a as x) from u union all select 5, 5) r order by s limit 1",
                &["s"],
                "2",
            ),
        ] {
            if row == "none" {
                let error = session.run(query).expect_err(query);
                assert_eq!(error.class(), "KeyError", "{query}: {error}");
                continue;
            }
            match session.execute(query).unwrap_or_else(|error| panic!("{query}: {error}")) {
                SqlAnswer::Rows(table) => assert_eq!(table.columns(), names, "{query}"),
                other => panic!("{query}: {other:?}"),
            }
            assert_eq!(session.run(query).expect("a row").concat().join(" "), row, "{query}");
        }
        cells(&mut session, "create table r as select * rename (a as x) from u");
        assert_eq!(cells(&mut session, "select x, b from r"), [["1", "7"]]);
        for (query, told) in [
            (
                "select * rename (nope as x) from u",
                "line 1, column 18: no column \"nope\"; there are \"a\", \"b\"",
            ),
            ("select * rename (a as x) from nope", "line 1, column 31: no table \"nope\""),
            ("select * rename (a as x) from u order by nope", "no column \"nope\""),
            ("select * rename (a as b) from u where c = 1", "line 1, column 39: no column \"c\""),
        ] {
            let error = session.run(query).expect_err(query).to_string();
            assert!(error.starts_with(told), "{query}: {error}");
        }
        let error = session.run("select * from u |> select * rename (a as x)").expect_err("a pipe");
        assert!(error.to_string().contains("RENAME behind * is not supported"), "{error}");
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
