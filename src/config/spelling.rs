//! "Did you mean …?": the known name that is nearest to a written one.

/// The name that was probably meant: at most a third of its letters differ.
pub(super) fn nearest<'n>(written: &str, names: &[&'n str]) -> Option<&'n str> {
    // `perPrincipal` and `per-principal` are near enough to be told.
    let written = written.to_lowercase().replace('-', "_");
    let distances = names
        .iter()
        .map(|name| (distance(&written, &name.to_lowercase()), *name));
    let (distance, name) = distances.min_by_key(|(distance, _)| *distance)?;
    (distance <= name.chars().count() / 3).then_some(name)
}

/// How many letters must be added, removed, replaced or swapped with their neighbour (the
/// restricted Damerau-Levenshtein distance), a row of the usual table at a time.
fn distance(a: &str, b: &str) -> usize {
    let a: Vec<char> = a.chars().collect();
    let b: Vec<char> = b.chars().collect();
    let mut two_above: Vec<usize> = Vec::new();
    let mut above: Vec<usize> = (0..=b.len()).collect();
    for (row, letter) in a.iter().enumerate() {
        let mut current = vec![row + 1];
        for (column, other) in b.iter().enumerate() {
            let mut cost = cell(&above, column) + usize::from(letter != other);
            cost = cost
                .min(cell(&above, column + 1) + 1)
                .min(cell(&current, column) + 1);
            let swapped = row > 0
                && column > 0
                && a.get(row - 1) == Some(other)
                && b.get(column - 1) == Some(letter);
            if swapped {
                cost = cost.min(cell(&two_above, column - 1) + 1);
            }
            current.push(cost);
        }
        two_above = std::mem::replace(&mut above, current);
    }
    cell(&above, b.len())
}

fn cell(row: &[usize], column: usize) -> usize {
    row.get(column).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(written: &str, expected: Option<&str>) {
        let names = [
            "requests",
            "burst",
            "concurrent",
            "per_principal",
            "max",
            "url",
        ];
        assert_eq!(nearest(written, &names), expected, "{written}");
    }

    #[test]
    fn slips_of_the_keyboard_are_recognized() {
        check("burts", Some("burst"));
        check("brst", Some("burst"));
        check("bursts", Some("burst"));
        check("request", Some("requests"));
        check("concurent", Some("concurrent"));
        check("mx", Some("max"));
    }

    #[test]
    fn other_ways_to_join_words_are_recognized() {
        check("perPrincipal", Some("per_principal"));
        check("per-principal", Some("per_principal"));
        check("URL", Some("url"));
    }

    #[test]
    fn what_is_far_from_all_names_is_not_guessed() {
        check("timeout", None);
        check("uri2", None);
        check("", None);
    }

    #[test]
    fn the_distance_counts_edits_and_swaps() {
        for (a, b, edits) in [
            ("", "", 0),
            ("", "abc", 3),
            ("abc", "abc", 0),
            ("abc", "acb", 1),
            ("kitten", "sitting", 3),
        ] {
            assert_eq!(distance(a, b), edits, "{a} {b}");
            assert_eq!(distance(b, a), edits, "{b} {a}");
        }
    }
}
