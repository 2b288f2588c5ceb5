//! Files in FROM by a function: `read_csv('sales.csv', delim = ';')`.

use super::file_lists::of_paths;
use super::file_options::{Call, Checked, Choice, Groups, Mistake};
use crate::error::{Error, Result};
use crate::frame::{DataFrame, named};
use crate::read::{CsvOptions, files, read_arrow, read_avro, read_csv, read_json, read_parquet};
use crate::sql::faults::near::near_text;
use crate::sql::values::type_names::{decimal_named, type_named, type_names};
use arrow::datatypes::DataType;
use datafusion::common::Result as EngineResult;
use datafusion::execution::SessionState;
use datafusion::logical_expr::planner::{
    PlannedRelation, RelationPlanner, RelationPlannerContext, RelationPlanning,
};
use datafusion::logical_expr::sqlparser::ast::{ObjectName, Spanned, TableFactor, TableFunctionArgs};
use datafusion::logical_expr::{LogicalPlan, LogicalPlanBuilder};
use datafusion::prelude::SessionContext;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// Names of the functions.
pub(in crate::sql) const NAMES: [&str; 6] =
    ["glob", "read_arrow", "read_avro", "read_csv", "read_json", "read_parquet"];

/// Options of `read_csv`.
const CSV: [&[&str]; 18] = [
    &["all_varchar"],
    &["columns", "names"],
    &["comment"],
    &["decimal", "decimal_separator"],
    &["delim", "sep"],
    &["dtypes", "dtype", "types"],
    &["encoding"],
    &["encoding_errors"],
    &["header"],
    &["infer_bytes"],
    &["max_line"],
    &["nrows"],
    &["nullstr", "na_values", "null"],
    &["parse_dates"],
    &["quote", "quotechar"],
    &["skip", "skiprows"],
    &["thousands"],
    &["usecols"],
];

/// Lets the statements of a session have the functions.
pub(in crate::sql) fn known_to(context: &SessionContext) -> Result<()> {
    let state = context.state_ref();
    let mut state = state.write();
    state.config_mut().set_extension(Arc::new(Known));
    Ok(state.register_relation_planner(Arc::new(FileTables { seen: None }))?)
}

/// Has a session of one statement look at the files of each call once.
pub(in crate::sql) fn remember(state: &mut SessionState) {
    if are_known_to(state) {
        // A list of planners takes another one always.
        let _taken = state.register_relation_planner(Arc::new(FileTables { seen: Some(Mutex::default()) }));
    }
}

/// The sign of a session that has the functions.
struct Known;

/// Whether a session has the functions.
pub(in crate::sql) fn are_known_to(state: &SessionState) -> bool {
    state.config().get_extension::<Known>().is_some()
}

#[derive(Debug)]
struct FileTables {
    /// Plans of calls, by their texts and places, in a session of one statement.
    seen: Option<Mutex<HashMap<String, LogicalPlan>>>,
}

impl RelationPlanner for FileTables {
    fn plan_relation(
        &self,
        relation: TableFactor,
        _: &mut dyn RelationPlannerContext,
    ) -> EngineResult<RelationPlanning> {
        let planned = match &relation {
            // A sample is taken of a plan that comes here without it.
            TableFactor::Table { name, alias, args: Some(args), sample: None, .. } => {
                self.plan(name, args)?.map(|plan| PlannedRelation::new(plan, alias.clone()))
            }
            _ => None,
        };
        Ok(match planned {
            Some(planned) => RelationPlanning::Planned(Box::new(planned)),
            None => RelationPlanning::Original(Box::new(relation)),
        })
    }
}

impl FileTables {
    fn plan(&self, name: &ObjectName, args: &TableFunctionArgs) -> EngineResult<Option<LogicalPlan>> {
        let Some(seen) = &self.seen else { return planned(name, args) };
        let call = format!("{name:?} {args:?}");
        let known = seen.lock().unwrap_or_else(PoisonError::into_inner).get(&call).cloned();
        if known.is_some() {
            return Ok(known);
        }
        let plan = planned(name, args)?;
        if let Some(plan) = &plan {
            seen.lock().unwrap_or_else(PoisonError::into_inner).insert(call, plan.clone());
        }
        Ok(plan)
    }
}

/// The plan of a call of a function that there is.
fn planned(name: &ObjectName, args: &TableFunctionArgs) -> EngineResult<Option<LogicalPlan>> {
    let asked = name.to_string().to_lowercase();
    let Some(function) = NAMES.into_iter().find(|known| *known == asked) else { return Ok(None) };
    let known: &Groups = if function == CALLED { &CSV } else { &[] };
    let call = Call::of(function, args, name.span(), known)?;
    let plan = match function {
        "glob" => listed(&call),
        CALLED => csv(&call)?,
        _ => of_paths(&call, None, |path| match function {
            "read_arrow" => read_arrow(path),
            "read_avro" => read_avro(path),
            "read_json" => read_json(path),
            _ => read_parquet(path),
        }),
    };
    let plan = plan.map_err(|error| Mistake::new(error.root().clone(), call.span))?;
    Ok(Some(LogicalPlanBuilder::from(plan).alias(function)?.build()?))
}

/// The names of files.
fn listed(call: &Call) -> Result<LogicalPlan> {
    let mut found = Vec::new();
    for path in &call.paths {
        found.extend(files(path)?);
    }
    let found: Vec<&str> = found.iter().map(String::as_str).collect();
    DataFrame::from_columns([("file", found.into())]).frame()?.visible()
}

fn csv(call: &Call) -> Checked<Result<LogicalPlan>> {
    // In SQL a text such as NA is a text, unless somebody says that it is missing.
    let mut options = CsvOptions::new().keep_default_na(false);
    let mut steps = Steps::default();
    for choice in &call.options {
        options = with_choice(options, choice, &mut steps)?;
    }
    let named = |name: &str| call.options.iter().find(|choice| choice.name() == name);
    let of_all = named("all_varchar").filter(|all| all.truth() == Ok(true));
    if let (Some(_), Some(typed)) = (of_all, named("dtypes").filter(|typed| typed.pairs().is_none())) {
        let text = format!("{CALLED}: all_varchar, and a type of all columns");
        return Err(typed.mistake(Error::Value(text)));
    }
    let is_other = |column: &&String| steps.typed.contains(*column) && !steps.times.contains(*column);
    if let (Some(column), Some(parsed)) = (steps.parsed.iter().find(is_other), named("parse_dates")) {
        return Err(parsed.mistake(two_types(column)));
    }
    let sign = named("decimal").or_else(|| named("thousands"));
    if let (Some((column, _)), Some(sign)) = (steps.decimals.first(), sign) {
        let text = format!("{CALLED}: {} and the DECIMAL {column:?}, which has a point", sign.name());
        return Err(sign.mistake(Error::Value(format!("{text}: read it as VARCHAR, and cast it"))));
    }
    steps.times.append(&mut steps.parsed);
    if !steps.times.is_empty() {
        options = options.parse_dates(steps.times.iter().map(String::as_str));
    }
    let plan = of_paths(call, steps.rows, |path| read_csv(path, options.clone()));
    Ok(plan.and_then(|plan| with_casts(plan, &steps)))
}

/// Steps with rows that are read.
#[derive(Default)]
struct Steps {
    /// Columns with a type.
    typed: Vec<String>,
    /// Columns that an option of their own has read as times.
    parsed: Vec<String>,
    /// Columns whose type is one of times, and those of them of which the day is kept.
    times: Vec<String>,
    dates: Vec<String>,
    /// Decimals, which are read as texts, so that they lose no digit.
    decimals: Vec<(String, DataType)>,
    /// Rows of all files at most.
    rows: Option<usize>,
}

const CALLED: &str = "read_csv";

/// The options with one more.
fn with_choice(options: CsvOptions, choice: &Choice, steps: &mut Steps) -> Checked<CsvOptions> {
    let wanted = |wanted: &str| choice.refused(CALLED, wanted);
    Ok(match choice.name() {
        "all_varchar" => {
            if choice.truth().map_err(wanted)? {
                options.dtype_of_all(DataType::Utf8)
            } else {
                options
            }
        }
        "columns" => match choice.pairs() {
            Some(pairs) => {
                let options = options.names(pairs.iter().map(|(name, _)| name.as_str()));
                with_types(options, choice, pairs, steps)?
            }
            None => options.names(choice.texts().map_err(wanted)?),
        },
        "comment" => options.comment(choice.optional_character().map_err(wanted)?),
        "decimal" => options.decimal(choice.character().map_err(wanted)?),
        "delim" => options.sep(choice.character().map_err(wanted)?),
        "dtypes" => match choice.pairs() {
            Some(pairs) => with_types(options, choice, pairs, steps)?,
            None => {
                let name = choice
                    .text()
                    .map_err(|_| wanted("a type, or types of columns such as {'a': 'BIGINT'}"))?;
                options.dtype_of_all(type_named(name).ok_or_else(|| no_type(choice, name))?)
            }
        },
        "encoding" => options.encoding(choice.text().map_err(wanted)?),
        "encoding_errors" => options.encoding_errors(choice.text().map_err(wanted)?),
        "header" => options.header(choice.truth().map_err(wanted)?),
        "infer_bytes" => options.infer_bytes(choice.count().map_err(wanted)? as u64),
        "max_line" => options.max_line(choice.count().map_err(wanted)?),
        "nullstr" => options.na_values(choice.texts().map_err(wanted)?),
        "nrows" => {
            steps.rows = Some(choice.count().map_err(wanted)?);
            options
        }
        "parse_dates" => {
            steps.parsed.extend(choice.texts().map_err(wanted)?.into_iter().map(str::to_owned));
            options
        }
        "quote" => options.quotechar(choice.character().map_err(wanted)?),
        "skip" => options.skiprows(choice.count().map_err(wanted)?),
        "thousands" => options.thousands(choice.optional_character().map_err(wanted)?).in_threes(),
        "usecols" => options.usecols(choice.texts().map_err(wanted)?),
        // The names are those of `CSV`.
        other => return Err(choice.mistake(Error::Internal(format!("the option {other} is not read")))),
    })
}

/// The options with types of columns. Times are read by the reader of times; a date is its day.
fn with_types(
    mut options: CsvOptions,
    choice: &Choice,
    types: &[(String, String)],
    steps: &mut Steps,
) -> Checked<CsvOptions> {
    for (column, name) in types {
        if steps.typed.contains(column) {
            return Err(choice.mistake(two_types(column)));
        }
        steps.typed.push(column.clone());
        let lower = name.trim().to_lowercase();
        match lower.as_str() {
            "timestamp" | "datetime" => steps.times.push(column.clone()),
            "date" => {
                steps.times.push(column.clone());
                steps.dates.push(column.clone());
            }
            _ => match decimal_named(name) {
                Some(dtype) => {
                    steps.decimals.push((column.clone(), dtype));
                    options = options.dtype(column, DataType::Utf8);
                }
                None => {
                    options = options.dtype(column, type_named(name).ok_or_else(|| no_type(choice, name))?);
                }
            },
        }
    }
    Ok(options)
}

fn two_types(column: &str) -> Error {
    Error::Value(format!("{CALLED}: the column {column:?} has two types"))
}

fn no_type(choice: &Choice, name: &str) -> Mistake {
    let near = near_text(&name.to_lowercase(), type_names());
    choice.mistake(Error::Value(format!("{CALLED}: columns of the type {name:?} are not read{near}")))
}

/// The rows with times as dates, and texts as decimals.
fn with_casts(plan: LogicalPlan, steps: &Steps) -> Result<LogicalPlan> {
    if steps.dates.is_empty() && steps.decimals.is_empty() {
        return Ok(plan);
    }
    let columns = plan.schema().fields().iter().map(|field| {
        let column = named(field.name());
        let is_date = steps.dates.contains(field.name());
        let decimal = steps.decimals.iter().find(|(name, _)| name == field.name());
        match decimal.map(|(_, dtype)| dtype.clone()).or_else(|| is_date.then_some(DataType::Date32)) {
            Some(dtype) => datafusion::logical_expr::cast(column, dtype).alias(field.name()),
            None => column,
        }
    });
    let columns: Vec<_> = columns.collect();
    Ok(LogicalPlanBuilder::from(plan).project(columns)?.build()?)
}

#[cfg(test)]
mod tests {
    use crate::sql::SqlSession;
    use crate::sql::tables::file_lists::tests::Folder;
    use crate::{DataFrame, sql};

    #[test]
    fn csv_is_read_with_options() {
        let folder = Folder::new(&[
            ("a.csv", "made by hand\nday;sold;code\n2024-02-29;1.000,5;007\n2024-03-01;-;NA\n"),
            ("days.csv", "Datum;Betrag\n31.12.2023;1.234,56\n01.01.2024;-0,5\n"),
            ("plain.csv", "1,x\n2,\n"),
            ("whole.csv", "1\n2\n"),
        ]);
        let named =
            "read_csv('$/a.csv', delim = ';', skip = 1, decimal = ',', thousands := '.', nullstr => '-'";
        let query = format!(
            "select day, sold, code from {named}, dtypes = {{'code': 'VARCHAR', 'day': 'DATE'}}) order by 1"
        );
        assert_eq!(folder.rows(&query), ["2024-02-29 1000.5 007", "2024-03-01 NULL NA"]);
        let query =
            "select count(sold) from read_csv('$/a.csv', sep = ';', skip = 1, null = '-', header = 1)";
        assert_eq!(folder.rows(query), ["1"]);
        // Days have no groups of three digits.
        let query =
            "select * from read_csv('$/days.csv', sep = ';', decimal = ',', thousands = '.') order by 1";
        assert_eq!(folder.rows(query), ["01.01.2024 -0.5", "31.12.2023 1234.56"]);
        let query =
            "select sum(a), count(b) from read_csv('$/plain.csv', header = false, names = ['a', 'b']) t";
        assert_eq!(folder.rows(query), ["3 1"]);
        let query =
            "select t.a from read_csv('$/plain.csv', columns = {'a': 'VARCHAR', 'b': 'text'}) t order by 1";
        assert_eq!(folder.rows(query), ["1", "2"]);
        let query = "select sum(\"0\") from read_csv('$/whole.csv', header = false, all_varchar = false, dtypes = 'BIGINT')";
        assert_eq!(folder.rows(query), ["3"]);
        let query = "describe select * from read_csv('$/plain.csv', header = false, all_varchar = true)";
        assert_eq!(folder.rows(query), ["0 VARCHAR YES", "1 VARCHAR YES"]);
        let query = "select count(*) from read_csv('$/plain.csv', header = false, nrows = 1)";
        assert_eq!(folder.rows(query), ["1"]);
        let query = "select count(*) from read_csv('$/whole.csv', header = false) t tablesample (1 rows)";
        assert_eq!(folder.rows(query), ["1"]);
    }

    #[test]
    fn decimals_of_csv_keep_their_digits() {
        let folder = Folder::new(&[("a.csv", "code,price\na,0.1\nb,12345678901234567.89\nc,\n")]);
        let table = "read_csv('$/a.csv', dtypes = {'price': 'DECIMAL(20,2)'})";
        let query = format!("describe select price from {table}");
        assert_eq!(folder.rows(&query), ["price DECIMAL(20,2) YES"]);
        let query = format!("select code from {table} where price = decimal '12345678901234567.89'");
        assert_eq!(folder.rows(&query), ["b"]);
        assert_eq!(folder.rows(&format!("select count(price), count(*) from {table}")), ["2 3"]);
        for (options, told) in [
            ("dtypes = {'price': 'numeric(39,2)'}", "columns of the type \"numeric(39,2)\" are not read"),
            (
                "dtypes = {'price': 'decimal'}, decimal = ','",
                "decimal and the DECIMAL \"price\", which has a point",
            ),
        ] {
            let refused = folder.refused(&format!("select * from read_csv('$/a.csv', {options})"));
            assert!(refused.contains(told), "{options}: {refused}");
        }
    }

    #[test]
    fn lists_of_files_are_one_table() {
        let folder = Folder::new(&[
            ("year=2023/a.csv", "n\n1\n"),
            ("year=2024/b.csv", "n\n2\n"),
            ("j.jsonl", "{\"n\": 5}\n"),
        ]);
        let query = "select n from read_csv(['$/year=2023/a.csv', '$/year=2024/b.csv']) order by n";
        assert_eq!(folder.rows(query), ["1", "2"]);
        assert_eq!(
            folder.rows("select n, year from read_csv('$/**/*.csv') order by n"),
            ["1 2023", "2 2024"]
        );
        assert_eq!(folder.rows("select n from read_json('$/j.jsonl')"), ["5"]);
        let query = "select count(*), count(j.n) from read_csv('$/**/*.csv') c left join read_json('$/j.jsonl') j on j.n = c.n + 3";
        assert_eq!(folder.rows(query), ["2 1"]);
        let found = folder.rows("select file from glob('$/*/*.csv') order by file");
        assert!(found.len() == 2 && found[1].ends_with("/year=2024/b.csv"), "{found:?}");
        assert_eq!(folder.rows("select count(*) from glob('$/*.none')"), ["0"]);
        for rows in [0, 1, 2, 3] {
            for paths in ["'$/**/*.csv'", "['$/year=2023/a.csv', '$/year=2024/b.csv']"] {
                let query = format!("select count(*) from read_csv({paths}, nrows = {rows})");
                assert_eq!(folder.rows(&query), [rows.min(2).to_string()], "{query}");
            }
        }
        let query = folder.query("select sum(n) as n from read_csv('$/**/*.csv')");
        let summed = SqlSession::default().frame(&query);
        assert_eq!(summed.col("n").values::<i64>().expect("rows"), [Some(3)]);
        let error = sql(&query, &[]).columns().expect_err("a file");
        assert!(
            error.to_string().contains("read_csv reads files, which a query over frames alone"),
            "{error}"
        );
        let error = sql("copy (select 1) to 'nowhere.csv'", &[]).columns().expect_err("a file");
        assert_eq!(error.class(), "NotImplemented");
    }

    #[test]
    fn binary_files_are_read() {
        let folder = Folder::new(&[]);
        let frame = DataFrame::from_columns([("n", vec![1, 2].into())]);
        frame.to_parquet(&folder.query("$/a.parquet")).expect("a file");
        frame.to_arrow(&folder.query("$/a.arrow")).expect("a file");
        assert_eq!(folder.rows("select sum(n) from read_parquet('$/a.parquet')"), ["3"]);
        assert_eq!(folder.rows("select sum(n) from read_arrow('$/a.arrow')"), ["3"]);
        let mut session = SqlSession::default();
        session
            .run(&folder.query("create view v as select n from read_parquet('$/a.parquet')"))
            .expect("a view");
        assert_eq!(session.run("select max(n) from v").expect("rows"), [["2"]]);
        let missing = session.missing_tables(&folder.query("select * from read_parquet('$/a.parquet')"));
        assert!(missing.expect("names").iter().all(|name| !name.contains('.')));
    }

    #[test]
    fn mistakes_in_calls_have_their_place() {
        let folder = Folder::new(&[("a.csv", "a;b\n1;2\n")]);
        for (call, expected) in [
            ("read_csv('$/a.csv', delimiter = ';')", "no option \"delimiter\"; there are all_varchar"),
            ("read_csv('$/a.csv', heade = true)", "did you mean \"header\"?"),
            ("read_csv('$/a.csv', header = 2)", "header takes true or false"),
            ("read_csv('$/a.csv', null = 'NA', nullstr = '-')", "null and nullstr mean the same"),
            ("read_csv('$/a.csv', sep = ';;')", "sep takes one ASCII character"),
            ("read_csv('$/a.csv', skip = -1)", "skip takes a number of at least 0"),
            ("read_csv('$/a.csv', skip = 1 + 1)", "and no expression"),
            ("read_csv('$/a.csv', skip = 1, skip = 2)", "given twice"),
            ("read_csv('$/a.csv', sep = ';', delim = ',')", "sep and delim mean the same"),
            ("read_csv('$/a.csv', nullstr = 'NA', na_values = '-')", "nullstr and na_values mean the same"),
            ("read_csv('$/a.csv', names = ['a'], columns = ['b'])", "names and columns mean the same"),
            ("read_csv('$/a.csv', all_varchar = true, dtype = 'BIGINT')", "a type of all columns"),
            (
                "read_csv('$/a.csv', columns = {'a': 'BIGINT'}, dtypes = {'a': 'DOUBLE'})",
                "\"a\" has two types",
            ),
            (
                "read_csv('$/a.csv', parse_dates = 'a', dtypes = {'a': 'BIGINT'}, sep = ';')",
                "\"a\" has two types",
            ),
            ("read_csv('$/a.csv', true)", "behind the path there are options"),
            ("read_csv('$/a.csv', dtypes = {'a': 'bigin'})", "did you mean \"bigint\"?"),
            ("read_csv('$/a.csv', encoding = 'utf-9')", "encoding: \"utf-9\""),
            ("read_parquet('$/a.csv', hive = true)", "no option \"hive\"; there are none"),
            ("read_parquet('$/a.parquet')", "$/a.parquet: no such file"),
            ("lateral read_csv('$/a.csv')", "read_csv behind LATERAL is not supported: it depends on no row"),
            ("read_csv()", "the first argument is a path"),
            ("read_csv(a)", "the first argument is a path"),
            ("read_csv([])", "the first argument is a path"),
            ("read_cvs('$/a.csv')", "no function \"read_cvs\" in FROM; did you mean \"read_csv\"?"),
        ] {
            let told = folder.refused(&format!("select *\nfrom {call}"));
            assert!(told.starts_with("line 2, column ") && told.contains(expected), "{call}: {told}");
        }
        let told = folder.refused("select c from read_csv('$/a.csv', sep = ';')");
        assert!(told.contains("no column \"c\"; there are \"a\", \"b\""), "{told}");
    }
}
