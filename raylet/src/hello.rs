//! The first frame of a client, of this release or another one.
//!
//! Magic and version come first in each release. What follows is laid out as the release of the client does,
//! so it is read only if that is ours: a client of another release hears which two versions met, and not that
//! it made no sense.

use tharsis_protos::handshake::{HELLO_MAGIC, Hello, PROTOCOL_VERSION};

/// Why a first frame is not read.
#[derive(Debug, PartialEq, Eq)]
pub enum Unread {
    /// It is no hello of ours.
    NoHello(String),
    /// The client speaks this version of the protocol.
    OtherVersion(u32),
}

/// Reads the first frame of a client.
///
/// # Errors
/// [`Unread`].
pub fn read(frame: &[u8]) -> Result<Hello, Unread> {
    let begin = postcard::take_from_bytes::<([u8; 8], u32)>(frame);
    let ((magic, version), _) = begin.map_err(|cause| Unread::NoHello(cause.to_string()))?;
    if magic != HELLO_MAGIC {
        return Err(Unread::NoHello("it begins otherwise".to_owned()));
    }
    if version != PROTOCOL_VERSION {
        return Err(Unread::OtherVersion(version));
    }
    postcard::from_bytes(frame).map_err(|cause| Unread::NoHello(cause.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tharsis_protos::handshake::{Answer, Role};
    use tharsis_types::{Failure, FailureKind};

    /// The hello of a driver as a program of this release sends it, byte by byte: magic, version 18, process
    /// 42, the role, an empty table of functions. Whoever changes it raises the version and adds the new one.
    const DRIVER_18: &[u8] = b"THARSIS\x02\x12\x2a\x00\x01a\x01b\x02/p\x64\x00\x00";

    #[test]
    fn the_hello_of_this_release_is_read_from_its_bytes() {
        let role = Role::Driver {
            job_name: "a".to_owned(),
            namespace: "b".to_owned(),
            executable: "/p".to_owned(),
            weight: 100,
            quota: None,
        };
        let expected =
            Hello { magic: HELLO_MAGIC, version: PROTOCOL_VERSION, pid: 42, role, functions: Vec::new() };
        assert_eq!(read(DRIVER_18), Ok(expected));
    }

    /// Of former releases: 17, whose nodes told nothing of runs; 16, whose nodes did not note the terms of
    /// jobs; 15, whose workers did not say which question they answer; 14, whose nodes told no addresses of
    /// members; 13, whose drivers heard nothing of how many calls they may send and whose calls did not say
    /// of which run of their worker they are; 12, whose records of calls had no names; 11, whose driver had
    /// no quota; and one that is cut off behind its version. Of a later one: 300, with a role that does not
    /// exist yet.
    #[test]
    fn clients_of_other_releases_are_told_so_whatever_follows() {
        for (frame, version) in [
            (&b"THARSIS\x02\x11\x2a\x00\x01a\x01b\x02/p\x64\x00\x00"[..], 17),
            (b"THARSIS\x02\x10\x2a\x00\x01a\x01b\x02/p\x64\x00\x00", 16),
            (b"THARSIS\x02\x0f\x2a\x00\x01a\x01b\x02/p\x64\x00\x00", 15),
            (b"THARSIS\x02\x0e\x2a\x00\x01a\x01b\x02/p\x64\x00\x00", 14),
            (b"THARSIS\x02\x0d\x2a\x00\x01a\x01b\x02/p\x64\x00\x00", 13),
            (b"THARSIS\x02\x0c\x2a\x00\x01a\x01b\x02/p\x64\x00\x00", 12),
            (b"THARSIS\x02\x0b\x2a\x00\x01a\x01b\x02/p\x64\x00", 11),
            (b"THARSIS\x02\x03", 3),
            (b"THARSIS\x02\xac\x02\x2a\x63\xff\xff", 300),
        ] {
            assert_eq!(read(frame), Err(Unread::OtherVersion(version)));
        }
        for noise in [&b""[..], b"GET / HTTP/1.1", b"THARSIS\x02", b"THARSIS\x02\x12\x2a\x63"] {
            assert!(matches!(read(noise), Err(Unread::NoHello(_))), "{noise:?}");
        }
    }

    /// A refusal keeps its place among the answers, and a failure its form, so that it is read everywhere.
    #[test]
    fn a_refusal_is_the_third_answer() {
        let refused = Answer::Refused(Failure::new(FailureKind::VersionMismatch, "13 and 14"));
        let bytes = postcard::to_stdvec(&refused).unwrap();
        assert_eq!(bytes[0], 2);
        assert!(bytes.windows(9).any(|text| text == b"13 and 14"));
        assert_eq!(postcard::from_bytes::<Answer>(&bytes).unwrap(), refused);
    }
}
