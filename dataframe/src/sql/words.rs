//! The words of a statement, and where they stand.

use crate::sql_place::SqlPlace;
use datafusion::common::Span;
use datafusion::execution::SessionState;
use datafusion::logical_expr::sqlparser::dialect::{GenericDialect, dialect_from_str};
use datafusion::logical_expr::sqlparser::tokenizer::{Token, TokenWithSpan, Tokenizer};

/// Words with which a query begins.
pub(super) const QUERIES: [&str; 5] = ["from", "select", "table", "values", "with"];

/// The words and signs of a statement, without what is between them.
pub(super) struct Words<'a> {
    text: &'a str,
    tokens: Vec<TokenWithSpan>,
}

impl<'a> Words<'a> {
    /// Those of a text in the dialect of a session; none of a text that has no end.
    pub(super) fn of(text: &'a str, state: &SessionState) -> Words<'a> {
        let dialect = dialect_from_str(state.config().options().sql_parser.dialect);
        let dialect = dialect.unwrap_or_else(|| Box::new(GenericDialect {}));
        let mut tokens = Tokenizer::new(&*dialect, text).tokenize_with_location().unwrap_or_default();
        tokens.retain(|token| !matches!(token.token, Token::Whitespace(_)));
        Words { text, tokens }
    }

    /// The place of a token that begins at a line and a column; one character, if there is no such token.
    pub(super) fn at(&self, line: u64, column: u64) -> SqlPlace {
        let found = self.tokens.iter().find(|token| {
            let start = token.span.start;
            (start.line, start.column) == (line, column)
        });
        match found {
            Some(token) => self.place(token),
            None => SqlPlace::of(self.text, line as usize, column as usize, 1),
        }
    }

    /// All of them, one after the other.
    pub(super) fn tokens(&self) -> &[TokenWithSpan] {
        &self.tokens
    }

    /// The byte of the text at which a token begins.
    pub(super) fn offset(&self, token: &TokenWithSpan) -> usize {
        let start = token.span.start;
        let lines = self.text.split_inclusive('\n').take((start.line as usize).saturating_sub(1));
        let begin = lines.map(str::len).sum::<usize>();
        let letters = self.text[begin..].char_indices().nth((start.column as usize).saturating_sub(1));
        letters.map_or(self.text.len(), |(at, _)| begin + at)
    }

    /// The place of a token.
    pub(super) fn place(&self, token: &TokenWithSpan) -> SqlPlace {
        let (start, end) = (token.span.start, token.span.end);
        let width = if start.line == end.line { end.column.saturating_sub(start.column) } else { u64::MAX };
        SqlPlace::of(self.text, start.line as usize, start.column as usize, width as usize)
    }

    /// The end of the text, where something is missing.
    pub(super) fn end(&self) -> SqlPlace {
        let written = self.text.trim_end();
        let line = written.matches('\n').count() + 1;
        let last = written.rsplit('\n').next().unwrap_or_default();
        SqlPlace::of(written, line, last.chars().count() + 1, 1)
    }

    /// The word before a place.
    pub(super) fn before(&self, place: &SqlPlace) -> Option<&str> {
        let is_before = |token: &&TokenWithSpan| {
            let start = token.span.start;
            (start.line as usize, start.column as usize) < (place.line(), place.column())
        };
        match &self.tokens.iter().take_while(is_before).last()?.token {
            Token::Word(word) if word.quote_style.is_none() => Some(&word.value),
            _ => None,
        }
    }

    /// Those from a place on.
    pub(super) fn from(&self, place: &SqlPlace) -> &[TokenWithSpan] {
        let is_before = |token: &TokenWithSpan| {
            let start = token.span.start;
            (start.line as usize, start.column as usize) < (place.line(), place.column())
        };
        &self.tokens[self.tokens.partition_point(is_before)..]
    }

    /// The place from one token to another one.
    pub(super) fn between(&self, first: &TokenWithSpan, last: &TokenWithSpan) -> SqlPlace {
        let (start, end) = (first.span.start, last.span.end);
        let width = if start.line == end.line { end.column.saturating_sub(start.column) } else { u64::MAX };
        SqlPlace::of(self.text, start.line as usize, start.column as usize, width as usize)
    }

    /// Whether a word, or a sign, is among them.
    pub(super) fn has(&self, word: &str) -> bool {
        self.tokens.iter().any(|token| token.token.to_string().eq_ignore_ascii_case(word))
    }

    /// The sign before a place, if it is one and no word, and nothing is between them.
    pub(super) fn sign_before(&self, place: &SqlPlace) -> Option<String> {
        let behind = self.from(place).len();
        let token = self.tokens.get(self.tokens.len().checked_sub(behind + 1)?)?;
        let end = token.span.end;
        let is_beside = (end.line as usize, end.column as usize) == (place.line(), place.column());
        (is_beside && !matches!(token.token, Token::Word(_))).then(|| token.token.to_string())
    }

    /// The place of the last key of an order that has a name.
    pub(super) fn key(&self, name: &str) -> Option<Span> {
        let order = self.tokens.iter().rposition(|token| is_named(token, "order"))?;
        let key = self.tokens[order..].iter().rfind(|token| is_named(token, name))?;
        Span::try_from_sqlparser_span(key.span)
    }

    /// The place of a name: the first one, or the only one.
    pub(super) fn name(&self, name: &str, is_only: bool) -> Option<SqlPlace> {
        let mut found = self.tokens.iter().filter(|token| is_named(token, name));
        let first = found.next()?;
        (!is_only || found.next().is_none()).then(|| self.place(first))
    }

    /// The place of the text between two marks of the library.
    pub(super) fn of_span(&self, span: Span) -> SqlPlace {
        let (start, end) = (span.start, span.end);
        let width = if start.line == end.line { end.column.saturating_sub(start.column) } else { u64::MAX };
        SqlPlace::of(self.text, start.line as usize, start.column as usize, width as usize)
    }
}

/// Whether a text has the letters of a word. Most texts have not, and are not taken apart to look for it.
pub(super) fn may_have(text: &str, word: &str) -> bool {
    text.as_bytes().windows(word.len()).any(|part| part.eq_ignore_ascii_case(word.as_bytes()))
}

/// Whether a token is one of some words, without quotes and in any letters.
pub(super) fn is_word(token: &TokenWithSpan, words: &[&str]) -> bool {
    match &token.token {
        Token::Word(found) if found.quote_style.is_none() => {
            words.iter().any(|word| found.value.eq_ignore_ascii_case(word))
        }
        _ => false,
    }
}

/// Whether a token is a name: without quotes in any letters.
fn is_named(token: &TokenWithSpan, name: &str) -> bool {
    match &token.token {
        Token::Word(word) if word.quote_style.is_some() => word.value == name,
        Token::Word(word) => word.value.eq_ignore_ascii_case(name),
        Token::SingleQuotedString(text) => text == name,
        _ => false,
    }
}
