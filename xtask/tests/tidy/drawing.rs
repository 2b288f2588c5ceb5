//! The drawing of the crates in `ARCHITECTURE.md` is the one that the manifests make.

use super::{dependencies, products, root};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;

const BEGIN: &str = "<!-- crates: written by `UPDATE_DRAWING=1 cargo test -p xtask drawing` -->\n```text\n";
const END: &str = "```\n<!-- end of crates -->";

/// The crates of this workspace that each crate uses.
fn uses() -> BTreeMap<String, Vec<String>> {
    let folder_of = |package: String| match package.strip_prefix("tharsis") {
        Some("") => Some("tharsis".to_owned()),
        Some(rest) => rest.strip_prefix('-').map(str::to_owned),
        None => None,
    };
    let of = |folder: String| {
        let mut used: Vec<_> = dependencies(&folder).into_iter().filter_map(folder_of).collect();
        used.sort();
        (folder, used)
    };
    products().into_iter().map(of).collect()
}

/// The floor that a crate stands on: one above the highest that it uses.
fn floor(name: &str, uses: &BTreeMap<String, Vec<String>>) -> usize {
    uses[name].iter().map(|used| 1 + floor(used, uses)).max().unwrap_or(0)
}

fn drawing() -> String {
    let uses = uses();
    let mut floors: BTreeMap<usize, Vec<&String>> = BTreeMap::new();
    for name in uses.keys() {
        floors.entry(floor(name, &uses)).or_default().push(name);
    }
    let width = uses.keys().map(String::len).max().unwrap_or(0);
    let mut out = String::new();
    for (number, names) in floors.iter().rev() {
        for name in names {
            let used = &uses[*name];
            let arrow = if used.is_empty() { String::new() } else { format!(" -> {}", used.join(", ")) };
            writeln!(out, "{number}  {name:width$}{arrow}").unwrap();
        }
    }
    out.lines().map(|line| format!("{}\n", line.trim_end())).collect()
}

#[test]
fn the_drawing_of_the_crates_is_what_the_manifests_say() {
    let path = root().join("ARCHITECTURE.md");
    let text = fs::read_to_string(&path).unwrap();
    let (before, rest) = text.split_once(BEGIN).expect("the drawing begins");
    let (found, after) = rest.split_once(END).expect("the drawing ends");
    let drawing = drawing();
    if std::env::var_os("UPDATE_DRAWING").is_some() {
        fs::write(&path, format!("{before}{BEGIN}{drawing}{END}{after}")).unwrap();
        return;
    }
    assert_eq!(found, drawing, "UPDATE_DRAWING=1 writes it anew");
}
