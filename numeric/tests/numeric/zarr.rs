//! Zarr arrays: what is written is read, also what other programs wrote; damaged arrays are refused.

use std::path::{Path, PathBuf};
use tharsis_graph::Error as GraphError;
use tharsis_numeric::zarr::{Compression, Options, load, open, save};
use tharsis_numeric::{Chunks, DType, LocalExecutor, Tensor, arange, execute};

fn roomy() -> LocalExecutor {
    LocalExecutor::sized(2, 1 << 28)
}

fn written(folder: &Path, tensor: &Tensor, options: &Options) -> PathBuf {
    let path = folder.join("x.zarr");
    let _none_before = std::fs::remove_dir_all(&path);
    save(&path, tensor, options, &roomy()).unwrap();
    path
}

fn is_equal(a: &Tensor, b: &Tensor) -> bool {
    a.dtype().unwrap() == b.dtype().unwrap() && a.array_equal(b, true).item().unwrap().is_true()
}

#[test]
fn what_is_saved_in_any_chunks_is_loaded_in_any_chunks() {
    let folder = tempfile::tempdir().unwrap();
    let x = arange(7 * 5 * 3).reshape(&[7, 5, 3]);
    let compressions = [Compression::None, Compression::Gzip { level: 1 }, Compression::Zstd { level: 3 }];
    for (at, chunks) in [vec![1, 1, 1], vec![2, 3, 3], vec![7, 2, 5], vec![100, 1, 2]].into_iter().enumerate()
    {
        let options = Options {
            chunks: Some(chunks),
            compression: compressions[at % 3],
            checksum: at % 2 == 0,
            ..Options::default()
        };
        for tensor in [&x, &x.rechunk(Chunks::Each(2)), &x.rechunk(Chunks::Each(3))] {
            let loaded = load(written(folder.path(), tensor, &options));
            assert!(is_equal(&loaded, tensor), "{options:?}");
            assert!(is_equal(&loaded.rechunk(Chunks::Each(2)), tensor), "{options:?}");
        }
    }
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "no partial folder is left");
}

#[test]
fn arrays_are_inputs_of_programs() {
    let folder = tempfile::tempdir().unwrap();
    written(folder.path(), &arange(6).reshape(&[2, 3]), &Options::default());
    let answer = |input: serde_json::Value| {
        let request = serde_json::json!({"in": {"x": input}, "prog": [["r", "np.sum", [{"$": "x"}], {"axis": 0}]],
            "out": ["r"]});
        tharsis_numeric::protocol::answer(&request, folder.path())
    };
    let reply = answer(serde_json::json!({"zarr": "x.zarr"}));
    assert_eq!(reply["out"]["r"]["arr"]["lit"], serde_json::json!([3, 5, 7]), "{reply}");
    for absent in ["none.zarr", "s3://bucket/x.zarr"] {
        let reply = answer(serde_json::json!({"zarr": absent}));
        assert_eq!(reply["err"]["class"], "OSError", "{reply}");
    }
}

#[test]
fn every_dtype_and_arrays_without_axes_or_elements_come_back() {
    let folder = tempfile::tempdir().unwrap();
    for dtype in DType::ALL {
        let x = (arange(6).reshape(&[2, 3]) - 2).astype(dtype);
        assert!(is_equal(&load(written(folder.path(), &x, &Options::default())), &x), "{dtype}");
    }
    for x in [Tensor::number(7.5), tharsis_numeric::zeros(&[3, 0, 2])] {
        let loaded = load(written(folder.path(), &x, &Options::default()));
        assert_eq!(loaded.shape().unwrap(), x.shape().unwrap());
        assert!(is_equal(&loaded, &x));
    }
}

#[test]
fn chunks_that_nobody_asked_for_have_some_megabytes() {
    let folder = tempfile::tempdir().unwrap();
    let path = written(folder.path(), &tharsis_numeric::zeros(&[1 << 20]), &Options::default());
    assert_eq!(open(path).unwrap().chunks(), [1 << 19]);
}

#[test]
fn chunks_of_zeros_are_left_out() {
    let folder = tempfile::tempdir().unwrap();
    let x = arange(100).equal(57).astype(DType::F64);
    let options = Options { chunks: Some(vec![10]), ..Options::default() };
    let path = written(folder.path(), &x, &options);
    assert_eq!(std::fs::read_dir(path.join("c")).unwrap().count(), 1);
    assert!(is_equal(&load(&path), &x));
}

#[test]
fn an_array_larger_than_the_memory_is_written_and_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.zarr");
    // 64 MB in a memory of 60 MiB, which is less.
    let small = LocalExecutor::sized(2, 60 << 20);
    let x = arange(8_000_000);
    let options = Options { chunks: Some(vec![100_000]), ..Options::default() };
    save(&path, &x, &options, &small).unwrap();
    let sum = load(&path).sum(..).fetch_on::<i64>(&small).unwrap();
    assert_eq!(sum.first(), Some(&(8_000_000 * 7_999_999 / 2)));
}

#[test]
fn bytes_that_become_longer_by_a_compression_come_back() {
    let folder = tempfile::tempdir().unwrap();
    let x = tharsis_numeric::random::default_rng(1).integers(144, 256, &[1 << 20]).astype(DType::U8);
    for level in 0..=9 {
        for compression in [Compression::Gzip { level }, Compression::Zstd { level: level as i32 + 1 }] {
            let options = Options { chunks: Some(vec![1 << 20]), compression, ..Options::default() };
            assert!(is_equal(&load(written(folder.path(), &x, &options)), &x), "{compression:?}");
        }
    }
}

/// Variable with the array that a process of its own reads.
const MEASURED: &str = "THARSIS_TEST_MEASURED";

/// The memory of a process is nobody else's, and the peak of what was counted before would show nothing.
#[test]
fn a_process_takes_no_more_memory_than_its_bound_to_read_large_chunks() {
    if let Some(path) = std::env::var_os(MEASURED) {
        return read_measured(Path::new(&path));
    }
    let folder = tempfile::tempdir().unwrap();
    // 64 MiB in one chunk, of numbers that do not become shorter.
    let x = tharsis_numeric::random::default_rng(1).random(&[8 << 20]);
    for compression in [Compression::None, Compression::Gzip { level: 1 }, Compression::Zstd { level: 1 }] {
        let options =
            Options { chunks: Some(vec![8 << 20]), compression, checksum: true, ..Options::default() };
        let path = folder.path().join("x.zarr");
        save(&path, &x, &options, &LocalExecutor::sized(1, 1 << 30)).unwrap();
        let test = "zarr::a_process_takes_no_more_memory_than_its_bound_to_read_large_chunks";
        let mut program = std::process::Command::new(std::env::current_exe().unwrap());
        let output = program.args(["--exact", test, "--nocapture"]).env(MEASURED, &path).output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && text.contains("1 passed"), "{compression:?}: {text}");
        std::fs::remove_dir_all(&path).unwrap();
    }
}

fn read_measured(path: &Path) {
    /// Bytes for all that is no chunk: threads, the plan, pages of the program that were not used before.
    const BESIDE_BYTES: u64 = 8 << 20;
    let status = |line: &str| -> u64 {
        let text = std::fs::read_to_string("/proc/self/status").unwrap();
        let found = text.lines().find_map(|found| found.strip_prefix(line)).unwrap();
        1024 * found.trim_matches(|c: char| !c.is_ascii_digit()).parse::<u64>().unwrap()
    };
    let before = status("VmRSS:");
    let (sums, metrics) = execute(&[&load(path).sum(..)], &LocalExecutor::sized(1, 1 << 30)).unwrap();
    let sum = sums[0].item().unwrap().to_f64();
    assert!((4_190_000.0..4_199_000.0).contains(&sum), "{sum}");
    let taken = status("VmHWM:") - before;
    assert!(64 << 20 < taken, "the chunk was read: {taken}");
    assert!(
        taken <= metrics.bound_bytes + BESIDE_BYTES,
        "{taken} bytes by a bound of {}",
        metrics.bound_bytes
    );
}

#[test]
fn arrays_of_zarr_python_are_read() {
    let folder = crate::folder().join("tests/golden/zarr");
    let x = arange(35).reshape(&[5, 7]).astype(DType::F64) / 4.0;
    assert!(is_equal(&load(folder.join("zstd")), &x));
    assert!(is_equal(&load(folder.join("gzip_crc32c_big")), &x.astype(DType::F32)));
    // Only its first chunk was written; the fill value is NaN.
    let partial = load(folder.join("partial_v2_keys"));
    assert!(is_equal(&partial.isnan(), &arange(8).greater_equal(4)));
    let complex = load(folder.join("complex"));
    assert_eq!(complex.imag().to_vec::<f64>().unwrap(), [-1.0, 2.0, 0.5]);
}

#[test]
fn damaged_chunks_are_refused_when_they_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let x = arange(10);
    for compression in [Compression::None, Compression::Gzip { level: 5 }, Compression::Zstd { level: 3 }] {
        for checksum in [false, true] {
            let options = Options { chunks: Some(vec![5]), compression, checksum, ..Options::default() };
            let path = written(folder.path(), &x, &options);
            let chunk = path.join("c/1");
            let bytes = std::fs::read(&chunk).unwrap();
            let class = |bytes: &[u8]| {
                std::fs::write(&chunk, bytes).unwrap();
                load(&path).sum(..).item().unwrap_err().class()
            };
            assert_eq!(class(&bytes[..bytes.len() - 1]), "DataCorrupt", "{options:?}");
            assert_eq!(class(&[]), "DataCorrupt", "{options:?}");
            assert_eq!(class(&[bytes.as_slice(), &[0; 4096]].concat()), "DataCorrupt", "{options:?}");
        }
    }
}

#[test]
fn crafted_metadata_are_refused_before_memory_is_taken() {
    let folder = tempfile::tempdir().unwrap();
    let path = written(folder.path(), &arange(10), &Options::default());
    let file = path.join("zarr.json");
    let text = std::fs::read_to_string(&file).unwrap();
    let refused = |from: &str, to: &str| {
        assert!(text.contains(from), "{text}");
        std::fs::write(&file, text.replace(from, to)).unwrap();
        open(&path).unwrap_err()
    };
    let class = |from, to| refused(from, to).class();
    assert_eq!(class("\"shape\":[10]", "\"shape\":[-10]"), "DataCorrupt");
    assert_eq!(class("\"shape\":[10]", "\"shape\":[10,10]"), "DataCorrupt");
    assert_eq!(class("\"chunk_shape\":[10]", "\"chunk_shape\":[9000000000000]"), "DataCorrupt");
    assert_eq!(class("\"chunk_shape\":[10]", "\"chunk_shape\":[0]"), "DataCorrupt");
    assert_eq!(class("\"fill_value\":0", "\"fill_value\":1e400"), "DataCorrupt");
    assert!(matches!(refused("int64", "string").cause(), GraphError::Unsupported { .. }));
    assert!(matches!(refused("\"bytes\"", "\"transpose\"").cause(), GraphError::Unsupported { .. }));
    let huge = text.replace("\"shape\":[10]", "\"shape\":[9223372036854775807]");
    std::fs::write(&file, huge).unwrap();
    assert!(load(&path).sum(..).item().is_err());
    std::fs::write(&file, vec![b' '; 2 << 20]).unwrap();
    assert_eq!(open(&path).unwrap_err().class(), "DataCorrupt");
}

#[test]
fn nothing_is_visible_of_an_array_that_was_not_written_to_its_end() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.zarr");
    let wrong = arange(10).map_chunk(|_: ndarray::ArrayD<i64>| Err::<ndarray::ArrayD<i64>, _>("no"));
    assert_eq!(save(&path, &wrong, &Options::default(), &roomy()).unwrap_err().class(), "RuntimeError");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    save(&path, &arange(3), &Options::default(), &roomy()).unwrap();
    let again = save(&path, &arange(4), &Options::default(), &roomy()).unwrap_err();
    assert_eq!(again.class(), "OSError", "an array is not replaced");
    assert_eq!(load(&path).to_vec::<i64>().unwrap(), [0, 1, 2]);
    let options = Options { chunks: Some(vec![0]), ..Options::default() };
    assert_eq!(
        save(folder.path().join("y"), &arange(3), &options, &roomy()).unwrap_err().class(),
        "ValueError"
    );
}
