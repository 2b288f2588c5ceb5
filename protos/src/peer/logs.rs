//! The call for the output of workers, on the caller's side, and its lines on the wire.

use super::{Called, Credentials, PeerClient, Status, wire};
use crate::call::{CallError, chain};
use crate::logs::{LogLine, LogQuery};
use crate::message::{BadMessage, job_id};
use futures::StreamExt;
use futures::stream::BoxStream;
use prost::bytes::Bytes;
use std::time::Duration;
use tharsis_types::{JobId, NodeId, TaskId};
use tonic::transport::Endpoint;

/// The name of the call in errors.
const CALL: &str = "logs";

/// Batches of lines; ends when all were told, or with the reason why the call broke.
pub type LogStream = BoxStream<'static, Result<Vec<LogLine>, CallError>>;

/// Asks the node at `address` (`host:port`) for the output of its workers.
///
/// # Errors
/// [`CallError`] if it is not reached within `deadline`, or refuses.
pub async fn logs(
    address: String,
    node: NodeId,
    own: &Credentials,
    query: LogQuery,
    deadline: Duration,
) -> Result<LogStream, CallError> {
    let endpoint = match Endpoint::from_shared(format!("http://{address}")) {
        Ok(endpoint) => endpoint.connect_timeout(deadline),
        Err(error) => return Err(CallError::Unreachable { call: CALL, address, cause: chain(&error) }),
    };
    let mut client = PeerClient::new(own.channel(&endpoint, &address, Called::Node(node.0)));
    let asked = client.logs(wire::LogsRequest {
        node: node.0,
        job: query.job.map_or(0, |job| job.0),
        task: query.task.map_or_else(Bytes::new, |task| Bytes::copy_from_slice(&task.to_bytes())),
        tail: query.tail,
        follow: query.follow,
    });
    let named = move |address: &str, status: &Status| CallError::from_status(CALL, address, status);
    match tokio::time::timeout(deadline, asked).await {
        Ok(Ok(answer)) => {
            let read = move |batch: Result<wire::LogLines, Status>| match batch {
                Ok(batch) => lines(batch).map_err(|cause| CallError::BadAnswer {
                    call: CALL,
                    address: address.clone(),
                    cause,
                }),
                Err(status) => Err(named(&address, &status)),
            };
            Ok(answer.into_inner().map(read).boxed())
        }
        Ok(Err(status)) => Err(named(&address, &status)),
        Err(_) => Err(CallError::Deadline { call: CALL, address, deadline }),
    }
}

/// The lines that a request asks for.
pub(super) fn query(request: &wire::LogsRequest) -> Result<LogQuery, BadMessage> {
    let task = match request.task.len() {
        0 => None,
        _ => Some(<[u8; TaskId::LEN]>::try_from(&*request.task).map(TaskId::from_bytes).map_err(|_| {
            BadMessage::invalid("task", format!("{} bytes are not {}", request.task.len(), TaskId::LEN))
        })?),
    };
    let job = (request.job != 0).then_some(JobId(request.job));
    Ok(LogQuery { job, task, tail: request.tail, follow: request.follow })
}

pub(super) fn to_wire(lines: Vec<LogLine>) -> wire::LogLines {
    let line = |line: LogLine| {
        let LogLine { unix_ms, job, pid, is_stderr, text } = line;
        wire::LogLine { unix_ms, job: job.0, pid, is_stderr, text }
    };
    wire::LogLines { lines: lines.into_iter().map(line).collect() }
}

fn lines(batch: wire::LogLines) -> Result<Vec<LogLine>, BadMessage> {
    let line = |line: wire::LogLine| {
        let wire::LogLine { unix_ms, job, pid, is_stderr, text } = line;
        Ok(LogLine { unix_ms, job: job_id("lines.job", job)?, pid, is_stderr, text })
    };
    batch.lines.into_iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_names_a_whole_task_or_none() {
        let request = |task: &[u8]| wire::LogsRequest {
            node: 1,
            job: 0,
            task: Bytes::copy_from_slice(task),
            tail: 3,
            follow: true,
        };
        let task = TaskId::root(JobId(7)).child(1);
        assert_eq!(query(&request(&task.to_bytes())).unwrap().task, Some(task));
        let all = query(&request(&[])).unwrap();
        assert_eq!(all, LogQuery { job: None, task: None, tail: 3, follow: true });
        assert!(query(&request(&[1, 2, 3])).unwrap_err().to_string().contains("task"));
    }

    #[test]
    fn lines_survive_the_wire() {
        let text = "what it said".to_owned();
        let line = LogLine { unix_ms: 5, job: JobId(2), pid: 9, is_stderr: true, text };
        assert_eq!(lines(to_wire(vec![line.clone()])).unwrap(), [line]);
    }
}
