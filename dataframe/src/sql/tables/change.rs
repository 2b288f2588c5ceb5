//! Statements that change the rows of a table, as plans of the rows that it has afterwards.

use crate::error::{Error, Result};
use crate::frame::{HIDDEN, named};
use crate::stage::{KeptPart, LocalPart, Resident};
use crate::table::Table;
use arrow::array::RecordBatch;
use arrow::compute::concat_batches;
use arrow::datatypes::{Schema, SchemaRef};
use datafusion::common::{Column, Constraint};
use datafusion::functions_aggregate::expr_fn::count as count_of;
use datafusion::logical_expr::dml::InsertOp;
use datafusion::logical_expr::expr_fn::when;
use datafusion::logical_expr::{
    DmlStatement, Expr, Filter, LogicalPlan, LogicalPlanBuilder, Projection, SubqueryAlias, TableScan,
    TableScanBuilder, WriteOp, lit,
};
use std::sync::Arc;

/// The effect of a statement on the rows of a table.
pub(in crate::sql) enum Change {
    /// The rows of this plan are added.
    Add(LogicalPlan),
    /// The rows of this plan replace those of the table.
    Replace(LogicalPlan),
    /// The rows of this plan stay.
    Keep(LogicalPlan),
    /// The rows of a plan replace those of the table, and another plan counts those that were concerned.
    Update { rows: LogicalPlan, changed: LogicalPlan },
    /// No rows are left.
    Empty,
}

impl Change {
    /// The effect of a statement.
    pub(in crate::sql) fn of(statement: DmlStatement) -> Result<Change> {
        let input = Arc::unwrap_or_clone(statement.input);
        match statement.op {
            WriteOp::Insert(InsertOp::Append) => Ok(Change::Add(input)),
            WriteOp::Insert(InsertOp::Overwrite) => Ok(Change::Replace(input)),
            WriteOp::Delete => delete(input),
            WriteOp::Update => update(input),
            WriteOp::Truncate => Ok(Change::Empty),
            other => Err(unsupported(other.name())),
        }
    }
}

fn unsupported(what: &str) -> Error {
    Error::NotImplemented(format!("{what} is not supported for this table"))
}

/// The plan of a delete gives the rows that go: all of a scan, or those that a condition holds for.
fn delete(input: LogicalPlan) -> Result<Change> {
    match input {
        LogicalPlan::TableScan(scan) if is_of_all_rows(&scan) => Ok(Change::Empty),
        LogicalPlan::Filter(Filter { predicate, input, .. }) => {
            Ok(Change::Keep(LogicalPlanBuilder::from(input).filter(predicate.is_not_true())?.build()?))
        }
        _ => Err(unsupported("a DELETE with a limit")),
    }
}

/// The plan of an update gives the new values of the rows that a condition holds for.
fn update(input: LogicalPlan) -> Result<Change> {
    let LogicalPlan::Projection(Projection { expr, input, .. }) = input else {
        return Err(unsupported("this UPDATE"));
    };
    let (condition, table) = match Arc::unwrap_or_clone(input) {
        LogicalPlan::Filter(Filter { predicate, input, .. }) => (predicate, Arc::unwrap_or_clone(input)),
        other => (lit(true), other),
    };
    let Some(table) = whole(table)? else { return Err(unsupported("an UPDATE with a join")) };
    if condition.is_volatile() {
        // It would be another one for each column, and for the number of rows.
        return Err(unsupported(
            "an UPDATE with a condition that has another value each time, such as random(),",
        ));
    }
    if expr.len() != table.schema().fields().len() {
        return Err(unsupported("this UPDATE"));
    }
    let old = table.schema().iter().map(|(table, field)| Expr::Column(Column::from((table, field))));
    let names = table.schema().fields().iter().map(|field| field.name().clone());
    let old: Vec<(Expr, String)> = old.zip(names).collect();
    let values = expr.into_iter().zip(old).map(|(new, (old, name))| {
        let new = new.unalias();
        let value = if new == old { old } else { when(condition.clone(), new).otherwise(old)? };
        Ok(value.alias(name))
    });
    let values = values.collect::<Result<Vec<Expr>>>()?;
    let changed = counted(LogicalPlanBuilder::from(table.clone()).filter(condition.clone())?)?;
    let rows = LogicalPlanBuilder::from(table).project(values)?.build()?;
    Ok(Change::Update { rows, changed })
}

/// All columns and rows of the table that a plan reads; `None` for a plan of anything else. The plan of a
/// prepared statement was optimised: it reads no columns that get new values.
fn whole(plan: LogicalPlan) -> Result<Option<LogicalPlan>> {
    Ok(match plan {
        LogicalPlan::TableScan(scan) if is_of_all_rows(&scan) => {
            let scan = TableScanBuilder::new(scan.table_name, scan.source).build()?;
            Some(LogicalPlan::TableScan(scan))
        }
        LogicalPlan::SubqueryAlias(SubqueryAlias { input, alias, .. }) => {
            let Some(input) = whole(Arc::unwrap_or_clone(input))? else { return Ok(None) };
            Some(LogicalPlan::SubqueryAlias(SubqueryAlias::try_new(Arc::new(input), alias)?))
        }
        _ => None,
    })
}

fn is_of_all_rows(scan: &TableScan) -> bool {
    scan.filters.is_empty() && scan.fetch.is_none()
}

fn counted(rows: LogicalPlanBuilder) -> Result<LogicalPlan> {
    let all = count_of(lit(1_i64)).alias("count");
    Ok(rows.aggregate(Vec::<Expr>::new(), vec![all])?.build()?)
}

/// The number in the only row of a plan that counts.
pub(in crate::sql) fn count(rows: &Resident) -> Result<usize> {
    changed_rows(&Table::new(&rows.schema, &rows.fetch()?, Vec::new())?)
}

/// The number of rows that the library says it has written.
pub(in crate::sql) fn changed_rows(table: &Table) -> Result<usize> {
    let counts = table.batch().columns().first();
    let count = counts.filter(|counts| !counts.is_empty());
    let Some(count) = count else { return Ok(0) };
    let count = crate::value::Value::from_array(count, 0)?;
    Ok(count.as_i64().unwrap_or(0).unsigned_abs() as usize)
}

/// Whether a statement adds rows that its plan gives.
pub(in crate::sql) fn adds(statement: &DmlStatement) -> bool {
    matches!(statement.op, WriteOp::Insert(_))
}

/// Keys of a constraint that it forbids: a plan without rows if it holds. Missing values are not the same, as
/// in PostgreSQL, and no primary keys.
pub(in crate::sql) fn forbidden(
    mut table: LogicalPlanBuilder,
    constraint: &Constraint,
) -> Result<LogicalPlan> {
    let rows = format!("{HIDDEN}rows");
    let mut forbidden = named(&rows).gt(lit(1_i64));
    let mut keys = Vec::new();
    let (Constraint::PrimaryKey(columns) | Constraint::Unique(columns)) = constraint;
    for &column in columns {
        let key = Expr::Column(Column::from(table.schema().qualified_field(column)));
        match constraint {
            Constraint::PrimaryKey(_) => forbidden = forbidden.or(key.clone().is_null()),
            Constraint::Unique(_) => table = table.filter(key.clone().is_not_null())?,
        }
        keys.push(key);
    }
    let counted = table.aggregate(keys, vec![count_of(lit(1_i64)).alias(&rows)])?;
    Ok(counted.filter(forbidden)?.limit(0, Some(1))?.build()?)
}

/// Refuses missing values in columns that must not have any.
pub(in crate::sql) fn check_missing(schema: &SchemaRef, part: &Arc<dyn KeptPart>) -> Result<()> {
    if schema.fields().iter().all(|field| field.is_nullable()) {
        return Ok(());
    }
    for batch in part.fetch()? {
        for (field, column) in schema.fields().iter().zip(batch.columns()) {
            if !field.is_nullable() && 0 < column.logical_null_count() {
                let name = field.name();
                return Err(Error::Value(format!(
                    "Invalid batch column {name:?} has null but schema specifies non-nullable"
                )));
            }
        }
    }
    Ok(())
}

/// Bytes of a part that rows join: it is in the memory of this process then, which nobody counts.
const JOINED_BYTES_MAX: usize = 1 << 20;

/// The parts of a table with rows behind them. Few rows join the last part, if it has few itself; others are
/// parts of their own, until these are too many.
pub(in crate::sql) fn appended(
    parts: &[Arc<dyn KeptPart>],
    added: Vec<Arc<dyn KeptPart>>,
    partitions: usize,
    rows_min: usize,
) -> Result<Vec<Arc<dyn KeptPart>>> {
    let few: usize = added.iter().map(|part| part.rows()).sum();
    if few == 0 {
        return Ok(parts.to_vec());
    }
    let bytes: usize = added.iter().map(|part| part.bytes()).sum();
    let is_joined =
        |last: &Arc<dyn KeptPart>| last.rows() + few <= rows_min && last.bytes() + bytes <= JOINED_BYTES_MAX;
    let Some((last, before)) = parts.split_last().filter(|(last, _)| is_joined(last)) else {
        return cut(parts.iter().cloned().chain(added).collect(), partitions, rows_min);
    };
    let mut batches = Vec::new();
    for part in std::iter::once(last).chain(&added) {
        for batch in part.fetch()? {
            push(&mut batches, batch)?;
        }
    }
    let last = Arc::new(LocalPart(batches)) as Arc<dyn KeptPart>;
    Ok(before.iter().cloned().chain([last]).collect())
}

/// Adds a batch, and joins the last ones like the digits of a number that counts: n batches of one row are at
/// most log n then, and each row was copied as often.
fn push(batches: &mut Vec<RecordBatch>, batch: RecordBatch) -> Result<()> {
    if batch.num_rows() == 0 {
        return Ok(());
    }
    batches.push(batch);
    while let [.., before, last] = batches.as_slice()
        && before.num_rows() <= last.num_rows()
    {
        let schema = nullable(&before.schema());
        let both = concat_batches(&schema, &with_schema(&schema, vec![before.clone(), last.clone()])?)?;
        batches.truncate(batches.len() - 2);
        batches.push(both);
    }
    Ok(())
}

/// Bytes of a table that is cut anew; a larger one would take long to fetch.
const SMALL_BYTES: usize = 64 << 20;

/// Parts with these rows: up to one for each partition, of at least this many rows.
pub(in crate::sql) fn cut(
    parts: Vec<Arc<dyn KeptPart>>,
    partitions: usize,
    rows_min: usize,
) -> Result<Vec<Arc<dyn KeptPart>>> {
    let parts: Vec<_> = parts.into_iter().filter(|part| 0 < part.rows()).collect();
    let rows: usize = parts.iter().map(|part| part.rows()).sum();
    let wanted = partitions.min(rows.div_ceil(rows_min)).max(1);
    let bytes: usize = parts.iter().map(|part| part.bytes()).sum();
    let fits = (wanted..=2 * wanted).contains(&parts.len());
    if rows == 0 || fits || SMALL_BYTES < bytes {
        return Ok(parts);
    }
    let mut batches = Vec::new();
    for part in &parts {
        batches.extend(part.fetch()?);
    }
    let Some(schema) = batches.first().map(|batch| nullable(&batch.schema())) else { return Ok(parts) };
    let all = concat_batches(&schema, &with_schema(&schema, batches)?)?;
    let cut = (0..wanted).map(|part| {
        let (from, to) = (part * rows / wanted, (part + 1) * rows / wanted);
        Arc::new(LocalPart(vec![all.slice(from, to - from)])) as Arc<dyn KeptPart>
    });
    Ok(cut.collect())
}

/// The columns of a table with the types that its rows have: a set operation of several types gets its own
/// when it is planned.
pub(in crate::sql) fn with_types_of(columns: &Schema, rows: &Schema) -> SchemaRef {
    let fields = columns.fields().iter().zip(rows.fields());
    let fields = fields.map(|(column, row)| column.as_ref().clone().with_data_type(row.data_type().clone()));
    Arc::new(Schema::new_with_metadata(fields.collect::<Vec<_>>(), columns.metadata().clone()))
}

/// The same columns, any of which may have missing values: tasks of different statements promise different
/// things.
fn nullable(schema: &Schema) -> SchemaRef {
    let fields = schema.fields().iter().map(|field| field.as_ref().clone().with_nullable(true));
    Arc::new(Schema::new(fields.collect::<Vec<_>>()))
}

fn with_schema(schema: &SchemaRef, batches: Vec<RecordBatch>) -> Result<Vec<RecordBatch>> {
    let batches = batches.into_iter().map(|batch| {
        let rows = arrow::array::RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        Ok(RecordBatch::try_new_with_options(Arc::clone(schema), batch.columns().to_vec(), &rows)?)
    });
    batches.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sql::SqlSession;
    use arrow::array::{Array as _, ArrayRef, Int64Array};
    use arrow::datatypes::{DataType, Field};

    fn row(number: i64) -> Arc<dyn KeptPart> {
        let schema = Schema::new(vec![Field::new("n", DataType::Int64, true)]);
        let column: ArrayRef = Arc::new(Int64Array::from(vec![number]));
        Arc::new(LocalPart(vec![RecordBatch::try_new(Arc::new(schema), vec![column]).expect("a batch")]))
    }

    #[test]
    fn a_row_that_is_added_copies_few_others() {
        let (count, mut parts, mut copied) = (3000, vec![row(0)], 0);
        for number in 1..count {
            let before = addresses(&parts);
            parts = appended(&parts, vec![row(number)], 2, 2048).expect("rows");
            let new = addresses(&parts);
            copied += new.iter().filter(|batch| !before.contains(batch)).map(|(_, rows)| rows).sum::<usize>();
        }
        assert!(copied <= 3000 * 12, "{copied} rows were copied");
        assert_eq!(parts.len(), 2);
        assert!(addresses(&parts).len() <= 24);
        let batches: Vec<RecordBatch> = parts.iter().flat_map(|part| part.fetch().expect("rows")).collect();
        let all = concat_batches(&batches[0].schema(), &batches).expect("one batch");
        let numbers: Vec<i64> = (0..count).collect();
        assert_eq!(all.column(0).to_data(), Int64Array::from(numbers).into_data());
    }

    /// The address of the values of each batch, and its rows.
    fn addresses(parts: &[Arc<dyn KeptPart>]) -> Vec<(usize, usize)> {
        let batches = parts.iter().flat_map(|part| part.fetch().expect("rows"));
        batches
            .map(|batch| (batch.column(0).to_data().buffers()[0].as_ptr() as usize, batch.num_rows()))
            .collect()
    }

    #[test]
    fn a_table_of_a_query_has_the_types_of_its_rows() {
        let mut session = SqlSession::default();
        for statement in [
            "create table t (a int, b int) as values (1, 10), (2, 20)",
            "create table s as select a, b from t union all select a, b + 1 from t",
            "insert into s values (3, 9000000000)",
        ] {
            session.run(statement).expect(statement);
        }
        let all = [["1", "10"], ["1", "11"], ["2", "20"], ["2", "21"], ["3", "9000000000"]];
        assert_eq!(session.run("select * from s order by b").expect("rows"), all);
        let described = session.run("describe s").expect("columns");
        assert_eq!(described, [["a", "INTEGER", "YES"], ["b", "BIGINT", "YES"]]);
    }

    #[test]
    fn rows_that_are_added_follow_those_before() {
        let mut session = SqlSession::default();
        session.run("create table t (n int, s varchar)").expect("a table");
        for n in 0..20 {
            session.run(&format!("insert into t values ({n}, null), ({n}, 's{n}')")).expect("rows");
        }
        session.run("insert into t select n, s from t where false").expect("no rows");
        let rows = session.run("select n, s from t").expect("rows");
        assert_eq!(rows.len(), 40);
        assert_eq!(rows[38..], [["19", "NULL"], ["19", "s19"]]);
    }
}
