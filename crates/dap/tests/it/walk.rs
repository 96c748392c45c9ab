//! Checks that steps and stops equal the steps and stops of a naive walk over all lines.

use std::sync::atomic::AtomicBool;

use afterimage::Session;
use afterimage::debugger::{
    Access, Debugger, Direction, Position, StackFrame, Step, StopAt, with_debugger,
};
use anyhow::Result;

use crate::programs::{INLINED, Random, SOURCE, line_in, line_of, optimised, recording};

/// A frame of the user's own code: the activation, and the functions inlined there, outermost
/// first, each with the place where it calls the next.
type Frame = (u64, Vec<(String, Option<(String, u32, u32)>)>);

/// Returns all positions of a walk that enters every call, beginning at a position.
fn forward(debugger: &Debugger<'_>, from: Position, most: usize) -> Result<Vec<Position>> {
    let mut all = vec![from];
    while all.len() < most
        && let Some(next) = debugger.step(all[all.len() - 1], Step::In, Direction::Forward)?
    {
        all.push(next);
    }
    Ok(all)
}

/// Returns the frames open at a position, the innermost first.
fn frames(debugger: &Debugger<'_>, at: Position) -> Result<Vec<Frame>> {
    let (all, _) = debugger.stack(at, usize::MAX)?;
    let mut found = Vec::new();
    for (number, frame) in all.iter().enumerate() {
        if frame.library {
            continue;
        }
        let outer = all[number..]
            .iter()
            .filter(|other| other.number == frame.number);
        // Leave out inlined library code, but keep the activation itself.
        let outer = outer.filter(|other| !other.library || other.inlined == 0);
        let outer = Vec::from_iter(outer);
        let call = |one: &&StackFrame| {
            let is_inner = std::ptr::eq(*one, frame);
            let line = one.line.as_ref().filter(|_| !is_inner);
            (
                one.name.clone(),
                line.map(|line| (line.path.clone(), line.line, line.column)),
            )
        };
        let chain = outer.iter().rev().map(call);
        found.push((frame.entered, chain.collect()));
    }
    Ok(found)
}

fn holds(level: &str, rounds: &str, starts: usize, most: usize) {
    let folder = tempfile::tempdir().unwrap();
    let session = Session::open(&recording(&folder, level, &[rounds])).unwrap();
    let mut random = Random(5);
    with_debugger(&session, &AtomicBool::new(false), |debugger| {
        for start in 0..starts {
            let first = match start {
                0 => debugger.first()?,
                _ => {
                    let time = 1 + random.below(debugger.length());
                    let at = debugger.position(&format!("t={time}"))?;
                    match debugger.step(at, Step::In, Direction::Forward)? {
                        Some(line) => line,
                        None => continue,
                    }
                }
            };
            let all = forward(debugger, first, most)?;
            backward_is_the_same(debugger, &all)?;
            over_is_the_next_of_an_open_frame(debugger, &all, &mut random)?;
        }
        Ok(())
    })
    .unwrap();
}

fn backward_is_the_same(debugger: &Debugger<'_>, all: &[Position]) -> Result<()> {
    let mut at = all[all.len() - 1];
    for expected in all.iter().rev().skip(1) {
        at = debugger
            .step(at, Step::In, Direction::Backward)?
            .expect("a line before");
        assert_eq!(at, *expected);
    }
    Ok(())
}

/// Steps with and without skipping paths in inlined code. Both must lead to the same position.
fn step(
    debugger: &Debugger<'_>,
    from: Position,
    step: Step,
    direction: Direction,
) -> Result<Option<Position>> {
    debugger.set_patience(u32::MAX);
    let slow = debugger.step(from, step, direction)?;
    debugger.set_patience(0);
    let found = debugger.step(from, step, direction)?;
    assert_eq!(found, slow, "{step:?} {direction:?} from {from:?}");
    Ok(found)
}

fn over_is_the_next_of_an_open_frame(
    debugger: &Debugger<'_>,
    all: &[Position],
    random: &mut Random,
) -> Result<()> {
    let own = all.iter().map(|at| frames(debugger, *at));
    let own = own.collect::<Result<Vec<_>>>()?;
    let top = |number: usize| own[number].first().expect("a frame");
    for _ in 0..60 {
        let number = random.below(all.len() as u64) as usize;
        let open = &own[number];
        let is_open = |other: &usize| open.contains(top(*other));
        // Code after inlined code on a line does not start a new line.
        let is_parted = |before: usize, after: usize, place: usize| {
            let mut inside = own[before + 1..after].iter();
            inside.any(|frames| frames[0].0 == top(place).0)
        };
        let line = |number: usize| {
            debugger
                .located(all[number])
                .unwrap()
                .map(|at| (at.file, at.line))
        };
        let is_alike = |a: usize, b: usize| (line(a), top(a)) == (line(b), top(b));
        let is_outer = |other: &usize| open[1..].contains(top(*other));
        let mut since = number;
        let later = (number + 1..all.len()).filter(is_open).find(|&other| {
            let before = std::mem::replace(&mut since, other);
            !(is_parted(before, other, number) && is_alike(number, other))
        });
        let found = step(debugger, all[number], Step::Over, Direction::Forward)?;
        match later {
            Some(later) => assert_eq!(found, Some(all[later]), "over from {:?}", all[number]),
            None => assert!(found.is_none_or(|found| found > all[all.len() - 1])),
        }
        let mut earlier = (0..number).rev().filter(is_open);
        let mut place = earlier.next();
        let mut is_known = false;
        while let Some(last) = place {
            match earlier.next() {
                Some(other) if is_parted(other, last, last) && is_alike(other, last) => {
                    place = Some(other);
                }
                other => {
                    is_known = other.is_some();
                    break;
                }
            }
        }
        let found = step(debugger, all[number], Step::Over, Direction::Backward)?;
        match (place, is_known) {
            (Some(place), true) => {
                assert_eq!(found, Some(all[place]), "back from {:?}", all[number]);
            }
            // The line may begin before the walk.
            (Some(place), false) => assert!(found.is_some_and(|found| found <= all[place])),
            (None, _) => assert!(found.is_none_or(|found| found < all[0])),
        }
        // Stepping out may stop in the middle of a line, if no line of an outer frame comes first.
        let later = (number + 1..all.len()).find(is_outer);
        if let Some(out) = step(debugger, all[number], Step::Out, Direction::Forward)? {
            assert!(
                later.is_none_or(|later| out <= all[later]),
                "out of {:?}",
                all[number]
            );
            let outside = frames(debugger, out)?;
            assert!(
                open[1..].iter().any(|frame| is_same(frame, &outside[0])),
                "{outside:?} {open:?}"
            );
        }
        let earlier = (0..number).rev().find(is_outer);
        if let Some(out) = step(debugger, all[number], Step::Out, Direction::Backward)? {
            assert!(earlier.is_none_or(|earlier| out >= all[earlier]));
            let outside = frames(debugger, out)?;
            assert!(open[1..].iter().any(|frame| is_same(frame, &outside[0])));
        }
    }
    Ok(())
}

/// Whether two frames belong to one activation, and one of them surrounds the other.
fn is_same(a: &Frame, b: &Frame) -> bool {
    a.0 == b.0
}

#[test]
fn of_a_whole_short_run() {
    holds("0", "20", 1, usize::MAX);
}

#[test]
fn of_parts_of_a_long_run() {
    holds("0", "20000", 6, 400);
}

#[test]
fn of_an_optimised_program_with_inlined_functions() {
    holds("1", "20", 1, usize::MAX);
    holds("2", "20000", 4, 400);
}

#[test]
fn a_line_whose_calls_are_all_inlined_is_a_stop_before_they_are_entered() {
    let folder = tempfile::tempdir().unwrap();
    let session = Session::open(&optimised(&folder, INLINED)).unwrap();
    let line = |text| line_in(INLINED, text) as u32;
    with_debugger(&session, &AtomicBool::new(false), |debugger| {
        let top = |at: Position| {
            let (frames, _) = debugger.stack(at, 1).unwrap();
            let frame = frames.into_iter().find(|frame| !frame.library).unwrap();
            (frame.name, frame.line.unwrap().line)
        };
        let forward = |at, step| {
            let next = debugger.step(at, step, Direction::Forward).unwrap();
            next.unwrap()
        };
        let call = debugger.position(&format!("{INLINED}:{}", line("both(count)")))?;
        assert!(call.ahead > 0);
        assert_eq!(top(call), ("inlined::main".to_owned(), line("both(count)")));
        assert_eq!(
            debugger.located(call)?.map(|at| at.line),
            Some(line("both(count)"))
        );
        // Each step in enters one more function, and all of them begin at one operator.
        let outer = forward(call, Step::In);
        assert_eq!(
            top(outer),
            ("inlined::both".to_owned(), line("add(value); // first"))
        );
        let inner = forward(outer, Step::In);
        assert_eq!(
            top(inner),
            ("inlined::add".to_owned(), line("write_volatile"))
        );
        assert_eq!((call.time, call.op), (inner.time, inner.op));
        assert!(call < outer && outer < inner);
        // Steps back leave the functions again.
        let back = |at| {
            debugger
                .step(at, Step::In, Direction::Backward)
                .unwrap()
                .unwrap()
        };
        assert_eq!((back(inner), back(outer)), (outer, call));
        // Stepping over and out stays in the frames around them. The optimiser mixes code of
        // `main` with the code of `both`.
        assert_eq!(top(forward(call, Step::Over)).0, "inlined::main");
        assert_ne!(top(forward(outer, Step::Over)).0, "inlined::add");
        assert_ne!(top(forward(inner, Step::Out)).0, "inlined::add");
        assert_eq!(top(forward(outer, Step::Out)).0, "inlined::main");
        let point = StopAt::Place(format!("{INLINED}:{}", line("add(value); // second")));
        let point = debugger.stop_point(&point, None, None)?;
        assert_eq!(point.count(), Some(1));
        let stop = debugger
            .run_to(call, &[&point], Direction::Forward, None)?
            .at
            .unwrap();
        assert_eq!(
            top(stop),
            ("inlined::both".to_owned(), line("add(value); // second"))
        );
        Ok(())
    })
    .unwrap();
}

#[test]
fn stops_are_those_that_a_walk_passes() {
    let folder = tempfile::tempdir().unwrap();
    let session = Session::open(&recording(&folder, "0", &["40"])).unwrap();
    with_debugger(&session, &AtomicBool::new(false), |debugger| {
        let all = forward(debugger, debugger.first()?, usize::MAX)?;
        for (text, condition) in [
            ("account.entries.push", None),
            ("return 1;", None),
            ("1 + fee(amount / 10)", None),
            ("account.entries.clear()", None),
            ("account.entries.push", Some("amount % 2 == 0")),
            ("account.entries.push", Some("round > 1000")),
            ("1 + fee(amount / 10)", Some("amount > 100 || amount == 17")),
        ] {
            let line = line_of(text) as u32;
            let at = StopAt::Line {
                path: SOURCE.to_owned(),
                line,
            };
            let on_line = all.iter().copied().filter(|at| {
                let located = debugger.located(*at).unwrap();
                located.is_some_and(|located| located.line == line)
            });
            let mut expected = Vec::from_iter(on_line);
            if let Some(condition) = condition {
                let parsed = condition.parse().unwrap();
                let values = debugger.values_at(&expected, &[parsed])?;
                let mut values = values.into_iter();
                expected.retain(|_| values.next().unwrap()[0] == Ok("1".to_owned()));
            }
            let point = debugger.stop_point(&at, condition, None)?;
            let mut found = Vec::new();
            let mut at = all[0];
            while let Some(next) = debugger.run_to(at, &[&point], Direction::Forward, None)?.at {
                found.push(next);
                at = next;
            }
            assert_eq!(found, expected, "{text} {condition:?}");
            let mut back = Vec::new();
            let mut at = *all.last().unwrap();
            while let Some(next) = debugger
                .run_to(at, &[&point], Direction::Backward, None)?
                .at
            {
                back.push(next);
                at = next;
            }
            back.reverse();
            assert_eq!(back, expected, "{text} {condition:?} backward");
            for (number, position) in expected.iter().enumerate() {
                if condition.is_none() {
                    assert_eq!(debugger.count_by(&point, *position)?, number as u64 + 1);
                }
            }
        }
        Ok(())
    })
    .unwrap();
}

#[test]
fn writes_are_those_that_change_or_keep_a_variable() {
    for rounds in ["40", "20000"] {
        let folder = tempfile::tempdir().unwrap();
        let session = Session::open(&recording(&folder, "0", &[rounds])).unwrap();
        with_debugger(&session, &AtomicBool::new(false), |debugger| {
            // Each iteration sets the counter once. Its address is the address of the first write.
            let at = StopAt::Place(format!("{SOURCE}:{}", line_of("ROUNDS.0.set(round)")));
            let set = debugger.stop_point(&at, None, None)?;
            let rounds: u64 = rounds.parse()?;
            assert_eq!(set.count(), Some(rounds));
            let begin = debugger.first()?;
            let first = debugger
                .run_to(begin, &[&set], Direction::Forward, None)?
                .at
                .unwrap();
            let path = "ledger::ROUNDS".parse().unwrap();
            let object =
                debugger.inspect(first, 1, |inspection| inspection.object((0, 0), &path))?;
            let address = object.unwrap().address().unwrap();
            let writes = StopAt::Memory {
                access: Access::Write,
                memory: 0,
                address,
                bytes: 4,
            };
            let writes = debugger.stop_point(&writes, None, None)?;
            let mut at = begin;
            for number in 1..=rounds.min(6) {
                let next = debugger
                    .run_to(at, &[&writes], Direction::Forward, None)?
                    .at
                    .unwrap();
                let passed = debugger.count_by(&set, next)?;
                assert_eq!(passed, number);
                at = next;
            }
            let end = debugger.last()?;
            let last = debugger
                .run_to(end, &[&writes], Direction::Backward, None)?
                .at
                .unwrap();
            assert_eq!(debugger.count_by(&set, last)?, rounds);
            let before = debugger
                .run_to(last, &[&writes], Direction::Backward, None)?
                .at
                .unwrap();
            assert_eq!(debugger.count_by(&set, before)?, rounds - 1);
            Ok(())
        })
        .unwrap();
    }
}
