//! A file that is one array of objects, as lines of objects.
//!
//! A byte becomes another byte, so that places stay what they are: the comma behind an object becomes a line
//! break, and the brackets of the array, and line breaks between the words of an object, become spaces. So a
//! file of any size is read block by block, like one of lines.

use std::fmt;

/// The place in a file of JSON, which shows at its first byte whether it is an array.
///
/// ```
/// use tharsis_text_scan::json_array::ArrayLines;
/// let mut lines = ArrayLines::new();
/// let mut block = *b"[{\"a\": 1},\n {\"a\": 2}]";
/// assert_eq!(lines.rewrite(&mut block), Ok(()));
/// assert_eq!(&block, b" {\"a\": 1}\n  {\"a\": 2} ");
/// assert_eq!((lines.is_array(), lines.check_end()), (true, Ok(())));
/// ```
#[derive(Clone, Debug)]
pub struct ArrayLines {
    state: State,
    /// Objects that have begun.
    objects: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Before the first byte that is no space.
    Begin,
    /// In a file that is no array.
    Lines,
    /// Before the first object.
    First,
    /// Behind a comma.
    Next,
    /// In an object, within so many brackets.
    Object(u64),
    /// In a text of such an object.
    Text(u64),
    /// Behind a backslash in such a text.
    Escaped(u64),
    /// Behind an object.
    Behind,
    /// Behind the array.
    End,
}

/// The reason for which an array cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The array holds something else than an object, as its value of this number.
    NoObject(u64),
    /// There is neither a comma nor the end behind the object of this number.
    NoComma(u64),
    /// The file ends before the array, in or behind the object of this number.
    NoEnd(u64),
    /// There is more behind the array.
    More,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::NoObject(number) => {
                write!(f, "value {number} of the array is no object; rows are read from objects")
            }
            Fault::NoComma(number) => write!(f, "no comma and no end of the array behind object {number}"),
            Fault::NoEnd(number) => write!(f, "the array does not end; it has {number} objects"),
            Fault::More => f.write_str("there is more behind the end of the array"),
        }
    }
}

impl Default for ArrayLines {
    fn default() -> ArrayLines {
        ArrayLines::new()
    }
}

impl ArrayLines {
    /// The begin of a file.
    #[must_use]
    pub fn new() -> ArrayLines {
        ArrayLines { state: State::Begin, objects: 0 }
    }

    /// Whether the file is an array, as far as it was read.
    #[must_use]
    pub fn is_array(&self) -> bool {
        !matches!(self.state, State::Begin | State::Lines)
    }

    /// Makes lines of the next block.
    ///
    /// # Errors
    ///
    /// An array of other values than objects, or one with more behind it.
    pub fn rewrite(&mut self, block: &mut [u8]) -> Result<(), Fault> {
        let mut at = 0;
        while at < block.len() {
            match self.state {
                State::Lines => return Ok(()),
                State::Text(_) => match memchr::memchr2(b'"', b'\\', &block[at..]) {
                    Some(next) => at += next,
                    None => return Ok(()),
                },
                _ => {}
            }
            let begins = self.state == State::Begin;
            block[at] = self.byte(block[at])?;
            at += 1;
            if begins && self.is_array() {
                // Line breaks count objects.
                block[..at].iter_mut().filter(|byte| **byte == b'\n').for_each(|byte| *byte = b' ');
            }
        }
        Ok(())
    }

    /// Takes a byte, and gives the one in its place.
    fn byte(&mut self, byte: u8) -> Result<u8, Fault> {
        let is_space = matches!(byte, b' ' | b'\t' | b'\n' | b'\r');
        let (state, byte) = match (self.state, byte) {
            // Space and the mark of the byte order.
            (State::Begin, byte) if is_space || MARK.contains(&byte) => (State::Begin, byte),
            (State::Begin, b'[') => (State::First, b' '),
            (State::Begin | State::Lines, byte) => (State::Lines, byte),
            (State::First | State::Next, b'{') => {
                self.objects += 1;
                (State::Object(1), byte)
            }
            (State::First | State::Behind, b']') => (State::End, b' '),
            (State::Behind, b',') => (State::Next, b'\n'),
            (State::Object(depth), b'"') => (State::Text(depth), byte),
            (State::Object(depth), b'{' | b'[') => (State::Object(depth + 1), byte),
            (State::Object(1), b'}' | b']') => (State::Behind, byte),
            (State::Object(depth), b'}' | b']') => (State::Object(depth - 1), byte),
            (State::Text(depth), b'"') => (State::Object(depth), byte),
            (State::Text(depth), b'\\') => (State::Escaped(depth), byte),
            (State::Escaped(depth), byte) => (State::Text(depth), byte),
            (State::Text(_), byte) => (self.state, byte),
            (state, _) if is_space => (state, b' '),
            (State::Object(_), byte) => (self.state, byte),
            (State::First | State::Next, _) => return Err(Fault::NoObject(self.objects + 1)),
            (State::Behind, _) => return Err(Fault::NoComma(self.objects)),
            (State::End, _) => return Err(Fault::More),
        };
        self.state = state;
        Ok(byte)
    }

    /// Checks that the file may end here.
    ///
    /// # Errors
    ///
    /// An array that has not ended.
    pub fn check_end(&self) -> Result<(), Fault> {
        match self.state {
            State::Begin | State::Lines | State::End => Ok(()),
            _ => Err(Fault::NoEnd(self.objects)),
        }
    }
}

/// Whether a file that begins so is an array; `None` if these bytes do not show it.
///
/// ```
/// use tharsis_text_scan::json_array::begins;
/// assert_eq!(begins(b" [{"), Some(true));
/// assert_eq!(begins(b"{}"), Some(false));
/// assert_eq!(begins(b"  \n"), None);
/// ```
pub fn begins(bytes: &[u8]) -> Option<bool> {
    let mut lines = ArrayLines::new();
    // A fault is one of an array.
    let is_array = lines.rewrite(&mut bytes.to_vec()).is_err() || lines.is_array();
    (lines.state != State::Begin).then_some(is_array)
}

/// The mark of the byte order.
const MARK: &[u8] = "\u{FEFF}".as_bytes();

#[cfg(test)]
mod tests {
    use super::*;

    /// The lines of a file that comes in blocks of a size.
    fn lines(text: &str, size: usize) -> Result<String, Fault> {
        let mut lines = ArrayLines::new();
        let mut made = Vec::new();
        for block in text.as_bytes().chunks(size) {
            let mut block = block.to_vec();
            lines.rewrite(&mut block)?;
            made.extend(block);
        }
        lines.check_end()?;
        assert_eq!(made.len(), text.len(), "bytes keep their number");
        Ok(String::from_utf8(made).unwrap())
    }

    #[test]
    fn an_array_becomes_lines_however_it_comes() {
        let text = "\u{FEFF}[\r\n  {\"a\": \"x,]}\\\"\n\", \"b\": [1,\n {\"c\": 2}]}\n ,\n{} , {\"a\": \"\\\\\"}\n]\n";
        let wanted =
            "\u{FEFF}     {\"a\": \"x,]}\\\"\n\", \"b\": [1,  {\"c\": 2}]}  \n {} \n {\"a\": \"\\\\\"}   ";
        for size in 1..=text.len() {
            assert_eq!(lines(text, size).unwrap(), wanted, "blocks of {size} bytes");
        }
        assert_eq!(lines("[]", 1).unwrap(), "  ");
        let text = "\n\r\n[{}\n, {}]";
        assert_eq!(lines(text, text.len()).unwrap(), " \r  {} \n {} ");
    }

    #[test]
    fn lines_stay_as_they_are() {
        for text in ["", " \n", "{\"a\": [1,\n2]}\n{}\n", "\u{FEFF}{}", "x[", "1,[\n"] {
            for size in 1..=text.len().max(1) {
                assert_eq!(lines(text, size).unwrap(), text);
            }
            let is_blank = text.trim().is_empty();
            assert_eq!(begins(text.as_bytes()), if is_blank { None } else { Some(false) }, "{text:?}");
        }
        for text in ["[", " \n[{\"a\"", "[1", "\u{FEFF}[{}]"] {
            assert_eq!(begins(text.as_bytes()), Some(true), "{text:?}");
        }
    }

    #[test]
    fn what_is_no_array_of_objects_is_refused() {
        for (text, fault) in [
            ("[1]", Fault::NoObject(1)),
            ("[{}, null]", Fault::NoObject(2)),
            ("[[{}]]", Fault::NoObject(1)),
            ("[{},]", Fault::NoObject(2)),
            ("[,{}]", Fault::NoObject(1)),
            ("[{}{}]", Fault::NoComma(1)),
            ("[{}, {}\n{}]", Fault::NoComma(2)),
            ("[{}, {\"a\": [", Fault::NoEnd(2)),
            ("[{}", Fault::NoEnd(1)),
            ("[", Fault::NoEnd(0)),
            ("[{}]\n[{}]", Fault::More),
            ("[] x", Fault::More),
        ] {
            for size in 1..=text.len() {
                assert_eq!(lines(text, size), Err(fault), "{text} in blocks of {size} bytes");
            }
        }
    }
}
