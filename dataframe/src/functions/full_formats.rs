//! Formats of times that have minutes, since the library leaves an hour out that has none.

use super::text_function::{Step, text_function};
use crate::error::Error;
use datafusion::common::Result;
use datafusion::logical_expr::{Expr, ScalarUDF};
use std::sync::{Arc, LazyLock};

/// The name of the function.
pub(crate) const FULL_FORMATS: &str = "tharsis_full_formats";

/// A format for texts that begin with `00 `: those are the minutes of a format without them.
pub(crate) fn behind_minutes(format: &str) -> String {
    let minutes = if Parts::of(format).lacks_minutes() { "%M" } else { "00" };
    format!("{minutes} {format}")
}

/// Formats for texts that begin with `00 `; an error for one of which a part would be left out.
pub(crate) fn full_formats(formats: Expr) -> Expr {
    function().call(vec![formats])
}

/// The function, of which a process has one.
pub(super) fn function() -> Arc<ScalarUDF> {
    static FUNCTION: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| {
        let of_format = |format: &str| Parts::checked(format).map(|_| Some(behind_minutes(format)));
        text_function(FULL_FORMATS, Step::Plain(of_format))
    });
    Arc::clone(&FUNCTION)
}

/// The parts of a time that a format has.
#[derive(Default)]
pub(crate) struct Parts {
    hour: bool,
    /// An hour from 1 to 12, and the half of the day that it is of.
    hour_of_half: bool,
    half: bool,
    minute: bool,
    second: bool,
    fraction: bool,
}

impl Parts {
    /// The parts of a format; an error if the library would leave one of them out.
    pub(crate) fn checked(format: &str) -> Result<Parts> {
        let parts = Parts::of(format);
        match parts.fault() {
            Some(fault) => Err(Error::Value(format!("the format {format:?} of a time has {fault}")).into()),
            None => Ok(parts),
        }
    }

    pub(crate) fn of(format: &str) -> Parts {
        let mut parts = Parts::default();
        let mut letters = format.chars();
        while let Some(letter) = letters.next() {
            if letter != '%' {
                continue;
            }
            let is_part = |letter: &char| !matches!(letter, '-' | '_' | '.' | ':' | '#' | '0'..='9');
            match letters.find(is_part) {
                Some('H' | 'k') => parts.hour = true,
                Some('I' | 'l') => parts.hour_of_half = true,
                Some('p' | 'P') => parts.half = true,
                Some('M') => parts.minute = true,
                Some('S') => parts.second = true,
                Some('f') => parts.fraction = true,
                Some('R') => (parts.hour, parts.minute) = (true, true),
                Some('T' | 'X' | 'c' | '+' | 's' | 'r') => {
                    (parts.hour, parts.minute, parts.second) = (true, true, true);
                }
                _ => {}
            }
        }
        parts
    }

    /// The reason for which the library would leave a part out.
    fn fault(&self) -> Option<&'static str> {
        let has_hour = self.hour || self.hour_of_half;
        if self.hour_of_half && !self.half && !self.hour {
            Some("an hour from 1 to 12, %I, without %p")
        } else if (self.half || self.minute || self.second || self.fraction) && !has_hour {
            Some("parts of a time without an hour")
        } else if (self.second || self.fraction) && !self.minute {
            Some("seconds without minutes")
        } else if self.fraction && !self.second {
            Some("parts of a second without seconds")
        } else {
            None
        }
    }

    pub(crate) fn lacks_minutes(&self) -> bool {
        (self.hour || self.hour_of_half) && !self.minute
    }
}
