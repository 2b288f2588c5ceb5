//! The page "From one machine to ten", followed line by line.

use super::field::{Field, Machine};
use super::joining_line;
use crate::home::await_that;
use std::path::Path;
use std::process::{Command, Stdio};

/// Name of the program on the page.
pub const PROGRAM: &str = "primes";
const PAGE: &str = include_str!("../../../../docs/from-one-machine-to-ten.md");
const SOURCE: &str = include_str!("primes.rs");
/// Machines of the cluster; one more is the laptop.
const MACHINES: usize = 10;
/// Stands on the page for a token that was printed before.
const TOKEN: &str = "th1....";

/// Number of nodes that the head knows.
fn node_count(head: &Machine) -> usize {
    let status: serde_json::Value = serde_json::from_str(&head.must("tharsis status --json")).unwrap();
    status["nodes"].as_array().unwrap().len()
}

/// The lines of the page for a shell, each with the words that say where it is typed.
fn lines() -> Vec<(&'static str, &'static str)> {
    let blocks = PAGE.split("```text\n# ").skip(1).map(|rest| rest.split("```").next().unwrap());
    let lines = blocks.map(|block| block.split_once('\n').unwrap());
    lines.flat_map(|(place, lines)| lines.lines().map(move |line| (place, line))).collect()
}

/// The program with a `main`, as the page has it.
fn program_on_the_page() -> String {
    let program = &SOURCE[SOURCE.find("use std").unwrap()..];
    program.replace("pub fn count_primes()", "#[tharsis::main]\nfn main()")
}

/// Puts this program, which is the one on the page, at a path. Without its symbols: nine machines fetch it.
fn put_program(path: &Path) {
    let stripped = Command::new("strip").arg("-o").arg(path).arg(std::env::current_exe().unwrap()).status();
    assert!(stripped.unwrap().success(), "strip comes with the linker");
}

/// The program's line for a number of nodes.
fn said(nodes: usize) -> String {
    format!("348513 primes below 5000000, counted on {nodes} nodes")
}

/// Types the program's line again while it says the right number and fewer nodes than the page: ten machines
/// in one are so slow at times that the first nodes have done all tasks before the last one has started a
/// worker.
fn typed_until(promised: &str, mut out: String, again: impl Fn() -> String) -> String {
    let number = promised.split(" on ").next().unwrap();
    for _ in 0..20 {
        assert!(out.starts_with(number), "{out}");
        if out.trim() == promised {
            break;
        }
        out = again();
    }
    out.trim().to_owned()
}

pub fn the_page_leads_from_one_machine_to_ten() {
    assert!(PAGE.contains(program_on_the_page().trim()), "the page has another program than the test");
    let field = Field::new(MACHINES + 1);
    let (head, laptop) = (field.machine(1), field.machine(MACHINES + 1));
    let others: Vec<&Machine> = (2..=MACHINES).map(|number| field.machine(number)).collect();
    put_program(&head.home.path(PROGRAM));
    std::fs::copy(head.home.path(PROGRAM), laptop.home.path(PROGRAM)).unwrap();
    let (mut token, mut counts) = (String::new(), Vec::new());
    for (place, line) in lines() {
        let line = line.replace(TOKEN, &token);
        let run = |machine: &Machine| machine.must(&format!("cd {} && {line}", machine.home.text("")));
        let out = match place {
            "on the head" => run(head),
            "on the laptop" => run(laptop),
            "on each of the other machines" => others.iter().map(|machine| run(machine)).collect(),
            other => panic!("the page says {other:?}: which machine is that?"),
        };
        if line.contains("--head") {
            let join = joining_line(&out);
            token = join.split(' ').next_back().unwrap().to_owned();
            assert_eq!(join.replace(&token, TOKEN), "tharsis start --address 10.0.0.1:7600 --token th1....");
        } else if line.contains("token create") {
            token = out.trim().to_owned();
        } else if line.contains(PROGRAM) {
            let promised = said(if counts.is_empty() { 1 } else { MACHINES });
            let again = || if place == "on the head" { run(head) } else { run(laptop) };
            counts.push(typed_until(&promised, out, again));
            if counts.len() == 3 {
                a_cable_is_pulled(&field, &token);
            }
        }
    }
    assert_eq!(counts, [said(1), said(MACHINES), said(MACHINES)]);
    for count in &counts {
        assert!(PAGE.contains(&format!("> `{count}`")), "the page promises something else than {count}");
    }
}

/// The part of the page without commands: the program ends with the same number, nine nodes are left, and the
/// one that was cut off ends when the cable is back. It is started again, as the page ends with all of them.
fn a_cable_is_pulled(field: &Field, token: &str) {
    let (head, lost) = (field.machine(1), field.machine(MACHINES));
    let line = format!("cd {} && ./{PROGRAM} auto", head.home.text(""));
    let program = head.shell(&line).stdout(Stdio::piped()).spawn().unwrap();
    std::thread::sleep(std::time::Duration::from_millis(200));
    field.set_cable(MACHINES, false);
    let out = String::from_utf8(program.wait_with_output().unwrap().stdout).unwrap();
    assert!(out.starts_with("348513 primes below 5000000, counted on"), "{out}");
    await_that("nine nodes are left", || node_count(head) == 9);
    field.set_cable(MACHINES, true);
    await_that("its node ends", || lost.run("tharsis status").status != 0);
    assert!(!token.is_empty());
    lost.must("tharsis start --address 10.0.0.1:7600");
}
