//! Arbitrary bytes as a module.

#![no_main]

#[path = "../bodies/module_parser.rs"]
mod body;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| body::read_everything(bytes));
