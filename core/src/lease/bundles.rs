//! Bundles of placement groups: resources of the node that are set aside, and the leases inside.
//!
//! A bundle is a lease without a worker: it is asked for, waits and is granted like any other, so that the
//! shares of the jobs and the order of requests hold for it too. Leases of the group take their resources
//! from the bundle, and lend them and wait for them inside it. What a bundle holds counts for its job, not
//! what is taken inside.
//!
//! | state of a bundle | means | leaves by |
//! |---|---|---|
//! | open | leases may be placed inside | its lease ends, the node drains |
//! | closing | nothing more is placed inside; it still has its resources | the last lease inside ends |

use super::gpus::{Part, Parts};
use super::stock::Stock;
use super::{Effect, LeaseKey, Leases, State};
use std::collections::BTreeMap;
use tharsis_types::{JobId, Placement, Resources, TaskClass, TaskId};

/// A bundle: the task that made its group, and its index.
pub type BundleId = (TaskId, u32);

/// Source of the resources of a lease: the node itself, or a bundle.
pub(super) type Pool = Option<BundleId>;

/// The bundles of a node.
#[derive(Debug, Default)]
pub(super) struct Bundles {
    all: BTreeMap<BundleId, Bundle>,
    closing_count: usize,
    /// Waiting requests that only bundles can serve.
    pub(super) waiting_inside: usize,
}

#[derive(Debug)]
struct Bundle {
    /// The lease that holds it.
    lease: LeaseKey,
    job: JobId,
    total: Resources,
    /// The GPUs of the node among these.
    gpus: Parts,
    stock: Stock,
    /// Leases that have resources of it, and workers that were cut off with them.
    members: usize,
    is_closing: bool,
}

/// Whether a class belongs inside a group.
pub(super) fn is_inside(class: &TaskClass) -> bool {
    matches!(class.placement, Placement::Group { .. })
}

/// The bundle that a lease of the class holds.
pub(super) fn held_bundle(class: &TaskClass) -> Option<BundleId> {
    match class.placement {
        Placement::Bundle { group, index } => Some((group, index)),
        _ => None,
    }
}

impl Bundles {
    /// The pools from which leases of a class may take resources.
    pub(super) fn pools(&self, class: &TaskClass) -> Vec<Pool> {
        let Placement::Group { group, bundle } = class.placement else { return vec![None] };
        let range = bundle.map_or((group, 0)..=(group, u32::MAX), |index| (group, index)..=(group, index));
        let open = self.all.range(range).filter(|(_, bundle)| !bundle.is_closing);
        open.map(|(id, _)| Some(*id)).collect()
    }

    /// All resources of each bundle.
    pub(super) fn totals(&self) -> impl Iterator<Item = &Resources> {
        self.all.values().map(|bundle| &bundle.total)
    }

    /// The GPUs of each bundle.
    pub(super) fn all_gpus(&self) -> impl Iterator<Item = &[Part]> {
        self.all.values().map(|bundle| &bundle.gpus[..])
    }

    /// The GPUs of a bundle.
    pub(super) fn gpus(&self, id: BundleId) -> &[Part] {
        &self.all[&id].gpus
    }

    /// All resources of a bundle.
    pub(super) fn total(&self, id: BundleId) -> &Resources {
        &self.all[&id].total
    }

    /// The free resources of a bundle.
    pub(super) fn free(&self, id: BundleId) -> &Resources {
        self.all[&id].stock.free()
    }

    /// The resources of a bundle, to take some or give some back.
    pub(super) fn stock_mut(&mut self, id: BundleId) -> &mut Stock {
        &mut bundle_mut(&mut self.all, id).stock
    }

    /// Whether there is such a bundle.
    pub(super) fn has(&self, id: BundleId) -> bool {
        self.all.contains_key(&id)
    }

    /// A lease takes resources of a pool.
    pub(super) fn enter(&mut self, pool: Pool) {
        if let Some(id) = pool {
            bundle_mut(&mut self.all, id).members += 1;
        }
    }

    /// A lease has given back what it took from a pool.
    pub(super) fn leave(&mut self, pool: Pool) {
        let Some(id) = pool else { return };
        let bundle = bundle_mut(&mut self.all, id);
        assert!(0 < bundle.members, "more leases leave {id:?} than are inside");
        bundle.members -= 1;
    }

    fn close(&mut self, id: BundleId) {
        let bundle = bundle_mut(&mut self.all, id);
        self.closing_count += usize::from(!bundle.is_closing);
        bundle.is_closing = true;
    }
}

impl Leases {
    /// Bundles of placement groups here.
    #[must_use]
    pub fn bundle_count(&self) -> usize {
        self.bundles.all.len()
    }

    /// A lease has the resources of a bundle: it is open.
    pub(super) fn open_bundle(&mut self, key: LeaseKey, id: BundleId, class: &TaskClass, gpus: Parts) {
        let (total, stock) = (class.resources.clone(), Stock::of_bundle(class.resources.clone(), &gpus));
        let bundle = Bundle { lease: key, job: class.job, total, gpus, stock, members: 0, is_closing: false };
        let before = self.bundles.all.insert(id, bundle);
        assert!(before.is_none(), "{id:?} is reserved twice");
    }

    /// The lease of a bundle has ended: so do all leases inside, now or with their workers.
    pub(super) fn close_bundle(&mut self, id: BundleId, out: &mut Vec<Effect>) {
        self.bundles.close(id);
        for (key, state) in self.inside(id) {
            match state {
                State::Active(client) => out.push(Effect::Evict(client)),
                // They are placed, and wait for a worker.
                _ => {
                    self.end(key, out);
                    out.push(Effect::Denied(key));
                }
            }
        }
        self.deny_homeless(id, out);
        self.end_closed(out);
    }

    /// The node drains: nothing more is placed in its bundles, which end with the leases inside.
    pub(super) fn vacate_bundles(&mut self, out: &mut Vec<Effect>) {
        for (id, lease) in self.bundles.all.iter().map(|(id, b)| (*id, b.lease)).collect::<Vec<_>>() {
            let was_open = !self.bundles.all[&id].is_closing;
            self.bundles.close(id);
            if was_open {
                out.push(Effect::Recall(lease));
            }
        }
        self.end_closed(out);
    }

    /// Denies waiting requests that could only be served by a bundle that is closing.
    fn deny_homeless(&mut self, (group, _): BundleId, out: &mut Vec<Effect>) {
        let is_of_group =
            |class: &TaskClass| matches!(class.placement, Placement::Group { group: of, .. } if of == group);
        let waiting = self.waiting.keys();
        let homeless: Vec<_> = waiting
            .filter(|key| {
                let class = &self.leases[key].class;
                is_of_group(class) && self.bundles.pools(class).is_empty()
            })
            .collect();
        for key in homeless {
            self.end(key, out);
            out.push(Effect::Denied(key));
        }
    }

    /// Gives the resources of bundles back that are closing and have nothing inside.
    pub(super) fn end_closed(&mut self, out: &mut Vec<Effect>) {
        if self.bundles.closing_count == 0 {
            return;
        }
        let is_over = |bundle: &Bundle| bundle.is_closing && bundle.members == 0;
        let over: Vec<_> = self.bundles.all.iter().filter(|(_, b)| is_over(b)).map(|(id, _)| *id).collect();
        for id in over {
            let Some(bundle) = self.bundles.all.remove(&id) else { continue };
            self.bundles.closing_count -= 1;
            self.release(None, bundle.job, &bundle.total, &bundle.gpus);
            if self.ended_jobs.contains(bundle.job) {
                self.shares.end(bundle.job);
            }
            if self.leases.remove(&bundle.lease).is_some() {
                // It ends because the node drains, not because its owner gave it back.
                out.push(Effect::Revoked(bundle.lease));
            }
        }
    }

    fn inside(&self, id: BundleId) -> Vec<(LeaseKey, State)> {
        let inside = self.leases.iter().filter(|(_, lease)| lease.pool == Some(id));
        let mut inside: Vec<_> = inside.map(|(key, lease)| (*key, lease.state)).collect();
        inside.sort_unstable_by_key(|(key, _)| *key);
        inside
    }

    /// Asserts that the bundles agree with the leases inside; returns the resources that they hold.
    pub(super) fn check_bundles(&self) -> Vec<(JobId, &Resources)> {
        let closing = self.bundles.all.values().filter(|bundle| bundle.is_closing).count();
        assert_eq!(self.bundles.closing_count, closing, "closing bundles are miscounted");
        let inside = self.waiting.keys().filter(|key| is_inside(&self.leases[key].class)).count();
        assert_eq!(self.bundles.waiting_inside, inside, "requests inside bundles are miscounted");
        let mut members: BTreeMap<BundleId, usize> = BTreeMap::new();
        let leases = self.leases.values().filter_map(|lease| lease.pool);
        let cut_off = self.cut_off.values().filter_map(|worker| worker.pool);
        leases.chain(cut_off).for_each(|id| *members.entry(id).or_default() += 1);
        for (id, bundle) in &self.bundles.all {
            let count = members.remove(id).unwrap_or(0);
            assert_eq!(bundle.members, count, "leases inside {id:?} are miscounted");
            let lease = self.leases.get(&bundle.lease);
            let is_held = lease.is_some_and(|lease| lease.state == State::Bundle);
            assert!(is_held || bundle.is_closing, "{id:?} is held by nobody");
            assert!(!bundle.is_closing || 0 < count, "{id:?} is over and is still there");
        }
        assert!(members.is_empty(), "leases have resources of bundles that are gone: {members:?}");
        let held = self.leases.values().filter(|lease| lease.state == State::Bundle);
        assert!(held.count() <= self.bundles.all.len(), "a lease holds a bundle that is gone");
        self.bundles.all.values().map(|bundle| (bundle.job, &bundle.total)).collect()
    }

    /// Asserts that what is free in a bundle and what its leases take add up.
    pub(super) fn check_inside(&self, used: &BTreeMap<BundleId, Resources>) {
        for (id, bundle) in &self.bundles.all {
            let mut all = bundle.stock.sum();
            used.get(id).into_iter().for_each(|used| all.give(used));
            let mut total = bundle.total.clone();
            all.custom.retain(|_, n| *n > 0);
            total.custom.retain(|_, n| *n > 0);
            assert_eq!(all, total, "free and used resources of {id:?} do not add up");
        }
    }
}

/// The bundle that a lease or a list names; it must exist.
#[allow(clippy::expect_used, reason = "a name of our own for a bundle that is gone is a defect here")]
fn bundle_mut(bundles: &mut BTreeMap<BundleId, Bundle>, id: BundleId) -> &mut Bundle {
    bundles.get_mut(&id).expect("a lease names a bundle that is gone")
}
