//! The value's own error text when it cannot be encoded.
//!
//! The encoder's error has no text. So after a failed encoding the value is serialized again, by a serializer
//! that accepts everything and keeps the error text of the value.

use serde::ser::{self, Serialize, Serializer};
use std::fmt;

/// The error text of a value; `None` if the value itself raised no error.
#[cold]
pub(crate) fn of<T: Serialize + ?Sized>(value: &T) -> Option<String> {
    value.serialize(Listener).err().map(|Reason(text)| text)
}

/// The error text of a value.
#[derive(Debug)]
struct Reason(String);

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Reason {}

impl ser::Error for Reason {
    fn custom<T: fmt::Display>(text: T) -> Self {
        Self(text.to_string())
    }
}

/// A serializer that accepts everything.
#[derive(Clone, Copy)]
struct Listener;

macro_rules! take {
    ($($method:ident: $kind:ty),* $(,)?) => {
        $(fn $method(self, _: $kind) -> Result<(), Reason> {
            Ok(())
        })*
    };
}

macro_rules! begin {
    ($($method:ident($($kind:ty),*);)*) => {
        $(fn $method(self, $(_: $kind),*) -> Result<Self, Reason> {
            Ok(self)
        })*
    };
}

impl Serializer for Listener {
    type Ok = ();
    type Error = Reason;
    type SerializeSeq = Self;
    type SerializeTuple = Self;
    type SerializeTupleStruct = Self;
    type SerializeTupleVariant = Self;
    type SerializeMap = Self;
    type SerializeStruct = Self;
    type SerializeStructVariant = Self;

    take! {
        serialize_bool: bool, serialize_i8: i8, serialize_i16: i16, serialize_i32: i32, serialize_i64: i64,
        serialize_i128: i128, serialize_u8: u8, serialize_u16: u16, serialize_u32: u32, serialize_u64: u64,
        serialize_u128: u128, serialize_f32: f32, serialize_f64: f64, serialize_char: char, serialize_str: &str,
        serialize_bytes: &[u8], serialize_unit_struct: &'static str,
    }

    begin! {
        serialize_seq(Option<usize>);
        serialize_tuple(usize);
        serialize_tuple_struct(&'static str, usize);
        serialize_tuple_variant(&'static str, u32, &'static str, usize);
        serialize_map(Option<usize>);
        serialize_struct(&'static str, usize);
        serialize_struct_variant(&'static str, u32, &'static str, usize);
    }

    fn serialize_none(self) -> Result<(), Reason> {
        Ok(())
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<(), Reason> {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Result<(), Reason> {
        Ok(())
    }

    fn serialize_unit_variant(self, _: &'static str, _: u32, _: &'static str) -> Result<(), Reason> {
        Ok(())
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        value: &T,
    ) -> Result<(), Reason> {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        value: &T,
    ) -> Result<(), Reason> {
        value.serialize(self)
    }

    /// The same as for the encoder, so that a value behaves in the same way for both.
    fn is_human_readable(&self) -> bool {
        false
    }
}

macro_rules! parts {
    ($($kind:ident::$method:ident($($name:ty)?);)*) => {
        $(impl ser::$kind for Listener {
            type Ok = ();
            type Error = Reason;

            fn $method<T: Serialize + ?Sized>(&mut self, $(_: $name,)? value: &T) -> Result<(), Reason> {
                value.serialize(*self)
            }

            fn end(self) -> Result<(), Reason> {
                Ok(())
            }
        })*
    };
}

parts! {
    SerializeSeq::serialize_element();
    SerializeTuple::serialize_element();
    SerializeTupleStruct::serialize_field();
    SerializeTupleVariant::serialize_field();
    SerializeStruct::serialize_field(&'static str);
    SerializeStructVariant::serialize_field(&'static str);
}

impl ser::SerializeMap for Listener {
    type Ok = ();
    type Error = Reason;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), Reason> {
        key.serialize(*self)
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Reason> {
        value.serialize(*self)
    }

    fn end(self) -> Result<(), Reason> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::Encoded;
    use std::collections::BTreeMap;

    struct Refuses(&'static str);

    impl Serialize for Refuses {
        fn serialize<S: Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
            Err(ser::Error::custom(format_args!("{} is still open", self.0)))
        }
    }

    #[derive(serde::Serialize)]
    enum Nested {
        Tuple(u8, Refuses),
        Struct { map: BTreeMap<String, Option<Refuses>> },
    }

    #[test]
    fn a_value_that_refuses_is_quoted_wherever_it_stands() {
        let map = BTreeMap::from([("a".to_owned(), None), ("b".to_owned(), Some(Refuses("b")))]);
        for value in [Nested::Tuple(1, Refuses("b")), Nested::Struct { map }] {
            let error = Encoded::default().push(&(1, "text", vec![value])).unwrap_err().to_string();
            assert!(error.contains("cannot be encoded: b is still open"), "{error}");
        }
    }

    #[test]
    fn what_encodes_has_no_reason() {
        assert_eq!(of(&(1, Some('x'), [1.5], "text", ())), None);
    }
}
