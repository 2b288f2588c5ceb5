//! Predictions by the neighbours of a row: the share of each class, or the mean of their targets.

use super::metric::{Distance, Weights, weight_at};
use super::wire::{Parts, name_of};
use crate::passes::RowPass;
use std::sync::Arc;
use tharsis_graph::{Error, Foreign, ForeignName};
use tharsis_kernels::{Chunk, DType, Place};
use tharsis_numeric::Tensor;

/// Rows of states in a task.
const ROWS: usize = 4096;

/// Means over the neighbours in states of [`Nearest`](super::block::Nearest): of the columns that go with
/// them, or of whether they are of each class.
#[derive(Clone, Debug)]
pub(super) struct Means {
    pub(super) distance: Distance,
    /// Neighbours of a state.
    pub(super) count: usize,
    pub(super) weights: Weights,
    /// The number of classes; the columns themselves without it.
    pub(super) classes: Option<usize>,
    /// Columns that go with each neighbour.
    pub(super) carried: usize,
}

impl Means {
    /// The means for states (m, width), as an expression; (m, classes) or (m, columns).
    #[track_caller]
    pub(super) fn of(self, states: &Tensor) -> Tensor {
        let width = self.width();
        RowPass { function: Arc::new(self), rows: ROWS, whole: 0 }.map(&[states], width, DType::F64)
    }

    fn width(&self) -> usize {
        self.classes.unwrap_or(self.carried)
    }

    pub(super) fn read(parts: &mut Parts<'_>) -> Option<Means> {
        let (distance, count) = (Distance::of_word(parts.word()?)?, parts.size()?);
        let (weights, classes) = (Weights::of_word(parts.word()?)?, parts.size()?);
        let classes = (classes != 0).then_some(classes);
        Some(Means { distance, count, weights, classes, carried: parts.size()? })
    }
}

/// The weights of neighbours at these reduced distances.
pub(super) fn weights_of(weights: Weights, distance: Distance, reduced: &[f64]) -> Vec<f64> {
    match weights {
        Weights::Uniform => vec![1.0; reduced.len()],
        Weights::Distance => {
            let weights: Vec<f64> = reduced.iter().map(|&reduced| weight_at(distance, reduced)).collect();
            if !weights.iter().any(|weight| weight.is_infinite()) {
                return weights;
            }
            weights.into_iter().map(|weight| f64::from(u8::from(weight.is_infinite()))).collect()
        }
    }
}

impl Foreign for Means {
    fn name(&self) -> Option<ForeignName> {
        let parts = [
            self.distance.word(),
            self.count.to_string(),
            self.weights.word().to_owned(),
            self.classes.unwrap_or(0).to_string(),
            self.carried.to_string(),
        ];
        Some(name_of("means", &parts))
    }

    fn describe(&self) -> String {
        "means of neighbours".to_owned()
    }

    fn run(&self, _: Place<'_>, args: &[Chunk]) -> Result<Chunk, Error> {
        let (count, width) = (self.count, self.width());
        let states = args[0].elements::<f64>()?;
        let rows = args[0].shape().first().copied().unwrap_or(0);
        let mut means = vec![0.0; rows * width];
        let each = (count * (2 + self.carried)).max(1);
        for (state, mean) in states.chunks_exact(each).zip(means.chunks_exact_mut(width)) {
            let found = state[count..2 * count].iter().take_while(|number| number.is_finite()).count();
            let weights = weights_of(self.weights, self.distance, &state[..found]);
            let all: f64 = weights.iter().sum();
            for (at, weight) in weights.iter().enumerate() {
                let value = |column: usize| state[(2 + column) * count + at];
                match self.classes {
                    None => {
                        mean.iter_mut()
                            .enumerate()
                            .for_each(|(column, mean)| *mean += weight * value(column));
                    }
                    Some(_) => {
                        if let Some(mean) = mean.get_mut(value(0) as usize) {
                            *mean += weight;
                        }
                    }
                }
            }
            mean.iter_mut().for_each(|mean| *mean /= all);
        }
        Ok(Chunk::from_elements(&[rows, width], &means)?)
    }
}
