//! The calls about submitted programs, on the caller's side, and their requests on the wire.

use super::{Called, Credentials, PeerClient, Status, wire};
use crate::call::{CallError, chain};
use crate::message::{BadMessage, node_id};
use crate::submission::{NewSubmission, OutputQuery};
use futures::StreamExt;
use futures::stream::BoxStream;
use prost::bytes::Bytes;
use std::future::Future;
use std::time::Duration;
use tharsis_types::{BadQuota, NodeId};
use tonic::Response;
use tonic::transport::{Channel, Endpoint};

/// Parts of the output of a program; ends with it, or with the reason why the call broke.
pub type OutputStream = BoxStream<'static, Result<Bytes, CallError>>;

/// Has the node at `address` (`host:port`) run a program: the id of its process.
///
/// # Errors
/// [`CallError`] if it is not reached within `deadline`, or refuses: `AlreadyExists` for a name that is
/// taken, `NotFound` for a program or folder that is not there, `ResourceExhausted` if it runs as many as it
/// may.
pub async fn submit_job(
    address: &str,
    node: NodeId,
    own: &Credentials,
    new: NewSubmission,
    deadline: Duration,
) -> Result<u32, CallError> {
    const CALL: &str = "submit job";
    let NewSubmission { name, words, folder, variables, quota } = new;
    let request = wire::SubmitJobRequest {
        node: node.0,
        name,
        words,
        folder,
        variables: variables.into_iter().collect(),
        quota: quota.map(|quota| quota.to_string()).unwrap_or_default(),
    };
    let mut client = client(CALL, address, node, own, deadline)?;
    Ok(within(CALL, address, deadline, client.submit_job(request)).await?.pid)
}

/// Has the node at `address` end a program, by force after `grace`; whether it still ran.
///
/// # Errors
/// [`CallError`] if it is not reached within `deadline`, or refuses: `NotFound` for a name that it does not
/// know.
pub async fn stop_job(
    address: &str,
    node: NodeId,
    own: &Credentials,
    name: &str,
    grace: Duration,
    deadline: Duration,
) -> Result<bool, CallError> {
    const CALL: &str = "stop job";
    let grace_ms = u64::try_from(grace.as_millis()).unwrap_or(u64::MAX);
    let request = wire::StopJobRequest { node: node.0, name: name.to_owned(), grace_ms };
    let mut client = client(CALL, address, node, own, deadline)?;
    Ok(within(CALL, address, deadline, client.stop_job(request)).await?.was_running)
}

/// Asks the node at `address` for the output of a program.
///
/// # Errors
/// As [`stop_job`].
pub async fn job_output(
    address: &str,
    node: NodeId,
    own: &Credentials,
    query: OutputQuery,
    deadline: Duration,
) -> Result<OutputStream, CallError> {
    const CALL: &str = "job output";
    let OutputQuery { name, tail, follow } = query;
    let request = wire::JobOutputRequest { node: node.0, name, tail, follow };
    let mut client = client(CALL, address, node, own, deadline)?;
    let parts = within(CALL, address, deadline, client.job_output(request)).await?;
    let address = address.to_owned();
    let named = move |status: Status| CallError::from_status(CALL, &address, &status);
    Ok(parts.map(move |part| part.map(|part| part.bytes).map_err(&named)).boxed())
}

fn client(
    call: &'static str,
    address: &str,
    node: NodeId,
    own: &Credentials,
    deadline: Duration,
) -> Result<PeerClient<Channel>, CallError> {
    let endpoint = Endpoint::from_shared(format!("http://{address}")).map_err(|error| {
        CallError::Unreachable { call, address: address.to_owned(), cause: chain(&error) }
    })?;
    let endpoint = endpoint.connect_timeout(deadline);
    Ok(PeerClient::new(own.channel(&endpoint, address, Called::Node(node.0))))
}

async fn within<T>(
    call: &'static str,
    address: &str,
    deadline: Duration,
    asked: impl Future<Output = Result<Response<T>, Status>>,
) -> Result<T, CallError> {
    match tokio::time::timeout(deadline, asked).await {
        Ok(Ok(answer)) => Ok(answer.into_inner()),
        Ok(Err(status)) => Err(CallError::from_status(call, address, &status)),
        Err(_) => Err(CallError::Deadline { call, address: address.to_owned(), deadline }),
    }
}

/// The node and the program of a request.
pub(super) fn submission(request: wire::SubmitJobRequest) -> Result<(NodeId, NewSubmission), BadMessage> {
    let wire::SubmitJobRequest { node, name, words, folder, variables, quota } = request;
    let quota = match quota.as_str() {
        "" => None,
        text => Some(text.parse().map_err(|bad: BadQuota| BadMessage::invalid("quota", bad.to_string()))?),
    };
    let new = NewSubmission { name, words, folder, variables: variables.into_iter().collect(), quota };
    new.check()?;
    Ok((node_id("node", node)?, new))
}
