//! Compiles a guest with the Rust compiler, with debug information.

use std::path::Path;
use std::sync::OnceLock;

use afterimage_testkit::tools;

pub fn with_debug_information() -> &'static [u8] {
    static GUEST: OnceLock<Vec<u8>> = OnceLock::new();
    GUEST.get_or_init(|| {
        let folder = tempfile::tempdir().unwrap();
        let out = folder.path().join("guest.wasm");
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/guests/lines.rs");
        let status = tools::rustc()
            .args(["--edition", "2021", "-C", "opt-level=1", "-g", "-o"])
            .arg(&out)
            .arg(source)
            .status()
            .expect("rustc runs");
        assert!(
            status.success(),
            "the guest compiles; is the target wasm32-wasip1 installed?"
        );
        std::fs::read(out).unwrap()
    })
}
