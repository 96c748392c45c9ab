//! `afterimage verify`

use std::io::Write;
use std::path::{Path, PathBuf};

use afterimage_analyses::simulate::{Followed, verify_followed, verify_simulations};
use afterimage_analyses::slices::verify_slices;
use afterimage_placement::{Mode, PlanOptions, block_counts};
use afterimage_present::grouped;
use afterimage_record::{Cache, CheckedWords, RecordError, check, count, verify_words};
use afterimage_replay::paths::{PathReport, recorded_directory, recorded_path, verify_path};
use afterimage_replay::values::{recorded_epochs, verify_values};
use afterimage_trace::{Kind as Section, Rule, TraceError, TraceFile, repair};
use anyhow::{Context, Result};
use serde::Serialize;

use crate::exit::Exit;
use crate::filters::said;
use crate::info::LEFT_OVER;
use crate::input::{self, Loaded};
use crate::output::{harmless, say, write};
use crate::progress::Bar;
use crate::record::counted;

/// Check a recording: every byte, every invariant, and that it repeats
///
/// Exits with 1 if something does not hold.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Read the file only; neither re-execute the recording nor follow its values
    #[arg(long)]
    no_execute: bool,
    /// Write a copy with all that is sound in the recording, say what is not, and check the copy
    #[arg(long, requires = "output")]
    repair: bool,
    /// Where the repaired copy goes
    #[arg(short, long, value_name = "FILE", requires = "repair")]
    output: Option<PathBuf>,
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

#[derive(Serialize)]
struct Document {
    schema: &'static str,
    sound: bool,
    bytes: u64,
    chunks: u64,
    sections: u64,
    events: u64,
    ended: bool,
    ignored_bytes: u64,
    /// These are what an addition left that was interrupted, and no damage.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    interrupted: bool,
    /// What was checked of the path, if there is one.
    path: Option<PathRow>,
    /// How many moments the words of a path that was written live tell of.
    #[serde(skip_serializing_if = "Option::is_none")]
    moments: Option<u64>,
    /// What was checked of the values, if there are any.
    values: Option<Vec<ValuesRow>>,
    /// What was simulated again, if anything was stored.
    #[serde(skip_serializing_if = "Option::is_none")]
    simulations: Option<Vec<SimulationRow>>,
    /// What slices were made again, if any were kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    slices: Option<Vec<SliceRow>>,
    /// By which limit the run cannot be followed, so that no values can be had.
    #[serde(skip_serializing_if = "Option::is_none")]
    not_followed: Option<String>,
    /// `null`: not tried.
    repeats: Option<bool>,
    /// Why it cannot be tried.
    #[serde(skip_serializing_if = "Option::is_none")]
    obstacle: Option<String>,
    findings: Vec<String>,
}

#[derive(Serialize)]
struct PathRow {
    segments: u64,
    nodes: u64,
    blocks: u64,
    #[serde(skip_serializing_if = "String::is_empty")]
    left_out: String,
    /// It was compared with the counts in the file.
    counts: bool,
    /// It was compared with the recorded end.
    end: bool,
}

#[derive(Serialize)]
struct ValuesRow {
    statements: u64,
    first: u64,
    last: u64,
}

#[derive(Serialize)]
struct SliceRow {
    slice: String,
    executions: u64,
}

#[derive(Serialize)]
struct SimulationRow {
    simulation: String,
    executions: u64,
}

impl From<&PathReport> for PathRow {
    fn from(report: &PathReport) -> Self {
        Self {
            segments: report.segments,
            nodes: report.nodes,
            blocks: report.blocks,
            left_out: report.left_out.clone(),
            counts: report.counts,
            end: report.end,
        }
    }
}

/// Writes a repaired copy, and says what is not in it.
fn repaired(from: &Path, to: &Path) -> Result<()> {
    input::open(from)?;
    let name = || from.display().to_string();
    let found = repair(from, to, false).map_err(|error| {
        let place = match error {
            TraceError::Exists => to,
            _ => from,
        };
        anyhow::Error::new(error).context(place.display().to_string())
    })?;
    for lost in &found.lost {
        let which = match &lost.name {
            Some(name) => format!("{} {name:?}", lost.kind),
            None => lost.kind.to_string(),
        };
        let kept = match lost.kept {
            0 => "left out".into(),
            kept => format!("cut behind {}", counted(kept as u64, "chunk")),
        };
        say(format_args!(
            "{}: section {which} is {kept}: {}",
            name(),
            lost.why
        ));
    }
    if found.unread > 0 {
        say(format_args!(
            "{}: {} at its end cannot be told to be part of it",
            name(),
            counted(found.unread, "byte")
        ));
    }
    say(format_args!(
        "{} has {} as they were",
        to.display(),
        counted(found.whole, "section")
    ));
    Ok(())
}

pub(crate) fn run(mut arguments: Arguments) -> Result<Exit> {
    if let Some(copy) = arguments.output.take() {
        repaired(&arguments.file, &copy)?;
        arguments.file = copy;
    }
    let file = input::recording(&arguments.file)?;
    let report = file.verify();
    // Where a recording was cut off, the log and the words of the path have no last chunk.
    let torn = |rule| !report.ended && rule == Rule::Complete;
    let found = report.findings.iter().filter(|found| !torn(found.rule));
    let mut findings: Vec<String> = found.map(ToString::to_string).collect();
    let (mut repeats, mut obstacle, mut path, mut values) = (None, None, None, None);
    let mut not_followed = None;
    let (mut moments, mut simulations, mut slices) = (None, None, None);
    if findings.is_empty() {
        let loaded = input::recorded_program(&arguments.file, &file)?;
        if let Some(lens) = file
            .counts()
            .with_context(|| arguments.file.display().to_string())?
            && let Err(error) = block_counts(&loaded.program, &lens.counts)
        {
            findings.push(format!("Conservation: {error}"));
        }
        if let Some(found) = verify_path(&file, &loaded.program, &loaded.bytes) {
            findings.extend(found.findings.iter().map(ToString::to_string));
            path = Some(PathRow::from(&found));
        }
        if findings.is_empty() {
            findings.extend(left_out(&file, &loaded));
            findings.extend(along_no_path(&file));
        }
        match verify_words(&file, &loaded.program) {
            Ok(Some(CheckedWords {
                moments: found,
                bits,
            })) => {
                moments = Some(found);
                let directory = recorded_directory(&file).ok().flatten();
                if let Some(directory) = directory.filter(|directory| directory.bits != bits) {
                    findings.push(format!(
                        "Path: it is of {} recorded bits and not of {bits}, as what the run wrote of it",
                        directory.bits
                    ));
                }
            }
            Ok(None) => {}
            Err(error) => findings.push(format!("Words: {error}")),
        }
        let is_path_sound = findings.is_empty();
        if is_path_sound && !arguments.no_execute {
            let bar = Bar::start(
                "following the values",
                path.as_ref().map(|path| path.blocks),
            );
            let progress = bar.progress();
            let found = verify_values(&file, &loaded.program, &loaded.bytes, |time| progress(time));
            drop(bar);
            if let Some(found) = found {
                findings.extend(found.findings);
                let windows = found.windows.iter().map(|window| ValuesRow {
                    statements: window.statements,
                    first: window.first,
                    last: window.last,
                });
                values = Some(windows.collect());
            }
        }
        if is_path_sound && !arguments.no_execute {
            let bar = Bar::start("simulating", path.as_ref().map(|path| path.blocks));
            let progress = bar.progress();
            let found = verify_simulations(&file, &loaded.program, &loaded.bytes, &|time| {
                progress(time)
            });
            drop(bar);
            if let Some(found) = found {
                findings.extend(found.findings);
                let rows = found.simulations.into_iter();
                let rows = rows.map(|(simulation, executions)| SimulationRow {
                    simulation,
                    executions,
                });
                simulations = Some(rows.collect());
            }
            let bar = Bar::start("slicing", path.as_ref().map(|path| path.blocks));
            let progress = bar.progress();
            let found = verify_slices(&file, &loaded.program, &loaded.bytes, &|time| {
                progress(time)
            });
            drop(bar);
            if let Some(found) = found {
                findings.extend(found.findings);
                let rows = found.slices.into_iter();
                let rows = rows.map(|(slice, executions)| SliceRow { slice, executions });
                slices = Some(rows.collect());
            }
        }
        let is_followed = values.is_some() || simulations.is_some();
        if is_path_sound && !arguments.no_execute && !is_followed {
            let bar = Bar::start("following the path", path.as_ref().map(|path| path.blocks));
            let progress = bar.progress();
            let found = verify_followed(&file, &loaded.program, &loaded.bytes, &|time| {
                progress(time)
            });
            drop(bar);
            match found {
                Some(Followed::Wrong(error)) => findings.push(format!("Path: {error}")),
                Some(Followed::Refused(why)) => not_followed = Some(why),
                Some(Followed::Whole) | None => {}
            }
        }
        if report.ended && !arguments.no_execute {
            let bar = Bar::of_events("re-executing", report.events);
            let outcome = check(
                &file,
                &loaded.bytes,
                &loaded.program,
                &Cache::of_user(),
                &bar.progress(),
            );
            drop(bar);
            match outcome {
                Ok(()) => {
                    repeats = Some(true);
                    findings.extend(recounted(&file, &loaded)?);
                }
                Err(error @ RecordError::NoClock(_)) => obstacle = Some(error.to_string()),
                // These say something about this machine, and nothing about the recording.
                Err(
                    error @ (RecordError::Engine(_)
                    | RecordError::Compile(_)
                    | RecordError::Instantiate(_)
                    | RecordError::Thread(_)),
                ) => {
                    return Err(
                        anyhow::Error::new(error).context(arguments.file.display().to_string())
                    );
                }
                Err(error) => {
                    repeats = Some(false);
                    findings.push(format!("Repetition: {error}"));
                }
            }
        }
    }
    let document = Document {
        schema: "afterimage/verify/1",
        sound: findings.is_empty(),
        bytes: report.bytes,
        chunks: report.chunks,
        sections: report.sections,
        events: report.events,
        ended: report.ended,
        ignored_bytes: file.ignored_bytes(),
        interrupted: file.is_interrupted(),
        path,
        moments,
        values,
        simulations,
        slices,
        not_followed,
        repeats,
        obstacle,
        findings,
    };
    write(None, false, |out| match arguments.format {
        Format::Json => {
            serde_json::to_writer(&mut *out, &document)?;
            writeln!(out)?;
            Ok(())
        }
        Format::Text => text(out, &document),
    })?;
    Ok(if document.sound {
        Exit::Success
    } else {
        Exit::Unsound
    })
}

/// What was made along a path that the file does not have: nothing can compare it.
fn along_no_path(file: &TraceFile) -> Option<String> {
    let made = [
        Section::VALUES_INDEX,
        Section::CHECKPOINTS,
        Section::PRINTED,
        Section::SIMULATION,
        Section::SLICE,
        Section::PATH_GRAMMARS,
    ];
    let has_path = file.last(Section::PATH_INDEX).is_some();
    let found = made.into_iter().find(|kind| file.last(*kind).is_some());
    found.filter(|_| !has_path).map(|kind| {
        format!("Path: the file has a section {kind}, but no path that it was made along")
    })
}

/// What is wrong with the words that say which functions a path and values lack.
fn left_out(file: &TraceFile, loaded: &Loaded) -> Option<String> {
    let path = recorded_path(file, &loaded.program).ok()??;
    let words = &path.segments().directory().left_out;
    let wrong = |what: &str, words: &str| {
        Some(format!(
            "Words: {what} is said to lack {words}, and lacks other functions"
        ))
    };
    let nodes = path.nodes().values();
    let mut there = nodes
        .filter(|node| node.left_out == 0)
        .map(|node| node.function);
    match said(loaded, words) {
        Some(said) if !there.any(&said) => {}
        _ => return wrong("the path", words),
    }
    // What is wrong with the values is said by those who follow them.
    let epochs = recorded_epochs(file, &path).ok()??;
    for index in epochs.windows() {
        let words = &index.left_out.words;
        let all = loaded.program.functions.iter().map(|function| function.id);
        let same = |said: &dyn Fn(_) -> bool| all.clone().all(|f| said(f) == index.left_out.has(f));
        match said(loaded, words) {
            Some(said) if same(&said) => {}
            _ => return wrong("a window of values", words),
        }
    }
    None
}

/// What is wrong with the counts in a file: they are made again.
fn recounted(file: &TraceFile, loaded: &Loaded) -> Result<Option<String>> {
    let name = || loaded.path.display().to_string();
    let Some(kept) = file.counts().with_context(name)? else {
        return Ok(None);
    };
    let mode = match kept.mode.as_str() {
        "quick" => Mode::Quick,
        _ => Mode::Program,
    };
    let events = file.end().with_context(name)?.map_or(0, |end| end.events);
    let bar = Bar::of_events("counting", events);
    let again = count(
        file,
        &loaded.bytes,
        &loaded.program,
        &PlanOptions::new(mode),
        &Cache::of_user(),
        &bar.progress(),
    );
    drop(bar);
    Ok(match again {
        Ok(again) if again.counts != kept.counts => {
            Some("Counts: they are not what running the recording again gives".into())
        }
        // By the same plan, so do the costs have to agree.
        Ok(again) if again.mode == kept.mode && again != kept => {
            Some("Counts: the numbers of counters and increments are not those of the plan".into())
        }
        Ok(_) => None,
        Err(error) => Some(format!("Counts: {error}")),
    })
}

fn path_text(out: &mut dyn Write, path: &PathRow) -> Result<()> {
    let against = match (path.counts, path.end) {
        (true, true) => ", compared with the counts and the end",
        (true, false) => ", compared with the counts",
        (false, true) => ", compared with the end",
        (false, false) => "",
    };
    let [blocks, nodes, segments] = [
        (path.blocks, "executed block"),
        (path.nodes, "path"),
        (path.segments, "segment"),
    ]
    .map(|(n, noun)| counted(n, noun));
    match path.left_out.as_str() {
        "" => writeln!(out, "whole path: {blocks}, {nodes} in {segments}{against}")?,
        left_out => writeln!(
            out,
            "path of {blocks} without {left_out}: {nodes} in {segments}{against}"
        )?,
    }
    Ok(())
}

fn text(out: &mut dyn Write, d: &Document) -> Result<()> {
    for finding in &d.findings {
        writeln!(out, "{}", harmless(finding))?;
    }
    let verdict = match (d.sound, d.ended) {
        (true, true) => "sound",
        (true, false) => "cut off, and sound as far as it goes",
        (false, _) => "NOT sound",
    };
    let [bytes, chunks, sections, events] = [
        (d.bytes, "byte"),
        (d.chunks, "chunk"),
        (d.sections, "section"),
        (d.events, "event"),
    ]
    .map(|(n, noun)| counted(n, noun));
    writeln!(out, "{verdict}: {bytes}, {chunks} in {sections}, {events}")?;
    if let Some(path) = &d.path {
        path_text(out, path)?;
    }
    if let Some(moments) = d.moments.filter(|_| d.sound) {
        writeln!(
            out,
            "path written live: the run is where that says, at {}",
            counted(moments, "moment")
        )?;
    }
    for values in d.values.iter().flatten().filter(|_| d.sound) {
        writeln!(
            out,
            "values of {} from t={} to t={}: the same when the run is followed again, without the engine",
            counted(values.statements, "executed statement"),
            grouped(values.first),
            grouped(values.last)
        )?;
    }
    for row in d.simulations.iter().flatten().filter(|_| d.sound) {
        writeln!(
            out,
            "history of {}, {}: the same when it is simulated again",
            counted(row.executions, "execution"),
            row.simulation
        )?;
    }
    for row in d.slices.iter().flatten().filter(|_| d.sound) {
        writeln!(
            out,
            "slice {:?}, {}: the same when it is made again",
            row.slice,
            counted(row.executions, "execution")
        )?;
    }
    if let Some(why) = &d.not_followed {
        writeln!(out, "not followed: {}", harmless(why))?;
    }
    match (d.ended, d.repeats) {
        (false, _) => {
            let reaches = match &d.path {
                Some(path) if path.blocks > 0 => format!(
                    "{} and its path after {}",
                    counted(d.events, "event"),
                    counted(path.blocks, "executed block")
                ),
                _ => counted(d.events, "event"),
            };
            writeln!(
                out,
                "the recording was cut off: its log ends after {reaches}; how the run ended is not in it, so it cannot be repeated"
            )?;
        }
        (true, Some(true)) => writeln!(
            out,
            "re-executed: the same calls, the same results, the same ending"
        )?,
        (true, Some(false)) => {}
        (true, None) => match &d.obstacle {
            Some(obstacle) => writeln!(out, "not re-executed: {}", harmless(obstacle))?,
            None => writeln!(out, "not re-executed")?,
        },
    }
    if d.interrupted {
        writeln!(out, "{} {LEFT_OVER}", counted(d.ignored_bytes, "byte"))?;
    } else if d.ignored_bytes > 0 {
        writeln!(
            out,
            "{} behind the last complete state {} ignored",
            counted(d.ignored_bytes, "byte"),
            if d.ignored_bytes == 1 { "is" } else { "are" }
        )?;
    }
    Ok(())
}
