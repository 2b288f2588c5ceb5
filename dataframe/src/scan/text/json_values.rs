//! Values of JSON lines that the library would make others of, to fit them into the types of their columns:
//! it cuts `2.5` to 2 in a column of whole numbers, and takes the text `"7"` for a number.

use arrow::datatypes::{DataType, Fields};
use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use std::collections::HashMap;
use std::fmt;

/// The values that the columns may have.
pub(super) struct Expected(Shape);

/// The values of a column, as far as the library does not look at them.
enum Shape {
    /// Anything: the library refuses what has no room in the type.
    Any,
    /// A number without a fraction.
    Whole {
        texts: bool,
    },
    /// A number.
    Float,
    List(Box<Shape>),
    Object(Object),
}

struct Object {
    labels: Vec<String>,
    shapes: Vec<Shape>,
    places: HashMap<String, usize>,
}

impl Expected {
    /// Those of columns. Where users say what the types are, texts of numbers may be numbers.
    pub(super) fn of(columns: &Fields, texts: bool) -> Expected {
        Expected(Shape::of_fields(columns, texts))
    }

    /// Looks at all values of whole lines; gives the reason to refuse one.
    pub(super) fn check(&self, lines: &[u8]) -> Result<(), String> {
        if matches!(self.0, Shape::Any) {
            return Ok(());
        }
        lines.split(|byte| *byte == b'\n').try_for_each(|line| self.check_line(line))
    }

    /// Looks at the values of a line. (A place in all lines would take longer to tell with each of them.)
    fn check_line(&self, line: &[u8]) -> Result<(), String> {
        let mut values = serde_json::Deserializer::from_slice(line);
        while values.end().is_err() {
            let value = Value { shape: &self.0, label: "" };
            value.deserialize(&mut values).map_err(|error| {
                let text = error.to_string();
                // Lines are counted by the reader.
                text.rsplit_once(" at line ").map_or(text.as_str(), |(reason, _)| reason).to_owned()
            })?;
        }
        Ok(())
    }
}

impl Shape {
    fn of(dtype: &DataType, texts: bool) -> Shape {
        match dtype {
            dtype if dtype.is_floating() && texts => Shape::Any,
            dtype if dtype.is_floating() => Shape::Float,
            dtype if dtype.is_integer() => Shape::Whole { texts },
            // Texts of times are times, and so are numbers of their unit.
            dtype if dtype.is_temporal() => Shape::Whole { texts: true },
            DataType::List(field) | DataType::LargeList(field) | DataType::FixedSizeList(field, _) => {
                match Shape::of(field.data_type(), texts) {
                    Shape::Any => Shape::Any,
                    inner => Shape::List(Box::new(inner)),
                }
            }
            DataType::Struct(fields) => Shape::of_fields(fields, texts),
            _ => Shape::Any,
        }
    }

    fn of_fields(fields: &Fields, texts: bool) -> Shape {
        let shapes: Vec<Shape> = fields.iter().map(|field| Shape::of(field.data_type(), texts)).collect();
        if shapes.iter().all(|shape| matches!(shape, Shape::Any)) {
            return Shape::Any;
        }
        let labels: Vec<String> = fields.iter().map(|field| field.name().clone()).collect();
        let places = labels.iter().enumerate().map(|(at, label)| (label.clone(), at)).collect();
        Shape::Object(Object { labels, shapes, places })
    }
}

/// A value that is looked at, and the label that leads to it.
#[derive(Clone, Copy)]
struct Value<'a> {
    shape: &'a Shape,
    label: &'a str,
}

impl Value<'_> {
    fn refused<E: Error>(self, what: impl fmt::Display, of: &str) -> E {
        E::custom(format_args!("{what} in column {:?}, which is of {of}", self.label))
    }
}

impl<'de> DeserializeSeed<'de> for Value<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, value: D) -> Result<(), D::Error> {
        match self.shape {
            Shape::Any => value.deserialize_ignored_any(IgnoredAny).map(|_| ()),
            _ => value.deserialize_any(self),
        }
    }
}

impl<'de> Visitor<'de> for Value<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E: Error>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E: Error>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<(), E> {
        // `2.0` and `1e3` are whole numbers that another program has written as floats.
        let is_exact = number.fract() == 0.0 && number.abs() < FLOAT_WHOLE_END;
        if matches!(self.shape, Shape::Whole { .. }) && !is_exact {
            return Err(self.refused(number, "whole numbers"));
        }
        Ok(())
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<(), E> {
        match self.shape {
            Shape::Whole { texts: false } | Shape::Float => {
                let shown: String = text.chars().take(TEXT_SHOWN).collect();
                Err(self.refused(format_args!("the text {shown:?}"), "numbers"))
            }
            _ => Ok(()),
        }
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        let shape = match self.shape {
            Shape::List(inner) => &**inner,
            _ => &Shape::Any,
        };
        while list.next_element_seed(Value { shape, ..self })?.is_some() {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let Shape::Object(object) = self.shape else {
            while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
            return Ok(());
        };
        let mut expected = 0;
        while let Some(place) = map.next_key_seed(Label { object, expected })? {
            let value = match place {
                Some(at) => Value { shape: &object.shapes[at], label: &object.labels[at] },
                None => Value { shape: &Shape::Any, ..self },
            };
            map.next_value_seed(value)?;
            expected = place.map_or(expected, |at| at + 1);
        }
        Ok(())
    }
}

/// A label of an object, of which one is expected: most lines have theirs in one order.
struct Label<'a> {
    object: &'a Object,
    expected: usize,
}

impl<'de> DeserializeSeed<'de> for Label<'_> {
    type Value = Option<usize>;

    fn deserialize<D: Deserializer<'de>>(self, label: D) -> Result<Option<usize>, D::Error> {
        label.deserialize_str(self)
    }
}

impl Visitor<'_> for Label<'_> {
    type Value = Option<usize>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a label")
    }

    fn visit_str<E: Error>(self, label: &str) -> Result<Option<usize>, E> {
        let is_next = self.object.labels.get(self.expected).is_some_and(|next| next == label);
        Ok(if is_next { Some(self.expected) } else { self.object.places.get(label).copied() })
    }
}

/// Whole floats below this are whole numbers without loss.
const FLOAT_WHOLE_END: f64 = (1_u64 << 53) as f64;
/// Characters of a text in an error.
const TEXT_SHOWN: usize = 40;

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::datatypes::Field;
    use std::sync::Arc;

    fn columns() -> Fields {
        let whole = Arc::new(Field::new("item", DataType::Int64, true));
        let nested = Fields::from(vec![Field::new("n", DataType::UInt64, true)]);
        Fields::from(vec![
            Field::new("a", DataType::Int64, true),
            Field::new("f", DataType::Float64, true),
            Field::new("t", DataType::Utf8, true),
            Field::new("l", DataType::List(whole), true),
            Field::new("o", DataType::Struct(nested), true),
        ])
    }

    #[test]
    fn values_that_would_become_others_are_refused() {
        let expected = Expected::of(&columns(), false);
        for lines in [
            "{\"a\":1,\"f\":2.5,\"t\":\"2.5\",\"l\":[1,2],\"o\":{\"n\":3}}\n{\"o\":null,\"a\":2.0}\n",
            "{\"a\":-0.0,\"l\":[null,1e3],\"f\":null}\n\n{\"unknown\":2.5}",
            "{\"a\":9007199254740991.0}\r\n{\"a\":18446744073709551615} {\"a\":1}",
        ] {
            assert_eq!(expected.check(lines.as_bytes()), Ok(()), "{lines}");
        }
        for (lines, column) in [
            ("{\"a\":1}\n{\"a\":2.5}\n", "a"),
            ("{\"a\":9007199254740993.0}", "a"),
            ("{\"f\":1,\"a\":1e-3}", "a"),
            ("{\"l\":[1,2.5]}", "l"),
            ("{\"t\":\"x\",\"o\":{\"n\":-0.5}}", "n"),
            ("{\"a\":\"7\"}", "a"),
            ("{\"f\":\"nan\"}", "f"),
            ("{\"a\":1} {\"a\":1.5}", "a"),
        ] {
            let reason = expected.check(lines.as_bytes()).unwrap_err();
            assert!(reason.contains(&format!("column {column:?}")) && !reason.contains(" line "), "{reason}");
        }
    }

    #[test]
    fn texts_are_numbers_where_users_say_so() {
        let expected = Expected::of(&columns(), true);
        assert_eq!(expected.check(b"{\"a\":\"7\",\"f\":\"2.5\"}"), Ok(()));
        assert!(expected.check(b"{\"a\":7.5}").is_err());
    }
}
