//! Values of evaluators as arguments.

use crate::look::Look;
use crate::param::Preset;
use crate::refusal::Refusal;

/// Values that can be arguments.
pub trait Argument: Clone {
    /// Failures of operations on these values.
    type Failure: From<Refusal>;

    /// This value as the binder sees it.
    fn look(&self) -> Look<'_>;

    /// The value of a parameter that a call does not name.
    fn preset(preset: &Preset) -> Self;
}
