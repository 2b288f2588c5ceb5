//! Tables of tasks, workers and jobs, for people: the lists of the machine, with processes and names of jobs.

use crate::port::Port;
use crate::registry::Registry;
use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use tharsis_core::node::{TaskItem, TaskStage, WorkerItem};
use tharsis_core::{MS, Node, Now};
use tharsis_protos::listing::{
    Cell, FILTERS_MAX, Filter, JOB_COLUMNS, Listing, ROWS_MAX, TASK_COLUMNS, Table,
};
use tharsis_types::{ClientId, Failure, FailureKind, JobId};

/// Refuses a request that no table answers.
///
/// # Errors
/// `InvalidArgument` for too many filters or a column that does not exist.
pub(crate) fn check(listing: &Listing) -> Result<(), Failure> {
    let Listing::Tasks(filters) = listing else { return Ok(()) };
    let bad = |text: String| Err(Failure::new(FailureKind::InvalidArgument, text));
    if FILTERS_MAX < filters.len() {
        return bad(format!("{} filters; at most {FILTERS_MAX} are possible", filters.len()));
    }
    match filters.iter().find(|filter| !TASK_COLUMNS.contains(&filter.column.as_str())) {
        Some(filter) => {
            bad(format!("tasks have no {:?}; they have {}", filter.column, TASK_COLUMNS.join(", ")))
        }
        None => Ok(()),
    }
}

/// A list as a table.
pub(crate) fn table<'a>(
    now: Now,
    node: &Node,
    ports: impl Iterator<Item = &'a Port>,
    registry: &Registry,
    listing: &Listing,
) -> Table {
    let mut table = Table::new(node.id().0, listing.columns());
    match listing {
        Listing::Jobs => table.rows = jobs(now, node, ports, registry),
        Listing::Tasks(filters) => {
            let list = node.list_tasks(now, ROWS_MAX, |task| accepts(filters, task));
            table.rows = list.tasks.iter().map(task_row).collect();
            table.other_count = list.other_count;
        }
        Listing::Workers => {
            let pids: HashMap<ClientId, u32> = ports.map(|port| (port.client, port.facts.pid)).collect();
            table.rows = node.list_workers(now).map(|worker| worker_row(&worker, &pids)).collect();
        }
    }
    table
}

fn accepts(filters: &[Filter], task: &TaskItem<'_>) -> bool {
    filters.iter().all(|filter| filter.accepts(&task_text(task, &filter.column)))
}

/// The cell of a task as a filter compares it. The columns that people filter by most take no allocation.
fn task_text<'a>(task: &'a TaskItem<'_>, column: &str) -> Cow<'a, str> {
    match column {
        "state" => task.stage.name().into(),
        "name" => task.class.name.as_str().into(),
        "call_site" => task.class.call_site.as_str().into(),
        _ => task_cell(task, column).to_string().into(),
    }
}

fn task_row(task: &TaskItem<'_>) -> Vec<Cell> {
    TASK_COLUMNS.iter().map(|column| task_cell(task, column)).collect()
}

fn task_cell(task: &TaskItem<'_>, column: &str) -> Cell {
    match column {
        "task" => Cell::text(&task.id.to_string()),
        "name" => Cell::text(&task.class.name),
        "state" => Cell::text(task.stage.name()),
        "job" => Cell::Number(task.id.job().0.into()),
        "attempt" => Cell::Number(task.attempt.into()),
        "age_ms" => Cell::Number(task.age / MS),
        "owner" => Cell::text(&task.owner.to_string()),
        "node" => task.node.map_or(Cell::Nothing, |node| Cell::text(&node.to_string())),
        "worker" => Cell::number(task.worker.map(|worker| worker.0.into())),
        "call_site" => Cell::text(&task.class.call_site),
        _ => Cell::Nothing,
    }
}

fn worker_row(worker: &WorkerItem<'_>, pids: &HashMap<ClientId, u32>) -> Vec<Cell> {
    let of_task = |column| worker.task.as_ref().map_or(Cell::Nothing, |task| task_cell(task, column));
    let state = worker.task.as_ref().map_or("idle", |task| task.stage.name());
    vec![
        Cell::Number(worker.client.0.into()),
        Cell::number(pids.get(&worker.client).map(|pid| (*pid).into())),
        Cell::Number(worker.job.0.into()),
        Cell::text(state),
        of_task("task"),
        of_task("name"),
        of_task("age_ms"),
        Cell::Number(worker.in_line_count as u64),
    ]
}

/// A job as far as this node knows it.
#[derive(Default)]
struct JobCounts {
    driver_pid: Option<u32>,
    workers: u64,
    tasks: u64,
    running: u64,
}

fn jobs<'a>(
    now: Now,
    node: &Node,
    ports: impl Iterator<Item = &'a Port>,
    registry: &Registry,
) -> Vec<Vec<Cell>> {
    let mut jobs: BTreeMap<JobId, JobCounts> = BTreeMap::new();
    for port in ports.filter(|port| port.is_driver) {
        jobs.entry(port.facts.job).or_default().driver_pid = Some(port.facts.pid);
    }
    for worker in node.list_workers(now) {
        jobs.entry(worker.job).or_default().workers += 1;
    }
    for task in node.tasks(now) {
        let counts = jobs.entry(task.id.job()).or_default();
        counts.tasks += 1;
        counts.running += u64::from(matches!(task.stage, TaskStage::Running | TaskStage::Blocked));
    }
    let rows: Vec<_> =
        jobs.iter().take(ROWS_MAX).map(|(job, counts)| job_row(*job, counts, registry)).collect();
    assert!(rows.iter().all(|row| row.len() == JOB_COLUMNS.len()), "a job has a cell for each column");
    rows
}

fn job_row(job: JobId, counts: &JobCounts, registry: &Registry) -> Vec<Cell> {
    let known = registry.job(job);
    let text = |of: fn(&crate::registry::Job) -> String| {
        known.as_ref().map_or(Cell::Nothing, |job| Cell::text(&of(job)))
    };
    vec![
        Cell::Number(job.0.into()),
        text(|job| job.name.clone()),
        text(|job| job.namespace.clone()),
        Cell::number(counts.driver_pid.map(Into::into)),
        text(|job| job.executable.to_string()),
        Cell::Number(counts.workers),
        Cell::Number(counts.tasks),
        Cell::Number(counts.running),
    ]
}
