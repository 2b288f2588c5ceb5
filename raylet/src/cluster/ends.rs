//! Ends of jobs that other members tell: the questions to the control store that [`tharsis_core::ends`] asks.
//!
//! The node of the driver is believed at once if it is known here, as it is where a worker of the job was
//! started.

use super::code::Code;
use crate::inbox::{Inbox, Input};
use crate::registry::lock;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tharsis_core::ends::{self, Listed, Listing, Question};
use tharsis_core::{Event, Now};
use tharsis_gcs::ControlClient;
use tharsis_protos::control::JobPage;
use tharsis_types::{JobId, NodeId};
use tokio::sync::{Notify, oneshot};
use tokio::time::{Instant, timeout, timeout_at};

/// The longest time for one answer: others have told something else meanwhile.
const ANSWER_WAIT: Duration = Duration::from_secs(5);

/// Ends of jobs that members have told.
pub(super) struct Ends {
    code: Arc<Code>,
    inbox: Arc<Inbox>,
    machine: Mutex<ends::Ends>,
    news: Notify,
    /// The moment that the machine counts from.
    start: Instant,
}

impl Ends {
    /// Nothing was told yet.
    pub(super) fn new(code: Arc<Code>, inbox: Arc<Inbox>) -> Self {
        Self { code, inbox, machine: Mutex::default(), news: Notify::new(), start: Instant::now() }
    }

    /// A member says that a job has ended.
    pub(super) fn told(&self, job: JobId, from: NodeId) {
        if self.code.is_driven_by(job, from) {
            return self.end(job);
        }
        if !lock(&self.machine).told((job, from), self.now()) {
            tracing::warn!(%from, "a node has told of more ends of jobs than there is room for");
        }
        self.news.notify_one();
    }

    /// Ends jobs here that have ended, of those that members have told.
    pub(super) async fn confirm(&self, control: &ControlClient) {
        loop {
            let next = lock(&self.machine).next_timeout();
            match next {
                Some(at) => {
                    let _in_time = timeout_at(self.at(at), self.news.notified()).await;
                }
                None => self.news.notified().await,
            }
            let has_beyond = lock(&self.machine).has_beyond();
            if has_beyond {
                let jobs = self.jobs_here().await;
                lock(&self.machine).take_beyond(&jobs, self.now());
            }
            let question = lock(&self.machine).question(self.now());
            let Some(question) = question else { continue };
            let listing = ask(control, &question).await;
            let ended = lock(&self.machine).answered(&question, listing.as_ref(), self.now());
            ended.into_iter().for_each(|job| self.end(job));
        }
    }

    /// The jobs of other nodes' drivers of which this node has a program, or anything else.
    async fn jobs_here(&self) -> Vec<JobId> {
        let (reply, answer) = oneshot::channel();
        self.inbox.put(Input::JobsOfOthers { reply });
        // The loop has ended if it does not answer.
        let known = answer.await.unwrap_or_default();
        let all: BTreeSet<JobId> = self.code.jobs_of_others().into_iter().chain(known).collect();
        all.into_iter().collect()
    }

    fn end(&self, job: JobId) {
        self.inbox.put(Input::Event(Event::JobEnded { job }));
    }

    fn now(&self) -> Now {
        Now::try_from(self.start.elapsed().as_nanos()).unwrap_or(Now::MAX)
    }

    fn at(&self, time: Now) -> Instant {
        self.start + Duration::from_nanos(time)
    }
}

/// The answer to a question; none if the control store does not give one.
async fn ask(control: &ControlClient, question: &Question) -> Option<Listing> {
    let before = JobId(question.first().0.saturating_sub(1));
    match timeout(ANSWER_WAIT, control.list_jobs(before, question.records)).await {
        Ok(Ok(page)) => Some(listing(&page)),
        Ok(Err(error)) => {
            tracing::info!(%error, "it is not known whether jobs have ended");
            None
        }
        Err(_) => None,
    }
}

fn listing(page: &JobPage) -> Listing {
    let jobs = page.jobs.iter().map(|info| Listed {
        job: info.id,
        driver: info.driver_node,
        has_ended: info.end.is_some(),
    });
    Listing { jobs: jobs.collect(), more: page.more }
}
