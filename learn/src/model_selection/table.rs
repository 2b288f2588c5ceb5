//! Scores of candidates on splits, as a table.

use super::candidates::Candidate;
use crate::Result;
use ndarray::{Array1, Array2, Axis};
use serde::{Deserialize, Serialize};

/// scikit-learn's `cv_results_`: a table with a row for each candidate.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct CvResults {
    /// The parameters of each candidate.
    pub params: Vec<Candidate>,
    /// The score of each candidate on each test set; (candidates, splits).
    pub split_test_score: Array2<f64>,
    /// Means over the splits.
    pub mean_test_score: Array1<f64>,
    /// Standard deviations over the splits.
    pub std_test_score: Array1<f64>,
    /// Ranks by the mean, 1 for the best; equal means have the same, and those that are NaN the last one.
    pub rank_test_score: Vec<usize>,
    /// The scores of the training sets, if the options ask for them; (candidates, splits).
    pub split_train_score: Array2<f64>,
    /// The further scores of the options, in their order.
    pub further: Vec<ScoreTable>,
    /// Seconds of fits; (candidates, splits).
    pub fit_time: Array2<f64>,
    /// Seconds of scores; (candidates, splits).
    pub score_time: Array2<f64>,
}

impl CvResults {
    /// A column of numbers by its name in scikit-learn, such as `mean_test_score`, `split0_test_score` or, of
    /// a further score, `rank_test_f1_macro`; none for another name, and for the parameters, which are texts
    /// and words.
    ///
    /// ```
    /// use tharsis_learn::linear_model::Ridge;
    /// use tharsis_learn::model_selection::{GridSearchCV, ParamGrid};
    /// use tharsis_numeric::arange;
    /// let x = arange(20).reshape(&[20, 1]);
    /// let grid = ParamGrid::new().values("alpha", [0.5, 1.0]);
    /// let search = GridSearchCV::new(Ridge::new(), grid).fit(&x, &x.squeeze(None), ..)?;
    /// let ranks = search.cv_results.column("rank_test_score").map(|ranks| ranks.to_vec());
    /// assert_eq!(ranks, Some(vec![1.0, 2.0]));
    /// # Ok::<(), tharsis_learn::Error>(())
    /// ```
    pub fn column(&self, name: &str) -> Option<Array1<f64>> {
        match name {
            "mean_fit_time" => return Some(means(&self.fit_time)),
            "std_fit_time" => return Some(deviations(&self.fit_time)),
            "mean_score_time" => return Some(means(&self.score_time)),
            "std_score_time" => return Some(deviations(&self.score_time)),
            _ => {}
        }
        let own = ScoreTable {
            name: "score".to_owned(),
            split_test_score: self.split_test_score.clone(),
            mean_test_score: self.mean_test_score.clone(),
            std_test_score: self.std_test_score.clone(),
            rank_test_score: self.rank_test_score.clone(),
            split_train_score: self.split_train_score.clone(),
        };
        std::iter::once(&own).chain(&self.further).find_map(|table| table.column(name))
    }
}

impl CvResults {
    /// Whether all columns have a row for each candidate.
    pub(super) fn is_sound(&self, splits: usize) -> bool {
        let shape = (self.params.len(), splits);
        let is_whole = |table: &Array2<f64>| table.dim() == shape;
        is_whole(&self.split_test_score)
            && is_whole(&self.fit_time)
            && is_whole(&self.score_time)
            && self.mean_test_score.len() == shape.0
            && self.std_test_score.len() == shape.0
            && self.rank_test_score.len() == shape.0
            && self.split_train_score.nrows() == shape.0
            && self.further.iter().all(|table| table.is_sound(shape))
    }
}

/// A further score of a search: the columns of scikit-learn's `cv_results_` whose names end with its own.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ScoreTable {
    /// The name of the score.
    pub name: String,
    /// The score of each candidate on each test set; (candidates, splits).
    pub split_test_score: Array2<f64>,
    /// Means over the splits.
    pub mean_test_score: Array1<f64>,
    /// Standard deviations over the splits.
    pub std_test_score: Array1<f64>,
    /// Ranks by the mean, as those of [`CvResults`].
    pub rank_test_score: Vec<usize>,
    /// The scores of the training sets, if the options ask for them; (candidates, splits).
    pub split_train_score: Array2<f64>,
}

/// Scores of candidates, one behind the other.
#[derive(Default)]
pub(super) struct Numbers {
    test: Vec<f64>,
    train: Vec<f64>,
}

impl Numbers {
    /// Adds those of a candidate, split by split.
    pub(super) fn add(&mut self, test: Vec<f64>, train: Vec<f64>) {
        self.test.extend(test);
        self.train.extend(train);
    }

    /// The table of so many candidates and splits.
    #[track_caller]
    pub(super) fn table(self, name: &str, shape: (usize, usize)) -> Result<ScoreTable> {
        let split_test_score = array(self.test, shape)?;
        let mean_test_score = means(&split_test_score);
        Ok(ScoreTable {
            name: name.to_owned(),
            std_test_score: deviations(&split_test_score),
            rank_test_score: ranks(&mean_test_score),
            mean_test_score,
            split_test_score,
            split_train_score: array(self.train, shape)?,
        })
    }
}

impl ScoreTable {
    /// A column by its name in scikit-learn, such as `mean_test_accuracy`.
    pub(super) fn column(&self, name: &str) -> Option<Array1<f64>> {
        let (start, is_test) = match name.strip_suffix(self.name.as_str())? {
            start if start.ends_with("_test_") => (start.strip_suffix("_test_")?, true),
            start => (start.strip_suffix("_train_")?, false),
        };
        let scores = if is_test { &self.split_test_score } else { &self.split_train_score };
        match start {
            _ if scores.ncols() == 0 => None,
            "mean" => Some(means(scores)),
            "std" => Some(deviations(scores)),
            "rank" if is_test => Some(self.rank_test_score.iter().map(|&rank| rank as f64).collect()),
            _ => {
                let at: usize = start.strip_prefix("split")?.parse().ok()?;
                (at < scores.ncols()).then(|| scores.column(at).to_owned())
            }
        }
    }

    /// Whether all columns are of so many candidates and splits.
    pub(super) fn is_sound(&self, (candidates, splits): (usize, usize)) -> bool {
        self.split_test_score.dim() == (candidates, splits)
            && self.mean_test_score.len() == candidates
            && self.std_test_score.len() == candidates
            && self.rank_test_score.len() == candidates
            && self.split_train_score.nrows() == candidates
    }
}

/// Numbers as a table of so many candidates and splits; without splits if there are none.
#[track_caller]
pub(super) fn array(numbers: Vec<f64>, (rows, columns): (usize, usize)) -> Result<Array2<f64>> {
    let columns = if numbers.is_empty() { 0 } else { columns };
    Array2::from_shape_vec((rows, columns), numbers).map_err(|_| crate::states::lost())
}

/// Means of rows.
fn means(scores: &Array2<f64>) -> Array1<f64> {
    scores.sum_axis(Axis(1)) / scores.ncols() as f64
}

/// Standard deviations of rows.
fn deviations(scores: &Array2<f64>) -> Array1<f64> {
    let rest = scores - &means(scores).insert_axis(Axis(1));
    means(&rest.mapv(|rest| rest * rest)).mapv(f64::sqrt)
}

/// The place of each score, 1 for the largest; equal ones have the same.
fn ranks(scores: &Array1<f64>) -> Vec<usize> {
    let is_before = |other: f64, own: f64| if own.is_nan() { !other.is_nan() } else { own < other };
    scores.iter().map(|&own| 1 + scores.iter().filter(|&&other| is_before(other, own)).count()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_scores_have_the_same_rank_and_nan_the_last() {
        let scores = Array1::from(vec![0.5, f64::NAN, 0.9, 0.5, f64::NAN, 0.1]);
        assert_eq!(ranks(&scores), [2, 5, 1, 2, 5, 4]);
    }
}
