//! Verifies that the path in a file can be the path of the recorded run. Checks every rule that
//! follows from the program, the counts and the recorded end.
//!
//! The path is not expanded. A rule of a segment's grammar is examined once, even if it is executed
//! many times. So the time is linear in the grammars, the nodes and the program.

mod counts;
mod flow;
mod landing;
mod nodes;
mod span;

use std::fmt;

use afterimage_program::{OperatorIndex, Program};
use afterimage_trace::{Kind, SectionReader, TraceFile};
use afterimage_wpp::Segments;

use self::counts::Totals;
use self::flow::Flow;
use self::nodes::Nodes;
use super::{FileSegments, PathFileError, recorded_path};
use afterimage_profile::stops;

/// The largest number of findings to list for each rule.
const MAX_FINDINGS: usize = 10;

/// A rule for the path in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PathRule {
    /// The directory is readable, and names only functions and blocks that the program has.
    Index,
    /// All segments that the directory lists, and no others, are in their places. An empty chunk
    /// follows them.
    Place,
    /// Every segment is readable and internally consistent.
    Segment,
    /// Every opened grammar is in its place and matches its segment. An empty chunk follows the
    /// last opened grammar.
    Grammar,
    /// Every segment has the contents that the directory lists.
    Summary,
    /// Every segment begins where the previous one ends, with the same activations.
    Continuity,
    /// Edges join the blocks of a node, and only the last block ends with a call.
    Edges,
    /// An edge leads from a node's last block to the block where the node continues. The node is
    /// marked as calling if its last block ends with a call.
    Continuation,
    /// Every activation begins at its function's root.
    Entry,
    /// The next node of an activation begins where the previous node continues, or where an
    /// exception is handled.
    Sequel,
    /// After a call, the next activation belongs to the function that the call names or, through a
    /// table, to a function of its type. No activation follows a node without a call. The host
    /// calls only exported functions.
    Callee,
    /// An activation ends only where control leaves its function.
    Return,
    /// The number of entries to each function equals its number in COUNTS.
    CallCounts,
    /// The number of executions of each block equals its number in COUNTS.
    BlockCounts,
    /// The number of times that each edge out of a block is taken equals its number in COUNTS.
    /// Edges with the same ends are counted together, like returns and exceptions that the path
    /// does not distinguish.
    EdgeCounts,
    /// The path ends in the activations and blocks in which the run ended according to END.
    Stack,
}

/// A violation of a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathFinding {
    /// The rule that does not hold.
    pub rule: PathRule,
    /// A description of the fault and its place.
    pub text: String,
}

impl fmt::Display for PathFinding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Path{:?}: {}", self.rule, self.text)
    }
}

/// The result of checking a path.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PathReport {
    /// The places where rules do not hold, at most ten for each rule.
    pub findings: Vec<PathFinding>,
    /// The number of segments read.
    pub segments: u64,
    /// The number of distinct paths.
    pub nodes: u64,
    /// The number of executed blocks.
    pub blocks: u64,
    /// A description of the missing parts of the path, empty if the path is complete.
    pub left_out: String,
    /// Whether the path was compared with the counts in the file.
    pub counts: bool,
    /// Whether the path's end was compared with the end recorded in the file.
    pub end: bool,
}

impl PathReport {
    fn find(&mut self, rule: PathRule, text: impl Into<String>) {
        let same = self.findings.iter().filter(|finding| finding.rule == rule);
        if same.count() < MAX_FINDINGS {
            self.findings.push(PathFinding {
                rule,
                text: text.into(),
            });
        }
    }
}

/// Checks the path in a file against all rules. Returns `None` if the file has no path. `module`
/// contains the bytes from which the program was parsed. Other sections are assumed to be correct,
/// because other checks cover them.
///
/// Takes time linear in the size of the grammars, the nodes and the program. Uses memory for one
/// segment, for all nodes, and for the activations that are open between segments.
pub fn verify_path(file: &TraceFile, program: &Program, module: &[u8]) -> Option<PathReport> {
    let mut report = PathReport::default();
    let path = match recorded_path(file, program) {
        Ok(path) => path?,
        Err(error) => {
            let rule = match error {
                PathFileError::Segments { .. } => PathRule::Place,
                PathFileError::Follow(_) => PathRule::Continuity,
                PathFileError::Grammars { .. } => PathRule::Grammar,
                _ => PathRule::Index,
            };
            report.find(rule, error.to_string());
            return Some(report);
        }
    };
    let segments = path.segments();
    let directory = segments.directory();
    report.nodes = directory.nodes.len() as u64;
    report.blocks = path.length();
    report.left_out.clone_from(&directory.left_out);
    places(
        file.last(Kind::PATHS),
        segments,
        PathRule::Place,
        &mut report,
    );
    let grammars = segments
        .grammars()
        .and_then(|section| file.section(section));
    places(grammars, segments, PathRule::Grammar, &mut report);
    let nodes = Nodes::new(program, directory, &mut report);
    let mut flow = Flow::new(&nodes);
    let mut open = Vec::new();
    for at in 0..segments.summaries().len() {
        // The segments after an unreadable segment are not checked.
        let Some(segment) = segment(segments, at, &open, &mut report) else {
            return Some(report);
        };
        flow.segment(at, &segment, &mut report);
        open = segment.open_after();
        report.segments += 1;
    }
    if let Ok(Some(end)) = file.end()
        && let Ok(stops) = stops(program, &OperatorIndex::new(program, module), &end)
    {
        flow.end(&stops, &mut report);
        report.end = true;
    }
    let flows = report.findings.is_empty();
    if let Ok(Some(lens)) = file.counts()
        && lens.counts.functions.len() == program.functions.len()
        && flows
    {
        Totals::new(&nodes, segments.summaries(), &flow).compare(&lens.counts, &mut report);
        report.counts = true;
    }
    Some(report)
}

/// Checks that each chunk states the correct position of its beginning in the run.
fn places(
    section: Option<SectionReader>,
    segments: &FileSegments,
    rule: PathRule,
    report: &mut PathReport,
) {
    let Some(mut reader) = section else {
        return;
    };
    let mut end = 0;
    for (at, summary) in segments.summaries().iter().enumerate() {
        reader.go(at + 1);
        if reader.first() != summary.before {
            let (found, said) = (reader.first(), summary.before);
            let text =
                format!("segment {at} begins after {found} blocks, but the directory says {said}");
            report.find(rule, text);
        }
        end = summary.before + summary.length;
    }
    reader.go(segments.summaries().len());
    match reader.advance() {
        Ok(true) if reader.bytes().is_empty() && reader.first() == end => {}
        _ => report.find(
            rule,
            format!("no empty chunk follows the segments after {end} blocks"),
        ),
    }
}

/// Reads a segment and checks it.
fn segment(
    segments: &FileSegments,
    at: usize,
    open: &[afterimage_ids::FuncId],
    report: &mut PathReport,
) -> Option<std::sync::Arc<afterimage_wpp::Segment>> {
    let segment = match segments.coded(at) {
        Ok(segment) => segment,
        Err(error) => {
            report.find(PathRule::Segment, format!("segment {at}: {error}"));
            return None;
        }
    };
    if let Err(error) = segment.check(&segments.directory().nodes) {
        report.find(PathRule::Segment, format!("segment {at}: {error}"));
        return None;
    }
    if segment.summary() != segments.summaries()[at] {
        let text = format!("segment {at} does not match the directory");
        report.find(PathRule::Summary, text);
        return None;
    }
    if segment.open != open {
        let text = format!(
            "the activations open at the beginning of segment {at} differ from those at the end \
             of the previous segment"
        );
        report.find(PathRule::Continuity, text);
        return None;
    }
    if segments.grammars().is_some() {
        match segments.load(at) {
            Ok(opened) if opened == segment => {}
            Ok(_) => report.find(
                PathRule::Grammar,
                format!("the opened grammar of segment {at} differs"),
            ),
            Err(error) => report.find(PathRule::Grammar, format!("segment {at}: {error}")),
        }
    }
    Some(segment)
}
