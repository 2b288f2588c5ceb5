//! The arguments of functions as bytes, one after the other.

use crate::error::FunctionFault;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Encoded arguments, which are decoded in the order of the parameters.
#[derive(Debug)]
pub struct Arguments<'a>(&'a [u8]);

impl<'a> Arguments<'a> {
    /// The arguments in these bytes.
    #[must_use]
    pub fn new(bytes: &'a [u8]) -> Arguments<'a> {
        Arguments(bytes)
    }

    /// The next argument.
    ///
    /// # Errors
    /// The bytes are no value of this type.
    #[allow(clippy::should_implement_trait)]
    pub fn next<T: DeserializeOwned>(&mut self) -> Result<T, FunctionFault> {
        let (value, rest) = postcard::take_from_bytes(self.0).map_err(|error| {
            let wanted = std::any::type_name::<T>();
            FunctionFault::Arguments(format!("bytes do not decode to {wanted}: {error}"))
        })?;
        self.0 = rest;
        Ok(value)
    }

    /// Refuses bytes that are left over.
    ///
    /// # Errors
    /// There are some.
    pub fn finish(self) -> Result<(), FunctionFault> {
        match self.0.len() {
            0 => Ok(()),
            left => Err(FunctionFault::Arguments(format!("{left} bytes are left over"))),
        }
    }
}

/// Appends an argument to encoded ones.
///
/// # Errors
/// Its type cannot be encoded.
pub fn encode<T: Serialize + ?Sized>(bytes: &mut Vec<u8>, value: &T) -> Result<(), FunctionFault> {
    let made = postcard::to_extend(value, std::mem::take(bytes));
    *bytes = made.map_err(|error| {
        let given = std::any::type_name::<T>();
        FunctionFault::Arguments(format!("a {given} cannot be encoded: {error}"))
    })?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_come_back_in_their_order_and_nothing_is_left_over() {
        let mut bytes = Vec::new();
        encode(&mut bytes, "Oslo").unwrap();
        encode(&mut bytes, &vec![1.5, f64::INFINITY]).unwrap();
        let mut arguments = Arguments::new(&bytes);
        assert_eq!(arguments.next::<String>().unwrap(), "Oslo");
        assert_eq!(arguments.next::<Vec<f64>>().unwrap(), [1.5, f64::INFINITY]);
        arguments.finish().unwrap();
        assert!(matches!(Arguments::new(&bytes).finish(), Err(FunctionFault::Arguments(_))));
        let cut = Arguments::new(&bytes[..3]).next::<String>();
        assert!(matches!(cut, Err(FunctionFault::Arguments(text)) if text.contains("String")));
    }
}
