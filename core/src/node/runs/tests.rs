//! Runs in the lines of their workers, and what ends with them.

use super::*;
use crate::testing::class;
use tharsis_types::{JobId, LeaseId, NodeId, SmallBytes};

const WORKER: ClientId = ClientId(1);

fn insert(runs: &mut Runs, number: u64) -> Slot<Run> {
    let lease: LeaseKey = (NodeId(1), LeaseId(1));
    let task = TaskId::root(JobId(1)).child(number);
    let class = class(1);
    let lent = Lent {
        class: class.clone(),
        class_number: 0,
        payload: SmallBytes::default(),
        dependencies: Vec::new(),
        told: IdMap::default(),
        references: Vec::new(),
        name: None,
    };
    let origin = Origin::Lent(Box::new(lent));
    runs.insert(Run::new(WORKER, lease, (task, 0), &class, origin))
}

#[test]
fn a_run_that_is_sent_overtakes_those_that_wait_for_arguments() {
    let mut runs = Runs::default();
    let slots = [0, 1, 2].map(|number| insert(&mut runs, number));
    assert!(!runs.has_sent(WORKER) && runs.has_behind(WORKER));
    runs.sent(slots[2]);
    assert!(runs.mark_first(5, WORKER).is_some());
    runs.check();
    runs.sent(slots[1]);
    assert!(runs.mark_first(6, WORKER).is_none(), "it is first already");
    assert_eq!(runs.line(WORKER), [slots[2], slots[1], slots[0]]);
    runs.check();
    assert_eq!(runs[slots[2]].first_since(), Some(5));
}

#[test]
fn a_run_whose_worker_is_killed_keeps_when_it_began() {
    let mut runs = Runs::default();
    let slot = insert(&mut runs, 0);
    runs.sent(slot);
    assert_eq!(runs[slot].begun_since(), None);
    assert!(runs.mark_first(5, WORKER).is_some());
    for _ in 0..2 {
        runs.doom(slot);
        assert_eq!((runs[slot].first_since(), runs[slot].begun_since()), (None, Some(5)));
    }
    runs.check();
}

#[test]
fn runs_that_are_handed_back_stand_before_those_that_wait_for_arguments() {
    let mut runs = Runs::default();
    let slots = [0, 1, 2, 3, 4].map(|number| insert(&mut runs, number));
    slots[..4].iter().for_each(|slot| runs.sent(*slot));
    assert!(runs.mark_first(5, WORKER).is_some());
    let returned = [slots[3], slots[1], slots[4]].into_iter().collect();
    assert_eq!(runs.unsent(WORKER, 0, &returned), [slots[1], slots[3]], "the last one was not sent");
    assert_eq!(runs.line(WORKER), [slots[0], slots[2], slots[1], slots[3], slots[4]]);
    runs.check();
    // The first one too, although the node took it for begun.
    assert_eq!(runs.unsent(WORKER, 0, &slots.into_iter().collect()), [slots[0], slots[2]]);
    assert!(runs.mark_first(6, WORKER).is_none() && !runs.has_sent(WORKER));
    runs.check();
    assert!(runs.unsent(ClientId(9), 0, &returned).is_empty());
}

#[test]
fn only_the_answer_to_the_last_question_ends_it() {
    let mut runs = Runs::default();
    let slot = insert(&mut runs, 0);
    runs.sent(slot);
    let (nothing, all) = (BTreeSet::new(), [slot].into_iter().collect());
    assert_eq!(runs.ask_back(WORKER), Some(1));
    assert_eq!(runs.ask_back(WORKER), None, "one answer is enough");
    assert!(runs.unsent(WORKER, 0, &nothing).is_empty() && runs.is_asked_back(WORKER));
    assert_eq!(runs.unsent(WORKER, 1, &all), [slot]);
    assert!(!runs.has_asked_back());
    assert_eq!(runs.ask_back(WORKER), Some(2));
    assert!(runs.unsent(WORKER, 1, &nothing).is_empty() && runs.is_asked_back(WORKER), "late");
    runs.question = u32::MAX;
    assert!(runs.unsent(WORKER, 2, &nothing).is_empty() && !runs.is_asked_back(WORKER));
    assert_eq!(runs.ask_back(WORKER), Some(1), "0 is the number of none");
}

#[test]
fn children_go_with_the_run_that_submitted_them() {
    let mut runs = Runs::default();
    let slot = insert(&mut runs, 0);
    let (parent, child) = (runs[slot].task, TaskId::root(JobId(1)).child(9));
    assert_eq!(runs.note_child(slot, child, |_| true).task, parent);
    assert_eq!(runs.children(parent), [child]);
    assert!(runs.remove(slot).is_some() && runs.remove(slot).is_none());
    assert!(!runs.is_busy(WORKER));
    assert!(runs.leftovers().iter().all(|(_, count)| *count == 0));
}

#[test]
fn a_run_that_submits_for_weeks_keeps_only_the_children_that_go_on() {
    const COUNT: u64 = 100_000;
    let mut runs = Runs::default();
    let slot = insert(&mut runs, 0);
    let parent = runs[slot].task;
    let child = |number: u64| TaskId::root(JobId(1)).child(number);
    let looks = std::cell::Cell::new(0_u64);
    for number in 1..=COUNT {
        // The last 100 go on, and one from the beginning.
        let goes_on = |of: TaskId| {
            looks.set(looks.get() + 1);
            of == child(1) || (number.saturating_sub(100)..number).any(|recent| of == child(recent))
        };
        runs.note_child(slot, child(number), goes_on);
        assert!(runs.children(parent).len() <= 2 * 101 + 1, "{number}: {}", runs.children(parent).len());
    }
    assert!(runs.children(parent).contains(&child(1)) && runs.children(parent).contains(&child(COUNT)));
    assert!(looks.get() < 4 * COUNT, "{} looks at {COUNT} children", looks.get());
}

#[test]
#[should_panic(expected = "sent twice")]
fn a_run_is_sent_once() {
    let mut runs = Runs::default();
    let slot = insert(&mut runs, 0);
    runs.sent(slot);
    runs.sent(slot);
}
