//! Measures the export of values as Parquet files, in rows per second with one and with two
//! processes, and in bytes per row.

use std::fs::{self, File};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use afterimage_replay::Recording;
use anyhow::{Context, Result, ensure};
use parquet::file::reader::{FileReader, SerializedFileReader};
use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};
use serde::Serialize;

use crate::machine::Machine;
use crate::paths::columns::{Column, table, targets};
use crate::publish::publish;
use crate::recorded;

/// The options of the measurement.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// The folder for the results; without it, no results are kept
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,
    /// The number of blocks in a window
    #[arg(long, value_name = "N", default_value_t = 1 << 20)]
    window_blocks: u64,
    /// The number of times to measure each export; the fastest counts
    #[arg(long, value_name = "N", default_value_t = 3)]
    runs: usize,
    /// Recordings with their values
    #[arg(value_name = "FILE.aft", required = true)]
    recordings: Vec<PathBuf>,
}

/// The measurements of one program.
#[derive(Debug, Serialize)]
struct Row {
    name: String,
    windows: u64,
    rows: u64,
    bytes: u64,
    one: Seconds,
    two: Seconds,
}

/// The duration of an export, as wall-clock time and as processor time of all its processes.
#[derive(Clone, Copy, Debug, Serialize)]
struct Seconds {
    clock: f64,
    processor: f64,
}

impl Seconds {
    const NONE: Self = Self {
        clock: f64::INFINITY,
        processor: f64::INFINITY,
    };

    fn least(self, other: Self) -> Self {
        Self {
            clock: self.clock.min(other.clock),
            processor: self.processor.min(other.processor),
        }
    }
}

#[derive(Serialize)]
struct Results {
    machine: Machine,
    window_blocks: u64,
    runs: usize,
    rows: Vec<Row>,
}

pub(crate) fn run(options: &Options) -> Result<()> {
    let mut rows = Vec::new();
    for at in &options.recordings {
        eprintln!("{} …", at.display());
        let recording = recorded::opened(at)?;
        rows.push(measure(&recording, options).with_context(|| at.display().to_string())?);
    }
    let results = Results {
        machine: Machine::this(),
        window_blocks: options.window_blocks,
        runs: options.runs,
        rows,
    };
    let text = report(&results);
    let date = &results.machine.date;
    publish(options.out.as_deref(), date, "parquet", &text, &results)
}

fn measure(recording: &Recording, options: &Options) -> Result<Row> {
    let blocks = options.window_blocks.max(1);
    let windows = recording.path()?.length().div_ceil(blocks).max(1);
    let mut row = Row {
        name: recorded::name(recording),
        windows,
        rows: 0,
        bytes: 0,
        one: Seconds::NONE,
        two: Seconds::NONE,
    };
    for _ in 0..options.runs.max(1) {
        let folder = tempfile::tempdir()?;
        let tables = folder.path().join("one");
        row.one = row
            .one
            .least(export(recording, &tables, blocks, &parts(windows, 1))?);
        (row.rows, row.bytes) = size(&tables)?;
        let tables = folder.path().join("two");
        row.two = row
            .two
            .least(export(recording, &tables, blocks, &parts(windows, 2))?);
        ensure!(
            size(&tables)? == (row.rows, row.bytes),
            "two processes and one write different values"
        );
    }
    Ok(row)
}

/// Splits the windows into one part for each process.
fn parts(windows: u64, processes: u64) -> Vec<Range<u64>> {
    let first = |process| windows * process / processes;
    let all = (0..processes).map(|process| first(process)..first(process + 1));
    all.filter(|part| !part.is_empty()).collect()
}

/// Exports the values, with a separate process for each part of the windows. Returns the seconds.
fn export(
    recording: &Recording,
    tables: &Path,
    blocks: u64,
    parts: &[Range<u64>],
) -> Result<Seconds> {
    let program = std::env::current_exe()?.with_file_name("afterimage");
    let start = Instant::now();
    let mut children = Vec::new();
    for part in parts {
        #[expect(clippy::disallowed_methods, reason = "afterimage itself")]
        let mut command = Command::new(&program);
        command
            .args(["export", "--format", "parquet", "--tables", "values"])
            .args(["--window", &format!("{}..{}", part.start, part.end)])
            .args(["--window-blocks", &blocks.to_string()])
            .arg("-o")
            .arg(tables)
            .arg(recording.at())
            .stderr(Stdio::null());
        let child = command.spawn();
        children.push(child.with_context(|| program.display().to_string())?);
    }
    let mut processor = 0.0;
    for mut child in children {
        processor += ended(&child)?;
        ensure!(child.wait()?.success(), "afterimage export failed");
    }
    Ok(Seconds {
        clock: start.elapsed().as_secs_f64(),
        processor,
    })
}

/// Waits for the end of a process, and returns the seconds of processor time that it took.
fn ended(child: &Child) -> Result<f64> {
    // The times of a process can be read only until the process has been waited for.
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
    waitid(WaitId::Pid(Pid::from_child(child)), options)?;
    let stat = fs::read_to_string(format!("/proc/{}/stat", child.id()))?;
    let fields = stat.rsplit(')').next().unwrap_or_default();
    let ticks = fields.split_whitespace().skip(11).take(2);
    let ticks = ticks.map(|ticks| ticks.parse::<u64>().unwrap_or(0));
    // Linux counts hundredths of a second.
    Ok(ticks.sum::<u64>() as f64 / 100.0)
}

/// Returns the number of rows of values in a data set, and the number of bytes of their files.
fn size(tables: &Path) -> Result<(u64, u64)> {
    let (mut rows, mut bytes) = (0, 0);
    for entry in fs::read_dir(tables)? {
        let at = entry?.path().join("values.parquet");
        if at.exists() {
            let file = File::open(&at)?;
            bytes += file.metadata()?.len();
            let reader = SerializedFileReader::new(file)?;
            rows += reader.metadata().file_metadata().num_rows() as u64;
        }
    }
    Ok((rows, bytes))
}

fn report(results: &Results) -> String {
    let machine = &results.machine;
    let mut out = format!(
        "{}, {} cores, {} GiB, {}; windows of {} blocks; seconds are by the clock, the fastest of {}, with the tables about the whole run.\n",
        machine.processor,
        machine.cores,
        machine.memory_gib,
        machine.date,
        results.window_blocks,
        results.runs,
    );
    out += &table(
        "Values as Parquet files, with one process and with two, each of which writes half of the windows",
        &results.rows,
        |row| &row.name,
        &[
            Column::fact("windows", 0, |row: &Row| row.windows),
            Column::fact("rows, millions", 1, |row: &Row| row.rows as f64 / 1e6),
            size_of_a_row(),
            one_process(),
            Column::gain("a processor second", 1, |row: &Row| {
                row.rows as f64 / 1e6 / row.one.processor
            }),
            Column::gain("two processes, million rows a second", 1, |row: &Row| {
                row.rows as f64 / 1e6 / row.two.clock
            }),
            Column::gain("a processor second", 1, |row: &Row| {
                row.rows as f64 / 1e6 / row.two.processor
            }),
            two_times_one(),
        ],
    );
    out += &targets(
        &results.rows,
        &[
            ("2.5", "1.0", size_of_a_row()),
            ("5", "20", one_process()),
            ("1.8", "1.95", two_times_one()),
        ],
    );
    out
}

fn size_of_a_row<'a>() -> Column<'a, Row> {
    Column::cost("bytes a row", 2, |row: &Row| {
        row.bytes as f64 / row.rows.max(1) as f64
    })
}

fn one_process<'a>() -> Column<'a, Row> {
    Column::gain("one process, million rows a second", 1, |row: &Row| {
        row.rows as f64 / 1e6 / row.one.clock
    })
}

fn two_times_one<'a>() -> Column<'a, Row> {
    Column::gain("two, times one", 2, |row: &Row| {
        row.one.clock / row.two.clock
    })
}
