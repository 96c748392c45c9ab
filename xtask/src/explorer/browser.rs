//! Manages the tools that drive the browser: node, npm's packages, and Chromium.

use crate::{corpus, tool};
use anyhow::{Context, Result};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;

/// The paths where distributions install Chromium.
const NAMES: [&str; 4] = [
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
];

/// A browser and its driver.
pub struct Browser {
    packages: PathBuf,
    /// The path of the browser, if it is installed.
    program: Option<String>,
}

impl Browser {
    /// Installs npm's packages into a separate folder. If that is impossible, prints the reason and
    /// returns `None`.
    pub fn new(folder: &Path) -> Result<Option<Self>> {
        for program in ["node", "npm"] {
            if !installed(program) {
                println!("SKIPPED everything: {program} is not installed");
                return Ok(None);
            }
        }
        let packages = folder.join("npm");
        fs::create_dir_all(&packages)?;
        let list = corpus::workspace().join("xtask/explorer/package.json");
        fs::copy(&list, packages.join("package.json"))
            .with_context(|| list.display().to_string())?;
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
        Ok(Some(Self {
            packages,
            program: program(),
        }))
    }

    /// Whether the browser is installed.
    pub fn is_there(&self) -> bool {
        self.program.is_some()
    }

    /// Runs a script of this folder. The script's arguments are those in `before`, the browser, and
    /// those in `after`.
    pub fn run(&self, script: &str, before: &[&str], after: &[&str]) -> Result<bool> {
        let program = self.program.as_deref().context("there is no browser")?;
        let mut node = tool::start("node");
        node.current_dir(&self.packages);
        node.arg(corpus::workspace().join("xtask/explorer").join(script));
        node.args(before).arg(program).args(after);
        Ok(node.status().context("cannot run node")?.success())
    }

    /// Checks the types that the page's scripts declare in their comments.
    pub fn types(&self) -> Result<bool> {
        let mut compiler = tool::start("node");
        compiler.current_dir(corpus::workspace());
        compiler.arg(self.packages.join("node_modules/typescript/bin/tsc"));
        compiler.args(["--project", "crates/explorer/tsconfig.json"]);
        let is_well = compiler.status().context("cannot run tsc")?.success();
        println!(
            "types of the page's scripts: {}",
            if is_well { "well" } else { "wrong" }
        );
        Ok(is_well)
    }
}

/// Returns the path of Chromium, if it is installed.
pub fn program() -> Option<String> {
    NAMES
        .into_iter()
        .find(|name| installed(name))
        .and_then(found)
}

fn installed(name: &str) -> bool {
    let mut command = tool::start(name);
    command
        .arg("--version")
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

/// Returns the path of a program.
fn found(name: &str) -> Option<String> {
    let out = tool::start("sh")
        .args(["-c", &format!("command -v {name}")])
        .output()
        .ok()?;
    Some(String::from_utf8(out.stdout).ok()?.trim().to_owned())
}
