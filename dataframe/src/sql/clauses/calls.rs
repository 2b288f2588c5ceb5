//! Functions of other databases that stand for an expression of the library: `year(day)` is
//! `extract(year from day)`.
//!
//! They are written behind all other forms, so that values have the names that they have as they are written.

use crate::sql::names::fields::normal;
use datafusion::logical_expr::sqlparser::ast::{
    Expr, Function, FunctionArg, FunctionArgExpr, FunctionArgumentList, FunctionArguments, ObjectNamePart,
    Value, ValueWithSpan, VisitMut, VisitorMut, visit_expressions_mut,
};
use datafusion::logical_expr::sqlparser::dialect::GenericDialect;
use datafusion::logical_expr::sqlparser::parser::Parser;
use std::ops::ControlFlow;

/// Writes such calls as the expressions that they stand for.
pub(in crate::sql) fn write_calls(statement: &mut impl VisitMut) {
    // It never breaks off.
    let _whole = VisitMut::visit(statement, &mut Calls);
}

/// A call of so many arguments, and its expression, in which these have their numbers, each once. The first
/// argument of some is a unit.
struct Form {
    names: &'static [&'static str],
    unit: Option<&'static str>,
    args: usize,
    written: &'static str,
}

impl Form {
    const fn of(args: usize, names: &'static [&'static str], written: &'static str) -> Form {
        Form { names, unit: None, args, written }
    }

    const fn of_unit(unit: &'static str, names: &'static [&'static str], written: &'static str) -> Form {
        Form { names, unit: Some(unit), args: 3, written }
    }
}

const DIFFERENCE: &[&str] = &["date_diff", "datediff"];

static FORMS: [Form; 23] = [
    // The library tells its own.
    Form::of(0, &["version"], concat!("'Tharsis ", env!("CARGO_PKG_VERSION"), "'")),
    Form::of(1, &["count_if", "countif"], "count(*) filter (where $1)"),
    Form::of(1, &["day", "dayofmonth"], "extract(day from $1)"),
    Form::of(1, &["dayname"], "to_char($1, '%A')"),
    Form::of(1, &["dayofyear"], "extract(doy from $1)"),
    Form::of(1, &["epoch"], "extract(epoch from $1)"),
    Form::of(1, &["hour"], "extract(hour from $1)"),
    Form::of(
        1,
        &["last_day"],
        "cast(date_trunc('month', $1) + interval '1 month' - interval '1 day' as date)",
    ),
    Form::of(1, &["minute"], "extract(minute from $1)"),
    Form::of(1, &["month"], "extract(month from $1)"),
    Form::of(1, &["monthname"], "to_char($1, '%B')"),
    Form::of(1, &["quarter"], "extract(quarter from $1)"),
    Form::of(1, &["second"], "extract(second from $1)"),
    Form::of(1, &["week", "weekofyear"], "extract(week from $1)"),
    Form::of(1, &["year"], "extract(year from $1)"),
    Form::of(2, &["datediff"], "cast($1 as date) - cast($2 as date)"),
    Form::of(2, &["mod"], "$1 % $2"),
    Form::of(2, &["regexp_matches"], "regexp_like($1, $2)"),
    Form::of(2, &["str_split", "string_split"], "string_to_array($1, $2)"),
    Form::of(2, &["strftime"], "to_char($1, $2)"),
    Form::of(2, &["strptime"], "to_timestamp($1, $2)"),
    Form::of_unit("day", DIFFERENCE, "cast($3 as date) - cast($2 as date)"),
    Form::of_unit("year", DIFFERENCE, "extract(year from $3) - extract(year from $2)"),
];

/// An aggregate, and its name in the library. It keeps its clauses.
const LIST: (&str, &str) = ("list", "array_agg");

struct Calls;

impl VisitorMut for Calls {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        if let Expr::Function(call) = expr {
            if let [ObjectNamePart::Identifier(name)] = call.name.0.as_mut_slice()
                && normal(name) == LIST.0
            {
                LIST.1.clone_into(&mut name.value);
            }
            if let Some(written) = written(call) {
                *expr = written;
            }
        }
        ControlFlow::Continue(())
    }
}

/// The expression of a call without clauses.
fn written(call: &Function) -> Option<Expr> {
    let [ObjectNamePart::Identifier(name)] = call.name.0.as_slice() else { return None };
    let FunctionArguments::List(FunctionArgumentList { duplicate_treatment: None, args, clauses }) =
        &call.args
    else {
        return None;
    };
    let has_clauses = call.filter.is_some()
        || call.null_treatment.is_some()
        || call.over.is_some()
        || !call.within_group.is_empty()
        || !clauses.is_empty();
    if has_clauses {
        return None;
    }
    let name = normal(name);
    let given: Vec<&Expr> = args.iter().map(value).collect::<Option<_>>()?;
    let is_meant = |form: &&Form| {
        let is_of_unit = form.unit.is_none_or(|unit| given.first().is_some_and(|first| is_text(first, unit)));
        form.names.contains(&name.as_str()) && form.args == given.len() && is_of_unit
    };
    let form = FORMS.iter().find(is_meant)?;
    let mut written = parsed(form)?;
    // It never breaks off.
    let _whole = visit_expressions_mut(&mut written, |part| {
        let at = number(part);
        if let Some(value) = at.and_then(|at| given.get(at)) {
            *part = (*value).clone();
            if at == Some(1) {
                write_microseconds(&name, part);
            }
        }
        ControlFlow::<()>::Continue(())
    });
    Some(Expr::Nested(Box::new(written)))
}

/// Writes `%f` in the format of a call as microseconds. The library takes it for nanoseconds, and the 5 of
/// `.5` for five of them.
fn write_microseconds(call: &str, format: &mut Expr) {
    let Expr::Value(ValueWithSpan { value: Value::SingleQuotedString(text), .. }) = format else { return };
    let written: fn(&str) -> String = match call {
        "strftime" => |part| part.replace("%f", "%6f"),
        // As many digits as a text has.
        "strptime" => |part| part.replace(".%f", "%.f").replace("%f", "%6f"),
        _ => return,
    };
    // Two signs stand for one.
    *text = text.split("%%").map(written).collect::<Vec<String>>().join("%%");
}

fn value(arg: &FunctionArg) -> Option<&Expr> {
    match arg {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(value)) => Some(value),
        _ => None,
    }
}

fn is_text(value: &Expr, text: &str) -> bool {
    let Expr::Value(ValueWithSpan { value: Value::SingleQuotedString(found), .. }) = value else {
        return false;
    };
    found.eq_ignore_ascii_case(text)
}

fn parsed(form: &Form) -> Option<Expr> {
    Parser::new(&GenericDialect {}).try_with_sql(form.written).ok()?.parse_expr().ok()
}

/// The number of the argument that a part of a form stands for, from 0.
fn number(part: &Expr) -> Option<usize> {
    let Expr::Value(ValueWithSpan { value: Value::Placeholder(name), .. }) = part else { return None };
    name.strip_prefix('$')?.parse::<usize>().ok()?.checked_sub(1)
}

#[cfg(test)]
mod tests {
    use super::{FORMS, parsed};
    use crate::sql::small_tables::{rows_in, session_of};

    #[test]
    fn calls_are_the_expressions_that_they_stand_for() {
        let mut session = session_of(&[
            "create table t as select timestamp '2024-02-29 13:14:15' as d, 7 as n, 'x,y' as s",
        ]);
        for (value, expected) in [
            ("year(d)", "2024"),
            ("MONTH(d) + 1", "3"),
            ("quarter(d)", "1"),
            ("day(d)", "29"),
            ("hour(d)", "13"),
            ("minute(d)", "14"),
            ("second(d)", "15"),
            ("week(d)", "9"),
            ("dayofyear(d)", "60"),
            ("dayname(d)", "Thursday"),
            ("monthname(d)", "February"),
            ("epoch(timestamp '1970-01-01 00:00:02') = 2", "true"),
            ("last_day(d)", "2024-02-29"),
            ("year(last_day(d - interval '1 year'))", "2023"),
            ("strftime(d, '%Y/%m')", "2024/02"),
            ("strftime(d, '%S.%f %%f')", "15.000000 %f"),
            ("strptime('2024-03-01 05:06', '%Y-%m-%d %H:%M') = timestamp '2024-03-01 05:06:00'", "true"),
            (
                "strptime('2024-03-01 05:06:07.25', '%Y-%m-%d %H:%M:%S.%f') = timestamp '2024-03-01 05:06:07.25'",
                "true",
            ),
            ("date_diff('day', date '2024-01-01', d)", "59"),
            ("datediff('Year', timestamp '2023-12-31 23:00:00', d)", "1"),
            ("datediff(d, date '2024-02-01')", "28"),
            ("2 * mod(n + 1, 5)", "6"),
            ("count_if(n > 3)", "1"),
            ("array_length(list(distinct n order by n))", "1"),
            ("string_split(s, ',')[2]", "y"),
            ("regexp_matches(s, 'y$')", "true"),
            ("version() like 'Tharsis _%._%'", "true"),
        ] {
            assert_eq!(rows_in(&mut session, &format!("select {value} from t")), [expected], "{value}");
        }
        let query = "select year(d), count(*) from t where month(d) = 2 group by year(d) order by year(d)";
        assert_eq!(rows_in(&mut session, query), ["2024 1"]);
        assert_eq!(session.frame(query).columns().expect("names"), ["year(d)", "count(*)"]);
        for (value, form) in [
            ("year(d, n)", "write extract(year from ..)"),
            ("date_diff('week', d, d)", "write a::date - b::date"),
        ] {
            let error = session.run(&format!("select {value} from t")).expect_err(value);
            assert!(error.to_string().contains(form), "{value}: {error}");
        }
    }

    #[test]
    fn each_form_has_each_argument_but_the_unit_once() {
        for form in &FORMS {
            assert!(parsed(form).is_some(), "{}", form.written);
            let begin = if form.unit.is_some() { 2 } else { 1 };
            for number in begin..=form.args {
                let argument = format!("${number}");
                assert_eq!(form.written.matches(argument.as_str()).count(), 1, "{}", form.written);
            }
        }
    }
}
