//! Options that several metrics have in common.

use tharsis_numeric::Tensor;

/// `..` as the default options.
macro_rules! defaults {
    ($($options:ty),* $(,)?) => {$(
        impl From<std::ops::RangeFull> for $options {
            fn from(_: std::ops::RangeFull) -> Self {
                Self::default()
            }
        }
    )*};
}
pub(crate) use defaults;

/// Options of metrics that only take weights.
#[derive(Clone, Debug, Default)]
pub struct Weighted {
    /// A weight for each sample; (n,).
    pub sample_weight: Option<Tensor>,
}
defaults!(Weighted);

/// Weights of samples; (n,).
impl From<&Tensor> for Weighted {
    fn from(sample_weight: &Tensor) -> Weighted {
        Weighted { sample_weight: Some(sample_weight.clone()) }
    }
}

/// Reduction of values of classes to one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Average {
    /// The value of the class `pos_label`, for labels of two classes.
    #[default]
    Binary,
    /// No reduction: scikit-learn's `None`.
    Each,
    /// The mean over classes.
    Macro,
    /// The value of the counts of all classes together.
    Micro,
    /// The mean over classes, weighted by the true samples of each.
    Weighted,
}
