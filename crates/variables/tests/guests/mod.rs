//! Guests that compilers make, with debug information; those whose compiler is on the machine.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

/// A compiled guest.
pub struct Compiled {
    /// The file of its source.
    pub source: &'static str,
    /// How it was optimised, and with which further options.
    pub level: &'static str,
    pub module: Vec<u8>,
}

/// All guests, at all levels. A compiler that is missing is named on standard error.
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
            match compile(source, level) {
                Some(module) => guests.push(Compiled {
                    source,
                    level,
                    module,
                }),
                None => eprintln!("asleep: nothing here compiles {source} to WebAssembly"),
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
    let mut command = if source.ends_with(".rs") {
        let mut command = Command::new(std::env::var_os("RUSTC").unwrap_or("rustc".into()));
        command.args(["--target", "wasm32-wasip1", "--edition", "2021", "-g", "-C"]);
        command.arg(format!("opt-level={level}"));
        command
    } else {
        let clang = ["clang-19", "clang"]
            .into_iter()
            .find(|name| targets_wasm(name))?;
        let mut command = Command::new(clang);
        command.args([
            "--target=wasm32-wasi",
            "-nostdlib",
            "-g",
            "-fno-exceptions",
            "-fno-rtti",
        ]);
        command.args(["-Wl,--no-entry", "-Wl,--export-all"]);
        command.args(format!("-O{level}").split(' '));
        command
    };
    let output = command.arg("-o").arg(&out).arg(path).output().ok()?;
    if !output.status.success() {
        eprintln!("{}", String::from_utf8_lossy(&output.stderr));
        return None;
    }
    std::fs::read(out).ok()
}

fn targets_wasm(clang: &str) -> bool {
    let targets = Command::new(clang)
        .arg("--print-targets")
        .stderr(Stdio::null())
        .output();
    targets.is_ok_and(|output| String::from_utf8_lossy(&output.stdout).contains("wasm32"))
}
