use std::collections::HashMap;

fn next(state: &mut u32) -> u32 {
    *state ^= *state << 13;
    *state ^= *state >> 17;
    *state ^= *state << 5;
    *state
}

fn count<'t>(words: &[&'t str], all: &mut HashMap<&'t str, u32>) {
    for word in words {
        let seen = all.entry(word).or_default();
        *seen += 1;
    }
}

fn main() {
    let rounds = std::env::args().nth(1).map_or(3, |text| text.parse().unwrap());
    let text = ["the", "run", "is", "the", "same", "each", "time"];
    let mut all = HashMap::new();
    let mut state = 1;
    for _ in 0..rounds {
        let from = next(&mut state) as usize % text.len();
        count(&text[from..], &mut all);
    }
    let mut sorted = Vec::from_iter(&all);
    sorted.sort();
    println!("{sorted:?}");
}
