//! `tharsis sql`: a query over files, through the real command.

use crate::home::{Ended, Home, await_that, end_of, kill};
use std::fs;
use std::io::{BufReader, Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// A home with two tables as CSV files.
fn with_tables() -> (Home, String, String) {
    let home = Home::new();
    let (sales, cities) = (home.text("sales.csv"), home.text("cities.csv"));
    fs::write(&sales, "city,sold\nOslo,3\nRome,5\nOslo,4\n").unwrap();
    fs::write(&cities, "city,land\nOslo,Norway\nRome,Italy\n").unwrap();
    (home, format!("sales={sales}"), format!("cities={cities}"))
}

const BY_LAND: &str = "select land, sum(sold) as sold from sales join cities on sales.city = cities.city \
                       group by land order by sold desc";

/// The rows of a query over a table, as CSV.
fn rows(home: &Home, query: &str, table: &str) -> String {
    let ended = home.run(["sql", query, "--table", table, "--format", "csv"]);
    assert_eq!((ended.status, ended.err.as_str()), (0, ""), "{query}");
    ended.out
}

#[test]
fn files_are_joined_and_grouped() {
    let (home, sales, cities) = with_tables();
    let ended = home.run(["sql", BY_LAND, "--table", &sales, "--table", &cities]);
    assert_eq!((ended.status, ended.err.as_str()), (0, ""));
    let table = " land   | sold\n--------+------\n Norway |    7\n Italy  |    5\n(2 rows)\n";
    assert_eq!(ended.out, table);
    let plan = home.run(["sql", BY_LAND, "--table", &sales, "--table", &cities, "--explain"]);
    assert!(plan.out.contains("stage 0"), "{}", plan.out);
}

#[test]
fn rows_go_to_a_file_that_is_read_again() {
    let (home, sales, cities) = with_tables();
    let file = home.text("by_land.parquet");
    let ended = home.run(["sql", BY_LAND, "--table", &sales, "--table", &cities, "--output", &file]);
    assert_eq!((ended.status, ended.out.as_str()), (0, ""), "{}", ended.err);
    assert_eq!(rows(&home, "select max(sold) as most from t", &format!("t={file}")), "most\n7\n");
}

#[test]
fn the_ending_of_a_path_says_the_format() {
    let (home, sales, cities) = with_tables();
    for ending in
        ["parquet", "csv", "csv.gz", "jsonl", "json.zst", "arrow", "feather", "tsv", "CSV", "CSV.GZ"]
    {
        let file = home.text(&format!("by_land.{ending}"));
        let ended = home.run(["sql", BY_LAND, "--table", &sales, "--table", &cities, "--output", &file]);
        assert_eq!((ended.status, ended.out.as_str()), (0, ""), "{ending}: {}", ended.err);
        let read = rows(&home, "select max(sold) as most from t", &format!("t={file}"));
        assert_eq!(read, "most\n7\n", "{ending}");
    }
    let tabs = home.text("tabs.tsv");
    fs::write(&tabs, "city\tsold\nOslo\t3\nRome\t5\n").unwrap();
    assert_eq!(rows(&home, "select sum(sold) as sold from t", &format!("t={tabs}")), "sold\n8\n");
}

#[test]
fn mistakes_are_refused_with_status_2() {
    let (home, sales, _) = with_tables();
    let missing = home.run(["sql", "select nothing from sales", "--table", &sales]);
    assert_eq!(missing.status, 2, "{}", missing.err);
    let no_file = home.run(["sql", "select 1", "--table", "t=/no/such.csv"]);
    assert_eq!(no_file.status, 2, "{}", no_file.err);
    assert!(no_file.err.contains("/no/such.csv"), "{}", no_file.err);
    let no_path = home.run(["sql", "select 1", "--table", "t"]);
    assert_eq!(no_path.status, 2);
    let file = home.text("out.txt");
    let no_format = home.run(["sql", "select city from sales", "--table", &sales, "--output", &file]);
    assert_eq!(no_format.status, 2);
    assert!(no_format.err.contains(".csv, .tsv") && !std::path::Path::new(&file).exists());
    let no_format = home.run(["sql", "select 1", "--table", "t=/no/such.txt"]);
    assert!(no_format.err.contains("the ending of /no/such.txt says no format"), "{}", no_format.err);
}

#[test]
fn statements_are_answered_in_turn() {
    let home = Home::new();
    let three =
        "create table t as select 1 as a; insert into t values (2), (3);\n-- ;\nselect sum(a) as s from t";
    let ended = home.run(["sql", three, "--format", "csv"]);
    assert_eq!((ended.status, ended.out.as_str(), ended.err.as_str()), (0, "s\n6\n", ""));
    let counted = home.run(["sql", three]);
    assert!(counted.out.starts_with("2 rows changed\n s\n"), "{}", counted.out);
}

#[test]
fn statements_come_from_files_and_standard_input() {
    let home = Home::new();
    let file = home.text("q.sql");
    fs::write(&file, "select 1 as a;\n\nselect nothing;\nselect 2 as a;\n").unwrap();
    let ended = home.run(["sql", "-f", &file, "--format", "csv"]);
    assert_eq!((ended.status, ended.out.as_str()), (2, "a\n1\n"), "it ends at the mistake");
    let told =
        "q.sql:3:8: KeyError: no column \"nothing\"; there are none\n  select nothing\n         ^^^^^^^\n";
    assert!(ended.err.ends_with(told), "{}", ended.err);
    let missing = home.run(["sql", "-f", "/no/such.sql"]);
    assert_eq!(missing.status, 2);
    assert!(missing.err.contains("/no/such.sql: No such file"), "{}", missing.err);
    let mut typed = home.command(["sql", "--format", "jsonl"]);
    typed.stdin(fs::File::open(&file).unwrap());
    let ended = Ended::of(typed.output().unwrap());
    assert_eq!((ended.status, ended.out.as_str()), (2, "{\"a\":1}\n"));
    assert!(ended.err.contains("line 3, column 8: "), "{}", ended.err);
}

#[test]
fn paths_in_quotes_are_tables() {
    let (home, sales, _) = with_tables();
    let (_, path) = sales.split_once('=').unwrap();
    fs::write(home.path("more.csv"), "city,sold\nOslo,10\n").unwrap();
    let query = |from: &str| format!("select sum(sold) as sold from '{from}'");
    let csv = |query: &str| home.run(["sql", query, "--format", "csv"]).out;
    assert_eq!(csv(&query(path)), "sold\n12\n");
    assert_eq!(csv(&query(&home.text("[ms]*.csv"))), "sold\n22\n", "a pattern");
    let file = home.text("sums.parquet");
    let ended = home.run(["sql", &query(path), "-o", &file]);
    assert_eq!((ended.status, ended.err.as_str()), (0, ""));
    assert_eq!(csv(&format!("select * from '{file}'")), "sold\n12\n");
    // The next statement looks at a file anew, and a folder gives its name to nothing.
    fs::create_dir(home.path("data")).unwrap();
    fs::create_dir(home.path("Data")).unwrap();
    fs::write(home.path("Data/x.csv"), "a\n1\n").unwrap();
    fs::write(home.path("data/x.csv"), "a,b\n2,3\n").unwrap();
    let in_turn = format!(
        "select * from '{0}/Data/x.csv'; select * from '{0}/data/x.csv'; copy (select 5 as c) to '{0}/data/x.csv';
         select * from '{0}/data/x.csv'; create table data as select 7 as d; select * from data",
        home.text("")
    );
    let ended =
        home.command(["sql", &in_turn, "--format", "csv"]).current_dir(home.path("")).output().unwrap();
    let ended = Ended::of(ended);
    assert_eq!((ended.out.as_str(), ended.err.as_str()), ("a\n1\na,b\n2,3\nc\n5\nd\n7\n", ""));
    let missing = home.run(["sql", "select * from '/no/such.csv'"]);
    assert_eq!(missing.status, 2);
    assert!(missing.err.contains("/no/such.csv"), "{}", missing.err);
}

#[test]
fn only_empty_fields_of_texts_are_missing() {
    let home = Home::new();
    let (file, tabs) = (home.text("lands.csv"), home.text("lands.tsv"));
    fs::write(&file, "iso,name\nNA,Namibia\nnull,\nnone,None\n").unwrap();
    fs::write(&tabs, "iso\nNA\nnull\n").unwrap();
    let query = format!("select count(iso) as isos, count(name) as names from '{file}'");
    assert_eq!(rows(&home, &query, &format!("t={file}")), "isos,names\n3,2\n");
    let query = "select count(*) as n from t where iso in ('NA', 'null')";
    for table in [&file, &tabs] {
        assert_eq!(rows(&home, query, &format!("t={table}")), "n\n2\n");
    }
    let query = format!("select count(iso) as isos from read_csv('{file}', nullstr = ['NA', 'none'])");
    assert_eq!(rows(&home, &query, &format!("t={file}")), "isos\n1\n");
}

#[test]
fn a_file_takes_the_rows_of_one_query() {
    let home = Home::new();
    let (file, script) = (home.text("out.csv"), home.text("q.sql"));
    fs::write(&script, "\u{feff}select 1 as a;\n").unwrap();
    assert_eq!(home.run(["sql", "-f", &script, "-o", &file]).status, 0);
    assert_eq!(fs::read_to_string(&file).unwrap(), "a\n1\n");
    for words in [vec!["sql", "select 1; select 2", "-o", &file], vec!["sql", " -- nothing"]] {
        home.run(words).assert_refused(2, &["the statements: "]);
    }
    let other = home.text("other.csv");
    for explain in ["", "explain ", "explain analyze "] {
        let copy = format!("{explain}copy (select 2 as a) to '{other}'");
        let ended = home.run(["sql", &copy, "-o", &file]);
        assert!(ended.status == 2 && ended.err.contains("NotImplemented"), "{}", ended.err);
        assert!(!std::path::Path::new(&other).exists(), "{copy}");
    }
    assert_eq!(fs::read_to_string(&file).unwrap(), "a\n1\n", "it is as before");
}

/// The part of a statement that an error marks, and the lines that tell the error.
fn marked(err: &str) -> (String, &str) {
    let lines: Vec<&str> = err.trim_end().lines().collect();
    let [told, line, mark] = lines[..] else { panic!("no line and no mark: {err}") };
    let begin = mark.find('^').unwrap();
    (line.chars().skip(begin).take(mark.matches('^').count()).collect(), told)
}

#[test]
fn files_and_values_of_a_statement_that_fail_are_marked() {
    let (home, sales, _) = with_tables();
    let file = home.text("out.csv");
    let path = sales.split_once('=').unwrap().1;
    for (query, part, told) in [
        ("select * from 'no.csv' x".to_owned(), "'no.csv'", "no.csv: no such file or folder"),
        (format!("select * from '{path}' where sold = 'x'"), "'x'", "Cannot cast string 'x'"),
        (format!("select (select sold from '{path}')"), "select", "write LIMIT 1"),
        (format!("select * from '{path}' where sold"), "sold", "a condition is true or false"),
        (format!("select max(sold) from '{path}' where sum(sold) > 1"), "sum", "an aggregate in WHERE"),
        ("select 1 from nope.csv".to_owned(), "nope.csv", "a file stands in single quotes: 'nope.csv'"),
    ] {
        let forms: [&[&str]; 2] = [&[], &["-o", &file]];
        for more in forms {
            let ended = home.run(["sql", &query].into_iter().chain(more.iter().copied()));
            assert_eq!(ended.status, 2, "{query}: {}", ended.err);
            let (found, line) = marked(&ended.err);
            assert!(found == part && line.contains(told), "{query} {more:?}: {found}: {}", ended.err);
            assert!(line.starts_with("tharsis: line 1, column "), "{line}");
        }
    }
    let explained = home.run(["sql", "select 1;\nselect * from 'no.csv'", "--explain"]);
    assert!(explained.err.starts_with("tharsis: line 2, column 15: FileNotFoundError"), "{}", explained.err);
    assert!(!std::path::Path::new(&file).exists());
}

#[test]
fn statements_are_given_as_other_commands_take_them() {
    let home = Home::new();
    for words in [
        vec!["sql", "-c", "select 1 as a; select 2 as a"],
        vec!["sql", "-c", "select 1 as a", "--command", "select 2 as a;"],
        vec!["sql", "-- note\nselect 1 as a;--more\nselect 2 as a"],
        vec!["sql", "-c", "-- note\nselect 1 as a; select 2 as a"],
    ] {
        let ended = home.run(words.iter().copied().chain(["--format", "csv"]));
        assert_eq!((ended.status, ended.out.as_str()), (0, "a\n1\na\n2\n"), "{words:?}: {}", ended.err);
    }
    home.run(["sql", "q.sql"]).assert_refused(2, &["-f FILE runs them"]);
    let wrong = home.run(["sql", "-- note\nselect a"]);
    assert!(wrong.err.starts_with("tharsis: line 2, column 8: "), "{}", wrong.err);
}

#[test]
fn csv_is_the_same_at_each_door() {
    let home = Home::new();
    let query = "select timestamp '2024-03-30 01:02:03' as t, true as b, ['x', null] as l, {'a': 1} as s";
    let shown = home.run(["sql", query, "--format", "csv"]);
    let wanted = "t,b,l,s\n2024-03-30 01:02:03,True,\"[\"\"x\"\",null]\",\"{\"\"a\"\":1}\"\n";
    assert_eq!((shown.status, shown.out.as_str()), (0, wanted), "{}", shown.err);
    assert_eq!(home.run(["sql", query, "-o", "-"]).out, wanted);
    let file = home.text("t.csv");
    let written = home.run(["sql", query, "-o", &file]);
    assert_eq!(written.status, 0, "{}", written.err);
    assert_eq!(fs::read_to_string(&file).unwrap(), wanted);
    for form in ["json", "table"] {
        let ended = home.run(["sql", "select 1 as a", "-o", &file, "--format", form]);
        assert_eq!(ended.status, 2, "{}", ended.err);
        assert!(ended.err.contains("leave --format out"), "{}", ended.err);
    }
    assert_eq!(fs::read_to_string(&file).unwrap(), wanted, "it stays");
    assert_eq!(home.run(["sql", "select 1 as a", "-o", &file, "--format", "csv"]).status, 0);
}

#[test]
fn an_array_that_the_command_writes_is_read_again() {
    let home = Home::new();
    let shown = home.run(["sql", "select value as a from generate_series(1, 3000)", "--format", "json"]);
    fs::write(home.path("own.json"), &shown.out).unwrap();
    let query = format!("select sum(a) as sum from '{}'", home.text("own.json"));
    let ended = home.run(["sql", &query, "--format", "csv"]);
    assert_eq!((ended.status, ended.out.as_str()), (0, "sum\n4501500\n"), "{}", ended.err);
}

#[test]
fn a_pipe_gets_all_rows_and_a_table_as_many_as_asked_for() {
    let home = Home::new();
    let query = "select value from generate_series(1, 200) order by value";
    let all = home.run(["sql", query]).out;
    assert!(all.lines().count() == 203 && all.ends_with("(200 rows)\n"), "{all}");
    let some = home.run(["sql", query, "--rows", "5"]).out;
    assert!(some.ends_with("     5\n(200 rows, the first 5 shown; rows 0 shows all)\n"), "{some}");
    assert_eq!(home.run(["sql", query, "-o", "-", "--rows", "5"]).out.lines().count(), 201, "CSV has all");
    let null = home.run(["sql", "select null as n, '' as e, 0.1 + 0.2 as f", "--format", "vertical"]).out;
    assert!(null.starts_with("-- row 1\nn | NULL\ne | \nf | 0.3"), "{null}");
}

/// A shell in a terminal of some width, its keys and its screen.
pub(crate) fn shell(home: &Home, columns: u32) -> (Child, ChildStdin, BufReader<ChildStdout>) {
    shell_with(home, columns, TAKES_SIGNALS)
}

fn shell_with(home: &Home, columns: u32, signals: &str) -> (Child, ChildStdin, BufReader<ChildStdout>) {
    let tharsis = env!("CARGO_BIN_EXE_tharsis");
    let mut shell = Command::new("script");
    let line = format!("stty cols {columns} rows 50 -echo; exec env {signals} '{tharsis}' sql");
    shell.args(["-qec", &line, "/dev/null"]).env("TERM", "xterm").env("XDG_STATE_HOME", home.path("state"));
    shell.env("SHELL", "/bin/sh").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut shell = shell.spawn().unwrap();
    let (keys, screen) = (shell.stdin.take().unwrap(), shell.stdout.take().unwrap());
    (shell, keys, BufReader::new(screen))
}

/// The words that a shell shows while these lines are typed.
pub(crate) fn typed(home: &Home, columns: u32, lines: &[&str]) -> String {
    let (mut shell, mut keys, mut screen) = shell(home, columns);
    let mut shown = Vec::new();
    for line in lines {
        until_prompt(&mut screen, &mut shown);
        keys.write_all(format!("{line}\r").as_bytes()).unwrap();
    }
    until_prompt(&mut screen, &mut shown);
    keys.write_all(b"\x04").unwrap();
    screen.read_to_end(&mut shown).unwrap();
    assert!(shell.wait().unwrap().success());
    String::from_utf8_lossy(&shown).into_owned()
}

/// Reads a terminal until it shows a new prompt: it begins with the sign for pasted text, and is drawn again
/// without it when a line is wrapped. Keys that come before it would be lost when the terminal changes its
/// mode.
pub(crate) fn until_prompt(screen: &mut impl Read, shown: &mut Vec<u8>) {
    until(screen, shown, "\x1b[?2004h");
    until(screen, shown, "> ");
}

/// Reads a terminal until it shows an end.
pub(crate) fn until(screen: &mut impl Read, shown: &mut Vec<u8>, end: &str) {
    let mut byte = [0];
    let begin = shown.len();
    while screen.read(&mut byte).unwrap() == 1 {
        shown.push(byte[0]);
        if shown[begin..].ends_with(end.as_bytes()) {
            return;
        }
    }
    panic!("the shell ended: {}", String::from_utf8_lossy(shown));
}

#[test]
fn a_terminal_has_a_shell() {
    let home = Home::new();
    let wide = "select 'a text that is longer than the line of this terminal has room for' as t, 1 as n;";
    let shown = typed(
        &home,
        60,
        &[
            "create table t_of_user as select 41",
            "as a;",
            "insert into t_of_user values (1);",
            "select max(a) + 1 as n",
            "from t_of_user;",
            "select 'first",
            "",
            "third' as s;",
            wide,
            "select nothing;",
            ".tables",
            ".mode csv",
            "select 7 as b;",
            ".nothing",
        ],
    );
    assert!(shown.contains("\nt_of_user\r\n"), ".tables: {shown}");
    for part in [
        "first\\n\\nthird",
        "1 row changed",
        "42",
        "(1 row)",
        "cells are cut",
        "nothing",
        "b\r\n7",
        "no such command",
    ] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    let rows: Vec<&str> = shown.lines().filter(|line| line.contains("a text that is longer")).collect();
    assert!(rows.iter().any(|row| row.contains('…')), "{shown}");
    let history = fs::read_to_string(home.path("state/tharsis/sql_history")).unwrap();
    assert!(history.contains("select max(a) + 1") && history.contains(".tables"), "{history}");
}

#[test]
fn words_of_other_shells_end_the_shell() {
    let home = Home::new();
    for word in ["exit", "quit;", "\\q"] {
        let (mut shell, mut keys, mut screen) = shell(&home, 80);
        let mut shown = Vec::new();
        until_prompt(&mut screen, &mut shown);
        keys.write_all(format!("{word}\r").as_bytes()).unwrap();
        screen.read_to_end(&mut shown).unwrap();
        assert!(shell.wait().unwrap().success(), "{word}");
    }
}

#[test]
fn errors_of_a_run_have_their_class_and_status_2() {
    let (home, sales, _) = with_tables();
    for (query, told) in [
        ("select 1 / (sold - sold) from sales", "ZeroDivisionError: division by zero"),
        ("select cast(city as int) from sales", "ValueError: Cannot cast string 'Oslo'"),
        ("select sold + 9223372036854775807 from sales", "OverflowError: out of range: "),
        (
            "select a from u",
            "line 1, column 15: ValueError: no table \"u\"; there are \"sales\"\n  select a from u\n                ^\n",
        ),
    ] {
        let ended = home.run(["sql", query, "--table", &sales]);
        assert!(ended.err.contains(told), "{query}: {}", ended.err);
        assert_eq!((ended.status, ended.out.as_str()), (2, ""), "{query}");
    }
}

#[test]
fn explain_shows_the_stages_as_a_text() {
    let (home, sales, cities) = with_tables();
    let query = format!("explain {BY_LAND}");
    let ended = home.run(["sql", &query, "--table", &sales, "--table", &cities]);
    assert_eq!((ended.status, ended.err.as_str()), (0, ""));
    assert!(ended.out.starts_with("logical_plan:\n") && ended.out.contains("stage 1"), "{}", ended.out);
    let query = format!("Explain Analyze {BY_LAND}");
    let ended = home.run(["sql", &query, "--table", &sales, "--table", &cities]);
    assert!(ended.out.contains("rows"), "{}{}", ended.out, ended.err);
}

/// An option of `env`. Tests that run in the background of a shell have the signal ignored, and what they
/// start has so, too.
const TAKES_SIGNALS: &str = "--default-signal=INT";
/// As a script does for its commands in the background.
const IGNORES_SIGNALS: &str = "--ignore-signal=INT";

/// A statement that does not end by itself.
pub(crate) const ENDLESS: &str = "select max(value % 7) as most from generate_series(1, 1000000000000000)";

#[test]
fn ctrl_c_ends_the_statement_and_not_the_shell() {
    ctrl_c_in_a_shell(TAKES_SIGNALS);
}

#[test]
fn a_shell_takes_ctrl_c_of_its_terminal_whatever_it_was_started_with() {
    ctrl_c_in_a_shell(IGNORES_SIGNALS);
}

fn ctrl_c_in_a_shell(signals: &str) {
    let home = Home::new();
    let (mut shell, mut keys, mut screen) = shell_with(&home, 80, signals);
    let mut shown = Vec::new();
    for _ in 0..2 {
        until_prompt(&mut screen, &mut shown);
        keys.write_all(format!("{ENDLESS};\r").as_bytes()).unwrap();
        // From here on the keys are for the statement.
        until(&mut screen, &mut shown, "\x1b[?2004l");
        keys.write_all(b"\x03").unwrap();
        until(&mut screen, &mut shown, "interrupted");
    }
    until_prompt(&mut screen, &mut shown);
    keys.write_all(b"select 40 + 2 as answer;\r").unwrap();
    until(&mut screen, &mut shown, " answer\r\n");
    until_prompt(&mut screen, &mut shown);
    keys.write_all(b"\x04").unwrap();
    screen.read_to_end(&mut shown).unwrap();
    assert!(shell.wait().unwrap().success(), "{}", String::from_utf8_lossy(&shown));
}

/// A command with an answer to signals.
fn spawn_to_be_interrupted(home: &Home, words: &[&str], signals: &str) -> Child {
    let command = home.command(words);
    let mut env = Command::new("env");
    env.arg(signals).arg(command.get_program()).args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => env.env(name, value),
            None => env.env_remove(name),
        };
    }
    env.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

#[test]
fn ctrl_c_ends_a_command_with_status_130() {
    let home = Home::new();
    let file = home.text("most.csv");
    for words in [vec!["sql", ENDLESS], vec!["sql", ENDLESS, "-o", &file]] {
        let child = spawn_to_be_interrupted(&home, &words, TAKES_SIGNALS);
        let process = procfs::process::Process::new(child.id() as i32).unwrap();
        await_that("the command takes signals", || process.status().unwrap().sigcgt & 2 != 0);
        kill(child.id(), "INT");
        let ended = end_of(child);
        assert_eq!((ended.status, ended.out.as_str()), (130, ""), "{}", ended.err);
    }
    assert!(!std::path::Path::new(&file).exists());
}

#[test]
fn a_command_in_the_background_of_a_script_is_not_interrupted() {
    let home = Home::new();
    let query = format!("select 1 as one; {ENDLESS}");
    let mut child = spawn_to_be_interrupted(&home, &["sql", &query], IGNORES_SIGNALS);
    // It has begun when it shows the first rows.
    let mut begun = [0];
    child.stdout.as_mut().unwrap().read_exact(&mut begun).unwrap();
    kill(child.id(), "INT");
    let status = procfs::process::Process::new(child.id() as i32).unwrap().status().unwrap();
    let (ignored, taken) = (status.sigign & 2 != 0, status.sigcgt & 2 != 0);
    let ended = child.try_wait().unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!((ignored, taken, ended), (true, false, None));
}

#[test]
fn a_reader_that_goes_away_leaves_statements_with_status_141() {
    let home = Home::new();
    let (many, file) = ("select value from generate_series(1, 100000)", home.text("after.csv"));
    let two = format!("{many}; copy (select 1 as a) to '{file}'");
    for (query, status) in [(many, 0), (&two, 141)] {
        let mut child = home.spawn(["sql", query]);
        drop(child.stdout.take());
        let ended = end_of(child);
        assert_eq!((ended.status, ended.err.as_str()), (status, ""), "{query}");
    }
    assert!(!std::path::Path::new(&file).exists());
}

#[test]
fn arrow_goes_to_a_pipe_and_to_no_terminal() {
    let (home, sales, _) = with_tables();
    let query = "select city, sum(sold) as sold from sales group by city order by city";
    for more in [vec![], vec!["-o", "-"]] {
        let words = ["sql", query, "--table", &sales, "--format", "arrow"];
        let ended = home.command(words.into_iter().chain(more)).output().unwrap();
        assert!(ended.status.success());
        let mut read = arrow::ipc::reader::StreamReader::try_new(&ended.stdout[..], None).unwrap();
        let batch = read.next().unwrap().unwrap();
        assert_eq!((batch.num_rows(), batch.num_columns()), (2, 2));
        assert!(read.next().is_none());
    }
    let on_terminal = Command::new("script")
        .args([
            "-qec",
            &format!("'{}' sql 'select 1' --format arrow", env!("CARGO_BIN_EXE_tharsis")),
            "/dev/null",
        ])
        .env("SHELL", "/bin/sh")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let shown = String::from_utf8_lossy(&on_terminal.stdout).into_owned();
    assert_eq!(on_terminal.status.code(), Some(2), "{shown}");
    assert!(shown.contains("a terminal cannot show it"), "{shown}");
}

#[test]
fn memory_is_bounded_and_spilled_where_the_user_says() {
    let home = Home::new();
    let spill = home.text("spill");
    let query = "select count(*) as n, max(a) as a from \
                 (select distinct value as a, value * 2 as b, value * 3 as c from generate_series(1, 2000000))";
    let words = ["sql", query, "--format", "csv", "--memory", "64MiB", "--spill-dir", &spill];
    let ended = home.run(words);
    assert_eq!((ended.status, ended.out.as_str()), (0, "n,a\n2000000,2000000\n"), "{}", ended.err);
    assert!(std::path::Path::new(&spill).is_dir(), "it was used");
    assert_eq!(fs::read_dir(&spill).unwrap().count(), 0, "nothing is left");
    fs::write(home.path("file"), "").unwrap();
    let refused = home.run(["sql", "select 1", "--spill-dir", &home.text("file/below")]);
    assert!(refused.status != 0 && refused.err.contains("file/below"), "{}", refused.err);
    home.run(["sql", "select 1", "--memory", "much"]).assert_refused(2, &["--memory", "such as 512MiB"]);
    let both = home.run(["sql", "select 1", "--spill-dir", &spill, "--address", "auto"]);
    both.assert_refused(2, &["--spill-dir", "--address"]);
}

#[test]
fn a_cluster_answers_what_threads_do() {
    let (home, sales, cities) = with_tables();
    let socket = home.text("a/node.sock");
    let words = ["start", "--head", "--num-cpus", "2", "--store", "128MiB", "--socket", &socket];
    let started = home.run(words);
    assert_eq!(started.status, 0, "{}", started.err);
    let three =
        format!("create table t as {BY_LAND}; insert into t values ('Peru', 1); select * from t order by 2");
    for query in [BY_LAND, &three] {
        let words = ["sql", query, "--table", &sales, "--table", &cities];
        let here = home.run(words);
        let there = home.run(words.into_iter().chain(["--address", &socket, "--memory", "256MiB"]));
        assert_eq!((there.status, there.err.as_str()), (0, ""));
        assert_eq!(here.out, there.out);
    }
    let file = home.text("by_land.csv");
    let words = ["sql", BY_LAND, "--table", &sales, "--table", &cities, "-o", &file, "--address", &socket];
    assert_eq!(home.run(words).status, 0);
    assert_eq!(fs::read_to_string(&file).unwrap(), "land,sold\nNorway,7\nItaly,5\n");
    let processes = home.processes();
    assert_eq!(home.run(["stop", "--socket", &socket]).status, 0);
    home.assert_clean(&processes);
    let nobody = home.run(["sql", "select 1", "--address", &socket]);
    assert_eq!(nobody.status, 4, "{}", nobody.err);
}
