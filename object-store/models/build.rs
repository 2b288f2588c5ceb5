//! Chooses the model checker's atomics in the source of the store.

fn main() {
    println!("cargo::rustc-cfg=models");
}
