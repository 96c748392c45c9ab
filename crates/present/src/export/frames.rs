//! What the frames of stacks are called, and where they are declared.

use afterimage_profile::Source;
use afterimage_program::{Location, Names, Program};
use afterimage_replay::paths::{Frame, Inlining};

/// What the frames of a tree of calling contexts are called, and where they are declared.
#[derive(Clone, Copy)]
pub struct Frames<'a> {
    /// The program.
    pub program: &'a Program,
    /// The names of its functions.
    pub names: &'a Names,
    /// Their lines.
    pub source: &'a dyn Source,
    /// What was inlined into them.
    pub inlining: &'a Inlining,
}

impl<'a> Frames<'a> {
    /// The name that is shown.
    pub fn name(&self, frame: Frame) -> &'a str {
        match frame {
            Frame::Host => "[host]",
            Frame::Function(function) => self.names.function(function),
            Frame::Inlined(inlinee) => &self.inlining.function(inlinee).name,
        }
    }

    /// Where the function is declared.
    pub fn declared(&self, frame: Frame) -> Option<Location> {
        match frame {
            Frame::Host => None,
            Frame::Function(function) => {
                let function = self.program.function(function)?;
                self.source.declared(function.body.start)
            }
            Frame::Inlined(inlinee) => self.inlining.function(inlinee).declared,
        }
    }

    /// A place in the function: where it is declared, if the debug information says so.
    pub fn place(&self, frame: Frame) -> Option<Location> {
        let place = match frame {
            Frame::Inlined(inlinee) => self.inlining.function(inlinee).place,
            Frame::Host | Frame::Function(_) => None,
        };
        self.declared(frame).or(place)
    }

    /// The linkage name, or the one that is shown.
    pub(super) fn raw(&self, frame: Frame) -> &'a str {
        match frame {
            Frame::Host => "[host]",
            Frame::Function(function) => {
                let raw = self.names.raw(function);
                raw.unwrap_or_else(|| self.names.function(function))
            }
            Frame::Inlined(inlinee) => &self.inlining.function(inlinee).raw,
        }
    }

    /// Where the code of a function begins that the module defines, in the original module.
    pub(super) fn address(&self, frame: Frame) -> u32 {
        match frame {
            Frame::Function(function) => {
                let function = self.program.function(function);
                function.map_or(0, |function| function.body.start.0)
            }
            Frame::Host | Frame::Inlined(_) => 0,
        }
    }
}
