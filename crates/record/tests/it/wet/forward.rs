//! Checks that the forward dependences are the backward dependences, reversed. The uses of a
//! definition must be exactly the executions that depend on it.

use std::collections::HashMap;
use std::ops::RangeInclusive;

use afterimage_wet::{Definition, Instance, TraceError, Writer};

use super::compare::Trace;
use super::naive::{Executed, Made, Naive};

/// A variable or instruction of an execution, and a number of bytes.
type Use = (u64, u32, u64);

/// The naive record, reversed.
#[derive(Default)]
struct Reversed {
    /// The executions that begin with this value in a variable that they read.
    held: HashMap<Definition, Vec<Use>>,
    /// The instructions that read what was written.
    read: HashMap<Definition, Vec<Use>>,
}

/// Compares the uses of the `chosen` executions in the window with all recorded dependences,
/// reversed. All executions must have been recorded.
pub fn compare(
    trace: &Trace<'_>,
    naive: &Naive<'_>,
    window: &RangeInclusive<u64>,
    chosen: impl Fn(usize) -> bool,
) {
    let executed = &naive.executed;
    let reversed = Reversed::of(trace, executed, window);
    let nothing = Vec::new();
    let length = trace.path().length();
    let whole = *window.start() <= 1 && *window.end() >= length;
    // A window ends with the node that contains its last block.
    let ends = executed.iter().map(|of| of.last);
    let end = ends
        .filter(|end| end >= window.end())
        .min()
        .unwrap_or(length);
    for (at, of) in executed.iter().enumerate() {
        if !window.contains(&of.instance.time) || !chosen(at) {
            continue;
        }
        let instance = of.instance;
        let compiled = trace.compiled(instance.node).expect("a node");
        let mut definitions = vec![Definition::After { instance }];
        for (inst, one) in compiled.code.insts.iter().enumerate() {
            if one.code.gives() {
                definitions.push(Definition::Result { instance, inst });
            }
            if compiled
                .model
                .writes
                .iter()
                .any(|w| w.inst as usize == inst)
            {
                definitions.push(Definition::Write { instance, inst });
            }
        }
        for definition in definitions {
            // Outside of the window it is unknown whether an exception is caught.
            let Some(held) = held(trace, definition, whole) else {
                continue;
            };
            let expected = reversed.held.get(&definition).unwrap_or(&nothing);
            match definition {
                // The value comes from the callee, so its uses belong to the execution that made
                // it.
                Definition::After { .. } if expected.is_empty() => {
                    if whole {
                        passed_on(trace, naive, instance, &held);
                    }
                }
                _ => assert_eq!(&held, expected, "who holds {definition:?}"),
            }
            let (read, unknown) = read(trace, definition);
            let expected = reversed.read.get(&definition).unwrap_or(&nothing);
            assert_eq!(&read, expected, "who reads {definition:?}");
            if matches!(definition, Definition::Write { .. }) {
                assert_eq!(unknown > 0, end < length, "what comes after {window:?}");
            }
        }
    }
}

/// Checks that every holder of a call's result also holds the value that the callee returned.
fn passed_on(trace: &Trace<'_>, naive: &Naive<'_>, call: Instance, held: &[Use]) {
    let made = |time: u64, variable: u32| {
        let at = naive.executed.partition_point(|of| of.instance.time < time);
        let details = naive.executed[at].details.as_ref().expect("details");
        details.variables[variable as usize]
    };
    for &(time, variable, _) in held {
        let made = made(time, variable);
        let given = (0..).map_while(|index| trace.result(call, index).ok().flatten());
        let at = trace.at(time).expect("a time").expect("an execution");
        let value = trace.value(at, variable).expect("a value");
        let mut given = given.take(1000);
        assert!(
            given.any(|given| given.0 == value.0),
            "{made:?} is not what the call at {call:?} gave"
        );
    }
}

fn held(trace: &Trace<'_>, definition: Definition, whole: bool) -> Option<Vec<Use>> {
    let mut found = Vec::new();
    let mut holders = match trace.holders(definition) {
        Err(TraceError::Outside { .. }) if !whole => return None,
        holders => holders.expect("holders"),
    };
    let mut marks = vec![(0, holders.mark())];
    loop {
        let held = match holders.next() {
            Err(TraceError::Outside { .. }) if !whole => return None,
            held => held.expect("a holder"),
        };
        let Some(held) = held else { break };
        let own = held.time == definition.instance().time;
        if !own || matches!(definition, Definition::After { .. }) {
            let registers = held.registers.iter();
            found.extend(registers.map(|&register| (held.time, register, 0)));
        }
        marks.push((found.len(), holders.mark()));
    }
    // Iterating from each mark gives the same results.
    let step = 1 + marks.len() / 4;
    for (skipped, mark) in marks.iter().step_by(step).skip(1) {
        holders.go(mark).expect("a position");
        let mut again = Vec::new();
        while let Some(held) = holders.next().expect("a holder") {
            let registers = held.registers.iter();
            again.extend(registers.map(|&register| (held.time, register, 0)));
        }
        assert_eq!(&again, &found[*skipped..], "{definition:?}");
    }
    Some(found)
}

fn read(trace: &Trace<'_>, definition: Definition) -> (Vec<Use>, usize) {
    let mut readers = trace.readers(definition).expect("readers");
    let count = readers.count().expect("a count");
    let mut found = Vec::new();
    while let Some(read) = readers.next().expect("a reader") {
        found.push((read.time, read.inst as u32, read.length));
    }
    assert_eq!(count, found.len() as u64, "{definition:?}");
    if let Some(&(middle, ..)) = found.get(found.len() / 2) {
        readers.go(middle);
        let rest = found.iter().filter(|found| found.0 >= middle);
        let mut again = Vec::new();
        while let Some(read) = readers.next().expect("a reader") {
            again.push((read.time, read.inst as u32, read.length));
        }
        assert!(again.iter().eq(rest), "{definition:?}");
    }
    (found, readers.unknown().len())
}

impl Reversed {
    fn of(trace: &Trace<'_>, executed: &[Executed], window: &RangeInclusive<u64>) -> Self {
        let mut reversed = Self::default();
        let calls = executed
            .iter()
            .filter_map(|of| Some((of.host_call?, of.instance)));
        let calls: HashMap<u64, Instance> = calls.collect();
        for of in executed {
            let instance = of.instance;
            let compiled = trace.compiled(instance.node).expect("a node");
            let details = of.details.as_ref().expect("all is written down");
            for &variable in &compiled.code.inputs {
                let made = details.variables[variable as usize];
                let place = |by: usize| executed[by].instance;
                let definition = match made {
                    Made::Result { by, inst } => Definition::Result {
                        instance: place(by),
                        inst,
                    },
                    Made::Returned { call: by, .. } | Made::Thrown { by } => Definition::After {
                        instance: place(by),
                    },
                    Made::Constant(_) | Made::Zero | Made::Argument { .. } => continue,
                };
                let uses = reversed.held.entry(definition).or_default();
                uses.push((instance.time, variable, 0));
            }
            if !window.contains(&instance.time) {
                continue;
            }
            for inst in 0..compiled.code.insts.len() {
                let Ok(mut readings) = trace.reading(instance, inst) else {
                    continue;
                };
                if let Ok(copied) = trace.copied(instance, inst) {
                    readings.extend(copied);
                }
                for reading in readings {
                    let definition = match reading.writer {
                        Writer::Initial => continue,
                        Writer::Host { call } => Definition::After {
                            instance: match calls.get(&call) {
                                Some(&instance) => instance,
                                None => continue,
                            },
                        },
                        Writer::Write { instance, inst, .. } => {
                            Definition::Write { instance, inst }
                        }
                    };
                    let uses = reversed.read.entry(definition).or_default();
                    uses.push((instance.time, inst as u32, reading.length));
                }
            }
        }
        reversed
    }
}
