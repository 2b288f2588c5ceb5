//! Counts of pairs of labels: the state of all metrics of two labellings.

use super::inputs::{CELLS_MAX, Pass, common_length, labels, settled, value_error};
use crate::Result;
use std::collections::BTreeMap;
use tharsis_kernels::DType;
use tharsis_numeric::Tensor;

/// Upper bound on the cells of a table that is indexed by the labels themselves.
const DENSE_CELLS_MAX: i128 = 1 << 20;

/// Two labellings of the same samples, checked.
pub(super) struct Labels {
    pub(super) y_true: Tensor,
    pub(super) y_pred: Tensor,
    pub(super) count: usize,
    /// Whether both were of booleans.
    pub(super) are_booleans: bool,
}

impl Labels {
    /// Two tensors (n,) or (n, 1) of integers or booleans, with known sizes.
    ///
    /// # Errors
    /// `ValueError` for other shapes, different lengths or no samples; `TypeError` for other dtypes.
    #[track_caller]
    pub(super) fn new(y_true: &Tensor, y_pred: &Tensor) -> Result<Labels> {
        let known = settled(&[y_true, y_pred])?;
        let count = common_length(&[&known[0], &known[1]])?;
        let are_booleans = known[0].dtype()? == DType::Bool && known[1].dtype()? == DType::Bool;
        let (y_true, y_pred) = (labels(&known[0], "y_true")?, labels(&known[1], "y_pred")?);
        Ok(Labels { y_true, y_pred, count, are_booleans })
    }
}

/// The weight of the samples of each pair of labels.
pub(super) struct Contingency {
    /// The labels of the first labelling, ascending.
    pub(super) rows: Vec<i64>,
    /// The labels of the second labelling, ascending.
    pub(super) columns: Vec<i64>,
    /// Row by row; zeros included.
    pub(super) weights: Vec<f64>,
}

/// The weights of one label.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct OfLabel {
    pub(super) true_positive: f64,
    pub(super) in_true: f64,
    pub(super) in_pred: f64,
}

impl Contingency {
    /// Counts in two passes: one for the range of the labels, one for the pairs. Labels that are far apart
    /// take a pass more.
    ///
    /// # Errors
    /// `ValueError` if the table exceeds 2^22 cells, or for weights that are not finite.
    #[track_caller]
    pub(super) fn of(labels: &Labels, sample_weight: Option<&Tensor>) -> Result<Contingency> {
        let Labels { y_true, y_pred, count, .. } = labels;
        let mut pass = Pass::default();
        let weights = pass.weights(sample_weight, *count)?;
        for labels in [y_true, y_pred] {
            pass.want(labels.min(..));
            pass.want(labels.max(..));
        }
        let mut found = pass.run()?;
        let mut ranges = Vec::new();
        for _ in [y_true, y_pred] {
            ranges.push([found.label()?, found.label()?]);
        }
        let span = |[low, high]: [i64; 2]| i128::from(high) - i128::from(low) + 1;
        let (rows, columns) = (span(ranges[0]), span(ranges[1]));
        if rows.saturating_mul(columns) <= DENSE_CELLS_MAX {
            let (low, columns_low) = (ranges[0][0], ranges[1][0]);
            let rows: Vec<i64> = (low..=ranges[0][1]).collect();
            let columns: Vec<i64> = (columns_low..=ranges[1][1]).collect();
            let codes = y_true.subtract(low).multiply(columns.len() as i64).add(y_pred.subtract(columns_low));
            return Contingency::counted(rows, columns, &codes, weights.as_ref());
        }
        let mut pass = Pass::default();
        pass.want(y_true.unique());
        pass.want(y_pred.unique());
        let mut found = pass.run()?;
        let (rows, columns) = (found.tensor()?, found.tensor()?);
        let (row_count, column_count) = (rows.size()?, columns.size()?);
        if (CELLS_MAX as u64) < row_count.saturating_mul(column_count) {
            let text = format!(
                "the labels have {row_count} and {column_count} distinct values, a table of both may have {CELLS_MAX} cells"
            );
            return Err(value_error(text));
        }
        let codes = rows.searchsorted(y_true).multiply(column_count as i64).add(columns.searchsorted(y_pred));
        Contingency::counted(rows.to_vec()?, columns.to_vec()?, &codes, weights.as_ref())
    }

    /// Counts the cells, and leaves out labels that no sample has.
    #[track_caller]
    fn counted(
        rows: Vec<i64>,
        columns: Vec<i64>,
        codes: &Tensor,
        weights: Option<&Tensor>,
    ) -> Result<Contingency> {
        let cells = rows.len() * columns.len();
        let mut pass = Pass::default();
        pass.want(codes.bincount(None, cells));
        if let Some(weights) = weights {
            pass.want(codes.bincount(Some(weights), cells));
        }
        let mut found = pass.run()?;
        let counts = found.next::<i64>()?;
        let weights = match weights {
            None => counts.iter().map(|&count| count as f64).collect(),
            Some(_) => found.next::<f64>()?,
        };
        let width = columns.len();
        let is_used = |at: usize| counts[at] != 0;
        let used_rows: Vec<usize> =
            (0..rows.len()).filter(|&row| (0..width).any(|column| is_used(row * width + column))).collect();
        let used_columns: Vec<usize> =
            (0..width).filter(|&column| (0..rows.len()).any(|row| is_used(row * width + column))).collect();
        let cells =
            used_rows.iter().flat_map(|&row| used_columns.iter().map(move |&column| row * width + column));
        Ok(Contingency {
            weights: cells.map(|at| weights[at]).collect(),
            rows: used_rows.iter().map(|&row| rows[row]).collect(),
            columns: used_columns.iter().map(|&column| columns[column]).collect(),
        })
    }

    /// All cells: row, column, weight.
    pub(super) fn cells(&self) -> impl Iterator<Item = (usize, usize, f64)> + '_ {
        let width = self.columns.len();
        self.weights.iter().enumerate().map(move |(at, &weight)| (at / width, at % width, weight))
    }

    /// The labels of both labellings, ascending.
    pub(super) fn labels(&self) -> Vec<i64> {
        let mut labels = [&self.rows[..], &self.columns[..]].concat();
        labels.sort_unstable();
        labels.dedup();
        labels
    }

    /// The sum of all weights.
    pub(super) fn total(&self) -> f64 {
        self.weights.iter().sum()
    }

    /// The sums of rows.
    pub(super) fn row_sums(&self) -> Vec<f64> {
        self.weights.chunks(self.columns.len().max(1)).map(|row| row.iter().sum()).collect()
    }

    /// The sums of columns.
    pub(super) fn column_sums(&self) -> Vec<f64> {
        let mut sums = vec![0.0; self.columns.len()];
        for (_, column, weight) in self.cells() {
            sums[column] += weight;
        }
        sums
    }

    /// The weights of these labels. All samples count, those with other labels in one labelling too.
    pub(super) fn of_labels(&self, labels: &[i64]) -> Vec<OfLabel> {
        let mut known: BTreeMap<i64, OfLabel> = BTreeMap::new();
        for (&label, sum) in self.rows.iter().zip(self.row_sums()) {
            known.entry(label).or_default().in_true = sum;
        }
        for (&label, sum) in self.columns.iter().zip(self.column_sums()) {
            known.entry(label).or_default().in_pred = sum;
        }
        for (row, column, weight) in self.cells() {
            if self.rows[row] == self.columns[column] {
                known.entry(self.rows[row]).or_default().true_positive = weight;
            }
        }
        labels.iter().map(|label| known.get(label).copied().unwrap_or_default()).collect()
    }

    /// The square matrix of these labels, row by row. Samples with another label are left out.
    ///
    /// # Errors
    /// `ValueError` if it exceeds 2^22 cells.
    #[track_caller]
    pub(super) fn square(&self, labels: &[i64]) -> Result<Vec<f64>> {
        let side = labels.len();
        if CELLS_MAX < side.saturating_mul(side) {
            let text = format!("a matrix of {side} labels has more than {CELLS_MAX} cells");
            return Err(value_error(text));
        }
        let places: BTreeMap<i64, usize> =
            labels.iter().enumerate().map(|(at, &label)| (label, at)).collect();
        let mut matrix = vec![0.0; side * side];
        for (row, column, weight) in self.cells() {
            if let (Some(row), Some(column)) =
                (places.get(&self.rows[row]), places.get(&self.columns[column]))
            {
                matrix[row * side + column] += weight;
            }
        }
        Ok(matrix)
    }
}

/// The distinct labels of a tensor (n,) of int64, ascending.
///
/// # Errors
/// `ValueError` if there are more than 2^22.
#[track_caller]
pub(crate) fn classes_of(labels: &Tensor) -> Result<Vec<i64>> {
    let mut pass = Pass::default();
    pass.want(labels.unique());
    let classes = pass.run()?.tensor()?;
    let count = classes.size()?;
    if (CELLS_MAX as u64) < count {
        return Err(value_error(format!("the labels have {count} distinct values, more than {CELLS_MAX}")));
    }
    classes.to_vec()
}
