//! A small workspace, and runs of its tests.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use tempfile::TempDir;

/// A file of a package, and what is in it.
pub type File<'a> = (&'a str, &'a str);

/// A workspace in a folder of its own.
pub struct Workspace(TempDir);

impl Workspace {
    /// Makes packages of these names and files. A file `Cargo.toml` is added to the package's manifest.
    pub fn new(packages: &[(&str, &[File<'_>])]) -> Self {
        let this = Self(tempfile::tempdir().unwrap());
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
        this
    }

    /// A path in the workspace.
    pub fn path(&self, path: &str) -> PathBuf {
        self.0.path().join(path)
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
            .env("CARGO_TARGET_DIR", self.path("target"))
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
