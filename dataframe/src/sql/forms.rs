//! Forms of statements that are written in another way before the rest looks at them.

use super::depth::flatten;
use super::distinct_from::end_operands;
use super::fields::write_fields;
use super::labels::{Doubles, write_labels};
use crate::error::Result;
use datafusion::logical_expr::sqlparser::ast::{Visit, VisitMut};

/// Writes conditions, fields and names of values in the forms that planning wants.
pub(super) fn write_forms(statement: &mut (impl Visit + VisitMut), doubles: &Doubles) -> Result<()> {
    flatten(statement)?;
    end_operands(statement)?;
    write_fields(statement);
    write_labels(statement, doubles);
    Ok(())
}
