//! Plans of Fourier transforms.

use realfft::{ComplexToReal, RealFftPlanner, RealToComplex};
use rustfft::{Fft, FftDirection, FftNum, FftPlanner};
use std::sync::Arc;

/// float32 or float64.
pub trait Transformed: FftNum {
    /// Complex to complex.
    fn plan(len: usize, direction: FftDirection) -> Arc<dyn Fft<Self>>;

    /// Real to the first half of the complex result, which is Hermitian.
    fn plan_real_forward(len: usize) -> Arc<dyn RealToComplex<Self>>;

    /// The first half of a Hermitian line to real.
    fn plan_real_inverse(len: usize) -> Arc<dyn ComplexToReal<Self>>;
}

macro_rules! transformed {
    ($($t:ty),*) => {$(
        impl Transformed for $t {
            fn plan(len: usize, direction: FftDirection) -> Arc<dyn Fft<$t>> {
                FftPlanner::new().plan_fft(len, direction)
            }

            fn plan_real_forward(len: usize) -> Arc<dyn RealToComplex<$t>> {
                RealFftPlanner::new().plan_fft_forward(len)
            }

            fn plan_real_inverse(len: usize) -> Arc<dyn ComplexToReal<$t>> {
                RealFftPlanner::new().plan_fft_inverse(len)
            }
        }
    )*};
}
transformed!(f32, f64);
