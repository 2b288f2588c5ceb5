//! A truth value for each value of a column. As in `pivot`, the distinct values are computed at once.

use super::pivot::label_text;
use super::{DataFrame, named};
use crate::value::{Value, is_text};
use datafusion::functions::expr_fn::coalesce;
use datafusion::logical_expr::{Expr, lit};

/// Options of [`DataFrame::get_dummies_with`].
#[must_use]
#[derive(Clone, Debug)]
pub struct Dummies {
    dummy_na: bool,
    drop_first: bool,
    prefix: Option<String>,
    prefix_sep: String,
}

impl Default for Dummies {
    fn default() -> Dummies {
        Dummies { dummy_na: false, drop_first: false, prefix: None, prefix_sep: "_".to_owned() }
    }
}

impl Dummies {
    /// Whether there is a column for missing values, with the name `nan`, or `NaT` beside times.
    pub fn dummy_na(self, dummy_na: bool) -> Dummies {
        Dummies { dummy_na, ..self }
    }

    /// Whether the first value has no column: its rows have no truth in the others.
    pub fn drop_first(self, drop_first: bool) -> Dummies {
        Dummies { drop_first, ..self }
    }

    /// The text before a value in the labels of all columns; that of the value's column by default.
    pub fn prefix(self, prefix: &str) -> Dummies {
        Dummies { prefix: Some(prefix.to_owned()), ..self }
    }

    /// The text between both; `_` by default.
    pub fn prefix_sep(self, separator: &str) -> Dummies {
        Dummies { prefix_sep: separator.to_owned(), ..self }
    }
}

impl DataFrame {
    /// The frame with a truth value for each value of some columns, in place of these columns: `city_Oslo`
    /// for `city`. Without labels, all columns of texts are meant.
    ///
    /// The distinct values are computed at once, which runs the plan.
    ///
    /// ```
    /// use tharsis_dataframe::DataFrame;
    /// let frame = DataFrame::from_columns([("t", vec!["b", "a"].into()), ("n", vec![1, 2].into())]);
    /// assert_eq!(frame.get_dummies([]).columns()?, ["n", "t_a", "t_b"]);
    /// # Ok::<(), tharsis_dataframe::Error>(())
    /// ```
    #[track_caller]
    pub fn get_dummies<'a>(&self, labels: impl IntoIterator<Item = &'a str>) -> DataFrame {
        self.get_dummies_with(labels, &Dummies::default())
    }

    /// As [`DataFrame::get_dummies`], with options.
    ///
    /// ```
    /// use tharsis_dataframe::{DataFrame, Dummies};
    /// let frame = DataFrame::from_columns([("t", vec![Some("b"), None, Some("a")].into())]);
    /// let dummies = frame.get_dummies_with([], &Dummies::default().dummy_na(true).drop_first(true));
    /// assert_eq!(dummies.columns()?, ["t_b", "t_nan"]);
    /// # Ok::<(), tharsis_dataframe::Error>(())
    /// ```
    #[track_caller]
    pub fn get_dummies_with<'a>(
        &self,
        labels: impl IntoIterator<Item = &'a str>,
        options: &Dummies,
    ) -> DataFrame {
        let mut labels: Vec<String> = labels.into_iter().map(str::to_owned).collect();
        self.then(|frame| {
            labels.iter().try_for_each(|label| frame.check(label))?;
            if labels.is_empty() {
                let of_texts = |label: &&String| frame.dtype(label).is_ok_and(|dtype| is_text(&dtype));
                labels = frame.columns.iter().filter(of_texts).cloned().collect();
            }
            let others = frame.columns.iter().filter(|label| !labels.contains(label));
            let mut columns: Vec<(String, Expr)> =
                others.map(|label| (label.clone(), named(label))).collect();
            for label in &labels {
                let mut values = Vec::new();
                for value in self.distinct(label)? {
                    let is = coalesce(vec![named(label).eq(lit(value.0.clone())), lit(false)]);
                    // Beside the one for missing values, which is a float, pandas has floats for integers.
                    let float = value.as_f64().filter(|_| options.dummy_na && value.dtype().is_integer());
                    values.push((label_text(&float.map_or(value, Value::from))?, is));
                }
                if options.dummy_na {
                    let name = if frame.dtype(label)?.is_temporal() { "NaT" } else { "nan" };
                    values.push((name.to_owned(), named(label).is_null()));
                }
                let prefix = options.prefix.as_ref().unwrap_or(label);
                let values = values.into_iter().skip(usize::from(options.drop_first));
                columns
                    .extend(values.map(|(value, is)| (format!("{prefix}{}{value}", options.prefix_sep), is)));
            }
            frame.project(columns)
        })
    }
}
