//! A head with `--host`: machines that join with a token, tokens and machines that are revoked, and callers
//! that are refused.

use crate::home::{self, Ended, Home, SMALL};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, SystemTime};

/// A machine with a head, the address that members name, and the line that the head printed for them.
struct Head {
    machine: Home,
    address: String,
    line: String,
}

fn head() -> Head {
    let machine = Home::new();
    let started = machine.run([&["start", "--head", "--host", "127.0.0.1"], &SMALL[..]].concat());
    assert_eq!(started.status, 0, "{}", started.err);
    let line = started.after("Join another machine:");
    let address = line.split("--address ").nth(1).unwrap().split(' ').next().unwrap().to_owned();
    Head { machine, address, line }
}

impl Head {
    fn token(&self, options: &[&str]) -> String {
        let made = self.machine.run([&["token", "create"], options].concat());
        assert_eq!(made.status, 0, "{}", made.err);
        made.out.trim().to_owned()
    }

    /// Another machine tries to join.
    fn join(&self, machine: &Home, token: Option<&str>) -> Ended {
        let token = token.map(|token| ["--token", token]);
        let words = ["start", "--address", &self.address].into_iter().chain(SMALL);
        machine.run(words.chain(token.into_iter().flatten()))
    }

    fn tokens(&self) -> serde_json::Value {
        let listed = self.machine.run(["token", "list", "--json"]);
        assert_eq!(listed.status, 0, "{}", listed.err);
        serde_json::from_str(&listed.out).unwrap()
    }
}

#[test]
fn the_line_that_the_head_prints_joins_another_machine_and_a_second_start_needs_no_token() {
    let head = head();
    let member = Home::new();
    let joined = member.paste(&format!("{} {}", head.line, SMALL.join(" ")));
    assert_eq!(joined.status, 0, "{}", joined.err);
    head.machine.await_nodes(None, 2);
    assert_eq!(member.run(["stop"]).status, 0);
    head.machine.await_nodes(None, 1);
    assert_eq!(head.join(&member, None).status, 0);
    head.machine.await_nodes(None, 2);
}

#[test]
fn tokens_of_a_head_that_admits_by_a_secret_are_refused_or_warned_of() {
    let machine = Home::new();
    let start = |words: &[&str]| {
        assert_eq!(machine.run([&["start", "--head"], words, &SMALL].concat()).status, 0);
    };
    start(&[]);
    machine.run(["token", "create"]).assert_refused(2, &["holds no authority", "--host"]);
    assert_eq!(machine.run(["stop"]).status, 0);
    start(&["--host", "127.0.0.1"]);
    let made = machine.run(["token", "create"]);
    assert_eq!((made.status, made.err.as_str()), (0, ""));
    assert_eq!(machine.run(["stop"]).status, 0);
    // The authority stays, and is not that of this head.
    start(&[]);
    let made = machine.run(["token", "create"]);
    assert!(made.status == 0 && made.err.contains("admits by a secret"), "{}", made.err);
    assert_eq!(machine.run(["stop"]).status, 0);
}

#[test]
fn the_settings_of_a_head_say_that_it_offers_no_cpus() {
    let home = Home::new();
    let cpus = |host: Option<&str>| {
        let mut command = home.command(["config", "show", "--json"]);
        command.envs(host.map(|host| ("THARSIS_HOST", host)));
        let shown: serde_json::Value =
            serde_json::from_str(&Ended::of(command.output().unwrap()).out).unwrap();
        shown["num_cpus"]["source"].as_str().unwrap().to_owned()
    };
    assert_eq!(cpus(None), "default");
    assert!(cpus(Some("127.0.0.1")).contains("a head offers none"), "{}", cpus(Some("127.0.0.1")));
}

/// A head with an authority at a loopback address, where others use a secret.
#[test]
fn the_owner_of_a_head_submits_to_it_or_hears_that_it_runs_nothing() {
    let submit = ["job", "submit", "--follow", "--name", "one", "--", "echo", "hello"];
    let Head { machine, .. } = head();
    let refused = machine.run(submit);
    refused.assert_refused(1, &["NoResources", "--num-cpus"]);
    assert!(!refused.err.contains("TLS"), "{}", refused.err);
    assert_eq!(machine.run(["job", "list"]).status, 0);
    assert_eq!(machine.run(["stop"]).status, 0);

    for words in [&["--host", "127.0.0.1"][..], &["--host", "localhost", "--bind", "0.0.0.0"], &[]] {
        // Without a host it admits by the secret, whatever authority the folder has.
        let started = machine.run([&["start", "--head", "--num-cpus", "1"], words, &SMALL].concat());
        assert_eq!(started.status, 0, "{words:?}: {}", started.err);
        let ran = machine.run(submit);
        assert_eq!((ran.status, ran.out.as_str()), (0, "one\nhello\n"), "{words:?}: {}", ran.err);
        let address = machine.status(None)["address"].as_str().unwrap().to_owned();
        let record = machine.run(["job", "status", "one", "--address", &address]);
        assert_eq!(record.status, 0, "{words:?}: {}", record.err);
        assert_eq!(machine.run(["stop"]).status, 0);
    }
}

#[test]
fn a_machine_without_a_token_is_told_how_to_get_one() {
    let head = head();
    let stranger = Home::new();
    head.join(&stranger, None).assert_refused(4, &["TLS required", "--token"]);
    // Of the cluster's secret there is nothing to know on a head that admits by certificates.
    assert!(!head.machine.path("tharsis-0/cluster.secret").exists());
    assert_eq!(head.machine.status(None)["nodes"].as_array().unwrap().len(), 1);
}

#[test]
fn a_damaged_token_is_malformed_and_a_guessed_expired_or_revoked_one_admits_nobody() {
    let head = head();
    let stranger = Home::new();
    let token = head.token(&[]);
    let cut = &token[..token.len() - 1];
    for damaged in [cut, &format!("{token} "), &format!("tok{token}"), "", "th1...", &token.replace('.', "-")]
    {
        head.join(&stranger, Some(damaged)).assert_refused(3, &["MalformedToken"]);
    }
    let mut parts: Vec<&str> = token.split('.').collect();
    parts[2] = "0123456789abcdef0123456789abcdef";
    head.join(&stranger, Some(&parts.join("."))).assert_refused(4, &["UnknownToken"]);
    let short = head.token(&["--expires", "1s"]);
    std::thread::sleep(std::time::Duration::from_millis(2100));
    head.join(&stranger, Some(&short)).assert_refused(4, &["ExpiredToken"]);
    let number = token.split('.').nth(1).unwrap();
    assert_eq!(head.machine.run(["token", "revoke", number]).status, 0);
    head.join(&stranger, Some(&token)).assert_refused(4, &["UnknownToken"]);
    head.machine.run(["token", "revoke", number]).assert_refused(2, &["Unknown"]);
    assert_eq!(head.machine.status(None)["nodes"].as_array().unwrap().len(), 1);
}

#[test]
fn a_token_of_another_cluster_admits_nobody() {
    let (ours, theirs) = (head(), head());
    let stranger = Home::new();
    let token = theirs.token(&[]);
    ours.join(&stranger, Some(&token)).assert_refused(4, &["TLS"]);
}

#[test]
fn a_revoked_machine_leaves_and_does_not_come_back() {
    let head = head();
    let member = Home::new();
    assert_eq!(head.join(&member, Some(&head.token(&[]))).status, 0);
    head.machine.await_nodes(None, 2);
    let node = member.status(None)["node"].as_str().unwrap().to_owned();
    let revoked = head.machine.run(["node", "revoke", &node]);
    assert_eq!(revoked.status, 0, "{}", revoked.err);
    assert!(revoked.out.contains("Removed 1 of its nodes"), "{}", revoked.out);
    assert!(revoked.out.contains("admits nobody any more"), "{}", revoked.out);
    // Of the tokens there is that of the head's line, with which nobody joined.
    assert_eq!(head.tokens()["tokens"].as_array().unwrap().len(), 1);
    head.machine.await_nodes(None, 1);
    home::await_that("the member has ended", || member.processes().is_empty());
    head.join(&member, None).assert_refused(4, &["revoked"]);
    let machines = head.tokens()["machines"].clone();
    assert_eq!(machines.as_array().unwrap().len(), 1);
    assert_eq!(machines[0]["is_revoked"], true);
}

#[test]
fn a_machine_of_a_driver_brings_no_resources_and_one_that_only_looks_no_node() {
    let head = head();
    let refused = head.join(&Home::new(), Some(&head.token(&["--role", "driver"])));
    assert_ne!(refused.status, 0);
    assert!(refused.err.contains("without resources"), "{}", refused.err);
    let refused = head.join(&Home::new(), Some(&head.token(&["--role", "observer"])));
    refused.assert_refused(2, &["a machine with the role observer cannot run a node"]);
    assert_eq!(head.machine.status(None)["nodes"].as_array().unwrap().len(), 1);
}

/// The lines of `docs/operations.md`, at a head.
#[test]
fn the_metrics_of_a_head_are_read_with_the_lines_of_the_page() {
    let there = |tool: &str| Command::new(tool).arg("--help").output().is_ok();
    if !["bash", "curl", "openssl"].into_iter().all(there) {
        tharsis_trials::not_run("it needs bash, curl and openssl");
        return;
    }
    let page = home::root().join("docs/operations.md");
    let page = std::fs::read_to_string(page).unwrap();
    let from = page.find("openssl x509").unwrap();
    let lines = &page[from..from + page[from..].find("```").unwrap()];
    let head = head();
    let scraper = Home::new();
    let token = head.token(&["--role", "observer"]);
    let joined = scraper.run(["join", "--address", &head.address, "--token", &token]);
    assert_eq!(joined.status, 0, "{}", joined.err);
    let files = files(&scraper.path("tharsis/identity"));
    let folder = files.iter().find(|file| file.ends_with("machine.der")).unwrap().parent().unwrap();
    let id = head.machine.status(None)["node"].as_str().unwrap().to_owned();
    for name in [format!("n{id}.peer.tharsis"), "control.tharsis".to_owned()] {
        let lines = lines.replace("HOST:PORT", &head.address).replace("NAME", &name);
        let ran = Command::new("bash").args(["-e", "-c", &lines]).current_dir(folder).output().unwrap();
        let (out, err) = (String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
        assert!(ran.status.success() && out.contains("tharsis_build_info{"), "{name}: {out} {err}");
    }
}

#[test]
fn a_machine_that_only_looks_lists_the_members_with_their_addresses() {
    let head = head();
    let (member, observer) = (Home::new(), Home::new());
    assert_eq!(head.join(&member, Some(&head.token(&[]))).status, 0);
    head.machine.await_nodes(None, 2);
    let token = head.token(&["--role", "observer"]);
    assert_eq!(observer.run(["join", "--address", &head.address, "--token", &token]).status, 0);
    let listed = |machine: &Home, words: &[&str]| {
        let ended = machine.run([&["nodes", "--json", "--sort", "node"], words].concat());
        assert_eq!(ended.status, 0, "{}", ended.err);
        let list: serde_json::Value = serde_json::from_str(&ended.out).unwrap();
        let of = |row: &serde_json::Value| ["node", "address", "total"].map(|name| row[name].clone());
        list["rows"].as_array().unwrap().iter().map(of).collect::<Vec<_>>()
    };
    let seen = listed(&observer, &["--address", &head.address]);
    assert_eq!(seen, listed(&head.machine, &[]));
    let own = member.status(None);
    assert!(seen.iter().any(|row| row[0] == own["node"] && row[1] == own["address"]), "{seen:?}");
    observer.run(["nodes"]).assert_refused(4, &["no node answers"]);
}

/// Commands are all that it runs, so they renew its certificate, once it is a day old.
#[test]
fn a_machine_without_a_node_joins_and_renews_its_certificate() {
    let head = head();
    for role in ["operator", "observer"] {
        let machine = Home::new();
        let token = head.token(&["--role", role]);
        let joined = machine.run(["join", "--address", &head.address, "--token", &token]);
        assert_eq!(joined.status, 0, "{}", joined.err);
        let mut found = files(&machine.path("tharsis/identity"));
        found.retain(|file| file.ends_with("machine.der"));
        let [certificate] = &found[..] else { panic!("{found:?}") };
        let logs = ["logs", "--address", &head.address];
        let first = std::fs::read(certificate).unwrap();
        assert_eq!(machine.run(logs).status, 0);
        assert!(std::fs::read(certificate).unwrap() == first, "it is new");

        let aged = |hours: u64| {
            let file = std::fs::File::options().write(true).open(certificate).unwrap();
            file.set_modified(SystemTime::now() - Duration::from_secs(3600 * hours)).unwrap();
        };
        aged(25);
        assert_eq!(machine.run(logs).status, 0);
        let second = std::fs::read(certificate).unwrap();
        assert!(second != first, "{role}: it is renewed");
        aged(25);
        let ended = machine.run(logs);
        assert_eq!((ended.status, ended.err.as_str()), (0, ""));

        let machines = head.tokens()["machines"].as_array().unwrap().clone();
        let own = machines.iter().find(|machine| machine["role"] == role).unwrap();
        assert_eq!(head.machine.run(["node", "revoke", own["machine"].as_str().unwrap()]).status, 0);
        aged(25);
        let third = std::fs::read(certificate).unwrap();
        machine.run(logs).assert_refused(4, &["not renewed", "revoked"]);
        assert!(std::fs::read(certificate).unwrap() == third);
    }
}

#[test]
fn a_machine_without_a_node_follows_another_key_of_the_authority() {
    let head = head();
    let machine = Home::new();
    let token = head.token(&["--role", "operator"]);
    let joined = machine.run(["join", "--address", &head.address, "--token", &token]);
    assert_eq!(joined.status, 0, "{}", joined.err);
    assert_eq!(head.machine.run(["authority", "rotate"]).status, 0);
    for file in files(&machine.path("tharsis/identity")).iter().filter(|file| file.ends_with("machine.der")) {
        let file = std::fs::File::options().write(true).open(file).unwrap();
        file.set_modified(SystemTime::now() - Duration::from_secs(25 * 3600)).unwrap();
    }
    let logs = ["logs", "--address", &head.address];
    assert_eq!(machine.run(logs).status, 0);
    assert_eq!(head.machine.run(["authority", "retire", "--force"]).status, 0);
    home::await_that("the head has heard of it", || head.machine.run(["nodes"]).status == 0);
    let ended = machine.run(logs);
    assert_eq!((ended.status, ended.err.as_str()), (0, ""));
}

#[test]
fn keys_and_tokens_are_open_to_nobody_else() {
    let head = head();
    let member = Home::new();
    assert_eq!(head.join(&member, Some(&head.token(&[]))).status, 0);
    let mut keys = 0;
    for home in [&head.machine, &member] {
        for file in files(&home.path("tharsis/identity")) {
            keys += 1;
            assert_eq!((mode(&file), mode(file.parent().unwrap())), (0o600, 0o700), "{}", file.display());
        }
    }
    assert!(8 <= keys, "{keys}");
    // One that was opened to others is refused before it is used.
    assert_eq!(member.run(["stop"]).status, 0);
    let clusters = std::fs::read_dir(member.path("tharsis/identity/clusters")).unwrap().flatten();
    let key = clusters.map(|entry| entry.path().join("machine.key")).next().unwrap();
    std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o644)).unwrap();
    let refused = head.join(&member, None);
    assert_ne!(refused.status, 0);
    assert!(refused.err.contains("machine.key"), "{}", refused.err);
}

/// A kubelet gives the group of `fsGroup` all that is in a volume when it mounts it for the next pod.
#[test]
fn a_head_starts_again_from_a_volume_that_was_opened_to_its_group() {
    let machine = Home::new();
    let state = machine.text("volume/state");
    let (socket, identities) = (machine.text("volume/node/node.sock"), machine.text("volume/identity"));
    let words =
        ["--socket", &socket, "--identity-dir", &identities, "--state", &state, "--host", "127.0.0.1"];
    std::fs::create_dir(machine.path("volume")).unwrap();
    for round in 0..3 {
        let started = machine.run([&["start", "--head"], &words[..], &SMALL].concat());
        assert_eq!(started.status, 0, "round {round}: {}", started.err);
        for file in files(&machine.path("volume/identity")) {
            assert_eq!(mode(&file), 0o600, "round {round}: {}", file.display());
        }
        assert_eq!((mode(&machine.path("volume/state")), mode(&machine.path("volume/node"))), (0o600, 0o700));
        assert_eq!(machine.run(["stop", "--socket", &socket]).status, 0);
        let mut opened = Command::new("sh");
        opened.args(["-c", "chmod -R g+rwX . && find . -type d -exec chmod g+s {} +"]);
        assert!(opened.current_dir(machine.path("volume")).status().unwrap().success());
    }
}

/// All files below a folder.
fn files(folder: &Path) -> Vec<PathBuf> {
    let (mut found, mut folders) = (Vec::new(), vec![folder.to_owned()]);
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).unwrap().flatten() {
            let kind = entry.file_type().unwrap();
            let into = if kind.is_dir() { &mut folders } else { &mut found };
            into.push(entry.path());
        }
    }
    found
}

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn no_token_and_no_key_is_in_a_log_or_in_the_arguments_of_a_process() {
    let head = head();
    let member = Home::new();
    let token = head.token(&[]);
    let secret = token.split('.').nth(2).unwrap();
    let mut start = member.command(["start", "--address", &head.address, "--log-level", "trace"]);
    let started = Ended::of(start.args(SMALL).env("THARSIS_TOKEN", &token).output().unwrap());
    assert_eq!(started.status, 0, "{}", started.err);
    head.machine.await_nodes(None, 2);
    let mut logs = 0;
    for home in [&head.machine, &member] {
        for pid in home.processes() {
            let read = |file: &str| std::fs::read(format!("/proc/{pid}/{file}")).unwrap_or_default();
            for shown in [read("cmdline"), read("environ")] {
                assert!(!String::from_utf8_lossy(&shown).contains(secret), "process {pid}");
            }
        }
        for log in files(&home.path("")).iter().filter(|file| file.extension() == Some("log".as_ref())) {
            logs += 1;
            assert!(!std::fs::read_to_string(log).unwrap().contains(secret), "{}", log.display());
        }
    }
    assert!(0 < logs, "there were logs to look at");
}

#[test]
fn tokens_of_both_keys_admit_while_a_key_is_replaced_and_then_those_of_the_new_one() {
    let head = head();
    let early = head.token(&[]);
    head.machine.run(["authority", "retire"]).assert_refused(2, &["not being replaced"]);
    let rotated = head.machine.run(["authority", "rotate"]);
    assert_eq!(rotated.status, 0, "{}", rotated.err);
    head.machine.run(["authority", "rotate"]).assert_refused(2, &["retire the former one first"]);
    let late = head.token(&[]);
    for token in [&early, &late] {
        assert_eq!(head.join(&Home::new(), Some(token)).status, 0);
    }
    head.machine.run(["authority", "retire"]).assert_refused(2, &["rely on the former key"]);
    let retired = head.machine.run(["authority", "retire", "--force"]);
    assert_eq!(retired.status, 0, "{}", retired.err);
    // The head looks for another key every 2 s.
    std::thread::sleep(std::time::Duration::from_secs(4));
    head.join(&Home::new(), Some(&early)).assert_refused(4, &["TLS"]);
    let joined = head.join(&Home::new(), Some(&late));
    assert_eq!(joined.status, 0, "{}", joined.err);
}
