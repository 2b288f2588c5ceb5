//! CSV and JSON in tasks.
//!
//! | concern | module |
//! |---|---|
//! | what is read, as it travels | `form` |
//! | bytes, decompressed and in UTF-8 | `blocks` |
//! | whole records, many at a time | `records` |
//! | records as batches | `csv`, `json` |
//! | types of columns as shapes of JSON values | `json_shapes` |
//! | texts as values | `convert` |
//! | a look at the first records | `sample` |
//! | a source of the library's scans | `reader`, `source` |
//!
//! The loops over bytes are those of the crate `text-scan`, which is compiled for speed.

mod blocks;
mod convert;
mod csv;
mod form;
mod json;
mod json_shapes;
mod reader;
mod records;
pub(crate) mod sample;
mod source;

pub(crate) use blocks::is_compressed;
pub(crate) use convert::Classes;
pub(crate) use form::{Columns, Compression, CsvForm, JsonForm, NA_DEFAULT, Numbers, TextForm, TextKind};
pub(crate) use records::Text;
pub(crate) use source::TextSource;
pub(crate) use tharsis_text_scan::encoding::{Bad, Charset, Encoding};
