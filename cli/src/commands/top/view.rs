//! The rows that `tharsis top` shows: sums and rates of what nodes told. Nothing here asks a node or knows a
//! terminal.

use super::sample::Sample;
use crate::commands::list;
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;
use tharsis_protos::listing::{Cell, Table};
use tharsis_protos::report::{NodeRow, PendingRow, StoreRow};
use tharsis_types::JobId;

/// Nodes, jobs and waiting tasks at one moment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct View {
    /// In the order of the report: the node of this machine first.
    pub nodes: Vec<NodeLine>,
    /// Jobs of the node, then those that only other nodes run.
    pub jobs: Vec<JobLine>,
    /// In the order of the report.
    pub waiting: Vec<WaitingLine>,
    /// Nodes that do not tell their runs, with the reason.
    pub silent: Vec<(u64, String)>,
}

/// A node.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NodeLine {
    pub node: u64,
    pub is_draining: bool,
    pub cpus: f64,
    pub cpus_used: f64,
    /// Memory that it offers to tasks, if it does, and the part that they reserve.
    pub memory_bytes: Option<u64>,
    pub memory_used_bytes: Option<u64>,
    /// Only the node of this machine tells it.
    pub store: Option<StoreRow>,
    /// Runs that go on; none if it does not tell.
    pub runs: Option<u64>,
    pub finished_per_s: Option<f64>,
}

/// A job.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct JobLine {
    pub job: u32,
    pub name: String,
    /// The name of its executable.
    pub program: String,
    /// Its workers at the node of this machine.
    pub workers: Option<u64>,
    /// Runs that go on, at all nodes that tell them.
    pub runs: u64,
    /// Unfinished tasks that do not run; none if its driver is at another node.
    pub waiting: Option<u64>,
    pub finished_per_s: f64,
}

/// Tasks that wait for the same thing.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WaitingLine {
    pub count: usize,
    pub name: String,
    pub resources: String,
    pub reason: String,
    /// The time for which the first of them waits, as far as it is known.
    pub age_ms: Option<u64>,
}

impl View {
    /// The rows of a sample.
    pub fn of(sample: &Sample) -> Self {
        let told = |(node, runs): (&u64, &Result<_, String>)| Some((*node, runs.as_ref().err()?.clone()));
        Self {
            nodes: sample.report.nodes.iter().map(|row| node_line(sample, row)).collect(),
            jobs: job_lines(sample),
            waiting: waiting_lines(&sample.report.pending, &sample.queued),
            silent: sample.runs.iter().filter_map(told).collect(),
        }
    }
}

fn node_line(sample: &Sample, row: &NodeRow) -> NodeLine {
    let counted = sample.runs.get(&row.node).and_then(|told| told.as_ref().ok());
    let (cpus, cpus_free) =
        (amount(&row.total, "CPU").unwrap_or(0.0), amount(&row.free, "CPU").unwrap_or(0.0));
    let bytes = |mib: f64| (mib * f64::from(1 << 20)) as u64;
    let memory_bytes = amount(&row.total, "MiB memory").map(bytes);
    let free_bytes = amount(&row.free, "MiB memory").map_or(0, bytes);
    NodeLine {
        node: row.node,
        is_draining: row.is_draining,
        cpus,
        cpus_used: hundredths(cpus - cpus_free).max(0.0),
        memory_bytes,
        memory_used_bytes: memory_bytes.map(|all| all.saturating_sub(free_bytes)),
        store: (row.node == sample.report.node).then_some(sample.report.store),
        runs: counted.map(|counted| counted.running()),
        finished_per_s: counted.map(|counted| counted.finished_per_s()),
    }
}

/// An amount among resources, which are printed like `2 CPU, 512 MiB memory`.
fn amount(resources: &str, unit: &str) -> Option<f64> {
    let of_unit = |part: &str| part.trim().strip_suffix(unit)?.strip_suffix(' ')?.parse::<f64>().ok();
    resources.split(',').find_map(of_unit)
}

fn hundredths(number: f64) -> f64 {
    (number * 100.0).round() / 100.0
}

fn tenths(number: f64) -> f64 {
    (number * 10.0).round() / 10.0
}

fn job_lines(sample: &Sample) -> Vec<JobLine> {
    let own_is_known = sample.runs.get(&sample.report.node).is_some_and(Result::is_ok);
    let mut lines: Vec<JobLine> = Vec::new();
    // Unfinished tasks of jobs whose driver is here.
    let mut unfinished: HashMap<u32, u64> = HashMap::new();
    for row in &sample.jobs.rows {
        let job = number(&sample.jobs, row, "job").and_then(|job| u32::try_from(job).ok()).unwrap_or(0);
        if let (Some(tasks), Some(_)) =
            (number(&sample.jobs, row, "tasks"), number(&sample.jobs, row, "driver_pid"))
        {
            unfinished.insert(job, tasks);
        }
        let program = text(&sample.jobs, row, "program");
        let program =
            Path::new(program).file_name().map_or_else(String::new, |name| name.display().to_string());
        let runs = if own_is_known { None } else { number(&sample.jobs, row, "running") };
        let name = text(&sample.jobs, row, "name").to_owned();
        let workers = number(&sample.jobs, row, "workers");
        lines.push(JobLine { job, name, program, workers, runs: runs.unwrap_or(0), ..JobLine::default() });
    }
    let mut elsewhere: BTreeMap<JobId, JobLine> = BTreeMap::new();
    let of_runs: BTreeSet<JobId> = sample.counted().flat_map(|counted| counted.jobs()).collect();
    for job in of_runs {
        let known = lines.iter_mut().find(|line| line.job == job.0);
        let line = match known {
            Some(line) => line,
            None => elsewhere.entry(job).or_insert_with(|| JobLine { job: job.0, ..JobLine::default() }),
        };
        line.runs += sample.counted().map(|counted| counted.running_of(job)).sum::<u64>();
        line.finished_per_s += sample.counted().map(|counted| counted.finished_per_s_of(job)).sum::<f64>();
    }
    lines.extend(elsewhere.into_values());
    for line in &mut lines {
        line.waiting = unfinished.get(&line.job).map(|tasks| tasks.saturating_sub(line.runs));
    }
    lines
}

fn cell<'a>(table: &Table, row: &'a [Cell], column: &str) -> Option<&'a Cell> {
    row.get(table.column(column)?)
}

fn number(table: &Table, row: &[Cell], column: &str) -> Option<u64> {
    match cell(table, row, column) {
        Some(Cell::Number(number)) => Some(*number),
        _ => None,
    }
}

fn text<'a>(table: &Table, row: &'a [Cell], column: &str) -> &'a str {
    match cell(table, row, column) {
        Some(Cell::Text(text)) => text,
        _ => "",
    }
}

/// A row names one of its tasks, the first of a queue; its age is that of the row.
fn waiting_lines(pending: &[PendingRow], queued: &Table) -> Vec<WaitingLine> {
    let ages: HashMap<&str, u64> = queued
        .rows
        .iter()
        .filter_map(|row| Some((text(queued, row, "task"), number(queued, row, "age_ms")?)))
        .collect();
    let line = |row: &PendingRow| WaitingLine {
        count: row.count,
        name: row.name.clone(),
        resources: row.resources.clone(),
        reason: row.reason.clone(),
        age_ms: ages.get(row.task.as_str()).copied(),
    };
    pending.iter().map(line).collect()
}

/// The report as `tharsis status --json` has it and the jobs as `tharsis jobs --json` has them, with what is
/// known beyond.
///
/// # Errors
/// If a value has no form in JSON.
pub fn document(sample: &Sample, view: &View) -> serde_json::Result<Value> {
    let mut document = serde_json::to_value(&sample.report)?;
    for (at, line) in view.nodes.iter().enumerate() {
        extend(
            document["nodes"].get_mut(at),
            json!({
                "cpus": line.cpus,
                "cpus_used": line.cpus_used,
                "memory_bytes": line.memory_bytes,
                "memory_used_bytes": line.memory_used_bytes,
                "runs": line.runs,
                "finished_per_s": line.finished_per_s.map(tenths),
            }),
        );
    }
    for (at, line) in view.waiting.iter().enumerate() {
        extend(document["pending"].get_mut(at), json!({"age_ms": line.age_ms}));
    }
    let mut jobs = list::as_json(&sample.jobs)["rows"].take();
    if let Value::Array(rows) = &mut jobs {
        for (at, line) in view.jobs.iter().enumerate() {
            if rows.len() <= at {
                let mut row: Map<String, Value> =
                    sample.jobs.columns.iter().map(|name| (name.clone(), Value::Null)).collect();
                row.insert("job".to_owned(), json!(line.job));
                rows.push(Value::Object(row));
            }
            let finished_per_s = tenths(line.finished_per_s);
            let known = json!({"runs": line.runs, "waiting": line.waiting, "finished_per_s": finished_per_s});
            extend(rows.get_mut(at), known);
        }
    }
    document["jobs"] = jobs;
    let silent = |(node, cause): &(u64, String)| json!({"node": format!("{node:016x}"), "cause": cause});
    document["silent"] = view.silent.iter().map(silent).collect();
    Ok(document)
}

fn extend(row: Option<&mut Value>, with: Value) {
    if let (Some(Value::Object(row)), Value::Object(with)) = (row, with) {
        row.extend(with);
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::commands::top::sample::Counted;
    use tharsis_protos::listing::JobColumn;
    use tharsis_protos::report::Report;
    use tharsis_protos::runs::{RunBatch, RunOutcome, RunSpan};
    use tharsis_types::{ClientId, NodeId, TaskId};

    const S: u64 = 1_000_000_000;

    fn counted(runs: &[(u32, RunOutcome)]) -> Counted {
        let mut counted = Counted::new(0, S);
        let span = |(job, outcome): &(u32, RunOutcome)| RunSpan {
            task: TaskId::root(JobId(*job)),
            attempt: 0,
            owner: NodeId(1),
            name: "f".to_owned(),
            call_site: "f.rs:3".to_owned(),
            worker: ClientId(2),
            pid: 3,
            is_concurrent: false,
            begin_unix_ns: 0,
            end_unix_ns: 1,
            outcome: *outcome,
        };
        let spans = runs.iter().map(span).collect();
        counted.take(&RunBatch { spans, forgotten: 0, remembers_since_unix_ns: 0, is_last: true });
        counted
    }

    /// Two nodes that tell their runs and one that does not; a job of this node and one of another.
    pub(in crate::commands) fn sample() -> Sample {
        let node = |node, total: &str, free: &str, is_draining| NodeRow {
            node,
            total: total.to_owned(),
            free: free.to_owned(),
            is_draining,
            ..NodeRow::default()
        };
        let mut jobs = Table::new(1, JobColumn::NAMES);
        jobs.rows = vec![vec![
            Cell::Number(7),
            Cell::text("nightly"),
            Cell::Nothing,
            Cell::Number(99),
            Cell::text("/opt/bin/train"),
            Cell::Number(2),
            Cell::Number(40),
            Cell::Number(1),
        ]];
        let mut queued = Table::new(1, &["task", "age_ms"]);
        queued.rows =
            vec![vec![Cell::text("0b"), Cell::Number(192_000)], vec![Cell::text("0a"), Cell::Number(5)]];
        let pending = |task: &str, count, name: &str, reason: &str| PendingRow {
            name: name.to_owned(),
            resources: "1 CPU".to_owned(),
            count,
            reason: reason.to_owned(),
            task: task.to_owned(),
        };
        let report = Report {
            node: 1,
            nodes: vec![
                node(1, "4 CPU, 1024 MiB memory", "0.5 CPU, 512 MiB memory", false),
                node(3, "8 CPU", "nothing", true),
                node(2, "2 CPU", "2 CPU", false),
            ],
            store: StoreRow { used_bytes: 12 << 20, capacity_bytes: 64 << 20, ..StoreRow::default() },
            pending: vec![
                pending("0a", 30, "train::load", "all workers are busy"),
                pending("0b", 2, "train::fit", "no node has 64 CPU"),
                pending("", 1, "gang", "it waits for a node"),
            ],
            ..Report::default()
        };
        let (running, returned) = (RunOutcome::Running, RunOutcome::Returned);
        let runs = [
            (1, Ok(counted(&[(7, running), (7, returned), (7, returned)]))),
            (2, Err("it was silent for 2 s".to_owned())),
            (3, Ok(counted(&[(7, running), (9, running)]))),
        ];
        Sample { report, jobs, queued, runs: BTreeMap::from(runs) }
    }

    #[test]
    fn a_node_has_what_its_resources_and_its_runs_tell() {
        let view = View::of(&sample());
        let own = &view.nodes[0];
        assert_eq!((own.cpus, own.cpus_used), (4.0, 3.5));
        assert_eq!((own.memory_bytes, own.memory_used_bytes), (Some(1 << 30), Some(512 << 20)));
        assert_eq!((own.runs, own.finished_per_s), (Some(1), Some(2.0)));
        assert_eq!(own.store.map(|store| store.used_bytes), Some(12 << 20));
        let drains = &view.nodes[1];
        assert_eq!((drains.cpus_used, drains.memory_bytes, drains.store), (8.0, None, None));
        assert!(drains.is_draining && drains.runs == Some(2));
        assert_eq!((view.nodes[2].runs, view.nodes[2].finished_per_s), (None, None));
        assert_eq!(view.silent, [(2, "it was silent for 2 s".to_owned())]);
    }

    #[test]
    fn a_job_runs_on_all_nodes_and_waits_where_its_driver_is() {
        let view = View::of(&sample());
        let [own, other] = &view.jobs[..] else { panic!("{:?}", view.jobs) };
        assert_eq!((own.job, own.name.as_str(), own.program.as_str()), (7, "nightly", "train"));
        assert_eq!((own.runs, own.waiting, own.finished_per_s), (2, Some(38), 2.0));
        assert_eq!((other.job, other.runs, other.waiting), (9, 1, None));
        // Without the runs of this node, its list tells how many there are.
        let mut sample = sample();
        sample.runs.clear();
        let view = View::of(&sample);
        assert_eq!((view.jobs[0].runs, view.jobs[0].waiting), (1, Some(39)));
    }

    #[test]
    fn waiting_tasks_have_the_age_of_the_one_that_is_named() {
        let ages: Vec<_> = View::of(&sample()).waiting.iter().map(|line| line.age_ms).collect();
        assert_eq!(ages, [Some(5), Some(192_000), None]);
    }

    #[test]
    fn the_document_is_the_report_with_more() {
        let sample = sample();
        let document = document(&sample, &View::of(&sample)).unwrap();
        let status = serde_json::to_value(&sample.report).unwrap();
        for (name, value) in status.as_object().unwrap() {
            if !matches!(name.as_str(), "nodes" | "pending") {
                assert_eq!(&document[name], value, "{name}");
            }
        }
        assert_eq!(document["nodes"][0]["node"], "0000000000000001");
        assert_eq!(document["nodes"][0]["cpus_used"], 3.5);
        assert_eq!(
            (&document["nodes"][2]["runs"], &document["nodes"][2]["free"]),
            (&Value::Null, &json!("2 CPU"))
        );
        assert_eq!((&document["jobs"][0]["tasks"], &document["jobs"][0]["runs"]), (&json!(40), &json!(2)));
        assert_eq!((&document["jobs"][1]["job"], &document["jobs"][1]["name"]), (&json!(9), &Value::Null));
        assert_eq!(
            (&document["pending"][1]["age_ms"], &document["pending"][1]["count"]),
            (&json!(192_000), &json!(2))
        );
        assert_eq!(document["silent"][0]["node"], "0000000000000002");
    }

    #[test]
    fn amounts_are_those_of_their_unit() {
        assert_eq!(amount("2.5 CPU, 1 GPU, 512 MiB memory", "CPU"), Some(2.5));
        assert_eq!(amount("2.5 CPU, 1 GPU, 512 MiB memory", "MiB memory"), Some(512.0));
        assert_eq!((amount("nothing", "CPU"), amount("3 XCPU", "CPU")), (None, None));
    }
}
