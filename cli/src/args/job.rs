//! The command line of `tharsis job`.

use crate::settings::flags::FlagsOf;
use crate::settings::{key, parse};
use clap::{Args as ClapArgs, Subcommand};
use std::path::PathBuf;
use std::time::Duration;
use tharsis_types::{BadQuota, Quota};

/// Commands about programs that run on the cluster.
#[derive(Clone, Debug, Subcommand)]
pub enum JobCommand {
    /// List the programs that were submitted, the latest first.
    List {
        /// One JSON object.
        #[arg(long)]
        json: bool,
        /// The cluster.
        #[command(flatten)]
        cluster: ClusterArgs,
    },
    /// Show what a program wrote.
    Logs {
        /// The program, as `tharsis job list` shows it.
        name: String,
        /// Go on with what comes, until the program has ended.
        #[arg(short, long)]
        follow: bool,
        /// Begin with this many lines from the end.
        #[arg(long, value_name = "COUNT", default_value_t = 1000)]
        tail: u32,
        /// The cluster.
        #[command(flatten)]
        cluster: ClusterArgs,
    },
    /// Show what has become of a program.
    Status {
        /// The program, as `tharsis job list` shows it.
        name: String,
        /// One JSON object.
        #[arg(long)]
        json: bool,
        /// The cluster.
        #[command(flatten)]
        cluster: ClusterArgs,
    },
    /// Stop a program and what it started, and wait until it has ended.
    Stop {
        /// The program, as `tharsis job list` shows it.
        name: String,
        /// It is killed if it has not ended after this time.
        #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = parse::positive_duration)]
        grace: Duration,
        /// The cluster.
        #[command(flatten)]
        cluster: ClusterArgs,
    },
    /// Run a program on a node of the cluster, and print its name.
    Submit(SubmitArgs),
}

/// A program to run.
#[derive(Clone, Debug, ClapArgs)]
pub struct SubmitArgs {
    /// Its name, which no other program has: letters, digits, and - _ . inside; by default made from the
    /// program's.
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// Show what it writes, and end as it ends.
    #[arg(short, long)]
    pub follow: bool,
    /// The node that runs it, as `tharsis nodes` shows it; by default the one of this machine, and with
    /// --address the one with most CPUs.
    #[arg(long, value_name = "NODE", value_parser = super::node_id)]
    pub node: Option<u64>,
    /// The folder in which it runs, on the machine of the node; by default the present one.
    #[arg(long, value_name = "FOLDER")]
    pub dir: Option<PathBuf>,
    /// A variable of its environment. May be given several times.
    #[arg(long = "env", value_name = "NAME=VALUE", value_parser = variable)]
    pub variables: Vec<(String, String)>,
    /// The most that its tasks, actors and placement groups hold at once in the whole cluster, such as
    /// cpus=4,memory=2GB.
    #[arg(long, value_name = "RESOURCE=AMOUNT,..", value_parser = quota)]
    pub quota: Option<Quota>,
    /// The cluster.
    #[command(flatten)]
    pub cluster: ClusterArgs,
    /// The program, in its folder or in the PATH of the node, and its arguments.
    #[arg(last = true, required = true, value_name = "PROGRAM")]
    pub words: Vec<String>,
}

/// The cluster to ask.
#[derive(Clone, Debug, ClapArgs)]
pub struct ClusterArgs {
    /// Addresses (host:port) of the cluster's control stores, with commas; by default those that the node of
    /// this machine has.
    #[arg(long, value_name = "ADDRESS")]
    pub address: Option<String>,
    /// The node to ask, and the identity to show.
    #[command(flatten)]
    pub settings: FlagsOf<{ key::CALL }>,
}

/// A quota of a job.
fn quota(text: &str) -> Result<Quota, BadQuota> {
    text.parse()
}

/// A variable with its value.
fn variable(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err("expected NAME=VALUE".to_owned()),
    }
}
