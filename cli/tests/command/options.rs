//! Options of nodes that show in what they do: addresses by name, the log and its files, threads.

use crate::home::{self, Ended, Home, SMALL, await_that};
use serde_json::Value;
use std::ffi::OsStr;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

/// A name that stands for nothing outside this test.
const HEAD_NAME: &str = "head.tharsis.test";

fn start(home: &Home, words: &[&str]) -> Ended {
    let started = home.run([&["start"], words, &SMALL[..]].concat());
    assert_eq!(started.status, 0, "{}", started.err);
    started
}

/// Address and token of the line that a head prints.
fn joining(started: &Ended) -> (String, String) {
    let line = started.after("Join another machine:");
    let words: Vec<&str> = line.split(' ').collect();
    let after = |flag: &str| words[1 + words.iter().position(|word| *word == flag).unwrap()].to_owned();
    (after("--address"), after("--token"))
}

#[test]
fn a_head_listens_on_all_addresses_and_is_known_by_its_name() {
    let (head, member) = (Home::new(), Home::new());
    let started = start(&head, &["--head", "--host", "localhost", "--bind", "0.0.0.0"]);
    let (address, token) = joining(&started);
    assert!(address.starts_with("localhost:"), "{address}");
    assert_eq!(head.status(None)["address"], address);
    // By another name of the same machine as well.
    let port = address.split(':').nth(1).unwrap();
    start(&member, &["--address", &format!("127.0.0.2:{port}"), "--token", &token, "--bind", "0.0.0.0"]);
    let own = member.status(None)["address"].as_str().unwrap().to_owned();
    assert!(own.starts_with("127.0.0."), "{own}");
    for home in [&head, &member] {
        home.await_nodes(None, 2);
    }
}

/// A machine's own list of names, which only the processes in it see.
struct Names<'a> {
    home: &'a Home,
}

impl Names<'_> {
    fn set(&self, address: &str) {
        // The same file: it is mounted.
        let text = format!("127.0.0.1 localhost\n{address} {HEAD_NAME}\n");
        std::fs::write(self.home.path("hosts"), text).unwrap();
    }

    /// Runs the program with this list as `/etc/hosts`.
    fn run<S: AsRef<OsStr>>(&self, words: impl IntoIterator<Item = S>) -> Ended {
        let program = self.home.command(words);
        let mut command = Command::new("unshare");
        let script = "mount --bind \"$HOSTS\" /etc/hosts && exec \"$0\" \"$@\"";
        command.args(["--mount", "sh", "-c", script]).arg(program.get_program()).args(program.get_args());
        command.env("HOSTS", self.home.path("hosts")).stdin(Stdio::null());
        for (name, value) in program.get_envs() {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        Ended::of(command.output().unwrap())
    }
}

fn can_mount() -> bool {
    let can_mount = Command::new("unshare").args(["--mount", "true"]).output();
    let can_mount = can_mount.is_ok_and(|output| output.status.success());
    if !can_mount {
        tharsis_trials::not_run("no list of names of its own could be mounted");
    }
    can_mount
}

/// As Debian's installer writes it into `/etc/hosts`.
#[test]
fn a_head_whose_name_is_loopback_on_its_own_machine_is_reached_at_all_addresses() {
    if !can_mount() {
        return;
    }
    let head = Home::new();
    let names = Names { home: &head };
    names.set("127.0.1.1");
    let started = names.run(["start", "--head", "--host", HEAD_NAME, "--store", "16MiB"]);
    assert_eq!(started.status, 0, "{}", started.err);
    let (address, token) = joining(&started);
    let port = address.rsplit(':').next().unwrap();
    assert_eq!(address, format!("{HEAD_NAME}:{port}"));
    // Another machine has another address for the name.
    let member = Home::new();
    start(&member, &["--address", &format!("127.0.0.2:{port}"), "--token", &token]);
    for home in [&head, &member] {
        home.await_nodes(None, 2);
    }
}

#[test]
fn a_member_finds_a_head_that_came_back_at_another_address_of_its_name() {
    if !can_mount() {
        return;
    }
    let (head, member) = (Home::new(), Home::new());
    let (at_head, at_member) = (Names { home: &head }, Names { home: &member });
    let set = |address: &str| [&at_head, &at_member].map(|names| names.set(address));
    let [port] = tharsis_trials::free_ports();
    let port = port.to_string();
    let state = head.text("state");
    let head_words =
        ["start", "--head", "--host", HEAD_NAME, "--port", &port, "--state", &state, "--store", "16MiB"];
    set("127.0.0.2");
    let started = at_head.run(head_words);
    assert_eq!(started.status, 0, "{}", started.err);
    let (address, token) = joining(&started);
    assert_eq!(address, format!("{HEAD_NAME}:{port}"));
    let member_words = ["start", "--address", &address, "--token", &token, "--host", "127.0.0.1"];
    let joined = at_member.run(member_words.iter().chain(&SMALL));
    assert_eq!(joined.status, 0, "{}", joined.err);
    head.await_nodes(None, 2);
    for pid in head.processes() {
        home::kill(pid, "KILL");
    }
    await_that("the head is gone", || head.processes().is_empty());
    set("127.0.0.3");
    let again = at_head.run(head_words);
    assert_eq!(again.status, 0, "{}", again.err);
    let id = head.status(None)["node"].clone();
    await_that("the member sees the new head", || {
        member.status(None)["nodes"].as_array().unwrap().iter().any(|node| node["node"] == id)
    });
    head.await_nodes(None, 2);
}

/// Lines of a log; all must be objects.
fn lines(path: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(path).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn a_log_of_json_is_renamed_when_it_is_full_and_so_many_files_stay() {
    let home = Home::new();
    let log = home.text("own.log");
    let options = ["--log-file", &log, "--log-format", "json", "--log-level", "trace"];
    let size = ["--log-file-size", "4KiB", "--log-files", "2"];
    start(&home, &[&["--head"], &options[..], &size[..]].concat());
    await_that("the log is renamed", || {
        home.status(None);
        home.path("own.log.1").exists()
    });
    assert_eq!(home.run(["stop"]).status, 0);
    let mut found = Vec::new();
    for part in ["own.log", "own.log.1"] {
        found.extend(lines(&home.path(part)));
        assert!(std::fs::metadata(home.path(part)).unwrap().len() <= 2 * 4096, "{part}");
    }
    assert!(found.iter().all(|line| line["level"].is_string() && line["timestamp"].is_string()), "{found:?}");
    assert!(!home.path("own.log.2").exists());
}

#[test]
fn a_node_has_as_many_network_threads_as_it_was_told() {
    let (head, member) = (Home::new(), Home::new());
    let started = start(&head, &["--head", "--host", "127.0.0.1", "--network-threads", "3"]);
    let (address, token) = joining(&started);
    start(&member, &["--address", &address, "--token", &token]);
    let network_threads = |home: &Home| {
        let pid = home.status(None)["pid"].as_i64().unwrap();
        let tasks = procfs::process::Process::new(i32::try_from(pid).unwrap()).unwrap().tasks().unwrap();
        tasks.flatten().filter(|task| task.stat().is_ok_and(|stat| stat.comm == "network")).count()
    };
    head.await_nodes(None, 2);
    assert_eq!(network_threads(&head), 3);
    // The cluster's own thread does it alone.
    assert_eq!(network_threads(&member), 0);
}

/// A user that owns nothing of ours.
const NOBODY: u32 = 65_534;

/// The socket among the settings that a command shows.
fn socket_of(shown: &Ended) -> String {
    assert_eq!(shown.status, 0, "{}", shown.err);
    let shown: Value = serde_json::from_str(&shown.out).unwrap();
    shown["socket"]["value"].as_str().unwrap().to_owned()
}

#[test]
fn a_node_is_in_the_runtime_folder_of_its_user() {
    let home = Home::new();
    let runtime = home.path("run");
    std::fs::create_dir(&runtime).unwrap();
    std::fs::set_permissions(&runtime, std::fs::Permissions::from_mode(0o700)).unwrap();
    let own = runtime.join("tharsis/node/node.sock");
    let run =
        |words: &[&str]| Ended::of(home.command(words).env("XDG_RUNTIME_DIR", &runtime).output().unwrap());
    let settings = ["config", "show", "--json"];
    assert_eq!(socket_of(&run(&settings)), own.display().to_string());
    let started = run(&[&["start", "--head"][..], &SMALL].concat());
    assert_eq!(started.status, 0, "{}", started.err);
    for folder in [own.parent().unwrap(), &runtime.join("tharsis")] {
        assert_eq!(folder.metadata().unwrap().permissions().mode() & 0o777, 0o700, "{}", folder.display());
    }
    assert!(own.exists() && runtime.join("tharsis/cluster.secret").exists());
    assert_eq!(run(&["status"]).status, 0);
    let stopped = run(&["stop"]);
    assert!(stopped.out.contains("has stopped"), "{}", stopped.out);
    // Others may look into it: it is not used.
    std::fs::set_permissions(&runtime, std::fs::Permissions::from_mode(0o755)).unwrap();
    assert!(!socket_of(&run(&settings)).starts_with(&runtime.display().to_string()));
}

#[test]
fn two_users_of_a_machine_do_not_meet() {
    let home = Home::new();
    if rustix::process::geteuid().as_raw() != 0 {
        return tharsis_trials::not_run("of users, root alone can be another one");
    }
    let shared = home.path(".");
    // As /tmp is.
    std::fs::set_permissions(&shared, std::fs::Permissions::from_mode(0o1777)).unwrap();
    let runtime = home.path("run");
    std::fs::create_dir(&runtime).unwrap();
    std::fs::set_permissions(&runtime, std::fs::Permissions::from_mode(0o700)).unwrap();
    let temporary = home.path("program").parent().unwrap().to_owned();
    // The other user may not reach the program where it was built.
    let program = home.path("program");
    std::fs::copy(env!("CARGO_BIN_EXE_tharsis"), &program).unwrap();
    let run = |words: &[&str], user: u32| {
        let mut command = Command::new(&program);
        home::without_settings(&mut command).args(words).env("XDG_RUNTIME_DIR", &runtime);
        command.env("TMPDIR", &temporary).env("XDG_DATA_HOME", home.path(&user.to_string()));
        Ended::of(command.stdin(Stdio::null()).current_dir("/").uid(user).gid(user).output().unwrap())
    };
    let (as_root, as_nobody) = (|words: &[&str]| run(words, 0), |words: &[&str]| run(words, NOBODY));
    // The runtime folder of one is not that of the other, whatever the variable says.
    let settings = as_nobody(&["config", "show", "--json"]);
    assert_eq!(socket_of(&settings), home.text(&format!("tharsis-{NOBODY}/node/node.sock")));
    let words = [&["start", "--head"][..], &SMALL].concat();
    let first = as_root(&words);
    assert_eq!(first.status, 0, "{}", first.err);
    let second = as_nobody(&words);
    assert_eq!(second.status, 0, "{}", second.err);
    let report = |ended: Ended| -> Value { serde_json::from_str(&ended.out).unwrap() };
    let own = report(as_root(&["status", "--json"]));
    let other = report(as_nobody(&["status", "--json"]));
    for status in [&own, &other] {
        assert_eq!(status["nodes"].as_array().unwrap().len(), 1);
    }
    assert_ne!(own["node"], other["node"]);
    // Nor does one join the other's cluster.
    let socket = home.text(&format!("tharsis-{NOBODY}/b/node.sock"));
    let address = own["address"].as_str().unwrap();
    let refused = as_nobody(&[&["start", "--address", address, "--socket", &socket][..], &SMALL].concat());
    refused.assert_refused(4, &["NotAdmitted"]);
    assert_eq!(as_nobody(&["stop"]).status, 0);
    assert_eq!(as_root(&["stop"]).status, 0);
}
