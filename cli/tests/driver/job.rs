//! `tharsis job` at real nodes: programs run, are followed and stopped, and what is known of them afterwards.

use crate::Behaviour;
use crate::home::{Ended, Home, SMALL, await_that, end_of, kill, without_settings};
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::process::{Command, ExitCode, Stdio};
use std::time::Duration;
use tharsis::{init, remote};
use tharsis_object_store::local_socket;

/// Set for the program that a test submits, which is this one.
const SUBMITTED: &str = "TEST_OF_JOBS_IS_SUBMITTED";

#[remote]
fn square(x: u64) -> u64 {
    x * x
}

/// The open files that the process of a task may have.
#[remote]
fn open_files() -> String {
    let limits = procfs::process::Process::myself().and_then(|process| process.limits()).unwrap();
    format!("{:?}", limits.max_open_files.soft_limit)
}

pub const ALL: &[Behaviour] = behaviours![
    a_program_runs_and_its_output_is_kept,
    a_submitted_driver_finds_its_node,
    programs_and_workers_get_the_limit_on_open_files_that_their_node_was_started_with,
    whoever_follows_ends_as_the_program_does,
    output_is_followed_while_it_is_written,
    a_stopped_program_takes_its_children_along,
    a_program_ends_with_its_node,
    a_drain_lets_programs_end,
    nodes_of_containers_start_again_and_leave_those_beside_them_alone,
    records_and_output_outlive_a_head,
    a_program_runs_on_the_node_that_is_named,
    what_cannot_be_is_refused,
];

/// Runs as the program that a test submits, if this process is one.
pub fn run_as_program() -> Option<ExitCode> {
    std::env::var_os(SUBMITTED).map(|_| drive())
}

/// The submitted program.
fn drive() -> ExitCode {
    let runtime = init().address("auto").start().unwrap();
    println!("the square is {}", square::remote(12).get_timeout(60.0).unwrap());
    if std::env::var(SUBMITTED).is_ok_and(|asked| asked == "limit") {
        println!("a task may open {} files", open_files::remote().get_timeout(60.0).unwrap());
    }
    drop(runtime);
    ExitCode::SUCCESS
}

fn started() -> Home {
    let home = Home::new();
    let head = home.run([&["start", "--head", "--num-cpus", "1"], &SMALL[..]].concat());
    assert_eq!(head.status, 0, "{}", head.err);
    home
}

/// Submits a line for a shell with a name.
fn submit(home: &Home, name: &str, line: &str) -> Ended {
    home.run(["job", "submit", "--name", name, "--", "sh", "-c", line])
}

fn record(home: &Home, name: &str) -> Value {
    let ended = home.run(["job", "status", name, "--json"]);
    assert_eq!(ended.status, 0, "{}", ended.err);
    serde_json::from_str(&ended.out).unwrap()
}

fn await_state(home: &Home, name: &str, state: &str) {
    await_that(state, || record(home, name)["state"] == state);
}

fn runs(pid: &str) -> bool {
    procfs::process::Process::new(pid.trim().parse().unwrap())
        .and_then(|process| process.stat())
        .is_ok_and(|stat| !matches!(stat.state, 'Z' | 'X'))
}

fn a_program_runs_and_its_output_is_kept() {
    let home = started();
    let file = home.text("seen");
    let line = "echo first; echo second >&2; echo $GREETING $THARSIS_SUBMISSION; pwd > $SEEN";
    let (seen, folder) = (format!("SEEN={file}"), home.text("."));
    let words =
        ["job", "submit", "--name", "one", "--dir", &folder, "--env", "GREETING=hello", "--env", &seen];
    let submitted = home.run([&words[..], &["--", "sh", "-c", line]].concat());
    assert_eq!((submitted.status, submitted.out.trim()), (0, "one"), "{}", submitted.err);
    await_state(&home, "one", "succeeded");
    let kept = home.run(["job", "logs", "one"]);
    assert_eq!((kept.status, kept.out.as_str()), (0, "first\nsecond\nhello one\n"), "{}", kept.err);
    assert_eq!(home.run(["job", "logs", "one", "--tail", "1"]).out, "hello one\n");
    assert_eq!(
        std::fs::read_to_string(&file).unwrap().trim(),
        std::fs::canonicalize(&folder).unwrap().display().to_string()
    );
    let one = record(&home, "one");
    assert!(one["status"] == 0 && one["ended_unix_ms"].is_u64(), "{one}");
    let shown = home.run(["job", "status", "one"]);
    assert!(shown.out.starts_with("one succeeded\n  program  sh -c"), "{}", shown.out);
    // The program itself is known by its path as well, and gets a name.
    let made = home.run(["job", "submit", "--", "/bin/true"]);
    assert!(made.out.starts_with("true-"), "{}{}", made.out, made.err);
    let list = home.run(["job", "list"]);
    let rows: Vec<&str> = list.out.lines().collect();
    assert!(rows.len() == 3 && rows[1].starts_with("true-") && rows[2].starts_with("one"), "{}", list.out);
    home.run(["stop"]);
}

fn a_submitted_driver_finds_its_node() {
    let home = Home::new();
    let socket = home.text("elsewhere/node.sock");
    let words = ["start", "--head", "--num-cpus", "1", "--socket", &socket];
    assert_eq!(home.run([&words[..], &SMALL[..]].concat()).status, 0);
    let this = std::env::current_exe().unwrap().display().to_string();
    let variable = format!("{SUBMITTED}=1");
    let words = ["job", "submit", "--socket", &socket, "--name", "squares", "--follow", "--env", &variable];
    let followed = home.run([&words[..], &["--", &this]].concat());
    assert_eq!(
        (followed.status, followed.out.as_str()),
        (0, "squares\nthe square is 144\n"),
        "{}",
        followed.err
    );
    home.run(["stop", "--socket", &socket]);
}

fn programs_and_workers_get_the_limit_on_open_files_that_their_node_was_started_with() {
    let home = Home::new();
    let head = home.paste("ulimit -Sn 700; exec tharsis start --head --num-cpus 1 --store 16MiB");
    assert_eq!(head.status, 0, "{}", head.err);
    let this = std::env::current_exe().unwrap().display().to_string();
    let line = format!("ulimit -Sn; echo [$THARSIS_OPEN_FILES]; {this}");
    let variable = format!("{SUBMITTED}=limit");
    let words = ["job", "submit", "--follow", "--name", "all", "--env", &variable, "--", "sh", "-c", &line];
    let followed = home.run(words);
    let expected = "all\n700\n[]\nthe square is 144\na task may open Value(700) files\n";
    assert_eq!((followed.status, followed.out.as_str()), (0, expected), "{}", followed.err);
    home.run(["stop"]);
}

fn whoever_follows_ends_as_the_program_does() {
    let home = started();
    let follow = |name: &str, line: &str| {
        home.run(["job", "submit", "--follow", "--name", name, "--", "sh", "-c", line])
    };
    let good = follow("good", "echo done");
    assert_eq!((good.status, good.out.as_str(), good.err.as_str()), (0, "good\ndone\n", ""));
    let bad = follow("bad", "echo no; exit 7");
    assert_eq!((bad.status, bad.out.as_str()), (7, "bad\nno\n"));
    assert!(bad.err.contains("\"bad\" failed (status 7)"), "{}", bad.err);
    follow("killed", "kill -KILL $$").assert_refused(137, &["\"killed\" failed (signal 9)"]);
    assert_eq!(record(&home, "bad")["status"], 7);
    assert_eq!(record(&home, "killed")["signal"], 9);
    home.run(["stop"]);
}

fn output_is_followed_while_it_is_written() {
    let home = started();
    let gate = home.text("gate");
    let line = format!("echo begun; while [ ! -e {gate} ]; do sleep 0.02; done; echo over");
    assert_eq!(submit(&home, "slow", &line).status, 0);
    let mut follower = home.spawn(["job", "logs", "--follow", "slow"]);
    let mut lines = BufReader::new(follower.stdout.take().unwrap()).lines();
    assert_eq!(lines.next().unwrap().unwrap(), "begun");
    assert_eq!(record(&home, "slow")["state"], "running");
    std::fs::write(&gate, "").unwrap();
    assert_eq!(lines.next().unwrap().unwrap(), "over");
    assert!(lines.next().is_none(), "it ends with the program");
    assert_eq!(end_of(follower).status, 0);
    home.run(["stop"]);
}

fn a_stopped_program_takes_its_children_along() {
    let home = started();
    submit(&home, "polite", "sleep 600 & echo $!; wait");
    submit(&home, "stubborn", "trap '' TERM; sleep 600 & echo $!; while true; do sleep 0.1; done");
    for (name, signal) in [("polite", 15), ("stubborn", 9)] {
        let mut child = String::new();
        await_that("its child is told", || {
            child = home.run(["job", "logs", name]).out;
            child.ends_with('\n')
        });
        assert!(runs(&child));
        let stopped = home.run(["job", "stop", name, "--grace", "500ms"]);
        assert!(stopped.status == 0 && stopped.out.contains("was stopped"), "{}{}", stopped.out, stopped.err);
        await_that("its child is gone", || !runs(&child));
        let record = record(&home, name);
        assert_eq!((&record["state"], &record["signal"]), (&"stopped".into(), &signal.into()));
    }
    let again = home.run(["job", "stop", "polite"]);
    assert!(again.status == 0 && again.out.contains("was stopped"), "{}{}", again.out, again.err);
    home.run(["stop"]);
}

fn a_program_ends_with_its_node() {
    let home = started();
    let socket = home.text("b/node.sock");
    let address = home.status(None)["address"].as_str().unwrap().to_owned();
    let member = |socket: &str| {
        let words = ["start", "--address", &address, "--socket", socket];
        assert_eq!(home.run([&words[..], &SMALL[..]].concat()).status, 0);
        home.await_nodes(None, 2);
        home.status(Some(socket))["pid"].as_u64().unwrap() as u32
    };
    let pid = member(&socket);
    let submit = |name: &str| {
        let words = ["job", "submit", "--socket", &socket, "--name", name, "--", "sleep", "600"];
        assert_eq!(home.run(words).status, 0);
        record(&home, name)["pid"].to_string()
    };
    let killed = submit("killed");
    kill(pid, "KILL");
    await_that("it is killed with its node", || !runs(&killed));
    await_state(&home, "killed", "lost");
    home.run(["job", "logs", "killed"]).assert_refused(4, &["NodeGone", "killed"]);
    home.await_nodes(None, 1);
    member(&socket);
    assert_eq!(home.run(["job", "logs", "killed"]).status, 0, "the next node there has its output");
    let stopped = submit("stopped");
    assert_eq!(home.run(["stop", "--socket", &socket]).status, 0);
    assert!(!runs(&stopped), "it is stopped with its node");
    assert_eq!(record(&home, "stopped")["state"], "stopped");
    home.run(["stop"]);
}

/// They may be between two drivers, or have none.
fn a_drain_lets_programs_end() {
    let home = started();
    let (gate, socket) = (home.text("gate"), home.text("b/node.sock"));
    let address = home.status(None)["address"].as_str().unwrap().to_owned();
    let words = ["start", "--address", &address, "--socket", &socket];
    assert_eq!(home.run([&words[..], &SMALL[..]].concat()).status, 0);
    home.await_nodes(None, 2);
    let line = format!("while [ ! -e {gate} ]; do sleep 0.02; done; echo over");
    let words = ["job", "submit", "--socket", &socket, "--name", "long", "--", "sh", "-c", &line];
    assert_eq!(home.run(words).status, 0);
    let drain = home.spawn(["drain", "--socket", &socket, "--deadline", "80s"]);
    await_that("it drains", || home.run(["nodes"]).out.contains("draining"));
    std::thread::sleep(std::time::Duration::from_secs(1));
    assert_eq!(record(&home, "long")["state"], "running");
    std::fs::write(&gate, "").unwrap();
    let drained = end_of(drain);
    assert_eq!(drained.status, 0, "{}{}", drained.out, drained.err);
    assert_eq!(record(&home, "long")["state"], "succeeded");
    home.run(["stop"]);
}

/// A head as process 1 of a PID namespace of its own, whose segments lie beside those of others.
fn contained(home: &Home) -> std::process::Child {
    let node = home.command([&["node", "--head"], &SMALL[..]].concat());
    let mut command = Command::new("unshare");
    command.args(["--pid", "--fork", "--mount-proc", "--kill-child"]);
    command.arg(node.get_program()).args(node.get_args()).stdin(Stdio::null()).stderr(Stdio::piped());
    without_settings(&mut command).envs(home.folders()).spawn().unwrap()
}

/// A board that was left behind by a process of the same number, or is that of a living one, is in the way of
/// nobody.
fn nodes_of_containers_start_again_and_leave_those_beside_them_alone() {
    let mut made = Command::new("unshare");
    made.args(["--pid", "--fork", "--mount-proc", "true"]);
    if !made.output().is_ok_and(|output| output.status.success()) {
        return tharsis_trials::not_run("no right to make a PID namespace");
    }
    let (home, beside) = (Home::new(), started());
    let socket = home.path(&format!("tharsis-{}/node/node.sock", rustix::process::geteuid().as_raw()));
    let (this, variable) = (std::env::current_exe().unwrap().display().to_string(), format!("{SUBMITTED}=1"));
    for round in 0..3 {
        let mut node = contained(&home);
        await_that("the node answers", || {
            if let Some(status) = node.try_wait().unwrap() {
                let mut said = String::new();
                let _read = std::io::Read::read_to_string(&mut node.stderr.take().unwrap(), &mut said);
                panic!("round {round}: {status}: {said}");
            }
            local_socket::connect(&socket, Duration::from_secs(20)).is_ok()
        });
        // The other one starts drivers and workers as before.
        let name = format!("squares-{round}");
        let words = ["job", "submit", "--name", &name, "--follow", "--env", &variable, "--", &this];
        let ran = beside.run(words);
        assert!(ran.status == 0 && ran.out.contains("the square is 144"), "{}{}", ran.out, ran.err);
        for pid in home.processes() {
            kill(pid, "KILL");
        }
        node.wait().unwrap();
    }
    beside.run(["stop"]);
}

fn records_and_output_outlive_a_head() {
    let home = Home::new();
    let state = home.text("state");
    let head = |port: &str| {
        let words = ["start", "--head", "--state", &state, "--port", port];
        let started = home.run([&words[..], &SMALL[..]].concat());
        assert_eq!(started.status, 0, "{}", started.err);
    };
    head("0");
    let address = home.status(None)["address"].as_str().unwrap().to_owned();
    let socket = home.text("b/node.sock");
    let words = ["start", "--address", &address, "--socket", &socket];
    assert_eq!(home.run([&words[..], &SMALL[..]].concat()).status, 0);
    home.await_nodes(None, 2);
    submit(&home, "before", "echo kept");
    await_state(&home, "before", "succeeded");
    let gate = home.text("gate");
    let line = format!("while [ ! -e {gate} ]; do sleep 0.02; done; echo over");
    let words = ["job", "submit", "--socket", &socket, "--name", "during", "--", "sh", "-c", &line];
    assert_eq!(home.run(words).status, 0);
    kill(home.status(None)["pid"].as_u64().unwrap() as u32, "KILL");
    // It ends while nobody can be told.
    std::fs::write(&gate, "").unwrap();
    home.run(["job", "list", "--address", &address]).assert_refused(4, &["no control store answers"]);
    head(address.rsplit(':').next().unwrap());
    assert_eq!(record(&home, "before")["state"], "succeeded");
    assert_eq!(home.run(["job", "logs", "before"]).out, "kept\n");
    await_state(&home, "during", "succeeded");
    assert_eq!(home.run(["job", "logs", "during"]).out, "over\n");
    submit(&home, "before", "true").assert_refused(5, &["NameTaken", "\"before\""]);
    home.run(["stop", "--socket", &socket]);
    home.run(["stop"]);
}

fn a_program_runs_on_the_node_that_is_named() {
    let home = started();
    let socket = home.text("b/node.sock");
    let address = home.status(None)["address"].as_str().unwrap().to_owned();
    let words = ["start", "--address", &address, "--socket", &socket, "--num-cpus", "2"];
    assert_eq!(home.run([&words[..], &SMALL[..]].concat()).status, 0);
    home.await_nodes(None, 2);
    let id = |socket| home.status(socket)["node"].as_str().unwrap().to_owned();
    let (member, head) = (id(Some(socket.as_str())), id(None));
    let line = ["--", "sh", "-c", "echo $THARSIS_SOCKET"];
    let named =
        home.run([&["job", "submit", "-f", "--name", "named", "--node", &member], &line[..]].concat());
    assert_eq!(named.out, format!("named\n{socket}\n"), "{}", named.err);
    let most =
        home.run([&["job", "submit", "-f", "--name", "most", "--address", &address], &line[..]].concat());
    assert_eq!(most.out, format!("most\n{socket}\n"), "{}", most.err);
    assert_eq!(record(&home, "most")["node"], member.as_str());
    home.run([&["job", "submit", "--name", "own"], &line[..]].concat());
    assert_eq!(record(&home, "own")["node"], head.as_str());
    let line = ["--", "sh", "-c", "echo $THARSIS_JOB_QUOTA"];
    let quota = ["job", "submit", "-f", "--name", "bounded", "--quota", "memory=1KiB, cpus=1.5"];
    assert_eq!(home.run([&quota[..], &line[..]].concat()).out, "bounded\ncpus=1.5,memory=1024\n");
    home.run([&["job", "submit", "--node", "00000000000000ff"], &line[..]].concat())
        .assert_refused(2, &["UnknownNode", "00000000000000ff"]);
    home.run(["stop", "--socket", &socket]);
    home.run(["stop"]);
}

fn what_cannot_be_is_refused() {
    let home = Home::new();
    home.run(["job", "list"]).assert_refused(4, &["no node answers"]);
    home.run(["job", "submit", "--", "true"]).assert_refused(4, &["no node answers"]);
    home.run(["job", "status", "x", "--address", "127.0.0.1:1"])
        .assert_refused(4, &["no control store answers"]);
    home.run(["job", "submit"]).assert_refused(2, &["PROGRAM"]);
    home.run(["job", "submit", "--quota", "cpus=many", "--", "true"])
        .assert_refused(2, &["quota", "cpus=many"]);
    home.run(["job", "submit", "--env", "=1", "--", "true"]).assert_refused(2, &["NAME=VALUE"]);
    drop(home);
    let home = started();
    for command in ["status", "stop", "logs"] {
        for name in ["nobody", "no/body"] {
            home.run(["job", command, name]).assert_refused(2, &["UnknownProgram", name]);
        }
    }
    home.run(["job", "submit", "--name", "a/b", "--", "true"]).assert_refused(2, &["InvalidArgument", "a/b"]);
    let refused = |words: &[&str], status, parts: &[&str]| {
        home.run([&["job", "submit", "--name", "gone"], words].concat()).assert_refused(status, parts);
    };
    refused(&["--", "./no-such-program"], 2, &["ProgramNotFound", "no-such-program"]);
    refused(&["--", "no-such-program"], 2, &["ProgramNotFound"]);
    refused(&["--dir", "/no/such/folder", "--", "true"], 2, &["FolderNotFound", "/no/such/folder"]);
    let text = home.text("text");
    std::fs::write(&text, "no program").unwrap();
    refused(&["--", &text], 1, &["NotAProgram"]);
    refused(&["--env", "THARSIS_NODE=1", "--", "true"], 2, &["THARSIS_NODE"]);
    home.run(["job", "status", "gone"]).assert_refused(2, &["UnknownProgram"]);
    assert_eq!(submit(&home, "gone", "true").status, 0, "the name is free");
    home.run(["stop"]);
}
