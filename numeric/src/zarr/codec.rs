//! Codecs of the bytes of a chunk. What is decoded never has more bytes than are expected.

use flate2::Compression as Level;
use serde_json::{Map, Value as Json, json};
use std::io::{Error as IoError, ErrorKind, Read, Write};

/// A codec from bytes to bytes.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Codec {
    Gzip { level: u32 },
    Zstd { level: i32, has_checksum: bool },
    Crc32c,
}

/// Compression of chunks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Compression {
    /// Not at all.
    #[default]
    None,
    /// By gzip; levels from 0 to 9.
    Gzip {
        /// The level.
        level: u32,
    },
    /// By zstd; levels from 1 to 22.
    Zstd {
        /// The level.
        level: i32,
    },
}

/// A reason to refuse metadata.
#[derive(Debug)]
pub(super) enum Fault {
    Malformed(String),
    Unsupported(String),
}

impl Compression {
    pub(super) fn codec(self) -> Option<Codec> {
        match self {
            Compression::None => None,
            Compression::Gzip { level } => Some(Codec::Gzip { level: level.min(9) }),
            Compression::Zstd { level } => {
                Some(Codec::Zstd { level: level.clamp(1, 22), has_checksum: false })
            }
        }
    }
}

impl Codec {
    pub(super) fn parse(name: &str, configuration: &Map<String, Json>) -> Result<Codec, Fault> {
        let level = |least: i64, most: i64| {
            let level = configuration.get("level").and_then(Json::as_i64);
            let fits = level.filter(|level| (least..=most).contains(level));
            fits.ok_or_else(|| {
                Fault::Malformed(format!("the codec {name} without a level from {least} to {most}"))
            })
        };
        match name {
            "gzip" => Ok(Codec::Gzip { level: level(0, 9)? as u32 }),
            "zstd" => {
                let has_checksum = configuration.get("checksum").and_then(Json::as_bool).unwrap_or(false);
                Ok(Codec::Zstd { level: level(-131_072, 22)? as i32, has_checksum })
            }
            "crc32c" => Ok(Codec::Crc32c),
            other => Err(Fault::Unsupported(format!("the codec {other}"))),
        }
    }

    pub(super) fn to_json(&self) -> Json {
        match self {
            Codec::Gzip { level } => json!({"name": "gzip", "configuration": {"level": level}}),
            Codec::Zstd { level, has_checksum } => {
                json!({"name": "zstd", "configuration": {"level": level, "checksum": has_checksum}})
            }
            Codec::Crc32c => json!({"name": "crc32c"}),
        }
    }

    fn encode(&self, bytes: Vec<u8>) -> std::io::Result<Vec<u8>> {
        match self {
            Codec::Gzip { level } => {
                let mut encoder = flate2::write::GzEncoder::new(Vec::new(), Level::new(*level));
                encoder.write_all(&bytes)?;
                encoder.finish()
            }
            Codec::Zstd { level, has_checksum } => {
                let mut encoder = zstd::Encoder::new(Vec::new(), *level)?;
                encoder.include_checksum(*has_checksum)?;
                encoder.set_pledged_src_size(Some(bytes.len() as u64))?;
                encoder.write_all(&bytes)?;
                encoder.finish()
            }
            Codec::Crc32c => {
                let sum = crc32c(&bytes).to_le_bytes();
                Ok([bytes.as_slice(), &sum].concat())
            }
        }
    }

    /// The decoded bytes, of which there are at most `most`.
    fn decode(&self, mut bytes: Vec<u8>, most: u64) -> std::io::Result<Vec<u8>> {
        match self {
            Codec::Gzip { .. } => bounded(flate2::read::MultiGzDecoder::new(bytes.as_slice()), most),
            // In one step: a decoder of streams holds a window beside what it makes, of up to 128 MiB.
            Codec::Zstd { .. } => zstd::bulk::decompress(&bytes, most as usize),
            Codec::Crc32c => {
                let Some(sum) = bytes.len().checked_sub(4).map(|at| bytes.split_off(at)) else {
                    return Err(ErrorKind::UnexpectedEof.into());
                };
                if sum == crc32c(&bytes).to_le_bytes() {
                    Ok(bytes)
                } else {
                    Err(IoError::new(ErrorKind::InvalidData, "the checksum is that of other bytes"))
                }
            }
        }
    }

    /// The most bytes that an encoder makes of this number of bytes, and some more.
    fn encoded_max(&self, bytes: u64) -> u64 {
        match self {
            // Fast encoders have a fixed code of up to nine bits for a byte, and some bits for each block.
            Codec::Gzip { .. } => bytes + bytes / 7 + 1024,
            Codec::Zstd { .. } => bytes + bytes / 64 + 1024,
            Codec::Crc32c => bytes + 4,
        }
    }
}

/// Applies codecs in order.
pub(super) fn encode(codecs: &[Codec], bytes: Vec<u8>) -> std::io::Result<Vec<u8>> {
    codecs.iter().try_fold(bytes, |bytes, codec| codec.encode(bytes))
}

/// Undoes codecs that were applied in this order, and refuses another number of bytes than is expected.
pub(super) fn decode(codecs: &[Codec], bytes: Vec<u8>, expected: u64) -> std::io::Result<Vec<u8>> {
    // The most bytes that each codec was given, from the first to the last.
    let sizes = sizes(codecs, expected);
    let mut undone = codecs.iter().zip(sizes).rev();
    let bytes = undone.try_fold(bytes, |bytes, (codec, most)| codec.decode(bytes, most))?;
    if bytes.len() as u64 == expected {
        Ok(bytes)
    } else {
        let text = format!("a chunk of {} bytes instead of {expected}", bytes.len());
        Err(IoError::new(ErrorKind::InvalidData, text))
    }
}

fn sizes(codecs: &[Codec], expected: u64) -> Vec<u64> {
    let mut size = expected;
    let mut given = Vec::with_capacity(codecs.len());
    for codec in codecs {
        given.push(size);
        size = codec.encoded_max(size);
    }
    given
}

/// The most bytes of the file of a chunk.
pub(super) fn stored_max(codecs: &[Codec], expected: u64) -> u64 {
    codecs.iter().fold(expected, |size, codec| codec.encoded_max(size))
}

/// All bytes of a reader, if there are not more.
fn bounded(reader: impl Read, most: u64) -> std::io::Result<Vec<u8>> {
    // All at once: a memory that grows by doubling has up to twice as many bytes. What is not used is not
    // there.
    let mut bytes = Vec::with_capacity(most as usize + 1);
    reader.take(most + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 <= most {
        Ok(bytes)
    } else {
        Err(IoError::new(ErrorKind::InvalidData, "a chunk of more bytes than it has elements"))
    }
}

/// The checksum of Castagnoli's polynomial.
pub(super) fn crc32c(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(u32::MAX, |sum, byte| {
        let at = (sum ^ u32::from(*byte)) & 0xFF;
        TABLE[at as usize] ^ (sum >> 8)
    })
}

const TABLE: [u32; 256] = {
    let mut table = [0u32; 256];
    let mut at = 0;
    while at < 256 {
        let mut sum = at as u32;
        let mut bit = 0;
        while bit < 8 {
            sum = if sum & 1 == 1 { (sum >> 1) ^ 0x82F6_3B78 } else { sum >> 1 };
            bit += 1;
        }
        table[at] = sum;
        at += 1;
    }
    table
};

#[cfg(test)]
mod tests {
    use super::*;

    fn all() -> [Codec; 3] {
        [Codec::Gzip { level: 1 }, Codec::Zstd { level: 3, has_checksum: true }, Codec::Crc32c]
    }

    #[test]
    fn the_checksum_is_castagnolis() {
        assert_eq!(crc32c(b"123456789"), 0xE306_9283);
    }

    #[test]
    fn codecs_are_undone_in_reverse() {
        for bytes in [Vec::new(), vec![7; 1000], (0..=255).collect::<Vec<u8>>()] {
            let encoded = encode(&all(), bytes.clone()).unwrap();
            assert!(encoded.len() as u64 <= stored_max(&all(), bytes.len() as u64));
            assert_eq!(decode(&all(), encoded, bytes.len() as u64).unwrap(), bytes);
        }
    }

    #[test]
    fn chunks_that_are_cut_off_damaged_or_too_long_are_refused() {
        for codec in all() {
            let codecs = [codec];
            let encoded = encode(&codecs, vec![7; 1000]).unwrap();
            assert!(decode(&codecs, encoded[..encoded.len() - 1].to_vec(), 1000).is_err(), "{codecs:?}");
            assert!(decode(&codecs, encoded.clone(), 999).is_err(), "{codecs:?}");
            assert!(decode(&codecs, encoded, 1001).is_err(), "{codecs:?}");
        }
        let mut encoded = encode(&[Codec::Crc32c], vec![7; 10]).unwrap();
        encoded[3] ^= 1;
        assert!(decode(&[Codec::Crc32c], encoded, 10).is_err());
        // A gigabyte of zeros, of which only what fits is inflated.
        let bomb = encode(&[Codec::Zstd { level: 1, has_checksum: false }], vec![0; 1 << 26]).unwrap();
        assert!(decode(&[Codec::Zstd { level: 1, has_checksum: false }], bomb, 1000).is_err());
    }
}
