//! The value of a subquery that may have one row at most.

use arrow::array::AsArray;
use arrow::datatypes::{DataType, Int64Type};
use datafusion::common::{Result, exec_datafusion_err, exec_err, plan_err};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use std::sync::{Arc, OnceLock};

/// A value beside the number of rows that have one, which is an error if there are several.
pub(crate) fn only_row(value: Expr, rows: Expr) -> Expr {
    function().call(vec![value, rows])
}

/// The function, of which a process has one.
pub(super) fn function() -> Arc<ScalarUDF> {
    static FUNCTION: OnceLock<Arc<ScalarUDF>> = OnceLock::new();
    let made = || {
        let signature = Signature::user_defined(Volatility::Immutable);
        Arc::new(ScalarUDF::from(OnlyRow { signature }))
    };
    Arc::clone(FUNCTION.get_or_init(made))
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct OnlyRow {
    signature: Signature,
}

impl ScalarUDFImpl for OnlyRow {
    fn name(&self) -> &str {
        "tharsis_only_row"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        match types {
            [value, _] => Ok(vec![value.clone(), DataType::Int64]),
            _ => plan_err!("{} takes 2 arguments", self.name()),
        }
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        let first = types.first().cloned();
        first.ok_or_else(|| exec_datafusion_err!("{} without arguments", self.name()))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [value, rows] = args.args.as_slice() else {
            return plan_err!("{} takes 2 arguments", self.name());
        };
        let rows = rows.to_array(args.number_rows)?;
        let rows = rows.as_primitive::<Int64Type>();
        if rows.iter().flatten().any(|rows| 1 < rows) {
            return exec_err!("Scalar subquery returned more than one row");
        }
        Ok(value.clone())
    }
}
