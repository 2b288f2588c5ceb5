//! Builds the packed parts of records.

pub use super::bytes::reference;
use super::bytes::{put_len, put_value};
use super::{REF_BYTES, ValueView};
use tharsis_types::task::Dependency;
use tharsis_types::{NodeId, RefId};

/// Packs a list of nodes.
#[must_use]
pub fn nodes<'a>(list: impl IntoIterator<Item = &'a NodeId>) -> Vec<u8> {
    list.into_iter().flat_map(|node| node.0.to_le_bytes()).collect()
}

/// Packs a list of references.
#[must_use]
pub fn references<'a>(list: impl IntoIterator<Item = &'a RefId>) -> Vec<u8> {
    let mut out = Vec::new();
    list.into_iter().for_each(|r| reference(&mut out, r));
    out
}

/// Packs a list of dependencies.
#[must_use]
pub fn dependencies<'a>(list: impl IntoIterator<Item = &'a Dependency>) -> Vec<u8> {
    let mut out = Vec::new();
    for dependency in list {
        reference(&mut out, &dependency.reference);
        out.extend_from_slice(&dependency.parameter.to_le_bytes());
    }
    out
}

/// Appends one output of a finished task.
pub fn output(out: &mut Vec<u8>, value: &ValueView<'_>, nested: &[RefId]) {
    put_value(out, value);
    put_len(out, nested.len() * REF_BYTES);
    nested.iter().for_each(|r| reference(out, r));
}

/// Appends one argument of a task to start.
pub fn argument(out: &mut Vec<u8>, parameter: u16, from: &RefId, value: &ValueView<'_>) {
    out.extend_from_slice(&parameter.to_le_bytes());
    reference(out, from);
    put_value(out, value);
}
