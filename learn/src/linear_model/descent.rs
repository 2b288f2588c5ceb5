//! Coordinate descent for least squares with an L1 and an L2 penalty, on the Gram matrix, or on the samples
//! if there are fewer than features: no further pass over the data.
//!
//! The covariance updates are those of Friedman, Hastie and Tibshirani, "Regularization Paths for Generalized
//! Linear Models via Coordinate Descent" (2010); the end is decided by the duality gap, as in scikit-learn.

use ndarray::{Array1, ArrayView1, ArrayView2, Axis};

/// The penalty and the end of a descent. The objective is half the sum of squares of what is left, plus `l1`
/// times the absolute values, plus half of `l2` times the squares of the coefficients.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Penalty {
    pub(crate) l1: f64,
    pub(crate) l2: f64,
    /// Whether coefficients may not be negative.
    pub(crate) positive: bool,
    pub(crate) max_iter: usize,
    /// The bound on the gap, in parts of the squares of the targets.
    pub(crate) tol: f64,
}

/// A minimum that a descent has found.
pub(crate) struct Descended {
    pub(crate) coef: Array1<f64>,
    /// The duality gap at the end.
    pub(crate) gap: f64,
    /// The bound on the gap.
    pub(crate) gap_max: f64,
    /// Rounds over all coordinates.
    pub(crate) rounds: usize,
}

/// The data of a descent, around their means.
pub(crate) enum Products<'a> {
    /// Products of columns.
    Columns {
        /// (d, d).
        gram: ArrayView2<'a, f64>,
        /// With the target; (d,).
        cross: ArrayView1<'a, f64>,
        /// The squares of the target.
        squares: f64,
    },
    /// The samples themselves, where there are fewer than features.
    Samples {
        /// Transposed; (d, n).
        columns: ArrayView2<'a, f64>,
        /// (n,).
        target: ArrayView1<'a, f64>,
    },
}

impl Products<'_> {
    /// Number of features.
    fn count(&self) -> usize {
        match self {
            Products::Columns { cross, .. } => cross.len(),
            Products::Samples { columns, .. } => columns.nrows(),
        }
    }

    /// The sum of the squares of each column.
    fn column_squares(&self) -> Array1<f64> {
        match self {
            Products::Columns { gram, .. } => gram.diag().to_owned(),
            Products::Samples { columns, .. } => columns.map_axis(Axis(1), |column| column.dot(&column)),
        }
    }

    /// The image of coefficients of 0: the Gram matrix or the samples times the coefficients.
    fn no_image(&self) -> Array1<f64> {
        match self {
            Products::Columns { cross, .. } => Array1::zeros(cross.len()),
            Products::Samples { target, .. } => Array1::zeros(target.len()),
        }
    }

    /// Notes the change of one coefficient in the image.
    fn change(&self, image: &mut Array1<f64>, column: usize, by: f64) {
        match self {
            Products::Columns { gram, .. } => image.scaled_add(by, &gram.column(column)),
            Products::Samples { columns, .. } => image.scaled_add(by, &columns.row(column)),
        }
    }

    /// The product of a column with what the coefficients leave of the target.
    fn pull(&self, image: &Array1<f64>, column: usize) -> f64 {
        match self {
            Products::Columns { cross, .. } => cross[column] - image[column],
            Products::Samples { columns, target } => {
                let column = columns.row(column);
                let left = target.iter().zip(image).map(|(target, image)| target - image);
                column.iter().zip(left).map(|(x, left)| x * left).sum()
            }
        }
    }

    /// The squares of the target.
    fn squares(&self) -> f64 {
        match self {
            Products::Columns { squares, .. } => *squares,
            Products::Samples { target, .. } => target.dot(target),
        }
    }

    /// The squares of what the coefficients leave of the target, and their product with it.
    fn left(&self, coef: &Array1<f64>, image: &Array1<f64>) -> (f64, f64) {
        match self {
            Products::Columns { cross, squares, .. } => {
                let along = cross.dot(coef);
                (squares + coef.dot(image) - 2.0 * along, along)
            }
            Products::Samples { target, .. } => {
                let left = target - image;
                (left.dot(&left), target.dot(image))
            }
        }
    }
}

/// Multiplications between two looks at the time that is left.
const STEPS_BETWEEN_LOOKS: u64 = 1 << 20;

/// The coefficients with the least objective. `look` fails if there is no time left.
///
/// # Errors
/// That of `look`.
pub(crate) fn descend<E>(
    products: &Products<'_>,
    penalty: Penalty,
    look: impl FnMut() -> Result<(), E>,
) -> Result<Descended, E> {
    descend_from(Array1::zeros(products.count()), products, penalty, look)
}

/// As [`descend`], from these coefficients on.
///
/// # Errors
/// That of `look`.
pub(crate) fn descend_from<E>(
    mut coef: Array1<f64>,
    products: &Products<'_>,
    penalty: Penalty,
    mut look: impl FnMut() -> Result<(), E>,
) -> Result<Descended, E> {
    let squares = products.column_squares();
    let mut image = products.no_image();
    for (column, &start) in coef.iter().enumerate().filter(|(_, start)| **start != 0.0) {
        products.change(&mut image, column, start);
    }
    let gap_max = penalty.tol * products.squares();
    let steps_of_round = (coef.len() as u64).saturating_mul(image.len().max(1) as u64).max(1);
    let (mut rounds, mut steps) = (0, 0u64);
    loop {
        rounds += 1;
        steps = steps.saturating_add(steps_of_round);
        if STEPS_BETWEEN_LOOKS <= steps {
            look()?;
            steps = 0;
        }
        let (mut largest, mut step_max) = (0.0f64, 0.0f64);
        for (column, &square) in squares.iter().enumerate() {
            if square == 0.0 {
                continue;
            }
            let old = coef[column];
            let pull = products.pull(&image, column) + old * square;
            let new = shrunk(pull, penalty) / (square + penalty.l2);
            if new != old {
                products.change(&mut image, column, new - old);
                coef[column] = new;
            }
            (largest, step_max) = (largest.max(new.abs()), step_max.max((new - old).abs()));
        }
        // Without a step all further rounds are like this one.
        let is_last = rounds == penalty.max_iter || step_max == 0.0;
        if largest == 0.0 || step_max / largest < penalty.tol || is_last {
            let gap = duality_gap(products, penalty, &coef, &image);
            if gap <= gap_max || is_last {
                return Ok(Descended { coef, gap, gap_max, rounds });
            }
        }
    }
}

/// The pull on a coefficient less the L1 penalty.
fn shrunk(pull: f64, penalty: Penalty) -> f64 {
    if penalty.positive && pull < 0.0 {
        return 0.0;
    }
    (pull.abs() - penalty.l1).max(0.0).copysign(pull)
}

/// An upper bound on the distance of the objective from its least value.
fn duality_gap(products: &Products<'_>, penalty: Penalty, coef: &Array1<f64>, image: &Array1<f64>) -> f64 {
    let Penalty { l1, l2, positive, .. } = penalty;
    let dual_norm = coef
        .iter()
        .enumerate()
        .map(|(column, coef)| products.pull(image, column) - l2 * coef)
        .fold(f64::NEG_INFINITY, |norm: f64, slope| norm.max(if positive { slope } else { slope.abs() }));
    let (left, along) = products.left(coef, image);
    let squares = coef.dot(coef);
    let (scale, mut gap) = if l1 < dual_norm {
        let scale = l1 / dual_norm;
        (scale, 0.5 * (left + left * scale * scale))
    } else {
        (1.0, left)
    };
    let norm: f64 = coef.iter().map(|coef| coef.abs()).sum();
    gap += l1 * norm - scale * (products.squares() - along) + 0.5 * l2 * (1.0 + scale * scale) * squares;
    gap
}

#[cfg(test)]
mod tests {
    use super::{Penalty, Products, descend};
    use ndarray::{arr1, arr2};

    const PENALTY: Penalty = Penalty { l1: 0.1, l2: 0.0, positive: false, max_iter: usize::MAX, tol: 0.0 };

    #[test]
    fn a_descent_ends_without_a_tolerance_or_with_its_time() {
        let (gram, cross) = (arr2(&[[2.0, 0.5], [0.5, 1.0]]), arr1(&[1.0, 0.3]));
        let products = Products::Columns { gram: gram.view(), cross: cross.view(), squares: 1.0 };
        let made = descend(&products, PENALTY, || Ok::<_, ()>(())).unwrap();
        assert!(made.rounds < 1_000 && made.gap.abs() < 1e-12, "{} {}", made.rounds, made.gap);
        // Columns that are nearly the same: each round moves 1e-9 from one coefficient to the other.
        let near = 1.0 - 1e-15;
        let (gram, cross) = (arr2(&[[1.0, near], [near, 1.0]]), arr1(&[0.5, 0.5 + 1e-9]));
        let products = Products::Columns { gram: gram.view(), cross: cross.view(), squares: 1.0 };
        assert!(matches!(descend(&products, PENALTY, || Err("no time")), Err("no time")));
    }
}
