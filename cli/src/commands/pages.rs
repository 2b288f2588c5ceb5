//! `tharsis completions`, `tharsis man`: texts about the command for other programs.

use crate::args;
use crate::output;
use anyhow::{Context, Result};
use clap::Command;
use clap_complete::Shell;
use std::path::Path;

const NAME: &str = "tharsis";

/// Prints the script by which a shell completes commands and flags.
///
/// # Errors
/// If it cannot be written.
pub fn completions(shell: Shell) -> Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut shown(), NAME, &mut script);
    output::bytes(&script)
}

/// The command line without what is hidden, which scripts would offer all the same.
fn shown() -> Command {
    let whole = args::command();
    let commands = whole.get_subcommands().filter(|below| !below.is_hide_set()).cloned();
    Command::new(NAME).version("").args(whole.get_arguments().cloned()).subcommands(commands)
}

/// Writes a manual page for each command.
///
/// # Errors
/// If the folder cannot be written to.
pub fn manual(folder: &Path) -> Result<()> {
    let name = || folder.display().to_string();
    std::fs::create_dir_all(folder).with_context(name)?;
    clap_mangen::generate_to(args::command(), folder).with_context(name)
}
