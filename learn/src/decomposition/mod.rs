//! scikit-learn's `decomposition`: samples in fewer dimensions.

mod pca;
mod signs;
mod truncated_svd;

pub use pca::{Components, FittedPCA, PCA};
pub use truncated_svd::{FittedTruncatedSVD, TruncatedSVD};
