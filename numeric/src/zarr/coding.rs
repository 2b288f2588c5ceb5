//! The parts of metadata that arrays and shards share: named extensions, extents, and the coding of a chunk.

use super::codec::{Codec, Fault};
use serde_json::{Map, Value as Json, json};
use tharsis_graph::shape::RANK_MAX;
use tharsis_kernels::DType;

/// Coding of the elements of a chunk as bytes.
pub(super) struct Coding {
    pub(super) swapped: bool,
    pub(super) codecs: Vec<Codec>,
}

pub(super) type Parsed<T> = std::result::Result<T, Fault>;

pub(super) fn malformed<T>(text: impl Into<String>) -> Parsed<T> {
    Err(Fault::Malformed(text.into()))
}

pub(super) fn unsupported<T>(text: impl Into<String>) -> Parsed<T> {
    Err(Fault::Unsupported(text.into()))
}

/// The name and the configuration of an extension: an object, or a name alone.
pub(super) fn named(json: &Json) -> Parsed<(&str, &Map<String, Json>)> {
    static NONE: std::sync::LazyLock<Map<String, Json>> = std::sync::LazyLock::new(Map::new);
    match json {
        Json::String(name) => Ok((name.as_str(), &*NONE)),
        Json::Object(parts) => {
            let Some(name) = parts.get("name").and_then(Json::as_str) else {
                return malformed("an extension without a name");
            };
            match parts.get("configuration") {
                None => Ok((name, &*NONE)),
                Some(Json::Object(configuration)) => Ok((name, configuration)),
                Some(_) => malformed(format!("the configuration of {name} is no object")),
            }
        }
        _ => malformed("an extension that is no object"),
    }
}

pub(super) fn extents(json: &Json) -> Parsed<Vec<usize>> {
    let Some(extents) = json.as_array() else { return malformed("extents that are no list") };
    if RANK_MAX < extents.len() {
        return unsupported(format!("{} axes, more than {RANK_MAX}", extents.len()));
    }
    let extent = |json: &Json| json.as_u64().and_then(|extent| usize::try_from(extent).ok());
    let extents: Option<Vec<usize>> = extents.iter().map(extent).collect();
    extents.ok_or_else(|| Fault::Malformed("an extent that is no number from 0 on".to_owned()))
}

/// The coding of a chunk.
pub(super) fn codecs(json: &Json, dtype: DType) -> Parsed<Coding> {
    let Some(codecs) = json.as_array() else { return malformed("codecs that are no list") };
    let mut codecs = codecs.iter().map(named).collect::<Parsed<Vec<_>>>()?.into_iter();
    let swapped = match codecs.next() {
        Some(("bytes", configuration))
            if dtype.size_bytes() == 1 && !configuration.contains_key("endian") =>
        {
            false
        }
        Some(("bytes", configuration)) => is_big(configuration)?,
        Some((name, _)) => return unsupported(format!("the codec {name} in the first place")),
        None => return malformed("no codec"),
    };
    let rest: Vec<_> = codecs.collect();
    if CODECS_MAX < rest.len() {
        return unsupported(format!("{} codecs, more than {CODECS_MAX}", rest.len()));
    }
    let rest = rest.into_iter().map(|(name, configuration)| Codec::parse(name, configuration));
    Ok(Coding { swapped, codecs: rest.collect::<Parsed<_>>()? })
}

/// Whether the codec `bytes` puts the high byte of a number first.
pub(super) fn is_big(configuration: &Map<String, Json>) -> Parsed<bool> {
    match configuration.get("endian").and_then(Json::as_str) {
        Some("little") => Ok(false),
        Some("big") => Ok(true),
        _ => malformed("the codec bytes without an order"),
    }
}

/// The codec `bytes`.
pub(super) fn bytes_codec(dtype: DType, is_swapped: bool) -> Json {
    match (dtype.size_bytes(), is_swapped) {
        (1, _) => json!({"name": "bytes"}),
        (_, false) => json!({"name": "bytes", "configuration": {"endian": "little"}}),
        (_, true) => json!({"name": "bytes", "configuration": {"endian": "big"}}),
    }
}

/// Codecs in a row; each has its own copy of a chunk.
const CODECS_MAX: usize = 4;
