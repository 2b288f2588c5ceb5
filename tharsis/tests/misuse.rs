//! Compiler messages for misuse of the attributes: the expected message is beside each case.
//!
//! `UPDATE_MISUSE=1 cargo test -p tharsis --test misuse` writes the messages again; read what changed.
//!
//! The compiler reads the library that cargo has built for this test, so a case takes a tenth of a second.

// A test may stop where it fails, also in its helper functions.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::sync::Arc;
use std::time::SystemTime;

/// The cases, from the root of the workspace.
const FOLDER: &str = "tharsis/tests/misuse";

fn main() -> ExitCode {
    let library = Arc::new(Library::find());
    let names = [names_of("rs"), names_of("stderr")];
    let mut trials: Vec<_> = names[0]
        .iter()
        .map(|name| {
            let (name, library) = (name.clone(), Arc::clone(&library));
            tharsis_trials::trial_of(name.clone(), move || library.check(&name))
        })
        .collect();
    trials.push(tharsis_trials::trial("every_message_belongs_to_a_case", move || {
        assert!(!names[0].is_empty(), "no case in {FOLDER}");
        assert_eq!(names[1], names[0], "messages, and cases");
    }));
    tharsis_trials::run(trials)
}

/// The library of this test as cargo compiled it.
struct Library {
    path: PathBuf,
    /// The folder with what it depends on.
    dependencies: PathBuf,
}

impl Library {
    /// The newest build of the library that is not younger than this program. The folder has one for each
    /// set of features and each compiler, and cargo does not tell which one this program was linked with.
    /// That one existed before the program, and a newer one was compiled from the same sources: cargo would
    /// have compiled this program's again otherwise.
    fn find() -> Library {
        let program = std::env::current_exe().unwrap();
        let dependencies = program.parent().unwrap().to_path_buf();
        let linked = modified(&program);
        let mut builds: Vec<(SystemTime, PathBuf)> = fs::read_dir(&dependencies)
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .filter(|path| {
                let name = path.file_name().unwrap().to_string_lossy();
                name.starts_with("libtharsis-") && name.ends_with(".rlib")
            })
            .map(|path| (modified(&path), path))
            .filter(|(time, _)| *time <= linked)
            .collect();
        builds.sort();
        let Some((time, path)) = builds.pop() else {
            panic!("no libtharsis-*.rlib in {} is as old as {}", dependencies.display(), program.display())
        };
        if let Some((_, other)) = builds.pop_if(|(other, _)| *other == time) {
            panic!("{} and {} are of the same moment; remove both", path.display(), other.display());
        }
        Library { path, dependencies }
    }

    /// Compiles a case, and compares the messages with the expected ones.
    fn check(&self, name: &str) -> Result<(), String> {
        let said = self.compile(name)?;
        let expected = root().join(FOLDER).join(name).with_extension("stderr");
        if std::env::var_os("UPDATE_MISUSE").is_some() {
            return fs::write(&expected, said).map_err(|error| error.to_string());
        }
        // A missing file is a message that does not fit.
        let expected = fs::read_to_string(&expected).unwrap_or_default();
        if said == expected {
            return Ok(());
        }
        Err(format!("{FOLDER}/{name}.rs\n\nexpected:\n{expected}\nfound:\n{said}"))
    }

    /// The messages about a case, which must not compile.
    fn compile(&self, name: &str) -> Result<String, String> {
        let case = format!("{FOLDER}/{name}.rs");
        let metadata = tempfile::tempdir().unwrap();
        let mut library = std::ffi::OsString::from("tharsis=");
        library.push(&self.path);
        let mut folder = std::ffi::OsString::from("dependency=");
        folder.push(&self.dependencies);
        let output = Command::new(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()))
            // Only from there the compiler finds the sources that it quotes.
            .current_dir(root())
            .args(["--edition", "2024", "--emit", "metadata", "--color", "never", "--cap-lints", "allow"])
            .args([Path::new("--out-dir"), metadata.path(), Path::new("--extern")])
            .arg(library)
            .arg("-L")
            .arg(folder)
            .arg(&case)
            // Messages differ where unstable features are allowed.
            .env_remove("RUSTC_BOOTSTRAP")
            .output()
            .unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        match output.status.code() {
            Some(1) => Ok(stable(&said, &case)),
            Some(0) => Err(format!("{case} compiles")),
            _ => Err(format!("the compiler broke off: {}\n{said}", output.status)),
        }
    }
}

/// Messages without what other changes would alter: lines of other files, the width of the margin, how many
/// more types implement a trait, and the closing lines.
fn stable(said: &str, case: &str) -> String {
    let mut lines = Vec::new();
    let mut quotes_case = true;
    for line in said.lines() {
        if line.starts_with("error: aborting due to") {
            break;
        }
        let number = line.trim_start_matches(' ');
        let text = number.trim_start_matches(|c: char| c.is_ascii_digit());
        let number = number[..number.len() - text.len()].trim();
        let mut text = text.trim_start_matches(' ').to_owned();
        if text.starts_with("--> ") || text.starts_with("::: ") {
            quotes_case = text[4..].starts_with(case);
            if !quotes_case {
                text = text.trim_end_matches(|c: char| c.is_ascii_digit() || c == ':').to_owned();
            }
            lines.push(format!("  {text}"));
        } else if text.starts_with(['|', '=', '+', '-', '~']) {
            lines.push(format!("{:>2} {text}", if quotes_case { number } else { "" }));
        } else if text.starts_with("and ") && text.ends_with(" others") {
            lines.push("      and others".to_owned());
        } else if line.starts_with(' ') {
            lines.push(format!("      {text}"));
        } else {
            lines.push(line.to_owned());
        }
    }
    let lines: Vec<&str> = lines.iter().map(|line| line.trim_end()).collect();
    format!("{}\n", lines.join("\n").trim_end())
}

/// The names of the files with this ending.
fn names_of(ending: &str) -> BTreeSet<String> {
    let files = fs::read_dir(root().join(FOLDER)).unwrap().map(|entry| entry.unwrap().path());
    let files = files.filter(|path| path.extension().is_some_and(|found| found == ending));
    files.map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned()).collect()
}

/// The root of the workspace.
fn root() -> PathBuf {
    let folder = std::env::var_os("CARGO_MANIFEST_DIR").expect("cargo test sets CARGO_MANIFEST_DIR");
    Path::new(&folder).parent().unwrap().to_path_buf()
}

fn modified(path: &Path) -> SystemTime {
    fs::metadata(path).unwrap().modified().unwrap()
}
