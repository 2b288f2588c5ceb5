//! A timeline in the Trace Event Format (JSON), which ui.perfetto.dev and chrome://tracing show.
//!
//! A node is a process of the trace, a lane of a worker one of its threads, a run a slice there. Events are
//! written one by one: those of a large cluster take more memory as values of JSON than as runs. Times are
//! microseconds with three decimals since the first event, made of whole numbers: nanoseconds since 1970 are
//! no exact floats.

use super::gather::{NodeRuns, Run};
use std::collections::BTreeMap;
use std::io::{self, Write};
use tharsis_protos::runs::RunOutcome;
use tharsis_types::JobId;

/// Lanes of a worker that are told apart.
const LANES_MAX: u32 = 1024;
/// The process of the trace in which jobs are shown. Nodes have those behind it.
const JOBS: usize = 0;

/// A job, as the control store knows it.
#[derive(Clone, Debug)]
pub struct JobBar {
    /// The job.
    pub job: JobId,
    /// Its name; its program if it has none.
    pub name: String,
    /// When it began, in ns since 1970.
    pub begin: u64,
    /// When it ended; none while it runs.
    pub end: Option<u64>,
    /// Whether it runs, or its end.
    pub outcome: &'static str,
}

/// Writes what nodes told, in the order of nodes, with runs that have lanes.
///
/// # Errors
/// Those of the writer.
pub fn write(to: &mut impl Write, nodes: &[NodeRuns], jobs: &[JobBar]) -> io::Result<()> {
    let runs = || nodes.iter().flat_map(|node| &node.runs);
    let begins = runs().map(|run| run.begin).chain(jobs.iter().map(|job| job.begin));
    let origin = begins.min().unwrap_or(0);
    let ends = runs().map(|run| run.end).chain(jobs.iter().map(|job| job.end.unwrap_or(job.begin)));
    let latest = ends.max().unwrap_or(0);
    write!(to, "{{\"displayTimeUnit\":\"ms\",\"otherData\":{{\"tharsis\":")?;
    text(to, env!("CARGO_PKG_VERSION"))?;
    write!(to, ",\"begin_unix_ns\":\"{origin}\",\"nodes\":[")?;
    for (index, node) in nodes.iter().enumerate() {
        let NodeRuns { node, remembers_since, forgotten, .. } = node;
        let comma = if index == 0 { "" } else { "," };
        write!(
            to,
            "{comma}{{\"node\":\"{node:016x}\",\"remembers_since_unix_ns\":\"{remembers_since}\",\
             \"forgotten\":{forgotten}}}"
        )?;
    }
    write!(to, "]}},\"traceEvents\":[")?;
    let mut events = Events { to: &mut *to, origin, is_first: true };
    if !jobs.is_empty() {
        events.name("process_name", JOBS, 0, "jobs")?;
    }
    for job in jobs {
        events.job(job, latest)?;
    }
    for (index, node) in nodes.iter().enumerate() {
        events.node(index + 1, node)?;
    }
    writeln!(to, "\n]}}")
}

/// Events on their way.
struct Events<'a, W> {
    to: &'a mut W,
    origin: u64,
    is_first: bool,
}

impl<W: Write> Events<'_, W> {
    /// Begins an event.
    fn begin(&mut self) -> io::Result<()> {
        let between = if std::mem::replace(&mut self.is_first, false) { "\n" } else { ",\n" };
        self.to.write_all(between.as_bytes())
    }

    /// Names a process or a thread of the trace.
    fn name(&mut self, what: &str, pid: usize, tid: u64, name: &str) -> io::Result<()> {
        self.begin()?;
        write!(
            self.to,
            "{{\"ph\":\"M\",\"name\":\"{what}\",\"pid\":{pid},\"tid\":{tid},\"args\":{{\"name\":"
        )?;
        text(self.to, name)?;
        write!(self.to, "}}}}")
    }

    /// Begins a slice.
    fn slice(&mut self, kind: &str, (pid, tid): (usize, u64), (begin, end): (u64, u64)) -> io::Result<()> {
        self.begin()?;
        let (begin, long) = (begin.saturating_sub(self.origin), end.saturating_sub(begin));
        write!(
            self.to,
            "{{\"ph\":\"X\",\"cat\":\"{kind}\",\"pid\":{pid},\"tid\":{tid},\"ts\":{},\"dur\":{},\"name\":",
            us(begin),
            us(long)
        )
    }

    fn job(&mut self, job: &JobBar, latest: u64) -> io::Result<()> {
        let JobBar { job, name, begin, end, outcome } = job;
        self.slice("job", (JOBS, job.0.into()), (*begin, end.unwrap_or(latest)))?;
        text(self.to, name)?;
        write!(self.to, ",\"args\":{{\"job\":{},\"outcome\":\"{outcome}\"}}}}", job.0)
    }

    fn node(&mut self, pid: usize, node: &NodeRuns) -> io::Result<()> {
        self.name("process_name", pid, 0, &format!("node {:016x} {}", node.node, node.place))?;
        self.begin()?;
        write!(
            self.to,
            "{{\"ph\":\"M\",\"name\":\"process_sort_index\",\"pid\":{pid},\"tid\":0,\
             \"args\":{{\"sort_index\":{pid}}}}}"
        )?;
        let threads: BTreeMap<u64, &Run> = node.runs.iter().map(|run| (tid(run), run)).collect();
        for (tid, run) in threads {
            let lane = match tid % u64::from(LANES_MAX) {
                0 => String::new(),
                lane => format!(", {}", lane + 1),
            };
            let worker = format!("worker {} (process {}){lane}", run.worker.0, run.pid);
            self.name("thread_name", pid, tid, &worker)?;
        }
        node.runs.iter().try_for_each(|run| self.run(pid, run))
    }

    fn run(&mut self, pid: usize, run: &Run) -> io::Result<()> {
        self.slice("run", (pid, tid(run)), (run.begin, run.end))?;
        text(self.to, if run.name.is_empty() { "unknown" } else { &run.name })?;
        let Run { task, attempt, owner, outcome, .. } = run;
        if matches!(outcome, RunOutcome::Failed | RunOutcome::Crashed) {
            write!(self.to, ",\"cname\":\"terrible\"")?;
        }
        write!(
            self.to,
            ",\"args\":{{\"task\":\"{task}\",\"job\":{},\"attempt\":{attempt},\"owner\":\"{:016x}\",\
             \"outcome\":\"{}\",\"call_site\":",
            task.job().0,
            owner.0,
            outcome.name()
        )?;
        text(self.to, &run.call_site)?;
        write!(self.to, "}}}}")
    }
}

/// The thread of the trace of a run.
fn tid(run: &Run) -> u64 {
    u64::from(run.worker.0) * u64::from(LANES_MAX) + u64::from(run.lane.min(LANES_MAX - 1))
}

/// Nanoseconds as microseconds.
fn us(ns: u64) -> String {
    format!("{}.{:03}", ns / 1000, ns % 1000)
}

/// A text as JSON.
fn text(to: &mut impl Write, text: &str) -> io::Result<()> {
    serde_json::to_writer(to, text).map_err(io::Error::from)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};
    use tharsis_types::{ClientId, NodeId};

    const TASK: &str = "0100000000000000000000000000000a";

    fn run(begin: u64, end: u64, lane: u32, outcome: RunOutcome) -> Run {
        Run {
            task: TASK.parse().unwrap(),
            attempt: 2,
            owner: NodeId(255),
            name: "a \"name\"\n".into(),
            call_site: "f.rs:3".into(),
            worker: ClientId(12),
            pid: 4711,
            is_concurrent: false,
            begin,
            end,
            outcome,
            lane,
        }
    }

    fn node(node: u64, runs: Vec<Run>) -> NodeRuns {
        let mut found = NodeRuns::new(node, "10.0.0.1:7601".to_owned());
        (found.runs, found.forgotten, found.remembers_since) = (runs, 7, u64::MAX);
        found
    }

    fn written(nodes: &[NodeRuns], jobs: &[JobBar]) -> (String, Value) {
        let mut bytes = Vec::new();
        write(&mut bytes, nodes, jobs).unwrap();
        let value = serde_json::from_slice(&bytes).unwrap();
        (String::from_utf8(bytes).unwrap(), value)
    }

    #[test]
    fn a_run_is_a_slice_of_its_worker() {
        let begin = 1_764_032_463_007_000_001;
        let nodes =
            [node(255, vec![run(begin, begin + 1_500, 0, RunOutcome::Returned)]), node(u64::MAX, Vec::new())];
        let (text, trace) = written(&nodes, &[]);
        let data = &trace["otherData"];
        assert_eq!(data["begin_unix_ns"], begin.to_string());
        let expected = json!([
            {"node": "00000000000000ff", "remembers_since_unix_ns": u64::MAX.to_string(), "forgotten": 7},
            {"node": "ffffffffffffffff", "remembers_since_unix_ns": u64::MAX.to_string(), "forgotten": 7},
        ]);
        assert_eq!(data["nodes"], expected);
        let events = trace["traceEvents"].as_array().unwrap();
        assert_eq!(
            events[2],
            json!({"ph": "M", "name": "thread_name", "pid": 1, "tid": 12_288,
                "args": {"name": "worker 12 (process 4711)"}})
        );
        let job = u32::from_le_bytes([1, 0, 0, 0]);
        let args = json!({"task": TASK, "job": job, "attempt": 2, "owner": "00000000000000ff",
            "outcome": "returned", "call_site": "f.rs:3"});
        let slice = json!({"ph": "X", "cat": "run", "name": "a \"name\"\n", "pid": 1, "tid": 12_288,
            "ts": 0.0, "dur": 1.5, "args": args});
        assert_eq!(events[3], slice);
        assert_eq!(events.len(), 6);
        assert!(text.contains("\"ts\":0.000,\"dur\":1.500,"), "{text}");
    }

    #[test]
    fn what_did_not_end_well_stands_out_and_lanes_are_named() {
        let outcomes = [RunOutcome::Running, RunOutcome::Failed, RunOutcome::Crashed, RunOutcome::Returned];
        let runs = (0..).zip(outcomes).map(|(lane, outcome)| run(u64::MAX - 1, u64::MAX, lane, outcome));
        let mut runs: Vec<Run> = runs.collect();
        runs.push(run(0, 0, 5_000, RunOutcome::Returned));
        let (text, trace) = written(&[node(1, runs)], &[]);
        let events = trace["traceEvents"].as_array().unwrap();
        let names = |kind: &str| events.iter().filter(|event| event["name"] == kind).count();
        assert_eq!((names("thread_name"), names("process_name")), (5, 1));
        let slices: Vec<&Value> = events.iter().filter(|event| event["ph"] == "X").collect();
        let marked: Vec<bool> = slices.iter().map(|slice| slice["cname"] == "terrible").collect();
        assert_eq!(marked, [false, true, true, false, false]);
        assert_eq!(slices[4]["tid"], 12 * 1024 + 1023);
        assert!(text.contains("\"worker 12 (process 4711), 2\""), "{text}");
        assert!(text.contains("\"ts\":18446744073709551.614,\"dur\":0.001,"), "{text}");
    }

    #[test]
    fn jobs_have_a_process_of_their_own() {
        let bar = |job: u32, end: Option<u64>| JobBar {
            job: JobId(job),
            name: "./train".to_owned(),
            begin: 1_000,
            end,
            outcome: if end.is_some() { "succeeded" } else { "running" },
        };
        let nodes = [node(1, vec![run(2_000, 9_000, 0, RunOutcome::Running)])];
        let (_, trace) = written(&nodes, &[bar(3, Some(4_000)), bar(4, None)]);
        let events = trace["traceEvents"].as_array().unwrap();
        assert_eq!(events[0]["args"]["name"], "jobs");
        let slice = |at: usize| (&events[at]["pid"], &events[at]["tid"], &events[at]["dur"]);
        assert_eq!(slice(1), (&json!(0), &json!(3), &json!(3.0)));
        assert_eq!(slice(2), (&json!(0), &json!(4), &json!(8.0)), "it goes on until the last that is known");
        assert_eq!(events[2]["args"], json!({"job": 4, "outcome": "running"}));
    }

    #[test]
    fn without_runs_the_trace_is_empty() {
        let (_, trace) = written(&[], &[]);
        assert_eq!((&trace["traceEvents"], &trace["displayTimeUnit"]), (&json!([]), &json!("ms")));
    }
}
