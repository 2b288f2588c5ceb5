//! `tharsis status -f`: of each host whether it is reached, whether its node runs and is a member, and of
//! which version its program is.

use super::file::{Cluster, Host};
use super::probe::{HostError, knows};
use super::{each, table, verdict, with_cluster};
use crate::output;
use anyhow::Result;
use serde_json::json;
use std::path::Path;
use tharsis_protos::report::Report;

/// The state of one host.
struct State {
    version: Result<String, HostError>,
    report: Result<Option<Report>, HostError>,
}

/// Asks all hosts.
///
/// # Errors
/// The fault in the file, or [`super::HostsFailed`] unless every host has a member.
pub fn run(path: &Path, as_json: bool) -> Result<()> {
    with_cluster(path, |cluster| ask(cluster, as_json))
}

async fn ask(cluster: Cluster, as_json: bool) -> Result<()> {
    let states = each(&cluster.hosts, |host| async move { look(&host).await }).await?;
    let head = states.first().and_then(|state| state.report.as_ref().ok()?.as_ref());
    let head_node = head.map(|report| report.node);
    let members = |node: u64| Some(node) == head_node || head.is_some_and(|report| knows(report, node));
    let rows: Vec<Row> =
        cluster.hosts.iter().zip(&states).map(|(host, state)| Row::of(host, state, members)).collect();
    let failed = rows.iter().filter(|row| !row.is_member).count();
    if as_json {
        let hosts: Vec<_> = rows.iter().map(Row::json).collect();
        output::line(&json!({ "hosts": hosts }).to_string())?;
    } else {
        let heading = ["host", "reachable", "running", "member", "version", "problem"].map(str::to_owned);
        table(&std::iter::once(heading.to_vec()).chain(rows.iter().map(Row::cells)).collect::<Vec<_>>())?;
    }
    verdict(failed, rows.len())
}

async fn look(host: &Host) -> State {
    let version = host.version().await;
    let report = host.report().await;
    State { version, report }
}

/// One row of the answer.
struct Row {
    host: String,
    is_reachable: bool,
    node: Option<u64>,
    is_member: bool,
    version: Option<String>,
    problem: String,
}

impl Row {
    fn of(host: &Host, state: &State, is_member: impl Fn(u64) -> bool) -> Self {
        let node = state.report.as_ref().ok().and_then(|report| Some(report.as_ref()?.node));
        let problem = state.report.as_ref().err().or(state.version.as_ref().err());
        let is_reachable = !matches!(
            problem,
            Some(HostError::NotRun(error)) if !matches!(error, super::ssh::NotRun::NoProgram(_))
        );
        Self {
            host: host.name.clone(),
            is_reachable,
            node,
            is_member: node.is_some_and(is_member),
            version: state.version.as_ref().ok().cloned(),
            problem: problem.map(ToString::to_string).unwrap_or_default(),
        }
    }

    fn cells(&self) -> Vec<String> {
        let yes = |is: bool| if is { "yes" } else { "no" }.to_owned();
        let version = self.version.clone().unwrap_or_else(|| "-".to_owned());
        let (runs, member) = (yes(self.node.is_some()), yes(self.is_member));
        vec![self.host.clone(), yes(self.is_reachable), runs, member, version, self.problem.clone()]
    }

    fn json(&self) -> serde_json::Value {
        json!({
            "host": self.host,
            "is_reachable": self.is_reachable,
            "node": self.node.map(|node| format!("{node:016x}")),
            "is_member": self.is_member,
            "version": self.version,
            "problem": self.problem,
        })
    }
}
