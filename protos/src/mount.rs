//! Common behaviour of all mounted services: how a request that cannot be read, or comes too late, is
//! answered.
//!
//! The transport calls a message above the limit "out of range" and one that is cut short "internal". Neither
//! is true: the first is a resource limit, the second the fault of whoever sent it. Our own handlers use
//! neither code in that way, so both are put right on the way out.
//!
//! A call that the caller has no right to is refused ([`crate::rights`]).
//!
//! A call whose caller has no time left is not begun. The transport would begin it, and answer "cancelled".

use crate::rights;
use futures::TryFutureExt;
use futures::future::{Either, MapOk, Ready, ready};
use http::{HeaderMap, HeaderValue, Request, Response};
use std::convert::Infallible;
use std::task::{Context, Poll};
use tonic::body::Body;
use tonic::server::NamedService;
use tonic::service::Routes;
use tonic::{Code, Status};
use tower::Service;

type Put = fn(Response<Body>) -> Response<Body>;

/// A service whose answers to unreadable requests have the right code.
#[derive(Clone, Debug)]
struct Honest<S>(S);

/// Adds a service to those of one port.
pub(crate) fn mount<S>(routes: Routes, service: S) -> Routes
where
    S: Service<Request<Body>, Response = Response<Body>, Error = Infallible> + NamedService,
    S: Clone + Send + Sync + 'static,
    S::Future: Send + 'static,
{
    routes.add_service(Honest(service))
}

impl<S: NamedService> NamedService for Honest<S> {
    const NAME: &'static str = S::NAME;
}

impl<S> Service<Request<Body>> for Honest<S>
where
    S: Service<Request<Body>, Response = Response<Body>, Error = Infallible>,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Either<MapOk<S::Future, Put>, Ready<Result<Response<Body>, Infallible>>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.0.poll_ready(context)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        if is_too_late(request.headers()) {
            let status = Status::deadline_exceeded("the deadline of the call had passed when it arrived");
            return Either::Right(ready(Ok(status.into_http())));
        }
        if let Err(status) = rights::check_call(request.extensions(), request.uri().path()) {
            return Either::Right(ready(Ok(status.into_http())));
        }
        Either::Left(self.0.call(request).map_ok(put_right as Put))
    }
}

/// Whether the caller waits for no time at all. The header is a number of at most eight digits with its unit.
fn is_too_late(headers: &HeaderMap) -> bool {
    let timeout = headers.get("grpc-timeout").and_then(|value| value.to_str().ok());
    timeout.and_then(|text| text.get(..text.len().saturating_sub(1))?.parse().ok()) == Some(0_u32)
}

fn put_right(mut response: Response<Body>) -> Response<Body> {
    let Some(status) = Status::from_header_map(response.headers()) else { return response };
    let code = match status.code() {
        Code::OutOfRange => "8",
        Code::Internal if status.message().starts_with("failed to decode Protobuf message") => "3",
        _ => return response,
    };
    response.headers_mut().insert(Status::GRPC_STATUS, HeaderValue::from_static(code));
    response
}
