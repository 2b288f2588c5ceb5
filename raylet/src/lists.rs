//! Tables of tasks, actors, graphs, placement groups, workers and jobs, for people: the lists of the machine,
//! with processes and names of jobs.

use crate::port::Port;
use crate::registry::Registry;
use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use tharsis_core::node::{ActorItem, GraphItem, GroupItem, TaskItem, TaskStage, WorkerItem};
use tharsis_core::{MS, Node, Now};
use tharsis_protos::listing::{
    ActorColumn, Cell, FILTERS_MAX, Filter, GraphColumn, GroupColumn, JobColumn, Listing, ROWS_MAX, Table,
    TaskColumn, WorkerColumn,
};
use tharsis_types::{ClientId, Failure, FailureKind, JobId, NodeId};

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
    match filters.iter().find(|filter| TaskColumn::from_name(&filter.column).is_none()) {
        Some(filter) => {
            let known = TaskColumn::NAMES.join(", ");
            bad(format!("tasks have no {:?}; they have {known}", filter.column))
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
        Listing::Actors => {
            let actors = node.list_actors();
            table.other_count = actors.len().saturating_sub(ROWS_MAX);
            table.rows = actors.iter().take(ROWS_MAX).map(|actor| actor_row(now, actor)).collect();
        }
        Listing::Graphs => {
            let graphs = node.list_graphs();
            table.other_count = graphs.len().saturating_sub(ROWS_MAX);
            table.rows = graphs.iter().take(ROWS_MAX).map(graph_row).collect();
        }
        Listing::Groups => {
            let groups = node.list_groups();
            table.other_count = groups.len().saturating_sub(ROWS_MAX);
            table.rows = groups.iter().take(ROWS_MAX).map(|group| group_row(now, group)).collect();
        }
        Listing::Jobs => table.rows = jobs(now, node, ports, registry),
        Listing::Tasks(filters) => {
            let filters = of_columns(filters);
            let list = node.list_tasks(now, ROWS_MAX, |task| accepts(&filters, task));
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

/// Filters with their columns, which [`check`] has seen.
fn of_columns(filters: &[Filter]) -> Vec<(TaskColumn, &Filter)> {
    filters.iter().filter_map(|filter| Some((TaskColumn::from_name(&filter.column)?, filter))).collect()
}

fn accepts(filters: &[(TaskColumn, &Filter)], task: &TaskItem<'_>) -> bool {
    filters.iter().all(|(column, filter)| filter.accepts(&task_text(task, *column)))
}

/// The cell of a task as a filter compares it. The columns that people filter by most take no allocation.
fn task_text<'a>(task: &'a TaskItem<'_>, column: TaskColumn) -> Cow<'a, str> {
    match column {
        TaskColumn::State => task.stage.name().into(),
        TaskColumn::Name => task.name.into(),
        TaskColumn::CallSite => task.class.call_site.as_str().into(),
        _ => task_cell(task, column).to_string().into(),
    }
}

fn task_row(task: &TaskItem<'_>) -> Vec<Cell> {
    TaskColumn::ALL.iter().map(|column| task_cell(task, *column)).collect()
}

fn task_cell(task: &TaskItem<'_>, column: TaskColumn) -> Cell {
    match column {
        TaskColumn::Task => Cell::text(&task.id.to_string()),
        TaskColumn::Name => Cell::text(task.name),
        TaskColumn::State => Cell::text(task.stage.name()),
        TaskColumn::Job => Cell::Number(task.id.job().0.into()),
        TaskColumn::Attempt => Cell::Number(task.attempt.into()),
        TaskColumn::AgeMs => Cell::Number(task.age / MS),
        TaskColumn::Owner => Cell::text(&task.owner.to_string()),
        TaskColumn::Node => task.node.map_or(Cell::Nothing, |node| Cell::text(&node.to_string())),
        TaskColumn::Worker => Cell::number(task.worker.map(|worker| worker.0.into())),
        TaskColumn::CallSite => Cell::text(&task.class.call_site),
    }
}

fn actor_row(now: Now, actor: &ActorItem<'_>) -> Vec<Cell> {
    ActorColumn::ALL.iter().map(|column| actor_cell(now, actor, *column)).collect()
}

fn actor_cell(now: Now, actor: &ActorItem<'_>, column: ActorColumn) -> Cell {
    match column {
        ActorColumn::Actor => Cell::text(&actor.id.to_string()),
        ActorColumn::Name => Cell::text(actor.name),
        ActorColumn::State => Cell::text(actor.stage.name()),
        ActorColumn::Job => Cell::Number(actor.id.job().0.into()),
        ActorColumn::Node => actor.node.map_or(Cell::Nothing, |node| Cell::text(&node.to_string())),
        ActorColumn::Restarts => Cell::Number(actor.restarts.into()),
        ActorColumn::Detached => Cell::text(if actor.class.detached { "yes" } else { "no" }),
        ActorColumn::AgeMs => Cell::Number(now.saturating_sub(actor.since) / MS),
        ActorColumn::CallSite => Cell::text(&actor.class.call_site),
    }
}

fn graph_row(graph: &GraphItem) -> Vec<Cell> {
    GraphColumn::ALL.iter().map(|column| graph_cell(graph, *column)).collect()
}

fn graph_cell(graph: &GraphItem, column: GraphColumn) -> Cell {
    let steps = graph.steps;
    let count = |count: usize| Cell::Number(count as u64);
    match column {
        GraphColumn::Graph => Cell::text(&graph.id.to_string()),
        GraphColumn::State => Cell::text(match (graph.is_stopped, graph.is_open) {
            (true, _) => "cancelled",
            (false, true) => "arriving",
            (false, false) => "running",
        }),
        GraphColumn::Job => Cell::Number(graph.id.job().0.into()),
        GraphColumn::Steps => count(steps.waiting + steps.tasks + steps.ended + steps.failed),
        GraphColumn::Waiting => count(steps.waiting),
        GraphColumn::Started => count(steps.tasks),
        GraphColumn::Ended => count(steps.ended),
        GraphColumn::Failed => count(steps.failed),
    }
}

fn group_row(now: Now, group: &GroupItem<'_>) -> Vec<Cell> {
    GroupColumn::ALL.iter().map(|column| group_cell(now, group, *column)).collect()
}

fn group_cell(now: Now, group: &GroupItem<'_>, column: GroupColumn) -> Cell {
    let node = |node: &Option<NodeId>| node.map_or("-".to_owned(), |node| node.to_string());
    match column {
        GroupColumn::Group => Cell::text(&group.id.to_string()),
        GroupColumn::Name => Cell::text(group.name),
        GroupColumn::State => Cell::text(group.stage.name()),
        GroupColumn::Job => Cell::Number(group.id.job().0.into()),
        GroupColumn::Detached => Cell::text(if group.is_detached { "yes" } else { "no" }),
        GroupColumn::AgeMs => Cell::Number(now.saturating_sub(group.since) / MS),
        GroupColumn::Strategy => Cell::text(&group.spec.strategy.to_string()),
        GroupColumn::Bundles => Cell::Number(group.nodes.len() as u64),
        GroupColumn::Placed => Cell::Number(group.nodes.iter().flatten().count() as u64),
        GroupColumn::Resources => Cell::text(&group.spec.total().to_string()),
        GroupColumn::Nodes => Cell::text(&group.nodes.iter().map(node).collect::<Vec<_>>().join(" ")),
        GroupColumn::Reason => Cell::text(&group.reason),
    }
}

fn worker_row(worker: &WorkerItem<'_>, pids: &HashMap<ClientId, u32>) -> Vec<Cell> {
    WorkerColumn::ALL.iter().map(|column| worker_cell(worker, pids, *column)).collect()
}

fn worker_cell(worker: &WorkerItem<'_>, pids: &HashMap<ClientId, u32>, column: WorkerColumn) -> Cell {
    let of_task = |column| worker.task.as_ref().map_or(Cell::Nothing, |task| task_cell(task, column));
    match column {
        WorkerColumn::Worker => Cell::Number(worker.client.0.into()),
        WorkerColumn::Pid => Cell::number(pids.get(&worker.client).map(|pid| (*pid).into())),
        WorkerColumn::Job => Cell::Number(worker.job.0.into()),
        WorkerColumn::State => Cell::text(worker.task.as_ref().map_or("idle", |task| task.stage.name())),
        WorkerColumn::Task => of_task(TaskColumn::Task),
        WorkerColumn::Name => of_task(TaskColumn::Name),
        WorkerColumn::AgeMs => of_task(TaskColumn::AgeMs),
        WorkerColumn::InLine => Cell::Number(worker.in_line_count as u64),
    }
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
    for (job, count) in node.waiting_steps() {
        jobs.entry(job).or_default().tasks += count as u64;
    }
    jobs.iter().take(ROWS_MAX).map(|(job, counts)| job_row(*job, counts, registry)).collect()
}

fn job_row(job: JobId, counts: &JobCounts, registry: &Registry) -> Vec<Cell> {
    let known = registry.job(job);
    let text = |of: fn(&crate::registry::Job) -> String| {
        known.as_ref().map_or(Cell::Nothing, |job| Cell::text(&of(job)))
    };
    let cell = |column: &JobColumn| match column {
        JobColumn::Job => Cell::Number(job.0.into()),
        JobColumn::Name => text(|job| job.name.clone()),
        JobColumn::Namespace => text(|job| job.namespace.clone()),
        JobColumn::DriverPid => Cell::number(counts.driver_pid.map(Into::into)),
        JobColumn::Program => text(|job| job.executable.to_string()),
        JobColumn::Workers => Cell::Number(counts.workers),
        JobColumn::Tasks => Cell::Number(counts.tasks),
        JobColumn::Running => Cell::Number(counts.running),
    };
    JobColumn::ALL.iter().map(cell).collect()
}
