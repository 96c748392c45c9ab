//! Opens a recording with its values, and describes its places, for all questions that explain an
//! execution or a value.

use std::cell::{OnceCell, RefCell};
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::thread;

use afterimage_analyses::why::{Spot, Walk};
use afterimage_ids::{FuncId, OpId, OrigOffset};
use afterimage_present::document::objects::Function;
use afterimage_present::{InlinedCall, WhyPlace};
use afterimage_profile::{CodeFilter, Folded, ProfileError, Source, SourceLine, inlined_names};
use afterimage_program::{InlinedFrame, Location, Names, SourceMap, demangle};
use afterimage_replay::state::{Activation, Bodies, calls};
use afterimage_replay::steps::Operators;
use afterimage_replay::values::{Controllers, Executions, HostReads, RecordedValues, Types};
use anyhow::{Context, Result};

use crate::Session;
use crate::source::is_library;
use crate::sources::SourceLines;

/// A recording with everything needed to explain it.
pub struct Scene<'s, 'a> {
    pub traced: &'a Session,
    pub names: &'a Names,
    source: &'s dyn Fn() -> &'a SourceMap<'a>,
    pub types: Types<'a>,
    pub values: &'s RecordedValues<'a>,
    pub host: HostReads<'s, 'a>,
    pub controllers: Controllers<'a>,
    operators: OnceCell<Operators<'a>>,
    folded: OnceCell<Folded<'a>>,
    mine: OnceCell<Folded<'a>>,
    counted: RefCell<HashMap<(FuncId, OpId), Executions<'a>>>,
    /// The numbers of executions that have already been counted.
    numbers: RefCell<HashMap<(FuncId, OpId, u64), u64>>,
    files: RefCell<HashMap<String, Option<SourceLines>>>,
    bodies: OnceCell<Bodies<'a>>,
    /// For activations outside the user's own code, the innermost call in the user's own code. The
    /// key is the time at which the activation began.
    called: RefCell<HashMap<u64, Option<WhyPlace>>>,
}

/// The maximum number of activations to search for the user's own code.
const STACK: usize = 64;

/// Opens a recording with all data that explaining needs, and passes it to `ask`. The values must
/// exist.
///
/// # Errors
/// Returns an error if the recording is damaged, or `ask` fails.
pub fn explain<R>(traced: &Session, ask: impl FnOnce(&Scene<'_, '_>) -> Result<R>) -> Result<R> {
    let source = traced.source_map();
    let values = traced.values()?;
    let source = || source;
    ask(&Scene::new((traced, &source), &values)?)
}

/// Like [`explain`], but `build` builds the values if they do not exist yet. Another thread reads
/// the line tables in the meantime.
///
/// # Errors
/// Returns the same errors as [`explain`], and an error if `build` fails.
pub fn explain_with<R>(
    session: &Session,
    build: impl for<'r> FnOnce(&'r Session) -> Result<RecordedValues<'r>>,
    ask: impl FnOnce(&Scene<'_, '_>) -> Result<R>,
) -> Result<R> {
    let source = || session.source_map();
    thread::scope(|scope| {
        // Without a second thread, the first code that needs the line tables reads them.
        let _ = thread::Builder::new().spawn_scoped(scope, source);
        session.ensure_path()?;
        session.stops()?;
        let values = build(session)?;
        ask(&Scene::new((session, &source), &values)?)
    })
}

/// Like [`explain`], for two recordings.
///
/// # Errors
/// Returns the same errors as [`explain`].
pub fn explain_both<R>(
    [a, b]: [&Session; 2],
    ask: impl for<'s, 'a> FnOnce([&Scene<'s, 'a>; 2]) -> Result<R>,
) -> Result<R> {
    let sources = [a.source_map(), b.source_map()];
    let values = [a.values()?, b.values()?];
    let (source_a, source_b) = (|| sources[0], || sources[1]);
    let a = Scene::new((a, &source_a), &values[0])?;
    let b = Scene::new((b, &source_b), &values[1])?;
    ask([&a, &b])
}

impl<'s, 'a> Scene<'s, 'a> {
    /// Opens a scene.
    ///
    /// # Errors
    /// Returns an error if the recording is damaged.
    pub fn new(
        (traced, source): (&'a Session, &'a dyn Fn() -> &'a SourceMap<'a>),
        values: &'s RecordedValues<'a>,
    ) -> Result<Self> {
        let loaded = traced.module();
        let run = traced.run_from_checkpoints()?;
        Ok(Self {
            traced,
            names: traced.program_names(),
            source,
            types: Types::new(&loaded.program, &loaded.bytes),
            values,
            host: HostReads::new(values, run, traced.newest()),
            controllers: Controllers::new(&loaded.program),
            operators: OnceCell::new(),
            folded: OnceCell::new(),
            mine: OnceCell::new(),
            counted: RefCell::default(),
            numbers: RefCell::default(),
            files: RefCell::default(),
            bodies: OnceCell::new(),
            called: RefCell::default(),
        })
    }

    fn bodies(&self) -> &Bodies<'a> {
        let loaded = self.traced.module();
        let bodies = || Bodies::new(&loaded.program, &loaded.bytes);
        self.bodies.get_or_init(bodies)
    }

    /// Returns the source map. Waits until the line tables are read.
    pub fn source(&self) -> &'a SourceMap<'a> {
        (self.source)()
    }

    /// Returns a source map that attributes inlined library code to the user's own lines into which
    /// it was inlined.
    pub fn folded(&self) -> &Folded<'a> {
        let folded = || self.traced.folded(self.source());
        self.folded.get_or_init(folded)
    }

    fn operators(&self) -> &Operators<'a> {
        self.operators.get_or_init(|| self.traced.operators())
    }

    /// Returns a walk that follows values back through the run.
    pub fn walk(&self) -> Walk<'s, 'a> {
        Walk {
            values: self.values,
            program: self.traced.program(),
        }
    }

    /// Returns the number, from 1, of an operator's execution at a time.
    pub fn number(&self, function: FuncId, op: OpId, time: u64) -> Result<u64> {
        if let Some(&known) = self.numbers.borrow().get(&(function, op, time)) {
            return Ok(known);
        }
        let mut counted = self.counted.borrow_mut();
        let all = match counted.entry((function, op)) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) => {
                let program = self.traced.program();
                new.insert(Executions::of(self.values, program, function, op)?)
            }
        };
        Ok(all.by(time)?)
    }

    /// Records the number of an execution that was found by this number.
    pub fn numbered(&self, spot: Spot, number: u64) {
        let mut numbers = self.numbers.borrow_mut();
        numbers.insert((spot.function, spot.op, spot.time), number);
    }

    /// Returns the name of an operator's execution at a time, such as `@0x1f3#7`.
    pub fn named(&self, (function, op, time): (FuncId, OpId, u64)) -> Result<String> {
        let number = self.number(function, op, time)?;
        Ok(format!("{}#{number}", self.operator(function, op)?.at))
    }

    /// Describes an operator in an execution.
    pub fn place(&self, spot: Spot) -> Result<WhyPlace> {
        let number = self.number(spot.function, spot.op, spot.time)?;
        let mut place = self.operator(spot.function, spot.op)?;
        place.at = format!("{}#{number}", place.at);
        place.t = spot.time;
        if place.library {
            place.called_from = self.called_from(spot.time)?.map(Box::new);
        }
        Ok(place)
    }

    /// Finds the innermost open call in the user's own code, for library code executed at a time.
    /// Searches the innermost [`STACK`] activations.
    fn called_from(&self, time: u64) -> Result<Option<WhyPlace>> {
        let mut cursor = self.values.path().cursor();
        cursor.seek(time)?;
        let Some(innermost) = cursor.innermost()? else {
            return Ok(None);
        };
        // Consecutive steps mostly belong to the same activation.
        if let Some(known) = self.called.borrow().get(&innermost.entered) {
            return Ok(known.clone());
        }
        let (open, _) = calls(self.values, time, STACK)?;
        let mut found = None;
        for call in open.iter().skip(1) {
            let waits = Activation::at_call(self.values, self.bodies(), call.time)?;
            let place = self.operator(waits.function, waits.op)?;
            if !place.library {
                found = Some(WhyPlace {
                    t: call.time,
                    ..place
                });
                break;
            }
        }
        let mut called = self.called.borrow_mut();
        Ok(called.entry(innermost.entered).or_insert(found).clone())
    }

    /// Describes an operator, without an execution.
    pub fn operator(&self, function: FuncId, op: OpId) -> Result<WhyPlace> {
        let found = self.operators().get(function, op)?;
        let found = found.context("an operator is not in the program")?;
        let (mut source, mut around, mut text) = (None, None, None);
        if let Some(position) = found.position {
            source = Some(self.source().line(position));
            let is_own = self.folded().shows(position.file);
            let own = self.folded().around(found.offset).into_iter().next();
            if let (false, Some(own)) = (is_own, own) {
                (around, text) = (Some(self.source().line(own)), self.text(own));
            } else {
                text = self.text(position);
                if text.is_none()
                    && let Some((call, its)) = self.around(found.offset)
                {
                    (around, text) = (Some(call), Some(its));
                }
            }
        }
        Ok(WhyPlace {
            function: Function::new(self.names, function),
            source,
            around,
            text,
            operator: found.name.to_string(),
            at: format!("@{}", found.offset),
            t: 0,
            library: is_library(
                self.folded(),
                found.offset,
                (self.names.function(function), found.position),
            ),
            called_from: None,
        })
    }

    /// Whether an operator is in library code, regardless of the code that the user wants to see.
    ///
    /// # Errors
    /// Returns an error if the module's bytes do not match the program.
    pub fn is_library(&self, function: FuncId, op: OpId) -> Result<bool, ProfileError> {
        let mine = || Folded::new(self.source(), &CodeFilter::Mine);
        let mine = self.mine.get_or_init(mine);
        let name = self.names.function(function);
        let found = self.operators().get(function, op)?;
        Ok(found.is_some_and(|found| {
            !mine.shows_function(name, found.position) && mine.around(found.offset).is_empty()
        }))
    }

    /// Returns the source position of an operator.
    pub fn position(&self, function: FuncId, op: OpId) -> Result<Option<Location>> {
        let found = self.operators().get(function, op)?;
        Ok(found.and_then(|found| found.position))
    }

    /// Returns the source line of an offset in the module.
    pub fn located(&self, offset: OrigOffset) -> Option<SourceLine> {
        let source = self.source();
        source.locate(offset).map(|at| source.line(at))
    }

    /// Returns the source name of an operator's function, or of the innermost function that was
    /// inlined there.
    pub fn written_in(&self, function: FuncId, op: OpId) -> Result<Option<String>> {
        let Some(found) = self.operators().get(function, op)? else {
            return Ok(None);
        };
        let frames = self.source().written_frames(found.offset);
        Ok(frames.into_iter().next().and_then(|frame| frame.function))
    }

    /// Returns the functions inlined at an operator, the innermost first.
    pub fn inlined(&self, function: FuncId, op: OpId) -> Result<Vec<String>> {
        let found = self.operators().get(function, op)?;
        Ok(found.map_or_else(Vec::new, |found| inlined_names(self.source(), found.offset)))
    }

    /// Among the calls inlined at an operator, returns the call to the function that contains a
    /// line. Returns `None` if the line is in the function that the module defines.
    pub fn inlined_with(
        &self,
        (function, op): (FuncId, OpId),
        line: &SourceLine,
    ) -> Result<Option<InlinedCall>> {
        let Some(found) = self.operators().get(function, op)? else {
            return Ok(None);
        };
        let source = self.source();
        let line_of = |frame: &InlinedFrame| Some(source.line(frame.location?));
        let mut frames = source.inlined_frames(found.offset).into_iter();
        let within = frames.find(|frame| line_of(frame).as_ref() == Some(line));
        let mut callers = frames.peekable();
        let (Some(within), Some(_)) = (within, callers.peek()) else {
            return Ok(None);
        };
        let shown = |frame: &InlinedFrame| {
            let at = frame.location?;
            self.folded().shows(at.file).then(|| source.line(at))
        };
        let called_from = callers.find_map(|frame| shown(&frame));
        Ok(within.function.map(|raw| InlinedCall {
            function: demangle(&raw).unwrap_or(raw),
            called_from,
        }))
    }

    /// Returns the source file of a function.
    pub fn path(&self, function: FuncId) -> Result<Option<&str>> {
        let Some(known) = self.traced.program().function(function) else {
            return Ok(None);
        };
        let operators = self.operators().of(function)?;
        let first = operators.iter().find_map(|operator| operator.position);
        let found = self.source().declared(known.body.start).or(first);
        Ok(found.map(|found| self.source().path(found.file)))
    }

    /// Returns the line of the innermost call around inlined code, among the calls with available
    /// source. The text of the line comes with it.
    fn around(&self, offset: OrigOffset) -> Option<(SourceLine, String)> {
        let frames = self.source().inlined_frames(offset);
        let calls = frames.iter().skip(1).filter_map(|frame| frame.location);
        calls
            .filter_map(|call| Some((self.source().line(call), self.text(call)?)))
            .next()
    }

    fn text(&self, position: Location) -> Option<String> {
        let Location { file, line, .. } = position;
        let path = self.source().path(file);
        let mut files = self.files.borrow_mut();
        let lines = files
            .entry(path.to_owned())
            .or_insert_with(|| self.traced.sources().lines(path));
        let text = lines.as_mut()?.line(line)?;
        Some(text.trim().to_owned())
    }
}
