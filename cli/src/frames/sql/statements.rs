//! Statements of a text: semicolons divide them, except in quotes and comments.

/// A statement and the place where it begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Statement<'a> {
    /// Its text, without the semicolon.
    pub text: &'a str,
    /// The line of its first word, from 1.
    pub line: usize,
    /// The place of its first word in the line, in characters from 1.
    pub column: usize,
}

impl<'a> From<&'a str> for Statement<'a> {
    /// A statement that is all of a text.
    fn from(text: &'a str) -> Statement<'a> {
        Statement { text, line: 1, column: 1 }
    }
}

/// The statements of a text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Statements<'a> {
    /// Those that a semicolon ends.
    pub whole: Vec<Statement<'a>>,
    /// The text behind the last semicolon, if it has a word.
    pub rest: Option<Statement<'a>>,
}

impl<'a> Statements<'a> {
    /// Divides a text. A text that ends within a quote or a comment has that in its rest, as it was typed.
    pub fn of(text: &'a str) -> Statements<'a> {
        let mut found = Statements::default();
        let (mut at, mut first_word, mut open_comment) = (0, None, None);
        // The line and the column of a place, counted on from the last one.
        let (mut counted, mut line, mut column) = (0, 1, 1);
        let mut starting_at = |text: &'a str, begin: usize, end: usize| {
            let between = &text[counted..begin];
            line += between.matches('\n').count();
            column = match between.rsplit_once('\n') {
                Some((_, last)) => last.chars().count() + 1,
                None => column + between.chars().count(),
            };
            counted = begin;
            Statement { text: &text[begin..end], line, column }
        };
        while let Some(token) = Token::at(text, at) {
            match token.kind {
                Kind::Semicolon => {
                    if let Some(word) = first_word.take() {
                        let whole = starting_at(text, word, at);
                        found.whole.push(Statement { text: whole.text.trim_end(), ..whole });
                    }
                }
                Kind::Word => first_word = first_word.or(Some(at)),
                Kind::OpenComment => open_comment = Some(at),
                Kind::Blank => {}
            }
            at += token.bytes;
        }
        // A comment that does not end may be one that the user is still typing.
        let rest = first_word.or(open_comment);
        found.rest = rest.map(|begin| starting_at(text, begin, text.len()));
        found
    }

    /// All statements, the last one also without a semicolon.
    pub fn all(self) -> impl Iterator<Item = Statement<'a>> {
        let rest = self.rest.map(|rest| Statement { text: rest.text.trim_end(), ..rest });
        self.whole.into_iter().chain(rest)
    }
}

enum Kind {
    Semicolon,
    /// Space or a comment.
    Blank,
    /// A comment that does not end.
    OpenComment,
    Word,
}

struct Token {
    kind: Kind,
    bytes: usize,
}

impl Token {
    /// The token at a place of a text; none at its end.
    fn at(text: &str, at: usize) -> Option<Token> {
        let rest = &text[at..];
        let first = rest.chars().next()?;
        let to = |end: Option<usize>| end.unwrap_or(rest.len());
        let token = |kind, bytes| Some(Token { kind, bytes });
        match first {
            ';' => token(Kind::Semicolon, 1),
            first if first.is_whitespace() => token(Kind::Blank, first.len_utf8()),
            '-' if rest.starts_with("--") => token(Kind::Blank, to(rest.find('\n'))),
            '/' if rest.starts_with("/*") => match comment_end(rest) {
                Some(end) => token(Kind::Blank, end),
                None => token(Kind::OpenComment, rest.len()),
            },
            // Backslashes stand before what a text of this kind has.
            'e' | 'E' if rest[1..].starts_with('\'') => token(Kind::Word, to(escaped_end(rest))),
            // A doubled quote ends a text and begins another one.
            quote @ ('\'' | '"' | '`') => token(Kind::Word, to(rest[1..].find(quote).map(|end| end + 2))),
            '$' => {
                let end = dollar_tag(rest)
                    .map(|tag| rest[tag.len()..].find(tag).map_or(rest.len(), |end| end + 2 * tag.len()));
                token(Kind::Word, end.unwrap_or(1))
            }
            first if first.is_alphanumeric() || first == '_' => {
                // A dollar in a name begins no quote.
                let is_name = |letter: char| letter.is_alphanumeric() || letter == '_' || letter == '$';
                token(Kind::Word, to(rest.find(|letter| !is_name(letter))))
            }
            first => token(Kind::Word, first.len_utf8()),
        }
    }
}

/// The end of the comment that a text begins with; comments may be within each other.
fn comment_end(text: &str) -> Option<usize> {
    let (mut depth, mut at) = (0_usize, 0);
    while at < text.len() {
        let rest = &text.as_bytes()[at..];
        if rest.starts_with(b"/*") {
            (depth, at) = (depth + 1, at + 2);
        } else if rest.starts_with(b"*/") {
            (depth, at) = (depth - 1, at + 2);
            if depth == 0 {
                return Some(at);
            }
        } else {
            at += 1;
        }
    }
    None
}

/// The end of the text with escapes, `e'..'`, that a text begins with.
fn escaped_end(text: &str) -> Option<usize> {
    let mut is_escaped = false;
    for (at, letter) in text.char_indices().skip(2) {
        match letter {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            '\'' => return Some(at + 1),
            _ => {}
        }
    }
    None
}

/// The `$tag$` that a text begins with.
fn dollar_tag(text: &str) -> Option<&str> {
    let end = text[1..].find('$')? + 2;
    let name = &text[1..end - 1];
    let is_name = name.chars().all(|letter| letter.is_alphanumeric() || letter == '_');
    let is_parameter = name.starts_with(|letter: char| letter.is_ascii_digit());
    (is_name && !is_parameter).then(|| &text[..end])
}

#[cfg(test)]
mod tests {
    use super::Statements;

    fn texts(text: &str) -> Vec<&str> {
        Statements::of(text).all().map(|statement| statement.text).collect()
    }

    #[test]
    fn semicolons_divide() {
        assert_eq!(texts("select 1; select 2;"), ["select 1", "select 2"]);
        assert_eq!(texts(" ;; select 1 ; "), ["select 1"]);
        assert_eq!(texts(""), Vec::<&str>::new());
    }

    #[test]
    fn semicolons_in_quotes_and_comments_do_not() {
        for one in [
            "select ';'",
            "select 'it''s; a'",
            "select \"a;b\" from `c;d`",
            "select 1 -- a; b\n + 2",
            "select /* ; /* ; */ ; */ 1",
            "select $$ ; ' $$",
            "select $a$ ; $$ ; $a$",
            "select 'ü;ö'",
            r"select e'it\'s; a', E'\\'",
        ] {
            assert_eq!(texts(&format!("{one}; select 2")), [one, "select 2"], "{one}");
        }
        assert_eq!(texts("select a$1;select $1;"), ["select a$1", "select $1"], "no quotes");
    }

    #[test]
    fn comments_alone_are_no_statement() {
        assert_eq!(texts("-- only\n; /* this */ ; -- end"), Vec::<&str>::new());
        assert_eq!(texts("-- first\nselect 1"), ["select 1"]);
    }

    #[test]
    fn a_statement_knows_its_line() {
        let all: Vec<usize> =
            Statements::of("-- head\n\nselect 1;\n select\n2; select 3").all().map(|one| one.line).collect();
        assert_eq!(all, [3, 4, 5]);
        let all: Vec<(usize, usize)> =
            Statements::of("select 'ü'; a;\n  b; c; 'd").all().map(|one| (one.line, one.column)).collect();
        assert_eq!(all, [(1, 1), (1, 13), (2, 3), (2, 6), (2, 9)]);
    }

    #[test]
    fn the_rest_is_as_it_was_typed() {
        let rest = |text| Statements::of(text).rest.map(|rest| rest.text.to_owned());
        assert_eq!(rest("select 1; select 'a \n\n ").as_deref(), Some("select 'a \n\n "));
        assert_eq!(rest("select 1; -- end\n"), None);
    }

    #[test]
    fn what_does_not_end_is_the_rest() {
        for open in [
            "select 'a; b",
            "select \"a;",
            "select $$ ;",
            "select 1 /* ;",
            "select 1",
            "/* a;",
            "/* a */ /* b;",
        ] {
            let found = Statements::of(open);
            assert!(found.whole.is_empty() && found.rest.is_some(), "{open}: {found:?}");
        }
    }
}
