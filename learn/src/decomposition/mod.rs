//! scikit-learn's `decomposition`: samples in fewer dimensions.

mod factor_analysis;
mod fast_ica;
mod incremental_pca;
mod nmf;
mod pca;
mod projection;
mod signs;
mod truncated_svd;

pub use factor_analysis::{FactorAnalysis, FittedFactorAnalysis};
pub use fast_ica::{Contrast, FastICA, FittedFastICA, Whiten};
pub use incremental_pca::{FittedIncrementalPCA, IncrementalPCA};
pub use nmf::{FittedNMF, NMF, NMFInit, PenaltyOfParts};
pub use pca::{Components, FittedPCA, PCA};
pub use truncated_svd::{FittedTruncatedSVD, TruncatedSVD};
