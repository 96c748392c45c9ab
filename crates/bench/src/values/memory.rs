//! Measures the peak memory of building, in a process that does nothing else.

use std::path::PathBuf;
use std::process::Command;

use afterimage_program::Program;
use afterimage_replay::whole_path::{FileSegments, recorded_path};
use afterimage_trace::TraceFile;
use afterimage_wet::checkpoint::INTERVAL;
use afterimage_wet::{LeftOut, Run};
use anyhow::{Context, Result, bail};
use serde::Serialize;

use super::observed::Observed;
use super::{Row, name};
use crate::paths::columns::{Column, table};
use crate::paths::memory::{forget_peak, peak_mib};
use crate::paths::subject::Subject;

/// Memory in MiB.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Memory {
    /// The peak resident memory of the process.
    peak: f64,
    /// The size of the guest's memories at the end.
    guest: f64,
    /// The size of the builder's shadow of the guest's memories.
    shadow: f64,
}

impl Memory {
    /// Returns the memory used in addition to the guest's memories and their shadow.
    pub(crate) fn beyond(&self) -> f64 {
        (self.peak - self.guest - self.shadow).max(0.0)
    }
}

/// The arguments of the measured process.
#[derive(Debug, clap::Args)]
pub(crate) struct MemoryOptions {
    /// A recording with its path
    #[arg(long)]
    at: PathBuf,
    /// The last block that is traced
    #[arg(long)]
    last: u64,
}

pub(crate) fn measure(subject: &Subject, last: u64, observed: &Observed) -> Result<Memory> {
    #[expect(clippy::disallowed_methods, reason = "this program itself")]
    let output = Command::new(std::env::current_exe()?)
        .arg("values-memory")
        .arg("--at")
        .arg(subject.folder.path().join("run.aft"))
        .args(["--last", &last.to_string()])
        .output()?;
    if !output.status.success() {
        bail!("{}", String::from_utf8_lossy(&output.stderr));
    }
    let peak = String::from_utf8_lossy(&output.stdout);
    let mib = |bytes: u64| bytes as f64 / f64::from(1 << 20);
    Ok(Memory {
        peak: peak
            .trim()
            .parse()
            .context("the peak of memory is not a number")?,
        guest: mib(observed.guest),
        shadow: mib(observed.shadow),
    })
}

/// Builds without keeping anything, and prints the memory taken.
pub(crate) fn run(arguments: &MemoryOptions) -> Result<()> {
    forget_peak();
    let file = TraceFile::open(&arguments.at)?;
    let bytes = file.module()?;
    let program = Program::parse(&bytes)?;
    let path = recorded_path(&file, &program)?.context("the recording has no path")?;
    let run = Run {
        program: &program,
        bytes: &bytes,
        path: &path,
        continuations: &path.segments().directory().continuations,
        window: 1..=arguments.last,
        left_out: &LeftOut::NOTHING,
        stopped: None,
        epoch: Run::<FileSegments>::EPOCH,
    };
    run.build_with_checkpoints(
        file.log()?,
        |_, _| Ok::<_, std::convert::Infallible>(()),
        (INTERVAL, |_: &_| Ok(())),
        |_| {},
    )?;
    println!("{}", peak_mib());
    Ok(())
}

pub(crate) fn report(rows: &[Row]) -> String {
    table(
        "The peak memory of a process that only builds, in MiB: the total, the guest's memory, the shadow of that memory, and the rest",
        rows,
        name,
        &[
            Column::cost("all", 0, |row: &Row| row.memory.peak),
            Column::fact("guest", 0, |row: &Row| row.memory.guest),
            Column::fact("shadow", 0, |row: &Row| row.memory.shadow),
            Column::cost("beyond", 0, |row: &Row| row.memory.beyond()),
        ],
    )
}
