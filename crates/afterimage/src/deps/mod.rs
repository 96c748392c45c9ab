//! Finds what an execution of a statement depends on, and what depends on it.

mod forward;
mod host;

use std::cell::RefCell;
use std::collections::{BTreeSet, HashSet};

use afterimage_ids::{BlockId, FuncId, OpId, OrigOffset};
use afterimage_present::document::objects::{Function, TypedValue};
use afterimage_present::{
    Dependence, DependsOn, DepsAlong, DepsDirection, DepsExecution, DepsReport, DepsStatement,
    DepsUsers, UsedBy,
};
use afterimage_profile::{operator_texts, readable};
use afterimage_program::OperatorIndex;
use afterimage_replay::Trap;
use afterimage_replay::values::{
    Controller, Dependence as Found, Execution, HostReadsError, Instance, Kind, Origin, Statement,
    ValuesError, moves, of_statement,
};
use anyhow::{Context, Result, anyhow, bail};
use serde::{Deserialize, Serialize};

use crate::explain::Scene;
use crate::own::OwnLines;
use crate::places::{Site, chosen, statements};

/// Asks what an execution of a statement depends on, or what depends on it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DepsQuery {
    /// The statement and its execution: `parser.c:42#7`, `@0x1f3#last`.
    pub at: String,
    /// Whether to look for what the statement depends on, or for what depends on it.
    pub direction: DepsDirection,
    /// The dependences to follow.
    pub along: DepsAlong,
    /// The number of steps, at most [`DEEPEST`](Self::DEEPEST). One step gives only direct
    /// dependences.
    pub depth: u32,
    /// The maximum number of uses to list for an execution, and of parts to list for the source of
    /// a copy.
    pub limit: u64,
}

impl DepsQuery {
    /// The maximum number of steps.
    pub const DEEPEST: u32 = 1000;
    /// The default number of uses to list.
    pub const LIMIT: u64 = 20;

    /// Creates a query about direct dependences.
    pub fn new(at: impl Into<String>) -> Self {
        Self {
            at: at.into(),
            direction: DepsDirection::Backward,
            along: DepsAlong::Both,
            depth: 1,
            limit: Self::LIMIT,
        }
    }

    pub(crate) fn answer(&self, scene: &Scene<'_, '_>) -> Result<DepsReport> {
        if !(1..=Self::DEEPEST).contains(&self.depth) {
            bail!("the depth must be from 1 to {}", Self::DEEPEST);
        }
        let (traced, values) = (scene.traced, scene.values);
        let place = (scene.names, scene.source());
        let found = statements(traced, place.0, place.1, &scene.types, &self.at)?;
        let module = traced.module();
        let finder = Finder {
            scene,
            query: self,
            own: OwnLines::new(traced, values.path(), (scene.folded(), scene.names)),
            index: OperatorIndex::new(&module.program, &module.bytes),
            trapped: traced.trap()?,
            named: RefCell::default(),
        };
        let mut chosen = chosen(traced, values, place, &found, &self.at)?;
        chosen.sort_by_key(|chosen| chosen.site.offset);
        let mut all = Vec::new();
        let mut outside = None;
        for one in &chosen {
            let Some(execution) = one.get(traced, values)? else {
                continue;
            };
            match finder.of_execution(one.site, &execution) {
                Ok(statement) => all.push(statement),
                // Still report the other statements.
                Err(error) if chosen.len() > 1 && is_outside(&error) => outside = Some(error),
                Err(error) => return Err(error),
            }
        }
        if all.is_empty() {
            let ended = || anyhow!("{}: the run ended before any of its statements", self.at);
            return Err(outside.unwrap_or_else(ended));
        }
        if self.direction == DepsDirection::Forward && all.len() > 1 {
            // Statements without dependences would only take up space.
            all.retain(|one| self.along != DepsAlong::Control || !one.is_empty());
        }
        finder.name_operators(&mut all)?;
        Ok(DepsReport {
            at: self.at.clone(),
            direction: self.direction,
            along: self.along,
            statements: all,
        })
    }
}

/// Reads with at most this number of parts are always listed in full. A vector has this number of
/// bytes.
const LEAST_PARTS: u64 = 16;

/// An operator in an execution of a node. If `takes` is false, only its decision, call or throw
/// matters, not the values it passes on.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Point {
    instance: Instance,
    op: OpId,
    takes: bool,
}

/// Finds dependences.
struct Finder<'s, 'a> {
    scene: &'s Scene<'s, 'a>,
    query: &'s DepsQuery,
    own: OwnLines<'s>,
    index: OperatorIndex<'a>,
    /// The operator that trapped, if the run ended with a trap.
    trapped: Option<Trap>,
    /// The operators to describe. Their texts are looked up all at once.
    named: RefCell<BTreeSet<OrigOffset>>,
}

/// Whether a call or throw only passes on the operand, so that the operand does not influence
/// whether the call or throw happens.
fn is_passed_on(role: &str) -> bool {
    matches!(role, "argument" | "carried")
}

/// Whether the error concerns a part of the run without stored values.
fn is_outside(error: &anyhow::Error) -> bool {
    let values = error.downcast_ref::<ValuesError>();
    let host = error.downcast_ref::<HostReadsError>();
    matches!(values, Some(ValuesError::Outside { .. }))
        || host.is_some_and(HostReadsError::is_outside)
}

impl Finder<'_, '_> {
    fn of_execution(&self, site: &Site, execution: &Execution) -> Result<DepsStatement> {
        let trapped = self.trapped_at(site.function, site.op, execution.time);
        let values = match trapped {
            Some(_) => Vec::new(),
            None => self.values_of(execution, site.op)?,
        };
        let point = Point {
            instance: execution.instance,
            op: site.op,
            takes: true,
        };
        let mut seen = HashSet::from([point]);
        let (mut dependences, mut users) = (None, None);
        match (self.query.direction, trapped) {
            (DepsDirection::Backward, _) => {
                dependences = Some(self.dependences(point, self.query.depth, &mut seen)?);
            }
            // An operator that trapped produced no value, and no execution depends on it.
            (DepsDirection::Forward, Some(_)) => users = Some(DepsUsers::default()),
            (DepsDirection::Forward, None) => {
                users = Some(self.users(point, self.query.depth, &mut seen)?);
            }
        }
        Ok(DepsStatement {
            execution: self.execution(execution.time, site.function, site.offset)?,
            number: execution.number,
            values,
            trapped: trapped.map(str::to_owned),
            dependences,
            users,
        })
    }

    /// Returns the values that an execution of a statement produced.
    fn values_of(&self, execution: &Execution, op: OpId) -> Result<Vec<TypedValue>, ValuesError> {
        let given = self
            .scene
            .types
            .results_of(self.scene.values, execution, op)?;
        let given = given.iter().map(|it| TypedValue::new(it.ty, it.bits));
        Ok(given.collect())
    }

    /// Returns why an operator trapped in the block at this time, if it did.
    fn trapped_at(&self, function: FuncId, op: OpId, time: u64) -> Option<&str> {
        let trapped = self.trapped.as_ref();
        let here = trapped.filter(|trapped| trapped.is_at(function, op, time));
        here.map(|trapped| trapped.why.as_str())
    }

    /// Returns the dependences of an operator, `depth` steps back.
    fn dependences(
        &self,
        point: Point,
        depth: u32,
        seen: &mut HashSet<Point>,
    ) -> Result<Vec<Dependence>> {
        let statement = self.statement(point.instance, point.op)?;
        let mut all = Vec::new();
        if self.query.along.data()
            && let Some(statement) = statement
        {
            self.data(point, statement, &mut all)?;
        }
        if self.query.along.control() {
            let (time, function, _) = self.when(point.instance, point.op)?;
            let execution = Execution {
                number: 0,
                time,
                instance: point.instance,
                statement,
            };
            let controllers = &self.scene.controllers;
            let controllers = controllers.of_execution(self.scene.values, &execution)?;
            for &controller in &controllers {
                all.push(self.control(function, controller, "control")?);
            }
            if self.query.along.data()
                && let Some(statement) = statement
            {
                self.moved(point, statement, controllers, &mut all)?;
            }
        }
        let mut dependences = Vec::with_capacity(all.len());
        for (mut dependence, from) in all {
            if depth > 1
                && let Some(from) = from
                && seen.insert(from)
            {
                dependence.dependences = match self.dependences(from, depth - 1, seen) {
                    Err(error) if is_outside(&error) => {
                        let why = error.to_string();
                        vec![Dependence::new("?", DependsOn::Unknown { why })]
                    }
                    further => further?,
                };
            }
            dependences.push(dependence);
        }
        Ok(dependences)
    }

    /// Adds the data dependences of a statement, with their origins.
    fn data(
        &self,
        point: Point,
        statement: Statement,
        all: &mut Vec<(Dependence, Option<Point>)>,
    ) -> Result<()> {
        let (values, host) = (self.scene.values, &self.scene.host);
        let most = self.query.limit.max(LEAST_PARTS);
        let instance = point.instance;
        let function = values.path().nodes()[instance.node].function;
        let operands = self.scene.types.of(function, point.op);
        let operands = operands.map(|(types, _)| types).unwrap_or_default();
        let mut operands = operands.into_iter();
        let (mut parts, mut more) = (0, 0);
        let mut role = "memory";
        for found in of_statement(values, instance, statement)? {
            let ty = operands.next();
            if !point.takes && is_passed_on(found.role) {
                continue;
            }
            // In a copy, each byte may have its own origin.
            if found.bytes > 0 || found.elements > 0 {
                parts += 1;
                role = found.role;
                if parts > most {
                    more += 1;
                    continue;
                }
            }
            let (from, its) = self.origin(found.origin)?;
            let Found {
                bytes, elements, ..
            } = found;
            let value = found.value.zip(ty);
            let value = value.map(|(bits, ty)| TypedValue::new(ty, bits));
            let dependence = Dependence {
                value,
                bytes: Some(bytes).filter(|bytes| *bytes > 0),
                elements: Some(elements).filter(|elements| *elements > 0),
                ..Dependence::new(found.role, from)
            };
            all.push((dependence, its));
        }
        if let (Kind::Call(_), true) = (statement.kind, point.takes) {
            let (parts, besides) = host.parts(instance, most)?;
            self.host_parts(instance, &parts, all)?;
            more += besides;
        }
        if more > 0 {
            let rest = DependsOn::More { parts: more };
            all.push((Dependence::new(role, rest), None));
        }
        Ok(())
    }

    /// Adds the decisions that caused values to be moved to a statement's operands. Leaves out the
    /// `known` decisions, which also decide whether the statement runs.
    fn moved(
        &self,
        point: Point,
        statement: Statement,
        mut known: Vec<Controller>,
        all: &mut Vec<(Dependence, Option<Point>)>,
    ) -> Result<()> {
        let values = self.scene.values;
        let is_taken = |_, role: &str| point.takes || !is_passed_on(role);
        for moved in moves(values, point.instance, statement, is_taken)? {
            let function = values.path().nodes()[moved.instance.node].function;
            for controller in self.scene.controllers.of_execution(values, &moved)? {
                if controller != Controller::Host && !known.contains(&controller) {
                    known.push(controller);
                    all.push(self.control(function, controller, "moved")?);
                }
            }
        }
        Ok(())
    }

    /// Returns the statement of an operator in a node.
    fn statement(&self, instance: Instance, op: OpId) -> Result<Option<Statement>> {
        let values = self.scene.values;
        let program = self.scene.traced.program();
        let node = &values.path().nodes()[instance.node];
        let function = program.function(node.function);
        let block = function.and_then(|function| function.block_of(op));
        let position = node.blocks.iter().position(|&other| Some(other) == block);
        let Some(position) = position else {
            return Ok(None);
        };
        let compiled = values.compiled(instance.node)?;
        let last = position + 1 == node.blocks.len();
        let position = position as u64;
        Ok(Statement::find(program, &compiled.code, position, op, last))
    }

    /// Converts the origin of a value.
    fn origin(&self, origin: Origin) -> Result<(DependsOn, Option<Point>)> {
        let values = self.scene.values;
        let from = match origin {
            Origin::Constant => DependsOn::Constant,
            Origin::Zero => DependsOn::Zero,
            Origin::Initial => DependsOn::Module,
            Origin::Argument { index, .. } => DependsOn::Argument {
                argument: index + 1,
            },
            Origin::Host { call } => {
                let caller = match values.host()?.of_guest(call) {
                    Some(_) => Some(self.scene.host.caller_of(call)?),
                    // The host acted on its own.
                    None => None,
                };
                return self.of_host(call, caller, None);
            }
            Origin::Returned { instance, index } => {
                let call = values.host_call(instance)?;
                let call = call.context("a host call is not in the log")?;
                return self.of_host(call, Some(instance), Some(index));
            }
            Origin::Operator { instance, op } => {
                let from = DependsOn::Operator(self.executed(instance, op)?);
                let takes = true;
                let point = Point {
                    instance,
                    op,
                    takes,
                };
                return Ok((from, Some(point)));
            }
        };
        Ok((from, None))
    }

    fn control(
        &self,
        function: FuncId,
        controller: Controller,
        role: &str,
    ) -> Result<(Dependence, Option<Point>)> {
        let values = self.scene.values;
        let (time, function, block) = match controller {
            Controller::Host => return Ok((Dependence::new(role, DependsOn::HostCall), None)),
            Controller::Branch { time, block } => (time, function, Some(block)),
            Controller::Call { time } | Controller::Throw { time } => {
                let caller = values
                    .at(time)?
                    .context("the time of a call is not in the path")?;
                let node = &values.path().nodes()[caller.node];
                (time, node.function, node.blocks.last().copied())
            }
        };
        let op = block.and_then(|block| self.last_op(function, block));
        let (Some(op), Some(instance)) = (op, values.at(time)?) else {
            return Ok((Dependence::new(role, DependsOn::Block { t: time }), None));
        };
        let (_, function, offset) = self.when(instance, op)?;
        let at = self.execution(time, function, offset)?;
        let from = match controller {
            Controller::Call { .. } => DependsOn::Call(at),
            Controller::Throw { .. } => DependsOn::Throw(at),
            Controller::Branch { .. } | Controller::Host => DependsOn::Branch(at),
        };
        let point = Point {
            instance,
            op,
            takes: false,
        };
        Ok((Dependence::new(role, from), Some(point)))
    }

    fn last_op(&self, function: FuncId, block: BlockId) -> Option<OpId> {
        let function = self.scene.traced.program().function(function)?;
        let end = function.cfg.blocks.get(block)?.ops.end.as_u32();
        Some(OpId::from_u32(end.checked_sub(1)?))
    }

    /// Returns the time, function and offset of an operator in an execution of a node.
    fn when(&self, instance: Instance, op: OpId) -> Result<(u64, FuncId, OrigOffset)> {
        let node = &self.scene.values.path().nodes()[instance.node];
        let function = self.scene.traced.program().function(node.function);
        let function = function.context("the path names a function that is not in the program")?;
        let block = function.block_of(op);
        let position = node.blocks.iter().position(|&other| Some(other) == block);
        let time = instance.time + position.unwrap_or(0) as u64;
        let offset = self.index.offsets(function).get(op.as_u32() as usize);
        let offset = *offset.context("an operator is not in the program")?;
        Ok((time, function.id, offset))
    }

    /// Describes an operator in an execution of a node.
    fn executed(&self, instance: Instance, op: OpId) -> Result<DepsExecution> {
        let (time, function, offset) = self.when(instance, op)?;
        self.execution(time, function, offset)
    }

    /// Describes an operator in an execution. The text is added later.
    fn execution(&self, t: u64, function: FuncId, offset: OrigOffset) -> Result<DepsExecution> {
        self.named.borrow_mut().insert(offset);
        Ok(DepsExecution {
            function: Function::new(self.scene.names, function),
            operator: String::new(),
            offset: offset.0,
            source: self.scene.located(offset),
            t,
            own: self.own.at((function, offset), t)?,
        })
    }

    /// Adds the text of each operator.
    fn name_operators(&self, statements: &mut [DepsStatement]) -> Result<()> {
        let named = Vec::from_iter(self.named.take());
        let texts = operator_texts(self.scene.traced.bytes(), &named)?;
        let name = |execution: &mut DepsExecution| {
            if let Ok(at) = named.binary_search(&OrigOffset(execution.offset)) {
                execution.operator = readable(texts[at].trim());
            }
        };
        for statement in statements {
            name(&mut statement.execution);
            for_each_dependence(statement.dependences.as_deref_mut(), &name);
            for_each_use(statement.users.as_mut(), &name);
        }
        Ok(())
    }
}

fn for_each_dependence(all: Option<&mut [Dependence]>, name: &impl Fn(&mut DepsExecution)) {
    for one in all.into_iter().flatten() {
        one.from.execution_mut().into_iter().for_each(name);
        for_each_dependence(Some(&mut one.dependences), name);
    }
}

fn for_each_use(users: Option<&mut DepsUsers>, name: &impl Fn(&mut DepsExecution)) {
    for one in users.into_iter().flat_map(|users| &mut users.uses) {
        if let UsedBy::Operator(by) = &mut one.to {
            name(&mut by.execution);
        }
        for_each_use(one.further.as_deref_mut(), name);
    }
}
