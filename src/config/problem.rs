//! What is wrong with a configuration file, where, and what to write instead.
//!
//! # Invariants
//! - A text that came from the environment is in no problem: a value is quoted as the file spells
//!   it, with `${NAME}` unexpanded, and where people write secrets it isn't quoted at all.
//! - Problems are listed in the order of the file.

use std::fmt;

/// Everything that is wrong with one configuration file; never empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problems {
    name: String,
    list: Vec<Problem>,
}

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Where; `None` when the file as a whole is meant.
    pub at: Option<Position>,
    /// What is wrong, starting with the key, as in ``limits.body: `4 apples` is not a size``.
    pub what: String,
    /// What to do about it, as a command: ``write `4MiB` ``.
    pub instead: String,
}

/// A place in a file. Both numbers start at 1; columns count characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    /// The line.
    pub line: u64,
    /// The column.
    pub column: u64,
}

impl Problems {
    pub(super) fn new(name: &str, mut list: Vec<Problem>) -> Self {
        list.sort_by_key(|problem| problem.at);
        // What an alias repeats is wrong once.
        list.dedup();
        Self {
            name: name.to_owned(),
            list,
        }
    }

    /// The problems, in the order of the file.
    pub fn iter(&self) -> std::slice::Iter<'_, Problem> {
        self.list.iter()
    }
}

impl<'a> IntoIterator for &'a Problems {
    type Item = &'a Problem;
    type IntoIter = std::slice::Iter<'a, Problem>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

/// One line for each problem, in the form that editors jump to: `gateway.yaml:12:5: what; instead`.
impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, problem) in self.list.iter().enumerate() {
            if number > 0 {
                f.write_str("\n")?;
            }
            write!(f, "{}:", self.name)?;
            if let Some(Position { line, column }) = problem.at {
                write!(f, "{line}:{column}:")?;
            }
            write!(f, " {problem}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Problems {}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; {}", self.what, self.instead)
    }
}
