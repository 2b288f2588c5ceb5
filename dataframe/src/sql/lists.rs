//! Lists as arguments of functions of texts.
//!
//! The library makes texts of them: `length(['a', 'b'])` was 6, the letters of `[a, b]`. Here it is the
//! number of elements, and other functions refuse them, as most do by themselves.

use super::plans::with_parts;
use super::type_names::type_name;
use crate::error::{Error, Result};
use arrow::datatypes::DataType;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, Result as EngineResult};
use datafusion::functions_nested::length::array_length_udf;
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::expr_fn::cast;
use datafusion::logical_expr::{Expr, ExprSchemable, LogicalPlan};

/// Functions that the library gives lists as texts, and what is written for lists.
const OF_TEXTS: [(&str, &str); 11] = [
    ("find_in_set", "array_position(..)"),
    ("left", "list[1:2]"),
    ("lpad", "array_to_string(.., ',')"),
    ("overlay", "array_to_string(.., ',')"),
    ("regexp_count", "array_to_string(.., ',')"),
    ("regexp_instr", "array_to_string(.., ',')"),
    ("reverse", "array_reverse(..)"),
    ("right", "list[-2:-1]"),
    ("rpad", "array_to_string(.., ',')"),
    ("substr_index", "array_to_string(.., ',')"),
    ("translate", "array_to_string(.., ',')"),
];

/// The plan whose functions take lists as lists.
pub(super) fn as_lists(plan: LogicalPlan) -> Result<LogicalPlan> {
    Ok(with_parts(plan, |part, schema| {
        let meant = match &part {
            Expr::ScalarFunction(call) => of_list(call, schema)?,
            _ => None,
        };
        Ok(meant.map_or_else(|| Transformed::no(part), Transformed::yes))
    })?)
}

/// The meaning of a call whose first argument is a list; `None` for one that is right as it is.
fn of_list(call: &ScalarFunction, schema: &DFSchema) -> EngineResult<Option<Expr>> {
    let Some(list) = call.args.first() else { return Ok(None) };
    // A column of a query around this one has no type here.
    if !list.get_type(schema).is_ok_and(|dtype| is_list(&dtype)) {
        return Ok(None);
    }
    let name = call.func.name();
    if name == "character_length" {
        let length = array_length_udf().call(vec![list.clone()]);
        return Ok(Some(cast(length, DataType::Int64)));
    }
    let Some((_, meant)) = OF_TEXTS.iter().find(|(known, _)| *known == name) else { return Ok(None) };
    let types = call.args.iter().map(|arg| Ok(type_name(&arg.get_type(schema)?)));
    let types = types.collect::<EngineResult<Vec<String>>>()?.join(", ");
    Err(Error::Type(format!("no function {name}({types}); write {meant}")).into())
}

fn is_list(dtype: &DataType) -> bool {
    matches!(
        dtype,
        DataType::List(_)
            | DataType::LargeList(_)
            | DataType::FixedSizeList(..)
            | DataType::ListView(_)
            | DataType::LargeListView(_)
    )
}

#[cfg(test)]
mod tests {
    use crate::sql::small_tables::{cells, rows_in, session_of};

    #[test]
    fn the_length_of_a_list_is_the_number_of_its_elements() {
        let mut session = session_of(&["create table t as select ['x', 'yy', 'z'] as l, 'four' as s"]);
        for (value, expected) in [
            ("length(l)", "3"),
            ("char_length(l) - 5", "-2"),
            ("length(['a', 'b'])", "2"),
            ("length([])", "0"),
            ("length(nullif(l, l))", "NULL"),
            ("length(s)", "4"),
            ("length(array_to_string(l, ','))", "6"),
            ("(select max(length(i.l)) from t i where length(i.l) = length(t.l))", "3"),
        ] {
            assert_eq!(rows_in(&mut session, &format!("select {value} from t")), [expected], "{value}");
        }
        let query = "select length(l), count(*) from t where length(l) > 2 group by length(l)";
        assert_eq!(cells(&mut session, query), [["3", "1"]]);
    }

    #[test]
    fn functions_of_texts_refuse_lists() {
        let mut session = session_of(&["create table t as select ['x', 'yy'] as l"]);
        for (call, meant) in [
            ("reverse(l)", "no function reverse(VARCHAR[]); write array_reverse(..)"),
            ("left(l, 1)", "no function left(VARCHAR[], BIGINT); write list[1:2]"),
            ("translate(l, 'a', 'b')", "no function translate(VARCHAR[], VARCHAR, VARCHAR)"),
        ] {
            let error = session.run(&format!("select {call} from t")).expect_err(call);
            assert_eq!(error.class(), "TypeError", "{error}");
            assert!(error.to_string().contains(meant), "{error}");
            assert!(error.sql_place().is_some(), "{error}");
        }
    }
}
