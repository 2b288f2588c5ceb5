//! Coordinates of the solver for samples far from zero.
//!
//! Samples around 1e9 make the loss so much steeper along that place than in all other directions that the
//! solver ends before it has moved along these. Around their middle a score is as steep in each direction as
//! the samples spread, and its products lose no digits. With an intercept the change is exact: the objective
//! with its penalty is the same function in other coordinates, so the minimum is the same.
//!
//! The middle is `m u`, `u` of length 1, and `r` the penalty of intercepts in parts of that of coefficients.
//! For coordinates `w` and `b` the coefficients are `w + (t - w·u) u`, where `t = g w·u + l b`, `g = 1 /
//! √(1 + r m²)` and `l = r m g²`; scores around the middle have the intercept `b`, those around zero `b - m
//! t`. In parts of the penalty of coefficients the penalty is `w·w + r g² b²`.
//!
//! Lines through zero are those of an `r` beyond all bounds: `g = 0` and `l = 1 / m`, so the intercept around
//! zero is `b - m t = 0`, the penalty `w·w + l² b²`, and `w·u` moves nothing.

use ndarray::{Array1, Array2, Axis};

/// A middle that is far from zero, and what belongs to it.
pub(super) struct Far {
    /// (d,).
    pub(super) middle: Array1<f64>,
    unit: Array1<f64>,
    /// `g`.
    shrink: f64,
    /// `l`.
    lean: f64,
}

impl Far {
    /// The coordinates for samples of this middle, which is not zero. None if its square is beyond float64.
    pub(super) fn new(middle: Array1<f64>, ratio: f64) -> Option<Far> {
        let length = middle.dot(&middle).sqrt();
        let stretch = 1.0 + ratio * length * length;
        let is_sound = 0.0 < length && length.is_finite() && stretch.is_finite();
        is_sound.then(|| {
            let (unit, shrink) = (&middle / length, 1.0 / stretch.sqrt());
            Far { unit, shrink, lean: ratio * length / stretch, middle }
        })
    }

    /// As [`Far::new`], for lines through zero.
    pub(super) fn through_zero(middle: Array1<f64>) -> Option<Far> {
        let length = middle.dot(&middle).sqrt();
        let is_sound = 0.0 < length && length.is_finite();
        is_sound.then(|| Far { unit: &middle / length, shrink: 0.0, lean: 1.0 / length, middle })
    }

    /// The penalty of the intercepts `b`, by those of coefficients and of intercepts around zero.
    pub(super) fn penalty(&self, of_coef: f64, of_intercept: f64) -> f64 {
        if self.shrink == 0.0 {
            of_coef * self.lean * self.lean
        } else {
            of_intercept * self.shrink * self.shrink
        }
    }

    /// The coefficients (k, d) at coordinates (k, d) and (k,).
    pub(super) fn coef(&self, w: &Array2<f64>, b: &Array1<f64>) -> Array2<f64> {
        let along = w.dot(&self.unit);
        let more = &along * (self.shrink - 1.0) + b * self.lean;
        w + &self.outer(&more)
    }

    /// The intercepts around zero (k,) of these coefficients and intercepts around the middle.
    pub(super) fn intercept(&self, coef: &Array2<f64>, b: &Array1<f64>) -> Array1<f64> {
        b - &coef.dot(&self.middle)
    }

    /// The coordinates of coefficients (k, d) and intercepts around zero (k,).
    pub(super) fn coordinates(
        &self,
        coef: &Array2<f64>,
        intercept: &Array1<f64>,
    ) -> (Array2<f64>, Array1<f64>) {
        let b = intercept + &coef.dot(&self.middle);
        let t = coef.dot(&self.unit);
        // The coordinate that moves nothing stays at zero.
        let more = if self.shrink == 0.0 { &t * -1.0 } else { (&t - &(&b * self.lean)) / self.shrink - &t };
        (coef + &self.outer(&more), b)
    }

    /// Makes slopes by the coordinates of those by coefficients (k, d) and intercepts around the middle (k,).
    pub(super) fn slopes(&self, by_coef: &mut Array2<f64>, by_b: &mut Array1<f64>) {
        let along = by_coef.dot(&self.unit);
        by_b.scaled_add(self.lean, &along);
        *by_coef += &self.outer(&(along * (self.shrink - 1.0)));
    }

    /// These numbers (k,) along the middle; (k, d).
    fn outer(&self, numbers: &Array1<f64>) -> Array2<f64> {
        numbers.view().insert_axis(Axis(1)).dot(&self.unit.view().insert_axis(Axis(0)))
    }
}

#[cfg(test)]
mod tests {
    use super::Far;
    use ndarray::{Array1, Array2, arr1, arr2};

    fn near(a: f64, b: f64) -> bool {
        (a - b).abs() <= 1e-9 * (1.0 + a.abs())
    }

    #[test]
    fn coordinates_are_those_of_one_line_and_one_penalty() {
        let (w, b) = (arr2(&[[0.5, -2.0], [1.0, 3.0]]), arr1(&[0.25, -4.0]));
        for ratio in [0.0, 0.01, 1.0, 25.0] {
            let far = Far::new(arr1(&[30.0, -40.0]), ratio).unwrap();
            let coef = far.coef(&w, &b);
            let intercept = far.intercept(&coef, &b);
            let (back, back_b) = far.coordinates(&coef, &intercept);
            assert!(w.iter().zip(&back).all(|(a, b)| near(*a, *b)), "{ratio}: {back}");
            assert!(b.iter().zip(&back_b).all(|(a, b)| near(*a, *b)), "{ratio}: {back_b}");
            for score in 0..2 {
                let row = coef.row(score);
                let around_zero = row.dot(&row) + ratio * intercept[score] * intercept[score];
                let own = w.row(score).dot(&w.row(score));
                let penalty = own + far.penalty(1.0, ratio) * b[score] * b[score];
                assert!(near(penalty, around_zero), "{ratio}: {penalty}, not {around_zero}");
            }
        }
    }

    #[test]
    fn coordinates_of_lines_through_zero_have_no_intercept() {
        let far = Far::through_zero(arr1(&[30.0, -40.0])).unwrap();
        let (w, b) = (arr2(&[[0.5, -2.0]]), arr1(&[0.25]));
        let coef = far.coef(&w, &b);
        assert!(near(coef.row(0).dot(&far.middle), b[0]), "{coef}");
        assert!(near(far.intercept(&coef, &b)[0], 0.0), "{coef}");
        let (back, back_b) = far.coordinates(&coef, &arr1(&[0.0]));
        assert!(near(back_b[0], b[0]) && near(back.row(0).dot(&far.unit), 0.0), "{back}");
        let again = far.coef(&back, &back_b);
        assert!(again.iter().zip(&coef).all(|(a, b)| near(*a, *b)), "{again}, not {coef}");
        let penalty = back.row(0).dot(&back.row(0)) + far.penalty(1.0, 7.0) * back_b[0] * back_b[0];
        assert!(near(penalty, coef.row(0).dot(&coef.row(0))), "{penalty}");
    }

    #[test]
    fn slopes_are_those_of_the_function() {
        let far = Far::new(arr1(&[3.0, -4.0]), 0.5).unwrap();
        // A function of the coefficients and of the intercept around the middle.
        let value = |w: &Array2<f64>, b: &Array1<f64>| {
            let coef = far.coef(w, b);
            (coef[[0, 0]] - 1.0).powi(2) + 3.0 * coef[[0, 1]] * b[0] + b[0].powi(3)
        };
        let (w, b) = (arr2(&[[0.5, -2.0]]), arr1(&[0.25]));
        let coef = far.coef(&w, &b);
        let mut by_coef = arr2(&[[2.0 * (coef[[0, 0]] - 1.0), 3.0 * b[0]]]);
        let mut by_b = arr1(&[3.0 * coef[[0, 1]] + 3.0 * b[0] * b[0]]);
        far.slopes(&mut by_coef, &mut by_b);
        let step = 1e-6;
        for column in 0..2 {
            let mut other = w.clone();
            other[[0, column]] += step;
            let found = (value(&other, &b) - value(&w, &b)) / step;
            assert!((found - by_coef[[0, column]]).abs() < 1e-4, "{found}, not {by_coef}");
        }
        let found = (value(&w, &(&b + step)) - value(&w, &b)) / step;
        assert!((found - by_b[0]).abs() < 1e-4, "{found}, not {by_b}");
    }

    #[test]
    fn a_middle_of_zero_or_beyond_float64_has_no_coordinates() {
        assert!(Far::new(arr1(&[0.0, 0.0]), 1.0).is_none());
        assert!(Far::new(arr1(&[1e200, 0.0]), 1.0).is_none());
        assert!(Far::new(arr1(&[f64::NAN]), 0.0).is_none());
        assert!(Far::through_zero(arr1(&[0.0])).is_none() && Far::through_zero(arr1(&[1e200])).is_none());
    }
}
