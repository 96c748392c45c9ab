//! Reports what memory contained at a moment.

pub(crate) mod variable;

use afterimage_ids::OrigOffset;
use afterimage_present::document::JsonLines;
use afterimage_present::document::objects::MemoryRange;
use afterimage_present::{
    CodeOf, FoldedSteps, MemoryPart, MemoryReport, StepRow, StepScene, Stretch, Style, TraceHead,
    VariableThere, grouped, step_rows, steps_text,
};
use afterimage_profile::location::number;
use afterimage_program::{Names, SourceMap};
use afterimage_replay::RecordingError;
use afterimage_replay::steps::{
    At, LARGEST_RANGE, Level, NearestAccess, Operators, Range, Step, Steps, Wanted, Within,
    WriteIndex, memory_at,
};
use afterimage_replay::whole_path::{At as Moment, Window};
use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};

use crate::Session;
use crate::named::with_names;
use crate::own::OwnLines;
use crate::rows::{Form, MORE, Rows, next_of};
use crate::steps::follow;
use crate::text::pasted;
use variable::VariableInMemory;

/// Asks what memory contained, what wrote it last, and what reads and writes it next.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryQuery {
    /// The bytes that the query is about.
    pub bytes: MemoryBytes,
    /// The moment right before this place or block is executed: `parser.c:42#7`, `50%`. The default
    /// is the end of the run or, for a local variable, the last moment at which it was in scope.
    pub at: Option<String>,
}

/// A selection of bytes of memory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MemoryBytes {
    /// A range of addresses.
    Range {
        /// The index of the memory.
        memory: u32,
        /// The first address.
        address: u64,
        /// The number of bytes.
        bytes: u64,
    },
    /// The bytes of a source variable, or of an expression such as `p->next`.
    Variable(String),
}

/// The approximate number of blocks to follow in search of the next accesses, if the session has an
/// index of the stretches that wrote bytes. See [`WriteIndex::Stretches`].
const MOST_FOLLOWED: u64 = 1 << 22;

/// The number of bytes to show at a single address.
const WORD: u64 = 8;

/// Parses addresses: `0x1040` for 8 bytes, or `0x1040..0x107f`, inclusive. Returns the first
/// address and the number of bytes.
///
/// # Errors
/// Returns an error if the text is neither.
pub fn addresses(text: &str) -> Result<(u64, u64), String> {
    let address = |text: &str| {
        let hex = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"));
        let number = match hex {
            Some(hex) if hex.bytes().all(|b| b.is_ascii_hexdigit()) => {
                u64::from_str_radix(hex, 16).ok()
            }
            Some(_) => None,
            None => number(text),
        };
        number.ok_or_else(|| {
            format!(
                "\"{text}\" is not an address: write 0x1040, or decimal \
            digits"
            )
        })
    };
    let Some((first, last)) = text.split_once("..") else {
        return Ok((address(text)?, WORD));
    };
    let (first, last) = (address(first)?, address(last)?);
    if last < first {
        return Err("the second address is before the first".to_owned());
    }
    if last - first >= LARGEST_RANGE {
        return Err(format!(
            "the range is longer than {} bytes, the most that can be shown at once",
            grouped(LARGEST_RANGE)
        ));
    }
    Ok((first, last - first + 1))
}

impl MemoryQuery {
    /// Writes the reads and writes of the bytes, in order. For a local variable, writes only the
    /// accesses during its call. Calls `ensure` to build the values if a variable needs them. The
    /// path must exist.
    ///
    /// # Errors
    /// Returns an error if the program has no such memory, place or variable, the variable is not
    /// in memory, or the run cannot be followed.
    pub fn write_accesses(
        &self,
        session: &Session,
        ensure: &dyn Fn() -> Result<()>,
        to: &Rows<'_>,
    ) -> Result<()> {
        with_names(session, |program| {
            let session = program.session;
            let at = self.moment(session, program.names, program.source)?;
            let (range, found) = self.bytes(session, program.names, at, ensure)?;
            let variable = found.map(|found| found.variable);
            let is_folded = to.form == Form::Text && !program.own.folded.shows_all();
            let scene = match is_folded {
                true => program.own_scene(to.style),
                false => program.scene(to.style),
            };
            let lines = (program.own.folded, program.names);
            let lines = OwnLines::new(session, session.path()?, lines);
            let code = |step: &Step| lines.of_step(program.operators, step, true);
            let length = session.path()?.length();
            let call = variable.as_ref().and_then(|v| v.call.as_ref());
            let (first, last) = call.map_or((1, length), |call| (call.first_t, call.last_t));
            let (level, window) = (Level::Memory, Window { first, last });
            let wanted = Wanted {
                level,
                window,
                within: Within::default(),
                function: None,
                range: Some(range),
            };
            let stretch = Stretch {
                window,
                reverse: false,
                function: None,
            };
            follow(session, |run, log| {
                let mut steps = Steps::new(run, log, wanted)?;
                let mut next = || next_of(steps.next());
                to.write(MORE, |out| {
                    if to.form != Form::Text {
                        let (out, limit) = (&mut JsonLines(out), to.limit);
                        let head = TraceHead::of_steps(&scene, level, &stretch, length);
                        step_rows(out, head, &scene, &mut next, limit)?;
                        return Ok(false);
                    }
                    if let Some(variable) = &variable {
                        variable.head(out)?;
                    }
                    let code = is_folded.then_some(&code as &CodeOf<'_>);
                    let mut rows = FoldedSteps::new(&mut next, code);
                    let more = steps_text(out, &scene, &mut rows, (level, length), to.limit)?;
                    Ok(more.is_some())
                })
            })
        })
    }

    /// Returns the contents of the bytes, and their accesses around the moment.
    ///
    /// # Errors
    /// Returns the same errors as [`write_accesses`](Self::write_accesses).
    pub fn answer(
        &self,
        session: &Session,
        ensure: &dyn Fn() -> Result<()>,
    ) -> Result<MemoryReport> {
        let loaded = session.module();
        let source = session.source_map();
        let names = session.program_names();
        let at = self.moment(session, names, source)?;
        let (range, found) = self.bytes(session, names, at, ensure)?;
        let values = match session.values() {
            Err(RecordingError::NoValues) => None,
            values => Some(values?),
        };
        let log = || session.file().log();
        let index = match (session.writers(), &values) {
            (Some(writers), _) => WriteIndex::Stretches {
                writers,
                log: &log,
                most: MOST_FOLLOWED,
            },
            (None, Some(values)) => WriteIndex::Values(values),
            (None, None) => WriteIndex::None,
        };
        let answer = follow(session, |run, log| {
            Ok(memory_at(run, log, index, range, at)?)
        })?;
        let operators = session.operators();
        let scene = StepScene {
            names,
            operators: &operators,
            source,
            own: None,
            memories: loaded.program.memories,
            style: Style::default(),
        };
        let folded = session.folded(source);
        let own = OwnLines::new(session, session.path()?, (&folded, names));
        let row = |access: &NearestAccess| {
            Ok::<_, anyhow::Error>(match access {
                NearestAccess::Step(step) => {
                    let mut row = StepRow::new(&scene, step)?;
                    if let Some(offset) = row.offset {
                        row.own = own.at((step.function, OrigOffset(offset)), step.time)?;
                    }
                    Some(Some(row))
                }
                NearestAccess::Never => Some(None),
                NearestAccess::Beyond(_) => None,
            })
        };
        let beyond = |access: &NearestAccess| match access {
            NearestAccess::Beyond(time) => Some(*time),
            _ => None,
        };
        let mut parts = Vec::new();
        for part in &answer.parts {
            let MemoryRange { address, bytes, .. } = part.range.into();
            parts.push(MemoryPart {
                address,
                bytes,
                written: row(&part.written)?,
                written_before: beyond(&part.written),
                next_read: row(&part.read_next)?,
                next_read_after: beyond(&part.read_next),
                next_written: row(&part.written_next)?,
                next_written_after: beyond(&part.written_next),
            });
        }
        let variable = found.map(|found| {
            let value = found.value(&answer, names);
            VariableThere {
                value: value.as_ref().ok().cloned(),
                unavailable: value.err(),
                ..found.variable
            }
        });
        Ok(MemoryReport {
            memory: range.memory,
            address: range.address,
            size: answer.size,
            t: match at {
                At::Before(moment) => Some(moment.time),
                At::End => None,
            },
            before: before(session, &operators, at)?.map(|offset| offset.0),
            contents: answer.bytes,
            parts,
            variable,
            file: pasted(session.at()),
            memories: loaded.program.memories,
        })
    }

    fn moment<'a>(
        &self,
        session: &'a Session,
        names: &'a Names,
        source: &'a SourceMap<'a>,
    ) -> Result<At> {
        Ok(match &self.at {
            None => match &self.bytes {
                MemoryBytes::Variable(expression) => {
                    let last = variable::last_in_scope(session, (names, source), expression)?;
                    last.map_or(At::End, At::Before)
                }
                MemoryBytes::Range { .. } => At::End,
            },
            Some(text) if text.trim() == "end" => At::End,
            Some(text) => {
                let moment = session.positions(names, source)?.moment(text);
                At::Before(moment.with_context(|| format!("--at {text}"))?)
            }
        })
    }

    fn bytes<'a>(
        &self,
        session: &'a Session,
        names: &Names,
        at: At,
        ensure: &dyn Fn() -> Result<()>,
    ) -> Result<(Range, Option<VariableInMemory<'a>>)> {
        match &self.bytes {
            MemoryBytes::Variable(expression) => {
                let moment = (at, self.at.as_deref().unwrap_or_default());
                let found = variable::find(session, names, expression, moment, ensure)?;
                Ok((found.range, Some(found)))
            }
            &MemoryBytes::Range {
                memory,
                address,
                bytes,
            } => {
                let memories = session.program().memories;
                if memory >= memories {
                    bail!("the program has no memory {memory}; it has {memories}, counted from 0");
                }
                let range = MemoryRange {
                    memory,
                    address,
                    bytes,
                };
                Ok((range.into(), None))
            }
        }
    }
}

/// Returns the offset of the operator that a moment within a block precedes. Returns `None` for
/// other moments.
fn before(traced: &Session, operators: &Operators<'_>, at: At) -> Result<Option<OrigOffset>> {
    let At::Before(Moment { time, op: Some(op) }) = at else {
        return Ok(None);
    };
    let path = traced.path()?;
    let visit = path.cursor().seek(time)?;
    let function = visit.map(|visit| path.nodes()[visit.node].function);
    let found = function.map(|function| operators.get(function, op));
    Ok(found.transpose()?.flatten().map(|found| found.offset))
}
