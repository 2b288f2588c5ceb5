//! The installed packages of a Debian machine as frames: which ones do most others need, and how large are
//! the sections? `cargo run --release -p tharsis-frame-examples --example packages`.
//!
//! Reads CSV files that `dpkg-query` wrote, joins, groups and sorts, writes a Parquet file and reads it back.
//! A plain loop then counts the same, and both must agree. Options: `--workers N` (worker processes instead
//! of threads), `--nodes N` (so many nodes on this machine, a CPU each), `--explain` (print the stages).

// It talks to people.
#![allow(clippy::print_stdout)]

mod options;

use options::{Options, Outcome};
use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::process::Command;
use tharsis::frame::{Aggregate, CsvOptions, DataFrame, JoinKind, Merge, Sort, read_csv, read_parquet, sql};

#[tharsis::main]
fn main() -> Outcome<()> {
    let options = Options::from_args()?;
    let folder = Folder::new()?;
    let (packages_path, needs_path) = write_lists(&folder.0)?;
    let place = options.start()?;

    let packages = read_csv(&packages_path, CsvOptions::default());
    let needs = read_csv(&needs_path, CsvOptions::default());
    let most_needed = most_needed(&packages, &needs);
    if options.explain {
        println!("{}", most_needed.explain()?);
    }
    let result_path = folder.0.join("needed.parquet").to_string_lossy().into_owned();
    most_needed.to_parquet(&result_path)?;
    let read_back = read_parquet(&result_path);
    let sections = sql(
        "select section, count(*) as packages, sum(kib) as kib from packages group by section order by kib desc",
        &[("packages", &packages)],
    );

    let found = read_back.collect()?;
    let names = found.column::<String>("package")?;
    let counts = found.column::<i64>("needed_by")?;
    let rows: Vec<(String, i64)> =
        names.into_iter().zip(counts).filter_map(|(name, count)| Some((name?, count?))).collect();
    if rows != count_plainly(&packages_path, &needs_path)? {
        return Err("the frames counted other packages than the plain loop".into());
    }
    check_sections(&sections, &packages_path)?;

    println!("needed by  package");
    for (name, count) in rows.iter().take(10) {
        println!("{count:>9}  {name}");
    }
    let largest = sections.head(5).collect()?;
    println!("\n      MiB  section");
    for (section, kib) in largest.column::<String>("section")?.iter().zip(largest.column::<i64>("kib")?) {
        println!("{:>9}  {}", kib.unwrap_or(0) / 1024, section.as_deref().unwrap_or("none"));
    }
    println!("\n{} packages; the same as a plain loop", rows.len());
    drop(place);
    Ok(())
}

/// Each package with the number of packages that need it, those needed most first.
fn most_needed(packages: &DataFrame, needs: &DataFrame) -> DataFrame {
    let needed_by =
        needs.groupby(["needs"]).as_index(false).agg_as([("needed_by", "package", Aggregate::Count)]);
    let joined = packages.merge(&needed_by, Merge::on_pairs(["package"], ["needs"]).how(JoinKind::Left));
    let counted = joined.assign("needed_by", joined.col("needed_by").fillna(0));
    counted
        .select(["package", "section", "kib", "needed_by"])
        .sort_values(["needed_by", "package"], Sort::each([false, true]))
}

/// Writes what `dpkg-query` knows as two CSV files: packages, and which needs which.
fn write_lists(folder: &Path) -> Outcome<(String, String)> {
    let format = "${Package}\t${Section}\t${Installed-Size}\t${Depends}\n";
    let output = Command::new("dpkg-query").args(["-W", "-f", format]).output()?;
    if !output.status.success() {
        return Err("dpkg-query failed; this example reads the packages of a Debian machine".into());
    }
    let (mut packages, mut needs) = ("package,section,kib\n".to_owned(), "package,needs\n".to_owned());
    let mut sizes: BTreeMap<&str, (&str, u64)> = BTreeMap::new();
    let said = String::from_utf8(output.stdout)?;
    for line in said.lines() {
        let mut fields = line.split('\t');
        let (Some(name), Some(section), Some(kib), Some(depends)) =
            (fields.next(), fields.next(), fields.next(), fields.next())
        else {
            continue;
        };
        // A package for several machines is one package.
        if sizes.insert(name, (section, kib.parse().unwrap_or(0))).is_some() {
            continue;
        }
        let mut seen: Vec<&str> = Vec::new();
        for need in depends
            .split([',', '|'])
            .filter_map(|need| need.split([' ', '(', ':']).find(|word| !word.is_empty()))
        {
            if !seen.contains(&need) {
                seen.push(need);
                needs.push_str(&format!("{name},{need}\n"));
            }
        }
    }
    for (name, (section, kib)) in sizes {
        packages.push_str(&format!("{name},{section},{kib}\n"));
    }
    let path = |name: &str| folder.join(name);
    std::fs::write(path("packages.csv"), packages)?;
    std::fs::write(path("needs.csv"), needs)?;
    let text = |name: &str| path(name).to_string_lossy().into_owned();
    Ok((text("packages.csv"), text("needs.csv")))
}

/// The lines of a CSV file without its labels, cut at commas.
fn lines(text: &str) -> impl Iterator<Item = Vec<&str>> {
    text.lines().skip(1).map(|line| line.split(',').collect())
}

/// The result of [`most_needed`], by a loop.
fn count_plainly(packages: &str, needs: &str) -> Outcome<Vec<(String, i64)>> {
    let (packages, needs) = (std::fs::read_to_string(packages)?, std::fs::read_to_string(needs)?);
    let mut counts: HashMap<&str, i64> = HashMap::new();
    lines(&needs).for_each(|fields| *counts.entry(fields[1]).or_default() += 1);
    let count = |name: &str| counts.get(name).copied().unwrap_or(0);
    let mut rows: Vec<(String, i64)> =
        lines(&packages).map(|fields| (fields[0].to_owned(), count(fields[0]))).collect();
    rows.sort_by(|one, other| (-one.1, &one.0).cmp(&(-other.1, &other.0)));
    Ok(rows)
}

fn check_sections(sections: &DataFrame, packages: &str) -> Outcome<()> {
    let text = std::fs::read_to_string(packages)?;
    let mut sizes: HashMap<&str, i64> = HashMap::new();
    for fields in lines(&text) {
        *sizes.entry(fields[1]).or_default() += fields[2].parse::<i64>()?;
    }
    let found = sections.collect()?;
    let pairs = found.column::<String>("section")?.into_iter().zip(found.column::<i64>("kib")?);
    let same = pairs
        .clone()
        .all(|(section, kib)| section.and_then(|section| sizes.get(section.as_str()).copied()) == kib);
    if same && pairs.len() == sizes.len() {
        Ok(())
    } else {
        Err("the sections have other sizes than the plain loop found".into())
    }
}

/// A folder that is removed at the end.
struct Folder(PathBuf);

impl Folder {
    fn new() -> std::io::Result<Folder> {
        let folder = std::env::temp_dir().join(format!("tharsis-packages-{}", std::process::id()));
        std::fs::create_dir_all(&folder)?;
        Ok(Folder(folder))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _already_gone = std::fs::remove_dir_all(&self.0);
    }
}
