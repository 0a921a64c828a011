//! The command line: a file a command.

pub mod audit;
