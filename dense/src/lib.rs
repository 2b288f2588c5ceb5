//! Dense linear algebra of faer and Fourier transforms of rustfft, compiled once.
//!
//! A generic function is compiled in each crate that calls it. These libraries are nearly half of the machine
//! code of kernels, and without this crate each test program of kernels would compile them again. The methods
//! here are what `tharsis-kernels` calls of them for float32, float64 and complex numbers; which one to call,
//! and with what, is for kernels to say. All of them use the calling thread alone.

#![warn(missing_docs)]
#![forbid(unsafe_code)]

mod field;
mod real;
mod transform;

pub use field::DenseField;
pub use real::DenseReal;
pub use transform::Transformed;
