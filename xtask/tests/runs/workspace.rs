//! A small workspace, and runs of its tests.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use tempfile::TempDir;

/// A library with a test, an example in its docs and nothing to complain about.
pub const GOOD: &str = "//! A library.

/// Twice a number.
///
/// ```
/// assert_eq!(good::twice(2), 4);
/// ```
pub fn twice(number: u32) -> u32 {
    number * 2
}

#[test]
fn twice_is_the_sum() {
    assert_eq!(twice(3), 3 + 3);
}
";

/// A file of a package, and what is in it.
pub type File<'a> = (&'a str, &'a str);

/// A workspace in a folder of its own, and its target folder in another one.
pub struct Workspace {
    folder: TempDir,
    target: TempDir,
}

impl Workspace {
    /// Makes packages of these names and files, and the tool that checks documentation. A file `Cargo.toml`
    /// is added to the package's manifest.
    pub fn new(packages: &[(&str, &[File<'_>])]) -> Self {
        let [folder, target] = [(); 2].map(|()| tempfile::tempdir().unwrap());
        let this = Self { folder, target };
        // The run of one package's tests selects this one as well.
        let unified: &[File<'_>] = &[("src/main.rs", "fn main() {}\n")];
        let all = packages.iter().copied().chain([(xtask::test::UNIFIED, unified)]);
        let mut members = Vec::new();
        for (name, files) in all {
            members.push(format!("\"{name}\""));
            let mut manifest = format!("[package]\nname = \"{name}\"\nedition = \"2024\"\n");
            for (file, text) in files {
                match *file {
                    "Cargo.toml" => manifest.push_str(text),
                    file => this.write(&format!("{name}/{file}"), text),
                }
            }
            this.write(&format!("{name}/Cargo.toml"), &manifest);
        }
        let members = members.join(", ");
        this.write("Cargo.toml", &format!("[workspace]\nresolver = \"3\"\nmembers = [{members}]\n"));
        let manifest = std::env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets CARGO_MANIFEST_DIR");
        fs::create_dir(this.path("tools")).unwrap();
        // With its right to be run.
        fs::copy(Path::new(&manifest).join("../tools/rustdoc-checked"), this.path("tools/rustdoc-checked"))
            .unwrap();
        this
    }

    /// The same files at another place, with the same target folder.
    pub fn moved(self) -> Self {
        let Self { folder: before, target } = self;
        let folder = tempfile::tempdir().unwrap();
        for entry in fs::read_dir(before.path()).unwrap() {
            let entry = entry.unwrap();
            fs::rename(entry.path(), folder.path().join(entry.file_name())).unwrap();
        }
        Self { folder, target }
    }

    /// A path in the workspace.
    pub fn path(&self, path: &str) -> PathBuf {
        self.folder.path().join(path)
    }

    /// Writes a file.
    pub fn write(&self, path: &str, text: &str) {
        let path = self.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// Begins a run of the tests that a pattern selects, with what it says in a file.
    pub fn start(&self, pattern: &[&str], said: &Path) -> Child {
        let said = fs::File::create(said).unwrap();
        // A shell that starts something in the background may have it ignore interrupts.
        Command::new("env")
            .args(["--default-signal=INT", env!("CARGO_BIN_EXE_xtask"), "test"])
            .args(pattern)
            .env("CARGO_MANIFEST_DIR", self.path("xtask"))
            .env("CARGO_TARGET_DIR", self.target.path())
            .stdin(Stdio::null())
            .stdout(said.try_clone().unwrap())
            .stderr(said)
            .spawn()
            .unwrap()
    }

    /// A run to its end: whether it succeeds, and what it says.
    pub fn run(&self, pattern: &[&str]) -> (bool, String) {
        let said = self.path("said");
        let status = self.start(pattern, &said).wait().unwrap();
        (status.success(), fs::read_to_string(said).unwrap())
    }
}
