//! Columns whose labels hold values, as rows; truth values as one column.

use super::{DataFrame, named};
use crate::error::{Error, Result};
use crate::frame::series::Series;
use crate::value::Value;
use datafusion::common::ScalarValue;
use datafusion::logical_expr::expr_fn::when;
use datafusion::logical_expr::{Expr, lit};

impl DataFrame {
    /// Columns such as `height2020` and `height2021`, whose labels begin with one of the stubs, as rows: for
    /// each ending a row of each row, with a column for each stub. The index are the columns `ids` and the
    /// ending, a number if all endings are. pandas' `wide_to_long`.
    ///
    /// ```
    /// use tharsis_dataframe::DataFrame;
    /// let wide = DataFrame::from_columns([
    ///     ("id", vec![1, 2].into()),
    ///     ("h2020", vec![10, 20].into()),
    ///     ("h2021", vec![11, 21].into()),
    /// ]);
    /// let long = wide.wide_to_long(["h"], ["id"], "year", "");
    /// assert_eq!(long.col("h").values::<i64>()?, [10, 20, 11, 21].map(Some));
    /// # Ok::<(), tharsis_dataframe::Error>(())
    /// ```
    #[track_caller]
    pub fn wide_to_long<'a>(
        &self,
        stubs: impl IntoIterator<Item = &'a str>,
        ids: impl IntoIterator<Item = &'a str>,
        ending: &str,
        separator: &str,
    ) -> DataFrame {
        let (stubs, ids): (Vec<&str>, Vec<&str>) = (stubs.into_iter().collect(), ids.into_iter().collect());
        let made = self.frame().and_then(|frame| {
            ids.iter().try_for_each(|label| frame.check(label))?;
            let cut = |label: &str| {
                stubs.iter().find_map(|stub| {
                    let rest = label.strip_prefix(stub)?.strip_prefix(separator)?;
                    let is_number = !rest.is_empty() && rest.chars().all(|c| c.is_ascii_digit());
                    is_number.then(|| ((*stub).to_owned(), rest.to_owned()))
                })
            };
            let mut endings: Vec<String> = Vec::new();
            let mut others: Vec<String> = Vec::new();
            for label in &frame.columns {
                match cut(label) {
                    Some((_, rest)) if !endings.contains(&rest) => endings.push(rest),
                    Some(_) => {}
                    None if !ids.contains(&label.as_str()) => others.push(label.clone()),
                    None => {}
                }
            }
            let parts = endings.iter().map(|rest| {
                let number =
                    rest.parse::<i64>().map_err(|_| Error::Value(format!("{rest:?} is too large")))?;
                let kept = ids.iter().map(|label| (*label).to_owned()).chain(others.iter().cloned());
                let mut columns: Vec<(String, Expr)> =
                    kept.map(|label| (label.clone(), named(&label))).collect();
                columns.push((ending.to_owned(), lit(number)));
                for stub in &stubs {
                    let label = format!("{stub}{separator}{rest}");
                    let value = match frame.check(&label) {
                        Ok(()) => named(&label),
                        Err(_) => lit(ScalarValue::Null),
                    };
                    columns.push(((*stub).to_owned(), value));
                }
                Ok(DataFrame::new(frame.project(columns)))
            });
            parts.collect::<Result<Vec<DataFrame>>>()
        });
        match made {
            Ok(parts) => {
                let keys = ids.iter().copied().chain([ending]);
                DataFrame::concat(&parts, true).set_index(keys)
            }
            Err(error) => self.then(|_| Err(error)),
        }
    }

    /// Columns of truth values as one column of labels: in each row the label, without the prefix, of the
    /// column that is true. A row without one, or with several, is a `ValueError`, which is looked for at
    /// once.
    #[track_caller]
    pub fn from_dummies(&self, separator: Option<&str>) -> DataFrame {
        self.then(|frame| {
            let mut groups: Vec<(String, Vec<(String, String)>)> = Vec::new();
            for label in &frame.columns {
                let (prefix, value) = match separator {
                    None => (String::new(), label.clone()),
                    Some(separator) => match label.split_once(separator) {
                        Some((prefix, value)) => (prefix.to_owned(), value.to_owned()),
                        None => {
                            let text = format!("Separator not specified for column: {label}");
                            return Err(Error::Value(text));
                        }
                    },
                };
                match groups.iter_mut().find(|(known, _)| *known == prefix) {
                    Some((_, values)) => values.push((label.clone(), value)),
                    None => groups.push((prefix, vec![(label.clone(), value)])),
                }
            }
            let mut columns = Vec::new();
            for (prefix, values) in groups {
                let set = values.iter().map(|(label, _)| {
                    crate::frame::series::Operator::Ne.expr(frame.plan.schema(), named(label), lit(0_i64))
                });
                let set = set.collect::<Result<Vec<Expr>>>()?;
                self.check_one_of_each(&values)?;
                let mut cases: Option<datafusion::logical_expr::conditional_expressions::CaseBuilder> = None;
                for (is, (_, value)) in set.into_iter().zip(&values) {
                    cases = Some(match cases {
                        None => when(is, lit(value.as_str())),
                        Some(mut cases) => cases.when(is, lit(value.as_str())),
                    });
                }
                if let Some(cases) = cases {
                    columns.push((prefix, cases.end()?));
                }
            }
            frame.project(columns)
        })
    }

    /// Refuses rows in which not exactly one of these columns is true.
    fn check_one_of_each(&self, values: &[(String, String)]) -> Result<()> {
        let truth = |label: &str| self.col(label).ne(0).astype(arrow::datatypes::DataType::Int64);
        let mut count: Option<Series> = None;
        for (label, _) in values {
            let one = truth(label);
            count = Some(match count {
                None => one,
                Some(count) => count + one,
            });
        }
        let Some(count) = count else { return Ok(()) };
        let (least, most): (Value, Value) = (count.min()?, count.max()?);
        match (least.as_i64(), most.as_i64()) {
            (Some(1), Some(1)) | (None, _) => Ok(()),
            (Some(0), _) => Err(Error::Value("Dummy DataFrame contains unassigned value(s)".to_owned())),
            _ => Err(Error::Value("Dummy DataFrame contains multi-assignment(s)".to_owned())),
        }
    }
}
