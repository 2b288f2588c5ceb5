//! The members of the cluster, and which of them could run a task at all.
//!
//! The able ones follow from the resources and labels of the members, which do not change. So they are worked
//! out once per demand and remembered until a node joins, drains or leaves: a decision then looks at a few
//! nodes, however many there are, and a task that only one node in thousands can run still finds it.

use crate::event::Member;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use tharsis_types::hash::IdMap;
use tharsis_types::task::{LabelSelector, LabelTerm};
use tharsis_types::{NodeId, Resources};

/// Maximum number of demands whose able nodes are remembered.
const DEMANDS_MAX: usize = 64;

/// The members, by id.
#[derive(Debug)]
pub(super) struct Members {
    all: BTreeMap<NodeId, Arc<Member>>,
    able: IdMap<Demand, Arc<Able>>,
    /// Members that take no new work.
    draining: BTreeSet<NodeId>,
}

/// A demand: resources, and labels if any are asked for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Demand {
    resources: Resources,
    labels: Option<LabelSelector>,
}

/// Members that could run a task if they were unused.
#[derive(Debug)]
pub(super) struct Able {
    /// First those on which nothing is wasted, then those with GPUs that the task does not need; each part by
    /// id.
    pub(super) nodes: Vec<NodeId>,
    /// Number of nodes in the first part.
    pub(super) thrifty_count: usize,
}

impl Members {
    pub(super) fn new(me: Arc<Member>) -> Self {
        Self { all: BTreeMap::from([(me.node, me)]), able: IdMap::default(), draining: BTreeSet::new() }
    }

    pub(super) fn add(&mut self, member: Arc<Member>) {
        self.all.insert(member.node, member);
        self.able.clear();
    }

    pub(super) fn remove(&mut self, node: NodeId) {
        self.all.remove(&node);
        self.draining.remove(&node);
        self.able.clear();
    }

    /// A member takes no new work from now on.
    pub(super) fn drain(&mut self, node: NodeId) {
        if self.all.contains_key(&node) {
            self.draining.insert(node);
            self.able.clear();
        }
    }

    pub(super) fn is_draining(&self, node: NodeId) -> bool {
        self.draining.contains(&node)
    }

    pub(super) fn get(&self, node: NodeId) -> Option<&Arc<Member>> {
        self.all.get(&node)
    }

    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Member> {
        self.all.values().map(|member| &**member)
    }

    /// The members that could run a task and take new work.
    pub(super) fn able(&mut self, resources: &Resources, labels: Option<&LabelSelector>) -> Arc<Able> {
        let demand = Demand { resources: resources.clone(), labels: labels.cloned() };
        if let Some(able) = self.able.get(&demand) {
            return Arc::clone(able);
        }
        let fits = |member: &&Member| {
            !self.draining.contains(&member.node)
                && member.serves_others()
                && member.resources.fits(resources)
                && labels.is_none_or(|labels| matches(labels, &member.labels))
        };
        let (thrifty, wasteful): (Vec<_>, Vec<_>) =
            self.iter().filter(fits).partition(|member| !wastes_gpus(resources, member));
        let nodes: Vec<_> = thrifty.iter().chain(&wasteful).map(|member| member.node).collect();
        let able = Arc::new(Able { nodes, thrifty_count: thrifty.len() });
        if DEMANDS_MAX <= self.able.len() {
            self.able.clear();
        }
        self.able.insert(demand, Arc::clone(&able));
        able
    }
}

/// Whether a task without GPUs would keep a node with GPUs busy.
pub(super) fn wastes_gpus(demand: &Resources, member: &Member) -> bool {
    demand.gpu == 0 && 0 < member.resources.gpu
}

/// Whether labels satisfy all terms of a selector.
#[must_use]
pub fn matches(selector: &[LabelTerm], labels: &[(String, String)]) -> bool {
    let value = |key: &str| labels.iter().find(|(k, _)| k == key).map(|(_, v)| v);
    selector.iter().all(|term| match term {
        LabelTerm::In(key, values) => value(key).is_some_and(|v| values.contains(v)),
        LabelTerm::NotIn(key, values) => value(key).is_none_or(|v| !values.contains(v)),
        LabelTerm::Exists(key) => value(key).is_some(),
        LabelTerm::DoesNotExist(key) => value(key).is_none(),
    })
}
