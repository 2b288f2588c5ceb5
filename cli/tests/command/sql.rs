//! `tharsis sql`: a query over files, through the real command.

use crate::home::Home;
use std::fs;

/// A home with two tables as CSV files.
fn with_tables() -> (Home, String, String) {
    let home = Home::new();
    let (sales, cities) = (home.text("sales.csv"), home.text("cities.csv"));
    fs::write(&sales, "city,sold\nOslo,3\nRome,5\nOslo,4\n").unwrap();
    fs::write(&cities, "city,land\nOslo,Norway\nRome,Italy\n").unwrap();
    (home, format!("sales={sales}"), format!("cities={cities}"))
}

const BY_LAND: &str = "select land, sum(sold) as sold from sales join cities on sales.city = cities.city \
                       group by land order by sold desc";

#[test]
fn files_are_joined_and_grouped() {
    let (home, sales, cities) = with_tables();
    let ended = home.run(["sql", BY_LAND, "--table", &sales, "--table", &cities]);
    assert_eq!((ended.status, ended.err.as_str()), (0, ""));
    let words: Vec<&str> = ended.out.split_whitespace().collect();
    assert_eq!(words, ["land", "sold", "0", "Norway", "7", "1", "Italy", "5"]);
    let plan = home.run(["sql", BY_LAND, "--table", &sales, "--table", &cities, "--explain"]);
    assert!(plan.out.contains("stage 0"), "{}", plan.out);
}

#[test]
fn rows_go_to_a_file_that_is_read_again() {
    let (home, sales, cities) = with_tables();
    let file = home.text("by_land.parquet");
    let ended = home.run(["sql", BY_LAND, "--table", &sales, "--table", &cities, "--output", &file]);
    assert_eq!((ended.status, ended.out.as_str()), (0, ""), "{}", ended.err);
    let read = home.run(["sql", "select max(sold) as most from t", "--table", &format!("t={file}")]);
    assert_eq!(read.out.split_whitespace().collect::<Vec<_>>(), ["most", "0", "7"], "{}", read.err);
}

#[test]
fn the_ending_of_a_path_says_the_format() {
    let (home, sales, cities) = with_tables();
    for ending in ["parquet", "csv", "csv.gz", "jsonl", "json.zst", "arrow", "feather", "tsv", "CSV"] {
        let file = home.text(&format!("by_land.{ending}"));
        let ended = home.run(["sql", BY_LAND, "--table", &sales, "--table", &cities, "--output", &file]);
        assert_eq!((ended.status, ended.out.as_str()), (0, ""), "{ending}: {}", ended.err);
        let read = home.run(["sql", "select max(sold) as most from t", "--table", &format!("t={file}")]);
        let words: Vec<&str> = read.out.split_whitespace().collect();
        assert_eq!(words, ["most", "0", "7"], "{ending}: {}", read.err);
    }
    let tabs = home.text("tabs.tsv");
    fs::write(&tabs, "city\tsold\nOslo\t3\nRome\t5\n").unwrap();
    let read = home.run(["sql", "select sum(sold) as sold from t", "--table", &format!("t={tabs}")]);
    assert_eq!(read.out.split_whitespace().collect::<Vec<_>>(), ["sold", "0", "8"], "{}", read.err);
}

#[test]
fn mistakes_are_refused_with_status_2() {
    let (home, sales, _) = with_tables();
    let missing = home.run(["sql", "select nothing from sales", "--table", &sales]);
    assert_eq!(missing.status, 2, "{}", missing.err);
    let no_file = home.run(["sql", "select 1", "--table", "t=/no/such.csv"]);
    assert_eq!(no_file.status, 2, "{}", no_file.err);
    assert!(no_file.err.contains("/no/such.csv"), "{}", no_file.err);
    let no_path = home.run(["sql", "select 1", "--table", "t"]);
    assert_eq!(no_path.status, 2);
    let file = home.text("out.txt");
    let no_format = home.run(["sql", "select city from sales", "--table", &sales, "--output", &file]);
    assert_eq!(no_format.status, 2);
    assert!(no_format.err.contains(".parquet, .csv, .tsv") && !std::path::Path::new(&file).exists());
    let no_format = home.run(["sql", "select 1", "--table", "t=/no/such.txt"]);
    assert!(no_format.err.contains("the ending of /no/such.txt says no format"), "{}", no_format.err);
}
