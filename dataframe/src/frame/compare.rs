//! Two frames value by value: where they differ, and what a function makes of both.

use super::align::{Paired, missing_like, united};
use super::{DataFrame, Frame, named};
use crate::error::{Error, Result};
use crate::frame::series::{Mapping, Operator, Series};
use datafusion::common::{JoinType, ScalarValue};
use datafusion::logical_expr::expr_fn::when;
use datafusion::logical_expr::{Expr, lit};

/// Options of [`DataFrame::compare_with`]: which rows, columns and values are kept, and the names of both
/// sides.
#[must_use]
#[derive(Clone, Debug)]
pub struct Compare {
    keep_shape: bool,
    keep_equal: bool,
    names: (String, String),
}

impl Default for Compare {
    fn default() -> Compare {
        Compare { keep_shape: false, keep_equal: false, names: ("self".to_owned(), "other".to_owned()) }
    }
}

impl Compare {
    /// Rows and columns that differ, with missing values where both are equal; names `self` and `other`.
    pub fn new() -> Compare {
        Compare::default()
    }

    /// All rows and columns, if true.
    pub fn keep_shape(self, keep_shape: bool) -> Compare {
        Compare { keep_shape, ..self }
    }

    /// Values also where both are equal, if true.
    pub fn keep_equal(self, keep_equal: bool) -> Compare {
        Compare { keep_equal, ..self }
    }

    /// Names of both sides, which labels of columns end in.
    pub fn names(self, own: &str, other: &str) -> Compare {
        Compare { names: (own.to_owned(), other.to_owned()), ..self }
    }
}

/// Whether the values of a column differ.
fn flag(at: usize) -> String {
    format!("__tharsis_differs_{at}")
}

/// A column of both frames in one plan.
struct Both {
    own: Expr,
    other: Expr,
    /// Labels in the result.
    labels: (String, String),
}

/// The rows of two frames with the columns that are compared.
struct Compared {
    frame: Frame,
    columns: Vec<Both>,
}

impl Compared {
    fn new(left: &Frame, right: &Frame, labels: impl Fn(&str) -> (String, String)) -> Result<Compared> {
        if left.columns != right.columns || !left.has_labels_of(right)? {
            let text = "Can only compare identically-labeled (both index and columns) DataFrame objects";
            return Err(Error::Value(text.to_owned()));
        }
        let paired = left.paired(right, JoinType::Left)?;
        let columns = left.columns.iter().map(|label| {
            let labels = labels(label);
            Ok(Both { own: paired.left_of(label)?, other: paired.right_of(label)?, labels })
        });
        let columns = columns.collect::<Result<_>>()?;
        Ok(Compared { columns, frame: paired.frame })
    }

    /// Whether two values differ; missing ones are equal.
    fn differs(&self, both: &Both) -> Result<Expr> {
        let schema = self.frame.plan.schema();
        let differs = Operator::Ne.expr(schema, both.own.clone(), both.other.clone())?;
        let missing = both.own.clone().is_null().and(both.other.clone().is_null());
        Ok(when(missing, lit(false)).otherwise(differs)?)
    }

    /// Both values of each column, and whether they differ.
    fn flagged(&self, options: &Compare) -> Result<Frame> {
        let mut columns = Vec::new();
        for (at, both) in self.columns.iter().enumerate() {
            let differs = self.differs(both)?;
            for (label, value) in [(&both.labels.0, &both.own), (&both.labels.1, &both.other)] {
                let shown = if options.keep_equal {
                    value.clone()
                } else {
                    when(differs.clone(), value.clone()).otherwise(lit(ScalarValue::Null))?
                };
                columns.push((label.clone(), shown));
            }
            columns.push((flag(at), differs));
        }
        self.frame.project(columns)
    }

    /// The rows and columns that the options keep. Without all of them, both frames are compared at once.
    fn kept(&self, options: &Compare) -> Result<Frame> {
        let flagged = self.flagged(options)?;
        let mut frame = flagged;
        let mut shown: Vec<usize> = (0..self.columns.len()).collect();
        if !options.keep_shape {
            let computed = DataFrame::new(Ok(frame.with_index()?)).execute()?;
            let mut differing = Vec::new();
            for at in shown {
                if computed.col(&flag(at)).any()?.as_bool() == Some(true) {
                    differing.push(at);
                }
            }
            shown = differing;
            frame = (**computed.frame()?).clone();
            let any = shown.iter().map(|at| named(&flag(*at))).reduce(Expr::or);
            frame.plan = frame.builder().filter(any.unwrap_or_else(|| lit(false)))?.build()?;
        }
        let labels = shown.iter().flat_map(|at| {
            let (own, other) = &self.columns[*at].labels;
            [own, other]
        });
        frame.project(labels.map(|label| (label.clone(), named(label))).collect())
    }
}

impl DataFrame {
    /// The differences to another frame with the same labels: the rows and columns that have one, each column
    /// as `label_self` and `label_other`, with missing values where both are equal.
    ///
    /// `ValueError` if labels of rows or columns differ. Labels are looked at and values are compared at
    /// once, which runs both plans.
    ///
    /// ```
    /// use tharsis_dataframe::DataFrame;
    /// let old = DataFrame::from_columns([("a", vec![1, 2].into()), ("b", vec![3, 4].into())]);
    /// let new = old.replace([(2, 7)]);
    /// let changed = old.compare(&new);
    /// assert_eq!(changed.columns()?, ["a_self", "a_other"]);
    /// assert_eq!(changed.col("a_other").values::<i64>()?, [Some(7)]);
    /// # Ok::<(), tharsis_dataframe::Error>(())
    /// ```
    #[track_caller]
    pub fn compare(&self, other: &DataFrame) -> DataFrame {
        self.compare_with(other, &Compare::new())
    }

    /// As [`DataFrame::compare`], with options. With all rows and columns, values are compared when the
    /// result runs.
    #[track_caller]
    pub fn compare_with(&self, other: &DataFrame, options: &Compare) -> DataFrame {
        self.then(|left| {
            let (own, others) = &options.names;
            let labels = |label: &str| (format!("{label}_{own}"), format!("{label}_{others}"));
            Compared::new(left, other.frame()?, labels)?.kept(options)
        })
    }

    /// The results of a function of the columns of both frames with the same label, over the rows and columns
    /// of either; a value that a frame lacks is missing.
    ///
    /// ```
    /// use tharsis_dataframe::DataFrame;
    /// let a = DataFrame::from_columns([("x", vec![1, 5].into())]);
    /// let b = DataFrame::from_columns([("x", vec![4, 2].into())]);
    /// let largest = a.combine(&b, |left, right| left.keep_where(&left.gt(right), right));
    /// assert_eq!(largest.col("x").values::<i64>()?, [Some(4), Some(5)]);
    /// # Ok::<(), tharsis_dataframe::Error>(())
    /// ```
    #[track_caller]
    pub fn combine(&self, other: &DataFrame, step: impl Fn(&Series, &Series) -> Series) -> DataFrame {
        const OTHER: &str = "__tharsis_other_";
        const MADE: &str = "__tharsis_made_";
        let labels = match (self.columns(), other.columns()) {
            (Ok(own), Ok(others)) => united(&own, &others),
            _ => Vec::new(),
        };
        let both = self.then(|left| {
            let right = other.frame()?;
            let paired = left.paired(right, JoinType::Full)?;
            let columns = labels.iter().map(|label| {
                let (own, other) = paired.or_missing(label)?;
                Ok([(label.clone(), own), (format!("{OTHER}{label}"), other)])
            });
            let columns = columns.collect::<Result<Vec<_>>>()?;
            paired.frame.project(columns.into_iter().flatten().collect())
        });
        let mut made = both.clone();
        for label in &labels {
            let combined = step(&both.col(label), &both.col(&format!("{OTHER}{label}")));
            made = made.assign(&format!("{MADE}{label}"), combined);
        }
        let named_made: Vec<String> = labels.iter().map(|label| format!("{MADE}{label}")).collect();
        let chosen = made.select(named_made.iter().map(String::as_str));
        chosen.rename(named_made.iter().map(String::as_str).zip(labels.iter().map(String::as_str)))
    }

    /// Each value replaced by what pairs or a function of the program give for it, as [`Series::map`] for
    /// each column.
    ///
    /// ```
    /// use tharsis_dataframe::DataFrame;
    /// let frame = DataFrame::from_columns([("a", vec![1, 2].into()), ("b", vec![2, 3].into())]);
    /// let words = frame.map([(1, "one"), (2, "two")]);
    /// assert_eq!(words.col("b").values::<String>()?, [Some("two".to_owned()), None]);
    /// # Ok::<(), tharsis_dataframe::Error>(())
    /// ```
    #[track_caller]
    pub fn map(&self, mapping: impl Mapping + Clone) -> DataFrame {
        let labels = self.columns().unwrap_or_default();
        let mut mapped = Vec::new();
        for label in &labels {
            mapped.push(self.col(label).map(mapping.clone()));
        }
        self.then(|frame| {
            let columns = labels.iter().zip(&mapped);
            let columns = columns.map(|(label, series)| Ok((label.clone(), series.parts()?.1.clone())));
            frame.project(columns.collect::<Result<_>>()?)
        })
    }
}

impl Paired {
    /// Both columns with a label; missing values of the other one's type where a frame has none.
    fn or_missing(&self, label: &str) -> Result<(Expr, Expr)> {
        let (left, right) = (self.left(label), self.right(label));
        let own = left.clone().map_or_else(|| missing_like(&self.frame, right.as_ref()), Ok)?;
        let other = right.map_or_else(|| missing_like(&self.frame, left.as_ref()), Ok)?;
        Ok((own, other))
    }
}

impl Series {
    /// The differences to another series with the same labels, in columns `self` and `other`: as
    /// [`DataFrame::compare`].
    ///
    /// ```
    /// use tharsis_dataframe::Series;
    /// let (a, b) = (Series::from_values("n", vec![1, 2]), Series::from_values("n", vec![1, 3]));
    /// assert_eq!(a.compare(&b).col("other").values::<i64>()?, [Some(3)]);
    /// # Ok::<(), tharsis_dataframe::Error>(())
    /// ```
    #[track_caller]
    pub fn compare(&self, other: &Series) -> DataFrame {
        self.compare_with(other, &Compare::new())
    }

    /// As [`Series::compare`], with options; both columns stay if nothing differs.
    #[track_caller]
    pub fn compare_with(&self, other: &Series, options: &Compare) -> DataFrame {
        let (own, others) = &options.names;
        let frame = self.rename("0").to_frame();
        let other = other.rename("0").to_frame();
        frame.then(|left| {
            let labels = |_: &str| (own.clone(), others.clone());
            let compared = Compared::new(left, other.frame()?, labels)?;
            let both = compared.flagged(options)?;
            let mut kept = both.with_index()?;
            if !options.keep_shape {
                kept.plan = kept.builder().filter(named(&flag(0)))?.build()?;
            }
            kept.project(vec![(own.clone(), named(own)), (others.clone(), named(others))])
        })
    }

    /// The result of a function of both series, over the labels of either; a value that a series lacks is
    /// missing.
    #[track_caller]
    pub fn combine(&self, other: &Series, step: impl FnOnce(&Series, &Series) -> Series) -> Series {
        let (own, others) = self.align(other, super::JoinKind::Outer);
        step(&own, &others)
    }
}
