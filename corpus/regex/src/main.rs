//! `regex PATTERNS FILE`: counts the matches in FILE of each pattern (one per line).

use regex::Regex;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut paths = std::env::args().skip(1);
    let (Some(patterns), Some(file)) = (paths.next(), paths.next()) else {
        return Err("usage: regex PATTERNS FILE".into());
    };
    let text = std::fs::read_to_string(file)?;
    for pattern in std::fs::read_to_string(patterns)?.lines() {
        let regex = Regex::new(pattern)?;
        let (mut matches, mut captured) = (0, 0);
        for found in regex.captures_iter(&text) {
            matches += 1;
            captured += found
                .iter()
                .skip(1)
                .flatten()
                .map(|group| group.len())
                .sum::<usize>();
        }
        println!("{matches:7} matches, {captured:8} bytes captured: {pattern}");
    }
    Ok(())
}
