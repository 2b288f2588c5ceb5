//! Choice of nodes for the bundles of a placement group.
//!
//! A plan is made with what is free. If that is not enough, it is made with what the nodes have in all, and
//! the bundles wait there. If that is not enough either, no node of the present cluster can hold the group,
//! and the reason is told. Strict strategies are decided exactly. For the others, a good guess comes first,
//! and then a search that is bounded: if it is cut off, the group is tried again later.

use super::View;
use crate::Now;
use std::cmp::Reverse;
use tharsis_types::{GroupSpec, NodeId, Resources, Strategy};

/// Maximum number of steps of a search.
const STEPS_MAX: usize = 20_000;
/// Maximum number of nodes that a reason names.
const NODES_NAMED_MAX: usize = 8;

/// Nodes for the bundles of a group that have none, in the order of the bundles.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GroupPlan {
    /// They should have room now.
    Now(Vec<NodeId>),
    /// They will have room when others have ended.
    Wait(Vec<NodeId>),
    /// The present cluster cannot hold the group; the reason is for people.
    Never(String),
    /// None were found in the time that a decision may take.
    Unclear,
}

/// A node, and what bundles may take there.
#[derive(Clone, Debug)]
struct Site {
    node: NodeId,
    room: Resources,
    /// The part of it that is used, in 1/1000.
    used: u64,
    /// Bundles of the group that are there.
    bundles: usize,
    is_local: bool,
}

/// Result of a search: for each bundle that has no node, the index of a site.
enum Found {
    Sites(Vec<usize>),
    Nothing,
    CutOff,
}

impl View {
    /// Chooses nodes for the bundles that are on none: `held` has the nodes of the others.
    #[must_use]
    pub fn plan_group(&self, now: Now, spec: &GroupSpec, held: &[Option<NodeId>]) -> GroupPlan {
        let missing: Vec<_> = spec.bundles.iter().zip(held).filter(|(_, node)| node.is_none()).collect();
        let missing: Vec<&Resources> = missing.into_iter().map(|(bundle, _)| bundle).collect();
        let free = self.sites(held, |view, node| {
            if view.loads.is_denied(now, node) {
                None
            } else {
                view.members.get(node).map(|member| view.load(member).free)
            }
        });
        let nodes =
            |sites: &[Site], chosen: Vec<usize>| chosen.into_iter().map(|at| sites[at].node).collect();
        if let Found::Sites(chosen) = search(&free, &missing, spec.strategy) {
            return GroupPlan::Now(nodes(&free, chosen));
        }
        let mut whole =
            self.sites(held, |view, node| view.members.get(node).map(|member| member.resources.clone()));
        for (bundle, node) in spec.bundles.iter().zip(held) {
            if let Some(site) = whole.iter_mut().find(|site| Some(site.node) == *node) {
                let _fits = site.room.take(bundle);
            }
        }
        match search(&whole, &missing, spec.strategy) {
            Found::Sites(chosen) => GroupPlan::Wait(nodes(&whole, chosen)),
            Found::CutOff => GroupPlan::Unclear,
            Found::Nothing => GroupPlan::Never(why_never(&whole, &missing, spec.strategy)),
        }
    }

    /// The nodes that take new work, each with its room.
    fn sites(&self, held: &[Option<NodeId>], room: impl Fn(&Self, NodeId) -> Option<Resources>) -> Vec<Site> {
        let stays = self.members.iter().filter(|member| !self.is_draining(member.node));
        let sites = stays.filter_map(|member| {
            let node = member.node;
            let room = room(self, node)?;
            let used = self.load(member).free.used_permille(&member.resources);
            let bundles = held.iter().filter(|held| **held == Some(node)).count();
            Some(Site { node, room, used, bundles, is_local: node == self.me })
        });
        sites.collect()
    }
}

/// Looks for sites of bundles.
fn search(sites: &[Site], missing: &[&Resources], strategy: Strategy) -> Found {
    match strategy {
        Strategy::StrictPack => found(together(sites, missing)),
        Strategy::StrictSpread => found(apart(sites, missing).into_iter().collect()),
        Strategy::Pack => found_or_try(pack(sites, missing), sites, missing),
        Strategy::Spread => found_or_try(spread(sites, missing), sites, missing),
    }
}

fn found(chosen: Option<Vec<usize>>) -> Found {
    chosen.map_or(Found::Nothing, Found::Sites)
}

fn found_or_try(chosen: Option<Vec<usize>>, sites: &[Site], missing: &[&Resources]) -> Found {
    chosen.map_or_else(|| try_all(sites, missing), Found::Sites)
}

/// Bundles in the order in which they are given sites: those that fit the fewest come first.
fn hardest_first(sites: &[Site], missing: &[&Resources]) -> Vec<usize> {
    let mut order: Vec<_> = (0..missing.len()).collect();
    order.sort_by_cached_key(|at| {
        let bundle = missing[*at];
        let fitting = sites.iter().filter(|site| site.room.fits(bundle)).count();
        (fitting, Reverse((bundle.gpu, bundle.cpu, bundle.memory)))
    });
    order
}

/// One site for all.
fn together(sites: &[Site], missing: &[&Resources]) -> Option<Vec<usize>> {
    let mut all = Resources::default();
    missing.iter().for_each(|bundle| all.give(bundle));
    let has_others = sites.iter().any(|site| 0 < site.bundles);
    let fitting = sites
        .iter()
        .enumerate()
        .filter(|(_, site)| (!has_others || 0 < site.bundles) && site.room.fits(&all));
    let (at, _) = fitting.min_by_key(|(_, site)| (!site.is_local, Reverse(site.used), site.node))?;
    Some(vec![at; missing.len()])
}

/// A site of its own for each bundle; `None` for those that cannot have one beside the others.
fn apart(sites: &[Site], missing: &[&Resources]) -> Vec<Option<usize>> {
    let mut order: Vec<_> = (0..sites.len()).filter(|at| sites[*at].bundles == 0).collect();
    order.sort_by_key(|at| (sites[*at].used, !sites[*at].is_local, sites[*at].node));
    let mut taken: Vec<Option<usize>> = vec![None; sites.len()];
    for bundle in hardest_first(sites, missing) {
        let mut seen = vec![false; sites.len()];
        give_site(bundle, sites, missing, &order, &mut seen, &mut taken);
    }
    let mut chosen = vec![None; missing.len()];
    for (site, bundle) in taken.iter().enumerate() {
        bundle.iter().for_each(|bundle| chosen[*bundle] = Some(site));
    }
    chosen
}

/// Gives a bundle a site, and if need be other sites to bundles that have one: an augmenting path.
fn give_site(
    bundle: usize,
    sites: &[Site],
    missing: &[&Resources],
    order: &[usize],
    seen: &mut [bool],
    taken: &mut [Option<usize>],
) -> bool {
    for site in order {
        if seen[*site] || !sites[*site].room.fits(missing[bundle]) {
            continue;
        }
        seen[*site] = true;
        let is_free = match taken[*site] {
            None => true,
            Some(other) => give_site(other, sites, missing, order, seen, taken),
        };
        if is_free {
            taken[*site] = Some(bundle);
            return true;
        }
    }
    false
}

/// As few sites as possible, as far as a guess can tell: again and again the one that takes most of what is
/// left.
fn pack(sites: &[Site], missing: &[&Resources]) -> Option<Vec<usize>> {
    let mut left = hardest_first(sites, missing);
    let mut chosen = vec![0; missing.len()];
    let mut sites: Vec<Site> = sites.to_vec();
    while !left.is_empty() {
        let takes = |site: &Site| {
            let mut room = site.room.clone();
            left.iter().filter(|at| room.take(missing[**at])).count()
        };
        let counted = sites.iter().enumerate().map(|(at, site)| (takes(site), at));
        let best = counted.max_by_key(|(count, at)| {
            let site = &sites[*at];
            (*count, 0 < site.bundles, site.is_local, Reverse(site.node))
        });
        let (_, at) = best.filter(|(count, _)| 0 < *count)?;
        left.retain(|bundle| {
            let fits = sites[at].room.take(missing[*bundle]);
            if fits {
                chosen[*bundle] = at;
            }
            !fits
        });
    }
    Some(chosen)
}

/// Each bundle on the site that has the fewest, as far as a guess can tell.
fn spread(sites: &[Site], missing: &[&Resources]) -> Option<Vec<usize>> {
    let mut chosen = vec![0; missing.len()];
    let mut sites: Vec<Site> = sites.to_vec();
    for bundle in hardest_first(&sites, missing) {
        let fitting = sites.iter_mut().enumerate().filter(|(_, site)| site.room.fits(missing[bundle]));
        let (at, site) =
            fitting.min_by_key(|(_, site)| (site.bundles, site.used, !site.is_local, site.node))?;
        let _fits = site.room.take(missing[bundle]);
        site.bundles += 1;
        chosen[bundle] = at;
    }
    Some(chosen)
}

/// Tries all ways to place bundles, within [`STEPS_MAX`].
fn try_all(sites: &[Site], missing: &[&Resources]) -> Found {
    let order = hardest_first(sites, missing);
    let mut rooms: Vec<_> = sites.iter().map(|site| site.room.clone()).collect();
    let mut chosen = vec![0; missing.len()];
    let mut steps = 0;
    if try_rest(&order, missing, &mut rooms, &mut chosen, &mut steps) {
        Found::Sites(chosen)
    } else if STEPS_MAX <= steps {
        Found::CutOff
    } else {
        Found::Nothing
    }
}

fn try_rest(
    order: &[usize],
    missing: &[&Resources],
    rooms: &mut [Resources],
    chosen: &mut [usize],
    steps: &mut usize,
) -> bool {
    let Some((bundle, rest)) = order.split_first() else { return true };
    for at in 0..rooms.len() {
        if STEPS_MAX <= *steps {
            return false;
        }
        *steps += 1;
        // A bundle that led to no end on one site does not on another one with the same room.
        if rooms[..at].contains(&rooms[at]) || !rooms[at].take(missing[*bundle]) {
            continue;
        }
        chosen[*bundle] = at;
        if try_rest(rest, missing, rooms, chosen, steps) {
            return true;
        }
        rooms[at].give(missing[*bundle]);
    }
    false
}

/// Why unused nodes cannot hold the bundles.
fn why_never(sites: &[Site], missing: &[&Resources], strategy: Strategy) -> String {
    if let Some(bundle) = missing.iter().find(|bundle| !sites.iter().any(|site| site.room.fits(bundle))) {
        return format!("no node can hold a bundle of {bundle}: {}", lacks(sites, bundle));
    }
    let mut all = Resources::default();
    missing.iter().for_each(|bundle| all.give(bundle));
    match strategy {
        Strategy::StrictPack => {
            format!("no node can hold all bundles, {all} together: {}", lacks(sites, &all))
        }
        Strategy::StrictSpread => {
            let (count, at_most) = (missing.len(), apart(sites, missing).iter().flatten().count());
            format!("{count} bundles are to be on nodes of their own, and only {at_most} nodes can hold one")
        }
        Strategy::Pack | Strategy::Spread => {
            let mut have = Resources::default();
            sites.iter().for_each(|site| have.give(&site.room));
            format!("the bundles need {all} together and do not fit the nodes, which have {have}")
        }
    }
}

fn lacks(sites: &[Site], demand: &Resources) -> String {
    let lacks = sites.iter().filter_map(|site| Some((site.node, site.room.lacking(demand)?)));
    let lines: Vec<_> = lacks
        .map(|(node, (name, need, have))| {
            let unit = if name == "memory" { 1.0 } else { Resources::UNIT as f64 };
            format!("node {node} has {} of {} {name}", have as f64 / unit, need as f64 / unit)
        })
        .take(NODES_NAMED_MAX)
        .collect();
    if lines.is_empty() { "there is no node".to_owned() } else { lines.join("; ") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Member;
    use crate::place::Load;
    use std::sync::Arc;

    fn cpus(count: f64) -> Resources {
        Resources::cpus(count).unwrap()
    }

    /// A cluster of nodes with these CPUs, as the first of them sees it.
    fn cluster(all: &[f64]) -> View {
        let member =
            |at: usize| Member { node: NodeId(at as u64 + 1), resources: cpus(all[at]), labels: Vec::new() };
        let mut view = View::new(member(0), 16);
        (1..all.len()).for_each(|at| view.joined(Arc::new(member(at))));
        view
    }

    fn spec(strategy: Strategy, bundles: &[f64]) -> GroupSpec {
        let bundles = bundles.iter().map(|count| cpus(*count)).collect();
        GroupSpec { bundles, strategy, patience_ms: 1_000 }
    }

    fn plan(view: &View, strategy: Strategy, bundles: &[f64]) -> GroupPlan {
        view.plan_group(0, &spec(strategy, bundles), &vec![None; bundles.len()])
    }

    fn nodes(all: &[u64]) -> Vec<NodeId> {
        all.iter().map(|n| NodeId(*n)).collect()
    }

    #[test]
    fn each_strategy_spreads_bundles_in_its_way() {
        let view = cluster(&[2.0, 4.0, 2.0]);
        assert_eq!(plan(&view, Strategy::Pack, &[1.0; 4]), GroupPlan::Now(nodes(&[2, 2, 2, 2])));
        assert_eq!(plan(&view, Strategy::Pack, &[1.0; 2]), GroupPlan::Now(nodes(&[1, 1])));
        assert_eq!(plan(&view, Strategy::StrictPack, &[2.0, 1.0]), GroupPlan::Now(nodes(&[2, 2])));
        let GroupPlan::Now(mut apart) = plan(&view, Strategy::StrictSpread, &[1.0, 2.0, 1.0]) else {
            panic!()
        };
        apart.sort_unstable();
        assert_eq!(apart, nodes(&[1, 2, 3]));
        let GroupPlan::Now(mut most) = plan(&view, Strategy::Spread, &[1.0; 4]) else { panic!() };
        most.sort_unstable();
        most.dedup();
        assert_eq!(most, nodes(&[1, 2, 3]), "a fourth bundle shares a node");
    }

    #[test]
    fn bundles_on_nodes_of_their_own_make_way_for_each_other() {
        // The large bundle fits one node only, which is the least used one for the small bundle too.
        let view = cluster(&[1.0, 4.0]);
        assert_eq!(plan(&view, Strategy::StrictSpread, &[1.0, 4.0]), GroupPlan::Now(nodes(&[1, 2])));
    }

    #[test]
    fn what_greed_does_not_find_is_searched_for() {
        // By size, 3 goes beside 3, and then the three of 2 have 4 in all.
        let view = cluster(&[6.0, 6.0]);
        let GroupPlan::Now(found) = plan(&view, Strategy::Pack, &[3.0, 3.0, 2.0, 2.0, 2.0]) else { panic!() };
        assert_eq!(found.iter().filter(|node| **node == found[0]).count(), 2);
        let view = cluster(&[7.0, 5.0]);
        let tight = plan(&view, Strategy::Pack, &[4.0, 3.0, 3.0, 2.0]);
        assert!(matches!(tight, GroupPlan::Now(_)), "{tight:?}");
    }

    #[test]
    fn a_group_that_does_not_fit_now_waits_and_one_that_never_fits_says_why() {
        let mut view = cluster(&[2.0, 2.0]);
        view.reported(0, NodeId(2), Load { free: cpus(0.0), waiting: 0 });
        let GroupPlan::Wait(mut later) = plan(&view, Strategy::StrictSpread, &[2.0, 2.0]) else { panic!() };
        later.sort_unstable();
        assert_eq!(later, nodes(&[1, 2]));
        let never = |strategy, bundles: &[f64]| match plan(&view, strategy, bundles) {
            GroupPlan::Never(reason) => reason,
            other => panic!("{other:?}"),
        };
        assert!(never(Strategy::Pack, &[3.0]).contains("no node can hold a bundle of 3 CPU"));
        assert!(never(Strategy::StrictPack, &[1.0, 2.0]).contains("all bundles, 3 CPU together"));
        let apart = never(Strategy::StrictSpread, &[1.0; 3]);
        assert!(apart.contains("3 bundles") && apart.contains("only 2 nodes"), "{apart}");
        assert!(never(Strategy::Spread, &[2.0, 2.0, 1.0]).contains("need 5 CPU together"));
    }

    #[test]
    fn a_lost_bundle_is_placed_beside_those_that_stay() {
        let view = cluster(&[2.0, 2.0, 2.0]);
        let held = [Some(NodeId(2)), None];
        let spec = |strategy| spec(strategy, &[1.0, 1.0]);
        assert_eq!(view.plan_group(0, &spec(Strategy::Pack), &held), GroupPlan::Now(nodes(&[2])));
        assert_eq!(view.plan_group(0, &spec(Strategy::StrictPack), &held), GroupPlan::Now(nodes(&[2])));
        assert_eq!(view.plan_group(0, &spec(Strategy::StrictSpread), &held), GroupPlan::Now(nodes(&[1])));
    }

    #[test]
    fn nodes_that_drain_hold_no_new_bundle() {
        let mut view = cluster(&[2.0, 2.0]);
        view.drains(NodeId(1));
        assert_eq!(plan(&view, Strategy::Pack, &[1.0]), GroupPlan::Now(nodes(&[2])));
        assert!(matches!(plan(&view, Strategy::StrictSpread, &[1.0, 1.0]), GroupPlan::Never(_)));
    }
}
