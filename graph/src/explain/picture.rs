//! A plan as a picture: one bar per stage. Its length is the thread time of the stage, or its number of
//! operations if the plan has not run.

use super::text::bytes_text;
use super::{Explanation, StageLine};
use std::fmt::Write;

const WIDTH: usize = 960;
const ROW: usize = 44;
const BAR_X: usize = 330;
const MARGIN: usize = 16;

impl Explanation {
    /// The stages as an SVG picture, each with its tasks and bytes, and a bar for its cost: thread time if
    /// the plan has run, else operations. The steps of a task are in the tooltip.
    #[must_use]
    pub fn to_svg(&self) -> String {
        let height = 2 * MARGIN + ROW * (self.stages.len() + 1);
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{height}\" \
             font-family=\"sans-serif\" font-size=\"13\">\n"
        );
        let most = self.stages.iter().map(cost_of).fold(0.0, f64::max);
        for (row, stage) in self.stages.iter().enumerate() {
            push_stage(&mut svg, stage, MARGIN + row * ROW, most);
        }
        let y = MARGIN + self.stages.len() * ROW + 20;
        let summary = escape(&self.summary());
        let _infallible = write!(svg, "<text x=\"{MARGIN}\" y=\"{y}\">{summary}</text>\n</svg>\n");
        svg
    }

    /// An HTML page with the picture and the text.
    #[must_use]
    pub fn to_html(&self) -> String {
        let (svg, text) = (self.to_svg(), escape(&self.to_string()));
        format!("<!doctype html>\n<meta charset=\"utf-8\">\n<title>plan</title>\n{svg}<pre>{text}</pre>\n")
    }
}

fn push_stage(svg: &mut String, stage: &StageLine, y: usize, most: f64) {
    let share = if most > 0.0 { cost_of(stage) / most } else { 0.0 };
    let length = (share * (WIDTH - BAR_X - MARGIN) as f64).max(1.0);
    let cost = match stage.busy_seconds {
        Some(seconds) => format!("{seconds:.6} s of thread time"),
        None => format!("{:.3e} flops", stage.flops),
    };
    let (label, work, cost) = (escape(&stage.label), escape(&stage.work), escape(&cost));
    let makes = escape(&format!("{} tasks, makes {}", stage.tasks, bytes_text(stage.output_bytes)));
    let (first, second, bar) = (y + 14, y + 30, y + 4);
    let _infallible = write!(
        svg,
        "<g><title>{work}</title>\n\
         <text x=\"{MARGIN}\" y=\"{first}\" font-weight=\"bold\">{label}</text>\n\
         <text x=\"{MARGIN}\" y=\"{second}\">{makes}</text>\n\
         <rect x=\"{BAR_X}\" y=\"{bar}\" width=\"{length:.1}\" height=\"12\" fill=\"#4878a8\"/>\n\
         <text x=\"{BAR_X}\" y=\"{second}\">{cost}</text></g>\n"
    );
}

/// Quantity that the bars compare.
fn cost_of(stage: &StageLine) -> f64 {
    stage.busy_seconds.unwrap_or(stage.flops)
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn explanation(busy_seconds: Option<f64>) -> Explanation {
        let stage = StageLine {
            label: "sum".to_owned(),
            work: "load 0 > fold <sum>".to_owned(),
            grid: vec![4],
            tasks: 4,
            task_elements: 100,
            output_bytes: 2048,
            flops: 400.0,
            busy_seconds,
            slowest_seconds: busy_seconds,
            skew: None,
            retries: None,
        };
        Explanation {
            operators: Vec::new(),
            stages: vec![stage],
            order: String::new(),
            waiting: Vec::new(),
            tasks: 4,
            flops: 400.0,
            bound_bytes: 4096,
            estimated_seconds: 0.5,
            retries: None,
            peak_bytes: None,
            elapsed_seconds: None,
        }
    }

    #[test]
    fn texts_are_escaped_and_bars_drawn() {
        let svg = explanation(None).to_svg();
        assert!(svg.contains("load 0 &gt; fold &lt;sum&gt;") && !svg.contains("<sum>"), "{svg}");
        assert!(svg.contains("4.000e2 flops") && svg.contains("2.0 KiB"), "{svg}");
        assert_eq!(svg.matches("<rect").count(), 1);
        assert!(explanation(Some(0.25)).to_html().contains("0.250000 s of thread time"));
    }
}
