//! Code written by `cargo xtask protos`. Messages of the control store stay in this crate; for those of peers
//! see [`crate::peer`].

/// Messages of the control store.
#[allow(missing_docs, clippy::all, clippy::pedantic)]
pub(crate) mod control {
    include!("generated/tharsis.control.v1.rs");
}

/// Messages between two nodes.
#[allow(missing_docs, clippy::all, clippy::pedantic)]
pub mod peer {
    include!("generated/tharsis.peer.v1.rs");
}
