//! Options of a call: resources, retries, names, placement.
//!
//! Options are checked when they are set, but refused only when the call is made, so that setters can be
//! chained.

use crate::error::Result;
use crate::placement::PlacementGroup;
use std::collections::BTreeMap;
use std::time::Duration;
use tharsis_types::check::{check_name, check_placement, check_retry_on, check_returns};
use tharsis_types::limits::RESOURCE_NAMES_MAX;
use tharsis_types::resources::{self, units};
use tharsis_types::task::{LabelSelector, Placement, RetryOn, Role};
use tharsis_types::{BadOption, BadResource, NodeId, Resources};

/// Retries after a crash, unless the options say otherwise.
pub const MAX_RETRIES_DEFAULT: i32 = 3;

/// Largest number of items of a stream that may exist and were not taken. Each is a call that was made.
const UNCONSUMED_MAX: u32 = 1 << 16;

/// The options of a call. `#[remote(..)]` sets them for a function, `f::options()` for one call.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Options {
    pub(crate) name: Option<String>,
    pub(crate) cpu: Option<u64>,
    pub(crate) gpu: u64,
    pub(crate) memory_bytes: u64,
    pub(crate) custom: BTreeMap<String, u64>,
    pub(crate) priority: i32,
    pub(crate) timeout_ms: u64,
    pub(crate) max_retries: Option<i32>,
    pub(crate) max_task_retries: i32,
    pub(crate) max_pending_calls: u32,
    pub(crate) out_of_order: bool,
    pub(crate) unconsumed_max: Option<u32>,
    pub(crate) detached: bool,
    pub(crate) shared_process: bool,
    pub(crate) retry_on: RetryOn,
    pub(crate) num_returns: Option<u32>,
    pub(crate) max_calls: u32,
    pub(crate) pure: bool,
    pub(crate) placement: Placement,
    /// The group of [`Placement::Group`].
    pub(crate) group: Option<PlacementGroup>,
    /// The first invalid option.
    pub(crate) problem: Option<String>,
}

impl Options {
    /// CPUs, 1 by default; tasks with fractions share one.
    #[must_use]
    pub fn num_cpus(mut self, cpus: f64) -> Self {
        self.cpu = self.amount("num_cpus", cpus);
        self
    }

    /// GPUs, 0 by default.
    #[must_use]
    pub fn num_gpus(mut self, gpus: f64) -> Self {
        self.gpu = self.amount("num_gpus", gpus).unwrap_or(0);
        self
    }

    /// Upper bound on the memory that the task needs, in bytes. The task starts on a node with that much
    /// memory left. A worker process that takes more for it is killed, and the task fails with `OutOfMemory`.
    #[must_use]
    pub fn memory_bytes(mut self, bytes: u64) -> Self {
        self.memory_bytes = bytes;
        self
    }

    /// An amount of a custom resource. Call it once for each.
    #[must_use]
    pub fn resource(mut self, name: &str, amount: f64) -> Self {
        if let Err(bad) = resources::check_name(name) {
            self.refuse(bad.to_string());
        } else if let Some(units) = self.amount(name, amount) {
            self.custom.insert(name.to_owned(), units);
            let count = self.custom.len();
            if RESOURCE_NAMES_MAX < count {
                self.refuse(BadResource::TooMany { count }.to_string());
            }
        }
        self
    }

    /// Tasks of higher priority start first; 0 by default.
    #[must_use]
    pub fn priority(mut self, priority: i32) -> Self {
        self.priority = priority;
        self
    }

    /// The time for which one attempt may run.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        // Rounded up, so that a short timeout does not become none.
        let ms = timeout.as_nanos().div_ceil(1_000_000);
        self.timeout_ms = u64::try_from(ms).unwrap_or(u64::MAX);
        if self.timeout_ms == 0 {
            self.refuse("timeout is 0: leave it away for no bound".to_owned());
        }
        self
    }

    /// Number of retries after a crash or a listed error; a negative number means no limit. 3 by default.
    #[must_use]
    pub fn max_retries(mut self, count: i32) -> Self {
        self.max_retries = Some(count.max(-1));
        self
    }

    /// For an actor: how often it is started again after its worker was lost; a negative number means no
    /// limit. 0 by default.
    #[must_use]
    pub fn max_restarts(self, count: i32) -> Self {
        self.max_retries(count)
    }

    /// For an actor: how often a call is repeated that may have run when the worker was lost, if the actor is
    /// started again, or that returned an error of [`Options::retry_on`]; a negative number means no limit. 0
    /// by default: each call runs at most once.
    #[must_use]
    pub fn max_task_retries(mut self, count: i32) -> Self {
        self.max_task_retries = count.max(-1);
        self
    }

    /// For an actor: how many calls of one caller may be unfinished at the same time. One call more fails at
    /// once with `TooManyPendingCalls`. 0, the default, means no bound.
    #[must_use]
    pub fn max_pending_calls(mut self, count: u32) -> Self {
        self.max_pending_calls = count;
        self
    }

    /// For an actor: whether a call whose arguments are there overtakes earlier ones of its caller that wait
    /// for theirs. False by default.
    #[must_use]
    pub fn allow_out_of_order(mut self, is_allowed: bool) -> Self {
        self.out_of_order = is_allowed;
        self
    }

    /// For an actor that a driver creates: whether it lives on without handles and without the driver, until
    /// it is killed or its node is gone. False by default.
    #[must_use]
    pub fn detached(mut self, is_detached: bool) -> Self {
        self.detached = is_detached;
        self
    }

    /// For an actor: whether it shares its worker process with other actors of the job that say so too. Each
    /// has a thread then, and costs kilobytes. False by default.
    #[must_use]
    pub fn shared_process(mut self, is_shared: bool) -> Self {
        self.shared_process = is_shared;
        self
    }

    /// Retries this error of the function, or of the methods of the actor, which are repeated as often as
    /// [`Options::max_task_retries`] says. Call it once for each type.
    #[must_use]
    pub fn retry_on<E>(mut self) -> Self {
        let name = std::any::type_name::<E>().to_owned();
        match &mut self.retry_on {
            RetryOn::Everything => {}
            RetryOn::Nothing => self.retry_on = RetryOn::Types(vec![name]),
            RetryOn::Types(names) => names.push(name),
        }
        let checked = check_retry_on(&self.retry_on);
        self.check(checked);
        self
    }

    /// Retries any error that the function, or a method of the actor, returns.
    #[must_use]
    pub fn retry_on_any(mut self) -> Self {
        self.retry_on = RetryOn::Everything;
        self
    }

    /// For a function that returns an iterator: how many items may exist that were not taken, 16 by default.
    #[must_use]
    pub fn unconsumed_max(mut self, count: u32) -> Self {
        if !(1..=UNCONSUMED_MAX).contains(&count) {
            self.refuse(format!("unconsumed_max is {count}, allowed are 1 to {UNCONSUMED_MAX}"));
        }
        self.unconsumed_max = Some(count.clamp(1, UNCONSUMED_MAX));
        self
    }

    /// A name for people; the function's path by default.
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> Self {
        let name = name.into();
        if name.is_empty() {
            self.refuse("name: it is empty".to_owned());
        }
        self.check(check_name(&name));
        self.name = Some(name);
        self
    }

    /// Number of objects that a call returns, for a function that returns `Returns`.
    #[must_use]
    pub fn num_returns(mut self, count: u32) -> Self {
        self.check(check_returns(count));
        self.num_returns = Some(count);
        self
    }

    /// Number of calls that one worker process serves before it is replaced; 0, the default, means no bound.
    #[must_use]
    pub fn max_calls(mut self, count: u32) -> Self {
        self.max_calls = count;
        self
    }

    /// Declares that another run only makes the same values again; false by default. If memory is short,
    /// values that take less time to make than to write to disk are then dropped, and recomputed when they
    /// are read. That is no retry. Without it a function runs again only after a loss: after a crash, or if
    /// no copy of its results is left.
    #[must_use]
    pub fn pure(mut self, is_pure: bool) -> Self {
        self.pure = is_pure;
        self
    }

    /// Runs it on the least loaded node.
    #[must_use]
    pub fn spread(mut self) -> Self {
        self.placement = Placement::Spread;
        self
    }

    /// Runs it on this node; with `soft`, on another one if this one is gone.
    #[must_use]
    pub fn node(self, node: NodeId, soft: bool) -> Self {
        self.placed(Placement::Node { node, soft })
    }

    /// Runs it on a node whose labels match; several selectors are tried in order.
    #[must_use]
    pub fn labels(self, selectors: impl IntoIterator<Item = LabelSelector>) -> Self {
        self.placed(Placement::Labels(selectors.into_iter().collect()))
    }

    /// Runs it inside a placement group, in any of its bundles.
    #[must_use]
    pub fn placement_group(self, group: &PlacementGroup) -> Self {
        self.inside(group, None)
    }

    /// Runs it inside a placement group, in the bundle with this index.
    #[must_use]
    pub fn bundle(self, group: &PlacementGroup, index: u32) -> Self {
        self.inside(group, Some(index))
    }

    fn placed(mut self, placement: Placement) -> Self {
        self.check(check_placement(&placement));
        self.placement = placement;
        self
    }

    fn inside(mut self, group: &PlacementGroup, bundle: Option<u32>) -> Self {
        self.placement = Placement::Group { group: group.id().task, bundle };
        self.group = Some(group.clone());
        self
    }

    /// Takes the group inside which it runs out: what is left does not keep the group.
    ///
    /// # Errors
    /// `Infeasible` if no bundle can ever hold it, `InvalidArgument` for a bundle that there is not.
    pub(crate) fn take_group(&mut self, role: Role) -> Result<Option<PlacementGroup>> {
        let Placement::Group { bundle, .. } = self.placement else { return Ok(None) };
        let Some(group) = self.group.take() else { return Ok(None) };
        group.check_demand(bundle, &self.resources(role))?;
        Ok(Some(group))
    }

    /// Whether a placement is set.
    #[must_use]
    pub fn is_placed(&self) -> bool {
        self.placement != Placement::Default
    }

    /// Whether a task takes a CPU or more, so that no more of them run at a time than there are CPUs.
    #[must_use]
    pub fn takes_cpus(&self) -> bool {
        Resources::UNIT <= self.cpu.unwrap_or(Resources::UNIT)
    }

    pub(crate) fn resources(&self, role: Role) -> Resources {
        let cpu = match role {
            Role::Task => self.cpu.unwrap_or(Resources::UNIT),
            // An actor lives longer than it computes.
            Role::Constructor => self.cpu.unwrap_or(0),
            Role::Method => return Resources::default(),
        };
        Resources { cpu, gpu: self.gpu, memory: self.memory_bytes, custom: self.custom.clone() }
    }

    fn amount(&mut self, name: &str, amount: f64) -> Option<u64> {
        match units(name, amount) {
            Ok(units) => Some(units),
            Err(bad) => {
                self.refuse(bad.to_string());
                None
            }
        }
    }

    fn check(&mut self, checked: std::result::Result<(), BadOption>) {
        if let Err(bad) = checked {
            self.refuse(bad.to_string());
        }
    }

    fn refuse(&mut self, problem: String) {
        self.problem.get_or_insert(problem);
    }
}

/// Defines the setters that all builders have: how much of a node it takes, and of which node.
#[doc(hidden)]
#[macro_export]
macro_rules! __place_setters {
    ($vis:vis) => {
        /// Memory in bytes that it is expected to need.
        #[must_use]
        $vis fn memory_bytes(self, bytes: u64) -> Self { Self(self.0.memory_bytes(bytes)) }
        /// An amount of a custom resource. Call it once for each.
        #[must_use]
        $vis fn resource(self, name: &str, amount: f64) -> Self { Self(self.0.resource(name, amount)) }
        /// A name for people; the function's path by default.
        #[must_use]
        $vis fn name(self, name: impl ::std::convert::Into<::std::string::String>) -> Self { Self(self.0.name(name)) }
        /// Runs it on the least loaded node.
        #[must_use]
        $vis fn spread(self) -> Self { Self(self.0.spread()) }
        /// Runs it on this node; with `soft`, on another one if this one is gone.
        #[must_use]
        $vis fn node(self, node: $crate::NodeId, soft: bool) -> Self { Self(self.0.node(node, soft)) }
        /// Runs it on a node whose labels match; several selectors are tried in order.
        #[must_use]
        $vis fn labels(self, selectors: impl ::std::iter::IntoIterator<Item = $crate::LabelSelector>) -> Self {
            Self(self.0.labels(selectors))
        }
    };
}

/// Defines the setters of what may run inside a placement group.
#[doc(hidden)]
#[macro_export]
macro_rules! __group_setters {
    ($vis:vis) => {
        /// Runs it inside a placement group, in any of its bundles.
        #[must_use]
        $vis fn placement_group(self, group: &$crate::PlacementGroup) -> Self { Self(self.0.placement_group(group)) }
        /// Runs it inside a placement group, in the bundle with this index.
        #[must_use]
        $vis fn bundle(self, group: &$crate::PlacementGroup, index: u32) -> Self { Self(self.0.bundle(group, index)) }
    };
}

/// Defines the setters of a builder of calls, for its `Options` in field 0.
#[doc(hidden)]
#[macro_export]
macro_rules! __option_setters {
    ($vis:vis) => {
        $crate::__place_setters!($vis);
        $crate::__group_setters!($vis);
        /// CPUs, 1 by default; tasks with fractions share one.
        #[must_use]
        $vis fn num_cpus(self, cpus: f64) -> Self { Self(self.0.num_cpus(cpus)) }
        /// GPUs, 0 by default.
        #[must_use]
        $vis fn num_gpus(self, gpus: f64) -> Self { Self(self.0.num_gpus(gpus)) }
        /// Tasks of higher priority start first; 0 by default.
        #[must_use]
        $vis fn priority(self, priority: i32) -> Self { Self(self.0.priority(priority)) }
        /// The time for which one attempt may run.
        #[must_use]
        $vis fn timeout(self, timeout: ::std::time::Duration) -> Self { Self(self.0.timeout(timeout)) }
        /// Number of retries after a crash or a listed error; a negative number means no limit.
        #[must_use]
        $vis fn max_retries(self, count: i32) -> Self { Self(self.0.max_retries(count)) }
        /// Retries this error of the function. Call it once for each type.
        #[must_use]
        $vis fn retry_on<E>(self) -> Self { Self(self.0.retry_on::<E>()) }
        /// Retries any error that the function returns.
        #[must_use]
        $vis fn retry_on_any(self) -> Self { Self(self.0.retry_on_any()) }
        /// Number of calls that one worker process serves before it is replaced; 0 means no bound.
        #[must_use]
        $vis fn max_calls(self, count: u32) -> Self { Self(self.0.max_calls(count)) }
        /// Declares that another run only makes the same values again, so they may be dropped to save memory.
        #[must_use]
        $vis fn pure(self, is_pure: bool) -> Self { Self(self.0.pure(is_pure)) }
    };
}

/// Defines the setters of a builder of calls of a function that returns an iterator, for its `Options` in
/// field 0.
#[doc(hidden)]
#[macro_export]
macro_rules! __stream_option_setters {
    ($vis:vis) => {
        $crate::__place_setters!($vis);
        /// CPUs that it takes while it lives, 0 by default.
        #[must_use]
        $vis fn num_cpus(self, cpus: f64) -> Self { Self(self.0.num_cpus(cpus)) }
        /// GPUs that it takes while it lives, 0 by default.
        #[must_use]
        $vis fn num_gpus(self, gpus: f64) -> Self { Self(self.0.num_gpus(gpus)) }
        /// Number of items that may exist and were not taken.
        #[must_use]
        $vis fn unconsumed_max(self, count: u32) -> Self { Self(self.0.unconsumed_max(count)) }
        /// Number of starts after its worker was lost; a negative number means no limit.
        #[must_use]
        $vis fn max_retries(self, count: i32) -> Self { Self(self.0.max_retries(count)) }
    };
}

/// Defines the setters of a builder of actors, for its `Options` in field 0.
#[doc(hidden)]
#[macro_export]
macro_rules! __actor_option_setters {
    ($vis:vis) => {
        $crate::__place_setters!($vis);
        $crate::__group_setters!($vis);
        /// CPUs that the actor takes while it lives, 0 by default.
        #[must_use]
        $vis fn num_cpus(self, cpus: f64) -> Self { Self(self.0.num_cpus(cpus)) }
        /// GPUs that the actor takes while it lives, 0 by default.
        #[must_use]
        $vis fn num_gpus(self, gpus: f64) -> Self { Self(self.0.num_gpus(gpus)) }
        /// Number of starts after its worker was lost; a negative number means no limit.
        #[must_use]
        $vis fn max_restarts(self, count: i32) -> Self { Self(self.0.max_restarts(count)) }
        /// Number of repetitions of a call that may have run when the worker was lost, or that returned an
        /// error that is retried.
        #[must_use]
        $vis fn max_task_retries(self, count: i32) -> Self { Self(self.0.max_task_retries(count)) }
        /// Retries this error of the actor's methods. Call it once for each type.
        #[must_use]
        $vis fn retry_on<E>(self) -> Self { Self(self.0.retry_on::<E>()) }
        /// Retries any error that the actor's methods return.
        #[must_use]
        $vis fn retry_on_any(self) -> Self { Self(self.0.retry_on_any()) }
        /// Number of unfinished calls of one caller, above which a call fails at once; 0 means no bound.
        #[must_use]
        $vis fn max_pending_calls(self, count: u32) -> Self { Self(self.0.max_pending_calls(count)) }
        /// Whether a call whose arguments are there overtakes earlier ones of its caller.
        #[must_use]
        $vis fn allow_out_of_order(self, is_allowed: bool) -> Self { Self(self.0.allow_out_of_order(is_allowed)) }
        /// Whether it lives on without handles and without the driver that creates it.
        #[must_use]
        $vis fn detached(self, is_detached: bool) -> Self { Self(self.0.detached(is_detached)) }
        /// Whether it shares its worker process with other actors of the job that say so too.
        #[must_use]
        $vis fn shared_process(self, is_shared: bool) -> Self { Self(self.0.shared_process(is_shared)) }
    };
}

#[cfg(test)]
mod tests {
    use super::*;
    use tharsis_types::limits::NAME_BYTES_MAX;

    #[test]
    fn the_first_problem_is_kept() {
        let bad = Options::default().num_cpus(-1.0).name("").num_returns(0);
        assert!(bad.problem.unwrap().contains("num_cpus"));
        for bad in [
            Options::default().resource("CPU", 1.0),
            Options::default().resource("tpu", f64::NAN),
            Options::default().name("x".repeat(NAME_BYTES_MAX + 1)),
            Options::default().timeout(Duration::ZERO),
            Options::default().name("a line\n"),
            Options::default().name("a\tb"),
            Options::default().node(NodeId(0), true),
        ] {
            assert!(bad.problem.is_some(), "{bad:?}");
        }
    }

    #[test]
    fn amounts_become_resources() {
        let options = Options::default().num_cpus(0.25).num_gpus(1.0).memory_bytes(5).resource("tpu", 2.0);
        let resources = options.resources(Role::Task);
        assert_eq!((resources.cpu, resources.gpu, resources.memory), (2_500, 10_000, 5));
        assert_eq!(resources.custom["tpu"], 20_000);
        assert_eq!(Options::default().resources(Role::Task).cpu, Resources::UNIT);
        assert_eq!(Options::default().resources(Role::Constructor).cpu, 0);
        assert_eq!(options.resources(Role::Method), Resources::default());
        // Four of the first run on one CPU.
        assert!(!options.takes_cpus());
        assert!(!Options::default().num_cpus(0.0).takes_cpus());
        assert!(Options::default().takes_cpus() && Options::default().num_cpus(2.0).takes_cpus());
        assert_eq!(Options::default().timeout(Duration::from_micros(1)).timeout_ms, 1);
    }
}
