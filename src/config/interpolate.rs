//! `${NAME}` in a value: replaced by the variable of the environment.

use super::Environment;

/// A text after replacement.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Filled<'t> {
    /// The text; incomplete when there are gaps.
    pub(super) text: String,
    /// Whether something of the environment is in it.
    pub(super) from_environment: bool,
    /// What could not be replaced.
    pub(super) gaps: Vec<Gap<'t>>,
}

/// Something that could not be replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Gap<'t> {
    /// The environment has no variable of this name.
    Missing(&'t str),
    /// No name and closing brace follow a `${`.
    Malformed,
}

/// Replaces each `${NAME}` by its variable, and `$${` by `${`. What was put in is not looked at
/// again: a variable can't refer to others.
pub(super) fn fill<'t>(written: &'t str, environment: Environment<'_>) -> Filled<'t> {
    let mut filled = Filled::default();
    let mut rest = written;
    while let Some((before, after)) = rest.split_once("${") {
        if let Some(before) = before.strip_suffix('$') {
            filled.text.push_str(before);
            filled.text.push_str("${");
            rest = after;
            continue;
        }
        filled.text.push_str(before);
        let Some((name, after)) = after.split_once('}').filter(|(name, _)| is_name(name)) else {
            filled.gaps.push(Gap::Malformed);
            return filled;
        };
        match environment(name) {
            Some(value) => {
                filled.text.push_str(&value);
                filled.from_environment = true;
            }
            None => filled.gaps.push(Gap::Missing(name)),
        }
        rest = after;
    }
    filled.text.push_str(rest);
    filled
}

fn is_name(name: &str) -> bool {
    name.starts_with(|c: char| c == '_' || c.is_ascii_alphabetic())
        && name.chars().all(|c| c == '_' || c.is_ascii_alphanumeric())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(written: &str, text: &str, gaps: &[Gap<'_>]) {
        let environment = |name: &str| match name {
            "KEY" => Some("s3cret".to_owned()),
            "EMPTY" => Some(String::new()),
            "NESTED" => Some("${KEY}".to_owned()),
            _ => None,
        };
        let filled = fill(written, &environment);
        assert_eq!((filled.text.as_str(), filled.gaps.as_slice()), (text, gaps));
    }

    #[test]
    fn names_are_replaced_wherever_they_stand() {
        check("plain", "plain", &[]);
        check("${KEY}", "s3cret", &[]);
        check("Bearer ${KEY}!", "Bearer s3cret!", &[]);
        check("${KEY}${KEY}", "s3crets3cret", &[]);
        check("[${EMPTY}]", "[]", &[]);
    }

    #[test]
    fn what_was_put_in_is_not_replaced_again() {
        check("${NESTED}", "${KEY}", &[]);
    }

    #[test]
    fn dollars_without_a_brace_and_doubled_ones_stay() {
        check("$5 or $KEY", "$5 or $KEY", &[]);
        check("$${KEY}", "${KEY}", &[]);
        check("a$$b", "a$$b", &[]);
    }

    #[test]
    fn every_missing_name_is_told() {
        check(
            "${ONE}-${KEY}-${TWO}",
            "-s3cret-",
            &[Gap::Missing("ONE"), Gap::Missing("TWO")],
        );
    }

    #[test]
    fn what_is_no_name_is_not_guessed() {
        for written in ["${KEY", "${}", "${KEY:-default}", "${1KEY}", "${a b}"] {
            check(written, "", &[Gap::Malformed]);
        }
    }
}
