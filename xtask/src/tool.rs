//! Starts the command line under development, and other programs that chores run.

use crate::corpus;
use crate::manifest::Entry;
use anyhow::{Context, Result, bail};
use std::env;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Builds the command line beside this program, in the same profile, and shows Cargo's messages,
/// since the first build takes minutes. Returns the path of the command line.
///
/// # Errors
/// Returns an error if Cargo cannot be run, or fails.
pub fn build() -> Result<PathBuf> {
    eprintln!(
        "Building afterimage: the first time this takes a quarter of an hour on two processors, for the WebAssembly engine"
    );
    let status = cargo()
        // Builds for the whole workspace. For the package alone, Cargo would choose other features
        // and build the engine again.
        .args(["build", "--locked", "--workspace", "--bin", "afterimage"])
        .status()
        .context("cannot run cargo")?;
    if !status.success() {
        bail!("cargo could not build afterimage");
    }
    let own = env::current_exe().context("cannot find this program's own file")?;
    Ok(own.with_file_name(format!("afterimage{}", env::consts::EXE_SUFFIX)))
}

/// Returns a Cargo command in the workspace's root. It passes on the whole environment, so it
/// builds the workspace exactly as the user's own `cargo` command does. Otherwise the engine would
/// be built twice.
pub fn cargo() -> Command {
    let mut command = cargo_of_its_own();
    command
        .current_dir(corpus::workspace())
        .envs(env::vars_os());
    command
}

/// Returns a Cargo command that runs the tests whose names contain `names` and shows their output.
pub fn test(names: &str) -> Command {
    let mut command = cargo();
    command
        .args(["test", "--workspace", "--locked", "--test", "it", names])
        .args(["--", "--nocapture"])
        .stdin(Stdio::null());
    command
}

/// Returns a Cargo command with the environment of [`start`].
pub fn cargo_of_its_own() -> Command {
    start(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
}

/// The environment variables that a program needs to be found, to reach a registry, and to find its
/// folders. An entry that ends in `*` covers all variables with that prefix. No variable changes a
/// compiler's output.
const KEPT: [&str; 28] = [
    "PATH",
    "HOME",
    "USER",
    "TMPDIR",
    "TERM",
    "COLUMNS",
    "NO_COLOR",
    "XDG_CACHE_HOME",
    "AFTERIMAGE_CACHE",
    "RUSTUP_*",
    "CARGO_HOME",
    "CARGO_BUILD_JOBS",
    "CARGO_HTTP_*",
    "CARGO_NET_*",
    "CARGO_REGISTR*",
    "CARGO_SOURCE_*",
    "CARGO_TERM_*",
    "PIP_*",
    "npm_config_*",
    "NPM_CONFIG_*",
    "NODE_EXTRA_CA_CERTS",
    "REQUESTS_CA_BUNDLE",
    "SSL_CERT_*",
    "http_proxy",
    "https_proxy",
    "HTTPS_PROXY",
    "no_proxy",
    "NO_PROXY",
];

/// Returns a command for a program, with an environment in which it behaves the same for everybody.
/// Only [`KEPT`] remains of the user's environment. Every program that a chore runs is started
/// here.
pub fn start(program: impl AsRef<OsStr>) -> Command {
    #[expect(clippy::disallowed_methods, reason = "the one place that does")]
    let mut command = Command::new(program);
    let kept = env::vars_os().filter(|(name, _)| name.to_str().is_some_and(is_kept));
    command.env_clear().envs(kept).env("LC_ALL", "C.UTF-8");
    command
}

fn is_kept(name: &str) -> bool {
    KEPT.iter().any(|kept| match kept.strip_suffix('*') {
        Some(beginning) => name.starts_with(beginning),
        None => name == *kept,
    })
}

/// Makes a search path on which `tool` is found first under the name `afterimage`. `folder` gets a
/// link to `tool`.
///
/// # Errors
/// Returns an error if the link cannot be made.
pub fn on_path(tool: &Path, folder: &Path) -> Result<OsString> {
    let tools = folder.join("tools");
    std::fs::create_dir_all(&tools)
        .with_context(|| format!("{}: cannot be made", tools.display()))?;
    let link = tools.join("afterimage");
    if !link.exists() {
        std::os::unix::fs::symlink(tool, &link)
            .with_context(|| format!("{}: cannot be made", link.display()))?;
    }
    let others = env::var_os("PATH").unwrap_or_default();
    let all = [tools].into_iter().chain(env::split_paths(&others));
    env::join_paths(all).context("PATH cannot be extended")
}

/// Returns the last arguments of `afterimage record` for a program of the corpus in `folder`.
pub fn command(entry: &Entry, folder: &Path) -> Vec<String> {
    let at = |path: &str| folder.join(path).display().to_string();
    let mut words = Vec::new();
    if let Some(file) = &entry.stdin {
        words.extend(["--stdin".to_owned(), at(file)]);
    }
    for [host, guest] in &entry.dirs {
        words.extend(["--dir".to_owned(), format!("{}::{guest}", at(host))]);
    }
    words.extend([at(&entry.wasm), "--".to_owned()]);
    words.extend(entry.args.iter().cloned());
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_changes_what_is_built_is_kept() {
        for name in [
            "RUSTFLAGS",
            "RUSTC_WRAPPER",
            "CARGO_ENCODED_RUSTFLAGS",
            "CARGO_BUILD_RUSTFLAGS",
            "CARGO_BUILD_TARGET",
            "CARGO_TARGET_DIR",
            "CARGO_TARGET_WASM32_WASIP1_LINKER",
            "CARGO_PROFILE_RELEASE_STRIP",
            "CARGO_INCREMENTAL",
            "CC",
            "CFLAGS",
            "CFLAGS_wasm32_wasip1",
            "CPATH",
            "LC_ALL",
            "LANG",
            "TZ",
            "AFTERIMAGE_CORPUS",
        ] {
            assert!(!is_kept(name), "{name}");
        }
        assert!(is_kept("PATH") && is_kept("RUSTUP_TOOLCHAIN"));
    }
}
