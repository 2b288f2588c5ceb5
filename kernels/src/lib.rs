//! Computation on one chunk of a tensor.
//!
//! This crate knows nothing of graphs, tasks or clusters: its inputs are arrays and a description of the
//! computation.
//!
//! # Design
//! - A [`Chunk`] is shape, strides and dtype over shared bytes on 64-byte boundaries.
//! - A [`Program`] is a fused computation as plain data: sources, element-wise steps, sums of short rows, and
//!   outputs that are stored or folded. It says nothing of sizes, so one program serves every chunk of a
//!   tensor, and it can be sent to other processes.
//! - [`Compiled::run`] evaluates a program block by block. A block fits the first-level cache; each step is
//!   one loop over it, compiled for several CPUs ([`cpu`]) and chosen at run time. Inputs in C order are read
//!   in place.
//! - Sources are functions of the global index ([`program::IndexForm`]), random numbers too ([`random`]): any
//!   part of any view of them can be computed anywhere, in any order.
//! - A [`Fold`] reduces; partial results of chunks are folded again by [`Fold::merge`].
//! - [`product`] multiplies matrices; [`chunkwise`] has the functions that need all elements of a chunk at
//!   once, [`lines`] those along one axis, [`exchange`] those of elements that lie in many chunks.
//!
//! Read [`program`], then [`evaluate`], then [`ufunc`] (the table of element-wise functions).
//!
//! ```
//! use tharsis_kernels::program::{Output, Program, Step, StepOp};
//! use tharsis_kernels::{BinaryOp, Chunk, Compiled, DType, Place, Scalar, Scratch};
//!
//! let step = |op| Step { op, dtype: DType::F64, trailing: vec![] };
//! let program = Program {
//!     steps: vec![
//!         step(StepOp::Load { input: 0 }),
//!         step(StepOp::Const(Scalar::Float(1.0))),
//!         step(StepOp::Binary(BinaryOp::Add, 0, 1)),
//!     ],
//!     outputs: vec![Output::Store(2)],
//! };
//! let x = Chunk::from_elements(&[3], &[1.0, 2.0, 3.0])?;
//! let place = Place { origin: &[0], extents: &[3] };
//! let y = Compiled::new(program)?.run(place, &[x], &mut Scratch::new())?;
//! assert_eq!(y[0].to_vec::<f64>()?, [2.0, 3.0, 4.0]);
//! # Ok::<(), tharsis_kernels::KernelError>(())
//! ```
//!
//! `unsafe` code is in [`cpu`] and [`stream`] only.

#[cfg_attr(not(any(feature = "dense", test)), expect(dead_code, reason = "used by Fourier transforms"))]
mod along;
pub mod chunk;
pub mod chunkwise;
#[cfg(test)]
#[allow(clippy::expect_used, clippy::print_stdout)]
mod copies;
pub mod correlate;
pub mod cosine;
pub mod cpu;
pub mod draw;
pub mod dtype;
pub mod element;
pub mod error;
pub mod evaluate;
pub mod exchange;
pub mod factor;
pub mod fold;
pub mod fourier;
pub mod layout;
pub mod linear;
pub mod lines;
#[cfg(not(feature = "dense"))]
mod not_built;
pub mod order;
pub mod pages;
pub mod poison;
pub mod product;
pub mod program;
mod radix;
pub mod raised;
pub mod random;
pub mod rows;
pub mod scalar;
pub mod select;
pub mod site;
pub mod sparse;
pub mod stream;
pub mod tally;
#[cfg(feature = "dense")]
mod team;
pub mod ufunc;

pub use chunk::{Buffer, Chunk, LentBytes, SharedBytes};
pub use dtype::{DType, Kind, can_cast_same_kind, promote, promote_all, to_complex};
pub use element::{Bool, Element, bf16_of, f16_of};
pub use error::KernelError;
pub use evaluate::{Compiled, Place, Scratch};
pub use fold::Fold;
pub use half::{bf16, f16};
pub use num_complex::Complex;
pub use program::Program;
pub use raised::{Condition, Warning, Warnings};
pub use random::Key;
pub use scalar::Scalar;
pub use ufunc::{BinaryOp, UnaryOp, vector_exp};
