//! Lists as arguments of functions of texts.
//!
//! The library makes texts of them: `length(['a', 'b'])` was 6, the letters of `[a, b]`. Here it is the
//! number of elements, and other functions refuse them at each place, as most do by themselves.

use super::type_names::type_name;
use crate::error::{Error, Result};
use crate::sql::plans::with_parts;
use arrow::datatypes::DataType;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, Result as EngineResult};
use datafusion::functions_nested::length::array_length_udf;
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::expr_fn::cast;
use datafusion::logical_expr::{Expr, ExprSchemable, LogicalPlan};

/// Functions that the library gives lists as texts, and what is written for lists.
const OF_TEXTS: [(&str, &str); 15] = [
    ("concat", "array_to_string(.., ','), or || for a longer list"),
    ("concat_ws", "array_to_string(.., ',')"),
    ("find_in_set", "array_position(..)"),
    ("left", "list[1:2]"),
    ("lpad", "array_to_string(.., ',')"),
    ("overlay", "array_to_string(.., ',')"),
    ("regexp_count", "array_to_string(.., ',')"),
    ("regexp_instr", "array_to_string(.., ',')"),
    ("reverse", "array_reverse(..)"),
    ("right", "list[-2:-1]"),
    ("rpad", "array_to_string(.., ',')"),
    ("string_agg", "array_to_string(.., ',')"),
    ("substr_index", "array_to_string(.., ',')"),
    ("to_char", "list[1]"),
    ("translate", "array_to_string(.., ',')"),
];

/// The plan whose functions take lists as lists.
pub(in crate::sql) fn as_lists(plan: LogicalPlan) -> Result<LogicalPlan> {
    Ok(with_parts(plan, |part, schema| {
        let meant = match &part {
            Expr::ScalarFunction(call) => of_list(call, schema)?,
            Expr::AggregateFunction(call) => {
                check(call.func.name(), &call.params.args, schema)?;
                None
            }
            Expr::WindowFunction(call) => {
                check(call.fun.name(), &call.params.args, schema)?;
                None
            }
            _ => None,
        };
        Ok(meant.map_or_else(|| Transformed::no(part), Transformed::yes))
    })?)
}

/// The meaning of a call with lists; `None` for one that is right as it is.
fn of_list(call: &ScalarFunction, schema: &DFSchema) -> EngineResult<Option<Expr>> {
    let name = call.func.name();
    match call.args.as_slice() {
        [list] if name == "character_length" && is_of_list(list, schema) => {
            let length = array_length_udf().call(vec![list.clone()]);
            Ok(Some(cast(length, DataType::Int64)))
        }
        args => check(name, args, schema).map(|()| None),
    }
}

/// Refuses lists as arguments of a function of texts.
fn check(name: &str, args: &[Expr], schema: &DFSchema) -> EngineResult<()> {
    let Some((_, meant)) = OF_TEXTS.iter().find(|(known, _)| *known == name) else { return Ok(()) };
    if !args.iter().any(|arg| is_of_list(arg, schema)) {
        return Ok(());
    }
    let types = args.iter().map(|arg| Ok(type_name(&arg.get_type(schema)?)));
    let types = types.collect::<EngineResult<Vec<String>>>()?.join(", ");
    Err(Error::Type(format!("no function {name}({types}); write {meant}")).into())
}

/// Whether an argument is a list. A column of a query around this one has no type here.
fn is_of_list(arg: &Expr, schema: &DFSchema) -> bool {
    arg.get_type(schema).is_ok_and(|dtype| is_list(&dtype))
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

    #[test]
    fn functions_of_texts_refuse_lists_at_each_place() {
        let mut session = session_of(&[
            "create table t as select ['x', 'yy'] as l, 'abcd' as s, timestamp '2024-03-30 06:00:00' as n",
        ]);
        for call in [
            "concat(l, s)",
            "concat(s, l)",
            "concat_ws('-', l, s)",
            "concat_ws('-', s, l)",
            "find_in_set('yy', l)",
            "lpad(s, 9, l)",
            "overlay(s placing l from 1)",
            "regexp_count(s, l)",
            "rpad(s, 9, l)",
            "string_agg(l, ',')",
            "string_agg(l, ',') over ()",
            "substr_index(s, l, 1)",
            "to_char(n, l)",
            "translate(s, l, 'x')",
        ] {
            let error = session.run(&format!("select {call} from t")).expect_err(call);
            assert_eq!(error.class(), "TypeError", "{call}: {error}");
            assert!(error.to_string().contains("; write "), "{call}: {error}");
        }
        for (value, expected) in [
            ("concat(s, array_to_string(l, ','))", "abcdx,yy"),
            ("concat_ws('-', s, l[1])", "abcd-x"),
            ("array_to_string(l || ['z'], '')", "xyyz"),
            ("string_agg(l[1], ',')", "x"),
        ] {
            assert_eq!(rows_in(&mut session, &format!("select {value} from t")), [expected], "{value}");
        }
    }
}
