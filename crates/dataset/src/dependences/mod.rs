//! Writes the direct dependences of the executions in a window.
//!
//! While the window is followed, a [shadow](crate::shadow) holds the last writer of each variable,
//! global and byte, and the edges that each activation took. Writers before the window are looked
//! up once in the stored values. Writers of tables and sizes, and the control dependences in
//! exception handlers, are always looked up there.

mod follow;

use std::collections::HashMap;
use std::rc::Rc;

use afterimage::Session;
use afterimage_ids::{EntityRef, NodeId, OpId};
use afterimage_machine::NodeCode;
use afterimage_replay::values::{
    Controller, Controllers, Execution, Instance, Kind, Origin, RecordedValues, origin_of,
};
use afterimage_wet::{TableOrSize, Writer};
use afterimage_wpp::Visit;
use anyhow::{Context, Result};
use parquet::data_type::ByteArray;

use crate::depends::{Controls, Decides, DependPlan, MadeBy};
use crate::file::TableFile;
use crate::ids::Ids;
use crate::shadow::{Began, Bytes, Decided, Frame, Maker, Part};
use crate::whole::last_op;

/// The writer of the table of dependences.
pub(crate) struct Dependences<'a> {
    ids: &'a Ids,
    values: RecordedValues<'a>,
    controllers: Controllers<'a>,
    controls: Controls,
    plans: Vec<Option<Rc<DependPlan>>>,
    file: TableFile,
    /// The names of roles and origins, which rows share.
    words: HashMap<&'static str, ByteArray>,
    frames: Vec<Frame>,
    globals: HashMap<u32, Maker>,
    bytes: Bytes,
    /// The arguments of a call, or its results.
    given: Vec<Maker>,
    /// The end of the variables that received the results of the last call, or `None` after an
    /// exception.
    given_end: Option<u32>,
    /// Whether no node has been executed yet.
    is_new: bool,
    /// The node being executed.
    now: Now,
    /// The first error. It is kept here because an observer cannot return one.
    failed: Option<anyhow::Error>,
}

/// The node being executed.
#[derive(Default)]
struct Now {
    plan: Option<Rc<DependPlan>>,
    visit: Option<Visit>,
    /// The number of open activations, including the node's own.
    depth: usize,
    instance: Option<Instance>,
    /// The origins of the data that the node's instructions have read so far.
    reads: Vec<(usize, &'static str, Vec<Part>)>,
    /// The number of the node's host call. The inner value is `None` if the number is unknown.
    host: Option<Option<u64>>,
    done: bool,
}

/// A dependence of an execution, without its producer.
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

    /// Begins a node that the innermost of `depth` activations will execute.
    pub fn begin(&mut self, visit: Visit, depth: usize, code: &NodeCode) -> Result<()> {
        self.now = Now {
            plan: Some(self.plan(visit.node, code)?),
            visit: Some(visit),
            depth,
            ..Now::default()
        };
        Ok(())
    }

    /// Fails if an error occurred during the node's execution.
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

    /// Adds the rows for the first `executed` instructions of a node.
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

    /// Adds the rows for the table elements or the size that a statement uses.
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

    /// Returns the producer of an operand.
    fn maker(&mut self, from: MadeBy, visit: Visit) -> Result<Maker> {
        match from {
            MadeBy::Constant => Ok(Maker::Constant),
            MadeBy::Own(block, statement) => Ok(Maker::Statement {
                time: visit.start + u64::from(block),
                statement,
            }),
            MadeBy::Variable(variable) => self.variable(variable),
        }
    }

    /// Returns the producer of a variable of the innermost activation.
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

    /// Adds the row for the decision or call that led to a block.
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
        // A decision from before the window stays valid until the window has a later one.
        let is_kept = !matches!(decides, Decides::Asked);
        let before = frame.and_then(|frame| frame.before.get(&id));
        let found = match before.filter(|_| is_kept) {
            Some(before) => before.clone(),
            None => self.look_up(time)?,
        };
        for &decided in &found {
            self.control_row(time, decided)?;
        }
        if let Some(frame) = self.frames.last_mut().filter(|_| is_kept) {
            frame.before.insert(id, found);
        }
        Ok(())
    }

    /// Looks up the decision or call that led to a block in the stored values.
    fn look_up(&mut self, time: u64) -> Result<Vec<Decided>> {
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

    /// Returns the operator that ends the block executed at this time.
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

    /// Converts the origin of an operand in the stored values to a producer.
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

    /// Converts the writer of a read in the stored values to a producer.
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

    /// Returns an execution of an operator as a producer.
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
