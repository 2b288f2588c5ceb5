//! Methods of the accessor `str`.

use super::Failure;
use super::args::Args;
use super::row::Row;
use super::value::Value;
use tharsis_dataframe::{Series, Texts};

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
    ("pd.Series.str.startswith", "(pat, na=False)", "whether the text begins so", asked),
    ("pd.Series.str.endswith", "(pat, na=False)", "whether the text ends so", asked),
    (
        "pd.Series.str.match",
        "(pat, case=True, na=False)",
        "whether the text begins with a match of the pattern",
        asked,
    ),
    (
        "pd.Series.str.fullmatch",
        "(pat, case=True, na=False)",
        "whether the whole text matches the pattern",
        asked,
    ),
    ("pd.Series.str.find", "(sub, start=0, end=None)", "the place of a part, or -1", find),
    ("pd.Series.str.rfind", "(sub, start=0, end=None)", "the last place of a part, or -1", find),
    (
        "pd.Series.str.split",
        "(pat=None, n=-1, expand)",
        "the parts between a text as columns; expand must be true",
        split,
    ),
    (
        "pd.Series.str.rsplit",
        "(pat=None, n=-1, expand)",
        "the parts between a text as columns, cut from the end; expand must be true",
        split,
    ),
    ("pd.Series.str.count", "(pat)", "the number of matches of the pattern", with_text),
    ("pd.Series.str.contains", "(pat, case=True, na=False, regex=True)", "whether the pattern occurs", asked),
    (
        "pd.Series.str.replace",
        "(pat, repl, n=-1, case=True, regex=False)",
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
    ("pd.Series.str.casefold", "()", "without differences of case", plain),
    ("pd.Series.str.isascii", "()", "whether all characters are of ASCII", plain),
    ("pd.Series.str.index", "(sub)", "the place of a part that is there", with_text),
    ("pd.Series.str.rindex", "(sub)", "the last place of a part that is there", with_text),
    ("pd.Series.str.wrap", "(width)", "the text in lines of a width", repeat),
    (
        "pd.Series.str.slice_replace",
        "(start=None, stop=None, repl='')",
        "the text with another in a place",
        splice,
    ),
    ("pd.Series.str.normalize", "(form)", "the text in a normal form of Unicode", normalize),
    ("pd.Series.str.pad", "(width, side='left', fillchar=' ')", "the text filled up", pad),
    ("pd.Series.str.cat", "(others=None, sep='', na_rep=None)", "texts joined, by rows or all", cat),
    ("pd.Series.str.partition", "(sep=' ')", "before, at and behind the first place of a text", frame),
    ("pd.Series.str.rpartition", "(sep=' ')", "before, at and behind the last place of a text", frame),
    ("pd.Series.str.get_dummies", "(sep='|')", "a column for each part of the texts", frame),
    ("pd.Series.str.extractall", "(pat)", "a row for each match of the pattern", frame),
    ("pd.Series.str.translate", "(table)", "the text with other characters", translate),
    ("pd.Series.cat.codes", "()", "the place of each value's category", category),
    ("pd.Series.cat.categories", "()", "the categories", category),
    ("pd.Series.cat.rename_categories", "(new_categories)", "other texts for the categories", categorized),
    ("pd.Series.cat.set_categories", "(new_categories)", "missing values for other texts", categorized),
    ("pd.Series.cat.remove_categories", "(removals)", "missing values for these texts", categorized),
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
        "casefold" => Texts::casefold,
        "isascii" => Texts::isascii,
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
        "index" => ("sub", Texts::index),
        "rindex" => ("sub", Texts::rindex),
        _ => ("pat", Texts::count),
    };
    made(step(&texts, &args.need(1, argument)?.text()?))
}

/// A question about each text, with an answer for missing ones.
fn asked(name: &str, args: &mut Args) -> Result<Value, Failure> {
    let series = args.series()?;
    let texts = series.str();
    let mut pattern = args.need(1, "pat")?.text()?;
    let is_plain = matches!(name, "startswith" | "endswith");
    let regex = name != "contains" || args.flag(5, "regex", true)?;
    let ignores_case = !is_plain && !args.flag(2, "case", true)?;
    if ignores_case {
        pattern = without_case(&pattern, regex);
    }
    let answer = match name {
        "startswith" => texts.startswith(&pattern),
        "endswith" => texts.endswith(&pattern),
        "match" => texts.match_(&pattern),
        "fullmatch" => texts.fullmatch(&pattern),
        _ if regex || ignores_case => texts.contains(&pattern),
        _ => texts.contains_text(&pattern),
    };
    made(match args.given(if is_plain { 2 } else { 4 }, "na") {
        Some(value) => answer.mask(&series.isna(), value.scalar()?),
        None => answer,
    })
}

/// A pattern that matches large letters as small ones.
fn without_case(pattern: &str, regex: bool) -> String {
    if regex {
        return format!("(?i:{pattern})");
    }
    format!("(?i:{})", escaped(pattern))
}

/// A pattern that matches this text.
fn escaped(text: &str) -> String {
    let escaped =
        text.chars().map(|c| if c.is_ascii_punctuation() { format!("\\{c}") } else { c.to_string() });
    escaped.collect()
}

fn replace(_: &str, args: &mut Args) -> Result<Value, Failure> {
    let texts = args.series()?.str();
    let (from, to) = (args.need(1, "pat")?.text()?, args.need(2, "repl")?.text()?);
    let n = args.integer(3, "n", -1)?;
    let case = args.flag(4, "case", true)?;
    let regex = args.flag(usize::MAX, "regex", false)?;
    let pattern = if case { from.clone() } else { without_case(&from, regex) };
    // Without a regular expression, a text stands for itself.
    let to_pattern = if regex { to.clone() } else { to.replace('\\', "\\\\") };
    made(match n {
        1 if regex || !case => texts.replace_first_regex(&pattern, &to_pattern),
        1 => texts.replace_first_regex(&escaped(&from), &to_pattern),
        n if 1 < n => {
            return Err(Failure::missing("replace of more than one and not all is not implemented"));
        }
        _ if regex || !case => texts.replace_regex(&pattern, &to_pattern),
        _ => texts.replace(&from, &to),
    })
}

/// The place of a part between two places of the text.
fn find(name: &str, args: &mut Args) -> Result<Value, Failure> {
    let texts = args.series()?.str();
    let part = args.need(1, "sub")?.text()?;
    let start = args.integer(2, "start", 0)?;
    let end = args.given(3, "end").map(|end| end.integer()).transpose()?;
    if start < 0 {
        return Err(Failure::missing("a start below zero is not implemented"));
    }
    let within = if (start, end) == (0, None) { texts } else { texts.slice(start, end).str() };
    let found = if name == "find" { within.find(&part) } else { within.rfind(&part) };
    made(if start == 0 { found } else { found.mask(&found.ge(0), &found + start) })
}

fn split(name: &str, args: &mut Args) -> Result<Value, Failure> {
    let texts = args.series()?.str();
    let separator = args.given(1, "pat").map(|text| text.text()).transpose()?;
    let cuts = args.integer(2, "n", -1)?.max(0) as usize;
    if !args.flag(3, "expand", false)? {
        return Err(Failure::missing("lists of parts are not implemented in programs; expand them"));
    }
    let frame = match name {
        "split" => texts.split_all(separator.as_deref(), cuts),
        _ => texts.rsplit_all(separator.as_deref(), cuts),
    };
    frame.check()?;
    Ok(Value::Frame(frame))
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

fn repeat(name: &str, args: &mut Args) -> Result<Value, Failure> {
    let texts = args.series()?.str();
    made(match name {
        "wrap" => texts.wrap(count(args, "width")?),
        _ => texts.repeat(count(args, "repeats")?),
    })
}

fn pad(name: &str, args: &mut Args) -> Result<Value, Failure> {
    let texts = args.series()?.str();
    let width = count(args, "width")?;
    let name = match name {
        "pad" => match args.choice(2, "side", &["left", "right", "both"])? {
            "left" => "rjust",
            "right" => "ljust",
            _ => "center",
        },
        other => other,
    };
    let fill = args.given(3, "fillchar").or_else(|| args.given(2, "fillchar"));
    let fill = fill.map(|fill| fill.text()).transpose()?;
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

fn splice(_: &str, args: &mut Args) -> Result<Value, Failure> {
    let texts = args.series()?.str();
    let from = args.given(1, "start").map(|at| at.integer()).transpose()?;
    let to = args.given(2, "stop").map(|at| at.integer()).transpose()?;
    let text = args.given(3, "repl").map(|text| text.text()).transpose()?.unwrap_or_default();
    made(texts.slice_replace(from, to, &text))
}

fn cat(_: &str, args: &mut Args) -> Result<Value, Failure> {
    let series = args.series()?;
    let others = args.given(1, "others");
    let separator = args.given(2, "sep").map(|text| text.text()).transpose()?.unwrap_or_default();
    let fill = args.given(3, "na_rep").map(Value::scalar).transpose()?;
    let filled = |series: Series| match &fill {
        Some(fill) => series.fillna(fill.clone()),
        None => series,
    };
    let series = filled(series);
    match others {
        None => Ok(Value::Scalar(series.str().cat_all(&separator)?.into())),
        Some(other) => made(series.str().cat(&filled(other.series()?), &separator)),
    }
}

fn frame(name: &str, args: &mut Args) -> Result<Value, Failure> {
    let texts = args.series()?.str();
    if name == "extractall" {
        return Ok(Value::Frame(texts.extractall(&args.need(1, "pat")?.text()?)));
    }
    let default = if name == "get_dummies" { "|" } else { " " };
    let separator = args.given(1, "sep").map(|text| text.text()).transpose()?;
    let separator = separator.as_deref().unwrap_or(default);
    Ok(Value::Frame(match name {
        "get_dummies" => texts.get_dummies(separator),
        "partition" => {
            args.only(2, "expand", true)?;
            texts.partition(separator)
        }
        _ => {
            args.only(2, "expand", true)?;
            texts.rpartition(separator)
        }
    }))
}

/// A dictionary from characters, or their numbers, to texts.
fn translate(_: &str, args: &mut Args) -> Result<Value, Failure> {
    let texts = args.series()?.str();
    let Value::Dict(entries) = args.need(1, "table")? else {
        return Err(Failure::kind("table: expected a dictionary"));
    };
    let mut pairs = Vec::new();
    for (from, to) in &entries {
        let from = match from.integer() {
            Ok(number) => u32::try_from(number).ok().and_then(char::from_u32),
            Err(_) => from.text()?.chars().next(),
        };
        let from = from.ok_or_else(|| Failure::value("table: keys are characters or their numbers"))?;
        pairs.push((from, if matches!(to, Value::None) { String::new() } else { to.text()? }));
    }
    made(texts.translate(pairs.iter().map(|(from, to)| (*from, to.as_str()))))
}

fn category(name: &str, args: &mut Args) -> Result<Value, Failure> {
    let categories = args.series()?.cat();
    match name {
        "codes" => made(categories.codes().named(None)),
        _ => Ok(super::axes::texts(categories.categories()?)),
    }
}

fn extract(_: &str, args: &mut Args) -> Result<Value, Failure> {
    let texts = args.series()?.str();
    Ok(Value::Frame(texts.extract(&args.need(1, "pat")?.text()?)))
}

fn categorized(name: &str, args: &mut Args) -> Result<Value, Failure> {
    let categories = args.series()?.cat();
    let given = args.need(1, if name == "remove_categories" { "removals" } else { "new_categories" })?;
    if let Value::Dict(_) = &given {
        let pairs = super::args::text_pairs(&given)?;
        let renamed = categories.rename_categories(pairs.iter().map(|(from, to)| (&**from, &**to)));
        return Ok(Value::Series(renamed));
    }
    let texts = given.texts()?;
    let texts = texts.iter().map(String::as_str);
    let changed = match name {
        "rename_categories" => categories.rename_all_categories(texts),
        "set_categories" => categories.set_categories(texts),
        _ => categories.remove_categories(texts),
    };
    changed.check()?;
    Ok(Value::Series(changed))
}

fn normalize(_: &str, args: &mut Args) -> Result<Value, Failure> {
    let texts = args.series()?.str();
    made(texts.normalize(&args.need(1, "form")?.text()?))
}
