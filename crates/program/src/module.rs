//! A module, parsed.

use crate::{Names, ParseError, Program, SourceMap};

/// A module: its bytes, and the program that they mean.
#[derive(Debug)]
pub struct Module {
    /// The module in binary form.
    pub bytes: Vec<u8>,
    /// What it means.
    pub program: Program,
}

impl Module {
    /// Parses a module in binary form. Near-linear in its size.
    ///
    /// # Errors
    /// If it is none.
    pub fn parse(bytes: Vec<u8>) -> Result<Self, ParseError> {
        let program = Program::parse(&bytes)?;
        Ok(Self { bytes, program })
    }

    /// The names of its functions.
    pub fn names(&self, source: &SourceMap<'_>) -> Names {
        Names::build(&self.program, &self.bytes, source)
    }

    /// The same, where the source map may not be there yet.
    pub fn names_with<'s>(&self, source: &dyn Fn() -> &'s SourceMap<'s>) -> Names {
        Names::build_with(&self.program, &self.bytes, source)
    }
}
