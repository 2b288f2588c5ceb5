//! Ends of jobs that other members tell.
//!
//! The end of a job goes the ways of its requests, so it comes from nodes that have no say in it, and any
//! member can send the message. Only the node of the driver ends a job. It is believed at once if it is
//! known here, as it is where a worker of the job was started. Otherwise the control store is asked, which
//! knows the node of each driver, and whether the job has ended. Others than that node are right when the
//! control store says the same. Until then it is asked again, since the news of an end may overtake the end
//! itself on its way there.
//!
//! One question is about many jobs: numbers are given out in order, and a page of jobs says which of them
//! run. Each member has room for [`TOLD_MAX`] ends that are not confirmed, so that one takes none from the
//! others. Of all that it tells beyond that, it is remembered that there was something: then all jobs that
//! have a program here are asked about.

use super::code::Code;
use crate::inbox::{Inbox, Input};
use crate::registry::lock;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tharsis_core::Event;
use tharsis_gcs::ControlClient;
use tharsis_protos::control::JobPage;
use tharsis_types::{JobId, NodeId};
use tokio::sync::Notify;
use tokio::time::{Instant, timeout, timeout_at};

/// Before the control store is asked again, at first; it doubles each time.
const PAUSE_MIN: Duration = Duration::from_millis(20);
/// The longest time before it is asked again.
const PAUSE_MAX: Duration = Duration::from_secs(5);
/// The longest time for one answer: others have told something else meanwhile.
const ANSWER_WAIT: Duration = Duration::from_secs(3);
/// Ends that one member has told and that are not confirmed.
const TOLD_MAX: usize = 1024;

/// An end that a member has told.
type Told = (JobId, NodeId);

/// The knowledge of an end that a member has told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    /// The job has ended.
    Ended,
    /// There never was such a job.
    Unknown,
    /// The job runs, and the member is not the node of its driver.
    Open,
}

/// Ends of jobs that members have told.
pub(super) struct Ends {
    code: Arc<Code>,
    inbox: Arc<Inbox>,
    table: Mutex<Table>,
    news: Notify,
}

/// Ends that are not confirmed.
#[derive(Debug, Default)]
struct Table {
    /// When to ask for each, and the pause after that.
    open: BTreeMap<Told, (Instant, Duration)>,
    /// Number of those of each member.
    of: BTreeMap<NodeId, usize>,
    /// Members that have told more than there is room for.
    beyond: BTreeSet<NodeId>,
}

impl Ends {
    /// Nothing was told yet.
    pub(super) fn new(code: Arc<Code>, inbox: Arc<Inbox>) -> Self {
        Self { code, inbox, table: Mutex::default(), news: Notify::new() }
    }

    /// A member says that a job has ended.
    pub(super) fn told(&self, job: JobId, from: NodeId) {
        if self.code.is_driven_by(job, from) {
            return self.end(job);
        }
        lock(&self.table).told((job, from), Instant::now());
        self.news.notify_one();
    }

    /// Ends jobs here that have ended, of those that members have told.
    pub(super) async fn confirm(&self, control: &ControlClient) {
        loop {
            let next = lock(&self.table).next(Instant::now());
            match next {
                Some(at) => {
                    let _in_time = timeout_at(at, self.news.notified()).await;
                }
                None => self.news.notified().await,
            }
            let due = self.due();
            let Some((first, _)) = due.first() else { continue };
            let before = JobId(first.0.saturating_sub(1));
            let page = match timeout(ANSWER_WAIT, control.list_jobs(before, 0)).await {
                Ok(Ok(page)) => Some(page),
                Ok(Err(error)) => {
                    tracing::info!(%error, "it is not known whether jobs have ended");
                    None
                }
                Err(_) => None,
            };
            let ended = lock(&self.table).settle(&due, page.as_ref(), Instant::now());
            ended.into_iter().for_each(|job| self.end(job));
        }
    }

    /// The ends to ask for now, in order of the jobs.
    fn due(&self) -> Vec<Told> {
        let mut table = lock(&self.table);
        let now = Instant::now();
        if !table.beyond.is_empty() {
            table.take_beyond(&self.code.jobs_of_others(), now);
        }
        table.due(now)
    }

    fn end(&self, job: JobId) {
        self.inbox.put(Input::Event(Event::JobEnded { job }));
    }
}

impl Table {
    fn told(&mut self, told: Told, now: Instant) {
        if self.open.contains_key(&told) {
            return;
        }
        if self.is_full(told.1) {
            self.beyond.insert(told.1);
            return;
        }
        *self.of.entry(told.1).or_default() += 1;
        self.open.insert(told, (now, PAUSE_MIN));
    }

    fn is_full(&self, from: NodeId) -> bool {
        self.of.get(&from).is_some_and(|count| TOLD_MAX <= *count)
    }

    /// Members that have told more than there was room for, and have room now, may have told the end of any
    /// of these jobs.
    fn take_beyond(&mut self, jobs: &[JobId], now: Instant) {
        for from in std::mem::take(&mut self.beyond) {
            if self.is_full(from) {
                self.beyond.insert(from);
            } else {
                jobs.iter().for_each(|job| self.told((*job, from), now));
            }
        }
    }

    fn remove(&mut self, told: Told) {
        if self.open.remove(&told).is_none() {
            return;
        }
        match self.of.get_mut(&told.1) {
            Some(count) if 1 < *count => *count -= 1,
            _ => drop(self.of.remove(&told.1)),
        }
    }

    /// When to ask for the next one.
    fn next(&self, now: Instant) -> Option<Instant> {
        if self.beyond.iter().any(|from| !self.is_full(*from)) {
            return Some(now);
        }
        self.open.values().map(|(at, _)| *at).min()
    }

    fn due(&self, now: Instant) -> Vec<Told> {
        self.open.iter().filter(|(_, (at, _))| *at <= now).map(|(told, _)| *told).collect()
    }

    /// Notes what a page of jobs says of the ends that it was asked for, from the first of these on; none if
    /// there was no answer. Those behind the page are asked for at once. Returns the jobs that have ended.
    fn settle(&mut self, due: &[Told], page: Option<&JobPage>, now: Instant) -> BTreeSet<JobId> {
        let mut ended = BTreeSet::new();
        for (job, from) in due.iter().copied() {
            match page.map_or(Some(Verdict::Open), |page| verdict(job, from, page)) {
                None => break,
                Some(Verdict::Ended) => {
                    self.remove((job, from));
                    ended.insert(job);
                }
                Some(Verdict::Unknown) => {
                    tracing::debug!(%job, %from, "a node ends a job that never was");
                    self.remove((job, from));
                }
                Some(Verdict::Open) => {
                    if let Some((at, pause)) = self.open.get_mut(&(job, from)) {
                        *at = now + *pause;
                        *pause = (*pause * 2).min(PAUSE_MAX);
                    }
                }
            }
        }
        ended
    }
}

/// The verdict by a page of jobs that begins at this one or before; none if it ends before. Records of jobs
/// that ended long ago are removed, and numbers are given out in order: a gap is a job that has ended.
fn verdict(job: JobId, from: NodeId, page: &JobPage) -> Option<Verdict> {
    let at = page.jobs.partition_point(|info| info.id < job);
    match page.jobs.get(at) {
        Some(info) if info.id == job && info.end.is_none() && info.driver_node != from => Some(Verdict::Open),
        Some(_) => Some(Verdict::Ended),
        None if page.more => None,
        None => Some(Verdict::Unknown),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tharsis_protos::control::{JobEnd, JobInfo};

    const HOME: NodeId = NodeId(1);
    const OTHER: NodeId = NodeId(2);

    /// A page of a control store with these jobs, of which some have ended.
    fn page(jobs: &[u32], ended: &[u32], more: bool) -> JobPage {
        let end = |number| {
            let end = JobEnd { succeeded: true, message: String::new(), ended_unix_ms: 2 };
            ended.contains(&number).then_some(end)
        };
        let info = |number: &u32| JobInfo {
            id: JobId(*number),
            name: String::new(),
            namespace: String::new(),
            code_unit: None,
            driver_node: HOME,
            entrypoint: String::new(),
            started_unix_ms: 1,
            end: end(*number),
        };
        JobPage { jobs: jobs.iter().map(info).collect(), more }
    }

    #[test]
    fn only_the_node_of_its_driver_and_the_control_store_end_a_job() {
        let all = page(&[5, 7, 9], &[9], false);
        let cases = [
            (7, HOME, Some(Verdict::Ended)),
            (7, OTHER, Some(Verdict::Open)),
            (9, OTHER, Some(Verdict::Ended)),
            // It ended long ago.
            (8, OTHER, Some(Verdict::Ended)),
            (10, OTHER, Some(Verdict::Unknown)),
            (10, HOME, Some(Verdict::Unknown)),
        ];
        for (job, from, expected) in cases {
            assert_eq!(verdict(JobId(job), from, &all), expected, "{job} {from}");
        }
        assert_eq!(verdict(JobId(10), OTHER, &page(&[5, 7, 9], &[], true)), None, "on a later page");
    }

    #[test]
    fn one_answer_is_about_many_jobs_and_the_rest_is_asked_again() {
        let (mut table, now) = (Table::default(), Instant::now());
        for job in [3, 4, 5, 8] {
            table.told((JobId(job), OTHER), now);
        }
        let due = table.due(now);
        let ended = table.settle(&due, Some(&page(&[3, 4, 5], &[4], true)), now);
        assert_eq!(ended, BTreeSet::from([JobId(4)]));
        // The one behind the page at once, those that run after a pause.
        assert_eq!(table.due(now), [(JobId(8), OTHER)]);
        let due = table.due(now);
        assert!(table.settle(&due, None, now).is_empty(), "no answer ends nothing");
        assert!(table.due(now).is_empty() && table.next(now) == Some(now + PAUSE_MIN));
        let later = now + PAUSE_MIN;
        let due = table.due(later);
        assert_eq!(table.settle(&due, Some(&page(&[9], &[], false)), later).len(), 3);
        assert!(table.open.is_empty() && table.of.is_empty());
    }

    #[test]
    fn one_member_takes_no_room_of_another_and_what_it_tells_beyond_its_own_is_not_lost() {
        let (mut table, now) = (Table::default(), Instant::now());
        for job in 0..2 * TOLD_MAX as u32 {
            table.told((JobId(100 + job), OTHER), now);
        }
        assert_eq!(table.open.len(), TOLD_MAX);
        table.told((JobId(7), HOME), now);
        table.told((JobId(8), OTHER), now);
        assert_eq!(table.due(now).first(), Some(&(JobId(7), HOME)), "the other one has room");
        // There are only two jobs, and both have ended.
        let all = page(&[7, 8], &[7, 8], false);
        let due = table.due(now);
        assert_eq!(table.settle(&due, Some(&all), now), BTreeSet::from([JobId(7)]));
        assert_eq!(table.next(now), Some(now), "it has room again");
        table.take_beyond(&[JobId(8)], now);
        let due = table.due(now);
        assert_eq!(table.settle(&due, Some(&all), now), BTreeSet::from([JobId(8)]));
        assert!(table.open.is_empty() && table.of.is_empty() && table.beyond.is_empty());
    }
}
