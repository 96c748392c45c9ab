//! The direct dependences of what is executed in a window.

use std::collections::HashMap;
use std::rc::Rc;

use afterimage::Session;
use afterimage_ids::{NodeId, OpId};
use afterimage_replay::values::{
    Controller, Controllers, Execution, Instance, Origin, RecordedValues, Statement, of_statement,
};
use afterimage_wpp::Visit;
use anyhow::{Context, Result};
use parquet::data_type::ByteArray;

use crate::file::TableFile;
use crate::ids::Ids;
use crate::whole::last_op;

/// The statements of a node.
type Statements = Rc<[(OpId, Statement)]>;

/// Writes dependences.
pub(crate) struct Dependences<'a> {
    ids: &'a Ids,
    values: RecordedValues<'a>,
    controllers: Controllers<'a>,
    file: TableFile,
    /// Text that rows share.
    words: HashMap<&'static str, ByteArray>,
    statements: HashMap<NodeId, Statements>,
}

/// One of them.
#[derive(Default)]
struct Row {
    time: u64,
    statement: Option<i32>,
    role: &'static str,
    origin: &'static str,
    made: Option<(u64, Option<i32>)>,
    host_call: Option<u64>,
    bytes: u64,
}

impl<'a> Dependences<'a> {
    pub fn new(session: &'a Session, ids: &'a Ids, file: TableFile) -> Result<Self> {
        Ok(Self {
            ids,
            values: session.values()?,
            controllers: Controllers::new(session.program()),
            file,
            words: HashMap::new(),
            statements: HashMap::new(),
        })
    }

    pub fn into_file(self) -> TableFile {
        self.file
    }

    /// Adds those of an execution of a node.
    pub fn node(&mut self, visit: Visit) -> Result<()> {
        let instance = self.values.at(visit.start)?;
        let instance = instance.context("the values lack a block of the run")?;
        let node = &self.values.path().nodes()[visit.node];
        let statements = self.statements(visit.node)?;
        let mut statements = statements.iter().peekable();
        let stopped = self.values.stopped(instance)?;
        for (block, time) in (0..node.length()).zip(visit.start..) {
            self.control(instance, time)?;
            while let Some((op, statement)) = statements.next_if(|(_, one)| one.block == block) {
                let is_executed = match (statement.kind, stopped) {
                    (afterimage_replay::values::Kind::Inst(inst), Some(count)) => {
                        (inst as u64) < count
                    }
                    (_, Some(_)) => false,
                    (_, None) => true,
                };
                if is_executed {
                    let id = self.ids.statement(node.function, *op);
                    self.data(instance, *statement, (time, id))?;
                }
            }
        }
        Ok(())
    }

    fn statements(&mut self, node: NodeId) -> Result<Statements> {
        if let Some(known) = self.statements.get(&node) {
            return Ok(Rc::clone(known));
        }
        let compiled = self.values.compiled(node)?;
        let blocks = &self.values.path().nodes()[node].blocks;
        let mut all = Statement::all(self.values.program(), &compiled.code, blocks);
        all.sort_by_key(|(_, statement)| statement.block);
        let all: Statements = all.into();
        self.statements.insert(node, Rc::clone(&all));
        Ok(all)
    }

    /// What let a block be executed.
    fn control(&mut self, instance: Instance, time: u64) -> Result<()> {
        let execution = Execution {
            number: 0,
            time,
            instance,
            statement: None,
        };
        for controller in self.controllers.of_execution(&self.values, &execution)? {
            let mut row = Row {
                time,
                role: "control",
                ..Row::default()
            };
            let by = match controller {
                Controller::Branch { time, .. } => Some(("branch", time)),
                Controller::Call { time } => Some(("call", time)),
                Controller::Throw { time } => Some(("throw", time)),
                Controller::Host => None,
            };
            row.origin = by.map_or("host", |(origin, _)| origin);
            if let Some((_, at)) = by {
                row.made = Some((at, self.ends_block(at)?));
            }
            self.write(row)?;
        }
        Ok(())
    }

    /// The operator that ends the block at a time.
    fn ends_block(&self, time: u64) -> Result<Option<i32>> {
        let Some(instance) = self.values.at(time)? else {
            return Ok(None);
        };
        let node = &self.values.path().nodes()[instance.node];
        let block = node.blocks.get((time - instance.time) as usize);
        let cfg = self.values.program().function(node.function);
        let block = block
            .zip(cfg)
            .and_then(|(&id, function)| function.cfg.blocks.get(id));
        let op = block.and_then(|block| block.ops.end.as_u32().checked_sub(1));
        Ok(op.map(|op| self.ids.statement(node.function, OpId::from_u32(op))))
    }

    /// Who made the operands of a statement, and what it reads.
    fn data(
        &mut self,
        instance: Instance,
        statement: Statement,
        (time, id): (u64, i32),
    ) -> Result<()> {
        for found in of_statement(&self.values, instance, statement)? {
            let mut row = Row {
                time,
                statement: Some(id),
                role: found.role,
                bytes: found.bytes,
                ..Row::default()
            };
            match found.origin {
                Origin::Constant => continue,
                Origin::Operator { instance, op } => {
                    row.origin = "statement";
                    row.made = Some(self.made(instance, op));
                }
                Origin::Returned { instance, .. } => {
                    row.origin = "returned";
                    let node = &self.values.path().nodes()[instance.node];
                    let op = last_op(self.values.program(), node);
                    let op = op.map(|op| self.ids.statement(node.function, op));
                    row.made = Some((instance.time + node.length().saturating_sub(1), op));
                    let call = self.values.host_call(instance)?;
                    row.host_call = self.of_guest(call)?;
                }
                Origin::Host { call } => {
                    row.origin = "host";
                    row.host_call = self.of_guest(Some(call))?;
                }
                Origin::Zero => row.origin = "zero",
                Origin::Argument { .. } => row.origin = "argument",
                Origin::Initial => row.origin = "initial",
            }
            self.write(row)?;
        }
        Ok(())
    }

    fn of_guest(&self, call: Option<u64>) -> Result<Option<u64>> {
        let host = self.values.host()?;
        Ok(call.and_then(|call| host.of_guest(call)))
    }

    /// When and by which statement something was made.
    fn made(&self, instance: Instance, op: OpId) -> (u64, Option<i32>) {
        let node = &self.values.path().nodes()[instance.node];
        let function = self.values.program().function(node.function);
        let block = function.and_then(|function| function.block_of(op));
        let at = node.blocks.iter().position(|&other| Some(other) == block);
        let time = instance.time + at.unwrap_or(0) as u64;
        (time, Some(self.ids.statement(node.function, op)))
    }

    fn write(&mut self, row: Row) -> Result<()> {
        for word in [row.role, row.origin] {
            self.words.entry(word).or_insert_with(|| word.into());
        }
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
        role.shared(&self.words[row.role]);
        origin.shared(&self.words[row.origin]);
        def_ts.maybe(row.made.map(|(time, _)| time as i64));
        def_statement.maybe(row.made.and_then(|(_, statement)| statement));
        host_call.maybe(row.host_call.map(|call| call as i64));
        bytes.count(row.bytes);
        Ok(())
    }
}
