//! Placement groups: the handle of those who run tasks inside.
//!
//! A handle is a reference to the object of the group, whose value is the place of each bundle. A call inside
//! takes that reference as its first argument, so the node orders it behind the group, and the group lives as
//! long as a reference does.

use crate::error::{Error, Result};
use crate::get::{cancel, locations};
use crate::reference::ObjectRef;
use serde::{Deserialize, Serialize};
use std::hash::{Hash, Hasher};
use tharsis_types::{BundleNodes, Failure, FailureKind, GroupSpec, NodeId, ObjectId, Resources, Strategy};

/// A handle of a placement group. Clones, and copies in arguments and results of tasks, are handles of the
/// same group. When the last one is gone and no task inside is left, or when its job ends, a group is removed
/// that is not detached.
#[derive(Clone, Serialize, Deserialize)]
pub struct PlacementGroup {
    object: ObjectRef<BundleNodes>,
    spec: GroupSpec,
}

impl PlacementGroup {
    pub(crate) fn new(object: ObjectRef<BundleNodes>, spec: GroupSpec) -> Self {
        Self { object, spec }
    }

    /// A reference that gets its value when all bundles are placed for the first time: the node of each.
    ///
    /// Its failures are `Infeasible`, with the reason, if the cluster could not hold the group for the time
    /// that it was ready to wait; `GroupRemoved` after [`PlacementGroup::remove`].
    #[must_use]
    pub fn ready(&self) -> ObjectRef<BundleNodes> {
        self.object.clone()
    }

    /// The nodes on which the bundles are now, in order: none for a bundle that is not placed. On another
    /// node than the one that made the group, they are those of the time when it was first placed.
    ///
    /// # Errors
    /// The failure of the group, see [`PlacementGroup::ready`]; the loss of the connection.
    pub fn nodes(&self) -> Result<Vec<Option<NodeId>>> {
        if !self.object.is_ready() {
            return Ok(vec![None; self.spec.bundles.len()]);
        }
        let first = self.object.get()?;
        let link = self.object.handle().connection().map(|connection| connection.link.node);
        if link != Some(self.object.id().owner) {
            return Ok(first.0);
        }
        let now = locations(&self.object)?;
        if now.len() == self.spec.bundles.len() {
            Ok(now.into_iter().map(|node| Some(node).filter(|node| node.0 != 0)).collect())
        } else {
            // It was removed meanwhile.
            Err(Failure::new(FailureKind::GroupRemoved, "the placement group was removed").into())
        }
    }

    /// The resources of each bundle.
    #[must_use]
    pub fn bundles(&self) -> &[Resources] {
        &self.spec.bundles
    }

    /// The way in which the bundles are spread over nodes.
    #[must_use]
    pub fn strategy(&self) -> Strategy {
        self.spec.strategy
    }

    /// Removes the group at once. What runs inside is killed; tasks inside, running or waiting, and calls of
    /// actors inside fail with `GroupRemoved`. It is no error if the group has ended.
    ///
    /// # Errors
    /// The loss of the connection.
    pub fn remove(&self) -> Result<()> {
        cancel(&self.object, true, false)
    }

    /// The object of the group.
    pub(crate) fn object(&self) -> &ObjectRef<BundleNodes> {
        &self.object
    }

    pub(crate) fn id(&self) -> ObjectId {
        self.object.id().object
    }

    /// Checks that tasks with this demand fit a bundle.
    ///
    /// # Errors
    /// `Infeasible` if they never will, `InvalidArgument` if there is no such bundle.
    pub(crate) fn check_demand(&self, bundle: Option<u32>, demand: &Resources) -> Result<()> {
        let bundles = &self.spec.bundles;
        let infeasible = |text: String| Err(Error::new(FailureKind::Infeasible, text));
        let Some(index) = bundle else {
            return if bundles.iter().any(|bundle| bundle.fits(demand)) {
                Ok(())
            } else {
                infeasible(format!("no bundle of the placement group holds {demand} for a task"))
            };
        };
        match bundles.get(index as usize) {
            Some(bundle) if bundle.fits(demand) => Ok(()),
            Some(bundle) => infeasible(format!("bundle {index} has {bundle}, the task needs {demand}")),
            None => {
                let count = bundles.len();
                Err(Error::argument(format!("bundle {index} of a group of {count}, counted from 0")))
            }
        }
    }
}

/// Handles of one group are equal.
impl PartialEq for PlacementGroup {
    fn eq(&self, other: &Self) -> bool {
        self.id() == other.id()
    }
}

impl Eq for PlacementGroup {}

impl Hash for PlacementGroup {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.id().hash(state);
    }
}

impl std::fmt::Debug for PlacementGroup {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let count = self.spec.bundles.len();
        write!(f, "PlacementGroup({}, {}, {count} bundles)", self.id(), self.spec.strategy)
    }
}
