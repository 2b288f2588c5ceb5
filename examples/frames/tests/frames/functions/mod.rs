//! Functions of the program give the same wherever they run.

pub mod faults;
pub mod groups;
pub mod rows;
