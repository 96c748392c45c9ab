//! Finds the tools for building the corpus, or names the missing tools in one sentence.

use crate::tool::start;
use anyhow::{Context, Result, bail};
use std::path::Path;
use std::process::{Command, Stdio};

/// The target of all guests: WASI preview 1 commands.
pub const TARGET: &str = "wasm32-wasip1";

/// Makes sure that Rust can compile for [`TARGET`], adding the target if rustup can.
///
/// # Errors
/// Returns an error if the target is absent and cannot be added. The message contains the command
/// to type.
pub fn ensure_wasm_target() -> Result<()> {
    if has_wasm_target()? {
        return Ok(());
    }
    eprintln!("Rust's target {TARGET} is not installed: running `rustup target add {TARGET}`");
    let added = start("rustup").args(["target", "add", TARGET]).status();
    match added {
        Ok(status) if status.success() && has_wasm_target()? => Ok(()),
        Ok(_) => bail!(
            "`rustup target add {TARGET}` did not install the target: run the command by hand and read its output"
        ),
        Err(_) => bail!(
            "Rust's target {TARGET} is not installed, and there is no rustup to add it: \
             install Rust with rustup (rustup.rs), then run `rustup target add {TARGET}`"
        ),
    }
}

/// Whether the standard library for [`TARGET`] is installed where the compiler looks for it.
fn has_wasm_target() -> Result<bool> {
    let output = start("rustc")
        .args(["--print", "target-libdir", "--target", TARGET])
        .stderr(Stdio::inherit())
        .output()
        .context("cannot run rustc")?;
    Ok(output.status.success()
        && Path::new(String::from_utf8_lossy(&output.stdout).trim()).is_dir())
}

/// The only C compiler for the whole corpus.
const CLANG: &str = "clang-19";
/// The compiler's archiver. The system's own archiver may not support WebAssembly objects.
const ARCHIVER: &str = "llvm-ar-19";
/// The headers of WASI's C library.
const HEADERS: &str = "/usr/include/wasm32-wasi";

/// Returns the Debian packages that C guests need and this machine lacks; empty if there are none.
pub fn missing_c_packages() -> Vec<&'static str> {
    let runs = |tool: &str| {
        let status = start(tool)
            .arg("--version")
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
        status.is_ok_and(|status| status.success())
    };
    [
        ("clang-19", runs(CLANG)),
        ("llvm-19", runs(ARCHIVER)),
        ("wasi-libc", Path::new(HEADERS).join("stdio.h").exists()),
    ]
    .into_iter()
    .filter_map(|(package, present)| (!present).then_some(package))
    .collect()
}

/// Sets the C compiler and its options for the crates' build scripts, at optimisation level
/// `level`, 0 to 3.
///
/// Only objects are compiled here. The Rust compiler links them with its own linker, C library and
/// builtins, so no `wasm-opt` on the path runs and strips names and lines.
pub fn set_c_compiler(cargo: &mut Command, level: u8) {
    // Leaves out the standard folders, so that a header that WASI lacks is an error. Otherwise the
    // host's header would silently be used.
    let flags = format!(
        "-g -O{level} -nostdlibinc -isystem {HEADERS} -D_WASI_EMULATED_SIGNAL -D_WASI_EMULATED_PROCESS_CLOCKS \
         -D_WASI_EMULATED_GETPID -D_WASI_EMULATED_MMAN"
    );
    cargo
        .env("CC_wasm32_wasip1", CLANG)
        .env("AR_wasm32_wasip1", ARCHIVER)
        .env("CFLAGS_wasm32_wasip1", flags)
        // Otherwise the crate downloads a whole compiler.
        .env("RQUICKJS_SYS_NO_WASI_SDK", "1");
}

/// Returns the first line of the C compiler's version message, for the manifest.
///
/// # Errors
/// Returns an error if the compiler cannot be run.
pub fn c_compiler_version() -> Result<String> {
    let output = start(CLANG)
        .arg("--version")
        .output()
        .with_context(|| format!("cannot run {CLANG}"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    Ok(text.lines().next().unwrap_or(CLANG).trim().to_owned())
}
