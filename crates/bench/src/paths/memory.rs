//! Measures the peak memory of recording and compacting, in a process that does nothing else.

use std::path::{Path, PathBuf};
use std::process::Command;

use afterimage_program::Program;
use afterimage_record::Cache;
use afterimage_trace::{TraceFile, TraceWriter};
use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};

use super::subject::{Settings, build, make_recording};
use crate::corpus::{Entry, entries};

/// The peak resident memory in MiB, including the guest's.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub(crate) struct Memory {
    /// The memory of a recording without the path.
    pub without: f64,
    /// The memory of a recording with the path.
    pub recording: f64,
    /// The memory of compacting that recording's words.
    pub compaction: f64,
}

/// The arguments of the measured process.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    #[arg(long)]
    corpus: PathBuf,
    #[arg(long)]
    name: String,
    /// The folder of compiled modules and recordings
    #[arg(long)]
    folder: PathBuf,
}

/// Measures in a separate process. The folder has a cache with the compiled modules, so that
/// compiling does not count.
pub(crate) fn measure(corpus: &Path, entry: &Entry, folder: &Path) -> Result<Memory> {
    #[expect(clippy::disallowed_methods, reason = "this program itself")]
    let output = Command::new(std::env::current_exe()?)
        .arg("memory")
        .arg("--corpus")
        .arg(corpus)
        .args(["--name", &entry.name])
        .arg("--folder")
        .arg(folder)
        .output()?;
    if !output.status.success() {
        bail!("{}", String::from_utf8_lossy(&output.stderr));
    }
    serde_json::from_slice(&output.stdout).context("the memory measurement cannot be read")
}

/// Records and compacts, and prints the memory taken.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let all = entries(&crate::Arguments {
        corpus: arguments.corpus.clone(),
        only: vec![arguments.name.clone()],
        skip: Vec::new(),
        runs: 1,
        out: None,
    })?;
    let entry = all.first().context("no such program")?;
    let bytes = entry.module(&arguments.corpus)?;
    let program = Program::parse(&bytes)?;
    let command = entry.command(&arguments.corpus);
    let at = arguments.folder.join("memory.aft");
    let cache = Cache::in_folder(&arguments.folder.join("cache"));
    let record = |paths| {
        forget_peak();
        let settings = Settings {
            cache: &cache,
            paths,
            deterministic: false,
        };
        make_recording(&bytes, &program, &command, &at, settings)?;
        Ok::<_, anyhow::Error>(peak_mib())
    };
    let (without, recording) = (record(false)?, record(true)?);
    forget_peak();
    let file = TraceFile::open(&at)?;
    let out = TraceWriter::append(&at)?;
    build(&file, &bytes, &program, &out)?;
    out.commit()?;
    let memory = Memory {
        without,
        recording,
        compaction: peak_mib(),
    };
    println!("{}", serde_json::to_string(&memory)?);
    Ok(())
}

/// Resets the peak memory of the process, so that [`peak_mib`] covers only later work.
pub(crate) fn forget_peak() {
    // If this is not possible, the peak also covers earlier work, so it can only be larger.
    let _ = std::fs::write("/proc/self/clear_refs", "5");
}

/// Returns the peak resident memory since [`forget_peak`] in MiB; 0 if the system does not report
/// it.
pub(crate) fn peak_mib() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<f64>().ok());
    kib.unwrap_or_default() / 1024.0
}
