//! Spans of time, and joins on the nearest key or on a condition. Expected values are those of pandas.

use crate::executors::{each_executor, three_parts};
use arrow::array::TimestampNanosecondArray;
use std::sync::Arc;
use tharsis_dataframe::{Aggregate, AsOf, Column, DataFrame, Fill, Nearest};

const N: f64 = f64::NAN;
const MINUTE: i64 = 60_000_000_000;
/// Midnight of 30 January 2024, a Tuesday.
const START: i64 = 1_706_572_800_000_000_000;

/// Times so many minutes after [`START`].
fn times(minutes: &[i64]) -> Column {
    let times = minutes.iter().map(|minutes| START + minutes * MINUTE);
    Column::from_arrow(Arc::new(TimestampNanosecondArray::from_iter_values(times)))
}

const DAY: i64 = 24 * 60;

/// Rows at 30 and 31 January, 4 and 5 February and 1 April.
fn events() -> DataFrame {
    let minutes = [DAY - 30, DAY + 10, 5 * DAY + 900, 6 * DAY + 60, 6 * DAY + 80, 62 * DAY];
    DataFrame::from_columns([
        ("t", times(&minutes)),
        ("v", vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0].into()),
        ("n", vec![1, 2, 3, 4, 5, 6].into()),
    ])
}

#[track_caller]
fn assert_floats(frame: &DataFrame, label: &str, expected: &[f64]) {
    for found in each_executor(|executor| frame.collect_on(executor)?.column::<f64>(label)) {
        let found: Vec<f64> = found.into_iter().map(|value| value.unwrap_or(N)).collect();
        assert_eq!(found.len(), expected.len(), "{found:?}");
        let near = |a: f64, b: f64| (a - b).abs() < 1e-12 || (a.is_nan() && b.is_nan());
        assert!(found.iter().zip(expected).all(|(&a, &b)| near(a, b)), "{found:?}\n{expected:?}");
    }
}

/// The days after [`START`] of the labels of spans.
fn days(frame: &DataFrame) -> Vec<f64> {
    let flat = frame.reset_index(false);
    let nanoseconds = flat.col("t").astype(arrow::datatypes::DataType::Int64).values::<i64>().unwrap();
    nanoseconds.into_iter().flatten().map(|time| (time - START) as f64 / (DAY * MINUTE) as f64).collect()
}

#[test]
fn calendar_spans_have_their_labels_and_empty_ones_too() {
    let events = events();
    let sums = |rule: &str| events.resample("t", rule).sum();
    assert_floats(&sums("MS"), "v", &[3.0, 12.0, 0.0, 6.0]);
    assert_eq!(days(&sums("MS")), [-29.0, 2.0, 31.0, 62.0]);
    assert_eq!(days(&sums("ME")), [1.0, 30.0, 61.0, 91.0]);
    assert_floats(&events.resample("t", "ME").mean(), "v", &[1.5, 4.0, N, 6.0]);
    assert_floats(&sums("W"), "v", &[6.0, 9.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 6.0]);
    assert_eq!(days(&sums("W"))[..2], [5.0, 12.0]);
    assert_floats(&sums("QS"), "v", &[15.0, 6.0]);
    assert_eq!(days(&sums("QE")), [61.0, 152.0]);
    assert_floats(&sums("YS"), "v", &[21.0]);
    assert_eq!(days(&sums("YE")), [336.0]);
    assert_eq!(sums("MS").index_names().unwrap(), [Some("t".to_owned())]);
}

#[test]
fn fixed_spans_begin_at_the_first_midnight() {
    let events = events();
    let daily = events.resample("t", "D");
    assert_eq!(daily.sum().len().unwrap(), 63);
    assert_floats(&daily.sum().head(7), "v", &[1.0, 2.0, 0.0, 0.0, 0.0, 3.0, 9.0]);
    assert_floats(&daily.mean().head(3), "v", &[1.0, 2.0, N]);
    for sizes in each_executor(|executor| daily.size().collect_on(executor)?.column::<i64>("size")) {
        assert_eq!(sizes.iter().flatten().sum::<i64>(), 6);
        assert_eq!(sizes[2], Some(0));
    }
    assert_floats(&events.head(2).resample("t", "30min").sum(), "v", &[1.0, 2.0]);
    assert_floats(&events.head(2).resample("t", "7h").sum(), "v", &[3.0]);
    assert_eq!(days(&events.head(2).resample("t", "7h").sum()), [0.875]);
    let odd = events.resample("t", "36h").sum();
    assert_eq!(odd.len().unwrap(), 42);
    assert_floats(&odd.head(5), "v", &[3.0, 0.0, 0.0, 3.0, 9.0]);
    assert_eq!(days(&odd)[41], 61.5);
    assert_eq!(events.resample("t", "3D").sum().len().unwrap(), 21);
    let indexed = events.set_index(["t"]).resample("t", "MS");
    let chosen = indexed.agg_as([("top", "v", Aggregate::Max), ("last", "n", Aggregate::Last)]);
    assert_floats(&chosen, "top", &[2.0, 5.0, N, 6.0]);
    assert_eq!(events.resample("t", "3X").sum().check().unwrap_err().class(), "ValueError");
    assert_eq!(events.resample("n", "D").sum().check().unwrap_err().class(), "TypeError");
    assert_eq!(events.resample("u", "D").sum().check().unwrap_err().class(), "KeyError");
}

fn trades() -> DataFrame {
    DataFrame::from_columns([
        ("t", vec![1, 5, 10, 10].into()),
        ("k", vec!["a", "b", "a", "b"].into()),
        ("x", vec![1, 2, 3, 4].into()),
    ])
}

fn quotes() -> DataFrame {
    DataFrame::from_columns([
        ("t", vec![1, 2, 3, 6, 7, 10].into()),
        ("k", vec!["a", "a", "b", "a", "b", "a"].into()),
        ("y", vec![10.0, 20.0, 30.0, 60.0, 70.0, 100.0].into()),
    ])
}

#[test]
fn the_nearest_key_is_found() {
    let (left, right) = (trades(), quotes());
    let by = |nearest| left.merge_asof(&right, AsOf::on("t").by(["k"]).nearest(nearest));
    assert_floats(&by(Nearest::Backward), "y", &[10.0, 30.0, 100.0, 70.0]);
    assert_floats(&by(Nearest::Forward), "y", &[10.0, 70.0, 100.0, N]);
    assert_floats(&by(Nearest::Either), "y", &[10.0, 30.0, 100.0, 70.0]);
    assert_eq!(by(Nearest::Backward).columns().unwrap(), ["t", "k", "x", "y"]);
    let any = |asof: AsOf| left.merge_asof(&right, asof);
    assert_eq!(any(AsOf::on("t")).columns().unwrap(), ["t", "k_x", "x", "k_y", "y"]);
    assert_floats(&any(AsOf::on("t")), "y", &[10.0, 30.0, 100.0, 100.0]);
    assert_floats(&any(AsOf::on("t").nearest(Nearest::Forward)), "y", &[10.0, 60.0, 100.0, 100.0]);
    assert_floats(&any(AsOf::on("t").nearest(Nearest::Either)), "y", &[10.0, 60.0, 100.0, 100.0]);
    let near = |nearest| {
        let asof = AsOf::on("t").by(["k"]).nearest(nearest).tolerance(2);
        left.merge_asof(&right, asof)
    };
    assert_floats(&near(Nearest::Backward), "y", &[10.0, 30.0, 100.0, N]);
    assert_floats(&near(Nearest::Forward), "y", &[10.0, 70.0, 100.0, N]);
    assert_floats(&near(Nearest::Either), "y", &[10.0, 30.0, 100.0, N]);
    let other = |nearest| any(AsOf::on("t").nearest(nearest).allow_exact_matches(false));
    assert_floats(&other(Nearest::Backward), "y", &[N, 30.0, 70.0, 70.0]);
    assert_floats(&other(Nearest::Forward), "y", &[20.0, 60.0, N, N]);
    assert_floats(&other(Nearest::Either), "y", &[20.0, 60.0, 70.0, 70.0]);
    assert_eq!(left.merge_asof(&right, AsOf::on("k")).check().unwrap_err().class(), "ValueError");
}

#[test]
fn times_have_a_tolerance_as_a_text() {
    let left = DataFrame::from_columns([("t", times(&[5, 60])), ("x", vec![1, 2].into())]);
    let right = DataFrame::from_columns([("t", times(&[0, 10])), ("y", vec![1.0, 2.0].into())]);
    let asof = AsOf::on("t").tolerance("30min");
    assert_floats(&left.merge_asof(&right, asof), "y", &[1.0, N]);
}

#[test]
fn pairs_are_found_by_a_condition() {
    let frame = three_parts();
    let limits = DataFrame::from_columns([("low", vec![2, 7].into()), ("high", vec![4, 9].into())]);
    let within = frame.merge_where(&limits, |both| both.col("n").between(both.col("low"), both.col("high")));
    for found in each_executor(|executor| within.collect_on(executor)?.column::<i64>("n")) {
        assert_eq!(found, [2, 3, 4, 7, 8, 9].map(Some));
    }
    let sums = within.groupby(["low"]).select(["n"]).sum();
    for found in each_executor(|executor| sums.collect_on(executor)?.column::<i64>("n")) {
        assert_eq!(found, [9, 24].map(Some));
    }
    let wrong = frame.merge_where(&limits, |_| frame.col("n").gt(3));
    assert_eq!(wrong.check().unwrap_err().class(), "ValueError");
}

#[test]
fn times_have_distances_and_rows_without_a_time_no_span() {
    let events = events();
    let gaps = events.col("t").diff(1).astype(arrow::datatypes::DataType::Int64);
    let minutes = [40, 4 * DAY + 890, DAY - 840, 20, 56 * DAY - 80];
    let expected: Vec<Option<i64>> =
        std::iter::once(None).chain(minutes.map(|minutes| Some(minutes * MINUTE))).collect();
    let frame = events.assign("gap", gaps);
    for found in each_executor(|executor| frame.collect_on(executor)?.column::<i64>("gap")) {
        assert_eq!(found, expected);
    }
    // Shifted times: the first row has none, and is in no span.
    let shifted = events.assign("t", events.col("t").shift(1));
    assert_floats(&shifted.resample("t", "MS").sum(), "v", &[5.0, 15.0]);
    assert_floats(&shifted.head(1).resample("t", "MS").sum(), "v", &[]);
    // Rows per day of each week, from a resample of a resample.
    let weekly = events.resample("t", "D").size().resample("t", "W").sum();
    for found in each_executor(|executor| weekly.collect_on(executor)?.column::<i64>("size")) {
        assert_eq!(found.iter().flatten().copied().collect::<Vec<_>>(), [3, 2, 0, 0, 0, 0, 0, 0, 0, 1]);
    }
    let latest = events.sort_values(["v"], tharsis_dataframe::Sort::descending()).col("t").cummin();
    assert_eq!(latest.to_frame().tail(1).len().unwrap(), 1);
}

/// The rows of three parts, twelve hours apart.
fn half_days() -> DataFrame {
    let minutes: Vec<i64> = (0..10).map(|n| n * 720).collect();
    let timed = DataFrame::from_columns([("t", times(&minutes))]);
    three_parts().assign("t", timed.col("t")).set_index(["t"])
}

#[test]
fn rows_are_put_at_the_labels_of_spans() {
    let spans = half_days().head(4).resample_index("8h");
    assert_floats(&spans.asfreq(Fill::Missing), "n", &[0.0, N, N, 2.0, N]);
    assert_floats(&spans.asfreq(Fill::Value(7.into())), "n", &[0.0, 7.0, 7.0, 2.0, 7.0]);
    assert_floats(&spans.ffill(), "n", &[0.0, 0.0, 1.0, 2.0, 2.0]);
    assert_floats(&spans.bfill(), "n", &[0.0, 1.0, 2.0, 2.0, 3.0]);
    assert_floats(&spans.nearest(), "n", &[0.0, 1.0, 1.0, 2.0, 3.0]);
    assert_floats(&spans.interpolate(), "n", &[0.0, 0.5, 1.5, 2.0, 2.5]);
    assert_floats(&spans.transform(Aggregate::Sum), "n", &[0.0, 1.0, 2.0, 3.0]);
    assert_eq!(spans.ngroups().unwrap(), 5);
    assert_eq!(spans.pipe(|spans| days(&spans.size())), [0.0, 1.0 / 3.0, 2.0 / 3.0, 1.0, 4.0 / 3.0]);
    let rows = half_days();
    assert_floats(&rows.asfreq("2D", Fill::Missing), "n", &[0.0, 4.0, 8.0]);
    assert_floats(&rows.asfreq("30h", Fill::Before), "n", &[0.0, 2.0, 5.0, 7.0]);
    let filled = rows.head(4).asfreq("6h", Fill::After);
    assert_floats(&filled, "n", &[0.0, 1.0, 1.0, 2.0, 2.0, 3.0, 3.0]);
    let wrong = rows.asfreq("2D", Fill::Value("text".into())).check().unwrap_err();
    assert_eq!(wrong.class(), "TypeError");
}

#[test]
fn spans_of_groups_go_from_the_first_to_the_last_row_of_each() {
    let groups = half_days().groupby(["k"]);
    let spans = groups.resample("t", "2D");
    assert_floats(&spans.sum(), "n", &[3.0, 6.0, 9.0, 1.0, 11.0, 7.0, 8.0]);
    assert_floats(&spans.ffill(), "n", &[0.0, 3.0, 6.0, N, 4.0, 2.0, 5.0]);
    assert_floats(&groups.resample_index("2D").asfreq(Fill::Missing), "n", &[0.0, N, N, N, 4.0, 2.0, N]);
    let unsorted = groups.sort(false).resample("t", "2D").sum().check().unwrap_err();
    assert_eq!(unsorted.class(), "NotImplemented");
}

#[test]
fn days_of_work_hold_the_weekend_behind_them() {
    let rows = |minutes: &[i64]| {
        let values: Vec<i64> = (1..=minutes.len() as i64).collect();
        DataFrame::from_columns([("t", times(minutes)), ("v", values.into())])
    };
    // From a Thursday to a Saturday.
    let days: Vec<i64> = (2..12).map(|day| day * DAY).collect();
    let sums = rows(&days).resample("t", "B").sum();
    assert_eq!(sums.col("v").values::<i64>().unwrap(), [1, 9, 5, 6, 7, 8, 19].map(Some));
    // From a Saturday to a Wednesday.
    let sums = rows(&[4 * DAY + 600, 8 * DAY]).resample("t", "B").sum();
    assert_eq!(sums.col("v").values::<i64>().unwrap(), [1, 0, 0, 2].map(Some));
    let index = rows(&[3 * DAY, 8 * DAY]).set_index(["t"]);
    assert_eq!(
        index.asfreq("B", Fill::Missing).col("v").values::<i64>().unwrap(),
        [Some(1), None, None, Some(2)]
    );
    let index = rows(&[4 * DAY, 8 * DAY]).set_index(["t"]);
    assert_eq!(index.asfreq("B", Fill::Missing).col("v").values::<i64>().unwrap(), [None, None, Some(2)]);
    assert_eq!(rows(&days).resample("t", "2B").sum().check().unwrap_err().class(), "NotImplemented");
}
