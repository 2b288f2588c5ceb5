//! Seeded random tensors: every element is a function of the seed, the call and its index.
//!
//! Values do not depend on chunks, threads or order, and any slice can be computed alone. Each call of a
//! [`Generator`] has a stream of its own, and so has each distribution: nothing that one call draws tells of
//! what another one does.

use crate::elementwise::unary;
use crate::tensor::{Tensor, carry};
use std::sync::atomic::{AtomicU64, Ordering};
use tharsis_graph::Error as GraphError;
use tharsis_graph::ops::Indexed;
use tharsis_kernels::program::IndexMap;
use tharsis_kernels::{DType, Key, UnaryOp};

/// Makes random tensors from a seed.
#[derive(Debug)]
pub struct Generator {
    seed: u64,
    streams: AtomicU64,
}

/// NumPy's `random.default_rng`: a generator for this seed; the numbers are not NumPy's.
///
/// ```
/// use tharsis_numeric::random::default_rng;
/// let (a, b) = (default_rng(7).random(&[3]), default_rng(7).random(&[3]));
/// assert_eq!(a.to_vec::<f64>()?, b.to_vec::<f64>()?);
/// # Ok::<(), tharsis_numeric::Error>(())
/// ```
pub fn default_rng(seed: u64) -> Generator {
    Generator { seed, streams: AtomicU64::new(0) }
}

/// NumPy's `random.default_rng` with a seed beyond 64 bits, as digits in base 2^64, the lowest first. All
/// digits count; a single digit gives [`default_rng`].
///
/// ```
/// use tharsis_numeric::random::default_rng;
/// use tharsis_numeric::random::default_rng_words;
/// let (a, b) = (default_rng_words(&[7, 1]), default_rng(7));
/// assert_ne!(a.random(&[3]).to_vec::<f64>()?, b.random(&[3]).to_vec::<f64>()?);
/// # Ok::<(), tharsis_numeric::Error>(())
/// ```
pub fn default_rng_words(seed: &[u64]) -> Generator {
    let Some((&first, rest)) = seed.split_first() else { return default_rng(0) };
    // Each digit is mixed with the result of the digits before it (the finalizer of SplitMix64).
    let seed = rest.iter().fold(first, |mixed, &word| {
        let x = mixed.wrapping_mul(0x9E37_79B9_7F4A_7C15).wrapping_add(word ^ 0xD1B5_4A32_D192_ED03);
        let x = (x ^ x >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let x = (x ^ x >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        x ^ x >> 31
    });
    default_rng(seed)
}

impl Generator {
    /// The key of the next draw. Draws of different distributions have nothing in common, nor have two draws
    /// of one generator; two generators of one seed give the same for the same calls in the same order.
    pub(crate) fn key(&self, purpose: &'static str) -> Key {
        Key::for_purpose(self.seed, self.streams.fetch_add(1, Ordering::Relaxed), purpose)
    }

    #[track_caller]
    pub(crate) fn indexed(&self, shape: &[usize], map: IndexMap) -> Tensor {
        Tensor::apply(Indexed { shape: shape.to_vec(), map }, &[])
    }

    /// NumPy's `Generator.random`: uniform on [0, 1); any shape, float64.
    ///
    /// ```
    /// use tharsis_numeric::random::default_rng;
    /// let x = default_rng(1).random(&[1000]);
    /// assert!(x.greater_equal(0.0).logical_and(x.less(1.0)).all(..).item()?.is_true());
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// `ValueError` if the shape is too big.
    #[track_caller]
    pub fn random(&self, shape: &[usize]) -> Tensor {
        let key = Key::new(self.seed, self.streams.fetch_add(1, Ordering::Relaxed));
        self.indexed(shape, IndexMap::Uniform(key))
    }

    /// Uniform on (0, 1), for the distribution that is made of it; float64.
    #[track_caller]
    pub(crate) fn open_unit(&self, purpose: &'static str, shape: &[usize]) -> Tensor {
        self.indexed(shape, IndexMap::OpenUnit(self.key(purpose)))
    }

    /// NumPy's `Generator.uniform`: uniform on [`low`, `high`); any shape, float64.
    ///
    /// ```
    /// use tharsis_numeric::random::default_rng;
    /// let x = default_rng(1).uniform(-2.0, 3.0, &[1000]);
    /// assert!(x.greater_equal(-2.0).logical_and(x.less(3.0)).all(..).item()?.is_true());
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// `ValueError` if the shape is too big or `high` is less than `low`; `OverflowError` if the range is
    /// infinite.
    #[track_caller]
    pub fn uniform(&self, low: f64, high: f64, shape: &[usize]) -> Tensor {
        if !(high - low).is_finite() {
            let text = "high - low range exceeds valid bounds";
            return Tensor::refused(GraphError::Overflow(text.to_owned()), &[]);
        }
        carry!(not_negative("high - low", high - low));
        self.random(shape).multiply(high - low).add(low)
    }

    /// NumPy's `Generator.standard_normal`: normal with mean 0 and deviation 1; any shape, float64.
    ///
    /// ```
    /// use tharsis_numeric::random::default_rng;
    /// let x = default_rng(1).standard_normal(&[10_000]);
    /// assert!((x.mean(..).item()?.to_f64() - 0.0).abs() < 0.1);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// `ValueError` if the shape is too big.
    #[track_caller]
    pub fn standard_normal(&self, shape: &[usize]) -> Tensor {
        unary(UnaryOp::NormalQuantile, &self.open_unit("normal", shape))
    }

    /// NumPy's `Generator.normal`: normal with mean `loc` and deviation `scale`; any shape, float64.
    ///
    /// ```
    /// use tharsis_numeric::random::default_rng;
    /// let x = default_rng(1).normal(5.0, 2.0, &[10_000]);
    /// assert!((x.mean(..).item()?.to_f64() - 5.0).abs() < 0.1);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// `ValueError` for a negative scale.
    #[track_caller]
    pub fn normal(&self, loc: f64, scale: f64, shape: &[usize]) -> Tensor {
        carry!(not_negative("scale", scale));
        self.standard_normal(shape).multiply(scale).add(loc)
    }

    /// NumPy's `Generator.exponential`: exponential with mean `scale`; any shape, float64.
    ///
    /// ```
    /// use tharsis_numeric::random::default_rng;
    /// let x = default_rng(1).exponential(2.0, &[10_000]);
    /// assert!((x.mean(..).item()?.to_f64() - 2.0).abs() < 0.1);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// `ValueError` for a negative scale.
    #[track_caller]
    pub fn exponential(&self, scale: f64, shape: &[usize]) -> Tensor {
        carry!(not_negative("scale", scale));
        self.open_unit("exponential", shape).log().multiply(-scale)
    }

    /// NumPy's `Generator.standard_exponential`: exponential with mean 1; any shape, float64.
    ///
    /// ```
    /// use tharsis_numeric::random::default_rng;
    /// assert!(default_rng(1).standard_exponential(&[100]).min(..).item()?.to_f64() >= 0.0);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    #[track_caller]
    pub fn standard_exponential(&self, shape: &[usize]) -> Tensor {
        self.exponential(1.0, shape)
    }

    /// NumPy's `Generator.laplace`: mean `loc`; any shape, float64.
    ///
    /// ```
    /// use tharsis_numeric::random::default_rng;
    /// let x = default_rng(1).laplace(1.0, 0.5, &[10_000]);
    /// assert!((x.mean(..).item()?.to_f64() - 1.0).abs() < 0.1);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// `ValueError` for a negative scale.
    #[track_caller]
    pub fn laplace(&self, loc: f64, scale: f64, shape: &[usize]) -> Tensor {
        carry!(not_negative("scale", scale));
        let u = self.open_unit("laplace", shape);
        let below = u.multiply(2.0).log();
        let above = u.multiply(-2.0).add(2.0).log().negative();
        crate::elementwise::where_(&u.less(0.5), &below, &above).multiply(scale).add(loc)
    }

    /// NumPy's `Generator.pareto`: Pareto II (Lomax) with shape parameter `a`; any shape, float64.
    ///
    /// ```
    /// use tharsis_numeric::random::default_rng;
    /// let x = default_rng(1).pareto(5.0, &[10_000]);
    /// assert!((x.mean(..).item()?.to_f64() - 0.25).abs() < 0.05);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// `ValueError` unless the parameter is positive.
    #[track_caller]
    pub fn pareto(&self, a: f64, shape: &[usize]) -> Tensor {
        carry!(positive("a", a));
        self.open_unit("pareto", shape).log().multiply(-1.0 / a).expm1()
    }

    /// NumPy's `Generator.power`: density a x^(a - 1) on [0, 1]; any shape, float64.
    ///
    /// ```
    /// use tharsis_numeric::random::default_rng;
    /// let x = default_rng(1).power(3.0, &[10_000]);
    /// assert!((x.mean(..).item()?.to_f64() - 0.75).abs() < 0.05);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// `ValueError` unless the parameter is positive.
    #[track_caller]
    pub fn power(&self, a: f64, shape: &[usize]) -> Tensor {
        carry!(positive("a", a));
        self.open_unit("power", shape).power(1.0 / a)
    }

    /// NumPy's `Generator.standard_cauchy`: Cauchy with median 0; any shape, float64.
    ///
    /// ```
    /// use tharsis_numeric::random::default_rng;
    /// let x = default_rng(1).standard_cauchy(&[10_000]);
    /// assert!((x.less(1.0).mean(..).item()?.to_f64() - 0.75).abs() < 0.05);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    #[track_caller]
    pub fn standard_cauchy(&self, shape: &[usize]) -> Tensor {
        self.open_unit("standard_cauchy", shape).subtract(0.5).multiply(std::f64::consts::PI).tan()
    }

    /// NumPy's `Generator.triangular`: on [`left`, `right`] with the peak at `mode`; any shape, float64.
    ///
    /// ```
    /// use tharsis_numeric::random::default_rng;
    /// let x = default_rng(1).triangular(0.0, 1.0, 2.0, &[10_000]);
    /// assert!((x.mean(..).item()?.to_f64() - 1.0).abs() < 0.05);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// `ValueError` unless `left` <= `mode` <= `right` and `left` < `right`.
    #[track_caller]
    pub fn triangular(&self, left: f64, mode: f64, right: f64, shape: &[usize]) -> Tensor {
        if left > mode || mode.is_nan() {
            return Tensor::bad_value("left > mode", &[]);
        }
        if mode > right || right.is_nan() {
            return Tensor::bad_value("mode > right", &[]);
        }
        if left == right {
            return Tensor::bad_value("left == right", &[]);
        }
        let u = self.open_unit("triangular", shape);
        let (base, low) = (right - left, mode - left);
        let below = u.multiply(base * low).sqrt().add(left);
        let above = (1.0 - &u).multiply(base * (right - mode)).sqrt().negative().add(right);
        crate::elementwise::where_(&u.less_equal(low / base), &below, &above)
    }

    /// NumPy's `Generator.permutation(count)`: the numbers `0..count` in a random order; (count,), int64.
    ///
    /// ```
    /// use tharsis_numeric::random::default_rng;
    /// let order = default_rng(1).permutation(5).sort(0);
    /// assert_eq!(order.to_vec::<i64>()?, [0, 1, 2, 3, 4]);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// `ValueError` if there are too many.
    ///
    /// # Distributed
    /// As [`Tensor::argsort`], of a random number for each.
    #[track_caller]
    pub fn permutation(&self, count: usize) -> Tensor {
        self.indexed(&[count], IndexMap::Below { key: self.key("permutation"), span: 0 }).argsort(0)
    }

    /// NumPy's `Generator.choice(count)`: numbers of `0..count`, all equally likely, each once unless
    /// `replace`; any shape, int64.
    ///
    /// ```
    /// use tharsis_numeric::random::default_rng;
    /// let chosen = default_rng(1).choice(4, &[4], false).sort(0);
    /// assert_eq!(chosen.to_vec::<i64>()?, [0, 1, 2, 3]);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// `ValueError` if there is nothing to choose from, or if more are to be chosen than there are.
    #[track_caller]
    pub fn choice(&self, count: usize, shape: &[usize], replace: bool) -> Tensor {
        let wanted = tharsis_graph::shape::element_count(shape);
        if count == 0 && wanted != 0 {
            return Tensor::bad_value("a cannot be empty unless no samples are taken", &[]);
        }
        if replace {
            return self.integers(0, count.max(1) as i64, shape);
        }
        if (count as u64) < wanted {
            return Tensor::bad_value(
                "Cannot take a larger sample than population when replace is False",
                &[],
            );
        }
        let chosen = self.permutation(count).get(&[(..wanted as i64).into()]);
        chosen.reshape(&shape.iter().map(|&extent| extent as i64).collect::<Vec<_>>())
    }

    /// NumPy's `Generator.lognormal`: the exponential of a normal variable; any shape, float64.
    ///
    /// ```
    /// use tharsis_numeric::random::default_rng;
    /// let x = default_rng(1).lognormal(0.0, 0.5, &[10_000]);
    /// assert!((x.mean(..).item()?.to_f64() - 0.125f64.exp()).abs() < 0.1);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// `ValueError` for a negative deviation.
    #[track_caller]
    pub fn lognormal(&self, mean: f64, sigma: f64, shape: &[usize]) -> Tensor {
        self.normal(mean, sigma, shape).exp()
    }

    /// NumPy's `Generator.logistic`: mean `loc`; any shape, float64.
    ///
    /// ```
    /// use tharsis_numeric::random::default_rng;
    /// let x = default_rng(1).logistic(1.0, 0.5, &[10_000]);
    /// assert!((x.mean(..).item()?.to_f64() - 1.0).abs() < 0.1);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// `ValueError` for a negative scale.
    #[track_caller]
    pub fn logistic(&self, loc: f64, scale: f64, shape: &[usize]) -> Tensor {
        carry!(not_negative("scale", scale));
        let u = self.open_unit("logistic", shape);
        let rest = 1.0 - &u;
        u.divide(rest).log().multiply(scale).add(loc)
    }

    /// NumPy's `Generator.gumbel`: mode `loc`; any shape, float64.
    ///
    /// ```
    /// use tharsis_numeric::random::default_rng;
    /// let x = default_rng(1).gumbel(0.0, 1.0, &[10_000]);
    /// assert!((x.mean(..).item()?.to_f64() - 0.5772).abs() < 0.1);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// `ValueError` for a negative scale.
    #[track_caller]
    pub fn gumbel(&self, loc: f64, scale: f64, shape: &[usize]) -> Tensor {
        carry!(not_negative("scale", scale));
        self.open_unit("gumbel", shape).log().negative().log().multiply(-scale).add(loc)
    }

    /// NumPy's `Generator.rayleigh`: mode `scale`; any shape, float64.
    ///
    /// ```
    /// use tharsis_numeric::random::default_rng;
    /// let x = default_rng(1).rayleigh(1.0, &[10_000]);
    /// assert!((x.mean(..).item()?.to_f64() - 1.2533).abs() < 0.1);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// `ValueError` for a negative scale.
    #[track_caller]
    pub fn rayleigh(&self, scale: f64, shape: &[usize]) -> Tensor {
        carry!(not_negative("scale", scale));
        self.open_unit("rayleigh", shape).log().multiply(-2.0).sqrt().multiply(scale)
    }

    /// NumPy's `Generator.weibull` with shape parameter `a`; any shape, float64.
    ///
    /// ```
    /// use tharsis_numeric::random::default_rng;
    /// let x = default_rng(1).weibull(1.0, &[10_000]);
    /// assert!((x.mean(..).item()?.to_f64() - 1.0).abs() < 0.1);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// `ValueError` for a negative parameter.
    #[track_caller]
    pub fn weibull(&self, a: f64, shape: &[usize]) -> Tensor {
        carry!(not_negative("a", a));
        if a == 0.0 {
            return crate::create::zeros(shape);
        }
        self.open_unit("weibull", shape).log().negative().power(1.0 / a)
    }

    /// NumPy's `Generator.integers`: on [`low`, `high`), all equally likely; any shape, int64.
    ///
    /// ```
    /// use tharsis_numeric::random::default_rng;
    /// let x = default_rng(1).integers(-3, 4, &[1000]);
    /// assert!(x.greater_equal(-3).logical_and(x.less(4)).all(..).item()?.is_true());
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// `ValueError` if the range is empty.
    #[track_caller]
    pub fn integers(&self, low: i64, high: i64, shape: &[usize]) -> Tensor {
        if high <= low {
            let text = format!("low >= high: {low} >= {high}");
            return Tensor::refused(GraphError::Value(text), &[]);
        }
        let span = (i128::from(high) - i128::from(low)) as u64;
        let below = self.indexed(shape, IndexMap::Below { key: self.key("integers"), span });
        below.astype(DType::I64).add(low)
    }
}

pub(crate) fn not_negative(name: &str, value: f64) -> Result<(), GraphError> {
    if value >= 0.0 { Ok(()) } else { Err(GraphError::Value(format!("{name} < 0"))) }
}

pub(crate) fn positive(name: &str, value: f64) -> Result<(), GraphError> {
    if value > 0.0 { Ok(()) } else { Err(GraphError::Value(format!("{name} <= 0"))) }
}
