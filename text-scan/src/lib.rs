//! Loops over the bytes of texts: CSV and JSON, on the way from a file to a decoder.
//!
//! | concern | module |
//! |---|---|
//! | characters of an encoding, as UTF-8 | [`encoding`] |
//! | begins of records, also behind a cut | [`records`] |
//! | blank lines and fields of CSV | [`csv`] |
//! | files that are one array of JSON, as lines | [`json_array`] |
//! | values of JSON that fit their columns | [`json_values`] |
//!
//! They are a crate of their own because release builds optimise it for speed, unlike the crate that plans
//! queries and opens files. So no function here has type parameters: such a function would be compiled in
//! the crate that calls it, as that one is. What is told of each record is told to a `&mut dyn FnMut`.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod csv;
pub mod encoding;
pub mod json_array;
pub mod json_values;
pub mod records;
