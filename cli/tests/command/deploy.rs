//! The commands in `deploy/`, run here with other folders, ports and names: the units and the manifests start
//! a head and its member.

use crate::home::{self, Home, await_that, end_of, kill, root};
use std::io::{BufRead, BufReader, Read};
use std::os::unix::net::UnixDatagram;
use std::process::{Child, Stdio};
use tharsis_raylet::cluster::{JOIN_TIME_MAX, TOKEN_TIME_MAX};

fn text(file: &str) -> String {
    std::fs::read_to_string(root().join("deploy").join(file)).unwrap()
}

/// A machine: a home, and what its files and commands say instead.
struct Machine {
    home: Home,
    instead: Vec<(&'static str, String)>,
}

impl Machine {
    fn new(more: &[(&'static str, &str)]) -> Self {
        let home = Home::new();
        let folders = ["/etc/tharsis", "/var/lib/tharsis", "/var/log/tharsis", "/var/run/secrets/tharsis"];
        let mut instead: Vec<_> = folders.map(|path| (path, home.text(&path[1..]))).into();
        // Folders of the control store begin like those of nodes.
        let control =
            ["/var/lib/tharsis-control", "/var/log/tharsis-control"].map(|path| home.text(&path[1..]));
        let made = instead.iter().map(|(_, path)| path.clone()).chain(control);
        made.for_each(|path| std::fs::create_dir_all(path).unwrap());
        instead.extend(more.iter().map(|(name, value)| (*name, (*value).to_owned())));
        Self { home, instead }
    }

    fn here(&self, text: &str) -> String {
        self.instead.iter().fold(text.to_owned(), |text, (name, value)| text.replace(name, value))
    }

    /// Starts the program with these words.
    fn spawn(&self, words: &[String], token: Option<&str>) -> Child {
        let mut command = self.home.command(words);
        command.args(home::SMALL);
        // Manifests name a file of a secret, units a variable.
        match words.iter().find_map(|word| word.strip_prefix("--token-file=")) {
            Some(file) => std::fs::write(file, token.unwrap_or_default()).unwrap(),
            None => {
                command.envs(token.map(|token| ("THARSIS_TOKEN", token)));
            }
        }
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    }

    fn socket(&self) -> String {
        self.here("/var/lib/tharsis/node/node.sock")
    }

    /// Waits until the node of a process answers. A node that has ended will not.
    fn await_node(&self, process: &mut Child) {
        let socket = self.socket();
        await_that("the node answers", || {
            if let Some(status) = process.try_wait().unwrap() {
                let mut said = String::new();
                process.stderr.take().unwrap().read_to_string(&mut said).unwrap();
                panic!("the node has ended, {status}: {said}");
            }
            self.home.run(["status", "--socket", &socket]).status == 0
        });
    }

    /// The port at which others reach its node.
    fn port(&self) -> String {
        port_of(self.home.status(Some(&self.socket()))["address"].as_str().unwrap())
    }

    fn token(&self) -> String {
        let folder = self.here("/var/lib/tharsis/identity");
        let made = self.home.run(["token", "create", "--identity-dir", &folder]);
        assert_eq!(made.status, 0, "{}", made.err);
        made.out.trim().to_owned()
    }
}

/// The words of a unit's command.
fn exec_start(unit: &str, machine: &Machine) -> Vec<String> {
    let unit = text(unit);
    let line = unit.lines().find_map(|line| line.strip_prefix("ExecStart=")).unwrap();
    machine.here(line).split(' ').skip(1).map(str::to_owned).collect()
}

/// The words of a container's command: the lines below `args:`.
fn arguments(manifest: &str, machine: &Machine) -> Vec<String> {
    let manifest = text(manifest);
    let below = manifest.lines().skip_while(|line| line.trim() != "args:").skip(1);
    below.map_while(|line| line.trim().strip_prefix("- ")).map(|word| machine.here(word)).collect()
}

fn port_of(address: &str) -> String {
    address.rsplit(':').next().unwrap().to_owned()
}

/// Runs a head, and twice the member that `member` makes for its port, with its words: the second time with
/// a token that is too old to join. Answers the member.
fn assert_they_are_a_cluster(
    head: &Machine,
    head_words: &[String],
    member: impl FnOnce(&str) -> (Machine, Vec<String>),
) -> Machine {
    let mut head_process = head.spawn(head_words, None);
    head.await_node(&mut head_process);
    let (member, member_words) = member(&head.port());
    let token = head.token();
    let mut parts: Vec<&str> = token.split('.').collect();
    parts[2] = "0123456789abcdef0123456789abcdef";
    let too_old = parts.join(".");
    for token in [token.as_str(), &too_old] {
        let mut process = member.spawn(&member_words, Some(token));
        member.await_node(&mut process);
        for machine in [head, &member] {
            machine.home.await_nodes(Some(&machine.socket()), 2);
        }
        let environment = std::fs::read(format!("/proc/{}/environ", process.id())).unwrap();
        assert!(
            !String::from_utf8_lossy(&environment).contains("THARSIS_TOKEN"),
            "tasks would have the token"
        );
        kill(process.id(), "TERM");
        let ended = end_of(process);
        assert_eq!(ended.status, 0, "{}", ended.err);
    }
    kill(head_process.id(), "TERM");
    let ended = end_of(head_process);
    assert_eq!(ended.status, 0, "{}", ended.err);
    member
}

/// A machine with the settings of a unit.
fn machine_of_unit(settings: &str, instead: &[(&'static str, &str)]) -> Machine {
    let machine = Machine::new(instead);
    let here = machine.here(&text(&format!("systemd/{settings}")));
    std::fs::write(machine.here(&format!("/etc/tharsis/{settings}")), here).unwrap();
    machine
}

/// A machine for a member of the head at a port of this one, and the words of its unit.
fn member_of_unit(port: &str) -> (Machine, Vec<String>) {
    let address = format!("localhost:{port}");
    // The port comes last: it may have the digits of another one within it.
    let member = machine_of_unit("worker.toml", &[("7601", "0"), ("${HEAD_ADDRESS}", &address)]);
    let words = exec_start("systemd/tharsis-worker.service", &member);
    (member, words)
}

#[test]
fn the_units_run_a_head_and_a_member() {
    // A free port: one that was chosen before may be another program's when the head wants it.
    let head = machine_of_unit("head.toml", &[("head.example.com", "localhost"), ("7600", "0")]);
    let head_words = exec_start("systemd/tharsis-head.service", &head);
    let member = assert_they_are_a_cluster(&head, &head_words, member_of_unit);
    for (machine, log) in [(&head, "head.log"), (&member, "worker.log")] {
        let log = machine.here(&format!("/var/log/tharsis/{log}"));
        assert!(std::fs::read_to_string(&log).unwrap().contains("node joined"), "{log}");
    }
}

/// The lines of `docs/systemd.md` about the control store: it starts, makes tokens, and nodes join it.
#[test]
fn the_unit_of_the_control_store_runs_one_and_members_join_it() {
    let control = machine_of_unit("control.toml", &[("control.example.com", "localhost"), ("7600", "0")]);
    let manager = UnixDatagram::bind(control.home.path("notify")).unwrap();
    manager.set_read_timeout(Some(home::SOON)).unwrap();
    let mut command = control.home.command(exec_start("systemd/tharsis-control.service", &control));
    command.env("NOTIFY_SOCKET", control.home.path("notify"));
    let mut store = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut heard = [0; 16];
    let len = manager.recv(&mut heard).unwrap();
    assert_eq!(&heard[..len], b"READY=1");
    let (mut output, mut said) = (BufReader::new(store.stdout.take().unwrap()), String::new());
    // "Control store of cluster .. at ADDRESS."
    output.read_line(&mut said).unwrap();
    let (member, words) = member_of_unit(&port_of(said.trim_end().trim_end_matches('.')));
    let page = std::fs::read_to_string(root().join("docs/systemd.md")).unwrap();
    let line =
        page.lines().find(|line| line.contains("token create") && line.contains("control.toml")).unwrap();
    let create: Vec<String> =
        control.here(line).split(' ').skip_while(|word| *word != "token").map(str::to_owned).collect();
    let made = control.home.run(&create);
    assert_eq!(made.status, 0, "{}", made.err);
    let mut node = member.spawn(&words, Some(made.out.trim()));
    member.await_node(&mut node);
    kill(node.id(), "TERM");
    assert_eq!(end_of(node).status, 0);
    kill(store.id(), "TERM");
    let ended = end_of(store);
    assert_eq!(ended.status, 0, "{}", ended.err);
    // Its output goes to a journal that others may read.
    output.read_to_string(&mut said).unwrap();
    assert!(!said.contains("th1.") && !ended.err.contains("th1."), "{said}{}", ended.err);
    assert!(said.contains("tharsis token create"), "{said}");
}

#[test]
fn the_manifests_run_a_head_and_a_member() {
    let name = "tharsis-head-0.tharsis-head.tharsis.svc";
    let head = Machine::new(&[(name, "localhost"), ("7600", "0")]);
    let head_words = arguments("kubernetes/head.yaml", &head);
    assert_eq!(head_words[..2], ["node", "--head"]);
    assert_they_are_a_cluster(&head, &head_words, |port| {
        let member = Machine::new(&[(name, "localhost"), ("7601", "0"), ("7600", port)]);
        let words = arguments("kubernetes/workers.yaml", &member);
        (member, words)
    });
}

/// Whoever ends a node while it waits for a slow head or etcd takes its reason away.
#[test]
fn nobody_ends_a_node_that_waits_for_its_head() {
    // It joins with its token first.
    let wait_s = (TOKEN_TIME_MAX + JOIN_TIME_MAX).as_secs();
    let after = |file: &str, before: &str| -> u64 {
        let text = text(file);
        let found = text.lines().find_map(|line| line.trim().strip_prefix(before));
        let found = found.unwrap_or_else(|| panic!("{file} has no {before}"));
        found.trim_end_matches("min").parse().unwrap_or_else(|_| panic!("{file}: {found}"))
    };
    let units: Vec<_> = std::fs::read_dir(root().join("deploy/systemd")).unwrap().flatten().collect();
    let units = units.iter().filter_map(|entry| entry.file_name().into_string().ok());
    for unit in units.filter(|name| name.ends_with(".service")) {
        assert!(wait_s < 60 * after(&format!("systemd/{unit}"), "TimeoutStartSec="), "{unit}");
    }
    for manifest in ["kubernetes/head.yaml", "kubernetes/workers.yaml"] {
        // The first of its probes.
        let probes = after(manifest, "periodSeconds: ") * after(manifest, "failureThreshold: ");
        assert!(wait_s < probes, "{manifest}: {probes} s");
    }
    assert!(wait_s < after("slurm/node.sh", "meet_s="));
}
