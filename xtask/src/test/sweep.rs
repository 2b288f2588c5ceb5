//! `--sweep`: removes from the target folder what no cargo command of this run has named, so that a folder
//! that outlives its clones does not keep every state of them.
//!
//! Cargo names each unit that it has compiled or found up to date, by the files of it, and each build
//! script's folder. The files of a unit have its hash in their names, and so have its folders in
//! `.fingerprint` and `build`. Programs are named by their second names without the hash, which are links to
//! the first ones.

use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs::{self, DirEntry};
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Folder in the target folder in which tests of a long run build the release before. See
/// `cli/tests/command/upgrade.rs`.
const FORMER: &str = "former";

/// The files that the commands of a run have named.
#[derive(Default)]
pub struct Named {
    files: BTreeSet<PathBuf>,
    /// Commands that have begun, and those that have told that they built all.
    commands: usize,
    finished: usize,
}

impl Named {
    /// Counts a command, whose messages follow.
    pub fn begin(&mut self) {
        self.commands += 1;
    }

    /// Keeps what a message of cargo names.
    pub fn hear(&mut self, message: &Value) {
        let path = |value: &Value| value.as_str().map(PathBuf::from);
        match message["reason"].as_str() {
            Some("compiler-artifact") => {
                let files = message["filenames"].as_array().into_iter().flatten();
                self.files.extend(files.filter_map(path));
                self.files.extend(path(&message["executable"]));
            }
            Some("build-script-executed") => self.files.extend(path(&message["out_dir"])),
            Some("build-finished") if message["success"] == true => self.finished += 1,
            _ => {}
        }
    }

    /// Removes the units of a profile's folder that nobody has named, and answers how many files and folders
    /// went.
    ///
    /// # Errors
    ///
    /// If a command has not told everything, or a file cannot be looked at or removed.
    pub fn sweep(&self, profile: &Path) -> Result<usize> {
        if self.commands == 0 || self.finished != self.commands {
            bail!("{} of {} cargo commands told what they built", self.finished, self.commands);
        }
        let listed = Listing::read(profile)?;
        let kept = self.hashes(&listed)?;
        let mut count = 0;
        for entry in listed.0 {
            if hash(&entry.path()).is_none_or(|hash| kept.contains(&hash)) {
                continue;
            }
            let path = entry.path();
            let gone = if path.is_dir() { fs::remove_dir_all(&path) } else { fs::remove_file(&path) };
            gone.with_context(|| format!("cannot remove {}", path.display()))?;
            count += 1;
        }
        Ok(count)
    }

    /// The hashes of the units that are named.
    fn hashes(&self, listed: &Listing) -> Result<BTreeSet<String>> {
        let mut found = BTreeSet::new();
        // Second names, by the file's number.
        let mut linked = BTreeSet::new();
        for file in &self.files {
            // The file itself or, of a build script, a folder above it.
            if let Some(hash) = file.ancestors().take(2).find_map(hash) {
                found.insert(hash);
            } else {
                let about = fs::metadata(file).with_context(|| format!("cannot find {}", file.display()))?;
                linked.insert((about.dev(), about.ino()));
            }
        }
        for entry in &listed.0 {
            let Some(hash) = hash(&entry.path()) else { continue };
            let about =
                entry.metadata().with_context(|| format!("cannot read {}", entry.path().display()))?;
            if linked.remove(&(about.dev(), about.ino())) {
                found.insert(hash);
            }
        }
        if !linked.is_empty() {
            bail!("{} files have no name with a hash: this file system has no links", linked.len());
        }
        Ok(found)
    }
}

/// Removes from a target folder what long runs alone need, and make again: another source for each commit.
///
/// # Errors
///
/// If it cannot be removed.
pub fn remove_of_long_runs(target: &Path) -> Result<()> {
    let former = target.join(FORMER);
    match fs::remove_dir_all(&former) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(error).with_context(|| format!("cannot remove {}", former.display()))
        }
        _ => Ok(()),
    }
}

/// The bytes of all files in a folder, each once, whatever names it has.
///
/// # Errors
///
/// If a folder cannot be read.
pub fn bytes(folder: &Path) -> Result<u64> {
    let (mut sum, mut seen, mut ahead) = (0, BTreeSet::new(), vec![folder.to_owned()]);
    while let Some(at) = ahead.pop() {
        for entry in fs::read_dir(&at).with_context(|| format!("cannot read {}", at.display()))? {
            let entry = entry?;
            let about = entry.metadata()?;
            if about.is_dir() {
                ahead.push(entry.path());
            } else if seen.insert((about.dev(), about.ino())) {
                sum += about.len();
            }
        }
    }
    Ok(sum)
}

/// The files and folders of a profile with a hash in each name.
struct Listing(Vec<DirEntry>);

impl Listing {
    fn read(profile: &Path) -> Result<Self> {
        let mut found = Vec::new();
        for folder in [".fingerprint", "build", "deps", "examples"] {
            let folder = profile.join(folder);
            if folder.is_dir() {
                let entries = fs::read_dir(&folder).and_then(Iterator::collect::<std::io::Result<Vec<_>>>);
                found.extend(entries.with_context(|| format!("cannot read {}", folder.display()))?);
            }
        }
        Ok(Self(found))
    }
}

/// The hash in the name of a unit's file or folder: `NAME-HASH`, perhaps with endings.
fn hash(path: &Path) -> Option<String> {
    let name = path.file_name()?.to_str()?;
    let (_, last) = name.rsplit_once('-')?;
    let hash = last.split('.').next()?;
    let is_hash = hash.len() == 16 && hash.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_hash.then(|| hash.to_owned())
}

#[cfg(test)]
mod tests {
    use super::{FORMER, Named, bytes, hash, remove_of_long_runs};
    use serde_json::json;
    use std::collections::BTreeSet;
    use std::fs;
    use std::path::Path;

    const OLD: &str = "00000000000000aa";
    const NEW: &str = "00000000000000bb";

    /// A folder with two states of a library, a program, an example and a build script.
    fn profile() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        let write = |path: String| {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, "").unwrap();
        };
        for state in [OLD, NEW] {
            for file in
                ["deps/liba-@.rlib", "deps/liba-@.rmeta", "deps/a-@.d", "deps/say-@", "deps/say-@.1x.rcgu.o"]
            {
                write(file.replace('@', state));
            }
            for file in ["examples/b_c-@", ".fingerprint/a-@/lib-a", "build/a-@/out/x", "build/a-@/output"] {
                write(file.replace('@', state));
            }
        }
        write("deps/without_a_hash".to_owned());
        // File systems list names in the order in which they came, or in another one: of an example, which
        // has both names in one folder, the second may come first.
        for (first, second) in [("deps/say", "say"), ("examples/b_c", "examples/b_c")] {
            fs::hard_link(folder.path().join(format!("{first}-{NEW}")), folder.path().join(second)).unwrap();
        }
        let second = "examples/a_d";
        write(second.to_owned());
        fs::hard_link(folder.path().join(second), folder.path().join(format!("{second}-{NEW}"))).unwrap();
        folder
    }

    fn left(folder: &Path) -> BTreeSet<String> {
        let mut found = BTreeSet::new();
        let mut ahead = vec![folder.to_owned()];
        while let Some(at) = ahead.pop() {
            for entry in fs::read_dir(&at).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    ahead.push(path);
                } else {
                    found.insert(path.strip_prefix(folder).unwrap().display().to_string());
                }
            }
        }
        found
    }

    /// The messages about a library and its build script, and a program and an example of the new state.
    fn named(folder: &Path) -> Named {
        let file = |name: &str| folder.join(name.replace('@', NEW)).display().to_string();
        let mut named = Named::default();
        named.begin();
        named.hear(&json!({"reason": "compiler-artifact", "filenames": [file("deps/liba-@.rlib")]}));
        named.hear(&json!({"reason": "build-script-executed", "out_dir": file("build/a-@/out")}));
        named.hear(
            &json!({"reason": "compiler-artifact", "filenames": [file("say")], "executable": file("say")}),
        );
        named.hear(&json!({"reason": "compiler-artifact", "filenames": [file("examples/b_c")]}));
        named.hear(&json!({"reason": "compiler-artifact", "filenames": [file("examples/a_d")]}));
        named
    }

    #[test]
    fn what_is_not_named_goes() {
        let folder = profile();
        let before = left(folder.path());
        let mut named = named(folder.path());
        named.hear(&json!({"reason": "build-finished", "success": true}));
        assert_eq!(named.sweep(folder.path()).unwrap(), 8);
        let wanted = before.into_iter().filter(|file| !file.contains(OLD)).collect();
        assert_eq!(left(folder.path()), wanted);
    }

    #[test]
    fn nothing_goes_if_a_command_has_not_told_everything() {
        let folder = profile();
        let before = left(folder.path());
        let mut unfinished = named(folder.path());
        assert!(unfinished.sweep(folder.path()).is_err(), "it broke off");
        unfinished.hear(&json!({"reason": "build-finished", "success": false}));
        assert!(unfinished.sweep(folder.path()).is_err(), "it failed");
        unfinished.hear(&json!({"reason": "build-finished", "success": true}));
        unfinished.begin();
        assert!(unfinished.sweep(folder.path()).is_err(), "a second one broke off");
        assert!(Named::default().sweep(folder.path()).is_err(), "there was none");
        let mut copied = named(folder.path());
        copied.hear(&json!({"reason": "build-finished", "success": true}));
        fs::remove_file(folder.path().join("say")).unwrap();
        assert!(copied.sweep(folder.path()).is_err(), "a name that is gone");
        fs::write(folder.path().join("say"), "").unwrap();
        assert!(copied.sweep(folder.path()).is_err(), "a copy");
        assert_eq!(left(folder.path()), before);
    }

    #[test]
    fn the_release_before_goes_with_what_is_not_named() {
        let target = tempfile::tempdir().unwrap();
        fs::create_dir_all(target.path().join(FORMER).join("target/debug")).unwrap();
        fs::write(target.path().join("kept"), "").unwrap();
        for _ in 0..2 {
            remove_of_long_runs(target.path()).unwrap();
            assert_eq!(left(target.path()), BTreeSet::from(["kept".to_owned()]));
            assert!(!target.path().join(FORMER).exists());
        }
        let test = fs::read_to_string(crate::root().join("cli/tests/command/upgrade.rs")).unwrap();
        assert!(test.contains(&format!(".join(\"{FORMER}\")")), "it builds elsewhere");
    }

    #[test]
    fn a_file_with_two_names_counts_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        fs::create_dir_all(path("a/b")).unwrap();
        fs::write(path("one"), "1234").unwrap();
        fs::write(path("a/b/two"), "123").unwrap();
        fs::hard_link(path("one"), path("a/second")).unwrap();
        // A link counts as itself.
        std::os::unix::fs::symlink(path("one"), path("link")).unwrap();
        let of_link = fs::symlink_metadata(path("link")).unwrap().len();
        assert_eq!(bytes(folder.path()).unwrap(), 4 + 3 + of_link);
    }

    #[test]
    fn a_hash_is_the_last_part_of_a_name() {
        let of = |name: &str| hash(Path::new(name));
        for name in
            ["a-0123456789abcdef", "deps/liba_b-0123456789abcdef.rlib", "a-b-0123456789abcdef.1x.rcgu.o"]
        {
            assert_eq!(of(name).as_deref(), Some("0123456789abcdef"), "{name}");
        }
        for name in ["a", "a-1", "a-0123456789abcdeg", "0123456789abcdef", "a-0123456789abcdef0"] {
            assert_eq!(of(name), None, "{name}");
        }
    }

    /// Builds a workspace, and answers what cargo named, and whether it compiled something.
    fn built(root: &Path, target: &Path, opt_level: &str) -> (Named, bool) {
        let mut cargo = crate::cargo();
        cargo.args(["test", "--no-run", "--offline", "--message-format=json-render-diagnostics"]);
        cargo.current_dir(root).env("CARGO_TARGET_DIR", target).env("CARGO_PROFILE_DEV_OPT_LEVEL", opt_level);
        // As `.ci/run` has it.
        cargo.env("CARGO_INCREMENTAL", "0");
        let output = cargo.env_remove("RUSTC_WORKSPACE_WRAPPER").output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let mut named = Named::default();
        named.begin();
        let said = String::from_utf8(output.stdout).unwrap();
        let messages: Vec<serde_json::Value> =
            said.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        messages.iter().for_each(|message| named.hear(message));
        (named, messages.iter().any(|message| message["fresh"] == false))
    }

    #[test]
    fn cargo_names_all_that_it_needs() {
        let (root, target) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let write = |path: &str, text: &str| {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        let package = |name: &str| format!("[package]\nname = \"{name}\"\nedition = \"2024\"\n");
        write("Cargo.toml", "[workspace]\nresolver = \"3\"\nmembers = [\"a-b\", \"c\"]\n");
        write("a-b/Cargo.toml", &package("a-b"));
        write("a-b/build.rs", "fn main() { println!(\"cargo::rustc-cfg=built\") }\n");
        write("a-b/src/lib.rs", "pub fn d() {}\n");
        write("c/Cargo.toml", &format!("{}[dependencies]\na-b = {{ path = \"../a-b\" }}\n", package("c")));
        for file in ["c/src/main.rs", "c/examples/e-f.rs"] {
            write(file, "fn main() { a_b::d() }\n");
        }
        write("c/tests/g.rs", "#[test]\nfn h() { a_b::d() }\n");
        let (old, _) = built(root.path(), target.path(), "0");
        let files = left(target.path());
        let (new, is_compiled) = built(root.path(), target.path(), "1");
        assert!(is_compiled, "another state");
        let both = left(target.path());
        assert!(new.sweep(&target.path().join("debug")).unwrap() > 0);
        let swept = left(target.path());
        assert!(swept.len() < both.len() && swept.len() <= files.len(), "{swept:#?}\n{files:#?}");
        assert!(!built(root.path(), target.path(), "1").1, "what is needed is there");
        assert!(built(root.path(), target.path(), "0").1 && old.commands == 1, "the old state is gone");
    }
}
