//! `cargo xtask dap`: tests the debugger's server on three programs with a client from npm,
//! `@vscode/debugadapter-testsupport`. Each message is checked against the protocol's types. With
//! `--measure`, measures how long a client waits, on a run of a billion statements.

use crate::{DapArguments, corpus, tool, toolchain};
use anyhow::{Context, Result, bail};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{ExitCode, Stdio};

/// The programs, each with its source, its level of optimisation, its standard input, and the text
/// of the line at which to stop.
const PROGRAMS: [(&str, &str, &str); 3] = [
    (
        "crates/dap/tests/guests/ledger.rs",
        "0",
        "account.entries.push",
    ),
    (
        "crates/dap/tests/guests/ledger.rs",
        "1",
        "account.entries.push",
    ),
    ("xtask/dap/words.rs", "0", "*seen += 1;"),
];

/// The number of rounds of the ledger. They take nearly two billion instructions, half of which are
/// statements.
const ROUNDS: &str = "1000000";

/// Checks the server, or measures it.
///
/// # Errors
/// Returns an error if a program cannot be built, or the client's actions fail.
pub fn run(arguments: &DapArguments) -> Result<ExitCode> {
    let afterimage = match &arguments.tool {
        Some(tool) => fs::canonicalize(tool)
            .with_context(|| format!("{}: no such program", tool.display()))?,
        None => tool::build()?,
    };
    let folder = corpus::workspace().join("target/dap");
    let scripts = corpus::workspace().join("xtask/dap");
    fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
    for file in ["package.json", "check.mjs", "measure.mjs", "schemas.mjs"] {
        fs::copy(scripts.join(file), folder.join(file)).with_context(|| file.to_owned())?;
    }
    if let Err(why) = install(&folder) {
        println!("SKIPPED: no client of the Debug Adapter Protocol: {why:#}");
        return Ok(ExitCode::SUCCESS);
    }
    toolchain::ensure_wasm_target()?;
    if arguments.measure {
        return measure(&afterimage, &folder);
    }
    for (number, (source, level, text)) in PROGRAMS.into_iter().enumerate() {
        let source = corpus::workspace().join(source);
        let program = folder.join(format!("program{number}.wasm"));
        compile(&source, level, &program)?;
        let line = line_of(&source, text)?;
        println!("{} at -O{level}:", source.display());
        let mut node = tool::start("node");
        node.current_dir(&folder).arg("check.mjs");
        node.arg(&afterimage).arg(&program).arg(&source).arg(line);
        if !node.status().context("cannot run node")?.success() {
            bail!(
                "{} at -O{level}: the client found an error",
                source.display()
            );
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn measure(afterimage: &Path, folder: &Path) -> Result<ExitCode> {
    let source = corpus::workspace().join(PROGRAMS[0].0);
    let (program, recording) = (folder.join("long.wasm"), folder.join("long.aft"));
    compile(&source, "0", &program)?;
    let mut record = tool::start(afterimage);
    record
        .args(["record", "--quiet", "--force", "-o"])
        .arg(&recording);
    record
        .arg(&program)
        .args(["--", ROUNDS])
        .stdout(Stdio::null());
    if !record.status().context("cannot record")?.success() {
        bail!("{}: it cannot be recorded", program.display());
    }
    let mut node = tool::start("node");
    node.current_dir(folder).arg("measure.mjs");
    node.arg(afterimage).arg(&recording).arg(&source);
    node.arg(line_of(&source, "account.entries.push")?);
    node.args(["round == 800000", "account->balance"]);
    node.arg(line_of(&source, "account.balance = charged")?);
    if !node.status().context("cannot run node")?.success() {
        bail!("the client failed");
    }
    Ok(ExitCode::SUCCESS)
}

fn install(folder: &Path) -> Result<()> {
    let mut npm = tool::start("npm");
    npm.current_dir(folder);
    npm.args([
        "install",
        "--no-audit",
        "--no-fund",
        "--ignore-scripts",
        "--silent",
    ]);
    let output = npm.output().context("npm cannot be run")?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        bail!("npm install: {}", said.lines().last().unwrap_or("failed"));
    }
    Ok(())
}

fn compile(source: &Path, level: &str, to: &PathBuf) -> Result<()> {
    let mut rustc = tool::start("rustc");
    rustc.args(["--target", "wasm32-wasip1", "-g", "--edition", "2024"]);
    rustc.args(["-A", "dead_code", "-C", &format!("opt-level={level}")]);
    rustc.arg(source).arg("-o").arg(to);
    if !rustc.status().context("cannot run rustc")?.success() {
        bail!("{}: it cannot be compiled", source.display());
    }
    Ok(())
}

/// Returns the line that contains a text.
fn line_of(source: &Path, text: &str) -> Result<String> {
    let all = fs::read_to_string(source).with_context(|| source.display().to_string())?;
    let found = all.lines().position(|line| line.contains(text));
    let found = found.with_context(|| format!("{}: no line has {text}", source.display()))?;
    Ok((found + 1).to_string())
}
