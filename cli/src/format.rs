//! Formats of files of rows, as the endings of their names say, and the forms in which rows are shown.

use clap::ValueEnum;
#[cfg(feature = "frames")]
use std::collections::HashSet;
#[cfg(feature = "frames")]
use std::fs::{self, DirEntry};
use std::path::Path;
#[cfg(feature = "frames")]
use std::path::PathBuf;
#[cfg(feature = "frames")]
use tharsis_dataframe::local_path;

/// Endings of compressed files, behind that of the format.
const PACKED: [&str; 4] = [".gz", ".bz2", ".xz", ".zst"];

/// A format of files of rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Arrow's files, which Feather is, too.
    Arrow,
    /// Avro.
    Avro,
    /// Fields between commas.
    Csv,
    /// An object a line.
    Json,
    /// Parquet.
    Parquet,
    /// Fields between tabs.
    Tsv,
}

impl Format {
    /// The format that the ending of a path says, without regard to case; none if it says none.
    pub fn of(path: &str) -> Option<Format> {
        match ending(path).as_str() {
            "arrow" | "feather" => Some(Format::Arrow),
            "avro" => Some(Format::Avro),
            "csv" => Some(Format::Csv),
            "json" | "jsonl" | "ndjson" => Some(Format::Json),
            "parquet" => Some(Format::Parquet),
            "tsv" => Some(Format::Tsv),
            _ => None,
        }
    }

    /// The format of the files of a path that rows are read from: that of its ending; of a folder of this
    /// machine without one, that of all of its visible files. `None` if they say none, or if there are none.
    ///
    /// # Errors
    /// The two files of the folder that are not of one format, unless both may be Parquet.
    #[cfg(feature = "frames")]
    pub fn of_files(path: &str) -> Result<Option<Format>, String> {
        let own = Format::of(path);
        if own.is_some() || !path.ends_with('/') {
            return Ok(own);
        }
        let mut found: Vec<(PathBuf, Option<Format>)> = Vec::new();
        for (file, format) in local_files(path) {
            if !found.iter().any(|(_, known)| *known == format) {
                found.push((file, format));
            }
        }
        let may_be_parquet = |format: Option<Format>| matches!(format, None | Some(Format::Parquet));
        match found.as_slice() {
            [] => Ok(None),
            [(_, format)] => Ok(*format),
            all if all.iter().all(|(_, format)| may_be_parquet(*format)) => Ok(None),
            [(one, _), (other, _), ..] => Err(format!(
                "the files of a folder have one format, and {} and {} are not of one: name those of a format, \
                 such as '{path}*.csv'",
                one.display(),
                other.display()
            )),
        }
    }
}

/// The visible files below a folder of this machine, and the formats that their endings say.
#[cfg(feature = "frames")]
fn local_files(folder: &str) -> impl Iterator<Item = (PathBuf, Option<Format>)> {
    let mut left: Vec<PathBuf> =
        local_path(folder).map(|path| PathBuf::from(path.into_owned())).into_iter().collect();
    // A link may lead to a folder that it is in.
    let mut seen = HashSet::new();
    std::iter::from_fn(move || {
        while let Some(path) = left.pop() {
            if !path.is_dir() {
                let format = path.file_name().and_then(|name| Format::of(&name.to_string_lossy()));
                return Some((path, format));
            }
            if !path.canonicalize().is_ok_and(|folder| seen.insert(folder)) {
                continue;
            }
            let entries = fs::read_dir(path).into_iter().flatten().flatten();
            let is_visible = |entry: &DirEntry| !entry.file_name().to_string_lossy().starts_with(['.', '_']);
            let mut below: Vec<PathBuf> = entries.filter(is_visible).map(|entry| entry.path()).collect();
            below.sort_unstable_by(|one, other| other.cmp(one));
            left.extend(below);
        }
        None
    })
}

/// A form in which the rows of an answer are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Shown {
    /// Aligned columns, for people.
    Table,
    /// Fields between commas, with a heading.
    Csv,
    /// Fields between tabs, with a heading.
    Tsv,
    /// An array of objects.
    Json,
    /// An object a line.
    Jsonl,
    /// A table of Markdown.
    Markdown,
    /// A line for each value.
    Vertical,
    /// A stream of Arrow, for other programs: each answer is one of its own.
    Arrow,
}

/// Checks that a file that rows are written to has them in a form.
///
/// # Errors
/// The reason for which it has not. An array of objects is written by no file: it has an object a line.
#[cfg(feature = "frames")]
pub fn check_form(path: &str, shown: Shown) -> Result<(), &'static str> {
    match (Format::of(path), shown) {
        (Some(Format::Csv), Shown::Csv)
        | (Some(Format::Tsv), Shown::Tsv)
        | (Some(Format::Json), Shown::Jsonl) => Ok(()),
        (Some(Format::Json), Shown::Json) => {
            Err("a file of JSON has an object a line: write --format jsonl, or leave --format out")
        }
        (Some(Format::Arrow), Shown::Arrow) => Err(
            "--format arrow is a stream for other programs, and the ending says a file: leave --format out",
        ),
        _ => Err("its ending says the format of the rows, and --format says another one; leave --format out"),
    }
}

/// The end of a file's name that says its format, in lower case.
fn ending(path: &str) -> String {
    let lower = path.to_ascii_lowercase();
    let path = PACKED.iter().find_map(|end| lower.strip_suffix(end)).unwrap_or(&lower);
    Path::new(path).extension().and_then(|ending| ending.to_str()).unwrap_or("").to_owned()
}

/// The path of a file that rows are written to, or of a folder, with a slash behind it, or `-` for standard
/// output. A folder whose name has no ending gets Parquet.
///
/// # Errors
/// If its ending says no format, or one that is only read.
pub fn written(path: &str) -> Result<String, String> {
    if path == "-" {
        return Ok(path.to_owned());
    }
    let packed = PACKED.iter().find(|end| path.to_ascii_lowercase().ends_with(*end));
    match Format::of(path) {
        Some(Format::Csv | Format::Json | Format::Tsv) if matches!(packed, Some(&(".bz2" | ".xz"))) => {
            Err("texts are written with .gz or .zst behind the ending, and read with .bz2 and .xz as well".to_owned())
        }
        Some(Format::Arrow | Format::Parquet) if packed.is_some() => {
            Err("only texts are compressed as a whole: write .parquet, which compresses its columns".to_owned())
        }
        None if path.ends_with('/') && ending(path).is_empty() => Ok(path.to_owned()),
        Some(Format::Avro) => Err("Avro files are read, but not written".to_owned()),
        Some(_) => Ok(path.to_owned()),
        None => Err(
            "its ending says no format: expected .parquet, .arrow, .feather, or .csv, .tsv, .json, .jsonl or \
                     .ndjson, perhaps with .gz or .zst behind it"
                .to_owned(),
        ),
    }
}

/// The path of a file, a folder or a pattern that rows are read from. Without an ending it is Parquet.
///
/// # Errors
/// If it has an ending that says no format, and is no folder.
pub fn read(path: &str) -> Result<String, String> {
    let is_open = ending(path).is_empty() || path.ends_with(['*', '/']) || Path::new(path).is_dir();
    if is_open || Format::of(path).is_some() {
        return Ok(path.to_owned());
    }
    Err(format!(
        "the ending of {path} says no format: expected .parquet, .csv, .tsv, .json, .jsonl, .ndjson, .arrow, \
         .feather or .avro, perhaps with .gz, .bz2, .xz or .zst behind it"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ending_says_the_format() {
        for (path, format) in [
            ("a.csv", Some(Format::Csv)),
            ("A.CSV.GZ", Some(Format::Csv)),
            ("s3://b/c.d/e.tsv", Some(Format::Tsv)),
            ("a.jsonl.zst", Some(Format::Json)),
            ("a.feather", Some(Format::Arrow)),
            ("a.parquet", Some(Format::Parquet)),
            ("a.txt", None),
            ("csv", None),
            ("a.gz", None),
        ] {
            assert_eq!(Format::of(path), format, "{path}");
        }
    }

    #[test]
    #[cfg(feature = "frames")]
    fn files_of_a_folder_say_its_format() {
        let folder = tempfile::TempDir::new().unwrap();
        let path = format!("{}/", folder.path().display());
        assert_eq!(Format::of_files(&path), Ok(None));
        fs::create_dir_all(folder.path().join("year=2024")).unwrap();
        for name in ["a.csv", "year=2024/b.CSV.gz", ".c.json", "_done"] {
            fs::write(folder.path().join(name), "").unwrap();
        }
        assert_eq!(Format::of_files(&path), Ok(Some(Format::Csv)));
        assert_eq!(Format::of_files(&format!("file://{path}")), Ok(Some(Format::Csv)));
        assert_eq!(Format::of_files(path.trim_end_matches('/')), Ok(None));
        for name in ["year=2024/README", "year=2024/d.json"] {
            fs::write(folder.path().join(name), "").unwrap();
            let error = Format::of_files(&path).unwrap_err();
            assert!(error.contains("a.csv and ") && error.contains(name), "{error}");
            assert!(error.contains(&format!("'{path}*.csv'")), "{error}");
            fs::remove_file(folder.path().join(name)).unwrap();
        }
        fs::create_dir(folder.path().join("a b")).unwrap();
        fs::write(folder.path().join("a b/c.tsv"), "").unwrap();
        assert_eq!(Format::of_files(&format!("file://{path}a%20b/")), Ok(Some(Format::Tsv)));
        assert_eq!(Format::of_files("no/such/folder/"), Ok(None));
        assert_eq!(Format::of_files("s3://b/c/"), Ok(None));
        assert_eq!(Format::of_files("s3://b/c.tsv"), Ok(Some(Format::Tsv)));
    }

    #[test]
    #[cfg(feature = "frames")]
    fn links_to_folders_are_folders() {
        let folder = tempfile::TempDir::new().unwrap();
        let below = |name: &str| folder.path().join(name);
        fs::create_dir_all(below("rows")).unwrap();
        fs::create_dir_all(below("other")).unwrap();
        fs::write(below("other/a.csv"), "").unwrap();
        std::os::unix::fs::symlink(below("other"), below("rows/year=2024")).unwrap();
        let path = format!("{}/", below("rows").display());
        assert_eq!(Format::of_files(&path), Ok(Some(Format::Csv)));
        std::os::unix::fs::symlink(below("rows"), below("rows/again")).unwrap();
        assert_eq!(Format::of_files(&path), Ok(Some(Format::Csv)));
    }

    #[test]
    #[cfg(feature = "frames")]
    fn a_folder_of_parquet_has_files_without_endings() {
        let folder = tempfile::TempDir::new().unwrap();
        let path = format!("{}/", folder.path().display());
        for name in ["a.parquet", "part-0"] {
            fs::write(folder.path().join(name), "").unwrap();
        }
        assert_eq!(Format::of_files(&path), Ok(None));
    }

    #[test]
    #[cfg(feature = "frames")]
    fn a_file_has_one_form() {
        for (path, shown) in [("a.csv.gz", Shown::Csv), ("a.tsv", Shown::Tsv), ("a.json", Shown::Jsonl)] {
            assert_eq!(check_form(path, shown), Ok(()), "{path}");
        }
        let other = [
            ("a.csv", Shown::Json, "says another one"),
            ("a.json", Shown::Csv, "says another one"),
            ("a.json", Shown::Json, "an object a line: write --format jsonl"),
            ("a.ndjson.gz", Shown::Json, "an object a line: write --format jsonl"),
            ("a.parquet", Shown::Csv, "says another one"),
            ("a.arrow", Shown::Arrow, "is a stream"),
            ("folder/", Shown::Table, "says another one"),
        ];
        for (path, shown, problem) in other {
            let error = check_form(path, shown).unwrap_err();
            assert!(error.contains(problem), "{path}: {error}");
        }
    }

    #[test]
    fn paths_that_say_no_format_are_refused() {
        assert!(written("out.txt").unwrap_err().contains(".csv, .tsv"));
        assert!(written("out").is_err());
        assert!(written("out.avro").unwrap_err().contains("not written"));
        for path in ["-", "out.tsv", "out.csv/", "out/", "out.CSV.GZ", "out.json.zst"] {
            assert_eq!(written(path).as_deref(), Ok(path));
        }
        for path in ["out.csv.xz", "OUT.JSON.BZ2", "out.tsv.xz"] {
            assert!(written(path).unwrap_err().contains(".gz or .zst"), "{path}");
        }
        for path in ["out.parquet.gz", "out.arrow.zst"] {
            assert!(written(path).unwrap_err().contains("only texts"), "{path}");
        }
        assert!(read("sales.txt").unwrap_err().starts_with("the ending of sales.txt says no format"));
        for path in ["rows", "part-*", "rows.v*/", "s3://b/rows.v2/", "sales.CSV", "s3://b/sales.parquet"] {
            assert_eq!(read(path).as_deref(), Ok(path));
        }
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().join("rows.d");
        std::fs::create_dir(&folder).unwrap();
        assert!(read(folder.to_str().unwrap()).is_ok());
    }
}
