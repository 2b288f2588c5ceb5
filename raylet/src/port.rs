//! The node's end of a client's connection.

use crate::credit::Credit;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;
use tharsis_object_store::{Bell, Channel, Consumer, PendingLarge, Producer, PushError, Segment};
use tharsis_protos::handshake::FunctionEntry;
use tharsis_protos::records::ToClient;
use tharsis_types::{ClientId, FunctionId, JobId, ObjectId, Quota, TaskClass};

/// Bytes that may wait for a driver that does not read before log lines are dropped. The driver is told of
/// that.
const LOG_OVERFLOW_BYTES_MAX: usize = 1 << 20;
/// Bytes of records that may wait for a client that does not read. Values beyond them stay in the ledger
/// until it does.
const VALUE_OVERFLOW_BYTES_MAX: usize = 4 << 20;

/// A client's connection.
pub struct Port {
    /// The client.
    pub client: ClientId,
    /// Whether it is a driver.
    pub is_driver: bool,
    /// Facts by which its records are checked.
    pub facts: Facts,
    /// Calls that it may send, if it is a driver.
    pub credit: Credit,
    /// Whether the loop has noted that it is to be flushed.
    pub is_noted: bool,
    producer: Producer,
    consumer: Consumer,
    bell: Bell,
    /// Records that found the ring full, in order.
    overflow: VecDeque<PendingLarge>,
    overflow_bytes: usize,
    /// References whose values are delivered when the client has read the waiting records.
    late: VecDeque<(u64, ObjectId)>,
    /// Bytes of output that were left out and that the client was not told of yet, by process.
    left_out: BTreeMap<u32, u64>,
    /// Classes the client knows, by number.
    classes: Vec<Option<Arc<TaskClass>>>,
    wrote: bool,
    scratch: Vec<u8>,
    /// Keeps the rings mapped.
    _segment: Arc<Segment>,
}

/// The outcome for a record that was looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taken {
    /// It was read.
    Taken,
    /// It stays in the ring, and so do the records behind it.
    Left,
}

/// Position up to which a ring was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Drained {
    /// The ring is empty.
    All,
    /// There may be more.
    Some,
    /// The next record was left in the ring.
    UntilLeft,
}

/// Functions of a program, by id: signature and name.
pub type FunctionTable = Arc<HashMap<FunctionId, (u64, String)>>;

/// Facts about a client that are needed to check its records.
#[derive(Clone, Debug)]
pub struct Facts {
    /// Its job.
    pub job: JobId,
    /// Functions that the job's workers have.
    pub functions: FunctionTable,
    /// Its process.
    pub pid: u32,
}

/// Functions by id, for lookups.
#[must_use]
pub fn function_table(entries: &[FunctionEntry]) -> FunctionTable {
    Arc::new(entries.iter().map(|e| (e.id, (e.signature, e.name.clone()))).collect())
}

impl Port {
    /// The node's end of a channel.
    #[must_use]
    pub fn new(
        client: ClientId,
        is_driver: bool,
        facts: Facts,
        channel: Channel,
        segment: Arc<Segment>,
    ) -> Self {
        Self {
            client,
            is_driver,
            facts,
            credit: Credit::default(),
            is_noted: false,
            producer: channel.producer,
            consumer: channel.consumer,
            bell: channel.bell,
            overflow: VecDeque::new(),
            overflow_bytes: 0,
            late: VecDeque::new(),
            left_out: BTreeMap::new(),
            classes: Vec::new(),
            wrote: false,
            scratch: Vec::new(),
            _segment: segment,
        }
    }

    /// Hands up to `max` records to `take`, until it leaves one; returns the position that was reached.
    ///
    /// # Errors
    /// The fault of the ring or of a record; the client must then be cut off.
    pub fn drain(
        &mut self,
        max: usize,
        mut take: impl FnMut(&Facts, &[u8]) -> Result<Taken, String>,
    ) -> Result<Drained, String> {
        let mut drained = Drained::Some;
        for _ in 0..max {
            match self.consumer.peek().map_err(|corrupt| corrupt.to_string())? {
                Some(record) if take(&self.facts, record)? == Taken::Left => {
                    drained = Drained::UntilLeft;
                    break;
                }
                Some(_) => {}
                None => {
                    drained = Drained::All;
                    break;
                }
            }
            self.consumer.advance();
        }
        // A client that waits for room looks again by itself.
        self.consumer.release();
        Ok(drained)
    }

    /// Writes a record, or keeps it until there is room.
    pub fn write(&mut self, record: &ToClient<'_>) {
        self.scratch.clear();
        record.encode(&mut self.scratch);
        self.wrote = true;
        if self.overflow.is_empty() && self.scratch.len() <= self.producer.record_bytes_max() {
            match self.producer.try_push(&[&self.scratch]) {
                Ok(()) => return,
                Err(PushError::Full) => {}
                Err(error) => {
                    tracing::error!(client = self.client.0, %error, "record cannot be sent");
                    return;
                }
            }
        }
        self.overflow_bytes += self.scratch.len();
        self.overflow.push_back(PendingLarge::new(std::mem::take(&mut self.scratch)));
    }

    /// Notes that the client knows a class by a number from now on; true if it did not before. A number is
    /// used again once the job of its class has ended: the worker of an actor outlives other jobs that call
    /// it.
    pub fn learns_class(&mut self, number: u32, class: &Arc<TaskClass>) -> bool {
        let index = number as usize;
        if self.classes.len() <= index {
            self.classes.resize(index + 1, None);
        }
        let known = &mut self.classes[index];
        if known.as_ref() == Some(class) {
            return false;
        }
        *known = Some(Arc::clone(class));
        true
    }

    /// Passes on output of a worker, unless the driver is far behind.
    pub fn log(&mut self, pid: u32, stderr: bool, text: &[u8]) {
        if LOG_OVERFLOW_BYTES_MAX <= self.overflow_bytes {
            *self.left_out.entry(pid).or_default() += text.len() as u64;
            return;
        }
        self.tell_left_out();
        self.write(&ToClient::Log { pid, stderr, text });
    }

    /// Tells the client in place of the dropped output how many bytes it had.
    fn tell_left_out(&mut self) {
        for (pid, bytes) in std::mem::take(&mut self.left_out) {
            let text = format!("[{bytes} bytes left out: they came faster than this program read them]\n");
            self.write(&ToClient::Log { pid, stderr: true, text: text.as_bytes() });
        }
    }

    /// Tells the client to end.
    pub fn shutdown(&mut self, reason: &str) {
        self.write(&ToClient::Shutdown { reason });
        self.flush();
    }

    /// Whether records wait for room.
    #[must_use]
    pub fn is_overfull(&self) -> bool {
        !self.overflow.is_empty() || !self.late.is_empty()
    }

    /// Whether so many records wait that values should stay in the ledger.
    #[must_use]
    pub fn is_far_behind(&self) -> bool {
        !self.late.is_empty() || VALUE_OVERFLOW_BYTES_MAX <= self.overflow_bytes
    }

    /// Delivers an inline value once the client has read the waiting records. The value stays in the ledger
    /// for as long as the client refers to it.
    pub fn deliver_later(&mut self, token: u64, object: ObjectId) {
        self.late.push_back((token, object));
    }

    /// The next late value, if it can be delivered now.
    pub fn next_late(&mut self) -> Option<(u64, ObjectId)> {
        let has_room = self.overflow.is_empty();
        let next = if has_room { self.late.pop_front() } else { None };
        if self.late.is_empty() && self.late.capacity() != 0 {
            self.late = VecDeque::new();
        }
        next
    }

    /// Publishes the written records to the client and wakes it if it sleeps.
    pub fn flush(&mut self) {
        self.push_overflow();
        if self.overflow.is_empty() && !self.left_out.is_empty() {
            self.tell_left_out();
        }
        if std::mem::take(&mut self.wrote) {
            self.producer.publish();
            self.bell.ring();
        }
    }

    /// Moves waiting records into the ring, as far as there is room.
    fn push_overflow(&mut self) {
        while let Some(first) = self.overflow.front_mut() {
            let before = first.remaining_bytes();
            let sent = self.producer.try_push_large(first);
            self.wrote |= first.remaining_bytes() < before;
            match sent {
                Ok(true) => {
                    self.wrote = true;
                    if let Some(done) = self.overflow.pop_front() {
                        self.overflow_bytes =
                            self.overflow_bytes.saturating_sub(before.max(done.remaining_bytes()));
                    }
                }
                Ok(false) => break,
                Err(error) => {
                    tracing::error!(client = self.client.0, %error, "record cannot be sent");
                    self.overflow.pop_front();
                }
            }
        }
        if self.overflow.is_empty() {
            self.overflow_bytes = 0;
        }
    }
}

/// The part of a client that lives in the process of its node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EmbeddedPart {
    /// The driver, and the most that its job may hold at once.
    Driver(Option<Quota>),
    /// A worker thread, with the number of its start.
    Worker(u64),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_worker_is_told_of_the_class_that_took_over_a_number() {
        let segment = Arc::new(Segment::anonymous(Channel::BYTES).unwrap());
        let channel = Channel::node_side(&segment).unwrap();
        let facts = Facts { job: JobId(1), functions: Arc::default(), pid: 1 };
        let mut port = Port::new(ClientId(1), false, facts, channel, segment);
        // Methods of its actor that two other jobs call, one after the other.
        let class = |job, name| Arc::new(TaskClass::new(JobId(job), FunctionId(1), name));
        let (add, clear) = (class(2, "add"), class(3, "clear"));
        assert!(port.learns_class(4, &add));
        assert!(!port.learns_class(4, &add) && !port.learns_class(4, &class(2, "add")));
        assert!(port.learns_class(4, &clear), "the number has another class now");
        assert!(!port.learns_class(4, &clear));
    }

    #[test]
    fn output_that_a_driver_does_not_read_is_counted_and_told() {
        let segment = Arc::new(Segment::anonymous(Channel::BYTES).unwrap());
        let channel = Channel::node_side(&segment).unwrap();
        let mut client = Channel::client_side(&segment).unwrap();
        let facts = Facts { job: JobId(1), functions: Arc::default(), pid: 1 };
        let mut port = Port::new(ClientId(1), true, facts, channel, segment);
        let line = [[b'x'; 999].as_slice(), b"\n"].concat();
        let (mut written, mut read, mut told) = (0_u64, 0_u64, 0_u64);
        let mut drain = |port: &mut Port| {
            port.flush();
            let mut some = false;
            while let Some(record) = client.consumer.peek().unwrap() {
                some = true;
                if let ToClient::Log { text, pid: 7, .. } = ToClient::decode(record).unwrap() {
                    let text = String::from_utf8(text.to_vec()).unwrap();
                    match text.strip_prefix('[') {
                        Some(notice) => {
                            assert!(notice.contains("bytes left out"), "{notice}");
                            told += notice.split(' ').next().unwrap().parse::<u64>().unwrap();
                        }
                        None => read += text.len() as u64,
                    }
                }
                client.consumer.advance();
            }
            client.consumer.release();
            some
        };
        // Write more than the ring and the overflow hold, and read everything; then do so again.
        for _ in 0..2 {
            for _ in 0..8_000 {
                port.log(7, false, &line);
                written += line.len() as u64;
            }
            while drain(&mut port) {}
        }
        assert!(0 < told && LOG_OVERFLOW_BYTES_MAX as u64 <= read, "{told} and {read}");
        assert_eq!(read + told, written, "every byte is read or told to be left out");
    }
}
