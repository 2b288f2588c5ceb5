//! `GET /metrics` at the port of a real node: who may ask, the form of the text, and whether its numbers are
//! those of what ran.

use crate::Behaviour;
use crate::home::{self, Home, SMALL, await_that};
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;
use tharsis::prelude::*;

#[remote(max_retries = 0)]
fn double(x: u64) -> u64 {
    assert!(x != 13, "an unlucky number");
    2 * x
}

#[remote]
fn large(len: usize) -> Blob {
    Blob::from(vec![1; len])
}

pub const ALL: &[Behaviour] = behaviours![
    a_scrape_tells_what_ran,
    without_the_token_nothing_is_told,
    scrapes_do_not_stop_the_engine,
    a_scraper_that_says_nothing_is_cut_off,
];

/// A head with its address, and the token of its scrapers.
fn head() -> (Home, String, String) {
    let home = Home::new();
    let started = home.run([&["start", "--head", "--num-cpus", "2"], &SMALL[..]].concat());
    assert_eq!(started.status, 0, "{}", started.err);
    let address = home.status(None)["address"].as_str().unwrap().to_owned();
    let user = rustix::process::geteuid().as_raw();
    let file = home.path(&format!("tharsis-{user}/cluster.metrics-token"));
    let mode = std::os::unix::fs::MetadataExt::mode(&std::fs::metadata(&file).unwrap());
    assert_eq!(mode & 0o777, 0o600);
    (home, address, std::fs::read_to_string(file).unwrap().trim().to_owned())
}

/// Sends a request and returns all that comes.
fn ask(address: &str, request: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(home::SOON)).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut heard = String::new();
    stream.read_to_string(&mut heard).unwrap();
    heard
}

/// Scrapes a node, as Prometheus does.
fn scrape(address: &str, token: &str) -> BTreeMap<String, f64> {
    let request = format!(
        "GET /metrics HTTP/1.1\r\nHost: {address}\r\nUser-Agent: Prometheus\r\nAccept: text/plain\r\nAuthorization: Bearer {token}\r\n\r\n"
    );
    let heard = ask(address, &request);
    let (head, body) = heard.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
    assert!(head.contains("Content-Type: text/plain; version=0.0.4"), "{head}");
    assert!(head.contains(&format!("Content-Length: {}", body.len())), "{head}");
    parse(body)
}

/// Whether a text is a name of a metric, `[a-zA-Z_:][a-zA-Z0-9_:]*`.
fn is_name(text: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == ':';
    !text.is_empty() && text.chars().all(is_part) && !text.starts_with(|c: char| c.is_ascii_digit())
}

/// Reads the text format: every line is a comment or a sample, every sample has its type before it, and no
/// metric comes twice.
fn parse(body: &str) -> BTreeMap<String, f64> {
    assert!(body.ends_with('\n'), "the last line ends");
    let mut types = BTreeMap::new();
    let mut helped = Vec::new();
    let mut samples = BTreeMap::new();
    for line in body.lines() {
        if let Some(comment) = line.strip_prefix("# ") {
            let mut words = comment.splitn(3, ' ');
            let (keyword, name, rest) = (words.next().unwrap(), words.next().unwrap(), words.next().unwrap());
            assert!(is_name(name), "{line}");
            match keyword {
                "HELP" => helped.push(name.to_owned()),
                "TYPE" => {
                    assert!(["counter", "gauge"].contains(&rest), "{line}");
                    assert_eq!(rest == "counter", name.ends_with("_total"), "{line}");
                    assert!(types.insert(name.to_owned(), rest.to_owned()).is_none(), "twice: {line}");
                }
                _ => panic!("no comment of the format: {line}"),
            }
            continue;
        }
        let (series, value) = line.rsplit_once(' ').unwrap();
        let name = match series.split_once('{') {
            None => series,
            Some((name, labels)) => {
                for pair in labels.strip_suffix('}').unwrap().split(',') {
                    let (label, value) = pair.split_once('=').unwrap();
                    assert!(is_name(label) && value.starts_with('"') && value.ends_with('"'), "{line}");
                }
                name
            }
        };
        assert!(is_name(name) && types.contains_key(name), "no type before {line}");
        assert_eq!(helped.last().map(String::as_str), Some(name), "no help before {line}");
        assert!(samples.insert(name.to_owned(), value.parse().unwrap()).is_none(), "twice: {line}");
    }
    assert_eq!(types.len(), samples.len(), "every type has its sample");
    samples
}

fn driver(home: &Home) -> tharsis::Runtime {
    let user = rustix::process::geteuid().as_raw();
    let socket = home.text(&format!("tharsis-{user}/node/node.sock"));
    tharsis::init().address(socket).start_local().unwrap()
}

fn a_scrape_tells_what_ran() {
    let (home, address, token) = head();
    let before = scrape(&address, &token);
    assert_eq!(before["tharsis_tasks_submitted_total"], 0.0);
    assert_eq!(before["tharsis_cpus"], 2.0);
    assert_eq!(before["tharsis_store_capacity_bytes"], f64::from(16 << 20));
    let runtime = driver(&home);
    let _entered = runtime.enter();
    let calls: Vec<_> = (0..40).map(|x| double::remote(x)).collect();
    let failed = calls.iter().filter(|call| call.get_timeout(60.0).is_err()).count();
    assert_eq!(failed, 1);
    let kept = large::remote(4 << 20);
    assert_eq!(kept.get_timeout(60.0).unwrap().len(), 4 << 20);
    let now = scrape(&address, &token);
    let value = |name: &str| now[name];
    assert_eq!(value("tharsis_tasks_submitted_total"), 41.0);
    assert_eq!(value("tharsis_tasks_finished_total"), 40.0);
    assert_eq!(value("tharsis_tasks_failed_total"), 1.0);
    assert_eq!(value("tharsis_tasks_unfinished") + value("tharsis_tasks_queued"), 0.0);
    assert!(f64::from(4 << 20) <= value("tharsis_store_used_bytes"));
    assert!(1.0 <= value("tharsis_workers") && value("tharsis_drivers") == 1.0);
    assert_eq!(value("tharsis_peers") + value("tharsis_draining"), 0.0);
    assert!(0.0 < value("process_cpu_seconds_total"));
    assert!(f64::from(1 << 20) < value("process_resident_memory_bytes"));
    assert_eq!(value("tharsis_scrapes_total"), 2.0);
    for (name, earlier) in before.iter().filter(|(name, _)| name.ends_with("_total")) {
        assert!(*earlier <= now[name], "{name} went back");
    }
    drop(kept);
    await_that("the value is freed", || {
        scrape(&address, &token)["tharsis_store_used_bytes"] < f64::from(4 << 20)
    });
}

fn without_the_token_nothing_is_told() {
    let (_home, address, token) = head();
    let guess = "0".repeat(64);
    for authorization in [String::new(), format!("Authorization: Bearer {guess}\r\n")] {
        let heard = ask(&address, &format!("GET /metrics HTTP/1.1\r\nHost: a\r\n{authorization}\r\n"));
        assert!(heard.starts_with("HTTP/1.1 401 ") && heard.contains("metrics-token"), "{heard}");
        assert!(!heard.contains("tharsis_tasks"), "{heard}");
    }
    // Looks of the cluster's own are no attempts to get in.
    assert!(!ask(&address, "THARSIS?").is_empty(), "a knock is answered");
    drop(TcpStream::connect(&address).unwrap());
    assert_eq!(scrape(&address, &token)["tharsis_connections_refused_total"], 2.0);
    let other = ask(&address, &format!("GET / HTTP/1.1\r\nAuthorization: Bearer {token}\r\n\r\n"));
    assert!(other.starts_with("HTTP/1.1 404 "), "{other}");
}

/// Tasks go on while a node is scraped without a pause, and each scrape is answered.
fn scrapes_do_not_stop_the_engine() {
    let (home, address, token) = head();
    let runtime = driver(&home);
    let _entered = runtime.enter();
    assert_eq!(double::remote(1).get_timeout(60.0).unwrap(), 2);
    let is_over = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        let scraper = scope.spawn(|| {
            let mut count = 0;
            while !is_over.load(std::sync::atomic::Ordering::Relaxed) {
                scrape(&address, &token);
                count += 1;
            }
            count
        });
        let calls: Vec<_> = (100..2100).map(|x| double::remote(x)).collect();
        for (call, x) in calls.iter().zip(100..) {
            assert_eq!(call.get_timeout(60.0).unwrap(), 2 * x);
        }
        is_over.store(true, std::sync::atomic::Ordering::Relaxed);
        assert!(2 < scraper.join().unwrap(), "the node was scraped meanwhile");
    });
    assert_eq!(scrape(&address, &token)["tharsis_tasks_finished_total"], 2001.0);
}

fn a_scraper_that_says_nothing_is_cut_off() {
    let (_home, address, token) = head();
    let mut silent = TcpStream::connect(&address).unwrap();
    silent.write_all(b"GET /metrics HTTP/1.1\r\n").unwrap();
    silent.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    assert_eq!(silent.read(&mut [0; 64]).unwrap_or(0), 0, "it ends without an answer");
    let mut endless = TcpStream::connect(&address).unwrap();
    // The port may close the connection before all of this is sent.
    let _sent = endless.write_all(format!("GET /metrics HTTP/1.1\r\nA: {}", "x".repeat(1 << 20)).as_bytes());
    assert_eq!(endless.read(&mut [0; 64]).unwrap_or(0), 0, "it ends without an answer");
    assert!(0.0 < scrape(&address, &token)["tharsis_connections_refused_total"]);
}
