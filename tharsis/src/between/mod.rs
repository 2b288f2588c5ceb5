//! Tensors of columns, and frames of tensors.
//!
//! Neither is copied where its type allows it, and nothing comes to the driver: a tensor's chunk is a
//! [`View`] of the rows of a task of frames, and a frame's part is a [`Form`] of a chunk. The task that
//! reads one makes the other of it, in place if it can.
//!
//! [`View`]: convert::View
//! [`Form`]: convert::Form

pub(crate) mod convert;
pub(crate) mod errors;
mod to_frame;
mod to_tensor;

pub use to_frame::ToFrame;
pub use to_tensor::ToTensor;
