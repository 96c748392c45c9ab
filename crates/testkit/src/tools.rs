//! Other people's programs, started so that what they do depends on nothing but what they are given.
//!
//! In: the name of a program. Out: a [`Command`] with an environment of its own. So a test says the same for everybody who runs it,
//! whatever their `RUSTFLAGS`, `CPATH`, `NODE_OPTIONS`, locale or files in their home folder say. Only this module starts programs
//! in tests (`clippy.toml` sees to that).

use std::env;
use std::ffi::OsStr;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use tempfile::tempdir;

/// A program with an environment that does not depend on who runs the tests: where programs are and where temporary files go is
/// all that is left of theirs. It reads nothing.
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

/// The Rust compiler, for `wasm32-wasip1`. Its names and lines come from its own linker, so no `wasm-opt` is ever run.
pub fn rustc() -> Command {
    let mut rustc = command(env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()));
    // How rustup finds the compiler.
    for variable in ["HOME", "RUSTUP_HOME", "CARGO_HOME", "RUSTUP_TOOLCHAIN"] {
        if let Some(value) = env::var_os(variable) {
            rustc.env(variable, value);
        }
    }
    rustc.args(["--target", "wasm32-wasip1"]);
    rustc
}

/// Says that a check does not run, so that it is seen although the test passes: what the macros print is captured.
pub fn skipped(what: &str) {
    let _ = writeln!(std::io::stderr(), "SKIPPED: {what}");
}

/// Whether a program can be started. If not, that its check does not run is said.
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

/// A C and C++ compiler for WebAssembly. Compiles and links in two steps: clang runs `wasm-opt` after a link with optimisation
/// if it finds one, which throws names and lines away.
#[derive(Clone, Debug)]
pub struct Clang {
    program: &'static str,
}

/// Compilers that make code for WebAssembly, the best first.
const CLANGS: [&str; 2] = ["clang-19", "clang"];

/// Without a C library.
const TARGET: [&str; 2] = ["--target=wasm32-wasi", "-nostdlib"];

/// The compiler, if there is one here that makes a module; if not, that is said each time.
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
    /// Compiles each source with `options` and links the objects with `link` to the module `out`, without a C library.
    ///
    /// # Panics
    /// If that fails.
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

    /// The same; an error is what the compiler or the linker said.
    ///
    /// # Errors
    /// If either fails.
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
    /// If the compiler fails: what it said.
    pub fn object(&self, options: &[&str], source: &Path, object: &Path) -> Result<(), String> {
        let mut compiler = self.command();
        ran(compiler
            .args(options)
            .args(["-c", "-o"])
            .arg(object)
            .arg(source))
    }

    /// Links objects to a module. No level of optimisation is given here.
    ///
    /// # Errors
    /// If the linker fails: what it said.
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

/// Runs a command. An error is what it said.
fn ran(command: &mut Command) -> Result<(), String> {
    let output = command.output().map_err(|error| error.to_string())?;
    if output.status.success() {
        Ok(())
    } else {
        Err(String::from_utf8_lossy(&output.stderr).into_owned())
    }
}
