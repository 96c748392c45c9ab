//! Stops at changes of variables that are not in memory equal those of a list of the values at all
//! operators of the call.

use std::collections::HashMap;
use std::sync::atomic::AtomicBool;

use afterimage::Session;
use afterimage::debugger::{Debugger, Direction, Position, StopAt, with_debugger};
use afterimage_replay::state::{Limits, Moment, Path, Variable};
use anyhow::{Context, Result};

use crate::programs::{INLINED, RECURSIVE, Random, optimised, recording};

/// What is known about a variable at a position.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Known {
    Value(Vec<u8>),
    Nothing,
    OutOfScope,
}

type Values = Vec<(Position, Known)>;

/// Whether two variables are the same, as far as their descriptions tell.
fn is_same(one: &Variable, other: &Variable) -> bool {
    let key = |it: &Variable| (it.name.clone(), it.line, it.inlined, it.scope.clone());
    key(one) == key(other)
}

fn known(debugger: &Debugger<'_>, moment: &Moment<'_, '_>, wanted: &Variable) -> Result<Known> {
    let variables = debugger.variables().ok().context("no variables")?;
    let activation = moment.activation;
    let scopes = variables.function(activation.function)?;
    let in_scope = variables.in_scope_of(&scopes, activation.offset)?;
    let Some(found) = in_scope.iter().find(|one| is_same(one, wanted)) else {
        return Ok(Known::OutOfScope);
    };
    let object = variables.locate(found, Some(activation.offset), moment);
    let bytes = object.and_then(|object| variables.bytes(&object, 1 << 16, moment));
    Ok(bytes.map_or(Known::Nothing, Known::Value))
}

/// Returns the values of some variables at all operators of a call.
fn all_values(debugger: &Debugger<'_>, at: Position, wanted: &[Variable]) -> Result<Vec<Values>> {
    let (stack, _) = debugger.stack(at, 1)?;
    let entered = stack[0].entered;
    let mut all: Vec<Values> = vec![Vec::new(); wanted.len()];
    let mut cursor = debugger.session().path()?.cursor();
    let mut time = entered;
    loop {
        cursor.seek(time)?;
        let is_own = cursor
            .innermost()?
            .is_some_and(|open| open.entered == entered);
        let mut next = debugger.position(&format!("t={time}"))?;
        while is_own && next.time == time {
            let found = debugger.inspect(next, 1, |inspection| {
                inspection.with(0, |moment, _| {
                    let all = wanted.iter().map(|one| known(debugger, moment, one));
                    all.collect::<Result<Vec<_>>>()
                })
            });
            // The run ended in this block.
            let Ok(found) = found else { break };
            for (values, known) in all.iter_mut().zip(found) {
                values.push((next, known));
            }
            match debugger.step_operator(next, Direction::Forward)? {
                Some(after) => next = after,
                None => break,
            }
        }
        cursor.seek(time)?;
        time += 1;
        let end = {
            cursor.seek(at.time)?;
            cursor.activation_end()?
        };
        if time > end.unwrap_or(debugger.length()) {
            return Ok(all);
        }
    }
}

/// Returns the position from which the value differs next.
fn next_change(all: &Values, from: usize) -> Option<Position> {
    let mut value = match &all[from].1 {
        Known::Value(value) => Some(value),
        _ => None,
    };
    for (at, known) in &all[from + 1..] {
        match known {
            Known::Value(other) if value == Some(other) => {}
            Known::Value(_) => return Some(*at),
            Known::OutOfScope => value = None,
            Known::Nothing => {}
        }
    }
    None
}

/// Returns the first position with the same value, going back.
fn last_change(all: &Values, from: usize) -> Option<Position> {
    let mut value = None;
    let mut since = None;
    for (at, known) in all[..=from].iter().rev() {
        match known {
            Known::Value(other) if value.is_some_and(|value| value != other) => return since,
            Known::Value(other) => (value, since) = (Some(other), Some(*at)),
            Known::OutOfScope if since.is_some() => return since,
            Known::OutOfScope | Known::Nothing => {}
        }
    }
    since.filter(|since| *since != all[0].0)
}

#[derive(Debug, Default)]
struct Compared {
    next: usize,
    last: usize,
    none: usize,
}

fn compare(debugger: &Debugger<'_>, calls: usize, all: &mut Compared) -> Result<()> {
    let variables = debugger.variables().ok().context("no variables")?;
    let mut random = Random(7);
    for _ in 0..calls {
        let at = debugger.position(&format!("t={}", 1 + random.below(debugger.length())))?;
        let (function, offset) = debugger.place(at)?;
        let Ok(scopes) = variables.function(function) else {
            continue;
        };
        // Variables in memory have writes instead.
        let is_elsewhere: HashMap<String, bool> = debugger.inspect(at, 1, |inspection| {
            let found = inspection.variables(0, &Limits::default())?;
            let found = found.unwrap_or_default().into_iter();
            Ok(found
                .map(|(shown, object)| {
                    let in_memory = object.is_some_and(|object| object.memory().next().is_some());
                    (shown.name, !in_memory)
                })
                .collect())
        })?;
        let mut wanted = variables.in_scope_of(&scopes, offset)?;
        wanted.retain(|one| {
            let is_name = one
                .name
                .parse::<Path>()
                .is_ok_and(|path| path.is_variable());
            is_name && !one.shadowed && is_elsewhere.get(&one.name) == Some(&true)
        });
        let listed = all_values(debugger, at, &wanted)?;
        for (variable, values) in wanted.iter().zip(&listed) {
            let point = StopAt::Variable {
                at,
                name: variable.name.clone(),
            };
            let point = debugger.stop_point(&point, None, None)?;
            for _ in 0..4 {
                let from = random.below(values.len() as u64) as usize;
                let begin = values[from].0;
                let found = debugger
                    .run_to(begin, &[&point], Direction::Forward, None)?
                    .at;
                let expected = next_change(values, from);
                assert_eq!(found, expected, "{} after {begin:?}", variable.name);
                let before = debugger
                    .run_to(begin, &[&point], Direction::Backward, None)?
                    .at;
                let expected = last_change(values, from);
                if expected == Some(begin) {
                    continue;
                }
                // Going back, the run stops before the operator that changes the value.
                let is_it = match (before, expected) {
                    (Some(by), Some(after)) => {
                        let is_next = by.op == after.op || by.op + 1 == after.op;
                        by.time == after.time && is_next
                    }
                    (found, expected) => found == expected,
                };
                let name = &variable.name;
                assert!(
                    is_it,
                    "{name} before {begin:?}: {before:?}, not {expected:?}"
                );
                match expected {
                    Some(_) => all.last += 1,
                    None => all.none += 1,
                }
                all.next += usize::from(found.is_some());
            }
        }
    }
    Ok(())
}

fn holds(at: &std::path::Path, calls: usize) {
    let session = Session::open(at).unwrap();
    let mut all = Compared::default();
    with_debugger(&session, &AtomicBool::new(false), |debugger| {
        compare(debugger, calls, &mut all)
    })
    .unwrap();
    println!("{all:?}");
    assert!(all.next > 20 && all.last > 20 && all.none > 5, "{all:?}");
}

#[test]
fn of_optimised_code() {
    let folder = tempfile::tempdir().unwrap();
    holds(&recording(&folder, "2", &["20"]), 12);
}

#[test]
fn of_inlined_functions() {
    let folder = tempfile::tempdir().unwrap();
    holds(&optimised(&folder, INLINED), 25);
}

#[test]
fn of_recursive_functions() {
    let folder = tempfile::tempdir().unwrap();
    holds(&optimised(&folder, RECURSIVE), 12);
}
