//! Compiles guests with debug information, with the compilers that the machine has.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use afterimage_testkit::tools;

/// A compiled guest.
pub struct Compiled {
    /// The file of its source.
    pub source: &'static str,
    /// The optimisation level and further options.
    pub level: &'static str,
    pub module: Vec<u8>,
}

/// Returns all guests, at all levels. Names missing C compilers on standard error.
pub fn compiled() -> &'static [Compiled] {
    static GUESTS: OnceLock<Vec<Compiled>> = OnceLock::new();
    GUESTS.get_or_init(|| {
        let mut guests = Vec::new();
        for (source, level) in [
            ("list.c", "0"),
            ("list.c", "2"),
            ("list.c", "2 -gdwarf-5"),
            ("list.c", "0 -gdwarf-5"),
            ("shapes.cpp", "0"),
            ("shapes.cpp", "2"),
            ("shapes.cpp", "2 -gdwarf-5"),
            ("shapes.cpp", "0 -fdebug-types-section"),
            ("rust.rs", "0"),
            ("rust.rs", "2"),
        ] {
            if let Some(module) = compile(source, level) {
                guests.push(Compiled {
                    source,
                    level,
                    module,
                });
            }
        }
        guests
    })
}

fn compile(source: &str, level: &str) -> Option<Vec<u8>> {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("guest.wasm");
    let path: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/guests")
        .join(source);
    if source.ends_with(".rs") {
        let mut rustc = tools::rustc();
        rustc.args(["--edition", "2021", "-g", "-C"]);
        rustc.arg(format!("opt-level={level}"));
        let output = rustc.arg("-o").arg(&out).arg(path).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{said}");
    } else {
        let level = format!("-O{level}");
        let mut options = vec!["-g", "-fno-exceptions", "-fno-rtti"];
        options.extend(level.split(' '));
        let link = ["-Wl,--no-entry", "-Wl,--export-all"];
        tools::clang()?.module(&options, &[path], &link, &out);
    }
    Some(std::fs::read(out).unwrap())
}
