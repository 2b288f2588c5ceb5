//! Lazy tensor expressions and the chunk plans made of them.
