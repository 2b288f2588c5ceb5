//! Mistakes in statements, told in words of SQL.
//!
//! | concern | module |
//! |---|---|
//! | mistakes, with their places in the text | `mistakes`, `placed`, `marks` |
//! | reasons of the library and of the parser in other words, near names | `reasons`, `syntax`, `near` |
//! | words of other databases, and what stands for them | `meant` |
//! | parts of statements that errors do not show | `secrets` |

pub(super) mod marks;
pub(super) mod meant;
pub(super) mod mistakes;
pub(super) mod near;
pub(super) mod placed;
pub(super) mod reasons;
pub(super) mod secrets;
pub(super) mod syntax;
