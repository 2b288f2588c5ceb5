//! Samples whose features have names, and estimators that hold a model to the names of its fit.

use crate::base::{Estimator, FitOptions, Predict, PredictProba, Transform};
use crate::checks::refused;
use std::collections::BTreeSet;
use std::fmt;
use tharsis_numeric::select::UNKNOWN;
use tharsis_numeric::{Result, Tensor};

/// Names of a refusal that are shown.
const SHOWN_MAX: usize = 5;

/// Samples (n, d) with a name for each feature, such as the columns of a frame.
#[derive(Clone, Debug)]
pub struct Table {
    names: Vec<String>,
    x: Tensor,
}

impl Table {
    /// Samples with the names of their features, in the order of the columns.
    ///
    /// ```
    /// use tharsis_learn::Table;
    /// use tharsis_numeric::zeros;
    /// assert_eq!(Table::new(["height", "width"], &zeros(&[5, 2]))?.names(), ["height", "width"]);
    /// assert!(Table::new(["height"], &zeros(&[5, 2])).is_err());
    /// # Ok::<(), tharsis_learn::Error>(())
    /// ```
    ///
    /// # Errors
    /// `ValueError` for samples of other than two axes, for another number of names than of features, and
    /// for a name that stands twice; the error that the tensor carries.
    #[track_caller]
    pub fn new<S: Into<String>>(names: impl IntoIterator<Item = S>, x: &Tensor) -> Result<Table> {
        let names: Vec<String> = names.into_iter().map(Into::into).collect();
        let &[_, columns] = x.shape()? else {
            return Err(refused(format!("Expected 2D array, got {} axes instead.", x.ndim()?)));
        };
        if columns != names.len() && columns != UNKNOWN {
            return Err(refused(format!("{} names for {columns} features", names.len())));
        }
        let mut seen = BTreeSet::new();
        if let Some(twice) = names.iter().find(|name| !seen.insert(name.as_str())) {
            return Err(refused(format!("the name '{twice}' stands for two features")));
        }
        Ok(Table { names, x: x.clone() })
    }

    /// The names of the features.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// The samples without their names; (n, d).
    pub fn x(&self) -> &Tensor {
        &self.x
    }
}

/// An estimator whose models know the names of the features that they were fitted to.
///
/// ```
/// use tharsis_learn::linear_model::Ridge;
/// use tharsis_learn::{Named, Table};
/// use tharsis_numeric::{arange, zeros};
/// let table = Table::new(["a", "b"], &zeros(&[4, 2]))?;
/// let model = Named::new(Ridge::new()).fit(&table, &arange(4), ..)?;
/// assert_eq!(model.feature_names_in, ["a", "b"]);
/// let refused = model.predict(&Table::new(["b", "a"], &zeros(&[4, 2]))?).check().unwrap_err();
/// assert!(refused.to_string().contains("Feature names must be in the same order as they were in fit."));
/// # Ok::<(), tharsis_learn::Error>(())
/// ```
#[must_use]
#[derive(Clone, Debug)]
pub struct Named<E> {
    estimator: E,
}

/// A model of [`Named`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct FittedNamed<M> {
    /// scikit-learn's `feature_names_in_`; (d,).
    pub feature_names_in: Vec<String>,
    /// The model, whose own methods take samples without names.
    pub model: M,
}

impl<E: Estimator> Named<E> {
    /// An estimator for samples with names.
    pub fn new(estimator: E) -> Named<E> {
        Named { estimator }
    }

    /// Fits the estimator on samples and their targets.
    ///
    /// # Errors
    /// Those of the estimator's own `fit`.
    #[track_caller]
    pub fn fit(
        &self,
        table: &Table,
        y: &Tensor,
        options: impl Into<FitOptions>,
    ) -> Result<FittedNamed<E::Fitted>> {
        self.fitted(table, Some(y), &options.into())
    }

    /// Fits an estimator that needs no targets.
    ///
    /// # Errors
    /// As [`fit`](Named::fit).
    #[track_caller]
    pub fn fit_unsupervised(
        &self,
        table: &Table,
        options: impl Into<FitOptions>,
    ) -> Result<FittedNamed<E::Fitted>> {
        self.fitted(table, None, &options.into())
    }

    #[track_caller]
    fn fitted(
        &self,
        table: &Table,
        y: Option<&Tensor>,
        options: &FitOptions,
    ) -> Result<FittedNamed<E::Fitted>> {
        let model = self.estimator.fit_any(&table.x, y, options)?;
        Ok(FittedNamed { feature_names_in: table.names.clone(), model })
    }
}

impl<M> FittedNamed<M> {
    /// The samples of a table, if its features are those of the fit in the same order.
    #[track_caller]
    fn samples<'a>(&self, table: &'a Table) -> Result<&'a Tensor> {
        let (own, other) = (&self.feature_names_in, &table.names);
        if own == other {
            return Ok(&table.x);
        }
        let [own, other] =
            [own, other].map(|names| names.iter().map(String::as_str).collect::<BTreeSet<_>>());
        let mut text = "The feature names should match those that were passed during fit.\n".to_owned();
        let parts = [
            ("Feature names unseen at fit time:\n", other.difference(&own)),
            ("Feature names seen at fit time, yet now missing:\n", own.difference(&other)),
        ];
        for (title, names) in parts {
            let names: Vec<&&str> = names.collect();
            if names.is_empty() {
                continue;
            }
            text += title;
            for name in names.iter().take(SHOWN_MAX) {
                text += &format!("- {name}\n");
            }
            if SHOWN_MAX < names.len() {
                text += "- ...\n";
            }
        }
        if own == other {
            text += "Feature names must be in the same order as they were in fit.\n";
        }
        Err(refused(text))
    }
}

impl<M: Predict> FittedNamed<M> {
    /// The predictions for samples, as an expression. Carries a `ValueError` if the names or their order
    /// differ from those of the fit.
    #[track_caller]
    pub fn predict(&self, table: &Table) -> Tensor {
        self.samples(table).map_or_else(Tensor::from, |x| self.model.predict(x))
    }

    /// The score on samples and their targets.
    ///
    /// # Errors
    /// `ValueError` if the names or their order differ from those of the fit; those of the score.
    #[track_caller]
    pub fn score(&self, table: &Table, y: &Tensor, options: impl Into<FitOptions>) -> Result<f64> {
        self.model.score_any(self.samples(table)?, y, &options.into())
    }
}

impl<M: PredictProba> FittedNamed<M> {
    /// The probabilities of the classes, as [`predict`](FittedNamed::predict).
    #[track_caller]
    pub fn predict_proba(&self, table: &Table) -> Tensor {
        self.samples(table).map_or_else(Tensor::from, |x| self.model.predict_proba(x))
    }
}

impl<M: Transform> FittedNamed<M> {
    /// scikit-learn's `get_feature_names_out`: the names of the features of mapped samples. `None` of models
    /// that have no names for them.
    ///
    /// ```
    /// use tharsis_learn::preprocessing::PolynomialFeatures;
    /// use tharsis_learn::{Named, Table};
    /// use tharsis_numeric::zeros;
    /// let table = Table::new(["a", "b"], &zeros(&[4, 2]))?;
    /// let model = Named::new(PolynomialFeatures::new()).fit_unsupervised(&table, ..)?;
    /// assert_eq!(model.feature_names_out().unwrap_or_default(), ["1", "a", "b", "a^2", "a b", "b^2"]);
    /// # Ok::<(), tharsis_learn::Error>(())
    /// ```
    pub fn feature_names_out(&self) -> Option<Vec<String>> {
        self.model.feature_names_out(&self.feature_names_in)
    }

    /// The mapped samples, as [`predict`](FittedNamed::predict).
    #[track_caller]
    pub fn transform(&self, table: &Table) -> Tensor {
        self.samples(table).map_or_else(Tensor::from, |x| self.model.transform(x))
    }
}

impl<M: fmt::Display> fmt::Display for FittedNamed<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}\n  features: {}", self.model, self.feature_names_in.join(", "))
    }
}
