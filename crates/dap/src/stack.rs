//! Shows the call stack, with library frames folded.

use std::io::Write;

use afterimage::debugger::StackFrame;
use afterimage_present::counted;
use anyhow::{Context, Result};
use serde_json::{Value, json};

use crate::debuggee::{Debuggee, position};
use crate::protocol::{Frame, OfFrame, Scope, StackTrace};
use crate::variables::Handle;

/// The number of activations to examine in addition to the requested ones, because some belong to
/// libraries.
const BEYOND: usize = 64;
/// The default number of frames.
const MOST: usize = 1000;

/// A frame that is shown.
#[derive(Clone, Debug)]
pub(crate) struct ShownFrame {
    pub frame: StackFrame,
    /// The number of library frames that it represents.
    pub folded: Option<usize>,
}

/// Folds adjacent library frames into one, and leaves out the innermost library frames. If all
/// frames are library frames, shows all.
fn folded(frames: Vec<StackFrame>) -> Vec<ShownFrame> {
    let is_own = |frame: &StackFrame| !frame.library;
    let has_own = frames.iter().any(is_own);
    let whole = |frame| ShownFrame {
        frame,
        folded: None,
    };
    if !has_own {
        return frames.into_iter().map(whole).collect();
    }
    let mut shown: Vec<ShownFrame> = Vec::new();
    for frame in frames {
        match (frame.library, shown.last_mut()) {
            (true, None) => {}
            (
                true,
                Some(ShownFrame {
                    folded: Some(count),
                    ..
                }),
            ) => *count += 1,
            (true, Some(_)) => shown.push(ShownFrame {
                frame,
                folded: Some(1),
            }),
            (false, _) => shown.push(whole(frame)),
        }
    }
    shown
}

impl<W: Write + Send + 'static> Debuggee<'_, '_, W> {
    /// Collects the frames to show, from at most `most` activations. Returns the number of
    /// activations not examined.
    fn look(&mut self, most: usize) -> Result<usize> {
        let (frames, open) = self.debugger.stack(self.at, most)?;
        let rest = open.saturating_sub(most);
        self.frames = if self.launch.library_frames {
            Vec::from_iter(frames.into_iter().map(|frame| ShownFrame {
                frame,
                folded: None,
            }))
        } else {
            folded(frames)
        };
        Ok(rest)
    }

    pub(crate) fn stack_trace(&mut self, wanted: &StackTrace) -> Result<Value> {
        let number = |wanted: Option<i64>| wanted.map_or(0, |n| usize::try_from(n).unwrap_or(0));
        let first = number(wanted.start_frame);
        let levels = match number(wanted.levels) {
            0 => MOST,
            levels => levels,
        };
        let rest = self.look(first.saturating_add(levels).saturating_add(BEYOND))?;
        let shown = self.frames.clone();
        let total = shown.len() + rest;
        let mut frames = Vec::new();
        for (number, ShownFrame { frame, folded }) in
            shown.into_iter().enumerate().skip(first).take(levels)
        {
            let id = number as u64 + 1;
            if let Some(count) = folded {
                frames.push(Frame {
                    id,
                    name: format!("[{} in library code]", counted(count as u64, "frame")),
                    presentation_hint: Some("label"),
                    ..Frame::default()
                });
                continue;
            }
            let source = frame.line.as_ref().map(|line| self.source(&line.path));
            let (line, column) = match &frame.line {
                Some(line) => (
                    self.numbering.line(line.line),
                    self.numbering.column(line.column),
                ),
                None => (0, 0),
            };
            frames.push(Frame {
                id,
                name: frame.name,
                source,
                line,
                column,
                instruction_pointer_reference: Some(format!("0x{:x}", frame.offset.0)),
                presentation_hint: frame.library.then_some("subtle"),
            });
        }
        Ok(json!({ "stackFrames": frames, "totalFrames": total }))
    }

    /// Returns a frame that was shown to the client, by default the innermost.
    pub(crate) fn frame(&mut self, id: Option<u64>) -> Result<StackFrame> {
        if self.frames.is_empty() {
            self.look(BEYOND)?;
        }
        let number = match id {
            None | Some(0) => Some(0),
            Some(id) => position(id),
        };
        let shown = number.and_then(|number| self.frames.get(number));
        let shown = shown.context("there is no such frame: the run has moved since")?;
        Ok(shown.frame.clone())
    }

    /// Returns the frame of an activation, or of a call inlined into it.
    pub(crate) fn frame_at(&mut self, number: usize, inlined: u32) -> Result<Option<StackFrame>> {
        if self.frames.is_empty() {
            self.look(BEYOND)?;
        }
        let mut frames = self.frames.iter().map(|shown| &shown.frame);
        let found = frames.find(|frame| (frame.number, frame.inlined) == (number, inlined));
        Ok(found.cloned())
    }

    pub(crate) fn scopes(&mut self, wanted: &OfFrame) -> Result<Value> {
        let frame = self.frame(Some(wanted.frame_id))?;
        let has_variables = self.debugger.variables().is_ok();
        let number = frame.number;
        let mut scopes = Vec::new();
        if has_variables {
            let inlined = frame.inlined;
            scopes.push(Scope {
                name: "Locals",
                presentation_hint: Some("locals"),
                variables_reference: self.handle(Handle::Locals { number, inlined }),
                expensive: false,
            });
            scopes.push(Scope {
                name: "Globals",
                presentation_hint: None,
                variables_reference: self.handle(Handle::Globals),
                expensive: true,
            });
        }
        scopes.push(Scope {
            name: "WebAssembly",
            presentation_hint: Some("registers"),
            variables_reference: self.handle(Handle::Wasm { number }),
            expensive: has_variables,
        });
        Ok(json!({ "scopes": scopes }))
    }
}
