//! Each link of a chain is a dependence that `deps` also reports. Bytes stay the same from link to
//! link, up to the host's write or the module's data. Each chain ends, and the chain of a constant
//! ends at its operator. The cause that kept a block from being executed was itself executed, and
//! no operator in between was.

use std::collections::{BTreeMap, HashMap};

use afterimage_analyses::why::{
    Absence, At, Bytes, Cause, Chain, Code, Computed, End, Hop, InputSource, Link, Move, State,
    StepBack, Stream, Walk,
};
use afterimage_ids::{BlockId, FuncId, OpId};
use afterimage_profile::{Stop, stops};
use afterimage_program::{BlockKind, Callee, OperatorIndex, ValueDef};
use afterimage_replay::steps::Range;
use afterimage_replay::values::{
    Bits, Controllers, HostReads, Instance, Kind, Origin, RecordedValues, Statement, Types,
    of_statement,
};
use afterimage_testkit::modules::SplitMix64;
use afterimage_trace::TraceFile;
use wasmparser::Operator;

use crate::common::Sandbox;
use crate::common::generated::{each_with_values, seeds};
use crate::common::recorded::Recorded;

/// The maximum number of blocks. Longer runs are left out.
const MOST: u64 = 5000;

/// The amount of data compared.
#[derive(Debug, Default)]
struct Compared {
    links: usize,
    moves: usize,
    /// The number of bytes followed back to the host or the module.
    ends: usize,
    /// The number of bytes followed back to the input.
    input: usize,
    /// The number of moves between the lanes of vectors.
    lanes: usize,
    /// The number of operands that are constants in static single assignment form.
    constants: usize,
    absent: usize,
}

struct Scene<'v, 'a> {
    walk: Walk<'v, 'a>,
    module: &'a [u8],
    controllers: &'v Controllers<'a>,
    types: Types<'a>,
    host: HostReads<'v, 'a>,
    file: &'a TraceFile,
    stopped: Option<Stop>,
    initial: State,
    random: SplitMix64,
    compared: Compared,
}

#[test]
fn programs_that_get_input() {
    let mut all = Compared::default();
    crate::forward::recorded::each_recorded(6, |sandbox| compare(sandbox, &mut all));
    let Compared {
        links,
        moves,
        ends,
        input,
        constants,
        ..
    } = all;
    assert!(links > 8000 && moves > 500 && ends > 80, "{all:?}");
    assert!(constants > 1000, "{all:?}");
    assert!(input > 8, "{all:?}");
}

#[test]
fn handwritten_and_generated_programs() {
    let mut all = Compared::default();
    each_with_values(seeds(6), |sandbox| compare(sandbox, &mut all));
    assert!(all.links > 2000 && all.absent > 20, "{all:?}");
}

/// Bytes of the input pass through vectors in all ways that leave them unchanged.
#[test]
fn bytes_that_go_through_vectors() {
    let mut all = Compared::default();
    for seed in 0..12 {
        let text = vectors(&mut SplitMix64(seed));
        let sandbox = Sandbox::new();
        sandbox.write("a.wasm", wat::parse_str(&text).expect("a module"));
        // The value of each byte is its offset.
        sandbox.write("input", Vec::from_iter(0..=255u8));
        let recorded = sandbox.shell("$AFTERIMAGE record --lens full -o run.aft a.wasm < input");
        assert_eq!(recorded.code, Some(0), "{recorded:?}\n{text}");
        compare(&sandbox, &mut all);
    }
    assert!(all.lanes > 300 && all.input > 800, "{all:?}");
}

/// Several members share the bytes of a word. Each is assigned from a byte of the input and read
/// again, so its chain must end at this byte.
#[test]
fn bits_that_share_a_word() {
    let mut members = 0;
    for seed in 0..30 {
        let (text, from) = packed(&mut SplitMix64(seed));
        let sandbox = Sandbox::new();
        sandbox.write("a.wasm", wat::parse_str(&text).expect("a module"));
        sandbox.write("input", Vec::from_iter(0..=255u8));
        let recorded = sandbox.shell("$AFTERIMAGE record --lens full -o run.aft a.wasm < input");
        assert_eq!(recorded.code, Some(0), "{recorded:?}\n{text}");
        let mut all = Compared::default();
        asked(&sandbox, &mut all, |scene| {
            assert_eq!(scene.multiplied(), from, "{text}");
        });
        members += from.len();
    }
    assert!(members > 60, "{members}");
}

/// Returns a program that assigns members of a word in some order, and then reads each in its own
/// function, and the input byte of each member.
fn packed(random: &mut SplitMix64) -> (String, Vec<u64>) {
    let (ty, width) = [("i32", 32), ("i64", 64)][random.below(2)];
    let load = match ty {
        "i32" => "i32.load8_u",
        _ => "i64.load8_u",
    };
    let mut members = Vec::new();
    let mut first = 0;
    while first < width && members.len() < 6 {
        let count = (1 + random.below(8)).min(width - first);
        members.push((first, count));
        first += count + random.below(3);
    }
    let from = Vec::from_iter(members.iter().map(|_| 1 + random.below(200) as u64));
    let all = u64::MAX >> (64 - width);
    let constant = |bits: u64| match ty {
        "i32" => format!("(i32.const {})", bits as u32 as i32),
        _ => format!("(i64.const {})", bits as i64),
    };
    // The last assignment is nearest to the input.
    let mut order = Vec::from_iter(0..members.len());
    for last in (1..order.len()).rev() {
        order.swap(last, random.below(last + 1));
    }
    let mut assigned = String::new();
    for member in order {
        let (first, count) = members[member];
        let ones = u64::MAX >> (64 - count);
        let byte = format!("({load} (i32.const {}))", 256 + from[member]);
        let low = match random.below(2) {
            0 if count == 8 => byte,
            _ => format!("({ty}.and {byte} {})", constant(ones)),
        };
        let shifted = match first {
            0 => low,
            _ => format!("({ty}.shl {low} {})", constant(first as u64)),
        };
        let word = format!("({ty}.load (i32.const 1024))");
        let others = format!("({ty}.and {word} {})", constant(!(ones << first) & all));
        let how = ["or", "add", "xor"][random.below(3)];
        let (one, other) = match random.below(2) {
            0 => (others, shifted),
            _ => (shifted, others),
        };
        assigned += &format!("({ty}.store (i32.const 1024) ({ty}.{how} {one} {other}))\n");
    }
    let (mut functions, mut calls) = (String::new(), String::new());
    for (member, &(first, count)) in members.iter().enumerate() {
        let word = format!("({ty}.load (i32.const 1024))");
        let ones = u64::MAX >> (64 - count);
        let read = match random.below(3) {
            0 => format!(
                "({ty}.and ({ty}.shr_u {word} {}) {})",
                constant(first as u64),
                constant(ones)
            ),
            1 => format!(
                "({ty}.shr_u ({ty}.and {word} {}) {})",
                constant(ones << first),
                constant(first as u64)
            ),
            _ => format!(
                "({ty}.shr_s ({ty}.shl {word} {}) {})",
                constant((width - first - count) as u64),
                constant((width - count) as u64)
            ),
        };
        // The left operand of the product is the member.
        functions += &format!("(func $member{member} (drop ({ty}.mul {read} (call $same))))\n");
        calls += &format!("(call $member{member})\n");
    }
    let text = format!(
        r#"(module
  (import "wasi_snapshot_preview1" "fd_read" (func $read (param i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 1)
  (data (i32.const 0) "\00\01\00\00\00\01\00\00")
  (func $same (result {ty}) {one})
  {functions}
  (func (export "_start")
    (drop (call $read (i32.const 0) (i32.const 0) (i32.const 1) (i32.const 8)))
    {assigned}
    {calls}))"#,
        one = constant(1)
    );
    (text, from)
}

/// Returns a program that reads 256 bytes to address 256, repeatedly moves some of them through
/// vectors, and reads each byte.
fn vectors(random: &mut SplitMix64) -> String {
    let mut body = String::new();
    for _ in 0..24 {
        let mut at = |most: usize| 256 + random.below(256 - most);
        let (to, one, other) = (at(16), at(16), at(16));
        let vector = format!("(v128.load (i32.const {one}))");
        let size = 1 << random.below(4);
        let lane = random.below(16 / size);
        let (bits, shape) = (
            8 * size,
            ["i8x16", "i16x8", "i32x4", "i64x2"][size.ilog2() as usize],
        );
        let sign = if size < 4 {
            ["_s", "_u"][random.below(2)]
        } else {
            ""
        };
        let int = if size == 8 { "i64" } else { "i32" };
        let scalar = format!("({int}.load (i32.const {other}))");
        let of_vector = |what: String| format!("(v128.store (i32.const {to}) {what})");
        body += &match random.below(9) {
            0 => of_vector(vector),
            1 => of_vector(format!("({shape}.splat {scalar})")),
            2 => of_vector(format!("({shape}.replace_lane {lane} {vector} {scalar})")),
            3 => {
                let first = random.below(32);
                let mut lanes = String::new();
                for i in 0..16 {
                    let lane = match random.below(3) {
                        0 => random.below(32),
                        _ => (first + i) % 32,
                    };
                    lanes += &format!("{lane} ");
                }
                let other = format!("(v128.load (i32.const {other}))");
                of_vector(format!("(i8x16.shuffle {lanes} {vector} {other})"))
            }
            4 => of_vector(format!("(v128.load{bits}_splat (i32.const {one}))")),
            5 => of_vector(format!(
                "(v128.load{bits}_lane {lane} (i32.const {other}) {vector})"
            )),
            6 => format!("(v128.store{bits}_lane {lane} (i32.const {to}) {vector})"),
            7 => format!(
                "({int}.store (i32.const {to}) ({shape}.extract_lane{sign} {lane} {vector}))"
            ),
            _ => {
                let how = ["8x8_s", "8x8_u", "16x4_u", "32x2_s", "32_zero", "64_zero"];
                let how = how[random.below(how.len())];
                of_vector(format!("(v128.load{how} (i32.const {one}))"))
            }
        };
        body.push('\n');
    }
    for address in 256..512 {
        body += &format!("(drop (i32.load8_u (i32.const {address})))\n");
    }
    format!(
        r#"(module
  (import "wasi_snapshot_preview1" "fd_read" (func $read (param i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 1)
  (data (i32.const 0) "\00\01\00\00\00\01\00\00")
  (func (export "_start")
    (drop (call $read (i32.const 0) (i32.const 0) (i32.const 1) (i32.const 8)))
    {body}))"#
    )
}

fn compare(sandbox: &Sandbox, all: &mut Compared) {
    asked(sandbox, all, |scene| {
        scene.go_back();
        scene.absent();
    });
}

fn asked(sandbox: &Sandbox, all: &mut Compared, ask: impl FnOnce(&mut Scene<'_, '_>)) {
    let recorded = Recorded::open(sandbox);
    if recorded.path().unwrap().length() > MOST {
        return;
    }
    let (program, module, file) = (recorded.program(), recorded.bytes(), recorded.file());
    let values = recorded.values().unwrap();
    let run = recorded.run_from_checkpoints().unwrap();
    let end = file.end().unwrap().unwrap();
    let controllers = Controllers::new(program);
    let mut scene = Scene {
        walk: Walk {
            values: &values,
            program,
        },
        module,
        controllers: &controllers,
        types: Types::new(program, module),
        host: HostReads::new(&values, run, file.clone()),
        file,
        stopped: stops(program, &OperatorIndex::new(program, module), &end)
            .unwrap()
            .into_iter()
            .next(),
        initial: State::of_module(program, module).unwrap().0,
        random: SplitMix64(17),
        compared: std::mem::take(all),
    };
    ask(&mut scene);
    *all = scene.compared;
}

impl Scene<'_, '_> {
    /// Returns the input byte of the left operand of each product, by the chain shown to people.
    fn multiplied(&self) -> Vec<u64> {
        let values = self.walk.values;
        let mut cursor = values.path().cursor();
        let mut found = Vec::new();
        while let Some(visit) = cursor.next().unwrap() {
            let instance = values.at(visit.start).unwrap().unwrap();
            let compiled = values.compiled(visit.node).unwrap();
            for one in &compiled.code.insts {
                if !matches!(one.code, Code::Scalar(scalar) if scalar.name().ends_with(".mul")) {
                    continue;
                }
                let from = At::Register(instance, one.a);
                let mut chain = Chain::new(self.walk, self.controllers, from);
                let mut last = None;
                while let Some(step) = chain.next().unwrap() {
                    last = Some(step.link);
                }
                match last {
                    Some(Link::End(End::Host { range, .. })) => found.push(range.address - 256),
                    other => panic!("{other:?}"),
                }
            }
        }
        found
    }

    /// Follows the values of every statement of some executions.
    fn go_back(&mut self) {
        let values = self.walk.values;
        let mut cursor = values.path().cursor();
        let mut counts: HashMap<_, u32> = HashMap::new();
        while let Some(visit) = cursor.next().unwrap() {
            // Take the first executions of each node, and some later ones.
            let count = counts.entry(visit.node).or_default();
            *count += 1;
            if *count > 2 && self.random.below(20) > 0 {
                continue;
            }
            let instance = values.at(visit.start).unwrap().unwrap();
            if values.stopped(instance).unwrap().is_some() {
                continue;
            }
            let compiled = values.compiled(visit.node).unwrap();
            let blocks = &values.path().nodes()[visit.node].blocks;
            for (_, statement) in Statement::all(self.walk.program, &compiled.code, blocks) {
                self.constants(instance, statement);
                if let Some(at) = self.walk.start(instance, statement).unwrap() {
                    self.any_way(at);
                    // This search looks far ahead.
                    if self.random.below(8) == 0 {
                        self.chain(at);
                    }
                }
            }
        }
    }

    /// Checks that operands that are constants in static single assignment form come from these
    /// constants, even if other constants are equal.
    fn constants(&mut self, instance: Instance, statement: Statement) {
        let compiled = self.walk.values.compiled(instance.node).unwrap();
        let op = match statement.kind {
            Kind::Inst(inst) => compiled.code.insts[inst].op,
            Kind::Call(Callee::Direct(_)) => self.walk.end_spot(instance).unwrap().op,
            _ => return,
        };
        let ssa = self.types.statements(compiled.code.function).unwrap();
        let Some(id) = ssa.statement_at(op) else {
            return;
        };
        let operands = statement.operands(&compiled.code);
        for (operand, &value) in operands.iter().zip(ssa.operands(id)) {
            let ValueDef::Constant(op) = ssa.values[value].def else {
                continue;
            };
            let at = At::Register(instance, operand.register);
            match self.walk.back(at).unwrap() {
                StepBack::End(End::Constant { op: told, .. }) => assert_eq!(told, op),
                other => panic!("{other:?}"),
            }
            self.compared.constants += 1;
        }
    }

    /// Follows operands that are chosen at random.
    fn any_way(&mut self, mut at: At) {
        let mut held: Option<Vec<u8>> = None;
        for links in 0.. {
            assert!(links < 100_000, "{at:?}");
            self.compared.links += 1;
            let found = self.walk.back(at).unwrap();
            match found {
                StepBack::End(end) => {
                    self.end(end, held);
                    return;
                }
                StepBack::Moved {
                    how,
                    instance,
                    inst,
                    next,
                    ..
                } => {
                    self.compared.moves += 1;
                    self.compared.lanes += usize::from(matches!(how, Move::Lanes { .. }));
                    held = self.moved(at, (how, instance, inst), next, held);
                    at = next;
                }
                StepBack::Computed(Computed { instance, inst }) => {
                    let statement = Statement {
                        kind: Kind::Inst(inst),
                        block: 0,
                    };
                    let code = &self.walk.values.compiled(instance.node).unwrap().code;
                    let operands = statement.operands(code);
                    if operands.is_empty() {
                        return;
                    }
                    let which = self.random.below(operands.len());
                    held = None;
                    let next = At::Register(instance, operands[which].register);
                    let told = of_statement(self.walk.values, instance, statement).unwrap();
                    self.is_told(told[which].origin, next);
                    at = next;
                }
            }
        }
    }

    /// Checks that the origin that `deps` reports for a value is the start of the next link.
    fn is_told(&self, origin: Origin, next: At) {
        let made = match (self.walk.back(next).unwrap(), next) {
            (StepBack::Moved { instance, inst, .. }, _)
            | (StepBack::Computed(Computed { instance, inst }), _) => Ok((instance, inst)),
            (StepBack::End(end), _) => Err(end),
        };
        if let Origin::Operator { instance, op } = origin {
            // The chain continues with the only thrown value.
            let statement = self.walk.statement(instance, op).unwrap().unwrap();
            let ends = matches!(made, Err(End::Thrown(_)));
            if statement.kind == Kind::Throw && !ends {
                let told = of_statement(self.walk.values, instance, statement).unwrap();
                assert_eq!(told.len(), 1);
                return self.is_told(told[0].origin, next);
            }
        }
        match (origin, made) {
            (Origin::Operator { instance, op }, Ok((of, inst))) => {
                let code = &self.walk.values.compiled(of.node).unwrap().code;
                assert_eq!((instance, op), (of, code.insts[inst].op));
            }
            (Origin::Constant, Err(End::Constant { .. }))
            | (Origin::Zero, Err(End::Zero))
            | (Origin::Argument { .. }, Err(End::Argument { .. }))
            | (Origin::Returned { .. }, Err(End::Returned { .. })) => {}
            // The chain continues through a rethrown reference.
            (Origin::Operator { instance, .. }, Err(End::Thrown(of))) => {
                assert!(instance.time >= of.time);
            }
            other => panic!("{other:?}"),
        }
    }

    /// Checks that a move is reported, and that bytes stay the same. Returns the bytes after the
    /// move.
    fn moved(
        &self,
        at: At,
        (how, instance, inst): (Move, Instance, usize),
        next: At,
        held: Option<Vec<u8>>,
    ) -> Option<Vec<u8>> {
        let values = self.walk.values;
        let compiled = values.compiled(instance.node).unwrap();
        let code = &compiled.code;
        let one = &code.insts[inst];
        let statement = Statement {
            kind: Kind::Inst(inst),
            block: 0,
        };
        let told = of_statement(values, instance, statement).unwrap();
        let bytes = |register| {
            let (low, high) = values.value(instance, register).unwrap();
            let both = u128::from(low) | u128::from(high) << 64;
            both.to_le_bytes().to_vec()
        };
        let those = |register, part: Bytes| {
            let (first, length) = (part.first as usize, part.length as usize);
            bytes(register)[first..first + length].to_vec()
        };
        let result = code.first_result() + inst as u32;
        let reads = told.iter().filter(|one| one.value.is_none());
        let origins = Vec::from_iter(reads.map(|one| one.origin));
        match how {
            Move::Load(_) | Move::Copy { .. } | Move::GlobalGet(_) => {
                let writer = match next {
                    At::Written { instance, inst, .. } => Origin::Operator {
                        instance,
                        op: values.compiled(instance.node).unwrap().code.insts[inst].op,
                    },
                    At::End(End::Host { call, .. }) => Origin::Host { call },
                    At::End(End::Memory(_) | End::Global(_)) => Origin::Initial,
                    other => panic!("{other:?}"),
                };
                assert!(origins.contains(&writer), "{writer:?} in {origins:?}");
            }
            _ => {}
        }
        let part = |all: Range, of: &[u8]| {
            let At::Written { range, .. } = at else {
                panic!("{at:?}")
            };
            let first = (range.address - all.address) as usize;
            of[first..first + range.length as usize].to_vec()
        };
        let same = |found: Vec<u8>| {
            if let Some(held) = &held {
                assert_eq!(held[..found.len().min(held.len())], found, "{at:?} {how:?}");
            }
            Some(found)
        };
        match how {
            Move::Load(all) if matches!(one.code, Code::Load(_)) => {
                let (At::Written { range, .. }
                | At::End(End::Memory(range) | End::Host { range, .. })) = next
                else {
                    panic!("{next:?}")
                };
                let first = (range.address - all.address) as usize;
                let found = bytes(result)[first..first + range.length as usize].to_vec();
                if let At::Part(_, _, wanted) = at
                    && wanted.first < all.length
                {
                    let least = wanted.first..(wanted.first + wanted.length).min(all.length);
                    let found = first as u64..first as u64 + range.length;
                    assert!(least.contains(&found.start) && found.end <= least.end);
                }
                Some(found)
            }
            Move::Load(_) => {
                let (Code::LoadVector(load), At::Part(_, _, asked)) = (one.code, at) else {
                    return None;
                };
                let (At::Written { range, .. }
                | At::End(End::Memory(range) | End::Host { range, .. })) = next
                else {
                    panic!("{next:?}")
                };
                // Not every byte of an extended or zero value is in memory.
                let size = load.bytes() as u64;
                let low = asked.first < size;
                let as_it_is = match load.name() {
                    "v128.load" | "v128.load32_zero" | "v128.load64_zero" => low,
                    name if name.ends_with("splat") => asked.first % size + asked.length <= size,
                    name => name.ends_with("lane"),
                };
                if as_it_is && asked.length == range.length {
                    same(those(result, asked))
                } else {
                    None
                }
            }
            Move::Store(all) => {
                let (low, high) = one.stored(values.value(instance, one.b).unwrap());
                let stored = u128::from(low) | u128::from(high) << 64;
                let found = same(part(all, &stored.to_le_bytes()));
                let At::Part(_, register, of) = next else {
                    panic!("{next:?}")
                };
                assert_eq!((register, &found), (one.b, &Some(those(register, of))));
                found
            }
            Move::Lanes { operand, bytes: of } => {
                let At::Part(_, register, wanted) = next else {
                    panic!("{next:?}")
                };
                assert_eq!((wanted, register), (of, [one.a, one.b][operand]));
                let At::Part(_, _, asked) = at else {
                    return None;
                };
                let name = match one.code {
                    Code::Vector(vector) => vector.name(),
                    _ => "",
                };
                // The part above a taken lane is zero, or extends its sign.
                let size = match name.split_once(".extract_lane_") {
                    Some(("i8x16", _)) => 1,
                    Some(_) => 2,
                    None => 16,
                };
                // For a repeated lane, the end may precede the beginning.
                let turned = name.ends_with(".splat") && of.first == 0;
                if asked.first >= size || asked.length != of.length || turned {
                    return None;
                }
                same(those(result, asked));
                same(those(register, of))
            }
            Move::Fill(_) => {
                let At::Written { range, .. } = at else {
                    panic!("{at:?}")
                };
                same(vec![bytes(one.b)[0]; range.length as usize]);
                None
            }
            Move::Copy { .. } => {
                let (At::Written { range, .. }
                | At::End(End::Memory(range) | End::Host { range, .. })) = next
                else {
                    panic!("{next:?}")
                };
                held.map(|held| held[..held.len().min(range.length as usize)].to_vec())
            }
            Move::Select(first) => {
                let chosen = if first { one.a } else { one.b };
                assert_eq!(bytes(result), bytes(chosen));
                None
            }
            _ => None,
        }
    }

    /// Checks that the bytes are those of the host or the module.
    fn end(&mut self, end: End, held: Option<Vec<u8>>) {
        if let End::Constant { bits, instance, op } = end {
            self.is_constant(bits, instance, op);
        }
        let Some(held) = held else { return };
        match end {
            End::Memory(range) => {
                let memory = &self.initial.memories[range.memory as usize].bytes;
                let first = range.address as usize;
                let initial = memory.get(first..first + held.len());
                // New pages of memory contain zeros.
                match initial {
                    Some(initial) => assert_eq!(initial, held),
                    None => assert!(held.iter().all(|byte| *byte == 0)),
                }
                self.compared.ends += 1;
            }
            End::Host { call, range } => {
                let logged = self.walk.values.host().unwrap().get(call).unwrap().unwrap();
                for (address, byte) in (range.address..).zip(&held) {
                    let wrote = logged.writes.iter().rev().find_map(|write| {
                        let offset = address.checked_sub(write.address)?;
                        write.bytes.get(offset as usize)
                    });
                    assert_eq!(wrote, Some(byte));
                }
                self.compared.ends += 1;
                let imports = &self.walk.program.imports;
                let given = InputSource::find(&self.host, self.file, imports, call, range).unwrap();
                if let InputSource::File {
                    file: Stream::Input,
                    offset: Some(offset),
                    ..
                } = given
                {
                    // The input's bytes are their offsets.
                    assert_eq!(u64::from(held[0]), offset);
                    self.compared.input += 1;
                }
            }
            _ => {}
        }
    }

    /// Checks that an operator of an execution is this constant.
    fn is_constant(&self, bits: Bits, instance: Instance, op: OpId) {
        let node = &self.walk.values.path().nodes()[instance.node];
        let function = self.walk.program.function(node.function).unwrap();
        let block = function.block_of(op).unwrap();
        assert!(node.blocks.contains(&block));
        let mut all = self.walk.program.operators(self.module, function);
        let operator = all.find(|(other, ..)| *other == op).unwrap().2;
        let its = match operator {
            Operator::I32Const { value } => (u64::from(value as u32), 0),
            Operator::I64Const { value } => (value as u64, 0),
            Operator::F32Const { value } => (u64::from(value.bits()), 0),
            Operator::F64Const { value } => (value.bits(), 0),
            Operator::RefNull { .. } => (0, 0),
            Operator::RefFunc { function_index } => (u64::from(function_index) + 1, 0),
            Operator::V128Const { value } => {
                let value = value.i128() as u128;
                (value as u64, (value >> 64) as u64)
            }
            other => panic!("{other:?} is no constant"),
        };
        assert_eq!(its, bits);
    }

    /// Checks that the chain shown to people ends, and that each step goes back in time.
    fn chain(&mut self, at: At) {
        let mut chain = Chain::new(self.walk, self.controllers, at);
        let mut last = u64::MAX;
        let mut ended = false;
        while let Some(step) = chain.next().unwrap() {
            assert!(!ended);
            for moved in &step.moves {
                assert!(moved.spot.time <= last);
                last = moved.spot.time;
            }
            match step.link {
                Link::Made(made) => {
                    assert!(made.spot.time <= last);
                    last = made.spot.time;
                    match made.followed {
                        // The chain follows a constant only if there is no alternative and the
                        // constant was set elsewhere.
                        Some(followed) => assert!(
                            !made.operands[followed].constant
                                || made.operands.iter().all(|operand| operand.constant)
                        ),
                        None => {
                            assert!(made.operands.iter().all(|operand| operand.constant));
                            ended = true;
                        }
                    }
                }
                Link::End(_) | Link::Cut => ended = true,
            }
        }
        assert!(ended);
    }

    /// Asks about all blocks that were not executed, in the whole run and after half of it.
    fn absent(&mut self) {
        let values: &RecordedValues<'_> = self.walk.values;
        for after in [0, values.path().length() / 2] {
            let mut counts: BTreeMap<(FuncId, BlockId), u64> = BTreeMap::new();
            // The block of the moment ends after the moment.
            let mut ending = counts.clone();
            let mut all = counts.clone();
            let mut cursor = values.path().cursor();
            while let Some(visit) = cursor.next().unwrap() {
                let node = &values.path().nodes()[visit.node];
                for (time, &block) in (visit.start..).zip(&node.blocks) {
                    let place = (node.function, block);
                    *counts.entry(place).or_default() += u64::from(time > after);
                    *ending.entry(place).or_default() += u64::from(time >= after);
                    *all.entry(place).or_default() += 1;
                }
            }
            let count = |place: &(FuncId, BlockId)| counts.get(place).copied().unwrap_or(0);
            let begun = |place: &(FuncId, BlockId)| ending.get(place).copied().unwrap_or(0);
            // The last block may have been cut short, before its branch or call.
            let length = values.path().length();
            let to_end = |place: &(FuncId, BlockId)| {
                let function = self.walk.program.function(place.0).unwrap();
                let end = function.cfg.blocks[place.1].ops.end;
                let cut = self
                    .stopped
                    .as_ref()
                    .is_some_and(|stop| (stop.function, stop.block) == *place && stop.next < end);
                begun(place) - u64::from(cut && length >= after)
            };
            // Executions before the moment are always complete.
            let in_all = |place: &(FuncId, BlockId)| all[place] - (begun(place) - to_end(place));
            let absence = Absence::new(self.walk, after, self.stopped);
            for function in &self.walk.program.functions {
                for (block, known) in &function.cfg.blocks {
                    let place = (function.id, block);
                    if known.kind != BlockKind::Code {
                        continue;
                    }
                    assert_eq!(absence.times(place).unwrap(), count(&place));
                    if count(&place) > 0 || self.random.below(4) > 0 {
                        continue;
                    }
                    let causes = absence.of(&[place]).unwrap();
                    // There is always a cause.
                    assert!(!causes.is_empty(), "{place:?} after {after}");
                    for absent in causes {
                        self.compared.absent += 1;
                        for Hop::Branch(place) | Hop::Call(place) in absent.hops {
                            assert_eq!(to_end(&place), 0);
                        }
                        match absent.cause {
                            Cause::Branch {
                                place,
                                edge,
                                times,
                                executions,
                                execution,
                            } => {
                                let cfg = &self.walk.program.function(place.0).unwrap().cfg;
                                assert_eq!(cfg.graph.from(edge), place.1);
                                assert_eq!(times, to_end(&place));
                                assert_eq!(executions, in_all(&place));
                                assert!(times > 0 && execution.time >= after);
                                assert_ne!(execution.to, Some(cfg.graph.to(edge)));
                            }
                            Cause::Table {
                                place,
                                times,
                                executions,
                                ..
                            } => {
                                assert_eq!(times, to_end(&place));
                                assert_eq!(executions, in_all(&place));
                                assert!(times > 0);
                            }
                            Cause::Ended { place, .. } => assert!(to_end(&place) > 0),
                            Cause::Stopped(place) => assert!(begun(&place) > to_end(&place)),
                            Cause::Host(_) | Cause::Uncalled(_) => {}
                        }
                    }
                }
            }
        }
    }
}
