//! A failure as bytes: a list of links, so that no chain is as deep as its bytes say.

use super::{Failure, FailureKind, LINKS_READ_MAX, Origin, UserError};
use crate::Executed;
use serde::de::{self, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;

/// A failure apart from its cause, as bytes.
#[derive(Serialize)]
struct LinkRef<'a> {
    kind: FailureKind,
    message: &'a str,
    origin: Option<&'a Origin>,
    log_tail: &'a str,
    user: Option<&'a UserError>,
    executed: Option<Executed>,
    left_out: u32,
}

/// The same, read.
#[derive(Deserialize)]
struct Link {
    kind: FailureKind,
    message: String,
    origin: Option<Box<Origin>>,
    log_tail: String,
    user: Option<UserError>,
    executed: Option<Executed>,
    left_out: u32,
}

/// As a list of links, the outermost first.
impl Serialize for Failure {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let links = self.links().map(|link| LinkRef {
            kind: link.kind,
            message: &link.message,
            origin: link.origin.as_deref(),
            log_tail: &link.log_tail,
            user: link.user.as_ref(),
            executed: link.executed,
            left_out: link.left_out,
        });
        // The number is in front of the list in some encodings.
        let links: Vec<_> = links.collect();
        links.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Failure {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(LinksVisitor)
    }
}

struct LinksVisitor;

impl<'de> Visitor<'de> for LinksVisitor {
    type Value = Failure;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "1 to {LINKS_READ_MAX} failures, each the cause of the one before it")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Failure, A::Error> {
        let mut links = Vec::new();
        while let Some(link) = list.next_element::<Link>()? {
            if links.len() == LINKS_READ_MAX {
                return Err(de::Error::invalid_length(LINKS_READ_MAX + 1, &self));
            }
            links.push(link);
        }
        let failures = links.into_iter().map(Failure::from);
        Failure::chain(failures).ok_or_else(|| de::Error::invalid_length(0, &self))
    }
}

impl From<Link> for Failure {
    fn from(link: Link) -> Self {
        let Link { kind, message, origin, log_tail, user, executed, left_out } = link;
        Self { kind, message, origin, log_tail, user, executed, cause: None, left_out }
    }
}
