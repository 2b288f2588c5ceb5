//! A node as the first process of a container: another PID namespace (`unshare`), which only root can make
//! here; for other users these tests say so and pass.

// Tests and their helper functions may panic on failure.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

use std::env;
use std::io::Read;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const PLAYED: &str = "THARSIS_TEST_INIT";

/// The program in the container. As process 1 it supervises itself; as its child it leaves a process behind
/// that ends later, and looks whether somebody waits for that.
#[test]
fn play() {
    if env::var(PLAYED).is_err() {
        return;
    }
    if let Some(status) = tharsis_raylet::init::supervise() {
        println!("\nended: {status:?}");
        return;
    }
    assert_ne!(std::process::id(), 1, "it was started again");
    let left = Command::new("sh").args(["-c", "setsid sleep 0.2 & echo $!"]).output().unwrap();
    let left: u32 = String::from_utf8(left.stdout).unwrap().trim().parse().unwrap();
    let until = Instant::now() + Duration::from_secs(20);
    while std::fs::exists(format!("/proc/{left}")).unwrap() {
        assert!(Instant::now() < until, "process {left} stays as a zombie");
        std::thread::sleep(Duration::from_millis(20));
    }
    println!("\nnobody is left");
    if env::var(PLAYED).as_deref() == Ok("waits") {
        println!("waits");
        std::thread::sleep(Duration::from_secs(60));
    }
}

fn container(mode: &str) -> Command {
    let mut command = Command::new("unshare");
    command.args(["--pid", "--fork", "--mount-proc", "--kill-child"]);
    command.arg(env::current_exe().unwrap()).args(["play", "--exact", "--nocapture"]);
    command.env(PLAYED, mode);
    command
}

fn can_unshare() -> bool {
    let mut made = Command::new("unshare");
    made.args(["--pid", "--fork", "--mount-proc", "true"]);
    let can = made.output().is_ok_and(|output| output.status.success());
    if !can {
        tharsis_trials::not_run("no right to make a PID namespace");
    }
    can
}

#[test]
fn processes_that_others_leave_behind_are_waited_for() {
    if env::var(PLAYED).is_ok() || !can_unshare() {
        return;
    }
    let output = container("ends").output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(
        text.contains("nobody is left") && text.contains("ended: ExitCode(unix_exit_status(0))"),
        "{text}"
    );
}

#[test]
fn process_1_passes_signals_on_and_ends_with_the_status_of_the_node() {
    if env::var(PLAYED).is_ok() || !can_unshare() {
        return;
    }
    let mut child = container("waits").stdout(Stdio::piped()).spawn().unwrap();
    let mut output = child.stdout.take().unwrap();
    let mut text = String::new();
    while !text.contains("waits") {
        let mut part = [0; 256];
        let len = output.read(&mut part).unwrap();
        assert_ne!(len, 0, "{text}");
        text += &String::from_utf8_lossy(&part[..len]);
    }
    // The only child of `unshare` is process 1 of the namespace.
    let children = format!("/proc/{0}/task/{0}/children", child.id());
    let first = std::fs::read_to_string(children).unwrap().trim().to_owned();
    assert!(Command::new("kill").args(["-TERM", &first]).status().unwrap().success());
    output.read_to_string(&mut text).unwrap();
    child.wait().unwrap();
    assert!(text.contains("ended: ExitCode(unix_exit_status(143))"), "{text}");
}
