//! `tharsis drain` and `tharsis stop --drain`: a node leaves without loss.
//!
//! The node of this machine is told by its socket, another one by a call on its port, whose address the
//! control store knows.

use super::stop;
use crate::output;
use crate::reach::{self, operator};
use crate::refusal::Refusal;
use crate::settings::Settings;
use anyhow::Result;
use futures::StreamExt;
use std::time::{Duration, Instant};
use tharsis::observe;
use tharsis_gcs::{ClientOptions, ControlClient};
use tharsis_protos::connection::Credentials;
use tharsis_protos::handshake::Question;
use tharsis_protos::peer;
use tharsis_protos::report::{DrainRow, Report};
use tharsis_protos::{CallError, RefusalCode};
use tharsis_types::NodeId;

/// The longest time that a call may take until it is answered.
const CALL_WAIT: Duration = Duration::from_secs(5);
/// The longest time from the end of a drain until the node is no member any more.
const LEAVE_WAIT: Duration = Duration::from_secs(10);
/// Pause between two looks at the members.
const LEAVE_PAUSE: Duration = Duration::from_millis(20);
/// Shortest time between two lines of progress.
const LINE_EVERY: Duration = Duration::from_secs(1);

/// Drains a node and waits until it has left.
///
/// # Errors
/// `UnknownNode`, `NotDrained`, or why it is not reached.
pub fn run(node: Option<u64>, within: Duration, address: Option<&str>, settings: &Settings) -> Result<()> {
    let own = match address {
        None => Some(super::ask(&settings.socket(), Question::Status)?),
        Some(_) => None,
    };
    match (node, address, own) {
        (None, Some(_), _) => Err(Refusal::DrainWhom.into()),
        (node, None, Some(own)) if node.is_none_or(|node| node == own.node) => {
            if own.is_head {
                return Err(Refusal::NotDrained { cause: is_head(own.node) }.into());
            }
            drain_own(&own, within, settings)
        }
        (Some(node), address, own) => {
            let control = own.map_or_else(String::new, |own| own.control);
            let control = address.unwrap_or(&control);
            let own = operator(control, settings)?;
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            runtime.block_on(drain_other(NodeId(node), within, control, &own))
        }
        (None, None, _) => Err(Refusal::DrainWhom.into()),
    }
}

/// Drains the node of this machine, even if it is the head, and waits for the end of its process.
///
/// # Errors
/// As [`run`].
pub fn stop(within: Duration, settings: &Settings) -> Result<()> {
    let own = super::ask(&settings.socket(), Question::Status)?;
    drain_own(&own, within, settings)
}

fn is_head(node: u64) -> String {
    format!(
        "IsHead: node {node:016x} serves the control store, without which no node joins; `tharsis stop --drain` drains it all \
         the same"
    )
}

fn drain_own(own: &Report, within: Duration, settings: &Settings) -> Result<()> {
    let mut lines = Lines::default();
    let last = observe::drain(&settings.socket(), within, |row| lines.tell(row))?;
    stop::await_end(own.pid, &settings.socket())?;
    output::line(&farewell(own.node, &last))
}

async fn drain_other(node: NodeId, within: Duration, control: &str, own: &Credentials) -> Result<()> {
    let options = ClientOptions { call_deadline: CALL_WAIT, patience: Duration::ZERO };
    let (store, _) = ControlClient::connect(control, own, options)
        .await
        .map_err(|error| reach::refused(control, &error))?;
    let members = store.list_nodes().await?.nodes;
    let Some(member) = members.into_iter().find(|member| member.id == node) else {
        return Err(Refusal::UnknownNode { node: node.0 }.into());
    };
    let asked = peer::drain(member.listen.clone(), node, own, within, CALL_WAIT).await;
    let mut rows = asked.map_err(|error| not_drained(&member.listen, &error))?;
    let (mut lines, mut last) = (Lines::default(), DrainRow::default());
    // The node may end before its last report is read.
    while let Some(Ok(row)) = rows.next().await {
        lines.tell(&row);
        last = row;
    }
    let until = Instant::now() + LEAVE_WAIT;
    while store.list_nodes().await?.nodes.iter().any(|member| member.id == node) {
        if until < Instant::now() {
            let cause = format!("the call broke off, and node {node} is still a member");
            return Err(Refusal::NotDrained { cause }.into());
        }
        tokio::time::sleep(LEAVE_PAUSE).await;
    }
    output::line(&farewell(node.0, &last))
}

fn not_drained(address: &str, error: &CallError) -> anyhow::Error {
    match error.refusal_code() {
        Some(RefusalCode::AlreadyExists | RefusalCode::FailedPrecondition) => {
            Refusal::NotDrained { cause: error.to_string() }.into()
        }
        _ => reach::refused(address, error),
    }
}

/// Lines of progress, as they change.
#[derive(Default)]
struct Lines {
    told: Option<(Instant, String)>,
}

impl Lines {
    fn tell(&mut self, row: &DrainRow) {
        let line = waiting(row);
        let is_news =
            self.told.as_ref().is_none_or(|(at, before)| *before != line && LINE_EVERY <= at.elapsed());
        if !line.is_empty() && is_news {
            // Whoever reads the progress may have gone.
            let _told = output::line(&format!("{line}; {} s left", row.remaining_ms.div_ceil(1000)));
            self.told = Some((Instant::now(), line));
        }
    }
}

/// The things that a node still waits for; empty if there are none.
fn waiting(row: &DrainRow) -> String {
    let counts = [
        (row.runs, "runs"),
        (row.jobs, "jobs of its drivers"),
        (row.programs, "submitted programs"),
        (row.tasks, "tasks of its own"),
        (row.leases, "leases"),
        (row.copies, "copies to move"),
        (row.objects, "references"),
    ];
    let left: Vec<_> = counts
        .iter()
        .filter(|(count, _)| 0 < *count)
        .map(|(count, what)| format!("{count} {what}"))
        .collect();
    if left.is_empty() { String::new() } else { format!("waits for {}", left.join(", ")) }
}

fn farewell(node: u64, row: &DrainRow) -> String {
    let mut text = format!("Node {node:016x} has left.");
    if 0 < row.moved {
        text += &format!(
            " {} copies ({} bytes) are on other nodes, or were not needed.",
            row.moved, row.moved_bytes
        );
    }
    if row.is_over && !row.is_clean {
        let left = waiting(row);
        text += &format!(" Its time was over: it {left}.");
        let (results, put) = (row.copies - row.put_copies.min(row.copies), row.put_copies);
        text += &format!(
            " {results} results are made again when they are needed, {put} values that were put are lost."
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_farewell_says_what_was_moved_and_what_was_left() {
        let clean =
            DrainRow { is_over: true, is_clean: true, moved: 2, moved_bytes: 10, ..DrainRow::default() };
        assert_eq!(
            farewell(255, &clean),
            "Node 00000000000000ff has left. 2 copies (10 bytes) are on other nodes, or were not needed."
        );
        let late = DrainRow { is_over: true, runs: 1, copies: 3, put_copies: 1, ..DrainRow::default() };
        let text = farewell(255, &late);
        assert!(text.contains("it waits for 1 runs, 3 copies to move."), "{text}");
        assert!(
            text.contains("2 results are made again") && text.contains("1 values that were put"),
            "{text}"
        );
        assert_eq!(waiting(&DrainRow::default()), "");
    }
}
