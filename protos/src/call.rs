//! Failures of a call between processes, on either side of it, without a type of the transport.

use crate::message::{BadMessage, Problem};
use crate::proof::{ProofError, Reason};
use std::time::Duration;
use tokio_rustls::rustls;
use tonic::{Code, Status};

/// Why a server did not do what it was asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Refusal {
    /// Kind of reason.
    pub code: RefusalCode,
    /// The reason, for people: what, which, limit, what to do.
    pub message: String,
}

/// Kinds of reasons for a refusal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RefusalCode {
    /// Something of that name is there already.
    AlreadyExists,
    /// It was not done in time; it may still happen.
    DeadlineExceeded,
    /// Not in this state, or not in this version of the protocol.
    FailedPrecondition,
    /// A defect of the server, or a code that we never send.
    Internal,
    /// A field of the message is not what it should be.
    InvalidArgument,
    /// There is no such thing.
    NotFound,
    /// The caller may not.
    PermissionDenied,
    /// Too large or too many.
    ResourceExhausted,
    /// The server has no such call.
    Unimplemented,
    /// Not now; the same call may succeed later.
    Unavailable,
    /// The caller did not prove who it is.
    Unauthenticated,
}

/// Why a call brought no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CallError {
    /// The server answered something that is not an answer to this call.
    #[error("{call}: bad answer of {address}: {cause}")]
    BadAnswer {
        /// The call.
        call: &'static str,
        /// The server.
        address: String,
        /// The field and what is wrong with it.
        cause: BadMessage,
    },
    /// There was no answer in time; the call may have been carried out.
    #[error("{call}: no answer of {address} within {} ms", deadline.as_millis())]
    Deadline {
        /// The call.
        call: &'static str,
        /// The server.
        address: String,
        /// The time for which the answer was waited for.
        deadline: Duration,
    },
    /// The server refused.
    #[error("{call}: {address} refused: {refusal}")]
    Refused {
        /// The call.
        call: &'static str,
        /// The server.
        address: String,
        /// Its reason.
        refusal: Refusal,
    },
    /// The server cannot be reached or does not speak this protocol.
    #[error("{call}: cannot reach {address}: {cause}")]
    Unreachable {
        /// The call.
        call: &'static str,
        /// The server.
        address: String,
        /// Why.
        cause: String,
    },
}

impl Refusal {
    /// A refusal with its code and what people read.
    pub fn new(code: RefusalCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }
}

impl CallError {
    /// Whether the same call may succeed a little later.
    #[must_use]
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Unreachable { .. } => true,
            Self::Refused { refusal, .. } => refusal.code == RefusalCode::Unavailable,
            Self::BadAnswer { .. } | Self::Deadline { .. } => false,
        }
    }

    /// The kind of the server's refusal, if it was one.
    #[must_use]
    pub fn refusal_code(&self) -> Option<RefusalCode> {
        match self {
            Self::Refused { refusal, .. } => Some(refusal.code),
            _ => None,
        }
    }

    pub(crate) fn from_status(call: &'static str, address: &str, status: &Status) -> Self {
        let address = address.to_owned();
        let cause = std::error::Error::source(status);
        if let Some((code, reason)) = cause.and_then(unproved) {
            return Self::Refused { call, address, refusal: Refusal::new(code, reason) };
        }
        if let Some(cause) = cause {
            return Self::Unreachable { call, address, cause: chain(cause) };
        }
        let refusal = Refusal::new(code_of(status.code()), status.message());
        Self::Refused { call, address, refusal }
    }
}

impl From<BadMessage> for Refusal {
    fn from(bad: BadMessage) -> Self {
        let code = match bad.problem {
            Problem::TooMany { .. } => RefusalCode::ResourceExhausted,
            _ => RefusalCode::InvalidArgument,
        };
        Self::new(code, bad.to_string())
    }
}

impl From<Refusal> for Status {
    fn from(refusal: Refusal) -> Self {
        let code = match refusal.code {
            RefusalCode::AlreadyExists => Code::AlreadyExists,
            RefusalCode::DeadlineExceeded => Code::DeadlineExceeded,
            RefusalCode::FailedPrecondition => Code::FailedPrecondition,
            RefusalCode::Internal => Code::Internal,
            RefusalCode::InvalidArgument => Code::InvalidArgument,
            RefusalCode::NotFound => Code::NotFound,
            RefusalCode::PermissionDenied => Code::PermissionDenied,
            RefusalCode::ResourceExhausted => Code::ResourceExhausted,
            RefusalCode::Unauthenticated => Code::Unauthenticated,
            RefusalCode::Unavailable => Code::Unavailable,
            RefusalCode::Unimplemented => Code::Unimplemented,
        };
        Status::new(code, refusal.message)
    }
}

/// An error with all its causes on one line.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text = format!("{text}: {cause_text}");
        }
        next = cause.source();
    }
    text
}

/// Whether a connection was not made because one side did not believe the other: that is a refusal, and
/// trying again changes nothing.
fn unproved(error: &(dyn std::error::Error + 'static)) -> Option<(RefusalCode, String)> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(proof) = error.downcast_ref::<ProofError>() {
            return Some((refusal_of(proof)?, proof.to_string()));
        }
        next = error.source();
    }
    None
}

/// The code of a refusal by either side; none where the connection failed for another reason.
fn refusal_of(proof: &ProofError) -> Option<RefusalCode> {
    match proof {
        ProofError::Refused(Reason::Version) | ProofError::Version { .. } => {
            Some(RefusalCode::FailedPrecondition)
        }
        ProofError::Refused(Reason::Revoked) => Some(RefusalCode::PermissionDenied),
        ProofError::Refused(Reason::NotYet) => Some(RefusalCode::Unavailable),
        ProofError::Refused(Reason::TooMany) => Some(RefusalCode::ResourceExhausted),
        ProofError::Refused(_) | ProofError::Unproved => Some(RefusalCode::Unauthenticated),
        ProofError::Identity(_) => Some(RefusalCode::Unauthenticated),
        // A certificate that is not believed: TLS 1.3 tells the caller of its own only with the first bytes.
        ProofError::Io(cause) | ProofError::Tls(cause) => {
            let is_tls = cause.get_ref().is_some_and(|cause| cause.is::<rustls::Error>());
            is_tls.then_some(RefusalCode::Unauthenticated)
        }
        ProofError::NotOurs | ProofError::Look | ProofError::Scrape(_) | ProofError::Timeout(_) => None,
    }
}

fn code_of(code: Code) -> RefusalCode {
    match code {
        Code::AlreadyExists => RefusalCode::AlreadyExists,
        Code::DeadlineExceeded | Code::Cancelled => RefusalCode::DeadlineExceeded,
        Code::FailedPrecondition | Code::Aborted => RefusalCode::FailedPrecondition,
        Code::InvalidArgument => RefusalCode::InvalidArgument,
        Code::NotFound => RefusalCode::NotFound,
        Code::OutOfRange | Code::ResourceExhausted => RefusalCode::ResourceExhausted,
        Code::PermissionDenied => RefusalCode::PermissionDenied,
        Code::Unauthenticated => RefusalCode::Unauthenticated,
        Code::Unavailable => RefusalCode::Unavailable,
        Code::Unimplemented => RefusalCode::Unimplemented,
        Code::Ok | Code::Unknown | Code::DataLoss | Code::Internal => RefusalCode::Internal,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CODES: [RefusalCode; 11] = [
        RefusalCode::AlreadyExists,
        RefusalCode::DeadlineExceeded,
        RefusalCode::FailedPrecondition,
        RefusalCode::Internal,
        RefusalCode::InvalidArgument,
        RefusalCode::NotFound,
        RefusalCode::PermissionDenied,
        RefusalCode::ResourceExhausted,
        RefusalCode::Unimplemented,
        RefusalCode::Unavailable,
        RefusalCode::Unauthenticated,
    ];

    #[test]
    fn every_refusal_survives_the_wire() {
        for code in CODES {
            let refusal = Refusal::new(code, "why");
            let error = CallError::from_status("ask", "host:1", &Status::from(refusal.clone()));
            assert_eq!(error, CallError::Refused { call: "ask", address: "host:1".to_owned(), refusal });
            assert_eq!(error.refusal_code(), Some(code));
        }
    }

    #[test]
    fn only_what_may_pass_is_tried_again() {
        let address = || "host:1".to_owned();
        let refused =
            |code| CallError::Refused { call: "ask", address: address(), refusal: Refusal::new(code, "") };
        for code in CODES {
            assert_eq!(refused(code).is_transient(), code == RefusalCode::Unavailable, "{code:?}");
        }
        let unreachable = CallError::Unreachable { call: "ask", address: address(), cause: String::new() };
        assert!(unreachable.is_transient());
        // The call may have been carried out: the caller decides whether it may be carried out twice.
        let deadline = CallError::Deadline { call: "ask", address: address(), deadline: Duration::ZERO };
        assert!(!deadline.is_transient());
    }

    #[test]
    fn codes_that_we_never_send_are_defects() {
        for code in [Code::Ok, Code::Unknown, Code::DataLoss] {
            assert_eq!(code_of(code), RefusalCode::Internal);
        }
        assert_eq!(code_of(Code::Aborted), RefusalCode::FailedPrecondition);
    }

    #[test]
    fn a_bad_field_is_a_refusal_by_its_kind() {
        let too_many = Refusal::from(BadMessage::too_many("nodes", 3, 2, "nodes"));
        assert_eq!(too_many.code, RefusalCode::ResourceExhausted);
        let missing = Refusal::from(BadMessage::missing("node"));
        assert_eq!(
            (missing.code, missing.message.as_str()),
            (RefusalCode::InvalidArgument, "field node: is missing")
        );
    }

    #[test]
    fn a_failed_proof_is_a_refusal_and_a_broken_connection_is_not() {
        let status = |proof: ProofError| Status::from_error(Box::new(proof));
        let of = |proof| CallError::from_status("ask", "host:1", &status(proof));
        assert_eq!(of(ProofError::Unproved).refusal_code(), Some(RefusalCode::Unauthenticated));
        let version = of(ProofError::Refused(Reason::Version));
        assert_eq!(version.refusal_code(), Some(RefusalCode::FailedPrecondition));
        assert!(!version.is_transient());
        assert!(matches!(of(ProofError::Timeout(Duration::from_secs(5))), CallError::Unreachable { .. }));
    }

    #[test]
    fn a_chain_tells_each_cause_once() {
        #[derive(Debug, thiserror::Error)]
        #[error("outer: {0}")]
        struct Outer(#[source] Inner);
        #[derive(Debug, thiserror::Error)]
        #[error("inner")]
        struct Inner(#[source] std::fmt::Error);
        let text = chain(&Outer(Inner(std::fmt::Error)));
        assert_eq!(text.matches("inner").count(), 1, "{text}");
        assert!(text.ends_with(&std::fmt::Error.to_string()), "{text}");
    }
}
