//! Tables, files and what statements do to them.
//!
//! | concern | module |
//! |---|---|
//! | rows of frames, whose plans stay as they are | `frame_rows` |
//! | tables that statements make and change, and their keys | `session_table`, `change`, `keys` |
//! | `read_csv(..)` and others in FROM | `file_tables`, `file_lists`, `file_options` |
//! | files that statements write, and the options of `COPY` | `files`, `copies` |
//! | tables that a session has not | `missing_tables` |

pub(super) mod change;
pub(super) mod copies;
pub(super) mod file_lists;
pub(super) mod file_options;
pub(super) mod file_tables;
pub(super) mod files;
pub(super) mod frame_rows;
pub(super) mod keys;
pub(super) mod missing_tables;
pub(super) mod session_table;
