//! Checks stops at changes of variables that are not in memory, against a list of the values at all
//! operators of the call.

use std::collections::HashMap;
use std::sync::atomic::AtomicBool;

use afterimage::Session;
use afterimage::debugger::{Access, Debugger, Direction, Position, StopAt, with_debugger};
use afterimage::explore::{Move, StepQuery};
use afterimage_replay::state::{Limits, Moment, Path, Variable};
use anyhow::{Context, Result};

use crate::programs::{
    INLINED, RECURSIVE, Random, SOURCE, line_of, optimised, recorded_program, recording,
};

/// The value of a variable at a position, as far as it is known.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Known {
    Value(Vec<u8>),
    Nothing,
    OutOfScope,
}

type Values = Vec<(Position, Known)>;

/// Whether two descriptions appear to belong to the same variable.
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

/// Whether a stop is right before the operator that changes a value, or where the new value is
/// known. A set at the end of a block is in the block before.
fn is_right_before(stop: Option<Position>, after: Option<Position>) -> bool {
    match (stop, after) {
        (Some(by), Some(after)) => {
            let is_next = by.op == after.op || by.op + 1 == after.op;
            by.time == after.time && is_next || by.time + 1 == after.time && by.op < after.op
        }
        (stop, after) => stop == after,
    }
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
                inlined: variable.inlined,
                name: variable.name.clone(),
            };
            let point = debugger.stop_point(&point, None, None)?;
            let (begin, end) = (debugger.first()?, debugger.last()?);
            if begin < values[0].0 {
                let next = debugger
                    .run_to(begin, &[&point], Direction::Forward, None)?
                    .at;
                assert_eq!(next, next_change(values, 0), "{} first", variable.name);
            }
            let last = debugger
                .run_to(end, &[&point], Direction::Backward, None)?
                .at;
            let expected = last_change(values, values.len() - 1);
            let name = &variable.name;
            assert!(
                is_right_before(last, expected),
                "{name} last: {last:?}, not {expected:?}"
            );
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
                let name = &variable.name;
                let is_it = is_right_before(before, expected);
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

/// A function that sets its local as the last operator of a block, and within a block.
const SETS: &str = r#"(module
  (memory (export "memory") 1)
  (func $count (param $n i32) (result i32) (local $i i32)
    (loop $again
      (local.set $i (i32.add (local.get $i) (local.get $n)))
      (br_if $again (local.tee $n (i32.sub (local.get $n) (i32.const 1)))))
    (local.get $i))
  (func (export "_start") (local $i i32)
    (local.set $i (i32.const 3))
    (loop $again
      (if (i32.and (local.get $i) (i32.const 1))
        (then (local.set $i (i32.sub (local.get $i) (i32.const 1))))
        (else (local.set $i (i32.sub (local.get $i) (i32.const 1)))))
      (drop (call $count (i32.const 4)))
      (br_if $again (local.get $i)))))"#;

#[test]
fn of_locals_that_are_set_at_the_end_of_a_block() {
    let folder = tempfile::tempdir().unwrap();
    let session = Session::open(&recorded_program(&folder, SETS)).unwrap();
    with_debugger(&session, &AtomicBool::new(false), |debugger| {
        // The changes of a local during the last call of its function, from the end.
        let changes = |at: Position, name: &str| -> Result<Vec<u8>> {
            let point = StopAt::Variable {
                at,
                inlined: 0,
                name: name.to_owned(),
            };
            let point = debugger.stop_point(&point, None, None)?;
            let mut from = debugger.last()?;
            let mut found = Vec::new();
            while let Some(at) = debugger
                .run_to(from, &[&point], Direction::Backward, None)?
                .at
            {
                let (_, offset) = debugger.place(at)?;
                found.push(debugger.session().bytes()[offset.0 as usize]);
                from = at;
            }
            let mut forward = 0;
            let mut from = debugger.position("t=1")?;
            while let Some(at) = debugger
                .run_to(from, &[&point], Direction::Forward, None)?
                .at
            {
                forward += 1;
                from = at;
            }
            assert_eq!(found.len(), forward, "{name}");
            Ok(found)
        };
        const SET: u8 = 0x21;
        const TEE: u8 = 0x22;
        assert_eq!(changes(debugger.last()?, "$i")?, [SET; 4]);
        let count = debugger.position("count#2")?;
        assert_eq!(changes(count, "$i")?, [SET; 4]);
        assert_eq!(changes(count, "$n")?, [TEE; 4]);
        Ok(())
    })
    .unwrap();
}

/// Without optimisation, variables are in memory.
#[test]
fn steps_to_writes_of_a_variable_in_memory_equal_its_data_breakpoints() {
    let folder = tempfile::tempdir().unwrap();
    let session = Session::open(&recording(&folder, "0", &["20"])).unwrap();
    let place = format!("{SOURCE}:{}#5", line_of("let amount ="));
    let step = |direction| {
        session.step(&StepQuery {
            at: place.clone(),
            offset: None,
            ahead: 0,
            by: Move::Write {
                variable: "seed".to_owned(),
                activation: 0,
                inlined: None,
            },
            direction,
        })
    };
    let next = step(Direction::Forward).unwrap().moment.unwrap().t;
    let last = step(Direction::Backward).unwrap().moment.unwrap().t;
    with_debugger(&session, &AtomicBool::new(false), |debugger| {
        let at = debugger.position(&place)?;
        let path = "seed".parse().unwrap();
        let object = debugger.inspect(at, 1, |inspection| inspection.object((0, 0), &path))?;
        let point = StopAt::Memory {
            access: Access::Write,
            memory: 0,
            address: object.unwrap().address().unwrap(),
            bytes: 8,
        };
        let point = debugger.stop_point(&point, None, None)?;
        let stop = |direction| debugger.run_to(at, &[&point], direction, None);
        assert_eq!(stop(Direction::Forward)?.at.unwrap().time, next);
        assert_eq!(stop(Direction::Backward)?.at.unwrap().time, last);
        Ok(())
    })
    .unwrap();
}
