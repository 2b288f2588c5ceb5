//! Methods of the accessor `dt`, and conversions of texts to times and numbers.

use super::Failure;
use super::args::Args;
use super::row::Row;
use super::value::Value;
use tharsis_dataframe::{
    DataFrame, Series, Times, bdate_range, bdate_range_until, date_range, date_range_until, timedelta_range,
    to_datetime, to_datetime_as, to_datetime_or_missing, to_datetime_utc, to_numeric, to_numeric_or_missing,
    to_timedelta, to_timedelta_or_missing,
};

pub(super) const TIMES: &[Row] = &[
    ("pd.Series.dt.year", "()", "the year", part),
    ("pd.Series.dt.month", "()", "the month, from 1", part),
    ("pd.Series.dt.day", "()", "the day of the month, from 1", part),
    ("pd.Series.dt.hour", "()", "the hour", part),
    ("pd.Series.dt.minute", "()", "the minute of the hour", part),
    ("pd.Series.dt.second", "()", "the second of the minute", part),
    ("pd.Series.dt.microsecond", "()", "the microseconds of the second", part),
    ("pd.Series.dt.nanosecond", "()", "the nanoseconds of the microsecond", part),
    ("pd.Series.dt.quarter", "()", "the quarter of the year, from 1", part),
    ("pd.Series.dt.dayofweek", "()", "the day of the week, from 0 for Monday", part),
    ("pd.Series.dt.weekday", "()", "the day of the week, from 0 for Monday", part),
    ("pd.Series.dt.dayofyear", "()", "the day of the year, from 1", part),
    ("pd.Series.dt.date", "()", "the day, as a date", part),
    ("pd.Series.dt.normalize", "()", "midnight of the same day", part),
    ("pd.Series.dt.days_in_month", "()", "the number of days of the month", part),
    ("pd.Series.dt.is_month_start", "()", "whether it is the first day of a month", part),
    ("pd.Series.dt.is_month_end", "()", "whether it is the last day of a month", part),
    ("pd.Series.dt.is_quarter_start", "()", "whether it is the first day of a quarter", part),
    ("pd.Series.dt.is_quarter_end", "()", "whether it is the last day of a quarter", part),
    ("pd.Series.dt.is_year_start", "()", "whether it is the first day of a year", part),
    ("pd.Series.dt.is_year_end", "()", "whether it is the last day of a year", part),
    ("pd.Series.dt.is_leap_year", "()", "whether the year has a 29th of February", part),
    ("pd.Series.dt.month_name", "()", "the English name of the month", part),
    ("pd.Series.dt.day_name", "()", "the English name of the day", part),
    ("pd.Series.dt.total_seconds", "()", "the length of a duration in seconds", part),
    ("pd.Series.dt.days", "()", "the whole days of a duration", part),
    ("pd.Series.dt.seconds", "()", "the seconds of a duration beside its days", part),
    ("pd.Series.dt.microseconds", "()", "the microseconds of a duration beside its seconds", part),
    ("pd.Series.dt.nanoseconds", "()", "the nanoseconds of a duration beside its microseconds", part),
    ("pd.Series.dt.components", "()", "the parts of a duration as columns", parts),
    ("pd.Series.dt.isocalendar", "()", "year, week and day by ISO 8601 as columns", parts),
    ("pd.Series.dt.tz", "()", "the name of the zone", property),
    ("pd.Series.dt.unit", "()", "the unit of the times", property),
    ("pd.Series.dt.as_unit", "(unit)", "the times in another unit", with_text),
    ("pd.Series.dt.tz_localize", "(tz)", "local times as times of a zone", localized),
    ("pd.Series.dt.tz_convert", "(tz)", "the same moments in another zone", with_text),
    ("pd.to_timedelta", "(arg, errors='raise')", "texts as durations", timedelta),
    ("pd.timedelta_range", "(start, periods, freq='D')", "durations in equal steps", spans),
    ("pd.Series.dt.strftime", "(date_format)", "the time as a text", with_text),
    ("pd.Series.dt.floor", "(freq)", "the time rounded down", with_text),
    ("pd.Series.dt.ceil", "(freq)", "the time rounded up", with_text),
    ("pd.Series.dt.round", "(freq)", "the time rounded", with_text),
    ("pd.to_datetime", "(arg, errors='raise', utc=False, format=None)", "texts as times", datetime),
    ("pd.to_numeric", "(arg, errors='raise')", "texts as numbers", numeric),
    ("pd.date_range", "(start, end=None, periods=None, freq='D')", "times in equal steps", range),
    ("pd.bdate_range", "(start, end=None, periods=None)", "days from Monday to Friday", business_days),
    ("pd.DataFrame.tz_localize", "(tz)", "labels that are local times as times of a zone", zoned),
    ("pd.DataFrame.tz_convert", "(tz)", "labels that are times as the same moments in another zone", zoned),
    ("pd.Series.tz_localize", "(tz)", "labels that are local times as times of a zone", zoned),
    ("pd.Series.tz_convert", "(tz)", "labels that are times as the same moments in another zone", zoned),
];

fn made(series: Series) -> Result<Value, Failure> {
    Ok(Value::Series(series))
}

fn part(name: &str, args: &mut Args) -> Result<Value, Failure> {
    let times = args.series()?.dt();
    let step: fn(&Times) -> Series = match name {
        "year" => Times::year,
        "month" => Times::month,
        "day" => Times::day,
        "hour" => Times::hour,
        "minute" => Times::minute,
        "second" => Times::second,
        "microsecond" => Times::microsecond,
        "nanosecond" => Times::nanosecond,
        "quarter" => Times::quarter,
        "dayofweek" | "weekday" => Times::dayofweek,
        "dayofyear" => Times::dayofyear,
        "date" => Times::date,
        "normalize" => Times::normalize,
        "days_in_month" => Times::days_in_month,
        "is_month_start" => Times::is_month_start,
        "is_month_end" => Times::is_month_end,
        "is_quarter_start" => Times::is_quarter_start,
        "is_quarter_end" => Times::is_quarter_end,
        "is_year_start" => Times::is_year_start,
        "is_year_end" => Times::is_year_end,
        "is_leap_year" => Times::is_leap_year,
        "month_name" => Times::month_name,
        "day_name" => Times::day_name,
        "days" => Times::days,
        "seconds" => Times::seconds,
        "microseconds" => Times::microseconds,
        "nanoseconds" => Times::nanoseconds,
        _ => Times::total_seconds,
    };
    made(step(&times))
}

fn with_text(name: &str, args: &mut Args) -> Result<Value, Failure> {
    let times = args.series()?.dt();
    let (argument, step): (&str, fn(&Times, &str) -> Series) = match name {
        "strftime" => ("date_format", Times::strftime),
        "floor" => ("freq", Times::floor),
        "ceil" => ("freq", Times::ceil),
        "as_unit" => ("unit", Times::as_unit),
        "tz_convert" => ("tz", Times::tz_convert),
        _ => ("freq", Times::round),
    };
    made(step(&times, &args.need(1, argument)?.text()?))
}

fn parts(name: &str, args: &mut Args) -> Result<Value, Failure> {
    let times = args.series()?.dt();
    Ok(Value::Frame(if name == "components" { times.components() } else { times.isocalendar() }))
}

fn property(name: &str, args: &mut Args) -> Result<Value, Failure> {
    let times = args.series()?.dt();
    Ok(match name {
        "tz" => times.tz()?.map_or(Value::None, |zone| Value::Scalar(zone.into())),
        _ => Value::Scalar(times.unit()?.into()),
    })
}

fn localized(_: &str, args: &mut Args) -> Result<Value, Failure> {
    let times = args.series()?.dt();
    made(match args.need(1, "tz")? {
        Value::None => times.tz_remove(),
        zone => times.tz_localize(&zone.text()?),
    })
}

fn timedelta(_: &str, args: &mut Args) -> Result<Value, Failure> {
    let texts = args.need(0, "arg")?.series()?;
    let coerce = args.choice(1, "errors", &["raise", "coerce"])? == "coerce";
    made(if coerce { to_timedelta_or_missing(&texts) } else { to_timedelta(&texts) })
}

fn spans(_: &str, args: &mut Args) -> Result<Value, Failure> {
    let start = args.need(0, "start")?.text()?;
    let periods = args.count(2, "periods", 1)?;
    let frequency = args.given(3, "freq").map(|frequency| frequency.text()).transpose()?;
    made(timedelta_range(&start, periods, frequency.as_deref().unwrap_or("D")))
}

fn datetime(_: &str, args: &mut Args) -> Result<Value, Failure> {
    let texts = args.series()?;
    let coerce = args.choice(1, "errors", &["raise", "coerce"])? == "coerce";
    let format = args.given(usize::MAX, "format").map(|format| format.text()).transpose()?;
    if args.flag(usize::MAX, "utc", false)? {
        if coerce {
            return Err(Failure::missing("to_datetime: errors='coerce' with utc=True is not implemented"));
        }
        return made(to_datetime_utc(&texts, format.as_deref()));
    }
    made(match (coerce, format) {
        (false, Some(format)) => to_datetime_as(&texts, &format),
        (false, None) => to_datetime(&texts),
        (true, None) => to_datetime_or_missing(&texts),
        (true, Some(_)) => {
            return Err(Failure::missing("to_datetime: errors='coerce' with a format is not implemented"));
        }
    })
}

fn numeric(_: &str, args: &mut Args) -> Result<Value, Failure> {
    let texts = args.series()?;
    let coerce = args.choice(1, "errors", &["raise", "coerce"])? == "coerce";
    made(if coerce { to_numeric_or_missing(&texts) } else { to_numeric(&texts) })
}

fn range(_: &str, args: &mut Args) -> Result<Value, Failure> {
    let start = args.need(0, "start")?.text()?;
    let end = args.given(1, "end").map(|end| end.text()).transpose()?;
    let periods = args.given(2, "periods").map(|periods| periods.integer()).transpose()?;
    let frequency = args.given(3, "freq").map(|frequency| frequency.text()).transpose()?;
    let frequency = frequency.as_deref().unwrap_or("D");
    made(match (end, periods) {
        (Some(end), None) => date_range_until(&start, &end, frequency),
        (None, Some(periods)) => date_range(&start, periods.max(0) as usize, frequency),
        _ => return Err(Failure::value("date_range: expected a start with an end or with periods")),
    })
}

fn business_days(_: &str, args: &mut Args) -> Result<Value, Failure> {
    let start = args.need(0, "start")?.text()?;
    let end = args.given(1, "end").map(|end| end.text()).transpose()?;
    let periods = args.given(2, "periods").map(|periods| periods.integer()).transpose()?;
    made(match (end, periods) {
        (Some(end), None) => bdate_range_until(&start, &end),
        (None, Some(periods)) => bdate_range(&start, periods.max(0) as usize),
        _ => return Err(Failure::value("bdate_range: expected a start with an end or with periods")),
    })
}

fn zoned(name: &str, args: &mut Args) -> Result<Value, Failure> {
    let of = args.need(0, "self")?;
    let zone = match args.need(1, "tz")? {
        Value::None => None,
        zone => Some(zone.text()?),
    };
    let step = |frame: &DataFrame| match (name, &zone) {
        (_, None) => frame.tz_remove(),
        ("tz_localize", Some(zone)) => frame.tz_localize(zone),
        (_, Some(zone)) => frame.tz_convert(zone),
    };
    Ok(match of {
        Value::Series(series) => {
            let changed = series.through(|frame, _| step(frame));
            changed.check()?;
            Value::Series(changed)
        }
        of => {
            let changed = step(&of.frame()?);
            changed.check()?;
            Value::Frame(changed)
        }
    })
}
