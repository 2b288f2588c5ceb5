//! Cost of a message and of a wake-up: rings and bells between two threads, and between two processes.
//!
//! `cargo run --release -p tharsis-object-store --example ring_floor`

// The example exists to print its results.
#![allow(clippy::print_stdout)]

use std::env;
use std::error::Error;
use std::hint::spin_loop;
use std::process::Command;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};
use tharsis_object_store::{Bell, Consumer, Producer, RingPlace, Segment, SpinPolicy};

const CAPACITY: usize = 1 << 20;
const MESSAGE_MAX: usize = 1 << 24;
const MESSAGES: u64 = 50_000_000;
const ROUND_TRIPS: u32 = 100_000;
const LIMIT: Option<Duration> = Some(Duration::from_secs(30));
const RING_STRIDE: usize = RingPlace::bytes(CAPACITY).next_multiple_of(128);
const BELLS: usize = 2 * RING_STRIDE;

type Outcome = Result<(), Box<dyn Error>>;

fn main() -> Outcome {
    let mut arguments = env::args().skip(1);
    if let (Some(name), Some(spin_us)) = (arguments.next(), arguments.next()) {
        let segment = Arc::new(Segment::open(&name)?);
        return echo(&segment, SpinPolicy { spin_us: spin_us.parse()?, bursts_per_yield: 1 });
    }
    batch_on_one_thread()?;
    for batch in [1, 16, 256] {
        stream_between_threads(batch)?;
    }
    for spin_us in [0, 20, 1000] {
        ping_pong(spin_us)?;
    }
    Ok(())
}

fn segment() -> Result<Arc<Segment>, Box<dyn Error>> {
    let segment = Arc::new(Segment::create("ring-floor", BELLS + 128)?);
    for place in [0, RING_STRIDE] {
        RingPlace::new(Arc::clone(&segment), place, CAPACITY)?.format()?;
    }
    Ok(segment)
}

fn ends(segment: &Arc<Segment>, there: usize, back: usize) -> Result<(Producer, Consumer), Box<dyn Error>> {
    let place = |offset| RingPlace::new(Arc::clone(segment), offset, CAPACITY);
    Ok((Producer::attach(place(there)?, MESSAGE_MAX)?, Consumer::attach(place(back)?, MESSAGE_MAX)?))
}

fn batch_on_one_thread() -> Outcome {
    let (mut producer, mut consumer) = ends(&segment()?, 0, 0)?;
    let message = [7_u8; 32];
    let started = Instant::now();
    let mut sum = 0_u64;
    for _ in 0..MESSAGES / 256 {
        for _ in 0..256 {
            producer.try_push(&[&message])?;
        }
        producer.publish();
        consumer.drain(256, |m| sum += u64::from(m[0]))?;
    }
    report("push + pop, one thread, batches of 256", started.elapsed(), MESSAGES, sum);
    Ok(())
}

fn stream_between_threads(batch: u64) -> Outcome {
    let (mut producer, mut consumer) = ends(&segment()?, 0, 0)?;
    let started = Instant::now();
    let sum = thread::scope(|scope| {
        scope.spawn(move || {
            let message = [7_u8; 32];
            for i in 0..MESSAGES {
                while producer.try_push(&[&message]).is_err() {
                    producer.publish();
                    spin_loop();
                }
                if i % batch == 0 {
                    producer.publish();
                }
            }
            producer.publish();
        });
        let (mut count, mut sum) = (0, 0_u64);
        while count < MESSAGES {
            match consumer.drain(1024, |m| sum += u64::from(m[0])) {
                Ok(0) => spin_loop(),
                Ok(n) => count += n as u64,
                Err(_) => break,
            }
        }
        sum
    });
    report(&format!("two threads, published by {batch}"), started.elapsed(), MESSAGES, sum);
    Ok(())
}

fn ping_pong(spin_us: u32) -> Outcome {
    let segment = segment()?;
    let spin = SpinPolicy { spin_us, bursts_per_yield: 1 };
    let mut peer = Command::new(env::current_exe()?).args([segment.name(), &spin_us.to_string()]).spawn()?;
    let (mut producer, mut consumer) = ends(&segment, 0, RING_STRIDE)?;
    let (there, back) = (Bell::at(&segment, BELLS)?, Bell::at(&segment, BELLS + 64)?);
    let mut started = Instant::now();
    for i in 0..ROUND_TRIPS + 1000 {
        if i == 1000 {
            started = Instant::now();
        }
        producer.try_push(&[&i.to_le_bytes()])?;
        producer.publish();
        there.ring();
        if !back.wait(spin, LIMIT, || consumer.has_news()) {
            return Err("the peer is silent".into());
        }
        consumer.drain(1, |_| ())?;
        consumer.release();
    }
    let name = format!("round trip between processes, spin {spin_us} us");
    report(&name, started.elapsed(), u64::from(ROUND_TRIPS), 0);
    producer.try_push(&[])?;
    producer.publish();
    there.ring();
    peer.wait()?;
    Ok(())
}

fn echo(segment: &Arc<Segment>, spin: SpinPolicy) -> Outcome {
    let (mut producer, mut consumer) = ends(segment, RING_STRIDE, 0)?;
    let (there, back) = (Bell::at(segment, BELLS)?, Bell::at(segment, BELLS + 64)?);
    let mut is_over = false;
    while !is_over {
        if !there.wait(spin, LIMIT, || consumer.has_news()) {
            return Err("the peer is silent".into());
        }
        let mut message = Vec::new();
        consumer.drain(1, |m| message.extend_from_slice(m))?;
        consumer.release();
        is_over = message.is_empty();
        producer.try_push(&[&message])?;
        producer.publish();
        back.ring();
    }
    Ok(())
}

fn report(name: &str, elapsed: Duration, count: u64, sum: u64) {
    let ns = elapsed.as_nanos() as f64 / count as f64;
    println!("{name:45} {ns:9.1} ns  {:8.2} M/s  (check {sum})", 1e3 / ns);
}
