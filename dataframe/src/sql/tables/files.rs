//! The files that statements write, which are made elsewhere and moved when they are complete.

use crate::error::{Error, Result};
use crate::sql::plans::projection;
use crate::stage::Resident;
use crate::write::{DATE_TIME, NULL_FOLDER, Staged};
use arrow::array::Array;
use arrow::datatypes::{DataType, Schema};
use datafusion::catalog::TableProvider;
use datafusion::common::Column;
use datafusion::datasource::listing::{ListingTable, ListingTableConfig, ListingTableUrl};
use datafusion::datasource::provider_as_source;
use datafusion::functions::core::expr_fn::coalesce;
use datafusion::logical_expr::dml::CopyTo;
use datafusion::logical_expr::{Expr, TableSource, cast, lit};
use std::sync::Arc;

/// The option of a plan that says what happens to the files that a folder has.
pub(super) const OLD_FILES: &str = "tharsis.old_files";
/// The new files stand beside them.
pub(super) const APPEND: &str = "append";
/// The new files take their place.
pub(super) const OVERWRITE: &str = "overwrite";

/// The place of the files of a `COPY`. The library takes a path with an extension for a file, and any other
/// for a folder to which it adds files.
pub(in crate::sql) fn of_copy(copy: &mut CopyTo) -> Result<Staged> {
    let url = ListingTableUrl::parse(&copy.output_url)?;
    let path = local(&url, "COPY")?;
    let is_file = copy.partition_by.is_empty() && !url.is_collection() && url.file_extension().is_some();
    // The library knows no such option.
    let old_files = copy.options.remove(OLD_FILES);
    match old_files.as_deref() {
        Some(APPEND) if is_file => Err(Error::Value(
            "append is an option of COPY to a folder: a file is replaced as a whole".to_owned(),
        )),
        _ if is_file => Staged::file(&path),
        Some(APPEND) => Staged::folder(&path),
        Some(OVERWRITE) => Staged::replaced_folder(&path),
        _ => Staged::empty_folder(&path),
    }
}

/// A `COPY` as frames write files: CSV and JSON with the compression that the end of the name says, times of
/// CSV, and folders of missing values; refused for columns that the library does not write. `keeps_columns`
/// says whether files keep the columns of folders if the statement does not say it.
pub(in crate::sql) fn as_frames_write(copy: CopyTo, keeps_columns: bool) -> Result<CopyTo> {
    let mut copy = with_folders(copy, keeps_columns)?;
    let is_csv = copy.file_type.get_ext() == "csv";
    let is_text = is_csv || copy.file_type.get_ext() == "json";
    if let Some((_, compression)) = compressed(&copy.output_url).filter(|_| is_text) {
        let option = "format.compression".to_owned();
        copy.options.entry(option).or_insert_with(|| compression.to_owned());
    }
    if !is_csv {
        return Ok(copy);
    }
    let nested = copy.input.schema().fields().iter().find(|field| field.data_type().is_nested());
    if let Some(field) = nested {
        return Err(Error::NotImplemented(format!(
            "COPY of column {:?} to CSV is not supported, since it has lists or objects: write JSON or Parquet",
            field.name()
        )));
    }
    for (option, format) in [
        ("format.timestamp_format", DATE_TIME.to_owned()),
        ("format.timestamp_tz_format", format!("{DATE_TIME}%:z")),
    ] {
        copy.options.entry(option.to_owned()).or_insert(format);
    }
    Ok(copy)
}

/// A `COPY` whose folders have the names that frames give them. For a missing value the library would write
/// the folder of zero, false, an empty text or 1970.
fn with_folders(mut copy: CopyTo, keeps_columns: bool) -> Result<CopyTo> {
    // Their values are in the files too.
    let told = copy.options.get(KEPT_COLUMNS).map(|value| value.eq_ignore_ascii_case("true"));
    let are_kept = told.unwrap_or(keeps_columns);
    if copy.partition_by.is_empty() || are_kept {
        return Ok(copy);
    }
    let schema = copy.input.schema();
    let is_key = |name: &String| copy.partition_by.contains(name);
    if schema.fields().iter().all(|field| is_key(field.name())) {
        return Err(Error::Value(
            "COPY by the values of all columns leaves none for the files: name fewer in PARTITION_BY"
                .to_owned(),
        ));
    }
    let nested = schema.fields().iter().find(|field| is_key(field.name()) && field.data_type().is_nested());
    if let Some(field) = nested {
        let name = field.name();
        return Err(Error::NotImplemented(format!(
            "COPY by the values of column {name:?} is not supported, since it has lists or objects"
        )));
    }
    let exprs = schema.iter().map(|(table, field)| {
        let column = Expr::Column(Column::new(table.cloned(), field.name()));
        if !is_key(field.name()) {
            return column;
        }
        let names = coalesce(vec![cast(column, DataType::Utf8), lit(NULL_FOLDER)]);
        names.alias_qualified(table.cloned(), field.name())
    });
    copy.input = projection(exprs.collect(), Arc::clone(&copy.input))?;
    Ok(copy)
}

/// Refuses rows of an `INSERT` whose folder has no name in a table of files.
pub(in crate::sql) fn check_folders(table: &dyn TableProvider, rows: &Resident) -> Result<()> {
    let Some(table) = table.downcast_ref::<ListingTable>() else { return Ok(()) };
    let keys = table.options().table_partition_cols.len();
    // They are the last columns.
    let first = rows.schema.fields().len().saturating_sub(keys);
    if keys == 0 {
        return Ok(());
    }
    for part in &rows.parts {
        for batch in part.fetch()? {
            let columns = batch.columns().iter().zip(rows.schema.fields()).skip(first);
            if let Some((_, field)) = columns.into_iter().find(|(values, _)| 0 < values.logical_null_count())
            {
                let name = field.name();
                return Err(Error::Value(format!(
                    "INSERT of a row whose {name:?} is missing: the table has a folder for each of its values, and \
                     none for missing ones"
                )));
            }
        }
    }
    Ok(())
}

/// The option that keeps the columns of folders in the files.
const KEPT_COLUMNS: &str = "execution.keep_partition_by_columns";

/// A name before the ending of a compression, and the compression.
pub(in crate::sql) fn compressed(name: &str) -> Option<(&str, &'static str)> {
    COMPRESSIONS.iter().find_map(|(ending, compression)| {
        let at = name.len().checked_sub(ending.len())?;
        name.get(at..)?.eq_ignore_ascii_case(ending).then(|| (&name[..at], *compression))
    })
}

/// Ends of names, and the compression that readers find by them.
const COMPRESSIONS: [(&str, &str); 4] = [(".bz2", "bzip2"), (".gz", "gzip"), (".xz", "xz"), (".zst", "zstd")];

/// The place of the files of an `INSERT`, and the table that it adds rows to in the place of this one; none
/// for a table that is no folder of files.
pub(in crate::sql) fn of_insert(table: &dyn TableProvider) -> Result<Option<(Staged, Arc<dyn TableSource>)>> {
    let Some(table) = table.downcast_ref::<ListingTable>() else { return Ok(None) };
    // The library adds files to the first folder.
    let url = table.table_paths().first().filter(|url| url.is_collection());
    let Some(url) = url else { return Ok(None) };
    let staged = Staged::folder(&local(url, "INSERT")?)?;
    let (schema, options) = (table.schema(), table.options().clone());
    // The columns of folders come behind those of files.
    let columns = schema.fields().len().saturating_sub(options.table_partition_cols.len());
    let fields: Vec<_> = schema.fields().iter().take(columns).cloned().collect();
    let of_files = Schema::new_with_metadata(fields, schema.metadata().clone());
    let config = ListingTableConfig::new(ListingTableUrl::parse(staged.url())?)
        .with_listing_options(options)
        .with_schema(Arc::new(of_files));
    let elsewhere = provider_as_source(Arc::new(ListingTable::try_new(config)?));
    Ok(Some((staged, elsewhere)))
}

/// The path of a URL on the local disk. In a store the library would write objects one after the other that
/// readers see before the statement has ended, and leave those of one that fails.
fn local(url: &ListingTableUrl, statement: &str) -> Result<String> {
    if url.scheme() == "file" {
        return Ok(format!("/{}", url.prefix()));
    }
    let scheme = url.scheme();
    Err(Error::NotImplemented(format!(
        "{statement} to {scheme}:// is not supported: write the rows of the query as a frame, with to_parquet \
         or to_csv, which shows all of them at once"
    )))
}
