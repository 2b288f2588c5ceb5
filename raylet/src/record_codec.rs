//! Records of clients to events of the machine, and its records for clients to bytes. Everything that a
//! client sends is checked here.

use crate::effects::Effects;
use crate::port::{Facts, Port};
use std::sync::Arc;
use tharsis_core::event::OutputValue;
use tharsis_core::node::ArgumentValue;
use tharsis_core::{Event, Node, Record, TaskOutcome, Value};
use tharsis_protos::records::{
    ArgumentsView, DependenciesView, FromClient, GraphView, NodesView, OutcomeView, OutputsView, RefsView,
    ToClient, ValueView, pack,
};
use tharsis_types::check::check_name;
use tharsis_types::limits::{DEPENDENCIES_MAX, INLINE_ARGS_BYTES_MAX, INLINE_BYTES_MAX};
use tharsis_types::task::Role;
use tharsis_types::task::{Output, Outputs};
use tharsis_types::{
    ClientId, Dependency, Extent, Failure, FailureKind, GraphPart, NodeId, ObjectId, Placement, RefId,
    TaskArgs, TaskClass, TaskId,
};

/// The event that a record stands for, if any.
///
/// # Errors
/// Fault of a record; the client is then cut off. Wrong options of a task are no such error: they
/// fail the calls of its class.
pub fn event(
    client: ClientId,
    facts: &Facts,
    effects: &Effects,
    record: FromClient<'_>,
) -> Result<Option<Event>, String> {
    Ok(Some(match record {
        FromClient::ActorEnded => Event::ActorEnded { client },
        FromClient::Blocked { returned } => Event::Blocked { client, returned: returned.iter().collect() },
        FromClient::Cancel { reference, force, recursive } => {
            Event::CancelRequested { reference, force, recursive }
        }
        FromClient::Checkpoint { request, value, nested } => {
            let (value, nested) = (output_value(effects, value)?, references(nested)?);
            Event::CheckpointWanted { client, request, value, nested }
        }
        FromClient::DefineClass { class, definition } => {
            let definition = task_class(facts, definition).map(Arc::new).map_err(Arc::new);
            Event::ClassDefined { client, class, definition }
        }
        FromClient::Done { slot, run_ns, outcome } => {
            Event::Finished { client, run: slot, run_ns, outcome: task_outcome(effects, outcome)? }
        }
        FromClient::Fetch { token, reference } => Event::Fetch { client, token, reference },
        FromClient::Graph { run, graph, part } => {
            let part = Box::new(graph_part(client, facts, graph, &part)?);
            Event::GraphSubmitted { client, run, graph, part }
        }
        FromClient::GiveBack { question, returned } => {
            Event::GivenBack { client, question, returned: returned.iter().collect() }
        }
        FromClient::Hold { token, reference } => Event::Held { client, token, reference },
        FromClient::Keep { token, reference } => Event::Kept { client, token, reference },
        FromClient::Locate { request, reference } => Event::LocationsWanted { client, request, reference },
        FromClient::Put { token, object, value, nested, site } => {
            // Only tasks make outputs. A client that could put an output, or an object of another job, could
            // forge the result of a task.
            if object.task.job() != facts.job || !object.is_put() {
                return Err(format!("client {} of job {} cannot put {object}", client.0, facts.job.0));
            }
            let (value, nested) = (output_value(effects, value)?, references(nested)?);
            Event::Put { client, token, object, value, nested, site: site.into() }
        }
        FromClient::RegionWanted { request, bytes } => Event::RegionWanted { client, request, bytes },
        FromClient::RegionRetired { region } => Event::RegionRetired { client, region },
        FromClient::Release { token, reference } => Event::Released { client, token, reference },
        FromClient::Restart { reference } => Event::RestartRequested { reference },
        FromClient::Submit { run, class, task, tokens, payload, dependencies, nested, name } => {
            if task.job() != facts.job {
                return Err(format!("task {task} belongs to another job than client {}", client.0));
            }
            let len = payload.len();
            if len > INLINE_ARGS_BYTES_MAX {
                return Err(format!("{len} bytes of inline arguments, the limit is {INLINE_ARGS_BYTES_MAX}"));
            }
            let (dependencies, nested) = (by_reference(dependencies)?, references(nested)?);
            check_name(name).map_err(|bad| bad.to_string())?;
            let name = (!name.is_empty()).then(|| name.into());
            let args = TaskArgs { payload: payload.into(), dependencies, nested, name };
            Event::Submitted { client, run, class, task, tokens: tokens.iter().collect(), args }
        }
        FromClient::Unblock => Event::Unblocked { client },
        FromClient::Unmapped { token, reference: of } => Event::Unmapped { client, token, object: of.object },
    }))
}

/// Tells a client the state of one of its references.
pub fn deliver(node: &Node, port: &mut Port, token: u64, object: ObjectId) {
    let failed;
    let value = match node.value_for(port.client, token, object) {
        Some(Value::Inline(bytes)) => ValueView::Inline(bytes),
        Some(Value::Stored { len }) => ValueView::Ready { len: *len },
        Some(Value::Failed(failure)) => {
            failed = encode_failure(failure);
            ValueView::Failed(&failed)
        }
        None if node.is_made_anew(port.client, token, object) => ValueView::Ready { len: 0 },
        None => {
            let text = format!("object {object} is not known any more");
            failed = encode_failure(&Failure::new(FailureKind::ObjectFreed, text));
            ValueView::Failed(&failed)
        }
    };
    port.write(&ToClient::Value { token, value });
}

/// Writes a record for a client.
pub fn write(node: &Node, port: &mut Port, record: &Record) {
    match record {
        Record::CancelRun { run } => port.write(&ToClient::CancelRun { slot: *run }),
        Record::CheckpointEnded { request, refusal } => {
            let failure = refusal.as_deref().map(encode_failure).unwrap_or_default();
            port.write(&ToClient::CheckpointEnded { request: *request, failure: &failure });
        }
        Record::Locations { request, reference } => {
            let nodes = pack::nodes(&node.locations(*reference));
            if let Ok(nodes) = NodesView::new(&nodes) {
                port.write(&ToClient::Locations { request: *request, nodes });
            }
        }
        Record::Region { request, region } => {
            let (region, failure) = match region {
                Ok(region) => (*region, Vec::new()),
                Err(failure) => (Extent { offset: 0, len: 0 }, encode_failure(failure)),
            };
            port.write(&ToClient::Region { request: *request, region, failure: &failure });
        }
        Record::Resumed => port.write(&ToClient::Resumed),
        Record::RetireRegions => port.write(&ToClient::RetireRegions),
        Record::Run { run } => write_run(node, port, *run),
        Record::StealBack { count, question } => {
            port.write(&ToClient::StealBack { count: *count, question: *question })
        }
        Record::Stop => port.shutdown("the worker is not needed any more"),
        Record::Unmap { token } => port.write(&ToClient::Unmap { token: *token }),
        Record::Value { token, extent: Some(extent), .. } => {
            port.write(&ToClient::Value { token: *token, value: ValueView::Local(*extent) });
        }
        Record::Value { token, object, extent: None } => {
            let stays = || matches!(node.value_for(port.client, *token, *object), Some(Value::Inline(_)));
            if port.is_far_behind() && stays() {
                port.deliver_later(*token, *object)
            } else {
                deliver(node, port, *token, *object)
            }
        }
    }
}

/// Bytes of a failure as records carry it.
#[must_use]
pub fn encode_failure(failure: &Failure) -> Vec<u8> {
    // A failure is plain data; encoding it to memory cannot fail.
    postcard::to_stdvec(failure).unwrap_or_default()
}

fn write_run(node: &Node, port: &mut Port, run: u32) {
    // It may have ended in the same step, and another one have its number.
    let Some(view) = node.run(run).filter(|view| view.client == port.client) else { return };
    if port.learns_class(view.class_number, view.class) {
        let definition = postcard::to_stdvec(view.class.as_ref()).unwrap_or_default();
        port.write(&ToClient::DefineClass { class: view.class_number, definition: &definition });
    }
    let mut arguments = Vec::new();
    for (parameter, reference, value) in &view.arguments {
        let value = match value {
            ArgumentValue::Inline(bytes) => ValueView::Inline(bytes),
            ArgumentValue::Local(extent) => ValueView::Local(*extent),
        };
        pack::argument(&mut arguments, *parameter, reference, &value);
    }
    port.write(&ToClient::Run {
        slot: run,
        class: view.class_number,
        attempt: view.attempt,
        task: view.task,
        payload: view.payload,
        arguments: ArgumentsView::new(view.arguments.len() as u32, &arguments),
        name: view.name.unwrap_or_default(),
    });
}

fn task_class(facts: &Facts, definition: &[u8]) -> Result<TaskClass, Failure> {
    let invalid = |text: String| Failure::new(FailureKind::InvalidArgument, text);
    let class: TaskClass = postcard::from_bytes(definition).map_err(|cause| {
        Failure::new(FailureKind::DataCorrupt, format!("task class does not decode: {cause}"))
    })?;
    if class.job != facts.job {
        return Err(invalid(format!("job: class of job {}, the driver's job is {}", class.job, facts.job)));
    }
    class.check().map_err(|bad| invalid(bad.to_string()))?;
    match &class.placement {
        Placement::Reserve(_) if class.returns != 1 || class.role != Role::Task => {
            return Err(invalid("placement: a placement group is one call with one result".to_owned()));
        }
        Placement::Reserve(spec) => spec.check().map_err(|bad| invalid(format!("placement: {bad}")))?,
        // Only the owner of a group asks for its bundles.
        Placement::Bundle { .. } => return Err(invalid("placement: a bundle is no placement".to_owned())),
        _ => {}
    }
    match facts.functions.get(&class.function) {
        None => {
            let text = format!(
                "function {} (id {}) is not in the workers' program",
                class.function_name, class.function
            );
            Err(Failure::new(FailureKind::FunctionNotFound, text))
        }
        Some((signature, name)) if *signature != class.signature => {
            let text = format!(
                "function {} has signature {:016x} in the driver, {name} has {signature:016x} in the workers' program",
                class.function_name, class.signature
            );
            Err(Failure::new(FailureKind::VersionMismatch, text))
        }
        Some(_) => Ok(class),
    }
}

/// References that a client sends along.
fn references<C: FromIterator<RefId>>(packed: RefsView<'_>) -> Result<C, String> {
    packed.iter().map(check_reference).collect()
}

/// Arguments by reference.
fn by_reference(packed: DependenciesView<'_>) -> Result<Box<[Dependency]>, String> {
    let count = packed.len();
    if DEPENDENCIES_MAX < count {
        return Err(format!("{count} references as arguments, the limit is {DEPENDENCIES_MAX}"));
    }
    packed.iter().map(|given| check_reference(given.reference).map(|_| given)).collect()
}

/// Refuses a reference to nothing: other nodes, to which it goes, cannot read it.
fn check_reference(reference: RefId) -> Result<RefId, String> {
    if reference.owner == NodeId(0) || reference.object.to_bytes() == [0; ObjectId::LEN] {
        return Err(format!("{} of node {} is no reference", reference.object, reference.owner));
    }
    Ok(reference)
}

/// The part of a graph that a client submits.
fn graph_part(
    client: ClientId,
    facts: &Facts,
    graph: TaskId,
    part: &GraphView<'_>,
) -> Result<GraphPart, String> {
    if graph.job() != facts.job {
        return Err(format!("graph {graph} belongs to another job than client {}", client.0));
    }
    let part = part.part();
    check_steps(&part)?;
    Ok(part)
}

/// Checks that each step of a graph is a task that can be sent.
fn check_steps(part: &GraphPart) -> Result<(), String> {
    part.references.iter().try_for_each(|reference| check_reference(*reference).map(drop))?;
    let mut rest = &part.inputs[..];
    for step in &part.steps {
        let (own, others) = rest.split_at_checked(step.input_count as usize).unwrap_or((rest, &[]));
        rest = others;
        let inputs = own.iter().filter(|input| input.is_argument()).count();
        let bytes = step.payload_bytes as usize;
        if DEPENDENCIES_MAX < inputs || INLINE_ARGS_BYTES_MAX < bytes {
            return Err(format!(
                "a step of a graph with {inputs} inputs and {bytes} bytes of inline arguments, the limits \
                 are {DEPENDENCIES_MAX} and {INLINE_ARGS_BYTES_MAX}"
            ));
        }
    }
    Ok(())
}

fn task_outcome(effects: &Effects, outcome: OutcomeView<'_>) -> Result<TaskOutcome, String> {
    Ok(match outcome {
        OutcomeView::Returned(outputs) => TaskOutcome::Returned(task_outputs(effects, outputs)?),
        OutcomeView::Failed { error_type, failure } => {
            let failure =
                postcard::from_bytes(failure).map_err(|cause| format!("failure does not decode: {cause}"))?;
            TaskOutcome::Failed { error_type: error_type.to_owned(), failure: Arc::new(failure) }
        }
    })
}

fn task_outputs(effects: &Effects, outputs: OutputsView<'_>) -> Result<Outputs<OutputValue>, String> {
    let each = outputs.iter().map(|output| {
        let (value, nested) = output.map_err(|bad| bad.to_string())?;
        Ok(Output { value: output_value(effects, value)?, nested: references(nested)? })
    });
    each.collect()
}

fn output_value(effects: &Effects, value: ValueView<'_>) -> Result<OutputValue, String> {
    match value {
        ValueView::Inline(bytes) if bytes.len() <= INLINE_BYTES_MAX => Ok(OutputValue::Inline(bytes.into())),
        ValueView::Inline(bytes) => {
            Err(format!("inline value of {} bytes, the limit is {INLINE_BYTES_MAX}", bytes.len()))
        }
        ValueView::Local(range) => {
            let end = range.offset.checked_add(range.len);
            if end.is_none_or(|end| end > effects.arena_bytes()) {
                return Err(format!("range {}+{} leaves the arena", range.offset, range.len));
            }
            Ok(OutputValue::Written(range))
        }
        ValueView::Ready { .. } | ValueView::Failed(_) => Err("a value must be sent or written".to_owned()),
    }
}

#[cfg(test)]
#[path = "record_codec_tests.rs"]
mod tests;
