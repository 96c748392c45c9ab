//! Arbitrary epochs of a small run.

#![no_main]

use std::sync::LazyLock;

#[path = "../bodies/values.rs"]
mod body;

static MODULE: LazyLock<Vec<u8>> = LazyLock::new(|| wat::parse_str(body::GUEST).expect("a module"));

libfuzzer_sys::fuzz_target!(|epochs: Vec<(u8, Vec<u8>)>| {
    let mut before = 0;
    let epochs = epochs.into_iter().map(|(blocks, bytes)| {
        let epoch = (before, bytes);
        before += u64::from(blocks);
        epoch
    });
    let epochs: Vec<_> = epochs.collect();
    body::Guest::new(MODULE.clone()).ask(&epochs);
});
