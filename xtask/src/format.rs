//! `cargo xtask fmt`: the format of all code, by rustfmt, and the width of its comments.

use crate::{ELSEWHERE, cargo, comments, root, sources};
use anyhow::{Context, bail};
use std::fs;
use std::process::Command;

/// Formats all code, or with `check` only fails if some is not formatted.
pub fn run(check: bool) -> anyhow::Result<()> {
    let mut is_formatted = true;
    for mut command in commands(check) {
        is_formatted &= command.status().context("cannot start cargo fmt")?.success();
    }
    let mut wide = Vec::new();
    for (path, text) in sources(&root())? {
        let wanted = comments::rewrap(&text, comments::WIDTH);
        if wanted == text {
            continue;
        }
        if check {
            let line =
                text.lines().zip(wanted.lines()).take_while(|(found, wanted)| found == wanted).count() + 1;
            wide.push(format!("{}:{line}", path.display()));
        } else {
            fs::write(&path, wanted).with_context(|| format!("cannot write {}", path.display()))?;
        }
    }
    if !wide.is_empty() {
        bail!(
            "comments over {} characters; `cargo xtask fmt` breaks them:\n{}",
            comments::WIDTH,
            wide.join("\n")
        );
    }
    if !is_formatted {
        bail!("not formatted; `cargo xtask fmt` formats it");
    }
    Ok(())
}

/// The commands that format the workspace and the packages that are no members of it.
fn commands(check: bool) -> Vec<Command> {
    let command = |words: &[&str]| {
        let mut command = cargo();
        command.arg("fmt").args(words).args(check.then_some("--check")).current_dir(root());
        command
    };
    let elsewhere = ELSEWHERE.map(|folder| command(&["--manifest-path", &format!("{folder}/Cargo.toml")]));
    [command(&["--all"])].into_iter().chain(elsewhere).collect()
}

#[cfg(test)]
mod tests {
    use super::{ELSEWHERE, commands};
    use std::process::Command;

    #[test]
    fn packages_that_are_no_members_are_formatted_too() {
        let words = |command: &Command| -> Vec<String> {
            command.get_args().map(|word| word.to_string_lossy().into_owned()).collect()
        };
        let found: Vec<_> = commands(true).iter().map(words).collect();
        assert_eq!(found[0], ["fmt", "--all", "--check"]);
        for folder in ELSEWHERE {
            let manifest = format!("{folder}/Cargo.toml");
            let wanted = ["fmt", "--manifest-path", &manifest, "--check"].map(str::to_owned);
            assert!(found.contains(&wanted.to_vec()), "{folder}");
        }
        assert!(commands(false).iter().all(|command| !words(command).contains(&"--check".to_owned())));
    }
}
