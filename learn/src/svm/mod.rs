//! scikit-learn's `svm`: linear support vector machines.

mod linear;

pub use linear::{FittedLinearSVC, FittedLinearSVR, HingeLoss, LinearSVC, LinearSVR, TubeLoss};
