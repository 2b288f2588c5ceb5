//! The output of workers: passed on line by line, and the last of it kept for failures.

use super::Shared;
use crate::inbox::Input;
use crate::logs::unix_ms;
use crate::registry::lock;
use std::collections::VecDeque;
use std::io::Read;
use std::process::Child;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;
use tharsis_types::JobId;
use tharsis_types::limits::LOG_TAIL_BYTES;

/// After its end, a worker's last output is awaited this long (a grandchild may hold the pipe open).
const LAST_OUTPUT_WAIT: Duration = Duration::from_millis(100);

/// The last output of a process.
#[derive(Default)]
pub(super) struct Tail {
    bytes: Mutex<VecDeque<u8>>,
    /// Number of earlier bytes, which were dropped.
    before: AtomicU64,
    open_pipes: Mutex<u32>,
    closed: Condvar,
}

/// Reads the output of a process of a job until it ends.
pub(super) fn follow(shared: &Arc<Shared>, tail: &Arc<Tail>, child: &mut Child, job: JobId) {
    let pid = child.id();
    if let Some(pipe) = child.stdout.take() {
        read_output(shared, tail, pipe, job, pid, false);
    }
    if let Some(pipe) = child.stderr.take() {
        read_output(shared, tail, pipe, job, pid, true);
    }
}

impl Tail {
    fn append(&self, new: &[u8]) {
        let mut bytes = lock(&self.bytes);
        bytes.extend(new);
        let surplus = bytes.len().saturating_sub(LOG_TAIL_BYTES);
        bytes.drain(..surplus);
        self.before.fetch_add(surplus as u64, Ordering::Relaxed);
    }

    fn pipe_closed(&self) {
        *lock(&self.open_pipes) -= 1;
        self.closed.notify_all();
    }

    /// The last output, once the pipes are closed or it is not awaited any more.
    pub(super) fn last_output(&self) -> String {
        let open = lock(&self.open_pipes);
        let waited = self.closed.wait_timeout_while(open, LAST_OUTPUT_WAIT, |open| *open > 0);
        drop(waited);
        let bytes: Vec<u8> = lock(&self.bytes).iter().copied().collect();
        let text = String::from_utf8_lossy(&bytes);
        match self.before.load(Ordering::Relaxed) {
            0 => text.into_owned(),
            before => format!("[{before} bytes left out]\n{text}"),
        }
    }
}

/// Passes complete lines on and keeps the last of them.
fn read_output(
    shared: &Arc<Shared>,
    tail: &Arc<Tail>,
    mut pipe: impl Read + Send + 'static,
    job: JobId,
    pid: u32,
    stderr: bool,
) {
    let (inbox, log, tail) = (Arc::clone(&shared.inbox), Arc::clone(&shared.starting.log), Arc::clone(tail));
    let room = shared.output_room.clone();
    *lock(&tail.open_pipes) += 1;
    let reader = std::thread::Builder::new().name("output".into()).stack_size(128 << 10);
    let also_tail = Arc::clone(&tail);
    let spawned = reader.spawn(move || {
        let mut buffer = vec![0; 8192];
        let mut line = Vec::new();
        while let Ok(len @ 1..) = pipe.read(&mut buffer) {
            tail.append(&buffer[..len]);
            line.extend_from_slice(&buffer[..len]);
            let complete = line.iter().rposition(|b| *b == b'\n').map_or(0, |at| at + 1);
            let full = if line.len() > LOG_TAIL_BYTES * 4 { line.len() } else { complete };
            if full > 0 {
                let rest = line.split_off(full);
                let text = std::mem::replace(&mut line, rest);
                log.write(unix_ms(), job, pid, stderr, &text);
                // A worker that writes faster than the loop takes it waits for its pipe.
                let room = room.take_on_thread(text.len());
                inbox.put(Input::Log { job, pid, stderr, text, room });
            }
        }
        if !line.is_empty() {
            line.push(b'\n');
            log.write(unix_ms(), job, pid, stderr, &line);
            let room = room.take_on_thread(line.len());
            inbox.put(Input::Log { job, pid, stderr, text: line, room });
        }
        tail.pipe_closed();
    });
    if spawned.is_err() {
        also_tail.pipe_closed();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tail_says_how_much_it_leaves_out() {
        let tail = Tail::default();
        tail.append(b"first\n");
        assert_eq!(tail.last_output(), "first\n");
        tail.append(&[b'x'; LOG_TAIL_BYTES]);
        let text = tail.last_output();
        assert_eq!(text.strip_prefix("[6 bytes left out]\n"), Some("x".repeat(LOG_TAIL_BYTES).as_str()));
    }
}
