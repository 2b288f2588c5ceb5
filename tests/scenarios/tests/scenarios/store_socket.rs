//! Strangers and broken clients at the socket of a node.

use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::time::Duration;
use tharsis::prelude::*;
use tharsis_object_store::local_socket::{self, recv_frame, send_frame};
use tharsis_protos::handshake::{Answer, HELLO_BYTES_MAX, HELLO_MAGIC, Hello, PROTOCOL_VERSION, Role};
use tharsis_scenarios::{Mode, Scenario, Session, await_file, await_within, open_gate, processes, scenarios};

pub const ALL: &[Scenario] = scenarios![
    Processes:
        socket_first_frame_is_no_hello,
        socket_frame_of_4_gib,
        socket_half_a_frame,
        socket_silence,
        socket_other_protocol_version,
        socket_worker_that_nobody_started,
        socket_client_that_does_not_map,
        socket_many_idle_connections,
        socket_client_killed_between_create_and_seal;
];

#[remote]
fn answer() -> u32 {
    42
}

fn connect(session: &Session) -> UnixStream {
    let socket = session.runtime().socket().expect("a node process");
    let stream = local_socket::connect(socket, Duration::from_secs(20)).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    stream
}

/// The node closes without a word.
#[track_caller]
fn assert_closed(mut stream: UnixStream) {
    let mut said = Vec::new();
    match stream.read_to_end(&mut said) {
        Ok(_) => assert!(said.is_empty(), "the node said {said:?}"),
        // Bytes that it had not read yet when it closed.
        Err(cause) => assert_eq!(cause.kind(), std::io::ErrorKind::ConnectionReset),
    }
}

#[track_caller]
fn assert_serves(session: &Session) {
    let _entered = session.enter();
    assert_eq!(answer::remote().get().unwrap(), 42);
    session.await_report("one driver", |r| r.driver_count == 1);
}

fn hello(role: Role) -> Hello {
    Hello {
        magic: HELLO_MAGIC,
        version: PROTOCOL_VERSION,
        pid: std::process::id(),
        role,
        functions: Vec::new(),
    }
}

fn ask(stream: &UnixStream, hello: &Hello) -> Answer {
    let program = match hello.role {
        Role::Driver { .. } => Some(std::fs::File::open("/proc/self/exe").unwrap()),
        Role::Observer(_) | Role::SharedProcess { .. } | Role::Worker { .. } => None,
    };
    let frame = postcard::to_allocvec(hello).unwrap();
    send_frame(stream, &frame, HELLO_BYTES_MAX, program.as_ref().map(AsFd::as_fd)).unwrap();
    postcard::from_bytes(&recv_frame(stream, HELLO_BYTES_MAX).unwrap().0).unwrap()
}

/// Anything but a hello is cut off.
fn socket_first_frame_is_no_hello(mode: Mode) {
    let session = mode.start(1);
    let stranger = Hello { magic: *b"whatever", ..hello(Role::Worker { start: 1 }) };
    let frames: [&[u8]; 4] =
        [b"", b"GET / HTTP/1.1", &[0xFF; 1000], &postcard::to_allocvec(&stranger).unwrap()];
    for frame in frames {
        let stream = connect(&session);
        send_frame(&stream, frame, HELLO_BYTES_MAX, None).unwrap();
        assert_closed(stream);
    }
    assert_serves(&session);
}

/// A length of 4 GiB is refused before anything is allocated.
fn socket_frame_of_4_gib(mode: Mode) {
    let session = mode.start(1);
    let pid = session.report().pid;
    let before = processes::resident_bytes(pid);
    for _ in 0..20 {
        let mut stream = connect(&session);
        stream.write_all(&[0xFF; 4]).unwrap();
        assert_closed(stream);
    }
    let grown = processes::resident_bytes(pid).saturating_sub(before);
    assert!(grown < 16 << 20, "{grown} bytes more");
    assert_serves(&session);
}

/// Half a frame, then the end.
fn socket_half_a_frame(mode: Mode) {
    let session = mode.start(1);
    for cut in [1, 3, 4, 6, 40] {
        let frame = postcard::to_allocvec(&hello(Role::Worker { start: 1 })).unwrap();
        let whole = [&(frame.len() as u32 + 40).to_le_bytes()[..], &frame].concat();
        let mut stream = connect(&session);
        stream.write_all(&whole[..cut.min(whole.len())]).unwrap();
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        assert_closed(stream);
    }
    assert_serves(&session);
}

/// Half a frame, then nothing: the node does not wait for ever.
fn socket_silence(mode: Mode) {
    let session = mode.start(1);
    let mut stream = connect(&session);
    stream.write_all(&[100, 0]).unwrap();
    assert_closed(stream);
    assert_serves(&session);
}

/// Another version is refused with both numbers.
fn socket_other_protocol_version(mode: Mode) {
    let session = mode.start(1);
    let other = Hello { version: PROTOCOL_VERSION + 98, ..hello(Role::Worker { start: 1 }) };
    let Answer::Refused(failure) = ask(&connect(&session), &other) else { panic!("it was let in") };
    assert_eq!(failure.kind, FailureKind::VersionMismatch);
    let both = [PROTOCOL_VERSION, PROTOCOL_VERSION + 98];
    assert!(both.iter().all(|version| failure.message.contains(&version.to_string())), "{failure}");
    assert_serves(&session);
}

/// A worker that the node did not start is not let in.
fn socket_worker_that_nobody_started(mode: Mode) {
    let session = mode.start(1);
    let Answer::Refused(failure) = ask(&connect(&session), &hello(Role::Worker { start: 1 })) else {
        panic!("it was let in")
    };
    assert_eq!(failure.kind, FailureKind::InvalidArgument);
    assert_serves(&session);
}

/// Drivers that leave in the middle of the handshake, or right after it.
fn socket_client_that_does_not_map(mode: Mode) {
    let session = mode.start(1);
    for n in 0..50 {
        let role = Role::Driver {
            weight: 100,
            quota: None,
            job_name: format!("job {n}"),
            namespace: String::new(),
            executable: String::new(),
        };
        let stream = connect(&session);
        let Answer::Welcome(welcome) = ask(&stream, &hello(role)) else { panic!("it was not let in") };
        assert!(processes::segments(session.report().pid).contains(&welcome.ring_segment));
        if n % 2 == 0 {
            send_frame(&stream, &[], 0, None).unwrap();
        }
    }
    session.await_report("they are gone", |r| r.driver_count == 1);
    let pid = session.report().pid;
    await_within(Duration::from_secs(5), "their rings are gone", || {
        processes::segments(pid).iter().all(|name| name.contains("board"))
    });
    assert_serves(&session);
}

/// Connections that say nothing are no burden.
fn socket_many_idle_connections(mode: Mode) {
    let session = mode.start(1);
    let idle: Vec<_> = (0..200).map(|_| connect(&session)).collect();
    assert_serves(&session);
    drop(idle);
    assert_serves(&session);
}

#[remote(max_retries = 0)]
fn writes_half(started: String, gate: String) -> Result<usize, Error> {
    // A small object takes its bytes from a region that the worker goes on to own.
    let small = put(&Blob::from(vec![1; 5_000]))?;
    open_gate(&started);
    await_file(&gate);
    Ok(small.get()?.len())
}

/// Bytes that a client had been granted and did not seal come back when it is killed.
fn socket_client_killed_between_create_and_seal(mode: Mode) {
    let session = mode.start(1);
    let _entered = session.enter();
    let (started, gate) = (session.path("started"), session.path("gate"));
    let half = writes_half::remote(started.clone(), gate);
    await_file(&started);
    let used = session.await_report("a region is granted", |r| r.store.object_count == 1).store.used_bytes;
    assert!(used > 500_000, "{used} bytes are less than a region");
    let node = session.report().pid;
    let workers = processes::children(node);
    assert_eq!(workers.len(), 1, "{workers:?}");
    processes::signal(workers[0], rustix::process::Signal::KILL);
    assert_eq!(half.get().unwrap_err().kind(), FailureKind::WorkerCrashed);
    session.await_report("its bytes are free", |r| r.store.used_bytes == 0);
    assert_eq!(answer::remote().get().unwrap(), 42);
}
