//! Files in FROM by a function: `read_csv('sales.csv', delim = ';')`.

use super::file_options::{Call, Checked, Choice, Mistake};
use super::near::near_text;
use super::type_names::{type_named, type_names};
use crate::error::{Error, Result};
use crate::frame::{DataFrame, named};
use crate::read::{CsvOptions, files, read_arrow, read_avro, read_csv, read_json, read_parquet};
use arrow::datatypes::DataType;
use datafusion::common::Result as EngineResult;
use datafusion::logical_expr::planner::{
    PlannedRelation, RelationPlanner, RelationPlannerContext, RelationPlanning,
};
use datafusion::logical_expr::sqlparser::ast::{ObjectName, Spanned, TableFactor, TableFunctionArgs};
use datafusion::logical_expr::{LogicalPlan, LogicalPlanBuilder};
use datafusion::prelude::SessionContext;
use std::sync::Arc;

/// Names of the functions.
pub(super) const NAMES: [&str; 6] =
    ["glob", "read_arrow", "read_avro", "read_csv", "read_json", "read_parquet"];

/// Options of `read_csv`. Those of one line mean the same.
const CSV: [&str; 26] = [
    "all_varchar",
    "columns",
    "names",
    "comment",
    "decimal",
    "decimal_separator",
    "delim",
    "sep",
    "dtype",
    "dtypes",
    "types",
    "encoding",
    "encoding_errors",
    "header",
    "na_values",
    "nullstr",
    "nrows",
    "parse_dates",
    "quote",
    "quotechar",
    "skip",
    "skiprows",
    "thousands",
    "usecols",
    "max_line",
    "infer_bytes",
];

/// Lets the statements of a session have the functions.
pub(super) fn known_to(context: &SessionContext) -> Result<()> {
    Ok(context.register_relation_planner(Arc::new(FileTables))?)
}

#[derive(Debug)]
struct FileTables;

impl RelationPlanner for FileTables {
    fn plan_relation(
        &self,
        relation: TableFactor,
        _: &mut dyn RelationPlannerContext,
    ) -> EngineResult<RelationPlanning> {
        let planned = match &relation {
            TableFactor::Table { name, alias, args: Some(args), .. } => {
                planned(name, args)?.map(|plan| PlannedRelation::new(plan, alias.clone()))
            }
            _ => None,
        };
        Ok(match planned {
            Some(planned) => RelationPlanning::Planned(Box::new(planned)),
            None => RelationPlanning::Original(Box::new(relation)),
        })
    }
}

/// The plan of a call of a function that there is.
fn planned(name: &ObjectName, args: &TableFunctionArgs) -> EngineResult<Option<LogicalPlan>> {
    let asked = name.to_string().to_lowercase();
    let Some(function) = NAMES.into_iter().find(|known| *known == asked) else { return Ok(None) };
    let known: &[&str] = if function == "read_csv" { &CSV } else { &[] };
    let call = Call::of(function, args, name.span(), known)?;
    let plan = match function {
        "glob" => listed(&call),
        "read_csv" => csv(&call)?,
        _ => of_paths(&call, |path| match function {
            "read_arrow" => read_arrow(path),
            "read_avro" => read_avro(path),
            "read_json" => read_json(path),
            _ => read_parquet(path),
        }),
    };
    let plan = plan.map_err(|error| Mistake::new(error.root().clone(), call.span))?;
    Ok(Some(LogicalPlanBuilder::from(plan).alias(function)?.build()?))
}

/// The rows of all files, one after the other.
fn of_paths(call: &Call, read: impl Fn(&str) -> DataFrame) -> Result<LogicalPlan> {
    let frames: Vec<DataFrame> = call.paths.iter().map(|path| read(path)).collect();
    match frames.as_slice() {
        [only] => only.frame()?.visible(),
        several => DataFrame::concat(several, true).frame()?.visible(),
    }
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
    let mut times = Times::default();
    for choice in &call.options {
        options = with_choice(options, choice, &mut times)?;
    }
    if !times.columns.is_empty() {
        options = options.parse_dates(times.columns.iter().map(String::as_str));
    }
    Ok(of_paths(call, |path| read_csv(path, options.clone())).and_then(|plan| as_dates(plan, &times.dates)))
}

/// Columns that are read as times, and those of them of which the day is kept.
#[derive(Default)]
struct Times {
    columns: Vec<String>,
    dates: Vec<String>,
}

const CALLED: &str = "read_csv";

/// The options with one more.
fn with_choice(options: CsvOptions, choice: &Choice, times: &mut Times) -> Checked<CsvOptions> {
    let wanted = |wanted: &str| choice.refused(CALLED, wanted);
    Ok(match choice.name() {
        "all_varchar" => {
            if choice.truth().map_err(wanted)? {
                options.dtype_of_all(DataType::Utf8)
            } else {
                options
            }
        }
        "columns" | "names" => match choice.pairs() {
            Some(pairs) => {
                let options = options.names(pairs.iter().map(|(name, _)| name.as_str()));
                with_types(options, choice, pairs, times)?
            }
            None => options.names(choice.texts().map_err(wanted)?),
        },
        "comment" => options.comment(choice.optional_character().map_err(wanted)?),
        "decimal" | "decimal_separator" => options.decimal(choice.character().map_err(wanted)?),
        "delim" | "sep" => options.sep(choice.character().map_err(wanted)?),
        "dtype" | "dtypes" | "types" => match choice.pairs() {
            Some(pairs) => with_types(options, choice, pairs, times)?,
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
        "na_values" | "nullstr" => options.na_values(choice.texts().map_err(wanted)?),
        "nrows" => options.nrows(choice.count().map_err(wanted)?),
        "parse_dates" => {
            times.columns.extend(choice.texts().map_err(wanted)?.into_iter().map(str::to_owned));
            options
        }
        "quote" | "quotechar" => options.quotechar(choice.character().map_err(wanted)?),
        "skip" | "skiprows" => options.skiprows(choice.count().map_err(wanted)?),
        "thousands" => options.thousands(choice.optional_character().map_err(wanted)?),
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
    times: &mut Times,
) -> Checked<CsvOptions> {
    for (column, name) in types {
        let lower = name.trim().to_lowercase();
        match lower.as_str() {
            "timestamp" | "datetime" => times.columns.push(column.clone()),
            "date" => {
                times.columns.push(column.clone());
                times.dates.push(column.clone());
            }
            _ => options = options.dtype(column, type_named(name).ok_or_else(|| no_type(choice, name))?),
        }
    }
    Ok(options)
}

fn no_type(choice: &Choice, name: &str) -> Mistake {
    let near = near_text(&name.to_lowercase(), type_names());
    choice.mistake(Error::Value(format!("{CALLED}: columns of the type {name:?} are not read{near}")))
}

/// The rows with these columns of times as dates.
fn as_dates(plan: LogicalPlan, dates: &[String]) -> Result<LogicalPlan> {
    if dates.is_empty() {
        return Ok(plan);
    }
    let columns = plan.schema().fields().iter().map(|field| {
        let column = named(field.name());
        if dates.contains(field.name()) {
            datafusion::logical_expr::cast(column, DataType::Date32).alias(field.name())
        } else {
            column
        }
    });
    let columns: Vec<_> = columns.collect();
    Ok(LogicalPlanBuilder::from(plan).project(columns)?.build()?)
}

#[cfg(test)]
mod tests {
    use crate::sql::SqlSession;
    use crate::{DataFrame, sql};
    use std::path::PathBuf;

    /// A folder with files, which is removed when it is dropped.
    struct Folder(tempfile::TempDir);

    impl Folder {
        fn new(files: &[(&str, &str)]) -> Folder {
            let folder = tempfile::tempdir().expect("a folder");
            for (name, text) in files {
                let path: PathBuf = folder.path().join(name);
                std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
                std::fs::write(path, text).expect("a file");
            }
            Folder(folder)
        }

        fn query(&self, query: &str) -> String {
            query.replace("$", &self.0.path().display().to_string())
        }

        #[track_caller]
        fn rows(&self, query: &str) -> Vec<String> {
            let rows = SqlSession::default().run(&self.query(query));
            let rows = rows.unwrap_or_else(|error| panic!("{query}: {error}"));
            rows.into_iter().map(|row| row.join(" ")).collect()
        }

        #[track_caller]
        fn refused(&self, query: &str) -> String {
            let error = SqlSession::default().run(&self.query(query)).expect_err(query);
            error.to_string().replace(&self.0.path().display().to_string(), "$")
        }
    }

    #[test]
    fn csv_is_read_with_options() {
        let folder = Folder::new(&[
            ("a.csv", "made by hand\nday;sold;code\n2024-02-29;1.000,5;007\n2024-03-01;-;NA\n"),
            ("plain.csv", "1,x\n2,\n"),
        ]);
        let named =
            "read_csv('$/a.csv', delim = ';', skip = 1, decimal = ',', thousands := '.', nullstr => '-'";
        let query = format!(
            "select day, sold, code from {named}, dtypes = {{'code': 'VARCHAR', 'day': 'DATE'}}) order by 1"
        );
        assert_eq!(folder.rows(&query), ["2024-02-29 1000.5 007", "2024-03-01 NULL NA"]);
        let query =
            "select sum(a), count(b) from read_csv('$/plain.csv', header = false, names = ['a', 'b']) t";
        assert_eq!(folder.rows(query), ["3 1"]);
        let query =
            "select t.a from read_csv('$/plain.csv', columns = {'a': 'VARCHAR', 'b': 'text'}) t order by 1";
        assert_eq!(folder.rows(query), ["1", "2"]);
        let query = "describe select * from read_csv('$/plain.csv', header = false, all_varchar = true)";
        assert_eq!(folder.rows(query), ["0 VARCHAR YES", "1 VARCHAR YES"]);
        let query = "select count(*) from read_csv('$/plain.csv', header = false, nrows = 1)";
        assert_eq!(folder.rows(query), ["1"]);
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
        let query = folder.query("select sum(n) as n from read_csv('$/**/*.csv')");
        assert_eq!(sql(&query, &[]).col("n").values::<i64>().expect("rows"), [Some(3)]);
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
            ("read_csv('$/a.csv', header = 1)", "header takes true or false"),
            ("read_csv('$/a.csv', sep = ';;')", "sep takes one ASCII character"),
            ("read_csv('$/a.csv', skip = -1)", "skip takes a number of at least 0"),
            ("read_csv('$/a.csv', skip = 1 + 1)", "and no expression"),
            ("read_csv('$/a.csv', skip = 1, skip = 2)", "given twice"),
            ("read_csv('$/a.csv', true)", "behind the path there are options"),
            ("read_csv('$/a.csv', dtypes = {'a': 'bigin'})", "did you mean \"bigint\"?"),
            ("read_csv('$/a.csv', encoding = 'utf-9')", "encoding: \"utf-9\""),
            ("read_parquet('$/a.csv', hive = true)", "no option \"hive\"; there are none"),
            ("read_parquet('$/a.parquet')", "$/a.parquet: no such file"),
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
