//! `tharsis tasks`, `groups`, `jobs`, `workers`, `objects` and `nodes` at a real node with a real driver.

use crate::Behaviour;
use crate::home::{Home, SOON};
use serde_json::Value;
use std::time::{Duration, Instant};
use tharsis::{Bundle, actor, init, placement_group, put, remote};

#[remote(num_cpus = 2)]
fn slow(number: u64) -> u64 {
    std::thread::sleep(Duration::from_secs(600));
    number
}

#[remote(num_cpus = 1)]
fn double(number: u64) -> u64 {
    2 * number
}

struct Hits;

#[actor]
impl Hits {
    fn new() -> Self {
        Self
    }

    fn hit(&mut self) -> u64 {
        1
    }
}

pub const ALL: &[Behaviour] =
    behaviours![lists_show_what_a_driver_has_under_way, a_column_that_does_not_exist_is_wrong_input,];

/// The rows of a list.
fn rows(home: &Home, socket: &str, words: &[&str]) -> Vec<Value> {
    let ended = home.run(words.iter().copied().chain(["--json", "--socket", socket]));
    assert_eq!(ended.status, 0, "{}", ended.err);
    let list: Value = serde_json::from_str(&ended.out).unwrap();
    list["rows"].as_array().unwrap().clone()
}

fn lists_show_what_a_driver_has_under_way() {
    let home = Home::new();
    let socket = home.text("node/node.sock");
    let words = ["start", "--head", "--store", "16MiB", "--num-cpus", "2", "--socket", &socket];
    let ended = home.run(words);
    assert_eq!(ended.status, 0, "{}", ended.err);
    let runtime = init().address(socket.as_str()).job_name("nightly").start_local().unwrap();
    let entered = runtime.enter();
    let hits = Hits::options().create("hits").unwrap();
    assert_eq!(hits.hit().get().unwrap(), 1);
    let actors = rows(&home, &socket, &["actors", "--filter", "state=alive"]);
    assert_eq!(actors.len(), 1, "{actors:#?}");
    assert_eq!((&actors[0]["name"], &actors[0]["restarts"]), (&"hits".into(), &0.into()));
    assert_eq!(actors[0]["node"], runtime.node().to_string());
    drop(hits);
    let until = Instant::now() + SOON;
    while !rows(&home, &socket, &["actors"]).is_empty() {
        assert!(Instant::now() < until, "the actor does not end");
        std::thread::sleep(Duration::from_millis(50));
    }
    let running = slow::remote(1);
    let until = Instant::now() + SOON;
    while rows(&home, &socket, &["tasks", "--filter", "state=running"]).is_empty() {
        assert!(Instant::now() < until, "nothing runs");
        std::thread::sleep(Duration::from_millis(50));
    }
    let waiting = double::remote(&running);
    let queued: Vec<_> = (0..3_u64).map(double::remote).collect();
    let large = put(&vec![7_u8; 1 << 20]).unwrap();

    let tasks = rows(&home, &socket, &["tasks"]);
    let state = |name: &str| tasks.iter().filter(|task| task["state"] == name).count();
    assert_eq!([state("running"), state("waiting"), state("queued")], [1, 1, 3], "{tasks:#?}");
    let first = tasks.iter().find(|task| task["state"] == "running").unwrap();
    assert_eq!(first["task"], running.id().object.task.to_string());
    assert!(first["name"].as_str().unwrap().ends_with("slow"), "{first:#}");
    assert!(first["call_site"].as_str().unwrap().contains("lists.rs"), "{first:#}");

    let oldest = rows(&home, &socket, &["tasks", "--sort", "-age_ms", "--limit", "1"]);
    assert_eq!(oldest.len(), 1);
    assert_eq!(oldest[0]["task"], first["task"]);
    let others = rows(&home, &socket, &["tasks", "--filter", "name!=slow", "--filter", "state!=waiting"]);
    assert!(others.iter().all(|task| task["state"] != "waiting"), "{others:#?}");

    let workers = rows(&home, &socket, &["workers", "--filter", "state=running"]);
    assert_eq!(workers.len(), 1, "{workers:#?}");
    assert_eq!((&workers[0]["task"], &workers[0]["worker"]), (&first["task"], &first["worker"]));
    assert!(workers[0]["pid"].as_u64().unwrap() != u64::from(std::process::id()));

    let gang = placement_group([Bundle::new().num_cpus(64.0)]).detached(true).create_named("gang").unwrap();
    let until = Instant::now() + SOON;
    while rows(&home, &socket, &["groups", "--filter", "state=infeasible"]).is_empty() {
        assert!(Instant::now() < until, "the group is not planned");
        std::thread::sleep(Duration::from_millis(50));
    }
    let groups = rows(&home, &socket, &["groups"]);
    assert_eq!(groups.len(), 1, "{groups:#?}");
    assert_eq!((&groups[0]["name"], &groups[0]["detached"]), (&"gang".into(), &"yes".into()));
    assert_eq!((&groups[0]["bundles"], &groups[0]["placed"]), (&1.into(), &0.into()));
    assert!(groups[0]["reason"].as_str().unwrap().contains("64 CPU"), "{groups:#?}");
    gang.remove().unwrap();
    while !rows(&home, &socket, &["groups"]).is_empty() {
        assert!(Instant::now() < until, "the group is not removed");
        std::thread::sleep(Duration::from_millis(50));
    }

    let jobs = rows(&home, &socket, &["jobs"]);
    assert_eq!(jobs.len(), 1, "{jobs:#?}");
    assert_eq!((&jobs[0]["name"], &jobs[0]["driver_pid"]), (&"nightly".into(), &std::process::id().into()));
    assert_eq!((&jobs[0]["tasks"], &jobs[0]["running"]), (&5.into(), &1.into()));

    let objects = rows(&home, &socket, &["objects"]);
    assert_eq!(objects[0]["object"], large.id().object.to_string(), "{objects:#?}");
    assert!(1 << 20 <= objects[0]["bytes"].as_u64().unwrap() && objects[0]["references"] == 1);
    let nodes = rows(&home, &socket, &["nodes"]);
    assert!(
        nodes.len() == 1 && nodes[0]["address"] == home.status(Some(socket.as_ref()))["address"],
        "{nodes:?}"
    );
    let text = home.run(["tasks", "--filter", "state=running", "--socket", &socket]).out;
    assert!(text.starts_with("task ") && text.lines().count() == 2, "{text}");

    drop((running, waiting, queued, large, entered));
    drop(runtime);
    home.run(["stop", "--socket", &socket]);
}

fn a_column_that_does_not_exist_is_wrong_input() {
    let home = Home::new();
    for list in ["actors", "groups", "jobs", "nodes", "objects", "tasks", "workers"] {
        for words in [["--sort", "colour"], ["--filter", "colour=red"]] {
            let ended = home.run([list].iter().chain(&words));
            assert_eq!(ended.status, 2, "{}", ended.err);
            assert!(ended.err.contains(&format!("{list} have no column \"colour\"")), "{}", ended.err);
        }
    }
}
