//! Columns with capital letters, which statements name without quotes.
//!
//! A name without quotes is one of small letters. If there is no such column, and one whose name differs in
//! letters alone, that one is meant: files have headings such as `Sold`. The statement is planned again then,
//! with the name of the column at this place, and at others of the same query where it has the same table
//! before it. Columns of the rows around a subquery are not among those that the library knows there.
//!
//! A value of a query in FROM or WITH may have a hidden name (`base_columns`). It is meant by its plain one
//! in the same way.
//!
//! The library tells the places of columns in some clauses only. Where it tells none, each place of the name
//! is asked for: the statement is planned with a name there that no column has, and the error says which
//! columns are known at this place, aliases among them. A place may be right as it stands, by a column of the
//! rows around. Such places are told only as far as the mistake, behind which nothing is planned: of several
//! places, the last one in the order of planning is the mistake.

use super::column_names::{Behind, each_name};
use super::namesakes::{Doubles, hidden, plain_name};
use super::unknown_keys::plan_of;
use datafusion::common::{Column, DataFusionError, SchemaError, Span};
use datafusion::execution::SessionState;
use datafusion::logical_expr::sqlparser::ast::Ident;
use datafusion::sql::parser::Statement;
use std::collections::{BTreeMap, BTreeSet};

/// Names of one statement that are written in other letters at most. Each of them is planned for once more.
const NAMES_MAX: usize = 256;
/// Plans of one statement that ask for places at most.
const ASKED_MAX: usize = 512;
/// The begin of a name that nobody types; a number follows.
const ASKED: &str = "\0asked";

/// Places in a statement, and the names of columns that are meant there.
#[derive(Clone, Default)]
pub(in crate::sql) struct Letters {
    names: Vec<(Span, String)>,
    /// The places that are asked for.
    asked: Vec<Span>,
    plans: usize,
}

/// The only column that is meant by a name that there is not: a hidden one, or one of other letters.
pub(in crate::sql) fn meant(error: &DataFusionError) -> Option<String> {
    meant_by(error, missing(error)?)
}

/// The name of a column that there is not.
pub(in crate::sql) fn missing(error: &DataFusionError) -> Option<&str> {
    let DataFusionError::SchemaError(inner, _) = error.find_root() else { return None };
    let SchemaError::FieldNotFound { field, .. } = &**inner else { return None };
    Some(&field.name)
}

/// Whether a column is one of the table that another one has before it, if that has one.
pub(in crate::sql) fn is_of_table(known: &Column, asked: &Column) -> bool {
    match (&asked.relation, &known.relation) {
        (Some(asked), Some(known)) => asked.resolved_eq(known),
        (asked, _) => asked.is_none(),
    }
}

/// The number of the place that is asked for, if it has an error.
fn asked_place(error: &DataFusionError) -> Option<usize> {
    missing(error)?.strip_prefix(ASKED)?.parse().ok()
}

/// The only column that has this name hidden, or whose name differs in letters alone from this one, which is
/// none itself, at the place of an error.
fn meant_by(error: &DataFusionError, name: &str) -> Option<String> {
    let DataFusionError::SchemaError(inner, _) = error.find_root() else { return None };
    let SchemaError::FieldNotFound { field, valid_fields } = &**inner else { return None };
    let of_table = valid_fields.iter().filter(|known| is_of_table(known, field));
    let known: BTreeSet<&str> = of_table.map(|known| known.name.as_str()).collect();
    let only = |is_meant: &dyn Fn(&str) -> bool| {
        let mut meant = known.iter().filter(|known| is_meant(known));
        meant.next().filter(|_| meant.next().is_none())
    };
    let of_name = only(&|known| plain_name(known) == name).filter(|only| **only == hidden(name));
    let of_letters = || only(&|known| known.to_lowercase() == name).filter(|only| **only != name);
    of_name.or_else(of_letters).map(|only| (*only).to_owned())
}

impl Letters {
    /// Adds the name at a place; whether it is a new one.
    pub(in crate::sql) fn add(&mut self, span: Span, name: String) -> bool {
        let is_new = self.names.len() < NAMES_MAX && self.names.iter().all(|(known, _)| *known != span);
        if is_new {
            self.names.push((span, name));
        }
        is_new
    }

    /// Adds the name at a place that the library does not tell, for an error of it; whether it is a new one.
    pub(in crate::sql) async fn ask(
        &mut self,
        error: &DataFusionError,
        text: &str,
        session: &SessionState,
        doubles: &Doubles,
    ) -> bool {
        let (Some(name), Some(_)) = (missing(error), meant(error)) else { return false };
        let Ok(mut statement) = crate::sql::parsed(session, text) else { return false };
        let mut found = Vec::new();
        for place in self.places(&mut statement, name) {
            // An error of another place may come before this one: nothing is known of it yet.
            let error = self.asking(&[place], text, session, doubles).await;
            if let Some(error) = error.filter(|error| asked_place(error).is_some()) {
                found.extend(meant_by(&error, name).map(|column| (place, column)));
            }
        }
        while 1 < found.len() {
            let places: Vec<Span> = found.iter().map(|(place, _)| *place).collect();
            let error = self.asking(&places, text, session, doubles).await;
            let first = error.as_ref().and_then(asked_place);
            let Some(first) = first.filter(|first| *first < found.len()) else { return false };
            found.remove(first);
        }
        found.pop().is_some_and(|(place, column)| self.add(place, column))
    }

    /// The error of a statement in which places are asked for; `None` if there is none, or too much has been
    /// planned.
    async fn asking(
        &mut self,
        places: &[Span],
        text: &str,
        session: &SessionState,
        doubles: &Doubles,
    ) -> Option<DataFusionError> {
        if self.plans == ASKED_MAX {
            return None;
        }
        self.plans += 1;
        let asking = Letters { asked: places.to_vec(), ..self.clone() };
        let statement = crate::sql::prepared(session, text, &asking, doubles).ok()?;
        plan_of(session, statement).await.err()
    }

    /// The places of a name without quotes that nothing is known of: one of each that means one column.
    fn places(&self, statement: &mut Statement, name: &str) -> Vec<Span> {
        let known = self.behind_tables(statement);
        let (mut places, mut seen) = (Vec::new(), BTreeSet::new());
        each_name(statement, &mut |ident, behind| {
            let is_asked = ident.quote_style.is_none() && ident.value.to_lowercase() == name;
            let is_new = behind.is_none_or(|behind| !known.contains_key(&behind) && seen.insert(behind));
            if is_asked && is_new && self.name(ident).is_none() {
                places.extend(Span::try_from_sqlparser_span(ident.span));
            }
        });
        places
    }

    /// The names behind tables of which one place is known, or asked for.
    fn behind_tables(&self, statement: &mut Statement) -> BTreeMap<Behind, String> {
        let mut known = BTreeMap::new();
        each_name(statement, &mut |ident, behind| {
            if let (Some(behind), Some(name)) = (behind, self.written(ident)) {
                known.insert(behind, name);
            }
        });
        known
    }

    /// The name for a place that is known, or asked for.
    fn written(&self, ident: &Ident) -> Option<String> {
        match self.asked_at(ident) {
            Some(number) => Some(format!("{ASKED}{number}")),
            None => self.name(ident).map(str::to_owned),
        }
    }

    /// Writes the names into a statement.
    pub(in crate::sql) fn write(&self, statement: &mut Statement) {
        if self.names.is_empty() && self.asked.is_empty() {
            return;
        }
        let known = self.behind_tables(statement);
        each_name(statement, &mut |ident, behind| {
            let of_table = behind.and_then(|behind| known.get(&behind)).cloned();
            if let Some(name) = self.written(ident).or(of_table) {
                ident.value = name;
                ident.quote_style = Some('"');
            }
        });
    }

    fn asked_at(&self, ident: &Ident) -> Option<usize> {
        let span = Span::try_from_sqlparser_span(ident.span)?;
        self.asked.iter().position(|place| *place == span)
    }

    fn name(&self, ident: &Ident) -> Option<&str> {
        let span = Span::try_from_sqlparser_span(ident.span)?;
        let is_within = |place: &Span| place.start <= span.start && span.end <= place.end;
        let found = self.names.iter().find(|(place, name)| {
            let name = plain_name(name);
            let is_same = match ident.quote_style {
                None => name.to_lowercase() == ident.value.to_lowercase(),
                Some(_) => name == ident.value,
            };
            is_same && is_within(place)
        });
        found.map(|(_, name)| name.as_str())
    }
}

#[cfg(test)]
mod tests {
    use crate::sql::SqlSession;
    use crate::sql::small_tables::{rows_in, session_of};
    use crate::{DataFrame, sql};

    fn session() -> SqlSession {
        session_of(&[
            "create table t (\"City\" text, \"Sold\" int, a int) as values ('Oslo', 3, 1), ('Rome', 5, 2)",
            "create table u (a int, \"A\" int, sold int) as values (1, 10, 100)",
            "create table w (\"Sold\" int, b int) as values (5, 6), (8, 9)",
            "create table v (\"B\" int, \"b\" int, \"Bb\" int, \"BB\" int) as values (1, 2, 3, 4)",
        ])
    }

    #[track_caller]
    fn rows(query: &str) -> Vec<String> {
        rows_in(&mut session(), query)
    }

    #[test]
    fn names_without_quotes_mean_columns_of_other_letters() {
        assert_eq!(rows("select city, SOLD + a from t where Sold > 3"), ["Rome 7"]);
        assert_eq!(
            rows("select x.city, sum(x.sold) from t x group by x.city order by city"),
            ["Oslo 3", "Rome 5"]
        );
        assert_eq!(rows("select count(*) from t where sold > (select max(sold) / 40 from u)"), ["2"]);
        assert_eq!(rows("select sold from (select sold as sold from t) s order by sold"), ["3", "5"]);
        assert_eq!(
            rows("with s as (select City as place from t) select place from s order by 1"),
            ["Oslo", "Rome"]
        );
        assert_eq!(rows("select t.sold, u.sold from t join u on t.a = u.a"), ["3 100"]);
        let exists = "exists (select 1 from u where u.a = t.a)";
        assert_eq!(rows(&format!("select city from t where {exists} and sold = 3")), ["Oslo"]);
        assert_eq!(rows("select a from u"), ["1"], "the name as it stands goes first");
        let mut session = session();
        session.run("create view few as select city from t where sold = 3").expect("a view");
        assert_eq!(session.run("select * from few").expect("rows"), [["Oslo"]]);
        assert_eq!(session.run("explain select city from t").expect("a plan").len(), 2);
        assert_eq!(session.run("select b from v").expect("rows"), [["2"]]);
        let described = session.run("describe select sold from t").expect("columns");
        assert_eq!(described[0][0], "Sold");
    }

    #[test]
    fn columns_have_names_in_each_clause() {
        // A name stands as it is, in quotes, and behind its table where that is SQL.
        for (query, is_behind_table) in [
            ("select @city, count(*) from t group by @city order by 1", true),
            ("select @city, sum(@sold) as total from t group by @city order by total desc", true),
            ("select @city, sum(@sold) as sold from t group by @city order by sold desc", true),
            ("select count(*) from t group by upper(@city)", true),
            ("select count(*) as n from t group by rollup(@city) order by n", true),
            ("select a from t group by a having sum(@sold) > 3", true),
            (
                "select a from t qualify row_number() over (partition by @city order by @sold) = 1 order by a",
                true,
            ),
            ("select @city, count(*) from t group by @city order by @city", true),
            ("select count(*) from t group by @city having @city > 'P' order by @city", true),
            ("select distinct on (@city) @city, a from t order by @city, a", true),
            ("select distinct on (@city) a from t order by @city", true),
            ("select a from t group by a having sum(@sold) > 3 and max(@sold) < 9", true),
            ("select a from t order by @sold, @city", true),
            ("select a, rank() over (order by @sold desc) from t order by 2", true),
            ("select a from t order by rank() over (order by @sold desc), a", true),
            ("select a, rank() over w from t window w as (order by @sold desc) order by 2", true),
            ("select t.a, w.b from t join w using (@sold)", false),
            ("select x.a, y.b from t x straight_join w y using (@sold)", false),
            ("select * from t |> join w using (@sold) |> select a, b", false),
            ("select * from t |> select * exclude (@city) |> order by a", false),
            ("select * exclude (@city) from t order by a", false),
            (
                "select x.n from (select @city, count(*) as n from t group by @city) x join u on u.a = x.n",
                true,
            ),
        ] {
            let of = |city: &str, sold: &str| query.replace("@city", city).replace("@sold", sold);
            let expected = rows(&of("\"City\"", "\"Sold\""));
            assert!(!expected.is_empty(), "{query}");
            assert_eq!(rows(&of("city", "SOLD")), expected, "{query}");
            if is_behind_table {
                assert_eq!(rows(&of("t.city", "t.sold")), expected, "{query}");
            }
        }
        let mut session = session();
        session.run("insert into t (city, a, sold) values ('Bern', 3, 7)").expect("a row");
        session.run("update t set sold = sold + 1 where city = 'Oslo'").expect("a row");
        let found = session.run("select \"Sold\" from t order by \"City\"").expect("rows");
        assert_eq!(found, [["7"], ["4"], ["5"]]);
    }

    #[test]
    fn orders_by_names_of_results_stay_beside_a_mistake_elsewhere() {
        let mut session = session();
        for statement in [
            "create table x (\"Sold\" int, b int) as values (3, 9), (5, 6)",
            "create table y (\"City\" text) as values ('Oslo'), ('Rome')",
        ] {
            session.run(statement).expect("a table");
        }
        for (query, expected) in [
            ("select * exclude (city), -a as city from t order by city", ["5 2 -2", "3 1 -1"]),
            ("select x.b as sold from t join x using (sold) order by sold", ["6", "9"]),
            (
                "select upper(t.city) as city, count(*) from t join y using (city) group by 1 order by city",
                ["OSLO 1", "ROME 1"],
            ),
            ("select n as city from (select count(*) as n from t group by city) x order by city", ["1", "1"]),
        ] {
            assert_eq!(rows_in(&mut session, query), expected, "{query}");
        }
    }

    #[test]
    fn columns_that_have_the_name_itself_stay_what_they_are() {
        let query =
            "select count(*) from t, u where t.a = u.a group by u.sold, t.sold having max(u.sold) = 100";
        assert_eq!(rows(query), ["1"]);
        let within = "select sum(sold) as sold from t group by city";
        let query = format!("select sold, count(*) from ({within}) s group by sold order by sold");
        assert_eq!(rows(&query), ["3 1", "5 1"]);
    }

    #[test]
    fn tables_of_one_name_have_columns_of_their_own() {
        let other = "(select a as city from t) t";
        assert_eq!(
            rows(&format!("select t.city from t union all select t.city::text from {other} order by 1")),
            ["1", "2", "Oslo", "Rome"]
        );
        assert_eq!(
            rows(&format!("select t.city, (select max(t.city) from {other}) m from t order by t.city")),
            ["Oslo 2", "Rome 2"]
        );
        assert_eq!(
            rows("select * from t |> select t.city as city |> as t |> where t.city = 'Oslo'"),
            ["Oslo"]
        );
    }

    #[test]
    fn names_of_rows_around_stay_beside_a_mistake_elsewhere() {
        let mut session = session_of(&[
            "create table t (city int) as values (7), (8)",
            "create table t2 (\"City\" int, code int) as values (1, 7)",
            "create table t3 (\"City\" int) as values (5)",
        ]);
        let around = "select (select count(*) from t2 where code = city) c from t";
        let count = "union all select count(*) from t3 group by city";
        for (others, expected) in [
            (count.to_owned(), &["0", "1", "1"][..]),
            ("union all select max(city) from t3 group by city".to_owned(), &["0", "1", "5"]),
            (format!("{count} {count}"), &["0", "1", "1", "1"]),
            (format!("{count} having max(city) > 0"), &["0", "1", "1"]),
        ] {
            let query = format!("{around} {others} order by 1");
            assert_eq!(rows_in(&mut session, &query), expected, "{query}");
        }
    }

    #[test]
    fn names_that_may_mean_several_are_refused() {
        let error = session().run("select bb from v").expect_err("two columns");
        assert!(error.to_string().starts_with("line 1, column 8: no column \"bb\""), "{error}");
        let error = session().run("select \"city\" from t").expect_err("a name with quotes");
        assert!(error.to_string().contains("did you mean \"City\"?"), "{error}");
        let error = session().run("select city, nothing from t").expect_err("no such column");
        assert!(error.to_string().starts_with("line 1, column 14: no column \"nothing\""), "{error}");
    }

    #[test]
    fn columns_of_frames_are_meant_too() {
        let t = DataFrame::from_columns([("Sold", vec![1, 3].into())]);
        let most = sql("select max(sold) as most from t", &[("t", &t)]);
        assert_eq!(most.col("most").values::<i64>().expect("rows"), [Some(3)]);
    }
}
