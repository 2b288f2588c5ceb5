//! `docs/numpy-names.md` has each name of NumPy and of the array API standard: what it does here, or why it
//! is not there. `UPDATE_PAGE=1 cargo test -p tharsis-numeric --test numeric names` writes the page anew.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use tharsis_numeric::protocol::names::{ARRAY_API, NUMPY, Way};
use tharsis_numeric::protocol::registry::{Operation, all};

const PAGE: &str = "docs/numpy-names.md";

fn operations() -> BTreeMap<String, Operation> {
    all().into_iter().map(|operation| (operation.name.clone(), operation)).collect()
}

#[test]
fn every_name_has_an_operation_or_one_reason() {
    let operations = operations();
    let mut seen = BTreeSet::new();
    for section in NUMPY {
        for name in section.names.split_whitespace() {
            assert!(seen.insert(name), "{name} is in two sections");
            let reason = section.reason(name);
            let given = section.reasons.iter().any(|(names, _)| names.split(' ').any(|other| other == name));
            if operations.contains_key(name) {
                assert!(!given, "{name} is done, and has a reason for which it is not")
            } else {
                assert!(reason.is_some(), "{name} is neither done nor is there a reason")
            }
        }
        let with_reason = section.reasons.iter().flat_map(|(names, _)| names.split(' '));
        let stray: Vec<&str> =
            with_reason.filter(|name| !section.names.split_whitespace().any(|n| n == *name)).collect();
        assert!(stray.is_empty(), "not in the section {}: {stray:?}", section.title);
    }
}

#[test]
fn rows_of_the_standard_are_all_there_and_lead_to_names_that_are_known() {
    let rows: usize = ARRAY_API.iter().map(|group| group.names.split_whitespace().count()).sum();
    assert_eq!(rows, 265);
    let operations = operations();
    for group in ARRAY_API {
        for name in group.names.split_whitespace() {
            if let Way::Operation(operation) = group.way(name) {
                let known = operations.contains_key(&*operation)
                    || NUMPY.iter().any(|section| section.reason(&operation).is_some());
                assert!(known, "{name}: there is no {operation}, and no reason for that");
            }
        }
    }
}

#[test]
fn the_page_is_current() {
    let path = crate::folder().join("..").join(PAGE);
    let text = page();
    if std::env::var_os("UPDATE_PAGE").is_some() {
        std::fs::write(&path, &text).unwrap();
    }
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        found == text,
        "{PAGE} is not current: UPDATE_PAGE=1 cargo test -p tharsis-numeric --test numeric names"
    );
}

/// A text in a cell of a table.
fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}

fn page() -> String {
    let operations = operations();
    let mut text = String::from(
        "# NumPy's names\n\n<!-- written by `UPDATE_PAGE=1 cargo test -p tharsis-numeric --test numeric names` -->\n\n",
    );
    let names = || NUMPY.iter().flat_map(|section| section.names.split_whitespace());
    let done = names().filter(|name| operations.contains_key(*name)).count();
    writeln!(
        text,
        "Operations of programs (`tharsis eval`) under their NumPy names, and the names that are no operations, \
         with the reason. In Rust they are methods of `Tensor`, or functions beside it, of the same names. \
         `nd.sum` is the method of arrays that `np.sum` is the function of. {done} of {} names of NumPy are \
         operations. `tharsis eval --list` prints them all.\n",
        names().count()
    )
    .unwrap();
    for section in NUMPY {
        part(&mut text, section.title, section.names.split_whitespace(), &operations);
        let missing: Vec<&str> =
            section.names.split_whitespace().filter(|name| !operations.contains_key(*name)).collect();
        let mut reasons: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for name in missing {
            reasons.entry(section.reason(name).unwrap_or("")).or_default().push(name);
        }
        for (reason, names) in reasons {
            let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
            writeln!(text, "- {}: {reason}", names.join(", ")).unwrap();
        }
        text.push('\n');
    }
    let listed: BTreeSet<&str> = names().collect();
    let others = operations.keys().map(String::as_str).filter(|name| !listed.contains(name));
    part(&mut text, "Operations without a name in NumPy, and attributes of arrays", others, &operations);
    text.push('\n');
    standard(&mut text, &operations);
    text
}

/// A heading, and a table of those names that are operations.
fn part<'a>(
    text: &mut String,
    title: &str,
    names: impl Iterator<Item = &'a str>,
    operations: &BTreeMap<String, Operation>,
) {
    write!(text, "## {title}\n\n").unwrap();
    let found: Vec<&Operation> = names.filter_map(|name| operations.get(name)).collect();
    if found.is_empty() {
        return;
    }
    text.push_str("| name | what it does |\n|---|---|\n");
    for Operation { name, signature, doc, alias_of, .. } in found {
        let doc = alias_of.map_or_else(|| cell(doc), |target| format!("another name of `{target}`"));
        writeln!(text, "| `{name}{}` | {doc} |", cell(signature)).unwrap();
    }
    text.push('\n');
}

fn standard(text: &mut String, operations: &BTreeMap<String, Operation>) {
    text.push_str("## The array API standard\n\nRows of version 2024.12, and those that 2025.12 adds.\n\n");
    text.push_str("| group | name | here |\n|---|---|---|\n");
    let reason = |name: &str| NUMPY.iter().find_map(|section| section.reason(name)).unwrap_or("");
    let mut done = 0;
    for group in ARRAY_API {
        for name in group.names.split_whitespace() {
            let here = match group.way(name) {
                Way::Operation(operation) if operations.contains_key(&*operation) => format!("`{operation}`"),
                Way::Operation(operation) => format!("no: {}", reason(&operation)),
                Way::Otherwise(way) => way.to_owned(),
                Way::Not(why) => format!("no: {why}"),
            };
            done += usize::from(!here.starts_with("no: "));
            writeln!(text, "| {} | `{name}` | {here} |", group.title).unwrap();
        }
    }
    let rows: usize = ARRAY_API.iter().map(|group| group.names.split_whitespace().count()).sum();
    write!(text, "\n{done} of {rows} rows are done.\n").unwrap();
}
