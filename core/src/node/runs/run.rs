//! One run: a task on its way to a worker, or in it.

use crate::event::Value;
use crate::lease::LeaseKey;
use crate::owner::{Object, Owner, Task};
use crate::pull::Missing;
use crate::slab::{COPIED_IN_PLACE_BYTES, Slot};
use crate::store::Store;
use crate::{MS, Now};
use std::sync::Arc;
use tharsis_types::hash::{IdMap, IdSet};
use tharsis_types::task::{CallRules, Role};
use tharsis_types::{
    Attempt, ClientId, Dependency, Extent, LeaseId, NodeId, ObjectId, RefId, SmallBytes, TaskClass, TaskId,
};

/// A task on its way to a worker of this node, or in it.
#[derive(Debug)]
pub(in crate::node) struct Run {
    pub(in crate::node) client: ClientId,
    pub(in crate::node) lease: LeaseKey,
    pub(in crate::node) task: TaskId,
    pub(in crate::node) attempt: Attempt,
    pub(in crate::node) timeout_ms: u64,
    /// The `memory` option of its task, in bytes; 0 if it has none.
    pub(in crate::node) memory_bytes: u64,
    pub(in crate::node) max_calls: u32,
    /// Whether it constructs an actor.
    pub(in crate::node) constructs: bool,
    /// If it is a call of an actor: how it stands in line.
    pub(in crate::node) rules: CallRules,
    pub(in crate::node) origin: Origin,
    pub(super) stage: Stage,
    /// Whether its worker was told to stop it.
    pub(super) is_stopping: bool,
    /// Objects pinned for the time of the run: a set, because a task may take a hundred thousand arguments.
    /// `None` if there are none, as for most runs.
    pins: Option<Box<IdSet<ObjectId>>>,
}

const _: () = assert!(size_of::<Run>() <= COPIED_IN_PLACE_BYTES);

/// Owner of the task of a run: this node or another one.
#[derive(Debug)]
pub(in crate::node) enum Origin {
    /// This node: the slot of the task in its ledger.
    Own(Slot<Task>),
    /// Another node: the task as it was sent.
    Lent(Box<Lent>),
}

/// The task of another node, as it was sent.
#[derive(Debug)]
pub(in crate::node) struct Lent {
    pub(in crate::node) class: Arc<TaskClass>,
    pub(in crate::node) class_number: u32,
    pub(in crate::node) payload: SmallBytes,
    pub(in crate::node) dependencies: Vec<(Dependency, Slot<Object>)>,
    /// Arguments whose owner has not told their values here.
    pub(in crate::node) told: IdMap<ObjectId, Told>,
    /// References that were lent with it, by place in this node's ledger.
    pub(in crate::node) references: Vec<Slot<Object>>,
    /// The name of the call, if it has one of its own.
    pub(in crate::node) name: Option<Arc<str>>,
}

/// An argument as a node told it that does not own the object. The run reads what its sender says; whoever
/// else waits for the object here waits for the owner.
#[derive(Debug)]
pub(in crate::node) struct Told {
    pub(in crate::node) value: Value,
    /// Nodes with a copy.
    pub(in crate::node) holders: Vec<NodeId>,
}

/// The function to call and its arguments.
pub(in crate::node) struct Call<'a> {
    pub(in crate::node) class: &'a Arc<TaskClass>,
    pub(in crate::node) class_number: u32,
    pub(in crate::node) payload: &'a [u8],
    pub(in crate::node) dependencies: &'a [(Dependency, Slot<Object>)],
    told: Option<&'a IdMap<ObjectId, Told>>,
    /// The name of the call, if it has one of its own.
    pub(in crate::node) own_name: Option<&'a str>,
}

impl<'a> Call<'a> {
    /// The name of the call, or that of its class.
    pub(in crate::node) fn name(&self) -> &'a str {
        self.own_name.unwrap_or(&self.class.name)
    }

    /// An argument and its value: as the sender told it for this call, or as the ledger knows it.
    pub(in crate::node) fn argument(
        &self,
        owner: &'a Owner,
        slot: Slot<Object>,
    ) -> (ObjectId, Option<&'a Value>) {
        let (object, known) = owner.entry(slot);
        (object, self.told(object).map(|told| &told.value).or(known))
    }

    fn told(&self, object: ObjectId) -> Option<&'a Told> {
        self.told?.get(&object)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// Not all of its arguments are here.
    Staging {
        /// Since when no holder of one was reached; it may be on its way by now.
        aside_since: Option<Now>,
    },
    /// Its worker has it.
    Sent {
        /// When it became the first of its worker.
        first_since: Option<Now>,
    },
    /// Its worker is being killed because of it.
    Doomed {
        /// When it became the first of its worker.
        first_since: Option<Now>,
    },
}

/// A run as its worker needs it.
#[derive(Debug)]
pub struct RunView<'a> {
    /// The worker that it stands before.
    pub client: ClientId,
    /// Id of the task.
    pub task: TaskId,
    /// The number of the attempt.
    pub attempt: Attempt,
    /// Number of the class in this node.
    pub class_number: u32,
    /// The class.
    pub class: &'a Arc<TaskClass>,
    /// Arguments by value.
    pub payload: &'a [u8],
    /// Arguments by reference.
    pub arguments: Vec<(u16, RefId, ArgumentValue<'a>)>,
    /// The name of the call, if it has one of its own.
    pub name: Option<&'a str>,
}

/// A readable argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArgumentValue<'a> {
    /// The encoded value.
    Inline(&'a [u8]),
    /// In the arena, pinned.
    Local(Extent),
}

impl Run {
    /// A run under a lease, which has no arguments yet.
    pub(in crate::node) fn new(
        client: ClientId,
        lease: LeaseKey,
        (task, attempt): (TaskId, Attempt),
        class: &TaskClass,
        origin: Origin,
    ) -> Self {
        Self {
            client,
            lease,
            task,
            attempt,
            timeout_ms: class.timeout_ms,
            memory_bytes: class.resources.memory,
            max_calls: class.max_calls,
            constructs: class.role == Role::Constructor,
            rules: class.calls,
            origin,
            stage: Stage::Staging { aside_since: None },
            is_stopping: false,
            pins: None,
        }
    }

    /// The call of a run; `None` if its task is not under its lease any more.
    pub(in crate::node) fn call<'a>(&'a self, owner: &'a Owner) -> Option<Call<'a>> {
        self.origin.call(owner, (self.task, self.attempt), self.lease.1)
    }

    /// Whether its task is another node's.
    pub(in crate::node) fn is_lent(&self) -> bool {
        matches!(self.origin, Origin::Lent(_))
    }

    /// Whether the value of an argument is what its sender told, not what the owner did.
    pub(in crate::node) fn was_told(&self, object: ObjectId) -> bool {
        matches!(&self.origin, Origin::Lent(lent) if lent.told.contains_key(&object))
    }

    /// Whether it waits for arguments.
    pub(in crate::node) fn is_staging(&self) -> bool {
        matches!(self.stage, Stage::Staging { .. })
    }

    /// Whether its worker is being killed because of it.
    pub(in crate::node) fn is_doomed(&self) -> bool {
        matches!(self.stage, Stage::Doomed { .. })
    }

    /// Whether it is the first sent run of its worker: it has started, as far as the node can know.
    pub(in crate::node) fn is_first(&self) -> bool {
        self.is_doomed() || self.first_since().is_some()
    }

    /// Time since when it is the first sent run of its worker; `None` if it is not, or if its worker is being
    /// killed.
    pub(in crate::node) fn first_since(&self) -> Option<Now> {
        match self.stage {
            Stage::Sent { first_since } => first_since,
            Stage::Staging { .. } | Stage::Doomed { .. } => None,
        }
    }

    /// Time since when its function has run, as far as the node can know, also if its worker is being killed.
    pub(in crate::node) fn begun_since(&self) -> Option<Now> {
        match self.stage {
            Stage::Sent { first_since } | Stage::Doomed { first_since } => first_since,
            Stage::Staging { .. } => None,
        }
    }

    /// Objects that are pinned for it.
    pub(in crate::node) fn pins(&self) -> impl Iterator<Item = ObjectId> {
        self.pins.iter().flat_map(|pins| pins.iter()).copied()
    }

    /// Whether objects are pinned for it.
    pub(super) fn has_pins(&self) -> bool {
        self.pins.is_some()
    }

    /// Clears its pins: the store keeps them until the memory of the worker is free.
    pub(super) fn forget_pins(&mut self) {
        self.pins = None;
    }

    fn has_pinned(&self, object: ObjectId) -> bool {
        self.pins.as_ref().is_some_and(|pins| pins.contains(&object))
    }

    /// Pins an object for the time of the run; false if it is not here.
    pub(super) fn pin(&mut self, object: ObjectId, store: &mut Store) -> bool {
        if self.has_pinned(object) {
            return true;
        }
        let is_here = store.pin(self.client, object).is_some();
        if is_here {
            self.pins.get_or_insert_default().insert(object);
        }
        is_here
    }

    /// Pins its arguments that are here and returns those that are not, each object once, with the holders
    /// that its sender told for it alone.
    pub(super) fn pin_arguments(&mut self, owner: &Owner, store: &mut Store) -> Vec<Missing> {
        let mut missing: Vec<Missing> = Vec::new();
        let mut seen: IdSet<ObjectId> = IdSet::default();
        let attempt = (self.task, self.attempt);
        let Some(call) = self.origin.call(owner, attempt, self.lease.1) else { return missing };
        for (_, slot) in call.dependencies {
            let (object, Some(Value::Stored { len })) = call.argument(owner, *slot) else { continue };
            if self.has_pinned(object) || seen.contains(&object) {
                continue;
            }
            if store.pin(self.client, object).is_some() {
                self.pins.get_or_insert_default().insert(object);
            } else {
                seen.insert(object);
                let holders = call.told(object).map(|told| told.holders.clone()).unwrap_or_default();
                missing.push(Missing { object, len: *len, holders });
            }
        }
        missing
    }

    /// When its timeout is over; `None` if it has none, or neither has started nor waits for an argument of
    /// which no holder was reached.
    pub(in crate::node) fn due(&self) -> Option<Now> {
        let since = match self.stage {
            Stage::Staging { aside_since } => aside_since,
            Stage::Sent { first_since } => first_since,
            Stage::Doomed { .. } => None,
        };
        let since = since.filter(|_| 0 < self.timeout_ms)?;
        Some(since.saturating_add(self.timeout_ms.saturating_mul(MS)))
    }
}

impl Origin {
    fn call<'a>(
        &'a self,
        owner: &'a Owner,
        (task, attempt): (TaskId, Attempt),
        lease: LeaseId,
    ) -> Option<Call<'a>> {
        match self {
            Self::Own(place) => {
                let view = owner.view_of_attempt(*place, task, attempt, lease)?;
                let (class, class_number, own_name) = (view.class, view.class_number, view.own_name);
                let (payload, dependencies) = (view.payload, view.dependencies);
                Some(Call { class, class_number, payload, dependencies, told: None, own_name })
            }
            Self::Lent(lent) => {
                let (class, class_number) = (&lent.class, lent.class_number);
                let (payload, dependencies) = (&*lent.payload, &*lent.dependencies);
                let (told, own_name) = (Some(&lent.told), lent.name.as_deref());
                Some(Call { class, class_number, payload, dependencies, told, own_name })
            }
        }
    }
}
