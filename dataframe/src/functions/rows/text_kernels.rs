//! Python's methods of texts, for one text.

use super::kernel::{Constants, Kernel};
use super::time_texts::{by_format, iso, iso_or_none};
use icu_normalizer::{ComposingNormalizerBorrowed, DecomposingNormalizerBorrowed};

/// The functions by name.
pub(super) const KERNELS: &[(&str, Kernel)] = &[
    ("tharsis_text_len", Kernel::Whole(|text, _| text.chars().count() as i64)),
    ("tharsis_text_title", Kernel::Text(|text, _| Some(title(text)))),
    ("tharsis_text_capitalize", Kernel::Text(|text, _| Some(capitalize(text)))),
    ("tharsis_text_swapcase", Kernel::Text(|text, _| Some(swapcase(text)))),
    ("tharsis_text_strip", Kernel::Text(|text, constants| Some(strip(text, constants).to_owned()))),
    ("tharsis_text_find", Kernel::Whole(|text, constants| position(text, constants, true))),
    ("tharsis_text_rfind", Kernel::Whole(|text, constants| position(text, constants, false))),
    ("tharsis_text_slice", Kernel::Text(|text, constants| Some(slice(text, constants)))),
    ("tharsis_text_get", Kernel::Text(get)),
    ("tharsis_text_pad", Kernel::Text(|text, constants| Some(pad(text, constants)))),
    ("tharsis_text_normalize", Kernel::Text(|text, constants| Some(normalize(text, constants)))),
    ("tharsis_text_zfill", Kernel::Text(|text, constants| Some(zfill(text, constants)))),
    ("tharsis_text_split", Kernel::Texts(split)),
    ("tharsis_text_rsplit", Kernel::Texts(rsplit)),
    ("tharsis_text_removeprefix", Kernel::Text(removeprefix)),
    ("tharsis_text_removesuffix", Kernel::Text(removesuffix)),
    (TIME_OF_ISO, Kernel::Perhaps(iso)),
    (TIME_OR_NONE, Kernel::Perhaps(iso_or_none)),
    (TIME_BY_FORMAT, Kernel::Perhaps(by_format)),
    ("tharsis_text_isalpha", Kernel::Truth(|text| all(text, char::is_alphabetic))),
    ("tharsis_text_isalnum", Kernel::Truth(|text| all(text, |c| c.is_alphabetic() || c.is_numeric()))),
    ("tharsis_text_isdecimal", Kernel::Truth(|text| all(text, is_decimal))),
    ("tharsis_text_isdigit", Kernel::Truth(|text| all(text, |c| is_decimal(c) || is_other_digit(c)))),
    ("tharsis_text_isnumeric", Kernel::Truth(|text| all(text, char::is_numeric))),
    ("tharsis_text_isspace", Kernel::Truth(|text| all(text, char::is_whitespace))),
    ("tharsis_text_isupper", Kernel::Truth(|text| cased(text, char::is_uppercase, char::is_lowercase))),
    ("tharsis_text_islower", Kernel::Truth(|text| cased(text, char::is_lowercase, char::is_uppercase))),
    ("tharsis_text_istitle", Kernel::Truth(|text| text.chars().any(is_cased) && title(text) == *text)),
];

/// The names of the functions that make times of texts, as microseconds.
pub(crate) const TIME_OF_ISO: &str = "tharsis_time_of_iso";
pub(crate) const TIME_OR_NONE: &str = "tharsis_time_or_none";
pub(crate) const TIME_BY_FORMAT: &str = "tharsis_time_by_format";

/// A time of ISO 8601 with its month, day and second, where it ends before them.
pub(crate) fn whole_time(text: &str) -> String {
    let text = text.trim();
    match text.len() {
        4 => format!("{text}-01-01"),
        7 => format!("{text}-01"),
        16 if text.as_bytes()[13] == b':' => format!("{text}:00"),
        _ => text.to_owned(),
    }
}

/// Whether there are characters, and all are of a kind.
fn all(text: &str, kind: fn(char) -> bool) -> bool {
    !text.is_empty() && text.chars().all(kind)
}

/// Whether some characters are of one case, and none of the other.
fn cased(text: &str, is: fn(char) -> bool, is_not: fn(char) -> bool) -> bool {
    text.chars().any(is) && !text.chars().any(is_not)
}

fn is_cased(c: char) -> bool {
    c.is_uppercase() || c.is_lowercase()
}

/// The zeros of the decimal digits in the scripts of Unicode; the other nine follow each.
const ZEROS: &[u32] = &[
    0x30, 0x660, 0x6f0, 0x7c0, 0x966, 0x9e6, 0xa66, 0xae6, 0xb66, 0xbe6, 0xc66, 0xce6, 0xd66, 0xde6, 0xe50,
    0xed0, 0xf20, 0x1040, 0x1090, 0x17e0, 0x1810, 0x1946, 0x19d0, 0x1a80, 0x1a90, 0x1b50, 0x1bb0, 0x1c40,
    0x1c50, 0xa620, 0xa8d0, 0xa900, 0xa9d0, 0xa9f0, 0xaa50, 0xabf0, 0xff10, 0x104a0, 0x10d30, 0x11066,
    0x110f0, 0x11136, 0x111d0, 0x112f0, 0x11450, 0x114d0, 0x11650, 0x116c0, 0x11730, 0x118e0, 0x11950,
    0x11c50, 0x11d50, 0x11da0, 0x16a60, 0x16ac0, 0x16b50, 0x1d7ce, 0x1d7d8, 0x1d7e2, 0x1d7ec, 0x1d7f6,
    0x1e140, 0x1e2f0, 0x1e950, 0x1fbf0,
];

/// First and last of the digits that are not decimal, such as small ones.
const OTHER_DIGITS: &[(u32, u32)] = &[
    (0xb2, 0xb3),
    (0xb9, 0xb9),
    (0x1369, 0x1371),
    (0x19da, 0x19da),
    (0x2070, 0x2070),
    (0x2074, 0x2079),
    (0x2080, 0x2089),
    (0x2460, 0x2468),
    (0x2474, 0x247c),
    (0x2488, 0x2490),
    (0x24ea, 0x24ea),
    (0x24f5, 0x24fd),
    (0x24ff, 0x24ff),
    (0x2776, 0x277e),
    (0x2780, 0x2788),
    (0x278a, 0x2792),
    (0x10a40, 0x10a43),
    (0x10e60, 0x10e68),
    (0x11052, 0x1105a),
    (0x1f100, 0x1f10a),
];

fn is_decimal(c: char) -> bool {
    let code = u32::from(c);
    ZEROS.iter().any(|zero| (*zero..zero + 10).contains(&code))
}

fn is_other_digit(c: char) -> bool {
    OTHER_DIGITS.iter().any(|(first, last)| (*first..=*last).contains(&u32::from(c)))
}

/// A capital after each character without case, small letters after the others.
fn title(text: &str) -> String {
    let mut result = String::with_capacity(text.len());
    let mut inside = false;
    for c in text.chars() {
        if inside {
            result.extend(c.to_lowercase())
        } else {
            result.extend(c.to_uppercase())
        }
        inside = is_cased(c);
    }
    result
}

fn capitalize(text: &str) -> String {
    let mut chars = text.chars();
    let first = chars.next().into_iter().flat_map(char::to_uppercase);
    first.collect::<String>() + &chars.as_str().to_lowercase()
}

fn swapcase(text: &str) -> String {
    let mut result = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_uppercase() { result.extend(c.to_lowercase()) } else { result.extend(c.to_uppercase()) }
    }
    result
}

/// Without white space, or without the characters of the second constant, at the sides in the first.
fn strip<'a>(text: &'a str, constants: &Constants) -> &'a str {
    let sides = constants.text(0).unwrap_or_default();
    let chars = constants.text(1);
    let goes = |c: char| chars.map_or_else(|| c.is_whitespace(), |chars| chars.contains(c));
    let text = if sides.contains('l') { text.trim_start_matches(goes) } else { text };
    if sides.contains('r') { text.trim_end_matches(goes) } else { text }
}

/// The position in characters of the first or the last occurrence of a part, or -1.
fn position(text: &str, constants: &Constants, first: bool) -> i64 {
    let part = constants.text(0).unwrap_or_default();
    let found = if first { text.find(part) } else { text.rfind(part) };
    found.map_or(-1, |at| text[..at].chars().count() as i64)
}

/// The characters from one position to before another, counted from the end if they are negative.
fn slice(text: &str, constants: &Constants) -> String {
    let count = text.chars().count() as i64;
    let place = |at: i64| if at < 0 { (count + at).max(0) } else { at.min(count) };
    let from = place(constants.whole(0).unwrap_or(0));
    let to = place(constants.whole(1).unwrap_or(count));
    text.chars().skip(from as usize).take((to - from).max(0) as usize).collect()
}

fn get(text: &str, constants: &Constants) -> Option<String> {
    let at = constants.whole(0)?;
    let found = if at < 0 {
        text.chars().rev().nth(usize::try_from(-1 - at).ok()?)
    } else {
        text.chars().nth(usize::try_from(at).ok()?)
    };
    found.map(String::from)
}

/// Filled to a width, at the sides of the first constant.
fn pad(text: &str, constants: &Constants) -> String {
    let sides = constants.text(0).unwrap_or_default();
    let width = constants.whole(1).unwrap_or(0);
    let fill = constants.text(2).unwrap_or(" ");
    let lacking = (width - text.chars().count() as i64).max(0);
    let left = match sides {
        "l" => lacking,
        "r" => 0,
        // An odd one goes to the left if the width is odd too.
        _ => lacking / 2 + (lacking & width & 1),
    };
    let fills = |count: i64| fill.repeat(count.max(0) as usize);
    format!("{}{text}{}", fills(left), fills(lacking - left))
}

/// Filled with zeros to a width, behind a sign.
fn zfill(text: &str, constants: &Constants) -> String {
    let width = constants.whole(0).unwrap_or(0);
    let lacking = (width - text.chars().count() as i64).max(0) as usize;
    let (sign, rest) = match text.strip_prefix(['+', '-']) {
        Some(rest) => text.split_at(text.len() - rest.len()),
        None => ("", text),
    };
    format!("{sign}{}{rest}", "0".repeat(lacking))
}

/// The most parts: one more than the cuts that the second constant allows.
fn limit(constants: &Constants) -> usize {
    match constants.whole(1) {
        Some(cuts) if cuts > 0 => cuts as usize + 1,
        _ => usize::MAX,
    }
}

fn split(text: &str, constants: &Constants) -> Vec<String> {
    let parts = limit(constants);
    match constants.text(0) {
        Some(separator) => text.splitn(parts, separator).map(str::to_owned).collect(),
        None => words(text, parts, true),
    }
}

fn rsplit(text: &str, constants: &Constants) -> Vec<String> {
    let parts = limit(constants);
    match constants.text(0) {
        Some(separator) => {
            let mut found: Vec<String> = text.rsplitn(parts, separator).map(str::to_owned).collect();
            found.reverse();
            found
        }
        None => words(text, parts, false),
    }
}

/// The words between white space. With a limit, the last one has the rest, or the first one from the end.
fn words(text: &str, parts: usize, forward: bool) -> Vec<String> {
    let trim = |text: &str| -> usize {
        let rest = if forward { text.trim_start() } else { text.trim_end() };
        text.len() - rest.len()
    };
    let mut found = Vec::new();
    let mut rest = text;
    loop {
        let blank = trim(rest);
        rest = if forward { &rest[blank..] } else { &rest[..rest.len() - blank] };
        if rest.is_empty() {
            break;
        }
        let cut = match (found.len() + 1 < parts, forward) {
            (false, _) => None,
            (true, true) => rest.split_once(char::is_whitespace),
            (true, false) => rest.rsplit_once(char::is_whitespace).map(|(before, word)| (word, before)),
        };
        let (word, others) = cut.unwrap_or((rest, ""));
        found.push(word.to_owned());
        rest = others;
    }
    if !forward {
        found.reverse();
    }
    found
}

fn removeprefix(text: &str, constants: &Constants) -> Option<String> {
    Some(text.strip_prefix(constants.text(0)?).unwrap_or(text).to_owned())
}

fn removesuffix(text: &str, constants: &Constants) -> Option<String> {
    Some(text.strip_suffix(constants.text(0)?).unwrap_or(text).to_owned())
}

/// The text in a normal form of Unicode.
fn normalize(text: &str, constants: &Constants) -> String {
    let made = match constants.text(0) {
        Some("NFC") => ComposingNormalizerBorrowed::new_nfc().normalize(text),
        Some("NFKC") => ComposingNormalizerBorrowed::new_nfkc().normalize(text),
        Some("NFD") => DecomposingNormalizerBorrowed::new_nfd().normalize(text),
        _ => DecomposingNormalizerBorrowed::new_nfkd().normalize(text),
    };
    made.into_owned()
}
