//! Graphs: tasks that were submitted together, kept as plain numbers until their turn comes.
//!
//! A *step* is a task of a graph. It becomes an entry among the tasks when the values of all steps that it
//! takes are there, and has outputs in the ledger from then on; a step with a result that the submitter keeps
//! has both from the start, so that clients can ask for it and cancel it. From then on it is a task like any
//! other, which tells its graph when it ends. So a million steps that wait cost some tens of bytes each.
//!
//! This machine owns the steps. A graph holds one use of each output until the last step that takes it has
//! become a task, which then has its own. `steps.rs` beside this folder carries a change on to tasks and
//! objects.
//!
//! | state of a step | enters by | leaves by |
//! |---|---|---|
//! | waits | `add_step` | `arrived` (the last input), `doom`, `end` |
//! | doomed: an input failed | `doom` | `end` |
//! | a task | `started` | `end` |
//! | ended, failed | `end` | |
//!
//! A graph is *open* until its last part has come: steps start before, but no output is released, since a
//! later part may take it. It is *stopped* when it was cancelled or its job has ended: no step starts any
//! more, and it goes when its tasks have ended.

mod graph;

pub(super) use graph::Graph;
pub use graph::StepTally;

use super::{Class, Object};
use crate::Now;
use crate::slab::{Slab, Slot};
use std::collections::{BTreeSet, VecDeque};
use std::ops::{Index, IndexMut};
use std::sync::Arc;
use tharsis_types::hash::IdMap;
use tharsis_types::{ClientId, Failure, JobId, TaskId};

/// A step, as its task names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Member {
    pub(super) graph: Slot<Graph>,
    pub(super) step: u32,
}

/// The submitter of a graph, and what its tasks have from it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Submitter {
    pub(super) client: ClientId,
    /// Whether it is a task: it may run again and submit the same graph.
    pub(super) is_task: bool,
    pub(super) depth: u16,
    pub(super) deadline: Option<Now>,
}

/// The class of a step, or the reason why no call may use it.
pub(super) type StepClass = Result<Slot<Class>, Arc<Failure>>;

/// The graphs of one ledger.
#[derive(Debug, Default)]
pub(super) struct Graphs {
    entries: Slab<Graph>,
    by_id: IdMap<TaskId, Slot<Graph>>,
    /// The graphs of each job.
    of_job: BTreeSet<(JobId, Slot<Graph>)>,
    /// The graphs of which each client has parts still to send.
    of_client: BTreeSet<(ClientId, Slot<Graph>)>,
    /// Steps of each job that wait and have no task.
    waiting: IdMap<JobId, usize>,
    /// Steps that have ended, whose graphs do not know it yet, and the failures of those that failed.
    ///
    /// They are handled one after the other: so a chain of steps of any length takes no stack.
    news: VecDeque<(Member, Option<Arc<Failure>>)>,
    is_handling: bool,
}

impl Index<Slot<Graph>> for Graphs {
    type Output = Graph;

    fn index(&self, graph: Slot<Graph>) -> &Graph {
        &self.entries[graph]
    }
}

impl IndexMut<Slot<Graph>> for Graphs {
    fn index_mut(&mut self, graph: Slot<Graph>) -> &mut Graph {
        &mut self.entries[graph]
    }
}

impl Graphs {
    /// The graph of an id that is not stopped.
    pub(super) fn find(&self, id: TaskId) -> Option<Slot<Graph>> {
        self.by_id.get(&id).copied()
    }

    /// Enters a graph without steps.
    pub(super) fn begin(&mut self, id: TaskId, submitter: Submitter) -> Slot<Graph> {
        let graph = self.entries.insert(Graph::new(id, submitter));
        self.of_job.insert((id.job(), graph));
        self.of_client.insert((submitter.client, graph));
        let before = self.by_id.insert(id, graph);
        assert!(before.is_none(), "graph {id} is entered twice");
        graph
    }

    /// Whether there are none.
    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The graphs of a job.
    pub(super) fn of_job(&self, job: JobId) -> Vec<Slot<Graph>> {
        let all = (job, Slot::from_number(0))..=(job, Slot::from_number(u32::MAX - 1));
        self.of_job.range(all).map(|(_, graph)| *graph).collect()
    }

    /// The graphs of which a client has parts still to send.
    fn of_client(&self, client: ClientId) -> Vec<Slot<Graph>> {
        let all = (client, Slot::from_number(0))..=(client, Slot::from_number(u32::MAX - 1));
        self.of_client.range(all).map(|(_, graph)| *graph).collect()
    }

    /// The last part of a graph has come; returns the entries that it does not use any more.
    pub(super) fn close(&mut self, slot: Slot<Graph>) -> Vec<Slot<Object>> {
        let graph = &mut self.entries[slot];
        self.of_client.remove(&(graph.submitter().client, slot));
        graph.close()
    }

    /// A client submits the same graph again; with its last part it is done.
    pub(super) fn shared_with(&mut self, slot: Slot<Graph>, client: ClientId, is_last: bool) {
        let graph = &mut self.entries[slot];
        graph.shared_with(client, is_last);
        if graph.is_sent_by(client) {
            self.of_client.insert((client, slot));
        } else {
            self.of_client.remove(&(client, slot));
        }
    }

    /// A client is gone: nobody else sends the parts that it has not sent. Returns its open graphs, and those
    /// that only it kept.
    pub(super) fn client_gone(&mut self, client: ClientId) -> Vec<Slot<Graph>> {
        let mut ends = self.of_client(client);
        ends.retain(|slot| {
            self.of_client.remove(&(client, *slot));
            self.entries[*slot].forget_client(client)
        });
        ends
    }

    /// A step without a task waits.
    pub(super) fn waits(&mut self, job: JobId) {
        *self.waiting.entry(job).or_default() += 1;
    }

    /// Steps without a task wait no more.
    pub(super) fn wait_no_more(&mut self, job: JobId, count: usize) {
        if count == 0 {
            return;
        }
        let waiting = self.waiting.get_mut(&job).filter(|waiting| count <= **waiting);
        assert!(waiting.is_some(), "more steps of {job} start than wait");
        if let Some(waiting) = waiting {
            *waiting -= count;
            if *waiting == 0 {
                self.waiting.remove(&job);
            }
        }
    }

    /// Steps of a job that wait and have no task.
    pub(super) fn waiting_of(&self, job: JobId) -> usize {
        self.waiting.get(&job).copied().unwrap_or(0)
    }

    /// The classes of all steps.
    pub(super) fn classes(&self) -> impl Iterator<Item = Slot<Class>> {
        self.entries.iter().flat_map(|(_, graph)| graph.classes())
    }

    /// Number of all steps.
    pub(super) fn step_count(&self) -> usize {
        self.entries.iter().map(|(_, graph)| graph.step_count()).sum()
    }

    /// All graphs, in no order.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Graph> {
        self.entries.iter().map(|(_, graph)| graph)
    }

    /// Steps that wait and have no task, by job.
    pub(super) fn waiting_by_job(&self) -> impl Iterator<Item = (JobId, usize)> {
        self.waiting.iter().map(|(job, count)| (*job, *count))
    }

    /// Steps that wait and have no task.
    pub(super) fn waiting_count(&self) -> usize {
        self.waiting.values().sum()
    }

    /// Notes that a step has ended. Returns whether the caller has to handle the news: no outer one does.
    pub(super) fn tell(&mut self, member: Member, failure: Option<Arc<Failure>>) -> bool {
        self.news.push_back((member, failure));
        !std::mem::replace(&mut self.is_handling, true)
    }

    /// The next step that has ended; with the last one, handling ends.
    pub(super) fn next_news(&mut self) -> Option<(Member, Option<Arc<Failure>>)> {
        let next = self.news.pop_front();
        self.is_handling = next.is_some();
        next
    }

    /// Stops a graph: a submission with the same id is another one from now on. Returns the entries that it
    /// does not use any more.
    pub(super) fn stop(&mut self, slot: Slot<Graph>) -> Vec<Slot<Object>> {
        let graph = &mut self.entries[slot];
        let (id, job) = (graph.id(), graph.id().job());
        for client in graph.senders() {
            self.of_client.remove(&(client, slot));
        }
        let (waiting, unused) = graph.stop();
        if self.by_id.get(&id) == Some(&slot) {
            self.by_id.remove(&id);
        }
        self.wait_no_more(job, waiting);
        unused
    }

    /// Removes a graph if nothing of it is left; returns the entries that it used until now.
    pub(super) fn remove_if_over(&mut self, slot: Slot<Graph>) -> Vec<Slot<Object>> {
        if !self.entries[slot].is_over() {
            return Vec::new();
        }
        let graph = self.entries.take(slot);
        self.of_job.remove(&(graph.id().job(), slot));
        if self.by_id.get(&graph.id()) == Some(&slot) {
            self.by_id.remove(&graph.id());
        }
        graph.into_held()
    }

    /// Entries that graphs use, once for each use.
    pub(super) fn uses(&self) -> impl Iterator<Item = Slot<Object>> {
        self.entries.iter().flat_map(|(_, graph)| graph.uses())
    }

    /// Sizes of tables that must be empty once there are no references.
    pub(super) fn leftovers(&self) -> [(&'static str, usize); 2] {
        [("graphs", self.entries.len()), ("steps that wait", self.waiting_count())]
    }

    /// Asserts that graphs are found, and that their counts match their steps.
    pub(super) fn check(&self) {
        assert!(self.news.is_empty() && !self.is_handling, "a step has ended and its graph does not know");
        let mut waiting: IdMap<JobId, usize> = IdMap::default();
        for (slot, graph) in self.entries.iter() {
            let found = self.by_id.get(&graph.id()) == Some(&slot);
            assert!(found != graph.is_stopped(), "graph {} is filed wrongly", graph.id());
            let count = graph.check();
            if 0 < count {
                *waiting.entry(graph.id().job()).or_default() += count;
            }
        }
        assert_eq!(waiting, self.waiting, "steps that wait are miscounted");
        let of_jobs = self.entries.iter().map(|(slot, graph)| (graph.id().job(), slot)).collect();
        assert_eq!(self.of_job, of_jobs, "graphs of jobs");
        let senders = |(slot, graph): (Slot<Graph>, &Graph)| {
            graph.senders().map(|client| (client, slot)).collect::<Vec<_>>()
        };
        let of_clients = self.entries.iter().flat_map(senders).collect();
        assert_eq!(self.of_client, of_clients, "graphs of clients");
        assert!(self.by_id.len() <= self.entries.len(), "a graph is found that is gone");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MANY: ClientId = ClientId(1);
    const FEW: ClientId = ClientId(2);

    fn begin(graphs: &mut Graphs, number: u64, client: ClientId) -> Slot<Graph> {
        let submitter = Submitter { client, is_task: true, depth: 0, deadline: None };
        graphs.begin(TaskId::root(JobId(1)).child(number), submitter)
    }

    /// The end of a client looks at the graphs of which it sends parts, not at those of others, nor at its
    /// own that are complete.
    #[test]
    fn a_client_that_goes_is_looked_for_in_its_own_graphs_only() {
        let mut graphs = Graphs::default();
        let others: Vec<_> = (0..10_000).map(|number| begin(&mut graphs, number, MANY)).collect();
        let complete: Vec<_> = (10_000..20_000).map(|number| begin(&mut graphs, number, FEW)).collect();
        complete.iter().for_each(|slot| drop(graphs.close(*slot)));
        let open: Vec<_> = (20_000..20_010).map(|number| begin(&mut graphs, number, FEW)).collect();
        graphs.shared_with(others[0], FEW, false);
        graphs.shared_with(others[1], FEW, false);
        graphs.shared_with(others[1], FEW, true);
        let looks = graphs.of_client(FEW);
        assert_eq!(looks.len(), open.len() + 1, "{} graphs are looked at", looks.len());
        assert_eq!(graphs.client_gone(FEW), open, "the other one goes on without it");
        assert!(graphs.of_client(FEW).is_empty());
        open.into_iter().for_each(|slot| drop(graphs.stop(slot)));
        assert_eq!(graphs.client_gone(MANY).len(), others.len());
    }

    #[test]
    fn a_graph_that_stops_awaits_no_parts() {
        let mut graphs = Graphs::default();
        let graph = begin(&mut graphs, 0, MANY);
        graphs.shared_with(graph, FEW, false);
        graphs.stop(graph);
        assert!(graphs.client_gone(MANY).is_empty() && graphs.client_gone(FEW).is_empty());
    }
}
