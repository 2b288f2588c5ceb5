//! Tests of the transfer: ranges, resuming, corruption, and peers that lie.

#![cfg(not(models))]

use super::*;
use crate::arena::Arena;
use proptest::prelude::*;
use std::net::{Shutdown, TcpListener};
use std::sync::atomic::AtomicU32;
use std::sync::{Arc, LazyLock};
use std::thread;

const LIMIT: Duration = Duration::from_secs(20);
const OBJECT_BYTES: usize = 3 * CHUNK_BYTES + 1234;

struct Store {
    arena: Arena,
    pins: Arc<AtomicU32>,
}

struct Pinned(crate::ArenaSlice, Arc<AtomicU32>);

impl AsRef<[u8]> for Pinned {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        self.1.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Source for Store {
    fn open(&self, key: &ObjectKey) -> Option<SourceRange> {
        if key[0] != 1 {
            return None;
        }
        self.pins.fetch_add(1, Ordering::SeqCst);
        let slice = self.arena.map().slice(4096, OBJECT_BYTES as u64).unwrap();
        Some(SourceRange::Memory(Box::new(Pinned(slice, Arc::clone(&self.pins)))))
    }
}

fn object() -> Vec<u8> {
    (0..OBJECT_BYTES as u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 13) as u8).collect()
}

fn store() -> Arc<Store> {
    let arena = Arena::create(8 << 20).unwrap();
    arena.map().write(4096, OBJECT_BYTES as u64).unwrap().copy_from_slice(&object());
    Arc::new(Store { arena, pins: Arc::default() })
}

fn sockets() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    (client, listener.accept().unwrap().0)
}

const HAVE: ObjectKey = [1; 20];

#[test]
fn ranges_arrive_and_pins_go() {
    let store = store();
    let (client, server) = sockets();
    let stop = Arc::new(AtomicBool::new(false));
    let sender = {
        let (store, stop) = (Arc::clone(&store), Arc::clone(&stop));
        thread::spawn(move || serve(server, &*store, &stop))
    };
    let mut receiver = Receiver::new(client).unwrap();
    let object = object();
    for (offset, len) in
        [(0, OBJECT_BYTES), (5, 0), (CHUNK_BYTES - 1, 2), (OBJECT_BYTES, 0), (7, 2 * CHUNK_BYTES)]
    {
        let mut target = vec![0; len];
        receiver.fetch(&HAVE, offset as u64, &mut target, LIMIT).unwrap();
        assert!(target == object[offset..offset + len], "{offset}+{len}");
    }
    let error = receiver.fetch(&[2; 20], 0, &mut [0], LIMIT).unwrap_err();
    assert!(matches!(error, FetchError { done_bytes: 0, cause: TransferError::NotFound }));
    for offset in [OBJECT_BYTES as u64, u64::MAX] {
        let error = receiver.fetch(&HAVE, offset, &mut [0], LIMIT).unwrap_err();
        assert!(matches!(error.cause, TransferError::OutOfRange { .. }), "{error}");
    }
    receiver.fetch(&HAVE, 0, &mut [0], LIMIT).unwrap();
    stop.store(true, Ordering::Relaxed);
    sender.join().unwrap().unwrap();
    assert_eq!(store.pins.load(Ordering::SeqCst), 0);
    let error = receiver.fetch(&HAVE, 0, &mut [0], LIMIT).unwrap_err();
    assert!(matches!(error.cause, TransferError::Closed), "{error}");
}

/// Relays bytes between receiver and sender, and flips one bit at each of the given positions.
fn relay(flips: Vec<usize>, cut_at: usize) -> TcpStream {
    let (client, near) = sockets();
    let (far, server) = sockets();
    thread::spawn(move || serve(server, &*store(), &AtomicBool::new(false)));
    let (mut up_in, mut up_out) = (near.try_clone().unwrap(), far.try_clone().unwrap());
    thread::spawn(move || io::copy(&mut up_in, &mut up_out));
    thread::spawn(move || {
        let (mut from, mut to) = (far, near);
        let (mut buffer, mut at) = (vec![0; 65536], 0);
        while let Ok(count) = from.read(&mut buffer) {
            for flip in flips.iter().filter(|f| (at..at + count).contains(f)) {
                buffer[flip - at] ^= 1;
            }
            let keep = count.min(cut_at - at);
            if to.write_all(&buffer[..keep]).is_err() || keep < count || count == 0 {
                let _ = to.shutdown(Shutdown::Both);
                return;
            }
            at += count;
        }
    });
    client
}

#[test]
fn a_bad_chunk_is_fetched_again() {
    let first_payload = HELLO_BYTES + CHUNK_HEADER_BYTES + 100;
    let third_payload = first_payload + 2 * (CHUNK_HEADER_BYTES + CHUNK_BYTES);
    let mut receiver = Receiver::new(relay(vec![first_payload, third_payload], usize::MAX)).unwrap();
    let mut target = vec![0; OBJECT_BYTES];
    receiver.fetch(&HAVE, 0, &mut target, LIMIT).unwrap();
    assert!(target == object());
}

#[test]
fn what_stays_bad_is_corrupt_and_the_good_prefix_counts() {
    let payload = |pass: usize| {
        let one_pass = 4 * CHUNK_HEADER_BYTES + OBJECT_BYTES;
        let second_chunk = CHUNK_HEADER_BYTES + CHUNK_BYTES;
        match pass {
            0 => HELLO_BYTES + second_chunk + CHUNK_HEADER_BYTES + 9,
            n => HELLO_BYTES + one_pass + (n - 1) * second_chunk + CHUNK_HEADER_BYTES + 9,
        }
    };
    let mut receiver = Receiver::new(relay((0..4).map(payload).collect(), usize::MAX)).unwrap();
    let mut target = vec![0; OBJECT_BYTES];
    let error = receiver.fetch(&HAVE, 0, &mut target, LIMIT).unwrap_err();
    assert!(matches!(error.cause, TransferError::Corrupt { attempts: 4, .. }), "{error}");
    assert_eq!(error.done_bytes, CHUNK_BYTES as u64);
    receiver.fetch(&HAVE, 0, &mut target, LIMIT).unwrap();
}

#[test]
fn a_cut_is_resumed_from_another_holder() {
    let cut_at = HELLO_BYTES + 2 * (CHUNK_HEADER_BYTES + CHUNK_BYTES) + 500;
    let mut receiver = Receiver::new(relay(Vec::new(), cut_at)).unwrap();
    let mut target = vec![0; OBJECT_BYTES];
    let error = receiver.fetch(&HAVE, 0, &mut target, LIMIT).unwrap_err();
    assert!(matches!(error.cause, TransferError::Closed), "{error}");
    assert_eq!(error.done_bytes, 2 * CHUNK_BYTES as u64);
    let mut other = Receiver::new(relay(Vec::new(), usize::MAX)).unwrap();
    let done = error.done_bytes as usize;
    other.fetch(&HAVE, error.done_bytes, &mut target[done..], LIMIT).unwrap();
    assert!(target == object());
}

/// A copy on a disk that fails from its second chunk on.
struct FailingDisk;

impl ReadAt for FailingDisk {
    fn total_bytes(&self) -> u64 {
        OBJECT_BYTES as u64
    }

    fn read_at(&self, offset: u64, target: &mut [u8]) -> io::Result<()> {
        if offset == 0 {
            target.fill(7);
            return Ok(());
        }
        Err(io::Error::from_raw_os_error(5))
    }
}

impl Source for FailingDisk {
    fn open(&self, _key: &ObjectKey) -> Option<SourceRange> {
        Some(SourceRange::Stored(Box::new(FailingDisk)))
    }
}

/// A reader that saw a closed connection would take the copy for one that is not reached.
#[test]
fn a_copy_that_its_disk_does_not_give_is_not_there_and_the_connection_stays() {
    let (client, server) = sockets();
    let sender = thread::spawn(move || serve(server, &FailingDisk, &AtomicBool::new(false)));
    let mut receiver = Receiver::new(client).unwrap();
    let error = receiver.fetch(&HAVE, 0, &mut vec![0; OBJECT_BYTES], LIMIT).unwrap_err();
    assert!(matches!(error.cause, TransferError::NotFound), "{error}");
    assert_eq!(error.done_bytes, CHUNK_BYTES as u64);
    let mut first = [0; 9];
    receiver.fetch(&HAVE, 0, &mut first, LIMIT).unwrap();
    assert_eq!(first, [7; 9]);
    drop(receiver);
    sender.join().unwrap().unwrap();
}

#[test]
fn a_trickling_sender_meets_the_deadline_and_a_stranger_is_refused() {
    let (client, mut server) = sockets();
    server.write_all(&encode_hello(false)).unwrap();
    let mut receiver = Receiver::new(client).unwrap();
    let started = Instant::now();
    let trickle = thread::spawn(move || {
        while server.write_all(b"T").is_ok() {
            thread::sleep(Duration::from_millis(40));
        }
    });
    let error = receiver.fetch(&HAVE, 0, &mut [0], Duration::from_millis(200)).unwrap_err();
    assert!(matches!(error.cause, TransferError::Timeout { .. }));
    assert!(started.elapsed() < Duration::from_secs(60));
    drop(receiver);
    trickle.join().unwrap();
    let (client, mut server) = sockets();
    server.write_all(b"HTTP/1.1 400 Bad").unwrap();
    assert!(matches!(Receiver::new(client), Err(TransferError::BadPeer { .. })));
    let (client, mut server) = sockets();
    let mut hello = encode_hello(false);
    hello[8] = 9;
    server.write_all(&hello).unwrap();
    assert!(matches!(Receiver::new(client), Err(TransferError::Version { ours: VERSION, theirs: 9 })));
}

fn noise_with_headers() -> impl Strategy<Value = Vec<u8>> {
    let number = || prop_oneof![any::<u64>(), 0..5_u64, Just(CHUNK_BYTES_MAX + 1)];
    let chunk = (number(), number(), number()).prop_map(|(offset, len, checksum)| {
        let status = Status::Chunk;
        ChunkHeader { status, request: 1, offset, len, total_len: len, checksum }.encode().to_vec()
    });
    let request = (any::<[u8; 20]>(), number(), number()).prop_map(|(mut key, offset, len)| {
        key[0] &= 1;
        Request { kind: RequestKind::Fetch, key, request: 1, offset, len: len % 10 }.encode().to_vec()
    });
    let piece = prop_oneof![chunk, request, prop::collection::vec(any::<u8>(), 0..80)];
    prop::collection::vec(piece, 0..6).prop_map(|pieces| pieces.concat())
}

static STORE: LazyLock<Arc<Store>> = LazyLock::new(store);

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn noise_never_panics_on_either_side(noise in noise_with_headers()) {
        let (client, mut server) = sockets();
        server.write_all(&encode_hello(false)).unwrap();
        server.write_all(&noise).unwrap();
        server.shutdown(Shutdown::Write).unwrap();
        let mut receiver = Receiver::new(client).unwrap();
        let _ = receiver.fetch(&HAVE, 0, &mut [0; 64], LIMIT);

        let (mut client, server) = sockets();
        client.write_all(&encode_hello(false)).unwrap();
        client.write_all(&noise).unwrap();
        client.shutdown(Shutdown::Write).unwrap();
        let drain = thread::spawn(move || io::copy(&mut client, &mut io::sink()));
        let _ = serve(server, &**STORE, &AtomicBool::new(false));
        // A reset counts as an end, like a close.
        let _ = drain.join().unwrap();
    }
}
