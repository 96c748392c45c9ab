//! Suggests similar names for names that do not exist.

/// Returns up to five names that share most of their letters with `query`, the most similar first.
///
/// The distance of two names is the length of the longer one, without the equal letters at the
/// start and at the end. Upper and lower case are equal. So swapped, omitted and added letters are
/// tolerated. O(names).
pub(crate) fn nearest<'a>(query: &str, names: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    let alike = |name: &str| {
        let same = |(a, b): &(char, char)| a.eq_ignore_ascii_case(b);
        let start = query.chars().zip(name.chars()).take_while(same).count();
        let end = query
            .chars()
            .rev()
            .zip(name.chars().rev())
            .take_while(same)
            .count();
        let longer = query.chars().count().max(name.chars().count());
        (longer, longer - (start + end).min(longer))
    };
    let mut found: Vec<(usize, &str)> = Vec::new();
    for name in names {
        let (longer, apart) = alike(name);
        if apart <= (longer / 3).max(2).min(longer.saturating_sub(1))
            && longer > 1
            && !found.iter().any(|(_, known)| *known == name)
        {
            found.push((apart, name));
            found.sort_by_key(|(apart, _)| *apart);
            found.truncate(5);
        }
    }
    found
        .into_iter()
        .map(|(_, name)| name.to_string())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn slips_of_the_hand_are_found() {
        let names = ["counter", "count", "table", "x", "y"];
        assert_eq!(nearest("conuter", names), ["counter"]);
        assert_eq!(nearest("tabel", names), ["table"]);
        assert_eq!(nearest("cout", names), ["count"]);
        assert!(nearest("zebra", names).is_empty());
        assert!(nearest("z", names).is_empty());
    }
}
