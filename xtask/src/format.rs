//! `cargo xtask fmt`: the format of all code, by rustfmt, and the width of its comments.

use crate::{cargo, comments, root, sources};
use anyhow::{Context, bail};
use std::fs;

/// Formats all code, or with `check` only fails if some is not formatted.
pub fn run(check: bool) -> anyhow::Result<()> {
    let mut command = cargo();
    command.args(["fmt", "--all"]).current_dir(root());
    if check {
        command.arg("--check");
    }
    let is_formatted = command.status().context("cannot start cargo fmt")?.success();
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
