//! Texts of a series, row by row: pandas' `.str`.

use super::Series;
use crate::error::{Error, Result};
use crate::frame::DataFrame;
use crate::functions::rows::call;
use crate::value::is_text;
use arrow::array::StringArray;
use arrow::compute::kernels::regexp::regexp_is_match_scalar;
use arrow::datatypes::DataType;
use datafusion::functions::expr_fn as functions;
use datafusion::functions::regex::{regexp_count, regexp_replace};
use datafusion::functions_nested::expr_fn as lists;
use datafusion::logical_expr::expr_fn::cast;
use datafusion::logical_expr::{Expr, ExprSchemable, Operator, binary_expr, lit};

/// Functions of the texts of a series ([`Series::str`]), under pandas' names.
///
/// A missing text gives a missing value; a question about it is answered with false, as pandas 3 does.
/// Positions and widths count characters. Regular expressions are those of Rust: Python's without
/// references back and without looking around.
///
/// [`split`](Texts::split) makes lists; [`get`](Texts::get), [`len`](Texts::len) and [`join`](Texts::join)
/// take lists too.
///
/// ```
/// use tharsis_dataframe::Series;
/// let names = Series::from_values("name", vec![Some("Ada Lovelace"), None]);
/// let first = names.str().split(Some(" ")).str().get(0).str().upper();
/// assert_eq!(first.values::<String>()?, [Some("ADA".to_owned()), None]);
/// # Ok::<(), tharsis_dataframe::Error>(())
/// ```
#[must_use = "it does nothing by itself: call one of its methods"]
#[derive(Clone, Debug)]
pub struct Texts(pub(super) Series);

impl Series {
    /// Functions of the texts; a series of other values carries a `TypeError` from here on.
    #[track_caller]
    pub fn str(&self) -> Texts {
        let made = self.parts().and_then(|(frame, expr)| {
            let expr = match expr.get_type(frame.plan.schema())? {
                DataType::List(item) | DataType::LargeList(item) if is_text(item.data_type()) => expr.clone(),
                DataType::Dictionary(_, values) if is_text(&values) => cast(expr.clone(), DataType::Utf8),
                DataType::Null => cast(expr.clone(), DataType::Utf8),
                dtype if is_text(&dtype) => expr.clone(),
                other => return Err(Error::Type(format!(".str is made for texts, not for {other}"))),
            };
            Ok((std::sync::Arc::clone(frame), expr))
        });
        Texts(Series::new(made, self.name.clone()))
    }
}

/// A constant of a call.
pub(super) fn text(value: &str) -> Expr {
    lit(value)
}

pub(super) fn optional(value: Option<&str>) -> Expr {
    lit(datafusion::common::ScalarValue::Utf8(value.map(str::to_owned)))
}

pub(super) fn whole(value: Option<i64>) -> Expr {
    lit(datafusion::common::ScalarValue::Int64(value))
}

/// A width or count as a constant.
pub(super) fn size(value: usize) -> Expr {
    whole(Some(i64::try_from(value).unwrap_or(i64::MAX)))
}

/// False where a question has no answer.
fn answered(expr: Expr) -> Expr {
    functions::coalesce(vec![expr, lit(false)])
}

/// Refuses what is no regular expression.
pub(super) fn check_pattern(pattern: &str) -> Result<()> {
    matches(&[String::new()], pattern).map(|_| ())
}

/// Whether a regular expression matches anywhere in each text.
///
/// # Errors
/// `ValueError` for what is no regular expression.
pub(crate) fn matches(texts: &[String], pattern: &str) -> Result<Vec<bool>> {
    let matches = regexp_is_match_scalar(&StringArray::from_iter_values(texts), pattern, None);
    let matches = matches.map_err(|error| Error::Value(format!("{pattern:?}: {error}")))?;
    Ok(matches.iter().map(|matches| matches == Some(true)).collect())
}

macro_rules! questions {
    ($($(#[$doc:meta])* $name:ident $function:literal),*) => {
        impl Texts {
            $($(#[$doc])*
            #[track_caller]
            pub fn $name(&self) -> Series {
                self.function($function, Vec::new())
            }
            )*
        }
    };
}

questions!(
    /// Each first letter of a word large, the others small.
    title "tharsis_text_title",
    /// The first letter of each text large, the others small.
    capitalize "tharsis_text_capitalize",
    /// Small letters large, and large ones small.
    swapcase "tharsis_text_swapcase",
    /// Whether all characters are letters, and there are some.
    isalpha "tharsis_text_isalpha",
    /// Whether all characters are letters or digits, and there are some.
    isalnum "tharsis_text_isalnum",
    /// Whether all characters are decimal digits, and there are some.
    isdecimal "tharsis_text_isdecimal",
    /// Whether all characters are digits, also small ones, and there are some.
    isdigit "tharsis_text_isdigit",
    /// Whether all characters are numbers in Unicode, and there are some.
    isnumeric "tharsis_text_isnumeric",
    /// Whether all characters are white space, and there are some.
    isspace "tharsis_text_isspace",
    /// Whether there are large letters and no small ones.
    isupper "tharsis_text_isupper",
    /// Whether there are small letters and no large ones.
    islower "tharsis_text_islower",
    /// Whether words begin with a large letter and have no others.
    istitle "tharsis_text_istitle"
);

impl Texts {
    #[track_caller]
    pub(super) fn map(&self, step: impl FnOnce(Expr) -> Result<Expr>) -> Series {
        self.of_kind(false, step)
    }

    /// A step for texts only, or for lists only.
    #[track_caller]
    pub(super) fn of_kind(&self, lists: bool, step: impl FnOnce(Expr) -> Result<Expr>) -> Series {
        let made = self.is_list().and_then(|is_list| {
            if is_list == lists {
                Ok(())
            } else if lists {
                Err(Error::Type("this is made for lists, not for texts".to_owned()))
            } else {
                Err(Error::Type("this is made for texts, not for lists".to_owned()))
            }
        });
        match made {
            Ok(()) => self.0.map_expr(step),
            Err(error) => Series::new(Err(error), self.0.name.clone()),
        }
    }

    pub(super) fn is_list(&self) -> Result<bool> {
        Ok(matches!(self.0.dtype()?, DataType::List(_) | DataType::LargeList(_)))
    }

    #[track_caller]
    pub(super) fn function(&self, name: &str, constants: Vec<Expr>) -> Series {
        self.map(|expr| call(name, [vec![expr], constants].concat()))
    }

    /// A step with a pattern that is checked first.
    #[track_caller]
    fn pattern(&self, pattern: &str, step: impl FnOnce(Expr, Expr) -> Expr) -> Series {
        self.map(|expr| {
            check_pattern(pattern)?;
            Ok(step(expr, text(pattern)))
        })
    }

    /// The number of characters of each text, or of elements of each list.
    #[track_caller]
    pub fn len(&self) -> Series {
        if self.is_list().unwrap_or(false) {
            self.of_kind(true, |expr| Ok(cast(lists::array_length(expr), DataType::Int64)))
        } else {
            self.function("tharsis_text_len", Vec::new())
        }
    }

    /// All letters as small ones.
    #[track_caller]
    pub fn lower(&self) -> Series {
        self.map(|expr| Ok(functions::lower(expr)))
    }

    /// All letters as large ones.
    #[track_caller]
    pub fn upper(&self) -> Series {
        self.map(|expr| Ok(functions::upper(expr)))
    }

    /// Without white space at both ends, or without these characters.
    #[track_caller]
    pub fn strip(&self, chars: Option<&str>) -> Series {
        self.function("tharsis_text_strip", vec![text("lr"), optional(chars)])
    }

    /// Without white space at the beginning, or without these characters.
    #[track_caller]
    pub fn lstrip(&self, chars: Option<&str>) -> Series {
        self.function("tharsis_text_strip", vec![text("l"), optional(chars)])
    }

    /// Without white space at the end, or without these characters.
    #[track_caller]
    pub fn rstrip(&self, chars: Option<&str>) -> Series {
        self.function("tharsis_text_strip", vec![text("r"), optional(chars)])
    }

    /// Without a text at the beginning, where it is there.
    #[track_caller]
    pub fn removeprefix(&self, prefix: &str) -> Series {
        self.function("tharsis_text_removeprefix", vec![text(prefix)])
    }

    /// Without a text at the end, where it is there.
    #[track_caller]
    pub fn removesuffix(&self, suffix: &str) -> Series {
        self.function("tharsis_text_removesuffix", vec![text(suffix)])
    }

    /// Whether a regular expression matches anywhere.
    ///
    /// ```
    /// use tharsis_dataframe::DataFrame;
    /// let frame = DataFrame::from_columns([("t", vec![Some("a1"), Some("b"), None].into())]);
    /// let with_digit = frame.filter(&frame.col("t").str().contains(r"\d"));
    /// assert_eq!(with_digit.col("t").values::<String>()?, [Some("a1".to_owned())]);
    /// # Ok::<(), tharsis_dataframe::Error>(())
    /// ```
    #[track_caller]
    pub fn contains(&self, pattern: &str) -> Series {
        self.pattern(pattern, |expr, pattern| answered(functions::regexp_like(expr, pattern, None)))
    }

    /// Whether a text occurs anywhere, letter by letter; pandas' `contains(…, regex=False)`.
    #[track_caller]
    pub fn contains_text(&self, part: &str) -> Series {
        self.map(|expr| Ok(answered(functions::contains(expr, text(part)))))
    }

    /// Whether each text begins with another.
    #[track_caller]
    pub fn startswith(&self, prefix: &str) -> Series {
        self.map(|expr| Ok(answered(functions::starts_with(expr, text(prefix)))))
    }

    /// Whether each text ends with another.
    #[track_caller]
    pub fn endswith(&self, suffix: &str) -> Series {
        self.map(|expr| Ok(answered(functions::ends_with(expr, text(suffix)))))
    }

    /// Whether a regular expression matches at the beginning; pandas' `match`.
    #[track_caller]
    pub fn match_(&self, pattern: &str) -> Series {
        let anchored = format!(r"\A(?:{pattern})");
        self.pattern(&anchored, |expr, pattern| answered(functions::regexp_like(expr, pattern, None)))
    }

    /// Whether a regular expression matches the whole text.
    #[track_caller]
    pub fn fullmatch(&self, pattern: &str) -> Series {
        let anchored = format!(r"\A(?:{pattern})\z");
        self.pattern(&anchored, |expr, pattern| answered(functions::regexp_like(expr, pattern, None)))
    }

    /// Position of the first occurrence of a text, -1 where there is none.
    #[track_caller]
    pub fn find(&self, part: &str) -> Series {
        self.function("tharsis_text_find", vec![text(part)])
    }

    /// Position of the last occurrence of a text, -1 where there is none.
    #[track_caller]
    pub fn rfind(&self, part: &str) -> Series {
        self.function("tharsis_text_rfind", vec![text(part)])
    }

    /// The number of matches of a regular expression.
    #[track_caller]
    pub fn count(&self, pattern: &str) -> Series {
        self.pattern(pattern, |expr, pattern| {
            let counted = regexp_count().call(vec![expr.clone(), pattern]);
            // A missing text has no matches to count, but it is no text without matches.
            datafusion::logical_expr::expr_fn::when(expr.is_not_null(), counted.clone())
                .end()
                .unwrap_or(counted)
        })
    }

    /// One text in place of another, wherever it occurs.
    #[track_caller]
    pub fn replace(&self, from: &str, to: &str) -> Series {
        self.map(|expr| Ok(functions::replace(expr, text(from), text(to))))
    }

    /// A text in place of each match of a regular expression; `\1` and `\g<name>` stand for its groups.
    #[track_caller]
    pub fn replace_regex(&self, pattern: &str, to: &str) -> Series {
        let to = replacement(to);
        self.pattern(pattern, |expr, pattern| {
            regexp_replace().call(vec![expr, pattern, text(&to), text("g")])
        })
    }

    /// As [`Texts::replace_regex`], for the first match alone.
    #[track_caller]
    pub fn replace_first_regex(&self, pattern: &str, to: &str) -> Series {
        let to = replacement(to);
        self.pattern(pattern, |expr, pattern| regexp_replace().call(vec![expr, pattern, text(&to)]))
    }

    /// The characters from one position to before another; negative positions count from the end.
    #[track_caller]
    pub fn slice(&self, from: impl Into<Option<i64>>, to: impl Into<Option<i64>>) -> Series {
        self.function("tharsis_text_slice", vec![whole(from.into()), whole(to.into())])
    }

    /// The character at a position, or the element of a list; a negative position counts from the end.
    #[track_caller]
    pub fn get(&self, at: i64) -> Series {
        if self.is_list().unwrap_or(false) {
            self.of_kind(true, |expr| {
                Ok(lists::array_element(expr, whole(Some(if at < 0 { at } else { at.saturating_add(1) }))))
            })
        } else {
            self.function("tharsis_text_get", vec![whole(Some(at))])
        }
    }

    /// The texts of two series put together, with another between them.
    #[track_caller]
    pub fn cat(&self, other: &Series, separator: &str) -> Series {
        let other = other.str();
        let joined = self.0.merged(&other.0, |_, left, right| {
            let left = binary_expr(left, Operator::StringConcat, text(separator));
            Ok(binary_expr(left, Operator::StringConcat, right))
        });
        Series { name: self.0.name.clone(), ..joined }
    }

    /// All texts that are there as one, with another between them. It runs the plan.
    ///
    /// # Errors
    /// The error that the series carries, or one of its run.
    pub fn cat_all(&self, separator: &str) -> Result<String> {
        let texts: Vec<String> = self.0.values::<String>()?.into_iter().flatten().collect();
        Ok(texts.join(separator))
    }

    /// The elements of each list as one text, with another between them.
    #[track_caller]
    pub fn join(&self, separator: &str) -> Series {
        self.of_kind(true, |expr| Ok(lists::array_to_string(expr, text(separator))))
    }

    /// Each text this many times.
    #[track_caller]
    pub fn repeat(&self, times: usize) -> Series {
        self.map(|expr| Ok(functions::repeat(expr, size(times))))
    }

    /// Filled to a width at the beginning with a character.
    #[track_caller]
    pub fn rjust(&self, width: usize, fill: char) -> Series {
        self.fill("l", width, fill)
    }

    /// Filled to a width at the end with a character.
    #[track_caller]
    pub fn ljust(&self, width: usize, fill: char) -> Series {
        self.fill("r", width, fill)
    }

    /// Filled to a width at both ends with a character.
    #[track_caller]
    pub fn center(&self, width: usize, fill: char) -> Series {
        self.fill("lr", width, fill)
    }

    #[track_caller]
    fn fill(&self, sides: &str, width: usize, fill: char) -> Series {
        self.function("tharsis_text_pad", vec![text(sides), size(width), text(&fill.to_string())])
    }

    /// Filled to a width with zeros, behind a sign.
    #[track_caller]
    pub fn zfill(&self, width: usize) -> Series {
        self.function("tharsis_text_zfill", vec![size(width)])
    }

    /// The groups of the first match of a regular expression as columns, labelled by their names or numbers
    /// from 0; missing where there is no match.
    ///
    /// ```
    /// use tharsis_dataframe::Series;
    /// let codes = Series::from_values("code", vec!["a7", "b", "-"]);
    /// let parts = codes.str().extract(r"(?P<letter>[a-z])(\d)?");
    /// assert_eq!(parts.columns()?, ["letter", "1"]);
    /// assert_eq!(parts.col("1").values::<String>()?, [Some("7".to_owned()), None, None]);
    /// # Ok::<(), tharsis_dataframe::Error>(())
    /// ```
    #[track_caller]
    pub fn extract(&self, pattern: &str) -> DataFrame {
        let made = check_pattern(pattern).and_then(|()| {
            let (frame, expr) = self.0.parts()?;
            let groups = groups(pattern);
            if groups.is_empty() || self.is_list()? {
                return Err(Error::Value(format!("{pattern:?} has no group to extract from texts")));
            }
            let column = |at: usize| {
                let label = groups[at].name.clone().unwrap_or_else(|| at.to_string());
                let found =
                    functions::regexp_match(expr.clone(), text(&only_group(pattern, &groups, at)), None);
                (label, lists::array_element(found, lit(1_i64)))
            };
            frame.project((0..groups.len()).map(column).collect::<Vec<_>>())
        });
        DataFrame::new(made)
    }
}

/// Python's replacement for a match, as Rust's: groups are written in another way.
fn replacement(to: &str) -> String {
    let mut result = String::new();
    let mut chars = to.chars().peekable();
    while let Some(c) = chars.next() {
        match (c, chars.peek().copied()) {
            ('$', _) => result.push_str("$$"),
            ('\\', Some('g')) => {
                chars.next();
                let name: String =
                    chars.by_ref().skip_while(|c| *c == '<').take_while(|c| *c != '>').collect();
                result.push_str(&format!("${{{name}}}"));
            }
            ('\\', Some(digit)) if digit.is_ascii_digit() => {
                let mut number = String::new();
                while let Some(digit) = chars.next_if(char::is_ascii_digit) {
                    number.push(digit);
                }
                result.push_str(&format!("${{{number}}}"));
            }
            ('\\', Some('\\')) => {
                chars.next();
                result.push('\\');
            }
            ('\\', Some('n')) => {
                chars.next();
                result.push('\n');
            }
            ('\\', Some('t')) => {
                chars.next();
                result.push('\t');
            }
            (other, _) => result.push(other),
        }
    }
    result
}

/// A group of a regular expression that keeps what it matches.
pub(super) struct Group {
    /// Place and length of its opening, in bytes.
    opening: std::ops::Range<usize>,
    pub(super) name: Option<String>,
}

/// The groups of a valid pattern, in their order.
pub(super) fn groups(pattern: &str) -> Vec<Group> {
    let mut found = Vec::new();
    let mut in_class = 0_usize;
    let mut chars = pattern.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '\\' => {
                chars.next();
            }
            '[' => in_class += 1,
            ']' => in_class = in_class.saturating_sub(1),
            '(' if in_class == 0 => found.extend(group(pattern, at)),
            _ => {}
        }
    }
    found
}

/// The group that opens at a place, if it keeps its match.
fn group(pattern: &str, at: usize) -> Option<Group> {
    let rest = &pattern[at..];
    let named = rest.strip_prefix("(?P<").or_else(|| rest.strip_prefix("(?<"));
    match (named, rest.starts_with("(?")) {
        (Some(named), _) => {
            let (name, _) = named.split_once('>')?;
            let end = at + rest.len() - named.len() + name.len() + 1;
            Some(Group { opening: at..end, name: Some(name.to_owned()) })
        }
        (None, true) => None,
        (None, false) => Some(Group { opening: at..at + 1, name: None }),
    }
}

/// The pattern with one group that keeps its match: a match's list leaves out groups that took no part.
fn only_group(pattern: &str, groups: &[Group], kept: usize) -> String {
    let mut result = String::new();
    let mut from = 0;
    for (at, group) in groups.iter().enumerate() {
        result.push_str(&pattern[from..group.opening.start]);
        result.push_str(if at == kept { "(" } else { "(?:" });
        from = group.opening.end;
    }
    result + &pattern[from..]
}
