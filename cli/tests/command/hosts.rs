//! `tharsis up`, `down` and `status -f` over a real ssh server of this test: each address of the loopback
//! interface is a host, with a folder of its own.

use crate::home::{Ended, Home, await_that, kill};
use serde_json::Value;
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};

const SSHD: &str = "/usr/sbin/sshd";
const HOSTS: [&str; 3] = ["127.0.0.1", "127.0.0.2", "127.0.0.3"];
/// An address of this machine at which no ssh server listens.
const SILENT_HOST: &str = "127.0.0.9";

/// A home whose files are those of all hosts, and the ssh server of these.
struct Hosts {
    home: Home,
    server: Child,
    port: u16,
}

impl Drop for Hosts {
    fn drop(&mut self) {
        let _gone = self.server.kill();
        let _reaped = self.server.wait();
    }
}

/// The hosts; `None`, and a line on the terminal, where there is no ssh server.
fn hosts() -> Option<Hosts> {
    if !Path::new(SSHD).exists() {
        tharsis_trials::not_run(format_args!("there is no {SSHD}: install openssh-server"));
        return None;
    }
    if rustix::process::geteuid().is_root() {
        // The package's own service makes it when it starts.
        std::fs::create_dir_all("/run/sshd").unwrap();
    }
    let home = Home::new();
    for name in ["host", "user"] {
        let mut keygen = Command::new("ssh-keygen");
        keygen.args(["-q", "-t", "ed25519", "-N", "", "-f", &home.text(name)]);
        assert!(keygen.status().unwrap().success());
    }
    std::fs::copy(home.path("user.pub"), home.path("authorized_keys")).unwrap();
    let [port] = tharsis_trials::free_ports();
    let listen: String = HOSTS.iter().map(|host| format!("ListenAddress {host}:{port}\n")).collect();
    let folder = home.text("");
    let folder = folder.trim_end_matches('/');
    // The home is there for the shell of the user, which reads files of its own there before each command.
    let config = format!(
        "{listen}HostKey {folder}/host\nAuthorizedKeysFile {folder}/authorized_keys\nStrictModes no\nUsePAM no\n\
         PasswordAuthentication no\nKbdInteractiveAuthentication no\nPermitRootLogin prohibit-password\nPidFile none\n\
         MaxStartups 100\nSetEnv TMPDIR={folder} XDG_DATA_HOME={folder} HOME={folder}\n"
    );
    std::fs::write(home.path("sshd_config"), config).unwrap();
    let key = std::fs::read_to_string(home.path("host.pub")).unwrap();
    let known: String = HOSTS.iter().map(|host| format!("[{host}]:{port} {key}")).collect();
    std::fs::write(home.path("known_hosts"), known).unwrap();
    let mut server = Command::new(SSHD);
    server.args(["-D", "-e", "-f", &home.text("sshd_config")]).stdin(Stdio::null());
    let server = server.stderr(std::fs::File::create(home.path("sshd.log")).unwrap()).spawn().unwrap();
    let hosts = Hosts { home, server, port };
    await_that("the ssh server listens", || {
        HOSTS.iter().all(|host| TcpStream::connect((*host, port)).is_ok())
    });
    Some(hosts)
}

impl Hosts {
    /// Writes a cluster file of these hosts, the first of which is the head; `extra` is of single hosts.
    fn file(&self, hosts: &[&str], extra: &[(&str, &str)]) -> String {
        let folder = self.home.text("");
        let mut text = format!(
            "program = {:?}\n[ssh]\nport = {}\nidentity_file = {:?}\nconfig_file = \"/dev/null\"\n\
             options = [\"UserKnownHostsFile={folder}/known_hosts\", \"IdentitiesOnly=yes\"]\n\
             [settings]\nstore = \"16MiB\"\nnum_cpus = 1\n",
            env!("CARGO_BIN_EXE_tharsis"),
            self.port,
            self.home.text("user"),
        );
        for (index, host) in hosts.iter().enumerate() {
            let table = if index == 0 { "[head]" } else { "[[workers]]" };
            let own = extra.iter().find(|(name, _)| name == host).map_or("", |(_, own)| *own);
            let (socket, identity) =
                (format!("{folder}/{host}/node/node.sock"), format!("{folder}/{host}/identity"));
            text += &format!(
                "{table}\nhost = \"{host}\"\n{own}\nsettings = {{ socket = \"{socket}\", identity_dir = \"{identity}\" }}\n"
            );
        }
        std::fs::write(self.home.path("cluster.toml"), text).unwrap();
        self.home.text("cluster.toml")
    }

    fn run(&self, words: &[&str], file: &str) -> Ended {
        self.home.run(words.iter().copied().chain(["-f", file]))
    }

    /// The rows of `status -f`.
    fn states(&self, file: &str) -> (i32, Vec<Value>) {
        let ended = self.run(&["status", "--json"], file);
        let all: Value = serde_json::from_str(&ended.out).unwrap();
        (ended.status, all["hosts"].as_array().unwrap().clone())
    }

    fn pid(&self, host: &str) -> u32 {
        let socket = self.home.text(&format!("{host}/node/node.sock"));
        u32::try_from(self.home.status(Some(&socket))["pid"].as_u64().unwrap()).unwrap()
    }
}

/// The line of a table that is about a host.
fn line<'a>(ended: &'a Ended, host: &str) -> &'a str {
    let has = |line: &&str| line.split_whitespace().any(|word| word == host);
    ended.out.lines().find(has).unwrap_or_else(|| panic!("no {host} in:\n{}{}", ended.out, ended.err))
}

#[test]
fn up_starts_what_does_not_run_and_down_stops_all() {
    let Some(hosts) = hosts() else { return };
    let file = hosts.file(&HOSTS, &[]);
    let (status, states) = hosts.states(&file);
    assert_eq!(status, 1, "no host has a member");
    assert!(
        states.iter().all(|state| state["is_reachable"] == true && state["node"].is_null()),
        "{states:?}"
    );
    let up = hosts.run(&["up"], &file);
    assert_eq!(up.status, 0, "{}{}", up.out, up.err);
    assert!(HOSTS.iter().all(|host| line(&up, host).ends_with("started")), "{}", up.out);
    let (status, states) = hosts.states(&file);
    assert_eq!(status, 0, "{states:?}");
    let version = env!("CARGO_PKG_VERSION");
    assert!(
        states.iter().all(|state| state["is_member"] == true && state["version"] == version),
        "{states:?}"
    );
    // One has ended: it alone is started.
    let before = HOSTS.map(|host| hosts.pid(host));
    kill(before[2], "KILL");
    await_that("it is gone", || !hosts.home.processes().contains(&before[2]));
    let (status, states) = hosts.states(&file);
    assert_eq!((status, &states[2]["is_member"]), (1, &Value::Bool(false)), "{states:?}");
    let again = hosts.run(&["up"], &file);
    assert_eq!(again.status, 0, "{}{}", again.out, again.err);
    assert!(line(&again, HOSTS[1]).ends_with("ran already") && line(&again, HOSTS[2]).ends_with("started"));
    assert_eq!([hosts.pid(HOSTS[0]), hosts.pid(HOSTS[1])], before[..2]);
    let processes = hosts.home.processes();
    let down = hosts.run(&["down"], &file);
    assert_eq!(down.status, 0, "{}{}", down.out, down.err);
    assert!(HOSTS.iter().all(|host| line(&down, host).ends_with("stopped")), "{}", down.out);
    hosts.home.assert_clean(&processes);
    let nothing = hosts.run(&["down"], &file);
    assert_eq!(nothing.status, 0, "{}{}", nothing.out, nothing.err);
    assert!(HOSTS.iter().all(|host| line(&nothing, host).ends_with("did not run")), "{}", nothing.out);
}

#[test]
fn a_host_that_fails_is_named_with_its_reason_and_the_others_go_on() {
    let Some(hosts) = hosts() else { return };
    let all = [HOSTS[0], SILENT_HOST, HOSTS[1], HOSTS[2]];
    let file = hosts.file(&all, &[(HOSTS[2], "program = \"/no/such/tharsis\"")]);
    let up = hosts.run(&["up"], &file);
    up.assert_refused(1, &["2 of 4 hosts"]);
    assert!(
        line(&up, SILENT_HOST).contains("failed: ssh: ") && line(&up, SILENT_HOST).contains("refused"),
        "{}",
        up.out
    );
    assert!(
        line(&up, HOSTS[2]).contains("/no/such/tharsis") && line(&up, HOSTS[2]).contains("`program`"),
        "{}",
        up.out
    );
    assert!(line(&up, HOSTS[1]).ends_with("started"), "{}", up.out);
    let (status, states) = hosts.states(&file);
    let column = |name: &str| states.iter().map(|state| state[name].as_bool().unwrap()).collect::<Vec<_>>();
    assert_eq!((status, column("is_reachable")), (1, vec![true, false, true, true]));
    assert_eq!(column("is_member"), [true, false, true, false]);
    let down = hosts.run(&["down"], &file);
    down.assert_refused(1, &["2 of 4 hosts"]);
    assert!(line(&down, SILENT_HOST).contains("left: ssh: "), "{}", down.out);
    assert!(
        line(&down, HOSTS[0]).ends_with("stopped") && line(&down, HOSTS[1]).ends_with("stopped"),
        "{}",
        down.out
    );
}

#[test]
fn without_a_head_no_worker_is_tried() {
    let Some(hosts) = hosts() else { return };
    let file = hosts.file(&[SILENT_HOST, HOSTS[0]], &[]);
    let up = hosts.run(&["up"], &file);
    up.assert_refused(1, &["2 of 2 hosts"]);
    assert!(
        line(&up, SILENT_HOST).contains("failed: ssh: ") && line(&up, HOSTS[0]).contains("not tried"),
        "{}",
        up.out
    );
    assert!(hosts.home.processes().is_empty());
}

#[test]
fn a_file_that_is_wrong_is_refused_before_anything_is_asked() {
    let home = Home::new();
    let path = home.text("cluster.toml");
    for command in ["up", "down", "status"] {
        home.run([command, "-f", &path]).assert_refused(2, &["cluster.toml", "No such file"]);
    }
    std::fs::write(&path, "[head]\nhost = \"a\"\nsettings = { stor = \"1GB\" }\n").unwrap();
    home.run(["up", "-f", &path]).assert_refused(2, &["line 3", "unknown key stor", "store"]);
}
