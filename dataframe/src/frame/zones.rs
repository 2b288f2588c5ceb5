//! Labels that are times: their zones, and the last rows before them.

use super::near::AsOf;
use super::{DataFrame, Frame, Index, named};
use crate::error::{Error, Result};
use crate::frame::labels::array_of;
use crate::frame::series::{Series, Zone, in_zone};
use crate::value::Value;
use arrow::array::RecordBatch;
use arrow::datatypes::DataType;
use datafusion::logical_expr::Expr;

impl Frame {
    fn zoned(&self, zone: Zone<'_>) -> Result<Frame> {
        let level = self.times_of_index()?;
        let dtype = self.dtype(&level.column)?;
        self.with_label(0, |label| in_zone(label, &dtype, zone))
    }
}

impl DataFrame {
    /// The rows whose labels are times of a clock, with points in time by the clock's zone instead;
    /// `TypeError` for labels that are no times, or that have a zone.
    ///
    /// ```
    /// use tharsis_dataframe::{DataFrame, date_range};
    /// let frame = date_range("2024-07-01T12:00", 1, "D").rename("t").to_frame().set_index(["t"]);
    /// let utc = frame.tz_localize("Europe/Oslo").tz_convert("UTC").tz_remove();
    /// assert_eq!(utc.index().to_series().dt().hour().values::<i64>()?, [Some(10)]);
    /// # Ok::<(), tharsis_dataframe::Error>(())
    /// ```
    #[track_caller]
    pub fn tz_localize(&self, zone: &str) -> DataFrame {
        self.then(|frame| frame.zoned(Zone::Localize(zone)))
    }

    /// The rows whose labels are points in time, by the clock of another zone; `TypeError` for labels
    /// without a zone.
    #[track_caller]
    pub fn tz_convert(&self, zone: &str) -> DataFrame {
        self.then(|frame| frame.zoned(Zone::Convert(zone)))
    }

    /// The rows whose labels are points in time, with what the clock of their zone shows instead.
    #[track_caller]
    pub fn tz_remove(&self) -> DataFrame {
        self.then(|frame| frame.zoned(Zone::Remove))
    }

    /// For each of these labels the last row at or before it that misses no value; missing values if there
    /// is none. `ValueError` if the labels of the frame do not grow, which is looked at at once; they are
    /// numbers or times.
    ///
    /// ```
    /// use tharsis_dataframe::DataFrame;
    /// let frame = DataFrame::from_columns([("n", vec![Some(1), None, Some(3)].into())]);
    /// assert_eq!(frame.asof([1, 2]).col("n").values::<i64>()?, [Some(1), Some(3)]);
    /// # Ok::<(), tharsis_dataframe::Error>(())
    /// ```
    #[track_caller]
    pub fn asof<T: Into<Value>>(&self, labels: impl IntoIterator<Item = T>) -> DataFrame {
        let columns = self.columns().unwrap_or_default();
        self.asof_in(columns.iter().map(String::as_str), labels)
    }

    /// As [`DataFrame::asof`], for rows that miss no value of these columns.
    #[track_caller]
    pub fn asof_in<'a, T: Into<Value>>(
        &self,
        columns: impl IntoIterator<Item = &'a str>,
        labels: impl IntoIterator<Item = T>,
    ) -> DataFrame {
        let columns: Vec<&str> = columns.into_iter().collect();
        let labels: Vec<Value> = labels.into_iter().map(Into::into).collect();
        self.then(|frame| {
            if !frame.index.is_empty() && !self.index().is_monotonic_increasing()? {
                return Err(Error::Value("asof requires a sorted index".to_owned()));
            }
            frame.rows_before(&columns, &labels)
        })
    }
}

impl Frame {
    fn rows_before(&self, present: &[&str], labels: &[Value]) -> Result<Frame> {
        const WHERE: &str = "__tharsis_where";
        const AT: &str = "__tharsis_at";
        present.iter().try_for_each(|column| self.check(column))?;
        let frame = self.with_index()?;
        let [level] = &frame.index[..] else {
            return Err(Error::NotImplemented("the last row before labels of several levels".to_owned()));
        };
        let dtype = frame.dtype(&level.column)?;
        let whole = dtype.is_integer() && labels.iter().any(|label| label.as_i64().is_none());
        let dtype = if whole { DataType::Float64 } else { dtype };
        let batch = RecordBatch::try_from_iter_with_nullable([(WHERE, array_of(labels, &dtype)?, true)])?;
        let wanted = DataFrame::from_batches(batch.schema(), vec![batch]);
        let there = present.iter().map(|column| named(column).is_not_null()).reduce(Expr::and);
        let mut plan = frame.builder();
        if let Some(there) = there {
            plan = plan.filter(there)?;
        }
        let columns = frame.columns.iter().map(|column| (column.clone(), named(column)));
        let label = datafusion::logical_expr::expr_fn::cast(named(&level.column), dtype);
        let columns = columns.chain([(AT.to_owned(), label)]).collect();
        let right = Frame { plan: plan.build()?, index: Vec::new(), ..frame.clone() }.project(columns)?;
        let found = wanted.frame()?.nearest_rows(&right, &AsOf::on_pair(WHERE, AT))?;
        let index = vec![super::Level { column: WHERE.to_owned(), name: None }];
        let shown = self.columns.iter().map(|column| (column.clone(), named(column))).collect();
        Frame { index, ..found }.project(shown)
    }
}

impl Series {
    /// The values whose labels are times of a clock, as [`DataFrame::tz_localize`].
    #[track_caller]
    pub fn tz_localize(&self, zone: &str) -> Series {
        self.through(|frame, _| frame.tz_localize(zone))
    }

    /// The values whose labels are points in time, as [`DataFrame::tz_convert`].
    #[track_caller]
    pub fn tz_convert(&self, zone: &str) -> Series {
        self.through(|frame, _| frame.tz_convert(zone))
    }

    /// The values whose labels are points in time, as [`DataFrame::tz_remove`].
    #[track_caller]
    pub fn tz_remove(&self) -> Series {
        self.through(|frame, _| frame.tz_remove())
    }
}

impl Index {
    /// Labels that are times of a clock as points in time by its zone.
    #[track_caller]
    pub fn tz_localize(&self, zone: &str) -> Index {
        self.changed(|label| label.dt().tz_localize(zone))
    }

    /// Labels that are points in time by the clock of another zone.
    #[track_caller]
    pub fn tz_convert(&self, zone: &str) -> Index {
        self.changed(|label| label.dt().tz_convert(zone))
    }

    /// This label if it is there, else the last one before it; missing if there is none. `ValueError` if the
    /// labels do not grow.
    ///
    /// ```
    /// use tharsis_dataframe::Index;
    /// assert_eq!(Index::from_values("k", vec![10, 20]).asof(15)?.as_i64(), Some(10));
    /// # Ok::<(), tharsis_dataframe::Error>(())
    /// ```
    ///
    /// # Errors
    /// The error that the index carries, one of its run, or `ValueError`.
    pub fn asof(&self, label: impl Into<Value>) -> Result<Value> {
        if !self.is_monotonic_increasing()? {
            return Err(Error::Value("asof requires a sorted index".to_owned()));
        }
        let level = self.single();
        let before = self.filter(&level.le(label.into()));
        before.agg(super::Aggregate::Max)
    }
}
