//! The paths lens: the whole path of a recorded execution, in the trace file.

use std::sync::mpsc::sync_channel;

use afterimage_ids::Counts;
use afterimage_program::Program;
use afterimage_trace::{Kind, SectionWriter, TraceFile, TraceWriter};
use afterimage_wpp::codec::{self, NodeContext};
use afterimage_wpp::{Directory, Limits, Segment, Summary};

use super::grammar::GrammarSink;
use super::lens::{Traced, trace_paths};
use crate::replay::Progress;
use crate::{Cache, RecordError};

/// What was built.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BuiltPaths {
    /// How many blocks were executed.
    pub time: u64,
    /// How many bits the probes wrote.
    pub bits: u64,
    /// How many bytes the segments have.
    pub stored: u64,
}

/// Re-executes a recording and adds the whole path to a file. The caller commits.
///
/// # Errors
/// If the recording cannot be repeated exactly, or the file cannot be written.
pub fn build_paths(
    file: &TraceFile,
    bytes: &[u8],
    program: &Program,
    feedback: Option<&Counts>,
    cache: &Cache,
    progress: &Progress,
    out: &TraceWriter,
) -> Result<BuiltPaths, RecordError> {
    let mut writer = SegmentWriter {
        section: out.section(Kind::PATHS, None)?,
        summaries: Vec::new(),
        stored: 0,
        end: 0,
    };
    // Coding takes longer than all else, so it has a thread of its own. A segment waits for the one before.
    let (segments, queue) = sync_channel::<Cut>(1);
    let (traced, written) = std::thread::scope(|scope| {
        let coder = scope.spawn(move || {
            for cut in queue {
                writer.segment(cut)?;
            }
            writer.finish()
        });
        let sink = GrammarSink::new(Limits::default(), |segment, contexts: &[_]| {
            let contexts = contexts.to_vec();
            // Nobody takes it if the coder has failed, which is told below.
            let _ = segments.send(Cut { segment, contexts });
        });
        let traced = trace_paths(file, bytes, program, feedback, cache, progress, sink)
            .map(|Traced { sink, time, bits }| (sink.finish(), time, bits));
        drop(segments);
        let written = match coder.join() {
            Ok(written) => written,
            Err(panic) => std::panic::resume_unwind(panic),
        };
        (traced, written)
    });
    let (nodes, time, bits) = traced?;
    let (summaries, stored) = written?;
    let directory = Directory {
        nodes: nodes.nodes,
        continuations: nodes.continuations,
        summaries,
        bits,
        left_out: String::new(),
    };
    out.whole(Kind::PATH_INDEX, &directory.encode())?;
    Ok(BuiltPaths { time, bits, stored })
}

/// A segment, and the contexts of the nodes so far.
struct Cut {
    segment: Segment,
    contexts: Vec<NodeContext>,
}

/// Codes segments and writes them as they come.
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
