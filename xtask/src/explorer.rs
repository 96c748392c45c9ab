//! `cargo xtask explorer`: the explorer's page in a browser, clicked through view by view, and its
//! scripts' types.
//!
//! npm supplies the browser driver, the page's judge (axe-core) and the type checker; the browser
//! is the machine's Chromium. Missing tools are named, and the checks that need them are skipped.

use crate::{corpus, tool, toolchain};
use anyhow::{Context, Result, bail};
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ExitCode, Stdio};

/// The usual places in distributions.
const BROWSERS: [&str; 4] = [
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
];

/// Checks the page.
///
/// # Errors
/// If a program cannot be built, recorded or served.
pub fn run(program: Option<&Path>) -> Result<ExitCode> {
    let folder = corpus::workspace().join("target/explorer");
    fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
    let Some(packages) = packages(&folder)? else {
        return Ok(ExitCode::SUCCESS);
    };
    let mut failed = !types(&packages)?;
    let Some(browser) = browser() else {
        println!(
            "SKIPPED the page in a browser: Chromium is not installed (apt-get install chromium)"
        );
        return Ok(code(failed));
    };
    let tool = match program {
        Some(program) => {
            fs::canonicalize(program).with_context(|| program.display().to_string())?
        }
        None => tool::build()?,
    };
    let recording = recorded(&tool, &folder)?;
    let page = Page::of(&tool, &recording)?;
    let mut node = tool::start("node");
    node.current_dir(&packages);
    node.arg(corpus::workspace().join("xtask/explorer/check.mjs"));
    node.args([
        &page.url,
        &browser,
        &folder.join("pictures").display().to_string(),
    ]);
    failed |= !node.status().context("cannot run node")?.success();
    println!(
        "pictures of all views: {}",
        folder.join("pictures").display()
    );
    Ok(code(failed))
}

fn code(failed: bool) -> ExitCode {
    if failed {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    }
}

/// Where Chromium is, if it is installed.
pub fn browser() -> Option<String> {
    found(BROWSERS.into_iter().find(|name| installed(name))?)
}

fn installed(name: &str) -> bool {
    let mut command = tool::start(name);
    command
        .arg("--version")
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

/// Returns the place of a program.
fn found(name: &str) -> Option<String> {
    let out = tool::start("sh")
        .args(["-c", &format!("command -v {name}")])
        .output()
        .ok()?;
    Some(String::from_utf8(out.stdout).ok()?.trim().to_owned())
}

/// Returns npm's packages, in their own folder; `None`, with a report why, if there are none.
fn packages(folder: &Path) -> Result<Option<PathBuf>> {
    for program in ["node", "npm"] {
        if !installed(program) {
            println!("SKIPPED everything: {program} is not installed");
            return Ok(None);
        }
    }
    let packages = folder.join("npm");
    fs::create_dir_all(&packages)?;
    let list = corpus::workspace().join("xtask/explorer/package.json");
    fs::copy(&list, packages.join("package.json")).with_context(|| list.display().to_string())?;
    let mut npm = tool::start("npm");
    npm.current_dir(&packages);
    npm.args([
        "install",
        "--no-audit",
        "--no-fund",
        "--ignore-scripts",
        "--silent",
    ]);
    if !npm.status().context("cannot run npm")?.success() {
        println!(
            "SKIPPED everything: npm could not install {}",
            list.display()
        );
        return Ok(None);
    }
    Ok(Some(packages))
}

/// Checks the types that the page's scripts say in their comments.
fn types(packages: &Path) -> Result<bool> {
    let mut compiler = tool::start("node");
    compiler.current_dir(corpus::workspace());
    compiler.arg(packages.join("node_modules/typescript/bin/tsc"));
    compiler.args(["--project", "crates/explorer/tsconfig.json"]);
    let is_well = compiler.status().context("cannot run tsc")?.success();
    println!(
        "types of the page's scripts: {}",
        if is_well { "well" } else { "wrong" }
    );
    Ok(is_well)
}

/// Records the program that is in the check's folder. Returns the recording.
fn recorded(tool: &Path, folder: &Path) -> Result<PathBuf> {
    toolchain::ensure_wasm_target()?;
    let source = corpus::workspace().join("xtask/explorer/bank.rs");
    let (module, recording) = (folder.join("bank.wasm"), folder.join("bank.aft"));
    let mut rustc = tool::start("rustc");
    rustc.args([
        "--target",
        toolchain::TARGET,
        "-g",
        "--edition",
        "2024",
        "-o",
    ]);
    if !rustc
        .arg(&module)
        .arg(&source)
        .status()
        .context("cannot run rustc")?
        .success()
    {
        bail!("rustc could not compile {}", source.display());
    }
    for old in ["bank.aft", "bank.aft.notes.md"] {
        let _ = fs::remove_file(folder.join(old));
    }
    let mut record = tool::start(tool);
    record.current_dir(corpus::workspace());
    record.args(["record", "--force", "--sources", "xtask/explorer", "-o"]);
    // The program ends by a failed assertion, so its exit code says nothing.
    record
        .arg(&recording)
        .arg(&module)
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    record.status().context("cannot run afterimage")?;
    if !recording.exists() {
        bail!("{} was not recorded", module.display());
    }
    Ok(recording)
}

/// A page that is served until this is dropped.
struct Page {
    child: Child,
    url: String,
}

impl Page {
    fn of(tool: &Path, recording: &Path) -> Result<Self> {
        let mut explore = tool::start(tool);
        explore.args(["explore", "--no-open"]).arg(recording);
        let mut child = explore
            .stdout(Stdio::piped())
            .spawn()
            .context("cannot run afterimage")?;
        let mut url = String::new();
        if let Some(out) = child.stdout.take() {
            BufReader::new(out).read_line(&mut url)?;
        }
        let url = url.trim().to_owned();
        let page = Self { child, url };
        if page.url.is_empty() {
            bail!("afterimage explore printed no address");
        }
        Ok(page)
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
