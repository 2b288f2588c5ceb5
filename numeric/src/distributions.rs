//! Distributions that take several random numbers for each element: by rejection, or in rows.
//!
//! An element's random bits decide how many numbers it takes and which ones (`tharsis_kernels::draw`), so
//! values do not depend on chunks here either. Parameters are numbers of the program: arrays of them are not
//! taken.

use crate::operand::cast;
use crate::random::{Generator, not_negative, positive};
use crate::tensor::{Tensor, carry};
use tharsis_graph::Error as GraphError;
use tharsis_graph::ops::Drawn;
use tharsis_graph::shape::require_known;
use tharsis_kernels::DType;
use tharsis_kernels::draw::Draw;
use tharsis_kernels::program::IndexMap;

/// The factorization of the covariance of [`Generator::multivariate_normal`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Factoring {
    /// By `cholesky`: the fastest one; the covariance must be positive definite.
    Cholesky,
    /// By `eigh`.
    Eigen,
    /// By `svd`.
    #[default]
    Svd,
}

impl Generator {
    #[track_caller]
    fn drawn(&self, purpose: &'static str, draw: Draw, shape: &[usize]) -> Tensor {
        let bits = self.indexed(shape, IndexMap::Below { key: self.key(purpose), span: 0 });
        Tensor::apply(Drawn { draw }, &[&bits])
    }

    /// NumPy's `Generator.beta`: on [0, 1] with density in proportion to x^(a - 1) (1 - x)^(b - 1); any
    /// shape, float64.
    ///
    /// ```
    /// use tharsis_numeric::random::default_rng;
    /// let x = default_rng(1).beta(2.0, 3.0, &[10_000]);
    /// assert!((x.mean(..).item()?.to_f64() - 0.4).abs() < 0.05);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// `ValueError` unless the parameters are positive.
    #[track_caller]
    pub fn beta(&self, a: f64, b: f64, shape: &[usize]) -> Tensor {
        carry!(positive("a", a));
        carry!(positive("b", b));
        self.drawn("beta", Draw::Beta { a, b }, shape)
    }

    /// NumPy's `Generator.binomial`: numbers of successes in `n` trials of chance `p`; any shape, int64.
    ///
    /// ```
    /// use tharsis_numeric::random::default_rng;
    /// let x = default_rng(1).binomial(10, 0.3, &[10_000]);
    /// assert!((x.mean(..).item()?.to_f64() - 3.0).abs() < 0.1);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// `ValueError` for a negative number of trials and a chance that is not from 0 to 1.
    #[track_caller]
    pub fn binomial(&self, n: i64, p: f64, shape: &[usize]) -> Tensor {
        if n < 0 {
            return Tensor::bad_value("n < 0", &[]);
        }
        carry!(chance("p < 0, p > 1 or p is NaN", (0.0..=1.0).contains(&p)));
        self.drawn("binomial", Draw::Binomial { count: n, p }, shape)
    }

    /// NumPy's `Generator.chisquare`: chi-square with `df` degrees of freedom; any shape, float64.
    ///
    /// ```
    /// use tharsis_numeric::random::default_rng;
    /// let x = default_rng(1).chisquare(3.0, &[10_000]);
    /// assert!((x.mean(..).item()?.to_f64() - 3.0).abs() < 0.2);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// `ValueError` unless the parameters are positive.
    #[track_caller]
    pub fn chisquare(&self, df: f64, shape: &[usize]) -> Tensor {
        carry!(positive("df", df));
        self.drawn("chisquare", Draw::Chisquare { df }, shape)
    }

    /// NumPy's `Generator.f`: Fisher's F with these degrees of freedom; any shape, float64.
    ///
    /// ```
    /// use tharsis_numeric::random::default_rng;
    /// let x = default_rng(1).f(4.0, 12.0, &[10_000]);
    /// assert!((x.mean(..).item()?.to_f64() - 1.2).abs() < 0.1);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// `ValueError` unless the parameters are positive.
    #[track_caller]
    pub fn f(&self, dfnum: f64, dfden: f64, shape: &[usize]) -> Tensor {
        carry!(positive("dfnum", dfnum));
        carry!(positive("dfden", dfden));
        self.drawn("f", Draw::F { numerator: dfnum, denominator: dfden, noncentral: 0.0 }, shape)
    }

    /// NumPy's `Generator.gamma`: gamma with shape parameter `k` and this scale; any shape, float64.
    ///
    /// ```
    /// use tharsis_numeric::random::default_rng;
    /// let x = default_rng(1).gamma(2.0, 3.0, &[10_000]);
    /// assert!((x.mean(..).item()?.to_f64() - 6.0).abs() < 0.3);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// `ValueError` for a negative parameter.
    #[track_caller]
    pub fn gamma(&self, k: f64, scale: f64, shape: &[usize]) -> Tensor {
        carry!(not_negative("shape", k));
        carry!(not_negative("scale", scale));
        self.drawn("gamma", Draw::Gamma { shape: k }, shape).multiply(scale)
    }

    /// NumPy's `Generator.geometric`: numbers of trials of chance `p` up to the first success; any shape,
    /// int64.
    ///
    /// ```
    /// use tharsis_numeric::random::default_rng;
    /// let x = default_rng(1).geometric(0.25, &[10_000]);
    /// assert!((x.mean(..).item()?.to_f64() - 4.0).abs() < 0.2);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// `ValueError` unless 0 < p <= 1.
    #[track_caller]
    pub fn geometric(&self, p: f64, shape: &[usize]) -> Tensor {
        carry!(chance("p <= 0, p > 1 or p contains NaNs", 0.0 < p && p <= 1.0));
        if p < 1.0 {
            let trials = self.open_unit("geometric", shape).log().divide((-p).ln_1p()).ceil();
            return cast(&trials.maximum(1.0).minimum(LARGEST_COUNT), DType::I64);
        }
        crate::create::full(shape, 1i64, DType::I64)
    }

    /// NumPy's `Generator.hypergeometric`: how many of `nsample` drawn from `ngood` and `nbad` are good;
    /// any shape, int64.
    ///
    /// ```
    /// use tharsis_numeric::random::default_rng;
    /// let x = default_rng(1).hypergeometric(30, 70, 20, &[10_000]);
    /// assert!((x.mean(..).item()?.to_f64() - 6.0).abs() < 0.2);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// `ValueError` for negative numbers, for a sample larger than all, and for 10^9 and more.
    #[track_caller]
    pub fn hypergeometric(&self, ngood: i64, nbad: i64, nsample: i64, shape: &[usize]) -> Tensor {
        for (name, number) in [("ngood", ngood), ("nbad", nbad), ("nsample", nsample)] {
            if number < 0 {
                return Tensor::bad_value(format!("{name} < 0"), &[]);
            }
        }
        if POPULATION_END <= ngood || POPULATION_END <= nbad {
            return Tensor::bad_value("both ngood and nbad must be less than 1000000000", &[]);
        }
        if ngood + nbad < nsample {
            return Tensor::bad_value("ngood + nbad < nsample", &[]);
        }
        self.drawn("hypergeometric", Draw::Hypergeometric { good: ngood, bad: nbad, sample: nsample }, shape)
    }

    /// NumPy's `Generator.logseries`: the logarithmic distribution, chances in proportion to p^k / k; any
    /// shape, int64.
    ///
    /// ```
    /// use tharsis_numeric::random::default_rng;
    /// let x = default_rng(1).logseries(0.5, &[10_000]);
    /// assert!((x.mean(..).item()?.to_f64() - 1.44).abs() < 0.05);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// `ValueError` unless 0 <= p < 1.
    #[track_caller]
    pub fn logseries(&self, p: f64, shape: &[usize]) -> Tensor {
        carry!(chance("p < 0, p >= 1 or p is NaN", (0.0..1.0).contains(&p)));
        self.drawn("logseries", Draw::LogSeries { p }, shape)
    }

    /// NumPy's `Generator.negative_binomial`: numbers of failures before `n` successes of chance `p`; `n`
    /// need not be whole; any shape, int64.
    ///
    /// ```
    /// use tharsis_numeric::random::default_rng;
    /// let x = default_rng(1).negative_binomial(3.0, 0.5, &[10_000]);
    /// assert!((x.mean(..).item()?.to_f64() - 3.0).abs() < 0.2);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// `ValueError` unless n is positive and 0 < p <= 1, and if counts would be too large.
    #[track_caller]
    pub fn negative_binomial(&self, n: f64, p: f64, shape: &[usize]) -> Tensor {
        carry!(positive("n", n));
        carry!(chance("p <= 0, p > 1 or p contains NaNs", 0.0 < p && p <= 1.0));
        // The mean is a gamma number: ten deviations above its own mean it must still be drawn.
        if POISSON_END < (n + 10.0 * n.sqrt()) * (1.0 - p) / p {
            return Tensor::bad_value(
                "n too large or p too small, see Generator.negative_binomial Notes",
                &[],
            );
        }
        self.drawn("negative_binomial", Draw::NegativeBinomial { count: n, p }, shape)
    }

    /// NumPy's `Generator.noncentral_chisquare`: non-central chi-square; any shape, float64.
    ///
    /// ```
    /// use tharsis_numeric::random::default_rng;
    /// let x = default_rng(1).noncentral_chisquare(3.0, 2.0, &[10_000]);
    /// assert!((x.mean(..).item()?.to_f64() - 5.0).abs() < 0.2);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// `ValueError` unless `df` is positive and `nonc` not negative.
    #[track_caller]
    pub fn noncentral_chisquare(&self, df: f64, nonc: f64, shape: &[usize]) -> Tensor {
        carry!(positive("df", df));
        carry!(not_negative("nonc", nonc));
        self.drawn("noncentral_chisquare", Draw::NoncentralChisquare { df, noncentral: nonc }, shape)
    }

    /// NumPy's `Generator.noncentral_f`: non-central F; any shape, float64.
    ///
    /// ```
    /// use tharsis_numeric::random::default_rng;
    /// let x = default_rng(1).noncentral_f(4.0, 12.0, 2.0, &[10_000]);
    /// assert!((x.mean(..).item()?.to_f64() - 1.8).abs() < 0.2);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// `ValueError` unless degrees of freedom are positive and `nonc` is not negative.
    #[track_caller]
    pub fn noncentral_f(&self, dfnum: f64, dfden: f64, nonc: f64, shape: &[usize]) -> Tensor {
        carry!(positive("dfnum", dfnum));
        carry!(positive("dfden", dfden));
        carry!(not_negative("nonc", nonc));
        self.drawn("noncentral_f", Draw::F { numerator: dfnum, denominator: dfden, noncentral: nonc }, shape)
    }

    /// NumPy's `Generator.poisson`: counts with this mean; any shape, int64.
    ///
    /// ```
    /// use tharsis_numeric::random::default_rng;
    /// let x = default_rng(1).poisson(4.0, &[10_000]);
    /// assert!((x.mean(..).item()?.to_f64() - 4.0).abs() < 0.1);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// `ValueError` for a mean that is negative, or too large for int64.
    #[track_caller]
    pub fn poisson(&self, lam: f64, shape: &[usize]) -> Tensor {
        carry!(chance("lam < 0 or lam is NaN", 0.0 <= lam));
        carry!(chance("lam value too large", lam <= POISSON_END));
        self.drawn("poisson", Draw::Poisson { mean: lam }, shape)
    }

    /// NumPy's `Generator.standard_gamma`: gamma with shape parameter `k` and scale 1; any shape,
    /// float64.
    ///
    /// ```
    /// use tharsis_numeric::random::default_rng;
    /// let x = default_rng(1).standard_gamma(2.0, &[10_000]);
    /// assert!((x.mean(..).item()?.to_f64() - 2.0).abs() < 0.1);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// `ValueError` for a negative parameter.
    #[track_caller]
    pub fn standard_gamma(&self, k: f64, shape: &[usize]) -> Tensor {
        carry!(not_negative("shape", k));
        self.drawn("standard_gamma", Draw::Gamma { shape: k }, shape)
    }

    /// NumPy's `Generator.standard_t`: Student's t with `df` degrees of freedom; any shape, float64.
    ///
    /// ```
    /// use tharsis_numeric::random::default_rng;
    /// let x = default_rng(1).standard_t(5.0, &[10_000]);
    /// assert!((x.mean(..).item()?.to_f64() - 0.0).abs() < 0.1);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// `ValueError` unless the parameters are positive.
    #[track_caller]
    pub fn standard_t(&self, df: f64, shape: &[usize]) -> Tensor {
        carry!(positive("df", df));
        self.drawn("standard_t", Draw::StudentT { df }, shape)
    }

    /// NumPy's `Generator.vonmises`: angles around `mu`, from -pi to pi; any shape, float64.
    ///
    /// ```
    /// use tharsis_numeric::random::default_rng;
    /// let x = default_rng(1).vonmises(1.0, 4.0, &[10_000]);
    /// assert!((x.mean(..).item()?.to_f64() - 1.0).abs() < 0.1);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// `ValueError` for a negative concentration.
    #[track_caller]
    pub fn vonmises(&self, mu: f64, kappa: f64, shape: &[usize]) -> Tensor {
        carry!(not_negative("kappa", kappa));
        self.drawn("vonmises", Draw::VonMises { centre: mu, concentration: kappa }, shape)
    }

    /// NumPy's `Generator.wald`: the inverse Gaussian distribution; any shape, float64.
    ///
    /// ```
    /// use tharsis_numeric::random::default_rng;
    /// let x = default_rng(1).wald(2.0, 5.0, &[10_000]);
    /// assert!((x.mean(..).item()?.to_f64() - 2.0).abs() < 0.1);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// `ValueError` unless the parameters are positive.
    #[track_caller]
    pub fn wald(&self, mean: f64, scale: f64, shape: &[usize]) -> Tensor {
        carry!(positive("mean", mean));
        carry!(positive("scale", scale));
        self.drawn("wald", Draw::Wald { mean, scale }, shape)
    }

    /// NumPy's `Generator.zipf`: chances in proportion to k^-a; any shape, int64.
    ///
    /// ```
    /// use tharsis_numeric::random::default_rng;
    /// let x = default_rng(1).zipf(4.0, &[10_000]);
    /// assert!(x.greater_equal(1).all(..).item()?.is_true());
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// `ValueError` unless a > 1.
    #[track_caller]
    pub fn zipf(&self, a: f64, shape: &[usize]) -> Tensor {
        carry!(chance("a <= 1 or a is NaN", 1.0 < a));
        self.drawn("zipf", Draw::Zipf { a }, shape)
    }

    /// NumPy's `Generator.dirichlet`: rows of shares that add up to 1; (..) to (.., k) for k parameters,
    /// float64.
    ///
    /// ```
    /// use tharsis_numeric::random::default_rng;
    /// let x = default_rng(1).dirichlet(&[1.0, 2.0, 3.0], &[100]);
    /// assert!(x.sum(1).isclose(1.0, 1e-12, 0.0).all(..).item()?.is_true());
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// `ValueError` for a negative parameter.
    #[track_caller]
    pub fn dirichlet(&self, alpha: &[f64], shape: &[usize]) -> Tensor {
        carry!(chance("alpha < 0", alpha.iter().all(|&a| 0.0 <= a)));
        if alpha.is_empty() {
            return crate::create::zeros(&[shape, &[0]].concat());
        }
        self.drawn("dirichlet", Draw::Dirichlet { alpha: alpha.to_vec() }, shape)
    }

    /// NumPy's `Generator.multinomial`: how often each outcome occurs in `n` trials; (..) to (.., k) for the
    /// chances of k outcomes, int64. The last outcome has what the others leave.
    ///
    /// ```
    /// use tharsis_numeric::random::default_rng;
    /// let x = default_rng(1).multinomial(9, &[0.2, 0.3, 0.5], &[100]);
    /// assert!(x.sum(1).equal(9).all(..).item()?.is_true());
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// `ValueError` for a negative number, no chances, chances that are not from 0 to 1, and chances that add
    /// up to more than 1 without the last one.
    #[track_caller]
    pub fn multinomial(&self, n: i64, pvals: &[f64], shape: &[usize]) -> Tensor {
        if pvals.is_empty() {
            let text = "pvals must have at least 1 dimension and the last dimension of pvals must be greater \
                        than 0.";
            return Tensor::bad_value(text, &[]);
        }
        if n < 0 {
            return Tensor::bad_value("n < 0", &[]);
        }
        let valid = pvals.iter().all(|p| (0.0..=1.0).contains(p));
        carry!(chance("pvals < 0, pvals > 1 or pvals contains NaNs", valid));
        let others = compensated_sum(&pvals[..pvals.len() - 1]);
        carry!(chance("sum(pvals[:-1]) > 1.0", others <= 1.0 + 1e-12));
        self.drawn("multinomial", Draw::Multinomial { count: n, p: pvals.to_vec() }, shape)
    }

    /// NumPy's `Generator.multivariate_hypergeometric`: how many of each colour are in a sample; (..) to (..,
    /// k) for the numbers of k colours, int64.
    ///
    /// ```
    /// use tharsis_numeric::random::default_rng;
    /// let x = default_rng(1).multivariate_hypergeometric(&[5, 3, 2], 4, &[100]);
    /// assert!(x.sum(1).equal(4).all(..).item()?.is_true());
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// `ValueError` for negative numbers, for a sample larger than all, and for 10^9 and more in all.
    #[track_caller]
    pub fn multivariate_hypergeometric(&self, colors: &[i64], nsample: i64, shape: &[usize]) -> Tensor {
        let sum = colors.iter().try_fold(0i64, |sum, &color| sum.checked_add(color).filter(|_| 0 <= color));
        let Some(total) = sum else {
            let text = "colors must be a one-dimensional sequence of nonnegative integers not exceeding \
                        9223372036854775807.";
            return Tensor::bad_value(text, &[]);
        };
        if nsample < 0 {
            return Tensor::bad_value("nsample must be nonnegative.", &[]);
        }
        if total < nsample {
            return Tensor::bad_value("nsample > sum(colors)", &[]);
        }
        if POPULATION_END <= total {
            let text = "When method is \"marginals\", sum(colors) must be less than 1000000000.";
            return Tensor::bad_value(text, &[]);
        }
        if colors.is_empty() {
            return crate::create::full(&[shape, &[0]].concat(), 0i64, DType::I64);
        }
        let draw = Draw::MultivariateHypergeometric { colors: colors.to_vec(), sample: nsample };
        self.drawn("multivariate_hypergeometric", draw, shape)
    }

    /// NumPy's `Generator.multivariate_normal`: rows with this mean, (d,), and covariance, (d, d); (..) to
    /// (.., d), float64.
    ///
    /// ```
    /// use tharsis_numeric::{array, distributions::Factoring, random::default_rng};
    /// let (mean, cov) = (array([1.0, 2.0]), array([4.0, 1.0, 1.0, 9.0]).reshape(&[2, 2]));
    /// let x = default_rng(1).multivariate_normal(&mean, &cov, &[10_000], Factoring::Svd);
    /// assert!(x.mean(0).isclose(&mean, 0.0, 0.2).all(..).item()?.is_true());
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// `ValueError` unless the mean has one axis and the covariance is square and fits it; `LinAlgError` when
    /// it runs if `cholesky` finds that the covariance is not positive definite. That it is symmetric is not
    /// checked.
    ///
    /// # Distributed
    /// Normal numbers times a factor of the covariance, which one task makes.
    #[track_caller]
    pub fn multivariate_normal(
        &self,
        mean: &Tensor,
        cov: &Tensor,
        shape: &[usize],
        factoring: Factoring,
    ) -> Tensor {
        let (at, around) = (carry!(mean.shape()), carry!(cov.shape()));
        carry!(require_known("multivariate_normal", at), mean);
        carry!(require_known("multivariate_normal", around), cov);
        if at.len() != 1 {
            return Tensor::bad_value("mean must be 1 dimensional", &[mean, cov]);
        }
        if around.len() != 2 || around[0] != around[1] {
            return Tensor::bad_value("cov must be 2 dimensional and square", &[mean, cov]);
        }
        if at[0] != around[0] {
            return Tensor::bad_value("mean and cov must have same length", &[mean, cov]);
        }
        let cov = cast(cov, DType::F64);
        let factor = match factoring {
            Factoring::Cholesky => cov.cholesky().t(),
            Factoring::Eigen => {
                let (values, vectors) = cov.eigh(false);
                vectors.multiply(values.maximum(0.0).sqrt()).t()
            }
            Factoring::Svd => {
                let (_, values, rows) = cov.svd();
                values.sqrt().expand_dims(-1).multiply(rows)
            }
        };
        let count = tharsis_graph::shape::element_count(shape) as usize;
        let key = self.key("multivariate_normal");
        let unit = self.indexed(&[count, at[0]], IndexMap::OpenUnit(key));
        let normal = crate::elementwise::unary(tharsis_kernels::UnaryOp::NormalQuantile, &unit);
        let rows = normal.matmul(&factor).add(cast(mean, DType::F64));
        let wanted: Vec<i64> = shape.iter().chain(&at[..1]).map(|&extent| extent as i64).collect();
        rows.reshape(&wanted)
    }
}

/// Refuses a parameter unless it is valid.
fn chance(text: &str, is_valid: bool) -> Result<(), GraphError> {
    if is_valid { Ok(()) } else { Err(GraphError::Value(text.to_owned())) }
}

/// A sum that does not lose what is small beside it (Kahan).
fn compensated_sum(numbers: &[f64]) -> f64 {
    let (mut sum, mut lost) = (0.0, 0.0);
    for number in numbers {
        let more = number - lost;
        let next: f64 = sum + more;
        (lost, sum) = ((next - sum) - more, next);
    }
    sum
}

/// The largest float64 that is an int64.
const LARGEST_COUNT: f64 = 9_223_372_036_854_774_784.0;
/// The largest mean of counts: ten deviations above it they are still int64.
const POISSON_END: f64 = 9.223_372_006_484_771e18;
/// The numbers of a hypergeometric distribution are smaller.
const POPULATION_END: i64 = 1_000_000_000;
