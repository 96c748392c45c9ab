//! `cargo xtask forge`: forges recordings with correct checksums. `verify` must report every
//! forgery that would change an answer.

use crate::tool;
use anyhow::{Context, Result};
use std::process::ExitCode;

/// Forges `count` recordings, with an equal share for each of `seeds` seeds.
///
/// # Errors
/// Returns an error if Cargo cannot be run.
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
