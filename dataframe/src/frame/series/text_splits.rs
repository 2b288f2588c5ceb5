//! Texts as lists and columns of their parts between separators.

use super::text::{optional, size};
use super::{Series, Texts};
use crate::error::Error;
use crate::frame::DataFrame;
use datafusion::functions_nested::expr_fn as lists;

impl Texts {
    /// The parts between a text, or between white space, as lists.
    #[track_caller]
    pub fn split(&self, separator: Option<&str>) -> Series {
        self.split_n(separator, 0)
    }

    /// As [`Texts::split`], with at most `n` cuts from the beginning; 0 is without a limit.
    #[track_caller]
    pub fn split_n(&self, separator: Option<&str>, n: usize) -> Series {
        self.cut("tharsis_text_split", separator, n)
    }

    /// As [`Texts::split`], with at most `n` cuts from the end; 0 is without a limit.
    #[track_caller]
    pub fn rsplit(&self, separator: Option<&str>, n: usize) -> Series {
        self.cut("tharsis_text_rsplit", separator, n)
    }

    #[track_caller]
    fn cut(&self, function: &str, separator: Option<&str>, n: usize) -> Series {
        match separator {
            Some("") => Series::new(Err(Error::Value("empty separator".to_owned())), self.0.name.clone()),
            separator => self.function(function, vec![optional(separator), size(n)]),
        }
    }

    /// The parts between a text as columns `0`, `1`, …, with at most `n` cuts; 0 is without a limit. There
    /// are as many columns as the most parts of a text, which is computed at once.
    ///
    /// ```
    /// use tharsis_dataframe::Series;
    /// let days = Series::from_values("day", vec!["2024-05-01", "2024"]);
    /// assert_eq!(days.str().split_all(Some("-"), 0).columns()?, ["0", "1", "2"]);
    /// # Ok::<(), tharsis_dataframe::Error>(())
    /// ```
    #[track_caller]
    pub fn split_all(&self, separator: Option<&str>, n: usize) -> DataFrame {
        self.split_n(separator, n).expand_all()
    }

    /// As [`Texts::split_all`], with cuts from the end.
    #[track_caller]
    pub fn rsplit_all(&self, separator: Option<&str>, n: usize) -> DataFrame {
        self.rsplit(separator, n).expand_all()
    }

    /// The parts between a text as this many columns `0`, `1`, …; the last one has what is left. No run is
    /// needed to count the columns.
    #[track_caller]
    pub fn split_expand(&self, separator: Option<&str>, columns: usize) -> DataFrame {
        match columns {
            0 => DataFrame::new(Err(Error::Value("a split into no columns".to_owned()))),
            1 => self.0.rename("0").to_frame(),
            columns => self.split_n(separator, columns - 1).expand(columns),
        }
    }
}

impl Series {
    /// The elements of lists as columns, as many as the longest list has.
    #[track_caller]
    fn expand_all(&self) -> DataFrame {
        match self.str().len().max() {
            Ok(longest) => self.expand(longest.as_i64().unwrap_or(1).max(1) as usize),
            Err(error) => DataFrame::new(Err(error)),
        }
    }

    /// The first elements of lists as columns.
    #[track_caller]
    pub(super) fn expand(&self, columns: usize) -> DataFrame {
        let made = self.parts().and_then(|(frame, expr)| {
            let column = |at: usize| (at.to_string(), lists::array_element(expr.clone(), size(at + 1)));
            frame.project((0..columns).map(column).collect())
        });
        DataFrame::new(made)
    }
}
