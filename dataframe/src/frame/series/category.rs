//! Texts of few kinds: pandas' `.cat`.
//!
//! A series of categories holds each text once for a batch of rows. The categories of all rows are not known
//! before a run, so methods that need them compute the distinct values at once.

use super::Series;
use super::elementwise::mapped;
use crate::error::{Error, Result};
use crate::frame::Sort;
use crate::value::{Value, is_text};
use arrow::datatypes::DataType;
use datafusion::logical_expr::expr_fn::cast;
use datafusion::logical_expr::lit;

/// The categories of a series ([`Series::cat`]): its distinct texts, from small to large. As in pandas,
/// categories that no row has are none.
#[derive(Clone, Debug)]
pub struct Categories(Series);

impl Series {
    /// The categories of a series with the type `category`; others carry a `TypeError` from here on.
    ///
    /// ```
    /// use tharsis_dataframe::{Series, dtype_named};
    /// let sizes = Series::from_values("size", vec![Some("S"), None, Some("L"), Some("S")]);
    /// let sizes = sizes.astype(dtype_named("category")?);
    /// assert_eq!(sizes.cat().categories()?, ["L", "S"]);
    /// assert_eq!(sizes.cat().codes().values::<i64>()?, [1, -1, 0, 1].map(Some));
    /// # Ok::<(), tharsis_dataframe::Error>(())
    /// ```
    #[track_caller]
    #[must_use]
    pub fn cat(&self) -> Categories {
        match self.dtype() {
            Ok(DataType::Dictionary(_, values)) if is_text(&values) => {
                Categories(self.map_expr(|expr| Ok(cast(expr, DataType::Utf8))))
            }
            Ok(other) => {
                let error = Error::Type(format!(".cat is made for categories, not for {other}"));
                Categories(Series::new(Err(error), self.name.clone()))
            }
            Err(error) => Categories(Series::new(Err(error), self.name.clone())),
        }
    }
}

impl Categories {
    /// The categories, from small to large. It runs the plan.
    ///
    /// # Errors
    /// The error that the series carries, or one of its run.
    pub fn categories(&self) -> Result<Vec<String>> {
        let label = self.0.label();
        let texts = self.0.to_frame().reset_index(true).dropna().drop_duplicates();
        let found =
            texts.sort_values([label.as_str()], Sort::ascending()).collect()?.column::<String>(&label)?;
        Ok(found.into_iter().flatten().collect())
    }

    /// The position of each text among the categories, -1 for a missing one. It computes the categories at
    /// once, which runs the plan.
    #[track_caller]
    #[must_use]
    pub fn codes(&self) -> Series {
        let pairs = self.categories().map(|categories| {
            let pairs = categories.into_iter().enumerate();
            let pairs = pairs.map(|(code, text)| (Value::from(text), Value::from(code as i64)));
            pairs.collect::<Vec<_>>()
        });
        self.0.map_expr(|expr| mapped(&expr, &pairs?, lit(-1_i64)))
    }
}
