//! Prints results and keeps them on request.

use std::path::Path;

use anyhow::Result;
use serde::Serialize;

/// Prints a report and, on request, writes it as Markdown, with the results as JSON beside it.
pub(crate) fn publish(
    out: Option<&Path>,
    date: &str,
    what: &str,
    text: &str,
    results: &impl Serialize,
) -> Result<()> {
    println!("{text}");
    if let Some(folder) = out {
        std::fs::create_dir_all(folder)?;
        let stem = folder.join(format!("{date}-{what}"));
        std::fs::write(stem.with_extension("md"), text)?;
        std::fs::write(
            stem.with_extension("json"),
            serde_json::to_string_pretty(results)? + "\n",
        )?;
        eprintln!("written to {}.md and .json", stem.display());
    }
    Ok(())
}
