//! Rows put at the labels of spans, or at times at equal distances.

use super::clock::Clock;
use super::rule::{NANOSECONDS, Rule};
use super::{DataFrame, Frame, Level, OrderKey, Over, Resample, Series, Spans, named};
use crate::error::{Error, Result};
use crate::frame::clean::takes;
use crate::frame::labels::{Absent, WANTED};
use crate::frame::near::{AsOf, Nearest};
use crate::frame::window::{FillLimit, Step};
use crate::promotion::unified;
use crate::value::Value;
use arrow::datatypes::DataType;
use datafusion::common::JoinType;
use datafusion::functions::expr_fn::date_trunc;
use datafusion::functions_aggregate::expr_fn::{max, min};
use datafusion::functions_nested::expr_fn::gen_series;
use datafusion::logical_expr::expr_fn::{cast, when};
use datafusion::logical_expr::{Expr, lit};

/// The row at a label that no row has.
#[derive(Clone, Debug)]
pub enum Fill {
    /// A row of missing values.
    Missing,
    /// A row of this value.
    Value(Value),
    /// The last row before the label.
    Before,
    /// The next row behind the label.
    After,
    /// The nearest row; of two at the same distance, the later one.
    Nearest,
}

/// Names of a level of keys, of the time of a row before a label, and of one behind it.
const KEY: &str = "__tharsis_fill_key";
const BEFORE: &str = "__tharsis_fill_before";
const AFTER: &str = "__tharsis_fill_after";
/// The mark of rows that exist, or of labels that are wanted.
const MARK: &str = "__tharsis_fill_mark";

/// Labels of rows: columns in the order of their rows, of which the last one holds times.
struct Labels {
    frame: Frame,
    names: Vec<Option<String>>,
}

impl Labels {
    /// The labels of spans.
    fn of(sizes: &Frame) -> Result<Labels> {
        let names = sizes.index.iter().map(|level| level.name.clone()).collect();
        let levels = sizes.index.iter().enumerate();
        let columns = levels.map(|(at, level)| (column(at), named(&level.column))).collect();
        let frame = Frame { index: Vec::new(), ..sizes.clone() }.project(columns)?;
        Ok(Labels { frame, names })
    }

    /// The place of the times among the levels.
    fn last(&self) -> usize {
        self.names.len() - 1
    }

    /// The levels of the index over the columns of the labels.
    fn index(&self, column_of: impl Fn(usize) -> String) -> Vec<Level> {
        let names = self.names.iter().enumerate();
        names.map(|(at, name)| Level { column: column_of(at), name: name.clone() }).collect()
    }
}

fn column(at: usize) -> String {
    format!("{WANTED}_{at}")
}

fn key(at: usize) -> String {
    format!("{KEY}_{at}")
}

/// The rows that are put at labels: their index has the levels of the labels.
struct Rows {
    frame: Frame,
}

impl Rows {
    /// The rows with these labels, and what stands where there are none.
    fn at(&self, labels: &Labels, fill: &Fill) -> Result<Frame> {
        self.frame.check_unique()?;
        let found = match fill {
            Fill::Missing => self.frame.by_labels(&labels.frame, &Absent::Missing)?,
            Fill::Value(value) => self.filled(&labels.frame, value)?,
            Fill::Before => self.beside(labels, Nearest::Backward)?,
            Fill::After => self.beside(labels, Nearest::Forward)?,
            Fill::Nearest => self.nearest(labels)?,
        };
        let levels = found.index.iter().zip(&labels.names);
        let index = levels.map(|(level, name)| Level { name: name.clone(), ..level.clone() }).collect();
        Ok(Frame { index, ..found })
    }

    fn columns(&self) -> impl Iterator<Item = (String, Expr)> + '_ {
        self.frame.columns.iter().map(|column| (column.clone(), named(column)))
    }

    fn filled(&self, labels: &Frame, value: &Value) -> Result<Frame> {
        let marked = self.columns().chain([(MARK.to_owned(), lit(true))]).collect();
        let found = self.frame.project(marked)?.by_labels(labels, &Absent::Missing)?;
        let filled = self.frame.columns.iter().map(|column| {
            let (dtype, other) = (found.dtype(column)?, value.dtype());
            if !value.is_missing() && !takes(&dtype, &other) {
                return Err(Error::Type(format!("column {column:?} of {dtype} does not take a {other}")));
            }
            let (own, value) = unified(found.plan.schema(), named(column), lit(value.0.clone()))?;
            Ok((column.clone(), when(named(MARK).is_null(), value).otherwise(own)?))
        });
        found.project(filled.collect::<Result<_>>()?)
    }

    /// The labels, each with the nearest row in one direction: the time of the row, then its values under
    /// labels that begin with a text.
    fn found(&self, labels: &Frame, direction: Nearest, time: &str, prefix: &str) -> Result<Frame> {
        let Some((level, outer)) = self.frame.index.split_last() else {
            return Err(Error::Internal("rows without labels".to_owned()));
        };
        let keys: Vec<String> = (0..outer.len()).map(column).collect();
        let outer = keys.iter().zip(outer).map(|(key, level)| (key.clone(), named(&level.column)));
        let values = self.columns().map(|(column, expr)| (format!("{prefix}{column}"), expr));
        let columns = outer.chain([(time.to_owned(), named(&level.column))]).chain(values).collect();
        let right = Frame { index: Vec::new(), ..self.frame.clone() }.project(columns)?;
        let asof = AsOf::on_pair(&column(keys.len()), time).by(keys.iter().map(String::as_str));
        labels.nearest_rows(&right, &asof.nearest(direction))
    }

    fn beside(&self, labels: &Labels, direction: Nearest) -> Result<Frame> {
        let found = self.found(&labels.frame, direction, BEFORE, "")?;
        let found = Frame { index: labels.index(column), ..found };
        found.project(self.columns().collect())
    }

    fn nearest(&self, labels: &Labels) -> Result<Frame> {
        const LATER: &str = "__tharsis_fill_later_";
        let before = self.found(&labels.frame, Nearest::Backward, BEFORE, "")?;
        let both = self.found(&before, Nearest::Forward, AFTER, LATER)?;
        let ticks = |column: &str| cast(named(column), DataType::Int64);
        let label = column(labels.last());
        let (back, ahead) = (ticks(&label) - ticks(BEFORE), ticks(AFTER) - ticks(&label));
        let later = named(BEFORE).is_null().or(named(AFTER).is_not_null().and(ahead.lt_eq(back)));
        let chosen = self.columns().map(|(column, own)| {
            let other = named(&format!("{LATER}{column}"));
            Ok((column, when(later.clone(), other).otherwise(own)?))
        });
        let both = Frame { index: labels.index(column), ..both };
        both.project(chosen.collect::<Result<_>>()?)
    }

    /// The values on lines between those of the rows before and behind each label, by position among rows
    /// and labels.
    fn interpolated(&self, labels: &Labels) -> Result<Frame> {
        self.frame.check_unique()?;
        let keys = labels.index(key);
        let columns = keys.iter().enumerate().map(|(at, level)| (level.column.clone(), named(&column(at))));
        let wanted = labels.frame.project(columns.collect())?;
        let marked = Frame { index: keys, ..wanted }.project(vec![(MARK.to_owned(), lit(true))])?;
        let paired = self.frame.paired_by_labels(&marked, JoinType::Full)?;
        let levels = &paired.frame.index;
        let over =
            Over { keys: levels.iter().take(labels.last()).map(|level| named(&level.column)).collect() };
        let mut columns = vec![(MARK.to_owned(), paired.right_of(MARK)?)];
        let mut names = Vec::new();
        let interpolate = Step::Interpolate(FillLimit::default());
        for label in &self.frame.columns {
            let dtype = self.frame.dtype(label)?;
            if interpolate.fits(&dtype) {
                let line = over.step(&interpolate, paired.left_of(label)?, &dtype)?;
                columns.push((label.clone(), line));
                names.push(label.clone());
            }
        }
        let all = paired.frame.project(columns)?;
        let plan = all.builder().filter(named(MARK).is_not_null())?.build()?;
        let kept = Frame { plan, ..all };
        let kept = kept.project(names.into_iter().map(|label| (label.clone(), named(&label))).collect())?;
        let index = kept.index.iter().zip(&labels.names);
        let index = index.map(|(level, name)| Level { name: name.clone(), ..level.clone() }).collect();
        Ok(Frame { index, ..kept })
    }
}

impl Spans {
    fn labels(&self) -> Result<Labels> {
        Labels::of(&self.sizes()?)
    }

    /// The rows of all groups, with the keys and the time as their labels.
    fn rows(&self) -> Result<Rows> {
        let (frame, keys) = self.groups.parts()?;
        let values = self.values()?;
        let mut levels: Vec<(Level, Expr)> = Vec::new();
        for (at, key_of) in keys.iter().take(keys.len() - 1).enumerate() {
            levels.push((Level { column: key(at), name: None }, named(&key_of.column)));
        }
        let time = cast(named(&self.time.column), self.clock.dtype());
        levels.push((Level { column: key(keys.len()), name: None }, time));
        let timed = frame.builder().filter(named(&self.time.column).is_not_null())?.build()?;
        let present = Frame { plan: timed, ..(**frame).clone() };
        Rows::new(&present, &values, levels)
    }

    fn put(&self, fill: &Fill) -> Result<Frame> {
        self.rows()?.at(&self.labels()?, fill)
    }
}

impl Rows {
    /// The rows of a frame with these columns and these levels as index.
    fn new(frame: &Frame, values: &[String], levels: Vec<(Level, Expr)>) -> Result<Rows> {
        let columns = values.iter().map(|column| (column.clone(), named(column)));
        let hidden = levels.iter().map(|(level, expr)| (level.column.clone(), expr.clone()));
        let columns = columns.chain(hidden).collect();
        let projected = Frame { index: Vec::new(), ..frame.clone() }.project(columns)?;
        let index = levels.into_iter().map(|(level, _)| level).collect();
        Ok(Rows { frame: Frame { columns: values.to_vec(), index, ..projected } })
    }
}

impl Resample {
    #[track_caller]
    fn put(&self, fill: &Fill) -> DataFrame {
        DataFrame::new(self.spans().and_then(|spans| spans.put(fill)))
    }

    /// The rows whose times are labels of spans, and something else for labels that no row has. `ValueError`
    /// if a time stands twice, which is looked at at once.
    ///
    /// ```
    /// use tharsis_dataframe::{DataFrame, Fill, date_range};
    /// let frame = DataFrame::from_columns([("v", vec![1, 2].into())]);
    /// let spans = frame.assign("t", &date_range("2024-01-01", 2, "2D")).resample("t", "D");
    /// assert_eq!(spans.asfreq(Fill::Missing).col("v").values::<i64>()?, [Some(1), None, Some(2)]);
    /// assert_eq!(spans.asfreq(Fill::Value(0.into())).col("v").values::<i64>()?, [1, 0, 2].map(Some));
    /// assert_eq!(spans.interpolate().col("v").values::<f64>()?, [1.0, 1.5, 2.0].map(Some));
    /// # Ok::<(), tharsis_dataframe::Error>(())
    /// ```
    #[track_caller]
    pub fn asfreq(&self, fill: Fill) -> DataFrame {
        self.put(&fill)
    }

    /// The last row at or before the label of each span, as [`Resample::asfreq`] with [`Fill::Before`].
    #[track_caller]
    pub fn ffill(&self) -> DataFrame {
        self.put(&Fill::Before)
    }

    /// The next row at or behind the label of each span.
    #[track_caller]
    pub fn bfill(&self) -> DataFrame {
        self.put(&Fill::After)
    }

    /// The row nearest to the label of each span.
    #[track_caller]
    pub fn nearest(&self) -> DataFrame {
        self.put(&Fill::Nearest)
    }

    /// The columns with numbers at the labels of spans: on lines between their neighbours, by position among
    /// the rows and the labels.
    #[track_caller]
    pub fn interpolate(&self) -> DataFrame {
        let made = self.spans().and_then(|spans| spans.rows()?.interpolated(&spans.labels()?));
        DataFrame::new(made)
    }
}

impl Frame {
    /// Times at equal distances from the smallest to the largest one of a column.
    fn times_between(&self, column: &str, rule: Rule, clock: &Clock) -> Result<Frame> {
        let time = clock.read(named(column));
        let bounds = vec![min(time.clone()).alias(BEFORE), max(time).alias(AFTER)];
        let (first, last) = (named(BEFORE), named(AFTER));
        let start = |time: Expr| rule.start(time, first.clone());
        let series = gen_series(start(first.clone()), start(last.clone()), rule.length()).alias(MARK);
        let ticks = |time: Expr| cast(time, DataType::Int64);
        let label = match rule {
            Rule::Fixed(_) => named(MARK),
            // The time of the day is that of the first row.
            _ => {
                let midnight = date_trunc(lit("day"), first.clone());
                let since = ticks(first.clone()) - ticks(midnight);
                cast(ticks(rule.label(named(MARK))) + since, NANOSECONDS)
            }
        };
        let plan = self.builder().aggregate(Vec::<Expr>::new(), bounds)?.project(vec![
            series,
            first.clone(),
            last.clone(),
        ])?;
        let plan = plan.unnest_column(MARK)?;
        let plan = match rule.is_start(named(MARK)) {
            Some(is_start) => plan.filter(is_start)?,
            None => plan,
        };
        let plan = plan.project(vec![label.alias(WANTED), first.clone(), last.clone()])?;
        let within = named(WANTED).gt_eq(first).and(named(WANTED).lt_eq(last));
        let label = clock.time(named(WANTED)).alias(WANTED);
        let plan = plan.filter(within)?.project(vec![label])?.build()?;
        let order = vec![OrderKey::growing(WANTED)];
        Ok(Frame { plan, columns: vec![WANTED.to_owned()], index: Vec::new(), order })
    }

    fn asfreq(&self, frequency: &str, fill: &Fill) -> Result<Frame> {
        let rule = Rule::parse(frequency)?;
        let time = self.times_of_index()?;
        self.check_times(&time.column)?;
        let clock = Clock::of(&self.dtype(&time.column)?, rule);
        let times = self.times_between(&time.column, rule, &clock)?;
        let labels = Labels {
            frame: times.project(vec![(column(0), named(WANTED))])?,
            names: vec![time.name.clone()],
        };
        let level = Level { column: key(0), name: None };
        let rows = Rows::new(self, &self.columns, vec![(level, cast(named(&time.column), clock.dtype()))])?;
        rows.at(&labels, fill)
    }
}

impl DataFrame {
    /// The rows whose labels are times at equal distances, from the first to the last label, and something
    /// else for times that no row has. The frequency is a rule as that of [`DataFrame::resample`]; unlike
    /// there, days and hours are counted from the first label. `ValueError` if a label stands twice, which is
    /// looked at at once.
    ///
    /// ```
    /// use tharsis_dataframe::{DataFrame, Fill, date_range};
    /// let frame = DataFrame::from_columns([("v", vec![1, 2].into())]);
    /// let timed = frame.assign("t", &date_range("2024-01-01T06:00", 2, "2D")).set_index(["t"]);
    /// assert_eq!(timed.asfreq("D", Fill::Before).col("v").values::<i64>()?, [1, 1, 2].map(Some));
    /// # Ok::<(), tharsis_dataframe::Error>(())
    /// ```
    #[track_caller]
    pub fn asfreq(&self, frequency: &str, fill: Fill) -> DataFrame {
        self.then(|frame| frame.asfreq(frequency, &fill))
    }
}

impl Series {
    /// The values at times at equal distances, as [`DataFrame::asfreq`].
    #[track_caller]
    pub fn asfreq(&self, frequency: &str, fill: Fill) -> Series {
        self.through(|frame, _| frame.asfreq(frequency, fill))
    }
}
