//! The socket through which a client connects to its node, before they use rings.
//!
//! It carries a few frames per client: its identity, the names of the rings, the descriptor of the arena.
//! Later it only shows, by closing, that a side has died. So it is blocking and simple.
//!
//! *Access.* The socket has mode 0600 and is in a directory of mode 0700; the kernel also tells the peer's
//! user, which must be ours. *Frames.* A frame is a length of four bytes (little-endian) and as many bytes. A
//! length above the caller's limit is an error before anything is allocated, and memory grows only with
//! received bytes. One descriptor may come with a frame, attached to its first byte. *Time limits* are the
//! timeouts of the stream; an expired one is [`SocketError::Timeout`].

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::Access;
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketAddrUnix, SocketFlags, SocketType, recvmsg, sendmsg, socket_with,
    sockopt,
};
use std::fs::{self, DirBuilder, Permissions, TryLockError};
use std::io::{self, ErrorKind, IoSlice, IoSliceMut, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Bytes in front of each frame.
pub const FRAME_HEADER_BYTES: usize = 4;
/// Longest wait for another process that binds a socket in the same directory.
const LOCK_DEADLINE: Duration = Duration::from_secs(5);
/// Time for which a listener that hangs is waited for when somebody looks whether there is one.
const LOOK_WAIT: Duration = Duration::from_millis(100);
/// Pause before the lock is tried again.
const LOCK_PAUSE: Duration = Duration::from_millis(1);

/// Errors of the local socket.
#[derive(Debug, thiserror::Error)]
pub enum SocketError {
    /// The peer closed the connection.
    #[error("the peer closed the connection")]
    Closed,
    /// The peer belongs to another user.
    #[error("the peer runs as user {peer_uid}, we run as {own_uid}")]
    ForeignUser {
        /// User of the peer.
        peer_uid: u32,
        /// Our user.
        own_uid: u32,
    },
    /// A frame above the limit, in either direction.
    #[error("frame of {len} bytes, limit {limit_bytes}")]
    FrameTooLarge {
        /// Bytes of the frame.
        len: u64,
        /// The limit.
        limit_bytes: usize,
    },
    /// Another process listens at the address.
    #[error("another process listens there")]
    InUse,
    /// Other users can enter the directory of the socket.
    #[error("{} must be a directory of user {own_uid} with mode 0700; it has owner {owner_uid} and mode {mode:o}", path.display())]
    OpenDirectory {
        /// The directory.
        path: PathBuf,
        /// Its owner.
        owner_uid: u32,
        /// Our user.
        own_uid: u32,
        /// Its mode.
        mode: u32,
    },
    /// The operating system refused.
    #[error("cannot {action}: {cause}")]
    System {
        /// The action that failed.
        action: &'static str,
        /// The system's reason.
        #[source]
        cause: io::Error,
    },
    /// The peer did not answer in time.
    #[error("timed out: cannot {action} within the stream's deadline")]
    Timeout {
        /// The action that failed.
        action: &'static str,
    },
    /// A frame with more than one descriptor.
    #[error("a frame carried {count} descriptors, at most one may come")]
    TooManyDescriptors {
        /// Number of received descriptors.
        count: usize,
    },
}

/// The process at the other end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peer {
    /// Its process, when it connected.
    pub process_id: u32,
    /// Its user.
    pub user_id: u32,
}

/// Listens at `path`, in a directory of mode 0700 that is made if it is missing. A dead socket there is
/// replaced.
///
/// # Errors
/// `OpenDirectory` if other users may enter the directory, `InUse` if a process listens there already,
/// `System` if the socket cannot be made, `Timeout` if another process holds the lock of the directory for
/// too long.
pub fn bind(path: &Path) -> Result<UnixListener, SocketError> {
    let directory = path.parent().unwrap_or(Path::new("."));
    let made = DirBuilder::new().recursive(true).mode(0o700).create(directory);
    made.map_err(|cause| failed("make the directory of the socket", cause))?;
    check_directory(directory)?;
    let _only_us = lock_directory(directory)?;
    remove_dead(path)?;
    let listener = UnixListener::bind(path).map_err(|cause| failed("bind the socket", cause))?;
    // Until now only the mode of the directory keeps other users out.
    fs::set_permissions(path, Permissions::from_mode(0o600))
        .map_err(|cause| failed("close the socket to others", cause))?;
    Ok(listener)
}

/// Refuses a path at which [`bind`] could not listen, as far as that shows without making anything. It does
/// not look who listens there.
///
/// # Errors
/// As [`bind`].
pub fn check_place(path: &Path) -> Result<(), SocketError> {
    let unbound = |cause| failed("bind the socket", cause);
    SocketAddrUnix::new(path).map_err(|cause| unbound(cause.into()))?;
    if fs::symlink_metadata(path).is_ok_and(|there| !there.file_type().is_socket()) {
        return Err(unbound(ErrorKind::AddrInUse.into()));
    }
    let directory = path.parent().unwrap_or(Path::new("."));
    if directory.exists() {
        check_directory(directory)?;
    }
    let there = directory.ancestors().find(|above| above.exists()).unwrap_or(Path::new("/"));
    // Nothing is inside what is no directory.
    let inside = rustix::fs::access(there.join("."), Access::WRITE_OK | Access::EXEC_OK);
    inside.map_err(|cause| failed("write to the directory of the socket", cause.into()))
}

/// Connects to a listener. One that hangs takes nobody up: when so many wait there already as it lets wait,
/// connecting waits as well, and without a limit it would for ever.
///
/// # Errors
/// The system's; `WouldBlock` if the time is over.
pub fn connect(path: &Path, limit: Duration) -> io::Result<UnixStream> {
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    sockopt::set_socket_timeout(&socket, sockopt::Timeout::Send, Some(limit))?;
    let address = SocketAddrUnix::new(path)?;
    rustix::io::retry_on_intr(|| rustix::net::connect(&socket, &address))?;
    let stream = UnixStream::from(socket);
    stream.set_write_timeout(None)?;
    Ok(stream)
}

/// Asks the kernel for the peer's process and user, and refuses other users.
///
/// # Errors
/// `ForeignUser`, or `System` if the kernel does not tell.
pub fn check_peer(stream: &UnixStream) -> Result<Peer, SocketError> {
    let credentials = sockopt::socket_peercred(stream)
        .map_err(|cause| failed("ask for the peer's credentials", cause.into()))?;
    let own_uid = rustix::process::geteuid().as_raw();
    let peer_uid = credentials.uid.as_raw();
    if peer_uid != own_uid {
        return Err(SocketError::ForeignUser { peer_uid, own_uid });
    }
    Ok(Peer { process_id: credentials.pid.as_raw_nonzero().get().unsigned_abs(), user_id: peer_uid })
}

/// Whether the peer has closed the connection, or is dead. A peer that only shut down its sending half has
/// not.
#[must_use]
pub fn is_hung_up(stream: &UnixStream) -> bool {
    hangs_up_within(stream, Some(&Timespec::default()))
}

/// Waits until the peer has closed the connection, or is dead.
pub fn await_hang_up(stream: &UnixStream) {
    while !hangs_up_within(stream, None) {}
}

/// Whether the peer hangs up within the limit. An error counts as the end: there is nothing to wait for then.
fn hangs_up_within(stream: &UnixStream, limit: Option<&Timespec>) -> bool {
    // No events are requested: a hang-up is always reported.
    let mut stream = [PollFd::new(stream, PollFlags::empty())];
    loop {
        match poll(&mut stream, limit) {
            Ok(count) => return count > 0,
            Err(Errno::INTR) => {}
            Err(_) => return true,
        }
    }
}

/// Sends one frame, with a descriptor if there is one.
///
/// # Errors
/// `FrameTooLarge` above `limit_bytes`, `Timeout`, `Closed`, `System`.
pub fn send_frame(
    mut stream: &UnixStream,
    frame: &[u8],
    limit_bytes: usize,
    descriptor: Option<BorrowedFd<'_>>,
) -> Result<(), SocketError> {
    let action = "send a frame";
    let header = match u32::try_from(frame.len()) {
        Ok(len) if frame.len() <= limit_bytes => len.to_le_bytes(),
        _ => return Err(SocketError::FrameTooLarge { len: frame.len() as u64, limit_bytes }),
    };
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    let descriptors: &[BorrowedFd<'_>] = descriptor.as_slice();
    if !descriptors.is_empty() {
        let fits = ancillary.push(SendAncillaryMessage::ScmRights(descriptors));
        debug_assert!(fits, "the buffer was sized for one descriptor");
    }
    let parts = [IoSlice::new(&header), IoSlice::new(frame)];
    let sent_bytes = loop {
        match sendmsg(stream, &parts, &mut ancillary, SendFlags::NOSIGNAL) {
            Err(rustix::io::Errno::INTR) => {}
            outcome => break outcome.map_err(|cause| failed(action, cause.into()))?,
        }
    };
    let rest_of_header = &header[sent_bytes.min(header.len())..];
    let rest_of_frame = &frame[sent_bytes.saturating_sub(header.len())..];
    stream.write_all(rest_of_header).map_err(|cause| failed(action, cause))?;
    stream.write_all(rest_of_frame).map_err(|cause| failed(action, cause))
}

/// Receives one frame, and the descriptor that came with it.
///
/// # Errors
/// `FrameTooLarge` above `limit_bytes`, `Closed` if the peer went away, `Timeout`, `TooManyDescriptors`,
/// `System`.
pub fn recv_frame(
    stream: &UnixStream,
    limit_bytes: usize,
) -> Result<(Vec<u8>, Option<OwnedFd>), SocketError> {
    let (header, descriptor) = recv_header(stream)?;
    let len = u32::from_le_bytes(header) as usize;
    if limit_bytes < len {
        return Err(SocketError::FrameTooLarge { len: len as u64, limit_bytes });
    }
    let mut frame = Vec::new();
    // The buffer grows with received bytes, so a length alone reserves nothing.
    let read = stream.take(len as u64).read_to_end(&mut frame);
    read.map_err(|cause| failed("receive a frame", cause))?;
    if frame.len() < len {
        return Err(SocketError::Closed);
    }
    Ok((frame, descriptor))
}

fn recv_header(stream: &UnixStream) -> Result<([u8; FRAME_HEADER_BYTES], Option<OwnedFd>), SocketError> {
    let mut header = [0; FRAME_HEADER_BYTES];
    let mut received_bytes = 0;
    let mut descriptors = Vec::new();
    while received_bytes < header.len() {
        // Room for one descriptor more than allowed, so that a surplus is noticed. The kernel closes those
        // that do not fit.
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
        let mut ancillary = RecvAncillaryBuffer::new(&mut space);
        let mut parts = [IoSliceMut::new(&mut header[received_bytes..])];
        match recvmsg(stream.as_fd(), &mut parts, &mut ancillary, RecvFlags::CMSG_CLOEXEC) {
            Ok(message) if message.bytes == 0 => return Err(SocketError::Closed),
            Ok(message) => received_bytes += message.bytes,
            Err(rustix::io::Errno::INTR) => continue,
            Err(cause) => return Err(failed("receive a frame", cause.into())),
        }
        for message in ancillary.drain() {
            if let RecvAncillaryMessage::ScmRights(received) = message {
                descriptors.extend(received);
            }
        }
    }
    match descriptors.len() {
        0 | 1 => Ok((header, descriptors.pop())),
        count => Err(SocketError::TooManyDescriptors { count }),
    }
}

/// Keeps other processes from binding sockets in a directory, until the result is dropped. Between `bind` and
/// `listen` a socket looks dead; without the lock, one of two processes that start at the same time could
/// remove the other's socket.
///
/// The directory itself is locked, so that no file stays behind.
fn lock_directory(directory: &Path) -> Result<fs::File, SocketError> {
    let action = "lock the directory of the socket";
    let opened = fs::File::open(directory).map_err(|cause| failed(action, cause))?;
    let end = Instant::now() + LOCK_DEADLINE;
    loop {
        match opened.try_lock() {
            Ok(()) => return Ok(opened),
            Err(TryLockError::WouldBlock) if Instant::now() < end => std::thread::sleep(LOCK_PAUSE),
            Err(TryLockError::WouldBlock) => return Err(SocketError::Timeout { action }),
            Err(TryLockError::Error(cause)) => return Err(failed(action, cause)),
        }
    }
}

/// Removes a socket without a listener.
fn remove_dead(path: &Path) -> Result<(), SocketError> {
    if !fs::symlink_metadata(path).is_ok_and(|m| m.file_type().is_socket()) {
        return Ok(());
    }
    match connect(path, LOOK_WAIT) {
        Ok(_) => Err(SocketError::InUse),
        // It hangs.
        Err(cause) if cause.kind() == ErrorKind::WouldBlock => Err(SocketError::InUse),
        Err(cause) if cause.kind() == ErrorKind::ConnectionRefused => {
            fs::remove_file(path).map_err(|cause| failed("remove a dead socket", cause))
        }
        // Its node has just ended and removed it.
        Err(cause) if cause.kind() == ErrorKind::NotFound => Ok(()),
        Err(cause) => Err(failed("look who listens at the socket", cause)),
    }
}

fn check_directory(path: &Path) -> Result<(), SocketError> {
    let metadata =
        fs::metadata(path).map_err(|cause| failed("look at the directory of the socket", cause))?;
    let own_uid = rustix::process::geteuid().as_raw();
    let (owner_uid, mode) = (metadata.uid(), metadata.mode() & 0o7777);
    if owner_uid != own_uid || mode & 0o077 != 0 {
        return Err(SocketError::OpenDirectory { path: path.to_owned(), owner_uid, own_uid, mode });
    }
    Ok(())
}

fn failed(action: &'static str, cause: io::Error) -> SocketError {
    match cause.kind() {
        ErrorKind::WouldBlock | ErrorKind::TimedOut => SocketError::Timeout { action },
        ErrorKind::BrokenPipe | ErrorKind::ConnectionReset | ErrorKind::UnexpectedEof => SocketError::Closed,
        _ => SocketError::System { action, cause },
    }
}

#[cfg(not(models))]
#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::time::Duration;

    const LIMIT: usize = 1 << 16;

    #[test]
    fn a_frame_brings_its_descriptor() {
        let (a, b) = UnixStream::pair().unwrap();
        let file = tempfile::tempfile().unwrap();
        (&file).write_all(b"through the socket").unwrap();
        send_frame(&a, b"with", LIMIT, Some(file.as_fd())).unwrap();
        send_frame(&a, b"", LIMIT, None).unwrap();
        let (frame, descriptor) = recv_frame(&b, LIMIT).unwrap();
        assert_eq!(frame, b"with");
        let mut same = fs::File::from(descriptor.unwrap());
        let mut text = String::new();
        io::Seek::rewind(&mut same).unwrap();
        same.read_to_string(&mut text).unwrap();
        assert_eq!(text, "through the socket");
        let (frame, descriptor) = recv_frame(&b, LIMIT).unwrap();
        assert!(frame.is_empty() && descriptor.is_none());
        drop(a);
        assert!(matches!(recv_frame(&b, LIMIT), Err(SocketError::Closed)));
        assert!(matches!(send_frame(&b, b"x", LIMIT, None), Err(SocketError::Closed)));
    }

    #[test]
    fn a_large_frame_passes_in_pieces_and_a_larger_one_is_refused() {
        let (a, b) = UnixStream::pair().unwrap();
        let bytes = vec![3; 4 << 20];
        let refused = send_frame(&a, &bytes, LIMIT, None);
        assert!(matches!(refused, Err(SocketError::FrameTooLarge { limit_bytes: LIMIT, .. })));
        let sent = bytes.clone();
        let sender = std::thread::spawn(move || send_frame(&a, &sent, usize::MAX, None));
        assert!(recv_frame(&b, usize::MAX).unwrap().0 == bytes);
        sender.join().unwrap().unwrap();
    }

    #[test]
    fn silence_ends_at_the_deadline() {
        let (_a, b) = UnixStream::pair().unwrap();
        b.set_read_timeout(Some(Duration::from_millis(10))).unwrap();
        assert!(matches!(recv_frame(&b, LIMIT), Err(SocketError::Timeout { .. })));
    }

    #[test]
    fn the_socket_is_closed_to_others() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("private").join("node.sock");
        let listener = bind(&path).unwrap();
        assert!(matches!(bind(&path), Err(SocketError::InUse)), "a living socket is not replaced");
        let mode = |p: &Path| fs::metadata(p).unwrap().mode() & 0o777;
        assert_eq!((mode(&path), mode(path.parent().unwrap())), (0o600, 0o700));
        let client = connect(&path, Duration::from_secs(20)).unwrap();
        let (server, _) = listener.accept().unwrap();
        assert_eq!(check_peer(&server).unwrap().process_id, std::process::id());
        assert!(check_peer(&client).is_ok());
        drop((listener, server));
        bind(&path).unwrap();
        fs::set_permissions(path.parent().unwrap(), Permissions::from_mode(0o750)).unwrap();
        assert!(matches!(bind(&path), Err(SocketError::OpenDirectory { mode: 0o750, .. })));
    }

    #[test]
    fn a_place_that_binding_would_refuse_is_refused_and_nothing_is_made() {
        let root = tempfile::tempdir().unwrap();
        let place = |name: &str| root.path().join(name);
        let socket = place("private/below/node.sock");
        check_place(&socket).unwrap();
        assert!(!place("private").exists());
        let _listener = bind(&socket).unwrap();
        check_place(&socket).unwrap();
        fs::write(place("private/below/file"), "a file").unwrap();
        for refused in ["file", "file/node.sock", "file/below/node.sock"] {
            assert!(check_place(&place("private/below").join(refused)).is_err(), "{refused}");
        }
        assert!(check_place(&place(&"x".repeat(108))).is_err());
        fs::set_permissions(place("private/below"), Permissions::from_mode(0o755)).unwrap();
        assert!(matches!(check_place(&socket), Err(SocketError::OpenDirectory { mode: 0o755, .. })));
    }

    /// A node that was stopped, at which others have asked.
    #[test]
    fn a_listener_that_takes_nobody_up_is_waited_for_until_the_limit() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("private").join("node.sock");
        let listener = bind(&path).unwrap();
        rustix::net::listen(&listener, 1).unwrap();
        let mut waiting = Vec::new();
        let full = loop {
            match connect(&path, Duration::from_millis(20)) {
                Ok(stream) => waiting.push(stream),
                Err(cause) => break cause,
            }
            assert!(waiting.len() < 10, "it lets few wait");
        };
        assert_eq!(full.kind(), ErrorKind::WouldBlock, "{full}");
        assert!(matches!(bind(&path), Err(SocketError::InUse)), "somebody is there");
        waiting.clear();
        listener.accept().unwrap();
        while listener.set_nonblocking(true).is_ok() && listener.accept().is_ok() {}
        assert_eq!(connect(&path, Duration::from_secs(20)).unwrap().write_timeout().unwrap(), None);
    }

    #[test]
    fn of_many_that_bind_at_once_one_is_reached() {
        let root = tempfile::tempdir().unwrap();
        for round in 0..50 {
            let path = root.path().join(format!("{round}/node.sock"));
            drop(bind(&path).unwrap());
            let start = std::sync::Barrier::new(4);
            let bound: Vec<_> = std::thread::scope(|scope| {
                let one = || {
                    start.wait();
                    bind(&path)
                };
                let all: Vec<_> = (0..4).map(|_| scope.spawn(one)).collect();
                all.into_iter().map(|thread| thread.join().unwrap()).collect()
            });
            let refused = bound.iter().filter(|b| matches!(b, Err(SocketError::InUse))).count();
            let listeners: Vec<_> = bound.into_iter().filter_map(Result::ok).collect();
            assert_eq!((listeners.len(), refused), (1, 3));
            let _client = connect(&path, Duration::from_secs(20)).unwrap();
            listeners[0].set_nonblocking(true).unwrap();
            assert!(listeners[0].accept().is_ok(), "the address is that of the listener");
        }
    }

    #[test]
    fn what_is_no_socket_stays() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("private/node.sock");
        drop(bind(&path).unwrap());
        fs::remove_file(&path).unwrap();
        fs::write(&path, "a file").unwrap();
        assert!(matches!(bind(&path), Err(SocketError::System { .. })));
        assert_eq!(fs::read(&path).unwrap(), b"a file");
    }

    proptest! {
        #[test]
        fn noise_never_panics_or_allocates_beyond_the_limit(
            noise in prop::collection::vec(any::<u8>(), 0..64),
        ) {
            let (mut a, b) = UnixStream::pair().unwrap();
            a.write_all(&noise).unwrap();
            drop(a);
            while let Ok((frame, _)) = recv_frame(&b, 32) {
                prop_assert!(frame.capacity() <= 64);
            }
        }
    }
}
