//! Subjects of certificates, and the DNS names that stand for them.
//!
//! | name | meaning |
//! |---|---|
//! | `m<machine>.<role>.tharsis` | every certificate: the machine and its role |
//! | `n<node>.peer.tharsis` | the certificate of a running node |
//! | `n0000000000000000.peer.tharsis` | the same: no node has this id. Scrapers expect it, who have one name for all nodes |
//! | `control.tharsis` | it serves the control store; the authority gives it to its own process only |

use std::fmt;
use std::str::FromStr;

/// The name that callers of a control store expect.
pub(crate) const CONTROL_NAME: &str = "control.tharsis";
/// The name that scrapers expect of each node. Its form is that of a node's name, which releases without it
/// read as well; no node has this id.
pub(crate) const ANY_MEMBER: &str = "n0000000000000000.peer.tharsis";

/// A machine of a cluster: a random number from its first join on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MachineId(pub u64);

/// Rights of a machine in the cluster; `tharsis_protos::rights` lists the calls of each role.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Role {
    /// Runs programs that submit work, each with a node without resources.
    Driver,
    /// Runs nodes.
    Node,
    /// Looks, and changes nothing.
    Observer,
    /// Looks, and removes nodes and jobs.
    Operator,
}

/// Whom a certificate is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Subject {
    /// The machine.
    pub machine: MachineId,
    /// Its role.
    pub role: Role,
    /// The running node that shows the certificate; none for a machine's own.
    pub node: Option<u64>,
    /// Whether it serves the control store.
    pub is_control: bool,
}

impl Role {
    /// All roles.
    pub const ALL: [Role; 4] = [Role::Driver, Role::Node, Role::Observer, Role::Operator];

    /// Whether machines of this role run nodes.
    #[must_use]
    pub fn has_nodes(self) -> bool {
        matches!(self, Role::Driver | Role::Node)
    }

    /// Its name, as in certificates and on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Role::Driver => "driver",
            Role::Node => "node",
            Role::Observer => "observer",
            Role::Operator => "operator",
        }
    }
}

impl FromStr for Role {
    type Err = String;

    fn from_str(text: &str) -> Result<Role, String> {
        let known = || Role::ALL.map(Role::name).join(", ");
        Role::ALL
            .into_iter()
            .find(|role| role.name() == text)
            .ok_or_else(|| format!("expected one of {}", known()))
    }
}

impl fmt::Display for MachineId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

impl FromStr for MachineId {
    type Err = String;

    fn from_str(text: &str) -> Result<MachineId, String> {
        number(text).map(MachineId).ok_or_else(|| "expected 16 hexadecimal digits".to_owned())
    }
}

impl Subject {
    /// The names of its certificate.
    pub(crate) fn names(self) -> Vec<String> {
        let mut names = vec![format!("m{}.{}.tharsis", self.machine, self.role.name())];
        // Whoever looks for a node finds the last of such names.
        names.extend(self.node.iter().flat_map(|node| [ANY_MEMBER.to_owned(), node_name(*node)]));
        names.extend(self.is_control.then(|| CONTROL_NAME.to_owned()));
        names
    }

    /// The subject that the names of a certificate stand for; none if they name no machine.
    pub(crate) fn from_names<'a>(names: impl Iterator<Item = &'a str>) -> Option<Subject> {
        let (mut named, mut node, mut is_control) = (None, None, false);
        for name in names {
            let mut parts = name.split('.');
            let (first, second) = (parts.next()?, parts.next()?);
            if name == CONTROL_NAME {
                is_control = true;
            } else if name == ANY_MEMBER {
                // It says nothing of the subject.
            } else if second == "peer" {
                node = Some(number(first.strip_prefix('n')?)?);
            } else {
                named = Some((MachineId(number(first.strip_prefix('m')?)?), second.parse().ok()?));
            }
        }
        named.map(|(machine, role)| Subject { machine, role, node, is_control })
    }
}

/// The name that callers of a node expect.
pub(crate) fn node_name(node: u64) -> String {
    format!("n{node:016x}.peer.tharsis")
}

/// A number of exactly 16 hexadecimal digits in lower case.
pub(crate) fn number(text: &str) -> Option<u64> {
    let is_hex = text.len() == 16 && text.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
    u64::from_str_radix(text, 16).ok().filter(|_| is_hex)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_subject_is_found_again_in_its_names() {
        for role in Role::ALL {
            for (node, is_control) in [(None, false), (Some(7), false), (Some(u64::MAX), true)] {
                let subject = Subject { machine: MachineId(0xabc), role, node, is_control };
                let names = subject.names();
                assert_eq!(Subject::from_names(names.iter().map(String::as_str)), Some(subject));
            }
        }
    }

    /// A release that does not know the common name takes the last name of a node for the node's.
    #[test]
    fn the_name_of_all_members_comes_before_the_own() {
        let subject = Subject { machine: MachineId(1), role: Role::Node, node: Some(7), is_control: true };
        let names = subject.names();
        let nodes: Vec<&String> = names.iter().filter(|name| name.contains(".peer.")).collect();
        assert_eq!(nodes, [ANY_MEMBER, "n0000000000000007.peer.tharsis"]);
        let without_node = Subject { node: None, ..subject };
        assert!(!without_node.names().iter().any(|name| name == ANY_MEMBER));
        assert_eq!(Subject::from_names([ANY_MEMBER].into_iter()), None);
    }

    #[test]
    fn names_of_others_are_no_subject() {
        for names in [&["localhost"][..], &["m12.node.tharsis"], &["n0000000000000007.peer.tharsis"], &[]] {
            assert_eq!(Subject::from_names(names.iter().copied()), None, "{names:?}");
        }
        assert_eq!(Subject::from_names(["m00000000000000AB.node.tharsis"].into_iter()), None);
        assert_eq!(Subject::from_names(["m00000000000000ab.king.tharsis"].into_iter()), None);
    }
}
