//! Calls of functions with units of rows, and the form that they travel in.

use super::unit::{Passing, Spec};
use crate::error::{Error, FunctionFault, Result};
use crate::registered::{Call, SentCall};
use crate::table::Table;
use arrow::array::{
    Array, ArrayRef, Int64Array, RecordBatch, RecordBatchOptions, UInt32Array, new_null_array,
};
use arrow::compute::take;
use arrow::datatypes::{DataType, SchemaRef};
use std::fmt;
use std::sync::Arc;

/// The calls of an operator, apart from its inputs.
#[derive(Clone, Debug)]
pub(crate) struct Apply {
    pub(crate) spec: Arc<Spec>,
    pub(crate) calls: Arc<[Call]>,
    /// All columns that come out.
    pub(crate) schema: SchemaRef,
}

impl fmt::Display for Apply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<String> = self.calls.iter().map(Call::name).collect();
        write!(f, "{} of {}", names.join(", then "), self.spec.unit)
    }
}

impl Apply {
    /// The calls as bytes, without the columns that come out.
    ///
    /// # Errors
    /// `Internal` if they cannot be encoded.
    pub(crate) fn sent(&self) -> Result<Vec<u8>> {
        let calls: Vec<SentCall> = self.calls.iter().map(Call::sent).collect();
        let sent = postcard::to_allocvec(&(&*self.spec, calls));
        sent.map_err(|error| Error::Internal(format!("calls cannot be encoded: {error}")))
    }

    /// The calls that came as bytes.
    ///
    /// # Errors
    /// `Function` if this program does not have one of the functions.
    pub(crate) fn received(bytes: &[u8], schema: SchemaRef) -> Result<Apply> {
        let (spec, calls): (Spec, Vec<SentCall>) = postcard::from_bytes(bytes)
            .map_err(|error| Error::Internal(format!("bytes are no calls: {error}")))?;
        let calls = calls.into_iter().map(SentCall::received).collect::<Result<_>>()?;
        Ok(Apply { spec: Arc::new(spec), calls, schema })
    }

    /// Calls the functions with a unit of each input.
    pub(super) fn call(&self, units: &[RecordBatch]) -> Result<RecordBatch> {
        let Some(unit) = units.first() else {
            return Err(Error::Internal("a call without rows".to_owned()));
        };
        let made = if self.spec.by_column { self.by_column(unit)? } else { self.by_table(units)? };
        let rows = made.first().map_or(0, |column| column.len());
        let mut columns = self.keys(unit, rows)?;
        columns.extend(made);
        columns.extend(self.passed(unit, rows)?);
        if self.spec.positions {
            columns.push(Arc::new(Int64Array::from_iter_values(0..rows as i64)));
        }
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        Ok(RecordBatch::try_new_with_options(Arc::clone(&self.schema), columns, &options)?)
    }

    /// The positions of the levels and columns in an input.
    fn given(&self, unit: &RecordBatch) -> std::ops::Range<usize> {
        self.spec.keys..unit.num_columns() - self.spec.passed
    }

    fn by_column(&self, unit: &RecordBatch) -> Result<Vec<ArrayRef>> {
        let mut made = Vec::new();
        let skipped =
            self.spec.skips_missing && unit.columns()[..self.spec.keys].iter().any(|k| k.is_null(0));
        for at in self.given(unit) {
            if skipped {
                made.push(new_null_array(&DataType::Null, unit.num_rows()));
                continue;
            }
            let mut column = Arc::clone(unit.column(at));
            for call in &*self.calls {
                column = call.on_column(&column)?;
                column = aligned(call, column, unit.num_rows())?;
            }
            made.push(column);
        }
        self.declared(made)
    }

    fn by_table(&self, units: &[RecordBatch]) -> Result<Vec<ArrayRef>> {
        let mut tables = Vec::new();
        for (unit, levels) in units.iter().zip(&self.spec.levels) {
            let columns: Vec<usize> = self.given(unit).collect();
            tables.push(Table::of_batch(unit.project(&columns)?, levels.clone()));
        }
        for call in &*self.calls {
            tables = vec![call.on_tables(tables)?];
        }
        let table = tables.pop().unwrap_or_default();
        self.check(&table)?;
        self.declared(table.batch().columns().to_vec())
    }

    /// Refuses a table with other labels than declared.
    fn check(&self, table: &Table) -> Result<()> {
        let levels = self.spec.made_levels.len();
        let fields = self.schema.fields().iter().skip(self.spec.keys).take(self.spec.made);
        let declared: Vec<&str> = fields.skip(levels).map(|field| field.name().as_str()).collect();
        let found = table.columns();
        if found == declared && table.index_names().len() == levels {
            return Ok(());
        }
        let text = format!(
            "it gave the columns {found:?} and an index of {} levels; expected are {declared:?} and {levels}",
            table.index_names().len()
        );
        Err(self.error(FunctionFault::Types(text)))
    }

    /// The columns with the types that are declared.
    fn declared(&self, made: Vec<ArrayRef>) -> Result<Vec<ArrayRef>> {
        let fields = self.schema.fields().iter().skip(self.spec.keys).take(self.spec.made);
        let Some(last) = self.calls.last() else { return Ok(made) };
        let typed = made.into_iter().zip(fields).map(|(array, field)| {
            last.typed(array, field.data_type(), &format!("its column {:?}", field.name()))
        });
        typed.collect()
    }

    /// A fault of the last function.
    fn error(&self, fault: FunctionFault) -> Error {
        match self.calls.last() {
            Some(call) => call.error(fault),
            None => Error::Internal(fault.to_string()),
        }
    }

    /// The keys of a unit's rows, as often as it gave rows.
    fn keys(&self, unit: &RecordBatch, rows: usize) -> Result<Vec<ArrayRef>> {
        unit.columns()[..self.spec.keys].iter().map(|key| repeated(key, rows)).collect()
    }

    fn passed(&self, unit: &RecordBatch, rows: usize) -> Result<Vec<ArrayRef>> {
        let passed = &unit.columns()[unit.num_columns() - self.spec.passed..];
        match self.spec.passing {
            Passing::Nothing => Ok(Vec::new()),
            Passing::Each => Ok(passed.to_vec()),
            Passing::First => passed.iter().map(|column| repeated(column, rows)).collect(),
        }
    }
}

/// The first value of a column, some times.
fn repeated(column: &ArrayRef, rows: usize) -> Result<ArrayRef> {
    Ok(take(column, &UInt32Array::from_value(0, rows), None)?)
}

/// A column of as many rows as its function was given, made of one or of as many values.
fn aligned(call: &Call, column: ArrayRef, rows: usize) -> Result<ArrayRef> {
    match column.len() {
        given if given == rows => Ok(column),
        1 => repeated(&column, rows),
        given => {
            let text = format!("it gave {given} values for {rows} rows");
            Err(call.error(FunctionFault::Types(text)))
        }
    }
}
