//! Checks across all nodes, between events and at the end of each stage.

use crate::client::Phase;
use crate::cluster::Cluster;
use std::collections::BTreeSet;
use tharsis_types::{NodeId, ObjectId, RefId};

/// Workers that a node may have beyond what its CPUs and blocked tasks explain: leases of tasks without
/// demand, starts ahead of need, idle ones that are kept.
const SPARE_WORKERS_MAX: usize = 96;

/// Tasks of a node that a broken rule tells of.
const TOLD_MAX: usize = 30;

impl Cluster {
    /// Checks that cost too much for every event.
    pub(crate) fn check_often(&mut self) {
        self.check_owners();
        self.check_held();
        self.check_worker_counts();
        self.check_quotas();
        self.check_groups();
    }

    /// Nothing waits when nothing is left to happen.
    pub(crate) fn check_quiet(&mut self, when: &str) {
        let pending = self.pending();
        for host in self.living() {
            let mut waiting =
                self.hosts[host].clients.values().filter(|c| c.waits() || c.phase != idle_phase(c));
            if let Some(client) = waiting.next() {
                let refs = client
                    .refs
                    .iter()
                    .filter(|(_, h)| h.pending)
                    .map(|(t, h)| (t, h.reference))
                    .collect::<Vec<_>>();
                let text = format!(
                    "client {} of node {host} is {:?} when {when}, wants {refs:?}; {pending}",
                    client.id.0, client.phase
                );
                self.fail("every get ends and every blocked worker resumes", text);
                return;
            }
        }
    }

    /// Nothing is left of anything when every reference is dropped.
    pub(crate) fn check_empty(&mut self, when: &str) {
        self.check_quiet(when);
        for host in self.living() {
            let at = &self.hosts[host];
            at.node.check();
            let s = at.node.snapshot();
            let mut counts = at.node.leftovers();
            counts.extend([("copies on disk", at.disk.len()), ("CPU units of tasks", at.used_cpu as usize)]);
            counts.retain(|(_, count)| *count > 0);
            if !counts.is_empty() {
                let refs: Vec<_> = at.node.references().take(4).collect();
                let stored: Vec<_> = at.node.inventory(4).objects.iter().map(|o| o.content.object).collect();
                let text = format!(
                    "{counts:?} on node {host} ({}) after {when}; references {refs:?}; stored {stored:?}; {:?}",
                    at.id, s.pending
                );
                self.fail("nothing leaks", text);
                return;
            }
            if s.free != s.total {
                let text = format!("node {host} has {} free of {}", s.free, s.total);
                self.fail("all resources come back", text);
                return;
            }
        }
    }

    /// Workers of jobs whose driver is gone end.
    pub(crate) fn check_no_workers(&mut self) {
        let orphaned = self.oracle.ended_jobs.clone();
        for host in self.living() {
            let left = self.hosts[host].clients.values().filter(|c| orphaned.contains(&c.job)).count();
            if left > 0 {
                self.fail("workers end with their job", format!("{left} on node {host}"));
            }
        }
    }

    /// Text about the waiting items of all nodes.
    pub(crate) fn pending(&self) -> String {
        let living = self.hosts.iter().filter(|h| h.alive);
        let texts = living.map(|h| {
            let s = h.node.snapshot();
            let busy = h.clients.values().filter(|c| c.driver.is_none() && (c.phase != Phase::Idle || !c.queue.is_empty()));
            let groups: Vec<_> = h.node.list_groups().into_iter().map(|group| (group.id, group.nodes)).collect();
            let tasks = h.node.list_tasks(self.now, TOLD_MAX, |_| true).tasks;
            let tasks: Vec<_> =
                tasks.iter().map(|task| (task.id, task.stage, &task.class.function_name)).collect();
            let busy: Vec<_> = busy.map(|c| (c.id.0, c.phase, c.queue.len(), c.context.task)).collect();
            format!(
                "node {}: {} tasks, {} queued, {} running, {} leases given, {} held, {} pulls, free {}, pending {:?}, workers {busy:?}, groups {groups:?}, tasks {tasks:?}",
                h.id, s.task_count, s.queued_count, s.running_count, s.lease_count, s.leased_count, s.pull_count, s.free, s.pending
            )
        });
        texts.collect::<Vec<_>>().join("\n  ")
    }

    fn living(&self) -> Vec<usize> {
        (0..self.hosts.len()).filter(|h| self.hosts[*h].alive).collect()
    }

    /// An object that any node refers to is known to its owner, if that lives.
    fn check_owners(&mut self) {
        if 0 < self.oracle.node_deaths() {
            // A lender that died leaves a moment in which the owner is not told yet.
            return;
        }
        let mut owned: BTreeSet<(NodeId, ObjectId)> = BTreeSet::new();
        let mut borrowed = Vec::new();
        for host in self.hosts.iter().filter(|h| h.alive) {
            for reference in host.node.references() {
                if reference.owner == host.id {
                    owned.insert((host.id, reference.object));
                } else {
                    borrowed.push((host.id, reference));
                }
            }
        }
        let is_lost = |(at, r): &(NodeId, RefId)| {
            !owned.contains(&(r.owner, r.object)) && !self.doubted.contains(&(*at, r.object))
        };
        let lost = borrowed.into_iter().find(is_lost);
        if let Some((at, reference)) = lost {
            let text = format!(
                "node {at} refers to {} of node {}, which has freed it",
                reference.object, reference.owner
            );
            self.fail("no object is freed while a node refers to it", text);
        }
    }

    /// A reference that a client holds and has used is known to its node.
    fn check_held(&mut self) {
        let mut gone = None;
        for host in self.hosts.iter().filter(|h| h.alive) {
            let known: BTreeSet<_> = host.node.references().map(|r| r.object).collect();
            let held = host.clients.values().flat_map(|c| c.refs.values());
            gone = gone.or_else(|| {
                held.filter(|h| h.ended).map(|h| h.reference.object).find(|o| !known.contains(o))
            });
        }
        if let Some(object) = gone {
            self.fail("no object is freed while a client refers to it", format!("{object}"));
        }
    }

    fn check_worker_counts(&mut self) {
        for host in self.living() {
            let at = &self.hosts[host];
            let lent =
                at.clients.values().filter(|c| matches!(c.phase, Phase::Blocked | Phase::Resuming)).count();
            let cpus = (at.member.resources.cpu / 2_500) as usize;
            let actors = at.clients.values().filter(|c| c.actor.is_some()).count();
            if cpus + lent + actors + SPARE_WORKERS_MAX < at.clients.len() {
                let text = format!("{} clients on node {host}, {lent} blocked", at.clients.len());
                self.fail("workers are bounded", text);
            }
        }
    }
}

fn idle_phase(client: &crate::client::Client) -> Phase {
    if client.driver.is_some() { Phase::Working } else { Phase::Idle }
}
