//! Calls of functions in plans.

use super::definition::Definition;
use super::prepared::{Columns, Prepared};
use crate::error::{Error, FunctionFault, Result};
use crate::table::Table;
use crate::value::{array_without_nan, is_text, without_nan};
use arrow::array::{Array, ArrayRef};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, Fields};
use serde::{Deserialize, Serialize};
use std::any::Any;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, Location, catch_unwind};
use std::sync::{Arc, OnceLock};
use twox_hash::XxHash3_64;

/// A function of the program with its arguments, made by `name::with(..)`. `K` says what it is called with.
///
/// The attribute `tharsis::frame::function` makes `with`.
#[derive(Debug)]
pub struct Function<K> {
    call: Result<Call>,
    kind: PhantomData<fn(K)>,
}

/// Marks functions of the rows of a chunk.
#[derive(Debug)]
pub enum OverChunk {}

/// Marks functions of the values of a column, in many rows at once.
#[derive(Debug)]
pub enum OverColumn {}

/// Marks functions of two chunks.
#[derive(Debug)]
pub enum OverPair {}

/// Marks functions of one row.
#[derive(Debug)]
pub enum OverRow {}

/// Marks functions of one value.
#[derive(Debug)]
pub enum OverValue {}

impl<K> Clone for Function<K> {
    fn clone(&self) -> Function<K> {
        Function { call: self.call.clone(), kind: PhantomData }
    }
}

impl<K> Function<K> {
    /// A call of a definition with encoded arguments, for the code of the attribute.
    #[track_caller]
    #[must_use]
    pub fn new(
        definition: &'static Definition,
        arguments: impl FnOnce(&mut Vec<u8>) -> std::result::Result<(), FunctionFault>,
    ) -> Function<K> {
        let mut bytes = Vec::new();
        let made = arguments(&mut bytes);
        let call = Call {
            definition,
            arguments: bytes.into(),
            place: place_text(Location::caller()),
            declared: None,
            prepared: Arc::default(),
        };
        let call = match made {
            Ok(()) => Ok(call),
            Err(fault) => Err(call.error(fault)),
        };
        Function { call, kind: PhantomData }
    }

    /// The call from a line of the program.
    pub(crate) fn call_from(&self, place: &Location<'_>) -> Result<Call> {
        let call = self.call.clone()?;
        Ok(Call { place: place_text(place), ..call })
    }

    fn declared(mut self, fields: Fields) -> Function<K> {
        if let Ok(call) = &mut self.call {
            call.declared = Some(fields);
        }
        self
    }
}

fn place_text(place: &Location<'_>) -> Arc<str> {
    format!("{}:{}", place.file(), place.line()).into()
}

fn fields_of<'a>(columns: impl IntoIterator<Item = (&'a str, DataType)>) -> Fields {
    columns.into_iter().map(|(label, dtype)| Field::new(label, dtype, true)).collect()
}

impl Function<OverChunk> {
    /// Declares the columns of its result, so that it is not called without rows to find them.
    #[must_use]
    pub fn returns<'a>(self, columns: impl IntoIterator<Item = (&'a str, DataType)>) -> Function<OverChunk> {
        self.declared(fields_of(columns))
    }
}

impl Function<OverPair> {
    /// Declares the columns of its result, so that it is not called without rows to find them.
    #[must_use]
    pub fn returns<'a>(self, columns: impl IntoIterator<Item = (&'a str, DataType)>) -> Function<OverPair> {
        self.declared(fields_of(columns))
    }
}

impl Function<OverColumn> {
    /// Declares the type of its results, so that it is not called without rows to find it.
    #[must_use]
    pub fn returns(self, dtype: DataType) -> Function<OverColumn> {
        self.declared(fields_of([("0", dtype)]))
    }
}

/// A call of a function in a plan.
#[derive(Clone)]
pub(crate) struct Call {
    definition: &'static Definition,
    arguments: Arc<[u8]>,
    /// File and line of the step that called it.
    place: Arc<str>,
    /// The columns of its result, if they are declared.
    declared: Option<Fields>,
    /// Its arguments are decoded once in each process.
    prepared: Arc<OnceLock<std::result::Result<Prepared, FunctionFault>>>,
}

/// A call on its way to another process.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct SentCall {
    name: String,
    types: u64,
    arguments: Vec<u8>,
    place: String,
}

impl PartialEq for Call {
    fn eq(&self, other: &Call) -> bool {
        std::ptr::eq(self.definition, other.definition)
            && self.arguments == other.arguments
            && self.place == other.place
            && self.declared == other.declared
    }
}

impl Eq for Call {}

impl Hash for Call {
    fn hash<H: Hasher>(&self, state: &mut H) {
        std::ptr::from_ref(self.definition).hash(state);
        self.arguments.hash(state);
    }
}

impl fmt::Debug for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Call({})", self.name())
    }
}

impl SentCall {
    /// The call in this process.
    ///
    /// # Errors
    /// `Function` if this program does not have the function, or has it with other types.
    pub(crate) fn received(self) -> Result<Call> {
        let SentCall { name, types, arguments, place } = self;
        match Definition::find(&name, types) {
            Ok(definition) => Ok(Call {
                definition,
                arguments: arguments.into(),
                place: place.into(),
                declared: None,
                prepared: Arc::default(),
            }),
            Err(fault) => Err(Error::Function { function: name, place, fault }),
        }
    }
}

impl Call {
    /// The name of the function in this program.
    pub(crate) fn name(&self) -> String {
        self.definition.known_as()
    }

    /// The call for another process.
    pub(crate) fn sent(&self) -> SentCall {
        SentCall {
            name: self.name(),
            types: self.definition.types(),
            arguments: self.arguments.to_vec(),
            place: (*self.place).to_owned(),
        }
    }

    /// Whether a chunk that it is called with has the levels of an index.
    pub(crate) fn takes_index(&self, chunk: usize) -> bool {
        self.definition.indexed.get(chunk).copied().unwrap_or(false)
    }

    /// The type of its values, if its result type alone says so.
    pub(crate) fn returns(&self) -> Option<DataType> {
        (self.definition.returns)()
    }

    /// The columns of its result, if they were declared.
    pub(crate) fn declared(&self) -> Option<&Fields> {
        self.declared.as_ref()
    }

    /// A fault of this call as an error.
    pub(crate) fn error(&self, fault: FunctionFault) -> Error {
        Error::Function { function: self.name(), place: (*self.place).to_owned(), fault }
    }

    /// The rows that it gives for chunks.
    ///
    /// # Errors
    /// The fault of the function.
    pub(crate) fn on_tables(&self, tables: Vec<Table>) -> Result<Table> {
        match self.prepared()? {
            Prepared::Tables(function) => {
                let table = self.caught(|| beside_others(|| function(tables)))?;
                let levels = table.index_names().to_vec();
                Ok(Table::of_batch(without_nan(table.batch())?, levels))
            }
            Prepared::Columns(_) => Err(self.of_other_kind("of values")),
        }
    }

    /// The values that it gives for columns.
    ///
    /// # Errors
    /// The fault of the function.
    pub(crate) fn on_columns(&self, columns: &Columns<'_>) -> Result<ArrayRef> {
        match self.prepared()? {
            Prepared::Columns(function) => Ok(array_without_nan(&self.caught(|| function(columns))?)),
            Prepared::Tables(_) => Err(self.of_other_kind("of chunks")),
        }
    }

    /// The values that it gives for one column: as many as that has, made of one or of as many.
    ///
    /// # Errors
    /// The fault of the function.
    pub(crate) fn on_column(&self, column: &ArrayRef) -> Result<ArrayRef> {
        self.on_columns(&Columns::new(&[], std::slice::from_ref(column), column.len()))
    }

    /// As [`Call::on_columns`], for one value of this type for each row.
    ///
    /// # Errors
    /// The fault of the function.
    pub(crate) fn on_columns_typed(&self, columns: &Columns<'_>, to: &DataType) -> Result<ArrayRef> {
        let made = self.on_columns(columns)?;
        if made.len() != columns.rows() {
            let text = format!("it gave {} values for {} rows", made.len(), columns.rows());
            return Err(self.error(FunctionFault::Types(text)));
        }
        self.typed(made, to, "its result")
    }

    /// An array of its result with a type that was declared. Texts may have any form, and what is missing
    /// everywhere may have any type.
    ///
    /// # Errors
    /// `Function` for an array of another type.
    pub(crate) fn typed(&self, array: ArrayRef, to: &DataType, what: &str) -> Result<ArrayRef> {
        let from = array.data_type();
        if from == to {
            return Ok(array);
        }
        if *from == DataType::Null || (is_text(from) && is_text(to)) {
            return Ok(cast(&array, to)?);
        }
        Err(self.error(FunctionFault::Types(format!("{what} is {from}, expected is {to}"))))
    }

    /// A number that tells its arguments from others.
    pub(super) fn arguments_hash(&self) -> u64 {
        XxHash3_64::oneshot(&self.arguments)
    }

    fn prepared(&self) -> Result<&Prepared> {
        let prepared = self.prepared.get_or_init(|| (self.definition.prepare)(&self.arguments));
        prepared.as_ref().map_err(|fault| self.error(fault.clone()))
    }

    fn of_other_kind(&self, kind: &str) -> Error {
        Error::Internal(format!("{} is a function {kind}", self.name()))
    }

    fn caught<T>(&self, run: impl FnOnce() -> std::result::Result<T, FunctionFault>) -> Result<T> {
        let made = catch_unwind(AssertUnwindSafe(run));
        let made = made.unwrap_or_else(|panic| Err(FunctionFault::Panicked(panic_text(&*panic).to_owned())));
        made.map_err(|fault| self.error(fault))
    }
}

/// Runs a function of the program that may take long or compute frames itself. On a thread of several that
/// run tasks, another one takes over the tasks that wait.
fn beside_others<T>(run: impl FnOnce() -> T) -> T {
    use tokio::runtime::{Handle, RuntimeFlavor};
    match Handle::try_current() {
        Ok(handle) if handle.runtime_flavor() == RuntimeFlavor::MultiThread => {
            tokio::task::block_in_place(run)
        }
        _ => run(),
    }
}

/// Message of a panic.
fn panic_text(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("no text")
}
