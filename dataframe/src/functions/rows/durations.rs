//! Lengths of time in texts.

use super::kernel::Constants;

const NANOSECONDS: i64 = 1_000_000_000;
const DAY_SECONDS: i64 = 86_400;

/// The nanoseconds of a text such as `1 days 02:03:04.5`, `-3h`, `5 min 2s`. A sign holds for all units
/// behind it, but for no clock behind a unit: `-1 days +23:00:00` is an hour before.
pub(crate) fn duration(text: &str, _: &Constants) -> std::result::Result<i64, String> {
    let wrong = || format!("{text:?} is no length of time");
    let (sign, mut rest) = match text.trim().strip_prefix('-') {
        Some(rest) => (-1, rest.trim_start()),
        None => (1, text.trim().trim_start_matches('+')),
    };
    if rest.is_empty() {
        return Err(wrong());
    }
    let (mut total, mut of_clock) = (0_i128, 0_i128);
    let mut has_units = false;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        if rest[digits..].starts_with(':') {
            of_clock = clock(rest).ok_or_else(wrong)? * if has_units { 1 } else { sign };
            break;
        }
        let number: f64 = rest[..digits].parse().map_err(|_| wrong())?;
        rest = rest[digits..].trim_start();
        let letters = rest.find(|c: char| !c.is_alphabetic()).unwrap_or(rest.len());
        let unit = length_of(&rest[..letters]).ok_or_else(wrong)?;
        total = total.checked_add((number * unit as f64).round() as i128).ok_or_else(wrong)?;
        has_units = true;
        rest = rest[letters..].trim_start().trim_start_matches(',').trim_start();
        rest = rest.strip_prefix('+').unwrap_or(rest);
    }
    let total = total.checked_mul(sign).and_then(|total| total.checked_add(of_clock));
    total.and_then(|total| i64::try_from(total).ok()).ok_or_else(wrong)
}

/// The nanoseconds of `hours:minutes:seconds`.
fn clock(text: &str) -> Option<i128> {
    let mut parts = text.split(':');
    let (hours, minutes) = (parts.next()?.parse::<i128>().ok()?, parts.next()?.parse::<i128>().ok()?);
    let seconds = parts.next().unwrap_or("0");
    let (whole, fraction) = seconds.split_once('.').unwrap_or((seconds, ""));
    let fraction: i128 = format!("{:0<9}", fraction.get(..fraction.len().min(9))?).parse().ok()?;
    let seconds = hours.checked_mul(60)?.checked_add(minutes)?.checked_mul(60)?;
    let seconds = seconds.checked_add(whole.parse::<i128>().ok()?)?;
    parts.next().is_none().then_some(seconds.checked_mul(i128::from(NANOSECONDS))?.checked_add(fraction)?)
}

/// The nanoseconds of a unit by one of its names.
fn length_of(unit: &str) -> Option<i64> {
    Some(match unit {
        "W" | "w" | "weeks" | "week" => 7 * DAY_SECONDS * NANOSECONDS,
        "D" | "d" | "days" | "day" => DAY_SECONDS * NANOSECONDS,
        "h" | "H" | "hours" | "hour" | "hr" => 3_600 * NANOSECONDS,
        "m" | "min" | "T" | "minutes" | "minute" => 60 * NANOSECONDS,
        "s" | "S" | "sec" | "seconds" | "second" => NANOSECONDS,
        "ms" | "milli" | "millis" | "milliseconds" | "millisecond" => 1_000_000,
        "us" | "micro" | "micros" | "microseconds" | "microsecond" => 1_000,
        "ns" | "nano" | "nanos" | "nanoseconds" | "nanosecond" | "" => 1,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nanoseconds(text: &str) -> std::result::Result<i64, String> {
        duration(text, &Constants(Vec::new()))
    }

    #[test]
    fn a_clock_behind_units_has_no_sign_of_theirs() {
        const HOUR: i64 = 3_600 * NANOSECONDS;
        for (text, hours) in [
            ("-1 days +23:00:00", -1),
            ("-1 days 23:00:00", -1),
            ("-1 days 2h", -26),
            ("-02:00:00", -2),
            ("1 days +02:00:00", 26),
            ("-1 days", -24),
        ] {
            assert_eq!(nanoseconds(text), Ok(hours * HOUR), "{text}");
        }
        let nines = "9".repeat(40);
        assert!(nanoseconds(&format!("{nines}W {nines}W")).is_err());
        assert!(nanoseconds(&format!("{nines}:00:00")).is_err());
    }
}
