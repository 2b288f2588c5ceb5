//! CSV and JSON in tasks.
//!
//! | concern | module |
//! |---|---|
//! | what is read, as it travels | `form` |
//! | bytes, decompressed and in UTF-8 | `blocks`, `encoding` |
//! | where records begin | `scanner`, `records` |
//! | files that are an array, as lines | `json_array` |
//! | records as batches | `csv`, `json` |
//! | values of JSON that fit their columns | `json_values` |
//! | texts as values | `convert` |
//! | a look at the first records | `sample` |
//! | a source of the library's scans | `reader`, `source` |

mod blocks;
mod convert;
mod csv;
mod encoding;
mod form;
mod json;
mod json_array;
mod json_values;
mod reader;
mod records;
pub(crate) mod sample;
mod scanner;
mod source;

pub(crate) use blocks::is_compressed;
pub(crate) use convert::Classes;
pub(crate) use encoding::{Bad, Charset, Encoding};
pub(crate) use form::{Columns, Compression, CsvForm, JsonForm, NA_DEFAULT, Numbers, TextForm, TextKind};
pub(crate) use records::Text;
pub(crate) use source::TextSource;
