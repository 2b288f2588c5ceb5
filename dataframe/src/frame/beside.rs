//! Frames put side by side by the labels of their rows.

use super::align::{Paired, join_type};
use super::clean::takes;
use super::combine::{JoinKind, Merge};
use super::{DataFrame, Frame, check_different, named};
use crate::error::{Error, Result};
use crate::frame::series::Series;
use crate::promotion::unified;
use datafusion::common::JoinType;
use datafusion::functions::expr_fn::coalesce;
use datafusion::logical_expr::Expr;

/// Options of [`DataFrame::join`]: the rows to keep, endings of labels that both frames have, a key.
#[must_use]
#[derive(Clone, Debug)]
pub struct Join {
    kind: JoinKind,
    suffixes: (String, String),
    on: Vec<String>,
}

impl Join {
    /// By the labels of both frames' rows.
    pub fn how(kind: JoinKind) -> Join {
        Join { kind, suffixes: (String::new(), String::new()), on: Vec::new() }
    }

    /// Endings of labels that both frames have; without any, such labels are refused.
    pub fn suffixes(self, left: &str, right: &str) -> Join {
        Join { suffixes: (left.to_owned(), right.to_owned()), ..self }
    }

    /// By columns of the left frame, which hold labels of the right one's rows.
    pub fn on<'a>(self, labels: impl IntoIterator<Item = &'a str>) -> Join {
        Join { on: labels.into_iter().map(str::to_owned).collect(), ..self }
    }
}

impl Paired {
    /// The columns of both sides, with endings where both have a label.
    fn columns(&self, left: &[String], right: &[String], join: &Join) -> Result<Vec<(String, Expr)>> {
        let (of_left, of_right) = (&join.suffixes.0, &join.suffixes.1);
        let shared: Vec<&String> = left.iter().filter(|label| right.contains(label)).collect();
        if !shared.is_empty() && of_left.is_empty() && of_right.is_empty() {
            return Err(Error::Value(format!("columns overlap but no suffix specified: {shared:?}")));
        }
        let lost = || Error::Internal("a lost column".to_owned());
        let ending = |label: &String, ending: &str| {
            if shared.contains(&label) { format!("{label}{ending}") } else { label.clone() }
        };
        let lefts = left.iter().map(|label| Ok((ending(label, of_left), self.left(label).ok_or_else(lost)?)));
        let rights =
            right.iter().map(|label| Ok((ending(label, of_right), self.right(label).ok_or_else(lost)?)));
        lefts.chain(rights).collect()
    }
}

impl DataFrame {
    /// The rows of two frames that have equal labels in the index, side by side. With `Outer`, rows are
    /// sorted by their labels.
    ///
    /// ```
    /// use tharsis_dataframe::{DataFrame, Join, JoinKind};
    /// let names = DataFrame::from_columns([("name", vec!["Ada", "Bo"].into())]);
    /// let ages = DataFrame::from_columns([("age", vec![36].into())]);
    /// let both = names.join(&ages, Join::how(JoinKind::Left));
    /// assert_eq!(both.col("age").values::<i64>()?, [Some(36), None]);
    /// # Ok::<(), tharsis_dataframe::Error>(())
    /// ```
    #[track_caller]
    pub fn join(&self, other: &DataFrame, join: Join) -> DataFrame {
        if !join.on.is_empty() {
            return self.join_on(other, &join);
        }
        self.then(|left| {
            let right = other.frame()?;
            let left = if join.kind == JoinKind::Left { left.with_index()? } else { (*left).clone() };
            let paired = left.paired_by_labels(right, join_type(join.kind)?)?;
            let columns = paired.columns(&left.columns, &right.columns, &join)?;
            paired.frame.project(columns)
        })
    }

    /// A join of columns with the labels of another frame's rows; the rows keep their own labels.
    #[track_caller]
    fn join_on(&self, other: &DataFrame, join: &Join) -> DataFrame {
        let made = other.frame().and_then(|right| {
            let right = right.with_index()?;
            if right.index.len() != join.on.len() {
                let levels = right.index.len();
                return Err(Error::Value(format!("{} keys for {levels} levels of the index", join.on.len())));
            }
            let keys: Vec<String> = (0..join.on.len()).map(|at| format!("__tharsis_on_{at}")).collect();
            let levels =
                keys.iter().zip(&right.index).map(|(key, level)| (key.clone(), named(&level.column)));
            let own = right.columns.iter().map(|label| (label.clone(), named(label)));
            Ok((DataFrame::new(right.project(levels.chain(own).collect())), keys))
        });
        let (right, keys) = match made {
            Ok(made) => made,
            Err(error) => return self.then(|_| Err(error)),
        };
        let on = join.on.iter().map(String::as_str);
        let (left_end, right_end) = (&join.suffixes.0, &join.suffixes.1);
        let overlap = self.columns().unwrap_or_default().into_iter();
        let others = other.columns().unwrap_or_default();
        let shared: Vec<String> = overlap.filter(|label| others.contains(label)).collect();
        if !shared.is_empty() && left_end.is_empty() && right_end.is_empty() {
            let text = format!("columns overlap but no suffix specified: {shared:?}");
            return self.then(|_| Err(Error::Value(text)));
        }
        let merge = Merge::on_pairs(on, keys.iter().map(String::as_str)).how(join.kind).keeping_index();
        let merged = self.merge(&right, merge.suffixes(left_end, right_end));
        merged.drop(keys.iter().map(String::as_str))
    }

    /// The columns of frames side by side, by the labels of their rows: all rows with `Outer`, those that
    /// every frame has with `Inner`. Rows come in the order of the first frame, then those of the next.
    #[track_caller]
    pub fn concat_columns<'a>(frames: impl IntoIterator<Item = &'a DataFrame>, kind: JoinKind) -> DataFrame {
        let mut frames = frames.into_iter();
        let Some(first) = frames.next() else {
            return DataFrame::new(Err(Error::Value("No objects to concatenate".to_owned())));
        };
        frames.fold(first.clone(), |made, next| {
            made.then(|left| {
                let right = next.frame()?;
                if !left.has_labels_of(right)? {
                    left.check_unique()?;
                    right.check_unique()?;
                }
                let paired = left.paired(right, join_type(kind)?)?;
                let join = Join::how(kind).suffixes("", "");
                let labels: Vec<&String> = left.columns.iter().chain(&right.columns).collect();
                check_different(&labels)?;
                let columns = paired.columns(&left.columns, &right.columns, &join)?;
                Frame { order: paired.in_turn(), ..paired.frame.clone() }.project(columns)
            })
        })
    }

    /// This frame's values, and those of another one with the same labels where they are missing; with the
    /// rows and columns of both.
    ///
    /// ```
    /// use tharsis_dataframe::DataFrame;
    /// let own = DataFrame::from_columns([("n", vec![Some(1), None].into())]);
    /// let other = DataFrame::from_columns([("n", vec![7, 8, 9].into())]);
    /// assert_eq!(own.combine_first(&other).col("n").values::<i64>()?, [1, 8, 9].map(Some));
    /// # Ok::<(), tharsis_dataframe::Error>(())
    /// ```
    #[track_caller]
    pub fn combine_first(&self, other: &DataFrame) -> DataFrame {
        self.then(|left| {
            let right = other.frame()?;
            let paired = left.paired(right, JoinType::Full)?;
            let others = right.columns.iter().filter(|label| !left.columns.contains(label));
            let columns = left.columns.iter().chain(others).cloned().map(|label| {
                let values = match (paired.left(&label), paired.right(&label)) {
                    (Some(own), Some(other)) => {
                        let (own, other) = unified(paired.frame.plan.schema(), own, other)?;
                        coalesce(vec![own, other])
                    }
                    (own, other) => coalesce(own.into_iter().chain(other).collect()),
                };
                Ok((label, values))
            });
            paired.frame.project(columns.collect::<Result<_>>()?)
        })
    }

    /// This frame with the values of another one that have the same labels and are there, in place of its
    /// own.
    #[track_caller]
    pub fn update(&self, other: &DataFrame) -> DataFrame {
        self.then(|left| {
            let right = other.frame()?;
            right.check_unique()?;
            left.updated(right)
        })
    }
}

impl DataFrame {
    /// This frame, if the labels of a series are its own or each stands once.
    #[track_caller]
    fn meeting_once(&self, other: &Series) -> DataFrame {
        self.then(|left| {
            let other = other.to_frame();
            let right = other.frame()?;
            if !left.has_labels_of(right)? {
                right.check_unique()?;
            }
            Ok(left.clone())
        })
    }
}

impl Frame {
    fn updated(&self, right: &Frame) -> Result<Frame> {
        let paired = self.paired(right, JoinType::Left)?;
        let columns = self.columns.iter().map(|label| {
            let lost = || Error::Internal("a lost column".to_owned());
            let own = paired.left(label).ok_or_else(lost)?;
            let Some(other) = paired.right(label) else { return Ok((label.clone(), own)) };
            let (dtype, others) = (self.dtype(label)?, right.dtype(label)?);
            if !takes(&dtype, &others) {
                return Err(Error::Type(format!("column {label:?} of {dtype} does not take {others}")));
            }
            // In the type of both: a float is not cut because the column has whole numbers.
            let (own, other) = unified(paired.frame.plan.schema(), own, other)?;
            Ok((label.clone(), coalesce(vec![other, own])))
        });
        paired.frame.project(columns.collect::<Result<_>>()?)
    }
}

impl Series {
    /// These values, and those of another series with the same labels where they are missing; with the rows
    /// of both.
    #[track_caller]
    pub fn combine_first(&self, other: &Series) -> Series {
        let label = self.label();
        let own = self.to_frame();
        let both = own.meeting_once(other).combine_first(&other.rename(&label).to_frame());
        both.col(&label).named(self.name().map(str::to_owned))
    }

    /// These values, with those of another series that have the same labels and are there in their place.
    #[track_caller]
    pub fn update(&self, other: &Series) -> Series {
        let label = self.label();
        let other = other.rename(&label).to_frame();
        let own = self.to_frame();
        let both = own.meeting_once(&other.col(&label)).then(|left| left.updated(other.frame()?));
        both.col(&label).named(self.name().map(str::to_owned))
    }
}
