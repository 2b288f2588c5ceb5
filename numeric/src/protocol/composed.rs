//! Element-wise operations of programs that are composed of others.

use super::Failure;
use super::args::Args;
use super::row::{Row, tensor, tuple};
use super::value::Value;
use crate::tensor::Tensor;

/// Operations of one argument, of two, and with options.
pub(super) const COMPOSED: &[Row] = &[
    ("np.allclose", CLOSE, "whether all elements are close", |_, args| tensor(close(args)?.all(..))),
    ("np.angle", "(z, deg=False)", "the angle of complex numbers", |_, args| {
        let angle = args.tensor(0, "z")?.angle();
        tensor(if args.flag(1, "deg", false)? { angle.degrees() } else { angle })
    }),
    (
        "np.array_equal",
        "(a1, a2, equal_nan=False)",
        "whether the shapes and all elements are equal",
        |_, args| {
            let (a, b) = (args.tensor(0, "a1")?, args.tensor(1, "a2")?);
            tensor(a.array_equal(&b, args.flag(2, "equal_nan", false)?))
        },
    ),
    ("np.array_equiv", "(a1, a2)", "whether all elements are equal once broadcast", |_, args| {
        let (a, b) = (args.tensor(0, "a1")?, args.tensor(1, "a2")?);
        tensor(a.array_equiv(&b))
    }),
    ("np.divmod", "(x1, x2)", "quotient and remainder", |_, args| {
        let (x, y) = (args.tensor(0, "x1")?, args.need(1, "x2")?.operand()?);
        pair(x.divmod(y))
    }),
    ("np.fix", "(x)", "rounded towards zero", |_, args| tensor(args.tensor(0, "x")?.fix())),
    ("np.float_power", "(x1, x2)", "powers in float64", |_, args| {
        let (x, y) = (args.tensor(0, "x1")?, args.need(1, "x2")?.operand()?);
        tensor(x.float_power(y))
    }),
    ("np.frexp", "(x)", "mantissa and power of two", |_, args| pair(args.tensor(0, "x")?.frexp())),
    ("np.i0", "(x)", "modified Bessel function of order 0", |_, args| one(args, Tensor::i0)),
    ("np.isclose", CLOSE, "whether elements are close", |_, args| tensor(close(args)?)),
    ("np.iscomplex", "(x)", "whether there is an imaginary part", |_, args| one(args, Tensor::iscomplex)),
    ("np.isneginf", "(x)", "whether minus infinity", |_, args| one(args, Tensor::isneginf)),
    ("np.isposinf", "(x)", "whether plus infinity", |_, args| one(args, Tensor::isposinf)),
    ("np.isreal", "(x)", "whether there is no imaginary part", |_, args| one(args, Tensor::isreal)),
    ("np.modf", "(x)", "fractional and whole part", |_, args| pair(args.tensor(0, "x")?.modf())),
    ("np.nan_to_num", "(x, nan=0.0)", "numbers in place of NaN and infinities", |_, args| {
        let x = args.tensor(0, "x")?;
        let nan = args.number_or(usize::MAX, "nan", 0.0)?;
        tensor(x.nan_to_num(nan))
    }),
    ("np.round", "(a, decimals=0)", "rounded to decimals", |_, args| {
        let x = args.tensor(0, "a")?;
        let decimals = u32::try_from(args.integer_or(1, "decimals", 0)?);
        tensor(x.round(decimals.map_err(|_| Failure::missing("negative decimals"))?))
    }),
    ("np.sinc", "(x)", "sin(pi x) / (pi x)", |_, args| one(args, Tensor::sinc)),
];

const CLOSE: &str = "(a, b, rtol=1e-05, atol=1e-08, equal_nan=False)";

fn close(args: &mut Args) -> Result<Tensor, Failure> {
    let (a, b) = (args.need(0, "a")?.operand()?, args.need(1, "b")?.operand()?);
    let a = b.dtype().map_or_else(|| a.clone().alone(), |dtype| a.clone().beside(dtype));
    let (rtol, atol) = (args.number_or(2, "rtol", 1e-5)?, args.number_or(3, "atol", 1e-8)?);
    Ok(a.isclose_or_nan(b, rtol, atol, args.flag(4, "equal_nan", false)?))
}

fn one(args: &mut Args, f: fn(&Tensor) -> Tensor) -> Result<Value, Failure> {
    tensor(f(&args.tensor(0, "x")?))
}

fn pair((a, b): (Tensor, Tensor)) -> Result<Value, Failure> {
    tuple([a, b])
}
