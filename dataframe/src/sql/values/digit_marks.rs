//! `1_000`: whole numbers with marks between their digits, as PostgreSQL and DuckDB have them.
//!
//! The library reads a number and a name behind it, so that `select 1_000` would be 1, called `_000`. Such a
//! number is written without its marks at the end of its own place: all else stays where it is.

use crate::sql::words::Words;
use datafusion::execution::SessionState;
use datafusion::logical_expr::sqlparser::tokenizer::{Token, TokenWithSpan};
use std::borrow::Cow;

/// The text of a statement whose numbers have no marks between their digits.
pub(in crate::sql) fn without_marks<'a>(text: &'a str, state: &SessionState) -> Cow<'a, str> {
    let is_mark = |pair: &[u8]| matches!(pair, [digit, b'_'] if digit.is_ascii_digit());
    if !text.as_bytes().windows(2).any(is_mark) {
        return Cow::Borrowed(text);
    }
    let words = Words::of(text, state);
    let (mut plain, mut copied) = (String::new(), 0);
    let (mut letters, mut line, mut column) = (text.char_indices(), 1, 1);
    for pair in words.tokens().windows(2) {
        let Some((begin, rest)) = marked(pair) else { continue };
        let start = pair[0].span.start;
        while (line, column) < (start.line, start.column) {
            match letters.next() {
                Some((_, '\n')) => (line, column) = (line + 1, 1),
                Some(_) => column += 1,
                None => break,
            }
        }
        let (at, width) = (letters.offset(), begin.len() + rest.len());
        let digits = format!("{begin}{}", rest.replace('_', ""));
        plain.push_str(&text[copied..at]);
        plain.push_str(&format!("{digits:>width$}"));
        copied = at + width;
    }
    if copied == 0 {
        return Cow::Borrowed(text);
    }
    plain.push_str(&text[copied..]);
    Cow::Owned(plain)
}

/// The begin of a number and the rest behind its first mark, if that is what two words are.
fn marked(pair: &[TokenWithSpan]) -> Option<(&str, &str)> {
    let [number, behind] = pair else { return None };
    let (Token::Number(begin, false), Token::Word(rest)) = (&number.token, &behind.token) else {
        return None;
    };
    let is_beside = number.span.end == behind.span.start && rest.quote_style.is_none();
    let are_digits = |group: &str| !group.is_empty() && group.bytes().all(|byte| byte.is_ascii_digit());
    let (groups, exponent) = rest.value.split_once(['e', 'E']).unwrap_or((rest.value.as_str(), "0"));
    let is_rest = groups.strip_prefix('_').is_some_and(|groups| groups.split('_').all(are_digits));
    let is_rest = is_rest && are_digits(exponent);
    (is_beside && is_rest).then_some((begin.as_str(), rest.value.as_str()))
}

#[cfg(test)]
mod tests {
    use crate::sql::small_tables::{answer, cells, session_of};

    #[test]
    fn numbers_have_marks_between_their_digits() {
        let mut session = session_of(&["create table t (a_1 int) as values (1_000), (2_500)"]);
        for (query, expected) in [
            ("select 1_000, -2_000_000, 'a 1_0' as s, 1_0+1", ["1000", "-2000000", "a 1_0", "11"].as_slice()),
            ("select 1_000.5 + 0, 'ü' as u,\n 1_2", &["1000.5", "ü", "12"]),
            ("select 1_0e3 + 0.5, 2.5_0E1", &["10000.5", "25"]),
            ("select count(*) from t where a_1 < 2_000", &["1"]),
            ("select a_1 from t order by a_1 limit 1_0", &["1000"]),
        ] {
            assert_eq!(cells(&mut session, query)[0], expected, "{query}");
        }
        // These are names.
        assert_eq!(answer(&mut session, "select 3 _5, 4 \"_6\", 5_e").0, ["_5", "_6", "_e"]);
        let error = session.run("select 1_000, noth from t").expect_err("no column");
        assert_eq!(error.sql_place().map(|place| place.column()), Some(15), "{error}");
    }
}
