//! E22: GPUs by number, of a node that offers some that need not be there.

use std::collections::BTreeSet;
use tharsis::prelude::*;
use tharsis::{actor, context, restart};
use tharsis_scenarios::{Mode, SOON, Scenario, await_file, await_within, mark, marks, open_gate, scenarios};

pub const ALL: &[Scenario] = scenarios![
    Both:
        e22_two_tasks_share_no_whole_gpu,
        e22_fractions_share_a_gpu,
        e22_an_actor_keeps_its_gpus_for_life,
        e22_actors_of_one_process_have_gpus_of_their_own;
    Processes:
        e22_a_worker_sees_its_gpus_and_no_others,
        e22_a_retry_sees_the_gpus_of_its_lease;
];

/// Long enough for what happens at once.
const AT_ONCE: f64 = 20.0;

/// The GPUs of the running task, and those that its process sees.
type Seen = (Vec<String>, Option<String>);

fn seen() -> Seen {
    let ids = context().map(|context| context.gpu_ids().to_vec()).unwrap_or_default();
    (ids, std::env::var("CUDA_VISIBLE_DEVICES").ok())
}

#[remote(num_cpus = 0, max_retries = 0)]
fn hold(began: String, gate: String) -> Seen {
    mark(&began);
    await_file(&gate);
    seen()
}

#[remote(num_cpus = 0)]
fn look() -> Seen {
    seen()
}

/// Ends its process the first time.
#[remote(num_cpus = 0, num_gpus = 1, max_retries = 1)]
fn look_after_a_crash() -> Seen {
    if context().is_ok_and(|context| context.attempt() == 0) {
        std::process::exit(3);
    }
    seen()
}

struct Model;

#[actor]
impl Model {
    fn new() -> Self {
        Self
    }

    fn seen(&self) -> Seen {
        seen()
    }
}

fn start(mode: Mode, gpus: f64) -> tharsis_scenarios::Session {
    mode.start_with(2, |init| init.num_gpus(gpus))
}

fn ids(seen: &[Seen]) -> Vec<&str> {
    seen.iter().flat_map(|(ids, _)| ids.iter().map(String::as_str)).collect()
}

fn e22_two_tasks_share_no_whole_gpu(mode: Mode) {
    let session = start(mode, 3.0);
    let _entered = session.enter();
    let (began, gate) = (session.path("began"), session.path("gate"));
    let call = |gpus: f64| hold::options().num_gpus(gpus).remote(began.clone(), gate.clone());
    let tasks = [call(1.0), call(2.0)];
    await_within(SOON, "both run", || marks(&began) == 2);
    let waits = call(1.0);
    std::thread::sleep(std::time::Duration::from_millis(100));
    assert_eq!(marks(&began), 2, "none is left for it");
    open_gate(&gate);
    let seen = get_all(&tasks, None).unwrap();
    let all = ids(&seen);
    assert_eq!((all.len(), all.iter().collect::<BTreeSet<_>>().len()), (3, 3), "{seen:?}");
    let (last, _) = waits.get_timeout(AT_ONCE).unwrap();
    assert!(last.len() == 1 && ["0", "1", "2"].contains(&last[0].as_str()), "given back: {last:?}");
    assert_eq!(context().unwrap().gpu_ids(), [] as [String; 0], "a driver has none");
    drop((tasks, waits));
    session.await_quiet();
}

fn e22_fractions_share_a_gpu(mode: Mode) {
    let session = start(mode, 2.0);
    let _entered = session.enter();
    let (began, gate) = (session.path("began"), session.path("gate"));
    let call = |gpus: f64| hold::options().num_gpus(gpus).remote(began.clone(), gate.clone());
    let tasks = [call(0.5), call(0.5), call(1.0)];
    await_within(SOON, "all run", || marks(&began) == 3);
    open_gate(&gate);
    let seen = get_all(&tasks, None).unwrap();
    let [(first, _), (second, _), (whole, _)] = &seen[..] else { panic!("{seen:?}") };
    assert!(first == second && first.len() == 1 && whole.len() == 1 && first != whole, "{seen:?}");
    drop(tasks);
    session.await_quiet();
}

fn e22_an_actor_keeps_its_gpus_for_life(mode: Mode) {
    let session = start(mode, 2.0);
    let _entered = session.enter();
    let model = Model::options().num_gpus(1.0).max_restarts(1).max_task_retries(-1).remote();
    let (of_model, _) = model.seen().get_timeout(AT_ONCE).unwrap();
    assert_eq!(of_model.len(), 1);
    for _ in 0..3 {
        let (of_task, _) = look::options().num_gpus(1.0).remote().get_timeout(AT_ONCE).unwrap();
        assert!(of_task.len() == 1 && of_task != of_model, "{of_task:?} beside {of_model:?}");
    }
    assert_eq!(model.seen().get_timeout(AT_ONCE).unwrap().0, of_model);
    restart(&model).unwrap();
    let (again, _) = model.seen().get_timeout(AT_ONCE).unwrap();
    assert_eq!(again.len(), 1, "whatever is free then");
    drop(model);
    session.await_quiet();
}

fn e22_actors_of_one_process_have_gpus_of_their_own(mode: Mode) {
    let session = start(mode, 2.0);
    let _entered = session.enter();
    let create = || Model::options().num_gpus(1.0).shared_process(true).remote();
    let models = [create(), create()];
    let seen: Vec<_> = models.iter().map(|model| model.seen().get_timeout(AT_ONCE).unwrap()).collect();
    assert_eq!(ids(&seen).into_iter().collect::<BTreeSet<_>>(), BTreeSet::from(["0", "1"]), "{seen:?}");
    drop(models);
    session.await_quiet();
}

fn e22_a_worker_sees_its_gpus_and_no_others(mode: Mode) {
    let session = start(mode, 2.0);
    let _entered = session.enter();
    let (began, gate) = (session.path("began"), session.path("gate"));
    let call = || hold::options().num_gpus(1.0).remote(began.clone(), gate.clone());
    let tasks = [call(), call()];
    await_within(SOON, "both run", || marks(&began) == 2);
    assert_eq!(look::remote().get_timeout(AT_ONCE).unwrap(), (vec![], Some(String::new())), "none of them");
    open_gate(&gate);
    for (ids, visible) in get_all(&tasks, None).unwrap() {
        assert_eq!(visible, Some(ids.join(",")));
    }
    let both = look::options().num_gpus(2.0).remote().get_timeout(AT_ONCE).unwrap();
    assert_eq!(both, (vec!["0".to_owned(), "1".to_owned()], Some("0,1".to_owned())));
    assert_eq!(look::remote().get_timeout(AT_ONCE).unwrap().1, Some(String::new()), "nor afterwards");
    drop(tasks);
    session.await_quiet();
}

fn e22_a_retry_sees_the_gpus_of_its_lease(mode: Mode) {
    let session = start(mode, 1.0);
    let _entered = session.enter();
    let seen = look_after_a_crash::remote().get_timeout(AT_ONCE).unwrap();
    assert_eq!(seen, (vec!["0".to_owned()], Some("0".to_owned())));
    session.await_quiet();
}
