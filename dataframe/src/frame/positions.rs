//! Rows by their positions: pandas' `iloc`, `iat` and `take`, and values given for each row.

use super::labels::{Absent, WANTED};
use super::{DataFrame, Frame, Level, OrderKey, named};
use crate::error::{Error, Result};
use crate::stage::row_number::Numbering;
use crate::value::Value;
use arrow::array::{ArrayRef, Int64Array, RecordBatch};
use datafusion::common::JoinType;
use datafusion::logical_expr::{Expr, lit};
use std::sync::Arc;

/// The hidden columns of the levels of an index that positions stand for.
const FORMER: &str = "__tharsis_former";

impl Frame {
    /// The rows at these places, in the order of the places.
    fn at_places(&self, places: &[usize]) -> Result<Frame> {
        let numbers = Int64Array::from_iter_values(places.iter().map(|place| *place as i64));
        let wanted = RecordBatch::try_from_iter_with_nullable([(WANTED, Arc::new(numbers) as _, true)])?;
        let wanted = DataFrame::from_batches(wanted.schema(), vec![wanted]);
        let (wide, index) = self.by_position()?;
        let found = wide.by_labels(wanted.frame()?, &Absent::LeftOut)?;
        Ok(Frame { index, columns: self.columns.clone(), ..found })
    }

    /// The same rows with an index of positions, whose former levels are hidden columns; and these.
    pub(super) fn by_position(&self) -> Result<(Frame, Vec<Level>)> {
        let frame = self.with_index()?;
        let levels = frame.index.iter().enumerate().map(|(at, level)| {
            (Level { column: format!("{FORMER}_{at}"), name: level.name.clone() }, named(&level.column))
        });
        let levels: Vec<(Level, Expr)> = levels.collect();
        let columns = frame.columns.iter().map(|label| (label.clone(), named(label)));
        let hidden = levels.iter().map(|(level, expr)| (level.column.clone(), expr.clone()));
        let columns = columns.chain(hidden).collect();
        let wide = Frame { index: Vec::new(), ..frame.clone() }.project(columns)?;
        Ok((wide, levels.into_iter().map(|(level, _)| level).collect()))
    }

    /// The frame with arrays of as many values as it has rows as hidden columns, by position.
    pub(super) fn with_arrays(&self, arrays: Vec<(String, ArrayRef)>) -> Result<Frame> {
        let names: Vec<String> = arrays.iter().map(|(name, _)| name.clone()).collect();
        let batch = RecordBatch::try_from_iter_with_nullable(
            arrays.into_iter().map(|(name, array)| (name, array, true)),
        )?;
        let given = DataFrame::from_batches(batch.schema(), vec![batch]);
        let (wide, index) = self.by_position()?;
        let paired = wide.paired(given.frame()?, JoinType::Left)?;
        let mut columns = Vec::new();
        for label in &wide.columns {
            columns.extend(paired.left(label).map(|expr| (label.clone(), expr)));
        }
        for name in &names {
            columns.extend(paired.right(name).map(|expr| (name.clone(), expr)));
        }
        let frame = paired.frame.project(columns)?;
        Ok(Frame { index, columns: self.columns.clone(), ..frame })
    }
}

impl DataFrame {
    /// The place of a row, counted from the end if it is negative; `IndexError` if there is none. It counts
    /// the rows if need be.
    fn place(&self, position: i64, rows: &mut Option<usize>) -> Result<usize> {
        let count = match rows {
            Some(count) => *count,
            None => *rows.insert(self.len()?),
        };
        let place = if position < 0 { position + count as i64 } else { position };
        match usize::try_from(place) {
            Ok(place) if place < count => Ok(place),
            _ => Err(Error::Index(format!("position {position} is out of bounds: there are {count} rows"))),
        }
    }

    /// The row at a position, from the end if it is negative; `IndexError` if there is none, which is looked
    /// at at once.
    ///
    /// ```
    /// use tharsis_dataframe::DataFrame;
    /// let frame = DataFrame::from_columns([("n", vec![1, 2, 3].into())]);
    /// assert_eq!(frame.iloc(-1).col("n").values::<i64>()?, [Some(3)]);
    /// assert_eq!(frame.iloc(3).check().unwrap_err().class(), "IndexError");
    /// assert_eq!(frame.iloc_each([2, 0]).col("n").values::<i64>()?, [Some(3), Some(1)]);
    /// # Ok::<(), tharsis_dataframe::Error>(())
    /// ```
    #[track_caller]
    pub fn iloc(&self, position: i64) -> DataFrame {
        match self.place(position, &mut None) {
            Ok(place) => self.slice(place, place + 1),
            Err(error) => self.then(|_| Err(error)),
        }
    }

    /// The rows at these positions, in this order. It counts the rows at once, which runs the plan.
    #[track_caller]
    pub fn iloc_each(&self, positions: impl IntoIterator<Item = i64>) -> DataFrame {
        let mut rows = None;
        let places: Result<Vec<usize>> =
            positions.into_iter().map(|position| self.place(position, &mut rows)).collect();
        self.then(|frame| frame.at_places(&places?))
    }

    /// Every so many rows from one position to before another, as slices of Python: negative bounds count
    /// from the end, a negative step goes backwards. It counts the rows if a bound or the step is negative.
    #[track_caller]
    pub fn iloc_step(&self, from: Option<i64>, to: Option<i64>, step: i64) -> DataFrame {
        self.then(|frame| {
            if step == 0 {
                return Err(Error::Value("slice step cannot be zero".to_owned()));
            }
            let counts = step < 0 || [from, to].into_iter().flatten().any(|bound| bound < 0);
            let rows = if counts { self.len()? as i64 } else { i64::MAX };
            let (start, stop) = python_slice(from, to, step, rows);
            frame.every(start, stop, step)
        })
    }

    /// The value in a row and a column, both by position; `IndexError` if there is none.
    ///
    /// # Errors
    /// The error that the frame carries, one of its run, or `IndexError`.
    pub fn iat(&self, row: i64, column: i64) -> Result<Value> {
        let labels = self.columns()?;
        let at = if column < 0 { column + labels.len() as i64 } else { column };
        let label = usize::try_from(at).ok().and_then(|at| labels.get(at));
        let label = label.ok_or_else(|| {
            Error::Index(format!("column {column} is out of bounds: there are {}", labels.len()))
        })?;
        self.select([label.as_str()]).iloc(row).collect()?.value(0, label)
    }
}

/// First and last place of a slice, by Python's rules.
fn python_slice(from: Option<i64>, to: Option<i64>, step: i64, rows: i64) -> (i64, i64) {
    let bound = |bound: i64, low: i64, high: i64| {
        (if bound < 0 { bound.saturating_add(rows) } else { bound }).clamp(low, high)
    };
    if step > 0 {
        (from.map_or(0, |from| bound(from, 0, rows)), to.map_or(rows, |to| bound(to, 0, rows)))
    } else {
        (from.map_or(rows - 1, |from| bound(from, -1, rows - 1)), to.map_or(-1, |to| bound(to, -1, rows - 1)))
    }
}

impl Frame {
    /// Every so many rows between two places.
    fn every(&self, start: i64, stop: i64, step: i64) -> Result<Frame> {
        if step == 1 {
            return self.with_index()?.limited(start as usize, (stop - start).max(0) as usize);
        }
        let indexed = self.with_index()?;
        let (frame, place) = indexed.numbered("place", Numbering::Exact)?;
        let (low, high) = if step > 0 { (start, stop) } else { (stop + 1, start + 1) };
        let inside = named(&place).gt_eq(lit(low)).and(named(&place).lt(lit(high)));
        let apart = (named(&place) - lit(start)) % lit(step);
        let plan = frame.builder().filter(inside.and(apart.eq(lit(0_i64))))?.build()?;
        let order = vec![OrderKey { ascending: step > 0, ..OrderKey::growing(&place) }];
        Ok(Frame { plan, order, ..frame })
    }
}
