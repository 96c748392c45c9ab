//! Arbitrary bytes as a history of misses or a summary, or as the description of a simulation.

#![no_main]

#[path = "../bodies/simulation.rs"]
mod body;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    body::read_history(bytes, false);
    body::read_history(bytes, true);
    body::read_summary(bytes);
    if let Ok(text) = std::str::from_utf8(bytes) {
        body::read_spec(text);
    }
});
