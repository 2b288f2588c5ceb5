//! Whole columns reduced to one value.

use super::aggregate::Aggregate;
use super::group::first_where;
use super::{DataFrame, Frame, Reduce, named};
use crate::error::{Error, Result};
use crate::execute::{Executor, default_executor, execute};
use crate::frame::series::Series;
use crate::value::Value;
use arrow::datatypes::DataType;
use datafusion::functions_aggregate::expr_fn::count;
use datafusion::logical_expr::{Expr, ExprSchemable, lit};

impl DataFrame {
    /// Number of rows.
    ///
    /// # Errors
    /// The error that the frame carries, or one of its run.
    pub fn len(&self) -> Result<usize> {
        self.len_on(&*default_executor())
    }

    /// Number of rows, counted by an executor.
    ///
    /// # Errors
    /// The error that the frame carries, or one of its run.
    pub fn len_on(&self, executor: &dyn Executor) -> Result<usize> {
        let frame = self.frame()?;
        let value = frame.reduce(count(lit(1_i64)), executor)?;
        Ok(value.as_i64().unwrap_or(0) as usize)
    }

    /// Whether there is no row.
    ///
    /// # Errors
    /// The error that the frame carries, or one of its run.
    pub fn is_empty(&self) -> Result<bool> {
        Ok(self.len()? == 0)
    }
}

impl Frame {
    /// One value over all rows.
    pub(crate) fn reduce(&self, aggregate: Expr, executor: &dyn Executor) -> Result<Value> {
        let plan = self.builder().aggregate(Vec::<Expr>::new(), vec![aggregate])?.build()?;
        let (resident, _) = execute(&plan, executor)?;
        let batches = resident.fetch()?;
        let batch = batches.iter().find(|batch| batch.num_rows() > 0);
        let batch = batch.ok_or_else(|| Error::Internal("an aggregate without a row".to_owned()))?;
        Value::from_array(batch.column(0), 0)
    }
}

impl Series {
    /// One aggregate of all values, with options if it is a [`Reduce`].
    ///
    /// # Errors
    /// The error that the series carries, one of its run, or `TypeError` for values that it is not made for.
    pub fn agg(&self, reduce: impl Into<Reduce>) -> Result<Value> {
        self.agg_on(reduce, &*default_executor())
    }

    /// One aggregate of all values, computed by an executor.
    ///
    /// # Errors
    /// As [`Series::agg`].
    pub fn agg_on(&self, reduce: impl Into<Reduce>, executor: &dyn Executor) -> Result<Value> {
        let (frame, expr) = self.parts()?;
        let dtype = expr.get_type(frame.plan.schema())?;
        let reduce = reduce.into();
        if matches!(dtype, DataType::Duration(_)) && !reduce.aggregate.fits_whole(&dtype) {
            let name = reduce.aggregate.name();
            return Err(Error::Type(format!("{name} is not made for values of type {dtype}")));
        }
        let (lifted, exprs) = frame.lifted(vec![expr.clone()])?;
        let ordered = lifted.with_order()?;
        let expr = exprs.into_iter().next().ok_or_else(|| Error::Internal("a lost expression".to_owned()))?;
        ordered.reduce(reduce.expr(expr, &dtype, &ordered.sort_exprs())?, executor)
    }

    /// The label of the index at the smallest value; of several, the first. Missing without values.
    ///
    /// # Errors
    /// The error that the series carries, or one of its run; `NotImplemented` for an index with several
    /// levels.
    pub fn idxmin(&self) -> Result<Value> {
        self.label_of(true)
    }

    /// The label of the index at the largest value; of several, the first. Missing without values.
    ///
    /// # Errors
    /// As [`Series::idxmin`].
    pub fn idxmax(&self) -> Result<Value> {
        self.label_of(false)
    }

    fn label_of(&self, smallest: bool) -> Result<Value> {
        let label = self.label();
        let values = self.to_frame();
        let frame = values.frame()?.with_index()?.with_order()?;
        let [level] = &frame.index[..] else {
            return Err(Error::NotImplemented("labels of an index with several levels".to_owned()));
        };
        let order = frame.by_value(&label, smallest);
        frame.reduce(first_where(named(&level.column), named(&label), order)?, &*default_executor())
    }

    /// Number of rows.
    ///
    /// # Errors
    /// The error that the series carries, or one of its run.
    pub fn len(&self) -> Result<usize> {
        self.to_frame().len()
    }

    /// Whether there is no row.
    ///
    /// # Errors
    /// The error that the series carries, or one of its run.
    pub fn is_empty(&self) -> Result<bool> {
        self.to_frame().is_empty()
    }

    /// A quantile of the values, between neighbours if need be.
    ///
    /// # Errors
    /// As [`Series::agg`]; `ValueError` for a part that is not between 0 and 1.
    pub fn quantile(&self, part: f64) -> Result<Value> {
        self.agg(Aggregate::Quantile(part))
    }
}

macro_rules! reductions {
    ($($(#[$doc:meta])* $name:ident $aggregate:ident),*) => {
        impl Series {
            $($(#[$doc])*
            ///
            /// # Errors
            /// As [`Series::agg`].
            pub fn $name(&self) -> Result<Value> {
                self.agg(Aggregate::$aggregate)
            })*
        }
    };
}

reductions!(
    /// The sum; 0 without values.
    sum Sum,
    /// The arithmetic mean.
    mean Mean,
    /// The smallest value.
    min Min,
    /// The largest value.
    max Max,
    /// The number of values that are there.
    count Count,
    /// The number of distinct values.
    nunique Nunique,
    /// The standard deviation of a sample.
    std Std,
    /// The variance of a sample.
    var Var,
    /// The standard error of the mean.
    sem Sem,
    /// The middle value.
    median Median,
    /// Whether any value is true.
    any Any,
    /// Whether all values are true.
    all All,
    /// The product; 1 without values.
    prod Prod,
    /// The skewness of a sample.
    skew Skew,
    /// The excess kurtosis of a sample.
    kurt Kurt
);
