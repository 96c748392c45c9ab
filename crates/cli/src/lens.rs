//! What commands that look at the path of a run have in common.

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use afterimage_ids::{FuncId, OpId};
use afterimage_present::{absent, grouped};
use afterimage_profile::{Stop, stops};
use afterimage_program::{BlockEnd, Names, OperatorIndex, SourceMap};
use afterimage_record::LivePath;
use afterimage_replay::paths::{
    FileSegments, NumberError, Numbering, PathFileError, Positions, RecordedDirectory,
    RecordedPath, path_in_memory,
};
use afterimage_replay::steps::{FileCheckpoints, recorded_checkpoints};
use afterimage_replay::values::{RecordedValues, recorded_values};
use afterimage_trace::{Ending, Kind, Standing, TraceFile, TrapCode, Writer};
use afterimage_wet::FileEpochs;
use anyhow::{Context, Result, bail};

use crate::arguments::Which;
use crate::build;
use crate::input::{self, Loaded};
use crate::output::{pasted, say};
use crate::progress::Bar;

/// A recording with its path.
pub(crate) struct Traced {
    /// Where the recording is.
    pub at: PathBuf,
    pub file: TraceFile,
    /// It again, with the values that were built since it was opened.
    with_values: OnceLock<TraceFile>,
    pub loaded: Arc<Loaded>,
    pub path: RecordedPath,
    /// Only of a stretch of the path is there more than how many blocks it has.
    pub is_stretch: bool,
    /// Where the run ended.
    pub stops: Vec<Stop>,
}

/// Opens a recording, and builds its path if that is not there yet.
pub(crate) fn traced(at: &Path) -> Result<Traced> {
    traced_with(at, build::path)
}

/// As [`traced`], for what needs all of the path.
pub(crate) fn traced_whole(at: &Path) -> Result<Traced> {
    traced_with(at, build::whole_path)
}

fn traced_with(
    at: &Path,
    path: impl FnOnce(&Path, &TraceFile, &Loaded) -> Result<RecordedPath>,
) -> Result<Traced> {
    let file = input::recording(at)?;
    let loaded = Arc::new(input::recorded_program(at, &file)?);
    traced_of(at, file, loaded, path)
}

/// A recording whose program and directory were read already, with its path, which is built if it is not there yet.
pub(crate) fn traced_in(
    at: &Path,
    file: TraceFile,
    loaded: Arc<Loaded>,
    directory: Result<Option<RecordedDirectory>, PathFileError>,
) -> Result<Traced> {
    traced_of(at, file, loaded, |at, file, loaded| {
        build::path_with(at, file, loaded, directory)
    })
}

fn traced_of(
    at: &Path,
    file: TraceFile,
    loaded: Arc<Loaded>,
    path: impl FnOnce(&Path, &TraceFile, &Loaded) -> Result<RecordedPath>,
) -> Result<Traced> {
    let name = || at.display().to_string();
    let path = match input::recorder(at, &file) {
        Some(recorder) => so_far(at, &file, &loaded, recorder)?,
        None => path(at, &file, &loaded)?,
    };
    let stops = stops_of(&file, &loaded).with_context(name)?;
    Ok(Traced {
        at: at.to_owned(),
        file,
        with_values: OnceLock::new(),
        loaded,
        path,
        is_stretch: false,
        stops,
    })
}

/// The path of a run that goes on, as far as it is written: compacted in memory, for the file is not ours.
fn so_far(at: &Path, file: &TraceFile, loaded: &Loaded, recorder: Writer) -> Result<RecordedPath> {
    let name = || at.display().to_string();
    let live = LivePath::open(file, &loaded.bytes, &loaded.program).with_context(name)?;
    let Some(live) = live.filter(|live| live.length() > 0) else {
        bail!(
            "{}: it is still being recorded by another process{recorder}, and nothing of its path is there yet: with `record --lens paths` it comes by the megabyte; ask again later, or when the program has ended",
            at.display()
        );
    };
    say(format_args!(
        "{} is still being recorded by another process{recorder}: what follows is about the run up to t={}",
        at.display(),
        grouped(live.length())
    ));
    let bar = Bar::start("following the path", Some(live.length()));
    let progress = bar.progress();
    let all = live.whole(|time| progress(time)).with_context(name)?;
    path_in_memory(file, all.directory, all.segments).with_context(name)
}

/// Refuses a path of which something was left out, without the name of its recording in front.
pub(crate) fn complete(at: &Path, path: &RecordedPath) -> Result<()> {
    if let Some(left_out) = gaps(path) {
        bail!(
            "the path lacks {left_out}, and this needs all of it; build the whole path with: afterimage build --lens paths --again {}",
            pasted(at)
        );
    }
    Ok(())
}

/// What a filter left out of a path, in words. `None` if nothing lacks but what came after its end.
pub(crate) fn gaps(path: &RecordedPath) -> Option<&str> {
    let gaps = path.nodes().values().any(|node| node.left_out > 0);
    gaps.then_some(path.segments().directory().left_out.as_str())
}

/// Opens a recording whose path is not built, but was written while the program ran, and reads a stretch of that: `wanted` is told how many blocks
/// the run has, and how many one of its paths may have, and says from which to which it is to be, or that all of the path is needed. `None`
/// then, and if the path is built.
pub(crate) fn unbuilt(
    at: &Path,
    wanted: impl FnOnce(u64, u64) -> Result<Option<(u64, u64)>>,
) -> Result<Option<Traced>> {
    let name = || at.display().to_string();
    let file = input::recording(at)?;
    if file.last(Kind::PATH_INDEX).is_some() || file.last_begun(Kind::PATH_WORDS).is_none() {
        return Ok(None);
    }
    let loaded = Arc::new(input::recorded_program(at, &file)?);
    let live = LivePath::open(&file, &loaded.bytes, &loaded.program).with_context(name)?;
    let Some(live) = live else { return Ok(None) };
    let longest = loaded.program.functions.iter().map(|f| f.cfg.blocks.len());
    let longest = longest.max().unwrap_or(0) as u64;
    let Some((first, last)) = wanted(live.length(), longest).with_context(name)? else {
        return Ok(None);
    };
    let stretch = live.stretch(first, last).with_context(name)?;
    let path = path_in_memory(&file, stretch.directory, stretch.segments).with_context(name)?;
    let stops = stops_of(&file, &loaded).with_context(name)?;
    Ok(Some(Traced {
        at: at.to_owned(),
        file,
        with_values: OnceLock::new(),
        loaded,
        path,
        is_stretch: true,
        stops,
    }))
}

pub(crate) fn stops_of(file: &TraceFile, loaded: &Loaded) -> Result<Vec<Stop>> {
    let Some(end) = file.end()? else {
        return Ok(Vec::new());
    };
    let index = OperatorIndex::new(&loaded.program, &loaded.bytes);
    Ok(stops(&loaded.program, &index, &end)?)
}

/// The operator with which a run ended, by trapping.
pub(crate) struct Trapped {
    function: FuncId,
    op: OpId,
    time: u64,
    /// Why, in words.
    pub why: String,
}

impl Trapped {
    /// Whether it is this operator, when its block is executed at a time.
    pub(crate) fn is_at(&self, function: FuncId, op: OpId, time: u64) -> bool {
        (self.function, self.op, self.time) == (function, op, time)
    }
}

impl Traced {
    /// What trapped, if the run ended so.
    pub(crate) fn trapped(&self) -> Result<Option<Trapped>> {
        let end = self.file.end()?;
        let why = match end.map(|end| end.ending) {
            Some(Ending::Trapped {
                code: TrapCode::Other,
                message,
            }) => message,
            Some(Ending::Trapped { code, .. }) => code.to_string(),
            _ => return Ok(None),
        };
        Ok(self.stood()?.map(|(function, op)| Trapped {
            function,
            op,
            time: self.path.length(),
            why,
        }))
    }

    /// The operator before or in which the run ended, in its last block: where it trapped, called the host, which did not return, or was stopped.
    pub(crate) fn stood(&self) -> Result<Option<(FuncId, OpId)>> {
        let Some(end) = self.file.end()? else {
            return Ok(None);
        };
        let mut frames = end.frames.iter();
        let frame = frames.find(|frame| frame.standing != Standing::NotEntered);
        Ok(frame.zip(self.stops.first()).and_then(|(frame, stop)| {
            let op = match frame.standing {
                Standing::At => OpId::from_u32(stop.next.as_u32().checked_sub(1)?),
                Standing::Before | Standing::NotEntered => stop.next,
            };
            let function = self.loaded.program.function(stop.function)?;
            (function.block_of(op) == Some(stop.block)).then_some((stop.function, op))
        }))
    }

    /// The operator in which the run ended, with the time of its block: as [`stood`](Self::stood), and what threw an exception that nothing caught. The functions that this left are not
    /// known to the recording, but nothing is executed behind it.
    pub(crate) fn ended_in(&self) -> Result<Option<(u64, FuncId, OpId)>> {
        let length = self.path.length();
        let end = self.file.end()?.map(|end| end.ending);
        if !matches!(end, Some(Ending::Exception { .. })) {
            return Ok(self.stood()?.map(|(function, op)| (length, function, op)));
        }
        let Some(last) = self.path.cursor().seek(length)? else {
            return Ok(None);
        };
        let node = &self.path.nodes()[last.node];
        let function = self.loaded.program.function(node.function);
        let block = function.zip(node.blocks.last());
        let block = block.and_then(|(function, &block)| function.cfg.blocks.get(block));
        let block = block.filter(|block| block.end == BlockEnd::Throw);
        Ok(block.and_then(|block| {
            let op = OpId::from_u32(block.ops.end.as_u32().checked_sub(1)?);
            Some((length, node.function, op))
        }))
    }

    /// Its values, built if they are not there yet.
    pub(crate) fn epochs(&self, at: &Path) -> Result<FileEpochs> {
        input::ended(at)?;
        let epochs = build::values(at, &input::recording(at)?, &self.loaded, &self.path)?;
        if self.with_values.get().is_none() {
            // Nobody else sets it.
            let _ = self.with_values.set(input::recording(at)?);
        }
        Ok(epochs)
    }

    /// The file, with what [`epochs`](Self::epochs) may have added to it since it was opened.
    pub(crate) fn newest(&self) -> &TraceFile {
        self.with_values.get().unwrap_or(&self.file)
    }

    /// From where its run can be followed besides its beginning.
    pub(crate) fn checkpoints(&self) -> Result<Option<FileCheckpoints>> {
        Ok(recorded_checkpoints(self.newest(), &self.path)?)
    }

    /// Asks them.
    pub(crate) fn values<'a>(&'a self, epochs: &'a FileEpochs) -> Result<RecordedValues<'a>> {
        let Loaded { program, bytes, .. } = &*self.loaded;
        Ok(recorded_values(program, bytes, &self.path, epochs)?)
    }

    /// Finds positions in the run.
    pub(crate) fn positions<'a>(
        &'a self,
        names: &'a Names,
        source: &'a SourceMap<'a>,
    ) -> Positions<'a, FileSegments> {
        let Loaded { program, bytes, .. } = &*self.loaded;
        Positions::new(&self.path, program, bytes, names, source, &self.stops)
            .numbered(numbering(&self.path))
    }

    /// A function that the module defines, by what a user calls it.
    pub(crate) fn function(&self, names: &Names, text: &str) -> Result<FuncId> {
        let function = names.find(text)?;
        if self.loaded.program.function(function).is_none() {
            bail!(
                "{} is imported, so the path has nothing of it; see its callers",
                names.function(function)
            );
        }
        Ok(function)
    }
}

/// Which calls of the whole run those of the path are.
pub(crate) fn numbering(path: &RecordedPath) -> Numbering {
    Numbering::of(path.segments().directory())
}

/// Which of a function's calls in the path is the one that a user asks for: its number there, and how many there were in the run.
pub(crate) fn which_call(
    path: &RecordedPath,
    function: FuncId,
    name: &str,
    which: Which,
) -> Result<(u64, u64)> {
    let numbering = numbering(path);
    let count = path.activations(function)?.count();
    let kept = match which {
        Which::Kth(number) => numbering.kept(function, number, count),
        Which::Last => numbering.last(function, count),
    };
    match kept {
        Ok(kept) => Ok((kept, numbering.calls(function, count).unwrap_or(count))),
        Err(NumberError::Never) => bail!(absent(name, &path.segments().directory().left_out)),
        Err(error) => bail!("{name}: {error}"),
    }
}
