//! Sums of products of programs: by Einstein's convention, chains of matrices, lines beneath lines.

use super::Failure;
use super::args::Args;
use super::row::{Row, tensor};
use super::value::Value;
use crate::convolve::Overlap;
use crate::einsum::{einsum, multi_dot};
use crate::index::Index;
use crate::operand::cast;
use crate::tensor::Tensor;
use tharsis_kernels::{Scalar, promote};

/// Sums of products.
pub(super) const CONTRACTIONS: &[Row] = &[
    ("np.convolve", "(a, v, mode='full')", "sums of products with a line in reverse", |_, args| {
        let (a, v) = (args.tensor(0, "a")?, args.tensor(1, "v")?);
        tensor(a.convolve(&v, overlap(args, "full")?))
    }),
    ("np.correlate", "(a, v, mode='valid')", "sums of products with a line at each place", |_, args| {
        let (a, v) = (args.tensor(0, "a")?, args.tensor(1, "v")?);
        tensor(a.correlate(&v, overlap(args, "valid")?))
    }),
    (
        "np.einsum",
        "(subscripts, *operands, dtype=None, optimize=False)",
        "sums of products by Einstein's convention, in an order that is chosen here",
        |_, args| sum_of_products(args),
    ),
    ("np.linalg.multi_dot", "(arrays)", "the product of several matrices in the best order", |_, args| {
        let matrices = match args.need(0, "arrays")? {
            Value::Tensor(stack) => stack.unstack(0)?,
            parts => Args::parts(parts)?,
        };
        tensor(multi_dot(&matrices.iter().collect::<Vec<_>>()))
    }),
];

fn overlap(args: &mut Args, default: &str) -> Result<Overlap, Failure> {
    match args.take(2, "mode") {
        None => Ok(Overlap::from_name(default)?),
        Some(Value::Text(name)) => Ok(Overlap::from_name(&name)?),
        Some(mode) => match mode.integer()? {
            0 => Ok(Overlap::Valid),
            1 => Ok(Overlap::Same),
            2 => Ok(Overlap::Full),
            _ => Err(Failure::value("integer convolve/correlate mode must be 0, 1, or 2")),
        },
    }
}

fn sum_of_products(args: &mut Args) -> Result<Value, Failure> {
    let first = args.take(0, "subscripts");
    let (text, operands) = match first {
        None => return Err(Failure::value(NO_OPERAND)),
        Some(Value::Text(text)) => {
            let operands = args.rest(1).into_iter().map(Value::tensor).collect::<Result<Vec<_>, _>>()?;
            (text, operands)
        }
        Some(operand) => numbered(std::iter::once(operand).chain(args.rest(1)).collect())?,
    };
    // The order of contractions is chosen from the sizes in any case.
    args.take(usize::MAX, "optimize");
    let wanted = args.dtype(usize::MAX, "dtype")?;
    let mut given = operands;
    if let Some(wanted) = wanted {
        for (at, operand) in given.iter_mut().enumerate() {
            let own = operand.dtype()?;
            if promote(own, wanted) != wanted {
                let text = format!("Iterator operand {at} dtype could not be cast from {own} to {wanted}");
                return Err(Failure::kind(format!("{text} according to the rule 'safe'")));
            }
            *operand = cast(operand, wanted);
        }
    }
    tensor(einsum(&text, &given.iter().collect::<Vec<_>>()))
}

/// The form in which a list of numbers follows each operand, and perhaps a last list is for the result.
fn numbered(mut values: Vec<Value>) -> Result<(String, Vec<Tensor>), Failure> {
    let result = if values.len() % 2 == 1 { values.pop() } else { None };
    let (mut operands, mut parts) = (Vec::new(), Vec::new());
    let mut values = values.into_iter();
    while let (Some(operand), Some(numbers)) = (values.next(), values.next()) {
        operands.push(operand.tensor()?);
        parts.push(letters(&numbers)?);
    }
    let text = parts.join(",");
    match result {
        None => Ok((text, operands)),
        Some(numbers) => Ok((format!("{text}->{}", letters(&numbers)?), operands)),
    }
}

fn letters(numbers: &Value) -> Result<String, Failure> {
    let (Value::List(numbers) | Value::Tuple(numbers)) = numbers else {
        return Err(Failure::kind(
            "subscripts for each operand must be a sequence of integers or an ellipsis",
        ));
    };
    let letter = |number: &Value| match number {
        Value::Index(Index::Ellipsis) => Ok("...".to_owned()),
        Value::Number(Scalar::Int(number @ 0..26)) => Ok(char::from(b'A' + *number as u8).to_string()),
        Value::Number(Scalar::Int(number @ 26..52)) => {
            Ok(char::from(b'a' + (*number - 26) as u8).to_string())
        }
        _ => Err(Failure::value("subscript is not within the valid range [0, 52)")),
    };
    numbers.iter().map(letter).collect()
}

const NO_OPERAND: &str = "must specify the einstein sum subscripts string and at least one operand";
