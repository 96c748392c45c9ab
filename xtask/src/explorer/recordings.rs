//! Makes the recordings that are tested in the page.

use crate::{corpus, planted, tool, toolchain};
use anyhow::{Context, Result, bail};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;

/// Records `xtask/explorer/bank.rs` and returns the recording.
///
/// # Errors
/// Returns an error if the program cannot be compiled or recorded.
pub fn bank(tool: &Path, folder: &Path) -> Result<PathBuf> {
    compiled_rust("bank.rs", folder, "bank", &["-g"])?;
    of_module(tool, folder, "bank", &SOURCES)
}

/// Records `xtask/explorer/scopes.rs` and returns the recording.
///
/// # Errors
/// Returns an error if the program cannot be compiled or recorded.
pub fn scopes(tool: &Path, folder: &Path) -> Result<PathBuf> {
    compiled_rust("scopes.rs", folder, "scopes", &["-g"])?;
    of_module(tool, folder, "scopes", &SOURCES)
}

/// Makes recordings of three programs: one in Rust, one in C++ if a compiler is installed, and one
/// without debug information.
///
/// # Errors
/// Returns an error if a program cannot be compiled or recorded.
pub fn several(tool: &Path, folder: &Path) -> Result<Vec<PathBuf>> {
    compiled_rust("bank.rs", folder, "plain", &["-C", "strip=debuginfo"])?;
    let plain = of_module(tool, folder, "plain", &[])?;
    let mut all = vec![bank(tool, folder)?, plain];
    let lacking = toolchain::missing_c_packages();
    if lacking.is_empty() {
        let mut clang = tool::start("clang++-19");
        clang.args(["--target=wasm32-wasi", "-g", "-O1", "-fno-exceptions"]);
        clang
            .args(["-nostdlib++", "-o"])
            .arg(folder.join("orders.wasm"));
        compiled(
            clang,
            &corpus::workspace().join("xtask/explorer/orders.cpp"),
        )?;
        all.push(of_module(tool, folder, "orders", &SOURCES)?);
    } else {
        let packages = lacking.join(", ");
        println!("SKIPPED the program in C++: {packages} is not installed");
    }
    Ok(all)
}

/// Makes a recording with names and output that contain markup.
///
/// # Errors
/// Returns an error if the program cannot be recorded.
pub fn hostile(tool: &Path, folder: &Path) -> Result<PathBuf> {
    of_text(tool, &folder.join("hostile <b>.aft"), "hostile.wat")
}

/// Makes a recording of a module without lines, whose locals have names.
///
/// # Errors
/// Returns an error if the program cannot be recorded.
pub fn fib(tool: &Path, folder: &Path) -> Result<PathBuf> {
    of_text(tool, &folder.join("fib.aft"), "fib.wat")
}

/// Records a module in the text format.
fn of_text(tool: &Path, recording: &Path, source: &str) -> Result<PathBuf> {
    let mut record = tool::start(tool);
    record.args(["record", "--force", "-o"]).arg(recording);
    record.arg(corpus::workspace().join("xtask/explorer").join(source));
    recorded(record, recording)
}

/// Compiles a program of `xtask/explorer` in Rust.
fn compiled_rust(source: &str, folder: &Path, name: &str, options: &[&str]) -> Result<()> {
    toolchain::ensure_wasm_target()?;
    let mut rustc = tool::start("rustc");
    rustc.args(["--target", toolchain::TARGET, "--edition", "2024"]);
    rustc.args(options).arg("-o");
    rustc.arg(folder.join(name).with_extension("wasm"));
    compiled(
        rustc,
        &corpus::workspace().join("xtask/explorer").join(source),
    )
}

fn compiled(mut compiler: std::process::Command, source: &Path) -> Result<()> {
    let status = compiler.arg(source).status();
    if !status.context("cannot run the compiler")?.success() {
        bail!("{} could not be compiled", source.display());
    }
    Ok(())
}

/// Embeds the sources of programs that have debug information.
const SOURCES: [&str; 2] = ["--sources", "xtask/explorer"];

/// Records a module of `folder`.
fn of_module(tool: &Path, folder: &Path, name: &str, options: &[&str]) -> Result<PathBuf> {
    let recording = folder.join(name).with_extension("aft");
    let mut record = tool::start(tool);
    record.current_dir(corpus::workspace());
    record.args(["record", "--force"]).args(options).arg("-o");
    record.arg(&recording);
    record.arg(folder.join(name).with_extension("wasm"));
    recorded(record, &recording)
}

/// A session of docs/sessions, with its name, the options of `record`, and its input.
struct Session {
    name: &'static str,
    options: &'static [&'static str],
    arguments: &'static [&'static str],
    input: (&'static str, fn() -> String),
}

const SESSIONS: [Session; 3] = [
    Session {
        name: "bzip2",
        options: &["--dir", "."],
        arguments: &["1", "numbers.txt"],
        input: ("numbers.txt", || lines(100_000..=114_300)),
    },
    Session {
        name: "lua",
        options: &["--dir", "."],
        arguments: &["signed.lua"],
        input: ("signed.lua", || {
            "for _, sample in ipairs { 13, 128, 200 } do\n  print(sample, sample - 128)\nend\n"
                .to_owned()
        }),
    },
    Session {
        name: "markdown",
        options: &["--stdin", "prices.md"],
        arguments: &[],
        input: ("prices.md", || {
            "# Prices\n\n| Fruit | Price |\n|-------|-------|\n| Apple |     2 |\n".to_owned()
        }),
    },
];

/// Returns numbers, one per line.
fn lines(numbers: impl IntoIterator<Item = u32>) -> String {
    numbers.into_iter().fold(String::new(), |mut text, number| {
        let _ = writeln!(text, "{number}");
        text
    })
}

/// Makes a recording of a billion statements: the program of docs/sessions/bzip2.md, with 300,000
/// unsorted numbers. Keeps the recording for the next time. Returns `None` if the program could not
/// be built.
///
/// # Errors
/// Returns an error if the program cannot be recorded, or its source has changed.
pub fn long(tool: &Path, folder: &Path) -> Result<Option<PathBuf>> {
    let recording = folder.join("long.aft");
    if recording.exists() {
        return Ok(Some(recording));
    }
    if !sessions(tool)?.iter().any(|(name, _)| *name == "bzip2") {
        return Ok(None);
    }
    let numbers = std::iter::successors(Some(5u32), |number| {
        Some(number.wrapping_mul(1_103_515_245).wrapping_add(12_345))
    });
    let numbers = numbers
        .take(300_000)
        .map(|number| (number >> 8) % 1_000_000);
    fs::write(folder.join("long.txt"), lines(numbers))?;
    let module = corpus::workspace().join("target/planted/new/bzip2.wasm");
    let mut record = tool::start(tool);
    record.current_dir(folder);
    record.args(["record", "--dir", ".", "-o"]).arg(&recording);
    record.arg(module).args(["1", "long.txt"]);
    recorded(record, &recording).map(Some)
}

/// Returns the recordings of the sessions of docs/sessions, by name. Builds missing programs, and
/// reports the programs that it cannot build.
///
/// # Errors
/// Returns an error if a program cannot be recorded, or its source has changed.
pub fn sessions(tool: &Path) -> Result<Vec<(&'static str, PathBuf)>> {
    let folder = corpus::workspace().join("target/planted");
    let module = |session: &Session| format!("new/{}.wasm", session.name);
    let is_there = |session: &Session| folder.join(module(session)).exists();
    if !SESSIONS.iter().all(is_there) {
        println!("building the programs of docs/sessions, as `cargo xtask planted` does");
        planted::with_bugs()?;
    }
    let mut found = Vec::new();
    for session in &SESSIONS {
        let module = module(session);
        if !is_there(session) {
            println!(
                "SKIPPED the session {} in the page: {module} could not be built; see above",
                session.name
            );
            continue;
        }
        let (name, text) = session.input;
        fs::write(folder.join(name), text())?;
        let recording = folder.join(session.name).with_extension("aft");
        let mut record = tool::start(tool);
        record.current_dir(&folder);
        record.args(["record", "--force"]).args(session.options);
        record.arg("-o").arg(&recording);
        record.arg(&module).args(session.arguments);
        found.push((session.name, recorded(record, &recording)?));
    }
    Ok(found)
}

/// Runs a command that records. Its exit code is ignored, because these programs fail.
fn recorded(mut record: std::process::Command, recording: &Path) -> Result<PathBuf> {
    for old in ["aft", "aft.notes.md"] {
        let _ = fs::remove_file(recording.with_extension(old));
    }
    record.stdout(Stdio::null()).stderr(Stdio::null());
    record.status().context("cannot run afterimage")?;
    if !recording.exists() {
        bail!("{} was not recorded", recording.display());
    }
    Ok(recording.to_owned())
}

/// Copies a recording to `folder` with nothing but its log.
///
/// # Errors
/// Returns an error if the recording cannot be copied, or data built from it cannot be removed.
pub fn bare(tool: &Path, recording: &Path, folder: &Path) -> Result<PathBuf> {
    let copy = folder.join("bare.aft");
    let _ = fs::remove_file(&copy);
    let mut strip = tool::start(tool);
    strip
        .args(["strip", "-o"])
        .args([copy.as_path(), recording]);
    strip.stdout(Stdio::null()).stderr(Stdio::null());
    if !strip.status().context("cannot run afterimage")?.success() {
        bail!(
            "{} cannot be copied without what was built",
            recording.display()
        );
    }
    Ok(copy)
}

/// Builds everything that questions need.
///
/// # Errors
/// Returns an error if something cannot be built.
pub fn build(tool: &Path, recording: &Path) -> Result<()> {
    let mut build = tool::start(tool);
    build.args(["build", "--lens", "full"]).arg(recording);
    build.stderr(Stdio::null());
    if !build.status().context("cannot run afterimage")?.success() {
        bail!("the values of {} could not be built", recording.display());
    }
    Ok(())
}
