//! Columns of one name.
//!
//! A result may have several columns of one name; the library has no plan of them. So each of them has a tag
//! behind its name until it is shown: letters that take no room. They are a number that the process has
//! drawn, and that of the column. Where a query in FROM or a view has two columns `sold`, the name `sold` is
//! an error. Names of users may have such letters, and keep them: only what begins with the drawn number is
//! cut.
//!
//! A value that expressions may not find by its name has a tag without a number (`base_columns`).
//!
//! Names behind `*` are not known before the query is planned: where planning finds a column twice, the ones
//! beside `*` get tags, and the statement is planned again. Tables, files and frames have no columns of one
//! name.

use super::fields::normal;
use super::value_names::{item_name, set_name};
use crate::error::{Error, Result};
use arrow::array::{RecordBatch, RecordBatchOptions};
use arrow::datatypes::{Field, Fields, Schema, SchemaRef};
use datafusion::common::{DataFusionError, SchemaError};
use datafusion::functions::string::split_part;
use datafusion::logical_expr::sqlparser::ast::{Expr, Select, SelectItem, VisitMut, VisitorMut};
use datafusion::logical_expr::{self, lit};
use std::collections::{BTreeMap, BTreeSet};
use std::hash::{BuildHasher, RandomState};
use std::ops::ControlFlow;
use std::sync::{Arc, LazyLock};

/// Letters that take no room: the digits of numbers, from the lowest one on.
const DIGITS: [char; 2] = ['\u{2063}', '\u{2064}'];

/// The number with which all tags of this process begin. No names of users have its letters by chance.
static DRAWN: LazyLock<String> = LazyLock::new(|| {
    let drawn = RandomState::new().hash_one(0);
    (0..32).map(|digit| DIGITS[usize::from(((drawn >> digit) & 1) == 1)]).collect()
});

/// Names of one statement at most for which it is planned once more.
const DOUBLES_MAX: usize = 256;

/// Names that columns behind a `*` have, and values beside it.
#[derive(Default)]
pub(in crate::sql) struct Doubles(BTreeSet<Double>);

impl Doubles {
    /// Adds the name that an error of planning tells to be there twice; whether it is a new one.
    pub(in crate::sql) fn add(&mut self, error: &DataFusionError) -> bool {
        self.0.len() < DOUBLES_MAX && twice(error).is_some_and(|name| self.0.insert(name))
    }

    /// Whether a name may be one of them.
    fn has(&self, name: &str) -> bool {
        self.0.iter().any(|double| double.may_be(name))
    }

    /// Those of these names that are among them.
    fn among<'a>(&self, names: impl Iterator<Item = &'a String> + Clone) -> BTreeSet<String> {
        let name_of = |double: &Double| {
            let may_be = names.clone().filter(|name| double.may_be(name));
            may_be.max_by_key(|name| name.len()).cloned()
        };
        self.0.iter().filter_map(name_of).collect()
    }
}

/// A name that is there twice.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Double {
    Name(String),
    /// The text of an expression, which ends with its name. Names may have points and blanks, too: it is the
    /// longest one of a query that may be.
    Text(String),
}

impl Double {
    fn may_be(&self, name: &str) -> bool {
        match self {
            Double::Name(known) => known == name,
            Double::Text(text) => {
                let may_end = |text: &str| text.is_empty() || text.ends_with('.') || text.ends_with(" AS ");
                text.strip_suffix(name).is_some_and(may_end)
            }
        }
    }
}

/// The name that two columns of a plan would have.
fn twice(error: &DataFusionError) -> Option<Double> {
    match error.find_root() {
        DataFusionError::SchemaError(inner, _) => match &**inner {
            SchemaError::AmbiguousReference { field } => {
                field.relation.as_ref().map(|_| Double::Name(field.name.clone()))
            }
            SchemaError::DuplicateUnqualifiedField { name } => Some(Double::Name(name.clone())),
            SchemaError::DuplicateQualifiedField { name, .. } => Some(Double::Name(name.clone())),
            SchemaError::FieldNotFound { .. } => None,
        },
        // The library has no other word for it.
        DataFusionError::Plan(text) => match of_one_name(text)? {
            ("Projections", [_, second]) => Some(Double::Text(second.to_owned())),
            _ => None,
        },
        _ => None,
    }
}

/// The operator whose expressions have one name in a message of the library, and two of these.
pub(in crate::sql) fn of_one_name(text: &str) -> Option<(&str, [&str; 2])> {
    let (operator, rest) = text.split_once(" require unique expression names but the expression \"")?;
    let (first, rest) = rest.split_once("\" at position ")?;
    let (_, rest) = rest.split_once(" and \"")?;
    let (second, _) = rest.split_once("\" at position ")?;
    Some((operator, [first, second]))
}

/// Gives tags to the values of queries that have one name.
pub(in crate::sql) fn write_tags(statement: &mut impl VisitMut, doubles: &Doubles) {
    // It never breaks off.
    let _whole = statement.visit(&mut Tags { doubles, given: BTreeMap::new() });
}

/// A name that no column has, and that is shown without its tag.
pub(in crate::sql) fn hidden(name: &str) -> String {
    with_tag(name, 0)
}

/// A name without the tags behind it. A name that has one may get another one.
pub(in crate::sql) fn plain_name(name: &str) -> &str {
    match name.split_once(DRAWN.as_str()) {
        Some((plain, tags)) if tags.chars().all(|letter| DIGITS.contains(&letter)) => plain,
        _ => name,
    }
}

/// Texts that are names of columns, without their tags.
pub(in crate::sql) fn plain_values(names: logical_expr::Expr) -> logical_expr::Expr {
    split_part().call(vec![names, lit(DRAWN.as_str()), lit(1_i64)])
}

/// An error of columns without their tags. One of a name that several columns have says so.
pub(in crate::sql) fn plain_error(error: Error) -> Error {
    match error {
        Error::Key { label, known } => {
            let same = known.iter().filter(|name| **name != label && plain_name(name) == label).count();
            if 1 < same {
                return Error::Value(format!(
                    "column {label:?} is there {same} times; give one of them another name, with AS"
                ));
            }
            let mut known: Vec<String> = known.iter().map(|name| plain_name(name).to_owned()).collect();
            known.dedup();
            Error::Key { label, known }
        }
        Error::NotImplemented(text) => Error::NotImplemented(plain_text(&text)),
        Error::Sql(text) => Error::Sql(plain_text(&text)),
        Error::Type(text) => Error::Type(plain_text(&text)),
        Error::Value(text) => Error::Value(plain_text(&text)),
        other => other,
    }
}

/// A text without the tags of names in it.
pub(in crate::sql) fn plain_text(text: &str) -> String {
    let mut parts = text.split(DRAWN.as_str());
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |plain, part| plain + part.trim_start_matches(DIGITS))
}

/// Rows with the names that are shown.
pub(in crate::sql) fn shown(
    schema: &SchemaRef,
    batches: Vec<RecordBatch>,
) -> Result<(SchemaRef, Vec<RecordBatch>)> {
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
pub(in crate::sql) fn check_different(columns: &Fields) -> Result<()> {
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

struct Tags<'a> {
    doubles: &'a Doubles,
    /// Tags that each name has been given: queries within each other have different ones.
    given: BTreeMap<String, usize>,
}

impl VisitorMut for Tags<'_> {
    type Break = ();

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<()> {
        if 1 < select.projection.len() {
            self.tell_apart(&mut select.projection);
        }
        ControlFlow::Continue(())
    }
}

impl Tags<'_> {
    /// Gives tags to the columns that have one name. Those of several tables may have it: the library tells
    /// them apart by their tables.
    fn tell_apart(&mut self, items: &mut [SelectItem]) {
        let mut names: BTreeMap<String, Vec<usize>> = BTreeMap::new();
        for (at, item) in items.iter().enumerate() {
            let name = item_name(item);
            name.into_iter().for_each(|name| names.entry(name).or_default().push(at));
        }
        let has_all = items.iter().any(is_all);
        let doubles = if has_all { self.doubles.among(names.keys()) } else { BTreeSet::new() };
        for (name, places) in names {
            let is_double = doubles.contains(&name);
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
                    set_name(&mut items[at], self.tagged(&name));
                }
            }
        }
    }

    /// A name with a tag that no other one has: one that views have brought along is told to be there twice.
    fn tagged(&mut self, name: &str) -> String {
        let given = self.given.entry(name.to_owned()).or_default();
        loop {
            *given += 1;
            let tagged = with_tag(name, *given);
            if !self.doubles.has(&tagged) {
                return tagged;
            }
        }
    }
}

/// A name with a tag, and a number behind that; with none for zero.
fn with_tag(name: &str, mut number: usize) -> String {
    let mut tagged = format!("{name}{}", *DRAWN);
    while 0 < number {
        tagged.push(DIGITS[number % 2]);
        number /= 2;
    }
    tagged
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::{Settings, block_on};
    use crate::sql::SqlSession;
    use crate::sql::small_tables::{answer, three_columns};
    use crate::{DataFrame, sql};

    #[test]
    fn the_library_tells_names_that_come_twice() {
        for (query, expected) in [
            ("select *, t.a from (values (1, 2)) as t(a, b)", Some("a")),
            ("select *, b as \"A b\", a as \"A b\" from (values (1, 2)) as t(a, b)", Some("A b")),
            ("select *, 1 as a from (values (1, 2)) as t(a, b)", Some("a")),
            ("select *, \"b.a\" from (values (1, 2)) as t(a, \"b.a\")", Some("b.a")),
            ("select *, \"b AS a\" from (values (1, 2)) as t(a, \"b AS a\")", Some("b AS a")),
            ("select *, c from (values (1, 2)) as t(a, b)", None),
        ] {
            let state = crate::engine::session(Settings::default());
            let planned = block_on(async { Ok(state.create_logical_plan(query).await) }).expect("an answer");
            let error = planned.expect_err(query);
            let doubles = Doubles(twice(&error).into_iter().collect());
            let names = ["a", "A b", "b.a", "b AS a"].map(str::to_owned);
            let found = doubles.among(names.iter()).pop_first();
            assert_eq!(found.as_deref(), expected, "{query}: {error}");
        }
    }

    #[test]
    fn letters_of_users_that_take_no_room_stay() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("n.csv").display().to_string();
        let many = format!("a{}", DIGITS.iter().cycle().take(40).collect::<String>());
        for name in ["a\u{2063}", "a\u{2063}\u{2064}", many.as_str()] {
            std::fs::write(&path, format!("{name},b\n1,2\n")).expect("a file");
            let mut session = SqlSession::default();
            let query = format!("select 1 as \"{name}\", 2 as a, 3 as \"{name}\"");
            assert_eq!(answer(&mut session, &query).0, [name, "a", name]);
            let query = format!("select *, b as \"{name}\" from read_csv('{path}')");
            assert_eq!(answer(&mut session, &query).0, [name, "b", name]);
            session
                .run(&format!("create table t as select \"{name}\", b as a from read_csv('{path}')"))
                .expect("a table");
            assert_eq!(answer(&mut session, "select * from t").0, [name, "a"]);
            assert_eq!(session.run("describe t").expect("columns")[0][0], name);
            let t = DataFrame::from_columns([(name, vec![1].into())]);
            assert_eq!(sql("select * from t", &[("t", &t)]).columns().expect("labels"), [name]);
        }
    }

    #[test]
    fn results_have_columns_of_one_name() {
        let mut session = three_columns();
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
            (
                "select *, \"Length\", \"Sepal.Length\" from (select 5 as \"Sepal.Length\", 6 as \"Length\") x",
                &["Sepal.Length", "Length", "Length", "Sepal.Length"],
                &["5", "6", "6", "5"],
            ),
            (
                "select *, \"a AS C\" from (select a as \"a AS C\" from t) x order by 1",
                &["a AS C", "a AS C"],
                &["1", "1"],
            ),
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
        let mut session = three_columns();
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
