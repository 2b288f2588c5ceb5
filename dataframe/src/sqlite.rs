//! Frames from and to SQLite databases.

use crate::error::{Error, FileFault, Result};
use crate::execute::{Executor, default_executor, execute};
use crate::frame::DataFrame;
use crate::stage::Resident;
use arrow::array::{
    Array, ArrayRef, AsArray, BinaryArray, Float64Array, Int64Array, RecordBatch, StringArray,
};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, Float64Type, Int64Type, Schema, SchemaRef, TimeUnit};
use arrow::util::display::{ArrayFormatter, FormatOptions};
use rusqlite::types::{Value as Cell, ValueRef};
use rusqlite::{Connection, ErrorCode, OpenFlags, Transaction, TransactionBehavior, params_from_iter};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// The fate of a table of the same name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IfExists {
    /// The new rows come after the old ones; the columns must be there.
    Append,
    /// It stays, and writing is an error.
    #[default]
    Fail,
    /// It goes with its rows and its columns.
    Replace,
}

/// A frame of the result of a query to a SQLite database, `sqlite:path`. A name alone stands for all of a
/// table.
///
/// A column has the type of its values: integers, floats, bytes, or texts, also if it has none. Texts beside
/// numbers in one column are an error: cast them in the query.
///
/// # Memory
/// All rows are in the memory of the driver.
///
/// ```
/// use tharsis_dataframe::{DataFrame, IfExists, read_sql};
/// let folder = std::env::temp_dir().join(format!("tharsis-sqlite-{}", std::process::id()));
/// std::fs::create_dir_all(&folder)?;
/// let database = format!("sqlite:{}", folder.join("trade.db").display());
/// let sales = DataFrame::from_columns([("city", vec!["Oslo", "Rome"].into()), ("sold", vec![3, 5].into())]);
/// sales.to_sql("sales", &database, IfExists::Fail)?;
/// let read = read_sql("select sum(sold) as total from sales", &database);
/// assert_eq!(read.col("total").values::<i64>()?, [Some(8)]);
/// # std::fs::remove_dir_all(&folder)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[track_caller]
pub fn read_sql(query: &str, database: &str) -> DataFrame {
    match path_of(database).and_then(|path| read(query, path)) {
        Ok((schema, batches)) => DataFrame::from_batches(schema, batches),
        Err(error) => DataFrame::new(Err(error)),
    }
}

impl DataFrame {
    /// Writes all rows to a table of a SQLite database, `sqlite:path`, with the index if it has names. All of
    /// it is one transaction: others see the whole table or what was there before.
    ///
    /// # Errors
    /// The error that the frame carries, one of its run, or one of the database.
    pub fn to_sql(&self, table: &str, database: &str, if_exists: IfExists) -> Result<()> {
        self.to_sql_on(table, database, if_exists, &*default_executor())
    }

    /// As [`to_sql`](DataFrame::to_sql), with the tasks of an executor.
    ///
    /// # Errors
    /// As [`to_sql`](DataFrame::to_sql).
    #[doc(hidden)]
    pub fn to_sql_on(
        &self,
        table: &str,
        database: &str,
        if_exists: IfExists,
        executor: &dyn Executor,
    ) -> Result<()> {
        let path = path_of(database)?;
        let frame = crate::frame::written(self.frame()?, None)?;
        let rows = execute(&frame.output()?, executor)?.0;
        // An empty file is a database without tables. Who makes it may remove it again, nobody else.
        let is_own = std::fs::File::create_new(path).is_ok();
        let written = write(&rows, table, path, if_exists);
        if written.is_err() && is_own && std::fs::metadata(path).is_ok_and(|found| found.len() == 0) {
            let _gone = std::fs::remove_file(path);
        }
        written
    }
}

/// The path of a database: `sqlite:path`, or `sqlite:///path` as other libraries write it.
fn path_of(database: &str) -> Result<&str> {
    let path = database.strip_prefix("sqlite:///").or_else(|| database.strip_prefix("sqlite:"));
    match path.filter(|path| !path.is_empty()) {
        Some(path) => Ok(path),
        None => Err(Error::NotImplemented(format!("{database:?} is no SQLite database, sqlite:path"))),
    }
}

fn open(path: &str, flags: OpenFlags) -> Result<Connection> {
    let connection = Connection::open_with_flags(path, flags | OpenFlags::SQLITE_OPEN_NO_MUTEX);
    let connection = connection.map_err(|error| from_sqlite(path, &error))?;
    connection.busy_timeout(BUSY).map_err(|error| from_sqlite(path, &error))?;
    Ok(connection)
}

fn read(query: &str, path: &str) -> Result<(SchemaRef, Vec<RecordBatch>)> {
    if !Path::new(path).exists() {
        return Err(Error::file(path, FileFault::Missing, "no such database"));
    }
    let failed = |error: rusqlite::Error| from_sqlite(path, &error);
    let connection = open(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    let is_name = !query.trim().contains(char::is_whitespace);
    let query = if is_name { format!("select * from {}", quoted(query.trim())) } else { query.to_owned() };
    let mut statement = connection.prepare(&query).map_err(failed)?;
    if statement.column_count() == 0 || !statement.readonly() {
        return Err(Error::Sql("the statement is no query".to_owned()));
    }
    let empty = |label: &str| ReadColumn { label: label.to_owned(), class: None, cells: Vec::new() };
    let mut columns: Vec<ReadColumn> = statement.column_names().map(empty).collect();
    let mut rows = statement.query([]).map_err(failed)?;
    while let Some(row) = rows.next().map_err(failed)? {
        for (at, column) in columns.iter_mut().enumerate() {
            column.push(row.get_ref(at).map_err(failed)?)?;
        }
    }
    let arrays = columns.into_iter().map(|column| (column.label.clone(), column.into_array(), true));
    let batch = RecordBatch::try_from_iter_with_nullable(arrays.collect::<Vec<_>>())?;
    Ok((batch.schema(), vec![batch]))
}

/// The cells of a column.
struct ReadColumn {
    label: String,
    /// The kind of its values so far.
    class: Option<&'static str>,
    cells: Vec<Cell>,
}

impl ReadColumn {
    fn push(&mut self, cell: ValueRef<'_>) -> Result<()> {
        let cell = match cell {
            ValueRef::Null => Cell::Null,
            ValueRef::Integer(whole) => Cell::Integer(whole),
            ValueRef::Real(float) => Cell::Real(float),
            ValueRef::Blob(bytes) => Cell::Blob(bytes.to_vec()),
            ValueRef::Text(text) => match std::str::from_utf8(text) {
                Ok(text) => Cell::Text(text.to_owned()),
                Err(_) => {
                    return Err(Error::Value(format!(
                        "column {:?} has a text that is not UTF-8",
                        self.label
                    )));
                }
            },
        };
        let class = match cell {
            Cell::Null => self.class,
            Cell::Integer(_) | Cell::Real(_) => Some("numbers"),
            Cell::Text(_) => Some("texts"),
            Cell::Blob(_) => Some("bytes"),
        };
        if let (Some(before), Some(class)) = (self.class, class)
            && before != class
        {
            let label = &self.label;
            return Err(Error::Type(format!(
                "column {label:?} has {before} and {class}; cast them in the query"
            )));
        }
        self.class = class;
        self.cells.push(cell);
        Ok(())
    }

    fn into_array(self) -> ArrayRef {
        let has = |test: fn(&Cell) -> bool| self.cells.iter().any(test);
        let dtype = if has(|cell| matches!(cell, Cell::Blob(_))) {
            DataType::Binary
        } else if has(|cell| matches!(cell, Cell::Real(_))) {
            DataType::Float64
        } else if has(|cell| matches!(cell, Cell::Integer(_))) {
            DataType::Int64
        } else {
            // Texts, or nothing at all.
            DataType::Utf8
        };
        let cells = self.cells.into_iter();
        match dtype {
            DataType::Int64 => Arc::new(Int64Array::from_iter(cells.map(|cell| match cell {
                Cell::Integer(whole) => Some(whole),
                _ => None,
            }))),
            DataType::Float64 => Arc::new(Float64Array::from_iter(cells.map(|cell| match cell {
                Cell::Integer(whole) => Some(whole as f64),
                Cell::Real(float) => Some(float),
                _ => None,
            }))),
            DataType::Binary => Arc::new(BinaryArray::from_iter(cells.map(|cell| match cell {
                Cell::Blob(bytes) => Some(bytes),
                _ => None,
            }))),
            _ => Arc::new(StringArray::from_iter(cells.map(|cell| match cell {
                Cell::Text(text) => Some(text),
                _ => None,
            }))),
        }
    }
}

fn write(rows: &Resident, table: &str, path: &str, if_exists: IfExists) -> Result<()> {
    let failed = |error: rusqlite::Error| from_sqlite(path, &error);
    let mut connection = open(path, OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE)?;
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(failed)?;
    prepare(&transaction, &rows.schema, table, if_exists, path)?;
    let labels: Vec<String> = rows.schema.fields().iter().map(|field| quoted(field.name())).collect();
    let marks = vec!["?"; labels.len()].join(", ");
    let insert = format!("insert into {} ({}) values ({marks})", quoted(table), labels.join(", "));
    {
        let mut insert = transaction.prepare(&insert).map_err(failed)?;
        for part in &rows.parts {
            for batch in part.fetch()? {
                let columns = batch.columns().iter().map(cells).collect::<Result<Vec<_>>>()?;
                for row in 0..batch.num_rows() {
                    let row = columns.iter().map(|column| &column[row]);
                    insert.execute(params_from_iter(row)).map_err(failed)?;
                }
            }
        }
    }
    transaction.commit().map_err(failed)
}

/// Makes the table, or finds it.
fn prepare(
    transaction: &Transaction<'_>,
    schema: &Schema,
    table: &str,
    if_exists: IfExists,
    path: &str,
) -> Result<()> {
    let failed = |error: rusqlite::Error| from_sqlite(path, &error);
    let exists = transaction.table_exists(None, table).map_err(failed)?;
    match (exists, if_exists) {
        (true, IfExists::Append) => return Ok(()),
        (true, IfExists::Fail) => return Err(Error::Value(format!("Table {table:?} already exists"))),
        (true, IfExists::Replace) => {
            transaction.execute(&format!("drop table {}", quoted(table)), []).map_err(failed)?;
        }
        (false, _) => {}
    }
    let column = |field: &Arc<Field>| Ok(format!("{} {}", quoted(field.name()), type_name(field)?));
    let columns = schema.fields().iter().map(column).collect::<Result<Vec<_>>>()?;
    let create = format!("create table {} ({})", quoted(table), columns.join(", "));
    transaction.execute(&create, []).map_err(failed)?;
    Ok(())
}

/// The name of a type in a table's definition, as pandas writes it.
fn type_name(field: &Field) -> Result<&'static str> {
    Ok(match field.data_type() {
        dtype if dtype.is_integer() => "INTEGER",
        dtype if dtype.is_floating() => "REAL",
        DataType::Boolean | DataType::Duration(_) => "INTEGER",
        DataType::Timestamp(..) => "TIMESTAMP",
        DataType::Date32 | DataType::Date64 => "DATE",
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView => "BLOB",
        dtype if dtype.is_nested() && !matches!(dtype, DataType::Dictionary(..)) => {
            return Err(Error::Type(format!("column {:?}: a database has no {dtype}", field.name())));
        }
        _ => "TEXT",
    })
}

/// The values of an array, as SQLite has them.
fn cells(array: &ArrayRef) -> Result<Vec<Cell>> {
    let whole = |array: &ArrayRef| -> Result<Vec<Cell>> {
        let wide = cast(array, &DataType::Int64)?;
        if array.null_count() < wide.null_count() {
            return Err(Error::Value("a whole number is too large for a database".to_owned()));
        }
        let values = wide.as_primitive::<Int64Type>().iter();
        Ok(values.map(|value| value.map_or(Cell::Null, Cell::Integer)).collect())
    };
    match array.data_type() {
        dtype if dtype.is_integer() => whole(array),
        DataType::Boolean | DataType::Duration(_) => whole(array),
        dtype if dtype.is_floating() => {
            let wide = cast(array, &DataType::Float64)?;
            let values = wide.as_primitive::<Float64Type>().iter();
            let cell =
                |value: Option<f64>| value.filter(|value| !value.is_nan()).map_or(Cell::Null, Cell::Real);
            Ok(values.map(cell).collect())
        }
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView => {
            let plain = cast(array, &DataType::Binary)?;
            let values = plain.as_binary::<i32>().iter();
            Ok(values.map(|value| value.map_or(Cell::Null, |bytes| Cell::Blob(bytes.to_vec()))).collect())
        }
        _ => texts(array),
    }
}

fn texts(array: &ArrayRef) -> Result<Vec<Cell>> {
    let (form, zoned) = match array.data_type() {
        DataType::Timestamp(TimeUnit::Second, _) => ("%Y-%m-%d %H:%M:%S", "%Y-%m-%d %H:%M:%S%:z"),
        _ => ("%Y-%m-%d %H:%M:%S%.f", "%Y-%m-%d %H:%M:%S%.f%:z"),
    };
    let options =
        FormatOptions::default().with_timestamp_format(Some(form)).with_timestamp_tz_format(Some(zoned));
    let formatter = ArrayFormatter::try_new(array, &options)?;
    let cell = |row: usize| {
        if array.is_null(row) {
            Ok(Cell::Null)
        } else {
            Ok(Cell::Text(formatter.value(row).try_to_string()?))
        }
    };
    (0..array.len()).map(cell).collect()
}

/// A name in SQL.
fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// The error for one of the library.
fn from_sqlite(path: &str, error: &rusqlite::Error) -> Error {
    let fault = match error.sqlite_error_code() {
        Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt) => FileFault::Corrupt,
        Some(
            ErrorCode::PermissionDenied | ErrorCode::ReadOnly | ErrorCode::AuthorizationForStatementDenied,
        ) => FileFault::Denied,
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => FileFault::Unavailable,
        Some(ErrorCode::CannotOpen) => {
            if Path::new(path).exists() {
                FileFault::Denied
            } else {
                FileFault::Missing
            }
        }
        Some(ErrorCode::DiskFull | ErrorCode::SystemIoFailure) => FileFault::Failed,
        _ => return Error::Sql(format!("{path}: {error}")),
    };
    Error::file(path, fault, error)
}

/// The time to wait for another writer.
const BUSY: Duration = Duration::from_secs(10);
