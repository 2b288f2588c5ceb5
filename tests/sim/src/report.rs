//! Stories of the nodes about the tasks and objects that a broken rule names.

use crate::cluster::Cluster;
use std::fmt::Write as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use tharsis_core::MS;
use tharsis_core::journal::About;
use tharsis_core::node::Story;
use tharsis_types::{ObjectId, TaskId};

/// Tasks and objects that are told of.
const TOLD_MAX: usize = 4;

/// Stories of every living node about the tasks and objects that a text names.
pub(crate) fn stories(cluster: &Cluster, detail: &str) -> String {
    let mut out = String::new();
    for about in named(detail) {
        for host in cluster.hosts.iter().filter(|host| host.alive) {
            // After a panic its books may not agree: then it tells nothing.
            let story = catch_unwind(AssertUnwindSafe(|| host.node.story(cluster.now, about)));
            if let Ok(Some(story)) = story {
                let _ = write!(out, "\n  node {} of {about:?}:{}", host.id, lines(&story));
            }
        }
    }
    out
}

/// The tasks and objects that a text names, each once.
fn named(text: &str) -> Vec<About> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '/');
    let about = |word: &str| {
        let object = word.parse::<ObjectId>().ok().map(About::Object);
        object.or_else(|| word.parse::<TaskId>().ok().map(About::Task))
    };
    let mut all = Vec::new();
    for about in words.filter_map(about) {
        if !all.contains(&about) {
            all.push(about);
        }
    }
    all.truncate(TOLD_MAX);
    all
}

fn lines(story: &Story) -> String {
    let past = story.past.iter().map(|past| format!("{} ms ago: {}", past.ago / MS, past.what));
    story.present.iter().cloned().chain(past).map(|line| format!("\n    {line}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use tharsis_types::JobId;

    #[test]
    fn ids_are_found_in_what_a_rule_says() {
        let task = TaskId::root(JobId(3)).child(1);
        let put = ObjectId::put(task, 2);
        let text = format!("{put} of a task ({task}) failed: Object({put}) is not known, nor is 7/0");
        assert_eq!(named(&text), [About::Object(put), About::Task(task)]);
    }
}
