//! Records of CSV: those that are blank, and the fields of one.

use crate::records::{Marks, Scanned, Scanner};
use std::borrow::Cow;
use std::ops::Range;

/// The first of some records that is more than blanks, with the comments before it and after it; empty if
/// there is none.
///
/// ```
/// use tharsis_text_scan::{csv::first_record, records::Marks};
/// let marks = Marks { sep: b',', quote: Some(b'"'), comment: None };
/// assert_eq!(first_record(b"  \na,b\n1,2\n", marks), 3..7);
/// ```
#[must_use]
pub fn first_record(records: &[u8], marks: Marks) -> Range<usize> {
    let mut begin = None;
    let scanned = Scanner::new(marks, 0).scan(records, &mut |at| match begin {
        None => {
            begin = (blanks(&records[at..], marks) == 0).then_some(at);
            true
        }
        Some(_) => false,
    });
    let end = if let Scanned::Until(end) = scanned { end } else { records.len() };
    begin.unwrap_or(end)..end
}

/// The number of blanks that a record consists of; 0 if it has anything else. Such a line is no record.
fn blanks(record: &[u8], marks: Marks) -> usize {
    let rest = record.iter().position(|&byte| byte == marks.sep || !matches!(byte, b' ' | b'\t'));
    match rest {
        Some(rest) if matches!(record[rest], b'\n' | b'\r') => rest,
        Some(_) => 0,
        None => record.len(),
    }
}

/// The records with empty lines in the place of those of blanks: decoders make no record of an empty one.
///
/// ```
/// use tharsis_text_scan::{csv::without_blanks, records::Marks};
/// let marks = Marks { sep: b',', quote: Some(b'"'), comment: None };
/// assert_eq!(&*without_blanks(b"a,b\n  \n\"\n \n\",2\n", marks), b"a,b\n\n\"\n \n\",2\n");
/// ```
#[must_use]
pub fn without_blanks(records: &[u8], marks: Marks) -> Cow<'_, [u8]> {
    let is_blank = |at: usize| 0 < blanks(&records[at..], marks);
    let mut breaks = memchr::memchr2_iter(b'\n', b'\r', records);
    if !is_blank(0) && !breaks.any(|at| is_blank(at + 1)) {
        return Cow::Borrowed(records);
    }
    // A line of blanks may be in quotes.
    let mut kept = Vec::with_capacity(records.len());
    let mut from = 0;
    Scanner::new(marks, 0).scan(records, &mut |at| {
        let blanks = blanks(&records[at..], marks);
        if 0 < blanks {
            kept.extend_from_slice(&records[from..at]);
            from = at + blanks;
        }
        true
    });
    kept.extend_from_slice(&records[from..]);
    Cow::Owned(kept)
}

/// The texts of the fields of a record.
///
/// ```
/// use tharsis_text_scan::{csv::fields, records::Marks};
/// let marks = Marks { sep: b';', quote: Some(b'"'), comment: None };
/// assert_eq!(fields(b"a;\"b;\"\"c\"\"\";\n1;2", marks), ["a", "b;\"c\"", ""]);
/// ```
#[must_use]
pub fn fields(record: &[u8], marks: Marks) -> Vec<String> {
    let mut fields = vec![Vec::new()];
    let mut quoted = false;
    let mut bytes = record.iter().copied().peekable();
    let mut fresh = true;
    while let Some(byte) = bytes.next() {
        match byte {
            _ if quoted && Some(byte) == marks.quote => {
                if bytes.peek() == Some(&byte) {
                    bytes.next();
                    push(&mut fields, byte);
                } else {
                    quoted = false
                }
            }
            _ if quoted => push(&mut fields, byte),
            _ if fresh && Some(byte) == marks.quote => (quoted, fresh) = (true, false),
            _ if byte == marks.sep => {
                fields.push(Vec::new());
                fresh = true;
            }
            b'\n' | b'\r' => break,
            _ => {
                fresh = false;
                push(&mut fields, byte);
            }
        }
    }
    fields.into_iter().map(|field| String::from_utf8_lossy(&field).into_owned()).collect()
}

fn push(fields: &mut [Vec<u8>], byte: u8) {
    if let Some(field) = fields.last_mut() {
        field.push(byte);
    }
}
