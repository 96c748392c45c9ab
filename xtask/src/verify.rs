//! `cargo xtask verify`: checks real programs completely, on small inputs against the definitions
//! and on large inputs with `afterimage verify`.

use crate::VerifyArguments;
use crate::manifest::{self, Entry};
use crate::{corpus, tool};
use anyhow::{Context, Result, bail};
use serde::Deserialize;
use std::fs;
use std::path::Path;
use std::process::{ExitCode, Stdio};
use std::time::Instant;

/// The relevant part of the output of `afterimage verify --format json`.
#[derive(Deserialize)]
struct Verdict {
    sound: bool,
    bytes: u64,
    path: Option<PathRow>,
    values: Option<Vec<ValuesRow>>,
    repeats: Option<bool>,
}

#[derive(Deserialize)]
struct PathRow {
    blocks: u64,
}

#[derive(Deserialize)]
struct ValuesRow {
    statements: u64,
}

/// Runs the requested checks. The exit code reports faults.
///
/// # Errors
/// Returns an error if there is no corpus, or nothing can be built.
pub fn run(arguments: &VerifyArguments) -> Result<ExitCode> {
    let folder = arguments
        .corpus
        .clone()
        .unwrap_or_else(corpus::default_folder);
    let folder = std::path::absolute(&folder)
        .with_context(|| format!("cannot resolve {}", folder.display()))?;
    let entries = entries(&folder, &arguments.only)?;
    let tiny = folder.join(corpus::TINY);
    let mut holds = true;
    if !arguments.full_only {
        holds &= check_tiny(&tiny, &arguments.only)?;
    }
    if !arguments.tiny_only {
        let tool = tool::build()?;
        println!(
            "| program | blocks | statements | bytes | recorded and built (s) | verified (s) | |"
        );
        println!("|---|--:|--:|--:|--:|--:|---|");
        let out = corpus::workspace().join("target/verify");
        fs::create_dir_all(&out).with_context(|| format!("cannot make {}", out.display()))?;
        let mut ratios = Vec::new();
        for entry in &entries {
            let at = out.join(&entry.name).with_extension("aft");
            let verified = verify(&tool, entry, &folder, &at);
            // Whole traces of all programs at once would need too much disk space.
            let removed = fs::remove_file(&at);
            let verified = verified.with_context(|| entry.name.clone())?;
            holds &= verified.holds;
            ratios.push(verified.ratio);
            removed.with_context(|| format!("cannot remove {}", at.display()))?;
        }
        let logarithms = ratios.iter().map(|ratio| ratio.ln()).sum::<f64>();
        let mean = (logarithms / ratios.len().max(1) as f64).exp();
        println!("| geometric mean | | | | {mean:.3} | | | |");
    }
    Ok(if holds {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Returns the requested programs, or all.
fn entries(folder: &Path, only: &[String]) -> Result<Vec<Entry>> {
    let mut entries = manifest::read(folder)?;
    if entries.is_empty() {
        bail!(
            "there is no corpus in {}: build it with `cargo xtask corpus`",
            folder.display()
        );
    }
    if let Some(name) = only
        .iter()
        .find(|&name| entries.iter().all(|e| e.name != *name))
    {
        bail!(
            "the corpus in {} has no program called {name:?}",
            folder.display()
        );
    }
    entries.retain(|entry| only.is_empty() || only.contains(&entry.name));
    Ok(entries)
}

/// Runs the tests that compare the tiny runs with the definitions.
fn check_tiny(tiny: &Path, only: &[String]) -> Result<bool> {
    let status = tool::test("corpus::")
        .arg("--ignored")
        .env("AFTERIMAGE_CORPUS", tiny)
        .env("AFTERIMAGE_CORPUS_ONLY", only.join(","))
        .status()
        .context("cannot run cargo")?;
    Ok(status.success())
}

/// The result for a recording.
struct Verified {
    holds: bool,
    /// The size of the file in bytes per executed statement.
    ratio: f64,
}

/// Records a program with everything, verifies the recording, and prints a line of the table.
fn verify(tool: &Path, entry: &Entry, folder: &Path, at: &Path) -> Result<Verified> {
    let start = Instant::now();
    let recorded = tool::start(tool)
        .args(["record", "--quiet", "--force", "--lens", "full", "-o"])
        .arg(at)
        .args(tool::command(entry, folder))
        .stdout(Stdio::null())
        .status()
        .with_context(|| format!("cannot run {}", tool.display()))?;
    if !recorded.success() {
        bail!("recording ended with {recorded}");
    }
    let recording = start.elapsed().as_secs_f64();
    let start = Instant::now();
    let verified = tool::start(tool)
        .args(["verify", "--format", "json"])
        .arg(at)
        .stderr(Stdio::inherit())
        .output()
        .with_context(|| format!("cannot run {}", tool.display()))?;
    let verifying = start.elapsed().as_secs_f64();
    let verdict: Verdict = serde_json::from_slice(&verified.stdout)
        .context("cannot parse the output of afterimage verify --format json")?;
    let statements = verdict.values.iter().flatten().map(|row| row.statements);
    let statements: u64 = statements.sum();
    let ratio = verdict.bytes as f64 / statements.max(1) as f64;
    let holds = verdict.sound && verdict.repeats == Some(true) && verdict.values.is_some();
    println!(
        "| {} | {} | {statements} | {} | {ratio:.3} | {recording:.0} | {verifying:.0} | {} |",
        entry.name,
        verdict.path.map_or(0, |path| path.blocks),
        verdict.bytes,
        if holds { "sound, repeats" } else { "NOT sound" }
    );
    if !holds {
        print!("{}", String::from_utf8_lossy(&verified.stdout));
    }
    Ok(Verified { holds, ratio })
}
