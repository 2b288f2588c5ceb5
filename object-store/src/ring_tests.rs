//! Tests of the ring: order, wrap, fragments, a model, and a producer that lies.

use super::*;
use crate::segment::Segment;
use proptest::prelude::*;
use std::collections::VecDeque;
use std::sync::Arc;

const MESSAGE_MAX: usize = 1 << 16;

fn place(capacity: usize) -> RingPlace {
    let segment = Arc::new(Segment::anonymous(RingPlace::bytes(capacity)).unwrap());
    let place = RingPlace::new(segment, 0, capacity).unwrap();
    place.format().unwrap();
    place
}

fn pair(capacity: usize) -> (Producer, Consumer) {
    let place = place(capacity);
    (Producer::attach(place.clone(), MESSAGE_MAX).unwrap(), Consumer::attach(place, MESSAGE_MAX).unwrap())
}

fn pop(consumer: &mut Consumer) -> Option<Vec<u8>> {
    let message = consumer.peek().unwrap().map(<[u8]>::to_vec);
    consumer.advance();
    message
}

#[test]
fn nothing_is_seen_before_it_is_published() {
    let (mut producer, mut consumer) = pair(1024);
    producer.try_push(&[b"ab", b"", b"cde"]).unwrap();
    assert_eq!(pop(&mut consumer), None);
    producer.try_reserve(10).unwrap()[..2].copy_from_slice(b"xy");
    producer.commit(2);
    assert!(producer.publish());
    assert!(!producer.publish());
    producer.try_reserve(100).unwrap().fill(9);
    assert!(consumer.has_news());
    assert_eq!(consumer.peek(), Ok(Some(&b"abcde"[..])));
    assert_eq!(pop(&mut consumer).unwrap(), b"abcde");
    assert_eq!(pop(&mut consumer).unwrap(), b"xy");
    assert_eq!(pop(&mut consumer), None);
    assert!(!consumer.has_news());
}

#[test]
fn what_was_shown_does_not_change_in_the_ring() {
    let place = place(256);
    let mut producer = Producer::attach(place.clone(), MESSAGE_MAX).unwrap();
    let mut consumer = Consumer::attach(place.clone(), MESSAGE_MAX).unwrap();
    producer.try_push(&[b"checked"]).unwrap();
    producer.publish();
    assert_eq!(consumer.peek(), Ok(Some(&b"checked"[..])));
    let content = place.mapped_for_tests().content(0, 7);
    // SAFETY: the bytes of the message above, which no other code reads meanwhile.
    unsafe { content.cast::<u8>().write(b'X') };
    assert_eq!(pop(&mut consumer).unwrap(), b"checked");
    assert_eq!(pop(&mut consumer), None);
}

#[test]
fn a_full_ring_refuses_and_recovers_for_every_length() {
    for len in [0, 1, 7, 8, 9, 56, 63, 64] {
        let (mut producer, mut consumer) = pair(256);
        let message = vec![len as u8; len];
        for _ in 0..50 {
            let mut count = 0;
            while producer.try_push(&[&message]).is_ok() {
                count += 1;
            }
            assert!(0 < count, "progress with {len}");
            assert_eq!(producer.try_push(&[&message]), Err(PushError::Full));
            producer.publish();
            assert_eq!(consumer.drain(1000, |m| assert_eq!(m, message)), Ok(count));
            assert_eq!(pop(&mut consumer), None);
            assert!(consumer.take_released() && !consumer.take_released());
        }
    }
    let (mut producer, _) = pair(256);
    assert_eq!(producer.try_push(&[&[0; 65]]), Err(PushError::TooLarge { len: 65, limit_bytes: 64 }));
}

#[test]
fn a_large_message_flows_through_a_small_ring() {
    let (mut producer, mut consumer) = pair(512);
    let bytes: Vec<u8> = (0..20_000_u32).map(|i| (i * 7) as u8).collect();
    producer.try_push(&[b"before"]).unwrap();
    let mut large = PendingLarge::new(bytes.clone());
    let mut received = Vec::new();
    while !producer.try_push_large(&mut large).unwrap() {
        assert_eq!(producer.try_push(&[b"no"]), Err(PushError::LargeUnderway));
        assert_eq!(
            producer.try_push_large(&mut PendingLarge::new(vec![0; 300])),
            Err(PushError::LargeUnderway)
        );
        consumer.drain(10, |m| received.push(m.to_vec())).unwrap();
    }
    assert_eq!(large.remaining_bytes(), 0);
    consumer.drain(10, |m| received.push(m.to_vec())).unwrap();
    producer.try_push(&[b"after"]).unwrap();
    producer.publish();
    consumer.drain(10, |m| received.push(m.to_vec())).unwrap();
    assert_eq!(received, [b"before".to_vec(), bytes, b"after".to_vec()]);
    let refused = producer.try_push_large(&mut PendingLarge::new(vec![0; MESSAGE_MAX + 1]));
    assert_eq!(refused, Err(PushError::TooLarge { len: MESSAGE_MAX + 1, limit_bytes: MESSAGE_MAX }));
}

#[test]
fn ends_can_be_taken_up_again() {
    let place = place(256);
    let mut producer = Producer::attach(place.clone(), MESSAGE_MAX).unwrap();
    producer.try_push(&[b"one"]).unwrap();
    producer.publish();
    producer.try_push(&[b"lost: never published"]).unwrap();
    drop(producer);
    let mut producer = Producer::attach(place.clone(), MESSAGE_MAX).unwrap();
    producer.try_push(&[b"two"]).unwrap();
    producer.publish();
    let mut consumer = Consumer::attach(place.clone(), MESSAGE_MAX).unwrap();
    assert_eq!(pop(&mut consumer).unwrap(), b"one");
    consumer.release();
    drop(consumer);
    let mut consumer = Consumer::attach(place, MESSAGE_MAX).unwrap();
    assert_eq!(pop(&mut consumer).unwrap(), b"two");
}

#[test]
fn a_place_must_hold_a_ring_of_this_capacity() {
    let segment = Arc::new(Segment::anonymous(4096).unwrap());
    assert!(RingPlace::new(Arc::clone(&segment), 0, 4096).is_err());
    assert!(RingPlace::new(Arc::clone(&segment), 64, 1024).is_err());
    assert!(RingPlace::new(Arc::clone(&segment), 0, 1000).is_err());
    let raw = RingPlace::new(Arc::clone(&segment), 0, 1024).unwrap();
    assert!(Producer::attach(raw.clone(), 1).is_err());
    raw.format().unwrap();
    assert!(Consumer::attach(RingPlace::new(segment, 0, 512).unwrap(), 1).is_err());
}

/// A side that attaches continues from the stored positions, which must not be near the largest number.
#[test]
fn positions_that_no_ring_reaches_are_refused() {
    for (position, is_sound) in [(1 << 62, true), (u64::MAX - 255, false), (u64::MAX - 7, false)] {
        let place = place(256);
        let mapped = place.clone().mapped_for_tests();
        mapped.words().published.0.store(position, Ordering::Relaxed);
        mapped.words().consumed.0.store(position, Ordering::Relaxed);
        let ends = (Producer::attach(place.clone(), 1000), Consumer::attach(place, 1000));
        assert_eq!((ends.0.is_ok(), ends.1.is_ok()), (is_sound, is_sound), "{position:#x}");
        if let (Ok(mut producer), Ok(mut consumer)) = ends {
            while producer.try_push(&[b"message"]).is_ok() {}
            producer.publish();
            assert_eq!(pop(&mut consumer).as_deref(), Some(&b"message"[..]));
        }
    }
}

#[test]
fn two_threads_exchange_a_stream_in_order() {
    let (mut producer, mut consumer) = pair(4096);
    let sender = std::thread::spawn(move || {
        for i in 0..200_000_u64 {
            let mut large = PendingLarge::new(i.to_le_bytes().repeat(1 + (i as usize * 31) % 300));
            while !producer.try_push_large(&mut large).unwrap() {
                std::thread::yield_now();
            }
        }
    });
    let mut next = 0_u64;
    while next < 200_000 {
        let count = consumer
            .drain(100, |m| {
                assert_eq!(m.len() / 8, 1 + (next as usize * 31) % 300);
                assert!(m.chunks_exact(8).all(|c| c == next.to_le_bytes()));
                next += 1;
            })
            .unwrap();
        if count == 0 {
            std::thread::yield_now();
        }
    }
    sender.join().unwrap();
}

#[derive(Clone, Debug)]
enum Step {
    Push(usize),
    Publish,
    Pop,
    Release,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0..80_usize).prop_map(Step::Push),
        1 => (80..3000_usize).prop_map(Step::Push),
        3 => Just(Step::Publish),
        6 => Just(Step::Pop),
        1 => Just(Step::Release),
    ]
}

proptest! {
    #[test]
    fn behaves_as_a_queue(steps in prop::collection::vec(step(), 0..300)) {
        let (mut producer, mut consumer) = pair(512);
        let (mut staged, mut visible) = (VecDeque::new(), VecDeque::new());
        let mut stamp = 0_u8;
        for step in steps {
            match step {
                Step::Push(len) => {
                    stamp = stamp.wrapping_add(1);
                    let message = vec![stamp; len];
                    if len <= producer.record_bytes_max() {
                        match producer.try_push(&[&message]) {
                            Ok(()) => staged.push_back(message),
                            Err(error) => prop_assert_eq!(error, PushError::Full),
                        }
                        continue;
                    }
                    visible.append(&mut staged);
                    visible.push_back(message.clone());
                    let mut large = PendingLarge::new(message);
                    while !producer.try_push_large(&mut large).unwrap() {
                        if let Some(got) = pop(&mut consumer) {
                            prop_assert_eq!(Some(got), visible.pop_front());
                        }
                    }
                }
                Step::Publish => {
                    producer.publish();
                    visible.append(&mut staged);
                }
                Step::Pop => prop_assert_eq!(pop(&mut consumer), visible.pop_front()),
                Step::Release => consumer.release(),
            }
        }
    }

    #[test]
    fn a_lying_producer_is_an_error_and_never_more(
        noise in prop::collection::vec((0..640_usize, any::<u8>()), 0..40),
        published in prop_oneof![Just(None), any::<u64>().prop_map(Some), (0..80_u64).prop_map(|p| Some(p * 8))],
        lens in prop::collection::vec(0..200_usize, 0..10),
    ) {
        let place = place(256);
        let mut producer = Producer::attach(place.clone(), 1000).unwrap();
        let mut consumer = Consumer::attach(place.clone(), 1000).unwrap();
        for len in lens {
            let _ = producer.try_push_large(&mut PendingLarge::new(vec![1; len]));
        }
        for (at, byte) in noise {
            // SAFETY: within the place; this is the hostile peer, in the same thread.
            unsafe { place.base().unwrap().add(at).write_volatile(byte) };
        }
        if let Some(published) = published {
            place.clone().mapped_for_tests().words().published.0.store(published, Ordering::Relaxed);
        }
        for _ in 0..100 {
            match consumer.peek() {
                Ok(Some(message)) => prop_assert!(message.len() <= 1000),
                Ok(None) => break,
                Err(first) => {
                    prop_assert_eq!(consumer.peek(), Err(first));
                    break;
                }
            }
            consumer.advance();
            prop_assert!(consumer.copied.capacity() <= 1000);
        }
        let _ = producer.try_push(&[b"x"]);
        let _ = Producer::attach(place.clone(), 1000);
        let _ = Consumer::attach(place, 1000);
    }

    #[test]
    fn random_words_as_headers_never_panic(words in prop::collection::vec(
        prop_oneof![any::<u64>(), (1..6_u32, 0..100_u32).prop_map(|(k, l)| u64::from(l) | u64::from(0x5448_5200 | k) << 32), (0..2000_u64)], 32)) {
        let place = place(256);
        let mut consumer = Consumer::attach(place.clone(), 1000).unwrap();
        let mapped = place.mapped_for_tests();
        for (index, word) in words.iter().enumerate() {
            mapped.header(index * 8).store(*word, Ordering::Relaxed);
        }
        mapped.words().published.0.store(256, Ordering::Release);
        while let Ok(Some(message)) = consumer.peek() {
            prop_assert!(message.len() <= 1000);
            consumer.advance();
        }
    }
}
