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
//! record that cannot be read is found among others; it is asked for alone from then on, when nothing else is
//! due. So is one that is not there among others: that job ended long ago, or the control store has left a
//! record out that it cannot read. Questions follow each other after a pause, which grows while there is no
//! answer. Each member has room for [`TOLD_MAX`] ends that are not confirmed, so that one takes none from the
//! others. Of all that it tells beyond that, it is remembered that there was something: then all jobs are
//! asked about of which this node has anything.
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
        let mut ends: Vec<Told> = Vec::new();
        let mut records = 1;
        for (told, open) in &self.open {
            if open.is_alone && !ends.is_empty() {
                // The records of a question are those of all numbers from its first to its last.
                break;
            }
            if open.is_alone || now < open.at {
                continue;
            }
            let (Some((first, _)), Some((last, _))) = (ends.first(), ends.last()) else {
                ends.push(*told);
                continue;
            };
            let (after, gap) = (told.0.0 - first.0, told.0.0 - last.0);
            if self.records_max <= after || GAP_MAX < gap {
                break;
            }
            records = after + 1;
            ends.push(*told);
        }
        if ends.is_empty() {
            let due = || self.open.iter().filter(|(_, open)| open.at <= now);
            let next = due().min_by_key(|(_, open)| open.at).map(|((job, _), _)| *job);
            ends.extend(due().map(|(told, _)| *told).filter(|(job, _)| Some(*job) == next));
        }
        if ends.is_empty() {
            return None;
        }
        self.ask_at = now.saturating_add(PAUSE_MIN);
        Some(Question { ends, records })
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
        self.records_max = (question.records / 2).max(1);
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
mod tests {
    use super::*;

    const HOME: NodeId = NodeId(1);
    const OTHER: NodeId = NodeId(2);

    /// A control store of jobs with drivers at `HOME`, some of which have ended, and what it was asked.
    struct Store {
        jobs: Vec<u32>,
        ended: Vec<u32>,
        asked: Vec<(u32, u32)>,
    }

    impl Store {
        fn new(jobs: &[u32], ended: &[u32]) -> Self {
            Self { jobs: jobs.to_vec(), ended: ended.to_vec(), asked: Vec::new() }
        }

        fn list(&mut self, first: JobId, records: u32) -> Listing {
            self.asked.push((first.0, records));
            let listed = |number: &u32| Listed {
                job: JobId(*number),
                driver: HOME,
                has_ended: self.ended.contains(number),
            };
            let from = self.jobs.iter().filter(|number| first.0 <= **number);
            let jobs: Vec<_> = from.clone().take(records as usize).map(listed).collect();
            Listing { more: jobs.len() < from.count(), jobs }
        }
    }

    /// Asks until nothing is due before `until`; returns the jobs that end, in order.
    fn run(ends: &mut Ends, store: &mut Store, now: &mut Now, until: Now) -> Vec<u32> {
        let mut all = Vec::new();
        while let Some(at) = ends.next_timeout().filter(|at| *at <= until) {
            *now = at.max(*now);
            let Some(question) = ends.question(*now) else { continue };
            let listing = store.list(question.first(), question.records);
            all.extend(ends.answered(&question, Some(&listing), *now).into_iter().map(|job| job.0));
        }
        all
    }

    #[test]
    fn only_the_node_of_its_driver_and_the_control_store_end_a_job() {
        let all = Store::new(&[5, 7, 9], &[9]).list(JobId(0), 10);
        let cases = [
            (7, HOME, Verdict::Ended),
            (7, OTHER, Verdict::Runs),
            (9, OTHER, Verdict::Ended),
            // It ended long ago.
            (8, OTHER, Verdict::Gap),
            (10, OTHER, Verdict::Unknown),
            (10, HOME, Verdict::Unknown),
        ];
        for (job, from, expected) in cases {
            assert_eq!(all.verdict((JobId(job), from)), expected, "{job} {from}");
        }
        let part = Store::new(&[5, 7, 9], &[]).list(JobId(0), 2);
        assert_eq!(part.verdict((JobId(9), OTHER)), Verdict::Untold, "it is on a later page");
    }

    #[test]
    fn an_end_asks_for_one_record_and_many_that_are_near_each_other_for_as_many() {
        let jobs: Vec<u32> = (1..5_000).collect();
        let mut store = Store::new(&jobs, &jobs);
        let (mut ends, mut now) = (Ends::default(), 0);
        ends.told((JobId(700), OTHER), now);
        assert_eq!(run(&mut ends, &mut store, &mut now, MS), [700]);
        assert_eq!(store.asked, [(700, 1)]);
        store.asked.clear();
        for job in [3, 4, 5, 8, 2_000, 2_001] {
            ends.told((JobId(job), OTHER), now);
        }
        assert_eq!(run(&mut ends, &mut store, &mut now, 1_000 * MS), [3, 4, 5, 8, 2_000, 2_001]);
        assert_eq!(store.asked, [(3, 6), (2_000, 2)]);
        store.asked.clear();
        for job in 1..=1_024 {
            ends.told((JobId(job), OTHER), now);
        }
        assert_eq!(run(&mut ends, &mut store, &mut now, 10_000 * MS).len(), 1_024);
        assert_eq!(store.asked, [(1, 1_000), (1_001, 24)]);
    }

    #[test]
    fn the_control_store_is_asked_less_and_less_often_for_a_job_that_runs() {
        let mut store = Store::new(&[7], &[]);
        let (mut ends, mut now, mut times) = (Ends::default(), 0, Vec::new());
        ends.told((JobId(7), OTHER), now);
        for _ in 0..12 {
            now = ends.next_timeout().unwrap();
            times.push(now / MS);
            let until = now;
            assert!(run(&mut ends, &mut store, &mut now, until).is_empty());
            // Told again, it is not asked for sooner.
            ends.told((JobId(7), OTHER), now);
        }
        let pauses: Vec<_> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
        assert_eq!(pauses[..5], [20, 40, 80, 160, 320]);
        assert_eq!(pauses[8..], [5_000; 3]);
    }

    #[test]
    fn jobs_that_never_were_are_asked_for_a_few_times_however_often_they_are_told() {
        let mut store = Store::new(&[7], &[]);
        let (mut ends, mut now) = (Ends::default(), 0);
        for step in 0..1_000 {
            now = now.max(step * MS);
            ends.told((JobId(9), OTHER), now);
            assert!(run(&mut ends, &mut store, &mut now, step * MS).is_empty());
        }
        assert!(store.asked.len() <= UNKNOWN_MAX as usize, "{:?}", store.asked);
        assert!(run(&mut ends, &mut store, &mut now, 60_000 * MS).is_empty());
        assert!(ends.open.is_empty() && ends.of.is_empty());
        // One that is told before it is written ends all the same.
        ends.told((JobId(9), HOME), now);
        let soon = now + 30 * MS;
        assert!(run(&mut ends, &mut store, &mut now, soon).is_empty());
        store.jobs.push(9);
        assert_eq!(run(&mut ends, &mut store, &mut now, soon + 1_000 * MS), [9]);
    }

    #[test]
    fn one_record_that_cannot_be_read_keeps_no_others() {
        let (mut ends, mut now) = (Ends::default(), 0);
        for job in [3, 4, 5] {
            ends.told((JobId(job), OTHER), now);
        }
        let mut store = Store::new(&[3, 4, 5], &[3, 5]);
        let (mut ended, mut calls) = (BTreeSet::new(), 0);
        while let Some(at) = ends.next_timeout().filter(|at| *at < 2_000 * MS) {
            now = at.max(now);
            let Some(question) = ends.question(now) else { continue };
            calls += 1;
            let is_bad = (question.first().0..question.first().0 + question.records).contains(&4);
            let listing = (!is_bad).then(|| store.list(question.first(), question.records));
            ended.extend(ends.answered(&question, listing.as_ref(), now));
        }
        assert_eq!(ended, BTreeSet::from([JobId(3), JobId(5)]));
        assert!(calls < 30, "{calls} calls");
        assert_eq!(ends.open.keys().copied().collect::<Vec<_>>(), [(JobId(4), OTHER)]);
    }

    #[test]
    fn the_least_and_the_greatest_number_are_told_like_others() {
        let (mut ends, mut now) = (Ends::default(), 0);
        for job in [0, 1, u32::MAX] {
            ends.told((JobId(job), OTHER), now);
        }
        let mut store = Store::new(&[1], &[1]);
        assert_eq!(run(&mut ends, &mut store, &mut now, 30 * MS), [1], "nobody has the number 0");
        assert_eq!(store.asked, [(1, 1), (u32::MAX, 1)]);
    }

    /// Asks a store for ten minutes that does not answer some questions; returns when all but `left` ends had
    /// an answer.
    fn settled(ends: &mut Ends, store: &mut Store, left: usize, fails: impl Fn(&Question) -> bool) -> Now {
        let mut now = 0;
        while left < ends.open.len() {
            now = ends.next_timeout().unwrap().max(now);
            assert!(now < 600_000 * MS, "{} are left", ends.open.len());
            let Some(question) = ends.question(now) else { continue };
            if fails(&question) {
                // It may take as long as others wait for it.
                now += 5_000 * MS * Now::from(64 < question.records);
                ends.answered(&question, None, now);
            } else {
                let listing = store.list(question.first(), question.records);
                ends.answered(&question, Some(&listing), now);
            }
        }
        now
    }

    #[test]
    fn one_bad_record_and_a_slow_store_hold_up_none_of_a_thousand() {
        let jobs: Vec<u32> = (1..=1_000).collect();
        for bad in [1, 2, 500, 999, 1_000] {
            let mut ends = Ends::default();
            jobs.iter().for_each(|job| assert!(ends.told((JobId(*job), OTHER), 0)));
            let is_bad = |asked: &Question| (asked.first().0..asked.first().0 + asked.records).contains(&bad);
            let at = settled(&mut ends, &mut Store::new(&jobs, &jobs), 1, is_bad);
            assert!(at < 60_000 * MS, "{bad}: {} s", at / (1_000 * MS));
            assert_eq!(ends.open.keys().copied().collect::<Vec<_>>(), [(JobId(bad), OTHER)]);
        }
        let mut ends = Ends::default();
        jobs.iter().for_each(|job| assert!(ends.told((JobId(*job), OTHER), 0)));
        let at = settled(&mut ends, &mut Store::new(&jobs, &jobs), 0, |asked| 200 < asked.records);
        assert!(at < 60_000 * MS, "{} s", at / (1_000 * MS));
    }

    /// As the control store does with one that it cannot read.
    #[test]
    fn a_record_that_is_left_out_is_no_job_that_has_ended() {
        let (mut ends, mut now) = (Ends::default(), 0);
        for job in [3, 4, 5, 7] {
            ends.told((JobId(job), OTHER), now);
            ends.told((JobId(job), NodeId(7)), now);
        }
        // The record of job 4 is there and cannot be read. That of 7 is gone.
        let mut store = Store::new(&[3, 4, 5, 9], &[3, 5]);
        let mut ended = BTreeSet::new();
        while let Some(at) = ends.next_timeout().filter(|at| *at < 2_000 * MS) {
            now = at.max(now);
            let Some(question) = ends.question(now) else { continue };
            let mut listing = store.list(question.first(), question.records);
            listing.jobs.retain(|listed| listed.job != JobId(4));
            ended.extend(ends.answered(&question, Some(&listing), now));
        }
        assert_eq!(ended, BTreeSet::from([3, 5, 7].map(JobId)));
        let left: Vec<_> = ends.open.keys().copied().collect();
        assert_eq!(left, [(JobId(4), OTHER), (JobId(4), NodeId(7))]);
        assert_eq!(store.asked.iter().filter(|asked| **asked == (7, 1)).count(), 1, "for both at once");
    }

    #[test]
    fn a_control_store_that_is_away_is_asked_every_five_seconds() {
        let (mut ends, mut now, mut calls) = (Ends::default(), 0, 0);
        (1..=1_000).for_each(|job| assert!(ends.told((JobId(job), OTHER), 0)));
        while let Some(at) = ends.next_timeout().filter(|at| *at < 3_600_000 * MS) {
            now = at.max(now);
            let Some(question) = ends.question(now) else { continue };
            calls += 1;
            assert!(ends.answered(&question, None, now).is_empty());
        }
        assert!((700..=740).contains(&calls), "{calls} calls in an hour");
    }

    #[test]
    fn a_listing_of_nobody_that_has_more_is_asked_for_after_a_pause() {
        let (mut ends, mut now, mut calls) = (Ends::default(), 0, 0);
        ends.told((JobId(3), OTHER), now);
        while let Some(at) = ends.next_timeout().filter(|at| *at < 1_000 * MS) {
            now = at.max(now);
            let Some(question) = ends.question(now) else { continue };
            calls += 1;
            let none = Listing { jobs: Vec::new(), more: true };
            assert!(ends.answered(&question, Some(&none), now).is_empty());
        }
        assert!(calls <= 6, "{calls} calls in a second");
    }

    #[test]
    fn one_member_takes_no_room_of_another_and_what_it_tells_beyond_its_own_is_not_lost() {
        let (mut ends, mut now) = (Ends::default(), 0);
        for job in 0..TOLD_MAX as u32 {
            assert!(ends.told((JobId(100 + job), OTHER), 0));
        }
        assert!(!ends.told((JobId(8), OTHER), 0), "it is said once");
        assert!(ends.told((JobId(9), OTHER), 0) && ends.open.len() == TOLD_MAX);
        ends.told((JobId(7), HOME), 0);
        assert!(!ends.has_beyond(), "it has no room");
        // There are only these jobs, and they have ended.
        let mut store = Store::new(&[7, 8, 2_000], &[7, 8]);
        let ended = run(&mut ends, &mut store, &mut now, 15 * MS);
        assert_eq!(ended, [7], "the other one has room");
        while !ends.has_beyond() {
            now = ends.next_timeout().unwrap();
            let question = ends.question(now).unwrap();
            let listing = store.list(question.first(), question.records);
            ends.answered(&question, Some(&listing), now);
        }
        ends.take_beyond(&[JobId(8)], now);
        let until = now + 60_000 * MS;
        let ended = run(&mut ends, &mut store, &mut now, until);
        assert!(ended.contains(&8) && ends.open.is_empty() && ends.of.is_empty() && ends.beyond.is_empty());
    }
}
