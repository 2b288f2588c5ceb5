//! `TIMESTAMP WITH TIME ZONE` in sessions that have no zone.
//!
//! The library leaves the zone out there: a moment becomes a time of any place, and another moment beside
//! times that have a zone. Here it is a moment in UTC. `SET TIME ZONE` chooses another zone to show it in.

use arrow::datatypes::{DataType, Field, FieldRef, TimeUnit};
use datafusion::common::Result as EngineResult;
use datafusion::execution::session_state::{SessionState, SessionStateBuilder};
use datafusion::logical_expr::planner::TypePlanner;
use datafusion::logical_expr::sqlparser::ast::{DataType as SqlType, TimezoneInfo};
use std::borrow::Cow;
use std::sync::Arc;

/// The state to plan a statement in, whose types have zones.
pub(super) fn with_zones<'a>(state: &'a SessionState, text: &str) -> Cow<'a, SessionState> {
    let lower = text.to_ascii_lowercase();
    let may_name_one = lower.contains("timestamptz") || lower.contains("zone");
    if !may_name_one || state.config().options().execution.time_zone.is_some() {
        return Cow::Borrowed(state);
    }
    let state = SessionStateBuilder::new_from_existing(state.clone());
    Cow::Owned(state.with_type_planner(Arc::new(InUtc)).build())
}

#[derive(Debug)]
struct InUtc;

impl TypePlanner for InUtc {
    fn plan_type_field(&self, dtype: &SqlType) -> EngineResult<Option<FieldRef>> {
        let SqlType::Timestamp(digits, TimezoneInfo::Tz | TimezoneInfo::WithTimeZone) = dtype else {
            return Ok(None);
        };
        let unit = match digits {
            Some(0) => TimeUnit::Second,
            Some(3) => TimeUnit::Millisecond,
            Some(6) => TimeUnit::Microsecond,
            None | Some(9) => TimeUnit::Nanosecond,
            // The library refuses it.
            Some(_) => return Ok(None),
        };
        let moments = DataType::Timestamp(unit, Some("+00:00".into()));
        Ok(Some(Arc::new(Field::new("", moments, true))))
    }
}

#[cfg(test)]
mod tests {
    use crate::sql::SqlSession;

    #[test]
    fn times_with_a_zone_are_moments() {
        let mut session = SqlSession::default();
        let made = "create table t (d timestamp with time zone) as values ('2024-07-01 12:00:00+02:00')";
        session.run(made).expect("a table");
        let berlin = "arrow_cast('2024-07-01T12:00:00', 'Timestamp(Microsecond, Some(\"Europe/Berlin\"))')";
        for (value, expected) in [
            (format!("timestamptz '2024-07-01 10:00:00Z' = {berlin}"), "true"),
            (format!("d = {berlin}"), "true"),
            ("d = timestamptz '2024-07-01 11:00:00+01:00'".to_owned(), "true"),
            ("extract(hour from d)".to_owned(), "10"),
            ("extract(hour from cast('2024-07-01 12:00:00+02:00' as timestamptz(6)))".to_owned(), "10"),
        ] {
            let rows = session.run(&format!("select {value} from t"));
            assert_eq!(rows.unwrap_or_else(|error| panic!("{value}: {error}")), [[expected]], "{value}");
        }
        session.run("set time zone = '+02:00'").expect("a zone");
        let hour = session.run("select extract(hour from timestamptz '2024-07-01 10:00:00Z')");
        assert_eq!(hour.expect("a row"), [["12"]]);
    }
}
