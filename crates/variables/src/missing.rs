//! Explains why debug information is missing.

use std::sync::PoisonError;

use afterimage_ids::OrigOffset;
use afterimage_program::NoDebug;

use crate::debug::{Debug, Next};
use crate::sections::Sections;
use crate::{DebugError, Variables};

/// Returns the reason why a module has no `.debug_info`.
pub(crate) fn without(sections: &Sections<'_>) -> DebugError {
    DebugError::None(NoDebug::of(|name| sections.custom(name)))
}

/// The maximum number of characters of a name in a message.
const LONGEST: usize = 200;

fn shown(name: &str) -> String {
    let shown = name.chars().take(LONGEST).flat_map(char::escape_debug);
    shown.collect()
}

/// Whether a unit belongs to the compiler's runtime library, LLVM's or Rust's. Distributions build
/// this library with line information only.
fn is_runtime(unit: &str) -> bool {
    ["compiler-rt/lib/builtins/", "compiler_builtins"]
        .iter()
        .any(|library| unit.contains(library))
}

impl Variables<'_> {
    /// Returns the reason why a part of the program has no variables, if there is such a part. Its
    /// debug information is elsewhere, or does not describe variables.
    pub fn lacks(&self) -> Option<DebugError> {
        let elsewhere = NoDebug::of(|name| self.debug.sections.custom(name));
        if elsewhere != NoDebug::Nowhere {
            return Some(DebugError::None(elsewhere));
        }
        let units = || 0..self.debug.units();
        let split = units().find_map(|unit| self.debug.separate(unit));
        let split = split.map(|file| DebugError::Split { file });
        // Users do not query variables of the compiler's own runtime library.
        let mut only_lines = units().filter_map(|unit| match self.missing(unit) {
            Some(DebugError::OnlyLines { unit }) if !is_runtime(&unit) => Some(unit),
            _ => None,
        });
        let some = || {
            let first = only_lines.next()?;
            Some(match only_lines.count() {
                0 => DebugError::OnlyLines { unit: first },
                more => DebugError::SomeOnlyLines {
                    units: more + 1,
                    of: self.debug.units(),
                    first,
                },
            })
        };
        split.or_else(some)
    }

    /// Returns the error for functions without debug information, if there are any.
    pub(crate) fn undescribed(&self) -> Option<DebugError> {
        let bodies = self.debug.sections.bodies().iter();
        let functions = bodies.filter(|body| self.index().function(body).is_none());
        let functions = functions.count();
        (functions > 0).then_some(DebugError::Undescribed { functions })
    }

    /// Returns the reason why a unit describes no variables, if it describes none.
    pub(crate) fn missing(&self, unit: u32) -> Option<DebugError> {
        let mut known = self.missing.lock().unwrap_or_else(PoisonError::into_inner);
        let found = known.entry(unit);
        found.or_insert_with(|| self.debug.missing(unit)).clone()
    }
}

impl Debug<'_> {
    /// Returns the reason why a unit describes no variables at all, if it describes none.
    pub(crate) fn missing(&self, unit: u32) -> Option<DebugError> {
        if let Some(file) = self.separate(unit) {
            return Some(DebugError::Split { file });
        }
        let name = self.unit(unit).name.unwrap_or_default();
        let unit_name = || shown(&name.to_string_lossy());
        self.is_only_lines(unit)
            .then(|| DebugError::OnlyLines { unit: unit_name() })
    }

    /// Returns the file with the entries of a unit if the module contains only the unit's skeleton.
    pub(crate) fn separate(&self, unit: u32) -> Option<String> {
        let unit = self.unit(unit);
        let file = unit.dwo_name().ok()??;
        let file = unit.attr_string(file).ok()?;
        Some(shown(&file.to_string_lossy()))
    }

    /// Whether a unit names only the functions to which inlined lines belong. Such a unit has no
    /// types, variables or frames.
    fn is_only_lines(&self, unit: u32) -> bool {
        let mut only_lines = true;
        let walked = self.walk(
            unit,
            None,
            |_| true,
            |_, entry| {
                only_lines &= match entry.tag {
                    gimli::DW_TAG_compile_unit
                    | gimli::DW_TAG_partial_unit
                    | gimli::DW_TAG_namespace
                    | gimli::DW_TAG_lexical_block
                    | gimli::DW_TAG_inlined_subroutine => true,
                    gimli::DW_TAG_subprogram => entry.value(gimli::DW_AT_frame_base).is_none(),
                    _ => false,
                };
                if only_lines {
                    Ok(Next::Into)
                } else {
                    // One such entry suffices to decide.
                    Err(DebugError::TooMuch { what: "entries" })
                }
            },
        );
        only_lines && walked.is_ok()
    }

    /// Returns the unit whose code contains an offset, according to its first entry.
    pub(crate) fn unit_at(&self, at: OrigOffset) -> Option<u32> {
        (0..self.units()).find(|&unit| {
            let first = self.first(unit).and_then(|entry| self.code(&entry).ok()?);
            first.is_some_and(|code| code.iter().any(|range| range.contains(&at)))
        })
    }
}
