//! The words of `tharsis timeline`.

use super::node_id;
use crate::settings::flags::FlagsOf;
use crate::settings::{key, parse};
use clap::Args as ClapArgs;
use std::path::PathBuf;
use std::time::Duration;
use tharsis_types::TaskId;

/// Runs to show, and the file for them.
#[derive(Clone, Debug, ClapArgs)]
pub struct TimelineArgs {
    /// Only runs of this job, as `tharsis jobs` shows it.
    #[arg(long, value_name = "JOB")]
    pub job: Option<u32>,
    /// Only runs of this task.
    #[arg(long, value_name = "TASK")]
    pub task: Option<TaskId>,
    /// Only runs of workers of this node, as `tharsis nodes` shows it.
    #[arg(long, value_name = "NODE", value_parser = node_id)]
    pub node: Option<u64>,
    /// Only runs that ended in this time until now, such as 10m, and those that go on.
    #[arg(long, value_name = "DURATION", value_parser = parse::positive_duration)]
    pub since: Option<Duration>,
    /// Write to this file; without it, or with -, to standard output.
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Addresses (host:port) of the cluster's control stores, with commas; by default those that the node of
    /// this machine has.
    #[arg(long, value_name = "ADDRESS")]
    pub address: Option<String>,
    /// The node to ask, and the identity to show.
    #[command(flatten)]
    pub settings: FlagsOf<{ key::CALL }>,
}
