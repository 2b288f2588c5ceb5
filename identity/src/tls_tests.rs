//! Handshakes in memory: who is believed, and whom the other side sees.

use super::*;
use crate::authority::tests::CHANGES;
use crate::{Authority, NewKey, Role};
use rustls::time_provider::TimeProvider;
use rustls::{ClientConnection, ServerConnection};
use std::io;
use std::time::{Duration, SystemTime};

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
        let machine = key.with(machine, self.authority.anchors().unwrap());
        let subject = Tls::new(&machine).unwrap().subject().unwrap();
        let key = NewKey::generate().unwrap();
        let certificate = self.authority.renew(subject, node, &key.public(), lifetime).unwrap();
        Tls::new(&key.with(certificate, self.authority.anchors().unwrap())).unwrap()
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
    let (seen, shown) =
        meet(pinned(ours.authority.anchors().unwrap().hash()).unwrap(), &ours.head(), Called::Control)
            .unwrap();
    assert!(seen.is_some() && shown.is_none());
    assert!(
        meet(pinned(theirs.authority.anchors().unwrap().hash()).unwrap(), &ours.head(), Called::Control)
            .is_err()
    );
    // A member shows the authority's certificate as well, and is no control store for that.
    let member = ours.member(7, HOUR);
    assert!(
        meet(pinned(ours.authority.anchors().unwrap().hash()).unwrap(), &member, Called::Control).is_err()
    );
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

/// Two members of each kind: with the former key's certificate, the same after it heard of the new key, and
/// with the new key's certificate.
#[test]
fn while_a_key_is_replaced_everybody_believes_everybody() {
    let cluster = cluster();
    let former = cluster.authority.anchors().unwrap().hash();
    let early = cluster.member(1, HOUR);
    let old_token = pinned(former).unwrap();
    cluster.authority.rotate().unwrap();
    let (late, head) = (cluster.member(2, HOUR), cluster.head());
    for (one, other) in [(&early, &late), (&early, &head), (&late, &head), (&early, &early), (&late, &late)] {
        for (caller, called) in [(one, other), (other, one)] {
            let node = called.subject().unwrap().node.unwrap();
            meet(caller.client(), called, Called::Node(node)).unwrap();
        }
    }
    let current = cluster.authority.anchors().unwrap().hash();
    for token in [old_token, pinned(current).unwrap()] {
        meet(token, &head, Called::Control).unwrap();
    }
    // Whoever renews in time does not notice that the former key ends; whoever does not is shut out.
    cluster.authority.retire(Duration::ZERO).unwrap();
    let renewed = cluster.head();
    meet(late.client(), &renewed, Called::Control).unwrap();
    assert!(meet(early.client(), &renewed, Called::Control).is_err());
    assert!(meet(pinned(former).unwrap(), &renewed, Called::Control).is_err());
}

#[test]
fn an_identity_in_use_follows_its_authority_to_another_key() {
    let cluster = cluster();
    let head = cluster.head();
    let own = || cluster.authority.own(Role::Node, Some(1), true, HOUR).unwrap();
    for change in CHANGES {
        let anchors = change(&cluster.authority).unwrap();
        head.replace(&own()).unwrap();
        assert_eq!(head.anchors(), anchors);
    }
    let stranger = self::cluster().authority.own(Role::Node, Some(1), true, HOUR).unwrap();
    assert!(head.replace(&stranger).is_err());
}

#[derive(Debug)]
struct Clock(SystemTime);

impl TimeProvider for Clock {
    fn current_time(&self) -> Option<UnixTime> {
        Some(UnixTime::since_unix_epoch(self.0.duration_since(SystemTime::UNIX_EPOCH).unwrap()))
    }
}

#[test]
fn a_wrong_clock_is_told_with_both_times() {
    let cluster = cluster();
    let (head, member) = (cluster.head(), cluster.member(7, HOUR));
    let day = HOUR * 24;
    let now = SystemTime::now();
    for (clock, word) in [(now - day, "CertificateNotYetValid"), (now + day, "CertificateExpired")] {
        let mut config = (*member.client()).clone();
        config.time_provider = Arc::new(Clock(clock));
        let refused = meet(Arc::new(config), &head, Called::Control).unwrap_err();
        let refused = refused.get_ref().unwrap().downcast_ref::<rustls::Error>().unwrap();
        let words = crate::words_about_clocks(refused).unwrap();
        assert!(words.contains(word) && words.matches(" UTC").count() == 2, "{words}");
    }
    // Five minutes are no matter.
    let mut config = (*member.client()).clone();
    config.time_provider = Arc::new(Clock(now - Duration::from_secs(280)));
    meet(Arc::new(config), &head, Called::Control).unwrap();
}
