//! The names of columns in a statement, wherever the grammar has some.

use super::fields::normal;
use crate::sql::clauses::joins::{constraint_of, each_join};
use datafusion::logical_expr::sqlparser::ast::{
    AssignmentTarget, ExcludeSelectItem, Expr, Ident, JoinConstraint, ObjectName, ObjectNamePart,
    PipeOperator, Query, Select, SelectItem, SetExpr, Statement as SqlStatement, VisitMut, VisitorMut,
    WildcardAdditionalOptions,
};
use datafusion::sql::parser::{CopyToSource, Statement};
use std::ops::ControlFlow;

/// A name without quotes behind that of its table. It means one column wherever a query has it, and maybe
/// another one in queries within it.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::sql) struct Behind {
    query: usize,
    name: Vec<String>,
}

/// Visits all of them; of names with several parts, the last one.
pub(in crate::sql) fn each_name(
    statement: &mut Statement,
    visit: &mut dyn FnMut(&mut Ident, Option<Behind>),
) {
    match statement {
        Statement::Statement(statement) => names_in(&mut **statement, visit),
        Statement::CopyTo(copy) => match &mut copy.source {
            CopyToSource::Query(query) => names_in(&mut **query, visit),
            CopyToSource::Relation(_) => {}
        },
        Statement::Explain(explain) => each_name(&mut explain.statement, visit),
        Statement::CreateExternalTable(_) | Statement::Reset(_) => {}
    }
}

/// Visits each `*` of columns in a part of a statement.
pub(in crate::sql) fn each_star(
    part: &mut impl VisitMut,
    visit: &mut dyn FnMut(&mut WildcardAdditionalOptions),
) {
    // It never breaks off.
    let _whole = part.visit(&mut EachStar(visit));
}

/// The names of columns behind a `*`.
pub(in crate::sql) fn named_columns(star: &mut WildcardAdditionalOptions) -> Vec<&mut Ident> {
    let mut columns: Vec<&mut Ident> = match &mut star.opt_exclude {
        Some(ExcludeSelectItem::Single(name)) => last_part(name).into_iter().collect(),
        Some(ExcludeSelectItem::Multiple(names)) => names.iter_mut().filter_map(last_part).collect(),
        None => Vec::new(),
    };
    if let Some(except) = &mut star.opt_except {
        columns.push(&mut except.first_element);
        columns.extend(except.additional_elements.iter_mut());
    }
    if let Some(replace) = &mut star.opt_replace {
        columns.extend(replace.items.iter_mut().map(|item| &mut item.column_name));
    }
    columns
}

/// The last part of a name.
fn last_part(name: &mut ObjectName) -> Option<&mut Ident> {
    match name.0.last_mut() {
        Some(ObjectNamePart::Identifier(ident)) => Some(ident),
        _ => None,
    }
}

fn names_in(part: &mut impl VisitMut, visit: &mut dyn FnMut(&mut Ident, Option<Behind>)) {
    let mut names = Names { visit, queries: 0, around: Vec::new() };
    // They never break off.
    let _whole = part.visit(&mut names);
    each_star(part, &mut |star| named_columns(star).into_iter().for_each(|column| names.plain(column)));
    let _whole = each_join(part, |join| {
        if let Some(JoinConstraint::Using(columns)) = constraint_of(join) {
            columns.iter_mut().for_each(|column| names.last_part(column));
        }
        ControlFlow::<()>::Continue(())
    });
}

/// Expressions are visited by themselves. Other clauses have names that are no expressions.
struct Names<'a> {
    visit: &'a mut dyn FnMut(&mut Ident, Option<Behind>),
    queries: usize,
    /// The numbers of the queries and selects around the part that is visited, if a name of a table means one
    /// table there; whether the select of the query has its number.
    around: Vec<(Option<usize>, bool)>,
}

impl Names<'_> {
    fn plain(&mut self, ident: &mut Ident) {
        (self.visit)(ident, None);
    }

    fn last_part(&mut self, name: &mut ObjectName) {
        if let Some(ident) = last_part(name) {
            self.plain(ident);
        }
    }

    fn behind(&self, parts: &[Ident]) -> Option<Behind> {
        let (query, _) = *self.around.last()?;
        if parts.last()?.quote_style.is_some() {
            return None;
        }
        Some(Behind { query: query?, name: parts.iter().map(normal).collect() })
    }

    fn new_query(&mut self) -> usize {
        self.queries += 1;
        self.queries
    }

    fn of_target(&mut self, target: &mut AssignmentTarget) {
        match target {
            AssignmentTarget::ColumnName(name) => self.last_part(name),
            AssignmentTarget::Tuple(names) => names.iter_mut().for_each(|name| self.last_part(name)),
        }
    }
}

impl VisitorMut for Names<'_> {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        match expr {
            Expr::Identifier(ident) => self.plain(ident),
            Expr::CompoundIdentifier(parts) => {
                let behind = self.behind(parts);
                if let Some(ident) = parts.last_mut() {
                    (self.visit)(ident, behind);
                }
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        // Behind |> AS, the name of a table means another one.
        let number = query.pipe_operators.is_empty().then(|| self.new_query());
        self.around.push((number, number.is_some() && matches!(*query.body, SetExpr::Select(_))));
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &mut Query) -> ControlFlow<()> {
        self.around.pop();
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, _: &mut Select) -> ControlFlow<()> {
        let number = match self.around.last() {
            Some((number, true)) => *number,
            _ => Some(self.new_query()),
        };
        self.around.push((number, false));
        ControlFlow::Continue(())
    }

    fn post_visit_select(&mut self, _: &mut Select) -> ControlFlow<()> {
        self.around.pop();
        ControlFlow::Continue(())
    }

    fn pre_visit_statement(&mut self, statement: &mut SqlStatement) -> ControlFlow<()> {
        match statement {
            SqlStatement::Insert(insert) => {
                insert.columns.iter_mut().for_each(|name| self.last_part(name));
                insert.after_columns.iter_mut().for_each(|name| self.plain(name));
            }
            SqlStatement::Update(update) => {
                update.assignments.iter_mut().for_each(|set| self.of_target(&mut set.target));
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }
}

struct EachStar<'a>(&'a mut dyn FnMut(&mut WildcardAdditionalOptions));

impl EachStar<'_> {
    fn of_items(&mut self, items: &mut [SelectItem]) {
        for item in items {
            if let SelectItem::Wildcard(star) | SelectItem::QualifiedWildcard(_, star) = item {
                (self.0)(star);
            }
        }
    }
}

impl VisitorMut for EachStar<'_> {
    type Break = ();

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        for operator in &mut query.pipe_operators {
            if let PipeOperator::Select { exprs } | PipeOperator::Extend { exprs } = operator {
                self.of_items(exprs);
            }
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<()> {
        self.of_items(&mut select.projection);
        ControlFlow::Continue(())
    }
}
