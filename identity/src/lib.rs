//! Identities of the machines of a cluster: who is one of it, and TLS between those who are.
//!
//! ```text
//! authority (on the head)          machine                            node process
//! CA key, tokens, revocations      one certificate for a year         one certificate per start
//!      │ token ──────────────────▶ joins once, keeps its identity
//!      │ ◀───────────────────────── asks with it at each start ─────▶ links, calls, transfers
//! ```
//! - [`Authority`] signs certificates and keeps tokens and revoked machines in a folder of the head. Another
//!   key can replace its own while members go on ([`Anchors`]).
//! - [`Token`] admits one machine. It carries the hash of the authority's certificate, so whoever joins knows
//!   whom it talks to before it shows anything.
//! - [`MachineFolder`] keeps the identity of this machine for each cluster that it joined.
//! - [`Tls`] is an [`Identity`] in use: TLS 1.3 with certificates on both sides, replaced while connections
//!   go on.
//!
//! A certificate names its [`Subject`]: the machine, its [`Role`], and the node if it is a node's. Names are
//! DNS names below `tharsis`, so that the verifiers of rustls check them.
//!
//! This crate knows no sockets and no processes.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod admitted;
mod anchors;
mod authority;
mod clock;
mod error;
mod keys;
mod machine;
mod private;
mod rows;
mod subject;
mod tls;
mod token;

pub use anchors::{Anchors, Former};
pub use authority::{Authority, MachineRecord, TokenRecord};
pub use clock::words_about_clocks;
pub use error::IdentityError;
pub use keys::AUTHORITY_LIFETIME;
pub use machine::{Identity, MachineFolder, NewKey};
pub use rows::Row;
pub use subject::{MachineId, Role, Subject};
pub use tls::{Called, Tls, pinned, proof_key, subject_of};
pub use token::{AuthorityHash, Token};
