//! Single trees.

use super::family::{named_parameters, tree_classifier, tree_parameters, tree_regressor};
use super::forest::Forest;
use super::parameters::ClassCriterion;

/// scikit-learn's `DecisionTreeClassifier`, on bins: classes by questions about one feature after the other.
///
/// A feature with at most 255 distinct values has a bin for each, and the tree is the one of all thresholds.
/// Thresholds of another feature are the bounds of 255 bins with about as many samples each. Bins of more
/// than 200 000 samples are made of about as many that are drawn. Where splits are equally good the first
/// feature is taken, in scikit-learn any.
///
/// ```
/// use tharsis_learn::tree::DecisionTreeClassifier;
/// use tharsis_numeric::array;
/// let x = array([0.0, 1.0, 2.0, 1.0, 3.0, 0.0]).reshape(&[3, 2]);
/// let model = DecisionTreeClassifier::new().fit(&x, &array([4i64, 4, 7]), ..)?;
/// assert_eq!(model.predict(&array([2.4, 1.0, 2.6, 1.0]).reshape(&[2, 2])).to_vec::<i64>()?, [4, 7]);
/// # Ok::<(), tharsis_learn::Error>(())
/// ```
#[must_use]
#[derive(Clone, Debug)]
pub struct DecisionTreeClassifier {
    forest: Forest,
    criterion: ClassCriterion,
}

/// scikit-learn's `DecisionTreeRegressor`, on bins: means of targets by questions about one feature after the
/// other. Bins are those of [`DecisionTreeClassifier`].
///
/// ```
/// use tharsis_learn::tree::DecisionTreeRegressor;
/// use tharsis_numeric::{arange, array};
/// let x = arange(4).reshape(&[4, 1]);
/// let model = DecisionTreeRegressor::new().max_depth(1).fit(&x, &array([1.0, 1.0, 5.0, 7.0]), ..)?;
/// assert_eq!(model.predict(&x).to_vec::<f64>()?, [1.0, 1.0, 6.0, 6.0]);
/// # Ok::<(), tharsis_learn::Error>(())
/// ```
#[must_use]
#[derive(Clone, Debug)]
pub struct DecisionTreeRegressor {
    forest: Forest,
}

impl Default for DecisionTreeClassifier {
    fn default() -> DecisionTreeClassifier {
        DecisionTreeClassifier { forest: Forest::one_tree(), criterion: ClassCriterion::Gini }
    }
}

impl Default for DecisionTreeRegressor {
    fn default() -> DecisionTreeRegressor {
        DecisionTreeRegressor { forest: Forest::one_tree() }
    }
}

impl DecisionTreeClassifier {
    /// An estimator with scikit-learn's defaults: Gini's impurity, and leaves as pure as can be.
    ///
    /// ```
    /// use tharsis_learn::tree::DecisionTreeClassifier;
    /// use tharsis_numeric::{arange, array};
    /// let (x, y) = (arange(4).reshape(&[4, 1]), array([0i64, 1, 0, 1]));
    /// let model = DecisionTreeClassifier::new().fit(&x, &y, ..)?;
    /// assert_eq!((model.score(&x, &y, ..)?, model.get_n_leaves()), (1.0, 4));
    /// # Ok::<(), tharsis_learn::Error>(())
    /// ```
    pub fn new() -> DecisionTreeClassifier {
        DecisionTreeClassifier::default()
    }
}

impl DecisionTreeRegressor {
    /// An estimator with scikit-learn's defaults: leaves of equal targets.
    ///
    /// ```
    /// use tharsis_learn::tree::DecisionTreeRegressor;
    /// use tharsis_numeric::arange;
    /// let x = arange(8).reshape(&[8, 1]);
    /// let model = DecisionTreeRegressor::new().fit(&x, &x.squeeze(None), ..)?;
    /// assert_eq!((model.get_depth(), model.get_n_leaves()), (3, 8));
    /// # Ok::<(), tharsis_learn::Error>(())
    /// ```
    pub fn new() -> DecisionTreeRegressor {
        DecisionTreeRegressor::default()
    }
}

macro_rules! size_of_tree {
    ($fitted:ident) => {
        impl $fitted {
            /// scikit-learn's `get_depth`: the number of splits on the longest way to a leaf.
            pub fn get_depth(&self) -> usize {
                self.fitted.trees.list().iter().map(|tree| tree.depth()).max().unwrap_or(0)
            }

            /// scikit-learn's `get_n_leaves`: the number of leaves of the tree.
            pub fn get_n_leaves(&self) -> usize {
                self.fitted.trees.list().iter().map(|tree| tree.leaves()).sum()
            }
        }
    };
}

tree_parameters!(DecisionTreeClassifier);
named_parameters!(DecisionTreeClassifier, ["criterion" => criterion,]);
tree_classifier!(DecisionTreeClassifier, FittedDecisionTreeClassifier, "DecisionTreeClassifier", "tree");
size_of_tree!(FittedDecisionTreeClassifier);
tree_parameters!(DecisionTreeRegressor);
named_parameters!(DecisionTreeRegressor, []);
tree_regressor!(DecisionTreeRegressor, FittedDecisionTreeRegressor, "DecisionTreeRegressor", "tree");
size_of_tree!(FittedDecisionTreeRegressor);
