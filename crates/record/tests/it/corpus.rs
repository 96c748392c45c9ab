//! Runs the corpus programs on small inputs, so that everything about their runs can be checked.
//!
//! `cargo xtask corpus` builds the programs once, and `cargo xtask verify` runs their test
//! (docs/CORPUS.md). The variable `AFTERIMAGE_CORPUS` names the folder, and
//! `AFTERIMAGE_CORPUS_ONLY` selects programs.

use std::path::{Path, PathBuf};
use std::time::Instant;

use afterimage_record::{Command, Interrupt};
use afterimage_trace::Ending;
use serde::Deserialize;

use crate::harness::{Recording, quiet, try_record};
use crate::stored::Stored;
use crate::{machine, slices, stepped, wet};

/// A program and its input. Paths are relative to the manifest.
#[derive(Deserialize)]
struct Entry {
    name: String,
    wasm: PathBuf,
    args: Vec<String>,
    stdin: Option<PathBuf>,
    dirs: Vec<(PathBuf, String)>,
}

#[test]
#[ignore = "needs programs that take minutes to build: cargo xtask verify, docs/CORPUS.md"]
fn counts_machine_traces_and_slices() {
    each(|recording| {
        recording.check();
        let stored = Stored::of(recording);
        machine::agree(recording, &stored);
        stepped::agree(recording, &stored);
        wet::agree(recording, &stored);
        wet::agree_on_many(recording, &stored);
        slices::agree_on_few(recording, &stored);
    });
}

/// Records each program and checks the recording.
fn each(check: impl Fn(&Recording)) {
    let folder = std::env::var_os("AFTERIMAGE_CORPUS");
    let folder =
        PathBuf::from(folder.expect("AFTERIMAGE_CORPUS names a folder, see docs/CORPUS.md"));
    let manifest = std::fs::read(folder.join("manifest.json")).expect("a corpus");
    let entries: Vec<Entry> = serde_json::from_slice(&manifest).expect("a manifest");
    assert!(!entries.is_empty(), "the corpus has programs");
    let only = std::env::var("AFTERIMAGE_CORPUS_ONLY").unwrap_or_default();
    let wanted = |name: &str| only.is_empty() || only.split(',').any(|one| one == name);
    for entry in entries.iter().filter(|entry| wanted(&entry.name)) {
        let recording = entry.record(&folder);
        let events = recording.file.verify().events;
        println!("{}: {events} events", entry.name);
        let start = Instant::now();
        check(&recording);
        println!("{}: {:.0?}", entry.name, start.elapsed());
    }
}

impl Entry {
    fn record(&self, folder: &Path) -> Recording {
        let stdin = self.stdin.as_ref();
        let dirs = self.dirs.iter();
        let command = Command {
            name: self.name.clone(),
            args: self.args.clone(),
            stdin: Some(stdin.map_or_else(|| "/dev/null".into(), |file| folder.join(file))),
            dirs: dirs
                .map(|(host, guest)| (folder.join(host), guest.clone()))
                .collect(),
            ..Command::default()
        };
        let bytes = std::fs::read(folder.join(&self.wasm)).expect("a module");
        let recorded = try_record(&bytes, &command, &quiet(), &Interrupt::new());
        let recording = recorded.unwrap_or_else(|error| panic!("{}: {error}", self.name));
        let ending = recording.ending();
        let ends = matches!(ending, Ending::Returned | Ending::Exited { code: 0, .. });
        assert!(ends, "{}: {ending}", self.name);
        recording
    }
}
