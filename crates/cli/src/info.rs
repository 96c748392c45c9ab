//! `afterimage info`

mod sizes;

use std::io::Write;
use std::path::PathBuf;

use afterimage::ended;
use afterimage_analyses::simulate::{StoredSimulation, StoredSimulations, stored_simulations};
use afterimage_analyses::slices::saved_slices;
use afterimage_present::{ResultValue, grouped, shell_word};
use afterimage_replay::paths::RecordedPath;
use afterimage_replay::paths::recorded_path;
use afterimage_replay::steps::{FileCheckpoints, recorded_checkpoints};
use afterimage_replay::values::{recorded_epochs, recorded_values};
use afterimage_trace::{Frame, Kind, TraceFile, writer};
use afterimage_wet::FileEpochs;
use anyhow::{Context, Error, Result, bail};
use serde::Serialize;

use crate::exit::Exit;
use crate::input::{self, Loaded};
use crate::output::{harmless, write};
use crate::record::{bytes, counted};
use sizes::{InUse, SectionRow, Streams};

/// Show what a recording holds: what was run, how it ended, what has been made of it
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Also show which bytes tell what: by kind of stream, before and after coding, against the papers' original form; and by section of the file
    #[arg(long)]
    sizes: bool,
    /// The format of the report
    #[arg(long, default_value = "text")]
    format: Format,
    /// A recording
    #[arg(value_name = "FILE")]
    file: PathBuf,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Format {
    Text,
    Json,
}

/// What is said of bytes that an interrupted addition left.
pub(crate) const LEFT_OVER: &str = "were being added when that was interrupted: nothing else is lost, they are ignored, and go when something is added";

/// Places shown of a deep stack.
const FRAMES: usize = 20;

#[derive(Serialize)]
struct Document {
    schema: &'static str,
    program: String,
    args: Vec<String>,
    invoke: Option<String>,
    dirs: Vec<String>,
    env: Vec<String>,
    module_sha256: String,
    recorded_unix: u64,
    engine: String,
    tool_version: String,
    /// In words; `null` if the recording was cut off, or goes on.
    ending: Option<String>,
    /// What an invoked function returned; `null` if none was, or it did not return.
    results: Option<Vec<ResultValue>>,
    /// The program still runs.
    running: bool,
    frames: Vec<FrameRow>,
    frames_total: usize,
    clock: Option<u64>,
    events: Option<u64>,
    host_calls: Option<u64>,
    lenses: Vec<&'static str>,
    #[serde(skip)]
    path_words: bool,
    /// The whole path of the run, if it was built.
    path: Option<PathRow>,
    /// Its values, window by window.
    values: Vec<ValuesRow>,
    /// From where the run can be followed besides its beginning, if anywhere.
    checkpoints: Option<CheckpointsRow>,
    /// What was simulated.
    simulations: Vec<SimulationRow>,
    /// Slices that were kept.
    slices: Vec<SliceRow>,
    length: u64,
    ignored_bytes: u64,
    /// These are what an addition left that was interrupted.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    interrupted: bool,
    sections: Vec<SectionRow>,
    /// Which bytes tell what of the values; only if it is asked for.
    streams: Option<Streams>,
    /// What could not be read.
    problems: Vec<String>,
}

#[derive(Serialize)]
struct FrameRow {
    function: u32,
    name: String,
    offset: u32,
    location: Option<String>,
    /// How many activations in a row stand there.
    times: usize,
}

#[derive(Serialize)]
struct ValuesRow {
    /// The first block of which values are kept.
    first: u64,
    /// The last one.
    last: u64,
    /// Executed statements, without those of functions that were left out.
    statements: u64,
    /// What was left out as the user wished; empty for nothing.
    left_out: String,
    epochs: u64,
    /// With their index, as they are in the file.
    stored_bytes: u64,
    bytes_per_statement: Option<f64>,
    /// What takes how much, before chunks are packed.
    parts: Vec<PartRow>,
}

#[derive(Serialize)]
struct CheckpointsRow {
    /// How many intervals the run is cut into.
    intervals: u64,
    /// The last block of the last one.
    last: u64,
    /// As they are in the file.
    stored_bytes: u64,
    /// Of the statements of which values are kept.
    bytes_per_statement: Option<f64>,
}

#[derive(Serialize)]
struct SliceRow {
    /// The name that it is kept under.
    slice: String,
    /// What was asked.
    about: String,
    statements: u64,
    executions: u64,
}

#[derive(Serialize)]
struct SimulationRow {
    /// The options that ask for it.
    simulation: String,
    executions: u64,
    missed: u64,
    /// As they are in the file.
    stored_bytes: u64,
    bits_per_execution: Option<f64>,
}

#[derive(Serialize)]
struct PartRow {
    what: &'static str,
    /// How many of them there are.
    numbers: u64,
    bytes: u64,
}

#[derive(Serialize)]
struct PathRow {
    /// Executed blocks.
    blocks: u64,
    segments: u64,
    /// Different paths.
    nodes: u64,
    /// Of the segments and of what readers need before they open one.
    stored_bytes: u64,
    /// `null` if no block was executed.
    bits_per_block: Option<f64>,
    /// What the instrumented run wrote.
    recorded_bits: u64,
    recorded_bits_per_block: Option<f64>,
    /// What was left out as the user wished; empty for nothing.
    left_out: String,
}

pub(crate) fn run(arguments: Arguments) -> Result<Exit> {
    let file = input::recording(&arguments.file)?;
    let loaded = input::recorded_program(&arguments.file, &file)?;
    let name = || arguments.file.display().to_string();
    let mut document = document(&file, &loaded, arguments.sizes).with_context(name)?;
    // Without its end it was cut off, or is not over.
    document.running = document.ending.is_none() && matches!(writer(&arguments.file), Ok(Some(_)));
    write(None, false, |out| match arguments.format {
        Format::Json => {
            serde_json::to_writer(&mut *out, &document)?;
            writeln!(out)?;
            Ok(())
        }
        Format::Text => text(out, &document, arguments.sizes),
    })?;
    // All that can be said was said.
    if !document.problems.is_empty() {
        bail!("{}: {}", name(), document.problems.join("; "));
    }
    Ok(Exit::Success)
}

/// What is there, or else nothing and why it cannot be read.
fn read<T>(found: Result<Option<T>>, problems: &mut Vec<String>) -> Option<T> {
    found.unwrap_or_else(|error: Error| {
        problems.push(format!("{error:#}"));
        None
    })
}

fn document(file: &TraceFile, loaded: &Loaded, sized: bool) -> Result<Document> {
    let meta = file.meta()?;
    let end = file.end()?;
    let source = loaded.source_map();
    let names = loaded.names(&source);
    let frames: &[Frame] = end.as_ref().map_or(&[], |e| &e.frames);
    let rows = frames
        .chunk_by(|a, b| (a.function, a.offset) == (b.function, b.offset))
        .take(FRAMES)
        .map(|same| FrameRow {
            function: same[0].function.as_u32(),
            name: names.function(same[0].function).to_owned(),
            offset: same[0].offset.0,
            location: source
                .locate(same[0].offset)
                .map(|l| format!("{}:{}", source.path(l.file), l.line)),
            times: same.len(),
        })
        .collect::<Vec<_>>();
    let mut problems = Vec::new();
    let whole = read(
        recorded_path(file, &loaded.program).map_err(Error::from),
        &mut problems,
    );
    let path = whole.as_ref().map(|whole| path(file, whole));
    let epochs = read(epochs(file, whole.as_ref()), &mut problems);
    let found = whole.as_ref().map(|path| recorded_checkpoints(file, path));
    let found = read(
        found.transpose().map(Option::flatten).map_err(Error::from),
        &mut problems,
    );
    let in_use = InUse {
        epochs: epochs.as_ref(),
        grammars: whole.as_ref().and_then(|path| path.segments().grammars()),
        checkpoints: found.as_ref().map(FileCheckpoints::sections),
    };
    let sections = SectionRow::all(file, &in_use)?;
    let counts = read(file.counts().map_err(Error::from), &mut problems).map(|_| "counts");
    let lenses = counts.into_iter().chain(path.as_ref().map(|_| "paths"));
    let values = epochs.as_ref().map(|epochs| values(file, epochs));
    let values = values.unwrap_or_default();
    let lenses = Vec::from_iter(lenses.chain((!values.is_empty()).then_some("full")));
    let checkpoints = found.map(|found| checkpoints(&found, &sections, &values));
    let stored = read(
        stored_simulations(file).map_err(Error::from).map(Some),
        &mut problems,
    );
    let StoredSimulations { sound, damaged } = stored.unwrap_or_default();
    let simulations = simulations(&sound);
    problems.extend(damaged.iter().map(|damaged| damaged.error.to_string()));
    let slices = read(slices(file, loaded).map(Some), &mut problems).unwrap_or_default();
    let results = read(ended::results(file), &mut problems);
    let streams = match (&whole, &epochs) {
        (Some(whole), Some(epochs)) if sized => read(
            streams(file, loaded, whole, epochs, &in_use).map(Some),
            &mut problems,
        ),
        _ => None,
    };
    Ok(Document {
        schema: "afterimage/info/1",
        program: meta.program_name,
        args: meta.args,
        invoke: meta.invoke,
        dirs: meta.dirs,
        env: meta.env.into_iter().map(|e| e.0).collect(),
        module_sha256: meta
            .module_sha256
            .iter()
            .map(|b| format!("{b:02x}"))
            .collect(),
        recorded_unix: meta.created_unix,
        engine: meta.engine,
        tool_version: meta.tool_version,
        ending: end.as_ref().map(|e| e.ending.to_string()),
        results,
        running: false,
        frames: rows,
        frames_total: frames.len(),
        clock: end.as_ref().and_then(|e| e.clock),
        events: end.as_ref().map(|e| e.events),
        host_calls: end.as_ref().map(|e| e.host_call_counts.iter().sum()),
        lenses,
        path_words: file.last_begun(Kind::PATH_WORDS).is_some(),
        path,
        values,
        checkpoints,
        simulations,
        slices,
        length: file.length(),
        ignored_bytes: file.ignored_bytes(),
        interrupted: file.is_interrupted(),
        sections,
        streams,
        problems,
    })
}

fn path(file: &TraceFile, path: &RecordedPath) -> PathRow {
    let directory = path.segments().directory();
    let index = file.last(Kind::PATH_INDEX);
    let stored = path.segments().stored() + index.map_or(0, |index| index.stored());
    let blocks = path.length();
    let each = |bits: f64| (blocks > 0).then(|| bits / blocks as f64);
    PathRow {
        blocks,
        segments: directory.summaries.len() as u64,
        nodes: directory.nodes.len() as u64,
        stored_bytes: stored,
        bits_per_block: each(8.0 * stored as f64),
        recorded_bits: directory.bits,
        recorded_bits_per_block: each(directory.bits as f64),
        left_out: directory.left_out.clone(),
    }
}

/// Those of a path of which nothing was left out: others have none.
fn epochs(file: &TraceFile, path: Option<&RecordedPath>) -> Result<Option<FileEpochs>> {
    match path {
        Some(path) if path.segments().directory().left_out.is_empty() => {
            Ok(recorded_epochs(file, path)?)
        }
        _ => Ok(None),
    }
}

fn streams(
    file: &TraceFile,
    loaded: &Loaded,
    path: &RecordedPath,
    epochs: &FileEpochs,
    in_use: &InUse<'_>,
) -> Result<Streams> {
    let values = recorded_values(&loaded.program, &loaded.bytes, path, epochs)?;
    Streams::of(file, path, epochs, &values, in_use)
}

fn values(file: &TraceFile, epochs: &FileEpochs) -> Vec<ValuesRow> {
    let mut rows = Vec::new();
    for (index, (own, _)) in epochs.windows().zip(epochs.sections()) {
        let stored_bytes = file.section(own).map_or(0, |section| section.stored());
        let sizes = index.sizes;
        let part = |what, (bytes, numbers)| PartRow {
            what,
            numbers,
            bytes,
        };
        rows.push(ValuesRow {
            first: index.first,
            last: index.length,
            statements: index.statements,
            left_out: index.left_out.words.clone(),
            epochs: index.epochs.len() as u64,
            stored_bytes,
            bytes_per_statement: (index.statements > 0)
                .then(|| stored_bytes as f64 / index.statements as f64),
            parts: vec![
                part("labels: who wrote what is read", sizes.labels),
                part("labels: who wrote variables long before", sizes.far),
                part("values that are kept", sizes.values),
                part("runs of bytes that memory copies copied", sizes.copies),
                part("directories", (sizes.directory, 0)),
            ],
        });
    }
    rows.sort_by_key(|row| row.first);
    rows
}

fn checkpoints(
    found: &FileCheckpoints,
    sections: &[SectionRow],
    values: &[ValuesRow],
) -> CheckpointsRow {
    let own = found.sections().into_iter();
    let stored_bytes = own.map(|at| sections[at].stored_bytes).sum();
    let statements: u64 = values.iter().map(|row| row.statements).sum();
    CheckpointsRow {
        intervals: found.intervals(),
        last: found.end(),
        stored_bytes,
        bytes_per_statement: (statements > 0).then(|| stored_bytes as f64 / statements as f64),
    }
}

fn simulations(sound: &[StoredSimulation]) -> Vec<SimulationRow> {
    let rows = sound.iter().map(|stored| {
        let sum = stored.summary.sum(|_| true);
        let stored_bytes = stored.stored_bytes();
        SimulationRow {
            simulation: stored.summary.spec.to_string(),
            executions: sum.executions,
            missed: sum.missed,
            stored_bytes,
            bits_per_execution: (sum.executions > 0)
                .then(|| 8.0 * stored_bytes as f64 / sum.executions as f64),
        }
    });
    rows.collect()
}

fn slices(file: &TraceFile, loaded: &Loaded) -> Result<Vec<SliceRow>> {
    let all = saved_slices(file, &loaded.program)?.into_iter();
    let rows = all.map(|(slice, saved)| {
        let saved = saved.with_context(|| format!("the slice {slice:?}"))?;
        Ok(SliceRow {
            slice,
            about: saved.about,
            statements: saved.slice.operators.len() as u64,
            executions: saved.slice.executions(),
        })
    });
    rows.collect()
}

fn simulation_text(out: &mut dyn Write, row: &SimulationRow) -> Result<()> {
    let each = row.bits_per_execution;
    let each = each.map_or(String::new(), |each| {
        format!(", {} bits each", significant(each))
    });
    writeln!(
        out,
        "simulated {}: {}, {} missed: {}{each}",
        row.simulation,
        counted(row.executions, "execution"),
        grouped(row.missed),
        bytes(row.stored_bytes),
    )?;
    Ok(())
}

fn values_text(out: &mut dyn Write, values: &ValuesRow) -> Result<()> {
    let each = values.bytes_per_statement;
    let each = each.map_or(String::new(), |each| {
        format!(", {} bytes each", significant(each))
    });
    writeln!(
        out,
        "values    {} from t={} to t={} in {}: {}{each}",
        counted(values.statements, "executed statement"),
        grouped(values.first),
        grouped(values.last),
        counted(values.epochs, "epoch"),
        bytes(values.stored_bytes),
    )?;
    if !values.left_out.is_empty() {
        writeln!(out, "          without {}", harmless(&values.left_out))?;
    }
    Ok(())
}

fn path_text(out: &mut dyn Write, path: &PathRow) -> Result<()> {
    let each = |bits: Option<f64>| {
        bits.map_or(String::new(), |bits| {
            format!(", {} bits each", significant(bits))
        })
    };
    writeln!(
        out,
        "path      {} in {}: {}{}; {} recorded{}",
        counted(path.blocks, "executed block"),
        counted(path.segments, "segment"),
        bytes(path.stored_bytes),
        each(path.bits_per_block),
        counted(path.recorded_bits, "bit"),
        each(path.recorded_bits_per_block),
    )?;
    if !path.left_out.is_empty() {
        writeln!(out, "          without {}", harmless(&path.left_out))?;
    }
    Ok(())
}

fn text(out: &mut dyn Write, d: &Document, sized: bool) -> Result<()> {
    let words = |first: &String| {
        std::iter::once(first)
            .chain(&d.args)
            .map(|word| shell_word(word))
            .collect::<Vec<_>>()
            .join(" ")
    };
    match &d.invoke {
        None => writeln!(out, "program   {}", words(&d.program))?,
        Some(export) => writeln!(
            out,
            "program   {}\ninvoked   {}",
            shell_word(&d.program),
            words(export)
        )?,
    }
    writeln!(out, "recorded  {}", date(d.recorded_unix))?;
    match &d.ending {
        Some(ending) => {
            writeln!(out, "ending    {}", harmless(ending))?;
            for result in d.results.iter().flatten() {
                writeln!(out, "result    {}", result.text)?;
            }
        }
        None if d.running => writeln!(
            out,
            "ending    none yet: the program is still being recorded; {}",
            if d.path_words {
                "its path can be followed up to now: afterimage trace"
            } else {
                "ask again when it has ended"
            }
        )?,
        None => writeln!(
            out,
            "ending    unknown: the recording was cut off; {}",
            if d.path_words {
                "its path can be followed up to there: afterimage trace"
            } else {
                "record the program again to profile it"
            }
        )?,
    }
    for frame in &d.frames {
        let place = frame.location.clone();
        let place = place.unwrap_or_else(|| format!("@0x{:x}", frame.offset));
        let (name, place) = (harmless(&frame.name), harmless(&place));
        write!(out, "          in {name} at {place}")?;
        if frame.times > 1 {
            write!(out, " ({} calls deep)", frame.times)?;
        }
        writeln!(out)?;
    }
    let shown: usize = d.frames.iter().map(|frame| frame.times).sum();
    if d.frames_total > shown {
        let more = counted((d.frames_total - shown) as u64, "more frame");
        writeln!(out, "          and {more}")?;
    }
    if let (Some(events), Some(calls)) = (d.events, d.host_calls) {
        writeln!(
            out,
            "boundary  {} in {}",
            counted(calls, "host call"),
            counted(events, "event")
        )?;
    }
    for dir in &d.dirs {
        writeln!(out, "folder    {}", shell_word(dir))?;
    }
    if !d.env.is_empty() {
        writeln!(
            out,
            "env       {}",
            d.env
                .iter()
                .map(|name| shell_word(name))
                .collect::<Vec<_>>()
                .join(" ")
        )?;
    }
    writeln!(out, "module    sha256 {}", d.module_sha256)?;
    writeln!(out, "engine    {}", harmless(&d.engine))?;
    let lenses = if d.lenses.is_empty() {
        "none yet".to_owned()
    } else {
        d.lenses.join(", ")
    };
    writeln!(out, "lenses    {lenses}")?;
    if let Some(path) = &d.path {
        path_text(out, path)?;
    }
    for values in &d.values {
        values_text(out, values)?;
    }
    if let Some(checkpoints) = d.checkpoints.as_ref().filter(|_| sized) {
        let each = checkpoints.bytes_per_statement;
        let each = each.map_or(String::new(), |each| {
            format!(", {} bytes for each statement", significant(each))
        });
        writeln!(
            out,
            "          checkpoints, up to t={}, in {}: {}{each}",
            grouped(checkpoints.last),
            counted(checkpoints.intervals, "interval"),
            bytes(checkpoints.stored_bytes),
        )?;
    }
    for simulation in &d.simulations {
        simulation_text(out, simulation)?;
    }
    for row in &d.slices {
        writeln!(
            out,
            "slice {:?}: {}: {}, {} of them",
            row.slice,
            row.about,
            counted(row.statements, "statement"),
            counted(row.executions, "execution")
        )?;
    }
    writeln!(out, "size      {}", bytes(d.length))?;
    if d.ignored_bytes > 0 {
        let (name, what) = if d.interrupted {
            ("leftover", LEFT_OVER)
        } else {
            ("damage", "behind the last complete state are ignored")
        };
        writeln!(out, "{name:<8}  {} {what}", bytes(d.ignored_bytes))?;
    }
    if sized {
        if let Some(streams) = &d.streams {
            streams.text(out)?;
        }
        let ignored = if d.interrupted {
            "left by an interrupted addition"
        } else {
            "damaged"
        };
        sizes::sections(out, &d.sections, d.length, (ignored, d.ignored_bytes))?;
    }
    writeln!(out)?;
    writeln!(
        out,
        "A recording holds what the guest read: files, variables, standard input. Mind that before sharing it."
    )?;
    Ok(())
}

/// A number with three decimals, or with as many as show its first two digits.
fn significant(number: f64) -> String {
    let decimals = (3..20).find(|&decimals| number * 10f64.powi(decimals) >= 10.0);
    let decimals = decimals.filter(|_| number > 0.0).unwrap_or(3);
    format!("{number:.0$}", decimals as usize)
}

/// Seconds since 1970 as a date of the Gregorian calendar, which repeats every 400 years.
fn date(unix: u64) -> String {
    let (mut days, second) = (unix / 86400, unix % 86400);
    let leap = |year: u64| {
        year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
    };
    const DAYS_OF_400_YEARS: u64 = 146_097;
    let mut year = 1970 + 400 * (days / DAYS_OF_400_YEARS);
    days %= DAYS_OF_400_YEARS;
    while days >= 365 + u64::from(leap(year)) {
        days -= 365 + u64::from(leap(year));
        year += 1;
    }
    let lengths = [
        31,
        28 + u64::from(leap(year)),
        31,
        30,
        31,
        30,
        31,
        31,
        30,
        31,
        30,
        31,
    ];
    let mut month = 0;
    while days >= lengths[month] {
        days -= lengths[month];
        month += 1;
    }
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!(
        "{year}-{:02}-{:02} {hour:02}:{minute:02}:{second:02} UTC",
        month + 1,
        days + 1
    )
}

#[cfg(test)]
mod tests {
    use super::{date, significant};

    #[test]
    fn small_numbers_keep_two_digits() {
        let all = [0.0, 1.0, 0.161_4, 0.000_199_7, 2e-9].map(significant);
        assert_eq!(all, ["0.000", "1.000", "0.161", "0.00020", "0.0000000020"]);
    }

    #[test]
    fn dates_are_those_of_the_calendar() {
        assert_eq!(date(0), "1970-01-01 00:00:00 UTC");
        assert_eq!(date(951_782_399), "2000-02-28 23:59:59 UTC");
        assert_eq!(date(951_782_400), "2000-02-29 00:00:00 UTC");
        assert_eq!(date(1_735_689_599), "2024-12-31 23:59:59 UTC");
        assert_eq!(date(4_107_542_400), "2100-03-01 00:00:00 UTC");
        assert!(date(u64::MAX).ends_with("UTC"));
    }
}
