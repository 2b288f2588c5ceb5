//! Values within texts of JSON: `json_extract(s, '$.a[0]')` and `json_extract_string(s, 'a')`.
//!
//! A value is cut out of the text as it stands there, so that no number loses digits.

use super::on_arrays::on_arrays;
use crate::error::Error;
use arrow::array::{Array, ArrayRef, AsArray, StringArray};
use arrow::compute::cast;
use arrow::datatypes::DataType;
use datafusion::common::{Result, plan_err};
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use serde::de::IgnoredAny;
use std::sync::{Arc, OnceLock};

/// The function whose values are JSON.
pub(crate) const EXTRACT: &str = "json_extract";
/// The function whose values are texts: a text without its quotes, and none for `null`.
pub(crate) const EXTRACT_STRING: &str = "json_extract_string";

/// The functions, of which a process has one each.
pub(super) fn functions() -> [Arc<ScalarUDF>; 2] {
    static FUNCTIONS: OnceLock<[Arc<ScalarUDF>; 2]> = OnceLock::new();
    let made = |is_text| {
        let signature = Signature::user_defined(Volatility::Immutable);
        Arc::new(ScalarUDF::from(JsonValue { is_text, signature }))
    };
    FUNCTIONS.get_or_init(|| [made(false), made(true)]).clone()
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct JsonValue {
    is_text: bool,
    signature: Signature,
}

impl ScalarUDFImpl for JsonValue {
    fn name(&self) -> &str {
        if self.is_text { EXTRACT_STRING } else { EXTRACT }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        let is_text = |dtype: &DataType| {
            matches!(dtype, DataType::LargeUtf8 | DataType::Null | DataType::Utf8 | DataType::Utf8View)
        };
        match types {
            [text, path] if is_text(text) && is_text(path) => Ok(vec![DataType::Utf8, DataType::Utf8]),
            [text, path] if is_text(text) && path.is_integer() => Ok(vec![DataType::Utf8, DataType::Int64]),
            _ => plan_err!("{} takes a text of JSON and a path", self.name()),
        }
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Utf8)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        on_arrays(args, |arrays| self.values(arrays))
    }
}

impl JsonValue {
    fn values(&self, arrays: &[ArrayRef]) -> Result<ArrayRef> {
        let [texts, paths] = arrays else {
            return plan_err!("{} takes a text of JSON and a path", self.name());
        };
        let is_number = paths.data_type().is_integer();
        let (texts, paths) = (cast(texts, &DataType::Utf8)?, cast(paths, &DataType::Utf8)?);
        let (mut known, mut steps) = (None, Vec::new());
        let mut made = Vec::with_capacity(texts.len());
        for (text, path) in texts.as_string::<i32>().iter().zip(paths.as_string::<i32>()) {
            let (Some(text), Some(path)) = (text, path) else {
                made.push(None);
                continue;
            };
            if known != Some(path) {
                steps = if is_number {
                    vec![Step::Number(path.parse().unwrap_or(i64::MAX))]
                } else {
                    steps_of(path)?
                };
                known = Some(path);
            }
            let value = found(text, &steps)?;
            made.push(match value {
                Some(value) if self.is_text => as_text(value)?,
                value => value.map(str::to_owned),
            });
        }
        Ok(Arc::new(made.into_iter().collect::<StringArray>()))
    }
}

/// A step from a value to one within it.
#[derive(Debug, PartialEq, Eq)]
enum Step {
    Key(String),
    /// The number of an element, from the end if it is less than 0.
    Number(i64),
    /// A key of an object, or the number of an element.
    Either(String),
}

/// The steps of a path: `$.a.b[0]`, `/a/b/0`, or a key.
fn steps_of(path: &str) -> Result<Vec<Step>> {
    if let Some(rest) = path.strip_prefix('$') {
        let text = || Error::Value(format!("{path:?} is no path of JSON: write '$.a.b[0]'"));
        return Ok(behind_root(rest).ok_or_else(text)?);
    }
    match path.strip_prefix('/') {
        Some(rest) => {
            let part = |part: &str| Step::Either(part.replace("~1", "/").replace("~0", "~"));
            Ok(rest.split('/').map(part).collect())
        }
        None => Ok(vec![Step::Key(path.to_owned())]),
    }
}

/// The steps behind `$`; none for what is no path.
fn behind_root(mut rest: &str) -> Option<Vec<Step>> {
    let mut steps = Vec::new();
    while !rest.is_empty() {
        if let Some(behind) = rest.strip_prefix('[') {
            let (number, behind) = behind.split_once(']')?;
            let number = number.trim();
            let number = number.strip_prefix('#').unwrap_or(number);
            steps.push(Step::Number(number.parse().ok()?));
            rest = behind;
        } else if let Some(behind) = rest.strip_prefix(".\"") {
            let (key, behind) = behind.split_once('"')?;
            steps.push(Step::Key(key.to_owned()));
            rest = behind;
        } else {
            let behind = rest.strip_prefix('.')?;
            let end = behind.find(['.', '[']).unwrap_or(behind.len());
            let key = &behind[..end];
            if key.is_empty() || key.contains('*') {
                return None;
            }
            steps.push(Step::Key(key.to_owned()));
            rest = &behind[end..];
        }
    }
    Some(steps)
}

/// The value at the end of a path; none if there is no such value.
fn found<'a>(text: &'a str, steps: &[Step]) -> Result<Option<&'a str>> {
    if let Err(error) = serde_json::from_str::<IgnoredAny>(text) {
        return Err(Error::Value(format!("a text that is no JSON: {error}")).into());
    }
    let mut value = without_blanks(text);
    for step in steps {
        match step.within(value) {
            Some(inner) => value = inner,
            None => return Ok(None),
        }
    }
    Ok(Some(value))
}

fn as_text(value: &str) -> Result<Option<String>> {
    match value {
        "null" => Ok(None),
        text if text.starts_with('"') => match serde_json::from_str::<String>(text) {
            Ok(text) => Ok(Some(text)),
            Err(error) => Err(Error::Value(format!("a text that is no JSON: {error}")).into()),
        },
        other => Ok(Some(other.to_owned())),
    }
}

fn without_blanks(text: &str) -> &str {
    text.trim_matches([' ', '\t', '\n', '\r'])
}

impl Step {
    fn within<'a>(&self, value: &'a str) -> Option<&'a str> {
        let mut parts = Parts::of(value)?;
        match self {
            Step::Key(key) | Step::Either(key) if parts.is_object => {
                parts.find(|(own, _)| own.is_some_and(|own| is_key(own, key))).map(|(_, value)| value)
            }
            Step::Number(number) if !parts.is_object => {
                let at = match usize::try_from(*number) {
                    Ok(at) => at,
                    Err(_) => {
                        let back = usize::try_from(number.unsigned_abs()).ok()?;
                        Parts::of(value)?.count().checked_sub(back)?
                    }
                };
                parts.nth(at).map(|(_, value)| value)
            }
            Step::Either(number) if !parts.is_object => {
                parts.nth(number.parse().ok()?).map(|(_, value)| value)
            }
            _ => None,
        }
    }
}

/// Whether a key, as it is written in quotes, is this one.
fn is_key(written: &str, key: &str) -> bool {
    if written.contains('\\') {
        return serde_json::from_str::<String>(written).is_ok_and(|own| own == key);
    }
    written.get(1..written.len().saturating_sub(1)) == Some(key)
}

/// The keys and values of an object, or the values of a list, as they are written in a text that is JSON.
struct Parts<'a> {
    text: &'a str,
    at: usize,
    is_object: bool,
}

impl<'a> Parts<'a> {
    fn of(text: &'a str) -> Option<Parts<'a>> {
        match text.as_bytes().first()? {
            b'{' => Some(Parts { text, at: 1, is_object: true }),
            b'[' => Some(Parts { text, at: 1, is_object: false }),
            _ => None,
        }
    }

    /// The text up to the next comma, colon or end that is not within it.
    fn next_part(&mut self) -> Option<&'a str> {
        let (begin, bytes) = (self.at, self.text.as_bytes());
        let (mut depth, mut is_quoted) = (0_usize, false);
        while let Some(byte) = bytes.get(self.at) {
            match byte {
                b'\\' if is_quoted => self.at += 1,
                b'"' => is_quoted = !is_quoted,
                _ if is_quoted => {}
                b'{' | b'[' => depth += 1,
                b',' | b':' | b'}' | b']' if depth == 0 => break,
                b'}' | b']' => depth -= 1,
                _ => {}
            }
            self.at += 1;
        }
        let part = without_blanks(self.text.get(begin..self.at)?);
        // Behind its comma or colon.
        self.at += 1;
        Some(part).filter(|part| !part.is_empty())
    }
}

impl<'a> Iterator for Parts<'a> {
    type Item = (Option<&'a str>, &'a str);

    fn next(&mut self) -> Option<Self::Item> {
        let key = if self.is_object { Some(self.next_part()?) } else { None };
        Some((key, self.next_part()?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_those_at_the_end_of_a_path() {
        let text = r#" {"a": {"b.c" : [1, {"d": "x\"}, y"}, 12345678901234567890.10]}, "e\u0041": null, "f":[ ] , "a":2} "#;
        for (path, expected) in [
            ("$", Some(text.trim())),
            ("$.f", Some("[ ]")),
            ("f", Some("[ ]")),
            ("$.f[0]", None),
            ("$.a.\"b.c\"[0]", Some("1")),
            ("$.a.\"b.c\"[1].d", Some(r#""x\"}, y""#)),
            ("$.a.\"b.c\"[-1]", Some("12345678901234567890.10")),
            ("$.a.\"b.c\"[#-3]", Some("1")),
            ("$.a.\"b.c\"[-4]", None),
            ("$.a.\"b.c\"[3]", None),
            ("/a/b.c/1/d", Some(r#""x\"}, y""#)),
            ("$.eA", Some("null")),
            ("$.a.nope", None),
            ("$.a[0]", None),
            ("$.a.\"b.c\".d", None),
        ] {
            let steps = steps_of(path).expect(path);
            assert_eq!(found(text, &steps).expect(path), expected, "{path}");
        }
        for path in ["$a", "$.", "$.*", "$[x]", "$.a[0", "$..a"] {
            assert!(steps_of(path).is_err(), "{path}");
        }
        assert_eq!(as_text(r#""x\"}, y\n""#).expect("a text").as_deref(), Some("x\"}, y\n"));
        assert_eq!(as_text("null").expect("none"), None);
        for text in ["", "{", "{\"a\": }", "nope", "[1] 2"] {
            assert!(found(text, &[]).is_err(), "{text}");
        }
    }
}
