//! The statements of the cookbook answer what the page says.

#![allow(clippy::disallowed_methods, reason = "a variable says whether to write the page anew")]

use crate::home::{Ended, Home};
use std::fs;
use std::path::{Path, PathBuf};

const SQL: &str = "```sql\n";
const TEXT: &str = "```text\n";
const END: &str = "\n```\n";

/// A file or a folder of the repository.
fn of_root(path: &str) -> PathBuf {
    Path::new(&std::env::var("CARGO_MANIFEST_DIR").unwrap()).join("..").join(path)
}

/// A home whose folder `data` has the files of the page.
fn with_data() -> Home {
    let home = Home::new();
    fs::create_dir(home.path("data")).unwrap();
    for file in fs::read_dir(of_root("learn/data")).unwrap() {
        let file = file.unwrap();
        fs::copy(file.path(), home.path("data").join(file.file_name())).unwrap();
    }
    home
}

fn answer(home: &Home, statements: &str) -> String {
    let mut command = home.command(["sql", statements]);
    let ended = Ended::of(command.current_dir(home.path("data")).output().unwrap());
    assert_eq!((ended.status, ended.err.as_str()), (0, ""), "{statements}");
    ended.out.trim_end().to_owned()
}

#[test]
fn statements_of_the_cookbook_answer_what_the_page_says() {
    let path = of_root("docs/cookbook.md");
    let page = fs::read_to_string(&path).unwrap();
    let home = with_data();
    let mut parts = page.split(SQL);
    let mut new = parts.next().unwrap().to_owned();
    let mut recipes = 0;
    for part in parts {
        let (statements, rest) = part.split_once(END).unwrap();
        let (between, rest) = rest.split_once(TEXT).unwrap();
        let (_, rest) = rest.split_once(END).unwrap();
        let answer = answer(&home, statements);
        new += &format!("{SQL}{statements}{END}{between}{TEXT}{answer}{END}{rest}");
        recipes += 1;
    }
    assert!(20 <= recipes, "{recipes} statements have an answer");
    if std::env::var_os("UPDATE_PAGE").is_some() {
        return fs::write(&path, new).unwrap();
    }
    assert_eq!(page, new, "UPDATE_PAGE=1 writes it anew");
}
