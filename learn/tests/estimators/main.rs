//! Tests of estimators from outside: against answers of scikit-learn, for any chunks, dtypes and threads, and
//! of what is refused.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod bad_input;
mod clusters;
mod columns;
mod contract;
mod distances;
mod edges;
mod ensembles;
mod invariance;
mod limits;
mod neighbors;
mod numbers;
mod oracle;
mod projections;
mod recorded;
mod recorded_baselines;
mod recorded_clusters;
mod recorded_decompositions;
mod recorded_encoders;
mod recorded_ensembles;
mod recorded_linear;
mod recorded_maps;
mod recorded_models;
mod recorded_neighbors;
mod recorded_splines;
mod recorded_steps;
mod recorded_units;
mod rounds;
mod tags;
mod text;
