//! Literals beside decimals among the sides of unions: they are the decimals that they are written as.

use super::float_decimals::{decimal, have_room};
use crate::sql::plans::projection;
use arrow::datatypes::DataType;
use datafusion::common::{Result as EngineResult, ScalarValue};
use datafusion::logical_expr::{Expr, LogicalPlan};
use std::sync::Arc;

/// Makes decimals of the literals of a column if all of its floats are literals beside decimals, and one type
/// has them all. Whether it does.
pub(in crate::sql) fn with_literals(
    column: usize,
    inputs: &mut [Arc<LogicalPlan>],
    sides: &mut [Vec<Option<DataType>>],
) -> EngineResult<bool> {
    let types = || sides.iter().map(|side| side.get(column)?.as_ref());
    let whole: Vec<DataType> = types().flatten().filter_map(of_whole_numbers).collect();
    let decimals: Vec<&DataType> = types().flatten().filter(|dtype| dtype.is_decimal()).collect();
    if decimals.is_empty() {
        return Ok(false);
    }
    let floats = inputs.iter().zip(types()).filter(|(_, dtype)| dtype.is_some_and(DataType::is_floating));
    let literals: Option<Vec<ScalarValue>> = floats.map(|(side, _)| literal(side, column)).collect();
    let all: Vec<&DataType> = decimals.into_iter().chain(&whole).collect();
    let Some(literals) = literals.filter(|literals| have_room(&all, literals)) else { return Ok(false) };
    let is_new = !literals.is_empty();
    let mut literals = literals.into_iter();
    for (side, types) in inputs.iter_mut().zip(sides) {
        let Some(dtype) = types.get_mut(column).and_then(Option::as_mut) else { continue };
        if dtype.is_floating()
            && let Some(literal) = literals.next()
        {
            *dtype = literal.data_type();
            put(literal, side, column)?;
        }
    }
    Ok(is_new)
}

/// The decimals that the library makes of whole numbers beside decimals.
fn of_whole_numbers(dtype: &DataType) -> Option<DataType> {
    let digits = match dtype {
        DataType::Int8 | DataType::UInt8 => 3,
        DataType::Int16 | DataType::UInt16 => 5,
        DataType::Int32 | DataType::UInt32 => 10,
        DataType::Int64 | DataType::UInt64 => 20,
        _ => return None,
    };
    Some(DataType::Decimal128(digits, 0))
}

/// The decimal that a column of a side is written as.
fn literal(side: &LogicalPlan, column: usize) -> Option<ScalarValue> {
    let LogicalPlan::Projection(side) = side else { return None };
    decimal(&side.expr.get(column)?.clone().unalias_nested().data)
}

/// Puts a literal in the place of a column. A cast of the float would be another decimal.
fn put(literal: ScalarValue, side: &mut Arc<LogicalPlan>, column: usize) -> EngineResult<()> {
    let LogicalPlan::Projection(made) = &**side else { return Ok(()) };
    let mut exprs = made.expr.clone();
    if let Some(expr) = exprs.get_mut(column) {
        *expr = Expr::Literal(literal, None).alias(made.schema.field(column).name());
    }
    let made = projection(exprs, Arc::clone(&made.input))?;
    *side = made;
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::sql::small_tables::{cells, session_of};

    #[test]
    fn literals_are_the_decimals_that_they_are_written_as() {
        let mut session = session_of(&["create table sales (cost decimal(10, 2)) as values (2.5)"]);
        for (literals, condition) in [
            ("select 9.444604746588231", "count(*) filter (where x = 9.444604746588231) = 1"),
            ("select 0.30000000000000004", "count(*) filter (where x = 0.30000000000000004) = 1"),
            ("select 0.5 union all select 5000000000", "min(arrow_typeof(x)) like 'Decimal128%'"),
            // No decimal has room for these. In the other order the whole number is out of range.
            ("select 5000000000 union all select 1e-30", "min(arrow_typeof(x)) = 'Float64'"),
        ] {
            let query =
                format!("select {condition} from (select cost as x from sales union all {literals}) s");
            assert_eq!(cells(&mut session, &query), [["true"]], "{query}");
        }
    }
}
