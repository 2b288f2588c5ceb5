//! `s -> 'a'` and `s ->> 'a'`: values within texts of JSON, as calls.
//!
//! To the parser a comparison binds more than these: `s ->> 'a' = 'x'` would be `s ->> ('a' = 'x')`. They
//! bind as in PostgreSQL if they are calls before it reads them. Behind a name, `x -> x + 1` stays as it is.

use crate::functions::json_values::{EXTRACT, EXTRACT_STRING};
use crate::sql::words::is_word;
use datafusion::logical_expr::sqlparser::tokenizer::{Token, TokenWithSpan};

/// The signs of these operators in a text.
pub(in crate::sql) const ARROW: &str = "->";

/// Words before a parenthesis that is no call, and words that end no operand.
const WORDS: [&str; 24] = [
    "all", "and", "any", "as", "between", "by", "case", "distinct", "else", "end", "from", "having", "ilike",
    "in", "is", "like", "not", "on", "or", "select", "then", "values", "when", "where",
];

/// Writes these operators as calls, from left to right; whether there are some.
pub(in crate::sql) fn write(tokens: &mut Vec<TokenWithSpan>) -> bool {
    let (mut at, mut has_some) = (0, false);
    while at < tokens.len() {
        let name = match tokens[at].token {
            Token::Arrow => EXTRACT,
            Token::LongArrow => EXTRACT_STRING,
            _ => {
                at += 1;
                continue;
            }
        };
        let (Some(begin), Some(end)) = (begin(tokens, at), end_of_key(tokens, at + 1)) else {
            at += 1;
            continue;
        };
        let span = tokens[at].span;
        tokens[at].token = Token::Comma;
        tokens.insert(end, TokenWithSpan::new(Token::RParen, span));
        let call = [Token::make_word(name, None), Token::LParen];
        drop(tokens.splice(begin..begin, call.map(|token| TokenWithSpan::new(token, span))));
        at = end + 3;
        has_some = true;
    }
    has_some
}

/// The end of a key that is a text or a number.
fn end_of_key(tokens: &[TokenWithSpan], at: usize) -> Option<usize> {
    match tokens.get(at)?.token {
        Token::SingleQuotedString(_) | Token::Number(..) => Some(at + 1),
        Token::Minus => matches!(tokens.get(at + 1)?.token, Token::Number(..)).then_some(at + 2),
        _ => None,
    }
}

/// The begin of the operand that ends before a token: a name, a text, a call, or what stands in parentheses,
/// with the elements and the casts behind it.
fn begin(tokens: &[TokenWithSpan], end: usize) -> Option<usize> {
    let last = end.checked_sub(1)?;
    let first = match tokens[last].token {
        Token::RParen => {
            let open = opening(tokens, last)?;
            match open.checked_sub(1) {
                Some(before) if is_name(&tokens[before]) => begin_of_name(tokens, before),
                _ => open,
            }
        }
        Token::RBracket => return begin(tokens, opening(tokens, last)?),
        Token::SingleQuotedString(_) => last,
        Token::Word(_) if is_name(&tokens[last]) => begin_of_name(tokens, last),
        _ => return None,
    };
    match first.checked_sub(1) {
        Some(before) if tokens[before].token == Token::DoubleColon => begin(tokens, before),
        _ => Some(first),
    }
}

fn is_name(token: &TokenWithSpan) -> bool {
    matches!(token.token, Token::Word(_)) && !is_word(token, &WORDS)
}

/// The begin of a name with several parts.
fn begin_of_name(tokens: &[TokenWithSpan], mut at: usize) -> usize {
    while 2 <= at && tokens[at - 1].token == Token::Period && is_name(&tokens[at - 2]) {
        at -= 2;
    }
    at
}

/// The sign that a closing one belongs to.
fn opening(tokens: &[TokenWithSpan], close: usize) -> Option<usize> {
    let mut depth = 0_usize;
    for at in (0..=close).rev() {
        match tokens[at].token {
            Token::RParen | Token::RBracket => depth += 1,
            Token::LParen | Token::LBracket => {
                depth = depth.checked_sub(1)?;
                if depth == 0 {
                    return Some(at);
                }
            }
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use crate::sql::small_tables::{cells, rows_in, session_of};

    #[test]
    fn values_within_texts_of_json_are_read() {
        let mut session = session_of(&[
            "create table e as select * from (values (1, '{\"u\": {\"name\": \"Ann\", \"ids\": [7, 8.50]}}', 'u'), \
             (2, '{\"u\": null}', 'u'), (3, null, 'u')) v(id, s, k)",
        ]);
        for (query, expected) in [
            ("select s -> 'u' -> 'name', s -> 'u' ->> 'name' from e where id = 1", "\"Ann\" Ann"),
            ("select id from e where s -> 'u' ->> 'name' = 'Ann' and id < 5", "1"),
            ("select id from e where 'Ann' = s->'u'->>'name'", "1"),
            ("select e.s -> 'u' -> 'ids' -> 0, s->'u'->'ids'->>-1 from e where id = 1", "7 8.50"),
            ("select (s ->> '$.u.ids[1]')::double * 2 + 1 from e where id = 1", "18"),
            (
                "select id, s -> 'u', s ->> 'u' is null from e where 1 < id order by id",
                "2 null true, 3 NULL true",
            ),
            ("select upper(lower(s) ->> '$.u.name') || '!' from e where id = 1", "ANN!"),
            ("select coalesce(s::varchar ->> '/u/name', 'nobody') from e order by id", "Ann, nobody, nobody"),
            ("select json_extract_string(s, '$.' || k || '.name') from e where id = 1", "Ann"),
            ("select json_extract(s, '$.u.name') from e where id = 1", "\"Ann\""),
            ("select '[1, 2]' -> 1", "2"),
            ("select count(*) from e group by s -> 'u' ->> 'name' having count(*) > 1", "2"),
        ] {
            assert_eq!(rows_in(&mut session, query).join(", "), expected, "{query}");
        }
        cells(&mut session, "create view v as select s ->> 'u' as u from e");
        assert_eq!(rows_in(&mut session, "select count(*), count(u) from v"), ["3 1"]);
        for (query, class, told) in [
            ("select 'x' -> 'a'", "ValueError", "a text that is no JSON"),
            ("select s -> '$.*' from e", "ValueError", "is no path of JSON: write '$.a.b[0]'"),
            ("select id -> 'a' from e", "TypeError", "no function json_extract(BIGINT, VARCHAR)"),
            ("select nope -> 'a' from e", "KeyError", "no column \"nope\""),
        ] {
            let error = session.run(query).expect_err(query);
            assert_eq!(error.class(), class, "{query}: {error}");
            assert!(error.to_string().contains(told), "{query}: {error}");
        }
    }
}
