//! Objects of programs that this crate knows nothing of, such as estimators.

use std::any::Any;
use std::fmt;

/// An object that an operation of another crate has made. Its text for debugging stands in messages.
pub trait Object: Any + fmt::Debug + Send + Sync {
    /// The name of its class in Python.
    fn class(&self) -> &str;
}
