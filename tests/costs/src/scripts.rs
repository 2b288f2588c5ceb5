//! The scripts: each prepares what it needs, and leaves the rest to be counted.

use crate::machine::{ACTOR, CONSTRUCTOR, DRIVER, METHOD, Machine, TASK};
use prost::Message as _;
use std::hint::black_box;
use std::mem::ManuallyDrop;
use std::sync::Arc;
use tharsis_core::Event;
use tharsis_protos::peer::{convert, wire};
use tharsis_protos::records::{
    DependenciesView, FromClient, OutcomeView, OutputsView, RefsView, ToClient, TokensView, ValueView,
};
use tharsis_sim::crowd::{Crowd, Touch};
use tharsis_types::peer::{Message, Packet, PushedTask};
use tharsis_types::{
    Dependency, Extent, FunctionId, JobId, LeaseId, NodeId, ObjectId, RefId, Resources, TaskClass, TaskId,
};

/// Tasks that are submitted before the node settles.
const BATCH: u64 = 50;
/// Bytes of a value in the arena.
const STORED_BYTES: u64 = 8_192;

/// Things that are done beside as many others as there are of them. Two are left out: [`Touch::Cancel`],
/// since whoever asks for a lease in vain looks for an idle one among all that have timers, also those in
/// use; and [`Touch::Job`], since the end of a job looks at all workers and actors of its node.
const BESIDE: u64 = 100;

/// The work that is counted.
pub type Part = Box<dyn FnOnce()>;

/// A script.
pub struct Script {
    /// Its name in the ledger.
    pub name: &'static str,
    /// Number of units; a second run has four times as many.
    pub units: u64,
    /// Prepares a run with so many units.
    pub prepare: fn(u64) -> Part,
}

/// All scripts.
pub const SCRIPTS: &[Script] = &[
    Script { name: "task", units: 250, prepare: task },
    Script { name: "task-queued", units: 250, prepare: task_queued },
    Script { name: "task-elsewhere", units: 250, prepare: task_elsewhere },
    Script { name: "task-dependent", units: 250, prepare: task_dependent },
    Script { name: "task-cancelled", units: 250, prepare: task_cancelled },
    Script { name: "task-of-a-job-that-ends", units: 250, prepare: task_of_a_job_that_ends },
    Script { name: "actor-call", units: 250, prepare: actor_call },
    Script { name: "put", units: 500, prepare: put },
    Script { name: "put-stored", units: 250, prepare: put_stored },
    Script { name: "get", units: 250, prepare: get },
    Script { name: "record-submit", units: 500, prepare: record_submit },
    Script { name: "record-done", units: 500, prepare: record_done },
    Script { name: "record-value", units: 500, prepare: record_value },
    Script { name: "packet-push", units: 50, prepare: packet_push },
    Script { name: "beside-many-call", units: BESIDE, prepare: |units| beside(Touch::Call, units, false) },
    Script { name: "beside-many-fetch", units: BESIDE, prepare: |units| beside(Touch::Fetch, units, false) },
    Script { name: "beside-many-group", units: BESIDE, prepare: |units| beside(Touch::Group, units, false) },
    Script {
        name: "beside-many-inside",
        units: BESIDE,
        prepare: |units| beside(Touch::Inside, units, false),
    },
    Script {
        name: "beside-many-method",
        units: BESIDE,
        prepare: |units| beside(Touch::Method, units, false),
    },
    Script { name: "beside-many-put", units: BESIDE, prepare: |units| beside(Touch::Put, units, false) },
    Script { name: "beside-many-wait", units: BESIDE, prepare: |units| beside(Touch::Wait, units, false) },
];

/// A fault that must be found: after each event, a walk over all tasks. Few are enough, and the profiler
/// takes each step.
pub const PLANTED: Script =
    Script { name: "planted", units: BESIDE / 4, prepare: |units| beside(Touch::Put, units, true) };

/// Runs what is counted: the profiler counts while this function is on the stack.
#[inline(never)]
pub fn counted_part(part: Part) {
    part();
    // Not the last call, or the compiler may leave this function before it.
    black_box(());
}

/// A machine that has run a few tasks.
fn warm(mut machine: Machine) -> Machine {
    let first = 1 << 32;
    (first..first + BATCH).for_each(|number| machine.submit(TASK, number, &[]));
    machine.turn_until_told(BATCH);
    machine.told = 0;
    machine
}

/// Submitted in batches, run, reported, dropped.
fn batches(machine: &mut Machine, units: u64) {
    for number in 0..units {
        machine.submit(TASK, number, &[]);
        if number % BATCH == BATCH - 1 {
            machine.turn();
        }
    }
    machine.turn_until_told(units);
}

fn task(units: u64) -> Part {
    let mut machine = warm(Machine::alone());
    Box::new(move || batches(&mut machine, units))
}

/// All are submitted before any starts.
fn task_queued(units: u64) -> Part {
    let mut machine = warm(Machine::alone());
    Box::new(move || {
        (0..units).for_each(|number| machine.submit(TASK, number, &[]));
        machine.turn_until_told(units);
    })
}

/// A decision about a node, a lease, a push, a report, two links.
fn task_elsewhere(units: u64) -> Part {
    let mut machine = warm(Machine::beside());
    Box::new(move || batches(&mut machine, units))
}

/// All wait for the same value.
fn task_dependent(units: u64) -> Part {
    let mut machine = warm(Machine::alone());
    Box::new(move || {
        machine.submit(TASK, units, &[]);
        let first = machine.output(units);
        (0..units).for_each(|number| machine.submit(TASK, number, &[(0, first)]));
        machine.turn_until_told(units + 1);
    })
}

/// All wait for a value that does not come, and are cancelled one by one.
fn task_cancelled(units: u64) -> Part {
    let mut machine = warm(Machine::alone());
    machine.workers_finish = false;
    machine.submit(TASK, units, &[]);
    let first = machine.output(units);
    machine.turn();
    (0..units).for_each(|number| machine.submit(TASK, number, &[(0, first)]));
    machine.turn();
    Box::new(move || {
        for number in 0..units {
            let reference = machine.output(number);
            machine.feed(Event::CancelRequested { reference, force: false, recursive: false });
        }
        machine.turn_until_told(units);
    })
}

/// Half of them wait for a value, half for a lease.
fn task_of_a_job_that_ends(units: u64) -> Part {
    let mut machine = warm(Machine::alone());
    machine.workers_finish = false;
    machine.submit(TASK, units, &[]);
    let first = machine.output(units);
    for number in 0..units {
        let waits_for = [(0, first)];
        machine.submit(TASK, number, if number % 2 == 0 { &waits_for } else { &[] });
    }
    machine.turn();
    Box::new(move || {
        machine.end_driver();
        machine.turn();
    })
}

fn actor_call(units: u64) -> Part {
    let mut machine = warm(Machine::alone());
    machine.submit(CONSTRUCTOR, ACTOR, &[]);
    (0..8).for_each(|_| machine.turn());
    let actor = (Dependency::ACTOR, machine.output(ACTOR));
    Box::new(move || {
        for number in 0..units {
            machine.submit(METHOD, number, &[actor]);
            if number % BATCH == BATCH - 1 {
                machine.turn();
            }
        }
        machine.turn_until_told(units);
    })
}

/// Small values: put and dropped.
fn put(units: u64) -> Part {
    let mut machine = warm(Machine::alone());
    Box::new(move || {
        for number in 0..units {
            machine.put(number, None);
            let reference = machine.put_id(number);
            machine.release(number, reference);
            if number % BATCH == BATCH - 1 {
                machine.turn();
            }
        }
        machine.turn();
    })
}

/// Values in the arena: put, kept, and dropped.
fn put_stored(units: u64) -> Part {
    let mut machine = warm(Machine::alone());
    machine.feed(Event::RegionWanted { client: DRIVER, request: 1, bytes: units * STORED_BYTES });
    machine.turn();
    let Some(region) = machine.region else { unreachable!("the arena is larger than all of the values") };
    Box::new(move || {
        for number in 0..units {
            let extent = Extent { offset: region.offset + number * STORED_BYTES, len: STORED_BYTES };
            machine.put(number, Some(extent));
        }
        machine.turn();
        for number in 0..units {
            let reference = machine.put_id(number);
            machine.release(number, reference);
        }
        machine.turn();
    })
}

/// Values that are there: asked for, told, dropped.
fn get(units: u64) -> Part {
    let mut machine = warm(Machine::alone());
    (0..units).for_each(|number| machine.put(number, None));
    machine.turn();
    Box::new(move || {
        for token in 0..units {
            let reference = machine.put_id(token);
            machine.feed(Event::Fetch { client: DRIVER, token, reference });
        }
        machine.turn_until_told(units);
    })
}

/// Small things beside as many tasks that wait, values that are kept, and actors, which they do not touch.
fn beside(touch: Touch, units: u64, walks: bool) -> Part {
    // The end of a crowd is not counted.
    let mut crowd = ManuallyDrop::new(Crowd::new(units, walks));
    (0..BATCH).for_each(|_| crowd.touch(touch));
    Box::new(move || (0..units).for_each(|_| crowd.touch(touch)))
}

/// The ids of a task and of its output.
fn ids(number: u64) -> (TaskId, RefId) {
    let task = TaskId::root(JobId(1)).child(number);
    (task, RefId { object: ObjectId::output(task, 0), owner: NodeId(7) })
}

/// Written and read: a call with a payload and a reference.
fn record_submit(units: u64) -> Part {
    let (payload, tokens) = ([7; 24], 1_u64.to_le_bytes());
    let mut record = Vec::with_capacity(256);
    Box::new(move || {
        for number in 0..units {
            record.clear();
            let (task, reference) = ids(number);
            let packed = reference.to_bytes();
            let submit = FromClient::Submit {
                run: None,
                class: 3,
                task,
                tokens: TokensView::new(&tokens).unwrap_or_default(),
                payload: &payload,
                dependencies: DependenciesView::default(),
                nested: RefsView::new(&packed).unwrap_or_default(),
                name: "",
            };
            submit.encode(&mut record);
            assert!(black_box(FromClient::decode(&record)).is_ok(), "what was written can be read");
        }
    })
}

/// Written and read: the end of a task without a value.
fn record_done(units: u64) -> Part {
    let mut record = Vec::with_capacity(256);
    Box::new(move || {
        for number in 0..units {
            record.clear();
            let outcome = OutcomeView::Returned(OutputsView::new(0, &[]));
            FromClient::Done { slot: number as u32, run_ns: 200, outcome }.encode(&mut record);
            assert!(black_box(FromClient::decode(&record)).is_ok(), "what was written can be read");
        }
    })
}

/// Written and read: an inline value.
fn record_value(units: u64) -> Part {
    let mut record = Vec::with_capacity(256);
    Box::new(move || {
        for token in 0..units {
            record.clear();
            ToClient::Value { token, value: ValueView::Inline(&[7; 64]) }.encode(&mut record);
            assert!(black_box(ToClient::decode(&record)).is_ok(), "what was written can be read");
        }
    })
}

/// Converted, written, read and converted back: sixteen tasks on their way to another node.
fn packet_push(units: u64) -> Part {
    let resources = Resources { cpu: Resources::UNIT, ..Resources::default() };
    let class = TaskClass { resources, ..TaskClass::new(JobId(1), FunctionId(1), "costs::task") };
    let class = Arc::new(class);
    let pushed = |number| PushedTask {
        task: ids(number).0,
        attempt: 0,
        class: class.clone(),
        payload: [7; 24].as_slice().into(),
        dependencies: Vec::new(),
        nested: Vec::new(),
        name: None,
    };
    let message = |number| Message::TaskPush { lease: LeaseId(number), task: Box::new(pushed(number)) };
    let packet = Packet::new(1, 1, (0..16).map(message).collect());
    Box::new(move || {
        for _ in 0..units {
            for part in convert::encode(NodeId(1), NodeId(2), &packet) {
                let bytes = part.encode_to_vec();
                let read = wire::Packet::decode(&bytes[..]).map_err(|bad| bad.to_string());
                let read = read.and_then(|part| convert::decode(part).map_err(|bad| bad.to_string()));
                assert!(black_box(read).is_ok(), "what was written can be read");
            }
        }
    })
}
