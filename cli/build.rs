//! Links the command where it says, so that nothing of it has to be relocated.
//!
//! A program that may lie anywhere has its tables of pointers written anew by each process that starts it:
//! with DataFusion inside these are some hundred thousand, in megabytes of pages that every node then has for
//! itself, whether it ever runs a query or not. Head, node and workers are processes of this program, one
//! after the other, before the first result. The stack, the heap, libraries and shared memory still lie
//! anywhere.

#![allow(clippy::print_stdout, reason = "a build script tells cargo so what it wants")]

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let target = |name: &str| std::env::var(format!("CARGO_CFG_TARGET_{name}")).unwrap_or_default();
    if target("OS") == "linux" && target("ENV") == "gnu" {
        println!("cargo:rustc-link-arg-bins=-no-pie");
    }
}
