//! scikit-learn's `cluster`: groups of samples.

mod agglomerative;
mod bisecting;
mod centers;
mod dbscan;
mod initial;
mod k_means;
mod mini_batch;

pub use agglomerative::{AgglomerativeClustering, FittedAgglomerativeClustering, Linkage};
pub use bisecting::{BisectingKMeans, BisectingStrategy, FittedBisectingKMeans};
pub use dbscan::{DBSCAN, FittedDBSCAN};
pub use initial::Init;
pub use k_means::{FittedKMeans, KMeans};
pub use mini_batch::{FittedMiniBatchKMeans, MiniBatchKMeans};
