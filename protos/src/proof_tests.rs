//! Both sides of a proof, with each other, with strangers and with other releases.

use super::*;
use tokio::net::{TcpListener, TcpStream};

const CALLER: Claim = Claim { purpose: Purpose::Transfers, node: Some(NodeId(7)) };

fn secret(byte: u8) -> Secret {
    Secret::from_bytes([byte; SECRET_BYTES])
}

/// Connects with one secret to a listener with another, and says what either side says of it.
async fn meet(callers: Secret, listeners: Secret) -> (Result<(), ProofError>, Result<Claim, ProofError>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let called = async {
        let mut stream = TcpStream::connect(address).await.unwrap();
        prove(&mut stream, &callers.at(address), CALLER.node, CALLER.purpose).await
    };
    let accepted = async {
        let (mut stream, _) = listener.accept().await.unwrap();
        admit(&mut stream, &listeners.at(address), |_| Ok(())).await
    };
    tokio::join!(called, accepted)
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

#[test]
fn whoever_knows_the_secret_is_admitted_and_nobody_else() {
    runtime().block_on(async {
        let (called, accepted) = meet(secret(1), secret(1)).await;
        called.unwrap();
        assert_eq!(accepted.unwrap(), CALLER);
        let (called, accepted) = meet(secret(2), secret(1)).await;
        for refused in [called.unwrap_err(), accepted.unwrap_err()] {
            assert!(matches!(refused, ProofError::Refused(Reason::WrongProof)), "{refused}");
        }
    });
}

/// The hello of a process of this release, byte by byte. Whoever changes it raises the version.
#[test]
fn the_hello_of_this_release_is_read_from_its_bytes() {
    let recorded =
        [&b"THARSIS\x02\x02\x00\x00\x00\x01\x00\x00\x00\x08\x07\x06\x05\x04\x03\x02\x01"[..], &[0x11; 32]];
    let hello: Hello = recorded.concat().try_into().unwrap();
    let node = Some(NodeId(0x0102_0304_0506_0708));
    assert_eq!(claim_of(&hello), Ok(Claim { purpose: Purpose::Calls, node }));
    assert_eq!(frame(1, 0x0102_0304_0506_0708, &[0x11; 32]), hello);
}

#[test]
fn a_listener_of_another_release_is_named_with_both_versions() {
    let key = secret(1);
    let proof = Proof::new(&key, CALLER.node, CALLER.purpose).unwrap();
    let of_version = |version: u32, status: u32| {
        let mut bytes = frame(status, 0, &[0x22; 32]);
        bytes[8..12].copy_from_slice(&version.to_le_bytes());
        bytes
    };
    // One that looks at the version of the hello, and one that does not.
    for status in [0, Reason::Version as u32] {
        for version in [1, 3] {
            let refused = proof.answer(&of_version(version, status)).unwrap_err();
            assert!(matches!(refused, ProofError::Version { theirs } if theirs == version), "{refused}");
            let text = refused.to_string();
            assert!(text.contains(&format!("version {version} ")) && text.contains("version 2"), "{text}");
        }
    }
    // Of the same version, with a purpose or a refusal that only one of them knows.
    let refused = proof.answer(&of_version(VERSION, 200)).unwrap_err();
    assert!(matches!(refused, ProofError::Refused(Reason::Version)), "{refused}");
    proof.answer(&of_version(VERSION, 0)).unwrap();
}

#[test]
fn a_listener_that_says_yes_to_everything_is_found_out() {
    let (ours, nonce) = (secret(1), [5; 32]);
    let proof = Proof::new(&ours, CALLER.node, CALLER.purpose).unwrap();
    let challenge = challenge(None, &nonce);
    let echo = proof.answer(&challenge).unwrap();
    let known = ours.listener_mac(&proof.hello, &challenge);
    assert!(proof.check(&challenge, &verdict(Ok(known))).is_ok());
    // Its own guess, and the caller's answer sent back.
    for mac in [[0; 32], echo].map(blake3::Hash::from_bytes) {
        assert!(matches!(proof.check(&challenge, &verdict(Ok(mac))), Err(ProofError::Unproved)));
    }
}

#[test]
fn an_answer_is_good_for_one_connection_to_one_address() {
    let (here, there) = ("127.0.0.1:1".parse().unwrap(), "127.0.0.1:2".parse().unwrap());
    let ours = secret(1);
    let key = ours.at(here);
    let proof = Proof::new(&key, CALLER.node, CALLER.purpose).unwrap();
    let (first, second) = (challenge(None, &[5; 32]), challenge(None, &[6; 32]));
    let answer = proof.answer(&first).unwrap();
    assert_eq!(ours.at(here).caller_mac(&proof.hello, &first).as_bytes(), &answer);
    assert_ne!(ours.at(here).caller_mac(&proof.hello, &second).as_bytes(), &answer);
    assert_ne!(ours.at(there).caller_mac(&proof.hello, &first).as_bytes(), &answer);
    let mapped = "[::ffff:127.0.0.1]:1".parse().unwrap();
    assert_eq!(ours.at(mapped).caller_mac(&proof.hello, &first).as_bytes(), &answer);
}

#[test]
fn a_secret_is_not_shown_and_survives_its_file() {
    let new = Secret::random().unwrap();
    assert!(!format!("{new:?}").contains(&new.to_hex()));
    assert_eq!(Secret::from_hex(&format!("{}\n", new.to_hex())), Some(new));
    assert_eq!(Secret::from_hex("short"), None);
}

#[test]
fn a_look_is_no_attempt_to_be_admitted() {
    runtime().block_on(async {
        for words in [&KNOCK[..], b""] {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let mut stream = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
            stream.write_all(words).await.unwrap();
            stream.shutdown().await.unwrap();
            let (mut accepted, _) = listener.accept().await.unwrap();
            let mut heard = Vec::new();
            let ours = secret(1);
            let (looked, _) =
                tokio::join!(admit(&mut accepted, &ours, |_| Ok(())), stream.read_to_end(&mut heard));
            assert!(matches!(looked, Err(ProofError::Look)));
            assert_eq!(heard.is_empty(), words.is_empty(), "a knock is answered");
        }
    });
}

/// The control store was away for so long that nobody renewed the certificate of one side.
#[test]
fn a_certificate_that_does_not_hold_now_may_hold_again() {
    let may_pass = |error: rustls::Error| ProofError::from(io::Error::other(error)).may_pass();
    let alert = rustls::Error::AlertReceived;
    assert!(may_pass(alert(rustls::AlertDescription::CertificateExpired)));
    assert!(!may_pass(alert(rustls::AlertDescription::UnknownCA)));
    assert!(!may_pass(rustls::Error::InvalidCertificate(rustls::CertificateError::UnknownIssuer)));
    assert!(ProofError::Tls(io::ErrorKind::UnexpectedEof.into()).may_pass(), "it is none of TLS");
}

#[test]
fn whoever_does_not_prove_is_told_in_its_own_words() {
    runtime().block_on(async {
        for (words, told) in [
            (&b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"[..], GO_AWAY.to_vec()),
            (b"THARSIS\x01\x01\0\0\0\0\0\0\0", challenge(Some(Reason::NoProof), &[0; 32]).to_vec()),
        ] {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let mut stream = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
            stream.write_all(words).await.unwrap();
            let (mut accepted, _) = listener.accept().await.unwrap();
            let ours = secret(1);
            let mut heard = Vec::new();
            let (refused, _) =
                tokio::join!(admit(&mut accepted, &ours, |_| Ok(())), stream.read_to_end(&mut heard));
            assert!(matches!(refused, Err(ProofError::Refused(Reason::NoProof))));
            assert_eq!(heard, told);
        }
    });
}
