//! Operations on files and databases: frames from them, and frames to them.

use super::Failure;
use super::args::{Args, strs};
use super::row::Row;
use super::value::Value;
use std::path::Path;
use tharsis_dataframe::for_programs::{FileFormat, file_error, unique};
use tharsis_dataframe::{
    Compression, CsvOptions, DataFrame, Value as Scalar, WriteOptions, read_arrow, read_csv, read_json,
    read_parquet,
};
use tharsis_programs::unknown_option;

const OF_CSV: &str = "(filepath_or_buffer, sep=',', header='infer', names=None, index_col=None, usecols=None, \
                      dtype=None, parse_dates=None, na_values=None, keep_default_na=True, skiprows=0, nrows=None, \
                      quotechar='\"', comment=None, decimal='.', thousands=None, encoding='utf-8', \
                      encoding_errors='strict')";

pub(super) const FILES: &[Row] = &[
    ("pd.read_csv", OF_CSV, "a frame of files of separated values", csv),
    ("pd.read_parquet", "(path, columns=None)", "a frame of Parquet files", binary),
    ("pd.read_feather", "(path, columns=None)", "a frame of files of Arrow's IPC", binary),
    (
        "pd.read_json",
        "(path_or_buf, lines=True, nrows=None)",
        "a frame of files with one JSON object a line",
        json,
    ),
    (
        "pd.DataFrame.to_csv",
        "(path_or_buf=None, sep=',', na_rep='', header=True, index=True, quotechar='\"', compression='infer', \
         partition_cols=None)",
        "rows to a file of separated values, or as a text",
        to_csv,
    ),
    (
        "pd.Series.to_csv",
        "(path_or_buf=None, sep=',', na_rep='', header=True, index=True, quotechar='\"', compression='infer')",
        "values to a file of separated values, or as a text",
        to_csv,
    ),
    (
        "pd.DataFrame.to_parquet",
        "(path, compression='zstd', index=None, partition_cols=None, row_group_size=None)",
        "rows to a Parquet file, or to a folder",
        to_parquet,
    ),
    ("pd.DataFrame.to_feather", "(path, compression=None)", "rows to a file of Arrow's IPC", to_feather),
    (
        "pd.DataFrame.to_json",
        "(path_or_buf=None, orient='records', lines=True, compression='infer')",
        "rows to a file with one JSON object a line, or as a text",
        to_json,
    ),
    ("pd.read_sql", "(sql, con, index_col=None)", "the result of a query to a SQLite database", sql::read),
    (
        "pd.read_sql_query",
        "(sql, con, index_col=None)",
        "the result of a query to a SQLite database",
        sql::read,
    ),
    ("pd.read_sql_table", "(table_name, con, index_col=None)", "a table of a SQLite database", sql::read),
    (
        "pd.DataFrame.to_sql",
        "(name, con, if_exists='fail', index=True)",
        "rows to a table of a SQLite database",
        sql::write,
    ),
    (
        "pd.Series.to_sql",
        "(name, con, if_exists='fail', index=True)",
        "values to a table of a SQLite database",
        sql::write,
    ),
];

/// The path of a file that a program names, relative to the folder of requests.
fn path_of(folder: &Path, name: &str) -> String {
    if name.contains("://") { name.to_owned() } else { folder.join(name).to_string_lossy().into_owned() }
}

/// A path of a program, relative to its folder.
fn path(args: &mut Args, position: usize, name: &str) -> Result<String, Failure> {
    let path = args.need(position, name)?.text()?;
    Ok(path_of(&args.context.folder, &path))
}

/// The path of a file, or `None` for the text as a value.
fn path_or_text(args: &mut Args) -> Result<Option<String>, Failure> {
    let path = args.given(1, "path_or_buf").map(|path| path.text()).transpose()?;
    Ok(path.map(|path| path_of(&args.context.folder, &path)))
}

fn chosen(frame: &DataFrame, columns: Option<Vec<String>>) -> DataFrame {
    match columns {
        Some(columns) => frame.select(strs(&columns)),
        None => frame.clone(),
    }
}

fn binary(name: &str, args: &mut Args) -> Result<Value, Failure> {
    let path = path(args, 0, "path")?;
    let columns = args.texts(usize::MAX, "columns")?;
    let frame = if name == "read_feather" { read_arrow(&path) } else { read_parquet(&path) };
    Ok(Value::Frame(chosen(&frame, columns)))
}

fn json(_: &str, args: &mut Args) -> Result<Value, Failure> {
    let path = path(args, 0, "path_or_buf")?;
    args.only(usize::MAX, "lines", true)?;
    let frame = read_json(&path);
    Ok(Value::Frame(match args.integer(usize::MAX, "nrows", -1)? {
        rows if rows < 0 => frame,
        rows => frame.head(rows as usize),
    }))
}

fn csv(_: &str, args: &mut Args) -> Result<Value, Failure> {
    let path = path(args, 0, "filepath_or_buffer")?;
    let options = args.rest();
    Ok(Value::Frame(read_csv_with(&path, options)?))
}

/// A frame of CSV with options under pandas' names.
pub(super) fn read_csv_with(path: &str, given: Vec<(String, Value)>) -> Result<DataFrame, Failure> {
    let mut options = CsvOptions::new();
    let (mut index, mut positions, mut skip) = (None, None, 0);
    for (name, value) in given {
        match (name.as_str(), value) {
            ("index_col", Value::None) => {}
            ("index_col", value) if value.flag().is_ok_and(|flag| flag) => {
                return Err(Failure::value("The value of index_col couldn't be 'True'"));
            }
            ("index_col", value) if value.flag().is_ok() => {}
            ("index_col", value) => index = Some(value),
            ("usecols", Value::List(columns)) if columns.iter().all(|column| column.integer().is_ok()) => {
                positions = Some(columns.iter().map(Value::integer).collect::<Result<Vec<_>, _>>()?);
            }
            ("skiprows", Value::None) => {}
            ("skiprows", value) => skip += whole("skiprows", &value)?,
            ("header", value) if value.integer().is_ok() => {
                skip += whole("header", &value)?;
                options = options.header(true);
            }
            (name, value) => options = csv_option(options, name, value)?,
        }
    }
    let frame = read_csv(path, options.skiprows(skip));
    let labels = frame.columns()?;
    let label = |value: &Value| match value.integer() {
        Err(_) => value.text(),
        Ok(at) => {
            let label = usize::try_from(at).ok().and_then(|at| labels.get(at)).cloned();
            label.ok_or_else(|| Failure::new("IndexError", format!("column {at} of {}", labels.len())))
        }
    };
    let frame = match positions {
        None => frame,
        Some(mut positions) => {
            positions.sort_unstable();
            let labels: Vec<String> =
                positions.into_iter().map(|at| label(&Value::Scalar(at.into()))).collect::<Result<_, _>>()?;
            frame.select(strs(&labels))
        }
    };
    Ok(match index {
        None => frame,
        Some(Value::List(levels)) => {
            let levels = levels.iter().map(label).collect::<Result<Vec<_>, _>>()?;
            frame.set_index(strs(&levels))
        }
        Some(level) => frame.set_index([label(&level)?.as_str()]),
    })
}

fn whole(name: &str, value: &Value) -> Result<usize, Failure> {
    match value {
        Value::List(_) => Err(Failure::missing(format!("a list of {name} is not implemented"))),
        value => usize::try_from(value.integer()?).map_err(|_| Failure::value(format!("{name} is negative"))),
    }
}

/// One option of a reader of CSV.
fn csv_option(options: CsvOptions, name: &str, value: Value) -> Result<CsvOptions, Failure> {
    let byte = |value: &Value| match value.text()?.as_bytes() {
        [byte] => Ok(*byte),
        _ => Err(Failure::missing(format!("{name} of several characters is not implemented"))),
    };
    if matches!(value, Value::None) {
        return Ok(match name {
            "header" => options.header(false),
            _ => options,
        });
    }
    Ok(match name {
        "sep" | "delimiter" => options.sep(byte(&value)?),
        "quotechar" => options.quotechar(byte(&value)?),
        "comment" => options.comment(Some(byte(&value)?)),
        "decimal" => options.decimal(byte(&value)?),
        "thousands" => options.thousands(Some(byte(&value)?)),
        "header" if value.text().is_ok_and(|text| text == "infer") => options,
        "names" => options.names(strs(&labels(&value)?)),
        "usecols" => options.usecols(strs(&value.texts()?)),
        "dtype" => match &value {
            Value::Dict(entries) => {
                let mut options = options;
                for (label, dtype) in entries {
                    options = options.dtype(&label.text()?, dtype.dtype()?);
                }
                options
            }
            dtype => options.dtype_of_all(dtype.dtype()?),
        },
        "parse_dates" => match value.flag() {
            Ok(false) => options,
            Ok(true) => return Err(Failure::missing("parse_dates of the index is not implemented")),
            Err(_) => options.parse_dates(strs(&value.texts()?)),
        },
        "na_values" => match &value {
            Value::Dict(_) => return Err(Failure::missing("na_values by column is not implemented")),
            value => options.na_values(strs(&labels(value)?)),
        },
        "keep_default_na" => options.keep_default_na(value.flag()?),
        "nrows" => options.nrows(whole("nrows", &value)?),
        "encoding" => options.encoding(&value.text()?),
        "encoding_errors" => options.encoding_errors(&value.text()?),
        // They choose between readers of pandas.
        "engine" | "low_memory" | "memory_map" => options,
        "compression" if value.text().is_ok_and(|text| text == "infer") => options,
        "doublequote" | "skip_blank_lines" if value.flag().is_ok_and(|flag| flag) => options,
        "dayfirst" | "skipinitialspace" if value.flag().is_ok_and(|flag| !flag) => options,
        other if OF_PANDAS.contains(&other) => {
            return Err(Failure::missing(format!("the option {other} of read_csv is not implemented")));
        }
        other => return Err(unknown_option("pd.read_csv", OF_CSV, other).into()),
    })
}

/// Options of pandas' reader that this one does not have, some of which look like misspelt ones of it.
const OF_PANDAS: [&str; 16] = [
    "compression",
    "converters",
    "date_format",
    "dayfirst",
    "dialect",
    "doublequote",
    "escapechar",
    "false_values",
    "lineterminator",
    "na_filter",
    "on_bad_lines",
    "quoting",
    "skip_blank_lines",
    "skipfooter",
    "skipinitialspace",
    "true_values",
];

/// Texts, or numbers as texts.
fn labels(value: &Value) -> Result<Vec<String>, Failure> {
    let one = |value: &Value| match value {
        Value::Scalar(scalar) if scalar.as_str().is_none() => Ok(scalar.to_string()),
        other => other.text(),
    };
    match value {
        Value::List(parts) => parts.iter().map(one).collect(),
        other => Ok(vec![one(other)?]),
    }
}

/// The options that several writers have.
fn options(args: &mut Args) -> Result<WriteOptions, Failure> {
    let mut options = WriteOptions::new();
    if let Some(name) = args.take(usize::MAX, "compression") {
        options = match name {
            Value::None => options.compression(Compression::None),
            name => match name.text()?.as_str() {
                "infer" => options,
                "gzip" => options.compression(Compression::Gzip),
                "lz4" => options.compression(Compression::Lz4),
                "snappy" => options.compression(Compression::Snappy),
                "uncompressed" => options.compression(Compression::None),
                "zstd" => options.compression(Compression::Zstd),
                other => {
                    return Err(Failure::missing(format!("the compression {other:?} is not implemented")));
                }
            },
        };
    }
    match args.texts(usize::MAX, "partition_cols")? {
        Some(columns) => Ok(options.partition_cols(strs(&columns))),
        None => Ok(options),
    }
}

/// The frame with its index as columns; one without a name has an empty label, as in pandas.
fn with_index(frame: &DataFrame) -> Result<DataFrame, Failure> {
    let unnamed = frame.index_names()? == [None];
    let columns = frame.reset_index(false);
    Ok(if unnamed { columns.rename([("index", "")]) } else { columns })
}

/// Writes to a path, or gives the text.
fn written(
    args: &Args,
    frame: &DataFrame,
    path: Option<String>,
    format: FileFormat,
    options: WriteOptions,
) -> Result<Value, Failure> {
    let executor = &*args.context.executor;
    if let Some(path) = path {
        frame.write_on(&path, format, options, executor)?;
        return Ok(Value::None);
    }
    let file = std::env::temp_dir().join(format!("tharsis-{}.text", unique()));
    let name = file.to_string_lossy();
    frame.write_on(&name, format, options, executor)?;
    let text = std::fs::read_to_string(&file).map_err(|error| file_error(&name, &error));
    let _removed = std::fs::remove_file(&file);
    Ok(Value::Scalar(Scalar::from(text?)))
}

fn to_csv(_: &str, args: &mut Args) -> Result<Value, Failure> {
    let frame = args.columns()?;
    let path = path_or_text(args)?;
    let mut form = options(args)?.index(false);
    for (name, set) in [
        ("sep", WriteOptions::sep as fn(WriteOptions, u8) -> WriteOptions),
        ("quotechar", WriteOptions::quotechar),
    ] {
        if let Some(text) = args.given(if name == "sep" { 2 } else { usize::MAX }, name) {
            match text.text()?.as_bytes() {
                [byte] => form = set(form, *byte),
                _ => return Err(Failure::kind(format!("{name} must be a 1-character string"))),
            }
        }
    }
    if let Some(text) = args.given(3, "na_rep") {
        form = form.na_rep(&text.text()?);
    }
    form = form.header(args.flag(usize::MAX, "header", true)?);
    let frame = if args.flag(usize::MAX, "index", true)? { with_index(&frame)? } else { frame };
    written(args, &frame, path, FileFormat::Csv, form)
}

fn to_json(_: &str, args: &mut Args) -> Result<Value, Failure> {
    let frame = args.frame()?;
    let path = path_or_text(args)?;
    args.choice(2, "orient", &["records"])?;
    args.only(usize::MAX, "lines", true)?;
    let form = options(args)?.index(false);
    written(args, &frame, path, FileFormat::Json, form)
}

fn to_parquet(_: &str, args: &mut Args) -> Result<Value, Failure> {
    let frame = args.frame()?;
    let path = path(args, 1, "path")?;
    let mut form = options(args)?;
    if let Some(index) = args.named("index") {
        form = form.index(index.flag()?);
    }
    if let Some(rows) = args.named("row_group_size") {
        form = form.row_group_size(whole("row_group_size", &rows)?);
    }
    written(args, &frame, Some(path), FileFormat::Parquet, form)
}

fn to_feather(_: &str, args: &mut Args) -> Result<Value, Failure> {
    let frame = args.frame()?;
    let path = path(args, 1, "path")?;
    let form = options(args)?;
    written(args, &frame, Some(path), FileFormat::Arrow, form)
}

/// Databases.
mod sql {
    use super::{Args, Failure, Value, strs, with_index};
    use tharsis_dataframe::{IfExists, read_sql};

    /// The name of a database, whose file is relative to the folder of the program.
    fn database(args: &mut Args, position: usize) -> Result<String, Failure> {
        let name = args.need(position, "con")?.text()?;
        let path = name.strip_prefix("sqlite:///").or_else(|| name.strip_prefix("sqlite:"));
        Ok(match path {
            Some(path) => format!("sqlite:{}", super::path_of(&args.context.folder, path)),
            None => name,
        })
    }

    pub(super) fn read(name: &str, args: &mut Args) -> Result<Value, Failure> {
        let query = args.need(0, if name == "read_sql_table" { "table_name" } else { "sql" })?.text()?;
        let frame = read_sql(&query, &database(args, 1)?);
        Ok(Value::Frame(match args.texts(2, "index_col")? {
            Some(levels) => frame.set_index(strs(&levels)),
            None => frame,
        }))
    }

    pub(super) fn write(_: &str, args: &mut Args) -> Result<Value, Failure> {
        let frame = args.columns()?;
        let table = args.need(1, "name")?.text()?;
        let database = database(args, 2)?;
        let if_exists = match args.choice(usize::MAX, "if_exists", &["fail", "replace", "append"])? {
            "replace" => IfExists::Replace,
            "append" => IfExists::Append,
            _ => IfExists::Fail,
        };
        let unnamed = frame.index_names()? == [None];
        let frame = if args.flag(usize::MAX, "index", true)? {
            if unnamed { frame.reset_index(false) } else { with_index(&frame)? }
        } else {
            frame.reset_index(true)
        };
        let rows = frame.len()?;
        frame.to_sql_on(&table, &database, if_exists, &*args.context.executor)?;
        Ok(Value::Scalar((rows as i64).into()))
    }
}
