//! `tharsis status`: nodes, resources, the store, and waiting tasks with their reasons.

use crate::output;
use anyhow::Result;
use std::path::Path;
use tharsis_protos::handshake::Question;
use tharsis_protos::report::{PendingRow, Report};

/// Asks the node at `socket` and prints its answer.
///
/// # Errors
/// If it does not answer.
pub fn run(socket: &Path, json: bool) -> Result<()> {
    let report = super::ask(socket, Question::Status)?;
    if json {
        return output::line(&serde_json::to_string(&report)?);
    }
    output::plain_lines(&describe(&report))
}

/// The lines of the answer for people.
pub(super) fn describe(report: &Report) -> Vec<String> {
    let mib = |bytes: u64| bytes >> 20;
    let mut lines = vec![format!("node {:016x}, process {}", report.node, report.pid)];
    for node in &report.nodes {
        let labels: Vec<_> = node.labels.iter().map(|(k, v)| format!("{k}={v}")).collect();
        let labels = if labels.is_empty() { String::new() } else { format!("  [{}]", labels.join(", ")) };
        // Resources of amount zero are not named. A node without CPUs is marked, since it runs only tasks
        // that need none.
        let no_cpus = if node.total.contains("CPU") { "" } else { "  no CPUs" };
        lines.push(format!("  {:016x}  free {}  of {}{no_cpus}{labels}", node.node, node.free, node.total));
    }
    let store = report.store;
    lines.push(format!(
        "store     {} of {} MiB in use, {} objects, {} mapped",
        mib(store.used_bytes),
        mib(store.capacity_bytes),
        store.object_count,
        store.pinned_count
    ));
    if 0 < store.annex_used_bytes {
        lines.push(format!(
            "file      {} of {} MiB in use by values larger than the store",
            mib(store.annex_used_bytes),
            mib(store.annex_capacity_bytes)
        ));
    }
    if 0 < report.sent_bytes {
        lines.push(format!("sent      {} MiB of objects to other nodes", mib(report.sent_bytes)));
    }
    lines.push(format!(
        "work      {} drivers, {} workers, {} tasks running, {} unfinished, {} objects referred to",
        report.driver_count,
        report.worker_count,
        report.running_count,
        report.task_count,
        report.object_count
    ));
    for row in &report.pending {
        let PendingRow { count, name, resources, reason, task } = row;
        let more = if task.is_empty() { String::new() } else { format!("; more: tharsis why {task}") };
        lines.push(format!("waiting   {count} x {name} ({resources}): {reason}{more}"));
    }
    lines
}
