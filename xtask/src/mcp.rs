//! `cargo xtask mcp`: asks `afterimage mcp` with the protocol's own clients, and measures how soon
//! each tool answers.
//!
//! The clients are PyPI's `mcp`, which checks structured answers against the schemas of their
//! tools, and the command line of npm's inspector. A client that cannot be installed here is
//! reported as SKIPPED.

use crate::corpus::workspace;
use crate::guilty::client::Client;
use crate::{McpArguments, tool, toolchain};
use anyhow::{Context, Result, bail};
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::Duration;

/// The versions of the clients.
const PYTHON_CLIENT: &str = "mcp==2.3.0";
const NODE_CLIENT: &str = "@modelcontextprotocol/inspector@2.12.0";

/// The number of times that each tool is asked about the small recording.
const TIMES: usize = 15;
/// The number of functions to ask about in other recordings.
const FUNCTIONS: usize = 3;

/// Asks with each client, and measures the answers.
///
/// # Errors
/// Returns an error if an installed client refuses something, or something cannot be built or
/// recorded.
pub fn run(arguments: &McpArguments) -> Result<ExitCode> {
    let program = match &arguments.tool {
        Some(program) => std::path::absolute(program)?,
        None => tool::build()?,
    };
    let out = workspace().join("target/mcp");
    fs::create_dir_all(&out).with_context(|| format!("cannot make {}", out.display()))?;
    let chores = workspace().join("xtask/mcp");
    let recorded = record(&program, &chores, &out)?;
    let calls = chores.join("calls.json");
    match python(&out) {
        Some(python) => {
            let mut check = tool::start(python);
            check.arg(chores.join("check.py")).arg(&program).arg(&out);
            check.arg("bank.aft").arg(&calls);
            if !check.status().context("cannot run python")?.success() {
                bail!("PyPI's client refuses an answer");
            }
        }
        None => println!(
            "SKIPPED: PyPI's {PYTHON_CLIENT} cannot be installed here, so no client checked the answers against their schemas"
        ),
    }
    match inspector(&out) {
        Some(inspector) => inspect(&inspector, &program, &out)?,
        None => println!(
            "SKIPPED: npm's {NODE_CLIENT} cannot be installed here, so the inspector listed no tools"
        ),
    }
    latencies(&program, &recorded, &calls)?;
    for file in &arguments.files {
        latencies_of(&program, file)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Compiles the program and records it, with its values.
fn record(program: &Path, chores: &Path, out: &Path) -> Result<PathBuf> {
    toolchain::ensure_wasm_target()?;
    // The source is beside the recording, so that its lines are under the root.
    fs::copy(chores.join("bank.rs"), out.join("bank.rs"))?;
    let at = out.join("bank.aft");
    let mut compile = tool::start("rustc");
    compile.args([
        "--target",
        toolchain::TARGET,
        "-g",
        "-C",
        "opt-level=0",
        "bank.rs",
    ]);
    ran(compile.current_dir(out), "rustc")?;
    let mut record = tool::start(program);
    record
        .args(["record", "--quiet", "--force", "-o"])
        .arg(&at)
        .arg(out.join("bank.wasm"));
    ran(record.stdout(Stdio::null()), "afterimage record")?;
    Ok(at)
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

/// Returns a Python interpreter that has the client.
fn python(out: &Path) -> Option<PathBuf> {
    let folder = out.join("python");
    let python = folder.join("bin/python");
    let has = || succeeds(tool::start(&python).args(["-c", "import mcp"]));
    if has() {
        return Some(python);
    }
    let made = succeeds(tool::start("python3").args(["-m", "venv"]).arg(&folder));
    let install =
        || succeeds(tool::start(&python).args(["-m", "pip", "install", "--quiet", PYTHON_CLIENT]));
    (made && install() && has()).then_some(python)
}

/// Returns the path of the inspector.
fn inspector(out: &Path) -> Option<PathBuf> {
    let folder = out.join("node");
    let inspector = folder.join("node_modules/.bin/mcp-inspector");
    if !inspector.exists() {
        fs::create_dir_all(&folder).ok()?;
        let mut npm = tool::start("npm");
        npm.args(["install", "--no-audit", "--no-fund", "--prefix"])
            .arg(&folder)
            .arg(NODE_CLIENT);
        succeeds(&mut npm).then_some(())?;
    }
    inspector.exists().then_some(inspector)
}

/// Lists the tools with the inspector, and calls one.
fn inspect(inspector: &Path, program: &Path, root: &Path) -> Result<()> {
    let ask = |words: &[&str]| -> Result<Value> {
        let mut command = tool::start(inspector);
        command
            .arg("--cli")
            .arg(program)
            .args(["mcp", "--root"])
            .arg(root)
            .args(words);
        let ran = command
            .stdin(Stdio::null())
            .output()
            .context("cannot run the inspector")?;
        if !ran.status.success() {
            bail!(
                "npm's inspector ended with {}: {}",
                ran.status,
                String::from_utf8_lossy(&ran.stderr)
            );
        }
        serde_json::from_slice(&ran.stdout).context("the inspector prints no JSON")
    };
    let listed = ask(&["--method", "tools/list"])?;
    let count = listed["tools"].as_array().map_or(0, Vec::len);
    let words = [
        "--method",
        "tools/call",
        "--tool-name",
        "why",
        "--tool-arg",
        "recording=bank.aft",
        "--tool-arg",
        "stdout=fees: 36",
    ];
    let called = ask(&words)?;
    let text = called["content"][0]["text"].as_str().unwrap_or_default();
    if count != 11 || !text.contains("bank.rs:") {
        bail!("the inspector lists {count} tools, and why answers: {text}");
    }
    println!("npm's inspector lists {count} tools and gets an answer from why");
    Ok(())
}

/// Measures how soon each tool answers about an open recording.
fn latencies(program: &Path, recording: &Path, calls: &Path) -> Result<()> {
    let calls: Value = serde_json::from_slice(&fs::read(calls)?)?;
    let mut asked = Vec::new();
    for call in calls.as_array().context("no list of calls")? {
        if call["fails"] != true {
            let name = call["tool"].as_str().context("a call without a tool")?;
            asked.push((name.to_owned(), call["arguments"].clone()));
        }
    }
    measure(program, recording, &asked, TIMES)
}

/// Measures how soon each tool answers about any recording: about its functions that executed the
/// most instructions, and about the line of each that ran most often.
fn latencies_of(program: &Path, recording: &Path) -> Result<()> {
    let recording = std::path::absolute(recording)?;
    let root = recording
        .parent()
        .context("the path of the recording has no parent folder")?;
    let name = recording.file_name().context("a recording has a name")?;
    let mut client = Client::start(program, root)?;
    let mut ask = |tool: &str, mut arguments: Value| -> Result<Value> {
        arguments["recording"] = json!(name.to_string_lossy());
        let mut answer = client.call(tool, &arguments)?;
        Ok(answer.document["report"].take())
    };
    let mut asked = vec![
        ("overview", json!({})),
        ("source", json!({})),
        ("paths", json!({})),
        ("paths", json!({ "hot": true })),
        ("find", json!({ "name": "a" })),
        ("state", json!({ "at": "50%" })),
        ("state", json!({ "at": "end" })),
        ("why", json!({ "stdout": 0 })),
        ("why", json!({ "stdout": "line:last" })),
        ("why", json!({ "trap": true })),
        ("diff", json!({ "other": name.to_string_lossy() })),
    ];
    let overview = ask("overview", json!({}))?;
    let functions = overview["functions"].as_array().into_iter().flatten();
    for function in functions.take(FUNCTIONS) {
        let function = function["name"].as_str().unwrap_or_default();
        let call = ask("call", json!({ "at": format!("{function}#1") }))?;
        asked.extend([
            ("call", json!({ "at": format!("{function}#1") })),
            ("call", json!({ "at": format!("{function}#last") })),
            ("paths", json!({ "function": function })),
        ]);
        let lines = call["lines"].as_array().into_iter().flatten();
        let Some(line) = lines.max_by_key(|line| line["times"].as_u64()) else {
            continue;
        };
        let (file, number) = (&line["source"]["file"], &line["source"]["line"]);
        let place = format!("{}:{number}", file.as_str().unwrap_or_default());
        let (first, last) = (format!("{place}#1"), format!("{place}#last"));
        asked.extend([
            ("source", json!({ "file": file, "line": number })),
            ("state", json!({ "at": last })),
            ("history", json!({ "at": place })),
            ("slice", json!({ "at": last })),
            ("slice", json!({ "at": last, "along": "thin" })),
            ("slice", json!({ "at": first, "forward": true })),
        ]);
        let state = ask("state", json!({ "at": last }))?;
        if let Some(variable) = state["frames"][0]["variables"][0]["name"].as_str() {
            asked.extend([
                ("history", json!({ "at": place, "var": variable })),
                (
                    "find",
                    json!({ "at": place, "where": format!("{variable} == 0") }),
                ),
                ("why", json!({ "at": last, "var": variable })),
            ]);
        }
    }
    // The values are built before the first question is measured.
    ask("slice", json!({ "at": "end", "depth": 1 }))?;
    drop(client);
    let asked = asked.into_iter();
    let asked = asked.map(|(tool, arguments)| (tool.to_owned(), arguments));
    measure(program, &recording, &Vec::from_iter(asked), 5)
}

fn measure(
    program: &Path,
    recording: &Path,
    asked: &[(String, Value)],
    times: usize,
) -> Result<()> {
    let root = recording
        .parent()
        .context("the path of the recording has no parent folder")?;
    let name = recording
        .file_name()
        .context("a recording has a name")?
        .to_string_lossy()
        .into_owned();
    let mut client = Client::start(program, root)?;
    println!(
        "\nWarm answers about {name}, each asked {times} times after a first time; milliseconds.\n"
    );
    println!("| tool | arguments | first | median | slowest |\n|---|---|--:|--:|--:|");
    for (tool, arguments) in asked {
        let mut all = arguments.clone();
        if all["recording"].is_null() {
            all["recording"] = json!(name);
        }
        let first = client.call(tool, &all)?;
        if first.document.is_null() {
            println!(
                "| {tool} | `{arguments}` | refused: {} | | |",
                first.text.lines().next().unwrap_or_default()
            );
            continue;
        }
        let mut took = Vec::new();
        for _ in 0..times {
            took.push(client.call(tool, &all)?.took);
        }
        took.sort_unstable();
        let shown = |time: Duration| format!("{:.1}", time.as_secs_f64() * 1000.0);
        println!(
            "| {tool} | `{arguments}` | {} | {} | {} |",
            shown(first.took),
            shown(took[times / 2]),
            shown(took[times - 1])
        );
    }
    Ok(())
}
