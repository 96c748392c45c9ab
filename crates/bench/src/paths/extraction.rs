//! Measures how long it takes to extract one function's path traces. This is the analogue of Table
//! 4 of Zhang and Gupta 2001.

use std::time::Instant;

use afterimage_ids::FuncId;
use afterimage_wpp::twpp::{
    FunctionPaths, FunctionTraces, Reader, StoredTraces, Twpp, function_paths,
};
use anyhow::{Context, Result, ensure};
use rustc_hash::FxHashMap;
use serde::Serialize;

use super::columns::{Column, table};
use super::raw::{BlockNumbers, RawTrace};
use super::scan::Scan;
use super::subject::Subject;
use super::tape::Tape;
use super::{Row, name};
use crate::statistics::geometric;

/// The mean and the maximum of the milliseconds for one function.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Milliseconds {
    pub mean: f64,
    max: f64,
}

impl Milliseconds {
    fn of(times: &[f64]) -> Self {
        Self {
            mean: times.iter().sum::<f64>() / times.len() as f64,
            max: times.iter().copied().fold(f64::NAN, f64::max),
        }
    }
}

/// The time that each method of extraction takes.
#[derive(Debug, Serialize)]
pub(crate) struct Extraction {
    /// Scanning the raw trace in memory.
    pub scan: Milliseconds,
    /// Reading a function in the compacted file, for all functions that were called. The function
    /// is found, its checksum is verified, and its traces are available in compacted form.
    pub file: Milliseconds,
    /// As for [`Self::file`], plus decoding and checking every series of every trace.
    pub checked: Milliseconds,
    /// The factor by which [`Self::file`] is faster than the scan, as the geometric mean over all
    /// functions.
    pub faster: f64,
    /// Reading a function in the compacted file, and expanding all its traces to blocks.
    pub expanded: Milliseconds,
    /// Finding a function's traces in the recording, with the segments open and their calls listed.
    pub recording: Milliseconds,
    /// The number of functions expanded.
    read: usize,
    /// The number of functions called.
    called: usize,
}

/// The number of functions to measure with every method. They are evenly spaced in the order of
/// their numbers of calls.
const READ: usize = 20;
/// The number of functions to search for in the raw trace, which takes the same time for each.
const SCANNED: usize = 3;
/// The largest total number of blocks in a function's unique path traces. Functions with more are
/// skipped, because their expanded traces would not fit into memory.
const LONGEST: u64 = 1 << 24;

/// Measures extraction. Also returns the beginning of the path, which is read anyway.
pub(crate) fn measure(
    subject: &Subject,
    twpp: &Twpp,
    file: &[u8],
    tape: Tape,
) -> Result<(Extraction, Tape)> {
    let functions = sample(twpp);
    let numbers = BlockNumbers::new(&subject.program);
    let scanned: Vec<FuncId> = (0..SCANNED)
        .filter_map(|i| functions.get(i * functions.len() / SCANNED).copied())
        .collect();
    let raw = RawTrace::new(numbers.clone(), &scanned, tape);
    let mut raw = subject.again(raw)?;
    raw.finish();

    subject.open_all()?;
    let milliseconds = |start: Instant| start.elapsed().as_secs_f64() * 1e3;
    let (mut read, mut checked) = (Vec::new(), Vec::new());
    for entry in Reader::open(file)?.entries() {
        let start = Instant::now();
        let traces = stored_traces(file, entry.function)?;
        read.push(milliseconds(start));
        traces.check()?;
        checked.push(milliseconds(start));
    }
    let (mut expanded, mut found) = (Vec::new(), Vec::new());
    for &function in &functions {
        let start = Instant::now();
        let traces = stored_traces(file, function)?.check()?;
        let blocks = expand(&traces, &numbers)?;
        expanded.push(milliseconds(start));
        // Segments list their calls on first use. Neither this nor opening the file is measured.
        function_paths(&subject.path, function)?;
        let start = Instant::now();
        let paths = function_paths(&subject.path, function)?;
        found.push(milliseconds(start));
        ensure!(
            by_trace(&paths, &numbers) == blocks,
            "{function} has different path traces in the recording and in the compacted file"
        );
        if let Some(scan) = raw.scans.iter().find(|scan| scan.function == function) {
            ensure!(
                scan.found == blocks,
                "{function} has different path traces in the raw trace and in the compacted file"
            );
        }
    }
    let scans: Vec<f64> = raw.scans.iter().map(scan_milliseconds).collect();
    let scan = Milliseconds::of(&scans);
    let extraction = Extraction {
        faster: geometric(read.iter().map(|file| scan.mean / file)),
        scan,
        file: Milliseconds::of(&read),
        checked: Milliseconds::of(&checked),
        expanded: Milliseconds::of(&expanded),
        recording: Milliseconds::of(&found),
        read: functions.len(),
        called: twpp.functions.len(),
    };
    Ok((extraction, raw.tape))
}

/// Returns a function's traces in the compacted file.
pub(crate) fn stored_traces(file: &[u8], function: FuncId) -> Result<StoredTraces<'_>> {
    let traces = Reader::open(file)?.function(function)?;
    traces.context("a function that was called is not in the file")
}

fn scan_milliseconds(scan: &Scan) -> f64 {
    scan.time.as_secs_f64() * 1e3
}

/// Returns functions that are evenly spaced in the order of their numbers of calls, except
/// functions with traces that are too long.
pub(crate) fn sample(twpp: &Twpp) -> Vec<FuncId> {
    let blocks = |f: &FunctionTraces| (0..f.paths.len()).map(|k| f.blocks(k)).sum::<u64>();
    let short = twpp.functions.iter().filter(|f| blocks(f) <= LONGEST);
    let mut functions: Vec<_> = short.map(|f| (f.calls(), f.function)).collect();
    functions.sort_unstable();
    functions.reverse();
    let read = READ.min(functions.len());
    (0..read)
        .map(|i| functions[i * functions.len() / read].1)
        .collect()
}

/// Returns all path traces of a function in the form of the raw trace, with the number of calls
/// that took each.
fn expand(
    traces: &FunctionTraces<&[u8]>,
    numbers: &BlockNumbers,
) -> Result<FxHashMap<Vec<u32>, u64>> {
    let all = traces.paths.iter().enumerate().map(|(k, path)| {
        let blocks = traces.expand(k)?;
        let numbered = blocks.blocks().map(|b| numbers.of(traces.function, b));
        Ok((numbered.collect(), path.calls))
    });
    all.collect()
}

fn by_trace(paths: &FunctionPaths, numbers: &BlockNumbers) -> FxHashMap<Vec<u32>, u64> {
    let all = paths.paths.iter().map(|path| {
        let blocks = path.trace.blocks();
        let numbered = blocks.map(|block| numbers.of(paths.function, block));
        (numbered.collect(), path.calls)
    });
    all.collect()
}

pub(crate) fn report(rows: &[Row]) -> String {
    let mut out = table(
        "2001, Table 4: milliseconds to extract one function's path traces. Raw: the whole raw trace is scanned (in memory, a chunk at a time; the paper's U). File: the compacted file, in memory, is opened, the function's block is found and its checksum verified, and its traces are available in their compacted form (the paper's C). Checked: also, every series of every trace is decoded and checked. Expanded: also, every trace is expanded to a sequence of blocks. Recording: the traces come from the recording itself, with its segments open and their calls listed; those of at most 16384 blocks become sequences of blocks, and longer traces are timestamped",
        rows,
        name,
        &[
            Column::cost("raw ms", 0, |row: &Row| row.extraction.scan.mean),
            Column::cost("file ms", 4, |row: &Row| row.extraction.file.mean),
            Column::cost("most", 2, |row: &Row| row.extraction.file.max),
            Column::cost("checked ms", 4, |row: &Row| row.extraction.checked.mean),
            Column::cost("most", 2, |row: &Row| row.extraction.checked.max),
            Column::cost("expanded ms", 3, |row: &Row| row.extraction.expanded.mean),
            Column::cost("most", 1, |row: &Row| row.extraction.expanded.max),
            Column::cost("recording ms", 2, |row: &Row| row.extraction.recording.mean),
            Column::cost("most", 1, |row: &Row| row.extraction.recording.max),
            Column::gain("raw/file", 0, |row: &Row| {
                row.extraction.scan.mean / row.extraction.file.mean
            }),
            Column::gain("mean of ratios", 0, |row: &Row| row.extraction.faster),
            Column::gain("raw/checked", 0, |row: &Row| {
                row.extraction.scan.mean / row.extraction.checked.mean
            }),
            Column::gain("raw/expanded", 0, |row: &Row| {
                row.extraction.scan.mean / row.extraction.expanded.mean
            }),
            Column::gain("raw/recording", 0, |row: &Row| {
                row.extraction.scan.mean / row.extraction.recording.mean
            }),
        ],
    );
    out += &format!(
        "\nFile and checked: means over all called functions, and the geometric mean of the factors by which reading each from the file is faster. The other columns are over {READ} functions at equal distances in the order of their numbers of calls (or all, if fewer were called); the raw trace is scanned for {SCANNED} of them. There, functions whose unique traces have more than {LONGEST} blocks in total are left out, because they would not fit into memory when expanded. All methods gave the same traces and counts.\n",
    );
    out
}
