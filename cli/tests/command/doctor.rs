//! Checks of a machine before a node starts on it: what they say, and that nothing of them stays behind.

use crate::home::{self, Home, SMALL, segments};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs::Permissions;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;

/// Subjects that are checked whatever the settings are.
const ALWAYS: [&str; 10] = [
    "memory",
    "cpus",
    "vectors",
    "huge pages",
    "shared memory",
    "open files",
    "spill",
    "host name",
    "socket",
    "port",
];

/// Rows of the checks of this machine, with a folder of the home to spill to, and the status of the command.
fn checked(home: &Home, words: &[&str]) -> (Vec<Value>, i32) {
    std::fs::create_dir_all(home.path("spill")).unwrap();
    let spill = home.text("spill");
    let words =
        [&["doctor", "--json", "--num-cpus", "1", "--spill-dirs", &spill], words, &SMALL[..]].concat();
    let child = home.spawn(words);
    let process = BTreeSet::from([child.id()]);
    let ended = home::end_of(child);
    assert_eq!(segments(&process), Vec::<String>::new());
    assert_eq!(std::fs::read_dir(home.path("spill")).unwrap().count(), 0);
    let answer: Value = serde_json::from_str(&ended.out).unwrap_or_else(|_| panic!("{}", ended.err));
    let rows = answer["checks"].as_array().unwrap().clone();
    let failed = rows.iter().filter(|row| row["state"] == "failed").count();
    let told = format!("{failed} of {} checks failed", rows.len());
    assert_eq!(ended.err.contains(&told), failed != 0, "{}", ended.err);
    (rows, ended.status)
}

/// The state and the facts of the first row of a name.
fn row<'a>(rows: &'a [Value], name: &str) -> (&'a str, &'a str) {
    let row = rows.iter().find(|row| row["name"] == name).unwrap_or_else(|| panic!("{name}: {rows:?}"));
    (row["state"].as_str().unwrap(), row["found"].as_str().unwrap())
}

#[test]
fn a_machine_that_runs_tests_runs_a_node() {
    let home = Home::new();
    let (rows, status) = checked(&home, &[]);
    assert_eq!(status, 0, "{rows:?}");
    let names: Vec<&str> = rows.iter().map(|row| row["name"].as_str().unwrap()).collect();
    assert_eq!(names, ALWAYS);
    for row in &rows {
        assert!(["ok", "warning"].contains(&row["state"].as_str().unwrap()), "{row}");
        assert_eq!(row["advice"].is_null(), row["state"] == "ok", "{row}");
        assert_eq!(row.as_object().unwrap().len(), 4, "{row}");
    }
    assert!(row(&rows, "spill").1.starts_with(&home.text("spill")), "{rows:?}");
    let shown = home.run(["doctor", "--num-cpus", "1", "--store", "16MiB"]);
    assert_eq!((shown.status, shown.err.as_str()), (0, ""), "{}", shown.out);
    for name in ALWAYS {
        let is_shown = |line: &str| line.get(9..).is_some_and(|rest| rest.starts_with(name));
        assert!(shown.out.lines().any(is_shown), "{name}: {}", shown.out);
    }
    // A look makes no secret and no socket.
    let left: Vec<_> =
        std::fs::read_dir(home.path("")).unwrap().map(|file| file.unwrap().file_name()).collect();
    assert_eq!(left, ["spill"]);
}

#[test]
fn what_a_start_would_be_refused_for_fails_and_the_rest_is_checked() {
    let home = Home::new();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let (rows, status) = checked(&home, &["--port", &port, "--etcd", "http://127.0.0.1:1"]);
    assert_eq!(status, 1, "{rows:?}");
    let (state, found) = row(&rows, "port");
    assert!(state == "failed" && found.contains("AddressInUse") && found.contains(&port), "{found}");
    let (state, found) = row(&rows, "etcd");
    assert!(state == "failed" && found.contains("http://127.0.0.1:1"), "{found}");
    assert_eq!(rows.len(), ALWAYS.len() + 1);
    let none = home.text("none");
    let words = ["doctor", "--json", "--spill-dirs", &none, "--store", "16MiB"];
    let ended = home.run(words);
    ended.assert_refused(1, &["checks failed"]);
    assert!(ended.out.contains("NotFound") && ended.out.contains(&none), "{}", ended.out);
    // Others may enter its folder.
    std::fs::create_dir(home.path("open")).unwrap();
    std::fs::set_permissions(home.path("open"), Permissions::from_mode(0o755)).unwrap();
    let (rows, status) = checked(&home, &["--socket", &home.text("open/node.sock")]);
    let (state, found) = row(&rows, "socket");
    assert!(status == 1 && state == "failed" && found.contains("mode 755"), "{found}");
    // No node has such settings.
    home.run(["doctor", "--num-gpus", "999"]).assert_refused(2, &["--num-gpus 999"]);
    home.run(["doctor", "--store", "1KiB"]).assert_refused(2, &["--store", "smallest"]);
    home.run(["doctor", "--address", "a:1", "--state", "f"]).assert_refused(2, &["--state", "--address"]);
}

#[test]
fn a_member_is_told_whether_its_head_would_admit_it() {
    let (home, stranger) = (Home::new(), Home::new());
    let started = home.run([&["start", "--head"], &SMALL[..]].concat());
    assert_eq!(started.status, 0, "{}", started.err);
    let report = home.status(None);
    let (address, process) = (report["address"].as_str().unwrap(), report["pid"].to_string());
    let (rows, status) = checked(&home, &["--address", address]);
    assert_eq!((status, row(&rows, "head").0), (0, "ok"), "{rows:?}");
    let (state, found) = row(&rows, "socket");
    assert!(state == "warning" && found.contains(&format!("process {process} ")), "{found}");
    let (rows, status) = checked(&stranger, &["--address", address]);
    assert_eq!((status, row(&rows, "head").0), (0, "warning"), "it has no secret yet: {rows:?}");
    assert_eq!(home.run(["stop"]).status, 0);
    let (rows, status) = checked(&home, &["--address", address]);
    assert_eq!((status, row(&rows, "head").0), (1, "failed"), "{rows:?}");
}
