//! Names of columns that a query computes, and columns of one name.
//!
//! A value that has no name of its own is named as it is written: `40 + 2`, `sum(sold)`. A column, a field
//! and a column that is cast keep their names, as in PostgreSQL: `sold::double` is `sold`.
//!
//! A result may have several columns of one name; the library has no plan of them. So each of them has a mark
//! behind its name until it is shown: a number of letters that take no room. Nobody can write such a name:
//! where a query in FROM or a view has two columns `sold`, the name `sold` is an error. Names
//! behind `*` are not known before the query is planned: where planning finds a column twice, the ones beside
//! `*` are marked, and the statement is planned again. Tables, files and frames have no columns of one name.

use super::base_columns::read_in_expressions;
use super::fields::{Tables, normal};
use super::value_names::{item_name, own_name, text, unnested};
use crate::error::{Error, Result};
use arrow::array::{RecordBatch, RecordBatchOptions};
use arrow::datatypes::{Field, Fields, Schema, SchemaRef};
use datafusion::common::{DataFusionError, SchemaError};
use datafusion::logical_expr::sqlparser::ast::{
    Expr, Ident, OrderBy, Query, Select, SelectItem, SetExpr, TableAlias, TableAliasColumnDef, TableFactor,
    Value, Visit, VisitMut, VisitorMut,
};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::sync::Arc;

/// Letters that take no room: the first behind the names of columns of one name, and as 0 in their numbers,
/// the second as 1.
const MARK: char = '\u{2063}';
const ONE: char = '\u{2064}';

/// Names of one statement at most for which it is planned once more.
const DOUBLES_MAX: usize = 256;

/// The name of a call that the library names so, too.
const COUNT: &str = "count(*)";

/// Names that columns behind a `*` have, and values beside it.
#[derive(Default)]
pub(super) struct Doubles(BTreeSet<String>);

impl Doubles {
    /// Adds the name that an error of planning tells to be there twice; whether it is a new one.
    pub(super) fn add(&mut self, error: &DataFusionError) -> bool {
        self.0.len() < DOUBLES_MAX && twice(error).is_some_and(|name| self.0.insert(name))
    }
}

/// The name that two columns of a plan would have.
fn twice(error: &DataFusionError) -> Option<String> {
    match error.find_root() {
        DataFusionError::SchemaError(inner, _) => match &**inner {
            SchemaError::AmbiguousReference { field } => field.relation.as_ref().map(|_| field.name.clone()),
            SchemaError::DuplicateUnqualifiedField { name } => Some(name.clone()),
            SchemaError::DuplicateQualifiedField { name, .. } => Some(name.clone()),
            SchemaError::FieldNotFound { .. } => None,
        },
        DataFusionError::Plan(text) => {
            let rest =
                text.strip_prefix("Projections require unique expression names but the expression ")?;
            let (_, second) = rest.split_once("\" at position ")?.1.split_once(" and \"")?;
            let (second, _) = second.split_once("\" at position ")?;
            let name = match second.rsplit_once(" AS ") {
                Some((_, name)) => name,
                None => second.rsplit_once('.').map_or(second, |(_, name)| name),
            };
            Some(name.trim_matches('"').to_owned())
        }
        _ => None,
    }
}

/// Names the values of queries whose columns are shown or read by name, and marks columns of one name.
pub(super) fn write_labels(statement: &mut (impl Visit + VisitMut), doubles: &Doubles) {
    let tables = Tables::of(statement);
    // It never breaks off.
    let _whole =
        VisitMut::visit(statement, &mut Labels { tables, doubles, around: vec![0], given: BTreeMap::new() });
}

/// A name without the mark of a column that has a namesake.
pub(super) fn plain_name(name: &str) -> &str {
    name.trim_end_matches([MARK, ONE])
}

/// An error of columns without their marks. One of a name that several columns have says so.
pub(super) fn without_marks(error: Error) -> Error {
    let plain = |text: String| if text.contains(MARK) { text.replace([MARK, ONE], "") } else { text };
    match error {
        Error::Key { label, known } => {
            let same = known.iter().filter(|name| **name != label && plain_name(name) == label).count();
            if 1 < same {
                return Error::Value(format!(
                    "column {label:?} is there {same} times; give one of them another name, with AS"
                ));
            }
            let mut known: Vec<String> = known.into_iter().map(plain).collect();
            known.dedup();
            Error::Key { label, known }
        }
        Error::NotImplemented(text) => Error::NotImplemented(plain(text)),
        Error::Sql(text) => Error::Sql(plain(text)),
        Error::Type(text) => Error::Type(plain(text)),
        Error::Value(text) => Error::Value(plain(text)),
        other => other,
    }
}

/// Rows with the names that are shown.
pub(super) fn shown(schema: &SchemaRef, batches: Vec<RecordBatch>) -> Result<(SchemaRef, Vec<RecordBatch>)> {
    if schema.fields().iter().all(|field| plain_name(field.name()) == field.name()) {
        return Ok((Arc::clone(schema), batches));
    }
    let named = |schema: &Schema| {
        let fields = schema.fields().iter();
        let fields: Vec<Field> =
            fields.map(|field| field.as_ref().clone().with_name(plain_name(field.name()))).collect();
        Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone()))
    };
    let batches = batches.into_iter().map(|batch| {
        let rows = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        let columns = batch.columns().to_vec();
        Ok(RecordBatch::try_new_with_options(named(&batch.schema()), columns, &rows)?)
    });
    Ok((named(schema), batches.collect::<Result<_>>()?))
}

/// Refuses columns of one name, where each has one of its own: in tables, files and frames.
pub(super) fn check_different(columns: &Fields) -> Result<()> {
    let mut known = BTreeSet::new();
    for name in columns.iter().map(|field| plain_name(field.name())) {
        if !known.insert(name) {
            return Err(Error::Value(format!(
                "two columns {name:?}, where each has a name of its own: give one of them another name, with AS"
            )));
        }
    }
    Ok(())
}

struct Labels<'a> {
    tables: Tables,
    doubles: &'a Doubles,
    /// Expressions around the part that is visited, within each query in FROM.
    around: Vec<usize>,
    /// Marks that each name has been given: queries within each other have different ones.
    given: BTreeMap<String, usize>,
}

impl VisitorMut for Labels<'_> {
    type Break = ();

    fn pre_visit_table_factor(&mut self, table: &mut TableFactor) -> ControlFlow<()> {
        self.around.push(0);
        if let TableFactor::Derived { subquery, alias: Some(alias), .. } = table {
            self.name_query(subquery, Some(alias));
        }
        ControlFlow::Continue(())
    }

    fn post_visit_table_factor(&mut self, _: &mut TableFactor) -> ControlFlow<()> {
        self.around.pop();
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, _: &mut Expr) -> ControlFlow<()> {
        if let Some(around) = self.around.last_mut() {
            *around += 1;
        }
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, _: &mut Expr) -> ControlFlow<()> {
        if let Some(around) = self.around.last_mut() {
            *around -= 1;
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        for rows in query.with.iter_mut().flat_map(|with| &mut with.cte_tables) {
            self.name_query(&mut rows.query, Some(&mut rows.alias));
        }
        self.name_query(query, None);
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<()> {
        self.name_all(select, None);
        if 1 < select.projection.len() {
            self.mark(&mut select.projection);
        }
        ControlFlow::Continue(())
    }
}

impl Labels<'_> {
    /// Names the values of a query; its alias says the names that values may not have within it.
    fn name_query(&self, query: &mut Query, alias: Option<&mut TableAlias>) {
        let SetExpr::Select(select) = &mut *query.body else { return };
        let names: Option<Vec<String>> = select.projection.iter().map(item_name).collect();
        let is_apart = self.name_all(select, query.order_by.as_mut());
        if let (true, Some(names), Some(alias)) = (is_apart, names, alias)
            && alias.columns.is_empty()
            && names.iter().collect::<BTreeSet<_>>().len() == names.len()
        {
            let name = |name| TableAliasColumnDef { name: Ident::with_quote('"', name), data_type: None };
            alias.columns = names.into_iter().map(name).collect();
        }
    }

    /// Names the values of a query; whether some may not have their own names. Nobody sees those of a
    /// subquery that stands for a value.
    fn name_all(&self, select: &mut Select, order: Option<&mut OrderBy>) -> bool {
        if self.around.last() != Some(&0) {
            return false;
        }
        let unnamed = select.projection.iter().filter_map(|item| self.unnamed(item));
        let borrowed: BTreeMap<String, String> =
            unnamed.filter_map(|expr| Some((own_name(expr)?, text(unnested(expr))))).collect();
        let apart = if borrowed.is_empty() {
            BTreeSet::new()
        } else {
            read_in_expressions(select, order, &borrowed, &self.tables)
        };
        for item in &mut select.projection {
            if let Some(expr) = self.unnamed(item) {
                let name = own_name(expr).filter(|name| !apart.contains(name));
                let name = name.unwrap_or_else(|| text(unnested(expr)));
                set_name(item, name);
            }
        }
        !apart.is_empty()
    }

    /// A value that has neither a name nor is a column, which the library names.
    fn unnamed<'a>(&self, item: &'a SelectItem) -> Option<&'a Expr> {
        let SelectItem::UnnamedExpr(expr) = item else { return None };
        let is_named = match expr {
            Expr::Identifier(_) => true,
            Expr::CompoundIdentifier(parts) => parts.first().is_some_and(|first| self.tables.has(first)),
            Expr::Function(_) => expr.to_string().eq_ignore_ascii_case(COUNT),
            _ => false,
        };
        (!is_named).then_some(expr)
    }

    /// Marks the columns that have one name. Those of several tables may have it: the library tells them
    /// apart by their tables.
    fn mark(&mut self, items: &mut [SelectItem]) {
        let mut names: BTreeMap<String, Vec<usize>> = BTreeMap::new();
        for (at, item) in items.iter().enumerate() {
            let name = item_name(item);
            name.into_iter().for_each(|name| names.entry(name).or_default().push(at));
        }
        let has_all = items.iter().any(is_all);
        for (name, places) in names {
            let is_double = has_all && self.doubles.0.contains(&name);
            if places.len() < 2 && !is_double {
                continue;
            }
            let tables: Vec<Option<Vec<String>>> = places.iter().map(|&at| table_of(&items[at])).collect();
            let count = |table: &Option<Vec<String>>| tables.iter().filter(|other| *other == table).count();
            let apart: Vec<bool> =
                tables.iter().map(|table| !is_double && table.is_some() && count(table) == 1).collect();
            // An only column of a table beside others of no table is one of them.
            let all_apart = 1 < apart.iter().filter(|is_apart| **is_apart).count();
            for (at, is_apart) in places.into_iter().zip(apart) {
                if !(is_apart && all_apart) {
                    set_name(&mut items[at], self.marked(&name));
                }
            }
        }
    }

    /// A name with a mark that no other one has: one that views have brought along is told to be there twice.
    fn marked(&mut self, name: &str) -> String {
        let given = self.given.entry(name.to_owned()).or_default();
        loop {
            *given += 1;
            let marked = with_mark(name, *given);
            if !self.doubles.0.contains(&marked) {
                return marked;
            }
        }
    }
}

/// A name with a number behind it.
fn with_mark(name: &str, mut number: usize) -> String {
    let mut marked = format!("{name}{MARK}");
    while 0 < number {
        marked.push(if number.is_multiple_of(2) { MARK } else { ONE });
        number /= 2;
    }
    marked
}

fn is_all(item: &SelectItem) -> bool {
    matches!(item, SelectItem::Wildcard(_) | SelectItem::QualifiedWildcard(..))
}

/// The table of a column that has the name of its table before it.
fn table_of(item: &SelectItem) -> Option<Vec<String>> {
    match item {
        SelectItem::UnnamedExpr(Expr::CompoundIdentifier(parts)) => {
            parts.split_last().map(|(_, table)| table.iter().map(normal).collect())
        }
        _ => None,
    }
}

/// Gives a value a name.
fn set_name(item: &mut SelectItem, name: String) {
    let expr = match item {
        SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } => expr,
        _ => return,
    };
    let expr = std::mem::replace(expr, Expr::value(Value::Null));
    *item = SelectItem::ExprWithAlias { expr, alias: Ident::with_quote('"', name) };
}

#[cfg(test)]
mod tests {
    use crate::sql::small_tables::{cells, session_of};
    use crate::sql::value_names::name_of;
    use crate::sql::{SqlAnswer, SqlSession};
    use datafusion::logical_expr::sqlparser::dialect::GenericDialect;
    use datafusion::logical_expr::sqlparser::parser::Parser;

    fn session() -> SqlSession {
        session_of(&[
            "create table t (a int, b int, \"C\" int) as values (1, 10, 5), (2, 20, 6), (2, 30, 7)",
            "create table u (a int) as values (2), (9)",
        ])
    }

    /// The names of the columns of a query, and its first row.
    #[track_caller]
    fn answer(session: &mut SqlSession, query: &str) -> (Vec<String>, Vec<String>) {
        match session.execute(query).unwrap_or_else(|error| panic!("{query}: {error}")) {
            SqlAnswer::Rows(table) => {
                let row = cells(session, query).into_iter().next().unwrap_or_default();
                (table.columns(), row)
            }
            other => panic!("{query}: {other:?}"),
        }
    }

    #[test]
    fn expressions_have_names_as_they_are_written() {
        for (expr, expected) in [
            ("40+2", "40 + 2"),
            ("(40 + 2)", "40 + 2"),
            ("SUM( T.a )", "sum(t.a)"),
            ("Count(distinct \"C\")", "count(DISTINCT C)"),
            ("count(*)", "count(*)"),
            ("extract(year from day)", "EXTRACT(YEAR FROM day)"),
            ("sold::double", "sold"),
            ("cast(t.Sold as int)", "sold"),
            ("\"Sold\"::int", "Sold"),
            ("sum(a)::double", "sum(a)::DOUBLE"),
            ("'x'", "'x'"),
            ("date '2024-01-01'", "DATE '2024-01-01'"),
            ("-a", "-a"),
            ("not a", "NOT a"),
            ("\"a b\" || 'c'", "\"a b\" || 'c'"),
            ("s.x", "x"),
            ("t.s['Name']", "Name"),
            ("s['x'].y", "y"),
            ("l[1]", "l[1]"),
            ("(select max(b) from u)", "max(b)"),
            ("(select * from u)", "(SELECT * FROM u)"),
            ("sum(a) over (order by b)", "sum(a) OVER (ORDER BY b)"),
            ("case when a = 1 then 2 end", "CASE WHEN a = 1 THEN 2 END"),
        ] {
            let dialect = GenericDialect {};
            let parsed = Parser::new(&dialect).try_with_sql(expr).expect("words").parse_expr();
            assert_eq!(name_of(&parsed.expect("an expression")), expected, "{expr}");
        }
    }

    #[test]
    fn results_have_the_names_of_values() {
        let mut session = session();
        for (query, names) in [
            ("select 40 + 2", &["40 + 2"][..]),
            ("select sum(a), c, t.b::text, count(*) from t group by all", &["sum(a)", "C", "b", "count(*)"]),
            ("select \"sum(a)\" + 1 from (select sum(a) from t) x", &["\"sum(a)\" + 1"]),
            ("with x as (select max(a) from t) select * from x", &["max(a)"]),
            ("select a + 1 from t union all select 7 order by \"a + 1\" desc", &["a + 1"]),
            ("select q.s.x, s.x + 1 from (select {'x': a} as s from t) q", &["x", "s.x + 1"]),
        ] {
            assert_eq!(answer(&mut session, query).0, names, "{query}");
        }
        session.run("create view v as select sum(a), b % 20 from t group by b % 20").expect("a view");
        assert_eq!(answer(&mut session, "select \"sum(a)\", \"b % 20\" from v order by 1").1, ["2", "0"]);
    }

    #[test]
    fn results_have_columns_of_one_name() {
        let mut session = session();
        for (query, names, row) in [
            ("select 1, 1", &["1", "1"][..], &["1", "1"][..]),
            ("select a, a::bigint, t.a from t order by a", &["a", "a", "a"], &["1", "1", "1"]),
            ("select a as x, b as x from t order by b", &["x", "x"], &["1", "10"]),
            (
                "select *, a::double, c from t order by b",
                &["a", "b", "C", "a", "C"],
                &["1", "10", "5", "1", "5"],
            ),
            ("select t.*, 7 as b from t order by t.b", &["a", "b", "C", "b"], &["1", "10", "5", "7"]),
            ("select sum(a), sum(a), SUM(A) from t", &["sum(a)", "sum(a)", "sum(a)"], &["5", "5", "5"]),
            ("select t.b, T.B from t order by t.b", &["b", "b"], &["10", "10"]),
            ("select t.a, u.a, t.a + 1 as a from t join u on t.a = u.a", &["a", "a", "a"], &["2", "2", "3"]),
            (
                "select a, a, count(*) from t group by all order by 1",
                &["a", "a", "count(*)"],
                &["1", "1", "1"],
            ),
            ("select distinct a, a from t order by 1", &["a", "a"], &["1", "1"]),
            ("select * from (select a, a from t) x order by all", &["a", "a"], &["1", "1"]),
            (
                "with x as (select *, b as a from u, (select 3 b) y) select * from x order by 1",
                &["a", "b", "a"],
                &["2", "3", "3"],
            ),
            (
                "select *, b as a from (select *, b + 1 as a from t) x order by b",
                &["a", "b", "C", "a", "a"],
                &["1", "10", "5", "11", "10"],
            ),
            (
                "select x.*, 7 as z, 8 as z from (select 5 as z, 6 as z) x",
                &["z", "z", "z", "z"],
                &["5", "6", "7", "8"],
            ),
            ("select 1, 1 union all select 2, 2 order by 1", &["1", "1"], &["1", "1"]),
            ("select exists (select 1, 1) as e", &["e"], &["true"]),
            (
                "select t.a, (select max(a) from u), (select max(u.a) from u) from t order by t.a",
                &["a", "max(a)", "max(u.a)"],
                &["1", "9", "9"],
            ),
            ("select a, (select u.a from u where u.a = t.a) from t order by 1", &["a", "a"], &["1", "NULL"]),
        ] {
            let (found, first) = answer(&mut session, query);
            assert_eq!(found, names, "{query}");
            assert_eq!(first, row, "{query}");
        }
        session.run("create table two (x int, y int) as select 1, 1").expect("names of their own");
        session.run("insert into two select 2, 2").expect("a row");
        assert_eq!(session.run("select sum(x), sum(y) from two").expect("a row"), [["3", "3"]]);
        let described = session.run("describe select a, a from t").expect("columns");
        assert_eq!([&described[0][0], &described[1][0]], ["a", "a"]);
        let summarized = session.run("summarize select a, a from t").expect("columns");
        assert_eq!([&summarized[0][0], &summarized[1][0]], ["a", "a"]);
    }

    #[test]
    fn a_name_of_two_columns_is_none_where_names_are_read() {
        let mut session = session();
        session.run("create view v as select a, b as a from t").expect("a view");
        assert_eq!(answer(&mut session, "select * from v order by all").0, ["a", "a"]);
        let query = "select *, 7 as a, 8 as a from v order by 1";
        assert_eq!(
            answer(&mut session, query),
            (vec!["a".to_owned(); 4], ["1", "10", "7", "8"].map(str::to_owned).to_vec())
        );
        for query in [
            "select a from v",
            "select x.a from (select a, a + 1 as a from t) x",
            "with x as (select 1 z, 2 z) select z from x",
        ] {
            let error = session.run(query).expect_err(query);
            assert!(error.to_string().contains("is there 2 times; give one of them another name"), "{error}");
            assert!(error.sql_place().is_some(), "{error}");
        }
        for statement in ["create table w as select a, a from t", "create table w as select * from v"] {
            let error = session.run(statement).expect_err(statement);
            assert!(error.to_string().contains("two columns \"a\""), "{error}");
        }
        let lists = "select a, b from t union by name select b, 7 as a from t";
        assert_eq!(session.run(lists).expect("columns of different names").len(), 6);
        for query in [
            "select 1 as a, 2 as a union all by name select 3 as a, 4 as a",
            "select a, a::bigint from t union by name select a, b from t",
            "with x as (select * from v union all by name select a from u) select count(*) from x",
        ] {
            let error = session.run(query).expect_err(query);
            assert!(error.to_string().contains("several columns \"a\" in UNION BY NAME"), "{error}");
        }
        let error = session.frame("select a, a::bigint from t").columns().expect_err("a frame");
        assert!(error.to_string().contains("two columns \"a\""), "{error}");
        let error = session.run("copy (select a, a from t) to 'nowhere.csv'").expect_err("a file");
        assert!(error.to_string().contains("two columns \"a\""), "{error}");
    }
}
