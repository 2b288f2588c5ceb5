//! Decision from measurements whether compressing an object pays, and the compression of a block.
//!
//! Compression overlaps with writing, so a compressed object takes the longer of the two: it pays where the
//! disk is slower than the compressor *and* the data gets smaller. Both are measured: the disk by every
//! write, the data by a small sample of each object. Samples may take only a small part of the time of the
//! writes.

use super::header::{BLOCK_BYTES, Codec};

/// Compression is chosen if it saves at least a quarter of the time; reading back decompresses, which costs
/// as well.
const TIME_RATIO_MAX: f64 = 0.75;
/// Part of the time of writes that samples may take.
const SAMPLE_TIME_SHARE: f64 = 0.02;
/// Bytes after which older writes count half, since the speed of a disk changes.
const MEMORY_BYTES: f64 = (256 << 20) as f64;
/// Smallest object worth a sample: below it, padding uses up the savings of compression.
const SAMPLED_BYTES_MIN: u64 = 64 << 10;
/// Length of one of the two pieces that make a sample.
pub(crate) const SAMPLE_PIECE_BYTES: usize = 16 << 10;

/// Advice on how to store the next object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CodecAdvice {
    /// Store it uncompressed.
    Raw,
    /// Compress a sample and ask [`CodecChoice::judge`].
    Sample,
}

/// The result of compressing a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CompressedSample {
    /// Bytes before.
    pub raw_bytes: u64,
    /// Bytes after.
    pub stored_bytes: u64,
    /// Time that the compression took.
    pub elapsed_ns: u64,
}

/// Decides per object between raw and lz4.
#[derive(Clone, Debug, Default)]
pub struct CodecChoice {
    written_bytes: f64,
    written_ns: f64,
    /// Time that samples may still take.
    sample_budget_ns: f64,
}

impl CodecChoice {
    /// A choice without measurements: the first object is stored uncompressed and measures the disk.
    pub fn new() -> CodecChoice {
        CodecChoice::default()
    }

    /// Advice for an object of `len` bytes.
    pub fn advise(&self, len: u64) -> CodecAdvice {
        if len < SAMPLED_BYTES_MIN || self.sample_budget_ns <= 0.0 {
            CodecAdvice::Raw
        } else {
            CodecAdvice::Sample
        }
    }

    /// The codec for the object of this sample.
    pub fn judge(&mut self, sample: &CompressedSample) -> Codec {
        self.sample_budget_ns -= sample.elapsed_ns as f64;
        if sample.raw_bytes == 0 || self.written_bytes == 0.0 {
            return Codec::Raw;
        }
        let raw_bytes = sample.raw_bytes as f64;
        let write_ns = raw_bytes * self.written_ns / self.written_bytes;
        let stored_ns = write_ns * (sample.stored_bytes as f64 / raw_bytes);
        if stored_ns.max(sample.elapsed_ns as f64) <= TIME_RATIO_MAX * write_ns {
            Codec::Lz4
        } else {
            Codec::Raw
        }
    }

    /// Notes the time that the disk took for a number of bytes, without compression.
    pub fn wrote(&mut self, bytes: u64, elapsed_ns: u64) {
        if MEMORY_BYTES < self.written_bytes {
            self.written_bytes /= 2.0;
            self.written_ns /= 2.0;
        }
        self.written_bytes += bytes as f64;
        self.written_ns += elapsed_ns as f64;
        // The unused budget is capped at a few samples; otherwise a fast disk would be sampled in bursts.
        let budget_max_ns = SAMPLE_TIME_SHARE * self.written_ns;
        let earned_ns = SAMPLE_TIME_SHARE * elapsed_ns as f64;
        self.sample_budget_ns = (self.sample_budget_ns + earned_ns).min(budget_max_ns);
    }
}

/// Bytes of a buffer into which any block can be compressed.
pub(crate) fn compressed_bytes_max() -> usize {
    lz4_flex::block::get_maximum_output_size(BLOCK_BYTES as usize)
}

/// Compresses into `target` and returns the length, or `None` if `target` is too small.
pub(crate) fn compress(source: &[u8], target: &mut [u8]) -> Option<usize> {
    lz4_flex::block::compress_into(source, target).ok()
}

/// Decompresses to exactly the length of `target`; `None` if the source holds anything else.
///
/// The target is the cap: no length in the source sizes an allocation.
pub(crate) fn decompress(source: &[u8], target: &mut [u8]) -> Option<()> {
    let len = lz4_flex::block::decompress_into(source, target).ok()?;
    (len == target.len()).then_some(())
}

#[cfg(not(models))]
#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MB: u64 = 1_000_000;

    /// A choice after 100 MB at the given rate in MB/s.
    fn after_writes(mb_per_s: u64) -> CodecChoice {
        let mut choice = CodecChoice::new();
        choice.wrote(100 * MB, 100 * 1_000_000_000 / mb_per_s);
        choice
    }

    fn sample(ratio_percent: u64, mb_per_s: u64) -> CompressedSample {
        CompressedSample {
            raw_bytes: 32_000,
            stored_bytes: 320 * ratio_percent,
            elapsed_ns: 32_000 * 1000 / mb_per_s,
        }
    }

    #[test]
    fn compression_is_off_on_a_fast_disk_and_on_on_a_slow_one() {
        // Rates of lz4_flex on random floats, sorted integers and text.
        let (noise, integers, text) = (sample(100, 3900), sample(30, 450), sample(45, 280));
        let judge = |mb_per_s, sample| after_writes(mb_per_s).judge(&sample);
        for sample in [noise, integers, text] {
            assert_eq!(judge(2500, sample), Codec::Raw);
        }
        assert_eq!(judge(200, noise), Codec::Raw);
        assert_eq!(judge(200, integers), Codec::Lz4);
        assert_eq!(judge(200, text), Codec::Lz4);
        // A disk as fast as the compressor leaves nothing to gain.
        assert_eq!(judge(280, text), Codec::Raw);
        assert_eq!(judge(200, sample(80, 4000)), Codec::Raw);
    }

    #[test]
    fn the_first_object_measures_the_disk_and_small_ones_are_left_alone() {
        assert_eq!(CodecChoice::new().advise(1 << 30), CodecAdvice::Raw);
        assert_eq!(CodecChoice::new().judge(&sample(1, 9000)), Codec::Raw);
        assert_eq!(after_writes(200).advise(1 << 30), CodecAdvice::Sample);
        assert_eq!(after_writes(200).advise(1000), CodecAdvice::Raw);
    }

    #[test]
    fn a_disk_that_slows_down_turns_compression_on() {
        let mut choice = after_writes(2500);
        assert_eq!(choice.judge(&sample(30, 450)), Codec::Raw);
        for _ in 0..20 {
            choice.wrote(64 * MB, 64 * MB * 1000 / 100);
        }
        assert_eq!(choice.judge(&sample(30, 450)), Codec::Lz4);
    }

    proptest! {
        #[test]
        fn samples_take_a_fiftieth_of_the_time_of_writes_at_most(
            writes in prop::collection::vec((1..1_u64 << 28, 1..1_u64 << 30, 1..1_u64 << 22), 1..100),
        ) {
            let mut choice = CodecChoice::new();
            let (mut written_ns, mut sampled_ns, mut longest_ns) = (0, 0, 0);
            for (bytes, write_ns, sample_ns) in writes {
                if choice.advise(bytes) == CodecAdvice::Sample {
                    choice.judge(&CompressedSample { raw_bytes: 1, stored_bytes: 1, elapsed_ns: sample_ns });
                    sampled_ns += sample_ns;
                    longest_ns = sample_ns.max(longest_ns);
                }
                choice.wrote(bytes, write_ns);
                written_ns += write_ns;
            }
            prop_assert!(sampled_ns as f64 <= 0.0201 * written_ns as f64 + longest_ns as f64);
        }

        #[test]
        fn blocks_survive_compression_and_noise_never_gives_another_length(
            bytes in prop::collection::vec(0..4_u8, 0..5000),
            noise in prop::collection::vec(any::<u8>(), 0..300),
        ) {
            let mut packed = vec![0; lz4_flex::block::get_maximum_output_size(bytes.len())];
            let len = compress(&bytes, &mut packed).unwrap();
            let mut back = vec![0xEE; bytes.len()];
            prop_assert!(decompress(&packed[..len], &mut back).is_some());
            prop_assert_eq!(&back, &bytes);
            prop_assert!(decompress(&packed[..len], &mut vec![0; bytes.len() + 1]).is_none());
            let _ = decompress(&noise, &mut vec![0; 1000]);
        }
    }
}
