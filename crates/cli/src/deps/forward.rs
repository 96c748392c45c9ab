//! Forward: who used what an execution of a statement made, and what it let be executed.

use std::collections::HashSet;
use std::io::Write;

use afterimage_ids::OpId;
use afterimage_present::{grouped, value_text};
use afterimage_replay::values::{
    Controlled, Execution, Instance, Kind, Statement, Use, Uses, ValuesError, definition,
};
use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::host::place;
use super::{DependenceQuery, Line, Point, Scene, Texts};
use crate::output::harmless;

/// What used something, told.
#[derive(Default)]
pub(super) struct Users {
    told: Vec<UseRow>,
    /// How many there are besides.
    more: u64,
    /// Of which parts of the run nothing is known.
    unknown: Vec<String>,
}

/// A use.
struct UseRow {
    role: String,
    to: Line,
    json: Value,
    /// What used what it made.
    further: Users,
}

impl Users {
    /// Adds them to an object.
    pub(super) fn json(&self, to: &mut Value) {
        let told = self.told.iter().map(|told| {
            let mut json = told.json.clone();
            if !told.further.is_empty() {
                told.further.json(&mut json);
            }
            json
        });
        to["uses"] = told.collect();
        to["more"] = json!(self.more);
        if !self.unknown.is_empty() {
            to["unknown"] = json!(self.unknown);
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.told.is_empty() && self.more == 0 && self.unknown.is_empty()
    }
}

impl<'a> Scene<'a> {
    /// Writes uses, and those that they lead to, farther to the right.
    pub(super) fn users_tree(
        &self,
        out: &mut dyn Write,
        texts: &Texts,
        users: &Users,
        depth: usize,
    ) -> Result<()> {
        let indent = 2 * depth;
        let roles = users.told.iter().map(|told| told.role.len()).max();
        let roles = roles.unwrap_or(0);
        for told in &users.told {
            let to = self.line(&told.to, texts);
            writeln!(out, "{:indent$}{:<roles$}  → {to}", "", told.role)?;
            self.users_tree(out, texts, &told.further, depth + 1)?;
        }
        if users.more > 0 {
            let more = grouped(users.more);
            writeln!(out, "{:indent$}… {more} more: --limit N", "")?;
        }
        for unknown in &users.unknown {
            writeln!(out, "{:indent$}? {unknown}", "")?;
        }
        Ok(())
    }

    /// What used what an operator made, and what it let run, `depth` steps on.
    pub(super) fn users(
        &self,
        asked: &DependenceQuery<'_, 'a>,
        point: Point,
        depth: u32,
        seen: &mut HashSet<Point>,
    ) -> Result<Users> {
        let mut users = Users::default();
        let values = asked.host.values();
        if asked.data
            && let Some(statement) = self.statement(values, point.instance, point.op)?
        {
            users = self.used(asked, point.instance, statement, depth, seen)?;
        }
        if asked.control {
            self.let_run(asked, point, depth, seen, &mut users)?;
        }
        Ok(users)
    }

    /// What an operator let run.
    fn let_run(
        &self,
        asked: &DependenceQuery<'_, 'a>,
        point: Point,
        depth: u32,
        seen: &mut HashSet<Point>,
        users: &mut Users,
    ) -> Result<()> {
        let values = asked.host.values();
        let mut blocks = asked
            .controllers
            .controlled(values, point.instance, point.op)?;
        let mut shown = 0;
        while shown < asked.limit
            && let Some(block) = blocks.next()?
        {
            let mut told = self.block(&block)?;
            if depth > 1 {
                told.further = self.in_block(asked, &block, depth - 1, seen)?;
            }
            users.told.push(told);
            shown += 1;
        }
        users.more += blocks.rest()?;
        Ok(())
    }

    /// What depends on the statements of a block that was let run.
    fn in_block(
        &self,
        asked: &DependenceQuery<'_, 'a>,
        block: &Controlled,
        depth: u32,
        seen: &mut HashSet<Point>,
    ) -> Result<Users> {
        let mut users = Users::default();
        let values = asked.host.values();
        let instance = values.at(block.time)?;
        let instance = instance.context("an execution that is not there")?;
        let function = self.traced.program().function(block.function);
        let function = function.context("a function that the program does not have")?;
        let ops = &function.cfg.blocks[block.block].ops;
        for op in ops.start.as_u32()..ops.end.as_u32() {
            let op = OpId::from_u32(op);
            let statement = self.statement(values, instance, op)?;
            let calls = matches!(statement, Some(one) if matches!(one.kind, Kind::Call(_)));
            // What a call of the guest's gives is made in the callee.
            let takes = !calls || values.host_call(instance)?.is_some();
            let point = Point {
                instance,
                op,
                takes,
            };
            let ends = op.as_u32() + 1 == ops.end.as_u32();
            let wanted = ends && asked.control || asked.data && statement.is_some();
            if wanted && seen.insert(point) {
                let mut found = Users::default();
                match takes {
                    true => found = self.users(asked, point, depth, seen)?,
                    false if asked.control => {
                        self.let_run(asked, point, depth, seen, &mut found)?;
                    }
                    false => {}
                }
                users.told.extend(found.told);
                users.more += found.more;
                users.unknown.extend(found.unknown);
            }
        }
        users.unknown.dedup();
        Ok(users)
    }

    /// Who used what a statement made, `depth` steps on.
    fn used(
        &self,
        asked: &DependenceQuery<'_, 'a>,
        instance: Instance,
        statement: Statement,
        depth: u32,
        seen: &mut HashSet<Point>,
    ) -> Result<Users> {
        let mut users = Users::default();
        let host = asked.host;
        let compiled = host.values().compiled(instance.node)?;
        let Some(definition) = definition(&compiled, instance, statement) else {
            return Ok(users);
        };
        let program = self.traced.program();
        let mut uses = match Uses::of(host, program, definition) {
            Ok(uses) => uses.ending(self.traced.stops()?.first().copied()),
            Err(error) if error.is_outside() => {
                users.unknown.push(error.to_string());
                return Ok(users);
            }
            Err(error) => return Err(error.into()),
        };
        let rest = loop {
            if users.told.len() as u64 == asked.limit {
                break uses.rest();
            }
            match uses.next() {
                Ok(Some(found)) => {
                    let told = self.told(asked, &found, depth, seen)?;
                    users.told.push(told);
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
                "who read it in functions that were left out is not known: values were kept without {}",
                left_out.words
            ));
        }
        for gap in uses.unknown() {
            users.unknown.push(format!(
                "who read it from t={} to t={} is not known: values were not kept there",
                grouped(*gap.start()),
                grouped(*gap.end())
            ));
        }
        Ok(users)
    }

    /// A use, and those that it leads to.
    fn told(
        &self,
        asked: &DependenceQuery<'_, 'a>,
        found: &Use,
        depth: u32,
        seen: &mut HashSet<Point>,
    ) -> Result<UseRow> {
        let values = asked.host.values();
        let instance = found.instance(values)?;
        let (time, function, offset) = self.when(values, instance, found.op)?;
        let execution = Execution {
            number: 0,
            time,
            instance,
            statement: Some(found.statement),
        };
        let trapped = self.trapped_at(function, found.op, time);
        let given = match found.statement.kind {
            // It is the value itself.
            Kind::Return => Vec::new(),
            _ if trapped.is_some() => Vec::new(),
            _ => match self.types.given(values, &execution, found.op) {
                Err(ValuesError::Outside { .. }) => Vec::new(),
                given => given?,
            },
        };
        let given = given.iter().map(|value| value_text(value.ty, value.bits));
        let given = Vec::from_iter(given);
        let shown = match (trapped, given.is_empty()) {
            (Some(why), _) => format!("  trapped ({why})"),
            (None, true) => String::new(),
            (None, false) => format!(" = {}", given.join(", ")),
        };
        let role = match (found.read, found.bytes) {
            (Some(range), _) => place(range),
            (None, 0) => match found.elements {
                0 | 1 => found.role.to_owned(),
                many => format!("{} ({many} elements)", found.role),
            },
            (None, 1) => format!("{} (1 byte)", found.role),
            (None, bytes) => format!("{} ({bytes} bytes)", found.role),
        };
        let mut json = json!({
            "to": "operator",
            "role": found.role,
            "t": time,
            "function": self.names.function(function),
            "offset": offset.0,
            "values": given,
        });
        if found.bytes > 0 {
            json["bytes"] = json!(found.bytes);
        }
        if found.elements > 0 {
            json["elements"] = json!(found.elements);
        }
        if let Some(range) = found.read {
            json["address"] = json!(range.address);
        }
        if let Some(why) = trapped {
            json["trapped"] = json!(why);
        }
        let further = if depth > 1 {
            self.after_use(asked, (instance, found), depth - 1, seen)?
        } else {
            Users::default()
        };
        Ok(UseRow {
            role,
            to: Line {
                after: shown,
                ..Line::at(time, function, offset)
            },
            json,
            further,
        })
    }

    /// What depends on a use. A call of the guest's only hands its arguments on, as a return and a throw do: they are told of where they are used.
    fn after_use(
        &self,
        asked: &DependenceQuery<'_, 'a>,
        (instance, found): (Instance, &Use),
        depth: u32,
        seen: &mut HashSet<Point>,
    ) -> Result<Users> {
        let values = asked.host.values();
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
            return Ok(Users::default());
        }
        match found.statement.kind {
            Kind::Return => Ok(Users::default()),
            Kind::Throw if hands_on => self.used(asked, instance, found.statement, depth, seen),
            Kind::Call(_) if !takes => {
                let mut users = Users::default();
                if asked.control {
                    self.let_run(asked, point, depth, seen, &mut users)?;
                }
                Ok(users)
            }
            _ => self.users(asked, point, depth, seen),
        }
    }

    /// A block that was let run.
    fn block(&self, block: &Controlled) -> Result<UseRow> {
        let plain = |before| Line {
            before,
            ..Line::default()
        };
        let function = self.traced.program().function(block.function);
        let function = function.context("a function that the program does not have")?;
        let ops = &function.cfg.blocks[block.block].ops;
        let (first, end) = (ops.start.as_u32(), ops.end.as_u32());
        let offsets = self.index.offsets(function);
        let of_block = offsets.get(first as usize..end as usize);
        let of_block = of_block.context("a block that the program does not have")?;
        let statements = self.types.statements(function.id);
        let statements = statements.map_or(0, |ssa| {
            let all = ssa.statements.values();
            all.filter(|statement| ops.contains(&statement.op)).count()
        });
        let (Some(first), Some(last)) = (of_block.first(), of_block.last()) else {
            let name = self.names.function(function.id);
            return Ok(UseRow {
                role: "control".to_owned(),
                to: plain(format!(
                    "t={}  a block without operators  in {}",
                    grouped(block.time),
                    harmless(name)
                )),
                json: json!({
                    "to": "block", "role": "control", "t": block.time,
                    "function": name, "statements": 0,
                }),
                further: Users::default(),
            });
        };
        let what = match statements {
            1 => "1 statement".to_owned(),
            many => format!("{} statements", grouped(many as u64)),
        };
        let name = self.names.function(function.id);
        Ok(UseRow {
            role: "control".to_owned(),
            to: plain(format!(
                "t={}  {}",
                grouped(block.time),
                self.stretch(function.id, *first, *last, &what)
            )),
            json: json!({
                "to": "block",
                "role": "control",
                "t": block.time,
                "function": name,
                "offset": first.0,
                "last_offset": last.0,
                "statements": statements,
            }),
            further: Users::default(),
        })
    }
}
