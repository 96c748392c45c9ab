//! `cargo xtask forge`: forged recordings with right checksums, which `verify` has to tell from sound ones wherever an answer would be another.

use crate::tool;
use anyhow::{Context, Result};
use std::process::ExitCode;

/// Forges so many, in runs of one seed each.
///
/// # Errors
/// If Cargo cannot be run.
pub fn run(count: u64, seeds: u64, first: u64) -> Result<ExitCode> {
    let mut holds = true;
    for seed in first..first.saturating_add(seeds) {
        println!("seed {seed}");
        let status = tool::test("forged::")
            .env(
                "AFTERIMAGE_FORGED",
                count.div_ceil(seeds.max(1)).to_string(),
            )
            .env("AFTERIMAGE_SEED", seed.to_string())
            .status()
            .context("cannot run cargo")?;
        holds &= status.success();
    }
    Ok(if holds {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}
