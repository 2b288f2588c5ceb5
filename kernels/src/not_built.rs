//! The functions that a build without the feature `dense` lacks. They are there for whoever calls them, and
//! refuse: a plan is the same data in every build, so a worker may meet one that it cannot run.

use crate::chunk::Chunk;
use crate::cosine::Cosine;
use crate::error::KernelError;
use crate::factor::Factor;
use crate::fourier::Fourier;
use crate::linear::Linear;
use crate::linear::tile::Tile;

/// The refusal of functions of matrices.
const MATRICES: KernelError = KernelError::NotBuilt("linear algebra");
/// The refusal of transforms of lines.
const TRANSFORMS: KernelError = KernelError::NotBuilt("Fourier transforms");

macro_rules! refuse {
    ($($type:ty: $function:ident($($arguments:tt)*) -> $result:ty, $refusal:ident;)*) => {$(
        impl $type {
            /// Refuses, since the program was built without dense linear algebra.
            ///
            /// # Errors
            /// Always `NotBuilt`.
            pub fn $function($($arguments)*) -> Result<$result, KernelError> {
                Err($refusal)
            }
        }
    )*};
}

refuse! {
    Cosine: run_parts(&self, _: &[Chunk]) -> Chunk, TRANSFORMS;
    Factor: run(self, _: &Chunk) -> Chunk, MATRICES;
    Fourier: run_parts(&self, _: &[Chunk]) -> Chunk, TRANSFORMS;
    Linear: run(self, _: &[Chunk], _: usize) -> Vec<Chunk>, MATRICES;
    Tile: run(self, _: &[Chunk]) -> Vec<Chunk>, MATRICES;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Complex;
    use crate::cosine::CosineType;
    use crate::factor::basis_rows;
    use crate::fourier::Transform;
    use crate::product::Accumulator;

    #[test]
    fn each_function_refuses_and_says_what_is_missing() {
        let x = Chunk::from_elements(&[2, 2], &[1.0, 0.0, 0.0, 1.0]).unwrap();
        let fourier = Fourier { transform: Transform::RealForward, axis: 0, len: 2, scale: 1.0 };
        let (kind, axis, len) = (CosineType::Two, 0, 2);
        let cosine = Cosine { kind, axis, len, scale: 1.0, orthogonal: false, sine: false };
        let one = std::slice::from_ref(&x);
        let refusals = [
            (fourier.run(&x).err(), TRANSFORMS),
            (cosine.run(&x).err(), TRANSFORMS),
            (Factor::Cholesky.run(&x).err(), MATRICES),
            (Linear::Inverse.run(one, 1).err(), MATRICES),
            (Tile::Determinant.run(one).err(), MATRICES),
            (basis_rows(&x, &x).err(), MATRICES),
        ];
        for (found, expected) in refusals {
            assert_eq!(found, Some(expected));
        }
    }

    #[test]
    fn products_of_floats_refuse_and_those_of_whole_numbers_do_not() {
        fn product<T: crate::Element>(one: T) -> Result<(), KernelError> {
            let x = Chunk::from_elements(&[1, 1], &[one])?;
            Accumulator::new(x.dtype(), &[1, 1])?.add(&x, &x)
        }
        let floats = [product(1_f32), product(1_f64), product(Complex::new(1_f64, 0.0))];
        let refusal = Err(KernelError::NotBuilt("products of floats"));
        assert!(floats.iter().all(|found| *found == refusal), "{floats:?}");
        assert_eq!(product(1_i64), Ok(()));
    }
}
