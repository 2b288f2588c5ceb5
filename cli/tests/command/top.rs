//! `tharsis top` at a real node, on a terminal and without one.

use crate::home::{Home, SMALL, without_settings};
use crate::sql::until;
use serde_json::Value;
use std::io::{BufReader, Read, Write};
use std::process::{Command, Stdio};

/// A home with a node that has two CPUs.
fn with_node() -> Home {
    let home = Home::new();
    let started = home.run([&["start", "--head", "--num-cpus", "2"], &SMALL[..]].concat());
    assert_eq!(started.status, 0, "{}", started.err);
    home
}

#[test]
fn without_a_terminal_it_is_shown_once() {
    Home::new().run(["top"]).assert_refused(4, &["no node answers"]);
    let home = with_node();
    let shown = home.run(["top"]);
    assert_eq!((shown.status, shown.err.as_str()), (0, ""));
    let begin = "1 node, 0 of 2 CPUs in use, 0 running, 0 queued, 0.0 finished/s\n\nnode ";
    assert!(shown.out.starts_with(begin) && !shown.out.contains('\x1b'), "{}", shown.out);
    let status = home.status(None);
    let node = status["node"].as_str().unwrap();
    assert!(shown.out.lines().any(|line| line.starts_with(node)), "{}", shown.out);
    let told = home.run(["top", "--json"]);
    assert_eq!((told.status, told.out.lines().count()), (0, 1), "{}", told.err);
    let document: Value = serde_json::from_str(&told.out).unwrap();
    assert_eq!((&document["node"], &document["pid"]), (&status["node"], &status["pid"]));
    let row = &document["nodes"][0];
    assert_eq!((&row["node"], &row["cpus"], &row["runs"]), (&status["node"], &2.0.into(), &0.into()));
    assert_eq!(
        (&document["jobs"], &document["silent"]),
        (&Value::Array(Vec::new()), &Value::Array(Vec::new()))
    );
    home.run(["top", "--interval", "1ms"]).assert_refused(2, &["--interval", "at least 100ms"]);
    home.run(["stop"]);
}

/// All that a terminal shows until a key ends the command, and then the modes of the terminal.
fn shown_until(home: &Home, variables: &str, key: &[u8]) -> String {
    let tharsis = env!("CARGO_BIN_EXE_tharsis");
    let top = format!("{variables} '{tharsis}' top --interval 100ms");
    let line = format!("stty cols 60 rows 20 isig icanon echo; {top}; echo status $?; stty -a");
    let mut shell = Command::new("script");
    without_settings(&mut shell).args(["-qec", &line, "/dev/null"]).envs(home.folders());
    shell.env_remove("NO_COLOR").env("TERM", "xterm").env("SHELL", "/bin/sh");
    let mut shell = shell.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let (mut keys, mut screen) = (shell.stdin.take().unwrap(), BufReader::new(shell.stdout.take().unwrap()));
    let mut shown = Vec::new();
    for _ in 0..3 {
        until(&mut screen, &mut shown, "\x1b[H");
        until(&mut screen, &mut shown, "\x1b[J");
    }
    keys.write_all(key).unwrap();
    screen.read_to_end(&mut shown).unwrap();
    assert!(shell.wait().unwrap().success());
    String::from_utf8_lossy(&shown).into_owned()
}

#[test]
fn on_a_terminal_it_is_drawn_again_until_a_key_ends_it() {
    let home = with_node();
    for (variables, key, is_coloured) in [("", b"q", true), ("NO_COLOR=1", b"\x03", false)] {
        let shown = shown_until(&home, variables, key);
        let (_, drawn) = shown.split_once("\x1b[?1049h\x1b[?25l").unwrap();
        let (drawn, after) = drawn.split_once("\x1b[?25h\x1b[?1049l").unwrap();
        assert!(drawn.contains("1 node, 0 of 2 CPUs in use"), "{drawn:?}");
        assert_eq!(drawn.contains("\x1b[1m"), is_coloured, "{drawn:?}");
        let is_restored = after.contains("isig icanon") && after.contains(" echo ");
        assert!(after.contains("status 0") && is_restored, "{after:?}");
    }
    home.run(["stop"]);
}
