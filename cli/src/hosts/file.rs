//! The file that describes a cluster: its hosts, how ssh reaches them, and the settings of their nodes.
//!
//! ```toml
//! program = "/usr/local/bin/tharsis"     # on the hosts; by default `tharsis` in their path
//!
//! [ssh]                                  # for all hosts; a host may have a table of its own
//! user = "tharsis"
//! identity_file = "/home/me/.ssh/id_ed25519"
//!
//! [settings]                             # for all nodes; a host may have a table of its own
//! store = "4GB"
//!
//! [head]
//! host = "10.0.0.1"
//! settings = { port = 7600 }
//!
//! [[workers]]
//! host = "10.0.0.2"
//! ```

use crate::settings::error::shown;
use crate::settings::key::NODE;
use crate::settings::{Error, Key, file};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// Most hosts of one file.
const HOSTS_MAX: usize = 1024;

/// A cluster as its file describes it; the head comes first.
#[derive(Clone, Debug)]
pub struct Cluster {
    /// The hosts.
    pub hosts: Vec<Host>,
}

/// One host, with all that is known about it.
#[derive(Clone, Debug)]
pub struct Host {
    /// Its name or address, for ssh and, unless the settings name another, for other nodes.
    pub host: String,
    /// Another name for it in tables, if the file gives one.
    pub name: String,
    /// Path of the program there.
    pub program: String,
    /// Options of ssh.
    pub ssh: SshOptions,
    /// Settings of its node, as flags would have them.
    pub settings: BTreeMap<Key, String>,
}

/// Options of ssh.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SshOptions {
    /// The user on the host.
    pub user: Option<String>,
    /// The port of its ssh server.
    pub port: Option<u16>,
    /// File with the private key.
    pub identity_file: Option<PathBuf>,
    /// Configuration file of ssh, instead of the user's.
    pub config_file: Option<PathBuf>,
    /// Further options, `Name=value`.
    #[serde(default)]
    pub options: Vec<String>,
}

/// The file's own form. Settings are read apart, with their lines.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    program: Option<String>,
    #[serde(default)]
    ssh: SshOptions,
    #[serde(default, rename = "settings")]
    _settings: toml::Table,
    head: WrittenHost,
    #[serde(default)]
    workers: Vec<WrittenHost>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenHost {
    host: String,
    name: Option<String>,
    program: Option<String>,
    #[serde(default)]
    ssh: SshOptions,
    #[serde(default, rename = "settings")]
    _settings: toml::Table,
}

/// Reads a file.
///
/// # Errors
/// The fault in the file, and its line.
pub fn read(path: &Path) -> Result<Cluster, Error> {
    parse(path, &file::text(path)?)
}

fn parse(path: &Path, text: &str) -> Result<Cluster, Error> {
    let table = DeTable::parse(text).map_err(|error| file::syntax(path, text, &error))?;
    let written: Written = toml::from_str(text).map_err(|error| file::syntax(path, text, &error))?;
    let table = table.get_ref();
    let common = settings(path, text, table.get("settings"))?;
    let workers = table.get("workers").and_then(|workers| workers.get_ref().as_array());
    let tables = table.get("head").into_iter().chain(workers.into_iter().flatten());
    let mut hosts: Vec<Host> = Vec::new();
    for (host, table) in std::iter::once(written.head).chain(written.workers).zip(tables) {
        let bad = |problem: String| Error::BadValue {
            origin: format!("{}, line {}: host", path.display(), file::line_at(text, table.span().start)),
            value: shown(&host.host),
            problem,
        };
        check_host(&host.host).map_err(bad)?;
        let own = table.get_ref().as_table().and_then(|table| table.get("settings"));
        let mut all = common.clone();
        all.extend(settings(path, text, own)?);
        let name = host.name.unwrap_or_else(|| host.host.clone());
        if hosts.iter().any(|other| other.name == name) {
            let problem = "two hosts have this name; give one another `name`".to_owned();
            return Err(Error::BadValue {
                origin: format!("{}, line {}", path.display(), file::line_at(text, table.span().start)),
                value: shown(&name),
                problem,
            });
        }
        hosts.push(Host {
            host: host.host,
            name,
            program: host.program.or_else(|| written.program.clone()).unwrap_or_else(|| "tharsis".to_owned()),
            ssh: host.ssh.or(&written.ssh),
            settings: all,
        });
    }
    if HOSTS_MAX < hosts.len() {
        let (count, origin) = (hosts.len().to_string(), path.display().to_string());
        let problem = format!("are more hosts than the {HOSTS_MAX} of the largest cluster file");
        return Err(Error::BadValue { origin, value: count, problem });
    }
    Ok(Cluster { hosts })
}

/// The settings of a table, which must be those of nodes.
fn settings(
    path: &Path,
    text: &str,
    table: Option<&Spanned<DeValue<'_>>>,
) -> Result<BTreeMap<Key, String>, Error> {
    let Some(table) = table.and_then(|table| table.get_ref().as_table()) else { return Ok(BTreeMap::new()) };
    let said = file::settings(path, text, table)?;
    let alien = said.iter().find(|(key, _)| key.row().used_by & NODE == 0 && !key.is_of_head());
    if let Some((key, said)) = alien {
        return Err(Error::BadValue {
            origin: format!("{}, line {}: {}", path.display(), said.line, key.name()),
            value: shown(&said.text),
            problem: "is no setting of nodes".to_owned(),
        });
    }
    Ok(said.into_iter().map(|(key, said)| (key, said.text)).collect())
}

/// Refuses what ssh would take for an option or a command.
fn check_host(text: &str) -> Result<(), String> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.:%".contains(c);
    if text.is_empty() || text.starts_with('-') || !text.chars().all(is_plain) {
        return Err("expected the name or address of a host".to_owned());
    }
    Ok(())
}

impl SshOptions {
    /// These options, and those of `other` where these say nothing. Further options of both hold; ssh takes
    /// the first of a name.
    fn or(self, other: &Self) -> Self {
        Self {
            user: self.user.or_else(|| other.user.clone()),
            port: self.port.or(other.port),
            identity_file: self.identity_file.or_else(|| other.identity_file.clone()),
            config_file: self.config_file.or_else(|| other.config_file.clone()),
            options: self.options.into_iter().chain(other.options.iter().cloned()).collect(),
        }
    }
}

impl Host {
    /// A setting of its node, if the file has one.
    pub fn setting(&self, key: Key) -> Option<&str> {
        self.settings.get(&key).map(String::as_str)
    }

    /// The flags of its settings for which `is_wanted`, in the order of help.
    pub fn flags(&self, is_wanted: impl Fn(Key) -> bool) -> Vec<String> {
        let wanted = self.settings.iter().filter(|(key, _)| is_wanted(**key));
        // One word each: `--allow-fake-resources` takes its value no other way.
        wanted.map(|(key, text)| format!("{}={text}", key.flag())).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_text(text: &str) -> Result<Cluster, Error> {
        parse(Path::new("c.toml"), text)
    }

    const FILE: &str = "
program = '/opt/tharsis'
[ssh]
user = 'me'
options = ['A=1']
[settings]
store = '64MiB'
num_cpus = 1
[head]
host = '10.0.0.1'
settings = { port = 7600, state = '/s' }
[[workers]]
host = '10.0.0.2'
name = 'second'
program = 'tharsis'
ssh = { port = 2222, options = ['B=2'] }
[workers.settings]
num_cpus = 2
labels = { zone = 'a' }
";

    #[test]
    fn a_host_adds_its_own_to_what_holds_for_all() {
        let cluster = read_text(FILE).unwrap();
        let [head, worker] = &cluster.hosts[..] else { panic!("two hosts") };
        assert_eq!((head.program.as_str(), worker.program.as_str()), ("/opt/tharsis", "tharsis"));
        assert_eq!((head.name.as_str(), worker.name.as_str()), ("10.0.0.1", "second"));
        assert_eq!(
            (head.ssh.port, worker.ssh.port, worker.ssh.user.as_deref()),
            (None, Some(2222), Some("me"))
        );
        assert_eq!(worker.ssh.options, ["B=2", "A=1"]);
        assert_eq!(head.flags(|_| true), ["--port=7600", "--num-cpus=1", "--store=64MiB", "--state=/s"]);
        assert_eq!(worker.flags(|_| true), ["--num-cpus=2", "--store=64MiB", "--labels=zone=a"]);
    }

    #[test]
    fn the_file_of_the_page_is_one() {
        let page = Path::new(&std::env::var("CARGO_MANIFEST_DIR").unwrap()).join("../docs/ssh.md");
        let page = std::fs::read_to_string(page).unwrap();
        let text = page.split("```toml\n").nth(1).unwrap().split("```").next().unwrap();
        let cluster = read_text(text).unwrap();
        assert_eq!(
            cluster.hosts.iter().map(|host| host.host.as_str()).collect::<Vec<_>>(),
            ["10.0.0.1", "10.0.0.2", "10.0.0.3"]
        );
        assert_eq!(cluster.hosts[2].ssh.port, Some(2222));
    }

    #[test]
    fn what_is_wrong_is_named_with_its_line() {
        for (text, parts) in [
            ("[[workers]]\nhost = 'a'", &["missing field `head`"][..]),
            ("[head]\nhost = 'a'\nhots = 'b'", &["line 3", "hots"]),
            ("[head]\nhost = '-oProxyCommand=x'", &["line 1: host", "name or address"]),
            ("[head]\nhost = 'a b'", &["line 1: host"]),
            ("[head]\nhost = 'a'\nsettings = { num_cpu = 1 }", &["line 3", "num_cpu", "num_cpus"]),
            ("[head]\nhost = 'a'\n[settings]\nstore = '4x'", &["line 4: store", "MiB"]),
            ("[head]\nhost = 'a'\n[[workers]]\nhost = 'a'", &["line 3", "two hosts"]),
            ("[head]\nhost = 'a'\n[ssh]\nport = 70000", &["line 4"]),
            ("[head", &["line 1"]),
        ] {
            let problem = read_text(text).unwrap_err().to_string();
            for part in parts {
                assert!(problem.contains(part), "{part} missing in: {problem}");
            }
        }
    }
}
