//! The keys that the rows of a table have, so that a statement which adds rows looks at these alone.

use crate::error::{Error, Result};
use crate::stage::KeptPart;
use arrow::array::{Array, ArrayRef, RecordBatch};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Schema};
use arrow::row::{RowConverter, SortField};
use arrow::util::display::array_value_to_string;
use datafusion::common::Constraint;
use std::collections::HashSet;
use std::sync::Arc;

/// The different values of the columns of a constraint.
#[derive(Debug)]
pub(in crate::sql) struct Keys {
    columns: Vec<usize>,
    /// Whether a key must be there: missing ones are no primary keys, and not the same as others.
    is_primary: bool,
    labels: String,
    types: Vec<DataType>,
    converter: RowConverter,
    known: HashSet<Box<[u8]>>,
    bytes: usize,
}

impl Keys {
    /// No keys of a constraint yet; none for columns of which equal values may have different bytes.
    pub(in crate::sql) fn of(constraint: &Constraint, schema: &Schema) -> Result<Option<Keys>> {
        let is_primary = matches!(constraint, Constraint::PrimaryKey(_));
        let (Constraint::PrimaryKey(columns) | Constraint::Unique(columns)) = constraint;
        let fields = columns.iter().filter_map(|&column| schema.fields().get(column));
        let types: Vec<DataType> = fields.map(|field| field.data_type().clone()).collect();
        if types.len() != columns.len() || !types.iter().all(has_one_form) {
            return Ok(None);
        }
        let sorted = types.iter().map(|dtype| SortField::new(dtype.clone())).collect();
        Ok(Some(Keys {
            columns: columns.clone(),
            is_primary,
            labels: labels(constraint, schema),
            types,
            converter: RowConverter::new(sorted)?,
            known: HashSet::new(),
            bytes: 0,
        }))
    }

    /// The keys of rows that are to be added.
    ///
    /// # Errors
    /// `ValueError` for a key that is known, stands twice or is missing.
    pub(in crate::sql) fn of_added(&self, added: &[Arc<dyn KeptPart>]) -> Result<HashSet<Box<[u8]>>> {
        let mut new = HashSet::new();
        for part in added {
            for batch in part.fetch()? {
                self.take(&batch, &mut new)?;
            }
        }
        Ok(new)
    }

    fn take(&self, batch: &RecordBatch, new: &mut HashSet<Box<[u8]>>) -> Result<()> {
        let columns = self.columns.iter().zip(&self.types).map(|(&column, dtype)| {
            let values = batch.column(column);
            if values.data_type() == dtype { Ok(Arc::clone(values)) } else { cast(values, dtype) }
        });
        let columns = columns.collect::<std::result::Result<Vec<ArrayRef>, _>>()?;
        let rows = self.converter.convert_columns(&columns)?;
        for (at, row) in rows.iter().enumerate() {
            let is_missing = columns.iter().any(|values| values.is_null(at));
            if is_missing && !self.is_primary {
                continue;
            }
            let key: &[u8] = row.as_ref();
            if is_missing || self.known.contains(key) || !new.insert(key.into()) {
                let values = columns.iter().map(|values| array_value_to_string(values, at));
                let values = values.collect::<std::result::Result<Vec<String>, _>>()?.join(", ");
                return Err(broken(&self.labels, &format!(": ({values})")));
            }
        }
        Ok(())
    }

    /// Adds the keys of rows that were added.
    pub(in crate::sql) fn add(&mut self, new: HashSet<Box<[u8]>>) {
        self.bytes += new.iter().map(|key| key.len() + KEY_BYTES).sum::<usize>();
        self.known.extend(new);
    }

    /// Bytes that they take, about.
    pub(in crate::sql) fn bytes(&self) -> usize {
        self.bytes
    }
}

/// Bytes of a key in a set, beside its own.
const KEY_BYTES: usize = 32;

/// Whether equal values have equal bytes. Floats have two zeros.
fn has_one_form(dtype: &DataType) -> bool {
    dtype.is_integer()
        || dtype.is_decimal()
        || crate::value::is_text(dtype)
        || matches!(
            dtype,
            DataType::Boolean
                | DataType::Binary
                | DataType::BinaryView
                | DataType::Date32
                | DataType::Date64
                | DataType::LargeBinary
                | DataType::Time32(_)
                | DataType::Time64(_)
                | DataType::Timestamp(..)
        )
}

/// The names of the columns of a constraint.
pub(in crate::sql) fn labels(constraint: &Constraint, schema: &Schema) -> String {
    let (Constraint::PrimaryKey(columns) | Constraint::Unique(columns)) = constraint;
    let fields = columns.iter().filter_map(|&column| schema.fields().get(column));
    fields.map(|field| field.name().as_str()).collect::<Vec<_>>().join(", ")
}

/// The error of a key that a constraint forbids, whose values are told, if they are known.
pub(in crate::sql) fn broken(labels: &str, values: &str) -> Error {
    Error::Value(format!(
        "duplicate or missing key: rows have the same values of ({labels}), or none{values}"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sql::{SqlAnswer, SqlSession};
    use crate::stage::LocalPart;
    use arrow::array::Int64Array;
    use arrow::datatypes::Field;

    fn rows(keys: &[Option<i64>]) -> Vec<Arc<dyn KeptPart>> {
        let schema = Schema::new(vec![Field::new("k", DataType::Int64, true)]);
        let column: ArrayRef = Arc::new(Int64Array::from(keys.to_vec()));
        let batch = RecordBatch::try_new(Arc::new(schema), vec![column]).expect("a batch");
        vec![Arc::new(LocalPart(vec![batch]))]
    }

    fn keys(constraint: &Constraint) -> Keys {
        let schema = Schema::new(vec![Field::new("k", DataType::Int64, true)]);
        Keys::of(constraint, &schema).expect("keys").expect("of numbers")
    }

    #[test]
    fn a_key_is_new_and_there() {
        let mut primary = keys(&Constraint::PrimaryKey(vec![0]));
        let new = primary.of_added(&rows(&[Some(1), Some(2)])).expect("new keys");
        primary.add(new);
        for wrong in [vec![Some(2)], vec![Some(3), Some(3)], vec![None]] {
            assert_eq!(primary.of_added(&rows(&wrong)).expect_err("a wrong key").class(), "ValueError");
        }
        assert_eq!(primary.of_added(&rows(&[Some(3)])).expect("a new key").len(), 1);
        let unique = keys(&Constraint::Unique(vec![0]));
        assert_eq!(unique.of_added(&rows(&[None, None, Some(1)])).expect("missing ones").len(), 1);
    }

    #[test]
    fn rows_that_are_not_added_leave_no_keys() {
        let mut session = SqlSession::default();
        session.run("create table k (a int primary key, b int not null)").expect("a table");
        for statement in ["insert into k values (1, null)", "insert into k values (2, 2), (2, 3)"] {
            session.run(statement).expect_err("no rows");
        }
        session.run("insert into k values (1, 1), (2, 2)").expect("rows");
        session.run("delete from k where a = 1").expect("a row less");
        session.run("insert into k values (1, 7)").expect("its key is free");
        session.run("update k set a = 9 where a = 2").expect("another key");
        session.run("insert into k values (2, 2)").expect("its key is free");
        session.run("insert into k values (9, 2)").expect_err("a key that is there");
        let added = session.execute("insert into k select a + 20, b from k").expect("rows");
        assert_eq!(added, SqlAnswer::Changed(3));
        assert_eq!(session.run("select count(*), count(distinct a) from k").expect("rows"), [["6", "6"]]);
    }

    #[test]
    fn keys_of_floats_and_of_two_columns() {
        let mut session = SqlSession::default();
        session.run("create table f (x double primary key)").expect("a table");
        session.run("insert into f values (0.0)").expect("a row");
        session.run("insert into f values (0.0)").expect_err("a key that is there");
        session.run("create table p (a int, b varchar, unique (a, b))").expect("a table");
        session.run("insert into p values (1, 'x'), (1, null), (1, null)").expect("rows");
        session.run("insert into p values (1, 'y')").expect("a row");
        session.run("insert into p values (1, 'x')").expect_err("a key that is there");
    }

    #[test]
    fn keys_are_what_they_are_said_to_be() {
        let mut session = SqlSession::default().part_rows_min(1);
        session.run("create table k (a int primary key, b int, c int unique)").unwrap();
        session.run("insert into k values (1, 2, 5), (2, 4, null), (3, 4, null)").unwrap();
        for statement in [
            "insert into k values (1, 3, 6)",
            "insert into k values (4, 3, 5)",
            "insert into k values (null, 3, 7)",
            "update k set a = 1",
            "create table twice (a int primary key) as values (1), (1)",
        ] {
            assert_eq!(session.run(statement).unwrap_err().class(), "ValueError", "{statement}");
        }
        assert_eq!(session.run("select distinct a from k").unwrap().len(), 3);
        let deleted = session.execute("delete from k where b = 4").unwrap();
        assert_eq!(deleted, SqlAnswer::Changed(2));
        assert_eq!(
            session.run("update k set b = 0 where random() < 0.5").unwrap_err().class(),
            "NotImplemented"
        );
    }
}
