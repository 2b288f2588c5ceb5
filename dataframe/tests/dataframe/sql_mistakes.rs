//! Mistakes in statements: what is told of them, and which part of the text is marked.

use tharsis_dataframe::{Error, SqlPlace, SqlSession};

/// A statement, the text that is marked in it, and a part of what is told. `None` stands for a mistake whose
/// place nobody knows; the end of a statement is marked by nothing.
type Mistake = (&'static str, Option<&'static str>, &'static str);

#[rustfmt::skip]
const MISTAKES: [Mistake; 182] = [
    // Syntax.
    ("select count(* from sales", Some("from"), "expected \")\", found \"from\""),
    ("selct 1", Some("selct"), "did you mean SELECT?"),
    ("slect city from sales", Some("slect"), "did you mean SELECT?"),
    ("upadte sales set sold = 1", Some("upadte"), "did you mean UPDATE?"),
    ("pivot sales on city, sold using sum(sold)", Some("pivot"), "PIVOT in this form is not supported: write from .. pivot (sum(..) for .. in (..))"),
    ("unpivot sales on columns(*)", Some("unpivot"), "UNPIVOT in this form is not supported: write from .. unpivot (.. for .. in (..))"),
    ("pivot sales on city using sum(sold)", None, "PIVOT has no values, of which each is a column: write ON city IN ('a', 'b')"),
    ("select * from sales using sample 10%", Some("using"), "USING SAMPLE is not supported: write tablesample (10 percent)"),
    ("select * from sales asof right join other on sold >= a", Some("other"), "ASOF RIGHT JOIN is not supported; there are ASOF JOIN and ASOF LEFT JOIN"),
    ("select * from sales asof join other match_condition (sold >= a)", Some("other"), "MATCH_CONDITION of ASOF JOIN is not supported: write on a.k = b.k"),
    ("select * from sales asof join other on sold = a", None, "ASOF JOIN has keys that are equal, and one that is"),
    ("select 2 ** 3", Some("*"), "the operator ** is not supported: write power(.., ..)"),
    ("select 7 div 2", Some("div"), "the operator DIV is not supported: write .. / .."),
    ("select list_transform([1], lambda x: x)", Some("x"), "LAMBDA is not supported: write select n, array_agg(..)"),
    ("select city from sales where sold => 3", Some("=>"), "did you mean >=?"),
    ("select city from sales where sold betwen 1 and 3", Some("betwen"), "did you mean BETWEEN?"),
    ("select city from sales wher sold > 1", Some("sold"), "did you mean WHERE in place of \"wher\"?"),
    ("select * form sales", Some("form"), "did you mean FROM?"),
    ("select city form sales", Some("sales"), "did you mean FROM in place of \"form\"?"),
    ("select city from sales group city", Some("group"), "did you mean GROUP BY?"),
    ("select city from sales order city", Some("order"), "did you mean ORDER BY?"),
    ("select city from sales gruop by city", Some("by"), "did you mean GROUP in place of \"gruop\"?"),
    ("select city from sales oder by city", Some("by"), "did you mean ORDER in place of \"oder\"?"),
    ("select city from sales limt 3", Some("3"), "did you mean LIMIT in place of \"limt\"?"),
    ("select city sold zip from sales", Some("zip"), "expected the end of the statement, found \"zip\""),
    ("select 'abc", Some("'"), "unterminated string literal"),
    ("select city from sales where city = 'Oslo", Some("'"), "unterminated string literal"),
    ("select \"abc", Some("\""), "a name in double quotes without an end"),
    ("select 1 +", Some(""), "expected an expression, found the end of the statement"),
    ("select (1", Some(""), "expected \")\", found the end of the statement"),
    ("select 1)", Some(")"), "expected the end of the statement, found \")\""),
    ("select * from sales join sales b on", Some(""), "expected an expression, found the end of the statement"),
    ("select * from sales inner sales", Some("sales"), "expected JOIN, found \"sales\""),
    ("select * from sales where city in ()", Some(")"), "expected an expression, found \")\""),
    ("select * from sales where city in ('a' 'b')", Some("'b'"), "expected \")\", found 'b'"),
    ("select * from sales where sold between 1", Some(""), "expected AND, found the end of the statement"),
    ("select sum(sold) over (order by) from sales", Some(")"), "expected an expression, found \")\""),
    ("select city,\n  sold\nfrom sales wher 1", Some("1"), "did you mean WHERE in place of \"wher\"?"),
    ("select case sold when 1 then 2 from sales", Some("from"), "expected END of the CASE, found \"from\""),
    ("select case when sold > 3 then 'a' else 1", Some(""), "expected END of the CASE, found the end of the statement"),
    ("select upper(case when sold > 3 then 'a') from sales", Some(")"), "expected END of the CASE, found \")\""),
    ("insert into sales valeus (1)", Some("valeus"), "did you mean VALUES?"),
    ("create tabel t (a int)", Some("tabel"), "found \"tabel\"; did you mean TABLE?"),
    ("drop sales", Some("sales"), "expected TABLE or VIEW, found \"sales\""),
    ("select city\nfrom sales\nwhere sold >", Some(""), "expected an expression, found the end of the statement"),
    ("delete sales where", Some(""), "expected an expression, found the end of the statement"),
    ("from sales where sold > 3", Some("where"), "WHERE behind FROM without SELECT is not supported: write select .. before from"),
    ("from sales\ngroup by city", Some("group"), "write select .. before from"),
    (".tables", Some("."), "a command with a dot is one of the shell"),
    ("select * from ['a.csv', 'b.csv']", Some("["), "a list of files stands in a function: read_csv(['a.csv', 'b.csv'])"),
    // Names of columns.
    ("select nothing from sales", Some("nothing"), "no column \"nothing\"; there are \"city\", \"sold\", \"day\""),
    ("select ctiy from sales", Some("ctiy"), "did you mean \"city\"?"),
    ("select city,\n  sold + solt\nfrom sales", Some("solt"), "did you mean \"sold\"?"),
    ("select s.ctiy from sales s", Some("s.ctiy"), "no column \"ctiy\"; there are \"city\", \"sold\", \"day\"; did you mean \"city\"?"),
    ("select x.city from sales", Some("x.city"), "no column \"x.city\"; the tables at this place are \"sales\""),
    ("select sales.city from sales s", Some("sales.city"), "no column \"sales.city\"; the tables at this place are \"s\""),
    ("select city from sales where nope = 1", Some("nope"), "no column \"nope\""),
    ("select city from sales group by nope", Some("nope"), "no column \"nope\""),
    ("select city from sales order by nope", Some("nope"), "no column \"nope\"; there are \"city\""),
    ("select count(*) from sales having nope > 1", Some("nope"), "no column \"nope\""),
    ("select sum(sold) over (partition by nope) from sales", Some("nope"), "no column \"nope\""),
    ("select * from sales a join sales b on a.city = b.ctiy", Some("b.ctiy"), "no column \"ctiy\""),
    ("select * from sales join other using (nope)", Some("nope"), "no column \"nope\""),
    ("select \"City\" from sales", Some("\"City\""), "did you mean \"city\"?"),
    ("select list_transform([1], x -> x + 1)", Some("x"), "a function of values, x -> .., is not supported: write select n, array_agg(..)"),
    ("select * from sales where city = \"Oslo\"", Some("\"Oslo\""), "; a text is in single quotes: 'Oslo'"),
    ("select city as c from sales where c = 'Oslo'", Some("c"), "no column \"c\""),
    ("select * from (select city from sales) x where x.sold = 1", Some("x.sold"), "no column \"sold\"; there are \"city\""),
    ("select (select nope from other) from sales", Some("nope"), "no column \"nope\""),
    ("with t as (select nope from sales) select * from t", Some("nope"), "no column \"nope\""),
    ("select upper(nope) from sales", Some("nope"), "no column \"nope\""),
    ("create view v as select nope from sales", Some("nope"), "no column \"nope\""),
    ("create table t as select nope from sales", Some("nope"), "no column \"nope\""),
    ("explain select nope from sales", Some("nope"), "no column \"nope\""),
    ("describe select nope from sales", Some("nope"), "no column \"nope\""),
    ("summarize select nope from sales", Some("nope"), "no column \"nope\""),
    ("update sales set sold = nope", Some("nope"), "no column \"nope\""),
    ("delete from sales where nope = 1", Some("nope"), "no column \"nope\""),
    ("select a.city from sales a, sales b where city = 'x'", Some("city"), "column \"city\" is in more than one table"),
    ("select 1 from sales s, sales s", Some("s"), "two tables \"s\" in FROM"),
    // Names of tables.
    ("select * from salse", Some("salse"), "no table \"salse\"; there are \"keyed\", \"other\", \"sales\"; did you mean \"sales\"?"),
    ("select * from nope.csv", Some("nope.csv"), "no table \"nope.csv\"; there are \"keyed\", \"other\", \"sales\"; a file stands in single quotes: 'nope.csv'"),
    ("select * from x.y", Some("x.y"), "no table \"x.y\""),
    ("select * from sales, nope", Some("nope"), "no table \"nope\""),
    ("select 1 where 1 in (select a from nope)", Some("nope"), "no table \"nope\""),
    ("insert into nope values (1)", Some("nope"), "no table \"nope\""),
    ("update nope set a = 1", Some("nope"), "no table \"nope\""),
    ("delete from nope", Some("nope"), "no table \"nope\""),
    ("truncate nope", Some("nope"), "no table \"nope\""),
    ("drop table nope", Some("nope"), "no table \"nope\""),
    ("drop table sale", Some("sale"), "no table \"sale\"; did you mean \"sales\"?"),
    ("drop view nope", Some("nope"), "no view \"nope\""),
    ("create table sales (a int)", Some("sales"), "table \"sales\" already exists"),
    ("describe nope", Some("nope"), "no table \"nope\""),
    ("summarize nope", Some("nope"), "no table \"nope\""),
    ("with t as (select 1) select * from u", Some("u"), "no table \"u\""),
    ("select * from sales natural join nope", Some("nope"), "no table \"nope\""),
    // Functions.
    ("select cnt(*) from sales", Some("cnt"), "no function \"cnt\"; write count(..)"),
    ("select iff(1 > 2, 1, 2)", Some("iff"), "write case when .. then .. else .. end"),
    ("select epoch_ms(day) from sales", Some("epoch_ms"), "write extract(epoch from ..) * 1000"),
    ("select coutn(*) from sales", Some("coutn"), "did you mean \"count\"?"),
    ("select uper(city) from sales", Some("uper"), "did you mean \"upper\"?"),
    ("select nofunction(city) from sales", Some("nofunction"), "no function \"nofunction\""),
    ("select row_number() from sales", Some("row_number"), "is a function over rows; write row_number(..) over (order by ..)"),
    ("select sum(city) from sales", Some("sum"), "no function sum(VARCHAR); there are"),
    ("select sum(city) from sales", Some("sum"), "write sum(try_cast(.. as double))"),
    ("select sum(sold, 1) from sales", Some("sum"), "no function sum(BIGINT, BIGINT)"),
    ("select upper(1, 2)", Some("upper"), "no function upper(BIGINT, BIGINT)"),
    ("select upper()", Some("upper"), "no function upper()"),
    ("select lag() over () from sales", Some("lag"), "no function lag()"),
    ("select * from read_cvs('a.csv')", Some("read_cvs"), "no function \"read_cvs\" in FROM; did you mean \"read_csv\"?"),
    ("select regexp_extract(city, 'a') from sales", Some("regexp_extract"), "no function \"regexp_extract\"; write regexp_match(.., ..)[1]"),
    ("select arg_max(city, sold) from sales", Some("arg_max"), "write first_value(.. order by .. desc nulls last)"),
    ("select * from read_csv_auto('a.csv')", Some("read_csv_auto"), "no function \"read_csv_auto\" in FROM; write read_csv(..)"),
    ("select * from generate_serise(1, 2)", Some("generate_serise"), "did you mean \"generate_series\"?"),
    ("select sum(sold > 1) from sales", Some("sum"), "no function sum(BOOLEAN); write count(*) filter (where ..)"),
    ("select avg(sold > 1) from sales", Some("avg"), "no function avg(BOOLEAN); write avg(..::int)"),
    ("select avg(day::date) from sales", Some("avg"), "write avg(extract(epoch from ..))"),
    ("select substr('abc')", Some("substr"), "no function substr of one argument"),
    ("select length([{'a': 1}])", Some("length"), "no function length of a list of structs; write array_length(..)"),
    ("select sum(sold) over w from sales", Some("w"), "no window \"w\""),
    // Rules.
    ("select city, count(*) from sales", Some("city"), "is not in GROUP BY; add it there"),
    ("select city from sales group by sold", Some("city"), "is not in GROUP BY"),
    ("select city from sales having sold > 1", None, "HAVING reads a column that is not in GROUP BY"),
    ("select sum(sold) from sales where SUM(sold) > 1", Some("SUM"), "groups are chosen by HAVING"),
    ("select city + 1 from sales", None, "no arithmetic of VARCHAR + BIGINT; write a CAST of one side"),
    ("select city + interval '1 day' from sales", None, "no arithmetic of VARCHAR + INTERVAL; cast the text to date or timestamp"),
    ("select city from sales where sold like '0%'", Some("like"), "LIKE compares texts, and here are BIGINT and VARCHAR; write ..::text"),
    ("select city from sales where day::date - day::date > interval '1 day'", None, "a date less another one is a number of days"),
    ("select sold from sales where sold", Some("sold"), "a condition is true or false, and sales.sold is a BIGINT"),
    ("select 1 where 'a'", Some("'a'"), "is a VARCHAR"),
    ("select city from sales union select city, sold from sales", None, "number of columns"),
    ("select city from sales order by 5", Some("5"), "out of bounds"),
    ("select city from sales group by 3", Some("3"), "position 3"),
    ("select n from (values (1)) v(n) where n = 'x'", Some("'x'"), "Cannot cast string 'x' to value of BIGINT type"),
    ("select cast('x' as int)", Some("'x'"), "Cannot cast string 'x' to value of INTEGER type"),
    ("select 'x'::int", Some("'x'"), "Cannot cast string 'x'"),
    ("select (c || 'n')::int, c::text from (values ('Köl')) v(c)", Some("::int"), "Cannot cast string 'Köln' to value of INTEGER type"),
    ("select (select column1 from (values (1), (2)))", Some("select"), "more than one row; write LIMIT 1"),
    ("select sold from sales where row_number() over () = 1", None, "write QUALIFY"),
    ("select city.x from sales", None, "a point behind a column that has no fields"),
    ("insert into other values (1, 2, 3)", None, "columns"),
    ("insert into keyed values (1, 'x'), (2, null)", None, "that is value 2 of a row, and it is missing in a column that is NOT NULL"),
    ("insert into keyed values (3, 'x'), (4, 'y'), (3, 'z')", None, "the same values of (id), or none: (3)"),
    ("create table t as select city, city from sales", None, "two columns \"city\", where each has a name of its own"),
    ("select city from (select city, city from sales) x", Some("city"), "column \"city\" is there 2 times; give one of them another name"),
    ("select * from sales where sold in (select city, sold from sales)", Some("city, sold"), "has one column, and this one has"),
    ("select * from generate_series(1, 'a')", None, "Argument #2 must be an INTEGER or NULL"),
    ("select nope.* from sales", Some("nope"), "no table \"nope\" in FROM"),
    ("set nope = 1", Some("nope"), "no setting \"nope\""),
    ("show nope", Some("nope"), "no setting \"nope\""),
    ("copy sales to 'sales.nope'", None, "the ending .nope says no format; write (format csv) behind it"),
    ("copy sales to 'nowhere'", None, "the name says no format; write (format csv) behind it"),
    ("copy sales to 's.csv' (headre)", Some("headre"), "COPY has no option \"headre\"; there are"),
    ("copy sales to 's.csv' (headre)", Some("headre"), "did you mean \"header\"?"),
    ("copy (select 1 as a) to 's.parquet' (delimiter ';')", Some("delimiter"), "delimiter is an option of CSV"),
    ("copy sales to 's.csv' (format xlsx)", Some("format"), "COPY writes no \"xlsx\"; there are arrow, csv, json, parquet"),
    ("copy sales to 's.csv' ('x')", Some("'x'"), "an option of COPY is a name and a value"),
    ("copy sales from 's.csv'", Some("from"), "write INSERT INTO t SELECT * FROM"),
    ("select {'a': 1}.b", Some("b"), "no field \"b\" in this struct; describe shows"),
    ("explain summarize nope", Some("nope"), "no table \"nope\""),
    // Types.
    ("select cast('a' as foo)", Some("foo"), "no type \"foo\""),
    ("select sold::integr from sales", Some("integr"), "no type \"integr\"; did you mean \"integer\"?"),
    ("create table t (a bigin)", Some("bigin"), "no type \"bigin\"; did you mean \"bigint\"?"),
    // Clauses and statements that there are not.
    ("select city collate x from sales", Some("collate"), "COLLATE is not supported"),
    ("select * from sales tablesample (10)", None, "(10 percent), (100 rows)"),
    ("select count(*) from sales prewhere sold = 1", Some("prewhere"), "PREWHERE (write WHERE)"),
    ("select * rename (ctiy as town) from sales", Some("ctiy"), "no column \"ctiy\"; there are \"city\", \"sold\", \"day\"; did you mean \"city\"?"),
    ("from sales |> select * rename (city as town)", Some("rename"), "RENAME behind * is not supported"),
    ("select top 2 city from sales union select 'a'", Some("top"), "TOP is not supported"),
    ("grant select on sales to x", None, "the statement GRANT is not supported"),
    ("alter table sales add column x int", None, "the statement ALTER TABLE is not supported: write create or replace table t as select"),
    ("create temp table x as select 1", Some("temp"), "TEMPORARY is not supported: write create table"),
    ("create temporary table x (a int)", Some("temporary"), "TEMPORARY is not supported: write create table"),
    ("select 7 // 2", Some("//"), "the operator // is not supported: write .. / .."),
    ("select array(select sold from sales)", Some("array"), "ARRAY of a query is not supported: write (select array_agg(..) from ..)"),
    ("insert into other values (1) on conflict do nothing", Some("on"), "INSERT .. ON CONFLICT is not supported: write delete from t where"),
    ("update sales set sold = o.a from other o", Some("from"), "UPDATE .. FROM is not supported: write create or replace table t as select"),
    ("merge into sales using other on sold = a when matched then delete", Some("merge"), "MERGE is not supported: write create or replace table t"),
    ("select count(distinct city, sold) from sales", Some("distinct"), "COUNT(DISTINCT ..) of several columns is not supported: write select"),
    ("vacuum", None, "the statement VACUUM is not supported"),
    ("select * from sales fetch first 2 rows with ties", None, "WITH TIES"),
];

/// Words that only the library has.
const FOREIGN: [&str; 20] = [
    "Boolean(",
    "DataFusion",
    "Dictionary(",
    "Expr",
    "Float64",
    "Ident",
    "Int32",
    "Int64",
    "LogicalPlan",
    "Plan",
    "Span",
    "TableReference",
    "UserDefined",
    "Utf8",
    "ValueWithSpan",
    "ast node",
    "at Line",
    "datafusion",
    "sqltorel",
    " { ",
];

fn session() -> SqlSession {
    let mut session = SqlSession::default();
    session.run("create table sales (city text, sold bigint, day timestamp)").expect("a table");
    session.run("create table other (a int)").expect("a table");
    session.run("create table keyed (id int primary key, n text not null)").expect("a table");
    session
}

fn marked(place: &SqlPlace) -> String {
    place.text().chars().skip(place.column() - 1).take(place.width()).collect()
}

/// The fault in the outcome of a mistake.
fn fault(statement: &str, mark: Option<&str>, told: &str, error: &Error) -> Option<String> {
    let text = error.root().to_string();
    if !text.contains(told) {
        return Some(format!("tells {text:?}"));
    }
    if let Some(word) = FOREIGN.iter().find(|word| text.contains(**word)) {
        return Some(format!("has the word {word:?}: {text:?}"));
    }
    if text.len() > 400 || text.contains('\n') {
        return Some(format!("is long: {text:?}"));
    }
    let place = error.sql_place();
    let line = |place: &SqlPlace| statement.split('\n').nth(place.line() - 1) == Some(place.text());
    match (mark, place) {
        (None, _) => None,
        (Some(mark), None) => Some(format!("marks nothing, not {mark:?}: {text:?}")),
        (Some(_), Some(place)) if !line(place) => Some(format!("marks another line, {:?}", place.text())),
        (Some(mark), Some(place)) => (marked(place) != mark).then(|| format!("marks {:?}", marked(place))),
    }
}

#[test]
fn mistakes_are_told_with_their_place() {
    let mut session = session();
    let mut faults = Vec::new();
    for (statement, mark, told) in MISTAKES {
        match session.execute(statement) {
            Ok(_) => faults.push(format!("{statement}: is answered")),
            Err(error) => {
                faults.extend(
                    fault(statement, mark, told, &error).map(|fault| format!("{statement}: {fault}")),
                );
            }
        }
    }
    assert!(faults.is_empty(), "{} of {}\n{}", faults.len(), MISTAKES.len(), faults.join("\n"));
}
