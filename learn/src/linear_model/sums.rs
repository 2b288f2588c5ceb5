//! Moments of parts of the samples, and of several parts together: what a validation on folds needs of the
//! samples, by one read of them.

use super::least::solved;
use crate::checks::Training;
use crate::dense::eigh;
use crate::model_selection::KFold;
use crate::passes::{Around, Moments};
use crate::states::lost;
use ndarray::{Array1, Array2, Axis};
use tharsis_numeric::{Result, Tensor};

/// First and second moments of samples and targets, as those of [`Moments`].
#[derive(Clone, Debug)]
pub(crate) struct Sums {
    pub(crate) rows: usize,
    /// The sum of the weights.
    pub(crate) weight: f64,
    /// The means of the columns, or zeros; (d,).
    pub(crate) mean: Array1<f64>,
    /// The means of the targets, or zeros; (k,).
    pub(crate) target_mean: Array1<f64>,
    /// Products of columns around their means; (d, d).
    pub(crate) gram: Array2<f64>,
    /// Products of columns and targets; (d, k).
    pub(crate) cross: Array2<f64>,
    /// Squares of the targets; (k,).
    pub(crate) squares: Array1<f64>,
}

impl Sums {
    /// The moments of samples and targets (n, k). One pass, rarely two.
    ///
    /// # Errors
    /// As [`Moments::of`].
    #[track_caller]
    pub(crate) fn of(training: &Training, targets: &Tensor, around: Around) -> Result<Sums> {
        let Moments { weight, mean, gram, target_mean, cross, target_squares, .. } =
            Moments::of(training, Some(targets), around)?;
        let rows = training.rows;
        Ok(Sums { rows, weight, mean, target_mean, gram, cross, squares: target_squares })
    }

    /// The moments of so many consecutive folds around their means. Each sample is read once, rarely twice.
    ///
    /// # Errors
    /// As [`Moments::of`]; `ValueError` for fewer than two folds, and for more folds than samples.
    #[track_caller]
    pub(crate) fn of_folds(training: &Training, targets: &Tensor, folds: usize) -> Result<Vec<Sums>> {
        let splits = KFold { n_splits: folds, ..KFold::default() }.split(&training.x)?;
        training.check_held(training.columns, training.columns.saturating_mul(folds))?;
        splits
            .map(|split| {
                let part = training.part(|tensor| split.test.of(tensor))?;
                Sums::of(&part, &split.test.of(targets), Around::Mean)
            })
            .collect()
    }

    /// The moments of all parts but one, or of all. Parts are added, none is taken off: digits that a large
    /// part has are not missing in the others.
    ///
    /// # Errors
    /// `Internal` if there are no parts.
    #[track_caller]
    pub(crate) fn without(parts: &[Sums], left_out: Option<usize>) -> Result<Sums> {
        let mut kept = parts.iter().enumerate().filter(|(at, _)| Some(*at) != left_out);
        let mut sums = kept.next().ok_or_else(lost)?.1.clone();
        kept.for_each(|(_, part)| sums.add(part));
        Ok(sums)
    }

    /// The moments around this point, of moments around the means.
    pub(crate) fn around(mut self, around: Around) -> Sums {
        if around == Around::Zero {
            let (mean, target_mean, weight) = (&self.mean, &self.target_mean, self.weight);
            self.gram += &outer(mean, mean, weight);
            self.cross += &outer(mean, target_mean, weight);
            self.squares += &(target_mean * target_mean * weight);
            self.mean.fill(0.0);
            self.target_mean.fill(0.0);
        }
        self
    }

    /// Adds the moments of further samples.
    fn add(&mut self, other: &Sums) {
        let weight = self.weight + other.weight;
        let (share, apart) = (other.weight / weight, self.weight * (other.weight / weight));
        let step = &other.mean - &self.mean;
        let target_step = &other.target_mean - &self.target_mean;
        self.gram += &(&other.gram + &outer(&step, &step, apart));
        self.cross += &(&other.cross + &outer(&step, &target_step, apart));
        self.squares += &(&other.squares + &(&target_step * &target_step * apart));
        self.mean.scaled_add(share, &step);
        self.target_mean.scaled_add(share, &target_step);
        self.weight = weight;
        self.rows += other.rows;
    }

    /// The coefficients of least squares of the first target; the shortest ones of several.
    #[track_caller]
    pub(crate) fn least_squares(&self) -> Result<Array1<f64>> {
        if let Some(slopes) = solved(&self.gram, &self.cross, 0.0)? {
            return Ok(slopes.column(0).to_owned());
        }
        let (values, vectors) = eigh(&self.gram)?;
        let bound = values.last().map_or(0.0, |largest| largest * f64::EPSILON * values.len() as f64);
        let shares = values.mapv(|value| if bound < value { 1.0 / value } else { 0.0 });
        Ok(vectors.dot(&(vectors.t().dot(&self.cross.column(0)) * shares)))
    }

    /// The mean of the squares that a line with these slopes (d,), through the means of other samples, leaves
    /// of a target.
    pub(crate) fn left(&self, slopes: &Array1<f64>, through: &Sums, target: usize) -> f64 {
        let spread = self.squares[target] - 2.0 * self.cross.column(target).dot(slopes)
            + slopes.dot(&self.gram.dot(slopes));
        let offset =
            self.target_mean[target] - through.target_mean[target] - (&self.mean - &through.mean).dot(slopes);
        spread.max(0.0) / self.weight + offset * offset
    }
}

/// The products of all pairs of elements, times a number.
fn outer(left: &Array1<f64>, right: &Array1<f64>, times: f64) -> Array2<f64> {
    left.view().insert_axis(Axis(1)).dot(&right.view().insert_axis(Axis(0))) * times
}

#[cfg(test)]
mod tests {
    use super::Sums;
    use crate::passes::Around;
    use ndarray::{Array1, Array2, Axis, Slice};

    fn sums(x: &Array2<f64>, y: &Array1<f64>) -> Sums {
        let (mean, target_mean) = (x.mean_axis(Axis(0)).unwrap(), y.mean().unwrap());
        let (around, left) = (x - &mean, y - target_mean);
        Sums {
            rows: y.len(),
            weight: y.len() as f64,
            gram: around.t().dot(&around),
            cross: around.t().dot(&left).insert_axis(Axis(1)),
            squares: Array1::from_elem(1, left.dot(&left)),
            target_mean: Array1::from_elem(1, target_mean),
            mean,
        }
    }

    #[test]
    fn parts_together_are_the_whole() {
        let x = Array2::from_shape_fn((9, 2), |(row, column)| ((row * 7 + column * 5) % 11) as f64 + 1e6);
        let y = Array1::from_shape_fn(9, |row| ((row * 5) % 7) as f64 - 3.0);
        let parts: Vec<Sums> = [0..2, 2..6, 6..9]
            .map(|rows| {
                let part = Slice::from(rows);
                sums(&x.slice_axis(Axis(0), part).to_owned(), &y.slice_axis(Axis(0), part).to_owned())
            })
            .into();
        let (whole, all) = (sums(&x, &y), Sums::without(&parts, None).unwrap());
        let near = |a: f64, b: f64| (a - b).abs() <= 1e-8 * (1.0 + b.abs());
        assert!(all.gram.iter().zip(&whole.gram).all(|(&a, &b)| near(a, b)), "{} {}", all.gram, whole.gram);
        assert!(all.cross.iter().zip(&whole.cross).all(|(&a, &b)| near(a, b)));
        let zero = all.clone().around(Around::Zero);
        assert!(
            near(zero.gram[[0, 1]], x.column(0).dot(&x.column(1)))
                && near(zero.cross[[1, 0]], x.column(1).dot(&y))
        );
        assert!(near(all.squares[0], whole.squares[0]) && near(all.mean[1], whole.mean[1]));
        // The squares that are left are those of the samples.
        let slopes = Array1::from_vec(vec![0.5, -0.25]);
        let line = (&x - &parts[0].mean).dot(&slopes) + parts[0].target_mean[0];
        let left = (&y - &line).mapv(|left| left * left).mean().unwrap();
        assert!(near(all.left(&slopes, &parts[0], 0), left), "{} {left}", all.left(&slopes, &parts[0], 0));
        assert!(Sums::without(&parts[..1], Some(0)).is_err());
        assert_eq!(Sums::without(&parts, Some(1)).unwrap().weight, 5.0);
    }
}
