//! Losses of boosting: their values and slopes by the score of a sample. Scores are log odds of classes, and
//! logarithms of means where targets are positive.

/// A loss of samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Loss {
    /// Half of the squared error.
    Squared,
    /// Half of the Poisson deviance, up to a constant.
    Poisson,
    /// Half of the gamma deviance, up to a constant.
    Gamma,
    /// The log loss of two classes, by the score of the second one.
    Logistic,
    /// The log loss of several classes, by a score for each.
    Softmax,
}

/// All losses, by their numbers in names.
pub(crate) const LOSSES: [Loss; 5] =
    [Loss::Squared, Loss::Poisson, Loss::Gamma, Loss::Logistic, Loss::Softmax];

/// Below this score the logistic function is its own slope, to the last bit.
const LOGISTIC_TAIL: f64 = -37.0;

impl Loss {
    /// The loss of a sample.
    pub(crate) fn value(self, y: f64, scores: &[f64]) -> f64 {
        let score = scores[0];
        match self {
            Loss::Squared => 0.5 * (y - score) * (y - score),
            Loss::Poisson => score.exp() - y * score,
            Loss::Gamma => score + y * (-score).exp(),
            Loss::Logistic => score.max(0.0) + (-score.abs()).exp().ln_1p() - y * score,
            Loss::Softmax => {
                let largest = largest(scores);
                let sum: f64 = scores.iter().map(|score| (score - largest).exp()).sum();
                largest + sum.ln() - scores[(y as usize).min(scores.len() - 1)]
            }
        }
    }

    /// The slopes of samples by each of so many scores.
    pub(crate) fn all_slopes(self, targets: &[f64], scores: &[f64], width: usize) -> Vec<[f64; 2]> {
        let mut slopes = vec![[0.0; 2]; scores.len()];
        let rows = scores.chunks_exact(width).zip(slopes.chunks_exact_mut(width));
        for ((scores, slopes), &y) in rows.zip(targets) {
            self.slopes(y, scores, slopes);
        }
        slopes
    }

    /// The first and second derivative by each score.
    #[inline]
    pub(crate) fn slopes(self, y: f64, scores: &[f64], slopes: &mut [[f64; 2]]) {
        let score = scores[0];
        slopes[0] = match self {
            Loss::Squared => [score - y, 1.0],
            Loss::Poisson => [score.exp() - y, score.exp()],
            Loss::Gamma => {
                let share = y * (-score).exp();
                [1.0 - share, share]
            }
            Loss::Logistic if LOGISTIC_TAIL < score => {
                let rest = (-score).exp();
                let all = 1.0 + rest;
                [((1.0 - y) - y * rest) / all, rest / (all * all)]
            }
            Loss::Logistic => [score.exp() - y, score.exp()],
            Loss::Softmax => return softmax_slopes(y, scores, slopes),
        };
    }
}

fn softmax_slopes(y: f64, scores: &[f64], slopes: &mut [[f64; 2]]) {
    let largest = largest(scores);
    let mut sum = 0.0;
    for (slope, score) in slopes.iter_mut().zip(scores) {
        slope[0] = (score - largest).exp();
        sum += slope[0];
    }
    for (class, slope) in slopes.iter_mut().enumerate() {
        let chance = slope[0] / sum;
        let is_own = f64::from(u8::from(class == y as usize));
        *slope = [chance - is_own, chance * (1.0 - chance)];
    }
}

fn largest(scores: &[f64]) -> f64 {
    scores.iter().copied().fold(f64::NEG_INFINITY, f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Slopes are the differences of values.
    #[test]
    fn slopes_are_those_of_the_values() {
        let step = 1e-5;
        let cases: [(Loss, f64, &[f64]); 7] = [
            (Loss::Squared, 2.0, &[0.5]),
            (Loss::Poisson, 3.0, &[0.7]),
            (Loss::Gamma, 2.5, &[-0.3]),
            (Loss::Logistic, 1.0, &[0.4]),
            (Loss::Logistic, 0.0, &[-3.0]),
            (Loss::Softmax, 2.0, &[0.1, -1.0, 0.6]),
            (Loss::Softmax, 0.0, &[2.0, 1.0, 0.0]),
        ];
        for (loss, y, scores) in cases {
            let mut slopes = vec![[0.0; 2]; scores.len()];
            loss.slopes(y, scores, &mut slopes);
            for (at, slope) in slopes.iter().enumerate() {
                let moved = |by: f64| {
                    let mut scores = scores.to_vec();
                    scores[at] += by;
                    loss.value(y, &scores)
                };
                let (back, here, ahead) = (moved(-step), moved(0.0), moved(step));
                assert!((slope[0] - (ahead - back) / (2.0 * step)).abs() < 1e-7, "{loss:?}");
                assert!((slope[1] - (ahead - 2.0 * here + back) / (step * step)).abs() < 1e-4, "{loss:?}");
            }
        }
    }

    #[test]
    fn far_scores_overflow_nowhere() {
        for score in [-1e4, -800.0, -37.5, 800.0, 1e4] {
            for y in [0.0, 1.0] {
                let mut slopes = [[0.0; 2]];
                Loss::Logistic.slopes(y, &[score], &mut slopes);
                assert!(slopes[0].iter().all(|slope| slope.is_finite()), "{score} {y} {slopes:?}");
                assert!(Loss::Logistic.value(y, &[score]).is_finite());
                let mut slopes = [[0.0; 2]; 2];
                Loss::Softmax.slopes(y, &[0.0, score], &mut slopes);
                assert!(slopes.iter().flatten().all(|slope| slope.is_finite()), "{score} {y} {slopes:?}");
            }
        }
    }
}
