//! The dialect that runners of SQL logic tests speak with external engines.

use super::SqlSession;
use serde::Deserialize;
use serde_json::{Deserializer, Value as Json, json};
use std::io::{self, BufRead, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Answers one line of the dialect that runners of SQL logic tests speak with external engines:
/// `{"sql": ".."}` gives `{"result": [["1", "2"]]}` or `{"err": "..", "class": "ValueError"}`.
///
/// ```
/// use serde_json::json;
/// use tharsis_dataframe::{SqlSession, sql_line};
/// let reply = sql_line(&mut SqlSession::default(), &json!({"sql": "select 1, 'a'"}));
/// assert_eq!(reply, json!({"result": [["1", "a"]]}));
/// let reply = sql_line(&mut SqlSession::default(), &json!({"sql": "select 1 / 0"}));
/// assert_eq!(reply, json!({"err": "division by zero", "class": "ZeroDivisionError"}));
/// ```
pub fn sql_line(session: &mut SqlSession, line: &Json) -> Json {
    let Some(statement) = line.get("sql").and_then(Json::as_str) else {
        return json!({"err": "expected {\"sql\": \"..\"}", "class": "ValueError"});
    };
    // A defect in one statement must not take its reader down with it.
    let outcome = catch_unwind(AssertUnwindSafe(|| session.run(statement)));
    match outcome {
        Ok(Ok(rows)) => json!({"result": rows}),
        Ok(Err(error)) => json!({"err": error.root().to_string(), "class": error.class()}),
        Err(_) => json!({"err": "the evaluator panicked; this is a defect", "class": "Crash"}),
    }
}

/// Bytes of a statement with what is around it; more are refused.
const STATEMENT_BYTES_MAX: u64 = 256 << 20;

/// Answers statements until there are no more, as [`sql_line`] does, each as soon as its last brace is read:
/// runners do not end what they send with the line. After what is no JSON, the rest of its line is skipped.
///
/// ```
/// use tharsis_dataframe::{SqlSession, sql_stream};
/// let sent = r#"{"sql": "create table t as values (1)"}{"sql": "select * from t"}"#;
/// let mut replies = Vec::new();
/// sql_stream(&mut SqlSession::default(), sent.as_bytes(), &mut replies)?;
/// assert_eq!(replies, b"{\"result\":[]}\n{\"result\":[[\"1\"]]}\n");
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// # Errors
/// If statements cannot be read or replies cannot be written.
pub fn sql_stream(
    session: &mut SqlSession,
    mut statements: impl BufRead,
    mut replies: impl Write,
) -> io::Result<()> {
    while let Some(first) = statements.fill_buf()?.first().copied() {
        if first.is_ascii_whitespace() {
            statements.consume(1);
            continue;
        }
        let mut limited = io::Read::take(&mut statements, STATEMENT_BYTES_MAX);
        let reply = match Json::deserialize(&mut Deserializer::from_reader(&mut limited)) {
            Ok(line) => sql_line(session, &line),
            Err(error) => {
                statements.skip_until(b'\n')?;
                json!({"err": format!("no JSON: {error}"), "class": "ValueError"})
            }
        };
        writeln!(replies, "{reply}")?;
        replies.flush()?;
    }
    Ok(())
}
