//! Seeded random tensors: every element is a function of the seed, the stream and its index.
//!
//! Values do not depend on chunks, threads or order, and any slice can be computed alone. A [`Generator`]
//! gives each tensor its own stream.

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
    fn key(&self) -> Key {
        Key::new(self.seed, self.streams.fetch_add(1, Ordering::Relaxed))
    }

    #[track_caller]
    fn indexed(&self, shape: &[usize], map: IndexMap) -> Tensor {
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
        self.indexed(shape, IndexMap::Uniform(self.key()))
    }

    /// Uniform on (0, 1); float64.
    #[track_caller]
    fn open_unit(&self, shape: &[usize]) -> Tensor {
        self.indexed(shape, IndexMap::OpenUnit(self.key()))
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
    /// `ValueError` if the shape is too big; `OverflowError` if the range is infinite.
    #[track_caller]
    pub fn uniform(&self, low: f64, high: f64, shape: &[usize]) -> Tensor {
        if !(high - low).is_finite() {
            let text = "high - low range exceeds valid bounds";
            return Tensor::refused(GraphError::Overflow(text.to_owned()), &[]);
        }
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
        unary(UnaryOp::NormalQuantile, &self.open_unit(shape))
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
        self.open_unit(shape).log().multiply(-scale)
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
        let u = self.open_unit(shape);
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
        self.open_unit(shape).log().negative().log().multiply(-scale).add(loc)
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
        self.open_unit(shape).log().multiply(-2.0).sqrt().multiply(scale)
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
        self.open_unit(shape).log().negative().power(1.0 / a)
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
        let below = self.indexed(shape, IndexMap::Below { key: self.key(), span });
        below.astype(DType::I64).add(low)
    }
}

fn not_negative(name: &str, value: f64) -> Result<(), GraphError> {
    if value >= 0.0 { Ok(()) } else { Err(GraphError::Value(format!("{name} < 0"))) }
}
