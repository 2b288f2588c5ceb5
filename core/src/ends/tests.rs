//! Ends of jobs that other members tell, against a control store in memory.

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

#[test]
fn a_record_that_cannot_be_read_makes_no_question_about_others_smaller() {
    let (mut ends, mut now) = (Ends::default(), 0);
    ends.told((JobId(7), OTHER), now);
    let question = ends.question(now).unwrap();
    ends.answered(&question, None, now);
    assert!(ends.open[&(JobId(7), OTHER)].is_alone);
    ends.records_max = RECORDS_MAX;
    for _ in 0..4 {
        now = ends.next_timeout().unwrap();
        let question = ends.question(now).unwrap();
        ends.answered(&question, None, now);
        assert_eq!(ends.records_max, RECORDS_MAX);
    }
}

/// The control store was away for a moment, and a member tells ends of jobs that never were, ever anew.
#[test]
fn a_question_that_failed_once_is_asked_again_however_much_else_is_due() {
    let (mut ends, mut now) = (Ends::default(), 0);
    ends.told((JobId(7), HOME), now);
    let question = ends.question(now).unwrap();
    assert!(ends.answered(&question, None, now).is_empty());
    // Job 7 has ended, and what is told of it comes from a node that is not known to be that of the
    // driver.
    let mut store = Store::new(&[7], &[7]);
    while ends.open.contains_key(&(JobId(7), HOME)) {
        for n in 0..TOLD_MAX as u32 {
            ends.told((JobId(100 + 17 * n), OTHER), now);
        }
        now = ends.next_timeout().unwrap().max(now);
        assert!(now < 1_000 * MS, "it is not asked for");
        let question = ends.question(now).unwrap();
        let listing = store.list(question.first(), question.records);
        ends.answered(&question, Some(&listing), now);
    }
}

/// A member tells ends of jobs that ended long ago, ever anew, and none is near another.
#[test]
fn an_end_is_asked_for_however_many_others_have_lower_numbers() {
    for (from, most) in [(HOME, 2), (OTHER, 501)] {
        let (mut ends, mut now, mut asked) = (Ends::default(), 0, 0);
        (1..=500).for_each(|n| assert!(ends.told((JobId(17 * n), OTHER), 0)));
        let told = (JobId(50_000), from);
        ends.told(told, 1);
        let mut store = Store::new(&[50_000], &[50_000]);
        while ends.open.contains_key(&told) {
            asked += 1;
            assert!(asked <= most, "that of {from} is not asked for");
            ends.told((JobId(17 * (500 + asked)), OTHER), now + 2);
            now = ends.next_timeout().unwrap().max(now);
            let question = ends.question(now).unwrap();
            let listing = store.list(question.first(), question.records);
            ends.answered(&question, Some(&listing), now);
        }
    }
}

#[test]
fn those_near_the_one_that_has_waited_longest_are_asked_for_with_it_on_either_side() {
    let (mut ends, mut now) = (Ends::default(), 0);
    for job in [1_040, 1_000, 1_016, 1_010, 990] {
        ends.told((JobId(job), OTHER), now);
        now += MS;
    }
    ends.told((JobId(1_000), HOME), now);
    ends.open.get_mut(&(JobId(1_040), OTHER)).unwrap().at = now;
    let mut store = Store::new(&[990, 1_000, 1_010, 1_016], &[990, 1_000, 1_010, 1_016]);
    let until = now + MS;
    assert_eq!(run(&mut ends, &mut store, &mut now, until), [990, 1_000, 1_010, 1_016]);
    assert_eq!(store.asked, [(990, 27)]);
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
