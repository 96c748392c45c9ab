//! Finds where a step by line ends, and the variables that are known there.
//!
//! A step's changes are read when the next step begins. At that moment, variables of a block that
//! the step left are no longer in scope. Variables of a block that it entered are in scope before
//! their declarations have run. So the scope at the step's last operator decides.

use std::cell::RefCell;
use std::collections::{HashMap, VecDeque};
use std::rc::Rc;

use afterimage_ids::{BlockId, EntityRef, FuncId, OpId, OrigOffset};
use afterimage_present::ChangedVariable;
use afterimage_profile::body::decode;
use afterimage_profile::lines::line_of;
use afterimage_profile::walk::positions;
use afterimage_profile::{Folded, Line, Source};
use afterimage_program::{Program, SourceMap};
use afterimage_replay::state::{
    Activation, Contents, DebugError, FunctionScopes, InScope, Limits, Moment, Shown, ShownObject,
    StateError, Variable, Variables, Written,
};
use afterimage_replay::steps::{LineStep, Run};
use afterimage_replay::values::Bits;
use afterimage_replay::whole_path::FileSegments;
use anyhow::{Context, Result};
use wasmparser::Operator;

use super::bytes::Bytes;

/// The end of a step.
#[derive(Clone, Debug)]
pub(super) struct StepEnd {
    /// The offset of the step's last operator with a line.
    at: OrigOffset,
    /// The locals that this operator and the operators after it write. The locations at this
    /// operator do not describe their contents after the step.
    written: Vec<u32>,
}

/// The operators of a function.
type Code = Rc<[CodeOperator]>;

struct CodeOperator {
    offset: OrigOffset,
    has_line: bool,
    /// The local that it writes.
    written: Option<u32>,
}

/// Finds the ends of steps.
#[derive(Default)]
pub(super) struct StepEnds {
    known: RefCell<HashMap<FuncId, Code>>,
}

impl StepEnds {
    /// Returns the end of the activation's previous step. Returns `None` if there is no previous
    /// step. O(operators of the function) on first use, then O(operators executed without a line).
    pub(super) fn before(
        &self,
        run: Run<'_, FileSegments>,
        source: &dyn Source,
        step: &LineStep,
    ) -> Result<Option<StepEnd>> {
        let code = self.code((run.program, run.module), source, step.function)?;
        let function = run.program.function(step.function);
        let blocks = &function.context("a line is in no function")?.cfg.blocks;
        let mut written = Vec::new();
        let mut end_in = |block: BlockId, before: Option<OpId>| {
            let ops = &blocks[block].ops;
            let end = before.unwrap_or(ops.end).index();
            let own = code.get(ops.start.index()..end).unwrap_or_default();
            own.iter().rev().find_map(|operator| {
                written.extend(operator.written);
                operator.has_line.then_some(operator.offset)
            })
        };
        let nodes = run.path.nodes();
        let own = (step.visit.start..=step.time).zip(&*nodes[step.visit.node].blocks);
        let mut found = Vec::from_iter(own)
            .into_iter()
            .rev()
            .find_map(|(time, &block)| match step.op {
                Some(op) if time == step.time => end_in(block, Some(op)),
                None if time == step.time => None,
                _ => end_in(block, None),
            });
        let mut cursor = None;
        while found.is_none() {
            let cursor = match &mut cursor {
                Some(cursor) => cursor,
                None => {
                    let cursor = cursor.insert(run.path.cursor());
                    cursor.seek(step.visit.start)?;
                    cursor
                }
            };
            let Some(visit) = cursor.previous_in_activation()? else {
                return Ok(None);
            };
            let mut own = nodes[visit.node].blocks.iter().rev();
            found = own.find_map(|&block| end_in(block, None));
        }
        Ok(found.map(|at| StepEnd { at, written }))
    }

    fn code(
        &self,
        (program, module): (&Program, &[u8]),
        source: &dyn Source,
        function: FuncId,
    ) -> Result<Code> {
        if let Some(known) = self.known.borrow().get(&function) {
            return Ok(Rc::clone(known));
        }
        let of = program.function(function);
        let of = of.context("a line is in no function")?;
        let (mut body, mut operators) = (Vec::new(), Vec::new());
        decode(program, module, of, &mut body)?;
        positions(of, &body, source, &mut operators);
        let written = program.operators(module, of).map(|(.., operator)| {
            let (Operator::LocalSet { local_index } | Operator::LocalTee { local_index }) =
                operator
            else {
                return None;
            };
            Some(local_index)
        });
        let all = operators.iter().zip(written);
        let code: Code = all
            .map(|(operator, written)| CodeOperator {
                offset: operator.offset,
                has_line: operator.is_step() && line_of(operator).is_some(),
                written,
            })
            .collect();
        self.known.borrow_mut().insert(function, Rc::clone(&code));
        Ok(code)
    }
}

/// The variables that are known when a step begins, for all arrivals from the same place.
struct Scene {
    /// The variables in scope.
    now: InScope,
    /// The variables that were in scope at the end of the previous step, but no longer are.
    left: InScope,
    /// The facts about these variables, in order.
    facts: Vec<Facts>,
    /// The number of inlined calls around the end of the previous step.
    level: u32,
}

#[derive(Clone, Copy)]
struct Facts {
    /// Whether the variable was in scope at the end of the previous step.
    was_in_scope: bool,
    /// Whether the variable is always declared before its scope begins.
    is_declared: bool,
}

/// The variables of an activation when a step begins.
pub(super) struct Seen {
    scene: Rc<Scene>,
    shown: Vec<(Shown, Option<Bytes>)>,
}

/// The operator at which a step begins, and the last operator of the previous step.
type Border = (OrigOffset, Option<OrigOffset>);

/// The scenes found so far.
pub(super) struct Scenes<'s, 'p> {
    pub(super) known: &'s Variables<'p>,
    source: &'s SourceMap<'p>,
    folded: &'s Folded<'s>,
    limits: Limits,
    functions: RefCell<HashMap<FuncId, Rc<FunctionScopes>>>,
    all: RefCell<HashMap<Border, Rc<Scene>>>,
}

impl<'s, 'p> Scenes<'s, 'p> {
    pub(super) fn new(
        known: &'s Variables<'p>,
        (source, folded): (&'s SourceMap<'p>, &'s Folded<'s>),
        limits: Limits,
    ) -> Self {
        Self {
            known,
            source,
            folded,
            limits,
            functions: RefCell::default(),
            all: RefCell::default(),
        }
    }

    /// Reads the variables at a moment. `end` is the end of the previous step.
    pub(super) fn look(
        &self,
        moment: &Moment<'_, '_>,
        end: Option<&StepEnd>,
        written: impl Fn(u32) -> Result<Option<Written>, StateError>,
    ) -> Result<Result<Seen, DebugError>> {
        let activation = moment.activation;
        let scene = match self.scene(activation, end.map(|end| end.at)) {
            Ok(scene) => scene,
            Err(error) => return Ok(Err(error.named(moment.name))),
        };
        let (known, limits) = (self.known, &self.limits);
        let now = scene.now.objects(known, moment, limits, &written)?;
        let with_bytes = |(shown, object): ShownObject| {
            let object = object.as_ref();
            let bytes = object.and_then(|object| Bytes::left_out(&shown, object, moment));
            (shown, bytes)
        };
        let mut shown = Vec::from_iter(now.into_iter().map(with_bytes));
        if let Some(end) = end.filter(|_| !scene.left.variables.is_empty()) {
            let contents = AfterStep {
                contents: moment.contents,
                locals: activation.locals().len(),
                end,
            };
            let moment = Moment {
                activation,
                contents: &contents,
                entry: moment.entry,
                program: moment.program,
                name: moment.name,
            };
            let left = scene.left.objects(known, &moment, limits, written)?;
            shown.extend(left.into_iter().map(with_bytes));
        }
        Ok(Ok(Seen { scene, shown }))
    }

    fn scene(
        &self,
        activation: &Activation<'_>,
        end: Option<OrigOffset>,
    ) -> Result<Rc<Scene>, DebugError> {
        let key = (activation.offset, end);
        if let Some(known) = self.all.borrow().get(&key) {
            return Ok(Rc::clone(known));
        }
        let known = self.functions.borrow().get(&activation.function).cloned();
        let scopes = match known {
            Some(known) => known,
            None => {
                let scopes = Rc::new(self.known.function(activation.function)?);
                let mut all = self.functions.borrow_mut();
                all.insert(activation.function, Rc::clone(&scopes));
                scopes
            }
        };
        let (now, _) = self.in_scope(&scopes, activation.offset)?;
        let (mut left, level) = self.in_scope(&scopes, end.unwrap_or(activation.offset))?;
        let is_same = |a: &Variable, b: &Variable| {
            let key = (&a.name, &a.function, a.line, a.inlined);
            key == (&b.name, &b.function, b.line, b.inlined)
        };
        let has = |all: &[Variable], one: &Variable| all.iter().any(|other| is_same(other, one));
        let facts = |one: &Variable, was_in_scope| Facts {
            was_in_scope,
            is_declared: self.known.is_declared_before_scope(one),
        };
        let of_now = now.variables.iter();
        let mut all = Vec::from_iter(of_now.map(|one| facts(one, has(&left.variables, one))));
        left.variables.retain(|one| !has(&now.variables, one));
        all.extend(left.variables.iter().map(|one| facts(one, true)));
        let scene = Rc::new(Scene {
            now,
            left,
            facts: all,
            level,
        });
        self.all.borrow_mut().insert(key, Rc::clone(&scene));
        Ok(scene)
    }

    /// Returns the variables in scope whose code is shown, and the number of inlined calls around
    /// the innermost code that is shown.
    fn in_scope(
        &self,
        scopes: &Rc<FunctionScopes>,
        at: OrigOffset,
    ) -> Result<(InScope, u32), DebugError> {
        let mut found = InScope::new(self.known, Rc::clone(scopes), at)?;
        // The activation's function comes first, then the functions inlined there.
        let frames = self.source.inlined_frames(at);
        let frames = Vec::from_iter(frames.iter().rev().map(|frame| {
            let at = frame.location;
            at.is_none_or(|at| self.folded.shows(at.file))
        }));
        let is_shown = |one: &Variable| frames.get(one.inlined as usize).is_none_or(|own| *own);
        found.variables.retain(is_shown);
        let level = frames.iter().rposition(|own| *own).unwrap_or(0);
        Ok((found, level as u32))
    }
}

/// The contents after a step, for the locations at the step's last operator.
struct AfterStep<'m> {
    contents: &'m dyn Contents,
    /// The number of the function's locals. The slots of the operand stack have larger numbers.
    locals: usize,
    end: &'m StepEnd,
}

impl Contents for AfterStep<'_> {
    fn variable(&self, activation: &Activation<'_>, variable: u32) -> Option<Bits> {
        if variable as usize >= self.locals || self.end.written.contains(&variable) {
            return None;
        }
        self.contents.variable(activation, variable)
    }

    fn global(&self, index: u32) -> Option<Bits> {
        self.contents.global(index)
    }

    fn element(&self, index: u64) -> Option<u64> {
        self.contents.element(index)
    }

    fn memory(&self, address: u64, into: &mut [u8]) -> bool {
        self.contents.memory(address, into)
    }
}

impl Seen {
    /// Returns the variables that the step before `next` declared or changed. `before` contains the
    /// variables at the beginning of that step, at the line `finished`.
    pub(super) fn changed(
        &self,
        before: &Self,
        (finished, next): (Line, Line),
        scenes: &Scenes<'_, '_>,
    ) -> Vec<ChangedVariable> {
        let key = |one: &Shown| (one.name.clone(), one.inlined.clone(), one.line, one.calls);
        let in_scope = &before.shown[..before.scene.now.variables.len()];
        let mut known: HashMap<_, VecDeque<&(Shown, Option<Bytes>)>> = HashMap::new();
        for one in in_scope {
            known.entry(key(&one.0)).or_default().push_back(one);
        }
        let mut found = Vec::new();
        for ((one, bytes), facts) in self.shown.iter().zip(&self.scene.facts) {
            let before = known.get_mut(&key(one)).and_then(VecDeque::pop_front);
            let Ok(value) = &one.value else { continue };
            // A variable that is declared before its scope begins was not in scope earlier.
            let is_initialised = match facts.is_declared {
                true => before.is_none(),
                false => facts.was_in_scope,
            };
            // A line number alone does not identify the file, but code of the same function does.
            let is_declared = one.line == Some(finished.number)
                && one.calls == self.scene.level
                && !one.parameter
                && is_initialised;
            let is_other = match before {
                _ if is_declared => true,
                Some((before, others)) => before.value.as_ref() != Ok(value) || others != bytes,
                None if one.parameter => one.inlined.is_some(),
                None => facts.is_declared && one.line != Some(next.number),
            };
            if is_other {
                let before = before.filter(|_| !is_declared);
                let others = before.and_then(|(_, others)| others.as_ref());
                let part = bytes.as_ref().zip(others);
                found.push(ChangedVariable {
                    now: one.clone(),
                    before: before.and_then(|(before, _)| before.value.clone().ok()),
                    part: part.and_then(|(now, before)| {
                        now.changed(before, scenes.known, &scenes.limits)
                    }),
                });
            }
        }
        found
    }

    /// Returns the parameters at the beginning of an activation.
    pub(super) fn begun(&self) -> Vec<ChangedVariable> {
        let parameters = self
            .shown
            .iter()
            .map(|(one, _)| one)
            .filter(|one| one.parameter && one.inlined.is_none());
        let parameters = parameters.map(|one| ChangedVariable {
            now: one.clone(),
            before: None,
            part: None,
        });
        parameters.collect()
    }
}
