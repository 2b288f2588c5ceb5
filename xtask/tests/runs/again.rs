//! A later run compiles what has changed, and nothing else.

use crate::workspace::{GOOD, Workspace};
use std::fs;

/// The lines in which a run says what it compiles.
fn compiled(workspace: &Workspace) -> Vec<String> {
    let (is_green, said) = workspace.run(&["good"]);
    assert!(is_green, "{said}");
    said.lines().filter(|line| line.contains("Compiling ")).map(str::to_owned).collect()
}

/// The clones of continuous integration stand anywhere and have one target folder.
#[test]
fn a_tree_at_another_place_compiles_only_what_differs() {
    let workspace = Workspace::new(&[("good", &[("src/lib.rs", GOOD)])]);
    workspace.write("clippy.toml", "allow-unwrap-in-tests = true\n");
    assert_eq!(compiled(&workspace).len(), 2, "with the package that is selected beside it");
    let workspace = workspace.moved();
    assert_eq!(compiled(&workspace), Vec::<String>::new(), "at another place");
    let manifest = fs::read_to_string(workspace.path("Cargo.toml")).unwrap();
    workspace.write("Cargo.toml", &format!("# A comment.\n{manifest}"));
    assert_eq!(compiled(&workspace), Vec::<String>::new(), "a comment in the manifest");
    workspace.write("good/src/lib.rs", &GOOD.replace("number * 2", "number + number"));
    assert_eq!(compiled(&workspace).len(), 1, "an edit");
    workspace.write("clippy.toml", "allow-unwrap-in-tests = false\n");
    assert_eq!(compiled(&workspace).len(), 2, "other settings of lints");
}
