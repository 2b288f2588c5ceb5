//! Decimals beside floats in a column of `VALUES`.
//!
//! The library makes decimals of 15 digits behind the point of both, which have no room for large numbers and
//! are others than the literals. As in UNION, literals are the decimals that they are written as, if one type
//! has all of them, and decimals beside other floats are floats.

use datafusion::logical_expr::sqlparser::ast::{
    CastKind, DataType, ExactNumberInfo, Expr, TypedString, UnaryOperator, Value,
};

/// Digits of decimals at most, of whole numbers, and those of a decimal that is written without any.
const DIGITS_MAX: u64 = 38;
const WHOLE_DIGITS: u64 = 20;
const USUAL: (u64, u64) = (28, 10);

/// A number of a column, and the digits of its type before and behind the point.
enum Number {
    Decimal(u64, u64),
    /// A literal with a point.
    Literal(String, u64, u64),
    Whole,
    /// Another float.
    Float,
}

/// Writes the numbers of a column of VALUES as values of one type, if decimals are beside floats.
pub(in crate::sql) fn write_numbers(values: &mut [&mut Expr]) {
    let numbers: Vec<Option<Number>> = values.iter().map(|value| number(value)).collect();
    let has_decimals = numbers.iter().flatten().any(|number| matches!(number, Number::Decimal(..)));
    let is_float = |number: &Number| matches!(number, Number::Literal(..) | Number::Float);
    if !has_decimals || !numbers.iter().flatten().any(is_float) {
        return;
    }
    let (mut before, mut behind, mut has_floats) = (0, 0, false);
    for number in numbers.iter().flatten() {
        let (own_before, own_behind) = match number {
            Number::Decimal(before, behind) | Number::Literal(_, before, behind) => (*before, *behind),
            Number::Whole => (WHOLE_DIGITS, 0),
            Number::Float => {
                has_floats = true;
                continue;
            }
        };
        before = before.max(own_before);
        behind = behind.max(own_behind);
    }
    let are_floats = has_floats || DIGITS_MAX < before + behind;
    for (value, number) in values.iter_mut().zip(numbers) {
        match number {
            Some(Number::Decimal(..)) if are_floats => {
                **value = cast((**value).clone(), DataType::DoublePrecision);
            }
            Some(Number::Literal(text, before, behind)) if !are_floats => {
                let text = Expr::Value(Value::SingleQuotedString(text).with_empty_span());
                **value = cast(text, decimal(before, behind));
            }
            _ => {}
        }
    }
}

fn number(value: &Expr) -> Option<Number> {
    match value {
        Expr::Nested(inner) => number(inner),
        Expr::TypedString(TypedString { data_type, .. }) | Expr::Cast { data_type, .. } => of_type(data_type),
        Expr::UnaryOp { op: UnaryOperator::Minus, expr } => match number(expr)? {
            Number::Literal(text, before, behind) if !text.starts_with('-') => {
                Some(Number::Literal(format!("-{text}"), before, behind))
            }
            number @ (Number::Whole | Number::Float) => Some(number),
            _ => None,
        },
        Expr::Value(literal) => match &literal.value {
            Value::Number(text, _) => Some(of_literal(text)),
            _ => None,
        },
        _ => None,
    }
}

fn of_literal(text: &str) -> Number {
    if text.contains(['e', 'E']) {
        return Number::Float;
    }
    match text.split_once('.') {
        Some((whole, fraction)) => {
            Number::Literal(text.to_owned(), whole.len().max(1) as u64, fraction.len() as u64)
        }
        None => Number::Whole,
    }
}

fn of_type(dtype: &DataType) -> Option<Number> {
    match dtype {
        DataType::Decimal(digits) | DataType::Numeric(digits) | DataType::Dec(digits) => {
            let (before, behind) = match digits {
                ExactNumberInfo::None => USUAL,
                ExactNumberInfo::Precision(all) => (*all, 0),
                ExactNumberInfo::PrecisionAndScale(all, scale) => {
                    let behind = u64::try_from(*scale).ok()?;
                    (all.saturating_sub(behind), behind)
                }
            };
            Some(Number::Decimal(before, behind))
        }
        DataType::Double(_) | DataType::DoublePrecision | DataType::Float(_) | DataType::Real => {
            Some(Number::Float)
        }
        _ => None,
    }
}

fn decimal(before: u64, behind: u64) -> DataType {
    let scale = i64::try_from(behind).unwrap_or(0);
    DataType::Decimal(ExactNumberInfo::PrecisionAndScale(before + behind, scale))
}

fn cast(value: Expr, data_type: DataType) -> Expr {
    Expr::Cast { kind: CastKind::Cast, expr: Box::new(value), data_type, array: false, format: None }
}

#[cfg(test)]
mod tests {
    use crate::sql::small_tables::{cells, session_of};

    #[test]
    fn decimals_beside_floats_in_values_are_of_one_type() {
        let mut session = session_of(&[]);
        for (values, condition) in [
            ("(1::decimal(10,2)), (123456.789)", "count(*) filter (where x = 123456.789) = 1"),
            ("(-0.125), (decimal '1.25')", "min(x) = -0.125 and max(x) = 1.25"),
            ("(1::decimal(10,2)), (2), (0.5)", "sum(x) = 3.5"),
            ("(1::decimal(10,2)), (1e20)", "max(x) = 1e20 and min(x) = 1"),
            ("(1::decimal(10,2)), (1e20::double)", "max(x) = 1e20 and min(x) = 1"),
            ("(1e-20::double), (null), (1::decimal(10,2))", "min(x) = 1e-20 and max(x) = 1"),
        ] {
            let query = format!("select {condition} from (values {values}) s (x)");
            assert_eq!(cells(&mut session, &query), [["true"]], "{query}");
        }
    }
}
