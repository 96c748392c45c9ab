//! Reads the path of a live run without compacting it. This works during the run, after it, or
//! after it was cut off.

use afterimage_paths::{NullSink, PathPlan, Regenerator, Sink};
use afterimage_program::{OperatorIndex, Program};
use afterimage_trace::TraceFile;
use afterimage_wpp::{Directory, Limits, Partial, Segment};

use super::WordReader;
use super::build::{live_words, recorded_finish};
use super::filter::{Filter, FilterSink};
use super::grammar::{GrammarSink, Nodes};
use crate::RecordError;

/// The description of the part that is missing from the path of a run that continues or was cut
/// off.
const UNWRITTEN: &str = "what was not written when the recording was read";

/// A path as written by a live run or a re-execution.
pub struct LivePath<'a> {
    file: &'a TraceFile,
    bytes: &'a [u8],
    program: &'a Program,
    plan: PathPlan,
    length: u64,
}

/// A stretch of a path. The rest of the path is represented only by numbers of blocks.
#[derive(Debug)]
pub struct Stretch {
    /// The nodes of the stretch.
    pub directory: Directory,
    /// The segments of the stretch.
    pub segments: Vec<Segment>,
}

impl<'a> LivePath<'a> {
    /// Opens the path that the live run has written so far. Returns `None` if the run wrote none,
    /// or if the path lacks the bits that the run held in a local when it ended.
    ///
    /// # Errors
    /// Returns an error if the file is damaged or does not fit the program.
    pub fn open(
        file: &'a TraceFile,
        bytes: &'a [u8],
        program: &'a Program,
    ) -> Result<Option<Self>, RecordError> {
        let Some((plan, words)) = live_words(file, program)? else {
            return Ok(None);
        };
        let mut path = Self {
            file,
            bytes,
            program,
            plan,
            length: 0,
        };
        path.length = path.follow(words, u64::MAX, u64::MAX, &mut NullSink, |_, _| {})?;
        Ok(Some(path))
    }

    /// Returns the number of blocks in the written path.
    pub fn length(&self) -> u64 {
        self.length
    }

    /// Returns the blocks between two times, inclusive, and the other blocks of their paths. Time:
    /// O(log length), plus up to a million blocks before the first block, plus the result.
    ///
    /// # Errors
    /// Returns an error if the file is damaged.
    pub fn stretch(&self, first: u64, last: u64) -> Result<Stretch, RecordError> {
        let mut segments = Vec::new();
        let filter = Filter {
            window: Some((first, last)),
            ..Filter::default()
        };
        let told = |segment: Segment, _: &[_]| segments.push(segment);
        let mut sink = FilterSink::new(filter, GrammarSink::new(Limits::default(), told));
        let words = WordReader::open(self.file, &self.plan)?.ok_or(RecordError::Cut)?;
        let reached = self.follow(words, first, last, &mut sink, |sink, run| {
            sink.begin(run.time(), run.open());
        })?;
        sink.skip(self.length.checked_sub(reached).ok_or(RecordError::Words)?);
        let (nodes, _) = sink.finish();
        self.in_memory(segments, nodes, None)
    }

    /// Returns the whole path. `progress` receives the number of blocks so far from time to time.
    ///
    /// # Errors
    /// Returns an error if the file is damaged.
    pub fn whole(&self, progress: impl Fn(u64)) -> Result<Stretch, RecordError> {
        let mut segments = Vec::new();
        let told = |segment: Segment, _: &[_]| {
            progress(segment.before);
            segments.push(segment);
        };
        let mut sink = GrammarSink::new(Limits::default(), told);
        let words = WordReader::open(self.file, &self.plan)?.ok_or(RecordError::Cut)?;
        self.follow(words, 0, u64::MAX, &mut sink, |_, _| {})?;
        let nodes = sink.finish();
        self.in_memory(segments, nodes, Some(Vec::new()))
    }

    fn in_memory(
        &self,
        segments: Vec<Segment>,
        nodes: Nodes,
        partial: Option<Vec<Partial>>,
    ) -> Result<Stretch, RecordError> {
        // The blocks outside the stretch are not missing from the recording.
        let left_out = match self.file.end()? {
            Some(_) => String::new(),
            None => UNWRITTEN.to_owned(),
        };
        Ok(Stretch {
            directory: Directory {
                nodes: nodes.nodes,
                continuations: nodes.continuations,
                summaries: Vec::from_iter(segments.iter().map(Segment::summary)),
                bits: 0,
                left_out,
                partial,
            },
            segments,
        })
    }

    /// Sends the run to a sink, from a moment before `first` until `last` or the end. Returns the
    /// number of blocks executed up to that point.
    fn follow<S: Sink>(
        &self,
        mut words: WordReader,
        first: u64,
        last: u64,
        sink: &mut S,
        begin: impl FnOnce(&mut S, &Regenerator<'_>),
    ) -> Result<u64, RecordError> {
        words.seek(first)?;
        let mut begin = Some(begin);
        let mut run = Regenerator::new(self.program, &self.plan);
        while run.time() < last {
            let Some(piece) = words.next()? else {
                if let Some(end) = self.file.end()? {
                    let index = OperatorIndex::new(self.program, self.bytes);
                    run.finish(&recorded_finish(self.program, &index, &end)?, sink)?;
                }
                break;
            };
            if let Some(begin) = begin.take() {
                let waypoint = piece.waypoint.ok_or(RecordError::Words)?;
                if waypoint.time() >= first.max(1) {
                    return Err(RecordError::Words);
                }
                run = Regenerator::resumed(self.program, &self.plan, &waypoint)?;
                begin(sink, &run);
            }
            for function in piece.calls {
                run.host_call(function);
            }
            run.feed(&piece.words, sink)?;
        }
        Ok(run.time())
    }
}

/// The result of checking path words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CheckedWords {
    /// The number of moments described in the words.
    pub moments: u64,
    /// The number of bits in the words. The path built from these words has the same number.
    pub bits: u64,
    /// Whether a re-execution wrote the words. If so, the path may have been built from different
    /// words.
    pub repeated: bool,
}

/// Checks that the run is where the file says it is, at every moment that the words describe, and
/// that the run reaches its end. Returns `None` if the file has no words, or only words that lack
/// the last bits.
///
/// # Errors
/// Returns an error if the words are damaged, or one of the moments is wrong.
pub fn verify_words(
    file: &TraceFile,
    program: &Program,
    bytes: &[u8],
) -> Result<Option<CheckedWords>, RecordError> {
    let Some((plan, mut words)) = live_words(file, program)? else {
        return Ok(None);
    };
    let mut run = Regenerator::new(program, &plan);
    let (mut moments, mut bits) = (0, 0);
    while let Some(piece) = words.next()? {
        let found = run.time();
        // If the moment is described, the check below compares it.
        if piece.first != found && piece.waypoint.is_none() {
            let said = piece.first;
            return Err(RecordError::Moment { said, found });
        }
        if let Some(said) = piece.waypoint {
            let found = if said.is_between_words() {
                run.close(&said, &mut NullSink)?
            } else {
                run.waypoint(&mut NullSink)?
            };
            if said != found {
                return Err(RecordError::Moment {
                    said: said.time(),
                    found: found.time(),
                });
            }
            moments += 1;
        }
        for function in piece.calls {
            run.host_call(function);
        }
        bits += 64 * piece.words.len() as u64;
        run.feed(&piece.words, &mut NullSink)?;
    }
    let (said, found) = (words.first(), run.time());
    // A run that was cut off has no final chunk.
    if let Some(end) = file.end()? {
        if said != found {
            return Err(RecordError::Moment { said, found });
        }
        let index = OperatorIndex::new(program, bytes);
        run.finish(&recorded_finish(program, &index, &end)?, &mut NullSink)?;
    }
    let repeated = words.repeated;
    Ok(Some(CheckedWords {
        moments,
        bits,
        repeated,
    }))
}
