//! Finds the assignments responsible for a variable's value.

use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap};
use std::rc::Rc;

use afterimage_analyses::currency::{Moments, Unit};
use afterimage_analyses::why::{At, Computed, End, Spot, StepBack, written_until};
use afterimage_present::{Assigned, Cause, CurrencyCause, WhyPlace};
use afterimage_profile::prologue_end;
use afterimage_program::Location;
use afterimage_replay::state::{Activation, Path, VariableLocation};
use afterimage_replay::steps::Range;
use anyhow::Result;

use super::pair::{Both, LineOfBoth, Pair, Side};
use super::read::{ReadValue, SeenThere, read};

/// The producer of a value.
enum Maker {
    /// An operator produced the value.
    Operator(Spot),
    /// Nothing produced the value. It existed at the beginning of the run.
    Beginning,
    /// The debug information computes the value, which is stored nowhere.
    Computed,
    /// The producer is unknown, for this reason.
    Unknown(&'static str),
}

/// Finds the causes for one line.
pub struct Causes<'c, 'a> {
    pub pair: &'c Pair<'c, 'a>,
    pub moments: &'c Moments,
    lines: RefCell<HashMap<(String, u32), Rc<LineOfBoth>>>,
}

/// The moments at which the other run executed the corresponding code.
enum Elsewhere {
    /// It executed the first and the last part of the code at these moments.
    At { first: (u64, u32), last: (u64, u32) },
    /// The code was never executed in the same call.
    Never,
    /// The other program has no code for the line.
    NoCode,
    /// The moments are unknown.
    Unknown,
}

impl<'c, 'a> Causes<'c, 'a> {
    pub fn new(pair: &'c Pair<'c, 'a>, moments: &'c Moments) -> Self {
        Self {
            pair,
            moments,
            lines: RefCell::default(),
        }
    }

    /// Whether the unoptimised run had not assigned the variable since its function was called.
    pub fn is_unset(&self, seen: &ReadValue) -> Result<bool> {
        if !seen.is_local {
            return Ok(false);
        }
        Ok(match maker(&self.pair.a, seen)? {
            Maker::Operator(spot) => spot.time < seen.entered,
            Maker::Beginning => true,
            Maker::Computed | Maker::Unknown(_) => false,
        })
    }

    /// Explains why the variable, or a part of it, is not current at a stop of the optimised run
    /// that has a counterpart in the unoptimised run.
    pub fn explain(
        &self,
        name: &str,
        (stop, other): (u32, u32),
        part: &str,
    ) -> Result<CurrencyCause> {
        let path = part_of(name, part)?;
        let (of_a, of_b) = (&self.moments.a, &self.moments.b);
        let (at_a, at_b) = (of_a.stops[other as usize], of_b.stops[stop as usize]);
        let paths = [path];
        let first = |seen: Option<SeenThere>| seen.and_then(|seen| seen.into_iter().next());
        let expected = first(read(&self.pair.a, &paths, of_a, [other], true)?.remove(&other));
        let shown = first(read(&self.pair.b, &paths, of_b, [stop], false)?.remove(&stop));
        let made_a = match expected {
            Some(Ok(seen)) => maker(&self.pair.a, &seen)?,
            _ => Maker::Unknown("it has no value there"),
        };
        let (made_b, place) = match shown {
            Some(Ok(seen)) => {
                let place = seen.object.pieces.first().map(|piece| piece.place.clone());
                (maker(&self.pair.b, &seen)?, place)
            }
            _ => (Maker::Unknown("it has no value there"), None),
        };
        let moment_a = (at_a.time, at_a.op.as_u32());
        let moment_b = (at_b.time, at_b.op.as_u32());
        let early = match &made_b {
            Maker::Operator(spot) => self.in_a(*spot)?,
            _ => Elsewhere::Unknown,
        };
        let late = match &made_a {
            Maker::Operator(spot) => self.in_b(*spot, moment_b)?,
            _ => Elsewhere::Unknown,
        };
        let cause = match (early, late, &made_a) {
            (Elsewhere::At { first, .. }, _, _) if first >= moment_a => Cause::Early {
                time: first.0,
                in_local: matches!(
                    place,
                    Some(VariableLocation::Local(_) | VariableLocation::OperandStack(_))
                ),
            },
            (_, Elsewhere::At { first, .. }, _) if first >= moment_b => {
                Cause::Late { time: first.0 }
            }
            (_, Elsewhere::At { last, .. }, _) if last >= moment_b => Cause::Late { time: last.0 },
            (_, Elsewhere::At { last, .. }, _) => Cause::Dropped { time: last.0 },
            (_, Elsewhere::NoCode, _) => match (&made_b, &place) {
                // The shown value is computed, so the assignment may have needed no code.
                (Maker::Computed, _) => Cause::Unknown {
                    why: "the optimised program has no code for the assignment, and the shown \
                        value is stored nowhere: the debug information computes it, as a \
                        constant or from other variables, and may show a later assignment too \
                        early"
                        .to_owned(),
                },
                (
                    Maker::Operator(_),
                    Some(VariableLocation::Local(_) | VariableLocation::OperandStack(_)),
                ) => Cause::Unknown {
                    why: "the optimised program has no code for the assignment and may need \
                        none, as when the call passes a parameter; another variable may have used \
                        the place since then"
                        .to_owned(),
                },
                _ => Cause::Removed,
            },
            (_, Elsewhere::Never, Maker::Operator(spot)) if self.is_parameter(*spot)? => {
                Cause::Unknown {
                    why:
                        "the call passed it as a parameter, for which the optimised program needs \
                    no code; another variable may have used the place since then"
                            .to_owned(),
                }
            }
            (_, Elsewhere::Never, _) => Cause::NotExecuted,
            (_, Elsewhere::Unknown, _) if matches!(made_b, Maker::Computed) => Cause::Unknown {
                why: "the shown value is stored nowhere: the debug information computes it, as \
                    a constant or from other variables"
                    .to_owned(),
            },
            (_, Elsewhere::Unknown, Maker::Computed) => Cause::Unknown {
                why: "the debug information of the unoptimised program computes it".to_owned(),
            },
            (_, Elsewhere::Unknown, Maker::Unknown(why)) => Cause::Unknown {
                why: format!("what assigned it in the unoptimised run is unknown: {why}"),
            },
            (_, Elsewhere::Unknown, Maker::Beginning) => Cause::Unknown {
                why: "the unoptimised run never assigned it".to_owned(),
            },
            (_, Elsewhere::Unknown, Maker::Operator(_)) => Cause::Unknown {
                why: "it cannot be decided which execution of the assignment it was: the runs \
                    execute it a different number of times, or it gives different values"
                    .to_owned(),
            },
        };
        Ok(CurrencyCause {
            part: part.to_owned(),
            expected: assigned(&self.pair.a, &made_a)?,
            shown: assigned(&self.pair.b, &made_b)?,
            place: place.map(|place| place.to_string()),
            cause,
        })
    }

    /// Whether a place is in the prologue of the unoptimised function, which stores the parameters.
    fn is_parameter(&self, spot: Spot) -> Result<bool> {
        let scene = self.pair.a.scene;
        let loaded = scene.traced.module();
        let Some(function) = loaded.program.function(spot.function) else {
            return Ok(false);
        };
        let end = prologue_end(&loaded.program, &loaded.bytes, scene.source(), function)?;
        Ok(end.is_some_and(|end| spot.op < end.op))
    }

    fn line(&self, file: [&str; 2], number: u32) -> Result<Rc<LineOfBoth>> {
        let key = (file[0].to_owned(), number);
        if let Some(known) = self.lines.borrow().get(&key) {
            return Ok(Rc::clone(known));
        }
        let found = Rc::new(self.pair.at_line(file, number)?);
        self.lines.borrow_mut().insert(key, Rc::clone(&found));
        Ok(found)
    }

    /// Finds when the optimised run executed the line of an assignment in the unoptimised run.
    fn in_b(&self, spot: Spot, moment: (u64, u32)) -> Result<Elsewhere> {
        let Some((file, number, column)) = position(&self.pair.a, spot)? else {
            return Ok(Elsewhere::Unknown);
        };
        let both = self.line(file, number)?;
        let Both { moments, .. } = match &*both {
            LineOfBoth::Both(both) => &**both,
            LineOfBoth::Lacking("optimised") => return Ok(Elsewhere::NoCode),
            LineOfBoth::Lacking(_) => return Ok(Elsewhere::Unknown),
        };
        let own = moments.a.parts.iter();
        let own = own.filter(|part| (part.time, part.unit) == (spot.time, Unit::Column(column)));
        let Some(stop) = own.map(|part| part.stop).next_back() else {
            return Ok(Elsewhere::Unknown);
        };
        let is_its = |other: u32| moments.a.parts[other as usize].stop == stop;
        let counted = (0..).zip(&moments.pairs);
        let counted = counted.filter(|(_, other)| other.is_some_and(is_its));
        let counted: BTreeSet<u32> = counted.map(|(part, _)| part).collect();
        let settled = self.pair.confirmed(moments, &counted)?;
        // The arrival itself is not a part of the assignment.
        let of_stop = (0..).zip(&moments.b.parts).filter(|(at, part)| {
            part.unit != Unit::Arrival && settled.pair(*at).is_some_and(is_its)
        });
        let times = of_stop.map(|(_, part)| (part.time, part.op.as_u32()));
        if let Some(found) = ends(times) {
            return Ok(found);
        }
        let own = moments.a.parts.iter().find(|part| part.stop == stop);
        let activation = own.map(|part| part.activation);
        let others = moments.b.parts.iter();
        let others =
            others.filter(|part| part.unit != Unit::Arrival && Some(part.activation) == activation);
        let times: Vec<(u64, u32)> = others.map(|part| (part.time, part.op.as_u32())).collect();
        // If all executions came at this moment or later, it does not matter which of them
        // corresponds to the assignment.
        Ok(match times.first() {
            None => Elsewhere::Never,
            Some(_) if times.iter().all(|time| *time >= moment) => {
                ends(times.into_iter()).unwrap_or(Elsewhere::Unknown)
            }
            Some(_) => Elsewhere::Unknown,
        })
    }

    /// Finds when the unoptimised run executed the code that produced a value in the optimised run.
    fn in_a(&self, spot: Spot) -> Result<Elsewhere> {
        let Some((file, number, column)) = position(&self.pair.b, spot)? else {
            return Ok(Elsewhere::Unknown);
        };
        let both = self.line(file, number)?;
        let LineOfBoth::Both(both) = &*both else {
            return Ok(Elsewhere::Unknown);
        };
        let moments = &both.moments;
        let at_once = (0..).zip(&moments.b.parts);
        let at_once = at_once.filter(|(_, part)| part.time == spot.time);
        let at_once: BTreeSet<u32> = at_once.map(|(at, _)| at).collect();
        let settled = self.pair.confirmed(moments, &at_once)?;
        let own = at_once.iter().filter_map(|at| {
            let part = &moments.b.parts[*at as usize];
            Some((part, settled.pair(*at)?))
        });
        let own: Vec<_> = own
            .filter(|(part, _)| part.unit.column() == Some(column))
            .collect();
        // In an unrolled loop, a block contains several copies of the operator.
        let exactly = own.iter().any(|(part, _)| part.op == spot.op);
        let own = own
            .iter()
            .filter(|(part, _)| !exactly || part.op == spot.op);
        let times = own.map(|(_, other)| {
            let part = moments.a.parts[*other as usize];
            (part.time, part.op.as_u32())
        });
        Ok(ends(times).unwrap_or(Elsewhere::Unknown))
    }
}

/// Returns the expression for a part of the variable. Returns the whole variable if the part cannot
/// be written as an expression.
fn part_of(name: &str, part: &str) -> Result<Path> {
    let text = if name.starts_with(['*', '&']) {
        format!("({name}){part}")
    } else {
        format!("{name}{part}")
    };
    Ok(text.parse().or_else(|_| name.parse())?)
}

/// Returns the first and the last of these moments.
fn ends(times: impl Iterator<Item = (u64, u32)>) -> Option<Elsewhere> {
    let mut times: Vec<(u64, u32)> = times.collect();
    times.sort_unstable();
    Some(Elsewhere::At {
        first: *times.first()?,
        last: *times.last()?,
    })
}

/// Returns the file, line and column of an operator.
fn position<'a>(side: &Side<'_, 'a>, spot: Spot) -> Result<Option<([&'a str; 2], u32, u32)>> {
    let scene = side.scene;
    let found = scene.position(spot.function, spot.op)?;
    let source = scene.source();
    let file = |at: Location| [source.path(at.file), source.short_path(at.file)];
    Ok(found.map(|at| (file(at), at.line, at.column)))
}

fn assigned(side: &Side<'_, '_>, maker: &Maker) -> Result<Option<Assigned>> {
    Ok(match maker {
        Maker::Operator(spot) => {
            let place: WhyPlace = side.scene.place(*spot)?;
            Some(Assigned::By(place))
        }
        Maker::Beginning => Some(Assigned::Beginning),
        Maker::Computed | Maker::Unknown(_) => None,
    })
}

/// Finds the producer of a variable's value at a stop. If the value has several parts, finds the
/// producer of the first one.
fn maker(side: &Side<'_, '_>, seen: &ReadValue) -> Result<Maker> {
    let scene = side.scene;
    let walk = scene.walk();
    let (time, op) = seen.read_at;
    let activation = Activation::at(scene.values, &side.bodies, time, op)?;
    let Some(piece) = seen.object.pieces.first() else {
        return Ok(Maker::Unknown("it has no bytes"));
    };
    let of_variable = |variable: u32| -> Result<At> {
        let register = activation.register(scene.values, variable)?;
        Ok(At::Register(activation.instance, register))
    };
    let from = match piece.place {
        VariableLocation::Local(index) => of_variable(index)?,
        VariableLocation::OperandStack(slot) => match activation.slot(slot) {
            Some((variable, _)) => of_variable(variable)?,
            None => return Ok(Maker::Unknown("it is in a slot that is not in use")),
        },
        VariableLocation::Memory(address) => {
            let range = Range {
                memory: 0,
                address,
                length: piece.bytes.max(1),
            };
            let executed = activation.instructions();
            let until = (activation.instance, executed);
            written_until(&walk, &scene.host, until, range, &seen.held)?.0
        }
        VariableLocation::Global(_) => {
            return Ok(Maker::Unknown("it is in a global of WebAssembly"));
        }
        VariableLocation::Value(_) => return Ok(Maker::Computed),
        VariableLocation::OptimisedOut => return Ok(Maker::Unknown("it is optimised out")),
    };
    if let At::Written { instance, inst, .. } = from {
        let compiled = scene.values.compiled(instance.node)?;
        let op = compiled.code.insts[inst].op;
        return Ok(Maker::Operator(walk.spot_of(instance, op)));
    }
    let link = walk.back(from)?;
    Ok(match link {
        StepBack::Computed(Computed { instance, inst })
        | StepBack::Moved { instance, inst, .. } => {
            let compiled = scene.values.compiled(instance.node)?;
            let op = compiled.code.insts[inst].op;
            Maker::Operator(walk.spot_of(instance, op))
        }
        StepBack::End(End::Constant { instance, op, .. }) => {
            Maker::Operator(walk.spot_of(instance, op))
        }
        StepBack::End(End::Zero | End::Memory(_) | End::Global(_)) => Maker::Beginning,
        StepBack::End(End::Host { .. } | End::Returned { .. } | End::Argument { .. }) => {
            Maker::Unknown("the host provided it")
        }
        StepBack::End(End::Segment { .. }) => Maker::Unknown("it was copied from a data segment"),
        StepBack::End(End::Open(_)) => Maker::Unknown("the call did not return"),
        StepBack::End(End::Thrown(_)) => Maker::Unknown("it came with an exception"),
    })
}
