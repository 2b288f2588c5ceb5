//! Task classes, to and from their form on the wire.

use super::names::{task, task_bytes};
use super::wire::{self, label_term, placement};
use crate::message::{BadMessage, amounts, job_id, node_id, required, text};
use tharsis_types::limits::KIB;
use tharsis_types::task::{CallRules, LabelSelector, LabelTerm, Role};
use tharsis_types::{FunctionId, Placement, Resources, RetryOn, TaskClass};

/// Bytes of a path of a function, a call site or the name of a type.
pub(super) const PATH_BYTES_MAX: usize = 4 * KIB;

pub(super) fn task_class(m: wire::TaskClass) -> Result<TaskClass, BadMessage> {
    let retry_on = match m.retry_on {
        None => RetryOn::Nothing,
        Some(wire::RetryOn { everything: true, .. }) => RetryOn::Everything,
        Some(wire::RetryOn { types, .. }) => RetryOn::Types(types),
    };
    let class = TaskClass {
        job: job_id("job", m.job)?,
        function: FunctionId(m.function),
        signature: m.signature,
        function_name: text("function_name", m.function_name, PATH_BYTES_MAX)?,
        name: m.name,
        call_site: text("call_site", m.call_site, PATH_BYTES_MAX)?,
        resources: resources("resources", m.resources)?,
        priority: m.priority,
        returns: m.num_returns,
        max_retries: m.max_retries,
        retry_on,
        timeout_ms: m.timeout_ms,
        max_calls: m.max_calls,
        pure: m.pure,
        placement: m.placement.map_or(Ok(Placement::Default), task_placement)?,
        role: match wire::Role::try_from(m.role) {
            Ok(wire::Role::Unspecified) => Role::Task,
            Ok(wire::Role::Constructor) => Role::Constructor,
            Ok(wire::Role::Method) => Role::Method,
            Err(_) => return Err(BadMessage::invalid("role", format!("{} is no role", m.role))),
        },
        calls: m.calls.map_or(Ok(CallRules::default()), call_rules)?,
        detached: m.detached,
        shared_process: m.shared_process,
    };
    class.check().map_err(|bad| BadMessage::invalid(bad.option, bad.fault))?;
    Ok(class)
}

fn call_rules(m: wire::CallRules) -> Result<CallRules, BadMessage> {
    let group = u16::try_from(m.group)
        .map_err(|_| BadMessage::invalid("calls.group", format!("{} is no number of a group", m.group)))?;
    let (concurrent, out_of_order, max_pending) = (m.concurrent, m.out_of_order, m.max_pending);
    Ok(CallRules { group, concurrent, limit: m.limit, out_of_order, max_pending })
}

fn wire_call_rules(rules: CallRules) -> Option<wire::CallRules> {
    let CallRules { group, concurrent, limit, out_of_order, max_pending } = rules;
    let wire = wire::CallRules { group: group.into(), concurrent, out_of_order, max_pending, limit };
    (rules != CallRules::default()).then_some(wire)
}

fn task_placement(m: wire::Placement) -> Result<Placement, BadMessage> {
    Ok(match required("placement.choice", m.choice)? {
        placement::Choice::Spread(wire::Spread {}) => Placement::Spread,
        placement::Choice::Node(choice) => {
            Placement::Node { node: node_id("placement.node", choice.node)?, soft: choice.soft }
        }
        placement::Choice::Labels(choice) => {
            let selectors = choice.selectors.into_iter().map(|s| s.terms.into_iter().map(label).collect());
            Placement::Labels(selectors.collect::<Result<Vec<LabelSelector>, _>>()?)
        }
        placement::Choice::Group(wire::GroupChoice { group, bundle }) => {
            Placement::Group { group: task("placement.group", &group)?, bundle }
        }
        placement::Choice::Bundle(wire::BundleChoice { group, index }) => {
            Placement::Bundle { group: task("placement.bundle", &group)?, index }
        }
    })
}

fn label(term: wire::LabelTerm) -> Result<LabelTerm, BadMessage> {
    let key = term.key;
    Ok(match required("placement.labels.condition", term.condition)? {
        label_term::Condition::In(wire::Values { values }) => LabelTerm::In(key, values),
        label_term::Condition::NotIn(wire::Values { values }) => LabelTerm::NotIn(key, values),
        label_term::Condition::Exists(true) => LabelTerm::Exists(key),
        label_term::Condition::Exists(false) => LabelTerm::DoesNotExist(key),
    })
}

pub(super) fn wire_class(class: &TaskClass) -> wire::TaskClass {
    let retry_on = match &class.retry_on {
        RetryOn::Nothing => None,
        RetryOn::Everything => Some(wire::RetryOn { everything: true, types: Vec::new() }),
        RetryOn::Types(types) => Some(wire::RetryOn { everything: false, types: types.clone() }),
    };
    wire::TaskClass {
        job: class.job.0,
        function: class.function.0,
        signature: class.signature,
        function_name: cut(&class.function_name),
        name: class.name.clone(),
        call_site: cut(&class.call_site),
        resources: Some(wire_resources(&class.resources)),
        priority: class.priority,
        num_returns: class.returns,
        max_retries: class.max_retries,
        retry_on,
        timeout_ms: class.timeout_ms,
        max_calls: class.max_calls,
        pure: class.pure,
        placement: wire_placement(&class.placement),
        role: match class.role {
            Role::Task => wire::Role::Unspecified,
            Role::Constructor => wire::Role::Constructor,
            Role::Method => wire::Role::Method,
        }
        .into(),
        calls: wire_call_rules(class.calls),
        detached: class.detached,
        shared_process: class.shared_process,
    }
}

fn wire_placement(choice: &Placement) -> Option<wire::Placement> {
    let choice = match choice {
        // A call that makes a placement group stays with the node that owns it.
        Placement::Default | Placement::Reserve(_) => return None,
        Placement::Spread => placement::Choice::Spread(wire::Spread {}),
        Placement::Node { node, soft } => {
            placement::Choice::Node(wire::NodeChoice { node: node.0, soft: *soft })
        }
        Placement::Group { group, bundle } => {
            placement::Choice::Group(wire::GroupChoice { group: task_bytes(group), bundle: *bundle })
        }
        Placement::Bundle { group, index } => {
            placement::Choice::Bundle(wire::BundleChoice { group: task_bytes(group), index: *index })
        }
        Placement::Labels(selectors) => {
            let selectors = selectors.iter().map(|terms| terms.iter().map(wire_label).collect());
            let selectors = selectors.map(|terms| wire::LabelSelector { terms }).collect();
            placement::Choice::Labels(wire::LabelChoice { selectors })
        }
    };
    Some(wire::Placement { choice: Some(choice) })
}

fn wire_label(term: &LabelTerm) -> wire::LabelTerm {
    use label_term::Condition;
    let values = |values: &Vec<String>| wire::Values { values: values.clone() };
    let (key, condition) = match term {
        LabelTerm::In(key, list) => (key, Condition::In(values(list))),
        LabelTerm::NotIn(key, list) => (key, Condition::NotIn(values(list))),
        LabelTerm::Exists(key) => (key, Condition::Exists(true)),
        LabelTerm::DoesNotExist(key) => (key, Condition::Exists(false)),
    };
    wire::LabelTerm { key: key.clone(), condition: Some(condition) }
}

pub(super) fn resources(field: &str, set: Option<wire::Resources>) -> Result<Resources, BadMessage> {
    let set = required(field, set)?;
    amounts(field, set.cpu_units, set.gpu_units, set.memory_bytes, set.custom_units)
}

pub(super) fn wire_resources(set: &Resources) -> wire::Resources {
    wire::Resources {
        cpu_units: set.cpu,
        gpu_units: set.gpu,
        memory_bytes: set.memory,
        custom_units: set.custom.clone(),
    }
}

/// Text for people, cut to what the other side takes.
pub(super) fn cut(text: &str) -> String {
    text[..text.floor_char_boundary(PATH_BYTES_MAX)].to_owned()
}
