//! The settings there are, as data: name, form, meaning, default.
//!
//! One row serves a flag (`--num-cpus`), a variable (`THARSIS_NUM_CPUS`) and a key of the file (`num_cpus`), and the
//! same check stands in front of all three.

use super::{parse, spill};
use tharsis::{machine, spill_dirs};

/// Settings of nodes: `start`, `node`.
pub const NODE: u8 = 1;
/// Settings of the control store: `gcs`, and heads.
pub const STORE: u8 = 2;
/// Settings of commands that ask a node: `status`, `stop`.
pub const ASK: u8 = 4;
/// All of them.
pub const ALL: u8 = NODE | STORE | ASK;

/// How much is logged, least first.
pub const LOG_LEVELS: [&str; 5] = ["error", "warn", "info", "debug", "trace"];

/// A setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Key {
    /// Where a node listens for drivers and workers.
    Socket,
    /// Where other nodes reach it.
    Port,
    /// File with the cluster's secret.
    SecretFile,
    /// CPUs.
    NumCpus,
    /// GPUs.
    NumGpus,
    /// Accept GPUs that are not there.
    AllowFakeResources,
    /// Size of the object store.
    Store,
    /// What a node and its workers may use.
    MemoryLimit,
    /// Where objects are spilled to.
    SpillDirs,
    /// Part of the store above which objects are spilled.
    SpillHighWater,
    /// Part of the store down to which they are spilled.
    SpillLowWater,
    /// Memory for how finished tasks were called.
    Lineage,
    /// Silence after which a worker that was started is killed.
    WorkerStartTimeout,
    /// Custom resources.
    Resources,
    /// Labels.
    Labels,
    /// How much is logged.
    LogLevel,
    /// File of the control store.
    State,
    /// etcd of the control store.
    Etcd,
    /// Name of the cluster in that etcd.
    Cluster,
    /// Silence after which a node is dead.
    LeaseTtl,
}

/// What a file may say for a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Text only: a number would leave its unit open.
    Text,
    /// A number.
    Number,
    /// Text, or a whole number of bytes.
    Size,
    /// True or false.
    Switch,
    /// A list of texts, or one text with commas.
    List,
    /// A table of texts.
    Pairs,
    /// A table of numbers.
    Amounts,
}

/// What there is to know about a key.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// Its name in a file; flags have dashes instead, variables are in capitals.
    pub name: &'static str,
    /// What stands for the value in help.
    pub value_name: &'static str,
    /// What it means.
    pub help: &'static str,
    /// Who uses it.
    pub used_by: u8,
    /// What a file may say.
    pub form: Form,
    /// Says what is wrong with a text.
    pub check: fn(&str) -> Result<(), String>,
}

impl Key {
    /// Every key, in the order of help.
    pub const ALL: [Self; 20] = [
        Self::Socket,
        Self::Port,
        Self::SecretFile,
        Self::NumCpus,
        Self::NumGpus,
        Self::AllowFakeResources,
        Self::Store,
        Self::MemoryLimit,
        Self::SpillDirs,
        Self::SpillHighWater,
        Self::SpillLowWater,
        Self::Lineage,
        Self::WorkerStartTimeout,
        Self::Resources,
        Self::Labels,
        Self::LogLevel,
        Self::State,
        Self::Etcd,
        Self::Cluster,
        Self::LeaseTtl,
    ];

    /// What there is to know about it.
    pub fn row(self) -> Row {
        let row = |name, value_name, used_by, form, check, help| Row {
            name,
            value_name,
            help,
            used_by,
            form,
            check,
        };
        match self {
            Self::Socket => row(
                "socket",
                "PATH",
                NODE | ASK,
                Form::Text,
                not_empty,
                "Socket of the node for drivers and workers; by default in the user's own folder",
            ),
            Self::Port => row(
                "port",
                "PORT",
                NODE | STORE,
                Form::Number,
                |text| parse::port(text).map(drop),
                "Port for other nodes, on the loopback address; by default a free one",
            ),
            Self::SecretFile => row(
                "secret_file",
                "FILE",
                NODE | STORE,
                Form::Text,
                not_empty,
                "File with the secret that the members of a cluster share, made if it is not there; by default in the \
                 user's own folder",
            ),
            Self::NumCpus => row(
                "num_cpus",
                "N",
                NODE,
                Form::Number,
                |text| parse::cpus(text).map(drop),
                "CPUs it offers; by default those of the machine",
            ),
            Self::NumGpus => row(
                "num_gpus",
                "N",
                NODE,
                Form::Number,
                |text| parse::amount(text).map(drop),
                "GPUs it offers",
            ),
            Self::AllowFakeResources => row(
                "allow_fake_resources",
                "BOOL",
                NODE,
                Form::Switch,
                |text| parse::switch(text).map(drop),
                "Accept more GPUs than the machine has",
            ),
            Self::Store => row(
                "store",
                "SIZE",
                NODE,
                Form::Size,
                |text| parse::store_size(text).map(drop),
                "Size of the object store, such as 512MiB or 4GB; by default a third of the memory",
            ),
            Self::MemoryLimit => row(
                "memory_limit",
                "SIZE",
                NODE,
                Form::Size,
                |text| parse::store_size(text).map(drop),
                "Memory that the node and its workers may use, the store included; by default nine tenths of what there is",
            ),
            Self::SpillDirs => row(
                "spill_dirs",
                "DIRS",
                NODE,
                Form::List,
                |text| spill::dirs(text).map(drop),
                "Directories for objects that the store has no room for: PATH or PATH:QUOTA, several with commas, or none; \
                 by default the user's own folder, and 80 % of what is free there",
            ),
            Self::SpillHighWater => row(
                "spill_high_water",
                "PERCENT",
                NODE,
                Form::Number,
                |text| parse::percent(text).map(drop),
                "Part of the store that is in use when objects begin to be spilled",
            ),
            Self::SpillLowWater => row(
                "spill_low_water",
                "PERCENT",
                NODE,
                Form::Number,
                |text| parse::percent(text).map(drop),
                "Part of the store that is in use when they no longer are; less than the high one",
            ),
            Self::Lineage => row(
                "lineage",
                "SIZE",
                NODE,
                Form::Size,
                |text| parse::size(text).map(drop),
                "Memory for how finished tasks were called, so that lost values can be made again; 0 for none",
            ),
            Self::WorkerStartTimeout => row(
                "worker_start_timeout",
                "DURATION",
                NODE,
                Form::Text,
                |text| parse::positive_duration(text).map(drop),
                "A worker that has not connected this long after its start is killed",
            ),
            Self::Resources => row(
                "resources",
                "JSON",
                NODE,
                Form::Amounts,
                |text| parse::resources(text).map(drop),
                "Custom resources as JSON: '{\"tpu\": 2}'",
            ),
            Self::Labels => row(
                "labels",
                "LABELS",
                NODE,
                Form::Pairs,
                |text| parse::labels(text).map(drop),
                "Labels: key=value, several with commas",
            ),
            Self::LogLevel => row(
                "log_level",
                "LEVEL",
                NODE | STORE,
                Form::Text,
                log_level,
                "How much is logged: error, warn, info, debug or trace",
            ),
            Self::State => row(
                "state",
                "FILE",
                STORE,
                Form::Text,
                not_empty,
                "File in which the control store keeps its tables; by default in memory",
            ),
            Self::Etcd => row(
                "etcd",
                "URLS",
                STORE,
                Form::List,
                |text| parse::endpoints(text).map(drop),
                "Servers of the etcd in which the control store keeps its tables, with commas",
            ),
            Self::Cluster => row(
                "cluster",
                "NAME",
                STORE,
                Form::Text,
                |text| parse::cluster_name(text).map(drop),
                "Name of the cluster, under which its keys are in etcd",
            ),
            Self::LeaseTtl => row(
                "lease_ttl",
                "DURATION",
                STORE,
                Form::Text,
                |text| parse::lease_ttl(text).map(drop),
                "A node that is not heard of for this long is declared dead",
            ),
        }
    }

    /// Its name in a file.
    pub fn name(self) -> &'static str {
        self.row().name
    }

    /// Its flag.
    pub fn flag(self) -> String {
        format!("--{}", self.name().replace('_', "-"))
    }

    /// Its variable.
    pub fn variable(self) -> String {
        format!("THARSIS_{}", self.name().to_uppercase())
    }

    /// Its value if nobody says anything; none if it then means nothing.
    pub fn default_text(self) -> Option<String> {
        Some(match self {
            Self::Socket => machine::default_socket().display().to_string(),
            Self::SecretFile => machine::default_secret_file().display().to_string(),
            Self::Port | Self::NumGpus => "0".to_owned(),
            Self::NumCpus => machine::cpu_count().to_string(),
            Self::AllowFakeResources => "false".to_owned(),
            Self::Store => machine::default_store_bytes(machine::memory_bytes()).to_string(),
            Self::MemoryLimit => machine::default_memory_limit_bytes(machine::memory_bytes()).to_string(),
            Self::SpillDirs => {
                spill_dirs::default_dir().map_or_else(|| "none".to_owned(), |dir| dir.display().to_string())
            }
            Self::SpillHighWater => "80".to_owned(),
            Self::SpillLowWater => "70".to_owned(),
            Self::Lineage => machine::LINEAGE_BYTES.to_string(),
            Self::WorkerStartTimeout => "30s".to_owned(),
            Self::LogLevel => "warn".to_owned(),
            Self::Cluster => "default".to_owned(),
            Self::LeaseTtl => "10s".to_owned(),
            Self::Resources | Self::Labels | Self::State | Self::Etcd => return None,
        })
    }
}

fn not_empty(text: &str) -> Result<(), String> {
    if text.is_empty() { Err("must not be empty".to_owned()) } else { Ok(()) }
}

fn log_level(text: &str) -> Result<(), String> {
    if LOG_LEVELS.contains(&text) {
        return Ok(());
    }
    Err(format!("expected one of {}", LOG_LEVELS.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_default_passes_its_own_check() {
        for key in Key::ALL {
            if let Some(text) = key.default_text() {
                assert_eq!((key.row().check)(&text), Ok(()), "{} = {text}", key.name());
            }
            assert!(key.row().used_by & ALL != 0);
        }
    }
}
