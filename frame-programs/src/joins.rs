//! Frames side by side: by labels of rows, by nearest keys, in order.

use super::Failure;
use super::args::{Args, strs};
use super::axes::join_kind;
use super::row::Row;
use super::value::Value;
use tharsis_dataframe::{AsOf, DataFrame, Index, Join, JoinKind, Merge, Nearest};

pub(super) const JOINS: &[Row] = &[
    (
        "pd.DataFrame.join",
        "(other, on=None, how='left', lsuffix='', rsuffix='')",
        "rows of two frames with equal labels",
        join,
    ),
    (
        "pd.merge_asof",
        "(left, right, on=None, left_on=None, right_on=None, by=None, suffixes=('_x', '_y'), tolerance=None, \
         allow_exact_matches=True, direction='backward')",
        "each row with that of another frame which has the nearest key",
        merge_asof,
    ),
    (
        "pd.merge_ordered",
        "(left, right, on=None, left_on=None, right_on=None, fill_method=None, suffixes=('_x', '_y'))",
        "rows of two frames by sorted keys",
        merge_ordered,
    ),
];

/// A frame, or a series as one.
fn frame_like(value: Value) -> Result<DataFrame, Failure> {
    match value {
        Value::Series(series) => Ok(series.to_frame()),
        other => other.frame(),
    }
}

fn join(_: &str, args: &mut Args) -> Result<Value, Failure> {
    let frame = args.frame()?;
    let others = match args.need(1, "other")? {
        Value::List(parts) => parts,
        one => vec![one],
    };
    let on = args.texts(2, "on")?;
    let how = args.choice(3, "how", &["left", "right", "outer", "inner"])?;
    let left_end = args.given(4, "lsuffix").map(|end| end.text()).transpose()?.unwrap_or_default();
    let right_end = args.given(5, "rsuffix").map(|end| end.text()).transpose()?.unwrap_or_default();
    args.only(6, "sort", false)?;
    let join = Join::how(join_kind(how)).suffixes(&left_end, &right_end);
    let join = match &on {
        Some(on) => join.on(strs(on)),
        None => join,
    };
    let mut made = frame;
    for other in others {
        made = made.join(&frame_like(other)?, join.clone());
    }
    Ok(Value::Frame(made))
}

fn merge_asof(_: &str, args: &mut Args) -> Result<Value, Failure> {
    let left = args.need(0, "left")?.frame()?;
    let right = args.need(1, "right")?.frame()?;
    let label = |args: &mut Args, position, name| -> Result<Option<String>, Failure> {
        args.given(position, name).map(|label| label.text()).transpose()
    };
    let on = label(args, 2, "on")?;
    let (left_on, right_on) = (label(args, 3, "left_on")?, label(args, 4, "right_on")?);
    let (left_on, right_on) = match (on, left_on, right_on) {
        (Some(on), None, None) => (on.clone(), on),
        (None, Some(left), Some(right)) => (left, right),
        _ => return Err(Failure::new("MergeError", "Must pass on, or left_on and right_on")),
    };
    let by = args.texts(7, "by")?;
    let mut asof = AsOf::on_pair(&left_on, &right_on);
    if let Some(by) = &by {
        asof = asof.by(strs(by));
    }
    if let Some([left, right]) = args.texts(10, "suffixes")?.as_deref() {
        asof = asof.suffixes(left, right);
    }
    if let Some(tolerance) = args.given(11, "tolerance") {
        asof = asof.tolerance(tolerance.scalar()?);
    }
    asof = asof.allow_exact_matches(args.flag(12, "allow_exact_matches", true)?);
    asof = asof.nearest(match args.choice(13, "direction", &["backward", "forward", "nearest"])? {
        "forward" => Nearest::Forward,
        "nearest" => Nearest::Either,
        _ => Nearest::Backward,
    });
    for (frame, on, side) in [(&left, &left_on, "left"), (&right, &right_on, "right")] {
        // pandas refuses what this crate could sort.
        if !Index::of_series(&frame.col(on)).is_monotonic_increasing()? {
            return Err(Failure::value(format!("{side} keys must be sorted")));
        }
    }
    Ok(Value::Frame(left.merge_asof(&right, asof)))
}

fn merge_ordered(_: &str, args: &mut Args) -> Result<Value, Failure> {
    let left = args.need(0, "left")?.frame()?;
    let right = args.need(1, "right")?.frame()?;
    let (on, left_on, right_on) =
        (args.texts(2, "on")?, args.texts(3, "left_on")?, args.texts(4, "right_on")?);
    let merge = match (on, left_on, right_on) {
        (Some(on), None, None) => Merge::on(strs(&on)),
        (None, Some(left), Some(right)) => Merge::on_pairs(strs(&left), strs(&right)),
        (None, None, None) => {
            let others = right.columns()?;
            let shared: Vec<String> =
                left.columns()?.into_iter().filter(|label| others.contains(label)).collect();
            Merge::on(strs(&shared))
        }
        _ => return Err(Failure::new("MergeError", "either on, or left_on and right_on")),
    };
    let fill = args.given(7, "fill_method").map(|fill| fill.text()).transpose()?;
    let merge = match args.texts(8, "suffixes")?.as_deref() {
        Some([left, right]) => merge.suffixes(left, right),
        _ => merge,
    };
    let how = args.choice(9, "how", &["outer", "inner", "left", "right"])?;
    if how != "outer" {
        return Err(Failure::missing("merge_ordered: only how='outer' is implemented"));
    }
    Ok(Value::Frame(match fill.as_deref() {
        None => left.merge_ordered(&right, merge),
        Some("ffill") => left.merge_ordered_filled(&right, merge),
        Some(other) => {
            return Err(Failure::value(format!("fill_method must be 'ffill' or None, not {other:?}")));
        }
    }))
}

/// Columns of frames and series side by side: `concat` with `axis=1`.
pub(super) fn side_by_side(
    parts: Vec<Value>,
    join: &str,
    ignore_index: bool,
    keys: Option<Vec<String>>,
) -> Result<Value, Failure> {
    let mut frames = Vec::new();
    let mut unnamed = 0;
    for (at, part) in parts.into_iter().enumerate() {
        frames.push(match part {
            Value::Series(series) => {
                let key = keys.as_ref().and_then(|keys| keys.get(at)).cloned();
                let name = key.or_else(|| series.name().map(str::to_owned)).unwrap_or_else(|| {
                    unnamed += 1;
                    (unnamed - 1).to_string()
                });
                series.rename(&name).to_frame()
            }
            other if keys.is_none() => other.frame()?,
            _ => return Err(Failure::missing("keys of frames side by side make levels of labels")),
        });
    }
    if ignore_index {
        let mut count = 0;
        frames = frames
            .into_iter()
            .map(|frame| {
                let labels: Vec<String> =
                    frame.columns()?.iter().enumerate().map(|(at, _)| (count + at).to_string()).collect();
                count += labels.len();
                Ok(frame.set_columns(strs(&labels)))
            })
            .collect::<Result<Vec<_>, Failure>>()?;
    }
    let kind = if join == "inner" { JoinKind::Inner } else { JoinKind::Outer };
    Ok(Value::Frame(DataFrame::concat_columns(&frames, kind)))
}
