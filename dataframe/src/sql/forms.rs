//! Forms of statements that are written in another way before the rest looks at them.

use super::depth::flatten;
use super::distinct_from::end_operands;
use super::fields::write_fields;
use crate::error::Result;
use datafusion::logical_expr::sqlparser::ast::{Visit, VisitMut};

/// Writes conditions and fields in the forms that planning wants.
pub(super) fn write_forms(statement: &mut (impl Visit + VisitMut)) -> Result<()> {
    flatten(statement)?;
    end_operands(statement)?;
    write_fields(statement);
    Ok(())
}
