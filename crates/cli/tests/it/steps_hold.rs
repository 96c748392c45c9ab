//! The steps of followed runs agree with each other, with a naive memory, and with the profile.

use std::collections::{BTreeMap, HashMap};

use afterimage_ids::{FuncId, OpId};
use afterimage_program::SourceMap;
use afterimage_replay::steps::{
    AccessSite, AccessedStretches, Addresses, At, Distinct, Level, Operators, Range, ReverseSteps,
    Step, Steps, Trap, Tried, Wanted, What, Within, WriteIndex, address_stats, last_steps,
    load_values, memory_at,
};
use afterimage_replay::whole_path::{At as Moment, Window};
use serde_json::Value as Json;
use wasmparser::{DataKind, Operator, Parser, Payload, ValType};

use crate::common::Sandbox;
use crate::common::generated::{each_recording, seeds};
use crate::common::recorded::Recorded;

/// The number of seeds to try.
const SEEDS: u64 = 8;

/// The maximum number of blocks. Longer runs would take too long.
const MOST_BLOCKS: u64 = 20_000;

impl Recorded {
    fn steps(&self, wanted: Wanted) -> Vec<Step> {
        let mut steps =
            Steps::new(self.run_from(None), self.file().log().unwrap(), wanted).unwrap();
        std::iter::from_fn(|| steps.next().unwrap()).collect()
    }

    fn all(&self, level: Level) -> Wanted {
        Wanted {
            level,
            window: Window {
                first: 1,
                last: self.path().unwrap().length(),
            },
            within: Within::default(),
            function: None,
            range: None,
        }
    }
}

/// Memory, byte by byte; `None` for bytes that the host wrote. Missing bytes are zero.
#[derive(Clone, Default)]
struct Naive {
    bytes: HashMap<(u32, u64), Option<u8>>,
    data: Vec<Vec<u8>>,
}

impl Naive {
    /// Returns a module's initial state, or `None` if it is not constant.
    fn of(module: &[u8]) -> Option<Self> {
        let mut naive = Self::default();
        for payload in Parser::new(0).parse_all(module) {
            let Payload::DataSection(segments) = payload.unwrap() else {
                continue;
            };
            for segment in segments {
                let segment = segment.unwrap();
                naive.data.push(segment.data.to_vec());
                let DataKind::Active {
                    memory_index,
                    offset_expr,
                } = segment.kind
                else {
                    continue;
                };
                let address = match offset_expr.get_operators_reader().read().unwrap() {
                    Operator::I32Const { value } => u64::from(value as u32),
                    Operator::I64Const { value } => value as u64,
                    _ => return None,
                };
                for (at, &byte) in (address..).zip(segment.data) {
                    naive.bytes.insert((memory_index, at), Some(byte));
                }
            }
        }
        Some(naive)
    }

    fn read(&self, range: Range) -> Vec<Option<u8>> {
        let addresses = range.address..range.address + range.length;
        let bytes = addresses.map(|at| self.bytes.get(&(range.memory, at)));
        bytes.map(|byte| byte.copied().unwrap_or(Some(0))).collect()
    }

    fn write(&mut self, range: Range, bytes: impl IntoIterator<Item = Option<u8>>) {
        for (at, byte) in (range.address..range.address + range.length).zip(bytes) {
            self.bytes.insert((range.memory, at), byte);
        }
    }

    /// Applies a step. A load's value must be the value that was written.
    fn apply(&mut self, step: &Step, operator: &str) {
        match &step.what {
            What::Load(range, value) => {
                let Some(raw) = self.read(*range).into_iter().collect::<Option<Vec<u8>>>() else {
                    return;
                };
                let mut bytes = [0; 16];
                bytes[..raw.len()].copy_from_slice(&raw);
                let raw = u128::from_le_bytes(bytes);
                let found = u128::from(value.bits.0) | u128::from(value.bits.1) << 64;
                if value.ty == ValType::V128 {
                    if operator == "v128.load" || operator.ends_with("_zero") {
                        assert_eq!(found, raw, "{operator} at t={}", step.time);
                    }
                    return;
                }
                let width = if matches!(value.ty, ValType::I32 | ValType::F32) {
                    32
                } else {
                    64
                };
                let bits = 8 * range.length;
                let negative = operator.ends_with("_s") && raw >> (bits - 1) & 1 == 1;
                let extended = if negative {
                    raw | (!0 << bits) & ((1 << width) - 1)
                } else {
                    raw
                };
                assert_eq!(found, extended, "{operator} at t={}", step.time);
            }
            What::Store(range, value) => {
                let bits = u128::from(value.bits.0) | u128::from(value.bits.1) << 64;
                self.write(*range, bits.to_le_bytes().map(Some));
            }
            What::Fill(range, byte) => self.write(*range, std::iter::repeat(Some(*byte))),
            What::Copy { from, to } => {
                let bytes = self.read(*from);
                self.write(*to, bytes);
            }
            What::Init { to, segment, from } => {
                let data = self.data[*segment as usize].clone();
                self.write(*to, data[*from as usize..].iter().copied().map(Some));
            }
            What::HostWrite(_, range) => self.write(*range, std::iter::repeat(None)),
            _ => {}
        }
    }
}

fn is_reference(step: &Step) -> bool {
    let tries = matches!(step.what, What::Trap(_, Some(_)));
    tries || step.what.read().is_some() || step.what.written().is_some()
}

/// Checks that an operator that trapped on an access reports it, unless its address is 2⁶⁴ or more,
/// and that no other step does.
fn assert_trap(all: &[Step], module: &[u8]) {
    let wide = wasmprinter::print_bytes(module).unwrap();
    let wide = wide.contains(";) i64 ");
    let Some((last, others)) = all.split_last() else {
        return;
    };
    assert!(
        others
            .iter()
            .all(|step| !matches!(step.what, What::Trap(..)))
    );
    if let What::Trap(trap, tried) = last.what {
        assert!(trap == Trap::Memory || tried.is_none(), "{last:?}");
        assert!(trap != Trap::Memory || tried.is_some() || wide, "{last:?}");
    }
}

/// Returns the access of a load or a store of a single value.
fn access(step: &Step) -> Option<(AccessSite, Range)> {
    let (What::Load(range, _) | What::Store(range, _)) = step.what else {
        return None;
    };
    let op = step.op?;
    let function = step.function;
    Some((AccessSite { function, op }, range))
}

/// Checks that the steps of windows, of functions and from the end are parts of all steps.
fn assert_parts(recorded: &Recorded, all: &[Step], level: Level) {
    let wanted = recorded.all(level);
    let length = recorded.path().unwrap().length();
    for (first, last) in [(1, length / 2), (length / 3 + 1, length), (length, length)] {
        let window = Window {
            first,
            last: last.max(first),
        };
        let expected = all
            .iter()
            .filter(|step| window.first <= step.time && step.time <= window.last);
        let found = recorded.steps(Wanted { window, ..wanted });
        assert!(found.iter().eq(expected), "{window:?}");
        let log = || Ok(recorded.file().log().unwrap());
        let wanted = Wanted { window, ..wanted };
        let mut backwards = ReverseSteps::new(recorded.run_from(None), log, wanted).unwrap();
        let mut backwards = Vec::from_iter(std::iter::from_fn(|| backwards.next().unwrap()));
        backwards.reverse();
        assert!(backwards == found, "{window:?}");
    }
    if let Some(function) = all.get(all.len() / 2).map(|step| step.function) {
        let expected = all.iter().filter(|step| step.function == function);
        let function = Some(function);
        let found = recorded.steps(Wanted { function, ..wanted });
        assert!(found.iter().eq(expected), "{function:?}");
    }
    for count in [1, 7, all.len() + 1] {
        let log = recorded.file().log().unwrap();
        let found = last_steps(recorded.run_from(None), log, wanted, count).unwrap();
        let expected = &all[all.len().saturating_sub(count)..];
        assert!(found.iter().eq(expected), "the last {count}");
    }
}

/// Checks that the steps contain every statement as often as the profile counts it, and no other
/// operator.
fn assert_counts(sandbox: &Sandbox, operators: &Operators<'_>, all: &[Step]) {
    let ran = sandbox.ok("profile --by instruction --format json run.aft");
    let profile: Json = serde_json::from_str(&ran.stdout).unwrap();
    let mut found: BTreeMap<u64, u64> = BTreeMap::new();
    for step in all {
        let Some(op) = step.op else {
            continue;
        };
        let operator = operators.get(step.function, op).unwrap().unwrap();
        let by_host = matches!(
            step.what,
            What::HostRead(..) | What::HostWrite(..) | What::HostReturn(..)
        );
        if !by_host && &*operator.name != "end" {
            *found.entry(u64::from(operator.offset.0)).or_default() += 1;
        }
    }
    assert_eq!(profile["complete"], true);
    let rows = profile["rows"].as_array().expect("rows");
    let mut expected = BTreeMap::new();
    for row in rows {
        let text = row["text"].as_str().expect("a text");
        let name = text.split_whitespace().next().unwrap_or_default();
        let moves = [
            "local.get",
            "local.set",
            "local.tee",
            "drop",
            "nop",
            "ref.null",
            "ref.func",
        ];
        let count = row["count"].as_u64().expect("a count");
        if count > 0 && !moves.contains(&name) && !name.ends_with(".const") {
            expected.insert(row["offset"].as_u64().expect("an offset"), count);
        }
    }
    assert_eq!(found, expected);
}

/// Checks the contents of memory at a time, and its writers and users, against the accesses.
fn assert_memory(recorded: &Recorded, naive: &Naive, references: &[Step], names: &[String]) {
    let Some((_, range)) = references.iter().rev().find_map(access) else {
        return;
    };
    let length = recorded.path().unwrap().length();
    let blocks = (1..=length + 1).step_by(1 + length as usize / 12);
    let blocks = blocks.map(|time| Moment { time, op: None });
    let within = references.iter().step_by(1 + references.len() / 12);
    let within = within.map(|step| Moment {
        time: step.time,
        op: step.op,
    });
    for at in blocks.chain(within) {
        let mut naive = naive.clone();
        let (mut written, mut read_next, mut written_next) = (None, None, None);
        let first = Range { length: 1, ..range };
        for (step, name) in references.iter().zip(names) {
            let shares = |other: Option<Range>| {
                other.is_some_and(|other| {
                    other.memory == first.memory
                        && (other.address..other.address + other.length).contains(&first.address)
                })
            };
            let (reads, writes) = (shares(step.what.read()), shares(step.what.written()));
            let within = step.op.zip(at.op).is_some_and(|(op, at)| op < at);
            if step.time < at.time || step.time == at.time && within {
                naive.apply(step, name);
                written = if writes { Some(step) } else { written };
            } else {
                read_next = read_next.or(reads.then_some(step));
                written_next = written_next.or(writes.then_some(step));
            }
        }
        let when = if at.time > length {
            At::End
        } else {
            At::Before(at)
        };
        let log = recorded.file().log().unwrap();
        // The memory may not have been large enough at that time.
        let Ok(answer) = memory_at(recorded.run_from(None), log, WriteIndex::None, range, when)
        else {
            continue;
        };
        for (found, expected) in answer.bytes.iter().zip(naive.read(range)) {
            assert!(
                expected.is_none_or(|expected| expected == *found),
                "{when:?}"
            );
        }
        let part = &answer.parts[0];
        assert_eq!(part.written.step(), written, "{when:?}");
        assert_eq!(part.read_next.step(), read_next, "{when:?}");
        assert_eq!(part.written_next.step(), written_next, "{when:?}");
        let covered: u64 = answer.parts.iter().map(|part| part.range.length).sum();
        assert_eq!(covered, range.length);
    }
}

/// Checks that the executions of each load and store, and the sums, match the accesses of the
/// reference.
fn assert_addresses(recorded: &Recorded, references: &[Step]) {
    let mut by_site: BTreeMap<AccessSite, Vec<(u64, Range)>> = BTreeMap::new();
    let mut values: BTreeMap<AccessSite, Vec<(u64, u64)>> = BTreeMap::new();
    for step in references {
        if let Some((site, range)) = access(step) {
            by_site.entry(site).or_default().push((step.time, range));
            if let What::Load(_, value) = step.what {
                values.entry(site).or_default().push(value.bits);
            }
        }
    }
    let log = || recorded.file().log().unwrap();
    let mut stretches = AccessedStretches::new(recorded.run_from(None), log()).unwrap();
    let mut found: BTreeMap<AccessSite, Vec<Range>> = BTreeMap::new();
    while let Some(stretch) = stretches.next().unwrap() {
        let of_one = found.entry(stretch.site).or_default();
        assert_eq!(stretch.first, of_one.len() as u64 + 1);
        assert!(stretch.addresses.len() <= 256);
        of_one.extend(stretch.addresses.iter().map(|&address| Range {
            memory: stretch.memory,
            address,
            length: stretch.bytes,
        }));
    }
    let expected = by_site.iter().map(|(site, executions)| {
        let ranges = executions.iter().map(|(_, range)| *range);
        (*site, Vec::from_iter(ranges))
    });
    assert!(found.into_iter().eq(expected));
    let stats = address_stats(recorded.run_from(None), log(), None)
        .unwrap()
        .sites;
    assert!(stats.iter().map(|(site, _)| site).eq(by_site.keys()));
    for ((_, stats), executions) in stats.iter().zip(by_site.values()) {
        let mut addresses = Vec::from_iter(executions.iter().map(|(_, range)| range.address));
        let mut strides: BTreeMap<i64, u64> = BTreeMap::new();
        for pair in addresses.windows(2) {
            *strides
                .entry(pair[1].wrapping_sub(pair[0]) as i64)
                .or_default() += 1;
        }
        let most = strides.values().copied().max();
        assert_eq!(stats.stride.map(|stride| stride.times), most);
        if let Some(stride) = stats.stride {
            assert_eq!(strides[&stride.value], stride.times);
        }
        assert_eq!(stats.strides, Distinct::Exactly(strides.len() as u64));
        addresses.sort_unstable();
        assert_eq!(stats.count, addresses.len() as u64);
        assert_eq!(Some(&stats.smallest), addresses.first());
        assert_eq!(Some(&stats.largest), addresses.last());
        addresses.dedup();
        assert_eq!(stats.addresses, Distinct::Exactly(addresses.len() as u64));
    }
    let sites = Vec::from_iter(by_site.keys().copied().step_by(2));
    let mut found: BTreeMap<AccessSite, Vec<(u64, Range)>> = BTreeMap::new();
    let mut addresses = Addresses::new(recorded.run_from(None), log(), &sites).unwrap();
    while let Some(access) = addresses.next().unwrap() {
        if access.trap.is_some() {
            let last = references.last().expect("a step");
            let (What::Trap(_, Some(Tried::Load(range) | Tried::Store(range, _))), time) =
                (&last.what, last.time)
            else {
                panic!("{access:?} is not {last:?}");
            };
            assert_eq!((access.range, access.time), (*range, time));
            assert!(addresses.next().unwrap().is_none());
            break;
        }
        let executions = found.entry(sites[access.site]).or_default();
        executions.push((access.time, access.range));
        assert_eq!(access.number, executions.len() as u64);
    }
    by_site.retain(|site, _| sites.contains(site));
    assert_eq!(found, by_site);

    let loads = load_values(recorded.run_from(None), log()).unwrap();
    assert!(loads.iter().map(|(site, _)| site).eq(values.keys()));
    for ((_, load), values) in loads.iter().zip(values.values_mut()) {
        assert_eq!(load.count, values.len() as u64);
        assert!(values.contains(&load.smallest.bits) && values.contains(&load.largest.bits));
        let most = load.most.expect("few values");
        let times = values.iter().filter(|bits| **bits == most.value.bits);
        assert_eq!(times.count() as u64, most.times);
        values.sort_unstable();
        values.dedup();
        assert_eq!(load.values, Distinct::Exactly(values.len() as u64));
    }
}

/// The amount of data compared.
#[derive(Default)]
struct Compared {
    runs: u64,
    references: usize,
}

fn compare(sandbox: &Sandbox, compared: &mut Compared) {
    let recorded = Recorded::open(sandbox);
    if !(1..=MOST_BLOCKS).contains(&recorded.path().unwrap().length()) {
        return;
    }
    let Some(naive) = Naive::of(recorded.bytes()) else {
        return;
    };
    let source = SourceMap::build(recorded.bytes());
    let operators = Operators::new(recorded.program(), recorded.bytes(), &source);
    let all = recorded.steps(recorded.all(Level::Statement));
    let references = recorded.steps(recorded.all(Level::Memory));
    assert!(
        references
            .iter()
            .eq(all.iter().filter(|step| is_reference(step)))
    );
    assert!(all.is_sorted_by_key(|step| step.time));
    assert_trap(&all, recorded.bytes());
    let name = |step: &Step| -> String {
        let (function, op): (FuncId, Option<OpId>) = (step.function, step.op);
        let found = op.and_then(|op| operators.get(function, op).unwrap());
        found.map_or(String::new(), |found| found.name.to_string())
    };
    let names = Vec::from_iter(references.iter().map(name));
    let mut memory = naive.clone();
    for (step, name) in references.iter().zip(&names) {
        // Read bytes are reported with their contents before the step, initialised bytes with their
        // contents after it.
        let read = step.what.read().map(|range| memory.read(range));
        memory.apply(step, name);
        let written = step.what.written().map(|range| memory.read(range));
        if let (Some(bytes), Some(known)) = (&step.bytes, read.or(written)) {
            assert_eq!(bytes.len(), known.len(), "{step:?}");
            let mut pairs = bytes.iter().zip(known);
            assert!(pairs.all(|(byte, known)| known.is_none_or(|known| known == *byte)));
        }
    }
    assert_parts(&recorded, &all, Level::Statement);
    assert_parts(&recorded, &references, Level::Memory);
    assert_counts(sandbox, &operators, &all);
    assert_memory(&recorded, &naive, &references, &names);
    assert_addresses(&recorded, &references);
    compared.runs += 1;
    compared.references += references.len();
}

#[test]
fn steps_of_generated_programs_hold() {
    let mut compared = Compared::default();
    each_recording(seeds(SEEDS), 4, "paths", |sandbox| {
        compare(sandbox, &mut compared);
    });
    assert!(compared.runs >= seeds(SEEDS), "few runs: {}", compared.runs);
    assert!(compared.references > 0);
}

/// Loads and stores of all widths, bulk operations and growth, in consecutive blocks, over bytes
/// that they share.
const SHARED: &str = r#"(module
  (memory 1 4)
  (data (i32.const 4) "0123456789abcdef")
  (data $passive "ABCDEFGH")
  (func $mix (param $at i32) (result i64)
    (i64.store (local.get $at) (i64.mul (i64.load offset=3 (local.get $at)) (i64.const 0x123456789abcdef)))
    (if (i32.and (local.get $at) (i32.const 1))
      (then (i32.store16 offset=2 (local.get $at) (i32.load8_s offset=5 (local.get $at)))))
    (if (i32.and (local.get $at) (i32.const 2))
      (then (memory.copy (local.get $at) (i32.const 2) (i32.const 9)))
      (else (memory.init $passive (local.get $at) (i32.const 3) (i32.const 4))))
    (v128.store offset=8 (local.get $at) (v128.load offset=1 (local.get $at)))
    (if (i32.eq (local.get $at) (i32.const 6))
      (then (drop (memory.grow (i32.const 1)))
            (memory.copy (i32.const 65533) (i32.const 0) (i32.const 12))))
    (memory.fill (i32.const 7) (local.get $at) (i32.const 2))
    (f32.store offset=1 (local.get $at) (f32.convert_i32_u (i32.load16_s (local.get $at))))
    (i64.load32_s (local.get $at)))
  (func (export "main") (result i64) (local $i i32) (local $sum i64)
    (loop $again
      (local.set $sum (i64.add (local.get $sum) (call $mix (local.get $i))))
      (br_if $again (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (i32.const 12))))
    (drop (i32.load (i32.const 65534)))
    (i64.add (local.get $sum) (i64.load (i32.const 0x20000)))))"#;

#[test]
fn steps_over_shared_bytes_hold() {
    let sandbox = Sandbox::new();
    sandbox.write("a.wasm", wat::parse_str(SHARED).unwrap());
    sandbox.run("record --invoke main -o run.aft a.wasm");
    sandbox.ok("build --lens paths run.aft");
    let mut compared = Compared::default();
    compare(&sandbox, &mut compared);
    assert!(compared.runs == 1 && compared.references > 100);
}

/// A number is computed in a register that previously held a vector, and passed to the host.
const AFTER_VECTORS: &str = r#"(module
  (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))
  (memory (export "memory") 1)
  (func (export "_start") (local $i i32) (local $v v128)
    (local.set $i (i32.const 3))
    (loop $again
      (local.set $v (i64x2.splat (i64.const -1)))
      (local.set $v (i64x2.add (local.get $v) (local.get $v)))
      (local.set $v (i64x2.add (local.get $v) (local.get $v)))
      (local.set $v (i64x2.add (local.get $v) (local.get $v)))
      (local.set $v (i64x2.add (local.get $v) (local.get $v)))
      (local.set $v (i64x2.add (local.get $v) (local.get $v)))
      (local.set $v (i64x2.add (local.get $v) (local.get $v)))
      (local.set $v (i64x2.add (local.get $v) (local.get $v)))
      (v128.store (i32.const 16) (local.get $v))
      (br_if $again (local.tee $i (i32.sub (local.get $i) (i32.const 1)))))
    (call $nothing)
    (call $exit (i32.add (i32.add (i32.add (local.get $i) (i32.const 1)) (i32.const 1)) (i32.const 1))))
  (func $nothing))"#;

#[test]
fn steps_after_vectors_hold() {
    let sandbox = Sandbox::new();
    sandbox.write("a.wasm", wat::parse_str(AFTER_VECTORS).unwrap());
    sandbox.run("record -o run.aft a.wasm");
    sandbox.ok("build --lens paths run.aft");
    let mut compared = Compared::default();
    compare(&sandbox, &mut compared);
    assert_eq!(compared.runs, 1);
}
