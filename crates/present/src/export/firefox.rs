//! Writes calls over time in the processed format of the Firefox Profiler, version 62.
//!
//! A sample represents a stretch of blocks executed with one stack. Its weight is the number of
//! these blocks, so the weights add up to the number of executed blocks.

use std::collections::HashMap;
use std::io::Write;

use afterimage_ids::FuncId;
use afterimage_replay::whole_path::{Merging, Timeline, TimelineEvent};
use afterimage_wpp::Segments;
use serde_json::{Value, json};

use super::timeline::{CLOCK, TimelineHead, merged_name};
use crate::PresentError;
use crate::trace::unreadable;

/// The content of a frame of a stack.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Shown {
    Function(FuncId),
    Merged(Merging),
}

/// The columns of the format that are not constant.
#[derive(Default)]
struct Columns {
    strings: Vec<String>,
    /// Whether each frame represents merged calls. A frame has the same index as its function and
    /// its name.
    merged: Vec<bool>,
    frames: HashMap<Shown, usize>,
    stack_prefix: Vec<Option<usize>>,
    stack_frame: Vec<usize>,
    stacks: HashMap<(Option<usize>, usize), usize>,
    stack: Vec<Option<usize>>,
    time: Vec<f64>,
    weight: Vec<u64>,
}

impl Columns {
    fn frame(&mut self, shown: Shown, name: impl FnOnce() -> String) -> usize {
        let Self {
            frames,
            strings,
            merged,
            ..
        } = self;
        *frames.entry(shown).or_insert_with(|| {
            strings.push(name());
            merged.push(matches!(shown, Shown::Merged(_)));
            strings.len() - 1
        })
    }

    fn stack(&mut self, prefix: Option<usize>, frame: usize) -> usize {
        let next = self.stack_frame.len();
        let stack = *self.stacks.entry((prefix, frame)).or_insert(next);
        if stack == next {
            self.stack_prefix.push(prefix);
            self.stack_frame.push(frame);
        }
        stack
    }

    /// Adds a stretch of blocks executed with one stack.
    fn sample(&mut self, stack: Option<usize>, from: u64, blocks: u64) {
        if blocks > 0 {
            self.stack.push(stack);
            self.time.push(milliseconds(from));
            self.weight.push(blocks);
        }
    }
}

/// Converts blocks to the profiler's milliseconds. A block is displayed as a microsecond.
fn milliseconds(blocks: u64) -> f64 {
    blocks as f64 / 1000.0
}

/// Writes a timeline. Holds the whole timeline in memory, at about 60 bytes per call.
///
/// # Errors
/// Returns an error if `out` fails, or the path cannot be read.
pub fn firefox<S: Segments>(
    out: &mut dyn Write,
    head: &TimelineHead<'_>,
    timeline: &mut Timeline<'_, S>,
) -> Result<(), PresentError>
where
    S::Error: Send + Sync,
{
    let mut columns = Columns::default();
    let mut open: Vec<usize> = Vec::new();
    let mut at = head.window.first.saturating_sub(1);
    while let Some(event) = timeline.next_event().map_err(unreadable)? {
        let top = open.last().copied();
        match event {
            TimelineEvent::Begin { function, time } => {
                columns.sample(top, at, time - at);
                let name = || head.names.function(function).to_owned();
                let frame = columns.frame(Shown::Function(function), name);
                open.push(columns.stack(top, frame));
                at = time;
            }
            TimelineEvent::End { time } => {
                columns.sample(top, at, time - at);
                open.pop();
                at = time;
            }
            TimelineEvent::Merged {
                why,
                from,
                to,
                blocks,
                left_out,
                ..
            } => {
                columns.sample(top, at, from - at);
                // Show the gaps after the merged calls. The caller's own blocks follow.
                let known = blocks - left_out;
                for (why, from, blocks) in [
                    (why, from, known),
                    (Merging::LeftOut, from + known, left_out),
                ] {
                    if blocks > 0 {
                        let name = || merged_name(why, head.limits);
                        let frame = columns.frame(Shown::Merged(why), name);
                        let stack = columns.stack(top, frame);
                        columns.sample(Some(stack), from, blocks);
                    }
                }
                columns.sample(top, from + blocks, to - from - blocks);
                at = to;
            }
        }
    }
    serde_json::to_writer(&mut *out, &profile(head, &columns))?;
    writeln!(out)?;
    Ok(())
}

fn profile(head: &TimelineHead<'_>, columns: &Columns) -> Value {
    let frames = columns.strings.len();
    let all = |value: Value| vec![value; frames];
    let numbers: Vec<usize> = (0..frames).collect();
    let category = |&merged: &bool| if merged { 2 } else { 1 };
    let categories: Vec<u32> = columns.merged.iter().map(category).collect();
    let from = milliseconds(head.window.first.saturating_sub(1));
    let to = milliseconds(head.window.last);
    json!({
        "meta": {
            "categories": [
                {"name": "Other", "color": "grey", "subcategories": ["Other"]},
                {"name": "WebAssembly", "color": "blue", "subcategories": ["Other"]},
                {"name": "Merged calls", "color": "grey", "subcategories": ["Other"]},
            ],
            "debug": false,
            "extensions": {"baseURL": [], "id": [], "length": 0, "name": []},
            "interval": milliseconds(1),
            "markerSchema": [],
            "pausedRanges": [],
            "preprocessedProfileVersion": 62,
            "processType": 0,
            "product": format!("{} (time: {CLOCK}; samples: executed basic blocks)", head.program),
            "sampleUnits": {"eventDelay": "ms", "threadCPUDelta": "µs", "time": "ms"},
            "sourceCodeIsNotOnSearchfox": true,
            "startTime": 0.0,
            "symbolicated": true,
            "usesOnlyOneStackType": true,
            "version": 24,
        },
        "counters": [],
        "libs": [],
        "pages": [],
        "profilerOverhead": [],
        "shared": {
            "frameTable": {
                "length": frames,
                "address": all(json!(-1)),
                "category": categories,
                "column": all(Value::Null),
                "func": numbers,
                "inlineDepth": all(json!(0)),
                "innerWindowID": all(json!(0)),
                "line": all(Value::Null),
                "nativeSymbol": all(Value::Null),
                "subcategory": all(json!(0)),
            },
            "funcTable": {
                "length": frames,
                "columnNumber": all(Value::Null),
                "isJS": all(json!(false)),
                "lineNumber": all(Value::Null),
                "name": numbers,
                "relevantForJS": all(json!(false)),
                "resource": all(json!(-1)),
                "source": all(Value::Null),
            },
            "nativeSymbols": {"length": 0, "address": [], "functionSize": [], "libIndex": [], "name": []},
            "resourceTable": {"length": 0, "host": [], "lib": [], "name": [], "type": []},
            "sources": {
                "length": 0, "filename": [], "id": [], "sourceMapURL": [], "startColumn": [], "startLine": [],
            },
            "stackTable": {
                "length": columns.stack_frame.len(),
                "frame": columns.stack_frame,
                "prefix": columns.stack_prefix,
            },
            "stringArray": columns.strings,
        },
        "threads": [{
            "isMainThread": true,
            "markers": {
                "length": 0, "category": [], "data": [], "endTime": [], "name": [], "phase": [], "startTime": [],
            },
            "name": head.program,
            "pausedRanges": [],
            "pid": "1",
            "processName": head.program,
            "processShutdownTime": to,
            "processStartupTime": from,
            "processType": "default",
            "registerTime": from,
            "samples": {
                "length": columns.stack.len(),
                "stack": columns.stack,
                "time": columns.time,
                "weight": columns.weight,
                "weightType": "samples",
            },
            "showMarkersInTimeline": false,
            "tid": "1",
            "unregisterTime": to,
        }],
    })
}
