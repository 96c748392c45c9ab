//! Forward dependences are reversed backward dependences, for whole recordings. An execution's uses
//! are exactly the executions whose dependences name it.

use std::collections::HashMap;

use afterimage_ids::OpId;
use afterimage_profile::{Stop, stops};
use afterimage_program::{OperatorIndex, Program};
use afterimage_replay::steps::{Range, Run, recorded_checkpoints, stopped_before};
use afterimage_replay::values::{
    Controller, Controllers, Definition, Execution, HostReads, Instance, Kind, Origin,
    RecordedValues, Statement, Use, Uses, definition, of_statement, recorded_epochs,
    recorded_values,
};
use afterimage_replay::whole_path::{FileSegments, RecordedPath, recorded_path};
use afterimage_trace::TraceFile;

use crate::common::Sandbox;
use crate::common::generated::{each_with_values, seeds};

/// The maximum number of blocks. Longer runs are left out.
const MOST: u64 = 20_000;

/// A program with difficult dependences, and predicates of all kinds.
pub const PROGRAM: &str = r#"(module
  (import "wasi_snapshot_preview1" "random_get" (func $random (param i32 i32) (result i32)))
  (memory (export "memory") 1)
  (tag $t (param i32))
  (global $g (mut i32) (i32.const 5))
  (table funcref (elem $even $odd))
  (type $unary (func (param i32) (result i32)))
  (func $even (param $n i32) (result i32)
    (if (result i32) (local.get $n)
      (then (return_call $odd (i32.sub (local.get $n) (i32.const 1))))
      (else (i32.const 1))))
  (func $odd (param $n i32) (result i32)
    (if (result i32) (local.get $n)
      (then (return_call_indirect (type $unary) (i32.sub (local.get $n) (i32.const 1)) (i32.const 0)))
      (else (i32.const 0))))
  (func $maybe (param $n i32) (result i32)
    (if (i32.and (local.get $n) (i32.const 1)) (then (throw $t (i32.mul (local.get $n) (i32.const 3)))))
    (local.get $n))
  (func $try (param $n i32) (result i32)
    (block $h (result i32)
      (try_table (result i32) (catch $t $h) (call $maybe (local.get $n)))))
  (func $own (param $n i32) (result i32)
    (try_table (result i32) (catch $t 0) (call $maybe (local.get $n))))
  (func $fib (param $n i32) (result i32)
    (if (i32.lt_u (local.get $n) (i32.const 2)) (then (return (local.get $n))))
    (i32.add (call $fib (i32.sub (local.get $n) (i32.const 1))) (call $fib (i32.sub (local.get $n) (i32.const 2)))))
  (func $switch (param $n i32) (result i32)
    (block $c (block $b (block $a (br_table $a $b $c (local.get $n)))
      (return (i32.const 10)))
      (global.set $g (i32.add (global.get $g) (local.get $n))))
    (global.get $g))
  (func (export "_start") (local $i i32) (local $sum i32) (local $long i32)
    (local.set $long (i32.load (i32.const 1000)))
    (loop $again
      (i32.store (i32.shl (local.get $i) (i32.const 2))
        (i32.mul (i32.add (local.get $i) (i32.const 1)) (i32.load (i32.shl (local.get $i) (i32.const 3)))))
      (i32.store8 (i32.const 4099) (local.get $i))
      (memory.copy (i32.const 4096) (i32.shl (local.get $i) (i32.const 2)) (i32.const 8))
      (memory.copy (i32.const 8192) (i32.const 4094) (i32.const 12))
      (local.set $sum (i32.add (local.get $sum) (call $try (local.get $i))))
      (local.set $sum (i32.add (local.get $sum) (call $own (local.get $i))))
      (local.set $sum (i32.add (local.get $sum) (call $switch (i32.rem_u (local.get $i) (i32.const 4)))))
      (if (i32.eqz (i32.and (local.get $i) (i32.const 15))) (then
        (drop (call $random (i32.const 4100) (i32.const 3)))
        (memory.fill (i32.const 8196) (local.get $i) (i32.const 5))
        (local.set $sum (i32.add (local.get $sum) (call $even (local.get $i))))
        (local.set $sum (i32.add (local.get $sum) (call $fib (i32.const 5))))))
      (br_if $again (i32.lt_u
        (local.tee $i (i32.add (local.get $i) (i32.const 1)))
        (i32.const 40))))
    (global.set $g (i32.add (local.get $long) (i32.load (i32.const 8194))))
    (drop (i64.load (i32.const 8192)))
    (drop (i32.div_u (i32.const 1) (i32.sub (local.get $sum) (local.get $sum))))))"#;

/// A program with a value that is used thousands of times, and a value that is used again much
/// later.
const LONG: &str = r#"(module
  (memory (export "memory") 1)
  (func $walk (param $late i32) (param $often i32) (result i32) (local $i i32) (local $sum i32)
    (i32.store (i32.const 64) (i32.add (local.get $often) (i32.const 2)))
    (i32.store (i32.const 128) (i32.add (local.get $late) (i32.const 2)))
    (loop $again
      (local.set $sum (i32.add (local.get $sum) (i32.load (i32.const 64))))
      (local.set $sum (i32.xor (local.get $sum) (local.get $often)))
      (if (i32.eq (local.get $i) (i32.const 3000)) (then
        (local.set $sum (i32.add (local.get $sum) (call $walk2 (local.get $sum))))))
      (br_if $again (i32.lt_u
        (local.tee $i (i32.add (local.get $i) (i32.const 1)))
        (i32.const 5000))))
    (i32.add (i32.load (i32.const 128)) (i32.mul (local.get $late) (local.get $sum))))
  ;; The same variables in an activation within the other one's callee.
  (func $walk2 (param $n i32) (result i32)
    (if (result i32) (local.get $n) (then (call $leaf (local.get $n))) (else (i32.const 1))))
  (func $leaf (param $n i32) (result i32) (i32.add (local.get $n) (i32.const 1)))
  (func (export "_start")
    (drop (call $walk (i32.load (i32.const 0)) (i32.load (i32.const 4))))))"#;

/// A program with exceptions that pass through several activations. They are caught by tag, by
/// reference, and by a function's own label. They are thrown again from a local, an argument and a
/// global, and carried by other exceptions.
pub const EXCEPTIONS: &str = r#"(module
  (tag $one (param i32))
  (tag $two (param i32 i64))
  (tag $wrapped (param i32 exnref))
  (global $kept (mut exnref) (ref.null exn))
  (global $g (mut i32) (i32.const 1))
  (func $deep (param $n i32) (result i32)
    (if (i32.eqz (local.get $n)) (then
      (if (i32.and (global.get $g) (i32.const 1))
        (then (throw $one (i32.add (global.get $g) (i32.const 10))))
        (else (throw $two (i32.mul (global.get $g) (i32.const 3)) (i64.extend_i32_u (global.get $g)))))))
    (i32.add (call $deep (i32.sub (local.get $n) (i32.const 1))) (i32.const 1)))
  (func $again (param $e exnref) (throw_ref (local.get $e)))
  (func $passes (param $n i32) (result i32) (local $e exnref)
    (block $h (result exnref)
      (try_table (catch_all_ref $h) (return (call $deep (local.get $n))))
      unreachable)
    (local.set $e)
    (global.set $kept (local.get $e))
    (if (i32.and (local.get $n) (i32.const 1)) (then (call $again (local.get $e))))
    (throw_ref (local.get $e)))
  (func $wraps (param $n i32) (result i32) (local $e exnref)
    (block $h (result exnref)
      (try_table (catch_all_ref $h) (return (call $passes (local.get $n))))
      unreachable)
    (local.set $e)
    (throw $wrapped (i32.shl (local.get $n) (i32.const 2)) (local.get $e)))
  (func $own_one (param $n i32) (result i32)
    (try_table (result i32) (catch $one 0) (call $passes (local.get $n))))
  (func $own_two (param $n i32) (result i32 i64)
    (try_table (result i32 i64) (catch $two 0) (call $own_one (local.get $n)) (i64.const 0)))
  (func $own_reference (param $n i32) (result i32 i64 exnref)
    (try_table (result i32 i64 exnref) (catch_ref $two 0)
      (call $own_one (local.get $n)) (i64.const 0) (ref.null exn)))
  (func $unwraps (param $n i32) (result i32) (local $e exnref) (local $x i32)
    (block $h (result i32 exnref)
      (try_table (catch $wrapped $h) (return (call $wraps (local.get $n))))
      unreachable)
    (local.set $e)
    (local.set $x)
    (block $h2 (result i32)
      (block $h3 (result i32 i64)
        (try_table (catch $one $h2) (catch $two $h3) (throw_ref (local.get $e)))
        unreachable)
      (i32.wrap_i64)
      (i32.xor))
    (i32.add (local.get $x)))
  (func (export "_start") (local $i i32) (local $sum i32) (local $wide i64)
    (loop $l
      (local.set $sum (i32.add (local.get $sum) (call $unwraps (local.get $i))))
      (call $own_two (local.get $i))
      (local.set $wide (i64.add (local.get $wide)))
      (local.set $sum (i32.add (local.get $sum)))
      (call $own_reference (local.get $i))
      (drop (ref.is_null))
      (local.set $wide (i64.add (local.get $wide)))
      (local.set $sum (i32.add (local.get $sum)))
      (block $h (result i32 i64)
        (block $h2 (result i32)
          (try_table (catch $one $h2) (catch $two $h) (throw_ref (global.get $kept)))
          unreachable)
        (i64.extend_i32_u (local.get $sum)))
      (local.set $wide)
      (global.set $g (i32.add (i32.and (i32.const 15)) (i32.add (global.get $g) (i32.const 1))))
      (br_if $l (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (i32.const 8))))
    (drop (i64.add (local.get $wide) (i64.extend_i32_u (local.get $sum))))
    (throw $one (local.get $sum))))"#;

/// A program that uses tables and sizes in all ways.
pub const TABLES: &str = r#"(module
  (type $u (func (param i32) (result i32)))
  (memory $m 1 6)
  (memory $other 1 3)
  (table $t 6 20 funcref)
  (table $w i64 4 30 funcref)
  (table $e 2 externref)
  (elem (table $t) (i32.const 0) func $inc $dec)
  (elem $late func $dec $inc $dec $inc)
  (func $inc (type $u) (i32.add (local.get 0) (i32.const 1)))
  (func $dec (type $u) (i32.sub (local.get 0) (i32.const 1)))
  (func $tail (param $i i32) (result i32)
    (return_call_indirect $t (type $u) (local.get $i) (i32.and (local.get $i) (i32.const 1))))
  (func (export "_start") (local $i i32) (local $sum i32)
    (loop $l
      (local.set $sum (call_indirect $t (type $u) (local.get $sum) (i32.and (local.get $i) (i32.const 1))))
      (local.set $sum (i32.add (local.get $sum) (call $tail (local.get $i))))
      (table.set $t (i32.add (i32.const 2) (i32.and (local.get $i) (i32.const 3))) (ref.func $inc))
      (if (i32.eq (i32.rem_u (local.get $i) (i32.const 5)) (i32.const 2)) (then
        (table.init $t $late (i32.const 1) (i32.and (local.get $i) (i32.const 1)) (i32.const 3))
        (local.set $sum (i32.add (local.get $sum) (memory.grow $m (i32.and (local.get $i) (i32.const 1)))))))
      (table.copy $t $t (i32.const 0) (i32.add (i32.and (local.get $i) (i32.const 1)) (i32.const 1)) (i32.const 2))
      (table.copy $w $t (i64.extend_i32_u (i32.and (local.get $i) (i32.const 1))) (i32.const 0) (i32.const 3))
      (if (i32.eq (i32.rem_u (local.get $i) (i32.const 4)) (i32.const 3)) (then
        (drop (table.grow $t (ref.func $dec) (i32.const 2)))
        (local.set $sum (i32.add (local.get $sum) (i32.wrap_i64 (table.grow $w (table.get $t (i32.sub (table.size $t) (i32.const 1))) (i64.const 9)))))
        (table.fill $w (i64.const 1) (table.get $w (i64.const 3)) (i64.const 2))
        (drop (memory.grow $other (i32.const 1)))))
      (local.set $sum (i32.add (local.get $sum) (i32.add (memory.size $m) (memory.size $other))))
      (table.set $e (i32.const 1) (table.get $e (i32.const 0)))
      (local.set $sum (i32.add (local.get $sum)
        (call_indirect $w (type $u) (local.get $i) (i64.extend_i32_u (i32.and (local.get $i) (i32.const 3))))))
      (br_if $l (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (i32.const 30))))
    (elem.drop $late)
    (table.fill $t (i32.const 1) (ref.null func) (i32.const 3))
    (drop (call_indirect $t (type $u) (local.get $sum) (i32.const 2)))))"#;

/// The compared data of a use.
type ComparedUse = (u64, u32, &'static str, u64, Option<Range>);

struct Recorded<'v, 'a> {
    values: &'v RecordedValues<'a>,
    host: HostReads<'v, 'a>,
    program: &'a Program,
    controllers: Controllers<'a>,
    stop: Option<Stop>,
}

/// An execution of a node, and its statements.
struct Executed {
    instance: Instance,
    statements: Vec<(OpId, Statement)>,
}

#[test]
fn what_is_hard_to_tell() {
    let sandbox = Sandbox::new();
    sandbox.wasm("a.wasm", PROGRAM);
    sandbox.run("record --lens full -o run.aft a.wasm");
    let (uses, controlled) = compare(&sandbox).expect("a short run");
    assert!(uses > 1000 && controlled > 500, "{uses}, {controlled}");
}

#[test]
fn what_exceptions_bring() {
    let sandbox = Sandbox::new();
    sandbox.wasm("a.wasm", EXCEPTIONS);
    sandbox.run("record --lens full -o run.aft a.wasm");
    let (uses, controlled) = compare(&sandbox).expect("a short run");
    assert!(uses > 300 && controlled > 300, "{uses}, {controlled}");
}

#[test]
fn what_tables_hold_and_how_large_things_are() {
    let sandbox = Sandbox::new();
    sandbox.wasm("a.wasm", TABLES);
    sandbox.run("record --lens full -o run.aft a.wasm");
    let (uses, _) = compare(&sandbox).expect("a short run");
    assert!(uses > 1000, "{uses}");
}

#[test]
fn what_is_used_often_or_late() {
    let sandbox = Sandbox::new();
    sandbox.wasm("a.wasm", LONG);
    sandbox.ok("record --lens full -o run.aft a.wasm");
    let (uses, _) = compare(&sandbox).expect("a short run");
    assert!(uses > 30_000, "{uses}");
}

#[test]
fn handwritten_and_generated_programs() {
    let (mut uses, mut controlled) = (0, 0);
    let show = |sandbox: &Sandbox| {
        if let Some(compared) = compare(sandbox) {
            uses += compared.0;
            controlled += compared.1;
        }
    };
    each_with_values(seeds(8), show);
    assert!(uses > 1000 && controlled > 500, "{uses}, {controlled}");
}

#[test]
fn what_the_host_reads() {
    let mut parts = 0;
    for seed in 0..seeds(4) {
        let text = crate::forward::guests::guest(seed, seed % 3 == 1, seed % 5 == 4);
        let sandbox = Sandbox::new();
        sandbox.write("a.wasm", wat::parse_str(&text).expect("a module"));
        sandbox.write("input", Vec::from_iter((0..200).map(|i| i as u8)));
        for words in ["record", "record --invoke run"] {
            let argument = if words.ends_with("run") { " 7" } else { "" };
            let recorded = sandbox.shell(&format!(
                "$AFTERIMAGE {words} --force -o run.aft a.wasm{argument} < input > output"
            ));
            assert_eq!(recorded.code, Some(0), "{recorded:?}\n{text}");
            sandbox.ok("build --lens full run.aft");
            for known in [
                Known::Stored,
                Known::Nothing,
                Known::In(20, true),
                Known::In(150, false),
            ] {
                parts += compare_host(&sandbox, known, &text);
                compare_with(&sandbox, known).expect("a short run");
            }
        }
    }
    assert!(parts > 5_000, "{parts}");
}

/// Compares the writers of the host's reads with a run followed byte by byte. Returns the number of
/// parts.
fn compare_host(sandbox: &Sandbox, known: Known, text: &str) -> usize {
    with(sandbox, known, |recorded, run, file| {
        let mut expected = crate::forward::naive::host_reads(run, file.log().unwrap());
        let mut count = 0;
        for of in recorded.executed() {
            let (found, more) = recorded.host.parts(of.instance, u64::MAX).unwrap();
            assert_eq!(more, 0);
            let length = recorded.values.path().nodes()[of.instance.node].length();
            let parts = expected.remove(&(of.instance.time + length - 1));
            let parts = parts.unwrap_or_default();
            count += parts.len();
            let found = found.iter().map(|part| {
                let wrote = match part.origin {
                    Origin::Initial => None,
                    Origin::Operator { instance, op } => {
                        Some((recorded.time(instance, op), Some(op)))
                    }
                    Origin::Host { call } => Some(recorded.when(call)),
                    other => panic!("{other:?}"),
                };
                (part.range, wrote)
            });
            assert_eq!(Vec::from_iter(found), parts, "{:?} of {text}", of.instance);
            // The limit on parts must hold.
            let (few, more) = recorded.host.parts(of.instance, 2).unwrap();
            assert_eq!((few.len() as u64 + more) as usize, parts.len());
        }
        assert!(expected.is_empty(), "{expected:?}");
        count
    })
}

/// Compares all dependences of a recording in both directions. Returns the numbers of data and
/// control dependences, or `None` if the run is too long.
fn compare(sandbox: &Sandbox) -> Option<(usize, usize)> {
    compare_with(sandbox, Known::Stored)
}

fn compare_with(sandbox: &Sandbox, known: Known) -> Option<(usize, usize)> {
    with(sandbox, known, |recorded, run, _| {
        (run.path.length() <= MOST).then(|| {
            let executed = recorded.executed();
            (recorded.data(&executed), recorded.control(&executed))
        })
    })
}

/// The available checkpoints.
#[derive(Clone, Copy)]
enum Known {
    /// The calls that were stored with the values.
    Stored,
    /// No checkpoints.
    Nothing,
    /// Checkpoints in intervals of about this number of instructions, up to the middle or the end
    /// of the run.
    In(u64, bool),
}

/// Opens a recording.
fn with<T>(
    sandbox: &Sandbox,
    known: Known,
    question: impl FnOnce(&Recorded<'_, '_>, Run<'_, FileSegments>, &TraceFile) -> T,
) -> T {
    let file = TraceFile::open(&sandbox.path("run.aft")).unwrap();
    let module = file.module().unwrap();
    let program = Program::parse(&module).unwrap();
    let path: RecordedPath = recorded_path(&file, &program).unwrap().unwrap();
    let epochs = recorded_epochs(&file, &path).unwrap().unwrap();
    let index = OperatorIndex::new(&program, &module);
    let end = file.end().unwrap().unwrap();
    let values = recorded_values(&program, &module, &path, &epochs).unwrap();
    let run = Run {
        program: &program,
        module: &module,
        path: &path,
        continuations: &path.segments().directory().continuations,
        stopped: stopped_before(&program, &module, &end),
        checkpoints: None,
        snapshots: None,
        progress: &|_| {},
    };
    let checkpoints = match known {
        Known::Stored => recorded_checkpoints(&file, &path).unwrap(),
        Known::Nothing => None,
        Known::In(interval, part) => {
            let copy = sandbox.path("checkpoints.aft");
            std::fs::copy(sandbox.path("run.aft"), &copy).unwrap();
            let log = file.log().unwrap();
            let found =
                crate::forward::intervals::checkpoints(run, log, &path, (interval, part), &copy);
            std::fs::remove_file(&copy).unwrap();
            found
        }
    };
    let run = Run {
        checkpoints: checkpoints.as_ref(),
        ..run
    };
    let recorded = Recorded {
        values: &values,
        host: HostReads::new(&values, run, file.clone()),
        program: &program,
        controllers: Controllers::new(&program),
        stop: stops(&program, &index, &end).unwrap().first().copied(),
    };
    question(&recorded, run, &file)
}

impl Recorded<'_, '_> {
    fn executed(&self) -> Vec<Executed> {
        let path = self.values.path();
        let mut cursor = path.cursor();
        let mut all = Vec::new();
        while let Some(visit) = cursor.next().unwrap() {
            let instance = self.values.at(visit.start).unwrap().unwrap();
            let compiled = self.values.compiled(visit.node).unwrap();
            let blocks = &path.nodes()[visit.node].blocks;
            let mut statements = Statement::all(self.program, &compiled.code, blocks);
            if let Some(stopped) = self.values.stopped(instance).unwrap() {
                // A trapped operator took its operands.
                let tried = self.stop.map_or(0, |stop| stop.next.as_u32());
                let last = blocks.len() as u64 - 1;
                statements.retain(|(op, statement)| match statement.kind {
                    Kind::Inst(inst) => {
                        (inst as u64) < stopped || statement.block == last && op.as_u32() < tried
                    }
                    Kind::Call(_) => op.as_u32() < tried,
                    Kind::Return | Kind::Throw => false,
                });
            }
            all.push(Executed {
                instance,
                statements,
            });
        }
        all
    }

    /// Returns the time at which an operator in an execution of a node was executed.
    fn time(&self, instance: Instance, op: OpId) -> u64 {
        let node = &self.values.path().nodes()[instance.node];
        let block = self.program.function(node.function).unwrap().block_of(op);
        let position = node.blocks.iter().position(|&other| Some(other) == block);
        instance.time + position.unwrap() as u64
    }

    /// Returns the time of a host call, and the operator that made it.
    fn when(&self, call: u64) -> (u64, Option<OpId>) {
        for of in self.executed() {
            if self.values.host_call(of.instance).unwrap() == Some(call) {
                let node = &self.values.path().nodes()[of.instance.node];
                let (op, _) = of.statements.last().unwrap();
                return (of.instance.time + node.length() - 1, Some(*op));
            }
        }
        panic!("call {call}")
    }

    /// Compares the data dependences.
    fn data(&self, executed: &[Executed]) -> usize {
        let mut reversed: HashMap<Definition, Vec<ComparedUse>> = HashMap::new();
        let mut calls = HashMap::new();
        for of in executed {
            if let Some(call) = self.values.host_call(of.instance).unwrap() {
                calls.insert(call, of.instance);
            }
        }
        let definition_of = |instance: Instance, op| {
            let compiled = self.values.compiled(instance.node).unwrap();
            let path = self.values.path();
            let blocks = &path.nodes()[instance.node].blocks;
            let all = Statement::all(self.program, &compiled.code, blocks);
            let (_, made) = all.iter().find(|(other, _)| *other == op).unwrap();
            definition(&compiled, instance, *made).unwrap()
        };
        for of in executed {
            for &(op, statement) in &of.statements {
                for dependence in of_statement(self.values, of.instance, statement).unwrap() {
                    let on = match dependence.origin {
                        Origin::Operator { instance, op } => definition_of(instance, op),
                        Origin::Returned { instance, .. } => Definition::After { instance },
                        Origin::Host { call } => match calls.get(&call) {
                            Some(&instance) => Definition::After { instance },
                            None => continue,
                        },
                        _ => continue,
                    };
                    let time = of.instance.time + statement.block;
                    let many = dependence.bytes + dependence.elements;
                    let told = (time, op.as_u32(), dependence.role, many, None);
                    reversed.entry(on).or_default().push(told);
                }
                if !matches!(statement.kind, Kind::Call(_)) {
                    continue;
                }
                for part in self.host.parts(of.instance, u64::MAX).unwrap().0 {
                    let on = match part.origin {
                        Origin::Operator { instance, op } => definition_of(instance, op),
                        Origin::Host { call } => match calls.get(&call) {
                            Some(&instance) => Definition::After { instance },
                            None => continue,
                        },
                        _ => continue,
                    };
                    let time = of.instance.time + statement.block;
                    let bytes = part.range.length;
                    let told = (time, op.as_u32(), "memory", bytes, Some(part.range));
                    reversed.entry(on).or_default().push(told);
                }
            }
        }
        let mut count = 0;
        for of in executed {
            let compiled = self.values.compiled(of.instance.node).unwrap();
            for &(op, statement) in &of.statements {
                let Some(definition) = definition(&compiled, of.instance, statement) else {
                    continue;
                };
                let found = self.uses(definition);
                let expected = reversed.remove(&definition).unwrap_or_default();
                count += expected.len();
                let host = self.values.host_call(of.instance).unwrap().is_some();
                // The uses of a call include the uses of values that the callee computed.
                let calls = matches!(statement.kind, Kind::Call(_));
                if !calls || host || !expected.is_empty() {
                    assert_eq!(found, expected, "uses of {op} in {:?}", of.instance);
                }
            }
        }
        // All remaining uses would name executions that are not statements.
        assert!(reversed.is_empty(), "{reversed:?}");
        count
    }

    fn uses(&self, definition: Definition) -> Vec<ComparedUse> {
        let told = |found: Use| {
            let Use { role, .. } = found;
            let many = found.bytes + found.elements;
            (found.time, found.op.as_u32(), role, many, found.read)
        };
        let uses = Uses::of(&self.host, self.program, definition);
        let mut uses = uses.unwrap().ending(self.stop);
        let mut all = Vec::new();
        let count = uses.rest().unwrap();
        while let Some(found) = uses.next().unwrap() {
            all.push(told(found));
            if all.len() as u64 * 2 == count {
                assert_eq!(uses.rest().unwrap(), count - all.len() as u64);
            }
        }
        assert_eq!(all.len() as u64, count);
        assert!(uses.unknown().is_empty());
        for (at, expected) in all.iter().enumerate().rev() {
            assert_eq!(uses.previous().unwrap().map(told), Some(*expected));
            assert_eq!(uses.position(), at as u64);
        }
        assert_eq!(uses.previous().unwrap(), None);
        assert_eq!(uses.next().unwrap().map(told), all.first().copied());
        all
    }

    /// Compares the control dependences.
    fn control(&self, executed: &[Executed]) -> usize {
        let path = self.values.path();
        let mut reversed: HashMap<u64, Vec<u64>> = HashMap::new();
        let mut count = 0;
        for of in executed {
            for position in 0..path.nodes()[of.instance.node].length() {
                let execution = Execution {
                    number: 1,
                    time: of.instance.time + position,
                    instance: of.instance,
                    statement: None,
                };
                let by = self.controllers.of_execution(self.values, &execution);
                for by in by.unwrap() {
                    if let Controller::Branch { time, .. }
                    | Controller::Call { time }
                    | Controller::Throw { time } = by
                    {
                        assert!(time < execution.time);
                        reversed.entry(time).or_default().push(execution.time);
                        count += 1;
                    }
                }
            }
        }
        for of in executed {
            let node = &path.nodes()[of.instance.node];
            let function = self.program.function(node.function).unwrap();
            for (position, &block) in node.blocks.iter().enumerate() {
                let ops = &function.cfg.blocks[block].ops;
                let time = of.instance.time + position as u64;
                if ops.is_empty() {
                    assert!(!reversed.contains_key(&time));
                    continue;
                }
                let last = OpId::from_u32(ops.end.as_u32() - 1);
                let found = self.controllers.controlled(self.values, of.instance, last);
                let mut found = found.unwrap();
                let mut all = Vec::new();
                while let Some(block) = found.next().unwrap() {
                    all.push(block.time);
                }
                let expected = reversed.remove(&time).unwrap_or_default();
                assert_eq!(all, expected, "what t={time} let run");
            }
        }
        assert!(reversed.is_empty(), "{reversed:?}");
        count
    }
}
