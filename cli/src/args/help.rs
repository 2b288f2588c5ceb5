//! Help: commands in groups, and examples of each.

use super::Args;
use super::sql::with_comments;
use clap::{Command, CommandFactory, FromArgMatches};
use std::ffi::OsString;
use std::fmt::Write as _;

/// The commands by what they are for. Each stands in one group.
const GROUPS: [(&str, &[&str]); 6] = [
    ("Begin", &["sql", "eval", "start", "status", "stop"]),
    (
        "Look",
        &[
            "top", "nodes", "workers", "jobs", "tasks", "actors", "graphs", "groups", "objects", "memory",
            "logs", "timeline", "why",
        ],
    ),
    ("Run programs", &["job"]),
    ("Run a cluster", &["node", "gcs", "up", "down", "drain", "join", "token", "authority", "config"]),
    ("Measure", &["doctor", "bench", "version"]),
    ("Set up a shell", &["completions", "man"]),
];

/// Examples of a command, whose words are divided by a space, and what each does.
const EXAMPLES: [(&str, &[(&str, &str)]); 41] = [
    (
        "sql",
        &[
            (
                "tharsis sql \"select city, sum(sold) from 'sales.csv' group by city\"",
                "answer a query over a file",
            ),
            ("tharsis sql", "open a shell"),
            ("tharsis sql -f report.sql --format csv", "run the statements of a file"),
            ("tharsis sql -c \"select 1\" -c \"select 2\"", "answer statements as psql and duckdb do"),
            ("tharsis sql --address auto \"select count(*) from 'rows/*.parquet'\"", "the same on a cluster"),
        ],
    ),
    (
        "eval",
        &[
            ("tharsis eval --list", "show the operations there are"),
            ("tharsis eval programs", "answer the programs of a folder"),
        ],
    ),
    (
        "start",
        &[
            ("tharsis start --head", "begin a cluster on this machine"),
            (
                "tharsis start --head --host head.example.com --port 7600",
                "begin one that other machines join",
            ),
            ("tharsis start --address head.example.com:7600", "join it"),
        ],
    ),
    (
        "status",
        &[
            ("tharsis status", "show the node of this machine"),
            ("tharsis status --json", "the same for a program"),
            ("tharsis status -f cluster.toml", "ask the hosts of a cluster file"),
        ],
    ),
    (
        "stop",
        &[
            ("tharsis stop", "stop the node of this machine"),
            ("tharsis stop --drain=1m", "let its work end first"),
        ],
    ),
    (
        "top",
        &[
            ("tharsis top", "look at the cluster until q is pressed"),
            ("tharsis top --interval 5s", "the same with fewer questions to nodes"),
            ("tharsis top --once", "print it and end"),
            ("tharsis top --json", "the same for a program"),
        ],
    ),
    (
        "nodes",
        &[
            ("tharsis nodes", "list the members"),
            ("tharsis nodes --filter state=draining", "those that leave"),
        ],
    ),
    ("workers", &[("tharsis workers --filter state!=idle", "list those that have a task")]),
    ("jobs", &[("tharsis jobs --sort -tasks", "list the jobs with most tasks first")]),
    (
        "tasks",
        &[
            (
                "tharsis tasks --filter state=queued --limit 20",
                "list the tasks that wait longest for a worker",
            ),
            ("tharsis tasks --filter name=load --json", "those of one function, for a program"),
        ],
    ),
    ("actors", &[("tharsis actors --filter state=alive", "list the actors that answer calls")]),
    ("graphs", &[("tharsis graphs --sort -waiting", "list the graphs with most waiting tasks first")]),
    ("groups", &[("tharsis groups --filter state=infeasible", "list those that the cluster cannot hold")]),
    ("objects", &[("tharsis objects --limit 10", "list the ten largest")]),
    ("memory", &[("tharsis memory", "show what lies in the store, and who keeps it")]),
    (
        "logs",
        &[
            ("tharsis logs --follow", "show what workers write"),
            ("tharsis logs --job 3 --tail 50", "the last lines of a job"),
        ],
    ),
    (
        "timeline",
        &[
            ("tharsis timeline -o trace.json", "write what all nodes ran, for ui.perfetto.dev"),
            ("tharsis timeline --job 3 --since 10m -o trace.json", "the last minutes of a job"),
        ],
    ),
    (
        "why",
        &[
            ("tharsis why 00000000000000010000000000000002", "tell what a task waits for"),
            ("tharsis why 00000000000000010000000000000002/0", "the same of its result"),
        ],
    ),
    (
        "job submit",
        &[
            ("tharsis job submit --follow -- ./train --epochs 10", "run a program, and end as it ends"),
            ("tharsis job submit --name nightly --quota cpus=4 -- ./report", "with a name and a limit"),
        ],
    ),
    ("job list", &[("tharsis job list", "list the programs, the latest first")]),
    ("job logs", &[("tharsis job logs nightly --follow", "show what it writes")]),
    ("job status", &[("tharsis job status nightly", "show what has become of it")]),
    ("job stop", &[("tharsis job stop nightly --grace 30s", "stop it")]),
    ("node", &[("tharsis node --head", "begin a cluster, in the foreground")]),
    ("node revoke", &[("tharsis node revoke 4aadbee02f8b43ee", "shut a machine out")]),
    (
        "gcs",
        &[(
            "tharsis gcs --port 7600 --state /var/lib/tharsis/tables",
            "run a control store that keeps its tables",
        )],
    ),
    ("up", &[("tharsis up -f cluster.toml", "start the nodes of a cluster file")]),
    ("down", &[("tharsis down -f cluster.toml", "stop them")]),
    (
        "drain",
        &[
            ("tharsis drain", "have the node of this machine leave"),
            ("tharsis drain 4aadbee02f8b43ee --deadline 5m", "another one"),
        ],
    ),
    ("join", &[("tharsis join --address head.example.com:7600 --token TOKEN", "join without a node")]),
    (
        "token create",
        &[("tharsis token create --role driver --expires 1h", "print a token for a machine of programs")],
    ),
    ("token list", &[("tharsis token list", "list tokens and machines")]),
    ("token revoke", &[("tharsis token revoke 4aadbee02f8b43ee", "make a token useless")]),
    ("authority rotate", &[("tharsis authority rotate", "begin to use another key")]),
    ("authority retire", &[("tharsis authority retire", "end the trust in the former one")]),
    ("config show", &[("tharsis config show", "show each setting, and who said it")]),
    (
        "doctor",
        &[
            ("tharsis doctor", "check what a head with the default settings would need"),
            ("tharsis doctor --address head.example.com:7600 --port 7601", "what a member would need"),
            ("tharsis doctor --json", "the same for a program"),
        ],
    ),
    (
        "bench",
        &[
            ("tharsis bench", "run the short ones"),
            ("tharsis bench axpb --quick --on workers", "one of them, on worker processes"),
        ],
    ),
    ("version", &[("tharsis version --json", "print the versions for a program")]),
    (
        "completions",
        &[
            ("tharsis completions bash", "for ~/.local/share/bash-completion/completions/tharsis"),
            ("tharsis completions zsh", "for a file _tharsis in a folder of $fpath"),
            ("tharsis completions fish", "for ~/.config/fish/completions/tharsis.fish"),
        ],
    ),
    ("man", &[("tharsis man /usr/local/share/man/man1", "for `man tharsis` and `man tharsis-sql`")]),
];

/// Reads the arguments of this process.
///
/// # Errors
/// Those of wrong arguments; the text of help.
pub fn read(words: impl IntoIterator<Item = OsString>) -> Result<Args, clap::Error> {
    let words = with_comments(words.into_iter().collect());
    Args::from_arg_matches(&command().try_get_matches_from(words)?)
}

/// The command line with its help.
pub fn command() -> Command {
    let command = Args::command();
    let groups = groups(&command);
    let command = command
        .help_template("{about-with-newline}\n{usage-heading} {usage}{after-help}\n\nOptions:\n{options}");
    EXAMPLES
        .iter()
        .fold(command.after_help(groups), |command, (path, examples)| with(command, path, examples))
}

/// The commands in their groups, each with the first line of its help.
fn groups(command: &Command) -> String {
    let mut text = String::new();
    for (group, names) in GROUPS {
        let before = if text.is_empty() { "" } else { "\n" };
        // A text takes any line.
        let _taken = writeln!(text, "{before}{group}:");
        for name in names {
            let found = command.find_subcommand(name).and_then(Command::get_about);
            let about = found.map(ToString::to_string).unwrap_or_default();
            let about = lines(&about, ABOUT_COLUMNS).join("\n              ");
            let _taken = writeln!(text, "  {name:<11} {about}");
        }
    }
    text + "\nExamples:\n  tharsis sql \"select 40 + 2\"     answer a query\n  tharsis start --head            begin a cluster on this machine\n  \
            tharsis COMMAND --help          show the options of a command, with examples"
}

/// Columns of the help of a command behind its name, on a terminal of 80.
const ABOUT_COLUMNS: usize = 66;

/// The lines of a text, none of which is longer unless a word is.
fn lines(text: &str, columns: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut().filter(|line| line.len() + 1 + word.len() <= columns) {
            Some(line) => {
                line.push(' ');
                line.push_str(word);
            }
            None => lines.push(word.to_owned()),
        }
    }
    lines
}

/// The command with these examples at the end of the help of one below it.
fn with(command: Command, path: &str, examples: &[(&str, &str)]) -> Command {
    let (name, rest) = path.split_once(' ').map_or((path, None), |(name, rest)| (name, Some(rest)));
    if command.find_subcommand(name).is_none() {
        return command;
    }
    command.mut_subcommand(name, |below| match rest {
        Some(rest) => with(below, rest, examples),
        None => {
            let width = examples.iter().map(|(words, _)| words.len()).max().unwrap_or(0);
            let lines = examples.iter().map(|(words, does)| format!("\n  {words:<width$}  {does}"));
            below.after_help(format!("Examples:{}", lines.collect::<String>()))
        }
    })
}

#[cfg(test)]
mod page_tests;

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// Commands without others below them, and those that are commands themselves too.
    fn paths(command: &Command, before: &str, found: &mut BTreeSet<String>) {
        for below in
            command.get_subcommands().filter(|below| !below.is_hide_set() && below.get_name() != "help")
        {
            let path = format!("{before}{}", below.get_name());
            if !below.has_subcommands() || path == "node" {
                found.insert(path.clone());
            }
            paths(below, &format!("{path} "), found);
        }
    }

    #[test]
    fn every_command_has_a_group_and_examples_and_no_other_is_named() {
        let command = Args::command();
        let visible = command.get_subcommands().filter(|below| !below.is_hide_set());
        let visible: Vec<String> = visible.map(|below| below.get_name().to_owned()).collect();
        let mut grouped: Vec<String> =
            GROUPS.iter().flat_map(|(_, names)| names.iter().map(|n| (*n).to_owned())).collect();
        let mut sorted = visible.clone();
        sorted.sort();
        grouped.sort();
        assert_eq!(grouped, sorted);
        let mut all = BTreeSet::new();
        paths(&command, "", &mut all);
        let with_examples: BTreeSet<String> = EXAMPLES.iter().map(|(path, _)| (*path).to_owned()).collect();
        assert_eq!(with_examples, all);
    }

    /// The words of a line, as a shell reads them.
    fn words(line: &str) -> Vec<OsString> {
        let parts = line.split('"').enumerate();
        let words = parts
            .flat_map(|(at, part)| if at % 2 == 1 { vec![part] } else { part.split_whitespace().collect() });
        words.map(OsString::from).collect()
    }

    #[test]
    fn every_example_is_a_command_line() {
        for (path, examples) in EXAMPLES {
            for (line, _) in examples {
                assert!(line.starts_with(&format!("tharsis {path}")), "{line}");
                // Its text is no token.
                let line = line.replace("TOKEN", "0");
                if let Err(error) = read(words(&line)) {
                    panic!("{line}: {error}");
                }
            }
        }
    }

    #[test]
    fn help_has_the_groups_and_the_examples() {
        let help = read(["tharsis", "--help"].map(OsString::from)).unwrap_err().to_string();
        for part in
            ["Begin:\n  sql ", "Look:\n", "Run a cluster:\n", "Examples:\n", "Options:\n", "Usage: tharsis"]
        {
            assert!(help.contains(part), "{part}: {help}");
        }
        assert!(help.contains("<COMMAND>\n\nBegin:\n"), "{help}");
        for line in help.lines() {
            assert!(line.len() <= 80, "{line}");
        }
        let help = read(["tharsis", "job", "stop", "--help"].map(OsString::from)).unwrap_err().to_string();
        assert!(help.contains("Examples:\n  tharsis job stop nightly"), "{help}");
    }
}
