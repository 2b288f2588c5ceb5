//! The command line. Its flags for settings are made from their table, `settings/key.rs`.

mod help;
mod job;
mod sql;
mod timeline;
mod top;

pub use help::{command, read};
pub use job::{ClusterArgs, JobCommand, SubmitArgs};
pub use sql::SqlArgs;
pub use timeline::TimelineArgs;
pub use top::TopArgs;

use crate::bench::Place;
use crate::settings::flags::{FlagsOf, TextParser};
use crate::settings::{key, parse};
use clap::{Args as ClapArgs, Parser, Subcommand};
use std::path::PathBuf;
use std::time::Duration;
use tharsis::join::TOKEN_VARIABLE;
use tharsis_identity::Role;
use tharsis_protos::handshake::Subject;
use tharsis_protos::listing::Filter;
use tharsis_types::{NotAnId, TaskId};

/// Call functions remotely and get futures: on one machine or on many.
#[derive(Debug, Parser)]
#[command(name = "tharsis", version, about, arg_required_else_help = true)]
pub struct Args {
    /// The command.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Replace the key of the cluster's authority. Run it on the head.
    #[command(subcommand)]
    Authority(AuthorityCommand),
    /// Measure: each figure beside a floor from the same run.
    Bench(BenchArgs),
    /// The process that `bench coldstart` starts.
    #[command(hide = true)]
    BenchFirst {
        /// `processes`, `embedded` or `nothing`.
        mode: String,
    },
    /// The other process of a floor.
    #[command(hide = true)]
    BenchPeer {
        /// Name of the floor.
        kind: String,
        /// Its argument.
        argument: String,
    },
    /// Print what a shell needs to complete commands and flags.
    Completions {
        /// The shell.
        #[arg(value_enum)]
        shell: clap_complete::Shell,
    },
    /// Look at the settings.
    #[command(subcommand)]
    Config(ConfigCommand),
    /// Check whether a node would run well on this machine: memory, limits, disks, names and ports.
    Doctor {
        /// Addresses (host:port) of the heads or control stores that the node is to join, with commas; by
        /// default it is to be alone or to begin a cluster.
        #[arg(long, value_name = "HOST:PORT,..", value_parser = TextParser(parse::hosts_and_ports))]
        address: Option<String>,
        /// One JSON object.
        #[arg(long)]
        json: bool,
        /// Settings that the node is to have.
        #[command(flatten)]
        settings: FlagsOf<{ key::NODE | key::STORE }>,
    },
    /// Have a node leave without loss: it takes no new work, its runs end, and other nodes keep its objects.
    Drain {
        /// The node, as `tharsis nodes` shows it; by default the one of this machine.
        #[arg(value_parser = node_id)]
        node: Option<u64>,
        /// The node leaves after this time, whatever is left.
        #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = parse::positive_duration)]
        deadline: Duration,
        /// Addresses (host:port) of the cluster's control stores, with commas; by default those that the node
        /// of this machine has.
        #[arg(long, value_name = "ADDRESS")]
        address: Option<String>,
        /// The node to ask, and the identity to show.
        #[command(flatten)]
        settings: FlagsOf<{ key::CALL }>,
    },
    /// Answer programs over tensors and frames: a JSON object a line from standard input, one a line back.
    Eval {
        /// Show the operations there are, and run nothing.
        #[arg(long, conflicts_with = "folder")]
        list: bool,
        /// Answer statements of SQL instead, one a line, as a runner of SQL logic tests sends them.
        #[arg(long, conflicts_with_all = ["folder", "list"])]
        sql: bool,
        /// Take the programs from this folder's .json and .jsonl files, by name, instead.
        folder: Option<PathBuf>,
    },
    /// List the actors that were created at a node: their state, where they live, how often they were
    /// restarted.
    Actors(ListArgs),
    /// List the graphs of tasks that a node has, with counts of their tasks by state.
    Graphs(ListArgs),
    /// List the placement groups that a node has made: which are placed, and why others wait.
    Groups(ListArgs),
    /// Run a control store in the foreground, without a node.
    Gcs {
        /// Settings of the control store.
        #[command(flatten)]
        settings: FlagsOf<{ key::STORE }>,
    },
    /// Join a cluster for the first time without a node: the machine of an operator or an observer.
    Join {
        /// Addresses of its heads or control stores, with commas.
        #[arg(long, value_name = "HOST:PORT,..", value_parser = TextParser(parse::hosts_and_ports))]
        address: String,
        /// Token that admits this machine.
        #[arg(long, value_name = "TOKEN", env = TOKEN_VARIABLE, hide_env_values = true)]
        token: String,
        /// Folder of the identity.
        #[command(flatten)]
        settings: FlagsOf<{ key::AUTHORITY }>,
    },
    /// Run programs on the cluster, under supervision of a node.
    #[command(subcommand)]
    Job(JobCommand),
    /// List the jobs that a node knows.
    Jobs(ListArgs),
    /// Show what workers wrote, on all nodes of the cluster or on one.
    Logs(LogsArgs),
    /// Write manual pages of all commands.
    Man {
        /// The folder for them, which is made if there is none.
        folder: PathBuf,
    },
    /// Show what lies in a node's store, who keeps it, and what made it.
    Memory {
        /// One JSON object.
        #[arg(long)]
        json: bool,
        /// The node to ask.
        #[command(flatten)]
        settings: FlagsOf<{ key::ASK }>,
    },
    /// Stop the nodes of the hosts in a cluster file, over ssh.
    Down(HostsArgs),
    /// Run a node in the foreground: alone, as a head, or as a member of a cluster.
    #[command(args_conflicts_with_subcommands = true)]
    Node {
        /// Something else about nodes.
        #[command(subcommand)]
        command: Option<NodeCommand>,
        /// Its part in a cluster.
        #[command(flatten)]
        part: Part,
        /// Its resources.
        #[command(flatten)]
        settings: FlagsOf<{ key::NODE | key::STORE }>,
    },
    /// List the nodes of the cluster.
    Nodes(NodesArgs),
    /// List the objects in a node's store, the largest first.
    Objects(ListArgs),
    /// Answer statements of SQL over files, on threads of this process or on a cluster.
    Sql(SqlArgs),
    /// Start a node in the background.
    #[command(mut_group("Part", |group| group.required(true)))]
    Start {
        /// Its part in a cluster.
        #[command(flatten)]
        part: Part,
        /// Its resources.
        #[command(flatten)]
        settings: FlagsOf<{ key::NODE | key::STORE }>,
    },
    /// Show nodes, resources, the store, and what waits and why; with -f, the hosts of a cluster file.
    Status {
        /// Cluster file: ask its hosts over ssh whether their nodes run and are members.
        #[arg(short = 'f', long = "file", value_name = "FILE")]
        file: Option<PathBuf>,
        /// One JSON object.
        #[arg(long)]
        json: bool,
        /// The node to ask.
        #[command(flatten)]
        settings: FlagsOf<{ key::ASK }>,
    },
    /// Stop the node of this machine and its workers, at once unless it is to drain.
    Stop {
        /// Let it drain first, for this long at most.
        #[arg(
            long,
            value_name = "DURATION",
            num_args = 0..=1,
            require_equals = true,
            default_missing_value = "30s",
            value_parser = parse::positive_duration
        )]
        drain: Option<Duration>,
        /// The node to ask.
        #[command(flatten)]
        settings: FlagsOf<{ key::ASK }>,
    },
    /// List the unfinished tasks that a node owns or runs, the oldest first.
    Tasks(ListArgs),
    /// Write what workers ran, on all nodes of the cluster or on one, as a trace for ui.perfetto.dev.
    Timeline(TimelineArgs),
    /// Admit machines to the cluster of the head on this machine.
    #[command(subcommand)]
    Token(TokenCommand),
    /// Show nodes, jobs and waiting tasks of the cluster, again each second until q is pressed.
    Top(TopArgs),
    /// Start nodes on the hosts of a cluster file, over ssh, and wait until they are members.
    Up(HostsArgs),
    /// Print the version.
    Version {
        /// One JSON object.
        #[arg(long)]
        json: bool,
    },
    /// Say what a task or an object waits for, and what happened to it.
    Why {
        /// Its id, as `status`, `memory` and failures print it: 32 hexadecimal digits for a task, with `/0`
        /// or `/put0` behind them for an object.
        #[arg(value_parser = subject)]
        id: Subject,
        /// One JSON object.
        #[arg(long)]
        json: bool,
        /// The node to ask.
        #[command(flatten)]
        settings: FlagsOf<{ key::ASK }>,
    },
    /// List the workers of a node.
    Workers(ListArgs),
}

/// Commands about nodes beside running one.
#[derive(Debug, Subcommand)]
pub enum NodeCommand {
    /// Shut a machine out, with all its nodes. Run it on the head.
    Revoke {
        /// The machine as `tharsis token list` shows it, or one of its nodes.
        #[arg(value_parser = subject_of_revocation)]
        id: u64,
        /// Leave the token with which it joined good: others join with it, and it could as well.
        #[arg(long)]
        keep_token: bool,
        /// Folder of the authority.
        #[command(flatten)]
        settings: FlagsOf<{ key::IDENTITY }>,
    },
}

/// Commands about the authority's key.
#[derive(Debug, Subcommand)]
pub enum AuthorityCommand {
    /// End the trust in the former key, once all nodes use the new one.
    Retire {
        /// Even if nodes may not have heard of the new key; those are shut out.
        #[arg(long)]
        force: bool,
        /// Folder of the authority, and the time that nodes have.
        #[command(flatten)]
        settings: FlagsOf<{ key::AUTHORITY }>,
    },
    /// Replace the key of the authority. Both keys are good until the former one is retired.
    Rotate {
        /// Folder of the authority, and the time that nodes have.
        #[command(flatten)]
        settings: FlagsOf<{ key::AUTHORITY }>,
    },
}

/// Commands about tokens.
#[derive(Debug, Subcommand)]
pub enum TokenCommand {
    /// Print a new token.
    Create {
        /// The role of the machines that join with it: node, driver, operator or observer.
        #[arg(long, default_value = "node")]
        role: Role,
        /// Time for which it is good.
        #[arg(long, value_name = "DURATION", default_value = "24h", value_parser = parse::positive_duration)]
        expires: Duration,
        /// Folder of the authority.
        #[command(flatten)]
        settings: FlagsOf<{ key::IDENTITY }>,
    },
    /// List the tokens that are good, and the machines that joined.
    List {
        /// One JSON object.
        #[arg(long)]
        json: bool,
        /// Folder of the authority.
        #[command(flatten)]
        settings: FlagsOf<{ key::IDENTITY }>,
    },
    /// Make a token useless. Machines that joined with it stay.
    Revoke {
        /// Its number as `tharsis token list` shows it: the second part of its text.
        #[arg(value_parser = subject_of_revocation)]
        number: u64,
        /// Folder of the authority.
        #[command(flatten)]
        settings: FlagsOf<{ key::IDENTITY }>,
    },
}

/// A node by its 16 hexadecimal digits.
fn node_id(text: &str) -> Result<u64, String> {
    subject_of_revocation(text)
}

/// A token, machine or node by its 16 hexadecimal digits.
fn subject_of_revocation(text: &str) -> Result<u64, String> {
    let is_hex = text.len() == 16 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    u64::from_str_radix(text, 16)
        .ok()
        .filter(|_| is_hex)
        .ok_or_else(|| "expected 16 hexadecimal digits".to_owned())
}

/// A task or an object by its id.
fn subject(text: &str) -> Result<Subject, NotAnId> {
    if text.contains('/') { text.parse().map(Subject::Object) } else { text.parse().map(Subject::Task) }
}

/// Lines of workers to show.
#[derive(Clone, Debug, ClapArgs)]
pub struct LogsArgs {
    /// Go on with lines that come, until interrupted.
    #[arg(short, long)]
    pub follow: bool,
    /// Only lines of this job, as `tharsis jobs` shows it.
    #[arg(long, value_name = "JOB")]
    pub job: Option<u32>,
    /// Only lines that a worker wrote while it ran this task, by their time: where tasks are short, lines of
    /// its neighbours may be among them.
    #[arg(long, value_name = "TASK")]
    pub task: Option<TaskId>,
    /// Only lines of workers of this node, as `tharsis nodes` shows it.
    #[arg(long, value_name = "NODE", value_parser = node_id)]
    pub node: Option<u64>,
    /// Begin with this many lines from the end.
    #[arg(long, value_name = "COUNT", default_value_t = 1000)]
    pub tail: u32,
    /// A JSON object a line.
    #[arg(long)]
    pub json: bool,
    /// Addresses (host:port) of the cluster's control stores, with commas; by default those that the node of
    /// this machine has.
    #[arg(long, value_name = "ADDRESS")]
    pub address: Option<String>,
    /// The node to ask, and the identity to show.
    #[command(flatten)]
    pub settings: FlagsOf<{ key::CALL }>,
}

/// The hosts of a cluster.
#[derive(Clone, Debug, ClapArgs)]
pub struct HostsArgs {
    /// Cluster file (TOML): the head, the workers, ssh, and settings of the nodes.
    #[arg(short = 'f', long = "file", value_name = "FILE")]
    pub file: PathBuf,
}

/// A list of a node.
#[derive(Clone, Debug, ClapArgs)]
pub struct ListArgs {
    /// The rows to show.
    #[command(flatten)]
    pub rows: RowsArgs,
    /// The node to ask.
    #[command(flatten)]
    pub settings: FlagsOf<{ key::ASK }>,
}

/// The list of the members of a cluster.
#[derive(Clone, Debug, ClapArgs)]
pub struct NodesArgs {
    /// The rows to show.
    #[command(flatten)]
    pub rows: RowsArgs,
    /// Addresses (host:port) of the cluster's control stores, with commas; by default the node of this
    /// machine is asked.
    #[arg(long, value_name = "ADDRESS")]
    pub address: Option<String>,
    /// The node to ask, and the identity to show.
    #[command(flatten)]
    pub settings: FlagsOf<{ key::CALL }>,
}

/// Rows of a list, their order and form.
#[derive(Clone, Debug, ClapArgs)]
pub struct RowsArgs {
    /// Only rows with this value in this column (`state=running`), or without it (`state!=running`); of
    /// several filters, all hold.
    #[arg(long = "filter", value_name = "COLUMN=VALUE", value_parser = filter)]
    pub filters: Vec<Filter>,
    /// Order by this column, the smallest first; with a minus before it, the largest first.
    #[arg(long, value_name = "COLUMN", allow_hyphen_values = true)]
    pub sort: Option<String>,
    /// Show this many rows at most.
    #[arg(long, value_name = "COUNT", default_value_t = 100)]
    pub limit: usize,
    /// One JSON object.
    #[arg(long)]
    pub json: bool,
}

/// A filter as it is typed.
fn filter(text: &str) -> Result<Filter, String> {
    let (column, value) = text.split_once('=').ok_or("it must be COLUMN=VALUE or COLUMN!=VALUE")?;
    let (column, is_equal) = column.strip_suffix('!').map_or((column, true), |column| (column, false));
    Ok(Filter { column: column.trim().to_owned(), is_equal, value: value.trim().to_owned() })
}

/// The bench to run, and its size.
#[derive(Clone, Debug, ClapArgs)]
pub struct BenchArgs {
    /// Name of the bench; `all` for those that take less than 20 seconds each (not gemm-std, svd).
    #[arg(default_value = "all")]
    pub name: String,
    /// One line of JSON each.
    #[arg(long)]
    pub json: bool,
    /// Workers as threads of this process.
    #[arg(long)]
    pub embedded: bool,
    /// A tenth of the work.
    #[arg(long)]
    pub quick: bool,
    /// Executor of the tasks of a bench over tensors or frames.
    #[arg(long, value_enum, default_value_t)]
    pub on: Place,
    /// Amount of work of a bench: points, elements, chunks, rows, nodes, megabytes of values, gigabytes of
    /// files, or the scale of TPC-H.
    #[arg(long, value_name = "COUNT")]
    pub size: Option<usize>,
    /// With cluster: number of nodes; the same as --size.
    #[arg(long, value_name = "COUNT", conflicts_with = "size")]
    pub nodes: Option<usize>,
    /// Read spilled values back in random order.
    #[arg(long)]
    pub random: bool,
    /// Spill values that compress well, and compare with the same uncompressed.
    #[arg(long)]
    pub compressible: bool,
    /// Bytes per second that the disk is to move at most, such as 200MB/s.
    #[arg(long, value_name = "RATE", value_parser = TextParser(parse::rate))]
    pub disk_limit: Option<u64>,
    /// With transfer and task-throughput: between nodes that know each other by certificates.
    #[arg(long)]
    pub tls: bool,
    /// With axpb: keep the result instead of its sum. With spill, shuffle and sort: bytes of the store.
    #[arg(long, value_name = "SIZE", value_parser = TextParser(parse::store_size))]
    pub store: Option<Option<u64>>,
    /// With benches over frames: bytes of memory for operators and rows together, such as 2GB.
    #[arg(long, value_name = "SIZE", value_parser = TextParser(parse::store_size))]
    pub memory: Option<u64>,
    /// With benches over frames: rounds of each job, of which the median is told; 3 if not given.
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..))]
    pub rounds: Option<u32>,
    /// With benches over frames: folder that keeps the data. What is there already is not made again.
    #[arg(long, value_name = "FOLDER")]
    pub data: Option<PathBuf>,
}

/// Action on the settings.
#[derive(Debug, Subcommand)]
pub enum ConfigCommand {
    /// Show each value that holds, and who said it.
    Show {
        /// One JSON object.
        #[arg(long)]
        json: bool,
        /// Settings typed here hold as well.
        #[command(flatten)]
        settings: FlagsOf<{ key::ALL }>,
    },
}

/// A node's part in a cluster.
#[derive(Clone, Debug, ClapArgs)]
#[group(skip)]
pub struct Part {
    /// Whether it begins or joins.
    #[command(flatten)]
    pub entry: Entry,
    /// Token with which this machine joins the cluster at --address for the first time.
    #[arg(long, value_name = "TOKEN", env = TOKEN_VARIABLE, hide_env_values = true)]
    pub token: Option<String>,
    /// File with that token, in place of --token: arguments and environments can be read by others.
    #[arg(long, value_name = "FILE", conflicts_with = "token")]
    pub token_file: Option<PathBuf>,
}

/// Whether a node begins a cluster or joins one; neither if it is alone.
#[derive(Clone, Debug, ClapArgs)]
#[group(id = "Part", multiple = false)]
pub struct Entry {
    /// Begin a cluster: the control store runs in the node.
    #[arg(long)]
    pub head: bool,
    /// Join the cluster whose head or control store is at HOST:PORT; several with commas between them.
    #[arg(long, value_name = "HOST:PORT,..", value_parser = TextParser(parse::hosts_and_ports))]
    pub address: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(words: &[&str]) -> Result<Args, clap::Error> {
        Args::try_parse_from(std::iter::once(&"tharsis").chain(words))
    }

    #[test]
    fn the_command_line_is_well_formed() {
        use clap::CommandFactory;
        Args::command().debug_assert();
    }

    #[test]
    fn bad_arguments_are_refused_with_flag_and_value() {
        let bad: &[(&[&str], &[&str])] = &[
            (&["start"], &["--head"]),
            (&["start", "--head", "--address", "a:1"], &["--head", "--address"]),
            (&["start", "--address", "somewhere"], &["--address", "somewhere", "HOST:PORT"]),
            (&["start", "--head", "--store", "4x"], &["--store", "4x", "MiB"]),
            (&["start", "--head", "--store", "1KiB"], &["--store", "smallest"]),
            (&["start", "--head", "--resources", "{\"CPU\":2}"], &["--resources", "CPU", "reserved"]),
            (&["start", "--head", "--labels", "k"], &["--labels", "k", "key=value"]),
            (&["start", "--head", "--log-level", "loud"], &["--log-level", "loud", "warn"]),
            (&["start", "--head", "--num-cpus", "-1"], &["--num-cpus"]),
            (&["start", "--head", "--num-cpu", "1"], &["--num-cpu", "--num-cpus"]),
            (&["start", "--head", "--lease-ttl", "10"], &["--lease-ttl", "such as 10s"]),
        ];
        for (words, parts) in bad {
            let text = parse(words).unwrap_err().to_string();
            for part in *parts {
                assert!(text.contains(part), "{part} missing in: {text}");
            }
        }
    }

    #[test]
    fn a_node_may_be_alone_and_a_switch_needs_no_value() {
        assert!(parse(&["node"]).is_ok());
        assert!(parse(&["start", "--head", "--num-cpus", "0"]).is_ok());
        let Command::Start { settings, .. } =
            parse(&["start", "--head", "--allow-fake-resources", "--num-gpus", "2"]).unwrap().command
        else {
            panic!("another command");
        };
        assert_eq!(settings.text(key::Key::AllowFakeResources), Some("true"));
        assert_eq!(settings.text(key::Key::NumGpus), Some("2"));
    }
}
