//! The type that a plan says is the type that its rows have, whatever types meet in a column.

use arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, TimeUnit};
use std::sync::Arc;
use tharsis_dataframe::{DataFrame, Fill, Join, JoinKind, LocalExecutor, Merge, Series, Value, date_range};
use tharsis_trials::{is_long, part};

/// Types of columns, of each kind of values.
fn types() -> Vec<DataType> {
    let category = DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8));
    vec![
        DataType::Boolean,
        DataType::Int8,
        DataType::Int64,
        DataType::UInt64,
        DataType::Float32,
        DataType::Float64,
        DataType::Utf8,
        DataType::LargeUtf8,
        category,
        DataType::Date32,
        DataType::Timestamp(TimeUnit::Second, None),
        DataType::Timestamp(TimeUnit::Nanosecond, None),
        DataType::Timestamp(TimeUnit::Microsecond, Some("Europe/Oslo".into())),
        DataType::Duration(TimeUnit::Millisecond),
    ]
}

/// Rows with the keys from a number on, and with values 1, 2 and a missing one of a type.
fn rows(from: i64, dtype: &DataType) -> DataFrame {
    let values = Int64Array::from(vec![Some(1), Some(2), None]);
    let texts = StringArray::from(vec![Some("1"), Some("2"), None]);
    let values: ArrayRef = match dtype {
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Dictionary(..) => cast(&texts, dtype).unwrap(),
        DataType::Date32 => cast(&cast(&values, &DataType::Int32).unwrap(), dtype).unwrap(),
        other => cast(&values, other).unwrap(),
    };
    let keys: ArrayRef = Arc::new(Int64Array::from_iter_values(from..from + 3));
    let batch = RecordBatch::try_from_iter_with_nullable([("k", keys, true), ("x", values, true)]).unwrap();
    DataFrame::from_batches(batch.schema(), vec![batch])
}

/// The fault of a frame, if it has one: types of rows that are not those of the plan, or an error of the
/// library.
fn fault(step: &str, frame: &DataFrame) -> Option<String> {
    // Values that no column has together are refused.
    let types = match frame.dtypes() {
        Ok(types) => types,
        Err(error) if matches!(error.class(), "TypeError" | "ValueError" | "KeyError") => return None,
        Err(error) => return Some(format!("{step}: {}: {error}", error.class())),
    };
    let table = match frame.collect_on(&LocalExecutor::sized(1, 1 << 30)) {
        Ok(table) => table,
        Err(error) => return Some(format!("{step} fails when it runs: {}: {error}", error.class())),
    };
    let found = |label: &str| table.array(label).unwrap().data_type().clone();
    let other = types.into_iter().find(|(label, dtype)| found(label) != *dtype);
    other.map(|(label, dtype)| {
        format!("{step}: {label} is {dtype} in the plan and {} in its rows", found(&label))
    })
}

/// Steps that are tried for a pair, by the numbers of the pair and of the step. A long run tries all, a usual
/// one a third, which is another one for the next commit: each type meets each other one in each, and each
/// step has each type. Others are tried by name.
fn is_tried(one: usize, other: usize, step: usize) -> bool {
    is_long() || ((one + other + step) as u64).wrapping_add(part(3)).is_multiple_of(3)
}

/// Pairs of types with steps that have been wrong for them: the plan said another type than the rows had, a
/// key met another that it never equals, a float was cut.
fn named() -> Vec<(DataType, DataType, &'static [&'static str])> {
    let category = DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8));
    let seconds = DataType::Timestamp(TimeUnit::Second, None);
    let nanoseconds = DataType::Timestamp(TimeUnit::Nanosecond, None);
    let zoned = DataType::Timestamp(TimeUnit::Microsecond, Some("Europe/Oslo".into()));
    let values: &[&str] = &["concat", "combine_first", "where", "fillna", "where of a frame", "melt"];
    let keys: &[&str] = &["concat with labels", "merge", "outer merge", "join"];
    vec![
        (DataType::Utf8, DataType::LargeUtf8, values),
        (category, DataType::Utf8, values),
        (seconds, nanoseconds.clone(), values),
        (DataType::Date32, nanoseconds.clone(), values),
        (DataType::Utf8, nanoseconds.clone(), keys),
        (nanoseconds, zoned, keys),
        (DataType::Boolean, DataType::Int64, keys),
        (DataType::Int64, DataType::Float64, &["update"]),
    ]
}

fn assert_none(faults: &[String]) {
    let part = part(3);
    assert!(
        faults.is_empty(),
        "{} faults with THARSIS_TEST_PART={part}:\n{}",
        faults.len(),
        faults.join("\n")
    );
}

#[test]
fn rows_of_two_frames_have_the_types_of_the_plan() {
    let (mut faults, named) = (Vec::new(), named());
    let mut count = 0;
    for (one_at, one) in types().into_iter().enumerate() {
        for (other_at, other) in types().into_iter().enumerate() {
            let (left, right) = (rows(0, &one), rows(1, &other));
            let is_late = left.col("k").gt(0);
            let steps = [
                ("concat", DataFrame::concat([&left, &right], true)),
                (
                    "concat with labels",
                    DataFrame::concat([&left.set_index(["x"]), &right.set_index(["x"])], false),
                ),
                ("merge", left.merge(&right, Merge::on(["x"]))),
                ("outer merge", left.merge(&right, Merge::on(["x"]).how(JoinKind::Outer))),
                ("combine_first", left.combine_first(&right)),
                ("update", left.update(&right)),
                ("where", left.assign("x", left.col("x").keep_where(&is_late, right.col("x")))),
                ("fillna", left.assign("x", left.col("x").fillna(right.col("x")))),
                ("where of a frame", left.keep_where_from(&left.isna(), &right)),
                ("melt", left.assign("y", right.col("x")).melt(["k"], ["x", "y"])),
                ("join", {
                    let join = Join::how(JoinKind::Outer).suffixes("_l", "_r");
                    left.set_index(["x"]).join(&right.set_index(["x"]), join).reset_index(false)
                }),
            ];
            let of_pair = named.iter().find(|(left, right, _)| *left == one && *right == other);
            let of_pair = of_pair.map_or(&[][..], |(_, _, steps)| steps);
            for (at, (step, frame)) in steps.iter().enumerate() {
                let is_named = of_pair.contains(step);
                count += usize::from(is_named);
                if is_named || is_tried(one_at, other_at, at) {
                    faults.extend(fault(step, frame).map(|fault| format!("{one} and {other}: {fault}")));
                }
            }
        }
    }
    assert_none(&faults);
    assert_eq!(
        count,
        named.iter().map(|(_, _, steps)| steps.len()).sum::<usize>(),
        "a name of no step or type"
    );
}

#[test]
fn values_of_a_program_do_not_change_what_the_plan_says() {
    let values = || -> Vec<Value> {
        vec![
            1.into(),
            300.into(),
            (-1).into(),
            1.5.into(),
            true.into(),
            "a".into(),
            "2024-01-01".into(),
            Value::missing(),
        ]
    };
    let mut faults = Vec::new();
    for (dtype_at, dtype) in types().into_iter().enumerate() {
        let frame = rows(0, &dtype);
        let x = frame.col("x");
        let is_late = frame.col("k").gt(0);
        for (value_at, value) in values().into_iter().enumerate() {
            let of = |series: Series| frame.assign("x", &series);
            let steps = [
                ("fillna", frame.fillna(value.clone())),
                ("fillna of a series", of(x.fillna(value.clone()))),
                ("where", frame.keep_where(&is_late, value.clone())),
                ("where of a series", of(x.keep_where(&is_late, value.clone()))),
                ("replace", frame.replace([(Value::from(1), value.clone())])),
                ("reindex", frame.select(["x"]).reindex_filled([0, 7], value.clone())),
            ];
            let tried = steps.iter().enumerate().filter(|(at, _)| is_tried(dtype_at, value_at, *at));
            let found = tried.filter_map(|(_, (step, frame))| fault(step, frame));
            faults.extend(found.map(|fault| format!("{dtype} and {value}: {fault}")));
        }
    }
    assert_none(&faults);
}

#[test]
fn floats_in_the_place_of_whole_numbers_are_not_cut() {
    let days = DataFrame::from_columns([("v", vec![1, 2].into())]);
    let days = days.assign("t", date_range("2024-01-01", 2, "2D")).set_index(["t"]);
    let filled = days.asfreq("D", Fill::Value(1.5.into())).col("v");
    assert_eq!(filled.values::<f64>().unwrap(), [1.0, 1.5, 2.0].map(Some));
    let own = DataFrame::from_columns([("v", vec![1, 2].into())]);
    let other = DataFrame::from_columns([("v", vec![Some(0.5), None].into())]);
    assert_eq!(own.update(&other).col("v").values::<f64>().unwrap(), [0.5, 2.0].map(Some));
    let between = own.reindex_filled([Value::from(1), 0.5.into()], 7).col("v");
    assert_eq!(between.values::<i64>().unwrap(), [2, 7].map(Some));
    let groups = DataFrame::from_columns([("k", vec![1, 2].into())]);
    assert_eq!(groups.groupby(["k"]).get_group([1.5]).check().unwrap_err().class(), "KeyError");
}

#[test]
fn zeros_that_steps_make_have_one_sign() {
    let x = Series::from_values("x", vec![0.0, -0.25, 1.0]);
    let is_one = x.gt(0.5);
    let steps = [
        ("neg", -&x),
        ("mul", &x * -1.0),
        ("div", &x / -1.0),
        ("floordiv", x.floordiv(-1.0)),
        ("mod", &x % -1.0),
        ("round", x.round(0)),
        ("ceil", x.ceil()),
        ("trunc", x.trunc()),
        ("where", x.keep_where(&is_one, -0.0)),
        ("fillna", x.keep_where(&is_one, Value::missing()).fillna(-0.0)),
        ("replace", x.replace([(1.0, -0.0)])),
        ("clip", x.clip(Value::missing(), -0.0)),
        ("cumsum", (&x * -1.0).cumsum()),
        ("float32", (&x * -1.0).astype(DataType::Float32)),
    ];
    for (step, series) in steps {
        let zeros: Vec<f64> =
            series.values::<f64>().unwrap().into_iter().flatten().filter(|x| *x == 0.0).collect();
        assert!(!zeros.is_empty(), "{step} makes no zero");
        assert!(zeros.iter().all(|zero| zero.is_sign_positive()), "{step}: {zeros:?}");
    }
}
