//! The file in which a compiler tells cargo what it has read (`--emit=dep-info`).
//!
//! Clippy's compiler names there the `Cargo.toml` of the folder in which it runs, and its own `clippy.toml`.
//! These lie outside of most packages, so cargo knows them by their whole paths: in a clone at another place,
//! with the same target folder, each crate would be compiled again, and so would each after an edit of a
//! comment in the manifest. Cargo asks itself for what matters in manifests, and `lint` has another compiler
//! for other settings of clippy.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::{fs, io};

/// Takes the files of settings out of what a compiler has told, which has ended well. Its words say where
/// that is, if it tells anything.
pub fn leave_out_settings(words: &[OsString]) -> io::Result<()> {
    let Some(file) = file(words).filter(|file| file.exists()) else { return Ok(()) };
    let text = fs::read_to_string(&file)?;
    fs::write(&file, without_settings(&text))
}

/// The path of the file, by the words of rustc.
fn file(words: &[OsString]) -> Option<PathBuf> {
    let words: Vec<&str> = words.iter().filter_map(|word| word.to_str()).collect();
    let after = |option: &str| {
        let at = words.iter().position(|word| *word == option)?;
        words.get(at + 1).copied()
    };
    let emitted = words.iter().find_map(|word| word.strip_prefix("--emit="))?;
    emitted.split(',').find(|kind| *kind == "dep-info")?;
    let extra = words.iter().find_map(|word| word.strip_prefix("extra-filename=")).unwrap_or_default();
    Some(Path::new(after("--out-dir")?).join(format!("{}{extra}.d", after("--crate-name")?)))
}

/// The text, in which a line has the name of what was made and the names of what was read for it, without
/// those of settings.
fn without_settings(text: &str) -> String {
    let mut kept = String::with_capacity(text.len());
    for line in text.lines() {
        match line.split_once(": ").filter(|_| !line.starts_with('#')) {
            Some((made, read)) => {
                let read: Vec<String> = names(read).into_iter().filter(|name| !is_setting(name)).collect();
                kept.push_str(&format!("{made}: {}\n", read.join(" ")));
            }
            None => kept.push_str(&format!("{line}\n")),
        }
    }
    kept
}

/// The names in a line. A blank in a name has a backslash before it.
fn names(line: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for word in line.split(' ') {
        match found.last_mut().filter(|name| name.ends_with('\\')) {
            Some(name) => {
                name.push(' ');
                name.push_str(word);
            }
            None => found.push(word.to_owned()),
        }
    }
    found
}

fn is_setting(name: &str) -> bool {
    name == "Cargo.toml" || name.ends_with("/clippy.toml") || name.ends_with("/.clippy.toml")
}

#[cfg(test)]
mod tests {
    use super::{file, leave_out_settings, without_settings};
    use std::ffi::OsString;
    use std::fs;
    use std::path::{Path, PathBuf};

    fn words(line: &str) -> Vec<OsString> {
        line.split(' ').map(OsString::from).collect()
    }

    #[test]
    fn the_file_has_the_name_of_the_crate_and_its_hash() {
        let told = "rustc --crate-name a_b a-b/src/lib.rs --emit=dep-info,metadata,link -C metadata=1 \
                    -C extra-filename=-1f --out-dir /t/debug/deps";
        assert_eq!(file(&words(told)), Some(PathBuf::from("/t/debug/deps/a_b-1f.d")));
        assert_eq!(file(&words(&told.replace("dep-info,", ""))), None);
        assert_eq!(file(&words("rustc -vV")), None, "cargo asks for the version");
    }

    #[test]
    fn files_of_settings_are_left_out_and_all_others_stay() {
        let text = "/t/a.d: a/src/lib.rs Cargo.toml a/Cargo.toml /w/my\\ tree/clippy.toml a/b\\ c.rs\n\n\
                    a/src/lib.rs:\nCargo.toml:\n\n# env-dep:CLIPPY_ARGS=-D: Cargo.toml\n";
        let wanted = text.replacen(" Cargo.toml", "", 1).replace(" /w/my\\ tree/clippy.toml", "");
        assert_eq!(without_settings(text), wanted);
        assert_eq!(without_settings("/t/a.d: Cargo.toml\n"), "/t/a.d: \n");
    }

    #[test]
    fn a_compiler_that_has_told_nothing_is_none_that_failed() {
        let folder = tempfile::tempdir().unwrap();
        let told = |folder: &Path| {
            words(&format!("rustc --crate-name a --emit=dep-info --out-dir {}", folder.display()))
        };
        leave_out_settings(&told(folder.path())).unwrap();
        fs::write(folder.path().join("a.d"), "a.d: a.rs Cargo.toml\n").unwrap();
        leave_out_settings(&told(folder.path())).unwrap();
        assert_eq!(fs::read_to_string(folder.path().join("a.d")).unwrap(), "a.d: a.rs\n");
    }
}
