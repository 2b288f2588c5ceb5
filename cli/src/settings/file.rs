//! A settings file: TOML, small, and nothing in it is passed over.

use super::error::{Error, shown};
use super::key::{Form, Key};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::Path;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// Longest file.
pub const FILE_BYTES_MAX: u64 = 1 << 20;
/// Keys that are not at least this like the unknown one are no suggestion.
const LIKENESS_MIN: f64 = 0.6;

/// A value that a file gives for a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Said {
    /// The value as a flag would have it.
    pub text: String,
    /// Number of the line.
    pub line: usize,
}

/// Reads a file.
///
/// # Errors
/// The fault in the file, and its line.
pub fn read(path: &Path) -> Result<BTreeMap<Key, Said>, Error> {
    parse(path, &text(path)?)
}

/// Reads the text of a file.
///
/// # Errors
/// If it cannot be read, or is no text, or too long.
pub fn text(path: &Path) -> Result<String, Error> {
    let unreadable =
        |cause: std::io::Error| Error::Unreadable { path: path.to_owned(), cause: cause.to_string() };
    let file = File::open(path).map_err(unreadable)?;
    if file.metadata().map_err(unreadable)?.is_dir() {
        return Err(Error::IsADirectory { path: path.to_owned() });
    }
    let mut bytes = Vec::new();
    // Not the length that the file system names: a pipe has none.
    file.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    if FILE_BYTES_MAX < bytes.len() as u64 {
        return Err(Error::TooLarge { path: path.to_owned(), limit_bytes: FILE_BYTES_MAX });
    }
    String::from_utf8(bytes).map_err(|bad| Error::Syntax {
        path: path.to_owned(),
        at: at(&String::from_utf8_lossy(&bad.as_bytes()[..bad.utf8_error().valid_up_to()])),
        problem: "is not UTF-8".to_owned(),
    })
}

/// Reads the text of a file; `path` is for errors.
///
/// # Errors
/// The fault in the file, and its line.
pub fn parse(path: &Path, text: &str) -> Result<BTreeMap<Key, Said>, Error> {
    let table = DeTable::parse(text).map_err(|error| syntax(path, text, &error))?;
    settings(path, text, table.get_ref())
}

/// Reads the settings of a table in a text.
///
/// # Errors
/// The fault in them, and its line.
pub fn settings(path: &Path, text: &str, table: &DeTable<'_>) -> Result<BTreeMap<Key, Said>, Error> {
    let mut all = BTreeMap::new();
    for (name, value) in table.iter() {
        let line = line_at(text, name.span().start);
        let key = Key::ALL.into_iter().find(|key| key.name() == name.get_ref()).ok_or_else(|| {
            let key = shown(name.get_ref());
            Error::UnknownKey { path: path.to_owned(), line, key, nearest: nearest(name.get_ref()) }
        })?;
        let said = as_flag(key.row().form, value.get_ref())
            .and_then(|said| (key.row().check)(&said).map(|()| said))
            .map_err(|problem| Error::BadValue {
                origin: format!("{}, line {line}: {}", path.display(), key.name()),
                value: shown(&text[value.span()]),
                problem,
            })?;
        all.insert(key, Said { text: said, line });
    }
    Ok(all)
}

/// A value of the file as the flag of the same key would have it.
fn as_flag(form: Form, value: &DeValue<'_>) -> Result<String, String> {
    // A comma would make two of one.
    let texts = |value: &Spanned<DeValue<'_>>| {
        value.get_ref().as_str().filter(|text| !text.contains(',')).map(str::to_owned)
    };
    match (form, value) {
        (Form::Text | Form::Size | Form::List | Form::Pairs, DeValue::String(text)) => Ok(text.to_string()),
        // Written without its unit; the check says so, with an example.
        (Form::Text, DeValue::Integer(number)) => Ok(number.as_str().to_owned()),
        (Form::Number | Form::Size, DeValue::Integer(number)) if number.radix() == 10 => {
            Ok(number.as_str().to_owned())
        }
        (Form::Number, DeValue::Float(number)) => Ok(number.as_str().to_owned()),
        (Form::Switch, DeValue::Boolean(is_on)) => Ok(is_on.to_string()),
        (Form::List, DeValue::Array(list)) => {
            let list: Option<Vec<_>> = list.iter().map(texts).collect();
            list.map(|list| list.join(","))
                .ok_or_else(|| "expected a list of texts without commas".to_owned())
        }
        (Form::Pairs, DeValue::Table(table)) => {
            let pair =
                |(name, value): (&Spanned<_>, _)| Some(format!("{}={}", name.get_ref(), texts(value)?));
            let pairs: Option<Vec<_>> = table.iter().map(pair).collect();
            pairs
                .map(|pairs| pairs.join(","))
                .ok_or_else(|| "expected a table of texts without commas".to_owned())
        }
        (Form::Amounts, DeValue::Table(table)) => amounts(table),
        (form, other) => Err(format!("expected {}, found {}", wanted(form), other.type_str())),
    }
}

fn amounts(table: &DeTable<'_>) -> Result<String, String> {
    let mut amounts = serde_json::Map::new();
    for (name, value) in table.iter() {
        let text = match value.get_ref() {
            DeValue::Integer(number) => number.as_str(),
            DeValue::Float(number) => number.as_str(),
            _ => return Err(format!("expected a number for {}", name.get_ref())),
        };
        let amount = text.parse().ok().and_then(serde_json::Number::from_f64);
        let amount = amount.ok_or_else(|| format!("{text} for {} is out of range", name.get_ref()))?;
        amounts.insert(name.get_ref().to_string(), amount.into());
    }
    Ok(serde_json::Value::Object(amounts).to_string())
}

fn wanted(form: Form) -> &'static str {
    match form {
        Form::Text => "a text",
        Form::Number => "a number",
        Form::Size => "a size such as \"512MiB\"",
        Form::Switch => "true or false",
        Form::List => "a list of texts",
        Form::Pairs => "a table of texts",
        Form::Amounts => "a table of numbers",
    }
}

/// The key that was probably meant.
pub fn nearest(name: &str) -> Option<&'static str> {
    let likeness = Key::ALL.map(|key| (key.name(), strsim::jaro_winkler(name, key.name())));
    let best = likeness.into_iter().max_by(|a, b| a.1.total_cmp(&b.1))?;
    (LIKENESS_MIN < best.1).then_some(best.0)
}

/// The error of a text that is not TOML.
pub fn syntax(path: &Path, text: &str, error: &toml::de::Error) -> Error {
    let start = error.span().map_or(0, |span| span.start);
    let line = line_at(text, start);
    let key = text.get(start..).unwrap_or_default().split(['=', ']', '\n']).next().unwrap_or_default();
    if error.message().contains("duplicate key")
        && let Some(first) = first_line_of(text, line, name_of(key))
    {
        let key = shown(name_of(key));
        return Error::DuplicateKey { path: path.to_owned(), key, first_line: first, second_line: line };
    }
    let before = text.get(..start).unwrap_or_default();
    Error::Syntax { path: path.to_owned(), at: at(before), problem: error.message().to_owned() }
}

/// The line before `line`, in the same table, on which `key` is set.
fn first_line_of(text: &str, line: usize, key: &str) -> Option<usize> {
    let before: Vec<&str> = text.lines().take(line - 1).collect();
    let is_header = |line: &&str| line.trim_start().starts_with('[');
    let names = |line: &&str| line.split_once('=').is_some_and(|(name, _)| name_of(name) == key);
    let heads = |line: &&str| is_header(line) && name_of(line.trim_matches(['[', ']', ' '])) == key;
    let begin = before.iter().rposition(is_header).unwrap_or(0);
    let found = before[begin..].iter().position(names).map(|at| begin + at);
    found.or_else(|| before.iter().position(|line| names(line) || heads(line))).map(|at| at + 1)
}

fn name_of(written: &str) -> &str {
    written.trim().trim_matches(['"', '\'', '[', ']'])
}

/// Line and column of what follows a text, from 1; columns are characters.
fn at(before: &str) -> (usize, usize) {
    let line = before.rsplit('\n').next().unwrap_or_default();
    (line_at(before, before.len()), 1 + line.chars().count())
}

/// Lines begin at 1.
pub fn line_at(text: &str, at: usize) -> usize {
    1 + text.bytes().take(at).filter(|byte| *byte == b'\n').count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_text(text: &str) -> Result<BTreeMap<Key, Said>, Error> {
        parse(Path::new("t.toml"), text)
    }

    fn problem(text: &str) -> String {
        read_text(text).unwrap_err().to_string()
    }

    #[test]
    fn every_form_reads_as_its_flag() {
        let text = "
socket = '/tmp/s/node.sock'
num_cpus = 0.5
num_gpus = 2
allow_fake_resources = true
store = 8388608
etcd = [\"http://a:1\", \"http://b:2\"]
lease_ttl = \"3s\"
labels = { zone = \"a\", kind = \"spot\" }
[resources]
tpu = 2
";
        let said = read_text(text).unwrap();
        let texts: Vec<_> = said.iter().map(|(key, said)| (key.name(), said.text.as_str())).collect();
        let wanted = [
            ("socket", "/tmp/s/node.sock"),
            ("num_cpus", "0.5"),
            ("num_gpus", "2"),
            ("allow_fake_resources", "true"),
            ("store", "8388608"),
            ("resources", "{\"tpu\":2.0}"),
            ("labels", "kind=spot,zone=a"),
            ("etcd", "http://a:1,http://b:2"),
            ("lease_ttl", "3s"),
        ];
        assert_eq!(texts, wanted);
        assert_eq!(said[&Key::NumCpus].line, 3);
    }

    #[test]
    fn an_empty_file_says_nothing() {
        assert!(read_text("").unwrap().is_empty());
        assert!(read_text("# nothing\n").unwrap().is_empty());
    }

    #[test]
    fn an_unknown_key_names_the_nearest_known() {
        let text = problem("\nnum_cpu = 1\n");
        assert!(text.contains("line 2") && text.contains("num_cpu") && text.contains("num_cpus"), "{text}");
        let text = problem("zzz = 1");
        assert!(text.contains("unknown key zzz") && !text.contains("mean"), "{text}");
    }

    #[test]
    fn a_duplicate_key_names_both_lines() {
        for text in ["num_cpus = 1\n# again\nnum_cpus = 2\n", "\"num_cpus\" = 1\n\n  num_cpus=2"] {
            let text = problem(text);
            assert!(text.contains("lines 1 and 3") && text.contains("num_cpus"), "{text}");
        }
        let text = problem("port = 1\n[resources]\na = 1\nb = 2\na = 3\n");
        assert!(text.contains("lines 3 and 5"), "{text}");
        let text = problem("[labels]\na = \"1\"\n[labels]\n");
        assert!(text.contains("lines 1 and 3"), "{text}");
    }

    #[test]
    fn values_out_of_range_and_of_other_kinds_are_named() {
        let cases = [
            ("store = 18446744073709551616", "out of range"),
            ("port = 65536", "0 to 65535"),
            ("lease_ttl = 10", "such as 10s"),
            ("lease_ttl = \"0s\"", "0 ms"),
            ("num_cpus = \"many\"", "a number"),
            ("num_cpus = nan", "from 0 to 1000000"),
            ("labels = 3", "a table of texts"),
            ("labels = { a = \"b,c=d\" }", "without commas"),
            ("resources = { CPU = 2 }", "reserved"),
            ("etcd = [1]", "a list of texts"),
            ("etcd = \"ftp://a:1\"", "http://"),
            ("log_level = \"loud\"", "warn"),
            ("allow_fake_resources = 1", "true or false"),
        ];
        for (text, part) in cases {
            let said = problem(text);
            let (key, _) = text.split_once(' ').unwrap();
            assert!(said.contains(part) && said.contains(key) && said.contains("line 1"), "{text}: {said}");
        }
    }

    #[test]
    fn text_that_is_not_toml_names_its_line() {
        let text = problem("port = 1\nport 2\n");
        assert!(text.contains("line 2, column 6"), "{text}");
        let text = problem("cluster = \"ä\" x\n");
        assert!(text.contains("line 1, column 15"), "{text}");
        assert!(problem("a = [[[[[[[[[[").contains("line 1"));
    }
}
