//! Reads and writes `manifest.json`, which describes how to run each program of the corpus.

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use std::path::Path;

/// An entry for one program. Host paths are relative to the manifest's folder, so that the folder
/// can be moved.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Entry {
    /// The program's short name, unique in the manifest.
    pub name: String,
    /// The module, a WASI preview 1 command.
    pub wasm: String,
    /// The arguments after the program's own name.
    pub args: Vec<String>,
    /// The file for standard input. Without a file, standard input is empty.
    pub stdin: Option<String>,
    /// The folders to grant, each as host path and guest path.
    pub dirs: Vec<[String; 2]>,
    /// The language of the program proper. The main functions of C libraries are in Rust.
    pub language: String,
    /// The SPEC program that it replaces.
    pub like: String,
    /// The packages from which the program was built, each with its version.
    pub version: String,
    /// Notes about the program, its input, or its compilation.
    pub notes: String,
    /// The module's size in bytes, including debug information.
    pub bytes: u64,
    /// The number of functions that the module defines.
    pub functions: u32,
}

const FILE: &str = "manifest.json";

/// Reads the manifest in `folder`. Returns no entries if the file does not exist yet.
///
/// # Errors
/// Returns an error if the file cannot be read or is not a manifest.
pub fn read(folder: &Path) -> Result<Vec<Entry>> {
    let path = folder.join(FILE);
    if !path.exists() {
        return Ok(Vec::new());
    }
    let text = std::fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
    serde_json::from_slice(&text)
        .with_context(|| format!("{} is not a corpus manifest", path.display()))
}

/// Writes `entries` into `folder`, in order of name. Keeps the manifest's entries for other
/// programs, if their modules still exist.
///
/// # Errors
/// Returns an error if the old manifest cannot be read or the new one cannot be written.
pub fn merge(folder: &Path, entries: Vec<Entry>) -> Result<()> {
    let mut all = read(folder)?;
    all.retain(|old| {
        entries.iter().all(|new| new.name != old.name) && folder.join(&old.wasm).exists()
    });
    all.extend(entries);
    all.sort_by(|a, b| a.name.cmp(&b.name));
    let mut text = serde_json::to_string_pretty(&all)?;
    text.push('\n');
    let path = folder.join(FILE);
    std::fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))
}
