//! Products of features.

use crate::Setting;
use crate::base::{Estimator, FitOptions, Transform};
use crate::bounds::check;
use crate::checks::{Nan, Training, in_dtype_of, refused, samples_for};
use crate::dense::positions;
use crate::params::{Parameter, parameters};
use crate::passes::{in_chunks_for, in_fixed_chunks};
use crate::saved::{Save, saved};
use serde::{Deserialize, Serialize};
use std::fmt;
use tharsis_numeric::{DType, Result, Tensor, arange, concatenate, zeros};

/// Most factors of all products together: their list is kept in memory.
const FACTORS_MAX: usize = 1 << 21;

/// Features that no model has.
const COLUMNS_MAX: usize = 1 << 32;

/// scikit-learn's `PolynomialFeatures`: all products of powers of features up to a degree.
///
/// ```
/// use tharsis_learn::preprocessing::PolynomialFeatures;
/// use tharsis_numeric::array;
/// let x = array([2.0, 3.0]).reshape(&[1, 2]);
/// let model = PolynomialFeatures::new().fit(&x, ..)?;
/// assert_eq!(model.transform(&x).to_vec::<f64>()?, [1.0, 2.0, 3.0, 4.0, 6.0, 9.0]);
/// # Ok::<(), tharsis_learn::Error>(())
/// ```
#[must_use]
#[derive(Clone, Debug)]
pub struct PolynomialFeatures {
    degree: Degrees,
    interaction_only: bool,
    include_bias: bool,
}

/// The smallest and the largest sum of exponents.
#[derive(Clone, Copy, Debug)]
struct Degrees(usize, usize);

impl Degrees {
    /// Two degrees, if both are whole.
    fn between([least, most]: [f64; 2]) -> Option<Degrees> {
        let is_whole = |degree: f64| 0.0 <= degree && degree.fract() == 0.0;
        (is_whole(least) && is_whole(most)).then_some(Degrees(least as usize, most as usize))
    }
}

impl Parameter for Degrees {
    fn words(_: usize) -> String {
        "an int in the range [0, inf) or an array-like".to_owned()
    }

    fn of(value: &Setting) -> Option<Degrees> {
        match usize::of(value) {
            Some(most) => Some(Degrees(0, most)),
            None => <[f64; 2]>::of(value).and_then(Degrees::between),
        }
    }

    #[track_caller]
    fn read(value: &Setting) -> Result<Option<Degrees>> {
        match usize::of(value) {
            Some(most) => Ok(Some(Degrees(0, most))),
            None => Ok(<[f64; 2]>::read(value)?.and_then(Degrees::between)),
        }
    }

    fn setting(&self) -> Setting {
        match *self {
            Degrees(0, most) => most.setting(),
            Degrees(least, most) => Setting::Numbers(vec![least as f64, most as f64]),
        }
    }
}

parameters!(
    PolynomialFeatures,
    "PolynomialFeatures",
    ["degree" => degree, "interaction_only" => interaction_only, "include_bias" => include_bias]
);

/// A fitted [`PolynomialFeatures`].
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct FittedPolynomialFeatures {
    columns: usize,
    /// The features of each product in ascending order.
    products: Vec<Vec<usize>>,
}

impl Default for PolynomialFeatures {
    fn default() -> PolynomialFeatures {
        PolynomialFeatures { degree: Degrees(0, 2), interaction_only: false, include_bias: true }
    }
}

impl PolynomialFeatures {
    /// An estimator with scikit-learn's defaults: up to squares, with a column of ones.
    pub fn new() -> PolynomialFeatures {
        PolynomialFeatures::default()
    }

    /// scikit-learn's `degree`: the largest sum of exponents.
    pub fn degree(self, most: usize) -> PolynomialFeatures {
        PolynomialFeatures { degree: Degrees(0, most), ..self }
    }

    /// scikit-learn's `degree` as a pair: the smallest sum of exponents (but for the column of ones), and the
    /// largest.
    pub fn degrees(self, least: usize, most: usize) -> PolynomialFeatures {
        PolynomialFeatures { degree: Degrees(least, most), ..self }
    }

    /// scikit-learn's `interaction_only`: whether products of a feature with itself are left out.
    pub fn interaction_only(self, interaction_only: bool) -> PolynomialFeatures {
        PolynomialFeatures { interaction_only, ..self }
    }

    /// scikit-learn's `include_bias`: whether the first column is of ones.
    pub fn include_bias(self, include_bias: bool) -> PolynomialFeatures {
        PolynomialFeatures { include_bias, ..self }
    }

    /// Fits the transformer on samples (n, d): lists the products of d features. One pass looks for NaN.
    ///
    /// # Errors
    /// `ValueError` for degrees that do not ascend or leave nothing, more than 2^21 factors, samples of
    /// other than two axes, without rows or features, complex, NaN or infinite; `TypeError` for weights;
    /// errors of the pass.
    #[track_caller]
    pub fn fit(&self, x: &Tensor, options: impl Into<FitOptions>) -> Result<FittedPolynomialFeatures> {
        self.fit_any(x, None, &options.into())
    }

    #[track_caller]
    fn check(&self) -> Result<()> {
        let Degrees(least, most) = self.degree;
        if most < least {
            return Err(refused(format!(
                "degree=(min_degree, max_degree) must be non-negative integers that fulfil min_degree <= \
                 max_degree, got ({least}, {most})."
            )));
        }
        if most == 0 && !self.include_bias {
            return Err(refused(
                "Setting degree to zero and include_bias to False would result in an empty output array.",
            ));
        }
        Ok(())
    }

    /// The products of so many features, in the order of scikit-learn.
    #[track_caller]
    fn products(&self, columns: usize) -> Result<Vec<Vec<usize>>> {
        let Degrees(least, most) = self.degree;
        let mut products: Vec<Vec<usize>> = Vec::new();
        if self.include_bias {
            products.push(Vec::new());
        }
        let (mut longer, mut factors) = (vec![Vec::new()], 0);
        for degree in 1..=most {
            longer = longer
                .iter()
                .flat_map(|product: &Vec<usize>| {
                    let next = match product.last() {
                        None => 0,
                        Some(last) => last + usize::from(self.interaction_only),
                    };
                    (next..columns).map(|feature| [&product[..], &[feature]].concat())
                })
                .take(FACTORS_MAX / degree + 1)
                .collect();
            factors += longer.len() * degree;
            let is_sound = factors <= FACTORS_MAX;
            check("PolynomialFeatures", "degree", is_sound, "one that makes at most 2^21 factors", most)?;
            if least.max(1) <= degree {
                products.extend(longer.iter().cloned());
            }
            if longer.is_empty() {
                break;
            }
        }
        Ok(products)
    }
}

impl Estimator for PolynomialFeatures {
    type Fitted = FittedPolynomialFeatures;

    fn takes_weights(&self) -> bool {
        false
    }

    #[track_caller]
    fn fit_any(
        &self,
        x: &Tensor,
        _: Option<&Tensor>,
        options: &FitOptions,
    ) -> Result<FittedPolynomialFeatures> {
        self.check()?;
        let training = Training::unsupervised("PolynomialFeatures", x, options)?.without_weights()?;
        let products = self.products(training.columns)?;
        training.check_finite(Nan::Refused)?;
        Ok(FittedPolynomialFeatures { columns: training.columns, products })
    }
}

impl FittedPolynomialFeatures {
    /// scikit-learn's `n_output_features_`: the number of products, k.
    #[must_use]
    pub fn n_output_features(&self) -> usize {
        self.products.len()
    }

    /// scikit-learn's `powers_`: the exponent of each feature in each product, as an expression, since it is
    /// far larger than the model; (k, d), int64.
    #[track_caller]
    pub fn powers(&self) -> Tensor {
        let features = arange(self.columns);
        let factors = (0..self.length()).map(|place| {
            let chosen = in_chunks_for(&self.factors(place).expand_dims(1), 1, self.columns);
            chosen.equal(&features).astype(DType::I64)
        });
        factors.reduce(|made, factor| made + factor).unwrap_or_else(|| zeros(&[0, self.columns]))
    }

    /// The most factors of a product; at least 1.
    fn length(&self) -> usize {
        self.products.iter().map(Vec::len).max().unwrap_or(0).max(1)
    }

    /// The feature at a place of each product; the number of features where a product is shorter; (k,).
    fn factors(&self, place: usize) -> Tensor {
        let chosen: Vec<usize> =
            self.products.iter().map(|product| product.get(place).copied().unwrap_or(self.columns)).collect();
        positions(&chosen)
    }

    /// The products of each of the samples (n, d), as an expression; (n, k). Floats keep their dtype. Carries
    /// a `ValueError` for another number of features.
    #[track_caller]
    pub fn transform(&self, x: &Tensor) -> Tensor {
        let samples = match samples_for("PolynomialFeatures", x, self.columns) {
            Ok(samples) => samples,
            Err(error) => return Tensor::from(error),
        };
        let count = self.products.len();
        // Shorter products are filled up with ones, which stand behind the features.
        let ones = samples.get(&[(..).into(), (..1i64).into()]).isnan().logical_or(true).astype(DType::F64);
        let wide = concatenate(&[&samples, &ones], 1);
        let factors = (0..self.length()).map(|place| wide.take_at(&self.factors(place), 1));
        match factors.reduce(|made, factor| made * factor) {
            Some(made) => in_dtype_of(x, in_fixed_chunks(&made, count)),
            None => samples,
        }
    }
}

saved!(FittedPolynomialFeatures, "PolynomialFeatures", |model| {
    let columns = model.products.iter().flatten().max().map_or(model.columns, |last| last + 1);
    0 < columns && columns == model.columns && columns < COLUMNS_MAX
});

impl Transform for FittedPolynomialFeatures {
    #[track_caller]
    fn transform(&self, x: &Tensor) -> Tensor {
        FittedPolynomialFeatures::transform(self, x)
    }

    fn step_body(&self) -> Option<Result<(&'static str, Vec<u8>)>> {
        Some(self.kind_and_body())
    }

    fn feature_names_out(&self, names: &[String]) -> Option<Vec<String>> {
        if names.len() != self.columns {
            return None;
        }
        let named = |product: &Vec<usize>| {
            let factors = product.chunk_by(|a, b| a == b).map(|same| match same {
                [only] => names[*only].clone(),
                _ => format!("{}^{}", names[same[0]], same.len()),
            });
            if product.is_empty() { "1".to_owned() } else { factors.collect::<Vec<_>>().join(" ") }
        };
        Some(self.products.iter().map(named).collect())
    }
}

impl fmt::Display for FittedPolynomialFeatures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PolynomialFeatures of {} features: {} products", self.columns, self.products.len())
    }
}
