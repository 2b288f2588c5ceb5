//! One cargo command that compiles all test programs, with lints.
//!
//! `xtask::lint` makes clippy compile the crates of the workspace: lints cost one reading of our code, not a
//! second build of every dependency.

use super::Places;
use super::order::Order;
use super::processes::{NICENESS, Run, nicer};
use super::program::Program;
use super::selection::Selection;
use super::workspace;
use crate::{cargo, lint};
use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A cargo command whose crates of the workspace are linted while they are compiled.
pub fn linting_cargo(places: &Places) -> Result<Command> {
    let mut command = cargo();
    command
        .current_dir(&places.root)
        .env("RUSTC_WORKSPACE_WRAPPER", &places.compiler)
        .env(lint::CLIPPY, toolchain()?.join("bin/clippy-driver"))
        // The separator is clippy's own.
        .env("CLIPPY_ARGS", "-D__CLIPPY_HACKERY__warnings__CLIPPY_HACKERY__");
    // The state of incremental builds would be a quarter of the target folder.
    if std::env::var_os("CARGO_INCREMENTAL").is_none() {
        command.env("CARGO_INCREMENTAL", "0");
    }
    Ok(command)
}

/// The folder of the toolchain.
pub fn toolchain() -> Result<PathBuf> {
    let output = Command::new("rustc").args(["--print", "sysroot"]).output().context("cannot start rustc")?;
    let folder = String::from_utf8(output.stdout).context("the folder of the toolchain is no UTF-8")?;
    Ok(PathBuf::from(folder.trim()))
}

/// Folders of the shared libraries that test programs load.
pub fn libraries(places: &Places) -> Result<Vec<PathBuf>> {
    let built = [places.target.join("debug/deps"), places.target.join("debug")];
    Ok(built.into_iter().chain([toolchain()?.join("lib")]).collect())
}

/// Compiles the test programs of a selection, and hands on each as soon as it and what it may start are
/// there. `heard` gets each of cargo's messages.
pub fn build(
    places: &Places,
    run: &Run,
    selection: &Selection,
    mut order: Order,
    mut made: impl FnMut(&Program),
    mut heard: impl FnMut(&Value),
) -> Result<()> {
    let mut command = linting_cargo(places)?;
    command.args(["test", "--no-run", "--no-fail-fast"]).args(selection.packages());
    messages(run, nicer(&command, NICENESS), |message| {
        heard(message);
        if let Some(folder) = folder(&places.root, message) {
            if let Some(program) = test_program(&folder, message) {
                order.add(program);
            }
            if let Some(name) = plain_program(message) {
                order.has(&folder, &name);
            }
        }
        order.ready().iter().for_each(&mut made);
    })
    .context("the tests do not compile")?;
    order.rest().iter().for_each(made);
    Ok(())
}

/// Runs a command of cargo, and hands on its messages as they come.
pub fn messages(run: &Run, mut command: Command, mut heard: impl FnMut(&Value)) -> Result<()> {
    command.arg("--message-format=json-render-diagnostics").stdin(Stdio::null()).stdout(Stdio::piped());
    let mut cargo = run.start(&mut command).context("cannot start cargo")?;
    let output = cargo.output().context("cargo has no output")?;
    for line in BufReader::new(output).lines() {
        let message: Value = serde_json::from_str(&line.context("cargo's output broke off")?)
            .context("cargo wrote something that is no JSON")?;
        heard(&message);
    }
    let status = cargo.wait().context("cargo was lost")?;
    if !status.success() {
        bail!("cargo failed: {status}");
    }
    Ok(())
}

/// The folder below the root of the package that a message is about.
fn folder(root: &Path, message: &Value) -> Option<String> {
    let manifest = Path::new(message["manifest_path"].as_str()?).parent()?;
    Some(manifest.strip_prefix(root).unwrap_or(manifest).to_string_lossy().into_owned())
}

/// The test program of a message, if it is about one.
fn test_program(folder: &str, message: &Value) -> Option<Program> {
    let kind = message["target"]["kind"][0].as_str()?;
    if message["reason"] != "compiler-artifact" || message["profile"]["test"] != true {
        return None;
    }
    Some(Program {
        package: folder.to_owned(),
        target: if kind == "test" { message["target"]["name"].as_str()?.to_owned() } else { kind.to_owned() },
        file: PathBuf::from(message["executable"].as_str()?),
        manifest: Path::new(message["manifest_path"].as_str()?).parent()?.to_owned(),
    })
}

/// The name of the command or the example that a message is about.
fn plain_program(message: &Value) -> Option<String> {
    let is_made = message["reason"] == "compiler-artifact" && message["profile"]["test"] == false;
    if is_made { workspace::program(&message["target"]) } else { None }
}

#[cfg(test)]
mod tests {
    use super::{folder, plain_program, test_program};
    use serde_json::json;
    use std::path::Path;

    fn artifact(kind: &str, is_test: bool) -> serde_json::Value {
        json!({
            "reason": "compiler-artifact",
            "manifest_path": "/w/tests/sim/Cargo.toml",
            "target": {"kind": [kind], "name": "seeds"},
            "profile": {"test": is_test},
            "executable": "/w/target/debug/deps/seeds-1",
        })
    }

    #[test]
    fn test_programs_are_named_by_folder_and_target() {
        let name = |kind| {
            let message = artifact(kind, true);
            test_program(&folder(Path::new("/w"), &message)?, &message).map(|found| found.name())
        };
        assert_eq!(name("test").as_deref(), Some("tests/sim/seeds"));
        assert_eq!(name("lib").as_deref(), Some("tests/sim/lib"));
    }

    #[test]
    fn plain_programs_are_not_run() {
        assert!(test_program("tests/sim", &artifact("example", false)).is_none());
        assert_eq!(plain_program(&artifact("example", false)).as_deref(), Some("seeds"));
        assert!(plain_program(&artifact("bin", true)).is_none(), "its unit tests are no command");
    }
}
