//! Speed of the machine without us: two processes that wake each other, a socket echo, memcpy.
//!
//! The other process of a floor is this program again, started with `bench-peer KIND ARGUMENT`.

use anyhow::{Context, Result, bail};
use rustls::{ClientConnection, ServerConnection, StreamOwned};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::process::{Child, Command};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tharsis_identity::{Authority, Called, Role, Tls};
use tharsis_object_store::{Arena, Channel, Segment, SpinPolicy, local_socket};

/// Messages of one batch of the echo.
const ECHO_BATCH: usize = 64;
/// Bytes of one message of the echo, about a task's record.
const ECHO_BYTES: usize = 100;
/// Bytes per system call over TCP.
const TCP_CHUNK_BYTES: usize = 1 << 20;
/// Number of runs of which the best is the floor.
const FLOOR_ROUNDS: usize = 5;
const PEER_WAIT: Duration = Duration::from_secs(10);

/// Round trip of a message between two processes through shared memory, in microseconds: (sleeping on a futex
/// each time, spinning).
pub fn wake_round_trip_us(rounds: usize) -> Result<(f64, f64)> {
    Ok((ping_pong(rounds, SpinPolicy::SLEEP, "sleep")?, ping_pong(rounds * 4, SpinPolicy::BRIEF, "spin")?))
}

/// Messages per second that one process can send to another over a Unix socket in batches and get back.
pub fn socket_echo_per_s(messages: usize) -> Result<f64> {
    let path = std::env::temp_dir().join(format!("tharsis-echo-{}", std::process::id()));
    let _stale = std::fs::remove_file(&path);
    let listener = UnixListener::bind(&path)?;
    let mut child = peer("echo", &path.display().to_string())?;
    let (mut stream, _) = listener.accept()?;
    std::fs::remove_file(&path)?;
    let rate = echo(&mut stream, messages)?;
    drop(stream);
    child.wait()?;
    Ok(rate)
}

/// Copies of `bytes` bytes between warm buffers, in GB/s: the better of one thread and two.
pub fn memcpy_gb_s(bytes: usize) -> f64 {
    let source = vec![1u8; bytes];
    let mut target = vec![2u8; bytes];
    let mut best: f64 = 0.0;
    for threads in [1, 2] {
        for _ in 0..3 {
            let started = Instant::now();
            copy_with(threads, &mut target, &source);
            best = best.max(bytes as f64 / 1e9 / started.elapsed().as_secs_f64());
        }
    }
    std::hint::black_box(&target);
    best
}

/// The same into shared memory without pages, in GB/s.
pub fn cold_memcpy_gb_s(bytes: usize) -> Result<f64> {
    let source = vec![1u8; bytes];
    let mut best: f64 = 0.0;
    for threads in [1, 2] {
        let fresh = Arena::create(bytes as u64)?;
        let mut target = fresh.map().write(0, bytes as u64)?;
        let started = Instant::now();
        copy_with(threads, &mut target, &source);
        best = best.max(bytes as f64 / 1e9 / started.elapsed().as_secs_f64());
    }
    Ok(best)
}

/// Bytes from another process over TCP on loopback into a warm buffer, in GB/s.
pub fn tcp_gb_s(bytes: usize) -> Result<f64> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let mut child = peer("tcp", &format!("{} {bytes}", listener.local_addr()?))?;
    let (stream, _) = listener.accept()?;
    let rate = best_rate(stream, bytes)?;
    child.wait()?;
    Ok(rate)
}

/// The same under TLS 1.3, with the library and the ciphers of a cluster's connections.
pub fn tls_gb_s(bytes: usize) -> Result<f64> {
    let folder = tempfile::tempdir()?;
    let own = tls_in(folder.path())?;
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let argument = format!("{} {bytes} {}", listener.local_addr()?, folder.path().display());
    let mut child = peer("tls", &argument)?;
    let (stream, _) = listener.accept()?;
    stream.set_nodelay(true)?;
    let rate = best_rate(StreamOwned::new(ServerConnection::new(own.server())?, stream), bytes)?;
    child.wait()?;
    Ok(rate)
}

/// An identity of the authority in a folder, which is made if it is not there.
fn tls_in(folder: &Path) -> Result<Tls> {
    let authority = Authority::load_or_make(folder)?;
    Ok(Tls::new(&authority.own(Role::Node, None, true, Duration::from_secs(3600))?)?)
}

/// The best of several runs in which the other side sends `bytes` bytes when it is asked.
fn best_rate(mut stream: impl Read + Write, bytes: usize) -> Result<f64> {
    let mut target = vec![1u8; bytes];
    let mut best: f64 = 0.0;
    for _ in 0..FLOOR_ROUNDS {
        let started = Instant::now();
        stream.write_all(&[1])?;
        stream.flush()?;
        for piece in target.chunks_mut(TCP_CHUNK_BYTES) {
            stream.read_exact(piece)?;
        }
        best = best.max(bytes as f64 / 1e9 / started.elapsed().as_secs_f64());
    }
    Ok(best)
}

/// The other process of a floor.
///
/// # Errors
/// An unknown kind, or a peer that went away.
pub fn serve(kind: &str, argument: &str) -> Result<()> {
    match kind {
        "sleep" => answer_pings(argument, SpinPolicy::SLEEP),
        "spin" => answer_pings(argument, SpinPolicy::BRIEF),
        "echo" => answer_echo(argument),
        "tcp" => send_over_tcp(argument),
        "tls" => send_over_tls(argument),
        _ => bail!("unknown floor {kind:?}"),
    }
}

fn copy_with(threads: usize, target: &mut [u8], source: &[u8]) {
    let part = target.len().div_ceil(threads);
    std::thread::scope(|scope| {
        for (t, s) in target.chunks_mut(part).zip(source.chunks(part)) {
            scope.spawn(move || t.copy_from_slice(s));
        }
    });
}

fn peer(kind: &str, argument: &str) -> Result<Child> {
    let program = std::env::current_exe()?;
    Command::new(program)
        .args(["bench-peer", kind, argument])
        .spawn()
        .context("cannot start the peer of a floor")
}

fn ping_pong(rounds: usize, policy: SpinPolicy, kind: &str) -> Result<f64> {
    // Two segments, because in a channel only the client has a bell.
    let (there, back) = (
        Arc::new(Segment::create("ping", Channel::BYTES)?),
        Arc::new(Segment::create("pong", Channel::BYTES)?),
    );
    let (mut to, mut from) = (Channel::node_side(&there)?, Channel::node_side(&back)?);
    let mut child = peer(kind, &format!("{} {}", there.name(), back.name()))?;
    let mut samples = Vec::with_capacity(rounds);
    for _ in 0..rounds {
        let started = Instant::now();
        to.producer.try_push(&[&[1; 32]])?;
        to.producer.publish();
        to.bell.ring();
        if !from.bell.wait(policy, Some(PEER_WAIT), || from.consumer.has_news()) {
            bail!("the peer of the floor does not answer");
        }
        from.consumer.drain(1, |_| ())?;
        samples.push(started.elapsed().as_secs_f64() * 1e6);
    }
    to.producer.try_push(&[&[0; 32]])?;
    to.producer.publish();
    to.bell.ring();
    child.wait()?;
    Ok(super::statistics::median(&mut samples))
}

fn answer_pings(names: &str, policy: SpinPolicy) -> Result<()> {
    let (there, back) = names.split_once(' ').context("two segments")?;
    let mut from = Channel::client_side(&Arc::new(Segment::open(there)?))?;
    let mut to = Channel::client_side(&Arc::new(Segment::open(back)?))?;
    let mut more = true;
    while more {
        if !from.bell.wait(policy, Some(PEER_WAIT), || from.consumer.has_news()) {
            bail!("no pings");
        }
        from.consumer.drain(1, |message| more = message.first() == Some(&1))?;
        to.producer.try_push(&[&[2; 32]])?;
        to.producer.publish();
        to.bell.ring();
    }
    Ok(())
}

fn send_over_tcp(argument: &str) -> Result<()> {
    let (address, bytes) = argument.split_once(' ').context("an address and a length")?;
    send_when_asked(TcpStream::connect(address)?, bytes.parse()?)
}

fn send_over_tls(argument: &str) -> Result<()> {
    let mut parts = argument.splitn(3, ' ');
    let mut next = || parts.next().context("an address, a length and a folder");
    let (address, bytes, folder) = (next()?, next()?.parse()?, next()?);
    let connection =
        ClientConnection::new(tls_in(folder.as_ref())?.client(), Called::Control.server_name()?)?;
    let stream = TcpStream::connect(address)?;
    stream.set_nodelay(true)?;
    send_when_asked(StreamOwned::new(connection, stream), bytes)
}

fn send_when_asked(mut stream: impl Read + Write, bytes: usize) -> Result<()> {
    let source = vec![7u8; bytes];
    // The asking side hangs up at the end, under TLS without taking leave.
    while stream.read(&mut [0]).is_ok_and(|len| len == 1) {
        for piece in source.chunks(TCP_CHUNK_BYTES) {
            stream.write_all(piece)?;
        }
        stream.flush()?;
    }
    Ok(())
}

fn echo(stream: &mut UnixStream, messages: usize) -> Result<f64> {
    let batch = vec![7u8; ECHO_BATCH * ECHO_BYTES];
    let rounds = messages / ECHO_BATCH;
    let mut reader = stream.try_clone()?;
    let started = Instant::now();
    let reading = std::thread::spawn(move || -> Result<()> {
        let mut buffer = vec![0u8; 64 * ECHO_BYTES * ECHO_BATCH];
        let mut left = rounds * ECHO_BATCH * ECHO_BYTES;
        while left > 0 {
            let len = reader.read(&mut buffer)?;
            if len == 0 {
                bail!("the echo ended early");
            }
            left -= len;
        }
        Ok(())
    });
    for _ in 0..rounds {
        stream.write_all(&batch)?;
    }
    match reading.join() {
        Ok(outcome) => outcome?,
        Err(_) => bail!("the reader of the echo panicked"),
    }
    Ok((rounds * ECHO_BATCH) as f64 / started.elapsed().as_secs_f64())
}

fn answer_echo(path: &str) -> Result<()> {
    let mut stream = local_socket::connect(Path::new(path), PEER_WAIT)?;
    let mut buffer = vec![0u8; ECHO_BATCH * ECHO_BYTES];
    loop {
        let len = stream.read(&mut buffer)?;
        if len == 0 {
            return Ok(());
        }
        stream.write_all(&buffer[..len])?;
    }
}
