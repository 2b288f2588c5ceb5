//! scikit-learn's `cluster`: groups of samples.

mod agglomerative;
mod dbscan;
mod initial;
mod k_means;

pub use agglomerative::{AgglomerativeClustering, FittedAgglomerativeClustering, Linkage};
pub use dbscan::{DBSCAN, FittedDBSCAN};
pub use initial::Init;
pub use k_means::{FittedKMeans, KMeans};
