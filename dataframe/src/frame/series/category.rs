//! Texts of few kinds: pandas' `.cat`.
//!
//! A series of categories holds each text once for a batch of rows. The categories of all rows are not known
//! before a run, so methods that need them compute the distinct values at once.

use super::Series;
use super::mapped::mapped;
use crate::error::{Error, Result};
use crate::frame::Sort;
use crate::value::{Value, is_text};
use arrow::datatypes::DataType;
use datafusion::common::ScalarValue;
use datafusion::logical_expr::expr_fn::{cast, when};
use datafusion::logical_expr::{Expr, lit};

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
    pub fn codes(&self) -> Series {
        let pairs = self.categories().map(|categories| {
            let pairs = categories.into_iter().enumerate();
            let pairs = pairs.map(|(code, text)| (Value::from(text), Value::from(code as i64)));
            pairs.collect::<Vec<_>>()
        });
        self.0.map_expr(|expr| mapped(&expr, &pairs?, (lit(-1_i64), &DataType::Int64)))
    }

    /// The series with other texts for its categories: the second text of each pair for the first.
    ///
    /// ```
    /// use tharsis_dataframe::{Series, dtype_named};
    /// let sizes = Series::from_values("size", vec!["S", "L"]).astype(dtype_named("category")?);
    /// let words = sizes.cat().rename_categories([("S", "small")]);
    /// assert_eq!(words.cat().categories()?, ["L", "small"]);
    /// # Ok::<(), tharsis_dataframe::Error>(())
    /// ```
    #[track_caller]
    pub fn rename_categories<'a>(&self, pairs: impl IntoIterator<Item = (&'a str, &'a str)>) -> Series {
        let pairs: Vec<(Value, Value)> =
            pairs.into_iter().map(|(from, to)| (Value::from(from), Value::from(to))).collect();
        self.categorized(|expr| mapped(&expr, &pairs, (expr.clone(), &DataType::Utf8)))
    }

    /// The series with these texts for its categories, one for each from the smallest on; `ValueError` for
    /// another number of texts. It computes the categories at once, which runs the plan.
    #[track_caller]
    pub fn rename_all_categories<'a>(&self, texts: impl IntoIterator<Item = &'a str>) -> Series {
        let texts: Vec<Value> = texts.into_iter().map(Value::from).collect();
        let pairs = self.categories().and_then(|categories| {
            if categories.len() == texts.len() {
                Ok(categories.into_iter().map(Value::from).zip(texts).collect::<Vec<_>>())
            } else {
                Err(Error::Value(
                    "new categories need to have the same number of items as the old categories".to_owned(),
                ))
            }
        });
        self.categorized(|expr| mapped(&expr, &pairs?, (expr.clone(), &DataType::Utf8)))
    }

    /// The series with missing values for the texts that are none of these.
    #[track_caller]
    pub fn set_categories<'a>(&self, texts: impl IntoIterator<Item = &'a str>) -> Series {
        let texts: Vec<Expr> = texts.into_iter().map(lit).collect();
        self.categorized(|expr| {
            if texts.is_empty() {
                Ok(cast(lit(ScalarValue::Null), DataType::Utf8))
            } else {
                Ok(when(expr.clone().in_list(texts, false), expr).end()?)
            }
        })
    }

    /// The series with missing values for these texts; `ValueError` if one is no category, which is looked at
    /// at once.
    #[track_caller]
    pub fn remove_categories<'a>(&self, texts: impl IntoIterator<Item = &'a str>) -> Series {
        let texts: Vec<&str> = texts.into_iter().collect();
        let known = self.categories().and_then(|categories| {
            let is_strange = |text: &&&str| !categories.iter().any(|known| known == *text);
            match texts.iter().find(is_strange) {
                None => Ok(()),
                Some(text) => Err(Error::Value(format!("removals must all be in old categories: {text:?}"))),
            }
        });
        let list: Vec<Expr> = texts.iter().map(|text| lit(*text)).collect();
        self.categorized(|expr| {
            known?;
            if list.is_empty() { Ok(expr) } else { Ok(when(expr.clone().in_list(list, true), expr).end()?) }
        })
    }

    /// A series of categories of other texts.
    #[track_caller]
    fn categorized(&self, step: impl FnOnce(Expr) -> Result<Expr>) -> Series {
        let dtype = DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8));
        self.0.map_expr(|expr| Ok(cast(cast(step(expr)?, DataType::Utf8), dtype)))
    }
}
