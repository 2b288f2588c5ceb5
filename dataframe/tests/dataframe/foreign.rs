//! Floats that are no number, and both zeros, in files and queries: frames have neither.

use crate::executors::each_executor;
use arrow::array::{ArrayRef, Float64Array, Int64Array, RecordBatch};
use datafusion::parquet::arrow::ArrowWriter;
use std::fs::File;
use std::sync::Arc;
use tempfile::TempDir;
use tharsis_dataframe::{CsvOptions, DataFrame, Sort, read_arrow, read_csv, read_parquet, sql};

/// A frame with a float that is none, and both zeros, from each kind of file and from SQL.
fn from_outside(folder: &TempDir) -> Vec<(&'static str, DataFrame)> {
    let path = |name: &str| folder.path().join(name).to_string_lossy().into_owned();
    let x: ArrayRef =
        Arc::new(Float64Array::from(vec![Some(1.0), Some(f64::NAN), Some(-0.0), Some(0.0), None]));
    let i: ArrayRef = Arc::new(Int64Array::from(vec![1, 2, 3, 4, 5]));
    let batch = RecordBatch::try_from_iter_with_nullable([("x", x, true), ("i", i, true)]).unwrap();
    let mut parquet =
        ArrowWriter::try_new(File::create(path("t.parquet")).unwrap(), batch.schema(), None).unwrap();
    parquet.write(&batch).unwrap();
    parquet.close().unwrap();
    let file = File::create(path("t.arrow")).unwrap();
    let mut ipc = arrow::ipc::writer::FileWriter::try_new(file, &batch.schema()).unwrap();
    ipc.write(&batch).unwrap();
    ipc.finish().unwrap();
    std::fs::write(path("t.csv"), "x,i\n1.0,1\nNAN,2\n-0.0,3\n0.0,4\n,5\n").unwrap();
    let one = DataFrame::from_columns([("i", vec![1, 2, 3, 4, 5].into())]);
    let query = "select case i when 1 then 1.0::double when 2 then 'NaN'::double when 3 then -0.0::double \
                 when 4 then 0.0::double end x, i from one order by i";
    vec![
        ("parquet", read_parquet(&path("t.parquet"))),
        ("arrow", read_arrow(&path("t.arrow"))),
        ("csv", read_csv(&path("t.csv"), CsvOptions::new())),
        ("batches", DataFrame::from_batches(batch.schema(), vec![batch])),
        ("sql", sql(query, &[("one", &one)])),
    ]
}

#[test]
fn what_is_no_number_is_missing_wherever_it_comes_from() {
    let folder = TempDir::new().unwrap();
    for (name, frame) in from_outside(&folder) {
        let x = frame.col("x");
        assert_eq!(x.isna().values::<bool>().unwrap(), [false, true, false, false, true].map(Some), "{name}");
        assert_eq!(x.count().unwrap().as_i64(), Some(3), "{name}");
        assert_eq!((x.sum().unwrap().as_f64(), x.max().unwrap().as_f64()), (Some(1.0), Some(1.0)), "{name}");
        for rows in each_executor(|executor| Ok(frame.query("x > 5").collect_on(executor)?.len())) {
            assert_eq!(rows, 0, "{name}");
        }
        assert_eq!(frame.query("x == 0").len().unwrap(), 2, "{name}");
        assert_eq!(frame.query("x >= 0").len().unwrap(), 3, "{name}");
        assert_eq!(frame.query("x < 0").len().unwrap(), 0, "{name}");
        assert_eq!(frame.dropna().len().unwrap(), 3, "{name}");
        assert_eq!(x.fillna(7.0).max().unwrap().as_f64(), Some(7.0), "{name}");
        assert_eq!(frame.groupby(["x"]).size().len().unwrap(), 2, "{name}");
        let sorted = frame.sort_values(["x"], Sort::default()).col("i").values::<i64>().unwrap();
        assert_eq!(sorted[..3], [Some(3), Some(4), Some(1)], "{name}");
        let counted = frame.groupby(["x"]).cumcount().values::<i64>().unwrap();
        assert_eq!(counted[2..4], [Some(0), Some(1)], "{name}");
    }
}

#[test]
fn readers_leave_out_row_groups_by_filters_of_floats() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("t.parquet").to_string_lossy().into_owned();
    let batch = |from: f64| {
        let x: ArrayRef = Arc::new(Float64Array::from_iter_values((0..10).map(|at| from + f64::from(at))));
        RecordBatch::try_from_iter_with_nullable([("x", x, true)]).unwrap()
    };
    let mut parquet = ArrowWriter::try_new(File::create(&path).unwrap(), batch(0.0).schema(), None).unwrap();
    for from in [0.0, 100.0] {
        parquet.write(&batch(from)).unwrap();
        parquet.flush().unwrap();
    }
    parquet.close().unwrap();
    let frame = read_parquet(&path).query("x > 50");
    assert_eq!(frame.len().unwrap(), 10);
    let plan = frame.reset_index(true).explain().unwrap().to_string();
    assert!(plan.contains("x_max"), "{plan}");
}
