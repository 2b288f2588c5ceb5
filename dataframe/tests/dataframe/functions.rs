//! Functions of the program in plans: found by name where a plan came as bytes, and told apart by their
//! types.

use crate::executors::{SentExecutor, each_executor, three_parts};
use arrow::array::AsArray;
use arrow::datatypes::{DataType, Int64Type};
use std::sync::atomic::{AtomicUsize, Ordering};
use tharsis_dataframe::generated::{
    Arguments, Columns, Definition, MadeValues, Prepared, Registered, chunk, encode, inventory, parameter,
    table,
};
use tharsis_dataframe::{
    Error, Function, FunctionFault, OverChunk, OverColumn, OverValue, Reduction, Sort, Table,
};

/// The definition that the attribute makes of a function of values.
const fn of_values(
    name: &'static str,
    signature: &'static str,
    prepare: fn(&[u8]) -> Result<Prepared, FunctionFault>,
) -> Definition {
    Definition {
        module: "demo",
        name,
        signature,
        file: "demo.rs",
        line: 1,
        column: 1,
        indexed: &[false],
        returns: || Some(DataType::Int64),
        prepare,
    }
}

fn times(arguments: &[u8]) -> Result<Prepared, FunctionFault> {
    let mut arguments = Arguments::new(arguments);
    let factor: i64 = arguments.next()?;
    arguments.finish()?;
    Ok(Prepared::columns(move |columns: &Columns<'_>| {
        let mut made = MadeValues::<i64>::with_rows(columns.rows());
        let values = columns.first();
        for at in 0..columns.rows() {
            match parameter::<i64>(&values, at)? {
                Some(value) => made.push(value * factor)?,
                None => made.push_missing(),
            }
        }
        Ok(made.finish())
    }))
}

static TIMES: Definition = of_values("times", "(i64, i64) -> i64", times);
inventory::submit! { Registered(&TIMES) }

/// As `TIMES`, in a program of another version.
static OTHER_TIMES: Definition = of_values("times", "(i64, i32) -> i64", times);

/// In another program only.
static GONE: Definition = of_values("gone", "(i64, i64) -> i64", times);

fn factor(definition: &'static Definition, factor: i64) -> Function<OverValue> {
    Function::new(definition, |bytes| encode(bytes, &factor))
}

static PREPARED: AtomicUsize = AtomicUsize::new(0);

fn sums(arguments: &[u8]) -> Result<Prepared, FunctionFault> {
    Arguments::new(arguments).finish()?;
    PREPARED.fetch_add(1, Ordering::Relaxed);
    Ok(Prepared::tables(|tables| {
        let rows: Table = chunk(&mut tables.into_iter())?;
        let n = rows.array("n").map_err(|error| FunctionFault::Failed(error.to_string()))?;
        let sum: i64 = n.as_primitive::<Int64Type>().iter().flatten().sum();
        table(Table::from_columns([("n", vec![sum].into())]))
    }))
}

static SUMS: Definition = of_values("sums", "(Table) -> Table", sums);
inventory::submit! { Registered(&SUMS) }

fn sum_of_chunks() -> Function<OverChunk> {
    Function::new(&SUMS, |_| Ok(()))
}

#[test]
fn a_function_is_found_by_name_where_the_plan_came_as_bytes() {
    let frame = three_parts();
    let scaled = frame.assign("n", frame.col("n").map(factor(&TIMES, 3)));
    let kept =
        scaled.filter(&scaled.col("n").map(factor(&TIMES, 2)).gt(6)).sort_values(["n"], Sort::descending());
    for table in each_executor(|executor| kept.collect_on(executor)) {
        let expected: Vec<Option<i64>> = (2..10).rev().map(|n| Some(3 * n)).collect();
        assert_eq!(table.column::<i64>("n").unwrap(), expected);
    }
}

#[test]
fn chunks_and_groups_are_the_same_on_every_executor() {
    let frame = three_parts();
    let reduction = Reduction::new(sum_of_chunks());
    let by_group = frame.groupby(["k"]).apply(sum_of_chunks());
    let reduced = frame.groupby(["k"]).reduce(&reduction);
    for grouped in [by_group, reduced] {
        for table in each_executor(|executor| grouped.collect_on(executor)) {
            assert_eq!(table.column::<i64>("n").unwrap(), [Some(18), Some(12), Some(15)]);
        }
    }
    // A chunk does not reach over the parts of a frame.
    for table in each_executor(|executor| frame.map_chunk(sum_of_chunks()).collect_on(executor)) {
        assert_eq!(table.column::<i64>("n").unwrap(), [Some(6), Some(4), Some(35)]);
    }
    for table in each_executor(|executor| frame.reduce(&reduction).collect_on(executor)) {
        assert_eq!(table.column::<i64>("n").unwrap(), [Some(45)]);
    }
}

#[test]
fn a_stage_names_the_function_and_what_it_is_called_with() {
    let text =
        three_parts().groupby(["k"]).reduce(&Reduction::new(sum_of_chunks())).explain().unwrap().to_string();
    assert!(text.contains("AppliedExec: demo::sums of each group of a chunk"), "{text}");
    assert!(text.contains("AppliedExec: demo::sums of each group\n"), "{text}");
}

#[test]
fn a_function_that_the_other_program_lacks_or_has_with_other_types_is_a_typed_error() {
    let frame = three_parts();
    for (definition, expected) in [
        (&GONE, FunctionFault::Unknown),
        (&OTHER_TIMES, FunctionFault::Version("(i64, i64) -> i64".to_owned())),
    ] {
        let line = line!() + 1;
        let mapped = frame.col("n").map(factor(definition, 3)).to_frame();
        // This process has it.
        assert_eq!(mapped.collect().unwrap().len(), 10);
        let error = mapped.collect_on(&SentExecutor { attempts: 1 }).unwrap_err();
        let Error::Function { function, place, fault } = error.root() else { panic!("{error:?}") };
        assert_eq!(function, &format!("demo::{}", definition.name));
        assert!(place.ends_with(&format!("functions.rs:{line}")), "{place}");
        assert_eq!(*fault, expected);
        assert_eq!(error.class(), "RuntimeError");
    }
}

#[test]
fn arguments_that_do_not_decode_are_a_typed_error() {
    let short: Function<OverValue> = Function::new(&TIMES, |_| Ok(()));
    let error = three_parts().col("n").map(short).sum().unwrap_err();
    assert!(
        matches!(error.root(), Error::Function { fault: FunctionFault::Arguments(text), .. } if text.contains("i64")),
        "{error:?}"
    );
    let refused: Function<OverValue> =
        Function::new(&TIMES, |_| Err(FunctionFault::Arguments("a socket cannot be encoded".to_owned())));
    let carried = three_parts().col("n").map(refused).to_frame().check().unwrap_err();
    assert!(carried.to_string().contains("demo::times: its arguments: a socket"), "{carried}");
}

/// The largest value less the smallest one, for all values at once.
fn spread(arguments: &[u8]) -> Result<Prepared, FunctionFault> {
    Arguments::new(arguments).finish()?;
    Ok(Prepared::columns(|columns: &Columns<'_>| {
        let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
        let values = columns.first();
        for at in 0..columns.rows() {
            if let Some(value) = parameter::<Option<f64>>(&values, at)?.flatten() {
                (low, high) = (low.min(value), high.max(value));
            }
        }
        let mut made = MadeValues::<f64>::with_rows(columns.rows());
        for _ in 0..columns.rows() {
            made.push(high - low)?;
        }
        Ok(made.finish())
    }))
}

static SPREAD: Definition =
    Definition { returns: || Some(DataType::Float64), ..of_values("spread", "(f64) -> f64", spread) };
inventory::submit! { Registered(&SPREAD) }

#[test]
fn a_function_gets_the_values_of_each_window() {
    let spread = || -> Function<OverColumn> { Function::new(&SPREAD, |_| Ok(())) };
    let frame = three_parts();
    let check = |frame: tharsis_dataframe::DataFrame, expected: &[f64]| {
        for table in each_executor(|executor| frame.collect_on(executor)) {
            let found: Vec<f64> =
                table.column::<f64>("n").unwrap().into_iter().map(|value| value.unwrap_or(-1.0)).collect();
            assert_eq!(found, expected);
        }
    };
    let moving = frame.rolling(3).apply(spread());
    check(moving, &[-1.0, -1.0, 2.0, 2.0, 2.0, 2.0, 2.0, 2.0, 2.0, 2.0]);
    let growing = frame.col("n").expanding().apply(spread()).to_frame();
    check(growing, &[0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0]);
    let grouped = frame.groupby(["k"]).rolling(2).min_periods(1).apply(spread());
    check(grouped, &[0.0, 3.0, 3.0, 3.0, 0.0, 3.0, 3.0, 0.0, 3.0, 3.0]);
    let chained = frame.col("n").apply(factor(&TIMES, 2)).to_frame();
    check(chained.astype([("n", DataType::Float64)]).head(2), &[0.0, 2.0]);
}
