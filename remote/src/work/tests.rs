//! A worker's tasks on their way from the node to their start.

use super::*;
use tharsis_types::{FunctionId, JobId};

fn work_with(slots: impl IntoIterator<Item = u32>) -> Work {
    let work = Work::default();
    let class = TaskClass::new(JobId(1), FunctionId(1), "f");
    work.define(0, &postcard::to_allocvec(&class).unwrap()).unwrap();
    slots.into_iter().for_each(|slot| accept(&work, slot));
    work
}

fn accept(work: &Work, slot: u32) {
    let task = TaskId::root(JobId(1)).child(u64::from(slot));
    work.accept(slot, 0, 0, (task, ""), &[], ArgumentsView::new(0, &[])).unwrap();
}

/// The next task, of a worker without groups.
fn next(work: &Work) -> Option<Run> {
    match work.next()? {
        Next::Begins(run) => Some(run),
        Next::InGroup { .. } => panic!("there are no groups"),
    }
}

fn begin(work: &Work, run: &Run) -> bool {
    work.begin(Arc::new(TaskState::new(run.task, 0, Some(run.slot), None)))
}

#[test]
fn a_call_with_a_name_of_its_own_has_the_class_of_the_others() {
    let work = work_with([1]);
    let task = TaskId::root(JobId(1)).child(2);
    work.accept(2, 0, 0, (task, "part 2"), &[], ArgumentsView::new(0, &[])).unwrap();
    let names: Vec<_> = std::iter::from_fn(|| next(&work)).map(|run| run.class.name.clone()).collect();
    assert_eq!(names, ["f", "part 2"]);
    assert_eq!(work.classes.lock().len(), 1);
}

#[test]
fn a_task_is_cancelled_wherever_it_is() {
    let work = work_with([7, 8]);
    assert!(matches!(work.cancel(8), Cancelled::Taken(run) if run.slot == 8), "in the queue");
    let run = next(&work).unwrap();
    assert!(matches!(work.cancel(7), Cancelled::Marked), "between the queue and its start");
    assert!(begin(&work, &run));
    work.end(7);
    accept(&work, 9);
    let run = next(&work).unwrap();
    assert!(!begin(&work, &run));
    assert!(matches!(work.cancel(9), Cancelled::Told(task) if task.slot == Some(9)), "it runs");
    assert!(work.running().unwrap().is_cancelled.load(Ordering::Relaxed));
}

#[test]
fn the_cancellation_of_a_task_that_has_ended_is_not_that_of_the_next_one_in_its_slot() {
    let work = work_with([7]);
    let run = next(&work).unwrap();
    assert!(!begin(&work, &run));
    work.end(7);
    assert!(matches!(work.cancel(7), Cancelled::Marked));
    accept(&work, 7);
    let run = next(&work).unwrap();
    assert!(!begin(&work, &run), "another task has the slot");
}

/// Packed slots.
fn packed(slots: &[u32]) -> Vec<u8> {
    slots.iter().flat_map(|slot| slot.to_le_bytes()).collect()
}

#[test]
fn the_calls_of_an_actor_are_handed_back_when_they_are_asked_for_and_come_again() {
    let work = work_with([1, 2, 3]);
    work.belongs_to_actor(&[]);
    let first = next(&work).unwrap();
    assert!(!begin(&work, &first));
    assert_eq!(work.take_back(usize::MAX), packed(&[2, 3]));
    assert!(!work.has_next(), "nothing more begins");
    assert!(matches!(work.cancel(3), Cancelled::Marked), "the node knows that it has it");
    [2, 3].into_iter().for_each(|slot| accept(&work, slot));
    let again: Vec<_> = std::iter::from_fn(|| next(&work)).map(|run| begin(&work, &run)).collect();
    assert_eq!(again, [false, false], "a cancellation that found nothing is the node's to remember");
}

#[test]
fn the_calls_in_groups_of_an_actor_are_handed_back_too() {
    let work = work_with([1, 2, 3]);
    work.belongs_to_actor(&[1]);
    let groups = work.groups().unwrap();
    let moved = [work.next().unwrap(), work.next().unwrap()].map(|next| match next {
        Next::Begins(_) => panic!("it has groups"),
        Next::InGroup { group, needs_thread } => (group, needs_thread),
    });
    assert_eq!(moved, [(0, true), (0, false)]);
    let first = groups.next(0).unwrap();
    assert!(!begin(&work, &first));
    assert_eq!(work.take_back(usize::MAX), packed(&[3, 2]));
    assert_eq!(work.running.lock().at_hand.keys().copied().collect::<Vec<_>>(), [1]);
}

#[test]
fn cancellations_that_come_too_late_leave_nothing() {
    let work = work_with(0..4);
    let first = next(&work).unwrap();
    assert!(!begin(&work, &first));
    work.end(first.slot);
    assert!(matches!(work.cancel(1), Cancelled::Taken(_)));
    assert_eq!(work.take_back(1), 3_u32.to_le_bytes());
    let last = next(&work).unwrap();
    work.never_begins(last.slot);
    for slot in 0..1_000 {
        assert!(matches!(work.cancel(slot), Cancelled::Marked));
    }
    assert!(work.running.lock().at_hand.is_empty());
}
