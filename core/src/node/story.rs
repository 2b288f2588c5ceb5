//! Stories: the state and history of a task or an object. A read-only view for people.
//!
//! The reason for waiting is read from the machines as they are now; the history, from their journals
//! ([`crate::journal`]), as far back as these go.

use super::Node;
use super::runs::Run;
use crate::Now;
use crate::journal::{About, Entry};
use crate::slab::Slot;
use std::cmp::Reverse;
use tharsis_types::limits::MIB;
use tharsis_types::{NodeId, ObjectId, Resources, TaskId};

/// Maximum number of lines of the past: the last ones are told.
const PAST_MAX: usize = 40;
/// Maximum number of lines of the past of the leases that a task has or needs.
const LEASE_PAST_MAX: usize = 10;
/// Maximum number of nodes that are told one by one.
const NODES_TOLD_MAX: usize = 8;

/// Everything a node knows of a task or an object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Story {
    /// Present state and the reason for waiting. Empty if it is not here any more.
    pub present: Vec<String>,
    /// Its history, oldest first, as far as it is remembered.
    pub past: Vec<Past>,
}

/// A line of the past.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Past {
    /// Age of the entry.
    pub ago: Now,
    /// The event.
    pub what: String,
}

impl Node {
    /// Everything this node knows of a task or an object; `None` if it never heard of it, or has forgotten
    /// it.
    #[must_use]
    pub fn story(&self, now: Now, about: About) -> Option<Story> {
        let (present, past) = match about {
            About::Object(object) => self.object_story(now, object),
            About::Task(task) => self.task_story(now, task),
            About::Lease(owner, lease) => (Vec::new(), self.leases.past((owner, lease)).collect()),
            About::Peer(node) => (Vec::new(), self.peers.past(node).collect()),
            About::Shape(..) => (Vec::new(), Vec::new()),
        };
        let story = Story { present, past: told(now, past) };
        (story != Story::default()).then_some(story)
    }

    fn task_story(&self, now: Now, id: TaskId) -> (Vec<String>, Vec<Entry>) {
        let mut present = Vec::new();
        let mut past: Vec<_> = self.owner.task_past(id).chain(self.runs.past(id)).collect();
        let run = self.runs.find(id);
        if let Some(story) = self.owner.task_story(now, id) {
            past.extend(last(self.owner.shape_past(&story)));
            if let Some((node, lease)) = story.sent.filter(|_| run.is_none()) {
                past.extend(last(self.leases.past((self.id, lease))));
                present.push(self.sent_elsewhere(node));
            }
            present.splice(0..0, story.lines);
            if let Some(demand) = story.demand {
                present.push(format!("each needs {demand}"));
                present.extend(self.room_of_nodes(&demand));
            }
        }
        if let Some((slot, run)) = run {
            if run.is_lent() {
                past.extend(last(self.leases.past(run.lease)));
                present.push(format!("task {id}: attempt {} of a task of node {}", run.attempt, run.lease.0));
            }
            present.extend(self.run_story(now, slot, run));
        }
        present.extend(self.circle_of(id));
        (present, past)
    }

    fn sent_elsewhere(&self, node: NodeId) -> String {
        if node == self.id {
            "on its way to a worker here".to_owned()
        } else {
            format!("what it waits for there, node {node} can say")
        }
    }

    /// State of a run here, in words.
    fn run_story(&self, now: Now, slot: Slot<Run>, run: &Run) -> Vec<String> {
        let worker = run.client.0;
        if run.is_doomed() {
            return vec![format!("worker {worker} is being killed because of it")];
        }
        if let Some(since) = run.first_since() {
            let ms = now.saturating_sub(since) / crate::MS;
            let blocked = self.leases.is_blocked(run.client);
            let waits = if blocked { ", and waits inside for other tasks" } else { "" };
            return vec![format!("runs in worker {worker} ({ms} ms){waits}")];
        }
        if !run.is_staging() {
            let before = self.runs.line(run.client).iter().take_while(|other| **other != slot).count();
            return vec![format!("sent to worker {worker}, behind {before} others")];
        }
        let mut lines = vec![format!("waits on this node for arguments, then runs in worker {worker}")];
        let arguments = run.call(&self.owner).map(|call| call.dependencies).unwrap_or_default();
        for (dependency, slot) in arguments {
            let (object, _) = self.owner.entry(*slot);
            if let Some(how) = self.arrival(object) {
                lines.push(format!("argument {} is {object}, {how}", dependency.parameter));
            }
        }
        lines
    }

    fn object_story(&self, now: Now, id: ObjectId) -> (Vec<String>, Vec<Entry>) {
        let mut present = Vec::new();
        let ledger = self.owner.object_story(id);
        let producer = ledger.as_ref().and_then(|story| story.producer);
        present.extend(ledger.into_iter().flat_map(|story| story.lines));
        present.extend(self.arrival(id).map(|how| format!("needed on this node: {how}")));
        present.extend(self.store.describe(id));
        let mut past: Vec<_> = self.owner.object_past(id).collect();
        past.extend(self.pulls.past(id).chain(self.transfers.past(id)));
        past.extend(self.room.past(id).chain(self.store.past(id)));
        if let Some(task) = producer {
            let (lines, entries) = self.task_story(now, task);
            present.extend(lines);
            past.extend(entries);
        }
        (present, past)
    }

    /// State of the arrival of an object that is needed here, if it is under way.
    fn arrival(&self, object: ObjectId) -> Option<String> {
        let pull = self.pulls.describe(object)?;
        if self.room.is_stalled(object) {
            let store = self.store.usage();
            let (used, all) = (store.used_bytes, store.capacity_bytes);
            return Some(format!("waits for room in the store, of which {used} of {all} bytes are in use"));
        }
        Some(match self.transfers.asked_of(object) {
            Some(node) => format!("waits for node {node} to have time to send it"),
            None => pull,
        })
    }

    /// Resources that each node has too little of, this one first.
    fn room_of_nodes(&self, demand: &Resources) -> Vec<String> {
        let mut members: Vec<_> = self.view.members().collect();
        members.sort_by_key(|(member, _)| (Reverse(member.node == self.id), member.node));
        let line = |(member, load): &(&crate::event::Member, crate::place::Load)| {
            let whose = if member.node == self.id { "this node" } else { "node" };
            let (node, all, waiting) = (member.node, &member.resources, load.waiting);
            let room = match load.free.lacking(demand) {
                Some((name, need, have)) => {
                    let unit = if name == "memory" { MIB as f64 } else { Resources::UNIT as f64 };
                    let name = if name == "memory" { "MiB of memory".to_owned() } else { name };
                    format!("{} {name} free, {} needed", have as f64 / unit, need as f64 / unit)
                }
                None => "has room".to_owned(),
            };
            format!("{whose} {node}: {room}; it has {all}; requests for leases that wait there: {waiting}")
        };
        let mut lines: Vec<_> = members.iter().take(NODES_TOLD_MAX).map(line).collect();
        let untold = members.len() - lines.len();
        if 0 < untold {
            lines.push(format!("and {untold} more nodes"));
        }
        lines
    }
}

fn last(entries: impl Iterator<Item = Entry>) -> Vec<Entry> {
    let mut all: Vec<_> = entries.collect();
    all.sort_by_key(|entry| entry.at);
    all.split_off(all.len().saturating_sub(LEASE_PAST_MAX))
}

fn told(now: Now, mut past: Vec<Entry>) -> Vec<Past> {
    past.sort_by_key(|entry| entry.at);
    let from = past.len().saturating_sub(PAST_MAX);
    past[from..].iter().map(|e| Past { ago: now.saturating_sub(e.at), what: e.fact.to_string() }).collect()
}
