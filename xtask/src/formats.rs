//! `cargo xtask formats`: opens each export in the tool for its format, and compares the tool's
//! numbers with the command line's JSON. The numbers are totals, calls, own and inclusive costs,
//! and counts of lines.
//!
//! Some tools are Debian packages (.ci/tools). Others come from npm, PyPI and crates.io, and are
//! installed into target/formats. A tool that is unavailable is reported as SKIPPED.

use crate::explorer::browser;
use crate::{corpus, tool, toolchain};
use anyhow::{Context, Result, bail};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

/// The version of inferno, which reads collapsed stacks.
const INFERNO: &str = "0.12.8";

/// A program, with its source, its level of optimisation, its input, and a line that is executed.
struct Program {
    name: &'static str,
    source: &'static str,
    level: &'static str,
    input: Option<&'static str>,
    line: &'static str,
}

const PROGRAMS: [Program; 3] = [
    Program {
        name: "tree",
        source: "xtask/formats/tree.rs",
        level: "1",
        input: None,
        line: "tree.rs:25",
    },
    Program {
        name: "shop",
        source: "examples/mugs/shop.rs",
        level: "0",
        input: Some("examples/mugs/monday.txt"),
        line: "shop.rs:28",
    },
    Program {
        name: "ledger",
        source: "examples/mugs/ledger.c",
        level: "1",
        input: Some("examples/mugs/deposits.txt"),
        line: "ledger.c:14",
    },
];

/// Checks the exports of three programs.
///
/// # Errors
/// Returns an error if a program cannot be built or recorded.
pub fn run(program: Option<&Path>) -> Result<ExitCode> {
    let afterimage = match program {
        Some(program) => {
            fs::canonicalize(program).with_context(|| program.display().to_string())?
        }
        None => tool::build()?,
    };
    let folder = corpus::workspace().join("target/formats");
    fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
    if !succeeds(tool::start("python3").arg("--version")) {
        println!("SKIPPED everything: python3 is not installed");
        return Ok(ExitCode::SUCCESS);
    }
    toolchain::ensure_wasm_target()?;
    let lacking = toolchain::missing_c_packages();
    let mut recordings = Vec::new();
    for program in &PROGRAMS {
        if program.source.ends_with(".c") && !lacking.is_empty() {
            println!("SKIPPED {}: it needs {}", program.name, lacking.join(", "));
            continue;
        }
        program.record(&afterimage, &folder)?;
        recordings.push(format!("{}={}", program.name, program.line));
    }
    let scripts = corpus::workspace().join("xtask/formats");
    npm(&scripts, &folder)?;
    inferno(&folder);
    let mut check = tool::start(python(&scripts, &folder));
    check.arg("-B").arg(scripts.join("check.py"));
    check.args([&afterimage, &folder]);
    check.arg(corpus::workspace().join("docs/json"));
    check.arg(browser::program().unwrap_or_default());
    check.args(recordings);
    match check.status().context("cannot run python")?.success() {
        true => Ok(ExitCode::SUCCESS),
        false => bail!("a tool and the command line disagree; see above"),
    }
}

impl Program {
    /// Compiles and records the program next to its source.
    fn record(&self, afterimage: &Path, folder: &Path) -> Result<()> {
        let from = corpus::workspace().join(self.source);
        let file = from.file_name().context("a source has a name")?;
        fs::copy(&from, folder.join(file)).with_context(|| self.source.to_owned())?;
        let module = format!("{}.wasm", self.name);
        if self.source.ends_with(".c") {
            let mut clang = tool::start("clang-19");
            clang.args(["--target=wasm32-wasi", "-g", "-O", "-c", "-o", "object.o"]);
            ran(clang.arg(file).current_dir(folder))?;
            let mut link = tool::start("clang-19");
            link.args(["--target=wasm32-wasi", "object.o", "-o", &module]);
            ran(link.current_dir(folder))?;
        } else {
            let mut rustc = tool::start("rustc");
            rustc.args(["--target", toolchain::TARGET, "-g", "--edition", "2024"]);
            rustc.args(["-C", &format!("opt-level={}", self.level)]);
            ran(rustc.arg(file).args(["-o", &module]).current_dir(folder))?;
        }
        let recording = format!("{}.aft", self.name);
        let mut record = tool::start(afterimage);
        record.args(["record", "--quiet", "--force", "-o", &recording]);
        if let Some(input) = self.input {
            record.arg("--stdin").arg(corpus::workspace().join(input));
        }
        record.arg(&module).current_dir(folder);
        // One program ends with a failed assertion, so the exit code is ignored.
        let _ = record
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .context("cannot run afterimage")?;
        let mut info = tool::start(afterimage);
        info.args(["info", &recording]).current_dir(folder);
        ran(info.stdout(Stdio::null()))
    }
}

fn ran(command: &mut Command) -> Result<()> {
    let name = command.get_program().to_string_lossy().into_owned();
    let status = command
        .status()
        .with_context(|| format!("cannot run {name}"))?;
    match status.success() {
        true => Ok(()),
        false => bail!("{name} ended with {status}"),
    }
}

fn succeeds(command: &mut Command) -> bool {
    let quiet = command.stdout(Stdio::null()).stderr(Stdio::null());
    quiet.status().is_ok_and(|status| status.success())
}

/// Returns a Python interpreter that has the packages, or else the machine's own interpreter.
/// Checks whose packages are missing are skipped.
fn python(scripts: &Path, folder: &Path) -> PathBuf {
    let python = folder.join("python/bin/python");
    let list = scripts.join("requirements.txt");
    let wanted = fs::read(&list).unwrap_or_default();
    // Packages that are already installed need no registry.
    let done = folder.join("python/installed.txt");
    if fs::read(&done).is_ok_and(|installed| installed == wanted) {
        return python;
    }
    let venv = ["-m", "venv"];
    let made = succeeds(tool::start("python3").args(venv).arg(folder.join("python")));
    let mut pip = tool::start(&python);
    pip.args(["-m", "pip", "install", "--quiet", "--retries", "1", "-r"]);
    pip.arg(&list);
    if made && succeeds(&mut pip) && fs::write(&done, wanted).is_ok() {
        return python;
    }
    println!(
        "SKIPPED the packages of {}: PyPI cannot be reached, or Python has no venv",
        list.display()
    );
    // The machine's own Python may have some of the packages.
    "python3".into()
}

/// Installs npm's packages, and copies the scripts that use them next to them.
fn npm(scripts: &Path, folder: &Path) -> Result<()> {
    let packages = folder.join("npm");
    fs::create_dir_all(&packages)?;
    for file in ["package.json", "pprof.mjs", "speedscope.mjs", "trace.mjs"] {
        fs::copy(scripts.join(file), packages.join(file)).with_context(|| file.to_owned())?;
    }
    let mut npm = tool::start("npm");
    npm.current_dir(&packages).args([
        "install",
        "--no-audit",
        "--no-fund",
        "--ignore-scripts",
        "--prefer-offline",
        "--fetch-retries=1",
    ]);
    if !succeeds(&mut npm) {
        println!(
            "SKIPPED the packages of {}: npm cannot install them here",
            scripts.join("package.json").display()
        );
    }
    Ok(())
}

/// Installs inferno, which takes half a minute the first time.
fn inferno(folder: &Path) {
    let root = folder.join("inferno");
    if root.join("bin/inferno-flamegraph").exists() {
        return;
    }
    let mut cargo = tool::cargo_of_its_own();
    cargo.args(["install", "--quiet", "--debug", "--locked", "inferno"]);
    cargo.args(["--version", INFERNO, "--root"]).arg(&root);
    cargo.arg("--target-dir").arg(folder.join("build"));
    if !succeeds(&mut cargo) {
        println!("SKIPPED inferno {INFERNO}: it cannot be installed from crates.io here");
    }
}
