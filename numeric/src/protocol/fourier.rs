//! Fourier transforms of programs.

use super::Failure;
use super::args::Args;
use super::row::{Row, tensor};
use super::value::Value;
use crate::cosine::{CosineCall, CosineType};
use crate::fft::{Norm, fftfreq, rfftfreq};
use crate::tensor::Tensor;
use tharsis_kernels::Kind;

/// All operations of `np.fft`, and the cosine transforms of `scipy.fft`.
pub(super) const FOURIER: &[Row] = &[
    ("np.fft.fft", "(a, n=None, axis=-1, norm=None)", "transform along an axis", |_, args| {
        along(args, Tensor::fft)
    }),
    ("np.fft.fft2", "(a, s=None, axes=(-2, -1), norm=None)", "transform along two axes", |_, args| {
        several(args, true, Tensor::fftn)
    }),
    ("np.fft.fftfreq", "(n, d=1.0, dtype=None, device=None)", "frequencies of a transform", |_, args| {
        frequencies(args, fftfreq)
    }),
    ("np.fft.fftn", "(a, s=None, axes=None, norm=None)", "transform along several axes", |_, args| {
        several(args, false, Tensor::fftn)
    }),
    ("np.fft.fftshift", "(x, axes=None)", "frequency zero in the middle", |_, args| {
        let x = args.tensor(0, "x")?;
        tensor(x.fftshift(args.integers(1, "axes")?.as_deref()))
    }),
    ("np.fft.hfft", "(a, n=None, axis=-1, norm=None)", "real transform of a Hermitian line", |_, args| {
        along(args, Tensor::hfft)
    }),
    ("np.fft.ifft", "(a, n=None, axis=-1, norm=None)", "inverse transform along an axis", |_, args| {
        along(args, Tensor::ifft)
    }),
    ("np.fft.ifft2", "(a, s=None, axes=(-2, -1), norm=None)", "inverse along two axes", |_, args| {
        several(args, true, Tensor::ifftn)
    }),
    ("np.fft.ifftn", "(a, s=None, axes=None, norm=None)", "inverse along several axes", |_, args| {
        several(args, false, Tensor::ifftn)
    }),
    ("np.fft.ifftshift", "(x, axes=None)", "the inverse of fftshift", |_, args| {
        let x = args.tensor(0, "x")?;
        tensor(x.ifftshift(args.integers(1, "axes")?.as_deref()))
    }),
    ("np.fft.ihfft", "(a, n=None, axis=-1, norm=None)", "the inverse of hfft", |_, args| {
        along(args, Tensor::ihfft)
    }),
    ("np.fft.irfft", "(a, n=None, axis=-1, norm=None)", "the inverse of rfft", |_, args| {
        along(args, Tensor::irfft)
    }),
    ("np.fft.irfft2", "(a, s=None, axes=(-2, -1), norm=None)", "the inverse of rfft2", |_, args| {
        several(args, true, Tensor::irfftn)
    }),
    ("np.fft.irfftn", "(a, s=None, axes=None, norm=None)", "the inverse of rfftn", |_, args| {
        several(args, false, Tensor::irfftn)
    }),
    ("np.fft.rfft", "(a, n=None, axis=-1, norm=None)", "half the transform of real numbers", |_, args| {
        along(args, Tensor::rfft)
    }),
    (
        "np.fft.rfft2",
        "(a, s=None, axes=(-2, -1), norm=None)",
        "half the transform along two axes",
        |_, args| several(args, true, Tensor::rfftn),
    ),
    (
        "np.fft.rfftfreq",
        "(n, d=1.0, dtype=None, device=None)",
        "frequencies of half a transform",
        |_, args| frequencies(args, rfftfreq),
    ),
    (
        "np.fft.rfftn",
        "(a, s=None, axes=None, norm=None)",
        "half the transform along several axes",
        |_, args| several(args, false, Tensor::rfftn),
    ),
    ("scipy.fft.dct", COSINE, "cosine transform along an axis", |_, args| cosine(args, [false; 2])),
    ("scipy.fft.dctn", COSINES, "cosine transform along several axes", |_, args| cosines(args, [false; 2])),
    ("scipy.fft.dst", COSINE, "sine transform along an axis", |_, args| cosine(args, [true, false])),
    ("scipy.fft.dstn", COSINES, "sine transform along several axes", |_, args| cosines(args, [true, false])),
    ("scipy.fft.idct", COSINE, "inverse cosine transform along an axis", |_, args| {
        cosine(args, [false, true])
    }),
    ("scipy.fft.idctn", COSINES, "inverse cosine transform along several axes", |_, args| {
        cosines(args, [false, true])
    }),
    ("scipy.fft.idst", COSINE, "inverse sine transform along an axis", |_, args| cosine(args, [true; 2])),
    ("scipy.fft.idstn", COSINES, "inverse sine transform along several axes", |_, args| {
        cosines(args, [true; 2])
    }),
];

const COSINE: &str = "(x, type=2, n=None, axis=-1, norm=None, orthogonalize=None)";
const COSINES: &str = "(x, type=2, s=None, axes=None, norm=None, orthogonalize=None)";

fn norm(args: &mut Args, place: usize) -> Result<Norm, Failure> {
    match args.take(place, "norm") {
        None | Some(Value::None) => Ok(Norm::Backward),
        Some(Value::Text(name)) => Ok(Norm::named(&name)?),
        Some(other) => Err(Failure::value(format!("Invalid norm value {other:?}"))),
    }
}

type Along = fn(&Tensor, Option<usize>, i64, Norm) -> Tensor;
type Several = fn(&Tensor, Option<&[i64]>, Option<&[i64]>, Norm) -> Tensor;

fn along(args: &mut Args, transform: Along) -> Result<Value, Failure> {
    let x = args.tensor(0, "a")?;
    let len = length(args, 1)?;
    let axis = args.integer_or(2, "axis", -1)?;
    tensor(transform(&x, len, axis, norm(args, 3)?))
}

/// The length of a transform.
fn length(args: &mut Args, place: usize) -> Result<Option<usize>, Failure> {
    match args.take(place, "n") {
        None | Some(Value::None) => Ok(None),
        Some(len) => {
            let len = len.integer()?;
            let refused = || Failure::value(format!("Invalid number of FFT data points ({len}) specified."));
            Ok(Some(usize::try_from(len).map_err(|_| refused())?))
        }
    }
}

/// The array of a cosine or sine transform, and the transform but for lengths and axes; whether it is one of
/// sines, and an inverse.
fn cosine_call(args: &mut Args, [sine, is_inverse]: [bool; 2]) -> Result<(Tensor, CosineCall), Failure> {
    let x = args.tensor(0, "x")?;
    let kind = match args.integer_or(1, "type", 2)? {
        1 => CosineType::One,
        2 => CosineType::Two,
        3 => CosineType::Three,
        4 => CosineType::Four,
        _ => return Err(Failure::value(if sine { "invalid DST type" } else { "invalid DCT type" })),
    };
    let norm = norm(args, 4)?;
    let orthogonalize = match args.take(usize::MAX, "orthogonalize") {
        None | Some(Value::None) => None,
        Some(Value::Number(chosen)) => Some(chosen.is_true()),
        Some(other) => return Err(Failure::kind(format!("orthogonalize: expected a bool, found {other:?}"))),
    };
    // Arrays are not overwritten, and the executor has its threads.
    args.take(usize::MAX, "overwrite_x");
    args.take(usize::MAX, "workers");
    Ok((x, CosineCall { kind, is_inverse, norm, orthogonalize, sine }))
}

fn cosine(args: &mut Args, form: [bool; 2]) -> Result<Value, Failure> {
    let (x, call) = cosine_call(args, form)?;
    let len = length(args, 2)?;
    tensor(x.cosine(call, len, args.integer_or(3, "axis", -1)?))
}

fn cosines(args: &mut Args, form: [bool; 2]) -> Result<Value, Failure> {
    let (x, call) = cosine_call(args, form)?;
    let (lens, axes) = (args.integers(2, "s")?, args.integers(3, "axes")?);
    tensor(x.cosines(call, lens.as_deref(), axes.as_deref())?)
}

fn several(args: &mut Args, two: bool, transform: Several) -> Result<Value, Failure> {
    let x = args.tensor(0, "a")?;
    let (lens, axes) = (args.integers(1, "s")?, args.integers(2, "axes")?);
    let axes = axes.or_else(|| two.then(|| vec![-2, -1]));
    let norm = norm(args, 3)?;
    tensor(transform(&x, lens.as_deref(), axes.as_deref(), norm))
}

fn frequencies(args: &mut Args, of: fn(usize, f64) -> Tensor) -> Result<Value, Failure> {
    args.placement()?;
    let count = args.need(0, "n")?;
    let count = count.integer().map_err(|_| Failure::value("n should be an integer"))?;
    let distance = args.number_or(1, "d", 1.0)?;
    let dtype = args.dtype(usize::MAX, "dtype")?;
    if let Some(dtype) = dtype.filter(|dtype| dtype.kind() != Kind::Float) {
        return Err(Failure::value(format!("frequencies are real floating numbers, not {dtype}")));
    }
    let count = usize::try_from(count).map_err(|_| Failure::value("negative dimensions are not allowed"))?;
    let made = of(count, distance);
    tensor(dtype.map_or_else(|| made.clone(), |dtype| made.astype(dtype)))
}

#[cfg(test)]
mod tests {
    use crate::protocol::answer;
    use serde_json::json;
    use std::path::Path;

    #[test]
    fn frequencies_have_the_dtype_that_is_asked_for() {
        for (operation, expected) in
            [("np.fft.fftfreq", json!([0.0, 0.5, -1.0, -0.5])), ("np.fft.rfftfreq", json!([0.0, 0.5, 1.0]))]
        {
            let step = json!(["r", operation, [4], {"d": 0.5, "dtype": {"dt": "float32"}}]);
            let reply = answer(&json!({"prog": [step], "out": ["r"]}), Path::new("."));
            assert_eq!(reply["out"]["r"]["arr"]["dtype"], "<f4", "{reply}");
            assert_eq!(reply["out"]["r"]["arr"]["lit"], expected);
        }
    }
}
