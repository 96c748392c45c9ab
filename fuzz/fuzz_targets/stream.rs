//! Arbitrary bytes as a coded stream; the first eight are its length.

#![no_main]

#[path = "../bodies/stream.rs"]
mod body;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    if let Some((len, bytes)) = bytes.split_first_chunk() {
        body::read_everything(bytes, u64::from_le_bytes(*len));
    }
});
