//! Functions of rows that the library does not have. A plan names them, and every process knows them by name.

mod durations;
mod kernel;
mod text_cuts;
mod text_kernels;
mod time_texts;
mod wall_times;

pub(crate) use durations::duration;
pub(crate) use kernel::Constants;
pub(crate) use text_cuts::{BEGIN, BETWEEN, END};
pub(crate) use text_kernels::{TIME_BY_FORMAT, TIME_OF_ISO, TIME_OR_NONE, whole_time};
pub(crate) use time_texts::{IN_UTC, days_of, has_offset, reads};
pub(crate) use wall_times::time_of_reading;
pub(super) use wall_times::{per_second, seconds_ahead, ticks_of_reading};

use super::named::Named;
use super::whole::{ACROSS, Measure, of_values};
use crate::length_text::{LengthForm, length_texts};
use arrow::array::{
    ArrayRef, AsArray, BooleanArray, Float64Array, Int64Array, ListBuilder, StringArray, StringBuilder,
    UInt64Array,
};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, Float64Type, Int64Type};
use datafusion::common::{Result, exec_datafusion_err, internal_err};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use kernel::Kernel;
use std::sync::{Arc, OnceLock};

/// The name of the function that rounds floats.
pub(crate) const ROUND: &str = "tharsis_round";

/// The name of the function that makes texts of durations.
pub(crate) const LENGTH_TEXT: &str = "tharsis_length_text";

/// The name of the function that gives a number that looks random.
pub(crate) const RANDOM: &str = "tharsis_random";

#[derive(Debug, PartialEq, Eq, Hash)]
struct RowFunction {
    kernel: Named<Kernel>,
    signature: Signature,
}

impl ScalarUDFImpl for RowFunction {
    fn name(&self) -> &str {
        self.kernel.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(match self.kernel.part {
            Kernel::Text(_) | Kernel::Length => DataType::Utf8,
            Kernel::Truth(_) => DataType::Boolean,
            Kernel::Whole(_) | Kernel::Optional(_) | Kernel::Checked(_) | Kernel::Perhaps(_) => {
                DataType::Int64
            }
            Kernel::Texts(_) => DataType::List(Arc::new(Field::new_list_field(DataType::Utf8, true))),
            Kernel::Random => DataType::UInt64,
            Kernel::Round | Kernel::Across => DataType::Float64,
        })
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let mut given = args.args.into_iter();
        let first = given.next().ok_or_else(|| exec_datafusion_err!("{} without arguments", self.name()))?;
        let first = first.into_array(args.number_rows)?;
        let mut constants = Vec::new();
        for argument in given {
            match argument {
                ColumnarValue::Scalar(value) => constants.push(value),
                ColumnarValue::Array(_) => return internal_err!("{} takes constants", self.name()),
            }
        }
        Ok(ColumnarValue::Array(self.kernel.part.run(&first, &Constants(constants))?))
    }
}

impl Kernel {
    fn run(self, array: &ArrayRef, constants: &Constants) -> Result<ArrayRef> {
        match self {
            Kernel::Random => {
                let seed = constants.whole(0).unwrap_or_default() as u64;
                let numbers = cast(array, &DataType::Int64)?;
                let numbers = numbers.as_primitive::<Int64Type>().iter();
                Ok(Arc::new(numbers.map(|n| n.map(|n| mixed(n as u64, seed))).collect::<UInt64Array>()))
            }
            Kernel::Round => {
                let decimals = constants.whole(0).unwrap_or_default() as i32;
                let floats = cast(array, &DataType::Float64)?;
                let floats = floats.as_primitive::<Float64Type>();
                // With one zero: small negative numbers become it too.
                Ok(Arc::new(floats.unary::<_, Float64Type>(|float| rounded(float, decimals) + 0.0)))
            }
            Kernel::Across => {
                let measure = Measure {
                    aggregate: constants.whole(0).unwrap_or_default(),
                    part: constants.float(1).unwrap_or_default(),
                    ddof: constants.float(2).unwrap_or_default(),
                    interpolation: constants.whole(3).unwrap_or_default(),
                };
                let lists = array.as_list_opt::<i32>();
                let lists = lists.ok_or_else(|| exec_datafusion_err!("a measure of rows takes lists"))?;
                let measured = lists.iter().map(|list| {
                    let list = list?;
                    of_values(measure, list.as_primitive_opt::<Float64Type>()?.iter().flatten().collect())
                });
                Ok(Arc::new(measured.collect::<Float64Array>()))
            }
            Kernel::Length => {
                let form = constants.whole(0).map_or(LengthForm::Own, LengthForm::of_finest);
                Ok(Arc::new(StringArray::from(length_texts(array, form)?)))
            }
            _ => self.run_on_texts(array, constants),
        }
    }

    fn run_on_texts(self, array: &ArrayRef, constants: &Constants) -> Result<ArrayRef> {
        let array = cast(array, &DataType::Utf8)?;
        let texts = array.as_string::<i32>().iter();
        Ok(match self {
            Kernel::Text(step) => Arc::new(texts.map(|text| step(text?, constants)).collect::<StringArray>()),
            Kernel::Truth(step) => {
                Arc::new(texts.map(|text| Some(text.is_some_and(step))).collect::<BooleanArray>())
            }
            Kernel::Whole(step) => {
                Arc::new(texts.map(|text| text.map(|text| step(text, constants))).collect::<Int64Array>())
            }
            Kernel::Optional(step) => {
                Arc::new(texts.map(|text| step(text?, constants)).collect::<Int64Array>())
            }
            Kernel::Checked(step) => {
                let checked =
                    |text: &str| step(text, constants).map_err(|text| exec_datafusion_err!("{text}"));
                let numbers = texts.map(|text| text.map(checked).transpose());
                Arc::new(numbers.collect::<Result<Int64Array>>()?)
            }
            Kernel::Perhaps(step) => {
                let perhaps =
                    |text: &str| step(text, constants).map_err(|text| exec_datafusion_err!("{text}"));
                let numbers = texts.map(|text| text.map_or(Ok(None), perhaps));
                Arc::new(numbers.collect::<Result<Int64Array>>()?)
            }
            Kernel::Texts(step) => {
                let mut lists = ListBuilder::new(StringBuilder::new());
                for text in texts {
                    let parts = text.map(|text| step(text, constants));
                    lists.append_option(parts.map(|parts| parts.into_iter().map(Some).collect::<Vec<_>>()));
                }
                Arc::new(lists.finish())
            }
            Kernel::Random | Kernel::Round | Kernel::Across | Kernel::Length => {
                return internal_err!("numbers are not made of texts");
            }
        })
    }
}

/// The float rounded to decimals, halves to even ones, as NumPy does it.
fn rounded(float: f64, decimals: i32) -> f64 {
    let scale = 10_f64.powi(decimals.abs());
    let rounded = if decimals >= 0 {
        (float * scale).round_ties_even() / scale
    } else {
        (float / scale).round_ties_even() * scale
    };
    if rounded.is_finite() { rounded } else { float }
}

/// The number's bits mixed with those of the seed, as SplitMix64 does.
fn mixed(number: u64, seed: u64) -> u64 {
    const STEP: u64 = 0x9e37_79b9_7f4a_7c15;
    let mix = |bits: u64| {
        let bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    };
    mix(number.wrapping_add(mix(seed.wrapping_add(STEP))).wrapping_add(STEP))
}

/// All functions, for the registry of a session.
pub(super) fn row_functions() -> &'static [Arc<ScalarUDF>] {
    static FUNCTIONS: OnceLock<Vec<Arc<ScalarUDF>>> = OnceLock::new();
    FUNCTIONS.get_or_init(|| {
        let texts = text_kernels::KERNELS.iter().chain(text_cuts::KERNELS).copied();
        let others = [
            (RANDOM, Kernel::Random),
            (ROUND, Kernel::Round),
            (ACROSS, Kernel::Across),
            (LENGTH_TEXT, Kernel::Length),
        ];
        let all = texts.chain(others);
        let function = |(name, kernel)| {
            let signature = Signature::variadic_any(Volatility::Immutable);
            Arc::new(ScalarUDF::from(RowFunction { kernel: Named { name, part: kernel }, signature }))
        };
        all.map(function).collect()
    })
}

/// A call of a function by its name.
pub(crate) fn call(name: &str, args: Vec<Expr>) -> crate::error::Result<Expr> {
    let found = row_functions().iter().find(|function| function.name() == name);
    let function = found.ok_or_else(|| crate::error::Error::Internal(format!("no function {name}")))?;
    Ok(function.call(args))
}
