//! Behaviours of several nodes; all of it is in `tests/cluster.rs`, because a program of nodes brings its own `main`.
