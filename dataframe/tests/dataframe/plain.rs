//! A frame as plain rows, and what each operation does to it, row by row: nothing to be fast, all to be read.

use std::cmp::Ordering;

/// A value: a number, a text, or nothing. Numbers here are small and whole.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Cell {
    Number(i64),
    Text(String),
    Missing,
}

/// Labels, and rows with the labels that their index gives them.
#[derive(Clone, Debug, PartialEq)]
pub struct Plain {
    pub columns: Vec<String>,
    pub rows: Vec<(i64, Vec<Cell>)>,
}

impl Plain {
    fn at(&self, label: &str) -> usize {
        self.columns.iter().position(|column| column == label).unwrap()
    }

    pub fn filter_greater(&self, label: &str, bound: i64) -> Plain {
        let at = self.at(label);
        let holds = |row: &&(i64, Vec<Cell>)| matches!(row.1[at], Cell::Number(number) if bound < number);
        Plain { rows: self.rows.iter().filter(holds).cloned().collect(), ..self.clone() }
    }

    pub fn assign_sum(&self, label: &str, left: &str, right: &str) -> Plain {
        let (left, right) = (self.at(left), self.at(right));
        self.set(label, |row| match (&row[left], &row[right]) {
            (Cell::Number(left), Cell::Number(right)) => Cell::Number(left + right),
            _ => Cell::Missing,
        })
    }

    pub fn fill(&self, label: &str, value: i64) -> Plain {
        let at = self.at(label);
        self.set(label, |row| match &row[at] {
            Cell::Missing => Cell::Number(value),
            there => there.clone(),
        })
    }

    pub fn negate(&self, label: &str) -> Plain {
        let at = self.at(label);
        self.set(label, |row| match &row[at] {
            Cell::Number(number) => Cell::Number(-number),
            other => other.clone(),
        })
    }

    fn set(&self, label: &str, value: impl Fn(&[Cell]) -> Cell) -> Plain {
        let mut made = self.clone();
        let at = self.columns.iter().position(|column| column == label);
        if at.is_none() {
            made.columns.push(label.to_owned());
        }
        for (_, row) in &mut made.rows {
            let value = value(row);
            match at {
                Some(at) => row[at] = value,
                None => row.push(value),
            }
        }
        made
    }

    /// A stable sort; missing values come last.
    pub fn sort(&self, label: &str, ascending: bool) -> Plain {
        let at = self.at(label);
        let mut made = self.clone();
        made.rows.sort_by(|(_, a), (_, b)| match (&a[at], &b[at]) {
            (Cell::Missing, Cell::Missing) => Ordering::Equal,
            (Cell::Missing, _) => Ordering::Greater,
            (_, Cell::Missing) => Ordering::Less,
            (a, b) if ascending => a.cmp(b),
            (a, b) => b.cmp(a),
        });
        made
    }

    pub fn head(&self, rows: usize) -> Plain {
        Plain { rows: self.rows.iter().take(rows).cloned().collect(), ..self.clone() }
    }

    pub fn tail(&self, rows: usize) -> Plain {
        let skipped = self.rows.len().saturating_sub(rows);
        Plain { rows: self.rows.iter().skip(skipped).cloned().collect(), ..self.clone() }
    }

    /// The rows for whose values of two columns a condition holds.
    pub fn filter_pairs(&self, labels: [&str; 2], holds: impl Fn(&Cell, &Cell) -> bool) -> Plain {
        let [first, second] = labels.map(|label| self.at(label));
        let kept = self.rows.iter().filter(|(_, row)| holds(&row[first], &row[second]));
        Plain { rows: kept.cloned().collect(), ..self.clone() }
    }

    /// A slice with a step, by Python's rules.
    pub fn steps(&self, from: i64, to: i64, step: i64) -> Plain {
        let rows = self.rows.len() as i64;
        let (low, high) = if 0 < step { (0, rows) } else { (-1, rows - 1) };
        let bound = |bound: i64| (if bound < 0 { bound + rows } else { bound }).clamp(low, high);
        let (mut at, to) = (bound(from), bound(to));
        let mut kept = Vec::new();
        while (0 < step && at < to) || (step < 0 && to < at) {
            kept.push(self.rows[at as usize].clone());
            at += step;
        }
        Plain { rows: kept, ..self.clone() }
    }

    pub fn drop_missing(&self, label: &str) -> Plain {
        let at = self.at(label);
        let kept = self.rows.iter().filter(|(_, row)| row[at] != Cell::Missing);
        Plain { rows: kept.cloned().collect(), ..self.clone() }
    }

    pub fn drop_duplicates(&self, label: &str) -> Plain {
        let at = self.at(label);
        let mut seen = Vec::new();
        let mut made = self.clone();
        made.rows.retain(|(_, row)| {
            let is_new = !seen.contains(&row[at]);
            if is_new {
                seen.push(row[at].clone());
            }
            is_new
        });
        made
    }

    fn numbered(columns: Vec<String>, rows: Vec<Vec<Cell>>) -> Plain {
        Plain { columns, rows: (0..).zip(rows).collect() }
    }

    /// The rows with equal keys side by side, in the order of this frame; with `all`, those without a
    /// partner too. Both frames have other labels beside the key.
    pub fn merge(&self, right: &Plain, key: &str, all: bool) -> Plain {
        let (left_at, right_at) = (self.at(key), right.at(key));
        let others: Vec<usize> = (0..right.columns.len()).filter(|at| *at != right_at).collect();
        let mut columns = self.columns.clone();
        columns.extend(others.iter().map(|at| right.columns[*at].clone()));
        let mut rows = Vec::new();
        for (_, row) in &self.rows {
            let partners = right.rows.iter().filter(|(_, other)| other[right_at] == row[left_at]);
            let before = rows.len();
            for (_, other) in partners {
                rows.push(row.iter().cloned().chain(others.iter().map(|at| other[*at].clone())).collect());
            }
            if all && rows.len() == before {
                let missing = others.iter().map(|_| Cell::Missing);
                rows.push(row.iter().cloned().chain(missing).collect());
            }
        }
        Plain::numbered(columns, rows)
    }

    /// This frame's rows, then the other's, which has the same labels.
    pub fn below(&self, other: &Plain) -> Plain {
        Plain { rows: self.rows.iter().chain(&other.rows).cloned().collect(), ..self.clone() }
    }

    /// Sum and number of a column's values by the values of a key, sorted; rows without a key are left out.
    pub fn totals(&self, key: &str, value: &str) -> Plain {
        let (key_at, value_at) = (self.at(key), self.at(value));
        let mut groups: Vec<(Cell, i64, i64)> = Vec::new();
        for (_, row) in self.rows.iter().filter(|(_, row)| row[key_at] != Cell::Missing) {
            let at = groups.iter().position(|group| group.0 == row[key_at]).unwrap_or_else(|| {
                groups.push((row[key_at].clone(), 0, 0));
                groups.len() - 1
            });
            if let Cell::Number(number) = row[value_at] {
                groups[at].1 += number;
                groups[at].2 += 1;
            }
        }
        groups.sort();
        let columns = [key, "total", "number"].map(str::to_owned).to_vec();
        let rows =
            groups.into_iter().map(|(key, sum, count)| vec![key, Cell::Number(sum), Cell::Number(count)]);
        Plain::numbered(columns, rows.collect())
    }
}
