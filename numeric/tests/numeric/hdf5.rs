//! Datasets of HDF5 files that h5py wrote are read; damaged files are refused.

use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use tharsis_graph::Error as GraphError;
use tharsis_numeric::hdf5::{load, open};
use tharsis_numeric::{Chunks, DType, LocalExecutor, Tensor, arange, execute, index};

/// The files in the oldest and in the newest form of the format.
fn files() -> [PathBuf; 2] {
    let folder = crate::folder().join("tests/golden/hdf5");
    [folder.join("earliest.h5"), folder.join("latest.h5")]
}

fn is_equal(a: &Tensor, b: &Tensor) -> bool {
    a.dtype().unwrap() == b.dtype().unwrap() && a.array_equal(b, true).item().unwrap().is_true()
}

#[test]
fn datasets_of_any_layout_are_read() {
    let x = arange(35).reshape(&[5, 7]).astype(DType::F64) / 4.0;
    for file in files() {
        assert!(is_equal(&load(&file, "contiguous"), &x));
        assert!(is_equal(&load(&file, "/contiguous").rechunk(Chunks::Each(2)), &x));
        let part = index![1..4, 2..];
        assert!(is_equal(&load(&file, "contiguous").get(&part), &x.get(&part)));
        // Numbers in the other order of bytes, deflated, shuffled and with checksums.
        assert!(is_equal(&load(&file, "group/chunked"), &x.astype(DType::F32)));
        // Chunks that were never written have the fill value.
        assert_eq!(load(&file, "partial").to_vec::<i16>().unwrap(), [-1, -1, 5, 6, -1, -1, -1, -1, -1]);
        assert!(is_equal(&load(&file, "grows"), &arange(20).astype(DType::U32)));
        assert_eq!(load(&file, "scalar").to_vec::<u8>().unwrap(), [7]);
        assert_eq!(load(&file, "empty").shape().unwrap(), [3, 0]);
        assert!(load(&file, "empty").to_vec::<i32>().unwrap().is_empty());
    }
}

#[test]
fn datasets_are_inputs_of_programs() {
    let folder = crate::folder().join("tests/golden/hdf5");
    let answer = |input: serde_json::Value| {
        let request = serde_json::json!({"in": {"x": input}, "out": ["x"]});
        tharsis_numeric::protocol::answer(&request, &folder)
    };
    let reply = answer(serde_json::json!({"hdf5": "latest.h5", "dataset": "partial"}));
    let expected = serde_json::json!([-1, -1, 5, 6, -1, -1, -1, -1, -1]);
    assert_eq!(reply["out"]["x"]["arr"]["lit"], expected, "{reply}");
    assert_eq!(answer(serde_json::json!({"hdf5": "latest.h5"}))["err"]["class"], "ValueError");
}

#[test]
fn a_dataset_larger_than_the_memory_is_read() {
    // 64 MB in a memory of 60 MiB, which is less.
    let limited = LocalExecutor::sized(2, 60 << 20);
    for file in files() {
        let dataset = open(&file, "wide").unwrap();
        assert_eq!((dataset.shape(), dataset.chunks()), (&[8_000_000][..], Some(&[100_000][..])));
        let (found, metrics) = execute(&[&dataset.tensor().sum(..)], &limited).unwrap();
        assert_eq!(found[0].item().unwrap().to_f64(), 24_100_000.0);
        assert!(metrics.peak_bytes <= metrics.bound_bytes && metrics.bound_bytes <= 60 << 20);
    }
}

#[test]
fn types_and_filters_that_are_not_read_are_named() {
    for file in files() {
        for (name, part) in [
            ("bools", "enumeration"),
            ("complex", "compound"),
            ("text", "text"),
            ("half", "float of 2 bytes"),
        ] {
            let error = open(&file, name).unwrap_err();
            assert!(matches!(error.cause(), GraphError::Unsupported { .. }), "{error}");
            assert!(error.to_string().contains(part), "{error}");
        }
        let filtered = load(&file, "lzf").sum(..).item().unwrap_err();
        assert!(matches!(filtered.cause(), GraphError::Unsupported { .. }), "{filtered}");
    }
}

#[test]
fn numbers_whose_bits_lie_elsewhere_are_refused() {
    let file = crate::folder().join("tests/golden/hdf5/types.h5");
    assert_eq!(load(&file, "int").to_vec::<i32>().unwrap(), [0, 1, 2]);
    assert_eq!(load(&file, "float").to_vec::<f64>().unwrap(), [0.0, 1.0, 2.0]);
    for name in [
        "int of 24 bits",
        "int of 24 bits behind 4",
        "uint of 63 bits",
        "float of other fields",
        "float of another bias",
        "float of another order",
        "float without the implied bit",
    ] {
        let error = open(&file, name).unwrap_err();
        assert!(matches!(error.cause(), GraphError::Unsupported { .. }), "{name}: {error}");
    }
}

#[test]
fn what_is_not_there_is_an_error_of_the_system() {
    for file in files() {
        assert_eq!(open(&file, "none").unwrap_err().class(), "OSError");
        assert_eq!(open(&file, "group/none").unwrap_err().class(), "OSError");
        assert_eq!(open(&file, "none/chunked").unwrap_err().class(), "OSError");
        assert!(open(&file, "group").is_err() && open(&file, "").is_err());
        assert!(open(&file, "elsewhere").is_err(), "links lead to no other files");
    }
    assert_eq!(open("no such file", "x").unwrap_err().class(), "OSError");
    let folder = tempfile::tempdir().unwrap();
    for bytes in [&b""[..], b"\x93NUMPY", b"\x89HDF\r\n\x1a\n"] {
        let path = folder.path().join("x.h5");
        std::fs::write(&path, bytes).unwrap();
        assert_eq!(open(&path, "x").unwrap_err().class(), "DataCorrupt");
    }
}

/// Variable of the process that reads damaged files.
const ALONE: &str = "THARSIS_TEST_ALONE";

/// In a process of its own: it counts the panics of all threads, and other tests may panic on purpose.
#[test]
fn damaged_files_are_errors_and_never_panics() {
    if std::env::var_os(ALONE).is_some() {
        return read_damaged_files();
    }
    let test = "hdf5::damaged_files_are_errors_and_never_panics";
    let mut program = Command::new(std::env::current_exe().unwrap());
    let output = program.args(["--exact", test, "--nocapture"]).env(ALONE, "1").output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && text.contains("1 passed"), "{text}");
}

fn read_damaged_files() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.h5");
    let limited = LocalExecutor::sized(1, 16 << 20);
    // One of a task becomes an error.
    static PANICS: AtomicUsize = AtomicUsize::new(0);
    let told = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        PANICS.fetch_add(1, Ordering::Relaxed);
        told(info);
    }));
    for file in files() {
        let bytes = std::fs::read(&file).unwrap();
        let read = |bytes: &[u8]| {
            std::fs::write(&path, bytes).unwrap();
            let names = ["contiguous", "group/chunked", "partial", "grows"];
            let is_read = |name: &&str| load(&path, name).count_nonzero(..).fetch_on::<i64>(&limited).is_ok();
            names.iter().filter(|name| is_read(name)).count()
        };
        assert_eq!(read(&bytes), 4);
        let cut: usize = (0..bytes.len()).step_by(701).map(|len| read(&bytes[..len])).sum();
        let mut changed = 0;
        for at in (0..bytes.len()).step_by(41) {
            let mut bytes = bytes.clone();
            bytes[at] ^= if at % 2 == 0 { 0xFF } else { 0x01 };
            changed += read(&bytes);
        }
        assert!(0 < changed && cut < bytes.len(), "{cut} {changed}");
    }
    assert_eq!(PANICS.load(Ordering::Relaxed), 0);
}
