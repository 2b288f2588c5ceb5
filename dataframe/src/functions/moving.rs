//! Sums, means and moments of floats in frames of rows that move, as windows of SQL have them.
//!
//! The library takes a value that leaves a frame out of its sums, and what rounding did to them stays: after
//! 1e17 has left, 1 and 1 would be 0, and after an infinity nothing would be a number any more. Nothing is
//! taken out of a sum here. The older values of a frame have the sums from each of them on, which are made
//! when all newer ones have become old, so that a row costs about three additions whatever its frame.

use super::sliding::Values;
use arrow::array::{ArrayRef, AsArray};
use arrow::datatypes::{DataType, Field, FieldRef, Float64Type};
use datafusion::common::{Result, ScalarValue, internal_err};
use datafusion::logical_expr::expr::{WindowFunction, WindowFunctionParams};
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::AggregateOrderSensitivity;
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, Expr, ReversedUDAF, Signature, Volatility,
    WindowFunctionDefinition, cast,
};
use std::sync::{Arc, OnceLock};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Kind {
    Avg,
    Corr,
    CovarPop,
    CovarSamp,
    RegrAvgX,
    RegrAvgY,
    RegrIntercept,
    RegrR2,
    RegrSlope,
    RegrSxx,
    RegrSxy,
    RegrSyy,
    Stddev,
    StddevPop,
    Sum,
    Var,
    VarPop,
}

/// Each function by its name in the library and its own.
const KINDS: [(Kind, &str, &str); 17] = [
    (Kind::Avg, "avg", "tharsis_moving_avg"),
    (Kind::Corr, "corr", "tharsis_moving_corr"),
    (Kind::CovarPop, "covar_pop", "tharsis_moving_covar_pop"),
    (Kind::CovarSamp, "covar_samp", "tharsis_moving_covar_samp"),
    (Kind::RegrAvgX, "regr_avgx", "tharsis_moving_regr_avgx"),
    (Kind::RegrAvgY, "regr_avgy", "tharsis_moving_regr_avgy"),
    (Kind::RegrIntercept, "regr_intercept", "tharsis_moving_regr_intercept"),
    (Kind::RegrR2, "regr_r2", "tharsis_moving_regr_r2"),
    (Kind::RegrSlope, "regr_slope", "tharsis_moving_regr_slope"),
    (Kind::RegrSxx, "regr_sxx", "tharsis_moving_regr_sxx"),
    (Kind::RegrSxy, "regr_sxy", "tharsis_moving_regr_sxy"),
    (Kind::RegrSyy, "regr_syy", "tharsis_moving_regr_syy"),
    (Kind::Stddev, "stddev", "tharsis_moving_stddev"),
    (Kind::StddevPop, "stddev_pop", "tharsis_moving_stddev_pop"),
    (Kind::Sum, "sum", "tharsis_moving_sum"),
    (Kind::Var, "var", "tharsis_moving_var"),
    (Kind::VarPop, "var_pop", "tharsis_moving_var_pop"),
];

/// The functions, for the registry of a session.
pub(super) fn functions() -> impl Iterator<Item = Arc<AggregateUDF>> {
    known().iter().map(|(_, function)| Arc::clone(function))
}

/// The functions by the names of those of the library, of which a process has one each.
fn known() -> &'static [(&'static str, Arc<AggregateUDF>)] {
    static KNOWN: OnceLock<Vec<(&'static str, Arc<AggregateUDF>)>> = OnceLock::new();
    KNOWN.get_or_init(|| {
        let made = KINDS.iter().map(|&(kind, of_library, name)| {
            let types = vec![DataType::Float64; if kind.is_of_pairs() { 2 } else { 1 }];
            let signature = Signature::exact(types, Volatility::Immutable);
            (of_library, Arc::new(AggregateUDF::from(Moving { kind, name, signature })))
        });
        made.collect()
    })
}

/// Whether it is one of these functions, which take no notice of a row without a value.
pub(crate) fn is_moving(function: &AggregateUDF) -> bool {
    known().iter().any(|(_, own)| own.name() == function.name())
}

/// The window whose frames are computed here, in the place of one of the library: of floats, or of numbers
/// that it makes floats of. `None` for other functions, and for frames that no row leaves.
pub(crate) fn moving_window(call: &WindowFunction, types: &[DataType]) -> Option<Expr> {
    let WindowFunctionDefinition::AggregateUDF(function) = &call.fun else { return None };
    let (name, moving) = known().iter().find(|(of_library, _)| *of_library == function.name())?;
    let are_floats = types.iter().all(|dtype| match *name {
        "sum" => dtype.is_floating(),
        "avg" => dtype.is_floating() || dtype.is_integer(),
        _ => dtype.is_numeric(),
    });
    let params = &call.params;
    if !are_floats || params.distinct || params.window_frame.is_ever_expanding() {
        return None;
    }
    let args = params.args.iter().zip(types).map(|(value, dtype)| match dtype {
        DataType::Float64 => value.clone(),
        _ => cast(value.clone(), DataType::Float64),
    });
    let params = WindowFunctionParams { args: args.collect(), ..params.clone() };
    let fun = WindowFunctionDefinition::AggregateUDF(Arc::clone(moving));
    Some(Expr::WindowFunction(Box::new(WindowFunction { fun, params })))
}

impl Kind {
    fn is_of_pairs(self) -> bool {
        match self {
            Kind::Avg | Kind::Stddev | Kind::StddevPop | Kind::Sum | Kind::Var | Kind::VarPop => false,
            Kind::Corr
            | Kind::CovarPop
            | Kind::CovarSamp
            | Kind::RegrAvgX
            | Kind::RegrAvgY
            | Kind::RegrIntercept
            | Kind::RegrR2
            | Kind::RegrSlope
            | Kind::RegrSxx
            | Kind::RegrSxy
            | Kind::RegrSyy => true,
        }
    }

    /// The result of a number of values and the sum of squares of their distances from the mean.
    fn of_spread(self, count: f64, squares: f64) -> Option<f64> {
        let degrees = if matches!(self, Kind::StddevPop | Kind::VarPop) { count } else { count - 1.0 };
        let variance = squares / degrees;
        let is_root = matches!(self, Kind::Stddev | Kind::StddevPop);
        (0.0 < degrees).then(|| if is_root { variance.sqrt() } else { variance })
    }

    /// The result of pairs.
    fn of_pairs(self, pairs: Pairs) -> Option<f64> {
        let Pairs { count, mean_x, mean_y, xx, yy, xy } = pairs;
        let has_slope = 1.0 < count && xx != 0.0;
        let (is_there, value) = match self {
            Kind::Corr => (has_slope && yy != 0.0, xy / xx.sqrt() / yy.sqrt()),
            Kind::CovarPop => (0.0 < count, xy / count),
            Kind::CovarSamp => (1.0 < count, xy / (count - 1.0)),
            Kind::RegrAvgX => (0.0 < count, mean_x),
            Kind::RegrAvgY => (0.0 < count, mean_y),
            Kind::RegrIntercept => (has_slope, mean_y - xy / xx * mean_x),
            Kind::RegrR2 => (has_slope && yy != 0.0, xy / xx * (xy / yy)),
            Kind::RegrSlope => (has_slope, xy / xx),
            Kind::RegrSxx => (0.0 < count, xx),
            Kind::RegrSxy => (0.0 < count, xy),
            Kind::RegrSyy => (0.0 < count, yy),
            _ => (false, 0.0),
        };
        is_there.then_some(value)
    }
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Moving {
    kind: Kind,
    name: &'static str,
    signature: Signature,
}

impl AggregateUDFImpl for Moving {
    fn name(&self) -> &'static str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Float64)
    }

    fn accumulator(&self, _: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        let held = match self.kind {
            Kind::Avg | Kind::Sum => Held::Totals(Queue::default()),
            kind if kind.is_of_pairs() => Held::Pairs(Queue::default()),
            _ => Held::Spread(Values::default()),
        };
        Ok(Box::new(Frame { kind: self.kind, held }))
    }

    fn state_fields(&self, args: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        Ok(vec![Arc::new(Field::new(format!("{}_state", args.name), DataType::Float64, true))])
    }

    fn reverse_expr(&self) -> ReversedUDAF {
        ReversedUDAF::Identical
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        AggregateOrderSensitivity::Insensitive
    }
}

/// The sums of some rows of a frame.
trait Part: Copy + Default {
    fn with(self, other: Self) -> Self;
}

/// A sum, and what rounding has cut off it.
#[derive(Clone, Copy, Debug, Default)]
struct Total {
    sum: f64,
    rest: f64,
}

impl Total {
    fn value(self) -> f64 {
        // There is no rest of an infinity.
        if self.sum.is_finite() { self.sum + self.rest } else { self.sum }
    }
}

impl Part for Total {
    fn with(self, other: Total) -> Total {
        let sum = self.sum + other.sum;
        let (large, small) =
            if self.sum.abs() < other.sum.abs() { (other.sum, self.sum) } else { (self.sum, other.sum) };
        Total { sum, rest: self.rest + other.rest + ((large - sum) + small) }
    }
}

/// Number of pairs, their means, and the sums of products of their distances from these.
#[derive(Clone, Copy, Debug, Default)]
struct Pairs {
    count: f64,
    mean_x: f64,
    mean_y: f64,
    xx: f64,
    yy: f64,
    xy: f64,
}

impl Part for Pairs {
    fn with(self, other: Pairs) -> Pairs {
        if self.count == 0.0 || other.count == 0.0 {
            return if self.count == 0.0 { other } else { self };
        }
        let count = self.count + other.count;
        let (x, y) = (other.mean_x - self.mean_x, other.mean_y - self.mean_y);
        let (part, both) = (other.count / count, self.count * other.count / count);
        Pairs {
            count,
            mean_x: self.mean_x + x * part,
            mean_y: self.mean_y + y * part,
            xx: self.xx + other.xx + x * x * both,
            yy: self.yy + other.yy + y * y * both,
            xy: self.xy + other.xy + x * y * both,
        }
    }
}

/// The rows of a frame, which come behind each other and leave in the same order.
#[derive(Debug, Default)]
struct Queue<P> {
    /// Sums from each of the older rows on; that of all of them is the last.
    older: Vec<P>,
    newer: Vec<P>,
    /// The sum of the newer rows.
    together: P,
}

impl<P: Part> Queue<P> {
    fn push(&mut self, part: P) {
        self.newer.push(part);
        self.together = self.together.with(part);
    }

    /// Takes out the oldest row.
    fn pop(&mut self) {
        if self.older.is_empty() {
            for part in self.newer.drain(..).rev() {
                let behind = self.older.last().copied().unwrap_or_default();
                self.older.push(part.with(behind));
            }
            self.together = P::default();
        }
        self.older.pop();
    }

    fn all(&self) -> P {
        self.older.last().copied().unwrap_or_default().with(self.together)
    }

    fn len(&self) -> usize {
        self.older.len() + self.newer.len()
    }

    fn bytes(&self) -> usize {
        (self.older.capacity() + self.newer.capacity()) * size_of::<P>()
    }
}

#[derive(Debug)]
enum Held {
    Pairs(Queue<Pairs>),
    Spread(Values),
    Totals(Queue<Total>),
}

/// A frame, and the function of it.
#[derive(Debug)]
struct Frame {
    kind: Kind,
    held: Held,
}

/// The pairs of two columns in which none is missing. The first column is the one that a line explains.
fn pairs_of(values: &[ArrayRef]) -> Result<Vec<Pairs>> {
    let [y, x] = values else { return internal_err!("{} columns are no pairs", values.len()) };
    let (y, x) = (y.as_primitive::<Float64Type>(), x.as_primitive::<Float64Type>());
    let pairs = y.iter().zip(x).filter_map(|(y, x)| y.zip(x));
    Ok(pairs.map(|(mean_y, mean_x)| Pairs { count: 1.0, mean_x, mean_y, ..Pairs::default() }).collect())
}

fn floats(values: &[ArrayRef]) -> Result<impl Iterator<Item = f64>> {
    let [values] = values else { return internal_err!("a frame of {} columns", values.len()) };
    Ok(values.as_primitive::<Float64Type>().iter().flatten())
}

impl Accumulator for Frame {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        match &mut self.held {
            Held::Pairs(queue) => pairs_of(values)?.into_iter().for_each(|pair| queue.push(pair)),
            Held::Spread(held) => held.update_batch(values)?,
            Held::Totals(queue) => floats(values)?.for_each(|sum| queue.push(Total { sum, rest: 0.0 })),
        }
        Ok(())
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        match &mut self.held {
            Held::Pairs(queue) => pairs_of(values)?.iter().for_each(|_| queue.pop()),
            Held::Spread(held) => held.retract_batch(values)?,
            Held::Totals(queue) => floats(values)?.for_each(|_| queue.pop()),
        }
        Ok(())
    }

    fn supports_retract_batch(&self) -> bool {
        true
    }

    fn merge_batch(&mut self, _: &[ArrayRef]) -> Result<()> {
        internal_err!("frames of rows have no parts")
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        Ok(ScalarValue::Float64(match &self.held {
            Held::Pairs(queue) => self.kind.of_pairs(queue.all()),
            Held::Spread(held) => {
                let (count, squares) = held.spread();
                self.kind.of_spread(count, squares)
            }
            Held::Totals(queue) => {
                let (sum, count) = (queue.all().value(), queue.len());
                let value = if self.kind == Kind::Avg { sum / count as f64 } else { sum };
                (0 < count).then_some(value)
            }
        }))
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        internal_err!("frames of rows have no parts")
    }

    fn size(&self) -> usize {
        size_of_val(self)
            + match &self.held {
                Held::Pairs(queue) => queue.bytes(),
                Held::Spread(held) => held.size(),
                Held::Totals(queue) => queue.bytes(),
            }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_left_a_queue_leaves_nothing_behind() {
        let mut queue = Queue::default();
        let values = [1e300, f64::INFINITY, 0.1, f64::NEG_INFINITY, 0.2, 0.0, 3.0, 4.0];
        for (at, value) in values.into_iter().enumerate() {
            queue.push(Total { sum: value, rest: 0.0 });
            if 2 <= at {
                queue.pop();
            }
        }
        assert_eq!((queue.len(), queue.all().value()), (2, 7.0));
        queue.pop();
        queue.pop();
        assert_eq!((queue.len(), queue.all().value()), (0, 0.0));
    }
}
