//! Reasons of the library in words of its users.

use crate::error::{Error, nearest, quoted};
use datafusion::execution::SessionState;

/// The error of a statement. The library names a table by its catalog and its schema, which users of frames
/// have never heard of, and does not say which tables there are.
pub(super) fn told(error: Error, state: &SessionState) -> Error {
    let Error::Value(text) = &error else { return error };
    let name = text.strip_prefix("table '").and_then(|rest| rest.split_once("' not found"));
    let Some((name, _)) = name else { return error };
    let usual = &state.config_options().catalog;
    let catalog = state.catalog_list().catalog(&usual.default_catalog);
    let schema = catalog.and_then(|catalog| catalog.schema(&usual.default_schema));
    let mut known = schema.map(|schema| schema.table_names()).unwrap_or_default();
    known.sort();
    let prefix = format!("{}.{}.", usual.default_catalog, usual.default_schema);
    let name = name.strip_prefix(&prefix).unwrap_or(name);
    let near = nearest(name, known.iter().map(String::as_str));
    let near = near.map(|near| format!("; did you mean {near:?}?")).unwrap_or_default();
    Error::Sql(format!("no table {name:?}; there are {}{near}", quoted(&known)))
}

#[cfg(test)]
mod tests {
    use crate::sql::SqlSession;
    use crate::{DataFrame, sql};

    #[test]
    fn tables_that_are_missing_are_told_with_those_that_there_are() {
        let t = DataFrame::from_columns([("a", vec![1].into())]);
        let error = sql("select a from salse", &[("sales", &t)]).columns().expect_err("no table");
        assert_eq!(
            error.root().to_string(),
            "no table \"salse\"; there are \"sales\"; did you mean \"sales\"?"
        );
        let error = sql("select a from x.u", &[]).columns().expect_err("no table");
        assert_eq!(error.root().to_string(), "no table \"datafusion.x.u\"; there are none");
        let mut session = SqlSession::default();
        session.run("create table t (a int)").expect("a table");
        for statement in
            ["select * from u", "insert into u values (1)", "select 1 where 1 in (select a from u)"]
        {
            let error = session.run(statement).expect_err("no table");
            assert_eq!(error.class(), "ValueError");
            assert_eq!(error.to_string(), "no table \"u\"; there are \"t\"", "{statement}");
        }
    }
}
