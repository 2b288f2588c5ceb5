//! Methods of the accessor `str`.

use super::Failure;
use super::args::Args;
use super::row::Row;
use super::value::Value;
use crate::frame::series::{Series, Texts};

pub(super) const TEXTS: &[Row] = &[
    ("pd.Series.str.len", "()", "the number of characters", plain),
    ("pd.Series.str.lower", "()", "each letter small", plain),
    ("pd.Series.str.upper", "()", "each letter large", plain),
    ("pd.Series.str.title", "()", "each first letter of a word large", plain),
    ("pd.Series.str.capitalize", "()", "the first letter large", plain),
    ("pd.Series.str.swapcase", "()", "small letters large, and large ones small", plain),
    ("pd.Series.str.isalpha", "()", "whether all characters are letters", plain),
    ("pd.Series.str.isalnum", "()", "whether all characters are letters or digits", plain),
    ("pd.Series.str.isdecimal", "()", "whether all characters are decimal digits", plain),
    ("pd.Series.str.isdigit", "()", "whether all characters are digits", plain),
    ("pd.Series.str.isnumeric", "()", "whether all characters are numbers", plain),
    ("pd.Series.str.isspace", "()", "whether all characters are white space", plain),
    ("pd.Series.str.isupper", "()", "whether no letter is small", plain),
    ("pd.Series.str.islower", "()", "whether no letter is large", plain),
    ("pd.Series.str.istitle", "()", "whether only first letters of words are large", plain),
    ("pd.Series.str.strip", "(to_strip=None)", "without these characters at both ends", strip),
    ("pd.Series.str.lstrip", "(to_strip=None)", "without these characters at the beginning", strip),
    ("pd.Series.str.rstrip", "(to_strip=None)", "without these characters at the end", strip),
    ("pd.Series.str.removeprefix", "(prefix)", "without this beginning", with_text),
    ("pd.Series.str.removesuffix", "(suffix)", "without this end", with_text),
    ("pd.Series.str.startswith", "(pat)", "whether the text begins so", with_text),
    ("pd.Series.str.endswith", "(pat)", "whether the text ends so", with_text),
    ("pd.Series.str.match", "(pat)", "whether the text begins with a match of the pattern", with_text),
    ("pd.Series.str.fullmatch", "(pat)", "whether the whole text matches the pattern", with_text),
    ("pd.Series.str.find", "(sub)", "the place of a part, or -1", with_text),
    ("pd.Series.str.rfind", "(sub)", "the last place of a part, or -1", with_text),
    ("pd.Series.str.count", "(pat)", "the number of matches of the pattern", with_text),
    ("pd.Series.str.contains", "(pat, regex=True)", "whether the pattern occurs", contains),
    (
        "pd.Series.str.replace",
        "(pat, repl, regex=False)",
        "the text with another in place of a part",
        replace,
    ),
    ("pd.Series.str.slice", "(start=None, stop=None)", "the characters between two places", slice),
    ("pd.Series.str.get", "(i)", "the character, or the element, at a place", get),
    ("pd.Series.str.repeat", "(repeats)", "the text several times", repeat),
    ("pd.Series.str.rjust", "(width, fillchar=' ')", "the text filled up at the left", pad),
    ("pd.Series.str.ljust", "(width, fillchar=' ')", "the text filled up at the right", pad),
    ("pd.Series.str.center", "(width, fillchar=' ')", "the text filled up at both ends", pad),
    ("pd.Series.str.zfill", "(width)", "the text filled up with zeros", zfill),
    ("pd.Series.str.extract", "(pat)", "a column for each group of the pattern", extract),
];

fn made(series: Series) -> Result<Value, Failure> {
    Ok(Value::Series(series))
}

fn plain(name: &str, args: &mut Args) -> Result<Value, Failure> {
    let texts = args.series()?.str();
    let step: fn(&Texts) -> Series = match name {
        "len" => Texts::len,
        "lower" => Texts::lower,
        "upper" => Texts::upper,
        "title" => Texts::title,
        "capitalize" => Texts::capitalize,
        "swapcase" => Texts::swapcase,
        "isalpha" => Texts::isalpha,
        "isalnum" => Texts::isalnum,
        "isdecimal" => Texts::isdecimal,
        "isdigit" => Texts::isdigit,
        "isnumeric" => Texts::isnumeric,
        "isspace" => Texts::isspace,
        "isupper" => Texts::isupper,
        "islower" => Texts::islower,
        _ => Texts::istitle,
    };
    made(step(&texts))
}

fn strip(name: &str, args: &mut Args) -> Result<Value, Failure> {
    let texts = args.series()?.str();
    let chars = args.given(1, "to_strip").map(|chars| chars.text()).transpose()?;
    made(match name {
        "lstrip" => texts.lstrip(chars.as_deref()),
        "rstrip" => texts.rstrip(chars.as_deref()),
        _ => texts.strip(chars.as_deref()),
    })
}

fn with_text(name: &str, args: &mut Args) -> Result<Value, Failure> {
    let texts = args.series()?.str();
    let (argument, step): (&str, fn(&Texts, &str) -> Series) = match name {
        "removeprefix" => ("prefix", Texts::removeprefix),
        "removesuffix" => ("suffix", Texts::removesuffix),
        "startswith" => ("pat", Texts::startswith),
        "endswith" => ("pat", Texts::endswith),
        "match" => ("pat", Texts::match_),
        "fullmatch" => ("pat", Texts::fullmatch),
        "find" => ("sub", Texts::find),
        "rfind" => ("sub", Texts::rfind),
        _ => ("pat", Texts::count),
    };
    made(step(&texts, &args.need(1, argument)?.text()?))
}

fn contains(_: &str, args: &mut Args) -> Result<Value, Failure> {
    let texts = args.series()?.str();
    let pattern = args.need(1, "pat")?.text()?;
    made(if args.flag(4, "regex", true)? { texts.contains(&pattern) } else { texts.contains_text(&pattern) })
}

fn replace(_: &str, args: &mut Args) -> Result<Value, Failure> {
    let texts = args.series()?.str();
    let (from, to) = (args.need(1, "pat")?.text()?, args.need(2, "repl")?.text()?);
    let regex = args.flag(usize::MAX, "regex", false)?;
    made(if regex { texts.replace_regex(&from, &to) } else { texts.replace(&from, &to) })
}

fn slice(_: &str, args: &mut Args) -> Result<Value, Failure> {
    let texts = args.series()?.str();
    let from = args.given(1, "start").map(|at| at.integer()).transpose()?;
    let to = args.given(2, "stop").map(|at| at.integer()).transpose()?;
    made(texts.slice(from, to))
}

fn get(_: &str, args: &mut Args) -> Result<Value, Failure> {
    let texts = args.series()?.str();
    made(texts.get(args.need(1, "i")?.integer()?))
}

/// An argument that is a number of characters.
fn count(args: &mut Args, name: &str) -> Result<usize, Failure> {
    Ok(args.need(1, name)?.integer()?.max(0) as usize)
}

fn repeat(_: &str, args: &mut Args) -> Result<Value, Failure> {
    let texts = args.series()?.str();
    made(texts.repeat(count(args, "repeats")?))
}

fn pad(name: &str, args: &mut Args) -> Result<Value, Failure> {
    let texts = args.series()?.str();
    let width = count(args, "width")?;
    let fill = args.given(2, "fillchar").map(|fill| fill.text()).transpose()?;
    let mut fill = fill.as_deref().unwrap_or(" ").chars();
    let (Some(fill), None) = (fill.next(), fill.next()) else {
        return Err(Failure::kind("fillchar must be a character, not str"));
    };
    made(match name {
        "rjust" => texts.rjust(width, fill),
        "ljust" => texts.ljust(width, fill),
        _ => texts.center(width, fill),
    })
}

fn zfill(_: &str, args: &mut Args) -> Result<Value, Failure> {
    let texts = args.series()?.str();
    made(texts.zfill(count(args, "width")?))
}

fn extract(_: &str, args: &mut Args) -> Result<Value, Failure> {
    let texts = args.series()?.str();
    Ok(Value::Frame(texts.extract(&args.need(1, "pat")?.text()?)))
}
