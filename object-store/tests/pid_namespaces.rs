//! Nodes of several containers that share `/dev/shm`: their process ids are equal, or unknown to each other.
//!
//! The other container is another PID namespace (`unshare`), which only root can make here; for other users
//! these tests say so and pass.

// Tests and their helper functions may panic on failure.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

use std::env;
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};
use tharsis_object_store::{Segment, segment};

const PLAYED: &str = "THARSIS_TEST_NODE";

/// A node as process 1 of its namespace: removes what the dead left, makes its board, says its name and
/// waits.
#[test]
fn play_a_node() {
    if env::var(PLAYED).is_err() {
        return;
    }
    assert_eq!(std::process::id(), 1, "the first process of its namespace");
    segment::sweep().unwrap();
    let board = Segment::create("board", 4096).unwrap();
    println!("\nboard {}", board.name());
    std::io::stdout().flush().unwrap();
    let _ended = std::io::stdin().read_line(&mut String::new());
}

struct Played {
    /// The process outside of the namespace, with which the node ends.
    outside: Child,
    output: BufReader<ChildStdout>,
    board: String,
}

impl Played {
    fn start() -> Self {
        let mut outside = Command::new("unshare")
            .args(["--pid", "--fork", "--kill-child"])
            .arg(env::current_exe().unwrap())
            .args(["play_a_node", "--exact", "--quiet", "--nocapture"])
            .env(PLAYED, "1")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut output = BufReader::new(outside.stdout.take().unwrap());
        let board =
            output.by_ref().lines().find_map(|line| line.unwrap().strip_prefix("board ").map(str::to_owned));
        Self { outside, output, board: board.unwrap() }
    }

    /// Kills the node, and waits until it has ended.
    fn kill(mut self) {
        self.outside.kill().unwrap();
        self.outside.wait().unwrap();
        self.output.read_to_end(&mut Vec::new()).unwrap();
        // Its output ends a moment before its locks do.
        let until = Instant::now() + Duration::from_secs(10);
        while is_locked(&self.board) && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

fn is_locked(board: &str) -> bool {
    File::open(Path::new("/dev/shm").join(board)).is_ok_and(|file| file.try_lock().is_err())
}

fn is_there(board: &str) -> bool {
    Path::new("/dev/shm").join(board).exists()
}

fn can_unshare() -> bool {
    let made = Command::new("unshare").args(["--pid", "--fork", "true"]).status().is_ok_and(|s| s.success());
    if !made {
        tharsis_trials::not_run("no right to make a PID namespace");
    }
    made
}

#[test]
fn a_node_that_was_killed_as_process_1_starts_again_as_process_1() {
    if env::var(PLAYED).is_ok() || !can_unshare() {
        return;
    }
    let first = Played::start();
    let left = first.board.clone();
    first.kill();
    let second = Played::start();
    let board = second.board.clone();
    assert!(is_there(&board));
    assert!(!is_there(&left), "the second one removed what the first one left");
    second.kill();
    segment::sweep().unwrap();
    assert!(!is_there(&board));
}

#[test]
fn a_node_in_another_pid_namespace_leaves_the_boards_of_living_nodes() {
    if env::var(PLAYED).is_ok() || !can_unshare() {
        return;
    }
    let ours = Segment::create("board", 4096).unwrap();
    let (first, second) = (Played::start(), Played::start());
    let boards = [first.board.clone(), second.board.clone()];
    segment::sweep().unwrap();
    for name in boards.iter().map(String::as_str).chain([ours.name()]) {
        Segment::open(name).unwrap();
    }
    first.kill();
    second.kill();
    segment::sweep().unwrap();
    assert!(is_there(ours.name()) && !boards.iter().any(|board| is_there(board)));
}
