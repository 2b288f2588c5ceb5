//! The words of `tharsis sql`.

use crate::format::{self, Shown};
use crate::settings::flags::TextParser;
use crate::settings::parse;
use clap::Args as ClapArgs;
use std::ffi::OsString;
use std::path::PathBuf;

/// A query, and the files that it is about.
#[derive(Debug, ClapArgs)]
pub struct SqlArgs {
    /// Statements, with semicolons between them; without any those of --file, of standard input, or a shell
    /// on a terminal. Names without quotes are read as lower case. FROM takes quoted paths: from 'sales.csv'.
    pub query: Option<String>,
    /// The same: answer these statements. May be given several times.
    #[arg(short, long = "command", value_name = "STATEMENTS", conflicts_with_all = ["query", "files"])]
    pub commands: Vec<String>,
    /// Run the statements of this file; - is standard input. May be given several times.
    #[arg(short, long = "file", value_name = "FILE", conflicts_with = "query")]
    pub files: Vec<String>,
    /// A table and its file, folder, pattern or URL: Parquet, or what the ending says (.csv, .tsv, .json,
    /// .jsonl, .ndjson, .arrow, .feather, .avro, also with .gz, .bz2, .xz, .zst). May be given several times.
    #[arg(long = "table", value_name = "NAME=PATH", value_parser = named_path)]
    pub tables: Vec<(String, String)>,
    /// The form of the rows; without it a table, or CSV for -o -.
    #[arg(long, value_enum, value_name = "FORM")]
    pub format: Option<Shown>,
    /// Rows of an answer that a table shows at most, 0 for all; without it 40 on a terminal, and else all.
    #[arg(long, value_name = "N")]
    pub rows: Option<usize>,
    /// Write the rows of a query to this file, whose ending says the format, as for tables, but not .avro; -
    /// is standard output.
    #[arg(short, long, value_name = "PATH", value_parser = format::written)]
    pub output: Option<String>,
    /// Print the stages of the plan instead of running it.
    #[arg(long, conflicts_with = "output")]
    pub explain: bool,
    /// Run on a cluster instead of threads of this process: `auto` for the node of this machine, the path of
    /// its socket, or HOST:PORT of a head. Files are read and written by its nodes.
    #[arg(long, value_name = "ADDRESS")]
    pub address: Option<String>,
    /// Memory that statements may use, such as 2GB; without it half of the machine's, or of the node's store.
    #[arg(long, value_name = "SIZE", value_parser = TextParser(parse::store_size))]
    pub memory: Option<u64>,
    /// Folder for rows that have no room in it; without it that for temporary files.
    #[arg(long, value_name = "DIR", conflicts_with = "address")]
    pub spill_dir: Option<PathBuf>,
}

/// A name and a path with a sign between.
fn named_path(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, path)) if !name.is_empty() && !path.is_empty() => {
            Ok((name.to_owned(), format::read(path)?))
        }
        _ => Err("expected NAME=PATH".to_owned()),
    }
}

#[cfg(feature = "frames")]
impl SqlArgs {
    /// The statements of the command line; none if they come from elsewhere.
    pub fn statements(&self) -> Vec<&str> {
        self.query.iter().chain(&self.commands).map(String::as_str).collect()
    }
}

/// Words of a command line in which statements that begin with a comment are no flags: a space before them
/// changes no place behind the comment.
pub(super) fn with_comments(words: Vec<OsString>) -> Vec<OsString> {
    if words.get(1).is_none_or(|command| command != "sql") {
        return words;
    }
    let is_comment = |word: &OsString| {
        let Some(text) = word.to_str().and_then(|word| word.strip_prefix("--")) else { return false };
        // A flag has its value behind a sign, and no space before it.
        text.find(char::is_whitespace).is_some_and(|at| !text[..at].contains('='))
    };
    let plain = |word: OsString| {
        let mut begun = OsString::from(if is_comment(&word) { " " } else { "" });
        begun.push(word);
        begun
    };
    words.into_iter().map(plain).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_are_no_flags() {
        let with = |words: &[&str]| -> Vec<String> {
            let words = words.iter().map(OsString::from).collect();
            with_comments(words).into_iter().map(|word| word.into_string().unwrap()).collect()
        };
        for (word, wanted) in [
            ("-- note\nselect 1", " -- note\nselect 1"),
            ("--note\nselect 1", " --note\nselect 1"),
            ("--table=a=my file.csv", "--table=a=my file.csv"),
            ("--format", "--format"),
            ("--", "--"),
            ("select 1 -- note", "select 1 -- note"),
        ] {
            assert_eq!(with(&["tharsis", "sql", word]), ["tharsis", "sql", wanted]);
            assert_eq!(with(&["tharsis", "eval", word]), ["tharsis", "eval", word]);
        }
    }
}
