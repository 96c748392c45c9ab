//! The paths lens: the whole path of a recorded execution, in the trace file.

use afterimage_ids::Counts;
use afterimage_program::Program;
use afterimage_trace::{Kind, SectionWriter, TraceFile, TraceWriter};
use afterimage_wpp::{Directory, Limits, Summary, codec};

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
        failed: None,
    };
    let sink = GrammarSink::new(Limits::default(), |segment, contexts: &_| {
        writer.segment(&segment, contexts);
    });
    let Traced { sink, time, bits } =
        trace_paths(file, bytes, program, feedback, cache, progress, sink)?;
    let nodes = sink.finish();
    let (summaries, stored) = writer.finish()?;
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

/// Writes segments as they come. An error is kept until somebody can be told.
struct SegmentWriter {
    section: SectionWriter,
    summaries: Vec<Summary>,
    stored: u64,
    end: u64,
    failed: Option<RecordError>,
}

impl SegmentWriter {
    fn segment(&mut self, segment: &afterimage_wpp::Segment, contexts: &[codec::NodeContext]) {
        if self.failed.is_some() {
            return;
        }
        let bytes = codec::encode(segment, contexts);
        self.stored += bytes.len() as u64;
        if let Err(error) = self.section.put(segment.before, &bytes) {
            self.failed = Some(error.into());
        }
        self.end = segment.before + segment.length;
        self.summaries.push(segment.summary());
    }

    fn finish(self) -> Result<(Vec<Summary>, u64), RecordError> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        self.section.finish(self.end, &[])?;
        Ok((self.summaries, self.stored))
    }
}
