//! Knowledge of the loads of other nodes, and for how long it is believed.
//!
//! In a large cluster a node hears the loads of those that it asked a moment ago, and of nobody else. So a
//! node of which nothing was heard for [`NEWS_LAST_FOR`] counts as unused until it denies a lease. The number
//! of such guesses that may fail is bounded: [`DENIALS_MAX`] per [`DENIALS_PER`]. Above it, only nodes that
//! said that they have room are asked.

use super::Turn;
use crate::{MS, Now};
use std::collections::{BTreeMap, BTreeSet};
use tharsis_types::{NodeId, Resources};

/// A node that denied a lease is not asked again for this long, unless it reports.
pub(super) const DENIED_FOR: Now = 50 * MS;
/// In a large cluster a load is believed for this long.
const NEWS_LAST_FOR: Now = 2_000 * MS;
/// In a large cluster at most so many denials in [`DENIALS_PER`]; then nobody is asked on a guess.
const DENIALS_MAX: u32 = 16;
/// Of these, for what waits somewhere already: the others are left to work that has no place yet.
const SECOND_DENIALS_MAX: u32 = DENIALS_MAX / 2;
/// Time in which denials are counted.
const DENIALS_PER: Now = 500 * MS;

/// Load of a node as others see it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Load {
    /// Unused resources.
    pub free: Resources,
    /// Lease requests that wait there.
    pub waiting: u32,
}

/// Loads of nodes of which there was news.
#[derive(Debug, Default)]
pub(super) struct Loads {
    news: BTreeMap<NodeId, News>,
    /// Nodes that denied a lease, by the time at which they may be asked again.
    denials: BTreeSet<(Now, NodeId)>,
    /// When counting of denials began, and their number since then.
    counted_from: Now,
    denial_count: u32,
}

#[derive(Debug)]
struct News {
    load: Load,
    heard_at: Now,
    /// The time in `denials`; 0 without one.
    denied_until: Now,
}

impl Loads {
    /// A node reported its load.
    pub(super) fn reported(&mut self, now: Now, node: NodeId, load: Load) {
        if let Some(news) = self.news.get_mut(&node) {
            self.denials.remove(&(news.denied_until, node));
            *news = News { load, heard_at: now, denied_until: 0 };
        } else {
            self.news.insert(node, News { load, heard_at: now, denied_until: 0 });
        }
    }

    /// A node had no room.
    pub(super) fn denied(&mut self, now: Now, node: NodeId, free: Resources) {
        let waiting = self.news.get(&node).map_or(0, |news| news.load.waiting);
        self.reported(now, node, Load { free, waiting });
        if let Some(news) = self.news.get_mut(&node) {
            news.denied_until = now + DENIED_FOR;
            self.denials.insert((news.denied_until, node));
        }
        if self.counted_from + DENIALS_PER <= now {
            (self.counted_from, self.denial_count) = (now, 0);
        }
        self.denial_count += 1;
    }

    /// Resources were asked of a node that has `total`: it has less free until its next report.
    pub(super) fn asked(&mut self, now: Now, node: NodeId, demand: &Resources, total: &Resources) {
        let unused =
            || News { load: Load { free: total.clone(), waiting: 0 }, heard_at: now, denied_until: 0 };
        let _fits = self.news.entry(node).or_insert_with(unused).load.free.take(demand);
    }

    /// Resources that were asked of a node are given back.
    pub(super) fn gave_back(&mut self, node: NodeId, taken: &Resources) {
        if let Some(news) = self.news.get_mut(&node) {
            news.load.free.give(taken);
            self.denials.remove(&(news.denied_until, node));
            news.denied_until = 0;
        }
    }

    /// A node left the cluster.
    pub(super) fn left(&mut self, node: NodeId) {
        if let Some(news) = self.news.remove(&node) {
            self.denials.remove(&(news.denied_until, node));
        }
    }

    /// Forgets a load that is too old to be believed.
    pub(super) fn forget_old(&mut self, now: Now, node: NodeId) {
        if self.news.get(&node).is_some_and(|news| news.heard_at + NEWS_LAST_FOR <= now) {
            self.left(node);
        }
    }

    /// The last load that was heard of a node.
    pub(super) fn of(&self, node: NodeId) -> Option<&Load> {
        self.news.get(&node).map(|news| &news.load)
    }

    /// Whether a node denied a lease a moment ago.
    pub(super) fn is_denied(&self, now: Now, node: NodeId) -> bool {
        self.news.get(&node).is_some_and(|news| now < news.denied_until)
    }

    /// Whether a node of which nothing is known may be asked.
    pub(super) fn may_guess(&self, now: Now, turn: Turn) -> bool {
        let max = match turn {
            Turn::First => DENIALS_MAX,
            Turn::Second => SECOND_DENIALS_MAX,
        };
        self.denial_count < max || self.counted_from + DENIALS_PER <= now
    }

    /// When the next node that denied a lease may be asked again.
    pub(super) fn next_timeout(&self, now: Now) -> Option<Now> {
        self.denials.range((now + 1, NodeId(0))..).next().map(|(at, _)| *at)
    }

    /// Asserts that the denials are those of the news.
    pub(super) fn check(&self) {
        for (at, node) in &self.denials {
            assert_eq!(self.news.get(node).map(|news| news.denied_until), Some(*at), "a denial is misfiled");
        }
        let denied = self.news.values().filter(|news| 0 < news.denied_until).count();
        assert_eq!(denied, self.denials.len(), "a denial is filed twice or not at all");
    }
}
