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
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use tharsis_types::{JobId, Placement, Resources, TaskClass, TaskId};

/// A bundle: the task that made its group, and its index.
pub type BundleId = (TaskId, u32);

/// Source of the resources of a lease: the node itself, or a bundle.
pub(super) type Pool = Option<BundleId>;

/// The bundles of a node.
#[derive(Debug, Default)]
pub(super) struct Bundles {
    all: BTreeMap<BundleId, Bundle>,
    /// The resources of all together.
    held: Resources,
    /// Those that have GPUs.
    with_gpus: BTreeSet<BundleId>,
    /// Those that are closing.
    closing: BTreeSet<BundleId>,
    /// Closing ones that may be over.
    emptied: BTreeSet<BundleId>,
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
    /// Leases that have resources of it.
    leases: BTreeSet<LeaseKey>,
    /// Number of workers that were cut off with resources of it.
    cut_off: usize,
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

    /// All resources of all bundles.
    pub(super) fn held(&self) -> &Resources {
        &self.held
    }

    /// The resources of each bundle of a job.
    pub(super) fn of_job(&self, job: JobId) -> impl Iterator<Item = &Resources> {
        self.all.values().filter(move |bundle| bundle.job == job).map(|bundle| &bundle.total)
    }

    /// The GPUs of each bundle that has some.
    pub(super) fn all_gpus(&self) -> impl Iterator<Item = &[Part]> {
        self.with_gpus.iter().map(|id| self.gpus(*id))
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

    /// The leases that have resources of a bundle.
    pub(super) fn leases(&self, id: BundleId) -> impl Iterator<Item = LeaseKey> {
        self.all[&id].leases.iter().copied()
    }

    /// A lease takes resources of a pool.
    pub(super) fn enter(&mut self, pool: Pool, lease: LeaseKey) {
        if let Some(id) = pool {
            let is_new = bundle_mut(&mut self.all, id).leases.insert(lease);
            assert!(is_new, "{lease:?} has resources of {id:?} twice");
        }
    }

    /// A lease has given back what it took from a pool.
    pub(super) fn leave(&mut self, pool: Pool, lease: LeaseKey) {
        let Some(id) = pool else { return };
        let was_inside = bundle_mut(&mut self.all, id).leases.remove(&lease);
        assert!(was_inside, "{lease:?} leaves {id:?} and is not inside");
        self.emptied.extend(self.closing.get(&id));
    }

    /// A lease is gone, and a worker that was cut off has what it took from a pool.
    pub(super) fn cut_off(&mut self, pool: Pool, lease: LeaseKey) {
        self.leave(pool, lease);
        if let Some(id) = pool {
            bundle_mut(&mut self.all, id).cut_off += 1;
        }
    }

    /// A worker that was cut off has given back what it had of a pool.
    pub(super) fn cut_off_gone(&mut self, pool: Pool) {
        let Some(id) = pool else { return };
        let bundle = bundle_mut(&mut self.all, id);
        assert!(0 < bundle.cut_off, "more workers leave {id:?} than were cut off inside");
        bundle.cut_off -= 1;
        self.emptied.extend(self.closing.get(&id));
    }

    fn close(&mut self, id: BundleId) {
        bundle_mut(&mut self.all, id).is_closing = true;
        self.closing.insert(id);
        self.emptied.insert(id);
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
        let (lease, job, leases) = (key, class.job, BTreeSet::new());
        self.bundles.held.give(&total);
        self.bundles.with_gpus.extend((!gpus.is_empty()).then_some(id));
        let bundle = Bundle { lease, job, total, gpus, stock, leases, cut_off: 0, is_closing: false };
        let before = self.bundles.all.insert(id, bundle);
        assert!(before.is_none(), "{id:?} is reserved twice");
        self.waiting.group_changed(id.0);
    }

    /// A bundle is open: other requests for it are denied.
    pub(super) fn deny_others(&mut self, id: BundleId, out: &mut Vec<Effect>) {
        for key in self.waiting.for_bundle(id) {
            let Some(lease) = self.leases.remove(&key) else { continue };
            self.waiting.remove(&lease.class, (Reverse(lease.urgency), lease.asked), key);
            self.waits_no_more(&lease.class);
            out.push(Effect::Denied(key));
        }
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
        let waiting = self.waiting.keys_inside(group);
        let is_homeless = |key: &LeaseKey| self.bundles.pools(&self.leases[key].class).is_empty();
        let homeless: Vec<_> = waiting.filter(is_homeless).collect();
        for key in homeless {
            self.end(key, out);
            out.push(Effect::Denied(key));
        }
    }

    /// Gives the resources of bundles back that are closing and have nothing inside.
    pub(super) fn end_closed(&mut self, out: &mut Vec<Effect>) {
        while let Some(id) = self.bundles.emptied.pop_first() {
            let is_over = |bundle: &Bundle| bundle.leases.is_empty() && bundle.cut_off == 0;
            if !self.bundles.all.get(&id).is_some_and(is_over) {
                continue;
            }
            let Some(bundle) = self.bundles.all.remove(&id) else { continue };
            self.bundles.closing.remove(&id);
            self.bundles.with_gpus.remove(&id);
            let were_held = self.bundles.held.take(&bundle.total);
            assert!(were_held, "the resources of {id:?} are not among those of all bundles");
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
        self.bundles.leases(id).map(|key| (key, self.leases[&key].state)).collect()
    }

    /// Asserts that the bundles agree with the leases inside; returns the resources that they hold.
    pub(super) fn check_bundles(&self) -> Vec<(JobId, &Resources)> {
        let closing = self.bundles.all.iter().filter(|(_, bundle)| bundle.is_closing).map(|(id, _)| id);
        assert!(self.bundles.closing.iter().eq(closing), "closing bundles are misfiled");
        let with_gpus = self.bundles.all.iter().filter(|(_, bundle)| !bundle.gpus.is_empty());
        assert!(
            self.bundles.with_gpus.iter().eq(with_gpus.map(|(id, _)| id)),
            "GPUs of bundles are misfiled"
        );
        let mut held = Resources::default();
        self.bundles.all.values().for_each(|bundle| held.give(&bundle.total));
        let known = &self.bundles.held;
        assert!(held.fits(known) && known.fits(&held), "the resources of bundles do not add up");
        let mut members: BTreeMap<BundleId, BTreeSet<LeaseKey>> = BTreeMap::new();
        for (key, lease) in &self.leases {
            if let Some(id) = lease.pool {
                members.entry(id).or_default().insert(*key);
            }
        }
        for (id, bundle) in &self.bundles.all {
            let leases = members.remove(id).unwrap_or_default();
            assert_eq!(bundle.leases, leases, "leases inside {id:?} are misfiled");
            let cut_off = self.cut_off.values().filter(|worker| worker.pool == Some(*id)).count();
            assert_eq!(bundle.cut_off, cut_off, "workers cut off inside {id:?} are miscounted");
            let count = leases.len() + cut_off;
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
