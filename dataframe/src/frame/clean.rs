//! Missing values, duplicates, types.

use super::{DataFrame, Frame, named};
use crate::error::{Error, Result};
use crate::frame::series::{Series, cast_down, text_of_lengths};
use crate::promotion::unified;
use crate::value::Value;
use arrow::datatypes::DataType;
use datafusion::common::ScalarValue;
use datafusion::functions::expr_fn::{coalesce, to_char};
use datafusion::logical_expr::expr_fn::{cast, when};
use datafusion::logical_expr::{Expr, lit};

impl DataFrame {
    /// The frame with a value in place of missing ones, in the columns whose type takes it.
    #[track_caller]
    pub fn fillna(&self, value: impl Into<Value>) -> DataFrame {
        let value = value.into();
        self.then(|frame| {
            let filled = frame.columns.iter().map(|column| {
                let fits = takes(&frame.dtype(column)?, &value.dtype());
                let expr = if fits {
                    let (own, value) = unified(frame.plan.schema(), named(column), lit(value.0.clone()))?;
                    coalesce(vec![own, value])
                } else {
                    named(column)
                };
                Ok((column.clone(), expr))
            });
            frame.project(filled.collect::<Result<_>>()?)
        })
    }

    /// The rows without a missing value in any column.
    #[track_caller]
    pub fn dropna(&self) -> DataFrame {
        let labels = self.columns().unwrap_or_default();
        self.dropna_in(labels.iter().map(String::as_str))
    }

    /// The rows without a missing value in these columns.
    #[track_caller]
    pub fn dropna_in<'a>(&self, labels: impl IntoIterator<Item = &'a str>) -> DataFrame {
        self.with_values(labels, |present| present.into_iter().reduce(Expr::and))
    }

    /// The rows with a value in at least one of these columns.
    #[track_caller]
    pub fn dropna_all_in<'a>(&self, labels: impl IntoIterator<Item = &'a str>) -> DataFrame {
        self.with_values(labels, |present| Some(present.into_iter().reduce(Expr::or).unwrap_or(lit(false))))
    }

    /// The rows with at least so many values in these columns; pandas' `dropna` with `thresh`.
    ///
    /// ```
    /// use tharsis_dataframe::{DataFrame, Series};
    /// let a = Series::from_values("a", vec![Some(1_i64), None, Some(3)]).to_frame();
    /// let frame = a.assign("b", a.col("a").mask(&a.col("a").gt(2), tharsis_dataframe::Value::missing()));
    /// assert_eq!(frame.dropna_below(1, ["a", "b"]).len()?, 2);
    /// assert_eq!(frame.dropna_below(2, ["a", "b"]).len()?, 1);
    /// # Ok::<(), tharsis_dataframe::Error>(())
    /// ```
    #[track_caller]
    pub fn dropna_below<'a>(&self, values: i64, labels: impl IntoIterator<Item = &'a str>) -> DataFrame {
        self.with_values(labels, |present| {
            let counts = present.into_iter().map(|present| cast(present, DataType::Int64));
            Some(counts.reduce(|sum, one| sum + one).unwrap_or(lit(0_i64)).gt_eq(lit(values)))
        })
    }

    /// The rows for which a condition on which of these columns have a value holds; without one, all rows.
    #[track_caller]
    fn with_values<'a>(
        &self,
        labels: impl IntoIterator<Item = &'a str>,
        condition: impl FnOnce(Vec<Expr>) -> Option<Expr>,
    ) -> DataFrame {
        let labels: Vec<&str> = labels.into_iter().collect();
        self.then(|frame| {
            labels.iter().try_for_each(|label| frame.check(label))?;
            let present = labels.iter().map(|label| named(label).is_not_null()).collect();
            let Some(kept) = condition(present) else { return Ok(frame.clone()) };
            let frame = frame.with_index()?;
            let plan = frame.builder().filter(kept)?.build()?;
            Ok(Frame { plan, ..frame })
        })
    }

    /// Whether each value is missing.
    #[track_caller]
    pub fn isna(&self) -> DataFrame {
        self.map_columns(|column| Ok(column.is_null()))
    }

    /// Whether each value is there.
    #[track_caller]
    pub fn notna(&self) -> DataFrame {
        self.map_columns(|column| Ok(column.is_not_null()))
    }

    /// The frame with columns of other types, where the pairs have one.
    #[track_caller]
    pub fn astype<'a>(&self, types: impl IntoIterator<Item = (&'a str, DataType)>) -> DataFrame {
        let types: Vec<(&str, DataType)> = types.into_iter().collect();
        self.then(|frame| {
            types.iter().try_for_each(|(label, _)| frame.check(label))?;
            let changed = frame.columns.iter().map(|column| {
                let to = types.iter().find(|(label, _)| label == column);
                let expr = match to {
                    Some((_, dtype)) => {
                        let from = frame.dtype(column)?;
                        converted(named(column), &from, dtype, || self.col(column))?
                    }
                    None => named(column),
                };
                Ok((column.clone(), expr))
            });
            frame.project(changed.collect::<Result<_>>()?)
        })
    }

    /// The frame with each column replaced by an expression of it.
    #[track_caller]
    pub(crate) fn map_columns(&self, step: impl Fn(Expr) -> Result<Expr>) -> DataFrame {
        self.then(|frame| {
            let columns = frame.columns.iter().map(|column| Ok((column.clone(), step(named(column))?)));
            frame.project(columns.collect::<Result<_>>()?)
        })
    }
}

impl Series {
    /// The values with another type.
    #[track_caller]
    pub fn astype(&self, dtype: DataType) -> Series {
        match self.dtype() {
            Ok(from) => self.map_expr(|expr| converted(expr, &from, &dtype, || self.clone())),
            Err(_) => self.clone(),
        }
    }

    /// The values that are there.
    #[track_caller]
    pub fn dropna(&self) -> Series {
        let label = self.label();
        let kept = self.to_frame().dropna().col(&label);
        match self.name() {
            Some(name) => kept.rename(name),
            None => kept,
        }
    }
}

/// A column reference by its exact name.
pub(crate) fn named_column(column: &str) -> datafusion::common::Column {
    datafusion::common::Column::new_unqualified(column)
}

/// Values of one type as another. Truth values have Python's names as texts; times and durations have one
/// form in a series.
fn converted(expr: Expr, from: &DataType, to: &DataType, series: impl FnOnce() -> Series) -> Result<Expr> {
    if matches!(from, DataType::Timestamp(..)) && crate::value::is_text(to) {
        return Ok(cast(to_char(expr, lit(series().time_form()?)), to.clone()));
    }
    if matches!(from, DataType::Duration(_)) && crate::value::is_text(to) {
        return Ok(cast(text_of_lengths(expr, series().length_form()?)?, to.clone()));
    }
    if from.is_numeric() && *to == DataType::Boolean {
        // A missing number is not a number, and that is not zero.
        return Ok(coalesce(vec![cast(expr, to.clone()), lit(true)]));
    }
    if *from == DataType::Boolean && crate::value::is_text(to) {
        let text = |text: &str| cast(lit(text), to.clone());
        let missing = cast(lit(ScalarValue::Null), to.clone());
        let known = when(expr.clone(), text("True")).otherwise(text("False"))?;
        return Ok(when(expr.is_null(), missing).otherwise(known)?);
    }
    if crate::value::is_text(from) && *to == DataType::Float64 {
        // Texts have a second zero, and one for what is no number.
        Ok(crate::functions::arithmetic::present(cast(expr, to.clone())))
    } else {
        Ok(cast_down(expr, from, to))
    }
}

/// Whether a column of one type can hold values of another.
pub(super) fn takes(column: &DataType, value: &DataType) -> bool {
    let text = crate::value::is_text;
    (column.is_numeric() && value.is_numeric()) || (text(column) && text(value)) || column == value
}

/// The type for a pandas name of a type.
///
/// ```
/// use tharsis_dataframe::dtype_named;
/// assert!(dtype_named("float64").is_ok());
/// assert_eq!(dtype_named("flaot64").unwrap_err().class(), "TypeError");
/// ```
///
/// # Errors
/// `TypeError` for a name that is none.
pub fn dtype_named(name: &str) -> Result<DataType> {
    if name == "category" {
        return Ok(DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8)));
    }
    const NAMES: [(&str, DataType); 17] = [
        ("int64", DataType::Int64),
        ("int32", DataType::Int32),
        ("int16", DataType::Int16),
        ("int8", DataType::Int8),
        ("uint64", DataType::UInt64),
        ("uint32", DataType::UInt32),
        ("uint16", DataType::UInt16),
        ("uint8", DataType::UInt8),
        ("float64", DataType::Float64),
        ("float32", DataType::Float32),
        ("bool", DataType::Boolean),
        ("str", DataType::Utf8),
        ("object", DataType::Utf8),
        ("string", DataType::Utf8),
        ("int", DataType::Int64),
        ("float", DataType::Float64),
        ("datetime64[ns]", DataType::Timestamp(arrow::datatypes::TimeUnit::Nanosecond, None)),
    ];
    let found = NAMES.iter().find(|(known, _)| *known == name).map(|(_, dtype)| dtype.clone());
    found.ok_or_else(|| {
        let near = crate::error::nearest(name, NAMES.iter().map(|(known, _)| *known));
        let hint = near.map(|near| format!("; did you mean {near:?}?")).unwrap_or_default();
        Error::Type(format!("data type {name:?} not understood{hint}"))
    })
}
