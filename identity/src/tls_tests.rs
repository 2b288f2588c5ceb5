//! Handshakes in memory: who is believed, and whom the other side sees.

use super::*;
use crate::{Authority, NewKey, Role};
use rustls::{ClientConnection, ServerConnection};
use std::io;
use std::time::Duration;

const HOUR: Duration = Duration::from_secs(3600);

struct Cluster {
    _folder: tempfile::TempDir,
    authority: Authority,
}

fn cluster() -> Cluster {
    let folder = tempfile::tempdir().unwrap();
    let authority = Authority::load_or_make(folder.path()).unwrap();
    Cluster { _folder: folder, authority }
}

impl Cluster {
    fn head(&self) -> Tls {
        Tls::new(&self.authority.own(Role::Node, Some(1), true, HOUR).unwrap()).unwrap()
    }

    /// A node of another machine.
    fn member(&self, node: u64, lifetime: Duration) -> Tls {
        let token = self.authority.make_token(Role::Node, HOUR).unwrap();
        let key = NewKey::generate().unwrap();
        let machine = self.authority.admit(&token, &key.public(), "host").unwrap();
        let machine = key.with(machine, self.authority.certificate().to_vec());
        let subject = Tls::new(&machine).unwrap().subject().unwrap();
        let key = NewKey::generate().unwrap();
        let certificate = self.authority.renew(subject, node, &key.public(), lifetime).unwrap();
        Tls::new(&key.with(certificate, self.authority.certificate().to_vec())).unwrap()
    }
}

/// The subjects that the sides see: the server as the client sees it, and the other way round.
type Met = (Option<Subject>, Option<Subject>);

fn meet(client: Arc<ClientConfig>, server: &Tls, called: Called) -> io::Result<Met> {
    let mut client =
        ClientConnection::new(client, called.server_name().unwrap()).map_err(io::Error::other)?;
    let mut server = ServerConnection::new(server.server()).map_err(io::Error::other)?;
    while client.is_handshaking() || server.is_handshaking() {
        let (mut there, mut back) = (Vec::new(), Vec::new());
        client.write_tls(&mut there)?;
        server.read_tls(&mut there.as_slice())?;
        server.process_new_packets().map_err(io::Error::other)?;
        server.write_tls(&mut back)?;
        client.read_tls(&mut back.as_slice())?;
        client.process_new_packets().map_err(io::Error::other)?;
    }
    assert_eq!(proof_key(&client).unwrap(), proof_key(&server).unwrap());
    Ok((subject_of(client.peer_certificates()), subject_of(server.peer_certificates())))
}

#[test]
fn members_see_who_the_other_is() {
    let cluster = cluster();
    let (head, member) = (cluster.head(), cluster.member(7, HOUR));
    let (seen_head, seen_member) = meet(member.client(), &head, Called::Control).unwrap();
    assert_eq!((seen_head, seen_member), (head.subject(), member.subject()));
    assert!(seen_head.unwrap().is_control);
    assert_eq!(seen_member.unwrap().node, Some(7));
    meet(head.client(), &member, Called::Node(7)).unwrap();
}

#[test]
fn a_node_is_no_other_node_and_no_control_store() {
    let cluster = cluster();
    let (head, member) = (cluster.head(), cluster.member(7, HOUR));
    for called in [Called::Node(8), Called::Control] {
        let refused = meet(head.client(), &member, called).unwrap_err().to_string();
        assert!(refused.contains("certificate"), "{refused}");
    }
}

#[test]
fn members_of_another_cluster_are_strangers_on_either_side() {
    let (ours, theirs) = (cluster(), cluster());
    assert!(meet(theirs.member(7, HOUR).client(), &ours.head(), Called::Control).is_err());
    assert!(meet(ours.member(7, HOUR).client(), &theirs.head(), Called::Control).is_err());
}

#[test]
fn an_expired_certificate_admits_nobody() {
    let cluster = cluster();
    let member = cluster.member(7, Duration::ZERO);
    std::thread::sleep(Duration::from_millis(1100));
    let refused = meet(member.client(), &cluster.head(), Called::Control).unwrap_err().to_string();
    assert!(refused.to_lowercase().contains("expired"), "{refused}");
}

#[test]
fn whoever_joins_believes_the_authority_of_its_token_only() {
    let (ours, theirs) = (cluster(), cluster());
    let (seen, shown) = meet(pinned(ours.authority.hash()).unwrap(), &ours.head(), Called::Control).unwrap();
    assert!(seen.is_some() && shown.is_none());
    assert!(meet(pinned(theirs.authority.hash()).unwrap(), &ours.head(), Called::Control).is_err());
    // A member shows the authority's certificate as well, and is no control store for that.
    let member = ours.member(7, HOUR);
    assert!(meet(pinned(ours.authority.hash()).unwrap(), &member, Called::Control).is_err());
}

#[test]
fn a_replaced_certificate_is_shown_by_all_clones() {
    let cluster = cluster();
    let head = cluster.head();
    let clone = head.clone();
    head.replace(&cluster.authority.own(Role::Node, Some(9), true, HOUR).unwrap()).unwrap();
    assert_eq!(clone.subject().unwrap().node, Some(9));
    let (seen, _) = meet(cluster.member(7, HOUR).client(), &clone, Called::Node(9)).unwrap();
    assert_eq!(seen.unwrap().node, Some(9));
    let stranger = self::cluster().authority.own(Role::Node, Some(9), true, HOUR).unwrap();
    assert!(head.replace(&stranger).is_err());
}
