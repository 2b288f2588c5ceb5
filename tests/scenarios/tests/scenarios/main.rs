//! The behaviours of the engine on one node, each as a trial: `embedded::NAME` and `processes::NAME`.
//!
//! The program is its own worker and node, so these tests bring their own `main`; a name on the command line
//! filters as usual. Behaviours that need several nodes are not here.

#![forbid(unsafe_code)]

mod actor_calls;
mod actor_exits;
mod actor_names;
mod actor_retries;
mod actors;
mod again;
mod bad_input;
mod cancels;
mod checkpoints;
mod ends;
mod ensembles;
mod gpus;
mod graphs;
mod groups;
mod losses;
mod many;
mod memory;
mod pressure;
mod quotas;
mod references;
mod safety;
mod scheduling;
mod service;
mod shared_actors;
mod spill;
mod store_socket;
mod streams;
mod tenants;
mod tensors;
mod unmarked;
mod values;

use std::process::ExitCode;

#[tharsis::main]
fn main() -> ExitCode {
    if let Some(outcome) = ends::run_as_driver() {
        return outcome;
    }
    if let Some(outcome) = service::run_as_driver() {
        return outcome;
    }
    if let Some(outcome) = pressure::run_as_driver() {
        return outcome;
    }
    if let Some(outcome) = tenants::run_as_driver() {
        return outcome;
    }
    let all = [
        values::ALL,
        actors::ALL,
        actor_calls::ALL,
        actor_exits::ALL,
        actor_names::ALL,
        actor_retries::ALL,
        checkpoints::ALL,
        shared_actors::ALL,
        again::ALL,
        many::ALL,
        ensembles::ALL,
        graphs::ALL,
        references::ALL,
        memory::ALL,
        safety::ALL,
        spill::ALL,
        losses::ALL,
        scheduling::ALL,
        gpus::ALL,
        groups::ALL,
        quotas::ALL,
        service::ALL,
        tenants::ALL,
        bad_input::ALL,
        cancels::ALL,
        store_socket::ALL,
        streams::ALL,
        ends::ALL,
        pressure::ALL,
        unmarked::ALL,
        tensors::ALL,
    ];
    tharsis_scenarios::run(&all)
}
