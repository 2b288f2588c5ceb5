//! Functions that fail: typed errors with the name of the function and the line that called it, and nothing
//! is lost.

use crate::place::in_parts;
use tharsis::frame::arrow::datatypes::DataType;
use tharsis::frame::{Column, DataFrame, Error, FunctionFault, Row, Table, function};

pub const TESTS: [(&str, fn()); 5] = [
    ("an_error_of_a_function_names_it_and_the_line", an_error_of_a_function_names_it_and_the_line),
    ("a_panic_ends_the_computation_and_nothing_else", a_panic_ends_the_computation_and_nothing_else),
    ("other_columns_than_declared_are_refused", other_columns_than_declared_are_refused),
    ("values_of_other_types_are_refused", values_of_other_types_are_refused),
    ("what_fails_without_rows_must_be_declared", what_fails_without_rows_must_be_declared),
];

fn numbers() -> DataFrame {
    let part = |from: i64| DataFrame::from_columns([("n", (from..from + 1000).collect::<Vec<_>>().into())]);
    in_parts([part(0), part(1000), part(2000)])
}

/// The parts of an error of a function.
#[track_caller]
fn fault_of<T: std::fmt::Debug>(result: Result<T, Error>) -> (String, String, FunctionFault) {
    let error = result.unwrap_err();
    match error.root() {
        Error::Function { function, place, fault } => (function.clone(), place.clone(), fault.clone()),
        other => panic!("another error: {other:?}"),
    }
}

#[function]
fn refuses(row: Row<'_>, number: i64) -> Result<i64, Error> {
    let n = row.get::<i64>("n")?;
    if n == Some(number) { Err(Error::Value(format!("no luck with {number}"))) } else { Ok(n.unwrap_or(0)) }
}

fn an_error_of_a_function_names_it_and_the_line() {
    let frame = numbers();
    let line = line!() + 1;
    let values = frame.apply(refuses::with(2500));
    let (function, place, fault) = fault_of(values.sum());
    assert!(function.ends_with("faults::refuses"), "{function}");
    assert!(place.ends_with(&format!("faults.rs:{line}")), "{place}");
    assert_eq!(fault, FunctionFault::Failed("no luck with 2500".to_owned()));
    // A label that does not exist comes with those that do.
    let renamed = frame.rename([("n", "m")]).apply(refuses::with(1));
    let (_, _, fault) = fault_of(renamed.values::<i64>());
    assert!(matches!(&fault, FunctionFault::Failed(text) if text.contains("there are \"m\"")), "{fault:?}");
    // With another argument the same frame goes on.
    assert_eq!(frame.apply(refuses::with(-1)).sum().unwrap().as_i64(), Some(2999 * 1500));
}

#[function]
fn panics_at(rows: Table, number: i64) -> Result<Table, Error> {
    assert!(!rows.column::<i64>("n")?.contains(&Some(number)), "there is {number}");
    Ok(rows)
}

fn a_panic_ends_the_computation_and_nothing_else() {
    let frame = numbers().execute().unwrap();
    let kept = frame.map_chunk(panics_at::with(-1)).execute().unwrap();
    let mapped = kept.map_chunk(panics_at::with(1500));
    let (function, place, fault) = fault_of(mapped.len());
    assert!(function.ends_with("faults::panics_at") && place.contains("faults.rs:"), "{function} {place}");
    assert!(matches!(&fault, FunctionFault::Panicked(text) if text.contains("there is 1500")), "{fault:?}");
    assert_eq!(mapped.len().unwrap_err().class(), "RuntimeError");
    // The rows before it are there, and other computations go on.
    assert_eq!(kept.len().unwrap(), 3000);
    assert_eq!(kept.groupby(["n"]).apply(count::with()).len().unwrap(), 3000);
}

#[function]
fn count(rows: Table) -> i64 {
    rows.len() as i64
}

/// A column of another name or type where there are many rows.
#[function]
fn other_columns(rows: Table, name: String) -> Result<Table, Error> {
    if rows.is_empty() {
        Table::from_columns([("n", Vec::<i64>::new().into())])
    } else {
        Table::from_columns([(name.as_str(), vec![1.5].into())])
    }
}

fn other_columns_than_declared_are_refused() {
    let frame = numbers();
    let named = frame.map_chunk(other_columns::with("m".to_owned()));
    let (function, _, fault) = fault_of(named.collect());
    assert!(function.ends_with("faults::other_columns"), "{function}");
    assert!(matches!(&fault, FunctionFault::Types(text) if text.contains("[\"m\"]")), "{fault:?}");
    assert_eq!(named.collect().unwrap_err().class(), "TypeError");
    let typed = frame.groupby(["n"]).apply(other_columns::with("n".to_owned()));
    let (_, _, fault) = fault_of(typed.collect());
    assert_eq!(fault, FunctionFault::Types("its column \"n\" is Float64, expected is Int64".to_owned()));
    // Two columns of one label are seen before anything runs.
    let declared = count::with().returns([("a", DataType::Int64), ("a", DataType::Int64)]);
    assert!(matches!(fault_of(frame.map_chunk(declared).check()).2, FunctionFault::Types(_)));
}

#[function]
fn half(n: i64) -> f64 {
    n as f64 / 2.0
}

#[function]
fn too_few(column: Column) -> Column {
    match column.len() {
        0 => column,
        _ => Vec::<i64>::from([1, 2]).into(),
    }
}

fn values_of_other_types_are_refused() {
    let words = DataFrame::from_columns([("word", vec!["a", "b"].into())]);
    let (function, _, fault) = fault_of(words.col("word").map(half::with()).values::<f64>());
    assert!(function.ends_with("faults::half"), "{function}");
    assert_eq!(fault, FunctionFault::Types("a value of type Utf8 is read as i64".to_owned()));
    let (_, _, fault) = fault_of(numbers().transform(too_few::with()).collect());
    assert!(
        matches!(&fault, FunctionFault::Types(text) if text.contains("it gave 2 values for")),
        "{fault:?}"
    );
}

#[function]
fn wants_rows(rows: Table) -> Result<Table, String> {
    if rows.is_empty() {
        Err("no rows".to_owned())
    } else {
        Table::from_columns([("rows", vec![rows.len() as i64].into())]).map_err(|e| e.to_string())
    }
}

fn what_fails_without_rows_must_be_declared() {
    let frame = numbers();
    let (_, _, fault) = fault_of(frame.map_chunk(wants_rows::with()).check());
    assert!(matches!(&fault, FunctionFault::Failed(text) if text.contains("declare")), "{fault:?}");
    let declared = frame.map_chunk(wants_rows::with().returns([("rows", DataType::Int64)]));
    assert_eq!(declared.col("rows").sum().unwrap().as_i64(), Some(3000));
}
