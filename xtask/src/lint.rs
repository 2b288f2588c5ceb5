//! rustc for the crates of the workspace in a run of the tests: clippy compiles them, so that lints need no
//! build of their own.
//!
//! A crate that another form of the build would need again is only read a second time, which costs no code
//! and no dependencies.
//!
//! `cargo xtask test` puts a copy of this program into the target folder and has cargo call that for each
//! crate, with the words of rustc (`RUSTC_WORKSPACE_WRAPPER`). The copy is known by its [`NAME`]. The rest of
//! the name is a hash of what decides about complaints: cargo knows a crate by the wrapper's path, too, so
//! each crate is compiled again when this file or a rule changes.

#![allow(clippy::print_stderr, reason = "cargo shows what a compiler says")]

use crate::dep_info;
use anyhow::{Context, Result};
use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, ExitStatus};

/// Beginning of the file's name under which a copy of this program is a compiler.
pub const NAME: &str = "lint-while-building";

/// Folder for what reading a crate writes, in the target folder. The runner removes it, so that nothing is
/// left of a compiler that was killed.
pub const SCRATCH: &str = "lint-scratch";

/// Variable with the path of clippy's compiler.
pub const CLIPPY: &str = "THARSIS_CLIPPY_DRIVER";

/// A form in which users build a crate, beside the one that is tested. A package and a crate of it, by their
/// names for cargo and rustc, without these features and the crates that they bring in.
pub struct Form {
    /// The package.
    pub package: &'static str,
    /// The library or the program.
    pub name: &'static str,
    /// Features that the form does not have.
    pub features: &'static [&'static str],
    /// Crates that only these features need.
    pub crates: &'static [&'static str],
    /// Whether the crate's own tests have the form as well.
    pub has_tests: bool,
}

/// The forms that are read: the engine as `cargo add tharsis` gives it, with the crates below it, the engine
/// without frames, the command without frames and tensors, tensors without object stores, frames without
/// SQLite, kernels without dense linear algebra.
pub const FORMS: &[Form] = &[
    Form {
        package: "tharsis",
        name: "tharsis",
        features: &["arrays", "dataframe", "hdf5", "learn", "object-storage", "sqlite", "tensor"],
        crates: &[
            "arrow_array",
            "bytes",
            "tharsis_dataframe",
            "tharsis_graph",
            "tharsis_kernels",
            "tharsis_learn",
            "tharsis_numeric",
            "thiserror",
        ],
        // They have tensors: a dev-dependency of the package on itself.
        has_tests: false,
    },
    Form {
        package: "tharsis",
        name: "tharsis",
        features: &["dataframe", "hdf5", "object-storage", "sqlite"],
        crates: &["arrow_array", "tharsis_dataframe"],
        has_tests: true,
    },
    Form {
        package: "tharsis-gcs",
        name: "tharsis_gcs",
        features: &["default", "etcd", "file"],
        crates: &["etcd_client", "redb", "rustix"],
        has_tests: false,
    },
    Form {
        package: "tharsis-raylet",
        name: "tharsis_raylet",
        features: &["etcd", "file"],
        crates: &[],
        has_tests: false,
    },
    Form {
        package: "tharsis-remote",
        name: "tharsis_remote",
        features: &["arrow", "default"],
        crates: &["arrow_array", "arrow_buffer", "arrow_ipc", "arrow_schema"],
        has_tests: false,
    },
    Form {
        package: "tharsis-numeric",
        name: "tharsis_numeric",
        features: &["hdf5", "object-storage"],
        crates: &["futures", "hdf5_reader", "object_store", "tokio"],
        has_tests: true,
    },
    Form {
        package: "tharsis-dataframe",
        name: "tharsis_dataframe",
        features: &["sqlite"],
        crates: &["rusqlite"],
        has_tests: false,
    },
    Form {
        package: "tharsis-cli",
        name: "tharsis_cli",
        features: &["default", "frames", "tensors"],
        crates: &[
            "arrow",
            "rustyline",
            "tharsis_dataframe",
            "tharsis_frame_programs",
            "tharsis_graph",
            "tharsis_kernels",
            "tharsis_learn",
            "tharsis_numeric",
            "tpchgen",
            "tpchgen_arrow",
            "unicode_width",
        ],
        has_tests: true,
    },
    Form {
        package: "tharsis-kernels",
        name: "tharsis_kernels",
        features: &["default", "dense"],
        crates: &["faer", "realfft", "rustfft", "tharsis_dense"],
        has_tests: true,
    },
];

/// Crates with unsafe code, by package and crate. Clippy's compiler leaves out the checks for misaligned and
/// null pointers, so rustc itself compiles them, and clippy only reads them. A test compares the list with
/// the tree.
pub const UNSAFE: &[(&str, &str)] = &[
    ("tharsis-cli", "tharsis_cli"),
    ("tharsis-core", "throughput"),
    ("tharsis-dataframe", "bad_inputs"),
    ("tharsis-kernels", "tharsis_kernels"),
    ("tharsis-object-store", "tharsis_object_store"),
    ("tharsis-object-store-models", "tharsis_object_store_models"),
];

/// Has the linker compress the debug sections of a program: two dozen programs with DataFusion inside are a
/// fifth smaller each. A backtrace names the same lines.
const COMPRESSED: &str = "-Clink-arg=-Wl,--compress-debug-sections=zlib";

/// Has the linker leave out the symbols of a program: one with DataFusion inside is a third smaller.
const STRIPPED: &str = "-Cstrip=symbols";

/// Programs that tests start for what they do, beside examples, by package and crate: nobody looks into them.
const PLAIN: &[(&str, &str)] = &[("tharsis-scenarios", "unmarked"), ("tharsis-sqllogic", "sqllogic")];

/// Test programs that nodes read for each cluster, to know them by their bytes or to send them to each other,
/// by package and crate. A panic still names its line.
const TRAVELLING: &[(&str, &str)] =
    &[("tharsis-cli", "driver"), ("tharsis-cluster-tests", "cluster"), ("tharsis-frame-examples", "frames")];

/// Has the linker give a program its addresses: the loader would write a million of them at each start of one
/// with DataFusion inside, which takes most of the 15 ms of that start, and tests start thousands of nodes
/// and workers.
const PLACED: &str = "-Clink-arg=-no-pie";

/// The program that lies elsewhere in each of its processes, as those of users do: an address that one
/// process hands to another leads nowhere in it.
const MOVED: (&str, &str) = ("tharsis-cluster-tests", "cluster");

/// Files that only a form has. Cargo does not know them, because reading a crate names no files to it; so the
/// compiler has another name, and every crate is read again, when one changes. A test compares the list with
/// the tree.
pub const FORM_FILES: &[&str] = &[
    "cli/src/commands/eval_absent.rs",
    "cli/src/frames/absent.rs",
    "gcs/src/no_journal.rs",
    "kernels/src/not_built.rs",
    "numeric/tests/numeric/without_dense.rs",
];

/// Packages that clippy does not read: another one has the same source.
const UNREAD: &[&str] = &["tharsis-object-store-models"];

/// Whether this program was called as a compiler.
pub fn is_called() -> bool {
    let name = std::env::args_os().next();
    let name = name.as_deref().map(Path::new).and_then(Path::file_name).unwrap_or_default();
    name.as_bytes().starts_with(NAME.as_bytes())
}

/// The compiler: reads the forms of the crate that cargo names, then compiles it.
pub fn run() -> ExitCode {
    match compile() {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {NAME}: {error}");
            ExitCode::FAILURE
        }
    }
}

fn compile() -> io::Result<ExitCode> {
    let variable = |name: &str| std::env::var(name).unwrap_or_default();
    let (package, name) = (variable("CARGO_PKG_NAME"), variable("CARGO_CRATE_NAME"));
    let words: Vec<OsString> = std::env::args_os().skip(1).collect();
    let clippy = std::env::var_os(CLIPPY)
        .ok_or_else(|| io::Error::other(format!("the variable {CLIPPY} is not set")))?;
    let is_unsafe = UNSAFE.contains(&(&*package, &*name));
    for read in readings(&package, &name, is_test(&words)) {
        let scratch = Scratch::make()?;
        let status = Command::new(&clippy).args(reading(expanded(&words)?, &read, &scratch.0)).status()?;
        if !status.success() {
            return code(status);
        }
    }
    let mut compiler = if is_unsafe {
        let mut words = words.iter();
        let mut rustc = Command::new(words.next().ok_or_else(|| io::Error::other("called without rustc"))?);
        rustc.args(words).args(["-D", "warnings"]);
        rustc
    } else {
        let mut clippy = Command::new(clippy);
        clippy.args(&words);
        clippy
    };
    let words = expanded(&words)?;
    if cfg!(target_os = "linux") && is_program(&words) {
        compiler.arg(COMPRESSED);
        if is_placed(&package, &name) {
            compiler.arg(PLACED);
        }
        if is_stripped(&package, &name, &words) {
            compiler.arg(STRIPPED);
        }
    }
    if is_unsafe {
        // It comes back only if it cannot be started.
        return Err(compiler.exec());
    }
    let status = compiler.status()?;
    if status.success() {
        dep_info::leave_out_settings(&words)?;
    }
    code(status)
}

/// The code with which a compiler has ended.
fn code(status: ExitStatus) -> io::Result<ExitCode> {
    let ended = || io::Error::other(format!("the compiler has ended: {status}"));
    Ok(u8::try_from(status.code().ok_or_else(ended)?).map_or(ExitCode::FAILURE, ExitCode::from))
}

/// The readings of a crate before it is compiled, each without features and crates.
fn readings(package: &str, name: &str, is_test: bool) -> Vec<Reading> {
    let forms = FORMS.iter().filter(|form| form.package == package && form.name == name);
    let forms = forms.filter(|form| form.has_tests || !is_test);
    let mut found: Vec<_> =
        forms.map(|form| Reading { features: form.features, crates: form.crates }).collect();
    if UNSAFE.contains(&(package, name)) && !UNREAD.contains(&package) {
        found.push(Reading { features: &[], crates: &[] });
    }
    found
}

#[derive(Debug, PartialEq, Eq)]
struct Reading {
    features: &'static [&'static str],
    crates: &'static [&'static str],
}

/// Whether the linker gives a program its addresses.
fn is_placed(package: &str, name: &str) -> bool {
    (package, name) != MOVED
}

/// Whether a program is linked without its symbols.
fn is_stripped(package: &str, name: &str, words: &[OsString]) -> bool {
    let is_plain = PLAIN.contains(&(package, name)) || is_example(words);
    TRAVELLING.contains(&(package, name)) || (is_plain && !is_test(words))
}

fn is_test(words: &[OsString]) -> bool {
    words.iter().any(|word| word == "--test")
}

/// Whether the words of rustc, without files that stand for some, make a program.
fn is_program(words: &[OsString]) -> bool {
    let mut pairs = words.iter().zip(words.iter().skip(1));
    is_test(words) || pairs.any(|(option, value)| option == "--crate-type" && value == "bin")
}

/// Whether the words of rustc make an example: cargo has a folder for these.
fn is_example(words: &[OsString]) -> bool {
    let mut words = words.iter();
    let folder = words.find_map(|word| match split(word) {
        Some(("--out-dir", value)) => Some(value.map(OsStr::to_owned)),
        _ => None,
    });
    // Without a value in the same word it is the next one.
    let folder = folder.and_then(|value| value.or_else(|| words.next().cloned()));
    folder.is_some_and(|folder| Path::new(&folder).file_name() == Some(OsStr::new("examples")))
}

/// The words with those of files that stand for them (`@FILE`, a word a line).
fn expanded(words: &[OsString]) -> io::Result<Vec<OsString>> {
    let mut found = Vec::new();
    for word in words {
        match word.as_bytes().strip_prefix(b"@") {
            Some(file) => {
                found.extend(fs::read_to_string(OsStr::from_bytes(file))?.lines().map(OsString::from));
            }
            None => found.push(word.clone()),
        }
    }
    Ok(found)
}

/// The words of rustc to read a crate as it is without features and the crates that they bring in. Nothing of
/// it reaches cargo but its complaints: no files, and no word that the metadata is there.
fn reading(words: Vec<OsString>, read: &Reading, scratch: &Path) -> Vec<OsString> {
    let mut found = Vec::new();
    let mut words = words.into_iter();
    while let Some(word) = words.next() {
        let (option, value) = match split(&word) {
            Some((option, Some(value))) => (option, value.to_owned()),
            // The value is the next word.
            Some((option, None)) => match words.next() {
                Some(value) => (option, value),
                None => break,
            },
            None => {
                found.push(word);
                continue;
            }
        };
        let text = value.to_string_lossy();
        match option {
            "--cfg" if feature(&text).is_some_and(|feature| read.features.contains(&feature)) => {}
            "--extern" if read.crates.contains(&external(&text)) => {}
            "-C" if text.starts_with("incremental=") => {}
            "--out-dir" => found.extend([OsString::from(option), scratch.into()]),
            "--emit" => found.push(OsString::from("--emit=metadata")),
            "--json" => {
                let kept: Vec<&str> = text.split(',').filter(|kind| *kind != "artifacts").collect();
                found.push(OsString::from(format!("--json={}", kept.join(","))));
            }
            _ => found.extend([OsString::from(option), value]),
        }
    }
    found
}

/// One of the options that are looked at, and its value if that is in the same word.
fn split(word: &OsStr) -> Option<(&'static str, Option<&OsStr>)> {
    let bytes = word.as_bytes();
    let of = |option: &'static str| {
        let rest = bytes.strip_prefix(option.as_bytes())?;
        match rest {
            [] => Some((option, None)),
            [b'=', value @ ..] if option.starts_with("--") => Some((option, Some(OsStr::from_bytes(value)))),
            value if !option.starts_with("--") => Some((option, Some(OsStr::from_bytes(value)))),
            _ => None,
        }
    };
    ["--cfg", "--extern", "--out-dir", "--emit", "--json", "-C"].into_iter().find_map(of)
}

/// The feature of `feature="NAME"`.
fn feature(condition: &str) -> Option<&str> {
    condition.strip_prefix("feature=\"")?.strip_suffix('"')
}

/// The crate of `NAME=PATH`, `NAME` or `priv:NAME=PATH`.
fn external(value: &str) -> &str {
    let named = value.split('=').next().unwrap_or(value);
    named.rsplit(':').next().unwrap_or(named)
}

/// A folder that goes with it. A compiler that is killed leaves it; then the runner removes it.
struct Scratch(PathBuf);

impl Scratch {
    fn make() -> io::Result<Self> {
        let program = std::env::current_exe()?;
        let folder = program.parent().unwrap_or(Path::new("."));
        let folder = folder.join(SCRATCH).join(std::process::id().to_string());
        if folder.exists() {
            // Of a process with the same id that was killed.
            fs::remove_dir_all(&folder)?;
        }
        fs::create_dir_all(&folder)?;
        Ok(Self(folder))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _gone = fs::remove_dir_all(&self.0);
    }
}

/// Puts the compiler into a target folder, and removes older ones and what they left.
///
/// # Errors
///
/// If a rule cannot be read or the folder not written.
pub fn install(root: &Path, target: &Path, folders: &[&str]) -> Result<PathBuf> {
    let name = format!("{NAME}-{:016x}", rules(root, folders)?);
    let entries = fs::read_dir(target).with_context(|| format!("cannot read {}", target.display()))?;
    for entry in entries {
        let entry = entry?;
        let is_old = entry.file_name().as_bytes().starts_with(NAME.as_bytes()) && *entry.file_name() != *name;
        if is_old {
            fs::remove_file(entry.path())
                .with_context(|| format!("cannot remove {}", entry.path().display()))?;
        }
    }
    let scratch = target.join(SCRATCH);
    if scratch.exists() {
        fs::remove_dir_all(&scratch).with_context(|| format!("cannot empty {}", scratch.display()))?;
    }
    let path = target.join(name);
    // Another name first: a program that is half written must not be found.
    let new = target.join(format!("{NAME}.new"));
    fs::copy("/proc/self/exe", &new)
        .and_then(|_| fs::rename(&new, &path))
        .with_context(|| format!("cannot write {}", path.display()))?;
    Ok(path)
}

/// A hash of what decides about complaints: this file, clippy's settings of the workspace and of each
/// package, the files that only a form has, and the table of lints.
fn rules(root: &Path, folders: &[&str]) -> Result<u64> {
    let mut hasher = DefaultHasher::new();
    // Without its tests, which decide nothing.
    include_str!("lint.rs").split(concat!("#[cfg", "(test)]")).next().hash(&mut hasher);
    // Clippy looks in the folders above, too.
    let folders = folders.iter().flat_map(|folder| Path::new(*folder).ancestors());
    for folder in folders.chain([Path::new("")]).collect::<BTreeSet<_>>() {
        for path in ["clippy.toml", ".clippy.toml"].map(|name| root.join(folder).join(name)) {
            match fs::read_to_string(&path) {
                Ok(settings) => (folder, settings).hash(&mut hasher),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error).with_context(|| format!("cannot read {}", path.display())),
            }
        }
    }
    for file in FORM_FILES {
        match fs::read_to_string(root.join(file)) {
            Ok(text) => (file, text).hash(&mut hasher),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error).with_context(|| format!("cannot read {file}")),
        }
    }
    let manifest = fs::read_to_string(root.join("Cargo.toml")).context("cannot read Cargo.toml")?;
    lint_tables(&manifest).hash(&mut hasher);
    Ok(hasher.finish())
}

/// The tables `workspace.lints` of a manifest, without comments.
fn lint_tables(manifest: &str) -> String {
    let mut is_in = false;
    let is_meant = |line: &&str| {
        if line.starts_with('[') {
            is_in = line.starts_with("[workspace.lints");
        }
        is_in && !line.trim().is_empty() && !line.starts_with('#')
    };
    manifest.lines().filter(is_meant).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests;
