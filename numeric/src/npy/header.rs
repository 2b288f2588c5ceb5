//! The header of a `.npy` file, read by its own small parser: nothing in it is evaluated.

use std::io::Read;
use std::path::Path;
use tharsis_graph::Error as GraphError;
use tharsis_kernels::DType;

/// The longest header that is read.
pub const HEADER_BYTES_MAX: usize = 64 << 10;
const MAGIC: &[u8; 6] = b"\x93NUMPY";

/// Contents of a header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) dtype: DType,
    pub(super) swapped: bool,
    pub(super) fortran_order: bool,
    pub(super) shape: Vec<usize>,
}

/// Reason for which a header is refused.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    Corrupt(String),
    Objects,
    Unsupported(String),
}

impl Refusal {
    pub(super) fn of_file(self, path: &Path) -> GraphError {
        let what = path.display().to_string();
        match self {
            Refusal::Corrupt(reason) => GraphError::Corrupt { what, reason },
            Refusal::Objects => GraphError::ObjectArray { what },
            Refusal::Unsupported(feature) => GraphError::Unsupported { what, feature },
        }
    }
}

impl Header {
    /// The header at the beginning of a file, and the offset of the elements.
    pub(super) fn read(file: &mut impl Read) -> Result<(Header, u64), Refusal> {
        let corrupt = |text: &str| Refusal::Corrupt(text.to_owned());
        let mut start = [0u8; 8];
        file.read_exact(&mut start).map_err(|_| corrupt("no data left in file"))?;
        if start[..6] != *MAGIC {
            return Err(corrupt("the magic string is not that of a .npy file"));
        }
        let length_bytes = match start[6] {
            1 => 2,
            2 | 3 => 4,
            version => {
                let found =
                    format!("format version ({version}, {}); there are (1, 0), (2, 0) and (3, 0)", start[7]);
                return Err(Refusal::Unsupported(found));
            }
        };
        let mut length = [0u8; 4];
        file.read_exact(&mut length[..length_bytes]).map_err(|_| corrupt("the header is cut off"))?;
        let length = u32::from_le_bytes(length) as usize;
        if HEADER_BYTES_MAX < length {
            let text = format!("the header has {length} bytes, the limit is {HEADER_BYTES_MAX}");
            return Err(Refusal::Corrupt(text));
        }
        let mut text = vec![0u8; length];
        file.read_exact(&mut text).map_err(|_| corrupt("the header is cut off"))?;
        let text = String::from_utf8(text).map_err(|_| corrupt("the header is not text"))?;
        Ok((Header::parse(&text)?, (8 + length_bytes + length) as u64))
    }

    /// Reads `{'descr': '<f8', 'fortran_order': False, 'shape': (3, 4), }`.
    fn parse(text: &str) -> Result<Header, Refusal> {
        let bad = |what: &str| Refusal::Corrupt(format!("the header {:?} has no valid {what}", text.trim()));
        let body = text.trim().strip_prefix('{').and_then(|rest| rest.trim_end().strip_suffix('}'));
        let body = body.ok_or_else(|| bad("dictionary"))?;
        let after = |key: &str| {
            let (_, rest) = body.split_once(&format!("'{key}'"))?;
            rest.trim_start().strip_prefix(':').map(str::trim_start)
        };
        let descr = after("descr").ok_or_else(|| bad("'descr'"))?;
        if descr.starts_with('[') {
            let fields: String = descr.chars().take(DESCR_CHARS_SHOWN).collect();
            return Err(Refusal::Unsupported(format!("a structured dtype: {fields}")));
        }
        let (descr, _) =
            descr.strip_prefix('\'').and_then(|rest| rest.split_once('\'')).ok_or_else(|| bad("'descr'"))?;
        let fortran = after("fortran_order").ok_or_else(|| bad("'fortran_order'"))?;
        let fortran_order = match () {
            () if fortran.starts_with("True") => true,
            () if fortran.starts_with("False") => false,
            () => return Err(bad("'fortran_order'")),
        };
        let extents = after("shape").and_then(|rest| rest.strip_prefix('(')?.split_once(')'));
        let (extents, _) = extents.ok_or_else(|| bad("'shape'"))?;
        let extents = extents.split(',').map(str::trim).filter(|extent| !extent.is_empty());
        let shape: Result<Vec<usize>, _> = extents.map(str::parse).collect();
        let shape = shape.map_err(|_| bad("'shape'"))?;
        if descr.contains('O') {
            return Err(Refusal::Objects);
        }
        let (swapped, code) = descr.strip_prefix('>').map_or((false, descr), |code| (true, code));
        let dtype: DType = match code.parse() {
            Ok(dtype) if dtype != DType::BF16 => dtype,
            _ if is_other_dtype(code) => return Err(Refusal::Unsupported(format!("the dtype {descr:?}"))),
            _ => return Err(bad("'descr'")),
        };
        Ok(Header { dtype, swapped, fortran_order, shape })
    }

    /// Bytes of all elements, if they can be counted.
    pub(super) fn data_bytes(&self) -> Option<u64> {
        let count = self.shape.iter().try_fold(1u64, |count, &extent| count.checked_mul(extent as u64));
        count?.checked_mul(self.dtype.size_bytes() as u64)
    }
}

/// Whether this is NumPy's code of a dtype that tensors do not have: text, bytes, times, and the longest
/// floats.
fn is_other_dtype(code: &str) -> bool {
    let bare = code.strip_prefix(['<', '|', '=']).unwrap_or(code);
    let (size, unit) = bare.split_at(bare.find('[').unwrap_or(bare.len()));
    let width = |kind: char| size.strip_prefix(kind).and_then(|size| size.parse::<u32>().ok());
    let is_time = ['m', 'M'].into_iter().any(|kind| width(kind) == Some(8));
    match unit {
        "" => {
            ['S', 'a', 'U', 'V'].into_iter().any(|kind| width(kind).is_some())
                || matches!(width('f'), Some(12 | 16))
                || matches!(width('c'), Some(24 | 32))
                || is_time
        }
        unit => is_time && unit.ends_with(']'),
    }
}

/// Fields of structured dtypes are shown up to this length.
const DESCR_CHARS_SHOWN: usize = 80;

/// The header of an array in C order, version 1, padded so that the elements begin on a boundary of 64 bytes.
pub(super) fn header_bytes(dtype: DType, shape: &[usize]) -> Vec<u8> {
    let extents: Vec<String> = shape.iter().map(|extent| extent.to_string()).collect();
    let comma = if extents.len() == 1 { "," } else { "" };
    let (typestr, extents) = (dtype.typestr(), extents.join(", "));
    let mut text = format!("{{'descr': '{typestr}', 'fortran_order': False, 'shape': ({extents}{comma}), }}");
    let padding = (64 - (10 + text.len() + 1) % 64) % 64;
    text.push_str(&" ".repeat(padding));
    text.push('\n');
    let mut bytes = MAGIC.to_vec();
    bytes.extend([1, 0]);
    bytes.extend((text.len() as u16).to_le_bytes());
    bytes.extend(text.as_bytes());
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_text(text: &str) -> Result<Header, Refusal> {
        Header::parse(text)
    }

    #[test]
    fn headers_are_read_by_a_grammar() {
        let header = of_text("{'descr': '>f4', 'fortran_order': True, 'shape': (3, 4), }\n").unwrap();
        let expected = Header { dtype: DType::F32, swapped: true, fortran_order: true, shape: vec![3, 4] };
        assert_eq!(header, expected);
        let objects = of_text("{'descr': '|O', 'fortran_order': False, 'shape': (3,), }");
        assert_eq!(objects, Err(Refusal::Objects));
        assert!(of_text("{'descr': '<f8', 'fortran_order': False, 'shape': (-1,), }").is_err());
        assert!(of_text("__import__('os')").is_err());
    }

    #[test]
    fn what_is_written_is_read_and_the_elements_are_aligned() {
        for shape in [vec![], vec![7], vec![3, 0, 5], vec![1; 20]] {
            let bytes = header_bytes(DType::C64, &shape);
            assert!(bytes.len().is_multiple_of(64));
            let (header, start) = Header::read(&mut bytes.as_slice()).unwrap();
            assert_eq!((header.shape, header.dtype, start), (shape, DType::C64, bytes.len() as u64));
        }
    }
}
