//! Terminals of several widths, and the tables, mistakes and bars of `tharsis sql` on them.

use crate::home::Home;
use crate::sql::{ENDLESS, shell, typed, until, until_prompt};
use std::io::{Read, Write};

/// Widths of a window beside others, of a usual one, and of a large screen.
const WIDTHS: [u32; 3] = [60, 80, 220];

/// The lines of a screen without what moves the cursor.
fn lines(shown: &str) -> Vec<String> {
    let (mut plain, mut rest) = (String::new(), shown);
    while let Some(at) = rest.find('\x1b') {
        plain.push_str(&rest[..at]);
        let escape = rest[at + 1..].trim_start_matches(['[', '?']);
        let end =
            escape.find(|letter: char| letter.is_ascii_alphabetic()).map_or(escape.len(), |end| end + 1);
        rest = &escape[end..];
    }
    plain.push_str(rest);
    plain.split("\r\n").map(|line| line.rsplit('\r').next().unwrap().to_owned()).collect()
}

#[test]
fn tables_and_mistakes_fit_the_terminal() {
    let home = Home::new();
    let columns: Vec<String> = (10..40).map(|at| format!("{at}000000 as column_{at}")).collect();
    let wide = format!("select {}, 'a text of some length' as t;", columns.join(", "));
    let wrong = format!("select {}, nothing from t_of_user;", vec!["a"; 90].join(", "));
    for width in WIDTHS {
        let statements =
            ["create table t_of_user as select 1 as a;", &wide, &wrong, "select count(a from t_of_user;"];
        let shown = lines(&typed(&home, width, &statements));
        let table: Vec<&String> =
            shown.iter().filter(|line| line.contains(" | ") || line.contains("-+-")).collect();
        // A heading, a rule and a row, as wide as the terminal has room for.
        assert_eq!(table.len(), 3, "{width}: {shown:#?}");
        for line in &table {
            let taken = line.chars().count();
            assert!(taken <= width as usize && width as usize / 2 < taken, "{width}: {line}");
        }
        let is_counted = shown.iter().any(|line| line.ends_with(" of 31, the form vertical shows all)"));
        assert!(is_counted, "{width}: {shown:#?}");
        let marks: Vec<usize> =
            (0..shown.len()).filter(|at| shown[*at].trim_start().starts_with('^')).collect();
        assert_eq!(marks.len(), 2, "{width}: {shown:#?}");
        for (at, word) in marks.into_iter().zip(["nothing", "from"]) {
            let (line, mark) = (&shown[at - 1], &shown[at]);
            assert!(line.chars().count() <= width as usize, "{width}: {line}");
            let begin = mark.find('^').unwrap();
            let marked: String = line.chars().skip(begin).take(mark.matches('^').count()).collect();
            assert_eq!(marked, word, "{width}: {line}\n{mark}");
        }
        let told = shown.iter().find(|line| line.contains("KeyError")).unwrap();
        assert!(
            told.starts_with("line 1, column 278: KeyError: no column \"nothing\"; there are \"a\""),
            "{told}"
        );
    }
}

#[test]
fn a_statement_that_takes_long_has_a_bar_of_one_line() {
    let home = Home::new();
    for width in WIDTHS {
        let (mut shell, mut keys, mut screen) = shell(&home, width);
        let mut shown = Vec::new();
        until_prompt(&mut screen, &mut shown);
        keys.write_all(format!("{ENDLESS};\r").as_bytes()).unwrap();
        until(&mut screen, &mut shown, "\x1b[?2004l");
        let begin = shown.len();
        for _ in 0..3 {
            until(&mut screen, &mut shown, " s");
        }
        keys.write_all(b"\x03").unwrap();
        until(&mut screen, &mut shown, "interrupted");
        let drawn = String::from_utf8_lossy(&shown[begin..]).into_owned();
        let bars: Vec<&str> = drawn.split("\r\x1b[2K").filter(|part| part.contains(" % ")).collect();
        assert!(3 <= bars.len(), "{drawn:?}");
        for bar in bars {
            assert!(bar.chars().count() < width as usize && !bar.contains('\n'), "{width}: {bar:?}");
        }
        // It is gone before anything else is shown.
        assert!(drawn.contains("\r\x1b[2Kinterrupted"), "{drawn:?}");
        until_prompt(&mut screen, &mut shown);
        keys.write_all(b"\x04").unwrap();
        screen.read_to_end(&mut shown).unwrap();
        assert!(shell.wait().unwrap().success());
    }
}
