//! Coordinate descent for least squares with an L1 and an L2 penalty, on the Gram matrix: no further pass
//! over the samples.
//!
//! The covariance updates are those of Friedman, Hastie and Tibshirani, "Regularization Paths for Generalized
//! Linear Models via Coordinate Descent" (2010); the end is decided by the duality gap, as in scikit-learn.

use ndarray::{Array1, ArrayView1, ArrayView2};

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

/// Products of the samples around their means.
pub(crate) struct Products<'a> {
    /// (d, d).
    pub(crate) gram: ArrayView2<'a, f64>,
    /// With the target; (d,).
    pub(crate) cross: ArrayView1<'a, f64>,
    /// The squares of the target.
    pub(crate) squares: f64,
}

/// The coefficients with the least objective.
pub(crate) fn descend(products: &Products<'_>, penalty: Penalty) -> Descended {
    let columns = products.cross.len();
    let mut coef: Array1<f64> = Array1::zeros(columns);
    // The Gram matrix times the coefficients.
    let mut image: Array1<f64> = Array1::zeros(columns);
    let gap_max = penalty.tol * products.squares;
    let mut rounds = 0;
    loop {
        rounds += 1;
        let (mut largest, mut step_max) = (0.0f64, 0.0f64);
        for column in 0..columns {
            let square = products.gram[[column, column]];
            if square == 0.0 {
                continue;
            }
            let old = coef[column];
            let pull = products.cross[column] - image[column] + old * square;
            let new = shrunk(pull, penalty) / (square + penalty.l2);
            if new != old {
                image.scaled_add(new - old, &products.gram.column(column));
                coef[column] = new;
            }
            (largest, step_max) = (largest.max(new.abs()), step_max.max((new - old).abs()));
        }
        let is_last = rounds == penalty.max_iter;
        if largest == 0.0 || step_max / largest < penalty.tol || is_last {
            let gap = duality_gap(products, penalty, &coef, &image);
            if gap <= gap_max || is_last {
                return Descended { coef, gap, gap_max, rounds };
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
    let slopes = &products.cross - image - coef.mapv(|coef| l2 * coef);
    let dual_norm = slopes
        .iter()
        .fold(f64::NEG_INFINITY, |norm: f64, &slope| norm.max(if positive { slope } else { slope.abs() }));
    let along = products.cross.dot(coef);
    let left = products.squares + coef.dot(image) - 2.0 * along;
    let squares = coef.dot(coef);
    let (scale, mut gap) = if l1 < dual_norm {
        let scale = l1 / dual_norm;
        (scale, 0.5 * (left + left * scale * scale))
    } else {
        (1.0, left)
    };
    let norm: f64 = coef.iter().map(|coef| coef.abs()).sum();
    gap += l1 * norm - scale * (products.squares - along) + 0.5 * l2 * (1.0 + scale * scale) * squares;
    gap
}
