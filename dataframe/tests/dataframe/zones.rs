//! Times with a zone are counted by its clock, and texts name the times that they do not exclude. Expected
//! values are those of pandas 3.1.

use crate::executors::each_executor;
use arrow::datatypes::{DataType, TimeUnit};
use tharsis_dataframe::{AsOf, DataFrame, Fill, Series, Value, to_datetime, to_timedelta};

/// Times of Greenwich as points in time by the clock of a zone.
fn times(texts: &[&str], zone: &str) -> Series {
    let times = to_datetime(&Series::from_values("t", texts.to_vec()));
    times.dt().tz_localize("UTC").dt().tz_convert(zone)
}

/// A frame of these times and of numbers from 1.
fn events(texts: &[&str], zone: &str) -> DataFrame {
    let times = times(texts, zone);
    let numbers: Vec<i64> = (1..=texts.len() as i64).collect();
    let frame = DataFrame::from_columns([("v", numbers.into())]);
    frame.assign("t", &times)
}

/// The labels of a frame in Greenwich, and the values of `v`.
#[track_caller]
fn assert_rows(frame: &DataFrame, expected: &[(&str, i64)]) {
    let shown = frame.tz_convert("UTC").reset_index(false);
    let shown = shown.assign("label", shown.col("t").dt().strftime("%Y-%m-%d %H:%M"));
    let found = each_executor(|executor| {
        let table = shown.collect_on(executor)?;
        Ok((table.column::<String>("label")?, table.column::<i64>("v")?))
    });
    let labels: Vec<_> = expected.iter().map(|(label, _)| Some((*label).to_owned())).collect();
    let values: Vec<_> = expected.iter().map(|(_, value)| Some(*value)).collect();
    for (found_labels, found_values) in found {
        assert_eq!((&found_labels, &found_values), (&labels, &values));
    }
}

#[test]
fn days_of_a_zone_begin_at_its_midnight() {
    let frame = events(&["2024-03-30 23:30", "2024-03-31 10:00", "2024-03-31 22:30"], "Europe/Oslo");
    let daily = frame.resample("t", "D").sum();
    assert_rows(&daily, &[("2024-03-30 23:00", 3), ("2024-03-31 22:00", 3)]);
    let zoned = daily.index().to_series().dtype().unwrap();
    assert!(matches!(zoned, DataType::Timestamp(_, Some(zone)) if &*zone == "Europe/Oslo"));
    assert_rows(&frame.resample("t", "MS").sum(), &[("2024-02-29 23:00", 3), ("2024-03-31 22:00", 3)]);
    let weeks = frame.resample("t", "W").sum();
    assert_rows(&weeks, &[("2024-03-30 23:00", 3), ("2024-04-06 22:00", 3)]);
    let grouped = frame.assign("k", 1).groupby(["k"]).resample("t", "D").sum();
    assert_eq!(grouped.col("v").values::<i64>().unwrap(), [Some(3), Some(3)]);
}

#[test]
fn a_day_without_a_midnight_begins_where_the_clock_is_put_forward() {
    let texts = ["2024-09-07 12:00", "2024-09-08 03:30", "2024-09-08 04:30", "2024-09-09 12:00"];
    let frame = events(&texts, "America/Santiago");
    let daily = [("2024-09-07 04:00", 3), ("2024-09-08 04:00", 3), ("2024-09-09 03:00", 4)];
    assert_rows(&frame.resample("t", "D").sum(), &daily);
    let labelled = frame.set_index(["t"]);
    let until = labelled.loc_between(None, Some(Value::from("2024-09-07")));
    assert_eq!(until.col("v").values::<i64>().unwrap(), [Some(1), Some(2)]);
    let day = labelled.loc("2024-09-08");
    assert_eq!(day.col("v").values::<i64>().unwrap(), [Some(3)]);
    // A whole hour of Cairo is left out too.
    let frame = events(&["2024-04-25 10:00", "2024-04-26 10:00"], "Africa/Cairo");
    assert_rows(&frame.resample("t", "D").sum(), &[("2024-04-24 22:00", 1), ("2024-04-25 22:00", 2)]);
}

#[test]
fn a_day_with_two_midnights_begins_with_the_first() {
    let texts = ["2024-11-03 03:30", "2024-11-03 04:30", "2024-11-03 05:30", "2024-11-04 12:00"];
    let frame = events(&texts, "America/Havana");
    let daily = [("2024-11-02 04:00", 1), ("2024-11-03 04:00", 5), ("2024-11-04 05:00", 4)];
    assert_rows(&frame.resample("t", "D").sum(), &daily);
    let labelled = frame.set_index(["t"]);
    let until = labelled.loc_between(None, Some(Value::from("2024-11-02")));
    assert_eq!(until.col("v").values::<i64>().unwrap(), [Some(1)]);
    assert_eq!(labelled.loc("2024-11-03").col("v").values::<i64>().unwrap(), [Some(2), Some(3)]);
}

#[test]
fn hours_of_a_zone_are_of_equal_length() {
    // An hour is left out at 02:00.
    let frame = events(&["2021-03-28 00:10", "2021-03-28 00:50", "2021-03-28 01:10"], "Europe/Berlin");
    assert_rows(&frame.resample("t", "h").sum(), &[("2021-03-28 00:00", 3), ("2021-03-28 01:00", 3)]);
    // And one comes twice at 03:00.
    let frame = events(&["2021-10-31 00:10", "2021-10-31 01:10"], "Europe/Berlin");
    assert_rows(&frame.resample("t", "h").sum(), &[("2021-10-31 00:00", 1), ("2021-10-31 01:00", 2)]);
    let frame = events(&["2024-07-01 19:00", "2024-07-01 19:40"], "Asia/Kolkata");
    assert_rows(&frame.resample("t", "h").sum(), &[("2024-07-01 18:30", 1), ("2024-07-01 19:30", 2)]);
}

#[test]
fn rows_are_put_at_times_of_the_zone() {
    let frame = events(&["2024-03-29 23:00", "2024-03-31 22:00"], "Europe/Oslo").set_index(["t"]);
    let expected = [("2024-03-29 23:00", 1), ("2024-03-30 23:00", 1), ("2024-03-31 22:00", 2)];
    assert_rows(&frame.resample_index("D").ffill(), &expected);
    assert_rows(&frame.asfreq("D", Fill::Before), &expected);
}

#[test]
fn times_of_the_day_and_multiples_are_those_of_the_clock() {
    let frame = events(&["2024-07-01 08:00", "2024-07-01 12:00"], "Europe/Oslo").set_index(["t"]);
    assert_rows(&frame.between_time("09:00", "12:30"), &[("2024-07-01 08:00", 1)]);
    assert_rows(&frame.at_time("14:00"), &[("2024-07-01 12:00", 2)]);
    let floored = |text: &str, zone: &str, length: &str| {
        let floored = times(&[text], zone).dt().floor(length).dt().tz_convert("UTC");
        floored.dt().strftime("%Y-%m-%d %H:%M").values::<String>().unwrap().remove(0).unwrap()
    };
    assert_eq!(floored("2024-06-30 22:30", "Europe/Oslo", "D"), "2024-06-30 22:00");
    assert_eq!(floored("2024-06-30 19:10", "Asia/Kolkata", "h"), "2024-06-30 18:30");
}

#[test]
fn a_text_of_a_day_is_the_whole_day() {
    let texts = vec!["2024-01-01T09:00", "2024-01-02T09:00", "2024-01-03T09:00", "2024-02-01T00:00"];
    let t = to_datetime(&Series::from_values("t", texts));
    let frame = DataFrame::from_columns([("v", vec![1, 2, 3, 4].into())]).assign("t", &t).set_index(["t"]);
    let text = |text: &str| Some(Value::from(text));
    let values = |frame: DataFrame| -> Vec<i64> {
        frame.col("v").values::<i64>().unwrap().into_iter().flatten().collect()
    };
    assert_eq!(values(frame.loc_between(text("2024-01-01"), text("2024-01-02"))), [1, 2]);
    assert_eq!(values(frame.loc_between(text("2024-01-02"), None)), [2, 3, 4]);
    assert_eq!(values(frame.loc_between(text("2024-01-03 10:00"), text("2024"))), [4]);
    assert_eq!(values(frame.loc("2024-01-02")), [2]);
    assert_eq!(values(frame.loc("2024-01")), [1, 2, 3]);
    assert_eq!(values(frame.loc("2024-01-02T09:00")), [2]);
    assert_eq!(frame.loc("2023").check().unwrap_err().class(), "KeyError");
    // A text of a day is its midnight here, as in pandas.
    assert_eq!(values(frame.truncate(None, text("2024-01-02"))), [1]);
    let backwards = frame.sort_index(tharsis_dataframe::Sort::descending());
    assert_eq!(values(backwards.loc_between(text("2024-01-02"), text("2024-01-01"))), [2, 1]);
}

#[test]
fn bounds_between_whole_labels_are_compared_as_they_are() {
    let frame = DataFrame::from_columns([("k", vec![1, 2, 3].into()), ("v", vec![1, 2, 3].into())]);
    let kept = frame.set_index(["k"]).truncate(Some(Value::from(1.5)), None);
    assert_eq!(kept.col("v").values::<i64>().unwrap(), [Some(2), Some(3)]);
}

#[test]
fn nearest_keys_of_durations_are_compared_as_lengths() {
    let of = |text: &str, unit: TimeUnit| {
        let length = to_timedelta(&Series::from_values("k", vec![text])).astype(DataType::Duration(unit));
        length.rename("k").to_frame().assign("n", 1)
    };
    let near = |left: &DataFrame, right: &DataFrame, tolerance: &str| {
        let found = left.merge_asof(right, AsOf::on("k").tolerance(tolerance));
        found.col("n_y").values::<i64>().unwrap()[0]
    };
    let (minutes, start) = (of("10min", TimeUnit::Microsecond), of("0s", TimeUnit::Microsecond));
    assert_eq!(near(&minutes, &start, "1s"), None);
    assert_eq!(near(&minutes, &start, "10min"), Some(1));
    assert_eq!(near(&of("1s", TimeUnit::Millisecond), &of("900s", TimeUnit::Second), "1h"), None);
    let whole = DataFrame::from_columns([("k", vec![1].into())]);
    let float = DataFrame::from_columns([("k", vec![1.0].into())]);
    for (left, right) in [(&whole, &float), (&whole, &start), (&start, &whole)] {
        assert_eq!(left.merge_asof(right, AsOf::on("k")).check().unwrap_err().class(), "ValueError");
    }
}

#[test]
fn texts_are_times_as_pandas_reads_them() {
    let read = |text: &str| to_datetime(&Series::from_values("t", vec![text]));
    for text in ["1500-01-01", "9999-12-31"] {
        assert_eq!(read(text).dt().strftime("%Y-%m-%d").values::<String>().unwrap(), [Some(text.to_owned())]);
    }
    assert_eq!(read("2024-01-01T00:00:00+02:00").collect().unwrap_err().class(), "ValueError");
}
