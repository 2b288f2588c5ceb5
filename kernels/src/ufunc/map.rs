//! The loops under all element-wise functions: one function, one block.

use crate::chunk::Buffer;
use crate::cpu::{Kernel, Level};
use crate::element::Element;
use crate::scalar::Scalar;

/// An argument of an element-wise function: a block of elements, or one value for all.
#[derive(Clone, Copy)]
pub(crate) enum Operand<'a> {
    Block(&'a Buffer, usize),
    One(Scalar),
}

/// An [`Operand`] whose element type is known.
#[derive(Clone, Copy)]
pub(crate) enum Arg<'a, T> {
    Block(&'a [T]),
    One(T),
}

impl<'a> Operand<'a> {
    /// The first `n` elements.
    #[inline]
    pub(crate) fn arg<T: Element>(self, n: usize) -> Arg<'a, T> {
        match self {
            Operand::Block(buffer, offset) => Arg::Block(&buffer.elements::<T>()[offset..offset + n]),
            Operand::One(scalar) => Arg::One(T::from_scalar(scalar)),
        }
    }
}

/// A function of one element.
pub(crate) trait UnaryFn<T> {
    type Out: Element;
    /// As [`Kernel::LEVEL`], for the loop over this function.
    const LEVEL: Level = Level::Avx512;
    fn apply(x: T) -> Self::Out;
}

/// A function of two elements of one type.
pub(crate) trait BinaryFn<T> {
    type Out: Element;
    /// As [`Kernel::LEVEL`], for the loop over this function.
    const LEVEL: Level = Level::Avx512;
    fn apply(a: T, b: T) -> Self::Out;
}

/// Applies `F` to each element.
pub(crate) struct Map1<'a, T, F: UnaryFn<T>> {
    pub(crate) x: Arg<'a, T>,
    pub(crate) out: &'a mut [F::Out],
}

impl<T: Element, F: UnaryFn<T>> Kernel for Map1<'_, T, F> {
    type Output = ();
    const LEVEL: Level = F::LEVEL;

    #[inline(always)]
    fn run(self) {
        match self.x {
            Arg::Block(x) => self.out.iter_mut().zip(x).for_each(|(out, &x)| *out = F::apply(x)),
            Arg::One(x) => self.out.fill(F::apply(x)),
        }
    }
}

/// Applies `F` to each pair of elements.
pub(crate) struct Map2<'a, T, F: BinaryFn<T>> {
    pub(crate) a: Arg<'a, T>,
    pub(crate) b: Arg<'a, T>,
    pub(crate) out: &'a mut [F::Out],
}

impl<T: Element, F: BinaryFn<T>> Kernel for Map2<'_, T, F> {
    type Output = ();
    const LEVEL: Level = F::LEVEL;

    #[inline(always)]
    fn run(self) {
        let out = self.out;
        match (self.a, self.b) {
            (Arg::Block(a), Arg::Block(b)) => {
                for ((out, &a), &b) in out.iter_mut().zip(a).zip(b) {
                    *out = F::apply(a, b);
                }
            }
            (Arg::Block(a), Arg::One(b)) => out.iter_mut().zip(a).for_each(|(out, &a)| *out = F::apply(a, b)),
            (Arg::One(a), Arg::Block(b)) => out.iter_mut().zip(b).for_each(|(out, &b)| *out = F::apply(a, b)),
            (Arg::One(a), Arg::One(b)) => out.fill(F::apply(a, b)),
        }
    }
}
