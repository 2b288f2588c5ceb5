//! The page on errors lists every kind, what it means and what to do, in the words of the code.

// A test may stop where it fails, also in what its functions share.
#![allow(clippy::unwrap_used)]
#![allow(clippy::disallowed_methods, reason = "a variable says whether to write the page anew")]

use std::fmt::Write as _;
use std::path::Path;
use tharsis_types::FailureKind;

const BEGIN: &str =
    "<!-- kinds: written by `UPDATE_PAGE=1 cargo test -p tharsis-types --test errors_page` -->\n";
const END: &str = "<!-- end of kinds -->";

/// The documentation of a kind, from the source.
fn meaning(kind: FailureKind) -> String {
    let source = include_str!("../src/failure.rs");
    let variant = format!("    {kind},\n");
    let before = source.split(&variant).next().unwrap();
    let lines: Vec<_> =
        before.lines().rev().take_while(|line| line.trim_start().starts_with("///")).collect();
    let words: Vec<_> = lines.iter().rev().map(|line| line.trim().trim_start_matches("///").trim()).collect();
    words.join(" ")
}

fn table() -> String {
    let mut out = "| kind | what it means | what to do |\n|---|---|---|\n".to_owned();
    for kind in FailureKind::ALL {
        let (meaning, advice) = (meaning(kind), kind.advice());
        assert!(!meaning.is_empty(), "{kind} has no documentation");
        writeln!(out, "| `{kind}` | {meaning} | {advice} |").unwrap();
    }
    out
}

#[test]
fn the_page_lists_every_kind_as_the_code_has_it() {
    let path = Path::new(&std::env::var("CARGO_MANIFEST_DIR").unwrap()).join("../docs/errors.md");
    let page = std::fs::read_to_string(&path).unwrap();
    let (before, rest) = page.split_once(BEGIN).unwrap();
    let (found, after) = rest.split_once(END).unwrap();
    if std::env::var_os("UPDATE_PAGE").is_some() {
        return std::fs::write(&path, format!("{before}{BEGIN}{}{END}{after}", table())).unwrap();
    }
    assert_eq!(found, table(), "UPDATE_PAGE=1 writes it anew");
}
