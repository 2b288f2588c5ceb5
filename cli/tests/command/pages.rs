//! Scripts that complete commands in shells, and manual pages.

use crate::home::Home;
use std::io::Write;
use std::process::{Command, Stdio};

#[test]
fn shells_complete_commands_and_flags() {
    let home = Home::new();
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let script = home.run(["completions", shell]);
        assert_eq!((script.status, script.err.as_str()), (0, ""), "{shell}");
        for word in ["tharsis", "submit", "spill-dir"] {
            assert!(script.out.contains(word), "{shell}: no {word}");
        }
        assert!(!script.out.contains("bench-first"), "{shell}");
    }
    home.run(["completions", "basch"]).assert_refused(2, &["basch", "bash", "zsh"]);
    // Bash offers the rest of words that are begun.
    let script = home.run(["completions", "bash"]).out;
    assert!(script.contains("markdown"), "values of flags");
    for (words, offered) in
        [("tharsis sq", "sql"), ("tharsis sql --fo", "--format"), ("tharsis job sub", "submit")]
    {
        let words: Vec<&str> = words.split(' ').collect();
        let ask = format!(
            "{script}\nCOMP_WORDS=({}); COMP_CWORD={}; _tharsis tharsis {} {}; echo \"${{COMPREPLY[@]}}\"\n",
            words.join(" "),
            words.len() - 1,
            words[words.len() - 1],
            words[words.len() - 2],
        );
        let mut bash = Command::new("bash");
        let bash = bash.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut bash = bash.spawn().unwrap();
        bash.stdin.take().unwrap().write_all(ask.as_bytes()).unwrap();
        let answer = bash.wait_with_output().unwrap();
        assert_eq!(String::from_utf8_lossy(&answer.stdout).trim(), offered, "{words:?}");
        assert_eq!(String::from_utf8_lossy(&answer.stderr), "", "{words:?}");
    }
}

#[test]
fn every_command_has_a_manual_page() {
    let home = Home::new();
    let folder = home.text("share/man1");
    let written = home.run(["man", &folder]);
    assert_eq!((written.status, written.out.as_str(), written.err.as_str()), (0, "", ""));
    let page =
        |name: &str| std::fs::read_to_string(home.path(&format!("share/man1/{name}.1"))).unwrap_or_default();
    for (name, part) in [
        ("tharsis", "tharsis\\-sql(1)"),
        ("tharsis-sql", "\\-\\-format"),
        ("tharsis-job-submit", "\\-\\-follow"),
        ("tharsis-completions", "bash"),
    ] {
        let page = page(name);
        assert!(
            page.contains(".TH") && page.contains(".SH SYNOPSIS") && page.contains(part),
            "{name}: {page}"
        );
    }
    assert!(page("tharsis-sql").contains("tharsis sql \\-f report.sql"), "{}", page("tharsis-sql"));
    // Those for tests and benches alone have none.
    assert_eq!(page("tharsis-bench-first"), "");
    let file = home.text("file");
    std::fs::write(&file, "").unwrap();
    let refused = home.run(["man", &format!("{file}/man1")]);
    assert!(refused.status == 1 && refused.err.contains("file/man1"), "{}", refused.err);
}
