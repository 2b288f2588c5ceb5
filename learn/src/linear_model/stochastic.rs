//! Linear models by steps for one sample after the other, in this process: the steps of scikit-learn, in its
//! order if rows are not shuffled. Samples that fit the memory are read once; of others each round reads them
//! block by block.

use crate::checks::{Nan, Training, refused};
use crate::params::words;
use crate::states::{all_finite, lost, matrix};
use ndarray::{Array1, Array2, ArrayView1};
use serde::{Deserialize, Serialize};
use std::ops::Range;
use tharsis_numeric::random::default_rng;
use tharsis_numeric::{Index, Result, Tensor};

/// Arrays of the size of a block that exist at the same time while it is read.
const HELD_AT_ONCE: u64 = 4;
/// Bytes that a block may take in any case.
const BLOCK_LEAST_BYTES: u64 = 64 << 20;
/// Multiplications between two looks at the time that is left.
const MULTIPLIED_BETWEEN_LOOKS: u64 = 1 << 20;
/// Bounds of a slope.
const SLOPE_MAX: f64 = 1e12;
/// The step below which a rate that adapts shrinks no more, and its part that is left.
const RATE_LEAST: f64 = 1e-6;
const RATE_LEFT: f64 = 5.0;

/// The cost of a wrong prediction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum StochasticLoss {
    /// The part that is missing to a score of 1 on the right side: a support vector machine.
    Hinge,
    /// The logarithm of the probability of the other class: logistic regression.
    LogLoss,
    /// The square of what is missing to 1, and a line for scores far on the wrong side.
    ModifiedHuber,
    /// The square of what is missing to 1.
    SquaredHinge,
    /// The distance from zero of a score on the wrong side.
    Perceptron,
    /// Half the square of the distance.
    SquaredError,
    /// Half the square of the distance up to `epsilon`, and a line beyond it.
    Huber,
    /// The distance beyond `epsilon`.
    EpsilonInsensitive,
    /// The square of the distance beyond `epsilon`.
    SquaredEpsilonInsensitive,
}

words!(
    StochasticLoss,
    [
        "hinge" => StochasticLoss::Hinge,
        "log_loss" => StochasticLoss::LogLoss,
        "modified_huber" => StochasticLoss::ModifiedHuber,
        "squared_hinge" => StochasticLoss::SquaredHinge,
        "perceptron" => StochasticLoss::Perceptron,
        "squared_error" => StochasticLoss::SquaredError,
        "huber" => StochasticLoss::Huber,
        "epsilon_insensitive" => StochasticLoss::EpsilonInsensitive,
        "squared_epsilon_insensitive" => StochasticLoss::SquaredEpsilonInsensitive,
    ]
);

/// The penalty on coefficients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StochasticPenalty {
    /// Half of their squares.
    L2,
    /// Their absolute values.
    L1,
    /// A mix of both.
    ElasticNet,
}

words!(
    StochasticPenalty,
    [
        "l2" => StochasticPenalty::L2,
        "l1" => StochasticPenalty::L1,
        "elasticnet" => StochasticPenalty::ElasticNet,
    ]
);

/// The length of steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LearningRate {
    /// `eta0`.
    Constant,
    /// One by `alpha` and the number of steps.
    Optimal,
    /// `eta0` by a power of the number of steps.
    InvScaling,
    /// `eta0`, which shrinks when the loss no longer falls.
    Adaptive,
    /// As long as the sample needs to be right, at most `eta0`.
    Pa1,
    /// As `Pa1`, shortened by `eta0` instead of cut.
    Pa2,
}

words!(
    LearningRate,
    [
        "constant" => LearningRate::Constant,
        "optimal" => LearningRate::Optimal,
        "invscaling" => LearningRate::InvScaling,
        "adaptive" => LearningRate::Adaptive,
        "pa1" => LearningRate::Pa1,
        "pa2" => LearningRate::Pa2,
    ]
);

impl StochasticLoss {
    /// Whether targets are classes of -1 and 1.
    fn is_of_classes(self) -> bool {
        use StochasticLoss::{Hinge, LogLoss, ModifiedHuber, Perceptron, SquaredHinge};
        matches!(self, Hinge | LogLoss | ModifiedHuber | SquaredHinge | Perceptron)
    }

    /// The loss of a prediction, and its slope by the prediction.
    fn at(self, target: f64, predicted: f64, epsilon: f64) -> (f64, f64) {
        let side = target * predicted;
        let apart = predicted - target;
        let beyond = (apart.abs() - epsilon).max(0.0);
        match self {
            StochasticLoss::Hinge => ((1.0 - side).max(0.0), if side <= 1.0 { -target } else { 0.0 }),
            StochasticLoss::Perceptron => ((-side).max(0.0), if side <= 0.0 { -target } else { 0.0 }),
            StochasticLoss::LogLoss => {
                let small = (-side.abs()).exp();
                let chance = if 0.0 <= side { small / (1.0 + small) } else { 1.0 / (1.0 + small) };
                ((-side).max(0.0) + small.ln_1p(), -target * chance)
            }
            StochasticLoss::SquaredHinge => {
                let missing = (1.0 - side).max(0.0);
                (missing * missing, -2.0 * target * missing)
            }
            StochasticLoss::ModifiedHuber if side < -1.0 => (-4.0 * side, -4.0 * target),
            StochasticLoss::ModifiedHuber => {
                let missing = (1.0 - side).max(0.0);
                (missing * missing, -2.0 * target * missing)
            }
            StochasticLoss::SquaredError => (0.5 * apart * apart, apart),
            StochasticLoss::Huber if apart.abs() <= epsilon => (0.5 * apart * apart, apart),
            StochasticLoss::Huber => {
                (epsilon * apart.abs() - 0.5 * epsilon * epsilon, epsilon.copysign(apart))
            }
            StochasticLoss::EpsilonInsensitive => {
                (beyond, if 0.0 < beyond { 1f64.copysign(apart) } else { 0.0 })
            }
            StochasticLoss::SquaredEpsilonInsensitive => (beyond * beyond, 2.0 * beyond.copysign(apart)),
        }
    }
}

/// A problem: all but the data.
#[derive(Clone, Debug)]
pub(super) struct Steps {
    pub(super) loss: StochasticLoss,
    pub(super) penalty: Option<StochasticPenalty>,
    pub(super) alpha: f64,
    pub(super) l1_ratio: f64,
    pub(super) fit_intercept: bool,
    pub(super) max_iter: usize,
    pub(super) tol: Option<f64>,
    pub(super) epsilon: f64,
    pub(super) rate: LearningRate,
    pub(super) eta0: f64,
    pub(super) power_t: f64,
    pub(super) n_iter_no_change: usize,
    pub(super) shuffle: bool,
    pub(super) random_state: u64,
}

/// A solution.
pub(super) struct Walked {
    /// (k, d).
    pub(super) coef: Array2<f64>,
    /// (k,).
    pub(super) intercept: Array1<f64>,
    /// The most rounds of a score.
    pub(super) rounds: usize,
    pub(super) converged: bool,
}

/// One score under way.
struct Score {
    coef: Array1<f64>,
    intercept: f64,
    /// The part of each coefficient that the L1 penalty has taken, and the part that it could have.
    taken: Array1<f64>,
    allowed: f64,
    /// The squares and the absolute values of the coefficients as the last step toward a sample has left
    /// them, shrunk with these since. What the L1 penalty takes is not in them: scikit-learn ends by these
    /// sums.
    squares: f64,
    sizes: f64,
    /// The number of the next step, and the length of the last one.
    step: f64,
    rate: f64,
    loss: f64,
    best: f64,
    /// Rounds without a better loss.
    stalled: usize,
    rounds: usize,
    is_done: bool,
}

/// Samples with their targets and weights.
struct Block {
    x: Array2<f64>,
    targets: Array2<f64>,
    weight: Option<Array1<f64>>,
}

impl Steps {
    /// The part of the L1 penalty.
    fn l1(&self) -> f64 {
        match self.penalty {
            None | Some(StochasticPenalty::L2) => 0.0,
            Some(StochasticPenalty::L1) => 1.0,
            Some(StochasticPenalty::ElasticNet) => self.l1_ratio,
        }
    }

    /// Whether the penalty is a part of what tells the end. Steps as long as samples need have none there.
    fn counts_penalty(&self) -> bool {
        self.penalty.is_some() && !matches!(self.rate, LearningRate::Pa1 | LearningRate::Pa2)
    }

    /// The number of steps that the best rate counts as done before the first one.
    fn before_first(&self) -> f64 {
        let typical = (1.0 / self.alpha.sqrt()).sqrt();
        let (_, slope) = self.loss.at(1.0, -typical, self.epsilon);
        1.0 / (typical / slope.max(1.0) * self.alpha)
    }

    /// Steps for each score, whose targets are a column each, (n, k).
    ///
    /// # Errors
    /// `ValueError` for NaN, infinity, negative weights, and coefficients beyond float64; errors of the
    /// passes.
    #[track_caller]
    pub(super) fn walked(&self, training: &Training, targets: &Tensor) -> Result<Walked> {
        let count = targets.shape()?[1];
        let mut scores: Vec<Score> = (0..count).map(|_| Score::new(training.columns, self.eta0)).collect();
        let blocks = blocks(training, count);
        let mut held: Option<Block> = None;
        let mut multiplied = 0u64;
        for round in 1..=self.max_iter {
            for at in self.order(training, blocks.len(), round, usize::MAX)? {
                let block = match (&held, &blocks[..]) {
                    (Some(block), _) => block,
                    (None, [rows]) => held.insert(Block::read(training, targets, rows)?),
                    (None, _) => &Block::read(training, targets, &blocks[at])?,
                };
                let order = self.order(training, block.x.nrows(), round, at)?;
                for (column, score) in scores.iter_mut().enumerate().filter(|(_, score)| !score.is_done) {
                    score.walk(self, block, column, &order);
                }
                multiplied += block.x.len() as u64 * count as u64;
                if MULTIPLIED_BETWEEN_LOOKS <= multiplied {
                    training.engine.check_time()?;
                    multiplied = 0;
                }
            }
            for score in &mut scores {
                score.end(self, round, training.rows as f64)?;
            }
            if scores.iter().all(|score| score.is_done) {
                break;
            }
        }
        let coef = Array2::from_shape_fn((count, training.columns), |(row, column)| scores[row].coef[column]);
        Ok(Walked {
            coef,
            intercept: scores.iter().map(|score| score.intercept).collect(),
            rounds: scores.iter().map(|score| score.rounds).max().unwrap_or(0),
            converged: self.tol.is_none() || scores.iter().all(|score| score.is_done),
        })
    }

    /// The order of so many rows, or of blocks, in a round.
    #[track_caller]
    fn order(&self, training: &Training, count: usize, round: usize, of: usize) -> Result<Vec<usize>> {
        if !self.shuffle || count < 2 {
            return Ok((0..count).collect());
        }
        let seed = self.random_state.wrapping_add((round as u64) << 32).wrapping_add((of as u64) << 48);
        let order = training.engine.integers(&default_rng(seed).permutation(count), count as u64)?;
        Ok(order.unwrap_or_default().into_iter().map(|row| row as usize).collect())
    }
}

/// Rows that are read at once.
fn blocks(training: &Training, scores: usize) -> Vec<Range<usize>> {
    let bytes = (training.columns + scores + 1) as u64 * size_of::<f64>() as u64 * HELD_AT_ONCE;
    let rows = training.engine.memory_bytes().max(BLOCK_LEAST_BYTES) / bytes;
    let rows = usize::try_from(rows).unwrap_or(usize::MAX).max(1);
    (0..training.rows)
        .step_by(rows)
        .map(|start| start..training.rows.min(start.saturating_add(rows)))
        .collect()
}

impl Block {
    #[track_caller]
    fn read(training: &Training, targets: &Tensor, rows: &Range<usize>) -> Result<Block> {
        let part = |tensor: &Tensor| tensor.get(&[Index::from(rows.start as i64..rows.end as i64)]);
        let mut columns = vec![part(&training.x), part(targets)];
        columns.extend(training.weight.as_ref().map(|weight| part(weight).expand_dims(1)));
        let states = training.engine.run(&columns.iter().collect::<Vec<_>>())?;
        if !all_finite(&states) {
            return Err(training.not_finite(Nan::Refused));
        }
        let mut states = states.into_iter();
        let x = matrix(states.next().ok_or_else(lost)?)?;
        let targets = matrix(states.next().ok_or_else(lost)?)?;
        let weight = match states.next() {
            Some(weight) => Some(matrix(weight)?.column(0).to_owned()),
            None => None,
        };
        Ok(Block { x, targets, weight })
    }
}

impl Score {
    fn new(columns: usize, rate: f64) -> Score {
        Score {
            coef: Array1::zeros(columns),
            intercept: 0.0,
            taken: Array1::zeros(columns),
            allowed: 0.0,
            squares: 0.0,
            sizes: 0.0,
            step: 1.0,
            rate,
            loss: 0.0,
            best: f64::INFINITY,
            stalled: 0,
            rounds: 0,
            is_done: false,
        }
    }

    /// Steps for the samples of a block in this order.
    fn walk(&mut self, steps: &Steps, block: &Block, column: usize, order: &[usize]) {
        let before_first = steps.before_first();
        for &row in order {
            let weight = block.weight.as_ref().map_or(1.0, |weight| weight[row]);
            match steps.rate {
                LearningRate::Optimal => self.rate = 1.0 / (steps.alpha * (before_first + self.step - 1.0)),
                LearningRate::InvScaling => self.rate = steps.eta0 / self.step.powf(steps.power_t),
                _ => {}
            }
            self.take(steps, block.x.row(row), block.targets[[row, column]], weight);
        }
    }

    /// The step of a sample.
    fn take(&mut self, steps: &Steps, x: ArrayView1<'_, f64>, target: f64, weight: f64) {
        let predicted = x.dot(&self.coef) + self.intercept;
        let (loss, slope) = steps.loss.at(target, predicted, steps.epsilon);
        self.loss += loss;
        let l1 = steps.l1();
        if steps.counts_penalty() {
            self.loss += steps.alpha * ((1.0 - l1) * 0.5 * self.squares + l1 * self.sizes);
        }
        // The sign of a step toward the target.
        let toward = if steps.loss.is_of_classes() { target } else { 1f64.copysign(target - predicted) };
        let step = match steps.rate {
            LearningRate::Pa1 => match x.dot(&x) {
                0.0 => return,
                square => toward * steps.eta0.min(loss / square),
            },
            LearningRate::Pa2 => toward * loss / (x.dot(&x) + 0.5 / steps.eta0),
            _ => -self.rate * slope.clamp(-SLOPE_MAX, SLOPE_MAX),
        };
        let step = step * weight;
        if steps.penalty.is_some_and(|penalty| penalty != StochasticPenalty::L1) {
            let left = (1.0 - (1.0 - l1) * self.rate * steps.alpha).max(0.0);
            self.coef *= left;
            (self.squares, self.sizes) = (self.squares * left * left, self.sizes * left);
        }
        if step != 0.0 {
            self.coef.scaled_add(step, &x);
            if steps.counts_penalty() {
                self.squares = self.coef.dot(&self.coef);
                self.sizes = self.coef.iter().map(|coef| coef.abs()).sum();
            }
            if steps.fit_intercept {
                self.intercept += step;
            }
        }
        if 0.0 < l1 {
            self.shrink(l1 * self.rate * steps.alpha);
        }
        self.step += 1.0;
    }

    /// Takes what the L1 penalty allows of each coefficient, to zero at most.
    fn shrink(&mut self, more: f64) {
        self.allowed += more;
        for (coef, taken) in self.coef.iter_mut().zip(&mut self.taken) {
            let old = *coef;
            if 0.0 < old {
                *coef = (old - (self.allowed + *taken)).max(0.0);
            } else if old < 0.0 {
                *coef = (old + (self.allowed - *taken)).min(0.0);
            }
            *taken += *coef - old;
        }
    }

    /// The end of a round.
    #[track_caller]
    fn end(&mut self, steps: &Steps, round: usize, rows: f64) -> Result<()> {
        if self.is_done {
            return Ok(());
        }
        self.rounds = round;
        if !self.intercept.is_finite() || self.coef.iter().any(|coef| !coef.is_finite()) {
            return Err(refused(format!(
                "Floating-point under-/overflow occurred at epoch #{round}. Scaling input data with \
                 StandardScaler or MinMaxScaler might help."
            )));
        }
        let is_better = steps.tol.is_none_or(|tol| self.loss <= self.best - tol * rows);
        self.stalled = if is_better { 0 } else { self.stalled + 1 };
        self.best = self.best.min(self.loss);
        self.loss = 0.0;
        if steps.n_iter_no_change <= self.stalled {
            if steps.rate == LearningRate::Adaptive && RATE_LEAST < self.rate {
                self.rate /= RATE_LEFT;
                self.stalled = 0;
            } else {
                self.is_done = true;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::StochasticLoss;
    use crate::params::Parameter;

    #[test]
    fn slopes_are_those_of_the_losses() {
        for word in [
            "hinge",
            "log_loss",
            "modified_huber",
            "squared_hinge",
            "perceptron",
            "squared_error",
            "huber",
            "epsilon_insensitive",
            "squared_epsilon_insensitive",
        ] {
            let loss = StochasticLoss::of(&word.into()).unwrap();
            for target in [-1.0, 1.0] {
                for at in -30..30 {
                    let (predicted, step) = (f64::from(at) * 0.1 + 0.013, 1e-6);
                    let [below, above] = [-step, step].map(|by| loss.at(target, predicted + by, 0.3).0);
                    let (_, slope) = loss.at(target, predicted, 0.3);
                    let found = (above - below) / (2.0 * step);
                    assert!(
                        (found - slope).abs() < 1e-4,
                        "{word} {target} {predicted}: {slope}, not {found}"
                    );
                }
            }
        }
        // Far scores have no infinite loss.
        assert_eq!(StochasticLoss::LogLoss.at(1.0, -1e6, 0.0), (1e6, -1.0));
        assert_eq!(StochasticLoss::LogLoss.at(1.0, 1e6, 0.0), (0.0, 0.0));
    }
}
