//! Texts cut at separators and at matches, and characters put in place of others: the rest of `.str`.

use super::text::{check_pattern, groups, size, text, whole};
use super::{Series, Texts};
use crate::error::{Error, Result};
use crate::frame::{DataFrame, Frame, Index, Level, OrderKey, Sort, named};
use crate::functions::rows::{BEGIN, BETWEEN, END, call};
use arrow::datatypes::DataType;
use datafusion::common::UnnestOptions;
use datafusion::functions::regex::regexp_replace;
use datafusion::functions_nested::expr_fn as lists;
use datafusion::logical_expr::expr_fn::{cast, when};
use datafusion::logical_expr::{Expr, lit};

impl Texts {
    /// The text without differences of case, for comparisons.
    #[track_caller]
    pub fn casefold(&self) -> Series {
        self.function("tharsis_text_casefold", Vec::new())
    }

    /// Whether all characters are of ASCII.
    #[track_caller]
    pub fn isascii(&self) -> Series {
        self.function("tharsis_text_isascii", Vec::new())
    }

    /// Position of the first occurrence of a text; a text without it ends the run with a `ValueError`.
    #[track_caller]
    pub fn index(&self, part: &str) -> Series {
        self.function("tharsis_text_index", vec![text(part)])
    }

    /// Position of the last occurrence of a text; a text without it ends the run with a `ValueError`.
    #[track_caller]
    pub fn rindex(&self, part: &str) -> Series {
        self.function("tharsis_text_rindex", vec![text(part)])
    }

    /// The part before the first separator, the separator, and the part behind it, as columns `0`, `1`, `2`.
    ///
    /// ```
    /// use tharsis_dataframe::Series;
    /// let parts = Series::from_values("t", vec!["a=b=c", "d"]).str().partition("=");
    /// assert_eq!(parts.col("2").values::<String>()?, ["b=c", ""].map(|text| Some(text.to_owned())));
    /// # Ok::<(), tharsis_dataframe::Error>(())
    /// ```
    #[track_caller]
    pub fn partition(&self, separator: &str) -> DataFrame {
        self.parted(separator, 0)
    }

    /// As [`Texts::partition`], at the last separator.
    #[track_caller]
    pub fn rpartition(&self, separator: &str) -> DataFrame {
        self.parted(separator, 1)
    }

    #[track_caller]
    fn parted(&self, separator: &str, from_end: i64) -> DataFrame {
        if separator.is_empty() {
            DataFrame::new(Err(Error::Value("empty separator".to_owned())))
        } else {
            let constants = vec![text(separator), whole(Some(from_end))];
            self.function("tharsis_text_partition", constants).expand(3)
        }
    }

    /// Another text in place of the characters from one position to before another.
    #[track_caller]
    pub fn slice_replace(
        &self,
        from: impl Into<Option<i64>>,
        to: impl Into<Option<i64>>,
        with: &str,
    ) -> Series {
        let constants = vec![whole(from.into()), whole(to.into()), text(with)];
        self.function("tharsis_text_slice_replace", constants)
    }

    /// A text in place of each of these characters.
    #[track_caller]
    pub fn translate<'a>(&self, pairs: impl IntoIterator<Item = (char, &'a str)>) -> Series {
        let pairs = pairs.into_iter().flat_map(|(from, to)| [text(&from.to_string()), text(to)]);
        self.function("tharsis_text_translate", pairs.collect())
    }

    /// Lines of at most so many characters, cut between words where possible.
    #[track_caller]
    pub fn wrap(&self, width: usize) -> Series {
        self.function("tharsis_text_wrap", vec![size(width)])
    }

    /// The text in a normal form of Unicode: `NFC`, `NFD`, `NFKC` or `NFKD`.
    ///
    /// ```
    /// use tharsis_dataframe::Series;
    /// let texts = Series::from_values("s", vec!["e\u{301}", "\u{fb01}"]).str().normalize("NFKC");
    /// assert_eq!(texts.values::<String>()?, ["\u{e9}", "fi"].map(|text| Some(text.to_owned())));
    /// # Ok::<(), tharsis_dataframe::Error>(())
    /// ```
    #[track_caller]
    pub fn normalize(&self, form: &str) -> Series {
        if ["NFC", "NFD", "NFKC", "NFKD"].contains(&form) {
            self.function("tharsis_text_normalize", vec![text(form)])
        } else {
            self.map(|_| Err(Error::Value(format!("invalid normalization form {form:?}"))))
        }
    }

    /// Filled to a width with a character: at the beginning with `left`, at the end with `right`, or with
    /// `both`.
    #[track_caller]
    pub fn pad(&self, width: usize, side: &str, fill: char) -> Series {
        match side {
            "left" => self.rjust(width, fill),
            "right" => self.ljust(width, fill),
            "both" => self.center(width, fill),
            other => {
                self.map(|_| Err(Error::Value(format!("no side {other:?}; there are left, right, both"))))
            }
        }
    }

    /// The bytes of each text in UTF-8.
    #[track_caller]
    pub fn encode(&self) -> Series {
        self.map(|expr| Ok(cast(expr, DataType::Binary)))
    }

    /// Texts with signs around their matches, and between the groups of each.
    fn marked(&self, pattern: &str, found: &str) -> Result<Expr> {
        check_pattern(pattern)?;
        if self.is_list()? {
            return Err(Error::Type("this is made for texts, not for lists".to_owned()));
        }
        let (_, expr) = self.0.parts()?;
        let to = format!("{BEGIN}{found}{END}");
        Ok(regexp_replace().call(vec![expr.clone(), text(&format!("(?:{pattern})")), text(&to), text("g")]))
    }

    /// All matches of a regular expression as a list, or what its only group matched.
    ///
    /// ```
    /// use tharsis_dataframe::Series;
    /// let digits = Series::from_values("t", vec!["a1b22", "c"]).str().findall(r"\d+");
    /// assert_eq!(digits.str().len().values::<i64>()?, [Some(2), Some(0)]);
    /// # Ok::<(), tharsis_dataframe::Error>(())
    /// ```
    #[track_caller]
    pub fn findall(&self, pattern: &str) -> Series {
        self.0.map_expr(|_| {
            let wanted = match groups(pattern).len() {
                0 => "${0}",
                1 => "${1}",
                _ => return Err(Error::NotImplemented("lists of several groups; see extractall".to_owned())),
            };
            call("tharsis_text_matches", vec![self.marked(pattern, wanted)?])
        })
    }

    /// The groups of all matches of a regular expression as columns, a row for each match, whose number
    /// within its text is the last level of the index, `match`.
    #[track_caller]
    pub fn extractall(&self, pattern: &str) -> DataFrame {
        let made = self.0.parts().and_then(|(frame, _)| {
            let found = groups(pattern);
            if found.is_empty() {
                return Err(Error::Value("pattern contains no capture groups".to_owned()));
            }
            let wanted: Vec<String> = (1..=found.len()).map(|at| format!("${{{at}}}")).collect();
            let marked = self.marked(pattern, &wanted.join(&BETWEEN.to_string()))?;
            let all = call("tharsis_text_matches", vec![marked])?;
            let frame = frame.with_index()?.with_order()?;
            let numbers =
                lists::range(lit(0_i64), cast(lists::array_length(all.clone()), DataType::Int64), lit(1_i64));
            let (match_, number) = ("__tharsis_match", "__tharsis_number");
            let columns = vec![(match_.to_owned(), all), (number.to_owned(), numbers)];
            let mut frame = frame.project(columns)?;
            let unnested = [match_, number].map(crate::frame::named_column).to_vec();
            frame.plan = frame
                .builder()
                .unnest_columns_with_options(unnested, UnnestOptions::new().with_preserve_nulls(false))?
                .build()?;
            let columns = found.iter().enumerate().map(|(at, group)| {
                let label = group.name.clone().unwrap_or_else(|| at.to_string());
                Ok((label, call("tharsis_text_group", vec![named(match_), size(at)])?))
            });
            let columns = columns.collect::<Result<Vec<_>>>()?;
            frame.index.push(Level { column: number.to_owned(), name: Some("match".to_owned()) });
            frame.order.push(OrderKey::growing(number));
            Frame { columns: Vec::new(), ..frame }.project(columns)
        });
        DataFrame::new(made)
    }

    /// A column for each distinct part between separators, with 1 where the text has it, else 0. The parts
    /// are computed at once, which runs the plan.
    #[track_caller]
    pub fn get_dummies(&self, separator: &str) -> DataFrame {
        let made = self.0.parts().and_then(|(frame, _)| {
            let parts = self.split(Some(separator));
            let single = parts.rename("0").to_frame().explode("0").col("0");
            let distinct = Index::of_series(&single).dropna().unique().sort_values(Sort::ascending());
            let labels: Vec<String> = distinct.to_list::<String>()?.into_iter().flatten().collect();
            let (_, parts) = parts.parts()?;
            let columns = labels.into_iter().filter(|label| !label.is_empty()).map(|label| {
                let has = lists::array_has(parts.clone(), text(&label));
                Ok((label, when(has, lit(1_i64)).otherwise(lit(0_i64))?))
            });
            frame.project(columns.collect::<Result<_>>()?)
        });
        DataFrame::new(made)
    }
}

impl Series {
    /// Bytes as texts of UTF-8; bytes that are none end the run with a `ValueError`. pandas' `str.decode`.
    #[track_caller]
    pub fn decode(&self) -> Series {
        match self.dtype() {
            Ok(DataType::Binary | DataType::LargeBinary | DataType::BinaryView) => {
                self.map_expr(|expr| Ok(cast(expr, DataType::Utf8)))
            }
            Ok(other) => {
                self.map_expr(|_| Err(Error::Type(format!("decode is made for bytes, not for {other}"))))
            }
            Err(_) => self.clone(),
        }
    }
}
