//! One request, retried at other servers while a retry is safe.
//!
//! The client spreads requests over all servers, including those that do not answer. After a server was down,
//! one request ends with "connection refused" although the others would have answered. Such a request never
//! left this process, so it is retried whatever its kind. A request that was sent may have been carried out.
//! It is retried only if it can be carried out twice without harm. Such a request is also sent to another
//! server while the first one is silent (a hedged request). Otherwise a lease would run out while this
//! process waits for a server that hangs and keeps its connections. The silent attempts stay open, because a
//! server that is only busy answers late.

use crate::error::{StoreError, chain};
use etcd_client as etcd;
use futures::stream::{FuturesUnordered, StreamExt as _};
use std::future::Future;
use std::time::Duration;
use tokio::time::Instant;
use tonic::{Code, ConnectError, Status};

/// The first pause between two attempts; each further one is twice as long.
const PAUSE_MIN: Duration = Duration::from_millis(5);
/// The longest pause between two attempts.
const PAUSE_MAX: Duration = Duration::from_millis(200);

/// Time that a repeatable request waits for an answer before another attempt starts beside it.
/// Each further wait is twice as long, as the servers may just be busy. Several attempts have to fit into the
/// shortest lease that is in use (a few seconds), even where half of them reach a silent server.
const SILENCE_MIN: Duration = Duration::from_millis(250);

/// The failures after which a request may be retried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Repeat {
    /// Only if it reached no server: carrying it out twice has another effect than once.
    Unsent,
    /// After any failure of the servers: the request reads, or is idempotent.
    Always,
}

/// Makes a request until it is answered, it may not be retried, or its time is up.
///
/// # Errors
/// The result of the last attempt; [`StoreError::Deadline`] if an attempt was in flight when the time was up.
pub(super) async fn attempt<T, F>(
    what: &'static str,
    deadline: Duration,
    repeat: Repeat,
    ask: impl Fn() -> F,
) -> Result<T, StoreError>
where
    F: Future<Output = Result<T, etcd::Error>>,
{
    let end = Instant::now() + deadline;
    let (mut pause, mut silence) = (PAUSE_MIN, SILENCE_MIN);
    let mut under_way = FuturesUnordered::from_iter([ask()]);
    loop {
        let next = match repeat {
            Repeat::Always => end.min(Instant::now() + silence),
            Repeat::Unsent => end,
        };
        let error = tokio::select! {
            Some(outcome) = under_way.next() => match outcome {
                Ok(answer) => return Ok(answer),
                Err(error) => error,
            },
            () = tokio::time::sleep_until(next) => {
                if next == end {
                    return Err(StoreError::Deadline { what, deadline });
                }
                silence *= 2;
                under_way.push(ask());
                continue;
            }
        };
        let next = Instant::now() + pause;
        if end <= next || !may_repeat(&error, repeat) {
            return Err(store_error(what, &error));
        }
        tokio::time::sleep_until(next).await;
        pause = (2 * pause).min(PAUSE_MAX);
        under_way.push(ask());
    }
}

/// Message of etcd when its quota is reached. From then on it refuses writes until an alarm is disarmed.
const OUT_OF_SPACE: &str = "database space exceeded";

/// Converts an error of the etcd client for the caller that asked for `what`.
pub(super) fn store_error(what: &'static str, error: &etcd::Error) -> StoreError {
    if let etcd::Error::LeaseKeepAliveError(_) = error {
        return StoreError::LeaseNotFound { lease: 0 };
    }
    let cause = cause_of(error);
    if cause.contains("requested lease not found") {
        return StoreError::LeaseNotFound { lease: 0 };
    }
    if cause.contains(OUT_OF_SPACE) {
        return StoreError::OutOfSpace { what, cause };
    }
    StoreError::Unavailable { what, cause }
}

/// The error of the client with all its causes on one line.
fn cause_of(error: &etcd::Error) -> String {
    match error {
        etcd::Error::GRpcStatus(status) => chain(status),
        etcd::Error::TransportError(error) => chain(error),
        other => chain(other),
    }
}

fn may_repeat(error: &etcd::Error, repeat: Repeat) -> bool {
    match error {
        etcd::Error::GRpcStatus(status) => {
            is_unsent(status) || (repeat == Repeat::Always && blames_servers(status.code()))
        }
        _ => false,
    }
}

/// Message of etcd when its users have changed since the token of a request was given. Seen with signed
/// tokens (`--auth-token jwt`).
const OUTDATED_TOKEN: &str = "revision of auth store is old";

/// Whether etcd carried nothing out and wants a new token.
pub(super) fn is_outdated_token(error: &etcd::Error) -> bool {
    matches!(error, etcd::Error::GRpcStatus(status) if status.message().contains(OUTDATED_TOKEN))
}

/// Whether no connection could be made for the request.
fn is_unsent(status: &Status) -> bool {
    let mut next = std::error::Error::source(status);
    while let Some(cause) = next {
        if cause.is::<ConnectError>() {
            return true;
        }
        next = cause.source();
    }
    false
}

/// Whether another server, or the same one later, may succeed. A connection that breaks during a request
/// gives any of these codes.
fn blames_servers(code: Code) -> bool {
    matches!(code, Code::Aborted | Code::Cancelled | Code::Internal | Code::Unavailable | Code::Unknown)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;
    use std::sync::Arc;

    fn refused() -> etcd::Error {
        let cause = std::io::Error::from(std::io::ErrorKind::ConnectionRefused);
        let mut status = Status::unavailable("tcp connect error");
        status.set_source(Arc::new(ConnectError(Box::new(cause))));
        etcd::Error::GRpcStatus(status)
    }

    #[test]
    fn a_full_etcd_is_told_with_what_to_do() {
        let status = Status::resource_exhausted("etcdserver: mvcc: database space exceeded");
        let error = store_error("txn", &etcd::Error::GRpcStatus(status));
        assert!(!error.is_transient(), "waiting makes no room");
        let text = error.to_string();
        assert!(["txn", "compact", "defrag", "disarm"].iter().all(|word| text.contains(word)), "{text}");
    }

    fn said(code: Code) -> etcd::Error {
        etcd::Error::GRpcStatus(Status::new(code, "as the server says"))
    }

    /// Number of attempts of a request whose attempts end in `error` until the fourth succeeds.
    async fn attempts(repeat: Repeat, error: impl Fn() -> etcd::Error) -> (u32, Result<(), StoreError>) {
        let count = Cell::new(0);
        let done = attempt("test", Duration::from_secs(5), repeat, || {
            count.set(count.get() + 1);
            std::future::ready(if count.get() < 4 { Err(error()) } else { Ok(()) })
        });
        let done = done.await;
        (count.get(), done)
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_that_reached_no_server_is_made_again() {
        assert_eq!(attempts(Repeat::Unsent, refused).await, (4, Ok(())));
        assert_eq!(attempts(Repeat::Always, refused).await, (4, Ok(())));
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_that_was_sent_is_made_again_only_if_that_does_no_harm() {
        assert_eq!(attempts(Repeat::Always, || said(Code::Unavailable)).await, (4, Ok(())));
        let (count, done) = attempts(Repeat::Unsent, || said(Code::Unavailable)).await;
        assert_eq!(count, 1);
        assert!(matches!(&done, Err(error) if error.is_transient()), "{done:?}");
    }

    /// Duration and number of attempts of a request whose first `silent` attempts are never answered; the
    /// others answer after `delay`.
    async fn hedged(repeat: Repeat, silent: u32, delay: Duration) -> (bool, Duration, u32) {
        let (begin, count) = (Instant::now(), Cell::new(0));
        let done = attempt("test", Duration::from_secs(5), repeat, || {
            count.set(count.get() + 1);
            let is_silent = count.get() <= silent;
            async move {
                if is_silent {
                    std::future::pending::<()>().await;
                }
                tokio::time::sleep(delay).await;
                Ok(())
            }
        });
        let is_answered = done.await.is_ok();
        (is_answered, begin.elapsed(), count.get())
    }

    #[tokio::test(start_paused = true)]
    async fn another_server_is_asked_while_one_is_silent_if_that_does_no_harm() {
        let (is_answered, time, count) = hedged(Repeat::Always, 2, Duration::ZERO).await;
        assert!(is_answered && time < 4 * SILENCE_MIN, "{time:?}");
        assert_eq!(count, 3);
        let (is_answered, time, count) = hedged(Repeat::Unsent, 2, Duration::ZERO).await;
        assert!(!is_answered && count == 1, "{time:?} {count}");
    }

    /// The answer to the first attempt counts although others were started meanwhile.
    #[tokio::test(start_paused = true)]
    async fn a_late_answer_counts() {
        let delay = Duration::from_millis(1200);
        assert_eq!(hedged(Repeat::Always, 0, delay).await, (true, delay, 3));
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_that_will_not_change_is_final() {
        for code in [Code::InvalidArgument, Code::PermissionDenied, Code::NotFound, Code::OutOfRange] {
            assert_eq!(attempts(Repeat::Always, || said(code)).await.0, 1, "{code}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn the_time_of_all_attempts_is_bounded() {
        let deadline = Duration::from_secs(5);
        let begin = Instant::now();
        let refusing =
            attempt("test", deadline, Repeat::Unsent, || std::future::ready(Err::<(), _>(refused())));
        let error = refusing.await.unwrap_err();
        assert!(
            matches!(&error, StoreError::Unavailable { cause, .. } if cause.contains("refused")),
            "{error}"
        );
        assert!(begin.elapsed() <= deadline, "{:?}", begin.elapsed());

        let mute = attempt("test", deadline, Repeat::Always, std::future::pending::<Result<(), _>>);
        assert_eq!(mute.await, Err(StoreError::Deadline { what: "test", deadline }));
    }
}
