//! Limits for readability: length of files, functions and comment lines, docs that say more than the name,
//! and comments that name their subject.

use crate::{root, sources};
use std::collections::BTreeMap;
use std::path::Path;

/// Longest file of product code, in lines, with its unit tests.
const FILE_LINES_MAX: usize = 600;

/// Longest file of tests.
const TEST_FILE_LINES_MAX: usize = 1_000;

/// Files of product code that are longer today, with their length, exactly: whoever shortens one lowers its
/// number here, so that it cannot grow back.
const LONG_FILES: &[(&str, usize)] = &[("object-store/src/transfer.rs", 628)];

/// Longest function of product code, in lines, from its signature to its closing brace.
const FUNCTION_LINES_MAX: usize = 70;

/// Functions that are longer today, with their length, exactly.
const LONG_FUNCTIONS: &[(&str, &str, usize)] = &[];

/// Longest line of a comment, in characters: as long as code. Rows of tables cannot be broken.
const COMMENT_CHARS_MAX: usize = 110;

/// First words of comments that describe a thing instead of naming it: "What is free." is "Free resources."
const INDIRECT: &[&str] = &["How", "What", "Where", "Which", "Who", "Whose"];

/// Fewest words that a doc of a public function has beside its name.
const DOC_WORDS_MIN: usize = 4;

#[test]
fn files_fit_a_reader() {
    let mut wrong = Vec::new();
    let known = LONG_FILES.iter().map(|(file, lines)| ((*file).to_owned(), *lines)).collect();
    let files: Vec<_> =
        sources().into_iter().map(|(path, text)| (relative(&path), text.lines().count())).collect();
    let (tests, product): (Vec<_>, Vec<_>) = files.into_iter().partition(|(file, _)| is_test(file));
    wrong.extend(misfits(&product, &known, FILE_LINES_MAX));
    wrong.extend(misfits(&tests, &BTreeMap::new(), TEST_FILE_LINES_MAX));
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn functions_fit_a_screen() {
    let known =
        LONG_FUNCTIONS.iter().map(|(file, name, lines)| (format!("{file}: {name}"), *lines)).collect();
    let mut found = Vec::new();
    for (file, text) in product() {
        found.extend(functions(&text).into_iter().map(|(name, lines)| (format!("{file}: {name}"), lines)));
    }
    let wrong = misfits(&found, &known, FUNCTION_LINES_MAX);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_known_length_is_exact() {
    let known = BTreeMap::from([("a".to_owned(), 90), ("b".to_owned(), 90), ("c".to_owned(), 90)]);
    let of = |lengths: &[(&str, usize)]| {
        let found: Vec<_> = lengths.iter().map(|(name, lines)| ((*name).to_owned(), *lines)).collect();
        misfits(&found, &known, 70)
    };
    assert!(of(&[("a", 90), ("b", 90), ("c", 90), ("d", 70), ("a", 12)]).is_empty());
    let wrong = of(&[("a", 91), ("b", 89), ("c", 70), ("d", 71)]);
    assert_eq!(
        wrong,
        [
            "a has 91 lines, 90 are allowed",
            "b has 89 lines: lower its 90 on the list",
            "c is no longer than 70 lines: take it off the list",
            "d has 71 lines, 70 are allowed",
        ]
    );
}

#[test]
fn comments_are_as_wide_as_code() {
    let mut wide = Vec::new();
    for (path, text) in sources() {
        for (index, line) in text.lines().enumerate() {
            let chars = line.chars().count();
            let comment = line.trim_start();
            let is_table = ["//! |", "/// |", "// |"].iter().any(|row| comment.starts_with(row));
            if comment.starts_with("//") && !is_table && COMMENT_CHARS_MAX < chars {
                wide.push(format!("{}:{}: {chars} characters", path.display(), index + 1));
            }
        }
    }
    assert!(wide.is_empty(), "comments over {COMMENT_CHARS_MAX} characters:\n{}", wide.join("\n"));
}

#[test]
fn comments_name_their_subject() {
    let mut indirect = Vec::new();
    for (path, text) in sources() {
        for (index, line) in text.lines().enumerate() {
            let Some(comment) = line.trim_start().strip_prefix("//") else { continue };
            let first = comment.trim_start_matches(['/', '!']).split_whitespace().next();
            if first.is_some_and(|word| INDIRECT.contains(&word)) {
                indirect.push(format!("{}:{}: {}", path.display(), index + 1, line.trim()));
            }
        }
    }
    assert!(indirect.is_empty(), "comments that begin like questions:\n{}", indirect.join("\n"));
}

#[test]
fn docs_of_public_functions_say_more_than_the_name() {
    let mut thin = Vec::new();
    for (file, text) in product() {
        let lines: Vec<&str> = text.lines().map(str::trim).collect();
        for (index, line) in lines.iter().enumerate().filter(|(_, l)| l.starts_with("pub fn ")) {
            let above =
                lines[..index].iter().rev().take_while(|l| l.starts_with("///") || l.starts_with("#["));
            let words: usize =
                above.filter_map(|l| l.strip_prefix("///")).map(|l| l.split_whitespace().count()).sum();
            if 0 < words && words < DOC_WORDS_MIN {
                thin.push(format!("{file}:{}: {line}", index + 1));
            }
        }
    }
    assert!(thin.is_empty(), "docs of fewer than {DOC_WORDS_MIN} words:\n{}", thin.join("\n"));
}

/// Lengths that are not allowed: over the usual bound and not known, or known and not that long. Of things
/// with one name the longest counts.
fn misfits(found: &[(String, usize)], known: &BTreeMap<String, usize>, usual: usize) -> Vec<String> {
    let mut lengths: BTreeMap<&str, usize> = known.keys().map(|name| (name.as_str(), 0)).collect();
    for (name, lines) in found {
        let longest = lengths.entry(name).or_default();
        *longest = (*longest).max(*lines);
    }
    let misfit = |(name, lines): (&str, usize)| match known.get(name) {
        None if usual < lines => Some(format!("{name} has {lines} lines, {usual} are allowed")),
        Some(_) if lines <= usual => {
            Some(format!("{name} is no longer than {usual} lines: take it off the list"))
        }
        Some(known) if *known < lines => Some(format!("{name} has {lines} lines, {known} are allowed")),
        Some(known) if lines < *known => {
            Some(format!("{name} has {lines} lines: lower its {known} on the list"))
        }
        _ => None,
    };
    lengths.into_iter().filter_map(misfit).collect()
}

/// Files below `src` that are not tests, by their path from the root.
fn product() -> impl Iterator<Item = (String, String)> {
    sources()
        .into_iter()
        .map(|(path, text)| (relative(&path), text))
        .filter(|(file, _)| file.contains("/src/") && !is_test(file))
}

fn relative(path: &Path) -> String {
    path.strip_prefix(root()).expect("sources lie below the root").to_string_lossy().into_owned()
}

fn is_test(file: &str) -> bool {
    let name = file.rsplit('/').next().unwrap_or_default();
    let is_of_tests = name == "tests.rs" || name.ends_with("_tests.rs");
    file.starts_with("tests/") || file.contains("/tests/") || is_of_tests
}

#[test]
fn files_of_tests_are_known_by_their_names() {
    for file in ["tests/sim/src/lib.rs", "core/tests/scale.rs", "core/src/tests.rs", "gcs/src/a_tests.rs"] {
        assert!(is_test(file), "{file}");
    }
    for file in ["learn/src/contests.rs", "xtask/src/test/lanes.rs", "core/src/tests_of_a.rs"] {
        assert!(!is_test(file), "{file}");
    }
}

/// Functions with a body, as rustfmt lays them out: the closing brace stands below the signature's first
/// letter.
fn functions(text: &str) -> Vec<(&str, usize)> {
    let lines: Vec<&str> = text.lines().collect();
    let mut found = Vec::new();
    for (index, line) in lines.iter().enumerate() {
        let indent = line.len() - line.trim_start().len();
        let Some(name) = function_name(line.trim_start()) else { continue };
        let closing = format!("{}}}", &line[..indent]);
        let body = lines[index..].iter().take_while(|l| **l != closing).count();
        let has_body = lines[index..].iter().find(|l| l.ends_with('{') || l.ends_with(';'));
        if !line.ends_with('}') && has_body.is_some_and(|l| l.ends_with('{')) {
            found.push((name, body + 1));
        }
    }
    found
}

#[test]
fn functions_are_seen_whoever_may_call_them() {
    for line in ["fn a()", "pub fn a<T>()", "pub(in crate::b) const fn a()", "pub(crate) async fn a()"] {
        assert_eq!(function_name(line), Some("a"), "{line}");
    }
    assert_eq!(function_name("let b: fn (u8) = c;"), None);
}

fn function_name(line: &str) -> Option<&str> {
    let before = line.split("fn ").next()?;
    let before_function = ["pub", "const", "async", "unsafe", "extern", "\"C\""];
    let visible = before.strip_prefix("pub(").and_then(|rest| rest.split_once(')')).map(|(_, rest)| rest);
    let mut words = visible.unwrap_or(before).split_whitespace();
    if !line.contains("fn ") || !words.all(|word| before_function.contains(&word)) {
        return None;
    }
    line[before.len() + 3..].split(['(', '<']).next()
}
