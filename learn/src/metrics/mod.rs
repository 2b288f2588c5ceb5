//! scikit-learn's `metrics`: scores of predictions, curves, and distances of rows.
//!
//! Labels are integers or booleans, numbers are of any real dtype and taken as float64. True and predicted
//! values may be of different chunks, and of sizes that are not known yet. No function collects them: each
//! runs one or a few plans whose results are small, and refuses NaN and infinity in the same pass. What
//! needs an order of all samples (curves, medians) sorts them where they are.
//!
//! The last argument of a function takes what scikit-learn has as keywords: `..` for the defaults, or a
//! struct of options with its names.
//!
//! ```
//! use tharsis_learn::metrics::{Accuracy, accuracy_score};
//! use tharsis_numeric::array;
//! let (y_true, y_pred) = (array([0i64, 1, 1]), array([0i64, 1, 0]));
//! assert_eq!(accuracy_score(&y_true, &y_pred, ..)?, 2.0 / 3.0);
//! let weighted = Accuracy { sample_weight: Some(array([1.0, 1.0, 2.0])), ..Accuracy::default() };
//! assert_eq!(accuracy_score(&y_true, &y_pred, weighted)?, 0.5);
//! # Ok::<(), tharsis_learn::Error>(())
//! ```

mod averaged;
mod classification;
mod cluster;
pub(crate) mod contingency;
mod curves;
pub(crate) mod deviance;
mod explained;
pub(crate) mod inputs;
pub(crate) mod options;
mod pairwise;
mod probability;
mod ranking;
pub(crate) mod regression;
mod report;
mod score;

pub use averaged::{
    Averaged, PrecisionRecall, PrecisionRecallFscore, f1_score, fbeta_score, jaccard_score,
    precision_recall_fscore_support, precision_score, recall_score,
};
pub use classification::{
    Accuracy, BalancedAccuracy, ByClass, Confusion, Disagreement, Kappa, Normalize, accuracy_score,
    balanced_accuracy_score, cohen_kappa_score, confusion_matrix, hamming_loss, matthews_corrcoef,
    multilabel_confusion_matrix, zero_one_loss,
};
pub use cluster::{
    AverageMethod, Homogeneity, MutualInfo, VMeasure, adjusted_mutual_info_score, adjusted_rand_score,
    completeness_score, contingency_matrix, fowlkes_mallows_score, homogeneity_completeness_v_measure,
    homogeneity_score, mutual_info_score, normalized_mutual_info_score, pair_confusion_matrix, rand_score,
    v_measure_score,
};
pub use curves::{
    PrecisionRecallCurve, PrecisionRecallOptions, Roc, RocCurve, auc, precision_recall_curve, roc_curve,
};
pub use deviance::{
    Tweedie, d2_tweedie_score, mean_gamma_deviance, mean_poisson_deviance, mean_tweedie_deviance,
};
pub use explained::{
    Explained, d2_absolute_error_score, d2_pinball_score, explained_variance_score, r2_score,
};
pub use options::{Average, Weighted};
pub use pairwise::{
    Beside, Euclidean, Polynomial, Rbf, Sigmoid, cosine_distances, cosine_similarity, euclidean_distances,
    haversine_distances, laplacian_kernel, linear_kernel, manhattan_distances, polynomial_kernel, rbf_kernel,
    sigmoid_kernel,
};
pub use probability::{Brier, Hinge, LogLoss, brier_score_loss, hinge_loss, log_loss};
pub use ranking::{
    AveragePrecision, MultiClass, RocAuc, TopK, average_precision_score, roc_auc_score, top_k_accuracy_score,
};
pub use regression::{
    MultiOutput, Pinball, Regression, max_error, mean_absolute_error, mean_absolute_percentage_error,
    mean_pinball_loss, mean_squared_error, mean_squared_log_error, median_absolute_error,
    root_mean_squared_error, root_mean_squared_log_error,
};
pub use report::{ClassificationReport, Report, ReportLine, classification_report};
pub use score::Score;
