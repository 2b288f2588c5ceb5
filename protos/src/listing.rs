//! Lists that a node gives to people: part of the handshake of the local socket.
//!
//! A list is a table of named columns, so that one reader can filter, sort and print all of them. Times and
//! sizes are numbers, with their unit in the name of the column.

use serde::{Deserialize, Serialize};

/// Rows of a table at most.
pub const ROWS_MAX: usize = 10_000;
/// Bytes of a text in a table at most.
pub const TEXT_BYTES_MAX: usize = 256;
/// Filters of a question at most.
pub const FILTERS_MAX: usize = 32;

/// Defines the columns of a list as an enum, so that the code that fills a row has to name each of them.
macro_rules! columns {
    ($(#[$doc:meta])* $Column:ident: $($(#[$meaning:meta])* $variant:ident $name:literal,)*) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $Column { $($(#[$meaning])* $variant),* }

        impl $Column {
            /// All columns, in the order of the list.
            pub const ALL: &'static [Self] = &[$(Self::$variant),*];
            /// Names of [`Self::ALL`].
            pub const NAMES: &'static [&'static str] = &[$($name),*];

            /// The column of this name.
            #[must_use]
            pub fn from_name(name: &str) -> Option<Self> {
                match name {
                    $($name => Some(Self::$variant),)*
                    _ => None,
                }
            }
        }
    };
}

columns! {
    /// Columns of a list of tasks: unfinished ones that the node owns or runs.
    TaskColumn:
    /// Id.
    Task "task",
    /// Name from the options, or the path of the function.
    Name "name",
    /// Stage, such as `queued`.
    State "state",
    /// Job of the task.
    Job "job",
    /// Attempt, from 0.
    Attempt "attempt",
    /// Time since it reached its state.
    AgeMs "age_ms",
    /// Node on which it was submitted.
    Owner "owner",
    /// Node that runs it.
    Node "node",
    /// Worker that runs it.
    Worker "worker",
    /// Place of the call, as file and line.
    CallSite "call_site",
}

columns! {
    /// Columns of a list of actors: those that were created at the node and have not ended.
    ActorColumn:
    /// Id of the call that created it.
    Actor "actor",
    /// Name by which it is found, or which it has for people.
    Name "name",
    /// Stage, such as `alive`.
    State "state",
    /// Job that created it.
    Job "job",
    /// Node on which it lives.
    Node "node",
    /// Number of times that it was started again.
    Restarts "restarts",
    /// Whether it outlives its driver and its handles: `yes` or `no`.
    Detached "detached",
    /// Time since it reached its stage; for one that lives, since it was sent to its worker.
    AgeMs "age_ms",
    /// Place of the call, as file and line.
    CallSite "call_site",
}

columns! {
    /// Columns of a list of graphs: those that were submitted to the node and are not over.
    GraphColumn:
    /// Id of the call that submitted it.
    Graph "graph",
    /// `arriving`, `running`, or `cancelled`.
    State "state",
    /// Job that submitted it.
    Job "job",
    /// Number of its tasks.
    Steps "steps",
    /// Number of those that wait for results of others.
    Waiting "waiting",
    /// Number of those that are queued, sent or running: `tharsis tasks` lists them.
    Started "started",
    /// Number of those that have returned.
    Ended "ended",
    /// Number of those that have failed.
    Failed "failed",
}

columns! {
    /// Columns of a list of placement groups: those that the node has made.
    GroupColumn:
    /// Id of the call that made it.
    Group "group",
    /// Name by which it is found, or which it has for people.
    Name "name",
    /// Stage, such as `placed`.
    State "state",
    /// Job that made it.
    Job "job",
    /// Whether it outlives its driver: `yes` or `no`.
    Detached "detached",
    /// Time since it was asked for.
    AgeMs "age_ms",
    /// The way in which its bundles are spread.
    Strategy "strategy",
    /// Number of its bundles.
    Bundles "bundles",
    /// Number of those that are placed.
    Placed "placed",
    /// All that the bundles reserve together.
    Resources "resources",
    /// Nodes of the bundles, in order; `-` for one that is not placed.
    Nodes "nodes",
    /// Reason for which it is not placed.
    Reason "reason",
}

columns! {
    /// Columns of a list of workers.
    WorkerColumn:
    /// Number of the worker at its node.
    Worker "worker",
    /// Its process.
    Pid "pid",
    /// Job that it works for.
    Job "job",
    /// State of its task, or `idle`.
    State "state",
    /// Its task.
    Task "task",
    /// Name of its task.
    Name "name",
    /// Time since its task reached its state.
    AgeMs "age_ms",
    /// Number of runs behind its task.
    InLine "in_line",
}

columns! {
    /// Columns of a list of jobs: those with a driver, a worker or an unfinished task here.
    JobColumn:
    /// Number of the job.
    Job "job",
    /// Name that its driver gave it.
    Name "name",
    /// Namespace of its names.
    Namespace "namespace",
    /// Process of its driver, if that is at this node.
    DriverPid "driver_pid",
    /// Executable of its driver and workers.
    Program "program",
    /// Number of its workers.
    Workers "workers",
    /// Number of its unfinished tasks, those of graphs that wait among them.
    Tasks "tasks",
    /// Number of its tasks that run, or wait inside for others.
    Running "running",
}

/// Kind of list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Listing {
    /// Actors.
    Actors,
    /// Graphs of tasks.
    Graphs,
    /// Placement groups.
    Groups,
    /// Jobs.
    Jobs,
    /// Tasks that pass all filters: there may be millions, so the node applies them.
    Tasks(Vec<Filter>),
    /// Workers.
    Workers,
}

/// Rows whose column has a value, or has it not.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Filter {
    /// The column.
    pub column: String,
    /// Whether it must have the value; otherwise it must not.
    pub is_equal: bool,
    /// The value.
    pub value: String,
}

/// A list.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Table {
    /// The node that answers.
    pub node: u64,
    /// Names of the columns.
    pub columns: Vec<String>,
    /// Rows, each with one cell for each column.
    pub rows: Vec<Vec<Cell>>,
    /// The number of rows that passed the filters and are left out for want of room.
    pub other_count: usize,
}

/// A cell of a table.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Cell {
    /// It does not apply to this row.
    #[default]
    Nothing,
    /// A number.
    Number(u64),
    /// A text.
    Text(String),
}

impl Listing {
    /// The columns of its table.
    #[must_use]
    pub fn columns(&self) -> &'static [&'static str] {
        match self {
            Self::Actors => ActorColumn::NAMES,
            Self::Graphs => GraphColumn::NAMES,
            Self::Groups => GroupColumn::NAMES,
            Self::Jobs => JobColumn::NAMES,
            Self::Tasks(_) => TaskColumn::NAMES,
            Self::Workers => WorkerColumn::NAMES,
        }
    }
}

impl Filter {
    /// Whether it accepts a cell with this text.
    #[must_use]
    pub fn accepts(&self, text: &str) -> bool {
        (self.value == text) == self.is_equal
    }
}

impl Table {
    /// A table of a list without rows.
    #[must_use]
    pub fn new(node: u64, columns: &[&str]) -> Self {
        let columns = columns.iter().map(|name| (*name).to_owned()).collect();
        Self { node, columns, ..Self::default() }
    }

    /// The place of a column.
    #[must_use]
    pub fn column(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|column| column == name)
    }

    /// Leaves the last rows out until the encoding is no longer than `bytes_max`; returns the encoding that
    /// `encode` makes.
    pub fn fit(&mut self, bytes_max: usize, encode: impl Fn(&Self) -> Vec<u8>) -> Vec<u8> {
        loop {
            let encoded = encode(self);
            if encoded.len() <= bytes_max || self.rows.is_empty() {
                return encoded;
            }
            self.other_count += self.rows.split_off(self.rows.len() / 2).len();
        }
    }
}

impl Cell {
    /// A text, cut to [`TEXT_BYTES_MAX`]; an empty one is [`Cell::Nothing`].
    #[must_use]
    pub fn text(text: &str) -> Self {
        match &text[..text.floor_char_boundary(TEXT_BYTES_MAX)] {
            "" => Self::Nothing,
            text => Self::Text(text.to_owned()),
        }
    }

    /// A number, or nothing.
    #[must_use]
    pub fn number(number: Option<u64>) -> Self {
        number.map_or(Self::Nothing, Self::Number)
    }
}

/// As a filter compares it and a list prints it; nothing is an empty text.
impl std::fmt::Display for Cell {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Nothing => f.pad(""),
            Self::Number(number) => number.fmt(f),
            Self::Text(text) => f.pad(text),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_accepts_the_value_or_all_others() {
        let filter = |is_equal| Filter { column: "state".into(), is_equal, value: "running".into() };
        assert!(filter(true).accepts("running") && !filter(true).accepts("queued"));
        assert!(!filter(false).accepts("running") && filter(false).accepts(""));
    }

    /// Readers of `--json` count on them (`docs/compatibility.md`): others may come, none may go.
    #[test]
    fn names_of_columns_stay() {
        let lists = [
            (TaskColumn::NAMES, "task name state job attempt age_ms owner node worker call_site"),
            (ActorColumn::NAMES, "actor name state job node restarts detached age_ms call_site"),
            (GraphColumn::NAMES, "graph state job steps waiting started ended failed"),
            (
                GroupColumn::NAMES,
                "group name state job detached age_ms strategy bundles placed resources nodes reason",
            ),
            (WorkerColumn::NAMES, "worker pid job state task name age_ms in_line"),
            (JobColumn::NAMES, "job name namespace driver_pid program workers tasks running"),
        ];
        for (names, promised) in lists {
            let gone: Vec<&str> = promised.split(' ').filter(|name| !names.contains(name)).collect();
            assert!(gone.is_empty(), "{gone:?} of {names:?}");
        }
    }

    #[test]
    fn a_table_that_is_too_long_loses_its_last_rows_and_counts_them() {
        let mut table = Table::new(1, &["n"]);
        table.rows = (0..100).map(|n| vec![Cell::Number(n)]).collect();
        let encode = |table: &Table| vec![0; table.rows.len()];
        assert_eq!(table.fit(30, encode).len(), 25);
        assert_eq!((table.rows.len(), table.other_count), (25, 75));
        assert_eq!(table.rows[24], [Cell::Number(24)]);
    }

    #[test]
    fn texts_are_cut_between_characters_and_cells_align() {
        let long = "ä".repeat(TEXT_BYTES_MAX);
        let Cell::Text(cut) = Cell::text(&long) else { panic!("no text") };
        assert_eq!(cut.len(), TEXT_BYTES_MAX);
        assert_eq!(Cell::text(""), Cell::Nothing);
        assert_eq!(
            format!("{:>4}|{:<4}|{:<2}|", Cell::Number(7), Cell::text("ab"), Cell::Nothing),
            "   7|ab  |  |"
        );
    }
}
