//! Sums over the rows of a float64 matrix: the part of a fit that reads samples.
//!
//! Each function reads its rows once, in tiles that stay in the first caches, and keeps nothing of their
//! size. The terms of a sum are added in the order of the rows. Products use fused multiply-add where the CPU
//! has it: bits are the same on CPUs of one kind.

mod block;
mod columns;
mod logistic;
mod nearest;
mod products;

use crate::error::KernelError;

pub use columns::{Ends, Sums, column_ends, column_sums};
pub use logistic::{Loss, Scored, logistic_loss};
pub use nearest::{Centers, Clusters};
pub use products::{Products, products};

/// Rows of a matrix in C order, and a point that is taken off each of them.
#[derive(Clone, Copy, Debug)]
pub struct Around<'a> {
    elements: &'a [f64],
    point: &'a [f64],
}

impl<'a> Around<'a> {
    /// The rows that these elements fill, each with as many as the point.
    ///
    /// # Errors
    /// [`KernelError::Value`] if the elements fill no whole number of rows.
    pub fn new(elements: &'a [f64], point: &'a [f64]) -> Result<Around<'a>, KernelError> {
        check_whole(elements, point.len())?;
        Ok(Around { elements, point })
    }

    /// Checks that there is a weight for each row, if there are weights.
    fn check_weights(&self, weights: Option<&[f64]>) -> Result<(), KernelError> {
        check_beside("weights", weights.map_or(self.rows(), <[f64]>::len), self.rows())
    }

    /// Number of rows; 0 without columns.
    fn rows(&self) -> usize {
        self.elements.len() / self.columns().max(1)
    }

    fn columns(&self) -> usize {
        self.point.len()
    }

    /// The elements of some rows.
    fn part(&self, first: usize, count: usize) -> &'a [f64] {
        &self.elements[first * self.columns()..(first + count) * self.columns()]
    }
}

/// Checks that elements fill whole rows.
fn check_whole(elements: &[f64], columns: usize) -> Result<(), KernelError> {
    // `is_multiple_of(0)` holds for no elements alone.
    if elements.len().is_multiple_of(columns) {
        return Ok(());
    }
    Err(KernelError::Value(format!("{} numbers fill no whole rows of {columns} columns", elements.len())))
}

/// Checks that there is one of the others for each row.
fn check_beside(others: &str, found: usize, rows: usize) -> Result<(), KernelError> {
    if found == rows {
        return Ok(());
    }
    Err(KernelError::Value(format!("{found} {others} beside {rows} rows")))
}

/// Rows of a tile.
const TILE_ROWS: usize = 128;

#[cfg(test)]
mod tests {
    use super::*;

    /// Each function refuses inputs that do not fit each other by an error that says which.
    #[test]
    fn inputs_of_other_shapes_are_refused() {
        let text = |made: Result<(), KernelError>| made.unwrap_err().to_string();
        let [two, three] = [&[1.0, 2.0][..], &[1.0, 2.0, 3.0][..]];
        let rows = |elements, point| Around::new(elements, point);
        let broken = "3 numbers fill no whole rows of 2 columns";
        assert_eq!(text(rows(three, two).map(drop)), broken);
        assert_eq!(text(column_ends(three, 2).map(drop)), broken);
        assert_eq!(text(Centers::new(three, 2, true).map(drop)), broken);
        // No columns hold no numbers.
        assert_eq!(text(rows(three, &[]).map(drop)), "3 numbers fill no whole rows of 0 columns");
        assert_eq!(text(column_ends(two, 0).map(drop)), "2 numbers fill no whole rows of 0 columns");
        assert_eq!(column_ends(&[], 0).unwrap(), Ends { least: vec![], largest: vec![] });
        let one = rows(two, two).unwrap();
        let few = "3 weights beside 1 rows";
        assert_eq!(text(column_sums(one, Some(three)).map(drop)), few);
        assert_eq!(text(products(one, one, Some(three)).map(drop)), few);
        let none = rows(&[], &[]).unwrap();
        assert_eq!(text(products(one, none, Some(three)).map(drop)), few);
        assert_eq!(text(products(one, rows(two, &[0.0]).unwrap(), None).map(drop)), "2 others beside 1 rows");
        for by_products in [false, true] {
            assert_eq!(text(Centers::new(&[], 2, by_products).map(drop)), "no centers of 2 columns");
            assert_eq!(text(Centers::new(&[], 0, by_products).map(drop)), "no centers of 0 columns");
            let centers = Centers::new(two, 2, by_products).unwrap();
            assert_eq!(text(centers.clusters(one, Some(three)).map(drop)), few);
            assert_eq!(text(centers.distances(one, Some(three)).map(drop)), few);
            let narrow = rows(three, &[0.0]).unwrap();
            let other = "centers of 2 columns for rows of 1";
            assert_eq!(text(centers.clusters(narrow, None).map(drop)), other);
            assert_eq!(text(centers.distances(narrow, None).map(drop)), other);
        }
        let scored = |rows, targets, weights, coef| {
            let of = Scored { rows, targets, weights, coef, intercept: 0.0 };
            text(logistic_loss(of).map(drop))
        };
        assert_eq!(scored(three, two, None, two), broken);
        assert_eq!(scored(two, two, None, two), "2 targets beside 1 rows");
        assert_eq!(scored(two, &[1.0], Some(three), two), few);
        assert_eq!(scored(&[], two, None, &[]), "no coefficients");
    }
}
