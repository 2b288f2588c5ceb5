//! Files of arrays: saved arrays are loaded in little memory; damaged files are refused before memory is
//! allocated.

use std::path::PathBuf;
use tharsis_graph::Error as GraphError;
use tharsis_kernels::Bool;
use tharsis_numeric::npy::{load, open, save};
use tharsis_numeric::random::default_rng;
use tharsis_numeric::{Chunks, Error, LocalExecutor, Tensor, arange, execute};

fn roomy() -> LocalExecutor {
    LocalExecutor::sized(2, 1 << 28)
}

struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Folder {
        Folder(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// A file of version 1 with this header and these bytes behind it.
    fn file(&self, header: &str, data: &[u8]) -> PathBuf {
        let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
        bytes.extend((header.len() as u16).to_le_bytes());
        bytes.extend(header.as_bytes());
        bytes.extend(data);
        self.raw(&bytes)
    }

    fn raw(&self, bytes: &[u8]) -> PathBuf {
        let path = self.path("made.npy");
        std::fs::write(&path, bytes).unwrap();
        path
    }

    fn refusal(&self, header: &str, data: &[u8]) -> Error {
        open(self.file(header, data)).unwrap_err()
    }
}

fn header(descr: &str, fortran: &str, shape: &str) -> String {
    format!("{{'descr': '{descr}', 'fortran_order': {fortran}, 'shape': {shape}, }}")
}

#[test]
fn what_is_saved_in_any_chunks_is_loaded_in_any_chunks() {
    let folder = Folder::new();
    let path = folder.path("x.npy");
    let x = arange(7 * 5 * 3).reshape(&[7, 5, 3]);
    for chunk in [1, 2, 3, 100] {
        let cut = x.rechunk(Chunks::Each(chunk));
        for tensor in [&cut, &cut.t(), &cut.sum(..), &cut.rechunk(Chunks::Auto)] {
            save(&path, tensor, &roomy()).unwrap();
            let loaded = load(&path);
            assert_eq!(
                (loaded.shape().unwrap(), loaded.dtype().unwrap()),
                (tensor.shape().unwrap(), tensor.dtype().unwrap())
            );
            let again = loaded.rechunk(Chunks::PerAxis(vec![2; loaded.ndim().unwrap()]));
            assert_eq!(again.fetch::<i64>().unwrap(), tensor.fetch::<i64>().unwrap(), "chunks of {chunk}");
        }
    }
    assert_eq!(std::fs::read_dir(folder.0.path()).unwrap().count(), 1, "no partial file is left");
}

#[test]
fn empty_arrays_have_files_too() {
    let folder = Folder::new();
    let path = folder.path("x.npy");
    let x = tharsis_numeric::zeros(&[3, 0, 2]);
    save(&path, &x, &roomy()).unwrap();
    assert_eq!(load(&path).fetch::<f64>().unwrap().shape(), [3, 0, 2]);
}

#[test]
fn files_larger_than_the_memory_are_read_and_written_within_it() {
    const MEMORY_BYTES: u64 = 2 << 20;
    let folder = Folder::new();
    let path = folder.path("x.npy");
    let x = default_rng(3).random(&[2000, 1000]);
    let small = LocalExecutor::sized(2, MEMORY_BYTES);
    save(&path, &x, &small).unwrap();
    let loaded = load(&path);
    let compared = loaded.equal(&x).all(..);
    let (found, metrics) = execute(&[&compared], &small).unwrap();
    assert_eq!(found[0].fetch::<Bool>().unwrap().first(), Some(&Bool(1)));
    assert!(metrics.peak_bytes <= metrics.bound_bytes && metrics.bound_bytes <= MEMORY_BYTES);
}

#[test]
fn a_failure_leaves_no_file() {
    let folder = Folder::new();
    let path = folder.path("x.npy");
    let indefinite: Tensor = tharsis_numeric::zeros(&[4, 4]) - 1.0;
    assert_eq!(save(&path, &indefinite.cholesky(), &roomy()).unwrap_err().class(), "LinAlgError");
    assert_eq!(std::fs::read_dir(folder.0.path()).unwrap().count(), 0);
    let nowhere = folder.path("none").join("x.npy");
    assert_eq!(save(&nowhere, &arange(3), &roomy()).unwrap_err().class(), "OSError");
}

#[test]
fn bytes_in_reverse_and_columns_first_are_read_as_numpy_does() {
    let folder = Folder::new();
    let data: Vec<u8> = (0..6).flat_map(|i| f64::from(i).to_be_bytes()).collect();
    let path = folder.file(&header(">f8", "True", "(2, 3)"), &data);
    let x = load(&path);
    assert_eq!(x.shape().unwrap(), [2, 3]);
    assert_eq!(x.fetch::<f64>().unwrap().into_iter().collect::<Vec<_>>(), [0.0, 2.0, 4.0, 1.0, 3.0, 5.0]);
    let path = folder.file(&header("|b1", "False", "(3,)"), &[0, 1, 7]);
    assert_eq!(load(&path).sum(..).item().unwrap().to_f64(), 2.0);
}

#[test]
fn extra_bytes_behind_the_elements_are_told() {
    let folder = Folder::new();
    let path = folder.file(&header("|u1", "False", "(2,)"), &[1, 2, 3, 4, 5]);
    let file = open(&path).unwrap();
    assert_eq!(file.extra_bytes(), 3);
    let request = serde_json::json!({"in": {"x": {"npy": "made.npy"}}, "out": ["x"]});
    let reply = tharsis_numeric::protocol::answer(&request, folder.0.path());
    assert_eq!(reply["out"]["x"]["arr"]["lit"], serde_json::json!([1, 2]));
    assert!(reply["warnings"][0].as_str().unwrap().contains("3 bytes"), "{reply}");
    assert_eq!(file.tensor().sum(..).item().unwrap().to_f64(), 3.0);
}

#[test]
fn damaged_files_are_refused_before_memory_is_taken() {
    let folder = Folder::new();
    let class = |error: Error| error.class().to_owned();
    let of = |bytes: &[u8]| open(folder.raw(bytes)).unwrap_err().class().to_owned();
    assert_eq!(of(b""), "DataCorrupt");
    assert_eq!(of(b"PK\x03\x04 not an array"), "DataCorrupt");
    assert_eq!(of(b"\x93NUMPY\x01\x00\xff"), "DataCorrupt");
    assert_eq!(class(folder.refusal("__import__('os').system('true')", &[])), "DataCorrupt");
    assert_eq!(class(folder.refusal(&header("<f8", "False", "(-1,)"), &[])), "DataCorrupt");
    assert_eq!(class(folder.refusal(&header("<f8", "Maybe", "(1,)"), &[0; 8])), "DataCorrupt");
    assert_eq!(class(folder.refusal(&header("<f99", "False", "(1,)"), &[0; 8])), "DataCorrupt");
    assert_eq!(class(folder.refusal(&header("|O", "False", "(1,)"), b"\x80\x04]q.")), "ObjectArray");
    let huge = folder.refusal(&header("<f8", "False", "(137438953472,)"), &[0; 10]);
    assert_eq!(huge.class(), "DataCorrupt");
    let overflow = folder.refusal(&header("<f8", "False", "(4294967296, 4294967296, 4)"), &[0; 10]);
    assert_eq!(overflow.class(), "DataCorrupt");
    let short = folder.refusal(&header("<f8", "False", "(3,)"), &[0; 10]).to_string();
    assert!(short.contains("needs 24 bytes") && short.contains("has 10 bytes"), "{short}");
    assert_eq!(open(folder.path("none")).unwrap_err().class(), "OSError");
}

#[test]
fn forms_that_exist_elsewhere_are_unsupported_and_named() {
    let folder = Folder::new();
    let named = |error: Error, part: &str| {
        assert!(matches!(error.cause(), GraphError::Unsupported { .. }), "{error:?}");
        assert_eq!(error.class(), "ValueError");
        assert!(error.to_string().contains(part), "{error}");
    };
    named(open(folder.raw(b"\x93NUMPY\x09\x00\x10\x00")).unwrap_err(), "version (9, 0)");
    for descr in ["<U3", "|S5", "<M8[ns]", "<f16", "|V16"] {
        named(folder.refusal(&header(descr, "False", "(1,)"), &[0; 80]), descr);
    }
    let fields = "{'descr': [('a', '<f8'), ('b', '<i4')], 'fortran_order': False, 'shape': (1,), }";
    named(folder.refusal(fields, &[0; 12]), "[('a', '<f8'), ('b', '<i4')]");
}

#[test]
fn a_header_of_ten_mebibytes_is_not_read() {
    let folder = Folder::new();
    let length = 10u32 << 20;
    let mut bytes = b"\x93NUMPY\x02\x00".to_vec();
    bytes.extend(length.to_le_bytes());
    bytes.resize(bytes.len() + length as usize, b' ');
    let error = open(folder.raw(&bytes)).unwrap_err();
    assert_eq!(error.class(), "DataCorrupt");
    assert!(error.to_string().contains("the limit is 65536"), "{error}");
}

#[test]
fn a_file_that_becomes_shorter_fails_the_program() {
    let folder = Folder::new();
    let path = folder.file(&header("<f8", "False", "(100,)"), &[0; 800]);
    let x = load(&path);
    std::fs::write(&path, b"gone").unwrap();
    let error = x.fetch::<f64>().unwrap_err();
    assert!(matches!(error.cause(), GraphError::Corrupt { .. }), "{error}");
}
