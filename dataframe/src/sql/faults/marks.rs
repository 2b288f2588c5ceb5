//! The part of a statement that a mistake is about, where the reason has no name of it.

use crate::sql::words::{self, QUERIES, Words};
use crate::sql_place::SqlPlace;
use datafusion::execution::SessionState;
use datafusion::logical_expr::sqlparser::tokenizer::{Token, TokenWithSpan};

/// A part of a statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::sql) enum Mark {
    /// A name. If it is right elsewhere, its place is known only where it stands once.
    Name { text: String, is_only: bool },
    /// The first such word or sign.
    First(&'static str),
    /// A text in quotes that is no value of a type, or the only cast to the type if the text is of a column.
    Text { text: String, dtype: String },
    /// The call of an aggregate in a condition of rows.
    AggregateInWhere,
    /// The number of a column behind a word and BY.
    Number { clause: &'static str, number: String },
    /// A condition of rows, which begins with a column if that is all of it.
    Condition { column: String },
    /// A query that stands for a value.
    Subquery,
}

impl Mark {
    /// The place in the statement, if it is known.
    pub(in crate::sql) fn place(&self, words: &Words<'_>, state: &SessionState) -> Option<SqlPlace> {
        match self {
            Mark::Name { text, is_only } => words.name(text, *is_only),
            Mark::First(word) => {
                let is_it = |token: &&TokenWithSpan| token.token.to_string().eq_ignore_ascii_case(word);
                words.tokens().iter().find(is_it).map(|token| words.place(token))
            }
            Mark::Text { text, dtype } => {
                let written = only(texts(words, text)).map(|at| words.place(&words.tokens()[at]));
                written.or_else(|| only_cast(words, text, dtype))
            }
            Mark::AggregateInWhere => {
                let is_aggregate =
                    |name: &str| state.aggregate_functions().contains_key(&name.to_lowercase());
                aggregate_in_where(words.tokens(), is_aggregate).map(|at| words.place(&words.tokens()[at]))
            }
            Mark::Number { clause, number } => {
                number_behind(words.tokens(), clause, number).map(|at| words.place(&words.tokens()[at]))
            }
            Mark::Condition { column } => condition(words, column),
            Mark::Subquery => only(subqueries(words.tokens())).map(|at| words.place(&words.tokens()[at])),
        }
    }
}

/// The only one of some places.
fn only(places: Vec<usize>) -> Option<usize> {
    match places.as_slice() {
        [place] => Some(*place),
        _ => None,
    }
}

fn is_word(token: Option<&TokenWithSpan>, known: &[&str]) -> bool {
    token.is_some_and(|token| words::is_word(token, known))
}

/// The places of a text that is made a value of another type: by a cast, or beside a comparison if no other
/// value of the statement is cast.
fn texts(words: &Words<'_>, text: &str) -> Vec<usize> {
    let tokens = words.tokens();
    let is_text = |at: usize| matches!(&tokens[at].token, Token::SingleQuotedString(found) if found == text);
    let before = |at: usize| at.checked_sub(1).and_then(|at| tokens.get(at));
    let is_cast = |at: usize| {
        let is_call = is_word(at.checked_sub(2).and_then(|at| tokens.get(at)), &["cast", "try_cast"]);
        let is_called = before(at).is_some_and(|token| token.token == Token::LParen) && is_call;
        let is_colons = tokens.get(at + 1).is_some_and(|token| token.token == Token::DoubleColon);
        is_called || is_colons || is_word(before(at), &TYPED)
    };
    let others_are_cast = (0..tokens.len()).any(|at| match &tokens[at].token {
        Token::DoubleColon => {
            !before(at).is_some_and(|token| matches!(token.token, Token::SingleQuotedString(_)))
        }
        Token::Word(_) if is_word(tokens.get(at), &["cast", "try_cast"]) => {
            !tokens.get(at + 2).is_some_and(|token| matches!(token.token, Token::SingleQuotedString(_)))
        }
        _ => false,
    });
    let cast: Vec<usize> = (0..tokens.len()).filter(|at| is_text(*at) && is_cast(*at)).collect();
    if !cast.is_empty() || others_are_cast {
        return cast;
    }
    (0..tokens.len()).filter(|at| is_text(*at)).collect()
}

/// The only cast of a statement to a type, if the text that is no value of it is not written there.
fn only_cast(words: &Words<'_>, text: &str, dtype: &str) -> Option<SqlPlace> {
    let tokens = words.tokens();
    let is_text =
        |token: &TokenWithSpan| matches!(&token.token, Token::SingleQuotedString(found) if found == text);
    if tokens.iter().any(is_text) {
        return None;
    }
    let names = CAST_TO.iter().find(|names| names.iter().any(|name| name.eq_ignore_ascii_case(dtype)))?;
    let is_cast = |at: &usize| {
        let is_behind = tokens[at - 1].token == Token::DoubleColon || is_word(tokens.get(at - 1), &["as"]);
        is_behind && is_word(tokens.get(*at), names)
    };
    let at = only((1..tokens.len()).filter(is_cast).collect())?;
    Some(words.between(&tokens[at - 1], &tokens[at]))
}

/// Names of types that texts are cast to; those of one type in a row.
const CAST_TO: [&[&str]; 7] = [
    &["bigint", "int8"],
    &["boolean", "bool"],
    &["date"],
    &["double", "float8"],
    &["integer", "int", "int4"],
    &["real", "float4"],
    &["smallint", "int2"],
];

/// Names of types before a text.
const TYPED: [&str; 4] = ["date", "time", "timestamp", "timestamptz"];

/// The first call of an aggregate in a condition of rows, and not in a query within it.
fn aggregate_in_where(tokens: &[TokenWithSpan], is_aggregate: impl Fn(&str) -> bool) -> Option<usize> {
    let wheres = (0..tokens.len()).filter(|at| is_word(tokens.get(*at), &["where"]));
    for begin in wheres {
        let (mut depth, mut query) = (0_usize, None);
        for at in begin + 1..tokens.len() {
            match &tokens[at].token {
                Token::LParen => {
                    depth += 1;
                    if query.is_none() && is_word(tokens.get(at + 1), &QUERIES) {
                        query = Some(depth);
                    }
                }
                Token::RParen if depth == 0 => break,
                Token::RParen => {
                    query = query.filter(|query| *query != depth);
                    depth -= 1;
                }
                Token::Word(_) if depth == 0 && is_word(tokens.get(at), &CLAUSES) => break,
                Token::Word(name)
                    if query.is_none()
                        && is_aggregate(&name.value)
                        && tokens.get(at + 1).is_some_and(|token| token.token == Token::LParen) =>
                {
                    return Some(at);
                }
                _ => {}
            }
        }
    }
    None
}

/// A number among the keys of `ORDER BY` or `GROUP BY`.
fn number_behind(tokens: &[TokenWithSpan], clause: &str, number: &str) -> Option<usize> {
    let is_by = |at: &usize| is_word(tokens.get(*at), &[clause]) && is_word(tokens.get(at + 1), &["by"]);
    (0..tokens.len()).filter(is_by).find_map(|begin| {
        let keys = begin + 2..tokens.len();
        let mut keys = keys.take_while(|at| !is_word(tokens.get(*at), &CLAUSES));
        keys.find(|at| matches!(&tokens[*at].token, Token::Number(found, _) if found == number))
    })
}

/// The condition of rows that is only a column, or the first word of the only one.
fn condition(words: &Words<'_>, column: &str) -> Option<SqlPlace> {
    let tokens = words.tokens();
    let conditions: Vec<usize> =
        (0..tokens.len()).filter(|at| is_word(tokens.get(*at), &["where", "having"])).collect();
    let name = column.rsplit('.').next().unwrap_or(column).trim_matches('"');
    for begin in &conditions {
        let mut end = begin + 1;
        while tokens.get(end + 1).is_some_and(|token| token.token == Token::Period) {
            end += 2;
        }
        let is_column = matches!(tokens.get(end).map(|token| &token.token),
            Some(Token::Word(word)) if word.value.eq_ignore_ascii_case(name));
        if is_column {
            return Some(words.between(&tokens[begin + 1], &tokens[end]));
        }
    }
    let first = tokens.get(only(conditions)? + 1)?;
    Some(words.place(first))
}

/// Queries in parentheses that stand for a value: not behind a word that takes rows.
fn subqueries(tokens: &[TokenWithSpan]) -> Vec<usize> {
    const ROWS: [&str; 16] = [
        "all",
        "any",
        "apply",
        "array",
        "as",
        "copy",
        "except",
        "exists",
        "from",
        "in",
        "intersect",
        "into",
        "join",
        "lateral",
        "some",
        "union",
    ];
    let mut in_from = vec![false];
    let mut found = Vec::new();
    for at in 0..tokens.len() {
        match &tokens[at].token {
            Token::LParen => {
                let before = at.checked_sub(1).and_then(|at| tokens.get(at));
                let is_of_rows = is_word(before, &ROWS);
                // A comma in FROM is one between tables.
                let is_table = before.is_some_and(|token| token.token == Token::Comma)
                    && in_from.last().copied().unwrap_or_default();
                if before.is_some() && !is_of_rows && !is_table && is_word(tokens.get(at + 1), &QUERIES) {
                    found.push(at + 1);
                }
                in_from.push(false);
            }
            Token::RParen if 1 < in_from.len() => {
                in_from.pop();
            }
            Token::Word(_) => {
                let begins_tables = is_word(tokens.get(at), &["from"]);
                let begins_other = is_word(tokens.get(at), &CLAUSES) || is_word(tokens.get(at), &["select"]);
                if let Some(in_from) = in_from.last_mut().filter(|_| begins_tables || begins_other) {
                    *in_from = begins_tables;
                }
            }
            _ => {}
        }
    }
    found
}

/// Whether a name is a parameter in a call, `x -> ..` or `(x, y) -> ..`, which the parser takes for a column.
/// Behind the arrow of a value of JSON stands a text.
pub(in crate::sql) fn is_parameter(words: &Words<'_>, place: &SqlPlace) -> bool {
    let rest = words.from(place);
    let names = rest.iter().take_while(|token| matches!(token.token, Token::Word(_) | Token::Comma)).count();
    let end = names + usize::from(rest.get(names).is_some_and(|token| token.token == Token::RParen));
    let begin = words.tokens().len() - rest.len();
    let before = begin.checked_sub(1).and_then(|at| words.tokens().get(at));
    let is_argument = before.is_some_and(|token| matches!(token.token, Token::Comma | Token::LParen));
    let is_arrow = rest.get(end).is_some_and(|token| token.token == Token::Arrow);
    let is_json = rest.get(end + 1).is_some_and(|token| matches!(token.token, Token::SingleQuotedString(_)));
    0 < names && is_argument && is_arrow && !is_json
}

/// The place where END of a CASE is missing, and what stands there, if the parser stopped behind such a CASE.
pub(in crate::sql) fn missing_end(words: &Words<'_>, stop: &SqlPlace) -> Option<(SqlPlace, String)> {
    let tokens = words.tokens();
    let mut open = Vec::new();
    for at in 0..tokens.len() {
        if is_word(tokens.get(at), &["case"]) {
            open.push(at);
        } else if is_word(tokens.get(at), &["end"]) {
            open.pop();
        }
    }
    let case = *open.last()?;
    let place = words.place(&tokens[case]);
    let is_before = (place.line(), place.column()) < (stop.line(), stop.column());
    if !is_before || !(case..tokens.len()).any(|at| is_word(tokens.get(at), &["when"])) {
        return None;
    }
    let mut depth = 0_usize;
    for at in case + 1..tokens.len() {
        match &tokens[at].token {
            Token::LParen => depth += 1,
            Token::RParen if 0 < depth => depth -= 1,
            Token::RParen | Token::SemiColon => return Some(found(words, at)),
            Token::Comma if depth == 0 => return Some(found(words, at)),
            // IS DISTINCT FROM
            Token::Word(_)
                if depth == 0
                    && is_word(tokens.get(at), &CLAUSES)
                    && !is_word(tokens.get(at - 1), &["distinct"]) =>
            {
                return Some(found(words, at));
            }
            _ => {}
        }
    }
    Some((words.end(), "the end of the statement".to_owned()))
}

fn found(words: &Words<'_>, at: usize) -> (SqlPlace, String) {
    let token = &words.tokens()[at];
    (words.place(token), format!("{:?}", token.token.to_string()))
}

/// Words that end a condition, or a value.
const CLAUSES: [&str; 15] = [
    "as",
    "except",
    "fetch",
    "from",
    "group",
    "having",
    "intersect",
    "limit",
    "offset",
    "order",
    "qualify",
    "union",
    "where",
    "window",
    "into",
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::{Settings, session};

    fn marked(mark: &Mark, text: &str) -> Option<String> {
        let state = session(Settings::default());
        let place = mark.place(&Words::of(text, &state), &state)?;
        Some(place.text().chars().skip(place.column() - 1).take(place.width()).collect())
    }

    #[test]
    fn a_part_is_marked_where_it_is_sure() {
        let text = Mark::Text { text: "x".to_owned(), dtype: "INTEGER".to_owned() };
        let number = Mark::Number { clause: "order", number: "3".to_owned() };
        let column = Mark::Condition { column: "t.sold".to_owned() };
        for (mark, statement, wanted) in [
            (&text, "select * from t where sold = 'x'", Some("'x'")),
            (&text, "select cast('x' as int), 'x'", Some("'x'")),
            (&text, "select 'x'::int from t where city = 'x'", Some("'x'")),
            (&text, "select cast(city as int) from t where city = 'x'", None),
            (&text, "select city::int from t where city = 'x'", None),
            (&text, "select city::int, sold::date from t", Some("::int")),
            (&text, "select cast(city as Integer) from t", Some("as Integer")),
            (&text, "select city::int, zip::integer from t", None),
            (&text, "select city::date from t", None),
            (&text, "select * from t where a = 'x' or b = 'x'", None),
            (&Mark::AggregateInWhere, "select * from t where a > 1 and Sum(b) > 1", Some("Sum")),
            (
                &Mark::AggregateInWhere,
                "select 1 where a > (select max(b) from u) and min(b) > 1",
                Some("min"),
            ),
            (&Mark::AggregateInWhere, "select 1 from t where a > 1 group by a having sum(b) > 1", None),
            (&number, "select 3 from t where a = 3 order by a, 3 desc limit 3", Some("3")),
            (&number, "select 3 from t group by 3 order by 2", None),
            (&column, "select * from t where t.sold", Some("t.sold")),
            (&column, "select * from t where SOLD order by 1", Some("SOLD")),
            (&column, "select * from t where 'a'", Some("'a'")),
            (&column, "select * from t where a = 1 having b", None),
            (&Mark::Subquery, "select (select a from t)", Some("select")),
            (&Mark::Subquery, "select 1 from (select 2) x where a = (select a from t)", Some("select")),
            (
                &Mark::Subquery,
                "select 1 from t, (select 2) x where a in (select 1) and b = (values (1))",
                Some("values"),
            ),
            (&Mark::Subquery, "select (select 1), (select 2)", None),
            (&Mark::First("semi"), "select * from t SEMI join u", Some("SEMI")),
        ] {
            assert_eq!(marked(mark, statement).as_deref(), wanted, "{mark:?}: {statement}");
        }
    }

    #[test]
    fn parameters_stand_before_an_arrow() {
        let state = session(Settings::default());
        for (statement, column, is_one) in [
            ("select f(l, x -> x + 1)", 13, true),
            ("select f(l, (x, y) -> x + 1)", 14, true),
            ("select f(l, x)", 13, false),
            ("select a -> 'k', x", 18, false),
            ("select a -> k", 8, false),
            ("select f(a -> 'k')", 10, false),
        ] {
            let words = Words::of(statement, &state);
            assert_eq!(is_parameter(&words, &SqlPlace::of(statement, 1, column, 1)), is_one, "{statement}");
        }
    }

    #[test]
    fn a_case_without_end_ends_at_a_clause() {
        let state = session(Settings::default());
        for (statement, wanted) in [
            ("select case when a > 3 then 'a' else 1 from t", Some("from")),
            ("select (case when a is distinct from b then (c) ) from t", Some(")")),
            ("select case when case when a then b end then 2, 3", Some(",")),
            ("select case a when 1 then extract(year from d) as y", Some("as")),
            ("select case when a then b end from t wher", None),
            ("select case from t wher", None),
        ] {
            let words = Words::of(statement, &state);
            let found = missing_end(&words, &words.end()).map(|(place, _)| {
                place.text().chars().skip(place.column() - 1).take(place.width()).collect::<String>()
            });
            assert_eq!(found.as_deref(), wanted, "{statement}");
        }
    }
}
