//! Tables that statements make and change.

use super::keys::Keys;
use crate::engine_future::EngineFuture;
use crate::error::Result;
use crate::scanned::{Scan, ScannedTable};
use crate::stage::{InputExec, KeptPart, Resident};
use arrow::datatypes::SchemaRef;
use datafusion::common::Constraints;
use datafusion::logical_expr::Expr;
use datafusion::physical_plan::ExecutionPlan;
use std::collections::{HashMap, HashSet};
use std::future::ready;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

/// A table whose rows are replaced as a whole: a query reads those of the moment when it was planned.
#[derive(Debug)]
pub(in crate::sql) struct SessionTable {
    rows: RwLock<Arc<Resident>>,
    constraints: Constraints,
    defaults: HashMap<String, Expr>,
    keys: Mutex<KnownKeys>,
}

/// The keys of the rows of a table.
#[derive(Debug)]
enum KnownKeys {
    /// Nobody has added rows since they were set.
    NotRead,
    /// Those of each constraint.
    Read(Vec<Keys>),
    /// They are too many, or of types whose values have several forms: a query looks at all rows.
    NotKept,
}

/// Bytes of the keys of a table that are kept, and of a table whose keys are read.
const KEYS_BYTES_MAX: usize = 256 << 20;
const READ_BYTES_MAX: usize = 64 << 20;

/// New keys of each constraint of a table.
pub(in crate::sql) type NewKeys = Vec<HashSet<Box<[u8]>>>;

impl SessionTable {
    /// A table of these rows.
    pub(in crate::sql) fn new(
        rows: Resident,
        constraints: Constraints,
        defaults: impl IntoIterator<Item = (String, Expr)>,
    ) -> SessionTable {
        SessionTable {
            rows: RwLock::new(Arc::new(rows)),
            constraints,
            defaults: defaults.into_iter().collect(),
            keys: Mutex::new(KnownKeys::NotRead),
        }
    }

    /// The rows at this moment.
    pub(in crate::sql) fn rows(&self) -> Arc<Resident> {
        Arc::clone(&self.rows.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Sets the rows. Parts in memory must fit the declaration; others are checked when they are read.
    pub(in crate::sql) fn put(&self, parts: Vec<Arc<dyn KeptPart>>) -> Result<()> {
        let schema = Arc::clone(&self.rows().schema);
        for part in &parts {
            super::change::check_missing(&schema, part)?;
        }
        *self.known() = KnownKeys::NotRead;
        self.set(parts);
        Ok(())
    }

    /// The keys of rows that are to be added; none if nobody keeps those of the table.
    ///
    /// # Errors
    /// `ValueError` for keys that the constraints forbid.
    pub(in crate::sql) fn new_keys(&self, added: &[Arc<dyn KeptPart>]) -> Result<Option<NewKeys>> {
        let mut known = self.known();
        // So many keys are for the executor, whose memory is counted.
        if READ_BYTES_MAX < added.iter().map(|part| part.bytes()).sum() {
            *known = KnownKeys::NotKept;
        }
        if matches!(*known, KnownKeys::NotRead) {
            *known = self.read_keys()?;
        }
        let KnownKeys::Read(keys) = &*known else { return Ok(None) };
        keys.iter().map(|keys| keys.of_added(added)).collect::<Result<NewKeys>>().map(Some)
    }

    /// Sets the rows after some were added, which have these keys.
    pub(in crate::sql) fn put_added(&self, parts: Vec<Arc<dyn KeptPart>>, new: Option<NewKeys>) {
        let mut known = self.known();
        if let (KnownKeys::Read(keys), Some(new)) = (&mut *known, new) {
            keys.iter_mut().zip(new).for_each(|(keys, new)| keys.add(new));
            if KEYS_BYTES_MAX < keys.iter().map(Keys::bytes).sum() {
                *known = KnownKeys::NotKept;
            }
        }
        self.set(parts);
    }

    /// The keys of all rows.
    fn read_keys(&self) -> Result<KnownKeys> {
        let rows = self.rows();
        let mut all = Vec::new();
        for constraint in self.constraints.iter() {
            let Some(mut keys) = Keys::of(constraint, &rows.schema)? else { return Ok(KnownKeys::NotKept) };
            if READ_BYTES_MAX < rows.bytes() {
                return Ok(KnownKeys::NotKept);
            }
            let read = keys.of_added(&rows.parts)?;
            keys.add(read);
            all.push(keys);
        }
        Ok(KnownKeys::Read(all))
    }

    fn known(&self) -> MutexGuard<'_, KnownKeys> {
        self.keys.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set(&self, parts: Vec<Arc<dyn KeptPart>>) {
        let schema = Arc::clone(&self.rows().schema);
        *self.rows.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(Resident { schema, parts });
    }
}

impl ScannedTable for SessionTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.rows().schema)
    }

    fn constraints(&self) -> Option<&Constraints> {
        Some(&self.constraints)
    }

    fn column_default(&self, column: &str) -> Option<&Expr> {
        self.defaults.get(column)
    }

    fn scan<'a>(&'a self, scan: Scan<'a>) -> EngineFuture<'a, Arc<dyn ExecutionPlan>> {
        Box::pin(ready(InputExec::scan_of_table(&self.rows(), scan.projection)))
    }
}
