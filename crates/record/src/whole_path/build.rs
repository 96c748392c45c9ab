//! Implements the paths lens, which stores the whole path of a recorded execution in the trace
//! file.

use std::sync::mpsc::sync_channel;

use afterimage_ids::{Counts, FuncId, NodeId};
use afterimage_paths::{Cuts, ExecutedPath, FinalFrame, Finish, PathPlan, Regenerator, Sink};
use afterimage_program::{OperatorIndex, Program};
use afterimage_trace::{End, Ending, Kind, SectionWriter, Standing, TraceFile, TraceWriter};
use afterimage_wpp::codec::{self, NodeContext};
use afterimage_wpp::{Directory, Limits, Partial, Segment, Summary};

use super::WordReader;
use super::filter::{Filter, FilterSink};
use super::grammar::{GrammarSink, Nodes};
use super::lens::{ends_inside, trace_paths};
use crate::RecordError;
use crate::whole_path::RecordedRun;

/// The part of a path to build.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PathFilter {
    /// The parts to keep.
    pub keep: Filter,
    /// A description of the parts that are left out, for the file.
    pub left_out: String,
}

/// The description of the part that is missing from the path of a run that was cut off.
pub const CUT: &str = "what followed when the recording was cut off";

/// The result of building a path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BuiltPaths {
    /// The number of executed blocks.
    pub time: u64,
    /// The number of bits that the probes wrote.
    pub bits: u64,
    /// The size of the segments in bytes.
    pub stored: u64,
    /// The number of different paths kept.
    pub kept: u64,
}

/// Adds the path of a recorded execution, or the part that `filter` keeps, to a file. Compacts the
/// path words in the file, or re-executes the recording if there are no complete words. The caller
/// commits.
///
/// For a run that was cut off, compacts the words written until then.
///
/// # Errors
/// Returns an error if the path words are damaged, the recording cannot be repeated exactly, or the
/// file cannot be written.
pub fn build_paths(
    run: &RecordedRun<'_>,
    feedback: Option<&Counts>,
    filter: &PathFilter,
    out: &TraceWriter,
) -> Result<BuiltPaths, RecordError> {
    let (file, program) = (run.file, run.program);
    let live = live_words(file, program)?;
    let cut = file.end()?.is_none();
    let segments = out.section(Kind::PATHS, None)?;
    let ((nodes, partial), (time, bits), (summaries, stored)) =
        coded(segments, &filter.keep, |sink| match live {
            Some((plan, words)) => compact(run, &plan, words, sink),
            None => {
                let traced = trace_paths(run, feedback, sink)?;
                Ok((traced.sink, (traced.time, traced.bits)))
            }
        })?;
    let directory = Directory {
        nodes: nodes.nodes,
        continuations: nodes.continuations,
        summaries,
        bits,
        left_out: match (cut, filter.left_out.is_empty()) {
            (false, _) => filter.left_out.clone(),
            (true, true) => CUT.to_owned(),
            (true, false) => format!("{}; {CUT}", filter.left_out),
        },
        partial: Some(partial),
    };
    out.whole(Kind::PATH_INDEX, None, &directory.encode())?;
    let kept = directory.nodes.values().filter(|node| node.left_out == 0);
    Ok(BuiltPaths {
        time,
        bits,
        stored,
        kept: kept.count() as u64,
    })
}

/// Opens the path words of a re-execution or of the run. Returns `None` if there are none, or only
/// words of a run that ended in the middle of a function. Their last bits are missing, because the
/// function held them in a local.
pub(super) fn live_words(
    file: &TraceFile,
    program: &Program,
) -> Result<Option<(PathPlan, WordReader)>, RecordError> {
    let plan = PathPlan::new(program, None, Cuts::default())?;
    let words = WordReader::open(file, &plan)?;
    let loses = file.end()?.is_some_and(|end| ends_inside(&end).is_some());
    let words = words.filter(|words| words.repeated || !loses);
    Ok(words.map(|words| (plan, words)))
}

/// Regenerates the path from the words in the file.
fn compact<S: Sink>(
    run: &RecordedRun<'_>,
    plan: &PathPlan,
    mut words: WordReader,
    mut sink: S,
) -> Result<(S, (u64, u64)), RecordError> {
    let program = run.program;
    let mut regenerator = Regenerator::new(program, plan);
    let mut bits = 0;
    for done in 0.. {
        (run.progress)(done);
        if run.is_cancelled() {
            return Err(RecordError::Interrupted);
        }
        let Some(piece) = words.next()? else { break };
        for function in piece.calls {
            regenerator.host_call(function);
        }
        bits += 64 * piece.words.len() as u64;
        regenerator.feed(&piece.words, &mut sink)?;
    }
    if let Some(end) = run.file.end()? {
        let index = OperatorIndex::new(program, run.bytes);
        regenerator.finish(&recorded_finish(program, &index, &end)?, &mut sink)?;
    }
    Ok((sink, (regenerator.time(), bits)))
}

/// Determines where a recording's path ends.
pub(crate) fn recorded_finish(
    program: &Program,
    index: &OperatorIndex<'_>,
    end: &End,
) -> Result<Finish, RecordError> {
    if matches!(end.ending, Ending::Returned | Ending::Exception { .. }) {
        return Ok(Finish::Done);
    }
    let entered = end.frames.iter().rev();
    let entered = entered.filter(|frame| frame.standing != Standing::NotEntered);
    let frames = entered.map(|frame| {
        let unknown = || RecordError::UnknownPlace(frame.offset.to_string());
        let function = program.function(frame.function).ok_or_else(unknown)?;
        let block = match frame.standing {
            Standing::Before if frame.offset == function.body.start => function.cfg.graph.root(),
            _ => {
                let found = index.find(frame.offset);
                let block = found.and_then(|(_, op)| function.block_of(op));
                block.ok_or_else(unknown)?
            }
        };
        Ok(FinalFrame {
            function: frame.function,
            block,
        })
    });
    Ok(Finish::Open(frames.collect::<Result<_, RecordError>>()?))
}

/// The result of writing a section of segments: their summaries, and the size in bytes.
type Coded = (Vec<Summary>, u64);
/// The nodes that a sink kept, and the functions with omitted blocks.
type Kept = (Nodes, Vec<Partial>);

/// Builds a grammar from the path that `paths` sends to the sink. Another thread codes and writes
/// its segments, because that takes longer than everything else.
fn coded<R>(
    section: SectionWriter,
    filter: &Filter,
    paths: impl FnOnce(SegmentSink<'_>) -> Result<(SegmentSink<'_>, R), RecordError>,
) -> Result<(Kept, R, Coded), RecordError> {
    let mut writer = SegmentWriter {
        section,
        summaries: Vec::new(),
        stored: 0,
        end: 0,
    };
    // One segment can wait while the coder works on the previous one.
    let (segments, queue) = sync_channel::<Cut>(1);
    std::thread::scope(|scope| {
        let coder = scope.spawn(move || {
            for cut in queue {
                writer.segment(cut)?;
            }
            writer.finish()
        });
        let told = |segment: Segment, contexts: &[NodeContext]| {
            let contexts = contexts.to_vec();
            // If the coder has failed, nobody receives this. The error is reported below.
            let _ = segments.send(Cut { segment, contexts });
        };
        let told: Box<SegmentFn<'_>> = Box::new(told);
        let grammar = GrammarSink::new(Limits::default(), told);
        let sink = if filter.keeps_all() {
            SegmentSink::All(Box::new(grammar))
        } else {
            SegmentSink::Some(Box::new(FilterSink::new(filter.clone(), grammar)))
        };
        let nodes = paths(sink).map(|(sink, result)| (sink.finish(), result));
        drop(segments);
        let written = match coder.join() {
            Ok(written) => written,
            Err(panic) => std::panic::resume_unwind(panic),
        };
        let (nodes, result) = nodes?;
        Ok((nodes, result, written?))
    })
}

type SegmentFn<'a> = dyn FnMut(Segment, &[NodeContext]) + Send + 'a;

/// A grammar of the whole path, or of the part that a filter keeps.
enum SegmentSink<'a> {
    All(Box<GrammarSink<Box<SegmentFn<'a>>>>),
    Some(Box<FilterSink<Box<SegmentFn<'a>>>>),
}

impl SegmentSink<'_> {
    fn finish(self) -> Kept {
        match self {
            SegmentSink::All(sink) => (sink.finish(), Vec::new()),
            SegmentSink::Some(sink) => sink.finish(),
        }
    }
}

impl Sink for SegmentSink<'_> {
    fn define(&mut self, path: ExecutedPath<'_>) -> NodeId {
        match self {
            SegmentSink::All(sink) => sink.define(path),
            SegmentSink::Some(sink) => sink.define(path),
        }
    }

    #[inline]
    fn path(&mut self, node: NodeId) {
        match self {
            SegmentSink::All(sink) => sink.path(node),
            SegmentSink::Some(sink) => sink.path(node),
        }
    }

    #[inline]
    fn enter(&mut self, function: FuncId) {
        match self {
            SegmentSink::All(sink) => sink.enter(function),
            SegmentSink::Some(sink) => sink.enter(function),
        }
    }

    #[inline]
    fn leave(&mut self) {
        match self {
            SegmentSink::All(sink) => sink.leave(),
            SegmentSink::Some(sink) => sink.leave(),
        }
    }
}

/// A segment, and the contexts of the nodes so far.
struct Cut {
    segment: Segment,
    contexts: Vec<NodeContext>,
}

/// Codes segments and writes them as they arrive.
struct SegmentWriter {
    section: SectionWriter,
    summaries: Vec<Summary>,
    stored: u64,
    end: u64,
}

impl SegmentWriter {
    fn segment(&mut self, cut: Cut) -> Result<(), RecordError> {
        let segment = cut.segment;
        let bytes = codec::encode(&segment, &cut.contexts);
        self.stored += bytes.len() as u64;
        self.section.put(segment.before, &bytes)?;
        self.end = segment.before + segment.length;
        self.summaries.push(segment.summary());
        Ok(())
    }

    fn finish(self) -> Result<(Vec<Summary>, u64), RecordError> {
        self.section.finish(self.end, &[])?;
        Ok((self.summaries, self.stored))
    }
}
