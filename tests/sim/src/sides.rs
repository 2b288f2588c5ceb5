//! Calls that an actor runs beside others: those of a group that allows several at the same time.
//!
//! They only compute: what they called would be mixed up with what the call in turn does. They end in any
//! order, so the records of a worker with such an actor are not those of one that does one thing after the
//! other.

use crate::acts::failed;
use crate::client::{Client, RunRecord, Side};
use crate::cluster::{Cluster, SimEvent, US};
use crate::program::{self, BESIDE_MAX, Content, FATAL, Step};
use std::collections::VecDeque;
use tharsis_core::Event;
use tharsis_core::event::{OutputValue, TaskOutcome};
use tharsis_types::limits::PIPELINE_DEPTH_MAX;
use tharsis_types::task::Output;
use tharsis_types::{ClientId, FailureKind};

impl Cluster {
    /// A call that may run beside others has come to its actor.
    pub(crate) fn side_told(&mut self, host: usize, id: ClientId, record: RunRecord) {
        let Some(client) = self.hosts[host].clients.get_mut(&id) else { return };
        client.side_queue.push_back(record);
        let most = PIPELINE_DEPTH_MAX + BESIDE_MAX as usize;
        if most < client.side_queue.len() + client.sides.len() {
            self.fail("what is sent ahead is bounded", format!("client {}", id.0));
        }
        self.start_sides(host, id);
    }

    /// A call beside others has computed.
    pub(crate) fn side_ends(&mut self, host: usize, id: ClientId, run: u32) {
        let Some(client) = self.hosts[host].clients.get_mut(&id) else { return };
        let Some(at) = client.sides.iter().position(|side| side.record.run == run) else { return };
        let side = client.sides.swap_remove(at);
        side.mapped.iter().for_each(|(extent, content)| self.still(host, *extent, content));
        let task = side.record.task;
        let outcome = if side.is_cancelled {
            failed("", FailureKind::Cancelled, "stopped at a check")
        } else if program::script(task, side.record.kind, 0).fatal {
            self.oracle.tasks.entry(task).or_default().raises += 1;
            failed(FATAL, FailureKind::UserError, "raised")
        } else {
            let hash = program::output_value(task, 0, &side.arguments);
            let value = OutputValue::Inline(Content { hash, nested: Vec::new() }.encode());
            TaskOutcome::Returned([Output { value, nested: Vec::new() }].into_iter().collect())
        };
        self.send(host, id, Event::Finished { client: id, run, run_ns: 1_000, outcome });
        self.start_sides(host, id);
    }

    /// A call is to be cancelled: whether it is one beside others.
    pub(crate) fn side_cancelled(&mut self, host: usize, id: ClientId, run: u32, heeds: bool) -> bool {
        let Some(client) = self.hosts[host].clients.get_mut(&id) else { return false };
        if let Some(side) = client.sides.iter_mut().find(|side| side.record.run == run) {
            side.is_cancelled |= heeds;
            return true;
        }
        let Some(at) = client.side_queue.iter().position(|record| record.run == run) else { return false };
        client.side_queue.remove(at);
        let outcome = failed("", FailureKind::Cancelled, "cancelled before it started");
        self.send(host, id, Event::Finished { client: id, run, run_ns: 1, outcome });
        true
    }

    fn start_sides(&mut self, host: usize, id: ClientId) {
        while let Some(record) = self.hosts[host].clients.get_mut(&id).and_then(next_side) {
            self.summary.beside_count += 1;
            self.note_start(&record);
            self.check_call(host, id, &record);
            self.check_isolated(host, record.task.job());
            let (arguments, mapped) = self.read_arguments(host, &record);
            let script = program::script(record.task, record.kind, 0);
            let works = script.steps.iter().filter_map(|step| match step {
                Step::Work { us } => Some(*us),
                _ => None,
            });
            let when = self.now + self.rng.range(US, works.sum::<u64>().max(2) * US);
            self.at(when, SimEvent::SideEnds { host, client: id, run: record.run });
            let Some(client) = self.hosts[host].clients.get_mut(&id) else { return };
            client.sides.push(Side { record, arguments, mapped, is_cancelled: false });
        }
    }
}

/// The next call that may start, if there is room for it.
fn next_side(client: &mut Client) -> Option<RunRecord> {
    let queue: &mut VecDeque<_> = &mut client.side_queue;
    if client.sides.len() < BESIDE_MAX as usize { queue.pop_front() } else { None }
}
