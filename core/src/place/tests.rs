//! Tests of choices: which node a task goes to.

use super::loads::DENIED_FOR;
use super::*;
use tharsis_types::task::LabelTerm;

/// Clusters of these tests are small unless they say otherwise.
const SMALL_MAX: usize = 16;

fn member(n: u64, cpus: f64, gpus: u64, labels: &[(&str, &str)]) -> Member {
    let resources = Resources { gpu: gpus * Resources::UNIT, ..Resources::cpus(cpus).unwrap() };
    let labels = labels.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
    Member { node: NodeId(n), resources, labels }
}

fn three() -> View {
    let mut view = View::new(member(1, 4.0, 0, &[("zone", "a")]), SMALL_MAX);
    view.joined(Arc::new(member(2, 4.0, 0, &[("zone", "b")])));
    view.joined(Arc::new(member(3, 4.0, 1, &[("zone", "b"), ("ssd", "")])));
    view
}

fn one_cpu() -> Resources {
    Resources::cpus(1.0).unwrap()
}

#[test]
fn e2_the_local_node_is_half_filled_then_the_least_used_is_taken_and_gpus_are_avoided() {
    let mut view = three();
    let mut taken = Vec::new();
    for _ in 0..12 {
        let Choice::Now(node) = view.choose(0, &one_cpu(), &Placement::Default, None) else { break };
        view.asked(0, node, &one_cpu());
        taken.push(node.0);
    }
    assert_eq!(taken, [1, 1, 2, 2, 1, 2, 1, 2, 3, 3, 3, 3]);
    assert_eq!(view.choose(0, &one_cpu(), &Placement::Default, None), Choice::Wait(NodeId(1)));
}

#[test]
fn e1_the_node_with_the_arguments_is_taken_while_it_has_room() {
    let mut view = three();
    let near = Some(NodeId(2));
    for _ in 0..4 {
        assert_eq!(view.choose(0, &one_cpu(), &Placement::Default, near), Choice::Now(NodeId(2)));
        view.asked(0, NodeId(2), &one_cpu());
    }
    assert_eq!(view.choose(0, &one_cpu(), &Placement::Default, near), Choice::Now(NodeId(1)));
}

#[test]
fn e4_a_node_without_resources_runs_nothing_for_others() {
    let mut view = View::new(member(1, 0.0, 0, &[]), SMALL_MAX);
    let nothing = Resources::default();
    assert_eq!(view.choose(0, &nothing, &Placement::Default, None), Choice::Now(NodeId(1)), "its own");
    let mut view = View::new(member(9, 1.0, 0, &[]), SMALL_MAX);
    view.joined(Arc::new(member(1, 0.0, 0, &[("zone", "a")])));
    let zone = vec![LabelTerm::Exists("zone".into())];
    for placement in [Placement::Labels(vec![zone]), Placement::Node { node: NodeId(1), soft: false }] {
        let choice = view.choose(0, &nothing, &placement, Some(NodeId(1)));
        assert!(matches!(choice, Choice::Nowhere(_)), "{choice:?}");
    }
    assert_eq!(view.choose(0, &nothing, &Placement::Default, Some(NodeId(1))), Choice::Now(NodeId(9)));
}

#[test]
fn e3_affinity_and_labels() {
    let mut view = three();
    let gone = NodeId(9);
    let hard = view.choose(0, &one_cpu(), &Placement::Node { node: gone, soft: false }, None);
    assert!(matches!(hard, Choice::Never(f) if f.kind == FailureKind::NodeNotFound));
    let soft = view.choose(0, &one_cpu(), &Placement::Node { node: gone, soft: true }, None);
    assert_eq!(soft, Choice::Now(NodeId(1)));
    let zone_b = LabelTerm::In("zone".into(), vec!["b".into()]);
    let no_ssd = LabelTerm::DoesNotExist("ssd".into());
    let none = vec![LabelTerm::Exists("tape".into())];
    let list = Placement::Labels(vec![none.clone(), vec![zone_b, no_ssd]]);
    assert_eq!(view.choose(0, &one_cpu(), &list, None), Choice::Now(NodeId(2)));
    let nowhere = view.choose(0, &one_cpu(), &Placement::Labels(vec![none]), None);
    assert_eq!(nowhere, Choice::Nowhere("no node has the labels asked for".into()));
}

#[test]
fn a_node_that_is_left_out_does_not_stand_in_for_one_that_is_gone() {
    let mut view = three();
    let gone = Placement::Node { node: NodeId(9), soft: true };
    let all = [1, 2, 3].map(NodeId);
    for (count, node) in all.into_iter().enumerate() {
        let wishes = Wishes { left_out: &all[..count], ..Wishes::default() };
        assert_eq!(view.choose(0, &one_cpu(), &gone, wishes), Choice::Now(node));
    }
    let wishes = Wishes { left_out: &all, ..Wishes::default() };
    let choice = view.choose(0, &one_cpu(), &gone, wishes);
    assert!(matches!(choice, Choice::Nowhere(_)), "{choice:?}");
}

#[test]
fn a_node_that_denied_is_left_alone_for_a_while() {
    let mut view = three();
    view.denied(0, NodeId(2), Resources::cpus(4.0).unwrap());
    let spread = |view: &mut View, now| view.choose(now, &one_cpu(), &Placement::Spread, None);
    view.asked(0, NodeId(1), &one_cpu());
    assert_eq!(spread(&mut view, 0), Choice::Now(NodeId(1)));
    assert_eq!(spread(&mut view, DENIED_FOR), Choice::Now(NodeId(2)));
}

/// A large cluster as node 1 sees it: `count` nodes with one CPU each.
fn many(count: u64) -> View {
    let mut view = View::new(member(1, 1.0, 0, &[]), SMALL_MAX);
    (2..=count).for_each(|n| view.joined(Arc::new(member(n, 1.0, 0, &[]))));
    view
}

#[test]
fn in_a_large_cluster_every_node_is_found_that_should_have_room() {
    let mut view = many(1_000);
    let mut taken = std::collections::BTreeSet::new();
    let mut now = 0;
    while taken.len() < 1_000 {
        match view.choose(now, &one_cpu(), &Placement::Spread, None) {
            Choice::Now(node) => {
                assert!(taken.insert(node), "{node} is full");
                view.asked(now, node, &one_cpu());
            }
            Choice::Wait(node) => {
                assert_eq!(node, NodeId(1), "where it decides it also waits");
                now = view.next_timeout(now).unwrap();
            }
            other => panic!("{other:?}"),
        }
        assert!(now < 1_000 * MS, "it looks for too long");
        view.check();
    }
    assert!(matches!(view.choose(now, &one_cpu(), &Placement::Spread, None), Choice::Wait(_)));
}

#[test]
fn in_a_large_cluster_a_task_finds_the_one_node_that_it_fits() {
    let mut view = many(1_000);
    view.joined(Arc::new(member(5_000, 8.0, 0, &[("tape", "")])));
    let large = Resources::cpus(8.0).unwrap();
    for placement in [Placement::Default, Placement::Labels(vec![vec![LabelTerm::Exists("tape".into())]])] {
        assert_eq!(view.choose(0, &large, &placement, None), Choice::Now(NodeId(5_000)));
    }
    view.denied(0, NodeId(5_000), Resources::default());
    assert_eq!(view.choose(0, &large, &Placement::Default, None), Choice::Wait(NodeId(5_000)));
    view.left(NodeId(5_000));
    assert!(matches!(view.choose(0, &large, &Placement::Default, None), Choice::Nowhere(_)));
}

#[test]
fn in_a_large_cluster_guesses_end_when_they_fail_and_begin_again_later() {
    let mut view = many(1_000);
    let mut asked = 0;
    while let Choice::Now(node) = view.choose(0, &one_cpu(), &Placement::Spread, None) {
        view.asked(0, node, &one_cpu());
        if node != NodeId(1) {
            view.denied(0, node, Resources::default());
        }
        asked += 1;
    }
    assert!((10..30).contains(&asked), "{asked} nodes were asked");
    // One that says that it has room is asked all the same.
    view.reported(0, NodeId(77), Load { free: one_cpu(), waiting: 0 });
    let mut choices = (0..8).map(|_| view.choose(0, &one_cpu(), &Placement::Spread, None));
    assert!(choices.any(|choice| choice == Choice::Now(NodeId(77))));
    let later = 3_000 * MS;
    assert!(matches!(view.choose(later, &one_cpu(), &Placement::Spread, None), Choice::Now(_)));
}

#[test]
fn what_waits_somewhere_takes_half_of_the_guesses() {
    let mut view = View::new(member(1, 1.0, 0, &[]), 0);
    (2..40).for_each(|n| view.joined(Arc::new(member(n, 4.0, 0, &[]))));
    let wide = Resources::cpus(2.0).unwrap();
    let second = Wishes { turn: Turn::Second, ..Wishes::default() };
    for n in 0..8 {
        let choice = view.choose(0, &wide, &Placement::Default, second);
        let Choice::Now(node) = choice else { panic!("guess {n}: {choice:?}") };
        view.denied(0, node, Resources::default());
    }
    let choice = view.choose(0, &wide, &Placement::Default, second);
    assert!(!matches!(choice, Choice::Now(_)), "{choice:?}");
    let first = view.choose(0, &wide, &Placement::Default, None);
    assert!(matches!(first, Choice::Now(_)), "{first:?} for work that has no place");
}
