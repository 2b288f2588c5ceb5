//! The whole records of a text, many at a time, from its begin or from a cut.

use super::blocks::Blocks;
use super::csv::{Place, marks};
use super::form::{TextForm, TextKind};
use super::json;
use crate::error::{Error, FileFault, Result, quoted};
use crate::scan::storage::from_store;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt};
use std::ops::Range;
use std::sync::Arc;
use tharsis_text_scan::csv::{fields, first_record};
use tharsis_text_scan::json_array;
use tharsis_text_scan::records::{Marks, Scanned, Scanner, breaks, guess};

/// A text that is read.
#[derive(Clone)]
pub(crate) struct Text {
    pub(crate) store: Arc<dyn ObjectStore>,
    pub(crate) location: Path,
    /// The path in errors.
    pub(crate) path: String,
    pub(crate) bytes: u64,
    /// The bytes in which the wanted records begin; `None` for all records.
    pub(crate) range: Option<Range<u64>>,
    pub(crate) form: Arc<TextForm>,
}

impl Text {
    /// The end of the range, if the file goes on after it.
    fn cut(&self) -> Option<u64> {
        self.range.as_ref().map(|range| range.end).filter(|end| *end < self.bytes)
    }

    /// The error for a file that has to be read as a whole.
    pub(super) fn uncut(&self) -> Error {
        Error::Uncut { path: self.path.clone() }
    }

    /// Whether this is a later part of a file that is one array of JSON: only its first part can tell.
    pub(super) async fn is_part_of_array(&self) -> Result<bool> {
        let is_later = self.range.as_ref().is_some_and(|range| 0 < range.start);
        if !is_later || !matches!(&self.form.kind, TextKind::Json(_)) {
            return Ok(false);
        }
        let (mut at, mut length) = (0, BEGIN_BYTES);
        while at < self.bytes {
            let end = self.bytes.min(at + length);
            let begin = self.store.get_range(&self.location, at..end).await;
            let begin = begin.map_err(|error| from_store(&self.path, &error))?;
            if let Some(is_array) = json_array::begins(&begin) {
                return Ok(is_array);
            }
            (at, length) = (end, (2 * length).min(WINDOW_BYTES));
        }
        Ok(false)
    }

    fn syntax(&self, reason: String) -> Error {
        Error::file(&self.path, FileFault::Syntax, reason)
    }

    fn marks(&self) -> Marks {
        match &self.form.kind {
            TextKind::Csv(form) => marks(form),
            TextKind::Json(_) => json::MARKS,
        }
    }

    /// Line breaks before a position. It is for errors only: it reads all that comes before.
    pub(super) async fn lines_before(&self, position: u64) -> Result<u64> {
        let range = Some(0..position).filter(|range| !range.is_empty());
        let mut blocks = Blocks::open(&*self.store, &self.location, &self.path, range, &self.form).await?;
        let mut scanner = Scanner::new(self.marks(), 0);
        let mut block = Vec::new();
        while blocks.next(&mut block).await? {
            scanner.scan(&block, &mut |_| true);
            block.clear();
        }
        Ok(scanner.lines())
    }

    /// The position of the first record that begins at a cut or after it, as all who ask guess it.
    async fn first_record(&self, cut: u64) -> Result<u64> {
        let begin = cut - 1;
        let end = self.bytes.min(begin + WINDOW_BYTES);
        let window = self.store.get_range(&self.location, begin..end).await;
        let window = window.map_err(|error| from_store(&self.path, &error))?;
        match guess(&window, self.marks()) {
            Some(at) => Ok(begin + at as u64),
            None if end == self.bytes => Ok(self.bytes),
            None => Err(self.uncut()),
        }
    }

    /// Checks that the reader of the next part begins where this one ends.
    async fn check_cut(&self, end: u64) -> Result<()> {
        match self.cut() {
            Some(cut) if self.first_record(cut).await? != end => Err(self.uncut()),
            _ => Ok(()),
        }
    }
}

/// Whole records, many at a time.
pub(super) struct Records {
    text: Text,
    /// None if no record begins in the range.
    blocks: Option<Blocks>,
    scanner: Scanner,
    /// The position at which the scan began.
    start: u64,
    /// Bytes that were not given away, from the begin of a record.
    pending: Vec<u8>,
    /// The position of the pending bytes in the file.
    position: u64,
    /// Line breaks before the bytes that are scanned, if they are known.
    lines_before: Option<u64>,
    /// Line breaks before the pending bytes, of those that are scanned.
    lines: u64,
    /// Lines that are still to be left out, and whether one of them goes on within quotes.
    skip: usize,
    skip_quoted: bool,
    /// Whether the file is one array of JSON, whose objects are the records.
    is_array: bool,
    /// The labels that the next record must have.
    header: Option<Vec<String>>,
}

impl Records {
    /// The records of a text.
    pub(super) async fn open(text: Text) -> Result<Records> {
        let start = match text.range.as_ref().filter(|range| 0 < range.start) {
            None => 0,
            Some(range) => text.first_record(range.start).await?,
        };
        let is_empty = text.range.as_ref().is_some_and(|range| range.end <= start);
        let blocks = if is_empty {
            text.check_cut(start).await?;
            None
        } else {
            let range = text.range.as_ref().map(|_| start..text.bytes);
            Some(Blocks::open(&*text.store, &text.location, &text.path, range, &text.form).await?)
        };
        let (skip, header) = match &text.form.kind {
            TextKind::Csv(form) if start == 0 => (form.skip, form.header.clone()),
            _ => (0, None),
        };
        Ok(Records {
            scanner: Scanner::new(text.marks(), start),
            start,
            text,
            blocks,
            pending: Vec::new(),
            position: start,
            lines_before: (start == 0).then_some(0),
            lines: 0,
            skip,
            skip_quoted: false,
            is_array: false,
            header,
        })
    }

    /// The next records, and where they are.
    pub(super) async fn next(&mut self) -> Result<Option<(Vec<u8>, Place)>> {
        while let Some(blocks) = &mut self.blocks {
            let from = self.pending.len();
            let is_end = !blocks.next(&mut self.pending).await?;
            let begins_array = blocks.is_array() && !self.is_array;
            self.is_array |= begins_array;
            if self.is_array && self.text.cut().is_some() {
                return Err(self.text.uncut());
            }
            let from = if begins_array { self.without_blocks(from) } else { from };
            let from = self.without_begin(from, is_end);
            if 0 < self.skip && !is_end {
                continue;
            }
            let scanned = self.scan(from);
            self.check_length().await?;
            let whole = match scanned {
                Scanned::Until(at) => Some((from + at, self.scanner.lines())),
                Scanned::Block if is_end || self.scanner.is_between() => {
                    Some((self.pending.len(), self.scanner.lines()))
                }
                Scanned::Block => match self.scanner.begin().saturating_sub(self.position) {
                    0 => None,
                    begin => Some((begin as usize, self.scanner.begin_lines())),
                },
            };
            if is_end || scanned != Scanned::Block {
                self.blocks = None;
                self.check_end().await?;
            }
            let Some((whole, scanned_lines)) = whole else { continue };
            let rest = self.pending.split_off(whole);
            let records = std::mem::replace(&mut self.pending, rest);
            let lines = self.lines_before.map(|before| before + self.lines);
            let place = Place { position: self.position, lines };
            (self.position, self.lines) = (self.position + whole as u64, scanned_lines);
            if self.blocks.is_none() {
                self.text.check_cut(self.position).await?;
            }
            let left = self.without_header(&records)?;
            if left < records.len() {
                let position = place.position + left as u64;
                let lines = place.lines.map(|lines| lines + breaks(&records[..left]));
                let records = if left == 0 { records } else { records[left..].to_vec() };
                return Ok(Some((records, Place { position, lines })));
            }
        }
        match self.text.cut() {
            Some(_) if 0 < self.skip || self.header.is_some() => Err(self.text.uncut()),
            _ => Ok(None),
        }
    }

    /// Leaves out what comes before the block in which an array begins: line breaks there count no objects.
    /// Gives the number of pending bytes that were scanned.
    fn without_blocks(&mut self, from: usize) -> usize {
        self.pending.drain(..from);
        self.position += from as u64;
        self.lines = 0;
        self.scanner = Scanner::new(self.text.marks(), self.position);
        0
    }

    /// Leaves out what comes before the first record of a file: the mark of the byte order, and lines. Gives
    /// the number of pending bytes that were scanned.
    fn without_begin(&mut self, from: usize, is_end: bool) -> usize {
        const MARK: &[u8] = "\u{FEFF}".as_bytes();
        let mut gone = 0;
        if self.position == 0 && from == 0 && self.pending.starts_with(MARK) {
            gone = MARK.len();
        }
        let quote = self.text.marks().quote.unwrap_or(b'\n');
        while 0 < self.skip {
            let text = &self.pending[gone..];
            let Some(at) = memchr::memchr3(quote, b'\n', b'\r', text) else {
                gone = self.pending.len();
                break;
            };
            let length = match (text[at], text.get(at + 1)) {
                // The other half of the line break may come with the next block.
                (b'\r', None) if !is_end => {
                    gone += at;
                    break;
                }
                (b'\r', Some(b'\n')) => 2,
                _ => 1,
            };
            gone += at + length;
            if text[at] == quote && quote != b'\n' {
                self.skip_quoted = !self.skip_quoted;
                continue;
            }
            self.skip -= usize::from(!self.skip_quoted);
            self.lines_before = self.lines_before.map(|lines| lines + 1);
        }
        if 0 < gone {
            self.pending.drain(..gone);
            self.position += gone as u64;
            self.scanner = Scanner::new(self.text.marks(), self.position);
            return 0;
        }
        from
    }

    /// Scans the new bytes, up to a record that begins where the range ends.
    fn scan(&mut self, from: usize) -> Scanned {
        let end = self.text.range.as_ref().map_or(u64::MAX, |range| range.end);
        let at = self.position + from as u64;
        let block = &self.pending[from..];
        let is_inside = at + block.len() as u64 <= end;
        if is_inside && self.scanner.scan_plain(block, self.text.form.max_line as u64) {
            return Scanned::Block;
        }
        self.scanner.scan(block, &mut |begin| at + (begin as u64) < end)
    }

    /// Refuses a record that is too long.
    async fn check_length(&mut self) -> Result<()> {
        let limit = self.text.form.max_line;
        let (longest, lines) = self.scanner.longest();
        if longest <= limit as u64 {
            return Ok(());
        }
        let line = self.line(lines).await?;
        Err(self.text.syntax(format!("the record in {line} is longer than max_line, {limit} bytes")))
    }

    /// Refuses quotes that are open at the end of the text.
    async fn check_end(&mut self) -> Result<()> {
        let Some(lines) = self.scanner.open_quote() else { return Ok(()) };
        let line = self.line(lines).await?;
        Err(self.text.syntax(format!("EOF inside a string that starts in {line}")))
    }

    /// The line after so many line breaks of what was scanned.
    async fn line(&mut self, lines: u64) -> Result<String> {
        let before = match self.lines_before {
            Some(before) => before,
            None => self.text.lines_before(self.start).await?,
        };
        Ok(format!("{} {}", self.unit(), before + lines + 1))
    }

    /// Whether the file is one array of JSON, as far as it was read.
    pub(super) fn is_array(&self) -> bool {
        self.is_array
    }

    /// The word for a record in errors.
    pub(super) fn unit(&self) -> &'static str {
        if self.is_array { "object" } else { "line" }
    }

    /// Bytes of the header, if it comes first in the records.
    fn without_header(&mut self, records: &[u8]) -> Result<usize> {
        let Some(expected) = &self.header else { return Ok(0) };
        let TextKind::Csv(form) = &self.text.form.kind else { return Ok(0) };
        let record = first_record(records, marks(form));
        if record.is_empty() {
            return Ok(records.len());
        }
        check_header(&self.text.path, &fields(&records[record.clone()], marks(form)), expected)?;
        self.header = None;
        Ok(record.end)
    }
}

/// The labels in the header of a file are those of the first one.
pub(crate) fn check_header(path: &str, found: &[String], expected: &[String]) -> Result<()> {
    let found = labels(found);
    if found == expected {
        return Ok(());
    }
    let missing = expected.iter().find(|label| !found.contains(label));
    let more = found.iter().find(|label| !expected.contains(label));
    let reason = match (missing, more) {
        (Some(label), _) => format!("there is no column {label:?}, which the first file has"),
        (None, Some(label)) => format!("column {label:?} is not in the first file"),
        (None, None) => {
            let (found, expected) = (quoted(&found), quoted(expected));
            format!("the columns are in another order than in the first file: {found}, not {expected}")
        }
    };
    Err(Error::file(path, FileFault::Mismatch, reason))
}

/// The labels of the fields of a header: equal ones get numbers, empty ones names, as in pandas.
pub(super) fn labels(fields: &[String]) -> Vec<String> {
    let mut labels: Vec<String> = Vec::new();
    for (at, field) in fields.iter().enumerate() {
        let name = if field.is_empty() { format!("Unnamed: {at}") } else { field.clone() };
        let mut label = name.clone();
        let mut number = 0;
        while labels.contains(&label) || (0 < number && fields.contains(&label)) {
            number += 1;
            label = format!("{name}.{number}");
        }
        labels.push(label);
    }
    labels
}

/// Bytes around a cut in which a record has to begin.
const WINDOW_BYTES: u64 = 256 << 10;
/// Bytes of a file that show whether it is an array, if they are not blank.
const BEGIN_BYTES: u64 = 4 << 10;
