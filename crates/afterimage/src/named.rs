//! Opens a recorded program with its names and lines, for questions that need no values.

use afterimage_ids::{EntityRef, FuncId, OpId, OrigOffset};
use afterimage_present::{StepScene, Style, shell_word};
use afterimage_profile::location::{Form, Place, form, split_occurrence};
use afterimage_profile::{Line, OwnFunctions, Resolver, Source};
use afterimage_program::{InlinedFrame, NameError, Names, SourceMap};
use afterimage_replay::RecordingError;
use afterimage_replay::steps::Operators;
use afterimage_replay::whole_path::{FileSegments, Positions};
use anyhow::{Context, Result, bail};

use crate::Session;
use crate::text::pasted;

/// A recorded program with its names and lines.
#[derive(Clone, Copy)]
pub struct NamedProgram<'a> {
    pub session: &'a Session,
    pub names: &'a Names,
    pub source: &'a SourceMap<'a>,
    pub operators: &'a Operators<'a>,
    /// The functions that text shows.
    pub own: &'a OwnFunctions<'a>,
}

/// Reads the names and lines of a recorded program, and passes them to `ask`.
///
/// # Errors
/// Returns an error if `ask` fails.
pub fn with_names<R>(
    session: &Session,
    ask: impl FnOnce(NamedProgram<'_>) -> Result<R>,
) -> Result<R> {
    let source = session.source_map();
    let names = session.program_names();
    let operators = session.operators();
    let folded = session.folded(source);
    ask(NamedProgram {
        session,
        names,
        source,
        operators: &operators,
        own: &OwnFunctions::new(&folded, session.program(), names),
    })
}

/// Returns the number of inlined calls that are not entered yet at a moment before the operator at
/// `offset`, if a user named the moment as an arrival at a line. The line may have no other code
/// than the inlined calls that begin at the operator. Then the moment is in the function around
/// these calls.
pub(crate) fn calls_ahead(
    resolver: &Resolver<'_>,
    source: &SourceMap<'_>,
    text: &str,
    offset: OrigOffset,
) -> usize {
    let line = line_named(resolver, text);
    line.map_or(0, |line| calls_within(&source.inlined_frames(offset), line))
}

/// Returns the line that a text such as `parser.c:42#7` names, unless the text contains a column.
pub(crate) fn line_named(resolver: &Resolver<'_>, text: &str) -> Option<Line> {
    let place = split_occurrence(text).map_or(text, |split| split.0);
    if !matches!(form(place), Form::Line { column: None, .. }) {
        return None;
    }
    match resolver.location(place).ok()?.place {
        Place::Line(line, _) => Some(line),
        _ => None,
    }
}

/// Returns the frames at an operator, the innermost first, without the calls that are not entered
/// yet.
pub(crate) fn frames_around(
    source: &dyn Source,
    offset: OrigOffset,
    ahead: usize,
) -> Vec<InlinedFrame> {
    let mut frames = source.inlined_frames(offset);
    frames.drain(..ahead.min(frames.len().saturating_sub(1)));
    frames
}

/// Returns the number of frames inside the frame that is at a line. The frames are those at an
/// operator, the innermost first.
pub(crate) fn calls_within(frames: &[InlinedFrame], line: Line) -> usize {
    let is_there = |frame: &InlinedFrame| frame.location.map(Line::from) == Some(line);
    frames.iter().position(is_there).unwrap_or(0)
}

impl<'a> NamedProgram<'a> {
    /// Returns a resolver of places in the program.
    pub fn resolver(&self) -> Resolver<'a> {
        self.session.resolver(self.names, self.source)
    }

    /// Returns the operator at an offset of the original module, in the function executed at a time.
    ///
    /// # Errors
    /// Returns an error if the function has no such operator.
    pub(crate) fn operator_at(
        &self,
        function: FuncId,
        offset: OrigOffset,
        time: u64,
    ) -> Result<OpId> {
        let operators = self.operators.of(function)?;
        let found = operators.iter().position(|one| one.offset == offset);
        let found = found.with_context(|| {
            format!(
                "the operator at @{:#x} is not in {}, which is executed at t={time}",
                offset.0,
                self.names.short(function),
            )
        })?;
        Ok(OpId::new(found))
    }

    /// Returns a resolver of positions in the run.
    ///
    /// # Errors
    /// Returns an error if there is no path, or the path or the end of the run is damaged.
    pub fn positions(&self) -> Result<Positions<'a, FileSegments>, RecordingError> {
        self.session.positions(self.names, self.source)
    }

    /// Returns the data needed to show steps.
    pub fn scene(&self, style: Style) -> StepScene<'a> {
        StepScene {
            names: self.names,
            operators: self.operators,
            source: self.source,
            own: None,
            memories: self.session.program().memories,
            style,
        }
    }

    /// Like [`scene`](Self::scene), for text that leaves out library code.
    pub fn own_scene(&self, style: Style) -> StepScene<'a> {
        StepScene {
            own: Some(self.own),
            ..self.scene(style)
        }
    }

    /// Finds a defined function by the name that a user gives.
    ///
    /// # Errors
    /// Returns an error if there is no such function.
    pub fn function(&self, text: &str) -> Result<FuncId> {
        let found = self.names.find(text, self.source);
        if let Err(
            inlined @ NameError::Inlined {
                first: Some(line), ..
            },
        ) = &found
        {
            bail!(
                "{inlined}; its executions: afterimage values {} --at {}; its instructions: \
                 afterimage profile {0}",
                pasted(self.session.at()),
                shell_word(line)
            );
        }
        let function = found?;
        if self.session.program().function(function).is_none() {
            bail!(
                "{} is imported, so it is not in the path; see its callers",
                self.names.short(function)
            );
        }
        Ok(function)
    }
}
