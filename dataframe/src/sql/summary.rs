//! `SUMMARIZE`: a row for each column of a table or a query, with what its values are like.
//!
//! It is a query over the rows, which the session has no word for: one aggregate of all columns, whose values
//! are put below each other.

use super::type_names::type_name;
use crate::error::{Error, Result};
use arrow::datatypes::{DataType, Field};
use datafusion::logical_expr::LogicalPlan;

const SUMMARIZE: &str = "summarize";
/// A query of a table, as long as the word in whose place it stands: places in the text stay.
const FROM: &str = "from     ";
/// Words with which a query begins.
const QUERIES: [&str; 6] = ["from", "select", "summarize", "table", "values", "with"];

/// A statement that summarizes rows.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Summary {
    /// Words before the statement that show its plan.
    explained: &'static str,
    /// The query of the rows. Its places are those of the statement.
    pub(super) query: String,
}

/// A statement as a summary of rows; nothing for any other statement.
pub(super) fn asked(statement: &str) -> Option<Summary> {
    let (mut begin, mut explained) = (0, "");
    if let Some(end) = end_of(statement, begin, "explain") {
        (begin, explained) = (end, "explain ");
        if let Some(end) = end_of(statement, begin, "analyze") {
            (begin, explained) = (end, "explain analyze ");
        }
    }
    let end = end_of(statement, begin, SUMMARIZE)?;
    let (before, rest) = (&statement[..end - SUMMARIZE.len()], &statement[end..]);
    let rows = behind_blanks(rest);
    let first = rows.split(|letter: char| !is_of_word(letter)).next().unwrap_or_default();
    let is_query = QUERIES.contains(&first.to_lowercase().as_str()) || rows.starts_with('(');
    let blank = |text: &str| -> String {
        text.chars().map(|letter| if letter.is_whitespace() { letter } else { ' ' }).collect()
    };
    let word = if is_query { " ".repeat(SUMMARIZE.len()) } else { FROM.to_owned() };
    Some(Summary { explained, query: format!("{}{word}{}", blank(before), without_semicolon(rest)) })
}

fn is_of_word(letter: char) -> bool {
    letter.is_alphanumeric() || letter == '_'
}

/// The end of a word behind a place, spaces and comments.
fn end_of(text: &str, begin: usize, word: &str) -> Option<usize> {
    let begin = text.len() - behind_blanks(&text[begin..]).len();
    let end = begin + word.len();
    let is_word = text.get(begin..end)?.eq_ignore_ascii_case(word);
    (is_word && !text[end..].starts_with(is_of_word)).then_some(end)
}

/// A text without the spaces and comments that it begins with.
fn behind_blanks(text: &str) -> &str {
    let mut rest = text.trim_start();
    loop {
        let end = match comment_end(rest) {
            Some(end) => end,
            None => return rest,
        };
        rest = rest[end..].trim_start();
    }
}

/// The end of the comment that a text begins with.
fn comment_end(text: &str) -> Option<usize> {
    let end = |found: Option<usize>| Some(found.unwrap_or(text.len()));
    if text.starts_with("--") {
        end(text.find('\n'))
    } else if text.starts_with("/*") {
        end(text.find("*/").map(|end| end + 2))
    } else {
        None
    }
}

/// A text without its semicolon, if nothing but spaces and comments are behind it.
fn without_semicolon(text: &str) -> &str {
    let mut rest = text;
    while let Some(at) = rest.find(['\'', '"', '`', '-', '/', ';']) {
        rest = &rest[at..];
        let quoted = |quote: char| rest[1..].find(quote).map_or(rest.len(), |end| end + 2);
        let step = if let Some(behind) = rest.strip_prefix(';') {
            let is_last = behind_blanks(behind).is_empty();
            return if is_last { &text[..text.len() - rest.len()] } else { text };
        } else if let Some(quote) = rest.chars().next().filter(|sign| matches!(sign, '\'' | '"' | '`')) {
            quoted(quote)
        } else {
            comment_end(rest).unwrap_or(1)
        };
        rest = &rest[step..];
    }
    text
}

/// The statement that answers for the rows of a query.
pub(super) fn statement(rows: &LogicalPlan, summary: &Summary) -> Result<String> {
    let Summary { explained, query } = summary;
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
    let mut measures = vec!["count(*) as n_rows".to_owned()];
    let mut shown = vec![
        below("column_name", columns.iter().map(|column| quoted(column.field.name()))),
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
    Ok(format!(
        "{explained}select {} from (select {} from (\n{query}\n) as t({})) as measured",
        shown.join(", "),
        measures.join(", "),
        names.join(", ")
    ))
}

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
        self.of_numbers(|value| format!("approx_percentile_cont({share}) within group (order by {value})"))
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
    use crate::sql::SqlSession;
    use crate::{DataFrame, sql};

    #[test]
    fn a_table_or_a_query_is_summarized() {
        let query_of = |statement: &str| asked(statement).map(|summary| summary.query);
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
        for other in ["summarized t", "select 1", "", "summ", "sümmärize t", "explain select 1"] {
            assert_eq!(asked(other), None, "{other}");
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
        let none = session.run("summarize select a from t where a > 9").expect("rows");
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
