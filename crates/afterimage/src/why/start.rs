//! Finds the value to explain.

use std::path::Path;

use afterimage_analyses::why::{At, PutBytes, Spot, ValType, written_before};
use afterimage_ids::OpId;
use afterimage_present::{WhyDeath, WhyEntry, WhyInLine, value_text};
use afterimage_replay::state::Written;
use afterimage_replay::steps::Range;
use afterimage_replay::values::{Execution, Kind};
use afterimage_trace::Ending;
use anyhow::{Result, anyhow, bail};

use crate::explain::Scene;
use crate::places::{self, Site, chosen, executions, nameless_statements, what_let_run, why_not};
use crate::text::pasted;

/// A value to explain.
#[derive(Default)]
pub struct Start {
    /// The place of the value, or `None` if there is no value to follow back.
    pub from: Option<Held>,
    /// The type of the value.
    pub ty: Option<ValType>,
    /// The text of the value. It is empty if the subject is not a single value.
    pub value: String,
    /// The reason for doubt, if the variable's place may hold another value.
    pub written: Option<Written>,
    /// The subject in words, for the beginning of a sentence.
    pub what: String,
    /// The execution of the statement that the question names. For a call that wrote output,
    /// [`place`](Start::place) finds it instead.
    pub place: Option<Spot>,
    /// The execution of the statement, if the value is its result.
    pub spot: Option<Spot>,
    /// The entries that come before the chain.
    pub prelude: Vec<WhyEntry>,
    /// The end of the run, if it is the subject and lies in a library.
    pub death: Option<WhyDeath>,
    /// The other numbers of the line of output, if only the line was named.
    pub in_line: Option<WhyInLine>,
}

/// The place of a value.
pub enum Held {
    /// The whole value.
    At(At),
    /// Some bits of the value, as for a bit-field.
    Bits(At, u64),
    /// Memory at the moment when a call wrote it to the output. Finding the caller and the writer
    /// takes longer than reading the bytes.
    Put {
        /// The call that wrote the bytes.
        put: PutBytes,
        /// The addresses of the bytes.
        range: Range,
    },
}

impl Start {
    /// Returns the subject in words, without a sentence around it.
    pub fn about(&self) -> &str {
        self.what.trim_end_matches(", which").trim_end_matches(',')
    }

    /// Returns the value to follow back and, if only some of its bits are followed, these bits.
    ///
    /// # Errors
    /// Returns an error if the recording is damaged.
    pub fn held(&self, scene: &Scene<'_, '_>) -> Result<Option<(At, Option<u64>)>> {
        Ok(match &self.from {
            None => None,
            Some(Held::At(at)) => Some((*at, None)),
            Some(Held::Bits(at, bits)) => Some((*at, Some(*bits))),
            Some(Held::Put { put, range }) => {
                let caller = put.caller(&scene.host)?;
                let written = written_before(&scene.walk(), &scene.host, caller, *range)?;
                Some((written, None))
            }
        })
    }

    /// Finds the execution of the statement that the question names. This is done only on demand,
    /// because describing an execution requires counting.
    ///
    /// # Errors
    /// Returns an error if the recording is damaged.
    pub fn place(&self, scene: &Scene<'_, '_>) -> Result<Option<Spot>> {
        let Some(Held::Put { put, .. }) = &self.from else {
            return Ok(self.place);
        };
        let caller = put.caller(&scene.host)?;
        let node = &scene.values.path().nodes()[caller.node];
        let function = scene.traced.program().function(node.function);
        let last = function.zip(node.blocks.last());
        let end = last.and_then(|(f, &block)| f.cfg.blocks.get(block));
        let op = end.and_then(|end| end.ops.end.as_u32().checked_sub(1));
        Ok(op.map(|op| scene.walk().spot_of(caller, OpId::from_u32(op))))
    }
}

/// Returns the message for an execution in which the run ended.
fn ended_in(scene: &Scene<'_, '_>, file: &Path, at: &str) -> Result<String> {
    let end = scene.traced.file().end()?;
    let killed = end.is_some_and(|end| {
        matches!(
            end.ending,
            Ending::Exited { .. } | Ending::Exception { .. } | Ending::Trapped { .. }
        )
    });
    let file = pasted(file);
    let see = if killed {
        format!("afterimage why {file} --trap")
    } else {
        format!("afterimage state {file} --at end")
    };
    Ok(format!(
        "the run ended at {at} before the statement gave a value; see: {see}"
    ))
}

/// Finds the value of a named statement, or one of its operands.
pub fn find(scene: &Scene<'_, '_>, file: &Path, at: &str, operand: Option<&str>) -> Result<Start> {
    let found = nameless_statements(scene.traced, scene.names, scene.source(), &scene.types, at)?;
    let mut valueless = None;
    let mut lacking = Vec::new();
    let chosen = chosen(
        scene.traced,
        scene.values,
        (scene.names, scene.source()),
        &found,
        at,
    );
    let chosen = chosen.map_err(|error| {
        let counts = found
            .sites
            .iter()
            .map(|site| executions(scene.traced, scene.values, site));
        if counts
            .into_iter()
            .all(|found| found.is_ok_and(|(_, count)| count == 0))
        {
            let see = why_not(file, at);
            anyhow!("no statement at {at} was ever executed; see: {see}")
        } else {
            error
        }
    })?;
    // The last statement of a line shows the purpose of the line: a value that is stored or
    // returned, or a decision.
    for chosen in chosen.iter().rev() {
        let site = chosen.site;
        let Some(execution) = chosen.get(scene.traced, scene.values)? else {
            continue;
        };
        let ended_there = execution.time == scene.values.path().length()
            && scene.traced.final_operator()? == Some((site.function, site.op));
        if operand.is_none() && ended_there {
            lacking.push(ended_in(scene, file, at)?);
            continue;
        }
        match of_execution(scene, site, &execution, operand)? {
            Explained::Start(start) => return Ok(*start),
            Explained::Valueless => valueless = Some(site),
            Explained::Lacks(sentence) => lacking.push(sentence),
        }
    }
    // The user most likely means the last statement of a line.
    if let Some(sentence) = lacking.into_iter().next() {
        bail!("{sentence}");
    }
    if let Some(site) = valueless {
        let operator = scene.operator(site.function, site.op)?.operator;
        match operand {
            None => {
                let ssa = scene.types.statements(site.function);
                let has_operands = ssa.is_some_and(|ssa| {
                    let statement = ssa.statement_at(site.op);
                    statement.is_some_and(|statement| !ssa.operands(statement).is_empty())
                });
                if has_operands {
                    bail!(
                        "{at}: {operator} gives no value; ask about one of its operands with --operand"
                    );
                }
                bail!(
                    "{at}: {operator} gives no value; to see the decisions that led to it, run: {}",
                    what_let_run(file, at)
                )
            }
            Some(operand) => bail!("{at}: {operator} has no operand {operand}"),
        }
    }
    bail!("{at}: the run ended before any of its statements")
}

/// The parts of a statement's execution that can be explained.
enum Explained {
    Start(Box<Start>),
    /// The statement has no value, or no operands.
    Valueless,
    /// The statement does not have the operand. The text lists the operands that it has.
    Lacks(String),
}

/// Finds the value that an execution of a statement produced, or the value of an operand.
fn of_execution(
    scene: &Scene<'_, '_>,
    site: &Site,
    execution: &Execution,
    operand: Option<&str>,
) -> Result<Explained> {
    let Some(statement) = execution.statement else {
        return Ok(Explained::Valueless);
    };
    let walk = scene.walk();
    let spot = walk.spot_of(execution.instance, site.op);
    scene.numbered(spot, execution.number);
    let place = scene.place(spot)?;
    let where_ = place.own_described();
    let (operands, _) = scene.types.of(site.function, site.op).unwrap_or_default();
    if let Some(wanted) = operand {
        let compiled = scene.values.compiled(execution.instance.node)?;
        let all = statement.operands(&compiled.code);
        let found = places::operand(&all, wanted);
        let Some((one, number)) = found.map(|found| (&all[found], found)) else {
            let known = Vec::from_iter(all.iter().map(|one| one.role));
            return Ok(if known.is_empty() {
                Explained::Valueless
            } else {
                Explained::Lacks(format!(
                    "{} has no operand {wanted}; it has: {}",
                    place.operator,
                    known.join(", ")
                ))
            });
        };
        let ty = operands.get(number).copied();
        let bits = scene.values.value(execution.instance, one.register)?;
        let value = ty.map_or(String::new(), |ty| value_text(ty, bits));
        return Ok(Explained::Start(Box::new(Start {
            from: Some(Held::At(At::Register(execution.instance, one.register))),
            ty,
            what: format!("{value} ({} of {} at {where_})", one.role, place.operator),
            value,
            place: Some(spot),
            spot: Some(spot),
            ..Start::default()
        })));
    }
    let Some(from) = walk.start(execution.instance, statement)? else {
        return Ok(Explained::Valueless);
    };
    let given = scene.types.results_of(scene.values, execution, site.op)?;
    let first = given.first();
    let value = first.map_or(String::new(), |value| value_text(value.ty, value.bits));
    let what = match (&*value, statement.kind) {
        ("", _) => format!("what {} wrote at {where_}", place.operator),
        (value, Kind::Inst(_)) => match first.map_or("", |value| value.role) {
            "" => format!("{value} at {where_}"),
            "decided by" => format!("{value}, which decided it at {where_},"),
            role => format!("{value}, {role} at {where_},"),
        },
        (value, Kind::Return) => format!("{value}, returned at {where_},"),
        (value, _) => format!("{value}, given by the call at {where_},"),
    };
    Ok(Explained::Start(Box::new(Start {
        from: Some(Held::At(from)),
        ty: first.map(|value| value.ty),
        value,
        what,
        place: Some(spot),
        spot: Some(spot),
        ..Start::default()
    })))
}
