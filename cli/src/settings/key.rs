//! The settings there are, as data: name, form, meaning, default.
//!
//! One row serves a flag (`--num-cpus`), a variable (`THARSIS_NUM_CPUS`) and a key of the file (`num_cpus`),
//! and the same check stands in front of all three.

use super::{parse, spill};
use tharsis::{machine, spill_dirs};

/// Settings of nodes: `start`, `node`.
pub const NODE: u8 = 1;
/// Settings of the control store: `gcs`, and heads.
pub const STORE: u8 = 2;
/// Settings of commands that ask a node: `status`, `stop`.
pub const ASK: u8 = 4;
/// Settings of commands that work with the cluster's authority: `token`, `node revoke`.
pub const IDENTITY: u8 = 8;
/// Settings of commands that call other nodes: `drain`.
pub const CALL: u8 = 16;
/// Settings of commands that replace the authority's key: `authority`.
pub const AUTHORITY: u8 = 32;
/// All of them.
pub const ALL: u8 = NODE | STORE | ASK | IDENTITY | CALL | AUTHORITY;

/// Log levels, from the fewest messages to the most.
pub const LOG_LEVELS: [&str; 5] = ["error", "warn", "info", "debug", "trace"];

/// Formats of the log's lines; the first one is the default.
pub const LOG_FORMATS: [&str; 2] = ["text", "json"];

/// A setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Key {
    /// Path at which a node listens for drivers and workers.
    Socket,
    /// Address at which other nodes reach it.
    Host,
    /// Address on which it listens, if that is another one.
    Bind,
    /// Port at which other nodes reach it.
    Port,
    /// File with the cluster's secret.
    SecretFile,
    /// Folder of this user's identities in clusters.
    IdentityDir,
    /// Threads for connections with other nodes.
    NetworkThreads,
    /// CPUs.
    NumCpus,
    /// GPUs.
    NumGpus,
    /// Accept GPUs that are not there.
    AllowFakeResources,
    /// Size of the object store.
    Store,
    /// Memory that a node and its workers may use.
    MemoryLimit,
    /// Use of that memory from which nothing new is started.
    MemorySoftLimit,
    /// Memory of the machine that is left to others.
    MinFreeMemory,
    /// Folders to which objects are spilled.
    SpillDirs,
    /// Part of the store above which objects are spilled.
    SpillHighWater,
    /// Part of the store down to which they are spilled.
    SpillLowWater,
    /// Memory for how finished tasks were called.
    Lineage,
    /// Silence after which a worker that was started is killed.
    WorkerStartTimeout,
    /// The longest time that a node drains when SIGTERM tells it to end.
    DrainTimeout,
    /// Custom resources.
    Resources,
    /// Labels.
    Labels,
    /// The log level.
    LogLevel,
    /// Format of the log's lines.
    LogFormat,
    /// File of the log.
    LogFile,
    /// Size at which the log begins another file.
    LogFileSize,
    /// Number of log files that are kept.
    LogFiles,
    /// File of the control store.
    State,
    /// etcd of the control store.
    Etcd,
    /// Authority of its servers' certificates.
    EtcdCa,
    /// Certificate that is shown to them.
    EtcdCertificate,
    /// Key of that certificate.
    EtcdKeyFile,
    /// User of that etcd.
    EtcdUser,
    /// File with the user's password.
    EtcdPasswordFile,
    /// Accept an etcd of another machine without TLS.
    EtcdInsecure,
    /// Name of the cluster in that etcd.
    Cluster,
    /// Silence after which a node is dead.
    LeaseTtl,
    /// Lifetime of the certificates of nodes.
    CertificateLifetime,
}

/// The form of a key's value in a file.
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

/// Properties of a key.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// The key that it is about.
    pub key: Key,
    /// Its name in a file; flags have dashes instead, variables are in capitals.
    pub name: &'static str,
    /// Placeholder of the value in the help text.
    pub value_name: &'static str,
    /// Meaning of the key, for the help text.
    pub help: &'static str,
    /// Parts of the program that use the key, as bits.
    pub used_by: u8,
    /// Form of the value in a file.
    pub form: Form,
    /// Says what is wrong with a text.
    pub check: fn(&str) -> Result<(), String>,
}

/// All settings, in the order of help.
const ROWS: [Row; 38] = [
    Row {
        key: Key::Socket,
        name: "socket",
        value_name: "PATH",
        help: "Socket of the node for drivers and workers; by default in the user's own folder, below XDG_RUNTIME_DIR or \
             TMPDIR",
        used_by: NODE | ASK | IDENTITY | CALL,
        form: Form::Text,
        check: not_empty,
    },
    Row {
        key: Key::Host,
        name: "host",
        value_name: "ADDRESS",
        help: "Address or name of this machine for other nodes, with the port at which they reach it if that is not \
             --port; a head then admits machines by certificates. Names are resolved again at each connection. By default the \
             loopback address, and for members of such a head the one from which they reach it",
        used_by: NODE | STORE,
        form: Form::Text,
        check: |text| parse::host(text).map(drop),
    },
    Row {
        key: Key::Bind,
        name: "bind",
        value_name: "ADDRESS",
        help: "Address on which it listens, such as 0.0.0.0 or :: for all of the machine; by default that of --host",
        used_by: NODE | STORE,
        form: Form::Text,
        check: |text| parse::bind(text).map(drop),
    },
    Row {
        key: Key::Port,
        name: "port",
        value_name: "PORT",
        help: "Port for other nodes; by default a free one",
        used_by: NODE | STORE,
        form: Form::Number,
        check: |text| parse::port(text).map(drop),
    },
    Row {
        key: Key::SecretFile,
        name: "secret_file",
        value_name: "FILE",
        help: "File with the secret that the members of a cluster share, made if it is not there; by default in the \
             user's own folder",
        used_by: NODE | STORE | CALL,
        form: Form::Text,
        check: not_empty,
    },
    Row {
        key: Key::IdentityDir,
        name: "identity_dir",
        value_name: "DIR",
        help: "Folder with this user's identities in clusters, and on a head with the cluster's authority; made if it is \
             not there",
        used_by: NODE | STORE | IDENTITY | CALL | AUTHORITY,
        form: Form::Text,
        check: not_empty,
    },
    Row {
        key: Key::NetworkThreads,
        name: "network_threads",
        value_name: "N",
        help: "Threads for messages between nodes and with the control store; transfers of values have their own",
        used_by: NODE | STORE,
        form: Form::Number,
        check: |text| parse::network_threads(text).map(drop),
    },
    Row {
        key: Key::NumCpus,
        name: "num_cpus",
        value_name: "N",
        help: "CPUs it offers, and with them the worker processes that run tasks at the same time; by default those of \
             the machine, and none on a head that admits by certificates: programs could read its key",
        used_by: NODE,
        form: Form::Number,
        check: |text| parse::cpus(text).map(drop),
    },
    Row {
        key: Key::NumGpus,
        name: "num_gpus",
        value_name: "N",
        help: "GPUs it offers",
        used_by: NODE,
        form: Form::Number,
        check: |text| parse::amount(text).map(drop),
    },
    Row {
        key: Key::AllowFakeResources,
        name: "allow_fake_resources",
        value_name: "BOOL",
        help: "Accept more GPUs than the machine has",
        used_by: NODE,
        form: Form::Switch,
        check: |text| parse::switch(text).map(drop),
    },
    Row {
        key: Key::Store,
        name: "store",
        value_name: "SIZE",
        help: "Size of the object store, such as 512MiB, 4GB or 25% of the memory; by default a third of the memory",
        used_by: NODE,
        form: Form::Size,
        check: |text| parse::store_memory(text).map(drop),
    },
    Row {
        key: Key::MemoryLimit,
        name: "memory_limit",
        value_name: "SIZE",
        help: "Memory that the node and its workers may use, the store included, as a size or in percent; above it \
             workers are ended. By default nine tenths of what there is",
        used_by: NODE,
        form: Form::Size,
        check: |text| parse::store_memory(text).map(drop),
    },
    Row {
        key: Key::MemorySoftLimit,
        name: "memory_soft_limit",
        value_name: "SIZE",
        help: "Use of that memory from which nothing new is started while tasks run, as a size or in percent; by default \
             there is no such limit",
        used_by: NODE,
        form: Form::Size,
        check: |text| parse::store_memory(text).map(drop),
    },
    Row {
        key: Key::MinFreeMemory,
        name: "min_free_memory",
        value_name: "SIZE",
        help: "Memory of the machine that is left to others, as a size or in percent: workers are ended before less is \
             free",
        used_by: NODE,
        form: Form::Size,
        check: |text| parse::memory(text).map(drop),
    },
    Row {
        key: Key::SpillDirs,
        name: "spill_dirs",
        value_name: "DIRS",
        help: "Directories for objects that the store has no room for: PATH or PATH:QUOTA, several with commas, or none; \
             by default the user's own folder, and 80 % of what is free there",
        used_by: NODE,
        form: Form::List,
        check: |text| spill::dirs(text).map(drop),
    },
    Row {
        key: Key::SpillHighWater,
        name: "spill_high_water",
        value_name: "PERCENT",
        help: "Part of the store that is in use when objects begin to be spilled",
        used_by: NODE,
        form: Form::Number,
        check: |text| parse::percent(text).map(drop),
    },
    Row {
        key: Key::SpillLowWater,
        name: "spill_low_water",
        value_name: "PERCENT",
        help: "Part of the store that is in use when they no longer are; less than the high one",
        used_by: NODE,
        form: Form::Number,
        check: |text| parse::percent(text).map(drop),
    },
    Row {
        key: Key::Lineage,
        name: "lineage",
        value_name: "SIZE",
        help: "Memory for how finished tasks were called, so that lost values can be made again; 0 for none",
        used_by: NODE,
        form: Form::Size,
        check: |text| parse::size(text).map(drop),
    },
    Row {
        key: Key::WorkerStartTimeout,
        name: "worker_start_timeout",
        value_name: "DURATION",
        help: "A worker that has not connected this long after its start is killed",
        used_by: NODE,
        form: Form::Text,
        check: |text| parse::positive_duration(text).map(drop),
    },
    Row {
        key: Key::DrainTimeout,
        name: "drain_timeout",
        value_name: "DURATION",
        help: "Longest time that the node drains when SIGTERM tells it to end",
        used_by: NODE,
        form: Form::Text,
        check: |text| parse::positive_duration(text).map(drop),
    },
    Row {
        key: Key::Resources,
        name: "resources",
        value_name: "JSON",
        help: "Custom resources as JSON: '{\"tpu\": 2}'",
        used_by: NODE,
        form: Form::Amounts,
        check: |text| parse::resources(text).map(drop),
    },
    Row {
        key: Key::Labels,
        name: "labels",
        value_name: "LABELS",
        help: "Labels: key=value, several with commas",
        used_by: NODE,
        form: Form::Pairs,
        check: |text| parse::labels(text).map(drop),
    },
    Row {
        key: Key::LogLevel,
        name: "log_level",
        value_name: "LEVEL",
        help: "How much is logged: error, warn, info, debug or trace",
        used_by: NODE | STORE,
        form: Form::Text,
        check: log_level,
    },
    Row {
        key: Key::LogFormat,
        name: "log_format",
        value_name: "FORMAT",
        help: "Format of the log's lines: text, or json with one object a line",
        used_by: NODE | STORE,
        form: Form::Text,
        check: log_format,
    },
    Row {
        key: Key::LogFile,
        name: "log_file",
        value_name: "FILE",
        help: "File of the log; by default standard error, which `tharsis start` writes to node.log beside the socket",
        used_by: NODE | STORE,
        form: Form::Text,
        check: not_empty,
    },
    Row {
        key: Key::LogFileSize,
        name: "log_file_size",
        value_name: "SIZE",
        help: "Size of the log file at which it is renamed (FILE.1, FILE.2, ..) and begun again",
        used_by: NODE | STORE,
        form: Form::Size,
        check: |text| parse::log_file_size(text).map(drop),
    },
    Row {
        key: Key::LogFiles,
        name: "log_files",
        value_name: "N",
        help: "Number of log files that are kept, with the one in use",
        used_by: NODE | STORE,
        form: Form::Number,
        check: |text| parse::log_files(text).map(drop),
    },
    Row {
        key: Key::State,
        name: "state",
        value_name: "FILE",
        help: "File in which the control store keeps its tables; by default in memory",
        used_by: STORE,
        form: Form::Text,
        check: not_empty,
    },
    Row {
        key: Key::Etcd,
        name: "etcd",
        value_name: "URLS",
        help: "Servers of the etcd in which the control store keeps its tables, with commas",
        used_by: STORE,
        form: Form::List,
        check: |text| parse::endpoints(text).map(drop),
    },
    of_store(
        Key::EtcdCa,
        "etcd_ca",
        "FILE",
        "Certificate of the authority that signed those of the etcd servers, as PEM; for servers with https://",
    ),
    of_store(
        Key::EtcdCertificate,
        "etcd_certificate",
        "FILE",
        "Certificate that is shown to the etcd servers, as PEM",
    ),
    of_store(Key::EtcdKeyFile, "etcd_key", "FILE", "Key of that certificate, as PEM"),
    of_store(Key::EtcdUser, "etcd_user", "NAME", "User of etcd, where it asks for one"),
    of_store(Key::EtcdPasswordFile, "etcd_password_file", "FILE", "File with the password of that user"),
    Row {
        key: Key::EtcdInsecure,
        name: "etcd_insecure",
        value_name: "BOOL",
        help: "Accept servers without TLS that are not on this machine: whoever reaches them may change the tables",
        used_by: STORE,
        form: Form::Switch,
        check: |text| parse::switch(text).map(drop),
    },
    Row {
        key: Key::Cluster,
        name: "cluster",
        value_name: "NAME",
        help: "Name of the cluster, under which its keys are in etcd",
        used_by: STORE,
        form: Form::Text,
        check: |text| parse::cluster_name(text).map(drop),
    },
    Row {
        key: Key::LeaseTtl,
        name: "lease_ttl",
        value_name: "DURATION",
        help: "A node that is not heard of for this long is declared dead, after a quarter of it one that hangs",
        used_by: STORE,
        form: Form::Text,
        check: |text| parse::lease_ttl(text).map(drop),
    },
    Row {
        key: Key::CertificateLifetime,
        name: "certificate_lifetime",
        value_name: "DURATION",
        help: "Lifetime of the certificates of nodes, which are replaced at half of it",
        used_by: STORE | AUTHORITY,
        form: Form::Text,
        check: |text| parse::certificate_lifetime(text).map(drop),
    },
];

impl Key {
    /// Every key, in the order of help.
    pub const ALL: [Self; ROWS.len()] = {
        let mut all = [Self::Socket; ROWS.len()];
        let mut index = 0;
        while index < all.len() {
            all[index] = ROWS[index].key;
            assert!(all[index] as usize == index, "rows stand in the order of the keys");
            index += 1;
        }
        all
    };

    /// Properties of this key.
    pub const fn row(self) -> &'static Row {
        &ROWS[self as usize]
    }

    /// Whether it is a setting of heads and control stores alone.
    pub const fn is_of_head(self) -> bool {
        self.row().used_by == STORE
    }

    /// Its name in a file.
    pub fn name(self) -> &'static str {
        self.row().name
    }

    /// The flag on the command line, with its two dashes.
    pub fn flag(self) -> String {
        format!("--{}", self.name().replace('_', "-"))
    }

    /// The environment variable that stands for it.
    pub fn variable(self) -> String {
        format!("THARSIS_{}", self.name().to_uppercase())
    }

    /// Its value if nobody says anything; none if it then means nothing.
    pub fn default_text(self) -> Option<String> {
        Some(match self {
            Self::Socket => machine::default_socket().display().to_string(),
            Self::SecretFile => machine::default_secret_file().display().to_string(),
            Self::IdentityDir => machine::default_identity_folder().display().to_string(),
            Self::CertificateLifetime => "24h".to_owned(),
            Self::Port | Self::NumGpus | Self::MinFreeMemory => "0".to_owned(),
            Self::NetworkThreads => "1".to_owned(),
            Self::LogFormat => LOG_FORMATS[0].to_owned(),
            Self::LogFileSize => "64MiB".to_owned(),
            Self::LogFiles => "5".to_owned(),
            Self::NumCpus => machine::cpu_count().to_string(),
            Self::AllowFakeResources | Self::EtcdInsecure => "false".to_owned(),
            Self::Store => machine::default_store_bytes(machine::memory_bytes()).to_string(),
            Self::MemoryLimit => machine::default_memory_limit_bytes(machine::memory_bytes()).to_string(),
            Self::SpillDirs => {
                spill_dirs::default_dir().map_or_else(|| "none".to_owned(), |dir| dir.display().to_string())
            }
            Self::SpillHighWater => "80".to_owned(),
            Self::SpillLowWater => "70".to_owned(),
            Self::Lineage => machine::LINEAGE_BYTES.to_string(),
            Self::WorkerStartTimeout => "30s".to_owned(),
            Self::DrainTimeout => "10s".to_owned(),
            Self::LogLevel => "warn".to_owned(),
            Self::Cluster => "default".to_owned(),
            Self::LeaseTtl => "10s".to_owned(),
            Self::Host
            | Self::Bind
            | Self::MemorySoftLimit
            | Self::Resources
            | Self::Labels
            | Self::LogFile
            | Self::State
            | Self::Etcd
            | Self::EtcdCa
            | Self::EtcdCertificate
            | Self::EtcdKeyFile
            | Self::EtcdUser
            | Self::EtcdPasswordFile => return None,
        })
    }
}

/// The row of a setting of control stores that is any text.
const fn of_store(key: Key, name: &'static str, value_name: &'static str, help: &'static str) -> Row {
    Row { key, name, value_name, help, used_by: STORE, form: Form::Text, check: not_empty }
}

fn not_empty(text: &str) -> Result<(), String> {
    if text.is_empty() { Err("must not be empty".to_owned()) } else { Ok(()) }
}

fn log_level(text: &str) -> Result<(), String> {
    one_of(&LOG_LEVELS, text)
}

fn log_format(text: &str) -> Result<(), String> {
    one_of(&LOG_FORMATS, text)
}

fn one_of(all: &[&str], text: &str) -> Result<(), String> {
    if all.contains(&text) { Ok(()) } else { Err(format!("expected one of {}", all.join(", "))) }
}

#[cfg(test)]
#[path = "key_tests.rs"]
mod tests;
