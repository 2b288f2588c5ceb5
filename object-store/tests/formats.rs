//! The examples in `docs/formats`, byte by byte, against what the code writes.
//!
//! An example is a block fenced as `golden NAME`. Its lines are an offset, a colon, bytes in hexadecimal, and
//! after two blanks a description. `..` is a byte that differs from run to run; bytes that are not shown are
//! zero.

// Tests and their helper functions may panic on failure.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tharsis_object_store::spill::{SpillDir, SpillOptions};
use tharsis_object_store::{
    Arena, Bell, BellBoard, Channel, Consumer, PendingLarge, Producer, RingPlace, Segment,
};
use tharsis_types::payload::{FrameLayout, PayloadKind};
use twox_hash::XxHash3_64;

const SEGMENT: &str = include_str!("../../docs/formats/segment.md");
const ARENA: &str = include_str!("../../docs/formats/arena.md");
const SPILL: &str = include_str!("../../docs/formats/spill.md");

/// The bytes of an example: `None` for one that differs from run to run.
fn example(document: &str, name: &str, len: usize) -> Vec<Option<u8>> {
    let fence = format!("```golden {name}\n");
    let (_, rest) = document.split_once(&fence).unwrap_or_else(|| panic!("no example {name}"));
    let (block, _) = rest.split_once("```").unwrap();
    let mut bytes = vec![Some(0); len];
    for line in block.lines() {
        let (offset, rest) = line.split_once(": ").unwrap_or_else(|| panic!("{name}: {line:?}"));
        let offset = usize::from_str_radix(offset.trim(), 16).unwrap();
        let shown = rest.split("  ").next().unwrap_or_default();
        for (index, byte) in shown.split_whitespace().enumerate() {
            let byte = (byte != "..").then(|| u8::from_str_radix(byte, 16).unwrap());
            *bytes.get_mut(offset + index).unwrap_or_else(|| panic!("{name}: {line:?} is outside")) = byte;
        }
    }
    bytes
}

/// Asserts that the written bytes are those of an example.
fn assert_is(document: &str, name: &str, written: &[u8]) {
    let shown = example(document, name, written.len());
    let differs = |at: &usize| shown[*at].is_some_and(|byte| byte != written[*at]);
    if let Some(at) = (0..written.len()).find(differs) {
        let lines =
            (0..written.len()).step_by(16).filter(|at| written[*at..].iter().take(16).any(|b| *b != 0));
        let dump: Vec<String> = lines
            .map(|at| {
                let bytes: Vec<_> = written[at..].iter().take(16).map(|byte| format!("{byte:02x}")).collect();
                format!("{at:04x}: {}", bytes.join(" "))
            })
            .collect();
        panic!("{name} differs at {at:#x}; written was\n{}", dump.join("\n"));
    }
}

/// A named segment, whose bytes any process can read from its file.
fn segment(bytes: usize) -> Arc<Segment> {
    Arc::new(Segment::create("formats", bytes).unwrap())
}

fn bytes_of(segment: &Segment) -> Vec<u8> {
    fs::read(Path::new("/dev/shm").join(segment.name())).unwrap()
}

#[test]
fn a_ring_is_laid_out_as_documented() {
    let segment = segment(640);
    let place = RingPlace::new(Arc::clone(&segment), 0, 256).unwrap();
    place.format().unwrap();
    let mut producer = Producer::attach(place.clone(), 1000).unwrap();
    let mut consumer = Consumer::attach(place, 1000).unwrap();
    assert_is(SEGMENT, "ring-empty", &bytes_of(&segment)[..640]);
    producer.try_push(&[b"hel", b"lo"]).unwrap();
    producer.publish();
    assert_is(SEGMENT, "ring-message", &bytes_of(&segment)[..640]);
    assert_eq!(consumer.peek().unwrap().unwrap(), b"hello");
    consumer.advance();
    consumer.release();
    let mut large = PendingLarge::new((0..100).collect());
    assert!(producer.try_push_large(&mut large).unwrap());
    assert_is(SEGMENT, "ring-fragments", &bytes_of(&segment)[..640]);
    assert_eq!(consumer.peek().unwrap().unwrap(), (0..100).collect::<Vec<u8>>());
    consumer.advance();
    consumer.release();
    // A record that does not fit before the end is preceded by a pad.
    for _ in 0..2 {
        producer.try_push(&[&[0xaa; 56]]).unwrap();
    }
    producer.publish();
    assert_is(SEGMENT, "ring-wrapped", &bytes_of(&segment)[..640]);
}

#[test]
fn bells_and_boards_are_laid_out_as_documented() {
    let segment = segment(1024);
    let board = BellBoard::at(&segment, 0).unwrap();
    let bell = Bell::at(&segment, 704).unwrap();
    board.mark_and_ring(0);
    board.mark_and_ring(130);
    bell.ring();
    assert_is(SEGMENT, "board", &bytes_of(&segment)[..1024]);
    let mut seen = Vec::new();
    board.take_marked(|index| seen.push(index));
    assert_eq!(seen, [0, 130]);
    assert!(bytes_of(&segment).iter().all(|byte| *byte == 0), "marks that were taken are gone");
}

#[test]
fn a_channel_is_laid_out_as_documented() {
    let segment = segment(Channel::BYTES);
    let _node = Channel::node_side(&segment).unwrap();
    let client = Channel::client_side(&segment);
    assert!(client.is_ok());
    assert_is(SEGMENT, "channel", &bytes_of(&segment)[..Channel::BYTES]);
}

#[test]
fn a_frame_in_the_arena_is_laid_out_as_documented() {
    let arena = Arena::create(1).unwrap();
    assert_eq!(arena.len(), 2 << 20, "whole huge pages");
    let layout = FrameLayout::new(PayloadKind::Tensor, 7, 3, [5, 2]).unwrap();
    let mut full = Vec::new();
    layout.push_frame(&[1, 2, 3], &[&b"fiver"[..], b"xy"], &mut full);
    assert_is(ARENA, "frame", &full);
    let compact = FrameLayout::new(PayloadKind::Serde, 0, 3, []).unwrap();
    let mut bytes = Vec::new();
    compact.push_frame(&[1, 2, 3], &[] as &[&[u8]], &mut bytes);
    assert_is(ARENA, "frame-compact", &bytes);
    let kinds = [PayloadKind::Serde, PayloadKind::Bytes, PayloadKind::Tensor, PayloadKind::Arrow];
    for (byte, kind) in (1..).zip(kinds) {
        assert_eq!(FrameLayout::new(kind, 0, 0, [1]).unwrap().head()[5], byte, "{kind:?}");
    }
}

/// The only segment file of the only session below a directory.
fn spilled(dir: &Path) -> PathBuf {
    let session = fs::read_dir(dir).unwrap().next().unwrap().unwrap().path();
    let name = session.file_name().unwrap().to_str().unwrap().to_owned();
    let parts: Vec<&str> = name.strip_prefix("tharsis-spill-").unwrap().split('-').collect();
    assert_eq!((parts[0].parse(), parts[1].len()), (Ok(std::process::id()), 16), "{name}");
    session.join("segment-0")
}

fn number(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap())
}

#[test]
fn a_spilled_object_is_laid_out_as_documented() {
    let root = tempfile::tempdir().unwrap();
    let dir = SpillDir::open(root.path(), u64::MAX, &SpillOptions::default()).unwrap();
    dir.write(&[0x11; 20], &[b"first"]).unwrap();
    dir.write(&[0x22; 20], &[b"second"]).unwrap();
    let bytes = fs::read(spilled(root.path())).unwrap();
    assert_eq!(bytes.len(), 4 * 4096, "a header and a block each");
    assert_is(SPILL, "spill", &bytes);
    for object in bytes.chunks(8192) {
        let (header, block) = object.split_at(4096);
        let mut blank = header.to_vec();
        blank[80..88].fill(0);
        assert_eq!(number(header, 80), XxHash3_64::oneshot(&blank), "the checksum of the header");
        assert_eq!(
            number(header, 88),
            XxHash3_64::oneshot(block),
            "the checksum of the block, padding included"
        );
    }
    assert_eq!(bytes[40..48], bytes[8232..8240], "one session");
    assert_ne!(number(&bytes, 40), 0);
}
