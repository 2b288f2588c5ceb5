//! Texts as times: by ISO 8601, and by formats of Python's codes.
//!
//! Times are microseconds, of which the years 1 to 9999 have enough; the library goes by nanoseconds.

use super::kernel::Constants;

const DAY: i64 = 86_400_000_000;
const SECOND: i64 = 1_000_000;

/// The number of days of a month.
pub(crate) fn days_of(year: i64, month: i64) -> i64 {
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    match month {
        2 => 28 + i64::from(leap),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// The days from 1970 to a date of the calendar that is in use today.
fn days_since_1970(year: i64, month: i64, day: i64) -> i64 {
    // Years that begin with March, so that the day of February comes last.
    let year = if month <= 2 { year - 1 } else { year };
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    year * 365 + year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400) + of_year - 719_468
}

/// The parts of a time.
#[derive(Clone, Copy, Debug)]
struct Parts {
    year: i64,
    month: i64,
    day: i64,
    /// The day of the year, which stands for month and day.
    ordinal: Option<i64>,
    hour: i64,
    afternoon: Option<bool>,
    minute: i64,
    second: i64,
    micros: i64,
    /// Microseconds by which the clock is ahead of UTC.
    offset: i64,
}

impl Default for Parts {
    fn default() -> Parts {
        Parts {
            year: 1900,
            month: 1,
            day: 1,
            ordinal: None,
            hour: 0,
            afternoon: None,
            minute: 0,
            second: 0,
            micros: 0,
            offset: 0,
        }
    }
}

impl Parts {
    /// The microseconds since 1970; `None` for a day or an hour that is none.
    fn time(self) -> Option<i64> {
        let dates = (1..=9999).contains(&self.year)
            && (1..=12).contains(&self.month)
            && (1..=days_of(self.year, self.month)).contains(&self.day);
        let hour = match self.afternoon {
            None => self.hour,
            Some(afternoon) if (1..=12).contains(&self.hour) => {
                self.hour % 12 + if afternoon { 12 } else { 0 }
            }
            Some(_) => return None,
        };
        if !dates || hour > 23 || self.minute > 59 || self.second > 59 {
            return None;
        }
        let days = match self.ordinal {
            None => days_since_1970(self.year, self.month, self.day),
            Some(ordinal) if (1..=337 + days_of(self.year, 2)).contains(&ordinal) => {
                days_since_1970(self.year, 1, 1) + ordinal - 1
            }
            Some(_) => return None,
        };
        Some(days * DAY + ((hour * 60 + self.minute) * 60 + self.second) * SECOND + self.micros - self.offset)
    }
}

/// The rest of a text.
struct Rest<'a>(&'a str);

impl Rest<'_> {
    /// A number of so many digits.
    fn digits(&mut self, least: usize, most: usize) -> Option<i64> {
        let count = self.0.bytes().take(most).take_while(u8::is_ascii_digit).count();
        let number = (least <= count).then(|| self.0[..count].parse().ok()).flatten()?;
        self.0 = &self.0[count..];
        Some(number)
    }

    /// The microseconds of decimals of a second; those behind the sixth are cut.
    fn fraction(&mut self) -> Option<i64> {
        let count = self.0.bytes().take(9).take_while(u8::is_ascii_digit).count();
        let text = format!("{:0<6}", &self.0[..count]);
        let micros = (0 < count).then(|| text[..6].parse().ok()).flatten()?;
        self.0 = &self.0[count..];
        Some(micros)
    }

    /// An offset from UTC, which ends before a blank.
    fn offset(&mut self) -> Option<i64> {
        let end = self.0.find(char::is_whitespace).unwrap_or(self.0.len());
        let found = offset_of(&self.0[..end])?;
        self.0 = &self.0[end..];
        Some(found)
    }

    fn sign(&mut self, sign: char) -> bool {
        let rest = self.0.strip_prefix(sign);
        self.0 = rest.unwrap_or(self.0);
        rest.is_some()
    }

    /// The place of the name with which the text goes on; of two, the longer one.
    fn name(&mut self, names: &[&str]) -> Option<i64> {
        let begins =
            |name: &str| self.0.get(..name.len()).is_some_and(|text| text.eq_ignore_ascii_case(name));
        let found =
            names.iter().enumerate().filter(|(_, name)| begins(name)).max_by_key(|(_, name)| name.len());
        let (at, name) = found?;
        self.0 = &self.0[name.len()..];
        Some(at as i64)
    }
}

/// The time of a text by ISO 8601, of which an end may be left out: `2024`, `2024-05-06 07:08:09.5`. An empty
/// text is a missing time. With [`IN_UTC`], it may have an offset, and the time is that of UTC.
pub(super) fn iso(text: &str, constants: &Constants) -> Result<Option<i64>, String> {
    of_iso(text, constants.whole(0) == Some(IN_UTC)).map_err(|fault| match fault {
        Fault::Form => format!("{text:?} is no time"),
        Fault::Offset => offset(text),
    })
}

/// The constant for times of UTC.
pub(crate) const IN_UTC: i64 = 1;

/// As [`iso`], and missing for a text that is no time. One with an offset is a time.
pub(super) fn iso_or_none(text: &str, constants: &Constants) -> Result<Option<i64>, String> {
    match of_iso(text, constants.whole(0) == Some(IN_UTC)) {
        Ok(time) => Ok(time),
        Err(Fault::Form) => Ok(None),
        Err(Fault::Offset) => Err(offset(text)),
    }
}

/// The error for a text with an offset.
fn offset(text: &str) -> String {
    format!(
        "{text:?} has an offset from UTC: times without a zone cannot hold it; read it as one of UTC (utc=True, \
         to_datetime_utc), or cut it off and give the zone with tz_localize"
    )
}

/// The reason why a text is no time without a zone.
enum Fault {
    Form,
    Offset,
}

fn of_iso(text: &str, in_utc: bool) -> Result<Option<i64>, Fault> {
    let mut rest = Rest(text.trim());
    if rest.0.is_empty() || rest.0.eq_ignore_ascii_case("nat") {
        return Ok(None);
    }
    let wrong = || Fault::Form;
    let year = rest.digits(4, 4).ok_or_else(wrong)?;
    let mut parts = Parts { year, ..Parts::default() };
    let basic = rest.0.len() >= 4 && rest.0.bytes().take(4).all(|byte| byte.is_ascii_digit());
    let dates: [&mut i64; 2] = [&mut parts.month, &mut parts.day];
    let mut is_whole = true;
    for part in dates {
        if !basic && !rest.sign('-') {
            is_whole = false;
            break;
        }
        *part = rest.digits(2, 2).ok_or_else(wrong)?;
    }
    if is_whole && (rest.sign('T') || rest.sign(' ')) {
        parts.hour = rest.digits(2, 2).ok_or_else(wrong)?;
        if rest.sign(':') {
            parts.minute = rest.digits(2, 2).ok_or_else(wrong)?;
            if rest.sign(':') {
                parts.second = rest.digits(2, 2).ok_or_else(wrong)?;
                if rest.sign('.') {
                    parts.micros = rest.fraction().ok_or_else(wrong)?;
                }
            }
        }
        if let Some(offset) = offset_of(rest.0.trim_start()) {
            if !in_utc {
                return Err(Fault::Offset);
            }
            return parts.time().map(|local| Some(local - offset)).ok_or_else(wrong);
        }
    }
    if rest.0.is_empty() { parts.time().map(Some).ok_or_else(wrong) } else { Err(wrong()) }
}

/// The microseconds by which a clock is ahead of UTC, of `Z`, `+02:00`, `-0130` or the like.
fn offset_of(text: &str) -> Option<i64> {
    if text.eq_ignore_ascii_case("z") || text.eq_ignore_ascii_case("utc") {
        return Some(0);
    }
    let (sign, digits) = match text.split_at_checked(1)? {
        ("+", digits) => (1, digits),
        ("-", digits) => (-1, digits),
        _ => return None,
    };
    let mut rest = Rest(digits);
    let mut seconds = rest.digits(2, 2)? * 3_600;
    for unit in [60, 1] {
        if !rest.0.is_empty() {
            rest.sign(':');
            seconds += rest.digits(2, 2).filter(|part| *part < 60)? * unit;
        }
    }
    (rest.0.is_empty() && seconds < 86_400).then_some(sign * seconds * SECOND)
}

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
const SHORT_MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// Whether each code of a format is one that [`by_format`] reads.
pub(crate) fn reads(format: &str) -> bool {
    let mut signs = format.chars();
    while let Some(sign) = signs.next() {
        if sign == '%' && !signs.next().is_some_and(|code| "YmdHMSfyjbBpIz%".contains(code)) {
            return false;
        }
    }
    true
}

/// Whether a format has the code of an offset from UTC.
pub(crate) fn has_offset(format: &str) -> bool {
    let mut signs = format.chars();
    while let Some(sign) = signs.next() {
        if sign == '%' && signs.next() == Some('z') {
            return true;
        }
    }
    false
}

/// The time of a text by a format of Python's codes; that of UTC, if the format has an offset.
pub(super) fn by_format(text: &str, format: &Constants) -> Result<Option<i64>, String> {
    let format = format.text(0).unwrap_or_default();
    if text.trim().is_empty() || text.trim().eq_ignore_ascii_case("nat") {
        return Ok(None);
    }
    let parsed = parsed(text.trim(), format).and_then(Parts::time);
    parsed.map(Some).ok_or_else(|| format!("time data {text:?} does not match the format {format:?}"))
}

fn parsed(text: &str, format: &str) -> Option<Parts> {
    let (mut rest, mut parts) = (Rest(text), Parts::default());
    let mut signs = format.trim().chars();
    while let Some(sign) = signs.next() {
        if sign.is_whitespace() {
            rest.0 = rest.0.trim_start();
            continue;
        }
        if sign != '%' {
            if !rest.sign(sign) {
                return None;
            }
            continue;
        }
        match signs.next()? {
            'Y' => parts.year = rest.digits(4, 4)?,
            // As POSIX has it.
            'y' => parts.year = rest.digits(2, 2).map(|year| year + if year < 69 { 2000 } else { 1900 })?,
            'm' => parts.month = rest.digits(1, 2)?,
            'd' => parts.day = rest.digits(1, 2)?,
            'j' => parts.ordinal = Some(rest.digits(1, 3)?),
            'H' | 'I' => parts.hour = rest.digits(1, 2)?,
            'M' => parts.minute = rest.digits(1, 2)?,
            'S' => parts.second = rest.digits(1, 2)?,
            'f' => parts.micros = rest.fraction()?,
            'b' => parts.month = rest.name(&SHORT_MONTHS)? + 1,
            'B' => parts.month = rest.name(&MONTHS)? + 1,
            'z' => parts.offset = rest.offset()?,
            'p' => parts.afternoon = Some(rest.name(&["AM", "PM"])? == 1),
            '%' if rest.sign('%') => {}
            _ => return None,
        }
    }
    rest.0.is_empty().then_some(parts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion::common::ScalarValue;

    fn by(text: &str, format: &str) -> Option<i64> {
        by_format(text, &Constants(vec![ScalarValue::from(format)])).ok().flatten()
    }

    fn of(text: &str) -> Option<i64> {
        iso(text, &Constants(Vec::new())).ok().flatten()
    }

    #[test]
    fn days_are_counted_from_1970() {
        assert_eq!(of("1970-01-01"), Some(0));
        assert_eq!(of("2024-02-29"), Some(19_782 * DAY));
        assert_eq!(of("1969-12-31T23:59:59.5"), Some(-SECOND / 2));
        assert_eq!(of("1500-01-01"), Some(-171_664 * DAY));
        assert_eq!(of("9999-12-31"), Some(2_932_896 * DAY));
    }

    #[test]
    fn an_end_may_be_left_out_but_nothing_else() {
        for text in
            ["2024", "2024-01", "20240101", "2024-01-01 00", "2024-01-01T00:00", " 2024-01-01 00:00:00.0 "]
        {
            assert_eq!(of(text), of("2024-01-01"), "{text}");
        }
        for text in
            ["24-01-01", "2024-13-01", "2024-02-30", "2024-01 00:00", "2024-01-01T24:00", "x", "2024-01-01x"]
        {
            assert!(iso(text, &Constants(Vec::new())).is_err(), "{text}");
        }
        assert_eq!(iso("", &Constants(Vec::new())), Ok(None));
    }

    #[test]
    fn an_offset_is_refused() {
        for end in ["Z", "+02:00", "-0130", " +02"] {
            let error = iso(&format!("2024-01-01T00:00:00{end}"), &Constants(Vec::new())).unwrap_err();
            assert!(error.contains("offset"), "{error}");
        }
    }

    #[test]
    fn an_offset_is_taken_away_from_the_clock() {
        let utc = |text: &str| iso(text, &Constants(vec![ScalarValue::from(IN_UTC)])).ok().flatten();
        assert_eq!(utc("2024-01-01T00:00:00+02:00"), of("2023-12-31T22:00:00"));
        assert_eq!(utc("2024-01-01 00:00:00.5 -0130"), of("2024-01-01T01:30:00.5"));
        for text in ["2024-01-01T00Z", "2024-01-01 00:00 utc", "2024-01-01T01:00+01", "2024-01-01"] {
            assert_eq!(utc(text), of("2024-01-01"), "{text}");
        }
        for text in
            ["2024-01-01T00:00+2", "2024-01-01T00:00+25:00", "2024-01-01T00:00+02:60", "2024-02-30T00Z"]
        {
            assert_eq!(utc(text), None, "{text}");
        }
        assert_eq!(by("01.01.2024 +0200 00:30", "%d.%m.%Y %z %H:%M"), of("2023-12-31T22:30"));
        assert_eq!(by("2024-01-01Z", "%Y-%m-%d%z"), of("2024-01-01"));
        assert_eq!(by("2024-01-01", "%Y-%m-%d%z"), None);
        assert!(has_offset("%H%z") && !has_offset("%%z"));
    }

    #[test]
    fn formats_are_those_of_python() {
        assert_eq!(
            by("2024-01-01 00:00:00,123456", "%Y-%m-%d %H:%M:%S,%f"),
            of("2024-01-01T00:00:00.123456")
        );
        assert_eq!(by("202401010000005", "%Y%m%d%H%M%S%f"), of("2024-01-01T00:00:00.5"));
        assert_eq!(by("01/02/69", "%d/%m/%y"), of("1969-02-01"));
        assert_eq!(by("01/02/68", "%d/%m/%y"), of("2068-02-01"));
        assert_eq!(by("5 May 2024 12:30 AM", "%d %B %Y %I:%M %p"), of("2024-05-05T00:30"));
        assert_eq!(by("2024-060", "%Y-%j"), of("2024-02-29"));
        assert_eq!(by("100% 2024", "100%% %Y"), of("2024"));
        assert_eq!(by("2024-01-01 x", "%Y-%m-%d"), None);
        assert!(reads("%Y-%m-%d") && reads("%z") && !reads("%Y %U") && !reads("%"));
    }
}
