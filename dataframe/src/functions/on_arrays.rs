//! Calls of functions as calls on arrays, and the zone that is a constant of some.

use arrow::array::ArrayRef;
use datafusion::common::{Result, ScalarValue, plan_err};
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs};

/// The value of a call, made of its arguments as arrays of one length: of one row, if all are constants.
pub(super) fn on_arrays(
    args: ScalarFunctionArgs,
    make: impl FnOnce(&[ArrayRef]) -> Result<ArrayRef>,
) -> Result<ColumnarValue> {
    let is_constant = args.args.iter().all(|argument| matches!(argument, ColumnarValue::Scalar(_)));
    let rows = if is_constant { 1 } else { args.number_rows };
    let arrays = args.args.into_iter().map(|argument| argument.into_array(rows));
    let made = make(&arrays.collect::<Result<Vec<ArrayRef>>>()?)?;
    Ok(if is_constant {
        ColumnarValue::Scalar(ScalarValue::try_from_array(&made, 0)?)
    } else {
        ColumnarValue::Array(made)
    })
}

/// The name of a zone, which is the last argument: one constant, also beside no rows. The others stay.
pub(super) fn zone_behind(args: &mut ScalarFunctionArgs, name: &str) -> Result<String> {
    match args.args.pop() {
        Some(ColumnarValue::Scalar(zone)) => Ok(zone.try_as_str().flatten().unwrap_or_default().to_owned()),
        _ => plan_err!("{name} takes a zone as its last argument"),
    }
}
