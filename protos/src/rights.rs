//! Rights: the calls that each role may make.
//!
//! | calls | node | driver | operator | observer |
//! |---|---|---|---|---|
//! | `ClusterInfo`, `ListNodes`, `WatchNodes`, `ListJobs` | x | x | x | x |
//! | `GetProgram`, `GetCodeUnit`, `KvGet`, `KvList` | x | x | x | x |
//! | `RegisterNode`, `KeepAlive`, `RegisterJob`, `PutCodeUnit`, `PutProgram`, `Link` | itself | itself | | |
//! | `SuspectNode`, `KvPut`, `KvDelete` | x | x | | |
//! | `FinishJob` | its own | its own | x | |
//! | `UnregisterNode` | itself | itself | x | |
//! | `Drain` | | | x | |
//! | `Logs`, `Runs`, `JobOutput` | | | x | x |
//! | `SubmitJob` | x | x | | |
//! | `StopJob` | x | x | x | |
//! | `GET /metrics` | x | x | x | x |
//!
//! The table in code is [`RIGHTS`]; a call that is not in it is nobody's. What a node says of a node, it says
//! of itself only ([`Who::check_speaks_for`]). The node of a driver has no resources: nobody else's work runs
//! there. Without certificates whoever knows the cluster's secret may call everything; a caller that nothing
//! is known about may call nothing.

use crate::caller::{Caller, Who};
use crate::proof::Reason;
use crate::revoked::Revoked;
use http::Extensions;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tharsis_identity::{Role, Subject};
use tharsis_types::{NodeId, Resources};
use tonic::{Code, Status};

/// The other end of a connection, for the services of a port.
#[derive(Clone, Debug)]
pub struct Admitted {
    /// The caller, as its proof and its certificate say.
    pub caller: Caller,
    /// The machines that were shut out.
    pub revoked: Revoked,
    /// Counts of the port.
    pub counts: Arc<PortCounts>,
}

/// Counts of what a port refused.
#[derive(Debug, Default)]
pub struct PortCounts {
    /// Connections that did not prove that they are of the cluster.
    pub connections_refused: AtomicU64,
    /// Calls that are not for the role of their caller.
    pub calls_refused: AtomicU64,
}

const EVERYBODY: &[Role] = &[Role::Driver, Role::Node, Role::Observer, Role::Operator];

/// Roles of machines that run nodes.
const NODES: &[Role] = &[Role::Driver, Role::Node];

/// The roles that may make each call, by the last part of its path.
pub const RIGHTS: [(&str, &[Role]); 26] = [
    ("ClusterInfo", EVERYBODY),
    ("Drain", &[Role::Operator]),
    ("FinishJob", &[Role::Driver, Role::Node, Role::Operator]),
    ("GET /metrics", EVERYBODY),
    ("GetCodeUnit", EVERYBODY),
    ("GetProgram", EVERYBODY),
    ("JobOutput", &[Role::Observer, Role::Operator]),
    ("KeepAlive", NODES),
    ("KvDelete", NODES),
    ("KvGet", EVERYBODY),
    ("KvList", EVERYBODY),
    ("KvPut", NODES),
    ("Link", NODES),
    ("ListJobs", EVERYBODY),
    ("ListNodes", EVERYBODY),
    ("Logs", &[Role::Observer, Role::Operator]),
    ("PutCodeUnit", NODES),
    ("PutProgram", NODES),
    ("RegisterJob", NODES),
    ("RegisterNode", NODES),
    ("Runs", &[Role::Observer, Role::Operator]),
    ("StopJob", &[Role::Driver, Role::Node, Role::Operator]),
    ("SubmitJob", NODES),
    ("SuspectNode", NODES),
    ("UnregisterNode", &[Role::Driver, Role::Node, Role::Operator]),
    ("WatchNodes", EVERYBODY),
];

/// Refuses a call that is not of the caller's role, or of a machine that was revoked.
pub(crate) fn check_call(extensions: &Extensions, path: &str) -> Result<(), Status> {
    let Some(admitted) = admitted(extensions) else { return Err(unknown()) };
    let call = path.rsplit('/').next().unwrap_or_default();
    check(call, admitted).inspect_err(|_| {
        admitted.counts.calls_refused.fetch_add(1, Ordering::Relaxed);
    })
}

/// Refuses a scrape by a role that may not look, or a machine that was revoked.
pub(crate) fn check_scrape(admitted: &Admitted) -> Result<(), Status> {
    check("GET /metrics", admitted)
}

fn check(call: &str, admitted: &Admitted) -> Result<(), Status> {
    let denied = |why: String| Err(Status::permission_denied(why));
    let subject = match admitted.caller.who {
        Who::Certified(subject) => subject,
        Who::Stranger => return denied(format!("{call} is not for callers without a certificate")),
        Who::Trusted { .. } => return Ok(()),
    };
    match admitted.revoked.check(subject.machine) {
        Ok(()) => {}
        Err(Reason::NotYet) => return Err(Status::unavailable(Reason::NotYet.to_string())),
        Err(_) => return denied(format!("machine {} was revoked", subject.machine)),
    }
    let rights = RIGHTS.iter().find(|(name, _)| *name == call);
    if rights.is_some_and(|(_, roles)| roles.contains(&subject.role)) {
        return Ok(());
    }
    denied(not_for(call, subject.role))
}

fn not_for(call: &str, role: Role) -> String {
    format!("{call} is not for the role {}", role.name())
}

/// Whether a node does not know a call: it refuses it to every role, also to those that may make it here.
pub(crate) fn is_unknown(call: &str, refused: &Status) -> bool {
    let row = RIGHTS.iter().find(|(name, _)| *name == call);
    let says = |role: &Role| refused.message() == not_for(call, *role);
    refused.code() == Code::PermissionDenied && row.is_some_and(|(_, roles)| roles.iter().any(says))
}

/// Refuses what is said in the name of a node by another caller.
pub(crate) fn check_node(extensions: &tonic::Extensions, node: NodeId) -> Result<(), Status> {
    who(extensions)?.check_speaks_for(node).map_err(Status::permission_denied)
}

/// Refuses the end of a node by another one. Operators end any.
pub(crate) fn check_removal(extensions: &tonic::Extensions, node: NodeId) -> Result<(), Status> {
    match who(extensions)? {
        Who::Certified(Subject { role: Role::Operator, .. }) => Ok(()),
        _ => check_node(extensions, node),
    }
}

/// Refuses resources of a driver's node.
pub(crate) fn check_resources(extensions: &tonic::Extensions, resources: &Resources) -> Result<(), Status> {
    match who(extensions)? {
        Who::Certified(subject) if subject.role == Role::Driver && *resources != Resources::default() => {
            Err(Status::permission_denied("a machine with the role driver runs nodes without resources only"))
        }
        _ => Ok(()),
    }
}

/// Refuses a node without a certificate that says it is reached elsewhere than on this machine.
pub(crate) fn check_address(extensions: &tonic::Extensions, address: &str) -> Result<(), Status> {
    let is_loopback = address.parse::<SocketAddr>().is_ok_and(|address| address.ip().is_loopback());
    if matches!(who(extensions)?, Who::Certified(_)) || is_loopback {
        return Ok(());
    }
    let reason = format!("field node.listen_address: {address:?} is not an address of this machine");
    Err(Status::invalid_argument(format!("{reason}: without certificates nodes listen on loopback only")))
}

/// The caller of a request.
pub(crate) fn who(extensions: &tonic::Extensions) -> Result<Who, Status> {
    let admitted = extensions.get::<Option<Admitted>>().and_then(Option::as_ref);
    admitted.map(|admitted| admitted.caller.who).ok_or_else(unknown)
}

/// The refusal of a request that came over a connection that no gate let in.
fn unknown() -> Status {
    Status::unauthenticated("nothing is known about the caller")
}

fn admitted(extensions: &Extensions) -> Option<&Admitted> {
    extensions.get::<Option<Admitted>>().and_then(Option::as_ref)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proof::Purpose;
    use tharsis_identity::MachineId;

    fn calls_of(file: &str) -> Vec<String> {
        let lines = file.lines().filter_map(|line| line.trim().strip_prefix("rpc "));
        lines.filter_map(|line| line.split('(').next()).map(str::to_owned).collect()
    }

    fn admitted(role: Role) -> Option<Admitted> {
        let subject = Subject { machine: MachineId(1), role, node: Some(1), is_control: false };
        admitted_as(Who::Certified(subject))
    }

    fn admitted_as(who: Who) -> Option<Admitted> {
        let caller = Caller { purpose: Purpose::Calls, who };
        Some(Admitted { caller, revoked: Revoked::nobody(), counts: Arc::default() })
    }

    fn extensions(role: Role) -> Extensions {
        let mut extensions = Extensions::new();
        extensions.insert(admitted(role));
        extensions
    }

    #[test]
    fn every_call_has_its_row() {
        let mut calls = calls_of(include_str!("../proto/control.proto"));
        calls.extend(calls_of(include_str!("../proto/peer.proto")));
        calls.push("GET /metrics".to_owned());
        calls.sort_unstable();
        let rows: Vec<String> = RIGHTS.iter().map(|(name, _)| (*name).to_owned()).collect();
        assert_eq!(calls, rows);
    }

    #[test]
    fn a_call_without_a_row_is_nobodys() {
        for role in Role::ALL {
            let refused = check_call(&extensions(role), "/tharsis.control.v1.Control/Shutdown").unwrap_err();
            assert_eq!(refused.code(), tonic::Code::PermissionDenied);
        }
    }

    /// In the words of releases before this call, and of all others.
    #[test]
    fn a_refusal_of_a_call_to_a_role_that_may_make_it_is_that_of_a_node_that_does_not_know_it() {
        for role in Role::ALL {
            let words = format!("Runs is not for the role {}", role.name());
            let refused = Status::permission_denied(words.as_str());
            let may = check_call(&extensions(role), "/tharsis.peer.v1.Peer/Runs");
            assert_eq!(is_unknown("Runs", &refused), may.is_ok(), "{words}");
            assert!(may.err().is_none_or(|refused| refused.message() == words));
            assert!(!is_unknown("Runs", &Status::unavailable(words.as_str())));
            assert!(!is_unknown("Logs", &refused) && !is_unknown("Walks", &refused));
        }
        assert!(!is_unknown("Runs", &Status::permission_denied("machine 7 was revoked")));
    }

    #[test]
    fn a_node_without_a_certificate_listens_on_this_machine() {
        let reached = |address: &str, extensions: &tonic::Extensions| check_address(extensions, address);
        let mut secret = tonic::Extensions::new();
        secret.insert(admitted_as(Who::Trusted { says: Some(NodeId(1)) }));
        reached("127.0.0.1:80", &secret).unwrap();
        reached("[::1]:80", &secret).unwrap();
        for elsewhere in ["10.0.0.1:80", "169.254.169.254:80", "host:80", ""] {
            let refused = reached(elsewhere, &secret).unwrap_err();
            assert!(refused.message().contains("listen_address"), "{refused}");
        }
        let mut certified = tonic::Extensions::new();
        certified.insert(admitted(Role::Node));
        reached("10.0.0.1:80", &certified).unwrap();
    }

    #[test]
    fn whoever_knows_the_secret_may_call_everything_and_an_unknown_caller_nothing() {
        let call = "/tharsis.control.v1.Control/KvPut";
        let mut extensions = Extensions::new();
        let refused = check_call(&extensions, call).unwrap_err();
        assert_eq!(refused.code(), tonic::Code::Unauthenticated);
        let refused = check_node(&tonic::Extensions::new(), NodeId(1)).unwrap_err();
        assert_eq!(refused.code(), tonic::Code::Unauthenticated);
        extensions.insert(admitted_as(Who::Trusted { says: None }));
        check_call(&extensions, call).unwrap();
        extensions.insert(admitted_as(Who::Stranger));
        assert_eq!(check_call(&extensions, call).unwrap_err().code(), tonic::Code::PermissionDenied);
    }
}
