//! The characters of texts, under Python's names of encodings.

use encoding_rs::{
    IBM866, ISO_8859_2, ISO_8859_5, ISO_8859_15, KOI8_R, WINDOWS_1250, WINDOWS_1251, WINDOWS_1252,
    WINDOWS_1253, WINDOWS_1254, WINDOWS_1256, WINDOWS_1257,
};
use serde::{Deserialize, Serialize};

/// The encoding of a text, and what becomes of bytes that are not in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Encoding {
    /// The mapping of its bytes.
    pub charset: Charset,
    /// The treatment of other bytes.
    pub bad: Bad,
}

/// The treatment of bytes that are no character.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Bad {
    /// They are an error.
    Error,
    /// They are left out.
    Ignore,
    /// They become the character for what cannot be shown.
    Replace,
}

/// A mapping of bytes to characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Charset {
    /// The first 128 characters.
    Ascii,
    /// Cyrillic, of DOS.
    Cp866,
    /// Central European, of Windows.
    Cp1250,
    /// Cyrillic, of Windows.
    Cp1251,
    /// Western European, of Windows.
    Cp1252,
    /// Greek, of Windows.
    Cp1253,
    /// Turkish, of Windows.
    Cp1254,
    /// Arabic, of Windows.
    Cp1256,
    /// Baltic, of Windows.
    Cp1257,
    /// Russian.
    Koi8R,
    /// Western European: ISO 8859-1.
    Latin1,
    /// Central European: ISO 8859-2.
    Latin2,
    /// Western European with the sign of the euro: ISO 8859-15.
    Latin9,
    /// Cyrillic: ISO 8859-5.
    LatinCyrillic,
    /// The mark at its begin says in which order two bytes are.
    Utf16,
    /// The high byte of two first.
    Utf16Be,
    /// The low byte of two first.
    Utf16Le,
    /// UTF-8, as readers want it.
    Utf8,
}

/// Names of encodings as Python's, with a dash where it takes a dash, a blank or an underscore.
const NAMES: &[(&str, Charset)] = &[
    ("ascii", Charset::Ascii),
    ("us-ascii", Charset::Ascii),
    ("cp866", Charset::Cp866),
    ("ibm866", Charset::Cp866),
    ("cp1250", Charset::Cp1250),
    ("windows-1250", Charset::Cp1250),
    ("cp1251", Charset::Cp1251),
    ("windows-1251", Charset::Cp1251),
    ("cp1252", Charset::Cp1252),
    ("windows-1252", Charset::Cp1252),
    ("cp1253", Charset::Cp1253),
    ("windows-1253", Charset::Cp1253),
    ("cp1254", Charset::Cp1254),
    ("windows-1254", Charset::Cp1254),
    ("cp1256", Charset::Cp1256),
    ("windows-1256", Charset::Cp1256),
    ("cp1257", Charset::Cp1257),
    ("windows-1257", Charset::Cp1257),
    ("koi8-r", Charset::Koi8R),
    ("latin-1", Charset::Latin1),
    ("latin1", Charset::Latin1),
    ("iso-8859-1", Charset::Latin1),
    ("iso8859-1", Charset::Latin1),
    ("l1", Charset::Latin1),
    ("latin-2", Charset::Latin2),
    ("latin2", Charset::Latin2),
    ("iso-8859-2", Charset::Latin2),
    ("iso8859-2", Charset::Latin2),
    ("iso-8859-5", Charset::LatinCyrillic),
    ("iso8859-5", Charset::LatinCyrillic),
    ("latin-9", Charset::Latin9),
    ("latin9", Charset::Latin9),
    ("iso-8859-15", Charset::Latin9),
    ("iso8859-15", Charset::Latin9),
    ("utf-16", Charset::Utf16),
    ("utf16", Charset::Utf16),
    ("utf-16-be", Charset::Utf16Be),
    ("utf-16be", Charset::Utf16Be),
    ("utf-16-le", Charset::Utf16Le),
    ("utf-16le", Charset::Utf16Le),
    ("utf-8", Charset::Utf8),
    ("utf8", Charset::Utf8),
    // The reader leaves the mark out of any text.
    ("utf-8-sig", Charset::Utf8),
];

impl Charset {
    /// The encoding of a name.
    ///
    /// ```
    /// use tharsis_text_scan::encoding::Charset;
    /// assert_eq!(Charset::named("Latin_1"), Some(Charset::Latin1));
    /// assert_eq!(Charset::named("utf-7"), None);
    /// ```
    #[must_use]
    pub fn named(name: &str) -> Option<Charset> {
        let name = name.to_lowercase().replace(['_', ' '], "-");
        NAMES.iter().find(|(known, _)| *known == name).map(|(_, charset)| *charset)
    }

    /// The name in errors.
    fn name(self) -> &'static str {
        match self {
            Charset::Ascii => "ascii",
            Charset::Utf16 | Charset::Utf16Le => "utf-16-le",
            Charset::Utf16Be => "utf-16-be",
            Charset::Utf8 => "utf-8",
            // Python says so of all that it has as tables.
            _ => "charmap",
        }
    }

    /// The character of each byte, for encodings of one byte a character.
    fn table(self) -> Option<[Option<char>; 256]> {
        let standard = match self {
            Charset::Ascii | Charset::Latin1 => {
                let last = if self == Charset::Ascii { 0x7f } else { 0xff };
                return Some(std::array::from_fn(|at| {
                    u8::try_from(at).ok().filter(|byte| *byte <= last).map(char::from)
                }));
            }
            Charset::Cp866 => IBM866,
            Charset::Cp1250 => WINDOWS_1250,
            Charset::Cp1251 => WINDOWS_1251,
            Charset::Cp1252 => WINDOWS_1252,
            Charset::Cp1253 => WINDOWS_1253,
            Charset::Cp1254 => WINDOWS_1254,
            Charset::Cp1256 => WINDOWS_1256,
            Charset::Cp1257 => WINDOWS_1257,
            Charset::Koi8R => KOI8_R,
            Charset::Latin2 => ISO_8859_2,
            Charset::Latin9 => ISO_8859_15,
            Charset::LatinCyrillic => ISO_8859_5,
            Charset::Utf16 | Charset::Utf16Be | Charset::Utf16Le | Charset::Utf8 => return None,
        };
        let is_windows = standard.name().starts_with("windows");
        Some(std::array::from_fn(|at| {
            let byte = [at as u8];
            let text = standard.decode_without_bom_handling_and_without_replacement(&byte)?;
            let character = text.chars().next()?;
            // Browsers fill the gaps of code pages with control characters; Python has gaps.
            let is_gap = is_windows && (0x80..0xa0).contains(&at) && u32::from(character) == at as u32;
            (!is_gap).then_some(character)
        }))
    }

    /// The order of the bytes of a text of two bytes a character that begins with some bytes, unless they are
    /// too few; Python takes that of the machine where there is no mark.
    fn order(self, begin: &[u8]) -> Option<Charset> {
        match (self, begin) {
            (Charset::Utf16, [0xfe, 0xff, ..]) => Some(Charset::Utf16Be),
            (Charset::Utf16, [] | [_]) => None,
            (Charset::Utf16, _) => Some(Charset::Utf16Le),
            (known, _) => Some(known),
        }
    }
}

/// Bytes that are no character.
#[derive(Debug)]
pub struct Undecodable {
    /// Their place in the bytes.
    pub at: usize,
    /// The reason in Python's words.
    pub reason: String,
}

/// Makes UTF-8 of the bytes of a text, part by part.
///
/// ```
/// use tharsis_text_scan::encoding::{Bad, Charset, Decoder, Encoding};
/// let mut decoder = Decoder::new(Encoding { charset: Charset::Utf16Le, bad: Bad::Error });
/// let mut text = Vec::new();
/// // The last byte is half of a character, and comes again with the next part.
/// assert_eq!(decoder.decode(b"a\0\xe9\0b", false, &mut text).ok(), Some(4));
/// assert_eq!(text, "a\u{e9}".as_bytes());
/// ```
pub struct Decoder {
    /// With the order of bytes, once it is known.
    charset: Charset,
    bad: Bad,
    table: Option<Box<[Option<char>; 256]>>,
}

impl Decoder {
    /// A decoder for a text from its begin.
    #[must_use]
    pub fn new(encoding: Encoding) -> Decoder {
        let Encoding { charset, bad } = encoding;
        Decoder { charset, bad, table: charset.table().map(Box::new) }
    }

    /// Whether bytes of UTF-8 are what readers want.
    #[must_use]
    pub fn is_utf8(&self) -> bool {
        self.charset == Charset::Utf8
    }

    /// Appends a part of the text, of which some bytes at the end may be those of a character that goes on in
    /// the next part, and gives the number of those that are done.
    ///
    /// # Errors
    ///
    /// Bytes that are no character, if they are not to be left out or replaced.
    pub fn decode(&mut self, part: &[u8], is_end: bool, text: &mut Vec<u8>) -> Result<usize, Undecodable> {
        if let Some(table) = &self.table {
            for (at, &byte) in part.iter().enumerate() {
                match table[usize::from(byte)] {
                    Some(character) => push(text, character),
                    None => self.undecodable(at, byte, text)?,
                }
            }
            return Ok(part.len());
        }
        if self.is_utf8() {
            return self.utf8(part, is_end, text);
        }
        match self.charset.order(part) {
            None if !is_end => return Ok(0),
            found => self.charset = found.unwrap_or(Charset::Utf16Le),
        }
        self.utf16(part, is_end, text)
    }

    fn utf8(&self, part: &[u8], is_end: bool, text: &mut Vec<u8>) -> Result<usize, Undecodable> {
        let mut at = 0;
        while at < part.len() {
            let error = match std::str::from_utf8(&part[at..]) {
                Ok(_) => {
                    text.extend_from_slice(&part[at..]);
                    return Ok(part.len());
                }
                Err(error) => error,
            };
            let valid = at + error.valid_up_to();
            text.extend_from_slice(&part[at..valid]);
            let bad = match error.error_len() {
                None if !is_end => return Ok(valid),
                None => part.len() - valid,
                Some(bad) => bad,
            };
            self.undecodable(valid, part[valid], text)?;
            at = valid + bad;
        }
        Ok(part.len())
    }

    fn utf16(&self, part: &[u8], is_end: bool, text: &mut Vec<u8>) -> Result<usize, Undecodable> {
        let unit = |at: usize| match part.get(at..at + 2) {
            Some(&[one, other]) if self.charset == Charset::Utf16Be => Some(u16::from_be_bytes([one, other])),
            Some(&[one, other]) => Some(u16::from_le_bytes([one, other])),
            _ => None,
        };
        let mut at = 0;
        while at < part.len() {
            let Some(first) = unit(at) else {
                // Half of two bytes.
                if is_end {
                    self.undecodable(at, part[at], text)?;
                    return Ok(part.len());
                }
                return Ok(at);
            };
            let second = unit(at + 2);
            if matches!(first, 0xd800..0xdc00) && second.is_none() && !is_end {
                return Ok(at);
            }
            match char::decode_utf16([Some(first), second].into_iter().flatten()).next() {
                Some(Ok(character)) => {
                    push(text, character);
                    at += 2 * character.len_utf16();
                }
                _ => {
                    self.undecodable(at, part[at], text)?;
                    at += 2;
                }
            }
        }
        Ok(at)
    }

    /// Appends what stands for a byte that is no character.
    fn undecodable(&self, at: usize, byte: u8, text: &mut Vec<u8>) -> Result<(), Undecodable> {
        match self.bad {
            Bad::Ignore => Ok(()),
            Bad::Replace => {
                push(text, char::REPLACEMENT_CHARACTER);
                Ok(())
            }
            Bad::Error => {
                let reason = format!("'{}' codec can't decode byte {byte:#04x}", self.charset.name());
                Err(Undecodable { at, reason })
            }
        }
    }
}

fn push(text: &mut Vec<u8>, character: char) {
    text.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decoder(charset: Charset, bad: Bad) -> Decoder {
        Decoder::new(Encoding { charset, bad })
    }

    /// A text in parts of so many bytes.
    fn decoded(bytes: &[u8], size: usize, charset: Charset, bad: Bad) -> Result<String, String> {
        let mut decoder = decoder(charset, bad);
        let (mut text, mut rest) = (Vec::new(), Vec::new());
        for part in bytes.chunks(size) {
            rest.extend_from_slice(part);
            let done = decoder.decode(&rest, false, &mut text).map_err(|error| error.reason)?;
            rest.drain(..done);
        }
        decoder.decode(&rest, true, &mut text).map_err(|error| error.reason)?;
        Ok(String::from_utf8(text).unwrap())
    }

    /// The hash (FNV-1a) of Python's characters of all bytes, the lower half of each first; 0xffff for none.
    const OF_PYTHON: [(&str, u64); 14] = [
        ("ascii", 0x6497_6fbb_c6f6_8125),
        ("latin-1", 0xc324_5fa6_c8a1_6b25),
        ("iso8859-2", 0x6985_e26b_e4b1_80d2),
        ("iso8859-5", 0xaad2_acd0_8e3c_7e6a),
        ("iso8859-15", 0x6975_26d4_93d9_5980),
        ("cp1250", 0x3d47_b131_37d5_be64),
        ("cp1251", 0xac72_7b42_acff_11a9),
        ("cp1252", 0xc399_4e36_bff3_e4a0),
        ("cp1253", 0x03eb_7f66_37e4_1f1e),
        ("cp1254", 0x2277_a5a6_fa38_6542),
        ("cp1256", 0x8577_dce5_f9a0_9088),
        ("cp1257", 0x369e_5187_40a5_4454),
        ("koi8_r", 0x3285_0e94_e3bf_014e),
        ("cp866", 0xa7e9_cde0_a5e3_3825),
    ];

    #[test]
    fn the_characters_of_bytes_are_those_of_python() {
        for (name, expected) in OF_PYTHON {
            let table = Charset::named(name).unwrap().table().unwrap();
            let codes = table.iter().map(|character| character.map_or(0xffff, u32::from));
            let bytes = codes.flat_map(|code| [code & 0xff, code >> 8]);
            let hash = bytes.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
                (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
            });
            assert_eq!(hash, expected, "{name}");
        }
        assert_eq!(Charset::named("UTF_8"), Some(Charset::Utf8));
        assert_eq!(Charset::named("utf-7"), None);
    }

    #[test]
    fn two_bytes_a_character_are_read_in_any_parts() {
        let text = "\u{feff}a,\u{e9}\n\u{1f600},z";
        let le: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
        let be: Vec<u8> = text.encode_utf16().flat_map(u16::to_be_bytes).collect();
        for size in 1..=le.len() {
            assert_eq!(decoded(&le, size, Charset::Utf16, Bad::Error).unwrap(), text, "{size}");
            assert_eq!(decoded(&be, size, Charset::Utf16, Bad::Error).unwrap(), text, "{size}");
            assert_eq!(decoded(&be, size, Charset::Utf16Be, Bad::Error).unwrap(), text, "{size}");
            assert_eq!(decoded(&le[2..], size, Charset::Utf16, Bad::Error).unwrap(), text[3..], "{size}");
            // Half of a pair, and half of two bytes.
            let lone = [&le[..4], &[0x00, 0xd8, 0x41, 0x00, 0x42][..]].concat();
            assert_eq!(
                decoded(&lone, size, Charset::Utf16, Bad::Replace).unwrap(),
                "\u{feff}a\u{fffd}A\u{fffd}"
            );
            assert_eq!(decoded(&lone, size, Charset::Utf16, Bad::Ignore).unwrap(), "\u{feff}aA");
            assert!(decoded(&lone, size, Charset::Utf16, Bad::Error).is_err());
        }
        assert_eq!(decoded(&[0x41], 1, Charset::Utf16, Bad::Ignore).unwrap(), "");
    }

    #[test]
    fn bytes_without_a_character_are_told() {
        assert_eq!(decoded(b"a\x81b", 1, Charset::Cp1252, Bad::Replace).unwrap(), "a\u{fffd}b");
        assert_eq!(decoded(b"\x80", 1, Charset::Cp1252, Bad::Error).unwrap(), "\u{20ac}");
        let error = decoded(b"a\x81", 2, Charset::Cp1252, Bad::Error).unwrap_err();
        assert_eq!(error, "'charmap' codec can't decode byte 0x81");
        assert!(decoded(b"\xe9", 1, Charset::Ascii, Bad::Error).unwrap_err().starts_with("'ascii'"));
        assert_eq!(
            decoded("\u{e9}\u{20ac}".as_bytes(), 1, Charset::Utf8, Bad::Error).unwrap(),
            "\u{e9}\u{20ac}"
        );
        assert_eq!(decoded(b"\xe2\x82", 1, Charset::Utf8, Bad::Ignore).unwrap(), "");
    }
}
