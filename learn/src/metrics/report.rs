//! The table of scikit-learn's `classification_report`.

use super::averaged::{Counts, check_zero_division};
use super::classification::check_distinct;
use super::contingency::{Contingency, Labels};
use super::inputs::value_error;
use super::options::{Average, defaults};
use super::score::Score;
use crate::Result;
use std::fmt;
use tharsis_numeric::Tensor;

/// Options of [`classification_report`].
#[derive(Clone, Debug)]
pub struct Report {
    /// The classes of the report, in this order; those of the samples, ascending, if none are given.
    pub labels: Option<Vec<i64>>,
    /// Names of the classes, in the order of the labels.
    pub target_names: Option<Vec<String>>,
    /// A weight for each sample; (n,).
    pub sample_weight: Option<Tensor>,
    /// Digits behind the point in the text.
    pub digits: usize,
    /// As in [`Averaged`](super::Averaged).
    pub zero_division: f64,
}

impl Default for Report {
    fn default() -> Report {
        Report { labels: None, target_names: None, sample_weight: None, digits: 2, zero_division: 0.0 }
    }
}

defaults!(Report);

/// A line of a [`ClassificationReport`].
#[derive(Clone, Debug, PartialEq)]
pub struct ReportLine {
    /// Name of a class or an average.
    pub name: String,
    /// True positives among predicted ones.
    pub precision: f64,
    /// True positives among those of the class.
    pub recall: f64,
    /// Harmonic mean of both.
    pub f1_score: f64,
    /// The true samples of the class, or their weight.
    pub support: f64,
}

/// Precision, recall, F1 and support of classes, and their averages. Its text is scikit-learn's.
#[derive(Clone, Debug, PartialEq)]
pub struct ClassificationReport {
    /// A line for each class.
    pub classes: Vec<ReportLine>,
    /// The accuracy, where the report has all classes of the samples; else the micro average is a line of
    /// `averages`.
    pub accuracy: Option<f64>,
    /// The averages over classes.
    pub averages: Vec<ReportLine>,
    digits: usize,
    is_weighted: bool,
}

/// scikit-learn's `classification_report`: precision, recall, F1 score and support of each class.
///
/// ```
/// use tharsis_learn::metrics::classification_report;
/// use tharsis_numeric::array;
/// let report = classification_report(&array([0i64, 0, 1]), &array([0i64, 1, 1]), ..)?;
/// assert_eq!(report.accuracy, Some(2.0 / 3.0));
/// assert!(report.to_string().starts_with("              precision    recall  f1-score   support\n\n"));
/// # Ok::<(), tharsis_learn::Error>(())
/// ```
///
/// # Errors
/// As [`precision_score`](super::precision_score); `ValueError` if there are not as many names as classes.
///
/// # Distributed
/// As [`confusion_matrix`](super::confusion_matrix).
#[track_caller]
pub fn classification_report(
    y_true: &Tensor,
    y_pred: &Tensor,
    options: impl Into<Report>,
) -> Result<ClassificationReport> {
    let Report { labels, target_names, sample_weight, digits, zero_division } = options.into();
    check_zero_division(zero_division)?;
    let pair = Labels::new(y_true, y_pred)?;
    let table = Contingency::of(&pair, sample_weight.as_ref())?;
    let present = table.labels();
    let are_booleans = pair.are_booleans && labels.is_none();
    let labels = labels.unwrap_or_else(|| present.clone());
    check_distinct(&labels)?;
    let names = match target_names {
        Some(names) => names,
        None if are_booleans => {
            labels.iter().map(|&label| if label == 0 { "False" } else { "True" }.to_owned()).collect()
        }
        None => labels.iter().map(i64::to_string).collect(),
    };
    if names.len() != labels.len() {
        let text = format!(
            "Number of classes, {}, does not match size of target_names, {}. Try specifying the labels parameter",
            labels.len(),
            names.len()
        );
        return Err(value_error(text));
    }
    let is_whole = present.iter().all(|label| labels.contains(label));
    let mut counts =
        Counts { of_labels: table.of_labels(&labels), labels, average: Average::Each, zero_division };
    let classes = lines(&counts, names);
    let support = classes.iter().map(|line| line.support).sum();
    let mut averaged = |average, name: &str| {
        counts.average = average;
        let line = lines(&counts, vec![name.to_owned()]);
        line.into_iter().map(|line| ReportLine { support, ..line })
    };
    let micro: Vec<ReportLine> = averaged(Average::Micro, "micro avg").collect();
    let mut averages: Vec<ReportLine> = averaged(Average::Macro, "macro avg").collect();
    averages.extend(averaged(Average::Weighted, "weighted avg"));
    let mut accuracy = None;
    if is_whole {
        accuracy = micro.first().map(|line| line.f1_score);
    } else {
        averages.splice(0..0, micro);
    }
    Ok(ClassificationReport { classes, accuracy, averages, digits, is_weighted: sample_weight.is_some() })
}

/// A line for each name; 0 as support of averages.
fn lines(counts: &Counts, names: Vec<String>) -> Vec<ReportLine> {
    let found = counts.all(1.0);
    let support = found.support.unwrap_or_default();
    let columns = [&found.precision, &found.recall, &found.fscore].map(Score::values);
    let line = |(at, name)| ReportLine {
        name,
        precision: columns[0][at],
        recall: columns[1][at],
        f1_score: columns[2][at],
        support: support.get(at).copied().unwrap_or(0.0),
    };
    names.into_iter().enumerate().map(line).collect()
}

impl fmt::Display for ClassificationReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.classes.iter().map(|line| line.name.chars().count());
        let width = names.max().unwrap_or(0).max("weighted avg".len()).max(self.digits);
        let digits = self.digits;
        let support = |support: f64| {
            if self.is_weighted { format!("{support:?}") } else { format!("{support}") }
        };
        let row = |f: &mut fmt::Formatter<'_>, line: &ReportLine| {
            let ReportLine { name, precision, recall, f1_score, support: weight } = line;
            let [precision, recall, f1_score] =
                [precision, recall, f1_score].map(|value| decimal(*value, digits));
            let name = padded(name, width);
            writeln!(f, "{name}  {precision:>9} {recall:>9} {f1_score:>9} {:>9}", support(*weight))
        };
        let blank = padded("", width);
        writeln!(f, "{blank}  {:>9} {:>9} {:>9} {:>9}\n", "precision", "recall", "f1-score", "support")?;
        for line in &self.classes {
            row(f, line)?;
        }
        writeln!(f)?;
        if let (Some(accuracy), Some(line)) = (self.accuracy, self.averages.first()) {
            let (accuracy, weight) = (decimal(accuracy, digits), support(line.support));
            let name = padded("accuracy", width);
            writeln!(f, "{name}  {:>9} {:>9} {accuracy:>9} {weight:>9}", "", "")?;
        }
        self.averages.iter().try_for_each(|line| row(f, line))
    }
}

/// Digits behind the point that a number of float64 may have. The formatter takes no more than 65 535.
const DIGITS_MAX: usize = 1074;

/// A number with this many digits; Python's spelling of NaN.
fn decimal(value: f64, digits: usize) -> String {
    if value.is_nan() {
        return "nan".to_owned();
    }
    let exact = digits.min(DIGITS_MAX);
    format!("{value:.exact$}{}", "0".repeat(digits - exact))
}

/// A name behind spaces. The formatter takes no width of more than 65 535.
fn padded(name: &str, width: usize) -> String {
    format!("{}{name}", " ".repeat(width.saturating_sub(name.chars().count())))
}

#[cfg(test)]
mod tests {
    use super::{decimal, padded};

    #[test]
    fn any_number_of_digits_is_written() {
        assert_eq!(decimal(0.25, 1), "0.2");
        assert_eq!(decimal(0.25, 4), "0.2500");
        let long = decimal(0.25, 70_000);
        assert!(long.len() == 70_002 && long.starts_with("0.250") && long.ends_with("000"));
        assert_eq!(padded("ab", 70_000).len(), 70_000);
        assert_eq!(padded("ab", 1), "ab");
    }
}
