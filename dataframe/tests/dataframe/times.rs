//! Times row by row, with the results of pandas 3.1.

use crate::executors::{each_executor, three_parts};
use arrow::array::{AsArray, DurationMicrosecondArray, TimestampMicrosecondArray};
use arrow::datatypes::{DataType, DurationMicrosecondType, TimeUnit};
use std::sync::Arc;
use std::time::Duration;
use tharsis_dataframe::{
    Aggregate, Column, DataFrame, Native, Reduce, Series, Value, date_range, date_range_until, sql,
    to_datetime, to_datetime_as, to_datetime_or_missing, to_datetime_utc, to_numeric, to_numeric_or_missing,
};

fn sample() -> Series {
    let texts =
        vec![Some("2024-02-29 13:45:56.123456"), Some("1969-12-31 23:59:59"), None, Some("2023-01-01")];
    to_datetime(&Series::from_values("t", texts))
}

#[track_caller]
fn assert_values<T: Native + PartialEq + std::fmt::Debug>(series: &Series, expected: &[Option<T>]) {
    let frame = series.rename("v").to_frame();
    for found in each_executor(|executor| frame.collect_on(executor)?.column::<T>("v")) {
        assert_eq!(found, expected);
    }
}

#[track_caller]
fn assert_texts(series: &Series, expected: &[Option<&str>]) {
    let expected: Vec<_> = expected.iter().map(|text| text.map(str::to_owned)).collect();
    assert_values(series, &expected);
}

/// The times as texts that are read easily.
#[track_caller]
fn assert_times(series: &Series, expected: &[Option<&str>]) {
    assert_texts(&series.dt().strftime("%Y-%m-%d %H:%M:%S.%f"), expected);
}

#[test]
fn times_have_parts() {
    let t = sample().dt();
    let parts: [(Series, [i64; 3]); 13] = [
        (t.year(), [2024, 1969, 2023]),
        (t.month(), [2, 12, 1]),
        (t.day(), [29, 31, 1]),
        (t.hour(), [13, 23, 0]),
        (t.minute(), [45, 59, 0]),
        (t.second(), [56, 59, 0]),
        (t.microsecond(), [123_456, 0, 0]),
        (t.nanosecond(), [0, 0, 0]),
        (t.quarter(), [1, 4, 1]),
        (t.dayofweek(), [3, 2, 6]),
        (t.dayofyear(), [60, 365, 1]),
        (t.week(), [9, 1, 52]),
        (t.days_in_month(), [29, 31, 31]),
    ];
    for (found, [a, b, c]) in parts {
        assert_values(&found, &[Some(a), Some(b), None, Some(c)]);
    }
    assert_texts(&t.month_name(), &[Some("February"), Some("December"), None, Some("January")]);
    assert_texts(&t.day_name(), &[Some("Thursday"), Some("Wednesday"), None, Some("Sunday")]);
    assert_eq!(t.date().dtype().unwrap(), DataType::Date32);
    assert_eq!(t.date().dt().day().dtype().unwrap(), DataType::Int32);
}

#[test]
fn a_doubled_percent_sign_is_a_sign() {
    let texts = sample().dt().strftime("%%f %S.%f");
    assert_texts(&texts, &[Some("%f 56.123456"), Some("%f 59.000000"), None, Some("%f 00.000000")]);
}

#[test]
fn times_know_their_place_in_the_calendar() {
    let t = sample().dt();
    assert_values(&t.is_month_start(), &[false, false, false, true].map(Some));
    assert_values(&t.is_month_end(), &[true, true, false, false].map(Some));
    assert_values(&t.is_quarter_start(), &[false, false, false, true].map(Some));
    assert_values(&t.is_quarter_end(), &[false, true, false, false].map(Some));
    assert_values(&t.is_year_start(), &[false, false, false, true].map(Some));
    assert_values(&t.is_year_end(), &[false, true, false, false].map(Some));
    assert_values(&t.is_leap_year(), &[true, false, false, false].map(Some));
}

#[test]
fn times_are_rounded() {
    let t = sample().dt();
    let at = |a, b, c| [Some(a), Some(b), None, Some(c)];
    assert_times(
        &t.floor("15min"),
        &at("2024-02-29 13:45:00.000000", "1969-12-31 23:45:00.000000", "2023-01-01 00:00:00.000000"),
    );
    assert_times(
        &t.ceil("h"),
        &at("2024-02-29 14:00:00.000000", "1970-01-01 00:00:00.000000", "2023-01-01 00:00:00.000000"),
    );
    assert_times(
        &t.round("D"),
        &at("2024-03-01 00:00:00.000000", "1970-01-01 00:00:00.000000", "2023-01-01 00:00:00.000000"),
    );
    assert_times(
        &t.normalize(),
        &at("2024-02-29 00:00:00.000000", "1969-12-31 00:00:00.000000", "2023-01-01 00:00:00.000000"),
    );
    // Halves go to even multiples.
    let halves = to_datetime(&Series::from_values(
        "h",
        vec!["1970-01-01 00:30", "1970-01-01 01:30", "1969-12-31 23:30"],
    ));
    assert_texts(
        &halves.dt().round("h").dt().strftime("%d %H"),
        &[Some("01 00"), Some("01 02"), Some("01 00")],
    );
    assert_eq!(t.floor("ME").dtype().unwrap_err().class(), "ValueError");
    let numbers = Series::from_values("n", vec![1]);
    assert_eq!(numbers.dt().year().dtype().unwrap_err().class(), "TypeError");
}

#[test]
fn differences_are_durations() {
    let from =
        to_datetime(&Series::from_values("t", vec![Some("2024-01-01"), Some("2024-01-03 06:00"), None]));
    let to =
        to_datetime(&Series::from_values("t", vec!["2024-01-02 00:00:01.5", "2024-01-01", "2024-01-01"]));
    let lengths = (&to - &from).dt();
    assert_values(&lengths.total_seconds(), &[Some(86_401.5), Some(-194_400.0), None]);
    assert_values(&lengths.days(), &[Some(1), Some(-3), None]);
    assert_values(&lengths.seconds(), &[Some(1), Some(64_800), None]);
    let since = &from - Value::time("2024-01-01").unwrap();
    assert_values(&since.dt().days(), &[Some(0), Some(2), None]);
    let later = &from + Duration::from_secs(90);
    assert_texts(&later.dt().strftime("%d %H:%M:%S"), &[Some("01 00:01:30"), Some("03 06:01:30"), None]);
    assert_eq!(lengths.year().dtype().unwrap_err().class(), "TypeError");
    assert_eq!(from.dt().total_seconds().dtype().unwrap_err().class(), "TypeError");
}

#[test]
fn texts_become_times_and_numbers() {
    let days = Series::from_values("d", vec![Some("29/02/2024"), None]);
    assert_texts(&to_datetime_as(&days, "%d/%m/%Y").dt().strftime("%Y-%m-%d"), &[Some("2024-02-29"), None]);
    assert_eq!(to_datetime(&days).values::<i64>().unwrap_err().class(), "ValueError");
    let some = Series::from_values("d", vec!["2024-02-29", "never", "9999-12-31"]);
    assert_texts(&to_datetime_or_missing(&some).dt().strftime("%Y"), &[Some("2024"), None, Some("9999")]);
    assert_values(
        &to_datetime(&Series::from_values("n", vec![86_400_000_000_000_i64])).dt().day(),
        &[Some(2)],
    );
    let numbers = Series::from_values("n", vec![Some("1.5"), Some(" 2 "), None, Some("1e3"), Some("nan")]);
    assert_values(&to_numeric(&numbers), &[Some(1.5), Some(2.0), None, Some(1000.0), None]);
    assert!(to_numeric(&some).values::<f64>().is_err());
    assert_values::<f64>(&to_numeric_or_missing(&some), &[None, None, None]);
    assert_values(&to_numeric(&Series::from_values("n", vec![3])), &[Some(3)]);
}

#[test]
fn ranges_have_the_times_that_pandas_gives() {
    let days = |series: Series| series.dt().strftime("%y%m%d").values::<String>().unwrap();
    let expect = |found: Vec<Option<String>>, expected: &str| {
        assert_eq!(found.into_iter().flatten().collect::<Vec<_>>().join(" "), expected);
    };
    expect(days(date_range("2024-02-28", 3, "D")), "240228 240229 240301");
    expect(days(date_range("2024-02-28", 3, "2D")), "240228 240301 240303");
    expect(days(date_range("2024-02-28", 3, "W")), "240303 240310 240317");
    expect(days(date_range("2024-03-01", 4, "B")), "240301 240304 240305 240306");
    expect(days(date_range("2024-03-02", 3, "B")), "240304 240305 240306");
    expect(days(date_range("2024-01-15", 3, "MS")), "240201 240301 240401");
    expect(days(date_range("2024-01-31", 3, "ME")), "240131 240229 240331");
    expect(days(date_range("2023-11-15", 3, "QS")), "240101 240401 240701");
    expect(days(date_range("2023-11-15", 2, "QE")), "231231 240331");
    expect(days(date_range("2023-01-01", 2, "YS")), "230101 240101");
    expect(days(date_range("2023-01-02", 2, "YE")), "231231 241231");
    expect(days(date_range("1969-12-30", 2, "2ME")), "691231 700228");
    expect(days(date_range_until("2024-02-27", "2024-03-01", "D")), "240227 240228 240229 240301");
    let hours = date_range("2024-01-01 06:00", 3, "90min").dt().strftime("%H:%M").values::<String>().unwrap();
    expect(hours, "06:00 07:30 09:00");
    assert_eq!(date_range("2024-01-01", 2, "fortnight").dtype().unwrap_err().class(), "ValueError");
    assert_eq!(date_range("soon", 2, "D").dtype().unwrap_err().class(), "ValueError");
}

#[test]
fn times_of_several_parts_stay_in_order() {
    let days = to_datetime(&(three_parts().col("n") * 86_400_000_000_000_i64));
    assert_values(&days.dt().day(), &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10].map(Some));
    assert_values(&days.dt().dayofweek(), &[3, 4, 5, 6, 0, 1, 2, 3, 4, 5].map(Some));
}

/// Sales by the quarter, on the days from Monday to Friday.
#[test]
fn a_program_groups_by_parts_of_times() {
    let days = date_range("2024-01-01", 182, "D");
    let sold: Vec<i64> = (0..182).collect();
    let frame = DataFrame::from_columns([("sold", sold.into())]);
    let frame = frame.assign("day", &days);
    let weekdays = frame.filter(&frame.col("day").dt().dayofweek().lt(5));
    let quarter = weekdays.col("day").dt().quarter().rename("quarter");
    let sums = weekdays.groupby([&quarter]).agg_as([
        ("total", "sold", Aggregate::Sum),
        ("days", "sold", Aggregate::Count),
        ("last", "day", Aggregate::Max),
    ]);
    assert_values(&sums.col("total"), &[Some(2860), Some(8775)]);
    assert_values(&sums.col("days"), &[Some(65), Some(65)]);
    assert_texts(&sums.col("last").dt().strftime("%m-%d"), &[Some("03-29"), Some("06-28")]);
    let since = frame.filter(&frame.col("day").ge("2024-06-29"));
    assert_values(&since.col("sold"), &[Some(180), Some(181)]);
}

#[test]
fn a_coarser_unit_leaves_out_what_it_does_not_count() {
    let texts = Series::from_values("t", vec!["1969-12-31T23:59:58.5", "1970-01-01T00:00:01.5"]);
    let times = to_datetime(&texts);
    let dtype = DataType::Timestamp(TimeUnit::Second, None);
    let frame = times.rename("t").to_frame().astype([("t", dtype.clone())]);
    for seconds in [times.dt().as_unit("s"), times.astype(dtype), frame.col("t")] {
        assert_times(&seconds, &[Some("1969-12-31 23:59:58.000000"), Some("1970-01-01 00:00:01.000000")]);
    }
}

const MICROSECONDS: DataType = DataType::Duration(TimeUnit::Microsecond);

#[track_caller]
fn assert_microseconds(series: &Series, expected: &[Option<i64>]) {
    let frame = series.rename("v").to_frame();
    assert_eq!(frame.dtypes().unwrap(), [("v".to_owned(), MICROSECONDS)]);
    for table in each_executor(|executor| frame.collect_on(executor)) {
        let found = table.array("v").unwrap().as_primitive::<DurationMicrosecondType>();
        assert_eq!(found.iter().collect::<Vec<_>>(), expected);
    }
}

#[test]
fn durations_are_measured_by_their_units() {
    let column =
        |units: Vec<Option<i64>>| Column::from_arrow(Arc::new(DurationMicrosecondArray::from(units)));
    let d = Series::from_values("d", column(vec![Some(1), Some(2), Some(-4), None]));
    for (found, units) in [
        (d.sum(), -1),
        (d.mean(), 0),
        (d.median(), 1),
        (d.std(), 3),
        (d.quantile(0.25), -1),
        (d.agg(Reduce::by(Aggregate::Std).ddof(0)), 2),
        (Series::from_values("d", column(vec![None, None])).sum(), 0),
    ] {
        let found = found.unwrap();
        assert_eq!((found.dtype(), found.as_i64()), (MICROSECONDS, Some(units)));
    }
    assert!(Series::from_values("d", column(vec![None])).mean().unwrap().is_missing());
    assert_eq!(d.var().unwrap_err().class(), "TypeError");
    assert_microseconds(&-&d, &[Some(-1), Some(-2), Some(4), None]);
    assert_microseconds(&d.abs(), &[Some(1), Some(2), Some(4), None]);
    assert_microseconds(&d.to_frame().abs().col("d"), &[Some(1), Some(2), Some(4), None]);
    assert_microseconds(&d.cumsum(), &[Some(1), Some(3), Some(-1), None]);
}

#[test]
fn durations_of_groups_and_frames_are_measured() {
    let units = DurationMicrosecondArray::from(vec![Some(1), Some(2), Some(-4), None]);
    let frame =
        DataFrame::from_columns([("k", vec![1, 1, 2, 2].into()), ("d", Column::from_arrow(Arc::new(units)))]);
    let groups = frame.groupby(["k"]);
    assert_microseconds(&groups.sum().col("d"), &[Some(3), Some(-4)]);
    assert_microseconds(&groups.mean().col("d"), &[Some(1), Some(-4)]);
    assert_microseconds(&frame.select(["d"]).agg(Aggregate::Sum).col("0"), &[Some(-1)]);
    // Beside numbers there is no common type.
    assert_eq!(frame.agg(Aggregate::Sum).col("0").values::<i64>().unwrap(), [Some(6)]);
}

fn microseconds(units: Vec<Option<i64>>) -> Column {
    Column::from_arrow(Arc::new(DurationMicrosecondArray::from(units)))
}

#[test]
fn durations_are_rounded_to_multiples() {
    let units = [1_500_000, 2_500_000, -1_500_000, -500_000].map(Some);
    let d = Series::from_values("d", microseconds(units.into_iter().chain([None]).collect()));
    let seconds = |seconds: [i64; 4]| {
        let units = seconds.map(|seconds| Some(seconds * 1_000_000));
        units.into_iter().chain([None]).collect::<Vec<_>>()
    };
    assert_microseconds(&d.dt().round("s"), &seconds([2, 2, -2, 0]));
    assert_microseconds(&d.dt().floor("s"), &seconds([1, 2, -2, -1]));
    assert_microseconds(&d.dt().ceil("s"), &seconds([2, 3, -1, 0]));
    assert_microseconds(&d.dt().round("us"), &units.into_iter().chain([None]).collect::<Vec<_>>());
}

#[test]
fn a_multiple_that_has_no_room_is_an_error() {
    let (first, last) = (1 - i64::MAX, i64::MAX);
    let lengths = |units| Series::from_values("d", microseconds(vec![Some(units), None]));
    let times = |units| {
        let times = TimestampMicrosecondArray::from(vec![Some(units), None]);
        Series::from_values("d", Column::from_arrow(Arc::new(times)))
    };
    let seconds = last / 1_000_000 * 1_000_000;
    assert_microseconds(&lengths(last).dt().floor("s"), &[Some(seconds), None]);
    assert_microseconds(&lengths(first).dt().ceil("s"), &[Some(-seconds), None]);
    // The multiple below the first value is out of bounds, and that above is the nearest.
    let above = -seconds - 400_000;
    assert_microseconds(&lengths(above).dt().round("s"), &[Some(-seconds), None]);
    for (last, first) in [(lengths(last), lengths(first)), (times(last), times(first))] {
        for multiple in [last.dt().ceil("s"), last.dt().round("s"), first.dt().floor("s")] {
            let error = multiple.collect().unwrap_err();
            assert_eq!(error.class(), "OverflowError", "as pandas has it: {error}");
            assert!(error.to_string().contains("out of range"), "{error}");
        }
    }
}

#[test]
fn groups_of_durations_have_standard_errors() {
    let d = microseconds([1, 2, 4].map(|seconds| Some(seconds * 1_000_000)).to_vec());
    let frame = DataFrame::from_columns([("k", vec![1, 1, 1].into()), ("d", d)]);
    assert_microseconds(&frame.groupby(["k"]).sem().col("d"), &[Some(881_917)]);
    assert_eq!(frame.col("d").sem().unwrap_err().class(), "TypeError");
}

#[test]
fn a_sum_of_durations_without_room_is_an_error() {
    let d = microseconds([i64::MAX, i64::MAX, 5].map(Some).to_vec());
    let frame = DataFrame::from_columns([("k", vec![1, 1, 1].into()), ("d", d)]);
    let groups = frame.groupby(["k"]);
    let by_sql = sql("select sum(d) as d from t", &[("t", &frame)]);
    let by_window = sql("select sum(d) over (order by k) as d from t", &[("t", &frame)]);
    for sums in [groups.sum(), groups.transform(Aggregate::Sum), groups.cumsum(), by_sql, by_window] {
        let error = sums.collect().unwrap_err();
        assert_eq!(error.class(), "ValueError", "{error}");
        assert!(error.to_string().contains("overflow in timedelta operation"), "{error}");
    }
    for error in [frame.col("d").sum().unwrap_err(), frame.col("d").cumsum().collect().unwrap_err()] {
        assert!(error.to_string().contains("overflow in timedelta operation"), "{error}");
    }
    // Sums of some values may be larger than that of all.
    let d = Series::from_values("d", microseconds([i64::MAX, 5, -10].map(Some).to_vec()));
    assert_eq!(d.sum().unwrap().as_i64(), Some(i64::MAX - 5));
    let wide = DataFrame::from_columns([("d", microseconds(vec![Some(1), Some(2), None]))]);
    let found = sql("select sum(d) as d, sum(distinct d) as e from t", &[("t", &wide)]);
    assert_microseconds(&found.col("d"), &[Some(3)]);
    assert_microseconds(&found.col("e"), &[Some(3)]);
}

#[test]
fn times_with_offsets_are_times_of_utc() {
    let texts =
        Series::from_values("t", vec![Some("2024-03-01T01:30:00+02:00"), None, Some("2024-03-01 01:30Z")]);
    let utc = to_datetime_utc(&texts, None);
    assert_eq!(utc.dtype().unwrap(), DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())));
    let hours = utc.dt().hour().rename("h").to_frame();
    for found in each_executor(|executor| hours.collect_on(executor)?.column::<i64>("h")) {
        assert_eq!(found, [Some(23), None, Some(1)]);
    }
    let texts = Series::from_values("t", vec!["01/03/2024 01:30 -0100"]);
    let format = "%d/%m/%Y %H:%M %z";
    assert_eq!(to_datetime_utc(&texts, Some(format)).dt().hour().values::<i64>().unwrap(), [Some(2)]);
    // The column would have no zone.
    let error = to_datetime_as(&texts, format).values::<i64>().unwrap_err();
    assert_eq!(error.class(), "NotImplemented");
    assert!(error.to_string().contains("to_datetime_utc"), "{error}");
}
