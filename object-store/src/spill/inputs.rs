//! The readers of spill files as functions of bytes; see [`crate::inputs`].

use super::codec::{compress, decompress};
use super::header::{BLOCK_BYTES, BlockRecord, Codec, Header};

/// Reads the header of an object. If the first byte is odd, its checksum is corrected first; noise would
/// never pass it.
pub fn spill_header(bytes: &[u8]) {
    let Some((first, bytes)) = bytes.split_first() else { return };
    let mut bytes = bytes.to_vec();
    if first % 2 == 1 {
        Header::seal(&mut bytes);
    }
    let Ok(header) = Header::decode(&bytes) else { return };
    assert!(header.stored_bytes() <= bytes.len() as u64, "a header beyond its bytes");
    let lens = (0..header.blocks.len()).map(|index| header.block_len(index));
    assert_eq!(lens.sum::<u64>(), header.len, "the blocks are the object");
    let mut again = vec![0; header.stored_bytes() as usize];
    assert_eq!(header.encode(&mut again), Some(again.len()));
    assert_eq!(Header::decode(&again), Ok(header));
}

/// Headers of several objects, each behind the byte that asks for a right checksum.
#[must_use]
pub fn spill_header_seeds() -> Vec<Vec<u8>> {
    let block = u64::from(BLOCK_BYTES);
    let lens = [0, 1, 4096, block, 3 * block + 5, 300 * block];
    lens.into_iter().filter_map(|len| header_of(len, Codec::Raw)).chain(header_of(9000, Codec::Lz4)).collect()
}

/// Decompresses a block. The first byte gives its length.
pub fn spill_block(bytes: &[u8]) {
    let Some((first, bytes)) = bytes.split_first() else { return };
    let mut target = vec![0xEE; 16 * usize::from(*first)];
    let _ = decompress(bytes, &mut target);
}

/// Compressed blocks, each behind the byte that gives its length.
#[must_use]
pub fn spill_block_seeds() -> Vec<Vec<u8>> {
    let texts = [vec![7; 1600], (0..=255).collect::<Vec<u8>>(), b"ab".repeat(800)];
    let seeds = texts.iter().filter_map(|text| {
        let mut packed = vec![0; 2 * text.len() + 64];
        let len = compress(text, &mut packed)?;
        Some([&[(text.len() / 16) as u8], &packed[..len]].concat())
    });
    seeds.collect()
}

fn header_of(len: u64, codec: Codec) -> Option<Vec<u8>> {
    let count = len.div_ceil(BLOCK_BYTES.into());
    let blocks = vec![BlockRecord { checksum: 9, stored_len: 0 }; count as usize].into();
    let (key, session, sequence) = ([5; 20], 7, 11);
    let mut header = Header { key, session, sequence, len, block_bytes: BLOCK_BYTES, codec, blocks };
    for index in 0..header.blocks.len() {
        header.blocks[index].stored_len = u32::try_from(header.block_len(index)).ok()?;
    }
    let mut bytes = vec![0; header.stored_bytes() as usize];
    header.encode(&mut bytes)?;
    Some([&[1][..], &bytes].concat())
}
