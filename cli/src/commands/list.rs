//! `tharsis nodes`, `jobs`, `tasks`, `actors`, `graphs`, `groups`, `objects`, `workers`: lists that can be
//! filtered, sorted and cut.
//!
//! Since there may be millions of tasks, the node applies the filters of their list, and sends those that
//! have been at their stage longest. All other work is done here, on a table.

use crate::args::{ListArgs, NodesArgs, RowsArgs};
use crate::refusal::Refusal;
use crate::settings::Settings;
use crate::{output, reach};
use anyhow::Result;
use serde_json::{Map, Value, json};
use std::cmp::Ordering;
use std::path::Path;
use std::time::Duration;
use tharsis::observe;
use tharsis_gcs::{ClientOptions, ControlClient};
use tharsis_protos::control::NodeInfo;
use tharsis_protos::handshake::Question;
use tharsis_protos::inventory::{Inventory, ObjectRow};
use tharsis_protos::listing::{
    ActorColumn, Cell, Filter, GraphColumn, GroupColumn, JobColumn, Listing, Table, TaskColumn, WorkerColumn,
};
use tharsis_protos::report::{NodeRow, Report};

/// States of nodes, and of those that a control store lists.
const SERVING: &str = "serving";
const DRAINING: &str = "draining";
const MEMBER: &str = "member";
/// States of nodes as a control store knows them.
const STORE_STATES: &[&str] = &[MEMBER];
/// Texts that are more like each other than this are probably the same, misspelt.
const LIKENESS_MIN: f64 = 0.7;
const NODE_COLUMNS: &[&str] = &["node", "state", "address", "total", "free", "labels"];
/// The longest time that a control store may take for its answer.
const CALL_WAIT: Duration = Duration::from_secs(5);
const OBJECT_COLUMNS: &[&str] =
    &["object", "bytes", "place", "job", "mapped", "references", "name", "call_site", "owner"];

/// Kind of list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Actors that were created at the node.
    Actors,
    /// Graphs of tasks.
    Graphs,
    /// Placement groups that the node has made.
    Groups,
    /// Jobs with a driver, a worker or a task at the node.
    Jobs,
    /// Members of the cluster.
    Nodes,
    /// Objects in the store.
    Objects,
    /// Unfinished tasks.
    Tasks,
    /// Worker processes.
    Workers,
}

impl Kind {
    fn columns(self) -> &'static [&'static str] {
        match self {
            Self::Actors => ActorColumn::NAMES,
            Self::Graphs => GraphColumn::NAMES,
            Self::Groups => GroupColumn::NAMES,
            Self::Jobs => JobColumn::NAMES,
            Self::Nodes => NODE_COLUMNS,
            Self::Objects => OBJECT_COLUMNS,
            Self::Tasks => TaskColumn::NAMES,
            Self::Workers => WorkerColumn::NAMES,
        }
    }

    /// The values that the column `state` may have; none if there is no such column.
    fn states(self) -> &'static [&'static str] {
        match self {
            Self::Actors => &["pending", "alive", "restarting"],
            Self::Graphs => &["arriving", "running", "cancelled"],
            Self::Groups => &["asking", "waiting", "infeasible", "placed"],
            Self::Nodes => &[SERVING, DRAINING],
            Self::Tasks => &["waiting", "queued", "sent", "fetching", "in-line", "running", "blocked"],
            Self::Workers => {
                &["idle", "waiting", "queued", "sent", "fetching", "in-line", "running", "blocked"]
            }
            Self::Jobs | Self::Objects => &[],
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Actors => "actors",
            Self::Graphs => "graphs",
            Self::Groups => "groups",
            Self::Jobs => "jobs",
            Self::Nodes => "nodes",
            Self::Objects => "objects",
            Self::Tasks => "tasks",
            Self::Workers => "workers",
        }
    }
}

/// Asks the node and prints the list.
///
/// # Errors
/// If a column or a state does not exist, or the node does not answer.
pub fn run(kind: Kind, asked: &ListArgs) -> Result<()> {
    check_columns(kind, &asked.rows)?;
    check_states(kind, kind.states(), &asked.rows)?;
    let socket = Settings::read(&asked.settings)?.socket();
    print(fetch(kind, &socket, &asked.rows.filters)?, &asked.rows)
}

/// Asks the node of this machine for the members, or a control store.
///
/// # Errors
/// As [`run`], and why no control store answers.
pub fn run_nodes(asked: &NodesArgs) -> Result<()> {
    check_columns(Kind::Nodes, &asked.rows)?;
    // A control store knows who is a member, and no more.
    let states = if asked.address.is_some() { STORE_STATES } else { Kind::Nodes.states() };
    check_states(Kind::Nodes, states, &asked.rows)?;
    let settings = Settings::read(&asked.settings)?;
    let table = match &asked.address {
        Some(address) => members(address, &settings)?,
        None => fetch(Kind::Nodes, &settings.socket(), &asked.rows.filters)?,
    };
    print(table, &asked.rows)
}

fn print(table: Table, asked: &RowsArgs) -> Result<()> {
    let table = cut(table, asked);
    if asked.json {
        return output::line(&as_json(&table).to_string());
    }
    output::plain_lines(&as_text(&table))
}

fn check_columns(kind: Kind, asked: &RowsArgs) -> Result<(), Refusal> {
    let sort = asked.sort.as_ref().map(|column| column.trim_start_matches('-'));
    let mut named = asked.filters.iter().map(|filter| filter.column.as_str()).chain(sort);
    match named.find(|column| !kind.columns().contains(column)) {
        Some(column) => Err(Refusal::NoColumn {
            list: kind.name(),
            column: column.to_owned(),
            columns: kind.columns().join(", "),
        }),
        None => Ok(()),
    }
}

/// Refuses a state that no row ever has: the list would be empty, or have all rows, without a word.
fn check_states(kind: Kind, states: &[&str], asked: &RowsArgs) -> Result<(), Refusal> {
    let mut named =
        asked.filters.iter().filter(|filter| filter.column == "state").map(|filter| &filter.value);
    match named.find(|state| !states.contains(&state.as_str())) {
        Some(state) => {
            let near = states.iter().map(|known| (strsim::jaro_winkler(state, known), known));
            let near = near.filter(|(likeness, _)| LIKENESS_MIN < *likeness);
            let near = near.max_by(|one, other| one.0.total_cmp(&other.0));
            let meant = near.map_or_else(String::new, |(_, known)| format!(", did you mean {known:?}?"));
            Err(Refusal::NoState {
                list: kind.name(),
                state: state.clone(),
                states: states.join(", "),
                meant,
            })
        }
        None => Ok(()),
    }
}

/// The table, from the node or made from other answers.
fn fetch(kind: Kind, socket: &Path, filters: &[Filter]) -> Result<Table> {
    let list = |listing| observe::list(socket, listing).map_err(super::unanswered);
    Ok(match kind {
        Kind::Actors => list(Listing::Actors)?,
        Kind::Graphs => list(Listing::Graphs)?,
        Kind::Groups => list(Listing::Groups)?,
        Kind::Jobs => list(Listing::Jobs)?,
        Kind::Nodes => nodes(&super::ask(socket, Question::Status)?),
        Kind::Objects => objects(&observe::memory(socket).map_err(super::unanswered)?),
        Kind::Tasks => list(Listing::Tasks(filters.to_vec()))?,
        Kind::Workers => list(Listing::Workers)?,
    })
}

fn nodes(report: &Report) -> Table {
    let mut table = Table::new(report.node, NODE_COLUMNS);
    table.rows = report.nodes.iter().map(node_row).collect();
    table
}

/// The members as a control store knows them, which does not know what is free.
fn members(address: &str, settings: &Settings) -> Result<Table> {
    let own = reach::operator(address, settings)?;
    let options = ClientOptions { call_deadline: CALL_WAIT, patience: Duration::ZERO };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let listed = runtime.block_on(async {
        let (store, _) = ControlClient::connect(address, &own, options).await?;
        store.list_nodes().await
    });
    let row = |node: NodeInfo| {
        let labels: Vec<_> = node.labels.into_iter().collect();
        vec![
            Cell::text(&node.id.to_string()),
            Cell::text(MEMBER),
            Cell::text(&node.listen),
            Cell::text(&node.resources.to_string()),
            Cell::Nothing,
            Cell::text(&shown(&labels)),
        ]
    };
    let mut table = Table::new(0, NODE_COLUMNS);
    table.rows =
        listed.map_err(|error| reach::refused(address, &error))?.nodes.into_iter().map(row).collect();
    Ok(table)
}

fn shown(labels: &[(String, String)]) -> String {
    let labels: Vec<_> = labels.iter().map(|(key, value)| format!("{key}={value}")).collect();
    labels.join(",")
}

fn node_row(node: &NodeRow) -> Vec<Cell> {
    vec![
        Cell::text(&format!("{:016x}", node.node)),
        Cell::text(if node.is_draining { DRAINING } else { SERVING }),
        if node.address.is_empty() { Cell::Nothing } else { Cell::text(&node.address) },
        Cell::text(&node.total),
        Cell::text(&node.free),
        Cell::text(&shown(&node.labels)),
    ]
}

fn objects(inventory: &Inventory) -> Table {
    let mut table = Table::new(inventory.node, OBJECT_COLUMNS);
    table.rows = inventory.objects.iter().map(|row| object_row(inventory, row)).collect();
    table.other_count = inventory.other_count;
    table
}

fn object_row(inventory: &Inventory, row: &ObjectRow) -> Vec<Cell> {
    let site = row.site.and_then(|site| inventory.sites.get(usize::try_from(site).ok()?));
    let references = row.clients.iter().map(|(_, count)| u64::from(*count)).sum::<u64>();
    vec![
        Cell::text(&row.object),
        Cell::Number(row.bytes),
        Cell::text(super::memory::place(row.place)),
        Cell::Number(row.job.into()),
        Cell::Number(row.pins.iter().map(|(_, count)| u64::from(*count)).sum()),
        Cell::Number(references),
        site.map_or(Cell::Nothing, |site| Cell::text(&site.name)),
        site.map_or(Cell::Nothing, |site| Cell::text(&site.call_site)),
        row.owner.map_or(Cell::Nothing, |node| Cell::text(&format!("{node:016x}"))),
    ]
}

/// The requested rows, in the requested order.
fn cut(mut table: Table, asked: &RowsArgs) -> Table {
    for filter in &asked.filters {
        let Some(column) = table.column(&filter.column) else { continue };
        table.rows.retain(|row| filter.accepts(&row[column].to_string()));
    }
    if let Some(sort) = &asked.sort {
        let (name, is_descending) =
            sort.strip_prefix('-').map_or((sort.as_str(), false), |name| (name, true));
        if let Some(column) = table.column(name) {
            table.rows.sort_by(|a, b| order(&a[column], &b[column], is_descending));
        }
    }
    table.other_count += table.rows.len().saturating_sub(asked.limit);
    table.rows.truncate(asked.limit);
    table
}

/// Order of two cells; rows without a value come last in both directions.
fn order(a: &Cell, b: &Cell, is_descending: bool) -> Ordering {
    match (a == &Cell::Nothing, b == &Cell::Nothing) {
        (false, false) if is_descending => b.cmp(a),
        (false, false) => a.cmp(b),
        (a_is_nothing, b_is_nothing) => a_is_nothing.cmp(&b_is_nothing),
    }
}

/// One JSON object, with rows by name of column.
pub(super) fn as_json(table: &Table) -> Value {
    let cell = |cell: &Cell| match cell {
        Cell::Nothing => Value::Null,
        Cell::Number(number) => json!(number),
        Cell::Text(text) => json!(text),
    };
    let row = |row: &Vec<Cell>| -> Map<String, Value> {
        table.columns.iter().cloned().zip(row.iter().map(cell)).collect()
    };
    let rows: Vec<_> = table.rows.iter().map(row).collect();
    json!({"node": format!("{:016x}", table.node), "rows": rows, "other_count": table.other_count})
}

/// Text with columns as wide as their widest cell, numbers to the right.
pub(super) fn as_text(table: &Table) -> Vec<String> {
    let texts = |row: &Vec<Cell>| row.iter().map(text).collect::<Vec<_>>();
    let rows: Vec<Vec<String>> = table.rows.iter().map(texts).collect();
    let width = |column: usize| {
        let cells = rows.iter().map(|row| row[column].chars().count());
        cells.chain([table.columns[column].len()]).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..table.columns.len()).map(width).collect();
    let mut lines = Vec::with_capacity(table.rows.len() + 2);
    let heads = table.columns.iter().zip(&widths).map(|(name, width)| format!("{name:<width$}"));
    lines.push(joined(heads));
    for (row, texts) in table.rows.iter().zip(&rows) {
        lines.push(joined(row.iter().zip(texts).zip(&widths).map(|((cell, text), width)| match cell {
            Cell::Number(_) => format!("{text:>width$}"),
            _ => format!("{text:<width$}"),
        })));
    }
    if 0 < table.other_count {
        lines.push(format!("and {} more", table.other_count));
    }
    lines
}

/// A cell for people: programs choose the names of jobs and tasks.
fn text(cell: &Cell) -> String {
    output::plain(&cell.to_string()).into_owned()
}

fn joined(cells: impl Iterator<Item = String>) -> String {
    cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::Args;
    use clap::Parser;

    fn asked(words: &[&str]) -> RowsArgs {
        let args = Args::try_parse_from(["tharsis", "tasks"].iter().chain(words)).unwrap();
        let crate::args::Command::Tasks(asked) = args.command else { panic!("another command") };
        asked.rows
    }

    fn table() -> Table {
        let mut table = Table::new(1, &["name", "age_ms"]);
        let row = |name: &str, age: Option<u64>| vec![Cell::text(name), Cell::number(age)];
        table.rows = vec![row("load", Some(7)), row("train", Some(120)), row("load", None), row("", Some(3))];
        table
    }

    fn names(table: &Table) -> Vec<String> {
        table.rows.iter().map(|row| format!("{}{}", row[0], row[1])).collect()
    }

    #[test]
    fn rows_are_filtered_sorted_and_cut() {
        assert_eq!(names(&cut(table(), &asked(&["--filter", "name=load"]))), ["load7", "load"]);
        assert_eq!(names(&cut(table(), &asked(&["--filter", "name!=load"]))), ["train120", "3"]);
        let up = cut(table(), &asked(&["--sort", "age_ms"]));
        assert_eq!(names(&up), ["3", "load7", "train120", "load"]);
        let down = cut(table(), &asked(&["--sort", "-age_ms", "--limit", "1"]));
        assert_eq!((names(&down), down.other_count), (vec!["train120".to_owned()], 3));
    }

    #[test]
    fn a_column_that_does_not_exist_is_refused_with_those_that_do() {
        for words in [["--filter", "colour=red"], ["--sort", "-colour"]] {
            let text = check_columns(Kind::Tasks, &asked(&words)).unwrap_err().to_string();
            assert!(text.contains("\"colour\"") && text.contains("age_ms"), "{text}");
        }
        assert!(check_columns(Kind::Tasks, &asked(&["--sort", "-age_ms"])).is_ok());
        assert!(Args::try_parse_from(["tharsis", "tasks", "--filter", "state"]).is_err());
    }

    /// The node names them; this crate knows only the texts.
    #[test]
    fn the_states_of_lists_are_the_stages_that_the_sources_of_the_node_name() {
        let core = Path::new(&std::env::var("CARGO_MANIFEST_DIR").unwrap()).join("../core/src");
        let stages = |file: &str| -> Vec<String> {
            let text = std::fs::read_to_string(core.join(file)).unwrap();
            let lines = text.lines().filter(|line| line.trim_start().starts_with("Self::"));
            let named = lines.filter_map(|line| line.split_once("=> \"")?.1.split_once('"'));
            named.map(|(name, _)| name.to_owned()).collect()
        };
        assert_eq!(Kind::Tasks.states(), stages("node/lists.rs"));
        assert_eq!(Kind::Workers.states()[1..], stages("node/lists.rs"));
        assert_eq!(Kind::Actors.states(), stages("owner/lists.rs"));
        assert_eq!(Kind::Groups.states(), stages("owner/groups/shown.rs"));
    }

    #[test]
    fn a_state_that_no_row_has_is_refused_with_the_nearest() {
        let checked = |kind: Kind, filter| check_states(kind, kind.states(), &asked(&["--filter", filter]));
        for filter in ["state=queud", "state!=queud"] {
            let text = checked(Kind::Tasks, filter).unwrap_err().to_string();
            assert!(text.ends_with("did you mean \"queued\"?") && text.contains("in-line"), "{text}");
        }
        let text = checked(Kind::Nodes, "state=").unwrap_err().to_string();
        assert!(text.ends_with("serving, draining"), "{text}");
        assert!(checked(Kind::Nodes, "state=draining").is_ok());
        assert!(checked(Kind::Tasks, "name=queud").is_ok());
        let of_store = |filter| check_states(Kind::Nodes, STORE_STATES, &asked(&["--filter", filter]));
        assert!(of_store("state=member").is_ok());
        let text = of_store("state=serving").unwrap_err().to_string();
        assert!(text.ends_with("they have member"), "{text}");
    }

    #[test]
    fn text_has_aligned_columns_and_json_has_names() {
        let mut table = table();
        table.rows.truncate(2);
        table.other_count = 5;
        let lines = ["name   age_ms", "load        7", "train     120", "and 5 more"];
        assert_eq!(as_text(&table), lines);
        let json = as_json(&table);
        assert_eq!(json["rows"][1], json!({"name": "train", "age_ms": 120}));
        assert_eq!(json["other_count"], 5);
        table.rows = vec![vec![Cell::text("a\u{1b}[2J"), Cell::number(Some(1))]];
        assert_eq!(as_text(&table)[1], "a\\u{1b}[2J       1");
        assert_eq!(as_json(&table)["rows"][0]["name"], "a\u{1b}[2J");
    }
}
