//! Numbers of several types beside each other, long chains of operators, and floats that are none: as NumPy
//! and pandas have them.

use crate::executors::{SentExecutor, each_executor};
use arrow::array::{
    ArrayRef, Decimal128Array, Float32Array, Float64Array, Int8Array, Int64Array, UInt64Array,
};
use arrow::datatypes::DataType;
use std::sync::Arc;
use tharsis_dataframe::{
    Aggregate, Column, DataFrame, JoinKind, Merge, Operand, Series, Value, date_range, to_timedelta,
};

fn series(array: impl arrow::array::Array + 'static) -> Series {
    let array: ArrayRef = Arc::new(array);
    Series::from_values("v", Column::from_arrow(array))
}

/// The values on each executor, which must all be these.
#[track_caller]
fn assert_floats(series: &Series, expected: &[Option<f64>]) {
    let frame = series.rename("v").to_frame();
    for found in each_executor(|executor| frame.collect_on(executor)?.column::<f64>("v")) {
        assert_eq!(found, expected);
    }
}

#[track_caller]
fn assert_wholes(series: &Series, expected: &[Option<i64>]) {
    let frame = series.rename("v").to_frame();
    for found in each_executor(|executor| frame.collect_on(executor)?.column::<i64>("v")) {
        assert_eq!(found, expected);
    }
}

/// The length of the plan as a text.
fn planned(frame: &DataFrame) -> usize {
    frame.explain_on(&SentExecutor { attempts: 1 }).unwrap().to_string().len()
}

#[test]
fn a_chain_of_operators_is_planned_as_long_as_it_is() {
    let frame = DataFrame::from_columns([("x", vec![Some(1.0), Some(2.5), None].into())]);
    let chain = |operators: usize| {
        (0..operators).fold(frame.col("x"), |sum, at| match at % 4 {
            0 => sum + 1.0,
            1 => sum * 1.5,
            2 => sum - 0.25,
            _ => sum / 1.5,
        })
    };
    let (short, long) = (planned(&chain(50).to_frame()), planned(&chain(200).to_frame()));
    assert!(long < 5 * short, "{long} for {short}");
    let expected = |x: f64| {
        (0..200).fold(x, |sum, at| match at % 4 {
            0 => sum + 1.0,
            1 => sum * 1.5,
            2 => sum - 0.25,
            _ => sum / 1.5,
        })
    };
    assert_floats(&chain(200), &[Some(expected(1.0)), Some(expected(2.5)), None]);
}

#[test]
fn operators_that_need_an_operand_twice_are_planned_as_long_as_they_are() {
    let frame = DataFrame::from_columns([("x", vec![7.5, -7.5].into())]);
    let chain = |operators: usize| {
        (0..operators).fold(frame.col("x"), |sum, at| match at % 3 {
            0 => (sum + 100.0).floordiv(1.0),
            1 => (sum + 1000.0) % 64.0,
            _ => sum.clip(0.0, 50.0).pow(1.0),
        })
    };
    let (short, long) = (planned(&chain(30).to_frame()), planned(&chain(120).to_frame()));
    assert!(long < 5 * short, "{long} for {short}");
}

#[test]
fn a_series_added_to_itself_many_times_is_one_column_after_another() {
    let frame = DataFrame::from_columns([("x", vec![1, 3].into())]);
    let doubled = (0..30).fold(frame.col("x"), |sum, _| &sum + &sum);
    let expected = [Some(1 << 30), Some(3 << 30)];
    assert_wholes(&doubled, &expected);
    // They are of the rows that they were made of.
    let other = (0..20).fold(frame.col("x"), |sum, _| &sum + &sum);
    assert_wholes(&(&doubled - &other), &[Some((1 << 30) - (1 << 20)), Some((3 << 30) - (3 << 20))]);
    assert_wholes(&(&doubled + &frame.col("x")), &[Some((1 << 30) + 1), Some((3 << 30) + 3)]);
    assert_wholes(&frame.assign("y", &doubled).col("y"), &expected);
    assert_eq!(frame.filter(&doubled.gt(1_i64 << 31)).col("x").values::<i64>().unwrap(), [Some(3)]);
    let differences = (0..40).fold(frame.col("x"), |sum, _| sum.diff(1));
    assert_eq!(differences.values::<i64>().unwrap_err().class(), "ValueError");
}

#[test]
fn a_missing_value_of_a_long_chain_stays_missing_where_it_is_kept() {
    let frame = DataFrame::from_columns([
        ("x", vec![Some(1.0), None, Some(3.0)].into()),
        ("masked", vec![false, false, true].into()),
    ]);
    for operators in [1, 20, 60] {
        let x = (0..operators).fold(frame.col("x"), |sum, _| sum + 1.0);
        let first = Some(1.0 + operators as f64);
        let masked = frame.col("masked");
        assert_floats(&x.mask(&masked, -1.0), &[first, None, Some(-1.0)]);
        assert_floats(&x.keep_where(&!&masked, -1.0), &[first, None, Some(-1.0)]);
        let cases = [(masked.clone(), Operand::from(-1.0)), (x.gt(1e9), Operand::from(-2.0))];
        assert_floats(&x.case_when(cases), &[first, None, Some(-1.0)]);
        // The others and the condition may be of another frame, or long too.
        assert_floats(&x.mask(&masked, &(&x * 2.0)), &[first, None, Some(2.0 * (3.0 + operators as f64))]);
        let others = Series::from_values("o", vec![7.0, 8.0, 9.0]);
        assert_floats(&x.mask(&masked, &others), &[first, None, Some(9.0)]);
        let last = Series::from_values("l", vec![false, false, true]);
        assert_floats(&x.mask(&last, &others), &[first, None, Some(9.0)]);
        assert_floats(&x.mask(&last, &(&others + 1.0)), &[first, None, Some(10.0)]);
    }
}

#[test]
fn a_text_of_many_terms_is_planned_as_long_as_it_is_or_refused() {
    let columns = ["a", "b", "c"].map(|label| (label, vec![1.0, 2.0].into()));
    let frame = DataFrame::from_columns(columns);
    let text = |terms: usize| {
        let terms: Vec<String> =
            (0..terms).map(|at| format!("{} * 0.{at:02}1", ["a", "b", "c"][at % 3])).collect();
        format!("score = {}", terms.join(" + "))
    };
    let (short, long) = (planned(&frame.eval(&text(15))), planned(&frame.eval(&text(60))));
    assert!(long < 5 * short, "{long} for {short}");
    let sum: f64 = (0..60).fold(0.0, |sum, at| sum + format!("0.{at:02}1").parse::<f64>().unwrap());
    assert_floats(&frame.eval(&text(60)).col("score"), &[Some(sum), Some(2.0 * sum)]);
    let filter = |terms: usize| frame.query(&vec!["a > 0"; terms].join(" and "));
    assert_eq!(filter(200).len().unwrap(), 2);
    assert_eq!(frame.query(&vec!["a < 0"; 200].join(" or ")).len().unwrap(), 0);
    for refused in [filter(50_000), frame.query(&format!("a{} > 0", ".b".repeat(50_000)))] {
        assert_eq!(refused.check().unwrap_err().class(), "SyntaxError");
    }
}

#[test]
fn many_steps_are_planned_or_refused() {
    let frame = DataFrame::from_columns([("x", vec![1.0].into())]);
    let steps =
        |count: usize| (0..count).fold(frame.clone(), |frame, _| frame.assign("x", frame.col("x") + 1.0));
    assert_floats(&steps(100).col("x"), &[Some(101.0)]);
    assert_eq!(steps(2_000).check().unwrap_err().class(), "ValueError");
    let wider = (0..2_000).fold(frame.clone(), |frame, _| frame.query("x > 0"));
    assert_eq!(wider.check().unwrap_err().class(), "ValueError");
}

#[test]
fn numbers_meet_in_the_type_of_numpy() {
    let frame = DataFrame::from_columns([
        ("whole", vec![16_777_217_i64, 2].into()),
        ("single", vec![1.0_f32, 2.0].into()),
        ("large", vec![u64::MAX, 1].into()),
        ("tiny", Column::from_arrow(Arc::new(Int8Array::from(vec![127, 1])))),
    ]);
    let product = frame.col("whole") * frame.col("single");
    assert_eq!(product.dtype().unwrap(), DataType::Float64);
    assert_floats(&product, &[Some(16_777_217.0), Some(4.0)]);
    let rounded =
        series(Float32Array::from(vec![16_777_216.0, 2.0])).to_frame().assign("w", frame.col("whole"));
    let equal = rounded.col("v").eq(rounded.col("w"));
    assert_eq!(equal.values::<bool>().unwrap(), [Some(false), Some(true)]);
    assert_eq!((frame.col("large") + 1).dtype().unwrap(), DataType::UInt64);
    assert_eq!((frame.col("large") + 1).values::<i64>().unwrap(), [Some(0), Some(2)]);
    assert_eq!((frame.col("large") + frame.col("whole")).dtype().unwrap(), DataType::Float64);
    assert_eq!((frame.col("tiny") + 1).values::<i64>().unwrap(), [Some(-128), Some(2)]);
    assert_eq!((frame.col("tiny") + 1).dtype().unwrap(), DataType::Int8);
    assert_eq!((frame.col("tiny") + 300).values::<i64>().unwrap_err().class(), "ValueError");
    assert_eq!(frame.col("tiny").gt(300).values::<bool>().unwrap(), [Some(false); 2]);
    assert_eq!(frame.col("large").gt(-1).values::<bool>().unwrap(), [Some(true); 2]);
    assert_eq!(frame.col("large").eq(frame.col("whole")).values::<bool>().unwrap(), [Some(false); 2]);
    assert_eq!((frame.col("single") * 0.1).dtype().unwrap(), DataType::Float32);
    let tenth = series(Float32Array::from(vec![0.1]));
    assert_eq!(tenth.eq(0.1).values::<bool>().unwrap(), [Some(true)]);
    assert_eq!(tenth.to_frame().query("v == 0.1").len().unwrap(), 1);
    let missing = series(UInt64Array::from(vec![Some(7), None]));
    for filled in [missing.fillna(0), missing.to_frame().fillna(0).col("v"), missing.clip(0, 5).fillna(0)] {
        assert_eq!(filled.dtype().unwrap(), DataType::UInt64);
        let table = filled.rename("v").to_frame().collect().unwrap();
        assert_eq!(*table.array("v").unwrap().data_type(), DataType::UInt64);
    }
}

#[test]
fn the_type_of_a_choice_is_known_before_its_rows_are() {
    let whole = series(Int64Array::from(vec![3, 0]));
    let masked = whole.mask(&whole.ne(0), -1.5);
    assert_eq!(masked.dtype().unwrap(), DataType::Float64);
    assert_floats(&masked, &[Some(-1.5), Some(0.0)]);
    let framed = whole.to_frame().mask(&whole.ne(0), -1.5);
    assert_eq!(framed.col("v").dtype().unwrap(), DataType::Float64);
    let float = series(Float64Array::from(vec![1.5]));
    let reindexed = float.to_frame().reindex_filled([4_i64, 0], 0);
    assert_eq!(reindexed.col("v").dtype().unwrap(), DataType::Float64);
    assert_floats(&reindexed.col("v"), &[Some(0.0), Some(1.5)]);
}

#[test]
fn keys_of_two_types_of_numbers_are_compared_as_they_are() {
    let whole = DataFrame::from_columns([("k", vec![16_777_217_i64, 5].into())]);
    let single = DataFrame::from_columns([("k", vec![16_777_216.0_f32, 5.0].into())]);
    let met = |kind: JoinKind| whole.merge(&single, Merge::on(["k"]).how(kind));
    for rows in each_executor(|executor| Ok(met(JoinKind::Inner).collect_on(executor)?.len())) {
        assert_eq!(rows, 1);
    }
    assert_floats(&met(JoinKind::Outer).col("k"), &[Some(5.0), Some(16_777_216.0), Some(16_777_217.0)]);
    let large = DataFrame::from_columns([("k", vec![u64::MAX, 5].into())]);
    let signed = DataFrame::from_columns([("k", vec![-1_i64, 5].into())]);
    assert_eq!(large.merge(&signed, Merge::on(["k"])).len().unwrap(), 1);
    let both = DataFrame::concat([&large, &signed], true);
    assert_eq!(both.col("k").dtype().unwrap(), DataType::Float64);
    let texts = DataFrame::from_columns([("k", vec!["a"].into())]);
    for ignore_index in [true, false] {
        let refused = DataFrame::concat([&whole, &texts], ignore_index);
        assert_eq!(refused.check().unwrap_err().class(), "TypeError");
    }
    let labelled = DataFrame::concat([&whole, &texts.rename([("k", "t")]).set_index(["t"])], false);
    assert_eq!(labelled.check().unwrap_err().class(), "TypeError");
}

#[test]
fn labels_of_two_kinds_are_no_index_of_one() {
    let frame = DataFrame::from_columns([("v", vec![1, 2].into())]);
    let with = |labels: &Series| frame.assign("k", labels).set_index(["k"]);
    let days = date_range("2024-01-01", 2, "D");
    let day = days.dt().date();
    let moments = days.dt().tz_localize("Europe/Oslo");
    let lengths = to_timedelta(&Series::from_values("d", vec!["1s", "2s"]));
    let columns = [&days, &moments, &lengths, &day].map(with);
    let mut pairs: Vec<(&DataFrame, &DataFrame)> = columns.iter().map(|column| (column, &frame)).collect();
    pairs.extend([(&columns[0], &columns[1]), (&columns[0], &columns[2]), (&columns[1], &columns[2])]);
    for (one, other) in pairs {
        for both in [[one, other], [other, one]] {
            let error = DataFrame::concat(both, false).check().unwrap_err();
            assert_eq!(error.class(), "TypeError");
            let values = both.map(|frame| frame.reset_index(false));
            let is_named = |side: &DataFrame| match side.index().to_series().dtype() {
                Ok(dtype) => error.to_string().contains(&dtype.to_string()),
                Err(error) => panic!("{error}"),
            };
            assert!(both.into_iter().all(is_named), "{error}");
            if values.iter().all(|frame| frame.col("k").check().is_ok()) {
                let refused = DataFrame::concat(&values, true);
                assert_eq!(refused.check().unwrap_err().class(), "TypeError");
            }
        }
    }
    // Times of two units have the finer one, and rows keep their labels.
    let seconds = with(&days.dt().as_unit("s"));
    assert_eq!(DataFrame::concat([&seconds, &columns[0]], false).len().unwrap(), 4);
}

#[test]
fn powers_of_whole_numbers_are_exact() {
    let frame = DataFrame::from_columns([("b", vec![3, 10].into()), ("e", vec![39, 20].into())]);
    let expected = [Some(4_052_555_153_018_976_267), Some(10_i64.wrapping_pow(20))];
    assert_wholes(&frame.col("b").pow(frame.col("e")), &expected);
    assert_wholes(&frame.eval("p = b ** e").col("p"), &expected);
    assert_eq!(frame.col("b").pow(-1).values::<i64>().unwrap_err().class(), "ValueError");
    let negative = frame.col("b").pow(-&frame.col("e"));
    assert_eq!(negative.values::<i64>().unwrap_err().class(), "ValueError");
}

#[test]
fn largest_numbers_of_several_columns_have_a_type_for_all() {
    let frame = DataFrame::from_columns([("u", vec![1_u64 << 63].into()), ("i", vec![1_i64].into())]);
    assert_floats(&frame.max().col("0"), &[Some(9_223_372_036_854_775_808.0), Some(1.0)]);
}

#[test]
fn infinities_that_cancel_each_other_are_missing() {
    let frame = DataFrame::from_columns([
        ("k", vec![1, 1, 2].into()),
        ("v", vec![f64::INFINITY, f64::NEG_INFINITY, 1.0].into()),
    ]);
    for sums in [frame.groupby(["k"]).sum(), frame.groupby(["k"]).mean()] {
        assert_floats(&sums.fillna(0.0).col("v"), &[Some(0.0), Some(1.0)]);
        assert_eq!(sums.col("v").count().unwrap().as_i64(), Some(1));
    }
    assert_eq!(frame.groupby(["k"]).var().col("v").count().unwrap().as_i64(), Some(0));
    let running = frame.col("v").cumsum();
    assert_eq!(running.isna().values::<bool>().unwrap(), [false, true, true].map(Some));
    assert_eq!(frame.col("v").diff(1).isna().values::<bool>().unwrap(), [true, false, false].map(Some));
    let same = series(Float64Array::from(vec![f64::INFINITY; 2])).diff(1);
    assert_eq!(same.isna().values::<bool>().unwrap(), [Some(true); 2]);
    assert!(frame.col("v").sum().unwrap().is_missing());
}

/// The rows have the types that the plan says.
#[track_caller]
fn assert_typed(frame: &DataFrame) {
    let planned = frame.dtypes().unwrap();
    for table in each_executor(|executor| frame.collect_on(executor)) {
        for (label, dtype) in &planned {
            assert_eq!(table.array(label).unwrap().data_type(), dtype, "{label}");
        }
    }
}

#[test]
fn numbers_in_the_place_of_others_have_the_type_of_all() {
    let floats = series(Float64Array::from(vec![0.5, 1.5]));
    let wholes = series(Int64Array::from(vec![1, 2]));
    let texts = Series::from_values("v", vec!["S", "L"]);
    let sizes = [("S", Value::from(1)), ("L", Value::from(1.5))];
    for (changed, expected) in [
        (floats.replace([(0.5, 2)]), [Some(2.0), Some(1.5)]),
        (wholes.replace([(1, 0.5)]), [Some(0.5), Some(2.0)]),
        (texts.map(sizes), [Some(1.0), Some(1.5)]),
        (floats.to_frame().replace([(0.5, 2)]).col("v"), [Some(2.0), Some(1.5)]),
    ] {
        let frame = changed.to_frame();
        assert_typed(&frame);
        // A later step takes the type of the plan.
        assert_floats(&frame.melt([], []).col("value"), &expected);
    }
    let narrow = series(Float32Array::from(vec![0.5, 1.5])).replace([(0.5, 2.5)]);
    assert_eq!(narrow.dtype().unwrap(), DataType::Float32);
    assert_typed(&narrow.to_frame());
}

#[test]
fn decimals_are_replaced_by_numbers_of_more_digits() {
    let prices = Decimal128Array::from(vec![150_i128, 250]).with_precision_and_scale(10, 2).unwrap();
    let prices = series(prices);
    assert_floats(&prices.replace([(1.5, 2.555)]), &[Some(2.555), Some(2.5)]);
    let held = prices.replace([(1.5, 0.25)]);
    assert_eq!(held.dtype().unwrap(), DataType::Decimal128(10, 2));
    assert_typed(&held.to_frame());
}

#[test]
fn sums_of_decimals_have_the_type_of_the_plan() {
    for (dtype, wide) in [
        (DataType::Decimal32(5, 2), DataType::Decimal32(9, 2)),
        (DataType::Decimal64(10, 2), DataType::Decimal64(18, 2)),
        (DataType::Decimal128(10, 2), DataType::Decimal128(20, 2)),
        (DataType::Decimal128(38, 2), DataType::Decimal128(38, 2)),
        (DataType::Decimal256(40, 2), DataType::Decimal256(50, 2)),
    ] {
        let prices = arrow::compute::cast(&Float64Array::from(vec![1.5, 2.5]), &dtype).unwrap();
        let frame =
            DataFrame::from_columns([("k", vec![1, 1].into()), ("price", Column::from_arrow(prices))]);
        let none = frame.filter(&frame.col("k").gt(1));
        for frame in [&frame, &none] {
            for sums in [frame.groupby(["k"]).sum(), frame.select(["price"]).agg(Aggregate::Sum)] {
                assert_typed(&sums);
            }
            assert_eq!(frame.col("price").sum().unwrap().dtype(), wide, "of {dtype}");
        }
        let found = [&frame, &none].map(|frame| frame.col("price").sum().unwrap().as_f64());
        assert_eq!(found, [Some(4.0), Some(0.0)], "of {dtype}");
    }
}
