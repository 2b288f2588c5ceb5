//! Functions of single values, with the results of pandas 3.1.

use crate::executors::{each_executor, three_parts};
use arrow::datatypes::DataType;
use tharsis_dataframe::{DataFrame, Native, Series, Value};

#[track_caller]
fn assert_values<T: Native + PartialEq + std::fmt::Debug>(series: &Series, expected: &[Option<T>]) {
    let frame = series.rename("v").to_frame();
    for found in each_executor(|executor| frame.collect_on(executor)?.column::<T>("v")) {
        assert_eq!(found, expected);
    }
}

#[test]
fn values_are_mapped_and_replaced() {
    let t = Series::from_values("t", vec![Some("a"), Some("b"), None, Some("c")]);
    assert_values(&t.map([("a", 1), ("b", 2)]), &[Some(1), Some(2), None, None]);
    let texts = |found: [Option<&str>; 4]| found.map(|text| text.map(str::to_owned));
    assert_values(&t.replace([("a", "b"), ("b", "a")]), &texts([Some("b"), Some("a"), None, Some("c")]));
    let filled = t.replace([(Value::missing(), Value::from("none"))]);
    assert_values(&filled, &texts([Some("a"), Some("b"), Some("none"), Some("c")]));
    let gone = t.replace([("a", None::<&str>)]);
    assert_values(&gone, &texts([None, Some("b"), None, Some("c")]));
    assert_values(
        &three_parts().col("k").replace([(2, -1)]).map([(-1, 0.5)]).rename("x"),
        &[None, None, Some(0.5), None, None, Some(0.5), None, None, Some(0.5), None],
    );
}

#[test]
fn values_stay_in_bounds() {
    let n = Series::from_values("n", vec![Some(-2), Some(0), None, Some(5)]);
    assert_values(&n.clip(-1, 3), &[Some(-1), Some(0), None, Some(3)]);
    assert_values(&n.clip(Value::missing(), 3), &[Some(-2), Some(0), None, Some(3)]);
    assert_values(&n.clip(0, None::<i64>), &[Some(0), Some(0), None, Some(5)]);
    assert_values(&n.clip(-1.5, None::<f64>), &[Some(-1.5), Some(0.0), None, Some(5.0)]);
    assert_values(&n.sign(), &[Some(-1), Some(0), None, Some(1)]);
    assert_eq!(n.sign().dtype().unwrap(), DataType::Int64);
}

#[test]
fn decimals_stay_in_bounds_and_exact_where_they_have_them() {
    let dtype = DataType::Decimal128(6, 2);
    let prices = Series::from_values("p", vec![Some(1.25), Some(99.5), None]).astype(dtype.clone());
    let shown = |series: &Series| series.astype(DataType::Float64);
    for (low, high) in [(Value::from(2), Value::from(50)), (Value::from(2.0), Value::from(50.0))] {
        let clipped = prices.clip(low, high);
        assert_eq!(clipped.dtype().unwrap(), dtype);
        assert_values(&shown(&clipped), &[Some(2.0), Some(50.0), None]);
    }
    let quarter = prices.clip(Value::missing(), 50.25);
    assert_eq!(quarter.dtype().unwrap(), dtype);
    assert_values(&shown(&quarter), &[Some(1.25), Some(50.25), None]);
    // These bounds are no decimals of two digits, or too large for six.
    let finer = prices.clip(1.375, Value::missing());
    assert_eq!(finer.dtype().unwrap(), DataType::Float64);
    assert_values(&finer, &[Some(1.375), Some(99.5), None]);
    assert_values(&prices.clip(1_000_000, Value::missing()), &[Some(1_000_000.0), Some(1_000_000.0), None]);
    let numbers = Series::from_values("n", vec![1]).clip("a", Value::missing());
    assert_eq!(numbers.dtype().unwrap_err().class(), "TypeError");
}

#[test]
fn functions_of_floats_are_missing_where_they_are_not_a_number() {
    let x = Series::from_values("x", vec![Some(4.0), Some(-1.0), None, Some(0.0)]);
    assert_values(&x.sqrt(), &[Some(2.0), None, None, Some(0.0)]);
    assert_values(&x.log(), &[Some(4.0_f64.ln()), None, None, Some(f64::NEG_INFINITY)]);
    assert_values(&x.log2(), &[Some(2.0), None, None, Some(f64::NEG_INFINITY)]);
    assert_values(&x.exp(), &[Some(4.0_f64.exp()), Some((-1.0_f64).exp()), None, Some(1.0)]);
    assert_values(&x.arcsin(), &[None, Some((-1.0_f64).asin()), None, Some(0.0)]);
    assert_values(&x.reciprocal(), &[Some(0.25), Some(-1.0), None, Some(f64::INFINITY)]);
    assert_values(&x.square(), &[Some(16.0), Some(1.0), None, Some(0.0)]);
    let near = Series::from_values("x", vec![1e-12, 0.5, -1.0, f64::INFINITY, 700.0]);
    let close = |found: &Series, expected: [f64; 5]| {
        let found = found.values::<f64>().unwrap();
        for (found, expected) in found.into_iter().zip(expected) {
            let found = found.unwrap();
            let same = found == expected || (found - expected).abs() <= expected.abs() * 1e-14;
            assert!(same, "{found} is not {expected}");
        }
    };
    close(&near.log1p(), [1e-12, 0.5, -1.0, f64::INFINITY, 700.0].map(f64::ln_1p));
    close(&near.expm1(), [1e-12, 0.5, -1.0, f64::INFINITY, 700.0].map(f64::exp_m1));
    let whole = Series::from_values("n", vec![9, 16]);
    assert_values(&whole.sqrt(), &[Some(3.0), Some(4.0)]);
    assert_eq!(whole.floor().dtype().unwrap(), DataType::Int64);
    assert_eq!(Series::from_values("t", vec!["a"]).sqrt().dtype().unwrap_err().class(), "TypeError");
}

#[test]
fn numbers_are_rounded_as_numpy_does() {
    let x = Series::from_values("x", vec![Some(0.5), Some(1.5), Some(2.5), Some(-2.5), Some(2.675), None]);
    assert_values(&x.round(0), &[Some(0.0), Some(2.0), Some(2.0), Some(-2.0), Some(3.0), None]);
    assert_values(&x.floor(), &[Some(0.0), Some(1.0), Some(2.0), Some(-3.0), Some(2.0), None]);
    assert_values(&x.ceil(), &[Some(1.0), Some(2.0), Some(3.0), Some(-2.0), Some(3.0), None]);
    assert_values(&x.trunc(), &[Some(0.0), Some(1.0), Some(2.0), Some(-2.0), Some(2.0), None]);
    let y = Series::from_values("y", vec![0.125, 0.375, 2.675, 1e300, -1.005]);
    assert_values(&y.round(2), &[0.12, 0.38, 2.68, 1e300, -1.0].map(Some));
    let n = Series::from_values("n", vec![15, 25, 149]);
    assert_values(&n.round(1), &[Some(15), Some(25), Some(149)]);
    assert_values(&n.round(-1), &[Some(20), Some(20), Some(150)]);
}

/// Scores from texts, in bounds, on a scale.
#[test]
fn a_program_changes_values_step_by_step() {
    let frame = DataFrame::from_columns([
        ("grade", vec![Some("good"), Some("bad"), None, Some("fair")].into()),
        ("weight", vec![4.0, 9.0, -1.0, 16.0].into()),
    ]);
    let score = frame.col("grade").map([("bad", 1), ("fair", 2), ("good", 3)]).fillna(0);
    let frame = frame.assign("score", &score);
    let weighted = &frame.col("score") * &frame.col("weight").sqrt();
    let frame = frame.assign("weighted", weighted.clip(None::<f64>, 7.0));
    assert_values(&frame.col("weighted"), &[Some(6.0), Some(3.0), None, Some(7.0)]);
    let kept = frame.filter(&frame.col("weighted").notna());
    assert_eq!(kept.col("weighted").mean().unwrap().as_f64(), Some(16.0 / 3.0));
}

#[test]
fn powers_with_one_and_zero_need_no_other_side() {
    let x = Series::from_values("x", vec![Some(1.0), Some(2.0), None]);
    assert_values(&x.pow(None::<f64>), &[Some(1.0), None, None]);
    assert_values(&x.pow(0), &[Some(1.0); 3]);
    let n = Series::from_values("n", vec![Some(1), Some(3), None]);
    assert_values(&n.pow(Series::from_values("n", vec![None, Some(2), Some(0)])), &[1, 9, 1].map(Some));
    assert_eq!(n.pow(2).dtype().unwrap(), DataType::Int64);
}

#[test]
fn integers_over_the_number_zero_are_infinite() {
    let n = Series::from_values("n", vec![Some(3), Some(-3), Some(0), None]);
    let by_zero = n.floordiv(0);
    assert_values(&by_zero, &[Some(f64::INFINITY), Some(f64::NEG_INFINITY), None, None]);
    let zeros = Series::from_values("z", vec![2, 2, 2, 2]);
    assert_values(&n.floordiv(&(&zeros - &zeros)), &[None::<i64>; 4]);
    assert_values(&n.floordiv(2), &[Some(1), Some(-2), Some(0), None]);
}

#[test]
fn numbers_are_never_texts_among_values() {
    let n = Series::from_values("n", vec![Some(1), None]);
    let values = || [Value::missing(), Value::from("1"), Value::from("a")];
    assert_values(&n.isin(values()), &[Some(false), Some(true)]);
    assert_values(&n.isin([Value::from("a"), Value::from(1)]), &[Some(true), Some(false)]);
    let t = Series::from_values("t", vec![Some("1"), None, Some("a")]);
    assert_values(&t.isin([1, 2]), &[Some(false); 3]);
    assert_values(&t.isin(values()), &[Some(true); 3]);
}
