//! Finds the names and declarations of the frames of stacks.

use afterimage_profile::Source;
use afterimage_program::{Location, Names, Program};
use afterimage_replay::whole_path::{Frame, Inlining};

/// The names and declarations of the frames in a tree of calling contexts.
#[derive(Clone, Copy)]
pub struct Frames<'a> {
    /// The program.
    pub program: &'a Program,
    /// The names of its functions.
    pub names: &'a Names,
    /// The source positions of the code.
    pub source: &'a dyn Source,
    /// The functions that were inlined into the program's functions.
    pub inlining: &'a Inlining,
}

impl<'a> Frames<'a> {
    /// Returns the name that is shown.
    pub fn name(&self, frame: Frame) -> &'a str {
        match frame {
            Frame::Host => "[host]",
            Frame::Function(function) => self.names.function(function),
            Frame::Inlined(inlinee) => &self.inlining.function(inlinee).name,
            Frame::Line(_) => "[line]",
        }
    }

    /// Returns the place of the function's declaration.
    pub fn declared(&self, frame: Frame) -> Option<Location> {
        match frame {
            Frame::Host | Frame::Line(_) => None,
            Frame::Function(function) => {
                let function = self.program.function(function)?;
                self.source.declared(function.body.start)
            }
            Frame::Inlined(inlinee) => self.inlining.function(inlinee).declared,
        }
    }

    /// Returns the place of a frame: the declaration of a function, if known, or the line of a
    /// frame that is a line.
    pub fn place(&self, frame: Frame) -> Option<Location> {
        let place = match frame {
            Frame::Inlined(inlinee) => self.inlining.function(inlinee).place,
            Frame::Line(line) => Some(Location {
                file: line.file,
                line: line.number,
                column: 0,
            }),
            Frame::Host | Frame::Function(_) => None,
        };
        self.declared(frame).or(place)
    }

    /// Returns the linkage name or, if there is none, the shown name.
    pub(super) fn raw(&self, frame: Frame) -> &'a str {
        match frame {
            Frame::Host => "[host]",
            Frame::Function(function) => {
                let raw = self.names.raw(function);
                raw.unwrap_or_else(|| self.names.function(function))
            }
            Frame::Inlined(inlinee) => &self.inlining.function(inlinee).raw,
            Frame::Line(_) => "[line]",
        }
    }

    /// Returns the offset in the original module of a defined function's code, or 0 for another
    /// frame.
    pub(super) fn address(&self, frame: Frame) -> u32 {
        match frame {
            Frame::Function(function) => {
                let function = self.program.function(function);
                function.map_or(0, |function| function.body.start.0)
            }
            Frame::Host | Frame::Inlined(_) | Frame::Line(_) => 0,
        }
    }
}
