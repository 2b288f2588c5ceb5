//! `tharsis up`: starts the head, then the workers at the same time, and waits until all are members.

use super::file::{Cluster, Host};
use super::probe::{HostError, knows};
use super::{each, table, verdict, with_cluster};
use crate::settings::Key;
use anyhow::{Context, Result};
use std::path::Path;
use std::time::Duration;
use tharsis_protos::report::Report;
use tokio::time::{Instant, sleep};

/// Time in which workers that run must become members.
const MEMBERS_WAIT: Duration = Duration::from_secs(30);
/// Between two looks at the members.
const MEMBERS_PAUSE: Duration = Duration::from_millis(300);

/// A node that runs.
#[derive(Clone, Debug)]
struct Runs {
    node: u64,
    pid: u32,
    /// Address at which others reach it.
    address: String,
    was_there: bool,
}

/// Starts what does not run.
///
/// # Errors
/// The fault in the file, or [`super::HostsFailed`] if a host failed.
pub fn run(path: &Path) -> Result<()> {
    with_cluster(path, bring_up)
}

async fn bring_up(cluster: Cluster) -> Result<()> {
    let (head, workers) = cluster.hosts.split_first().context("there is no head")?;
    let (runs, token) = match start_head(head).await {
        Ok(started) => started,
        Err(error) => {
            let not_tried =
                workers.iter().map(|host| row("worker", host, None, "not tried: the head does not run"));
            let head = row("head", head, None, &format!("failed: {error}"));
            table(&[heading(), head].into_iter().chain(not_tried).collect::<Vec<_>>())?;
            return verdict(cluster.hosts.len(), cluster.hosts.len());
        }
    };
    let started = each(workers, |host| {
        let (address, token) = (runs.address.clone(), token.clone());
        async move { start_worker(&host, &address, &token).await }
    });
    let started = started.await?;
    let wanted: Vec<u64> = started.iter().flatten().map(|runs| runs.node).collect();
    let members = await_members(head, &wanted).await;
    let mut rows = vec![heading(), row("head", head, Some(&runs), state(&runs))];
    let mut failed = 0;
    for (host, outcome) in workers.iter().zip(&started) {
        let (found, text) = match (outcome, &members) {
            (Ok(runs), Ok(report)) if knows(report, runs.node) => (Some(runs), state(runs).to_owned()),
            (Ok(runs), Ok(_)) => (Some(runs), "failed: it runs and is no member of this cluster".to_owned()),
            (Ok(runs), Err(error)) => (Some(runs), format!("failed: the head says nothing of it: {error}")),
            (Err(error), _) => (None, format!("failed: {error}")),
        };
        failed += usize::from(text.starts_with("failed"));
        rows.push(row("worker", host, found, &text));
    }
    table(&rows)?;
    verdict(failed, cluster.hosts.len())
}

/// Starts the head if it does not run; answers a token for the workers as well.
async fn start_head(host: &Host) -> Result<(Runs, String), HostError> {
    if let Some(report) = host.report().await? {
        let mut words = vec!["token".to_owned(), "create".to_owned()];
        words.extend(host.flags(|key| key == Key::IdentityDir));
        let ran = host.run(&words, None).await?;
        if ran.status != 0 {
            return Err(HostError::Failed(ran.reason()));
        }
        return Ok((of_report(report, true), ran.out.trim().to_owned()));
    }
    let mut words = vec!["start".to_owned(), "--head".to_owned()];
    words.extend(own_host(host));
    words.extend(host.flags(|_| true));
    let ran = host.run(&words, None).await?;
    if ran.status != 0 {
        return Err(HostError::Failed(ran.reason()));
    }
    let token = ran.out.split_whitespace().skip_while(|word| *word != "--token").nth(1);
    let token = token.ok_or_else(|| HostError::Unreadable(ran.reason()))?.to_owned();
    let report = host.report().await?;
    let report = report.ok_or_else(|| HostError::Failed("it has ended again".to_owned()))?;
    Ok((of_report(report, false), token))
}

async fn start_worker(host: &Host, address: &str, token: &str) -> Result<Runs, HostError> {
    if let Some(report) = host.report().await? {
        return Ok(of_report(report, true));
    }
    let mut words = vec!["start".to_owned(), "--address".to_owned(), address.to_owned()];
    words.extend(own_host(host));
    words.extend(host.flags(|key| !key.is_of_head()));
    let ran = host.run(&words, Some(token)).await?;
    if ran.status != 0 {
        return Err(HostError::Failed(ran.reason()));
    }
    let report = host.report().await?;
    let report = report.ok_or_else(|| HostError::Failed("it has ended again".to_owned()))?;
    Ok(of_report(report, false))
}

/// The address of the host for other nodes, unless its settings have one.
fn own_host(host: &Host) -> Option<String> {
    host.setting(Key::Host).is_none().then(|| format!("{}={}", Key::Host.flag(), host.host))
}

/// The head's report, as soon as it knows all these nodes, or when the time is over.
async fn await_members(head: &Host, wanted: &[u64]) -> Result<Report, HostError> {
    let until = Instant::now() + MEMBERS_WAIT;
    loop {
        let report = head.report().await?;
        let report = report.ok_or_else(|| HostError::Failed("it has ended".to_owned()))?;
        if wanted.iter().all(|node| knows(&report, *node)) || until < Instant::now() {
            return Ok(report);
        }
        sleep(MEMBERS_PAUSE).await;
    }
}

fn of_report(report: Report, was_there: bool) -> Runs {
    Runs { node: report.node, pid: report.pid, address: report.address, was_there }
}

fn state(runs: &Runs) -> &'static str {
    if runs.was_there { "ran already" } else { "started" }
}

fn heading() -> Vec<String> {
    ["role", "host", "node", "process", "address", "state"].map(str::to_owned).to_vec()
}

fn row(role: &str, host: &Host, runs: Option<&Runs>, state: &str) -> Vec<String> {
    let dash = || "-".to_owned();
    let node = runs.map_or_else(dash, |runs| format!("{:016x}", runs.node));
    let pid = runs.map_or_else(dash, |runs| runs.pid.to_string());
    let address = runs.map_or_else(dash, |runs| runs.address.clone());
    vec![role.to_owned(), host.name.clone(), node, pid, address, state.to_owned()]
}
