//! `cargo xtask dataset`: exports a run as tables, and asks the questions in docs/PARQUET.md with
//! SQL engines.
//!
//! The engines are PyPI's `duckdb` and `datafusion`. `pyarrow` also reads all tables. Two processes
//! of PyPI's `pyspark` answer the same questions if there is a Java runtime. A check whose tools
//! cannot be installed prints SKIPPED.
//!
//! `--scale N` asks the questions about a run with N times as many orders, first with DuckDB, then
//! with one Spark executor, and then with two executors.

use crate::corpus::workspace;
use crate::{DatasetArguments, tool, toolchain};
use anyhow::{Context, Result, bail};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

/// The versions of the engines.
const ENGINES: [&str; 3] = ["duckdb==2.0.1", "datafusion==55.0.0", "pyarrow==26.0.1"];
const SPARK: &str = "pyspark==4.3.0";

/// A run to export.
struct Till {
    /// The name of its files.
    name: &'static str,
    /// How often the orders are repeated.
    times: usize,
    /// The number of blocks in each window.
    window: &'static str,
    /// The number of processes that export it.
    processes: usize,
}

/// The run of the page. Its windows are small, so that there are several.
const PAGE: Till = Till {
    name: "till",
    times: 1,
    window: "2048",
    processes: 2,
};

/// Exports a run and asks the questions, as the arguments say.
///
/// # Errors
/// Returns an error if an engine's answer differs from the page, or something cannot be built,
/// recorded or exported.
pub fn run(arguments: &DatasetArguments) -> Result<ExitCode> {
    let program = match &arguments.tool {
        Some(program) => std::path::absolute(program)?,
        None => tool::build()?,
    };
    let out = workspace().join("target/dataset");
    fs::create_dir_all(&out).with_context(|| format!("cannot make {}", out.display()))?;
    let till = match arguments.scale {
        Some(times) => Till {
            name: "till-large",
            times,
            window: "65536",
            processes: 8,
        },
        None => PAGE,
    };
    let recording = record(&program, &out, &till)?;
    let tables = export(&program, &recording, &till)?;
    let Some(python) = python(&out.join("python"), &ENGINES, "duckdb, datafusion, pyarrow") else {
        println!(
            "SKIPPED: PyPI's {} cannot be installed here, so no engine read the tables",
            ENGINES.join(", ")
        );
        return Ok(ExitCode::SUCCESS);
    };
    let mut page = workspace().join("docs/PARQUET.md");
    if arguments.scale.is_some() {
        // The answers of DuckDB replace those of the small run.
        let copy = out.join("PARQUET.md");
        fs::copy(&page, &copy)?;
        page = copy;
    }
    let mut check = tool::start(&python);
    check.arg(workspace().join("xtask/dataset/check.py"));
    check.arg(&tables).arg(&page);
    check.args(arguments.bless.then_some("--bless"));
    check.args(arguments.scale.map(|_| "--scale"));
    ran(&mut check, "the check")?;
    spark(&out, &tables, &page, arguments.scale.is_some())?;
    Ok(ExitCode::SUCCESS)
}

/// Asks the same questions with Spark.
fn spark(out: &Path, tables: &Path, page: &Path, is_measured: bool) -> Result<()> {
    if !succeeds(tool::start("java").arg("-version")) {
        println!("SKIPPED: there is no Java runtime here, so Spark read no tables");
        return Ok(());
    }
    let Some(python) = python(&out.join("spark"), &[SPARK], "pyspark") else {
        println!("SKIPPED: PyPI's {SPARK} cannot be installed here, so Spark read no tables");
        return Ok(());
    };
    let mut check = tool::start(python);
    check.arg(workspace().join("xtask/dataset/spark.py"));
    check.arg(tables).arg(page);
    check.args(is_measured.then_some("--scale"));
    ran(&mut check, "the check with Spark")
}

/// Compiles the program and records it.
fn record(program: &Path, out: &Path, till: &Till) -> Result<PathBuf> {
    toolchain::ensure_wasm_target()?;
    let chores = workspace().join("xtask/dataset");
    // The source is beside the recording, so that its lines have short paths.
    fs::copy(chores.join("till.rs"), out.join("till.rs"))?;
    let mut compile = tool::start("rustc");
    compile.args(["--target", toolchain::TARGET, "-g", "-O", "till.rs"]);
    ran(compile.current_dir(out), "rustc")?;
    let orders = out.join("orders.txt");
    let once = fs::read_to_string(chores.join("orders.txt"))?;
    fs::write(&orders, once.repeat(till.times))?;
    let at = out.join(till.name).with_extension("aft");
    let mut record = tool::start(program);
    record
        .args(["record", "--quiet", "--force", "-o"])
        .arg(&at)
        .arg("--stdin")
        .arg(&orders)
        .arg(out.join("till.wasm"));
    ran(record.stdout(Stdio::null()), "afterimage record")?;
    Ok(at)
}

/// Exports the recording with several processes at the same time.
fn export(program: &Path, recording: &Path, till: &Till) -> Result<PathBuf> {
    let tables = recording.with_extension("");
    if tables.exists() {
        fs::remove_dir_all(&tables)?;
    }
    // Builds the data that all processes need, because they would otherwise wait for it.
    let mut build = tool::start(program);
    ran(
        build.args(["build", "--lens", "full"]).arg(recording),
        "afterimage build",
    )?;
    let begin = |_| {
        let mut export = tool::start(program);
        export
            .args([
                "export",
                "--format",
                "parquet",
                "--window-blocks",
                till.window,
                "-o",
            ])
            .arg(&tables)
            .arg(recording);
        export.spawn().context("cannot run afterimage export")
    };
    let all = (0..till.processes).map(begin).collect::<Result<Vec<_>>>()?;
    for mut process in all {
        if !process.wait()?.success() {
            bail!("afterimage export failed");
        }
    }
    if tables.join("INCOMPLETE").exists() {
        bail!("several processes left the tables incomplete");
    }
    Ok(tables)
}

fn ran(command: &mut Command, name: &str) -> Result<()> {
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

/// Makes a Python environment with these packages, in its own folder.
fn python(folder: &Path, packages: &[&str], modules: &str) -> Option<PathBuf> {
    let python = folder.join("bin/python");
    let import = format!("import {modules}");
    let has = || succeeds(tool::start(&python).args(["-c", &import]));
    if has() {
        return Some(python);
    }
    let made = succeeds(tool::start("python3").args(["-m", "venv"]).arg(folder));
    let mut pip = tool::start(&python);
    pip.args(["-m", "pip", "install", "--quiet"]).args(packages);
    (made && succeeds(&mut pip) && has()).then_some(python)
}
