//! The port of a real node against hostile callers: each is refused, and the node keeps running.

use crate::home::{Ended, Home, SMALL};
use bytes::Bytes;
use h2::client::{ResponseFuture, SendRequest};
use std::fs::Permissions;
use std::future::poll_fn;
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use tharsis_protos::proof::{HELLO_BYTES, ProofError, Purpose, Reason, Secret, prove};
use tokio::task::JoinSet;
use tokio::time::timeout;

/// Time limit for a connection to identify itself, with some margin.
const CUT_OFF: Duration = Duration::from_secs(8);
/// A user that owns nothing of ours.
const NOBODY: u32 = 65_534;
const MIB: usize = 1 << 20;
const LIST_NODES: &str = "/tharsis.control.v1.Control/ListNodes";
const WATCH_NODES: &str = "/tharsis.control.v1.Control/WatchNodes";
const KV_PUT: &str = "/tharsis.control.v1.Control/KvPut";
const LINK: &str = "/tharsis.peer.v1.Peer/Link";

/// A head and its port.
fn head() -> (Home, String) {
    let home = Home::new();
    let started = home.run([&["start", "--head"], &SMALL[..]].concat());
    assert_eq!(started.status, 0, "{}", started.err);
    let address = home.status(None)["address"].as_str().unwrap().to_owned();
    (home, address)
}

type Driven = tokio::task::JoinHandle<Result<(), h2::Error>>;

/// The secret of the home's cluster.
fn secret(home: &Home) -> Secret {
    let user = rustix::process::geteuid().as_raw();
    let text = std::fs::read_to_string(home.path(&format!("tharsis-{user}/cluster.secret"))).unwrap();
    Secret::from_hex(&text).unwrap()
}

/// An HTTP/2 connection of a member; the task that drives it ends with its error.
async fn connect(home: &Home, address: &str) -> (SendRequest<Bytes>, Driven) {
    let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
    let called = stream.peer_addr().unwrap();
    prove(&mut stream, &secret(home).at(called), None, Purpose::Calls).await.unwrap();
    speak(stream).await
}

async fn speak(stream: tokio::net::TcpStream) -> (SendRequest<Bytes>, Driven) {
    let (client, connection) = h2::client::handshake(stream).await.unwrap();
    (client, tokio::spawn(connection))
}

fn request(address: &str, call: &str) -> http::request::Builder {
    let uri = format!("http://{address}{call}");
    http::Request::post(uri).header("content-type", "application/grpc").header("te", "trailers")
}

/// A gRPC frame of a message, with a given length in its header.
fn framed(said_bytes: usize, message: &[u8]) -> Bytes {
    let said = u32::try_from(said_bytes).unwrap().to_be_bytes();
    Bytes::from([&[0], &said[..], message].concat())
}

/// The status of a call, from its headers or its trailers.
async fn status(answer: ResponseFuture) -> String {
    let mut answer = timeout(CUT_OFF, answer).await.expect("an answer in time").unwrap();
    if let Some(status) = answer.headers().get("grpc-status") {
        return status.to_str().unwrap().to_owned();
    }
    while let Some(part) = answer.body_mut().data().await {
        let _length = part.unwrap().len();
    }
    let trailers = timeout(CUT_OFF, answer.body_mut().trailers()).await.expect("trailers in time").unwrap();
    trailers.unwrap()["grpc-status"].to_str().unwrap().to_owned()
}

/// Makes a call with one message.
async fn call(client: &mut SendRequest<Bytes>, request: http::Request<()>, message: Bytes) -> String {
    poll_fn(|context| client.poll_ready(context)).await.unwrap();
    let (answer, mut body) = client.send_request(request, false).unwrap();
    body.send_data(message, true).unwrap();
    status(answer).await
}

/// Asserts that the node still answers on its port and its socket.
async fn assert_well(home: &Home, address: &str) {
    let (mut client, _connection) = connect(home, address).await;
    let request = request(address, LIST_NODES).body(()).unwrap();
    assert_eq!(call(&mut client, request, framed(0, b"")).await, "0");
    assert_eq!(home.status(None)["nodes"].as_array().unwrap().len(), 1);
}

fn resident_bytes(pid: u64) -> u64 {
    let process = procfs::process::Process::new(i32::try_from(pid).unwrap()).unwrap();
    process.stat().unwrap().rss * procfs::page_size()
}

/// The steps that an outside attacker could take if the port required no proof: join as a node, register a
/// program, give it to a job, ask for a worker over a link. Each message would be valid; none is read.
#[tokio::test]
async fn nothing_is_done_for_a_caller_that_proves_nothing() {
    let (home, address) = head();
    let before = home.processes();
    let control = "/tharsis.control.v1.Control/";
    let calls = ["RegisterNode", "PutCodeUnit", "PutProgram", "KvPut", "UnregisterNode", "ListNodes"];
    for call in calls.map(|name| format!("{control}{name}")).iter().map(String::as_str).chain([LINK]) {
        let stream = tokio::net::TcpStream::connect(&address).await.unwrap();
        let (mut client, connection) = speak(stream).await;
        if poll_fn(|context| client.poll_ready(context)).await.is_ok()
            && let Ok((answer, mut body)) =
                client.send_request(request(&address, call).body(()).unwrap(), false)
        {
            // The port may close the connection before this is sent.
            let _sent = body.send_data(framed(0, b""), true);
            assert!(timeout(CUT_OFF, answer).await.unwrap().is_err(), "{call} was answered");
        }
        let error = timeout(CUT_OFF, connection).await.unwrap().unwrap().unwrap_err();
        assert_eq!(error.reason(), Some(h2::Reason::INADEQUATE_SECURITY), "{call}: {error}");
    }
    // Objects and programs: without a proof, and with a proof for another purpose.
    let mut stream = TcpStream::connect(&address).unwrap();
    stream.write_all(b"THARSIS\x01\x01\0\0\0\0\0\0\0").unwrap();
    let mut heard = Vec::new();
    stream.read_to_end(&mut heard).unwrap();
    assert_eq!(heard[12], Reason::NoProof as u8, "{heard:?}");
    let guess = Secret::random().unwrap();
    for purpose in [Purpose::Calls, Purpose::Transfers] {
        let mut stream = tokio::net::TcpStream::connect(&address).await.unwrap();
        let refused = prove(&mut stream, &guess, None, purpose).await.unwrap_err();
        assert!(matches!(refused, ProofError::Refused(Reason::WrongProof)), "{refused}");
    }
    assert_eq!(home.processes(), before, "nothing was started");
    assert_well(&home, &address).await;
}

/// Another user of the machine starts a node of the same release and joins with it. Only root can play this.
#[test]
fn another_user_cannot_join() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("not run: only root can start a process as another user");
        return;
    }
    let (home, address) = head();
    // A folder that the other user can reach, with the program in it.
    let theirs = tempfile::tempdir().unwrap();
    let program = theirs.path().join("tharsis");
    std::fs::copy(env!("CARGO_BIN_EXE_tharsis"), &program).unwrap();
    std::fs::set_permissions(theirs.path(), Permissions::from_mode(0o755)).unwrap();
    std::os::unix::fs::chown(theirs.path(), Some(NOBODY), Some(NOBODY)).unwrap();
    let start = |words: &[&str]| {
        let mut command = std::process::Command::new(&program);
        command.args(["start", "--address", &address]).args(words).args(SMALL);
        command.env_clear().env("TMPDIR", theirs.path()).uid(NOBODY).gid(NOBODY);
        Ended::of(command.stdin(std::process::Stdio::null()).output().unwrap())
    };
    start(&[]).assert_refused(4, &["NotAdmitted", "did not prove that it knows the cluster's secret"]);
    let secret = home.text("tharsis-0/cluster.secret");
    start(&["--secret-file", &secret]).assert_refused(2, &["secret_file", "Permission denied"]);
    assert_eq!(home.status(None)["nodes"].as_array().unwrap().len(), 1);
    assert!(home.run(["stop"]).status == 0);
}

#[test]
fn a_member_with_another_file_is_refused_and_one_with_a_copy_is_not() {
    let (home, address) = head();
    let elsewhere = home.text("elsewhere/cluster.secret");
    let socket = home.text("b/node.sock");
    let words = ["start", "--address", &address, "--socket", &socket, "--secret-file", &elsewhere];
    home.run([&words[..], &SMALL[..]].concat()).assert_refused(4, &["NotAdmitted", "--secret-file"]);
    std::fs::write(&elsewhere, secret(&home).to_hex()).unwrap();
    let joined = home.run([&words[..], &SMALL[..]].concat());
    assert_eq!(joined.status, 0, "{}", joined.err);
    home.await_nodes(None, 2);
}

#[test]
fn whoever_says_too_little_is_cut_off() {
    let (home, address) = head();
    // No bytes, and a part of a hello.
    let silent = ["", "T", "THARSIS\x02\x01\0\0\0\x01"].map(|words| {
        let mut stream = TcpStream::connect(&address).unwrap();
        stream.write_all(words.as_bytes()).unwrap();
        stream
    });
    let begin = Instant::now();
    for mut stream in silent {
        stream.set_read_timeout(Some(CUT_OFF)).unwrap();
        let read = stream.read(&mut [0; 64]);
        assert!(matches!(read, Ok(0)) || read.is_err_and(|e| e.kind() == ErrorKind::ConnectionReset));
        assert!(begin.elapsed() < CUT_OFF, "{:?}", begin.elapsed());
    }
    assert!(home.run(["stop"]).status == 0);
}

#[test]
fn whoever_speaks_another_protocol_is_refused_at_once() {
    let (home, address) = head();
    let mut browser = TcpStream::connect(&address).unwrap();
    browser.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
    browser.set_read_timeout(Some(Duration::from_secs(4))).unwrap();
    let mut told = String::new();
    browser.read_to_string(&mut told).unwrap();
    assert!(told.starts_with("HTTP/1.1 401 Unauthorized\r\n"), "{told}");
    // Another method, a TLS client, noise.
    for words in
        [&b"POST /metrics HTTP/1.1\r\n\r\n"[..], &[0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3], &[0xff; 64]]
    {
        let mut stream = TcpStream::connect(&address).unwrap();
        stream.write_all(words).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(4))).unwrap();
        let mut told = Vec::new();
        stream.read_to_end(&mut told).unwrap();
        assert_eq!((told.len(), told[12]), (HELLO_BYTES, Reason::NoProof as u8), "{told:?}");
    }
    assert!(home.run(["stop"]).status == 0);
}

#[test]
fn many_silent_callers_do_not_keep_others_out_for_long() {
    let (home, address) = head();
    // More than the limit of unidentified connections.
    let silent: Vec<_> = (0..400).map(|_| TcpStream::connect(&address).unwrap()).collect();
    let joined = home
        .run([&["start", "--address", &address, "--socket", &home.text("b/node.sock")], &SMALL[..]].concat());
    // The first ones are cut off while the new node waits. If it was refused because it came too early, it
    // tries again.
    if joined.status != 0 {
        joined.assert_refused(4, &[&address]);
        std::thread::sleep(CUT_OFF);
        let words = ["start", "--address", &address, "--socket", &home.text("b/node.sock")];
        assert_eq!(home.run([&words, &SMALL[..]].concat()).status, 0);
    }
    home.await_nodes(None, 2);
    drop(silent);
}

#[tokio::test]
async fn a_call_that_comes_too_late_is_not_begun() {
    let (home, address) = head();
    let (mut client, _connection) = connect(&home, &address).await;
    let late = request(&address, LIST_NODES).header("grpc-timeout", "0n").body(()).unwrap();
    assert_eq!(call(&mut client, late, framed(0, b"")).await, "4", "deadline exceeded");
    let in_time = request(&address, LIST_NODES).header("grpc-timeout", "5S").body(()).unwrap();
    assert_eq!(call(&mut client, in_time, framed(0, b"")).await, "0");
    assert_well(&home, &address).await;
}

#[tokio::test]
async fn a_message_above_the_limit_is_refused_before_it_is_there() {
    let (home, address) = head();
    let pid = home.status(None)["pid"].as_u64().unwrap();
    let before = resident_bytes(pid);
    let (mut client, _connection) = connect(&home, &address).await;
    for (call, said_bytes) in [(KV_PUT, 16 * MIB + 1), (LINK, 256 * MIB + 1), (KV_PUT, (4 << 30) - 1)] {
        poll_fn(|context| client.poll_ready(context)).await.unwrap();
        let request = request(&address, call).body(()).unwrap();
        let (answer, mut body) = client.send_request(request, false).unwrap();
        // Only the first bytes are sent.
        body.send_data(framed(said_bytes, &[0; 1000]), false).unwrap();
        let status = status(answer).await;
        // The error of a link is only that it was not told its owner.
        assert_eq!(status, if call == LINK { "3" } else { "8" }, "{call}");
    }
    let grown = resident_bytes(pid).saturating_sub(before);
    assert!(grown < 32 * MIB as u64, "{grown} bytes");
    assert_well(&home, &address).await;
}

#[tokio::test]
async fn streams_of_one_connection_are_bounded_and_others_wait() {
    let (home, address) = head();
    let (mut client, _connection) = connect(&home, &address).await;
    // The server's settings must arrive first: before them the client would open too many streams, and be
    // refused.
    poll_fn(|context| client.poll_ready(context)).await.unwrap();
    assert_eq!(call(&mut client, request(&address, LIST_NODES).body(()).unwrap(), framed(0, b"")).await, "0");
    assert_eq!(client.current_max_send_streams(), 1024);
    let taken = Arc::new(AtomicUsize::new(0));
    let mut watches = JoinSet::new();
    for _ in 0..10_000 {
        let request = request(&address, WATCH_NODES).body(()).unwrap();
        let (answer, mut body) = client.send_request(request, false).unwrap();
        body.send_data(framed(0, b""), true).unwrap();
        let taken = Arc::clone(&taken);
        watches.spawn(async move {
            let answer = answer.await.unwrap();
            // A watch beyond the share of this machine is refused at once.
            if answer.headers().contains_key("grpc-status") {
                return;
            }
            taken.fetch_add(1, Ordering::Relaxed);
            // A watch does not end by itself.
            std::future::pending::<()>().await;
            drop((answer, body));
        });
    }
    tokio::time::sleep(Duration::from_secs(3)).await;
    let count = taken.load(Ordering::Relaxed);
    assert!(0 < count && count <= 256, "{count} are taken");
    assert_well(&home, &address).await;
}

#[tokio::test]
async fn streams_that_are_reset_at_once_end_the_connection() {
    let (home, address) = head();
    let pid = home.status(None)["pid"].as_u64().unwrap();
    let (mut client, connection) = connect(&home, &address).await;
    let begin = Instant::now();
    let flood = async {
        for _ in 0..100_000 {
            poll_fn(|context| client.poll_ready(context)).await?;
            let request = request(&address, LIST_NODES).body(()).unwrap();
            let (answer, mut body) = client.send_request(request, false)?;
            body.send_reset(h2::Reason::CANCEL);
            drop((answer, body));
            tokio::task::yield_now().await;
        }
        Ok::<(), h2::Error>(())
    };
    let outcome = timeout(Duration::from_secs(20), flood).await.expect("cut off long before");
    assert!(outcome.is_err(), "100 000 resets were taken in {:?}", begin.elapsed());
    let ended = timeout(CUT_OFF, connection).await.expect("the connection ends").unwrap();
    assert!(ended.is_err(), "{ended:?}");
    assert_well(&home, &address).await;
    assert!(resident_bytes(pid) < 256 * MIB as u64);
}
