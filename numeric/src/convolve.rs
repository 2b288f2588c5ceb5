//! Convolutions and correlations of lines.

use crate::create::zeros;
use crate::error::{Blame, Result};
use crate::joined::all_known;
use crate::late::late;
use crate::manipulate::concatenate;
use crate::operand::cast;
use crate::tensor::{Tensor, carry};
use tharsis_graph::ops::Correlate;
use tharsis_graph::shape::UNKNOWN;
use tharsis_graph::{Error as GraphError, Meta};
use tharsis_kernels::{DType, Kind, promote};

/// The places of one line beneath the other that count: NumPy's `mode`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Overlap {
    /// Those where they overlap at all: m + n - 1.
    Full,
    /// As many as the longer one has, in the middle: max(m, n).
    Same,
    /// Those where the shorter one lies within the other: max(m, n) - min(m, n) + 1.
    Valid,
}

impl Overlap {
    /// The mode of this name.
    ///
    /// ```
    /// use tharsis_numeric::convolve::Overlap;
    /// assert_eq!(Overlap::from_name("same").ok(), Some(Overlap::Same));
    /// assert_eq!(Overlap::from_name("some").unwrap_err().class(), "ValueError");
    /// ```
    ///
    /// # Errors
    /// `ValueError` if there is none.
    #[track_caller]
    pub fn from_name(name: &str) -> Result<Overlap> {
        let text = "Use one of 'valid', 'same', or 'full' for convolve/correlate mode";
        match name {
            "full" => Ok(Overlap::Full),
            "same" => Ok(Overlap::Same),
            "valid" => Ok(Overlap::Valid),
            _ => Err(GraphError::Value(text.to_owned())).blame(),
        }
    }

    /// Zeros before and behind a line for one of `short` elements.
    fn borders(self, short: usize) -> [usize; 2] {
        match self {
            Overlap::Full => [short - 1; 2],
            Overlap::Same => [short / 2, short - short / 2 - 1],
            Overlap::Valid => [0; 2],
        }
    }
}

impl Tensor {
    /// NumPy's `convolve`: sums of products with another line in reverse, at each of its places; (m,) and
    /// (n,) to the extent that the mode has, the common dtype.
    ///
    /// ```
    /// use tharsis_numeric::{array, convolve::Overlap};
    /// let x = array([1.0, 2.0, 3.0]).convolve(&array([0.0, 1.0, 0.5]), Overlap::Full);
    /// assert_eq!(x.to_vec::<f64>()?, [0.0, 1.0, 2.5, 4.0, 1.5]);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// `ValueError` for a line without elements, and for more than one axis.
    ///
    /// # Distributed
    /// A task has a part of the longer line, as many more elements as the shorter one has, and that one.
    #[track_caller]
    pub fn convolve(&self, other: &Tensor, mode: Overlap) -> Tensor {
        let lines = [(self, "a"), (other, "v")];
        for (line, name) in lines {
            let shape = carry!(line.shape());
            if shape == [0] {
                return Tensor::bad_value(format!("{name} cannot be empty"), &[self, other]);
            }
            if 1 < shape.len() {
                return Tensor::bad_value("object too deep for desired array", &[self, other]);
            }
        }
        if !all_known(&[self, other]) {
            let meta = carry!(awaited(self, other));
            return late("convolve", mode, meta, &[self, other], move |x| x[0].convolve(&x[1], mode));
        }
        let [a, b] = [self, other].map(|line| line.atleast(1));
        let (long, short) = if carry!(a.size()) < carry!(b.size()) { (b, a) } else { (a, b) };
        long.slid(&short.flip(None), mode)
    }

    /// NumPy's `correlate`: sums of products with the conjugate of another line, at each of its places; (m,)
    /// and (n,) to the extent that the mode has, the common dtype.
    ///
    /// ```
    /// use tharsis_numeric::{array, convolve::Overlap};
    /// let x = array([1.0, 2.0, 3.0]).correlate(&array([0.0, 1.0, 0.5]), Overlap::Valid);
    /// assert_eq!(x.to_vec::<f64>()?, [3.5]);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// `ValueError` for a line without elements, and unless both have one axis.
    ///
    /// # Distributed
    /// As [`Tensor::convolve`].
    #[track_caller]
    pub fn correlate(&self, other: &Tensor, mode: Overlap) -> Tensor {
        for (line, name) in [(self, "first"), (other, "second")] {
            let shape = carry!(line.shape());
            if shape.len() != 1 {
                let depth = if shape.is_empty() { "of too small depth for" } else { "too deep for" };
                return Tensor::bad_value(format!("object {depth} desired array"), &[self, other]);
            }
            if shape == [0] {
                return Tensor::bad_value(format!("{name} array argument cannot be empty"), &[self, other]);
            }
        }
        if !all_known(&[self, other]) {
            let meta = carry!(awaited(self, other));
            return late("correlate", mode, meta, &[self, other], move |x| x[0].correlate(&x[1], mode));
        }
        let other = if carry!(other.dtype()).is_complex() { other.conj() } else { other.clone() };
        if carry!(self.size()) < carry!(other.size()) {
            other.slid(self, mode).flip(None)
        } else {
            self.slid(&other, mode)
        }
    }

    /// Sums of products with another line, which is not longer, at each of its places.
    #[track_caller]
    fn slid(&self, other: &Tensor, mode: Overlap) -> Tensor {
        let dtype = promote(carry!(self.dtype()), carry!(other.dtype()));
        let short = carry!(other.shape())[0];
        let wide = match dtype {
            DType::U64 => DType::U64,
            dtype if dtype.is_complex() => DType::C128,
            dtype if dtype.kind() < Kind::Float => DType::I64,
            _ => DType::F64,
        };
        let (x, kernel) = (cast(self, wide), cast(other, wide));
        let [before, behind] = mode.borders(short);
        let border = |count: usize| cast(&zeros(&[count]), wide);
        let bordered = match before + behind {
            0 => x.clone(),
            _ => concatenate(&[&border(before), &x, &border(behind)], 0),
        };
        cast(&Tensor::apply(Correlate, &[&bordered, &kernel, &x]), dtype)
    }
}

/// Facts about a result whose size is not known.
fn awaited(a: &Tensor, b: &Tensor) -> Result<Meta> {
    Ok(Meta { shape: vec![UNKNOWN], dtype: promote(a.dtype()?, b.dtype()?) })
}
