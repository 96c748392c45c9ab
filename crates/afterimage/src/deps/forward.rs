//! Forward dependences: the users of a statement's results, and the executions that it allowed.

use std::collections::HashSet;

use afterimage_ids::OpId;
use afterimage_present::document::objects::Function;
use afterimage_present::{BlockRun, DepsUse, DepsUsers, OperatorUse, UsedBy, grouped};
use afterimage_replay::values::{
    Controlled, Execution, Instance, Kind, Statement, Use, Uses, ValuesError, definition,
};
use anyhow::{Context, Result};

use super::{Finder, Point};

impl Finder<'_, '_> {
    /// Returns the uses of an operator's result, and the blocks that depend on it, up to `depth`
    /// steps forward.
    pub(super) fn users(
        &self,
        point: Point,
        depth: u32,
        seen: &mut HashSet<Point>,
    ) -> Result<DepsUsers> {
        let mut users = DepsUsers::default();
        if self.query.along.data()
            && let Some(statement) = self.statement(point.instance, point.op)?
        {
            users = self.used(point.instance, statement, depth, seen)?;
        }
        if self.query.along.control() {
            self.let_run(point, depth, seen, &mut users)?;
        }
        Ok(users)
    }

    /// Finds the executions that an operator's decision allowed.
    fn let_run(
        &self,
        point: Point,
        depth: u32,
        seen: &mut HashSet<Point>,
        users: &mut DepsUsers,
    ) -> Result<()> {
        let values = self.scene.values;
        let controllers = &self.scene.controllers;
        let mut blocks = controllers.controlled(values, point.instance, point.op)?;
        let mut shown = 0;
        while shown < self.query.limit
            && let Some(block) = blocks.next()?
        {
            let further = if depth > 1 {
                self.in_block(&block, depth - 1, seen)?
            } else {
                DepsUsers::default()
            };
            users.uses.push(DepsUse {
                role: "control".to_owned(),
                to: UsedBy::Block(self.block(&block)?),
                further: not_empty(further),
            });
            shown += 1;
        }
        users.more += blocks.rest()?;
        Ok(())
    }

    /// Returns the dependents of the statements in a block that was executed because of a decision
    /// or a call.
    fn in_block(
        &self,
        block: &Controlled,
        depth: u32,
        seen: &mut HashSet<Point>,
    ) -> Result<DepsUsers> {
        let mut users = DepsUsers::default();
        let values = self.scene.values;
        let instance = values.at(block.time)?;
        let instance = instance.context("an execution is not in the path")?;
        let function = self.scene.traced.program().function(block.function);
        let function = function.context("the path names a function that is not in the program")?;
        let ops = &function.cfg.blocks[block.block].ops;
        for op in ops.start.as_u32()..ops.end.as_u32() {
            let op = OpId::from_u32(op);
            let statement = self.statement(instance, op)?;
            let calls = matches!(statement, Some(one) if matches!(one.kind, Kind::Call(_)));
            // The result of a call to a guest function is produced in the callee.
            let takes = !calls || values.host_call(instance)?.is_some();
            let point = Point {
                instance,
                op,
                takes,
            };
            let ends = op.as_u32() + 1 == ops.end.as_u32();
            let wanted = ends && self.query.along.control()
                || self.query.along.data() && statement.is_some();
            if wanted && seen.insert(point) {
                let mut found = DepsUsers::default();
                if takes {
                    found = self.users(point, depth, seen)?;
                } else if self.query.along.control() {
                    self.let_run(point, depth, seen, &mut found)?;
                }
                users.uses.extend(found.uses);
                users.more += found.more;
                users.unknown.extend(found.unknown);
            }
        }
        users.unknown.dedup();
        Ok(users)
    }

    /// Returns the users of a statement's results, `depth` steps forward.
    fn used(
        &self,
        instance: Instance,
        statement: Statement,
        depth: u32,
        seen: &mut HashSet<Point>,
    ) -> Result<DepsUsers> {
        let mut users = DepsUsers::default();
        let host = &self.scene.host;
        let compiled = host.values().compiled(instance.node)?;
        let Some(definition) = definition(&compiled, instance, statement) else {
            return Ok(users);
        };
        let program = self.scene.traced.program();
        let mut uses = match Uses::of(host, program, definition) {
            Ok(uses) => uses.ending(self.scene.traced.stops()?.first().copied()),
            Err(error) if error.is_outside() => {
                users.unknown.push(error.to_string());
                return Ok(users);
            }
            Err(error) => return Err(error.into()),
        };
        let rest = loop {
            if users.uses.len() as u64 == self.query.limit {
                break uses.rest();
            }
            match uses.next() {
                Ok(Some(found)) => {
                    let found = self.of_use(&found, depth, seen)?;
                    users.uses.push(found);
                }
                Ok(None) => break Ok(0),
                Err(error) => break Err(error),
            }
        };
        match rest {
            Ok(rest) => users.more = rest,
            Err(error) if error.is_outside() => users.unknown.push(error.to_string()),
            Err(error) => return Err(error.into()),
        }
        if let Some(left_out) = host.values().left_out(instance.time) {
            users.unknown.push(format!(
                "reads in functions that were left out are unknown: the values were built without {}",
                left_out.words
            ));
        }
        for gap in uses.unknown() {
            users.unknown.push(format!(
                "reads from t={} to t={} are unknown: no values were kept there",
                grouped(*gap.start()),
                grouped(*gap.end())
            ));
        }
        Ok(users)
    }

    /// Describes a use, and the uses that follow from it.
    fn of_use(&self, found: &Use, depth: u32, seen: &mut HashSet<Point>) -> Result<DepsUse> {
        let instance = found.instance(self.scene.values)?;
        let (time, function, offset) = self.when(instance, found.op)?;
        let execution = Execution {
            number: 0,
            time,
            instance,
            statement: Some(found.statement),
        };
        let trapped = self.trapped_at(function, found.op, time);
        let values = match found.statement.kind {
            // A return only passes on the value.
            Kind::Return => Vec::new(),
            _ if trapped.is_some() => Vec::new(),
            _ => match self.values_of(&execution, found.op) {
                Err(ValuesError::Outside { .. }) => Vec::new(),
                given => given?,
            },
        };
        let by = OperatorUse {
            execution: self.execution(time, function, offset)?,
            values,
            bytes: Some(found.bytes).filter(|bytes| *bytes > 0),
            elements: Some(found.elements).filter(|elements| *elements > 0),
            read: found.read.map(Into::into),
            trapped: trapped.map(str::to_owned),
        };
        let further = if depth > 1 {
            self.after_use(instance, found, depth - 1, seen)?
        } else {
            DepsUsers::default()
        };
        Ok(DepsUse {
            role: found.role.to_owned(),
            to: UsedBy::Operator(by),
            further: not_empty(further),
        })
    }

    /// Returns the dependents of a use. A call, a return or a throw in the guest only passes values
    /// on, so the uses of these values are reported instead.
    fn after_use(
        &self,
        instance: Instance,
        found: &Use,
        depth: u32,
        seen: &mut HashSet<Point>,
    ) -> Result<DepsUsers> {
        let values = self.scene.values;
        let hands_on = matches!(found.role, "argument" | "carried" | "result");
        let op = found.op;
        let takes = match found.statement.kind {
            Kind::Call(_) => values.host_call(instance)?.is_some(),
            _ => true,
        };
        let point = Point {
            instance,
            op,
            takes,
        };
        if hands_on && !takes || !seen.insert(point) {
            return Ok(DepsUsers::default());
        }
        match found.statement.kind {
            Kind::Return => Ok(DepsUsers::default()),
            Kind::Throw if hands_on => self.used(instance, found.statement, depth, seen),
            Kind::Call(_) if !takes => {
                let mut users = DepsUsers::default();
                if self.query.along.control() {
                    self.let_run(point, depth, seen, &mut users)?;
                }
                Ok(users)
            }
            _ => self.users(point, depth, seen),
        }
    }

    /// Describes a block that was executed because of a decision or a call.
    fn block(&self, block: &Controlled) -> Result<BlockRun> {
        let function = self.scene.traced.program().function(block.function);
        let function = function.context("the path names a function that is not in the program")?;
        let ops = &function.cfg.blocks[block.block].ops;
        let (first, end) = (ops.start.as_u32(), ops.end.as_u32());
        let offsets = self.index.offsets(function);
        let offsets = offsets.get(first as usize..end as usize);
        let offsets = offsets.context("a block is not in the program")?;
        let statements = self.scene.types.statements(function.id);
        let statements = statements.map_or(0, |ssa| {
            let all = ssa.statements.values();
            all.filter(|statement| ops.contains(&statement.op)).count()
        });
        let first = offsets.first().copied();
        Ok(BlockRun {
            t: block.time,
            function: Function::new(self.scene.names, function.id),
            offset: first.map(|offset| offset.0),
            last_offset: offsets.last().map(|offset| offset.0),
            source: first.and_then(|at| self.scene.located(at)),
            statements,
            own: match first {
                Some(first) => self.own.at((function.id, first), block.time)?,
                None => None,
            },
        })
    }
}

fn not_empty(users: DepsUsers) -> Option<Box<DepsUsers>> {
    (!users.is_empty()).then(|| Box::new(users))
}
