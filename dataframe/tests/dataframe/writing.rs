//! Files that frames are written to: what they contain, how they are cut, and that nobody sees a part of
//! them.

use crate::executors::{SentExecutor, by_default, three_parts};
use arrow::datatypes::DataType;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tempfile::TempDir;
use tharsis_dataframe::{
    Compression, CsvOptions, DataFrame, Error, Sort, WriteOptions, dtype_named, read_arrow, read_csv,
    read_json, read_parquet,
};

fn folder() -> TempDir {
    tempfile::tempdir().unwrap()
}

fn path(folder: &TempDir, name: &str) -> String {
    format!("{}/{name}", folder.path().display())
}

/// The files below a folder, also hidden ones, by their paths in it.
fn files(folder: impl AsRef<Path>) -> Vec<String> {
    fn collect(at: &Path, root: &Path, found: &mut Vec<String>) {
        for entry in fs::read_dir(at).unwrap() {
            let path: PathBuf = entry.unwrap().path();
            if path.is_dir() {
                collect(&path, root, found)
            } else {
                found.push(path.strip_prefix(root).unwrap().to_string_lossy().into_owned())
            }
        }
    }
    let mut found = Vec::new();
    collect(folder.as_ref(), folder.as_ref(), &mut found);
    found.sort();
    found
}

#[track_caller]
fn assert_n(frame: &DataFrame, expected: impl IntoIterator<Item = i64>) {
    let expected: Vec<Option<i64>> = expected.into_iter().map(Some).collect();
    assert_eq!(frame.col("n").values::<i64>().unwrap(), expected);
}

#[test]
fn one_file_has_the_rows_of_all_partitions_in_their_order() {
    let folder = folder();
    let frame = three_parts();
    frame.to_parquet(&path(&folder, "t.parquet")).unwrap();
    frame.to_arrow(&path(&folder, "t.arrow")).unwrap();
    frame.to_json(&path(&folder, "t.json")).unwrap();
    frame.to_csv(&path(&folder, "t.csv")).unwrap();
    assert_n(&read_parquet(&path(&folder, "t.parquet")), 0..10);
    assert_n(&read_arrow(&path(&folder, "t.arrow")), 0..10);
    assert_n(&read_json(&path(&folder, "t.json")), 0..10);
    let text = fs::read_to_string(path(&folder, "t.csv")).unwrap();
    assert_eq!(text, "n,k\n0,0\n1,1\n2,2\n3,0\n4,1\n5,2\n6,0\n7,1\n8,2\n9,0\n");
    assert_eq!(files(&folder), ["t.arrow", "t.csv", "t.json", "t.parquet"], "only whole files are left");
}

#[test]
fn a_path_with_a_slash_is_a_folder_with_a_file_for_each_partition() {
    let folder = folder();
    let frame = three_parts();
    frame.to_parquet(&path(&folder, "p/")).unwrap();
    frame.to_csv(&path(&folder, "c/")).unwrap();
    let parts = ["part-00000.parquet", "part-00001.parquet", "part-00002.parquet"];
    assert_eq!(files(path(&folder, "p")), parts);
    assert_eq!(fs::read_to_string(path(&folder, "c/part-00001.csv")).unwrap(), "n,k\n4,1\n");
    assert_n(&read_parquet(&path(&folder, "p/")), 0..10);
    assert_n(&read_parquet(&path(&folder, "p")), 0..10);
    assert_n(&read_csv(&path(&folder, "c/"), CsvOptions::default()), 0..10);
}

#[test]
fn sorted_rows_are_written_in_their_order() {
    let folder = folder();
    three_parts().sort_values(["n"], Sort::descending()).to_parquet(&path(&folder, "s/")).unwrap();
    assert_n(&read_parquet(&path(&folder, "s/")), (0..10).rev());
}

#[test]
fn a_frame_without_rows_keeps_its_columns() {
    let folder = folder();
    let frame = three_parts();
    let none = frame.filter(&frame.col("n").gt(100));
    none.to_parquet(&path(&folder, "none.parquet")).unwrap();
    none.to_csv(&path(&folder, "none.csv")).unwrap();
    assert_eq!(read_parquet(&path(&folder, "none.parquet")).columns().unwrap(), ["n", "k"]);
    assert_eq!(fs::read_to_string(path(&folder, "none.csv")).unwrap(), "n,k\n");
}

#[test]
fn an_index_with_a_name_is_a_column_and_others_are_on_demand() {
    let folder = folder();
    let named = three_parts().head(2).set_index(["k"]);
    let write = |frame: &DataFrame, options: WriteOptions| {
        frame.to_csv_with(&path(&folder, "i.csv"), options).unwrap();
        fs::read_to_string(path(&folder, "i.csv")).unwrap()
    };
    assert_eq!(write(&named, WriteOptions::new()), "k,n\n0,0\n1,1\n");
    assert_eq!(write(&named, WriteOptions::new().index(false)), "n\n0\n1\n");
    let head = three_parts().head(2);
    assert_eq!(write(&head, WriteOptions::new().index(true)), "index,n,k\n0,0,0\n1,1,1\n");
}

#[test]
fn texts_are_as_pandas_writes_them() {
    let folder = folder();
    let frame = DataFrame::from_columns([
        ("truth", vec![Some(true), Some(false), None].into()),
        ("float", vec![Some(1.0), Some(0.1), None].into()),
        ("text", vec![Some("=cmd()"), Some("a \"b\", c"), Some("two\nlines")].into()),
    ]);
    frame.to_csv(&path(&folder, "t.csv")).unwrap();
    let text = fs::read_to_string(path(&folder, "t.csv")).unwrap();
    let expected = "truth,float,text\nTrue,1.0,=cmd()\nFalse,0.1,\"a \"\"b\"\", c\"\n,,\"two\nlines\"\n";
    assert_eq!(text, expected, "a formula is a text as any other");
    let options = WriteOptions::new().sep(b';').header(false).na_rep("NA").quotechar(b'\'');
    frame.select(["truth", "text"]).to_csv_with(&path(&folder, "t.csv"), options).unwrap();
    let text = fs::read_to_string(path(&folder, "t.csv")).unwrap();
    assert_eq!(text, "True;=cmd()\nFalse;a \"b\", c\nNA;'two\nlines'\n");
    frame.to_json(&path(&folder, "t.json")).unwrap();
    let text = fs::read_to_string(path(&folder, "t.json")).unwrap();
    assert_eq!(text.lines().last().unwrap(), r#"{"truth":null,"float":null,"text":"two\nlines"}"#);
}

#[test]
fn times_and_durations_are_as_pandas_writes_them() {
    let folder = folder();
    let texts = DataFrame::from_columns([("t", vec!["2024-02-29T10:00:00.5", "2024-03-01"].into())]);
    let times = tharsis_dataframe::to_datetime(&texts.col("t"));
    let frame = texts.assign("t", times.clone()).assign("d", times.diff(1)).assign("e", times.diff(-1));
    frame.to_csv(&path(&folder, "t.csv")).unwrap();
    let text = fs::read_to_string(path(&folder, "t.csv")).unwrap();
    let expected = "t,d,e\n2024-02-29 10:00:00.500,,-1 days +10:00:00.500000\n\
        2024-03-01 00:00:00,0 days 13:59:59.500000,\n";
    assert_eq!(text, expected);
}

#[test]
fn values_of_columns_become_folders() {
    let folder = folder();
    let frame = DataFrame::from_columns([
        ("n", vec![0, 1, 2, 3, 4].into()),
        ("k", vec![Some("a/b"), None, Some("c"), Some("a/b"), Some("c")].into()),
        ("year", vec![2024, 2024, 2025, 2025, 2025].into()),
    ]);
    let options = WriteOptions::new().partition_cols(["year", "k"]);
    frame.to_csv_with(&path(&folder, "h/"), options).unwrap();
    let expected = [
        "year=2024/k=__HIVE_DEFAULT_PARTITION__/part-00000.csv",
        "year=2024/k=a%2Fb/part-00000.csv",
        "year=2025/k=a%2Fb/part-00000.csv",
        "year=2025/k=c/part-00000.csv",
    ];
    assert_eq!(files(path(&folder, "h")), expected);
    assert_eq!(fs::read_to_string(path(&folder, "h/year=2025/k=c/part-00000.csv")).unwrap(), "n\n2\n4\n");
}

#[test]
fn more_folders_than_open_files_still_get_all_rows_in_order() {
    let folder = folder();
    let k: Vec<i64> = (0..3_000).map(|n| n % 150).collect();
    let n: Vec<i64> = (0..3_000).collect();
    let frame = DataFrame::from_columns([("n", n.into()), ("k", k.into())]);
    let twice = DataFrame::concat(&[frame.clone(), frame], true);
    let options = WriteOptions::new().partition_cols(["k"]);
    twice.to_parquet_with(&path(&folder, "many/"), options).unwrap();
    let of_seven = read_parquet(&path(&folder, "many/k=7"));
    assert_n(&of_seven, (0..20).chain(0..20).map(|n| n * 150 + 7));
    assert_eq!(read_parquet(&path(&folder, "many/")).len().unwrap(), 6_000);
}

#[test]
fn compression_follows_the_option_or_the_path() {
    let folder = folder();
    let frame = three_parts();
    for compression in
        [Compression::Gzip, Compression::Lz4, Compression::None, Compression::Snappy, Compression::Zstd]
    {
        let name = path(&folder, "c.parquet");
        frame.to_parquet_with(&name, WriteOptions::new().compression(compression)).unwrap();
        assert_n(&read_parquet(&name), 0..10);
    }
    for compression in [Compression::Lz4, Compression::Zstd] {
        let name = path(&folder, "c.arrow");
        frame.to_arrow_with(&name, WriteOptions::new().compression(compression)).unwrap();
        assert_n(&read_arrow(&name), 0..10);
    }
    frame.to_csv(&path(&folder, "c.csv.gz")).unwrap();
    assert_eq!(fs::read(path(&folder, "c.csv.gz")).unwrap()[..2], [0x1f, 0x8b]);
    frame.to_csv(&path(&folder, "C.CSV.GZ")).unwrap();
    assert_eq!(fs::read(path(&folder, "C.CSV.GZ")).unwrap()[..2], [0x1f, 0x8b], "in any case");
    assert_n(&read_csv(&path(&folder, "C.CSV.GZ"), CsvOptions::new()), 0..10);
    for name in ["c.csv.xz", "c.csv.BZ2", "c.csv.zip"] {
        let refused = frame.to_csv(&path(&folder, name)).unwrap_err().to_string();
        assert!(refused.contains(".gz, .zst or without"), "a reader would take it for compressed: {refused}");
        assert!(!fs::exists(path(&folder, name)).unwrap());
    }
    frame.to_json_with(&path(&folder, "j/"), WriteOptions::new().compression(Compression::Zstd)).unwrap();
    assert_eq!(files(path(&folder, "j"))[0], "part-00000.json.zst");
    assert_eq!(fs::read(path(&folder, "j/part-00000.json.zst")).unwrap()[..2], [0x28, 0xb5]);
    let none = frame.to_csv_with(&path(&folder, "x.csv"), WriteOptions::new().compression(Compression::Lz4));
    assert_eq!(none.unwrap_err().class(), "ValueError");
}

#[test]
fn row_groups_have_the_size_that_was_asked_for() {
    let folder = folder();
    let name = path(&folder, "g.parquet");
    let frame = DataFrame::from_columns([("n", (0..1_000).collect::<Vec<i64>>().into())]);
    frame.to_parquet_with(&name, WriteOptions::new().row_group_size(100)).unwrap();
    let file = fs::File::open(&name).unwrap();
    let reader = datafusion::parquet::file::reader::SerializedFileReader::new(file).unwrap();
    let metadata = datafusion::parquet::file::reader::FileReader::metadata(&reader);
    assert_eq!(metadata.num_row_groups(), 10);
    assert!(metadata.row_groups().iter().all(|group| group.num_rows() == 100));
}

/// A frame whose second part cannot be computed: a text that is no number.
fn failing() -> DataFrame {
    let texts = DataFrame::from_columns([("t", vec!["1", "none"].into())]);
    let numbers = texts.assign("n", texts.col("t").astype(arrow::datatypes::DataType::Int64));
    DataFrame::concat(&[DataFrame::from_columns([("n", vec![1, 2].into())]), numbers.select(["n"])], true)
}

#[test]
fn after_an_error_nothing_is_visible_and_the_old_file_is_unchanged() {
    let folder = folder();
    three_parts().to_csv(&path(&folder, "t.csv")).unwrap();
    three_parts().to_parquet(&path(&folder, "p/")).unwrap();
    let before = (files(&folder), fs::read(path(&folder, "t.csv")).unwrap());
    failing().to_csv(&path(&folder, "t.csv")).unwrap_err();
    failing().to_parquet(&path(&folder, "p/")).unwrap_err();
    failing().to_parquet(&path(&folder, "new.parquet")).unwrap_err();
    assert_eq!((files(&folder), fs::read(path(&folder, "t.csv")).unwrap()), before);
    assert_n(&read_parquet(&path(&folder, "p/")), 0..10);
}

#[test]
fn writing_again_replaces_all_of_a_folder() {
    let folder = folder();
    three_parts().to_parquet(&path(&folder, "p/")).unwrap();
    let options = || WriteOptions::new().partition_cols(["k"]);
    three_parts().to_parquet_with(&path(&folder, "p/"), options()).unwrap();
    assert_eq!(files(path(&folder, "p")).len(), 3 + 1 + 3, "parts of 4, 1 and 5 rows, k is 0, 1 or 2");
    three_parts().head(1).to_parquet(&path(&folder, "p/")).unwrap();
    assert_eq!(files(path(&folder, "p")), ["part-00000.parquet"]);
}

#[test]
fn what_no_writer_made_is_not_removed() {
    let folder = folder();
    fs::create_dir(path(&folder, "home")).unwrap();
    fs::write(path(&folder, "home/letter.txt"), "dear").unwrap();
    let refused = |made: Result<(), Error>| assert_eq!(made.unwrap_err().class(), "FileExistsError");
    refused(three_parts().to_parquet(&path(&folder, "home/")));
    refused(three_parts().to_parquet(&path(&folder, "home")));
    refused(three_parts().to_parquet(&path(&folder, "home/letter.txt/")));
    assert_eq!(files(&folder), ["home/letter.txt"]);
}

#[test]
fn a_place_that_cannot_be_written_to_is_an_error_before_any_task() {
    let folder = folder();
    let error = three_parts().to_csv(&path(&folder, "no/such/t.csv")).unwrap_err();
    assert_eq!(error.class(), "FileNotFoundError");
    assert!(error.to_string().contains("no/such/t.csv"), "{error}");
    let options = WriteOptions::new().partition_cols(["k"]);
    let error = three_parts().to_csv_with(&path(&folder, "t.csv"), options).unwrap_err();
    assert_eq!(error.class(), "ValueError");
    let options = || WriteOptions::new().partition_cols(["kk"]);
    let error = three_parts().to_csv_with(&path(&folder, "t/"), options()).unwrap_err();
    assert_eq!(error.class(), "KeyError");
    assert_eq!(files(&folder), [""; 0]);
}

#[test]
fn only_one_attempt_of_a_task_that_runs_twice_is_seen() {
    let folder = folder();
    by_default(Arc::new(SentExecutor { attempts: 2 }), || {
        let frame = three_parts();
        frame.to_csv(&path(&folder, "t.csv")).unwrap();
        frame.to_parquet(&path(&folder, "p/")).unwrap();
        frame.to_parquet_with(&path(&folder, "h/"), WriteOptions::new().partition_cols(["k"])).unwrap();
    });
    let text = fs::read_to_string(path(&folder, "t.csv")).unwrap();
    assert_eq!(text, "n,k\n0,0\n1,1\n2,2\n3,0\n4,1\n5,2\n6,0\n7,1\n8,2\n9,0\n");
    assert_n(&read_parquet(&path(&folder, "p/")), 0..10);
    assert_eq!(files(path(&folder, "h")).len(), 7);
    assert_eq!(files(&folder).len(), 1 + 3 + 7, "no attempt is left");
}

#[test]
fn categories_of_all_parts_are_in_one_file() {
    let folder = folder();
    let parts = three_parts();
    let category = dtype_named("category").unwrap();
    let texts = parts.col("n").astype(DataType::Utf8);
    let frame = parts.assign("c", texts.astype(category.clone()));
    frame.to_arrow(&path(&folder, "c.arrow")).unwrap();
    let read = read_arrow(&path(&folder, "c.arrow"));
    assert_eq!(read.col("c").dtype().unwrap(), category);
    let expected: Vec<Option<String>> = (0..10).map(|n| Some(n.to_string())).collect();
    assert_eq!(read.col("c").astype(DataType::Utf8).values::<String>().unwrap(), expected);
}

#[test]
fn parts_that_are_joined_stay_compressed() {
    let folder = folder();
    let part = |from: i64| {
        let n: Vec<i64> = (from..from + 20_000).map(|n| n / 1000).collect();
        DataFrame::from_columns([("n", n.into())])
    };
    let frame = DataFrame::concat([&part(0), &part(20_000)], true);
    let size = |name: &str, compression: Compression| {
        frame.to_arrow_with(&path(&folder, name), WriteOptions::new().compression(compression)).unwrap();
        fs::metadata(path(&folder, name)).unwrap().len()
    };
    let (plain, packed) = (size("plain.arrow", Compression::None), size("packed.arrow", Compression::Zstd));
    assert!(packed * 4 < plain, "{packed} of {plain} bytes");
}

#[test]
fn a_file_that_is_replaced_keeps_its_mode_and_its_link() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let folder = folder();
    let (file, link) = (path(&folder, "private.csv"), path(&folder, "link.csv"));
    fs::write(&file, "old").unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    symlink(&file, &link).unwrap();
    three_parts().to_csv(&link).unwrap();
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    assert_n(&read_csv(&file, CsvOptions::new()), 0..10);
    let error = three_parts().to_csv("/dev/null").unwrap_err();
    assert_eq!(error.class(), "FileExistsError", "{error}");
}
