//! Every reader of bytes from another process or a disk, as a function of bytes. Tests feed these functions
//! with noise. The product is built without this module.
//!
//! A function panics if the reader accepted invalid bytes. Seeds are bytes that a correct peer writes.

use crate::ring::{Consumer, PendingLarge, Producer, RingPlace};
use crate::segment::Segment;
use crate::spill::inputs as spill;
use crate::transfer_frame::{
    CHUNK_HEADER_BYTES, ChunkHeader, HELLO_BYTES, REQUEST_BYTES, Request, RequestKind, Status, decode_hello,
    encode_hello,
};
use std::sync::Arc;

pub use spill::{spill_block, spill_block_seeds, spill_header, spill_header_seeds};

const CAPACITY_BYTES: usize = 256;
const MESSAGE_BYTES_MAX: usize = 4096;
/// Offset of the position words in a ring.
const WORDS_OFFSET: usize = 128;

/// Reads a ring whose words and data are `bytes`.
pub fn ring_consumer(bytes: &[u8]) {
    let Some(place) = ring() else { return };
    place.overwrite(WORDS_OFFSET, bytes);
    let Ok(mut consumer) = Consumer::attach(place, MESSAGE_BYTES_MAX) else { return };
    // Every message takes at least one byte of the ring, and nothing is added to it.
    for _ in 0..=CAPACITY_BYTES {
        match consumer.peek() {
            Ok(Some(message)) => assert!(message.len() <= MESSAGE_BYTES_MAX, "{} bytes", message.len()),
            Ok(None) => return,
            Err(error) => {
                assert!(consumer.peek().is_err(), "forgotten: {error}");
                return;
            }
        }
        consumer.advance();
        consumer.release();
    }
    unreachable!("more messages than bytes");
}

/// Writes into a ring whose words and data are `bytes`.
pub fn ring_producer(bytes: &[u8]) {
    let Some(place) = ring() else { return };
    place.overwrite(WORDS_OFFSET, bytes);
    let Ok(mut producer) = Producer::attach(place.clone(), MESSAGE_BYTES_MAX) else { return };
    let pushed = (0..=CAPACITY_BYTES).take_while(|_| producer.try_push(&[b"message"]).is_ok()).count();
    assert!(pushed <= CAPACITY_BYTES / 8, "{pushed} messages in {CAPACITY_BYTES} bytes");
    producer.publish();
    let mut large = PendingLarge::new(vec![1; 300]);
    assert!(!producer.try_push_large(&mut large).is_ok_and(|all| all), "300 bytes in {CAPACITY_BYTES}");
}

/// Words and data of rings in several states.
#[must_use]
pub fn ring_seeds() -> Vec<Vec<u8>> {
    let mut seeds = Vec::new();
    let Some(place) = ring() else { return seeds };
    let attached = (Producer::attach(place.clone(), 1000), Consumer::attach(place.clone(), 1000));
    let (Ok(mut producer), Ok(mut consumer)) = attached else { return seeds };
    for len in [0, 5, 64, 100, 40, 56, 200, 1, 90] {
        let mut message = PendingLarge::new(vec![len as u8; len]);
        // The seed is taken before the message is read, so that it contains a message.
        while producer.try_push_large(&mut message).is_ok_and(|all| !all) {
            take_all(&mut consumer);
        }
        seeds.push(place.contents(WORDS_OFFSET));
        take_all(&mut consumer);
    }
    seeds
}

/// Reads each of the fixed-size headers of the transfer protocol from the front of `bytes`.
pub fn transfer_headers(bytes: &[u8]) {
    if let Some(hello) = bytes.first_chunk::<HELLO_BYTES>() {
        let _ = decode_hello(hello);
    }
    if let Some(request) = bytes.first_chunk::<REQUEST_BYTES>().and_then(Request::decode) {
        assert_eq!(Request::decode(&request.encode()), Some(request));
    }
    if let Some(chunk) = bytes.first_chunk::<CHUNK_HEADER_BYTES>().and_then(ChunkHeader::decode) {
        assert_eq!(ChunkHeader::decode(&chunk.encode()), Some(chunk));
    }
}

/// One of each header.
#[must_use]
pub fn transfer_header_seeds() -> Vec<Vec<u8>> {
    let request = Request { kind: RequestKind::Fetch, key: [3; 20], request: 1, offset: 64, len: 1 << 20 };
    let chunk = ChunkHeader {
        status: Status::Chunk,
        request: 1,
        offset: 64,
        len: 4096,
        total_len: 1 << 20,
        checksum: 77,
    };
    vec![encode_hello(false).to_vec(), request.encode().to_vec(), chunk.encode().to_vec()]
}

fn ring() -> Option<RingPlace> {
    let segment = Segment::anonymous(RingPlace::bytes(CAPACITY_BYTES)).ok()?;
    let place = RingPlace::new(Arc::new(segment), 0, CAPACITY_BYTES).ok()?;
    place.format().ok()?;
    Some(place)
}

fn take_all(consumer: &mut Consumer) {
    while matches!(consumer.peek(), Ok(Some(_))) {
        consumer.advance();
    }
    consumer.release();
}
