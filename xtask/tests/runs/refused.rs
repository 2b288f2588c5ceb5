//! Each fault makes a run fail and is named: lints, checks of unsafe code, links of docs, programs that run
//! no test. A run without a fault succeeds.

use crate::workspace::{File, GOOD, Workspace};

/// A package's run: whether it succeeds, and what it says.
fn run(name: &str, files: &[File<'_>], words: &[&str]) -> (bool, String) {
    let workspace = Workspace::new(&[(name, files)]);
    let pattern: Vec<&str> = [name].into_iter().chain(words.iter().copied()).collect();
    workspace.run(&pattern)
}

/// A run that fails, and says this.
fn refused(name: &str, files: &[File<'_>], words: &[&str], says: &str) {
    let (is_green, said) = run(name, files, words);
    assert!(!is_green && said.contains(says), "{said}");
}

#[test]
fn a_package_without_a_fault_passes() {
    let (is_green, said) = run("good", &[("src/lib.rs", GOOD)], &[]);
    assert!(is_green && said.contains("\n2 passed, 0 failed, 0 skipped"), "{said}");
}

#[test]
fn a_lint_of_clippy_is_refused() {
    let returns = GOOD.replace("    number * 2\n", "    return number * 2;\n");
    refused("good", &[("src/lib.rs", &returns)], &[], "needless_return");
}

#[test]
fn a_warning_of_the_compiler_is_refused() {
    let unused = format!("{GOOD}\nfn three() {{}}\n");
    refused("good", &[("src/lib.rs", &unused)], &[], "function `three` is never used");
}

/// Clippy's compiler would leave the check out. The package is one of those that rustc compiles.
#[test]
fn a_pointer_that_is_not_aligned_is_refused_in_a_crate_with_unsafe_code() {
    let (package, name) = ("tharsis-cli", "tharsis_cli");
    assert!(xtask::lint::UNSAFE.contains(&(package, name)));
    let reads = "//! A library.

#[test]
fn reads() {
    let bytes = std::hint::black_box([0_u8; 16]);
    let odd = bytes.as_ptr().map_addr(|at| at | 1).cast::<u32>();
    // SAFETY: none, and that must be found.
    assert_eq!(unsafe { *odd }, 0);
}
";
    refused(package, &[("src/lib.rs", reads)], &[], "non-unwinding panic");
}

#[test]
fn a_link_of_docs_that_leads_nowhere_is_refused() {
    let linked = GOOD.replace("/// Twice a number.", "/// Twice a number, as [`nobody::knows`].");
    refused("good", &[("src/lib.rs", &linked)], &[], "unresolved link to `nobody::knows`");
}

#[test]
fn a_word_that_no_test_has_in_its_name_is_refused() {
    refused("good", &[("src/lib.rs", GOOD)], &["thrice"], "no test matches good thrice");
}

#[test]
fn a_program_that_runs_no_test_is_refused() {
    let manifest = "[[test]]\nname = \"lists\"\nharness = false\n";
    let program = |main: &str| format!("//! Tests.\n\nfn main() {{\n    {main}\n}}\n");
    let silent = program("");
    let files = [("Cargo.toml", manifest), ("tests/lists.rs", &*silent)];
    refused("silent", &files, &[], "the program ended before it had run its tests");
    let empty = program(
        "println!(\"running 0 tests\\ntest result: ok. 0 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out\");",
    );
    let files = [("Cargo.toml", manifest), ("tests/lists.rs", &*empty)];
    refused("empty", &files, &[], "the program has no test");
}
