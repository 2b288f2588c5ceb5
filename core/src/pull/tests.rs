//! Bundles, sources and losses of pulls.

use super::aside::ARGUMENT_ASIDES_MAX;
use super::failures::TRIES_PER_HOLDER;
use super::*;
use tharsis_types::{JobId, TaskId};

fn object(n: u32) -> ObjectId {
    ObjectId::put(TaskId::root(JobId(1)), n)
}

fn arguments(run: u32) -> Purpose<u32> {
    Purpose::Arguments(run)
}

fn read(client: u32, token: u64) -> Purpose<u32> {
    Purpose::Read(ClientId(client), token)
}

fn missing(n: u32, len: u64, holders: &[u64]) -> Missing {
    Missing { object: object(n), len, holders: holders.iter().map(|h| NodeId(*h)).collect() }
}

#[test]
fn d8_whole_bundles_are_admitted_and_reads_come_first() {
    let mut pulls = Pulls::beside(None);
    let mut out = Vec::new();
    pulls.want(arguments(1), vec![missing(1, 3, &[7]), missing(2, 3, &[7])], 10, &mut out);
    pulls.want(arguments(2), vec![missing(3, 3, &[7]), missing(4, 3, &[7])], 10, &mut out);
    assert_eq!(out.len(), 2, "the second bundle does not fit");
    pulls.want(read(1, 1), vec![missing(5, 6, &[7])], 10, &mut out);
    pulls.check();
    out.clear();
    pulls.arrived(object(1), 10, &mut out);
    pulls.arrived(object(2), 10, &mut out);
    let start = Effect::Start { object: object(5), len: 6, from: NodeId(7) };
    assert_eq!(out, [Effect::Ready(arguments(1)), start], "the read overtakes the arguments");
    pulls.check();
}

#[test]
fn d9_one_transfer_for_many_readers_and_the_next_holder_when_one_dies() {
    let mut pulls = Pulls::beside(None);
    let mut out = Vec::new();
    for client in 0..20 {
        pulls.want(read(client, 0), vec![missing(1, 100, &[7, 8])], 1000, &mut out);
    }
    assert_eq!(out, [Effect::Start { object: object(1), len: 100, from: NodeId(7) }]);
    out.clear();
    pulls.failed(object(1), NodeId(7), "broke off".into(), 1000, &mut out);
    assert_eq!(out, [Effect::Start { object: object(1), len: 100, from: NodeId(8) }]);
    out.clear();
    pulls.arrived(object(1), 1000, &mut out);
    assert_eq!(out.len(), 20);
    assert!(pulls.is_empty());
    pulls.check();
}

#[test]
fn a_copy_that_is_told_of_while_another_is_read_is_tried_before_the_object_is_lost() {
    let mut pulls = Pulls::beside(None);
    let mut out = Vec::new();
    pulls.want(read(1, 1), vec![missing(1, 100, &[7])], 1000, &mut out);
    pulls.copy_added(object(1), NodeId(8));
    pulls.copy_added(object(2), NodeId(8));
    out.clear();
    pulls.failed(object(1), NodeId(7), "gone".into(), 1000, &mut out);
    assert_eq!(out, [Effect::Start { object: object(1), len: 100, from: NodeId(8) }]);
    pulls.arrived(object(1), 1000, &mut out);
    assert!(pulls.is_empty());
    pulls.check();
}

#[test]
fn an_object_that_nobody_has_is_lost_at_once_and_one_whose_holder_went_when_its_turn_comes() {
    let mut pulls = Pulls::beside(None);
    let mut out = Vec::new();
    pulls.want(read(1, 1), vec![missing(1, 3, &[])], 10, &mut out);
    assert_eq!(out, [Effect::Lost { purpose: read(1, 1), object: object(1), cause: None }]);
    out.clear();
    pulls.want(arguments(1), vec![missing(2, 8, &[7])], 10, &mut out);
    pulls.want(arguments(2), vec![missing(3, 8, &[9])], 10, &mut out);
    pulls.holder_gone(NodeId(9));
    out.clear();
    pulls.arrived(object(2), 10, &mut out);
    assert_eq!(
        out,
        [Effect::Ready(arguments(1)), Effect::Lost { purpose: arguments(2), object: object(3), cause: None }]
    );
    assert!(pulls.is_empty());
    pulls.check();
}

#[test]
fn d8_a_lost_source_gives_its_place_to_the_next_bundle_and_cancelling_leaks_no_quota() {
    let mut pulls = Pulls::beside(None);
    let mut out = Vec::new();
    pulls.want(arguments(1), vec![missing(1, 8, &[7])], 10, &mut out);
    pulls.want(arguments(2), vec![missing(2, 8, &[7])], 10, &mut out);
    out.clear();
    for n in 0..TRIES_PER_HOLDER {
        pulls.failed(object(1), NodeId(7), format!("break {n}"), 10, &mut out);
    }
    out.retain(|effect| !matches!(effect, Effect::Start { object: again, .. } if *again == object(1)));
    let next = Effect::Start { object: object(2), len: 8, from: NodeId(7) };
    let cause = Some("break 2".to_owned());
    let lost = Effect::Lost { purpose: arguments(1), object: object(1), cause };
    assert_eq!(out, [lost, next], "the last of the breaks is told");
    pulls.forget(arguments(2), 10, &mut out);
    pulls.check();
    assert!(pulls.is_empty());
}

fn unreached(n: u32, asks: bool) -> Effect<u32> {
    Effect::Unreached { object: object(n), asks }
}

fn interrupted(n: u32, from: u64) -> Interrupted {
    Interrupted { object: object(n), from: NodeId(from), done_bytes: 0, copy: 0, cause: "cut".to_owned() }
}

/// Ends the next pause.
fn end_pause(pulls: &mut Pulls<u32>, out: &mut Vec<Effect<u32>>) {
    let until = pulls.next_timeout().unwrap();
    pulls.tell_time(until);
    pulls.end_pauses(1000, out);
    pulls.check();
}

#[test]
fn a_holder_that_is_not_reached_is_tried_by_one_transfer_at_a_time() {
    let mut pulls = Pulls::beside(None);
    let mut out = Vec::new();
    for n in 1..=20 {
        pulls.want(read(1, n.into()), vec![missing(n, 1, &[7])], 1000, &mut out);
    }
    assert_eq!(out.len(), TRANSFERS_MAX);
    for n in 1..=TRANSFERS_MAX as u32 {
        pulls.interrupted(interrupted(n, 7), 1000, &mut out);
        pulls.check();
    }
    out.clear();
    let start = |n, from| Effect::Start { object: object(n), len: 1, from: NodeId(from) };
    let starts = |out: &[Effect<u32>]| out.iter().filter(|e| matches!(e, Effect::Start { .. })).count();
    // It takes no place of what can be read.
    pulls.want(read(2, 1), vec![missing(30, 1, &[8])], 1000, &mut out);
    assert_eq!(out, [start(30, 8)]);
    for n in 1..=3 {
        out.clear();
        end_pause(&mut pulls, &mut out);
        assert_eq!((starts(&out), out.contains(&start(n, 7))), (1, true), "{out:?}");
        pulls.interrupted(interrupted(n, 7), 1000, &mut out);
    }
    out.clear();
    end_pause(&mut pulls, &mut out);
    assert_eq!(starts(&out), 1);
    out.clear();
    pulls.arrived(object(4), 1000, &mut out);
    end_pause(&mut pulls, &mut out);
    assert_eq!(starts(&out), TRANSFERS_MAX - 1, "it is reached: {out:?}");
}

#[test]
fn a_copy_behind_a_cut_is_not_lost_because_another_holder_has_none() {
    let mut pulls = Pulls::beside(None);
    let mut out = Vec::new();
    pulls.want(read(1, 1), vec![missing(1, 100, &[7, 8])], 1000, &mut out);
    pulls.interrupted(interrupted(1, 7), 1000, &mut out);
    for _ in 0..TRIES_PER_HOLDER {
        let start = Effect::Start { object: object(1), len: 100, from: NodeId(8) };
        assert_eq!(out.pop(), Some(start));
        pulls.failed(object(1), NodeId(8), "not there".to_owned(), 1000, &mut out);
    }
    pulls.check();
    assert_eq!(out.pop(), Some(unreached(1, true)), "{out:?}");
    assert!(pulls.is_aside(object(1)));
    // Its owner names that holder again, which is no news.
    let until = pulls.next_timeout();
    pulls.copy_added(object(1), NodeId(8));
    pulls.want(read(1, 2), vec![missing(1, 100, &[8])], 1000, &mut out);
    assert_eq!(pulls.next_timeout(), until);
    out.clear();
    end_pause(&mut pulls, &mut out);
    assert_eq!(out, [Effect::Start { object: object(1), len: 100, from: NodeId(7) }]);
    // It has lost its copy and got another one.
    pulls.copy_gone(object(1), NodeId(8));
    pulls.copy_added(object(1), NodeId(8));
    out.clear();
    pulls.interrupted(interrupted(1, 7), 1000, &mut out);
    assert_eq!(out, [Effect::Start { object: object(1), len: 100, from: NodeId(8) }]);
    pulls.check();
}

#[test]
fn a_holder_that_is_named_long_after_its_failures_is_tried_again() {
    let mut pulls = Pulls::beside(None);
    let mut out = Vec::new();
    pulls.want(read(1, 1), vec![missing(1, 100, &[7, 8])], 1000, &mut out);
    pulls.interrupted(interrupted(1, 7), 1000, &mut out);
    for _ in 0..TRIES_PER_HOLDER {
        pulls.failed(object(1), NodeId(8), "not there".to_owned(), 1000, &mut out);
    }
    pulls.tell_time(60_000 * MS);
    pulls.copy_added(object(1), NodeId(8));
    out.clear();
    end_pause(&mut pulls, &mut out);
    assert_eq!(out, [Effect::Start { object: object(1), len: 100, from: NodeId(8) }]);
}

#[test]
fn the_owner_of_what_gives_way_to_others_is_not_asked_each_time() {
    let mut pulls = Pulls::beside(None);
    let mut out = Vec::new();
    for n in 1..=20 {
        pulls.want(read(1, n.into()), vec![missing(n, 1, &[7])], 1000, &mut out);
        if n == 1 {
            pulls.interrupted(interrupted(1, 7), 1000, &mut out);
        }
    }
    assert!((1..=20).all(|n| out.contains(&unreached(n, true))), "{out:?}");
    for _ in 0..10 {
        out.clear();
        end_pause(&mut pulls, &mut out);
        assert!(!(1..=20).any(|n| out.contains(&unreached(n, true))), "{out:?}");
        for n in (1..=20).filter(|n| pulls.is_running(object(*n))).collect::<Vec<_>>() {
            pulls.interrupted(interrupted(n, 7), 1000, &mut out);
            assert_eq!(out.last(), Some(&unreached(n, true)), "it was tried");
        }
    }
    out.clear();
    pulls.tell_time(200_000 * MS);
    pulls.end_pauses(1000, &mut out);
    let mut given_way = (1..=20).filter(|n| !pulls.is_running(object(*n)));
    assert!(given_way.all(|n| out.contains(&unreached(n, true))), "{out:?}");
}

/// The first of them breaks off as soon as it begins, each time.
#[test]
fn objects_of_a_holder_that_is_not_reached_take_turns_to_try_it() {
    let mut pulls = Pulls::beside(None);
    let mut out = Vec::new();
    for n in 1..=3 {
        pulls.want(read(1, n.into()), vec![missing(n, 1, &[7])], 1000, &mut out);
        if n == 1 {
            pulls.interrupted(interrupted(1, 7), 1000, &mut out);
        }
    }
    let mut tried = Vec::new();
    while tried.len() < 12 {
        end_pause(&mut pulls, &mut out);
        for n in (1..=3).filter(|n| pulls.is_running(object(*n))).collect::<Vec<_>>() {
            tried.push(n);
            pulls.interrupted(interrupted(n, 7), 1000, &mut out);
        }
    }
    assert!((1..=3).all(|n| 2 <= tried.iter().filter(|tried| **tried == n).count()), "{tried:?}");
}

/// The time until which others wait for a try is long, as transfers are.
#[test]
fn what_waits_for_a_try_waits_no_longer_than_its_node_when_the_try_has_ended() {
    let mut pulls = Pulls::beside(None);
    let mut out = Vec::new();
    for n in 1..=2 {
        pulls.want(read(1, n.into()), vec![missing(n, 1, &[7])], 1000, &mut out);
        if n == 1 {
            pulls.interrupted(interrupted(1, 7), 1000, &mut out);
        }
    }
    end_pause(&mut pulls, &mut out);
    assert!(pulls.is_running(object(1)) && pulls.is_aside(object(2)));
    pulls.tell_time(260 * MS);
    pulls.interrupted(interrupted(1, 7), 1000, &mut out);
    pulls.forget(read(1, 1), 1000, &mut out);
    pulls.check();
    assert_eq!(pulls.next_timeout(), Some(760 * MS), "half a second later");
    end_pause(&mut pulls, &mut out);
    assert!(pulls.is_running(object(2)));
}

/// There is no memory for the object whose transfer was to find out.
#[test]
fn a_transfer_that_finds_nothing_out_leaves_its_turn_to_the_next() {
    let mut pulls = Pulls::beside(None);
    let mut out = Vec::new();
    for n in 1..=2 {
        pulls.want(read(1, n.into()), vec![missing(n, 1, &[7])], 1000, &mut out);
        pulls.interrupted(interrupted(n, 7), 1000, &mut out);
    }
    end_pause(&mut pulls, &mut out);
    let now = pulls.journal.now();
    assert!(pulls.is_running(object(1)) && pulls.is_aside(object(2)));
    assert_eq!(pulls.refused(object(1)), [read(1, 1)]);
    assert_eq!(pulls.next_timeout(), Some(now));
    end_pause(&mut pulls, &mut out);
    assert!(pulls.is_running(object(2)));
}

#[test]
fn a_try_whose_copy_goes_meanwhile_leaves_its_turn_to_the_next() {
    let mut pulls = Pulls::beside(None);
    let mut out = Vec::new();
    for n in 1..=2 {
        pulls.want(read(1, n.into()), vec![missing(n, 1, &[7])], 1000, &mut out);
        pulls.interrupted(interrupted(n, 7), 1000, &mut out);
    }
    end_pause(&mut pulls, &mut out);
    assert!(pulls.is_running(object(1)));
    pulls.copy_gone(object(1), NodeId(7));
    pulls.interrupted(interrupted(1, 7), 1000, &mut out);
    assert_eq!(pulls.next_timeout(), Some(pulls.journal.now()));
    end_pause(&mut pulls, &mut out);
    assert!(pulls.is_running(object(2)));
}

#[test]
fn bundles_behind_a_cut_leave_their_room_to_others() {
    let mut pulls = Pulls::beside(None);
    let mut out = Vec::new();
    pulls.want(arguments(1), vec![missing(1, 60, &[7]), missing(2, 40, &[8])], 100, &mut out);
    pulls.want(arguments(2), vec![missing(3, 100, &[8])], 100, &mut out);
    assert_eq!(out.len(), 2);
    out.clear();
    pulls.interrupted(interrupted(1, 7), 100, &mut out);
    pulls.check();
    let start = Effect::Start { object: object(3), len: 100, from: NodeId(8) };
    assert_eq!(out, [Effect::Aside(1), unreached(1, true), start]);
    assert!(pulls.is_aside(object(1)) && !pulls.is_aside(object(2)), "the other one is still being read");
    pulls.arrived(object(3), 100, &mut out);
    pulls.arrived(object(2), 100, &mut out);
    out.clear();
    end_pause(&mut pulls, &mut out);
    assert_eq!(out, [Effect::Start { object: object(1), len: 60, from: NodeId(7) }]);
    pulls.arrived(object(1), 100, &mut out);
    assert_eq!((out.pop(), pulls.object_count()), (Some(Effect::Ready(arguments(1))), 0));
}

#[test]
fn a_run_is_to_go_back_when_its_arguments_were_set_aside_often_and_nothing_came() {
    let mut pulls = Pulls::beside(None);
    let mut out = Vec::new();
    pulls.want(arguments(1), vec![missing(1, 100, &[7]), missing(2, 100, &[8])], 1000, &mut out);
    let break_off = |pulls: &mut Pulls<u32>| {
        let mut out = Vec::new();
        pulls.interrupted(interrupted(1, 7), 1000, &mut out);
        end_pause(pulls, &mut Vec::new());
        out
    };
    for _ in 0..ARGUMENT_ASIDES_MAX {
        assert_eq!(break_off(&mut pulls), [Effect::Aside(1), unreached(1, true)]);
    }
    pulls.arrived(object(2), 1000, &mut out);
    for _ in 0..ARGUMENT_ASIDES_MAX {
        assert_eq!(break_off(&mut pulls), [Effect::Aside(1), unreached(1, true)]);
    }
    for _ in 0..2 {
        // It may stay all the same.
        assert_eq!(break_off(&mut pulls), [Effect::Late(1, object(1)), unreached(1, true)]);
    }
    assert!(pulls.is_running(object(1)) && pulls.aside_since(arguments(1)).is_none());
}

#[test]
fn a_bundle_is_set_aside_anew_after_one_of_its_objects_came() {
    let mut pulls = Pulls::beside(None);
    let mut out = Vec::new();
    pulls.want(arguments(1), vec![missing(1, 100, &[7]), missing(2, 100, &[8])], 1000, &mut out);
    let first = pulls.journal.now();
    for _ in 0..3 {
        pulls.interrupted(interrupted(1, 7), 1000, &mut out);
        assert_eq!(pulls.aside_since(arguments(1)), Some(first));
        end_pause(&mut pulls, &mut out);
        assert_eq!(pulls.aside_since(arguments(1)), None, "it is tried");
    }
    pulls.arrived(object(2), 1000, &mut out);
    pulls.interrupted(interrupted(1, 7), 1000, &mut out);
    let now = pulls.journal.now();
    assert!(first < now && pulls.aside_since(arguments(1)) == Some(now));
}

#[test]
fn what_was_set_aside_goes_on_when_its_holders_change() {
    for is_dead in [true, false] {
        let mut pulls = Pulls::beside(None);
        let mut out = Vec::new();
        pulls.want(read(1, 1), vec![missing(1, 100, &[7])], 1000, &mut out);
        pulls.interrupted(interrupted(1, 7), 1000, &mut out);
        if is_dead {
            pulls.holder_gone(NodeId(7));
        } else {
            pulls.copy_added(object(1), NodeId(8));
        }
        assert_eq!(pulls.next_timeout(), Some(0), "now");
        out.clear();
        end_pause(&mut pulls, &mut out);
        let (object, cause) = (object(1), Some("cut".to_owned()));
        let expected = if is_dead {
            Effect::Lost { purpose: read(1, 1), object, cause }
        } else {
            Effect::Start { object, len: 100, from: NodeId(8) }
        };
        assert_eq!(out, [expected]);
    }
}

#[test]
fn nothing_is_left_of_what_was_set_aside_and_is_not_needed() {
    let mut pulls = Pulls::beside(None);
    let mut out = Vec::new();
    for purpose in [arguments(1), read(1, 1)] {
        pulls.want(purpose, vec![missing(1, 100, &[7])], 1000, &mut out);
    }
    pulls.interrupted(interrupted(1, 7), 1000, &mut out);
    pulls.forget(arguments(1), 1000, &mut out);
    pulls.check();
    assert_eq!(pulls.refused(object(1)), [read(1, 1)]);
    pulls.check();
    assert_eq!((pulls.object_count(), pulls.next_timeout()), (0, None));
    // A copy that is to be moved is kept by another node in the end.
    let purpose = Purpose::Move(object(1));
    pulls.want(purpose, vec![missing(1, 100, &[7])], 1000, &mut out);
    for _ in 0..2 {
        assert!(pulls.is_aside(object(1)));
        end_pause(&mut pulls, &mut out);
        pulls.interrupted(interrupted(1, 7), 1000, &mut out);
    }
    assert_eq!(out.pop(), Some(Effect::Lost { purpose, object: object(1), cause: Some("cut".to_owned()) }));
    assert_eq!((pulls.object_count(), pulls.next_timeout()), (0, None));
}

#[test]
fn a_transfer_that_brings_more_goes_on_at_once() {
    let mut pulls = Pulls::beside(None);
    let mut out = Vec::new();
    pulls.want(read(1, 1), vec![missing(1, 100, &[7, 8])], 1000, &mut out);
    for (done_bytes, from, next) in [(40, 7, 8), (60, 8, 7), (60, 7, 8)] {
        out.clear();
        pulls.interrupted(Interrupted { done_bytes, ..interrupted(1, from) }, 1000, &mut out);
        assert_eq!(out, [Effect::Start { object: object(1), len: 100, from: NodeId(next) }]);
    }
    out.clear();
    pulls.interrupted(Interrupted { done_bytes: 60, ..interrupted(1, 8) }, 1000, &mut out);
    assert_eq!(out, [unreached(1, true)], "nothing came, from neither of them");
}

/// Another holder would begin anew each time, and so neither would come to the end.
#[test]
fn a_transfer_that_only_its_holder_can_go_on_with_stays_there_while_more_comes() {
    let mut pulls = Pulls::beside(None);
    let mut out = Vec::new();
    pulls.want(read(1, 1), vec![missing(1, 100, &[7, 8])], 1000, &mut out);
    for (done_bytes, from, next) in [(40, 7, 7), (60, 7, 7), (60, 7, 8), (70, 8, 8)] {
        out.clear();
        let ended = Interrupted { done_bytes, copy: 3, ..interrupted(1, from) };
        pulls.interrupted(ended, 1000, &mut out);
        assert_eq!(out, [Effect::Start { object: object(1), len: 100, from: NodeId(next) }]);
        pulls.check();
    }
}

/// The time per object to want it and to receive it, while `count` objects wait.
#[allow(clippy::disallowed_types, reason = "the test measures time")]
fn ns_per_object(count: u32) -> f64 {
    let mut pulls = Pulls::beside(None);
    let mut out = Vec::new();
    let begin = std::time::Instant::now();
    for n in 0..count {
        pulls.want(read(1, n.into()), vec![missing(n, 1, &[7])], 1 << 40, &mut out);
    }
    let mut arrived = 0;
    while arrived < out.len() {
        if let Effect::Start { object, .. } = out[arrived] {
            pulls.arrived(object, 1 << 40, &mut out);
        }
        arrived += 1;
    }
    let seconds = begin.elapsed().as_secs_f64();
    assert!(pulls.is_empty(), "all of {count} objects arrive");
    assert_eq!(out.iter().filter(|e| matches!(e, Effect::Ready(_))).count(), count as usize);
    seconds * 1e9 / f64::from(count)
}

#[test]
fn the_time_per_pull_does_not_grow_with_what_waits() {
    let few = ns_per_object(1_000).max(ns_per_object(1_000));
    let many = ns_per_object(100_000);
    // A hundred times as many: the logarithm grows by 1.7, caches cost something too; a walk would cost
    // 100.
    assert!(many < 20.0 * few, "{many:.0} ns for each of 100 000, {few:.0} ns for each of 1 000");
}
