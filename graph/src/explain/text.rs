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
