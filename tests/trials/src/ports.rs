//! Ports for servers that a test starts.

use std::net::TcpListener;
use std::sync::atomic::{AtomicU32, Ordering};

/// Below the ports that Linux gives to connections.
const FIRST_PORT: u16 = 12_000;
const PORT_COUNT: u32 = 20_000;

/// Ports that nobody listens on now. The system gives none of them to a connection, so a server finds its
/// port free, also when it is started again.
#[must_use]
pub fn free_ports<const N: usize>() -> [u16; N] {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    // Each process begins elsewhere, since others look for ports at the same time.
    let begin = std::process::id().wrapping_mul(101);
    std::array::from_fn(|_| {
        loop {
            let offset = begin.wrapping_add(NEXT.fetch_add(1, Ordering::Relaxed)) % PORT_COUNT;
            let port = FIRST_PORT + offset as u16;
            if TcpListener::bind(("127.0.0.1", port)).is_ok() {
                break port;
            }
        }
    })
}
