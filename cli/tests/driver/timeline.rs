//! `tharsis timeline` at real nodes: what workers ran, in which attempt, with which outcome, in which row.

use crate::Behaviour;
use crate::home::Home;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;
use tharsis::{NodeId, ObjectRef, actor, init, remote};

#[remote(num_cpus = 1, max_retries = 0)]
fn naps(ms: u64) -> u64 {
    std::thread::sleep(Duration::from_millis(ms));
    ms
}

#[remote(num_cpus = 1, max_retries = 1)]
fn crashes_once(path: String) -> u64 {
    if std::fs::File::create_new(path).is_ok() {
        std::process::exit(1);
    }
    7
}

#[remote(num_cpus = 1, max_retries = 0)]
fn panics(number: u64) -> u64 {
    assert_eq!(number, 0, "on purpose");
    number
}

/// Calls at the desk wait until four are there, and go on together for a while.
struct Desk;

#[actor(max_concurrency = 4)]
impl Desk {
    fn new() -> Self {
        Self
    }

    fn meet(&self, folder: String, number: u64) -> u64 {
        std::fs::write(Path::new(&folder).join(number.to_string()), "").unwrap();
        while std::fs::read_dir(&folder).unwrap().count() < 4 {
            std::thread::sleep(Duration::from_millis(1));
        }
        // The node takes the end of a call for the moment when it hears of it.
        std::thread::sleep(Duration::from_millis(300));
        number
    }
}

pub const ALL: &[Behaviour] = behaviours![
    runs_are_told_with_their_attempt_and_outcome,
    runs_of_all_nodes_are_told_in_rows_without_overlaps,
    a_timeline_of_what_does_not_exist_is_refused,
];

/// A home with a head of one CPU, and the node's socket.
fn started() -> (Home, String) {
    let home = Home::new();
    let socket = home.text("node/node.sock");
    let ended = home.run(["start", "--head", "--store", "16MiB", "--num-cpus", "1", "--socket", &socket]);
    assert_eq!(ended.status, 0, "{}", ended.err);
    (home, socket)
}

/// The events that a command writes.
fn events(home: &Home, socket: &str, words: &[&str]) -> Vec<Value> {
    let ended = home.run([&["timeline", "--socket", socket], words].concat());
    assert_eq!(ended.status, 0, "{}", ended.err);
    let trace: Value = serde_json::from_str(&ended.out).unwrap();
    trace["traceEvents"].as_array().unwrap().clone()
}

/// Those of them that are runs.
fn runs(home: &Home, socket: &str, words: &[&str]) -> Vec<Value> {
    let mut runs = events(home, socket, words);
    runs.retain(|event| event["cat"] == "run");
    runs
}

fn await_all(calls: &[ObjectRef<u64>]) {
    for call in calls {
        call.get_timeout(60.0).unwrap();
    }
}

/// Function, attempt and outcome of each run, in this order.
fn outcomes(runs: &[Value]) -> Vec<(String, u64, String)> {
    let of = |run: &Value| {
        let name = run["name"].as_str().unwrap().rsplit("::").next().unwrap().to_owned();
        let outcome = run["args"]["outcome"].as_str().unwrap().to_owned();
        (name, run["args"]["attempt"].as_u64().unwrap(), outcome)
    };
    let mut all: Vec<_> = runs.iter().map(of).collect();
    all.sort();
    all
}

fn runs_are_told_with_their_attempt_and_outcome() {
    let (home, socket) = started();
    let runtime = init().address(socket.as_str()).start_local().unwrap();
    let entered = runtime.enter();
    let calls = [naps::remote(0), naps::remote(1), naps::remote(2)];
    await_all(&calls);
    let crashed = crashes_once::remote(home.text("crashed"));
    assert_eq!(crashed.get_timeout(60.0).unwrap(), 7);
    assert!(panics::remote(1).get_timeout(60.0).is_err());
    let expected = [
        ("crashes_once", 0, "crashed"),
        ("crashes_once", 1, "returned"),
        ("naps", 0, "returned"),
        ("naps", 0, "returned"),
        ("naps", 0, "returned"),
        ("panics", 0, "failed"),
    ]
    .map(|(name, attempt, outcome)| (name.to_owned(), attempt, outcome.to_owned()));
    let all = runs(&home, &socket, &[]);
    assert_eq!(outcomes(&all), expected, "{all:#?}");
    assert!(all.iter().all(|run| run["args"]["call_site"].as_str().unwrap().contains("timeline.rs")));
    let task = crashed.id().object.task.to_string();
    assert_eq!(outcomes(&runs(&home, &socket, &["--task", &task])), expected[..2]);
    let job = all[0]["args"]["job"].to_string();
    assert_eq!(runs(&home, &socket, &["--job", &job]).len(), 6);
    let jobs = events(&home, &socket, &["--job", &job]).into_iter().filter(|event| event["cat"] == "job");
    let jobs: Vec<Value> = jobs.map(|event| event["args"].clone()).collect();
    assert_eq!(jobs.len(), 1);
    assert_eq!((jobs[0]["job"].to_string(), &jobs[0]["outcome"]), (job.clone(), &"running".into()));
    let nothing = home.run(["timeline", "--socket", &socket, "--job", "4000000"]);
    assert!(nothing.status == 0 && nothing.err.contains("no node remembers"), "{}", nothing.err);
    drop(crashed);
    drop((calls, entered));
    drop(runtime);
    let file = home.text("trace.json");
    let written = home.run(["timeline", "--socket", &socket, "--job", &job, "-o", &file]);
    assert_eq!((written.status, written.out.as_str()), (0, ""), "{}", written.err);
    let trace: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    let left = trace["traceEvents"].as_array().unwrap().iter().filter(|event| event["cat"] == "run");
    assert_eq!(left.count(), 6, "they outlive their job");
    home.run(["stop", "--socket", &socket]);
}

/// The id of the node at a socket.
fn node_of(home: &Home, socket: &str) -> NodeId {
    let status = home.status(Some(socket));
    NodeId(u64::from_str_radix(status["node"].as_str().unwrap(), 16).unwrap())
}

fn runs_of_all_nodes_are_told_in_rows_without_overlaps() {
    let (home, socket) = started();
    let other = home.text("other/node.sock");
    let address = home.status(Some(&socket))["address"].as_str().unwrap().to_owned();
    let words = ["start", "--address", &address, "--store", "16MiB", "--num-cpus", "1", "--socket", &other];
    let joined = home.run(words);
    assert_eq!(joined.status, 0, "{}", joined.err);
    home.await_nodes(Some(&socket), 2);
    let runtime = init().address(socket.as_str()).start_local().unwrap();
    let entered = runtime.enter();
    for at in [&socket, &other] {
        let there = node_of(&home, at);
        let calls: Vec<_> = (0..20).map(|_| naps::options().node(there, false).remote(1)).collect();
        await_all(&calls);
    }
    let folder = home.path("desk");
    std::fs::create_dir(&folder).unwrap();
    let desk = Desk::remote();
    let calls: Vec<_> = (0..4_u64).map(|number| desk.meet(folder.display().to_string(), number)).collect();
    await_all(&calls);

    let all = events(&home, &socket, &[]);
    let nodes = all.iter().filter(|event| event["name"] == "process_name" && event["pid"] != 0);
    assert_eq!(nodes.count(), 2);
    let naps_at = |pid: u64| {
        let is_nap = |run: &&Value| run["pid"] == pid && run["name"].as_str().unwrap().ends_with("naps");
        all.iter().filter(|event| event["cat"] == "run").filter(is_nap).count()
    };
    assert_eq!([naps_at(1), naps_at(2)], [20, 20]);
    let mut rows: BTreeMap<(u64, u64), Vec<(f64, f64)>> = BTreeMap::new();
    let mut desks = BTreeSet::new();
    for run in all.iter().filter(|event| event["cat"] == "run") {
        let row = (run["pid"].as_u64().unwrap(), run["tid"].as_u64().unwrap());
        rows.entry(row).or_default().push((run["ts"].as_f64().unwrap(), run["dur"].as_f64().unwrap()));
        if run["name"].as_str().unwrap().ends_with("meet") {
            desks.insert(row);
        }
    }
    assert_eq!(desks.len(), 4, "calls at the same time have rows: {all:#?}");
    for (row, mut slices) in rows {
        slices.sort_by(|a, b| a.partial_cmp(b).unwrap());
        // Decimals of floats.
        let follow = |two: &[(f64, f64)]| two[0].0 + two[0].1 <= two[1].0 + 0.001;
        assert!(slices.windows(2).all(follow), "{row:?}: {slices:?}");
    }
    let node = node_of(&home, &other).to_string();
    let there = runs(&home, &socket, &["--node", &node, "--address", &address]);
    let pid = pid_of(&all, &node);
    let of_all = all.iter().filter(|event| event["cat"] == "run" && event["pid"] == pid);
    assert_eq!(there.len(), of_all.count());
    drop((calls, desk, entered));
    drop(runtime);
    home.run(["stop", "--socket", &other]);
    home.run(["stop", "--socket", &socket]);
}

/// The process of the trace that is a node.
fn pid_of(events: &[Value], node: &str) -> u64 {
    let is_it = |event: &&Value| event["args"]["name"].as_str().is_some_and(|name| name.contains(node));
    events.iter().find(is_it).unwrap()["pid"].as_u64().unwrap()
}

fn a_timeline_of_what_does_not_exist_is_refused() {
    let (home, socket) = started();
    let nobody = "00000000000000aa";
    home.run(["timeline", "--node", nobody, "--socket", &socket]).assert_refused(2, &["UnknownNode", nobody]);
    home.run(["timeline", "--task", "7", "--socket", &socket]).assert_refused(2, &["--task"]);
    home.run(["timeline", "--socket", "/nowhere/node.sock"]).assert_refused(4, &["no node answers"]);
}
