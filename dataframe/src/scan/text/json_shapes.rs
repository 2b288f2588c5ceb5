//! The types of columns as shapes of the values that JSON lines may have for them.

use arrow::datatypes::{DataType, Fields, TimeUnit};
use tharsis_text_scan::json_values::Shape;

/// The shape of lines with these columns. Where users say what the types are, texts of numbers may be
/// numbers.
pub(super) fn shape_of_lines(columns: &Fields, texts: bool) -> Shape {
    let shapes = columns.iter().map(|field| (field.name().clone(), shape_of(field.data_type(), texts)));
    Shape::object_of(shapes.collect())
}

fn shape_of(dtype: &DataType, texts: bool) -> Shape {
    match dtype {
        DataType::Float16 => Shape::Float { texts, bits: 16 },
        DataType::Float32 => Shape::Float { texts, bits: 32 },
        DataType::Float64 => Shape::Float { texts, bits: 64 },
        dtype if dtype.is_integer() => Shape::Whole { texts },
        DataType::Decimal32(_, scale)
        | DataType::Decimal64(_, scale)
        | DataType::Decimal128(_, scale)
        | DataType::Decimal256(_, scale) => Shape::Decimal { scale: *scale },
        DataType::Timestamp(unit, _) | DataType::Time32(unit) | DataType::Time64(unit) => {
            Shape::Time { digits: digits_of(*unit) }
        }
        // Texts of dates are dates, and so are numbers of their unit.
        dtype if dtype.is_temporal() => Shape::Whole { texts: true },
        DataType::List(field)
        | DataType::LargeList(field)
        | DataType::ListView(field)
        | DataType::LargeListView(field)
        | DataType::FixedSizeList(field, _) => Shape::list_of(shape_of(field.data_type(), texts)),
        DataType::Map(entries, _) => match entries.data_type() {
            DataType::Struct(entry) if entry.len() == 2 => {
                Shape::map_of(shape_of(entry[1].data_type(), texts))
            }
            _ => Shape::Any,
        },
        DataType::Struct(fields) => shape_of_lines(fields, texts),
        _ => Shape::Any,
    }
}

fn digits_of(unit: TimeUnit) -> usize {
    match unit {
        TimeUnit::Second => 0,
        TimeUnit::Millisecond => 3,
        TimeUnit::Microsecond => 6,
        TimeUnit::Nanosecond => 9,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::datatypes::Field;
    use std::sync::Arc;

    /// One row for each shape, and for each unit of times; values at all their limits are in `text-scan`.
    #[test]
    fn numbers_have_room_in_the_types_of_their_columns() {
        let item = |dtype| Arc::new(Field::new("item", dtype, true));
        let time = |unit| DataType::Timestamp(unit, None);
        let entries =
            vec![Field::new("key", DataType::Utf8, false), Field::new("value", DataType::Int64, true)];
        let map =
            DataType::Map(Arc::new(Field::new("entries", DataType::Struct(entries.into()), false)), false);
        let nested = DataType::Struct(vec![Field::new("n", DataType::UInt8, true)].into());
        for (dtype, read, refused) in [
            (DataType::Int64, "2.50e1", "2.55e1"),
            (DataType::UInt64, "18446744073709551615", "18446744073709551616"),
            (DataType::Date32, "20000", "20000.5"),
            (DataType::Duration(TimeUnit::Second), "1", "1.5"),
            (DataType::Float64, "-1e-400", "-1e+400"),
            (DataType::Float32, "3.4e38", "3.5e38"),
            (DataType::Float16, "65504", "65520"),
            (DataType::Decimal128(9, 2), "1.2300", "1.239"),
            (DataType::Decimal256(9, -2), "1200", "1210"),
            (time(TimeUnit::Second), "\"2024-01-01T00:00:00.000Z\"", "\"2024-01-01T00:00:00.5Z\""),
            (time(TimeUnit::Millisecond), "\"2024-01-01 00:00:00.123\"", "\"2024-01-01 00:00:00.1234\""),
            (time(TimeUnit::Nanosecond), "1.0", "1.5"),
            (DataType::Time64(TimeUnit::Microsecond), "\"00:00:00.123456\"", "\"00:00:00.1234567\""),
            (DataType::List(item(DataType::Int8)), "[1,null]", "[1,2.5]"),
            (DataType::FixedSizeList(item(DataType::Float32), 1), "[1]", "[1e39]"),
            (nested, "{\"n\":3}", "{\"n\":-0.5}"),
            (map, "{\"x\":1,\"y\":2}", "{\"x\":1,\"y\":2.5}"),
        ] {
            let column = if matches!(dtype, DataType::Struct(_)) { "n" } else { "v" };
            let shape = shape_of_lines(&vec![Field::new("v", dtype.clone(), true)].into(), true);
            let check = |value: &str| shape.check(format!("{{\"v\":{value}}}\n").as_bytes());
            assert_eq!(check(read), Ok(()), "{dtype}: {read}");
            let reason = check(refused).expect_err(refused);
            let told = format!("in column {column:?}, which is of ");
            assert!(reason.contains(&told), "{dtype}: {reason}");
        }
    }

    #[test]
    fn texts_are_numbers_where_users_say_so() {
        let columns = vec![Field::new("a", DataType::Int64, true)].into();
        assert_eq!(shape_of_lines(&columns, true).check(b"{\"a\":\"7\"}"), Ok(()));
        assert!(shape_of_lines(&columns, false).check(b"{\"a\":\"7\"}").is_err());
    }
}
