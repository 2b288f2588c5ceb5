//! Graphs of tasks that are submitted at once.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::time::Duration;
use tharsis::prelude::*;
use tharsis_scenarios::{Mode, Scenario, await_file, mark, marks, open_gate, scenarios};

pub const ALL: &[Scenario] = scenarios![
    Both:
        layers_with_random_edges_give_what_an_evaluator_gives,
        a_hundred_thousand_tasks_run,
        a_graph_takes_references_and_gives_some,
        a_task_may_give_and_take_many_values,
        a_failure_fails_those_that_take_the_result_and_no_others,
        a_higher_priority_starts_first,
        priorities_rank_tasks_of_different_resources,
        intermediate_values_are_freed_as_they_are_used,
        a_cancelled_result_leaves_the_others,
        a_graph_none_of_whose_results_is_wanted_ends,
        a_graph_ends_with_its_session,
        a_graph_of_a_task_is_cancelled_with_it,
        a_graph_that_is_not_sound_leaves_nothing;
    Processes:
        a_graph_survives_a_worker,
        a_task_that_runs_again_finds_the_work_of_its_graph;
];

#[remote]
fn seed(x: u64) -> u64 {
    x.wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

#[remote]
fn mix(a: u64, b: u64) -> u64 {
    a.rotate_left(17) ^ b.wrapping_mul(31)
}

#[remote]
fn sum(values: Values<u64>) -> u64 {
    values.iter().fold(0, |sum, value| sum.wrapping_add(*value))
}

#[remote(max_retries = 0)]
fn odd(x: u64) -> Result<u64, String> {
    if x % 2 == 1 { Ok(x) } else { Err(format!("{x} is even")) }
}

#[remote(num_returns = 2)]
fn halves(x: u64) -> (u64, u64) {
    (x / 2, x - x / 2)
}

#[remote]
fn first_numbers(count: u64) -> Returns<u64> {
    (0..count).collect()
}

#[remote(max_retries = 0)]
fn after(gate: String, x: u64) -> u64 {
    await_file(&gate);
    x
}

#[remote(max_retries = 0)]
fn marked(path: String, x: u64) -> u64 {
    mark(&path);
    x
}

#[remote(max_retries = 0)]
fn log(path: String, _before: u64, number: i32) {
    let mut file = OpenOptions::new().create(true).append(true).open(path).unwrap();
    writeln!(file, "{number}").unwrap();
}

#[remote(max_retries = 0)]
fn log_slowly(path: String, before: u64, number: i32) {
    log(path, before, number);
    std::thread::sleep(Duration::from_millis(60));
}

#[remote]
fn follow(inner: ObjectRef<u64>) -> u64 {
    inner.get().unwrap() + 1
}

#[remote(pure = true)]
fn block(before: Blob, value: u8) -> Blob {
    Blob::from(vec![value.wrapping_add(*before.first().unwrap_or(&0)); 1 << 18])
}

/// Numbers without a pattern.
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % end as u64) as usize
    }
}

/// A graph of layers in which each task takes two results of the layer before, and the value of each of its
/// tasks.
fn layers(graph: &mut TaskGraph, count: usize, width: usize) -> Vec<(Planned<u64>, u64)> {
    let mut random = Random(count as u64);
    let mut all: Vec<_> = (0..width as u64).map(|x| (seed::add_to(graph, x), seed(x))).collect();
    for layer in 1..count {
        for _ in 0..width {
            let [(a, x), (b, y)] = [(); 2].map(|()| all[(layer - 1) * width + random.below(width)]);
            all.push((mix::add_to(graph, a, b), mix(x, y)));
        }
    }
    all
}

fn layers_with_random_edges_give_what_an_evaluator_gives(mode: Mode) {
    let session = mode.start(2);
    let _entered = session.enter();
    let mut graph = TaskGraph::new();
    let all = layers(&mut graph, 30, 40);
    assert_eq!(graph.len(), 1_200);
    // The last layer, and some results that other tasks take too.
    let kept: Vec<_> = all.iter().skip(1_160).chain(all.iter().step_by(100)).copied().collect();
    let results = graph.submit(kept.iter().map(|(planned, _)| *planned).collect::<Vec<_>>()).unwrap();
    assert_eq!(results.len(), kept.len());
    for (result, (_, value)) in results.iter().zip(&kept) {
        assert_eq!(result.get().unwrap(), *value);
    }
    drop(results);
    session.await_quiet();
}

fn a_hundred_thousand_tasks_run(mode: Mode) {
    let session = mode.start(2);
    let _entered = session.enter();
    let mut graph = TaskGraph::new();
    let all = layers(&mut graph, 100, 1_000);
    let (last, values): (Vec<_>, Vec<_>) = all.into_iter().skip(99_000).unzip();
    let total = sum::add_to(&mut graph, last);
    let result = graph.submit(total).unwrap();
    assert_eq!(result.get().unwrap(), values.into_iter().fold(0, u64::wrapping_add));
    drop(result);
    session.await_quiet();
}

fn a_graph_takes_references_and_gives_some(mode: Mode) {
    let session = mode.start(2);
    let _entered = session.enter();
    let gate = session.path("gate");
    // One has a value, and one will get it; the third stands inside an argument.
    let (there, late) = (put(&3_u64).unwrap(), after::remote(gate.clone(), 4));
    let inside = put(&9_u64).unwrap();
    let mut graph = TaskGraph::new();
    let early = mix::add_to(&mut graph, &there, &there);
    let both = mix::add_to(&mut graph, early, &late);
    let inner = follow::add_to(&mut graph, &inside);
    let large = sum_of::add_to(&mut graph, vec![1_u64; 10_000], both);
    let (early, inner, large) = graph.submit((early, inner, large)).unwrap();
    drop((there, inside));
    assert_eq!((early.get().unwrap(), inner.get().unwrap()), (mix(3, 3), 10));
    assert!(!large.is_ready());
    open_gate(&gate);
    assert_eq!(large.get().unwrap(), mix(mix(3, 3), 4).wrapping_add(10_000));
    // A result is an argument of ordinary calls and of other graphs.
    let mut graph = TaskGraph::new();
    let next = mix::add_to(&mut graph, &early, 1);
    let next = graph.submit([next]).unwrap();
    assert_eq!(mix::remote(&next[0], &early).get().unwrap(), mix(mix(mix(3, 3), 1), mix(3, 3)));
    drop((early, inner, large, late, next));
    session.await_quiet();
}

#[remote]
fn sum_of(values: Vec<u64>, more: u64) -> u64 {
    values.into_iter().fold(more, u64::wrapping_add)
}

fn a_task_may_give_and_take_many_values(mode: Mode) {
    let session = mode.start(2);
    let _entered = session.enter();
    let mut graph = TaskGraph::new();
    let numbers = first_numbers::options().num_returns(50).add_to(&mut graph, 50);
    let all = sum::add_to(&mut graph, &numbers[..]);
    let some = sum::add_to(&mut graph, vec![numbers[7], numbers[7], numbers[40]]);
    let (low, high) = halves::add_to(&mut graph, all);
    let ends = graph.submit((low, high, numbers[49], some)).unwrap();
    assert_eq!((ends.0.get().unwrap(), ends.1.get().unwrap()), (612, 613));
    assert_eq!((ends.2.get().unwrap(), ends.3.get().unwrap()), (49, 54));
    drop(ends);
    session.await_quiet();
}

fn a_failure_fails_those_that_take_the_result_and_no_others(mode: Mode) {
    let session = mode.start(2);
    let _entered = session.enter();
    let mut graph = TaskGraph::new();
    let (good, bad) = (odd::add_to(&mut graph, 7), odd::add_to(&mut graph, 8));
    let spoiled = mix::add_to(&mut graph, good, bad);
    let mut deep = spoiled;
    for _ in 0..20_000 {
        deep = mix::add_to(&mut graph, deep, 1);
    }
    let fine = mix::add_to(&mut graph, good, good);
    let (bad, spoiled, deep, fine) = graph.submit((bad, spoiled, deep, fine)).unwrap();
    assert_eq!(fine.get().unwrap(), mix(7, 7));
    let error = bad.get().unwrap_err();
    assert_eq!(
        (error.kind(), error.downcast::<String>()),
        (FailureKind::UserError, Some("8 is even".into()))
    );
    for result in [&spoiled, &deep] {
        let error = result.get().unwrap_err();
        assert_eq!(error.kind(), FailureKind::DependencyFailed, "{error}");
        assert_eq!(error.downcast::<String>(), Some("8 is even".into()), "the first error keeps its type");
    }
    drop((bad, spoiled, deep, fine));
    session.await_quiet();
}

fn a_higher_priority_starts_first(mode: Mode) {
    let session = mode.start(1);
    let _entered = session.enter();
    let (gate, path) = (session.path("gate"), session.path("log"));
    let mut graph = TaskGraph::new();
    let first = after::add_to(&mut graph, gate.clone(), 1);
    let given = [0, 5, -3, 9, 0, 5, i32::MAX, i32::MIN];
    let last: Vec<_> = given
        .into_iter()
        .map(|priority| log::options().priority(priority).add_to(&mut graph, path.clone(), first, priority))
        .collect();
    let results = graph.submit(last).unwrap();
    open_gate(&gate);
    get_all(&results, None).unwrap();
    let order: Vec<i32> =
        fs::read_to_string(&path).unwrap().lines().map(|line| line.parse().unwrap()).collect();
    assert_eq!(order, [i32::MAX, 9, 5, 5, 0, 0, -3, i32::MIN]);
}

fn priorities_rank_tasks_of_different_resources(mode: Mode) {
    let session = mode.start(1);
    let _entered = session.enter();
    let (gate, path) = (session.path("gate"), session.path("log"));
    let mut graph = TaskGraph::new();
    let first = after::add_to(&mut graph, gate.clone(), 1);
    // No two of them have room at the same time.
    let given = [(0, 1.0), (5, 0.9), (-3, 0.8), (9, 1.0), (4, 0.8), (7, 0.9), (1, 0.8), (6, 1.0)];
    let task = |(priority, cpus): (i32, f64)| {
        let options = log_slowly::options().priority(priority).num_cpus(cpus);
        options.add_to(&mut graph, path.clone(), first, priority)
    };
    let last: Vec<_> = given.into_iter().map(task).collect();
    let results = graph.submit(last).unwrap();
    open_gate(&gate);
    get_all(&results, None).unwrap();
    let order: Vec<i32> =
        fs::read_to_string(&path).unwrap().lines().map(|line| line.parse().unwrap()).collect();
    assert_eq!(order, [9, 7, 6, 5, 4, 1, 0, -3]);
    drop(results);
    session.await_quiet();
}

fn intermediate_values_are_freed_as_they_are_used(mode: Mode) {
    let session = mode.start_with(2, |init| init.store_bytes(8 << 20));
    let _entered = session.enter();
    let mut graph = TaskGraph::new();
    let mut last = block::add_to(&mut graph, Blob::default(), 1);
    for value in 2..=120_u8 {
        last = block::add_to(&mut graph, last, value);
    }
    let result = graph.submit(last).unwrap();
    let value = (1..=120).fold(0, u8::wrapping_add);
    assert_eq!(result.get().unwrap()[..], vec![value; 1 << 18]);
    let store = session.store();
    assert_eq!((store.object_count, store.spilled_count), (1, 0), "the result alone is left");
    assert!(session.spill_files().is_empty(), "120 values of 256 KiB had room in 8 MiB, one after the other");
    drop(result);
    session.await_quiet();
}

fn a_cancelled_result_leaves_the_others(mode: Mode) {
    let session = mode.start(1);
    let _entered = session.enter();
    let (gate, ran) = (session.path("gate"), session.path("ran"));
    let mut graph = TaskGraph::new();
    let first = after::add_to(&mut graph, gate.clone(), 1);
    let middle = marked::add_to(&mut graph, ran.clone(), first);
    let behind = marked::add_to(&mut graph, ran.clone(), middle);
    let beside = mix::add_to(&mut graph, first, 2);
    let (middle, behind, beside) = graph.submit((middle, behind, beside)).unwrap();
    cancel(&middle, false, false).unwrap();
    open_gate(&gate);
    assert_eq!(middle.get().unwrap_err().kind(), FailureKind::Cancelled);
    let error = behind.get().unwrap_err();
    assert_eq!(error.kind(), FailureKind::DependencyFailed, "{error}");
    assert_eq!(beside.get().unwrap(), mix(1, 2));
    assert_eq!(marks(&ran), 0);
    drop((middle, behind, beside));
    session.await_quiet();
}

fn a_graph_none_of_whose_results_is_wanted_ends(mode: Mode) {
    let session = mode.start(1);
    let _entered = session.enter();
    let (gate, ran) = (session.path("gate"), session.path("ran"));
    let mut graph = TaskGraph::new();
    let ready = seed::add_to(&mut graph, 5);
    let first = after::add_to(&mut graph, gate.clone(), 1);
    let mut last = first;
    for _ in 0..100 {
        last = marked::add_to(&mut graph, ran.clone(), last);
    }
    let (ready, last) = graph.submit((ready, last)).unwrap();
    assert_eq!(ready.get().unwrap(), seed(5));
    // The other result is there already, so nobody waits for anything of the graph.
    cancel(&last, true, false).unwrap();
    assert_eq!(last.get().unwrap_err().kind(), FailureKind::Cancelled);
    open_gate(&gate);
    assert_eq!(ready.get().unwrap(), seed(5), "what has ended stays");
    drop((ready, last));
    session.await_quiet();
    assert_eq!(marks(&ran), 0, "no task of the graph has started since");
}

fn a_graph_ends_with_its_session(mode: Mode) {
    let session = mode.start(1);
    let entered = session.enter();
    let ran = session.path("ran");
    let mut graph = TaskGraph::new();
    let mut last = seed::add_to(&mut graph, 1);
    for _ in 0..50_000 {
        last = marked::add_to(&mut graph, ran.clone(), last);
    }
    let result = graph.submit(last).unwrap();
    drop(entered);
    drop(session);
    assert_eq!(result.get().unwrap_err().kind(), FailureKind::Shutdown);
}

/// Submits a graph and waits for it.
#[remote(max_retries = 0)]
fn chain_of(gate: String, ran: String) -> u64 {
    let mut graph = TaskGraph::new();
    let mut last = after::add_to(&mut graph, gate, 1);
    for _ in 0..10 {
        last = marked::add_to(&mut graph, ran.clone(), last);
    }
    graph.submit(last).unwrap().get().unwrap()
}

fn a_graph_of_a_task_is_cancelled_with_it(mode: Mode) {
    let session = mode.start(2);
    let _entered = session.enter();
    let (gate, ran) = (session.path("gate"), session.path("ran"));
    let parent = chain_of::remote(gate.clone(), ran.clone());
    session.await_report("the graph is there", |report| 12 <= report.task_count);
    cancel(&parent, false, true).unwrap();
    assert!(parent.get().is_err());
    open_gate(&gate);
    drop(parent);
    session.await_quiet();
    assert_eq!(marks(&ran), 0);
}

fn a_graph_that_is_not_sound_leaves_nothing(mode: Mode) {
    let session = mode.start(1);
    let other = mode.start(1);
    let foreign = {
        let _entered = other.enter();
        put(&1_u64).unwrap()
    };
    let _entered = session.enter();
    let refused = |graph: TaskGraph, kind: FailureKind, text: &str| {
        let error = graph.submit(()).unwrap_err();
        assert_eq!(error.kind(), kind, "{error}");
        assert!(error.to_string().contains(text), "{error}");
    };
    refused(TaskGraph::new(), FailureKind::InvalidArgument, "no tasks");
    let (mut one, mut two) = (TaskGraph::new(), TaskGraph::new());
    let of_one = seed::add_to(&mut one, 1);
    mix::add_to(&mut two, of_one, 1);
    refused(two, FailureKind::InvalidArgument, "of another graph");
    let error = mix::remote(of_one, 1).get().unwrap_err();
    assert_eq!(error.kind(), FailureKind::InvalidArgument, "{error}");
    let mut two = TaskGraph::new();
    seed::add_to(&mut two, 1);
    assert_eq!(two.submit(of_one).unwrap_err().kind(), FailureKind::InvalidArgument);
    let mut graph = TaskGraph::new();
    seed::add_to(&mut graph, 1);
    mix::add_to(&mut graph, &foreign, 1);
    seed::add_to(&mut graph, 2);
    refused(graph, FailureKind::InvalidReference, "another session");
    let mut graph = TaskGraph::new();
    seed::options().num_cpus(-1.0).add_to(&mut graph, 1);
    refused(graph, FailureKind::InvalidArgument, "num_cpus");
    // A reference without a value: its task was never submitted.
    let mut graph = TaskGraph::new();
    mix::add_to(&mut graph, seed::options().num_cpus(-1.0).remote(1), 1);
    refused(graph, FailureKind::DependencyFailed, "could not be submitted");
    drop(one);
    session.await_quiet();
}

/// Ends its process the first time.
#[remote]
fn dies_once(path: String, x: u64) -> u64 {
    mark(&path);
    if marks(&path) == 1 {
        std::process::exit(7);
    }
    x
}

fn a_graph_survives_a_worker(mode: Mode) {
    let session = mode.start(2);
    let _entered = session.enter();
    let died = session.path("died");
    let mut graph = TaskGraph::new();
    let before = layers(&mut graph, 10, 20);
    let (middle, value) = before[before.len() - 1];
    let middle = dies_once::add_to(&mut graph, died.clone(), middle);
    let others: Vec<_> = before[180..].iter().map(|(planned, _)| *planned).chain([middle]).collect();
    let total = sum::add_to(&mut graph, others);
    let expected = before[180..].iter().fold(value, |sum, (_, value)| sum.wrapping_add(*value));
    let total = graph.submit(total).unwrap();
    assert_eq!((total.get().unwrap(), marks(&died)), (expected, 2));
    drop(total);
    session.await_quiet();
}

/// Submits a graph, and ends its process the first time, before the graph has ended or after.
#[remote]
fn submits_twice(gate: String, began: String, ran: String) -> u64 {
    let mut graph = TaskGraph::new();
    let mut last = after::add_to(&mut graph, gate.clone(), 1);
    for _ in 0..5 {
        last = marked::add_to(&mut graph, ran.clone(), last);
    }
    let result = graph.submit(last).unwrap();
    mark(&began);
    if marks(&began) == 1 {
        // The node reads the records that stand in the ring.
        std::process::exit(7);
    }
    open_gate(&gate);
    result.get().unwrap()
}

fn a_task_that_runs_again_finds_the_work_of_its_graph(mode: Mode) {
    let session = mode.start(2);
    let _entered = session.enter();
    let (gate, began, ran) = (session.path("gate"), session.path("began"), session.path("ran"));
    let result = submits_twice::remote(gate, began.clone(), ran.clone());
    assert_eq!((result.get().unwrap(), marks(&began)), (1, 2));
    assert_eq!(marks(&ran), 5, "each task of the graph has run once");
    drop(result);
    session.await_quiet();
}
