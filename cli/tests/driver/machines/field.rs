//! Machines played by network namespaces: each has an address of its own on one switch, and a home.

use crate::home::{Ended, Home, without_settings};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

/// Machines on one switch. Dropping it ends their processes and removes the namespaces.
pub struct Field {
    machines: Vec<Machine>,
    /// The namespace with the switch: no address of this machine is touched.
    switch: String,
}

/// One machine: `10.0.0.<number>`.
pub struct Machine {
    pub home: Home,
    number: usize,
    namespace: String,
}

/// Whether this user may make network namespaces here.
pub fn is_possible() -> bool {
    let name = format!("tharsis-probe-{}", std::process::id());
    let made = ip(&["netns", "add", &name]);
    let linked = made
        && ip(&["-n", &name, "link", "add", "switch", "type", "bridge"])
        && ip(&["-n", &name, "link", "add", "end0", "type", "veth", "peer", "name", "end1"]);
    if made {
        ip(&["netns", "del", &name]);
    }
    linked
}

/// Runs `ip`, and says whether it did what was asked.
fn ip(words: &[&str]) -> bool {
    Command::new("ip").args(words).stderr(Stdio::null()).status().is_ok_and(|status| status.success())
}

fn must_ip(words: &[&str]) {
    assert!(ip(words), "ip {}", words.join(" "));
}

impl Field {
    /// Machines with the addresses `10.0.0.1` and so on.
    pub fn new(count: usize) -> Self {
        static FIELDS: AtomicU32 = AtomicU32::new(0);
        let prefix = format!("th{}-{}", std::process::id(), FIELDS.fetch_add(1, Ordering::Relaxed));
        let switch = format!("{prefix}-switch");
        must_ip(&["netns", "add", &switch]);
        let mut field = Self { machines: Vec::new(), switch };
        must_ip(&["-n", &field.switch, "link", "add", "switch", "type", "bridge"]);
        must_ip(&["-n", &field.switch, "link", "set", "switch", "up"]);
        for number in 1..=count {
            field.add(number, format!("{prefix}-{number}"));
        }
        field
    }

    fn add(&mut self, number: usize, namespace: String) {
        must_ip(&["netns", "add", &namespace]);
        let (port, switch) = (port(number), self.switch.clone());
        self.machines.push(Machine { home: Home::new(), number, namespace: namespace.clone() });
        let address = format!("10.0.0.{number}/24");
        must_ip(&[
            "link", "add", "eth0", "netns", &namespace, "type", "veth", "peer", "name", &port, "netns",
            &switch,
        ]);
        must_ip(&["-n", &namespace, "addr", "add", &address, "dev", "eth0"]);
        for device in ["lo", "eth0"] {
            must_ip(&["-n", &namespace, "link", "set", device, "up"]);
        }
        must_ip(&["-n", &switch, "link", "set", &port, "master", "switch", "up"]);
    }

    /// The machine with the address `10.0.0.<number>`.
    pub fn machine(&self, number: usize) -> &Machine {
        &self.machines[number - 1]
    }

    /// Pulls the cable of a machine, or puts it back.
    pub fn set_cable(&self, number: usize, is_in: bool) {
        must_ip(&["-n", &self.switch, "link", "set", &port(number), if is_in { "up" } else { "down" }]);
    }
}

fn port(number: usize) -> String {
    format!("port{number}")
}

impl Machine {
    /// A line for the shell of this machine, with the program in its path.
    pub fn shell(&self, line: &str) -> Command {
        let program = Path::new(env!("CARGO_BIN_EXE_tharsis"));
        let path = format!("{}:{}", program.parent().unwrap().display(), std::env::var("PATH").unwrap());
        let mut command = Command::new("ip");
        without_settings(&mut command).args(["netns", "exec", &self.namespace, "sh", "-c", line]);
        command.env("PATH", path);
        command.envs(self.home.folders()).stdin(Stdio::null());
        command
    }

    /// Runs a line to its end.
    pub fn run(&self, line: &str) -> Ended {
        Ended::of(self.shell(line).output().unwrap())
    }

    /// Runs a line that must succeed, and returns its output.
    pub fn must(&self, line: &str) -> String {
        let ended = self.run(line);
        assert_eq!(ended.status, 0, "on 10.0.0.{}: {line}\n{}{}", self.number, ended.out, ended.err);
        ended.out
    }

    /// Loses all packets that this machine sends to another one, and none that it receives; or sends again.
    pub fn set_mute(&self, to: usize, is_mute: bool) {
        let route = format!("10.0.0.{to}/32");
        let action = if is_mute { "add" } else { "del" };
        must_ip(&["-n", &self.namespace, "route", action, "blackhole", &route]);
    }
}

impl Drop for Field {
    fn drop(&mut self) {
        for machine in self.machines.drain(..) {
            let namespace = machine.namespace.clone();
            // Its home ends its processes.
            drop(machine);
            ip(&["netns", "del", &namespace]);
        }
        ip(&["netns", "del", &self.switch]);
    }
}
