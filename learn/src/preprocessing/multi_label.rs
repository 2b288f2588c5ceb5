//! Sets of labels as rows of zeros and ones.

use crate::checks::refused;
use crate::saved::saved;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use tharsis_numeric::{DType, Result, Tensor};

const NAME: &str = "MultiLabelBinarizer";

/// scikit-learn's `MultiLabelBinarizer`: a column for each label, which is 1 for the samples that have it.
///
/// Labels are whole numbers, and those of a sample are a list, so this process holds all of them.
///
/// ```
/// use tharsis_learn::preprocessing::MultiLabelBinarizer;
/// let (model, made) = MultiLabelBinarizer::new().fit_transform(&[vec![3i64, 7], vec![], vec![3]])?;
/// assert_eq!(model.classes, [3, 7]);
/// assert_eq!(made.to_vec::<i64>()?, [1, 1, 0, 0, 1, 0]);
/// assert_eq!(model.inverse_transform(&made)?, [vec![3, 7], vec![], vec![3]]);
/// # Ok::<(), tharsis_learn::Error>(())
/// ```
#[must_use]
#[derive(Clone, Debug, Default)]
pub struct MultiLabelBinarizer {
    classes: Option<Vec<i64>>,
}

/// A fitted [`MultiLabelBinarizer`].
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct FittedMultiLabelBinarizer {
    /// scikit-learn's `classes_`: the label of each column; ascending, unless others were given.
    pub classes: Vec<i64>,
}

impl MultiLabelBinarizer {
    /// A column for each label that there is.
    pub fn new() -> MultiLabelBinarizer {
        MultiLabelBinarizer::default()
    }

    /// scikit-learn's `classes`: the labels of the columns, in this order; `None` is all that there are.
    pub fn classes(self, classes: impl Into<Option<Vec<i64>>>) -> MultiLabelBinarizer {
        MultiLabelBinarizer { classes: classes.into() }
    }

    /// The columns of the labels of some samples.
    ///
    /// # Errors
    /// `ValueError` if one of the given classes stands twice.
    #[track_caller]
    pub fn fit<L: AsRef<[i64]>>(&self, y: &[L]) -> Result<FittedMultiLabelBinarizer> {
        let sorted = |mut classes: Vec<i64>| {
            classes.sort_unstable();
            classes.dedup();
            classes
        };
        let Some(given) = &self.classes else {
            let all = y.iter().flat_map(|labels| labels.as_ref()).copied().collect();
            return Ok(FittedMultiLabelBinarizer { classes: sorted(all) });
        };
        if sorted(given.clone()).len() < given.len() {
            return Err(refused(format!(
                "The classes argument contains duplicate classes. Remove these duplicates before passing them to \
                 {NAME}."
            )));
        }
        Ok(FittedMultiLabelBinarizer { classes: given.clone() })
    }

    /// As [`fit`](MultiLabelBinarizer::fit), and the rows of the samples.
    ///
    /// # Errors
    /// As there.
    #[track_caller]
    pub fn fit_transform<L: AsRef<[i64]>>(&self, y: &[L]) -> Result<(FittedMultiLabelBinarizer, Tensor)> {
        let model = self.fit(y)?;
        let made = model.transform(y);
        Ok((model, made))
    }
}

impl FittedMultiLabelBinarizer {
    /// The rows of the labels of some samples; (n, k), int64. Labels without a column are left out, as
    /// scikit-learn does with a warning.
    #[track_caller]
    pub fn transform<L: AsRef<[i64]>>(&self, y: &[L]) -> Tensor {
        let count = self.classes.len();
        let places: BTreeMap<i64, usize> =
            self.classes.iter().enumerate().map(|(at, &label)| (label, at)).collect();
        let mut rows = vec![0i64; y.len() * count];
        for (at, labels) in y.iter().enumerate() {
            for place in labels.as_ref().iter().filter_map(|label| places.get(label)) {
                rows[at * count + place] = 1;
            }
        }
        Tensor::from_elements(&[y.len(), count], &rows)
    }

    /// The labels of each row (n, k), in the order of the columns.
    ///
    /// # Errors
    /// `ValueError` for another number of columns, and for other numbers than 0 and 1; errors of the run.
    #[track_caller]
    pub fn inverse_transform(&self, rows: &Tensor) -> Result<Vec<Vec<i64>>> {
        let count = self.classes.len();
        let found = match *rows.shape()? {
            [_, columns] if columns == count => rows.astype(DType::F64).fetch::<f64>()?,
            [_, columns] => {
                return Err(refused(format!("Expected indicator for {count} classes, but got {columns}")));
            }
            ref shape => {
                return Err(refused(format!(
                    "Expected a 2-dimensional container but got {shape:?} instead."
                )));
            }
        };
        if let Some(other) = found.iter().find(|&&number| number != 0.0 && number != 1.0) {
            return Err(refused(format!("Expected only 0s and 1s in label indicator. Got {other}")));
        }
        let labels = |row: ndarray::ArrayViewD<'_, f64>| {
            let there = row.iter().zip(&self.classes).filter(|(number, _)| **number == 1.0);
            there.map(|(_, &label)| label).collect()
        };
        Ok(found.outer_iter().map(labels).collect())
    }
}

saved!(FittedMultiLabelBinarizer, NAME, |model| {
    let mut sorted = model.classes.clone();
    sorted.sort_unstable();
    sorted.windows(2).all(|pair| pair[0] != pair[1])
});

impl fmt::Display for FittedMultiLabelBinarizer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{NAME} of {} classes: {:?}", self.classes.len(), self.classes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Save;
    use tharsis_numeric::{array, zeros};

    #[test]
    fn columns_are_those_of_scikit_learn() {
        let y = [vec![7, 3, 7], vec![], vec![5]];
        let (model, made) = MultiLabelBinarizer::new().fit_transform(&y).unwrap();
        assert_eq!(model.classes, [3, 5, 7]);
        assert_eq!(made.to_vec::<i64>().unwrap(), [1, 0, 1, 0, 0, 0, 0, 1, 0]);
        // Columns in the order that is given, and none of other labels.
        let given = MultiLabelBinarizer::new().classes(vec![7, 4, 3]).fit(&y).unwrap();
        let made = given.transform(&y);
        assert_eq!(made.to_vec::<i64>().unwrap(), [1, 0, 1, 0, 0, 0, 0, 0, 0]);
        assert_eq!(given.inverse_transform(&made).unwrap(), [vec![7, 3], vec![], vec![]]);
        let read = FittedMultiLabelBinarizer::from_bytes(&given.to_bytes().unwrap()).unwrap();
        assert_eq!(read.classes, given.classes);
        // No samples, and no labels at all.
        let (none, made) = MultiLabelBinarizer::new().fit_transform::<Vec<i64>>(&[]).unwrap();
        assert_eq!((none.classes.len(), made.shape().unwrap()), (0, &[0, 0][..]));
    }

    #[test]
    fn mistakes_have_the_texts_of_scikit_learn() {
        let twice = MultiLabelBinarizer::new().classes(vec![1, 1]).fit::<Vec<i64>>(&[]).unwrap_err();
        assert!(twice.to_string().starts_with("The classes argument contains duplicate classes."), "{twice}");
        let model = MultiLabelBinarizer::new().fit(&[[1i64, 2]]).unwrap();
        let text = |rows: &Tensor| model.inverse_transform(rows).unwrap_err().to_string();
        let found = text(&zeros(&[1, 3]));
        assert!(found.starts_with("Expected indicator for 2 classes, but got 3"), "{found}");
        let found = text(&array([1i64, 2]).reshape(&[1, 2]));
        assert!(found.starts_with("Expected only 0s and 1s in label indicator. Got 2"), "{found}");
    }
}
