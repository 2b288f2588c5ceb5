//! `tharsis down`: stops the workers at the same time, then the head, and says what is left.

use super::file::{Cluster, Host};
use super::probe::HostError;
use super::{each, table, verdict, with_cluster};
use crate::settings::Key;
use anyhow::{Context, Result};
use std::path::Path;

/// Stops what runs.
///
/// # Errors
/// The fault in the file, or [`super::HostsFailed`] if something is left.
pub fn run(path: &Path) -> Result<()> {
    with_cluster(path, take_down)
}

async fn take_down(cluster: Cluster) -> Result<()> {
    let (head, workers) = cluster.hosts.split_first().context("there is no head")?;
    let stopped = each(workers, |host| async move { stop(&host).await }).await?;
    // Last, so that workers can take their leave.
    let head_stopped = stop(head).await;
    let mut rows = vec![["role", "host", "state"].map(str::to_owned).to_vec()];
    let mut failed = 0;
    let roles = std::iter::once("head").chain(std::iter::repeat("worker"));
    let outcomes = std::iter::once(head_stopped).chain(stopped);
    for ((role, host), outcome) in roles.zip(&cluster.hosts).zip(outcomes) {
        failed += usize::from(outcome.is_err());
        let state = outcome.unwrap_or_else(|error| format!("left: {error}"));
        rows.push(vec![role.to_owned(), host.name.clone(), state]);
    }
    table(&rows)?;
    verdict(failed, cluster.hosts.len())
}

async fn stop(host: &Host) -> Result<String, HostError> {
    let mut words = vec!["stop".to_owned()];
    words.extend(host.flags(|key| key == Key::Socket));
    let ran = host.run(&words, None).await?;
    if ran.status != 0 {
        return Err(HostError::Failed(ran.reason()));
    }
    let was_there = !ran.out.starts_with("Nothing to stop");
    Ok(if was_there { "stopped" } else { "did not run" }.to_owned())
}
