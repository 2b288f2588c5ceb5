//! Moments of parts of the samples, and of several parts together: what a validation on folds needs of the
//! samples, by one read of them.

use super::least::solved;
use crate::checks::Training;
use crate::dense::{eigh, tensor};
use crate::model_selection::KFold;
use crate::passes::{Around, Moments, in_fixed_chunks};
use crate::states::{all_finite, lost, vector};
use ndarray::{Array1, Array2, Axis};
use tharsis_numeric::{Result, Tensor};

/// The part of the squares of a target from which on what a line leaves has lost more than six digits, if it
/// is a difference of sums.
const NEARLY_NOTHING: f64 = 1e-6;

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
    /// Squares that lines leave of targets that are nearly linear, of folds; (k,) or none.
    remainders: Vec<Option<Remainder>>,
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
        let remainders = Vec::new();
        Ok(Sums { rows, weight, mean, target_mean, gram, cross, squares: target_squares, remainders })
    }

    /// The moments of so many consecutive folds around their means. Each sample is read once, rarely twice,
    /// and once more if targets are nearly linear.
    ///
    /// # Errors
    /// As [`Moments::of`]; `ValueError` for fewer than two folds, and for more folds than samples.
    #[track_caller]
    pub(crate) fn of_folds(training: &Training, targets: &Tensor, folds: usize) -> Result<Vec<Sums>> {
        let splits = KFold { n_splits: folds, ..KFold::default() }.split(&training.x)?;
        training.check_held(training.columns, training.columns.saturating_mul(folds))?;
        let parts = splits.map(|split| {
            let part = training.part(|tensor| split.test.of(tensor))?;
            let targets = split.test.of(targets);
            Ok((Sums::of(&part, &targets, Around::Mean)?, (part, targets)))
        });
        let (mut parts, data): (Vec<Sums>, Vec<(Training, Tensor)>) =
            parts.collect::<Result<Vec<_>>>()?.into_iter().unzip();
        let whole = Sums::without(&parts, None)?;
        for target in 0..whole.squares.len() {
            let near = whole.least_squares_of(&whole.cross.column(target).insert_axis(Axis(1)).to_owned())?;
            if whole.squares[target] * NEARLY_NOTHING < whole.around_zero(target).at(&whole.gram, &near) {
                continue;
            }
            for (sums, (part, targets)) in parts.iter_mut().zip(&data) {
                let own = Remainder::around(sums, part, (targets, target), near.clone())?;
                sums.remainders.resize(whole.squares.len(), None);
                sums.remainders[target] = Some(own);
            }
        }
        Ok(parts)
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
            self.remainders.clear();
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
        self.remainders.clear();
    }

    /// The coefficients of least squares of the first target; of several the shortest ones among those of
    /// features that are measured by their lengths.
    #[track_caller]
    pub(crate) fn least_squares(&self) -> Result<Array1<f64>> {
        self.least_squares_of(&self.cross)
    }

    /// As [`Sums::least_squares`], of a target with these products with the columns; (d, 1).
    #[track_caller]
    fn least_squares_of(&self, cross: &Array2<f64>) -> Result<Array1<f64>> {
        if let Some(slopes) = solved(&self.gram, cross, 0.0)? {
            return Ok(slopes.column(0).to_owned());
        }
        let units = self.gram.diag().mapv(|square| if 0.0 < square { square.sqrt() } else { 1.0 });
        let gram = Array2::from_shape_fn(self.gram.dim(), |(row, column)| {
            self.gram[[row, column]] / units[row] / units[column]
        });
        let (values, vectors) = eigh(&gram)?;
        let bound = values.last().map_or(0.0, |largest| largest * f64::EPSILON * values.len() as f64);
        let shares = values.mapv(|value| if bound < value { 1.0 / value } else { 0.0 });
        let along = vectors.t().dot(&(&cross.column(0) / &units));
        Ok(vectors.dot(&(along * shares)) / units)
    }

    /// The samples around their means, (n, d), and what a line with these slopes (d,) leaves of a target, (n,
    /// 1), as expressions; `middle` is the value of the line at the means.
    #[track_caller]
    pub(crate) fn apart(
        &self,
        (x, target): (&Tensor, &Tensor),
        slopes: &Array1<f64>,
        middle: f64,
    ) -> (Tensor, Tensor) {
        let x = x - tensor(&self.mean);
        let predicted = x.matmul(&tensor(&slopes.view().insert_axis(Axis(1)).to_owned()));
        let apart = in_fixed_chunks(&(target - predicted - middle), 1);
        (x, apart)
    }

    /// The squares that lines through the means leave of the target, which is the first one. Another pass if
    /// least squares leave nearly nothing.
    ///
    /// # Errors
    /// Errors of the pass.
    #[track_caller]
    pub(crate) fn remainder(&self, training: &Training, target: &Tensor) -> Result<Remainder> {
        let (near, whole) = (self.least_squares()?, self.around_zero(0));
        if whole.at(&self.gram, &near) <= whole.squares * NEARLY_NOTHING {
            return Remainder::around(self, training, (target, 0), near);
        }
        Ok(whole)
    }

    /// The mean of the squares that a line with these slopes (d,), through the means of other samples, leaves
    /// of a target.
    pub(crate) fn left(&self, slopes: &Array1<f64>, through: &Sums, target: usize) -> f64 {
        let spread = match self.remainders.get(target) {
            Some(Some(remainder)) => remainder.at(&self.gram, slopes),
            _ => self.around_zero(target).at(&self.gram, slopes),
        };
        let offset =
            self.target_mean[target] - through.target_mean[target] - (&self.mean - &through.mean).dot(slopes);
        spread / self.weight + offset * offset
    }

    /// The squares that lines leave of a target, as their sums tell.
    fn around_zero(&self, target: usize) -> Remainder {
        let (near, cross) = (Array1::zeros(self.mean.len()), self.cross.column(target).to_owned());
        Remainder { near, cross, squares: self.squares[target] }
    }
}

/// The squares that lines leave of a target, as a polynomial of their slopes around those of least squares.
/// Around zero it is a difference, which has no digits where a line leaves nearly nothing.
#[derive(Clone, Debug)]
pub(crate) struct Remainder {
    /// The slopes around which it is made; (d,).
    near: Array1<f64>,
    /// Products of the columns and what these slopes leave; (d,).
    cross: Array1<f64>,
    /// The squares that they leave.
    squares: f64,
}

impl Remainder {
    /// The squares that a line with these slopes (d,) leaves, of columns with these products (d, d).
    pub(crate) fn at(&self, gram: &Array2<f64>, slopes: &Array1<f64>) -> f64 {
        let step = slopes - &self.near;
        (self.squares - 2.0 * self.cross.dot(&step) + step.dot(&gram.dot(&step))).max(0.0)
    }

    /// The squares that least squares leave, of columns with these sums.
    ///
    /// # Errors
    /// Errors of a run.
    #[track_caller]
    pub(crate) fn least(&self, sums: &Sums) -> Result<f64> {
        let step = sums.least_squares_of(&self.cross.view().insert_axis(Axis(1)).to_owned())?;
        Ok(self.at(&sums.gram, &(&self.near + &step)))
    }

    /// Around these slopes, of a column of the targets. One pass.
    #[track_caller]
    fn around(
        sums: &Sums,
        training: &Training,
        (targets, column): (&Tensor, usize),
        near: Array1<f64>,
    ) -> Result<Remainder> {
        let at = column as i64;
        let target = targets.get(&[(..).into(), (at..at + 1).into()]);
        let (x, apart) = sums.apart((&training.x, &target), &near, sums.target_mean[column]);
        let weighted = match &training.weight {
            None => apart.clone(),
            Some(weight) => &apart * weight.expand_dims(1),
        };
        let wanted = [weighted.t().matmul(&x).ravel(), (&weighted * &apart).sum(..)];
        let states = training.engine.run(&wanted.iter().collect::<Vec<_>>())?;
        if !all_finite(&states) {
            return Err(training.beyond_float64());
        }
        let [cross, squares] = <[_; 2]>::try_from(states).map_err(|_| lost())?;
        Ok(Remainder { near, cross: vector(cross)?, squares: squares.sum() })
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
            remainders: Vec::new(),
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
