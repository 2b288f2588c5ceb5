//! Zarr arrays in shards: what is written is read, also what other programs wrote, and no more of a file than
//! is needed; damaged shards are refused.

use std::path::{Path, PathBuf};
use tharsis_graph::Error as GraphError;
use tharsis_numeric::zarr::{Compression, Options, load, open, save};
use tharsis_numeric::{Chunks, DType, LocalExecutor, Tensor, arange, index, zeros};

fn roomy() -> LocalExecutor {
    LocalExecutor::sized(2, 1 << 28)
}

fn is_equal(a: &Tensor, b: &Tensor) -> bool {
    a.dtype().unwrap() == b.dtype().unwrap() && a.array_equal(b, true).item().unwrap().is_true()
}

fn sharded(chunks: &[usize], shards: &[usize]) -> Options {
    Options { chunks: Some(chunks.to_vec()), shards: Some(shards.to_vec()), ..Options::default() }
}

/// Ten numbers in one shard of five chunks: 80 bytes of numbers, and 84 of the index.
fn small(folder: &Path) -> (PathBuf, PathBuf, Vec<u8>) {
    let path = folder.join("x.zarr");
    save(&path, &(arange(10) + 1), &sharded(&[2], &[10]), &roomy()).unwrap();
    let shard = path.join("c/0");
    let bytes = std::fs::read(&shard).unwrap();
    assert_eq!(bytes.len(), 80 + 5 * 16 + 4);
    (path, shard, bytes)
}

#[test]
fn what_is_saved_in_any_shards_is_loaded_in_any_chunks() {
    let folder = tempfile::tempdir().unwrap();
    let x = arange(7 * 5 * 3).reshape(&[7, 5, 3]);
    let compressions = [Compression::None, Compression::Gzip { level: 1 }, Compression::Zstd { level: 3 }];
    let forms = [
        (vec![1, 1, 1], vec![2, 3, 1]),
        (vec![2, 3, 3], vec![4, 3, 3]),
        (vec![2, 2, 5], vec![8, 6, 5]),
        (vec![100, 1, 2], vec![100, 1, 2]),
    ];
    for (at, (chunks, shards)) in forms.into_iter().enumerate() {
        let compression = compressions[at % 3];
        let options = Options { compression, checksum: at % 2 == 0, ..sharded(&chunks, &shards) };
        for (count, tensor) in [x.clone(), x.rechunk(Chunks::Each(2))].iter().enumerate() {
            let path = folder.path().join(format!("{at}-{count}.zarr"));
            save(&path, tensor, &options, &roomy()).unwrap();
            let array = open(&path).unwrap();
            assert_eq!((array.chunks(), array.shards()), (&chunks[..], Some(&shards[..])));
            assert!(is_equal(&array.tensor(), tensor), "{options:?}");
            assert!(is_equal(&array.tensor().rechunk(Chunks::Each(2)), tensor), "{options:?}");
        }
    }
}

#[test]
fn chunks_and_shards_of_zeros_are_left_out() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.zarr");
    let x = arange(100).equal(57).astype(DType::F64);
    save(&path, &x, &sharded(&[5], &[20]), &roomy()).unwrap();
    assert_eq!(std::fs::read_dir(path.join("c")).unwrap().count(), 1);
    let size = std::fs::metadata(path.join("c/2")).unwrap().len();
    assert_eq!(size, 5 * 8 + 4 * 16 + 4, "one chunk and the index of four");
    assert!(is_equal(&load(&path), &x));
    save(folder.path().join("none"), &zeros(&[0, 3]), &sharded(&[1, 1], &[2, 2]), &roomy()).unwrap();
    assert_eq!(load(folder.path().join("none")).shape().unwrap(), [0, 3]);
}

#[test]
fn shards_of_zarr_python_are_read() {
    let folder = crate::folder().join("tests/golden/zarr");
    let x = arange(35).reshape(&[5, 7]).astype(DType::F64) / 4.0;
    assert!(is_equal(&load(folder.join("sharded_zstd")), &x));
    // The index is at the start, in the other order of bytes; one chunk was written, the fill value is NaN.
    let partial = load(folder.join("sharded_start"));
    assert_eq!(partial.get(&index![2..4]).to_vec::<f32>().unwrap(), [5.0, 6.0]);
    assert_eq!(partial.isnan().sum(..).item().unwrap().to_f64(), 7.0);
}

#[test]
fn a_task_reads_its_own_chunks_of_a_shard_only() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.zarr");
    // One shard of 8 MB, of which a task reads half.
    let options = Options { checksum: true, ..sharded(&[100_000], &[1_000_000]) };
    save(&path, &arange(1_000_000), &options, &roomy()).unwrap();
    let shard = path.join("c/0");
    let mut bytes = std::fs::read(&shard).unwrap();
    bytes[7 * 800_004] ^= 1;
    std::fs::write(&shard, bytes).unwrap();
    let x = load(&path);
    let first = x.get(&index![..500_000]).sum(..).fetch::<i64>().unwrap();
    assert_eq!(first.first(), Some(&(500_000 * 499_999 / 2)));
    assert_eq!(x.get(&index![500_000..]).sum(..).item().unwrap_err().class(), "DataCorrupt");
}

#[test]
fn damaged_shards_are_refused_before_memory_is_taken() {
    let folder = tempfile::tempdir().unwrap();
    let (path, shard, bytes) = small(folder.path());
    let refusal = |bytes: &[u8]| {
        std::fs::write(&shard, bytes).unwrap();
        let error = load(&path).sum(..).item().unwrap_err();
        assert_eq!(error.class(), "DataCorrupt", "{error}");
        error.to_string()
    };
    assert!(refusal(&bytes[..bytes.len() - 1]).contains("checksum"));
    assert!(refusal(&[]).contains("a shard of 0 bytes, its index alone has 84"));
    assert!(refusal(&[7; 83]).contains("a shard of 83 bytes"));
    let mut flipped = bytes.clone();
    flipped[85] ^= 1;
    assert!(refusal(&flipped).contains("checksum"));
    std::fs::remove_file(&shard).unwrap();
    assert_eq!(load(&path).sum(..).item().unwrap().to_f64(), 0.0, "a shard that is not there");
}

#[test]
fn indexes_that_lie_are_refused_before_memory_is_taken() {
    let folder = tempfile::tempdir().unwrap();
    let (path, shard, bytes) = small(folder.path());
    let metadata = path.join("zarr.json");
    // Without its checksum, an index can say anything.
    let text = std::fs::read_to_string(&metadata).unwrap();
    std::fs::write(&metadata, text.replace(",{\"name\":\"crc32c\"}", "")).unwrap();
    let refusal = |entries: &[(usize, u64, u64)]| {
        let mut bytes = bytes[..bytes.len() - 4].to_vec();
        for (number, start, len) in entries {
            let at = 80 + number * 16;
            bytes[at..at + 8].copy_from_slice(&start.to_le_bytes());
            bytes[at + 8..at + 16].copy_from_slice(&len.to_le_bytes());
        }
        std::fs::write(&shard, bytes).unwrap();
        load(&path).sum(..).item().map_err(|error| {
            assert_eq!(error.class(), "DataCorrupt", "{error}");
            error.to_string()
        })
    };
    assert_eq!(refusal(&[]).unwrap().to_f64(), 55.0);
    let text = |entries: &[(usize, u64, u64)]| refusal(entries).unwrap_err();
    assert!(text(&[(0, 1 << 40, 16)]).contains("a chunk of 16 bytes from 1099511627776 on"));
    assert!(text(&[(1, 0, 1 << 60)]).contains("in a shard of 160"));
    assert!(text(&[(1, u64::MAX, 16)]).contains("in a shard of 160"));
    assert!(text(&[(1, 16, u64::MAX)]).contains("in a shard of 160"));
    assert!(text(&[(4, 70, 16)]).contains("in a shard of 160"), "on the index");
    assert!(text(&[(4, 56, 16)]).contains("two chunks share the bytes from"));
    assert!(text(&[(4, 64, 8)]).contains("a chunk of 8 bytes instead of 16"));
    assert!(text(&[(0, 0, 17), (1, u64::MAX, u64::MAX)]).contains("more than 16 bytes"));
    assert_eq!(refusal(&[(0, u64::MAX, u64::MAX)]).unwrap().to_f64(), 52.0, "a chunk that is not there");
}

#[test]
fn crafted_metadata_of_shards_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let (path, ..) = small(folder.path());
    let file = path.join("zarr.json");
    let text = std::fs::read_to_string(&file).unwrap();
    let refused = |from: &str, to: &str| {
        assert!(text.contains(from), "{text}");
        std::fs::write(&file, text.replace(from, to)).unwrap();
        open(&path).unwrap_err()
    };
    let shard = "\"chunk_shape\":[10]";
    assert_eq!(refused(shard, "\"chunk_shape\":[9]").class(), "DataCorrupt");
    assert_eq!(refused(shard, "\"chunk_shape\":[10,10]").class(), "DataCorrupt");
    assert_eq!(refused("\"chunk_shape\":[2]", "\"chunk_shape\":[0]").class(), "DataCorrupt");
    assert_eq!(refused("\"index_location\":\"end\"", "\"index_location\":\"middle\"").class(), "DataCorrupt");
    let unsupported = |from: &str, to: &str| {
        let error = refused(from, to);
        assert!(matches!(error.cause(), GraphError::Unsupported { .. }), "{error}");
        error.to_string()
    };
    assert!(
        unsupported(shard, "\"chunk_shape\":[18446744073709551614]").contains("more than 1048576 chunks")
    );
    assert!(unsupported("\"crc32c\"", "\"gzip\"").contains("of the index of a shard"));
    let inner = "\"codecs\":[{\"configuration\":{\"endian\":\"little\"},\"name\":\"bytes\"}]";
    let twice = unsupported(inner, "\"codecs\":[{\"name\":\"sharding_indexed\"}]");
    assert!(twice.contains("sharding_indexed in the first place"), "{twice}");
}

#[test]
fn shards_that_do_not_fit_are_refused_when_they_are_written() {
    let folder = tempfile::tempdir().unwrap();
    let class = |options: &Options| {
        save(folder.path().join("x"), &arange(10), options, &roomy()).unwrap_err().class()
    };
    assert_eq!(class(&sharded(&[2], &[5])), "ValueError");
    assert_eq!(class(&sharded(&[2], &[0])), "ValueError");
    assert_eq!(class(&sharded(&[2], &[4, 4])), "ValueError");
    assert_eq!(class(&sharded(&[1], &[1 << 30])), "ValueError");
    assert_eq!(class(&Options { chunks: None, ..sharded(&[2], &[4]) }), "ValueError");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn an_array_larger_than_the_memory_is_written_and_read_in_shards() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.zarr");
    // 64 MB in a memory of 48.
    let limited = LocalExecutor::sized(2, 48 << 20);
    let x = arange(8_000_000);
    save(&path, &x, &sharded(&[10_000], &[200_000]), &limited).unwrap();
    assert_eq!(std::fs::read_dir(path.join("c")).unwrap().count(), 40);
    let sum = load(&path).sum(..).fetch_on::<i64>(&limited).unwrap();
    assert_eq!(sum.first(), Some(&(8_000_000 * 7_999_999 / 2)));
}
