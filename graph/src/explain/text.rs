//! A plan as a text tree.

use super::Explanation;
use std::fmt;

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "operators")?;
        for (i, line) in self.operators.iter().enumerate() {
            let inputs: Vec<String> = line.inputs.iter().map(|input| format!("#{input}")).collect();
            let shape = crate::error::shape_text(&line.shape);
            writeln!(f, "  #{i} {}({}) -> {} {shape}", line.name, inputs.join(", "), line.dtype)?;
        }
        writeln!(f, "stages")?;
        for line in &self.stages {
            writeln!(
                f,
                "  {}: {} tasks {:?} of up to {} elements",
                line.label, line.tasks, line.grid, line.task_elements
            )?;
            writeln!(f, "    {}", line.work)?;
            write!(f, "    makes {}, {:.3e} flops", bytes_text(line.output_bytes), line.flops)?;
            match (line.busy_seconds, line.slowest_seconds, line.skew) {
                (Some(busy), Some(slowest), Some(skew)) => writeln!(
                    f,
                    "; took {busy:.6} s of thread time, slowest task {slowest:.6} s, {skew:.1} times the mean{}",
                    again(line.retries)
                )?,
                _ => writeln!(f)?,
            }
        }
        writeln!(f, "order: {}", self.order)?;
        if !self.waiting.is_empty() {
            writeln!(f, "then, with the sizes that this tells: {}", self.waiting.join(", "))?;
        }
        f.write_str(&self.summary())
    }
}

impl Explanation {
    /// The last line: totals of the plan and of its run.
    pub(super) fn summary(&self) -> String {
        let Explanation { tasks, flops, bound_bytes, estimated_seconds, .. } = self;
        let planned =
            format!("{tasks} tasks, {flops:.3e} flops, never more than {}", bytes_text(*bound_bytes));
        match (self.peak_bytes, self.elapsed_seconds) {
            (Some(peak), Some(elapsed)) => {
                let (peak, again) = (bytes_text(peak), again(self.retries));
                format!("{planned}; was {peak} at most, {elapsed:.6} s{again}")
            }
            _ => format!("{planned}, about {estimated_seconds:.3} s"),
        }
    }
}

/// Retries, if there were any.
fn again(retries: Option<u64>) -> String {
    retries.filter(|retries| 0 < *retries).map_or(String::new(), |retries| format!(", {retries} retries"))
}

/// Bytes in the largest unit in which the number is at least 1.
pub fn bytes_text(bytes: u64) -> String {
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
    use crate::explain::StageLine;

    #[test]
    fn bytes_are_told_in_the_largest_unit_that_keeps_a_digit() {
        let expected = [
            (0, "0 B"),
            (1023, "1023 B"),
            (1024, "1.0 KiB"),
            (1536, "1.5 KiB"),
            (1 << 20, "1.0 MiB"),
            (5 << 30, "5.0 GiB"),
            (1 << 40, "1.0 TiB"),
            (u64::MAX, "16384.0 PiB"),
        ];
        for (bytes, text) in expected {
            assert_eq!(bytes_text(bytes), text);
        }
    }

    fn explanation() -> Explanation {
        let stage = StageLine {
            label: "sum".to_owned(),
            work: "load 0 > fold sum".to_owned(),
            grid: vec![2, 1],
            tasks: 2,
            task_elements: 100,
            output_bytes: 16,
            flops: 200.0,
            busy_seconds: None,
            slowest_seconds: None,
            skew: None,
            retries: None,
        };
        Explanation {
            operators: Vec::new(),
            stages: vec![stage],
            order: "depth-first".to_owned(),
            waiting: vec!["compress", "add"],
            tasks: 2,
            flops: 200.0,
            bound_bytes: 2048,
            estimated_seconds: 0.25,
            retries: None,
            peak_bytes: None,
            elapsed_seconds: None,
        }
    }

    #[test]
    fn a_plan_that_has_not_run_tells_its_bound_and_what_waits_for_it() {
        let expected = "operators\nstages\n  sum: 2 tasks [2, 1] of up to 100 elements\n    \
                        load 0 > fold sum\n    makes 16 B, 2.000e2 flops\norder: depth-first\n\
                        then, with the sizes that this tells: compress, add\n\
                        2 tasks, 2.000e2 flops, never more than 2.0 KiB, about 0.250 s";
        assert_eq!(explanation().to_string(), expected);
    }

    #[test]
    fn a_plan_that_has_run_tells_its_peak_skew_and_retries() {
        use crate::execute::{Metrics, StageMetrics};
        use std::time::Duration;
        let of_stage = |retries| StageMetrics {
            tasks: 2,
            busy: Duration::from_millis(500),
            slowest: Duration::from_millis(400),
            retries,
        };
        let text = |retries| {
            let metrics = Metrics {
                peak_bytes: 1024,
                elapsed: Duration::from_millis(300),
                retries,
                stages: vec![of_stage(retries)],
                ..Metrics::default()
            };
            explanation().with_metrics(&metrics).to_string()
        };
        // The slowest of two tasks took 0.4 s, a task on average 0.25 s.
        let stage = "took 0.500000 s of thread time, slowest task 0.400000 s, 1.6 times the mean";
        let last = "never more than 2.0 KiB; was 1.0 KiB at most, 0.300000 s";
        assert!(text(0).contains(&format!("{stage}\n")), "{}", text(0));
        assert!(text(0).ends_with(last), "{}", text(0));
        assert!(text(3).contains(&format!("{stage}, 3 retries\n")), "{}", text(3));
        assert!(text(3).ends_with(&format!("{last}, 3 retries")), "{}", text(3));
    }
}
