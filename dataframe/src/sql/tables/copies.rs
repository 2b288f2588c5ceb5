//! `COPY .. TO '..' (header, delimiter ';')`: options as PostgreSQL and DuckDB have them, in the words of the
//! library, which has `STORED AS CSV PARTITIONED BY (..) OPTIONS ('format.delimiter' ';')`.

use super::files::{APPEND, OLD_FILES, OVERWRITE, compressed};
use crate::error::{Error, Result};
use crate::sql::faults::mistakes::with_place;
use crate::sql::faults::near::near_text;
use crate::sql::words::{Words, is_word, may_have};
use datafusion::execution::SessionState;
use datafusion::logical_expr::sqlparser::tokenizer::{Token, TokenWithSpan};
use datafusion::sql::parser::Statement;
use std::borrow::Cow;
use std::path::Path;

/// The text of a statement with the options of a `COPY` in the words of the library. They stand at its end:
/// the places before them stay.
pub(in crate::sql) fn in_words_of_library<'a>(text: &'a str, state: &SessionState) -> Result<Cow<'a, str>> {
    if !may_have(text, "copy") {
        return Ok(Cow::Borrowed(text));
    }
    let words = Words::of(text, state);
    let explains = |token: &&TokenWithSpan| is_word(token, &["explain", "verbose", "analyze"]);
    let first = words.tokens().iter().find(|token| !explains(token));
    if !first.is_some_and(|first| is_word(first, &["copy"])) {
        return Ok(Cow::Borrowed(text));
    }
    let Some(list) = List::of(&words)? else { return Ok(Cow::Borrowed(text)) };
    let clauses = list.clauses(&words)?;
    Ok(Cow::Owned(format!("{}{clauses}", &text[..words.offset(list.begin)])))
}

/// Writes the format of a `COPY` to a compressed file, which the library takes for the last ending.
pub(in crate::sql) fn write_format(statement: &mut Statement) {
    match statement {
        Statement::CopyTo(copy) if copy.stored_as.is_none() => {
            copy.stored_as = compressed_format(&copy.target);
        }
        Statement::Explain(explain) => write_format(&mut explain.statement),
        _ => {}
    }
}

/// The format of a compressed file, if its name says one.
fn compressed_format(target: &str) -> Option<String> {
    let (before, _) = compressed(target)?;
    let format = ending(before);
    TEXTS.contains(&format.as_str()).then_some(format)
}

fn ending(target: &str) -> String {
    let ending = Path::new(target).extension().and_then(|ending| ending.to_str());
    ending.unwrap_or_default().to_lowercase()
}

/// The options of a `COPY` in parentheses.
struct List<'a> {
    /// The first word behind the target.
    begin: &'a TokenWithSpan,
    /// The tokens between the parentheses.
    tokens: &'a [TokenWithSpan],
    /// The format that the name of the target says.
    format: String,
}

impl<'a> List<'a> {
    /// The list at the end of a statement, if it has one.
    fn of(words: &'a Words<'_>) -> Result<Option<List<'a>>> {
        let tokens = words.tokens();
        let mut depth = 0_usize;
        for (at, token) in tokens.iter().enumerate() {
            match &token.token {
                Token::LParen => depth += 1,
                Token::RParen => depth = depth.saturating_sub(1),
                _ if depth == 0 && is_word(token, &["from"]) => {
                    let text = "COPY .. FROM is not supported: write INSERT INTO t SELECT * FROM 'sales.csv'";
                    return Err(with_place(Error::NotImplemented(text.to_owned()), words.place(token)));
                }
                _ if depth == 0 && is_word(token, &["to"]) => return Ok(List::behind(&tokens[at + 1..])),
                _ => {}
            }
        }
        Ok(None)
    }

    fn behind(tokens: &'a [TokenWithSpan]) -> Option<List<'a>> {
        let Token::SingleQuotedString(target) = &tokens.first()?.token else { return None };
        let begin = tokens.get(1)?;
        let open = if is_word(begin, &["with"]) { 2 } else { 1 };
        if tokens.get(open)?.token != Token::LParen {
            return None;
        }
        let close = tokens.iter().rposition(|token| token.token == Token::RParen)?;
        let is_last =
            tokens[close + 1..].iter().all(|token| matches!(token.token, Token::SemiColon | Token::EOF));
        let format = compressed_format(target).unwrap_or_else(|| ending(target));
        is_last.then_some(List { begin, tokens: &tokens[open + 1..close], format })
    }

    /// The clauses of the library that say the same.
    fn clauses(&self, words: &Words<'_>) -> Result<String> {
        let options = self.options(words)?;
        let stored_as = options.iter().find(|option| option.name == "format");
        let format = stored_as.map_or(self.format.clone(), |option| option.value.to_lowercase());
        if let Some(option) = stored_as.filter(|_| !FORMATS.contains(&format.as_str())) {
            let text = format!("COPY writes no {:?}; there are {}", option.value, FORMATS.join(", "));
            return Err(with_place(Error::Value(text), words.place(option.token)));
        }
        let mut clauses = stored_as.map_or_else(String::new, |_| format!("stored as {format} "));
        let mut written = Vec::new();
        written.extend(old_files(&options, words)?.map(|choice| format!("'{OLD_FILES}' '{choice}'")));
        for option in &options {
            let place = || words.place(option.token);
            match OPTIONS.iter().find(|(name, _)| *name == option.name) {
                _ if option.name == "format" || CHOICES.contains(&option.name.as_str()) => {}
                _ if option.name == "partition_by" => {
                    clauses += &format!("partitioned by ({}) ", option.value);
                }
                None => {
                    let known = OPTIONS.iter().map(|(name, _)| *name);
                    let known = known.chain(["format", "partition_by"]).chain(CHOICES);
                    let near = near_text(&option.name, known.clone());
                    let known = known.collect::<Vec<_>>().join(", ");
                    let text = format!("COPY has no option {:?}; there are {known}{near}", option.name);
                    return Err(with_place(Error::Value(text), place()));
                }
                Some((name, key)) if *key != COMPRESSION && format != "csv" => {
                    let text =
                        format!("{name} is an option of CSV, and these rows are written as {format:?}");
                    return Err(with_place(Error::Value(text), place()));
                }
                Some((_, key)) => {
                    let value = library_value(key, &format, &option.value).replace('\'', "''");
                    written.push(format!("'{key}' '{value}'"));
                    if *key == MOMENT {
                        written.push(format!("'{ZONED_MOMENT}' '{value}'"));
                    }
                }
            }
        }
        if !written.is_empty() {
            clauses += &format!("options ({})", written.join(", "));
        }
        Ok(clauses)
    }

    fn options(&self, words: &Words<'_>) -> Result<Vec<Given<'a>>> {
        let mut depth = 0_usize;
        let parts = self.tokens.split(|token| {
            match token.token {
                Token::LParen => depth += 1,
                Token::RParen => depth = depth.saturating_sub(1),
                _ => {}
            }
            depth == 0 && token.token == Token::Comma
        });
        let wrong = |place| {
            let text = "an option of COPY is a name and a value, such as DELIMITER ';'";
            Err(with_place(Error::Sql(text.to_owned()), place))
        };
        let mut options = Vec::new();
        for part in parts {
            let Some((token, value)) = part.split_first() else { return wrong(words.place(self.begin)) };
            let Token::Word(name) = &token.token else { return wrong(words.place(token)) };
            let name = name.value.to_lowercase();
            let value = match behind_sign(value, &Token::Eq) {
                // A column alone keeps its quotes, as one in parentheses does.
                [column] if name == "partition_by" && matches!(column.token, Token::Word(_)) => {
                    Some(column.token.to_string())
                }
                value => text_of(value),
            };
            let Some(value) = value else { return wrong(words.place(token)) };
            options.push(Given { name, value, token });
        }
        Ok(options)
    }
}

/// The choice for the files that a folder has, if an option says it.
fn old_files<'o>(options: &'o [Given<'_>], words: &Words<'_>) -> Result<Option<&'o str>> {
    let mut choice: Option<&str> = None;
    for option in options.iter().filter(|option| CHOICES.contains(&option.name.as_str())) {
        let reason = match (option.value.to_lowercase().as_str(), choice) {
            ("true" | "1" | "on", None) => {
                choice = Some(&option.name);
                continue;
            }
            ("false" | "0" | "off", _) => continue,
            ("true" | "1" | "on", Some(_)) => format!("COPY takes one of {}", CHOICES.join(", ")),
            _ => format!("{} takes true or false", option.name),
        };
        return Err(with_place(Error::Value(reason), words.place(option.token)));
    }
    Ok(choice)
}

/// An option as it was given.
struct Given<'a> {
    name: String,
    value: String,
    token: &'a TokenWithSpan,
}

/// Tokens without a first one, if that is this sign.
fn behind_sign<'t>(tokens: &'t [TokenWithSpan], sign: &Token) -> &'t [TokenWithSpan] {
    match tokens.split_first() {
        Some((first, rest)) if first.token == *sign => rest,
        _ => tokens,
    }
}

/// The value of an option; an option alone is true. Names in parentheses have commas between them.
fn text_of(tokens: &[TokenWithSpan]) -> Option<String> {
    let single = |token: &TokenWithSpan| match &token.token {
        Token::SingleQuotedString(text) | Token::EscapedStringLiteral(text) | Token::Number(text, _) => {
            Some(text.clone())
        }
        Token::Word(word) => Some(word.value.clone()),
        _ => None,
    };
    match tokens {
        [] => Some("true".to_owned()),
        [token] => single(token),
        [first, names @ .., last] if first.token == Token::LParen && last.token == Token::RParen => {
            let names =
                names.iter().filter(|token| token.token != Token::Comma).map(|token| match &token.token {
                    Token::Word(_) => Some(token.token.to_string()),
                    _ => None,
                });
            names.collect::<Option<Vec<String>>>().map(|names| names.join(", "))
        }
        _ => None,
    }
}

/// A value as the library reads it.
fn library_value(key: &str, format: &str, value: &str) -> String {
    let lower = value.to_lowercase();
    let text = match (key, lower.as_str()) {
        ("format.has_header", "1" | "on") => "true",
        ("format.has_header", "0" | "off") => "false",
        ("format.delimiter", "\\t") => "\t",
        (COMPRESSION, "none") => "uncompressed",
        (COMPRESSION, "zstd") if format == "parquet" => "zstd(3)",
        (COMPRESSION, "gzip") if format == "parquet" => "gzip(6)",
        (COMPRESSION, "lz4") if format == "parquet" => "lz4_raw",
        (COMPRESSION, other) => other,
        _ => value,
    };
    text.to_owned()
}

/// Choices for the files that a folder has; one with files is refused without a choice.
const CHOICES: [&str; 2] = [APPEND, OVERWRITE];
const FORMATS: [&str; 4] = ["arrow", "csv", "json", "parquet"];
/// Formats whose files may be compressed as a whole.
const TEXTS: [&str; 2] = ["csv", "json"];
const COMPRESSION: &str = "format.compression";
const MOMENT: &str = "format.timestamp_format";
/// The form of moments with a zone.
const ZONED_MOMENT: &str = "format.timestamp_tz_format";
/// Options, and the settings of the library that they stand for.
const OPTIONS: [(&str, &str); 13] = [
    ("compression", COMPRESSION),
    ("dateformat", "format.date_format"),
    ("date_format", "format.date_format"),
    ("delim", "format.delimiter"),
    ("delimiter", "format.delimiter"),
    ("escape", "format.escape"),
    ("header", "format.has_header"),
    ("null", "format.null_value"),
    ("nullstr", "format.null_value"),
    ("quote", "format.quote"),
    ("sep", "format.delimiter"),
    ("timestampformat", MOMENT),
    ("timestamp_format", MOMENT),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::{Settings, session};

    #[test]
    fn options_are_told_to_the_library() {
        let state = session(Settings::default());
        for (given, wanted) in [
            ("(header, delimiter ';')", "options ('format.has_header' 'true', 'format.delimiter' ';')"),
            (
                "with (header false, sep '\\t');",
                "options ('format.has_header' 'false', 'format.delimiter' '\t')",
            ),
            ("(null 'it''s')", "options ('format.null_value' 'it''s')"),
            ("(format parquet)", "stored as parquet "),
            (
                "(FORMAT 'PARQUET', COMPRESSION zstd)",
                "stored as parquet options ('format.compression' 'zstd(3)')",
            ),
            ("(delimiter E'\\t')", "options ('format.delimiter' '\t')"),
            (
                "(timestampformat '%d/%m/%Y')",
                "options ('format.timestamp_format' '%d/%m/%Y', 'format.timestamp_tz_format' '%d/%m/%Y')",
            ),
            ("(partition_by (a, \"B c\"))", "partitioned by (a, \"B c\") "),
            ("(partition_by \"B c\")", "partitioned by (\"B c\") "),
            ("(partition_by a)", "partitioned by (a) "),
            ("(overwrite, append false)", "options ('tharsis.old_files' 'overwrite')"),
            ("(append 1)", "options ('tharsis.old_files' 'append')"),
            ("stored as parquet", "stored as parquet"),
            ("", ""),
        ] {
            for query in [
                "copy (select ')' as a from t) to 'c.csv' ",
                "-- note\nCOPY t TO 'c.csv' ",
                "copy \"from\" to 'c.csv' ",
                "explain copy t to 'c.csv' ",
            ] {
                let text = format!("{query}{given}");
                let found = in_words_of_library(&text, &state).unwrap();
                assert_eq!(found, format!("{query}{wanted}"), "{given}");
            }
        }
        assert_eq!(in_words_of_library("select 1 (header)", &state).unwrap(), "select 1 (header)");
        for options in ["(append, overwrite)", "(overwrite 'x')"] {
            assert!(in_words_of_library(&format!("copy t to 'c/' {options}"), &state).is_err(), "{options}");
        }
    }
}
