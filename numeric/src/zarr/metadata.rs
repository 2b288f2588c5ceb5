//! `zarr.json`: what is known of an array, and what of the format is not read.

use super::Options;
use super::codec::{Codec, Fault, decode};
use super::coding::{Coding, Parsed, bytes_codec, codecs, extents, malformed, named, unsupported};
use super::sharding::Sharding;
use crate::storage::{corrupt, read_existing};
use serde_json::{Map, Value as Json, json};
use std::path::{Path, PathBuf};
use tharsis_graph::Error as GraphError;
use tharsis_kernels::{DType, bf16_of, f16_of};

/// The longest `zarr.json` that is read, in bytes.
pub const METADATA_BYTES_MAX: u64 = 1 << 20;
/// The most bytes of a chunk: a task holds one as a whole.
pub const CHUNK_BYTES_MAX: u64 = 1 << 31;

/// Facts about an array.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Metadata {
    pub(super) shape: Vec<usize>,
    pub(super) chunks: Vec<usize>,
    /// `None` if each chunk has a file of its own.
    pub(super) sharding: Option<Sharding>,
    pub(super) dtype: DType,
    /// The bytes of an element that is not stored.
    pub(super) fill: Vec<u8>,
    keys: Keys,
    /// Whether the bytes of each number are in reverse order.
    swapped: bool,
    /// The codecs of a chunk behind `bytes`.
    pub(super) codecs: Vec<Codec>,
}

/// Names of the files of chunks.
#[derive(Clone, Debug, PartialEq)]
struct Keys {
    has_prefix: bool,
    separator: char,
}

impl Metadata {
    pub(super) fn new(
        dtype: DType,
        shape: &[usize],
        chunks: &[usize],
        options: &Options,
    ) -> std::result::Result<Metadata, GraphError> {
        let sharding = options.shards.as_deref().map(Sharding::new);
        let checked = check_chunks(shape, chunks, dtype).and_then(|()| match &sharding {
            None => Ok(()),
            // A task that writes a shard holds all of it.
            Some(sharding) => {
                sharding.check(chunks).and_then(|()| check_chunks(shape, &sharding.extents, dtype))
            }
        });
        checked.map_err(|fault| {
            let (Fault::Malformed(text) | Fault::Unsupported(text)) = fault;
            GraphError::Value(text)
        })?;
        let mut codecs: Vec<Codec> = options.compression.codec().into_iter().collect();
        if options.checksum {
            codecs.push(Codec::Crc32c);
        }
        Ok(Metadata {
            shape: shape.to_vec(),
            chunks: chunks.to_vec(),
            sharding,
            dtype,
            fill: vec![0; dtype.size_bytes()],
            keys: Keys { has_prefix: true, separator: '/' },
            swapped: false,
            codecs,
        })
    }

    /// Reads and checks a file.
    pub(super) fn read(path: &Path) -> std::result::Result<Metadata, GraphError> {
        let text = read_existing(path, METADATA_BYTES_MAX)?;
        let json: Json = serde_json::from_slice(&text).map_err(|error| corrupt(path, error.to_string()))?;
        Metadata::parse(&json).map_err(|fault| match fault {
            Fault::Malformed(reason) => corrupt(path, reason),
            Fault::Unsupported(feature) => {
                GraphError::Unsupported { what: path.display().to_string(), feature }
            }
        })
    }

    pub(super) fn parse(json: &Json) -> Parsed<Metadata> {
        let Some(fields) = json.as_object() else { return malformed("no JSON object") };
        if fields.get("zarr_format").and_then(Json::as_u64) != Some(3) {
            return unsupported(format!("the format {}", field(fields, "zarr_format")?));
        }
        if field(fields, "node_type")? != "array" {
            return unsupported(format!("the node type {}", field(fields, "node_type")?));
        }
        check_names(fields)?;
        let dtype = match field(fields, "data_type")? {
            Json::String(name) => match name.parse::<DType>() {
                Ok(dtype) if dtype.name() == name => dtype,
                _ => return unsupported(format!("the data type {name}")),
            },
            other => return unsupported(format!("the data type {other}")),
        };
        let shape = extents(field(fields, "shape")?)?;
        let grid = named(field(fields, "chunk_grid")?)?;
        if grid.0 != "regular" {
            return unsupported(format!("the chunk grid {}", grid.0));
        }
        let file_extents = extents(grid.1.get("chunk_shape").unwrap_or(&Json::Null))?;
        let (sharding, chunks, coding) = layout(field(fields, "codecs")?, file_extents, dtype)?;
        check_chunks(&shape, &chunks, dtype)?;
        let fill = fill_value(field(fields, "fill_value")?, dtype)?;
        let keys = Keys::parse(named(field(fields, "chunk_key_encoding")?)?)?;
        let Coding { swapped, codecs } = coding;
        Ok(Metadata { shape, chunks, sharding, dtype, fill, keys, swapped, codecs })
    }

    /// The metadata as JSON, with a fill value of zero bytes.
    pub(super) fn to_json(&self) -> Json {
        let fill = match self.dtype {
            DType::Bool => json!(false),
            dtype if dtype.is_complex() => json!([0.0, 0.0]),
            dtype if dtype.is_float() => json!(0.0),
            _ => json!(0),
        };
        let bytes = bytes_codec(self.dtype, self.swapped);
        let mut codecs: Vec<Json> =
            std::iter::once(bytes).chain(self.codecs.iter().map(Codec::to_json)).collect();
        if let Some(sharding) = &self.sharding {
            codecs = vec![sharding.to_json(&self.chunks, codecs)];
        }
        json!({
            "zarr_format": 3,
            "node_type": "array",
            "shape": self.shape,
            "data_type": self.dtype.name(),
            "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": self.file_extents()}},
            "chunk_key_encoding": self.keys.to_json(),
            "fill_value": fill,
            "codecs": codecs,
            "attributes": {},
        })
    }

    /// Extents of what is in a file: a shard or a chunk.
    pub(super) fn file_extents(&self) -> &[usize] {
        self.sharding.as_ref().map_or(&self.chunks, |sharding| &sharding.extents)
    }

    /// The elements of a chunk, from its stored bytes.
    pub(super) fn decode(&self, stored: Vec<u8>) -> std::io::Result<Vec<u8>> {
        let mut bytes = decode(&self.codecs, stored, self.chunk_bytes() as u64)?;
        if self.swapped {
            // A complex number is two numbers.
            let width = self.dtype.real_part().size_bytes();
            bytes.chunks_exact_mut(width).for_each(|number| number.reverse());
        }
        Ok(bytes)
    }

    /// Bytes of a decoded chunk.
    pub(super) fn chunk_bytes(&self) -> usize {
        self.chunks.iter().product::<usize>() * self.dtype.size_bytes()
    }

    /// The file of the chunk or the shard at these coordinates, in a folder.
    pub(super) fn chunk_path(&self, folder: &Path, coordinates: &[usize]) -> PathBuf {
        let Keys { has_prefix, separator } = self.keys;
        let mut parts: Vec<String> = coordinates.iter().map(usize::to_string).collect();
        match (has_prefix, parts.is_empty()) {
            (true, _) => parts.insert(0, "c".to_owned()),
            (false, true) => parts.push("0".to_owned()),
            (false, false) => {}
        }
        folder.join(parts.join(&separator.to_string()))
    }
}

impl Keys {
    fn to_json(&self) -> Json {
        let name = if self.has_prefix { "default" } else { "v2" };
        json!({"name": name, "configuration": {"separator": self.separator.to_string()}})
    }

    fn parse((name, configuration): (&str, &Map<String, Json>)) -> Parsed<Keys> {
        let (has_prefix, default) = match name {
            "default" => (true, "/"),
            "v2" => (false, "."),
            other => return unsupported(format!("the chunk key encoding {other}")),
        };
        match configuration.get("separator").map_or(Some(default), Json::as_str) {
            Some("/") => Ok(Keys { has_prefix, separator: '/' }),
            Some(".") => Ok(Keys { has_prefix, separator: '.' }),
            _ => malformed("a separator of chunk keys that is neither / nor ."),
        }
    }
}

fn field<'a>(fields: &'a Map<String, Json>, name: &str) -> Parsed<&'a Json> {
    fields.get(name).ok_or_else(|| Fault::Malformed(format!("no {name}")))
}

/// Refuses fields that must be understood.
fn check_names(fields: &Map<String, Json>) -> Parsed<()> {
    const KNOWN: &[&str] = &[
        "zarr_format",
        "node_type",
        "shape",
        "data_type",
        "chunk_grid",
        "chunk_key_encoding",
        "fill_value",
        "codecs",
        "attributes",
        "dimension_names",
        "storage_transformers",
    ];
    let transformers = fields.get("storage_transformers").and_then(Json::as_array);
    if transformers.is_some_and(|transformers| !transformers.is_empty()) {
        return unsupported("storage transformers");
    }
    let must = |value: &Json| value.get("must_understand") != Some(&Json::Bool(false));
    match fields.iter().find(|(name, value)| !KNOWN.contains(&name.as_str()) && must(value)) {
        Some((name, _)) => unsupported(format!("the field {name}")),
        None => Ok(()),
    }
}

/// Refuses chunks that are not of the array, or too large to be held.
fn check_chunks(shape: &[usize], chunks: &[usize], dtype: DType) -> Parsed<()> {
    if shape.len() != chunks.len() || chunks.contains(&0) {
        return malformed(format!("chunks of {chunks:?} of an array of {shape:?}"));
    }
    let bytes = chunks.iter().try_fold(dtype.size_bytes() as u64, |bytes, &extent| {
        bytes.checked_mul(extent as u64).filter(|&bytes| bytes <= CHUNK_BYTES_MAX)
    });
    match bytes {
        Some(_) => Ok(()),
        None => malformed(format!("chunks of {chunks:?} have more than {CHUNK_BYTES_MAX} bytes")),
    }
}

/// Layout of an array in files that have these extents each: the sharding if there is one, the
/// extents of a chunk, and its coding.
fn layout(
    json: &Json,
    file_extents: Vec<usize>,
    dtype: DType,
) -> Parsed<(Option<Sharding>, Vec<usize>, Coding)> {
    let Some([first, rest @ ..]) = json.as_array().map(Vec::as_slice) else {
        return malformed("codecs that are no list, or none");
    };
    let (name, configuration) = named(first)?;
    if name != "sharding_indexed" {
        return Ok((None, file_extents, codecs(json, dtype)?));
    }
    if !rest.is_empty() {
        // Of what they encode, no part could be read by itself.
        return unsupported("codecs behind sharding_indexed");
    }
    let (sharding, chunks, coding) = Sharding::parse(&file_extents, configuration, dtype)?;
    Ok((Some(sharding), chunks, coding))
}

/// The bytes of a fill value.
fn fill_value(json: &Json, dtype: DType) -> Parsed<Vec<u8>> {
    let wrong = || Fault::Malformed(format!("{json} is no fill value of {dtype}"));
    let whole = |least: i128, most: i128| {
        let number = json.as_i64().map(i128::from).or(json.as_u64().map(i128::from));
        number.filter(|number| (least..=most).contains(number)).ok_or_else(wrong)
    };
    macro_rules! integer {
        ($t:ty) => {
            (whole(<$t>::MIN as i128, <$t>::MAX as i128)? as $t).to_le_bytes().to_vec()
        };
    }
    Ok(match dtype {
        DType::Bool => vec![u8::from(json.as_bool().ok_or_else(wrong)?)],
        DType::I8 => integer!(i8),
        DType::I16 => integer!(i16),
        DType::I32 => integer!(i32),
        DType::I64 => integer!(i64),
        DType::U8 => integer!(u8),
        DType::U16 => integer!(u16),
        DType::U32 => integer!(u32),
        DType::U64 => integer!(u64),
        DType::C64 | DType::C128 => {
            let Some([re, im]) = json.as_array().map(Vec::as_slice) else { return Err(wrong()) };
            let part = |json: &Json| float(json, dtype.real_part()).ok_or_else(wrong);
            [part(re)?, part(im)?].concat()
        }
        _ => float(json, dtype).ok_or_else(wrong)?,
    })
}

/// The bytes of a float: a number, a name, or its bits as a number in base 16.
fn float(json: &Json, dtype: DType) -> Option<Vec<u8>> {
    let size = dtype.size_bytes();
    let number = match json {
        Json::Number(number) => number.as_f64()?,
        Json::String(text) => match text.as_str() {
            "NaN" => f64::NAN,
            "Infinity" => f64::INFINITY,
            "-Infinity" => f64::NEG_INFINITY,
            text => {
                let digits = text.strip_prefix("0x").filter(|digits| digits.len() == 2 * size)?;
                return Some(u64::from_str_radix(digits, 16).ok()?.to_le_bytes()[..size].to_vec());
            }
        },
        _ => return None,
    };
    Some(match dtype {
        DType::F16 => f16_of(number).to_le_bytes().to_vec(),
        DType::BF16 => bf16_of(number).to_le_bytes().to_vec(),
        DType::F32 => (number as f32).to_le_bytes().to_vec(),
        _ => number.to_le_bytes().to_vec(),
    })
}

#[cfg(test)]
mod tests {
    use super::super::Compression;
    use super::*;

    fn array(change: impl FnOnce(&mut Json)) -> Parsed<Metadata> {
        let compression = Compression::Gzip { level: 5 };
        let options = Options { compression, checksum: true, ..Options::default() };
        let mut json = Metadata::new(DType::F32, &[5, 7], &[2, 3], &options).unwrap().to_json();
        change(&mut json);
        Metadata::parse(&json)
    }

    #[test]
    fn what_is_written_is_read_as_it_was() {
        for dtype in DType::ALL {
            for compression in [Compression::None, Compression::Zstd { level: 3 }] {
                for shards in [None, Some(vec![4, 3])] {
                    let options = Options { compression, shards, ..Options::default() };
                    let mut metadata = Metadata::new(dtype, &[5, 0], &[2, 3], &options).unwrap();
                    assert_eq!(Metadata::parse(&metadata.to_json()).unwrap(), metadata);
                    metadata.swapped = dtype.size_bytes() != 1;
                    assert_eq!(Metadata::parse(&metadata.to_json()).unwrap(), metadata);
                }
            }
        }
    }

    #[test]
    fn crafted_metadata_are_malformed() {
        let refused = |change: fn(&mut Json)| match array(change) {
            Err(Fault::Malformed(reason)) => reason,
            other => panic!("{other:?}"),
        };
        refused(|json| json["shape"] = json!([-1, 7]));
        refused(|json| json["shape"] = json!([5.5, 7]));
        refused(|json| json["shape"] = json!([5]));
        refused(|json| json["chunk_grid"]["configuration"]["chunk_shape"] = json!([0, 3]));
        refused(|json| json["chunk_grid"]["configuration"]["chunk_shape"] = json!([1u64 << 40, 1u64 << 40]));
        refused(|json| json["chunk_grid"] = json!({"name": "regular"}));
        refused(|json| json["fill_value"] = json!("0x00"));
        refused(|json| json["fill_value"] = json!(null));
        refused(|json| json["codecs"] = json!([]));
        refused(|json| json["codecs"][0] = json!({"name": "bytes"}));
        refused(|json| json["codecs"][1]["configuration"]["level"] = json!(10));
        refused(|json| json["chunk_key_encoding"]["configuration"]["separator"] = json!(".."));
        refused(|json| *json = json!([1]));
        refused(|json| drop(json.as_object_mut().unwrap().remove("fill_value")));
    }

    #[test]
    fn what_is_not_read_is_named() {
        let named = |change: fn(&mut Json)| match array(change) {
            Err(Fault::Unsupported(feature)) => feature,
            other => panic!("{other:?}"),
        };
        assert_eq!(named(|json| json["zarr_format"] = json!(2)), "the format 2");
        assert_eq!(named(|json| json["node_type"] = json!("group")), "the node type \"group\"");
        assert_eq!(named(|json| json["data_type"] = json!("string")), "the data type string");
        assert_eq!(named(|json| json["codecs"][1]["name"] = json!("blosc")), "the codec blosc");
        assert_eq!(
            named(|json| json["codecs"][0]["name"] = json!("transpose")),
            "the codec transpose in the first place"
        );
        assert_eq!(
            named(|json| json["chunk_grid"]["name"] = json!("rectilinear")),
            "the chunk grid rectilinear"
        );
        assert_eq!(named(|json| json["later"] = json!({})), "the field later");
        assert!(array(|json| json["later"] = json!({"must_understand": false})).is_ok());
    }

    #[test]
    fn chunks_are_named_as_the_array_says() {
        let path = |metadata: &Metadata, at: &[usize]| metadata.chunk_path("x".as_ref(), at);
        assert_eq!(path(&array(|_| {}).unwrap(), &[1, 2]), PathBuf::from("x/c/1/2"));
        let v2 = array(|json| json["chunk_key_encoding"] = json!({"name": "v2"})).unwrap();
        assert_eq!((path(&v2, &[1, 2]), path(&v2, &[])), (PathBuf::from("x/1.2"), PathBuf::from("x/0")));
    }

    #[test]
    fn fill_values_have_many_forms() {
        let bits = |json: Json, dtype| fill_value(&json, dtype).unwrap();
        assert_eq!(bits(json!("0x7fc00001"), DType::F32), 0x7fc0_0001u32.to_le_bytes());
        assert_eq!(bits(json!("-Infinity"), DType::F64), f64::NEG_INFINITY.to_le_bytes());
        assert_eq!(bits(json!(3), DType::F16), f16_of(3.0).to_le_bytes());
        assert_eq!(bits(json!([1.5, "NaN"]), DType::C64)[..4], 1.5f32.to_le_bytes());
        assert_eq!(bits(json!(-2), DType::I16), (-2i16).to_le_bytes());
        assert_eq!(bits(json!(u64::MAX), DType::U64), u64::MAX.to_le_bytes());
        assert!(fill_value(&json!(300), DType::U8).is_err());
    }
}
