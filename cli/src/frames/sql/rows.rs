//! Rows of an answer as people and other programs read them.

use crate::format::Shown;
use anyhow::Result;
use arrow::array::RecordBatch;
use arrow::datatypes::DataType;
use arrow::util::display::{ArrayFormatter, FormatOptions};
use std::io::Write;
use tharsis::frame::{Table, WriteOptions};
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Columns of characters that a cell keeps when a table is made narrower.
const CELL_MIN: usize = 8;
/// The sign that something is left out.
const CUT: &str = "…";

/// The way in which rows are written.
#[derive(Clone, Copy, Debug)]
pub struct View {
    /// The form.
    pub shown: Shown,
    /// Rows that a table shows at most; the others are counted.
    pub rows_max: usize,
    /// Columns of characters that a table may take.
    pub width: usize,
}

/// Writes the rows of an answer.
///
/// # Errors
/// If they cannot be written, or have a type that the form does not know.
pub fn write(table: &Table, view: View, to: &mut dyn Write) -> Result<()> {
    let batch = table.batch();
    match view.shown {
        Shown::Csv => Ok(table.write_csv(to, &WriteOptions::new())?),
        Shown::Tsv => Ok(table.write_csv(to, &WriteOptions::new().sep(b'\t'))?),
        Shown::Json => json::<arrow::json::writer::JsonArray>(batch, to).and_then(|()| Ok(writeln!(to)?)),
        Shown::Jsonl => json::<arrow::json::writer::LineDelimited>(batch, to),
        Shown::Markdown => markdown(batch, to),
        Shown::Table => aligned(batch, view, to),
        Shown::Vertical => vertical(batch, to),
        Shown::Arrow => stream(batch, to),
    }
}

fn stream(batch: &RecordBatch, to: &mut dyn Write) -> Result<()> {
    let mut writer = arrow::ipc::writer::StreamWriter::try_new(to, batch.schema_ref())?;
    writer.write(batch)?;
    Ok(writer.finish()?)
}

fn json<F: arrow::json::writer::JsonFormat>(batch: &RecordBatch, to: &mut dyn Write) -> Result<()> {
    let mut writer = arrow::json::WriterBuilder::new().with_explicit_nulls(true).build::<_, F>(to);
    writer.write(batch)?;
    Ok(writer.finish()?)
}

/// The cells of the first rows as texts of one line each, column by column.
fn cells(batch: &RecordBatch, rows: usize) -> Result<Vec<Vec<String>>> {
    let options = FormatOptions::default().with_null("NULL");
    let column = |array| -> Result<Vec<String>> {
        let formatter = ArrayFormatter::try_new(array, &options)?;
        (0..rows).map(|row| Ok(one_line(&formatter.value(row).try_to_string()?))).collect()
    };
    batch.columns().iter().map(|array| column(array.as_ref())).collect()
}

/// A text without control characters, which could move the cursor or change the terminal.
fn one_line(text: &str) -> String {
    let mut found = String::with_capacity(text.len());
    for letter in text.chars() {
        if letter.is_control() {
            found.extend(letter.escape_default());
        } else {
            found.push(letter);
        }
    }
    found
}

fn names(batch: &RecordBatch) -> Vec<String> {
    batch.schema_ref().fields().iter().map(|field| one_line(field.name())).collect()
}

fn are_numbers(batch: &RecordBatch) -> Vec<bool> {
    let is_number = |dtype: &DataType| dtype.is_numeric();
    batch.schema_ref().fields().iter().map(|field| is_number(field.data_type())).collect()
}

/// A number of things in words.
pub fn counted(count: usize, what: &str) -> String {
    if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
}

/// A table with a heading, a line for each row and the number of rows.
fn aligned(batch: &RecordBatch, view: View, to: &mut dyn Write) -> Result<()> {
    let rows = batch.num_rows().min(view.rows_max);
    let (names, cells, are_numbers) = (names(batch), cells(batch, rows)?, are_numbers(batch));
    let full: Vec<usize> = names
        .iter()
        .zip(&cells)
        .map(|(name, cells)| cells.iter().map(|cell| cell.width()).chain([name.width()]).max().unwrap_or(0))
        .collect();
    let widths = fitted(&full, view.width);
    let line = |texts: Vec<&str>| {
        let padded = texts.iter().zip(&widths).zip(&are_numbers);
        let padded = padded.map(|((text, width), is_number)| padded_to(text, *width, *is_number));
        padded.collect::<Vec<_>>().join(" | ").trim_end().to_owned()
    };
    if !widths.is_empty() {
        writeln!(to, " {}", line(names.iter().map(String::as_str).collect()))?;
        let rule: Vec<String> = widths.iter().map(|width| "-".repeat(width + 2)).collect();
        writeln!(to, "{}", rule.join("+"))?;
    }
    for row in 0..rows {
        writeln!(to, " {}", line(cells.iter().map(|column| column[row].as_str()).collect()))?;
    }
    let mut said = counted(batch.num_rows(), "row");
    if rows < batch.num_rows() {
        said += &format!(", the first {rows} shown; rows 0 shows all");
    }
    if widths.len() < names.len() {
        said +=
            &format!("; {} of {}, the form vertical shows all", counted(widths.len(), "column"), names.len());
    } else if widths != full {
        said += "; cells are cut, the form vertical shows them whole";
    }
    Ok(writeln!(to, "({said})")?)
}

/// Widths of columns for a line of some width: the widest are cut first; if cells would get too narrow, only
/// the first columns have a place.
fn fitted(full: &[usize], width: usize) -> Vec<usize> {
    let line = |widths: &[usize]| widths.iter().map(|width| width + 3).sum::<usize>();
    let mut widths = full.to_vec();
    while width < line(&widths) {
        let widest = widths.iter().copied().max().unwrap_or(0);
        if widest <= CELL_MIN {
            widths.pop();
            continue;
        }
        let second = widths.iter().copied().filter(|width| *width < widest).max().unwrap_or(0).max(CELL_MIN);
        let wide = widths.iter().filter(|width| **width == widest).count();
        let over = line(&widths) - width;
        let narrower = second.max(widest.saturating_sub(over.div_ceil(wide)));
        widths.iter_mut().filter(|width| **width == widest).for_each(|width| *width = narrower);
    }
    // One column stays, however narrow the terminal is.
    if widths.is_empty() {
        full.first().map(|width| vec![(*width).min(CELL_MIN)]).unwrap_or_default()
    } else {
        widths
    }
}

/// A text in a cell of some width, at its right side if it is a number.
fn padded_to(text: &str, width: usize, is_number: bool) -> String {
    let text = cut_to(text, width);
    let space = " ".repeat(width.saturating_sub(text.width()));
    if is_number { space + &text } else { text + &space }
}

/// A text of at most some width, with a sign at its end if it was cut.
fn cut_to(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let mut kept = String::new();
    let mut left = width.saturating_sub(CUT.width());
    for letter in text.chars() {
        let wide = letter.width().unwrap_or(0);
        if left < wide {
            break;
        }
        left -= wide;
        kept.push(letter);
    }
    kept + CUT
}

fn markdown(batch: &RecordBatch, to: &mut dyn Write) -> Result<()> {
    let cells = cells(batch, batch.num_rows())?;
    let escaped = |text: &str| text.replace('\\', "\\\\").replace('|', "\\|");
    let line = |texts: Vec<String>| format!("| {} |", texts.join(" | "));
    writeln!(to, "{}", line(names(batch).iter().map(|name| escaped(name)).collect()))?;
    let rule = |is_number: &bool| if *is_number { "---:" } else { "---" }.to_owned();
    writeln!(to, "{}", line(are_numbers(batch).iter().map(rule).collect()))?;
    for row in 0..batch.num_rows() {
        writeln!(to, "{}", line(cells.iter().map(|column| escaped(&column[row])).collect()))?;
    }
    Ok(())
}

fn vertical(batch: &RecordBatch, to: &mut dyn Write) -> Result<()> {
    let (names, cells) = (names(batch), cells(batch, batch.num_rows())?);
    let width = names.iter().map(|name| name.width()).max().unwrap_or(0);
    for row in 0..batch.num_rows() {
        writeln!(to, "-- row {}", row + 1)?;
        for (name, column) in names.iter().zip(&cells) {
            writeln!(to, "{} | {}", padded_to(name, width, false), column[row])?;
        }
    }
    Ok(writeln!(to, "({})", counted(batch.num_rows(), "row"))?)
}

#[cfg(test)]
mod tests {
    use super::{Shown, View, cut_to, fitted, write};
    use tharsis::frame::{DataFrame, Table};
    use unicode_width::UnicodeWidthStr;

    fn table() -> Table {
        let names = vec![Some("Oslo"), None, Some("a|b\n\u{1b}[31m")];
        let frame = DataFrame::from_columns([("city", names.into()), ("sold", vec![3, 40, 5].into())]);
        frame.collect().unwrap()
    }

    fn written(shown: Shown, rows_max: usize, width: usize) -> String {
        let mut to = Vec::new();
        write(&table(), View { shown, rows_max, width }, &mut to).unwrap();
        String::from_utf8(to).unwrap()
    }

    #[test]
    fn a_table_is_aligned_and_counted() {
        let shown = written(Shown::Table, usize::MAX, 80);
        let wanted = " city                 | sold\n----------------------+------\n Oslo                 |    3\n \
                      NULL                 |   40\n a|b\\n\\u{1b}[31m      |    5\n(3 rows)\n";
        assert_eq!(
            shown.replace(' ', ""),
            wanted.replace(' ', "").replace("----------------------", &"-".repeat(17))
        );
        assert!(written(Shown::Table, 2, 80).ends_with("(3 rows, the first 2 shown; rows 0 shows all)\n"));
    }

    #[test]
    fn a_narrow_table_cuts_cells_and_then_columns() {
        let shown = written(Shown::Table, usize::MAX, 20);
        assert!(shown.lines().take(5).all(|line| line.width() <= 20), "{shown}");
        assert!(shown.contains('…') && shown.contains("cells are cut"), "{shown}");
        let shown = written(Shown::Table, usize::MAX, 12);
        assert!(shown.contains("1 column of 2"), "{shown}");
    }

    #[test]
    fn widths_fit_the_line() {
        assert_eq!(fitted(&[5, 5], 80), [5, 5]);
        assert_eq!(fitted(&[50, 5], 40), [29, 5]);
        assert_eq!(fitted(&[50, 40], 46), [20, 20]);
        assert_eq!(fitted(&[20, 20, 20], 30), [8, 8]);
        assert_eq!(fitted(&[20], 3), [8]);
        assert_eq!(fitted(&[], 3), Vec::<usize>::new());
    }

    #[test]
    fn cuts_keep_whole_characters() {
        assert_eq!(cut_to("ab", 2), "ab");
        assert_eq!(cut_to("abc", 2), "a…");
        assert_eq!(cut_to("東京都", 4), "東…");
    }

    #[test]
    fn programs_get_all_rows() {
        assert_eq!(written(Shown::Csv, 1, 5), "city,sold\nOslo,3\n,40\n\"a|b\n\u{1b}[31m\",5\n");
        let lines = written(Shown::Jsonl, 1, 5);
        let rows: Vec<serde_json::Value> =
            lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(rows[1], serde_json::json!({"city": null, "sold": 40}));
        let whole: serde_json::Value = serde_json::from_str(&written(Shown::Json, 1, 5)).unwrap();
        assert_eq!(whole.as_array().unwrap(), &rows);
        let markdown = written(Shown::Markdown, 1, 5);
        assert!(
            markdown.starts_with("| city | sold |\n| --- | ---: |\n| Oslo | 3 |\n| NULL | 40 |\n| a\\|b")
        );
        assert!(written(Shown::Vertical, 1, 5).contains("-- row 2\ncity | NULL\nsold | 40\n"));
    }
}
