//! A service behind HTTP: a gateway actor with a listener of its own, models as actors behind it.
//! `cargo run --release --example web_service`
//!
//! The gateway is an actor that runs many calls at a time. Each of its `serve` calls takes a connection, asks
//! a model, and answers. A model takes a few calls at a time and no more: when all have enough, the gateway
//! answers `503` at once, and its clients come back later. So requests never pile up inside. The clients are
//! threads of this program; each answer is compared with what a plain function gives.
//!
//! Options: `--size N` (requests, default 2e4), `--workers N` (worker processes instead of threads),
//! `--nodes N` (so many nodes on this machine, a CPU each), `--address auto` (the node that runs on this
//! machine).

use common::{Options, Outcome};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use tharsis::prelude::*;

const MODELS: usize = 2;
/// Calls that the gateway may have at a model.
const PENDING_MAX: u32 = 4;
/// Connections that the gateway answers at a time.
const SERVING: usize = 16;
const CLIENTS: usize = 16;

/// Answers requests.
struct Model;

#[actor]
impl Model {
    fn new() -> Self {
        Self
    }

    async fn predict(&self, x: u64) -> u64 {
        predicted(x)
    }
}

/// Takes connections.
struct Gateway {
    listener: TcpListener,
    models: Vec<ModelHandle>,
    next: AtomicUsize,
    refused: AtomicUsize,
    is_stopped: AtomicBool,
}

#[actor(max_concurrency = 20)]
impl Gateway {
    fn new(models: Vec<ModelHandle>) -> Result<Self, std::io::Error> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let (next, refused) = (AtomicUsize::new(0), AtomicUsize::new(0));
        Ok(Self { listener, models, next, refused, is_stopped: AtomicBool::new(false) })
    }

    fn address(&self) -> Result<String, std::io::Error> {
        Ok(self.listener.local_addr()?.to_string())
    }

    /// Answers connections, one after the other, until the gateway is stopped. Returns their number.
    async fn serve(&self) -> Result<u64, std::io::Error> {
        let mut answered = 0;
        loop {
            let (stream, _) = self.listener.accept()?;
            if self.is_stopped.load(Ordering::Relaxed) {
                return Ok(answered);
            }
            // A client that goes away harms nobody else.
            if let Ok(()) = self.answer(stream).await {
                answered += 1;
            }
        }
    }

    /// Stops all calls of `serve`. Returns the number of requests that were refused.
    fn stop(&self) -> Result<usize, std::io::Error> {
        self.is_stopped.store(true, Ordering::Relaxed);
        for _ in 0..SERVING {
            TcpStream::connect(self.listener.local_addr()?)?;
        }
        Ok(self.refused.load(Ordering::Relaxed))
    }
}

impl Gateway {
    async fn answer(&self, mut stream: TcpStream) -> std::io::Result<()> {
        let mut first = String::new();
        let mut lines = BufReader::new(stream.try_clone()?).take(MAX_REQUEST);
        lines.read_line(&mut first)?;
        let mut line = String::new();
        while lines.read_line(&mut line)? > "\r\n".len() {
            line.clear();
        }
        let x = first.strip_prefix("GET /predict/").and_then(|rest| rest.split(' ').next()?.parse().ok());
        let (status, body) = match x {
            None => ("404 Not Found", "there is /predict/NUMBER".to_owned()),
            Some(x) => self.ask(x).await,
        };
        let head =
            format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", body.len());
        stream.write_all((head + &body).as_bytes())
    }

    /// Asks a model, the next one if it has enough to do.
    async fn ask(&self, x: u64) -> (&'static str, String) {
        for _ in 0..self.models.len() {
            let model = &self.models[self.next.fetch_add(1, Ordering::Relaxed) % self.models.len()];
            match model.predict(x).await {
                Ok(y) => return ("200 OK", y.to_string()),
                Err(error) if error.kind() == FailureKind::TooManyPendingCalls => {}
                Err(error) => return ("500 Internal Server Error", error.to_string()),
            }
        }
        self.refused.fetch_add(1, Ordering::Relaxed);
        ("503 Service Unavailable", "try again later".to_owned())
    }
}

/// Bytes of a request, at most.
const MAX_REQUEST: u64 = 16 << 10;

#[tharsis::main]
fn main() -> Outcome<()> {
    let options = Options::from_args(20_000)?;
    let _place = options.start()?;
    let model = |_| Model::options().max_pending_calls(PENDING_MAX).spread().remote();
    let models: Vec<_> = (0..MODELS).map(model).collect();
    let gateway = Gateway::remote(models);
    let address = gateway.address().get()?;
    let serving: Vec<_> = (0..SERVING).map(|_| gateway.serve()).collect();

    let started = Instant::now();
    let each = (options.size / CLIENTS).max(1) as u64;
    let clients: Vec<_> = (0..CLIENTS as u64)
        .map(|client| {
            let address = address.clone();
            thread::spawn(move || (client * each..(client + 1) * each).try_for_each(|x| check(&address, x)))
        })
        .collect();
    for client in clients {
        client.join().map_err(|_| "a client panicked")??;
    }
    let seconds = started.elapsed().as_secs_f64();
    let refused = gateway.stop().get()?;
    let answered: u64 = get_all(&serving, None)?.iter().sum();

    let requests = each * CLIENTS as u64;
    println!("requests      {requests}, {:.0} a second, all answers right", requests as f64 / seconds);
    println!("refused       {refused}, which came again");
    if answered != requests + refused as u64 {
        return Err(format!("{answered} answers to {requests} requests and {refused} refused ones").into());
    }
    Ok(())
}

/// A request, again while the service has enough to do. The answer must be right.
fn check(address: &str, x: u64) -> Result<(), String> {
    loop {
        let answer = request(address, x).map_err(|error| error.to_string())?;
        match answer.split_once("\r\n\r\n") {
            Some((head, body)) if head.starts_with("HTTP/1.1 200") && body == predicted(x).to_string() => {
                return Ok(());
            }
            Some((head, _)) if head.starts_with("HTTP/1.1 503") => thread::sleep(Duration::from_millis(2)),
            _ => return Err(format!("the answer to {x} is {answer:?}")),
        }
    }
}

fn request(address: &str, x: u64) -> std::io::Result<String> {
    let mut stream = TcpStream::connect(address)?;
    write!(stream, "GET /predict/{x} HTTP/1.1\r\nHost: {address}\r\n\r\n")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}

/// The answer of a model: some work on a number (the finalizer of SplitMix64, Steele, Lea, Flood 2014).
fn predicted(x: u64) -> u64 {
    (0..10_000).fold(x, |x, _| {
        let x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        x ^ (x >> 27)
    })
}
