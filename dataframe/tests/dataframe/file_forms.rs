//! Forms of files that other programs write: old times of Parquet.

use crate::executors::each_executor;
use arrow::datatypes::{DataType, TimeUnit};
use datafusion::parquet::data_type::{Int96, Int96Type};
use datafusion::parquet::file::properties::WriterProperties;
use datafusion::parquet::file::writer::SerializedFileWriter;
use datafusion::parquet::schema::parser::parse_message_type;
use std::fs;
use std::sync::Arc;
use tempfile::TempDir;
use tharsis_dataframe::{DataFrame, SqlSession, Value, read_parquet};

fn path(folder: &TempDir, name: &str) -> String {
    format!("{}/{name}", folder.path().display())
}

/// Writes a file with a column of times of 96 bits, at noon of some days since 1970.
fn with_old_times(path: &str, days: &[i32]) {
    const NOON: u64 = 43_200_000_000_000;
    const DAY_OF_1970: i32 = 2_440_588;
    let schema = Arc::new(parse_message_type("message m { required int96 t; }").unwrap());
    let file = fs::File::create(path).unwrap();
    let mut writer = SerializedFileWriter::new(file, schema, Arc::new(WriterProperties::default())).unwrap();
    let mut group = writer.next_row_group().unwrap();
    let times: Vec<Int96> = days
        .iter()
        .map(|day| {
            let mut time = Int96::new();
            time.set_data(NOON as u32, (NOON >> 32) as u32, (DAY_OF_1970 + day) as u32);
            time
        })
        .collect();
    let mut column = group.next_column().unwrap().unwrap();
    column.typed::<Int96Type>().write_batch(&times, None, None).unwrap();
    column.close().unwrap();
    group.close().unwrap();
    writer.close().unwrap();
}

#[test]
fn old_times_of_parquet_have_all_years() {
    let folder = tempfile::tempdir().unwrap();
    let name = path(&folder, "t.parquet");
    with_old_times(&name, &[-719_162, -171_664, 0, 2_932_896]);
    let frame = read_parquet(&name);
    assert_eq!(frame.col("t").dtype().unwrap(), DataType::Timestamp(TimeUnit::Microsecond, None));
    let texts = |frame: &DataFrame| {
        let shown = frame.col("t").dt().strftime("%Y-%m-%d %H:%M").to_frame();
        each_executor(|executor| shown.collect_on(executor)?.column::<String>("t"))
    };
    let all = ["0001-01-01 12:00", "1500-01-01 12:00", "1970-01-01 12:00", "9999-12-31 12:00"];
    for found in texts(&frame) {
        assert_eq!(found, all.map(|text| Some(text.to_owned())));
    }
    let late = frame.filter(&frame.col("t").gt(Value::time("2100-01-01").unwrap()));
    for found in texts(&late) {
        assert_eq!(found, [Some(all[3].to_owned())]);
    }
    let mut session = SqlSession::default();
    session.run(&format!("create external table old stored as parquet location '{name}'")).unwrap();
    let years = session.run("select cast(extract(year from t) as bigint) from old order by t").unwrap();
    assert_eq!(years, [["1"], ["1500"], ["1970"], ["9999"]]);
}
