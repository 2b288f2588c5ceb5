//! Sessions of tests, the tables of those of subqueries, and queries of them.

use super::session::{SqlAnswer, SqlSession};
use crate::error::Error;

/// A session with tables in several parts.
pub(super) fn session() -> SqlSession {
    after(
        SqlSession::default().part_rows_min(1),
        &[
            "create table t (a int, b int) as values (1, 10), (2, 20), (3, 30), (null, 40)",
            "create table u (a int) as values (2), (3), (5)",
            "create table w (a int) as values (2), (3), (3), (5)",
        ],
    )
}

/// A session with columns in small and in capital letters.
#[track_caller]
pub(super) fn three_columns() -> SqlSession {
    session_of(&[
        "create table t (a int, b int, \"C\" int) as values (1, 10, 5), (2, 20, 6), (2, 30, 7)",
        "create table u (a int) as values (2), (9)",
    ])
}

/// A session in which these statements have run.
#[track_caller]
pub(super) fn session_of(statements: &[&str]) -> SqlSession {
    after(SqlSession::default(), statements)
}

#[track_caller]
fn after(mut session: SqlSession, statements: &[&str]) -> SqlSession {
    for statement in statements {
        cells(&mut session, statement);
    }
    session
}

/// The values of a query's rows in a session.
#[track_caller]
pub(super) fn cells(session: &mut SqlSession, query: &str) -> Vec<Vec<String>> {
    session.run(query).unwrap_or_else(|error| panic!("{query}: {error}"))
}

/// The names of the columns of a query in a session, and its first row.
#[track_caller]
pub(super) fn answer(session: &mut SqlSession, query: &str) -> (Vec<String>, Vec<String>) {
    match session.execute(query).unwrap_or_else(|error| panic!("{query}: {error}")) {
        SqlAnswer::Rows(table) => {
            let row = cells(session, query).into_iter().next().unwrap_or_default();
            (table.columns(), row)
        }
        other => panic!("{query}: {other:?}"),
    }
}

/// The rows of a query in a session, each as a text.
#[track_caller]
pub(super) fn rows_in(session: &mut SqlSession, query: &str) -> Vec<String> {
    cells(session, query).into_iter().map(|row| row.join(" ")).collect()
}

/// The rows of a query over the small tables, each as a text.
#[track_caller]
pub(super) fn rows(query: &str) -> Vec<String> {
    rows_in(&mut session(), query)
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
    cells(&mut session(), &format!("explain {query}")).concat().join("\n")
}
