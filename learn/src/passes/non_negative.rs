//! Steps of coordinate descent to weights of samples that are not negative, by functions of rows.

use crate::dense::tensor;
use crate::passes::chunks::piece_rows;
use crate::passes::functions::{Of, RowFunction};
use crate::passes::rows::RowPass;
use ndarray::Array2;
use std::sync::Arc;
use tharsis_numeric::{DType, Tensor};

/// Passes over samples of so many rows and columns, for so many weights of each.
pub(crate) struct NonNegative {
    rows: usize,
    count: usize,
}

impl NonNegative {
    pub(crate) fn new(samples: (usize, usize), count: usize) -> NonNegative {
        NonNegative { rows: piece_rows((samples.0, samples.1.max(count)), count), count }
    }

    /// The weights of a step, and the slope that was left; (n, k + 1). Inputs: products of samples and parts
    /// (n, k), weights before (n, k), products of parts (k, k).
    #[track_caller]
    pub(crate) fn step(&self, products: &Tensor, weights: &Tensor, gram: &Array2<f64>) -> Tensor {
        let inputs = [products, weights, &tensor(gram)];
        self.pass(Of::NonNegativeStep, 1).map(&inputs, self.count + 1, DType::F64)
    }

    /// The weights from zero on, after at most so many steps, which end at a part of the first slope; (n, k).
    #[track_caller]
    pub(crate) fn solved(&self, products: &Tensor, gram: &Array2<f64>, (tol, steps): (f64, usize)) -> Tensor {
        let bounds = Tensor::from_elements(&[1, 2], &[tol, steps as f64]);
        let inputs = [products, &tensor(gram), &bounds];
        self.pass(Of::NonNegative, 2).map(&inputs, self.count, DType::F64)
    }

    fn pass(&self, of: Of, whole: usize) -> RowPass {
        let held = self.rows * (3 * self.count + 1) + self.count * self.count;
        RowPass { function: Arc::new(RowFunction { of, held }), rows: self.rows, whole }
    }
}
