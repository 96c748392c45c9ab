//! The direct dependences of what is executed in a window.
//!
//! While the window is followed, a [shadow](crate::shadow) keeps who wrote each variable, global and byte, and which edges each activation took. Where these come from before the window, the values of the recording are asked once. A function's own handlers of exceptions, tables and sizes are always asked for.

use std::collections::HashMap;
use std::rc::Rc;

use afterimage::Session;
use afterimage_ids::{EntityRef, FuncId, NodeId, OpId};
use afterimage_machine::{Caller, NodeCode, Observer, Range};
use afterimage_replay::values::{
    Controller, Controllers, Execution, Instance, Kind, Origin, RecordedValues, origin_of,
};
use afterimage_wet::{TableOrSize, Writer};
use afterimage_wpp::Visit;
use anyhow::{Context, Result};
use parquet::data_type::ByteArray;

use crate::depends::{Controls, Decides, DependPlan, From};
use crate::file::TableFile;
use crate::ids::Ids;
use crate::shadow::{Began, Bytes, Decided, Frame, Maker, Part};
use crate::whole::last_op;

/// Writes dependences.
pub(crate) struct Dependences<'a> {
    ids: &'a Ids,
    values: RecordedValues<'a>,
    controllers: Controllers<'a>,
    controls: Controls,
    plans: Vec<Option<Rc<DependPlan>>>,
    file: TableFile,
    /// Text that rows share.
    words: HashMap<&'static str, ByteArray>,
    frames: Vec<Frame>,
    globals: HashMap<u32, Maker>,
    bytes: Bytes,
    /// What a call is given, or what returned.
    given: Vec<Maker>,
    /// The end of the variables that a call last gave its results to; `None` after an exception.
    given_end: Option<u32>,
    /// Whether no node was executed yet.
    is_new: bool,
    /// The node that is executed.
    now: Now,
    /// An observer returns no error.
    failed: Option<anyhow::Error>,
}

/// The node that is executed.
#[derive(Default)]
struct Now {
    plan: Option<Rc<DependPlan>>,
    visit: Option<Visit>,
    /// How many activations are open, with its own.
    depth: usize,
    instance: Option<Instance>,
    /// What its instructions read so far.
    reads: Vec<(usize, &'static str, Vec<Part>)>,
    /// Whether it calls the host, and the number of the call.
    host: Option<Option<u64>>,
    done: bool,
}

/// A row.
struct Row {
    time: u64,
    statement: Option<i32>,
    role: &'static str,
    bytes: u64,
}

impl<'a> Dependences<'a> {
    pub fn new(session: &'a Session, ids: &'a Ids, file: TableFile) -> Result<Self> {
        let values = session.values()?;
        Ok(Self {
            ids,
            controllers: Controllers::new(session.program()),
            controls: Controls::default(),
            plans: vec![None; values.path().nodes().len()],
            values,
            file,
            words: HashMap::new(),
            frames: Vec::new(),
            globals: HashMap::new(),
            bytes: Bytes::new(),
            given: Vec::new(),
            given_end: None,
            is_new: true,
            now: Now::default(),
            failed: None,
        })
    }

    pub fn into_file(self) -> TableFile {
        self.file
    }

    /// A node is executed next, in the innermost of `depth` activations.
    pub fn begin(&mut self, visit: Visit, depth: usize, code: &NodeCode) -> Result<()> {
        self.now = Now {
            plan: Some(self.plan(visit.node, code)?),
            visit: Some(visit),
            depth,
            ..Now::default()
        };
        Ok(())
    }

    /// The node was executed.
    pub fn end(&mut self) -> Result<()> {
        match self.failed.take() {
            Some(error) => Err(error),
            None => Ok(()),
        }
    }

    fn plan(&mut self, node: NodeId, code: &NodeCode) -> Result<Rc<DependPlan>> {
        if let Some(known) = &self.plans[node.index()] {
            return Ok(Rc::clone(known));
        }
        let program = self.values.program();
        let of = &self.values.path().nodes()[node];
        let function = program.function(of.function);
        let plan = function.and_then(|function| {
            let control = self.controls.of(of.function, &function.cfg);
            DependPlan::new((program, self.ids), of, code, &control)
        });
        let plan = Rc::new(plan.context("the path has a block that the program lacks")?);
        self.plans[node.index()] = Some(Rc::clone(&plan));
        Ok(plan)
    }

    fn instance(&mut self) -> Result<Instance> {
        if let Some(known) = self.now.instance {
            return Ok(known);
        }
        let visit = self.now.visit.context("no node is executed")?;
        let found = self.values.at(visit.start)?;
        let found = found.context("the values lack a block of the run")?;
        self.now.instance = Some(found);
        Ok(found)
    }

    /// The rows of a node of which the first `executed` instructions were done.
    fn rows(&mut self, executed: usize, is_stopped: bool) -> Result<()> {
        let (Some(plan), Some(visit)) = (self.now.plan.clone(), self.now.visit) else {
            return Ok(());
        };
        let mut statements = plan.statements.iter().peekable();
        let mut reads = std::mem::take(&mut self.now.reads).into_iter().peekable();
        for (block, time) in (0..plan.decides.len() as u32).zip(visit.start..) {
            self.control(&plan, block, visit)?;
            while let Some(one) = statements.next_if(|one| one.block == block) {
                let is_done = match one.kind {
                    Kind::Inst(inst) => inst < executed,
                    _ => !is_stopped,
                };
                if !is_done {
                    continue;
                }
                for &(role, from) in &one.operands {
                    let maker = self.maker(from, visit)?;
                    self.write(self.row(time, one.statement, role, 0), maker)?;
                }
                while let Some((inst, role, parts)) = reads.next_if(|read| match one.kind {
                    Kind::Inst(inst) => read.0 <= inst,
                    _ => false,
                }) {
                    let is_own = one.kind == Kind::Inst(inst);
                    for (bytes, maker) in parts.into_iter().filter(|_| is_own) {
                        self.write(self.row(time, one.statement, role, bytes), maker)?;
                    }
                }
                if one.takes {
                    self.taken_rows(one.kind, (time, one.statement))?;
                }
            }
        }
        Ok(())
    }

    fn row(&self, time: u64, statement: i32, role: &'static str, bytes: u64) -> Row {
        Row {
            time,
            statement: Some(statement),
            role,
            bytes,
        }
    }

    /// Who made the elements or the size that a statement takes.
    fn taken_rows(&mut self, kind: Kind, (time, statement): (u64, i32)) -> Result<()> {
        let instance = self.instance()?;
        let inst = match kind {
            Kind::Inst(inst) => Some(inst),
            _ => None,
        };
        for taken in self.values.taken(instance, inst)? {
            let role = match taken.place {
                TableOrSize::Elements(_) => "element",
                _ => "size",
            };
            let maker = self.writer(taken.writer)?;
            self.write(self.row(time, statement, role, 0), maker)?;
        }
        Ok(())
    }

    /// Who made an operand.
    fn maker(&mut self, from: From, visit: Visit) -> Result<Maker> {
        match from {
            From::Constant => Ok(Maker::Constant),
            From::Own(block, statement) => Ok(Maker::Statement {
                time: visit.start + u64::from(block),
                statement,
            }),
            From::Variable(variable) => self.variable(variable),
        }
    }

    /// Who made a variable of the innermost activation.
    fn variable(&mut self, variable: u32) -> Result<Maker> {
        let known = self.frames.last().map(|frame| frame.get(variable));
        match known {
            Some(maker) if maker != Maker::Unknown => Ok(maker),
            _ => {
                let instance = self.instance()?;
                let maker = self.origin(origin_of(&self.values, instance, variable)?)?;
                if let Some(frame) = self.frames.last_mut() {
                    frame.set(variable, maker);
                }
                Ok(maker)
            }
        }
    }

    /// What let a block run.
    fn control(&mut self, plan: &DependPlan, block: u32, visit: Visit) -> Result<()> {
        let time = visit.start + u64::from(block);
        let decides = &plan.decides[block as usize];
        let frame = self.frames.last();
        let known = match decides {
            Decides::Own(at) => Some(("branch", Some(visit.start + u64::from(*at)))),
            Decides::Edges(edges) => {
                let times =
                    frame.map(|frame| edges.iter().filter_map(|edge| frame.taken.get(edge)));
                let taken = times.and_then(|times| times.max().copied());
                match (taken, frame.and_then(|frame| frame.began)) {
                    (Some(time), _) => Some(("branch", Some(time))),
                    (None, Some(Began::Host)) => Some(("host", None)),
                    (None, Some(Began::Call(time))) => Some(("call", Some(time))),
                    (None, None) => None,
                }
            }
            Decides::Asked => None,
        };
        if let Some(known) = known {
            return self.control_row(time, known);
        }
        let id = self.values.path().nodes()[visit.node].blocks[block as usize];
        // What comes from before the window stays the same until the window has a later one.
        let is_kept = !matches!(decides, Decides::Asked);
        let before = frame.and_then(|frame| frame.before.get(&id));
        let found = match before.filter(|_| is_kept) {
            Some(before) => before.clone(),
            None => self.asked(time)?,
        };
        for &decided in &found {
            self.control_row(time, decided)?;
        }
        if let Some(frame) = self.frames.last_mut().filter(|_| is_kept) {
            frame.before.insert(id, found);
        }
        Ok(())
    }

    /// What the values say about what let a block run.
    fn asked(&mut self, time: u64) -> Result<Vec<Decided>> {
        let execution = Execution {
            number: 0,
            time,
            instance: self.instance()?,
            statement: None,
        };
        let found = self.controllers.of_execution(&self.values, &execution)?;
        let decided = found.into_iter().map(|controller| match controller {
            Controller::Branch { time, .. } => ("branch", Some(time)),
            Controller::Call { time } => ("call", Some(time)),
            Controller::Throw { time } => ("throw", Some(time)),
            Controller::Host => ("host", None),
        });
        Ok(decided.collect())
    }

    fn control_row(&mut self, time: u64, (origin, at): Decided) -> Result<()> {
        let made = match at {
            Some(at) => Some((at, self.ends_block(at)?)),
            None => None,
        };
        let row = Row {
            time,
            statement: None,
            role: "control",
            bytes: 0,
        };
        self.put(row, origin, made, None)
    }

    /// The operator that ends the block at a time.
    fn ends_block(&self, time: u64) -> Result<Option<i32>> {
        let of = match self.now.visit {
            Some(visit) if visit.start <= time => Some((visit.node, visit.start)),
            _ => {
                let instance = self.values.at(time)?;
                instance.map(|instance| (instance.node, instance.time))
            }
        };
        let Some((node, start)) = of else {
            return Ok(None);
        };
        let node = &self.values.path().nodes()[node];
        let block = node.blocks.get((time - start) as usize);
        let cfg = self.values.program().function(node.function);
        let block = block.zip(cfg);
        let block = block.and_then(|(&id, function)| function.cfg.blocks.get(id));
        let op = block.and_then(|block| block.ops.end.as_u32().checked_sub(1));
        Ok(op.map(|op| self.ids.statement(node.function, OpId::from_u32(op))))
    }

    /// What the values say about an operand.
    fn origin(&self, origin: Origin) -> Result<Maker> {
        Ok(match origin {
            Origin::Constant => Maker::Constant,
            Origin::Operator { instance, op } => self.made(instance, op),
            Origin::Returned { instance, .. } => {
                let node = &self.values.path().nodes()[instance.node];
                let op = last_op(self.values.program(), node);
                Maker::Returned {
                    time: instance.time + node.length().saturating_sub(1),
                    statement: op.map(|op| self.ids.statement(node.function, op)),
                    call: self.of_guest(self.values.host_call(instance)?)?,
                }
            }
            Origin::Host { call } => Maker::Host {
                call: self.of_guest(Some(call))?,
            },
            Origin::Zero => Maker::Zero,
            Origin::Argument { .. } => Maker::Argument,
            Origin::Initial => Maker::Initial,
        })
    }

    /// What the values say about what is read.
    fn writer(&self, writer: Writer) -> Result<Maker> {
        self.origin(match writer {
            Writer::Initial => Origin::Initial,
            Writer::Host { call } => Origin::Host { call },
            Writer::Write { instance, inst, .. } => Origin::Operator {
                instance,
                op: self.values.compiled(instance.node)?.code.insts[inst].op,
            },
        })
    }

    fn of_guest(&self, call: Option<u64>) -> Result<Option<u64>> {
        let host = self.values.host()?;
        Ok(call.and_then(|call| host.of_guest(call)))
    }

    /// When and by which statement something was made.
    fn made(&self, instance: Instance, op: OpId) -> Maker {
        let node = &self.values.path().nodes()[instance.node];
        let function = self.values.program().function(node.function);
        let block = function.and_then(|function| function.block_of(op));
        let at = node.blocks.iter().position(|&other| Some(other) == block);
        Maker::Statement {
            time: instance.time + at.unwrap_or(0) as u64,
            statement: self.ids.statement(node.function, op),
        }
    }

    fn write(&mut self, row: Row, maker: Maker) -> Result<()> {
        let (origin, made, call) = match maker {
            Maker::Constant | Maker::Unknown => return Ok(()),
            Maker::Statement { time, statement } => {
                ("statement", Some((time, Some(statement))), None)
            }
            Maker::Returned {
                time,
                statement,
                call,
            } => ("returned", Some((time, statement)), call),
            Maker::Host { call } => ("host", None, call),
            Maker::Argument => ("argument", None, None),
            Maker::Initial => ("initial", None, None),
            Maker::Zero => ("zero", None, None),
        };
        self.put(row, origin, made, call)
    }

    fn put(
        &mut self,
        row: Row,
        origin: &'static str,
        made: Option<(u64, Option<i32>)>,
        call: Option<u64>,
    ) -> Result<()> {
        let mut word = |word: &'static str| {
            let known = self.words.entry(word);
            known.or_insert_with(|| word.into()).clone()
        };
        let (role_word, origin_word) = (word(row.role), word(origin));
        let [
            ts,
            statement,
            role,
            origin,
            def_ts,
            def_statement,
            host_call,
            bytes,
        ] = self.file.row()?;
        ts.count(row.time);
        statement.maybe(row.statement);
        role.shared(&role_word);
        origin.shared(&origin_word);
        def_ts.maybe(made.map(|(time, _)| time as i64));
        def_statement.maybe(made.and_then(|(_, statement)| statement));
        host_call.maybe(call.map(|call| call as i64));
        bytes.count(row.bytes);
        Ok(())
    }
}

/// Keeping the shadow while the machine runs.
impl Dependences<'_> {
    /// Does something that may fail, unless something has.
    fn attempt(&mut self, act: impl FnOnce(&mut Self) -> Result<()>) {
        if self.failed.is_none()
            && let Err(error) = act(self)
        {
            self.failed = Some(error);
        }
    }

    /// The writers of what an instruction reads of memory.
    fn reads(&mut self, inst: usize, range: Range, is_copy: bool) -> Result<()> {
        let mut parts = self.bytes.read(range);
        if parts.iter().any(|(_, maker)| *maker == Maker::Unknown) {
            let instance = self.instance()?;
            let readings = match is_copy {
                true => self.values.copied(instance, inst)?,
                false => self.values.reading(instance, inst)?,
            };
            let mut at = range.address;
            for reading in readings {
                let length = match reading.length {
                    0 => range.length,
                    length => length,
                };
                let part = Range {
                    address: at,
                    length,
                    ..range
                };
                let maker = self.writer(reading.writer)?;
                self.bytes.write(part, maker);
                at = at.wrapping_add(length);
            }
            parts = self.bytes.read(range);
        }
        self.now.reads.push((inst, "memory", parts));
        Ok(())
    }

    /// The innermost activation gets results in its variables from `first` on.
    fn take_results(&mut self, first: u32, count: u32) {
        if let Some(frame) = self.frames.last_mut() {
            for (variable, at) in (first..first + count).zip(0..) {
                let maker = self.given.get(at).copied();
                frame.set(variable, maker.unwrap_or_default());
            }
        }
        self.given_end = Some(first + count);
    }

    fn statement_at(&self, inst: usize) -> Maker {
        let place = self
            .now
            .plan
            .as_ref()
            .and_then(|plan| plan.places.get(inst));
        match (place, self.now.visit) {
            (Some(&(block, statement)), Some(visit)) => Maker::Statement {
                time: visit.start + u64::from(block),
                statement,
            },
            _ => Maker::Unknown,
        }
    }

    /// Notes what a node did to the variables and which edges it took.
    fn leave_node(&mut self) -> Result<()> {
        let (Some(plan), Some(visit)) = (self.now.plan.clone(), self.now.visit) else {
            return Ok(());
        };
        let mut given = Vec::with_capacity(plan.given.len());
        for &from in &plan.given {
            given.push(self.maker_lazily(from, visit));
        }
        self.given = given;
        let outputs = plan.outputs.iter();
        let outputs = outputs.map(|&(to, from)| (to, self.maker_lazily(from, visit)));
        let outputs = Vec::from_iter(outputs);
        if let Some(frame) = self.frames.last_mut() {
            for (to, maker) in outputs {
                frame.set(to, maker);
            }
            for &(position, edge) in &plan.taken {
                frame.taken.insert(edge, visit.start + u64::from(position));
            }
            frame.last = Some((plan.last, visit.last()));
        }
        self.now.done = true;
        Ok(())
    }

    /// Who made something, which stays unknown if it is.
    fn maker_lazily(&self, from: From, visit: Visit) -> Maker {
        match from {
            From::Constant => Maker::Constant,
            From::Own(block, statement) => Maker::Statement {
                time: visit.start + u64::from(block),
                statement,
            },
            From::Variable(variable) => {
                let frame = self.frames.last();
                frame.map_or(Maker::Unknown, |frame| frame.get(variable))
            }
        }
    }

    /// The edge over which the activation comes to a node.
    fn arrive(&mut self) {
        let (Some(plan), Some(visit)) = (self.now.plan.clone(), self.now.visit) else {
            return;
        };
        let program = self.values.program();
        let function = self.values.path().nodes()[visit.node].function;
        let Some(code) = program.function(function) else {
            return;
        };
        let control = self.controls.of(function, &code.cfg);
        if let Some(frame) = self.frames.last_mut()
            && let Some((from, time)) = frame.last
        {
            for edge in control.edges(&code.cfg, from, plan.first) {
                frame.taken.insert(edge, time);
            }
        }
    }
}

impl Observer for Dependences<'_> {
    const REGISTERS: bool = false;

    fn node(&mut self, _: NodeId, _: &NodeCode) {
        // Those that were open before the window. One that the host begins has just been entered.
        if std::mem::take(&mut self.is_new) {
            let missing = self.now.depth.saturating_sub(self.frames.len());
            let before = (0..missing).map(|_| Frame::default());
            self.frames.splice(0..0, before);
        }
        self.arrive();
    }

    fn read(&mut self, inst: usize, range: Range) {
        self.attempt(|this| this.reads(inst, range, false));
    }

    fn write(&mut self, inst: usize, range: Range) {
        let maker = self.statement_at(inst);
        self.bytes.write(range, maker);
    }

    fn copy(&mut self, inst: usize, from: Range, to: Range) {
        if from.length > 0 {
            self.attempt(|this| this.reads(inst, from, true));
        }
        let maker = self.statement_at(inst);
        self.bytes.write(to, maker);
    }

    fn read_global(&mut self, inst: usize, global: u32) {
        self.attempt(|this| {
            let maker = match this.globals.get(&global) {
                Some(known) => *known,
                None => {
                    let instance = this.instance()?;
                    let readings = this.values.reading(instance, inst)?;
                    let maker = match readings.first() {
                        Some(reading) => this.writer(reading.writer)?,
                        None => Maker::Constant,
                    };
                    this.globals.insert(global, maker);
                    maker
                }
            };
            this.now.reads.push((inst, "global", vec![(0, maker)]));
            Ok(())
        });
    }

    fn write_global(&mut self, inst: usize, global: u32) {
        let maker = self.statement_at(inst);
        self.globals.insert(global, maker);
    }

    fn done(&mut self, _: &NodeCode, _: &[u64], _: &[u64]) {
        self.attempt(|this| {
            this.rows(usize::MAX, false)?;
            this.leave_node()
        });
    }

    fn stopped(&mut self, _: &NodeCode, executed: usize, _: &[u64], _: &[u64]) {
        self.attempt(|this| this.rows(executed, true));
    }

    fn enter(&mut self, function: FuncId, by: Caller) {
        let program = self.values.program();
        let params = program.type_of(function).map_or(0, |ty| ty.params.len());
        // The block before this node called.
        let call = self.now.visit.map_or(0, |visit| visit.start - 1);
        let frame = match by {
            Caller::Host => Frame::new(Began::Host, vec![Maker::Argument; params]),
            // Who made the arguments was lost with the end of the last window.
            _ if self.is_new => Frame::new(Began::Call(call), vec![Maker::Unknown; params]),
            _ => Frame::new(Began::Call(call), self.given.clone()),
        };
        self.frames.push(frame);
    }

    fn leave(&mut self, results: Option<(u32, u32)>) {
        self.frames.pop();
        if let Some((first, count)) = results {
            self.take_results(first, count);
        }
    }

    fn host_call(&mut self) {
        self.attempt(|this| {
            let call = match this.now.done {
                true => {
                    let instance = this.instance()?;
                    this.of_guest(this.values.host_call(instance)?)?
                }
                false => None,
            };
            this.now.host = Some(call);
            Ok(())
        });
    }

    fn host_write(&mut self, range: Range) {
        let call = self.now.host.flatten();
        self.bytes.write(range, Maker::Host { call });
    }

    fn host_returned(&mut self, first: u32, count: u32) {
        let returned = Maker::Returned {
            time: self.now.visit.map_or(0, |visit| visit.last()),
            statement: self.now.plan.as_ref().and_then(|plan| plan.last_statement),
            call: self.now.host.flatten(),
        };
        self.given = vec![returned; count as usize];
        self.take_results(first, count);
    }

    fn caught(&mut self, first: u32, count: u32) {
        // The values say who threw it; a reference may follow.
        if let Some(frame) = self.frames.last_mut() {
            for variable in first..=first + count {
                frame.set(variable, Maker::Unknown);
            }
        }
        self.given_end = None;
    }

    fn passes_on(&mut self, function: FuncId) {
        let program = self.values.program();
        let count = program.type_of(function).map_or(0, |ty| ty.results.len()) as u32;
        let first = self.given_end.and_then(|end| end.checked_sub(count));
        self.given = match self.frames.last().zip(first) {
            Some((frame, first)) => {
                let variables = first..first + count;
                variables.map(|variable| frame.get(variable)).collect()
            }
            None => vec![Maker::Unknown; count as usize],
        };
    }
}
