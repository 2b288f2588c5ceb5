//! Types as statements name them, and messages with these names.

use arrow::datatypes::{DECIMAL_DEFAULT_SCALE, DECIMAL128_MAX_PRECISION, DataType, TimeUnit};

/// The name of a type in SQL. `CAST(NULL AS name)` has this type, if SQL has a name for it.
pub(in crate::sql) fn type_name(dtype: &DataType) -> String {
    match dtype {
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => "VARCHAR".to_owned(),
        DataType::Boolean => "BOOLEAN".to_owned(),
        DataType::Int8 => "TINYINT".to_owned(),
        DataType::Int16 => "SMALLINT".to_owned(),
        DataType::Int32 => "INTEGER".to_owned(),
        DataType::Int64 => "BIGINT".to_owned(),
        DataType::UInt8 => "TINYINT UNSIGNED".to_owned(),
        DataType::UInt16 => "SMALLINT UNSIGNED".to_owned(),
        DataType::UInt32 => "INTEGER UNSIGNED".to_owned(),
        DataType::UInt64 => "BIGINT UNSIGNED".to_owned(),
        DataType::Float16 | DataType::Float32 => "REAL".to_owned(),
        DataType::Float64 => "DOUBLE".to_owned(),
        DataType::Decimal32(digits, scale)
        | DataType::Decimal64(digits, scale)
        | DataType::Decimal128(digits, scale)
        | DataType::Decimal256(digits, scale) => format!("DECIMAL({digits},{scale})"),
        DataType::Date32 | DataType::Date64 => "DATE".to_owned(),
        DataType::Time32(_) | DataType::Time64(_) => "TIME".to_owned(),
        DataType::Timestamp(unit, None) => format!("TIMESTAMP{}", digits(*unit)),
        DataType::Timestamp(unit, Some(_)) => format!("TIMESTAMP{} WITH TIME ZONE", digits(*unit)),
        DataType::Interval(_) | DataType::Duration(_) => "INTERVAL".to_owned(),
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView | DataType::FixedSizeBinary(_) => {
            "BYTEA".to_owned()
        }
        DataType::List(field)
        | DataType::LargeList(field)
        | DataType::ListView(field)
        | DataType::LargeListView(field)
        | DataType::FixedSizeList(field, _) => format!("{}[]", type_name(field.data_type())),
        DataType::Struct(fields) => {
            let fields =
                fields.iter().map(|field| format!("{} {}", field.name(), type_name(field.data_type())));
            format!("STRUCT({})", fields.collect::<Vec<_>>().join(", "))
        }
        DataType::Map(entries, _) => match entries.data_type() {
            DataType::Struct(pair) => {
                let parts: Vec<String> = pair.iter().map(|field| type_name(field.data_type())).collect();
                format!("MAP({})", parts.join(", "))
            }
            _ => "MAP".to_owned(),
        },
        DataType::Dictionary(_, value) => type_name(value),
        DataType::RunEndEncoded(_, value) => type_name(value.data_type()),
        DataType::Null => "NULL".to_owned(),
        DataType::Union(..) => "UNION".to_owned(),
    }
}

/// Decimals of the seconds of a time, if they are not those of a time without a number.
fn digits(unit: TimeUnit) -> &'static str {
    match unit {
        TimeUnit::Second => "(0)",
        TimeUnit::Millisecond => "(3)",
        TimeUnit::Microsecond => "(6)",
        TimeUnit::Nanosecond => "",
    }
}

/// Names of types, and the types.
static NAMES: [(&str, DataType); 22] = [
    ("bigint", DataType::Int64),
    ("bool", DataType::Boolean),
    ("boolean", DataType::Boolean),
    ("char", DataType::Utf8),
    ("double", DataType::Float64),
    ("double precision", DataType::Float64),
    ("float", DataType::Float32),
    ("float4", DataType::Float32),
    ("float64", DataType::Float64),
    ("float8", DataType::Float64),
    ("int", DataType::Int32),
    ("int2", DataType::Int16),
    ("int4", DataType::Int32),
    ("int64", DataType::Int64),
    ("int8", DataType::Int64),
    ("integer", DataType::Int32),
    ("real", DataType::Float32),
    ("smallint", DataType::Int16),
    ("string", DataType::Utf8),
    ("text", DataType::Utf8),
    ("tinyint", DataType::Int8),
    ("varchar", DataType::Utf8),
];

/// The type of a column that an option names.
pub(in crate::sql) fn type_named(name: &str) -> Option<DataType> {
    let name = name.trim().to_lowercase();
    NAMES.iter().find(|(known, _)| *known == name).map(|(_, dtype)| dtype.clone())
}

/// The decimals that a name of a type means, such as `decimal(10, 2)`; of 38 digits at most.
pub(in crate::sql) fn decimal_named(name: &str) -> Option<DataType> {
    let lower = name.trim().to_lowercase();
    let rest = lower.strip_prefix("decimal").or_else(|| lower.strip_prefix("numeric"))?.trim();
    if rest.is_empty() {
        return Some(DataType::Decimal128(DECIMAL128_MAX_PRECISION, DECIMAL_DEFAULT_SCALE));
    }
    let numbers = rest.strip_prefix('(')?.strip_suffix(')')?;
    let (digits, scale) = numbers.split_once(',').unwrap_or((numbers, "0"));
    let (digits, scale): (u8, u8) = (digits.trim().parse().ok()?, scale.trim().parse().ok()?);
    let is_known = (1..=DECIMAL128_MAX_PRECISION).contains(&digits) && scale <= digits;
    let scale = i8::try_from(scale).ok()?;
    is_known.then_some(DataType::Decimal128(digits, scale))
}

/// Names of types that casts have, for those that were probably meant.
pub(in crate::sql) fn type_names() -> impl Iterator<Item = &'static str> {
    NAMES.iter().map(|(name, _)| *name).chain([
        "date",
        "time",
        "timestamp",
        "interval",
        "decimal",
        "numeric",
        "bytea",
    ])
}

/// Types of the library in messages, and those of SQL that stand for them.
const WORDS: [(&str, &str); 25] = [
    ("Binary", "BYTEA"),
    ("BinaryView", "BYTEA"),
    ("Boolean", "BOOLEAN"),
    ("Date32", "DATE"),
    ("Date64", "DATE"),
    ("Decimal", "DECIMAL"),
    ("Decimal128", "DECIMAL"),
    ("Decimal256", "DECIMAL"),
    ("Float32", "REAL"),
    ("Float64", "DOUBLE"),
    ("Int16", "SMALLINT"),
    ("Int32", "INTEGER"),
    ("Int64", "BIGINT"),
    ("Int8", "TINYINT"),
    ("LargeUtf8", "VARCHAR"),
    ("Null", "NULL"),
    ("String", "VARCHAR"),
    ("Time64", "TIME"),
    ("Timestamp", "TIMESTAMP"),
    ("UInt16", "SMALLINT UNSIGNED"),
    ("UInt32", "INTEGER UNSIGNED"),
    ("UInt64", "BIGINT UNSIGNED"),
    ("UInt8", "TINYINT UNSIGNED"),
    ("Utf8", "VARCHAR"),
    ("Utf8View", "VARCHAR"),
];

/// A message with types as SQL names them, and values as statements have them: `Int64(1)` is `1`. What is in
/// quotes is a name or a value, which stays.
pub(in crate::sql) fn in_sql(text: &str) -> String {
    let mut found = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let is_quote = first == '"' || (first == '\'' && !found.ends_with(char::is_alphanumeric));
        if is_quote {
            let end = rest[1..].find(first).map_or(rest.len(), |end| end + 2);
            found.push_str(&rest[..end]);
            rest = &rest[end..];
            continue;
        }
        let is_name = |letter: char| letter.is_alphanumeric() || letter == '_';
        let end = rest.find(|letter| !is_name(letter)).unwrap_or(rest.len());
        if end == 0 {
            found.push(first);
            rest = &rest[first.len_utf8()..];
            continue;
        }
        let (word, behind) = rest.split_at(end);
        rest = behind;
        match WORDS.iter().find(|(known, _)| *known == word) {
            None => found.push_str(word),
            Some((_, name)) => match literal(behind) {
                Some((value, end)) => {
                    found.push_str(&value);
                    rest = &behind[end..];
                }
                None => found.push_str(name),
            },
        }
    }
    found
}

/// The value in brackets with which a text begins, as a statement has it, and the bytes that it takes. What
/// two numbers are is the room of a decimal.
fn literal(text: &str) -> Option<(String, usize)> {
    let inner = text.strip_prefix('(')?;
    if let Some(quoted) = inner.strip_prefix('"') {
        let end = quoted.find("\")")?;
        return Some((format!("'{}'", &quoted[..end]), end + 4));
    }
    let end = inner.find(')')?;
    let value = &inner[..end];
    let is_value = value.parse::<f64>().is_ok() || matches!(value, "true" | "false" | "NULL");
    is_value.then(|| (value.to_owned(), end + 2))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sql::SqlSession;

    #[test]
    fn casts_to_a_name_have_its_type() {
        let mut session = SqlSession::default();
        for name in [
            "VARCHAR",
            "BOOLEAN",
            "TINYINT",
            "SMALLINT",
            "INTEGER",
            "BIGINT",
            "TINYINT UNSIGNED",
            "SMALLINT UNSIGNED",
            "INTEGER UNSIGNED",
            "BIGINT UNSIGNED",
            "REAL",
            "DOUBLE",
            "DECIMAL(10,2)",
            "DATE",
            "TIME",
            "TIMESTAMP(0)",
            "TIMESTAMP(3)",
            "TIMESTAMP(6)",
            "TIMESTAMP",
            "INTERVAL",
            "BYTEA",
            "BIGINT[]",
            "VARCHAR[][]",
        ] {
            let described = session.run(&format!("describe select cast(null as {name}) as a"));
            let described = described.unwrap_or_else(|error| panic!("{name}: {error}"));
            assert_eq!(described[0][1], name);
        }
    }

    #[test]
    fn messages_have_the_words_of_sql() {
        for (text, expected) in [
            (
                "no function sum(Utf8); there are sum(Int64)",
                "no function sum(VARCHAR); there are sum(BIGINT)",
            ),
            ("a > Int64(1) and b = Utf8(\"x y\")", "a > 1 and b = 'x y'"),
            ("column \"Int64\" of Decimal128(10, 2)", "column \"Int64\" of DECIMAL(10, 2)"),
            ("MyInt64 Boolean(true) Float64(1.5) Int64(NULL)", "MyInt64 true 1.5 NULL"),
            ("\"open", "\"open"),
            ("doesn't cast 'Int64' to Int32", "doesn't cast 'Int64' to INTEGER"),
            ("Utf8(\"x", "VARCHAR(\"x"),
            ("ü Int32", "ü INTEGER"),
        ] {
            assert_eq!(in_sql(text), expected);
        }
    }
}
