//! Operators of whole frames: with one value, with a frame, or with a series whose labels are columns.

use super::align::{filled_pair, missing_like, united};
use super::{DataFrame, Frame, named};
use crate::error::{Error, Result};
use crate::frame::series::{Operator, Series, operator_traits};
use crate::value::Value;
use arrow::datatypes::DataType;
use datafusion::common::{JoinType, ScalarValue};
use datafusion::logical_expr::expr_fn::cast;
use datafusion::logical_expr::{Expr, lit};
use std::ops;

/// The other side of an operator of a frame.
#[derive(Clone, Debug)]
pub enum FrameOperand {
    /// A frame; rows and columns with equal labels belong together.
    Frame(DataFrame),
    /// A series; its labels are those of columns.
    Series(Series),
    /// One value.
    Value(Value),
}

impl From<&DataFrame> for FrameOperand {
    fn from(frame: &DataFrame) -> FrameOperand {
        FrameOperand::Frame(frame.clone())
    }
}

impl From<DataFrame> for FrameOperand {
    fn from(frame: DataFrame) -> FrameOperand {
        FrameOperand::Frame(frame)
    }
}

impl From<&Series> for FrameOperand {
    fn from(series: &Series) -> FrameOperand {
        FrameOperand::Series(series.clone())
    }
}

impl From<Series> for FrameOperand {
    fn from(series: Series) -> FrameOperand {
        FrameOperand::Series(series)
    }
}

impl<T: Into<Value>> From<T> for FrameOperand {
    fn from(value: T) -> FrameOperand {
        FrameOperand::Value(value.into())
    }
}

impl DataFrame {
    /// An operator of each value and the other side; `a + b` is `a.operate(Operator::Add, b)`.
    ///
    /// With a frame, rows and columns are those of both; with a series, each column meets the value that has
    /// its label, which computes the series at once.
    ///
    /// ```
    /// use tharsis_dataframe::{DataFrame, Operator};
    /// let frame = DataFrame::from_columns([("a", vec![1, 2].into()), ("b", vec![3, 4].into())]);
    /// let sums = &frame + &frame.agg(tharsis_dataframe::Aggregate::Min).col("0");
    /// assert_eq!(sums.col("b").values::<i64>()?, [Some(6), Some(7)]);
    /// let large = frame.operate(Operator::Gt, 1);
    /// assert_eq!(large.col("a").values::<bool>()?, [Some(false), Some(true)]);
    /// # Ok::<(), tharsis_dataframe::Error>(())
    /// ```
    #[track_caller]
    pub fn operate(&self, operator: Operator, other: impl Into<FrameOperand>) -> DataFrame {
        let other = other.into();
        self.then(|frame| frame.operated(operator, &other, None, false))
    }

    /// As [`DataFrame::operate`], with a value where exactly one side is missing.
    #[track_caller]
    pub fn operate_filled(
        &self,
        operator: Operator,
        other: impl Into<FrameOperand>,
        fill: impl Into<Value>,
    ) -> DataFrame {
        let (other, fill) = (other.into(), fill.into());
        self.then(|frame| frame.operated(operator, &other, Some(&fill), false))
    }

    /// An operator of each column and a series with labels of rows; pandas' `axis=0`.
    #[track_caller]
    pub fn operate_rows(&self, operator: Operator, other: &Series) -> DataFrame {
        self.then(|frame| {
            let (others, expr) = other.parts()?;
            let right = others.project(vec![("right".to_owned(), expr.clone())])?;
            let paired = frame.paired(&right, JoinType::Full)?;
            let columns = frame.columns.iter().map(|label| {
                let lost = || Error::Internal("a lost column".to_owned());
                let left = paired.left(label).ok_or_else(lost)?;
                let right = paired.right("right").ok_or_else(lost)?;
                Ok((label.clone(), operator.expr(paired.frame.plan.schema(), left, right)?))
            });
            paired.frame.project(columns.collect::<Result<_>>()?)
        })
    }

    /// An operator whose left side is one value and whose right side are the values of this frame.
    #[track_caller]
    pub fn operate_reversed(&self, operator: Operator, left: impl Into<FrameOperand>) -> DataFrame {
        let left = left.into();
        self.then(|frame| frame.operated(operator, &left, None, true))
    }

    /// As [`DataFrame::operate_filled`], with the other side first.
    #[track_caller]
    pub fn operate_reversed_filled(
        &self,
        operator: Operator,
        left: impl Into<FrameOperand>,
        fill: impl Into<Value>,
    ) -> DataFrame {
        let (left, fill) = (left.into(), fill.into());
        self.then(|frame| frame.operated(operator, &left, Some(&fill), true))
    }

    /// The quotient rounded down, as Python's `//`.
    #[track_caller]
    pub fn floordiv(&self, other: impl Into<FrameOperand>) -> DataFrame {
        self.operate(Operator::FloorDiv, other)
    }

    /// The power, as Python's `**`.
    #[track_caller]
    pub fn pow(&self, other: impl Into<FrameOperand>) -> DataFrame {
        self.operate(Operator::Pow, other)
    }
}

macro_rules! comparisons {
    ($($(#[$doc:meta])* $name:ident $operator:ident),*) => {
        impl DataFrame {
            $($(#[$doc])*
            #[track_caller]
            pub fn $name(&self, other: impl Into<FrameOperand>) -> DataFrame {
                self.operate(Operator::$operator, other)
            })*
        }
    };
}

comparisons!(
    /// Whether each value is greater.
    gt Gt,
    /// Whether each value is greater or equal.
    ge Ge,
    /// Whether each value is less.
    lt Lt,
    /// Whether each value is less or equal.
    le Le,
    /// Whether each value is equal; a missing value equals nothing.
    eq Eq,
    /// Whether each value differs; a missing value differs from all.
    ne Ne
);

operator_traits!(
    DataFrame, FrameOperand;
    Add add Add, Sub sub Sub, Mul mul Mul, Div div Div, Rem rem Rem,
    BitAnd bitand And, BitOr bitor Or, BitXor bitxor Xor
);

macro_rules! reversed {
    ($($trait:ident $method:ident $operator:ident),*) => {
        $(impl ops::$trait<&Series> for Value {
            type Output = Series;

            #[track_caller]
            fn $method(self, right: &Series) -> Series {
                right.filled_with(self).operate(Operator::$operator, right)
            }
        }

        impl ops::$trait<&DataFrame> for Value {
            type Output = DataFrame;

            #[track_caller]
            fn $method(self, right: &DataFrame) -> DataFrame {
                right.operate_reversed(Operator::$operator, self)
            }
        })*
    };
}

reversed!(
    Add add Add, Sub sub Sub, Mul mul Mul, Div div Div, Rem rem Rem,
    BitAnd bitand And, BitOr bitor Or, BitXor bitxor Xor
);

impl ops::Neg for &DataFrame {
    type Output = DataFrame;

    #[track_caller]
    fn neg(self) -> DataFrame {
        self.each_column(|column| -column)
    }
}

impl ops::Not for &DataFrame {
    type Output = DataFrame;

    #[track_caller]
    fn not(self) -> DataFrame {
        self.each_column(|column| !column)
    }
}

impl DataFrame {
    /// The frame with a series made of each column in its place: `frame.each_column(|column| column.abs())`.
    /// The series must be computed row by row of the column.
    #[track_caller]
    pub fn each_column(&self, step: impl Fn(&Series) -> Series) -> DataFrame {
        let labels = self.columns().unwrap_or_default();
        self.of_same_rows(labels.into_iter().map(|label| (label.clone(), step(&self.col(&label)))).collect())
    }
}

/// A value that every row has.
fn constant(value: &Value) -> Expr {
    lit(value.0.clone())
}

impl Frame {
    /// An operator of each value and the other side, or of the other side and each value.
    fn operated(
        &self,
        operator: Operator,
        other: &FrameOperand,
        fill: Option<&Value>,
        reversed: bool,
    ) -> Result<Frame> {
        let made = |frame: &Frame, own: Expr, other: Expr| {
            let (own, other) = match fill {
                Some(fill) => filled_pair(frame.plan.schema(), own, other, fill)?,
                None => (own, other),
            };
            let (left, right) = if reversed { (other, own) } else { (own, other) };
            operator.expr(frame.plan.schema(), left, right)
        };
        match other {
            FrameOperand::Value(value) => {
                let columns = self.columns.iter();
                let columns =
                    columns.map(|label| Ok((label.clone(), made(self, named(label), constant(value))?)));
                self.project(columns.collect::<Result<_>>()?)
            }
            FrameOperand::Series(series) => {
                let values = labelled(series)?;
                let labels: Vec<String> = values.iter().map(|(label, _)| label.clone()).collect();
                let float = || cast(lit(ScalarValue::Null), DataType::Float64);
                let columns = united(&self.columns, &labels).into_iter().map(|label| {
                    let own = self.check(&label).map_or_else(|_| float(), |()| named(&label));
                    let value = values.iter().find(|(other, _)| *other == label);
                    let value = value.map_or_else(float, |(_, value)| constant(value));
                    Ok((label, made(self, own, value)?))
                });
                self.project(columns.collect::<Result<_>>()?)
            }
            FrameOperand::Frame(other) => {
                let other = other.frame()?;
                let paired = self.paired(other, JoinType::Full)?;
                let columns = united(&self.columns, &other.columns).into_iter().map(|label| {
                    let (own, others) = (paired.left(&label), paired.right(&label));
                    let missing = missing_like(&paired.frame, own.as_ref().or(others.as_ref()))?;
                    let alone = fill.is_none() && (own.is_none() || others.is_none());
                    let (own, others) = (own.unwrap_or(missing.clone()), others.unwrap_or(missing.clone()));
                    match made(&paired.frame, own, others) {
                        // A column without a partner is missing, also if no operator is made for its type;
                        // but powers of texts are refused, as in pandas.
                        Err(Error::Type(_)) if alone && !matches!(operator, Operator::Pow) => {
                            Ok((label, missing))
                        }
                        made => Ok((label, made?)),
                    }
                });
                paired.frame.project(columns.collect::<Result<_>>()?)
            }
        }
    }
}

/// The values of a series by their labels, which must be texts. It runs the plan of the series.
pub(super) fn labelled(series: &Series) -> Result<Vec<(String, Value)>> {
    let table = series.rename("value").to_frame().then(|frame| frame.with_index()).collect()?;
    let [labels] = table.index_arrays() else {
        return Err(Error::Value("labels of several levels are no columns".to_owned()));
    };
    let pair = |row: usize| {
        let label = Value::from_array(labels, row)?;
        match label.as_str() {
            Some(label) => Ok((label.to_owned(), table.value(row, "value")?)),
            None => Err(Error::Type(format!("{label} is no label of a column"))),
        }
    };
    (0..table.len()).map(pair).collect()
}
