//! `tharsis logs` at real nodes: what workers wrote, of whom, of which task, now and later.

use crate::Behaviour;
use crate::home::{self, Home, await_that};
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::process::Child;
use std::time::Duration;
use tharsis::{NodeId, init, remote};

#[remote(num_cpus = 1, max_retries = 0)]
fn says(text: String, ms: u64) -> u32 {
    // A busy node knows late when a run began, and takes what was said at once for a line of the run before.
    std::thread::sleep(Duration::from_millis(ms / 4));
    println!("{text} begins");
    std::thread::sleep(Duration::from_millis(ms));
    eprintln!("{text} complains");
    println!("{text} ends");
    std::thread::sleep(Duration::from_millis(ms));
    std::process::id()
}

#[remote(num_cpus = 1, max_retries = 0)]
fn says_much(count: u64, len: usize) -> u64 {
    let rest = "x".repeat(len);
    for number in 0..count {
        println!("{number} {rest}");
    }
    count
}

pub const ALL: &[Behaviour] = behaviours![
    lines_are_shown_with_who_wrote_them,
    lines_of_all_nodes_are_shown,
    nodes_that_join_and_leave_later_are_followed_too,
    what_is_followed_comes_without_a_gap,
    what_does_not_exist_is_refused,
];

/// Times tell the lines of two tasks apart, which needs a node that is not kept waiting.
pub const ALONE: &[Behaviour] = behaviours![lines_of_a_task_are_told_from_those_of_others];

/// A home with a node of one CPU, and the node's socket.
fn started() -> (Home, String) {
    let home = Home::new();
    let socket = home.text("node/node.sock");
    let ended = home.run(["start", "--head", "--store", "16MiB", "--num-cpus", "1", "--socket", &socket]);
    assert_eq!(ended.status, 0, "{}", ended.err);
    (home, socket)
}

fn driver(socket: &str) -> tharsis::Runtime {
    init().address(socket).start_local().unwrap()
}

/// The lines that a command shows.
fn shown(home: &Home, socket: &str, words: &[&str]) -> Vec<Value> {
    let ended = home.run([&["logs", "--json", "--socket", socket], words].concat());
    assert_eq!(ended.status, 0, "{}", ended.err);
    ended.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn texts(lines: &[Value]) -> Vec<&str> {
    lines.iter().map(|line| line["text"].as_str().unwrap()).collect()
}

/// Waits until a command shows a line.
fn await_line(home: &Home, socket: &str, words: &[&str], text: &str) -> Vec<Value> {
    let mut lines = Vec::new();
    await_that(text, || {
        lines = shown(home, socket, words);
        texts(&lines).contains(&text)
    });
    lines
}

fn lines_are_shown_with_who_wrote_them() {
    let (home, socket) = started();
    let runtime = driver(&socket);
    let _entered = runtime.enter();
    let pid = says::remote("first".to_owned(), 1).get_timeout(60.0).unwrap();
    let lines = await_line(&home, &socket, &[], "first ends");
    assert_eq!(lines.len(), 3, "{lines:?}");
    let node = home.status(Some(&socket))["node"].as_str().unwrap().to_owned();
    for line in &lines {
        assert_eq!((&line["worker"], &line["node"]), (&pid.into(), &Value::from(node.as_str())), "{line}");
        assert_eq!(line["stream"] == "stderr", line["text"] == "first complains", "{line}");
    }
    let job = lines[0]["job"].to_string();
    assert_eq!(shown(&home, &socket, &["--job", &job]).len(), 3);
    assert_eq!(shown(&home, &socket, &["--job", "4000000"]).len(), 0);
    assert_eq!(shown(&home, &socket, &["--tail", "2"]).len(), 2);
    let plain = home.run(["logs", "--socket", &socket]);
    let head = format!("node {node} worker {pid} job {job} | first begins");
    assert!(plain.out.contains(&head), "{}", plain.out);
    drop(_entered);
    drop(runtime);
    assert_eq!(shown(&home, &socket, &[]).len(), 3, "they outlive their job");
    assert_eq!(home.run(["stop", "--socket", &socket]).status, 0);
    assert!(!home.path("node/logs").exists(), "they end with their node");
}

/// Tasks run one after the other in one worker: the time tells their lines apart, so they are silent for
/// longer at their ends than a node takes to read lines on a busy machine.
fn lines_of_a_task_are_told_from_those_of_others() {
    let (home, socket) = started();
    let runtime = driver(&socket);
    let _entered = runtime.enter();
    let calls: Vec<_> = (0..3).map(|number| says::remote(format!("task {number}"), 2_000)).collect();
    let pids: Vec<_> = calls.iter().map(|call| call.get_timeout(60.0).unwrap()).collect();
    assert!(pids.iter().all(|pid| *pid == pids[0]), "one worker ran all");
    await_line(&home, &socket, &[], "task 2 ends");
    for (number, call) in calls.iter().enumerate() {
        let task = call.id().object.task.to_string();
        let lines = shown(&home, &socket, &["--task", &task]);
        let mut texts = texts(&lines);
        texts.sort_unstable();
        let expected = ["begins", "complains", "ends"].map(|what| format!("task {number} {what}"));
        assert_eq!(texts, expected);
        // A reader that follows a task ends with it.
        let followed = home.run(["logs", "--socket", &socket, "-f", "--json", "--task", &task]);
        assert_eq!((followed.status, followed.out.lines().count()), (0, 3), "{}", followed.out);
    }
}

/// Starts a member of the cluster of the node at `socket`; returns the cluster's address.
fn join(home: &Home, socket: &str, other: &str) -> String {
    let address = home.status(Some(socket))["address"].as_str().unwrap().to_owned();
    let words = ["start", "--address", &address, "--store", "16MiB", "--num-cpus", "1", "--socket", other];
    let joined = home.run(words);
    assert_eq!(joined.status, 0, "{}", joined.err);
    home.await_nodes(Some(socket), 2);
    address
}

fn lines_of_all_nodes_are_shown() {
    let (home, socket) = started();
    let other = home.text("other/node.sock");
    let address = join(&home, &socket, &other);
    let runtime = driver(&socket);
    let _entered = runtime.enter();
    for id in [node_of(&home, &socket), node_of(&home, &other)] {
        let place = says::options().node(as_id(&id), false);
        place.remote(format!("at {id}"), 1).get_timeout(60.0).unwrap();
    }
    let ends = format!("at {} ends", node_of(&home, &other));
    let all = await_line(&home, &socket, &[], &ends);
    assert_eq!(all.len(), 6, "{all:?}");
    for at in [&socket, &other] {
        let node = node_of(&home, at);
        for words in [vec!["--node", &node], vec!["--node", &node, "--address", &address]] {
            let lines = shown(&home, &socket, &words);
            assert_eq!(lines.len(), 3, "{lines:?}");
            assert!(lines.iter().all(|line| line["text"].as_str().unwrap().contains(&node)), "{lines:?}");
        }
    }
}

/// The next line of a command.
fn next(reader: &mut impl BufRead) -> Value {
    let mut line = String::new();
    reader.read_line(&mut line).unwrap();
    serde_json::from_str(&line).unwrap()
}

/// The id of the node at a socket, as lists and lines have it.
fn node_of(home: &Home, socket: &str) -> String {
    home.status(Some(socket))["node"].as_str().unwrap().to_owned()
}

/// The same id for a program.
fn as_id(node: &str) -> NodeId {
    NodeId(u64::from_str_radix(node, 16).unwrap())
}

/// A node joins after the reader began, leaves, and another one joins.
fn nodes_that_join_and_leave_later_are_followed_too() {
    let (home, socket) = started();
    let runtime = driver(&socket);
    let _entered = runtime.enter();
    says::remote("here".to_owned(), 1).get_timeout(60.0).unwrap();
    await_line(&home, &socket, &[], "here ends");
    // The number of old lines is of those nodes that were there.
    let mut following = home.spawn(["logs", "-f", "--json", "--tail", "1", "--socket", &socket]);
    let mut reader = BufReader::new(following.stdout.take().unwrap());
    assert!(next(&mut reader)["text"].as_str().unwrap().starts_with("here"));
    for name in ["second", "third"] {
        let other = home.text(&format!("{name}/node.sock"));
        join(&home, &socket, &other);
        let node = node_of(&home, &other);
        let place = says::options().node(as_id(&node), false);
        place.remote(name.to_owned(), 1).get_timeout(60.0).unwrap();
        let mut texts: Vec<String> = (0..3)
            .map(|_| next(&mut reader))
            .inspect(|line| assert_eq!(line["node"], node, "{line}"))
            .map(|line| line["text"].as_str().unwrap().to_owned())
            .collect();
        texts.sort_unstable();
        assert_eq!(texts, ["begins", "complains", "ends"].map(|what| format!("{name} {what}")));
        assert_eq!(home.run(["stop", "--socket", &other]).status, 0);
        home.await_nodes(Some(&socket), 1);
    }
    end(following);
}

/// A worker writes more than one segment of the log holds, while the log is followed.
fn what_is_followed_comes_without_a_gap() {
    let (home, socket) = started();
    let runtime = driver(&socket);
    let _entered = runtime.enter();
    says::remote("before".to_owned(), 1).get_timeout(60.0).unwrap();
    await_line(&home, &socket, &[], "before ends");
    let mut following = home.spawn(["logs", "-f", "--json", "--tail", "1", "--socket", &socket]);
    let mut reader = BufReader::new(following.stdout.take().unwrap());
    assert!(next(&mut reader)["text"].as_str().unwrap().starts_with("before"));
    let call = says_much::remote(12_000, 1_000);
    for number in 0..12_000_u64 {
        let line = next(&mut reader);
        let text = line["text"].as_str().unwrap();
        assert_eq!(text.split(' ').next().unwrap(), number.to_string());
    }
    assert_eq!(call.get_timeout(60.0).unwrap(), 12_000);
    end(following);
}

fn end(mut following: Child) {
    assert!(following.try_wait().unwrap().is_none(), "it goes on until it is interrupted");
    // Not SIGINT: a shell has programs in the background ignore that.
    home::kill(following.id(), "TERM");
    following.wait().unwrap();
}

fn what_does_not_exist_is_refused() {
    let (home, socket) = started();
    let nobody = "00000000000000aa";
    home.run(["logs", "--node", nobody, "--socket", &socket]).assert_refused(2, &["UnknownNode", nobody]);
    home.run(["logs", "--task", "7", "--socket", &socket]).assert_refused(2, &["--task"]);
    home.run(["logs", "--socket", "/nowhere/node.sock"]).assert_refused(4, &["no node answers"]);
}
