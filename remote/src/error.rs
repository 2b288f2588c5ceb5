//! The error of this crate: a failure that can be cloned, shared and asked for its cause.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::sync::Arc;
use tharsis_types::{Executed, Failure, FailureKind};

/// Reason of a missing value or a failed operation.
///
/// It prints what happened, where, why and what to do next; `Debug` prints the same, so that a `main` that
/// returns it is readable.
#[derive(Clone, PartialEq, Eq)]
pub struct Error(Arc<Failure>);

/// Results of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// An error of a kind, with the facts.
    #[must_use]
    pub fn new(kind: FailureKind, message: impl Into<String>) -> Self {
        Self(Arc::new(Failure::new(kind, message)))
    }

    /// Kind of error, for decisions of programs.
    #[must_use]
    pub fn kind(&self) -> FailureKind {
        self.0.kind
    }

    /// All facts about the error.
    #[must_use]
    pub fn failure(&self) -> &Failure {
        &self.0
    }

    /// Whether the method ran, for the failure of a call of an actor.
    #[must_use]
    pub fn executed(&self) -> Option<Executed> {
        self.0.executed
    }

    /// The error value of the user's function that caused this, if it is of type `E`.
    ///
    /// It is taken from the end of the chain of causes, so an error keeps its type through any number of
    /// tasks that failed because of it.
    #[must_use]
    pub fn downcast<E: DeserializeOwned>(&self) -> Option<E> {
        let user = self.0.root().user.as_ref()?;
        if user.type_name == std::any::type_name::<E>() {
            postcard::from_bytes(&user.payload).ok()
        } else {
            None
        }
    }

    pub(crate) fn shared(failure: Arc<Failure>) -> Self {
        Self(failure)
    }

    pub(crate) fn into_shared(self) -> Arc<Failure> {
        self.0
    }

    pub(crate) fn argument(message: impl Into<String>) -> Self {
        Self::new(FailureKind::InvalidArgument, message)
    }

    pub(crate) fn corrupt(message: impl Into<String>) -> Self {
        Self::new(FailureKind::DataCorrupt, message)
    }

    pub(crate) fn internal(message: impl Into<String>) -> Self {
        Self::new(FailureKind::Internal, message)
    }

    pub(crate) fn not_started() -> Self {
        Self::new(
            FailureKind::Shutdown,
            "no runtime is active: call `tharsis::init()` and keep what it returns",
        )
    }
}

/// Conversion of all types that convert to a failure: a refused resource, an error of tensors.
impl<E: Into<Failure>> From<E> for Error {
    fn from(failure: E) -> Self {
        Self(Arc::new(failure.into()))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.0.behind().map(|cause| cause as _)
    }
}

impl Serialize for Error {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.as_ref().serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Error {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Failure::deserialize(deserializer).map(Self::from)
    }
}

/// Decodes a failure that the node sent.
pub(crate) fn decode_failure(bytes: &[u8]) -> Failure {
    postcard::from_bytes(bytes).unwrap_or_else(|error| {
        Failure::new(
            FailureKind::DataCorrupt,
            format!("a failure of {} bytes does not decode: {error}", bytes.len()),
        )
    })
}

/// Encodes a failure for the node.
pub(crate) fn encode_failure(failure: &Failure) -> Vec<u8> {
    postcard::to_allocvec(failure).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use tharsis_types::failure::UserError;

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Lost {
        shard: u32,
    }

    #[test]
    fn a_user_error_keeps_its_type_through_the_chain() {
        let mut root = Failure::new(FailureKind::UserError, "shard 7 is lost");
        root.user = Some(UserError {
            type_name: std::any::type_name::<Lost>().to_owned(),
            payload: postcard::to_allocvec(&Lost { shard: 7 }).unwrap(),
        });
        let error = Error::from(Failure::new(FailureKind::DependencyFailed, "argument 0").because(root));
        assert_eq!(error.downcast::<Lost>(), Some(Lost { shard: 7 }));
        assert_eq!(error.downcast::<u32>(), None);
        let copy = decode_failure(&encode_failure(error.failure()));
        assert_eq!(&copy, error.failure());
        assert_eq!(decode_failure(b"\xff\xff").kind, FailureKind::DataCorrupt);
    }
}
