//! The list of actors, for programs.

use tharsis_protos::listing::{ActorColumn, Cell, Table};
use tharsis_remote::{Error, FailureKind, JobId, NodeId, Result};

/// An actor that has not ended, as the node that created it knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ActorInfo {
    /// Its id, that of the call that created it, as in lists.
    pub id: String,
    /// The name by which it is found, or which its options give it for people, or the path of its
    /// constructor.
    pub name: String,
    /// Its state.
    pub state: ActorState,
    /// The job that created it.
    pub job: JobId,
    /// The node of its worker, if it has one.
    pub node: Option<NodeId>,
    /// Number of times that it was started again.
    pub restarts: u32,
    /// Whether it outlives its handles and its driver.
    pub is_detached: bool,
}

/// State of an actor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ActorState {
    /// It waits to be constructed for the first time, or is being constructed.
    Pending,
    /// It is there.
    Alive,
    /// Its worker was lost, and it is constructed again.
    Restarting,
}

/// The rows of a list of actors.
///
/// # Errors
/// `Internal` for a list that is none of actors.
pub(crate) fn read(table: &Table) -> Result<Vec<ActorInfo>> {
    let columns: Vec<_> = ActorColumn::NAMES.iter().filter_map(|name| table.column(name)).collect();
    if columns.len() != ActorColumn::ALL.len() {
        return Err(unread());
    }
    table.rows.iter().map(|row| info(&columns, row).ok_or_else(unread)).collect()
}

fn info(columns: &[usize], row: &[Cell]) -> Option<ActorInfo> {
    let cell = |column: ActorColumn| row.get(columns[column as usize]);
    let text = |column| cell(column).map(Cell::to_string);
    let number = |column| match cell(column)? {
        Cell::Number(number) => u32::try_from(*number).ok(),
        Cell::Nothing | Cell::Text(_) => None,
    };
    let state = match text(ActorColumn::State)?.as_str() {
        "pending" => ActorState::Pending,
        "alive" => ActorState::Alive,
        "restarting" => ActorState::Restarting,
        _ => return None,
    };
    let node = match cell(ActorColumn::Node)? {
        Cell::Nothing => None,
        node => Some(NodeId(u64::from_str_radix(&node.to_string(), 16).ok()?)),
    };
    Some(ActorInfo {
        id: text(ActorColumn::Actor)?,
        name: text(ActorColumn::Name)?,
        state,
        job: JobId(number(ActorColumn::Job)?),
        node,
        restarts: number(ActorColumn::Restarts)?,
        is_detached: text(ActorColumn::Detached)? == "yes",
    })
}

fn unread() -> Error {
    Error::new(FailureKind::Internal, "the node answered with something else than a list of actors")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_read_by_the_names_of_its_columns() {
        let mut table = Table::new(1, ActorColumn::NAMES);
        let cells = |column: &ActorColumn| match column {
            ActorColumn::Actor => Cell::text("77"),
            ActorColumn::Name => Cell::text("hits"),
            ActorColumn::State => Cell::text("restarting"),
            ActorColumn::Job => Cell::Number(3),
            ActorColumn::Node => Cell::text(&NodeId(0xab).to_string()),
            ActorColumn::Restarts => Cell::Number(2),
            ActorColumn::Detached => Cell::text("yes"),
            ActorColumn::AgeMs => Cell::Number(9),
            ActorColumn::CallSite => Cell::Nothing,
        };
        table.rows = vec![ActorColumn::ALL.iter().map(cells).collect()];
        let expected = ActorInfo {
            id: "77".to_owned(),
            name: "hits".to_owned(),
            state: ActorState::Restarting,
            job: JobId(3),
            node: Some(NodeId(0xab)),
            restarts: 2,
            is_detached: true,
        };
        assert_eq!(read(&table).unwrap(), [expected]);
        table.columns.reverse();
        table.rows[0].reverse();
        assert_eq!(read(&table).unwrap()[0].restarts, 2, "in any order");
        assert!(read(&Table::new(1, &["task"])).is_err());
    }
}
