//! Pages for people: the book has each of them, and their links lead somewhere.

use crate::root;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// The pages of a folder and of those in it.
fn pages(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        if entry.is_dir() {
            found.extend(pages(&entry));
        } else if entry.extension().is_some_and(|ending| ending == "md") {
            found.push(entry);
        }
    }
    found
}

/// The targets of a page's links to other files, without those in code.
fn links(page: &str) -> Vec<&str> {
    let (mut found, mut is_code) = (Vec::new(), false);
    for line in page.lines() {
        is_code ^= line.trim_start().starts_with("```");
        if is_code {
            continue;
        }
        for rest in line.split("](").skip(1) {
            let target = rest.split(')').next().unwrap_or_default();
            if !target.is_empty() && !target.contains("://") && !target.starts_with("mailto:") {
                found.push(target);
            }
        }
    }
    found
}

/// The anchors of a page's headings, as GitHub and mdBook make them.
fn anchors(page: &str) -> BTreeSet<String> {
    let (mut found, mut is_code) = (BTreeSet::new(), false);
    for line in page.lines() {
        is_code ^= line.trim_start().starts_with("```");
        if is_code || !line.starts_with('#') {
            continue;
        }
        let title = line.trim_start_matches('#').trim().to_lowercase();
        let kept = title.chars().filter(|letter| letter.is_alphanumeric() || " -_".contains(*letter));
        found.insert(kept.map(|letter| if letter == ' ' { '-' } else { letter }).collect());
    }
    found
}

/// The reason why a link of a page leads nowhere.
fn broken(page: &Path, target: &str) -> Option<String> {
    let (file, anchor) = target.split_once('#').unwrap_or((target, ""));
    let file = if file.is_empty() { page.to_owned() } else { page.parent()?.join(file) };
    if !file.exists() {
        return Some(format!("{}: {target} is not there", page.display()));
    }
    let is_page = file.extension().is_some_and(|ending| ending == "md");
    let has = |anchor: &str| anchors(&fs::read_to_string(&file).unwrap()).contains(anchor);
    let is_lost = is_page && !anchor.is_empty() && !has(anchor);
    is_lost.then(|| format!("{}: {target} names no heading", page.display()))
}

#[test]
fn links_of_pages_lead_somewhere() {
    let of_root = ["ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md", "README.md", "SECURITY.md"];
    let mut all = pages(&root().join("docs"));
    all.extend(of_root.map(|name| root().join(name)));
    let mut seen = 0;
    let mut wrong = Vec::new();
    for page in &all {
        let text = fs::read_to_string(page).unwrap();
        let targets = links(&text);
        seen += targets.len();
        wrong.extend(targets.into_iter().filter_map(|target| broken(page, target)));
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(seen > 60, "{seen} links were looked at");
}

/// Whether a page has a program in Rust that is not marked as one of others.
fn has_program(page: &str) -> bool {
    let marks = page.lines().filter_map(|line| line.trim_start().strip_prefix("```rust"));
    marks.into_iter().any(|mark| !mark.contains("ignore"))
}

#[test]
fn programs_of_pages_are_compiled() {
    let library = fs::read_to_string(root().join("tharsis/src/lib.rs")).unwrap();
    let mut all = pages(&root().join("docs"));
    all.push(root().join("README.md"));
    let of_pages = all.iter().filter(|page| has_program(&fs::read_to_string(page).unwrap()));
    let names = of_pages.map(|page| page.strip_prefix(root()).unwrap().display().to_string());
    let missing: Vec<_> =
        names.filter(|name| !library.contains(&format!("include_str!(\"../../{name}\")"))).collect();
    assert!(missing.is_empty(), "tharsis/src/lib.rs does not list {missing:?}");
    assert!(has_program("a\n```rust,no_run\nfn main() {}\n```") && !has_program("```rust,ignore\n```"));
    assert!(!has_program("```rs\nlet a = 1;\n```\n```text\nrust\n```"));
}

#[test]
fn the_book_has_every_page() {
    let docs = root().join("docs");
    let summary = fs::read_to_string(docs.join("SUMMARY.md")).unwrap();
    let listed: BTreeSet<PathBuf> = links(&summary).into_iter().map(|target| docs.join(target)).collect();
    let there: BTreeSet<PathBuf> =
        pages(&docs).into_iter().filter(|page| !page.ends_with("SUMMARY.md")).collect();
    let missing: Vec<_> = there.difference(&listed).collect();
    assert!(missing.is_empty(), "docs/SUMMARY.md does not list {missing:?}");
}

#[test]
fn links_are_read_as_people_see_them() {
    let page = "# A b, c's `d`\n[x](y.md#z) and [u](https://v)\n```\n[no](code.md)\n```\n[w](#a-b-cs-d)";
    assert_eq!(links(page), ["y.md#z", "#a-b-cs-d"]);
    assert_eq!(anchors(page), BTreeSet::from(["a-b-cs-d".to_owned()]));
    assert!(broken(&root().join("README.md"), "nowhere.md").is_some());
    assert!(broken(&root().join("README.md"), "CONTRIBUTING.md#no-such-heading").is_some());
    assert!(broken(&root().join("README.md"), "CONTRIBUTING.md#set-up").is_none());
}
