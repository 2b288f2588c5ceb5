//! Features that a path has chosen, and the Cholesky factor of their products: a feature more costs k² steps.

use ndarray::{Array1, Array2};

/// The features of a path and the factor of their part of the Gram matrix.
#[derive(Clone, Debug, Default)]
pub(crate) struct Active {
    /// The features, in the order in which they came.
    pub(crate) columns: Vec<usize>,
    /// The rows of the lower factor, each to its diagonal.
    rows: Vec<Vec<f64>>,
}

impl Active {
    /// The row that a feature adds to the factor, and the square of its part that the others do not have.
    fn row(&self, gram: &Array2<f64>, column: usize) -> (Vec<f64>, f64) {
        let right = self.columns.iter().map(|&other| gram[[other, column]]).collect();
        let row = self.forward(right);
        let squares: f64 = row.iter().map(|part| part * part).sum();
        (row, gram[[column, column]] - squares)
    }

    /// Adds a feature whose part that the others do not have is longer than `least`; whether it was added.
    pub(crate) fn push(&mut self, gram: &Array2<f64>, column: usize, least: f64) -> bool {
        let (mut row, left) = self.row(gram, column);
        let own = left.max(0.0).sqrt();
        let is_own = least < own;
        if is_own {
            row.push(own);
            self.rows.push(row);
            self.columns.push(column);
        }
        is_own
    }

    /// Takes the feature at this place away.
    pub(crate) fn remove(&mut self, gram: &Array2<f64>, at: usize) {
        let mut columns = std::mem::take(&mut self.columns);
        self.rows.clear();
        columns.remove(at);
        for column in columns {
            self.push(gram, column, -1.0);
        }
    }

    /// The solution of the system of the products of the features.
    pub(crate) fn solve(&self, right: Vec<f64>) -> Array1<f64> {
        let mut solution = self.forward(right);
        for at in (0..solution.len()).rev() {
            let below = self.rows[at + 1..].iter().zip(&solution[at + 1..]);
            let known: f64 = below.map(|(row, solved)| row[at] * solved).sum();
            solution[at] = (solution[at] - known) / self.rows[at][at];
        }
        Array1::from(solution)
    }

    /// The solution of the system of the lower factor.
    fn forward(&self, mut right: Vec<f64>) -> Vec<f64> {
        for (at, row) in self.rows.iter().enumerate() {
            let known: f64 = row[..at].iter().zip(&right).map(|(part, solved)| part * solved).sum();
            right[at] = (right[at] - known) / row[at];
        }
        right
    }

    /// Coefficients of all features from those of the chosen ones.
    pub(crate) fn spread(&self, own: &Array1<f64>, count: usize) -> Array1<f64> {
        let mut all = Array1::zeros(count);
        self.columns.iter().zip(own).for_each(|(&column, &own)| all[column] = own);
        all
    }
}

#[cfg(test)]
mod tests {
    use super::Active;
    use ndarray::{Array1, arr2};

    #[test]
    fn features_come_and_go() {
        let gram =
            arr2(&[[4.0, 1.0, 2.0, 4.0], [1.0, 3.0, 0.5, 1.0], [2.0, 0.5, 5.0, 2.0], [4.0, 1.0, 2.0, 4.0]]);
        let mut active = Active::default();
        assert!(active.push(&gram, 2, 1e-7) && active.push(&gram, 0, 1e-7) && active.push(&gram, 1, 1e-7));
        // The fourth is the first once more.
        assert!(!active.push(&gram, 3, 1e-7));
        let near = |a: &Array1<f64>, b: &[f64]| a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-12);
        // Products of (1, 2, 3) of the features 2, 0 and 1.
        assert!(near(
            &active.solve(vec![5.0 + 4.0 + 1.5, 2.0 + 8.0 + 3.0, 0.5 + 2.0 + 9.0]),
            &[1.0, 2.0, 3.0]
        ));
        active.remove(&gram, 1);
        assert_eq!(active.columns, [2, 1]);
        assert!(near(&active.solve(vec![5.0 + 1.5, 0.5 + 9.0]), &[1.0, 3.0]));
        assert_eq!(active.spread(&Array1::from(vec![1.0, 3.0]), 4).to_vec(), [0.0, 3.0, 1.0, 0.0]);
    }
}
