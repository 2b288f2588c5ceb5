//! Times of statements.
//!
//! A text stands for a time without seconds too, `'2024-03-30 6:00'`, where it is cast to one, compared with
//! one, or a value beside one. Of a reading that the clock of a zone leaves out or shows twice it is the
//! first moment; the cast of the library fails for it.
//!
//! A moment is read on the clock of its zone, whatever it becomes: the library takes that of UTC for
//! `ts::timestamp`, and that of the zone for `ts::date`, where it panics near the end of its calendar.
//! `to_timestamp(text, format)` of the library leaves an hour out that has no minute; it has one here, and
//! formats of which other parts would be left out are refused.

use super::clocks::values_of;
use super::moment_types::has_own_clock;
use super::sides_with_moments::types_of;
use super::types_within::has_times;
use crate::error::Result;
use crate::functions::full_formats::{FULL_FORMATS, Parts, behind_minutes, full_formats};
use crate::functions::full_times::{FULL_TIMES, full_time, full_times};
use crate::functions::local_times::local_times;
use crate::functions::zoned_texts::{ZONED_TEXTS, zoned_text, zoned_texts};
use crate::functions::zoned_times::zoned_times;
use crate::sql::plans::{columns, projection, with_parts_of, with_value};
use crate::value::is_text;
use arrow::array::timezone::Tz;
use arrow::datatypes::DataType;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, Result as EngineResult, ScalarValue};
use datafusion::logical_expr::expr::{InSubquery, ScalarFunction, SetComparison};
use datafusion::logical_expr::logical_plan::{Join, Subquery};
use datafusion::logical_expr::{
    BinaryExpr, Cast, Expr, ExprSchemable, LogicalPlan, Operator, TryCast, Union, cast, lit,
};
use std::sync::Arc;

/// Functions that cast their first argument, to days and times among other types.
const CASTS: [&str; 5] = ["arrow_cast", "arrow_try_cast", "cast_to_type", "to_date", "try_cast_to_type"];

/// The plan whose times are those that statements mean.
pub(in crate::sql) fn as_meant(plan: LogicalPlan) -> Result<LogicalPlan> {
    if !has_times(&plan)? {
        return Ok(plan);
    }
    let changed = plan
        .transform_up_with_subqueries(|node| with_parts_of(node, &with_time)?.transform_data(with_sides))?;
    Ok(changed.data)
}

fn with_time(mut part: Expr, schema: &DFSchema) -> EngineResult<Transformed<Expr>> {
    let meant = match &part {
        Expr::Cast(Cast { expr, field }) => of_cast(expr, field.data_type(), false, schema)
            .map(|expr| Expr::Cast(Cast { expr: Box::new(expr), field: field.clone() })),
        Expr::TryCast(TryCast { expr, field }) => of_cast(expr, field.data_type(), true, schema)
            .map(|expr| Expr::TryCast(TryCast { expr: Box::new(expr), field: field.clone() })),
        Expr::ScalarFunction(call) if matches!(call.func.name(), "date_part" | "date_trunc") => {
            of_part(call, schema)
        }
        Expr::ScalarFunction(call) if is_timestamp(call) => timestamp(call, schema)?,
        Expr::ScalarFunction(call) if CASTS.contains(&call.func.name()) => cast_by_call(call, &part, schema),
        Expr::ScalarFunction(call) if call.func.name() == "to_local_time" => shown(call, schema),
        _ => None,
    };
    if let Some(meant) = meant {
        return Ok(Transformed::yes(meant));
    }
    let is_new = match &mut part {
        Expr::InSubquery(InSubquery { expr, subquery, .. })
        | Expr::SetComparison(SetComparison { expr, subquery, .. }) => beside_rows(expr, subquery, schema)?,
        Expr::ScalarFunction(call) if call.func.name() == "date_bin" => {
            beside_times(call.args.iter_mut().skip(1).collect(), schema)
        }
        // It makes texts of times beside a text.
        Expr::ScalarFunction(call) if call.func.name() == "nvl" => false,
        part => {
            let mut is_new = false;
            for values in values_of(part) {
                is_new |= beside_times(values, schema);
            }
            is_new
        }
    };
    Ok(Transformed::new_transformed(part, is_new))
}

/// The value that is cast in the place of another one; `None` for that one itself. A cast that fails is an
/// error, or missing.
fn of_cast(value: &Expr, to: &DataType, or_missing: bool, schema: &DFSchema) -> Option<Expr> {
    match (value.get_type(schema).ok()?, to) {
        (
            DataType::Timestamp(_, Some(_)),
            DataType::Timestamp(_, None) | DataType::Date32 | DataType::Date64,
        ) => Some(local_times(value.clone(), or_missing)),
        (
            DataType::Timestamp(_, None) | DataType::Date32 | DataType::Date64,
            DataType::Timestamp(unit, Some(zone)),
        ) if has_own_clock(zone) => Some(zoned_times(value.clone(), *unit, zone, or_missing)),
        (_, DataType::Timestamp(..)) => in_time(value, to, or_missing, schema),
        (_, DataType::Date32 | DataType::Date64) => full_text(value, schema),
        _ => None,
    }
}

fn is_of_texts(dtype: &DataType) -> bool {
    match dtype {
        DataType::Dictionary(_, texts) => is_text(texts),
        dtype => is_text(dtype),
    }
}

/// The texts of a dictionary, which functions of the library refuse; `None` for other values.
fn of_dictionary(value: &Expr, schema: &DFSchema) -> Option<Expr> {
    match value.get_type(schema).ok()? {
        DataType::Dictionary(_, texts) if is_text(&texts) => Some(cast(value.clone(), *texts)),
        _ => None,
    }
}

/// Texts with full times; `None` for texts that have them.
fn full(texts: &Expr) -> Option<Expr> {
    match texts {
        Expr::Literal(..) => other_literal(texts, full_time),
        // The plan of a view comes here again.
        texts if is_made(texts) => None,
        texts => Some(full_times(texts.clone())),
    }
}

/// Whether texts are made here of others.
fn is_made(texts: &Expr) -> bool {
    matches!(texts, Expr::ScalarFunction(call) if [FULL_TIMES, ZONED_TEXTS].contains(&call.func.name()))
}

/// A literal with another text; `None` for one whose text stays, and for other values.
fn other_literal(text: &Expr, other: impl Fn(&str) -> Option<String>) -> Option<Expr> {
    let Expr::Literal(value, metadata) = text else { return None };
    let other = match value {
        ScalarValue::Utf8(Some(text)) => ScalarValue::Utf8(Some(other(text)?)),
        ScalarValue::LargeUtf8(Some(text)) => ScalarValue::LargeUtf8(Some(other(text)?)),
        ScalarValue::Utf8View(Some(text)) => ScalarValue::Utf8View(Some(other(text)?)),
        _ => return None,
    };
    Some(Expr::Literal(other, metadata.clone()))
}

/// The moment of a literal that is a reading of the clock of a zone, in whole seconds: the cast of the
/// library fails for readings that the clock leaves out or shows twice. `None` for others, such as those with
/// a zone.
fn moment(text: &Expr, time: &DataType, or_missing: bool) -> Option<Expr> {
    let (DataType::Timestamp(unit, Some(zone)), Some(text)) = (time, literal(text)) else { return None };
    let full = full_time(text);
    let reading = full.as_deref().unwrap_or(text);
    (has_own_clock(zone) && is_reading(reading)).then(|| zoned_times(lit(reading), *unit, zone, or_missing))
}

fn is_reading(text: &str) -> bool {
    let has_form = |text: &str, form: &str| {
        let is_right =
            |(letter, form): (u8, u8)| if form == b'0' { letter.is_ascii_digit() } else { letter == form };
        text.len() == form.len() && text.bytes().zip(form.bytes()).all(is_right)
    };
    ["0000-00-00", "0000-00-00 00:00:00", "0000-00-00T00:00:00"].iter().any(|form| has_form(text, form))
}

/// A text that stands for another time, as a moment or with full times; `None` for one that is right, and for
/// other values.
fn in_time(value: &Expr, time: &DataType, or_missing: bool, schema: &DFSchema) -> Option<Expr> {
    moment(value, time, or_missing).or_else(|| match time {
        DataType::Timestamp(_, Some(zone)) if has_own_clock(zone) => of_zone(value, zone, schema),
        _ => full_text(value, schema),
    })
}

/// A text that stands for one moment of a zone; `None` for one that does, and for other values.
fn of_zone(value: &Expr, zone: &Arc<str>, schema: &DFSchema) -> Option<Expr> {
    let full = full_text(value, schema);
    let zoned = match full.as_ref().unwrap_or(value) {
        text @ Expr::Literal(..) => {
            let clock: Option<Tz> = zone.parse().ok();
            clock.and_then(|clock| other_literal(text, |text| zoned_text(text, clock)))
        }
        // The plan of a view comes here again.
        Expr::ScalarFunction(call) if call.func.name() == ZONED_TEXTS => None,
        texts if texts.get_type(schema).is_ok_and(|dtype| is_text(&dtype)) => {
            Some(zoned_texts(texts.clone(), zone))
        }
        _ => None,
    };
    zoned.or(full)
}

/// The time that a text beside values of these types stands for: a moment, if one of them is.
fn time_among<'a>(types: impl Iterator<Item = &'a DataType>) -> Option<&'a DataType> {
    let times: Vec<&DataType> = types.filter(|dtype| matches!(dtype, DataType::Timestamp(..))).collect();
    let of_zone = times.iter().find(|dtype| matches!(dtype, DataType::Timestamp(_, Some(_))));
    of_zone.or(times.first()).copied()
}

/// Makes moments, or full times, of the texts among values if one of them is a time. Whether there are some.
fn beside_times(values: Vec<&mut Expr>, schema: &DFSchema) -> bool {
    let types: Vec<Option<DataType>> = values.iter().map(|value| value.get_type(schema).ok()).collect();
    let Some(time) = time_among(types.iter().flatten()) else { return false };
    let mut is_new = false;
    for value in values {
        if let Some(meant) = in_time(value, time, false, schema) {
            *value = meant;
            is_new = true;
        }
    }
    is_new
}

/// Makes times of the texts that a value is compared with, or of the value. Whether there are some.
fn beside_rows(value: &mut Expr, rows: &mut Subquery, schema: &DFSchema) -> EngineResult<bool> {
    let Ok(own) = value.get_type(schema) else { return Ok(false) };
    let of_rows = rows.subquery.schema().fields().first().map(|field| field.data_type().clone());
    match (own, of_rows) {
        (time @ DataType::Timestamp(..), Some(texts))
            if is_of_texts(&texts) && !has_made_times(&rows.subquery, 0) =>
        {
            rows.subquery = with_value(Arc::clone(&rows.subquery), |text, schema| {
                in_time(&text, &time, false, schema).unwrap_or(text)
            })?;
        }
        (_, Some(time @ DataType::Timestamp(..))) => match in_time(value, &time, false, schema) {
            Some(meant) => *value = meant,
            None => return Ok(false),
        },
        _ => return Ok(false),
    }
    Ok(true)
}

/// The operator, whose sides have times in texts that are beside times of other sides.
fn with_sides(node: LogicalPlan) -> EngineResult<Transformed<LogicalPlan>> {
    match node {
        LogicalPlan::Union(union) => united(union),
        LogicalPlan::Join(join) => joined(join),
        node => Ok(Transformed::no(node)),
    }
}

/// A join, whose keys that are texts are times if the others are.
fn joined(mut join: Join) -> EngineResult<Transformed<LogicalPlan>> {
    let mut is_new = false;
    for (left, right) in &mut join.on {
        let types = [left.get_type(join.left.schema()).ok(), right.get_type(join.right.schema()).ok()];
        let Some(time) = time_among(types.iter().flatten()) else { continue };
        for (key, side) in [(left, &join.left), (right, &join.right)] {
            if let Some(meant) = in_time(key, time, false, side.schema()) {
                *key = meant;
                is_new = true;
            }
        }
    }
    let join = LogicalPlan::Join(join);
    if is_new { join.recompute_schema().map(Transformed::yes) } else { Ok(Transformed::no(join)) }
}

fn united(Union { inputs, schema }: Union) -> EngineResult<Transformed<LogicalPlan>> {
    let types: Vec<Vec<Option<DataType>>> = inputs.iter().map(|side| types_of(side)).collect();
    let times = (0..schema.fields().len())
        .map(|at| time_among(types.iter().filter_map(|side| side.get(at)?.as_ref())));
    let times: Vec<Option<&DataType>> = times.collect();
    let (mut sides, mut is_new) = (Vec::new(), false);
    for (side, own) in inputs.into_iter().zip(&types) {
        let to = own.iter().zip(&times).enumerate().map(|(at, (dtype, time))| {
            time.filter(|_| dtype.as_ref().is_some_and(is_of_texts) && !has_made_times(&side, at))
        });
        let to: Vec<Option<&DataType>> = to.collect();
        let has_texts = to.iter().any(Option::is_some);
        is_new |= has_texts;
        sides.push(if has_texts { with_times(side, &to)? } else { side });
    }
    Ok(Transformed::new_transformed(LogicalPlan::Union(Union { inputs: sides, schema }), is_new))
}

/// The rows with the times that the texts of some columns stand for.
fn with_times(rows: Arc<LogicalPlan>, times: &[Option<&DataType>]) -> EngineResult<Arc<LogicalPlan>> {
    let rows = Arc::unwrap_or_clone(rows).recompute_schema()?;
    let exprs = columns(&rows).into_iter().zip(rows.schema().iter()).enumerate();
    let exprs = exprs.map(|(at, (column, (table, field)))| {
        let time = times.get(at).copied().flatten();
        match time.and_then(|time| in_time(&column, time, false, rows.schema())) {
            Some(meant) => meant.alias_qualified(table.cloned(), field.name()),
            None => column,
        }
    });
    let exprs = exprs.collect();
    projection(exprs, Arc::new(rows))
}

/// Whether a column has times made here: the plan of a prepared statement comes here again.
fn has_made_times(rows: &LogicalPlan, at: usize) -> bool {
    let LogicalPlan::Projection(made) = rows else { return false };
    made.expr.get(at).is_some_and(|expr| is_made(&expr.clone().unalias_nested().data))
}

/// A text with full times; `None` for one that has them, and for other values.
fn full_text(value: &Expr, schema: &DFSchema) -> Option<Expr> {
    if let Some(texts) = of_dictionary(value, schema) {
        return full(&texts);
    }
    if value.get_type(schema).is_ok_and(|dtype| is_text(&dtype)) { full(value) } else { None }
}

/// A part of a time in a text, or the begin of one: its second argument is the time.
fn of_part(call: &ScalarFunction, schema: &DFSchema) -> Option<Expr> {
    let [part, time] = call.args.as_slice() else { return None };
    full_text(time, schema).map(|time| call.func.call(vec![part.clone(), time]))
}

fn is_moment(value: &Expr, schema: &DFSchema) -> bool {
    matches!(value.get_type(schema), Ok(DataType::Timestamp(_, Some(_))))
}

/// A call that casts, of the value that a cast takes in the place of its argument. Texts have formats in
/// `to_date`.
fn cast_by_call(call: &ScalarFunction, whole: &Expr, schema: &DFSchema) -> Option<Expr> {
    let (value, others) = call.args.split_first()?;
    let (name, to) = (call.func.name(), whole.get_type(schema).ok()?);
    if name == "to_date" && !is_moment(value, schema) {
        return None;
    }
    let value = of_cast(value, &to, name.contains("try_"), schema)?;
    Some(call.func.call(std::iter::once(value).chain(others.iter().cloned()).collect()))
}

/// The reading of a moment's clock, for which the function of the library panics near the end of its
/// calendar.
fn shown(call: &ScalarFunction, schema: &DFSchema) -> Option<Expr> {
    let [moment] = call.args.as_slice() else { return None };
    is_moment(moment, schema).then(|| local_times(moment.clone(), false))
}

fn is_timestamp(call: &ScalarFunction) -> bool {
    let name = call.func.name();
    name.starts_with("to_timestamp") || name == "to_unixtime"
}

/// A call that makes moments of texts; `None` for one that is right as it is.
fn timestamp(call: &ScalarFunction, schema: &DFSchema) -> EngineResult<Option<Expr>> {
    let texts: Vec<Option<Expr>> = call.args.iter().map(|arg| of_dictionary(arg, schema)).collect();
    if texts.iter().any(Option::is_some) {
        let args = texts.into_iter().zip(&call.args).map(|(texts, arg)| texts.unwrap_or_else(|| arg.clone()));
        let plain = ScalarFunction::new_udf(Arc::clone(&call.func), args.collect());
        let meant = timestamp(&plain, schema)?;
        return Ok(Some(meant.unwrap_or(Expr::ScalarFunction(plain))));
    }
    let [text, formats @ ..] = call.args.as_slice() else { return Ok(None) };
    if !text.get_type(schema).is_ok_and(|dtype| is_text(&dtype)) {
        return Ok(None);
    }
    if formats.is_empty() {
        return Ok(full(text).map(|text| call.func.call(vec![text])));
    }
    for format in formats {
        if !format.get_type(schema).is_ok_and(|dtype| is_text(&dtype)) || is_full(format) {
            return Ok(None);
        }
        if let Some(format) = literal(format) {
            Parts::checked(format)?;
        }
    }
    let is_right = |format: &Expr| literal(format).is_some_and(|format| !Parts::of(format).lacks_minutes());
    if formats.iter().all(is_right) {
        return Ok(None);
    }
    // Minutes stand before them all: the library wants a zone at the end.
    let both = BinaryExpr::new(Box::new(lit("00 ")), Operator::StringConcat, Box::new(text.clone()));
    let formats = formats.iter().map(|format| match literal(format) {
        Some(format) => lit(behind_minutes(format)),
        None => full_formats(format.clone()),
    });
    Ok(Some(call.func.call(std::iter::once(Expr::BinaryExpr(both)).chain(formats).collect())))
}

/// Whether a format is behind minutes: the plan of a view comes here again.
fn is_full(format: &Expr) -> bool {
    matches!(format, Expr::ScalarFunction(call) if call.func.name() == FULL_FORMATS)
}

fn literal(format: &Expr) -> Option<&str> {
    match format {
        Expr::Literal(value, _) => value.try_as_str().flatten(),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
