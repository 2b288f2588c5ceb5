//! The real program: nodes and control stores are started, queried, joined and stopped, and nothing stays
//! behind.

use crate::home::{self, Home, SMALL, await_that, end_of, kill, segments};
use std::io::{BufRead, BufReader};
use std::process::{Child, Command};
use std::time::Duration;
use tharsis::observe;
use tharsis_protos::handshake::Question;

/// Starts a node in the background, and returns its output.
fn start(home: &Home, words: &[&str]) -> home::Ended {
    let ended = home.run([&["start"], words, &SMALL].concat());
    assert_eq!(ended.status, 0, "{}", ended.err);
    ended
}

/// A control store in the foreground and its address.
fn control_store(home: &Home, words: &[&str]) -> (Child, String, String) {
    let mut child = home.spawn([&["gcs"], words].concat());
    let mut line = String::new();
    BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    let line = line.trim_end().trim_end_matches('.').to_owned();
    let (cluster, address) =
        line.strip_prefix("Control store of cluster ").unwrap().split_once(" at ").unwrap();
    (child, cluster.to_owned(), address.to_owned())
}

/// Starts in this home that claim memory; none if there is no folder for claims.
fn claims(home: &Home) -> Option<usize> {
    let mut folders = std::fs::read_dir(home.path("")).unwrap().flatten();
    folders.find_map(|folder| Some(std::fs::read_dir(folder.path().join("claims")).ok()?.count()))
}

#[test]
fn a_head_starts_tells_how_it_is_and_stops_without_a_trace() {
    let home = Home::new();
    let started = start(&home, &["--head", "--num-cpus", "3", "--labels", "zone=a"]);
    for part in ["tharsis::init().address(\"auto\")", "tharsis start --address 127.0.0.1:", "tharsis stop"] {
        assert!(started.out.contains(part), "{part} missing in: {}", started.out);
    }
    let shown = home.paste(&started.after("See how it is:"));
    for part in ["3 CPU", "[zone=a]", "16 MiB", "0 workers"] {
        assert!(shown.out.contains(part), "{part} missing in: {}", shown.out);
    }
    let report = home.status(None);
    assert_eq!(report["nodes"].as_array().unwrap().len(), 1);
    assert_eq!(report["store"]["capacity_bytes"], 16 << 20);
    assert_eq!(report["pending"].as_array().unwrap().len(), 0);
    assert!(report["address"].as_str().unwrap().starts_with("127.0.0.1:"));

    let processes = home.processes();
    assert_eq!(processes.len(), 1, "a node without a job is one process");
    assert!(!segments(&processes).is_empty());
    let stopped = home.paste(&started.after("Stop it:"));
    assert_eq!(stopped.status, 0, "{}", stopped.err);
    assert!(stopped.out.contains("has stopped"), "{}", stopped.out);
    home.assert_clean(&processes);
    home.run(["status"]).assert_refused(4, &["no node answers", "tharsis start"]);
    let stopped = home.run(["stop"]);
    assert!(stopped.status == 0 && stopped.out.contains("Nothing to stop"), "{}{}", stopped.out, stopped.err);
}

#[test]
fn a_second_node_joins_with_the_line_that_the_first_one_printed() {
    let home = Home::new();
    let head = start(&home, &["--head"]);
    let joined = home.paste(&format!("{} --store 16MiB", head.after("Join with another node:")));
    assert_eq!(joined.status, 0, "{}", joined.err);
    // A third node joins with the line that the second one printed.
    let third = home.paste(&format!("{} --store 16MiB", joined.after("Join with another node:")));
    assert_eq!(third.status, 0, "{}", third.err);
    home.await_nodes(None, 3);
    let processes = home.processes();
    assert_eq!(processes.len(), 3);
    for ended in [&third, &joined] {
        assert!(home.paste(&ended.after("See how it is:")).out.contains("0 of 16 MiB"));
        assert_eq!(home.paste(&ended.after("Stop it:")).status, 0);
    }
    home.await_nodes(None, 1);
    assert_eq!(home.run(["stop"]).status, 0);
    home.assert_clean(&processes);
}

#[test]
fn a_head_that_stops_says_whom_it_leaves_behind() {
    let home = Home::new();
    start(&home, &["--head"]);
    let (address, socket) =
        (home.status(None)["address"].as_str().unwrap().to_owned(), home.text("b/node.sock"));
    start(&home, &["--address", &address, "--socket", &socket]);
    home.await_nodes(None, 2);
    let stopped = home.run(["stop"]);
    for part in ["has stopped", "run on: 1.", &address, "tharsis stop"] {
        assert!(stopped.out.contains(part), "{part}: {}", stopped.out);
    }
    let stopped = home.run(["stop", "--socket", &socket]);
    assert_eq!((stopped.status, stopped.out.lines().count()), (0, 1), "{}{}", stopped.out, stopped.err);
}

#[test]
fn two_nodes_of_a_machine_do_not_offer_its_memory_twice() {
    let home = Home::new();
    start(&home, &["--head"]);
    let (head, socket) = (home.status(None), home.text("b/node.sock"));
    let address = head["address"].as_str().unwrap();
    let of = |socket: &str| {
        let report = home.status(Some(socket));
        report["nodes"][0]["total"].as_str().unwrap().to_owned()
    };
    assert!(head["nodes"][0]["total"].as_str().unwrap().contains("memory"), "{head}");
    start(&home, &["--address", address, "--socket", &socket]);
    assert!(!of(&socket).contains("memory"), "{}", of(&socket));
    // An amount that is told is offered.
    let third = home.text("c/node.sock");
    start(&home, &["--address", address, "--socket", &third, "--memory-limit", "64MiB"]);
    assert!(of(&third).contains("48 MiB memory"), "{}", of(&third));
    for socket in [&socket, &third] {
        assert_eq!(home.run(["stop", "--socket", socket]).status, 0);
    }
    assert_eq!(home.run(["stop"]).status, 0);
}

#[test]
fn control_store_and_nodes_are_started_apart() {
    let home = Home::new();
    let (control, _, address) = control_store(&home, &["--lease-ttl", "3s"]);
    let sockets = [home.text("a/node.sock"), home.text("b/node.sock")];
    let nodes = sockets.each_ref().map(|socket| {
        home.spawn([&["node", "--address", &address, "--socket", socket], &SMALL[..]].concat())
    });
    for socket in &sockets {
        await_that("the node answers", || home.run(["status", "--socket", socket]).status == 0);
        home.await_nodes(Some(socket), 2);
    }
    let processes = home.processes();
    for node in nodes {
        kill(node.id(), "TERM");
        let ended = end_of(node);
        assert_eq!((ended.status, ended.err.as_str()), (0, ""));
    }
    kill(control.id(), "INT");
    let ended = end_of(control);
    assert_eq!((ended.status, ended.err.as_str()), (0, ""));
    home.assert_clean(&processes);
}

#[test]
fn a_node_that_is_asked_while_it_ends_warns_of_nobody() {
    let home = Home::new();
    let socket = home.path("a/node.sock");
    let node = home.spawn([&["node", "--head", "--socket", &home.text("a/node.sock")], &SMALL[..]].concat());
    let ask = || observe::ask(&socket, Question::Status).is_ok();
    await_that("the node answers", ask);
    let ended = std::thread::scope(|scope| {
        let askers: [_; 8] = std::array::from_fn(|_| scope.spawn(|| while ask() {}));
        kill(node.id(), "TERM");
        let ended = end_of(node);
        askers.into_iter().for_each(|asker| asker.join().unwrap());
        ended
    });
    assert_eq!((ended.status, ended.err.as_str()), (0, ""));
}

#[test]
fn a_control_store_with_a_file_is_the_same_cluster_after_a_restart() {
    let home = Home::new();
    let file = home.text("tables");
    let (first, cluster, _) = control_store(&home, &["--state", &file]);
    let parts = ["in use by another process", "tables"];
    home.run(["gcs", "--state", &file]).assert_refused(5, &parts);
    home.run([&["start", "--head", "--state", &file], &SMALL[..]].concat()).assert_refused(5, &parts);
    home.run([&["node", "--head", "--state", &file], &SMALL[..]].concat()).assert_refused(5, &parts);
    kill(first.id(), "KILL");
    drop(first.wait_with_output());
    let (second, again, _) = control_store(&home, &["--state", &file]);
    assert_eq!(cluster, again);
    kill(second.id(), "TERM");
    assert_eq!(end_of(second).status, 0);
}

#[test]
fn a_node_outlives_the_crash_and_the_return_of_its_control_store() {
    let home = Home::new();
    let words = ["--state", &home.text("tables"), "--lease-ttl", "2s"];
    let (first, cluster, address) = control_store(&home, &words);
    let node = home.spawn([&["node", "--address", &address], &SMALL[..]].concat());
    await_that("the node answers", || home.run(["status"]).status == 0);
    let before = home.status(None);
    kill(first.id(), "KILL");
    drop(first.wait_with_output());
    // Longer than a lease: no node is declared dead while the store is away.
    std::thread::sleep(Duration::from_secs(3));
    assert_eq!(home.status(None), before);
    let port = address.rsplit_once(':').unwrap().1;
    let (second, again, _) = control_store(&home, &[&words[..], &["--port", port]].concat());
    assert_eq!(cluster, again);
    let socket = home.text("b/node.sock");
    let joined = home.run([&["start", "--address", &address, "--socket", &socket], &SMALL[..]].concat());
    assert_eq!(joined.status, 0, "{}", joined.err);
    home.await_nodes(None, 2);
    std::thread::sleep(Duration::from_secs(3));
    assert_eq!(home.status(Some(&socket))["nodes"].as_array().unwrap().len(), 2, "both renew their leases");
    let processes = home.processes();
    assert_eq!(home.run(["stop", "--socket", &socket]).status, 0);
    assert_eq!(home.run(["stop"]).status, 0);
    assert_eq!(end_of(node).status, 0);
    kill(second.id(), "TERM");
    assert_eq!(end_of(second).status, 0);
    home.assert_clean(&processes);
}

/// The start waits as long as its node does, and says for whom.
#[test]
fn a_start_waits_for_a_head_that_is_slow() {
    let home = Home::new();
    start(&home, &["--head", "--lease-ttl", "60s"]);
    let (head, socket) = (home.status(None), home.text("b/node.sock"));
    let (pid, address) = (head["pid"].as_u64().unwrap() as u32, head["address"].as_str().unwrap());
    let member = home.spawn([&["start", "--address", address, "--socket", &socket], &SMALL[..]].concat());
    // The start has asked the head, and the node has not.
    let children = format!("/proc/{0}/task/{0}/children", member.id());
    while std::fs::read_to_string(&children).is_ok_and(|children| children.is_empty()) {
        std::hint::spin_loop();
    }
    kill(pid, "STOP");
    std::thread::sleep(Duration::from_secs(17));
    kill(pid, "CONT");
    let member = end_of(member);
    assert_eq!(member.status, 0, "{}{}", member.out, member.err);
    // Unless the node was faster than the signal.
    if !member.err.is_empty() {
        assert!(
            member.err.contains("waits for the head at") && member.err.contains(address),
            "{}",
            member.err
        );
    }
    home.await_nodes(Some(&socket), 2);
    assert_eq!(home.run(["stop", "--socket", &socket]).status, 0);
    assert_eq!(home.run(["stop"]).status, 0);
}

/// A store that is restored to a time before its members joined does not know them, so they must end.
#[test]
fn a_node_that_is_younger_than_a_restored_store_ends_itself() {
    let home = Home::new();
    let file = home.text("tables");
    let (first, _, address) = control_store(&home, &["--state", &file, "--lease-ttl", "1s"]);
    kill(first.id(), "TERM");
    assert_eq!(end_of(first).status, 0);
    std::fs::copy(&file, home.path("snapshot")).unwrap();
    let port = address.rsplit_once(':').unwrap().1;
    let (second, _, _) = control_store(&home, &["--state", &file, "--lease-ttl", "1s", "--port", port]);
    let node = home.spawn([&["node", "--address", &address], &SMALL[..]].concat());
    await_that("the node answers", || home.run(["status"]).status == 0);
    kill(second.id(), "TERM");
    assert_eq!(end_of(second).status, 0);
    std::fs::copy(home.path("snapshot"), &file).unwrap();
    let processes = home.processes();
    let (third, _, _) = control_store(&home, &["--state", &file, "--lease-ttl", "1s", "--port", port]);
    end_of(node).assert_refused(1, &["declared node", "dead"]);
    kill(third.id(), "TERM");
    assert_eq!(end_of(third).status, 0);
    home.assert_clean(&processes);
}

#[test]
fn of_starts_at_the_same_time_one_wins_and_the_others_name_it() {
    let home = Home::new();
    let starts: Vec<_> = (0..4).map(|_| home.spawn([&["start", "--head"], &SMALL[..]].concat())).collect();
    let ended: Vec<_> = starts.into_iter().map(end_of).collect();
    let winners = ended.iter().filter(|ended| ended.status == 0).count();
    assert_eq!(winners, 1, "{:?}", ended.iter().map(|e| &e.err).collect::<Vec<_>>());
    for loser in ended.iter().filter(|ended| ended.status != 0) {
        loser.assert_refused(5, &["AlreadyRunning", &home.status(None)["pid"].to_string()]);
    }
    let processes = home.processes();
    assert_eq!(processes.len(), 1);
    assert_eq!(home.run(["stop"]).status, 0);
    home.assert_clean(&processes);
}

#[test]
fn ctrl_c_ends_a_node_in_the_foreground_and_leaves_nothing() {
    let home = Home::new();
    let node = home.spawn([&["node", "--head"], &SMALL[..]].concat());
    await_that("the node answers", || home.run(["status"]).status == 0);
    await_that("a node that is up has no claim", || claims(&home) == Some(0));
    let processes = home.processes();
    kill(node.id(), "INT");
    assert_eq!(end_of(node).status, 0);
    home.assert_clean(&processes);
}

#[test]
fn a_node_starts_where_one_was_killed() {
    let home = Home::new();
    let mut node = home.spawn([&["node", "--head"], &SMALL[..]].concat());
    await_that("the node answers", || home.run(["status"]).status == 0);
    let killed = home.processes();
    node.kill().unwrap();
    node.wait().unwrap();
    // It leaves its segments behind; the next node of this user removes them.
    start(&home, &["--head"]);
    assert_eq!(segments(&killed), Vec::<String>::new(), "no segment of a killed node stays");
    assert_eq!(home.run(["stop"]).status, 0);
}

#[test]
fn a_failed_start_prints_the_cause() {
    use std::os::unix::fs::PermissionsExt;
    let home = Home::new();
    let open = home.path("open");
    std::fs::create_dir(&open).unwrap();
    std::fs::set_permissions(&open, std::fs::Permissions::from_mode(0o777)).unwrap();
    let socket = home.text("open/node.sock");
    let ended = home.run([&["start", "--head", "--socket", &socket], &SMALL[..]].concat());
    ended.assert_refused(2, &["did not start", "mode 0700", "777"]);
    let ended = home.run(["start", "--head", "--store", "900TiB"]);
    ended.assert_refused(6, &["--store", "900TiB", "more than the memory"]);
    assert!(home.processes().is_empty());
}

/// Asserts that neither a head nor a control store starts with this file, for this reason.
fn assert_no_state(home: &Home, state: &str, status: i32, reason: &str) {
    for words in [&[&["start", "--head"], &SMALL[..]].concat()[..], &["gcs"]] {
        let refused = home.run([words, &["--state", state]].concat());
        refused.assert_refused(status, &[state, reason]);
        assert!(!refused.err.contains("Disconnected"), "{}", refused.err);
    }
    assert!(home.processes().is_empty());
}

#[test]
fn a_state_file_that_is_none_is_named_with_the_reason() {
    let home = Home::new();
    std::fs::create_dir(home.path("folder")).unwrap();
    std::fs::write(home.path("text"), "not a file of tables\n".repeat(1000)).unwrap();
    std::os::unix::fs::symlink(home.path("text"), home.path("link")).unwrap();
    for (name, reason) in [
        ("folder", "directory"),
        ("absent/state", "No such file or directory"),
        ("text", "no file of tables"),
        ("link", "it is a link"),
        ("../../../../../../../../dev/null", "no regular file"),
    ] {
        assert_no_state(&home, &home.text(name), 2, reason);
    }
    let kept = std::fs::read_to_string(home.path("text")).unwrap();
    assert!(kept.starts_with("not a file of tables\n"), "it is not changed");
}

#[test]
fn a_disk_without_room_for_the_tables_is_named() {
    let home = Home::new();
    let disk = home.path("disk");
    std::fs::create_dir(&disk).unwrap();
    let mount = Command::new("mount").args(["-t", "tmpfs", "-o", "size=16k", "none"]).arg(&disk).output();
    if !mount.is_ok_and(|mount| mount.status.success()) {
        return tharsis_trials::not_run("no right to mount a file system");
    }
    let refused = std::panic::catch_unwind(|| assert_no_state(&home, &home.text("disk/state"), 6, "no room"));
    let _unmounted = Command::new("umount").arg(&disk).status();
    refused.unwrap();
}

#[test]
fn the_version_is_text_or_json() {
    let home = Home::new();
    let text = home.run(["version"]);
    assert!(text.out.starts_with("tharsis 0."), "{}", text.out);
    let json: serde_json::Value = serde_json::from_str(&home.run(["version", "--json"]).out).unwrap();
    assert_eq!(json["version"], env!("CARGO_PKG_VERSION"));
    assert!(json["protocol"].is_u64());
}
