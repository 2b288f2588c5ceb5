//! Comments that the formatter leaves as they are: it breaks lines of comments that stand alone.

use crate::sources;
use xtask::comments::WIDTH;
use xtask::scan::{self, Kind};

/// The faults of the comments of a text.
fn faults(text: &str) -> Vec<String> {
    let mut faults = Vec::new();
    for piece in scan::pieces(text) {
        let start = text[..piece.range.start].rfind('\n').map_or(0, |end| end + 1);
        let line = text[start..].lines().next().unwrap_or("");
        match piece.kind {
            Kind::BlockComment => faults.push(format!("a comment of lines begins with //: {line:?}")),
            Kind::LineComment => {
                let is_alone = text[start..piece.range.start].trim().is_empty();
                if !is_alone && WIDTH < line.chars().count() {
                    faults.push(format!("this comment stands on a line of its own: {line:?}"));
                }
            }
            Kind::Code | Kind::Literal => {}
        }
    }
    faults
}

#[test]
fn comments_are_of_the_kind_that_is_formatted() {
    let faults_of = |(path, text): (&std::path::PathBuf, &String)| {
        faults(text).into_iter().map(move |fault| format!("{}: {fault}", path.display())).collect::<Vec<_>>()
    };
    let faults: Vec<String> = sources().iter().flat_map(faults_of).collect();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn comments_that_nobody_formats_are_found() {
    let wide = format!("let a = 1; // {}", "wide ".repeat(WIDTH / 5));
    assert_eq!(faults(&wide).len(), 1, "after code");
    assert_eq!(faults("fn a() { /* b */ }").len(), 1, "a block");
    let fine = format!("// {}\nlet a = \"/* b */\"; // short", "wide ".repeat(WIDTH / 5));
    assert_eq!(faults(&fine), Vec::<String>::new());
}
