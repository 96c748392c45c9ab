//! Reads the programs of the corpus, as built by `cargo xtask corpus`.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use afterimage_record::Command;
use anyhow::{Context, Result, bail};
use serde::Deserialize;

use crate::Arguments;

/// A program, and the data for running it. Paths are relative to the corpus folder.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Entry {
    pub name: String,
    wasm: PathBuf,
    args: Vec<String>,
    stdin: Option<PathBuf>,
    dirs: Vec<(PathBuf, String)>,
}

impl Entry {
    pub(crate) fn command(&self, folder: &Path) -> Command {
        Command {
            name: self.name.clone(),
            args: self.args.clone(),
            stdin: Some(
                self.stdin
                    .as_ref()
                    .map_or_else(|| PathBuf::from("/dev/null"), |s| folder.join(s)),
            ),
            dirs: self
                .dirs
                .iter()
                .map(|(host, guest)| (folder.join(host), guest.clone()))
                .collect(),
            ..Command::default()
        }
    }

    /// Returns the arguments with which `afterimage record` records the program.
    pub(crate) fn words(&self, folder: &Path) -> Vec<OsString> {
        let mut words = Vec::new();
        if let Some(stdin) = &self.stdin {
            words.extend(["--stdin".into(), folder.join(stdin).into()]);
        }
        for (host, guest) in &self.dirs {
            let mut dir = folder.join(host).into_os_string();
            dir.push("::");
            dir.push(guest);
            words.extend(["--dir".into(), dir]);
        }
        words.extend([folder.join(&self.wasm).into(), "--".into()]);
        words.extend(self.args.iter().map(OsString::from));
        words
    }

    pub(crate) fn module(&self, folder: &Path) -> Result<Vec<u8>> {
        let path = folder.join(&self.wasm);
        std::fs::read(&path).with_context(|| path.display().to_string())
    }
}

/// Returns the requested programs.
pub(crate) fn entries(arguments: &Arguments) -> Result<Vec<Entry>> {
    let path = arguments.corpus.join("manifest.json");
    let text = std::fs::read_to_string(&path).with_context(|| {
        format!(
            "cannot read {} (build the corpus first: cargo xtask corpus)",
            path.display()
        )
    })?;
    let all: Vec<Entry> =
        serde_json::from_str(&text).with_context(|| path.display().to_string())?;
    for name in &arguments.only {
        if !all.iter().any(|e| e.name == *name) {
            bail!("{} has no program {name:?}", path.display());
        }
    }
    let wanted = |e: &Entry| {
        if arguments.only.is_empty() {
            !arguments.skip.contains(&e.name)
        } else {
            arguments.only.contains(&e.name)
        }
    };
    Ok(all.into_iter().filter(wanted).collect())
}
