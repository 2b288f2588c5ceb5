//! Archives of arrays: those of NumPy are read; damaged or malicious ones are refused.

use flate2::Compression;
use flate2::write::DeflateEncoder;
use rawzip::{CompressionMethod, ZipArchiveWriter};
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use tharsis_numeric::npy::{RATIO_BYTES_MIN, load_npz, open_npz};
use tharsis_numeric::{Chunks, LocalExecutor};

/// A `.npy` file whose header declares `len` bytes of elements, followed by `data`.
fn npy(len: usize, data: &[u8]) -> Vec<u8> {
    let text = format!("{{'descr': '|u1', 'fortran_order': False, 'shape': ({len},), }}\n");
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend((text.len() as u16).to_le_bytes());
    bytes.extend(text.as_bytes());
    bytes.extend(data);
    bytes
}

fn archive(path: &Path, members: &[(&str, CompressionMethod, &[u8])]) {
    let mut archive = ZipArchiveWriter::new(File::create(path).unwrap());
    for (name, method, bytes) in members {
        let name = rawzip::path::EntryPath::verbatim(name.as_bytes());
        let (mut entry, config) = archive.new_file(name).compression_method(*method).start().unwrap();
        if *method == CompressionMethod::STORE {
            let mut writer = config.wrap(&mut entry);
            writer.write_all(bytes).unwrap();
            let (_, descriptor) = writer.finish().unwrap();
            entry.finish(descriptor).unwrap();
        } else {
            let mut writer = config.wrap(DeflateEncoder::new(&mut entry, Compression::default()));
            writer.write_all(bytes).unwrap();
            let (encoder, descriptor) = writer.finish().unwrap();
            encoder.finish().unwrap();
            entry.finish(descriptor).unwrap();
        }
    }
    archive.finish().unwrap();
}

struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Folder {
        Folder(tempfile::tempdir().unwrap())
    }

    fn made(&self, members: &[(&str, CompressionMethod, &[u8])]) -> PathBuf {
        let path = self.0.path().join("made.npz");
        archive(&path, members);
        path
    }

    fn refusal(&self, members: &[(&str, CompressionMethod, &[u8])]) -> (String, String) {
        let error = open_npz(&self.made(members)).unwrap_err();
        (error.class().to_owned(), error.to_string())
    }
}

#[test]
fn archives_of_numpy_are_read_in_any_chunks() {
    let golden = crate::folder().join("tests/golden");
    for name in ["stored.npz", "deflated.npz"] {
        let tensors = load_npz(&golden.join(name)).unwrap();
        assert_eq!(tensors.keys().collect::<Vec<_>>(), ["columns", "empty", "scalar", "swapped", "x"]);
        let expected: Vec<f64> = (0..105).map(|i| f64::from(i) / 8.0).collect();
        for chunk in [1, 2, 3, 100] {
            let x = tensors["x"].rechunk(Chunks::Each(chunk)).fetch::<f64>().unwrap();
            assert_eq!(
                (x.shape(), x.iter().copied().collect()),
                (&[7, 5, 3][..], expected.clone()),
                "{name}"
            );
        }
        let columns = tensors["columns"].fetch::<i32>().unwrap();
        assert_eq!((columns[[1, 2]], columns[[2, 0]]), (6, 8));
        assert_eq!(tensors["swapped"].fetch::<i16>().unwrap().iter().sum::<i16>(), 10);
        assert_eq!(tensors["scalar"].item().unwrap().to_f64(), 1.5);
        assert_eq!(tensors["empty"].shape().unwrap(), [0, 4]);
    }
}

#[test]
fn a_compressed_array_larger_than_the_memory_is_read_within_it() {
    const LEN: usize = 2 << 20;
    const MEMORY_BYTES: u64 = 1 << 20;
    let data: Vec<u8> = (0..LEN as u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    let folder = Folder::new();
    let path = folder.made(&[("x.npy", CompressionMethod::DEFLATE, &npy(LEN, &data))]);
    let sum = load_npz(&path).unwrap()["x"].sum(..);
    let found = sum.fetch_on::<u64>(&LocalExecutor::sized(2, MEMORY_BYTES)).unwrap();
    assert_eq!(found.first(), Some(&data.iter().map(|&byte| u64::from(byte)).sum()));
}

#[test]
fn names_that_lead_out_are_refused() {
    let folder = Folder::new();
    let array = npy(1, &[7]);
    for name in ["../../x.npy", "/etc/x.npy", "a/../../x.npy", "..\\x.npy"] {
        let (class, text) = folder.refusal(&[(name, CompressionMethod::STORE, &array)]);
        assert!(class == "PathTraversal" && text.contains("made.npz"), "{name}: {class} {text}");
    }
    assert!(
        open_npz(&folder.made(&[("a/x.npy", CompressionMethod::STORE, &array)])).unwrap().contains_key("a/x")
    );
}

#[test]
fn what_would_inflate_beyond_measure_is_refused_by_what_it_declares() {
    let len = RATIO_BYTES_MIN as usize + 1;
    let folder = Folder::new();
    let (class, text) = folder.refusal(&[("bomb.npy", CompressionMethod::DEFLATE, &npy(len, &vec![0; len]))]);
    assert!(class == "DataCorrupt" && text.contains("bomb: ") && text.contains("200 times"), "{text}");
    // Small ones may be all zeros.
    let zeros = npy(1 << 20, &vec![0; 1 << 20]);
    let path = folder.made(&[("zeros.npy", CompressionMethod::DEFLATE, &zeros)]);
    assert_eq!(load_npz(&path).unwrap()["zeros"].sum(..).item().unwrap().to_f64(), 0.0);
}

#[test]
fn members_are_checked_as_files_are() {
    let folder = Folder::new();
    for method in [CompressionMethod::STORE, CompressionMethod::DEFLATE] {
        let (class, text) = folder.refusal(&[("x.npy", method, &npy(100, &[0; 10]))]);
        assert!(class == "DataCorrupt" && text.contains("needs 100 bytes"), "{text}");
        let objects =
            b"\x93NUMPY\x01\x00\x3a\x00{'descr': '|O', 'fortran_order': False, 'shape': (3,), }   \n";
        assert_eq!(folder.refusal(&[("x.npy", method, objects)]).0, "ObjectArray");
        assert_eq!(folder.refusal(&[("x.npy", method, b"none")]).0, "DataCorrupt");
        let array = npy(2, &[1, 2, 3]);
        let path = folder.made(&[("x.npy", method, &array)]);
        assert_eq!(open_npz(&path).unwrap()["x"].extra_bytes(), 1);
        let (class, text) = folder.refusal(&[("x.npy", method, &array), ("x.npy", method, &array)]);
        assert!(class == "DataCorrupt" && text.contains("two arrays are called x"), "{text}");
    }
}

#[test]
fn no_damage_of_an_archive_gives_other_numbers_from_compressed_members() {
    let folder = Folder::new();
    let data: Vec<u8> = (0..200).collect();
    let path = folder.made(&[("x.npy", CompressionMethod::DEFLATE, &npy(200, &data))]);
    let whole = std::fs::read(&path).unwrap();
    let small = LocalExecutor::sized(1, 1 << 20);
    let mut refused = 0;
    for at in 0..whole.len() {
        let mut damaged = whole.clone();
        damaged[at] ^= 0x10;
        std::fs::write(&path, &damaged).unwrap();
        // The name may differ; the numbers may not.
        let read = load_npz(&path).and_then(|tensors| {
            tensors.values().map(|x| x.fetch_on::<u8>(&small)).collect::<Result<Vec<_>, _>>()
        });
        match read {
            Ok(arrays) => assert!(arrays.iter().all(|x| x.iter().eq(&data)), "byte {at}"),
            Err(_) => refused += 1,
        }
        std::fs::write(&path, &whole[..at]).unwrap();
        assert!(load_npz(&path).is_err(), "cut at {at}");
    }
    assert!(whole.len() / 2 < refused, "{refused} of {} flips are noticed", whole.len());
}

#[test]
fn what_is_no_archive_is_told() {
    let folder = Folder::new();
    let path = folder.0.path().join("made.npz");
    for bytes in [&b""[..], b"PK\x03\x04", &[0; 4096]] {
        std::fs::write(&path, bytes).unwrap();
        assert_eq!(open_npz(&path).unwrap_err().class(), "DataCorrupt");
    }
    assert_eq!(open_npz(&folder.0.path().join("none")).unwrap_err().class(), "OSError");
}
