//! Generates names for programs and prose.

use super::rng::Rng;

const WORDS: &[&str] = &[
    "node", "size", "list", "index", "value", "count", "next", "buffer", "state", "table", "entry",
    "data", "block", "offset", "length", "key", "path", "edge", "frame", "token", "line", "symbol",
    "cursor", "record", "stream", "chunk", "parent", "queue", "cache", "limit", "handle", "option",
    "weight", "source", "target", "region", "layer", "field", "scope", "error", "event", "result",
    "store", "width", "depth", "order", "total", "signal", "window", "vector", "matrix", "segment",
    "bucket", "branch", "counter", "header", "marker", "object", "packet", "range", "sample",
    "thread", "update", "visit", "worker", "anchor", "column", "domain", "filter", "graph", "hash",
    "label", "margin", "number", "output", "parser", "radius", "scale", "timer", "union", "volume",
    "writer", "zone", "digest",
];

/// Returns one word, common words more often.
pub fn word(rng: &mut Rng) -> &'static str {
    rng.favour(WORDS)
}

/// Returns an identifier of one or two words, in `snake_case`.
pub fn snake(rng: &mut Rng) -> String {
    let first = word(rng);
    if rng.chance(45) {
        format!("{first}_{}", word(rng))
    } else {
        format!("{first}s")
    }
}

/// Returns an identifier of two words, in `CamelCase`.
pub fn camel(rng: &mut Rng) -> String {
    let mut name = capital(word(rng));
    name.push_str(&capital(word(rng)));
    name
}

/// Returns `word` with a capital first letter.
pub fn capital(word: &str) -> String {
    let mut letters = word.chars();
    letters.next().map_or_else(String::new, |first| {
        first.to_uppercase().chain(letters).collect()
    })
}

/// Returns a sentence of `length` words, with a capital and a full stop.
pub fn sentence(rng: &mut Rng, length: usize) -> String {
    const SMALL: &[&str] = &[
        "the", "of", "a", "is", "to", "and", "in", "for", "that", "with", "not", "by",
    ];
    let mut text = capital(rng.favour(SMALL));
    for position in 1..length {
        text.push_str(if position % 9 == 0 { ", " } else { " " });
        text.push_str(if position % 2 == 0 {
            rng.favour(SMALL)
        } else {
            word(rng)
        });
    }
    text.push('.');
    text
}
