//! `tharsis why` at a real node with a real driver: the reason why a task waits, and invalid ids.

use crate::Behaviour;
use crate::home::{Home, SOON};
use serde_json::Value;
use std::time::{Duration, Instant};
use tharsis::{init, remote};

#[remote(num_cpus = 2)]
fn slow(number: u64) -> u64 {
    std::thread::sleep(Duration::from_secs(600));
    number
}

#[remote(num_cpus = 2)]
fn double(number: u64) -> u64 {
    2 * number
}

pub const ALL: &[Behaviour] = behaviours![
    every_wait_is_named,
    what_is_no_id_is_refused_with_status_2,
    what_the_node_does_not_know_is_said,
];

/// A home with a node of two CPUs, and the node's socket.
fn started() -> (Home, String) {
    let home = Home::new();
    let socket = home.text("node/node.sock");
    let words = ["start", "--head", "--store", "16MiB", "--num-cpus", "2", "--socket", &socket];
    let ended = home.run(words);
    assert_eq!(ended.status, 0, "{}", ended.err);
    (home, socket)
}

/// Asks until the answer contains `part`, and returns the answer.
fn told(home: &Home, socket: &str, id: &str, part: &str) -> String {
    let until = Instant::now() + SOON;
    loop {
        let ended = home.run(["why", id, "--socket", socket]);
        if ended.out.contains(part) {
            return ended.out;
        }
        assert!(Instant::now() < until, "{part} missing in: {}{}", ended.out, ended.err);
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn every_wait_is_named() {
    let (home, socket) = started();
    let runtime = init().address(socket.as_str()).start_local().unwrap();
    let entered = runtime.enter();
    let first = slow::remote(1);
    let second = double::remote(&first);
    let third = double::remote(3);
    let object = |reference: &tharsis::ObjectRef<u64>| reference.id().object;
    let task = |reference| object(reference).task.to_string();
    let running = told(&home, &socket, &task(&first), "runs in worker");
    assert!(running.contains("slow called at "), "{running}");
    let waiting = told(&home, &socket, &task(&second), "waiting: 1 of 1 arguments");
    let argument = format!("argument 0 is {}, computed by task {} (", object(&first), task(&first));
    assert!(waiting.contains(&argument) && waiting.contains("waits for arguments: 1"), "{waiting}");
    let queued = told(&home, &socket, &task(&third), "each needs 2 CPU");
    assert!(queued.contains("0 CPU free, 2 needed; it has 2 CPU"), "{queued}");
    let status = home.run(["status", "--socket", &socket]).out;
    assert!(status.contains(&format!("tharsis why {}", task(&third))), "{status}");
    let json = home.run(["why", "--json", &object(&second).to_string(), "--socket", &socket]);
    let story: Value = serde_json::from_str(&json.out).unwrap();
    let line = story["present"][0].as_str().unwrap();
    assert!(line.starts_with(&format!("object {}: computed by task", object(&second))), "{story:#}");
    drop((first, second, third, entered));
    drop(runtime);
    home.run(["stop", "--socket", &socket]);
}

fn what_is_no_id_is_refused_with_status_2() {
    let home = Home::new();
    for id in ["", "12", "0123456789abcdef0123456789abcdeg", "0123456789abcdef0123456789abcdef/x"] {
        let ended = home.run(["why", id]);
        assert_eq!(ended.status, 2, "{id}: {}", ended.err);
        assert!(ended.err.contains("32 hexadecimal digits"), "{id}: {}", ended.err);
    }
    let ended = home.run(["why", "0123456789abcdef0123456789abcdef", "--socket", &home.text("nobody")]);
    assert_eq!(ended.status, 4, "{}", ended.err);
}

fn what_the_node_does_not_know_is_said() {
    let (home, socket) = started();
    let id = "0123456789abcdef0123456789abcdef/put7";
    let ended = home.run(["why", id, "--socket", &socket]);
    assert_eq!(ended.status, 1, "{}", ended.err);
    assert!(ended.err.contains(id) && ended.err.contains("knows nothing of"), "{}", ended.err);
    home.run(["stop", "--socket", &socket]);
}
