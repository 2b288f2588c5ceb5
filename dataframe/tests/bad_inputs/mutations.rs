//! Sound files with bytes that were changed anywhere: the same ones every time.

use crate::{PEAK_BYTES, arrow_files, collected, memory::with_peak, parquet_files};
use arrow::ipc::CompressionType;
use datafusion::parquet::basic::Compression;
use datafusion::parquet::file::properties::WriterProperties;
use std::fs;
use std::sync::Arc;
use tharsis_dataframe::{DataFrame, read_arrow, read_avro, read_parquet};

/// Numbers that look random.
struct Noise(u64);

impl Noise {
    fn next(&mut self, below: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) as usize) % below
    }
}

/// A file with some bytes changed, cut off, or repeated.
fn mutated(seed: &[u8], noise: &mut Noise) -> Vec<u8> {
    let mut bytes = seed.to_vec();
    for _ in 0..1 + noise.next(4) {
        let at = noise.next(bytes.len());
        match noise.next(8) {
            0 => bytes.truncate(at.max(1)),
            1 => {
                let part = bytes[at..bytes.len().min(at + 64)].to_vec();
                let to = noise.next(bytes.len());
                bytes.splice(to..to, part);
            }
            // A length of eight bytes.
            2 => {
                let value = [u64::MAX, 1 << 62, 1 << 31, 0][noise.next(4)].to_le_bytes();
                let end = bytes.len().min(at + 8);
                bytes[at..end].copy_from_slice(&value[..end - at]);
            }
            // Footers are at the end.
            3..=5 => {
                let near = bytes.len() - 1 - noise.next(bytes.len().min(400));
                bytes[near] ^= 1 << noise.next(8);
            }
            _ => bytes[at] = noise.next(256) as u8,
        }
    }
    bytes
}

fn check(seeds: &[Vec<u8>], name: &str, read: fn(&str) -> DataFrame) {
    let _alone = crate::alone();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name).display().to_string();
    let mut noise = Noise(7);
    let mut failed = 0;
    for seed in seeds {
        for _ in 0..ROUNDS {
            fs::write(&path, mutated(seed, &mut noise)).unwrap();
            let (found, peak_bytes) = with_peak(|| collected(&read(&path)));
            assert!(peak_bytes < PEAK_BYTES, "{peak_bytes} bytes, {found:?}");
            if let Err(error) = found {
                failed += 1;
                assert!(error.to_string().contains(&path), "the file is not in {error}");
                assert_ne!(error.class(), "RuntimeError", "{error}");
            }
        }
    }
    assert!(ROUNDS / 2 < failed, "only {failed} files were refused");
}

#[test]
fn changed_arrow_files_are_read_or_refused() {
    let batch = || {
        arrow_files::batch(vec![(
            "n",
            Arc::new(arrow::array::Int64Array::from(vec![Some(7), None, Some(9)])),
        )])
    };
    let seeds = [
        arrow_files::base(),
        arrow_files::stream(),
        arrow_files::written(&[batch(), batch()], Some(CompressionType::LZ4_FRAME)),
        arrow_files::written(&[batch()], Some(CompressionType::ZSTD)),
    ];
    check(&seeds, "t.arrow", read_arrow);
}

#[test]
fn changed_parquet_files_are_read_or_refused() {
    let lists = arrow::array::ListArray::from_iter_primitive::<arrow::datatypes::Int64Type, _, _>(
        (0..50).map(|n| (n % 5 != 0).then(|| vec![Some(n), None])),
    );
    let nested = || arrow_files::batch(vec![("l", Arc::new(lists.clone()))]);
    let with = |compression| WriterProperties::builder().set_compression(compression).build();
    let seeds = [
        parquet_files::base(),
        parquet_files::written(&[nested()], with(Compression::UNCOMPRESSED)),
        parquet_files::written(&[nested()], with(Compression::SNAPPY)),
    ];
    check(&seeds, "t.parquet", read_parquet);
}

#[test]
fn changed_avro_files_are_read_or_refused() {
    let schema = arrow::datatypes::Schema::new(vec![
        arrow::datatypes::Field::new("n", arrow::datatypes::DataType::Int64, true),
        arrow::datatypes::Field::new("t", arrow::datatypes::DataType::Utf8, true),
    ]);
    let n = arrow::array::Int64Array::from(vec![Some(1), None, Some(3)]);
    let t = arrow::array::StringArray::from(vec![Some("x"), None, Some("z")]);
    let batch = arrow::array::RecordBatch::try_new(Arc::new(schema.clone()), vec![Arc::new(n), Arc::new(t)]);
    let mut writer = datafusion::arrow_avro::writer::AvroWriter::new(Vec::new(), schema).unwrap();
    writer.write(&batch.unwrap()).unwrap();
    writer.finish().unwrap();
    check(&[writer.into_inner()], "t.avro", read_avro);
}

/// Files for each seed.
const ROUNDS: usize = 100;
