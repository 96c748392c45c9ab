//! Defines a module with its parsed form.

use crate::{Names, ParseError, Program, SourceMap};

/// The bytes of a module, and the program parsed from them.
#[derive(Debug)]
pub struct Module {
    /// The module in binary form.
    pub bytes: Vec<u8>,
    /// The program parsed from these bytes.
    pub program: Program,
}

impl Module {
    /// Parses a module in binary form. Takes near-linear time in the module's size.
    ///
    /// # Errors
    /// Returns an error if the bytes are not a supported module.
    pub fn parse(bytes: Vec<u8>) -> Result<Self, ParseError> {
        let program = Program::parse(&bytes)?;
        Ok(Self { bytes, program })
    }

    /// Returns the names of the module's functions.
    pub fn names(&self, source: &SourceMap<'_>) -> Names {
        Names::build(&self.program, &self.bytes, source)
    }

    /// Like [`names`](Self::names), but builds the source map only if needed.
    pub fn names_with<'s>(&self, source: &dyn Fn() -> &'s SourceMap<'s>) -> Names {
        Names::build_with(&self.program, &self.bytes, source)
    }
}
