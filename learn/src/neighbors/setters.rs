//! Parameters that estimators of neighbours have in common.

/// Methods that set parameters, for those that an estimator has.
macro_rules! setters {
    ($estimator:ident: $($setter:ident),+) => {
        impl $estimator {
            $($crate::neighbors::setters::setter!($estimator $setter);)+
        }
    };
}
pub(super) use setters;

/// One of the methods of [`setters`].
macro_rules! setter {
    ($estimator:ident n_neighbors) => {
        /// scikit-learn's `n_neighbors`: the number of neighbours of a sample; not zero.
        pub fn n_neighbors(self, n_neighbors: usize) -> $estimator {
            $estimator { n_neighbors, ..self }
        }
    };
    ($estimator:ident radius) => {
        /// scikit-learn's `radius`: the largest distance of a neighbour; not negative.
        pub fn radius(self, radius: f64) -> $estimator {
            $estimator { radius, ..self }
        }
    };
    ($estimator:ident weights) => {
        /// scikit-learn's `weights`: how much each neighbour counts.
        pub fn weights(self, weights: $crate::neighbors::Weights) -> $estimator {
            $estimator { weights, ..self }
        }
    };
    ($estimator:ident metric) => {
        /// scikit-learn's `metric`: the distance of two samples; that of Minkowski, with `p`, by default.
        pub fn metric(self, metric: $crate::neighbors::Metric) -> $estimator {
            $estimator { metric, ..self }
        }

        /// scikit-learn's `p`: the power of the metric of Minkowski, above 0; 2 by default, which is the
        /// Euclidean distance.
        pub fn p(self, p: f64) -> $estimator {
            $estimator { p, ..self }
        }
    };
}
pub(super) use setter;
