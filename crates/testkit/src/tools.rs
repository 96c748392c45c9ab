//! Starts external programs so that their behaviour depends only on their input.
//!
//! Each function returns a [`Command`] with its own environment. So a test has the same result for
//! everybody, whatever their `RUSTFLAGS`, `CPATH`, `NODE_OPTIONS`, locale or dotfiles. Only this
//! module starts programs in tests, which `clippy.toml` enforces.

use std::env;
use std::ffi::OsStr;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use tempfile::tempdir;

/// Returns a command whose environment does not depend on the user. Only the search path and the
/// folder for temporary files are inherited. Standard input is empty.
pub fn command(program: impl AsRef<OsStr>) -> Command {
    #[expect(clippy::disallowed_methods, reason = "the one place that does")]
    let mut command = Command::new(program);
    command
        .env_clear()
        .env("PATH", env::var_os("PATH").unwrap_or_default())
        .env("TMPDIR", env::temp_dir())
        .env("LC_ALL", "C")
        .stdin(Stdio::null());
    command
}

/// Returns the Rust compiler for `wasm32-wasip1`. Its own linker keeps names and lines, and never
/// runs `wasm-opt`.
pub fn rustc() -> Command {
    let mut rustc = command(env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()));
    // These variables show rustup where the compiler is.
    for variable in ["HOME", "RUSTUP_HOME", "CARGO_HOME", "RUSTUP_TOOLCHAIN"] {
        if let Some(value) = env::var_os(variable) {
            rustc.env(variable, value);
        }
    }
    rustc.args(["--target", "wasm32-wasip1"]);
    rustc
}

/// Reports on standard error that a check is skipped. The test harness captures the output of
/// macros, so the function writes to the stream directly.
pub fn skipped(what: &str) {
    let _ = writeln!(std::io::stderr(), "SKIPPED: {what}");
}

/// Whether a program can be started. If not, reports that its check is skipped.
pub fn installed(tool: &str) -> bool {
    let status = command(tool)
        .arg("--version")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    if status.is_err() {
        skipped(&format!("{tool} is not installed"));
    }
    status.is_ok()
}

/// A C and C++ compiler for WebAssembly. It compiles and links in two steps. In one step with
/// optimisation, clang would run `wasm-opt` if present, which discards names and lines.
#[derive(Clone, Debug)]
pub struct Clang {
    program: &'static str,
}

/// Compilers that can target WebAssembly, in order of preference.
const CLANGS: [&str; 2] = ["clang-19", "clang"];

/// Options for a target without a C library.
const TARGET: [&str; 2] = ["--target=wasm32-wasi", "-nostdlib"];

/// Returns an installed compiler that can make a module. If there is none, reports this at each
/// call.
pub fn clang() -> Option<Clang> {
    static FOUND: OnceLock<Option<Clang>> = OnceLock::new();
    let found = FOUND.get_or_init(|| {
        let folder = tempdir().ok()?;
        let source = folder.path().join("probe.c");
        fs::write(&source, "int probe;").ok()?;
        let mut all = CLANGS.into_iter().map(|program| Clang { program });
        all.find(|clang| {
            let out = folder.path().join("probe.wasm");
            clang
                .try_module(&[], &[&source], &["-Wl,--no-entry"], &out)
                .is_ok()
        })
    });
    if found.is_none() {
        skipped("nothing here compiles C to WebAssembly: clang-19 and lld-19 do");
    }
    found.clone()
}

impl Clang {
    /// Compiles each source with `options` and links the objects with `link` into the module `out`,
    /// without a C library.
    ///
    /// # Panics
    /// Panics if compiling or linking fails.
    #[track_caller]
    pub fn module<S: AsRef<Path>>(
        &self,
        options: &[&str],
        sources: &[S],
        link: &[&str],
        out: &Path,
    ) {
        if let Err(said) = self.try_module(options, sources, link, out) {
            panic!("{said}");
        }
    }

    /// Like [`module`](Self::module), but returns an error.
    ///
    /// # Errors
    /// Returns the output of the compiler or the linker if it fails.
    pub fn try_module<S: AsRef<Path>>(
        &self,
        options: &[&str],
        sources: &[S],
        link: &[&str],
        out: &Path,
    ) -> Result<(), String> {
        let folder = tempdir().map_err(|error| error.to_string())?;
        let objects: Vec<PathBuf> = (0..sources.len())
            .map(|number| folder.path().join(format!("{number}.o")))
            .collect();
        for (source, object) in sources.iter().zip(&objects) {
            self.object(options, source.as_ref(), object)?;
        }
        self.link(&objects, link, out)
    }

    /// Compiles one source to an object.
    ///
    /// # Errors
    /// Returns the compiler's output if the compiler fails.
    pub fn object(&self, options: &[&str], source: &Path, object: &Path) -> Result<(), String> {
        let mut compiler = self.command();
        ran(compiler
            .args(options)
            .args(["-c", "-o"])
            .arg(object)
            .arg(source))
    }

    /// Links objects into a module. This passes no optimisation level.
    ///
    /// # Errors
    /// Returns the linker's output if the linker fails.
    pub fn link<S: AsRef<Path>>(
        &self,
        objects: &[S],
        options: &[&str],
        out: &Path,
    ) -> Result<(), String> {
        let mut linker = self.command();
        for object in objects {
            linker.arg(object.as_ref());
        }
        ran(linker.args(options).arg("-o").arg(out))
    }

    fn command(&self) -> Command {
        let mut command = command(self.program);
        command.args(TARGET);
        command
    }
}

/// Runs a command. On failure, returns its output as the error.
fn ran(command: &mut Command) -> Result<(), String> {
    let output = command.output().map_err(|error| error.to_string())?;
    if output.status.success() {
        Ok(())
    } else {
        Err(String::from_utf8_lossy(&output.stderr).into_owned())
    }
}
