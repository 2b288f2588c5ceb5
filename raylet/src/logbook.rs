//! Output of the workers of a node, kept on disk for those who ask later.
//!
//! Lines of all workers stand in one log, in the order in which they were read, each with its time, job and
//! process. The log is cut into segments; the oldest is removed when there are too many. So its size is
//! bounded, whatever workers write, and a reader needs no more than a position:
//!
//! ```text
//! <folder>/<position of its first byte, 16 hexadecimal digits>.log
//! 1764032400123 00000007 4242 o text of the line
//! ```
//! A reader that is overtaken by the removal of segments goes on with the oldest one that is left.

use crate::registry::lock;
use std::collections::VecDeque;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use tharsis_protos::logs::{LINE_BYTES_MAX, LogLine};
use tharsis_types::JobId;
use tokio::sync::watch;

/// Bytes after which a segment is followed by the next one.
const SEGMENT_BYTES: u64 = 4 << 20;
/// Segments that are kept.
const SEGMENTS_MAX: usize = 16;
/// Bytes that are read at a time. A line is shorter.
const READ_BYTES: u64 = 256 << 10;
const _: () = assert!((LINE_BYTES_MAX as u64) < READ_BYTES / 2, "a line and its head fit into what is read");

/// The log of the workers of one node.
pub struct LogBook {
    folder: PathBuf,
    state: Mutex<State>,
    /// Position behind the last byte.
    end: watch::Sender<u64>,
}

#[derive(Default)]
struct State {
    /// Positions of the segments, oldest first.
    segments: VecDeque<u64>,
    /// The last segment, and its length.
    file: Option<(File, u64)>,
}

/// Lines from a position on.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Page {
    /// The lines.
    pub lines: Vec<LogLine>,
    /// The position behind them.
    pub next: u64,
}

impl LogBook {
    /// An empty log in a folder, which is made; removes what lies there.
    ///
    /// # Errors
    /// If the folder cannot be made.
    pub fn open(folder: PathBuf) -> io::Result<Self> {
        // Of a node that was killed.
        let _removed = fs::remove_dir_all(&folder);
        DirBuilder::new().recursive(true).mode(0o700).create(&folder)?;
        Ok(Self { folder, state: Mutex::default(), end: watch::Sender::new(0) })
    }

    /// Appends lines of a worker. A disk that does not take them loses them, and nothing else.
    pub fn write(&self, unix_ms: u64, job: JobId, pid: u32, is_stderr: bool, text: &[u8]) {
        let stream = if is_stderr { 'e' } else { 'o' };
        let head = format!("{unix_ms} {:08x} {pid} {stream} ", job.0);
        let mut bytes = Vec::with_capacity(text.len() + 2 * head.len());
        for line in text.split_inclusive(|byte| *byte == b'\n') {
            let line = line.strip_suffix(b"\n").unwrap_or(line);
            bytes.extend_from_slice(head.as_bytes());
            bytes.extend_from_slice(&line[..line.len().min(LINE_BYTES_MAX)]);
            bytes.push(b'\n');
        }
        let mut state = lock(&self.state);
        if let Err(error) = self.append(&mut state, &bytes) {
            tracing::warn!(%error, "output of a worker is not kept");
            state.file = None;
        }
    }

    fn append(&self, state: &mut State, bytes: &[u8]) -> io::Result<()> {
        let end = *self.end.borrow();
        if state.file.as_ref().is_none_or(|(_, len)| SEGMENT_BYTES <= *len) {
            let file = OpenOptions::new().create(true).append(true).mode(0o600).open(self.path(end))?;
            state.file = Some((file, 0));
            if state.segments.back() != Some(&end) {
                state.segments.push_back(end);
            }
            while SEGMENTS_MAX < state.segments.len() {
                if let Some(oldest) = state.segments.pop_front() {
                    fs::remove_file(self.path(oldest))?;
                }
            }
        }
        let Some((file, len)) = &mut state.file else { return Ok(()) };
        file.write_all(bytes)?;
        *len += bytes.len() as u64;
        self.end.send_replace(end + bytes.len() as u64);
        Ok(())
    }

    /// The position of the oldest line that is kept.
    #[must_use]
    pub fn begin(&self) -> u64 {
        lock(&self.state).segments.front().copied().unwrap_or(0)
    }

    /// Tells when the position behind the last line changes.
    #[must_use]
    pub fn ends(&self) -> watch::Receiver<u64> {
        self.end.subscribe()
    }

    /// Reads lines from a position on, or from the oldest line that is kept; none if there are none yet.
    /// Waits for the disk.
    #[must_use]
    pub fn read(&self, from: u64) -> Page {
        let (start, from, limit) = {
            let state = lock(&self.state);
            let oldest = state.segments.front().copied().unwrap_or(0);
            let from = from.max(oldest);
            let after = state.segments.partition_point(|start| *start <= from);
            let start = after.checked_sub(1).map_or(0, |at| state.segments[at]);
            (start, from, state.segments.get(after).copied().unwrap_or(*self.end.borrow()))
        };
        if limit <= from {
            return Page { lines: Vec::new(), next: from };
        }
        let Ok(mut bytes) = read_at(&self.path(start), from - start, (limit - from).min(READ_BYTES)) else {
            // The segment was removed meanwhile: the next call begins with the oldest that is left.
            return Page { lines: Vec::new(), next: limit };
        };
        let complete = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        if complete == 0 {
            // Not a log of ours any more.
            return Page { lines: Vec::new(), next: limit };
        }
        bytes.truncate(complete);
        let lines = String::from_utf8_lossy(&bytes);
        Page { lines: lines.lines().filter_map(parse).collect(), next: from + complete as u64 }
    }

    /// Removes the log with its folder.
    pub fn remove(&self) {
        let _removed = fs::remove_dir_all(&self.folder);
        // The folder of all logs is left to other nodes if there are any.
        let _removed = self.folder.parent().map(fs::remove_dir);
    }

    fn path(&self, start: u64) -> PathBuf {
        self.folder.join(format!("{start:016x}.log"))
    }
}

fn read_at(path: &Path, offset: u64, len: u64) -> io::Result<Vec<u8>> {
    let mut file = File::open(path)?;
    file.seek(SeekFrom::Start(offset))?;
    let mut bytes = Vec::new();
    file.take(len).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn parse(line: &str) -> Option<LogLine> {
    let mut parts = line.splitn(5, ' ');
    let unix_ms = parts.next()?.parse().ok()?;
    let job = JobId(u32::from_str_radix(parts.next()?, 16).ok()?);
    let pid = parts.next()?.parse().ok()?;
    let is_stderr = parts.next()? == "e";
    Some(LogLine { unix_ms, job, pid, is_stderr, text: parts.next().unwrap_or_default().to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn book() -> (LogBook, tempfile::TempDir) {
        let folder = tempfile::tempdir().unwrap();
        (LogBook::open(folder.path().join("logs/a")).unwrap(), folder)
    }

    fn read_all(book: &LogBook, mut from: u64) -> Vec<LogLine> {
        let mut lines = Vec::new();
        while from < *book.ends().borrow() {
            let page = book.read(from);
            assert!(from < page.next, "it goes on");
            (from, lines) = (page.next, [lines, page.lines].concat());
        }
        lines
    }

    #[test]
    fn lines_keep_their_order_and_who_wrote_them() {
        let (book, _folder) = book();
        assert_eq!(book.read(0), Page { lines: Vec::new(), next: 0 });
        book.write(1, JobId(7), 42, false, b"one\ntwo  with spaces\n");
        book.write(2, JobId(8), 43, true, b"\n");
        let lines = read_all(&book, 0);
        let texts: Vec<_> = lines.iter().map(|l| (l.job.0, l.pid, l.is_stderr, l.text.as_str())).collect();
        assert_eq!(texts, [(7, 42, false, "one"), (7, 42, false, "two  with spaces"), (8, 43, true, "")]);
        let behind = *book.ends().borrow();
        book.write(3, JobId(7), 42, false, b"three\n");
        assert_eq!(read_all(&book, behind).len(), 1);
    }

    #[test]
    fn the_log_is_bounded_and_readers_go_on_with_what_is_left() {
        let (book, _folder) = book();
        let text = [vec![b'x'; 999], b"\n".to_vec()].concat();
        for number in 0..2 * SEGMENTS_MAX as u64 * SEGMENT_BYTES / 1000 {
            book.write(number, JobId(1), 1, false, &text);
        }
        let files = fs::read_dir(&book.folder).unwrap().count();
        assert_eq!(files, SEGMENTS_MAX);
        assert!(0 < book.begin());
        let lines = read_all(&book, 0);
        assert!(lines.windows(2).all(|two| two[0].unix_ms + 1 == two[1].unix_ms), "none is left out between");
        assert!(SEGMENT_BYTES * (SEGMENTS_MAX as u64 - 2) < lines.len() as u64 * 1000);
        book.remove();
        assert!(!book.folder.exists());
    }

    #[test]
    fn what_is_no_text_is_kept_as_well() {
        let (book, _folder) = book();
        book.write(1, JobId(1), 1, false, &[0xff, b'a', b'\n']);
        book.write(1, JobId(1), 1, false, &[vec![b'y'; 2 * LINE_BYTES_MAX], b"\n".to_vec()].concat());
        let lines = read_all(&book, 0);
        assert_eq!(lines[0].text, "\u{fffd}a");
        assert_eq!(lines[1].text.len(), LINE_BYTES_MAX);
    }
}
