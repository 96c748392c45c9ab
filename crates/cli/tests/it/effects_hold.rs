//! The effects of executions according to the whole execution trace agree with following the run.

use std::collections::{BTreeMap, HashMap};

use afterimage_ids::{FuncId, OpId, OrigOffset};
use afterimage_replay::state::{Activation, Bodies, Writer, Written, calls};
use afterimage_replay::steps::{
    AccessSite, Addresses, Level, Range, Step, Steps, Tried, Value, Wanted, What, Within,
    recorded_checkpoints,
};
use afterimage_replay::values::{
    Accesses, Effect, Executions, Types, recorded_epochs, recorded_values,
};
use afterimage_replay::whole_path::Window;
use wasmparser::Operator;

use crate::common::Sandbox;
use crate::common::generated::{each_recording, seeds};
use crate::common::recorded::Recorded;

/// The number of seeds to try.
const SEEDS: u64 = 8;

/// The maximum number of blocks. Longer runs would take too long.
const MOST_BLOCKS: u64 = 3_000;

/// Returns the accesses of a step, and its reported values.
fn told(what: &What) -> Option<(Accesses, Vec<Value>)> {
    let of = |read: Option<Range>, written: Option<Range>| Accesses { read, written };
    Some(match *what {
        What::Load(range, value) => (of(Some(range), None), vec![value]),
        What::Store(range, value) => (of(None, Some(range)), vec![value]),
        What::Copy { from, to } => (of(Some(from), Some(to)), vec![]),
        What::Fill(range, byte) => (of(None, Some(range)), vec![number(byte.into())]),
        What::Init { to, from, .. } => (of(None, Some(to)), vec![number(from)]),
        What::Trap(_, Some(tried)) => match tried {
            Tried::Load(range) => (of(Some(range), None), vec![]),
            Tried::Store(range, value) => (of(None, Some(range)), vec![value]),
            Tried::Copy { from, to } => (of(Some(from), Some(to)), vec![]),
            Tried::Fill(range, byte) => (of(None, Some(range)), vec![number(byte.into())]),
            Tried::Init { to, from, .. } => (of(None, Some(to)), vec![number(from)]),
        },
        What::Computed(value) | What::SetGlobal(_, value) | What::Branch(value) => {
            (Accesses::default(), vec![value])
        }
        What::Throw(ref values) => (Accesses::default(), values.to_vec()),
        _ => return None,
    })
}

fn number(low: u64) -> Value {
    Value {
        ty: wasmparser::ValType::I32,
        bits: (low, 0),
    }
}

fn assert_told(step: &Step, effect: &Effect) {
    let Some((accesses, values)) = told(&step.what) else {
        return;
    };
    assert_eq!(effect.accesses, accesses, "{step:?}");
    let found = effect.values.iter();
    // In addition to its address, a load of a lane takes the other lanes.
    let found = found.filter(|value| value.role != "other lanes");
    let found = found.map(|value| value.bits.0);
    assert!(
        found.eq(values.iter().map(|value| value.bits.0)),
        "{step:?} {effect:?}"
    );
    let traps = matches!(step.what, What::Trap(..));
    assert_eq!(effect.trapped, traps, "{step:?}");
}

/// Compares the effects of a recording. Returns the number of steps compared.
fn compare(sandbox: &Sandbox) -> usize {
    let recorded = Recorded::open(sandbox);
    let length = recorded.path().unwrap().length();
    if !(1..=MOST_BLOCKS).contains(&length) {
        return 0;
    }
    let (program, path) = (recorded.program(), recorded.path().unwrap());
    let epochs = recorded_epochs(recorded.file(), path).unwrap().unwrap();
    let values = recorded_values(program, recorded.bytes(), path, &epochs).unwrap();
    let types = Types::new(program, recorded.bytes());
    let wanted = Wanted {
        level: Level::Statement,
        window: Window {
            first: 1,
            last: length,
        },
        within: Within::default(),
        function: None,
        range: None,
    };
    let log = recorded.file().log().unwrap();
    let mut steps = Steps::new(recorded.run_from(None), log, wanted).unwrap();
    let mut compared = 0;
    while let Some(step) = steps.next().unwrap() {
        let Some(op) = step.op.filter(|_| told(&step.what).is_some()) else {
            continue;
        };
        let all = Executions::of(&values, program, step.function, op).unwrap();
        let number = all.by(step.time).unwrap();
        let execution = all.get(&values, number).unwrap().expect("an execution");
        assert_eq!(execution.time, step.time);
        let effect = types.effect(&values, &execution, op).unwrap();
        assert_told(&step, &effect);
        compared += 1;
    }
    compared
}

/// Compares the writes to locals since the beginning of a call with those that a walk over all
/// blocks finds.
fn compare_writes(sandbox: &Sandbox) -> usize {
    let recorded = Recorded::open(sandbox);
    let length = recorded.path().unwrap().length();
    if !(1..=MOST_BLOCKS).contains(&length) {
        return 0;
    }
    let (program, path, module) = (
        recorded.program(),
        recorded.path().unwrap(),
        recorded.bytes(),
    );
    let epochs = recorded_epochs(recorded.file(), path).unwrap().unwrap();
    let values = recorded_values(program, module, path, &epochs).unwrap();
    let bodies = Bodies::new(program, module);
    let mut sets: BTreeMap<FuncId, Vec<(OpId, OrigOffset, u32)>> = BTreeMap::new();
    for function in &program.functions {
        let own = sets.entry(function.id).or_default();
        for (op, offset, operator) in program.operators(module, function) {
            if let Operator::LocalSet { local_index } | Operator::LocalTee { local_index } =
                operator
            {
                own.push((op, offset, local_index));
            }
        }
    }
    // The key is the time of the activation's first block, and the local.
    let mut naive: HashMap<(u64, u32), Written> = HashMap::new();
    let by = |function: FuncId, local: u32| {
        let own = sets[&function].iter().filter(|set| set.2 == local);
        match own.count() {
            1 => Writer::Only,
            _ => Writer::Several,
        }
    };
    let mut written = 0;
    for time in 1..=length {
        let instance = values.at(time).unwrap().unwrap();
        let node = &path.nodes()[instance.node];
        let block = node.blocks[(time - instance.time) as usize];
        let (stack, _) = calls(&values, time, 1).unwrap();
        let entered = stack[0].entered;
        for activation in [Activation::at_block, Activation::at_call] {
            let activation = activation(&values, &bodies, time).unwrap();
            let mut expected = naive.clone();
            let ops = &program.function(node.function).unwrap().cfg.blocks[block].ops;
            let before = sets[&node.function].iter();
            for &(op, offset, local) in before.filter(|set| ops.contains(&set.0)) {
                if op < activation.op {
                    let by = by(node.function, local);
                    expected.insert((entered, local), Written { time, offset, by });
                }
            }
            for local in 0..activation.locals().len() as u32 {
                let found = activation.written(values.path(), &bodies, local).unwrap();
                assert_eq!(
                    found,
                    expected.get(&(entered, local)).copied(),
                    "t={time} {local}"
                );
                written += usize::from(found.is_some());
            }
        }
        let ops = &program.function(node.function).unwrap().cfg.blocks[block].ops;
        let here = sets[&node.function].iter();
        for &(_, offset, local) in here.filter(|set| ops.contains(&set.0)) {
            let by = by(node.function, local);
            naive.insert((entered, local), Written { time, offset, by });
        }
    }
    written
}

/// A recursion in which parameters are written before and after calls, in loops, and on some paths
/// only.
const WRITES: &str = r#"(module
  (func $down (param $n i32) (param $m i32) (result i32) (local $i i32)
    (if (i32.and (local.get $n) (i32.const 1)) (then (local.set $m (i32.const 7))))
    (if (i32.gt_s (local.get $n) (i32.const 0))
      (then
        (drop (call $down (i32.sub (local.get $n) (i32.const 1)) (local.get $m)))
        (loop $again
          (br_if $again (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (local.get $n))))
        (drop (call $down (i32.sub (local.get $n) (i32.const 2)) (i32.const 1)))
        (local.set $n (local.get $m))))
    (i32.add (local.get $n) (local.get $i)))
  (func (export "_start") (drop (call $down (i32.const 5) (i32.const 3)))))"#;

#[test]
fn writes_to_locals_are_those_of_the_path() {
    let sandbox = Sandbox::new();
    sandbox.write("a.wasm", wat::parse_str(WRITES).unwrap());
    sandbox.ok("record --lens full -o run.aft a.wasm");
    let own = compare_writes(&sandbox);
    assert!(own > 20, "few writes: {own}");
    let mut compared = 0;
    each_recording(seeds(SEEDS), 4, "full", |sandbox| {
        compared += compare_writes(sandbox);
    });
    assert!(compared > 0);
}

#[test]
fn effects_are_those_of_the_steps() {
    let mut compared = 0;
    each_recording(seeds(SEEDS), 4, "full", |sandbox| {
        compared += compare(sandbox);
    });
    assert!(compared > 1_000, "few steps: {compared}");
}

/// A run can end with an access in three ways. Each access would have had a different effect.
#[test]
fn effects_of_what_trapped_are_those_of_the_steps() {
    for last in [
        "(i64.store32 offset=9 (i32.const 65530) (i64.const 0x123456789))",
        "(drop (v128.load8_lane offset=70000 3 (i32.const 1) (v128.const i64x2 1 2)))",
        "(v128.store16_lane offset=65535 7 (i32.const 0) (v128.const i64x2 1 -2))",
        "(memory.fill (i32.const 65530) (i32.const 0x7ff) (i32.const 7))",
        "(memory.init $data (i32.const 1) (i32.const 2) (i32.const 3))",
        "(memory.copy (i32.const 1) (i32.const 65536) (i32.const 1))",
    ] {
        let sandbox = Sandbox::new();
        let text = format!(
            r#"(module (memory 1) (data $data "abc") (func (export "_start")
                (i32.store16 offset=3 (i32.const 1) (i32.const 0x54321)) {last}
                (i32.store (i32.const 0) (i32.const 1))))"#
        );
        sandbox.write("a.wasm", wat::parse_str(text).unwrap());
        sandbox.run("record --lens full -o run.aft a.wasm");
        assert_eq!(compare(&sandbox), 2, "{last}");
    }
}

/// A run with several checkpoints, and two stores, one of which is executed every third time.
const LONG: &str = r#"(module (memory 1)
  (func (export "_start") (local $i i32)
    (loop $again
      (i32.store (i32.and (i32.mul (local.get $i) (i32.const 12)) (i32.const 0xfffc)) (local.get $i))
      (if (i32.eqz (i32.rem_u (local.get $i) (i32.const 3)))
        (then (i32.store8 (i32.and (local.get $i) (i32.const 0xff)) (local.get $i))))
      (br_if $again (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (i32.const 200000))))))"#;

#[test]
fn addresses_from_a_checkpoint_are_those_from_the_beginning() {
    let sandbox = Sandbox::new();
    sandbox.write("a.wasm", wat::parse_str(LONG).unwrap());
    sandbox.ok("record --lens full -o run.aft a.wasm");
    let recorded = Recorded::open(&sandbox);
    let program = recorded.program();
    let types = Types::new(program, recorded.bytes());
    let function = program.functions[0].id;
    let operators = (0..program.functions[0].operators).map(OpId::from_u32);
    let operators = Vec::from_iter(operators.map(|op| (function, op)));
    let sites: Vec<AccessSite> = afterimage_replay::steps::access_sites(&types, &operators);
    assert_eq!(sites.len(), 2);
    let log = || recorded.file().log().unwrap();
    let mut all = Addresses::new(recorded.run_from(None), log(), &sites).unwrap();
    let all = Vec::from_iter(std::iter::from_fn(|| all.next().unwrap()));
    let checkpoints = recorded_checkpoints(recorded.file(), recorded.path().unwrap())
        .unwrap()
        .unwrap();
    assert!(checkpoints.intervals() > 3);
    let length = recorded.path().unwrap().length();
    for first in [1, length / 5, length / 2, length - 3] {
        let run = recorded.run_from(Some(&checkpoints));
        let mut found = Addresses::new(run, log(), &sites).unwrap();
        found.skip_to(first).unwrap();
        let found = Vec::from_iter(std::iter::from_fn(|| found.next().unwrap()));
        assert!(first < length / 2 || found.len() < all.len());
        assert!(all.ends_with(&found));
        assert!(all[all.len() - found.len()..][0].time <= first.max(2));
    }
    // The command shows one execution of each store, far from the beginning.
    let text = sandbox
        .ok("addresses run.aft --at 0 --instances 60000")
        .stdout;
    assert!(text.contains("0xfc") && text.contains("#60,000"), "{text}");
    let last = all.iter().rev().find(|access| access.site == 1).unwrap();
    let text = sandbox
        .ok("addresses run.aft --at 0 --instances last --format json")
        .stdout;
    let line = format!("\"number\":{},\"t\":{}", last.number, last.time);
    assert!(text.contains(&line), "{text}");
}
