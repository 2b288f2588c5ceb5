//! Columns that are named behind a `*`: `* exclude (a)`, `* except (a)`, `* replace (a + 1 as a)`.
//!
//! The library reads these names letter by letter, with quotes and without, and leaves out a value of REPLACE
//! whose name no column has. So names without quotes are written in small letters, and a `*` that may name
//! no column is asked for its columns: the statement is planned with a name there that no column has, and the
//! error says which ones there are.

use super::column_names::{each_star, named_columns};
use super::fields::normal;
use super::letters::{is_of_table, missing};
use super::unknown_keys::{self, no_column};
use crate::error::{Error, Result};
use crate::sql::faults::mistakes::noting;
use datafusion::common::{Column, DataFusionError, Result as EngineResult, SchemaError, Span};
use datafusion::execution::SessionState;
use datafusion::logical_expr::LogicalPlan;
use datafusion::logical_expr::sqlparser::ast::{
    ExcludeSelectItem, Ident, ObjectName, VisitMut, WildcardAdditionalOptions,
};
use datafusion::sql::parser::{CopyToSource, Statement};

/// A name that nobody types.
const ASKED: &str = "\0column";

/// Writes names without quotes in small letters. The library leaves out which columns ILIKE means.
pub(in crate::sql) fn write_names(part: &mut impl VisitMut) -> Result<()> {
    let mut has_pattern = false;
    each_star(part, &mut |star| {
        has_pattern |= star.opt_ilike.is_some();
        for column in named_columns(star) {
            column.value = normal(column);
        }
    });
    if has_pattern {
        let text = "ILIKE behind * is not supported: write the columns, or * EXCLUDE (column)";
        return Err(Error::NotImplemented(text.to_owned()));
    }
    Ok(())
}

/// The plan of a statement, all of whose names behind a `*` are columns, and all of whose keys.
pub(in crate::sql) async fn plan_of(
    session: &SessionState,
    mut statement: Statement,
) -> EngineResult<LogicalPlan> {
    let stars = stars_with_names(&mut statement);
    if stars.is_empty() {
        return unknown_keys::plan_of(session, statement).await;
    }
    let session = &noting(session);
    let planned = unknown_keys::plan_of(session, statement.clone()).await;
    for star in stars {
        let is_asked = match &planned {
            Ok(_) => star.replaces,
            // The library tells no place, and looks for names in any order.
            Err(error) => missing(error).is_some_and(|name| star.names.iter().any(|own| own.value == name)),
        };
        if is_asked && let Some(error) = star.unknown(session, &statement).await {
            return Err(error);
        }
    }
    planned
}

/// A `*` with names behind it.
struct Star {
    /// Its number among those of the statement.
    number: usize,
    names: Vec<Ident>,
    replaces: bool,
}

impl Star {
    /// The error of the first name that no column has; `None` as well if an error comes before this `*`.
    async fn unknown(&self, session: &SessionState, statement: &Statement) -> Option<DataFusionError> {
        let error = session.statement_to_plan(self.asking(statement)).await.err()?;
        let DataFusionError::SchemaError(inner, _) = error.find_root() else { return None };
        let SchemaError::FieldNotFound { field: asked, valid_fields } = &**inner else { return None };
        if asked.name != ASKED {
            return None;
        }
        let is_known = |name: &Ident| {
            valid_fields.iter().any(|known| known.name == name.value && is_of_table(known, asked))
        };
        let name = self.names.iter().find(|name| !is_known(name))?;
        let column = Column::new(asked.relation.clone(), name.value.clone());
        Some(no_column(column, valid_fields.clone(), Span::try_from_sqlparser_span(name.span)))
    }

    /// The statement with a name there that no column has.
    fn asking(&self, statement: &Statement) -> Statement {
        let mut asking = statement.clone();
        let mut number = 0;
        each_star_of(&mut asking, &mut |star| {
            if number == self.number {
                let asked = ObjectName::from(vec![Ident::with_quote('"', ASKED)]);
                star.opt_exclude = Some(ExcludeSelectItem::Single(asked));
                star.opt_except = None;
            }
            number += 1;
        });
        asking
    }
}

fn stars_with_names(statement: &mut Statement) -> Vec<Star> {
    let mut stars = Vec::new();
    let mut number = 0;
    each_star_of(statement, &mut |star| {
        let replaces = star.opt_replace.is_some();
        let names: Vec<Ident> = named_columns(star).into_iter().map(|name| name.to_owned()).collect();
        if !names.is_empty() {
            stars.push(Star { number, names, replaces });
        }
        number += 1;
    });
    stars
}

fn each_star_of(statement: &mut Statement, visit: &mut dyn FnMut(&mut WildcardAdditionalOptions)) {
    match statement {
        Statement::Statement(statement) => each_star(&mut **statement, visit),
        Statement::CopyTo(copy) => match &mut copy.source {
            CopyToSource::Query(query) => each_star(&mut **query, visit),
            CopyToSource::Relation(_) => {}
        },
        Statement::Explain(explain) => each_star_of(&mut explain.statement, visit),
        Statement::CreateExternalTable(_) | Statement::Reset(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use crate::sql::SqlSession;
    use crate::sql::small_tables::{rows_in, session_of};

    fn session() -> SqlSession {
        session_of(&["create table t (\"City\" text, sold int) as values ('Oslo', 3), ('Rome', 5)"])
    }

    #[test]
    fn names_behind_stars_are_those_of_columns_in_any_letters() {
        let mut session = session();
        for (query, expected) in [
            ("select * exclude (@sold) from t order by 1", ["Oslo", "Rome"]),
            ("select t.* exclude @sold from t order by 1", ["Oslo", "Rome"]),
            ("select * except (@sold) from t order by 1", ["Oslo", "Rome"]),
            ("select * exclude (@city) from t order by 1", ["3", "5"]),
            ("select * except (@city) from t order by 1", ["3", "5"]),
            ("select * exclude (@sold, @city), 7 as n from t", ["7", "7"]),
            ("select * replace (-@sold as @sold) from t order by 1", ["Oslo -3", "Rome -5"]),
            ("select t.* replace (-@sold as @sold) from t order by 1", ["Oslo -3", "Rome -5"]),
            ("select * replace (upper(@city) as @city) from t order by 1", ["OSLO 3", "ROME 5"]),
            ("select * exclude (@city) replace (-@sold as @sold) from t order by 1", ["-5", "-3"]),
            (
                "select * from t |> select * replace (-@sold as @sold) |> order by sold",
                ["Rome -5", "Oslo -3"],
            ),
            (
                "with x as (select * replace (@sold + 1 as @sold) from t) select sold from x order by 1",
                ["4", "6"],
            ),
        ] {
            for (city, sold) in [("city", "sold"), ("CITY", "SOLD"), ("\"City\"", "\"sold\"")] {
                let query = query.replace("@city", city).replace("@sold", sold);
                assert_eq!(rows_in(&mut session, &query), expected, "{query}");
            }
        }
    }

    #[test]
    fn names_behind_stars_that_no_column_has_are_errors() {
        let mut session = session();
        for star in [
            "* exclude (@)",
            "t.* exclude @",
            "* exclude (sold, @)",
            "* except (@, city)",
            "* replace (1 as @)",
            "t.* replace (1 as sold, 2 as @)",
            "* exclude (sold) replace (1 as @)",
        ] {
            for name in ["typo", "\"SOLD\""] {
                let star = star.replace('@', name);
                for query in [
                    format!("select {star} from t"),
                    format!("select count(*) from (select {star} from t) x"),
                    format!("explain select {star} from t"),
                ] {
                    let error = session.run(&query).expect_err(&query);
                    let expected = format!("no column \"{}\"", name.trim_matches('"'));
                    assert!(error.to_string().contains(&expected), "{query}: {error}");
                    let place = error.sql_place().unwrap_or_else(|| panic!("{query}: no place"));
                    let marked: String = query.chars().skip(place.column() - 1).take(place.width()).collect();
                    assert_eq!(marked, name, "{query}");
                }
            }
        }
        let error = session.run("select * ilike 's%' from t").expect_err("no columns are left out");
        assert_eq!(error.class(), "NotImplemented", "{error}");
        assert!(error.to_string().contains("ILIKE behind * is not supported"), "{error}");
    }
}
