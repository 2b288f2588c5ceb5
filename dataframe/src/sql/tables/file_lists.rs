//! Lists of files in FROM: `read_csv(['january.csv', 'february.csv'])`.

use super::file_options::Call;
use crate::error::{Error, FileFault, Result};
use crate::frame::DataFrame;
use crate::read::joined;
use crate::sql::values::type_names::type_name;
use arrow::datatypes::DataType;
use datafusion::logical_expr::LogicalPlan;
use std::collections::BTreeMap;

/// The rows of all files, one after the other; so many of them at most. The files of a list are read as those
/// of a pattern; one by one if their columns are in another order, or they are in several stores.
pub(in crate::sql) fn of_paths(
    call: &Call,
    rows: Option<usize>,
    read: impl Fn(&str) -> DataFrame,
) -> Result<LogicalPlan> {
    let mut frame = read(&joined(&call.paths));
    let refused = |error: &Error| {
        let fault = if let Error::File { fault, .. } = error.root() { Some(fault) } else { None };
        matches!(fault, Some(FileFault::Mismatch | FileFault::Unsupported))
    };
    if 1 < call.paths.len() && frame.frame().is_err_and(|error| refused(&error)) {
        let frames: Vec<DataFrame> = call.paths.iter().map(|path| read(path)).collect();
        check_same(call, &frames)?;
        frame = DataFrame::concat(&frames, true);
    }
    let frame = match rows {
        Some(rows) => frame.head(rows),
        None => frame,
    };
    frame.frame()?.visible()
}

/// Refuses files of other columns or types than the first one has. Frames would put them below each other as
/// pandas does: whole numbers of one file would be floats beside those of another, and times of all files in
/// the zone of the last one.
fn check_same(call: &Call, frames: &[DataFrame]) -> Result<()> {
    let columns = frames.iter().map(types_of).collect::<Result<Vec<_>>>()?;
    let Some((first, others)) = columns.split_first() else { return Ok(()) };
    for (path, own) in call.paths.iter().skip(1).zip(others) {
        let differs = |reason: String| Err(Error::file(path, FileFault::Mismatch, reason));
        for (column, dtype) in first {
            match own.get(column) {
                Some(same) if is_same(same, dtype) => {}
                Some(other) => {
                    let advice =
                        if call.function == "read_csv" { "say its type with dtypes, or " } else { "" };
                    let [other, dtype] = different_names(other, dtype);
                    return differs(format!(
                        "column {column:?} is {other} here and {dtype} in the first file of the list: {advice}put \
                         the files together by UNION ALL and CAST"
                    ));
                }
                None => {
                    return differs(format!("no column {column:?}, which the first file of the list has"));
                }
            }
        }
        if let Some(column) = own.keys().find(|column| !first.contains_key(*column)) {
            return differs(format!("column {column:?} is not in the first file of the list"));
        }
    }
    Ok(())
}

/// Whether values of two types stay what they are below each other: texts do, however they are stored.
fn is_same(one: &DataType, other: &DataType) -> bool {
    let is_text = |dtype: &DataType| type_name(dtype) == type_name(&DataType::Utf8);
    one.equals_datatype(other) || (is_text(one) && is_text(other))
}

/// The names of two types that differ: those of SQL, unless they are the same.
fn different_names(one: &DataType, other: &DataType) -> [String; 2] {
    let names = [one, other].map(type_name);
    if names[0] == names[1] { [one, other].map(ToString::to_string) } else { names }
}

/// The types of the columns of a frame.
fn types_of(frame: &DataFrame) -> Result<BTreeMap<String, DataType>> {
    let plan = frame.frame()?.visible()?;
    let fields = plan.schema().fields().iter();
    Ok(fields.map(|field| (field.name().clone(), field.data_type().clone())).collect())
}

#[cfg(test)]
pub(crate) mod tests {
    use crate::DataFrame;
    use crate::sql::SqlSession;
    use arrow::array::{ArrayRef, FixedSizeBinaryArray, RecordBatch, TimestampMicrosecondArray};
    use std::path::PathBuf;
    use std::sync::Arc;

    /// A folder with files, which is removed when it is dropped.
    pub(crate) struct Folder(tempfile::TempDir);

    impl Folder {
        pub(crate) fn new(files: &[(&str, &str)]) -> Folder {
            let folder = tempfile::tempdir().expect("a folder");
            for (name, text) in files {
                let path: PathBuf = folder.path().join(name);
                std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
                std::fs::write(path, text).expect("a file");
            }
            Folder(folder)
        }

        pub(crate) fn query(&self, query: &str) -> String {
            query.replace("$", &self.0.path().display().to_string())
        }

        #[track_caller]
        pub(crate) fn rows(&self, query: &str) -> Vec<String> {
            let rows = SqlSession::default().run(&self.query(query));
            let rows = rows.unwrap_or_else(|error| panic!("{query}: {error}"));
            rows.into_iter().map(|row| row.join(" ")).collect()
        }

        #[track_caller]
        pub(crate) fn refused(&self, query: &str) -> String {
            let error = SqlSession::default().run(&self.query(query)).expect_err(query);
            error.to_string().replace(&self.0.path().display().to_string(), "$")
        }
    }

    #[test]
    fn files_of_a_list_have_the_same_columns() {
        let folder = Folder::new(&[
            ("a.csv", "id,x\n9007199254740993,1\n"),
            ("b.csv", "x,id\n2,5\n"),
            ("c.csv", "id\n5\n"),
            ("d.csv", "x,id\n2,0.5\n"),
        ]);
        for (other, expected) in [
            ("c.csv", "$/c.csv: no column \"x\""),
            (
                "d.csv",
                "$/d.csv: column \"id\" is DOUBLE here and BIGINT in the first file of the list: say its",
            ),
        ] {
            let told = folder.refused(&format!("select id from read_csv(['$/a.csv', '$/{other}'])"));
            assert!(told.starts_with("line 1, column 26: ") && told.contains(expected), "{other}: {told}");
        }
        assert!(
            folder
                .refused("select * from read_csv(['$/c.csv', '$/a.csv'])")
                .contains("column \"x\" is not in")
        );
        let query = "select id, x from read_csv(['$/a.csv', '$/b.csv']) order by 1";
        assert_eq!(folder.rows(query), ["5 2", "9007199254740993 1"]);
        let told = folder.refused("select id, x from read_csv('$/[ab].csv')");
        let orders = "/b.csv: the columns are in another order than in the first file: \"x\", \"id\", not \"id\", \"x\"";
        assert!(told.contains(orders) && told.contains("they are matched by name"), "{told}");
        let query = "select id from read_csv(['$/b.csv', '$/a.csv'], nrows = 1)";
        assert_eq!(folder.rows(query), ["5"]);
        assert!(
            folder
                .refused("select * from read_csv(['$/a.csv', '$/none.csv'])")
                .contains("$/none.csv: no such")
        );
    }

    #[test]
    fn lists_are_patterns_that_are_spelled_out() {
        for (reader, first, second) in [
            ("csv", "id\n1\n", "id\n"),
            ("csv", "id\n", "id\nx\n"),
            ("csv", "id\n1\n", "id\n2.5\n"),
            ("csv", "id,x\n9007199254740993,1\n", "id,x\n,1\n"),
            ("csv", "id\n1\n", "id\n18446744073709551615\n"),
            ("csv", "id\nx\n", "id\n1\n"),
            ("json", "{\"a\":1}\n", "{\"a\":2.5}\n"),
            ("json", "{\"a\":1}\n", "{\"a\":null}\n"),
            ("json", "{\"a\":1}\n", "{\"b\":\"x\",\"a\":2}\n"),
        ] {
            let folder = Folder::new(&[("1", first), ("2", second)]);
            for query in ["describe select * from", "select count(*) from", "select * from"] {
                let rows = |paths: &str| {
                    let order = if query.starts_with("select *") { "order by all" } else { "" };
                    folder.rows(&format!("{query} read_{reader}({paths}) {order}"))
                };
                let (list, pattern) = (rows("['$/1', '$/2']"), rows("'$/[12]'"));
                assert_eq!(list, pattern, "{query} {first:?} {second:?}");
                assert!(!list.is_empty());
            }
        }
        let folder = Folder::new(&[("1.csv", "n\n1\n"), ("2.csv", "n\n2\n")]);
        assert_eq!(folder.rows("select n from read_csv(['$/2.csv', '$/1.csv'], nrows = 1)"), ["2"]);
        assert_eq!(folder.rows("select sum(n) from read_csv(['$/2.csv', '$/*.csv', '$/2.csv'])"), ["7"]);
    }

    #[test]
    fn times_of_a_list_keep_their_zones() {
        let folder = Folder::new(&[]);
        let file = |name: &str, column: ArrayRef| {
            let batch = RecordBatch::try_from_iter([("v", column)]).expect("a batch");
            let frame = DataFrame::from_batches(batch.schema(), vec![batch]);
            frame.to_parquet(&folder.query(name)).expect("a file");
        };
        let times = |zone: &str| -> ArrayRef {
            Arc::new(TimestampMicrosecondArray::from(vec![1_717_236_000_000_000]).with_timezone(zone))
        };
        let bytes = |value: &[u8]| -> ArrayRef {
            Arc::new(FixedSizeBinaryArray::try_from_iter([value].into_iter()).expect("bytes"))
        };
        for (first, second) in
            [(times("Europe/Berlin"), times("America/New_York")), (bytes(&[1]), bytes(&[1, 2]))]
        {
            file("$/1.parquet", Arc::clone(&first));
            file("$/2.parquet", second);
            for paths in ["['$/1.parquet', '$/2.parquet']", "'$/*.parquet'"] {
                let told = folder.refused(&format!("select * from read_parquet({paths})"));
                assert!(told.contains("/2.parquet: ") && told.contains("in the first file"), "{told}");
                assert!(!told.contains("dtypes"), "it has no options: {told}");
            }
            file("$/2.parquet", first);
            let query =
                "select count(*), count(distinct v) from read_parquet(['$/1.parquet', '$/2.parquet'])";
            assert_eq!(folder.rows(query), ["2 1"]);
        }
    }
}
