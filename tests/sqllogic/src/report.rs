//! Outcomes of records, and their counts.

use std::collections::BTreeMap;
use std::fmt;

/// Outcome of one record of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It gave what the file says.
    Passed,
    /// It was refused, as the file says, but in other words.
    RefusedInOtherWords,
    /// It was not run.
    Skipped(&'static str),
    /// It gave something else.
    Failed {
        /// The kind of fault.
        reason: &'static str,
        /// Line, statement and difference.
        detail: String,
    },
}

/// Counts of the records of a file, or of several.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Records that gave what the file says.
    pub passed: usize,
    /// Of these, refusals in other words than the file's.
    pub in_other_words: usize,
    /// Records that were not run, by reason.
    pub skipped: BTreeMap<&'static str, usize>,
    /// Records that gave something else, by reason.
    pub failed: BTreeMap<&'static str, usize>,
    /// Records that gave something else, and failed in DataFusion alone, too.
    pub failed_there_too: usize,
    /// A text for each record that failed.
    pub details: Vec<String>,
}

impl Report {
    /// Counts the records of a file, beside the outcomes that DataFusion alone had, if it was run.
    #[must_use]
    pub fn of(outcomes: Vec<Option<Outcome>>, beside: Option<&[Option<Outcome>]>) -> Report {
        let mut report = Report::default();
        for (record, outcome) in outcomes.into_iter().enumerate() {
            let there = beside.and_then(|beside| beside.get(record)?.as_ref());
            match outcome {
                Some(Outcome::Failed { .. }) if matches!(there, Some(Outcome::Failed { .. })) => {
                    report.failed_there_too += 1;
                }
                Some(outcome) => report.add(outcome),
                None => {}
            }
        }
        report
    }

    /// Counts a record.
    pub fn add(&mut self, outcome: Outcome) {
        match outcome {
            Outcome::Passed => self.passed += 1,
            Outcome::RefusedInOtherWords => {
                self.passed += 1;
                self.in_other_words += 1;
            }
            Outcome::Skipped(reason) => *self.skipped.entry(reason).or_default() += 1,
            Outcome::Failed { reason, detail } => {
                *self.failed.entry(reason).or_default() += 1;
                self.details.push(format!("{reason}: {detail}"));
            }
        }
    }

    /// Adds the counts of another report, without its texts.
    pub fn merge(&mut self, other: &Report) {
        self.passed += other.passed;
        self.in_other_words += other.in_other_words;
        self.failed_there_too += other.failed_there_too;
        other.skipped.iter().for_each(|(reason, count)| *self.skipped.entry(reason).or_default() += count);
        other.failed.iter().for_each(|(reason, count)| *self.failed.entry(reason).or_default() += count);
    }

    /// Number of records that failed.
    #[must_use]
    pub fn failures(&self) -> usize {
        self.failed.values().sum()
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let total = |counts: &BTreeMap<&str, usize>| counts.values().sum::<usize>();
        write!(f, "{} passed", self.passed)?;
        if 0 < self.in_other_words {
            write!(f, " ({} refused in other words)", self.in_other_words)?;
        }
        write!(f, ", {} failed, ", total(&self.failed))?;
        if 0 < self.failed_there_too {
            write!(f, "{} failed as in DataFusion alone, ", self.failed_there_too)?;
        }
        write!(f, "{} skipped", total(&self.skipped))?;
        let reasons = self.failed.iter().chain(&self.skipped);
        reasons.clone().next().map_or(Ok(()), |_| write!(f, ":"))?;
        for (number, (reason, count)) in reasons.enumerate() {
            write!(f, "{} {count} {reason}", if number == 0 { "" } else { "," })?;
        }
        Ok(())
    }
}
