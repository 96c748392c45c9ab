//! Counts words of standard input: strings, a map that is sorted, closures, generics.

use std::collections::BTreeMap;
use std::io::Read;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Short,
    Long { letters: usize },
}

fn kind(word: &str) -> Kind {
    if word.len() < 4 {
        Kind::Short
    } else {
        Kind::Long { letters: word.len() }
    }
}

fn most<K: Clone, F: Fn(&K) -> usize>(keys: &[K], weight: F) -> Option<K> {
    let mut best: Option<(usize, K)> = None;
    for key in keys {
        let now = weight(key);
        if best.as_ref().is_none_or(|(most, _)| now > *most) {
            best = Some((now, key.clone()));
        }
    }
    best.map(|(_, key)| key)
}

fn main() {
    let mut text = String::new();
    std::io::stdin().read_to_string(&mut text).unwrap();
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    let mut letters = 0;
    for word in text.split_whitespace() {
        *counts.entry(word.to_lowercase()).or_default() += 1;
        if let Kind::Long { letters: more } = kind(word) {
            letters += more;
        }
    }
    let keys: Vec<String> = counts.keys().cloned().collect();
    let frequent = most(&keys, |key| counts[key]);
    println!("{counts:?} {letters} {frequent:?}");
}
