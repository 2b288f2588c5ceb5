//! The licences of a Debian machine as frames: functions of this program over their words.
//! `cargo run --release -p tharsis-frame-examples --example functions`.
//!
//! Functions split lines into words, find the most frequent words of each licence, reduce the lengths of
//! words to their geometric mean, and compare each licence with each. The rows of a result are read while
//! they are computed, and a matrix of numbers goes through a tensor. A plain loop then computes the same,
//! and both must agree. Options: `--workers N` (worker processes instead of threads), `--nodes N` (so many
//! nodes on this machine, a CPU each), `--explain` (print what a run took).

// It talks to people.
#![allow(clippy::print_stdout)]

#[path = "../options.rs"]
mod options;

use options::{Options, Outcome};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use tharsis::frame::{
    Column, Computation, DataFrame, Error, Reduction, Row, Sort, Table, ToFrame, ToTensor, function,
};

/// Texts that the package `base-files` of every Debian machine has.
const FOLDER: &str = "/usr/share/common-licenses";
/// Shorter words are left out.
const LETTERS_MIN: usize = 4;
/// Most frequent words that are printed.
const MOST: usize = 3;

/// The words of the lines of a chunk.
#[function]
fn words(lines: Table, letters_min: usize) -> Result<Table, Error> {
    let mut found: (Vec<Option<String>>, Vec<String>) = Default::default();
    for (licence, text) in lines.column::<String>("licence")?.into_iter().zip(lines.column::<String>("text")?)
    {
        for word in words_of(&text.unwrap_or_default(), letters_min) {
            found.0.push(licence.clone());
            found.1.push(word);
        }
    }
    Table::from_columns([("licence", found.0.into()), ("word", found.1.into())])
}

fn words_of(text: &str, letters_min: usize) -> impl Iterator<Item = String> + '_ {
    let words = text.split(|c: char| !c.is_alphabetic());
    words.filter(move |word| letters_min <= word.chars().count()).map(str::to_lowercase)
}

#[function]
fn letters(word: &str) -> i64 {
    word.chars().count() as i64
}

/// The most frequent words of a group of words; of equally frequent ones, the first in the alphabet.
#[function]
fn most_frequent(words: Table, count: usize) -> Result<Table, Error> {
    let mut counts: HashMap<String, i64> = HashMap::new();
    words
        .column::<String>("word")?
        .into_iter()
        .flatten()
        .for_each(|word| *counts.entry(word).or_default() += 1);
    let mut counts: Vec<(String, i64)> = counts.into_iter().collect();
    counts.sort_by(|one, other| (-one.1, &one.0).cmp(&(-other.1, &other.0)));
    counts.truncate(count);
    let (words, counts): (Vec<String>, Vec<i64>) = counts.into_iter().unzip();
    Table::from_columns([("word", words.into()), ("count", counts.into())])
}

/// The sum of the logarithms of lengths, and their number.
#[function]
fn logarithms(words: Table) -> Result<Table, Error> {
    let lengths: Vec<f64> = words.column::<f64>("letters")?.into_iter().flatten().collect();
    let sum: f64 = lengths.iter().map(|length| length.ln()).sum();
    Table::from_columns([("sum", vec![sum].into()), ("count", vec![lengths.len() as i64].into())])
}

#[function]
fn added(states: Table) -> Result<Table, Error> {
    let sum: f64 = states.column::<f64>("sum")?.into_iter().flatten().sum();
    let count: i64 = states.column::<i64>("count")?.into_iter().flatten().sum();
    Table::from_columns([("sum", vec![sum].into()), ("count", vec![count].into())])
}

#[function]
fn power(states: Table) -> Result<Table, Error> {
    let (sums, counts) = (states.column::<f64>("sum")?, states.column::<i64>("count")?);
    let means = sums.into_iter().zip(counts).map(|(sum, count)| Some((sum? / count? as f64).exp()));
    Table::from_columns([("length", means.collect::<Vec<_>>().into())])
}

/// The share of the words of two licences that both have, for each licence of a chunk with each of another.
#[function]
fn shared(left: Table, right: Table) -> Result<Table, Error> {
    let (left, right) = (vocabularies(&left)?, vocabularies(&right)?);
    let mut found: (Vec<String>, Vec<String>, Vec<i64>, Vec<i64>) = Default::default();
    for (one, words) in &left {
        for (other, others) in &right {
            found.0.push(one.clone());
            found.1.push(other.clone());
            found.2.push(words.intersection(others).count() as i64);
            found.3.push(words.union(others).count() as i64);
        }
    }
    Table::from_columns([
        ("one", found.0.into()),
        ("other", found.1.into()),
        ("both", found.2.into()),
        ("either", found.3.into()),
    ])
}

fn vocabularies(table: &Table) -> Result<BTreeMap<String, BTreeSet<String>>, Error> {
    let mut found: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (licence, words) in
        table.column::<String>("licence")?.into_iter().zip(table.column::<String>("words")?)
    {
        if let Some((licence, words)) = licence.zip(words) {
            found.entry(licence).or_default().extend(words.split(' ').map(str::to_owned));
        }
    }
    Ok(found)
}

/// All words of a group, each once, in one text.
#[function]
fn vocabulary(words: Table) -> Result<Table, Error> {
    let words: BTreeSet<String> = words.column::<String>("word")?.into_iter().flatten().collect();
    let text = words.into_iter().collect::<Vec<_>>().join(" ");
    Table::from_columns([("words", vec![text].into())])
}

#[function]
fn share(row: Row<'_>) -> Result<Option<f64>, Error> {
    let (both, either) = (row.get::<f64>("both")?, row.get::<f64>("either")?);
    Ok(both.zip(either).map(|(both, either)| both / either))
}

#[function]
fn percent(column: Column) -> Result<Column, Error> {
    Ok(column.values::<f64>()?.into_iter().map(|x| x.map(|x| 100.0 * x)).collect::<Vec<_>>().into())
}

#[tharsis::main]
fn main() -> Outcome<()> {
    let options = Options::from_args()?;
    let licences = read_licences()?;
    let place = options.start()?;

    // A part for each licence, so that several tasks have lines.
    let parts: Vec<DataFrame> = licences
        .iter()
        .map(|(licence, text)| {
            let lines: Vec<&str> = text.lines().collect();
            let names = vec![licence.as_str(); lines.len()];
            DataFrame::from_columns([("licence", names.into()), ("text", lines.into())])
        })
        .collect();
    let words = DataFrame::concat(&parts, true).map_chunk(words::with(LETTERS_MIN));
    let words = words.assign("letters", words.col("word").map(letters::with()));

    let most = words.groupby(["licence"]).apply(most_frequent::with(MOST));
    let computed = Computation::of(&most).bar("words").run()?;
    if options.explain {
        println!("{}\n", computed.explanation);
    }
    let mean = Reduction::new(added::with()).pre(logarithms::with()).post(power::with());
    let lengths = words.groupby(["licence"]).reduce(&mean);
    let vocabularies = words.groupby(["licence"]).as_index(false).apply(vocabulary::with());
    let pairs = vocabularies.cartesian_chunk(&vocabularies, shared::with());
    let pairs = pairs.assign("share", pairs.apply(share::with()));
    let alike =
        pairs.filter(&pairs.col("one").lt(pairs.col("other"))).sort_values(["share"], Sort::descending());

    let found = Found {
        most: most_of(&computed.frame)?,
        lengths: lengths_of(&lengths)?,
        words: streamed_rows(&words)?,
        alike: alike_of(&alike)?,
    };
    found.print();
    check_matrix(&pairs, found.lengths.len())?;
    found.check(&licences)?;
    println!("\n{} words; the same as a plain loop", found.words);
    drop(place);
    Ok(())
}

/// Names and texts of the licences.
fn read_licences() -> Outcome<BTreeMap<String, String>> {
    let mut licences = BTreeMap::new();
    for entry in std::fs::read_dir(FOLDER).map_err(|error| format!("{FOLDER}: {error}"))? {
        let entry = entry?;
        if entry.file_type()?.is_file() {
            let text = String::from_utf8_lossy(&std::fs::read(entry.path())?).into_owned();
            licences.insert(entry.file_name().to_string_lossy().into_owned(), text);
        }
    }
    Ok(licences)
}

/// The results of the frames.
struct Found {
    most: Vec<(String, String, i64)>,
    lengths: Vec<(String, f64)>,
    words: usize,
    /// Pairs of licences with the share of words that both have, the largest first.
    alike: Vec<(String, String, f64)>,
}

fn most_of(most: &DataFrame) -> Outcome<Vec<(String, String, i64)>> {
    let table = most.reset_index(false).collect()?;
    let names = table.column::<String>("licence")?.into_iter().zip(table.column::<String>("word")?);
    let rows = names.zip(table.column::<i64>("count")?);
    Ok(rows.filter_map(|((licence, word), count)| Some((licence?, word?, count?))).collect())
}

fn lengths_of(lengths: &DataFrame) -> Outcome<Vec<(String, f64)>> {
    let table = lengths.reset_index(false).collect()?;
    let rows = table.column::<String>("licence")?.into_iter().zip(table.column::<f64>("length")?);
    Ok(rows.filter_map(|(licence, length)| Some((licence?, length?))).collect())
}

/// The number of rows, counted batch by batch while later ones are computed.
fn streamed_rows(frame: &DataFrame) -> Outcome<usize> {
    let mut rows = 0;
    for batch in frame.iter_batches()? {
        rows += batch?.num_rows();
    }
    Ok(rows)
}

fn alike_of(alike: &DataFrame) -> Outcome<Vec<(String, String, f64)>> {
    let table = alike.assign("share", alike.col("share").transform(percent::with())).collect()?;
    let names = table.column::<String>("one")?.into_iter().zip(table.column::<String>("other")?);
    let rows = names.zip(table.column::<f64>("share")?);
    Ok(rows.filter_map(|((one, other), share)| Some((one?, other?, share?))).collect())
}

/// The shares as a matrix: it must equal its transpose, and come back as it was.
fn check_matrix(pairs: &DataFrame, licences: usize) -> Outcome<()> {
    let shares = pairs.sort_values(["one", "other"], Sort::ascending()).col("share").to_tensor()?;
    let matrix = shares.reshape(&[licences as i64, licences as i64]);
    let skew = (&matrix - matrix.t()).abs().max(..).item()?.to_f64();
    let again = matrix.ravel().to_series("share")?.sum()?.as_f64();
    let total = pairs.col("share").sum()?.as_f64();
    if skew == 0.0 && again.zip(total).is_some_and(|(one, other)| (one - other).abs() < 1e-9) {
        Ok(())
    } else {
        Err("the matrix of shares is another one than that of the frame".into())
    }
}

impl Found {
    fn print(&self) {
        println!("words of at least {LETTERS_MIN} letters\n");
        for (licence, length) in &self.lengths {
            let words = self.most.iter().filter(|(of, ..)| of == licence);
            let words: Vec<String> = words.map(|(_, word, count)| format!("{word} {count}")).collect();
            println!("{licence:>12}  length {length:.2}  {}", words.join(", "));
        }
        println!();
        for (one, other, share) in self.alike.iter().take(5) {
            println!("{share:>5.1} % of the words of {one} and {other} are in both");
        }
    }

    /// Compares with a plain loop.
    fn check(&self, licences: &BTreeMap<String, String>) -> Outcome<()> {
        let mut words: BTreeMap<&str, Vec<String>> = BTreeMap::new();
        for (licence, text) in licences {
            words.insert(licence, text.lines().flat_map(|line| words_of(line, LETTERS_MIN)).collect());
        }
        let most: Vec<(String, String, i64)> =
            words.iter().flat_map(|(licence, words)| plain_most(licence, words)).collect();
        let lengths: Vec<f64> = words.values().map(|words| plain_length(words)).collect();
        let same_lengths = lengths.len() == self.lengths.len()
            && lengths.iter().zip(&self.lengths).all(|(plain, (_, found))| (plain - found).abs() < 1e-9);
        let largest = plain_alike(&words);
        let found = self.alike.first().map_or(0.0, |(.., share)| *share);
        let total: usize = words.values().map(Vec::len).sum();
        if most == self.most && same_lengths && total == self.words && (largest - found).abs() < 1e-9 {
            Ok(())
        } else {
            Err("the frames found other words than the plain loop".into())
        }
    }
}

fn plain_most(licence: &str, words: &[String]) -> Vec<(String, String, i64)> {
    let mut counts: BTreeMap<&str, i64> = BTreeMap::new();
    words.iter().for_each(|word| *counts.entry(word).or_default() += 1);
    let mut counts: Vec<(&str, i64)> = counts.into_iter().collect();
    counts.sort_by_key(|(_, count)| -count);
    counts.into_iter().take(MOST).map(|(word, count)| (licence.to_owned(), word.to_owned(), count)).collect()
}

fn plain_length(words: &[String]) -> f64 {
    let logarithms = words.iter().map(|word| (word.chars().count() as f64).ln());
    (logarithms.sum::<f64>() / words.len() as f64).exp()
}

/// The largest share of words that two licences have, in percent.
fn plain_alike(words: &BTreeMap<&str, Vec<String>>) -> f64 {
    let sets: Vec<BTreeSet<&String>> = words.values().map(|words| words.iter().collect()).collect();
    let mut largest: f64 = 0.0;
    for (at, one) in sets.iter().enumerate() {
        for other in &sets[at + 1..] {
            largest = largest
                .max(100.0 * (one.intersection(other).count() as f64 / one.union(other).count() as f64));
        }
    }
    largest
}
