//! The benches over frames, by name.

use super::tpch::tpch;
use super::{Entry, frames, row};

/// The benches, with targets as in [`super`].
pub const BENCHES: &[Entry] = &[
    row("tpch", tpch, "ratio <= 1.3", "<= 0.8 of the best").sized(1, 1).with_flags(FLAGS).apart(),
    row("frame-groupby", frames::groupby, MUST, AIM).sized(10_000_000, 1_000_000).with_flags(FLAGS).apart(),
    row("frame-join", frames::join, MUST, AIM).sized(10_000_000, 1_000_000).with_flags(FLAGS).apart(),
    row("frame-sort", frames::sort, MUST, AIM).sized(100_000_000, 10_000_000).with_flags(FLAGS).apart(),
    row("frame-csv", frames::csv, MUST, AIM).sized(5, 5).with_flags(FLAGS).apart(),
    row("frame-parquet", frames::parquet, MUST, AIM).sized(10_000_000, 1_000_000).with_flags(FLAGS).apart(),
    row("frame-shuffle", frames::shuffle, "ratio >= 0.5", "").sized(20, 20).with_flags(&["--memory"]).apart(),
];

/// Target of frames beside the library and others.
const MUST: &str = "<= 1.3 of the best";
const AIM: &str = "<= 1.0 of the best";
/// Flags of these benches.
const FLAGS: &[&str] = &["--data", "--memory", "--rounds"];
