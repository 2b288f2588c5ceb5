//! scikit-learn's `tree`: questions about one feature after the other.
//!
//! Samples are put in at most 255 bins for each feature, and one for missing values, by one pass that writes
//! a byte for each value. All later passes read these bytes. A pass sums the samples of the open nodes by
//! feature and bin, from which the best split of each follows, so trees grow a level with each pass. Samples
//! that fit the memory of this process, or the part of them that a node has, are summed there, in the order
//! of passes.

mod below;
pub(crate) mod bins;
pub(crate) mod criterion;
pub(crate) mod data;
mod decision;
pub(crate) mod family;
mod foreign;
pub(crate) mod forest;
pub(crate) mod grow;
pub(crate) mod histogram;
pub(crate) mod loss;
pub(crate) mod members;
pub(crate) mod nodes;
pub(crate) mod out_of_bag;
pub(crate) mod parameters;
pub(crate) mod partial;
pub(crate) mod predict;
pub(crate) mod table;
pub(crate) mod targets;
mod threads;
mod wire;

pub use decision::{
    DecisionTreeClassifier, DecisionTreeRegressor, FittedDecisionTreeClassifier, FittedDecisionTreeRegressor,
};
pub(crate) use foreign::find_foreign;
pub use parameters::{ClassCriterion, MaxFeatures};
