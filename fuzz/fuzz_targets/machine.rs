//! Arbitrary nodes and an arbitrary log along a generated module.

#![no_main]

use afterimage_testkit::modules::{ModuleConfig, module_from_seed};

#[path = "../bodies/machine.rs"]
mod body;

libfuzzer_sys::fuzz_target!(|input: (u64, &[u8])| {
    let (seed, choices) = input;
    let config = ModuleConfig {
        imports: true,
        ..ModuleConfig::default()
    };
    body::follow_anything(&module_from_seed(seed, &config), choices);
});
