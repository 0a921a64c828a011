//! The command line: a file a command.

pub mod audit;
pub mod check;
