//! Files as tasks read them.
//!
//! | concern | module |
//! |---|---|
//! | places and their credentials | `storage` |
//! | files of one plan | `listings` |
//! | one file after the other, errors that name it | `files` |
//! | CSV and JSON | `text` |
//! | Arrow's IPC | `ipc` |
//! | times of 96 bits in Parquet | `old_times` |

mod files;
mod ipc;
mod listings;
mod old_times;
mod storage;
mod text;

pub(crate) use files::{by_file, named_async, same_columns, shown};
pub(crate) use ipc::{IpcSource, ipc_columns};
pub(crate) use listings::Listings;
pub use storage::STORAGE_VARIABLES;
pub(crate) use storage::{from_store, is_on_disk, store, store_at};
pub(crate) use text::{
    Bad, Charset, Classes, Columns, Compression, CsvForm, Encoding, JsonForm, NA_DEFAULT, Numbers, Text,
    TextForm, TextKind, TextSource, is_compressed, sample,
};
