//! Rows by spans of time: what pandas' `resample` gives, with the spans that have no rows.

mod clock;
mod fill;
mod rule;

pub use fill::Fill;
pub(super) use rule::duration;

use super::aggregate::Aggregate;
use super::group::{GroupBy, Key};
use super::group_functions::Transform;
use super::window::{Over, over_window, rows};
use super::{DataFrame, Frame, Level, OrderKey, named};
use crate::error::{Error, Result};
use crate::frame::series::Series;
use crate::registered::{Function, OverChunk};
use arrow::datatypes::DataType;
use clock::Clock;
use datafusion::common::ScalarValue;
use datafusion::functions::expr_fn::coalesce;
use datafusion::functions_aggregate::expr_fn::min;
use datafusion::functions_nested::expr_fn::gen_series;
use datafusion::logical_expr::expr_fn::{cast, when};
use datafusion::logical_expr::{Expr, LogicalPlanBuilder, lit};
use rule::{DAY, Rule};
use std::sync::Arc;

/// The label of the spans among the keys of groups.
const SPAN: &str = "__tharsis_span";

/// Rows by spans of time: what [`DataFrame::resample`] and [`GroupBy::resample`] give.
///
/// Aggregates give a row for each span; [`asfreq`](Resample::asfreq), [`ffill`](Resample::ffill) and their
/// like put the rows themselves at the labels of spans, so that the index must hold each time once.
#[must_use = "groups do nothing by themselves: call an aggregate"]
#[derive(Clone, Debug)]
pub struct Resample {
    spans: std::result::Result<Spans, Arc<Error>>,
}

#[derive(Clone, Debug)]
struct Spans {
    /// By the keys of groups, if there are any, and by the start of the span at last.
    groups: GroupBy,
    rule: Rule,
    /// The column of times, and the name of the level that spans become.
    time: Level,
    clock: Clock,
}

impl DataFrame {
    /// The rows by spans of a time, which is a column or a level of the index. The rule is a number and a
    /// unit: `s`, `min`, `h`, `D`, or one of `B`, `W`, `MS`, `ME`, `QS`, `QE`, `YS`, `YE`.
    ///
    /// Spans follow each other from the first row to the last one. In those without rows sums and counts are
    /// zero, and other aggregates are missing.
    ///
    /// ```
    /// use tharsis_dataframe::{DataFrame, dtype_named};
    /// let events = DataFrame::from_columns([
    ///     ("t", vec!["2024-01-05", "2024-03-02"].into()),
    ///     ("v", vec![1, 2].into()),
    /// ]);
    /// let monthly = events.astype([("t", dtype_named("datetime64[ns]")?)]).resample("t", "MS").sum();
    /// assert_eq!(monthly.col("v").values::<i64>()?, [Some(1), Some(0), Some(2)]);
    /// # Ok::<(), tharsis_dataframe::Error>(())
    /// ```
    pub fn resample(&self, on: &str, rule: &str) -> Resample {
        Resample::of(self.frame().and_then(|frame| {
            let time = frame.time_named(on)?;
            Spans::new(frame, Vec::new(), time, rule)
        }))
    }

    /// The rows by spans of the times that are their labels; the index need not have a name.
    ///
    /// ```
    /// use tharsis_dataframe::{DataFrame, date_range};
    /// let frame = DataFrame::from_columns([("v", vec![1, 2, 3].into())]);
    /// let timed = frame.assign("t", &date_range("2024-01-01", 3, "12h")).set_index(["t"]);
    /// assert_eq!(timed.resample_index("D").sum().col("v").values::<i64>()?, [Some(3), Some(3)]);
    /// let doubled = timed.resample_index("6h").ffill();
    /// assert_eq!(doubled.col("v").values::<i64>()?, [1, 1, 2, 2, 3].map(Some));
    /// # Ok::<(), tharsis_dataframe::Error>(())
    /// ```
    pub fn resample_index(&self, rule: &str) -> Resample {
        Resample::of(self.frame().and_then(|frame| {
            let time = frame.times_of_index()?;
            Spans::new(frame, Vec::new(), time, rule)
        }))
    }
}

impl Series {
    /// The values by spans of the times that are their labels, as [`DataFrame::resample_index`]: results are
    /// frames of one column.
    pub fn resample(&self, rule: &str) -> Resample {
        self.to_frame().resample_index(rule)
    }
}

impl GroupBy {
    /// The rows of each group by spans of a time, which is a column or a level of the index. Spans go from
    /// the first to the last row of each group; keys and spans are the index of results.
    ///
    /// ```
    /// use tharsis_dataframe::{DataFrame, date_range};
    /// let frame = DataFrame::from_columns([
    ///     ("k", vec!["a", "b", "a"].into()),
    ///     ("v", vec![1, 2, 3].into()),
    /// ]);
    /// let daily = frame.assign("t", &date_range("2024-01-01", 3, "D")).groupby(["k"]).resample("t", "D");
    /// assert_eq!(daily.sum().col("v").values::<i64>()?, [1, 0, 3, 2].map(Some));
    /// # Ok::<(), tharsis_dataframe::Error>(())
    /// ```
    pub fn resample(&self, on: &str, rule: &str) -> Resample {
        self.spans(rule, |frame| frame.time_named(on))
    }

    /// The rows of each group by spans of the times that are their labels.
    pub fn resample_index(&self, rule: &str) -> Resample {
        self.spans(rule, Frame::times_of_index)
    }

    fn spans(&self, rule: &str, time: impl FnOnce(&Frame) -> Result<Level>) -> Resample {
        Resample::of(self.parts().and_then(|(frame, keys)| {
            if !self.sort || !self.as_index {
                let text = "spans of time of groups that are not sorted, or whose keys are columns";
                return Err(Error::NotImplemented(text.to_owned()));
            }
            let spans = Spans::new(frame, keys.to_vec(), time(frame)?, rule)?;
            let groups = GroupBy { chosen: self.chosen.clone(), dropna: self.dropna, ..spans.groups };
            Ok(Spans { groups, ..spans })
        }))
    }
}

impl Frame {
    /// The column of a time by its label, or by the name of a level of the index.
    fn time_named(&self, on: &str) -> Result<Level> {
        let level = self.index.iter().find(|level| level.name.as_deref() == Some(on));
        match (self.check(on), level) {
            (Ok(()), _) => Ok(Level { column: on.to_owned(), name: Some(on.to_owned()) }),
            (Err(_), Some(level)) => Ok(level.clone()),
            (Err(error), None) => Err(error),
        }
    }

    /// The only level of the index.
    pub(super) fn times_of_index(&self) -> Result<Level> {
        match &self.index[..] {
            [level] => Ok(level.clone()),
            _ => Err(Error::Type("the index must be of times, and of one level".to_owned())),
        }
    }

    /// Refuses a column that is not of times.
    fn check_times(&self, column: &str) -> Result<()> {
        match self.dtype(column)? {
            DataType::Timestamp(..) | DataType::Date32 | DataType::Date64 => Ok(()),
            other => Err(Error::Type(format!("spans of time are made of times, not of {other}"))),
        }
    }

    /// The frame with a hidden column of the span that each row lies in.
    fn with_bins(&self, keys: &[Key], column: &str, rule: Rule) -> Result<(Frame, String)> {
        self.check_times(column)?;
        let clock = Clock::of(&self.dtype(column)?, rule);
        let time = clock.read(named(column));
        let midnight = |time: Expr| clock.midnight(time);
        let mut frame = self.clone();
        let origin = match rule {
            // Every midnight is the start of a span.
            Rule::Fixed(length) if DAY % length == 0 && clock.has_equal_days() => midnight(time.clone()),
            Rule::Fixed(_) if !keys.is_empty() => {
                let over: Vec<Expr> = keys.iter().map(|key| named(&key.column)).collect();
                midnight(over_window(min(time.clone()), &over, Vec::new(), rows(None, None))?)
            }
            Rule::Fixed(_) => {
                frame = self.with_order()?;
                let name = frame.fresh("origin");
                let first = min(time.clone()).alias(&name);
                let first = self.builder().aggregate(Vec::<Expr>::new(), vec![first])?.build()?;
                frame.plan = frame.builder().cross_join(first)?.build()?;
                midnight(named(&name))
            }
            _ => lit(ScalarValue::Null),
        };
        let bin = frame.fresh("bin");
        let hidden = keys.iter().map(|key| &key.column).filter(|column| !frame.columns.contains(column));
        let kept: Vec<String> = frame.columns.iter().chain(hidden).cloned().collect();
        let mut columns: Vec<(String, Expr)> =
            kept.iter().map(|column| (column.clone(), named(column))).collect();
        columns.push((bin.clone(), rule.start(time, origin)));
        let binned = frame.project(columns)?;
        Ok((Frame { columns: self.columns.clone(), ..binned }, bin))
    }
}

/// Aggregates of no values that are there.
fn of_none(aggregate: Aggregate, dtype: &DataType) -> Result<Expr> {
    Ok(match aggregate {
        Aggregate::Sum | Aggregate::Count | Aggregate::Size | Aggregate::Nunique => {
            cast(lit(0_i64), dtype.clone())
        }
        Aggregate::Prod => cast(lit(1_i64), dtype.clone()),
        Aggregate::Any => lit(false),
        Aggregate::All => lit(true),
        _ => lit(ScalarValue::try_from(dtype)?),
    })
}

/// An aggregate of a column under a label: label, column, aggregate.
type Labelled = Vec<(String, String, Aggregate)>;

impl Spans {
    fn new(frame: &Frame, mut keys: Vec<Key>, time: Level, rule: &str) -> Result<Spans> {
        let rule = Rule::parse(rule)?;
        let clock = Clock::of(&frame.dtype(&time.column)?, rule);
        let (frame, bin) = frame.with_bins(&keys, &time.column, rule)?;
        keys.push(Key { label: SPAN.to_owned(), column: bin });
        Ok(Spans { groups: GroupBy::of_keys(DataFrame::new(Ok(frame)), keys), rule, time, clock })
    }

    /// The columns that are neither keys nor the time.
    fn values(&self) -> Result<Vec<String>> {
        let columns = self.groups.columns_but_keys()?;
        Ok(columns.into_iter().filter(|column| *column != self.time.column).collect())
    }

    fn all_columns(&self, aggregate: Aggregate) -> Result<Frame> {
        let frame = self.groups.frame.frame()?;
        let mut list = Vec::new();
        for column in self.values()? {
            if aggregate.fits(&frame.dtype(&column)?) {
                list.push((column.clone(), column, aggregate));
            }
        }
        self.aggregate(&list)
    }

    /// The number of rows of each span, in a column `size`.
    fn sizes(&self) -> Result<Frame> {
        let (_, keys) = self.groups.parts()?;
        let bin = keys.last().map(|key| key.column.clone()).unwrap_or_default();
        self.aggregate(&[("size".to_owned(), bin, Aggregate::Size)])
    }

    fn aggregate(&self, list: &[(String, String, Aggregate)]) -> Result<Frame> {
        let (frame, keys) = self.groups.parts()?;
        let mut frame = (**frame).clone();
        if list.iter().any(|(_, _, how)| matches!(how, Aggregate::First | Aggregate::Last)) {
            // The first row of a span is the earliest one, wherever it stands.
            frame = frame.with_order()?;
            frame.order.insert(0, OrderKey::growing(&self.time.column));
        }
        let found = self.groups.aggregate_frame(&frame, keys, list)?;
        let how: Vec<Aggregate> = list.iter().map(|(_, _, aggregate)| *aggregate).collect();
        self.with_empty(&found, &how)
    }

    /// The spans with rows, and those without between them: each span makes those up to the next one.
    fn with_empty(&self, frame: &Frame, aggregates: &[Aggregate]) -> Result<Frame> {
        let Some((level, outer)) = frame.index.split_last() else {
            return Err(Error::Internal("spans without an index".to_owned()));
        };
        let outer_columns: Vec<Expr> = outer.iter().map(|level| named(&level.column)).collect();
        let start = named(&level.column);
        let next = Over { keys: outer_columns.clone() }.shift(start.clone(), -1);
        let last = coalesce(vec![next - self.rule.length(), start.clone()]);
        let (lifted, exprs) = frame.lifted(vec![gen_series(start.clone(), last, self.rule.length())])?;
        let bins = lifted.fresh("bins");
        let kept = frame.columns.iter().map(|column| named(column));
        let kept = kept.chain(outer_columns.clone()).chain([start.clone()]);
        let exprs: Vec<Expr> = kept.chain(exprs.into_iter().map(|expr| expr.alias(&bins))).collect();
        let plan = lifted.builder().project(exprs)?.unnest_column(bins.as_str())?;
        let plan = match self.rule.is_start(named(&bins)) {
            Some(is_start) => plan.filter(is_start)?.build()?,
            None => plan.build()?,
        };
        let mut columns = outer_columns;
        for (column, aggregate) in frame.columns.iter().zip(aggregates) {
            let none = of_none(*aggregate, &frame.dtype(column)?)?;
            let value = when(named(&bins).eq(start.clone()), named(column)).otherwise(none)?;
            columns.push(value.alias(column));
        }
        columns.push(self.clock.time(self.rule.label(named(&bins))).alias(&level.column));
        let plan = LogicalPlanBuilder::from(plan).project(columns)?.build()?;
        let index = self.named_levels(&frame.index);
        let order = index.iter().map(|level| OrderKey::growing(&level.column)).collect();
        Ok(Frame { plan, columns: frame.columns.clone(), index, order })
    }

    /// Levels of keys and of spans, the latter with the name of the time.
    fn named_levels(&self, levels: &[Level]) -> Vec<Level> {
        let name = |level: &Level| match level.name.as_deref() {
            Some(SPAN) => Level { name: self.time.name.clone(), ..level.clone() },
            _ => level.clone(),
        };
        levels.iter().map(name).collect()
    }

    /// The groups with the columns that are neither keys nor the time.
    fn of_values(&self) -> Result<GroupBy> {
        Ok(GroupBy { chosen: Some(self.values()?), ..self.groups.clone() })
    }

    /// The result of a function of chunks, under the labels of spans in place of their starts.
    fn labelled(&self, made: &Frame) -> Result<Frame> {
        let index = self.named_levels(&made.index);
        let at = made.index.iter().position(|level| level.name.as_deref() == Some(SPAN));
        let at = at.ok_or_else(|| Error::Internal("spans without an index".to_owned()))?;
        let labelled = made.with_label(at, |start| Ok(self.clock.time(self.rule.label(start))))?;
        let names = labelled.index.iter().zip(index);
        let index = names.map(|(level, named)| Level { name: named.name, ..level.clone() }).collect();
        Ok(Frame { index, ..labelled })
    }
}

impl Resample {
    fn of(spans: Result<Spans>) -> Resample {
        Resample { spans: spans.map_err(Arc::new) }
    }

    fn spans(&self) -> Result<&Spans> {
        self.spans.as_ref().map_err(|error| (**error).clone())
    }

    /// The same spans of these columns alone.
    #[track_caller]
    pub fn select<'a>(&self, labels: impl IntoIterator<Item = &'a str>) -> Resample {
        Resample::of(self.spans().and_then(|spans| {
            let groups = spans.groups.clone().select(labels);
            groups.check()?;
            Ok(Spans { groups, ..spans.clone() })
        }))
    }

    /// One aggregate of all columns but the time and the keys; of those with numbers only if it needs
    /// numbers.
    #[track_caller]
    pub fn all_columns(&self, aggregate: Aggregate) -> DataFrame {
        DataFrame::new(self.spans().and_then(|spans| spans.all_columns(aggregate)))
    }

    /// Aggregates of columns, under labels like `sold_sum`; a column with one aggregate keeps its label.
    ///
    /// ```
    /// use tharsis_dataframe::{Aggregate, DataFrame, date_range};
    /// let frame = DataFrame::from_columns([("v", vec![1, 2, 3].into())]);
    /// let daily = frame.assign("t", &date_range("2024-01-01", 3, "12h")).resample("t", "D");
    /// let both = daily.agg([("v", Aggregate::Sum), ("v", Aggregate::Max)]);
    /// assert_eq!(both.col("v_max").values::<i64>()?, [Some(2), Some(3)]);
    /// # Ok::<(), tharsis_dataframe::Error>(())
    /// ```
    #[track_caller]
    pub fn agg<'a>(&self, aggregates: impl IntoIterator<Item = (&'a str, Aggregate)>) -> DataFrame {
        self.aggregate(super::group::labelled_aggregates(aggregates))
    }

    /// Aggregates under labels of their own: label, column, aggregate.
    #[track_caller]
    pub fn agg_as<'a>(
        &self,
        aggregates: impl IntoIterator<Item = (&'a str, &'a str, Aggregate)>,
    ) -> DataFrame {
        let owned =
            aggregates.into_iter().map(|(label, column, how)| (label.to_owned(), column.to_owned(), how));
        self.aggregate(owned.collect())
    }

    #[track_caller]
    fn aggregate(&self, aggregates: Labelled) -> DataFrame {
        DataFrame::new(self.spans().and_then(|spans| spans.aggregate(&aggregates)))
    }

    /// The number of rows of each span, in a column `size`.
    #[track_caller]
    pub fn size(&self) -> DataFrame {
        DataFrame::new(self.spans().and_then(Spans::sizes))
    }

    /// A quantile of each column with numbers.
    #[track_caller]
    pub fn quantile(&self, part: f64) -> DataFrame {
        self.all_columns(Aggregate::Quantile(part))
    }

    /// The first, largest, smallest and last value of a column in each span, as `open`, `high`, `low`,
    /// `close`.
    #[track_caller]
    pub fn ohlc(&self, label: &str) -> DataFrame {
        self.agg_as([
            ("open", label, Aggregate::First),
            ("high", label, Aggregate::Max),
            ("low", label, Aggregate::Min),
            ("close", label, Aggregate::Last),
        ])
    }

    /// A value for each row, as [`GroupBy::transform`] with spans as groups.
    ///
    /// # Errors
    /// As [`GroupBy::transform`].
    #[track_caller]
    pub fn transform(&self, how: impl Into<Transform>) -> DataFrame {
        match self.spans().and_then(Spans::of_values) {
            Ok(groups) => groups.transform(how),
            Err(error) => DataFrame::new(Err(error)),
        }
    }

    /// The rows that a function of the program gives for each span that has rows, as [`GroupBy::apply`] with
    /// spans as groups. It is not called for spans without rows.
    ///
    /// # Errors
    /// As [`GroupBy::apply`].
    #[track_caller]
    pub fn apply(&self, function: Function<OverChunk>) -> DataFrame {
        match self.spans().and_then(|spans| Ok((spans, spans.of_values()?))) {
            Ok((spans, groups)) => groups.apply(function).then(|made| spans.labelled(made)),
            Err(error) => DataFrame::new(Err(error)),
        }
    }

    /// The result of a function of these spans, for chains of calls.
    #[must_use]
    pub fn pipe<T>(&self, step: impl FnOnce(&Resample) -> T) -> T {
        step(self)
    }

    /// The number of spans, with those that have no rows. It runs the plan.
    ///
    /// # Errors
    /// The error that the spans carry, or one of the run.
    pub fn ngroups(&self) -> Result<usize> {
        self.size().len()
    }
}

macro_rules! aggregates {
    ($($(#[$doc:meta])* $name:ident $aggregate:ident),*) => {
        impl Resample {
            $($(#[$doc])*
            #[track_caller]
            pub fn $name(&self) -> DataFrame {
                self.all_columns(Aggregate::$aggregate)
            })*
        }
    };
}

aggregates!(
    /// The sum of each column with numbers.
    sum Sum,
    /// The mean of each column with numbers.
    mean Mean,
    /// The smallest value of each column.
    min Min,
    /// The largest value of each column.
    max Max,
    /// The number of values of each column that are there.
    count Count,
    /// The number of distinct values of each column.
    nunique Nunique,
    /// The first value of each column that is there.
    first First,
    /// The last value of each column that is there.
    last Last,
    /// The standard deviation of each column with numbers.
    std Std,
    /// The variance of each column with numbers.
    var Var,
    /// The standard error of the mean of each column with numbers.
    sem Sem,
    /// The middle value of each column with numbers.
    median Median,
    /// The product of each column with numbers.
    prod Prod
);
