//! `tharsis drain` and `tharsis stop --drain` with real nodes: who leaves, who is refused, and what is said.

use crate::home::{Home, SMALL, await_that, end_of, kill};
use std::time::{Duration, Instant};

/// A head and a member of one machine, with the id of the member and the address of the head.
struct Pair {
    home: Home,
    socket: String,
    member: String,
    head: String,
    address: String,
}

impl Pair {
    fn new() -> Pair {
        let home = Home::new();
        let head = home.run([&["start", "--head"], &SMALL[..]].concat());
        assert_eq!(head.status, 0, "{}", head.err);
        let socket = home.text("b/node.sock");
        let address = home.status(None)["address"].as_str().unwrap().to_owned();
        let words = ["start", "--address", &address, "--socket", &socket];
        let member = home.run([&words[..], &SMALL[..]].concat());
        assert_eq!(member.status, 0, "{}", member.err);
        home.await_nodes(None, 2);
        let id = |socket| home.status(socket)["node"].as_str().unwrap().to_owned();
        let (member, head) = (id(Some(socket.as_str())), id(None));
        Pair { home, socket, member, head, address }
    }
}

#[test]
fn a_node_is_drained_by_its_id_from_another_one() {
    let Pair { home, member, .. } = Pair::new();
    let shown = home.run(["nodes"]);
    assert!(shown.out.contains(&member) && shown.out.contains("serving"), "{}", shown.out);
    let before = home.processes();
    let begin = Instant::now();
    let drained = home.run(["drain", &member]);
    assert_eq!(drained.status, 0, "{}", drained.err);
    assert!(begin.elapsed() < Duration::from_secs(5), "an idle node leaves at once: {:?}", begin.elapsed());
    assert!(drained.out.contains(&format!("Node {member} has left.")), "{}", drained.out);
    home.await_nodes(None, 1);
    await_that("its process has ended", || home.processes().len() + 1 == before.len());
    home.run(["drain", &member]).assert_refused(2, &["UnknownNode", &member]);
    assert_eq!(home.run(["stop"]).status, 0);
    home.assert_clean(&before);
}

#[test]
fn a_node_is_drained_by_the_address_of_the_control_store() {
    let Pair { home, member, address, socket, .. } = Pair::new();
    home.run(["drain", "--address", &address]).assert_refused(2, &["NODE"]);
    let drained = home.run(["drain", &member, "--address", &address, "--deadline", "5s"]);
    assert_eq!(drained.status, 0, "{}", drained.err);
    home.await_nodes(None, 1);
    home.run(["status", "--socket", &socket]).assert_refused(4, &["no node answers"]);
}

#[test]
fn a_node_is_drained_by_its_own_socket() {
    let Pair { home, member, socket, .. } = Pair::new();
    let drained = home.run(["drain", "--socket", &socket]);
    assert!(drained.status == 0 && drained.out.contains(&member), "{}{}", drained.out, drained.err);
    home.await_nodes(None, 1);
    home.run(["drain", "--socket", &socket]).assert_refused(4, &["no node answers"]);
}

#[test]
fn a_head_is_drained_only_if_it_is_to_stop() {
    let Pair { home, head, member, address, socket } = Pair::new();
    home.run(["drain"]).assert_refused(1, &["IsHead", &head, "stop --drain"]);
    home.run(["drain", &head]).assert_refused(1, &["IsHead"]);
    home.run(["drain", &head, "--address", &address]).assert_refused(1, &["IsHead"]);
    assert!(home.run(["nodes"]).out.contains("serving"), "it does not drain");
    assert_eq!(home.run(["drain", &member]).status, 0);
    let stopped = home.run(["stop", "--drain=5s"]);
    assert!(stopped.status == 0 && stopped.out.contains("has left"), "{}{}", stopped.out, stopped.err);
    home.run(["status"]).assert_refused(4, &["no node answers"]);
    home.run(["status", "--socket", &socket]).assert_refused(4, &["no node answers"]);
}

#[test]
fn what_is_no_node_is_refused() {
    let home = Home::new();
    for id in ["7", "not-a-node", "00000000000000zz"] {
        home.run(["drain", id]).assert_refused(2, &["16 hexadecimal digits"]);
    }
    home.run(["drain"]).assert_refused(4, &["no node answers"]);
    home.run(["drain", "--deadline", "0s"]).assert_refused(2, &["deadline"]);
}

#[test]
fn sigterm_ends_an_idle_node_with_status_0() {
    let home = Home::new();
    let node = home.spawn([&["node", "--head", "--drain-timeout", "20s"], &SMALL[..]].concat());
    await_that("the node answers", || home.run(["status"]).status == 0);
    let begin = Instant::now();
    kill(node.id(), "TERM");
    let ended = end_of(node);
    assert_eq!((ended.status, ended.err.as_str()), (0, ""));
    assert!(begin.elapsed() < Duration::from_secs(5), "it waited for nothing: {:?}", begin.elapsed());
}
