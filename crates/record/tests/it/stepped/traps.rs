//! Tests every operator that can trap, in every position. The recording must name the operator of
//! the debugger's last step, and the same reason for the trap as the bare engine.

use std::collections::BTreeSet;

use afterimage_record::Interrupt;
use afterimage_trace::{Ending, TrapCode};
use wasmparser::{Parser, Payload};
use wasmtime::Trap;

use super::engine::last_step;
use super::follow::agree;
use crate::harness::{invoke, quiet, try_record, wat};
use crate::stored::Stored;

/// The memories of every module. The maximum sizes of the first and the last memory equal their
/// sizes, and the size of the last memory is zero.
const MEMORIES: &str = "(memory $one 1 1) (memory $none 0) (memory $wide i64 1 1) (memory $open i64 1) (memory $never 0 0)";

/// The rest of every module. The first element of the table is null.
const REST: &str = r#"
  (type $void (func)) (type $taker (func (param i32)))
  (table $t 4 4 funcref)
  (elem (table $t) (i32.const 1) func $leaf $take)
  (elem $elements func $leaf)
  (data $data "abc")
  (tag $tag)
  (global $g (mut i32) (i32.const 0))
  (global $w (mut i64) (i64.const 0))
  (global $v (mut v128) (v128.const i64x2 0 0))
  (global $f (mut f32) (f32.const 0))
  (global $d (mut f64) (f64.const 0))
  (func $leaf)
  (func $take (param i32) (global.set $g (local.get 0)))"#;

/// The positions of an operator, written `OP`. The parameter `$zero` is 0, and `$c` selects the
/// path to the position.
const POSITIONS: [(&str, &str, i32); 17] = [
    ("alone", "OP", 0),
    ("behind a branch", "(if (local.get $c) (then (nop))) OP", 0),
    (
        "behind a branch that does something",
        "(if (local.get $c) (then (global.set $g (i32.const 1)))) OP",
        1,
    ),
    ("in a branch", "(if (local.get $c) (then OP))", 1),
    (
        "in the other branch",
        "(if (local.get $c) (then (nop)) (else OP))",
        0,
    ),
    (
        "in both branches",
        "(if (local.get $c) (then OP) (else OP))",
        1,
    ),
    (
        "in both branches, the other one",
        "(if (local.get $c) (then OP) (else OP))",
        0,
    ),
    (
        "beside another trap",
        "(if (local.get $c) (then (unreachable)) (else OP))",
        0,
    ),
    ("behind br_if", "(block $b (br_if $b (local.get $c)) OP)", 0),
    (
        "where br_if goes",
        "(block $b (br_if $b (local.get $c)) (global.set $g (i32.const 2))) OP",
        1,
    ),
    (
        "in a loop",
        "(loop $l (br_if $l (i32.eqz (local.tee $c (i32.add (local.get $c) (i32.const 1))))) OP)",
        -1,
    ),
    (
        "behind a table",
        "(block $a (block $b (br_table $a $b $a (local.get $c))) (global.set $g (i32.const 3))) OP",
        1,
    ),
    ("behind a call", "(call $leaf) OP", 0),
    (
        "behind an element of a table",
        "(drop (table.get $t (i32.const 1))) OP",
        0,
    ),
    (
        "in a try_table",
        "(block $h (try_table (catch_all $h) OP))",
        0,
    ),
    ("twice", "OP OP", 0),
    (
        "twice, with a branch between",
        "OP (if (local.get $c) (then (nop))) OP",
        0,
    ),
];

/// A folded operator whose first operand is an address.
struct Access {
    name: String,
    /// The operator's operands after the address.
    operands: &'static str,
    lane: bool,
    /// The type of the operator's result.
    gives: Option<&'static str>,
    /// The number of accessed bytes.
    bytes: u64,
}

impl Access {
    fn text(&self, memory: &str, immediate: &str, address: &str) -> String {
        let lane = if self.lane { "0" } else { "" };
        let (name, operands) = (&self.name, self.operands);
        format!("({name} {memory} {immediate} {lane} {address} {operands})")
    }
}

/// Returns the operators that access memory at an address.
fn accesses() -> Vec<Access> {
    let mut all = Vec::new();
    let mut add = |name: String, bytes, operands, gives, lane| {
        all.push(Access {
            name,
            operands,
            lane,
            gives,
            bytes,
        });
    };
    let (i32s, i64s) = ("(i32.const 7)", "(i64.const 7)");
    let both = |a: &'static str, b: &'static str, wide| if wide { b } else { a };
    for (ty, bytes) in [("i32", 4), ("i64", 8), ("f32", 4), ("f64", 8)] {
        let value = match ty {
            "i32" => i32s,
            "i64" => i64s,
            "f32" => "(f32.const 7)",
            _ => "(f64.const 7)",
        };
        add(format!("{ty}.load"), bytes, "", Some(ty), false);
        add(format!("{ty}.store"), bytes, value, None, false);
    }
    for (ty, wide) in [("i32", false), ("i64", true)] {
        let value = both(i32s, i64s, wide);
        let two = both(
            "(i32.const 0) (i32.const 7)",
            "(i64.const 0) (i64.const 7)",
            wide,
        );
        for (bits, bytes) in [("8", 1), ("16", 2), ("32", 4)] {
            if bits == "32" && !wide {
                continue;
            }
            for sign in ["s", "u"] {
                add(
                    format!("{ty}.load{bits}_{sign}"),
                    bytes,
                    "",
                    Some(ty),
                    false,
                );
            }
            add(format!("{ty}.store{bits}"), bytes, value, None, false);
            add(
                format!("{ty}.atomic.load{bits}_u"),
                bytes,
                "",
                Some(ty),
                false,
            );
            add(
                format!("{ty}.atomic.store{bits}"),
                bytes,
                value,
                None,
                false,
            );
            for op in ["add", "sub", "and", "or", "xor", "xchg"] {
                add(
                    format!("{ty}.atomic.rmw{bits}.{op}_u"),
                    bytes,
                    value,
                    Some(ty),
                    false,
                );
            }
            add(
                format!("{ty}.atomic.rmw{bits}.cmpxchg_u"),
                bytes,
                two,
                Some(ty),
                false,
            );
        }
        let bytes = if wide { 8 } else { 4 };
        add(format!("{ty}.atomic.load"), bytes, "", Some(ty), false);
        add(format!("{ty}.atomic.store"), bytes, value, None, false);
        for op in ["add", "sub", "and", "or", "xor", "xchg"] {
            add(
                format!("{ty}.atomic.rmw.{op}"),
                bytes,
                value,
                Some(ty),
                false,
            );
        }
        add(
            format!("{ty}.atomic.rmw.cmpxchg"),
            bytes,
            two,
            Some(ty),
            false,
        );
    }
    let vector = "(v128.const i64x2 1 2)";
    add("v128.load".to_owned(), 16, "", Some("v128"), false);
    add("v128.store".to_owned(), 16, vector, None, false);
    for shape in ["8x8", "16x4", "32x2"] {
        for sign in ["s", "u"] {
            add(
                format!("v128.load{shape}_{sign}"),
                8,
                "",
                Some("v128"),
                false,
            );
        }
    }
    for (bits, bytes) in [("8", 1), ("16", 2), ("32", 4), ("64", 8)] {
        add(
            format!("v128.load{bits}_splat"),
            bytes,
            "",
            Some("v128"),
            false,
        );
        add(
            format!("v128.load{bits}_lane"),
            bytes,
            vector,
            Some("v128"),
            true,
        );
        add(format!("v128.store{bits}_lane"), bytes, vector, None, true);
        if bytes >= 4 {
            add(
                format!("v128.load{bits}_zero"),
                bytes,
                "",
                Some("v128"),
                false,
            );
        }
    }
    all
}

/// Returns the ways to exceed a memory. Each has the memory, the immediate and the address for an
/// access of this many bytes.
fn addresses(bytes: u64) -> Vec<(&'static str, String, String)> {
    let last = 65536 - bytes + 1;
    let aligned = 65536;
    vec![
        (
            "$one",
            "offset=65536".to_owned(),
            "(local.get $zero)".to_owned(),
        ),
        ("$one", String::new(), format!("(i32.const {aligned})")),
        (
            "$one",
            String::new(),
            format!("(i32.add (local.get $zero) (i32.const {last}))"),
        ),
        (
            "$one",
            "offset=4294967288".to_owned(),
            "(i32.load $one (i32.const 8))".to_owned(),
        ),
        ("$none", String::new(), "(i32.const 0)".to_owned()),
        ("$never", String::new(), "(local.get $zero)".to_owned()),
        (
            "$wide",
            "offset=65536".to_owned(),
            "(i64.extend_i32_u (local.get $zero))".to_owned(),
        ),
        (
            "$wide",
            "offset=0xfffffffffffffff8".to_owned(),
            "(i64.const 65536)".to_owned(),
        ),
        (
            "$open",
            "offset=0x100000000".to_owned(),
            "(i64.extend_i32_u (local.get $zero))".to_owned(),
        ),
        ("$open", String::new(), "(i64.const -8)".to_owned()),
    ]
}

/// Returns statements that take a value, so that the engine may merge both into one instruction.
fn takers(ty: &str) -> &'static [&'static str] {
    match ty {
        "i32" => &[
            "(drop V)",
            "(global.set $g (i32.add (i32.const 5) V))",
            "(if V (then (global.set $g (i32.const 6))))",
        ],
        "i64" => &["(drop V)", "(global.set $w (i64.xor V (global.get $w)))"],
        "f32" => &["(drop V)", "(global.set $f (f32.sqrt V))"],
        "f64" => &["(drop V)", "(global.set $g (i32.trunc_f64_s V))"],
        _ => &["(drop V)", "(global.set $v (i32x4.add (global.get $v) V))"],
    }
}

/// Returns statements that trap for reasons other than an access beyond memory.
fn others() -> Vec<String> {
    let mut all = Vec::new();
    for (ty, wide) in [("i32", false), ("i64", true)] {
        let zero = if wide {
            "(i64.extend_i32_s (local.get $zero))"
        } else {
            "(local.get $zero)"
        };
        for op in ["div_s", "div_u", "rem_s", "rem_u"] {
            let name = format!("{ty}.{op}");
            let mut ways = vec![
                format!("(drop ({name} ({ty}.const 7) {zero}))"),
                format!("(drop ({name} ({ty}.const 7) ({ty}.const 0)))"),
                format!("(drop ({name} ({ty}.const 7) ({ty}.load $one (i32.const 16))))"),
                format!(
                    "(drop ({name} ({ty}.const 7) ({ty}.load $one (i32.add (local.get $zero) (i32.const 65535)))))"
                ),
            ];
            if op == "div_s" {
                let least = if wide {
                    "0x8000000000000000"
                } else {
                    "0x80000000"
                };
                ways.push(format!(
                    "(drop ({name} ({ty}.const {least}) ({ty}.sub {zero} ({ty}.const 1))))"
                ));
                ways.push(format!(
                    "(drop ({name} ({ty}.const {least}) ({ty}.const -1)))"
                ));
            }
            all.extend(ways);
        }
        for from in ["f32", "f64"] {
            for sign in ["s", "u"] {
                let name = format!("{ty}.trunc_{from}_{sign}");
                let huge = format!("({from}.const 1e30)");
                all.extend([
                    format!("(drop ({name} ({from}.const nan)))"),
                    format!("(drop ({name} {huge}))"),
                    format!("(drop ({name} ({from}.div ({from}.convert_i32_s (local.get $zero)) ({from}.const 0))))"),
                    format!("(drop ({name} ({from}.load $one (i32.add (local.get $zero) (i32.const 65535)))))"),
                ]);
            }
        }
    }
    let others = [
        "(unreachable)",
        "(drop (table.get $t (i32.const 4)))",
        "(drop (table.get $t (i32.sub (local.get $zero) (i32.const 1))))",
        "(global.set $g (ref.is_null (table.get $t (i32.const 4))))",
        "(drop (table.get $t (i32.load $one (i32.const 65536))))",
        "(table.set $t (i32.const 4) (ref.null func))",
        "(table.set $t (i32.sub (local.get $zero) (i32.const 1)) (ref.func $leaf))",
        "(table.fill $t (i32.const 3) (ref.null func) (i32.const 2))",
        "(table.fill $t (local.get $zero) (ref.null func) (i32.const 5))",
        "(table.copy $t $t (i32.const 3) (i32.const 0) (i32.const 2))",
        "(table.copy $t $t (local.get $zero) (i32.const 4) (i32.const 1))",
        "(table.init $t $elements (local.get $zero) (i32.const 0) (i32.const 2))",
        "(table.init $t $elements (i32.const 5) (i32.const 0) (i32.const 0))",
        "(memory.fill $one (i32.const 1) (i32.const 0) (i32.const 65536))",
        "(memory.fill $one (i32.const 65535) (local.get $zero) (i32.const 2))",
        "(memory.fill $never (i32.const 1) (i32.const 0) (i32.const 0))",
        "(memory.fill $wide (i64.const -1) (i32.const 0) (i64.const 2))",
        "(memory.copy $one $one (i32.const 65535) (local.get $zero) (i32.const 2))",
        "(memory.copy $one $none (i32.const 0) (local.get $zero) (i32.const 1))",
        "(memory.copy $wide $one (i64.const 65535) (i32.const 0) (i32.const 2))",
        "(memory.copy $one $one (i32.const 0) (i32.const 65529) (i32.const 8))",
        "(memory.init $one $data (local.get $zero) (i32.const 1) (i32.const 3))",
        "(memory.init $one $data (i32.const 65535) (i32.const 0) (i32.const 2))",
        "(memory.init $never $data (i32.const 0) (i32.const 0) (i32.const 1))",
        "(call_indirect $t (type $void) (i32.const 0))",
        "(call_indirect $t (type $void) (local.get $zero))",
        "(call_indirect $t (type $void) (i32.const 2))",
        "(call_indirect $t (type $taker) (i32.const 3) (i32.add (local.get $zero) (i32.const 1)))",
        "(call_indirect $t (type $void) (i32.const 9))",
        "(call_indirect $t (type $void) (i32.sub (local.get $zero) (i32.const 1)))",
        "(call_indirect $t (type $void) (i32.load $one (i32.const 65536)))",
        "(return_call_indirect $t (type $void) (local.get $zero))",
        "(return_call_indirect $t (type $void) (i32.const 2))",
        "(return_call_indirect $t (type $void) (i32.const 9))",
        "(throw_ref (ref.null exn))",
        "(data.drop $data) (memory.init $one $data (i32.const 0) (i32.const 0) (i32.const 1))",
        "(elem.drop $elements) (table.init $t $elements (i32.const 0) (i32.const 0) (i32.const 1))",
        "(drop (i32.load $one (select (i32.const 65536) (i32.const 0) (i32.eqz (local.get $zero)))))",
        "(drop (i32.add (i32.load $one (local.get $zero)) (i32.load $one (i32.sub (local.get $zero) (i32.const 4)))))",
    ];
    all.extend(others.map(str::to_owned));
    all
}

/// Operators of the supported proposals that never trap. Lines that begin with `#` are notes.
const NEVER: &str = include_str!("never.txt");

/// Proposals that are rejected by name. All other proposals count as supported, so a new proposal
/// needs a decision.
const REFUSED: [&str; 8] = [
    "custom_descriptors",
    "function_references",
    "gc",
    "legacy_exceptions",
    "memory_control",
    "shared_everything_threads",
    "stack_switching",
    "wide_arithmetic",
];

/// An operator known to wasmparser.
struct Known {
    name: &'static str,
    /// Whether it has an address and an offset.
    accesses: bool,
}

/// Returns wasmparser's operators of the supported proposals.
fn known() -> Vec<Known> {
    let mut all = Vec::new();
    macro_rules! collect {
        ($(@$proposal:ident $op:ident $({ $($field:ident: $ty:ty),* })? => $visit:ident ($($arity:tt)*))*) => {
            $(
                let fields: &[&str] = &[$($(stringify!($field)),*)?];
                if !REFUSED.contains(&stringify!($proposal)) {
                    all.push(Known {
                        name: stringify!($op),
                        accesses: fields.contains(&"memarg"),
                    });
                }
            )*
        };
    }
    wasmparser::for_each_operator!(collect);
    all
}

/// Returns the name of the operator at an offset in a module.
fn operator_at(bytes: &[u8], offset: u32) -> String {
    for payload in Parser::new(0).parse_all(bytes) {
        if let Payload::CodeSectionEntry(body) = payload.expect("a module") {
            let operators = body.get_operators_reader().expect("operators");
            for one in operators.into_iter_with_offsets() {
                let (operator, at) = one.expect("an operator");
                if at == offset as usize {
                    let text = format!("{operator:?}");
                    let end = text.find(|c: char| !c.is_alphanumeric());
                    return text[..end.unwrap_or(text.len())].to_owned();
                }
            }
        }
    }
    panic!("no operator at {offset:#x}")
}

fn code_of(trap: Trap) -> TrapCode {
    match trap {
        Trap::UnreachableCodeReached => TrapCode::Unreachable,
        Trap::MemoryOutOfBounds => TrapCode::MemoryOutOfBounds,
        Trap::TableOutOfBounds => TrapCode::TableOutOfBounds,
        Trap::IndirectCallToNull => TrapCode::IndirectCallToNull,
        Trap::BadSignature => TrapCode::BadSignature,
        Trap::IntegerOverflow => TrapCode::IntegerOverflow,
        Trap::IntegerDivisionByZero => TrapCode::DivisionByZero,
        Trap::BadConversionToInteger => TrapCode::BadConversionToInteger,
        Trap::NullReference => TrapCode::NullReference,
        Trap::HeapMisaligned => TrapCode::UnalignedAtomic,
        _ => TrapCode::Other,
    }
}

fn module(body: &str) -> Vec<u8> {
    wat(&format!(
        "(module {MEMORIES} {REST} (func (export \"run\") (param $c i32) (param $zero i32) {body} (global.set $g (i32.const 9))))"
    ))
}

/// Records a statement in a position and checks how the run ends. Returns the operator that
/// trapped, or the fault.
fn compare(
    way: &str,
    (position, code, c): (&str, &str, i32),
    follow: bool,
) -> Result<String, String> {
    let bytes = module(&code.replace("OP", way));
    let arguments = [c.to_string(), "0".to_owned()];
    let arguments = arguments.each_ref().map(String::as_str);
    let recording = try_record(
        &bytes,
        &invoke("run", &arguments),
        &quiet(),
        &Interrupt::new(),
    );
    let recording = recording.unwrap_or_else(|error| panic!("{position}: {way}: {error}"));
    let recorded = &recording.recorded;
    let (function, offset, trap) = last_step(&bytes, "run", &[c, 0]);
    let frame = recorded.end.frames.first();
    let same =
        frame.is_some_and(|frame| (frame.function.as_u32(), frame.offset.0) == (function, offset));
    let kind = matches!(recorded.end.ending, Ending::Trapped { code, .. } if code == code_of(trap));
    if !same || !kind || recorded.uncertain.is_some() {
        return Err(format!(
            "{position}: {way}\n  {} at {frame:?}, not {trap} at {function} {offset:#x}, {:?}",
            recorded.end.ending, recorded.uncertain
        ));
    }
    if follow {
        agree(&recording, &Stored::of(&recording));
    }
    Ok(operator_at(&bytes, offset))
}

/// Compares ways to trap in positions. The machine also follows each way in one position. Returns
/// the operators that trapped.
fn compare_all(ways: &[(String, bool)]) -> BTreeSet<String> {
    let mut trapped = BTreeSet::new();
    let mut wrong = Vec::new();
    let mut count = 0;
    for (i, (way, everywhere)) in ways.iter().enumerate() {
        let positions = if *everywhere {
            &POSITIONS[..]
        } else {
            &POSITIONS[..3]
        };
        for (at, &position) in positions.iter().enumerate() {
            count += 1;
            match compare(way, position, i % positions.len() == at) {
                Ok(operator) => {
                    trapped.insert(operator);
                }
                Err(error) => wrong.push(error),
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "{} of {count}\n{}",
        wrong.len(),
        wrong.join("\n")
    );
    trapped
}

/// Tests every operator that accesses memory, at every address. Two kinds of addresses are tried in
/// every position, because the engine treats them differently. In one kind, the offset alone
/// exceeds memory. In the other, only the address does.
#[test]
fn accesses_beyond_memory() {
    let accesses = accesses();
    let mut ways = Vec::new();
    for (i, access) in accesses.iter().enumerate() {
        for (a, (memory, immediate, address)) in addresses(access.bytes).into_iter().enumerate() {
            let text = access.text(memory, &immediate, &address);
            let taken = match access.gives {
                Some(ty) => {
                    let takers = takers(ty);
                    takers[(i + a) % takers.len()].replace('V', &text)
                }
                None => text,
            };
            ways.push((taken, a == 0 || a == 2));
        }
    }
    let trapped = compare_all(&ways);
    for Known { name, .. } in known().iter().filter(|operator| operator.accesses) {
        assert!(trapped.contains(*name) != WAITING.contains(name), "{name}");
    }
}

/// Operators that the engine supports only with threads. `waiting_and_notifying` tests them.
const WAITING: [&str; 3] = [
    "MemoryAtomicNotify",
    "MemoryAtomicWait32",
    "MemoryAtomicWait64",
];

/// The engine does not support these operators, so the specification determines the expected trap.
/// It checks for an unaligned address, then for an address beyond memory, then for memory that is
/// not shared.
#[test]
fn waiting_and_notifying() {
    let operators = [
        ("memory.atomic.notify", "(i32.const 1)", 4),
        ("memory.atomic.wait32", "(i32.const 0) (i64.const 0)", 4),
        ("memory.atomic.wait64", "(i64.const 0) (i64.const 0)", 8),
    ];
    for (name, operands, bytes) in operators {
        let ends = |address: &str, expected: Option<TrapCode>| {
            let way = format!("(drop ({name} $one {address} {operands}))");
            for &(position, code, c) in &POSITIONS {
                let body = code.replace("OP", &way);
                let bytes = module(&body);
                let args = [c.to_string(), "0".to_owned()];
                let args = args.each_ref().map(String::as_str);
                let recording =
                    try_record(&bytes, &invoke("run", &args), &quiet(), &Interrupt::new());
                let recording =
                    recording.unwrap_or_else(|error| panic!("{position}: {way}: {error}"));
                let end = &recording.recorded.end;
                match (end.ending.clone(), expected) {
                    (Ending::Returned, None) => {}
                    (Ending::Trapped { code, .. }, Some(expected)) if code == expected => {
                        let offset = end.frames[0].offset.0;
                        let operator = operator_at(&bytes, offset);
                        assert!(
                            WAITING.contains(&operator.as_str()),
                            "{position}: {way}: {operator}"
                        );
                    }
                    (ending, _) => panic!("{position}: {way}: {ending}, not {expected:?}"),
                }
            }
        };
        let waits = name.contains("wait").then_some(TrapCode::UnsharedWait);
        ends("(local.get $zero)", waits);
        ends(
            "offset=1 (local.get $zero)",
            Some(TrapCode::UnalignedAtomic),
        );
        ends("(i32.const 65537)", Some(TrapCode::UnalignedAtomic));
        ends("(i32.const 65536)", Some(TrapCode::MemoryOutOfBounds));
        ends(
            "offset=65536 (local.get $zero)",
            Some(TrapCode::MemoryOutOfBounds),
        );
        ends(&format!("(i32.const {})", 65536 - bytes), waits);
    }
}

#[test]
fn atomics_that_are_not_aligned() {
    let atomic = |access: &Access| access.name.contains("atomic") && access.bytes > 1;
    let mut ways = Vec::new();
    for access in accesses().iter().filter(|access| atomic(access)) {
        for address in [
            "(i32.const 1)",
            "(i32.add (local.get $zero) (i32.const 65537))",
        ] {
            let text = access.text("$one", "offset=4", address);
            let taken = access.gives.map(|_| format!("(drop {text})"));
            ways.push((taken.unwrap_or(text), false));
        }
    }
    compare_all(&ways);
}

#[test]
fn operators_that_trap_otherwise() {
    let ways = others().into_iter().map(|way| (way, true));
    let trapped = compare_all(&Vec::from_iter(ways));
    let notes = |line: &&str| !line.starts_with('#');
    let never = NEVER.lines().filter(notes).flat_map(str::split_whitespace);
    let never = BTreeSet::from_iter(never);
    for Known { name, .. } in known().iter().filter(|operator| !operator.accesses) {
        assert!(
            trapped.contains(*name) != never.contains(name),
            "{name}: it is to trap in a way of `others`, or to stand in never.txt"
        );
    }
}
