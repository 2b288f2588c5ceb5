//! The allocator of the stock program, and how it is told to let go.
//!
//! It keeps freed memory for a moment and looks at the clock only when it is called again. A node that has nothing to do
//! calls nobody; after a wave of tasks it says so itself.

#![allow(unsafe_code)]

use mimalloc::MiMalloc;

#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

/// Gives memory that this thread and others have freed back to the system.
pub fn give_back() {
    // SAFETY: may be called at any time by any thread; it touches free memory only.
    unsafe { libmimalloc_sys::mi_collect(true) };
}
