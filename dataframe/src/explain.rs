//! Description of a plan before and after it ran: as a text, and as data.

use crate::metrics::{Metrics, StageMetrics};
use crate::stage::Stages;
use serde::Serialize;
use std::fmt;

/// A plan in words and numbers; `Display` is the text, `serde` the data.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Explanation {
    /// The stages in the order of the plan; the last one makes the result.
    pub stages: Vec<StageLine>,
    /// Tasks of all stages.
    pub tasks: usize,
    /// Rows, bytes and time of the run; after running.
    pub run: Option<RunLine>,
}

/// One stage of a plan.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StageLine {
    /// Number of tasks in the plan.
    pub tasks: usize,
    /// The outputs of each task, in words.
    pub outputs: String,
    /// The operators of a task, each indented below the one that reads it.
    pub operators: Vec<String>,
    /// Rows, bytes and time of its tasks; after running.
    pub run: Option<StageRunLine>,
}

/// Rows, bytes and time of the tasks of a stage.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[allow(missing_docs)]
pub struct StageRunLine {
    /// Tasks that ran: not more than were needed.
    pub tasks: usize,
    pub rows: usize,
    pub bytes: usize,
    /// Bytes of the outputs of the largest task.
    pub largest_bytes: usize,
    /// Bytes that operators wrote to files because memory did not suffice.
    pub spilled_bytes: usize,
    /// Seconds of all threads, and of the slowest task.
    pub busy_seconds: f64,
    pub slowest_seconds: f64,
    /// Time of the slowest task divided by the average time of one.
    pub skew: f64,
    /// Attempts beyond the first of each task.
    pub retries: u64,
}

/// Rows, bytes and time of a run.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[allow(missing_docs)]
pub struct RunLine {
    pub tasks: usize,
    /// Rows of the result, and their bytes.
    pub rows: usize,
    pub bytes: usize,
    pub spilled_bytes: usize,
    pub elapsed_seconds: f64,
    pub retries: u64,
}

impl Explanation {
    /// Explains a plan that has not run.
    pub(crate) fn new(stages: &Stages) -> Explanation {
        let line = |stage: usize| {
            let (outputs, operators) = stages.texts(stage);
            StageLine { tasks: stages.tasks_of(stage), outputs, operators, run: None }
        };
        Explanation { stages: (0..stages.count()).map(line).collect(), tasks: stages.tasks(), run: None }
    }

    /// Adds what the run took.
    pub(crate) fn with_metrics(mut self, metrics: &Metrics) -> Explanation {
        for (line, stage) in self.stages.iter_mut().zip(&metrics.stages) {
            line.run = Some(StageRunLine::new(stage));
        }
        let last = metrics.stages.last().copied().unwrap_or_default();
        self.run = Some(RunLine {
            tasks: metrics.stages.iter().map(|stage| stage.tasks).sum(),
            rows: last.rows,
            bytes: last.bytes,
            spilled_bytes: metrics.stages.iter().map(|stage| stage.spilled_bytes).sum(),
            elapsed_seconds: metrics.elapsed.as_secs_f64(),
            retries: metrics.retries,
        });
        self
    }
}

impl StageRunLine {
    fn new(stage: &StageMetrics) -> StageRunLine {
        let (busy, slowest) = (stage.busy.as_secs_f64(), stage.slowest.as_secs_f64());
        let mean = busy / stage.tasks.max(1) as f64;
        StageRunLine {
            tasks: stage.tasks,
            rows: stage.rows,
            bytes: stage.bytes,
            largest_bytes: stage.largest_bytes,
            spilled_bytes: stage.spilled_bytes,
            busy_seconds: busy,
            slowest_seconds: slowest,
            skew: if 0.0 < mean { slowest / mean } else { 1.0 },
            retries: stage.retries,
        }
    }
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, stage) in self.stages.iter().enumerate() {
            writeln!(f, "stage {number}: {} tasks, {}", stage.tasks, stage.outputs)?;
            for operator in &stage.operators {
                writeln!(f, "  {operator}")?;
            }
            if let Some(run) = &stage.run {
                writeln!(f, "    {run}")?;
            }
        }
        match &self.run {
            None => write!(f, "{} tasks", self.tasks),
            Some(run) => write!(f, "{run} tasks run, {} planned", self.tasks),
        }
    }
}

impl fmt::Display for StageRunLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let StageRunLine { tasks, rows, busy_seconds: busy, slowest_seconds: slowest, skew, .. } = self;
        let (bytes, spilled) = (bytes_text(self.bytes as u64), spilled_text(self.spilled_bytes));
        let again = again_text(self.retries);
        write!(
            f,
            "{tasks} tasks made {rows} rows, {bytes}{spilled}; took {busy:.6} s of thread time, slowest task \
             {slowest:.6} s, {skew:.1} times the mean{again}"
        )
    }
}

impl fmt::Display for RunLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let RunLine { tasks, rows, elapsed_seconds, .. } = self;
        let (bytes, spilled) = (bytes_text(self.bytes as u64), spilled_text(self.spilled_bytes));
        let again = again_text(self.retries);
        write!(f, "{rows} rows, {bytes}{spilled}; {elapsed_seconds:.6} s{again}, {tasks}")
    }
}

/// Spilled bytes, if there are any.
fn spilled_text(bytes: usize) -> String {
    match bytes {
        0 => String::new(),
        bytes => format!(", {} spilled", bytes_text(bytes as u64)),
    }
}

/// Retries, if there were any.
fn again_text(retries: u64) -> String {
    match retries {
        0 => String::new(),
        retries => format!(", {retries} retries"),
    }
}

/// Bytes in the largest unit in which the number is at least 1.
pub(crate) fn bytes_text(bytes: u64) -> String {
    let units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
    let mut value = bytes as f64;
    let mut unit = 0;
    while 1024.0 <= value && unit + 1 < units.len() {
        value /= 1024.0;
        unit += 1;
    }
    if unit == 0 { format!("{bytes} B") } else { format!("{value:.1} {}", units[unit]) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn explanation() -> Explanation {
        let stage = StageLine {
            tasks: 4,
            outputs: "one output each".to_owned(),
            operators: vec!["FilterExec: n > 1".to_owned(), "  InputExec: table 0".to_owned()],
            run: None,
        };
        Explanation { stages: vec![stage], tasks: 4, run: None }
    }

    #[test]
    fn a_plan_that_has_not_run_is_its_stages() {
        let expected =
            "stage 0: 4 tasks, one output each\n  FilterExec: n > 1\n    InputExec: table 0\n4 tasks";
        assert_eq!(explanation().to_string(), expected);
    }

    #[test]
    fn a_plan_that_has_run_tells_rows_bytes_spill_time_and_retries() {
        let stage = StageMetrics {
            tasks: 2,
            rows: 100,
            bytes: 2048,
            largest_bytes: 1536,
            spilled_bytes: 1 << 20,
            busy: Duration::from_millis(500),
            slowest: Duration::from_millis(400),
            retries: 3,
        };
        let elapsed = Duration::from_millis(300);
        let metrics = Metrics { stages: vec![stage], elapsed, retries: 3 };
        let text = explanation().with_metrics(&metrics).to_string();
        // The slowest of two tasks took 0.4 s, a task on average 0.25 s.
        let made = "    2 tasks made 100 rows, 2.0 KiB, 1.0 MiB spilled; took 0.500000 s of thread time, slowest \
                    task 0.400000 s, 1.6 times the mean, 3 retries\n";
        assert!(text.contains(made), "{text}");
        let last = "100 rows, 2.0 KiB, 1.0 MiB spilled; 0.300000 s, 3 retries, 2 tasks run, 4 planned";
        assert!(text.ends_with(last), "{text}");
    }
}
