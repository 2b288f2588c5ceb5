//! Parts of tensors chosen at random, and put in a random order.

use crate::elementwise::where_;
use crate::joined::all_known;
use crate::late::late;
use crate::operand::cast;
use crate::random::Generator;
use crate::tensor::{Tensor, carry};
use tharsis_graph::ops::{Indexed, Require};
use tharsis_graph::shape::{element_count, normalize_axis, require_known};
use tharsis_kernels::program::IndexMap;
use tharsis_kernels::{DType, Key, Scalar};

impl Generator {
    /// NumPy's `Generator.choice(count, p=..)`: numbers of `0..count` with these chances, (count,), each once
    /// unless `replace`; any shape, int64.
    ///
    /// ```
    /// use tharsis_numeric::{array, random::default_rng};
    /// let chosen = default_rng(1).choice_weighted(&array([0.5, 0.0, 0.5]), &[100], true);
    /// assert!(chosen.not_equal(1).all(..).item()?.is_true());
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// `ValueError` unless the chances have one axis; if more are to be chosen than there are; when it runs
    /// if chances are negative, NaN, do not add up to 1, or too few of them are positive.
    ///
    /// # Distributed
    /// With replacement as [`Tensor::cumsum`] and [`Tensor::searchsorted`], else as [`Tensor::argsort`] of a
    /// random number for each chance.
    #[track_caller]
    pub fn choice_weighted(&self, p: &Tensor, shape: &[usize], replace: bool) -> Tensor {
        let own = carry!(p.shape());
        if own.len() != 1 {
            return Tensor::bad_value("p must be 1-dimensional", &[p]);
        }
        carry!(require_known("choice", own), p);
        let wanted = element_count(shape);
        if own[0] == 0 && wanted != 0 {
            return Tensor::bad_value("a must be a positive integer unless no samples are taken", &[p]);
        }
        let p = checked(&cast(p, DType::F64));
        if replace {
            let sums = p.cumsum(0);
            let shares = sums.divide(sums.get(&[crate::index::Index::At(-1)]));
            return shares.searchsorted_right(&self.random(shape));
        }
        if (own[0] as u64) < wanted {
            let text = "Cannot take a larger sample than population when replace is False";
            return Tensor::bad_value(text, &[&p]);
        }
        let enough = p.count_nonzero(..).greater_equal(wanted as i64);
        let message = "Fewer non-zero entries in p than size".to_owned();
        let p = Tensor::apply(Require { message }, &[&p, &enough]);
        // The first of independent exponential times, with these rates, are a sample without replacement.
        // Their logarithms are compared: times of tiny rates are no less finite than those of others.
        let times = self.open_unit("choice", own).log().negative().log();
        let can_be = p.greater(0.0);
        let times = times.subtract(where_(&can_be, &p, 1.0).log());
        let times = where_(&can_be, times, Scalar::Float(f64::INFINITY));
        let chosen = times.argsort(0).get(&[(..wanted as i64).into()]);
        chosen.reshape(&shape.iter().map(|&extent| extent as i64).collect::<Vec<_>>())
    }

    /// NumPy's `Generator.permutation(x, axis)`: the parts of a tensor along an axis in a random order; any
    /// dtype, the shape stays.
    ///
    /// ```
    /// use tharsis_numeric::{arange, random::default_rng};
    /// let x = default_rng(1).permutation_of(&arange(6).reshape(&[3, 2]), 0);
    /// assert_eq!(x.sum(0).to_vec::<i64>()?, [6, 9]);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// `AxisError` if there is no such axis.
    ///
    /// # Distributed
    /// As [`Generator::permutation`] and [`Tensor::take_at`].
    #[track_caller]
    pub fn permutation_of(&self, x: &Tensor, axis: i64) -> Tensor {
        in_order_of(x, self.key("permutation_of"), axis, true)
    }

    /// NumPy's `Generator.permuted`: each line along an axis in a random order of its own, or all elements
    /// without an axis; any dtype, the shape stays.
    ///
    /// ```
    /// use tharsis_numeric::{arange, random::default_rng};
    /// let x = default_rng(1).permuted(&arange(6).reshape(&[2, 3]), Some(1));
    /// assert_eq!(x.sort(1).to_vec::<i64>()?, [0, 1, 2, 3, 4, 5]);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// `AxisError` if there is no such axis.
    ///
    /// # Distributed
    /// As [`Tensor::argsort`] of a random number for each element, and [`Tensor::take_along_axis`].
    #[track_caller]
    pub fn permuted(&self, x: &Tensor, axis: Option<i64>) -> Tensor {
        let key = self.key("permuted");
        let Some(axis) = axis else {
            let shape = carry!(x.shape());
            carry!(require_known("permuted", shape), x);
            let shape: Vec<i64> = shape.iter().map(|&extent| extent as i64).collect();
            return in_order_of(&x.ravel(), key, 0, true).reshape(&shape);
        };
        in_order_of(x, key, axis, false)
    }
}

/// A tensor in the order of random numbers along an axis: the same for all lines, or one for each.
#[track_caller]
fn in_order_of(x: &Tensor, key: Key, axis: i64, together: bool) -> Tensor {
    let meta = carry!(x.meta());
    let at = carry!(normalize_axis(axis, meta.shape.len()), x);
    if !all_known(&[x]) {
        let text = format!("{key:?} {axis} {together}");
        return late("permutation", text, meta.clone(), &[x], move |x| {
            in_order_of(&x[0], key, axis, together)
        });
    }
    let shape = if together { vec![meta.shape[at]] } else { meta.shape.clone() };
    let numbers = Tensor::apply(Indexed { shape, map: IndexMap::Below { key, span: 0 } }, &[]);
    if together {
        x.take_at(&numbers.argsort(0), axis)
    } else {
        x.take_along_axis(&numbers.argsort(axis), axis)
    }
}

/// Chances that are none unless they are numbers, not negative, and add up to 1.
#[track_caller]
fn checked(p: &Tensor) -> Tensor {
    let required = |p: &Tensor, condition: Tensor, message: &str| {
        let message = message.to_owned();
        Tensor::apply(Require { message }, &[p, &condition])
    };
    let away = p.sum(..).subtract(1.0).abs();
    let made = required(p, p.isnan().any(..).logical_not(), "Probabilities contain NaN");
    let made = required(&made, p.less(0.0).any(..).logical_not(), "Probabilities are not non-negative");
    required(&made, away.less_equal(SUM_TOLERANCE), "Probabilities do not sum to 1")
}

/// The root of the distance from 1 to the next float, as NumPy has it.
const SUM_TOLERANCE: f64 = 1.490_116_119_384_765_6e-8;
