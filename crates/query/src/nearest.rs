//! The most similar of many names.

/// The candidate with the smallest edit distance to `wanted` (the first of several), if
/// it is at all similar: a name that holds the wanted text counts as very similar. O(candidates × lengths).
pub(crate) fn nearest<'c>(wanted: &str, candidates: Vec<&'c str>) -> Option<&'c str> {
    let holding = |name: &&&str| !wanted.is_empty() && name.contains(wanted);
    if let Some(name) = candidates.iter().filter(holding).min_by_key(|name| name.len()) {
        return Some(name);
    }
    let wanted: Vec<char> = wanted.chars().collect();
    let mut best = None;
    let mut row = Vec::new();
    for name in candidates {
        // No distance can be smaller than the difference of the lengths.
        let limit = best.map_or(wanted.len() / 2 + 1, |(distance, _)| distance);
        if name.chars().count().abs_diff(wanted.len()) >= limit {
            continue;
        }
        let distance = edit_distance(&wanted, name, &mut row);
        if distance < limit {
            best = Some((distance, name));
        }
    }
    best.map(|(_, name)| name)
}

/// Insertions, deletions and replacements from one text to the other (Levenshtein 1966), by
/// the row-wise dynamic program of Wagner and Fischer 1974.
fn edit_distance(a: &[char], b: &str, row: &mut Vec<usize>) -> usize {
    row.clear();
    row.extend(0..=a.len());
    for (i, from_b) in b.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, &from_a) in a.iter().enumerate() {
            let replaced = diagonal + usize::from(from_a != from_b);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[a.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edit_distances() {
        let distance = |a: &str, b| edit_distance(&a.chars().collect::<Vec<_>>(), b, &mut vec![]);
        assert_eq!(distance("kitten", "sitting"), 3);
        assert_eq!(distance("", "abc"), 3);
        assert_eq!(distance("abc", ""), 3);
        assert_eq!(distance("flaw", "lawn"), 2);
    }

    #[test]
    fn the_nearest_name_is_similar_or_none() {
        let names = || vec!["alloc", "main", "memcpy", "memset", "print_tree"];
        assert_eq!(nearest("mian", names()), Some("main"));
        assert_eq!(nearest("memst", names()), Some("memset"));
        assert_eq!(nearest("tree", names()), Some("print_tree"));
        assert_eq!(nearest("zzzzzzzz", names()), None);
        assert_eq!(nearest("x", vec![]), None);
    }
}
