//! The lines of `tharsis top`, for a terminal of some width and height. Columns go where there is no room,
//! lines are never wrapped.

use super::view::{JobLine, NodeLine, View, WaitingLine};
use std::borrow::Cow;
use std::cmp::Reverse;

/// Blanks between two columns.
const GAP: usize = 2;
/// Columns that the texts of a table keep.
const NAME_MIN: usize = 12;
const REASON_MIN: usize = 16;
/// The widest column.
const WIDE_MAX: usize = 1000;
/// Mark of a value that is not known.
const UNKNOWN: &str = "-";

/// The meaning of a line, for its colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tone {
    /// The names of columns.
    Head,
    /// A row.
    Plain,
    /// Something is wrong, or goes away.
    Warning,
}

/// A line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    pub tone: Tone,
    pub text: String,
}

/// A column of a table.
struct Column {
    head: &'static str,
    /// Columns with a high rank go first, that of rank 0 stays.
    rank: usize,
    cut: Cut,
}

/// The part of a text that stays where there is no room for all of it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Cut {
    /// A number, which is shown whole, at the right.
    Whole,
    /// A text, which is shown whole.
    Id,
    /// The begin, of this many columns at least.
    Begin(usize),
    /// The end, which tells more of paths.
    End(usize),
}

const fn column(head: &'static str, rank: usize, cut: Cut) -> Column {
    Column { head, rank, cut }
}

static NODES: [Column; 7] = [
    column("node", 0, Cut::Id),
    column("state", 5, Cut::Id),
    column("cpus", 1, Cut::Whole),
    column("memory", 4, Cut::Whole),
    column("store", 3, Cut::Whole),
    column("running", 2, Cut::Whole),
    column("finished/s", 6, Cut::Whole),
];
static JOBS: [Column; 7] = [
    column("job", 0, Cut::Whole),
    column("name", 4, Cut::Begin(NAME_MIN)),
    column("running", 1, Cut::Whole),
    column("waiting", 2, Cut::Whole),
    column("finished/s", 3, Cut::Whole),
    column("workers", 6, Cut::Whole),
    column("program", 5, Cut::End(NAME_MIN)),
];
static WAITING: [Column; 5] = [
    column("waiting", 1, Cut::Whole),
    column("for", 2, Cut::Whole),
    column("name", 0, Cut::End(NAME_MIN)),
    column("resources", 4, Cut::Id),
    column("reason", 3, Cut::Begin(REASON_MIN)),
];

/// The lines of a view, of `width` columns at most; all of them, or as many as fit into `height`. A problem
/// stands above them.
pub fn lines(view: &View, problem: Option<&str>, width: usize, height: Option<usize>) -> Vec<Line> {
    let mut lines = vec![Line { tone: Tone::Plain, text: summary(view) }];
    lines.extend(problem.map(|problem| warning(problem.to_owned())));
    let silent = view.silent.iter().map(|(node, cause)| warning(format!("node {node:016x}: {cause}")));
    lines.extend(silent);
    let tables =
        [(&NODES[..], node_rows(view)), (&JOBS[..], job_rows(view)), (&WAITING[..], waiting_rows(view))];
    let counts = [0, 1, 2].map(|at: usize| tables[at].1.len());
    let heads = 2 * counts.iter().filter(|count| 0 < **count).count();
    let shown = match height {
        Some(height) => share(counts, height.saturating_sub(lines.len() + heads)),
        None => counts,
    };
    for ((columns, rows), shown) in tables.iter().zip(shown) {
        lines.extend(table(columns, rows, shown, width));
    }
    for line in &mut lines {
        line.text = begin(&plain(&line.text), width);
    }
    lines.truncate(height.unwrap_or(usize::MAX));
    lines
}

fn warning(text: String) -> Line {
    Line { tone: Tone::Warning, text }
}

fn summary(view: &View) -> String {
    // A sum of nothing is -0.
    let sum = |of: fn(&NodeLine) -> f64| 0.0 + view.nodes.iter().map(of).sum::<f64>();
    let runs: u64 = view.nodes.iter().filter_map(|line| line.runs).sum();
    let waiting: usize = view.waiting.iter().map(|line| line.count).sum();
    let finished = sum(|line| line.finished_per_s.unwrap_or(0.0));
    let nodes = match view.nodes.len() {
        1 => "1 node".to_owned(),
        count => format!("{count} nodes"),
    };
    format!(
        "{nodes}, {} of {} CPUs in use, {runs} running, {waiting} queued, {} finished/s",
        amount(sum(|line| line.cpus_used)),
        amount(sum(|line| line.cpus)),
        rate(finished)
    )
}

/// As many rows of each table as there is room for: short tables whole, the others alike.
fn share(counts: [usize; 3], room: usize) -> [usize; 3] {
    let mut shown = [0; 3];
    let mut left = room;
    while 0 < left && shown != counts {
        for (shown, count) in shown.iter_mut().zip(counts) {
            if *shown < count && 0 < left {
                *shown += 1;
                left -= 1;
            }
        }
    }
    shown
}

/// A row of a table, with the tone of its line.
type Row = (Tone, Vec<String>);

fn node_rows(view: &View) -> Vec<Row> {
    let mut all: Vec<&NodeLine> = view.nodes.iter().collect();
    // The node of this machine is the first; the others keep their places.
    if let Some((_, others)) = all.split_first_mut() {
        others.sort_by_key(|line| line.node);
    }
    let row = |line: &&NodeLine| {
        let memory = line.memory_bytes.zip(line.memory_used_bytes);
        let store = line.store.map(|store| (store.capacity_bytes, store.used_bytes));
        let of = |part: Option<(u64, u64)>| {
            part.map_or_else(|| UNKNOWN.to_owned(), |(all, used)| format!("{}/{}", size(used), size(all)))
        };
        let cells = vec![
            format!("{:016x}", line.node),
            if line.is_draining { "draining" } else { "serving" }.to_owned(),
            format!("{}/{}", amount(line.cpus_used), amount(line.cpus)),
            of(memory),
            of(store),
            known(line.runs),
            line.finished_per_s.map_or_else(|| UNKNOWN.to_owned(), rate),
        ];
        (if line.is_draining { Tone::Warning } else { Tone::Plain }, cells)
    };
    all.iter().map(row).collect()
}

fn job_rows(view: &View) -> Vec<Row> {
    let mut all: Vec<&JobLine> = view.jobs.iter().collect();
    all.sort_by_key(|line| (Reverse(line.runs), Reverse(line.waiting), line.job));
    let row = |line: &&JobLine| {
        let cells = vec![
            line.job.to_string(),
            line.name.clone(),
            line.runs.to_string(),
            known(line.waiting),
            rate(line.finished_per_s),
            known(line.workers),
            line.program.clone(),
        ];
        (Tone::Plain, cells)
    };
    all.iter().map(row).collect()
}

fn waiting_rows(view: &View) -> Vec<Row> {
    let mut all: Vec<&WaitingLine> = view.waiting.iter().collect();
    all.sort_by_key(|line| (Reverse(line.age_ms), Reverse(line.count)));
    let row = |line: &&WaitingLine| {
        let cells = vec![
            line.count.to_string(),
            line.age_ms.map_or_else(|| UNKNOWN.to_owned(), age),
            line.name.clone(),
            line.resources.clone(),
            line.reason.clone(),
        ];
        (Tone::Plain, cells)
    };
    all.iter().map(row).collect()
}

fn known(number: Option<u64>) -> String {
    number.map_or_else(|| UNKNOWN.to_owned(), |number| number.to_string())
}

fn amount(number: f64) -> String {
    ((number * 100.0).round() / 100.0).to_string()
}

fn rate(per_s: f64) -> String {
    if per_s < 10.0 { format!("{per_s:.1}") } else { format!("{per_s:.0}") }
}

/// Bytes in the largest unit of which there is one, to three digits.
fn size(bytes: u64) -> String {
    match bytes as f64 / f64::from(1 << 20) {
        mib if mib < 1024.0 => format!("{mib:.0}MiB"),
        mib if mib < 10240.0 => format!("{:.1}GiB", mib / 1024.0),
        mib => format!("{:.0}GiB", mib / 1024.0),
    }
}

/// A time in its two largest units.
fn age(ms: u64) -> String {
    match ms / 1000 {
        0 => format!("{ms}ms"),
        s if s < 60 => format!("{s}s"),
        s if s < 3600 => format!("{}m{:02}s", s / 60, s % 60),
        s if s < 86_400 => format!("{}h{:02}m", s / 3600, s / 60 % 60),
        s => format!("{}d{:02}h", s / 86_400, s / 3600 % 24),
    }
}

/// An empty line, the names of the columns, and the first rows; the last of these lines counts the others.
fn table(columns: &[Column], rows: &[Row], shown: usize, width: usize) -> Vec<Line> {
    if rows.is_empty() {
        return Vec::new();
    }
    let others = rows.len() - shown;
    let listed = if others == 0 { rows } else { &rows[..shown.saturating_sub(1)] };
    let texts: Vec<Vec<Cow<'_, str>>> =
        listed.iter().map(|(_, cells)| cells.iter().map(|cell| plain(cell)).collect()).collect();
    let kept = kept(columns, &texts, width);
    let joined = |cell: &dyn Fn(usize, usize) -> String| {
        let cells: Vec<String> = kept.iter().map(|(at, width)| cell(*at, *width)).collect();
        cells.join(&" ".repeat(GAP)).trim_end().to_owned()
    };
    let head = joined(&|at, width| padded(columns[at].head, &columns[at], width));
    let mut lines =
        vec![Line { tone: Tone::Plain, text: String::new() }, Line { tone: Tone::Head, text: head }];
    for ((tone, _), cells) in listed.iter().zip(&texts) {
        let text = joined(&|at, width| padded(&cells[at], &columns[at], width));
        lines.push(Line { tone: *tone, text });
    }
    if 0 < others && 0 < shown {
        lines.push(Line { tone: Tone::Plain, text: format!("and {} more", rows.len() - listed.len()) });
    }
    lines
}

/// The columns for which there is room, and their widths. Texts are cut before a column goes; the room that
/// is left is for the texts, the more important one first.
fn kept(columns: &[Column], texts: &[Vec<Cow<'_, str>>], width: usize) -> Vec<(usize, usize)> {
    let wide = |at: usize| {
        let cells = texts.iter().map(|row| row[at].chars().count());
        cells.chain([columns[at].head.len()]).max().unwrap_or(0).min(WIDE_MAX)
    };
    let least = |at: usize| match columns[at].cut {
        Cut::Whole | Cut::Id => wide(at),
        Cut::Begin(least) | Cut::End(least) => wide(at).min(least),
    };
    let taken = |kept: &[(usize, usize)]| {
        kept.iter().map(|(_, width)| width + GAP).sum::<usize>().saturating_sub(GAP)
    };
    let mut kept: Vec<(usize, usize)> = (0..columns.len()).map(|at| (at, least(at))).collect();
    while width < taken(&kept) && 1 < kept.len() {
        let last = kept.iter().map(|(at, _)| columns[*at].rank).max().unwrap_or(0);
        kept.retain(|(at, _)| columns[*at].rank != last);
    }
    let mut room = width.saturating_sub(taken(&kept));
    let mut by_rank: Vec<&mut (usize, usize)> = kept.iter_mut().collect();
    by_rank.sort_by_key(|column| columns[column.0].rank);
    for (at, width) in by_rank {
        let more = (wide(*at) - *width).min(room);
        *width += more;
        room -= more;
    }
    kept
}

fn padded(text: &str, column: &Column, width: usize) -> String {
    match column.cut {
        Cut::Whole => format!("{text:>width$}"),
        Cut::Id => format!("{text:<width$}"),
        Cut::Begin(_) => format!("{:<width$}", begin(text, width)),
        Cut::End(_) => format!("{:<width$}", end(text, width)),
    }
}

/// The begin of a text for which there is no room.
fn begin(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    let kept = text.chars().take(width.saturating_sub(1));
    kept.chain("…".chars().take(width)).collect()
}

/// The end of a text for which there is no room.
fn end(text: &str, width: usize) -> String {
    let count = text.chars().count();
    if count <= width {
        return text.to_owned();
    }
    let left = (count + 1).saturating_sub(width);
    "…".chars().take(width).chain(text.chars().skip(left)).collect()
}

/// A text without characters that move the cursor: programs choose the names of jobs and tasks.
fn plain(text: &str) -> Cow<'_, str> {
    if text.chars().any(char::is_control) {
        text.chars().map(|c| if c.is_control() { '?' } else { c }).collect()
    } else {
        text.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::top::view::tests::sample;

    fn texts(view: &View, width: usize, height: Option<usize>) -> Vec<String> {
        lines(view, None, width, height).into_iter().map(|line| line.text).collect()
    }

    #[test]
    fn all_is_shown_where_there_is_room() {
        let wanted = [
            "3 nodes, 11.5 of 14 CPUs in use, 3 running, 33 queued, 2.0 finished/s",
            "node 0000000000000002: it was silent for 2 s",
            "",
            "node              state      cpus         memory        store  running  finished/s",
            "0000000000000001  serving   3.5/4  512MiB/1.0GiB  12MiB/64MiB        1         2.0",
            "0000000000000002  serving     0/2              -            -        -           -",
            "0000000000000003  draining    8/8              -            -        2         0.0",
            "",
            "job  name     running  waiting  finished/s  workers  program",
            "  7  nightly        2       38         2.0        2  train",
            "  9                 1        -         0.0        -",
            "",
            "waiting    for  name         resources  reason",
            "      2  3m12s  train::fit   1 CPU      no node has 64 CPU",
            "     30    5ms  train::load  1 CPU      all workers are busy",
            "      1      -  gang         1 CPU      it waits for a node",
        ];
        assert_eq!(texts(&View::of(&sample()), usize::MAX, None), wanted);
    }

    #[test]
    fn a_narrow_terminal_has_fewer_columns_and_all_lines() {
        let view = View::of(&sample());
        let all = texts(&view, usize::MAX, None).len();
        for width in [200, 80, 60, 40, 20, 5, 1] {
            let lines = texts(&view, width, None);
            assert_eq!(lines.len(), all, "{width}: {lines:#?}");
            assert!(lines.iter().all(|line| line.chars().count() <= width), "{width}: {lines:#?}");
        }
        let lines = texts(&view, 60, None);
        let wanted = [
            "node               cpus         memory        store  running",
            "job  name     running  waiting  finished/s  workers  program",
            "waiting    for  name         resources  reason",
        ];
        for head in wanted {
            assert!(lines.iter().any(|line| line == head), "{head}: {lines:#?}");
        }
    }

    #[test]
    fn a_low_terminal_has_the_first_rows_of_each_table() {
        let mut view = View::of(&sample());
        view.silent.clear();
        view.jobs = vec![JobLine { job: 5, ..JobLine::default() }; 50];
        for height in [1, 2, 5, 8, 12, 24, 100] {
            let lines = texts(&view, 80, Some(height));
            assert!(lines.len() <= height, "{height}: {lines:#?}");
        }
        let lines = texts(&view, 80, Some(24));
        assert_eq!(lines.len(), 24);
        assert!(lines.contains(&"and 40 more".to_owned()), "{lines:#?}");
        assert!(lines.last().is_some_and(|line| line.contains("gang")), "{lines:#?}");
        assert_eq!(share([3, 50, 4], 17), [3, 10, 4]);
        assert_eq!(share([9, 9, 9], 5), [2, 2, 1]);
    }

    #[test]
    fn names_move_no_cursor_and_problems_stand_above() {
        let mut view = View::of(&sample());
        view.jobs[0].name = "a\u{1b}[2J\u{9b}b".to_owned();
        let lines = lines(&view, Some("no\nanswer"), 100, None);
        assert_eq!((lines[1].tone, lines[1].text.as_str()), (Tone::Warning, "no?answer"));
        assert!(lines.iter().any(|line| line.text.contains("a?[2J?b")), "{lines:#?}");
        assert!(lines.iter().all(|line| !line.text.contains(char::is_control)), "{lines:#?}");
    }

    #[test]
    fn texts_are_cut_at_the_side_that_tells_less() {
        assert_eq!([begin("reason", 6), begin("reason", 4), begin("reason", 0)], ["reason", "rea…", ""]);
        assert_eq!([end("a::bc", 5), end("a::bc", 4), end("a::bc", 1)], ["a::bc", "…:bc", "…"]);
    }

    #[test]
    fn sizes_ages_and_rates_are_short() {
        assert_eq!([0, 12 << 20, 3 << 29, 64 << 30].map(size), ["0MiB", "12MiB", "1.5GiB", "64GiB"]);
        let ages = [5, 59_999, 60_000, 3_600_000, 90_000_000].map(age);
        assert_eq!(ages, ["5ms", "59s", "1m00s", "1h00m", "1d01h"]);
        assert_eq!([0.0, 9.94, 1234.5].map(rate), ["0.0", "9.9", "1234"]);
    }
}
