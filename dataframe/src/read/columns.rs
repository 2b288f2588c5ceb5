//! The columns of files: names and types, before any row is wanted.

use super::options::CsvOptions;
use super::places::{Found, Place};
use crate::error::{Error, FileFault, Result};
use crate::scan::{Classes, Text, TextForm, ipc_columns, named_async, same_columns, sample};
use arrow::array::timezone::Tz;
use arrow::datatypes::{
    DECIMAL32_MAX_PRECISION, DECIMAL64_MAX_PRECISION, DECIMAL128_MAX_PRECISION, DECIMAL256_MAX_PRECISION,
    DataType, Field, Schema, SchemaRef,
};
use datafusion::catalog::Session;
use datafusion::datasource::file_format::FileFormat;
use futures::{StreamExt, TryStreamExt};
use object_store::ObjectStore;
use std::sync::Arc;

/// The columns of files of a binary format, which must be the same in all of them.
pub(super) async fn of_binary(
    session: &dyn Session,
    store: &Arc<dyn ObjectStore>,
    place: &Place,
    found: &[Found],
    format: &dyn FileFormat,
) -> Result<SchemaRef> {
    let schemas: Vec<_> = found.iter().map(|file| of_file(session, store, place, file, format)).collect();
    same(place, schemas).await
}

/// The columns of files of Arrow's IPC, which must be the same in all of them.
pub(super) async fn of_ipc(
    store: &Arc<dyn ObjectStore>,
    place: &Place,
    found: &[Found],
) -> Result<SchemaRef> {
    let schemas: Vec<_> = found.iter().map(|file| of_ipc_file(store, place, file)).collect();
    same(place, schemas).await
}

async fn of_ipc_file(
    store: &Arc<dyn ObjectStore>,
    place: &Place,
    file: &Found,
) -> Result<(String, SchemaRef)> {
    let path = place.shown(&file.meta.location);
    let schema = async { Ok(ipc_columns(store, &file.meta.location, &path, file.meta.size).await?) };
    let schema = named_async(&path, schema).await?;
    check(&path, &schema)?;
    Ok((path, schema))
}

/// The columns of files, which must be the same in all of them.
async fn same(
    place: &Place,
    schemas: Vec<impl Future<Output = Result<(String, SchemaRef)>>>,
) -> Result<SchemaRef> {
    let mut schemas = futures::stream::iter(schemas).buffered(FILES_AT_ONCE);
    let Some((_, first)) = schemas.try_next().await? else {
        return Err(Error::file(&place.text, FileFault::Missing, "no file"));
    };
    while let Some((path, schema)) = schemas.try_next().await? {
        if let Some(difference) = same_columns(&first, &schema) {
            return Err(Error::file(&path, FileFault::Mismatch, difference));
        }
    }
    // Of files with the same columns, one may lack values where another one does not.
    let fields = first.fields().iter().map(|field| field.as_ref().clone().with_nullable(true));
    Ok(Arc::new(Schema::new(fields.collect::<Vec<_>>())))
}

/// The path and the columns of one file.
async fn of_file(
    session: &dyn Session,
    store: &Arc<dyn ObjectStore>,
    place: &Place,
    file: &Found,
    format: &dyn FileFormat,
) -> Result<(String, SchemaRef)> {
    let path = place.shown(&file.meta.location);
    if file.meta.size == 0 {
        return Err(Error::file(&path, FileFault::Corrupt, "the file is empty"));
    }
    let files = std::slice::from_ref(&file.meta);
    let schema = named_async(&path, format.infer_schema(session, store, files)).await?;
    check(&path, &schema)?;
    Ok((path, schema))
}

/// Refuses columns that no frame can have.
fn check(path: &str, schema: &Schema) -> Result<()> {
    let count = schema.fields().len();
    if COLUMNS_MAX < count {
        let reason = format!("it has {count} columns, at most {COLUMNS_MAX} are read");
        return Err(Error::file(path, FileFault::TooLarge, reason));
    }
    let mut labels = std::collections::HashSet::new();
    for field in schema.fields() {
        if !labels.insert(field.name()) {
            let reason = format!("it has two columns {:?}", field.name());
            return Err(Error::file(path, FileFault::Unsupported, reason));
        }
        if let Some(reason) = impossible(field.data_type()) {
            let reason = format!("column {:?}: {reason}", field.name());
            return Err(Error::file(path, FileFault::Corrupt, reason));
        }
        if DEPTH_MAX < depth(field.data_type()) {
            let reason =
                format!("column {:?} has types within types, more than {DEPTH_MAX} deep", field.name());
            return Err(Error::file(path, FileFault::TooLarge, reason));
        }
    }
    Ok(())
}

/// The reason why no value can have a type that a file names.
fn impossible(dtype: &DataType) -> Option<String> {
    let most = match dtype {
        DataType::Decimal32(..) => DECIMAL32_MAX_PRECISION,
        DataType::Decimal64(..) => DECIMAL64_MAX_PRECISION,
        DataType::Decimal128(..) => DECIMAL128_MAX_PRECISION,
        DataType::Decimal256(..) => DECIMAL256_MAX_PRECISION,
        DataType::Timestamp(_, Some(zone)) if zone.parse::<Tz>().is_err() => {
            return Some(format!("{zone:?} is no time zone"));
        }
        _ => return None,
    };
    match dtype {
        DataType::Decimal32(digits, _)
        | DataType::Decimal64(digits, _)
        | DataType::Decimal128(digits, _)
        | DataType::Decimal256(digits, _)
            if !(1..=most).contains(digits) =>
        {
            Some(format!("a decimal number with {digits} digits"))
        }
        _ => None,
    }
}

/// The depth of types within a type; no deeper than is allowed is looked at.
fn depth(dtype: &DataType) -> usize {
    let mut level = vec![dtype];
    let mut depth = 0;
    while !level.is_empty() && depth <= DEPTH_MAX {
        depth += 1;
        level = level.into_iter().flat_map(inner).collect();
    }
    depth
}

fn inner(dtype: &DataType) -> Vec<&DataType> {
    match dtype {
        DataType::List(field)
        | DataType::ListView(field)
        | DataType::LargeList(field)
        | DataType::LargeListView(field)
        | DataType::FixedSizeList(field, _)
        | DataType::Map(field, _) => vec![field.data_type()],
        DataType::Struct(fields) => fields.iter().map(|field| field.data_type()).collect(),
        DataType::Union(fields, _) => fields.iter().map(|(_, field)| field.data_type()).collect(),
        DataType::Dictionary(_, value) => vec![value],
        DataType::RunEndEncoded(_, value) => vec![value.data_type()],
        _ => Vec::new(),
    }
}

/// A file of a text.
fn text(store: &Arc<dyn ObjectStore>, place: &Place, file: &Found, form: &Arc<TextForm>) -> Text {
    Text {
        store: Arc::clone(store),
        location: file.meta.location.clone(),
        path: place.shown(&file.meta.location),
        bytes: file.meta.size,
        range: None,
        form: Arc::clone(form),
    }
}

/// The columns of files of CSV, and their form with the labels of their headers.
pub(super) async fn of_csv(
    store: &Arc<dyn ObjectStore>,
    place: &Place,
    found: &[Found],
    options: &CsvOptions,
) -> Result<(SchemaRef, TextForm)> {
    let form = Arc::new(options.form(None)?);
    let has_header = options.has_header();
    let names = options.names.as_ref().map(Vec::len);
    let (mut header, mut widest): (Option<Vec<String>>, _) = (None, None);
    let mut classes: Vec<Classes> = Vec::new();
    let (mut rows, mut bytes, mut is_whole) = (0, 0, true);
    for file in found {
        if options.infer_bytes <= bytes {
            is_whole = false;
            break;
        }
        let columns = names.or((!classes.is_empty()).then_some(classes.len()));
        let text = text(store, place, file, &form);
        let sample = sample::of_csv(&text, has_header, columns, options.infer_bytes - bytes).await?;
        (rows, bytes) = (rows + sample.rows, bytes + sample.bytes);
        // Filters on folders may leave out files of a pattern with other columns, and none of a list.
        if let Some(first) = header.as_ref().filter(|_| has_header && place.is_list()) {
            sample::check_header(&text.path, &sample.header, first)?;
        }
        is_whole &= sample.is_whole;
        if classes.len() < sample.classes.len() {
            widest = Some((text.path, sample.header.clone()));
        }
        header.get_or_insert(sample.header);
        classes.resize(classes.len().max(sample.classes.len()), Classes::default());
        classes.iter_mut().zip(sample.classes).for_each(|(all, more)| all.join(more));
    }
    let header = header.unwrap_or_default();
    let labels = match (&options.names, has_header) {
        (Some(names), _) => names.clone(),
        (None, true) => header.clone(),
        (None, false) => (0..classes.len()).map(|at| at.to_string()).collect(),
    };
    if labels.len() < classes.len() {
        let (path, own) = widest.unwrap_or_else(|| (place.text.clone(), Vec::new()));
        let more = own.iter().find(|label| has_header && options.names.is_none() && !labels.contains(label));
        let reason = match more {
            Some(label) => format!("column {label:?} is not in the first file"),
            None => format!("{} names for {} columns", labels.len(), classes.len()),
        };
        return Err(Error::file(&path, FileFault::Mismatch, reason));
    }
    classes.resize(labels.len(), Classes::default());
    // A column without a value is one of floats in pandas. Only of texts it is known that all will do.
    let nothing = if is_whole && 0 < rows { DataType::Float64 } else { DataType::Utf8 };
    let fields = labels.iter().zip(&classes).map(|(label, classes)| {
        let asked = options.dtypes.iter().rev().find(|(asked, _)| asked == label);
        let as_text = options.parse_dates.contains(label);
        let dtype = match asked {
            Some((_, dtype)) => dtype.clone(),
            None if as_text => DataType::Utf8,
            None if let Some(dtype) = &options.dtype_of_all => dtype.clone(),
            None => classes.dtype().unwrap_or_else(|| nothing.clone()),
        };
        Field::new(label, dtype, true)
    });
    let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
    check_labels(&labels, options)?;
    check(&place.text, &schema)?;
    Ok((schema, options.form(has_header.then_some(header))?))
}

/// Refuses labels in options that no column has.
fn check_labels(labels: &[String], options: &CsvOptions) -> Result<()> {
    let asked = options.dtypes.iter().map(|(label, _)| label).chain(&options.parse_dates);
    let asked = asked.chain(options.usecols.iter().flatten());
    for label in asked {
        if !labels.contains(label) {
            return Err(Error::Key { label: label.clone(), known: labels.to_vec() });
        }
    }
    Ok(())
}

/// The columns of files of JSON, and whether one of them is an array.
pub(super) async fn of_json(
    store: &Arc<dyn ObjectStore>,
    place: &Place,
    found: &[Found],
    form: &Arc<TextForm>,
    bytes: u64,
) -> Result<(SchemaRef, bool)> {
    let texts = found.iter().map(|file| text(store, place, file, form)).collect();
    let (schema, is_array) = sample::of_json(&place.text, texts, bytes, None).await?;
    check(&place.text, &schema)?;
    Ok((schema, is_array))
}

/// Columns of a file, at most.
const COLUMNS_MAX: usize = 100_000;
/// Types within types, at most.
const DEPTH_MAX: usize = 64;
/// Files that are looked into at a time.
pub(super) const FILES_AT_ONCE: usize = 32;
