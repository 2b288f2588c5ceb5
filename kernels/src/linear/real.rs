//! Real numbers in which symmetric matrices are taken apart.

use tharsis_dense::DenseReal;

/// float32 or float64.
pub(crate) trait Real: DenseReal + Send + Sync {
    /// The distance from one to the next number.
    const EPSILON: Self;

    /// The number nearest to one of float64.
    fn of(x: f64) -> Self;

    fn magnitude(self) -> Self;

    fn root(self) -> Self;
}

macro_rules! real {
    ($($t:ty),*) => {$(
        impl Real for $t {
            const EPSILON: $t = <$t>::EPSILON;

            #[inline(always)]
            fn of(x: f64) -> $t {
                x as $t
            }

            #[inline(always)]
            fn magnitude(self) -> $t {
                self.abs()
            }

            #[inline(always)]
            fn root(self) -> $t {
                self.sqrt()
            }
        }
    )*};
}
real!(f32, f64);
