//! Columns as tensors and tensors as columns, in programs of several steps: on threads, embedded, on worker
//! processes, on two nodes.

use crate::place::in_parts;
use tharsis::frame::{Aggregate, DataFrame, Merge, Series, ToFrame, ToTensor};
use tharsis::tensor::{self, DType, Tensor};

pub const TESTS: [(&str, fn()); 6] = [
    ("columns_are_scaled_as_tensors_and_grouped_again", columns_are_scaled_as_tensors_and_grouped_again),
    ("a_line_is_fitted_through_the_columns_of_a_join", a_line_is_fitted_through_the_columns_of_a_join),
    ("a_computed_tensor_is_a_frame_and_a_tensor_again", a_computed_tensor_is_a_frame_and_a_tensor_again),
    ("missing_values_need_a_sign_or_a_value", missing_values_need_a_sign_or_a_value),
    ("types_that_the_other_side_lacks_are_refused", types_that_the_other_side_lacks_are_refused),
    ("frames_without_rows_are_tensors_without_elements", frames_without_rows_are_tensors_without_elements),
];

const PARTS: i64 = 4;
const PART_ROWS: i64 = 30_000;
const ROWS: i64 = PARTS * PART_ROWS;

/// `x` is missing for multiples of 9.
fn x(n: i64) -> Option<f64> {
    (n % 9 != 0).then(|| (n % 1000) as f64 / 8.0)
}

fn points() -> DataFrame {
    in_parts((0..PARTS).map(|part| {
        let n: Vec<i64> = (part * PART_ROWS..(part + 1) * PART_ROWS).collect();
        let x: Vec<Option<f64>> = n.iter().map(|n| x(*n)).collect();
        let group: Vec<i64> = n.iter().map(|n| n % 3).collect();
        DataFrame::from_columns([("n", n.into()), ("x", x.into()), ("group", group.into())])
    }))
}

#[track_caller]
fn close(found: f64, expected: f64) {
    assert!((found - expected).abs() <= 1e-9 * expected.abs().max(1.0), "{found}, expected is {expected}");
}

fn columns_are_scaled_as_tensors_and_grouped_again() {
    let points = points();
    let some = points.filter(&points.col("n").ge(10_000)).dropna();
    let x = some.col("x").to_tensor().unwrap();
    let expected: Vec<f64> = (10_000..ROWS).filter_map(self::x).collect();
    assert_eq!(x.shape().unwrap(), [expected.len()]);
    let mean = expected.iter().sum::<f64>() / expected.len() as f64;
    let variance = expected.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / expected.len() as f64;
    let scaled = (&x - x.mean(..)) / x.std(..);
    // Back beside the rows that it was made of, by position.
    let rows = some.reset_index(true);
    let scaled = rows.assign("scaled", scaled.to_series("scaled").unwrap());
    let means = scaled.groupby(["group"]).agg([("scaled", Aggregate::Mean), ("n", Aggregate::Count)]);
    let means = means.collect().unwrap();
    for group in 0..3 {
        let rows: Vec<f64> = (10_000..ROWS).filter(|n| n % 3 == group).filter_map(self::x).collect();
        let sum: f64 = rows.iter().map(|x| (x - mean) / variance.sqrt()).sum();
        let found = means.column::<f64>("scaled").unwrap()[group as usize];
        close(found.unwrap(), sum / rows.len() as f64);
        assert_eq!(means.column::<i64>("n").unwrap()[group as usize], Some(rows.len() as i64));
    }
}

fn a_line_is_fitted_through_the_columns_of_a_join() {
    let points = points();
    let offsets =
        DataFrame::from_columns([("group", vec![0, 1, 2].into()), ("offset", vec![10.0, 20.0, 30.0].into())]);
    let joined = points.merge(&offsets, Merge::on(["group"]));
    let known = joined.filter(&joined.col("x").notna());
    let known =
        known.assign("y", &known.col("x") * 3.0 + &known.col("offset") * 0.5 + 7.0).assign("one", 1.0);
    let sides = known.select(["x", "offset", "one", "y"]).to_tensor().unwrap();
    assert_eq!((sides.shape().unwrap()[1], sides.dtype().unwrap()), (4, DType::F64));
    let matrix = known.select(["x", "offset", "one"]).to_tensor().unwrap();
    let y = known.col("y").to_tensor().unwrap();
    // The normal equations, solved by the factors of their matrix.
    let (q, r) = matrix.t().matmul(&matrix).qr();
    let right = q.t().matmul(&matrix.t().matmul(&y)).to_vec::<f64>().unwrap();
    let r = r.fetch::<f64>().unwrap();
    let mut line = [0.0; 3];
    for row in (0..3).rev() {
        let rest: f64 = (row + 1..3).map(|column| r[[row, column]] * line[column]).sum();
        line[row] = (right[row] - rest) / r[[row, row]];
    }
    for (found, expected) in line.into_iter().zip([3.0, 0.5, 7.0]) {
        assert!((found - expected).abs() < 1e-6, "{line:?}");
    }
    let fitted = matrix.matmul(&Tensor::from_elements(&[3], &line)).to_series("fitted").unwrap();
    let checked = known.reset_index(true).assign("fitted", fitted);
    let off = (&checked.col("fitted") - &checked.col("y")).abs().max().unwrap().as_f64().unwrap();
    assert!(off < 1e-6, "{off}");
}

fn a_computed_tensor_is_a_frame_and_a_tensor_again() {
    let columns = tensor::arange(300_000).reshape(&[100_000, 3]);
    let frame = columns.to_frame(["a", "b", "c"]).unwrap();
    assert_eq!(frame.shape().unwrap(), (100_000, 3));
    let kept = frame.filter(&(&frame.col("a") % 2).eq(0));
    assert_eq!(kept.len().unwrap(), 50_000);
    let sum: i64 = (0..100_000_i64).filter(|row| (3 * row) % 2 == 0).map(|row| 3 * row + 2).sum();
    assert_eq!(kept.col("c").sum().unwrap().as_i64(), Some(sum));
    let again = frame.to_tensor().unwrap();
    assert_eq!((&again - &columns).abs().max(..).item().unwrap().to_f64(), 0.0);
    // A tensor with one axis in uneven chunks, floats that are none, and truth values.
    let x = tensor::arange(1000).rechunk(tensor::Chunks::Lengths(vec![vec![1, 700, 299]]));
    let roots = (&x - 10).sqrt().to_series("root").unwrap();
    assert_eq!((roots.len().unwrap(), roots.count().unwrap().as_i64()), (1000, Some(990)));
    let small = x.less(7).to_series("small").unwrap();
    assert_eq!(small.filter(&small).len().unwrap(), 7);
    assert_eq!(small.to_tensor().unwrap().dtype().unwrap(), DType::Bool);
    assert_eq!(small.to_tensor().unwrap().count_nonzero(..).item().unwrap().to_f64(), 7.0);
}

fn missing_values_need_a_sign_or_a_value() {
    let points = points();
    let x = points.col("x").to_tensor().unwrap();
    let there = (0..ROWS).filter_map(self::x);
    close(x.nansum(..).item().unwrap().to_f64(), there.sum());
    assert_eq!(x.isnan().count_nonzero(..).item().unwrap().to_f64(), (0..ROWS).step_by(9).count() as f64);
    let whole = Series::from_values("whole", vec![Some(1), None, Some(3)]);
    let error = whole.to_tensor().unwrap_err();
    assert_eq!(error.class(), "ValueError");
    assert!(error.to_string().contains("column \"whole\" of Int64 misses 1 values"), "{error}");
    assert_eq!(whole.to_tensor_filled(-1).unwrap().to_vec::<i64>().unwrap(), [1, -1, 3]);
    // Of a frame, with floats beside.
    let both =
        DataFrame::from_columns([("whole", vec![Some(1), None].into()), ("x", vec![None, Some(0.5)].into())]);
    assert_eq!(both.to_tensor().unwrap_err().class(), "ValueError");
    let filled = both.to_tensor_filled(9).unwrap();
    assert_eq!(filled.to_vec::<f64>().unwrap(), [1.0, 9.0, 9.0, 0.5]);
}

fn types_that_the_other_side_lacks_are_refused() {
    let words = DataFrame::from_columns([("n", vec![1, 2].into()), ("word", vec!["a", "b"].into())]);
    let error = words.to_tensor().unwrap_err();
    assert_eq!(error.class(), "TypeError");
    assert!(error.to_string().contains("column \"word\" is Utf8"), "{error}");
    assert_eq!(words.col("none").to_tensor().unwrap_err().class(), "KeyError");
    let complex = tensor::ones(&[2]).astype(DType::C128);
    assert_eq!(complex.to_series("c").unwrap_err().class(), "TypeError");
    let cube = tensor::ones(&[2, 2, 2]);
    assert_eq!(cube.to_frame(["a", "b"]).unwrap_err().class(), "ValueError");
    assert_eq!(tensor::ones(&[2, 2]).to_frame(["a"]).unwrap_err().class(), "ValueError");
    assert_eq!(tensor::ones(&[2, 2]).to_series("a").unwrap_err().class(), "ValueError");
    let broken = (tensor::ones(&[2]) + tensor::ones(&[3])).to_series("sum").unwrap_err();
    assert_eq!(broken.class(), "ValueError");
}

fn frames_without_rows_are_tensors_without_elements() {
    let points = points();
    let none = points.filter(&points.col("n").lt(0));
    assert_eq!(none.col("x").to_tensor().unwrap().shape().unwrap(), [0]);
    let matrix = none.select(["n", "x"]).to_tensor().unwrap();
    assert_eq!((matrix.shape().unwrap(), matrix.dtype().unwrap()), (&[0, 2][..], DType::F64));
    let back = tensor::ones(&[0, 2]).to_frame(["a", "b"]).unwrap();
    assert_eq!((back.len().unwrap(), back.columns().unwrap().len()), (0, 2));
    assert_eq!(back.col("a").sum().unwrap().as_f64(), Some(0.0));
}
