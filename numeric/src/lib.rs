//! NumPy-style tensors: lazy, chunked, fused.
//!
//! This crate does not know how chunks move between processes: it builds graphs and hands them to an
//! [`Executor`](tharsis_graph::Executor).
//!
//! # Design
//! A [`Tensor`] is a handle of a node of the logical graph. Methods have NumPy's names and semantics and
//! return tensors. Errors of shapes and dtypes are found where the expression is built. The tensor carries
//! the error, with that line of the program, and returns it when it is computed or asked for its shape: see
//! [`Tensor::check`]. `# Errors` of a method says which errors its tensor may carry. Most functions are
//! compositions of the few operators of `tharsis_graph::ops`; the element-wise ones are a table in
//! `tharsis_kernels::ufunc`.
//!
//! ```
//! use tharsis_numeric::random::default_rng;
//!
//! let points = default_rng(42).random(&[1_000_000, 2]);
//! let inside = (&points * &points).sum(1).sqrt().less(1.0).count_nonzero(..);
//! let pi = 4.0 * inside.item()?.to_f64() / 1e6;
//! assert!((pi - std::f64::consts::PI).abs() < 0.01);
//! # Ok::<(), tharsis_numeric::Error>(())
//! ```

#![forbid(unsafe_code)]

pub mod advanced;
pub mod assign;
mod bar;
mod comparison;
mod composed;
pub mod computation;
pub mod convolve;
pub mod coordinates;
pub mod cosine;
pub mod create;
pub mod distributions;
pub mod dtypes;
pub mod eager;
pub mod einsum;
pub mod elementwise;
pub mod equality;
pub mod error;
pub mod errstate;
pub mod factor;
pub mod fft;
pub mod foreign;
pub mod grid;
#[cfg(feature = "hdf5")]
pub mod hdf5;
pub mod histogram;
pub mod index;
pub mod integer;
pub mod joined;
mod late;
pub mod linalg;
pub mod linear;
pub mod manipulate;
pub mod map;
mod nan;
pub mod native;
pub mod npy;
pub mod operand;
pub mod order;
pub mod overlap;
pub mod pad;
pub mod parts;
pub mod protocol;
pub mod quantile;
pub mod random;
pub mod reduction;
pub mod repeated;
mod repr;
pub mod run;
mod sampling;
pub mod select;
pub mod sets;
mod sine;
pub mod solve;
pub mod sparse;
pub mod special;
pub mod statistics;
mod storage;
pub mod tensor;
mod ufuncs;
pub mod zarr;

pub use computation::{Computation, Computed};
pub use create::{
    arange, arange_step, array, eye, fromfunction, full, linspace, linspace_endpoint, ones, position_along,
    zeros,
};
pub use eager::{eager, is_eager, set_eager};
pub use elementwise::where_;
pub use error::{Error, Result};
pub use errstate::{ErrState, Reaction};
pub use index::Index;
pub use integer::LargeInteger;
pub use manipulate::{concatenate, stack};
pub use native::Native;
pub use operand::Operand;
pub use reduction::Axes;
pub use run::{default_executor, execute, explain, offer_executor};
pub use tensor::Tensor;
pub use tharsis_cancel::Cancel;
pub use tharsis_graph::{Chunks, LocalExecutor};
pub use tharsis_kernels::{DType, Scalar};
