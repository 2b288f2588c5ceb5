//! The begins of records: a record may have line breaks within quotes.
//!
//! The rules are those of the tokenizer that takes the fields apart. A quote opens a quoted field only at the
//! beginning of a field; within one, two quotes are one, and a single quote ends it.
//!
//! A task that starts within a file cannot know whether it starts within quotes. It guesses from the bytes
//! around the start ([`guess`]). The task before it comes there knowing, makes the same guess and compares:
//! if all tasks end without an objection, all of them have guessed right.

/// The marks of a text.
#[derive(Clone, Copy, Debug)]
pub struct Marks {
    /// The separator of fields.
    pub sep: u8,
    /// The quote around fields; none in JSON, whose quotes have no line breaks.
    pub quote: Option<u8>,
    /// The first byte of a line that is no record.
    pub comment: Option<u8>,
}

/// The place of the scanner in the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Before the first byte of a record.
    Start,
    /// In a field without quotes, or at its beginning.
    Plain,
    Quoted,
    /// After a quote in a quoted field: one of two, or the end of the quotes.
    AfterQuote,
    Comment,
}

/// Goes through a text block by block.
///
/// ```
/// use tharsis_text_scan::records::{Marks, Scanned, Scanner};
/// let marks = Marks { sep: b',', quote: Some(b'"'), comment: None };
/// let mut scanner = Scanner::new(marks, 0);
/// let mut begins = Vec::new();
/// let scanned = scanner.scan(b"a,b\n1,\"x\ny\"\n2,z", &mut |at| {
///     begins.push(at);
///     true
/// });
/// assert_eq!((scanned, begins), (Scanned::Block, vec![0, 4, 12]));
/// assert_eq!((scanner.begin(), scanner.lines()), (12, 3));
/// ```
#[derive(Clone, Debug)]
pub struct Scanner {
    marks: Marks,
    state: State,
    /// The last byte; a quote after a separator opens a field.
    last: u8,
    /// The number of bytes that were scanned.
    position: u64,
    /// The begin of the record that is read, and the line breaks before it.
    begin: u64,
    begin_lines: u64,
    /// Bytes of the longest record so far, and the line breaks before it.
    longest: (u64, u64),
    /// Line breaks so far.
    lines: u64,
    /// Line breaks before the open quote.
    quote_lines: u64,
}

/// The end of a scan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scanned {
    /// All of the block.
    Block,
    /// The offset in the block at which a record begins that is not wanted any more.
    Until(usize),
}

impl Scanner {
    /// A scanner at a position at which a record begins.
    #[must_use]
    pub fn new(marks: Marks, position: u64) -> Scanner {
        Scanner {
            marks,
            state: State::Start,
            last: b'\n',
            position,
            begin: position,
            begin_lines: 0,
            longest: (0, 0),
            lines: 0,
            quote_lines: 0,
        }
    }

    /// Whether a record, or nothing, comes next.
    #[must_use]
    pub fn is_between(&self) -> bool {
        self.state == State::Start
    }

    /// Bytes of the longest record so far, also of one that is not complete, and the line breaks before it.
    #[must_use]
    pub fn longest(&self) -> (u64, u64) {
        match self.state {
            State::Start => self.longest,
            _ => self.longest.max((self.position - self.begin, self.begin_lines)),
        }
    }

    /// The position of the last record that has begun.
    #[must_use]
    pub fn begin(&self) -> u64 {
        self.begin
    }

    /// Line breaks before the last record that has begun.
    #[must_use]
    pub fn begin_lines(&self) -> u64 {
        self.begin_lines
    }

    /// Line breaks so far.
    #[must_use]
    pub fn lines(&self) -> u64 {
        self.lines
    }

    /// Line breaks before the quote that is open.
    #[must_use]
    pub fn open_quote(&self) -> Option<u64> {
        (self.state == State::Quoted).then_some(self.quote_lines)
    }

    /// Scans a block and tells of the begin of each record in it, as an offset. It stops there at `false`.
    pub fn scan(&mut self, block: &[u8], begin: &mut dyn FnMut(usize) -> bool) -> Scanned {
        let start = self.position;
        let mut at = 0;
        while at < block.len() {
            match self.state {
                State::Start => match block[at] {
                    b'\n' | b'\r' => {
                        self.count(block[at]);
                        at += 1;
                    }
                    byte if Some(byte) == self.marks.comment => {
                        (self.begin, self.begin_lines) = (start + at as u64, self.lines);
                        (self.state, self.last) = (State::Comment, byte);
                    }
                    _ => {
                        if !begin(at) {
                            self.position = start + at as u64;
                            return Scanned::Until(at);
                        }
                        (self.begin, self.begin_lines) = (start + at as u64, self.lines);
                        // A quote as the first byte opens a field too.
                        self.last = self.marks.sep;
                        self.state = State::Plain;
                    }
                },
                State::Plain => at = self.plain(block, at, start),
                State::Quoted => at = self.quoted(block, at),
                State::AfterQuote => {
                    let byte = block[at];
                    match byte {
                        _ if Some(byte) == self.marks.quote => {
                            self.state = State::Quoted;
                            at += 1;
                        }
                        // A line break or the rest of the field: as without quotes.
                        _ => {
                            self.last = 0;
                            self.state = State::Plain;
                        }
                    }
                }
                State::Comment => match find(block, at, None) {
                    Some(end) => (at, self.state) = (end, State::Start),
                    None => at = block.len(),
                },
            }
        }
        self.position = start + block.len() as u64;
        Scanned::Block
    }

    /// Scans a block without a look at each record, if it is so plain that this gives the same: it has no
    /// quotes, carriage returns or comments, and it is too short for a record of over `longest` bytes. If it
    /// gives `false`, nothing was scanned.
    pub fn scan_plain(&mut self, block: &[u8], longest: u64) -> bool {
        let begin = match self.state {
            State::Start => self.position,
            State::Plain => self.begin,
            _ => return false,
        };
        let end = self.position + block.len() as u64;
        let quote = self.marks.quote.unwrap_or(b'\r');
        if self.marks.comment.is_some()
            || self.last == b'\r'
            || longest < end - begin
            || memchr::memchr2(quote, b'\r', block).is_some()
        {
            return false;
        }
        let Some(&last) = block.last() else { return true };
        let breaks = memchr::memchr_iter(b'\n', block).count() as u64;
        // The last record ends before the breaks at the end of the block.
        let text = block.iter().rposition(|byte| *byte != b'\n').map_or(0, |at| at + 1);
        let before = memchr::memrchr(b'\n', &block[..text]).map_or(0, |at| at + 1);
        if before < text && (0 < before || self.state == State::Start) {
            self.begin = self.position + before as u64;
            self.begin_lines = self.lines + breaks - (block.len() - text) as u64;
        }
        let ends = text < block.len();
        self.state = if ends { State::Start } else { State::Plain };
        (self.lines, self.last, self.position) = (self.lines + breaks, last, end);
        true
    }

    fn plain(&mut self, block: &[u8], at: usize, start: u64) -> usize {
        let Some(end) = find(block, at, self.marks.quote) else {
            self.last = block[block.len() - 1];
            return block.len();
        };
        if Some(block[end]) != self.marks.quote {
            self.longest = self.longest.max((start + end as u64 - self.begin, self.begin_lines));
            self.state = State::Start;
            return end;
        }
        let before = if end == at { self.last } else { block[end - 1] };
        if before == self.marks.sep {
            (self.state, self.quote_lines) = (State::Quoted, self.lines);
        } else {
            self.last = block[end];
        }
        end + 1
    }

    fn quoted(&mut self, block: &[u8], at: usize) -> usize {
        let Some(end) = find(block, at, self.marks.quote) else {
            self.last = block[block.len() - 1];
            return block.len();
        };
        if at < end {
            self.last = block[end - 1];
        }
        match block[end] {
            byte @ (b'\n' | b'\r') => self.count(byte),
            _ => self.state = State::AfterQuote,
        }
        self.last = block[end];
        end + 1
    }

    /// Counts a line break; `\r\n` is one.
    fn count(&mut self, byte: u8) {
        self.lines += u64::from(byte == b'\r' || self.last != b'\r');
        self.last = byte;
    }
}

/// Line breaks in a text; `\r\n` is one.
///
/// ```
/// assert_eq!(tharsis_text_scan::records::breaks(b"a\r\nb\nc"), 2);
/// ```
pub fn breaks(text: &[u8]) -> u64 {
    let mut last = 0;
    let mut lines = 0;
    for &byte in text {
        lines += u64::from(byte == b'\r' || (byte == b'\n' && last != b'\r'));
        last = byte;
    }
    lines
}

/// The next quote or line break.
fn find(block: &[u8], from: usize, quote: Option<u8>) -> Option<usize> {
    memchr::memchr3(quote.unwrap_or(b'\n'), b'\n', b'\r', &block[from..]).map(|at| from + at)
}

/// The first offset in a window, after its first byte, at which a record probably begins; `None` if there is
/// none. It is the same for all who ask.
///
/// ```
/// use tharsis_text_scan::records::{Marks, guess};
/// let marks = Marks { sep: b',', quote: Some(b'"'), comment: None };
/// assert_eq!(guess(b"d\",1\n2,\"e\nf\"\n", marks), Some(5));
/// assert_eq!(guess(b"1,2", marks), None);
/// ```
pub fn guess(window: &[u8], marks: Marks) -> Option<usize> {
    let starts = [(State::Plain, 0), (State::Plain, marks.sep), (State::Quoted, 0), (State::AfterQuote, 0)];
    let guesses = || starts.iter().map(|&(state, last)| Guess::of(window, marks, state, last));
    // Quotes that stay open for the whole window are possible, but not probable.
    let likely = guesses().find(|guess| guess.is_well_formed && guess.begin.is_some());
    likely.or_else(|| guesses().find(|guess| guess.is_well_formed)).or_else(|| guesses().next())?.begin
}

/// The reading of a window under an assumption about its begin.
struct Guess {
    /// Whether no quote stands where a careful writer would not put it.
    is_well_formed: bool,
    begin: Option<usize>,
}

impl Guess {
    fn of(window: &[u8], marks: Marks, state: State, last: u8) -> Guess {
        let mut guess = Guess { is_well_formed: true, begin: None };
        let (mut state, mut last) = (state, last);
        for (at, &byte) in window.iter().enumerate() {
            let is_quote = Some(byte) == marks.quote;
            let is_break = matches!(byte, b'\n' | b'\r');
            if state == State::Start && !is_break {
                guess.begin = guess.begin.or(Some(at));
                (state, last) = (State::Plain, marks.sep);
            }
            state = match state {
                State::Quoted if is_quote => State::AfterQuote,
                State::Quoted => State::Quoted,
                State::AfterQuote if is_quote => State::Quoted,
                State::AfterQuote if is_break => State::Start,
                State::AfterQuote => {
                    guess.is_well_formed &= byte == marks.sep;
                    State::Plain
                }
                _ if is_break => State::Start,
                _ if is_quote && last == marks.sep => State::Quoted,
                _ => {
                    guess.is_well_formed &= !is_quote;
                    State::Plain
                }
            };
            last = byte;
            if !guess.is_well_formed {
                return guess;
            }
        }
        guess
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MARKS: Marks = Marks { sep: b',', quote: Some(b'"'), comment: None };

    /// The begins of the records of a text that comes in blocks of a size.
    fn begins(text: &str, block: usize, marks: Marks) -> Vec<usize> {
        let mut scanner = Scanner::new(marks, 0);
        let mut found = Vec::new();
        for part in text.as_bytes().chunks(block) {
            let from = scanner.position as usize;
            scanner.scan(part, &mut |at| {
                found.push(from + at);
                true
            });
        }
        found
    }

    #[test]
    fn records_begin_after_line_breaks_outside_of_quotes() {
        let text = "a,b\r\n\"x\ny\",\"\"\"\n\"\n\n1,2\"3\r4,\"\"\n\"z\"\n";
        let expected = [0, 5, 18, 24, 29];
        for block in 1..text.len() {
            assert_eq!(begins(text, block, MARKS), expected, "blocks of {block} bytes");
        }
    }

    #[test]
    fn plain_blocks_are_scanned_as_others() {
        let text = "a,b\n\n\nc\nd,e,f\n\"g\n\"\nh\r\n\ni\r\rj,\"k\"\n\n\nlmn";
        let (mut plain_blocks, mut all_blocks) = (0, 0);
        for size in 1..=text.len() {
            let mut each = Scanner::new(MARKS, 7);
            let mut fast = each.clone();
            for block in text.as_bytes().chunks(size) {
                each.scan(block, &mut |_| true);
                all_blocks += 1;
                if fast.scan_plain(block, 1000) {
                    plain_blocks += 1
                } else {
                    assert_eq!(fast.scan(block, &mut |_| true), Scanned::Block)
                }
                let of = |scanner: &Scanner| (scanner.state, scanner.position, scanner.begin, scanner.lines);
                assert_eq!(of(&fast), of(&each), "blocks of {size} bytes");
                assert_eq!(fast.begin_lines, each.begin_lines, "blocks of {size} bytes");
            }
        }
        assert!(all_blocks / 4 < plain_blocks && plain_blocks < all_blocks, "{plain_blocks} of {all_blocks}");
    }

    #[test]
    fn a_block_in_which_a_record_may_be_too_long_is_not_plain() {
        let mut scanner = Scanner::new(MARKS, 0);
        assert!(scanner.scan_plain(b"a\nbc", 4));
        assert!(!scanner.scan_plain(b"def", 4), "the record begins in the block before");
        assert!(scanner.scan_plain(b"de\n", 5));
    }

    #[test]
    fn comments_are_no_records_and_hide_quotes() {
        let marks = Marks { comment: Some(b'#'), ..MARKS };
        let text = "#it's \"\na,b\n# \"\n1,#2\n";
        for block in 1..text.len() {
            assert_eq!(begins(text, block, marks), [8, 16], "blocks of {block} bytes");
        }
    }

    #[test]
    fn line_breaks_within_quotes_are_counted_once() {
        let text = b"a\n\"x\ryy\nz\r\nw\"\r\n1\n";
        for size in 1..text.len() {
            let mut scanner = Scanner::new(MARKS, 0);
            text.chunks(size).for_each(|block| {
                scanner.scan(block, &mut |_| true);
            });
            assert_eq!(scanner.lines(), breaks(text), "blocks of {size} bytes");
        }
        assert_eq!(breaks(text), 6);
    }

    #[test]
    fn an_open_quote_is_known_by_its_line() {
        let mut scanner = Scanner::new(MARKS, 0);
        scanner.scan(b"a\r\n1\r\n\"2\n3\n", &mut |_| true);
        assert_eq!(scanner.open_quote(), Some(2));
    }

    #[test]
    fn a_guess_is_right_wherever_a_well_written_text_is_cut() {
        let text =
            "1,\"a\nb\",2\n3,\"\",4\n5,\"say \"\"yes\"\"\n, or \"\"no\"\"\",6\n\"7\",8,\"9\"\n10,11,12\n";
        let records = begins(text, text.len(), MARKS);
        for cut in 1..text.len() {
            let expected = records.iter().copied().find(|&begin| cut <= begin);
            let found = guess(&text.as_bytes()[cut - 1..], MARKS).map(|at| cut - 1 + at);
            assert_eq!(found, expected, "cut at {cut}: {:?}", &text[cut - 1..]);
        }
    }
}
