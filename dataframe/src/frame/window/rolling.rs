//! Windows that move with the rows: of fixed length, growing, or with weights that fade.

use super::span::Span;
use super::{Ends, Fading, Rank, Step};
use crate::error::{Error, Result};
use crate::frame::DataFrame;
use crate::frame::aggregate::Aggregate;
use crate::frame::group::GroupBy;
use crate::frame::series::Series;

/// Windows of rows around each row, for aggregates: what [`Series::rolling`] and [`Series::expanding`] give.
///
/// ```
/// use tharsis_dataframe::Series;
/// let n = Series::from_values("n", vec![1, 2, 6]);
/// assert_eq!(n.rolling(2).mean().values::<f64>()?, [None, Some(1.5), Some(4.0)]);
/// assert_eq!(n.rolling(2).min_periods(1).max().values::<f64>()?, [1.0, 2.0, 6.0].map(Some));
/// # Ok::<(), tharsis_dataframe::Error>(())
/// ```
#[must_use = "windows do nothing by themselves: call an aggregate"]
#[derive(Clone, Debug)]
pub struct Rolling<T> {
    pub(super) of: T,
    pub(super) span: Span,
}

impl<T> Rolling<T> {
    /// The number of values that a window must have; its length by default.
    pub fn min_periods(mut self, values: usize) -> Rolling<T> {
        self.span.min_periods = Some(values);
        self
    }

    /// The row in the middle of its window instead of at its end, if true.
    pub fn center(mut self, center: bool) -> Rolling<T> {
        self.span.center = center;
        self
    }

    /// The ends that belong to a window, which is one row longer with both of them; the last row by default.
    ///
    /// ```
    /// use tharsis_dataframe::{Ends, Series};
    /// let n = Series::from_values("n", vec![1, 2, 6]);
    /// let before = n.rolling(2).min_periods(1).closed(Ends::Left);
    /// assert_eq!(before.sum().values::<f64>()?, [None, Some(1.0), Some(3.0)]);
    /// # Ok::<(), tharsis_dataframe::Error>(())
    /// ```
    pub fn closed(mut self, ends: Ends) -> Rolling<T> {
        self.span.ends = ends;
        self
    }

    /// The result of a function of these windows, for chains of calls.
    #[must_use]
    pub fn pipe<U>(&self, step: impl FnOnce(&Rolling<T>) -> U) -> U {
        step(self)
    }

    fn step(&self, aggregate: Aggregate) -> Step {
        Step::Rolling(self.span, aggregate)
    }
}

/// Means with weights that fade by the age of values: what [`Series::ewm`] gives.
#[must_use = "windows do nothing by themselves: call an aggregate"]
#[derive(Clone, Debug)]
pub struct Ewm<T> {
    pub(super) of: T,
    pub(super) alpha: Result<f64>,
    pub(super) adjust: bool,
    pub(super) min_periods: usize,
    pub(super) bias: bool,
    pub(super) ignore_na: bool,
}

impl<T> Ewm<T> {
    fn new(of: T) -> Ewm<T> {
        let alpha = Err(Error::Value("pass alpha, span, halflife or com of the weights".to_owned()));
        Ewm { of, alpha, adjust: true, min_periods: 0, bias: false, ignore_na: false }
    }

    fn with(self, alpha: f64, fits: bool, name: &str) -> Ewm<T> {
        let refused = || Err(Error::Value(format!("{name} is out of its bounds")));
        Ewm { alpha: if fits { Ok(alpha) } else { refused() }, ..self }
    }

    /// The weight of the newest value, above 0 and up to 1.
    pub fn alpha(self, alpha: f64) -> Ewm<T> {
        self.with(alpha, alpha > 0.0 && alpha <= 1.0, "alpha")
    }

    /// Weights by a span of at least 1: alpha is `2 / (span + 1)`.
    pub fn span(self, span: f64) -> Ewm<T> {
        self.with(2.0 / (span + 1.0), span >= 1.0, "span")
    }

    /// Weights by the number of rows after which they are one half.
    pub fn halflife(self, rows: f64) -> Ewm<T> {
        self.with(1.0 - (-std::f64::consts::LN_2 / rows).exp(), rows > 0.0, "halflife")
    }

    /// Weights by their centre of mass: alpha is `1 / (com + 1)`.
    pub fn com(self, com: f64) -> Ewm<T> {
        self.with(1.0 / (1.0 + com), com >= 0.0, "com")
    }

    /// Weights divided by their sum, as is the default; else each mean is made of the last one and the value.
    pub fn adjust(self, adjust: bool) -> Ewm<T> {
        Ewm { adjust, ..self }
    }

    /// The number of values from which there is a mean.
    pub fn min_periods(self, values: usize) -> Ewm<T> {
        Ewm { min_periods: values, ..self }
    }

    /// Whether variances are those of the values alone, not estimates for what they were drawn from.
    pub fn bias(self, bias: bool) -> Ewm<T> {
        Ewm { bias, ..self }
    }

    /// Whether a missing value leaves the weights of those before it as they are; by default they fade.
    ///
    /// ```
    /// use tharsis_dataframe::Series;
    /// let n = Series::from_values("n", vec![Some(1.0), None, Some(4.0)]);
    /// let means = n.ewm().alpha(0.5).ignore_na(true).mean();
    /// assert_eq!(means.values::<f64>()?, [1.0, 1.0, 3.0].map(Some));
    /// # Ok::<(), tharsis_dataframe::Error>(())
    /// ```
    pub fn ignore_na(self, ignore_na: bool) -> Ewm<T> {
        Ewm { ignore_na, ..self }
    }

    pub(super) fn fading(&self) -> Result<Fading> {
        let (adjust, min_periods, ignore_na) = (self.adjust, self.min_periods, self.ignore_na);
        Ok(Fading { alpha: self.alpha.clone()?, adjust, min_periods, ignore_na })
    }

    fn spread(&self, root: bool) -> Result<Step> {
        Ok(Step::EwmVar { fading: self.fading()?, bias: self.bias, root })
    }

    fn total(&self) -> Result<Step> {
        if !self.adjust {
            return Err(Error::NotImplemented("sum is not implemented with adjust=False".to_owned()));
        }
        Ok(Step::EwmSum(self.fading()?))
    }

    fn weighted(&self, aggregate: Aggregate) -> Result<Step> {
        match aggregate {
            Aggregate::Mean => self.step(),
            Aggregate::Sum => self.total(),
            Aggregate::Var => self.spread(false),
            Aggregate::Std => self.spread(true),
            other => Err(Error::Value(format!("weights that fade have no {}", other.name()))),
        }
    }

    fn step(&self) -> Result<Step> {
        Ok(Step::EwmMean(self.fading()?))
    }
}

macro_rules! windows {
    ($from:ident, $to:ident, $step:ident, $grown:path) => {
        impl $from {
            /// Windows of this many rows: each row and those before it.
            pub fn rolling(&self, window: usize) -> Rolling<$from> {
                let span = Span { window: Some(window), min_periods: None, center: false, ends: Ends::Right };
                Rolling { of: self.clone(), span }
            }

            /// Windows of each row and all before it.
            pub fn expanding(&self) -> Rolling<$from> {
                let span = Span { window: None, min_periods: None, center: false, ends: Ends::Right };
                Rolling { of: $grown(self), span }
            }

            /// Exponentially weighted windows over all rows so far.
            pub fn ewm(&self) -> Ewm<$from> {
                Ewm::new($grown(self))
            }
        }

        windows!(@aggregates $from, $to, $step;
            /// The sum of each window.
            sum Sum,
            /// The mean of each window.
            mean Mean,
            /// The smallest value of each window.
            min Min,
            /// The largest value of each window.
            max Max,
            /// The number of values of each window that are there.
            count Count,
            /// The standard deviation of each window.
            std Std,
            /// The variance of each window.
            var Var,
            /// The standard error of each window's mean.
            sem Sem,
            /// The skewness of each window.
            skew Skew,
            /// The excess kurtosis of each window.
            kurt Kurt,
            /// The middle value of each window.
            median Median,
            /// The first value of each window that is there.
            first First,
            /// The last value of each window that is there.
            last Last,
            /// The number of distinct values of each window.
            nunique Nunique
        );

        impl Ewm<$from> {
            /// The weighted mean of the values so far.
            #[track_caller]
            pub fn mean(&self) -> $to {
                self.made(self.step())
            }

            /// The weighted variance of the values so far.
            #[track_caller]
            pub fn var(&self) -> $to {
                self.made(self.spread(false))
            }

            /// The weighted standard deviation of the values so far.
            #[track_caller]
            pub fn std(&self) -> $to {
                self.made(self.spread(true))
            }

            /// The weighted sum of the values so far.
            #[track_caller]
            pub fn sum(&self) -> $to {
                self.made(self.total())
            }

            /// One aggregate with the weights: the mean, sum, variance or standard deviation; `ValueError`
            /// for another one.
            #[track_caller]
            pub fn agg(&self, aggregate: Aggregate) -> $to {
                self.made(self.weighted(aggregate))
            }

            #[track_caller]
            fn made(&self, step: Result<Step>) -> $to {
                match step {
                    Ok(step) => self.of.$step(&step),
                    Err(error) => $to::failed(error),
                }
            }
        }
    };
    (@aggregates $from:ident, $to:ident, $step:ident; $($(#[$doc:meta])* $name:ident $aggregate:ident),*) => {
        impl Rolling<$from> {
            $($(#[$doc])*
            #[track_caller]
            pub fn $name(&self) -> $to {
                self.of.$step(&self.step(Aggregate::$aggregate))
            })*

            /// One aggregate of each window.
            #[track_caller]
            pub fn agg(&self, aggregate: Aggregate) -> $to {
                self.of.$step(&self.step(aggregate))
            }

            /// The rank of each row's value among those of its window: by their mean, the lowest or the
            /// highest of equal ones.
            ///
            /// ```
            /// use tharsis_dataframe::{Rank, Series};
            /// let n = Series::from_values("n", vec![3, 1, 4, 1]);
            /// let ranks = n.rolling(3).min_periods(1).rank(Rank::default());
            /// assert_eq!(ranks.values::<f64>()?, [1.0, 1.0, 3.0, 1.5].map(Some));
            /// # Ok::<(), tharsis_dataframe::Error>(())
            /// ```
            #[track_caller]
            pub fn rank(&self, options: Rank) -> $to {
                self.of.$step(&Step::RollingRank(self.span, options))
            }

            /// A quantile of each window, between neighbours if need be.
            #[track_caller]
            pub fn quantile(&self, part: f64) -> $to {
                self.of.$step(&self.step(Aggregate::Quantile(part)))
            }
        }
    };
}

windows!(Series, Series, window_step, Clone::clone);
windows!(DataFrame, DataFrame, window_step, Clone::clone);
windows!(GroupBy, DataFrame, window_step_by_group, indexed);

/// Groups whose keys are levels of the index: those that grow or fade have no other form in pandas.
fn indexed(groups: &GroupBy) -> GroupBy {
    groups.clone().as_index(true)
}

impl Series {
    /// A series that carries an error.
    #[track_caller]
    pub(super) fn failed(error: Error) -> Series {
        Series::new(Err(error), None)
    }
}

impl DataFrame {
    /// A frame that carries an error.
    #[track_caller]
    pub(super) fn failed(error: Error) -> DataFrame {
        DataFrame::new(Err(error))
    }
}
