//! Suggests similar names for names that do not exist.

/// Returns up to five candidates that differ from `query` in at most a third of its characters, or
/// in one character, best first. Candidates of equal distance keep their order.
///
/// O(candidates of about the query's length × the square of that length).
pub fn nearest<'a>(query: &str, candidates: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    let query: Vec<char> = query.chars().collect();
    let limit = (query.len() / 3).max(1);
    let mut found: Vec<(usize, &str)> = Vec::new();
    for candidate in candidates {
        // If the byte lengths differ much, the names also differ. This check keeps long names
        // cheap.
        let chars = candidate.len().div_ceil(4)..=candidate.len();
        if *chars.start() > query.len() + limit || *chars.end() + limit < query.len() {
            continue;
        }
        let distance = edit_distance(&query, candidate);
        if distance <= limit && !found.iter().any(|(_, name)| *name == candidate) {
            found.push((distance, candidate));
            found.sort_by_key(|(distance, _)| *distance);
            found.truncate(5);
        }
    }
    found.into_iter().map(|(_, name)| name).collect()
}

/// Returns the number of characters that must be inserted, removed, replaced or exchanged with a
/// neighbour, ignoring case. An exchanged pair is not edited in any other way ("optimal string
/// alignment", Damerau 1964).
fn edit_distance(a: &[char], b: &str) -> usize {
    let same = |x: char, y: char| x.to_lowercase().eq(y.to_lowercase());
    // These are the rows of the last two characters of `b`, and the row of the current character.
    let mut older: Vec<usize> = Vec::new();
    let mut old: Vec<usize> = Vec::new();
    let mut row: Vec<usize> = (0..=a.len()).collect();
    let mut before = None;
    for (j, y) in b.chars().enumerate() {
        std::mem::swap(&mut older, &mut old);
        std::mem::swap(&mut old, &mut row);
        row.clear();
        row.push(j + 1);
        for (i, &x) in a.iter().enumerate() {
            let replaced = old[i] + usize::from(!same(x, y));
            let mut least = replaced.min(old[i + 1] + 1).min(row[i] + 1);
            if let (Some(z), Some(w)) = (before, i.checked_sub(1).map(|i| a[i]))
                && same(x, z)
                && same(w, y)
            {
                least = least.min(older[i - 1] + 1);
            }
            row.push(least);
        }
        before = Some(y);
    }
    row[a.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn distance(a: &str, b: &str) -> usize {
        edit_distance(&a.chars().collect::<Vec<_>>(), b)
    }

    #[test]
    fn distances_of_textbook_pairs() {
        assert_eq!(distance("kitten", "sitting"), 3);
        assert_eq!(distance("saturday", "sunday"), 3);
        assert_eq!(distance("", "abc"), 3);
        assert_eq!(distance("abc", ""), 3);
        assert_eq!(distance("Main", "main"), 0);
        // An exchange of neighbours counts as one edit in Damerau's distance, but not in
        // Levenshtein's.
        assert_eq!(distance("mian", "main"), 1);
        assert_eq!(distance("ab", "ba"), 1);
        assert_eq!(distance("abcd", "badc"), 2);
        assert_eq!(distance("ca", "abc"), 3);
    }

    #[test]
    fn only_near_names_are_suggested_best_first() {
        let names = ["compresses", "compress", "decompress", "zzz", "comprez"];
        assert_eq!(nearest("compres", names), ["compress", "comprez"]);
        assert!(nearest("qqqqqq", names).is_empty());
        assert_eq!(
            nearest("mian", ["mean", "main", "min"]),
            ["mean", "main", "min"]
        );
        assert_eq!(nearest("fi", ["if", "xy"]), ["if"]);
    }
}
