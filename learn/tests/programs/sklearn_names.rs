//! The page of scikit-learn's names says of each name whether it is here, or why not. It is made of the table
//! `sklearn-names.txt`, and the table is held to the sources and to the operations of programs.

use super::rows;
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::PathBuf;

/// Writes the page anew if it is set.
const UPDATE: &str = "UPDATE_PAGE";

/// The head of the page.
const HEAD: &str = "# scikit-learn's names

<!-- written by `UPDATE_PAGE=1 cargo test -p tharsis-learn --test programs sklearn_names` from `learn/sklearn-names.txt` -->

For each estimator and function of scikit-learn 1.9: whether it is [here](learn.md) under its name, how it differs, or why it is not.
The last column says whether [programs as data](learn.md#programs-as-data) may use it; in Rust all of them are below `tharsis::learn`.
Names for authors of estimators (`base`, `exceptions`, `experimental`, `utils`) are left out.
";

/// A name of scikit-learn, and what is said of it.
#[derive(Debug)]
struct Entry {
    module: String,
    name: String,
    /// `=` for a name that is here, `-` for one that has no place here, `?` for one that is not made yet.
    sign: char,
    remark: String,
}

impl Entry {
    /// The name in programs.
    fn operation(&self) -> String {
        format!("sk.{}.{}", self.module, self.name)
    }

    fn line(&self, operations: &BTreeSet<&str>) -> String {
        let word = match self.sign {
            '=' => "yes",
            '-' => "no",
            _ => "not yet",
        };
        let remark = if self.remark.is_empty() { String::new() } else { format!(": {}", self.remark) };
        let programs = if operations.contains(self.operation().as_str()) { "yes" } else { "" };
        format!("| `{}.{}` | {word}{remark} | {programs} |", self.module, self.name)
    }
}

/// The folder of the crate.
fn folder() -> PathBuf {
    std::env::var_os("CARGO_MANIFEST_DIR").expect("cargo test sets CARGO_MANIFEST_DIR").into()
}

/// The table: `# module` lines, then names with their sign and a remark.
fn entries() -> Vec<Entry> {
    let text = std::fs::read_to_string(folder().join("sklearn-names.txt")).unwrap();
    let (mut module, mut found) = (String::new(), Vec::new());
    for line in text.lines() {
        if let Some(title) = line.strip_prefix("# ") {
            module = title.to_owned();
            continue;
        }
        let mut parts = line.splitn(3, ' ');
        let (name, sign) = (parts.next().unwrap().to_owned(), parts.next().unwrap_or(""));
        let remark = parts.next().unwrap_or("").to_owned();
        let sign = match sign {
            "=" => '=',
            "-" if !remark.is_empty() => '-',
            "?" => '?',
            _ => panic!("{line:?}: expected `name =`, `name - reason` or `name ?`"),
        };
        found.push(Entry { module: module.clone(), name, sign, remark });
    }
    found
}

/// The operations of programs that are estimators and functions, and no methods.
fn operations() -> BTreeSet<&'static str> {
    rows().map(|row| row.name).filter(|name| name.matches('.').count() != 1).collect()
}

fn page() -> String {
    let (entries, operations) = (entries(), operations());
    let count = |sign: char| entries.iter().filter(|entry| entry.sign == sign).count();
    let mut page = HEAD.to_owned();
    writeln!(
        page,
        "\n{} names: {} are made, {} have no place here, {} are not made yet.",
        entries.len(),
        count('='),
        count('-'),
        count('?'),
    )
    .unwrap();
    let mut module = "";
    for entry in &entries {
        if module != entry.module {
            module = &entry.module;
            writeln!(page, "\n## {module}\n\n| scikit-learn | here | programs |\n|---|---|---|").unwrap();
        }
        writeln!(page, "{}", entry.line(&operations)).unwrap();
    }
    page
}

#[test]
fn the_page_is_made_of_the_table() {
    let path = folder().parent().unwrap().join("docs/scikit-learn-names.md");
    let page = page();
    if std::env::var_os(UPDATE).is_some() {
        std::fs::write(&path, page).unwrap();
        return;
    }
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(found == page, "{} differs from the table; {UPDATE}=1 writes it anew", path.display());
}

#[test]
fn the_table_has_each_name_once_and_all_operations() {
    let (mut seen, mut made) = (BTreeSet::new(), BTreeSet::new());
    for entry in entries() {
        assert!(seen.insert(entry.operation()), "{entry:?} stands twice");
        if entry.sign == '=' {
            made.insert(entry.operation());
        }
    }
    let lacking: Vec<&str> = operations().into_iter().filter(|name| !made.contains(*name)).collect();
    assert!(lacking.is_empty(), "operations that the table lacks: {lacking:?}");
}

#[test]
fn each_name_that_is_made_is_in_its_module() {
    let sources = folder().join("src");
    for entry in entries().iter().filter(|entry| entry.sign == '=') {
        let in_folder = std::fs::read_to_string(sources.join(&entry.module).join("mod.rs"));
        let text = in_folder.unwrap_or_else(|_| {
            std::fs::read_to_string(sources.join(format!("{}.rs", entry.module))).unwrap()
        });
        let name = entry.name.rsplit('.').next().unwrap();
        let mut words = text.split(|part: char| !part.is_alphanumeric() && part != '_');
        assert!(words.any(|word| word == name), "{entry:?} is not in its module");
    }
}
