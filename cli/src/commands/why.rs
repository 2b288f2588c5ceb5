//! `tharsis why`: the reason why a task or an object waits, and its history.

use crate::output;
use crate::refusal::Refusal;
use anyhow::Result;
use std::path::Path;
use tharsis::observe;
use tharsis_protos::handshake::Subject;
use tharsis_protos::report::Story;

/// Asks the node at `socket` and prints its answer.
///
/// # Errors
/// If it does not answer, or knows nothing of the task or object.
pub fn run(socket: &Path, subject: Subject, json: bool) -> Result<()> {
    let story = observe::why(socket, subject).map_err(super::unanswered)?;
    if story.present.is_empty() && story.past.is_empty() {
        let id = match subject {
            Subject::Object(object) => object.to_string(),
            Subject::Task(task) => task.to_string(),
        };
        return Err(Refusal::Unknown { node: story.node, id }.into());
    }
    if json {
        return output::line(&serde_json::to_string(&story)?);
    }
    output::plain_lines(&describe(&story))
}

/// The lines of the answer for people.
pub(super) fn describe(story: &Story) -> Vec<String> {
    let mut lines = story.present.clone();
    if lines.is_empty() {
        lines.push("not here any more".to_owned());
    }
    if !story.past.is_empty() {
        lines.push(format!("what node {:016x} remembers", story.node));
    }
    lines.extend(story.past.iter().map(|row| format!("{:>16} ago  {}", span(row.ago_ns), row.what)));
    lines
}

/// A span of time, to three digits.
fn span(ns: u64) -> String {
    match ns as f64 {
        ns if ns < 1e6 => format!("{:.0} us", ns / 1e3),
        ns if ns < 1e9 => format!("{:.1} ms", ns / 1e6),
        ns => format!("{:.1} s", ns / 1e9),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tharsis_protos::report::PastRow;

    #[test]
    fn the_present_comes_first_and_then_the_past_with_its_age() {
        let past = |ago_ns, what: &str| PastRow { ago_ns, what: what.to_owned() };
        let mut story = Story {
            node: 255,
            present: vec!["queued".to_owned()],
            past: vec![past(2_500_000_000, "queued"), past(12_300_000, "sent"), past(7_000, "came back")],
            ..Story::default()
        };
        let text = describe(&story).join("\n");
        let lines = [
            "queued",
            "what node 00000000000000ff remembers",
            "           2.5 s ago  queued",
            "         12.3 ms ago  sent",
            "            7 us ago  came back",
        ];
        assert_eq!(text, lines.join("\n"));
        story.present.clear();
        assert_eq!(describe(&story)[0], "not here any more");
    }
}
