//! NumPy-style tensors.
