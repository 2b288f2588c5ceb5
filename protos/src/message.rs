//! Reading fields of messages: every value that arrives is checked here before anyone sees it.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use tharsis_types::check::check_name;
use tharsis_types::{CodeUnitId, JobId, NodeId, Resources, limits};

/// Longest name of a host.
const HOST_NAME_BYTES_MAX: usize = 253;
/// Longest part of one, between dots.
const HOST_LABEL_BYTES_MAX: usize = 63;

/// A message with a field that is missing or not what it should be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("field {field}: {problem}")]
pub struct BadMessage {
    /// The field, with the messages around it: `node.listen_address`.
    pub field: String,
    /// Fault of the field.
    pub problem: Problem,
}

/// Fault of a field.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// Not what it should be, for this reason.
    #[error("{0}")]
    Invalid(String),
    /// Must be there.
    #[error("is missing")]
    Missing,
    /// Has a fixed length, and this is another.
    #[error("has {found_bytes} bytes and must have {wanted_bytes}")]
    Length {
        /// Bytes that arrived.
        found_bytes: usize,
        /// Bytes of such a value.
        wanted_bytes: usize,
    },
    /// More entries or bytes than the limit.
    #[error("has {count} {unit}, the limit is {limit}")]
    TooMany {
        /// Number found.
        count: usize,
        /// Largest number allowed.
        limit: usize,
        /// Of what.
        unit: &'static str,
    },
}

impl BadMessage {
    /// A field that is not what it should be.
    pub fn invalid(field: impl Into<String>, reason: impl ToString) -> Self {
        Self { field: field.into(), problem: Problem::Invalid(reason.to_string()) }
    }

    /// A field that must be there.
    pub fn missing(field: impl Into<String>) -> Self {
        Self { field: field.into(), problem: Problem::Missing }
    }

    /// A field with more entries or bytes than the limit.
    pub fn too_many(field: impl Into<String>, count: usize, limit: usize, unit: &'static str) -> Self {
        Self { field: field.into(), problem: Problem::TooMany { count, limit, unit } }
    }

    /// The same, inside the message `outer`.
    #[must_use]
    pub fn within(self, outer: &str) -> Self {
        Self { field: format!("{outer}.{}", self.field), ..self }
    }
}

/// A value that must be there.
///
/// # Errors
/// [`BadMessage`] that names the field.
pub fn required<T>(field: &str, value: Option<T>) -> Result<T, BadMessage> {
    value.ok_or_else(|| BadMessage::missing(field))
}

/// Id of a node, never 0.
///
/// # Errors
/// [`BadMessage`] that names the field.
pub fn node_id(field: &str, id: u64) -> Result<NodeId, BadMessage> {
    if id == 0 { Err(BadMessage::missing(field)) } else { Ok(NodeId(id)) }
}

/// Id of a job, never 0.
///
/// # Errors
/// [`BadMessage`] that names the field.
pub fn job_id(field: &str, id: u32) -> Result<JobId, BadMessage> {
    if id == 0 { Err(BadMessage::missing(field)) } else { Ok(JobId(id)) }
}

/// An id or hash of exactly `N` bytes.
///
/// # Errors
/// [`BadMessage`] that names the field.
pub fn fixed<const N: usize>(field: &str, bytes: &[u8]) -> Result<[u8; N], BadMessage> {
    bytes.try_into().map_err(|_| BadMessage {
        field: field.to_owned(),
        problem: Problem::Length { found_bytes: bytes.len(), wanted_bytes: N },
    })
}

/// A code unit; no bytes at all mean none.
///
/// # Errors
/// [`BadMessage`] that names the field.
pub fn code_unit(field: &str, bytes: &[u8]) -> Result<Option<CodeUnitId>, BadMessage> {
    if bytes.is_empty() { Ok(None) } else { Ok(Some(CodeUnitId(fixed(field, bytes)?))) }
}

/// Text of at most `limit` bytes.
///
/// # Errors
/// [`BadMessage`] that names the field.
pub fn text(field: &str, value: String, limit: usize) -> Result<String, BadMessage> {
    if value.len() <= limit {
        Ok(value)
    } else {
        Err(BadMessage::too_many(field, value.len(), limit, "bytes"))
    }
}

/// A name: text of at most [`limits::NAME_BYTES_MAX`] bytes without control characters.
///
/// # Errors
/// [`BadMessage`] that names the field.
pub fn name(field: &str, value: String) -> Result<String, BadMessage> {
    let value = text(field, value, limits::NAME_BYTES_MAX)?;
    check_name(&value).map_err(|bad| BadMessage::invalid(field, bad.fault))?;
    Ok(value)
}

/// Address at which a node says that it is reached: an IP address that machines have, or a host name, which
/// is resolved at each connection.
///
/// # Errors
/// [`BadMessage`] that names the field.
pub fn node_address(field: &str, value: String) -> Result<String, BadMessage> {
    let value = address(field, value)?;
    let is_good = match value.parse::<SocketAddr>() {
        Ok(address) => is_of_machine(address.ip()),
        Err(_) => value.rsplit_once(':').is_some_and(|(host, _)| is_host_name(host)),
    };
    if !is_good {
        return Err(BadMessage::invalid(
            field,
            format!("{value:?} is no address at which a node is reached"),
        ));
    }
    Ok(value)
}

/// Whether an address can be that of a machine: no wildcard, group or link-local address, where metadata
/// services of clouds are.
#[must_use]
pub fn is_of_machine(address: IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(ip) => {
            !(ip.is_unspecified() || ip.is_multicast() || ip.is_broadcast() || ip.is_link_local())
        }
        IpAddr::V6(ip) => !(ip.is_unspecified() || ip.is_multicast() || ip.is_unicast_link_local()),
    }
}

/// Whether a text is the name of a host. A last part that begins with a digit makes it none: resolvers read
/// `127.1` and `0x7f.1` as addresses.
#[must_use]
pub fn is_host_name(text: &str) -> bool {
    let is_label = |label: &str| {
        let is_inside = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
        (1..=HOST_LABEL_BYTES_MAX).contains(&label.len())
            && label.bytes().all(is_inside)
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    let name = text.strip_suffix('.').unwrap_or(text);
    let last = name.rsplit('.').next().unwrap_or_default();
    name.len() <= HOST_NAME_BYTES_MAX
        && name.split('.').all(is_label)
        && !last.starts_with(|first: char| first.is_ascii_digit())
}

/// An address `host:port` with a port that is not 0.
///
/// # Errors
/// [`BadMessage`] that names the field.
pub fn address(field: &str, value: String) -> Result<String, BadMessage> {
    let value = name(field, value)?;
    let port =
        value.rsplit_once(':').filter(|(host, _)| !host.is_empty()).map(|(_, port)| port.parse::<u16>());
    match port {
        Some(Ok(port)) if port != 0 => Ok(value),
        _ => Err(BadMessage::invalid(field, format!("{value:?} is not host:port"))),
    }
}

/// Amounts in units and bytes; names and amounts are checked as if a user had given them.
///
/// # Errors
/// [`BadMessage`] that names the field.
pub fn amounts(
    field: &str,
    cpu: u64,
    gpu: u64,
    memory: u64,
    custom: BTreeMap<String, u64>,
) -> Result<Resources, BadMessage> {
    let (count, limit) = (custom.len(), limits::RESOURCE_NAMES_MAX);
    if limit < count {
        return Err(BadMessage::too_many(field, count, limit, "custom resources"));
    }
    let set = Resources { cpu, gpu, memory, custom };
    set.check().map_err(|bad| BadMessage::invalid(field, bad))?;
    Ok(set)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bad_field_is_named_with_its_numbers() {
        let bad = fixed::<16>("task", &[0; 15]).unwrap_err().within("request");
        assert_eq!(bad.to_string(), "field request.task: has 15 bytes and must have 16");
        let bad = address("listen_address", "localhost".to_owned()).unwrap_err();
        assert_eq!(bad.to_string(), "field listen_address: \"localhost\" is not host:port");
        assert_eq!(node_id("node_id", 0), Err(BadMessage::missing("node_id")));
        assert!(name("name", "a\nb".to_owned()).is_err());
    }

    #[test]
    fn nodes_are_not_reached_at_wildcards_groups_or_links() {
        let names = ["localhost:1", "head-0.tharsis.default.svc.cluster.local.:7600", "a_b:1"];
        for good in ["127.0.0.1:1", "10.0.0.1:65535", "[::1]:80", "[fd00::1]:80"].into_iter().chain(names) {
            assert!(node_address("listen", good.to_owned()).is_ok(), "{good}");
        }
        for bad in [
            "169.254.169.254:80",
            "0.0.0.0:1",
            "[::]:1",
            "224.0.0.1:1",
            "[fe80::1]:1",
            "127.0.0.1:0",
            "x",
            // Resolvers read these as addresses.
            "127.1:1",
            "2130706433:1",
            "0x7f.0x1:1",
            "-a:1",
            "a-.b:1",
            "a..b:1",
            "a b:1",
            "ä:1",
            &format!("{}:1", "a".repeat(64)),
        ] {
            assert!(node_address("listen", bad.to_owned()).is_err(), "{bad}");
        }
    }

    #[test]
    fn amounts_from_outside_are_bounded() {
        let one = |name: &str, units| BTreeMap::from([(name.to_owned(), units)]);
        assert!(amounts("resources", u64::MAX, 0, 0, BTreeMap::new()).is_err());
        assert!(amounts("resources", 1, 0, 0, one("a\nb", 1)).is_err());
        assert!(amounts("resources", 1, 0, 0, one("tpu", u64::MAX)).is_err());
        assert!(amounts("resources", 1, 0, u64::MAX, one("tpu", 1)).is_err());
        assert!(amounts("resources", 1, 0, limits::RESOURCE_MEMORY_MAX, one("tpu", 1)).is_ok());
        let many = (0..10_000).map(|n| (format!("r{n}"), 1)).collect();
        let bad = amounts("resources", 1, 0, 0, many).unwrap_err();
        assert_eq!(bad.problem, Problem::TooMany { count: 10_000, limit: 256, unit: "custom resources" });
    }

    #[test]
    fn ids_of_nodes_and_jobs_are_never_zero() {
        assert_eq!((node_id("node", 7), job_id("job", 7)), (Ok(NodeId(7)), Ok(JobId(7))));
        assert_eq!(job_id("job", 0), Err(BadMessage::missing("job")));
    }

    #[test]
    fn a_required_field_is_there_or_named() {
        assert_eq!(required("load", Some(1)), Ok(1));
        assert_eq!(required::<u8>("load", None).unwrap_err().to_string(), "field load: is missing");
    }

    #[test]
    fn no_bytes_are_no_code_unit() {
        assert_eq!(code_unit("unit", &[]), Ok(None));
        assert_eq!(code_unit("unit", &[3; 32]), Ok(Some(CodeUnitId([3; 32]))));
        assert!(code_unit("unit", &[3; 33]).is_err());
    }

    #[test]
    fn text_is_measured_in_bytes() {
        assert_eq!(text("text", "é".to_owned(), 2), Ok("é".to_owned()));
        assert_eq!(text("text", "é".to_owned(), 1), Err(BadMessage::too_many("text", 2, 1, "bytes")));
    }

    #[test]
    fn a_name_is_bounded_and_plain() {
        assert!(name("name", "x".repeat(limits::NAME_BYTES_MAX)).is_ok());
        assert!(name("name", "x".repeat(limits::NAME_BYTES_MAX + 1)).is_err());
        for bad in ["\0", "\x1b[31m", "a\u{85}b"] {
            assert!(name("name", bad.to_owned()).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn an_address_has_a_host_and_a_port() {
        for good in ["host:1", "[::1]:65535", "10.0.0.1:80"] {
            assert_eq!(address("address", good.to_owned()), Ok(good.to_owned()));
        }
        for bad in [":80", "host", "host:0", "host:65536", "host:-1", "host: 80", ""] {
            assert!(address("address", bad.to_owned()).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn a_field_within_a_message_within_a_message_has_a_path() {
        let bad = BadMessage::invalid("c", "is odd").within("b").within("a");
        assert_eq!(bad.to_string(), "field a.b.c: is odd");
    }
}
