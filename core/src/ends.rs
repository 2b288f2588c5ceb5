//! Ends of jobs that other members tell.
//!
//! The end of a job goes the ways of its requests, so it comes from nodes that have no say in it, and any
//! member can send the message. Only the node of the driver ends a job. Where that node is not known, the
//! control store is asked, which knows the node of each driver, and whether the job has ended. Others than
//! that node are right when the control store says the same. Until then it is asked again, since the news of
//! an end may overtake the end itself on its way there.
//!
//! One question is about ends whose jobs have numbers near each other, and asks for as many records as there
//! are numbers: for one, as a rule. After one without an answer the next asks for half as many, so that a
//! record that cannot be read is found among others. It is asked for alone from then on, by every second
//! question at most. So is one that is not there among others: that job ended long ago, or the control store
//! has left a record out that it cannot read. Questions follow each other after a pause, which grows while
//! there is no answer. They begin with the end that a member told longest ago, of the members in turns: one
//! may tell ever new ends that keep the store busy. Each member has room for [`TOLD_MAX`] ends that are not
//! confirmed, so that one takes none from the others. Of all that it tells beyond that, it is remembered that
//! there was something: then all jobs are asked about of which this node has anything.
//!
//! | state of an end | enters by | leaves by |
//! |---|---|---|
//! | open, to be asked for at a time | [`Ends::told`] | [`Ends::answered`]: it is confirmed, or the job never was |
//! | one of some beyond the room of a member | [`Ends::told`] | [`Ends::take_beyond`], when it has room again |

use crate::{MS, Now};
use std::collections::{BTreeMap, BTreeSet};
use tharsis_types::{JobId, NodeId};

/// Before the control store is asked again, at first; it doubles each time. No two questions are closer.
const PAUSE_MIN: Now = 20 * MS;
/// The longest time before it is asked again about one.
const PAUSE_MAX: Now = 5_000 * MS;
/// Ends that one member has told and that are not confirmed.
pub const TOLD_MAX: usize = 1024;
/// Records that one question asks for, at most.
const RECORDS_MAX: u32 = 1000;
/// Numbers without an end between two ends of one question, at most.
const GAP_MAX: u32 = 16;
/// A job that the control store does not know may be told before it is written there: it is asked so often.
const UNKNOWN_MAX: u32 = 8;

/// An end that a member has told.
pub type Told = (JobId, NodeId);

/// A question to the control store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    /// The ends that it is about, in the order of their jobs; there is at least one.
    ends: Vec<Told>,
    /// Number of records to list, from the first job on.
    pub records: u32,
}

impl Question {
    /// The first job to list.
    #[must_use]
    pub fn first(&self) -> JobId {
        self.ends.first().map_or(JobId(0), |(job, _)| *job)
    }
}

/// A job as the control store lists it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Listed {
    /// The job.
    pub job: JobId,
    /// The node of its driver.
    pub driver: NodeId,
    /// Whether it has ended.
    pub has_ended: bool,
}

/// Jobs in the order of their numbers, of which those that ended long ago are missing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Listing {
    /// The jobs.
    pub jobs: Vec<Listed>,
    /// Whether there are more behind them.
    pub more: bool,
}

/// The knowledge of an end that a member has told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    /// The job has ended.
    Ended,
    /// There are others behind it, and it is not there.
    Gap,
    /// The job runs, and the member is not the node of its driver.
    Runs,
    /// There is no such job, and never was one.
    Unknown,
    /// The listing ends before.
    Untold,
}

/// An end that is not confirmed.
#[derive(Clone, Copy, Debug)]
struct Open {
    /// When to ask for it.
    at: Now,
    /// The pause after that.
    pause: Now,
    /// Number of times that the control store has not known the job.
    unknown: u32,
    /// Whether it is asked for alone, after all others: its record could not be read, or was not there among
    /// others.
    is_alone: bool,
}

/// Ends that are not confirmed.
#[derive(Debug)]
pub struct Ends {
    open: BTreeMap<Told, Open>,
    /// Number of those of each member.
    of: BTreeMap<NodeId, usize>,
    /// Members that have told more than there is room for.
    beyond: BTreeSet<NodeId>,
    /// When the next question may be asked.
    ask_at: Now,
    /// Records that the next question asks for, at most: half as many after an error, which may be of one
    /// record or of their number, and twice as many after an answer.
    records_max: u32,
    /// The pause after the next error.
    error_pause: Now,
    /// Whether the next question is about one that is asked for alone, if one is due: every second one, as
    /// others may always be due.
    is_turn_of_lone: bool,
    /// The member whose turn was last, of the ends that are asked for together.
    last: Option<NodeId>,
    /// And of those that are asked for alone.
    last_alone: Option<NodeId>,
}

impl Default for Ends {
    fn default() -> Self {
        Self {
            open: BTreeMap::new(),
            of: BTreeMap::new(),
            beyond: BTreeSet::new(),
            ask_at: 0,
            records_max: RECORDS_MAX,
            error_pause: PAUSE_MIN,
            is_turn_of_lone: false,
            last: None,
            last_alone: None,
        }
    }
}

impl Ends {
    /// A member says that a job has ended, and it is not known here to be the node of its driver. False if
    /// there is no room for it, for the first time in a while.
    pub fn told(&mut self, told: Told, now: Now) -> bool {
        if self.open.contains_key(&told) || told.0 == JobId(0) {
            return true;
        }
        if self.is_full(told.1) {
            return !self.beyond.insert(told.1);
        }
        *self.of.entry(told.1).or_default() += 1;
        self.open.insert(told, Open { at: now, pause: PAUSE_MIN, unknown: 0, is_alone: false });
        true
    }

    /// When [`Ends::question`] or [`Ends::has_beyond`] has something.
    #[must_use]
    pub fn next_timeout(&self) -> Option<Now> {
        if self.has_beyond() {
            return Some(self.ask_at);
        }
        self.open.values().map(|open| open.at).min().map(|at| at.max(self.ask_at))
    }

    /// Whether a member that has told more than there was room for has room now.
    #[must_use]
    pub fn has_beyond(&self) -> bool {
        self.beyond.iter().any(|from| !self.is_full(*from))
    }

    /// Members that have told more than there was room for, and have room now, may have told the end of any
    /// of these jobs: those of which this node has anything.
    pub fn take_beyond(&mut self, jobs: &[JobId], now: Now) {
        for from in std::mem::take(&mut self.beyond) {
            if self.is_full(from) {
                self.beyond.insert(from);
                continue;
            }
            for job in jobs {
                self.told((*job, from), now);
            }
        }
    }

    /// The question to ask now, if it is time for one.
    pub fn question(&mut self, now: Now) -> Option<Question> {
        if now < self.ask_at {
            return None;
        }
        let turn = self.is_turn_of_lone;
        self.is_turn_of_lone = !turn;
        let lone = if turn { self.due_alone(now) } else { Vec::new() };
        let (mut ends, records) = if lone.is_empty() { self.due_together(now) } else { (lone, 1) };
        if ends.is_empty() {
            ends = self.due_alone(now);
        }
        if ends.is_empty() {
            return None;
        }
        self.ask_at = now.saturating_add(PAUSE_MIN);
        Some(Question { ends, records })
    }

    /// Ends whose jobs are near that of the next one, and the number of records from the first to the last.
    fn due_together(&mut self, now: Now) -> (Vec<Told>, u32) {
        let Some(next) = self.next_due(false, self.last, now) else { return (Vec::new(), 1) };
        self.last = Some(next.1);
        let (mut ends, mut first, mut last) = (Vec::new(), next.0.0, next.0.0);
        // The records of a question are those of all numbers from its first to its last.
        for (told, open) in self.open.range(next..) {
            let job = told.0.0;
            if open.is_alone || self.records_max <= job - first || GAP_MAX < job - last {
                break;
            }
            if open.at <= now {
                ends.push(*told);
                last = job;
            }
        }
        for (told, open) in self.open.range(..next).rev() {
            let job = told.0.0;
            if open.is_alone || self.records_max <= last - job || GAP_MAX < first - job {
                break;
            }
            if open.at <= now {
                ends.push(*told);
                first = job;
            }
        }
        ends.sort_unstable();
        (ends, last - first + 1)
    }

    /// The ends of the next job that is asked for alone.
    fn due_alone(&mut self, now: Now) -> Vec<Told> {
        let Some((job, from)) = self.next_due(true, self.last_alone, now) else { return Vec::new() };
        self.last_alone = Some(from);
        let of_job = self.open.range((job, NodeId(0))..=(job, NodeId(u64::MAX)));
        of_job.filter(|(_, open)| open.is_alone && open.at <= now).map(|(told, _)| *told).collect()
    }

    /// The end that has waited longest, of those that the next member after `last` has told.
    fn next_due(&self, is_alone: bool, last: Option<NodeId>, now: Now) -> Option<Told> {
        let due = || self.open.iter().filter(move |(_, open)| open.is_alone == is_alone && open.at <= now);
        let members = || due().map(|((_, from), _)| *from);
        let is_after = |from: &NodeId| last.is_none_or(|last| last < *from);
        let next = members().filter(is_after).min().or_else(|| members().min())?;
        let of_next = due().filter(|((_, from), _)| *from == next);
        of_next.min_by_key(|(_, open)| open.at).map(|(told, _)| *told)
    }

    /// Notes what a listing of jobs says of the ends that it was asked for; none if there was no answer.
    /// Returns the jobs that have ended.
    pub fn answered(&mut self, question: &Question, listing: Option<&Listing>, now: Now) -> BTreeSet<JobId> {
        let mut ended = BTreeSet::new();
        let Some(listing) = listing else {
            self.failed(question, now);
            return ended;
        };
        (self.records_max, self.error_pause) = ((2 * self.records_max).min(RECORDS_MAX), PAUSE_MIN);
        self.ask_at = now.saturating_add(PAUSE_MIN);
        for told in &question.ends {
            self.open.entry(*told).and_modify(|open| open.is_alone = false);
            match listing.verdict(*told) {
                // A record that cannot be read is left out of a listing, which has another one in its place
                // only if that one was asked for as well.
                Verdict::Gap if question.records != 1 => {
                    self.open.entry(*told).and_modify(|open| open.is_alone = true);
                }
                Verdict::Ended | Verdict::Gap => {
                    self.remove(*told);
                    ended.insert(told.0);
                }
                Verdict::Runs => self.ask_later(*told, false, now),
                Verdict::Unknown => self.ask_later(*told, true, now),
                // Those that the next question begins with, unless nobody was told of at all.
                Verdict::Untold if !listing.jobs.is_empty() => break,
                Verdict::Untold => self.ask_later(*told, false, now),
            }
        }
        ended
    }

    /// A question had no answer: the control store is away, or cannot read one of the records, or so many.
    fn failed(&mut self, question: &Question, now: Now) {
        self.ask_at = now.saturating_add(self.error_pause);
        self.error_pause = (2 * self.error_pause).min(PAUSE_MAX);
        let is_alone = |told: &Told| self.open.get(told).is_some_and(|open| open.is_alone);
        if !question.ends.iter().any(is_alone) {
            self.records_max = (question.records / 2).max(1);
        }
        if question.records == 1 {
            for told in &question.ends {
                self.open.entry(*told).and_modify(|open| open.is_alone = true);
                self.ask_later(*told, false, now);
            }
        }
    }

    fn is_full(&self, from: NodeId) -> bool {
        self.of.get(&from).is_some_and(|count| TOLD_MAX <= *count)
    }

    fn ask_later(&mut self, told: Told, is_unknown: bool, now: Now) {
        let Some(open) = self.open.get_mut(&told) else { return };
        open.at = now.saturating_add(open.pause);
        open.pause = (open.pause * 2).min(PAUSE_MAX);
        open.unknown += u32::from(is_unknown);
        if UNKNOWN_MAX <= open.unknown {
            self.remove(told);
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
}

impl Listing {
    /// The verdict by a listing that begins at this job or before. Numbers are given out in order.
    fn verdict(&self, (job, from): Told) -> Verdict {
        let at = self.jobs.partition_point(|listed| listed.job < job);
        match self.jobs.get(at) {
            Some(listed) if listed.job == job && !listed.has_ended && listed.driver != from => Verdict::Runs,
            Some(listed) if listed.job == job => Verdict::Ended,
            Some(_) => Verdict::Gap,
            None if self.more => Verdict::Untold,
            None => Verdict::Unknown,
        }
    }
}

#[cfg(test)]
mod tests;
