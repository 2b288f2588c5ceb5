//! Reasons of the library in words of its users: no syntax tree, none of its own names, and near names only.

use super::marks::Mark;
use super::meant::{instead_of, no_function, no_function_in_from};
use super::near::near_text;
use crate::error::{Error, FileFault, nearest, quoted};
use crate::sql::names::namesakes::{of_one_name, plain_error};
use crate::sql::tables::file_tables::{NAMES, are_known_to};
use crate::sql::values::type_names::{in_sql, type_names};
use crate::sql::words::Words;
use datafusion::execution::SessionState;
use std::path::Path;

/// A mistake in other words, and the part of the statement that it is about.
pub(in crate::sql) struct Told {
    pub(in crate::sql) error: Error,
    pub(in crate::sql) mark: Option<Mark>,
}

impl Told {
    fn plain(error: Error) -> Told {
        Told { error, mark: None }
    }

    fn marked(error: Error, mark: Mark) -> Told {
        Told { error, mark: Some(mark) }
    }

    /// A mistake that is the name itself.
    fn of_name(error: Error, name: &str) -> Told {
        Told::marked(error, Mark::Name { text: name.to_owned(), is_only: false })
    }

    /// A mistake in the use of a name.
    fn of_use(error: Error, name: &str) -> Told {
        Told::marked(error, Mark::Name { text: name.to_owned(), is_only: true })
    }
}

/// The error of a statement in words of its user.
pub(in crate::sql) fn told(error: Error, words: &Words<'_>, state: &SessionState) -> Told {
    match plain_error(error) {
        Error::Key { label, known } => {
            let name = label.clone();
            Told::of_name(Error::Key { label, known }, &name)
        }
        Error::Value(text) => {
            let text = without_catalog(&text);
            of_name(&text, state)
                .or_else(|| of_rule(&text))
                .or_else(|| of_values(&text))
                .or_else(|| of_types(&text))
                .unwrap_or_else(|| Told::plain(Error::Value(in_sql(without_tree(&text)))))
        }
        Error::Sql(text) => {
            let text = without_catalog(&text);
            of_name(&text, state).unwrap_or_else(|| Told::plain(Error::Sql(text)))
        }
        Error::Type(text) => of_call(&text),
        Error::NotImplemented(text) => of_missing(&text, words),
        Error::File { path, fault: FileFault::Mismatch, reason } if reason.contains(OTHER_ORDER) => {
            let reason =
                format!("{reason}; in a list, read_csv(['a.csv', 'b.csv']), they are matched by name");
            Told::plain(Error::File { path, fault: FileFault::Mismatch, reason })
        }
        other => Told::plain(other),
    }
}

/// A part of an error of files of CSV whose columns are in different orders.
const OTHER_ORDER: &str = "in another order than in the first file";

/// Beginning of an error of columns that have one name.
const TWO_COLUMNS: &str = "two columns ";

fn two_columns(name: &str) -> Error {
    Error::Value(format!("{TWO_COLUMNS}{name:?}; give one of them another name, with AS"))
}

/// Whether an error of a statement is one of columns that have one name.
pub(in crate::sql) fn is_of_two_columns(error: &Error) -> bool {
    matches!(error.root(), Error::Value(text) if text.starts_with(TWO_COLUMNS))
}

/// Beginning of an error of a `*` with other names.
const RENAME: &str = "RENAME behind * is not supported";

/// Whether an error of a statement is one of a `*` with other names.
pub(in crate::sql) fn is_of_rename(error: &Error) -> bool {
    matches!(error.root(), Error::NotImplemented(text) if text.starts_with(RENAME))
}

/// A name that nothing has.
fn of_name(text: &str, state: &SessionState) -> Option<Told> {
    let name = |before: &str, after: &str| Some(text.strip_prefix(before)?.split_once(after)?.0);
    if let Some(name) = name("table '", "' not found") {
        return Some(table(name, state));
    }
    if let Some(name) = name("Invalid function '", "'") {
        return Some(Told::of_name(Error::Value(no_function(name, state)), name));
    }
    if let Some(name) = name("table function '", "' not found").filter(|name| NAMES.contains(name)) {
        let text = if are_known_to(state) {
            format!("{name} behind LATERAL is not supported: it depends on no row, so leave the word out")
        } else {
            format!("{name} reads files, which a query over frames alone does not; one of a SqlSession does")
        };
        return Some(Told::of_name(Error::Sql(text), name));
    }
    if let Some(name) = name("table function '", "' not found") {
        let known = state.table_functions().keys().map(String::as_str);
        let text = no_function_in_from(name, known.chain(NAMES));
        return Some(Told::of_name(Error::Sql(text), name));
    }
    if let Some(name) = text.strip_prefix("Ambiguous reference to unqualified field ") {
        let name = name.trim_matches('"');
        let text =
            format!("column {name:?} is in more than one table; write the name of its table before it");
        return Some(Told::of_name(Error::Value(text), name));
    }
    if let Some(name) = text.strip_prefix("Schema contains duplicate qualified field name ") {
        let table = name.rsplit_once('.').map_or(name, |(table, _)| table).trim_matches('"');
        let text = format!("two tables {table:?} in FROM; give one of them another name, with AS");
        return Some(Told::of_name(Error::Value(text), table));
    }
    let double = text.strip_prefix("Schema contains duplicate unqualified field name ");
    let double = double.or_else(|| {
        let both = name("Schema contains qualified field name ", " which would be ambiguous")?;
        both.rsplit_once(" and unqualified field name ").map(|(_, name)| name)
    });
    if let Some(name) = double {
        return Some(Told::plain(two_columns(name)));
    }
    if let Some(zone) = name("no time zone \"", "\"") {
        return Some(Told::of_name(Error::Value(text.to_owned()), zone));
    }
    if let Some(name) = name("The window ", " is not defined") {
        return Some(Told::of_name(
            Error::Value(format!("no window {name:?}; there is no WINDOW {name} AS (..)")),
            name,
        ));
    }
    for kind in ["Table", "View"] {
        let rest = text.strip_prefix(kind).and_then(|rest| rest.strip_prefix(" '"));
        if let Some((name, rest)) = rest.and_then(|rest| rest.split_once("' ")) {
            let kind = kind.to_lowercase();
            let text = match rest.trim_end_matches('.') {
                "doesn't exist" => {
                    format!("no {kind} {name:?}{}", near_text(name, tables(state).iter().map(String::as_str)))
                }
                rest => format!("{kind} {name:?} {rest}"),
            };
            return Some(Told::of_name(Error::Sql(text), name));
        }
    }
    None
}

/// The tables of a session.
fn tables(state: &SessionState) -> Vec<String> {
    let usual = &state.config_options().catalog;
    let catalog = state.catalog_list().catalog(&usual.default_catalog);
    let schema = catalog.and_then(|catalog| catalog.schema(&usual.default_schema));
    let mut known = schema.map(|schema| schema.table_names()).unwrap_or_default();
    known.sort();
    known
}

/// The library names a table by its catalog and its schema, which users of frames have never heard of, and
/// does not say which tables there are.
fn table(name: &str, state: &SessionState) -> Told {
    let usual = &state.config_options().catalog;
    let known = tables(state);
    let of_catalog = name.strip_prefix(&format!("{}.", usual.default_catalog)).unwrap_or(name);
    let name = of_catalog.strip_prefix(&format!("{}.", usual.default_schema)).unwrap_or(of_catalog);
    let near = nearest(name, known.iter().map(String::as_str));
    let near = near.map(|near| format!("; did you mean {near:?}?"));
    let near = if are_known_to(state) { of_file(name).or(near) } else { near };
    let near = near.or_else(|| is_path(name).then(|| format!("; a file stands in single quotes: '{name}'")));
    let near = near.unwrap_or_default();
    Told::of_name(Error::Sql(format!("no table {name:?}; there are {}{near}", quoted(&known))), name)
}

/// The form of a folder, or of a file whose name says no format, if there is one of this name.
fn of_file(name: &str) -> Option<String> {
    let path = Path::new(name);
    if path.is_dir() {
        Some(format!("; a folder has a slash behind it: '{}/'", name.trim_end_matches('/')))
    } else if path.exists() && !is_path(name) {
        Some(format!(
            "; the name of this file says no format: write read_csv('{name}') or read_parquet('{name}')"
        ))
    } else {
        None
    }
}

/// Whether a name without quotes was meant as the path of a file.
fn is_path(name: &str) -> bool {
    const ENDINGS: [&str; 13] = [
        "arrow", "avro", "bz2", "csv", "feather", "gz", "json", "jsonl", "ndjson", "parquet", "tsv", "xz",
        "zst",
    ];
    name.rsplit_once('.').is_some_and(|(_, ending)| ENDINGS.contains(&ending.to_lowercase().as_str()))
}

/// A text with tables as users name them: the library has them in a catalog and a schema.
fn without_catalog(text: &str) -> String {
    text.replace("datafusion.public.", "").replace("datafusion.information_schema.", "information_schema.")
}

/// A rule of SQL that a statement does not follow.
fn of_rule(text: &str) -> Option<Told> {
    let value = |text: String| Some(Told::plain(Error::Value(text)));
    if let Some((_, rest)) = text.split_once(" must be in GROUP BY or an aggregate function: ") {
        let column = rest.split_once("column \"")?.1.split_once("\" must appear")?.0;
        let name = column.rsplit('.').next().unwrap_or(column);
        let text = format!(
            "column {column:?} is not in GROUP BY; add it there, or take an aggregate of it, such as max({name})"
        );
        return Some(Told::of_name(Error::Value(text), name));
    }
    if let Some(rest) = text.strip_prefix("HAVING clause references: ") {
        let condition = in_sql(rest.split_once(" must appear").map_or(rest, |(condition, _)| condition));
        return value(format!(
            "HAVING reads a column that is not in GROUP BY: {condition}; rows are chosen by WHERE"
        ));
    }
    if text.starts_with("Aggregate functions are not allowed in the WHERE clause") {
        let text = "an aggregate in WHERE, which chooses single rows; groups are chosen by HAVING";
        return Some(Told::marked(Error::Value(text.to_owned()), Mark::AggregateInWhere));
    }
    if let Some(rest) = text.strip_prefix("Cannot coerce arithmetic expression ") {
        let types = rest.strip_suffix(" to valid types").unwrap_or(rest);
        let is_time = types.contains("Interval(") && types.contains("Utf8");
        let types = in_sql(&types.replace("Interval(MonthDayNano)", "INTERVAL"));
        let cast = if is_time {
            "cast the text to date or timestamp, as in day::date"
        } else {
            "write a CAST of one side"
        };
        return value(format!("no arithmetic of {types}; {cast}"));
    }
    if let Some(rest) = text.strip_prefix("Cannot create filter with non-boolean predicate ") {
        let (condition, dtype) = rest.rsplit_once(" returning ")?;
        let column = condition.trim_matches('\'').to_owned();
        let text = format!("a condition is true or false, and {} is a {}", in_sql(&column), in_sql(dtype));
        return Some(Told::marked(Error::Value(text), Mark::Condition { column }));
    }
    if let Some((_, [first, _])) = of_one_name(text) {
        return Some(Told::plain(two_columns(&in_sql(first))));
    }
    if text.starts_with("Cannot access field at argument") {
        return value(
            "a point behind a column that has no fields; a table stands before its column".to_owned(),
        );
    }
    if let Some((_, rest)) = text.split_once("Inconsistent data length across values list: got ") {
        let (given, wanted) = rest.split_once(" values in row ")?;
        let wanted = wanted.split_once("expected ")?.1;
        return value(format!("a row of {given} values, where there are {wanted} columns"));
    }
    if text.starts_with("Insert-on clause not supported") {
        let text = format!("INSERT .. ON CONFLICT is not supported{}", instead_of("on conflict"));
        return Some(Told::of_use(Error::NotImplemented(text), "on"));
    }
    if text.starts_with("Substring without for/from is not valid") {
        return Some(Told::of_use(
            Error::Type("no function substr of one argument; there is substr(text, from, length)".to_owned()),
            "substr",
        ));
    }
    None
}

/// A subquery, a setting or an argument that does not fit.
fn of_values(text: &str) -> Option<Told> {
    let setting = |name: &str| {
        Told::of_name(Error::Value(format!("no setting {name:?}; `show all` has those there are")), name)
    };
    if let Some((_, columns)) = text.split_once("The subquery should only return one column: ") {
        let text = format!("a subquery that stands for a value has one column, and this one has {columns}");
        return Some(Told::plain(Error::Value(in_sql(&text))));
    }
    if text == "Scalar subquery returned more than one row" {
        let text = format!("{text}; write LIMIT 1, an aggregate such as max(..), or IN before it");
        return Some(Told::marked(Error::Value(text), Mark::Subquery));
    }
    if let Some(rest) = text.strip_prefix("Order by column out of bounds, specified: ") {
        let number = rest.split(',').next().unwrap_or(rest).to_owned();
        return Some(Told::marked(Error::Value(text.to_owned()), Mark::Number { clause: "order", number }));
    }
    if let Some(rest) = text.strip_prefix("Cannot find column with position ") {
        let number = rest.split(' ').next().unwrap_or(rest).to_owned();
        return Some(Told::marked(Error::Value(text.to_owned()), Mark::Number { clause: "group", number }));
    }
    if let Some(value) = text_without_value(text) {
        let told = in_sql(text);
        let dtype = told.rsplit_once(" to value of ").map_or("", |(_, dtype)| dtype);
        let dtype = dtype.trim_end_matches(" type").to_owned();
        return Some(Told::marked(Error::Value(told), Mark::Text { text: value.to_owned(), dtype }));
    }
    if let Some((argument, _)) = text.split_once(", got Literal(") {
        return Some(Told::plain(Error::Value(in_sql(argument))));
    }
    let field = text.strip_prefix("Field ").and_then(|rest| rest.strip_suffix(" not found in struct"));
    if let Some(name) = field {
        let text = format!("no field {name:?} in this struct; describe shows the fields of each column");
        return Some(Told::of_use(Error::Value(text), name));
    }
    if let Some(name) = text.strip_prefix("Invalid qualifier ") {
        return Some(Told::of_name(Error::Sql(format!("no table {name:?} in FROM")), name));
    }
    if let Some(name) = text.strip_prefix("could not find config namespace for key \"") {
        return Some(setting(name.trim_end_matches('"')));
    }
    if let Some((name, _)) = text.split_once("' is not a variable which can be viewed with 'SHOW'") {
        return Some(setting(name.trim_start_matches('\'')));
    }
    let name = if text.starts_with("Format not explicitly set") {
        "the name".to_owned()
    } else {
        format!("the ending .{}", text.strip_prefix("There is no registered file format with ext ")?)
    };
    let text = format!("{name} says no format; write (format csv) behind it, or json, parquet, arrow");
    Some(Told::plain(Error::Value(text)))
}

/// Values of types that do not fit each other, or that a column does not take.
fn of_types(text: &str) -> Option<Told> {
    if let Some(types) = text.strip_prefix("Cannot infer common argument type for comparison operation ") {
        let types = in_sql(&types.replace("Interval(MonthDayNano)", "INTERVAL"));
        let is_of_days = types.contains("BIGINT") && types.contains("INTERVAL");
        let advice = if is_of_days {
            "a date less another one is a number of days: compare it with a number"
        } else {
            "write a CAST of one side"
        };
        return Some(Told::plain(Error::Value(format!("no comparison of {types}; {advice}"))));
    }
    if let Some(rest) = text.strip_prefix("There isn't a common type to coerce ") {
        let (types, operator) = rest.strip_suffix(" expression")?.rsplit_once(" in ")?;
        let text = format!("{operator} compares texts, and here are {}; write ..::text", in_sql(types));
        let word = operator.split(' ').next().unwrap_or(operator);
        return Some(Told::of_use(Error::Value(text), word));
    }
    let missing = text.strip_prefix("Column 'column")?;
    let number = missing.strip_suffix("' is declared as non-nullable but contains null values")?;
    let text =
        format!("{text}; that is value {number} of a row, and it is missing in a column that is NOT NULL");
    Some(Told::plain(Error::Value(text)))
}

/// The text that is no value of a type.
fn text_without_value(text: &str) -> Option<&str> {
    let rest = text.strip_prefix("Cannot cast string '").and_then(|rest| rest.rsplit_once("' to value of "));
    let of_time = || text.strip_prefix("Error parsing timestamp from '")?.rsplit_once("': ");
    rest.or_else(of_time).map(|(value, _)| value)
}

/// A function that has no such arguments.
fn of_call(text: &str) -> Told {
    let told = in_sql(without_tree(text));
    let Some(rest) = told.strip_prefix("no function ") else { return Told::plain(Error::Type(told)) };
    let name = rest.split_once('(').map_or("", |(name, _)| name).to_owned();
    // The library has no text of such lists, whose length would be known then.
    if name == "character_length" && text.contains("List(") {
        let text = "no function length of a list of structs; write array_length(..)";
        return Told::of_use(Error::Type(text.to_owned()), "length");
    }
    // A function that looks at its arguments by itself does not say what it takes.
    let (call, known) = rest.split_once("; there are ").unwrap_or((rest, ""));
    if let Some((_, form)) = CALLS.iter().find(|(begin, _)| call.starts_with(begin)) {
        return Told::of_use(Error::Type(format!("no function {call}; write {form}")), &name);
    }
    let known = if known.contains("UserDefined") || known.contains("VariadicAny") { "" } else { known };
    let is_numeric = known.contains("(DOUBLE)") || known.contains("(DECIMAL)");
    let mut text = format!("no function {call}");
    if !known.is_empty() {
        text += &format!("; there are {known}");
    }
    if call == format!("{name}(VARCHAR)") && is_numeric {
        text += &format!("; write {name}(try_cast(.. as double))");
    }
    Told::of_use(Error::Type(text), &name)
}

/// The begins of calls that others have, and what is written in their place.
const CALLS: [(&str, &str); 4] = [
    ("avg(BOOLEAN)", "avg(..::int)"),
    ("avg(DATE)", "avg(extract(epoch from ..))"),
    ("avg(TIMESTAMP", "avg(extract(epoch from ..))"),
    ("sum(BOOLEAN)", "count(*) filter (where ..)"),
];

/// A clause, a type or a statement that there is not.
fn of_missing(text: &str, words: &Words<'_>) -> Told {
    let missing = |text: String| Told::plain(Error::NotImplemented(text));
    if let Some(told) = of_dialects(text, words) {
        return told;
    }
    if let Some(name) = text.strip_prefix("Unsupported SQL type ") {
        let near = near_text(&name.to_lowercase(), type_names());
        return Told::of_name(Error::NotImplemented(format!("no type {name:?}{near}")), name);
    }
    if let Some(statement) = text.strip_prefix("Unsupported SQL statement: ") {
        let mut words = statement.split_whitespace();
        let first = words.next().unwrap_or_default();
        let second = if first == "ALTER" { words.next() } else { None };
        let statement = std::iter::once(first).chain(second).collect::<Vec<&str>>().join(" ");
        let form = instead_of(&statement.to_lowercase());
        return missing(format!("the statement {statement} is not supported{form}"));
    }
    if let Some(rest) = text.strip_prefix("Unsupported ast node") {
        let rest = rest.strip_prefix(" in sqltorel:").unwrap_or(rest).trim_start();
        let node = rest.split(|letter: char| !letter.is_alphanumeric()).next().unwrap_or_default();
        let text = format!("{} is not supported{}", node.to_uppercase(), instead_of(&node.to_lowercase()));
        return Told::of_use(Error::NotImplemented(text), node);
    }
    if let Some((statement, _)) = text.split_once(" not supported for View table") {
        let rest = "make a table of it: create table t as select * from ..";
        return missing(format!("{statement} of files and views is not supported; {rest}"));
    }
    if text.starts_with("Insert into not implemented for this table") {
        let rest = "COPY writes files, and create table t as select * from .. makes a table";
        return missing(format!("INSERT into a file or a view is not supported; {rest}"));
    }
    if let Some(rest) = text.strip_prefix("Physical plan does not support logical expression ") {
        let text = if rest.starts_with("WindowFunction") {
            "a function over rows in WHERE is not supported: write QUALIFY, or a subquery"
        } else {
            "an expression that has no place here is not supported"
        };
        return missing(text.to_owned());
    }
    if text.starts_with("wildcard * with RENAME not supported") {
        let text = format!("{RENAME}: write * EXCLUDE (column), column AS name");
        return Told::of_use(Error::NotImplemented(text), "rename");
    }
    if text.starts_with("Dot access not supported") {
        return missing(
            "a point behind a value that is no column is not supported: write ['name']".to_owned(),
        );
    }
    if text.starts_with("compound identifier: ") {
        return missing("a name of five or more parts is not supported".to_owned());
    }
    if text.starts_with("Physical plan does not support DistributeBy") {
        return missing("DISTRIBUTE BY is not supported".to_owned());
    }
    // The words of a clause alone.
    if !text.contains(char::is_lowercase) {
        let word = text.split_whitespace().next().unwrap_or_default();
        return Told::of_use(Error::NotImplemented(format!("{text} is not supported")), word);
    }
    missing(in_sql(without_tree(text)))
}

/// A clause or an operator that other databases have.
pub(in crate::sql) fn of_dialects(text: &str, words: &Words<'_>) -> Option<Told> {
    let is_this = |row: &&Dialect| text.starts_with(row.reason) && words.has(row.word);
    let row = DIALECTS.iter().find(is_this)?;
    let text = format!("{} is not supported{}", row.what, instead_of(row.clause));
    Some(Told::marked(Error::NotImplemented(text), Mark::First(row.word)))
}

/// A reason of the library that is about a word of the statement.
struct Dialect {
    /// The begin of the reason.
    reason: &'static str,
    word: &'static str,
    /// The word as users know it.
    what: &'static str,
    /// The clause that says what is written in its place.
    clause: &'static str,
}

impl Dialect {
    const fn new(
        reason: &'static str,
        word: &'static str,
        what: &'static str,
        clause: &'static str,
    ) -> Dialect {
        Dialect { reason, word, what, clause }
    }
}

static DIALECTS: [Dialect; 9] = [
    Dialect::new(
        "COUNT DISTINCT with",
        "distinct",
        "COUNT(DISTINCT ..) of several columns",
        "count(distinct",
    ),
    Dialect::new("MergeInto is not supported", "merge", "MERGE", "merge"),
    Dialect::new("Operator DIV is not yet supported", "//", "the operator //", "//"),
    Dialect::new("Operator DIV is not yet supported", "div", "the operator DIV", "div"),
    Dialect::new("Temporary tables not supported", "temp", "TEMPORARY", "temporary table"),
    Dialect::new("Temporary tables not supported", "temporary", "TEMPORARY", "temporary table"),
    Dialect::new("UPDATE ... FROM is not supported", "from", "UPDATE .. FROM", "update from"),
    Dialect::new("Unsupported JOIN operator", "asof", "ASOF JOIN", "asof join"),
    Dialect::new("array of a query is not supported", "array", "ARRAY of a query", "array(select"),
];

/// A text without the syntax tree that the library shows behind it.
pub(super) fn without_tree(text: &str) -> &str {
    let Some(at) = text.find(" { ") else { return text };
    let is_of_tree = |letter: char| letter.is_alphanumeric() || matches!(letter, '(' | '[' | '_');
    text[..at].trim_end_matches(is_of_tree).trim_end_matches([' ', ':', ','])
}

#[cfg(test)]
mod tests {
    use crate::sql::SqlSession;
    use crate::{DataFrame, sql};

    #[test]
    fn files_and_folders_of_the_name_of_a_table_are_told() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().display().to_string();
        std::fs::write(folder.path().join("rows"), "a\n1\n").expect("a file");
        for (name, expected) in [
            (path.clone(), format!("; a folder has a slash behind it: '{path}/'")),
            (format!("{path}/rows"), format!("says no format: write read_csv('{path}/rows')")),
        ] {
            let error = SqlSession::default().run(&format!("select * from '{name}'")).expect_err("no table");
            assert!(error.to_string().contains(&expected), "{error}");
            let error = sql(&format!("select * from '{name}'"), &[]).columns().expect_err("no table");
            assert!(error.root().to_string().ends_with("there are none"), "frames alone: {error}");
        }
    }

    #[test]
    fn tables_that_are_missing_are_told_with_those_that_there_are() {
        let t = DataFrame::from_columns([("a", vec![1].into())]);
        let error = sql("select a from salse", &[("sales", &t)]).columns().expect_err("no table");
        assert_eq!(
            error.root().to_string(),
            "no table \"salse\"; there are \"sales\"; did you mean \"sales\"?"
        );
        assert!(error.to_string().starts_with("line 1, column 15: no table \"salse\""), "{error}");
        let error = sql("select a from x.u", &[]).columns().expect_err("no table");
        assert_eq!(error.root().to_string(), "no table \"x.u\"; there are none");
        let mut session = SqlSession::default();
        session.run("create table t (a int)").expect("a table");
        for statement in
            ["select * from u", "insert into u values (1)", "select 1 where 1 in (select a from u)"]
        {
            let error = session.run(statement).expect_err("no table");
            assert_eq!(error.class(), "ValueError");
            assert_eq!(error.root().to_string(), "no table \"u\"; there are \"t\"", "{statement}");
        }
    }
}
