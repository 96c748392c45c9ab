//! Tests paths and logs that do not fit their module.

#[path = "../../../../fuzz/bodies/machine.rs"]
pub mod body;

use afterimage_testkit::modules::{HANDWRITTEN, ModuleConfig, SplitMix64, module_from_seed};
use body::follow_anything;

fn choices(random: &mut SplitMix64) -> Vec<u8> {
    let length = 200 + random.below(4000);
    Vec::from_iter((0..length).map(|_| random.next() as u8))
}

#[test]
fn anything_along_generated_modules() {
    let random = &mut SplitMix64(8);
    let mut executed = 0;
    for seed in 0..40 {
        let config = ModuleConfig {
            imports: seed % 2 == 0,
            traps: seed % 3 == 0,
            ..ModuleConfig::default()
        };
        let module = module_from_seed(700_000 + seed, &config);
        for _ in 0..8 {
            executed += follow_anything(&module, &choices(random));
        }
    }
    assert!(executed > 1000, "only {executed} nodes were executed");
}

#[test]
fn anything_along_handwritten_modules() {
    let random = &mut SplitMix64(9);
    let mut executed = 0;
    for (_, text) in HANDWRITTEN {
        let module = wat::parse_str(text).expect("a module");
        for _ in 0..40 {
            executed += follow_anything(&module, &choices(random));
        }
    }
    assert!(executed > 1000, "only {executed} nodes were executed");
}
