//! Settings of sessions that statements change.

use crate::error::{Error, Result};
use arrow::array::timezone::Tz;
use datafusion::logical_expr::Statement as Change;
use datafusion::logical_expr::sqlparser::ast::{Expr, ObjectName, Set, Statement as SqlStatement};
use datafusion::sql::parser::{ResetStatement, Statement};

/// Beginning of the names of settings that executors have in place of sessions.
const RUNTIME: &str = "datafusion.runtime.";

const TIME_ZONE: &str = "datafusion.execution.time_zone";

/// Writes `SET TIME ZONE '..'` in the form that the library has, and the words for the usual zone as `RESET`.
pub(super) fn write_zone(statement: &mut Statement) -> Result<()> {
    let Statement::Statement(written) = &*statement else { return Ok(()) };
    let value = match &**written {
        SqlStatement::Set(Set::SetTimeZone { local: false, value }) => value.clone(),
        SqlStatement::Set(Set::SetTimeZone { local: true, .. }) => {
            return Err(Error::NotImplemented("SET LOCAL, for a transaction, is not supported".to_owned()));
        }
        SqlStatement::Set(Set::SingleAssignment { scope: None, hivevar: false, variable, values })
            if variable.to_string().eq_ignore_ascii_case("timezone") =>
        {
            let [value] = values.as_slice() else { return Ok(()) };
            value.clone()
        }
        _ => return Ok(()),
    };
    let variable = ObjectName::from(vec!["timezone".into()]);
    let is_usual = match &value {
        Expr::Identifier(word) => {
            ["default", "local"].iter().any(|usual| word.value.eq_ignore_ascii_case(usual))
        }
        _ => false,
    };
    *statement = if is_usual {
        Statement::Reset(ResetStatement::Variable(variable))
    } else {
        let (scope, hivevar, values) = (None, false, vec![value]);
        let set = Set::SingleAssignment { scope, hivevar, variable, values };
        Statement::Statement(Box::new(SqlStatement::Set(set)))
    };
    Ok(())
}

/// Refuses changes of settings that no session has, and values that later statements would fail with.
pub(super) fn check(change: &Change) -> Result<()> {
    let variable = match change {
        Change::SetVariable(set) => &set.variable,
        Change::ResetVariable(reset) => &reset.variable,
        _ => return Ok(()),
    };
    if variable.starts_with(RUNTIME) {
        return Err(Error::NotImplemented(format!(
            "{variable} is not a setting of a session: memory and disk are those of its executor"
        )));
    }
    match change {
        Change::SetVariable(set) if set.variable == TIME_ZONE && set.value.parse::<Tz>().is_err() => {
            Err(Error::Value(format!(
                "no time zone {:?}; there are those of IANA, such as \"Europe/Berlin\", and \"+02:00\"",
                set.value
            )))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use crate::sql::SqlSession;

    #[test]
    fn a_zone_is_set_in_the_words_of_sql() {
        let mut session = SqlSession::default();
        let hour = "select extract(hour from timestamptz '2024-07-01 10:00:00Z')";
        for (statement, expected) in [
            ("set time zone 'Europe/Berlin'", "12"),
            ("SET TIME ZONE '+03:00'", "13"),
            ("set time zone = 'America/New_York'", "6"),
            ("set time zone to 'UTC'", "10"),
            ("set timezone = 'Asia/Tokyo'", "19"),
            ("set time zone local", "10"),
            ("set timezone to 'Asia/Tokyo'", "19"),
            ("SET TIME ZONE DEFAULT", "10"),
            ("set time zone \"Asia/Tokyo\"", "19"),
            ("set timezone = default", "10"),
        ] {
            session.run(statement).unwrap_or_else(|error| panic!("{statement}: {error}"));
            assert_eq!(session.run(hour).expect("a row"), [[expected]], "{statement}");
        }
    }

    #[test]
    fn a_zone_that_there_is_not_is_refused_where_it_is_set() {
        let mut session = SqlSession::default();
        for statement in [
            "set timezone = 'Mars/Olympus'",
            "set time zone 'Mars/Olympus'",
            "set datafusion.execution.time_zone = 'Mars/Olympus'",
        ] {
            let error = session.run(statement).expect_err(statement);
            assert_eq!(error.class(), "ValueError", "{error}");
            assert!(error.to_string().contains("no time zone \"Mars/Olympus\""), "{error}");
            assert!(error.sql_place().is_some(), "{error}");
        }
        let error = session.run("set local time zone 'UTC'").expect_err("no transactions");
        assert_eq!(error.class(), "NotImplemented", "{error}");
        session.run("select now()").expect("the zone is as before");
    }
}
