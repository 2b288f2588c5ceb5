//! The questions of the public db-benchmark (h2o.ai) about groups and joins, on tables of its shape.
//!
//! The tables have its columns, numbers of distinct keys and overlaps; the random numbers are our own.

use super::random::Random;
use super::tables::Tables;
use super::{Question, ask};
use crate::bench::{Measurement, Options};
use anyhow::Result;
use arrow::array::{ArrayRef, Float64Array, Int32Array, RecordBatch, StringArray};
use std::sync::Arc;

/// Distinct values of keys with few of them.
const FEW: usize = 100;
/// Seed of the data; parts of tables have seeds of their own.
const SEED: u64 = 108;

const GROUPS: &[Question] = &[
    Question { name: "q01", query: include_str!("queries/groupby_q01.sql") },
    Question { name: "q02", query: include_str!("queries/groupby_q02.sql") },
    Question { name: "q03", query: include_str!("queries/groupby_q03.sql") },
    Question { name: "q04", query: include_str!("queries/groupby_q04.sql") },
    Question { name: "q05", query: include_str!("queries/groupby_q05.sql") },
    Question { name: "q06", query: include_str!("queries/groupby_q06.sql") },
    Question { name: "q07", query: include_str!("queries/groupby_q07.sql") },
    Question { name: "q08", query: include_str!("queries/groupby_q08.sql") },
    Question { name: "q09", query: include_str!("queries/groupby_q09.sql") },
    Question { name: "q10", query: include_str!("queries/groupby_q10.sql") },
];

const JOINS: &[Question] = &[
    Question { name: "q01", query: include_str!("queries/join_q01.sql") },
    Question { name: "q02", query: include_str!("queries/join_q02.sql") },
    Question { name: "q03", query: include_str!("queries/join_q03.sql") },
    Question { name: "q04", query: include_str!("queries/join_q04.sql") },
    Question { name: "q05", query: include_str!("queries/join_q05.sql") },
];

/// Seconds of the ten questions about groups; `size` is rows.
pub fn groupby(options: &Options) -> Result<Measurement> {
    ask("frame-groupby", options, &group_table(options)?, GROUPS)
}

/// Seconds of the five questions about joins; `size` is rows of the left side and of the largest right one.
pub fn join(options: &Options) -> Result<Measurement> {
    ask("frame-join", options, &join_tables(options)?, JOINS)
}

/// The table `x` of groups: three keys of texts, three of numbers, of which one each has many values.
pub fn group_table(options: &Options) -> Result<Tables> {
    let mut tables = Tables::open(options, &format!("groupby-{}", options.size))?;
    let many = (options.size / FEW).max(1);
    tables.add("x", options.size, |part, rows| group_rows(part, rows.len(), many))?;
    Ok(tables)
}

/// The rows of a part of the table of groups, with this many values of the keys that have many.
fn group_rows(part: usize, rows: usize, many: usize) -> Result<RecordBatch> {
    let mut random = Random::new(SEED + part as u64);
    let (few, many) = (1..FEW as u64 + 1, 1..many as u64 + 1);
    Ok(RecordBatch::try_from_iter([
        ("id1", texts(rows, || format!("id{:03}", random.within(few.clone())))),
        ("id2", texts(rows, || format!("id{:03}", random.within(few.clone())))),
        ("id3", texts(rows, || format!("id{:010}", random.within(many.clone())))),
        ("id4", numbers(rows, || random.within(few.clone()))),
        ("id5", numbers(rows, || random.within(few.clone()))),
        ("id6", numbers(rows, || random.within(many.clone()))),
        ("v1", numbers(rows, || random.within(1..6))),
        ("v2", numbers(rows, || random.within(1..16))),
        ("v3", prices(rows, &mut random)),
    ])?)
}

/// Keys of both sides of a join: nine of ten are on both.
struct Keys {
    left: Vec<u32>,
    right: Vec<u32>,
}

impl Keys {
    fn new(count: usize, random: &mut Random) -> Keys {
        let common = count * 9 / 10;
        let all = random.permutation(2 * count - common);
        let right = all[..common].iter().chain(&all[count..]).copied().collect();
        Keys { left: all[..count].to_vec(), right }
    }
}

/// The table `x`, and those that it is joined with: a millionth of its rows, a thousandth, and as many.
fn join_tables(options: &Options) -> Result<Tables> {
    let rows = options.size;
    let mut tables = Tables::open(options, &format!("join-{rows}"))?;
    let mut random = Random::new(SEED);
    let small = Keys::new((rows / 1_000_000).max(10), &mut random);
    let medium = Keys::new((rows / 1_000).max(10), &mut random);
    let big = Keys::new(rows.max(10), &mut random);
    tables.add("x", big.left.len(), |part, rows| {
        let mut random = Random::new(SEED + 1_000 + part as u64);
        let id1 = picked(&small.left, rows.len(), &mut random);
        let id2 = picked(&medium.left, rows.len(), &mut random);
        joined_rows(&[&id1, &id2, &big.left[rows]], "v1", &mut random)
    })?;
    tables.add("small", small.right.len(), |_, rows| {
        joined_rows(&[&small.right[rows]], "v2", &mut Random::new(SEED + 2_000))
    })?;
    tables.add("medium", medium.right.len(), |part, rows| {
        let mut random = Random::new(SEED + 3_000 + part as u64);
        let id1 = picked(&small.right, rows.len(), &mut random);
        joined_rows(&[&id1, &medium.right[rows]], "v2", &mut random)
    })?;
    tables.add("big", big.right.len(), |part, rows| {
        let mut random = Random::new(SEED + 4_000 + part as u64);
        let id1 = picked(&small.right, rows.len(), &mut random);
        let id2 = picked(&medium.right, rows.len(), &mut random);
        joined_rows(&[&id1, &id2, &big.right[rows]], "v2", &mut random)
    })?;
    Ok(tables)
}

fn picked(keys: &[u32], rows: usize, random: &mut Random) -> Vec<u32> {
    (0..rows).map(|_| keys[random.within(0..keys.len() as u64) as usize]).collect()
}

/// Up to three keys as numbers (`id1` on), the same as texts (`id4` on), and a price.
fn joined_rows(keys: &[&[u32]], price: &str, random: &mut Random) -> Result<RecordBatch> {
    let rows = keys.first().map_or(0, |keys| keys.len());
    let mut columns: Vec<(String, ArrayRef)> = Vec::new();
    for (key, number) in keys.iter().zip(1..) {
        let mut values = key.iter();
        columns.push((format!("id{number}"), numbers(rows, || values.next().copied().unwrap_or(0).into())));
    }
    for (key, number) in keys.iter().zip(4..) {
        let mut values = key.iter();
        columns.push((format!("id{number}"), texts(rows, || format!("id{}", values.next().unwrap_or(&0)))));
    }
    columns.push((price.to_owned(), prices(rows, random)));
    Ok(RecordBatch::try_from_iter(columns)?)
}

fn texts(rows: usize, mut text: impl FnMut() -> String) -> ArrayRef {
    Arc::new(StringArray::from_iter_values((0..rows).map(|_| text())))
}

fn numbers(rows: usize, mut number: impl FnMut() -> u64) -> ArrayRef {
    Arc::new(Int32Array::from_iter_values((0..rows).map(|_| number() as i32)))
}

fn prices(rows: usize, random: &mut Random) -> ArrayRef {
    Arc::new(Float64Array::from_iter_values((0..rows).map(|_| random.price())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn nine_of_ten_keys_are_on_both_sides() {
        let keys = Keys::new(1000, &mut Random::new(1));
        let (left, right): (HashSet<u32>, HashSet<u32>) =
            (keys.left.into_iter().collect(), keys.right.into_iter().collect());
        assert_eq!((left.len(), right.len(), left.intersection(&right).count()), (1000, 1000, 900));
    }
}
