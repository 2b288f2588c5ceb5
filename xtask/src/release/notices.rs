//! The notices that the licences of a program's parts ask for: each text once, with the packages that it is
//! of.

use super::contents::Id;
use std::collections::BTreeMap;

/// Beginnings of the names of files with licences and notices, in capitals.
const NAMES: [&str; 6] = ["COPYING", "COPYRIGHT", "LICENCE", "LICENSE", "NOTICE", "UNLICENSE"];

/// A package with the texts that come with it.
#[derive(Clone, Debug)]
pub(super) struct Notice {
    pub(super) id: Id,
    pub(super) license: String,
    pub(super) texts: Vec<String>,
}

/// Whether a file of a package has a licence or a notice, by its name.
pub(super) fn is_notice(name: &str) -> bool {
    let name = name.to_uppercase();
    NAMES.iter().any(|beginning| name.starts_with(beginning))
}

/// All packages with their licences, then all texts.
pub(super) fn text(notices: &[Notice]) -> String {
    let mut lines: Vec<String> =
        notices.iter().map(|one| format!("{}: {}", label(&one.id), one.license)).collect();
    lines.sort();
    let mut of_texts: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for one in notices {
        for text in &one.texts {
            of_texts.entry(text.trim()).or_default().push(label(&one.id));
        }
    }
    let mut blocks: Vec<(String, &str)> = Vec::new();
    for (text, mut users) in of_texts {
        users.sort();
        users.dedup();
        blocks.push((users.join(", "), text));
    }
    blocks.sort();
    let mut written = format!("This program has code of these packages:\n\n{}\n", lines.join("\n"));
    let rule = "-".repeat(80);
    for (users, text) in blocks {
        written.push_str(&format!("\n{rule}\n{users}\n{rule}\n\n{text}\n"));
    }
    written
}

fn label(id: &Id) -> String {
    format!("{} {}", id.name, id.version)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_text_stands_once_with_all_that_have_it() {
        let notice = |name: &str, texts: &[&str]| Notice {
            id: Id { name: name.to_owned(), version: "1.0.0".to_owned() },
            license: "MIT".to_owned(),
            texts: texts.iter().map(|text| (*text).to_owned()).collect(),
        };
        let all = [notice("b", &["x\n"]), notice("a", &["y\n", "x"]), notice("c", &[])];
        let written = text(&all);
        assert_eq!(written.matches("\nx\n").count(), 1, "{written}");
        assert!(written.contains("\na 1.0.0, b 1.0.0\n") && written.contains("\na 1.0.0\n"), "{written}");
        assert!(written.contains("\na 1.0.0: MIT\nb 1.0.0: MIT\nc 1.0.0: MIT\n"), "{written}");
        let [b, a, c] = all;
        assert_eq!(text(&[c, a, b]), written, "in any order");
    }

    #[test]
    fn files_with_notices_are_known_by_their_names() {
        for name in ["LICENSE", "License-MIT.txt", "COPYING", "NOTICE", "UNLICENSE", "licence.md"] {
            assert!(is_notice(name), "{name}");
        }
        assert!(!is_notice("README.md") && !is_notice("Cargo.toml"));
    }
}
