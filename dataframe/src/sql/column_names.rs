//! The names of columns in a statement, wherever the grammar has some.

use datafusion::logical_expr::sqlparser::ast::{
    AssignmentTarget, ExcludeSelectItem, Expr, Ident, JoinConstraint, JoinOperator, ObjectName,
    ObjectNamePart, RenameSelectItem, Select, SelectItem, Statement as SqlStatement, TableFactor,
    TableWithJoins, VisitMut, VisitorMut, WildcardAdditionalOptions,
};
use datafusion::sql::parser::{CopyToSource, Statement};
use std::ops::ControlFlow;

/// Visits all of them; of names with several parts, the last one.
pub(super) fn each_name(statement: &mut Statement, visit: &mut dyn FnMut(&mut Ident)) {
    // It never breaks off.
    let _whole = match statement {
        Statement::Statement(statement) => statement.visit(&mut Names(visit)),
        Statement::CopyTo(copy) => match &mut copy.source {
            CopyToSource::Query(query) => query.visit(&mut Names(visit)),
            CopyToSource::Relation(_) => ControlFlow::Continue(()),
        },
        Statement::Explain(explain) => {
            each_name(&mut explain.statement, visit);
            ControlFlow::Continue(())
        }
        Statement::CreateExternalTable(_) | Statement::Reset(_) => ControlFlow::Continue(()),
    };
}

/// Expressions are visited by themselves. Other clauses have names that are no expressions.
struct Names<'a>(&'a mut dyn FnMut(&mut Ident));

impl Names<'_> {
    fn last_part(&mut self, name: &mut ObjectName) {
        if let Some(ObjectNamePart::Identifier(ident)) = name.0.last_mut() {
            (self.0)(ident);
        }
    }

    fn of_target(&mut self, target: &mut AssignmentTarget) {
        match target {
            AssignmentTarget::ColumnName(name) => self.last_part(name),
            AssignmentTarget::Tuple(names) => names.iter_mut().for_each(|name| self.last_part(name)),
        }
    }

    fn of_joins(&mut self, tables: &mut TableWithJoins) {
        for join in &mut tables.joins {
            let constraint = match &mut join.join_operator {
                JoinOperator::Join(constraint)
                | JoinOperator::Inner(constraint)
                | JoinOperator::Left(constraint)
                | JoinOperator::LeftOuter(constraint)
                | JoinOperator::Right(constraint)
                | JoinOperator::RightOuter(constraint)
                | JoinOperator::FullOuter(constraint)
                | JoinOperator::Semi(constraint)
                | JoinOperator::LeftSemi(constraint)
                | JoinOperator::RightSemi(constraint)
                | JoinOperator::Anti(constraint)
                | JoinOperator::LeftAnti(constraint)
                | JoinOperator::RightAnti(constraint) => constraint,
                _ => continue,
            };
            if let JoinConstraint::Using(names) = constraint {
                names.iter_mut().for_each(|name| self.last_part(name));
            }
        }
    }

    fn of_wildcard(&mut self, options: &mut WildcardAdditionalOptions) {
        match &mut options.opt_exclude {
            Some(ExcludeSelectItem::Single(name)) => self.last_part(name),
            Some(ExcludeSelectItem::Multiple(names)) => {
                names.iter_mut().for_each(|name| self.last_part(name));
            }
            None => {}
        }
        if let Some(except) = &mut options.opt_except {
            (self.0)(&mut except.first_element);
            except.additional_elements.iter_mut().for_each(|name| (self.0)(name));
        }
        if let Some(replace) = &mut options.opt_replace {
            replace.items.iter_mut().for_each(|item| (self.0)(&mut item.column_name));
        }
        match &mut options.opt_rename {
            Some(RenameSelectItem::Single(renamed)) => (self.0)(&mut renamed.ident),
            Some(RenameSelectItem::Multiple(all)) => {
                all.iter_mut().for_each(|renamed| (self.0)(&mut renamed.ident));
            }
            None => {}
        }
    }
}

impl VisitorMut for Names<'_> {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        match expr {
            Expr::Identifier(ident) => (self.0)(ident),
            Expr::CompoundIdentifier(parts) => parts.last_mut().into_iter().for_each(|ident| (self.0)(ident)),
            _ => {}
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<()> {
        for item in &mut select.projection {
            if let SelectItem::Wildcard(options) | SelectItem::QualifiedWildcard(_, options) = item {
                self.of_wildcard(options);
            }
        }
        select.from.iter_mut().for_each(|tables| self.of_joins(tables));
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, table: &mut TableFactor) -> ControlFlow<()> {
        if let TableFactor::NestedJoin { table_with_joins, .. } = table {
            self.of_joins(table_with_joins);
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_statement(&mut self, statement: &mut SqlStatement) -> ControlFlow<()> {
        match statement {
            SqlStatement::Insert(insert) => {
                insert.columns.iter_mut().for_each(|name| self.last_part(name));
                insert.after_columns.iter_mut().for_each(|name| (self.0)(name));
            }
            SqlStatement::Update(update) => {
                self.of_joins(&mut update.table);
                update.assignments.iter_mut().for_each(|set| self.of_target(&mut set.target));
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }
}
