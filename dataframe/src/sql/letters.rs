//! Columns with capital letters, which statements name without quotes.
//!
//! A name without quotes is one of small letters. If there is no such column, and one whose name differs in
//! letters alone, that one is meant: files have headings such as `Sold`. The statement is planned again then,
//! with the name of the column at this place. Columns of the rows around a subquery are not among those that
//! the library knows there.

use datafusion::common::{DataFusionError, SchemaError, Span};
use datafusion::logical_expr::sqlparser::ast::{Expr, Ident, VisitMut, VisitorMut};
use datafusion::sql::parser::{CopyToSource, Statement};
use std::collections::BTreeSet;
use std::ops::ControlFlow;

/// Names of one statement that are written in other letters at most. Each of them is planned for once more.
const NAMES_MAX: usize = 256;

/// Places in a statement, and the names of columns that are meant there.
#[derive(Default)]
pub(super) struct Letters(Vec<(Span, String)>);

/// The only column whose name differs in letters alone from one that there is not.
pub(super) fn meant(error: &DataFusionError) -> Option<String> {
    let DataFusionError::SchemaError(inner, _) = error.find_root() else { return None };
    let SchemaError::FieldNotFound { field, valid_fields } = &**inner else { return None };
    let of_table = valid_fields.iter().filter(|known| match (&field.relation, &known.relation) {
        (Some(asked), Some(known)) => asked.resolved_eq(known),
        (asked, _) => asked.is_none(),
    });
    let same = of_table.filter(|known| known.name.to_lowercase() == field.name);
    let same: BTreeSet<&str> = same.map(|known| known.name.as_str()).collect();
    match same.into_iter().collect::<Vec<_>>().as_slice() {
        [only] => Some((*only).to_owned()),
        _ => None,
    }
}

impl Letters {
    /// Adds the name at a place; whether it is a new one.
    pub(super) fn add(&mut self, span: Span, name: String) -> bool {
        let is_new = self.0.len() < NAMES_MAX && self.0.iter().all(|(known, _)| *known != span);
        if is_new {
            self.0.push((span, name));
        }
        is_new
    }

    /// Writes the names into a statement.
    pub(super) fn write(&self, statement: &mut Statement) {
        if self.0.is_empty() {
            return;
        }
        // It never breaks off.
        let _whole = match statement {
            Statement::Statement(statement) => statement.visit(&mut Writer(self)),
            Statement::CopyTo(copy) => match &mut copy.source {
                CopyToSource::Query(query) => query.visit(&mut Writer(self)),
                CopyToSource::Relation(_) => ControlFlow::Continue(()),
            },
            Statement::Explain(explain) => {
                self.write(&mut explain.statement);
                ControlFlow::Continue(())
            }
            Statement::CreateExternalTable(_) | Statement::Reset(_) => ControlFlow::Continue(()),
        };
    }

    fn name(&self, ident: &Ident) -> Option<&str> {
        let span = Span::try_from_sqlparser_span(ident.span)?;
        let is_within = |place: &Span| place.start <= span.start && span.end <= place.end;
        let found = self.0.iter().find(|(place, name)| {
            ident.quote_style.is_none()
                && is_within(place)
                && name.to_lowercase() == ident.value.to_lowercase()
        });
        found.map(|(_, name)| name.as_str())
    }
}

struct Writer<'a>(&'a Letters);

impl VisitorMut for Writer<'_> {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        let ident = match expr {
            Expr::Identifier(ident) => Some(ident),
            Expr::CompoundIdentifier(parts) => parts.last_mut(),
            _ => None,
        };
        if let Some(ident) = ident
            && let Some(name) = self.0.name(ident)
        {
            ident.value = name.to_owned();
            ident.quote_style = Some('"');
        }
        ControlFlow::Continue(())
    }
}

#[cfg(test)]
mod tests {
    use crate::sql::SqlSession;
    use crate::sql::small_tables::{rows_in, session_of};
    use crate::{DataFrame, sql};

    fn session() -> SqlSession {
        session_of(&[
            "create table t (\"City\" text, \"Sold\" int, a int) as values ('Oslo', 3, 1), ('Rome', 5, 2)",
            "create table u (a int, \"A\" int, sold int) as values (1, 10, 100)",
            "create table v (\"B\" int, \"b\" int, \"Bb\" int, \"BB\" int) as values (1, 2, 3, 4)",
        ])
    }

    #[track_caller]
    fn rows(query: &str) -> Vec<String> {
        rows_in(&mut session(), query)
    }

    #[test]
    fn names_without_quotes_mean_columns_of_other_letters() {
        assert_eq!(rows("select city, SOLD + a from t where Sold > 3"), ["Rome 7"]);
        assert_eq!(
            rows("select x.city, sum(x.sold) from t x group by x.city order by city"),
            ["Oslo 3", "Rome 5"]
        );
        assert_eq!(rows("select count(*) from t where sold > (select max(sold) / 40 from u)"), ["2"]);
        assert_eq!(rows("select sold from (select sold as sold from t) s order by sold"), ["3", "5"]);
        assert_eq!(
            rows("with s as (select City as place from t) select place from s order by 1"),
            ["Oslo", "Rome"]
        );
        assert_eq!(rows("select t.sold, u.sold from t join u on t.a = u.a"), ["3 100"]);
        let exists = "exists (select 1 from u where u.a = t.a)";
        assert_eq!(rows(&format!("select city from t where {exists} and sold = 3")), ["Oslo"]);
        assert_eq!(rows("select a from u"), ["1"], "the name as it stands goes first");
        let mut session = session();
        session.run("create view w as select city from t where sold = 3").expect("a view");
        assert_eq!(session.run("select * from w").expect("rows"), [["Oslo"]]);
        assert_eq!(session.run("explain select city from t").expect("a plan").len(), 2);
        assert_eq!(session.run("select b from v").expect("rows"), [["2"]]);
        let described = session.run("describe select sold from t").expect("columns");
        assert_eq!(described[0][0], "Sold");
    }

    #[test]
    fn names_that_may_mean_several_are_refused() {
        let error = session().run("select bb from v").expect_err("two columns");
        assert!(error.to_string().starts_with("line 1, column 8: no column \"bb\""), "{error}");
        let error = session().run("select \"city\" from t").expect_err("a name with quotes");
        assert!(error.to_string().contains("did you mean \"City\"?"), "{error}");
        let error = session().run("select city, nothing from t").expect_err("no such column");
        assert!(error.to_string().starts_with("line 1, column 14: no column \"nothing\""), "{error}");
    }

    #[test]
    fn columns_of_frames_are_meant_too() {
        let t = DataFrame::from_columns([("Sold", vec![1, 3].into())]);
        let most = sql("select max(sold) as most from t", &[("t", &t)]);
        assert_eq!(most.col("most").values::<i64>().expect("rows"), [Some(3)]);
    }
}
