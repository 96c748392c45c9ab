//! Makes recordings of generated guests.

use super::guests;
use crate::common::Sandbox;

/// Records a number of guests with all values, and passes each recording, `run.aft`, to `show`.
/// Each byte of the input is its own offset.
pub fn each_recorded(seeds: u64, mut show: impl FnMut(&Sandbox)) {
    for seed in 0..seeds {
        let text = guests::guest(seed, seed % 3 == 1, seed % 5 == 4);
        let sandbox = Sandbox::new();
        sandbox.wasm("a.wasm", &text);
        sandbox.write("input", Vec::from_iter((0..200).map(|i| i as u8)));
        let recorded =
            sandbox.shell("$AFTERIMAGE record --lens full -o run.aft a.wasm < input > output");
        assert_eq!(recorded.code, Some(0), "{recorded:?}\n{text}");
        show(&sandbox);
    }
}
