//! Nobody waits long for what is free: looks at all queues and all nodes at once, which no node can.
//!
//! A task that is queued while some node has room for it gets that room soon. Two things may keep it from
//! that: resources are kept for a while for something larger that waits too, and news of room is late where
//! nodes do not reach each other or workers do not start. Both are judged by the place where they happen. A
//! job with a quota waits for parts of that too, which may have to come from other nodes.
//!
//! The same holds for placement groups, which need room for all their bundles at once.

use crate::client::Phase;
use crate::cluster::Cluster;
use crate::program::{INSIDE, quota_of};
use crate::remembered::Since;
use std::collections::BTreeMap;
use tharsis_core::node::TaskStage;
use tharsis_core::{MS, Now};
use tharsis_types::task::Role;
use tharsis_types::{JobId, NodeId, Placement, Resources, Strategy, TaskId};

/// The longest time for which a task waits beside what is free and kept for nobody.
const WAITS_MAX: Now = 2_000 * MS;
/// The same if something larger waits for the same resources: they are kept for it, or left to others, in
/// turns.
const WAITS_BEHIND_MAX: Now = 30_000 * MS;
/// The same for a group, which tries again now and then.
const GROUP_WAITS_MAX: Now = 10_000 * MS;
/// Tasks of one ledger that are looked at; no run has so many.
const LISTED_MAX: usize = 1 << 20;
/// Interval of the looks.
const LOOK_EVERY: Now = 10 * MS;
/// A host from which news was late, or that could start no worker, is as others after this time.
pub(crate) const SETTLES_IN: Now = 5_000 * MS;

/// The rule.
const NO_STARVATION: &str = "nobody waits long for what is free";

/// A task that is queued.
struct Queued {
    /// The host of its ledger.
    owner: usize,
    task: TaskId,
    demand: Resources,
    placement: Placement,
}

/// The part of a quota that is not in use.
struct Left {
    resources: Resources,
    /// Whether each task of the job that is queued would fit by itself.
    is_enough: bool,
}

/// A host that serves requests.
struct Room {
    host: usize,
    node: NodeId,
    free: Resources,
    /// Whether all that is queued anywhere would fit by itself.
    is_enough: bool,
}

impl Cluster {
    /// A host is excused for a while, and as long again as it takes until all have heard.
    pub(crate) fn upset(&mut self, host: usize, until: Now) {
        let known = self.waiting.upset.entry(host).or_default();
        *known = (*known).max(until + SETTLES_IN);
    }

    /// Looks now and then at all who wait, and at all that is free.
    pub(crate) fn look_who_waits(&mut self) {
        if self.now < self.waiting.next_look {
            return;
        }
        self.waiting.next_look = self.now + LOOK_EVERY;
        self.look_at_resuming();
        self.look_at_asked();
        let queued = self.queued();
        let rooms = self.rooms(&queued);
        self.look_at_groups(&rooms);
        let left = self.left_of_quotas(&queued);
        let before = std::mem::take(&mut self.waiting.tasks);
        for waiter in &queued {
            let fits = |room: &&Room| self.may_run(waiter, room) && room.free.fits(&waiter.demand);
            let all: Vec<_> = rooms.iter().filter(fits).collect();
            let Some(first) = all.first() else { continue };
            let left = left.get(&waiter.task.job());
            if left.is_some_and(|left| !left.resources.fits(&waiter.demand)) {
                continue;
            }
            let key = (self.hosts[waiter.owner].id, waiter.task);
            let known = before.get(&key);
            let room = known.map_or(self.now, |since| since.room);
            let is_own = all.iter().any(|room| room.is_enough) && left.is_none_or(|left| left.is_enough);
            let own_room = is_own.then(|| known.and_then(|since| since.own_room).unwrap_or(self.now));
            self.waiting.tasks.insert(key, Since { room, own_room });
            let longest = own_room.map_or(0, |since| (self.now - since) / MS);
            self.summary.longest_wait_ms = self.summary.longest_wait_ms.max(longest);
            let waited = |since: Now, most: Now| since + most < self.now;
            if waited(room, WAITS_BEHIND_MAX) || own_room.is_some_and(|since| waited(since, WAITS_MAX)) {
                let text = format!(
                    "{} of node {} is queued and needs {}, node {} has had {} free since {} ms, now {} ms; {}",
                    waiter.task,
                    key.0,
                    waiter.demand,
                    first.node,
                    first.free,
                    own_room.unwrap_or(room) / MS,
                    self.now / MS,
                    self.pending()
                );
                return self.fail(NO_STARVATION, text);
            }
        }
    }

    /// Workers that want their CPUs back get them when these are free.
    fn look_at_resuming(&mut self) {
        let before = std::mem::take(&mut self.waiting.resuming);
        let serving = (0..self.hosts.len()).filter(|host| self.hosts[*host].alive && !self.is_upset(*host));
        for host in serving.collect::<Vec<_>>() {
            let at = &self.hosts[host];
            let free = at.node.gauges().free;
            let resuming = at.clients.values().filter(|client| client.phase == Phase::Resuming);
            let runs = resuming.filter_map(|client| client.current.as_ref());
            let runs =
                runs.filter(|run| run.record.kind != INSIDE && quota_of(run.record.task.job()).is_none());
            let could: Vec<_> = runs.filter(|run| run.cpu <= free.cpu).map(|run| run.record.task).collect();
            for task in could {
                let since = before.get(&task).copied().unwrap_or(self.now);
                self.waiting.resuming.insert(task, since);
                if since + WAITS_MAX < self.now {
                    let text = format!(
                        "{task} has its values on node {}, which has {free} free",
                        self.hosts[host].id
                    );
                    return self.fail(NO_STARVATION, text);
                }
            }
        }
    }

    /// Groups that have bundles without nodes get these when there is room for all of them.
    fn look_at_groups(&mut self, rooms: &[Room]) {
        let before = std::mem::take(&mut self.waiting.groups);
        let mut waiting = Vec::new();
        for (owner, host) in self.hosts.iter().enumerate().filter(|(_, host)| host.alive) {
            let groups = host.node.list_groups().into_iter();
            let groups = groups.filter(|group| group.nodes.iter().all(Option::is_none));
            waiting.extend(groups.map(|group| (owner, group.id, group.spec.clone())));
        }
        let quotas = self.free_of_quotas();
        for (owner, group, spec) in waiting {
            let mut all = Resources::default();
            spec.bundles.iter().for_each(|bundle| all.give(bundle));
            let known = |room: &&Room| self.knows(owner, room) && !self.hosts[owner].node.drains(room.node);
            let fitting = |demand: &Resources| {
                rooms.iter().filter(known).filter(|room| room.is_enough && room.free.fits(demand)).count()
            };
            let has_room = match spec.strategy {
                Strategy::StrictSpread => spec.bundles.len() <= fitting(&spec.bundles[0]),
                Strategy::Pack | Strategy::Spread | Strategy::StrictPack => 0 < fitting(&all),
            };
            if !has_room || quotas.get(&group.job()).is_some_and(|left| !left.fits(&all)) {
                continue;
            }
            let since = before.get(&group).copied().unwrap_or(self.now);
            self.waiting.groups.insert(group, since);
            if since + GROUP_WAITS_MAX < self.now {
                let text = format!(
                    "group {group} needs {all}, there has been room since {} ms, now {} ms; {}",
                    since / MS,
                    self.now / MS,
                    self.pending()
                );
                return self.fail(NO_STARVATION, text);
            }
        }
    }

    /// The part of its quota that each job could hold besides what it holds, and whether that is enough for
    /// each of its tasks that are queued.
    fn left_of_quotas(&self, queued: &[Queued]) -> BTreeMap<JobId, Left> {
        let free = self.free_of_quotas();
        let left = free.into_iter().map(|(job, resources)| {
            let mut tasks = queued.iter().filter(|waiter| waiter.task.job() == job);
            let is_enough = tasks.all(|waiter| resources.fits(&waiter.demand));
            (job, Left { resources, is_enough })
        });
        left.collect()
    }

    /// The part of its quota that each job could hold besides what it holds: nothing while news from or to
    /// the node of its driver may be late, or a part of it is on its way to a host that is cut off.
    fn free_of_quotas(&self) -> BTreeMap<JobId, Resources> {
        let mut free = BTreeMap::new();
        for (home, host) in self.hosts.iter().enumerate() {
            for (job, quota) in host.driven.iter().filter_map(|job| Some((*job, quota_of(*job)?))) {
                // The need of a task of other resources than CPUs is not bounded.
                let mut left = host.member.resources.clone();
                left.cpu = 0;
                if host.alive && !self.is_upset(home) && self.waiting.news_late <= self.now {
                    left.cpu = quota.cpu.unwrap_or(0);
                    for at in self.hosts.iter().filter(|at| at.alive) {
                        left.cpu =
                            left.cpu.saturating_sub(at.node.held_of_quota(job).map_or(0, |held| held.cpu));
                    }
                }
                free.insert(job, left);
            }
        }
        free
    }

    /// Tasks that are queued anywhere, but for those inside of groups.
    fn queued(&self) -> Vec<Queued> {
        let mut all = Vec::new();
        for (owner, host) in self.hosts.iter().enumerate().filter(|(_, host)| host.alive) {
            if host.node.queued_count() == 0 {
                continue;
            }
            let list = host.node.list_tasks(self.now, LISTED_MAX, |task| {
                task.stage == TaskStage::Queued && task.owner == host.id && task.class.role != Role::Method
            });
            all.extend(list.tasks.iter().map(|task| Queued {
                owner,
                task: task.id,
                demand: task.class.resources.clone(),
                placement: task.class.placement.clone(),
            }));
        }
        all
    }

    /// Hosts that serve requests, and what they have free.
    fn rooms(&self, queued: &[Queued]) -> Vec<Room> {
        let serves = |host: &usize| {
            let at = &self.hosts[*host];
            at.alive && !at.node.is_draining() && !self.is_upset(*host)
        };
        let serving = (0..self.hosts.len()).filter(serves);
        let room = |host: usize| {
            let free = self.hosts[host].node.gauges().free;
            let is_enough = queued.iter().all(|waiter| free.fits(&waiter.demand));
            Room { host, node: self.hosts[host].id, free, is_enough }
        };
        serving.map(room).collect()
    }

    /// Whether a task may run on a host, as its owner knows the cluster.
    fn may_run(&self, waiter: &Queued, room: &Room) -> bool {
        let owner = &self.hosts[waiter.owner];
        let is_there = |node: NodeId| owner.node.members().any(|(member, _)| member.node == node);
        let is_wanted = match &waiter.placement {
            Placement::Default | Placement::Spread => true,
            Placement::Node { node, soft } => *node == room.node || *soft && !is_there(*node),
            _ => false,
        };
        self.knows(waiter.owner, room) && is_wanted && !owner.node.drains(room.node)
    }

    /// Whether the node of a ledger can ask a host.
    fn knows(&self, owner: usize, room: &Room) -> bool {
        let mut members = self.hosts[owner].node.members();
        owner == room.host || !self.is_upset(owner) && members.any(|(member, _)| member.node == room.node)
    }

    fn is_upset(&self, host: usize) -> bool {
        self.waiting.upset.get(&host).is_some_and(|until| self.now < *until)
    }
}
