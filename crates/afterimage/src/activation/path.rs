//! Writes the path of an activation by lines as one line of text. Each repetition is written once.

use std::collections::HashMap;

use super::Arrival;

/// The maximum length of a loop body to find in a path, in arrivals.
const LONGEST: usize = 64;
/// The length in bytes after which a path is cut.
const TOLD: usize = 1200;

/// Returns the lines of a path, with each repetition written once: `4-6 (7 10 6)×3 12-15`.
pub(super) fn folded(arrivals: &[Arrival], own: Option<&str>) -> String {
    // Numbers greater than all line numbers represent the lines of other files.
    let mut names: Vec<String> = Vec::new();
    let mut numbers: HashMap<(&str, u32), u64> = HashMap::new();
    let mut places = Vec::new();
    for arrival in arrivals {
        let (path, line) = (arrival.line.path.as_str(), arrival.line.line);
        places.push(if Some(path) == own {
            u64::from(line)
        } else {
            *numbers.entry((path, line)).or_insert_with(|| {
                names.push(arrival.line.to_string());
                OTHERS + names.len() as u64 - 1
            })
        });
    }
    let mut text = String::new();
    fold(&places, &names, &mut text);
    text
}

/// The first number that represents a line of another file.
const OTHERS: u64 = 1 << 32;

/// Returns how many times a path repeats its first `period` places.
fn times(places: &[u64], period: usize) -> usize {
    if places.first() != places.get(period) {
        return 1;
    }
    let (body, _) = places.split_at(period);
    let all = places.chunks_exact(period);
    all.take_while(|one| *one == body).count()
}

fn fold(places: &[u64], names: &[String], text: &mut String) {
    let mut at = 0;
    while at < places.len() {
        if text.len() > TOLD {
            text.push_str(" …");
            return;
        }
        let rest = &places[at..];
        let longest = LONGEST.min(rest.len() / 2);
        // Of the loops that begin here, take the loop that shortens the text most. If several do,
        // take the shortest.
        let all = (1..=longest).map(|period| (period, times(rest, period)));
        let best = all.filter(|(_, times)| *times > 1);
        let best = best.max_by_key(|(period, times)| (period * (times - 1), usize::MAX - period));
        if !text.is_empty() && !text.ends_with('(') {
            text.push(' ');
        }
        if let Some((period, times)) = best {
            text.push('(');
            // The body is at most half as long as the rest, so the recursion is not deep.
            fold(&rest[..period], names, text);
            text.push_str(&format!(")×{times}"));
            at += period * times;
            continue;
        }
        let begins_loop = |index: usize| {
            let rest = &rest[index..];
            (1..=LONGEST.min(rest.len() / 2)).any(|period| times(rest, period) > 1)
        };
        let first = rest[0];
        if let Some(name) = first
            .checked_sub(OTHERS)
            .and_then(|name| names.get(name as usize))
        {
            text.push_str(name);
            at += 1;
            continue;
        }
        let follows = |(index, next): &(usize, &u64)| **next == first + *index as u64;
        let run = rest.iter().enumerate().take_while(follows).skip(1);
        let run = 1 + run.take_while(|(index, _)| !begins_loop(*index)).count();
        if run > 2 {
            text.push_str(&format!("{first}-{}", first + run as u64 - 1));
            at += run;
        } else {
            text.push_str(&first.to_string());
            at += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::fold;

    fn folded(lines: &[u64]) -> String {
        let mut text = String::new();
        fold(lines, &[], &mut text);
        text
    }

    #[test]
    fn what_repeats_is_told_once() {
        assert_eq!(folded(&[]), "");
        assert_eq!(folded(&[4, 5, 6, 7, 9]), "4-7 9");
        let loops = [4, 5, 6, 7, 10, 6, 7, 10, 6, 7, 10, 6, 12];
        assert_eq!(folded(&loops), "4 5 (6 7 10)×3 6 12");
        let inner = [1, 2, 2, 2, 3, 1, 2, 2, 2, 3];
        assert_eq!(folded(&inner), "(1 (2)×3 3)×2");
        assert_eq!(folded(&[8, 8]), "(8)×2");
    }

    #[test]
    fn a_path_that_never_repeats_is_cut() {
        let lines = Vec::from_iter((0..100_000_u64).map(|line| line * line % 99_991));
        let text = folded(&lines);
        assert!(text.ends_with(" …") && text.len() < 1300, "{}", text.len());
    }
}
