//! Reports the contents of a recording.

mod disclosed;
mod sizes;

use std::path::Path;

use afterimage_analyses::simulate::{StoredSimulation, StoredSimulations, stored_simulations};
use afterimage_analyses::slices::saved_slices;
use afterimage_present::document::objects::{Function, Position};
use afterimage_present::info::{
    InfoCheckpoints, InfoFrame, InfoPart, InfoPath, InfoReport, InfoSection, InfoSimulation,
    InfoSlice, InfoStreams, InfoValues,
};
use afterimage_profile::{CodeFilter, Folded, OwnFunctions, Source};
use afterimage_program::{Location, Module};
use afterimage_replay::steps::{FileCheckpoints, recorded_checkpoints};
use afterimage_replay::values::{recorded_epochs, recorded_values};
use afterimage_replay::whole_path::{RecordedPath, recorded_path};
use afterimage_trace::{Frame, Kind, TraceFile, writer};
use afterimage_wet::FileEpochs;
use anyhow::{Context, Error, Result};

use crate::ended;
use crate::files::Loaded;
use crate::monitor::Monitor;
use crate::source::{check_code, source_map};
use sizes::InUse;

/// The maximum number of rows to show for a stack. Consecutive equal frames share a row.
const FRAMES: usize = 20;

/// Returns the result. If it cannot be read, adds the reason to `problems` and returns `None`.
fn read<T>(found: Result<Option<T>>, problems: &mut Vec<String>) -> Option<T> {
    found.unwrap_or_else(|error: Error| {
        problems.push(format!("{error:#}"));
        None
    })
}

/// Reports the contents of a recording. Parts that cannot be read are listed among the problems.
/// `sized` adds the sizes of the parts, and `listed` the list of embedded source files. Text shows
/// the frames of code that `code` selects.
///
/// # Errors
/// Returns an error if the command, or the end of the run, cannot be read.
pub fn info(
    at: &Path,
    file: &TraceFile,
    loaded: &Loaded,
    (sized, listed): (bool, bool),
    code: &CodeFilter,
    monitor: &dyn Monitor,
) -> Result<InfoReport> {
    let meta = file.meta()?;
    let end = file.end()?;
    let source = source_map(at, loaded, monitor);
    let names = loaded.names(&source);
    check_code(&source, code)?;
    let folded = Folded::if_any(&source, code);
    let own = OwnFunctions::new(&folded, &loaded.program, &names);
    let position = |at: Location| Position::new(source.path(at.file), at);
    let frames: &[Frame] = end.as_ref().map_or(&[], |e| &e.frames);
    let rows = frames
        .chunk_by(|a, b| (a.function, a.offset) == (b.function, b.offset))
        .take(FRAMES)
        .map(|same| {
            let around = folded.locate(same[0].offset);
            InfoFrame {
                function: Function::new(&names, same[0].function),
                offset: same[0].offset.0,
                source: source.locate(same[0].offset).map(position),
                times: same.len(),
                around: around.map(position),
                library: around.is_none() && !own.shows(same[0].function),
            }
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
    let sections = sizes::sections(file, &in_use)?;
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
    let disclosed = disclosed::disclosed(file, loaded, &source, listed, &mut problems)?;
    // Two parts of the report read the log, and may report the same problem.
    problems.dedup();
    let streams = match (&whole, &epochs) {
        (Some(whole), Some(epochs)) if sized => read(
            streams(file, loaded, whole, epochs, &in_use).map(Some),
            &mut problems,
        ),
        _ => None,
    };
    Ok(InfoReport {
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
        // A recording without an end was cut off, or its program is still running.
        running: end.is_none() && matches!(writer(at), Ok(Some(_))),
        frames: rows,
        frames_total: frames.len(),
        hidden_code: folded.left_out(),
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
        disclosed,
        length: file.length(),
        ignored_bytes: file.ignored_bytes(),
        interrupted: file.is_interrupted(),
        sections,
        streams,
        problems,
        sized,
    })
}

fn path(file: &TraceFile, path: &RecordedPath) -> InfoPath {
    let directory = path.segments().directory();
    let index = file.last(Kind::PATH_INDEX);
    let stored = path.segments().stored() + index.map_or(0, |index| index.stored());
    let blocks = path.length();
    let each = |bits: f64| (blocks > 0).then(|| bits / blocks as f64);
    InfoPath {
        blocks,
        segments: directory.summaries.len() as u64,
        nodes: directory.nodes.len() as u64,
        stored_bytes: stored,
        bits_per_block: each(8.0 * stored as f64),
        left_out: directory.left_out.clone(),
    }
}

/// Returns the epochs of the values, which exist only if the path has no gaps.
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
    loaded: &Module,
    path: &RecordedPath,
    epochs: &FileEpochs,
    in_use: &InUse<'_>,
) -> Result<InfoStreams> {
    let values = recorded_values(&loaded.program, &loaded.bytes, path, epochs)?;
    sizes::streams(file, path, epochs, &values, in_use)
}

fn values(file: &TraceFile, epochs: &FileEpochs) -> Vec<InfoValues> {
    let mut rows = Vec::new();
    for (index, (own, _)) in epochs.windows().zip(epochs.sections()) {
        let stored_bytes = file.section(own).map_or(0, |section| section.stored());
        let sizes = index.sizes;
        let part = |what, (bytes, numbers)| InfoPart {
            what,
            numbers,
            bytes,
        };
        rows.push(InfoValues {
            first: index.first,
            last: index.length,
            statements: index.statements,
            left_out: index.left_out.words.clone(),
            epochs: index.epochs.len() as u64,
            stored_bytes,
            bytes_per_statement: (index.statements > 0)
                .then(|| stored_bytes as f64 / index.statements as f64),
            parts: vec![
                part("labels: writers of the data that is read", sizes.labels),
                part("labels: early writers of variables", sizes.far),
                part("kept values", sizes.values),
                part("runs of bytes that memory copies moved", sizes.copies),
                part("directories", (sizes.directory, 0)),
            ],
        });
    }
    rows.sort_by_key(|row| row.first);
    rows
}

fn checkpoints(
    found: &FileCheckpoints,
    sections: &[InfoSection],
    values: &[InfoValues],
) -> InfoCheckpoints {
    let own = found.sections().into_iter();
    let stored_bytes = own.map(|at| sections[at].stored_bytes).sum();
    let statements: u64 = values.iter().map(|row| row.statements).sum();
    InfoCheckpoints {
        intervals: found.intervals(),
        last: found.end(),
        stored_bytes,
        bytes_per_statement: (statements > 0).then(|| stored_bytes as f64 / statements as f64),
    }
}

fn simulations(sound: &[StoredSimulation]) -> Vec<InfoSimulation> {
    let rows = sound.iter().map(|stored| {
        let sum = stored.summary.sum(|_| true);
        let stored_bytes = stored.stored_bytes();
        InfoSimulation {
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

fn slices(file: &TraceFile, loaded: &Module) -> Result<Vec<InfoSlice>> {
    let all = saved_slices(file, &loaded.program)?.into_iter();
    let rows = all.map(|(slice, saved)| {
        let saved = saved.with_context(|| format!("the slice {slice:?}"))?;
        Ok(InfoSlice {
            slice,
            about: saved.about,
            statements: saved.slice.operators.len() as u64,
            executions: saved.slice.executions(),
        })
    });
    rows.collect()
}
