//! Arbitrary bytes as a trace file.

#![no_main]

#[path = "../bodies/trace_file.rs"]
mod body;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| body::read_everything(bytes));
