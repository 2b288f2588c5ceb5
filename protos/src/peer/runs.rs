//! The call for the runs that a node remembers, on the caller's side, and its runs on the wire.

use super::names::{task, task_bytes};
use super::{Called, Credentials, PeerClient, Status, wire};
use crate::call::{CallError, chain};
use crate::message::{BadMessage, node_id, text};
use crate::rights;
use crate::runs::{RUN_TEXT_BYTES_MAX, RunBatch, RunOutcome, RunQuery, RunSpan};
use futures::StreamExt;
use futures::stream::BoxStream;
use prost::bytes::Bytes;
use std::time::Duration;
use tharsis_types::{ClientId, JobId, NodeId};
use tonic::transport::Endpoint;

/// The name of the call in errors.
const CALL: &str = "runs";

/// Batches of runs; ends when all were told, or with the reason why the call broke.
pub type RunStream = BoxStream<'static, Result<RunBatch, CallError>>;

/// Asks the node at `address` (`host:port`) for the runs that it remembers.
///
/// # Errors
/// [`CallError`] if it is not reached within `deadline`, or refuses: `Unimplemented` if it is of a release
/// without this call.
pub async fn runs(
    address: String,
    node: NodeId,
    own: &Credentials,
    query: RunQuery,
    deadline: Duration,
) -> Result<RunStream, CallError> {
    let endpoint = match Endpoint::from_shared(format!("http://{address}")) {
        Ok(endpoint) => endpoint.connect_timeout(deadline),
        Err(error) => return Err(CallError::Unreachable { call: CALL, address, cause: chain(&error) }),
    };
    let mut client = PeerClient::new(own.channel(&endpoint, &address, Called::Node(node.0)));
    let asked = client.runs(request(node, query));
    match tokio::time::timeout(deadline, asked).await {
        Ok(Ok(answer)) => {
            let read = move |part: Result<wire::RunSpans, Status>| match part {
                Ok(part) => batch(part).map_err(|cause| CallError::BadAnswer {
                    call: CALL,
                    address: address.clone(),
                    cause,
                }),
                Err(status) => Err(refused(&address, &status)),
            };
            Ok(answer.into_inner().map(read).boxed())
        }
        Ok(Err(status)) => Err(refused(&address, &status)),
        Err(_) => Err(CallError::Deadline { call: CALL, address, deadline }),
    }
}

fn refused(address: &str, status: &Status) -> CallError {
    if rights::is_unknown("Runs", status) {
        let cause = Status::unimplemented("the node does not know the call");
        return CallError::from_status(CALL, address, &cause);
    }
    CallError::from_status(CALL, address, status)
}

fn request(node: NodeId, query: RunQuery) -> wire::RunsRequest {
    wire::RunsRequest {
        node: node.0,
        job: query.job.map_or(0, |job| job.0),
        task: query.task.map_or_else(Bytes::new, |task| task_bytes(&task)),
        since_unix_ns: query.since_unix_ns,
    }
}

/// The runs that a request asks for.
pub(super) fn query(request: &wire::RunsRequest) -> Result<RunQuery, BadMessage> {
    let wanted = if request.task.is_empty() { None } else { Some(task("task", &request.task)?) };
    let job = (request.job != 0).then_some(JobId(request.job));
    Ok(RunQuery { job, task: wanted, since_unix_ns: request.since_unix_ns })
}

pub(super) fn to_wire(batch: RunBatch) -> wire::RunSpans {
    let RunBatch { spans, forgotten, remembers_since_unix_ns, is_last } = batch;
    let span = |span: RunSpan| wire::RunSpan {
        task: task_bytes(&span.task),
        attempt: span.attempt,
        owner: span.owner.0,
        name: span.name,
        call_site: span.call_site,
        worker: span.worker.0,
        pid: span.pid,
        is_concurrent: span.is_concurrent,
        begin_unix_ns: span.begin_unix_ns,
        end_unix_ns: span.end_unix_ns,
        outcome: match span.outcome {
            RunOutcome::Running => wire::RunOutcome::Running,
            RunOutcome::Returned => wire::RunOutcome::Returned,
            RunOutcome::Failed => wire::RunOutcome::Failed,
            RunOutcome::Crashed => wire::RunOutcome::Crashed,
        }
        .into(),
    };
    wire::RunSpans {
        spans: spans.into_iter().map(span).collect(),
        forgotten,
        remembers_since_unix_ns,
        is_last,
    }
}

fn batch(part: wire::RunSpans) -> Result<RunBatch, BadMessage> {
    let wire::RunSpans { spans, forgotten, remembers_since_unix_ns, is_last } = part;
    let spans = spans.into_iter().map(span).collect::<Result<Vec<_>, _>>();
    let spans = spans.map_err(|bad| bad.within("spans"))?;
    Ok(RunBatch { spans, forgotten, remembers_since_unix_ns, is_last })
}

fn span(span: wire::RunSpan) -> Result<RunSpan, BadMessage> {
    let outcome = match wire::RunOutcome::try_from(span.outcome) {
        Ok(wire::RunOutcome::Running) => RunOutcome::Running,
        Ok(wire::RunOutcome::Returned) => RunOutcome::Returned,
        Ok(wire::RunOutcome::Failed) => RunOutcome::Failed,
        Ok(wire::RunOutcome::Crashed) => RunOutcome::Crashed,
        Ok(wire::RunOutcome::Unspecified) | Err(_) => {
            return Err(BadMessage::invalid("outcome", format!("{} is no outcome", span.outcome)));
        }
    };
    Ok(RunSpan {
        task: task("task", &span.task)?,
        attempt: span.attempt,
        owner: node_id("owner", span.owner)?,
        name: text("name", span.name, RUN_TEXT_BYTES_MAX)?,
        call_site: text("call_site", span.call_site, RUN_TEXT_BYTES_MAX)?,
        worker: ClientId(span.worker),
        pid: span.pid,
        is_concurrent: span.is_concurrent,
        begin_unix_ns: span.begin_unix_ns,
        end_unix_ns: span.end_unix_ns,
        outcome,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::RefusalCode;
    use tharsis_types::TaskId;

    fn told(outcome: RunOutcome) -> RunSpan {
        RunSpan {
            task: TaskId::root(JobId(u32::MAX)).child(7),
            attempt: u32::MAX,
            owner: NodeId(u64::MAX),
            name: "é".repeat(RUN_TEXT_BYTES_MAX / 2),
            call_site: String::new(),
            worker: ClientId(u32::MAX),
            pid: u32::MAX,
            is_concurrent: true,
            begin_unix_ns: u64::MAX,
            end_unix_ns: 0,
            outcome,
        }
    }

    #[test]
    fn a_request_survives_the_wire_and_names_a_whole_task_or_none() {
        let task = TaskId::root(JobId(7)).child(1);
        for asked in [
            RunQuery::default(),
            RunQuery { job: Some(JobId(u32::MAX)), task: Some(task), since_unix_ns: u64::MAX },
        ] {
            assert_eq!(query(&request(NodeId(1), asked)).unwrap(), asked);
        }
        let short =
            wire::RunsRequest { task: Bytes::from_static(&[1, 2, 3]), ..wire::RunsRequest::default() };
        assert!(query(&short).unwrap_err().to_string().contains("task"));
    }

    #[test]
    fn a_node_of_a_release_without_the_call_does_not_implement_it() {
        let code = |role: &str| {
            let status = Status::permission_denied(format!("Runs is not for the role {role}"));
            refused("a:1", &status).refusal_code()
        };
        assert_eq!(code("operator"), Some(RefusalCode::Unimplemented));
        assert_eq!(code("node"), Some(RefusalCode::PermissionDenied));
    }

    #[test]
    fn runs_survive_the_wire() {
        let all = [RunOutcome::Running, RunOutcome::Returned, RunOutcome::Failed, RunOutcome::Crashed];
        let spans = all.map(told).to_vec();
        let (forgotten, remembers_since_unix_ns) = (u64::MAX, u64::MAX);
        let asked = RunBatch { spans, forgotten, remembers_since_unix_ns, is_last: true };
        assert_eq!(batch(to_wire(asked.clone())).unwrap(), asked);
        assert_eq!(batch(to_wire(RunBatch::default())).unwrap(), RunBatch::default());
    }

    /// The name of a field, and what makes it wrong.
    type Spoilt = (&'static str, fn(&mut wire::RunSpan));

    #[test]
    fn a_run_that_is_not_what_it_should_be_is_refused_by_its_field() {
        let wire = || to_wire(RunBatch { spans: vec![told(RunOutcome::Failed)], ..RunBatch::default() });
        let spoil: [Spoilt; 5] = [
            ("spans.task", |span| span.task = Bytes::new()),
            ("spans.owner", |span| span.owner = 0),
            ("spans.name", |span| span.name.push('x')),
            ("spans.call_site", |span| span.call_site = "x".repeat(RUN_TEXT_BYTES_MAX + 1)),
            ("spans.outcome", |span| span.outcome = 5),
        ];
        for (field, spoil) in spoil {
            let mut part = wire();
            spoil(&mut part.spans[0]);
            assert_eq!(batch(part).unwrap_err().field, field);
        }
    }
}
