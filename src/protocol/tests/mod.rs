//! Tables and properties that are too long for the files they are about.

mod rounds;
mod session;
mod to_legacy;
