//! `TIMESTAMP WITH TIME ZONE`: moments in the zone of the session, or in UTC.
//!
//! The library leaves the zone out in sessions that have none: a moment becomes a time of any place, and
//! another moment beside times that have a zone. `SET TIME ZONE` chooses another zone to show moments in.

use arrow::datatypes::{DataType, Field, FieldRef, TimeUnit};
use datafusion::common::Result as EngineResult;
use datafusion::execution::session_state::{SessionState, SessionStateBuilder};
use datafusion::logical_expr::planner::TypePlanner;
use datafusion::logical_expr::sqlparser::ast::{DataType as SqlType, TimezoneInfo};
use std::borrow::Cow;
use std::sync::Arc;

/// The planner of types in sessions without a zone.
pub(in crate::sql) fn in_utc() -> Arc<dyn TypePlanner> {
    Arc::new(Moments { zone: "+00:00".into() })
}

/// The state to plan a statement in, whose moments are in the zone of the session.
pub(in crate::sql) fn in_zone_of(state: &SessionState) -> Cow<'_, SessionState> {
    let Some(zone) = &state.config().options().execution.time_zone else { return Cow::Borrowed(state) };
    let moments = Moments { zone: zone.as_str().into() };
    let state = SessionStateBuilder::new_from_existing(state.clone());
    Cow::Owned(state.with_type_planner(Arc::new(moments)).build())
}

/// Plans moments in a zone.
#[derive(Debug)]
struct Moments {
    zone: Arc<str>,
}

impl TypePlanner for Moments {
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
        let moments = DataType::Timestamp(unit, Some(Arc::clone(&self.zone)));
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
