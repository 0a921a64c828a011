//! An error with everything that led to it, in one line.

use std::error::Error;
use std::fmt;

/// An error and its causes, joined by `: `. A cause that the error before it already ends with is
/// said once.
pub struct Causes<'a>(pub &'a dyn Error);

impl fmt::Display for Causes<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut said = self.0.to_string();
        f.write_str(&said)?;
        let mut cause = self.0.source();
        while let Some(error) = cause {
            let text = error.to_string();
            if !said.ends_with(&text) {
                write!(f, ": {text}")?;
                said = text;
            }
            cause = error.source();
        }
        Ok(())
    }
}

impl fmt::Debug for Causes<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    enum Layer {
        #[error("the file can't be read")]
        Plain(#[source] std::io::Error),
        #[error("the file can't be read: {0}")]
        Doubled(#[source] std::io::Error),
    }

    #[test]
    fn every_cause_is_said_once() {
        let cause = || std::io::Error::other("the disk is gone");
        let expected = "the file can't be read: the disk is gone";
        assert_eq!(Causes(&Layer::Plain(cause())).to_string(), expected);
        assert_eq!(Causes(&Layer::Doubled(cause())).to_string(), expected);
    }
}
