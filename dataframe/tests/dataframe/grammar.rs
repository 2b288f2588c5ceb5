//! Random programs of two to five steps give the rows that plain code gives for them, on every executor.

use crate::executors::each_executor;
use crate::plain::{Cell, Plain};
use arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use std::sync::Arc;
use tharsis_dataframe::{Aggregate, DataFrame, JoinKind, Merge, Sort, Table};
use tharsis_trials::{SEED, cases, first_seed, given_seed};

/// Programs of a usual and of a long run, which has fresh ones beside those of a usual run.
const PROGRAMS: [u64; 2] = [120, 300];

/// A small source of numbers that look random.
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((mixed ^ (mixed >> 31)) % bound as u64) as usize
    }

    fn pick<T: Clone>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())].clone()
    }

    fn number(&mut self) -> Cell {
        match self.below(5) {
            0 => Cell::Missing,
            _ => Cell::Number(self.below(9) as i64 - 4),
        }
    }

    fn text(&mut self) -> Cell {
        match self.below(5) {
            0 => Cell::Missing,
            _ => Cell::Text(self.pick(&["a", "B", "", "zz"]).to_owned()),
        }
    }
}

/// A table of a text `k` and numbers, as plain rows and as a frame in parts of a few rows.
fn table(dice: &mut Dice, numbers: &[&str]) -> (Plain, DataFrame) {
    let rows = dice.below(14);
    let columns: Vec<String> = ["k"].iter().chain(numbers).map(|label| (*label).to_owned()).collect();
    let mut plain = Plain { columns, rows: Vec::new() };
    for row in 0..rows {
        let cells = std::iter::once(dice.text()).chain(numbers.iter().map(|_| dice.number()));
        plain.rows.push((row as i64, cells.collect()));
    }
    let number = |at: usize| {
        plain.rows.iter().map(move |(_, row)| match row[at] {
            Cell::Number(number) => Some(number),
            _ => None,
        })
    };
    let texts = plain.rows.iter().map(|(_, row)| match &row[0] {
        Cell::Text(text) => Some(text.clone()),
        _ => None,
    });
    let mut arrays: Vec<(&str, ArrayRef, bool)> = vec![("k", Arc::new(StringArray::from_iter(texts)), true)];
    for (at, label) in numbers.iter().enumerate() {
        arrays.push((label, Arc::new(Int64Array::from_iter(number(at + 1))), true));
    }
    let batch = RecordBatch::try_from_iter_with_nullable(arrays).unwrap();
    let part = 1 + dice.below(5);
    let parts = (0..rows).step_by(part).map(|from| batch.slice(from, part.min(rows - from)));
    (plain.clone(), DataFrame::from_batches(batch.schema(), parts.collect()))
}

/// One step on both sides, with its text.
fn step(dice: &mut Dice, plain: &Plain, frame: &DataFrame) -> (String, Plain, DataFrame) {
    let numbers: Vec<String> = plain.columns.iter().filter(|label| *label != "k").cloned().collect();
    let (label, other) = (dice.pick(&numbers), dice.pick(&numbers));
    let any = dice.pick(&plain.columns);
    let (label, other, any) = (label.as_str(), other.as_str(), any.as_str());
    match dice.below(17) {
        0 | 1 => {
            let bound = dice.below(5) as i64 - 3;
            let kept = frame.filter(&frame.col(label).gt(bound));
            (format!("filter {label} > {bound}"), plain.filter_greater(label, bound), kept)
        }
        2 => {
            let new = dice.pick(&["s", label]);
            let frame = frame.assign(new, &frame.col(label) + &frame.col(other));
            (format!("{new} = {label} + {other}"), plain.assign_sum(new, label, other), frame)
        }
        3 | 4 => {
            let ascending = dice.below(2) == 0;
            let sorted = frame.sort_values([any], Sort::each([ascending]));
            (format!("sort {any} {ascending}"), plain.sort(any, ascending), sorted)
        }
        5 => {
            let rows = dice.below(8);
            (format!("head {rows}"), plain.head(rows), frame.head(rows))
        }
        6 => {
            let rows = dice.below(8);
            (format!("tail {rows}"), plain.tail(rows), frame.tail(rows))
        }
        7 => (format!("dropna {any}"), plain.drop_missing(any), frame.dropna_in([any])),
        8 => (format!("unique {any}"), plain.drop_duplicates(any), frame.drop_duplicates_in([any])),
        9 => {
            let filled = frame.assign(label, frame.col(label).fillna(7));
            (format!("fill {label}"), plain.fill(label, 7), filled)
        }
        10 => ("twice".to_owned(), plain.below(plain), DataFrame::concat([frame, frame], false)),
        11 => {
            let (text, holds) = condition(dice, label, other);
            (format!("query {text}"), plain.filter_pairs([label, other], holds), frame.query(&text))
        }
        12 => {
            let (from, to) = (dice.below(12) as i64 - 6, dice.below(12) as i64 - 6);
            let step = dice.pick(&[1, 2, 3, -1, -2]);
            let steps = frame.iloc_step(Some(from), Some(to), step);
            (format!("rows {from}:{to}:{step}"), plain.steps(from, to, step), steps)
        }
        13 | 14 => {
            let ascending = dice.below(2) == 0;
            let turned = frame.assign(label, -&frame.col(label));
            let sorted = turned.sort_values([label], Sort::each([ascending]));
            let plain = plain.negate(label).sort(label, ascending);
            (format!("{label} = -{label}, sort {label} {ascending}"), plain, sorted)
        }
        15 => {
            let once = frame.assign(label, &frame.col(label) + &frame.col(other));
            let twice = once.assign(label, &once.col(label) + &once.col(other));
            let plain = plain.assign_sum(label, label, other).assign_sum(label, label, other);
            (format!("{label} = {label} + {other}, twice"), plain, twice)
        }
        _ => joined_or_grouped(dice, plain, frame, label),
    }
}

/// A condition as a text, and what it says of two values.
fn condition(dice: &mut Dice, label: &str, other: &str) -> (String, impl Fn(&Cell, &Cell) -> bool + use<>) {
    let bound = dice.below(5) as i64 - 3;
    let holds = move |first: &Cell, second: &Cell| {
        matches!(first, Cell::Number(number) if bound < *number) || *second == Cell::Number(bound)
    };
    (format!("{label} > {bound} or {other} == {bound}"), holds)
}

fn joined_or_grouped(
    dice: &mut Dice,
    plain: &Plain,
    frame: &DataFrame,
    label: &str,
) -> (String, Plain, DataFrame) {
    if dice.below(2) == 0 || plain.columns.iter().any(|label| label == "w") {
        let sums = [("total", label, Aggregate::Sum), ("number", label, Aggregate::Count)];
        let sums = frame.groupby(["k"]).as_index(false).agg_as(sums);
        return (format!("group {label}"), plain.totals("k", label), sums);
    }
    let (right_plain, right) = table(dice, &["w"]);
    let all = dice.below(2) == 0;
    let kind = if all { JoinKind::Left } else { JoinKind::Inner };
    let merged = frame.merge(&right, Merge::on(["k"]).how(kind));
    (format!("merge {kind:?} {right_plain:?}"), plain.merge(&right_plain, "k", all), merged)
}

/// The rows of a table as plain rows.
fn plain_of(table: &Table) -> Plain {
    let columns = table.columns();
    let labels = match table.index_arrays().first() {
        Some(level) => <i64 as tharsis_dataframe::Native>::read(level).unwrap(),
        None => (0..table.len() as i64).map(Some).collect(),
    };
    let mut rows: Vec<(i64, Vec<Cell>)> =
        labels.into_iter().map(|label| (label.unwrap(), Vec::new())).collect();
    for column in &columns {
        let cells: Vec<Cell> = if column == "k" {
            let texts = table.column::<String>(column).unwrap().into_iter();
            texts.map(|text| text.map_or(Cell::Missing, Cell::Text)).collect()
        } else {
            let numbers = table.column::<i64>(column).unwrap().into_iter();
            numbers.map(|number| number.map_or(Cell::Missing, Cell::Number)).collect()
        };
        rows.iter_mut().zip(cells).for_each(|((_, row), cell)| row.push(cell));
    }
    Plain { columns, rows }
}

/// Four tests share the programs: one keeps one core only.
mod random_programs_give_the_rows_of_plain_code {
    use super::give_the_rows_of_plain_code;

    #[test]
    fn first_quarter() {
        give_the_rows_of_plain_code(0);
    }

    #[test]
    fn second_quarter() {
        give_the_rows_of_plain_code(1);
    }

    #[test]
    fn third_quarter() {
        give_the_rows_of_plain_code(2);
    }

    #[test]
    fn fourth_quarter() {
        give_the_rows_of_plain_code(3);
    }
}

/// Every fourth program, from this one on. `THARSIS_SEED` set to a seed tries programs from there on.
fn give_the_rows_of_plain_code(part: u64) {
    let [usual, long] = PROGRAMS;
    let known = if given_seed().is_some() { 0 } else { usual };
    let fresh = first_seed(0);
    for at in (part..cases(usual, long)).step_by(4) {
        let seed = if at < known { at } else { fresh.wrapping_add(at) };
        let mut dice = Dice(seed);
        let (mut plain, mut frame) = table(&mut dice, &["m", "n"]);
        let mut program = vec![format!("{plain:?}")];
        for _ in 0..2 + dice.below(4) {
            let (text, next_plain, next) = step(&mut dice, &plain, &frame);
            program.push(text);
            (plain, frame) = (next_plain, next);
        }
        let shown = program.join("\n  ");
        for found in each_executor(|executor| frame.collect_on(executor)) {
            assert_eq!(plain_of(&found), plain, "{SEED}={seed}:\n  {shown}");
        }
    }
}
