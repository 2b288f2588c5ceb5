//! `SUMMARIZE`: a row for each column of a table or a query, with what its values are like.
//!
//! It is a query over the rows, which the session has no word for: one aggregate of all columns, whose values
//! are put below each other. It is put into the text of the statement, since its columns are known only when
//! the rows are planned, and the parser has no clause for it.

use super::with_clauses::{alone, seen};
use crate::error::{Error, Result};
use crate::sql::names::namesakes::plain_name;
use crate::sql::subqueries::same_rows::is_same_each_time;
use crate::sql::values::type_names::type_name;
use crate::sql::words::{QUERIES, Words, is_word, may_have};
use arrow::datatypes::{DataType, Field};
use datafusion::execution::SessionState;
use datafusion::logical_expr::LogicalPlan;
use datafusion::logical_expr::sqlparser::tokenizer::{Token, TokenWithSpan};
use std::ops::Range;

const SUMMARIZE: &str = "summarize";
/// A query of a table, as long as the word in whose place it stands: places in the text stay.
const FROM: &str = "from     ";
/// Words before a parenthesis with a query.
const AROUND: [&str; 7] = ["as", "copy", "from", "join", "materialized", "pivot", "unpivot"];
/// Words with which a table of the name begins a join within a parenthesis.
const JOINS: [&str; 8] = ["as", "cross", "full", "inner", "join", "left", "natural", "right"];

/// A statement with a summary of rows.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::sql) struct Summary<'a> {
    /// The text before the summary.
    pub(in crate::sql) before: &'a str,
    behind: &'a str,
    /// The query of the rows in the statement, whose WITH it sees.
    rows: String,
    /// The query of the rows, with the WITH that it sees. Its places are those of the statement.
    pub(in crate::sql) query: String,
}

/// The last summary of a statement that reads no other one; nothing for any other statement.
pub(in crate::sql) fn asked<'a>(statement: &'a str, state: &SessionState) -> Option<Summary<'a>> {
    if !may_have(statement, SUMMARIZE) {
        return None;
    }
    let words = Words::of(statement, state);
    let tokens = words.tokens();
    let reads_other =
        |at: &usize| seen(&tokens[..*at]).into_iter().flatten().any(|at| begins(tokens, at, &[SUMMARIZE]));
    let mut found = (0..tokens.len()).rev().filter(|at| begins(tokens, *at, &[SUMMARIZE]));
    let at = found.find(|at| !reads_other(at))?;
    let begin = words.offset(&tokens[at]);
    let end = match end(tokens, at)? {
        Some(token) => words.offset(token),
        None => statement.len(),
    };
    let rows = statement.get(begin + SUMMARIZE.len()..end)?;
    let (before, behind) = (statement.get(..begin)?, statement.get(end..)?);
    let first = tokens.get(at + 1);
    let is_query = first.is_some_and(|first| first.token == Token::LParen || is_word(first, &QUERIES));
    let word = if is_query { " ".repeat(SUMMARIZE.len()) } else { FROM.to_owned() };
    let clauses = seen(&tokens[..at]).into_iter();
    let clauses =
        clauses.map(|clause| words.offset(&tokens[clause.start])..words.offset(&tokens[clause.end - 1]) + 1);
    let clauses: Vec<Range<usize>> = clauses.collect();
    let above = alone(before, &clauses);
    let query = match first.filter(|first| !clauses.is_empty() && is_word(first, &["with"])) {
        Some(with) => format!("{above}{}", behind_others(rows, words.offset(with) - begin)),
        None => format!("{above}{word}{rows}"),
    };
    Some(Summary { before, behind, rows: format!("{word}{rows}"), query })
}

/// Rows whose WITH goes on with the tables of another one. It stands so far behind the begin of the summary.
fn behind_others(rows: &str, with: usize) -> String {
    let (comma, blank) = (",", " ");
    let (before, clause) = rows.split_at(with.saturating_sub(SUMMARIZE.len()));
    let tables = clause.get("with".len()..).unwrap_or_default();
    let word = blank.repeat(SUMMARIZE.len() - comma.len());
    format!("{comma}{word}{before}{}{tables}", blank.repeat("with".len()))
}

impl Summary<'_> {
    /// The statement with a row in the place of the summary.
    pub(in crate::sql) fn left_out(&self) -> String {
        format!("{}select 1{}", self.before, self.behind)
    }
}

/// Whether a query with one of these words for its first begins with a token: as a statement, behind
/// `EXPLAIN`, as the query of a table or view that is made, or in the parenthesis of a `COPY`, of `FROM` or
/// of a table of `WITH`. It may have a `WITH`.
pub(in crate::sql) fn begins(tokens: &[TokenWithSpan], at: usize, words: &[&str]) -> bool {
    if !is_word(&tokens[at], words) {
        return false;
    }
    let begin = begin_of_query(tokens, at);
    let before = &tokens[..begin];
    match before {
        [.., around, paren] if paren.token == Token::LParen => {
            // Else it is the name of a column or a table.
            let has_rows = tokens.get(at + 1).is_some_and(|next| {
                let may_begin =
                    matches!(next.token, Token::LParen | Token::SingleQuotedString(_) | Token::Word(_));
                may_begin && !is_word(next, &JOINS)
            });
            is_word(around, &AROUND) && has_rows
        }
        [first, ..] if is_word(first, &["create"]) => first_as(before) == Some(begin - 1),
        _ => before.iter().all(|word| is_word(word, &["explain", "analyze", "verbose"])),
    }
}

/// The place of the WITH before a summary, or that of the summary itself.
fn begin_of_query(tokens: &[TokenWithSpan], at: usize) -> usize {
    let clauses = seen(&tokens[..at]);
    clauses.last().filter(|clause| clause.end == at).map_or(at, |clause| clause.start)
}

/// The place of the first `AS` outside of parentheses.
fn first_as(tokens: &[TokenWithSpan]) -> Option<usize> {
    let mut depth = 0_usize;
    tokens.iter().position(|token| {
        match token.token {
            Token::LParen => depth += 1,
            Token::RParen => depth = depth.saturating_sub(1),
            _ => return depth == 0 && is_word(token, &["as"]),
        }
        false
    })
}

/// The token behind the rows of a summary: the end of its parenthesis, or the semicolon of the statement;
/// none if they are the rest. Nothing for a parenthesis without an end.
fn end(tokens: &[TokenWithSpan], at: usize) -> Option<Option<&TokenWithSpan>> {
    let before = &tokens[..begin_of_query(tokens, at)];
    if before.last().is_none_or(|before| before.token != Token::LParen) {
        return Some(tokens.last().filter(|last| last.token == Token::SemiColon));
    }
    let mut depth = 0_usize;
    for token in &tokens[at..] {
        match token.token {
            Token::LParen => depth += 1,
            Token::RParen if depth == 0 => return Some(Some(token)),
            Token::RParen => depth -= 1,
            _ => {}
        }
    }
    None
}

/// The statement that answers for the rows of a query.
pub(in crate::sql) fn statement(rows: &LogicalPlan, summary: &Summary<'_>) -> Result<String> {
    let Summary { before, behind, rows: own, query: _ } = summary;
    if matches!(
        rows,
        LogicalPlan::Ddl(_) | LogicalPlan::Dml(_) | LogicalPlan::Copy(_) | LogicalPlan::Statement(_)
    ) {
        return Err(Error::Sql("SUMMARIZE of a statement that is no query".to_owned()));
    }
    let fields = rows.schema().fields();
    if fields.is_empty() {
        return Err(Error::Sql("SUMMARIZE of rows without columns".to_owned()));
    }
    let columns: Vec<Column<'_>> =
        fields.iter().enumerate().map(|(at, field)| Column { name: format!("c{at}"), field }).collect();
    let names: Vec<&str> = columns.iter().map(|column| column.name.as_str()).collect();
    let from = format!("(\n{own}\n) as t({})", names.join(", "));
    // Rows that may be others each time are read once, however wide they are.
    if columns.len() <= BLOCK_COLUMNS || !is_same_each_time(rows)? {
        return Ok(format!("{before}{}{behind}", of_block(&columns, &from, None)));
    }
    let blocks = columns.chunks(BLOCK_COLUMNS).enumerate();
    let blocks = blocks.map(|(block, columns)| of_block(columns, &from, Some(block * BLOCK_COLUMNS)));
    let blocks: Vec<String> = blocks.collect();
    let labels = ["column_name", "column_type"].into_iter();
    let labels = labels.chain(MEASURES.iter().map(|(label, _)| *label)).chain(["count", "null_percentage"]);
    let labels: Vec<String> = labels.map(|label| format!("\"{label}\"")).collect();
    Ok(format!(
        "{before}select {} from ({}) as measured order by \"{PLACE}\"{behind}",
        labels.join(", "),
        blocks.join(" union all ")
    ))
}

/// The query that answers for some columns of rows; with the places of these, if the first one is given.
fn of_block(columns: &[Column<'_>], from: &str, first: Option<usize>) -> String {
    let mut measures = vec!["count(*) as n_rows".to_owned()];
    let mut shown = vec![
        below("column_name", columns.iter().map(|column| quoted(plain_name(column.field.name())))),
        below("column_type", columns.iter().map(|column| quoted(&type_name(column.field.data_type())))),
    ];
    for (label, measure) in MEASURES {
        let texts = columns.iter().map(|column| {
            measures.push(format!("{} as {label}_{}", measure(column), column.name));
            format!("{label}_{}", column.name)
        });
        shown.push(below(label, texts));
    }
    shown.push(below("count", columns.iter().map(|_| "n_rows".to_owned())));
    let missing = columns.iter().map(|column| {
        measures.push(format!("count({0}) as present_{0}", column.name));
        format!("100.0 * (n_rows - present_{}) / nullif(n_rows, 0)", column.name)
    });
    shown.push(below("null_percentage", missing.map(|share| format!("cast({share} as double)"))));
    if let Some(first) = first {
        shown.push(below(PLACE, (first..first + columns.len()).map(|at| at.to_string())));
    }
    format!("select {} from (select {} from {from}) as measured", shown.join(", "), measures.join(", "))
}

/// Columns of one aggregate at most: planning it takes steps for each two of its values. The rows are read
/// again for each so many columns.
const BLOCK_COLUMNS: usize = 50;
/// The label of the places of columns, by which those of several aggregates are ordered.
const PLACE: &str = "place";

/// A column of the result: a value for each column of the rows.
fn below(label: &str, values: impl Iterator<Item = String>) -> String {
    format!("unnest([{}]) as \"{label}\"", values.collect::<Vec<_>>().join(", "))
}

/// A text as a literal.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

struct Column<'a> {
    name: String,
    field: &'a Field,
}

impl Column<'_> {
    fn is_number(&self) -> bool {
        self.field.data_type().is_numeric()
    }

    /// Whether values of the type have an order and a text.
    fn is_plain(&self) -> bool {
        let dtype = self.field.data_type();
        let dtype = if let DataType::Dictionary(_, value) = dtype { value.as_ref() } else { dtype };
        // Bytes are no text, and types of time have none that others read.
        let is_other = matches!(
            dtype,
            DataType::Binary
                | DataType::BinaryView
                | DataType::Duration(_)
                | DataType::FixedSizeBinary(_)
                | DataType::Interval(_)
                | DataType::LargeBinary
                | DataType::Null
                | DataType::RunEndEncoded(..)
        );
        !dtype.is_nested() && !is_other
    }

    /// An aggregate of numbers, without a value for other columns.
    fn of_numbers(&self, aggregate: impl Fn(&str) -> String) -> String {
        if self.is_number() {
            aggregate(&format!("cast({} as double)", self.name))
        } else {
            "cast(null as double)".to_owned()
        }
    }

    fn as_text(&self, aggregate: &str) -> String {
        if self.is_plain() {
            format!("cast({aggregate}({}) as varchar)", self.name)
        } else {
            "cast(null as varchar)".to_owned()
        }
    }

    fn quantile(&self, share: &str) -> String {
        self.of_numbers(|value| format!("tharsis_about_quantile({value}, {share})"))
    }
}

type Measure = fn(&Column<'_>) -> String;

/// Labels of the result, and their values of one column.
const MEASURES: [(&str, Measure); 8] = [
    ("min", |column| column.as_text("min")),
    ("max", |column| column.as_text("max")),
    ("approx_unique", |column| {
        if column.is_plain() {
            format!("cast(approx_distinct(cast({} as varchar)) as bigint)", column.name)
        } else {
            "cast(null as bigint)".to_owned()
        }
    }),
    ("avg", |column| column.of_numbers(|value| format!("avg({value})"))),
    ("std", |column| column.of_numbers(|value| format!("stddev({value})"))),
    ("q25", |column| column.quantile("0.25")),
    ("q50", |column| column.quantile("0.5")),
    ("q75", |column| column.quantile("0.75")),
];

#[cfg(test)]
mod tests {
    use super::asked;
    use crate::sql::small_tables::{rows, rows_in, session_of};
    use crate::sql::{SqlSession, states};
    use crate::{DataFrame, sql};

    #[test]
    fn a_table_or_a_query_is_summarized() {
        let state = states::of_query();
        let query_of = |statement: &str| asked(statement, &state).map(|summary| summary.query);
        assert_eq!(query_of("summarize t").as_deref(), Some("from      t"));
        assert_eq!(query_of(" Summarize select 1;").as_deref(), Some("           select 1"));
        assert_eq!(query_of("summarize 'a.csv'").as_deref(), Some("from      'a.csv'"));
        assert_eq!(query_of("explain\nsummarize t").as_deref(), Some("       \nfrom      t"));
        for name in ["values_2024", "table_1", "from_shop", "with_x", "\"select\""] {
            let expected = format!("from      {name}");
            assert_eq!(query_of(&format!("summarize {name}")), Some(expected));
        }
        assert_eq!(
            query_of("/* a */ summarize /* all; */ select ';' as s; -- end").as_deref(),
            Some("                  /* all; */ select ';' as s")
        );
        assert_eq!(query_of("-- x\nsummarize t -- y").as_deref(), Some("    \nfrom      t -- y"));
        assert_eq!(query_of("summarize t; select 2").as_deref(), Some("from      t; select 2"));
        let expected = format!("with x as (select 1){}from      x", " ".repeat(16));
        assert_eq!(query_of("with x as (select 1) select * from (summarize x)"), Some(expected));
        let expected =
            format!("with x as (select 1){},{}y as (select 2) select 3", " ".repeat(16), " ".repeat(14));
        let within = "with x as (select 1) select * from (summarize with y as (select 2) select 3)";
        assert_eq!(query_of(within), Some(expected));
        let first = "with x as (summarize t) select * from (summarize x)";
        assert_eq!(query_of(first).map(|query| query.trim().to_owned()).as_deref(), Some("from      t"));
        for other in [
            "summarized t",
            "select 1",
            "",
            "summ",
            "sümmärize t",
            "explain select 1",
            // A column or a table may have this name.
            "select summarize from t",
            "select a as summarize from t",
            "create table t (summarize int)",
            "create view v (summarize) as select 1 as summarize",
            "select * from (summarize cross join t)",
            "select * from (summarize)",
            "select max(summarize) from t",
            "select extract(day from (summarize + interval '1 day')) from t",
            "select 'summarize t'",
            "with summarize as (select 1) select 2",
            "with x as (select 1), summarize as (select 2) select 3",
            "\"summarize\" t",
            "copy (summarize t to 'a.csv'",
        ] {
            assert_eq!(asked(other, &state), None, "{other}");
        }
    }

    #[test]
    fn summaries_stand_wherever_queries_do() {
        let mut session = session_of(&[
            "create table t (a int) as values (1), (4)",
            "create table s as summarize t",
            "create or replace view v as summarize select a, -a as b from t;",
        ]);
        let query = "select column_name, min, max from";
        assert_eq!(rows_in(&mut session, &format!("{query} s")), ["a 1 4"]);
        assert_eq!(rows_in(&mut session, &format!("{query} v order by 1")), ["a 1 4", "b -4 -1"]);
        let within = format!("{query} (summarize t) x where min < max");
        assert_eq!(rows_in(&mut session, &within), ["a 1 4"]);
        let joined = "select x.max, y.min from (summarize (select a from t)) x join (summarize t) y on true";
        assert_eq!(rows_in(&mut session, joined), ["4 1"]);
        let nested = "select count(*) from (summarize from (summarize t))";
        assert_eq!(rows_in(&mut session, nested), ["12"]);
        assert!(!rows("explain analyze summarize t").is_empty());
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("s.csv");
        session.run(&format!("copy (summarize t) to '{}'", path.display())).expect("a file");
        assert!(std::fs::read_to_string(path).expect("a file").starts_with("column_name,column_type,min,"));
    }

    #[test]
    fn summaries_see_tables_of_with() {
        let mut session = session_of(&[
            "create table t (a int) as values (1), (4)",
            "create table s as with x as (select a from t) summarize x",
        ]);
        let (x, query) = ("with x as (select a from t)", "select column_name, min, max from");
        for (statement, expected) in [
            (format!("{query} s"), "a 1 4"),
            (format!("{x} {query} (summarize x)"), "a 1 4"),
            (format!("{x} {query} (summarize select a * 2 as b from x) y"), "b 2 8"),
            (format!("{x}, y as (summarize x) {query} y"), "a 1 4"),
            (format!("{x}, y as (summarize x) {query} (summarize select min from y) z"), "min 1 1"),
            (format!("{query} ({x} summarize x) y"), "a 1 4"),
            (format!("{x} {query} (with y as (select a + 1 as b from x) summarize y) z"), "b 2 5"),
            (format!("{x} {query} (summarize with y as (select -a as b from x) select * from y)"), "b -4 -1"),
        ] {
            assert_eq!(rows_in(&mut session, &statement), [expected], "{statement}");
        }
        let whole = rows_in(&mut session, &format!("{x} summarize x"));
        assert!(whole.len() == 1 && whole[0].starts_with("a INTEGER 1 4 "), "{whole:?}");
        let names = session.missing_tables(&format!("{x} select * from (summarize x)"));
        assert_eq!(names.expect("names"), [""; 0]);
        let statement = format!("{x} select min from (summarize nope)");
        let error = session.run(&statement).expect_err("no table");
        assert!(error.to_string().starts_with("line 1, column 56: no table \"nope\""), "{error}");
    }

    #[test]
    fn wide_tables_are_summarized_by_some_columns_at_a_time() {
        let rows_of = |count: usize, last: &str| {
            let columns =
                (0..count).map(|at| format!("value + {at} as c{at}")).collect::<Vec<_>>().join(", ");
            format!("summarize select {columns}, {last} as x from generate_series(1, 3)")
        };
        let found = rows(&rows_of(60, "'a'"));
        assert_eq!(found.len(), 61);
        for (at, row) in found[..60].iter().enumerate() {
            let expected = format!("c{at} BIGINT {} {} 3 ", at + 1, at + 3);
            assert!(row.starts_with(&expected) && row.ends_with(" 3 0"), "{row}, not {expected}");
        }
        assert!(found[60].starts_with("x VARCHAR a a 1 "), "{}", found[60]);
        // An aggregate of all columns would have steps of planning for each two of them.
        let aggregates = |query: &str| {
            let plan = rows(&format!("explain {query}"));
            plan.concat().lines().filter(|line| line.trim_start().starts_with("Aggregate: ")).count()
        };
        assert_eq!(aggregates(&rows_of(60, "'a'")), 2);
        assert_eq!(aggregates(&rows_of(50, "random()")), 1, "other rows each time");
        assert_eq!(aggregates("summarize select 1 as a, 2 as b"), 1);
    }

    #[test]
    fn mistakes_in_summaries_show_what_was_typed() {
        let session = session_of(&[]);
        for (statement, column) in [("summarize select 1 +", 21), ("summarize t where a > 1", 13)] {
            let error = session.missing_tables(statement).expect_err(statement);
            let place = error.sql_place().expect("a place");
            assert_eq!((place.text(), place.column()), (statement, column), "{error}");
        }
    }

    #[test]
    fn mistakes_around_summaries_have_their_places() {
        let mut session = session_of(&["create table t (a int) as values (1)"]);
        for (statement, expected) in [
            ("select x from (summarize t)", Some("line 1, column 8")),
            ("select min\nfrom (summarize u)", Some("line 2, column 17")),
            ("select min from (summarize t) as s where x = 1", None),
        ] {
            let error = session.run(statement).expect_err(statement);
            let place = error.sql_place().map(ToString::to_string);
            assert_eq!(place.as_deref(), expected, "{statement}: {error}");
        }
    }

    #[test]
    fn columns_are_rows() {
        let mut session = SqlSession::default();
        session
            .run("create table t (a int, \"B's\" text) as values (1, 'x'), (2, null), (4, 'x')")
            .expect("t");
        let rows = session.run("summarize t").expect("rows");
        assert_eq!(rows[0][..5], ["a", "INTEGER", "1", "4", "3"]);
        assert_eq!(rows[0][10..], ["3", "0"], "{rows:?}");
        assert_eq!(rows[1][..6], ["B's", "VARCHAR", "x", "x", "1", "NULL"]);
        assert!(rows[1][11].starts_with("33.3"), "{rows:?}");
        let rows = session.run("summarize select a, a as b, [a] as l from t -- three").expect("rows");
        assert_eq!(rows.iter().map(|row| row[0].as_str()).collect::<Vec<_>>(), ["a", "b", "l"]);
        assert_eq!(rows[2][1..4], ["INTEGER[]", "NULL", "NULL"]);
        let few = "summarize select * from (values (-2), (4), (3), (null), (1), (7)) as v(n)";
        assert_eq!(session.run(few).expect("rows")[0][7..10], ["1", "3", "4"]);
        let none = session.run("summarize select a from t where a > 9").expect("rows");
        assert_eq!(none[0][7..10], ["NULL", "NULL", "NULL"]);
        assert_eq!(none[0][10..], ["0", "NULL"]);
        session.run("create table values_2024 (a int, b bytea) as values (1, x'ff'), (2, null)").expect("t");
        let bytes = session.run("summarize values_2024 /* all */; -- end").expect("rows");
        assert_eq!(bytes[1][..5], ["b", "BYTEA", "NULL", "NULL", "NULL"]);
        assert_eq!(bytes[1][10..], ["2", "50"]);
        session.run("summarize t; select 2").expect_err("two statements");
        session.run("summarize drop table t").expect_err("no query");
        assert_eq!(session.run("explain summarize t").expect("a plan").len(), 2);
        let error = session.run("summarize  nope").expect_err("no table");
        assert!(error.to_string().starts_with("line 1, column 12: no table \"nope\""), "{error}");
    }

    #[test]
    fn a_frame_is_summarized() {
        let t = DataFrame::from_columns([("a", vec![1, 3].into())]);
        let summary = sql("summarize t", &[("t", &t)]);
        assert_eq!(summary.col("max").values::<String>().expect("rows"), [Some("3".to_owned())]);
    }
}
