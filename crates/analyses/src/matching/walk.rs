//! Follows a run and reports the values and accesses of its statements.

use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use afterimage_ids::{FuncId, NodeId, OpId, PrimaryMap};
use afterimage_machine::{NodeCode, Observer, Range};
use afterimage_trace::LogReader;
use afterimage_wpp::{Node, Segments, Visit};
use rustc_hash::FxHashMap;
use wasmparser::ValType;

use super::code::{OperatorFacts, operators};
use super::contexts::Contexts;
use super::take::Listen;
use super::template::{Template, make};
use afterimage_replay::steps::{Follower, Plans, Run, StepsError};

/// An observer of the machine that translates its actions into events of statements.
struct Telling<L> {
    listener: L,
    template: Rc<Template>,
    start: u64,
    contexts: Contexts,
    /// The function whose activation is beginning, and the number of its parameters.
    begins: Option<(FuncId, usize)>,
}

impl<L: Listen> Observer for Telling<L> {
    fn variables(&mut self, _: &NodeCode, low: &[u64], _: &[u64]) {
        if let Some((function, parameters)) = self.begins.take() {
            let parameters = low.get(..parameters).unwrap_or(low);
            self.listener.enter(function, self.start, parameters);
        }
    }

    fn read(&mut self, inst: usize, range: Range) {
        if let Some(statement) = self.template.statement(inst) {
            self.listener.read(statement, range);
        }
    }

    fn write(&mut self, inst: usize, range: Range) {
        if let Some(statement) = self.template.statement(inst) {
            self.listener.write(statement, range);
        }
    }

    fn copy(&mut self, _: usize, from: Range, to: Range) {
        self.listener.copy(from, to);
    }

    fn host_write(&mut self, range: Range) {
        self.listener.host_write(range);
    }

    fn leave(&mut self, _: Option<(u32, u32)>) {
        if !self.contexts.is_flat() {
            self.contexts.leave();
        }
    }

    fn done(&mut self, _: &NodeCode, low: &[u64], _: &[u64]) {
        let (template, start) = (&self.template, self.start);
        template.tell(&mut self.listener, start, usize::MAX, low);
    }

    fn stopped(&mut self, _: &NodeCode, executed: usize, low: &[u64], _: &[u64]) {
        let (template, start) = (&self.template, self.start);
        template.tell(&mut self.listener, start, executed, low);
    }
}

/// An observer that records only which activations end.
struct Leaving<'c>(&'c mut Contexts);

impl Observer for Leaving<'_> {
    const REGISTERS: bool = false;

    fn leave(&mut self, _: Option<(u32, u32)>) {
        self.0.leave();
    }
}

/// Follows a run and reports the values and accesses of its statements to a listener.
pub(crate) struct Walk<'a, S: Segments, L> {
    follower: Follower<'a, S>,
    plans: Plans<'a, S>,
    run: Run<'a, S>,
    nodes: &'a PrimaryMap<NodeId, Node>,
    /// The templates, by node and context.
    templates: FxHashMap<(NodeId, u32), Rc<Template>>,
    known: HashMap<FuncId, Vec<OperatorFacts>>,
    numbers: FxHashMap<(u32, OpId), u32>,
    telling: Telling<L>,
    stack: u64,
}

/// The results of following a run.
pub(crate) struct Walked<L> {
    /// The listener to which the run was reported.
    pub listener: L,
    pub(super) contexts: Contexts,
    /// Facts about the operators of the executed functions.
    pub(super) known: HashMap<FuncId, Vec<OperatorFacts>>,
    /// The address from which the stack grows down; 0 if unknown.
    pub(super) stack: u64,
}

impl<L> Walked<L> {
    /// Returns the same walk with another listener. `end` consumes the old listener.
    pub(super) fn heard_by<M>(self, listener: M, end: impl FnOnce(L)) -> Walked<M> {
        end(self.listener);
        Walked {
            listener,
            contexts: self.contexts,
            known: self.known,
            stack: self.stack,
        }
    }
}

/// Returns the start of the stack, which is the initial value of the first global. LLVM's linker
/// keeps the stack pointer in this global.
fn stack_of<S: Segments>(run: &Run<'_, S>, follower: &Follower<'_, S>) -> u64 {
    let is_pointer = run.program.globals.first() == Some(&ValType::I32);
    let first = follower.machine.state.globals.first();
    first.filter(|_| is_pointer).map_or(0, |bits| bits.0)
}

impl<'a, S: Segments, L: Listen> Walk<'a, S, L>
where
    S::Error: std::error::Error + 'static,
{
    /// Creates a walk in which all functions stand alone.
    pub fn new(run: Run<'a, S>, log: LogReader, listener: L) -> Result<Self, StepsError<S::Error>> {
        Self::within(run, log, listener, None)
    }

    /// Creates a walk in which the functions in `standing` stand alone. If `standing` is `None`,
    /// all functions do.
    pub(super) fn within(
        run: Run<'a, S>,
        log: LogReader,
        listener: L,
        standing: Option<&HashSet<FuncId>>,
    ) -> Result<Self, StepsError<S::Error>> {
        let functions = run.program.functions.iter();
        let operators = functions.map(|function| function.operators as usize).sum();
        let follower = Follower::new(run, log)?;
        Ok(Self {
            stack: stack_of(&run, &follower),
            follower,
            plans: Plans::new(run),
            run,
            nodes: run.path.nodes(),
            templates: FxHashMap::default(),
            known: HashMap::new(),
            numbers: FxHashMap::default(),
            telling: Telling {
                listener,
                contexts: Contexts::new(standing.cloned(), operators),
                template: Rc::default(),
                start: 0,
                begins: None,
            },
        })
    }

    /// Follows the run to its end.
    pub fn follow(self) -> Result<Walked<L>, StepsError<S::Error>> {
        self.follow_some(false)
    }

    /// Like [`follow`](Self::follow), but skips nodes without a statement that was numbered before.
    pub(super) fn follow_known(self) -> Result<Walked<L>, StepsError<S::Error>> {
        self.follow_some(true)
    }

    fn follow_some(mut self, known: bool) -> Result<Walked<L>, StepsError<S::Error>> {
        while let Some(visit) = self.follower.advance()? {
            self.enter(visit);
            let template = self.template(visit)?;
            if known && !template.numbered {
                self.pass(visit, template)?
            } else {
                self.execute(visit, template)?
            }
        }
        Ok(Walked {
            listener: self.telling.listener,
            contexts: self.telling.contexts,
            known: self.known,
            stack: self.stack,
        })
    }

    /// Records the activation that a node begins, if any.
    fn enter(&mut self, visit: Visit) {
        if !self.follower.machine.begins_activation() {
            return;
        }
        let function = self.nodes[visit.node].function;
        let defined = self.run.program.function(function);
        let ty = defined.and_then(|defined| self.run.program.types.get(defined.ty));
        let parameters = ty.map_or(0, |ty| ty.params.len());
        self.telling.begins = Some((function, parameters));
        if self.telling.contexts.is_flat() {
            return;
        }
        let operators = defined.map_or(0, |function| function.operators);
        let call = self.telling.template.call;
        self.telling
            .contexts
            .enter(function, call, operators as usize);
    }

    fn execute(
        &mut self,
        visit: Visit,
        template: Rc<Template>,
    ) -> Result<(), StepsError<S::Error>> {
        self.telling.template = template;
        self.telling.start = visit.start;
        self.follower.execute(visit, &mut self.telling)
    }

    /// Executes a node without reporting its values.
    fn pass(&mut self, visit: Visit, template: Rc<Template>) -> Result<(), StepsError<S::Error>> {
        self.telling.template = template;
        if self.telling.contexts.is_flat() {
            self.follower.execute(visit, &mut ())
        } else {
            let mut leaving = Leaving(&mut self.telling.contexts);
            self.follower.execute(visit, &mut leaving)
        }
    }

    fn template(&mut self, visit: Visit) -> Result<Rc<Template>, StepsError<S::Error>> {
        let function = self.nodes[visit.node].function;
        let contexts = &mut self.telling.contexts;
        let context = if contexts.is_flat() {
            contexts.root(function)
        } else {
            // The path began earlier, so the open activations are unknown.
            contexts
                .current()
                .unwrap_or_else(|| contexts.root(function))
        };
        if let Some(known) = self.templates.get(&(visit.node, context)) {
            return Ok(Rc::clone(known));
        }
        let plan = self.plans.of(visit.node, &self.follower)?;
        if !self.known.contains_key(&function) {
            let defined = self.run.program.function(function);
            let defined = defined.ok_or(StepsError::NoBody(function))?;
            let all = operators(self.run.program, self.run.module, defined);
            self.known.insert(function, all);
        }
        let made = {
            let code = &self.follower.machine.codes()[visit.node];
            make(
                code,
                &plan,
                (function, context),
                &self.known[&function],
                &mut self.numbers,
                &mut self.telling.listener,
            )
        };
        let made = Rc::new(made);
        self.templates
            .insert((visit.node, context), Rc::clone(&made));
        Ok(made)
    }
}
