//! NumPy's `.npy` files, read with a grammar of their own: nothing in a header is evaluated.

use crate::error::{Blame, Error, Result};
use crate::tensor::Tensor;
use std::fs::File;
use std::io::{Read, Write};
use std::path::Path;
use tharsis_graph::{Error as GraphError, Executor};
use tharsis_kernels::{Buffer, Chunk, DType, Element, with_element};

/// The longest header that is read.
pub const HEADER_BYTES_MAX: usize = 64 << 10;
const MAGIC: &[u8; 6] = b"\x93NUMPY";

/// What a header says.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Header {
    dtype: DType,
    swapped: bool,
    fortran_order: bool,
    shape: Vec<usize>,
}

/// A tensor over the elements of a `.npy` file.
///
/// # Errors
/// `OSError` if the file cannot be read, `DataCorrupt` if it is not what it claims to be, `NotImplemented` for pickled
/// objects, which are never unpickled.
#[track_caller]
pub fn load(path: &Path) -> Result<Tensor> {
    Tensor::from_chunk(read(path).blame()?)
}

/// Computes a tensor and writes it as a `.npy` file, version 1, C order, little endian.
///
/// # Errors
/// As [`execute`](crate::execute), and `OSError` if the file cannot be written.
#[track_caller]
pub fn save(path: &Path, tensor: &Tensor, executor: &dyn Executor) -> Result<()> {
    if tensor.dtype() == DType::BF16 {
        return Err(Error::here(GraphError::Type("bfloat16 has no .npy form".to_owned())));
    }
    let chunk = tensor.to_chunk(executor)?;
    write(path, &chunk).map_err(|error| Error::here(file_error(path, &error)))
}

fn file_error(path: &Path, error: &std::io::Error) -> GraphError {
    GraphError::File { path: path.display().to_string(), reason: error.to_string() }
}

fn read(path: &Path) -> std::result::Result<Chunk, GraphError> {
    let corrupt = |reason: String| GraphError::Corrupt { what: path.display().to_string(), reason };
    let failed = |error: std::io::Error| file_error(path, &error);
    let mut file = File::open(path).map_err(failed)?;
    let file_bytes = file.metadata().map_err(failed)?.len();
    let (header, header_bytes) = read_header(&mut file).map_err(corrupt)?;
    let count = header.shape.iter().try_fold(1u64, |count, &extent| count.checked_mul(extent as u64));
    let expected = count.and_then(|count| count.checked_mul(header.dtype.size_bytes() as u64));
    let found = file_bytes.saturating_sub(header_bytes);
    let expected = expected.filter(|&expected| expected <= found);
    let expected = expected.ok_or_else(|| {
        corrupt(format!(
            "shape {:?} of {} needs more than the {found} bytes there are",
            header.shape, header.dtype
        ))
    })? as usize;
    let mut data = Buffer::zeroed(expected);
    file.read_exact(&mut data.elements_mut::<u8>()[..expected]).map_err(failed)?;
    if header.swapped {
        swap_bytes(&mut data.elements_mut::<u8>()[..expected], header.dtype);
    }
    if !header.fortran_order {
        return Ok(Chunk::contiguous(header.dtype, &header.shape, data)?);
    }
    let mut strides = vec![1i64; header.shape.len()];
    for axis in 1..header.shape.len() {
        strides[axis] = strides[axis - 1] * header.shape[axis - 1] as i64;
    }
    Ok(Chunk::strided(header.dtype, &header.shape, &strides, 0, data.into())?)
}

/// Reverses the bytes of each number; complex numbers are two.
fn swap_bytes(bytes: &mut [u8], dtype: DType) {
    let width = dtype.real_part().size_bytes();
    bytes.chunks_exact_mut(width).for_each(|number| number.reverse());
}

fn read_header(file: &mut impl Read) -> std::result::Result<(Header, u64), String> {
    let mut start = [0u8; 8];
    file.read_exact(&mut start).map_err(|_| "no data left in file".to_owned())?;
    if start[..6] != *MAGIC {
        return Err("the magic string is not that of a .npy file".to_owned());
    }
    let length_bytes = match start[6] {
        1 => 2,
        2 | 3 => 4,
        version => return Err(format!("version {version} is unknown")),
    };
    let mut length = [0u8; 4];
    file.read_exact(&mut length[..length_bytes]).map_err(|_| "the header is cut off".to_owned())?;
    let length = u32::from_le_bytes(length) as usize;
    if HEADER_BYTES_MAX < length {
        return Err(format!("the header has {length} bytes, the limit is {HEADER_BYTES_MAX}"));
    }
    let mut text = vec![0u8; length];
    file.read_exact(&mut text).map_err(|_| "the header is cut off".to_owned())?;
    let text = String::from_utf8(text).map_err(|_| "the header is not text".to_owned())?;
    Ok((parse_header(&text)?, (8 + length_bytes + length) as u64))
}

/// Reads `{'descr': '<f8', 'fortran_order': False, 'shape': (3, 4), }`.
fn parse_header(text: &str) -> std::result::Result<Header, String> {
    let bad = |what: &str| format!("the header {:?} has no valid {what}", text.trim());
    let body = text.trim().strip_prefix('{').and_then(|rest| rest.trim_end().strip_suffix('}'));
    let body = body.ok_or_else(|| bad("dictionary"))?;
    let after = |key: &str| {
        let (_, rest) = body.split_once(&format!("'{key}'"))?;
        rest.trim_start().strip_prefix(':').map(str::trim_start)
    };
    let descr = after("descr").and_then(|rest| rest.strip_prefix('\'')?.split_once('\''));
    let (descr, _) = descr.ok_or_else(|| bad("'descr'"))?;
    let fortran = after("fortran_order").ok_or_else(|| bad("'fortran_order'"))?;
    let fortran_order = match () {
        () if fortran.starts_with("True") => true,
        () if fortran.starts_with("False") => false,
        () => return Err(bad("'fortran_order'")),
    };
    let extents = after("shape").and_then(|rest| rest.strip_prefix('(')?.split_once(')'));
    let (extents, _) = extents.ok_or_else(|| bad("'shape'"))?;
    let extents = extents.split(',').map(str::trim).filter(|extent| !extent.is_empty());
    let shape: std::result::Result<Vec<usize>, _> = extents.map(str::parse).collect();
    let (swapped, code) = descr.strip_prefix('>').map_or((false, descr), |code| (true, code));
    if descr.contains('O') {
        return Err("it holds pickled objects (ObjectArray), which are never unpickled".to_owned());
    }
    let dtype: DType = code.parse().map_err(|_| bad("'descr'"))?;
    if dtype == DType::BF16 {
        return Err(bad("'descr'"));
    }
    Ok(Header { dtype, swapped, fortran_order, shape: shape.map_err(|_| bad("'shape'"))? })
}

pub(crate) fn write(path: &Path, chunk: &Chunk) -> std::io::Result<()> {
    let extents: Vec<String> = chunk.shape().iter().map(|extent| extent.to_string()).collect();
    let comma = if extents.len() == 1 { "," } else { "" };
    let mut header = format!(
        "{{'descr': '{}', 'fortran_order': False, 'shape': ({}{comma}), }}",
        chunk.dtype().typestr(),
        extents.join(", ")
    );
    // Elements begin on a boundary of 64 bytes.
    let padding = (64 - (10 + header.len() + 1) % 64) % 64;
    header.push_str(&" ".repeat(padding));
    header.push('\n');
    let mut file = std::io::BufWriter::new(File::create(path)?);
    file.write_all(MAGIC)?;
    file.write_all(&[1, 0])?;
    file.write_all(&(header.len() as u16).to_le_bytes())?;
    file.write_all(header.as_bytes())?;
    with_element!(chunk.dtype(), T => write_elements::<T>(&mut file, chunk))?;
    file.flush()
}

fn write_elements<T: Element>(file: &mut impl Write, chunk: &Chunk) -> std::io::Result<()> {
    let elements = chunk.to_vec::<T>().map_err(std::io::Error::other)?;
    file.write_all(bytemuck::cast_slice(&elements))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::default_executor;

    fn header_of(text: &str) -> std::result::Result<Header, String> {
        parse_header(text)
    }

    #[test]
    fn what_is_saved_is_loaded() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.npy");
        let x = crate::arange(24).unwrap().reshape(&[2, 3, 4]).unwrap();
        save(&path, &x, &*default_executor()).unwrap();
        let y = load(&path).unwrap();
        assert_eq!(y.shape(), [2, 3, 4]);
        assert_eq!(y.fetch::<i64>().unwrap(), x.fetch::<i64>().unwrap());
    }

    #[test]
    fn headers_are_read_by_a_grammar() {
        let header = header_of("{'descr': '>f4', 'fortran_order': True, 'shape': (3, 4), }\n").unwrap();
        assert_eq!(
            header,
            Header { dtype: DType::F32, swapped: true, fortran_order: true, shape: vec![3, 4] }
        );
        assert!(
            header_of("{'descr': '|O', 'fortran_order': False, 'shape': (3,), }")
                .unwrap_err()
                .contains("ObjectArray")
        );
        assert!(header_of("{'descr': '<f8', 'fortran_order': False, 'shape': (-1,), }").is_err());
        assert!(header_of("__import__('os')").is_err());
    }

    #[test]
    fn corrupt_files_are_refused_before_memory_is_taken() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.npy");
        let file = |header: &str, data: &[u8]| {
            let mut bytes = MAGIC.to_vec();
            bytes.extend([1, 0]);
            bytes.extend((header.len() as u16).to_le_bytes());
            bytes.extend(header.as_bytes());
            bytes.extend(data);
            std::fs::write(&path, bytes).unwrap();
            load(&path).unwrap_err()
        };
        let huge = file("{'descr': '<f8', 'fortran_order': False, 'shape': (137438953472,), }", &[0; 10]);
        assert_eq!(huge.class(), "DataCorrupt");
        let short = file("{'descr': '<f8', 'fortran_order': False, 'shape': (3,), }", &[0; 10]);
        assert!(short.to_string().contains("10 bytes"), "{short}");
        std::fs::write(&path, b"").unwrap();
        assert_eq!(load(&path).unwrap_err().class(), "DataCorrupt");
        assert_eq!(load(&folder.path().join("none")).unwrap_err().class(), "OSError");
    }
}
