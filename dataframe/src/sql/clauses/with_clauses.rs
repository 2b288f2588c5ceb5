//! The tables of `WITH` that a place in the text of a statement sees.

use crate::sql::words::is_word;
use datafusion::logical_expr::sqlparser::tokenizer::{Token, TokenWithSpan};
use std::ops::Range;

const WITH: &str = "with";

/// The clauses whose tables are seen behind some tokens, as places of tokens, from the outermost one on. Of
/// one in whose tables the place is, these are the tables before it.
pub(in crate::sql) fn seen(tokens: &[TokenWithSpan]) -> Vec<Range<usize>> {
    let mut levels: Vec<Option<Range<usize>>> = vec![None];
    let mut at = 0;
    while let Some(token) = tokens.get(at) {
        if let Some(end) = end_of_clause(tokens, at) {
            if let Some(level) = levels.last_mut() {
                *level = Some(at..end);
            }
            at = end;
            continue;
        }
        match token.token {
            Token::LParen => levels.push(None),
            Token::RParen if 1 < levels.len() => {
                levels.pop();
            }
            _ => {}
        }
        at += 1;
    }
    levels.into_iter().flatten().collect()
}

/// The text before a place with these clauses, ranges of bytes, as one clause, and blanks in the place of all
/// else: places stay.
pub(in crate::sql) fn alone(before: &str, clauses: &[Range<usize>]) -> String {
    let letter = |(place, letter): (usize, char)| {
        let clause = clauses.iter().position(|clause| clause.contains(&place));
        match clause {
            Some(number) if 0 < number && place == clauses[number].start => ',',
            Some(number) if 0 < number && place < clauses[number].start + WITH.len() => ' ',
            Some(_) => letter,
            None if letter.is_whitespace() => letter,
            None => ' ',
        }
    };
    before.char_indices().map(letter).collect()
}

/// The end of the complete tables of a clause that begins with a token; none if there is no such table.
fn end_of_clause(tokens: &[TokenWithSpan], begin: usize) -> Option<usize> {
    if !is_word(tokens.get(begin)?, &[WITH]) {
        return None;
    }
    let is_recursive = tokens.get(begin + 1).is_some_and(|token| is_word(token, &["recursive"]));
    let (mut next, mut end) = (begin + 1 + usize::from(is_recursive), None);
    while let Some(behind) = end_of_table(tokens, next) {
        end = Some(behind);
        if tokens.get(behind).is_none_or(|token| token.token != Token::Comma) {
            break;
        }
        next = behind + 1;
    }
    end
}

/// The end of a table, `name (columns) AS MATERIALIZED (..)`, that begins with a token.
fn end_of_table(tokens: &[TokenWithSpan], begin: usize) -> Option<usize> {
    let Token::Word(_) = tokens.get(begin)?.token else { return None };
    let mut at = begin + 1;
    if tokens.get(at)?.token == Token::LParen {
        at = end_of_parenthesis(tokens, at)?;
    }
    if !is_word(tokens.get(at)?, &["as"]) {
        return None;
    }
    at += 1;
    while is_word(tokens.get(at)?, &["not", "materialized"]) {
        at += 1;
    }
    end_of_parenthesis(tokens, at)
}

/// The end of a parenthesis that begins with a token; none if it is none, or has no end.
fn end_of_parenthesis(tokens: &[TokenWithSpan], begin: usize) -> Option<usize> {
    let mut depth = 0_usize;
    for (at, token) in tokens.iter().enumerate().skip(begin) {
        match token.token {
            Token::LParen => depth += 1,
            _ if depth == 0 => return None,
            Token::RParen if depth == 1 => return Some(at + 1),
            Token::RParen => depth -= 1,
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::{alone, seen};
    use crate::sql::states;
    use crate::sql::words::Words;

    #[test]
    fn clauses_are_seen_from_within_their_queries() {
        let state = states::of_query();
        for (before, expected) in [
            ("select a from (", ""),
            ("with x as (select 1) select a from (", "with x as (select 1)"),
            ("with x(a) as not materialized (select (1)), y as (select 2)", "x,y"),
            ("with x as (select 1), y as (", "with x as (select 1)"),
            ("with recursive x as (select 1) select a from (", "with recursive x as (select 1)"),
            ("select (with x as (select 1) select a from x) from (", ""),
            ("select timestamp with time zone '1' from (", ""),
            ("with x as (", ""),
        ] {
            let words = Words::of(before, &state);
            let tokens = words.tokens();
            let bytes = seen(tokens)
                .into_iter()
                .map(|clause| words.offset(&tokens[clause.start])..words.offset(&tokens[clause.end - 1]) + 1);
            let expected = if expected == "x,y" { before } else { expected };
            assert_eq!(alone(before, &bytes.collect::<Vec<_>>()).trim(), expected, "{before}");
        }
    }
}
