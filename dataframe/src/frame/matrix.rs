//! Frames as matrices: correlations of columns, products, rows as columns.

use super::align::join_type;
use super::operators::labelled;
use super::pivot::label_text;
use super::summary::unfolded;
use super::window::Step;
use super::{DataFrame, Frame, JoinKind, Rank, named};
use crate::error::{Error, Result};
use crate::execute::{Executor, default_executor};
use crate::frame::series::Series;
use crate::functions::arithmetic::present;
use crate::promotion::common_type;
use crate::value::Value;
use arrow::array::{ArrayRef, RecordBatch, StringArray};
use arrow::compute::{cast as cast_array, concat};
use arrow::datatypes::{DataType, Field, Schema};
use datafusion::functions::expr_fn::{greatest, least, sqrt};
use datafusion::functions_aggregate::expr_fn as functions;
use datafusion::logical_expr::expr_fn::{cast, when};
use datafusion::logical_expr::{Expr, LogicalPlanBuilder, lit};
use std::sync::Arc;

/// Most columns that rows become.
const MOST_COLUMNS: usize = 10_000;

/// The measure of how two columns go together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Correlation {
    /// Of the values.
    Pearson,
    /// Of the ranks of the values.
    Spearman,
}

/// Both values of a pair where both are there.
fn pair(left: &Expr, right: &Expr) -> Result<(Expr, Expr)> {
    let float = |expr: &Expr| cast(expr.clone(), DataType::Float64);
    let both = |own: &Expr, other: &Expr| when(other.clone().is_not_null(), float(own)).end();
    Ok((both(left, right)?, both(right, left)?))
}

/// An aggregate of pairs that is there from a number of pairs on.
fn from_pairs(aggregate: Expr, left: Expr, least_pairs: usize) -> Result<Expr> {
    Ok(when(functions::count(left).gt_eq(lit(least_pairs as i64)), aggregate).end()?)
}

pub(super) fn covariance(left: &Expr, right: &Expr, least_pairs: usize) -> Result<Expr> {
    let (left, right) = pair(left, right)?;
    let made = functions::covar_samp(left.clone(), right);
    from_pairs(made, left, least_pairs.max(2))
}

pub(super) fn correlation(left: &Expr, right: &Expr, least_pairs: usize) -> Result<Expr> {
    let (left, right) = pair(left, right)?;
    let spread = sqrt(functions::var_sample(left.clone())) * sqrt(functions::var_sample(right.clone()));
    let made = present(functions::covar_samp(left.clone(), right) / spread);
    let bounded = when(made.clone().is_not_null(), least(vec![greatest(vec![made, lit(-1.0)]), lit(1.0)]));
    from_pairs(bounded.end()?, left, least_pairs.max(2))
}

/// The ranks of values where the other ones are there.
fn ranks(left: &Expr, right: &Expr) -> Result<(Expr, Expr)> {
    let (left, right) = pair(left, right)?;
    let rank = |values: Expr| {
        super::window::Over::default().step(&Step::Rank(Rank::default()), values, &DataType::Float64)
    };
    Ok((rank(left)?, rank(right)?))
}

impl Frame {
    /// The labels of the columns with numbers.
    fn numeric(&self) -> Result<Vec<String>> {
        let mut labels = Vec::new();
        for label in &self.columns {
            let dtype = self.dtype(label)?;
            if dtype.is_numeric() || dtype == DataType::Boolean {
                labels.push(label.clone());
            }
        }
        Ok(labels)
    }

    /// A measure of each pair of columns: a row and a column for each.
    fn pairs(&self, ranked: bool, measure: impl Fn(&Expr, &Expr) -> Result<Expr>) -> Result<Frame> {
        let labels = self.numeric()?;
        let (mut sides, mut places) = (Vec::new(), Vec::new());
        for (row, left) in labels.iter().enumerate() {
            for (column, right) in labels.iter().enumerate().skip(row) {
                let (left, right) = (named(left), named(right));
                let (left, right) = if ranked { ranks(&left, &right)? } else { (left, right) };
                sides.extend([left, right]);
                places.push((row, column));
            }
        }
        let (lifted, sides) = self.lifted(sides)?;
        let mut aggregates = Vec::new();
        for (number, both) in sides.chunks(2).enumerate() {
            aggregates.push(measure(&both[0], &both[1])?.alias(cell(number)));
        }
        let row = lifted.builder().aggregate(Vec::<Expr>::new(), aggregates)?.build()?;
        let place = |row: usize, column: usize| {
            let sought = (row.min(column), row.max(column));
            places.iter().position(|place| *place == sought).unwrap_or(0)
        };
        let of_column = |column: usize| (0..labels.len()).map(move |row| (row, column));
        let cells = labels.iter().enumerate().map(|(column, label)| {
            let cells = of_column(column).map(|(row, column)| named(&cell(place(row, column))));
            (label.clone(), cells.collect())
        });
        let cells = cells.collect();
        unfolded(row, labels.clone(), cells)
    }

    /// One aggregate over all rows, with windows in it computed first.
    fn measured(&self, left: Expr, right: Expr, ranked: bool, least_pairs: usize) -> Result<(Frame, Expr)> {
        let (left, right) = if ranked { ranks(&left, &right)? } else { (left, right) };
        let (lifted, mut sides) = self.lifted(vec![left, right])?;
        match (sides.pop(), sides.pop()) {
            (Some(right), Some(left)) => Ok((lifted, correlation(&left, &right, least_pairs)?)),
            _ => Err(Error::Internal("a lost side of a pair".to_owned())),
        }
    }
}

fn cell(number: usize) -> String {
    format!("__tharsis_cell_{number}")
}

impl DataFrame {
    /// The covariance of each pair of columns with numbers, over the rows in which both are there: a row and
    /// a column for each.
    ///
    /// ```
    /// use tharsis_dataframe::{Correlation, DataFrame};
    /// let frame = DataFrame::from_columns([("a", vec![1, 2, 3].into()), ("b", vec![6, 4, 2].into())]);
    /// assert_eq!(frame.cov(1).col("b").values::<f64>()?, [Some(-2.0), Some(4.0)]);
    /// let together = frame.corr(Correlation::Pearson, 1);
    /// assert!((together.at("a", "b")?.as_f64().unwrap_or(0.0) + 1.0).abs() < 1e-12);
    /// # Ok::<(), tharsis_dataframe::Error>(())
    /// ```
    #[track_caller]
    pub fn cov(&self, min_periods: usize) -> DataFrame {
        self.then(|frame| frame.pairs(false, |left, right| covariance(left, right, min_periods)))
    }

    /// The correlation of each pair of columns with numbers, as [`DataFrame::cov`]; missing with fewer than
    /// `min_periods` pairs.
    #[track_caller]
    pub fn corr(&self, method: Correlation, min_periods: usize) -> DataFrame {
        let ranked = method == Correlation::Spearman;
        self.then(|frame| frame.pairs(ranked, |left, right| correlation(left, right, min_periods)))
    }

    /// The correlation of each column with the column of another frame that has its label, over the rows with
    /// equal labels: a row for each label of either, in a column `0`.
    #[track_caller]
    pub fn corrwith(&self, other: &DataFrame) -> DataFrame {
        self.then(|left| {
            let right = other.frame()?;
            let paired = left.paired(right, join_type(JoinKind::Inner)?)?;
            let (of_left, of_right) = (left.numeric()?, right.numeric()?);
            let (shared, alone): (Vec<String>, Vec<String>) =
                of_left.iter().cloned().partition(|label| of_right.contains(label));
            let others = of_right.into_iter().filter(|label| !of_left.contains(label));
            let labels = shared.into_iter().chain(alone).chain(others).collect();
            correlations(&paired.frame, labels, |label| paired.left(label).zip(paired.right(label)))
        })
    }

    /// The correlation of each column with a series, over the rows with equal labels: a row for each label,
    /// in a column `0`.
    #[track_caller]
    pub fn corrwith_series(&self, other: &Series) -> DataFrame {
        self.then(|left| {
            let right = other.rename("right").to_frame();
            let paired = left.paired(right.frame()?, join_type(JoinKind::Inner)?)?;
            let numeric = left.numeric()?;
            correlations(&paired.frame, numeric, |label| paired.left(label).zip(paired.right("right")))
        })
    }

    /// The product with another matrix, whose labels of rows are those of this frame's columns. The other
    /// frame is computed at once.
    ///
    /// ```
    /// use tharsis_dataframe::DataFrame;
    /// let a = DataFrame::from_columns([("x", vec![1, 2].into()), ("y", vec![3, 4].into())]);
    /// let b = DataFrame::from_columns([("s", vec![10, 1].into())]).set_axis(["x", "y"]);
    /// assert_eq!(a.dot(&b).col("s").values::<i64>()?, [Some(13), Some(24)]);
    /// # Ok::<(), tharsis_dataframe::Error>(())
    /// ```
    #[track_caller]
    pub fn dot(&self, other: &DataFrame) -> DataFrame {
        self.then(|frame| {
            let mut columns = Vec::new();
            for label in other.columns()? {
                columns.push((label.clone(), frame.product(&labelled(&other.col(&label))?)?));
            }
            frame.project(columns)
        })
    }

    /// The sum of the columns' products with the values of a series that have their labels.
    #[track_caller]
    pub fn dot_series(&self, other: &Series) -> Series {
        let made = self.frame().and_then(|frame| Ok((Arc::clone(frame), frame.product(&labelled(other)?)?)));
        Series::new(made, None)
    }

    /// Rows as columns, and columns as rows. All values must fit into one type; labels of rows become texts.
    /// It computes the frame at once, and takes at most 10 000 rows.
    ///
    /// ```
    /// use tharsis_dataframe::DataFrame;
    /// let frame = DataFrame::from_columns([("a", vec![1, 2].into()), ("b", vec![3, 4].into())]);
    /// assert_eq!(frame.transpose().columns()?, ["0", "1"]);
    /// assert_eq!(frame.transpose().at("b", "1")?.as_i64(), Some(4));
    /// # Ok::<(), tharsis_dataframe::Error>(())
    /// ```
    #[track_caller]
    pub fn transpose(&self) -> DataFrame {
        self.transpose_on(&*default_executor())
    }

    /// As [`DataFrame::transpose`], computed by an executor.
    #[track_caller]
    pub fn transpose_on(&self, executor: &dyn Executor) -> DataFrame {
        self.then(|frame| {
            let shown = DataFrame::new(frame.with_index());
            let table = shown.head(MOST_COLUMNS + 1).collect_on(executor)?;
            if table.len() > MOST_COLUMNS {
                return Err(Error::Value(format!("more than {MOST_COLUMNS} rows as columns")));
            }
            let types: Vec<DataType> =
                frame.columns.iter().map(|label| frame.dtype(label)).collect::<Result<_>>()?;
            let dtype = common_type(&types)?;
            let [labels] = table.index_arrays() else {
                return Err(Error::NotImplemented("several levels of labels of columns".to_owned()));
            };
            let columns: Vec<ArrayRef> = (frame.columns.iter())
                .map(|label| Ok(cast_array(table.array(label)?, &dtype)?))
                .collect::<Result<_>>()?;
            let mut fields = vec![Field::new("__tharsis_label", DataType::Utf8, true)];
            let mut arrays: Vec<ArrayRef> = vec![Arc::new(StringArray::from(frame.columns.clone()))];
            for row in 0..table.len() {
                let cells: Vec<ArrayRef> = columns.iter().map(|column| column.slice(row, 1)).collect();
                let cells: Vec<_> = cells.iter().map(|cell| &**cell).collect();
                arrays.push(concat(&cells)?);
                fields.push(Field::new(label_text(&Value::from_array(labels, row)?)?, dtype.clone(), true));
            }
            let schema = Arc::new(Schema::new(fields));
            let batch = RecordBatch::try_new(Arc::clone(&schema), arrays)?;
            let made = DataFrame::from_batches(schema, vec![batch]).set_index(["__tharsis_label"]);
            made.unnamed_index().frame().map(|frame| (**frame).clone())
        })
    }
}

/// A correlation for each label; missing where there is no pair of columns.
fn correlations(
    frame: &Frame,
    labels: Vec<String>,
    sides: impl Fn(&str) -> Option<(Expr, Expr)>,
) -> Result<Frame> {
    let mut aggregates = Vec::new();
    for (number, label) in labels.iter().enumerate() {
        let measure = match sides(label) {
            Some((left, right)) => correlation(&left, &right, 1)?,
            None => cast(functions::max(lit(datafusion::common::ScalarValue::Null)), DataType::Float64),
        };
        aggregates.push(measure.alias(cell(number)));
    }
    let row = LogicalPlanBuilder::from(frame.plan.clone()).aggregate(Vec::<Expr>::new(), aggregates)?;
    let cells = (0..labels.len()).map(|number| named(&cell(number))).collect();
    unfolded(row.build()?, labels, vec![("0".to_owned(), cells)])
}

impl Frame {
    /// The sum of all columns' products with numbers of their labels; missing if one is.
    fn product(&self, numbers: &[(String, Value)]) -> Result<Expr> {
        let mut labels: Vec<&String> = numbers.iter().map(|(label, _)| label).collect();
        let mut own: Vec<&String> = self.columns.iter().collect();
        labels.sort();
        own.sort();
        if labels != own {
            return Err(Error::Value("matrices are not aligned".to_owned()));
        }
        let mut sum: Option<Expr> = None;
        for (label, number) in numbers {
            let product = named(label) * lit(number.0.clone());
            sum = Some(match sum {
                None => product,
                Some(sum) => sum + product,
            });
        }
        sum.ok_or_else(|| Error::Value("a product without columns".to_owned()))
    }
}

impl Series {
    /// The values of both series over the rows that both have, and a measure of them.
    fn measure(
        &self,
        other: &Series,
        measure: impl Fn(Frame, Expr, Expr) -> Result<(Frame, Expr)>,
    ) -> Result<Value> {
        let (left, right) = self.align(other, JoinKind::Inner);
        let ((frame, left), (_, right)) = (left.parts()?, right.parts()?);
        let (frame, aggregate) = measure((**frame).clone(), left.clone(), right.clone())?;
        frame.reduce(aggregate, &*default_executor())
    }

    /// The correlation with another series, over the rows with equal labels; missing with fewer pairs.
    ///
    /// # Errors
    /// The error that either carries, or one of their runs.
    pub fn corr(&self, other: &Series, method: Correlation, min_periods: usize) -> Result<Value> {
        if method == Correlation::Spearman {
            let (left, right) = self.align(other, JoinKind::Inner);
            let ((frame, left), (_, right)) = (left.parts()?, right.parts()?);
            let both = vec![("left".to_owned(), left.clone()), ("right".to_owned(), right.clone())];
            let both = DataFrame::new(frame.project(both)).reset_index(true).execute()?;
            let found = both.corr(method, min_periods).collect()?;
            return found.value(0, "right");
        }
        self.measure(other, |frame, left, right| frame.measured(left, right, false, min_periods))
    }

    /// The covariance with another series, over the rows with equal labels; missing with fewer pairs.
    ///
    /// # Errors
    /// The error that either carries, or one of their runs.
    pub fn cov(&self, other: &Series, min_periods: usize) -> Result<Value> {
        self.measure(other, |frame, left, right| Ok((frame, covariance(&left, &right, min_periods)?)))
    }

    /// The correlation of the values with those of some rows before.
    ///
    /// # Errors
    /// The error that the series carries, or one of its run.
    pub fn autocorr(&self, lag: i64) -> Result<Value> {
        self.corr(&self.shift(lag), Correlation::Pearson, 1)
    }

    /// The sum of the products of both series, by equal labels; missing if one of them is.
    ///
    /// # Errors
    /// The error that either carries, or one of their runs.
    pub fn dot(&self, other: &Series) -> Result<Value> {
        let products = self * other;
        if products.hasnans()? { Ok(Value::missing()) } else { products.sum() }
    }
}
