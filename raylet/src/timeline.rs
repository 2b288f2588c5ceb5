//! Readers of the runs that a node remembers: pages of the loop ([`crate::runs`]) become batches for others.
//!
//! A page is asked for when the batch before it was taken: a reader that is slow holds one batch.

use crate::inbox::{Inbox, Input};
use crate::runs::{Moment, NotedRun, RunPage, RunPlace};
use futures::StreamExt;
use futures::stream::BoxStream;
use std::sync::Arc;
use tharsis_protos::runs::{RunBatch, RunQuery, RunSpan};
use tokio::sync::oneshot;

/// The runs that are asked for, in batches. Ends early, without a last batch, if the loop has ended.
#[must_use]
pub fn batches(inbox: Arc<Inbox>, query: RunQuery) -> BoxStream<'static, RunBatch> {
    futures::stream::unfold((inbox, Reader::new(query)), |(inbox, mut reader)| async move {
        let answer = reader.ask(&inbox)?;
        let batch = reader.batch(answer.await.ok()?);
        Some((batch, (inbox, reader)))
    })
    .boxed()
}

/// As [`batches`], on a thread that may wait, until `take` wants no more.
pub fn each(inbox: &Inbox, query: RunQuery, mut take: impl FnMut(RunBatch) -> bool) {
    let mut reader = Reader::new(query);
    while let Some(answer) = reader.ask(inbox) {
        let Ok(page) = answer.blocking_recv() else { return };
        if !take(reader.batch(page)) {
            return;
        }
    }
}

/// A way through the runs.
struct Reader {
    query: RunQuery,
    way: Way,
    /// The moment of the first page.
    moment: Option<Moment>,
}

/// The next page.
enum Way {
    First,
    On(RunPlace),
    Over,
}

impl Reader {
    fn new(query: RunQuery) -> Self {
        Self { query, way: Way::First, moment: None }
    }

    /// Asks the loop for the next page; none after the last one.
    fn ask(&self, inbox: &Inbox) -> Option<oneshot::Receiver<RunPage>> {
        let place = match self.way {
            Way::First => None,
            Way::On(place) => Some(place),
            Way::Over => return None,
        };
        let (reply, answer) = oneshot::channel();
        inbox.put(Input::RunPage { query: self.query, place, reply });
        Some(answer)
    }

    /// The batch of a page. All have the times of the first one: the clock for people may be set meanwhile.
    fn batch(&mut self, page: RunPage) -> RunBatch {
        let RunPage { runs, place, moment, forgotten, remembers_since } = page;
        let moment = *self.moment.get_or_insert(moment);
        self.way = place.map_or(Way::Over, Way::On);
        RunBatch {
            spans: runs.into_iter().map(|run| span(&run, moment)).collect(),
            forgotten,
            remembers_since_unix_ns: moment.unix_ns_of(remembers_since),
            is_last: place.is_none(),
        }
    }
}

fn span(run: &NotedRun, moment: Moment) -> RunSpan {
    RunSpan {
        task: run.task,
        attempt: run.attempt,
        owner: run.owner,
        name: run.own_name.as_deref().unwrap_or(&run.class.name).to_owned(),
        call_site: run.class.call_site.to_string(),
        worker: run.client,
        pid: run.pid,
        is_concurrent: run.class.is_concurrent,
        begin_unix_ns: moment.unix_ns_of(run.from),
        end_unix_ns: moment.unix_ns_of(run.to),
        outcome: run.outcome,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runs::RunBook;
    use tharsis_core::node::RunItem;
    use tharsis_protos::runs::RunOutcome;
    use tharsis_types::{ClientId, FunctionId, JobId, NodeId, TaskClass, TaskId};

    #[test]
    fn pages_become_batches_by_the_clock_of_the_first_one() {
        let class = Arc::new(TaskClass::new(JobId(1), FunctionId(1), "f"));
        let run = RunItem {
            task: TaskId::root(JobId(1)).child(0),
            attempt: 2,
            owner: NodeId(9),
            class: Some(&class),
            own_name: Some("own"),
            client: ClientId(3),
            since: None,
        };
        let mut book = RunBook::default();
        book.ended(1_000, &run, 7, 400, RunOutcome::Failed);
        let page = |unix_ns: u64, place: Option<RunPlace>| RunPage {
            runs: book.page(&RunQuery::default(), 0, None).0,
            place,
            moment: Moment { now: 2_000, unix_ns },
            forgotten: 5,
            remembers_since: 1_500,
        };
        let mut reader = Reader::new(RunQuery::default());
        let on = RunPlace { next: 1, until: 2 };
        let first = reader.batch(page(1_000_000, Some(on)));
        assert!(!first.is_last && matches!(reader.way, Way::On(place) if place == on));
        let span = &first.spans[0];
        assert_eq!((span.begin_unix_ns, span.end_unix_ns), (998_600, 999_000));
        assert_eq!((&*span.name, &*span.call_site, span.attempt), ("own", "", 2));
        // The clock was set back.
        let last = reader.batch(page(10, None));
        assert_eq!((&last.spans, last.remembers_since_unix_ns), (&first.spans, 999_500));
        assert!(last.is_last && matches!(reader.way, Way::Over));
    }
}
