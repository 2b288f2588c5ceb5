//! Placement groups as they are made.

use crate::call::TaskCall;
use crate::error::{Error, Result};
use crate::handles::Handle;
use crate::names::{self, IfThere, Naming};
use crate::options::Options;
use crate::placement::PlacementGroup;
use crate::reference::ObjectRef;
use crate::registry::{Definition, Registered};
use crate::submit::Call;
use serde::{Deserialize, Serialize};
use std::panic::Location;
use std::sync::Arc;
use std::time::Duration;
use tharsis_protos::handshake::NameKind;
use tharsis_types::task::{Placement, Role};
use tharsis_types::{Failure, FailureKind, GroupSpec, RefId, Resources, Strategy};

/// A group that no node of the cluster can hold fails after this time, unless it says otherwise.
const INFEASIBLE_AFTER: Duration = Duration::from_secs(30);

/// Resources that are reserved together on one node: a part of a placement group.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bundle(Options);

impl Bundle {
    /// A bundle of nothing: give it resources.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// CPUs, 0 by default.
    #[must_use]
    pub fn num_cpus(self, cpus: f64) -> Self {
        Self(self.0.num_cpus(cpus))
    }

    /// GPUs, 0 by default.
    #[must_use]
    pub fn num_gpus(self, gpus: f64) -> Self {
        Self(self.0.num_gpus(gpus))
    }

    /// Memory in bytes, 0 by default.
    #[must_use]
    pub fn memory_bytes(self, bytes: u64) -> Self {
        Self(self.0.memory_bytes(bytes))
    }

    /// An amount of a custom resource. Call it once for each.
    #[must_use]
    pub fn resource(self, name: &str, amount: f64) -> Self {
        Self(self.0.resource(name, amount))
    }

    fn resources(self) -> Result<Resources> {
        match self.0.problem {
            Some(problem) => Err(Error::argument(format!("placement_group: {problem}"))),
            None => Ok(Resources { cpu: self.0.cpu.unwrap_or(0), ..self.0.resources(Role::Constructor) }),
        }
    }
}

/// A placement group before it is made; see [`placement_group`].
#[derive(Clone, Debug)]
#[must_use = "nothing is reserved before `create`"]
pub struct NewGroup {
    bundles: Vec<Bundle>,
    strategy: Strategy,
    patience: Duration,
    name: Option<String>,
    is_detached: bool,
}

/// A call that makes a group.
struct Made {
    spec: GroupSpec,
    options: Options,
}

/// Begins a placement group: bundles of resources that are reserved all together, or not at all.
pub fn placement_group(bundles: impl IntoIterator<Item = Bundle>) -> NewGroup {
    let bundles = bundles.into_iter().collect();
    let (strategy, patience) = (Strategy::Pack, INFEASIBLE_AFTER);
    NewGroup { bundles, strategy, patience, name: None, is_detached: false }
}

impl NewGroup {
    /// The way in which the bundles are spread over nodes; [`Strategy::Pack`] by default.
    pub fn strategy(mut self, strategy: Strategy) -> Self {
        self.strategy = strategy;
        self
    }

    /// The time for which a group waits that the present cluster cannot hold: a node that could may join
    /// meanwhile. Then it fails with `Infeasible`. 30 seconds by default.
    pub fn infeasible_after(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// A name for people: [`NewGroup::create_named`] gives one by which programs find the group.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// For a group that a driver makes: whether it lives on without handles and without the driver, until it
    /// is removed or its node is gone. False by default.
    pub fn detached(mut self, is_detached: bool) -> Self {
        self.is_detached = is_detached;
        self
    }

    /// Asks for the group and returns at once: [`PlacementGroup::ready`] tells when it is placed.
    ///
    /// # Errors
    /// `InvalidArgument` for no bundles, too many, an empty one, or an amount or name that is none;
    /// `Shutdown` without a runtime.
    #[track_caller]
    pub fn create(self) -> Result<PlacementGroup> {
        let site = Location::caller();
        let Made { spec, options } = self.checked()?;
        let call = Call { definition: &GROUP, options: Some(options), site, arguments: &mut |_| Ok(()) };
        Ok(PlacementGroup::new(ObjectRef::new(call.made()?), spec))
    }

    /// Asks for a group with a name, by which [`PlacementGroup::find`] gets it, in the namespace of the job.
    /// A name keeps no group: it lives as long as a handle, its job, or as [`NewGroup::detached`] says.
    ///
    /// # Errors
    /// `NameTaken` if a group that lives has the name, `InvalidArgument` for a name that is none; those of
    /// [`NewGroup::create`] and of the control store.
    #[track_caller]
    pub fn create_named(self, name: &str) -> Result<PlacementGroup> {
        self.named(Location::caller(), name, IfThere::Refuse)
    }

    /// The group with this name, which is made unless it is there: by one of those who do this at the same
    /// time.
    ///
    /// # Errors
    /// `InvalidArgument` if the group has other bundles or another strategy, or for a bad name; those of
    /// [`NewGroup::create`] and of the control store.
    #[track_caller]
    pub fn get_or_create(self, name: &str) -> Result<PlacementGroup> {
        self.named(Location::caller(), name, IfThere::Get)
    }

    fn named(
        self,
        site: &'static Location<'static>,
        name: &str,
        if_there: IfThere,
    ) -> Result<PlacementGroup> {
        let Made { spec, mut options } = self.checked()?;
        options.name.get_or_insert_with(|| name.to_owned());
        let call = Call { definition: &GROUP, options: Some(options), site, arguments: &mut |_| Ok(()) };
        let wanted = (if_there == IfThere::Get).then(|| spec.clone());
        let record = |reference| Record { reference, spec: spec.clone() };
        names::create(&Groups { wanted }, call, name, if_there, record)
    }

    /// The request, if it can be made.
    fn checked(self) -> Result<Made> {
        let bundles = self.bundles.into_iter().map(Bundle::resources).collect::<Result<Vec<_>>>()?;
        let patience_ms = u64::try_from(self.patience.as_millis()).unwrap_or(u64::MAX);
        let spec = GroupSpec { bundles, strategy: self.strategy, patience_ms };
        spec.check().map_err(|bad| Error::argument(bad.to_string()))?;
        let mut options = Options::default().num_cpus(0.0).detached(self.is_detached);
        if let Some(name) = self.name {
            options = options.name(name);
        }
        options.placement = Placement::Reserve(spec.clone());
        Ok(Made { spec, options })
    }
}

impl PlacementGroup {
    /// The group with this name in the namespace of the job. Takes up to two seconds for a group that is not
    /// placed yet.
    ///
    /// # Errors
    /// `GroupNotFound` if there is none that lives, with the most similar name that is in use;
    /// `InvalidArgument` for a name that is none; the errors of the control store.
    pub fn find(name: &str) -> Result<Self> {
        names::find(&Groups { wanted: None }, name)
    }
}

/// The record under the name of a group.
#[derive(Serialize, Deserialize)]
pub(crate) struct Record {
    reference: RefId,
    spec: GroupSpec,
}

/// Groups with names.
struct Groups {
    /// Bundles and strategy that a group must have.
    wanted: Option<GroupSpec>,
}

impl Naming for Groups {
    type Handle = PlacementGroup;
    type Record = Record;

    const KIND: NameKind = NameKind::Group;
    const NOUN: &'static str = "placement group";
    const NOT_FOUND: FailureKind = FailureKind::GroupNotFound;

    fn reference(record: &Record) -> RefId {
        record.reference
    }

    fn handle(&self, name: &str, record: Record, object: Arc<Handle>) -> Result<PlacementGroup> {
        let spec = record.spec;
        let is_other =
            |wanted: &GroupSpec| wanted.bundles != spec.bundles || wanted.strategy != spec.strategy;
        if self.wanted.as_ref().is_some_and(is_other) {
            let text = format!("the placement group {name} has other bundles or another strategy");
            return Err(Error::argument(text));
        }
        Ok(PlacementGroup::new(ObjectRef::new(object), spec))
    }
}

/// The function that a call names which makes a group: it never runs.
static GROUP: Definition = Definition {
    module: "tharsis",
    name: "placement_group",
    signature: "",
    file: file!(),
    line: line!(),
    column: column!(),
    returns: 1,
    options: Options::default,
    run: |_: &mut TaskCall<'_>| Err(Failure::new(FailureKind::Internal, "a placement group was started")),
    role: Role::Task,
    group: 0,
    groups: &[],
    plain: &(),
};

inventory::submit! { Registered(&GROUP) }
