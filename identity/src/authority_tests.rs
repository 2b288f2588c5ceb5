//! Tests of tokens, machines and the certificates that they get.

use super::*;
use crate::{AuthorityHash, MachineFolder, Tls};

const HOUR: Duration = Duration::from_secs(3600);

type Change = fn(&Authority) -> Result<Anchors, IdentityError>;

/// The steps by which a key is replaced.
pub(crate) const CHANGES: [Change; 2] =
    [|authority| authority.rotate(), |authority| authority.retire(Duration::ZERO)];

fn authority() -> (tempfile::TempDir, Authority) {
    let folder = tempfile::tempdir().unwrap();
    let authority = Authority::load_or_make(&folder.path().join("authority")).unwrap();
    (folder, authority)
}

/// Joins with a token, as a machine does.
fn join(authority: &Authority, token: &Token) -> Result<Identity, IdentityError> {
    let key = NewKey::generate()?;
    let certificate = authority.admit(token, &key.public(), "host")?;
    Ok(key.with(certificate, authority.anchors()?))
}

fn subject(identity: &Identity) -> Subject {
    Tls::new(identity).unwrap().subject().unwrap()
}

#[test]
fn processes_that_start_at_once_get_one_authority() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("authority");
    let hashes: Vec<AuthorityHash> = std::thread::scope(|scope| {
        let start = || Authority::load_or_make(&path).unwrap().anchors().unwrap().hash();
        let threads: Vec<_> = (0..8).map(|_| scope.spawn(start)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert!(hashes.windows(2).all(|pair| pair[0] == pair[1]), "{hashes:?}");
}

#[test]
fn a_token_admits_machines_of_its_role_until_it_is_revoked() {
    let (_folder, authority) = authority();
    let token = authority.make_token(Role::Node, HOUR).unwrap();
    let (first, second) = (join(&authority, &token).unwrap(), join(&authority, &token).unwrap());
    assert_eq!(subject(&first).role, Role::Node);
    assert_ne!(subject(&first).machine, subject(&second).machine);
    assert_eq!(authority.machines().unwrap().len(), 2);
    assert!(authority.revoke_token(token.number).unwrap());
    assert!(matches!(join(&authority, &token), Err(IdentityError::UnknownToken)));
    assert!(!authority.revoke_token(token.number).unwrap());
}

#[test]
fn one_token_does_not_take_all_places_of_machines() {
    let (_folder, authority) = authority();
    {
        let mut admitted = authority.admitted.lock().unwrap();
        (admitted.machines_max, admitted.per_token_max) = (5, 3);
    }
    let [first, second] = [1, 2].map(|_| authority.make_token(Role::Node, HOUR).unwrap());
    let of_first = subject(&join(&authority, &first).unwrap()).machine;
    // Another process that works in the folder.
    join(&Authority::load(&authority.folder).unwrap(), &first).unwrap();
    join(&authority, &first).unwrap();
    let refused = join(&authority, &first).map(drop).unwrap_err();
    assert!(matches!(refused, IdentityError::TooManyOfToken { limit: 3, token } if token == first.number));
    assert!(refused.to_string().contains(&format!("{:016x}", first.number)), "{refused}");
    // Those of another token find room, until all places are taken.
    join(&authority, &second).unwrap();
    join(&authority, &second).unwrap();
    assert!(matches!(join(&authority, &second), Err(IdentityError::TooManyMachines { limit: 5, .. })));
    // One that is gone for good makes room.
    std::fs::remove_file(authority.folder.join("machines").join(of_first.to_string())).unwrap();
    join(&authority, &first).unwrap();
    assert_eq!(authority.machines().unwrap().len(), 5);
}

#[test]
fn of_many_that_join_at_once_no_more_are_admitted_than_may_be() {
    let (_folder, authority) = authority();
    authority.admitted.lock().unwrap().per_token_max = 4;
    let token = authority.make_token(Role::Node, HOUR).unwrap();
    let start = std::sync::Barrier::new(8);
    let joined = std::thread::scope(|scope| {
        let join = || {
            start.wait();
            join(&authority, &token).is_ok()
        };
        let threads: Vec<_> = (0..8).map(|_| scope.spawn(join)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).filter(|joined| *joined).count()
    });
    assert_eq!(joined, 4);
}

#[test]
fn guessed_expired_and_foreign_tokens_admit_nobody() {
    let (_folder, authority) = authority();
    let (_elsewhere, other) = self::authority();
    let good = authority.make_token(Role::Node, HOUR).unwrap();
    let guessed = Token { secret: [0; 16], ..good.clone() };
    assert!(matches!(join(&authority, &guessed), Err(IdentityError::UnknownToken)));
    let foreign = other.make_token(Role::Node, HOUR).unwrap();
    assert!(matches!(join(&authority, &foreign), Err(IdentityError::UnknownToken)));
    let expired = authority.make_token(Role::Node, Duration::ZERO).unwrap();
    assert!(matches!(join(&authority, &expired), Err(IdentityError::ExpiredToken)));
    // Listing forgets it.
    assert_eq!(authority.tokens().unwrap().len(), 1);
    assert!(matches!(join(&authority, &expired), Err(IdentityError::UnknownToken)));
}

#[test]
fn a_machine_gets_certificates_for_its_nodes_until_it_is_revoked() {
    let (_folder, authority) = authority();
    let token = authority.make_token(Role::Node, HOUR).unwrap();
    let machine = subject(&join(&authority, &token).unwrap());
    let key = NewKey::generate().unwrap();
    let certificate = authority.renew(machine, 7, &key.public(), HOUR).unwrap();
    let node = subject(&key.with(certificate, authority.anchors().unwrap()));
    assert_eq!(node, Subject { node: Some(7), ..machine });
    // A node's certificate is renewed for that node only.
    let public = NewKey::generate().unwrap().public();
    assert!(authority.renew(node, 7, &public, HOUR).is_ok());
    assert!(matches!(authority.renew(node, 8, &public, HOUR), Err(IdentityError::NotANode(_))));
    assert!(authority.revoke_machine(machine.machine).unwrap());
    assert!(matches!(authority.renew(machine, 7, &public, HOUR), Err(IdentityError::Revoked(_))));
    assert!(authority.machines().unwrap()[0].is_revoked);
}

#[test]
fn a_node_is_the_machines_that_had_it_first() {
    let (_folder, authority) = authority();
    let token = authority.make_token(Role::Driver, HOUR).unwrap();
    let [own, other] = [(), ()].map(|()| subject(&join(&authority, &token).unwrap()));
    let public = NewKey::generate().unwrap().public();
    authority.renew(own, 7, &public, HOUR).unwrap();
    assert!(matches!(authority.renew(other, 7, &public, HOUR), Err(IdentityError::NotItsNode(_))));
    assert_eq!(authority.machine_of(7).unwrap(), Some(own.machine));
    authority.renew(own, 7, &public, HOUR).unwrap();
    // The nodes of the authority's own machine are nobody else's either, whatever its key becomes.
    for change in [None, Some(CHANGES[0]), Some(CHANGES[1])] {
        change.map(|change| change(&authority).unwrap());
        let head = subject(&authority.own(Role::Node, Some(1), true, HOUR).unwrap());
        assert!(matches!(authority.renew(other, 1, &public, HOUR), Err(IdentityError::NotItsNode(_))));
        assert_eq!(authority.machine_of(1).unwrap(), Some(head.machine));
        assert!(matches!(authority.revoke_machine(head.machine), Err(IdentityError::OwnMachine)));
    }
}

#[test]
fn of_machines_that_ask_for_a_node_at_once_one_gets_it() {
    let (_folder, authority) = authority();
    let token = authority.make_token(Role::Node, HOUR).unwrap();
    let machines: Vec<Subject> = (0..8).map(|_| subject(&join(&authority, &token).unwrap())).collect();
    let public = NewKey::generate().unwrap().public();
    let ask = |machine: &Subject| authority.renew(*machine, 7, &public, HOUR).is_ok();
    let signed = std::thread::scope(|scope| {
        let threads: Vec<_> = machines.iter().map(|machine| scope.spawn(|| ask(machine))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).filter(|ok| *ok).count()
    });
    assert_eq!(signed, 1);
}

#[test]
fn machines_that_only_look_have_no_nodes() {
    let (_folder, authority) = authority();
    for role in [Role::Observer, Role::Operator] {
        let token = authority.make_token(role, HOUR).unwrap();
        let machine = subject(&join(&authority, &token).unwrap());
        let public = NewKey::generate().unwrap().public();
        assert!(matches!(authority.renew(machine, 7, &public, HOUR), Err(IdentityError::NotANode(_))));
    }
}

#[test]
fn a_key_that_is_none_is_refused() {
    let (_folder, authority) = authority();
    let token = authority.make_token(Role::Node, HOUR).unwrap();
    let point = NewKey::generate().unwrap().public();
    let compressed = [&[2], &point[1..33]].concat();
    for key in [&b""[..], b"\x30\x03abc", &[0xff; 200], &point[..64], &compressed] {
        assert!(matches!(authority.admit(&token, key, "host"), Err(IdentityError::Certificate(_))));
    }
}

#[test]
fn a_machine_finds_the_identity_for_where_it_joined() {
    let (folder, authority) = authority();
    let (_elsewhere, other) = self::authority();
    let kept = MachineFolder::new(folder.path().join("clusters"));
    assert!(kept.find("head:1").unwrap().is_none());
    for (authority, head) in [(&authority, "head:1"), (&other, "head:2"), (&authority, "head:3")] {
        let identity = join(authority, &authority.make_token(Role::Node, HOUR).unwrap()).unwrap();
        kept.keep(&identity, head).unwrap();
    }
    for (authority, head) in [(&authority, "head:1"), (&other, "head:2"), (&authority, "head:3")] {
        assert_eq!(
            kept.find(head).unwrap().unwrap().authority(),
            authority.anchors().unwrap().hash(),
            "{head}"
        );
    }
    assert!(kept.find("head:4").unwrap().is_none());
}

#[test]
fn keys_that_others_may_read_are_refused() {
    use std::os::unix::fs::PermissionsExt;
    let (folder, _) = authority();
    let path = folder.path().join("authority");
    let key = path.join("keys");
    assert_eq!(std::fs::metadata(&key).unwrap().permissions().mode() & 0o777, 0o600);
    std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o644)).unwrap();
    let refused = Authority::load(&path).unwrap_err().to_string();
    assert!(refused.contains("keys") && refused.contains("600"), "{refused}");
}

#[test]
fn one_key_at_a_time_is_replaced_and_not_before_its_members_have_heard() {
    let (_folder, authority) = authority();
    let first = authority.anchors().unwrap();
    assert!(matches!(authority.retire(Duration::ZERO), Err(IdentityError::NotReplacing)));
    let token = authority.make_token(Role::Node, HOUR).unwrap();
    let both = authority.rotate().unwrap();
    assert_eq!(both.former_hash(), Some(first.hash()));
    assert!(matches!(authority.rotate(), Err(IdentityError::Replacing)));
    assert!(join(&authority, &token).is_ok(), "a token of the former key");
    assert!(matches!(authority.retire(HOUR), Err(IdentityError::Overlap { left }) if left <= HOUR));
    let second = authority.retire(Duration::ZERO).unwrap();
    assert_eq!((second.hash(), second.former_hash()), (both.hash(), None));
    assert!(matches!(join(&authority, &token), Err(IdentityError::UnknownToken)));
    // Another process that works in the folder sees the same.
    assert_eq!(Authority::load(&authority.folder).unwrap().anchors().unwrap(), second);
}

#[test]
fn a_machine_keeps_one_identity_for_a_head_whatever_its_authority_becomes() {
    let (folder, authority) = authority();
    let kept = MachineFolder::new(folder.path().join("clusters"));
    let machine = join(&authority, &authority.make_token(Role::Node, HOUR).unwrap()).unwrap();
    kept.keep(&machine, "head:1").unwrap();
    kept.keep(&machine, "head:2").unwrap();
    let renewed = || {
        let certificate = authority.renew_machine(subject(&machine), &machine.public().unwrap()).unwrap();
        machine.renewed(certificate, authority.anchors().unwrap())
    };
    for change in CHANGES {
        let anchors = change(&authority).unwrap();
        kept.keep(&renewed(), "head:1").unwrap();
        for head in ["head:1", "head:2"] {
            assert_eq!(kept.find(head).unwrap().unwrap().anchors, anchors, "{head}");
        }
    }
    // The head was set up anew, and this machine joined again.
    let (_elsewhere, other) = self::authority();
    let again = join(&other, &other.make_token(Role::Node, HOUR).unwrap()).unwrap();
    kept.keep(&again, "head:1").unwrap();
    assert_eq!(kept.find("head:1").unwrap().unwrap().anchors, other.anchors().unwrap());
    assert_eq!(kept.find("head:2").unwrap().unwrap().anchors, authority.anchors().unwrap());
}

#[test]
fn a_revoked_machine_and_a_node_renew_no_machine() {
    let (_folder, authority) = authority();
    let machine = subject(&join(&authority, &authority.make_token(Role::Node, HOUR).unwrap()).unwrap());
    let public = NewKey::generate().unwrap().public();
    let node = Subject { node: Some(7), ..machine };
    assert!(matches!(authority.renew_machine(node, &public), Err(IdentityError::NotAMachine)));
    authority.revoke_machine(machine.machine).unwrap();
    assert!(matches!(authority.renew_machine(machine, &public), Err(IdentityError::Revoked(_))));
}

#[test]
fn two_heads_with_one_key_note_the_same() {
    let (folder, here) = authority();
    let other = folder.path().join("other");
    let there = Authority::load_or_make(&other).unwrap();
    std::fs::copy(here.folder.join("keys"), other.join("keys")).unwrap();
    let tell = |from: &Authority, to: &Authority| {
        from.rows(&HashSet::new()).unwrap().iter().for_each(|row| to.take_row(row).unwrap());
    };
    let token = here.make_token(Role::Node, HOUR).unwrap();
    tell(&here, &there);
    let machine = subject(&join(&there, &token).unwrap());
    let public = NewKey::generate().unwrap().public();
    there.renew(machine, 7, &public, HOUR).unwrap();
    tell(&there, &here);
    // The other head knows the machine by its node, and shuts it and its token out for both.
    let found = here.machine_of(7).unwrap().unwrap();
    assert_eq!((found, here.token_of(found).unwrap()), (machine.machine, Some(token.number)));
    assert!(here.revoke_machine(found).unwrap() && here.revoke_token(token.number).unwrap());
    tell(&here, &there);
    assert!(there.is_revoked(found));
    assert!(matches!(join(&there, &token), Err(IdentityError::UnknownToken)));
    // A head that still has the token does not bring it back.
    tell(&there, &here);
    assert!(matches!(join(&here, &token), Err(IdentityError::UnknownToken)));
    assert_eq!(here.rows(&HashSet::new()).unwrap(), there.rows(&HashSet::new()).unwrap());
}

#[test]
fn the_name_of_an_authority_stays_when_its_key_is_replaced_and_comes_with_its_folder() {
    let (here, there) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let authority = Authority::load_or_make(here.path()).unwrap();
    let name = authority.name().unwrap();
    // A copy of a release that noted no name, made before or while the key is replaced.
    std::fs::remove_file(here.path().join("cluster")).unwrap();
    std::fs::copy(here.path().join("keys"), there.path().join("keys")).unwrap();
    authority.rotate().unwrap();
    assert_eq!(authority.name().unwrap(), name);
    assert_eq!(Authority::load_or_make(there.path()).unwrap().name().unwrap(), name);
    authority.retire(Duration::ZERO).unwrap();
    assert_eq!(Authority::load_or_make(here.path()).unwrap().name().unwrap(), name);
    let other = tempfile::tempdir().unwrap();
    assert_ne!(Authority::load_or_make(other.path()).unwrap().name().unwrap(), name);
    std::fs::write(here.path().join("cluster"), "?").unwrap();
    std::fs::set_permissions(
        here.path().join("cluster"),
        std::os::unix::fs::PermissionsExt::from_mode(0o600),
    )
    .unwrap();
    assert!(authority.name().unwrap_err().to_string().contains("hexadecimal"));
}

#[test]
fn a_token_is_new_unless_this_machine_joined_with_it() {
    let (root, own) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let authority = Authority::load_or_make(root.path()).unwrap();
    let folder = MachineFolder::new(own.path().to_owned());
    let [first, second] = [1, 2].map(|_| authority.make_token(Role::Node, HOUR).unwrap());
    let join = |authority: &Authority, token: &Token| {
        let key = NewKey::generate().unwrap();
        let certificate = authority.admit(token, &key.public(), "here").unwrap();
        key.with(certificate, authority.anchors().unwrap())
    };
    assert!(folder.is_new_token("head:1", &first).unwrap(), "it has never joined");
    folder.keep(&join(&authority, &first), "head:1").unwrap();
    // As a release did that noted no token.
    assert!(!folder.is_new_token("head:1", &second).unwrap());
    folder.note_token("head:1", &first).unwrap();
    let is_new = |token| folder.is_new_token("head:1", token).unwrap();
    assert_eq!((is_new(&first), is_new(&second)), (false, true));
    // The key is replaced, and this machine's certificate with it: the token is known still.
    authority.rotate().unwrap();
    folder.keep(&join(&authority, &second), "head:1").unwrap();
    assert_eq!((is_new(&first), is_new(&second)), (false, true));
    // A head that was lost, and another one at its address.
    let lost = tempfile::tempdir().unwrap();
    let other = Authority::load_or_make(lost.path()).unwrap().make_token(Role::Node, HOUR).unwrap();
    assert!(is_new(&other));
}

#[test]
fn of_many_that_replace_the_key_at_once_one_does() {
    let root = tempfile::tempdir().unwrap();
    let authority = Authority::load_or_make(root.path()).unwrap();
    let first = authority.anchors().unwrap();
    let start = std::sync::Barrier::new(8);
    let replace = || {
        start.wait();
        authority.rotate()
    };
    let replaced: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8).map(|_| scope.spawn(replace)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let (done, refused): (Vec<_>, Vec<_>) = replaced.into_iter().partition(Result::is_ok);
    assert_eq!((done.len(), refused.len()), (1, 7));
    assert!(refused.iter().all(|refused| matches!(refused, Err(IdentityError::Replacing))));
    let now = authority.anchors().unwrap();
    assert_eq!((now.former_hash(), Some(now)), (Some(first.hash()), done.into_iter().next().unwrap().ok()));
}
