//! The samples of a fit, to which others are near.

use super::block::{Around, Nearest, Summed};
use super::metric::{Distance, Weights};
use crate::checks::{Nan, Training, refused, samples_for};
use crate::engine::Engine;
use crate::options::FitOptions;
use crate::passes::PairPass;
use crate::saved::stored;
use serde::{Deserialize, Serialize};
use tharsis_numeric::select::UNKNOWN;
use tharsis_numeric::{DType, Result, Tensor};

/// Neighbours of some samples, as expressions; of each sample the nearest first, and of equal distances that
/// of the first row.
#[derive(Clone, Debug)]
pub struct Neighbors {
    /// Their distances; (m, k), float64.
    pub distances: Tensor,
    /// The numbers of their samples in the fit; (m, k), int64.
    pub indices: Tensor,
}

/// The samples of a fit, as an expression, and what goes with them.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Reference {
    /// (n, d), float64.
    #[serde(with = "stored")]
    x: Tensor,
    /// Columns that go with the samples; (n, w), float64, or none.
    #[serde(with = "stored")]
    carried: Tensor,
    /// The numbers of samples, of features, and of columns that go with a sample.
    shape: [usize; 3],
    distance: Distance,
}

impl Reference {
    /// The samples of a fit, which are checked by one pass, and what goes with them, (n, w).
    ///
    /// # Errors
    /// `ValueError` for NaN and infinity; errors of the pass.
    #[track_caller]
    pub(crate) fn of(training: &Training, carried: Option<&Tensor>, distance: Distance) -> Result<Reference> {
        training.check_finite(Nan::Refused)?;
        let x = training.x.clone();
        let carried = carried.cloned().unwrap_or_else(|| x.get(&[(..).into(), (..0i64).into()]));
        let &[_, columns] = carried.shape()? else {
            return Err(refused("what goes with samples has two axes"));
        };
        Ok(Reference { x, carried, shape: [training.rows, training.columns, columns], distance })
    }

    /// The same samples with other columns that go with them.
    pub(crate) fn with(&self, carried: &Tensor, columns: usize) -> Reference {
        let [rows, features, _] = self.shape;
        Reference { carried: carried.clone(), shape: [rows, features, columns], ..self.clone() }
    }

    /// Whether the parts of one that was read fit each other.
    pub(crate) fn is_sound(&self) -> bool {
        let [rows, columns, carried] = self.shape;
        let fits = |tensor: &Tensor, width| tensor.shape().is_ok_and(|shape| *shape == [rows, width]);
        0 < rows && 0 < columns && fits(&self.x, columns) && fits(&self.carried, carried)
    }

    /// The samples and what goes with them in this process, for a file.
    ///
    /// # Errors
    /// Errors of the run.
    #[track_caller]
    pub(crate) fn held(&self) -> Result<Reference> {
        let held = |tensor: &Tensor| Ok(Tensor::from_array(&tensor.fetch::<f64>()?));
        Ok(Reference { x: held(&self.x)?, carried: held(&self.carried)?, ..self.clone() })
    }

    /// The samples of the fit; (n, d).
    pub(crate) fn x(&self) -> &Tensor {
        &self.x
    }

    pub(crate) fn rows(&self) -> usize {
        self.shape[0]
    }

    pub(crate) fn columns(&self) -> usize {
        self.shape[1]
    }

    pub(crate) fn carried(&self) -> usize {
        self.shape[2]
    }

    pub(crate) fn distance(&self) -> Distance {
        self.distance
    }

    /// The states of the nearest samples of each of these samples (m, d), or of each sample of the fit, which
    /// is then none of its own neighbours. As an expression; (m, count * (2 + w)).
    ///
    /// # Errors
    /// `ValueError` for other shapes, and for more neighbours than there are samples; the states carry one
    /// when run for samples that are not finite.
    #[track_caller]
    pub(crate) fn nearest(
        &self,
        model: &'static str,
        x: Option<&Tensor>,
        (count, radius): (usize, Option<f64>),
    ) -> Result<Tensor> {
        let [rows, columns, carried] = self.shape;
        let (is_own, distance) = (x.is_none(), self.distance);
        let most = if is_own { rows - 1 } else { rows };
        if most < count {
            let (sign, fit) = if is_own { ("<", "n_samples_fit") } else { ("<=", "n_samples_fit") };
            let samples =
                x.map_or(rows, |x| x.shape().ok().and_then(|shape| shape.first().copied()).unwrap_or(0));
            return Err(refused(format!(
                "Expected n_neighbors {sign} {fit}, but n_neighbors = {count}, n_samples_fit = {rows}, n_samples = \
                 {samples}"
            )));
        }
        let pass = Nearest { distance, count, radius, is_own, carried, columns }.pass();
        self.states(model, pass, x)
    }

    /// The nearest samples of each of these samples, or of each sample of the fit; see
    /// [`Reference::nearest`].
    ///
    /// # Errors
    /// As there; `ValueError` for no neighbours.
    #[track_caller]
    pub(crate) fn neighbors(
        &self,
        model: &'static str,
        x: Option<&Tensor>,
        count: usize,
    ) -> Result<Neighbors> {
        if count == 0 {
            return Err(refused("Expected n_neighbors > 0. Got 0"));
        }
        let states = self.nearest(model, x, (count, None))?;
        let part =
            |at: usize| states.get(&[(..).into(), ((at * count) as i64..((at + 1) * count) as i64).into()]);
        Ok(Neighbors { distances: whole(&part(0), self.distance), indices: part(1).astype(DType::I64) })
    }

    /// Sums over the samples within a radius of each of these samples, as an expression.
    ///
    /// # Errors
    /// `ValueError` for other shapes; the sums carry one when run for samples that are not finite.
    #[track_caller]
    pub(crate) fn around(
        &self,
        model: &'static str,
        x: Option<&Tensor>,
        (radius, weights, summed): (f64, Weights, Summed),
    ) -> Result<Tensor> {
        let pass = Around {
            distance: self.distance,
            radius,
            weights,
            summed,
            is_own: false,
            columns: self.columns(),
        }
        .pass();
        self.states(model, pass, x)
    }

    #[track_caller]
    fn states(&self, model: &'static str, pass: PairPass, x: Option<&Tensor>) -> Result<Tensor> {
        let Some(x) = x else { return Ok(pass.states(&self.x, &self.x, &[&self.carried])) };
        let mut samples = samples_for(model, x, self.columns())?;
        if samples.shape()?.contains(&UNKNOWN) {
            samples = Engine::new(FitOptions::new().chosen_executor()).with_sizes(&[&samples])?.remove(0);
        }
        Ok(pass.states(&samples, &self.x, &[&self.carried]))
    }
}

/// Distances of their reduced forms.
#[track_caller]
pub(crate) fn whole(reduced: &Tensor, distance: Distance) -> Tensor {
    match distance {
        Distance::Euclidean => reduced.sqrt(),
        Distance::Power(p) => reduced.power(1.0 / p),
        _ => reduced.clone(),
    }
}

/// [`Save`](crate::Save) of a model with the samples of its fit, and what must hold of one that is read.
macro_rules! saves {
    ($model:ty, $name:expr, |$read:ident| $is_sound:expr) => {
        impl $crate::Save for $model {
            const KIND: &'static str = $name;

            #[track_caller]
            fn body(&self) -> $crate::Result<Vec<u8>> {
                $crate::saved::encoded(&Self { reference: self.reference.held()?, ..self.clone() })
            }

            fn of_body(body: &[u8]) -> Option<Self> {
                let $read: Self = $crate::saved::decoded(body)?;
                let is_sound: bool = $read.reference.is_sound() && $is_sound;
                is_sound.then_some($read)
            }
        }
    };
}
pub(crate) use saves;

/// scikit-learn's `kneighbors` of a model that has a number of neighbours.
macro_rules! finds {
    ($model:ty) => {
        impl $model {
            /// The nearest samples of the fit of each of these samples (m, d), or without any of each sample
            /// of the fit, which is then no neighbour of itself; as many as given, or `n_neighbors`.
            ///
            /// # Errors
            /// `ValueError` for other shapes, no neighbours, and more than there are samples; the results
            /// carry one when run for samples that are not finite.
            #[track_caller]
            pub fn kneighbors(
                &self,
                x: Option<&Tensor>,
                n_neighbors: impl Into<Option<usize>>,
            ) -> Result<$crate::neighbors::Neighbors> {
                self.reference.neighbors(NAME, x, n_neighbors.into().unwrap_or(self.n_neighbors))
            }
        }
    };
}
pub(crate) use finds;
