//! `TABLESAMPLE`: a part of the rows of a table, or some of them, at random.
//!
//! The library's planner drops the clause. A part is a condition on a random number of each row, and a number
//! of rows are the first ones in a random order. So `SYSTEM`, which others answer by blocks, is by rows.

use crate::error::{Error, Result};
use crate::sql::names::fields::normal;
use crate::sql::plans::columns;
use datafusion::common::{Column, Result as EngineResult};
use datafusion::functions::math::expr_fn::random;
use datafusion::logical_expr::planner::{
    PlannedRelation, RelationPlanner, RelationPlannerContext, RelationPlanning,
};
use datafusion::logical_expr::sqlparser::ast::{
    Expr as SqlExpr, Query, TableFactor, TableSample, TableSampleKind, TableSampleMethod,
    TableSampleQuantity, TableSampleUnit, Value, Visit, Visitor, visit_relations,
};
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder, lit};
use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::sync::Arc;

/// The name of the random number of a row.
const DRAWN: &str = "__tharsis_drawn";

/// The planner of such tables.
pub(in crate::sql) fn planner() -> Arc<dyn RelationPlanner> {
    Arc::new(Samples)
}

/// Refuses tables of WITH that have a sample and are read several times: the library plans their query for
/// each reader, which would have another sample.
pub(in crate::sql) fn check_read_once(query: &Query) -> Result<()> {
    let mut sampled: BTreeSet<String> = BTreeSet::new();
    for table in query.with.iter().flat_map(|with| &with.cte_tables) {
        let of_others = || sampled.iter().any(|name| 0 < readings(&table.query, name));
        if !has_sample(&table.query) && !of_others() {
            continue;
        }
        let name = normal(&table.alias.name);
        // A recursive query reads itself.
        if 1 < readings(query, &name).saturating_sub(readings(&table.query, &name)) {
            return Err(Error::NotImplemented(format!(
                "WITH {name:?} has a sample, which would be another one each time it is read: make a table of it, \
                 create table {name} as select .. tablesample (10 percent)"
            )));
        }
        sampled.insert(name);
    }
    Ok(())
}

/// The number of times that a table of this name is read.
fn readings(query: &Query, name: &str) -> usize {
    let mut count = 0;
    // It never breaks off.
    let _whole = visit_relations(query, |table| {
        let own = table.0.as_slice();
        let is_it = matches!(own, [part] if part.as_ident().is_some_and(|own| normal(own) == name));
        count += usize::from(is_it);
        ControlFlow::<()>::Continue(())
    });
    count
}

fn has_sample(query: &Query) -> bool {
    query.visit(&mut Finder).is_break()
}

/// Finds a sample.
struct Finder;

impl Visitor for Finder {
    type Break = ();

    fn pre_visit_table_factor(&mut self, factor: &TableFactor) -> ControlFlow<()> {
        match factor {
            TableFactor::Derived { sample: Some(_), .. } | TableFactor::Table { sample: Some(_), .. } => {
                ControlFlow::Break(())
            }
            _ => ControlFlow::Continue(()),
        }
    }
}

#[derive(Debug)]
struct Samples;

impl RelationPlanner for Samples {
    fn plan_relation(
        &self,
        mut relation: TableFactor,
        context: &mut dyn RelationPlannerContext,
    ) -> EngineResult<RelationPlanning> {
        let Some(sample) = taken(&mut relation) else {
            return Ok(RelationPlanning::Original(Box::new(relation)));
        };
        let size = Size::of(&sample)?;
        let rows = context.plan(relation)?;
        let sampled = match size {
            Size::Part(part) => part_of(rows, part)?,
            Size::Rows(count) => {
                let rows = LogicalPlanBuilder::from(rows).sort([random().sort(true, false)])?;
                rows.limit(0, Some(count))?.build()?
            }
        };
        Ok(RelationPlanning::Planned(Box::new(PlannedRelation::new(sampled, None))))
    }
}

/// A part of the rows. Their numbers are a column: a condition that reads none goes below groups, and of two
/// equal ones only one is left.
fn part_of(rows: LogicalPlan, part: f64) -> EngineResult<LogicalPlan> {
    let own = columns(&rows);
    let drawn: Vec<Expr> = own.iter().cloned().chain([random().alias(DRAWN)]).collect();
    let is_taken = Expr::Column(Column::new_unqualified(DRAWN)).lt(lit(part));
    LogicalPlanBuilder::from(rows).project(drawn)?.filter(is_taken)?.project(own)?.build()
}

/// The sample of a table, which has none then.
fn taken(relation: &mut TableFactor) -> Option<TableSample> {
    let (TableFactor::Table { sample, .. } | TableFactor::Derived { sample, .. }) = relation else {
        return None;
    };
    match sample.take()? {
        TableSampleKind::BeforeTableAlias(sample) | TableSampleKind::AfterTableAlias(sample) => Some(*sample),
    }
}

/// The size of a sample.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Size {
    /// A part of the rows, from 0 to 1.
    Part(f64),
    Rows(usize),
}

impl Size {
    /// # Errors
    /// The clauses of a sample that are not there, and sizes that are none.
    fn of(sample: &TableSample) -> Result<Size> {
        let TableSample { modifier: _, name, quantity, seed, bucket, offset } = sample;
        let refused = [
            (seed.is_some(), "REPEATABLE"),
            (bucket.is_some(), "BUCKET"),
            (offset.is_some(), "OFFSET"),
            (matches!(name, Some(TableSampleMethod::Row | TableSampleMethod::Block)), "ROW or BLOCK"),
        ];
        if let Some((_, clause)) = refused.into_iter().find(|(is_there, _)| *is_there) {
            return Err(Error::NotImplemented(format!("{clause} of TABLESAMPLE is not supported")));
        }
        let no_size = || {
            let text = "TABLESAMPLE takes a percentage or a number of rows: (10 percent), (100 rows)";
            Error::Value(text.to_owned())
        };
        let Some(TableSampleQuantity { parenthesized: _, value, unit }) = quantity else {
            return Err(no_size());
        };
        let SqlExpr::Value(value) = value else { return Err(no_size()) };
        let Value::Number(number, _) = &value.value else { return Err(no_size()) };
        // Methods by rows take percentages, as in PostgreSQL.
        match (unit, name) {
            (Some(TableSampleUnit::Rows), _) => number.parse().map(Size::Rows).map_err(|_| no_size()),
            (Some(TableSampleUnit::Percent), _) | (None, Some(_)) => {
                let percent: f64 = number.parse().map_err(|_| no_size())?;
                if percent <= 100.0 { Ok(Size::Part(percent / 100.0)) } else { Err(no_size()) }
            }
            (None, None) => Err(no_size()),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::sql::SqlSession;
    use crate::sql::small_tables::{rows_in, session_of};

    fn session() -> SqlSession {
        session_of(&["create table t as select n, n % 2 as odd from generate_series(1, 2000) g(n)"])
    }

    #[test]
    fn samples_have_about_a_part_of_the_rows_or_so_many() {
        let mut session = session();
        for (sample, expected) in [
            ("tablesample (100 percent)", "2000"),
            ("tablesample bernoulli (0)", "0"),
            ("tablesample (10 rows)", "10"),
            ("tablesample (5000 rows)", "2000"),
            ("tablesample (0 rows)", "0"),
        ] {
            let query = format!("select count(distinct n) from t {sample}");
            assert_eq!(rows_in(&mut session, &query), [expected], "{sample}");
        }
        // Of 2000 rows 200 are expected, with a deviation of 13.4: the bounds are seven of them away.
        for from in [
            "t tablesample (10 percent)",
            "(select * from t) tablesample system (10)",
            "t x tablesample bernoulli (10)",
        ] {
            let query = format!("select count(*) between 106 and 294 from {from}");
            assert_eq!(rows_in(&mut session, &query), ["true"], "{from}");
        }
        // The rows of a query are taken, and not those that it reads.
        let groups = "(select odd, count(*) as c from t group by odd) tablesample (50 percent)";
        let query = format!("select count(*) filter (where c <> 1000) from {groups}");
        assert_eq!(rows_in(&mut session, &query), ["0"]);
        let twice = "(select * from t tablesample (10 percent)) tablesample (10 percent)";
        assert_eq!(rows_in(&mut session, &format!("select count(*) < 100 from {twice}")), ["true"]);
        let joined = "select count(*) = 3 from t x tablesample (3 rows) join t y on x.n = y.n";
        assert_eq!(rows_in(&mut session, joined), ["true"]);
        session.run("create view v as select * from t tablesample (7 rows)").expect("a view");
        assert_eq!(rows_in(&mut session, "select count(*) from v"), ["7"]);
    }

    #[test]
    fn samples_in_with_are_read_once() {
        let mut session = session();
        let sample = "s as (select * from t tablesample (5 rows))";
        for (with, from, expected) in [
            (sample.to_owned(), "s", "5"),
            (format!("{sample}, u as (select * from s where n > 0)"), "u join t using (n)", "5"),
        ] {
            assert_eq!(
                rows_in(&mut session, &format!("with {with} select count(*) from {from}")),
                [expected],
                "{with}"
            );
        }
        for (with, from) in [
            (sample.to_owned(), "s join S x using (n)"),
            (sample.to_owned(), "t where n in (select n from s) or n in (select n + 1 from s)"),
            (format!("{sample}, u as (select n from s)"), "u join u x using (n)"),
        ] {
            let query = format!("with {with} select count(*) from {from}");
            let error = session.run(&query).expect_err(&query);
            assert_eq!(error.class(), "NotImplemented", "{query}: {error}");
            assert!(error.to_string().contains("create table"), "{query}: {error}");
        }
    }

    #[test]
    fn samples_without_a_size_are_refused() {
        let mut session = session();
        for (sample, class) in [
            ("tablesample (10)", "ValueError"),
            ("tablesample (101 percent)", "ValueError"),
            ("tablesample (1.5 rows)", "ValueError"),
            ("tablesample (n percent)", "ValueError"),
            ("tablesample bernoulli (10) repeatable (7)", "NotImplemented"),
            ("tablesample (bucket 1 out of 2)", "NotImplemented"),
        ] {
            let error = session.run(&format!("select * from t {sample}")).expect_err(sample);
            assert_eq!(error.class(), class, "{sample}: {error}");
        }
    }
}
