//! Layouts of models in files: the types of their bytes, without their numbers.
//!
//! A file of another layout than that of the program is read wrongly or not at all, unless the version of the
//! format tells them apart. A layout as a text can be recorded, so that a change of it is seen.

use crate::Result;
use serde::de::value::Error as Refused;
use serde::ser::{
    Serialize, SerializeMap, SerializeSeq, SerializeStruct, SerializeStructVariant, SerializeTuple,
    SerializeTupleStruct, SerializeTupleVariant, Serializer,
};
use std::cell::RefCell;
use std::collections::BTreeSet;

/// The layout of a value, or of a part of one.
type Text = std::result::Result<String, Refused>;

thread_local! {
    /// Layouts of the values that this thread encodes, each once; none if nobody asks for them.
    static RECORDED: RefCell<Option<Vec<String>>> = const { RefCell::new(None) };
}

/// Layouts of all values that a function encodes.
///
/// # Errors
/// Those of the function.
pub(crate) fn recorded<T>(encode: impl FnOnce() -> Result<T>) -> Result<String> {
    let outer = RECORDED.replace(Some(Vec::new()));
    let made = encode();
    let found = RECORDED.replace(outer).unwrap_or_default();
    made?;
    Ok(found.join("; "))
}

/// Adds the layout of a value that is encoded, if somebody asks for it.
pub(crate) fn record<T: Serialize>(value: &T) {
    if RECORDED.with_borrow(Option::is_none) {
        return;
    }
    // Values inside that are encoded on their own add theirs on the way.
    let layout = value.serialize(Layout).unwrap_or_else(|refused| refused.to_string());
    RECORDED.with_borrow_mut(|found| {
        if let Some(found) = found.as_mut().filter(|found| !found.contains(&layout)) {
            found.push(layout);
        }
    });
}

/// Writes what a value is made of.
struct Layout;

/// Parts of a value that all count: those of tuples and structures.
struct Parts {
    /// The variant, if the value is one of several.
    variant: String,
    parts: Vec<String>,
}

/// Elements of which each kind counts once: those of lists and maps.
#[derive(Default)]
struct Kinds(BTreeSet<String>, String);

impl Parts {
    fn new() -> Parts {
        Parts { variant: String::new(), parts: Vec::new() }
    }

    fn of(index: u32, variant: &str) -> Parts {
        Parts { variant: format!("{index}:{variant}"), parts: Vec::new() }
    }

    fn add<T: Serialize + ?Sized>(&mut self, name: &str, value: &T) -> std::result::Result<(), Refused> {
        let layout = value.serialize(Layout)?;
        self.parts.push(if name.is_empty() { layout } else { format!("{name}: {layout}") });
        Ok(())
    }

    fn text(self) -> Text {
        let Parts { variant, parts } = self;
        Ok(match &parts[..] {
            // Arrays of a fixed length.
            [first, .., last] if 4 < parts.len() && parts.iter().all(|part| part == first) => {
                format!("{variant}({last} x {})", parts.len())
            }
            _ => format!("{variant}({})", parts.join(", ")),
        })
    }
}

impl Kinds {
    fn text(self) -> Text {
        Ok(format!("[{}]", self.0.into_iter().collect::<Vec<_>>().join(" | ")))
    }
}

macro_rules! plain {
    ($($method:ident: $type:ty),* $(,)?) => {$(
        fn $method(self, _: $type) -> Text {
            Ok(stringify!($type).to_owned())
        }
    )*};
}

impl Serializer for Layout {
    type Ok = String;
    type Error = Refused;
    type SerializeSeq = Kinds;
    type SerializeTuple = Parts;
    type SerializeTupleStruct = Parts;
    type SerializeTupleVariant = Parts;
    type SerializeMap = Kinds;
    type SerializeStruct = Parts;
    type SerializeStructVariant = Parts;

    plain!(
        serialize_bool: bool, serialize_i8: i8, serialize_i16: i16, serialize_i32: i32, serialize_i64: i64,
        serialize_u8: u8, serialize_u16: u16, serialize_u32: u32, serialize_u64: u64, serialize_f32: f32,
        serialize_f64: f64, serialize_char: char, serialize_str: &str, serialize_bytes: &[u8],
    );

    fn serialize_none(self) -> Text {
        Ok("none".to_owned())
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Text {
        Ok(format!("some {}", value.serialize(Layout)?))
    }

    fn serialize_unit(self) -> Text {
        Ok("()".to_owned())
    }

    fn serialize_unit_struct(self, _: &'static str) -> Text {
        self.serialize_unit()
    }

    fn serialize_unit_variant(self, _: &'static str, index: u32, variant: &'static str) -> Text {
        Ok(format!("{index}:{variant}"))
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(self, _: &'static str, value: &T) -> Text {
        value.serialize(Layout)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        index: u32,
        variant: &'static str,
        value: &T,
    ) -> Text {
        Ok(format!("{index}:{variant}({})", value.serialize(Layout)?))
    }

    fn serialize_seq(self, _: Option<usize>) -> std::result::Result<Kinds, Refused> {
        Ok(Kinds::default())
    }

    fn serialize_tuple(self, _: usize) -> std::result::Result<Parts, Refused> {
        Ok(Parts::new())
    }

    fn serialize_tuple_struct(self, _: &'static str, _: usize) -> std::result::Result<Parts, Refused> {
        Ok(Parts::new())
    }

    fn serialize_tuple_variant(
        self,
        _: &'static str,
        index: u32,
        variant: &'static str,
        _: usize,
    ) -> std::result::Result<Parts, Refused> {
        Ok(Parts::of(index, variant))
    }

    fn serialize_map(self, _: Option<usize>) -> std::result::Result<Kinds, Refused> {
        Ok(Kinds::default())
    }

    fn serialize_struct(self, _: &'static str, _: usize) -> std::result::Result<Parts, Refused> {
        Ok(Parts::new())
    }

    fn serialize_struct_variant(
        self,
        _: &'static str,
        index: u32,
        variant: &'static str,
        _: usize,
    ) -> std::result::Result<Parts, Refused> {
        Ok(Parts::of(index, variant))
    }

    fn is_human_readable(&self) -> bool {
        false
    }
}

/// A value whose parts all count. Names of fields are no part of files, but tell fields of one type apart
/// that have changed places.
macro_rules! of_parts {
    ($($of:ident: $method:ident($($name:ident)?)),* $(,)?) => {$(
        impl $of for Parts {
            type Ok = String;
            type Error = Refused;

            fn $method<T: Serialize + ?Sized>(
                &mut self,
                $($name: &'static str,)?
                value: &T,
            ) -> std::result::Result<(), Refused> {
                let names: &[&str] = &[$($name)?];
                self.add(names.first().copied().unwrap_or_default(), value)
            }

            fn end(self) -> Text {
                self.text()
            }
        }
    )*};
}
of_parts!(
    SerializeTuple: serialize_element(), SerializeTupleStruct: serialize_field(),
    SerializeTupleVariant: serialize_field(), SerializeStruct: serialize_field(name),
    SerializeStructVariant: serialize_field(name),
);

impl SerializeSeq for Kinds {
    type Ok = String;
    type Error = Refused;

    fn serialize_element<T: Serialize + ?Sized>(&mut self, value: &T) -> std::result::Result<(), Refused> {
        self.0.insert(value.serialize(Layout)?);
        Ok(())
    }

    fn end(self) -> Text {
        self.text()
    }
}

impl SerializeMap for Kinds {
    type Ok = String;
    type Error = Refused;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> std::result::Result<(), Refused> {
        self.1 = key.serialize(Layout)?;
        Ok(())
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> std::result::Result<(), Refused> {
        self.0.insert(format!("{} to {}", self.1, value.serialize(Layout)?));
        Ok(())
    }

    fn end(self) -> Text {
        self.text()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::saved::encoded;
    use serde::Serialize;

    #[derive(Serialize)]
    enum Shape {
        Round,
        Flat { wide: f64, long: f64 },
    }

    #[derive(Serialize)]
    struct Made {
        name: &'static str,
        shapes: Vec<Shape>,
        corner: [f64; 5],
        size: Option<usize>,
    }

    fn layout(shapes: Vec<Shape>, size: Option<usize>) -> String {
        recorded(|| encoded(&Made { name: "a", shapes, corner: [0.5; 5], size })).unwrap()
    }

    #[test]
    fn layouts_tell_types_and_no_numbers() {
        let flat = || Shape::Flat { wide: 1.0, long: 2.0 };
        assert_eq!(
            layout(vec![flat(), Shape::Round, flat()], Some(3)),
            "(name: &str, shapes: [0:Round | 1:Flat(wide: f64, long: f64)], corner: (f64 x 5), size: some u64)"
        );
        assert_eq!(layout(vec![], None), "(name: &str, shapes: [], corner: (f64 x 5), size: none)");
        // Of values that are encoded together each layout stands once.
        let twice = recorded(|| {
            encoded(&1u8)?;
            encoded(&2u8)?;
            encoded(&(1.0f32, 'a'))
        });
        assert_eq!(twice.unwrap(), "u8; (f32, char)");
        // Nothing is recorded for others.
        encoded(&1u8).unwrap();
        assert_eq!(recorded(|| Ok(())).unwrap(), "");
    }
}
