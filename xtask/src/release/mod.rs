//! `cargo xtask release FOLDER`: the files of a release for the machine that it runs on.
//!
//! For each form of the command: an archive with the stripped program, its licence and the notices of what it
//! is made of (`notices`), and a list of these parts for whoever looks for a weakness in one (`sbom`), of
//! what cargo builds it of (`contents`). `SHA256SUMS` has the sums of all. The same commit, compiler and
//! folder give the same lists.

mod contents;
mod notices;
mod sbom;

pub use contents::{Contents, Id, Part, checksums, parts};
pub use sbom::document;

use crate::cargo;
use anyhow::{Context, Result, bail};
use notices::Notice;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The package of the command.
pub const PACKAGE: &str = "tharsis-cli";

/// The name of the command.
pub const PROGRAM: &str = "tharsis";

/// File with the sums of the others.
pub const SUMS: &str = "SHA256SUMS";

/// CPUs that a release has programs for: by Rust's names, and by those of images.
pub const CPUS: [(&str, &str); 2] = [("x86_64", "amd64"), ("aarch64", "arm64")];

/// Files of the root that each archive has, beside the program.
pub const BESIDE: [&str; 3] = ["CHANGELOG.md", "LICENSE", "README.md"];

/// File of an archive with the notices of the program's parts.
const NOTICES: &str = "THIRD-PARTY-NOTICES";

/// Time of the files of an archive while the changelog has no day of the release.
const NO_DAY: &str = "1980-01-01";

/// A form of the command that is released.
pub struct Form {
    /// Beginning of the names of its files.
    pub name: &'static str,
    /// Words for cargo that select it.
    pub words: &'static [&'static str],
}

/// The forms: with all that the command can, and without frames, SQL and tensors, for nodes.
pub const FORMS: [Form; 2] =
    [Form { name: "tharsis", words: &[] }, Form { name: "tharsis-node", words: &["--no-default-features"] }];

/// The arguments of the command line.
#[derive(clap::Args, Clone, Debug, Default)]
pub struct Options {
    /// Folder for the files, which is made if it is not there
    folder: PathBuf,
    /// Fail before the build unless this is the tag of the version, and the changelog has the day of the
    /// release
    #[arg(long)]
    tag: Option<String>,
}

/// Builds the files of a release.
///
/// # Errors
/// If the release is not ready, its machine has no releases, or a command fails.
pub fn run(root: &Path, options: &Options) -> Result<()> {
    let about = metadata(root)?;
    if let Some(tag) = &options.tag {
        check(root, &about, tag)?;
    }
    let cpu = std::env::consts::ARCH;
    if !CPUS.iter().any(|(name, _)| *name == cpu) {
        bail!("there are no releases for {cpu}");
    }
    let version = version(&about)?;
    let changelog = read(&root.join("CHANGELOG.md"))?;
    let day = released(&changelog, version).unwrap_or(NO_DAY);
    let target = format!("{cpu}-unknown-linux-gnu");
    let built = about["target_directory"].as_str().context("cargo metadata has no target folder")?;
    let program = Path::new(built).join(&target).join("release").join(PROGRAM);
    let compiler = output(Command::new("rustc").arg("--version"))?;
    fs::create_dir_all(&options.folder)
        .with_context(|| format!("cannot make {}", options.folder.display()))?;
    let mut names = Vec::new();
    for form in &FORMS {
        finish(cargo().args(build_words(form, &target)).current_dir(root))?;
        let contents = contents(root, form, &target)?;
        let stem = stem(form.name, version, cpu);
        let staged = options.folder.join(&stem);
        stage(root, &program, &staged, version)?;
        write(&staged.join(NOTICES), &notices::text(&own_notices(root, &contents)?))?;
        finish(Command::new("tar").args(pack_words(&stem, day)).current_dir(&options.folder))?;
        fs::remove_dir_all(&staged).with_context(|| format!("cannot remove {}", staged.display()))?;
        let list = list(&stem);
        write(&options.folder.join(&list), &sbom::text(&document(&contents, release_of(&compiler))?)?)?;
        names.extend([archive(&stem), list]);
    }
    let sums = output(Command::new("sha256sum").args(&names).current_dir(&options.folder))?;
    write(&options.folder.join(SUMS), &sums)
}

/// Fails unless a tag is that of the version, and the changelog has the day of its release.
///
/// # Errors
/// If it is not so, or the changelog cannot be read.
pub fn check(root: &Path, about: &Value, tag: &str) -> Result<()> {
    let changelog = read(&root.join("CHANGELOG.md"))?;
    match unready(tag, version(about)?, &changelog) {
        Some(problem) => bail!(problem),
        None => Ok(()),
    }
}

/// Cargo's metadata about the members of the workspace.
///
/// # Errors
/// If cargo fails.
pub fn metadata(root: &Path) -> Result<Value> {
    let words = ["metadata", "--no-deps", "--format-version", "1"];
    let text = output(cargo().args(words).current_dir(root))?;
    serde_json::from_str(&text).context("cargo metadata wrote no JSON")
}

/// The packages that a form of the command is made of for a target, as cargo knows them.
///
/// # Errors
/// If cargo fails, or says what is not known here.
pub fn contents(root: &Path, form: &Form, target: &str) -> Result<Contents> {
    let tree = output(cargo().args(tree_words(form, target)).current_dir(root))?;
    let (program, parts) = parts(&tree)?;
    let sums = checksums(&read(&root.join("Cargo.lock"))?);
    Ok(Contents { program, parts, sums, form: form.name.to_owned(), target: target.to_owned() })
}

/// The day on which a changelog says that a version was released: `## 0.1.0 - 2026-12-01`.
pub fn released<'a>(changelog: &'a str, version: &str) -> Option<&'a str> {
    changelog.lines().find_map(|line| {
        let day = line.strip_prefix("## ")?.strip_prefix(version)?.strip_prefix(" - ")?;
        is_day(day).then_some(day)
    })
}

/// The name of the files of a form for a CPU, without their endings.
pub fn stem(form: &str, version: &str, cpu: &str) -> String {
    format!("{form}-{version}-{cpu}-linux")
}

/// The archive of a name.
pub fn archive(stem: &str) -> String {
    format!("{stem}.tar.gz")
}

/// The list of parts of a name: JSON of CycloneDX, by the ending that its readers look for.
fn list(stem: &str) -> String {
    format!("{stem}.cdx.json")
}

/// The reason why the release of a tag is not ready.
fn unready(tag: &str, version: &str, changelog: &str) -> Option<String> {
    if tag.strip_prefix('v') != Some(version) {
        return Some(format!("the tag {tag} is not that of the version in Cargo.toml, v{version}"));
    }
    let is_told = released(changelog, version).is_some();
    (!is_told).then(|| format!("CHANGELOG.md has no heading `## {version} - YEAR-MONTH-DAY`"))
}

fn is_day(text: &str) -> bool {
    let is_like =
        |(letter, like): (char, char)| if like == '-' { letter == '-' } else { letter.is_ascii_digit() };
    text.len() == 10 && text.chars().zip("0000-00-00".chars()).all(is_like)
}

/// Words for cargo that build a form. The target decides about the folder, which settings of the user would
/// otherwise do.
fn build_words<'a>(form: &Form, target: &'a str) -> Vec<&'a str> {
    let words =
        ["build", "--release", "--locked", "--package", PACKAGE, "--bin", PROGRAM, "--target", target];
    words.into_iter().chain(form.words.iter().copied()).collect()
}

/// Words for cargo that list what a form is made of: no packages that only run while it is built.
fn tree_words<'a>(form: &Form, target: &'a str) -> Vec<&'a str> {
    let selection = ["tree", "--locked", "--package", PACKAGE, "--target", target];
    let words = ["--edges", "normal,no-proc-macro", "--prefix", "depth", "--format", contents::FORMAT];
    selection.into_iter().chain(words).chain(form.words.iter().copied()).collect()
}

/// Words for tar that pack a folder: the same bytes for the same files.
fn pack_words(stem: &str, day: &str) -> Vec<String> {
    let words =
        ["--create", "--sort=name", "--owner=0", "--group=0", "--numeric-owner", "--mode=u+rw,go=u-w"];
    let words = words.into_iter().map(str::to_owned);
    let time = format!("--mtime={day} 00:00:00Z");
    // Gzip's own time and name of the file are left out.
    let pressed = "--use-compress-program=gzip --no-name --best".to_owned();
    words.chain([time, pressed, "--file".to_owned(), archive(stem), stem.to_owned()]).collect()
}

/// The release of a compiler that says `rustc 1.95.0 (..)`.
fn release_of(compiler: &str) -> &str {
    compiler.split_whitespace().nth(1).unwrap_or("unknown")
}

/// The version of the command.
fn version(about: &Value) -> Result<&str> {
    let mut packages = about["packages"].as_array().into_iter().flatten();
    let package = packages.find(|package| package["name"] == PACKAGE);
    package.and_then(|package| package["version"].as_str()).with_context(|| format!("no package {PACKAGE}"))
}

/// Puts what an archive has into its folder, and asks the program there for its version.
fn stage(root: &Path, program: &Path, staged: &Path, version: &str) -> Result<()> {
    // One that an earlier run left may have other files, too.
    fs::create_dir(staged).with_context(|| format!("cannot make {}", staged.display()))?;
    for name in BESIDE {
        fs::copy(root.join(name), staged.join(name)).with_context(|| format!("cannot copy {name}"))?;
    }
    let stripped = fs::canonicalize(staged).context("the folder is gone")?.join(PROGRAM);
    finish(Command::new("strip").arg(program).arg("-o").arg(&stripped))?;
    let told = output(Command::new(&stripped).arg("version"))?;
    if !told.starts_with(&format!("{PROGRAM} {version},")) {
        bail!("the program of version {version} says that it is {}", told.trim());
    }
    Ok(())
}

/// The notices of the packages of others that a program is made of, from their folders.
fn own_notices(root: &Path, contents: &Contents) -> Result<Vec<Notice>> {
    let words = ["metadata", "--locked", "--format-version", "1", "--filter-platform", &contents.target];
    let text = output(cargo().args(words).current_dir(root))?;
    let about: Value = serde_json::from_str(&text).context("cargo metadata wrote no JSON")?;
    let mut found = Vec::new();
    for package in about["packages"].as_array().into_iter().flatten() {
        let text = |field: &str| package[field].as_str().unwrap_or_default().to_owned();
        let id = Id { name: text("name"), version: text("version") };
        let Some(part) = contents.parts.get(&id).filter(|part| !part.is_ours) else { continue };
        let manifest = text("manifest_path");
        let folder = Path::new(&manifest).parent().context("a package has no folder")?;
        found.push(Notice { id, license: part.license.clone().unwrap_or_default(), texts: texts(folder)? });
    }
    Ok(found)
}

/// The texts of a folder's files with licences and notices, by the names of the files.
fn texts(folder: &Path) -> Result<Vec<String>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))? {
        let path = entry?.path();
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
        if path.is_file() && name.is_some_and(|name| notices::is_notice(&name)) {
            files.push(path);
        }
    }
    files.sort();
    let text = |file: &PathBuf| -> Result<String> {
        let bytes = fs::read(file).with_context(|| format!("cannot read {}", file.display()))?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    };
    files.iter().map(text).collect()
}

fn read(file: &Path) -> Result<String> {
    fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))
}

fn write(file: &Path, text: &str) -> Result<()> {
    fs::write(file, text).with_context(|| format!("cannot write {}", file.display()))
}

/// Runs a command whose output is for the person who waits.
fn finish(command: &mut Command) -> Result<()> {
    let name = command.get_program().to_string_lossy().into_owned();
    let status = command.status().with_context(|| format!("cannot start {name}"))?;
    if !status.success() {
        bail!("{name} failed: {status}");
    }
    Ok(())
}

/// The output of a command.
fn output(command: &mut Command) -> Result<String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.output().with_context(|| format!("cannot start {name}"))?;
    if !output.status.success() {
        bail!("{name} failed: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    String::from_utf8(output.stdout).with_context(|| format!("{name} wrote no text"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHANGELOG: &str =
        "# Changelog\n\n## 0.2.0 - not released yet\n\n## 0.1.0 - 2026-12-01\n\n## 0.1.01\n";

    #[test]
    fn a_release_is_ready_with_its_tag_and_its_day() {
        assert_eq!(unready("v0.1.0", "0.1.0", CHANGELOG), None);
        for (tag, version) in [("0.1.0", "0.1.0"), ("v0.1.1", "0.1.0"), ("v0.1", "0.1.0")] {
            let problem = unready(tag, version, CHANGELOG).unwrap();
            assert!(problem.contains(tag) && problem.contains("v0.1.0"), "{problem}");
        }
        let problem = unready("v0.2.0", "0.2.0", CHANGELOG).unwrap();
        assert!(problem.contains("`## 0.2.0 - YEAR-MONTH-DAY`"), "{problem}");
        assert_eq!(released(CHANGELOG, "0.1.0"), Some("2026-12-01"));
        assert_eq!(released(CHANGELOG, "0.1"), None, "the beginning of another version");
        assert!(!is_day("2026-12-1") && !is_day("2026-12-011") && !is_day("2026x12-01"));
    }

    #[test]
    fn names_of_files_tell_the_form_the_version_and_the_cpu() {
        let stem = stem(FORMS[1].name, "0.1.0", "aarch64");
        assert_eq!(archive(&stem), "tharsis-node-0.1.0-aarch64-linux.tar.gz");
        assert_eq!(list(&stem), "tharsis-node-0.1.0-aarch64-linux.cdx.json");
    }

    #[test]
    fn commands_select_the_form() {
        let [all, node] = &FORMS;
        let select = "build --release --locked --package tharsis-cli --bin tharsis --target t";
        assert_eq!(build_words(all, "t").join(" "), select);
        assert_eq!(build_words(node, "t").join(" "), format!("{select} --no-default-features"));
        assert!(tree_words(node, "t").ends_with(&["--no-default-features"]));
        assert!(tree_words(all, "t").join(" ").contains("--target t --edges normal,no-proc-macro"));
    }

    #[test]
    fn an_archive_is_the_same_for_the_same_files() {
        let folder = tempfile::tempdir().unwrap();
        let pack = |wait: u64| {
            let staged = folder.path().join("a-linux");
            fs::create_dir_all(&staged).unwrap();
            for name in ["b", "a"] {
                let file = fs::File::create(staged.join(name)).unwrap();
                let time = std::time::UNIX_EPOCH + std::time::Duration::from_secs(wait);
                file.set_modified(time).unwrap();
            }
            finish(Command::new("tar").args(pack_words("a-linux", "2026-12-01")).current_dir(&folder))
                .unwrap();
            fs::remove_dir_all(&staged).unwrap();
            fs::read(folder.path().join("a-linux.tar.gz")).unwrap()
        };
        assert_eq!(pack(1), pack(1_000_000_000));
        let words = ["--list", "--verbose", "--utc", "--file", "a-linux.tar.gz"];
        let listed = output(Command::new("tar").args(words).current_dir(&folder)).unwrap();
        let names: Vec<&str> = listed.lines().filter_map(|line| line.split_whitespace().last()).collect();
        assert_eq!(names, ["a-linux/", "a-linux/a", "a-linux/b"]);
        assert!(listed.lines().all(|line| line.contains("0/0") && line.contains("2026-12-01 00:00")));
    }
}
