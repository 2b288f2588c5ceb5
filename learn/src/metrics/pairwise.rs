//! Distances and similarities of all pairs of rows, as lazy tensors.
//!
//! Each function returns an expression (n, m) of the rows of `x` (n, features) and those of `y`
//! (m, features), or of `x` itself without `y`. Elements are computed chunk by chunk where they are used: a
//! reduction over them needs no room for all. NaN in a row gives NaN in its pairs. Sizes that are not known
//! yet are computed first.

use super::inputs::{floats, settled, shape_text, value_error};
use super::options::defaults;
use crate::Result;
use tharsis_numeric::{Axes, Error, Index, Tensor, arange, where_};

/// The rows beside those of the first tensor; its own if there are none.
#[derive(Clone, Debug, Default)]
pub struct Beside {
    /// (m, features).
    pub y: Option<Tensor>,
}

/// Options of [`euclidean_distances`].
#[derive(Clone, Debug, Default)]
pub struct Euclidean {
    /// The rows beside those of `x`, (m, features); its own if there are none.
    pub y: Option<Tensor>,
    /// Whether squares of distances are wanted.
    pub squared: bool,
}

/// Options of [`rbf_kernel`] and [`laplacian_kernel`].
#[derive(Clone, Debug, Default)]
pub struct Rbf {
    /// The rows beside those of `x`, (m, features); its own if there are none.
    pub y: Option<Tensor>,
    /// Factor of the distance; 1 / features if none is given.
    pub gamma: Option<f64>,
}

/// Options of [`polynomial_kernel`].
#[derive(Clone, Debug)]
pub struct Polynomial {
    /// The rows beside those of `x`, (m, features); its own if there are none.
    pub y: Option<Tensor>,
    /// The exponent.
    pub degree: f64,
    /// Factor of the product; 1 / features if none is given.
    pub gamma: Option<f64>,
    /// Added to the product.
    pub coef0: f64,
}

impl Default for Polynomial {
    fn default() -> Polynomial {
        Polynomial { y: None, degree: 3.0, gamma: None, coef0: 1.0 }
    }
}

/// Options of [`sigmoid_kernel`].
#[derive(Clone, Debug)]
pub struct Sigmoid {
    /// The rows beside those of `x`, (m, features); its own if there are none.
    pub y: Option<Tensor>,
    /// Factor of the product; 1 / features if none is given.
    pub gamma: Option<f64>,
    /// Added to the product.
    pub coef0: f64,
}

impl Default for Sigmoid {
    fn default() -> Sigmoid {
        Sigmoid { y: None, gamma: None, coef0: 1.0 }
    }
}

defaults!(Beside, Euclidean, Polynomial, Rbf, Sigmoid);

/// The rows beside those of the first tensor.
macro_rules! beside {
    ($($options:ident),*) => {$(
        /// The defaults with these rows beside those of the first tensor.
        impl From<&Tensor> for $options {
            fn from(y: &Tensor) -> $options {
                #[allow(clippy::needless_update)]
                $options { y: Some(y.clone()), ..$options::default() }
            }
        }
    )*};
}
beside!(Beside, Euclidean, Polynomial, Rbf, Sigmoid);

/// Rows to be paired.
struct Pairs {
    x: Tensor,
    y: Tensor,
    /// The number of rows of `x`.
    rows: usize,
    features: usize,
    /// Whether both are the same, so that distances on the diagonal are 0.
    is_own: bool,
}

impl Pairs {
    #[track_caller]
    fn new(x: &Tensor, y: Option<&Tensor>) -> Result<Pairs> {
        let known = settled(&[x, y.unwrap_or(x)])?;
        let (rows, others) = (floats(&known[0], "X")?, floats(&known[1], "Y")?);
        let (own, other) = (rows.shape()?, others.shape()?);
        for shape in [own, other] {
            if shape.len() != 2 {
                let text = format!("Expected 2D array, got an array of shape {} instead", shape_text(shape));
                return Err(value_error(text));
            }
        }
        let (count, features, other) = (own[0], own[1], other[1]);
        if features != other {
            let text = format!(
                "Incompatible dimension for X and Y matrices: X.shape[1] == {features} while Y.shape[1] == {other}"
            );
            return Err(value_error(text));
        }
        Ok(Pairs { x: rows, y: others, rows: count, features, is_own: y.is_none() })
    }

    /// The factor given, or 1 / features.
    fn gamma(&self, gamma: Option<f64>) -> f64 {
        gamma.unwrap_or(1.0 / self.features as f64)
    }

    fn products(&self) -> Tensor {
        self.x.matmul(&self.y.t())
    }

    /// Squares of distances by the products of rows, exactly 0 on a diagonal of pairs of the same rows.
    fn squares(&self) -> Tensor {
        // Products of rows that are far from zero, but not from each other, have no digits left for their
        // distances; around the first row they have. That row may be the one that is far from all others, so
        // each pair takes the origin that it is nearer to.
        let first = self.x.get(&[Index::from(..1)]).sum(0);
        let first = where_(&first.isfinite(), &first, 0.0);
        let (norms, squares) = squares_by_products(&self.x, &self.y);
        let (x, y) = (self.x.subtract(&first), self.y.subtract(&first));
        let (norms_around_first, squares_around_first) = squares_by_products(&x, &y);
        let squares = where_(&norms_around_first.less(&norms), &squares_around_first, &squares);
        self.zero_diagonal(squares)
    }

    fn zero_diagonal(&self, distances: Tensor) -> Tensor {
        if !self.is_own {
            return distances;
        }
        let places = arange(self.rows);
        where_(&places.expand_dims(1).equal(&places), 0.0, distances)
    }

    /// Sums of absolute differences.
    fn manhattan(&self) -> Tensor {
        self.x.expand_dims(1).subtract(self.y.expand_dims(0)).abs().sum(2)
    }
}

/// The sums of the squared norms of pairs of rows, and the squares of their distances, whose rounding is that
/// of the first; both (n, m).
fn squares_by_products(x: &Tensor, y: &Tensor) -> (Tensor, Tensor) {
    let own = x.square().sum(Axes::from(1).keepdims());
    let norms = own.add(y.square().sum(Axes::from(1)));
    let squares = norms.subtract(x.matmul(&y.t()).multiply(2.0)).maximum(0.0);
    (norms, squares)
}

/// The expression, or the error as a tensor.
fn lazy(pairs: Result<Pairs>, of: impl FnOnce(Pairs) -> Tensor) -> Tensor {
    pairs.map_or_else(|error: Error| Tensor::from(error), of)
}

/// scikit-learn's `euclidean_distances`: the distances of rows; (n, m), float64. They are computed of
/// products of rows, around zero or around the first row: the error of a distance is that of the squares of
/// the smaller norms.
///
/// ```
/// use tharsis_learn::metrics::euclidean_distances;
/// use tharsis_numeric::array;
/// let x = array([0.0, 1.0, 1.0, 1.0]).reshape(&[2, 2]);
/// assert_eq!(euclidean_distances(&x, ..).to_vec::<f64>()?, [0.0, 1.0, 1.0, 0.0]);
/// # Ok::<(), tharsis_learn::Error>(())
/// ```
///
/// # Errors
/// `ValueError` unless both have two axes and equally many features.
#[track_caller]
pub fn euclidean_distances(x: &Tensor, options: impl Into<Euclidean>) -> Tensor {
    let Euclidean { y, squared } = options.into();
    let finished = |squares: Tensor| if squared { squares } else { squares.sqrt() };
    lazy(Pairs::new(x, y.as_ref()), |pairs| finished(pairs.squares()))
}

/// scikit-learn's `manhattan_distances`: the sums of absolute differences of rows; (n, m), float64.
///
/// ```
/// use tharsis_learn::metrics::manhattan_distances;
/// use tharsis_numeric::array;
/// let x = array([0.0, 1.0, 1.0, 3.0]).reshape(&[2, 2]);
/// assert_eq!(manhattan_distances(&x, ..).to_vec::<f64>()?, [0.0, 3.0, 3.0, 0.0]);
/// # Ok::<(), tharsis_learn::Error>(())
/// ```
///
/// # Errors
/// As [`euclidean_distances`].
#[track_caller]
pub fn manhattan_distances(x: &Tensor, options: impl Into<Beside>) -> Tensor {
    lazy(Pairs::new(x, options.into().y.as_ref()), |pairs| pairs.manhattan())
}

/// scikit-learn's `cosine_similarity`: the cosines of the angles of rows, 0 for a row of zeros; (n, m).
///
/// ```
/// use tharsis_learn::metrics::cosine_similarity;
/// use tharsis_numeric::array;
/// let x = array([2.0, 0.0, 0.0, 3.0]).reshape(&[2, 2]);
/// assert_eq!(cosine_similarity(&x, ..).to_vec::<f64>()?, [1.0, 0.0, 0.0, 1.0]);
/// # Ok::<(), tharsis_learn::Error>(())
/// ```
///
/// # Errors
/// As [`euclidean_distances`].
#[track_caller]
pub fn cosine_similarity(x: &Tensor, options: impl Into<Beside>) -> Tensor {
    lazy(Pairs::new(x, options.into().y.as_ref()), |pairs| cosines(&pairs))
}

fn cosines(pairs: &Pairs) -> Tensor {
    let unit = |x: &Tensor| {
        // The largest element is divided out first: squares of it neither overflow nor vanish.
        let scale = x.abs().max(Axes::from(1).keepdims());
        let scaled = x.divide(where_(&scale.equal(0.0), 1.0, &scale));
        let norm = scaled.square().sum(Axes::from(1).keepdims()).sqrt();
        scaled.divide(where_(&norm.equal(0.0), 1.0, &norm))
    };
    unit(&pairs.x).matmul(&unit(&pairs.y).t())
}

/// scikit-learn's `cosine_distances`: 1 less the cosines of the angles of rows, from 0 to 2; (n, m).
///
/// ```
/// use tharsis_learn::metrics::cosine_distances;
/// use tharsis_numeric::array;
/// let x = array([2.0, 0.0, 0.0, 3.0]).reshape(&[2, 2]);
/// assert_eq!(cosine_distances(&x, ..).to_vec::<f64>()?, [0.0, 1.0, 1.0, 0.0]);
/// # Ok::<(), tharsis_learn::Error>(())
/// ```
///
/// # Errors
/// As [`euclidean_distances`].
#[track_caller]
pub fn cosine_distances(x: &Tensor, options: impl Into<Beside>) -> Tensor {
    lazy(Pairs::new(x, options.into().y.as_ref()), |pairs| {
        let distances = (1.0 - cosines(&pairs)).clip(0.0, 2.0);
        pairs.zero_diagonal(distances)
    })
}

/// scikit-learn's `haversine_distances`: the angles between points on a sphere, each a row of latitude and
/// longitude in radians; (n, m).
///
/// ```
/// use tharsis_learn::metrics::haversine_distances;
/// use tharsis_numeric::array;
/// use std::f64::consts::FRAC_PI_2;
/// let x = array([0.0, 0.0, 0.0, FRAC_PI_2]).reshape(&[2, 2]);
/// let found = haversine_distances(&x, ..).to_vec::<f64>()?;
/// assert!((found[1] - FRAC_PI_2).abs() < 1e-12);
/// # Ok::<(), tharsis_learn::Error>(())
/// ```
///
/// # Errors
/// As [`euclidean_distances`]; `ValueError` unless there are two features.
#[track_caller]
pub fn haversine_distances(x: &Tensor, options: impl Into<Beside>) -> Tensor {
    let pairs = match Pairs::new(x, options.into().y.as_ref()) {
        Ok(pairs) if pairs.features == 2 => pairs,
        Ok(_) => return Tensor::from(value_error("Haversine distance only valid in 2 dimensions")),
        Err(error) => return Tensor::from(error),
    };
    let of = |x: &Tensor, feature: i64| {
        x.get(&[tharsis_numeric::Index::from(..), tharsis_numeric::Index::At(feature)])
    };
    let own = |feature| of(&pairs.x, feature).expand_dims(1);
    let half = |feature| own(feature).subtract(of(&pairs.y, feature)).multiply(0.5).sin().square();
    let cosines = own(0).cos().multiply(of(&pairs.y, 0).cos());
    half(0).add(cosines.multiply(half(1))).clip(0.0, 1.0).sqrt().arcsin().multiply(2.0)
}

/// scikit-learn's `linear_kernel`: the products of rows; (n, m), float64.
///
/// ```
/// use tharsis_learn::metrics::linear_kernel;
/// use tharsis_numeric::array;
/// let x = array([1.0, 2.0]).reshape(&[2, 1]);
/// assert_eq!(linear_kernel(&x, ..).to_vec::<f64>()?, [1.0, 2.0, 2.0, 4.0]);
/// # Ok::<(), tharsis_learn::Error>(())
/// ```
///
/// # Errors
/// As [`euclidean_distances`].
#[track_caller]
pub fn linear_kernel(x: &Tensor, options: impl Into<Beside>) -> Tensor {
    lazy(Pairs::new(x, options.into().y.as_ref()), |pairs| pairs.products())
}

/// scikit-learn's `polynomial_kernel`: `(gamma x·y + coef0)^degree`; (n, m), float64.
///
/// ```
/// use tharsis_learn::metrics::polynomial_kernel;
/// use tharsis_numeric::array;
/// let x = array([1.0, 2.0]).reshape(&[2, 1]);
/// assert_eq!(polynomial_kernel(&x, ..).to_vec::<f64>()?, [8.0, 27.0, 27.0, 125.0]);
/// # Ok::<(), tharsis_learn::Error>(())
/// ```
///
/// # Errors
/// As [`euclidean_distances`].
#[track_caller]
pub fn polynomial_kernel(x: &Tensor, options: impl Into<Polynomial>) -> Tensor {
    let Polynomial { y, degree, gamma, coef0 } = options.into();
    lazy(Pairs::new(x, y.as_ref()), |pairs| {
        pairs.products().multiply(pairs.gamma(gamma)).add(coef0).power(degree)
    })
}

/// scikit-learn's `sigmoid_kernel`: `tanh(gamma x·y + coef0)`; (n, m), float64.
///
/// ```
/// use tharsis_learn::metrics::sigmoid_kernel;
/// use tharsis_numeric::array;
/// let x = array([0.0]).reshape(&[1, 1]);
/// assert!((sigmoid_kernel(&x, ..).item()?.to_f64() - 1f64.tanh()).abs() < 1e-12);
/// # Ok::<(), tharsis_learn::Error>(())
/// ```
///
/// # Errors
/// As [`euclidean_distances`].
#[track_caller]
pub fn sigmoid_kernel(x: &Tensor, options: impl Into<Sigmoid>) -> Tensor {
    let Sigmoid { y, gamma, coef0 } = options.into();
    lazy(Pairs::new(x, y.as_ref()), |pairs| pairs.products().multiply(pairs.gamma(gamma)).add(coef0).tanh())
}

/// scikit-learn's `rbf_kernel`: `exp(-gamma |x - y|²)`; (n, m), float64.
///
/// ```
/// use tharsis_learn::metrics::rbf_kernel;
/// use tharsis_numeric::array;
/// let x = array([1.0, 2.0]).reshape(&[2, 1]);
/// assert!((rbf_kernel(&x, ..).to_vec::<f64>()?[1] - (-1f64).exp()).abs() < 1e-12);
/// # Ok::<(), tharsis_learn::Error>(())
/// ```
///
/// # Errors
/// As [`euclidean_distances`].
#[track_caller]
pub fn rbf_kernel(x: &Tensor, options: impl Into<Rbf>) -> Tensor {
    let Rbf { y, gamma } = options.into();
    lazy(Pairs::new(x, y.as_ref()), |pairs| pairs.squares().multiply(-pairs.gamma(gamma)).exp())
}

/// scikit-learn's `laplacian_kernel`: `exp(-gamma |x - y|)` of the sums of absolute differences; (n, m).
///
/// ```
/// use tharsis_learn::metrics::laplacian_kernel;
/// use tharsis_numeric::array;
/// let x = array([1.0, 3.0]).reshape(&[2, 1]);
/// assert!((laplacian_kernel(&x, ..).to_vec::<f64>()?[1] - (-2f64).exp()).abs() < 1e-12);
/// # Ok::<(), tharsis_learn::Error>(())
/// ```
///
/// # Errors
/// As [`euclidean_distances`].
#[track_caller]
pub fn laplacian_kernel(x: &Tensor, options: impl Into<Rbf>) -> Tensor {
    let Rbf { y, gamma } = options.into();
    lazy(Pairs::new(x, y.as_ref()), |pairs| pairs.manhattan().multiply(-pairs.gamma(gamma)).exp())
}
