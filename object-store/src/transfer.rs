//! Object bytes from one node to another, over one blocking TCP connection per pair and direction.
//!
//! ```text
//! receiver                      sender
//! hello                    ->
//!                          <-   hello
//! request {key, range}     ->
//!                          <-   chunk header, bytes; chunk header, bytes; ... to the end of the range
//! done                     ->                          (the sender lets the object go)
//! ```
//! The receiver drives: nothing moves that it did not ask for, and it asks for a range only when it has room
//! for it, so its requests are the credits. Bytes land where they will stay, in the slice that the caller
//! gives.
//!
//! *Nothing is believed.* Every chunk carries an xxh3 checksum of its bytes as they left; it is verified as
//! they land. A sealed connection ([`Wire::is_sealed`]) has the tags of its cipher instead, and no checksums.
//! A bad chunk is asked for again, [`RETRIES_MAX`] times, then the fetch is [`TransferError::Corrupt`].
//! Headers are checked against the request before a byte is read, and no length
//! from the wire sizes an allocation.
//!
//! *Resuming.* A failed fetch says how many bytes from the start of the range are verified; the caller asks
//! another holder for the rest.
//!
//! *Copies.* The sender hashes a chunk and then copies it into the socket, from the second-level cache. To
//! hand the pages of the arena to the kernel instead (`sendfile`) was measured at half of that between two
//! processes of one machine: the kernel splits them into single pages, and the receiver reads them from
//! memory again.
//!
//! *Pins.* The [`SourceRange`], and the pin inside it, is held until the receiver says done or the connection
//! is over: it asks for bad chunks again.
//!
//! *Deadlines.* A socket that stalls for [`STALL_MAX`] ends the transfer on either side; the receiver also
//! has a deadline for the whole fetch. A thread per connection is the price; there is one connection per pair
//! of nodes.

use crate::transfer_frame::{
    CHUNK_HEADER_BYTES, ChunkHeader, HELLO_BYTES, REQUEST_BYTES, Request, RequestKind, Status, decode_hello,
    encode_hello,
};
use rustix::net::{SendFlags, send};
use std::hash::Hasher;
use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use twox_hash::XxHash3_64;

pub use crate::transfer_frame::{MAGIC, ObjectKey, VERSION};

/// Bytes of one chunk that the sender sends; a mebibyte stays in the second-level cache between hash and
/// copy.
pub const CHUNK_BYTES: usize = 1 << 20;
/// Largest chunk that the receiver accepts.
pub const CHUNK_BYTES_MAX: u64 = 16 << 20;
/// Number of times that a bad chunk is requested again.
pub const RETRIES_MAX: u32 = 3;
/// A connection on which nothing moves for this long, in the middle of a transfer, is given up.
pub const STALL_MAX: Duration = Duration::from_secs(30);

/// Ranges with bad checksums that one pass may leave; more means that the link or the peer is broken.
const BAD_RANGES_MAX: usize = 64;
/// Bytes hashed right after they were read, while they are in the cache.
const LAND_BYTES: usize = 256 << 10;
/// Interval at which a waiting side checks for a stop request and its deadline.
const STOP_POLL: Duration = Duration::from_millis(100);

/// Why bytes did not arrive.
#[derive(Debug, thiserror::Error)]
pub enum TransferError {
    /// The peer sent what the protocol does not allow.
    #[error("the peer broke the protocol: {what}")]
    BadPeer {
        /// The rule that was broken.
        what: &'static str,
    },
    /// The sender serves as many as it can: ask again.
    #[error("the sender is busy")]
    Busy,
    /// The connection is over.
    #[error("the connection is closed")]
    Closed,
    /// A chunk that stayed bad.
    #[error("bytes {offset}+{len} arrived corrupt {attempts} times")]
    Corrupt {
        /// Start of the bad range in the object.
        offset: u64,
        /// Bytes of the bad range.
        len: u64,
        /// Number of times that they were sent.
        attempts: u32,
    },
    /// The operating system refused.
    #[error("cannot {action}: {cause}")]
    Io {
        /// The action that failed.
        action: &'static str,
        /// The system's reason.
        #[source]
        cause: io::Error,
    },
    /// The sender does not have the object, or cannot read it.
    #[error("the object is not there")]
    NotFound,
    /// The object is shorter than the range asked for.
    #[error("range {offset}+{len} leaves the object of {total_bytes} bytes")]
    OutOfRange {
        /// First byte asked for.
        offset: u64,
        /// Bytes asked for.
        len: u64,
        /// Bytes of the object.
        total_bytes: u64,
    },
    /// Too slow.
    #[error("timed out: cannot {action} in time")]
    Timeout {
        /// The action that failed.
        action: &'static str,
    },
    /// The peer speaks another version.
    #[error("the peer speaks version {theirs} of the transfer protocol, we speak {ours}")]
    Version {
        /// Ours.
        ours: u32,
        /// Theirs.
        theirs: u32,
    },
}

/// A fetch that did not finish.
#[derive(Debug, thiserror::Error)]
#[error("{done_bytes} bytes of the range arrived, then: {cause}")]
pub struct FetchError {
    /// Verified bytes from the start of the range; the rest can be asked of another holder.
    pub done_bytes: u64,
    /// The error that ended the fetch.
    #[source]
    pub cause: TransferError,
}

/// The source of the objects that a sender serves.
pub trait Source: Send + Sync {
    /// The sealed bytes of an object, pinned for as long as the answer lives.
    fn open(&self, key: &ObjectKey) -> Option<SourceRange>;

    /// Nothing is read over this connection until the next object is opened.
    fn rests(&self) {}

    /// Reports bytes of the object that were handed to the kernel for a receiver, for statistics.
    fn sent(&self, key: &ObjectKey, bytes: u64) {
        let _nobody_counts = (key, bytes);
    }
}

/// Sealed bytes to be sent.
pub enum SourceRange {
    /// They are in memory, with whatever keeps them where they are.
    Memory(Box<dyn AsRef<[u8]> + Send + Sync>),
    /// They are read a chunk at a time.
    Stored(Box<dyn ReadAt>),
}

/// Bytes that are not in memory.
pub trait ReadAt: Send {
    /// Total number of these bytes.
    fn total_bytes(&self) -> u64;

    /// Reads a range that lies within them.
    ///
    /// # Errors
    /// Why it cannot be read; the receiver is told that the object is not there.
    fn read_at(&self, offset: u64, target: &mut [u8]) -> io::Result<()>;
}

impl SourceRange {
    fn total_bytes(&self) -> u64 {
        match self {
            SourceRange::Memory(bytes) => (**bytes).as_ref().len() as u64,
            SourceRange::Stored(stored) => stored.total_bytes(),
        }
    }
}

/// A connection between two nodes, proved to be one.
pub trait Wire: Read + Write + Send {
    /// The connection below, for timeouts.
    fn tcp(&self) -> &TcpStream;

    /// Whether every byte is vouched for by the tag of a cipher, so that checksums would say nothing new.
    fn is_sealed(&self) -> bool {
        false
    }

    /// Writes a part of `bytes`; `more` says that others follow at once.
    ///
    /// # Errors
    /// The system's.
    fn send(&mut self, bytes: &[u8], more: bool) -> io::Result<usize> {
        let _nobody_waits = more;
        self.write(bytes)
    }
}

impl Wire for TcpStream {
    fn tcp(&self) -> &TcpStream {
        self
    }

    fn send(&mut self, bytes: &[u8], more: bool) -> io::Result<usize> {
        let flags = if more { SendFlags::NOSIGNAL | SendFlags::MORE } else { SendFlags::NOSIGNAL };
        Ok(send(self, bytes, flags)?)
    }
}

/// The receiving end of a connection.
pub struct Receiver {
    stream: Box<dyn Wire>,
    next_request: u64,
    is_broken: bool,
}

impl Receiver {
    /// Greets the sender at the other end of a fresh connection.
    ///
    /// # Errors
    /// `BadPeer` or `Version` if it does not understand, `Busy` if it has no place for us now, `Timeout`,
    /// `Closed`, `Io`.
    pub fn new(stream: impl Wire + 'static) -> Result<Receiver, TransferError> {
        let mut stream: Box<dyn Wire> = Box::new(stream);
        prepare(stream.tcp(), STALL_MAX)?;
        stream.write_all(&encode_hello(false)).map_err(|cause| failed("greet the sender", cause))?;
        let mut hello = [0; HELLO_BYTES];
        stream.read_exact(&mut hello).map_err(|cause| failed("hear the sender's greeting", cause))?;
        check_hello(&hello)?;
        stream
            .tcp()
            .set_read_timeout(Some(STOP_POLL))
            .map_err(|cause| failed("set up the connection", cause))?;
        Ok(Receiver { stream, next_request: 1, is_broken: false })
    }

    /// Fetches `target.len()` bytes of an object from `offset` on, straight into `target`.
    ///
    /// # Errors
    /// The error and the number of bytes received. The connection can be used again after `NotFound`,
    /// `OutOfRange` and `Corrupt`, and after no other error.
    pub fn fetch(
        &mut self,
        key: &ObjectKey,
        offset: u64,
        target: &mut [u8],
        deadline: Duration,
    ) -> Result<(), FetchError> {
        let mut pass = Pass { until: Instant::now().checked_add(deadline), landed: 0, bad: Vec::new() };
        let outcome = self.fetch_all(key, offset, target, &mut pass);
        outcome.map_err(|cause| {
            use TransferError::{Corrupt, NotFound, OutOfRange};
            self.is_broken |= !matches!(cause, NotFound | OutOfRange { .. } | Corrupt { .. });
            FetchError { done_bytes: pass.done_bytes(), cause }
        })
    }

    fn fetch_all(
        &mut self,
        key: &ObjectKey,
        offset: u64,
        target: &mut [u8],
        pass: &mut Pass,
    ) -> Result<(), TransferError> {
        if self.is_broken {
            return Err(TransferError::Closed);
        }
        if offset.checked_add(target.len() as u64).is_none() {
            let len = target.len() as u64;
            return Err(TransferError::OutOfRange { offset, len, total_bytes: u64::MAX });
        }
        self.fetch_range(key, offset, (0, target.len()), target, pass)?;
        for attempts in 2..=RETRIES_MAX + 1 {
            for range in std::mem::take(&mut pass.bad) {
                // Until it is mended the prefix ends here, whatever happens on the way.
                pass.bad.push(range);
                let index = pass.bad.len() - 1;
                self.fetch_range(key, offset, range, target, pass)?;
                pass.bad.remove(index);
            }
            if let (Some(&(at, len)), true) = (pass.bad.first(), attempts == RETRIES_MAX + 1) {
                self.finish(key)?;
                let (offset, len) = (offset + at as u64, len as u64);
                return Err(TransferError::Corrupt { offset, len, attempts });
            }
        }
        self.finish(key)
    }

    /// Fetches one range of the target, given as start and length within it.
    fn fetch_range(
        &mut self,
        key: &ObjectKey,
        base: u64,
        (start, len): (usize, usize),
        target: &mut [u8],
        pass: &mut Pass,
    ) -> Result<(), TransferError> {
        self.send(RequestKind::Fetch, key, base + start as u64, len as u64)?;
        let mut at = start;
        let end = start + len;
        // An empty range is answered by one empty chunk, so that a missing object is noticed all the same.
        loop {
            let header = self.read_chunk_header(pass)?;
            let (wanted, room) = (base + at as u64, (end - at) as u64);
            match header.status {
                Status::NotFound => return Err(TransferError::NotFound),
                Status::OutOfRange => {
                    let total_bytes = header.total_len;
                    return Err(TransferError::OutOfRange { offset: wanted, len: room, total_bytes });
                }
                Status::Chunk => {}
            }
            let fits = header.len <= room.min(CHUNK_BYTES_MAX) && (0 < header.len || room == 0);
            if header.offset != wanted || !fits {
                return Err(TransferError::BadPeer { what: "a chunk that was not asked for" });
            }
            let chunk_len = header.len as usize;
            if !self.land(&mut target[at..at + chunk_len], header.checksum, pass)? {
                pass.add_bad(at, chunk_len)?;
            }
            at += chunk_len;
            assert!(at <= end, "a chunk passes the end of its range");
            pass.landed = pass.landed.max(at);
            if at == end {
                return Ok(());
            }
        }
    }

    /// Reads bytes to where they stay. Says whether they are those that left.
    fn land(&mut self, target: &mut [u8], checksum: u64, pass: &Pass) -> Result<bool, TransferError> {
        if self.stream.is_sealed() {
            return self.read_full(target, pass).map(|()| true);
        }
        let mut hasher = XxHash3_64::new();
        for piece in target.chunks_mut(LAND_BYTES) {
            self.read_full(piece, pass)?;
            hasher.write(piece);
        }
        Ok(hasher.finish() == checksum)
    }

    fn read_chunk_header(&mut self, pass: &Pass) -> Result<ChunkHeader, TransferError> {
        let mut bytes = [0; CHUNK_HEADER_BYTES];
        self.read_full(&mut bytes, pass)?;
        match ChunkHeader::decode(&bytes) {
            Some(header) if header.request + 1 == self.next_request => Ok(header),
            Some(_) => Err(TransferError::BadPeer { what: "an answer to another request" }),
            None => Err(TransferError::BadPeer { what: "no chunk header where one belongs" }),
        }
    }

    /// Fills `target`, looking at the deadline at each piece that arrives and several times a second besides,
    /// so that neither silence nor a trickle outlasts it.
    fn read_full(&mut self, target: &mut [u8], pass: &Pass) -> Result<(), TransferError> {
        let mut filled = 0;
        let mut progress = Instant::now();
        while filled < target.len() {
            pass.check_deadline()?;
            match self.stream.read(&mut target[filled..]) {
                Ok(0) => return Err(TransferError::Closed),
                Ok(count) => {
                    filled += count;
                    progress = Instant::now();
                }
                Err(e) if is_pause(&e) && progress.elapsed() < STALL_MAX => {}
                Err(cause) => return Err(failed("receive a chunk", cause)),
            }
        }
        Ok(())
    }

    fn finish(&mut self, key: &ObjectKey) -> Result<(), TransferError> {
        self.send(RequestKind::Done, key, 0, 0)
    }

    fn send(
        &mut self,
        kind: RequestKind,
        key: &ObjectKey,
        offset: u64,
        len: u64,
    ) -> Result<(), TransferError> {
        let request = Request { kind, key: *key, request: self.next_request, offset, len };
        self.next_request += 1;
        self.stream.write_all(&request.encode()).map_err(|cause| failed("send a request", cause))
    }
}

/// Progress of a fetch.
struct Pass {
    until: Option<Instant>,
    /// Bytes from the start that landed, good or bad.
    landed: usize,
    /// Start and length of ranges that landed bad.
    bad: Vec<(usize, usize)>,
}

impl Pass {
    fn done_bytes(&self) -> u64 {
        self.bad.iter().map(|(at, _)| *at).fold(self.landed, usize::min) as u64
    }

    fn check_deadline(&self) -> Result<(), TransferError> {
        match self.until {
            Some(until) if until <= Instant::now() => {
                Err(TransferError::Timeout { action: "fetch the whole range" })
            }
            _ => Ok(()),
        }
    }

    fn add_bad(&mut self, at: usize, len: usize) -> Result<(), TransferError> {
        if self.bad.len() == BAD_RANGES_MAX {
            return Err(TransferError::BadPeer { what: "more bad checksums than a faulty link makes" });
        }
        self.bad.push((at, len));
        Ok(())
    }
}

/// The reply of a sender that has no place for another connection.
#[must_use]
pub fn busy() -> [u8; HELLO_BYTES] {
    encode_hello(true)
}

/// Answers the requests of one connection until the receiver closes it or `stop` becomes true.
///
/// The stream has been accepted and nothing has been read from it. A connection closed between two requests
/// is the regular end.
///
/// # Errors
/// `BadPeer`, `Version`, `Timeout` if the receiver stalls in mid-transfer, `Closed` if it goes away there,
/// `Io`.
pub fn serve(mut stream: impl Wire, source: &dyn Source, stop: &AtomicBool) -> Result<(), TransferError> {
    let stream: &mut dyn Wire = &mut stream;
    prepare(stream.tcp(), STOP_POLL)?;
    let mut hello = [0; HELLO_BYTES];
    if !read_or_stop(stream, &mut hello, stop, Some(STALL_MAX))? {
        return Ok(());
    }
    check_hello(&hello)?;
    stream.write_all(&encode_hello(false)).map_err(|cause| failed("greet the receiver", cause))?;
    // Held until the receiver speaks again: see the header on pins.
    let mut held: Option<(ObjectKey, SourceRange)> = None;
    loop {
        let mut bytes = [0; REQUEST_BYTES];
        let limit = held.is_some().then_some(STALL_MAX);
        if !read_or_stop(stream, &mut bytes, stop, limit)? {
            return Ok(());
        }
        let Some(request) = Request::decode(&bytes) else {
            return Err(TransferError::BadPeer { what: "no request where one belongs" });
        };
        match request.kind {
            RequestKind::Done => {
                held = None;
                source.rests();
            }
            RequestKind::Fetch => {
                if held.as_ref().is_none_or(|(key, _)| *key != request.key) {
                    held = source.open(&request.key).map(|range| (request.key, range));
                }
                answer(stream, &request, source, held.as_ref().map(|(_, range)| range), stop)?;
            }
        }
    }
}

fn answer(
    stream: &mut dyn Wire,
    request: &Request,
    source: &dyn Source,
    range: Option<&SourceRange>,
    stop: &AtomicBool,
) -> Result<(), TransferError> {
    let Some(range) = range else { return refuse(stream, request, Status::NotFound, 0) };
    let total_len = range.total_bytes();
    let end = match request.offset.checked_add(request.len) {
        Some(end) if end <= total_len => end,
        _ => return refuse(stream, request, Status::OutOfRange, total_len),
    };
    let mut at = request.offset as usize;
    let mut buffer = Vec::new();
    loop {
        if stop.load(Ordering::Relaxed) {
            return Err(TransferError::Closed);
        }
        let len = CHUNK_BYTES.min(end as usize - at);
        // The copy cannot be read, and another connection would not change that.
        let Some(chunk) = chunk_of(range, at, len, &mut buffer) else {
            return refuse(stream, request, Status::NotFound, 0);
        };
        let header = ChunkHeader {
            status: Status::Chunk,
            request: request.request,
            offset: at as u64,
            len: len as u64,
            total_len,
            checksum: if stream.is_sealed() { 0 } else { XxHash3_64::oneshot(chunk) },
        };
        send_all(stream, &header.encode(), 0 < len)?;
        send_all(stream, chunk, false)?;
        source.sent(&request.key, len as u64);
        at += len;
        assert!(at as u64 <= end, "more is sent than was asked for");
        if at == end as usize {
            return Ok(());
        }
    }
}

/// One chunk of a range, read into `buffer` if it is not in memory; `None` if it cannot be read.
fn chunk_of<'a>(range: &'a SourceRange, at: usize, len: usize, buffer: &'a mut Vec<u8>) -> Option<&'a [u8]> {
    match range {
        SourceRange::Memory(bytes) => Some(&(**bytes).as_ref()[at..at + len]),
        SourceRange::Stored(stored) => {
            buffer.resize(len, 0);
            stored.read_at(at as u64, buffer).ok()?;
            Some(buffer)
        }
    }
}

fn refuse(
    stream: &mut dyn Wire,
    request: &Request,
    status: Status,
    total_len: u64,
) -> Result<(), TransferError> {
    let Request { request, offset, .. } = *request;
    let header = ChunkHeader { status, request, offset, len: 0, total_len, checksum: 0 };
    send_all(stream, &header.encode(), false)
}

fn send_all(stream: &mut dyn Wire, bytes: &[u8], more: bool) -> Result<(), TransferError> {
    let mut rest = bytes;
    let mut progress = Instant::now();
    while !rest.is_empty() {
        match stream.send(rest, more) {
            Ok(sent) => {
                assert!(sent <= rest.len(), "more was sent than there is");
                rest = &rest[sent..];
                progress = Instant::now();
            }
            Err(e) if is_pause(&e) && progress.elapsed() < STALL_MAX => {}
            Err(cause) => return Err(failed("send to the receiver", cause)),
        }
    }
    Ok(())
}

/// Fills `target`; false if the peer closed before its first byte or `stop` became true.
fn read_or_stop(
    stream: &mut dyn Wire,
    target: &mut [u8],
    stop: &AtomicBool,
    limit: Option<Duration>,
) -> Result<bool, TransferError> {
    let mut filled = 0;
    let mut progress = Instant::now();
    while filled < target.len() {
        if stop.load(Ordering::Relaxed) {
            return Ok(false);
        }
        // Once a frame has begun, the rest must follow.
        let limit = if filled == 0 { limit } else { Some(STALL_MAX) };
        if limit.is_some_and(|l| l <= progress.elapsed()) {
            return Err(TransferError::Timeout { action: "receive a request" });
        }
        match stream.read(&mut target[filled..]) {
            Ok(0) if filled == 0 => return Ok(false),
            Ok(0) => return Err(TransferError::Closed),
            Ok(count) => {
                filled += count;
                assert!(filled <= target.len(), "more was read than there is room for");
                progress = Instant::now();
            }
            Err(e) if is_pause(&e) => {}
            Err(e) if filled == 0 && e.kind() == ErrorKind::ConnectionReset => return Ok(false),
            Err(cause) => return Err(failed("receive a request", cause)),
        }
    }
    Ok(true)
}

/// Whether a read ended for no other reason than that it was time to look around.
fn is_pause(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted)
}

fn prepare(stream: &TcpStream, read_timeout: Duration) -> Result<(), TransferError> {
    let failed = |cause| failed("set up the connection", cause);
    stream.set_nonblocking(false).map_err(failed)?;
    stream.set_nodelay(true).map_err(failed)?;
    stream.set_read_timeout(Some(read_timeout)).map_err(failed)?;
    stream.set_write_timeout(Some(STALL_MAX)).map_err(failed)
}

fn check_hello(hello: &[u8; HELLO_BYTES]) -> Result<(), TransferError> {
    match decode_hello(hello) {
        Some((VERSION, false)) => Ok(()),
        Some((VERSION, true)) => Err(TransferError::Busy),
        Some((theirs, _)) => Err(TransferError::Version { ours: VERSION, theirs }),
        None => Err(TransferError::BadPeer { what: "no greeting of this protocol" }),
    }
}

fn failed(action: &'static str, cause: io::Error) -> TransferError {
    match cause.kind() {
        ErrorKind::WouldBlock | ErrorKind::TimedOut => TransferError::Timeout { action },
        ErrorKind::BrokenPipe | ErrorKind::ConnectionReset | ErrorKind::UnexpectedEof => {
            TransferError::Closed
        }
        _ => TransferError::Io { action, cause },
    }
}

#[cfg(test)]
#[path = "transfer_tests.rs"]
mod tests;
