//! Words of other databases, and what is written here in their place.
//!
//! Each row has a statement that does so. A test runs all of them.

use super::near::near_text;
use datafusion::execution::SessionState;

/// A word, and what stands for it.
pub(in crate::sql) struct Meant {
    /// Names of a function, or a clause in small letters.
    words: &'static [&'static str],
    /// The form to write; `..` stands for anything.
    write: &'static str,
    /// More about it.
    note: &'static str,
    /// A statement with the form, over the tables of the tests.
    #[cfg_attr(not(test), expect(dead_code, reason = "the tests run it, and readers see how it is written"))]
    example: &'static str,
}

impl Meant {
    const fn new(
        words: &'static [&'static str],
        write: &'static str,
        note: &'static str,
        example: &'static str,
    ) -> Meant {
        Meant { words, write, note, example }
    }

    fn text(&self) -> String {
        format!("{}{}", self.write, self.note)
    }
}

/// Functions of values and of groups. `t` has whole numbers `n`, texts `s`, times `d` and lists `l`.
#[rustfmt::skip]
static FUNCTIONS: [Meant; 57] = [
    Meant::new(&["average"], "avg(..)", "", "select avg(n) from t"),
    Meant::new(&["charindex"], "strpos(.., ..)", "", "select strpos(s, 'x') from t"),
    Meant::new(&["cnt"], "count(..)", "", "select count(*) from t"),
    Meant::new(&["count_if", "countif"], "count(*) filter (where ..)", "", "select count(*) filter (where n > 1) from t"),
    Meant::new(&["date_add", "dateadd"], ".. + interval '1 day'", "", "select d + interval '1 day' from t"),
    Meant::new(&["date_diff", "datediff"], "a::date - b::date", ", a number of days", "select a::date - b::date from (select d as a, d as b from t) x"),
    Meant::new(&["date_sub", "datesub"], ".. - interval '1 day'", "", "select d - interval '1 day' from t"),
    Meant::new(&["day"], "extract(day from ..)", "", "select extract(day from d) from t"),
    Meant::new(&["dayname"], "to_char(.., '%A')", "", "select to_char(d, '%A') from t"),
    Meant::new(&["dayofweek", "weekday"], "extract(dow from ..)", ", where 0 is a Sunday", "select extract(dow from d) from t"),
    Meant::new(&["dayofyear"], "extract(doy from ..)", "", "select extract(doy from d) from t"),
    Meant::new(&["epoch"], "extract(epoch from ..)", "", "select extract(epoch from d) from t"),
    Meant::new(&["epoch_ms"], "extract(epoch from ..) * 1000", "", "select extract(epoch from d) * 1000 from t"),
    Meant::new(&["first", "arbitrary"], "first_value(.. order by ..)", "", "select first_value(s order by n) from t"),
    Meant::new(&["format", "printf"], "concat(.., ..)", ", with round(.., 2) and lpad(.., 8) for its parts", "select concat(lpad(s, 8), n) from t"),
    Meant::new(&["getdate"], "now()", "", "select now()"),
    Meant::new(&["group_concat"], "string_agg(.., ',')", "", "select string_agg(s, ',') from t"),
    Meant::new(&["hour"], "extract(hour from ..)", "", "select extract(hour from d) from t"),
    Meant::new(&["if", "iff"], "case when .. then .. else .. end", "", "select case when n > 1 then s else 'y' end from t"),
    Meant::new(&["isnull"], ".. is null", "", "select s is null from t"),
    Meant::new(&["last"], "last_value(.. order by ..)", "", "select last_value(s order by n) from t"),
    Meant::new(&["last_day"], "date_trunc('month', ..) + interval '1 month' - interval '1 day'", "", "select date_trunc('month', d) + interval '1 month' - interval '1 day' from t"),
    Meant::new(&["lcase"], "lower(..)", "", "select lower(s) from t"),
    Meant::new(&["len"], "length(..)", " of strings, array_length(..) of lists", "select length(s) from t"),
    Meant::new(&["list"], "array_agg(..)", "", "select array_agg(n) from t"),
    Meant::new(&["list_aggregate", "array_aggregate", "list_reduce", "array_reduce", "reduce"], "select n, sum(x) from (select n, unnest(..) as x from ..) u group by n", "", "select n, sum(x) from (select n, unnest(l) as x from t) u group by n"),
    Meant::new(&["list_filter", "array_filter", "filter"], "select n, array_agg(x) from (select n, unnest(..) as x from ..) u where .. group by n", "", "select n, array_agg(x) from (select n, unnest(l) as x from t) u where x > 1 group by n"),
    Meant::new(&["list_transform", "array_transform", "list_apply", "array_apply", "apply", "transform", "lambda"], UNNESTED, "", "select n, array_agg(x + 1) from (select n, unnest(l) as x from t) u group by n"),
    Meant::new(&["listagg"], "string_agg(.., ',')", "", "select string_agg(s, ',') from t"),
    Meant::new(&["max_by", "arg_max", "argmax"], "first_value(.. order by .. desc nulls last)", "", "select first_value(s order by n desc nulls last) from t"),
    Meant::new(&["mid"], "substr(.., .., ..)", "", "select substr(s, 1, 2) from t"),
    Meant::new(&["min_by", "arg_min", "argmin"], "first_value(.. order by ..)", "", "select first_value(s order by n) from t"),
    Meant::new(&["minute"], "extract(minute from ..)", "", "select extract(minute from d) from t"),
    Meant::new(&["mod"], ".. % ..", "", "select n % 2 from t"),
    Meant::new(&["mode"], "group by .. order by count(*) desc limit 1", "", "select s from t group by s order by count(*) desc limit 1"),
    Meant::new(&["month"], "extract(month from ..)", "", "select extract(month from d) from t"),
    Meant::new(&["monthname"], "to_char(.., '%B')", "", "select to_char(d, '%B') from t"),
    Meant::new(&["quantile"], "percentile_cont(0.5) within group (order by ..)", "", "select percentile_cont(0.5) within group (order by n) from t"),
    Meant::new(&["quarter"], "extract(quarter from ..)", "", "select extract(quarter from d) from t"),
    Meant::new(&["regexp_extract"], "regexp_match(.., ..)[1]", "", "select regexp_match(s, '[a-z]+')[1] from t"),
    Meant::new(&["regexp_matches"], "regexp_like(.., ..)", "", "select regexp_like(s, 'x') from t"),
    Meant::new(&["second"], "extract(second from ..)", "", "select extract(second from d) from t"),
    Meant::new(&["std"], "stddev(..)", "", "select stddev(n) from t"),
    Meant::new(&["str_split", "string_split"], "string_to_array(.., ..)", "", "select string_to_array(s, ',') from t"),
    Meant::new(&["strftime"], "to_char(.., '%Y-%m-%d')", "", "select to_char(d, '%Y-%m-%d') from t"),
    Meant::new(&["strptime"], "to_timestamp(.., '%Y-%m-%d %H:%M')", "", "select to_timestamp('2024-01-02 03:04', '%Y-%m-%d %H:%M')"),
    Meant::new(&["sum_if", "sumif"], "sum(..) filter (where ..)", "", "select sum(n) filter (where n > 1) from t"),
    Meant::new(&["typeof"], "arrow_typeof(..)", "", "select arrow_typeof(n) from t"),
    Meant::new(&["ucase"], "upper(..)", "", "select upper(s) from t"),
    Meant::new(&["variance"], "var_samp(..)", "", "select var_samp(n) from t"),
    Meant::new(&["week"], "extract(week from ..)", "", "select extract(week from d) from t"),
    Meant::new(&["year"], "extract(year from ..)", "", "select extract(year from d) from t"),
    Meant::new(&["char"], "chr(..)", "", "select chr(n) from t"),
    Meant::new(&["ceiling"], "ceil(..)", "", "select ceil(n / 2.0) from t"),
    Meant::new(&["current_localtimestamp", "sysdate"], "now()", "", "select now()"),
    Meant::new(&["string_length"], "length(..)", "", "select length(s) from t"),
    Meant::new(&["list_count"], "array_length(..)", "", "select array_length(l) from t"),
];

/// Functions in FROM. `{}` stands for the path of a file of their format.
static FILES: [Meant; 4] = [
    Meant::new(&["csv_scan", "read_csv_auto"], "read_csv(..)", "", "select * from read_csv('{}')"),
    Meant::new(
        &["json_scan", "read_json_auto", "read_json_objects", "read_ndjson", "read_ndjson_auto"],
        "read_json(..)",
        "",
        "select * from read_json('{}')",
    ),
    Meant::new(
        &["parquet_scan", "scan_parquet", "read_parquet_auto"],
        "read_parquet(..)",
        "",
        "select * from read_parquet('{}')",
    ),
    Meant::new(&["arrow_scan", "read_feather"], "read_arrow(..)", "", "select * from read_arrow('{}')"),
];

/// Clauses, operators and statements.
static CLAUSES: [Meant; 14] = [
    Meant::new(&["**"], "power(.., ..)", "", "select power(2, 3)"),
    Meant::new(&["//", "div"], ".. / ..", " of whole numbers, which has no fraction", "select 7 / 2"),
    Meant::new(
        &["alter table"],
        "create or replace table t as select *, .. from t",
        "",
        "create or replace table t as select *, n + 1 as more from t",
    ),
    Meant::new(
        &["array(select"],
        "(select array_agg(..) from ..)",
        "",
        "select (select array_agg(n) from t)",
    ),
    Meant::new(
        &["asof join"],
        "left join lateral (select .. where .. order by .. desc limit 1) r on true",
        "",
        "select * from t left join lateral \
         (select u.s as before from u where u.n <= t.n order by u.n desc limit 1) r on true",
    ),
    Meant::new(
        &["count(distinct"],
        "select count(*) from (select distinct a, b from ..)",
        "",
        "select count(*) from (select distinct a, b from (select n as a, s as b from t) x)",
    ),
    Meant::new(
        &["lambda"],
        UNNESTED,
        "",
        "select n, array_agg(x + 1) from (select n, unnest(l) as x from t) u group by n",
    ),
    Meant::new(
        &["merge"],
        "create or replace table t as select .. from t full join u on ..",
        "",
        "create or replace table t as select t.* from t full join u on t.n = u.n",
    ),
    Meant::new(
        &["on conflict"],
        "delete from t where n in (select ..)",
        " before it",
        "delete from t where n in (select 99)",
    ),
    Meant::new(
        &["pivot"],
        "from .. pivot (sum(..) for .. in (..))",
        "",
        "select * from (select n, s from t) pivot (sum(n) for s in ('x', 'y'))",
    ),
    Meant::new(
        &["temporary table"],
        "create table",
        ": all tables of statements live as long as the session",
        "create table more as select 1 as a",
    ),
    Meant::new(
        &["unpivot"],
        "from .. unpivot (.. for .. in (..))",
        "",
        "select * from (select n, n + 1 as m from t) unpivot (v for k in (n, m))",
    ),
    Meant::new(
        &["update from"],
        "create or replace table t as select .. from t left join u on ..",
        "",
        "create or replace table t as select t.* from t left join u on t.n = u.n",
    ),
    Meant::new(
        &["using sample"],
        "tablesample (10 percent)",
        " or (10 rows) behind the table",
        "select * from t tablesample (10 percent)",
    ),
];

/// A function of each element of a list.
const UNNESTED: &str = "select n, array_agg(..) from (select n, unnest(..) as x from ..) u group by n";

/// The form in the place of a word, of the words of one table.
fn form(table: &[Meant], word: &str) -> Option<String> {
    table.iter().find(|meant| meant.words.contains(&word)).map(Meant::text)
}

/// The form in the place of a clause, as the end of a message.
pub(in crate::sql) fn instead_of(clause: &str) -> String {
    form(&CLAUSES, clause).map(|form| format!(": write {form}")).unwrap_or_default()
}

/// The message for a function that there is not.
pub(in crate::sql) fn no_function(name: &str, state: &SessionState) -> String {
    let asked = name.to_lowercase();
    if state.window_functions().contains_key(&asked) {
        format!("{asked} is a function over rows; write {asked}(..) over (order by ..)")
    } else if let Some(form) = form(&FUNCTIONS, &asked) {
        format!("no function {name:?}; write {form}")
    } else {
        let known = state.scalar_functions().keys().chain(state.aggregate_functions().keys());
        let known = known.chain(state.window_functions().keys()).map(String::as_str);
        let known = known.filter(|known| !known.starts_with(OWN));
        format!("no function {name:?}{}", near_text(&asked, known))
    }
}

/// The message for a function that there is not in FROM, where these are.
pub(in crate::sql) fn no_function_in_from<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> String {
    match form(&FILES, &name.to_lowercase()) {
        Some(form) => format!("no function {name:?} in FROM; write {form}"),
        None => format!("no function {name:?} in FROM{}", near_text(name, known)),
    }
}

/// The begin of names of functions that plans of frames have.
const OWN: &str = "tharsis_";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DataFrame;
    use crate::engine::{Settings, session};
    use crate::sql::SqlSession;
    use crate::sql::tables::file_tables::NAMES;

    fn tables() -> SqlSession {
        let mut session = SqlSession::default();
        let rows = "(1, 'x', timestamp '2024-01-02 03:04:05', [1, 2]), (2, 'y', timestamp '2024-03-04 05:06:07', [3])";
        for name in ["t", "u"] {
            session
                .run(&format!("create table {name} as select * from (values {rows}) as r(n, s, d, l)"))
                .unwrap();
        }
        session
    }

    /// Whether a statement has the parts of a form between the points, one behind the other.
    fn has_form(statement: &str, form: &str) -> bool {
        let mut rest = statement;
        form.split("..").all(|part| match rest.find(part.trim()) {
            Some(at) => {
                rest = &rest[at + part.trim().len()..];
                true
            }
            None => false,
        })
    }

    fn check(session: &mut SqlSession, meant: &Meant, statement: &str) {
        assert!(has_form(statement, meant.write), "{statement} has no {}", meant.write);
        if let Err(error) = session.run(statement) {
            panic!("{:?}: {statement}: {error}", meant.words);
        }
    }

    #[test]
    fn what_is_written_in_the_place_of_functions_runs() {
        let state = session(Settings::default());
        let mut session = tables();
        for meant in &FUNCTIONS {
            for word in meant.words {
                let is_known = state.scalar_functions().contains_key(*word)
                    || state.aggregate_functions().contains_key(*word)
                    || state.window_functions().contains_key(*word);
                assert!(!is_known, "{word} exists");
            }
            check(&mut session, meant, meant.example);
        }
        assert_eq!(
            no_function("Max_By", &state),
            "no function \"Max_By\"; write first_value(.. order by .. desc nulls last)"
        );
    }

    #[test]
    fn what_is_written_in_the_place_of_clauses_runs() {
        let mut session = tables();
        for meant in &CLAUSES {
            check(&mut session, meant, meant.example);
        }
        assert_eq!(instead_of("**"), ": write power(.., ..)");
        assert_eq!(instead_of("nothing"), "");
    }

    #[test]
    fn what_is_written_in_the_place_of_functions_in_from_runs() {
        let folder = tempfile::tempdir().unwrap();
        let rows = DataFrame::from_columns([("n", vec![1].into())]);
        let path = |name: &str| folder.path().join(name).display().to_string();
        rows.to_csv(&path("read_csv")).unwrap();
        rows.to_json(&path("read_json")).unwrap();
        rows.to_parquet(&path("read_parquet")).unwrap();
        rows.to_arrow(&path("read_arrow")).unwrap();
        let mut session = SqlSession::default();
        for meant in &FILES {
            let function = meant.write.split('(').next().unwrap();
            assert!(NAMES.contains(&function), "{function}");
            check(&mut session, meant, &meant.example.replace("{}", &path(function)));
        }
        assert_eq!(
            no_function_in_from("READ_CSV_AUTO", NAMES.into_iter()),
            "no function \"READ_CSV_AUTO\" in FROM; write read_csv(..)"
        );
    }
}
