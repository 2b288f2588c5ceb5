//! The allocator of the `tharsis` program, and the call that returns freed memory to the system.
//!
//! It keeps freed memory for a second, since another wave of tasks may come and fresh pages are slow. It
//! checks the clock only when it is called again, but an idle node does not call it. So the node calls
//! [`give_back`] after a wave.

#![allow(unsafe_code)]

use mimalloc::MiMalloc;

#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

/// `mi_option_purge_delay` of `mimalloc.h`, which the bindings leave out.
const PURGE_DELAY: libmimalloc_sys::mi_option_t = 15;
/// Time for which freed memory is kept, in milliseconds.
const KEEP_MS: std::ffi::c_long = 1_000;

/// Sets the allocator up; to be called first in `main`.
pub fn set_up() {
    // SAFETY: options are plain numbers that may be set at any time.
    unsafe { libmimalloc_sys::mi_option_set(PURGE_DELAY, KEEP_MS) };
}

/// Returns memory that this thread and others have freed to the system.
pub fn give_back() {
    // SAFETY: may be called at any time by any thread; it touches free memory only.
    unsafe { libmimalloc_sys::mi_collect(true) };
}
