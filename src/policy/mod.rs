//! What happens to a question on its way to the person and back: who else is asked for an opinion.

pub mod hook;
