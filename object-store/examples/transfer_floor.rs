//! Compares a transfer with bare reads and writes over the same loopback.
//!
//! `cargo run --release -p tharsis-object-store --example transfer_floor`

// The example exists to print its results.
#![allow(clippy::print_stdout)]

use std::error::Error;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::{Duration, Instant};
use tharsis_object_store::Arena;
use tharsis_object_store::transfer::{ObjectKey, Receiver, Source, SourceRange, serve};

const BYTES: usize = 1 << 30;
const CHUNK: usize = 1 << 20;
const ROUNDS: usize = 4;

struct OneObject {
    arena: Arena,
}

impl Source for OneObject {
    fn open(&self, _key: &ObjectKey) -> Option<SourceRange> {
        let slice = self.arena.map().slice(0, BYTES as u64).ok()?;
        Some(SourceRange::Memory(Box::new(slice)))
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let arena = Arena::create(2 * BYTES as u64)?;
    arena.map().make_pages(0, 2 * BYTES as u64)?;
    arena.map().write(0, BYTES as u64)?.fill(7);
    let mut target = arena.map().write(BYTES as u64, BYTES as u64)?;
    target.fill(1);
    let object = Arc::new(OneObject { arena });
    let (client, server) = sockets()?;
    let sender = {
        let object = Arc::clone(&object);
        thread::spawn(move || serve(server, &*object, &AtomicBool::new(false)))
    };
    let mut receiver = Receiver::new(client)?;
    let mut best = [f64::INFINITY; 2];
    for _ in 0..ROUNDS {
        best[0] = best[0].min(raw(&object, &mut target)?);
        let started = Instant::now();
        receiver.fetch(&[0; 20], 0, &mut target, Duration::from_secs(60))?;
        best[1] = best[1].min(started.elapsed().as_secs_f64());
    }
    drop(receiver);
    sender.join().map_err(|_| "the sender died")??;
    let speed = |seconds: f64| BYTES as f64 / seconds / 1e9;
    println!("raw read/write {:.2} GB/s, transfer {:.2} GB/s", speed(best[0]), speed(best[1]));
    println!("transfer / raw: {:.2}", best[0] / best[1]);
    Ok(())
}

fn raw(object: &Arc<OneObject>, target: &mut [u8]) -> Result<f64, Box<dyn Error>> {
    let (mut client, mut server) = sockets()?;
    let source = object.arena.map().slice(0, BYTES as u64)?;
    let started = Instant::now();
    let sender = thread::spawn(move || source.chunks(CHUNK).try_for_each(|c| server.write_all(c)));
    for piece in target.chunks_mut(CHUNK) {
        client.read_exact(piece)?;
    }
    let seconds = started.elapsed().as_secs_f64();
    sender.join().map_err(|_| "the sender died")??;
    Ok(seconds)
}

fn sockets() -> Result<(TcpStream, TcpStream), Box<dyn Error>> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let client = TcpStream::connect(listener.local_addr()?)?;
    let (server, _) = listener.accept()?;
    client.set_nodelay(true)?;
    Ok((client, server))
}
