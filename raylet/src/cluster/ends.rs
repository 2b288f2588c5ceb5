//! Ends of jobs that other members tell.
//!
//! The end of a job goes the ways of its requests, so it comes from nodes that have no say in it, and any
//! member can send the message. The control store knows the node of the driver of each job, and whether the
//! job has ended, which only that node may tell it. So it is asked: that node is believed at once. What
//! others say is true when the control store says the same; until then it is asked again, since the news of
//! an end may overtake the end itself on its way there.

use super::noted::Noted;
use crate::inbox::{Inbox, Input};
use std::collections::BTreeMap;
use std::time::Duration;
use tharsis_core::Event;
use tharsis_gcs::ControlClient;
use tharsis_protos::control::JobPage;
use tharsis_types::{JobId, NodeId};
use tokio::time::{Instant, timeout_at};

/// Before the control store is asked again, at first; it doubles each time.
const PAUSE_MIN: Duration = Duration::from_millis(20);
/// The longest time before it is asked again.
const PAUSE_MAX: Duration = Duration::from_secs(5);

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

/// Jobs that have ended, each as a member says.
#[derive(Debug, Default)]
pub(super) struct Ends(Noted<(JobId, NodeId)>);

impl Ends {
    /// A member says that a job has ended.
    pub(super) fn told(&self, job: JobId, from: NodeId) {
        self.0.add((job, from));
    }
}

/// Ends jobs here that have ended, of those that members name.
pub(super) async fn confirm(ends: &Ends, control: &ControlClient, inbox: &Inbox) {
    // When to ask for each, and the pause after that. It holds jobs that run, each with those who named it.
    let mut open: BTreeMap<(JobId, NodeId), (Instant, Duration)> = BTreeMap::new();
    loop {
        let told = match open.values().map(|(at, _)| *at).min() {
            Some(at) => timeout_at(at, ends.0.take()).await.unwrap_or_default(),
            None => ends.0.take().await,
        };
        for claim in told {
            open.entry(claim).or_insert((Instant::now(), PAUSE_MIN));
        }
        let is_due = |(_, (at, _)): &(&(JobId, NodeId), &(Instant, Duration))| *at <= Instant::now();
        let due: Vec<_> = open.iter().filter(is_due).map(|(claim, _)| *claim).collect();
        for (job, from) in due {
            // The answer to the same question of another member may have ended it.
            let Some((_, pause)) = open.remove(&(job, from)) else { continue };
            let before = JobId(job.0.saturating_sub(1));
            let verdict = match control.list_jobs(before, 1).await {
                Ok(page) => verdict(job, from, &page),
                Err(error) => {
                    tracing::info!(%job, %error, "it is not known whether a job has ended");
                    Verdict::Open
                }
            };
            match verdict {
                Verdict::Ended => {
                    open.retain(|(other, _), _| *other != job);
                    inbox.put(Input::Event(Event::JobEnded { job }));
                }
                Verdict::Unknown => tracing::warn!(%job, %from, "a node ends a job that never was"),
                Verdict::Open => {
                    let next = (Instant::now() + pause, (pause * 2).min(PAUSE_MAX));
                    open.insert((job, from), next);
                }
            }
        }
    }
}

/// The verdict by the first of the jobs from this one on, by number. Records of jobs that ended long ago are
/// removed, and numbers are given out in order: a gap is a job that has ended.
fn verdict(job: JobId, from: NodeId, page: &JobPage) -> Verdict {
    match page.jobs.first() {
        Some(info) if info.id == job && info.end.is_none() && info.driver_node != from => Verdict::Open,
        Some(_) => Verdict::Ended,
        None => Verdict::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tharsis_protos::control::{JobEnd, JobInfo};

    const HOME: NodeId = NodeId(1);
    const OTHER: NodeId = NodeId(2);

    /// The page of a control store whose first job from there on has this number.
    fn page(first: Option<u32>, has_ended: bool) -> JobPage {
        let end = JobEnd { succeeded: true, message: String::new(), ended_unix_ms: 2 };
        let info = |number| JobInfo {
            id: JobId(number),
            name: String::new(),
            namespace: String::new(),
            code_unit: None,
            driver_node: HOME,
            entrypoint: String::new(),
            started_unix_ms: 1,
            end: has_ended.then_some(end),
        };
        JobPage { jobs: first.map(info).into_iter().collect(), more: false }
    }

    #[test]
    fn only_the_node_of_its_driver_and_the_control_store_end_a_job() {
        let cases = [
            (Some(7), false, HOME, Verdict::Ended),
            (Some(7), false, OTHER, Verdict::Open),
            (Some(7), true, OTHER, Verdict::Ended),
            // It ended long ago.
            (Some(9), false, OTHER, Verdict::Ended),
            (None, false, OTHER, Verdict::Unknown),
            (None, false, HOME, Verdict::Unknown),
        ];
        for (first, has_ended, from, expected) in cases {
            let found = verdict(JobId(7), from, &page(first, has_ended));
            assert_eq!(found, expected, "{first:?} {has_ended} {from}");
        }
    }
}
