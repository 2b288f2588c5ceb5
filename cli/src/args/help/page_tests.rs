//! The page of the documents that shows every command with its flags and examples.

use super::{EXAMPLES, GROUPS, command};
use crate::settings::key::Key;
use clap::{Arg, Command};
use std::fmt::Write as _;
use std::path::Path;

const BEGIN: &str =
    "<!-- commands: written by `UPDATE_PAGE=1 cargo test -p tharsis-cli --lib commands_page` -->\n";
const END: &str = "<!-- end of commands -->";

#[test]
fn the_commands_page_shows_every_command() {
    let page = Path::new(&std::env::var("CARGO_MANIFEST_DIR").unwrap()).join("../docs/commands.md");
    let text = std::fs::read_to_string(&page).unwrap();
    let (before, rest) = text.split_once(BEGIN).unwrap();
    let (found, after) = rest.split_once(END).unwrap();
    let wanted = commands();
    if std::env::var_os("UPDATE_PAGE").is_some() {
        std::fs::write(&page, format!("{before}{BEGIN}{wanted}{END}{after}")).unwrap();
    } else {
        assert_eq!(found, wanted, "run it with UPDATE_PAGE=1");
    }
}

/// All commands in their groups.
fn commands() -> String {
    let whole = command();
    let mut text = String::new();
    for (group, names) in GROUPS {
        writeln!(text, "\n## {group}").unwrap();
        for name in names {
            add(&mut text, name, whole.find_subcommand(name).unwrap());
        }
    }
    text + "\n"
}

/// A command and those below it.
fn add(text: &mut String, path: &str, command: &Command) {
    let args: Vec<&Arg> =
        command.get_arguments().filter(|arg| !arg.is_hide_set() && is_of_command(arg)).collect();
    writeln!(text, "\n### tharsis {path}\n").unwrap();
    writeln!(text, "{}", cell(&command.get_about().map(ToString::to_string).unwrap_or_default())).unwrap();
    if let Some((_, examples)) = EXAMPLES.iter().find(|(of, _)| *of == path) {
        writeln!(text, "\n```text").unwrap();
        for (words, does) in *examples {
            writeln!(text, "{words}   # {does}").unwrap();
        }
        writeln!(text, "```").unwrap();
    }
    let (settings, own): (Vec<&Arg>, Vec<&Arg>) = args.into_iter().partition(|arg| is_setting(arg));
    if !own.is_empty() {
        writeln!(text, "\n| argument | meaning |\n|---|---|").unwrap();
        for arg in own {
            writeln!(text, "| {} | {} |", usage(arg), meaning(arg)).unwrap();
        }
    }
    if !settings.is_empty() {
        let flags: Vec<_> = settings.iter().map(|arg| usage(arg)).collect();
        writeln!(text, "\n[Settings](settings.md): {}.", flags.join(", ")).unwrap();
    }
    for below in command.get_subcommands() {
        if !below.is_hide_set() && below.get_name() != "help" {
            add(text, &format!("{path} {}", below.get_name()), below);
        }
    }
}

/// Each command has the flags for help.
fn is_of_command(arg: &Arg) -> bool {
    !["help", "version"].contains(&arg.get_id().as_str())
}

fn is_setting(arg: &Arg) -> bool {
    let id = arg.get_id().as_str();
    let help = arg.get_help().map(ToString::to_string);
    // Others may have the name of a setting, and mean something else.
    let is_key = |key: Key| key.name() == id && help.as_deref() == Some(key.row().help);
    id == "config" || Key::ALL.into_iter().any(is_key)
}

/// An argument as it is typed.
fn usage(arg: &Arg) -> String {
    let takes_value = arg.get_action().takes_values();
    let names = arg.get_value_names().unwrap_or_default();
    let values: Vec<String> =
        if takes_value { names.iter().map(ToString::to_string).collect() } else { Vec::new() };
    let flags: Vec<String> =
        [arg.get_short().map(|short| format!("-{short}")), arg.get_long().map(|long| format!("--{long}"))]
            .into_iter()
            .flatten()
            .collect();
    let between = if arg.is_require_equals_set() { "=" } else { " " };
    let words = [flags.join(", "), values.join(" ")];
    let words: Vec<&str> = words.iter().map(String::as_str).filter(|part| !part.is_empty()).collect();
    format!("`{}`", words.join(between))
}

/// Its help, the values that it may have, and the one that it has without a word.
fn meaning(arg: &Arg) -> String {
    let help = arg.get_long_help().or(arg.get_help()).map(ToString::to_string).unwrap_or_default();
    let mut text = cell(&help);
    let possible: Vec<String> =
        arg.get_possible_values().iter().map(|value| format!("`{}`", value.get_name())).collect();
    if arg.get_action().takes_values() && !possible.is_empty() {
        write!(text, " One of {}.", possible.join(", ")).unwrap();
    }
    let defaults: Vec<_> = arg.get_default_values().iter().map(|value| value.to_string_lossy()).collect();
    if arg.get_action().takes_values() && !defaults.is_empty() {
        write!(text, " By default `{}`.", defaults.join(" ")).unwrap();
    }
    if let Some(variable) = arg.get_env() {
        write!(text, " Also `{}`.", variable.to_string_lossy()).unwrap();
    }
    text.trim_start().to_owned()
}

/// A text in one line of a table, with a full stop.
fn cell(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    let text = words.join(" ").replace('|', "\\|").replace('<', "&lt;");
    if text.is_empty() || text.ends_with('.') { text } else { text + "." }
}
