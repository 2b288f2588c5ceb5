//! `PIVOT t ON city USING sum(sold) GROUP BY year` and `UNPIVOT t ON jan, feb`: statements, and queries in
//! parentheses, as DuckDB has them.
//!
//! The parser knows PIVOT and UNPIVOT behind a table, so the words of such a query are put there. A PIVOT
//! that names no values has those of its rows: a session asks for them first, and puts them into the text.

use super::pivots::GROUPS;
use super::summary::begins;
use super::with_clauses::{alone, seen};
use crate::error::{Error, Result};
use crate::sql::SqlSession;
use crate::sql::words::{Words, is_word, may_have};
use datafusion::execution::SessionState;
use datafusion::logical_expr::sqlparser::tokenizer::{Span, Token, TokenWithSpan};
use std::ops::Range;

/// It is a part of the other word.
pub(in crate::sql) const PIVOT: &str = "pivot";
const UNPIVOT: &str = "unpivot";

/// Queries of one statement at most that have the values of their rows.
const QUERIES_MAX: usize = 64;
/// Values at most: each is a column.
const VALUES_MAX: usize = 1000;

/// Writes such queries among the words of a statement, those within others first; whether there are some.
pub(in crate::sql) fn write(tokens: &mut Vec<TokenWithSpan>) -> bool {
    let mut has_some = false;
    for at in (0..tokens.len()).rev() {
        if let Some(parts) = Parts::of(tokens, at) {
            let written = parts.written(tokens);
            drop(tokens.splice(at..parts.end, written));
            has_some = true;
        }
    }
    has_some
}

/// The places of the parts of a query among words.
struct Parts {
    at: usize,
    table: Range<usize>,
    form: Form,
    /// Behind these parts, such as an order.
    rest: Range<usize>,
    end: usize,
}

enum Form {
    Pivot {
        key: Range<usize>,
        /// In parentheses.
        values: Option<Range<usize>>,
        aggregates: Option<Range<usize>>,
        groups: Option<Range<usize>>,
    },
    Unpivot {
        columns: Range<usize>,
        /// The names of the columns with names, and with values.
        labels: Option<[usize; 2]>,
        keeps_missing: bool,
    },
}

impl Parts {
    /// The query that begins with a word; none if it is no such query, or in another form.
    fn of(tokens: &[TokenWithSpan], at: usize) -> Option<Parts> {
        if !begins(tokens, at, &[PIVOT, UNPIVOT]) {
            return None;
        }
        let end = end(tokens, at);
        let is_pivot = is_word(&tokens[at], &[PIVOT]);
        let keeps_missing = !is_pivot
            && is_word(tokens.get(at + 1)?, &["include"])
            && is_word(tokens.get(at + 2)?, &["nulls"]);
        let first = if keeps_missing { at + 3 } else { at + 1 };
        let on = outside(tokens, first..end, &["on"])?;
        let tail = outside(tokens, on + 1..end, &["limit", "offset", "order"]).unwrap_or(end);
        let form = if is_pivot {
            Form::pivot(tokens, on + 1..tail)?
        } else {
            Form::unpivot(tokens, on + 1..tail, keeps_missing)?
        };
        (first < on).then_some(Parts { at, table: first..on, form, rest: tail..end, end })
    }

    /// The words of the query as the parser knows them.
    fn written(&self, tokens: &[TokenWithSpan]) -> Vec<TokenWithSpan> {
        let mut made = Made { words: Vec::new(), span: tokens[self.at].span };
        made.add("SELECT").sign(Token::Mul).add("FROM").all(&tokens[self.table.clone()]);
        match &self.form {
            Form::Pivot { key, values, aggregates, groups } => {
                made.add("PIVOT").sign(Token::LParen);
                match aggregates {
                    Some(aggregates) => made.all(&tokens[aggregates.clone()]),
                    None => made.add("count").sign(Token::LParen).sign(Token::Mul).sign(Token::RParen),
                };
                made.add("FOR").all(&tokens[key.clone()]).add("IN");
                match values {
                    Some(values) => made.all(&tokens[values.clone()]),
                    None => made.sign(Token::LParen).add("ANY").sign(Token::RParen),
                };
                if let Some(groups) = groups {
                    made.add("DEFAULT").add("ON").add("NULL").sign(Token::LParen).add(GROUPS);
                    made.sign(Token::LParen).all(&tokens[groups.clone()]);
                    made.sign(Token::RParen).sign(Token::RParen);
                }
                made.sign(Token::RParen);
            }
            Form::Unpivot { columns, labels, keeps_missing } => {
                made.add("UNPIVOT");
                if *keeps_missing {
                    made.add("INCLUDE").add("NULLS");
                }
                made.sign(Token::LParen);
                match labels {
                    Some([name, value]) => {
                        made.all(&tokens[*value..=*value]).add("FOR").all(&tokens[*name..=*name])
                    }
                    None => made.label("value").add("FOR").label("name"),
                };
                made.add("IN").sign(Token::LParen).all(&tokens[columns.clone()]);
                made.sign(Token::RParen).sign(Token::RParen);
            }
        }
        made.all(&tokens[self.rest.clone()]);
        made.words
    }
}

impl Form {
    fn pivot(tokens: &[TokenWithSpan], place: Range<usize>) -> Option<Form> {
        let Range { start, end } = place;
        let group = outside(tokens, start..end, &["group"]);
        let using = outside(tokens, start..group.unwrap_or(end), &["using"]);
        let behind = using.or(group).unwrap_or(end);
        let within = outside(tokens, start..behind, &["in"]);
        let key = start..within.unwrap_or(behind);
        let values = within.map(|within| within + 1..behind);
        let is_list = |values: &Range<usize>| {
            let list = &tokens[values.clone()];
            let (first, last) = (list.first(), list.last());
            first.is_some_and(|token| token.token == Token::LParen)
                && last.is_some_and(|token| token.token == Token::RParen)
        };
        let by = |group: usize| tokens.get(group + 1).is_some_and(|token| is_word(token, &["by"]));
        let is_known = !key.is_empty()
            && !has_comma(tokens, key.clone())
            && values.as_ref().is_none_or(is_list)
            && group.is_none_or(by);
        is_known.then(|| Form::Pivot {
            key,
            values,
            aggregates: using.map(|using| using + 1..group.unwrap_or(end)),
            groups: group.map(|group| group + 2..end),
        })
    }

    fn unpivot(tokens: &[TokenWithSpan], place: Range<usize>, keeps_missing: bool) -> Option<Form> {
        let Range { start, end } = place;
        let into = outside(tokens, start..end, &["into"]);
        let columns = start..into.unwrap_or(end);
        let labels = match into {
            Some(into) => {
                let words = tokens.get(into + 1..end)?;
                let is_pair = words.len() == 4
                    && is_word(&words[0], &["name"])
                    && is_word(&words[2], &["value"])
                    && [1, 3].iter().all(|at| matches!(words[*at].token, Token::Word(_)));
                if !is_pair {
                    return None;
                }
                Some([into + 2, into + 4])
            }
            None => None,
        };
        // Columns by a pattern, and several columns of one row.
        let is_known = !columns.is_empty()
            && tokens[columns.clone()].iter().all(|token| !matches!(token.token, Token::LParen | Token::Mul));
        is_known.then_some(Form::Unpivot { columns, labels, keeps_missing })
    }
}

/// Words that are made, at the place of the first one of a query.
struct Made {
    words: Vec<TokenWithSpan>,
    span: Span,
}

impl Made {
    fn add(&mut self, word: &str) -> &mut Made {
        self.sign(Token::make_keyword(word))
    }

    fn label(&mut self, name: &str) -> &mut Made {
        self.sign(Token::make_word(name, Some('"')))
    }

    fn sign(&mut self, token: Token) -> &mut Made {
        self.words.push(TokenWithSpan::new(token, self.span));
        self
    }

    fn all(&mut self, words: &[TokenWithSpan]) -> &mut Made {
        self.words.extend_from_slice(words);
        self
    }
}

/// The end of a query: that of its parenthesis, or of the statement.
fn end(tokens: &[TokenWithSpan], at: usize) -> usize {
    let mut depth = 0_usize;
    let ends = |token: &TokenWithSpan| {
        match token.token {
            Token::LParen => depth += 1,
            Token::RParen if depth == 0 => return true,
            Token::RParen => depth -= 1,
            Token::SemiColon => return depth == 0,
            _ => {}
        }
        false
    };
    tokens[at..].iter().position(ends).map_or(tokens.len(), |behind| at + behind)
}

/// The first of some words outside of parentheses.
fn outside(tokens: &[TokenWithSpan], place: Range<usize>, words: &[&str]) -> Option<usize> {
    let start = place.start;
    let mut depth = 0_usize;
    let found = tokens.get(place)?.iter().position(|token| {
        match token.token {
            Token::LParen => depth += 1,
            Token::RParen => depth = depth.saturating_sub(1),
            _ => return depth == 0 && is_word(token, words),
        }
        false
    });
    found.map(|at| start + at)
}

/// Whether there are several values outside of parentheses.
fn has_comma(tokens: &[TokenWithSpan], place: Range<usize>) -> bool {
    let mut depth = 0_usize;
    tokens[place].iter().any(|token| {
        match token.token {
            Token::LParen => depth += 1,
            Token::RParen => depth = depth.saturating_sub(1),
            _ => {}
        }
        depth == 0 && token.token == Token::Comma
    })
}

/// A statement with the values of each PIVOT.
pub(in crate::sql) struct Valued {
    pub(in crate::sql) text: String,
    /// The bytes before the first of them, which are as they were.
    pub(in crate::sql) begin: usize,
}

/// A PIVOT without values.
struct Asked {
    /// The query of its values.
    query: String,
    /// The value whose values these are, and the bytes of the statement that it takes.
    key: String,
    place: Range<usize>,
}

impl SqlSession {
    /// The statement with the values of each PIVOT that names none; none if there is no such PIVOT.
    pub(in crate::sql) fn with_pivot_values(&mut self, statement: &str) -> Result<Option<Valued>> {
        let mut valued: Option<Valued> = None;
        for _ in 0..QUERIES_MAX {
            let text = valued.as_ref().map_or(statement, |valued| valued.text.as_str());
            let Some(Asked { query, key, place }) = asked(text, &self.context.state()) else { break };
            let mut text = text.to_owned();
            let values = self.run(&query).map_err(|error| error.root().clone())?.concat();
            if values.is_empty() || VALUES_MAX < values.len() {
                let count = if values.is_empty() { "no" } else { "more than 1000" };
                return Err(Error::Value(format!(
                    "PIVOT has {count} values, of which each is a column: write ON {} IN ('a', 'b')",
                    key.trim()
                )));
            }
            let values = values.into_iter().map(|value| format!("'{}'", value.replace('\'', "''")));
            let values = values.collect::<Vec<String>>().join(", ");
            let begin = valued.map_or(place.start, |valued| valued.begin.min(place.start));
            text.replace_range(place, &format!("cast({key}\n as varchar) in ({values}) "));
            valued = Some(Valued { text, begin });
        }
        Ok(valued)
    }
}

/// The last PIVOT of a statement that names no values. One of a view, which stays, has to name them.
fn asked(text: &str, state: &SessionState) -> Option<Asked> {
    if !may_have(text, PIVOT) {
        return None;
    }
    let words = Words::of(text, state);
    let tokens = words.tokens();
    let makes = tokens.first().is_some_and(|first| is_word(first, &["create", "prepare"]));
    if makes && tokens.iter().take(4).any(|token| is_word(token, &["prepare", "view"])) {
        return None;
    }
    let mut found = (0..tokens.len()).rev().filter_map(|at| Parts::of(tokens, at));
    let (at, table, key) = found.find_map(|parts| match parts.form {
        Form::Pivot { key, values: None, .. } => Some((parts.at, parts.table, key)),
        _ => None,
    })?;
    let offset = |at: usize| tokens.get(at).map_or(text.len(), |token| words.offset(token));
    let bytes = |part: &Range<usize>| offset(part.start)..offset(part.end);
    let place = bytes(&key);
    let (table, key) = (text.get(bytes(&table))?, text.get(place.clone())?.to_owned());
    let clauses = seen(&tokens[..at]).into_iter();
    let clauses = clauses.map(|clause| offset(clause.start)..offset(clause.end - 1) + 1);
    let above = alone(text.get(..offset(at))?, &clauses.collect::<Vec<Range<usize>>>());
    let query = format!(
        "{above}select cast(d.v as varchar) as label from (select distinct {key}\n as v from {table}\n) d \
         where d.v is not null order by d.v limit {}",
        VALUES_MAX + 1
    );
    Some(Asked { query, key, place })
}

#[cfg(test)]
mod tests {
    use crate::sql::SqlSession;
    use crate::sql::small_tables::{answer, cells, rows_in, session_of};

    fn session() -> SqlSession {
        session_of(&[
            "create table sales as select * from (values ('Oslo', 2023, 3, 1.5), ('Oslo', 2024, 4, 2.5), \
             ('Rome', 2024, 5, 3.5), ('Rome', 2024, 1, 0.5), ('Bern', null, 7, 4.0)) v(city, year, sold, paid)",
            "create table wide as select * from (values ('Oslo', 3, 4.5), ('Rome', null, 6.0)) v(city, a, b)",
        ])
    }

    #[test]
    fn a_pivot_is_a_statement() {
        let mut session = session();
        for (query, names, rows) in [
            (
                "pivot sales on year in (2023, 2024) using sum(sold) group by city order by city",
                "city 2023 2024",
                "Bern NULL NULL, Oslo 3 4, Rome NULL 6",
            ),
            (
                "pivot sales on year using sum(sold) group by city order by city;",
                "city 2023 2024",
                "Bern NULL NULL, Oslo 3 4, Rome NULL 6",
            ),
            (
                "PIVOT sales ON city USING sum(sold) AS s, max(paid) AS p GROUP BY year ORDER BY year nulls first LIMIT 2",
                "year Bern_s Bern_p Oslo_s Oslo_p Rome_s Rome_p",
                "NULL 7 4 NULL NULL NULL NULL, 2023 NULL NULL 3 1.5 NULL NULL",
            ),
            (
                "pivot (select city, year from sales) on year order by city",
                "city 2023 2024",
                "Bern 0 0, Oslo 1 1, Rome 0 2",
            ),
            (
                "pivot sales on year % 10 using count(*) group by city order by city limit 1",
                "city 3 4",
                "Bern 0 0",
            ),
            (
                "with s as (select * from sales where city <> 'Bern') pivot s on city using sum(sold) group by year order by 1",
                "year Oslo Rome",
                "2023 3 NULL, 2024 4 6",
            ),
            (
                "select \"2024\" from (pivot sales on year using sum(sold) group by city) p where p.city = 'Rome'",
                "2024",
                "6",
            ),
            (
                "select count(*) as n from (pivot (pivot sales on year using sum(sold) group by city) on city using max(\"2024\"))",
                "n",
                "2",
            ),
            (
                "pivot sales on city using sum(sold) group by year, paid order by paid limit 1",
                "year paid Bern Oslo Rome",
                "2024 0.5 NULL NULL 1",
            ),
        ] {
            assert_eq!(answer(&mut session, query).0.join(" "), names, "{query}");
            assert_eq!(rows_in(&mut session, query).join(", "), rows, "{query}");
        }
        cells(&mut session, "create table p as pivot sales on city using sum(sold) group by year");
        assert_eq!(rows_in(&mut session, "select \"Bern\" from p where year is null"), ["7"]);
    }

    #[test]
    fn an_unpivot_is_a_statement() {
        let mut session = session();
        for (query, names, rows) in [
            ("unpivot wide on a, b order by city, name", "city name value", "Oslo a 3, Oslo b 4.5, Rome b 6"),
            (
                "unpivot include nulls wide on a, b into name k value v order by city, k",
                "city k v",
                "Oslo a 3, Oslo b 4.5, Rome a NULL, Rome b 6",
            ),
            ("select sum(v) as s from (unpivot wide on a, b into name k value v)", "s", "13.5"),
        ] {
            assert_eq!(answer(&mut session, query).0.join(" "), names, "{query}");
            assert_eq!(rows_in(&mut session, query).join(", "), rows, "{query}");
        }
    }

    #[test]
    fn what_is_no_such_statement_is_told() {
        let mut session = session();
        for (query, told) in [
            ("pivot sales on nope using sum(sold)", "no column \"nope\""),
            ("pivot sales on city using sum(nope)", "no column \"nope\""),
            ("pivot nothing on city using sum(sold)", "no table \"nothing\""),
            (
                "pivot sales on city, year using sum(sold)",
                "PIVOT in this form is not supported: write from .. pivot",
            ),
            ("unpivot wide on columns(*)", "UNPIVOT in this form is not supported: write from .. unpivot"),
            ("pivot (select * from sales where sold > 9) on city using sum(sold)", "PIVOT has no values"),
            ("create view v as pivot sales on city using sum(sold)", "write IN ('a', 'b')"),
            ("pivot sales on city using sum(sold) group by upper(city)", "GROUP BY of PIVOT takes columns"),
        ] {
            let error = session.run(query).expect_err(query);
            assert!(error.to_string().contains(told), "{query}: {error}");
        }
        let error = session.frame("pivot sales on city using sum(sold)").columns().expect_err("values");
        assert!(error.to_string().contains("write IN ('a', 'b')"), "{error}");
        let bad = "pivot sales on city in ('Oslo')\nusing sum(nope) group by year";
        let error = session.run(bad).expect_err(bad).to_string();
        assert!(error.starts_with("line 2, column 11: no column \"nope\""), "{error}");
    }
}
