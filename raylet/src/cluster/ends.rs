//! Jobs of other nodes' drivers: questions to the control store about their ends, which other members tell
//! and [`tharsis_core::ends`] asks about, and about the nodes of their drivers.
//!
//! The node of the driver is believed at once if it is known here, as it is where a worker of the job was
//! started. One question after the other, with a pause between: whatever members say of however many jobs.

use super::code::Code;
use crate::inbox::{Inbox, Input};
use crate::registry::lock;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tharsis_core::ends::{self, Listed, Listing, Question};
use tharsis_core::{Event, Now};
use tharsis_gcs::ControlClient;
use tharsis_protos::control::JobPage;
use tharsis_types::{JobId, NodeId};
use tokio::sync::{Notify, oneshot};
use tokio::time::{Instant, sleep, timeout, timeout_at};

/// The time between two questions for drivers.
const DRIVERS_PAUSE: Duration = Duration::from_millis(20);
/// The time after a question for a driver that had no answer.
const UNANSWERED_PAUSE: Duration = Duration::from_secs(1);
/// Jobs of one member that wait for the question where their drivers are, and one that had no answer. Those
/// beyond are asked about when their terms are told again.
const DRIVERS_MAX: usize = 64;
/// The longest time for one answer: others have told something else meanwhile.
const ANSWER_WAIT: Duration = Duration::from_secs(5);

/// Ends of jobs that members have told, and jobs whose drivers are looked for.
pub(crate) struct Ends {
    code: Arc<Code>,
    inbox: Arc<Inbox>,
    machine: Mutex<ends::Ends>,
    news: Notify,
    driven: Mutex<Driven>,
    drivers_wanted: Notify,
    /// The moment that the machine counts from.
    start: Instant,
}

/// Jobs whose drivers are looked for, in turns of the members that have said their terms.
#[derive(Debug, Default)]
struct Driven {
    of: BTreeMap<NodeId, VecDeque<JobId>>,
    /// The member whose turn was last.
    last: Option<NodeId>,
}

impl Driven {
    /// The node of a driver is wanted, for what a member has said; false if that one has no room.
    fn add(&mut self, job: JobId, from: NodeId) -> bool {
        let jobs = self.of.entry(from).or_default();
        let has_room = jobs.len() < DRIVERS_MAX;
        if has_room {
            jobs.push_back(job);
        }
        has_room
    }

    /// A question had no answer, so it is asked again: whoever has said the terms may not say them again.
    fn add_again(&mut self, job: JobId, from: NodeId) {
        self.of.entry(from).or_default().push_back(job);
    }

    /// The next job, and the member that it is asked for.
    fn next(&mut self) -> Option<(JobId, NodeId)> {
        let after = |node: &NodeId| self.last.is_none_or(|last| last < *node);
        let mut members = self.of.keys().copied();
        let from = members.clone().find(after).or_else(|| members.next())?;
        self.last = Some(from);
        let jobs = self.of.get_mut(&from)?;
        let job = jobs.pop_front()?;
        if jobs.is_empty() {
            self.of.remove(&from);
        }
        Some((job, from))
    }
}

impl Ends {
    /// Nothing was told yet.
    pub(super) fn new(code: Arc<Code>, inbox: Arc<Inbox>) -> Self {
        Self {
            code,
            inbox,
            machine: Mutex::default(),
            news: Notify::new(),
            driven: Mutex::default(),
            drivers_wanted: Notify::new(),
            start: Instant::now(),
        }
    }

    /// A member says that a job has ended.
    pub(crate) fn told(&self, job: JobId, from: NodeId) {
        if self.code.is_driven_by(job, from) {
            return self.end(job);
        }
        if !lock(&self.machine).told((job, from), self.now()) {
            tracing::warn!(%from, "a node has told of more ends of jobs than there is room for");
        }
        self.news.notify_one();
    }

    /// The node of the driver of a job is wanted, whose terms a member has said.
    pub(crate) fn driver_wanted(&self, job: JobId, from: NodeId) {
        if lock(&self.driven).add(job, from) {
            self.drivers_wanted.notify_one();
        } else {
            self.inbox.put(Input::Event(Event::DriverFound { job, driver: None, terms: None }));
        }
    }

    /// Finds the nodes of the drivers that are wanted.
    pub(super) async fn find_drivers(&self, control: &ControlClient) {
        loop {
            let next = lock(&self.driven).next();
            let Some((job, from)) = next else {
                self.drivers_wanted.notified().await;
                continue;
            };
            let pause = match find_driver(&self.driven, (job, from), control).await {
                Some(found) => {
                    self.inbox.put(Input::Event(found));
                    DRIVERS_PAUSE
                }
                None => UNANSWERED_PAUSE,
            };
            sleep(pause).await;
        }
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

/// Finds the node of one driver; without an answer it is looked for again.
async fn find_driver(
    driven: &Mutex<Driven>,
    (job, from): (JobId, NodeId),
    control: &ControlClient,
) -> Option<Event> {
    let page = timeout(ANSWER_WAIT, control.list_jobs(JobId(job.0.saturating_sub(1)), 1)).await;
    let Some(page) = page.ok().and_then(Result::ok) else {
        lock(driven).add_again(job, from);
        return None;
    };
    let found = page.jobs.into_iter().find(|info| info.id == job);
    let (driver, terms) = found.map(|info| (info.driver_node, info.terms)).unzip();
    Some(Event::DriverFound { job, driver, terms: terms.flatten() })
}

fn listing(page: &JobPage) -> Listing {
    let jobs = page.jobs.iter().map(|info| Listed {
        job: info.id,
        driver: info.driver_node,
        has_ended: info.end.is_some(),
    });
    Listing { jobs: jobs.collect(), more: page.more }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::isolation::tests::control_at;

    #[test]
    fn a_member_that_names_many_jobs_keeps_no_other_from_its_turn() {
        let (hostile, other, mut driven) = (NodeId(1), NodeId(2), Driven::default());
        let added = (0..1_024).filter(|job| driven.add(JobId(*job), hostile)).count();
        assert_eq!(added, DRIVERS_MAX);
        assert!(driven.add(JobId(5_000), other) && driven.add(JobId(4_000), other));
        let next: Vec<_> = (0..5).filter_map(|_| driven.next()).map(|(job, _)| job.0).collect();
        assert_eq!(next, [0, 5_000, 1, 4_000, 2], "in turns, and in their order");
        assert_eq!(std::iter::from_fn(|| driven.next()).count(), DRIVERS_MAX - 3);
        assert!(driven.of.is_empty());
    }

    /// Nobody listens at the address of the control store.
    #[tokio::test]
    async fn a_driver_is_looked_for_again_if_the_control_store_does_not_answer() {
        let (asked, driven) = ((JobId(7), NodeId(1)), Mutex::new(Driven::default()));
        let control = control_at(vec!["127.0.0.1:1".to_owned()]);
        assert!(find_driver(&driven, asked, &control).await.is_none());
        assert_eq!(lock(&driven).next(), Some(asked));
    }

    #[test]
    fn a_question_without_an_answer_has_its_turn_again() {
        let (one, other, mut driven) = (NodeId(1), NodeId(2), Driven::default());
        assert!(driven.add(JobId(1), one) && driven.add(JobId(2), one) && driven.add(JobId(3), other));
        for _ in 0..2 {
            let (job, from) = driven.next().unwrap();
            driven.add_again(job, from);
        }
        let next: Vec<_> = std::iter::from_fn(|| driven.next()).collect();
        assert_eq!(next, [(JobId(2), one), (JobId(3), other), (JobId(1), one)]);
    }
}
