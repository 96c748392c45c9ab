//! Answers GEN-KILL questions about the executed path.

use std::cell::Cell;
use std::collections::BTreeSet;

use afterimage_analyses::dataflow::{
    EventPlace, Fact, FactError, FactInstance, Facts, Instances, LastStep, RunCalls,
};
use afterimage_ids::{FuncId, OpId};
use afterimage_present::{DataflowView, FactRow, FactScene, Style, grouped};
use afterimage_profile::location::{Occurrence, Place};
use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};

use crate::Session;
use crate::monitor::{Work, begin_shares};
use crate::named::NamedProgram;

/// Asks whether a fact held at the executions of a place, and what decided it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DataflowQuery {
    /// The fact: `available:PLACE`, `reaching:PLACE`, `last-use:PLACE`, or `gen=PLACES kill=PLACES
    /// at=PLACE`, with or without `ahead`.
    pub fact: String,
    /// The maximum number of path traces in the answer. The traces that most calls took come first.
    pub paths: u64,
    /// The maximum number of ranges of executions to list for each operator that decided the fact.
    pub instances: u64,
}

/// The fact, and the answer for each operator.
pub struct Answer {
    pub fact: Fact,
    /// The place as written.
    pub at: String,
    pub rows: Vec<FactRow>,
}

impl Answer {
    /// Passes the answer in displayable form to `ask`.
    ///
    /// # Errors
    /// Returns an error if `ask` fails.
    pub fn shown<R>(
        self,
        query: &DataflowQuery,
        program: NamedProgram<'_>,
        style: Style,
        ask: impl FnOnce(&DataflowView<'_>) -> Result<R>,
    ) -> Result<R> {
        let first = |function: FuncId, block| {
            let function = program.session.program().function(function);
            function.map_or(OpId::from_u32(0), |f| f.cfg.blocks[block].ops.start)
        };
        let scene = FactScene {
            steps: program.scene(style),
            text: &query.fact,
            fact: &self.fact,
            first: &first,
        };
        let rows = self.rows;
        ask(&DataflowView { scene, rows })
    }
}

impl DataflowQuery {
    /// Checks the form of the question.
    ///
    /// # Errors
    /// Returns an error if the fact has no known form.
    pub fn check(&self) -> Result<()> {
        Written::read(&self.fact).map(drop)
    }

    /// Returns the answers. A line has one answer for each executed operator to which the fact
    /// applies.
    ///
    /// # Errors
    /// Returns an error if the fact has no known form, does not apply at its place, or the
    /// recording is damaged.
    pub fn answer(&self, program: NamedProgram<'_>) -> Result<Answer> {
        let written = &Written::read(&self.fact)?;
        let loaded = program.session.module();
        let resolver = program.resolver();
        let places = |text: &str| -> Result<Place> {
            let resolved = resolver.location(text)?;
            if resolved.occurrence.is_some() {
                bail!(
                    "{text} names one execution, but facts are decided by all executions of a \
                     place: leave out the # and the number"
                );
            }
            Ok(resolved.place)
        };
        let events = |texts: &[&str]| -> Result<Vec<EventPlace>> {
            let mut events = Vec::new();
            for text in texts {
                match places(text)? {
                    Place::Operator(function, op) => {
                        events.push(EventPlace::Operator(function, op))
                    }
                    Place::Line(_, all) => {
                        events.extend(all.into_iter().map(|(f, op)| EventPlace::Operator(f, op)));
                    }
                    Place::Function(function) if loaded.program.function(function).is_none() => {
                        bail!(
                            "{text} is imported, so it is not in the path; name the places that \
                             call it"
                        )
                    }
                    Place::Function(function) => events.push(EventPlace::Entry(function)),
                }
            }
            Ok(events)
        };
        let fact = match written.kind {
            "available" => Fact::Available,
            "reaching" => Fact::Reaching,
            "last-use" => Fact::LastUse,
            _ => Fact::Places {
                r#gen: events(&written.r#gen)?,
                kill: events(&written.kill)?,
                ahead: written.ahead,
            },
        };
        let at = resolver.location(written.at)?;
        let one = at.occurrence;
        let (asked, is_line) = match at.place {
            Place::Line(..) if one.is_some() => bail!(
                "{} is an arrival at a line, but facts are about executions of operators: leave \
                 out the # to list the operators of the line, then add it to one of them",
                written.at
            ),
            Place::Operator(function, op) => (vec![(function, op)], false),
            Place::Line(_, all) => (all, true),
            Place::Function(function) => match loaded.program.function(function) {
                Some(_) if written.kind == "places" => (vec![(function, OpId::from_u32(0))], false),
                Some(known) => {
                    let all = (0..known.operators).map(|op| (function, OpId::from_u32(op)));
                    (all.collect(), true)
                }
                None => bail!(
                    "{} is imported, so its operators are not in this module",
                    written.at
                ),
            },
        };
        if one.is_some() && asked.len() > 1 {
            bail!(
                "{} names one call to a function with many operators: name one of them",
                written.at
            );
        }
        let calls = run_calls(program.session)?.context(
            "how the run ended was not recorded, so it is not known how much of its last block \
             ran; record the program again",
        )?;
        let mut asked = asked;
        if is_line && written.kind == "places" {
            // All operators of a block are executed together, so one row for each block is enough.
            let mut seen = BTreeSet::new();
            asked.retain(|&(function, op)| {
                let block = loaded.program.function(function).map(|f| f.block_of(op));
                seen.insert((function, block.flatten()))
            });
        }
        let operators = Operators {
            all: asked,
            is_line,
            one,
        };
        let work = Work::Question("asking about each execution");
        let tell = begin_shares(program.session.monitor(), work);
        let all = operators.all.len() as f64;
        let passes = Cell::new((0, 0));
        let tell = |share: f64| {
            let (answered, in_pass) = passes.get();
            tell((answered as f64 + in_pass as f64 * share) / all);
        };
        let facts = Facts::new(&calls, &loaded.program, &loaded.bytes).telling(&tell);
        let rows = self.rows(written, (&facts, &passes), &fact, operators)?;
        Ok(Answer {
            fact,
            at: written.at.to_owned(),
            rows,
        })
    }

    /// Returns the answers for some operators. `passes` receives the number of operators that are
    /// done, and the number of operators in the current pass.
    fn rows(
        &self,
        written: &Written<'_>,
        (facts, passes): (&Facts<'_>, &Cell<(usize, usize)>),
        fact: &Fact,
        operators: Operators,
    ) -> Result<Vec<FactRow>> {
        let Operators { all, is_line, one } = operators;
        let (most, paths) = (self.instances as usize, self.paths as usize);
        let mut rows = Vec::new();
        let mut refused: Option<FactError> = None;
        let of_function = all.chunk_by(|a, b| a.0 == b.0);
        for some in of_function.flat_map(|all| all.chunks(AT_ONCE)) {
            let function = some[0].0;
            let ops = Vec::from_iter(some.iter().map(|&(_, op)| op));
            let (answered, in_pass) = passes.get();
            passes.set((answered + in_pass, some.len()));
            let answers = facts.answers(function, &ops, fact, paths);
            for (&op, answer) in ops.iter().zip(answers) {
                let (answer, each) = match answer {
                    Ok(answer) => answer,
                    Err(error) if is_line => {
                        refused = refused.or(Some(error));
                        continue;
                    }
                    Err(error) => bail!("{}: {error}", written.at),
                };
                let one = match one {
                    Some(which) => Some(execution(&each, which, written.at)?),
                    None => None,
                };
                let decided = answer.decided.iter();
                rows.push(FactRow {
                    function,
                    op,
                    instances: match one {
                        Some(_) => Vec::new(),
                        None => decided.map(|&(by, _)| each.decided_by(by, most)).collect(),
                    },
                    one,
                    answer,
                });
            }
        }
        // If the run executed any copy of a line, leave out the copies that it did not execute.
        if rows.iter().any(|row| row.answer.executions > 0) {
            rows.retain(|row| !is_line || row.answer.executions > 0);
        }
        if rows.is_empty() {
            let why = refused.map_or(String::new(), |error| format!(": {error}"));
            bail!(
                "{}: the fact cannot be about any of its operators{why}",
                written.at
            );
        }
        Ok(rows)
    }
}

/// The maximum number of operators in one pass. All of their executions are in memory at the same
/// time.
const AT_ONCE: usize = 8;

/// Collects the path traces and calls of a run. Returns `None` if the end of the run is unknown.
///
/// # Errors
/// Returns an error if the recording is damaged.
pub fn run_calls(traced: &Session) -> Result<Option<RunCalls>> {
    let Some(end) = traced.file().end()? else {
        return Ok(None);
    };
    let (loaded, path) = (traced.module(), traced.path()?);
    let work = Work::Question("collecting path traces");
    let progress = traced.monitor().begin(work, Some(path.length()));
    let last = LastStep::of(&loaded.program, &loaded.bytes, &end)?;
    Ok(Some(RunCalls::of(path, last, &*progress)?))
}

/// The operators that a fact is about.
struct Operators {
    all: Vec<(FuncId, OpId)>,
    /// Whether they are all operators of a line or function. The fact need not apply to each of
    /// them.
    is_line: bool,
    /// The execution that the question names, if any.
    one: Option<Occurrence>,
}

/// A fact as the user wrote it.
#[derive(Debug, Default, PartialEq, Eq)]
struct Written<'t> {
    kind: &'t str,
    at: &'t str,
    r#gen: Vec<&'t str>,
    kill: Vec<&'t str>,
    ahead: bool,
}

const FORMS: &str =
    "write available:PLACE, reaching:PLACE, last-use:PLACE, or gen=PLACES kill=PLACES at=PLACE";

impl<'t> Written<'t> {
    fn read(text: &'t str) -> Result<Self> {
        for kind in ["available", "reaching", "last-use"] {
            if let Some(at) = text.strip_prefix(kind).and_then(|t| t.strip_prefix(':')) {
                let at = at.trim();
                if at.is_empty() {
                    bail!("--fact {text}: {kind} lacks a place; {FORMS}");
                }
                return Ok(Self {
                    kind,
                    at,
                    ..Self::default()
                });
            }
        }
        let mut written = Self {
            kind: "places",
            ..Self::default()
        };
        let between = |c: char| c.is_whitespace() || c == ';';
        for word in text.split(between).filter(|word| !word.is_empty()) {
            let (key, value) = word.split_once('=').unwrap_or((word, ""));
            let places = || value.split(',').filter(|place| !place.is_empty());
            match key {
                "gen" if !value.is_empty() => written.r#gen.extend(places()),
                "kill" if !value.is_empty() => written.kill.extend(places()),
                "at" if !value.is_empty() && written.at.is_empty() => written.at = value,
                "at" if !value.is_empty() => bail!("--fact {text}: at= is given twice"),
                "ahead" if word == "ahead" => written.ahead = true,
                _ => bail!("--fact {text}: {word} is not part of a fact; {FORMS}"),
            }
        }
        if written.at.is_empty() {
            bail!("--fact {text}: at= is missing; {FORMS}");
        }
        if written.r#gen.is_empty() && written.kill.is_empty() {
            bail!("--fact {text}: gen= and kill= are both missing, so nothing decides it; {FORMS}");
        }
        Ok(written)
    }
}

/// Returns the execution that was asked about.
fn execution(each: &Instances<'_>, which: Occurrence, at: &str) -> Result<FactInstance> {
    let number = match which {
        Occurrence::Kth(number) => number,
        Occurrence::Last => each.count(),
    };
    each.get(number).with_context(|| match each.count() {
        0 => format!("{at}: it was never executed"),
        1 => format!("{at}: it was executed once"),
        count => format!("{at}: it was executed {} times", grouped(count)),
    })
}

#[cfg(test)]
mod tests {
    use super::Written;

    #[test]
    fn facts_are_read() {
        let read = |text| Written::read(text).unwrap();
        let available = read("available:a.c:42");
        assert_eq!((available.kind, available.at), ("available", "a.c:42"));
        let places = read("gen=@0x10,@0x20 kill=f;at=@0x40; ahead");
        assert_eq!(places.r#gen, ["@0x10", "@0x20"]);
        assert_eq!(
            (places.kill, places.at, places.ahead),
            (vec!["f"], "@0x40", true)
        );
    }

    #[test]
    fn other_texts_are_refused() {
        for text in [
            "",
            "available:",
            "gen=@0x10",
            "at=@0x10",
            "gen= at=f",
            "gen=f at=f at=g",
            "dead:f",
            "gen=f at=f ahead=1",
        ] {
            assert!(Written::read(text).is_err(), "{text}");
        }
    }
}
