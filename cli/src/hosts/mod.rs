//! `tharsis up`, `down` and `status -f`: a cluster on the hosts of a file, over the system's ssh.
//!
//! Nothing is remembered here: each command asks the hosts. So they can be repeated, and from several
//! machines. What one host fails at is told of that host, and the others go on.
//!
//! | read | for |
//! |---|---|
//! | [`mod@file`] | the file |
//! | [`ssh`] | one command on one host |
//! | [`probe`] | the state of the node of a host |
//! | [`mod@up`], [`mod@down`], [`mod@states`] | the commands |

mod down;
mod file;
mod probe;
mod ssh;
mod states;
mod up;

pub use down::run as down;
pub use states::run as states;
pub use up::run as up;

use crate::output;
use anyhow::Result;
use file::{Cluster, Host};
use std::future::Future;
use std::path::Path;
use tokio::task::JoinSet;

/// Hosts that are asked at the same time.
const AT_ONCE_MAX: usize = 32;

/// Some hosts failed; the table has said which, and why.
#[derive(Debug, thiserror::Error)]
#[error("{failed} of {all} hosts: see above")]
pub struct HostsFailed {
    failed: usize,
    all: usize,
}

/// Reads the file and runs a command over it.
fn with_cluster<F: Future<Output = Result<()>>>(path: &Path, run: impl FnOnce(Cluster) -> F) -> Result<()> {
    let cluster = file::read(path)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(run(cluster))
}

/// Does the same with many hosts, [`AT_ONCE_MAX`] at a time; answers in their order.
async fn each<T, F>(hosts: &[Host], act: impl Fn(Host) -> F) -> Result<Vec<T>>
where
    T: Send + 'static,
    F: Future<Output = T> + Send + 'static,
{
    let mut answers: Vec<Option<T>> = hosts.iter().map(|_| None).collect();
    let mut at_work = JoinSet::new();
    let mut next = hosts.iter().cloned().enumerate();
    loop {
        while at_work.len() < AT_ONCE_MAX
            && let Some((index, host)) = next.next()
        {
            let acting = act(host);
            at_work.spawn(async move { (index, acting.await) });
        }
        let Some(done) = at_work.join_next().await else { break };
        let (index, answer) = done?;
        answers[index] = Some(answer);
    }
    Ok(answers.into_iter().flatten().collect())
}

/// Prints rows below a heading, in columns as wide as their longest cell.
fn table(rows: &[Vec<String>]) -> Result<()> {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width =
        |column: usize| rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max();
    let widths: Vec<usize> = (0..columns).map(|column| width(column).unwrap_or(0)).collect();
    for row in rows {
        let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}"));
        output::line(cells.collect::<Vec<_>>().join("  ").trim_end())?;
    }
    Ok(())
}

/// An error if any host failed.
fn verdict(failed: usize, all: usize) -> Result<()> {
    if failed == 0 { Ok(()) } else { Err(HostsFailed { failed, all }.into()) }
}
