//! Bytes that travel in these tests, and what tells them apart. Both are quick in a debug build: some tests
//! move hundreds of megabytes.

/// Bytes that are made one by one, and then repeated: more than a compression looks back.
const MADE_BYTES: usize = 128 << 10;
/// Bytes of a piece with a number of its own.
const PIECE_BYTES: usize = 4096;

/// Bytes that depend on their place, so that no piece can be swapped, repeated or left out unnoticed.
pub fn pattern(len: usize, seed: u64) -> Vec<u8> {
    let mut state = seed;
    let mut word = || {
        state = state.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(1);
        state.to_le_bytes()
    };
    let made: Vec<u8> = (0..MADE_BYTES / 8).flat_map(|_| word()).collect();
    let mut bytes = made.repeat(len.div_ceil(MADE_BYTES));
    bytes.truncate(len);
    for (number, piece) in (0_u64..).zip(bytes.chunks_mut(PIECE_BYTES)) {
        if let Some(first) = piece.first_chunk_mut() {
            *first = (seed ^ number).to_le_bytes();
        }
    }
    bytes
}

/// A hash of all bytes.
pub fn digest(bytes: &[u8]) -> u64 {
    blake3::hash(bytes).as_bytes()[..8].iter().fold(0, |digest, byte| (digest << 8) | u64::from(*byte))
}
