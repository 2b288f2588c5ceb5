//! Decimals of CSV in tables whose columns a statement declares.
//!
//! The library cuts the digits that a column has no room for. Frames round a decimal of CSV, as PostgreSQL
//! does: so the column is read with one digit more, and rounded by a cast.

use arrow::datatypes::{DECIMAL256_MAX_PRECISION, DataType, Field, Schema};
use datafusion::catalog::TableProvider;
use datafusion::common::{Column, Result as EngineResult};
use datafusion::datasource::listing::{ListingTable, ListingTableConfig};
use datafusion::datasource::{provider_as_source, source_as_provider};
use datafusion::logical_expr::logical_plan::{TableScan, TableScanBuilder};
use datafusion::logical_expr::{Cast, Expr, LogicalPlan, Projection};
use std::sync::Arc;

/// The rows of a scan of files with rounded decimals.
pub(in crate::sql) fn rounded(rows: LogicalPlan) -> EngineResult<LogicalPlan> {
    let LogicalPlan::TableScan(scan) = &rows else { return Ok(rows) };
    let Some(read) = with_more_digits(scan)? else { return Ok(rows) };
    let columns =
        read.projected_schema.iter().zip(scan.projected_schema.fields()).map(|((table, field), declared)| {
            let column = Expr::Column(Column::new(table.cloned(), field.name()));
            if field.data_type() == declared.data_type() {
                return column;
            }
            let column = Expr::Cast(Cast::new(Box::new(column), declared.data_type().clone()));
            column.alias_qualified(table.cloned(), field.name())
        });
    let columns = columns.collect();
    Ok(LogicalPlan::Projection(Projection::try_new(columns, Arc::new(LogicalPlan::TableScan(read)))?))
}

/// The scan with one digit more in decimals of CSV; `None` for a scan without some.
fn with_more_digits(scan: &TableScan) -> EngineResult<Option<TableScan>> {
    let provider = source_as_provider(&scan.source)?;
    let Some(table) = provider.downcast_ref::<ListingTable>() else { return Ok(None) };
    // Conditions would be of decimals that are not rounded.
    if table.options().format.get_ext() != "csv" || !scan.filters.is_empty() {
        return Ok(None);
    }
    let schema = table.schema();
    // The columns of folders come behind those of files.
    let columns = schema.fields().len().saturating_sub(table.options().table_partition_cols.len());
    let fields = schema.fields().iter().take(columns);
    if fields.clone().all(|field| wider(field.data_type()).is_none()) {
        return Ok(None);
    }
    let fields: Vec<Field> = fields.map(|field| with_type(field, wider(field.data_type()))).collect();
    // Rows in the order of rounded decimals are in none of others.
    let options = table.options().clone().with_file_sort_order(Vec::new());
    let config = ListingTableConfig::new_with_multi_paths(table.table_paths().clone())
        .with_listing_options(options)
        .with_schema(Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone())));
    let read = provider_as_source(Arc::new(ListingTable::try_new(config)?));
    let read = TableScanBuilder::new(scan.table_name.clone(), read)
        .with_projection(scan.projection.clone())
        .with_fetch(scan.fetch);
    read.build().map(Some)
}

fn with_type(field: &Field, dtype: Option<DataType>) -> Field {
    match dtype {
        Some(dtype) => field.clone().with_data_type(dtype),
        None => field.clone(),
    }
}

/// The type of decimals with one digit more; `None` for other types, and for what has all digits: the plan of
/// a prepared statement comes here again. A text with an exponent may have more than 38 digits: in a type of
/// so many the library would read another number.
fn wider(dtype: &DataType) -> Option<DataType> {
    match dtype {
        DataType::Decimal32(_, scale) | DataType::Decimal64(_, scale) | DataType::Decimal128(_, scale) => {
            Some(DataType::Decimal256(DECIMAL256_MAX_PRECISION, scale + 1))
        }
        DataType::Decimal256(digits, scale) if *digits < DECIMAL256_MAX_PRECISION => {
            Some(DataType::Decimal256(DECIMAL256_MAX_PRECISION, scale + 1))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use crate::sql::small_tables::{cells, session_of};

    #[test]
    fn decimals_of_csv_are_rounded() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("t.csv");
        let long = format!("1.235{}e0", "0".repeat(40));
        let text = "k,v,w\n1,1.239,0.5\n2,-1.235,1.5\n3,1.2345,-0.4\n4,,\n5,7,12.4\n6,1.2399e0,1e1\n";
        std::fs::write(&path, format!("{text}7,{long},1\n")).expect("a file");
        let made = |table: &str, v: &str| {
            let location = path.display();
            let columns = format!("k int, v decimal({v}), w decimal(4, 0)");
            format!(
                "create external table {table} ({columns}) stored as csv location '{location}' \
                 options (format.has_header true)"
            )
        };
        let mut session = session_of(&[
            &made("t", "10, 2"),
            &made("small", "2, 1"),
            "prepare p(int) as select v from t where k = $1",
        ]);
        let expected =
            [["1.24", "1"], ["-1.24", "2"], ["1.23", "0"], ["NULL", "NULL"], ["7.00", "12"], ["1.24", "10"]];
        assert_eq!(cells(&mut session, "select v, w from t where k < 7 order by k"), expected);
        assert_eq!(cells(&mut session, "select count(*) from t where v = decimal '1.24'"), [["3"]]);
        assert_eq!(cells(&mut session, "execute p(3)"), [["1.23"]]);
        assert_eq!(cells(&mut session, "describe t")[1], ["v", "DECIMAL(10,2)", "YES"]);
        assert_eq!(cells(&mut session, "select v from small where k = 1"), [["1.2"]]);
        std::fs::write(&path, "k,v,w\n1,12.5,1\n").expect("a file");
        session.run("select v from small").expect_err("a number with more digits");
    }
}
