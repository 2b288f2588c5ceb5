//! Functions of chunks, pairs of chunks, rows, columns and values.

use crate::place::in_parts;
use std::collections::HashMap;
use tharsis::frame::arrow::array::{AsArray, RecordBatch};
use tharsis::frame::arrow::compute::kernels::numeric::mul;
use tharsis::frame::arrow::datatypes::Float64Type;
use tharsis::frame::{Aggregate, Column, DataFrame, Error, Row, Sort, Table, function};

pub const TESTS: [(&str, fn()); 7] = [
    ("chunks_are_mapped_between_other_steps", chunks_are_mapped_between_other_steps),
    ("chunks_come_in_the_order_of_a_sort", chunks_come_in_the_order_of_a_sort),
    ("each_chunk_meets_each_of_another_frame", each_chunk_meets_each_of_another_frame),
    ("rows_values_and_columns_are_computed", rows_values_and_columns_are_computed),
    ("an_index_goes_in_and_comes_out", an_index_goes_in_and_comes_out),
    ("frames_without_rows_stay_so", frames_without_rows_stay_so),
    ("steps_of_frames_run_within_a_function", steps_of_frames_run_within_a_function),
];

const PARTS: i64 = 5;
const PART_ROWS: i64 = 3_000;

/// `n` counts, `k` is missing for multiples of 7, `word` has some texts.
fn numbers() -> DataFrame {
    in_parts((0..PARTS).map(|part| {
        let n: Vec<i64> = (part * PART_ROWS..(part + 1) * PART_ROWS).collect();
        let k: Vec<Option<f64>> = n.iter().map(|n| (n % 7 != 0).then_some(*n as f64 / 2.0)).collect();
        let word: Vec<Option<&str>> =
            n.iter().map(|n| [Some("oak"), None, Some("elm")][(n % 3) as usize]).collect();
        DataFrame::from_columns([("n", n.into()), ("k", k.into()), ("word", word.into())])
    }))
}

/// Rows with a present `k` above a limit, doubled.
#[function]
fn doubled_above(rows: Table, limit: f64, names: &HashMap<String, i64>) -> Result<Table, Error> {
    let (n, k, word) = (rows.column::<i64>("n")?, rows.column::<f64>("k")?, rows.column::<String>("word")?);
    let kept: Vec<usize> = (0..rows.len()).filter(|&row| k[row].is_some_and(|k| k > limit)).collect();
    let size: Vec<Option<i64>> =
        kept.iter().map(|&row| word[row].as_ref().and_then(|word| names.get(word)).copied()).collect();
    Table::from_columns([
        ("n", kept.iter().map(|&row| n[row]).collect::<Vec<_>>().into()),
        ("twice", kept.iter().map(|&row| k[row].map(|k| 2.0 * k)).collect::<Vec<_>>().into()),
        ("size", size.into()),
    ])
}

fn chunks_are_mapped_between_other_steps() {
    let names = HashMap::from([("oak".to_owned(), 3), ("elm".to_owned(), 4)]);
    let frame = numbers();
    let small = frame.filter(&frame.col("n").lt(12_000));
    let mapped = small.map_chunk(doubled_above::with(100.0, &names));
    assert_eq!(mapped.columns().unwrap(), ["n", "twice", "size"]);
    let by_size = mapped.groupby(["size"]).agg([("n", Aggregate::Count), ("twice", Aggregate::Sum)]);
    let found = by_size.collect().unwrap();

    let mut expected = HashMap::from([(3_i64, (0_i64, 0.0)), (4, (0, 0.0))]);
    for n in (0..12_000_i64).filter(|n| n % 7 != 0 && *n as f64 / 2.0 > 100.0 && n % 3 != 1) {
        let entry = expected.get_mut(&if n % 3 == 0 { 3 } else { 4 }).unwrap();
        *entry = (entry.0 + 1, entry.1 + n as f64);
    }
    assert_eq!(found.column::<i64>("n").unwrap(), [Some(expected[&3].0), Some(expected[&4].0)]);
    assert_eq!(found.column::<f64>("twice").unwrap(), [Some(expected[&3].1), Some(expected[&4].1)]);
    // The rows come in the order of the frame.
    let order = mapped.col("n").values::<i64>().unwrap();
    assert!(order.is_sorted() && order.len() as i64 == expected_rows());
}

fn expected_rows() -> i64 {
    (0..12_000_i64).filter(|n| n % 7 != 0 && *n as f64 / 2.0 > 100.0).count() as i64
}

/// The difference of each `n` to the one before in the chunk.
#[function]
fn steps_down(rows: RecordBatch) -> Result<Table, Error> {
    let n: Vec<Option<i64>> = Table::from(rows).column("n")?;
    let steps: Vec<i64> = n.windows(2).map(|pair| pair[0].unwrap() - pair[1].unwrap()).collect();
    Table::from_columns([("step", steps.into())])
}

fn chunks_come_in_the_order_of_a_sort() {
    let sorted = numbers().sort_values(["n"], Sort::descending());
    let steps = sorted.map_chunk(steps_down::with()).col("step").values::<i64>().unwrap();
    assert!(!steps.is_empty() && steps.iter().all(|step| *step == Some(1)), "{} steps", steps.len());
}

/// Pairs of rows whose numbers add up to a multiple of `of`.
#[function]
fn pairs_to(left: Table, right: RecordBatch, of: i64) -> Result<Table, Error> {
    let (left, right) = (left.column::<i64>("n")?, Table::from(right).column::<i64>("m")?);
    let mut found: (Vec<i64>, Vec<i64>) = Default::default();
    for n in left.iter().flatten() {
        for m in right.iter().flatten().filter(|m| (n + **m) % of == 0) {
            found.0.push(*n);
            found.1.push(*m);
        }
    }
    Table::from_columns([("n", found.0.into()), ("m", found.1.into())])
}

fn each_chunk_meets_each_of_another_frame() {
    let frame = numbers();
    let left = frame.filter(&frame.col("n").lt(400)).select(["n"]);
    let part = |from: i64| DataFrame::from_columns([("m", (from..from + 50).collect::<Vec<_>>().into())]);
    let right = in_parts([part(0), part(50), part(100)]);
    let pairs = left.cartesian_chunk(&right, pairs_to::with(40));
    let sums = pairs.assign("sum", &pairs.col("n") + &pairs.col("m"));
    let expected: Vec<(i64, i64)> = (0..400_i64)
        .flat_map(|n| (0..150_i64).map(move |m| (n, m)))
        .filter(|(n, m)| (n + m) % 40 == 0)
        .collect();
    assert_eq!(sums.len().unwrap(), expected.len());
    let total: i64 = expected.iter().map(|(n, m)| n + m).sum();
    assert_eq!(sums.col("sum").sum().unwrap().as_i64(), Some(total));
    // After an order of its own, that of the other frame: both are kept.
    let back = right.sort_values(["m"], Sort::descending());
    let one = left.sort_values(["n"], Sort::ascending()).cartesian_chunk(&back, pairs_to::with(400));
    assert_eq!(one.col("n").values::<i64>().unwrap()[..2], [Some(0), Some(251)]);
}

#[function]
fn price(row: Row<'_>, rate: f64) -> Result<Option<f64>, Error> {
    let (n, k) = (row.get::<i64>("n")?, row.get::<f64>("k")?);
    Ok(k.zip(n).map(|(k, n)| k * rate + n as f64))
}

#[function]
fn length(word: &str, extra: i64) -> i64 {
    word.len() as i64 + extra
}

#[function]
fn or_none(word: Option<String>) -> String {
    word.unwrap_or_else(|| "none".to_owned())
}

#[function]
fn times(column: Column, factor: f64) -> Result<Column, Error> {
    let numbers = column.array().as_primitive::<Float64Type>();
    let factor = tharsis::frame::arrow::array::Float64Array::new_scalar(factor);
    Ok(Column::from_arrow(mul(numbers, &factor)?))
}

#[function]
fn root(x: f64) -> f64 {
    x.sqrt()
}

fn rows_values_and_columns_are_computed() {
    let frame = numbers();
    let frame = frame
        .assign("price", frame.apply(price::with(0.5)))
        .assign("length", frame.col("word").map(length::with(10)))
        .assign("tree", frame.col("word").map(or_none::with()));
    let scaled = frame.select(["k", "price"]).transform(times::with(2.0));
    let frame = frame.assign("k", scaled.col("k")).assign("price", scaled.col("price"));
    // A function of the program in a condition, and one over what another one gave.
    let long = frame.filter(&frame.col("tree").map(length::with(0)).gt(3));
    let table = long.collect().unwrap();
    let expected: Vec<i64> = (0..PARTS * PART_ROWS).filter(|n| n % 3 == 1).collect();
    assert_eq!(table.len(), expected.len());
    let (k, price) = (table.column::<f64>("k").unwrap(), table.column::<f64>("price").unwrap());
    for (row, n) in expected.into_iter().enumerate() {
        let half = (n % 7 != 0).then_some(n as f64 / 2.0);
        assert_eq!(k[row], half.map(|k| 2.0 * k), "{n}");
        assert_eq!(price[row], half.map(|k| 2.0 * (k * 0.5 + n as f64)), "{n}");
    }
    assert!(table.column::<i64>("length").unwrap().iter().all(Option::is_none));
    // A root that is not a number is missing.
    let roots = DataFrame::from_columns([("x", vec![4.0, -1.0].into())]).col("x").map(root::with());
    assert_eq!(roots.values::<f64>().unwrap(), [Some(2.0), None]);
}

/// The rows in which `n` is even, with their index.
#[function]
fn even(rows: Table) -> Result<Table, Error> {
    let frame = rows.to_frame();
    frame.filter(&(&frame.col("n") % 2).eq(0)).collect()
}

fn an_index_goes_in_and_comes_out() {
    let frame = numbers();
    let indexed = frame.assign("label", &frame.col("n") * 10).set_index(["label"]);
    let even = indexed.map_chunk(even::with());
    let table = even.collect().unwrap();
    assert_eq!(table.index_names(), [Some("label".to_owned())]);
    assert_eq!(even.index().max().unwrap().as_i64(), Some(10 * (PARTS * PART_ROWS - 2)));
    assert_eq!(even.loc(20).col("n").values::<i64>().unwrap(), [Some(2)]);
    let by = indexed.map_chunk(halves::with());
    assert_eq!(by.index().name(), Some("half"));
    assert_eq!(by.loc(7).len().unwrap(), 2);
}

/// An index of another column.
#[function]
fn halves(rows: RecordBatch) -> Result<Table, Error> {
    let n = Table::from(rows).column::<i64>("n")?;
    let half: Vec<Option<i64>> = n.iter().map(|n| n.map(|n| n / 2)).collect();
    Table::from_columns([("n", n.into()), ("half", half.into())])?.set_index(["half"])
}

fn frames_without_rows_stay_so() {
    let frame = numbers();
    let none = frame.filter(&frame.col("n").lt(0));
    let names = HashMap::new();
    let mapped = none.map_chunk(doubled_above::with(1.0, &names));
    assert_eq!((mapped.len().unwrap(), mapped.columns().unwrap().len()), (0, 3));
    assert!(none.apply(price::with(1.0)).values::<f64>().unwrap().is_empty());
    let pairs = none.select(["n"]).cartesian_chunk(&frame.rename([("n", "m")]), pairs_to::with(3));
    assert_eq!(pairs.collect().unwrap().columns(), ["n", "m"]);
    let empty = DataFrame::from_columns([("n", Vec::<i64>::new().into()), ("k", Vec::<f64>::new().into())]);
    assert_eq!(empty.col("k").map(root::with()).sum().unwrap().as_f64(), Some(0.0));
}

/// The largest `k` by word, of a chunk.
#[function]
fn largest(rows: DataFrame) -> DataFrame {
    rows.groupby(["word"]).as_index(false).agg([("k", Aggregate::Max)])
}

fn steps_of_frames_run_within_a_function() {
    let largest = numbers().map_chunk(largest::with()).groupby(["word"]).max();
    let table = largest.collect().unwrap();
    let last = |rest: i64| (0..PARTS * PART_ROWS).rev().find(|n| n % 7 != 0 && n % 3 == rest);
    let expected = [last(2), last(0)].map(|n| n.map(|n| n as f64 / 2.0));
    assert_eq!(table.column::<f64>("k").unwrap(), expected);
}
