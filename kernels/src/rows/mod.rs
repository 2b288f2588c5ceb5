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
    /// # Panics
    /// If the elements fill no whole number of rows.
    pub fn new(elements: &'a [f64], point: &'a [f64]) -> Around<'a> {
        assert!(elements.len().is_multiple_of(point.len().max(1)), "a row that is not whole");
        Around { elements, point }
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

/// Rows of a tile.
const TILE_ROWS: usize = 128;
