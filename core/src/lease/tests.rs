//! Tests of grants: order of requests, and workers that make way for others.

mod turns;

use super::*;
use crate::MS;
use tharsis_types::{FunctionId, Placement, TaskId};

const OWNER: NodeId = NodeId(1);
/// The task that made the placement group of these tests.
const GROUP: TaskId = TaskId::from_bytes([7; TaskId::LEN]);

/// Leases of a node, with the workers that they ask for.
struct Bench {
    leases: Leases,
    now: Now,
    next: u64,
    effects: Vec<Effect>,
    /// Leases that are granted and not ended.
    active: Vec<LeaseKey>,
}

impl Bench {
    fn new(cpus: f64) -> Self {
        let leases = Leases::new(Resources::cpus(cpus).unwrap());
        Self { leases, now: 0, next: 0, effects: Vec::new(), active: Vec::new() }
    }

    fn pass(&mut self, ms: u64) {
        self.now += ms * MS;
        self.leases.advance(self.now);
    }

    fn ask(&mut self, job: u32, cpus: f64) -> LeaseKey {
        self.next += 1;
        let key = (OWNER, LeaseId(self.next));
        self.leases.request(key, class(job, cpus), true, 0, &mut self.effects);
        self.follow();
        key
    }

    /// Asks for a bundle of the group, or for a lease inside.
    fn ask_group(&mut self, placement: Placement, cpus: f64) -> LeaseKey {
        self.next += 1;
        let key = (OWNER, LeaseId(self.next));
        let class = TaskClass { placement, ..(*class(1, cpus)).clone() };
        self.leases.request(key, Arc::new(class), true, 0, &mut self.effects);
        key
    }

    fn reserve(&mut self, index: u32, cpus: f64) -> LeaseKey {
        let key = self.ask_group(Placement::Bundle { group: GROUP, index }, cpus);
        assert_eq!(self.follow(), []);
        key
    }

    fn ask_inside(&mut self, bundle: Option<u32>, cpus: f64) -> LeaseKey {
        let key = self.ask_group(Placement::Group { group: GROUP, bundle }, cpus);
        assert_eq!(self.follow(), []);
        key
    }

    /// The run of a worker has constructed an actor.
    fn constructed(&mut self, client: ClientId) {
        self.leases.constructed(client, TaskId::from_bytes([9; TaskId::LEN]), 0, &mut self.effects);
        assert_eq!(self.follow(), []);
    }

    fn free_cpus(&self) -> f64 {
        self.leases.free().cpu as f64 / Resources::UNIT as f64
    }

    fn end(&mut self, key: LeaseKey) {
        self.active.retain(|k| *k != key);
        self.leases.end(key, &mut self.effects);
        self.follow();
    }

    /// Starts workers as they are asked for; returns everything else.
    fn follow(&mut self) -> Vec<Effect> {
        let mut others = Vec::new();
        while !self.effects.is_empty() {
            for effect in std::mem::take(&mut self.effects) {
                match effect {
                    Effect::StartWorker { start, .. } => {
                        let client = ClientId(start as u32);
                        assert!(self.leases.worker_ready(start, client, &mut self.effects));
                    }
                    Effect::Granted(key, _) | Effect::Reserved(key) => self.active.push(key),
                    other => others.push(other),
                }
            }
            self.leases.check();
        }
        others
    }

    /// Asks leases back for one round; returns those that were recalled.
    fn recall(&mut self) -> Vec<LeaseKey> {
        self.leases.recall(|_| false, &mut self.effects);
        let recalled = self.follow().into_iter();
        recalled.filter_map(|e| if let Effect::Recall(key) = e { Some(key) } else { None }).collect()
    }

    fn is_active(&self, key: LeaseKey) -> bool {
        self.active.contains(&key)
    }
}

fn class(job: u32, cpus: f64) -> Arc<TaskClass> {
    let resources = Resources::cpus(cpus).unwrap();
    Arc::new(TaskClass { resources, ..TaskClass::new(JobId(job), FunctionId(1), "f") })
}

#[test]
fn a_request_that_is_raised_goes_before_others() {
    let mut bench = Bench::new(1.0);
    let asked: Vec<_> = (0..4).map(|_| bench.ask(1, 1.0)).collect();
    for (key, urgency) in [(asked[2], 3), (asked[3], 7), (asked[2], 2), (asked[0], 9)] {
        bench.leases.raise(key, urgency);
        bench.leases.check();
    }
    for key in [asked[0], asked[3], asked[2], asked[1]] {
        assert!(bench.is_active(key), "{key:?}, of {asked:?}");
        bench.end(key);
        bench.leases.raise(key, i32::MAX);
        assert!(!bench.is_active(key), "an ended request is not made anew");
    }
}

#[test]
fn a_wide_request_gets_its_room_although_narrow_ones_keep_coming() {
    let mut bench = Bench::new(2.0);
    let mut narrow = vec![bench.ask(1, 1.0), bench.ask(1, 1.0)];
    let wide = bench.ask(1, 2.0);
    for round in 0..200 {
        if bench.is_active(wide) {
            assert!((100..=110).contains(&round), "after {round} ms");
            return;
        }
        narrow.push(bench.ask(1, 1.0));
        let at = narrow.iter().position(|key| bench.is_active(*key)).unwrap();
        bench.pass(1);
        bench.end(narrow.remove(at));
        // Until resources are reserved for it, later requests use them.
        assert!(100 * MS <= bench.now || bench.active.len() == 2);
    }
    panic!("the wide request starves");
}

/// A request that waits for what an actor holds waits alone: others are served, also those of other nodes.
#[test]
fn a_request_that_actors_make_unservable_reserves_nothing() {
    let mut bench = Bench::new(4.0);
    let actor = bench.ask(1, 1.0);
    let host = bench.leases.worker(actor).unwrap();
    bench.constructed(host);
    let wide = bench.ask(1, 4.0);
    for _ in 0..100 {
        bench.pass(10);
        let narrow: Vec<_> = (0..3).map(|_| bench.ask(2, 1.0)).collect();
        assert!(narrow.iter().all(|key| bench.is_active(*key)), "at {} ms", bench.now / MS);
        narrow.into_iter().for_each(|key| bench.end(key));
        assert!(bench.leases.has_room(&class(2, 3.0)), "another node may ask too");
    }
    // With the actor gone it is served as before.
    let narrow = bench.ask(2, 1.0);
    bench.end(actor);
    assert!(!bench.is_active(wide) && !bench.leases.has_room(&class(2, 1.0)));
    let later = bench.ask(2, 1.0);
    assert!(!bench.is_active(later), "the resources are reserved");
    bench.end(narrow);
    assert!(bench.is_active(wide));
}

/// A lease that does not end, for whatever reason, does not keep the rest of the node idle.
#[test]
fn a_reservation_lets_others_pass_from_time_to_time() {
    let mut bench = Bench::new(2.0);
    let endless = bench.ask(1, 1.0);
    let wide = bench.ask(1, 2.0);
    let (mut served, mut narrow) = (0, None);
    for _ in 0..1000 {
        bench.pass(100);
        bench.leases.end_reservations(&mut bench.effects);
        bench.follow();
        let key = *narrow.get_or_insert_with(|| bench.ask(1, 1.0));
        if bench.is_active(key) {
            bench.end(key);
            (served, narrow) = (served + 1, None);
        }
    }
    assert!((330..700).contains(&served), "{served} of 1000");
    bench.end(endless);
    assert!(bench.is_active(wide));
}

/// Priority says which request of a job is served first; what jobs get is a matter of their weights.
#[test]
fn the_priority_of_one_job_takes_nothing_from_another() {
    let mut bench = Bench::new(1.0);
    bench.leases.set_weight(JobId(1), 300);
    let ask = |bench: &mut Bench, job: u32, priority: i32| {
        bench.next += 1;
        let key = (OWNER, LeaseId(bench.next));
        let class = TaskClass { priority, ..(*class(job, 1.0)).clone() };
        bench.leases.request(key, Arc::new(class), true, priority, &mut bench.effects);
        bench.follow();
        key
    };
    let mut waiting =
        vec![(1, ask(&mut bench, 1, 0)), (2, ask(&mut bench, 2, 7)), (2, ask(&mut bench, 2, 9))];
    let mut served = [0, 0];
    let mut last = None;
    for _ in 0..400 {
        let at = waiting.iter().position(|(_, key)| bench.is_active(*key)).unwrap();
        let (job, key) = waiting.remove(at);
        served[job as usize - 1] += 1;
        bench.pass(10);
        waiting.push((job, ask(&mut bench, job, if job == 1 { 0 } else { 8 })));
        last = Some(key);
        bench.end(key);
    }
    assert!(last.is_some() && (280..=320).contains(&served[0]), "{served:?} of 400, at weights of 3 to 1");
}

/// A task has ended while a thread that was left in its worker waits for a task that takes the CPU.
#[test]
fn a_lease_whose_task_has_ended_waits_for_no_cpu_that_it_has_lent() {
    let mut bench = Bench::new(1.0);
    let over = bench.ask(1, 1.0);
    let client = bench.leases.worker(over).unwrap();
    bench.leases.blocked(client, &mut bench.effects);
    let child = bench.ask(1, 1.0);
    assert!(bench.is_active(child));
    bench.leases.unblocked(client, &mut bench.effects);
    assert_eq!(bench.follow(), [], "the CPU is taken");
    bench.leases.end_lent(client, &mut bench.effects);
    assert_eq!(bench.follow(), [Effect::Revoked(over), Effect::Resume(client)]);
    bench.leases.end_lent(client, &mut bench.effects);
    assert_eq!(bench.follow(), [], "it has nothing any more");
    let next = bench.ask(1, 1.0);
    assert!(!bench.is_active(next));
    bench.leases.end(child, &mut bench.effects);
    bench.follow();
    assert!(bench.is_active(next), "by one of the two idle workers");
}

#[test]
fn an_idle_lease_makes_way_for_a_worker_that_resumes() {
    let mut bench = Bench::new(1.0);
    let parent = bench.ask(1, 1.0);
    let client = bench.leases.worker(parent).unwrap();
    bench.leases.blocked(client, &mut bench.effects);
    let child = bench.ask(1, 1.0);
    assert!(bench.is_active(child));
    bench.leases.unblocked(client, &mut bench.effects);
    bench.leases.make_way(|c| c != client, false, &mut bench.effects);
    assert_eq!(bench.follow(), [Effect::Recall(child)]);
    // An idle lease is asked back only once.
    bench.leases.make_way(|c| c != client, false, &mut bench.effects);
    assert_eq!(bench.follow(), []);
    bench.leases.end(child, &mut bench.effects);
    assert_eq!(bench.follow(), [Effect::Resume(client)]);
}

#[test]
fn a_worker_that_needs_no_cpus_does_not_stand_behind_those_that_wait_for_theirs() {
    let mut bench = Bench::new(1.0);
    let (parent, light) = (bench.ask(1, 1.0), bench.ask(1, 0.0));
    let (client, light) = (bench.leases.worker(parent).unwrap(), bench.leases.worker(light).unwrap());
    for client in [client, light] {
        bench.leases.blocked(client, &mut bench.effects);
    }
    let child = bench.ask(1, 1.0);
    assert!(bench.is_active(child));
    bench.leases.unblocked(client, &mut bench.effects);
    assert_eq!(bench.follow(), [], "its CPU is in use");
    bench.leases.unblocked(light, &mut bench.effects);
    assert_eq!(bench.follow(), [Effect::Resume(light)]);
    assert!(!bench.leases.is_blocked(light));
    bench.end(child);
}

#[test]
fn a_lease_whose_worker_is_still_starting_makes_way_and_gets_its_worker_later() {
    let mut bench = Bench::new(1.0);
    let parent = bench.ask(1, 1.0);
    let client = bench.leases.worker(parent).unwrap();
    bench.leases.blocked(client, &mut bench.effects);
    let child = (OWNER, LeaseId(9));
    bench.leases.request(child, class(1, 1.0), true, 0, &mut bench.effects);
    let start = match bench.effects.drain(..).next() {
        Some(Effect::StartWorker { start, .. }) => start,
        other => panic!("{other:?} instead of a start"),
    };
    bench.leases.unblocked(client, &mut bench.effects);
    bench.leases.make_way(|_| false, false, &mut bench.effects);
    assert_eq!(bench.follow(), [Effect::Resume(client)]);
    assert!(bench.leases.worker_ready(start, ClientId(50), &mut bench.effects));
    bench.follow();
    assert!(!bench.is_active(child));
    bench.end(parent);
    assert!(bench.is_active(child));
}

#[test]
fn a_newcomer_gets_half_of_the_node_at_once() {
    let mut bench = Bench::new(2.0);
    let held = [bench.ask(1, 1.0), bench.ask(1, 1.0)];
    bench.pass(10_000);
    let _also_waits = bench.ask(1, 1.0);
    let newcomer = bench.ask(2, 1.0);
    let recalled = bench.recall();
    assert_eq!(recalled.len(), 1);
    bench.pass(1);
    bench.end(recalled[0]);
    assert!(bench.is_active(newcomer));
    assert_eq!(held.iter().filter(|key| bench.is_active(**key)).count(), 1);
    // Each job has half: no lease is asked back any more.
    let _more = bench.ask(2, 1.0);
    (0..100).for_each(|_| {
        bench.pass(10);
        assert_eq!(bench.recall(), []);
    });
}

/// Runs two jobs that always want more for ten seconds; returns the time of each, in ms.
fn time_of_two(cpus: f64, weights: [u32; 2]) -> [u64; 2] {
    let mut bench = Bench::new(cpus);
    let mut jobs: BTreeMap<LeaseKey, usize> = BTreeMap::new();
    (0..2).for_each(|i| bench.leases.set_weight(JobId(i as u32 + 1), weights[i]));
    let mut had = [0, 0];
    for ms in 0..10_000 {
        for i in 0..2 {
            let waits = jobs.iter().any(|(key, of)| *of == i && !bench.is_active(*key));
            if !waits {
                let key = bench.ask(i as u32 + 1, 1.0);
                jobs.insert(key, i);
            }
        }
        bench.active.iter().for_each(|key| had[jobs[key]] += 1);
        bench.pass(1);
        let recalled = if ms % 10 == 0 { bench.recall() } else { Vec::new() };
        for key in recalled {
            bench.end(key);
            jobs.remove(&key);
        }
    }
    had
}

#[test]
fn a_worker_that_was_cut_off_takes_what_it_took_until_it_is_gone() {
    let mut bench = Bench::new(2.0);
    let (first, second) = (bench.ask(1, 1.0), bench.ask(1, 1.0));
    let worker = |bench: &Bench, key| bench.leases.worker(key).unwrap();
    let (computes, waits) = (worker(&bench, first), worker(&bench, second));
    bench.leases.blocked(waits, &mut bench.effects);
    bench.follow();
    for client in [computes, waits] {
        bench.leases.worker_cut_off(client, &mut bench.effects);
        assert!(bench.follow().iter().any(|effect| matches!(effect, Effect::Revoked(_))));
    }
    assert_eq!(bench.leases.free().cpu, Resources::UNIT, "what is lent is free, nothing else");
    // Their job ends, and is forgotten with the last of them.
    bench.leases.job_ended(JobId(1));
    let (other, late) = (bench.ask(2, 1.0), bench.ask(2, 1.0));
    assert!(bench.is_active(other) && !bench.is_active(late));
    bench.leases.worker_gone(waits, &mut bench.effects);
    bench.follow();
    assert!(!bench.is_active(late), "what it had was lent");
    for _ in 0..2 {
        bench.leases.worker_gone(computes, &mut bench.effects);
        bench.follow();
    }
    assert!(bench.is_active(late));
    bench.end(other);
    bench.end(late);
    assert_eq!(bench.leases.free(), bench.leases.total());
}

#[test]
fn jobs_share_a_node_by_their_weights() {
    for cpus in [1.0, 2.0, 3.0] {
        let [first, second] = time_of_two(cpus, [100, 100]);
        let all = first + second;
        assert!((all * 45..all * 55).contains(&(first * 100)), "{cpus} CPUs: {first} and {second} ms");
    }
    let [first, second] = time_of_two(1.0, [300, 100]);
    let all = first + second;
    assert!((all * 70..all * 80).contains(&(first * 100)), "by weight: {first} and {second} ms");
}

#[test]
fn workers_of_a_nest_stay_for_a_moment_and_then_as_many_as_there_are_cpus() {
    let mut bench = Bench::new(2.0);
    let nest: Vec<_> = (0..4).map(|_| bench.ask(1, 1.0)).collect();
    for key in &nest {
        let worker = bench.leases.worker(*key).unwrap();
        bench.leases.blocked(worker, &mut bench.effects);
        bench.follow();
    }
    for _ in 0..100 {
        bench.pass(1);
        let key = bench.ask(1, 1.0);
        bench.end(key);
    }
    assert_eq!(bench.leases.worker_count(), 5, "one worker served them all");
    nest.into_iter().for_each(|key| bench.end(key));
    assert_eq!((bench.leases.next_timeout(), bench.leases.worker_count()), (Some(bench.now + 500 * MS), 5));
    bench.pass(499);
    bench.leases.stop_surplus(&mut bench.effects);
    assert_eq!(bench.follow(), []);
    bench.pass(1);
    bench.leases.stop_surplus(&mut bench.effects);
    assert_eq!(bench.follow().len(), 3);
    assert_eq!((bench.leases.next_timeout(), bench.leases.worker_count()), (None, 2));
}

#[test]
fn a_job_keeps_one_idle_worker_beyond_the_cpus() {
    let mut bench = Bench::new(1.0);
    for job in 1..=3 {
        let key = bench.ask(job, 1.0);
        bench.end(key);
    }
    assert_eq!(bench.leases.next_timeout(), None);
    bench.pass(500);
    bench.leases.stop_surplus(&mut bench.effects);
    assert_eq!(bench.follow(), []);
    assert_eq!(bench.leases.worker_count(), 3);
    bench.leases.job_ended(JobId(3));
    let starts = bench.leases.clock;
    let key = bench.ask(2, 1.0);
    bench.end(key);
    assert_eq!(bench.leases.clock, starts + 1, "a request, no start");
}

#[test]
fn leases_of_a_group_take_what_its_bundles_have_and_no_more() {
    let mut bench = Bench::new(4.0);
    let bundles = [bench.reserve(0, 1.0), bench.reserve(1, 2.0)];
    assert!(bundles.iter().all(|key| bench.is_active(*key)));
    assert_eq!(bench.free_cpus(), 1.0);
    let inside: Vec<_> = (0..3).map(|_| bench.ask_inside(Some(1), 1.0)).collect();
    let any = [bench.ask_inside(None, 1.0), bench.ask_inside(None, 1.0)];
    let active: Vec<_> = inside.iter().chain(&any).map(|key| bench.is_active(*key)).collect();
    assert_eq!(active, [true, true, false, true, false]);
    assert_eq!(bench.free_cpus(), 1.0, "they take nothing of the node");
    assert_eq!(bench.leases.waiting_count(), 0, "they wait for nothing of the node");
    let outside = bench.ask(2, 1.0);
    assert!(bench.is_active(outside), "those that wait inside hold nobody up outside");
    bench.end(inside[0]);
    assert!(bench.is_active(inside[2]) && !bench.is_active(any[1]));
    bench.end(any[0]);
    assert!(bench.is_active(any[1]));
}

#[test]
fn a_lease_inside_waits_only_where_its_bundle_is() {
    let mut bench = Bench::new(2.0);
    let refused = bench.ask_group(Placement::Group { group: GROUP, bundle: None }, 1.0);
    assert_eq!(bench.follow(), [Effect::Denied(refused)]);
    bench.reserve(0, 1.0);
    let second = bench.ask_group(Placement::Bundle { group: GROUP, index: 0 }, 1.0);
    assert_eq!(bench.follow(), [Effect::Denied(second)], "a bundle is reserved once");
    let elsewhere = bench.ask_group(Placement::Group { group: GROUP, bundle: Some(1) }, 1.0);
    assert_eq!(bench.follow(), [Effect::Denied(elsewhere)]);
}

#[test]
fn of_two_requests_for_a_bundle_that_wait_one_is_served_and_the_other_denied() {
    let mut bench = Bench::new(1.0);
    let holder = bench.ask(2, 1.0);
    let asked: Vec<_> =
        (0..2).map(|_| bench.ask_group(Placement::Bundle { group: GROUP, index: 0 }, 1.0)).collect();
    assert_eq!(bench.follow(), []);
    bench.active.retain(|key| *key != holder);
    bench.leases.end(holder, &mut bench.effects);
    assert_eq!(bench.follow(), [Effect::Denied(asked[1])]);
    assert!(bench.is_active(asked[0]));
}

/// A request that cannot wait passes those that wait for other resources: it takes nothing from them.
#[test]
fn what_waits_for_cpus_keeps_nothing_else_from_others() {
    let total = Resources { gpu: 2 * Resources::UNIT, ..Resources::cpus(1.0).unwrap() };
    let mut leases = Leases::new(total);
    let mut out = Vec::new();
    for lease in 1..4 {
        leases.request((OWNER, LeaseId(lease)), class(1, 1.0), true, 0, &mut out);
    }
    let with = |gpu, cpus: f64| TaskClass {
        resources: Resources { gpu, ..Resources::cpus(cpus).unwrap() },
        ..(*class(2, 0.0)).clone()
    };
    assert!(leases.has_room(&with(Resources::UNIT, 0.0)) && leases.has_room(&with(0, 0.0)));
    assert!(
        !leases.has_room(&with(Resources::UNIT, 1.0)) && !leases.has_room(&with(3 * Resources::UNIT, 0.0))
    );
}

/// Whatever holds a worker back that was to resume inside a group, the others there go on when it is gone.
#[test]
fn what_waits_inside_goes_on_when_the_worker_that_was_to_resume_there_is_cut_off() {
    let mut bench = Bench::new(2.0);
    bench.reserve(0, 1.0);
    let parent = bench.ask_inside(Some(0), 1.0);
    let client = bench.leases.worker(parent).unwrap();
    bench.leases.blocked(client, &mut bench.effects);
    let child = bench.ask_inside(Some(0), 1.0);
    bench.leases.unblocked(client, &mut bench.effects);
    bench.follow();
    bench.end(child);
    assert!(!bench.leases.is_blocked(client), "it has its CPU again");
    bench.leases.blocked(client, &mut bench.effects);
    let half = bench.ask_inside(Some(0), 0.5);
    bench.leases.unblocked(client, &mut bench.effects);
    let other = bench.ask_inside(Some(0), 0.5);
    assert!(bench.is_active(half) && !bench.is_active(other), "nothing passes the one that resumes");
    bench.leases.worker_cut_off(client, &mut bench.effects);
    bench.follow();
    assert!(bench.is_active(other), "what it lent is free");
}

#[test]
fn what_waits_inside_is_served_when_its_job_is_again() {
    let mut bench = Bench::new(2.0);
    bench.reserve(0, 1.0);
    bench.leases.serve_only([JobId(2)].into(), &mut bench.effects);
    let inside: Vec<_> = (0..2).map(|_| bench.ask_inside(None, 0.5)).collect();
    let waits = |bench: &Bench| inside.iter().filter(|key| !bench.is_active(**key)).count();
    assert_eq!(waits(&bench), 2);
    bench.leases.serve_also(JobId(1));
    let outside = bench.ask(2, 1.0);
    assert!(bench.is_active(outside) && waits(&bench) == 0);
}

#[test]
fn a_node_without_resources_gives_leases_to_itself_alone() {
    let mut bench = Bench::new(0.0);
    bench.leases.serve_own_only(OWNER);
    let own = bench.ask(1, 0.0);
    assert!(bench.is_active(own));
    let other = (NodeId(2), LeaseId(1));
    for wait in [false, true] {
        bench.leases.request(other, class(2, 0.0), wait, 0, &mut bench.effects);
        assert_eq!(bench.follow(), [Effect::Denied(other)]);
    }
}

#[test]
fn blocked_workers_lend_inside_their_bundle() {
    let mut bench = Bench::new(2.0);
    bench.reserve(0, 1.0);
    let parent = bench.ask_inside(Some(0), 1.0);
    let client = bench.leases.worker(parent).unwrap();
    bench.leases.blocked(client, &mut bench.effects);
    bench.follow();
    let child = bench.ask_inside(Some(0), 1.0);
    let outside = [bench.ask(2, 1.0), bench.ask(2, 1.0)];
    assert!(bench.is_active(child));
    let active: Vec<_> = outside.iter().map(|key| bench.is_active(*key)).collect();
    assert_eq!(active, [true, false], "what is lent inside is not for others");
    bench.leases.unblocked(client, &mut bench.effects);
    bench.leases.make_way(|_| true, false, &mut bench.effects);
    assert_eq!(bench.follow(), [Effect::Recall(child)], "only what is inside makes way");
    bench.end(child);
    assert!(!bench.leases.is_blocked(client));
}

#[test]
fn e10_the_end_of_a_bundle_ends_what_is_inside() {
    let mut bench = Bench::new(2.0);
    let bundle = bench.reserve(0, 2.0);
    let inside = [bench.ask_inside(Some(0), 2.0), bench.ask_inside(None, 1.0)];
    let client = bench.leases.worker(inside[0]).unwrap();
    let outside = bench.ask(2, 2.0);
    bench.leases.end(bundle, &mut bench.effects);
    let effects = bench.follow();
    assert_eq!(effects, [Effect::Evict(client), Effect::Denied(inside[1])]);
    assert_eq!(bench.free_cpus(), 0.0, "it has its resources until what runs inside is gone");
    assert!(!bench.is_active(outside));
    let late = bench.ask_group(Placement::Group { group: GROUP, bundle: None }, 1.0);
    assert_eq!(bench.follow(), [Effect::Denied(late)]);
    bench.leases.worker_gone(client, &mut bench.effects);
    assert_eq!(bench.follow(), [Effect::Revoked(inside[0])]);
    assert!(bench.is_active(outside));
    assert_eq!(bench.leases.bundle_count(), 0);
}

#[test]
fn a_worker_that_cannot_be_killed_keeps_its_part_of_a_bundle() {
    let mut bench = Bench::new(1.0);
    let bundle = bench.reserve(0, 1.0);
    let inside = bench.ask_inside(None, 1.0);
    let client = bench.leases.worker(inside).unwrap();
    bench.leases.end(bundle, &mut bench.effects);
    assert_eq!(bench.follow(), [Effect::Evict(client)]);
    bench.leases.worker_cut_off(client, &mut bench.effects);
    assert_eq!(bench.follow(), [Effect::Revoked(inside)]);
    assert_eq!((bench.free_cpus(), bench.leases.bundle_count()), (0.0, 1));
    bench.leases.worker_gone(client, &mut bench.effects);
    bench.follow();
    assert_eq!((bench.free_cpus(), bench.leases.bundle_count()), (1.0, 0));
}

#[test]
fn a_node_that_drains_asks_its_bundles_back_and_lets_what_is_inside_end() {
    let mut bench = Bench::new(2.0);
    let bundle = bench.reserve(0, 1.0);
    let empty = bench.reserve(1, 1.0);
    let inside = bench.ask_inside(Some(0), 1.0);
    bench.leases.drain(OWNER, &mut bench.effects);
    let effects = bench.follow();
    for wanted in [Effect::Recall(bundle), Effect::Recall(inside), Effect::Revoked(empty)] {
        assert!(effects.contains(&wanted), "{wanted:?} is not among {effects:?}");
    }
    bench.leases.end(inside, &mut bench.effects);
    assert!(bench.follow().contains(&Effect::Revoked(bundle)));
    assert_eq!(bench.leases.lease_count(), 0);
}

#[test]
fn in_any_order_of_events_what_bundles_hold_adds_up() {
    let mut random = 1_u64;
    let mut below = |end: u64| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) % end
    };
    for _ in 0..40 {
        let mut bench = Bench::new(4.0);
        let mut clients: Vec<ClientId> = Vec::new();
        for _ in 0..150 {
            let index = below(3) as u32;
            let bundle = (below(2) == 0).then_some(index);
            match below(9) {
                0 => {
                    bench.ask_group(Placement::Bundle { group: GROUP, index }, 1.0 + below(2) as f64);
                }
                1 | 2 => {
                    bench.ask_group(Placement::Group { group: GROUP, bundle }, 1.0);
                }
                3 => {
                    bench.ask(1 + below(2) as u32, 1.0);
                }
                4 | 5 if 0 < bench.next => {
                    let key = (OWNER, LeaseId(1 + below(bench.next)));
                    bench.leases.end(key, &mut bench.effects);
                }
                6 if !clients.is_empty() => {
                    let client = clients[below(clients.len() as u64) as usize];
                    bench.leases.blocked(client, &mut bench.effects);
                    bench.leases.unblocked(client, &mut bench.effects);
                }
                7 if !clients.is_empty() => {
                    let client = clients.swap_remove(below(clients.len() as u64) as usize);
                    bench.leases.worker_gone(client, &mut bench.effects);
                }
                _ => {
                    bench.pass(below(60));
                    bench.leases.make_way(|_| false, true, &mut bench.effects);
                    bench.leases.recall(|_| true, &mut bench.effects);
                }
            }
            for effect in bench.follow() {
                if let Effect::Evict(client) = effect {
                    bench.leases.worker_gone(client, &mut bench.effects);
                }
            }
            bench.follow();
            clients = bench.leases.workers().map(|(client, _)| client).collect();
        }
        for number in 1..=bench.next {
            bench.leases.end((OWNER, LeaseId(number)), &mut bench.effects);
            for effect in bench.follow() {
                if let Effect::Evict(client) = effect {
                    bench.leases.worker_gone(client, &mut bench.effects);
                }
            }
        }
        bench.follow();
        assert_eq!((bench.leases.free(), bench.leases.bundle_count()), (bench.leases.total(), 0));
    }
}

/// Starts that were asked for, each with its process.
fn starts(effects: &[Effect]) -> Vec<(u64, Option<ProcessNumber>)> {
    let start = |effect: &Effect| match effect {
        Effect::StartWorker { start, process, .. } => Some((*start, *process)),
        _ => None,
    };
    effects.iter().filter_map(start).collect()
}

/// Asks for a worker that may share its process.
fn ask_shared(leases: &mut Leases, lease: u64, out: &mut Vec<Effect>) -> LeaseKey {
    let key = (OWNER, LeaseId(lease));
    let class = TaskClass { shared_process: true, ..(*class(1, 0.0)).clone() };
    leases.request(key, Arc::new(class), true, 0, out);
    key
}

#[test]
fn workers_that_share_a_process_serve_only_those_who_ask_for_it() {
    let (mut leases, mut out) = (Leases::new(Resources::cpus(2.0).unwrap()), Vec::new());
    leases.prestart(JobId(1), &mut out);
    assert!(leases.worker_ready(starts(&out)[0].0, ClientId(1), &mut out));
    out.clear();
    let shared: Vec<_> = (1..=3).map(|lease| ask_shared(&mut leases, lease, &mut out)).collect();
    let begun = starts(&out);
    assert_eq!(begun.len(), 3, "the idle worker has a process of its own");
    assert!(begun.iter().all(|(_, process)| *process == Some(ProcessNumber(1))), "{begun:?}");
    leases.check();
    let plain = (OWNER, LeaseId(9));
    leases.request(plain, class(1, 1.0), true, 0, &mut out);
    assert_eq!(leases.worker(plain), Some(ClientId(1)), "a task gets the other worker");
    for ((start, _), client) in begun.iter().zip(2..) {
        assert!(leases.worker_ready(*start, ClientId(client), &mut out));
    }
    assert_eq!(
        shared.iter().map(|key| leases.worker(*key)).collect::<Vec<_>>(),
        [2, 3, 4].map(|c| Some(ClientId(c)))
    );
    // One whose constructor failed is not kept: it starts again in no time.
    out.clear();
    leases.end(shared[0], &mut out);
    assert_eq!(out, [Effect::StopWorker(ClientId(2))]);
    leases.worker_gone(ClientId(3), &mut out);
    leases.worker_cut_off(ClientId(4), &mut out);
    leases.check();
    out.clear();
    ask_shared(&mut leases, 10, &mut out);
    assert_eq!(starts(&out)[0].1, Some(ProcessNumber(2)), "nobody was left in the first one");
    leases.check();
}

#[test]
fn a_shared_process_that_does_not_start_fails_only_what_counted_on_it() {
    let (mut leases, mut out) = (Leases::new(Resources::cpus(2.0).unwrap()), Vec::new());
    let plain = (OWNER, LeaseId(9));
    leases.request(plain, class(1, 1.0), true, 0, &mut out);
    let shared = ask_shared(&mut leases, 1, &mut out);
    let (start, process) = starts(&out)[1];
    assert_eq!(process, Some(ProcessNumber(1)));
    assert_eq!(leases.start_failed(start, &mut out), Some(shared));
    leases.check();
    assert!(leases.worker_ready(starts(&out)[0].0, ClientId(1), &mut out));
    assert_eq!(leases.worker(plain), Some(ClientId(1)));
}

/// A request that does not fit changes nothing, and one that fits is served past those that do not.
#[test]
fn small_requests_are_served_past_large_ones_as_they_come() {
    let mut bench = Bench::new(2.0);
    let first = bench.ask(1, 1.5);
    let large: Vec<_> = (0..10).map(|_| bench.ask(1, 1.0)).collect();
    let small = bench.ask(1, 0.5);
    assert!(bench.is_active(small) && !large.iter().any(|key| bench.is_active(*key)));
    bench.end(first);
    assert_eq!(large.iter().filter(|key| bench.is_active(**key)).count(), 1);
    assert!(bench.is_active(large[0]), "the oldest");
}

/// A class with GPUs, in halves.
fn with_gpus(halves: u64, placement: Placement) -> Arc<TaskClass> {
    let resources = Resources { gpu: halves * Resources::UNIT / 2, ..Resources::default() };
    Arc::new(TaskClass { resources, placement, ..(*class(1, 0.0)).clone() })
}

/// A node with GPUs, and its leases.
struct Devices {
    leases: Leases,
    next: u64,
    out: Vec<Effect>,
}

impl Devices {
    fn new(gpus: u64) -> Self {
        let resources = Resources { gpu: gpus * Resources::UNIT, ..Resources::cpus(8.0).unwrap() };
        Self { leases: Leases::new(resources), next: 0, out: Vec::new() }
    }

    fn ask(&mut self, class: Arc<TaskClass>) -> LeaseKey {
        self.next += 1;
        let key = (OWNER, LeaseId(self.next));
        self.leases.request(key, class, true, 0, &mut self.out);
        self.leases.check();
        key
    }

    fn end(&mut self, key: LeaseKey) {
        self.leases.end(key, &mut self.out);
        self.leases.check();
    }

    /// The process of a worker has ended.
    fn gone(&mut self, client: ClientId) {
        self.leases.worker_gone(client, &mut self.out);
        self.leases.check();
    }

    /// Starts all workers that were asked for; returns the devices of each.
    fn start(&mut self) -> Vec<Vec<u32>> {
        let mut devices = Vec::new();
        for effect in std::mem::take(&mut self.out) {
            if let Effect::StartWorker { start, gpus, .. } = effect {
                assert!(self.leases.worker_ready(start, ClientId(start as u32), &mut self.out));
                self.leases.check();
                devices.push(gpus);
            }
        }
        devices
    }

    fn stopped(&mut self) -> usize {
        let stopped = |effect: &Effect| matches!(effect, Effect::StopWorker(_));
        std::mem::take(&mut self.out).iter().filter(|effect| stopped(effect)).count()
    }
}

#[test]
fn a_worker_is_started_for_its_lease_and_ends_with_its_gpus() {
    let mut node = Devices::new(2);
    let whole = [node.ask(with_gpus(2, Placement::Default)), node.ask(with_gpus(2, Placement::Default))];
    assert_eq!(node.start(), [[0], [1]]);
    assert_ne!(node.leases.worker(whole[0]), node.leases.worker(whole[1]));
    assert!(whole.iter().all(|key| node.leases.worker(*key).is_some()));
    let waits = node.ask(with_gpus(1, Placement::Default));
    assert_eq!(node.start(), [] as [Vec<u32>; 0], "both are in use");
    node.out.clear();
    let client = node.leases.worker(whole[1]).unwrap();
    node.end(whole[1]);
    assert!(node.leases.worker(waits).is_none(), "the worker of another lease is not for it");
    assert_eq!(node.stopped(), 1);
    assert_eq!(node.leases.unused().gpu, 0, "its process has memory there until it has ended");
    node.gone(client);
    assert_eq!(node.start(), [[1]]);
    assert!(node.leases.worker(waits).is_some());
    // One without GPUs does not see those of others either.
    node.end(waits);
    node.out.clear();
    let plain = node.ask(class(1, 1.0));
    assert_eq!(node.start(), [[] as [u32; 0]]);
    assert!(node.leases.worker(plain).is_some());
    node.out.clear();
    node.end(plain);
    assert_eq!(node.stopped(), 0, "it is used again");
}

/// Parts of three devices that actors leave are enough for a whole one, and none of the three is whole.
#[test]
fn a_request_for_a_device_that_actors_have_in_part_reserves_nothing() {
    let mut node = Devices::new(3);
    let part = |gpu| {
        let mut class = (*with_gpus(1, Placement::Default)).clone();
        class.resources.gpu = gpu;
        Arc::new(class)
    };
    let actors = [(); 3].map(|()| node.ask(part(6_000)));
    assert_eq!(node.start(), [[0], [1], [2]]);
    for (number, key) in (1..).zip(actors) {
        let host = node.leases.worker(key).unwrap();
        node.leases.constructed(host, TaskId::from_bytes([number; TaskId::LEN]), 0, &mut Vec::new());
    }
    let whole = node.ask(with_gpus(2, Placement::Default));
    node.leases.advance(200 * MS);
    assert!(node.leases.has_room(&class(2, 1.0)), "another node may ask");
    let small = node.ask(part(4_000));
    assert_eq!(node.start(), [[0]], "nothing is kept for what cannot come");
    assert!(node.leases.worker(small).is_some() && node.leases.worker(whole).is_none());
}

/// Whatever ends the lease: what the worker lent before is free, and the rest with the end of its process.
#[test]
fn gpus_are_free_when_the_process_that_had_them_has_ended() {
    let mut node = Devices::new(2);
    let mut class = (*with_gpus(2, Placement::Default)).clone();
    class.resources.cpu = Resources::UNIT;
    let leases = [(); 2].map(|()| node.ask(Arc::new(class.clone())));
    assert_eq!(node.start(), [[0], [1]]);
    let clients = leases.map(|key| node.leases.worker(key).unwrap());
    node.leases.blocked(clients[0], &mut node.out);
    node.end(leases[0]);
    node.leases.worker_ends(clients[1], &mut node.out);
    node.leases.check();
    let unused = node.leases.unused();
    assert_eq!((unused.cpu, unused.gpu), (7 * Resources::UNIT, 0), "a blocked one lends its CPU");
    clients.into_iter().for_each(|client| node.gone(client));
    let unused = node.leases.unused();
    assert_eq!((unused.cpu, unused.gpu), (8 * Resources::UNIT, 2 * Resources::UNIT));
    // The same in a bundle, which is over when the process is gone.
    let bundle = node.ask(with_gpus(2, Placement::Bundle { group: GROUP, index: 0 }));
    let inside = node.ask(with_gpus(2, Placement::Group { group: GROUP, bundle: Some(0) }));
    assert_eq!(node.start(), [[0]]);
    let client = node.leases.worker(inside).unwrap();
    node.end(bundle);
    node.end(inside);
    assert_eq!(node.leases.unused().gpu, Resources::UNIT);
    node.gone(client);
    assert_eq!(node.leases.unused().gpu, 2 * Resources::UNIT);
}

#[test]
fn a_worker_whose_lease_ended_meanwhile_serves_another_one_of_its_gpus_or_ends() {
    let mut node = Devices::new(2);
    let gone = node.ask(with_gpus(2, Placement::Default));
    let effects = std::mem::take(&mut node.out);
    node.end(gone);
    // It has the device of the first, whose worker is on its way.
    let next = node.ask(with_gpus(2, Placement::Default));
    assert!(node.out.is_empty(), "{:?}", node.out);
    node.out = effects;
    assert_eq!(node.start(), [[0]]);
    assert!(node.leases.worker(next).is_some());
    let other = node.ask(with_gpus(2, Placement::Default));
    let effects = std::mem::take(&mut node.out);
    node.end(other);
    node.out = effects;
    assert_eq!(node.start(), [[1]]);
    assert_eq!(node.stopped(), 1, "nothing needs it");
}

#[test]
fn a_bundle_has_gpus_of_its_own_and_they_are_back_with_the_last_lease_inside() {
    let mut node = Devices::new(3);
    let bundle = node.ask(with_gpus(3, Placement::Bundle { group: GROUP, index: 0 }));
    let inside = |halves| with_gpus(halves, Placement::Group { group: GROUP, bundle: Some(0) });
    let first = node.ask(inside(2));
    let second = node.ask(inside(1));
    assert_eq!(node.start(), [[0], [1]], "a whole one and half of another");
    node.ask(with_gpus(2, Placement::Default));
    let beside = node.ask(with_gpus(1, Placement::Default));
    assert_eq!(node.start(), [[2], [1]], "the other half is free for others");
    node.end(bundle);
    let devices = (node.leases.free().gpu, node.leases.unused().gpu);
    assert_eq!(devices, (0, 0), "its leases are still inside");
    for key in [first, second] {
        let client = node.leases.worker(key).unwrap();
        node.leases.worker_gone(client, &mut node.out);
        node.leases.check();
    }
    assert_eq!(node.leases.free().gpu, 3 * Resources::UNIT / 2);
    let client = node.leases.worker(beside).unwrap();
    node.leases.worker_cut_off(client, &mut node.out);
    node.leases.check();
    assert_eq!(node.leases.free().gpu, 3 * Resources::UNIT / 2, "it computes on");
    node.leases.worker_gone(client, &mut node.out);
    assert_eq!(node.leases.free().gpu, 2 * Resources::UNIT);
}
