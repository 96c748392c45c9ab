//! Builds the call stack at a position, including inlined functions.

use afterimage_ids::{FuncId, OrigOffset};
use afterimage_profile::{Source, SourceLine};
use afterimage_program::{Location, demangle};
use afterimage_replay::state::{Activation, Call, calls};
use anyhow::Result;

use super::{Debugger, Position};
use crate::named::frames_around;
use crate::source::is_library;

/// A frame of the stack: an activation, or a function that was inlined into its code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StackFrame {
    /// The number of the activation, from 0 for the innermost.
    pub number: usize,
    /// The number of inlined calls that lead to the frame: 0 for the activation itself.
    pub inlined: u32,
    /// The module's function that contains the frame's code.
    pub function: FuncId,
    /// The name of the frame's function.
    pub name: String,
    /// The frame's current line. In each frame except the innermost, this is the line of the call
    /// to the next inner frame.
    pub line: Option<SourceLine>,
    /// The operator that the activation is about to execute.
    pub offset: OrigOffset,
    /// The operator's number in the function.
    pub op: u32,
    /// The time at which the activation began.
    pub entered: u64,
    /// The time of the block that the activation is executing.
    pub time: u64,
    /// Whether the frame's code is not the user's own.
    pub library: bool,
}

impl StackFrame {
    /// Returns the position of the activation.
    pub fn position(&self) -> Position {
        Position {
            time: self.time,
            op: self.op,
            ahead: 0,
        }
    }
}

impl Debugger<'_> {
    /// Returns the frames of the innermost `most` activations, innermost first, and the number of
    /// all open activations. An activation has one frame for itself, and one for each function
    /// inlined at its position. O(activations).
    ///
    /// # Errors
    /// Returns an error if there is no such position, or the path cannot be read.
    pub fn stack(&self, at: Position, most: usize) -> Result<(Vec<StackFrame>, usize)> {
        let (calls, open) = calls(&self.values, at.time, most)?;
        let mut frames = Vec::new();
        for (number, call) in calls.iter().enumerate() {
            let (op, offset) = match number {
                0 => (Self::op(at), self.place(at)?.1),
                _ => {
                    let waits = Activation::at_call(&self.values, &self.bodies, call.time)?;
                    (waits.op, waits.offset)
                }
            };
            let first = frames.len();
            let ahead = if number == 0 { at.ahead } else { 0 };
            self.frames_of((number, ahead), call, (op.as_u32(), offset), &mut frames);
            if ahead > 0 {
                continue;
            }
            // Some operators take their line from the previous operator.
            let known = self.program.operators.get(call.function, op)?;
            let line = known.and_then(|known| known.position);
            if let (Some(frame), Some(line)) = (frames.get_mut(first), line) {
                frame.line = Some(self.program.source.line(line));
            }
        }
        Ok((frames, open))
    }

    fn frames_of(
        &self,
        (number, ahead): (usize, u32),
        call: &Call,
        (op, offset): (u32, OrigOffset),
        into: &mut Vec<StackFrame>,
    ) {
        let source = self.program.source;
        let function_name = self.program.names.function(call.function);
        let mut found = frames_around(source, offset, ahead as usize);
        let outermost = found.pop();
        let is_shown = |at: Location| self.folded.shows(at.file);
        let count = found.len() as u32;
        let frame = |inlined, name, location: Option<Location>, library| StackFrame {
            number,
            inlined,
            function: call.function,
            name,
            line: location.map(|at| source.line(at)),
            offset,
            op,
            entered: call.entered,
            time: call.time,
            library,
        };
        for (inside, one) in (0..).zip(found) {
            let name = one.function.map(|raw| demangle(&raw).unwrap_or(raw));
            let name = name.unwrap_or_else(|| function_name.to_owned());
            let library = one.location.is_none_or(|at| !is_shown(at));
            into.push(frame(count - inside, name, one.location, library));
        }
        let location = outermost.and_then(|frame| frame.location);
        let library = match location {
            Some(at) => !is_shown(at),
            None => is_library(self.folded, offset, (function_name, None)),
        };
        into.push(frame(0, function_name.to_owned(), location, library));
    }
}
