//! The tables of tests of subqueries, and queries of them.

use super::session::SqlSession;
use crate::error::Error;

/// A session with tables in several parts.
pub(super) fn session() -> SqlSession {
    let mut session = SqlSession::default().part_rows_min(1);
    for statement in [
        "create table t (a int, b int) as values (1, 10), (2, 20), (3, 30), (null, 40)",
        "create table u (a int) as values (2), (3), (5)",
        "create table w (a int) as values (2), (3), (3), (5)",
    ] {
        session.run(statement).expect("a table");
    }
    session
}

/// The rows of a query, each as a text.
#[track_caller]
pub(super) fn rows(query: &str) -> Vec<String> {
    let rows = session().run(query).unwrap_or_else(|error| panic!("{query}: {error}"));
    rows.into_iter().map(|row| row.join(" ")).collect()
}

/// The values of an expression for each row of `t`.
#[track_caller]
pub(super) fn shown(value: &str) -> Vec<String> {
    rows(&format!("select {value} from t order by b"))
}

/// The error of a query.
#[track_caller]
pub(super) fn failed(query: &str) -> Error {
    session().run(query).err().unwrap_or_else(|| panic!("{query} has rows"))
}

/// The reason for which a query is refused.
#[track_caller]
pub(super) fn refused(query: &str) -> String {
    let error = failed(query);
    assert_eq!(error.class(), "NotImplemented", "{query}: {error}");
    error.to_string()
}

/// The plan of a query, and its stages.
#[track_caller]
pub(super) fn plan(query: &str) -> String {
    let plan = session().run(&format!("explain {query}"));
    plan.unwrap_or_else(|error| panic!("{query}: {error}")).concat().join("\n")
}
