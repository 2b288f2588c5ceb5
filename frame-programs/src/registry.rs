//! The operations of programs, by pandas name: tables of rows, one row per operation.

use super::row::{Row, Run};
use super::{
    Failure, axes, choose, elementwise, files, frames, group_more, groups, index_steps, indices, joins,
    matrices, more, places, rows, series, sources, spans, steps, summaries, texts, times, whole, windows,
};

/// One operation of programs.
#[derive(Clone, Copy)]
pub struct Operation {
    /// Its name, such as `pd.DataFrame.merge`.
    pub name: &'static str,
    /// Its arguments beside the frame, series or groups that come first.
    pub signature: &'static str,
    /// A line about what it does.
    pub doc: &'static str,
    pub(super) run: Run,
}

const TABLES: &[&[Row]] = &[
    sources::SOURCES,
    files::FILES,
    frames::FRAMES,
    series::SERIES,
    elementwise::ELEMENTWISE,
    elementwise::OPERATORS,
    groups::GROUPS,
    group_more::GROUPS,
    indices::INDICES,
    index_steps::STEPS,
    joins::JOINS,
    matrices::MATRICES,
    more::MORE,
    places::PLACES,
    rows::BOTH,
    rows::ROWS,
    axes::AXES,
    choose::CHOOSE,
    steps::STEPS,
    summaries::SUMMARIES,
    texts::TEXTS,
    times::TIMES,
    whole::WHOLE,
    windows::KINDS,
    windows::WINDOWS,
    spans::SPANS,
];

/// All operations that programs may name.
///
/// ```
/// assert!(tharsis_frame_programs::registry::all().any(|operation| operation.name == "pd.concat"));
/// ```
pub fn all() -> impl Iterator<Item = Operation> {
    let rows = TABLES.iter().copied().flatten();
    rows.map(|&(name, signature, doc, run)| Operation { name, signature, doc, run })
}

/// Names under which pandas has an operation too.
const ALIASES: &[(&str, &str)] = &[
    ("Series.divide", "Series.div"),
    ("Series.truediv", "Series.div"),
    ("Series.multiply", "Series.mul"),
    ("Series.subtract", "Series.sub"),
    ("DataFrame.divide", "DataFrame.div"),
    ("DataFrame.truediv", "DataFrame.div"),
    ("DataFrame.multiply", "DataFrame.mul"),
    ("DataFrame.subtract", "DataFrame.sub"),
    ("GroupBy.aggregate", "GroupBy.agg"),
    ("Series.rtruediv", "Series.rdiv"),
    ("DataFrame.rtruediv", "DataFrame.rdiv"),
    ("Series.aggregate", "Series.agg"),
    ("DataFrame.aggregate", "DataFrame.agg"),
    ("Index.aggregate", "Index.agg"),
    ("Rolling.aggregate", "Rolling.agg"),
    ("Expanding.aggregate", "Expanding.agg"),
    ("EWM.aggregate", "EWM.agg"),
    ("Resampler.aggregate", "Resampler.agg"),
    ("Resampler.backfill", "Resampler.bfill"),
    ("Series.product", "Series.prod"),
    ("DataFrame.product", "DataFrame.prod"),
    ("Series.kurtosis", "Series.kurt"),
    ("DataFrame.kurtosis", "DataFrame.kurt"),
    ("GroupBy.kurtosis", "GroupBy.kurt"),
    ("Series.pad", "Series.ffill"),
    ("DataFrame.pad", "DataFrame.ffill"),
    ("Series.backfill", "Series.bfill"),
    ("DataFrame.backfill", "DataFrame.bfill"),
    ("GroupBy.backfill", "GroupBy.bfill"),
    ("Series.tolist", "Series.to_list"),
    ("Index.tolist", "Index.to_list"),
    ("isnull", "isna"),
    ("Series.dt.day_of_week", "Series.dt.dayofweek"),
    ("Series.dt.day_of_year", "Series.dt.dayofyear"),
    ("Series.dt.daysinmonth", "Series.dt.days_in_month"),
    ("notnull", "notna"),
    ("ExponentialMovingWindow.mean", "EWM.mean"),
    ("Series.isnull", "Series.isna"),
    ("Series.notnull", "Series.notna"),
    ("DataFrame.isnull", "DataFrame.isna"),
    ("DataFrame.notnull", "DataFrame.notna"),
];

/// The classes of groups, which are one here.
const GROUPS: [&str; 3] = ["core.groupby.DataFrameGroupBy.", "DataFrameGroupBy.", "SeriesGroupBy."];

/// The operation of this name.
///
/// ```
/// use tharsis_frame_programs::registry::find;
/// assert_eq!(find("pd.Series.truediv").expect("it is there").name, "pd.Series.div");
/// ```
pub fn find(name: &str) -> Option<Operation> {
    let bare = name.strip_prefix("pd.").unwrap_or(name);
    let bare =
        GROUPS.iter().find_map(|class| bare.strip_prefix(class)).map(|method| format!("GroupBy.{method}"));
    let bare = bare.unwrap_or_else(|| name.strip_prefix("pd.").unwrap_or(name).to_owned());
    let target = ALIASES.iter().find(|(alias, _)| *alias == bare).map_or(bare.as_str(), |(_, target)| target);
    all().find(|operation| operation.name == name || operation.name.strip_prefix("pd.") == Some(target))
}

/// The failure for a name that no operation has.
pub(super) fn unknown(name: &str) -> Failure {
    if ["np.", "nd.", "rng.", "sk."].iter().any(|prefix| name.starts_with(prefix)) {
        return Failure::missing(format!("{name} in a program over frames is not implemented"));
    }
    let near = tharsis_dataframe::for_programs::nearest(name, all().map(|operation| operation.name));
    let hint = near.map(|near| format!("; did you mean {near}?")).unwrap_or_default();
    Failure::missing(format!("{name} is not implemented{hint}"))
}
