//! A producer killed at full speed: all that it published is read whole and in order, and nothing else.

// Tests and their helper functions may panic on failure.
#![allow(clippy::unwrap_used)]

use std::env;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;
use tharsis_object_store::{Bell, Consumer, Producer, RingPlace, Segment, SpinPolicy};

const CAPACITY: usize = 1 << 16;
const BELL: usize = RingPlace::bytes(CAPACITY).next_multiple_of(128);
const NAME: &str = "THARSIS_TEST_SEGMENT";

fn place(segment: &Arc<Segment>) -> RingPlace {
    RingPlace::new(Arc::clone(segment), 0, CAPACITY).unwrap()
}

/// The child: writes until it is killed.
#[test]
fn write_for_ever() {
    let Ok(name) = env::var(NAME) else { return };
    let segment = Arc::new(Segment::open(&name).unwrap());
    let mut producer = Producer::attach(place(&segment), CAPACITY).unwrap();
    let bell = Bell::at(&segment, BELL).unwrap();
    for i in 0_u64.. {
        let message = i.to_le_bytes().repeat(1 + i as usize % 50);
        while producer.try_push(&[&message]).is_err() {
            producer.publish();
            bell.ring();
            std::thread::yield_now();
        }
    }
}

#[test]
fn what_was_published_survives_the_producer() {
    if env::var(NAME).is_ok() {
        return;
    }
    for round in 0..5 {
        let segment = Arc::new(Segment::create("death", BELL + 64).unwrap());
        place(&segment).format().unwrap();
        let bell = Bell::at(&segment, BELL).unwrap();
        let mut consumer = Consumer::attach(place(&segment), CAPACITY).unwrap();
        let mut child = Command::new(env::current_exe().unwrap())
            .args(["write_for_ever", "--exact", "--quiet"])
            .env(NAME, segment.name())
            // Its list of tests has no result.
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let mut next = 0_u64;
        let mut take = |consumer: &mut Consumer| {
            let count = consumer.drain(usize::MAX, |message| {
                assert_eq!(message.len(), 8 * (1 + next as usize % 50));
                assert!(message.chunks_exact(8).all(|c| c == next.to_le_bytes()));
                next += 1;
            });
            count.unwrap()
        };
        let mut seen = 0;
        while seen < 20_000 + 7777 * round {
            let limit = Some(Duration::from_secs(20));
            assert!(bell.wait(SpinPolicy::SLEEP, limit, || consumer.has_news()), "the child is silent");
            seen += take(&mut consumer);
        }
        child.kill().unwrap();
        child.wait().unwrap();
        take(&mut consumer);
        assert_eq!(consumer.peek(), Ok(None));
        // A new producer continues where the dead one stopped.
        let mut producer = Producer::attach(place(&segment), CAPACITY).unwrap();
        producer.try_push(&[b"again"]).unwrap();
        producer.publish();
        assert_eq!(consumer.peek(), Ok(Some(&b"again"[..])));
    }
}
