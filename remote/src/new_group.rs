//! Placement groups as they are made.

use crate::call::TaskCall;
use crate::error::{Error, Result};
use crate::options::Options;
use crate::placement::PlacementGroup;
use crate::reference::ObjectRef;
use crate::registry::{Definition, Registered};
use crate::submit::Call;
use std::panic::Location;
use std::time::Duration;
use tharsis_types::task::{Placement, Role};
use tharsis_types::{Failure, FailureKind, GroupSpec, Resources, Strategy};

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
}

/// Begins a placement group: bundles of resources that are reserved all together, or not at all.
pub fn placement_group(bundles: impl IntoIterator<Item = Bundle>) -> NewGroup {
    let bundles = bundles.into_iter().collect();
    NewGroup { bundles, strategy: Strategy::Pack, patience: INFEASIBLE_AFTER, name: None }
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

    /// A name for people.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
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
        let bundles = self.bundles.into_iter().map(Bundle::resources).collect::<Result<Vec<_>>>()?;
        let patience_ms = u64::try_from(self.patience.as_millis()).unwrap_or(u64::MAX);
        let spec = GroupSpec { bundles, strategy: self.strategy, patience_ms };
        spec.check().map_err(|bad| Error::argument(bad.to_string()))?;
        let mut options = Options::default().num_cpus(0.0);
        if let Some(name) = self.name {
            options = options.name(name);
        }
        options.placement = Placement::Reserve(spec.clone());
        let call = Call { definition: &GROUP, options: Some(options), site, arguments: &mut |_| Ok(()) };
        Ok(PlacementGroup::new(ObjectRef::new(call.made()?), spec))
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
