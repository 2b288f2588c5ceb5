//! scikit-learn's `preprocessing`: scalers of features and of samples, and other maps of them.

mod affine;
mod binarizer;
mod categories;
mod category_values;
mod k_bins_discretizer;
mod kernel_centerer;
mod label_encoders;
mod max_abs_scaler;
mod min_max_scaler;
mod multi_label;
mod normalizer;
mod one_hot_encoder;
mod ordinal_encoder;
mod polynomial_features;
mod power_transformer;
mod quantile_transformer;
mod robust_scaler;
mod spline_transformer;
mod standard_scaler;
mod target_encoder;

pub use binarizer::Binarizer;
pub use categories::MinFrequency;
pub use category_values::Categories;
pub use k_bins_discretizer::{BinCounts, BinEncoding, BinStrategy, FittedKBinsDiscretizer, KBinsDiscretizer};
pub use kernel_centerer::{FittedKernelCenterer, KernelCenterer};
pub use label_encoders::{FittedLabelBinarizer, FittedLabelEncoder, LabelBinarizer, LabelEncoder};
pub use max_abs_scaler::{FittedMaxAbsScaler, MaxAbsScaler};
pub use min_max_scaler::{FittedMinMaxScaler, MinMaxScaler};
pub use multi_label::{FittedMultiLabelBinarizer, MultiLabelBinarizer};
pub use normalizer::{Norm, Normalizer};
pub use one_hot_encoder::{DropCategories, FittedOneHotEncoder, HandleUnknown, OneHotEncoder};
pub use ordinal_encoder::{FittedOrdinalEncoder, HandleUnknownCode, OrdinalEncoder};
pub use polynomial_features::{FittedPolynomialFeatures, PolynomialFeatures};
pub use power_transformer::{FittedPowerTransformer, PowerMethod, PowerTransformer};
pub use quantile_transformer::{FittedQuantileTransformer, OutputDistribution, QuantileTransformer};
pub use robust_scaler::{FittedRobustScaler, RobustScaler};
pub use spline_transformer::{
    Extrapolation, FittedSplineTransformer, HandleMissing, Knots, SplineTransformer,
};
pub use standard_scaler::{FittedStandardScaler, StandardScaler};
pub use target_encoder::{FittedTargetEncoder, TargetEncoder, TargetType};

/// A scale by which columns are divided: 1 where it is zero up to rounding.
pub(crate) fn without_zeros(scale: f64) -> f64 {
    if scale < 10.0 * f64::EPSILON { 1.0 } else { scale }
}
