//! scikit-learn's `datasets`: small real ones, and made ones of any size.
//!
//! Elements of made data are functions of `random_state` and their position: they do not depend on chunks or
//! threads, and nothing is computed before it is asked for. The numbers are not scikit-learn's.

mod classification;
mod real;
mod regression;
mod shapes;

pub use classification::{Blobs, BlobsOptions, Centers, Classification, make_blobs, make_classification};
pub use real::{Dataset, load_breast_cancer, load_diabetes, load_digits, load_iris, load_wine};
pub use regression::{Linear, LowRank, Regression, make_low_rank_matrix, make_regression};
pub use shapes::{Circles, Curve, Moons, Samples, make_circles, make_moons, make_s_curve, make_swiss_roll};
