//! The part of a long run that is of no package can be run alone.

use crate::workspace::{GOOD, Workspace};

/// Packages with the names that the commands have, each with a library.
fn workspace() -> Workspace {
    let pi = "//! Pi.\n\nfn main() {}\n";
    let without = "//! Tests.\n\n#[test]\nfn without_dense() {}\n";
    let kernels = GOOD.replace("twice_is_the_sum", "not_built");
    let library = ("src/lib.rs", GOOD);
    Workspace::new(&[
        ("tharsis-examples", &[library, ("examples/pi.rs", pi)]),
        ("tharsis-numeric", &[library, ("tests/numeric.rs", without)]),
        ("tharsis-learn", &[library]),
        ("tharsis-cli", &[library]),
        ("tharsis-kernels", &[("src/lib.rs", &*kernels)]),
    ])
}

#[test]
fn the_forms_of_a_long_run_are_a_part_of_it() {
    let workspace = workspace();
    let (is_green, said) = workspace.run(&["--forms"]);
    assert!(is_green && said.contains("\n2 passed, 0 failed, 0 skipped"), "{said}");
    for form in ["forms", "the first example", "the command for nodes", "kernels without dense"] {
        assert!(said.lines().any(|line| line.starts_with("ok") && line.contains(form)), "{form}: {said}");
    }
    workspace.write("tharsis-cli/src/lib.rs", &format!("{GOOD}\nfn three() {{}}\n"));
    let (is_green, said) = workspace.run(&["--forms"]);
    assert!(!is_green && said.contains("function `three` is never used"), "{said}");
    let (is_green, said) = workspace.run(&["--forms", "--long"]);
    assert!(!is_green && said.contains("cannot be used with"), "{said}");
}
