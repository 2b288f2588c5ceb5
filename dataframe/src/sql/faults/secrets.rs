//! Parts of statements that errors do not show, since they may be keys: errors may end up in files that
//! others read.

use crate::sql::words::{Words, is_word};
use crate::sql_place::SqlPlace;
use datafusion::logical_expr::sqlparser::tokenizer::TokenWithSpan;

/// A part of a statement at which the parser stopped, without its letters if it may be a secret: a value of
/// the options of files, or a URL with a user, a password or a query, which may be a signature.
pub(in crate::sql) fn hidden(found: &str, words: &Words<'_>, place: &SqlPlace) -> Option<&'static str> {
    let is_url = found.split_once("://").is_some_and(|(_, url)| url.contains(['@', '?']));
    let is_sign = !found.chars().any(char::is_alphanumeric);
    if !is_url && (is_sign || found == "EOF" || !is_of_options(words, place)) {
        return None;
    }
    Some(if found.starts_with(['\'', '"']) { "a text" } else { "a word" })
}

/// Whether a place is in the options of files that a statement names or writes.
fn is_of_options(words: &Words<'_>, place: &SqlPlace) -> bool {
    let is_before = |token: &&TokenWithSpan| {
        let start = token.span.start;
        (start.line as usize, start.column as usize) < (place.line(), place.column())
    };
    let mut before = words.tokens().iter().take_while(is_before);
    before.any(|token| is_word(token, &["copy", "external"]))
        && before.any(|token| is_word(token, &["options"]))
}

#[cfg(test)]
mod tests {
    use crate::sql::SqlSession;

    #[test]
    fn values_of_options_are_in_no_error() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().display();
        let begin = format!("create external table t stored as csv location '{path}/' options");
        for quote in ["'", ""] {
            let of = |text: &str| format!("{quote}{text}{quote}");
            let (id, key) = (of("KEYID"), of("WORD"));
            let parts = ["(", "'aws.id'", &id, ",", "'aws.key'", &key, ")"];
            for at in 0..parts.len() {
                for other in ["", "'x'", "eu", &key, &format!("{} {}", parts[at], parts[at]), "/"] {
                    let mut parts = parts.to_vec();
                    parts[at] = other;
                    let statement = format!("{begin} {}", parts.join(" "));
                    let Err(error) = SqlSession::default().run(&statement) else { continue };
                    let told = error.root().to_string();
                    assert!(!told.contains("KEYID") && !told.contains("WORD"), "{statement}: {told}");
                }
            }
        }
        let error = SqlSession::default().run(&format!("{begin} ('a' 'b' 'c')")).expect_err("no comma");
        assert!(error.to_string().ends_with("found a text"), "{error}");
    }

    #[test]
    fn other_words_are_shown() {
        let mut session = SqlSession::default();
        for (statement, expected) in [
            ("select options from t order by 1 'x'", "found 'x'"),
            ("select 1 order by 1 'https://host/x'", "found 'https://host/x'"),
            ("select 1 order by 1 'https://me:word@host/x'", "found a text"),
            ("select 1 order by 1 'https://host/x?sig=word'", "found a text"),
        ] {
            let error = session.run(statement).expect_err(statement);
            assert!(error.to_string().ends_with(expected), "{statement}: {error}");
        }
    }
}
