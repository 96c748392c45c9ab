//! Forward: who used what an execution of a statement made, and what it let be executed.

use std::collections::HashSet;
use std::io::Write;

use afterimage_ids::OpId;
use afterimage_present::{grouped, value_text};
use afterimage_query::values::{
    Controlled, Controllers, Execution, HostReads, Instance, Kind, Statement, Use, Uses,
    ValuesError, definition,
};
use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::host::place;
use super::{Arguments, Line, Scene, Texts};
use crate::output::harmless;

/// What used something, told.
#[derive(Default)]
pub(super) struct Users {
    told: Vec<Told>,
    /// How many there are besides.
    more: u64,
    /// Of which parts of the run nothing is known.
    unknown: Vec<String>,
}

/// A use.
struct Told {
    role: String,
    to: Line,
    json: Value,
    /// What used what it made.
    further: Users,
}

/// What is asked for.
struct Wanted {
    limit: u64,
    depth: u32,
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

    /// What used an execution, and what it let run.
    pub(super) fn users(
        &self,
        arguments: &Arguments,
        host: &HostReads<'_, 'a>,
        controllers: &Controllers<'a>,
        op: OpId,
        execution: &Execution,
    ) -> Result<Users> {
        let wanted = Wanted {
            limit: arguments.limit,
            depth: arguments.depth,
        };
        let mut users = Users::default();
        let Some(statement) = execution.statement else {
            return Ok(users);
        };
        let instance = execution.instance;
        if !arguments.control {
            let mut seen = HashSet::from([(instance, op)]);
            users = self.used(host, instance, statement, &wanted, wanted.depth, &mut seen)?;
        }
        if !arguments.data {
            let mut blocks = controllers.controlled(host.values(), instance, op)?;
            let mut shown = 0;
            while shown < wanted.limit
                && let Some(block) = blocks.next()?
            {
                users.told.push(self.block(&block)?);
                shown += 1;
            }
            users.more += blocks.rest()?;
        }
        Ok(users)
    }

    /// Who used what a statement made, `depth` steps on.
    fn used(
        &self,
        host: &HostReads<'_, 'a>,
        instance: Instance,
        statement: Statement,
        wanted: &Wanted,
        depth: u32,
        seen: &mut HashSet<(Instance, OpId)>,
    ) -> Result<Users> {
        let mut users = Users::default();
        let compiled = host.values().compiled(instance.node)?;
        let Some(definition) = definition(&compiled, instance, statement) else {
            return Ok(users);
        };
        let program = &self.traced.loaded.program;
        let mut uses = match Uses::of(host, program, definition) {
            Ok(uses) => uses.ending(self.traced.stops.first().copied()),
            Err(error) if error.is_outside() => {
                users.unknown.push(error.to_string());
                return Ok(users);
            }
            Err(error) => return Err(error.into()),
        };
        let rest = loop {
            if users.told.len() as u64 == wanted.limit {
                break uses.rest();
            }
            match uses.next() {
                Ok(Some(found)) => {
                    let told = self.told(host, &found, wanted, depth, seen)?;
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
        host: &HostReads<'_, 'a>,
        found: &Use,
        wanted: &Wanted,
        depth: u32,
        seen: &mut HashSet<(Instance, OpId)>,
    ) -> Result<Told> {
        let values = host.values();
        let instance = found.instance(values)?;
        let (time, function, offset) = self.when(values, instance, found.op)?;
        let execution = Execution {
            number: 0,
            time,
            instance,
            statement: Some(found.statement),
        };
        let given = match found.statement.kind {
            // It is the value itself.
            Kind::Return => Vec::new(),
            _ => match self.types.given(values, &execution, found.op) {
                Err(ValuesError::Outside { .. }) => Vec::new(),
                given => given?,
            },
        };
        let given = given.iter().map(|value| value_text(value.ty, value.bits));
        let given = Vec::from_iter(given);
        let shown = match given.is_empty() {
            true => String::new(),
            false => format!(" = {}", given.join(", ")),
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
            "time": time,
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
        let further = match depth > 1 && seen.insert((instance, found.op)) {
            true => self.used(host, instance, found.statement, wanted, depth - 1, seen)?,
            false => Users::default(),
        };
        Ok(Told {
            role,
            to: Line {
                after: shown,
                ..Line::at(time, function, offset)
            },
            json,
            further,
        })
    }

    /// A block that was let run.
    fn block(&self, block: &Controlled) -> Result<Told> {
        let plain = |before| Line {
            before,
            ..Line::default()
        };
        let function = self.traced.loaded.program.function(block.function);
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
            return Ok(Told {
                role: "control".to_owned(),
                to: plain(format!(
                    "t={}  a block without operators  in {}",
                    grouped(block.time),
                    harmless(name)
                )),
                json: json!({
                    "to": "block", "role": "control", "time": block.time,
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
        Ok(Told {
            role: "control".to_owned(),
            to: plain(format!(
                "t={}  {}",
                grouped(block.time),
                self.stretch(function.id, *first, *last, &what)
            )),
            json: json!({
                "to": "block",
                "role": "control",
                "time": block.time,
                "function": name,
                "offset": first.0,
                "last_offset": last.0,
                "statements": statements,
            }),
            further: Users::default(),
        })
    }
}
