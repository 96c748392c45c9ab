//! `afterimage build`

use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use afterimage_present::grouped;
use afterimage_program::Module;
use afterimage_record::{Cache, PathFilter, RecordedRun, build_paths};
use afterimage_replay::paths::{
    FileSegments, PathFileError, Positions, RecordedDirectory, RecordedPath, coded_path,
    recorded_path, recorded_path_of,
};
use afterimage_replay::steps::stopped_before;
use afterimage_replay::values::recorded_epochs;
use afterimage_trace::{Kind, TraceError, TraceFile, TraceWriter};
use afterimage_wet::checkpoint::{CheckpointWriter, INTERVAL};
use afterimage_wet::{EpochWriter, FileEpochs, FilePrinted, Index, LeftOut, PrintedWriter, Run};
use anyhow::{Context, Result, anyhow, bail};

use crate::exit::{Exit, Failed};
use crate::filters::{Beyond, FilterArguments, KeptValues};
use crate::input::{self, Loaded};
use crate::lens::{complete, stops_of};
use crate::output::{append, pasted, say, tell};
use crate::progress::Bar;
use crate::signals::StopFlag;

/// Add a lens to a recording, by re-executing it, so that later questions are answered at once
///
/// Commands that need a lens build it by themselves; this builds it beforehand.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  afterimage build --lens paths app.aft
  afterimage build --lens full app.aft
  afterimage build --lens full --window 1_000_000..2_000_000 app.aft
  afterimage build --lens full --start 'parse#3' --stop 'parse#4' app.aft
  afterimage build --lens full --include parse --include lex app.aft
  afterimage build --lens paths --exclude memcpy app.aft
  afterimage build --lens paths --start 'parse#3' --stop 'parse#4' app.aft
  afterimage build --lens paths --start app.c:42#1000 app.aft")]
pub(crate) struct Arguments {
    /// What to add
    #[arg(long)]
    lens: Lens,
    /// Build it anew, even if the recording has it
    #[arg(long)]
    again: bool,
    /// The recording
    #[arg(value_name = "FILE.aft")]
    file: PathBuf,
    // Last, because its heading would hold for all that follows.
    #[command(flatten)]
    filters: FilterArguments,
}

/// What can be added to a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Lens {
    /// The whole path of the run: which blocks were executed, in order
    Paths,
    /// The whole execution trace: every value, address and dependence, too
    Full,
}

pub(crate) fn run(arguments: Arguments) -> Result<Exit> {
    let file = input::recording(&arguments.file)?;
    let loaded = input::recorded_program(&arguments.file, &file)?;
    if arguments.lens == Lens::Full {
        return full(&arguments, &file, &loaded);
    }
    let filter = arguments.filters.filter(&loaded)?;
    // A path that is damaged is built anew, too.
    let is_there = !arguments.again && path_of(&arguments.file, &file, &loaded)?.is_some();
    match arguments.filters.given() {
        Some(option) if is_there => bail!(
            "{}: the recording has a path already, so {option} changes nothing; build it anew with --again",
            arguments.file.display()
        ),
        _ => {}
    }
    if is_there {
        return Ok(Exit::Success);
    }
    match add_path(&arguments.file, &file, &loaded, &filter, Empty::Refused)? {
        Added::Here => Ok(Exit::Success),
        Added::Elsewhere => run(arguments),
    }
}

fn full(arguments: &Arguments, file: &TraceFile, loaded: &Loaded) -> Result<Exit> {
    let at = &arguments.file;
    // What is built again may be damaged, and is not read.
    let coded = match arguments.again {
        true => coded_path(file, &loaded.program).with_context(|| at.display().to_string())?,
        false => None,
    };
    let path = match coded {
        Some(path) => {
            whole(at, &path)?;
            path
        }
        None => whole_path(at, file, loaded)?,
    };
    let file = input::recording(at)?;
    let kept = kept_values(
        at,
        &file,
        loaded,
        &path,
        &arguments.filters,
        Beyond::Refused,
    )?;
    let there = match arguments.again {
        true => None,
        false => epochs_of(at, &file, &path)?,
    };
    let Some(there) = there else {
        // As far as their index tells.
        let replaces = matches!(recorded_epochs(&file, &path), Ok(Some(_)));
        let adds = match replaces {
            true => Adds::Instead,
            false => Adds::First,
        };
        return match add_values(at, &file, loaded, &path, &kept, adds)? {
            Added::Here => Ok(Exit::Success),
            Added::Elsewhere => full(arguments, &input::recording(at)?, loaded),
        };
    };
    let left_out = Vec::from_iter(there.windows().map(|index| &index.left_out));
    let is_enough = left_out.iter().all(|there| there.is_within(&kept.left_out));
    if is_enough && there.covers(kept.first, kept.last) {
        say(format_args!(
            "{} has these values already; --again builds them anew",
            at.display()
        ));
        return Ok(Exit::Success);
    }
    if left_out.iter().any(|there| **there != kept.left_out) {
        let lacks = |left_out: &LeftOut| match left_out.is_nothing() {
            true => "of all functions".to_owned(),
            false => format!("without {}", left_out.words),
        };
        bail!(
            "{}: the recording has values {} already, and these would be {}; all windows have the same functions: build the values anew with --again",
            at.display(),
            left_out.first().map_or(String::new(), |there| lacks(there)),
            lacks(&kept.left_out)
        );
    }
    // Where windows are there from the beginning on, as after an interruption, it goes on behind them.
    let kept = KeptValues {
        first: there.missing_from(kept.first),
        ..kept
    };
    match add_values(at, &file, loaded, &path, &kept, Adds::More)? {
        Added::Here => Ok(Exit::Success),
        Added::Elsewhere => full(arguments, &input::recording(at)?, loaded),
    }
}

/// What the filters keep of a run's values.
fn kept_values(
    at: &Path,
    file: &TraceFile,
    loaded: &Loaded,
    path: &RecordedPath,
    filters: &FilterArguments,
    beyond: Beyond,
) -> Result<KeptValues> {
    let source = loaded.source_map();
    let names = loaded.names(&source);
    let stops = stops_of(file, loaded)?;
    let Module { program, bytes } = &*loaded.module;
    let positions = Positions::new(path, program, bytes, &names, &source, &stops);
    let kept = filters.values(loaded, path.length(), beyond, |text| {
        Ok(positions.time(text)?)
    });
    kept.with_context(|| at.display().to_string())
}

/// The values of a recording, built if they are not there yet.
pub(crate) fn values(
    at: &Path,
    file: &TraceFile,
    loaded: &Loaded,
    path: &RecordedPath,
) -> Result<FileEpochs> {
    whole(at, path)?;
    if let Some(found) = epochs_of(at, file, path)? {
        return Ok(found);
    }
    let kept = KeptValues::all(path.length());
    let (mut added, mut file) = (Added::Elsewhere, file.clone());
    while added == Added::Elsewhere {
        added = add_values(at, &file, loaded, path, &kept, Adds::First)?;
        file = input::recording(at)?;
        if let Some(found) = epochs_of(at, &file, path)? {
            return Ok(found);
        }
    }
    bail!("{}: the values that were built are not there", at.display())
}

/// Adds what the filters keep of the values of a run that has ended just now. If that is nothing, it is said.
pub(crate) fn follow(at: &Path, loaded: &Loaded, filters: &FilterArguments) -> Result<()> {
    let file = input::recording(at)?;
    let path = whole_path(at, &file, loaded)?;
    let file = input::recording(at)?;
    match kept_values(at, &file, loaded, &path, filters, Beyond::Cut) {
        Ok(kept) => match add_values(at, &file, loaded, &path, &kept, Adds::First)? {
            Added::Here => Ok(()),
            // Somebody asked about the run as soon as it had ended.
            Added::Elsewhere => values(at, &input::recording(at)?, loaded, &path).map(|_| ()),
        },
        Err(why) => {
            say(format_args!(
                "{why:#}; no values were added. The path is there: add values with: afterimage build --lens full {}",
                pasted(at)
            ));
            Ok(())
        }
    }
}

/// The path of a recording, built if it is not there yet, for what needs all of it.
pub(crate) fn whole_path(at: &Path, file: &TraceFile, loaded: &Loaded) -> Result<RecordedPath> {
    let found = match path_of(at, file, loaded)? {
        Some(path) => path,
        None => path(at, file, loaded)?,
    };
    whole(at, &found)?;
    Ok(found)
}

/// Refuses a path of which something was left out.
pub(crate) fn whole(at: &Path, path: &RecordedPath) -> Result<()> {
    complete(at, path).with_context(|| at.display().to_string())
}

fn epochs_of(at: &Path, file: &TraceFile, path: &RecordedPath) -> Result<Option<FileEpochs>> {
    recorded_epochs(file, path).with_context(|| at.display().to_string())
}

/// What became of what was to be added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Added {
    /// It was.
    Here,
    /// Another process added something; that may be it.
    Elsewhere,
}

/// What values are added to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Adds {
    /// There are none that can be used.
    First,
    /// They go with those that are there.
    More,
    /// They take the place of those that are there, once they are complete.
    Instead,
}

/// Adds values.
fn add_values(
    at: &Path,
    file: &TraceFile,
    loaded: &Loaded,
    path: &RecordedPath,
    kept: &KeptValues,
    adds: Adds,
) -> Result<Added> {
    let name = || at.display().to_string();
    let length = path.length();
    let KeptValues {
        first,
        last,
        ref left_out,
    } = *kept;
    let lost = "the values cannot be added to the recording";
    let Some(out) = append(at, file, lost).with_context(name)? else {
        return Ok(Added::Elsewhere);
    };
    let end = file.end().with_context(name)?;
    let bar = Bar::start("following the values", Some(last.min(length)));
    let progress = bar.progress();
    let run = Run {
        program: &loaded.program,
        bytes: &loaded.bytes,
        path,
        continuations: &path.segments().directory().continuations,
        window: first..=last,
        left_out,
        stopped: end.and_then(|end| stopped_before(&loaded.program, &loaded.bytes, &end)),
        epoch: Run::<FileSegments>::EPOCH,
    };
    let mut writer = EpochWriter::new(&out).with_context(name)?;
    let mut checkpoints = CheckpointWriter::new(&out).with_context(name)?;
    let anew = adds != Adds::More;
    // What is damaged is written again.
    let known = FilePrinted::open(file).ok().flatten();
    let known = known.map_or(0, |printed| printed.length());
    let mut printed = match anew || known < last.min(length) {
        true => Some(PrintedWriter::new(&out).with_context(name)?),
        false => None,
    };
    let stop = StopFlag::watch()?;
    let index = run
        .build_until(
            file.log().with_context(name)?,
            |before, epoch| writer.put(before, &epoch),
            (
                INTERVAL,
                (
                    |vertex: &_| checkpoints.put(vertex),
                    |call: &_| printed.as_mut().map_or(Ok(()), |all| all.put(call)),
                ),
            ),
            |time| progress(time),
            stop.flag(),
        )
        .with_context(name)?;
    let interrupted = stop.flag().load(Ordering::SeqCst) && index.length < last.min(length);
    // Without a commit the file stays as it was.
    if interrupted && index.length < first {
        let how = "before there were any: nothing was added";
        return Err(is_interrupted(at, stop.exit(), how));
    }
    if interrupted && adds == Adds::Instead {
        let how = format!(
            "at t={}: the recording keeps the values that it had",
            index.length
        );
        return Err(is_interrupted(at, stop.exit(), &how));
    }
    checkpoints
        .finish(index.nodes, INTERVAL)
        .with_context(name)?;
    if let Some(printed) = printed {
        printed.finish(index.length).with_context(name)?;
    }
    let segments = path.segments();
    if !interrupted && (anew || segments.grammars().is_none()) {
        segments.write_grammars(&out).with_context(name)?;
    }
    writer
        .finish(
            &out,
            &Index {
                anew,
                ..index.clone()
            },
        )
        .with_context(name)?;
    out.commit().with_context(name)?;
    drop(bar);
    let stored = input::recording(at)?;
    let stored = stored
        .last(Kind::VALUES)
        .map_or(0, |values| values.stored());
    let part = match (first, last) {
        (1, last) if last.min(index.length) >= length => String::new(),
        _ => format!(" from t={first} to t={}", index.length),
    };
    let without = match left_out.is_nothing() {
        true => String::new(),
        false => format!(", without {}", left_out.words),
    };
    tell(format_args!(
        "values of {} executed statements{part} in {stored} bytes ({:.4} a statement){without}",
        index.statements,
        stored as f64 / (index.statements.max(1)) as f64
    ));
    if interrupted {
        let window = match (first, last) {
            (1, last) if last >= length => String::new(),
            _ => format!(" --window {first}..{last}"),
        };
        let filters = match left_out.is_nothing() {
            true => "",
            false => ", and the same functions",
        };
        let kept = format!(
            "at t={}: questions before that are answered, and it goes on from there with: afterimage build --lens full{window} {}{filters}",
            index.length,
            pasted(at)
        );
        return Err(is_interrupted(at, stop.exit(), &kept));
    }
    if index.length < last.min(length) {
        say(format_args!(
            "the recording was cut off: its log ends at t={0}, its path at t={1}; there are values up to t={0}",
            grouped(index.length),
            grouped(length)
        ));
    }
    Ok(Added::Here)
}

fn is_interrupted(at: &Path, exit: Exit, how: &str) -> anyhow::Error {
    let failed = Failed {
        exit,
        error: anyhow!(
            "{}: building the values was interrupted {how}",
            at.display()
        ),
    };
    failed.into()
}

/// The path of a recording, built if it is not there yet.
pub(crate) fn path(at: &Path, file: &TraceFile, loaded: &Loaded) -> Result<RecordedPath> {
    path_found(at, file, loaded, path_of(at, file, loaded)?)
}

/// The path of a recording whose directory was read already, built if it is not there yet.
pub(crate) fn path_with(
    at: &Path,
    file: &TraceFile,
    loaded: &Loaded,
    directory: Result<Option<RecordedDirectory>, PathFileError>,
) -> Result<RecordedPath> {
    let found = directory.and_then(|found| recorded_path_of(file, &loaded.program, found));
    let found = found.with_context(|| at.display().to_string())?;
    path_found(at, file, loaded, found)
}

fn path_found(
    at: &Path,
    file: &TraceFile,
    loaded: &Loaded,
    found: Option<RecordedPath>,
) -> Result<RecordedPath> {
    let found = match found {
        Some(path) => Some(path),
        None => built_path(at, file, loaded, &PathFilter::default())?,
    };
    let Some(path) = found else {
        bail!("{}: the path that was built is not there", at.display());
    };
    let left_out = &path.segments().directory().left_out;
    if !left_out.is_empty() {
        let all = match file.end() {
            Ok(Some(_)) => format!("; exact counts of all: afterimage profile {}", pasted(at)),
            // Without its end a run cannot be followed, nor counted.
            _ => String::new(),
        };
        say(format_args!(
            "the path in {} lacks {left_out}: what follows counts only what is there, and numbers calls as in the whole run{all}",
            at.display()
        ));
    }
    Ok(path)
}

/// Builds a path, unless another process does meanwhile.
fn built_path(
    at: &Path,
    file: &TraceFile,
    loaded: &Loaded,
    filter: &PathFilter,
) -> Result<Option<RecordedPath>> {
    let mut file = file.clone();
    loop {
        let added = add_path(at, &file, loaded, filter, Empty::Kept)?;
        file = input::recording(at)?;
        let found = path_of(at, &file, loaded)?;
        if found.is_some() || added == Added::Here {
            return Ok(found);
        }
    }
}

/// Compacts the path that a live run wrote.
pub(crate) fn compact(at: &Path, loaded: &Loaded, filter: &PathFilter) -> Result<()> {
    let file = input::recording(at)?;
    // The run is over: what it gave is there.
    built_path(at, &file, loaded, filter)?;
    without_words(at)
}

/// Drops what the live run wrote of its path, once that is built: it can be built again by re-execution.
fn without_words(at: &Path) -> Result<()> {
    let name = || at.display().to_string();
    let file = input::recording(at)?;
    let is_built =
        file.last(Kind::PATH_INDEX).is_some() && file.end().with_context(name)?.is_some();
    if !is_built || file.last_begun(Kind::PATH_WORDS).is_none() {
        return Ok(());
    }
    match TraceWriter::rewrite_without(at, Kind::PATH_WORDS) {
        // Somebody asks already, and adds what that needs.
        Err(TraceError::BeingWritten(_)) => Ok(()),
        Err(error) => {
            say(format_args!(
                "{}: what the run wrote of its path stays in the recording, which is larger for that: {error}",
                at.display()
            ));
            Ok(())
        }
        Ok(()) => Ok(()),
    }
}

fn path_of(at: &Path, file: &TraceFile, loaded: &Loaded) -> Result<Option<RecordedPath>> {
    recorded_path(file, &loaded.program).with_context(|| at.display().to_string())
}

/// What is done with a path of which a filter leaves nothing.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Empty {
    Kept,
    Refused,
}

fn add_path(
    at: &Path,
    file: &TraceFile,
    loaded: &Loaded,
    filter: &PathFilter,
    empty: Empty,
) -> Result<Added> {
    let name = || at.display().to_string();
    let end = file.end().with_context(name)?;
    if end.is_none() {
        input::ended(at)?;
    }
    if end.is_none() && file.last_begun(Kind::PATH_WORDS).is_none() {
        bail!(
            "{}: the recording was cut off before its end was written, so its path cannot be followed; record the program again (with --lens paths, a recording keeps its path up to the last full megabyte of it)",
            at.display()
        );
    }
    let lost = "the path cannot be added to the recording";
    let Some(out) = append(at, file, lost).with_context(name)? else {
        return Ok(Added::Elsewhere);
    };
    let words = file.last_begun(Kind::PATH_WORDS);
    let steps = words.map(|words| words.chunks() as u64);
    let bar = match (steps, end) {
        (None, Some(end)) => Bar::of_events("following the path", end.events),
        _ => Bar::start("following the path", steps),
    };
    let counts = file.counts().with_context(name)?;
    let built = build_paths(
        &RecordedRun {
            file,
            bytes: &loaded.bytes,
            program: &loaded.program,
            cache: &Cache::of_user(),
            progress: &bar.progress(),
        },
        counts.as_ref().map(|lens| &lens.counts),
        filter,
        &out,
    );
    let built = built.with_context(name)?;
    let is_empty = built.kept == 0 && built.time > 0;
    if is_empty && empty == Empty::Refused {
        bail!(
            "{}: nothing of the path would be kept: the run has {1} blocks, from t=1 to t={1}, and no mark or function was met; the recording stays as it was",
            at.display(),
            built.time
        );
    }
    out.commit().with_context(name)?;
    drop(bar);
    let lacks = match filter.left_out.is_empty() {
        true => String::new(),
        false => format!(", without {}", filter.left_out),
    };
    tell(format_args!(
        "path of {} executed blocks in {} bytes{lacks}",
        built.time, built.stored
    ));
    if is_empty {
        say(format_args!(
            "nothing of it was kept: the run has {0} blocks, from t=1 to t={0}, and no mark or function was met",
            built.time
        ));
    }
    Ok(Added::Here)
}
