//! Programs that tests start. `./test` begins a test when the commands and examples of its own package are
//! linked; those of others may still be those of an older build.

use crate::{packages, root, sources};
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// A package: its folder, and the names of its commands and examples.
struct Package {
    folder: PathBuf,
    programs: BTreeSet<String>,
}

fn package(package: &Value) -> Package {
    let manifest = Path::new(package["manifest_path"].as_str().expect("a path"));
    let is_program = |target: &&Value| matches!(target["kind"][0].as_str(), Some("bin" | "example"));
    let targets = package["targets"].as_array().expect("targets").iter().filter(is_program);
    Package {
        folder: manifest.parent().expect("a folder").canonicalize().unwrap(),
        programs: targets.map(|target| target["name"].as_str().expect("a name").to_owned()).collect(),
    }
}

/// Whether a source looks for programs beside that of the test: cargo tells a test only of commands of its
/// own package.
fn looks_beside_itself(text: &str) -> bool {
    let finds = |words: &[&str]| words.iter().any(|word| text.contains(word));
    let has_folder = finds(&["current_exe", "CARGO_BIN_EXE_", "CARGO_TARGET_TMPDIR"])
        && finds(&[".parent()", ".ancestors()", "with_file_name"]);
    has_folder || finds(&["target/debug", "CARGO_TARGET_DIR"])
}

/// The programs of other packages that a source names.
fn of_others<'a>(text: &str, own: &Package, packages: &'a [Package]) -> Vec<&'a str> {
    let others = packages.iter().flat_map(|package| &package.programs);
    let others = others.filter(|name| !own.programs.contains(*name));
    others.map(String::as_str).filter(|name| text.contains(&format!("\"{name}\""))).collect()
}

#[test]
fn tests_start_programs_of_their_own_package_only() {
    let packages: Vec<_> = packages().iter().map(package).collect();
    let xtask = root().join("xtask").canonicalize().unwrap();
    let mut seen = 0;
    for (path, text) in sources() {
        let path = path.canonicalize().unwrap();
        let holds = |package: &&Package| path.starts_with(&package.folder);
        let own = packages.iter().filter(holds).max_by_key(|package| package.folder.as_os_str().len());
        let Some(own) = own.filter(|own| own.folder != xtask) else { continue };
        let is_test =
            path.strip_prefix(root().canonicalize().unwrap()).unwrap().iter().any(|part| part == "tests");
        if !is_test || !looks_beside_itself(&text) {
            continue;
        }
        seen += 1;
        let foreign = of_others(&text, own, &packages);
        assert!(foreign.is_empty(), "{} starts {foreign:?}, which may not be linked yet", path.display());
    }
    assert!(1 < seen, "the examples are started by tests of their packages");
}

#[test]
fn a_program_of_another_package_is_found() {
    let package = |folder: &str, programs: &[&str]| Package {
        folder: folder.into(),
        programs: programs.iter().map(|name| (*name).to_owned()).collect(),
    };
    let packages = [package("cli", &["tharsis"]), package("examples", &["pi"])];
    let text = "let folder = current_exe().unwrap().parent().unwrap().join(\"tharsis\");";
    assert!(looks_beside_itself(text));
    assert_eq!(of_others(text, &packages[1], &packages), ["tharsis"]);
    assert!(of_others(text, &packages[0], &packages).is_empty());
    assert!(!looks_beside_itself("Command::new(current_exe().unwrap()).arg(\"tharsis\")"));
}
